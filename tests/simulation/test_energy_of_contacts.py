"""Energy balances of motions with contacts: springs of depth and of friction, sliding and damping."""

import numpy as np
import pytest
from scipy.optimize import brentq

import lissom as ls

RADIUS, DEPTH, PUSH = 0.05, 1e-3, 100.0  # of a ball that moves along a floor [m, N]


def slider(**law):
    """A ball that does not turn and moves along a floor at constant depth."""
    robot, place = ls.Robot("slider"), np.eye(4)
    place[2, 3] = RADIUS - DEPTH
    robot.add_link("ball", ls.RigidBody.sphere(RADIUS, density=1000), ls.JointPrismatic((1, 0, 0)), placement=place)
    if law:
        normal = {"stiffness": PUSH / DEPTH, "exponent": 1.0, "damping": 0.0}
        robot.add_contact("floor", "ball", ls.ShapePlane(), **normal, **law)
    return robot


def balance(robot, q0, v0, duration, rtol=1e-7, **options):
    model = robot.build()
    motion = ls.simulate(model, duration, q0, v0, rtol=rtol, atol=1e-3 * rtol, **options)
    return motion, ls.energy_balance(model, motion), float(model.links.mass.sum())


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_a_block_on_its_spring_of_friction(rtol):
    """A block that vibrates on the spring of friction has the balance of one on an equal spring between two points, and
    the amplitude v √(m/k)."""
    k, v0 = 2000.0, 0.5
    sticks = balance(slider(friction=5.0, stick_stiffness=k, stick_damping=0.0), [0.0], [v0], 0.3, rtol)
    tied = slider()
    tied.add_link("wall", None)
    tied.add_spring("spring", ls.PathPoint(None, (-1.0, 0.0, RADIUS - DEPTH)), "ball", stiffness=k, rest=1.0)
    other = balance(tied, [0.0], [v0], 0.3, rtol)
    assert sticks[1].residual < 1.1 * other[1].residual + 1e-12
    np.testing.assert_allclose(np.abs(sticks[0].q).max(), v0 * np.sqrt(sticks[2] / k), rtol=1e-2)
    np.testing.assert_allclose(sticks[1].contact, 0.5 * k * sticks[0].q[:, 0] ** 2, atol=1e-12)
    assert not sticks[1].work.any() and np.abs(sticks[1].dissipated_in_contacts).max() < 1e-15  # rounding


def test_friction_of_a_block_that_slides_to_rest():
    """A block slides until it stops, and swings back on its spring. Friction takes μ N on the way, less the stretch of
    the spring."""
    friction, k = 0.05, 1e5
    robot = slider(friction=friction, stick_stiffness=k, stick_damping=0.0)
    short = {"dt": 5e-5, "method": "generalized_alpha"}  # the anchor follows at the ends of steps
    motion, found, mass = balance(robot, [0.0], [0.5], 0.1, **short)
    most = friction * PUSH
    taken = most * (motion.q.max() - most / k)
    np.testing.assert_allclose(found.dissipated_in_contacts[-1], taken, rtol=1e-4)
    np.testing.assert_allclose(0.5 * mass * 0.25 - found.kinetic[-1] - found.contact[-1], taken, rtol=1e-4)
    assert np.diff(found.dissipated).min() > -1e-6 * taken and found.residual < 1e-4


def test_a_ball_that_bounces():
    """An undamped ball stores its fall in the spring of depth and gets it back; damping and friction take energy."""
    energies = {}
    start, spin = [1.0, 0, 0, 0, 0, 0, 0.08], [0.0, 0, 0, 1.0, 0, 0]
    laws = {"elastic": {"damping": 0.0}, "lossy": {"damping": 1.0, "friction": 0.3, "stick_stiffness": 1e4}}
    for name, law in laws.items():
        robot = ls.Robot(name)
        robot.add_link("ball", ls.RigidBody.sphere(RADIUS, density=1000), ls.JointFree())
        robot.add_contact("floor", "ball", ls.ShapePlane(), stiffness=1e5, exponent=1.5, **law)
        _, energies[name], _ = balance(robot, start, spin, 0.5)
    elastic, lossy = energies["elastic"], energies["lossy"]
    mass = 1000 * 4 / 3 * np.pi * RADIUS**3
    assert elastic.residual < 1e-5 and not elastic.dissipated.any()
    weight = mass * 9.81
    depth = brentq(lambda x: 1e5 * x**2.5 / 2.5 - weight * (0.03 + x), 1e-4, 0.05)
    fallen = weight * (0.03 + depth)
    assert elastic.contact.max() == pytest.approx(fallen, rel=0.01)  # at a step near the deepest point
    assert lossy.residual < 1e-4 and lossy.dissipated_in_contacts[-1] == lossy.dissipated[-1]
    assert lossy.dissipated[-1] > 0.9 * weight * 0.03


def test_a_box_with_a_surface():
    """A box that lands on its faces and edges and slides: the pressure of its surface has no potential, but a power."""
    robot = ls.Robot("box")
    robot.add_link("box", ls.RigidBody.box(0.1, 0.08, 0.05, density=1000), ls.JointFree())
    law = {"stiffness": 1e6, "damping": 1.0, "friction": 0.3, "stick_stiffness": 1e6}
    robot.add_contact("floor", "box", ls.ShapePlane(), surface=True, **law)
    _, found, _ = balance(robot, [1.0, 0, 0, 0, 0, 0, 0.03], [0.0, 0.5, 0, 1.0, 0.3, 0], 0.2, 1e-6)
    assert found.residual < 1e-3
    assert found.dissipated_in_contacts[-1] > 0.5 * found.kinetic[0]
