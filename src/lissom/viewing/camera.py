"""Where the eye stands: parallel projections, so that one scale holds everywhere in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model
from lissom.viewing.building import robot_geometry

_FLAT = 1e-7  # how far a planar robot may leave its plane, by its size
_SAMPLES = 6


@final
@dataclass(frozen=True, eq=False)
class Camera:
    """A parallel projection.

    Fields:
        axes: rows that point to the right, upwards and towards the eye (3, 3). centre: what is in the middle (3,) [m].
        height: of the picture [m]. size: its width and height [pixels]. is_plane: whether a planar robot is looked at
        square on.
    """

    axes: np.ndarray
    centre: np.ndarray
    height: float
    size: tuple[int, int]
    is_plane: bool = False

    @property
    def scale(self) -> float:
        """Pixels per metre."""
        return self.size[1] / self.height

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Where points (..., 3) are in the picture, from its upper left corner, and how near the eye [m]."""
        seen = (points - self.centre) @ self.axes.T
        width, height = self.size
        x, y = 0.5 * width + self.scale * seen[..., 0], 0.5 * height - self.scale * seen[..., 1]
        return np.stack([x, y, seen[..., 2]], axis=-1)

    def rays(self) -> np.ndarray:
        """The point (height, width, 3) in the plane through the centre that each pixel sees."""
        width, height = self.size
        x = (np.arange(width) + 0.5 - 0.5 * width) / self.scale
        y = (0.5 * height - np.arange(height) - 0.5) / self.scale
        return self.centre + x[None, :, None] * self.axes[0] + y[:, None, None] * self.axes[1]


def looking(view: tuple[float, float]) -> np.ndarray:
    """Axes of a camera by elevation and azimuth of the eye [deg], z upwards."""
    e, a = np.radians(view)
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    eye = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    return np.array([right, np.cross(eye, right), eye])


def upwards(gravity: np.ndarray) -> np.ndarray:
    """Against gravity; z without it."""
    size = float(np.linalg.norm(gravity))
    return -gravity / size if size > 0.0 else np.array([0.0, 0.0, 1.0])


def plane_of(model: Model) -> np.ndarray | None:
    """The normal of the plane that everything moves parallel to, None for robots in space.

    A body moves parallel to a plane of normal n where its points stay at their n·x, and so do its axes,

        n·(p_k(q) − p_k(q₀)) = 0,     (R_k(q) R_k(q₀)ᵀ − 1)ᵀ n = 0                                         (1)
    """
    return model.cached(("plane",), lambda: (_find_plane(model),))[0]


def _find_plane(model: Model) -> np.ndarray | None:
    if model.nv == 0 or any(mesh.kind == "deformable" for mesh in robot_geometry(model).meshes):
        return None
    rng = np.random.default_rng(0)
    steps = 0.5 * model.dofs.scale * rng.uniform(-1.0, 1.0, (_SAMPLES, model.nv))
    q = integrate(model, model.neutral(), np.vstack([np.zeros(model.nv), steps]))
    g = forward_kinematics(model, q)
    away = (g[1:, :, :3, 3] - g[0, :, :3, 3]).reshape(-1, 3)
    turned = (g[1:, :, :3, :3] @ np.swapaxes(g[0, :, :3, :3], -1, -2) - np.eye(3)).reshape(-1, 3)
    rows = np.concatenate([away / max(float(np.abs(away).max(initial=0.0)), 1e-300), turned])
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    free = vectors[:, values < _FLAT**2 + 1e-14]
    if free.shape[1] == 0:
        return None
    up = upwards(model.gravity)
    likely = [free @ (free.T @ e) for e in (np.array([0.0, -1.0, 0.0]), *np.eye(3))]
    level = [n for n in likely if np.linalg.norm(n) > 1e-6]
    normal = min(level, key=lambda n: round(abs(float(n @ up)) / float(np.linalg.norm(n)), 6))
    return normal / np.linalg.norm(normal)


def plane_axes(normal: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Axes of a camera that looks at a plane square on, `up` upwards where it lies in the plane, else y or z."""
    across = [e - (e @ normal) * normal for e in (up, np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]))]
    top = next(e for e in across if np.linalg.norm(e) > 0.5)
    top = top / np.linalg.norm(top)
    right = np.cross(top, normal)
    if right[np.argmax(np.abs(right))] < 0.0:  # the world's axis to the right, not to the left
        normal, right = -normal, -right
    return np.array([right, top, normal])


def framed(
    axes: np.ndarray, points: np.ndarray, size: tuple[int | None, int | None], margins: Any, is_plane: bool
) -> Camera:
    """The camera that holds all points (n, 3), with margins (left, right, bottom, top) as parts of the width.

    A size that is None follows from the other and the shape of what is seen.
    """
    seen = points @ axes.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    wide, tall = np.maximum((high - low)[:2], 1e-3 * max(float((high - low).max()), 1e-6))
    left, right, bottom, top = margins
    width, height = size
    width = width or 1200
    inner = 1.0 - left - right
    if height is None:
        height = round(width * float(np.clip(inner * tall / wide + bottom + top, 0.45, 1.0)))
    room = np.array([inner, height / width - bottom - top]) * width  # [pixels]
    scale = float(min(room[0] / wide, room[1] / tall))
    shift = 0.5 * width * np.array([left - right, bottom - top]) / scale
    middle = 0.5 * (low + high)
    middle[:2] -= shift
    return Camera(axes, middle @ axes, height / scale, (width, height), is_plane)
