"""Tables and samples beyond their ends: they hold their last value everywhere, and motions that would stop at once are
refused."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PPoly

import lissom as ls
from lissom.robot.functions import polynomial_of
from lissom.stepping.stepper import Copies

T = np.linspace(0.0, 1.0, 11)
RAMP = 0.5 - 0.5 * np.cos(np.pi * T)
NODES = 0.5 - 0.5 * np.cos(np.pi * np.arange(12) / 11)
ARM, BOB, CART = 0.4, 2.0, 0.5
MOVING = {
    "cubic": ls.Tabulated(T, np.sin(3.0 * T)),
    "linear": ls.Tabulated(T, np.sin(3.0 * T), "linear"),
    "barycentric": ls.Tabulated(NODES, np.sin(3.0 * NODES), "barycentric"),
    "samples": ls.Samples(T, np.sin(3.0 * T)[:, None]),
    "smooth samples": ls.Samples(T, np.sin(3.0 * T)[:, None], smooth=True),
}


def cart(position: object, **rates: object) -> ls.Model:
    """A pendulum of a point mass that hangs from a slider with a prescribed motion, without weight."""
    robot = ls.Robot("cart", gravity=(0, 0, 0))
    robot.add_link("slider", ls.RigidBody(CART), ls.JointPrismatic(axis=(1, 0, 0)))
    robot.add_link("bob", ls.RigidBody(BOB, com=(0, 0, -ARM)), ls.JointRevolute(axis=(0, 1, 0)), parent="slider")
    robot.add_joint_motion("drive", "slider", position=position, **rates)
    return robot.build()


@pytest.mark.parametrize("name", MOVING)
def test_tables_hold_their_ends(name):
    """Purpose: alone, as polynomials of kernels, and their slopes; at the last point the slope is that before it."""
    table, first, last = MOVING[name], 0.0, np.sin(3.0)
    for t, expected in ((-0.4, first), (0.0, first), (1.0, last), (1.0 + 1e-6, last), (3.0, last), (1e9, last)):
        np.testing.assert_allclose(table(t), expected, rtol=0, atol=1e-15)
        found = polynomial_of(table, 1)
        assert (found is None) == (name == "barycentric")
        if found is not None:
            assert found(t).item() == pytest.approx(expected, abs=1e-15)
            assert found(t, 1).item() == 0.0 or 0.0 <= t <= 1.0
    if isinstance(table, ls.Tabulated):
        assert table.slope(-0.1) == table.slope(1.1) == table.slope(1.1, 2) == 0.0
        assert table.slope(1.0) == pytest.approx(3.0 * np.cos(3.0), rel=0.04)
        np.testing.assert_array_equal(table.slope([-1.0, 2.0]), 0.0)


def test_tables_of_vectors_hold_their_ends():
    """Purpose: many values at many places, inside and outside."""
    table = ls.Tabulated(T, np.stack([T, T**2], axis=1))
    at = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(table(at), [[0, 0], [0.5, 0.25], [1, 1]], rtol=0, atol=1e-15)
    np.testing.assert_allclose(table.slope(at), [[0, 0], [1, 1], [0, 0]], rtol=0, atol=1e-13)


@pytest.mark.parametrize("options", [{}, {"dt": 0.01}, {"method": "bdf"}], ids=str)
@pytest.mark.parametrize("interpolation", ["linear", "cubic", "barycentric"])
def test_loads_hold(options, interpolation):
    """Purpose: a push whose table ends at 1 s with 0.1 N is 0.1 N afterwards; a cubic gave -5.3 N at 3 s."""
    robot = ls.Robot("block", gravity=(0, 0, 0))
    robot.add_link("block", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0)))
    force = np.outer([0.0, 0.7, 1.0, 0.7, 0.1], [1.0, 0.0, 0.0])
    robot.add_point_load("push", "block", force=ls.Tabulated(np.linspace(0.0, 1.0, 5), force, interpolation))
    found = ls.simulate(robot.build(), 3.0, t_eval=[1.0, 2.0, 3.0], **options)
    np.testing.assert_allclose(found.a[:, 0], 0.1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"dt": 0.002}, {"method": "bdf"}], ids=str)
def test_motions_hold_at_rest(options):
    """Purpose: a table that ends at rest holds its place afterwards; the pendulum keeps the momentum of free motion."""
    t = np.linspace(0.0, 1.0, 201)
    table = ls.Tabulated(t, 0.5 - 0.5 * np.cos(np.pi * t))
    found = ls.simulate(cart(table), 3.0, t_eval=[0.5, 1.5, 3.0], **options)
    np.testing.assert_allclose(found.q[:, 0], [0.5, 1.0, 1.0], rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.v[1:, 0], 0.0, rtol=0, atol=1e-12)
    assert found.v[1, 1] == pytest.approx(found.v[2, 1], rel=1e-5)


@pytest.mark.parametrize("name", MOVING)
def test_motions_that_stop_at_once_are_refused(name):
    """Purpose: by simulate, rollout, Stepper and Copies alike, with the name and the last time; up to this time the
    motion is that of the table, with its velocity at both ends."""
    model = cart(MOVING[name])
    text = r"robot 'cart': motion 'drive': its table must reach to .* s, or end at rest.* \(got a last time of 1 s\)"
    with pytest.raises(ls.ModelError, match=text):
        ls.simulate(model, 3.0)
    with pytest.raises(ls.ModelError, match=text):
        ls.rollout(model, dt=0.1, steps=11)
    stepper, copies = ls.Stepper(model, 0.1), Copies(model, 2, dt=0.1, steps=10)
    stepper.step(steps=10)
    with pytest.raises(ls.ModelError, match=text):
        stepper.step()
    assert stepper.state.t == pytest.approx(1.0)
    copies.place([0, 1], np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 0)))
    copies.advance(np.zeros((2, 0)))
    with pytest.raises(ls.ModelError, match=text):
        copies.advance(np.zeros((2, 0)))
    found = ls.rollout(model, dt=0.01, steps=100)
    np.testing.assert_allclose(found.v[[0, -1], 0], [3.0, 3.0 * np.cos(3.0)], rtol=0.04)


def test_given_rates_end_at_rest_too():
    """Purpose: a velocity that is held while the position goes on, or stands, belongs to no motion."""
    law = {"velocity": ls.Tabulated(T, np.cos(T)), "acceleration": lambda t: -np.sin(t)}
    with pytest.raises(ls.ModelError, match="must reach to 2 s, or end at rest"):
        ls.simulate(cart(lambda t: np.sin(t), **law), 2.0)
    with pytest.raises(ls.ModelError, match=r"position: must begin at t <= 0, or at rest.*\(got 0.5\)"):
        cart(ls.Tabulated(T + 0.5, np.sin(3.0 * T)))
    late = ls.Samples(
        np.concatenate([[0.4], T + 0.5, [1.6]]), np.concatenate([[0.0], RAMP, [1.0]])[:, None], smooth=True
    )
    found = ls.simulate(cart(late), 3.0, t_eval=[0.2, 1.0, 3.0])
    np.testing.assert_allclose(found.q[:, 0], [0.0, 0.5, 1.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"method": "bdf"}], ids=str)
def test_corners_of_polynomials_push(options):
    """Purpose: a slider that moves at 1 m/s and stops at once turns its pendulum by -v/L. Its velocity jumps between
    two polynomials, which was taken as exact: the pendulum felt nothing."""
    slide = PPoly(np.array([[1.0, 0.0], [0.0, 0.1]]), [0.0, 0.1, 0.2])
    found = ls.simulate(cart(slide), 0.3, t_eval=[0.05, 0.3], **options)
    np.testing.assert_allclose(found.v[:, 1], [0.0, -1.0 / ARM], rtol=0, atol=1e-4)


def test_paths_hold_along_a_rod():
    """Purpose: a tendon whose rows end before the tip runs on at their last offset."""

    def matrix(path):
        robot = ls.Robot("finger")
        soft = ls.Material(young=1e6, density=1000)
        robot.add_link("finger", ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2), soft))
        robot.add_tendon("pull", "finger", path)
        model = robot.build()
        return ls.actuation_matrix(model, model.neutral())

    rows = np.array([(0.1, 0.0, 0.004), (0.3, 0.0, 0.006), (0.6, 0.0, 0.005), (0.8, 0.0, 0.003)])
    spline = CubicSpline(rows[:, 0], rows[:, 1:])
    np.testing.assert_allclose(matrix(rows), matrix(lambda s: spline(np.clip(s, 0.1, 0.8))), rtol=0, atol=1e-9)
    assert np.abs(matrix(rows) - matrix(spline)).max() > 5e-5
