"""Search for a stable equilibrium by a damped descent: the motion of an overdamped robot after its release.

    W dq/dτ = −r(q) + Aᵀ λ,   A dq/dτ = 0                                                                 (1)
    (W/h + K) y = −r  on the allowed motions,  δq = N y, then back onto the loops                          (2)

(2) solves (1) by the implicit Euler method with one Newton step for each time step h. h grows while steps are accepted;
for h = ∞, (2) is Newton's method. W is the stiffness of springs and rods at rest, so that soft and stiff coordinates
settle at the same rate. For coordinates without a spring, W is the stiffness of the loads. A step is accepted if W/h +
K is positive definite and the forces do work along the step:

    ½ (r(q) + r(q⁺)) · δq < 0                                                                             (3)

For conservative loads the potential then decreases with each step. The descent ends at a saddle only if it starts
there. It leaves a saddle along the most unstable mode.

(3) does not see a shape through which a step passes. So no ball that is near an obstacle moves in one step by more than
its gap and a part of its radius. With `follows`, balls that begin to touch get anchors after each step, and anchors of
balls that slide follow them.

Source: C. T. Kelley, D. E. Keyes, SIAM J. Numer. Anal. 35, 1998 (pseudo-transient continuation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from lissom.dynamics.assembly import project_onto_loops
from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.contacts import balls_at, contact_anchors, put_anchors
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.errors import ConvergenceError
from lissom.launch.workspace import independent_rows
from lissom.model.model import Model
from lissom.statics.blas_threads import one_thread
from lissom.statics.residual import residual_jacobian, static_residual
from lissom.statics.stability import is_symmetric
from lissom.systems.bordered import allowed_motions

_LONGEST = 0.7  # longest step, in units of dofs.scale
_NEAR = 1e-3  # length of a Newton step below which Newton's method takes over
_ASIDE = 0.02  # length of the step that leaves a saddle
_LEAST_PACE = 1e-12
_DEEP = 0.5  # part of its radius by which a ball may enter an obstacle in one step
_LEAST_DEEP = 2e-4  # and the least such depth [m]
_NOTHING = 1e-9
EIGENVALUES = 20  # cost of a dense eigenvalue problem, in Newton iterations


@final
@dataclass(frozen=True)
class Slope:
    """The quantities of (2) at q.

    Fields:
        r: residual (nv,) without constraint forces.
        force: constraint forces (n_rows,).
        N: allowed motions (nv, n).
        K, W: matrices (n, n) on the allowed motions.
    """

    q: np.ndarray
    r: np.ndarray
    force: np.ndarray
    N: np.ndarray
    K: np.ndarray
    W: np.ndarray

    @property
    def along(self) -> np.ndarray:
        """The residual on the allowed motions, Nᵀ r, shape (n,)."""
        return self.N.T @ self.r


@final
@dataclass
class Descent:
    """A descent of one robot at constant u and t.

    Fields:
        here: present state.
        steps: number of steps.
        work: cost in Newton iterations: one for each tried step, and EIGENVALUES for each eigenvalue problem.
        pace: h of (2).
        follows: whether anchors follow balls that slide.
    """

    model: Model
    u: np.ndarray
    t: float
    here: Slope
    follows: bool = False
    steps: int = 0
    work: int = 0
    pace: float = 0.1

    @classmethod
    def start(cls, model: Model, q: np.ndarray, u: np.ndarray, t: float, *, follows: bool) -> Descent | None:
        """A descent from q (nq,) with closed loops; None if the robot cannot be evaluated there."""
        r = _load_force(model, q, u, t)
        slope = None if r is None else _slope(model, q, u, t, r)
        return None if slope is None else cls(model, u, t, slope, follows)

    def advance(self, limit: int, report: Callable[[int], None]) -> bool:
        """Descend until Newton's method may take over, no step decreases the potential, or the work reaches the limit.

        Args:
            report: called with the work after each step.
        Returns:
            True if Newton's method may take over: K is positive definite and its step is short, or the point is
            stationary.
        """
        with one_thread(len(self.here.K)):
            return self._advanced(limit, report)

    def _advanced(self, limit: int, report: Callable[[int], None]) -> bool:
        while self.work < limit:
            self.steps += 1
            self.work += 1
            report(self.work)
            y = _solved(self.here.K, 1.0 / _NOTHING, self.here)
            if y is not None and self._length(self.here.N @ y) <= _NEAR:
                return True
            if self._descend():
                continue
            if self._length(self.here.N @ np.linalg.solve(self.here.W, self.here.along)) > _NEAR:
                return False
            if not self.leave():
                return True
        return False

    def leave(self) -> bool:
        """Take a step along the most unstable mode of (K, W) that lowers the energy. Returns False if no mode is
        unstable or (3) fails."""
        self.work += EIGENVALUES
        K, W = 0.5 * (self.here.K + self.here.K.T), self.here.W
        with one_thread(len(K)):
            size, shape = scipy.linalg.eigh(K, W)
        if not len(size) or size[0] >= -_NOTHING:
            return False
        x = self.here.N @ shape[:, 0]
        falls = -float(x @ self.here.r)
        largest = x[np.abs(x / self.model.dofs.scale).argmax()]
        scale = np.linalg.norm(self.here.r * self.model.dofs.scale) * np.linalg.norm(x / self.model.dofs.scale)
        x *= np.sign(falls if abs(falls) > _NOTHING * scale else largest) * _ASIDE / self._length(x)
        self.pace = 0.5 / float(-size[0])
        return self._moved(x)

    def _descend(self) -> bool:
        """Take one step by (2). h is reduced from its last value until (3) holds. Returns whether a step was found."""
        while self.pace > _LEAST_PACE:
            y = _solved(self.here.K, self.pace, self.here)
            x = None if y is None else self.here.N @ y
            self.work += 1
            if x is not None and self._length(x) < _NEAR**2:
                return False
            if x is not None and self._length(x) <= _LONGEST and self._moved(x):
                self.pace *= 3.0
                return True
            self.pace *= 0.25
        return False

    def _length(self, x: np.ndarray) -> float:
        return float(np.max(np.abs(x) / self.model.dofs.scale, initial=0.0))

    def _moved(self, x: np.ndarray) -> bool:
        """Move by x and back onto the loops, if (3) holds. Returns whether it holds."""
        model, q = self.model, integrate(self.model, self.here.q, x)
        if model.n_rows:
            try:
                q = project_onto_loops(model, q[None], np.zeros((1, model.nv)))[0][0]
            except (ConvergenceError, np.linalg.LinAlgError):
                return False
        if len(model.contacts.pair) and self._leaps(q):
            return False
        r = _load_force(model, q, self.u, self.t)
        if r is None or (self.here.r + r) @ difference(model, self.here.q, q) >= 0.0:
            return False
        if self.follows:
            put_anchors(model, contact_anchors(model, q))
        slope = _slope(model, q, self.u, self.t, r)
        if slope is None:
            return False
        self.here = slope
        return True

    def _leaps(self, q: np.ndarray) -> bool:
        """Whether a ball near an obstacle could pass through it on the way to q."""
        world = self.model.contacts
        (gap, here), (_, there) = (balls_at(self.model, x) for x in (self.here.q, q))
        allowed = np.maximum(gap, 0.0) + np.maximum(_DEEP * world.ball_radius, _LEAST_DEEP)
        return bool((np.linalg.norm(there - here, axis=1) > allowed)[gap < world.margin].any())


def _load_force(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> np.ndarray | None:
    """The static residual (nv,) without constraint forces; None if the robot cannot be evaluated at q."""
    r = static_residual(model, q, u, t)
    return None if r is None else r[: model.nv]


def _slope(model: Model, q: np.ndarray, u: np.ndarray, t: float, r: np.ndarray) -> Slope | None:
    """The Slope at q. The constraint forces minimise r in units of dofs.scale. None if K is not finite."""
    A, kept, force = np.zeros((0, model.nv)), np.zeros(0, dtype=int), np.zeros(model.n_rows)
    if model.n_rows:
        w, _ = run_constraints(model, q, find_independent=True)
        A, kept = row_results(model, w, "A"), independent_rows(w)
    N, S = allowed_motions(model, A, kept), model.dofs.scale
    if len(kept):
        rows = A[kept] * S
        rows[:, model.prescribed.dof] = 0.0
        force[kept] = np.linalg.lstsq(rows.T, S * r, rcond=None)[0]
    K = residual_jacobian(model, q, u, t, 1.0, force)[0]
    if not np.isfinite(K).all():
        return None
    own, loads = (
        model.elasticity.stiffness_diagonal,
        np.abs((K - model.elasticity.stiffness) * S * S[:, None]).max(initial=0.0),
    )
    size = max(loads, float(np.abs(S * r).max(initial=0.0))) or 1.0
    W = model.elasticity.stiffness + np.diag(np.where(own > 0.0, _NOTHING * own, size / S**2))
    return Slope(q, r, force, N, N.T @ K @ N, N.T @ W @ N)


def _solved(K: np.ndarray, h: float, at: Slope) -> np.ndarray | None:
    """−(W/h + K)⁻¹ r on the allowed motions. None if the matrix is not positive definite, or if r does no work along
    the result."""
    if not len(K):
        return np.zeros(0)
    matrix = at.W / h + K
    try:
        if is_symmetric(K):
            return -scipy.linalg.cho_solve(scipy.linalg.cho_factor(0.5 * (matrix + matrix.T)), at.along)
        y = -np.linalg.solve(matrix, at.along)
    except np.linalg.LinAlgError:
        return None
    return y if y @ at.along <= 0.0 else None
