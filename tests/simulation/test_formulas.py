"""Motions, loads, currents and inputs that are expressions: the kernel evaluates them at the times of its own steps."""

import numpy as np
import pytest
from simulation.driven_arms import describe_driven_arm, in_python, starts

import lissom as ls
from lissom.dynamics.loads import laws_of_time
from lissom.simulation import inputs
from lissom.simulation.batches import AdaptiveBatch
from lissom.stepping import step_kernel
from lissom.stepping.adaptive import AdaptiveKernelSteps
from lissom.stepping.step_kernel import driven_steps_kernel, implicit_steps_kernel
from lissom.stepping.step_rows import MOST_STAGES

TURN = ls.Expression("0.4*sin(7*t) + 0.1*t**2", "t")
PUSH = ls.Expression(["0.3*sin(9*t)", "maximum(0, 0.2 - t)", "-0.1"], "t")
FLOW = ls.Expression(["sin(5*t)", "0.2*t", "0"], "t")
PULL = ls.Expression(["3*sin(4*t)**2"], "t")
OPTIONS = {"t_eval": np.array([0.03, 0.1, 0.1001, 0.2]), "rtol": 1e-5, "atol": 1e-8}
FOUND = ("q", "v", "a", "u", "multipliers")


def arm(wrap, current=True):
    """The arm in water that flows, pulled by a tendon."""
    robot = describe_driven_arm(wrap(PUSH), wrap(FLOW) if current else None, position=wrap(TURN))
    robot.add_tendon("pull", "rod", (0.0, 0.005))
    return robot.build()


@pytest.fixture(scope="module")
def model():
    """The arm, whose laws are expressions."""
    return arm(lambda law: law)


def test_the_kernel_follows_them(model, monkeypatch):
    """The same motion as with functions in Python, for which steps are planned ahead; no step is planned here, and the
    prescribed coordinate is where Python says."""
    v0, plans, plan = starts(model)[0], [], AdaptiveKernelSteps._plan
    monkeypatch.setattr(AdaptiveKernelSteps, "_plan", lambda self, *args: plans.append(1) or plan(self, *args))
    found = ls.simulate(model, 0.2, v0=v0, u=PULL, **OPTIONS)
    assert not plans
    other = arm(in_python)
    assert laws_of_time(other) is None
    expected = ls.simulate(other, 0.2, v0=v0, u=in_python(PULL), **OPTIONS)
    assert plans and abs(found.statistics.steps - expected.statistics.steps) < 3
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-6 * np.abs(expected.q).max())
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.q[:, 0], [TURN(t) for t in OPTIONS["t_eval"]], rtol=0, atol=1e-15)


def test_the_kernel_reads_what_python_gives(model):
    """Loads, the current with its rate, positions, velocities, accelerations and inputs at the end of a run, as the
    kernel wrote them last, at the end of its last stage."""
    ls.simulate(model, 0.2, v0=starts(model)[0], u=PULL, **OPTIONS)
    keys = [key for key in model.cache if isinstance(key, tuple) and str(key[0]).startswith(step_kernel.STEPS_FAMILY)]
    host = next(x.host for key in keys for x in model.cache[key].buffers if x.host["counts"].any())
    t = host["times"][0, host["counts"][0, 0] - 1]
    assert t == 0.2
    own, (q, v, a) = (host["h"].shape[1] - 1) * MOST_STAGES, model.motions(t)
    load, held = host["load"][own], host["motion"][own]
    np.testing.assert_allclose(load[0, 3:], PUSH(t), rtol=1e-14)
    np.testing.assert_allclose(load[1], [np.sin(1.0), 0.2 * t, 0.0, 5.0 * np.cos(1.0), 0.2, 0.0], rtol=1e-14)
    np.testing.assert_allclose(load[2], [t, 0, 0, 0, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(held, np.concatenate([q, v, a]), rtol=1e-14)
    np.testing.assert_allclose(host["u"][0], PULL(t), rtol=1e-14)
    np.testing.assert_allclose(model.fluid.rows(t), load[-2:], rtol=1e-14)


@pytest.mark.parametrize("dt", [None, 0.01])
def test_batches(model, monkeypatch, dt):
    """Each motion is the same to the last bit as it is alone, with steps of its own and with steps of dt."""
    runs, run = [], AdaptiveBatch.run
    monkeypatch.setattr(AdaptiveBatch, "run", lambda self, advance: runs.append(run(self, advance)))
    v0 = starts(model)
    many = ls.simulate(model, 0.2, v0=v0, u=PULL, dt=dt, **OPTIONS)
    assert len(runs) == (dt is None) and "after the other" not in many.statistics.remark
    for k in range(len(v0)):
        alone = ls.simulate(model, 0.2, v0=v0[k], u=PULL, dt=dt, **OPTIONS)
        for name in FOUND:
            np.testing.assert_array_equal(getattr(many, name)[k], getattr(alone, name), (k, name))


def test_steps_of_a_size(model):
    """The same as with functions in Python, to rounding."""
    found = ls.simulate(model, 0.1, u=PULL, dt=0.01, t_eval=[0.05, 0.1])
    expected = ls.simulate(arm(in_python), 0.1, u=in_python(PULL), dt=0.01, t_eval=[0.05, 0.1])
    for name in FOUND:
        scale = np.abs(getattr(expected, name)).max()
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=1e-9 * scale)


def test_robots_without_them_have_another_kernel(model):
    """Which does not carry the machine, but where inputs of adaptive steps are formulas."""
    plain = arm(lambda law: (0.0, 0.0, 1.0) if law is not TURN else 0.3)
    assert step_kernel.steps_kernel(plain) is implicit_steps_kernel
    assert step_kernel.steps_kernel(plain, 5) is driven_steps_kernel is step_kernel.steps_kernel(model)


def test_corners_are_differenced_in_python():
    """A position with a corner has no rate that a kernel would know; loads may have corners."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointRevolute())
    robot.add_joint_motion("drive", "body", position=ls.Expression("abs(t - 1)", "t"))
    assert laws_of_time(robot.build()) is None


@pytest.mark.parametrize("which", ["motion", "load", "input"])
def test_what_is_not_finite_is_named(which):
    """Where the kernel finds no step because of it, alone and in a batch; the message says what, and when."""
    late = "sqrt(0.05 - t)"
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0, inertia=(0.1,) * 3), ls.JointRevolute((0, 0, 1)))
    robot.add_link("arm", ls.RigidBody(1.0, inertia=(0.1,) * 3), ls.JointRevolute((0, 0, 1)), parent="body")
    robot.add_joint_actuator("motor", "arm")
    robot.add_joint_motion("drive", "body", position=ls.Expression("t*" + (late if which == "motion" else "1"), "t"))
    force = [late if which == "load" else "0", "0", "t"]
    robot.add_point_load("push", "arm", force=ls.Expression(force, "t"))
    model, u = robot.build(), ls.Expression([late if which == "input" else "t"], "t")
    error, text = {"motion": (ls.ModelError, "motion"), "load": (ls.ModelError, "load 'push'"),
                   "input": (ls.ShapeError, "u at t=0")}[which]  # fmt: skip
    for v0 in (np.zeros(2), np.zeros((2, 2))):
        with pytest.raises(error, match=text):
            ls.simulate(model, 0.1, v0=v0, u=u, t_eval=[0.1])


def test_formulas_of_another_size(model):
    """Are refused as those of any function are."""
    with pytest.raises(ls.ShapeError, match="u at t=0"):
        ls.simulate(model, 0.1, u=ls.Expression(["t", "t"], "t"), t_eval=[0.1])
    assert inputs.Formulas.of(ls.Expression("t", "t"), 1) is None


def two_motors():
    """Two hinges with a motor each."""
    robot = ls.Robot("two")
    for k, name in enumerate("ab"):
        place = np.eye(4)
        place[0, 3] = 0.2 * k
        body = ls.RigidBody(1.0, com=(0.1, 0, 0), inertia=(0.1,) * 3)
        robot.add_link(name, body, ls.JointRevolute((0, 0, 1)), parent="a" if k else None, placement=place)
        robot.add_joint_actuator(f"motor {name}", name)
    return robot.build()


def test_a_list_of_formulas_and_numbers_is_one():
    """Inputs may be given one by one; they are those of one expression with all components."""
    model = two_motors()
    one = ls.Expression(["size*sin(9*t)", "0.5"], "t", {"size": 2.0})
    several = [ls.Expression("size*sin(9*t)", "t", {"size": 2.0}), 0.5]
    found, known = (ls.simulate(model, 0.2, u=u, t_eval=[0.1, 0.2]) for u in (several, one))
    np.testing.assert_array_equal(found.q, known.q)
    np.testing.assert_array_equal(found.u, known.u)


@pytest.mark.parametrize("second, message", [
    (ls.Expression("2*s", "s"), r"u > input 1: must be an expression of t \(got 's'\)"),
    (ls.Expression(["t"], "t"), r"u > input 1: must be one expression \(got \['t'\]\)"),
    (ls.Expression("k*t", "t", {"k": 2.0}), r"u > input 1: must have the number that 'k' has in .* 1 \(got 2.0\)"),
    ("t", r"u > input 1: must be a finite number"),
])  # fmt: skip
def test_wrong_entries_of_a_list_of_formulas(second, message):
    """The message names the input, the rule and the value."""
    with pytest.raises(ls.ModelError, match=message):
        ls.simulate(two_motors(), 0.1, u=[ls.Expression("k*t", "t", {"k": 1.0}), second])
