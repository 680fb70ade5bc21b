"""Rods and joints that are turned by a prescribed motion until they give way, against closed forms.

The time of the motion is the parameter of the branch, and the angle is the time.
"""

import numpy as np
import pytest
from scipy.optimize import brentq
from statics.test_hard_branches import ORDER, twisted_ring

import lissom as ls


def turned(rod, loop, placement_b=None):
    """A rod whose root turns about its axis and whose end is held by a joint."""
    robot = ls.Robot("turned", gravity=(0, 0, 0))
    robot.add_link("rod", rod, ls.JointRevolute((1, 0, 0)))
    robot.add_loop("end", "rod", joint=loop, placement_b=placement_b)
    robot.add_joint_motion("turn", "rod", position=lambda t: -t)
    return robot.build()


def section(GJ):
    """A round section with EI = 1."""
    return ls.SectionGeneral(stiffness=(GJ, 1, 1, 1, 1, 1), inertia=(2e-3, 1e-3, 1e-3, 1, 1, 1))


def test_a_sprung_pendulum_snaps_as_its_motor_turns():
    """k (θ − φ) = m g l sin θ under the motor's angle φ: the branch turns back where cos θ = k/mgl, twice, and the
    motor's torque is the spring's."""
    ratio = 2.0  # mgl/k
    stiffness = 1.0 * 9.81 * 0.2 / ratio
    robot = ls.Robot("pendulum")
    robot.add_link("motor", ls.RigidBody(0.1, inertia=(1e-3,) * 3), ls.JointRevolute((0, 1, 0)))
    rod = ls.JointRevolute((0, 1, 0), stiffness=stiffness)
    robot.add_link("rod", ls.RigidBody(1.0, (0, 0, 0.2)), rod, parent="motor")
    robot.add_joint_motion("turn", "motor", position=lambda t: t)
    branch = ls.continuation(robot.build(), q0=[0.0, 0.0], parameter="time", factor=-3.0, factor_range=(-3.0, 3.0))
    theta = branch.q.sum(axis=1)
    np.testing.assert_allclose(branch.q[:, 0], branch.factor, rtol=0, atol=1e-14)
    np.testing.assert_allclose(theta - ratio * np.sin(theta), branch.factor, rtol=0, atol=1e-11)
    assert [event.kind for event in branch.events] == ["limit", "limit"]
    fold = np.arccos(1 / ratio)
    for event, sign in zip(branch.events, (-1, 1)):
        assert event.factor == pytest.approx(sign * (fold - ratio * np.sin(fold)), rel=1e-11)
        assert event.q.sum() == pytest.approx(sign * fold, abs=1e-8)
        np.testing.assert_allclose(event.direction, [0.0, 1.0, 0.0], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(branch.stable, np.cos(theta) < 1 / ratio)


def test_clamped_rod_under_twist():
    """Greenhill: a rod between clamps that may come nearer, twisted by φ, leaves its axis at GJ φ/EI L = 2x with
    tan x = x, in every plane at once; the branch of helices is followed back to smaller angles."""
    GJ, tip = 0.7, np.eye(4)
    tip[0, 3] = 1.0
    rod = ls.Rod(1.0, section(GJ), ls.BasisLegendre(torsion=2, bending_y=12, bending_z=12), gauss_points=48)
    model = turned(rod, ls.JointPrismatic((1, 0, 0)), tip)
    exact = 2 * brentq(lambda x: np.tan(x) - x, 4.4, 4.5) / GJ  # pyright: ignore[reportOperatorIssue]
    assert exact * GJ == pytest.approx(8.98682, abs=1e-5)
    straight = ls.continuation(model, parameter="time", factor_range=(0.0, 14.0), step=0.5)
    (event,) = straight.events
    assert (event.kind, event.count) == ("bifurcation", 2)
    assert event.factor == pytest.approx(exact, rel=1e-5)
    np.testing.assert_allclose(straight.q[:, 1], straight.factor, rtol=1e-12)
    bent = ls.continuation(
        model, q0=event.q, parameter="time", factor=event.factor, along=event.direction, factor_range=(0.0, 14.0),
        step=0.3, max_points=12,
    )  # fmt: skip
    np.testing.assert_allclose(bent.q[:, 0], -bent.factor, rtol=0, atol=1e-12)
    assert (np.diff(bent.factor) < 0).all() and not bent.stable.any()
    np.testing.assert_allclose(ls.loop_residual(model, bent.q), 0.0, rtol=0, atol=1e-11)


def test_ring_under_twist():
    """Michell (1889): a ring bent from a straight rod, cut, twisted by φ and closed, leaves its plane at
    φ = 2π√3 EI/GJ; where its root is held turns with it at no cost."""
    exact = 2 * np.pi * np.sqrt(3.0)
    rod = ls.Rod(
        2 * np.pi, section(1.0), ls.BasisLegendre(torsion=0, bending_y=ORDER, bending_z=ORDER), gauss_points=64
    )
    model = turned(rod, ls.JointFixed())
    begin = 0.97 * exact
    q0 = np.concatenate([[-begin], twisted_ring(begin)])
    branch = ls.continuation(
        model, q0=q0, parameter="time", factor=begin, factor_range=(0.9 * exact, 1.1 * exact), step=0.5, max_points=25
    )
    event = branch.events[0]
    assert event.factor == pytest.approx(exact, rel=1e-4)
    assert branch.stable[: event.index + 1].all() and not branch.stable[event.index + 1]
