"""Derivatives of motions whose contacts stick: the anchors are states that go along with the others.

With x = (δq, δv, δa, δâ) and z of the anchors that hold, a step and the move of the anchors behind it are

    x' = A x + H z + B δu,   z' = C (δq', δv') + D z                                                        (1)

A, B and H by `ends_of_steps`, H from (2) of anchors, C and D from (3) there. Both recursions multiply by (1) or by
its transpose, step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.contacts import put_anchors
from lissom.gradients.anchors import AnchorSlopes, anchor_slopes
from lissom.gradients.carried import Gradient, Sensitivity, direction_rows, extra_axes
from lissom.gradients.dense_steps import ends_of_steps
from lissom.gradients.stage_systems import input_columns, stage_systems
from lissom.gradients.starts import Starts, starts

if TYPE_CHECKING:
    from lissom.gradients.rollout import Rollout


@final
@dataclass(frozen=True)
class _Start:
    """How the state at the start answers, forces by its anchors, and the anchors by q and v."""

    s: Starts
    force: np.ndarray
    C: np.ndarray


def anchored_back(rollout: Rollout, given: dict[str, Any]) -> Gradient:
    """What `Rollout.backward` returns."""
    nv, steps = rollout.common.nv, rollout.steps
    seeds, extra = direction_rows(rollout, given, (len(rollout.t), nv))
    seed = np.concatenate([x[0] for x in seeds.values()], axis=-1)  # (functions, times, 3 nv)
    by_u = np.zeros((len(seed), steps, rollout.common.nu))
    state = np.zeros((len(seed), 4 * nv + 6 * len(_held(rollout, steps))))
    for k in reversed(range(steps)):
        X, U = _step(rollout, k)
        state[:, : 3 * nv] += seed[:, k + 1]
        by_u[:, k], state = state @ U, state @ X
    state[:, : 3 * nv] += seed[:, 0]
    start = _start(rollout)
    s, z = start.s, state[:, 4 * nv :]
    mu = (state[:, 2 * nv : 3 * nv] + state[:, 3 * nv : 4 * nv]) @ s.solve[0, :nv]
    z = z + mu[:, :nv] @ start.force
    both = z @ start.C
    by_q = state[:, :nv] - mu @ s.by_q[0] + both[:, :nv]
    by_v = state[:, nv : 2 * nv] - mu @ s.by_v[0] + both[:, nv:]
    by_u[:, 0] += mu @ s.B[0]
    by_q = by_q + by_v @ s.carried[0]
    q0, v0, u = (x.reshape(*extra, *x.shape[1:]) for x in (by_q @ s.onto_q[0], by_v @ s.onto_v[0], by_u))
    return Gradient(q0, v0, u, {})


def anchored_forward(rollout: Rollout, given: dict[str, Any]) -> Sensitivity:
    """What `Rollout.forward` returns."""
    nv, steps, nu = rollout.common.nv, rollout.steps, rollout.common.nu
    du = {"du": given.pop("du")}
    extra = extra_axes(rollout, {name: (x, 1) for name, x in given.items()} | {"du": (du["du"], 2)})
    dq0, dv0 = (x[0] for x in direction_rows(rollout, given, (nv,), extra)[0].values())
    along = direction_rows(rollout, du, (steps, nu), extra)[0]["du"][0]
    start = _start(rollout)
    s = start.s
    dq = dq0 @ s.onto_q[0].T
    dv = dv0 @ s.onto_v[0].T + dq @ s.carried[0].T
    z = np.hstack([dq, dv]) @ start.C.T
    right = along[:, 0] @ s.B[0].T - dq @ s.by_q[0].T - dv @ s.by_v[0].T
    right[:, :nv] += z @ start.force.T
    da = (right @ s.solve[0].T)[:, :nv]
    state = np.concatenate([dq, dv, da, da, z], axis=1)
    found = np.zeros((len(state), steps + 1, 3 * nv))
    found[:, 0] = state[:, : 3 * nv]
    for k in range(steps):
        X, U = _step(rollout, k)
        state = state @ X.T + along[:, k] @ U.T
        found[:, k + 1] = state[:, : 3 * nv]
    rows = found.reshape(*extra, steps + 1, 3, nv)
    return Sensitivity(*(rows[..., k, :] for k in range(3)))


def _held(rollout: Rollout, k: int) -> np.ndarray:
    """Pairs that hold on after step k."""
    assert rollout.anchors is not None
    return np.flatnonzero(np.isfinite(rollout.anchors[k, :, 0]))


def _start(rollout: Rollout) -> _Start:
    p, own, anchors = rollout.path, rollout.anchored, rollout.anchors
    assert own is not None and anchors is not None and rollout.common.surroundings is not None
    q, v, a, u, force = (x[:, 0] for x in (p.q, p.v, p.a, p.u, p.force))
    put_anchors(own, anchors[0])
    nv, held = own.nv, _held(rollout, 0)
    found = starts(own, q, v, a, u, force, 0.0)
    moved = anchor_slopes(own, rollout.common.surroundings.anchors, q[0], v[0])
    C = _renewed(moved, held, held[:0], nv)[0]
    return _Start(found, _forces(anchor_slopes(own, anchors[0], q[0], v[0]), held, nv), C)


def _step(rollout: Rollout, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(1) as matrices of (x; z) and of δu."""
    own, anchors = rollout.anchored, rollout.anchors
    assert own is not None and anchors is not None
    put_anchors(own, anchors[k])
    nv, nu, held, after = own.nv, own.nu, _held(rollout, k), _held(rollout, k + 1)
    path = rollout.path.part(k, k + 1)
    systems, states = stage_systems(own, rollout.stepping, path)
    many = 4 * nv + 6 * len(held)
    forcing = np.zeros((1, systems.stages, systems.unknowns, many + nu))
    forcing[0, :, :nv, many:] = input_columns(own, states)
    for row, q, v in zip(forcing[0], states.q, states.v):
        row[:nv, 4 * nv : many] = _forces(anchor_slopes(own, anchors[k], q, v), held, nv)
        row[own.prescribed.dof] = 0.0
    begun = np.eye(4 * nv, many + nu)[None]
    (ends,) = (ends_of_steps(systems, window, forcing, begun)[0] for window in systems.matrices())
    C, D = _renewed(anchor_slopes(own, anchors[k], path.q[0, 1], path.v[0, 1]), after, held, nv)
    moved = C @ ends[: 2 * nv]
    moved[:, 4 * nv : many] += D
    whole = np.vstack([ends, moved])
    return whole[:, :many], whole[:, many:]


def _forces(found: Iterable[AnchorSlopes], held: np.ndarray, nv: int) -> np.ndarray:
    """Generalised forces by the anchors that hold, (nv, 6 held)."""
    out = np.zeros((nv, 6 * len(held)))
    for one, at in _among(found, held):
        out[:, at] = one.force
    return out


def _renewed(
    found: Iterable[AnchorSlopes], after: np.ndarray, held: np.ndarray, nv: int
) -> tuple[np.ndarray, np.ndarray]:
    """C and D of (1) for the anchors that hold after a step by those that held before."""
    found = list(found)
    C, D = np.zeros((6 * len(after), 2 * nv)), np.zeros((6 * len(after), 6 * len(held)))
    columns = {one.pair: at for one, at in _among(found, held)}
    for one, at in _among(found, after):
        C[at] = np.hstack([one.by_q, one.by_v])
        if one.pair in columns:
            D[at, columns[one.pair]] = one.by_anchor
    return C, D


def _among(found: Iterable[AnchorSlopes], held: np.ndarray) -> Iterator[tuple[AnchorSlopes, slice]]:
    """Those that hold, and where their anchors stand."""
    places = {int(pair): slice(6 * k, 6 * k + 6) for k, pair in enumerate(held)}
    for one in found:
        if one.pair in places:
            yield one, places[one.pair]
