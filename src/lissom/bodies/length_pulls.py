"""What tendons do inside a body whose points are moved together, without a function of its own that JAX compiles.

A tendon is made of pieces s, (k, 3), whose lengths add up: ∂f/∂x x'(σ) dσ along a material line, p_{k+1} − p_k through
eyelets. With t = s/|s|, by the slopes of the points that the body's frames are at, too,

    L = Σ |s|,   B_j = −Σ t·s_j,   ∂B_j/∂θ_l = −Σ (t·s_jl + (s_j·s_l − (t·s_j)(t·s_l))/|s|)                (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies.kinematics import Kinematics
from lissom.bodies.moved_points import MovedPoints, Places
from lissom.bodies.slopes import Bends, Slopes, unpacked


@final
@dataclass(frozen=True, eq=False)
class LengthPulls:
    """All tendons inside bodies that are moved together, as `BodyPulls` would have them.

    Args:
        points: those of the bodies. pulls: each with eyelets (m, 3), or points of a line and tangents (k, 3) there.
        bodies: which of the bodies each is in.
    """

    motion: Kinematics
    points: MovedPoints
    pulls: tuple[Any, ...]
    bodies: tuple[int, ...]

    @cached_property
    def _pieces(self) -> _Pieces:
        """The points of all pulls, and which of these make which piece."""
        eyelets = [self.points.numbers(pull.points) for pull in self.pulls]
        lines = [self.points.numbers(pull.line[0]) for pull in self.pulls]
        most = 1 + max((int(row.max()) for row in (*eyelets, *lines) if len(row)), default=0)
        eyelets, lines = ([row + most * b for row, b in zip(rows, self.bodies)] for rows in (eyelets, lines))
        pairs = [np.stack([row[:-1], row[1:]]) for row in eyelets]
        counts = [len(line) for line in lines], [pair.shape[1] for pair in pairs]
        owner = np.concatenate([np.repeat(np.arange(len(self.pulls)), count) for count in counts])
        asked, place = np.unique(np.concatenate([*lines, *(pair.ravel() for pair in pairs)]), return_inverse=True)
        stop = sum(counts[0])
        ends = np.searchsorted(asked, np.concatenate(pairs, axis=1))
        tangents = np.concatenate([pull.line[1] for pull in self.pulls]).T
        owned = np.equal.outer(np.arange(len(self.pulls)), owner) * 1.0
        return _Pieces(Places(asked % most, asked // most), place[:stop], tangents, ends, owned)

    def values(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (m, p), B (m, p, n) and wrenches (m, p, 6) of p pulls at θ = q of k bodies (m, k, n), or of one
        (m, n)."""
        pieces, work, B = self._pieces, [], []
        for theta in map(np.atleast_2d, q):
            x = unpacked(Slopes, self.points.packed_slopes(pieces.asked, theta, None), theta.shape[1])
            s, s_j = pieces.of(x.p, x.F), pieces.of(x.J, x.F_j)
            length = np.sqrt((s * s).sum(axis=0))
            work.append(-pieces.owned @ length)
            B.append(-pieces.owned @ (s_j * (s / length)).sum(axis=1).T)
        return np.array(work), np.array(B), np.zeros((len(q), len(self.pulls), 6))

    def derivatives(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂B_j/∂θ_l (m, p, n, n) by [j, l] and ∂wrench/∂θ_l (m, p, n, 6) by [l] at θ = q of k bodies (m, k, n), or of
        one (m, n)."""
        pieces, B_q = self._pieces, []
        for theta in map(np.atleast_2d, q):
            x = unpacked(Bends, self.points.packed_bends(pieces.asked, theta, None), theta.shape[1])
            s, s_j, s_jl = pieces.of(x.p, x.F), pieces.of(x.J, x.F_j), pieces.of(x.H, x.F_jl)
            B_q.append(-np.tensordot(pieces.owned, _bent(s, s_j, s_jl), axes=([1], [2])))
        return np.array(B_q), np.zeros((len(q), len(self.pulls), q.shape[-1], 6))

    def bends(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The second derivatives of the work along θ̇ = v at θ = q of k bodies (k, n), or of one (n,), shape (p,)."""
        pieces, q, v = self._pieces, np.atleast_2d(q), np.atleast_2d(v)
        x = unpacked(Slopes, self.points.packed_slopes(pieces.asked, q, v), q.shape[1])
        rate = v[pieces.asked.body].T
        s_v = pieces.of(np.einsum("jk,jak->ak", rate, x.J), np.einsum("jk,jabk->abk", rate, x.F_j))
        bent = _bent(pieces.of(x.p, x.F), s_v[None], pieces.of(x.h, x.F_h)[None, None])
        return -pieces.owned @ bent[0, 0]


class _Pieces(NamedTuple):
    """The pieces of all pulls of a body, those along lines first.

    Fields:
        asked: points. line: which of these lines go through, with tangents (3, k) there. ends: which of
        them pieces between eyelets join, (2, m). owned: 1 where a piece is of a pull, (p, k + m).
    """

    asked: Places
    line: np.ndarray
    tangents: np.ndarray
    ends: np.ndarray
    owned: np.ndarray

    def of(self, p: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Of p (..., 3, N) and F (..., 3, 3, N) the pieces s (..., 3, k + m), or their derivatives."""
        along = (F[..., self.line] * self.tangents).sum(axis=-2)
        return np.concatenate([along, p[..., self.ends[1]] - p[..., self.ends[0]]], axis=-1)


def _bent(s: np.ndarray, s_j: np.ndarray, s_jl: np.ndarray) -> np.ndarray:
    """What pieces add to −∂B of (1), (n, n, k), or to L̈ where s_j and s_jl are those along a rate."""
    length = np.sqrt((s * s).sum(axis=0))
    t = s / length
    along = (t * s_j).sum(axis=1)
    across = np.einsum("jak,lak->jlk", s_j, s_j) - along[:, None] * along
    return (s_jl * t).sum(axis=-2) + across / length
