"""Derivatives of a rollout carried on from its start to its end, or back from its end to its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.configuration import groups
from lissom.errors import ShapeError
from lissom.gradients.dense_steps import ends_of_steps
from lissom.gradients.designs import Designs
from lissom.gradients.recursion import StageSystems
from lissom.gradients.stage_systems import input_columns, stage_systems
from lissom.gradients.steps import Path
from lissom.launch.workspace import batch_of

if TYPE_CHECKING:
    from lissom.gradients.rollout import Rollout

_MOST_BYTES = 2**24  # of what is kept of the steps of one stretch beside their systems


@final
@dataclass(frozen=True)
class Gradient:
    """Derivatives of a function of a motion (functions and a batch add leading axes).

    Fields:
        q0, v0: by the start, q0 in the tangent space of `integrate`, (nv,). u: by the inputs of each step, (steps, nu).
        parameters: by design values, of the shape of each; by a pose as by an increment (w; u) on its right, (6,).
    """

    q0: np.ndarray
    v0: np.ndarray
    u: np.ndarray
    parameters: dict[str, np.ndarray]


@final
@dataclass(frozen=True)
class Sensitivity:
    """How a motion changes along a direction (directions and a batch add leading axes).

    Fields:
        q, v, a: changes at all times, (n, nv), of q in the tangent space of `integrate`.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


def carried_back(rollout: Rollout, given: dict[str, Any], parameters: Sequence[str]) -> Gradient:
    """What `Rollout.backward` returns."""
    model, lead = rollout.common, rollout.lead
    seeds, extra = direction_rows(rollout, given, (len(rollout.t), model.nv))
    by_q, by_v, by_a = seeds.values()
    nv, m, (n, many) = model.nv, model.n_rows, by_q.shape[:2]
    state, by_u = np.zeros((n, many, 4 * nv)), np.zeros((n, many, rollout.steps, model.nu))
    designs = Designs(model, tuple(parameters), n)
    by_design = np.zeros((n, many, designs.count))
    for path in rollout.stretches(longest_stretch(rollout, many, designs.count), back=True):
        systems, states = stage_systems(model, rollout.stepping, path)
        left = np.zeros((n, many, path.steps, 3 * nv + m))
        ends = np.arange(path.first + 1, path.first + path.steps + 1)
        to = np.flatnonzero(ends % rollout.every == 0)
        left[:, :, to, : 3 * nv] = np.concatenate([x[:, :, ends[to] // rollout.every] for x in seeds.values()], axis=-1)
        mu = systems.backward(left, state)
        each = (n, path.steps, systems.stages)
        B = input_columns(model, states).reshape(*each, nv, model.nu)
        by_u[:, :, path.first : path.first + path.steps] = np.einsum("nmksj,nksju->nmku", mu[..., :nv], B)
        if designs.count:
            slopes = designs.slopes(states).reshape(*each, designs.count, nv + m)
            by_design -= np.einsum("nmksj,nkspj->nmp", mu, scaled(slopes, systems))
    by_q, by_v = state[..., :nv] + by_q[:, :, 0], state[..., nv : 2 * nv] + by_v[:, :, 0]
    onto_a = state[..., 2 * nv : 3 * nv] + state[..., 3 * nv :] + by_a[:, :, 0]
    s = rollout.starts
    mu = onto_a @ s.solve[:, :nv]
    by_q, by_v = by_q - mu @ s.by_q, by_v - mu @ s.by_v
    by_u[:, :, 0] += mu @ s.B
    by_q = by_q + by_v @ s.carried
    if designs.count:
        slopes, gap, rate = designs.start_slopes(rollout.path)
        by_design -= np.einsum("nmj,npj->nmp", mu, slopes)
        by_design += np.einsum("nmj,npj->nmp", by_q @ s.gap, gap) + np.einsum("nmj,npj->nmp", by_v @ s.rate, rate)
    shape = (*extra, *lead)

    def out(x: np.ndarray) -> np.ndarray:
        return np.swapaxes(x, 0, 1).reshape((*shape, *x.shape[2:]))

    return Gradient(out(by_q @ s.onto_q), out(by_v @ s.onto_v), out(by_u), designs.split(out(by_design)))


def carried_forward(rollout: Rollout, given: dict[str, Any], parameters: dict[str, Any]) -> Sensitivity:
    """What `Rollout.forward` returns."""
    model, lead = rollout.common, rollout.lead
    nv, m, steps = model.nv, model.n_rows, rollout.steps
    designs = Designs(model, tuple(parameters), batch_of(lead))
    moved = designs.joined(parameters)
    du = {"du": given.pop("du")}
    more = (moved.shape[:-1] if moved is not None else (),)
    extra = extra_axes(rollout, {name: (x, 1) for name, x in given.items()} | {"du": (du["du"], 2)}, *more)
    starting, _ = direction_rows(rollout, given, (nv,), extra)
    along = direction_rows(rollout, du, (steps, model.nu), extra)[0]["du"]
    dq0, dv0 = starting.values()
    n, many = dq0.shape[:2]
    dp = None if moved is None else np.broadcast_to(moved, (*extra, designs.count)).reshape(many, designs.count)
    s = rollout.starts
    dq, dv = dq0 @ _t(s.onto_q), dv0 @ _t(s.onto_v)
    right = along[:, :, 0] @ _t(s.B)
    if dp is not None:
        slopes, gap, rate = designs.start_slopes(rollout.path)
        dq = dq + np.einsum("npj,mp->nmj", gap, dp) @ _t(s.gap)
        dv = dv + np.einsum("npj,mp->nmj", rate, dp) @ _t(s.rate)
        right = right - np.einsum("npj,mp->nmj", slopes, dp)
    dv = dv + dq @ _t(s.carried)
    da = ((right - dq @ _t(s.by_q) - dv @ _t(s.by_v)) @ _t(s.solve))[..., :nv]
    state = np.ascontiguousarray(np.concatenate([dq, dv, da, da], axis=-1))
    found = np.zeros((n, many, len(rollout.t), 3 * nv))
    found[:, :, 0] = state[..., : 3 * nv]
    for path in rollout.stretches(longest_stretch(rollout, many, designs.count)):
        systems, states = stage_systems(model, rollout.stepping, path)
        each = (n, path.steps, systems.stages)
        forcing = np.zeros((n, many, path.steps, systems.stages, nv + m))
        B = input_columns(model, states).reshape(*each, nv, model.nu)
        some = along[:, :, path.first : path.first + path.steps]
        forcing[..., :nv] = np.einsum("nksju,nmku->nmksj", B, some)
        if dp is not None:
            slopes = designs.slopes(states).reshape(*each, designs.count, nv + m)
            forcing -= np.einsum("nkspj,mp->nmksj", scaled(slopes, systems), dp)
        rows = systems.forward(forcing, state)
        ends = np.arange(path.first + 1, path.first + path.steps + 1)
        to = np.flatnonzero(ends % rollout.every == 0)
        found[:, :, ends[to] // rollout.every] = rows[:, :, to, : 3 * nv]
    rows = np.swapaxes(found, 0, 1).reshape(*extra, *lead, len(rollout.t), 3, nv)
    return Sensitivity(*(rows[..., k, :] for k in range(3)))


def matrices_of_steps(rollout: Rollout) -> tuple[np.ndarray, np.ndarray]:
    """What `Rollout.step_matrices` returns, of motion after motion: each step is a motion of its own, and each number
    of its state and of its inputs a direction."""
    nv, nu = rollout.common.nv, rollout.common.nu
    n = batch_of(rollout.lead)
    A, B = np.zeros((n, rollout.steps, 4 * nv, 4 * nv)), np.zeros((n, rollout.steps, 4 * nv, nu))
    begun = np.eye(4 * nv, 4 * nv + nu)
    for path in rollout.stretches(longest_stretch(rollout, 4 * nv + nu, 0)):
        found = matrices_of_path(rollout, path, begun)
        some = slice(path.first, path.first + path.steps)
        A[:, some], B[:, some] = found[..., : 4 * nv], found[..., 4 * nv :]
    return A, B


def matrices_of_path(rollout: Rollout, path: Path, begun: np.ndarray, *, accelerations: bool = True) -> np.ndarray:
    """δq, δv, δa and δâ at the end of each step of a path, shape (motions, steps, 4 nv, many), or the first two alone,
    by changes of these at its start, (..., 4 nv, many), whose last directions are those of the inputs."""
    rollout.forbid_anchors()
    model = rollout.common
    systems, states = stage_systems(model, rollout.stepping, path)
    nv, nu, n, many = model.nv, model.nu, len(path.q), begun.shape[-1]
    B = input_columns(model, states).reshape(n, path.steps, systems.stages, nv, nu)
    found = np.empty((n, path.steps, 4 * nv if accelerations else 2 * nv, many))
    for window in systems.matrices():
        rows = n * systems.window
        forcing = np.zeros((rows, systems.stages, systems.unknowns, many))
        forcing[..., :nv, many - nu :] = B[:, window].reshape(rows, systems.stages, nv, nu)
        start = np.broadcast_to(begun, (rows, *begun.shape[-2:]))
        ends = ends_of_steps(systems, window, forcing, start, accelerations=accelerations)
        found[:, window] = ends.reshape(n, systems.window, *ends.shape[-2:])
    return found


def _t(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def scaled(slopes: np.ndarray, systems: StageSystems) -> np.ndarray:
    """Slopes (..., stages, p, unknowns) with the rows of loops in the units that the systems have them in."""
    size = systems.weights.shape[1] // 3
    assert size > 0
    slopes[..., systems.nv :] /= systems.weights[:, 0, None, None]
    return slopes


def longest_stretch(rollout: Rollout, directions: int, designs: int) -> int:
    """Steps whose states are in memory at once, beside those that were kept."""
    model = rollout.common
    rows = batch_of(rollout.lead) * len(rollout.scheme.stages)
    whole = model.nv + model.n_rows
    one = 8 * (model.nv * model.nu + whole * (8 + 2 * directions + designs) + 108 * len(groups(model)))
    return max(1, _MOST_BYTES // max(one * rows, 1))


def extra_axes(rollout: Rollout, given: dict[str, tuple[Any, int]], *more: tuple[int, ...]) -> tuple[int, ...]:
    """Axes in front of those of the batch in arguments (..., of so many axes)."""
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


def direction_rows(
    rollout: Rollout, given: dict[str, Any], core: tuple[int, ...], extra: tuple[int, ...] | None = None
) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """Arguments as (motions, functions, *core), and the leading axes of the functions."""
    arrays: dict[str, Any] = {}
    for name, value in given.items():
        x = None if value is None else np.asarray(value, dtype=np.float64)
        if x is not None and (x.ndim < len(core) or x.shape[x.ndim - len(core) :] != core):
            raise ShapeError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {x.shape}")
        if x is not None and not np.isfinite(x).all():
            raise ShapeError(f"{name}: must be finite, got NaN or infinity")
        arrays[name] = x
    front = extra_axes(rollout, {k: (x, len(core)) for k, x in arrays.items()}) if extra is None else extra
    n, many = batch_of(rollout.lead), batch_of(front)
    out = {}
    for name, x in arrays.items():
        whole = np.zeros(core) if x is None else x
        flat = np.broadcast_to(whole, (*front, *rollout.lead, *core)).reshape(many, n, *core)
        out[name] = np.swapaxes(flat, 0, 1)
    return out, front
