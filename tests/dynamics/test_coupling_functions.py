"""Functions of couplings at any value of their coordinates: against SymPy and closed forms of cams."""

import numpy as np
import pytest
import sympy

import lissom as ls

TEXTS = [
    "sin(q)", "cos(2*q)/3 + q", "tan(q/9)", "sinh(q/9) - cosh(q/7)", "tanh(q/4)", "exp(-q**2/99)", "log(1 + q**2)",
    "sqrt(2 + q*q)", "arcsin(0.04*q) + arccos(0.03*q)", "arctan(q/3)", "(3 + q*q)**1.5", "2**(q/5)",
    "(1 + q**2)**(q/20)", "q - (2 - sin(q))", "q/(3 - sin(q))", "2 - (q - 1)**3/99", "(9 + q*q)**-2", "-q",
]  # fmt: skip
VALUES = (-19.3, -4.0, 0.3, 13.7, 21.0)


def cam(function, joint=None, **options):
    """A rack whose place, less a function of the angle of a wheel, is zero; without gravity."""
    robot = ls.Robot("cam", gravity=(0, 0, 0))
    wheel = joint or ls.JointRevolute((0, 1, 0))
    robot.add_link("wheel", ls.RigidBody(1.0, inertia=(1e-2, 1e-2, 1e-2)), wheel)
    robot.add_link("rack", ls.RigidBody(0.5), ls.JointPrismatic((1, 0, 0)))
    robot.add_coupling("cam", ["rack", "wheel"], [1.0, function], **options)
    return robot.build()


def numbers(model, x):
    """f and its first three derivatives at the angle x, from the residual and its derivatives."""
    q, v = np.array([x, 0.0]), np.array([1.0, 0.0])
    d = ls.constraint_derivatives(model, q, v, np.zeros(2))
    return ls.loop_residual(model, q)[0], d.residual_q[0, 0], d.velocity_q[0, 0], d.acceleration_q[0, 0]


@pytest.mark.parametrize("text", TEXTS)
def test_expressions_are_exact_at_any_value(text):
    """Values and three derivatives equal SymPy's far beyond two turns, to rounding."""
    model, q = cam(ls.Expression(text, "q")), sympy.Symbol("q")
    names = {"arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan}
    f = sympy.sympify(text, locals={"q": q, **names})
    for x in VALUES:
        want = [float(sympy.diff(f, q, k).subs(q, sympy.Float(x, 30)).evalf(25)) for k in range(4)]
        np.testing.assert_allclose(numbers(model, x), want, rtol=1e-12, atol=1e-13 * max(map(abs, want)), err_msg=text)


@pytest.mark.parametrize("function", [ls.Expression("-0.02*sin(q)", "q"), lambda q: -0.02 * np.sin(q)])
def test_a_cam_turns_many_times(function):
    """The rack of a cam stays at 0.02 sin φ over 5 turns, and the energy of wheel and rack is kept."""
    model = cam(function)
    motion = ls.simulate(model, 5.0, v0=[6.0, 0.12], rtol=1e-9, atol=1e-12)
    angle, x = motion.q.T
    assert angle[-1] > 28.0
    np.testing.assert_allclose(x, 0.02 * np.sin(angle), rtol=0, atol=1e-11)
    energy = ls.energy(model, motion.q, motion.v).kinetic
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    q = ls.assemble(model, [20.0, 0.0], fixed=["wheel"])
    assert q[1] == pytest.approx(0.02 * np.sin(20.0), abs=1e-12)


def test_python_functions_that_rise_by_a_turn_are_periodic():
    """A crank's angle plus a wobble, f(q + 2π) = f(q) + c, has no ends; its derivatives neither."""
    model = cam(lambda q: 0.3 * q + 0.1 * np.cos(q))
    for x in (-300.0, 2.0, 1000.0):
        want = 0.3 * x + 0.1 * np.cos(x), 0.3 - 0.1 * np.sin(x), -0.1 * np.cos(x), 0.1 * np.sin(x)
        for found, exact, error in zip(numbers(model, x), want, (1e-11, 1e-11, 1e-9, 1e-7)):
            assert found == pytest.approx(exact, rel=0, abs=error)


CASES = {
    "a Python function": (lambda q: -0.02 * np.sin(q / 3.0), {}, 4 * np.pi),
    "a span": (lambda q: -0.02 * np.sin(q), {"span": (-1.0, 2.0)}, 2.0),
    "a table": (ls.Tabulated(np.linspace(-1, 3, 30), -0.02 * np.sin(np.linspace(-1, 3, 30))), {}, 3.0),
    "corners": (ls.Expression("-0.01*abs(q + 2)*(1 + q)", "q"), {"span": (-1.5, 1.0)}, 1.0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["esdirk", "generalized_alpha", "bdf", "dop853"])
def test_motions_stop_where_a_function_ends(name, method):
    """No step goes beyond the span; the error names coupling, joint, value and span."""
    function, options, end = CASES[name]
    model = cam(function, **options)
    f = model.joint_couplings.functions[1]
    slope = (float(f(1e-6)) - float(f(-1e-6))) / 2e-6
    start = ls.assemble(model, [0.0, 0.0], fixed=["wheel"])
    text = rf"joint 'wheel' of coupling 'cam' is at .*an end of the span \[.*, {end:.6g}\]"
    with pytest.raises(ls.ConvergenceError, match=text) as caught:
        ls.simulate(model, 5.0, start, [6.0, -slope * 6.0], method=method, dt=1e-3 if method[0] == "g" else None)
    reached = caught.value.partial.q[:, 0]
    assert 0.9 * end < reached.max() < end + 1e-7


def test_calls_beyond_the_span_are_refused():
    """Functions of states, statics, rollouts and steppers name the end of the function too."""
    model = cam(lambda q: -0.02 * np.sin(q), span=(-1.0, 2.0))
    text = r"joint 'wheel' of coupling 'cam' is at 2\.5, at or beyond an end of the span \[-1, 2\]"
    q = np.array([2.5, 0.02])
    for call in (
        lambda: ls.forward_dynamics(model, q, np.zeros(2)),
        lambda: ls.loop_residual(model, q),
        lambda: ls.constraint_derivatives(model, q, np.zeros(2), np.zeros(2)),
        lambda: ls.loop_residual(model, np.array([[0.0, 0.0], q])),
        lambda: ls.assemble(model, q, fixed=["wheel"]),
        lambda: ls.simulate(model, 0.1, q),
        lambda: ls.Stepper(model, 1e-3, q0=q),
        lambda: ls.rollout(model, q, dt=1e-3, steps=2),
    ):
        with pytest.raises(ls.ShapeError, match=text):
            call()
    start = ls.assemble(model, [1.9, 0.0], fixed=["wheel"])
    with pytest.raises(ls.ConvergenceError, match="an end of the span"):
        ls.rollout(model, start, ls.assemble_velocities(model, start, [6.0, 0.0]), dt=1e-2, steps=10)


def test_stops_give_way_within_the_span():
    """Between two stops the span reaches a quarter of their range farther on both sides."""
    stops = ls.JointRevolute((0, 1, 0), limits=(0.0, 2.0), limit_stiffness=10.0)
    model = cam(lambda q: -0.02 * np.sin(q / 3.0), stops)
    assert [model.joint_couplings.low[1], model.joint_couplings.high[1]] == [-0.5, 2.5]
    assert model.joint_couplings.spans("cam") == [("wheel", -0.5, 2.5)]
    narrow = cam(lambda q: -0.02 * np.sqrt(q + 0.2), stops)  # it has no values beyond
    assert [narrow.joint_couplings.low[1], narrow.joint_couplings.high[1]] == [0.0, 2.0]


def test_an_expression_without_a_value_stops_the_motion():
    """The square root of a negative number is named."""
    model = cam(ls.Expression("-sqrt(q)", "q"), span=(0.5, 2.0))
    start = ls.assemble(model, [1.0, 1.0], fixed=["wheel"])
    with pytest.raises(ls.ShapeError, match=r"joint 'wheel' of coupling 'cam' is not finite at -0\.5"):
        ls.forward_dynamics(model, [-0.5, 0.0], np.zeros(2))
    with pytest.raises(ls.ModelError, match=r"ratio of joint 'wheel': must be finite between -12\.5664 and 12\.5664"):
        cam(ls.Expression("-sqrt(q)", "q"))
    assert ls.simulate(model, 0.1, start).q[-1, 0] == pytest.approx(1.0)
