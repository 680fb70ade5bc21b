"""Gauss rules along rods.

With strains of degree p in s, the displacement of a straight rod has degree p + 2. With n points

    K = ∫ Φᵀ Σ Φ ds          is exact where 2n − 1 >= 2p + deg Σ                                             (1)
    M = ∫ Jᵀ 𝓜 J ds          is exact where 2n − 1 >= 2(p + 2) + deg ρA  and  >= 2p + 3 + deg ρI             (2)

(the load ∫ Jᵀ 𝓜 ds needs fewer points). In a rod that is bent by a total angle θ, J contains sines of angles up to θ.
The default therefore adds BEND points for a bend by a whole turn, and one point for each radian of the reference's
bend. Too few points for (2) leave the stiffest motions almost without inertia: their frequencies are many times too
high, and an integrator needs many more steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from math import ceil

import numpy as np

from lissom.errors import AccuracyWarning
from lissom.model.nodes import interval_ends
from lissom.robot import checks
from lissom.robot.bodies import Rod

MOST_POINTS = 1000  # on one smooth stretch
SAMPLES = 12  # points at which a taper is evaluated, on each smooth stretch of the basis
FITS = 1e-7  # largest error of the polynomial of a taper, relative to its size
BEND = 2  # additional points for a bend by a whole turn
LOSS_OF_STIFFNESS, LOSS_OF_MASS = 1e-6, 1e-2  # relative errors of a user's rule above which a warning is issued


def gauss_rule(rod: Rod, where: str) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
    """Gauss points of a rod, one rule on each smooth stretch of its basis: (start, stop, points, weights on [0, 1])."""
    count = rod.gauss_points or default_gauss_points(rod, where)
    modes = max(rod.basis.modes())
    total = count * len(_stretches(rod))
    rule = f"must give at least as many points as the modes of any strain ({modes})"
    checks.require(total >= modes, f"{where}: gauss_points", rule, total)
    return _rule(rod, count)


def default_gauss_points(rod: Rod, where: str) -> int:
    """Number of points on each stretch with which (1) and (2) are exact, and stay accurate while the rod bends. For
    integrands that are no polynomials they are nearly exact."""
    p = rod.basis.degree()

    def matrices(s: float) -> np.ndarray:
        found = rod.section.constitution(s, rod.material, where)
        return np.stack([found.stiffness, found.inertia])

    stretches = _stretches(rod)
    stiffness = mass = turning = 0
    if not rod.section.is_uniform:
        fitted = [_degrees(matrices, *stretch) for stretch in stretches]
        stiffness, mass, turning = (
            max(int(degree[part].max()) for degree in fitted)
            for part in (np.s_[0], np.s_[1, 3:, 3:], np.s_[1, :3, :])
        )  # fmt: skip
    exact = p + max(1 + stiffness // 2, 3 + mass // 2, 2 + (turning + 1) // 2)
    least = ceil(max(rod.basis.modes()) / len(stretches))
    count = max(exact + _for_bends(rod, where) + _for_own_bend(rod), least)
    rule = f"its reference must not bend so much that more than {MOST_POINTS} Gauss points are needed"
    checks.require(count <= MOST_POINTS, where, rule, count)
    return count


def exponentials(rod: Rod) -> int:
    """Number of exponentials for the pose over an interval in which the strain varies."""
    return rod.exponentials or (2 if rod.gauss_points is None and rod.interval_points is None else 1)


def interval_points(rod: Rod) -> int:
    """Number of points for the moments of the strain in an interval. They are exact for a polynomial basis, and exact
    to rounding for others."""
    return rod.interval_points or min(max(rod.basis.degree() // 2 + 2, 4), 8)


def warn_inexact(rod: Rod, where: str) -> None:
    """Warn if the user's Gauss points are too few for (1) or (2), because of the basis or the taper of the section.

    A rod with both `gauss_points` and `interval_points` given gets no warning.
    """
    if rod.gauss_points is None or rod.interval_points is not None:
        return
    enough = default_gauss_points(rod, where)
    if rod.gauss_points >= enough:
        return
    given, exact = (_integrals(rod, count, where) for count in (rod.gauss_points, enough + 8))
    errors = {name: _largest_error(given[name], exact[name]) for name in given}
    lost = [
        f"the {name} to {errors[name]:.1e} of its entries"
        for name, allowed in (("stiffness", LOSS_OF_STIFFNESS), ("mass", LOSS_OF_MASS))
        if errors[name] > allowed
    ]
    if lost:
        text = f"{rod.gauss_points} Gauss points give {' and '.join(lost)}; by default it takes {enough}"
        warnings.warn(f"{where}: {text}", AccuracyWarning, stacklevel=7)


def _stretches(rod: Rod) -> list[tuple[float, float]]:
    return list(pairwise([0.0, *rod.basis.breaks(), 1.0]))


def _rule(rod: Rod, count: int) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
    x, w = _points(count)
    return [(a, b, a + (b - a) * (x + 1) / 2, (b - a) * w / 2) for a, b in _stretches(rod)]


@cache
def _points(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points on [−1, 1] and their weights."""
    return np.polynomial.legendre.leggauss(count)


@cache
def _transform() -> np.ndarray:
    """Matrix (SAMPLES, SAMPLES) from values at SAMPLES Gauss points to Legendre coefficients."""
    x, w = _points(SAMPLES)
    return (np.arange(SAMPLES) + 0.5)[:, None] * w * np.polynomial.legendre.legvander(x, SAMPLES - 1).T


def _degrees(function: Callable[[float], np.ndarray], start: float, stop: float) -> np.ndarray:
    """Degree of the polynomial in s that fits each entry of a function on [start, stop], at most SAMPLES − 1."""
    x, _ = _points(SAMPLES)
    values = np.array([function(float(s)) for s in start + (stop - start) * (x + 1) / 2])
    k, transform = np.arange(SAMPLES), _transform()
    coefficients = np.abs(np.tensordot(transform, values, axes=1))
    seen = coefficients > FITS * np.abs(values).max(axis=0)
    return np.max(k.reshape(-1, *([1] * (values.ndim - 1))) * seen, axis=0)


def _for_bends(rod: Rod, where: str) -> int:
    """Number of additional points for the bend of the reference within a stretch."""
    reference = rod.strain_reference(where)
    worst = 0.0
    for a, b in _stretches(rod):
        turns = [np.linalg.norm(reference(float(s))[:3]) for s in np.linspace(a, b, SAMPLES)]
        worst = max(worst, float(np.mean(turns)) * rod.length * (b - a))
    return ceil(worst)


def _for_own_bend(rod: Rod) -> int:
    """Number of additional points for a rod that bends by a whole turn."""
    longest = max(b - a for a, b in _stretches(rod))
    return ceil(BEND * longest) if any(rod.basis.modes()[:3]) else 0


def _integrals(rod: Rod, count: int, where: str) -> dict[str, np.ndarray]:
    """K and M of (1) and (2) with `count` points on each stretch; M is that of the straight rod about its base."""
    n = rod.basis.size
    out = {"stiffness": np.zeros((n, n)), "mass": np.zeros((n, n))}
    turn, move, here = np.zeros((3, n)), np.zeros((3, n)), 0.0
    for _, stop, points, weights in _rule(rod, count):
        for s, weight in [*zip(points, weights * rod.length), (stop, 0.0)]:
            h = (s - here) * rod.length
            first, second = interval_ends(rod.basis.evaluate, here, s, interval_points(rod))
            mean, slope = (first + second) / 2, np.sqrt(3.0) * (second - first) / 2
            swept = h * turn + h**2 * (mean / 2 - slope / 6)[:3]
            move = move + h * mean[3:] + np.stack([np.zeros(n), swept[2], -swept[1]])
            turn, here = turn + h * mean[:3], s
            if weight > 0.0:
                section, Phi = rod.section.constitution(s, rod.material, where), rod.basis.evaluate(s)
                J = np.vstack([turn, move])
                out["stiffness"] += weight * Phi.T @ section.stiffness @ Phi
                out["mass"] += weight * J.T @ section.inertia @ J
    return out


def _largest_error(given: np.ndarray, exact: np.ndarray) -> float:
    """Largest error of an entry (i, j), relative to the root of the diagonal entries i and j."""
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    return float(np.max(np.abs(given - exact) / np.maximum(scale, 1e-300), initial=0.0))
