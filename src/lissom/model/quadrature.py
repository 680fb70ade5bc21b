"""Gauss rules along rods.

With strains of degree p in s the sections of a straight rod move with degree p + 2, so that in n points

    K = ∫ Φᵀ Σ Φ ds          is exact where 2n − 1 >= 2p + deg Σ                                             (1)
    M = ∫ Jᵀ 𝓜 J ds          is exact where 2n − 1 >= 2(p + 2) + deg ρA  and  >= 2p + 3 + deg ρI             (2)

(the load ∫ Jᵀ 𝓜 ds asks for less). A rod that is bent by a total angle θ adds waves of that angle to J: BEND points
more serve a rod that bends by a turn, one more for each radian that its reference turns. Too few points for (2) leave
the stiffest motions almost without inertia: their frequencies are many times too high, which costs an integrator steps
and explains nothing.
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
SAMPLES = 12  # points in which a taper is looked at, on each smooth stretch of the basis
FITS = 1e-7  # what a polynomial may leave of a taper, relative to its size
BEND = 2  # points more for a turn along the rod
LOSS_OF_STIFFNESS, LOSS_OF_MASS = 1e-6, 1e-2  # what an explicit rule may leave out before a warning


def gauss_rule(rod: Rod, where: str) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
    """Gauss points of a rod, one rule on each smooth stretch of its basis: (start, stop, points, weights on [0, 1])."""
    count = rod.gauss_points or default_gauss_points(rod, where)
    modes = max(rod.basis.modes())
    total = count * len(_stretches(rod))
    rule = f"must give at least as many points as the modes of any strain ({modes})"
    checks.require(total >= modes, f"{where}: gauss_points", rule, total)
    return _rule(rod, count)


def default_gauss_points(rod: Rod, where: str) -> int:
    """Points on each stretch with which (1) and (2) are exact, or nearly so where they are no polynomials, and stay so
    while the rod bends."""
    p = rod.basis.degree()

    def matrices(s: float) -> np.ndarray:
        found = rod.section.constitution(s, rod.material, where)
        return np.stack([found.stiffness, found.inertia])

    stretches = _stretches(rod)
    fitted = [_degrees(matrices, *stretch) for stretch in stretches]
    stiffness, mass, turning = (
        max(int(degree[part].max()) for degree in fitted)
        for part in (np.s_[0], np.s_[1, 3:, 3:], np.s_[1, :3, :])
    )  # fmt: skip
    exact = p + max(1 + stiffness // 2, 3 + mass // 2, 2 + (turning + 1) // 2)
    least = ceil(max(rod.basis.modes()) / len(stretches))
    count = max(exact + _for_bends(rod, where) + _for_own_bend(rod), least)
    rule = f"must not bend, at its reference, so much that it takes more than {MOST_POINTS} Gauss points"
    checks.require(count <= MOST_POINTS, where, rule, count)
    return count


def exponentials(rod: Rod) -> int:
    """By how many exponentials the pose goes from point to point, where the strain varies."""
    return rod.exponentials or (2 if rod.gauss_points is None and rod.interval_points is None else 1)


def interval_points(rod: Rod) -> int:
    """Points for the moments of the strain in an interval: exact for the basis, or to rounding where it is no
    polynomial."""
    return rod.interval_points or min(max(rod.basis.degree() // 2 + 2, 4), 8)


def warn_inexact(rod: Rod, where: str) -> None:
    """Warn where the Gauss points asked for miss (1) or (2): too few for the basis, or for the taper of the section.

    Who also gives `interval_points` has said how the whole rod is to be integrated, and is taken at his word.
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
    """What turns values in SAMPLES Gauss points into Legendre coefficients."""
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
    """Points more for what the reference turns within a stretch."""
    reference = rod.strain_reference(where)
    worst = 0.0
    for a, b in _stretches(rod):
        turns = [np.linalg.norm(reference(float(s))[:3]) for s in np.linspace(a, b, SAMPLES)]
        worst = max(worst, float(np.mean(turns)) * rod.length * (b - a))
    return ceil(worst)


def _for_own_bend(rod: Rod) -> int:
    """Points more for what a rod bends by itself: a whole turn along it."""
    longest = max(b - a for a, b in _stretches(rod))
    return ceil(BEND * longest) if any(rod.basis.modes()[:3]) else 0


def _integrals(rod: Rod, count: int, where: str) -> dict[str, np.ndarray]:
    """K and M of (1) and (2) in `count` points on each stretch, M of the straight rod about its base."""
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
    """Largest error of an entry, relative to the diagonal."""
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    return float(np.max(np.abs(given - exact) / np.maximum(scale, 1e-300), initial=0.0))
