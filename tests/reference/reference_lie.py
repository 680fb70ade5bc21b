"""SE(3) by matrix exponentials only: slow, and independent of every closed form. Six-vectors are angular first."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation


def hat3(w):
    """The cross product matrix, hat3(a) @ b = a x b."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def hat6(x):
    """The 4x4 matrix of a twist."""
    out = np.zeros((4, 4))
    out[:3, :3], out[:3, 3] = hat3(x[:3]), x[3:]
    return out


def ad(x):
    """The Lie bracket as a matrix, ad(x) @ y = [x, y]."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = hat3(x[:3])
    out[3:, :3] = hat3(x[3:])
    return out


def adbar(f):
    """The matrix with adbar(f) @ x = -ad(x).T @ f."""
    out = np.zeros((6, 6))
    out[:3, :3] = -hat3(f[:3])
    out[:3, 3:] = out[3:, :3] = -hat3(f[3:])
    return out


def Ad(g):
    """Takes twists in the frame g to the frame in which g is given."""
    R = g[:3, :3]
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = R
    out[3:, :3] = hat3(g[:3, 3]) @ R
    return out


def inverse(g):
    """Inverse of a pose."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = g[:3, :3].T, -g[:3, :3].T @ g[:3, 3]
    return out


def exp(x):
    """Pose reached by the constant twist x after unit time."""
    return expm(hat6(x))


def tangent(x):
    """T(-x) = int_0^1 exp(-s ad_x) ds: the body twist of exp(x) is tangent(x) @ dx."""
    big = np.zeros((12, 12))
    big[:6, :6], big[:6, 6:] = -ad(x), np.eye(6)
    return expm(big)[:6, 6:]


def tangent_and_derivative(x, dx):
    """`tangent` and its derivative along dx, from the exponential of one block triangular matrix."""
    big = np.zeros((24, 24))
    for corner in (0, 12):
        big[corner : corner + 6, corner : corner + 6] = -ad(x)
        big[corner : corner + 6, corner + 6 : corner + 12] = np.eye(6)
    big[:6, 12:18] = -ad(dx)
    out = expm(big)
    return out[:6, 6:12], out[:6, 18:24]


def log(g):
    """Twist of angle below pi with exp(log(g)) = g."""
    w = Rotation.from_matrix(g[:3, :3]).as_rotvec()
    return np.concatenate([w, np.linalg.solve(translation(w), g[:3, 3])])


def translation(w):
    """V(w) = int_0^1 exp(s hat(w)) ds: exp of (w, u) moves the origin to V(w) u."""
    big = np.zeros((6, 6))
    big[:3, :3], big[:3, 3:] = hat3(w), np.eye(3)
    return expm(big)[:3, 3:]


def pose_of_quaternion(quaternion, position=(0.0, 0.0, 0.0)):
    """Pose of a unit quaternion (w, x, y, z) and a position."""
    out = np.eye(4)
    out[:3, :3] = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()
    out[:3, 3] = position
    return out


def quaternion_of_pose(g):
    """Unit quaternion (w, x, y, z) of a pose."""
    return np.roll(Rotation.from_matrix(g[:3, :3]).as_quat(), 1)
