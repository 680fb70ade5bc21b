"""What stands behind a robot: the ground or the wall that it is clamped to, with its shadow."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from lissom.model.model import Model
from lissom.viewing.camera import Camera, upwards
from lissom.viewing.canvas import Layer
from lissom.viewing.style import rgb

AIR, WATER, GROUND = rgb("#ffffff"), rgb("#eaf4fa"), rgb("#eef0f3")
_GRID = rgb("#dfe2e7")
_CELLS = 512  # of a shadow, along each side
_DARK = 0.34
_LEVEL = 0.99  # cosine between normals of a plane and the ground


@final
class Plane(NamedTuple):
    """A plane: a point of it (3,) [m], its normal (3,), two directions across (2, 3), and how far it is seen [m]."""

    point: np.ndarray
    normal: np.ndarray
    across: np.ndarray
    reach: float


def planes_behind(model: Model, camera: Camera, points: np.ndarray) -> list[Plane]:
    """The ground, or the wall that a rod is clamped to, as far as the camera sees them from their free side; `points`
    (n, 3) are of all that is drawn."""
    if camera.is_plane:
        return []
    size = float(np.ptp(points, axis=0).max())
    up, found = upwards(model.gravity), []
    low = points[np.argmin(points @ up)]
    for k, shape in enumerate(model.surroundings.obstacle_shape):
        g = model.surroundings.obstacle_placement[k]
        if _is_plane(model, k) and shape is not None and g[:3, 2] @ up > _LEVEL:
            found = [(g[:3, 3], g[:3, 2])]
    stands = False
    for name, parent in zip(model.links.names, model.links.parent):
        if parent >= 0 or found:
            continue
        place = model.description.links[name].placement
        clamped = np.eye(4) if place is None else np.asarray(place, dtype=np.float64)
        joint = model.links.joint[model.links.names.index(name)]
        if name in model.rods and joint.nv == 0:
            found = [(clamped[:3, 3], clamped[:3, 0])]
        stands = stands or joint.nv < 6
    if not found and stands and model.description.fluid is None:
        found = [(low, up)]
    return [_plane(point, normal, points, size) for point, normal in found if normal @ camera.axes[2] > 0.08]


def _is_plane(model: Model, k: int) -> bool:
    world = model.surroundings
    return int(world.obstacle_node[k]) < 0 and int(world.obstacle_kind[k]) == 0


def _plane(point: np.ndarray, normal: np.ndarray, points: np.ndarray, size: float) -> Plane:
    """With its point under the middle of what is drawn."""
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    point = middle - ((middle - point) @ normal) * normal
    first = np.eye(3)[np.argmin(np.abs(normal))]
    first = np.cross(normal, first)
    first /= np.linalg.norm(first)
    spread = float(np.linalg.norm((points - middle) - ((points - middle) @ normal)[:, None] * normal, axis=1).max())
    return Plane(point, normal, np.array([first, np.cross(normal, first)]), max(1.5 * spread, 0.45 * size))


def light(camera: Camera, normal: np.ndarray) -> np.ndarray:
    """Towards the light that throws shadows on a plane."""
    right, up, eye = camera.axes
    return normal + 0.22 * (up - (up @ normal) * normal) - 0.3 * (right - (right @ normal) * normal) + 0.12 * eye


def shadow(plane: Plane, camera: Camera, parts: list[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    """How dark a plane is in cells (n, n) over its reach, from vertices (v, 3), triangles (k, 3) and how much of the
    light they take."""
    from PIL import Image, ImageDraw
    from scipy.ndimage import gaussian_filter

    total = np.zeros((_CELLS, _CELLS), dtype=np.float32)
    towards = light(camera, plane.normal)
    for vertices, triangles, part in parts:
        above = (vertices - plane.point) @ plane.normal
        flat = vertices - plane.point - (above / (towards @ plane.normal))[:, None] * towards
        cells = (0.5 + 0.5 * (flat @ plane.across.T) / plane.reach) * _CELLS
        image = Image.new("L", (_CELLS, _CELLS))
        draw = ImageDraw.Draw(image)
        for corners in cells[triangles[(above[triangles] > -1e-3 * plane.reach).all(axis=1)]].reshape(-1, 6).tolist():
            draw.polygon(corners, fill=255)
        total = np.maximum(total, part * np.asarray(image, dtype=np.float32) / 255.0)
    return 0.6 * gaussian_filter(total, 0.006 * _CELLS) + 0.4 * gaussian_filter(total, 0.022 * _CELLS)


@final
class Backdrop:
    """The planes behind a robot, seen by a camera that stands still."""

    def __init__(self, model: Model, camera: Camera, planes: list[Plane]) -> None:
        self._camera, self.planes = camera, planes
        width, height = camera.size
        background = AIR if model.description.fluid is None else WATER
        self._plain = np.tile(background.astype(np.float32), (height, width, 1))
        self._seen = [self._look_at(plane) for plane in planes]
        if camera.is_plane:
            self._draw_level_planes(model)

    def layer(self, shadows: list[np.ndarray]) -> Layer:
        """The planes with what they are darkened by, at one pixel for each of the picture."""
        from scipy.ndimage import map_coordinates

        colors = self._plain.copy()
        near = np.full(colors.shape[:2], -np.inf, dtype=np.float32)
        for (cells, depth, strength, color), dark in zip(self._seen, shadows):
            shade = map_coordinates(dark, cells, order=1, mode="constant")
            tone = color * (1.0 - _DARK * shade[..., None])
            colors += strength[..., None] * (tone - colors)
            near = np.where(strength > 0.02, np.maximum(near, depth), near)
        height, width = colors.shape[:2]
        return Layer(colors, near, (slice(0, height), slice(0, width)))

    def _look_at(self, plane: Plane) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Cells of its shadow (2, h, w), how near it is, how strongly it is seen, and its colour without shadow."""
        eye = self._camera.axes[2]
        rays = self._camera.rays() - plane.point
        depth = -(rays @ plane.normal) / (eye @ plane.normal)
        place = (rays + depth[..., None] * eye) @ plane.across.T
        distance = np.linalg.norm(place, axis=-1) / plane.reach
        strength = np.clip((1.0 - distance) / 0.45, 0.0, 1.0)
        strength = (strength * strength * (3.0 - 2.0 * strength)).astype(np.float32)
        cells = (0.5 + 0.5 * place / plane.reach) * _CELLS - 0.5
        color = np.where(self._on_grid(place, plane)[..., None], _GRID, GROUND).astype(np.float32)
        return np.stack([cells[..., 1], cells[..., 0]]).astype(np.float32), depth.astype(np.float32), strength, color

    def _on_grid(self, place: np.ndarray, plane: Plane) -> np.ndarray:
        cell = nice_length(0.35 * plane.reach)
        slope = np.maximum(np.abs(np.gradient(place, axis=0)), np.abs(np.gradient(place, axis=1)))
        away = np.abs((place / cell + 0.5) % 1.0 - 0.5) * cell
        return np.asarray((away < 0.6 * slope).any(axis=-1))

    def _draw_level_planes(self, model: Model) -> None:
        """Planes seen from the side, as the region that bodies are kept out of."""
        rays = self._camera.rays()
        for k in range(len(model.surroundings.obstacle_kind)):
            g = model.surroundings.obstacle_placement[k]
            if _is_plane(model, k) and abs(g[:3, 2] @ self._camera.axes[2]) < 1e-6:
                above = (rays - g[:3, 3]) @ g[:3, 2] * self._camera.scale
                self._plain[above < 0.0] = rgb("#e3e6ea")
                self._plain[np.abs(above + 1.5) < 1.5] = rgb("#9aa1ab")


def nice_length(most: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not longer."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(x * power for x in (1.0, 2.0, 5.0) if x * power <= most * (1.0 + 1e-9)))
