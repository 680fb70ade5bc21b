"""The wrench on the frame of a deformable body and its own forces: once from shape integrals, once point by point.

Readable NumPy. `from_integrals` does the work of a kernel with the tables; `point_by_point` sums Newton's law over
material points whose motions come from differences of a NumPy map, and shares nothing with the library.
"""

from __future__ import annotations

import numpy as np


def from_integrals(values, omega, v, a_body, omega_dot, acceleration):
    """(force, moment, τ) at θ̇ = v and θ̈ = a_body, of a frame with angular velocity omega and an acceleration, less
    gravity, of (omega_dot, acceleration), all in its axes."""
    s, w = values, np.asarray(omega)
    c_dot = v @ s.c_j
    c_ddot = a_body @ s.c_j + s.c_v
    cross_j = np.stack([axial(P) for P in s.P_j])  # ∫ρ p×J_j
    b = a_body @ cross_j + s.b_v
    e = s.M @ a_body + s.e_v
    inertia = np.trace(s.P) * np.eye(3) - s.P
    Pi = np.einsum("jab,j->ab", s.P_j, v)
    force = s.mass * acceleration + np.cross(omega_dot, s.c) + np.cross(w, np.cross(w, s.c))
    force += 2 * np.cross(w, c_dot) + c_ddot
    moment = np.cross(s.c, acceleration) + inertia @ omega_dot + np.cross(w, inertia @ w)
    moment += 2 * (np.trace(Pi) * np.eye(3) - Pi.T) @ w + b
    centrifugal = np.einsum("a,jab,b->j", w, s.P_j, w) - w @ w * np.einsum("jaa->j", s.P_j)
    tau = s.c_j @ acceleration + cross_j @ omega_dot + centrifugal + 2 * s.w_j @ w + e + s.g + s.d
    return force, moment, tau


def axial(X):
    """Σ p×h of X = Σ p hᵀ."""
    return np.array([X[1, 2] - X[2, 1], X[2, 0] - X[0, 2], X[0, 1] - X[1, 0]])


def motions(move, q, v, a, h=1e-2):
    """p, J (N, 3, n), ṗ and p̈ of points whose positions are `move(q)`, by differences of sixth order."""
    n = len(q)
    J = np.stack([slope(lambda s, j=j: move(q + s * np.eye(n)[j]), h) for j in range(n)], axis=-1)
    return move(q), J, J @ v, J @ a + curvature(lambda s: move(q + s * v), h)


def slope(function, h):
    """f′(0)."""
    f = {k: function(k * h) for k in (-3, -2, -1, 1, 2, 3)}
    return (45 * (f[1] - f[-1]) - 9 * (f[2] - f[-2]) + (f[3] - f[-3])) / (60 * h)


def curvature(function, h):
    """f″(0)."""
    f = {k: function(k * h) for k in range(-3, 4)}
    return (270 * (f[1] + f[-1]) - 27 * (f[2] + f[-2]) + 2 * (f[3] + f[-3]) - 490 * f[0]) / (180 * h * h)


def point_by_point(masses, moved, omega, omega_dot, acceleration):
    """(force, moment, τ) of the inertia of points with masses and `motions`, on a frame as in `from_integrals`."""
    p, J, p_dot, p_ddot = moved
    total = acceleration + np.cross(omega_dot, p) + np.cross(omega, np.cross(omega, p))
    total = total + 2 * np.cross(omega, p_dot) + p_ddot
    pull = masses[:, None] * total
    return pull.sum(axis=0), np.cross(p, pull).sum(axis=0), np.einsum("kaj,ka->j", J, pull)
