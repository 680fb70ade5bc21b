"""The curve r(q, μ, λ) = 0, e(q) = 0 of static equilibria under the load factor λ: points, tangents, corrections.

Moves along it are taken in units of each unknown: x = (δq / S, δμ / σ, δλ / Λ), S = `dof_scale`, μ the forces of the
independent rows of loops and σ the mean size of S K S, Λ the width of the range of λ; rows of r are multiplied by S, so
that K stays symmetric where it was, those of e by σ. r is affine in λ, so its slope is a difference:

    r(q, μ, λ) = r₀ + λ (r₁ − r₀),   J = [S K S, −σ S Aᵀ, Λ S (r₁ − r₀); σ A_q S, 0, 0],   J τ = 0          (1)
    correction along a border w:  [J; wᵀ] x = (−S r; −σ e; 0)                                             (2)

Lengths count q and λ alone: |τ| = 1, and w is zero on μ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.independent_rows import allowed_motions, bordered_matrix, independent_rows
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
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
    """An equilibrium q with the forces of loops at a factor, the unit tangent of the curve there (scaled) and its
    growing exponents."""

    q: np.ndarray
    force: np.ndarray
    factor: float
    tangent: np.ndarray
    growing: np.ndarray


@final
@dataclass(frozen=True)
class StaticPath:
    """The equilibria of a model under fixed u and t; the unit Λ in which the factor is measured, the independent rows
    of loops and the unit σ of their forces."""

    model: Model
    u: np.ndarray
    t: float
    width: float
    kept: np.ndarray
    sigma: float

    @classmethod
    def near(cls, model: Model, q: np.ndarray, u: np.ndarray, t: float, width: float) -> StaticPath:
        """The path with the rows of loops that are independent at q."""
        K, A, A_q = residual_jacobian(model, q, u, t)
        kept = independent_rows(model, A)
        return cls(model, u, t, width, kept, bordered_matrix(model, K, A, A_q, kept)[1])

    @property
    def units(self) -> np.ndarray:
        """Units (S, σ, Λ) of moves, shape (nv + kept + 1,)."""
        return np.concatenate([self.model.dof_scale, np.full(len(self.kept), self.sigma), [self.width]])

    def length(self, x: np.ndarray) -> float:
        """Length of a move: that of its parts in q and λ."""
        return float(np.sqrt(x[: self.model.nv] @ x[: self.model.nv] + x[-1] ** 2))

    def border(self, x: np.ndarray) -> np.ndarray:
        """A move without its part in μ."""
        out = x.copy()
        out[self.model.nv : -1] = 0.0
        return out

    def residual(self, q: np.ndarray, force: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray] | None:
        """(S r; σ e) and its slope by (1); None where a rod interval turns too far."""
        ends = [static_residual(self.model, q, self.u, self.t, end, force) for end in (0.0, 1.0)]
        if ends[0] is None or ends[1] is None:
            return None
        nv = self.model.nv
        scale = np.concatenate([self.model.dof_scale, np.full(len(self.kept), self.sigma)])
        r, slope = (x[np.concatenate([np.arange(nv), nv + self.kept])] for x in (ends[0], ends[1] - ends[0]))
        return scale * (r + factor * slope), self.width * scale * slope

    def jacobian(self, q: np.ndarray, force: np.ndarray, factor: float, slope: np.ndarray) -> np.ndarray:
        """J of (1), shape (nv + kept, nv + kept + 1)."""
        K, A, A_q = residual_jacobian(self.model, q, self.u, self.t, factor, force)
        return self.bordered(K, A, A_q, slope)

    def bordered(self, K: np.ndarray, A: np.ndarray, A_q: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """J of (1) from its parts."""
        S, held = self.model.dof_scale, self.model.motion_dof
        A, A_q = A[self.kept] * S, A_q[self.kept] * S
        A[:, held] = A_q[:, held] = 0.0
        none = np.zeros((len(self.kept), len(self.kept)))
        square = np.block([[K * S * S[:, None], -self.sigma * A.T], [self.sigma * A_q, none]])
        return np.column_stack([square, slope])

    def moved(self, at: PathPoint, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """q, forces and λ after a move x from a point."""
        return self._moved(at.q, at.force, at.factor, x)

    def _moved(
        self, q: np.ndarray, force: np.ndarray, factor: float, x: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        nv, pushed = self.model.nv, force.copy()
        pushed[self.kept] += self.sigma * x[nv:-1]
        return integrate(self.model, q, self.model.dof_scale * x[:nv]), pushed, factor + self.width * float(x[-1])

    def between(self, a: PathPoint, b: PathPoint) -> np.ndarray:
        """The move from a to b."""
        change = [difference(self.model, a.q, b.q), (b.force - a.force)[self.kept], [b.factor - a.factor]]
        return np.concatenate(change) / self.units

    def correct(
        self, q: np.ndarray, force: np.ndarray, factor: float, border: np.ndarray, limit: int = 9
    ) -> tuple[np.ndarray, np.ndarray, float, int] | None:
        """The equilibrium in the plane normal to the border by (2), and the steps taken; None where that fails."""
        last = np.inf
        for iteration in range(1, limit + 1):
            found = self.residual(q, force, factor)
            if found is None:
                return None
            r, slope = found
            x = _solved(np.vstack([self.jacobian(q, force, factor, slope), border]), np.append(-r, 0.0))
            length = float(np.abs(self.border(x)).max())
            if not length <= _LONGEST:
                return None
            q, force, factor = self._moved(q, force, factor, x)
            if length <= _TOLERANCE or (length < _STALLED and length > 0.3 * last):
                return q, force, factor, iteration
            last = length
        return None

    def point(self, q: np.ndarray, force: np.ndarray, factor: float, toward: np.ndarray) -> PathPoint | None:
        """The point at an equilibrium, its tangent on the side of `toward`; None where it has none."""
        found = self.residual(q, force, factor)
        if found is None:
            return None
        model, still = self.model, np.zeros(self.model.nv)
        K, D, M, w = residual_derivatives(model, q, still, still, self.u, self.t, factor, force)
        A, A_q = row_results(model, w, "A"), row_results(model, w, "A_q")
        unit = np.append(np.zeros(model.nv + len(self.kept)), 1.0)
        tangent = _solved(np.vstack([self.bordered(K, A, A_q, found[1]), self.border(toward)]), unit)
        if not np.isfinite(tangent).all():
            return None
        N = allowed_motions(model, A, self.kept)
        growing = growing_exponents(*(N.T @ X @ N for X in (K, D, M, model.stiffness)))
        return PathPoint(q, force, factor, tangent / self.length(tangent), growing)

    def ahead(self, a: PathPoint, s: float) -> tuple[PathPoint, int] | None:
        """The point at s along the tangent of a, corrected normal to it, and the steps that took."""
        found = self.correct(*self.moved(a, s * a.tangent), self.border(a.tangent))
        if found is None:
            return None
        there = self.point(*found[:3], a.tangent)
        return None if there is None else (there, found[3])


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
