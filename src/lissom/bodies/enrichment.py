"""Kinematics with added coordinates, which estimate the error of a body's own coordinates.

The part of an equilibrium or a motion in the added coordinates estimates the error without them. Added coordinates are
of the same kind: strains, modes and growths as polynomials of higher degree, shape functions times polynomials, finite
elements of the next degree or of half the size.

For a linear motion with shape functions φ, the added shapes are combinations of φ and of products P of φ with
polynomials of the point. They vanish where φ vanishes. Most of them are stiff, so the softest ones are used: with K the
stiffness and M the mass of φ and P together,

    K c = ω² M c,   added shapes = the parts of the lowest c that are outside the span of φ                  (1)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lissom.bodies import cubature
from lissom.bodies.domains import Domain, Quadrature, SweptDomain
from lissom.robot.poses import in_double

if TYPE_CHECKING:
    from lissom.bodies.kinematics import Kinematics, Modes
    from lissom.bodies.materials import Hyperelastic

_NEW = 1e-3  # a function counts as new if this part of its norm is outside the span of the others
_LOOKS = 24  # Gauss points at which modes are compared
_FACTORS = 12  # largest number of functions that are multiplied by polynomials
_POINTS = 2000  # material points at which shapes are compared
_DEGREE = 2  # degree of the polynomials that multiply shapes
_SOFTEST = 6  # number of vectors c of (1), in addition to twice the number of the body's own shapes


class Enriched(NamedTuple):
    """Kinematics with added coordinates.

    Fields:
        kinematics: the kinematics with all coordinates.
        own: indices of the body's own coordinates among all coordinates.
        cure: advice on how to reduce the error of the body's own kinematics.
        domain: domain that replaces the one of the body; None keeps it.
    """

    kinematics: Kinematics
    own: np.ndarray
    cure: str
    domain: Domain | None = None


def further(own: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Combinations of the columns of `own` and `more` that are orthogonal to `own`, shape (columns of both, m)."""
    sizes = [np.linalg.norm(part, axis=0) for part in (own, more)]
    sizes = [np.where(size > 0.0, size, np.inf) for size in sizes]
    A, B = own / sizes[0], more / sizes[1]
    along = np.linalg.lstsq(A, B, rcond=1e-10)[0]
    _, left, V = np.linalg.svd(B - A @ along, full_matrices=False)
    C = (V[left > _NEW] / left[left > _NEW, None]).T
    return np.concatenate([-(along @ C) / sizes[0][:, None], C / sizes[1][:, None]])


def further_modes(modes: Modes) -> Modes:
    """The modes, followed by the parts of their products with s and s² that are outside the span of the modes."""
    from lissom.bodies.kinematics import mode_values

    at = 0.5 + 0.5 * np.polynomial.legendre.leggauss(_LOOKS)[0]
    if not callable(modes):
        table = np.zeros((len(modes), max(map(len, modes)) + 2))
        for row, polynomial in zip(table, modes):
            row[: len(polynomial)] = polynomial
        both = np.concatenate([table, np.roll(table, 1, axis=1), np.roll(table, 2, axis=1)])
        values = at[:, None] ** np.arange(both.shape[1]) @ both.T
        C = further(values[:, : len(table)], values[:, len(table) :])
        return [*map(list, modes), *(C.T @ both).tolist()]

    values = np.stack([np.asarray(in_double(mode_values)(modes, s)) for s in at])
    C = further(values, np.concatenate([values * at[:, None], values * at[:, None] ** 2], axis=1))

    def more(s: Any) -> Any:
        import jax.numpy as jnp

        own = mode_values(modes, s)
        return jnp.concatenate([own, jnp.concatenate([own, own * s, own * s**2]) @ C])

    return more


def further_shapes(
    function: Callable[[Any], Any], n: int, domain: Domain, material: Hyperelastic
) -> tuple[Callable[[Any], Any], int] | None:
    """Shape functions φ(x) (3, n) followed by the softest added shapes of (1), and their total number; None if nothing
    is added."""
    import jax
    import jax.numpy as jnp

    points, weights = _quadrature(domain)
    low, high = points.min(axis=0), points.max(axis=0)
    center, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-300)
    own = np.asarray(in_double(jax.vmap(function))(points))
    sizes = np.sqrt((own**2).sum(axis=(0, 1)))
    flat = (own / sizes).reshape(len(points), 3 * n)
    _, size, V = np.linalg.svd(flat, full_matrices=False)
    factors = V[: min(_FACTORS, int((size > 1e-6 * size[0]).sum()))].T / np.tile(sizes, 3)[:, None]
    moved = np.flatnonzero(np.abs(own).max(axis=(0, 2)) > 0.0)
    powers = [p for d in range(_DEGREE + 1) for p in combinations_with_replacement(range(3), d)]

    def products(x: Any) -> Any:
        """φ and P at x, shape (3, n + products)."""
        phi, unit = jnp.asarray(function(x), dtype=jnp.float64), (x - center) / half
        factor = phi.ravel() @ factors
        P = jnp.outer(factor, jnp.stack([jnp.prod(unit[jnp.array(p, dtype=int)]) for p in powers])).ravel()
        parts = [jnp.outer(jnp.eye(3)[b], P) for b in moved.tolist()]
        return jnp.concatenate([phi, *parts], axis=1)

    values = np.asarray(in_double(jax.vmap(products))(points))
    slopes = np.asarray(in_double(jax.vmap(jax.jacfwd(products)))(points)).swapaxes(2, 3)  # (N, 3, 3, columns)
    root = np.sqrt(weights)[:, None]
    A = (root[:, None] * values).reshape(3 * len(points), -1)
    C = further(A[:, :n], A[:, n:])
    if not C.shape[1]:
        return None
    basis = np.concatenate([np.concatenate([np.eye(n), np.zeros((len(C) - n, n))]), C], axis=1)
    strains = (0.5 * (slopes + slopes.swapaxes(1, 2))).reshape(len(points), 9, -1) @ basis
    K = np.einsum("kpj,k,pr,krl->jl", strains, weights, material.moduli(), strains, optimize=True)
    M = (A @ basis).T @ (A @ basis)
    C = C @ softest(K, M, n, 2 * n + _SOFTEST)
    own_part, product_part = C[:n], C[n:]

    def enriched(x: Any) -> Any:
        found = products(x)
        return jnp.concatenate([found[:, :n], found[:, :n] @ own_part + found[:, n:] @ product_part], axis=1)

    return enriched, n + C.shape[1]


def softest(K: np.ndarray, M: np.ndarray, n: int, count: int) -> np.ndarray:
    """The parts of the `count` lowest vectors c of (1) in the coordinates after the first n, as orthonormal columns."""
    from scipy.linalg import eigh

    scale = 1.0 / np.sqrt(np.diag(M))
    count = min(count, len(K))
    c = eigh(K * np.outer(scale, scale), M * np.outer(scale, scale), subset_by_index=(0, count - 1))[1]
    U, size, _ = np.linalg.svd((scale[:, None] * c)[n:], full_matrices=False)
    return U[:, size > _NEW * size[0]]


def _quadrature(domain: Domain) -> Quadrature:
    """Quadrature points fine enough for products of shapes."""
    if isinstance(domain, SweptDomain):
        second = cubature.circle(12) if domain.goes_round else cubature.line(5)
        return domain.product(cubature.line(20), cubature.line(4), second)
    step = max(1, len(domain.points) // _POINTS)
    points = domain.points[::step]
    return Quadrature(points, np.full(len(points), domain.volume / len(points)))
