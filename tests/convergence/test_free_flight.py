"""Robots that nothing holds: momentum and energy of the flight, and momentum gained from loads.

A body with a free joint carries a soft rod and hinged links; in the second robot the free joint comes after a link
fixed away from the world's origin, and branches hang from the rod. Momenta are measured in the largest of their own
along the motion, energy in what there is at the start.
"""

from functools import lru_cache

import numpy as np
import pytest

import lissom as ls

WEIGHT = np.array([1.0, -2.0, -9.81])
RTOL = (1e-5, 1e-6, 1e-7)


def pulse(t, *vector):
    """A vector that comes and goes within 2 s."""
    return np.array(vector) * np.sin(0.5 * np.pi * t) ** 2


def at(*p):
    """A placement without rotation."""
    g = np.eye(4)
    g[:3, 3] = p
    return g


def rod(length, radius, viscosity, **orders):
    """A soft tapered rod whose fastest vibration takes a few hundredths of a second."""
    material = ls.Material(young=1e5, poisson=0.5, density=1000, viscosity=viscosity)
    return ls.Rod(length, ls.SectionCircle((radius, 0.8 * radius)), ls.BasisLegendre(**orders), material)


def describe_root(gravity=(0, 0, 0), viscosity=0.0):
    """A free body with a rod that bends and twists, and a paddle on a hinge."""
    robot = ls.Robot("free at the root", gravity=gravity)
    robot.add_link("body", ls.RigidBody.box(0.2, 0.12, 0.08, density=200), ls.JointFree())
    arm = rod(0.3, 0.015, viscosity, torsion=0, bending_y=1, bending_z=1)
    robot.add_link("arm", arm, parent="body", placement=at(0.1, 0, 0))
    paddle = ls.RigidBody.box(0.2, 0.05, 0.02, density=500)
    robot.add_link("paddle", paddle, ls.JointRevolute((0, 0, 1)), parent="body", placement=at(-0.1, 0.05, 0))
    return robot


def describe_inner(gravity=(0, 0, 0), viscosity=0.0):
    """The body flies from a mount; a second rod hangs on a ball joint, the paddle from the middle of the first."""
    robot = ls.Robot("free at an inner link", gravity=gravity)
    robot.add_link("mount", placement=at(0.4, -0.3, 0.2))
    robot.add_link("body", ls.RigidBody.box(0.2, 0.12, 0.08, density=200), ls.JointFree(), parent="mount")
    arm = rod(0.3, 0.015, viscosity, torsion=0, bending_y=1, bending_z=1)
    robot.add_link("arm", arm, parent="body", placement=at(0.1, 0, 0))
    tail = rod(0.25, 0.012, viscosity, bending_y=1, bending_z=1)
    robot.add_link("tail", tail, ls.JointSpherical(), parent="body", placement=at(-0.1, 0, 0))
    paddle = ls.RigidBody.box(0.2, 0.05, 0.02, density=500)
    robot.add_link("paddle", paddle, ls.JointRevolute((0, 0, 1)), parent="arm", at=0.6)
    return robot


DESCRIBE = {"root": describe_root, "inner": describe_inner}
every_robot = pytest.mark.parametrize("kind", DESCRIBE)


def thrown(model):
    """q, v of a robot thrown bent, turning more than once a second about an axis that is none of its own."""
    rng = np.random.default_rng(0)
    q = ls.integrate(model, model.neutral(), 0.6 * rng.normal(size=model.nv) * model.dofs.scale)
    v = 0.5 * rng.normal(size=model.nv) * model.dofs.scale
    v[:6] = 4.0, -2.0, 6.0, 0.3, -0.2, 0.1
    return q, v


def changes(model, motion):
    """Largest change of angular momentum, of linear momentum and of energy, each in its natural size."""
    h, E = ls.momentum(model, motion.q, motion.v), ls.energy(model, motion.q, motion.v).total
    parts = [np.linalg.norm(x - x[0], axis=1).max() / np.linalg.norm(x, axis=1).max() for x in (h[:, :3], h[:, 3:])]
    return np.array([*parts, np.abs(E - E[0]).max() / E[0]])


def fitted_slope(x, y):
    """Slope of log y over log x, column by column."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]


@lru_cache(maxsize=2)
def adaptive_flights(kind, tolerances=RTOL):
    """What adaptive steps change over 4 s at each tolerance, shape (n, 3)."""
    model = DESCRIBE[kind]().build()
    runs = [ls.simulate(model, 4.0, *thrown(model), rtol=rtol, atol=0.01 * rtol, t_eval=np.linspace(0, 4, 41))
            for rtol in tolerances]  # fmt: skip
    return np.array([changes(model, run) for run in runs])


@every_robot
def test_flight_tumbles(kind):
    """Momentum and energy move between the parts in this flight, so that their sums could be wrong."""
    model = DESCRIBE[kind]().build()
    run = ls.simulate(model, 2.0, *thrown(model), method="generalized_alpha", dt=0.002)
    assert abs(ls.momentum(model, run.q, run.v)[0]).min() > 1e-3, "about every axis"
    E = ls.energy(model, run.q, run.v)
    assert np.ptp(E.elastic) > 0.01 * E.total[0]
    turned = np.arccos(0.5 * (np.trace(ls.frame_pose(model, run.q, "body")[:, :3, :3], axis1=1, axis2=2) - 1))
    assert turned.max() > 2.5


@every_robot
def test_adaptive_steps_keep_momentum_and_energy(kind):
    """Within 60 rtol over 4 s: some thousands of steps whose errors, each rtol at most, have no common sign."""
    assert np.all(adaptive_flights(kind) < 60 * np.array(RTOL)[:, None])


@pytest.mark.slow
@every_robot
def test_short_steps_keep_momentum_and_energy(kind):
    """Within 60 rtol over 4 s at rtol 1e-8, too."""
    assert np.all(adaptive_flights(kind, (1e-8,)) < 60 * 1e-8)


@every_robot
def test_changes_fall_with_the_tolerance(kind):
    """In proportion to rtol or faster: a scheme of order 4 whose steps grow with the power 1/4 of rtol, as the error of
    order 3 beside it asks, errs by rtol to the power 1, and takes from what vibrates undamped to the power 5/4."""
    slopes = fitted_slope(RTOL, adaptive_flights(kind))
    assert np.all((slopes > 0.9) & (slopes < 1.35)), slopes


def test_a_free_body_needs_no_more_steps_than_the_order_asks():
    """Steps shorten with the power 1/4 of rtol where poses are stored, too, whose velocities are no rates of them."""
    robot = ls.Robot("box", gravity=(0, 0, 0))
    robot.add_link("body", ls.RigidBody.box(0.2, 0.12, 0.08, density=200), ls.JointFree())
    model = robot.build()
    count = [ls.simulate(model, 1.0, *thrown(model), rtol=x, atol=0.01 * x).statistics.steps for x in RTOL]
    slope = fitted_slope(RTOL, np.array(count))
    assert -0.3 < slope < -0.15, count
    assert count[0] < 100


REPEATED = [pytest.param(*x, marks=pytest.mark.slow) for x in (("root", 1.0), ("inner", 0.8))]


@pytest.mark.parametrize(("kind", "rho_inf"), [("root", 0.8), ("inner", 1.0), *REPEATED])
def test_generalized_alpha_keeps_them_to_second_order(kind, rho_inf):
    """The changes over 2 s fall with the square of the step; with 0.5 ms they are below a ten-thousandth."""
    model = DESCRIBE[kind]().build()
    steps = np.array([2e-3, 1e-3, 5e-4])
    scheme = ls.generalized_alpha(rho_inf)
    runs = [ls.simulate(model, 2.0, *thrown(model), method=scheme, dt=h, rtol=1e-10, atol=1e-12) for h in steps]
    found = np.array([changes(model, run) for run in runs])
    assert np.abs(fitted_slope(steps, found) - 2.0).max() < 0.1, found
    assert found[-1].max() < 1e-4


def wrenches(robot, model, motion):
    """Force and moment about the world's origin of all loads and of weight, shape (n, 6), moment first."""
    out = np.zeros((len(motion.t), 6))
    for load in robot.loads.values():
        g = ls.frame_pose(model, motion.q, load.link, s=load.s)
        R = g[:, :3, :3] if load.frame == "body" else np.eye(3)
        force, moment = (np.array([R_t @ value(t) for R_t, t in zip(np.broadcast_to(R, (len(g), 3, 3)), motion.t)])
                         for value in (load.force, load.moment))  # fmt: skip
        out += np.hstack([moment + np.cross(g[:, :3, 3], force), force])
    weight = model.links.mass.sum() * model.gravity
    return out + np.hstack([np.cross(ls.center_of_mass(model, motion.q), weight), np.tile(weight, (len(out), 1))])


@every_robot
@pytest.mark.parametrize(
    "gravity", [pytest.param(np.zeros(3), id="weightless", marks=pytest.mark.slow), pytest.param(WEIGHT, id="falling")]
)
def test_impulse_of_loads_is_the_momentum_gained(kind, gravity):
    """∫ (x × F + C; F) dt along the path found is the change of momentum, over two pulses in the world and the body.

    Gauss's rule with 8 points on each of 40 panels is exact to rounding there, so that the integrator's error is left.
    """
    robot, rtol = DESCRIBE[kind](gravity, viscosity=1e3), 1e-8
    robot.add_point_load("push", "arm", force=lambda t: pulse(t, 0.2, -0.1, 0.3),
                         moment=lambda t: pulse(t, 0.01, 0.02, -0.01))  # fmt: skip
    robot.add_point_load("thrust", "paddle", frame="body", force=lambda t: pulse(2 * t, 0.0, 0.2, 0.1),
                         moment=lambda t: pulse(2 * t, 0.0, -0.01, 0.01))  # fmt: skip
    model = robot.build()
    x, w = np.polynomial.legendre.leggauss(8)
    panel = 2.0 / 40
    times = np.add.outer(np.arange(40), 0.5 + 0.5 * x).ravel() * panel
    motion = ls.simulate(model, 2.0, *thrown(model), rtol=rtol, atol=0.01 * rtol, t_eval=[0.0, *times, 2.0])
    h = ls.momentum(model, motion.q, motion.v)
    weights, acting = np.tile(0.5 * panel * w, 40), wrenches(robot, model, motion)[1:-1]
    impulse = weights @ acting
    for part in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(h[:, part], axis=1).max()
        assert weights @ np.linalg.norm(acting[:, part], axis=1) > 0.1 * size
        assert np.linalg.norm(h[-1, part] - h[0, part] - impulse[part]) < 100 * rtol * size


@every_robot
def test_what_acts_inside_leaves_the_momentum(kind):
    """A paddle driven along a function of time, a tendon that pulls and viscous rods change the energy alone."""
    robot, rtol = DESCRIBE[kind](viscosity=1e3), 1e-7
    robot.add_tendon("tendon", "arm", (0.0, 0.01))
    robot.add_joint_motion("beat", "paddle", position=lambda t: 0.8 * np.sin(5.0 * t))
    model = robot.build()
    motion = ls.simulate(model, 4.0, *thrown(model), lambda t: np.array([np.sin(3.0 * t) ** 2]), rtol=rtol,
                         atol=0.01 * rtol, t_eval=np.linspace(0, 4, 101))  # fmt: skip
    *momenta, energy = changes(model, motion)
    assert energy > 0.05
    assert max(momenta) < 100 * rtol
