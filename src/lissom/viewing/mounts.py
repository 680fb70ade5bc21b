"""Supports of robots in pictures: a plate behind a clamped rod whose wall is not seen, and what hanging robots hang
from."""

from __future__ import annotations

import numpy as np

from lissom.model.model import Model
from lissom.robot.shapes import box_faces
from lissom.viewing.camera import base_placement, upwards
from lissom.viewing.canvas import Painted, Plane
from lissom.viewing.colors import rgb
from lissom.viewing.geometry import Geometry, area_vectors

_PLATE, _STEM = rgb("#8d949e"), rgb("#4a5058")
_HIGH = 0.4  # part of the height of all points, above which the bases of a robot that hangs lie


def roots(model: Model) -> list[int]:
    """Links on the world that cannot move freely."""
    return [k for k, joint in enumerate(model.links.joint) if model.links.parent[k] < 0 and joint.nv < 6]


def hangs(model: Model, points: np.ndarray) -> bool:
    """Whether a robot hangs: its bases are high among all points (n, 3) that are drawn."""
    up, found = upwards(model.gravity), roots(model)
    height = points @ up
    bases = np.array([base_placement(model, k)[:3, 3] @ up for k in found])
    least = height.min() + _HIGH * np.ptp(height)
    return bool(found and model.gravity.any() and np.ptp(height) > 0.0 and (bases > least).all())


def mounts(
    model: Model, geometry: Geometry, q: np.ndarray, points: np.ndarray, links: list[str], has_pins: bool
) -> list[Painted]:
    """Plates at the bases of links: behind rods that are clamped, and above other links of a robot that hangs.

    Args:
        q: configuration (nq,). points: everything that is drawn (n, 3) [m]. links: names of the links that are drawn.
        has_pins: whether hinges on the world are drawn with supports, as those of planar robots are.
    """
    size, up = float(np.ptp(points, axis=0).max()), upwards(model.gravity)
    there = hangs(model, points) and not has_pins
    places, found = geometry.points(q), []
    for k in roots(model):
        name, joint = model.links.names[k], model.links.joint[k]
        base = base_placement(model, k)
        rows = [mesh.rows for mesh in geometry.meshes if mesh.name == name and mesh.kind != "shape"]
        if name not in links or not rows:
            continue
        body = places[rows[0]]
        if name in model.rods and joint.nv == 0:
            away = base[:3, :3].T @ (body - base[:3, 3]).T
            radius = float(np.linalg.norm(away[1:, away[0] < 1e-6 * size], axis=0).max(initial=0.0))
            found.append(_plate(base[:3, 3], -base[:3, 0], max(1.8 * radius, 0.02 * size), 0.015 * size))
        elif there:
            top = body @ up
            start = body[top > top.max() - 0.02 * size].mean(axis=0) if joint.nv == 0 else base[:3, 3]
            stop = start + 0.12 * size * up if joint.nv else start
            if joint.nv:
                found.append(_box(0.5 * (start + stop), up, np.array([0.06 * size, 0.008 * size, 0.008 * size]), _STEM))
            wide = 0.06 * size if joint.nv else 0.6 * float(np.ptp(body - np.outer(body @ up, up), axis=0).max())
            found.append(_plate(stop, up, wide, 0.015 * size))
    return found


def unseen(found: list[Painted], planes: list[Plane]) -> list[Painted]:
    """The plates that are not in a plane that is drawn."""

    def is_seen(part: Painted) -> bool:
        away = [np.abs((part.vertices - plane.point) @ plane.normal).min() / plane.reach for plane in planes]
        return min(away, default=1.0) > 1e-3

    return [part for part in found if is_seen(part)]


def _plate(at: np.ndarray, normal: np.ndarray, half: float, thick: float) -> Painted:
    """A square plate that begins at a point and lies on the side of its normal."""
    return _box(at + 0.5 * thick * normal, normal, np.array([0.5 * thick, half, half]), _PLATE)


def _box(centre: np.ndarray, along: np.ndarray, half: np.ndarray, color: np.ndarray) -> Painted:
    """A box with its first axis along a unit vector."""
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    side /= np.linalg.norm(side)
    axes = np.array([along, side, np.cross(along, side)])
    corners = box_faces(half) @ axes + centre
    normals = area_vectors(corners)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    first = 4 * np.arange(len(corners))[:, None]
    triangles = np.concatenate([first + np.array([0, 1, 2]), first + np.array([0, 2, 3])])
    count = 4 * len(corners)
    return Painted(corners.reshape(-1, 3), triangles, np.repeat(normals, 4, axis=0), np.tile(color, (count, 1)))
