"""Controllers with a state of their own: against closed forms, by every method, continuous and sampled.

A mass m on a slide under a constant force is held at r by a PI law whose velocity passes a filter:

    m x'' = u + F,   u = kp (r − x) + ki z₀ − kd z₁,   z₀' = r − x,   z₁' = (x' − z₁)/τ                    (1)

which is linear: its motion is a matrix exponential.
"""

import numpy as np
import pytest
from dynamics.small_robots import mixed, pendulum
from sampling import halved
from scipy.linalg import expm

import lissom as ls
from lissom.simulation.inputs import control_law
from lissom.simulation.simulate import METHODS
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.state import StateDerivative

MASS, FORCE, GOAL, KP, KI, KD, TAU = 2.0, 3.0, 0.5, 40.0, 25.0, 12.0, 0.05
STEPPED = ("generalized_alpha", "newmark", "hht", "implicit_euler", "bathe")
START = np.array([0.1, -0.3, 0.2, 0.4])  # x, x', z₀, z₁
A = np.array([[0, 1, 0, 0, 0], [-KP / MASS, 0, KI / MASS, -KD / MASS, (FORCE + KP * GOAL) / MASS],
              [-1, 0, 0, 0, GOAL], [0, 1 / TAU, 0, -1 / TAU, 0], [0, 0, 0, 0, 0]])  # fmt: skip


def slide():
    """The mass, its motor and the constant force."""
    robot = ls.Robot("slide", gravity=(0, 0, 0))
    robot.add_link("mass", ls.RigidBody(MASS), ls.JointPrismatic((1, 0, 0)))
    robot.add_joint_actuator("motor", "mass")
    robot.add_point_load("push", "mass", force=(FORCE, 0, 0))
    return robot.build()


def law():
    """(1)."""
    return ls.Controller(
        lambda t, q, v, z: KP * (GOAL - q) + KI * z[:1] - KD * z[1:],
        lambda t, q, v, z: [GOAL - q[0], (v[0] - z[1]) / TAU],
        START[2:],
    )


def exact(times):
    """x, x', z₀, z₁ at times, shape (n, 4)."""
    return np.array([(expm(A * t) @ [*START, 1.0])[:4] for t in times])


def followed(method, dt=None, duration=1.0, **options):
    """Times and (x, x', z₀, z₁) of a simulation."""
    motion = ls.simulate(slide(), duration, START[:1], START[1:2], method=method, dt=dt, controller=law(), **options)
    return motion.t, np.hstack([motion.q, motion.v, motion.z])


@pytest.mark.parametrize("method", ["bdf", "radau", "dop853"])
def test_pi_control_by_adaptive_methods(method):
    """z is integrated with q and v: the motion is that of (1), on the method's own steps and at times between them.

    Errors are a few hundred times rtol of the largest component.
    """
    for wanted in (None, np.linspace(0, 1, 11)):
        t, found = followed(method, t_eval=wanted, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found, exact(t), atol=3e-6)
    assert np.ptp(found, axis=0).min() > 0.1


@pytest.mark.parametrize(
    "method, order", [("generalized_alpha", 2), ("newmark", 2), ("hht", 2), ("implicit_euler", 1), ("bathe", 2)]
)
def test_pi_control_by_implicit_steps(method, order):
    """Implicit steps keep their order in all components, z included: errors fall as h to that power."""
    sizes = np.array([0.02, 0.01, 0.005]) / 4
    errors = []
    for dt in sizes:
        t, found = followed(method, dt, duration=0.5)
        errors.append(np.abs(found - exact(t)).max(axis=0))
    orders = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    np.testing.assert_allclose(orders, order, atol=0.15)
    assert np.max(errors[-1]) < (3e-4 if order == 2 else 3e-2)


def test_adaptive_implicit_steps():
    """Steps that the error estimate chooses, and those it refuses, carry z along: the motion is that of (1)."""
    t, found = followed("generalized_alpha", rtol=1e-6, atol=1e-8)
    assert np.ptp(np.diff(t)) > 0.1 * np.diff(t).max()
    np.testing.assert_allclose(found, exact(t), atol=1e-3)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_sampled_pi_law_is_its_recursion(method):
    """With a period z moves once a sample, after the output: between samples the motion is exact for a constant u.

    z and u of a row at a sample are still those before it, those of the first row are the first sample's.
    """
    period, n = 0.05, 12
    model, c = slide(), law()
    dt = period / 5 if method in STEPPED else None
    times = np.arange(n + 1) * period
    motion = ls.simulate(model, times[-1], START[:1], START[1:2], method=method, dt=dt, controller=c, period=period,
                         t_eval=times, rtol=1e-10, atol=1e-12)  # fmt: skip
    x, z, rows = START[:2].copy(), START[2:].copy(), []
    step = expm(period * np.array([[0, 1, 0], [0, 0, 1 / MASS], [0, 0, 0]]))
    for t in times[:-1]:
        u = c.output(t, x[:1], x[1:], z)
        if not rows:
            rows.append([*x, *z, *u])
        new = (step @ [*x, u[0] + FORCE])[:2]
        rows.append([*new, *z, *u])
        z = z + period * np.array(c.rate(t, x[:1], x[1:], z))
        x = new
    found = np.hstack([motion.q, motion.v, motion.z, motion.u])
    loose = 2e-2 if method == "implicit_euler" else 1e-8  # Euler's position is of first order under a constant force
    np.testing.assert_allclose(found, rows, atol=loose * np.abs(rows).max())


@pytest.mark.parametrize("period", [None, 0.02])
@pytest.mark.parametrize("method", ["bdf", "generalized_alpha"])
def test_a_controller_without_a_state_is_the_plain_function(method, period):
    """Controller(output) gives the motion of the function of (t, q, v), to the last bit, and has no columns z."""
    options = {"method": method, "dt": 0.01, "period": period}
    plain = ls.simulate(pendulum(), 0.2, [0.4], controller=lambda t, q, v: -2 * q - v, **options)
    own = ls.simulate(pendulum(), 0.2, [0.4], controller=ls.Controller(lambda t, q, v, z: -2 * q - v), **options)
    assert np.array_equal(plain.q, own.q) and np.array_equal(plain.u, own.u)
    assert plain.z.shape == own.z.shape == (len(own.t), 0)


@pytest.mark.parametrize("method", ["newmark", "generalized_alpha"])
def test_refused_steps_leave_no_trace(method, monkeypatch):
    """dz/dt = 1 + z² has no solution over long steps near its end, which are refused and cut: z is tan t none the less.

    Up to there z is the root of the trapezoidal rule, a quadratic. A step that is refused leaves z as it was, and the
    next one gives the result that it would have given in its place.
    """
    c = ls.Controller(lambda t, q, v, z: 0.1 * z, lambda t, q, v, z: 1 + z**2, [0.0])
    refused, step = [], ImplicitSteps.step

    def counted(self, s, h):
        before = s.z.copy()
        new = step(self, s, h)
        assert np.array_equal(s.z, before)
        refused.append(new is None)
        return new

    monkeypatch.setattr(ImplicitSteps, "step", counted)
    motion = ls.simulate(slide(), 1.5, controller=c, method=method, dt=0.05)
    assert any(refused)
    h, roots = 0.05, [0.0]
    for _ in motion.t[1:]:
        part = 1 - 2 * h * (roots[-1] + h / 2 * (2 + roots[-1] ** 2))
        if part < 0:
            break
        roots.append((1 - np.sqrt(part)) / h)
    assert 20 < len(roots) < len(motion.t)
    np.testing.assert_allclose(motion.z[: len(roots), 0], roots, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(np.arctan(motion.z[:, 0]), motion.t, atol=0.02)  # the rule's error, as a shift of time
    monkeypatch.undo()
    model = slide()
    steppers = [ImplicitSteps(model, StateDerivative(model, control_law(model, None, c, None)), ls.newmark(), 1e-8,
                              (1e-10, 1e-10), True) for _ in range(2)]  # fmt: skip
    ends = []
    for k, stepper in enumerate(steppers):
        here = stepper.start(np.zeros(1), np.zeros(1), np.array([9.0]), None)
        if k == 0:
            assert stepper.step(here, 0.2) is None
        ends.append(stepper.step(here, 0.01))
    np.testing.assert_allclose(ends[0].z, ends[1].z, rtol=1e-12)
    np.testing.assert_allclose(ends[0].q, ends[1].q, rtol=1e-7)
    np.testing.assert_allclose(ends[1].z, np.tan(np.arctan(9.0) + 0.01), rtol=1e-3)


def test_a_robot_with_quaternions():
    """The integral of the angular momentum in the world grows by L t when nothing acts; all methods agree on it."""
    robot = ls.Robot("top", gravity=(0, 0, 0))
    moments = np.array([1.0, 2.0, 2.5])
    robot.add_link("top", ls.RigidBody(1.0, (0, 0, 0), moments), ls.JointFree())
    robot.add_wrench_input("jets", "top")
    model = robot.build()

    def momentum(t, q, v, z):
        return ls.frame_pose(model, q, "top")[:3, :3] @ (moments * v[:3])

    c, v0 = ls.Controller(lambda t, q, v, z: np.zeros(6), momentum, np.zeros(3)), np.array([2.0, 0.2, -1.0, 0, 0, 0])
    for method, dt in (("bdf", None), ("radau", None), ("generalized_alpha", 2e-3)):
        z = ls.simulate(model, 1.0, v0=v0, controller=c, method=method, dt=dt, t_eval=[1.0], rtol=1e-8).z
        np.testing.assert_allclose(z[-1], moments * v0[:3], atol=1e-4)


def test_batches():
    """Each motion of a batch has its own z, from the same start; a batch equals its members."""
    starts, times = np.array([[0.1], [0.4], [-0.2]]), np.linspace(0, 0.3, 4)
    many = ls.simulate(slide(), 0.3, starts, controller=law(), t_eval=times)
    assert many.z.shape == (3, 4, 2)
    for k in range(3):
        one = ls.simulate(slide(), 0.3, starts[k], controller=law(), t_eval=times)
        assert np.array_equal(many.z[k], one.z)
    none = ls.simulate(slide(), 0.3, np.zeros((0, 1)), controller=law(), t_eval=times)
    assert none.z.shape == (0, 4, 2)


@pytest.mark.parametrize("method", ["bdf", "generalized_alpha"])
def test_a_motion_that_stops_carries_z(method):
    """The partial result of a ConvergenceError holds z up to there: dv/dt = v²/m leaves every bound."""
    c = ls.Controller(lambda t, q, v, z: v**2, lambda t, q, v, z: v, [1.0])
    robot = ls.Robot("runaway", gravity=(0, 0, 0))
    robot.add_link("mass", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0)))
    robot.add_joint_actuator("motor", "mass")
    with pytest.raises(ls.ConvergenceError) as caught:
        ls.simulate(robot.build(), 2.0, v0=[1.0], controller=c, method=method, dt=0.01)
    partial = caught.value.partial
    assert partial.z.shape == (len(partial.t), 1) and len(partial.t) > 10
    early = partial.t < 0.8
    np.testing.assert_allclose(partial.z[early, 0] - 1.0, -np.log(1 - partial.t[early]), atol=2e-3)


@pytest.mark.parametrize("period", [None, 0.01])
@pytest.mark.parametrize("method", ["bdf", "generalized_alpha"])
def test_a_controller_cannot_spoil_the_motion(method, period):
    """Writing to the q, v and z that output and rate are given changes nothing: they are their own."""

    def spoilt(function):
        def call(t, q, v, z):
            out = np.array(function(t, q, v, z))
            q[:], v[:], z[:] = 7.0, 7.0, 7.0
            return out

        return call

    good = law()
    bad = ls.Controller(spoilt(good.output), spoilt(good.rate), good.start)
    options = {"method": method, "dt": 0.01, "period": period}
    one, other = (ls.simulate(slide(), 0.1, START[:1], controller=c, **options) for c in (good, bad))
    assert np.array_equal(one.q, other.q) and np.array_equal(one.z, other.z)


def test_nothing_moves():
    """A robot without coordinates has no state but z, which is followed all the same where steps are given."""
    robot = ls.Robot("post")
    robot.add_link("post", ls.RigidBody(1.0))
    c = ls.Controller(lambda t, q, v, z: np.zeros(0), lambda t, q, v, z: -z, [1.0])
    motion = ls.simulate(robot.build(), 1.0, controller=c)
    np.testing.assert_allclose(motion.z[-1], np.exp(-1.0), rtol=1e-5)


def output(t, q, v, z):
    """A good output of the slide."""
    return [0.0]


def rate(t, q, v, z):
    """A good rate of one state."""
    return [0.0]


WRONG_CONTROLLERS = {
    "output none": ((3.0,), "controller: output: must be a function of (t, q, v, z) (got 3.0)"),
    "rate none": ((output, 2.0, [1.0]), "controller: rate: must be a function of (t, q, v, z) (got 2.0)"),
    "rate alone": ((output, rate), "controller: rate: needs a start (got no start)"),
    "start alone": ((output, None, [0.0]), "controller: start: needs a rate (got no rate)"),
    "start text": ((output, rate, "zero"), "controller: start: expected shape (nz,), got 'zero'"),
    "start matrix": ((output, rate, np.eye(2)), "controller: start: expected shape (nz,), got (2, 2)"),
    "start nan": ((output, rate, [np.nan]), "controller: start: must be finite, got NaN or infinity"),
    "derivatives none": (
        (output, None, None, 2.0),
        "controller: derivatives: must be a function of (t, q, v, z) (got 2.0)",
    ),
    "derivatives and rate": (
        (output, rate, [0.0], output),
        f"controller: derivatives: need a law without a state (got the rate {rate!r})",
    ),
}
WRONG_VALUES = {
    "output of two": ((lambda t, q, v, z: [1.0, 2.0], rate, [0.0]), "controller: output at t=0: expected shape (1,)"),
    "output nan": ((lambda t, q, v, z: [np.nan], rate, [0.0]), "controller: output at t=0: must be finite"),
    "rate of two": ((output, lambda t, q, v, z: [1.0, 2.0], [0.0]), "controller: rate at t=0: expected shape (1,)"),
    "rate text": ((output, lambda t, q, v, z: "no", [0.0]), "controller: rate at t=0: expected shape (1,), got 'no'"),
    "rate inf": ((output, lambda t, q, v, z: [np.inf], [0.0]), "controller: rate at t=0: must be finite"),
}


@pytest.mark.parametrize("case", WRONG_CONTROLLERS)
def test_wrong_controllers(case):
    """Every wrong argument of a Controller is refused when it is made, with its name, the rule and the value."""
    arguments, message = WRONG_CONTROLLERS[case]
    with pytest.raises((ls.ModelError, ls.ShapeError)) as caught:
        ls.Controller(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("case", WRONG_VALUES)
@pytest.mark.parametrize("method", ["bdf", "radau", "generalized_alpha"])
@pytest.mark.parametrize("period", [None, 0.01])
def test_wrong_values(case, method, period):
    """What output and rate return is checked at each call, by every method, continuous and sampled."""
    arguments, message = WRONG_VALUES[case]
    with pytest.raises(ls.ShapeError) as caught:
        ls.simulate(slide(), 0.1, controller=ls.Controller(*arguments), method=method, period=period, dt=0.01)
    assert message in str(caught.value)


@pytest.mark.parametrize("gain", [1e3, 1e5, 1e7])
def test_a_law_that_stiffens_at_once(gain):
    """Derivatives of a law are kept from step to step; where they are of no use any more, new ones save the step.

    u = −k x with k from 10 N/m to `gain` at 0.25 s: all steps are of the size asked for, none is cut, and the equation
    of motion holds at the end of each.
    """

    def stiffness(t):
        return 10.0 if t < 0.245 else gain

    options = {"method": "generalized_alpha", "dt": 0.01, "rtol": 1e-9, "atol": 1e-11}
    motion = ls.simulate(slide(), 0.5, [0.1], controller=lambda t, q, v: -stiffness(t) * q, **options)
    assert motion.statistics.steps == 50
    k = int(np.argmin(np.abs(motion.t - 0.24)))
    force = motion.u[k + 1 :, 0] + FORCE
    np.testing.assert_allclose(MASS * motion.a[k + 1 :, 0], force, atol=1e-6 * np.abs(force).max())
    assert np.abs(motion.q[k:]).max() < 0.2


def test_methods_agree_on_a_hybrid_robot():
    """A nonlinear rate that feeds on q, v and z drives a robot of rods and quaternions the same way by all methods."""
    model = mixed()
    c = ls.Controller(
        lambda t, q, v, z: 0.2 * np.tanh(z[0]) * np.ones(model.nu),
        lambda t, q, v, z: [np.sin(3 * t) - z[0] ** 3 + q[5] + z[1], -5 * z[1] + v[0]],
        [0.3, -0.1],
    )
    motions = [ls.simulate(model, 0.05, controller=c, method=method, dt=dt, t_eval=[0.05], rtol=1e-8, atol=1e-10)
               for method, dt in (("bdf", None), ("radau", None), ("generalized_alpha", 2e-4))]  # fmt: skip
    for motion in motions[1:]:
        np.testing.assert_allclose(motion.z[-1], motions[0].z[-1], atol=1e-5)
        np.testing.assert_allclose(motion.q[-1], motions[0].q[-1], atol=1e-4 * np.abs(motions[0].q[-1]).max())


def soft_arm():
    """An arm of 0.4 m on three tendons, each of which can bend it beyond what an interval of its rod may turn."""
    robot = ls.Robot("arm")
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=2e3)
    basis = ls.BasisLegendre(bending_y=2, bending_z=2)
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.01), basis, material, gauss_points=5))
    for k, angle in enumerate(2 * np.pi * np.arange(3) / 3):
        y, z = 0.02 * np.cos(angle), 0.02 * np.sin(angle)
        robot.add_tendon(f"t{k}", "rod", offset=lambda s, y=y, z=z: (y, z))
    return robot.build()


@pytest.mark.filterwarnings("ignore::lissom.AccuracyWarning")  # tendons that push
def test_a_law_at_states_that_the_iteration_leaves():
    """A stiff law by steps of 20 ms, whose iteration meets rods that turn too far: steps are cut, as they are where the
    law itself says nothing of such states, to the same motion bit by bit."""
    model = soft_arm()
    goal = ls.solve_statics(model, [3.0, 0.0, 1.0]).q
    law = ls.pd_compensation(model, goal, proportional=1e3, derivative=20.0)
    refused = []

    def silent(t, q, v, z):
        try:
            return law.output(t, q, v, z)
        except ls.ShapeError:
            refused.append(t)
            return np.full(model.nu, 1e9)

    motion = ls.simulate(model, 0.1, controller=law, dt=0.02)
    other = ls.simulate(model, 0.1, controller=ls.Controller(silent), dt=0.02)
    assert refused and motion.statistics.steps > 5
    np.testing.assert_array_equal(motion.q, other.q)


@pytest.mark.parametrize(
    ("method", "own"), halved(("generalized_alpha", "esdirk", "bdf", "radau", "dop853"), (False, True))
)
def test_a_law_that_leads_out_of_all_states(method, own):
    """A pull that turns a rod too far ends the run with what there is, by every method; an error of the law's own at a
    state that the robot can have goes on as it is."""
    model = soft_arm()

    def law(t, q, v):
        ls.frame_pose(model, q, "rod")
        return [200.0, 0.0, 0.0 / (0.0 if own and t > 0.005 else 1.0)]

    dt = 0.005 if method == "generalized_alpha" else None
    kind, text = (ZeroDivisionError, "by zero") if own else (ls.ConvergenceError, "stopped at t=")
    with pytest.raises(kind, match=text) as met:
        ls.simulate(model, 0.1, controller=law, method=method, dt=dt, rtol=1e-4, atol=1e-6)
    if not own:
        assert 0.0 < met.value.partial.t[-1] < 0.1
