"""States of the stages of a path, and the systems (2) of recursion there, from exact derivatives of the residual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np
import warp as wp

from lissom.dynamics.actuation import input_response
from lissom.dynamics.configuration import (
    apply_tangent_operator,
    difference,
    free_increment,
    integrate,
    quaternion_joints,
)
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import (
    derivative_workspace,
    row_results,
    run_residual_derivatives,
)
from lissom.dynamics.loads import python_responses
from lissom.gradients.anchors import anchor_rows
from lissom.gradients.recursion import Matrices, StageSystems
from lissom.launch.workspace import Workspace, row_slices
from lissom.lie.arrays import se3_Ad, se3_ad, se3_exp, se3_tangent, se3_tangent_dot
from lissom.model.model import Model
from lissom.passes.columns import column_width
from lissom.stepping.schemes import Scheme
from lissom.systems.bordered import bordered_width, scale_array

if TYPE_CHECKING:
    from lissom.gradients.steps import Path, Stepping

_ROWS = 64  # states whose derivatives are found in one launch
_MOST_BYTES = 2**21  # of their matrices and of the systems made of them
_NAMES = ("dq", "dv", "da", "A", "A_q", "slot")


@final
@dataclass(frozen=True)
class StageStates:
    """The state at the end of each stage of a path, rows of motion after motion, step by step.

    Fields:
        q, v, a, u, force, t: of each. move, rate: Δ and its rate, where poses are stored. anchors: where contacts that
        stick hold on until then, (rows, n_pairs, 6); None: where those of the model do.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    force: np.ndarray | None
    t: np.ndarray
    move: np.ndarray | None
    rate: np.ndarray | None
    anchors: np.ndarray | None = None

    def some(self, rows: slice) -> StageStates:
        """Some of the rows."""
        found = (getattr(self, field.name) for field in fields(self))
        return StageStates(*(None if x is None else x[rows] for x in found))  # pyright: ignore


def stage_states(model: Model, stepping: Stepping, path: Path) -> StageStates:
    """The states of all stages. Forces of loops in stages before the last one are not kept by the steps: None."""
    n, steps, before = path.left.shape[:3]
    start, has_groups = path.q[:, :-1], bool(quaternion_joints(model))
    move = rate = None
    v, a = path.v[:, 1:, None], path.a[:, 1:, None]
    q = path.q[:, 1:, None]
    if has_groups:
        move = difference(model, start, path.q[:, 1:])[:, :, None]
        rate = apply_tangent_operator(model, move, v, invert=True) if stepping.scheme.follows_rates else v
    if before:
        moves, rates, found = (path.left[:, :, :, k] for k in range(3))
        speeds = apply_tangent_operator(model, moves, rates) if has_groups and stepping.scheme.follows_rates else rates
        q = np.concatenate([integrate(model, start[:, :, None], moves), q], axis=2)
        v, a = np.concatenate([speeds, v], axis=2), np.concatenate([found, a], axis=2)
        if move is not None and rate is not None:
            move, rate = np.concatenate([moves, move], axis=2), np.concatenate([rates, rate], axis=2)
    times = np.broadcast_to(stepping.times(path.first, steps), (n, steps, before + 1))
    u = np.repeat(path.u.reshape(n * steps, -1), before + 1, axis=0)
    rows = [None if x is None else x.reshape(n * steps * (before + 1), -1) for x in (q, v, a, move, rate)]
    force = path.force[:, 1:].reshape(n * steps, -1) if not before else None
    held = path.anchors[:, :-1]
    anchors = np.repeat(held.reshape(n * steps, *held.shape[2:]), before + 1, axis=0)
    return StageStates(rows[0], rows[1], rows[2], u, force, times.ravel(), rows[3], rows[4], anchors)  # pyright: ignore


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


def stage_systems(model: Model, stepping: Stepping, path: Path) -> tuple[StageSystems, StageStates]:
    """The systems of a path, and its states."""
    states = stage_states(model, stepping, path)
    weights = stage_weights(stepping.scheme, stepping.dt)
    if states.force is None:
        states = replace(states, force=loop_forces(model, states))
    (n, steps), found = path.left.shape[:2], quaternion_joints(model)
    turns = stepping.scheme.follows_rates and bool(found)
    group = np.array([[j, 6 if free else 3] for _, j, free in found], dtype=np.int32).reshape(-1, 2)
    none = np.zeros((len(states.t), 1))
    maps = _turns(states, group, turns) if len(group) else (none, none, none)
    nv, w, unknowns = model.nv, column_width(model), model.nv + model.n_rows
    wide = bordered_width(model)
    window = _window(model, n * len(weights), steps, unknowns * wide)
    work, given = _given(model, n * window * len(weights), states.anchors)
    fill = partial(_fill, model, work, given, states, n, window * len(weights), len(weights))
    sizes, held = (n, steps, window, nv, w, unknowns, wide), states.anchors
    anchors = anchor_rows(model, held, states.q, states.v) if held is not None and held.size else None
    systems = StageSystems(*sizes, weights, turns, group, maps, scale_array(model), states.t, given, fill, anchors)
    return systems, states


def _window(model: Model, each: int, steps: int, size: int) -> int:
    """Steps of `each` states whose matrices, and systems of some size, stay in a cache."""
    most = _MOST_BYTES // (8 * (3 * model.nv * column_width(model) + 2 * size) * each)
    return -(-steps // -(-steps // max(1, min(most, _ROWS // each))))


def _given(model: Model, rows: int, anchors: np.ndarray | None) -> tuple[Workspace, Matrices]:
    """The workspace of the derivatives of the residual at so many states, and where they come to stand: there on the
    CPU."""
    none = {"q": np.zeros((rows, model.nq)), "u": np.zeros((rows, model.nu))}
    none |= dict.fromkeys(("v", "a"), np.zeros((rows, model.nv)))
    w, _ = derivative_workspace(model, **none, anchors=None if anchors is None else anchors[:rows])
    arrays = w.buffers.on_device
    if model.device != "cpu":
        arrays = {name: wp.array(w.host[name], device="cpu") for name in _NAMES}
    return w, Matrices(*(arrays[name] for name in _NAMES))


def _fill(
    model: Model, w: Workspace, given: Matrices, states: StageStates, n: int, each: int, stages: int, first: int
) -> None:
    """Put there the derivatives at the states of a window, `each` of n motions, that begins with a step. A prescribed
    coordinate answers to nothing: its rows are those of 0, of 0 and of the identity."""

    def some(x: np.ndarray) -> np.ndarray:
        rows = x.reshape(n, len(x) // n, *x.shape[1:])[:, first * stages : first * stages + each]
        return rows.reshape(n * each, *x.shape[1:])

    assert states.force is not None
    arrays = {name: some(getattr(states, name)) for name in ("q", "v", "a", "u")}
    w.fill((n * each,), **arrays)
    if states.anchors is not None and states.anchors.size:
        w.put_anchors(some(states.anchors))
    run_residual_derivatives(model, w, some(states.t), inputs=True, force=some(states.force))
    w.raise_for_status()
    held, width = model.prescribed.dof, column_width(model)
    if model.python_forces:
        found = python_responses(model, arrays["q"], arrays["v"], arrays["u"], some(states.t))
        for name, change in zip(("dq", "dv"), found):
            w.host[name].reshape(n * each, -1, width)[..., : model.nv] += change
    if len(held):
        for name, one in (("dq", 0.0), ("dv", 0.0), ("da", 1.0)):
            square = w.host[name].reshape(n * each, -1, width)
            square[:, held], square[:, :, held] = 0.0, 0.0
            square[:, held, held] = one
        for name in ("A", "A_q"):
            w.host[name].reshape(n * each, -1, width)[..., held] = 0.0
    if model.device != "cpu":
        for array, name in zip((getattr(given, field.name) for field in fields(given)), _NAMES):
            array.numpy()[: n * each] = w.host[name]


def _launches(model: Model, count: int) -> Iterator[slice]:
    """Rows that are looked at together; of a batch of models all, since each model has as many as the others."""
    return row_slices(count, count if model.models else _ROWS)


def loop_forces(model: Model, states: StageStates) -> np.ndarray:
    """λ of least norm that states ask for, where steps have not kept it."""
    out = np.zeros((len(states.t), model.n_rows))
    if not model.n_rows:
        return out
    for part in _launches(model, len(states.t)):
        rows, anchors = (states.q[part], states.v[part], states.a[part], states.u[part]), states.anchors
        held = None if anchors is None else anchors[part]
        left = run_residual(model, *rows, states.t[part], anchors=held).host["tau"].copy()
        work, lead = run_constraints(model, states.q[part])
        A = row_results(model, work, "A", lead)
        A[..., model.prescribed.dof] = 0.0
        out[part] = np.einsum("nrj,nj->nr", np.linalg.pinv(np.swapaxes(A, -1, -2), rcond=1e-10), left)
    return out


def _turns(states: StageStates, group: np.ndarray, rates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T(Δ), E = Ad(exp Δ)⁻¹ and W = ∂(T(Δ) w)/∂Δ of each stored pose as rows of 36 numbers: W = Ṫ + ad_V T of w and
    V = T w, where poses add up rates."""
    rows = len(states.t)
    T, E, W = np.zeros((3, rows, len(group), 6, 6))
    for g, (at, many) in enumerate(group):
        assert states.move is not None and states.rate is not None
        move, rate = (free_increment(x[:, at : at + many]) for x in (states.move, states.rate))
        T[:, g], E[:, g] = se3_tangent(move), se3_Ad(se3_exp(-move))
        if rates:
            twist = np.einsum("nij,nj->ni", T[:, g], rate)
            W[:, g] = se3_tangent_dot(move, rate) + se3_ad(twist) @ T[:, g]
    return T.reshape(rows, -1), E.reshape(rows, -1), W.reshape(rows, -1)


def input_columns(model: Model, states: StageStates) -> np.ndarray:
    """∂(B u)/∂u at each state, shape (rows, nv, nu)."""
    out = np.zeros((len(states.t), model.nv, model.nu))
    if not model.nu:
        return out
    for part in _launches(model, len(states.t)):
        out[part] = input_response(model, states.q[part], states.u[part])
    out[:, model.prescribed.dof] = 0.0
    return out
