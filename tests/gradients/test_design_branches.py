"""Derivatives by design values near kinks of forces: the begin of contact, of slipping and of tension in a tendon."""

import numpy as np
import pytest
from gradients.moving_robots import assert_design_slopes, differenced, redesigned

import lissom as ls
from lissom.gradients.designs import Designs
from lissom.gradients.stage_systems import StageStates

DT, STEPS = 1e-3, 30


def fingers(friction):
    """Two silicone fingers that grasp a ball of 20 g, and a state of the grasp."""
    robot, radius, down = ls.Robot("gripper"), 0.022, np.eye(4)
    material = ls.Material(young=1e6, poisson=0.45, density=1100, damping_time=0.02)
    for k, side in enumerate((-1.0, 1.0)):
        rod = ls.Rod(0.1, ls.SectionCircle(0.008), ls.BasisLegendre(bending_y=1), material, gauss_points=5)
        down[:3] = [[0.0, 0.0, 1.0, 0.031 * side], [0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]]
        robot.add_link(f"finger {k}", rod, placement=down.copy())
        robot.add_tendon(f"tendon {k}", f"finger {k}", (0.0, -0.004 * side))
    middle = np.eye(4)
    middle[2, 3] = -0.08
    ball = ls.RigidBody.sphere(radius, density=0.02 / (4.0 / 3.0 * np.pi * radius**3))
    robot.add_link("ball", ball, ls.JointFree(), placement=middle)
    law = {"damping": 0.5, "friction": friction, "stick_stiffness": 2e3, "stick_damping": 1e-3}
    names, shape = ["finger 0", "finger 1"], ls.ShapeSphere(radius)
    robot.add_contact("hold", names, shape, on="ball", stiffness=2e4, per_interval=2, **law)
    model = robot.build()
    begun = ls.rollout(model, u=[6.0, 5.0], dt=DT, steps=60, method="implicit_euler")
    return model, begun.q[-1]


@pytest.mark.parametrize(
    ("friction", "path", "way"),
    [(0.6, "finger 0.body.length", 1.0), (0.15, "finger 0.placement", np.eye(6)[5])],
    ids=["sticking", "sliding"],
)
def test_fingers_that_hold_a_ball(friction, path, way):
    """While contacts end and slide, derivatives by length and place of a finger equal differences of whole motions."""
    model, q0 = fingers(friction)
    u = np.column_stack([np.linspace(5.5, 3.0, STEPS), np.linspace(5.0, 4.0, STEPS)])
    options = {"dt": DT, "tolerance": 1e-13}
    motion, weights = ls.rollout(model, q0, u=u, **options), np.zeros((STEPS + 1, model.nv))
    weights[-1, :4] = 1.0  # the sum of the coordinates of the fingers
    depths = np.concatenate([ls.contact_forces(model, q).depth for q in motion.q])
    assert depths.min() < 3e-5 and len(depths) > 2 * STEPS
    found = motion.backward(weights, parameters=[path]).parameters[path]

    def total(x):
        return ls.rollout(redesigned(model, path, x * way), q0, u=u, **options).q[-1, :4].sum()

    assert np.sum(found * way) == pytest.approx(differenced(total, 1e-7), rel=1e-6)


def test_a_ball_that_hardly_touches():
    """A light ball on a hard floor has a depth of 5e-8 m. The derivative of its height is that of (mg/k)^(2/3)."""
    robot, mass, k, floor = ls.Robot("ball", gravity=(0.0, 0.0, -10.0)), 1e-6, 1e6, np.eye(4)
    floor[2, 3] = 0.3
    robot.add_link(
        "ball", ls.RigidBody.sphere(0.02, density=mass / (4.0 / 3.0 * np.pi * 8e-6)), ls.JointPrismatic((0.0, 0.0, 1.0))
    )
    robot.add_contact("floor", "ball", ls.ShapePlane(), placement=floor, stiffness=k)
    model = robot.build()
    depth = (10.0 * mass / k) ** (2.0 / 3.0)
    rest = ls.solve_statics(model, q0=[0.32 - 0.9 * depth])
    assert rest.q[0] == pytest.approx(0.32 - depth, abs=1e-3 * depth)
    found = ls.equilibrium_derivatives(rest, parameters=["floor.placement", "floor.stiffness", "gravity"]).parameters
    assert found["floor.placement"][0] == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], abs=1e-9)
    assert found["floor.stiffness"][0] == pytest.approx(2.0 / 3.0 * depth / k, rel=1e-6)
    assert found["gravity"][0, 2] == pytest.approx(2.0 / 3.0 * depth / 10.0, rel=1e-6)


@pytest.mark.parametrize("pulled", [1e-7, -1e-7], ids=["taut", "slack"])
def test_a_tendon_at_its_slack_length(pulled):
    """For an elastic tendon that is stretched by 1e-7 m, or slack by as much, the derivative by the slack length is the
    negative of that by the input. Derivatives by offset and length of the arm equal differences on that side."""
    robot, basis = ls.Robot("arm", gravity=(0.0, 0.0, 0.0)), ls.BasisLegendre(bending_y=1)
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    robot.add_link("arm", ls.Rod(0.4, ls.SectionCircle(0.01), basis, material))
    robot.add_tendon("tendon", "arm", (0.0, 0.008), stiffness=300.0, slack_length=0.4)
    model = robot.build()
    rest = ls.solve_statics(model, u=[pulled])
    paths = ["tendon.slack_length", "arm.body.length"]
    found = ls.equilibrium_derivatives(rest, parameters=paths)
    by_slack, by_length = (found.parameters[path] for path in paths)
    assert by_slack == pytest.approx(-found.u[:, 0], rel=1e-9, abs=1e-15)
    if pulled < 0.0:
        assert not found.u.any() and np.abs(by_length).max() < 1e-15
        return
    h = 1e-9
    longer, shorter = (ls.solve_statics(redesigned(model, paths[1], x), u=[pulled]).q for x in (h, -h))
    assert by_length == pytest.approx((longer - shorter) / (2.0 * h), abs=1e-5 * np.abs(by_length).max())


CONSTANTS = ("stiffness", "exponent", "friction", "damping")
SHAPES = {
    "plane": (ls.ShapePlane((0.2, 0.1, 1.0)), [(0.02, 0.01, 0.02)]),
    "sphere": (ls.ShapeSphere(0.1), [(0.06, 0.08, 0.08)]),
    "box": (ls.ShapeBox(0.2, 0.16, 0.1), [(0.02, 0.01, 0.077), (0.12, -0.1, 0.01), (0.115, 0.095, 0.063)]),
    "cylinder": (ls.ShapeCylinder(0.1, 0.2), [(0.02, 0.11, 0.06), (0.127, 0.03, 0.02), (0.115, 0.09, 0.07)]),
    "hole": (ls.ShapeCylinder(0.1, None, inside=True), [(0.02, 0.05, 0.06)]),
    "capsule": (ls.ShapeCapsule(0.1, 0.2), [(0.02, 0.11, 0.06), (-0.18, 0.07, 0.06)]),
    "torus": (ls.ShapeTorus(0.1, 0.04), [(0.02, 0.11, 0.06), (0.05, 0.03, 0.08)]),
    "ellipsoid": (ls.ShapeEllipsoid(0.1, 0.06, 0.08), [(0.02, 0.06, 0.05), (-0.1, 0.03, -0.02), (0.07, -0.04, 0.04)]),
    "cone": (
        ls.ShapeCone(0.1, 0.2),
        [(0.01, 0.04, 0.06), (0.121, 0.01, 0.01), (-0.122, 0.03, 0.02), (-0.11, 0.08, 0.08)],
    ),
}


def test_sizes_of_shapes_on_grids():
    """A shape on a grid has derivatives by its placement, as for a smooth shape of the same form, and none by its
    sizes, in one clear line."""
    shapes = {
        "exact": ls.ShapeSphere(0.1),
        "grid": ls.ShapeFunction("sqrt(x**2 + y**2 + z**2) - 0.1", [-0.11] * 3, [0.11] * 3, 64),
    }
    found = []
    for shape in shapes.values():
        robot = ls.Robot("ball", gravity=(0.0, 0.0, 0.0))
        robot.add_link("ball", ls.RigidBody.sphere(0.03, density=500), ls.JointFree())
        robot.add_contact("touch", "ball", shape, placement=np.eye(4), stiffness=1e4, exponent=1.4, damping=0.3)
        model = robot.build()
        q = np.tile(model.neutral(), (1, 1))
        q[:, -3:] = 0.06, 0.08, 0.07
        designs, v = Designs(model, ("touch.placement",), 1), 0.3 * np.ones((1, 6))
        states = StageStates(q, v, v, np.zeros((1, 0)), None, np.zeros(1), None, None, None)
        found.append(designs.slopes(states).residual)
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-4 * np.abs(found[0]).max())
    with pytest.raises(ls.ModelError, match="must not lead into a ShapeFunction, which is sampled on a grid"):
        Designs(model, ("touch.shape.low",), 1)


@pytest.mark.parametrize(
    ("name", "stick"),
    [("sphere", None), pytest.param("box", None, marks=pytest.mark.slow), *((name, 500.0) for name in SHAPES)],
)
def test_shapes(name, stick):
    """On faces, edges and ends of all shapes, derivatives of the residual and of the next anchors by sizes, places and
    constants equal differences of rebuilt robots. The balls are so deep that the differences meet no kink."""
    shape, places = SHAPES[name]
    robot, rng = ls.Robot("ball", gravity=(0.0, 0.0, 0.0)), np.random.default_rng(1)
    tilt = ls.lie.se3_exp([0.1, -0.2, 0.3] * 2)
    robot.add_link("base", ls.RigidBody.sphere(0.03, density=500), ls.JointSpherical(), placement=tilt)
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=500), ls.JointFree())
    law = {"damping": 0.3, "friction": 0.4, "stick_stiffness": stick, "stick_damping": 0.01}
    robot.add_contact("touch", "ball", shape, on="base", placement=tilt, stiffness=1e4, exponent=1.4, **law)
    model = robot.build()
    sizes = [
        f"shape.{x}"
        for x in ("radius", "length", "size_x", "size_y", "size_z", "tube", "radius_x", "radius_y", "radius_z")
        if getattr(shape, x, None)
    ]
    constants = [*CONSTANTS, "stick_stiffness" if stick else "slip_speed", "stick_damping"] if name == "sphere" else []
    paths = [f"touch.{x}" for x in ("placement", *constants, *sizes)]
    base, n = ls.frame_pose(model, model.neutral(), "base") @ tilt, len(places)
    q, (v, a) = np.tile(model.neutral(), (n, 1)), 0.3 * rng.normal(size=(2, n, model.nv))
    q[:, -3:] = places @ base[:3, :3].T + base[:3, 3]
    assert all(len(x.depth) == 1 and x.depth > 1e-3 for x in ls.contact_forces(model, q))
    before = ls.integrate(model, q, 0.02 * rng.normal(size=(n, model.nv)))
    held = np.array([ls.contact_anchors(model, x) for x in before]) if stick else None
    assert_design_slopes(model, paths, (q, v, a, held), 1e-6, rng)


def test_slopes_of_an_elastic_force_are_those_of_its_powers():
    """The elastic force of a rod that bends is proportional to its modulus, its length and the fourth power of its
    radius; derivatives by these equal those of the powers to 1e-11, though all are differences of tables."""
    robot, material = ls.Robot("rod", gravity=(0.0, 0.0, 0.0)), ls.Material(young=1e6, density=1000.0)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=3), material))
    model = robot.build()
    q, none = np.random.default_rng(3).normal(size=(2, model.nv)), np.zeros((2, 0))
    powers = {"rod.material.young": (1e6, 1.0), "rod.length": (0.3, 1.0), "rod.section.radius": (0.01, 4.0)}
    still = np.zeros_like(q)
    states = StageStates(q, still, still, none, None, np.zeros(2), None, None, None)
    found = Designs(model, tuple(powers), 2).slopes(states).residual
    force = q @ model.elasticity.stiffness
    for k, (value, power) in enumerate(powers.values()):
        np.testing.assert_allclose(found[:, k], power / value * force, rtol=0, atol=1e-11 / value * np.abs(force).max())
