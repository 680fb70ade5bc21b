"""The curve r(q, λ) = 0 of static equilibria under the load factor λ: its points, tangents and corrections.

Moves along it are taken in units of each coordinate: x = (δq / S, δλ / Λ), S = `dof_scale`, Λ the width of the range of
λ; rows of r are multiplied by S, so K stays symmetric where it was. r is affine in λ, so its slope is a difference:

    r(q, λ) = r₀ + λ (r₁ − r₀),   J = [S K S | Λ S (r₁ − r₀)],   J τ = 0,  |τ| = 1                        (1)
    correction along a border w:  [J; wᵀ] x = (−S r; 0)                                                   (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.model.model import Model
from lissom.statics.equilibrium import static_residual
from lissom.statics.stability import growing_exponents
from lissom.statics.tangent_stiffness import residual_jacobian

_TOLERANCE = 1e-11
_STALLED = 1e-5  # rounding near a singular K keeps a step from shrinking further
_LONGEST = 2.0
_NEARLY_SINGULAR = 1e-12
_ROUNDING = 1e-14
_CONSISTENT = 1e-6


@final
@dataclass(frozen=True)
class PathPoint:
    """An equilibrium q at a factor, the unit tangent of the curve there (scaled) and its growing exponents."""

    q: np.ndarray
    factor: float
    tangent: np.ndarray
    growing: np.ndarray


@final
@dataclass(frozen=True)
class StaticPath:
    """The equilibria of a model under fixed u and t, and the unit Λ in which the factor is measured."""

    model: Model
    u: np.ndarray
    t: float
    width: float

    @property
    def units(self) -> np.ndarray:
        """Units (S, Λ) of moves, shape (nv + 1,)."""
        return np.append(self.model.dof_scale, self.width)

    def residual(self, q: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray] | None:
        """S r and its slope Λ S (r₁ − r₀) by (1); None where a rod interval turns too far."""
        ends = [static_residual(self.model, q, self.u, self.t, end) for end in (0.0, 1.0)]
        if ends[0] is None or ends[1] is None:
            return None
        S, slope = self.model.dof_scale, ends[1] - ends[0]
        return S * (ends[0] + factor * slope), self.width * S * slope

    def jacobian(self, q: np.ndarray, factor: float, slope: np.ndarray) -> np.ndarray:
        """J of (1), shape (nv, nv + 1)."""
        S = self.model.dof_scale
        return np.column_stack([residual_jacobian(self.model, q, self.u, self.t, factor) * S * S[:, None], slope])

    def moved(self, q: np.ndarray, factor: float, x: np.ndarray) -> tuple[np.ndarray, float]:
        """q and λ after a move x."""
        return integrate(self.model, q, self.model.dof_scale * x[:-1]), factor + self.width * float(x[-1])

    def between(self, a: PathPoint, b: PathPoint) -> np.ndarray:
        """The move from a to b."""
        return np.append(difference(self.model, a.q, b.q), b.factor - a.factor) / self.units

    def correct(
        self, q: np.ndarray, factor: float, border: np.ndarray, limit: int = 9
    ) -> tuple[np.ndarray, float, int] | None:
        """The equilibrium in the plane normal to the border by (2), and the steps taken; None where that fails."""
        last = np.inf
        for iteration in range(1, limit + 1):
            found = self.residual(q, factor)
            if found is None:
                return None
            r, slope = found
            x = _solved(np.vstack([self.jacobian(q, factor, slope), border]), np.append(-r, 0.0))
            length = float(np.abs(x).max())
            if not length <= _LONGEST:
                return None
            q, factor = self.moved(q, factor, x)
            if length <= _TOLERANCE or (length < _STALLED and length > 0.3 * last):
                return q, factor, iteration
            last = length
        return None

    def point(self, q: np.ndarray, factor: float, toward: np.ndarray) -> PathPoint | None:
        """The point at an equilibrium, its tangent on the side of `toward`; None where it has none."""
        found = self.residual(q, factor)
        if found is None:
            return None
        S, still = self.model.dof_scale, np.zeros(self.model.nv)
        K, D, M = (
            x * S * S[:, None] for x in residual_derivatives(self.model, q, still, still, self.u, self.t, factor)
        )
        unit = np.append(np.zeros(self.model.nv), 1.0)
        tangent = _solved(np.vstack([np.column_stack([K, found[1]]), toward]), unit)
        if not np.isfinite(tangent).all():
            return None
        free = np.setdiff1d(np.arange(self.model.nv), self.model.motion_dof)
        elastic = self.model.stiffness * S * S[:, None]
        growing = growing_exponents(*(x[np.ix_(free, free)] for x in (K, D, M, elastic)))
        return PathPoint(q, factor, tangent / np.linalg.norm(tangent), growing)

    def ahead(self, a: PathPoint, s: float) -> tuple[PathPoint, int] | None:
        """The point at s along the tangent of a, corrected normal to it, and the steps that took."""
        found = self.correct(*self.moved(a.q, a.factor, s * a.tangent), a.tangent)
        if found is None:
            return None
        there = self.point(found[0], found[1], a.tangent)
        return None if there is None else (there, found[2])


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A⁻¹ b. Where A is singular to rounding, as where symmetry gives a whole ring of equilibria, the shortest
    solution; infinite where there is none."""
    if not np.isfinite(A).all():
        return np.full(b.shape, np.inf)
    lu, pivots, singular = dgetrf(A)
    if not singular and dgecon(lu, np.abs(A).sum(axis=0).max())[0] >= _NEARLY_SINGULAR:
        return dgetrs(lu, pivots, b)[0]
    x = np.linalg.lstsq(A, b, rcond=_ROUNDING)[0]
    solves = np.abs(A @ x - b).max() <= _CONSISTENT * np.abs(b).max() + _NEARLY_SINGULAR * np.abs(A).max()
    return x if solves else np.full(b.shape, np.inf)
