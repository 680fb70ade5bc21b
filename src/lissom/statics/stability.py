"""Stability of equilibria. A mode is a small motion x exp(s t). It is unstable if s has a positive real part, with

    (s² M + s D + K) x = 0                                                                                (1)

If K is symmetric, the number of unstable modes is the number of negative eigenvalues of K, for any M and any D ≥ 0
(Kelvin, Tait and Chetaev). Otherwise (1) is solved.

A rod is stiffer against stretching than against bending by the square of its slenderness, and slow, soft motions would
be lost in the rounding errors of stiff ones. Therefore coordinates are first scaled by their own stiffness, which does
not change signs (Sylvester). The exponents then follow from the inverse, whose largest eigenvalues belong to the slow
motions. With M = L Lᵀ:

    D = 0:  s² = −μ,  1/(μ + c²) the eigenvalues of  Lᵀ (K + c² M)⁻¹ L                                    (2)
    else:   1/(s − c) those of  [−P(D + c M), −c P(M); P(K)/c, −c P(M)],  P(X) = Lᵀ (K + c D + c² M)⁻¹ X L⁻ᵀ  (3)

with c a multiple of the slowest frequency. Modes more than 1e8 times as fast are lost in rounding and count as stable.
At flutter two real μ meet and become a complex pair. Its imaginary part increases with the square root of the load, so
a threshold of 1e-6 |μ| excludes rounding errors and shifts the critical load by 1e-12 only.

A motion x with K x = D x = 0 has the double exponent s² = 0, which rounding errors would split. A spring and a damper
are added along x; they change no other exponent:

    K + c² M x (M x)ᵀ,  D + c M x (M x)ᵀ  for xᵀ M x = 1                                                  (4)

An equilibrium is stable if no mode that loops and prescribed motions allow is unstable. For conservative loads this
means

    δr = K δq,   δq = N y,   Nᵀ K N positive definite                                                    (5)

with the tangent stiffness K, including the constraint forces, and the allowed motions N. For most equilibria a Cholesky
factorisation, in units of the stiffness of springs and rods, proves this. If it fails, the number of negative
eigenvalues is that of the blocks of K = L Δ Lᵀ (Sylvester). If K is not symmetric, damping may prove stability. For a
mode x of (1), with m, d, k and i a the values of xᴴ X x of M, D, the symmetric and the antisymmetric part of K,

    m s² + d s + k + i a = 0,   Re s < 0  if  d² k > m a²,  d > 0,  k > 0                                 (6)
    D = R Rᵀ,  ½(K + Kᵀ) = L Lᵀ:  |a| ≤ σ √(d k),  σ = |R⁻¹ ½(K − Kᵀ) L⁻ᵀ|,   D − σ² M positive definite   (7)

(7) makes (6) true of all modes. It takes three factorisations, which exist only if the matrices are positive definite.
If it fails, the exponents of (1) decide; they include flutter. Neutral modes without a driving force are not an
instability.

Source: H. Ziegler, Principles of Structural Stability, 1968. (6) is Hurwitz's criterion for a polynomial with complex
coefficients.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from lissom.dynamics.contacts import ball_gaps
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import steady_velocity
from lissom.errors import ModelError, StabilityWarning
from lissom.launch.workspace import independent_rows, row_slices
from lissom.model.model import Model
from lissom.statics.blas_threads import one_thread
from lissom.statics.residual import static_residual
from lissom.systems.bordered import allowed_motions

_ROUNDING = 4e-15  # twenty units in the last place of the largest eigenvalue
_NEUTRAL = 1e-12  # relative to the largest eigenvalue; loops leave 1e-14 in motions that are neutral by symmetry
_PARTED = 1e-6
_NOTHING = 1e-13
_SHIFT = 100.0  # c over the slowest frequency: slow μ are accurate to 1e-10, μ of 1e7 times faster motions to 1e-4


def growing_exponents(
    K: np.ndarray, D: np.ndarray, M: np.ndarray, elastic: np.ndarray, rounding: float = _NEUTRAL
) -> np.ndarray:
    """The exponents s of the unstable modes of (1), complex. For symmetric K they are √(−κ) for each negative
    eigenvalue κ of K, in units of `elastic`.

    Args:
        K, D, M: shape (n, n).
        elastic: stiffness of springs and rods at rest (n, n).
        rounding: eigenvalues above −rounding times the largest count as zero, for example the rotation of a buckled
            round rod about its axis.
    """
    units = own_units(K, elastic)
    K, D, M = (X * units * units[:, None] for X in (K, D, M))
    if is_symmetric(K):
        curvature = np.linalg.eigvalsh(0.5 * (K + K.T))
        return np.sqrt(-curvature[curvature < -rounding * np.abs(curvature).max(initial=0.0)]).astype(complex)
    try:
        L = scipy.linalg.cholesky(0.5 * (M + M.T), lower=True)
    except np.linalg.LinAlgError:
        raise ModelError(
            "continuation: stability under loads that turn with the body needs a positive definite mass matrix: give "
            f"every coordinate a mass (got a least eigenvalue of {np.linalg.eigvalsh(M)[0]:.3g})"
        ) from None
    c = _SHIFT / float(np.sqrt(np.linalg.norm(M, 2)))
    return _damped(*_without_neutral(K, D, M, c), M, L, c) if D.any() else _undamped(K, M, L, c)


def is_flutter(growing: np.ndarray) -> bool:
    """Whether the unstable mode of the smallest rate oscillates."""
    slowest = growing[np.argmin(np.real(growing))]
    return abs(slowest.imag) > abs(slowest.real)


def own_units(K: np.ndarray, elastic: np.ndarray) -> np.ndarray:
    """Units (..., n) of the coordinates, in which each diagonal entry of K (..., n, n) is about 1. A coordinate without
    a spring takes the largest stiffness of the loads, because its own row may hold rounding errors only."""
    own, diagonal = (np.diagonal(X, axis1=-2, axis2=-1) for X in (elastic, K))
    size = np.maximum(own, np.abs(diagonal))
    if not (own > 0.0).all():
        loads = np.abs(K - elastic).max(axis=(-2, -1), initial=0.0)[..., None]
        size = np.where(own > 0.0, size, np.where(loads > 0.0, loads, 1.0))
    return 1.0 / np.sqrt(size)


def _undamped(K: np.ndarray, M: np.ndarray, L: np.ndarray, c: float) -> np.ndarray:
    """The exponents s of the unstable modes by (2)."""
    shifted, rounding = _from_inverse(L.T @ np.linalg.solve(K + c * c * M, L))
    mu = shifted - c * c
    parted = np.abs(mu.imag) > _PARTED * np.abs(mu) + 5.0 * rounding
    s = np.sqrt(-np.where(parted, mu, mu.real))  # the root with Re s ≥ 0
    return s[np.logical_or(parted, mu.real < -rounding)]


def _without_neutral(K: np.ndarray, D: np.ndarray, M: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    """K and D with the springs and dampers of (4) along neutral motions."""
    _, size, V = np.linalg.svd(np.vstack([X / np.abs(X).max() for X in (K, D)]))
    x = V[size <= _NOTHING].T
    Mx = M @ x
    spring = Mx @ np.linalg.solve(x.T @ Mx, Mx.T)
    return K + c * c * spring, D + c * spring


def _damped(K: np.ndarray, D: np.ndarray, M: np.ndarray, L: np.ndarray, c: float) -> np.ndarray:
    """The exponents s of the unstable modes by (3)."""
    P = np.linalg.solve(K + c * D + c * c * M, np.hstack([D + c * M, c * M, K / c]))
    upper, middle, lower = (L.T @ scipy.linalg.solve_triangular(L, X.T, lower=True).T for X in np.hsplit(P, 3))
    shifted, rounding = _from_inverse(np.block([[-upper, -middle], [lower, -middle]]))
    s = shifted + c
    return s[np.real(s) > rounding]


def _from_inverse(inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a matrix from its inverse, and the rounding error of each. Eigenvalues too large to be resolved
    are omitted."""
    nu = np.asarray(np.linalg.eigvals(inverse), dtype=np.complex128)
    noise = _ROUNDING * np.abs(nu).max()
    nu = nu[np.abs(nu) > noise]
    return 1.0 / nu, noise / np.abs(nu) ** 2


def is_symmetric(K: np.ndarray) -> np.ndarray:
    """Whether K (..., n, n) is symmetric to rounding; entries are compared in units of the diagonal. Shape (...)."""
    size = np.sqrt(np.abs(np.diagonal(K, axis1=-2, axis2=-1)))
    slack = 1e-12 * np.abs(K).max(axis=(-2, -1), initial=0.0)[..., None, None]
    across = np.abs(K - np.swapaxes(K, -1, -2))
    return (across <= 1e-9 * size[..., :, None] * size[..., None, :] + slack).all(axis=(-2, -1))


_LOOSE = 1e-9  # relative stiffness below which a motion counts as free
NOTHING = 1e-11  # largest relative curvature of neutral motions; equilibria are known to 1e-11


@final
@dataclass(frozen=True)
class Reduced:
    """Matrices on the allowed motions.

    Fields:
        N: allowed motions (nv, n).
        K, D, M: stiffness, damping and mass (n, n).
        elastic: stiffness of springs and rods at rest (n, n).
    """

    N: np.ndarray
    K: np.ndarray
    D: np.ndarray
    M: np.ndarray
    elastic: np.ndarray


def reduced(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray, factor: float = 1.0) -> Reduced:
    """The matrices of (5) at one configuration with its constraint forces. Loads are multiplied by `factor`."""
    v, zero = steady_velocity(model, factor), np.zeros(model.nv)
    K, D, M, w = residual_derivatives(model, q, v, zero, u, t, factor, force)
    N = allowed_motions(model, row_results(model, w, "A"), independent_rows(w))
    return Reduced(N, *(N.T @ X @ N for X in (K, D, M, model.elasticity.stiffness)))


def surely_stable(model: Model, K: np.ndarray, A: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the symmetric part of K (n, nv, nv) is positive definite on the allowed motions, so that no direction is
    neutral; and whether K is also symmetric, so that the equilibrium is stable; (n,) each.

    Args:
        A: constraint Jacobians (n, n_rows, nv).
        kept: mask of the independent rows (n, n_rows).
    """
    found = np.zeros((2, len(K)), dtype=bool)
    with one_thread(model.nv):
        for part in row_slices(len(K)):
            if model.n_rows:
                motions = [allowed_motions(model, rows, np.flatnonzero(own)) for rows, own in zip(A[part], kept[part])]
                found[:, part] = np.reshape([_is_definite(*(N.T @ X @ N for X in (here, model.elasticity.stiffness)))
                                             for N, here in zip(motions, K[part][:, None])], (-1, 2)).T  # fmt: skip
            elif model.n_motions:
                free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
                own = model.elasticity.stiffness[np.ix_(free, free)]
                found[:, part] = _is_definite(K[part][:, free[:, None], free], own)
            else:
                found[:, part] = _is_definite(K[part], model.elasticity.stiffness)
    return found[0], found[1]


def _is_definite(K: np.ndarray, elastic: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the symmetric part of each K (n, m, m) is positive definite to rounding, and whether K is also
    symmetric."""
    if not K.shape[-1]:
        return np.ones(len(K), dtype=bool), np.ones(len(K), dtype=bool)
    K = _in_units(K, elastic)
    definite = np.array([_factor(_shifted(row)) is not None for row in K])
    return definite, definite & is_symmetric(K)


def _in_units(K: np.ndarray, elastic: np.ndarray) -> np.ndarray:
    """K (..., n, n) in `own_units`."""
    units = own_units(K, elastic)
    return K * (units[..., :, None] * units[..., None, :])


def _shifted(K: np.ndarray) -> np.ndarray:
    """The symmetric part of K (n, n), so much stiffer that neutral motions count as stable."""
    return 0.5 * (K + K.T) + NOTHING * np.abs(K).max() * np.eye(len(K))


def _factor(K: np.ndarray) -> np.ndarray | None:
    """The lower Cholesky factor of K; None if K is not positive definite."""
    try:
        return np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return None


def unstable_modes(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> int:
    """Number of unstable modes about one equilibrium: by (5) to (7), or else the number of the exponents of `growing`.
    Only the latter needs eigenvalues."""
    here = reduced(model, q, u, t, force)
    if not len(here.K):
        return 0
    with one_thread(len(here.K)):
        K = _in_units(here.K, here.elastic)
        if is_symmetric(K):
            return negative_eigenvalues(_shifted(K))
        if _is_surely_damped(here):
            return 0
    return len(growing_on(here))


def negative_eigenvalues(K: np.ndarray) -> int:
    """Number of negative eigenvalues of a symmetric matrix (n, n), by L Δ Lᵀ (Bunch and Kaufman): one for each negative
    entry of the diagonal Δ, and one for each of its blocks of two rows, which are always indefinite."""
    factor, pivots, _ = scipy.linalg.lapack.dsytrf(K, lower=1)
    single = pivots > 0
    return int((np.diagonal(factor)[single] < 0.0).sum() + (~single).sum() // 2)


_MORE = 1.01  # factor of σ² in (7), for rounding


def _is_surely_damped(here: Reduced) -> bool:
    """Whether (7) holds, with the Frobenius norm, which is larger than the spectral one."""
    units = own_units(here.K, here.elastic)
    K, D, M = (X * units * units[:, None] for X in (here.K, here.D, here.M))
    if not is_symmetric(D):  # gyroscopic
        return False
    L, R = _factor(0.5 * (K + K.T)), _factor(D)
    if L is None or R is None:
        return False
    turn = scipy.linalg.solve_triangular(R, 0.5 * (K - K.T), lower=True)
    turn = scipy.linalg.solve_triangular(L, turn.T, lower=True)
    return _factor(D - _MORE * (turn**2).sum() * 0.5 * (M + M.T)) is not None


def growing(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> np.ndarray:
    """The exponents of the unstable modes about one equilibrium. If follower loads act on coordinates without mass,
    they are the exponents of K without mass."""
    return growing_on(reduced(model, q, u, t, force))


def growing_on(here: Reduced) -> np.ndarray:
    """`growing` from the matrices of (5)."""
    with one_thread(2 * len(here.K)):
        try:
            return growing_exponents(here.K, here.D, here.M, here.elastic, NOTHING)
        except ModelError:
            values = np.linalg.eigvals(_in_units(here.K, here.elastic))
            return -values[np.real(values) < -NOTHING * np.abs(values).max(initial=0.0)]


def least_stiffness(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> float:
    """Smallest eigenvalue of the symmetric part of the stiffness in (5), in units of dofs.scale [J]."""
    here = reduced(model, q, u, t, force)
    unit = here.N / model.dofs.scale[:, None]
    if not unit.shape[1]:
        return np.inf
    K = 0.5 * (here.K + here.K.T)
    with one_thread(len(K)):
        return float(scipy.linalg.eigh(K, unit.T @ unit, eigvals_only=True, subset_by_index=(0, 0))[0])


def describe_growth(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray) -> str:
    """Message about the unstable modes of an equilibrium: their number, the rate, and the link that moves most."""
    here = reduced(model, q, u, t, force)
    exponents = growing(model, q, u, t, force)
    text = f"{len(exponents)} unstable mode{'s' if len(exponents) != 1 else ''}"
    if not is_symmetric(here.K):
        kind = "oscillating" if len(exponents) and is_flutter(exponents) else "steadily"
        return f"{text} (the slowest grows {kind})"
    try:
        with one_thread(len(here.K)):
            size, shape = scipy.linalg.eigh(0.5 * (here.K + here.K.T), here.M)
    except np.linalg.LinAlgError:
        return text
    moved = np.abs(here.N @ shape[:, 0]) / model.dofs.scale
    link = link_of(model, int(moved.argmax()))
    time = 1.0 / np.sqrt(max(-size[0], 1e-300))
    return f"{text} (the fastest grows by the factor e in {time:.3g} s, mostly in link {link!r})"


def warn_of_instability(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray, counts: np.ndarray, tried: list[str]
) -> None:
    """Warn of unstable equilibria: their number, and for the first one the unstable modes and the tried descents."""
    bad = np.flatnonzero(counts)
    which = f" of {len(bad)} of {len(counts)} instances, first {bad[0]}," if len(counts) > 1 else ""
    what = describe_growth(model, q[bad[0]], u[bad[0]], t, force[bad[0]])
    warnings.warn(
        f"robot {model.name!r}: no stable equilibrium was found in reach of the start{which} and the returned one has "
        f"{what}; tried descents: {tried[bad[0]]}; start from another q0, or take stable=False if it may be unstable",
        StabilityWarning, stacklevel=3
    )  # fmt: skip


def floating(model: Model, here: Reduced) -> str:
    """The end of an error message: the link that moves most in motions without stiffness; empty if there are none."""
    if not here.N.shape[1]:
        return ""
    units = own_units(here.K, here.elastic)
    with one_thread(len(here.K)):
        _, size, V = np.linalg.svd(here.K * units * units[:, None])
    motions = here.N @ (units[:, None] * V[size <= _LOOSE * max(size[0], 1e-300)].T) / model.dofs.scale[:, None]
    if not motions.shape[1]:
        return ""
    moved = np.linalg.norm(np.linalg.svd(motions, full_matrices=False)[0], axis=1)
    return f": link {link_of(model, int(np.argmax(moved >= (1.0 - 1e-9) * moved.max())))!r} floats freely"


def link_of(model: Model, dof: int) -> str:
    """The name of the link that has a coordinate of v."""
    return model.links.names[int(np.searchsorted(model.links.v_start, dof, side="right")) - 1]


def floats_at(model: Model, q: np.ndarray, u: np.ndarray, t: float, force: np.ndarray, factor: float = 1.0) -> str:
    """`floating` at a configuration (nq,), with constraint forces and loads times `factor`; empty if a rod interval
    turns too far there."""
    if static_residual(model, q, u, t, factor, force) is None:
        return ""
    here = reduced(model, q, u, t, force, factor)
    return floating(model, here) if np.isfinite(here.K).all() else ""


def loose_contact(model: Model, q: np.ndarray) -> str:
    """The end of an error message: a remedy for a contact that is near at q but does not press; empty if there is
    none."""
    world = model.contacts
    if not len(world.pair):
        return ""
    gap = ball_gaps(model, q)
    near = np.flatnonzero((gap >= 0.0) & (gap <= world.ball_radius))
    if not len(near):
        return ""
    k = near[np.argmin(gap[near])]
    name = world.names[int(world.pair[world.pair[:, 0] == k][0, 2])]
    return (
        f"; contact {name!r} on link {world.ball_link[k]!r} does not press at the start (its gap is {gap[k]:.3g} m) "
        "and has no stiffness there: start with it pressed in a little, or give its body a spring"
    )
