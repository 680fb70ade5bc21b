"""The curve r(q, μ, λ) = 0, e(q) = 0 of static equilibria: points, tangents, corrections.

λ is a factor of the loads, or the time of loads and prescribed motions. Moves along the curve are taken in units of
each unknown: x = (δq / S, δμ / σ, δλ / Λ), S = `dofs.scale`, μ the forces of the independent rows of loops and σ the
mean size of S K S, Λ the width of the range of λ; rows of r are multiplied by S, so that K stays symmetric where it
was, those of e by σ. r is affine in a factor, so its slope r' is a difference; in the time, where the prescribed
coordinates p(λ) move with it, r' = ∂r/∂λ + ∂r/∂p dp/dλ is a central difference with p moved along, and so it is with
elastic tendons, which fall slack at some factor:

    r(q, μ, λ) = r₀ + λ (r₁ − r₀)   or   r' = (r(p(λ + h), λ + h) − r(p(λ − h), λ − h)) / 2h                (1)
    J = [S K S, −σ S Aᵀ, Λ S r'; σ A_q S, 0, Λ σ e'],   J τ = 0                                             (2)
    correction along a border w:  [J; wᵀ] x = (−S r; −σ e; 0)                                             (3)

Prescribed coordinates are no unknowns: their x is 0. Lengths count q and λ alone: |τ| = 1, and w is zero on μ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.assembly import moved_to
from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.model.model import Model
from lissom.statics.nearly_singular import solved
from lissom.statics.newton_python import bordered_at
from lissom.statics.residual import residual_jacobian, static_residual
from lissom.statics.stability import growing_exponents
from lissom.systems.allowed_motions import allowed_motions

_TOLERANCE = 1e-11
_STALLED = 1e-5  # rounding near a singular K keeps a step from shrinking further
_LONGEST = 2.0
_NOISE = 1e-12  # singular values that are taken for those of symmetry, where a point is sought,
_NEUTRAL = 1e-10  # where it is found,
_SOFT = 1e-9  # and where it is known well between its neighbours
_TIME_STEP = 1e-5  # of differences in time, in units of its range

WOUND_UP = "a rod interval turns by 2π there"
SINGULAR = "no move solves the linear equations, which are singular there"
NOT_CONVERGED = "Newton's iteration does not converge, however short the step"


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
    """The equilibria of a model under fixed u and, where t is a number, at that time, along a factor of the loads;
    along the time where t is None. The unit Λ in which λ is measured, the independent rows of loops and the unit σ of
    their forces; of each coordinate the further unit in which its stiffness is 1, or that of the softest."""

    model: Model
    u: np.ndarray
    t: float | None
    width: float
    kept: np.ndarray
    sigma: float
    own: np.ndarray

    @classmethod
    def near(
        cls, model: Model, q: np.ndarray, u: np.ndarray, t: float | None, begin: float, width: float
    ) -> StaticPath:
        """The path from λ = `begin` with the rows of loops that are independent at q."""
        kept, sigma = bordered_at(model, q, u, begin if t is None else t)
        stiff = np.diag(model.elasticity.stiffness) * model.dofs.scale**2
        stiff = np.where(stiff > 0.0, stiff, stiff[stiff > 0.0].min(initial=np.inf))
        own = 1.0 / np.sqrt(np.where(np.isfinite(stiff), stiff, 1.0))
        own[model.prescribed.dof] = 1.0
        return cls(model, u, t, width, kept, sigma, own)

    @property
    def parameter(self) -> str:
        """What λ is."""
        return "time" if self.t is None else "factor"

    def load(self, at: float) -> tuple[float, float]:
        """The time and the factor of the loads at λ."""
        return (at, 1.0) if self.t is None else (self.t, at)

    @property
    def units(self) -> np.ndarray:
        """Units (S, σ, Λ) of moves, shape (nv + kept + 1,)."""
        return np.concatenate([self.model.dofs.scale, np.full(len(self.kept), self.sigma), [self.width]])

    def length(self, x: np.ndarray) -> float:
        """Length of a move: that of its parts in q and λ."""
        return float(np.sqrt(x[: self.model.nv] @ x[: self.model.nv] + x[-1] ** 2))

    def border(self, x: np.ndarray) -> np.ndarray:
        """A move without its part in μ."""
        out = x.copy()
        out[self.model.nv : -1] = 0.0
        return out

    def residual(self, q: np.ndarray, force: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray] | None:
        """(S r; σ e) and its slope by (1); None where a rod interval turns too far."""
        model, h = self.model, _TIME_STEP * self.width
        if self.t is None or len(model.spools.channel):
            there = [moved_to(model, q, x) if self.t is None else q for x in (at - h, at + h)]
            ends = [static_residual(model, p, self.u, *self.load(x), force) for p, x in zip(there, (at - h, at + h))]
            here = static_residual(model, q, self.u, *self.load(at), force)
            if here is None or ends[0] is None or ends[1] is None:
                return None
            slope = (ends[1] - ends[0]) / (2.0 * h)
        else:
            ends = [static_residual(model, q, self.u, self.t, end, force) for end in (0.0, 1.0)]
            if ends[0] is None or ends[1] is None:
                return None
            slope = ends[1] - ends[0]
            here = ends[0] + at * slope
        scale = np.concatenate([model.dofs.scale, np.full(len(self.kept), self.sigma)])
        rows = np.concatenate([np.arange(model.nv), model.nv + self.kept])
        return scale * here[rows], self.width * scale * slope[rows]

    def jacobian(self, q: np.ndarray, force: np.ndarray, at: float, slope: np.ndarray) -> np.ndarray:
        """J of (2), shape (nv + kept, nv + kept + 1)."""
        K, A, A_q = residual_jacobian(self.model, q, self.u, *self.load(at), force)
        return self.bordered(K, A, A_q, slope)

    def bordered(self, K: np.ndarray, A: np.ndarray, A_q: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """J of (2) from its parts."""
        S, held = self.model.dofs.scale, self.model.prescribed.dof
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
        q, factor = integrate(self.model, q, self.model.dofs.scale * x[:nv]), factor + self.width * float(x[-1])
        return (moved_to(self.model, q, factor) if self.t is None else q), pushed, factor

    def between(self, a: PathPoint, b: PathPoint) -> np.ndarray:
        """The move from a to b."""
        change = difference(self.model, a.q, b.q)
        change[self.model.prescribed.dof] = 0.0
        return np.concatenate([change, (b.force - a.force)[self.kept], [b.factor - a.factor]]) / self.units

    def opened(self, x: np.ndarray, at: float) -> np.ndarray:
        """(δq, δλ) of a move x at λ, with what prescribed coordinates do meanwhile; shape (nv + 1,)."""
        change = (self.units * x)[np.append(np.arange(self.model.nv), -1)]
        if self.t is None and self.model.n_motions:
            h = _TIME_STEP * self.width
            behind, ahead = (self.model.motions(t)[0] for t in (at - h, at + h))
            change[self.model.prescribed.dof] = (ahead - behind) / (2.0 * h) * change[-1]
        return change

    def correct(
        self,
        q: np.ndarray,
        force: np.ndarray,
        factor: float,
        border: np.ndarray,
        limit: int = 9,
        noise: float = _NOISE,
    ) -> tuple[np.ndarray, np.ndarray, float, int] | str:
        """The equilibrium in the plane normal to the border by (3), and the steps taken; or why there is none. What the
        equations hold by less than the noise, or than the residual, stays."""
        last = np.inf
        for iteration in range(1, limit + 1):
            found = self.residual(q, force, factor)
            if found is None:
                return WOUND_UP
            r, slope = found
            J = self.jacobian(q, force, factor, slope)
            x = solved(np.vstack([J, border]), np.append(-r, 0.0), noise, self.own, is_residual=True)
            if x is None:
                return SINGULAR
            length = float(np.abs(self.border(x)).max())
            if not length <= _LONGEST:
                return NOT_CONVERGED
            q, force, factor = self._moved(q, force, factor, x)
            if length <= _TOLERANCE or (length < _STALLED and length > 0.3 * last):
                return q, force, factor, iteration
            last = length
        return NOT_CONVERGED

    def point(self, q: np.ndarray, force: np.ndarray, factor: float, toward: np.ndarray) -> PathPoint | str:
        """The point at an equilibrium, its tangent on the side of `toward`; or why there is none."""
        found = self.residual(q, force, factor)
        if found is None:
            return WOUND_UP
        model, zero = self.model, np.zeros(self.model.nv)
        K, D, M, w = residual_derivatives(model, q, zero, zero, self.u, *self.load(factor), force)
        A, A_q = row_results(model, w, "A"), row_results(model, w, "A_q")
        unit = np.append(np.zeros(model.nv + len(self.kept)), 1.0)
        tangent = solved(np.vstack([self.bordered(K, A, A_q, found[1]), self.border(toward)]), unit, _NEUTRAL, self.own)
        if tangent is None:
            return SINGULAR
        N = allowed_motions(model, A, self.kept)
        growing = growing_exponents(*(N.T @ X @ N for X in (K, D, M, model.elasticity.stiffness)))
        return PathPoint(q, force, factor, tangent / self.length(tangent), growing)

    def ahead(self, a: PathPoint, s: float, move: np.ndarray | None = None) -> tuple[PathPoint, int] | str:
        """The point at s along the tangent of a, corrected normal to it from there or from a `move` as long, and the
        steps that took; or why there is none."""
        noise = _NOISE if move is None else _SOFT
        begin = self.moved(a, s * a.tangent if move is None else move)
        found = self.correct(*begin, self.border(a.tangent), noise=noise)
        if isinstance(found, str):
            return found
        there = self.point(*found[:3], a.tangent)
        return there if isinstance(there, str) else (there, found[3])
