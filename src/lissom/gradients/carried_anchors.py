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
class AnchoredStart:
    """How the state at the start of one motion answers, accelerations by its anchors, the anchors by q and v, and by
    design values.

    Fields:
        s: as where nothing sticks. force: (nv, 6 held). C: (6 held, 2 nv). Z: (6 held, design values). held: pairs
        that hold on.
    """

    s: Starts
    force: np.ndarray
    C: np.ndarray
    Z: np.ndarray
    held: np.ndarray


@final
@dataclass(frozen=True)
class _Motion:
    """One of the motions of a rollout: its model, the path of its start, the anchors that hold there and those that the
    model came with, and design values."""

    rollout: Rollout
    model: Model
    path: Path
    first: np.ndarray
    own: np.ndarray
    designs: Designs


@final
@dataclass(frozen=True)
class _Stretch:
    """Some steps of a motion, and where it holds on before, between and after them."""

    motion: _Motion
    path: Path
    anchors: np.ndarray

    def held(self, k: int) -> np.ndarray:
        """Pairs that hold on after step k."""
        return _held(self.anchors[k])


def anchored_back(rollout: Rollout, given: dict[str, Any], parameters: Sequence[str]) -> Gradient:
    """What `Rollout.backward` returns."""
    seeds, extra = direction_rows(rollout, given, (len(rollout.t), rollout.common.nv))
    seed = np.concatenate(list(seeds.values()), axis=-1)  # (motions, functions, times, 3 nv)
    motions, (n, many, _, size) = _motions(rollout, tuple(parameters)), seed.shape
    nv = size // 3
    state = [np.zeros((many, 4 * nv + 6 * len(_held(rows[-1])))) for rows in _kept(rollout)]
    by_u, by_design = (
        np.zeros((n, many, *x)) for x in ((rollout.steps, rollout.common.nu), (motions[0].designs.count,))
    )
    for path, anchors in rollout.anchored_stretches(back=True):
        for i, motion in enumerate(motions):
            stretch = _Stretch(motion, path.motion(i), anchors[i])
            for k in reversed(range(path.steps)):
                X, U, Y = _step(stretch, k)
                end = path.first + k + 1
                if end % rollout.every == 0:
                    state[i][:, :size] += seed[i, :, end // rollout.every]
                by_design[i] += state[i] @ Y
                by_u[i, :, end - 1], state[i] = state[i] @ U, state[i] @ X
    rows = zip(*(_begun_back(*each) for each in zip(motions, state, seed[:, :, 0], by_u, by_design)))
    q0, v0 = (np.stack(x) for x in rows)
    shape = (*extra, *rollout.lead)
    q0, v0, by_u, by_design = (np.swapaxes(x, 0, 1).reshape(*shape, *x.shape[2:]) for x in (q0, v0, by_u, by_design))
    return Gradient(q0, v0, by_u, motions[0].designs.split(by_design))


def anchored_forward(rollout: Rollout, given: dict[str, Any], parameters: dict[str, Any]) -> Sensitivity:
    """What `Rollout.forward` returns."""
    nv, steps, nu = rollout.common.nv, rollout.steps, rollout.common.nu
    motions = _motions(rollout, tuple(parameters))
    designs, du = motions[0].designs, {"du": given.pop("du")}
    moved = designs.joined(parameters)
    more = (() if moved is None else moved.shape[:-1],)
    extra = extra_axes(rollout, {name: (x, 1) for name, x in given.items()} | {"du": (du["du"], 2)}, *more)
    dq0, dv0 = direction_rows(rollout, given, (nv,), extra)[0].values()
    along = direction_rows(rollout, du, (steps, nu), extra)[0]["du"]
    dp = np.zeros(0) if moved is None else moved
    dp = np.broadcast_to(dp, (*extra, designs.count)).reshape(dq0.shape[1], designs.count)
    state = [_begun(*rows, dp) for rows in zip(motions, dq0, dv0, along[:, :, 0])]
    found = np.zeros((len(motions), len(dp), len(rollout.t), 3 * nv))
    found[:, :, 0] = [x[:, : 3 * nv] for x in state]
    for path, anchors in rollout.anchored_stretches():
        for i, motion in enumerate(motions):
            stretch = _Stretch(motion, path.motion(i), anchors[i])
            for k in range(path.steps):
                X, U, Y = _step(stretch, k)
                state[i] = state[i] @ X.T + along[i, :, path.first + k] @ U.T + dp @ Y.T
                if (path.first + k + 1) % rollout.every == 0:
                    found[i, :, (path.first + k + 1) // rollout.every] = state[i][:, : 3 * nv]
    rows = np.swapaxes(found, 0, 1).reshape(*extra, *rollout.lead, len(rollout.t), 3, nv)
    return Sensitivity(*(rows[..., k, :] for k in range(3)))


def anchored_matrices(rollout: Rollout) -> tuple[np.ndarray, np.ndarray]:
    """What `Rollout.step_matrices` returns, of motion after motion."""
    nv, (path, anchors), motions = rollout.common.nv, *rollout.anchored_stretches(), _motions(rollout, ())
    many = 4 * nv + 6 * anchors.shape[2]
    A, B = (np.zeros((len(motions), rollout.steps, many, x)) for x in (many, rollout.common.nu))
    for i, motion in enumerate(motions):
        stretch = _Stretch(motion, path.motion(i), anchors[i])
        for k in range(path.steps):
            X, U, _ = _step(stretch, k)
            before, after = (places_of_states(nv, stretch.held(j)) for j in (k, k + 1))
            A[i, k][np.ix_(after, before)], B[i, k, after] = X, U
    return A, B


def places_of_states(nv: int, held: np.ndarray) -> np.ndarray:
    """Where δq, δv, δa, δâ and the changes of some anchors stand among those of all."""
    anchors = 4 * nv + 6 * held[:, None] + np.arange(6)
    return np.concatenate([np.arange(4 * nv), anchors.ravel()])


def anchored_start(rollout: Rollout) -> AnchoredStart:
    """Of a single motion."""
    return _start(_motions(rollout, ())[0])


def _kept(rollout: Rollout) -> np.ndarray:
    """Anchors at all times, (motions, times, n_pairs, 6)."""
    assert rollout.anchors is not None
    return rollout.anchors.reshape(len(rollout.path.q), *rollout.anchors.shape[-3:])


def _held(anchors: np.ndarray) -> np.ndarray:
    """Pairs that hold on."""
    return np.flatnonzero(np.isfinite(anchors[:, 0]))


def _motions(rollout: Rollout, parameters: tuple[str, ...]) -> list[_Motion]:
    holding, path, found = rollout.holding, rollout.path, []
    assert holding is not None
    for i, rows in enumerate(_kept(rollout)):
        model = holding.at(i, rows[0])
        found.append(_Motion(rollout, model, path.motion(i), rows[0], holding.own[i], Designs(model, parameters, 1)))
    return found


def _begun_back(
    motion: _Motion, state: np.ndarray, seed: np.ndarray, by_u: np.ndarray, by_design: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of functions of one motion by q0 and v0, (functions, nv); those by the first inputs and by design
    values are added to what is given."""
    nv = motion.model.nv
    state[:, : 3 * nv] += seed
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
    return by_q @ s.onto_q[0], by_v @ s.onto_v[0]


def _begun(motion: _Motion, dq0: np.ndarray, dv0: np.ndarray, du: np.ndarray, dp: np.ndarray) -> np.ndarray:
    """δq, δv, δa, δâ and changes of anchors at the start of one motion along directions, (directions, ...)."""
    nv, start = motion.model.nv, _start(motion)
    s = start.s
    dq, dv, right = dq0 @ s.onto_q[0].T, dv0 @ s.onto_v[0].T, du @ s.B[0].T
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
    return np.concatenate([dq, dv, da, da, z], axis=1)


def _start(motion: _Motion) -> AnchoredStart:
    own, p, held = motion.model, motion.path, _held(motion.first)
    q, v, a, u, force = (x[:, 0] for x in (p.q, p.v, p.a, p.u, p.force))
    nv = own.nv
    C = _renewed(anchor_slopes(own, motion.own, q[0], v[0]), held, held[:0], nv)[0]
    put_anchors(own, motion.own)
    Z = motion.designs.anchor_slopes(motion.own, q[0], v[0])[held].reshape(6 * len(held), motion.designs.count)
    _hold(motion, motion.first)
    found = starts(own, q, v, a, u, force, 0.0)
    return AnchoredStart(found, _forces(anchor_slopes(own, motion.first, q[0], v[0]), held, nv), C, Z, held)


def _hold(motion: _Motion, anchors: np.ndarray) -> None:
    """Put anchors there, in the models beside it too."""
    put_anchors(motion.model, anchors)
    motion.designs.hold(anchors)


def _step(stretch: _Stretch, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(1) as matrices of (x; z), of δu and of changes of design values."""
    motion, anchors = stretch.motion, stretch.anchors[k]
    own, designs = motion.model, motion.designs
    _hold(motion, anchors)
    nv, held, after = own.nv, stretch.held(k), stretch.held(k + 1)
    path = stretch.path.part(k, k + 1)
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
