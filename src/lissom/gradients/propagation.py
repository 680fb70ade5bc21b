"""Propagation of derivatives along a rollout, forwards from its start and backwards from its end.

Matrices of single steps follow from the forward recursion too, by LAPACK, which solves for all directions of one step
at once. The equations are those of recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.configuration import quaternion_joints
from lissom.errors import ConvergenceError, ShapeError
from lissom.gradients.anchors import anchor_carries, anchor_moves, anchor_pulls, rows_of
from lissom.gradients.designs import Designs, DesignSlopes, start_rows
from lissom.gradients.recursion import AnchorChanges, StageSystems
from lissom.gradients.stage_systems import input_columns, stage_systems
from lissom.gradients.starts import model_anchors, momentum_slopes
from lissom.gradients.steps import Path
from lissom.launch.workspace import batch_of
from lissom.robot import formatting

if TYPE_CHECKING:
    from lissom.gradients.rollout import Rollout

_MOST_BYTES = 2**24  # of the arrays of one stretch of steps, without its systems


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Gradient:
    """Derivatives of a function of a motion. Several functions and a batch add leading axes.

    Fields:
        q0, v0: with respect to the initial state, q0 in the tangent space of `integrate`, (nv,).
        u: with respect to the inputs of each step, (steps, nu). Under a feedback law these are the inputs that are
            added to its output, in closed loop.
        parameters: with respect to design values by path, in the shape of each. The derivative with respect to a pose
            is that with respect to an increment (w; u) on its right, (6,).
    """

    q0: np.ndarray
    v0: np.ndarray
    u: np.ndarray
    parameters: dict[str, np.ndarray]


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of a motion along a direction. Several directions and a batch add leading axes.

    Fields:
        q, v, a: increments at all times, (n, nv), q in the tangent space of `integrate`.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


def propagate_backward(rollout: Rollout, given: dict[str, Any], parameters: Sequence[str]) -> Gradient:
    """Gradient of a function of the motion, as `Rollout.backward` returns it.

    Args:
        given: derivatives of the function with respect to q, v and a: the arguments "dL_dq", "dL_dv" and "dL_da" of
            `Rollout.backward`, by name.
        parameters: paths of the design values.
    """
    model, lead = rollout.common, rollout.lead
    seeds, extra = _direction_rows(rollout, given, (len(rollout.t), model.nv))
    by_q, by_v, by_a = seeds.values()
    nv, m, (n, directions) = model.nv, model.n_rows, by_q.shape[:2]
    state, z = np.zeros((n, directions, 4 * nv)), np.zeros((n, directions, rollout.path.anchors[0, 0].size))
    by_u = np.zeros((n, directions, rollout.steps, model.nu))
    designs = Designs(model, tuple(parameters), n)
    by_design, start_slopes = np.zeros((n, directions, designs.count)), (np.zeros(0),) * 3
    for path in rollout.stretches(_most_steps(rollout, directions, designs.count), back=True):
        systems, states = stage_systems(model, rollout.stepping, path)
        seeds_of_steps = np.zeros((n, directions, path.steps, 3 * nv + m))
        ends = np.arange(path.first + 1, path.first + path.steps + 1)
        recorded = np.flatnonzero(ends % rollout.every == 0)
        at = ends[recorded] // rollout.every
        seeds_of_steps[:, :, recorded, : 3 * nv] = np.concatenate([x[:, :, at] for x in seeds.values()], axis=-1)
        anchor_changes = systems.anchor_changes(z)
        mu = systems.backward(seeds_of_steps, state, anchor_changes)
        shape = (n, path.steps, systems.stages)
        B = input_columns(model, states).reshape(*shape, nv, model.nu)
        by_u[:, :, path.first : path.first + path.steps] = np.einsum("nmksj,nksju->nmku", mu[..., :nv], B)
        if designs.count:
            if path.first:
                slopes = designs.slopes(states)
            else:
                start_inputs = rollout.stepping.start_inputs(rollout.path)
                slopes, start_slopes = designs.slopes_with_start(states, rollout.path, start_inputs)
            by_residual = slopes.residual.reshape(*shape, designs.count, nv + m)
            by_design -= np.einsum("nmksj,nkspj->nmp", mu, _in_units_of_rows(by_residual, systems))
            for motion, place, slope in _anchor_design_slopes(slopes, systems):
                by_design[motion] += np.einsum("mre,rpe->mp", _by_rows(anchor_changes, motion)[:, place], slope)
    by_q, by_v = state[..., :nv] + by_q[:, :, 0], state[..., nv : 2 * nv] + by_v[:, :, 0]
    onto_a = state[..., 2 * nv : 3 * nv] + state[..., 3 * nv :] + by_a[:, :, 0]
    s = rollout.start_derivatives
    mu = onto_a @ s.solve[:, :nv]
    by_q, by_v = by_q - mu @ s.by_q + z @ s.moved[..., :nv], by_v - mu @ s.by_v + z @ s.moved[..., nv:]
    by_u[:, :, 0] += mu @ s.B
    by_q = by_q + by_v @ s.carried
    if designs.count:
        slopes, gap, rate = start_slopes
        by_design -= np.einsum("nmj,npj->nmp", mu, slopes)
        by_design += np.einsum("nmj,npj->nmp", z + mu[..., :nv] @ s.pull, _start_anchor_slopes(designs, rollout.path))
        by_design += np.einsum("nmj,npj->nmp", by_q @ s.gap, gap) + np.einsum("nmj,npj->nmp", by_v @ s.rate, rate)
        by_design += np.einsum("nmj,npj->nmp", by_v @ s.struck, momentum_slopes(designs, rollout.path.q[:, 0], s))

    def out(x: np.ndarray) -> np.ndarray:
        return np.swapaxes(x, 0, 1).reshape((*extra, *lead, *x.shape[2:]))

    return Gradient(out(by_q @ s.onto_q), out(by_v @ s.onto_v), out(by_u), designs.split(out(by_design)))


def propagate_forward(rollout: Rollout, given: dict[str, Any], parameters: dict[str, Any]) -> Sensitivity:
    """Directional derivatives of the motion, as `Rollout.forward` returns them.

    Args:
        given: increments of q0, v0 and u: the arguments "dq0", "dv0" and "du" of `Rollout.forward`, by name.
        parameters: increments of design values by path.
    """
    model, lead = rollout.common, rollout.lead
    nv, m, steps = model.nv, model.n_rows, rollout.steps
    designs = Designs(model, tuple(parameters), batch_of(lead))
    dp = designs.joined(parameters)
    du = {"du": given.pop("du")}
    front = (dp.shape[:-1] if dp is not None else (),)
    extra = _extra_axes(rollout, {name: (x, 1) for name, x in given.items()} | {"du": (du["du"], 2)}, *front)
    dq0, dv0 = _direction_rows(rollout, given, (nv,), extra)[0].values()
    input_changes = _direction_rows(rollout, du, (steps, model.nu), extra)[0]["du"]
    n, directions = dq0.shape[:2]
    if dp is not None:
        dp = np.broadcast_to(dp, (*extra, designs.count)).reshape(directions, designs.count)
    s = rollout.start_derivatives
    dq, dv = dq0 @ _transposed(s.onto_q), dv0 @ _transposed(s.onto_v)
    right = input_changes[:, :, 0] @ _transposed(s.B)
    z = np.zeros((n, directions, rollout.path.anchors[0, 0].size))
    if dp is not None:
        slopes, gap, rate = designs.start_slopes(*start_rows(rollout.path, rollout.stepping.start_inputs(rollout.path)))
        dq = dq + np.einsum("npj,mp->nmj", gap, dp) @ _transposed(s.gap)
        dv = dv + np.einsum("npj,mp->nmj", rate, dp) @ _transposed(s.rate)
        struck = np.einsum("npj,mp->nmj", momentum_slopes(designs, rollout.path.q[:, 0], s), dp)
        dv = dv + struck @ _transposed(s.struck)
        right = right - np.einsum("npj,mp->nmj", slopes, dp)
        z = np.einsum("npj,mp->nmj", _start_anchor_slopes(designs, rollout.path), dp)
        right[..., :nv] += z @ _transposed(s.pull)
    dv = dv + dq @ _transposed(s.carried)
    z = z + np.concatenate([dq, dv], axis=-1) @ _transposed(s.moved)
    da = ((right - dq @ _transposed(s.by_q) - dv @ _transposed(s.by_v)) @ _transposed(s.solve))[..., :nv]
    state = np.ascontiguousarray(np.concatenate([dq, dv, da, da], axis=-1))
    found = np.zeros((n, directions, len(rollout.t), 3 * nv))
    found[:, :, 0] = state[..., : 3 * nv]
    for path in rollout.stretches(_most_steps(rollout, directions, designs.count)):
        systems, states = stage_systems(model, rollout.stepping, path)
        shape = (n, path.steps, systems.stages)
        forcing = np.zeros((n, directions, path.steps, systems.stages, nv + m))
        B = input_columns(model, states).reshape(*shape, nv, model.nu)
        u_changes = input_changes[:, :, path.first : path.first + path.steps]
        forcing[..., :nv] = np.einsum("nksju,nmku->nmksj", B, u_changes)
        anchor_changes = systems.anchor_changes(z)
        if dp is not None:
            slopes = designs.slopes(states)
            by_residual = slopes.residual.reshape(*shape, designs.count, nv + m)
            forcing -= np.einsum("nkspj,mp->nmksj", _in_units_of_rows(by_residual, systems), dp)
            for motion, place, slope in _anchor_design_slopes(slopes, systems):
                _by_rows(anchor_changes, motion)[:, place] = np.einsum("rpe,mp->mre", slope, dp)
        rows = systems.forward(forcing, state, anchor_changes)
        ends = np.arange(path.first + 1, path.first + path.steps + 1)
        recorded = np.flatnonzero(ends % rollout.every == 0)
        found[:, :, ends[recorded] // rollout.every] = rows[:, :, recorded, : 3 * nv]
    rows = np.swapaxes(found, 0, 1).reshape(*extra, *lead, len(rollout.t), 3, nv)
    return Sensitivity(*(rows[..., k, :] for k in range(3)))


def step_matrices(rollout: Rollout) -> tuple[np.ndarray, np.ndarray]:
    """A (motions, steps, size, size) and B (motions, steps, size, nu) of `Rollout.step_matrices`. Each step is treated
    as a motion, and each number of its state and inputs as a direction."""
    nu, size = rollout.common.nu, 4 * rollout.common.nv + rollout.path.anchors[0, 0].size
    n = batch_of(rollout.lead)
    A, B = np.zeros((n, rollout.steps, size, size)), np.zeros((n, rollout.steps, size, nu))
    start = np.eye(size, size + nu)
    for path in rollout.stretches(_most_steps(rollout, size + nu, 0)):
        found = path_matrices(rollout, path, start)
        rows = slice(path.first, path.first + path.steps)
        A[:, rows], B[:, rows] = found[..., :size], found[..., size:]
    return A, B


def path_matrices(rollout: Rollout, path: Path, start: np.ndarray, *, accelerations: bool = True) -> np.ndarray:
    """Increments (δq, δv, δa, δâ) at the end of each step of a path, shape (motions, steps, 4 nv, directions).

    If contacts stick, the increments of all anchors follow, 6 n_pairs more.

    Args:
        start: these increments at the start of each step, (..., 4 nv, directions). The last nu directions are unit
            increments of the inputs.
        accelerations: whether δa and δâ are returned; otherwise the result has 2 nv rows.
    """
    model = rollout.common
    systems, states = stage_systems(model, rollout.stepping, path)
    nv, nu, n, directions = model.nv, model.nu, len(path.q), start.shape[-1]
    B = input_columns(model, states).reshape(n, path.steps, systems.stages, nv, nu)
    found = np.empty((n, path.steps, start.shape[-2] - (0 if accelerations else 2 * nv), directions))
    for window in systems.matrices():
        rows = n * systems.window
        forcing = np.zeros((rows, systems.stages, systems.unknowns, directions))
        forcing[..., :nv, directions - nu :] = B[:, window].reshape(rows, systems.stages, nv, nu)
        starts = np.broadcast_to(start, (rows, *start.shape[-2:]))
        ends = step_ends(systems, window, forcing, starts, accelerations=accelerations)
        found[:, window] = ends.reshape(n, systems.window, *ends.shape[-2:])
    return found


def step_ends(
    systems: StageSystems, window: slice, forcing: np.ndarray, start: np.ndarray, *, accelerations: bool = True
) -> np.ndarray:
    """Increments (δq, δv, δa, δâ) at the end of each step of a window, shape (rows, 4 nv, directions). If contacts
    stick, the increments of the anchors follow.

    Args:
        systems: with the matrices of the window, not factored.
        forcing: f of (2) of recursion in each stage, (rows, stages, unknowns, directions).
        start: δq, δv, δa, δâ and increments of anchors at the start of each step, (rows, 4 nv + 6 n_pairs, directions).
        accelerations: whether δa and δâ are returned.
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
    K, A_q, D, M = (_matrix_rows(systems, x, len(start)) for x in (given.K, given.A_q, given.D, given.M))
    A_v = _matrix_rows(systems, given.A_v, len(start)) if given.A_v.shape[1] else None
    for s in range(stages):
        p, to_w, to_ahead = _weights(systems, window, s)
        turns = _pose_maps(systems, window, s)
        adds_rates, c1 = systems.rates and bool(turns), to_w[0] / p[0]
        move, rate = _weighted_sum(p[1:], known), _weighted_sum(to_w[1:], known)  # k of (1)
        at, speed = _stage_changes(q, move, rate, turns, adds_rates)
        right = forcing[:, s].copy()  # few large arrays: allocating them takes longer than computing with them
        if anchors is not None:
            right[:, :nv] += anchor_pulls(anchors, nv, each[..., s].ravel()) @ z
        spare = K[:, s] @ at
        right[:, :nv] -= spare
        right[:, :nv] -= np.matmul(D[:, s], speed, out=spare)
        if adds_rates:
            right[:, :nv] -= c1 * (M[:, s] @ (speed - rate))
        if systems.unknowns > nv:
            right[:, nv:] -= A_q[:, s] @ at / p[0]
            right[:, nv:] -= 0.0 if A_v is None else A_v[:, s] @ speed / p[0]
        right *= systems.units.reshape(-1, stages, systems.unknowns, 1)[: len(start), s]
        x = _solve(S[:, s], right)[:, :nv]  # (2)
        move += np.multiply(x, p[0], out=spare)  # (1)
        rate += np.multiply(x, to_w[0], out=spare)
        at, speed = _stage_changes(q, move, rate, turns, adds_rates)  # (3)
        if accelerations or s < stages - 1:
            ahead = _weighted_sum(to_ahead, [x, *known])
            known += [move, rate, x + c1 * (speed - rate) if adds_rates else x]
    found = [at, speed, known[-1], ahead] if accelerations else [at, speed]
    if anchors is not None:
        last = each[..., -1].ravel()
        moved = anchor_moves(anchors, nv, last) @ np.concatenate([at, speed], axis=1)
        found.append(moved + anchor_carries(anchors, nv, last) @ z)
    return np.concatenate(found, axis=1)


def _matrix_rows(systems: StageSystems, X: Any, rows: int) -> np.ndarray:
    """Matrices of a window without padding, shape (rows, stages, ..., nv)."""
    whole = X.numpy()
    whole = whole.reshape(len(whole), -1, systems.width)[: rows * systems.stages, :, : systems.nv]
    return whole.reshape(rows, systems.stages, -1, systems.nv)


def _pose_maps(systems: StageSystems, window: slice, s: int) -> list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
    """The slice of coordinates and the maps T, E and W of each stored pose in a stage."""
    found, each = [], (systems.count, systems.steps, systems.stages, len(systems.group), 6, 6)
    for g, (at, many) in enumerate(systems.group):
        T, E, W = (x.reshape(each)[:, window, s, g, :many, :many].reshape(-1, many, many) for x in systems.turns)
        found.append((slice(at, at + many), T, E, W))
    return found


def _weights(systems: StageSystems, window: slice, s: int) -> Any:
    """Weights of Δ, w and â in stage s, as (3, n) numbers, or if the steps of the window differ in their scheme as
    (3, n, rows, 1, 1) arrays."""
    scheme = systems.scheme[:, window].ravel()
    own = systems.weights[:, s].reshape(2, 3, -1)
    if (scheme == scheme[0]).all():
        return own[scheme[0]]
    return np.moveaxis(own[scheme], 0, -1)[..., None, None]


def _weighted_sum(weights: Any, values: list[np.ndarray]) -> np.ndarray:
    """Weighted sum of arrays; those with weight zero are skipped."""
    out = None
    for weight, value in zip(weights, values):
        if np.any(weight != 0.0):
            out = weight * value if out is None else np.add(out, weight * value, out=out)
    return np.zeros(values[0].shape) if out is None else out


def _stage_changes(
    q: np.ndarray, move: np.ndarray, rate: np.ndarray, turns: list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]],
    adds_rates: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """E δq + T δΔ, and T δw + W δΔ if poses integrate rates, else δw."""
    at = q + move
    for block, T, E, _ in turns:
        at[:, block] = E @ q[:, block] + T @ move[:, block]
    if not adds_rates:
        return at, rate
    speed = rate.copy()
    for block, T, _, W in turns:
        speed[:, block] = T @ rate[:, block] + W @ move[:, block]
    return at, speed


def _solve(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(S, right)
    except np.linalg.LinAlgError:
        rule = "a step has no derivative, its matrix is singular; take a shorter dt"
        raise ConvergenceError(f"rollout: {rule}") from None


def _transposed(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _anchor_design_slopes(slopes: DesignSlopes, systems: StageSystems) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """For each motion: its index, the places of the contact pairs at the ends of steps among its rows of pairs, and the
    derivatives of the anchors there with respect to design values, (rows, count, 6)."""
    rows = systems.anchors
    if rows is None:
        return
    of_motion = systems.steps * systems.stages
    for i in range(systems.count):
        first = i * of_motion
        _, place = rows_of(rows, first + systems.stages * np.arange(1, systems.steps + 1) - 1)
        yield i, place - rows.begin[first], slopes.anchor[place]  # both list the same pairs in the same order


def _by_rows(changes: AnchorChanges | None, motion: int) -> np.ndarray:
    """Increments of the anchors of one motion for each row of a contact pair, (directions, rows, 6)."""
    assert changes is not None
    return changes.moves[motion].reshape(changes.moves.shape[1], -1, 6)


def _start_anchor_slopes(designs: Designs, path: Path) -> np.ndarray:
    """Derivatives of the initial anchors with respect to design values, (n, count, 6 n_pairs)."""
    first = path.state(0)
    return designs.anchor_slopes(model_anchors(designs.model, len(path.q)), first["q"], first["v"])


def _in_units_of_rows(slopes: np.ndarray, systems: StageSystems) -> np.ndarray:
    """Derivatives (..., stages, p, unknowns), with constraint rows in the units of the systems. Changes the array."""
    slopes[..., systems.nv :] /= systems.weights[systems.scheme][..., 0][..., None, None]
    return slopes


def _most_steps(rollout: Rollout, directions: int, designs: int) -> int:
    """Largest number of steps whose intermediate arrays fit into _MOST_BYTES."""
    model = rollout.common
    rows = batch_of(rollout.lead) * len(rollout.method.stages)
    whole = model.nv + model.n_rows
    one = 8 * (model.nv * model.nu + whole * (8 + 2 * directions + designs) + 108 * len(quaternion_joints(model)))
    in_contact = np.isfinite(rollout.path.anchors[..., 0]).sum(axis=-1).max(initial=0)
    one += 8 * int(in_contact) * (18 * model.nv + 36)
    return max(1, _MOST_BYTES // max(one * rows, 1))


def _extra_axes(rollout: Rollout, given: dict[str, tuple[Any, int]], *more: tuple[int, ...]) -> tuple[int, ...]:
    """Axes in front of those of the batch. given: arguments by name, each with the number of its last axes that belong
    to neither."""
    lead = rollout.lead
    found = [np.shape(x)[: np.ndim(x) - axes] for x, axes in given.values() if x is not None]
    try:
        whole = np.broadcast_shapes(lead, *found)
        front = whole[: len(whole) - len(lead)]
        extra = np.broadcast_shapes(front, *more)
    except ValueError:
        raise ShapeError(f"leading axes do not broadcast: {', '.join(map(str, (lead, *found)))}") from None
    if whole[len(front) :] != lead:
        raise ShapeError(f"leading axes: expected (..., {', '.join(map(str, lead))}), got {whole}")
    return extra


def _direction_rows(
    rollout: Rollout, given: dict[str, Any], core: tuple[int, ...], extra: tuple[int, ...] | None = None
) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """Arguments as arrays (motions, directions, *core) by name, and the leading axes of the directions."""
    arrays: dict[str, Any] = {}
    for name, value in given.items():
        x = None if value is None else np.asarray(value, dtype=np.float64)
        if x is not None and (x.ndim < len(core) or x.shape[x.ndim - len(core) :] != core):
            raise ShapeError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {x.shape}")
        if x is not None and not np.isfinite(x).all():
            raise ShapeError(f"{name}: must be finite, got NaN or infinity")
        arrays[name] = x
    front = _extra_axes(rollout, {k: (x, len(core)) for k, x in arrays.items()}) if extra is None else extra
    n, directions = batch_of(rollout.lead), batch_of(front)
    out = {}
    for name, x in arrays.items():
        whole = np.zeros(core) if x is None else x
        flat = np.broadcast_to(whole, (*front, *rollout.lead, *core)).reshape(directions, n, *core)
        out[name] = np.swapaxes(flat, 0, 1)
    return out, front
