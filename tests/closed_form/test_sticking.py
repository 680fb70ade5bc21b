"""Contacts that hold by anchors: blocks on inclines, and balls that roll, against closed forms."""

import numpy as np
import pytest

import lissom as ls

MU, G = 0.5, 9.81
LAW = {"stiffness": 1e5, "friction": MU, "damping": 1.0, "stick_stiffness": 1e5}
STEPS = {"method": "generalized_alpha", "dt": 0.01}
INPUT = {"fused": {}, "separate": {"controller": lambda t, q, v: np.zeros(0)}}


def downhill(angle):
    """Gravity in the axes of an incline that falls along x."""
    return G * np.sin(angle), 0.0, -G * np.cos(angle)


def block(angle):
    """A box of 0.5 kg, free, with its corners on an incline."""
    robot = ls.Robot("block", gravity=downhill(angle))
    robot.add_link("block", ls.RigidBody.box(0.1, 0.1, 0.05, density=1000), ls.JointFree())
    robot.add_contact("floor", "block", ls.ShapePlane(), **LAW)
    return robot.build()


def on_floor(model):
    """The block with its corners 0.1 mm in the floor."""
    q = model.neutral()
    q[6] = 0.0249
    return q


@pytest.fixture(scope="module")
def resting():
    """The block below the friction angle and its equilibrium."""
    model = block(np.radians(20))
    return model, ls.solve_statics(model, q0=on_floor(model))


def test_a_block_below_the_friction_angle_is_an_equilibrium(resting):
    """Statics finds it where it stands, its friction carrying what gravity pulls downhill."""
    model, found = resting
    held = ls.contact_forces(model.anchored(found.anchors), found.q)
    assert len(held.depth) == 4 and found.residual < 1e-10
    np.testing.assert_allclose(held.force.sum(axis=0), -0.5 * np.array(downhill(np.radians(20))), atol=1e-10)
    again = ls.solve_statics(model.anchored(found.anchors), q0=found.q)
    np.testing.assert_allclose(again.q, found.q, atol=1e-12)
    np.testing.assert_allclose(again.anchors[~np.isnan(again.anchors)], found.anchors[~np.isnan(found.anchors)])


@pytest.mark.parametrize("name, duration", [("fused", 100.0), ("separate", 1.0)])
def test_a_block_below_the_friction_angle_stays(resting, name, duration):
    """It moves by less than 1e-9 m in 100 s of dynamics from its own equilibrium."""
    model, found = resting
    held = model.anchored(found.anchors)
    motion = ls.simulate(held, duration, found.q, t_eval=np.linspace(0, duration, 11), **STEPS, **INPUT[name])
    assert np.abs(motion.q - found.q).max() < 1e-9


def test_adaptive_steps_find_no_first_touch_in_a_contact_that_lasts(resting):
    """Corners have no radius: a deeper penetration between the ends of a step does not count as a new contact."""
    model, found = resting
    held = model.anchored(found.anchors)
    pushed = ls.integrate(held, found.q, np.array([0, 0, 0, 1e-6, 1e-6, 1e-6]))
    motion = ls.simulate(held, 0.05, pushed, method="generalized_alpha", rtol=1e-6, atol=1e-6)
    assert motion.statistics.steps < 200 and np.abs(motion.q[-1] - found.q).max() < 1e-5


def test_a_pushed_block_comes_back(resting):
    """A push that friction can hold displaces it by the spring; friction that held leaves no creep behind."""
    model, found = resting
    held, shift = model.anchored(found.anchors), np.array([0, 0, 0, 1e-7, 1e-7, 0])
    pushed = ls.integrate(model, found.q, shift)
    motion = ls.simulate(held, 10.0, pushed, method="generalized_alpha", dt=2e-3, rtol=1e-9, atol=1e-13)
    assert np.abs(motion.q[-1] - found.q).max() < 1e-12


def test_a_block_above_the_friction_angle_has_no_equilibrium():
    """Where friction cannot hold it, statics says so."""
    model = block(np.radians(30))
    with pytest.raises(ls.ConvergenceError):
        ls.solve_statics(model, q0=on_floor(model))


@pytest.mark.parametrize("method", ["generalized_alpha", "newmark", "bathe"])
def test_slides_above_the_friction_angle(method):
    """What cannot turn slides with g (sin α − μ cos α), exactly once the spring is drawn."""
    angle = np.radians(30)
    weight = 0.3 * G * np.cos(angle)
    robot = ls.Robot("slider", gravity=downhill(angle))
    robot.add_link("rail", None, ls.JointPrismatic((1, 0, 0)))
    ball = ls.RigidBody(0.3, inertia=(1e-4,) * 3, balls=[(0.0, 0.0, 0.0, 0.02)])
    robot.add_link("ball", ball, ls.JointPrismatic((0, 0, 1)), parent="rail")
    robot.add_contact("floor", "ball", ls.ShapePlane(), **LAW)
    model = robot.build()
    start = [0.0, 0.02 - (weight / LAW["stiffness"]) ** (2 / 3)]
    motion = ls.simulate(model, 0.5, start, method=method, dt=2e-3, rtol=1e-10, atol=1e-13)
    later = motion.t > 0.1
    found = np.diff(motion.v[later, 0]) / np.diff(motion.t[later])
    np.testing.assert_allclose(found, G * (np.sin(angle) - MU * np.cos(angle)), rtol=1e-9)


def rolling():
    """A free ball on a floor, at the depth at which it carries its weight."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointFree())
    robot.add_contact("floor", "ball", ls.ShapePlane(), **LAW | {"stiffness": 1e6})
    model = robot.build()
    q = model.neutral()
    q[6] = 0.05 - (G * 1000 * 4 / 3 * np.pi * 0.05**3 / 1e6) ** (2 / 3)
    return model, q


@pytest.mark.parametrize("turn", [1e-9, 1e-3, 0.1, 0.3, 1.0, 2.5])
def test_rolling_asks_for_nothing(turn):
    """A ball that has rolled from where it is anchored feels no friction; one that has slipped as well feels just
    that."""
    model, q = rolling()
    held, way = model.anchored(ls.contact_anchors(model, q)), np.array([0.6, 0.8, 0.0])
    for slip in (0.0, 2e-6):
        axis = np.cross([0, 0, 1.0], way)
        there = np.concatenate([[np.cos(turn / 2)], np.sin(turn / 2) * axis, (0.05 * turn + slip) * way])
        there[6] = q[6]
        (force,) = ls.contact_forces(held, there).force
        np.testing.assert_allclose(force[:2], -LAW["stick_stiffness"] * slip * way[:2], atol=1e-9)


@pytest.mark.parametrize("name", INPUT)
def test_a_sliding_ball_comes_to_roll(name):
    """5/7 of its speed is left, all the ways of making steps agreeing."""
    model, q = rolling()
    motion = ls.simulate(model, 0.3, q, [0, 0, 0, 0.7, 0, 0], method="generalized_alpha", dt=1e-3, **INPUT[name])
    assert np.linalg.norm(motion.v[-1, 3:5:2]) <= 0.5 + 1e-6
    assert abs(0.05 * np.linalg.norm(motion.v[-1, :3]) - 0.5) < 1e-4


def test_copies_with_other_anchors_keep_them(resting):
    """Purpose: copies that live at the same time keep their own anchors, later ones take over the tables and buffers of
    those that are gone, and all give the results of a newly built model."""
    model, found = block(np.radians(20)), resting[1]
    z, rng = np.zeros(model.nv), np.random.default_rng(0)
    moved = [found.anchors + 1e-5 * rng.normal(size=found.anchors.shape) for _ in range(4)]
    expected = [ls.forward_dynamics(block(np.radians(20)).anchored(rows), found.q, z) for rows in moved]
    assert len({a.tobytes() for a in expected}) == 4
    seen = set()
    for _ in range(2):
        alive = [model.anchored(rows) for rows in moved]
        for copies, answers in ((alive, expected), (alive[::-1], expected[::-1]), (alive, expected)):
            for copy, answer in zip(copies, answers):
                np.testing.assert_array_equal(ls.forward_dynamics(copy, found.q, z), answer)
                np.testing.assert_array_equal(ls.forward_dynamics(copy, [found.q] * 3, [z] * 3)[1], answer)
        seen |= {id(copy.cache) for copy in alive}
    del alive, copies, copy
    later = [model.anchored(rows) for rows in moved]
    assert {id(copy.cache) for copy in later} <= seen
    motion = ls.simulate(later[0].anchored(moved[0]), 0.02, found.q, **STEPS)
    again = ls.simulate(block(np.radians(20)).anchored(moved[0]), 0.02, found.q, **STEPS)
    np.testing.assert_array_equal(motion.q, again.q)
    np.testing.assert_array_equal(ls.forward_dynamics(later[0], found.q, z), expected[0])
