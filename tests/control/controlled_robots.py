"""Small robots that control laws are tried on, built once."""

from functools import lru_cache

import numpy as np

import lissom as ls

SOFT = ls.Material(young=1e6, density=1000.0, viscosity=2e4)


def ahead(x):
    """A placement at x along the x axis."""
    g = np.eye(4)
    g[0, 3] = x
    return g


@lru_cache(maxsize=1)
def tipped():
    """Two rigid links on driven hinges that carry a passive soft rod."""
    robot = ls.Robot("tipped")
    hinge = ls.JointRevolute((0, 1, 0))
    robot.add_link("upper", ls.RigidBody(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02)), hinge)
    robot.add_link("lower", ls.RigidBody(0.6, (0.15, 0, 0), (0.001, 0.01, 0.01)), hinge, "upper", placement=ahead(0.4))
    rod = ls.Rod(0.4, ls.SectionCircle(0.015), ls.BasisLegendre(bending_y=1), SOFT)
    robot.add_link("tip", rod, parent="lower", placement=ahead(0.3))
    robot.add_joint_actuator("shoulder", "upper")
    robot.add_joint_actuator("elbow", "lower")
    return robot.build()


def describe_routed(**options):
    """A soft arm of two rods, six coordinates, and three tendons that run straight from the base to holes in disks at
    their ends, so that B(q) depends on q much."""
    robot = ls.Robot("routed", **options)
    basis = ls.BasisLegendre(bending_y=0, bending_z=0, elongation=0)
    for k in range(2):
        parent = None if k == 0 else "rod 0"
        robot.add_link(f"rod {k}", ls.Rod(0.2, ls.SectionCircle(0.02 - 0.004 * k), basis, SOFT), parent=parent)
    for k, angle in enumerate((0.0, 2.1, 4.2)):
        hole = 0.0, 0.03 * np.cos(angle), 0.03 * np.sin(angle)
        ends = [ls.PathPoint("rod 0", hole)] + ([ls.PathPoint("rod 1", hole)] if k < 2 else [])
        robot.add_tendon(f"tendon {k}", path=[ls.PathPoint(None, hole), *ends])
    return robot


@lru_cache(maxsize=1)
def routed():
    """Model of describe_routed."""
    return describe_routed().build()


@lru_cache(maxsize=1)
def every_kind():
    """A slide with a motor, and a rod with a helical tendon, chambers of both kinds and coupled tendons."""
    robot = ls.Robot("every kind")
    robot.add_link("cart", ls.RigidBody(0.5), ls.JointPrismatic((1, 0, 0)))
    basis = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=0, elongation=0)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.02), basis, SOFT), parent="cart")
    robot.add_joint_actuator("motor", "cart")
    robot.add_tendon("helix", "rod", lambda s: (0.015 * np.cos(4 * s), 0.015 * np.sin(4 * s)))
    robot.add_chamber("tangent", "rod", offset=(0.0, 0.01), area=1e-4)
    robot.add_chamber("volume", "rod", offset=(0.01, 0.0), area=2e-4, force="volume")
    for name, y in (("left", 0.01), ("right", -0.01)):
        robot.add_tendon(name, path=[ls.PathPoint(None, (0, y, 0)), ls.PathPoint("rod", (0, y, 0))])
    robot.couple_inputs("bend", {"left": 2.0, "right": -1.0})
    return robot.build()


def some_state(model, seed, size=0.3):
    """A random q and v of natural size."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), size * rng.uniform(-1, 1, model.nv) * model.dofs.scale)
    return q, rng.uniform(-1, 1, model.nv) * model.dofs.scale
