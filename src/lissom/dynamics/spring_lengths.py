"""Lengths of springs between points, and the energy they hold.

U(L) = ∫ T(x, 0) dx   from L₀, from where a cable is slack, from a table's first length, or from 0               (1)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp
from scipy.integrate import quad
from scipy.interpolate import PPoly

from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model
from lissom.model.springs import COMPILED, LINEAR, Springs


def spring_lengths(model: Model, q: Any) -> np.ndarray:
    """Lengths of the springs between points [m], in the order added, shape (..., n_springs).

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    springs, g = model.springs, forward_kinematics(model, q)
    world = np.broadcast_to(np.eye(4), (*g.shape[:-3], 1, 4, 4))
    here = np.concatenate([g, world], axis=-3)[..., springs.node, :, :]  # node -1 is the last
    ends = np.einsum("...ij,...j->...i", here[..., :3, :3], springs.position) + here[..., :3, 3]
    return np.linalg.norm(ends[..., 1, :] - ends[..., 0, :], axis=-1)


def spring_energy(model: Model, q: Any) -> np.ndarray:
    """Energy of all springs between points at rest by (1) [J], shape (...)."""
    lengths = spring_lengths(model, q)
    held = [_energy_of(model.springs, j)(lengths[..., j]) for j in range(len(model.springs))]
    return np.sum(held, axis=0)


def _energy_of(springs: Springs, j: int) -> Callable[[np.ndarray], np.ndarray]:
    """U of spring j as a function of its length."""
    k, rest, preload, _, slack = springs.law[j]
    if springs.kind[j] == COMPILED:
        law = springs.compiled[springs.first[j]]
        at_rest = wp.float64(0.0)
        return np.vectorize(
            lambda length: quad(lambda x: float(law(wp.float64(x), at_rest)), 0.0, length, epsabs=0.0)[0]
        )
    if springs.kind[j] == LINEAR and k > 0.0 and slack:
        start = rest - preload / k
        return lambda length: 0.5 * k * np.maximum(length - start, 0.0) ** 2
    if springs.kind[j] == LINEAR:
        pull = max(preload, 0.0) if slack else preload
        return lambda length: pull * (length - rest) + 0.5 * k * (length - rest) ** 2
    return _energy_of_table(springs, j, bool(slack))


def _energy_of_table(springs: Springs, j: int, slack: bool) -> Callable[[np.ndarray], np.ndarray]:
    rows = slice(springs.first[j], springs.first[j] + springs.pieces[j] + 1)
    knot, c = springs.knot[rows], springs.coefficient[rows]
    far = 1e3 * (knot[-1] + 1.0)
    before = [[c[0, 0] + c[0, 1] * (-far - knot[0]), c[0, 1], 0.0, 0.0]]
    tension = PPoly(np.vstack([before, c])[:, ::-1].T, np.concatenate([[-far], knot, [far]]))
    stops = [knot[0], *(tension.roots(extrapolate=False) if slack else []), far]

    def energy(length: float) -> float:
        edges = sorted({knot[0], length, *(x for x in stops if min(knot[0], length) < x < max(knot[0], length))})
        parts = [tension.integrate(a, b) for a, b in pairwise(edges)]
        total = sum(max(float(part), 0.0) if slack else float(part) for part in parts)
        return total if length >= knot[0] else -total

    return np.vectorize(energy)
