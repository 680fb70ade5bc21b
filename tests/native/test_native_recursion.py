"""The native functions that carry derivatives from step to step, against a system of equations over all steps.

begin_forward( end_forward( begin_backward( end_backward( lu_solve_at( and lu_solve_transposed( run in one kernel.
"""

import numpy as np
import pytest

from lissom.gradients.recursion import StageSystems

NV, ROWS, WIDTH, WIDE, STEPS = 7, 2, 8, 16, 3
GROUP = np.array([[1, 6]], dtype=np.int32)


def described(stages, rates, group, seed=4):
    """Random systems of two motions, and the matrices that they are made of."""
    rng = np.random.default_rng(seed)
    rows, n = 2 * STEPS * stages, NV + ROWS
    weights = rng.normal(size=(stages, 3 * (4 + 3 * (stages - 1))))
    for s in range(stages):  # none of stages that come later
        for k in range(3):
            weights[s].reshape(3, -1)[k, 4 + 3 * s :] = 0.0
    parts = {"K": rng.normal(size=(rows, n, NV)), "D": rng.normal(size=(rows, NV, NV))}
    parts |= {"M": rng.normal(size=(rows, NV, NV)), "S": rng.normal(size=(rows, n, n)) + 4.0 * np.eye(n)}
    parts |= {name: rng.normal(size=(rows, len(group), 6, 6)) for name in "TEW"}
    if not rates:
        parts["W"][:] = 0.0

    def padded(X, width):
        out = np.zeros((*X.shape[:-1], width))
        out[..., : X.shape[-1]] = X
        return out.reshape(len(X), -1)

    flat = {name: np.ascontiguousarray(parts[name].reshape(rows, -1)) if len(group) else np.zeros((rows, 1))
            for name in "TEW"}  # fmt: skip
    made = StageSystems(
        2, STEPS, NV, n, WIDTH, weights, rates, group, flat["T"], flat["E"], flat["W"], padded(parts["S"], WIDE),
        np.zeros((rows, n * WIDE)), np.zeros((rows, n), dtype=np.int32), padded(parts["K"], WIDTH),
        padded(parts["D"], WIDTH), padded(parts["M"], WIDTH),
    )  # fmt: skip
    return made, parts


def whole(made, parts, motion, state, forcing):
    """(q, v, a, â, λ) after each step by the equations of the module, with matrices of all coordinates."""
    stages, out = made.stages, []
    q, v, a, ahead = state.reshape(4, NV)
    for k in range(STEPS):
        ends = []
        for s in range(stages):
            r = (motion * STEPS + k) * stages + s
            T, E, W = np.eye(NV), np.eye(NV), np.zeros((NV, NV))
            for g, (at, many) in enumerate(made.group):
                own = slice(at, at + many)
                T[own, own], E[own, own], W[own, own] = (parts[x][r, g] for x in "TEW")
            p, w, h = made.weights[s].reshape(3, -1)
            known = [v, a, ahead, *(x for end in ends for x in end)]
            move = sum(c * x for c, x in zip(p[1:], known))
            rate = sum(c * x for c, x in zip(w[1:], known))
            c1 = w[0] / p[0]
            ahead_known = sum(c * x for c, x in zip(h[1:], known))
            speed = T @ rate + W @ move if made.rates else rate
            right = forcing[k, s] - parts["K"][r] @ (E @ q + T @ move)
            right[:NV] -= parts["D"][r] @ speed + c1 * parts["M"][r] @ (speed - rate)
            y = np.linalg.solve(parts["S"][r], right)
            move, rate = move + p[0] * y[:NV], rate + w[0] * y[:NV]
            speed = T @ rate + W @ move if made.rates else rate
            acceleration = y[:NV] + c1 * (speed - rate)
            ends.append((move, rate, acceleration))
        q, v, a, ahead = E @ q + T @ move, speed, acceleration, ahead_known + h[0] * y[:NV]
        out.append(np.concatenate([q, v, a, ahead, y[NV:]]))
    return np.array(out)


@pytest.mark.parametrize(("stages", "rates", "group"), [(1, False, GROUP[:0]), (2, False, GROUP), (3, True, GROUP)])
def test_recursion(stages, rates, group):
    """Forwards it solves the equations stage by stage; backwards its products with any state are the same."""
    made, parts = described(stages, rates, group)
    rng = np.random.default_rng(5)
    assert not made.factor().any()
    state = rng.normal(size=(2, 4, 4 * NV))
    forcing = rng.normal(size=(2, 4, STEPS, stages, NV + ROWS))
    found = made.forward(forcing, state.copy())
    for motion in range(2):
        for m in range(4):
            wanted = whole(made, parts, motion, state[motion, m], forcing[motion, m])
            np.testing.assert_allclose(found[motion, m], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    seeds = rng.normal(size=(2, 3, STEPS, 3 * NV + ROWS))
    end = rng.normal(size=(2, 3, 4 * NV))
    begun = end.copy()
    mu = made.backward(seeds, begun)
    kept = np.concatenate([found[..., : 3 * NV], found[..., 4 * NV :]], axis=-1)
    given = np.einsum("nmkj,ndkj->nmd", seeds, kept) + np.einsum("nmj,ndj->nmd", end, found[:, :, -1, : 4 * NV])
    back = np.einsum("nmj,ndj->nmd", begun, state) + np.einsum("nmksj,ndksj->nmd", mu, forcing)
    np.testing.assert_allclose(back, given, rtol=1e-9, atol=1e-9 * np.abs(given).max())
