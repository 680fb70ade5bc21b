"""Gauss rules along rods."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np

from lissom.errors import AccuracyWarning
from lissom.robot import checks
from lissom.robot.bodies import Rod


def gauss_rule(rod: Rod, where: str) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
    """Gauss points of a rod, one rule on each smooth stretch of its basis: (start, stop, points, weights on [0, 1])."""
    breaks = [0.0, *rod.basis.breaks(), 1.0]
    count = rod.gauss_points or default_gauss_points(rod)
    modes = max(rod.basis.modes())
    total = count * (len(breaks) - 1)
    rule = f"must give at least as many points as the modes of any strain ({modes})"
    checks.require(total >= modes, f"{where}: gauss_points", rule, total)
    x, w = np.polynomial.legendre.leggauss(count)
    return [(a, b, a + (b - a) * (x + 1) / 2, (b - a) * w / 2) for a, b in pairwise(breaks)]


def default_gauss_points(rod: Rod) -> int:
    """Enough points for K to be exact for a linear taper (degree 2d + 4), or 2d where the section is constant."""
    base, middle = (rod.section.constitution(s, rod.material, "rod").stiffness for s in (0.0, 0.4371))
    constant = np.allclose(base, middle, rtol=1e-12, atol=0.0)
    return max(rod.basis.degree() + (1 if constant else 3), 2 if rod.basis.breaks() else 4)


def warn_inexact(rod: Rod, K: np.ndarray, where: str) -> None:
    """Warn where the Gauss points asked for make K inexact: too few for the basis, or for the taper of the section."""
    if rod.gauss_points is None:
        return
    exact = np.zeros_like(K)
    for a, b in pairwise([0.0, *rod.basis.breaks(), 1.0]):
        x, w = np.polynomial.legendre.leggauss(rod.gauss_points + 8)
        for s, weight in zip(a + (b - a) * (x + 1) / 2, (b - a) * w / 2 * rod.length):
            Phi = rod.basis.evaluate(s)
            exact += weight * Phi.T @ rod.section.constitution(s, rod.material, where).stiffness @ Phi
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    error = float(np.max(np.abs(K - exact) / np.maximum(scale, 1e-300), initial=0.0))
    if error > 1e-6:
        enough = default_gauss_points(rod)
        text = f"{rod.gauss_points} Gauss points give the stiffness to {error:.1e} of its entries; {enough} suffice"
        warnings.warn(f"{where}: {text}", AccuracyWarning, stacklevel=7)
