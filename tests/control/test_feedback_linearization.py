"""Partial feedback linearisation: errors decay as the gains say, whatever the rest of the robot does."""

import numpy as np
import pytest
from control.controlled_robots import describe_routed, routed, some_state, tipped
from dynamics.small_robots import looped
from scipy.linalg import null_space

import lissom as ls
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives

SLOW, FAST = 5.0, 20.0  # decay rates of the error [1/s]
GAINS = {"proportional": SLOW * FAST, "derivative": SLOW + FAST}


def decay(t, e, rate):
    """The error from a start (e, rate) as ë + (a + b) ė + a b e = 0 says, shape (n, nu)."""
    slow, fast = np.exp(-SLOW * t)[:, None], np.exp(-FAST * t)[:, None]
    return (FAST * slow - SLOW * fast) / (FAST - SLOW) * e + (slow - fast) / (FAST - SLOW) * rate


def cosine(complete=True):
    """Both motors along cos t, as in the source."""
    parts = {"velocity": lambda t: [-np.sin(t)] * 2, "acceleration": lambda t: [-np.cos(t)] * 2}
    return ls.partial_feedback_linearization(tipped(), lambda t: [np.cos(t)] * 2, complete=complete, **parts, **GAINS)


def tracked(complete):
    """Times and errors of the motors of a robot whose soft tip is passive and starts bent."""
    run = ls.simulate(tipped(), 2.0, [0, 0, 1, -1], controller=cosine(complete), method="bdf", rtol=1e-8, atol=1e-9)
    return run.t, np.cos(run.t)[:, None] - run.q[:, :2]


def test_complete_law_decays_as_the_gains_say():
    """The errors of the motors are those of a linear equation, to the tolerance of the integration, and decay at the
    rate of its slower root."""
    t, e = tracked(True)
    np.testing.assert_allclose(e, decay(t, e[0], np.zeros(2)), atol=2e-7)
    late = (t > 0.6) & (t < 1.6)
    rates = -np.polyfit(t[late], np.log(np.abs(e[late])), 1)[0]
    np.testing.assert_allclose(rates, SLOW, rtol=1e-2)


def test_incomplete_law_does_not_converge():
    """Without the coupling, the passive tip drives the errors on: they stay a thousand times larger."""
    (t, left_out), (_, complete) = tracked(False), tracked(True)
    assert np.abs(left_out[t > 1.8]).max() > 1e-2 and np.abs(left_out).max() < 2.0
    assert np.abs(complete[-1]).max() < 1e-4


def test_error_of_the_incomplete_law():
    """ë + K_D ė + K_P e = M_aa⁻¹ M_au a_u at a random state, as the documentation states for the error."""
    model, law = tipped(), cosine(False)
    q, v = some_state(model, 6)
    a = ls.forward_dynamics(model, q, v, law.output(0.3, q, v, ()))
    M = ls.mass_matrix(model, q)
    left = -np.cos(0.3) - a[:2] + (SLOW + FAST) * (-np.sin(0.3) - v[:2]) + SLOW * FAST * (np.cos(0.3) - q[:2])
    np.testing.assert_allclose(left, np.linalg.solve(M[:2, :2], M[:2, 2:] @ a[2:]), rtol=1e-8)
    assert np.abs(left).min() > 0.1


@pytest.mark.filterwarnings("ignore:tendon:lissom.AccuracyWarning")
def test_tendon_lengths_follow_their_reference():
    """With B(q), the lengths of three tendons that drive six coordinates obey the linear equation to the tolerance of
    the integration; without Ḃᵀv they would be off by far more."""
    model = routed()

    def y(t):
        return 0.004 * np.sin(3 * t + np.arange(3))

    law = ls.partial_feedback_linearization(model, y, **GAINS)
    run = ls.simulate(model, 0.8, some_state(model, 7)[0], controller=law, method="bdf", rtol=1e-8, atol=1e-10)
    e = np.array([y(t) for t in run.t]) - ls.actuation_coordinates(model, run.q)
    assert np.abs(e[0]).max() > 2e-3
    np.testing.assert_allclose(e, decay(run.t, e[0], 0.012 * np.cos(np.arange(3))), atol=1e-8)


def test_law_of_the_source_in_decoupling_coordinates():
    """u is the law of the source, Schur complement and all, in θ = (y, z) for a z = N q chosen at random."""
    model, w, rng = routed(), np.array([0.3, -0.2, 0.5]), np.random.default_rng(8)
    q, v = some_state(model, 8)
    y = ls.actuation_coordinates(model, q)
    B, h = ls.actuation_matrix(model, q), ls.inverse_dynamics(model, q, v, np.zeros(model.nv))
    N = null_space(B.T) + B @ rng.normal(size=(3, 3)) / np.linalg.norm(B)
    T = np.linalg.inv(np.hstack([B, N]).T)  # ∂q/∂θ
    step = 1e-5
    turned = [ls.actuation_matrix(model, q + sign * step * v) for sign in (1, -1)]
    curving = (turned[0] - turned[1]).T @ v / (2 * step)
    M = T.T @ ls.mass_matrix(model, q) @ T
    bias = T.T @ h - M @ np.concatenate([curving, np.zeros(3)])  # a = T (θ̈ − (Ḃᵀv, 0))
    coupling = M[:3, 3:] @ np.linalg.inv(M[3:, 3:])
    expected = (M[:3, :3] - coupling @ M[3:, :3]) @ w + bias[:3] - coupling @ bias[3:]
    law = ls.partial_feedback_linearization(
        model, lambda t: y, velocity=lambda t: B.T @ v, acceleration=lambda t: w, proportional=1.0, derivative=1.0
    )
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(expected, w, rtol=0.5)
    np.testing.assert_allclose(law.output(0.0, q, v, ()), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:tendon:lissom.AccuracyWarning")
def test_robots_with_loops():
    """Where loops are closed, the tendon shortens as the law wants, by forward dynamics with the loops."""
    model = looped()
    q = ls.assemble(model)
    slide = null_space(ls.constraint_jacobian(model, q))
    v = 0.1 * slide @ np.arange(1, slide.shape[1] + 1)
    law = ls.partial_feedback_linearization(model, 0.004, **GAINS)
    a = ls.forward_dynamics(model, q, v, law.output(0.0, q, v, ()))
    y, rate, h = ls.actuation_coordinates(model, q), ls.actuation_matrix(model, q).T @ v, 1e-4
    found = ls.actuation_matrix(model, q).T @ a
    turned = [ls.actuation_matrix(model, ls.integrate(model, q, sign * h * v)) for sign in (1, -1)]
    found += (turned[0] - turned[1]).T @ v / (2 * h)
    expected = GAINS["proportional"] * (0.004 - y) - GAINS["derivative"] * rate
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_sampled_law():
    """Held between samples, the law still tracks; its error falls with the period."""
    ends = []
    for period in (0.02, 0.01):
        run = ls.simulate(tipped(), 1.6, [1, 1, 0, 0], controller=cosine(), period=period,
                          method="generalized_alpha", dt=0.005)  # fmt: skip
        ends.append(np.abs(np.cos(run.t[-60:, None]) - run.q[-60:, :2]).max())
    assert ends[0] < 0.05 and ends[1] < 0.7 * ends[0]


def test_inputs_that_move_the_robot_alike():
    """Two tendons along one path make the decoupling matrix singular: the error names them and the eigenvalue."""
    robot = describe_routed()
    robot.add_tendon("twin", path=robot.actuators["tendon 0"].path)
    model = robot.build()
    law = ls.partial_feedback_linearization(model, np.zeros(4), **GAINS)
    words = r"decoupling matrix.*'tendon 0', 'twin' move the robot alike \(got the least eigenvalue"
    with pytest.raises(ls.ModelError, match=words):
        law.output(0.0, model.neutral(), np.zeros(model.nv), ())


def test_more_inputs_than_coordinates():
    """Seven tendons on six coordinates are refused with both numbers."""
    robot = describe_routed()
    for k in range(4):
        robot.add_tendon(f"more {k}", "rod 0", (0.001 * k, 0.01))
    with pytest.raises(ls.ModelError, match=r"inputs: must be at most as many as the 6 coordinates \(got 7\)"):
        ls.partial_feedback_linearization(robot.build(), np.zeros(7), **GAINS)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"proportional": 0.0}, "proportional: must be symmetric positive definite"),
        ({"derivative": [1.0, 2.0]}, "derivative: must have shape"),
        ({"derivative": [1.0, -2.0, 1.0]}, "derivative: must be symmetric positive definite"),
        ({"y": [0.0, 0.0]}, r"reference: position: must be finite, of shape \(3,\)"),
        ({"y": lambda t: [0.0, 0.0, 0.0], "velocity": 1.0}, "reference: velocity: must be a function of t"),
        ({"acceleration": lambda t: [0.0] * 3}, "y: must be a function of t if its rates are given"),
        ({"complete": False}, r"inputs: must be as many as the actuated coordinates, 6 \(got 3\)"),
        ({"coordinates": 1.0}, "coordinates: must be a function of q"),
    ],
)
def test_wrong_arguments(changed, words):
    """Wrong arguments raise errors when the law is made."""
    arguments = {"y": np.zeros(3), **GAINS} | changed
    with pytest.raises(ls.ModelError, match=words):
        ls.partial_feedback_linearization(routed(), **arguments)


def test_elastic_tendons_are_refused():
    """The force of an elastic tendon is not linear in its input."""
    robot = describe_routed()
    robot.add_tendon("rubber", "rod 0", (0, 0.01), stiffness=50.0)
    with pytest.raises(ls.ModelError, match=r"'rubber': must be inelastic.*got stiffness 50"):
        ls.partial_feedback_linearization(robot.build(), np.zeros(4), **GAINS)


def test_answers_of_the_law():
    """∂u/∂q and ∂u/∂v against differences: exact for motors, whose B does not turn; for tendons close enough that
    Newton's method with them and with differences ends at the same motion."""
    model, law = tipped(), cosine()
    q, v = some_state(model, 3)
    assert law.derivatives is not None
    for found, which in zip(law.derivatives(0.3, q, v, ()), (0, 1)):
        rows = []
        for e in 1e-5 * np.eye(model.nv):
            ahead, behind = (law.output(0.3, *((q + k * e, v) if which == 0 else (q, v + k * e)), ()) for k in (1, -1))
            rows.append((ahead - behind) / 2e-5)
        np.testing.assert_allclose(found, np.array(rows).T, rtol=0, atol=1e-7 * np.abs(rows).max())
    pulled = ls.partial_feedback_linearization(routed(), [0.01, 0.0, -0.01], **GAINS)
    laws = pulled, ls.Controller(pulled.output)
    steps = {"method": "generalized_alpha", "dt": 5e-3, "rtol": 1e-9, "atol": 1e-12}
    known, differenced = (ls.simulate(routed(), 0.1, controller=law, **steps) for law in laws)
    np.testing.assert_allclose(known.q, differenced.q, rtol=0, atol=1e-9 * np.abs(differenced.q).max())


def test_derivatives_along_a_step():
    """From the matrix of a step at the law's own acceleration, ∂u/∂Δ is that of the derivatives by q and v."""
    model = routed()
    law = ls.partial_feedback_linearization(model, [0.01] * 3, **GAINS).output
    (q, v), c0, c1 = some_state(model, 3), 1e4, 200.0
    u = law(0.0, q, v, ())
    a = ls.forward_dynamics(model, q, v, u)
    dq, dv, da, _ = residual_derivatives(model, q, v, a, u, 0.0)
    B, found = law.along_step(0.0, q, v, dq + c1 * dv + c0 * da, c0, c1, lambda by_q: by_q)
    by_q, by_v = law.derivatives(0.0, q, v, ())
    np.testing.assert_allclose(B, ls.actuation_matrix(model, q), rtol=1e-13)
    np.testing.assert_allclose(found, by_q + c1 * by_v, rtol=0, atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("case", ["routed", "tipped"])
def test_steps_by_their_own_matrix(case):
    """A law that takes its derivatives from the matrix of the step gives the motion of one that is differenced."""
    model, start = {"routed": (routed(), None), "tipped": (tipped(), [0, 0, 1, -1])}[case]
    y = [0.01] * 3 if case == "routed" else lambda t: [np.cos(t)] * 2
    law = ls.partial_feedback_linearization(model, y, **GAINS)
    options = {"method": "generalized_alpha", "dt": 0.01, "rtol": 1e-10, "atol": 1e-12}
    ends = [ls.simulate(model, 0.3, start, controller=c, **options) for c in (law, ls.Controller(law.output))]
    np.testing.assert_allclose(ends[0].q, ends[1].q, rtol=0, atol=1e-8 * np.abs(ends[1].q).max())
    assert ends[0].statistics.evaluations < 1.5 * ends[1].statistics.evaluations
