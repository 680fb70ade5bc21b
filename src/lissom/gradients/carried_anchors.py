"""Derivatives of motions whose contacts stick: the anchors are states that go along with the others.

With x = (δq, δv, δa, δâ) and z of the anchors that hold, a step and the move of the anchors behind it are

    x' = A x + H z + B δu + P δp,   z' = C (δq', δv') + D z + Z δp                                          (1)

A, B, H and P by `ends_of_steps`, H from (2) of anchors, C and D from (3) there, P and Z by differences of design
values p. Both recursions multiply by (1) or by its transpose, step by step, motion after motion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.contacts import put_anchors
from lissom.gradients.anchors import AnchorSlopes, anchor_slopes
from lissom.gradients.carried import Gradient, Sensitivity, direction_rows, extra_axes, scaled
from lissom.gradients.dense_steps import ends_of_steps
from lissom.gradients.designs import Designs
from lissom.gradients.stage_systems import input_columns, stage_systems
from lissom.gradients.starts import Starts, starts
from lissom.gradients.steps import Path
from lissom.model.model import Model

if TYPE_CHECKING:
    from lissom.gradients.rollout import Rollout


@final
@dataclass(frozen=True)
class _Start:
    """How the state at the start answers, forces by its anchors, the anchors by q and v, and by design values."""

    s: Starts
    force: np.ndarray
    C: np.ndarray
    Z: np.ndarray


@final
@dataclass(frozen=True)
class _Motion:
    """One of the motions of a rollout, its model, where it holds on at all times, and design values."""

    rollout: Rollout
    model: Model
    path: Path
    anchors: np.ndarray
    own: np.ndarray
    designs: Designs

    def held(self, k: int) -> np.ndarray:
        """Pairs that hold on after step k."""
        return np.flatnonzero(np.isfinite(self.anchors[k, :, 0]))


def anchored_back(rollout: Rollout, given: dict[str, Any], parameters: Sequence[str]) -> Gradient:
    """What `Rollout.backward` returns."""
    seeds, extra = direction_rows(rollout, given, (len(rollout.t), rollout.common.nv))
    seed = np.concatenate(list(seeds.values()), axis=-1)  # (motions, functions, times, 3 nv)
    motions = list(_motions(rollout, tuple(parameters)))
    rows = zip(*(_back(motion, rows) for motion, rows in zip(motions, seed)))
    q0, v0, u, by_design = (np.stack(x, axis=1).reshape(*extra, *rollout.lead, *x[0].shape[1:]) for x in rows)
    return Gradient(q0, v0, u, motions[0].designs.split(by_design))


def anchored_forward(rollout: Rollout, given: dict[str, Any], parameters: dict[str, Any]) -> Sensitivity:
    """What `Rollout.forward` returns."""
    nv, steps, nu = rollout.common.nv, rollout.steps, rollout.common.nu
    motions = list(_motions(rollout, tuple(parameters)))
    designs, du = motions[0].designs, {"du": given.pop("du")}
    moved = designs.joined(parameters)
    more = (() if moved is None else moved.shape[:-1],)
    extra = extra_axes(rollout, {name: (x, 1) for name, x in given.items()} | {"du": (du["du"], 2)}, *more)
    dq0, dv0 = direction_rows(rollout, given, (nv,), extra)[0].values()
    along = direction_rows(rollout, du, (steps, nu), extra)[0]["du"]
    dp = np.zeros(0) if moved is None else moved
    dp = np.broadcast_to(dp, (*extra, designs.count)).reshape(dq0.shape[1], designs.count)
    found = np.stack([_forth(*rows, dp) for rows in zip(motions, dq0, dv0, along)], axis=1)
    rows = found.reshape(*extra, *rollout.lead, steps + 1, 3, nv)
    return Sensitivity(*(rows[..., k, :] for k in range(3)))


def _motions(rollout: Rollout, parameters: tuple[str, ...]) -> Iterator[_Motion]:
    holding, path = rollout.holding, rollout.path
    assert holding is not None and rollout.anchors is not None
    anchors = rollout.anchors.reshape(len(path.q), *rollout.anchors.shape[-3:])
    for i, rows in enumerate(anchors):
        model = holding.at(i, rows[0])
        yield _Motion(rollout, model, path.motion(i), rows, holding.own[i], Designs(model, parameters, 1))


def _back(motion: _Motion, seed: np.ndarray) -> tuple[np.ndarray, ...]:
    """Derivatives of functions of one motion, (functions, ...), by q0, v0, u and design values."""
    nv, steps, nu = motion.model.nv, motion.path.steps, motion.model.nu
    by_u, by_design = np.zeros((len(seed), steps, nu)), np.zeros((len(seed), motion.designs.count))
    state = np.zeros((len(seed), 4 * nv + 6 * len(motion.held(steps))))
    for k in reversed(range(steps)):
        X, U, Y = _step(motion, k)
        state[:, : 3 * nv] += seed[:, k + 1]
        by_design += state @ Y
        by_u[:, k], state = state @ U, state @ X
    state[:, : 3 * nv] += seed[:, 0]
    start = _start(motion)
    s, z = start.s, state[:, 4 * nv :]
    mu = (state[:, 2 * nv : 3 * nv] + state[:, 3 * nv : 4 * nv]) @ s.solve[0, :nv]
    z = z + mu[:, :nv] @ start.force
    both = z @ start.C
    by_q = state[:, :nv] - mu @ s.by_q[0] + both[:, :nv]
    by_v = state[:, nv : 2 * nv] - mu @ s.by_v[0] + both[:, nv:]
    by_u[:, 0] += mu @ s.B[0]
    by_q = by_q + by_v @ s.carried[0]
    if motion.designs.count:
        slopes, gap, rate = motion.designs.start_slopes(motion.path)
        by_design += z @ start.Z - mu @ slopes[0].T + by_q @ s.gap[0] @ gap[0].T + by_v @ s.rate[0] @ rate[0].T
    return by_q @ s.onto_q[0], by_v @ s.onto_v[0], by_u, by_design


def _forth(motion: _Motion, dq0: np.ndarray, dv0: np.ndarray, along: np.ndarray, dp: np.ndarray) -> np.ndarray:
    """δq, δv and δa of one motion at all times along directions, (directions, steps + 1, 3 nv)."""
    nv, steps, start = motion.model.nv, motion.path.steps, _start(motion)
    s = start.s
    dq, dv, right = dq0 @ s.onto_q[0].T, dv0 @ s.onto_v[0].T, along[:, 0] @ s.B[0].T
    if motion.designs.count:
        slopes, gap, rate = motion.designs.start_slopes(motion.path)
        dq = dq + dp @ gap[0] @ s.gap[0].T
        dv = dv + dp @ rate[0] @ s.rate[0].T
        right = right - dp @ slopes[0]
    dv = dv + dq @ s.carried[0].T
    z = np.hstack([dq, dv]) @ start.C.T + dp @ start.Z.T
    right = right - dq @ s.by_q[0].T - dv @ s.by_v[0].T
    right[:, :nv] += z @ start.force.T
    da = (right @ s.solve[0].T)[:, :nv]
    state = np.concatenate([dq, dv, da, da, z], axis=1)
    found = np.zeros((len(state), steps + 1, 3 * nv))
    found[:, 0] = state[:, : 3 * nv]
    for k in range(steps):
        X, U, Y = _step(motion, k)
        state = state @ X.T + along[:, k] @ U.T + dp @ Y.T
        found[:, k + 1] = state[:, : 3 * nv]
    return found


def _start(motion: _Motion) -> _Start:
    own, p, anchors = motion.model, motion.path, motion.anchors
    q, v, a, u, force = (x[:, 0] for x in (p.q, p.v, p.a, p.u, p.force))
    nv, held = own.nv, motion.held(0)
    moved = anchor_slopes(own, motion.own, q[0], v[0])
    C = _renewed(moved, held, held[:0], nv)[0]
    put_anchors(own, motion.own)
    Z = motion.designs.anchor_slopes(motion.own, q[0], v[0])[held].reshape(6 * len(held), motion.designs.count)
    _hold(motion, 0)
    found = starts(own, q, v, a, u, force, 0.0)
    return _Start(found, _forces(anchor_slopes(own, anchors[0], q[0], v[0]), held, nv), C, Z)


def _hold(motion: _Motion, k: int) -> None:
    """Put there the anchors during step k, in the models beside it too."""
    put_anchors(motion.model, motion.anchors[k])
    motion.designs.hold(motion.anchors[k])


def _step(motion: _Motion, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(1) as matrices of (x; z), of δu and of changes of design values."""
    own, anchors, designs = motion.model, motion.anchors[k], motion.designs
    _hold(motion, k)
    nv, held, after = own.nv, motion.held(k), motion.held(k + 1)
    path = motion.path.part(k, k + 1)
    systems, states = stage_systems(own, motion.rollout.stepping, path)
    many, inputs = 4 * nv + 6 * len(held), 4 * nv + 6 * len(held) + own.nu
    forcing = np.zeros((1, systems.stages, systems.unknowns, inputs + designs.count))
    forcing[0, :, :nv, many:inputs] = input_columns(own, states)
    if designs.count:
        slopes = designs.slopes(states).reshape(systems.stages, designs.count, systems.unknowns)
        forcing[0, ..., inputs:] = -np.swapaxes(scaled(slopes, systems), 1, 2)
    for row, q, v in zip(forcing[0], states.q, states.v):
        row[:nv, 4 * nv : many] = _forces(anchor_slopes(own, anchors, q, v), held, nv)
        row[own.prescribed.dof] = 0.0
    begun = np.eye(4 * nv, inputs + designs.count)[None]
    (ends,) = (ends_of_steps(systems, window, forcing, begun)[0] for window in systems.matrices())
    q, v = path.q[0, 1], path.v[0, 1]
    C, D = _renewed(anchor_slopes(own, anchors, q, v), after, held, nv)
    moved = C @ ends[: 2 * nv]
    moved[:, 4 * nv : many] += D
    moved[:, inputs:] += designs.anchor_slopes(anchors, q, v)[after].reshape(6 * len(after), designs.count)
    whole = np.vstack([ends, moved])
    return whole[:, :many], whole[:, many:inputs], whole[:, inputs:]


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
