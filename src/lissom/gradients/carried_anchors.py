"""Derivatives of motions whose contacts stick: the anchors are states that go along with the others.

With x = (δq, δv, δa, δâ) and z of the anchors that hold, a step and the move of the anchors behind it are

    x' = A x + H z + B δu + P δp,   z' = C (δq', δv') + D z + Z δp                                          (1)

A, B, H and P by `ends_of_steps`, H from (2) of anchors, C and D from (3) there, P and Z by differences of design
values p. Both recursions multiply by (1) or by its transpose, step by step, motion after motion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

_TOGETHER = 64  # steps whose matrices are in memory at once


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
class _Step:
    """(1) as matrices of (x; z), of δu and of changes of design values, and pairs that hold on before and after."""

    X: np.ndarray
    U: np.ndarray
    Y: np.ndarray
    held: np.ndarray
    after: np.ndarray


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
            for k, step in _steps(motion, path.motion(i), anchors[i], back=True):
                end = path.first + k + 1
                if end % rollout.every == 0:
                    state[i][:, :size] += seed[i, :, end // rollout.every]
                by_design[i] += state[i] @ step.Y
                by_u[i, :, end - 1], state[i] = state[i] @ step.U, state[i] @ step.X
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
            for k, step in _steps(motion, path.motion(i), anchors[i]):
                state[i] = state[i] @ step.X.T + along[i, :, path.first + k] @ step.U.T + dp @ step.Y.T
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
        for k, step in _steps(motion, path.motion(i), anchors[i]):
            before, after = (places_of_states(nv, held) for held in (step.held, step.after))
            A[i, k][np.ix_(after, before)], B[i, k, after] = step.X, step.U
    return A, B


def places_of_states(nv: int, held: np.ndarray) -> np.ndarray:
    """Where δq, δv, δa, δâ and the changes of some anchors stand among those of all."""
    return np.concatenate([np.arange(4 * nv), 4 * nv + _anchors_of(held)])


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
    C = _renewed(anchor_slopes(own, motion.own[None], q, v), held, held[:0], nv)[0]
    put_anchors(own, motion.own)
    Z = motion.designs.anchor_slopes(motion.own, q[0], v[0])[held].reshape(6 * len(held), motion.designs.count)
    _hold(motion, motion.first)
    found = starts(own, q, v, a, u, force, 0.0)
    return AnchoredStart(found, _forces(anchor_slopes(own, motion.first[None], q, v), held, nv), C, Z, held)


def _hold(motion: _Motion, anchors: np.ndarray) -> None:
    """Put anchors there, in the models beside it too."""
    put_anchors(motion.model, anchors)
    motion.designs.hold(anchors)


def _steps(motion: _Motion, path: Path, anchors: np.ndarray, *, back: bool = False) -> Iterator[tuple[int, _Step]]:
    """Number and matrices of each step, from the first on or from the last, some of them found at once."""
    begins = range(0, path.steps, _TOGETHER)
    for k in reversed(begins) if back else begins:
        stop = min(k + _TOGETHER, path.steps)
        found = _together(motion, path.part(k, stop), anchors[k : stop + 1])
        yield from reversed(list(enumerate(found, k))) if back else enumerate(found, k)


def _together(motion: _Motion, path: Path, anchors: np.ndarray) -> list[_Step]:
    """(1) of some steps: anchors (steps + 1, n_pairs, 6) before, between and after them."""
    own, designs, before = motion.model, motion.designs, anchors[:-1]
    systems, states = stage_systems(own, motion.rollout.stepping, path, before)
    pairs = np.flatnonzero(np.isfinite(before[..., 0]).any(axis=0))
    slopes = anchor_slopes(own, np.repeat(before, systems.stages, axis=0), states.q, states.v)
    z, u, p = np.cumsum([4 * own.nv, 6 * len(pairs), own.nu])
    forcing = np.zeros((path.steps, systems.stages, systems.unknowns, p + designs.count))
    forcing[..., : own.nv, u:p] = input_columns(own, states).reshape(*forcing.shape[:2], own.nv, own.nu)
    for row, pair, force in zip(slopes.state, slopes.pair, slopes.force):
        if np.isfinite(before[row // systems.stages, pair, 0]):
            at = z + 6 * int(np.searchsorted(pairs, pair))
            forcing[(*divmod(row, systems.stages), slice(own.nv), slice(at, at + 6))] = force
    forcing[..., own.prescribed.dof, z:u] = 0.0
    if designs.count:
        for k, to in enumerate(forcing):
            designs.hold(before[k])
            found = designs.slopes(states.some(slice(k * systems.stages, (k + 1) * systems.stages)))
            found = scaled(found.reshape(systems.stages, designs.count, systems.unknowns), systems)
            to[..., p:] = -np.swapaxes(found, 1, 2)
    begun, ends = np.eye(4 * own.nv, p + designs.count), np.empty((path.steps, 4 * own.nv, p + designs.count))
    for window in systems.matrices():
        ends[window] = ends_of_steps(
            systems, window, forcing[window], np.broadcast_to(begun, (systems.window, *begun.shape))
        )
    last = slopes.some(slopes.state % systems.stages == systems.stages - 1)
    out = []
    for k in range(path.steps):
        held, after = _held(before[k]), _held(anchors[k + 1])
        C, D = _renewed(last.some(last.state // systems.stages == k), after, held, own.nv)
        columns = np.concatenate([np.arange(z), z + _anchors_of(np.searchsorted(pairs, held))])
        moved = C @ ends[k, : 2 * own.nv]
        X, U, Y = (np.vstack([ends[k][:, some], moved[:, some]]) for some in (columns, slice(u, p), slice(p, None)))
        X[z:, z:] += D
        if designs.count:
            slope = designs.anchor_slopes(before[k], path.q[0, k + 1], path.v[0, k + 1])[after]
            Y[z:] += slope.reshape(6 * len(after), designs.count)
        out.append(_Step(X, U, Y, held, after))
    return out


def _forces(found: AnchorSlopes, held: np.ndarray, nv: int) -> np.ndarray:
    """Generalised forces at a state by the anchors that hold, (nv, 6 held)."""
    out = np.zeros((nv, 6 * len(held)))
    for row, at in _among(found, held):
        out[:, at] = found.force[row]
    return out


def _renewed(found: AnchorSlopes, after: np.ndarray, held: np.ndarray, nv: int) -> tuple[np.ndarray, np.ndarray]:
    """C and D of (1) at a state for the anchors that hold after a step by those that held before."""
    C, D = np.zeros((6 * len(after), 2 * nv)), np.zeros((6 * len(after), 6 * len(held)))
    columns = dict(_among(found, held))
    for row, at in _among(found, after):
        C[at] = np.hstack([found.by_q[row], found.by_v[row]])
        if row in columns:
            D[at, columns[row]] = found.by_anchor[row]
    return C, D


def _among(found: AnchorSlopes, held: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Rows of those that hold, and where their anchors stand."""
    places = {int(pair): slice(6 * k, 6 * k + 6) for k, pair in enumerate(held)}
    for row, pair in enumerate(found.pair.tolist()):
        if pair in places:
            yield row, places[pair]


def _anchors_of(pairs: np.ndarray) -> np.ndarray:
    """Where the six numbers of each of some pairs stand among those of all."""
    return (6 * pairs[:, None] + np.arange(6)).ravel()
