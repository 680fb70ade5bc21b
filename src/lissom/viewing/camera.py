"""Cameras of pictures: parallel projections with one scale everywhere, and the choice of their direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model
from lissom.viewing.geometry import robot_geometry

_FLAT = 1e-7  # largest distance of a planar robot from its plane, relative to its size
_SAMPLES = 6


@final
@dataclass(frozen=True, eq=False)
class Camera:
    """Parallel projection.

    Fields:
        axes: unit vectors to the right, upwards and towards the eye, as rows (3, 3).
        centre: point in the middle of the picture (3,) [m].
        height: of the picture [m].
        size: width and height of the picture [pixels].
        is_plane: whether the camera sees a planar robot at right angles to its plane.
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
        """Pixels of points (..., 3) from the upper left corner, and their heights towards the eye [m]."""
        seen = (points - self.centre) @ self.axes.T
        width, height = self.size
        x, y = 0.5 * width + self.scale * seen[..., 0], 0.5 * height - self.scale * seen[..., 1]
        return np.stack([x, y, seen[..., 2]], axis=-1)

    def rays(self) -> np.ndarray:
        """Point of the plane through the centre under each pixel, shape (height, width, 3)."""
        width, height = self.size
        x = (np.arange(width) + 0.5 - 0.5 * width) / self.scale
        y = (0.5 * height - np.arange(height) - 0.5) / self.scale
        return self.centre + x[None, :, None] * self.axes[0] + y[:, None, None] * self.axes[1]


def looking(view: tuple[float, float]) -> np.ndarray:
    """Axes of a camera from the elevation and azimuth of the eye [deg], with z upwards."""
    e, a = np.radians(view)
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    eye = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    return np.array([right, np.cross(eye, right), eye])


def upwards(gravity: np.ndarray) -> np.ndarray:
    """Unit vector against gravity; z without gravity."""
    size = float(np.linalg.norm(gravity))
    return -gravity / size if size > 0.0 else np.array([0.0, 0.0, 1.0])


def plane_of(model: Model) -> np.ndarray | None:
    """Normal of the plane of a planar robot, None for a robot in space.

    A body moves parallel to a plane of normal n if its points keep n·x, and its axes their components along n,

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
    """Axes of a camera that looks along the normal of a plane. `up` points upwards in the picture if it lies in the
    plane, otherwise y or z does."""
    across = [e - (e @ normal) * normal for e in (up, np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]))]
    top = next(e for e in across if np.linalg.norm(e) > 0.5)
    top = top / np.linalg.norm(top)
    right = np.cross(top, normal)
    if right[np.argmax(np.abs(right))] < 0.0:  # the axis of the world points to the right, not to the left
        normal, right = -normal, -right
    return np.array([right, top, normal])


def framed(
    axes: np.ndarray, points: np.ndarray, size: tuple[int | None, int | None], margins: Any, is_plane: bool
) -> Camera:
    """Camera whose picture holds all points (n, 3), with margins (left, right, bottom, top) as fractions of the width.

    A size of None is computed from the other one and from the extent of the points.
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


def chosen_view(model: Model, points: np.ndarray) -> tuple[float, float]:
    """Elevation and azimuth [deg] at which points (n, 3) cover most of the picture.

    Walls that rods are clamped to are seen from their free side; azimuths near −60 degrees are preferred.
    """
    best = (20.0, -60.0)
    spread = points - points.mean(axis=0)
    area = {}
    for azimuth in (quarter + part for quarter in (-180, -90, 0, 90) for part in (25, 35, 45, 55, 65)):
        axes = looking((best[0], float(azimuth)))
        wide = np.linalg.svd((spread @ axes[:2].T)[:: 1 + len(spread) // 2000], compute_uv=False)
        faces = [
            base_placement(model, k)[:3, 0] @ axes[2] for k in range(len(model.links.names)) if _is_clamped(model, k)
        ]
        behind = any(face < 0.3 for face in faces)
        turned = abs((azimuth + 60 + 180) % 360 - 180) / 180.0
        area[azimuth] = float(wide.prod()) * (0.4 if behind else 1.0) * (1.0 - 0.25 * turned)
    return best[0], float(max(area, key=lambda k: area[k]))


def _is_clamped(model: Model, k: int) -> bool:
    """Whether a link is a rod clamped to the world, roughly horizontal."""
    clamped = model.links.parent[k] < 0 and model.links.names[k] in model.rods and model.links.joint[k].nv == 0
    return bool(clamped and abs(base_placement(model, k)[:3, 0] @ upwards(model.gravity)) < 0.7)


def base_placement(model: Model, k: int) -> np.ndarray:
    """Placement of a link in its parent, or in the world, shape (4, 4)."""
    place = model.description.links[model.links.names[k]].placement
    return np.eye(4) if place is None else np.asarray(place, dtype=np.float64)
