"""The curve r(q, μ, λ) = 0, e(q) = 0 of static equilibria: points, tangents, corrections.

λ is a factor of the loads, or the time of loads and prescribed motions. Increments along the curve are scaled by the
unit of each unknown: x = (δq / S, δμ / σ, δλ / Λ). S is `dofs.scale`. μ are the forces of the independent rows of the
constraint Jacobian. σ is the mean size of S K S. Λ is the width of the range of λ. Rows of r are multiplied by S, so
that a symmetric K stays symmetric, and rows of e by σ.

If λ is a factor, r is affine in λ, and its derivative r' is a difference of two values. If λ is the time, the
prescribed coordinates p(λ) move, and r' = ∂r/∂λ + ∂r/∂p dp/dλ is a central difference. The same holds for elastic
tendons, which become slack at some factor, and for inputs whose forces are not linear:

    r(q, μ, λ) = r₀ + λ (r₁ − r₀)   or   r' = (r(p(λ + h), λ + h) − r(p(λ − h), λ − h)) / 2h                (1)
    J = [S K S, −σ S Aᵀ, Λ S r'; σ A_q S, 0, Λ σ e'],   J τ = 0                                             (2)
    correction along a border w:  [J; wᵀ] x = (−S r; −σ e; 0)                                             (3)

Prescribed coordinates are no unknowns; their x is 0. Lengths include q and λ only: |τ| = 1, and w is zero on μ. Paths
with equal numbers of constraint rows are followed in the same launches, if λ is a factor and r is affine in it, or if λ
is the time. Each result is equal to the result of a single path.

The linear systems of (2) and (3) are singular or nearly so. A rod is stiffer against stretching than against bending by
the square of its slenderness, and the constraints of loops have other units. Therefore rows and columns are first
multiplied by given units. Then they are divided by the square roots of their largest entries until these are near 1.
Entries that are rounding errors of the largest entry are not enlarged:

    B = R A C,   B y = R b,   x = C y                                                                     (4)

A symmetry gives a motion n without stiffness. Near an equilibrium A n is not 0 but as large as the residual b. A direct
solution would divide the rounding error of b along n by it, and Newton's method would drift along n. Such singular
values are omitted if the equations are solved without them. Of all solutions x the shortest is returned. Its length
includes the coordinates (the first entries) and the load (the last entry).

Source: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, RAL 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from lissom.dynamics.assembly import prescribed_configuration
from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.loads import Times
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.statics.blas_threads import one_thread
from lissom.statics.newton import bordered_at
from lissom.statics.residual import static_residuals
from lissom.statics.stability import growing_exponents
from lissom.systems.bordered import allowed_motions

_ROUNDS = 5
_LEAST = 1e-13  # entries below this fraction of the largest may be rounding errors
_REGULAR = 1e-8  # no singular value is omitted if the reciprocal condition number is at least this
_ROUNDING = 1e-14
_CONSISTENT = 1e-6
_NOTHING = 1e-12  # rounding error of the residual of equations of size 1


def balance(A: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals R (..., m) and C (..., n) of (4) for matrices A (..., m, n). `units` are the units of the first
    rows and columns."""
    rows, columns, sizes = np.ones(A.shape[:-1]), np.ones((*A.shape[:-2], A.shape[-1])), np.abs(A)
    rows[..., : len(units)], columns[..., : len(units)] = units, units
    for _ in range(_ROUNDS):
        size = sizes * rows[..., None] * columns[..., None, :]
        by_row, by_column = (size.max(axis=axis, initial=0.0) for axis in (-1, -2))
        floor = _LEAST * by_row.max(axis=-1, initial=0.0, keepdims=True)
        rows /= np.sqrt(np.where(by_row > floor, by_row, 1.0))
        columns /= np.sqrt(np.where(by_column > floor, by_column, 1.0))
    return rows, columns


def solved(
    A: np.ndarray, b: np.ndarray, noise: float, units: np.ndarray, *, is_residual: bool = False
) -> np.ndarray | None:
    """x of (4) without singular values below `noise` times the largest and, if b is a residual, below the size of b.
    None if no x solves the equations."""
    return solved_each(A[None], b[None], noise, units, is_residual=is_residual)[0]


def solved_each(
    A: np.ndarray, b: np.ndarray, noise: float, units: np.ndarray, *, is_residual: bool = False
) -> list[np.ndarray | None]:
    """`solved` for each of n systems, A (n, m, k) and b (n, m)."""
    out: list[np.ndarray | None] = [None] * len(A)
    good = np.flatnonzero(np.isfinite(A).all(axis=(1, 2)) & np.isfinite(b).all(axis=1))
    rows, columns = balance(A[good], units)
    B, c = A[good] * rows[..., None] * columns[..., None, :], b[good] * rows
    for k, i in enumerate(good.tolist()):
        out[i] = _balanced_solution(B[k], c[k], columns[k], noise, len(units), is_residual)
    return out


def _balanced_solution(
    B: np.ndarray, c: np.ndarray, columns: np.ndarray, noise: float, n: int, is_residual: bool
) -> np.ndarray | None:
    """x = C y for B y = c; None if no x solves the equations."""
    if B.shape[0] == B.shape[1]:
        lapack = scipy.linalg.lapack
        lu, pivots, singular = lapack.dgetrf(B)
        if not singular and lapack.dgecon(lu, np.abs(B).sum(axis=0).max())[0] >= _REGULAR:
            return columns * lapack.dgetrs(lu, pivots, c)[0]
    size = float(np.abs(c).max(initial=0.0))
    U, values, V = np.linalg.svd(B, full_matrices=False)
    for least in (max(noise, min(size, _REGULAR)) if is_residual else noise, _ROUNDING):
        kept = values > least * values[0]
        y = V[kept].T @ ((U[:, kept].T @ c) / values[kept])
        if np.abs(B @ y - c).max() <= _CONSISTENT * size + _NOTHING:
            return _shortest(columns * y, V[~kept] * columns, n)
    return None


def _shortest(x: np.ndarray, free: np.ndarray, n: int) -> np.ndarray:
    """x plus that combination of the rows of `free` for which the first n entries and the last entry are shortest."""
    counted = np.append(np.arange(n), -1)
    return x - np.linalg.lstsq(free[:, counted].T, x[counted], rcond=None)[0] @ free if len(free) else x


def null_vectors(A: np.ndarray, count: int, units: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Null vectors of A (m, n).

    Returns:
        y (count, n): right singular vectors of B with the smallest singular values (missing values count as 0). C (n,).
        The left singular vector (m,) of the smallest singular value, in the units of A.
    """
    rows, columns = balance(A, units)
    U, _, V = np.linalg.svd(A * rows[:, None] * columns)
    return V[len(V) - count :], columns, U[:, -1] * rows


def nullity(A: np.ndarray, noise: float, units: np.ndarray) -> int:
    """Number of independent y with B y = 0: singular values below `noise` times the largest count as zero."""
    rows, columns = balance(A, units)
    values = np.linalg.svd(A * rows[:, None] * columns, compute_uv=False)
    return A.shape[1] - int((values > noise * values[0]).sum())


_TOLERANCE = 1e-11
_STALLED = 1e-5  # below this length, rounding errors near a singular K may prevent a step from shrinking
_LONGEST = 2.0
_STEPS = 9  # largest number of Newton steps of a correction from a neighbouring point
_NOISE = 1e-12  # singular values below this belong to a symmetry: in the search for a point,
_NEUTRAL = 1e-10  # at a found point,
_SOFT = 1e-9  # and in the search for a point that its neighbours predict well
_TIME_STEP = 1e-5  # step of finite differences in time, relative to its range

SINGULAR = "the linear equations are singular there and have no solution"
NOT_CONVERGED = "Newton's iteration does not converge, however short the step"


def refusal(model: Model, q: np.ndarray) -> str:
    """Why the robot cannot be at q (nq,)."""
    return model.joint_couplings.without_value(q) or "a rod interval turns by 2π there"


@final
@dataclass(frozen=True)
class PathPoint:
    """A point of a curve of equilibria.

    Fields:
        q: configuration (nq,).
        force: constraint forces (n_rows,).
        factor: λ.
        tangent: unit tangent of the curve in scaled units (nv + kept + 1,).
        growing: exponents of the unstable modes.
    """

    q: np.ndarray
    force: np.ndarray
    factor: float
    tangent: np.ndarray
    growing: np.ndarray


Ahead = tuple[PathPoint, int] | str
Corrected = tuple[np.ndarray, np.ndarray, float, int] | str


@final
@dataclass(frozen=True)
class _Derivatives:
    """Derivatives of the residual at states (n, ...).

    Fields:
        K, D, M: derivatives with respect to q, v and acceleration (n, nv, nv).
        A: constraint Jacobians (n, n_rows, nv).
        A_q: derivatives of the residuals of loops (n, n_rows, nv).
    """

    K: np.ndarray
    D: np.ndarray
    M: np.ndarray
    A: np.ndarray
    A_q: np.ndarray


@final
@dataclass(frozen=True)
class StaticPath:
    """A curve of equilibria of a model at constant u.

    Fields:
        t: time of the loads [s] if λ is their factor; None if λ is the time.
        width: Λ.
        kept: indices of the independent rows of the constraint Jacobian.
        sigma: σ.
        own: additional unit of each coordinate, in which its stiffness is 1; without a stiffness, the unit of the
            softest one.
    """

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
        """The path from λ = `begin`, with the rows of the constraint Jacobian that are independent at q."""
        kept, sigma = bordered_at(model, q, u, begin if t is None else t)
        stiff = model.elasticity.stiffness_diagonal * model.dofs.scale**2
        stiff = np.where(stiff > 0.0, stiff, stiff[stiff > 0.0].min(initial=np.inf))
        own = 1.0 / np.sqrt(np.where(np.isfinite(stiff), stiff, 1.0))
        own[model.prescribed.dof] = 1.0
        return cls(model, u, t, width, kept, sigma, own)

    @property
    def parameter(self) -> str:
        """The name of λ in messages."""
        return "time" if self.t is None else "factor"

    def loads(self, at: np.ndarray) -> tuple[Times, float]:
        """The times and the factor of the loads for each λ."""
        return (at, 1.0) if self.t is None else (self.t, float(at[0]))

    @property
    def units(self) -> np.ndarray:
        """Units (S, σ, Λ) of increments x, shape (nv + kept + 1,)."""
        return np.concatenate([self.model.dofs.scale, np.full(len(self.kept), self.sigma), [self.width]])

    def length(self, x: np.ndarray) -> float:
        """Length of an increment x, without its entries of μ."""
        return float(np.sqrt(x[: self.model.nv] @ x[: self.model.nv] + x[-1] ** 2))

    def border(self, x: np.ndarray) -> np.ndarray:
        """A copy of an increment x whose entries of μ are zero."""
        out = x.copy()
        out[self.model.nv : -1] = 0.0
        return out

    @property
    def is_affine(self) -> bool:
        """Whether r is affine in λ, so that its values at two λ determine it."""
        nonlinear = len(self.model.spools.channel) or self.model.nonlinear_input is not None
        return self.t is not None and not nonlinear

    @property
    def shares(self) -> bool:
        """Whether paths with other starts and inputs may be followed in the same launches."""
        return not self.model.calls_python and (self.is_affine or self.t is None)

    def residual(self, q: np.ndarray, force: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray] | None:
        """(S r; σ e) and its derivative with respect to λ by (1); None if a rod interval turns too far."""
        r, slope, refused = _residuals([self], q[None], force[None], np.array([at]))
        return None if refused[0] else (r[0], slope[0])

    def jacobian(self, q: np.ndarray, force: np.ndarray, at: float, slope: np.ndarray) -> np.ndarray:
        """J of (2), shape (nv + kept, nv + kept + 1)."""
        found = _derivatives([self], q[None], force[None], np.array([at]))
        return _bordered([self], found.K, found.A, found.A_q, slope[None])[0]

    def moved(self, at: PathPoint, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """q, constraint forces and λ after an increment x from a point."""
        q, force, factor = _moved([self], at.q[None], at.force[None], np.array([at.factor]), x[None])
        return q[0], force[0], float(factor[0])

    def between(self, a: PathPoint, b: PathPoint) -> np.ndarray:
        """The increment x from a to b."""
        change = difference(self.model, a.q, b.q)
        change[self.model.prescribed.dof] = 0.0
        return np.concatenate([change, (b.force - a.force)[self.kept], [b.factor - a.factor]]) / self.units

    def opened(self, x: np.ndarray, at: float) -> np.ndarray:
        """(δq, δλ) of an increment x at λ, with the increments of prescribed coordinates, shape (nv + 1,)."""
        change = (self.units * x)[np.append(np.arange(self.model.nv), -1)]
        if self.t is None and self.model.n_motions:
            h = _TIME_STEP * self.width
            behind, ahead = (self.model.motions(t)[0] for t in (at - h, at + h))
            change[self.model.prescribed.dof] = (ahead - behind) / (2.0 * h) * change[-1]
        return change

    def correct(
        self, q: np.ndarray, force: np.ndarray, factor: float, border: np.ndarray, limit: int
    ) -> tuple[np.ndarray, np.ndarray, float, int] | str:
        """The equilibrium (q, force, factor) in the plane normal to `border` by (3), and the number of steps; or the
        reason of a failure."""
        return _corrected([self], q[None], force[None], np.array([factor]), border[None], limit, _NOISE)[0]

    def point(self, q: np.ndarray, force: np.ndarray, factor: float, toward: np.ndarray) -> PathPoint | str:
        """The PathPoint at an equilibrium, with its tangent on the side of `toward`; or the reason of a failure."""
        return _points([self], q[None], force[None], np.array([factor]), toward[None])[0]

    def ahead(self, a: PathPoint, s: float, move: np.ndarray | None = None) -> tuple[PathPoint, int] | str:
        """The point at s along the tangent of a, corrected normal to the tangent, and the number of steps; or the
        reason of a failure. The correction starts at s on the tangent, or at a predicted `move` with the same s."""
        move, noise = (s * a.tangent, _NOISE) if move is None else (move, _SOFT)
        return _ahead([self], [a], move[None], noise)[0]


def ahead_on_each(paths: Sequence[StaticPath], a: Sequence[PathPoint], s: Sequence[float]) -> list[Ahead]:
    """The results of `ahead` on several paths of one model, in the same launches if possible."""
    if len(paths) == 1:
        return [paths[0].ahead(a[0], s[0])]
    groups: dict[int, list[int]] = {}
    for k, path in enumerate(paths):
        groups.setdefault(len(path.kept) if path.shares else -1 - k, []).append(k)
    out: list[Ahead] = [NOT_CONVERGED] * len(paths)
    for some in groups.values():
        moves = np.array([s[k] * a[k].tangent for k in some])
        for k, found in zip(some, _ahead([paths[k] for k in some], [a[k] for k in some], moves, _NOISE)):
            out[k] = found
    return out


def _ahead(paths: Sequence[StaticPath], a: Sequence[PathPoint], moves: np.ndarray, noise: float) -> list[Ahead]:
    """The points that are corrected from the ends of `moves`, increments x (n, ...) from the points a. All paths have
    equal numbers of independent constraint rows."""
    here = (np.array([p.q for p in a]), np.array([p.force for p in a]), np.array([p.factor for p in a]))
    tangents = np.array([p.tangent for p in a])
    border = np.array([path.border(x) for path, x in zip(paths, tangents)])
    ends = _corrected(paths, *_moved(paths, *here, moves), border, _STEPS, noise)
    out: list[Ahead] = [end if isinstance(end, str) else NOT_CONVERGED for end in ends]
    good = {k: end for k, end in enumerate(ends) if not isinstance(end, str)}
    if good:
        q, force, factor, steps = (np.array(x) for x in zip(*good.values()))
        which = np.array(list(good))
        found = _points(_selected(paths, which), q, force, factor, tangents[which])
        for k, there, count in zip(good, found, steps.tolist()):
            out[k] = there if isinstance(there, str) else (there, count)
    return out


def _corrected(
    paths: Sequence[StaticPath],
    q: np.ndarray,
    force: np.ndarray,
    factor: np.ndarray,
    border: np.ndarray,
    limit: int,
    noise: float,
) -> list[Corrected]:
    """The equilibria in the planes normal to the borders by (3), each with the number of steps; or the reason of a
    failure. The robot does not move along directions whose singular values are below the noise or the residual."""
    nv, at, last = paths[0].model.nv, np.arange(len(paths)), np.full(len(paths), np.inf)
    ends: list[Corrected] = [NOT_CONVERGED] * len(paths)
    q, force, factor = q.copy(), force.copy(), factor.copy()
    for iteration in range(1, limit + 1):
        x, why = _steps(_selected(paths, at), q[at], force[at], factor[at], border[at], noise)
        for k, reason in zip(at.tolist(), why):
            ends[k] = reason
        length = np.maximum(np.abs(x[:, :nv]).max(axis=1, initial=0.0), np.abs(x[:, -1]))
        near = length <= _LONGEST  # false for a step of NaN
        at, x, length = at[near], x[near], length[near]
        if not len(at):
            break
        q[at], force[at], factor[at] = _moved(_selected(paths, at), q[at], force[at], factor[at], x)
        done = (length <= _TOLERANCE) | ((length < _STALLED) & (length > 0.3 * last[at]))
        for k in at[done].tolist():
            ends[k] = q[k].copy(), force[k].copy(), float(factor[k]), iteration
        last[at], at = length, at[~done]
        if not len(at):
            break
    return ends


def _steps(
    paths: Sequence[StaticPath], q: np.ndarray, force: np.ndarray, at: np.ndarray, border: np.ndarray, noise: float
) -> tuple[np.ndarray, list[str]]:
    """The increments x of (3) (NaN if there is none), and for each the reason if it failed."""
    r, slope, refused = _residuals(paths, q, force, at)
    why = [refusal(paths[0].model, row) if x else NOT_CONVERGED for x, row in zip(refused, q)]
    x, some = np.full((len(paths), r.shape[1] + 1), np.nan), np.flatnonzero(~refused)
    if len(some):
        kept = _selected(paths, some)
        found = _derivatives(kept, q[some], force[some], at[some])
        J = _bordered(kept, found.K, found.A, found.A_q, slope[some])
        systems, right = np.concatenate([J, border[some, None]], axis=1), np.pad(-r[some], ((0, 0), (0, 1)))
        for k, step in zip(some.tolist(), solved_each(systems, right, noise, paths[0].own, is_residual=True)):
            if step is None:
                why[k] = SINGULAR
            else:
                x[k] = step
    return x, why


def _selected(paths: Sequence[StaticPath], which: np.ndarray) -> list[StaticPath]:
    return [paths[k] for k in which.tolist()]


def _points(
    paths: Sequence[StaticPath], q: np.ndarray, force: np.ndarray, factor: np.ndarray, toward: np.ndarray
) -> list[PathPoint | str]:
    """The PathPoints at equilibria, with their tangents on the sides of `toward`; or the reason of a failure."""
    _, slope, refused = _residuals(paths, q, force, factor)
    out: list[PathPoint | str] = [refusal(paths[0].model, row) for row in q]
    some = np.flatnonzero(~refused)
    if not len(some):
        return out
    kept = _selected(paths, some)
    model, found = paths[0].model, _derivatives(kept, q[some], force[some], factor[some])
    J = _bordered(kept, found.K, found.A, found.A_q, slope[some])
    sides = np.array([path.border(x) for path, x in zip(kept, toward[some])])
    unit = np.zeros((len(some), J.shape[2]))
    unit[:, -1] = 1.0
    tangents = solved_each(np.concatenate([J, sides[:, None]], axis=1), unit, _NEUTRAL, paths[0].own)
    for j, (k, path, x) in enumerate(zip(some.tolist(), kept, tangents)):
        out[k] = SINGULAR
        if x is not None:
            N = allowed_motions(model, found.A[j], path.kept)
            parts = (N.T @ X @ N for X in (found.K[j], found.D[j], found.M[j], model.elasticity.stiffness))
            with one_thread(2 * N.shape[1]):
                growing = growing_exponents(*parts)
            out[k] = PathPoint(q[k].copy(), force[k].copy(), float(factor[k]), x / path.length(x), growing)
    return out


def _residuals(
    paths: Sequence[StaticPath], q: np.ndarray, force: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(S r; σ e) and its derivative with respect to λ by (1), (n, nv + kept) each; and a mask (n,) of states in which a
    rod interval turns too far."""
    first, u = paths[0], np.array([path.u for path in paths])
    model, width, h = first.model, first.width, _TIME_STEP * first.width

    def rows(x: np.ndarray, there: np.ndarray = q) -> tuple[np.ndarray, np.ndarray]:
        return static_residuals(model, there, u, *first.loads(x), force)

    if first.is_affine:
        (here, refused), (end, beyond) = (rows(np.full(len(q), x)) for x in (0.0, 1.0))
        slope, refused = end - here, refused | beyond
        here = here + at[:, None] * slope
    else:
        ends = [rows(x, _on_motions(first, q, x)) for x in (at - h, at + h)]
        here, refused = rows(at)
        slope, refused = (ends[1][0] - ends[0][0]) / (2.0 * h), refused | ends[0][1] | ends[1][1]
    S, sigma = model.dofs.scale, np.array([path.sigma for path in paths])
    scale = np.hstack([np.tile(S, (len(q), 1)), np.tile(sigma[:, None], len(first.kept))])
    kept = np.array([path.kept for path in paths]).reshape(len(paths), len(first.kept))
    chosen = np.hstack([np.tile(np.arange(model.nv), (len(paths), 1)), model.nv + kept])
    here, slope = (np.take_along_axis(x, chosen, axis=1) for x in (here, slope))
    return scale * here, width * scale * slope, refused


def _derivatives(paths: Sequence[StaticPath], q: np.ndarray, force: np.ndarray, at: np.ndarray) -> _Derivatives:
    """The _Derivatives at q (n, nq), constraint forces and λ of each path."""
    first, u, zero = paths[0], np.array([path.u for path in paths]), np.zeros(paths[0].model.nv)
    model, lead = first.model, (len(q),)

    def found(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Workspace]:
        t, factor = first.loads(x)
        return residual_derivatives(model, q, zero, zero, u, t, factor, force)

    if first.is_affine and first.shares:
        K, D, M, _ = found(np.zeros(len(q)))
        K_1, D_1, _, w = found(np.ones(len(q)))
        K, D = K + at[:, None, None] * (K_1 - K), D + at[:, None, None] * (D_1 - D)
    else:
        K, D, M, w = found(at)
    return _Derivatives(K, D, M, *(row_results(model, w, name, lead) for name in ("A", "A_q")))


def _bordered(
    paths: Sequence[StaticPath], K: np.ndarray, A: np.ndarray, A_q: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """J of (2) of each path, from its parts."""
    model, n = paths[0].model, len(paths[0].kept)
    nv, S, kept = model.nv, model.dofs.scale, np.array([path.kept for path in paths]).reshape(len(paths), n, 1)
    J = np.zeros((len(paths), nv + n, nv + n + 1))
    J[:, :nv, :nv], J[:, :, -1] = K * S * S[:, None], slope
    if n:
        sigma = np.array([path.sigma for path in paths])[:, None, None]
        A, A_q = (np.take_along_axis(X, kept, axis=1) * S for X in (A, A_q))
        A[..., model.prescribed.dof] = A_q[..., model.prescribed.dof] = 0.0
        J[:, :nv, nv:-1], J[:, nv:, :nv] = -sigma * np.swapaxes(A, 1, 2), sigma * A_q
    return J


def _moved(
    paths: Sequence[StaticPath], q: np.ndarray, force: np.ndarray, factor: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, constraint forces and λ after increments x (n, ...)."""
    first, model, pushed = paths[0], paths[0].model, force.copy()
    for row, path, move in zip(pushed, paths, x) if len(first.kept) else ():
        row[path.kept] += path.sigma * move[model.nv : -1]
    factor = factor + first.width * x[:, -1]
    return _on_motions(first, integrate(model, q, model.dofs.scale * x[:, : model.nv]), factor), pushed, factor


def _on_motions(path: StaticPath, q: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Configurations (n, nq) whose prescribed coordinates have their values at each λ, if λ is the time."""
    return (
        q if path.t is not None else np.array([prescribed_configuration(path.model, *x) for x in zip(q, at.tolist())])
    )
