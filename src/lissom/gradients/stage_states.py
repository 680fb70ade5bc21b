"""What each stage of steps was: states, tangent increments, and their tangent operators where poses are stored."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, final

import numpy as np

from lissom.dynamics.configuration import difference, groups, integrate
from lissom.lie.arrays import se3_tangent, se3_tangent_inverse
from lissom.model.model import Model

if TYPE_CHECKING:
    from lissom.gradients.steps import Path, Stepping


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
    start, has_groups = path.q[:, :-1], bool(groups(model))
    move = rate = None
    v, a = path.v[:, 1:, None], path.a[:, 1:, None]
    q = path.q[:, 1:, None]
    if has_groups:
        move = difference(model, start, path.q[:, 1:])[:, :, None]
        rate = over_groups(model, move, v, invert=True) if stepping.scheme.follows_rates else v
    if before:
        moves, rates, found = (path.left[:, :, :, k] for k in range(3))
        speeds = over_groups(model, moves, rates) if has_groups and stepping.scheme.follows_rates else rates
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


def over_groups(model: Model, move: np.ndarray, x: np.ndarray, *, invert: bool = False) -> np.ndarray:
    """T(Δ) x in the coordinates of stored poses, or T(Δ)⁻¹ x; the others stay."""
    out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, move.shape)))
    for _, j, free in groups(model):
        block = slice(j, j + (6 if free else 3))
        own = six(move[..., block])
        T = (se3_tangent_inverse if invert else se3_tangent)(own)
        many = block.stop - block.start
        out[..., block] = np.einsum("...ij,...j->...i", T[..., :many, :many], out[..., block])
    return out


def six(x: np.ndarray) -> np.ndarray:
    """Increments of a spherical joint as those of a free one that stays in place."""
    return x if x.shape[-1] == 6 else np.concatenate([x, np.zeros_like(x)], axis=-1)
