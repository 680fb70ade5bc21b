"""What tendons do inside a body whose points are moved together, without a function of its own that JAX compiles.

A tendon is made of pieces s, (k, 3), whose lengths add up: ∂f/∂x x'(σ) dσ along a material line, p_{k+1} − p_k through
eyelets. With t = s/|s|, by the slopes of the points that the body's frames are at, too,

    L = Σ |s|,   B_j = −Σ t·s_j,   ∂B_j/∂θ_l = −Σ (t·s_jl + (s_j·s_l − (t·s_j)(t·s_l))/|s|)                (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.deformable.kinematics import Kinematics
from lissom.deformable.moved_points import MovedPoints
from lissom.deformable.slopes import Bends, Slopes

Pieces = tuple[np.ndarray, np.ndarray, Any]  # s, s_j and, of bends, s_jl


@final
@dataclass(frozen=True, eq=False)
class LengthPulls:
    """All tendons inside one body, as `BodyPulls` would have them.

    Args:
        points: those of the body. pulls: each with eyelets (m, 3), or points of a line and tangents (k, 3) there.
    """

    motion: Kinematics
    points: MovedPoints
    pulls: tuple[Any, ...]

    @cached_property
    def _places(self) -> tuple[np.ndarray, list[tuple[slice, slice]]]:
        """Numbers of all points, and which of these are the eyelets and the points of the line of each pull."""
        parts, stop, slices = [], 0, []
        for pull in self.pulls:
            both = []
            for points in (pull.points, pull.line[0]):
                parts.append(self.points.numbers(points))
                both.append(slice(stop, stop := stop + len(points)))
            slices.append((both[0], both[1]))
        return np.concatenate(parts), slices

    def values(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (m, p), B (m, p, n) and wrenches (m, p, 6) of p pulls at θ = q (m, n)."""
        numbers, slices = self._places
        rows = [self.points.slopes(numbers, theta) for theta in q]
        found = [[_pulled(*self._pieces(k, *at, x)) for k, at in enumerate(slices)] for x in rows]
        work, B = (np.array([[pull[part] for pull in row] for row in found]) for part in (0, 1))
        return work, B, np.zeros((*work.shape, 6))

    def derivatives(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂B_j/∂θ_l (m, p, n, n) by [j, l] and ∂wrench/∂θ_l (m, p, n, 6) by [l] at θ = q (m, n)."""
        numbers, slices = self._places
        rows = [self.points.bends(numbers, theta) for theta in q]
        B_q = np.array([[_bent(*self._pieces(k, *at, x)) for k, at in enumerate(slices)] for x in rows])
        return B_q, np.zeros((*B_q.shape[:-1], 6))

    def bends(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The second derivatives of the work along θ̇ = v at θ = q, shape (p,)."""
        numbers, slices = self._places
        x = self.points.slopes(numbers, q, v)
        found = []
        for k, (eyelets, line) in enumerate(slices):
            s, s_j, _ = self._pieces(k, eyelets, line, x)
            bent = np.diff(x.h[:, eyelets])
            if line.stop > line.start:
                bent = (x.F_h[..., line] * self.pulls[k].line[1].T).sum(axis=-2)
            found.append(_bent(s, np.einsum("jak,j->ak", s_j, v)[None], bent[None, None])[0, 0])
        return np.array(found)

    def _pieces(self, k: int, eyelets: slice, line: slice, x: Slopes | Bends) -> Pieces:
        """s (3, k), s_j (n, 3, k) and, of bends, s_jl (n, n, 3, k) of one pull."""
        bends = x if isinstance(x, Bends) else None
        if eyelets.stop > eyelets.start:
            second = None if bends is None else np.diff(bends.H[..., eyelets])
            return np.diff(x.p[:, eyelets]), np.diff(x.J[..., eyelets]), second
        tangent = self.pulls[k].line[1].T
        second = None if bends is None else (bends.F_jl[..., line] * tangent).sum(axis=-2)
        return (x.F[..., line] * tangent).sum(axis=-2), (x.F_j[..., line] * tangent).sum(axis=-2), second


def _pulled(s: np.ndarray, s_j: np.ndarray, s_jl: Any) -> tuple[float, np.ndarray]:
    """Work and B of (1)."""
    length = np.sqrt((s * s).sum(axis=0))
    return -float(length.sum()), -np.tensordot(s_j, s / length, axes=2)


def _bent(s: np.ndarray, s_j: np.ndarray, s_jl: Any) -> np.ndarray:
    """∂B of (1), or of one coordinate, along a rate."""
    length = np.sqrt((s * s).sum(axis=0))
    t = s / length
    along = (t * s_j).sum(axis=1)
    across = np.tensordot(s_j, s_j / length, axes=([1, 2], [1, 2])) - along @ (along / length).T
    return -np.einsum("jlak,ak->jl", s_jl, t) - across
