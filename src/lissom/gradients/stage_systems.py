"""States of the stages of a path, and the linear systems (2) of recursion at these states."""

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
from lissom.gradients.recursion import Matrices, Sizes, StageSystems
from lissom.launch.workspace import Workspace, row_slices
from lissom.lie.arrays import se3_Ad, se3_ad, se3_exp, se3_tangent, se3_tangent_dot
from lissom.model.model import Model
from lissom.passes.columns import column_width
from lissom.stepping.feedback import NativeLaw
from lissom.stepping.schemes import Scheme, implicit_euler
from lissom.systems.bordered import bordered_width, scale_array

if TYPE_CHECKING:
    from lissom.gradients.steps import FixedSteps, Path

_ROWS = 64  # states in one launch of derivatives
_MOST_BYTES = 2**21  # of the matrices and systems of a window
_NAMES = ("dq", "dv", "da", "A", "A_q", "slot")


@final
@dataclass(frozen=True)
class StageStates:
    """The states at the ends of the stages of a path, in rows: all stages of all steps of one motion after another.

    Fields:
        q, v, a, u, force, t: of each state; u with the inputs of a feedback law. move, rate: Δ and its rate, for robots
        with stored poses; otherwise None.
        anchors: of contacts before the end of the stage, (rows, n_pairs, 6); None: those of the model.
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


def stage_states(model: Model, stepping: FixedSteps, path: Path) -> StageStates:
    """The states of all stages. `force` is None for schemes of several stages, whose steps do not store it."""
    n, steps, before = path.earlier.shape[:3]
    start, has_groups = path.q[:, :-1], bool(quaternion_joints(model))
    move = rate = None
    v, a = path.v[:, 1:, None], path.a[:, 1:, None]
    q = path.q[:, 1:, None]
    if has_groups:
        move = difference(model, start, path.q[:, 1:])[:, :, None]
        rate = apply_tangent_operator(model, move, v, invert=True) if stepping.scheme.follows_rates else v
    if before:
        moves, rates, found = (path.earlier[:, :, :, k] for k in range(3))
        speeds = apply_tangent_operator(model, moves, rates) if has_groups and stepping.scheme.follows_rates else rates
        q = np.concatenate([integrate(model, start[:, :, None], moves), q], axis=2)
        v, a = np.concatenate([speeds, v], axis=2), np.concatenate([found, a], axis=2)
        if move is not None and rate is not None:
            move, rate = np.concatenate([moves, move], axis=2), np.concatenate([rates, rate], axis=2)
    times = np.broadcast_to(stepping.times(path.first, steps), (n, steps, before + 1))
    u = np.repeat(path.u.reshape(n * steps, -1), before + 1, axis=0)
    rows = [None if x is None else x.reshape(n * steps * (before + 1), -1) for x in (q, v, a, move, rate)]
    force = path.force[:, 1:].reshape(n * steps, -1) if not before else None
    anchors = path.anchors[:, :-1]
    anchors = np.repeat(anchors.reshape(n * steps, *anchors.shape[2:]), before + 1, axis=0)
    q, v, a, move, rate = rows
    assert q is not None and v is not None and a is not None
    u = stepping.inputs(u, times.ravel(), q, v)
    return StageStates(q, v, a, u, force, times.ravel(), move, rate, anchors)


def stage_weights(scheme: Scheme, h: float) -> np.ndarray:
    """Weights of x, vₙ, aₙ, âₙ and of Δ, w, a of earlier stages in Δ, w and â of each stage: of the scheme, and of
    implicit Euler as the last stage, which does not use the earlier ones.

    Args:
        h: size of the steps [s].
    Returns:
        weights, shape (2, stages, 3 (4 + 3 (stages − 1))).
    """
    count = len(scheme.stages)
    units = np.array([h**2, h, h**2, h**2] + [1.0, h, h**2] * (count - 1))
    both = np.zeros((2, count, 3, len(units)))
    for rows, stages in zip(both, (scheme.stages, (*scheme.stages[:-1], *implicit_euler().stages))):
        for row, stage in zip(rows, stages):
            for order, own in enumerate((stage.position, stage.velocity, stage.ahead)):
                row[order, : len(own)] = np.array(own) * units[: len(own)] / h**order
    return both.reshape(2, count, -1)


def stage_systems(model: Model, stepping: FixedSteps, path: Path) -> tuple[StageSystems, StageStates]:
    """The systems of a path, and the states of its stages."""
    states = stage_states(model, stepping, path)
    weights = stage_weights(stepping.scheme, stepping.dt)
    if states.force is None:
        states = replace(states, force=loop_forces(model, states))
    (n, steps), found = path.earlier.shape[:2], quaternion_joints(model)
    turns = stepping.scheme.follows_rates and bool(found)
    group = np.array([[j, 6 if free else 3] for _, j, free in found], dtype=np.int32).reshape(-1, 2)
    none = np.zeros((len(states.t), 1))
    maps = _pose_maps(states, group, turns) if len(group) else (none, none, none)
    nv, width, unknowns = model.nv, column_width(model), model.nv + model.n_rows
    padded = bordered_width(model)
    stages = weights.shape[1]
    window = _window(model, n * stages, steps, unknowns * padded)
    work, given = _derivative_arrays(model, n * window * stages, states.anchors)
    fill = partial(_fill_window, model, stepping.law, work, given, states, n, window * stages, stages)
    sizes, own = Sizes(n, steps, window, nv, width, unknowns, padded), states.anchors
    anchors = anchor_rows(model, own, states.q, states.v) if own is not None and own.size else None
    both = weights, path.scheme
    systems = StageSystems(sizes, *both, turns, group, maps, scale_array(model), states.t, given, fill, anchors)
    return systems, states


def _window(model: Model, each: int, steps: int, size: int) -> int:
    """Number of steps of a window whose matrices stay in the processor's cache.

    Args:
        each: states of one step. steps: all steps. size: numbers of one system.
    """

    most = _MOST_BYTES // (8 * (3 * model.nv * column_width(model) + 2 * size) * each)
    return -(-steps // -(-steps // max(1, min(most, _ROWS // each))))


def _derivative_arrays(model: Model, rows: int, anchors: np.ndarray | None) -> tuple[Workspace, Matrices]:
    """The workspace for derivatives of the residual at `rows` states, and the arrays of its results on the CPU."""
    none = {"q": np.zeros((rows, model.nq)), "u": np.zeros((rows, model.nu))}
    none |= dict.fromkeys(("v", "a"), np.zeros((rows, model.nv)))
    workspace, _ = derivative_workspace(model, **none, anchors=None if anchors is None else anchors[:rows])
    arrays = workspace.buffers.on_device
    if model.device != "cpu":
        arrays = {name: wp.array(workspace.host[name], device="cpu") for name in _NAMES}
    size = model.n_rows * column_width(model) if model.rate_rows.any() else 0
    slips = wp.zeros((rows, size), dtype=wp.float64, device="cpu")
    return workspace, Matrices(*(arrays[name] for name in _NAMES), A_v=slips)


def _fill_window(
    model: Model, law: NativeLaw | None, workspace: Workspace, given: Matrices, states: StageStates, n: int, each: int,
    stages: int, first: int,
) -> None:  # fmt: skip
    """Compute the derivatives at the states of a window. Rows and columns of prescribed coordinates are those of 0 in
    K and D and of the identity in M.

    Args:
        law: a feedback law, which adds −B ∂u/∂q and −B ∂u/∂v. n: motions. each: states of a motion in the window.
        stages: of a step. first: first step of the window.
    """

    def of_window(x: np.ndarray) -> np.ndarray:
        rows = x.reshape(n, len(x) // n, *x.shape[1:])[:, first * stages : first * stages + each]
        return rows.reshape(n * each, *x.shape[1:])

    assert states.force is not None
    arrays = {name: of_window(getattr(states, name)) for name in ("q", "v", "a", "u")}
    workspace.fill((n * each,), **arrays)
    if states.anchors is not None and states.anchors.size:
        workspace.put_anchors(of_window(states.anchors))
    run_residual_derivatives(model, workspace, of_window(states.t), inputs=True, force=of_window(states.force))
    workspace.raise_for_status()
    prescribed, width = model.prescribed.dof, column_width(model)
    if model.python_forces:
        found = python_responses(model, arrays["q"], arrays["v"], arrays["u"], of_window(states.t))
        for name, change in zip(("dq", "dv"), found):
            workspace.host[name].reshape(n * each, -1, width)[..., : model.nv] += change
    if law is not None:
        B = input_response(model, arrays["q"], arrays["v"], arrays["u"], of_window(states.t))
        for name, slope in zip(("dq", "dv"), law.derivatives_over(of_window(states.t), arrays["q"], arrays["v"])):
            workspace.host[name].reshape(n * each, -1, width)[..., : model.nv] -= B @ slope
    if len(prescribed):
        for name, diagonal in (("dq", 0.0), ("dv", 0.0), ("da", 1.0)):
            square = workspace.host[name].reshape(n * each, -1, width)
            square[:, prescribed], square[:, :, prescribed] = 0.0, 0.0
            square[:, prescribed, prescribed] = diagonal
        for name in ("A", "A_q"):
            workspace.host[name].reshape(n * each, -1, width)[..., prescribed] = 0.0
    if given.A_v.shape[1]:
        A, A_q, rate_q = (workspace.host[name].reshape(n * each, -1, width) for name in ("A", "A_q", "rate_q"))
        A_q[:, model.rate_rows] = rate_q[:, model.rate_rows]
        A_q[..., prescribed] = 0.0
        given.A_v.numpy().reshape(len(given.A_v), -1, width)[: n * each] = A * model.rate_rows[:, None]
    if model.device != "cpu":
        for array, name in zip((getattr(given, field.name) for field in fields(given)), _NAMES):
            array.numpy()[: n * each] = workspace.host[name]


def _launches(model: Model, count: int) -> Iterator[slice]:
    """Ranges of rows for one launch each. A batch of models needs all rows in one launch."""
    return row_slices(count, count if model.models else _ROWS)


def loop_forces(model: Model, states: StageStates) -> np.ndarray:
    """λ of least norm at states whose steps do not store it, shape (rows, n_rows)."""
    out = np.zeros((len(states.t), model.n_rows))
    if not model.n_rows:
        return out
    for part in _launches(model, len(states.t)):
        rows, anchors = (states.q[part], states.v[part], states.a[part], states.u[part]), states.anchors
        own = None if anchors is None else anchors[part]
        residual = run_residual(model, *rows, states.t[part], anchors=own).host["tau"].copy()
        work, lead = run_constraints(model, states.q[part])
        A = row_results(model, work, "A", lead)
        A[..., model.prescribed.dof] = 0.0
        out[part] = np.einsum("nrj,nj->nr", np.linalg.pinv(np.swapaxes(A, -1, -2), rcond=1e-10), residual)
    return out


def _pose_maps(states: StageStates, group: np.ndarray, rates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T(Δ), E = Ad(exp Δ)⁻¹ and W = ∂(T(Δ) w)/∂Δ of each stored pose, as rows of 36 numbers.

    W = Ṫ + ad_V T with Ṫ along w and V = T w, for poses that integrate rates; otherwise W is zero.
    """
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
        out[part] = input_response(model, states.q[part], states.v[part], states.u[part], states.t[part])
    out[:, model.prescribed.dof] = 0.0
    return out
