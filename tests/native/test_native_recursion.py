"""The native functions that carry derivatives from step to step, against a system of equations over all steps.

stage_matrix( begin_forward( end_forward( begin_backward( end_backward( lu_solve_at( lu_solve_transposed(
anchor_forces_forward( anchor_motion_forward( anchor_forces_backward( and anchor_motion_backward( run in one kernel.
"""

import numpy as np
import pytest
import warp as wp

from lissom.errors import ConvergenceError
from lissom.gradients.recursion import AnchorRows, Matrices, Sizes, StageSystems

NV, ROWS, WIDTH, WIDE, STEPS, WINDOW, PAIRS = 7, 2, 8, 16, 5, 2, 3
GROUP = np.array([[1, 6]], dtype=np.int32)
SCALE = np.linspace(0.5, 2.0, NV)


def systems_of(parts, stages, rates, group):
    """S by (4) of recursion, without scales."""
    S = np.zeros((2 * STEPS * stages, NV + ROWS, NV + ROWS))
    for r in range(len(S)):
        row = parts["scheme"].flat[r // stages]
        p0, w0 = parts["weights"][row, r % stages].reshape(3, -1)[:2, 0]
        T, W, c1, one = np.eye(NV), np.zeros((NV, NV)), w0 / p0, np.eye(NV)
        for g, (at, many) in enumerate(group):
            own = slice(at, at + many)
            T[own, own], W[own, own] = parts["T"][r, g], parts["W"][r, g]
        K, D, M, A, A_q, A_v = (parts[name][r] for name in ("K", "D", "M", "A", "A_q", "A_v"))
        move, rate, slip = K @ T, D, c1 * T + W if rates else c1 * one
        if rates:
            move, rate = K @ T + (D + c1 * M) @ W, D @ T + c1 * M @ (T - one)
        S[r] = np.block([[M + w0 * rate + p0 * move, -A.T], [A_q @ T + A_v @ slip, np.zeros((ROWS, ROWS))]])
        for row in np.flatnonzero(parts["slot"][r] < 0):
            S[r, NV + row], S[r, :, NV + row] = 0.0, 0.0
            S[r, NV + row, NV + row] = 1.0
    return S


def touching(rng, rows):
    """Contact pairs of each row, chosen of three, with random slopes."""
    pairs = [np.flatnonzero(rng.uniform(size=PAIRS) < 0.5) for _ in range(rows)]
    begin = np.cumsum([0, *map(len, pairs)]).astype(np.int32)
    slopes = 0.3 * rng.normal(size=(begin[-1], 18 * NV + 36))
    return AnchorRows(6 * PAIRS, begin, np.concatenate(pairs).astype(np.int32), slopes)


def described(stages, rates, group, seed=4, sticks=False, slips=0.0):
    """Random systems of two motions, and their matrices. In some of them one row of loops depends on the other.
    `slips`: size of A_v; it has no columns if this is zero."""
    rng = np.random.default_rng(seed)
    rows, n = 2 * STEPS * stages, NV + ROWS
    weights = rng.uniform(0.5, 1.0, size=(2, stages, 3, 4 + 3 * (stages - 1)))  # of the scheme, of plastic steps
    for s in range(stages):  # none of stages that come later
        weights[:, s, :, 4 + 3 * s :] = 0.0
    weights = weights.reshape(2, stages, -1)
    scheme = rng.integers(2, size=(2, STEPS), dtype=np.int32)
    parts = {name: rng.normal(size=(rows, NV, NV)) for name in "KDM"} | {"weights": weights, "scheme": scheme}
    parts["M"] += 4.0 * np.eye(NV)
    for name in "KDM":
        parts[name][0, 0, 0] = 0.0  # a coordinate without a size of its own
    parts |= {name: rng.normal(size=(rows, ROWS, NV)) for name in ("A", "A_q", "A_v")}
    parts["A_v"] *= slips
    parts["slot"] = np.where(rng.uniform(size=(rows, ROWS)) < 0.3, -1, np.arange(ROWS)).astype(np.int32)
    parts |= {name: np.eye(6) + 0.3 * rng.normal(size=(rows, len(group), 6, 6)) for name in "TEW"}
    if not rates:
        parts["W"][:] = 0.0

    def padded(X):
        out = np.zeros((*X.shape[:-1], WIDTH))
        out[..., : X.shape[-1]] = X
        return out.reshape(len(X), -1)

    flat = tuple(np.ascontiguousarray(parts[name].reshape(rows, -1)) if len(group) else np.zeros((rows, 1))
                 for name in "TEW")  # fmt: skip
    scale = wp.array(np.append(SCALE, 0.0), dtype=wp.float64, device="cpu")
    names, room = ("K", "D", "M", "A", "A_q", "slot", "A_v"), 2 * WINDOW * stages
    sources = {name: parts[name] if name == "slot" else padded(parts[name]) for name in names}
    if not slips:
        sources["A_v"] = np.zeros((rows, 0))
    given = Matrices(*(wp.array(np.zeros_like(sources[name][:room]), device="cpu") for name in names))

    def fill(first):
        for name in names:
            own = sources[name].reshape(2, STEPS * stages, -1 if sources[name].size else 0)
            own = own[:, first * stages : (first + WINDOW) * stages]
            getattr(given, name).numpy()[:] = own.reshape(room, own.shape[-1])

    sizes = Sizes(2, STEPS, WINDOW, NV, WIDTH, n, WIDE)
    made = StageSystems(sizes, weights, scheme, rates, group, flat, scale, np.arange(1.0 * rows), given, fill,
                        touching(rng, rows) if sticks else None)  # fmt: skip
    for name in ("A_q", "A_v"):
        parts[name][parts["slot"] < 0] = 0.0  # behind `sources`: the kernel is to do so itself
    parts["S"] = systems_of(parts, stages, rates, group)
    return made, parts


def whole(made, parts, motion, state, forcing, z=None, moves=None):
    """(q, v, a, â, λ) after each step by the equations of the module with full matrices, and the anchors after the
    steps, from anchors `z` and additional changes `moves`."""
    stages, out, anchors = made.stages, [], made.anchors
    q, v, a, ahead = state.reshape(4, NV)
    for k in range(STEPS):
        ends = []
        for s in range(stages):
            r = (motion * STEPS + k) * stages + s
            T, E, W = np.eye(NV), np.eye(NV), np.zeros((NV, NV))
            for g, (at, many) in enumerate(made.group):
                own = slice(at, at + many)
                T[own, own], E[own, own], W[own, own] = (parts[x][r, g] for x in "TEW")
            p, w, h = made.weights[parts["scheme"][motion, k], s].reshape(3, -1)
            known = [v, a, ahead, *(x for end in ends for x in end)]
            move = sum(c * x for c, x in zip(p[1:], known))
            rate = sum(c * x for c, x in zip(w[1:], known))
            c1 = w[0] / p[0]
            ahead_known = sum(c * x for c, x in zip(h[1:], known))
            speed = T @ rate + W @ move if made.rates else rate
            K = np.concatenate([parts["K"][r], parts["A_q"][r] / p[0]])
            right = forcing[k, s] - K @ (E @ q + T @ move)
            right[NV:] -= parts["A_v"][r] @ speed / p[0]
            right[:NV] -= parts["D"][r] @ speed + c1 * parts["M"][r] @ (speed - rate)
            rows = range(*anchors.begin[r : r + 2]) if anchors else ()
            for at in rows:
                right[:NV] += anchors.slopes[at, : 6 * NV].reshape(NV, 6) @ z[anchors.pair[at]]
            y = np.linalg.solve(parts["S"][r], right)
            move, rate = move + p[0] * y[:NV], rate + w[0] * y[:NV]
            speed = T @ rate + W @ move if made.rates else rate
            acceleration = y[:NV] + c1 * (speed - rate)
            ends.append((move, rate, acceleration))
        q, v, a, ahead = E @ q + T @ move, speed, acceleration, ahead_known + h[0] * y[:NV]
        out.append(np.concatenate([q, v, a, ahead, y[NV:]]))
        before = z
        z = None if z is None else np.zeros_like(z)
        for at in rows:
            by_q, by_v = anchors.slopes[at, 6 * NV : 18 * NV].reshape(2, 6, NV)
            by_anchor = anchors.slopes[at, 18 * NV :].reshape(6, 6)
            extra = moves[at - anchors.begin[motion * STEPS * stages]]
            z[anchors.pair[at]] = by_q @ q + by_v @ v + by_anchor @ before[anchors.pair[at]] + extra
    return np.array(out), z


@pytest.mark.parametrize("slips", [0.0, 1.0])
@pytest.mark.parametrize(("stages", "rates", "group"), [(1, False, GROUP[:0]), (2, False, GROUP), (3, True, GROUP)])
def test_recursion(stages, rates, group, slips):
    """The forward pass solves the equations stage by stage. The backward pass has the same products with any state."""
    made, parts = described(stages, rates, group, slips=slips)
    rng = np.random.default_rng(5)
    state = rng.normal(size=(2, 4, 4 * NV))
    forcing = rng.normal(size=(2, 4, STEPS, stages, NV + ROWS))
    found = made.forward(forcing, state.copy())
    for motion in range(2):
        for m in range(4):
            wanted, _ = whole(made, parts, motion, state[motion, m], forcing[motion, m])
            np.testing.assert_allclose(found[motion, m], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    seeds = rng.normal(size=(2, 3, STEPS, 3 * NV + ROWS))
    end = rng.normal(size=(2, 3, 4 * NV))
    begun = end.copy()
    mu = made.backward(seeds, begun)
    kept = np.concatenate([found[..., : 3 * NV], found[..., 4 * NV :]], axis=-1)
    given = np.einsum("nmkj,ndkj->nmd", seeds, kept) + np.einsum("nmj,ndj->nmd", end, found[:, :, -1, : 4 * NV])
    back = np.einsum("nmj,ndj->nmd", begun, state) + np.einsum("nmksj,ndksj->nmd", mu, forcing)
    np.testing.assert_allclose(back, given, rtol=1e-9, atol=1e-9 * np.abs(given).max())


@pytest.mark.parametrize(("stages", "rates", "group"), [(1, False, GROUP[:0]), (3, True, GROUP)])
def test_anchors_go_along(stages, rates, group):
    """With anchors, the forward pass solves the equations. The backward pass has the same products with any state,
    anchors and their changes."""
    made, parts = described(stages, rates, group, sticks=True)
    rng = np.random.default_rng(6)
    state, z = rng.normal(size=(2, 2, 4 * NV)), rng.normal(size=(2, 2, 6 * PAIRS))
    forcing = rng.normal(size=(2, 2, STEPS, stages, NV + ROWS))
    held = made.anchor_changes(z.copy())
    held.moves[:] = rng.normal(size=held.moves.shape)
    moves = held.moves.reshape(2, 2, -1, 6).copy()
    found = made.forward(forcing.copy(), state.copy(), held)
    for motion in range(2):
        for m in range(2):
            given = state[motion, m], forcing[motion, m], z[motion, m].reshape(PAIRS, 6), moves[motion, m]
            wanted, after = whole(made, parts, motion, *given)
            np.testing.assert_allclose(found[motion, m], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
            np.testing.assert_allclose(held.z[motion, m], after.ravel(), rtol=1e-9, atol=1e-9 * np.abs(after).max())
    seeds = rng.normal(size=(2, 3, STEPS, 3 * NV + ROWS))
    end, by_z = rng.normal(size=(2, 3, 4 * NV)), rng.normal(size=(2, 3, 6 * PAIRS))
    begun, back = end.copy(), made.anchor_changes(by_z.copy())
    mu = made.backward(seeds, begun, back)
    kept = np.concatenate([found[..., : 3 * NV], found[..., 4 * NV :]], axis=-1)
    given = np.einsum("nmkj,ndkj->nmd", seeds, kept) + np.einsum("nmj,ndj->nmd", end, found[:, :, -1, : 4 * NV])
    given += np.einsum("nmj,ndj->nmd", by_z, held.z)
    found = np.einsum("nmj,ndj->nmd", begun, state) + np.einsum("nmksj,ndksj->nmd", mu, forcing)
    found += np.einsum("nmj,ndj->nmd", back.z, z)
    found += np.einsum("nmre,ndre->nmd", back.moves.reshape(2, 3, -1, 6), moves)
    np.testing.assert_allclose(found, given, rtol=1e-9, atol=1e-9 * np.abs(given).max())


@pytest.mark.parametrize("slips", [0.0, 1.0])
def test_matrices(slips):
    """The matrices of all windows are those of the module, each row scaled to size one in the sizes of coordinates."""
    made, parts = described(3, True, GROUP, slips=slips)
    own = {name: np.abs(np.diagonal(parts[name], axis1=1, axis2=2)).reshape(-1, 3, NV) for name in "KDM"}
    of_steps = parts["weights"].reshape(2, 3, 3, -1)[parts["scheme"].ravel()]
    by_move, by_rate = (of_steps[:, :, row, :1] for row in (0, 1))
    weight = (own["M"] + by_rate * own["D"] + by_move * own["K"]).reshape(-1, NV)
    sizes = np.where(weight > 0.0, 1.0 / np.sqrt(np.where(weight > 0.0, weight, 1.0)), SCALE)
    assert (weight == 0.0).sum() == 1
    for window in made.matrices():
        S, size = (x.reshape(2, STEPS, 3, *x.shape[1:])[:, window].reshape(-1, *x.shape[1:])
                   for x in (parts["S"], sizes))  # fmt: skip
        unit = 1.0 / np.maximum(np.abs(S[..., :NV] * size[:, None]).max(axis=-1), 1e-300)
        unit[np.abs(S[..., :NV]).max(axis=-1) == 0.0] = 1.0
        found = made.matrix.reshape(-1, NV + ROWS, WIDE)
        np.testing.assert_allclose(made.units, unit, rtol=1e-12)
        np.testing.assert_allclose(found[..., : NV + ROWS], S * unit[..., None], rtol=1e-9, atol=1e-12)
        assert not found[..., NV + ROWS :].any()


def test_a_singular_matrix_is_reported_with_its_time():
    """The error names the time of the first row of the last window of the second motion."""
    made, _ = described(1, False, GROUP[:0])
    fill = made.fill

    def broken(first):
        fill(first)
        for name in "KDM":
            getattr(made.given, name).numpy()[WINDOW + (STEPS - 1 - first)] = 0.0

    made.fill = broken
    with pytest.raises(ConvergenceError, match=r"rollout at t=9 s: a step has no derivative"):
        made.backward(np.zeros((2, 1, STEPS, 3 * NV + ROWS)), np.zeros((2, 1, 4 * NV)))
