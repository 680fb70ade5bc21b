"""Ends of single steps by changes of their starts, all numbers of these at once: the recursion forwards by LAPACK,
which takes many directions of one step together. The equations are those of recursion."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.errors import ConvergenceError
from lissom.gradients.anchors import anchor_carries, anchor_moves, anchor_pulls
from lissom.gradients.recursion import StageSystems


def ends_of_steps(
    systems: StageSystems, window: slice, forcing: np.ndarray, start: np.ndarray, *, accelerations: bool = True
) -> np.ndarray:
    """δq, δv, δa and δâ at the end of each step of a window, shape (rows, 4 nv, many), or the first two alone; changes
    of anchors behind them, where contacts stick.

    Args:
        systems: with the matrices of the window, not factored.
        forcing: f of (2) of recursion in each stage, (rows, stages, unknowns, many).
        start: δq, δv, δa, δâ and changes of anchors at the start of each step, (rows, 4 nv + 6 n_pairs, many).
        accelerations: whether δa and δâ are asked for.
    Raises:
        ConvergenceError: a system is singular.
    """
    nv, stages = systems.nv, systems.stages
    q, *known = np.split(start[:, : 4 * nv], 4, axis=1)
    z, anchors = start[:, 4 * nv :], systems.anchors
    each = np.arange(systems.count * systems.steps * stages).reshape(systems.count, systems.steps, stages)[:, window]
    given = systems.given
    rows = systems.matrix.reshape(-1, stages, systems.unknowns, systems.wide)[: len(start)]
    S = rows[..., : systems.unknowns]
    K, A_q, D, M = (_rows(systems, x, len(start)) for x in (given.K, given.A_q, given.D, given.M))
    for s, (p, to_w, to_ahead) in enumerate(systems.weights.reshape(stages, 3, -1)):
        turns = _blocks(systems, window, s)
        bends, c1 = systems.rates and bool(turns), to_w[0] / p[0]
        move, rate = _sum(p[1:], known), _sum(to_w[1:], known)  # k of (1)
        at, speed = _states(q, move, rate, turns, bends)
        right = forcing[:, s].copy()  # large arrays are made few times: fresh memory takes longer than what is done
        if anchors is not None:
            right[:, :nv] += anchor_pulls(anchors, nv, each[..., s].ravel()) @ z
        spare = K[:, s] @ at
        right[:, :nv] -= spare
        right[:, :nv] -= np.matmul(D[:, s], speed, out=spare)
        if bends:
            right[:, :nv] -= c1 * (M[:, s] @ (speed - rate))
        if systems.unknowns > nv:
            right[:, nv:] -= A_q[:, s] @ at / p[0]
        right *= systems.units.reshape(-1, stages, systems.unknowns, 1)[: len(start), s]
        x = _solved(S[:, s], right)[:, :nv]  # (2)
        move += np.multiply(x, p[0], out=spare)  # (1)
        rate += np.multiply(x, to_w[0], out=spare)
        at, speed = _states(q, move, rate, turns, bends)  # (3)
        if accelerations or s < stages - 1:
            ahead = _sum(to_ahead, [x, *known])
            known += [move, rate, x + c1 * (speed - rate) if bends else x]
    found = [at, speed, known[-1], ahead] if accelerations else [at, speed]
    if anchors is not None:
        last = each[..., -1].ravel()
        moved = anchor_moves(anchors, nv, last) @ np.concatenate([at, speed], axis=1)
        found.append(moved + anchor_carries(anchors, nv, last) @ z)
    return np.concatenate(found, axis=1)


def _rows(systems: StageSystems, X: Any, rows: int) -> np.ndarray:
    """Padded rows of matrices of a window as (rows, stages, ..., columns)."""
    whole = X.numpy()
    whole = whole.reshape(len(whole), -1, systems.width)[: rows * systems.stages, :, : systems.nv]
    return whole.reshape(rows, systems.stages, -1, systems.nv)


def _blocks(systems: StageSystems, window: slice, s: int) -> list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
    """Coordinates, T, E and W of each stored pose in a stage."""
    found, each = [], (systems.count, systems.steps, systems.stages, len(systems.group), 6, 6)
    for g, (at, many) in enumerate(systems.group):
        T, E, W = (x.reshape(each)[:, window, s, g, :many, :many].reshape(-1, many, many) for x in systems.turns)
        found.append((slice(at, at + many), T, E, W))
    return found


def _sum(weights: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """Weighted sum of what has a weight."""
    out = None
    for weight, value in zip(weights, values):
        if weight != 0.0:
            out = weight * value if out is None else np.add(out, weight * value, out=out)
    return np.zeros(values[0].shape) if out is None else out


def _states(
    q: np.ndarray, move: np.ndarray, rate: np.ndarray, turns: list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]],
    bends: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """E δq + T δΔ, and T δw + W δΔ where poses add up rates, else δw."""
    at = q + move
    for block, T, E, _ in turns:
        at[:, block] = E @ q[:, block] + T @ move[:, block]
    if not bends:
        return at, rate
    speed = rate.copy()
    for block, T, _, W in turns:
        speed[:, block] = T @ rate[:, block] + W @ move[:, block]
    return at, speed


def _solved(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(S, right)
    except np.linalg.LinAlgError:
        rule = "a step has no derivative, its matrix is singular; take a shorter dt"
        raise ConvergenceError(f"rollout: {rule}") from None
