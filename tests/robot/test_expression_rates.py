"""Derivatives of expressions: the slopes of what they come from, and none where there are corners."""

import numpy as np
import pytest

import lissom as ls
from lissom.robot.expression_rates import rate_of

TEXTS = [
    "0.5*sin(3*t)", "cos(t)**2", "tan(0.3*t)", "sinh(t) - cosh(2*t)", "tanh(t/2)", "exp(-t**2)", "log(1 + t**2)",
    "sqrt(2 + t)", "arcsin(0.4*t) + arccos(0.3*t)", "arctan(t)", "-(t - pi)**3", "t**2.5", "2**t", "(1 + t)**t",
    "(1 + t)/(2 - sin(t))", "3", "e*t", "+t", "3/t", "t**1", "abs(3)*t", "sin(cos(exp(0.2*t)))", 2.5,
]  # fmt: skip
WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def difference(function, t, h=5e-3):
    """The slope, by differences of eighth order."""
    return sum(w * (function(t + k * h) - function(t - k * h)) for k, w in WEIGHTS) / h


@pytest.mark.parametrize("text", TEXTS)
def test_rates_are_slopes(text):
    """First and second, at several times."""
    first = ls.Expression(text, "t")
    for _ in range(2):
        rate = rate_of(first)
        for t in (0.4, 0.77, 1.3):
            assert rate(t) == pytest.approx(difference(first, t), rel=1e-8, abs=1e-8)
        first = rate


def test_lists_and_corners():
    """Each of a list; nothing for what has corners, alone or within, and what would be too long."""
    found = rate_of(ls.Expression(["t**2", 1.0], "t"))
    np.testing.assert_allclose(found(0.5), [1.0, 0.0])
    for text in ("abs(t)", "sin(maximum(t, 1))", "sign(t)*t", "+".join(["sin(t)*cos(t)"] * 60)):
        assert rate_of(ls.Expression(text, "t")) is None


def test_motions_take_them():
    """Velocity and acceleration of a driven joint to the last digits, where differences give nine."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointUniversal((1, 0, 0), (0, 1, 0)))
    robot.add_joint_motion("drive", "body", position=ls.Expression(["0.5*sin(3*t)", "t**3"], "t"))
    _, v, a = robot.build().motions(0.7)
    np.testing.assert_allclose(v, [1.5 * np.cos(2.1), 3 * 0.49], rtol=1e-14)
    np.testing.assert_allclose(a, [-4.5 * np.sin(2.1), 4.2], rtol=1e-14)
