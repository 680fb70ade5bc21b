"""Expressions as programs: their values, the slopes of their expressions, and none where there are corners."""

import ast
import gc
import sys
import threading

import numpy as np
import pytest

import lissom as ls
from lissom.robot.expression_programs import DEPTH, Operation, has_corners, jet, program, programs_of

TEXTS = [
    "0.5*sin(3*t)", "cos(t)**2", "tan(0.3*t)", "sinh(t) - cosh(2*t)", "tanh(t/2)", "exp(-t**2)", "log(1 + t**2)",
    "sqrt(2 + t)", "arcsin(0.4*t) + arccos(0.3*t)", "arctan(t)", "-(t - pi)**3", "t**2.5", "2**t", "(1 + t)**t",
    "(1 + t)/(2 - sin(t))", "3", "e*t", "+t", "3/t", "t**1", "abs(3)*t", "sin(cos(exp(0.2*t)))", 2.5,
    "t**(1/3)", "(t - 2)**4", "1/(1 + exp(-9*(t - 0.5)))", "+".join(["sin(t)*cos(t)"] * 60),
]  # fmt: skip
CORNERED = ["abs(t - 0.6)", "sin(maximum(t, 1))", "sign(t - 1)*t", "minimum(t, 2*t - 1)**2"]
WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
TIMES = np.array([0.4, 0.77, 1.3])


def difference(function, t, h=5e-3):
    """The slope, by differences of eighth order."""
    return sum(w * (function(t + k * h) - function(t - k * h)) for k, w in WEIGHTS) / h


@pytest.mark.parametrize("text", TEXTS + CORNERED)
def test_values_are_those_of_the_expression(text):
    """At one time and at many, which are the same numbers; beside corners too."""
    steps, expression = program(text, "t"), ls.Expression(text, "t")
    rows = np.broadcast_to(jet(steps, TIMES)[0], TIMES.shape)
    for k, t in enumerate(TIMES.tolist()):
        assert rows[k] == pytest.approx(expression(t), rel=1e-14)
        assert jet(steps, t)[0] == rows[k]
    np.testing.assert_allclose(expression.over(TIMES), rows, rtol=1e-14)


@pytest.mark.parametrize("text", TEXTS)
def test_rates_are_slopes(text):
    """First and second, at several times."""
    steps = program(text, "t")
    assert not has_corners(steps)
    for order in (0, 1):
        for t in TIMES:
            slope = difference(lambda x, order=order: jet(steps, x)[order], t)
            assert jet(steps, t)[order + 1] == pytest.approx(slope, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("text", CORNERED)
def test_rates_beside_corners(text):
    """Those of the branch that holds; the program knows that there is a corner."""
    steps = program(text, "t")
    assert has_corners(steps)
    for t in TIMES:
        slope = difference(lambda x: jet(steps, x)[0], t)
        assert jet(steps, t)[1] == pytest.approx(slope, rel=1e-8, abs=1e-8)


def room(steps):
    """The most that the stack holds."""
    held, most = 0, 0
    for step, _ in steps:
        held += (step in (Operation.TIME, Operation.NUMBER)) - (Operation.ADD <= step <= Operation.MAXIMUM)
        most = max(most, held)
    assert held == 1
    return most


def balanced(levels):
    """A sum of as many levels, which needs most room for its length."""
    return "t" if levels == 0 else f"({balanced(levels - 1)}-{balanced(levels - 1)})"


def test_the_stack_is_small():
    """However deep an expression is nested, to one side or to the other, and for the deepest that is allowed."""
    right, left = "t-(" * 200 + "t" + ")" * 200, "(" * 300 + "t" + "-t)" * 175
    assert room(program(right, "t")) == 2
    assert room(program("t*" + "(t-1)*" * 90 + "t", "t")) <= 3
    assert len(balanced(7)) < 1000 < len(balanced(8)) and room(program(balanced(7), "t")) == 8 < DEPTH
    for text in (right, balanced(7)):
        assert jet(program(text, "t"), 0.7)[0] == ls.Expression(text, "t")(0.7)
    with pytest.raises(ls.ModelError):
        ls.Expression(left, "t")


def test_what_does_not_vary_is_one_number():
    """Subtrees without time, and whole expressions."""
    assert program("2*pi/4 + sqrt(9) - 1", "t") == [(Operation.NUMBER, np.pi / 2 + 2)]
    assert [step for step, _ in program("sin(2*pi*3*t)", "t")] == [Operation.NUMBER, Operation.TIME,
                                                                  Operation.MULTIPLY, Operation.SIN]  # fmt: skip


def test_lists():
    """One for each expression of a list; none for a wrong size or a value that is no expression."""
    found = programs_of(ls.Expression(["t**2", 1.0], "t"), 2)
    np.testing.assert_allclose([jet(steps, 0.5)[1] for steps in found], [1.0, 0.0])
    assert programs_of(ls.Expression(["t", "1"], "t"), 3) is None and programs_of(np.sin, 1) is None


def test_motions_take_them():
    """Velocity and acceleration of a driven joint to the last digits, where differences give nine."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointUniversal((1, 0, 0), (0, 1, 0)))
    robot.add_joint_motion("drive", "body", position=ls.Expression(["0.5*sin(3*t)", "t**3"], "t"))
    model = robot.build()
    _, v, a = model.motions(0.7)
    np.testing.assert_allclose(v, [1.5 * np.cos(2.1), 3 * 0.49], rtol=1e-14)
    np.testing.assert_allclose(a, [-4.5 * np.sin(2.1), 4.2], rtol=1e-14)
    rows = model.motions_over(TIMES)
    expected = [np.ravel(model.motions(t)) for t in TIMES.tolist()]
    np.testing.assert_allclose(rows, expected, rtol=1e-15)
    np.testing.assert_array_equal(rows[1:2], model.motions_over(TIMES[1:2]))


def test_rates_that_are_not_finite():
    """The motion of a square root is refused where it has no rate, by name."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointRevolute())
    robot.add_joint_motion("drive", "body", position=ls.Expression("sqrt(t)", "t"))
    with pytest.raises(ls.ModelError, match="must be finite at 0"):
        robot.build()


@pytest.fixture
def parses_meanwhile():
    """The parser collects garbage often, and another thread parses meanwhile."""
    others, threshold = [], gc.get_threshold()

    def parse(phase, _):
        if phase == "start" and sys._getframe(1).f_code is ast.parse.__code__ and len(others) < 5:
            others.append(threading.Thread(target=ast.parse, args=("s + 1",)))
            others[-1].start()
            others[-1].join()

    gc.callbacks.append(parse)
    gc.set_threshold(1)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(parse)


def test_two_threads_parse_at_the_same_time(parses_meanwhile):
    """Python before 3.11.8 then raises SystemError in the thread that began first."""
    assert ls.Expression("+".join(["s"] * 50))(2.0) == 100.0
