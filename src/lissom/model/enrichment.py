"""Bases with more modes than a rod has: what its own leave out of an equilibrium or a motion tells their error."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lissom.robot.bases import Basis, BasisCustom

_LOOKS = 24  # Gauss points on a stretch in which modes are compared
_NEW = 1e-3  # what a polynomial must have, of its size, that the basis has not
_SPANNED = 1e-8  # of a mode, relative to the largest, that adds nothing to the others


def enriched_basis(basis: Basis) -> BasisCustom:
    """The modes of a basis, and behind them, for each strain that has some and on each smooth stretch, what
    polynomials of degree up to the number of its modes there and one more have that the modes have not.

    Of polynomials of degree p these are two more, of degree p + 1 and p + 2."""
    edges = [0.0, *basis.breaks(), 1.0]
    stretches = list(pairwise(edges))
    rows = [i for i, count in enumerate(basis.modes()) if count]
    new = [(i, k, _new(basis, i, *stretch)) for i in rows for k, stretch in enumerate(stretches)]
    own, more = basis.size, sum(c.shape[1] for _, _, c in new)
    inner = np.array(edges[1:-1])
    degree = max(basis.degree(), max((len(c) - 1 for _, _, c in new), default=0))

    def Phi(s: float) -> np.ndarray:
        out = np.zeros((6, own + more))
        out[:, :own] = basis.evaluate(s)
        here, at = int(np.searchsorted(inner, s, side="right")), own
        for i, k, c in new:
            if k == here:
                a, b = stretches[k]
                out[i, at : at + c.shape[1]] = np.polynomial.legendre.legval(2.0 * (s - a) / (b - a) - 1.0, c)
            at += c.shape[1]
        return out

    return BasisCustom(Phi, order=degree, knots=tuple(edges[1:-1]))


def strains_of(basis: Basis, size: int) -> np.ndarray:
    """The first strain that each of the modes behind the basis's own bends, for an enriched basis of that size."""
    enriched = enriched_basis(basis)
    looks = np.array([enriched.evaluate(s) for s in np.linspace(0.013, 0.987, 61)])
    return np.argmax(np.abs(looks).max(axis=0)[:, size:] > 0.0, axis=0)


def _new(basis: Basis, i: int, a: float, b: float) -> np.ndarray:
    """Legendre coefficients on [a, b] (degree + 1, m) of what is new in strain i."""
    x, w = np.polynomial.legendre.leggauss(_LOOKS)
    weight = np.sqrt(w)[:, None]
    modes = weight * np.array([basis.evaluate(float(s))[i] for s in a + (b - a) * (x + 1) / 2])
    Q, sizes, _ = np.linalg.svd(modes, full_matrices=False)
    Q = Q[:, sizes > _SPANNED * max(float(sizes.max(initial=0.0)), 1e-300)]
    degree = Q.shape[1] + 1
    polynomials = weight * np.polynomial.legendre.legvander(x, degree) * np.sqrt(np.arange(degree + 1) + 0.5)
    _, sizes, V = np.linalg.svd(polynomials - Q @ (Q.T @ polynomials), full_matrices=False)
    return np.sqrt(np.arange(degree + 1) + 0.5)[:, None] * V[sizes > _NEW].T
