"""Derivatives of motions under feedback by its gains, against differences of the motions."""

import numpy as np
import pytest
from gradients.moving_robots import ROBOTS, differenced, start

import lissom as ls

STEPS, DT = 24, 4e-3


def law(model):
    """A nonlinear law of proportional and derivative gains on all coordinates, and its derivatives."""
    rng = np.random.default_rng(6)
    plain = np.flatnonzero(model.dofs.q >= 0)
    P = rng.normal(size=(model.nu, len(plain))) / model.dofs.scale[plain]
    D = rng.normal(size=(model.nu, model.nv)) / model.dofs.scale

    def output(t, q, v, gains):
        return 1.0 + t + np.sin(gains[0] * (P @ q[model.dofs.q[plain]])) + gains[1] * (D @ v)

    def derivatives(t, q, v, gains):
        e = P @ q[model.dofs.q[plain]]
        bend, by_q = np.cos(gains[0] * e), np.zeros((model.nu, model.nv))
        by_q[:, plain] = gains[0] * bend[:, None] * P
        return by_q, gains[1] * D, np.stack([e * bend, D @ v], axis=1)

    return output, derivatives


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["soft", "loop"])
def test_gains_and_starts(name):
    """Derivatives by each gain, q0 and v0 equal differences of motions in closed loop. Without feedback they equal
    those of the rollout."""
    model, gains = ROBOTS[name]().build(), np.array([0.3, 0.02])
    (q0, v0), (output, derivatives) = start(model), law(model)
    options = {"dt": DT, "steps": STEPS, "tolerance": 1e-12}  # with 1e-11 the differences are exact to 4e-7
    motion = ls.feedback_rollout(model, output, gains, q0, v0, **options)
    rng = np.random.default_rng(7)
    by_q, by_v = rng.normal(size=(2, STEPS + 1, model.nv)) / model.dofs.scale
    by_u = rng.normal(size=(STEPS, model.nu))

    def loss(x):
        moved = ls.difference(model, motion.q, x.q)
        return np.sum(by_q * moved) + np.sum(by_v * (x.v - motion.v)) + np.sum(by_u * (x.u - motion.u))

    found = ls.feedback_gradient(motion, gains, derivatives, by_q, by_v, by_u)
    dq, dv = rng.normal(size=(2, model.nv)) * model.dofs.scale
    dq, dg = motion.start_derivatives.onto_q[0] @ dq, rng.normal(size=2) * gains
    ways = {
        "gains": (found.gains @ dg, lambda x: (gains + x * dg, q0, v0), 1e-2),  # small: rounding needs a long move
        "q0": (found.q0 @ dq, lambda x: (gains, ls.integrate(model, q0, x * dq), v0), 1e-3),  # farther, loops open
        "v0": (found.v0 @ dv, lambda x: (gains, q0, v0 + x * dv), 1e-2),
    }
    for what, (exact, moved, move) in ways.items():
        slope = differenced(lambda x, moved=moved: loss(ls.feedback_rollout(model, output, *moved(x), **options)), move)
        assert exact == pytest.approx(slope, rel=1e-7), what
    none = ls.feedback_gradient(motion, gains, lambda *x: tuple(0.0 * y for y in derivatives(*x)), by_q, by_v)
    np.testing.assert_allclose(none.v0, motion.backward(by_q, by_v).v0, rtol=1e-8)
    assert (none.gains == 0.0).all()


def test_feedback_acts_once_a_step():
    """The motion equals that of `simulate` with the same law, evaluated once a step."""
    model = ROBOTS["soft"]().build()
    output, _ = law(model)
    (q0, v0), gains = start(model), np.array([0.3, 0.02])
    motion = ls.feedback_rollout(model, output, gains, q0, v0, dt=DT, steps=STEPS)
    same = ls.simulate(model, motion.t[-1], q0, v0, dt=DT, rtol=1e-11, atol=1e-14, t_eval=motion.t, period=DT,
                       method="sdirk", controller=lambda t, q, v: output(t, q, v, gains))  # fmt: skip
    np.testing.assert_allclose(motion.u[5], output(5 * DT, motion.q[5], motion.v[5], gains), rtol=1e-9)
    np.testing.assert_allclose(motion.q, same.q, rtol=0, atol=1e-9)
