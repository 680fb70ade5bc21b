"""The systems of the stages of a path, from the exact derivatives of the residual at their states (recursion)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lissom.dynamics.configuration import groups
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import (
    derivative_workspace,
    row_results,
    run_residual_derivatives,
)
from lissom.dynamics.tensions import input_response
from lissom.errors import ConvergenceError
from lissom.gradients.recursion import StageSystems
from lissom.gradients.steps import Path, StageStates, Stepping, six, stage_states
from lissom.integration.schemes import Scheme
from lissom.launch.workspace import parts
from lissom.lie.arrays import se3_Ad, se3_ad, se3_exp, se3_tangent, se3_tangent_dot
from lissom.model.model import Model
from lissom.passes.column_tables import column_width
from lissom.systems.bordered import bordered_width

_ROWS = 64  # states whose derivatives are found in one launch


def stage_weights(scheme: Scheme, h: float) -> np.ndarray:
    """Weights of each stage in Δ, its rate and â, of x, vₙ, aₙ, âₙ and of Δ, w, a of the stages before, for steps of
    size h; shape (stages, 3 (4 + 3 (stages − 1)))."""
    count = len(scheme.stages)
    units = np.array([h**2, h, h**2, h**2] + [1.0, h, h**2] * (count - 1))
    rows = np.zeros((count, 3, len(units)))
    for row, stage in zip(rows, scheme.stages):
        for order, own in enumerate((stage.position, stage.velocity, stage.ahead)):
            row[order, : len(own)] = np.array(own) * units[: len(own)] / h**order
    return rows.reshape(count, -1)


def stage_systems(
    model: Model, stepping: Stepping, path: Path, *, factor: bool = True
) -> tuple[StageSystems, StageStates]:
    """The systems of a path, with their factors in place of the matrices if asked, and its states.

    Raises:
        ConvergenceError: a system is singular.
    """
    states = stage_states(model, stepping, path)
    if states.force is None:
        states = replace(states, force=loop_forces(model, states))
    n, steps = path.left.shape[:2]
    rows = len(states.t)
    weights = stage_weights(stepping.scheme, stepping.dt)
    size = weights.shape[1] // 3
    onto_q, onto_v = (np.tile(weights[:, k], n * steps) for k in (0, size))  # of x
    K, D, M, A, kept = _derivatives(model, states)
    nv, m, w = model.nv, model.n_rows, column_width(model)
    found = groups(model)
    turns = stepping.scheme.follows_rates and bool(found)
    group = np.array([[j, 6 if free else 3] for _, j, free in found], dtype=np.int32).reshape(-1, 2)
    T, E, W = _turns(states, group, turns) if len(group) else (np.zeros((rows, 1)),) * 3
    wide, unknowns = bordered_width(model) if m else w, nv + m
    S = M + onto_v[:, None] * D
    S += onto_q[:, None] * K[:, : nv * w]
    if len(group):
        _turn_columns(S, K, D, M, group, (T, W), (onto_q, onto_v), turns, w)
    matrix = S if not m else _bordered(S, K, A, kept, group, T, (nv, m, w, wide))
    units = None
    if m:
        K[:, nv * w :] /= onto_q[:, None]
        units = _scaled_rows(model, matrix, (K, D, M) if turns else (K, D), unknowns)
    systems = StageSystems(
        n, steps, nv, unknowns, w, weights, turns, group, T, E, W,
        matrix, np.zeros((rows, unknowns * wide)), np.zeros((rows, unknowns), dtype=np.int32),
        K, D, M if turns else np.zeros((1, 1)), units,
    )  # fmt: skip
    bad = np.flatnonzero(systems.factor()) if factor else []
    if len(bad):
        where = f"at t={states.t[bad[0]]:g} s"
        raise ConvergenceError(f"rollout {where}: a step has no derivative, its matrix is singular; take a shorter dt")
    return systems, states


def _derivatives(
    model: Model, states: StageStates
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """K with the rows A_q of loops behind, D and M of all states in padded rows; rows A of loops, and which of them are
    independent. A prescribed coordinate answers to nothing: its rows are those of 0, of 0 and of the identity."""
    nv, m, w, count = model.nv, model.n_rows, column_width(model), len(states.t)
    K, D, M = (np.empty((count, rows * w)) for rows in (nv + m, nv, nv))
    A, kept = np.zeros((count, m, w)), np.ones((count, m), dtype=bool)
    size = -(-count // -(-count // _ROWS)) if not model.models else _models_part(model, count)  # parts of one size
    force = states.force
    for part in parts(count, size):
        arrays = {"q": states.q[part], "v": states.v[part], "a": states.a[part], "u": states.u[part]}
        work, _ = derivative_workspace(model, **arrays)
        run_residual_derivatives(model, work, states.t[part], inputs=True, force=0.0 if force is None else force[part])
        work.raise_for_status()
        host = work.host
        K[part, : nv * w], D[part], M[part] = host["dq"], host["dv"], host["da"]
        if m:
            K[part, nv * w :] = host["A_q"]
            A[part], kept[part] = host["A"].reshape(-1, m, w), host["slot"] >= 0
    held = model.prescribed.dof
    if len(held):
        for X, one in ((K, 0.0), (D, 0.0), (M, 1.0)):
            square = X.reshape(count, -1, w)
            square[:, held], square[:, :, held] = 0.0, 0.0
            square[:, held, held] = one
        A[..., held] = 0.0
    return K, D, M, A, kept


def _models_part(model: Model, count: int) -> int:
    """Rows of a batch of models in one launch: all, since each model has as many as the others."""
    return max(count, len(model.models))


def loop_forces(model: Model, states: StageStates) -> np.ndarray:
    """λ of least norm that states ask for, where steps have not kept it."""
    out = np.zeros((len(states.t), model.n_rows))
    if not model.n_rows:
        return out
    for part in parts(len(states.t), _ROWS):
        rows = (states.q[part], states.v[part], states.a[part], states.u[part])
        left = run_residual(model, *rows, states.t[part]).host["tau"].copy()
        work, lead = run_constraints(model, states.q[part])
        A = row_results(model, work, "A", lead)
        A[..., model.prescribed.dof] = 0.0
        out[part] = np.einsum("nrj,nj->nr", np.linalg.pinv(np.swapaxes(A, -1, -2), rcond=1e-10), left)
    return out


def _bordered(
    S: np.ndarray, K: np.ndarray, A: np.ndarray, kept: np.ndarray, group: np.ndarray, T: np.ndarray,
    sizes: tuple[int, int, int, int],
) -> np.ndarray:  # fmt: skip
    """[S, −Aᵀ; A_q T, 0] with the independent rows, and ones for the others, whose rows of K become zeros."""
    nv, m, w, wide = sizes
    matrix = np.zeros((len(S), nv + m, wide))
    matrix[:, :nv, :nv] = S.reshape(-1, nv, w)[..., :nv]
    A_q = K[:, nv * w :].reshape(-1, m, w)
    A_q[~kept] = 0.0
    turned = A_q.copy()
    _turn(turned, group, T)
    matrix[:, nv:, :nv] = turned[..., :nv]
    matrix[:, :nv, nv:][..., :m] = -np.swapaxes(np.where(kept[..., None], A, 0.0), -1, -2)[:, :nv]
    at, row = np.nonzero(~kept)
    matrix[at, nv + row, nv + row] = 1.0
    return matrix.reshape(len(S), -1)


def _scaled_rows(model: Model, matrix: np.ndarray, others: tuple[np.ndarray, ...], unknowns: int) -> np.ndarray:
    """Multiply the rows of bordered matrices, and of others behind each other as theirs are, so that all are of one
    size in the natural sizes of the coordinates: else rows of stiff coordinates and of loops serve as pivots of soft
    ones. By what, (rows, unknowns)."""
    nv, count = model.nv, len(matrix)
    scale = model.one(0, 1).dofs.scale
    S = matrix.reshape(count, unknowns, -1)
    sized = S[..., :nv] * scale
    size = np.maximum(sized.max(axis=-1), -sized.min(axis=-1))
    units = 1.0 / np.where(size > 0.0, size, 1.0)
    S *= units[..., None]
    for X in others:
        rows = X.reshape(count, -1, column_width(model))
        rows *= units[:, : rows.shape[1], None]
    return units


def _turns(states: StageStates, group: np.ndarray, rates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T(Δ), E = Ad(exp Δ)⁻¹ and W = ∂(T(Δ) w)/∂Δ of each stored pose as rows of 36 numbers: W = Ṫ + ad_V T of w and
    V = T w, where poses add up rates."""
    rows = len(states.t)
    T, E, W = np.zeros((3, rows, len(group), 6, 6))
    for g, (at, many) in enumerate(group):
        assert states.move is not None and states.rate is not None
        move, rate = (six(x[:, at : at + many]) for x in (states.move, states.rate))
        T[:, g], E[:, g] = se3_tangent(move), se3_Ad(se3_exp(-move))
        if rates:
            twist = np.einsum("nij,nj->ni", T[:, g], rate)
            W[:, g] = se3_tangent_dot(move, rate) + se3_ad(twist) @ T[:, g]
    return T.reshape(rows, -1), E.reshape(rows, -1), W.reshape(rows, -1)


def _blocks(X: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    """The matrices of each stored pose."""
    each = X.reshape(len(X), len(group), 6, 6)
    return [each[:, g, :many, :many] for g, (_, many) in enumerate(group)]


def _turn(X: np.ndarray, group: np.ndarray, T: np.ndarray) -> None:
    """X T in place, on the columns of stored poses of X (rows, ..., width)."""
    for (at, many), turn in zip(group, _blocks(T, group) if len(group) else []):
        X[..., at : at + many] = X[..., at : at + many] @ turn


def _turn_columns(
    S: np.ndarray, K: np.ndarray, D: np.ndarray, M: np.ndarray, group: np.ndarray, maps: tuple[np.ndarray, np.ndarray],
    onto: tuple[np.ndarray, np.ndarray], rates: bool, w: int,
) -> None:  # fmt: skip
    """Make the columns of stored poses of S those of M + w₀ D' + p₀ K', with

    K' = K T + (D + c₁ M) W and D' = D T + c₁ M (T − 1) where rates are added up, else K' = K T and D' = D."""
    nv = D.shape[1] // w
    square, k, d, m = (x[:, : nv * w].reshape(-1, nv, w) for x in (S, K, D, M))
    onto_q, onto_v = (x[:, None, None] for x in onto)
    for (at, many), turn, bend in zip(group, *(_blocks(x, group) for x in maps)):
        own = slice(at, at + many)
        by_q, by_v, by_a = (x[..., own] for x in (k, d, m))
        move, rate = by_q @ turn, by_v
        if rates:
            c1 = onto_v / onto_q
            both = by_v + c1 * by_a
            move, rate = move + both @ bend, both @ turn - c1 * by_a
        square[..., own] = by_a + onto_v * rate + onto_q * move


def input_columns(model: Model, states: StageStates) -> np.ndarray:
    """∂(B u)/∂u at each state, shape (rows, nv, nu)."""
    out = np.zeros((len(states.t), model.nv, model.nu))
    if not model.nu:
        return out
    size = _ROWS if not model.models else _models_part(model, len(states.t))
    for part in parts(len(states.t), size):
        out[part] = input_response(model, states.q[part], states.u[part])
    out[:, model.prescribed.dof] = 0.0
    return out
