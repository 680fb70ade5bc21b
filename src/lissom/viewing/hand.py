"""A hand that pulls a robot at a place by a spring towards where it is:

    F = (1 + h (c + h k) W)⁻¹ (k (x* − x − h ẋ) − c ẋ),   W = J (M + h D + h² K)⁻¹ Jᵀ                      (1)

This is the force at the end of an implicit step of size h if nothing else changed in it; told step by step it shakes
neither a light place nor a stiff spring, which it makes softer. x* goes where the hand is within _LAG. In
equilibrium the force follows the compliance C = J K⁻¹ Jᵀ instead:

    F = (1 + k C)⁻¹ (k (x* − x) + k C F_before)                                                           (2)
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.model.model import Model
from lissom.viewing.building import robot_geometry
from lissom.viewing.sliders import SLOW

_STIFFER = 3.0  # than the robot at that place
_DAMPED = 0.3  # of critical
_LAG = 0.05  # [s]
_FITS = 1e-3  # of the force
_NAME = "hand"


@final
@dataclass(frozen=True)
class Grip:
    """A place of a robot: a link, where on it, and a point in the frame there.

    Fields:
        link: name. s: abscissa on a rod, or a material point (x, y, z) of a deformable body.
        position: shape (3,) [m].
    """

    link: str
    s: Any
    position: np.ndarray

    @property
    def frame(self) -> tuple[str, Any]:
        """The frame in which the point stands, for functions of kinematics."""
        return (_NAME, 1.0) if isinstance(self.s, tuple) else (self.link, self.s)


def nearest_grip(model: Model, q: np.ndarray, link: str | None, point: np.ndarray) -> Grip | None:
    """The place of a robot nearest to a point in the world, on one link or on any; None of a robot without bodies."""
    geometry = robot_geometry(model)
    points, best = geometry.points(q), None
    for mesh in geometry.meshes:
        if link in (None, mesh.link) and mesh.link is not None:
            k = int(np.argmin(np.linalg.norm(points[mesh.rows] - point, axis=1)))
            gap = float(np.linalg.norm(points[mesh.rows][k] - point))
            if best is None or gap < best[0]:
                best = gap, mesh, k
    if best is None:
        return None
    _, mesh, k = best
    on = str(mesh.link)
    if mesh.kind == "deformable":
        at = tuple(geometry.local[mesh.rows][k].tolist())
        return Grip(on, at, np.zeros(3))
    s = float(mesh.s[k]) if mesh.kind == "rod" else 1.0
    g = frame_pose(model, q, on, s)
    return Grip(on, s, (points[mesh.rows][k] - g[:3, 3]) @ g[:3, :3])


def held_by_hand(model: Model, grip: Grip | None) -> Model:
    """The same robot with three more inputs, behind the others: a force in world axes at a place [N]."""
    if grip is None:
        return model
    robot = copy(model.description)
    directions = np.vstack([np.zeros((3, 3)), np.eye(3)])
    robot.add_wrench_input(_NAME, grip.link, s=grip.s, directions=directions, frame="world", position=grip.position)
    if isinstance(grip.s, tuple):  # material points have no frames but those that are asked for
        robot.add_frame(_NAME, grip.link, s=grip.s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to say was said when it was first built
        return robot.build()


@final
class Hand:
    """The hand at one place of a model of `held_by_hand`; its force is what `inputs` adds to u.

    Args:
        q, u, t: where it takes hold, which decides how stiff its spring is. target: where it is then [m].
    """

    def __init__(self, model: Model, grip: Grip, q: np.ndarray, u: np.ndarray, t: float, target: np.ndarray) -> None:
        self.model, self.grip, self.target = model, grip, np.array(target, dtype=np.float64)
        self.force, self._end = np.zeros(3), self.target.copy()
        J = self._jacobian(q)
        K, _, M = self._matrices(q, u, t)
        give, lightness = (
            float(np.trace(J @ np.linalg.pinv(X, hermitian=True) @ J.T)) / 3.0
            for X in (0.5 * (K + K.T) + SLOW**2 * M, M)
        )
        is_held = give <= 0.0 or lightness <= 0.0  # what cannot move needs no spring
        self.stiffness = 1.0 if is_held else _STIFFER / give
        self.damping = 0.0 if is_held else 2.0 * _DAMPED * float(np.sqrt(self.stiffness / lightness))
        self._inverse: tuple[float, np.ndarray] | None = None

    def place(self, q: np.ndarray) -> np.ndarray:
        """The point that is held, in the world [m]."""
        g = self._pose(q)
        return g[:3, 3] + g[:3, :3] @ self.grip.position

    def pull_still(self, q: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
        """The force (2) at rest, from that before."""
        J, (K, _, M) = self._jacobian(q), self._matrices(q, u, t)
        C = J @ np.linalg.pinv(0.5 * (K + K.T) + 1e-9 * M, hermitian=True) @ J.T
        k = self.stiffness
        self.force = np.linalg.solve(np.eye(3) + k * C, k * (self.target - self.place(q)) + k * C @ self.force)
        return self.force

    def pull_moving(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, h: float) -> np.ndarray:
        """The force (1) over a step that begins at a state."""
        J = self._jacobian(q)
        if self._inverse is None or t - self._inverse[0] > 0.05:  # of a matrix that changes slowly
            K, D, M = self._matrices(q, u, t)
            self._inverse = t, np.linalg.pinv(M + h * D + h * h * 0.5 * (K + K.T))
        W = J @ self._inverse[1] @ J.T
        x_dot, k, c = J @ v, self.stiffness, self.damping
        self._end += (self.target - self._end) * (1.0 - np.exp(-h / _LAG))
        wanted = k * (self._end - self.place(q) - h * x_dot) - c * x_dot
        self.force = np.linalg.solve(np.eye(3) + h * (c + h * k) * W, wanted)
        return self.force

    def fits(self, q: np.ndarray) -> bool:
        """Whether the force is that of the spring, at rest."""
        wanted = self.stiffness * (self.target - self.place(q))
        return bool(np.linalg.norm(wanted - self.force) <= _FITS * np.linalg.norm(wanted))

    def _pose(self, q: np.ndarray) -> np.ndarray:
        return frame_pose(self.model, q, *self.grip.frame).reshape(4, 4)

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """Of the point, in world axes, shape (3, nv)."""
        J, R = frame_jacobian(self.model, q, *self.grip.frame).reshape(6, -1), self._pose(q)[:3, :3]
        return R @ (J[3:] + np.cross(J[:3], self.grip.position, axisa=0, axisc=0))

    def _matrices(self, q: np.ndarray, u: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        zero = np.zeros(self.model.nv)
        K, D, M, _ = residual_derivatives(self.model, q, zero, zero, np.concatenate([u, self.force]), t)
        return K.copy(), D.copy(), M.copy()
