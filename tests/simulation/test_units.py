"""A robot moves the same in whatever units of length, mass and time it is described: no number of the library's own is
hidden in the mechanics."""

import numpy as np
import pytest

import lissom as ls

pytestmark = pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")  # densities of 1e12 kg/m³
UNITS = [
    (2.0**-10, 1.0, 1.0),
    (1.0, 2.0**20, 1.0),
    (1.0, 1.0, 2.0**-10),
    (2.0**-10, 2.0**-30, 2.0**-5),  # a tenth of a millimetre, a microgram
]
OTHERS = [(2.0**10, 1.0, 1.0), (1.0, 2.0**-20, 1.0), (1.0, 1.0, 2.0**10)]
each = pytest.mark.parametrize("units", [UNITS, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["some", "others"])
STEPS, STEP = 40, 2e-3  # [s]
TIGHT = {"rtol": 1e-12, "atol": 1e-15}


def silicone(length, mass, time):
    """A soft material."""
    pressure = mass / (length * time**2)
    return ls.Material(
        young=3e5 * pressure, poisson=0.5, density=1100.0 * mass / length**3, viscosity=2e3 * pressure * time
    )


def soft(length, mass, time, order=3):
    """A soft rod."""
    basis = ls.BasisLegendre(torsion=1, bending_y=order, bending_z=order, elongation=1)
    return ls.Rod(0.3 * length, ls.SectionCircle((0.012 * length, 0.006 * length)), basis, silicone(length, mass, time))


def empty(length, mass, time):
    """A robot without links."""
    return ls.Robot("robot", gravity=(0.0, 0.0, -9.81 * length / time**2))


def arm(length, mass, time):
    """A rod with a tendon on a rigid body on a hinge with a spring."""
    robot, torque = empty(length, mass, time), mass * length**2 / time**2
    joint = ls.JointRevolute((0, 1, 0), stiffness=0.5 * torque)
    robot.add_link("base", ls.RigidBody.sphere(0.03 * length, density=1000.0 * mass / length**3), joint)
    robot.add_link("rod", soft(length, mass, time), parent="base")
    robot.add_tendon("lift", "rod", lambda s: (0.0, (0.01 - 0.005 * s) * length))
    return robot, [2.0 * mass * length / time**2]


def closed(length, mass, time):
    """Two rods whose tips a hinge joins."""
    robot = empty(length, mass, time)
    for name, z in (("low", 0.0), ("high", 0.1)):
        place = np.eye(4)
        place[2, 3] = z * length
        robot.add_link(name, soft(length, mass, time), placement=place)
    robot.add_tendon("pull", "low", (0.0, 0.004 * length))
    across = np.eye(4)
    across[2, 3] = 0.1 * length
    joint = ls.JointRevolute((0, 1, 0))
    robot.add_loop("tips", "low", "high", s_a=1.0, s_b=1.0, placement_a=across, joint=joint)
    return robot, [1.0 * mass * length / time**2]


def leaning(length, mass, time, **law):
    """A rod that falls on a bar, with friction."""
    robot, place = empty(length, mass, time), np.eye(4)
    place[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    place[:3, 3] = 0.12 * length, 0.0, -0.027 * length
    robot.add_link("rod", soft(length, mass, time))
    force = mass * length / time**2
    law |= {"stiffness": force / (2e-4 * length) ** 1.5, "friction": 0.4, "damping": 0.5 * time / length}
    bar = ls.ShapeCylinder(0.02 * length, 0.2 * length, axis=(0, 0, 1))
    robot.add_contact("bar", "rod", bar, placement=place, per_interval=2, **law)
    return robot, []


def slipping(length, mass, time):
    """Friction that creeps."""
    return leaning(length, mass, time, slip_speed=1e-3 * length / time)


def sticking(length, mass, time):
    """Friction that holds."""
    return leaning(length, mass, time, stick_stiffness=500.0 * mass / time**2, stick_damping=1e-3 * time)


def swimmer(length, mass, time):
    """A floating body that beats its tail."""
    robot, torque, density = empty(length, mass, time), mass * length**2 / time**2, 1000.0 * mass / length**3
    robot.add_link("body", ls.RigidBody.cylinder(0.12 * length, 0.03 * length, density=density), ls.JointFree())
    robot.add_link("tail", soft(length, mass, time, 2), ls.JointRevolute((0, 0, 1), stiffness=0.02 * torque), "body")
    robot.add_joint_actuator("motor", "tail")
    robot.set_fluid(density, default=ls.Hydrodynamics(drag_normal=1.0, drag_tangent=0.02))
    return robot, [0.02 * torque]


ROBOTS = [arm, closed, slipping, sticking, swimmer]


def tip(robot, model, q):
    """Where the last link ends."""
    return ls.frame_pose(model, q, list(robot.links)[-1], s=1.0)[..., :3, 3]


@each
@pytest.mark.parametrize("describe", ROBOTS)
def test_a_motion_is_the_same_in_other_units(describe, units):
    """Powers of two change no digit of a number. Tolerances are in metres and seconds, and so tight here that they do
    not matter."""
    found = []
    for length, mass, time in [(1.0, 1.0, 1.0), *units]:
        robot, u = describe(length, mass, time)
        model = robot.build()
        start = ls.solve_statics(model).q if model.n_rows else model.neutral()
        motion = ls.simulate(
            model, STEPS * STEP * time, start, u=u, method="generalized_alpha", dt=STEP * time, **TIGHT
        )
        found.append(tip(robot, model, motion.q) / length)
    assert np.abs(found[0] - found[0][0]).max() > 1e-3
    for moved in found[1:]:
        assert np.abs(moved - found[0]).max() < 1e-12


@each
@pytest.mark.parametrize("describe", [arm, closed])
def test_an_equilibrium_is_the_same_in_other_units(describe, units):
    """After as many iterations."""
    found = []
    for length, mass, time in [(1.0, 1.0, 1.0), *units]:
        robot, u = describe(length, mass, time)
        model = robot.build()
        rest = ls.solve_statics(model, u=u)
        found.append((tip(robot, model, rest.q) / length, rest.iterations))
    for place, iterations in found[1:]:
        assert np.abs(place - found[0][0]).max() < 1e-12 and iterations == found[0][1]
