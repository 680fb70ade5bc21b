"""States within implicit steps, by Hermite's polynomials through those at their ends.

    q(s) = qₙ ⊕ Δ(s),   Δ(0) = 0, Δ(1) = qₙ₊₁ ⊖ qₙ,   Δ' = h T(Δ)⁻¹ v                                      (1)

Δ is quintic where coordinates add, whose Δ'' = h² a, and cubic where a pose is stored; v is cubic, with v' = h a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lissom.dynamics.configuration import difference, groups, integrate
from lissom.lie.arrays import se3_tangent_inverse, so3_tangent_inverse
from lissom.model.model import Model


def between(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a at the wanted times (m,) within steps that end at times t (n,), in states (n, nq), (n, nv), …"""
    k = np.clip(np.searchsorted(t, wanted, side="left") - 1, 0, len(t) - 2)
    ends = t[np.stack([k, k + 1], axis=1)]
    return within(model, wanted, ends, (q[k], v[k], a[k]), (q[k + 1], v[k + 1], a[k + 1]))


def within(
    model: Model, wanted: np.ndarray, ends: np.ndarray, start: Sequence[np.ndarray], stop: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a at wanted times (m,), each within a step of its own, of which the times of both ends (m, 2) and the
    states (m, nq), (m, nv), … there are given."""
    h = (ends[:, 1] - ends[:, 0])[:, None]
    s = np.minimum((wanted - ends[:, 0])[:, None] / h, 1.0)
    (q, v, a), (q_end, v_end, a_end) = start, stop
    step = difference(model, q, q_end)
    slope, slope_end, bend, bend_end = h * v, h * v_end, h * h * a, h * h * a_end
    for _, j, free in groups(model):
        block = slice(j, j + (6 if free else 3))
        inverse = (se3_tangent_inverse if free else so3_tangent_inverse)(step[:, block])
        slope_end[:, block] = np.einsum("kab,kb->ka", inverse, slope_end[:, block])
    move = _quintic(s, step, slope, slope_end, bend, bend_end)
    for _, j, free in groups(model):
        block = slice(j, j + (6 if free else 3))
        move[:, block] = cubic(s, 0.0, step[:, block], slope[:, block], slope_end[:, block])
    reached = integrate(model, q, move)
    speed = cubic(s, v, v_end, h * a, h * a_end)
    acceleration = _cubic_slope(s, v, v_end, h * a, h * a_end) / h
    ended = wanted == ends[:, 1]
    for found, known in ((reached, q_end), (speed, v_end), (acceleration, a_end)):
        found[ended] = known[ended]
    return reached, speed, acceleration


def cubic(s: np.ndarray, x0: Any, x1: np.ndarray, d0: np.ndarray, d1: np.ndarray) -> np.ndarray:
    """The cubic with values x and slopes d at s = 0 and 1."""
    r = 1.0 - s
    return r * r * ((1.0 + 2.0 * s) * x0 + s * d0) + s * s * ((3.0 - 2.0 * s) * x1 - r * d1)


def _cubic_slope(s: np.ndarray, x0: np.ndarray, x1: np.ndarray, d0: np.ndarray, d1: np.ndarray) -> np.ndarray:
    """Its slope."""
    return 6.0 * s * (1.0 - s) * (x1 - x0) + (1.0 - s) * (1.0 - 3.0 * s) * d0 + s * (3.0 * s - 2.0) * d1


def _quintic(
    s: np.ndarray, x1: np.ndarray, d0: np.ndarray, d1: np.ndarray, b0: np.ndarray, b1: np.ndarray
) -> np.ndarray:
    """The quintic with values 0 and x1, slopes d and second slopes b at s = 0 and 1."""
    rest, slope, bend = x1 - d0 - 0.5 * b0, d1 - d0 - b0, b1 - b0
    c3, c4 = 10.0 * rest - 4.0 * slope + 0.5 * bend, -15.0 * rest + 7.0 * slope - bend
    c5 = 6.0 * rest - 3.0 * slope + 0.5 * bend
    return s * (d0 + s * (0.5 * b0 + s * (c3 + s * (c4 + s * c5))))
