"""What matplotlib draws of a robot: facets of its bodies and of what it touches as polygons in the world."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lissom.model.model import Model
from lissom.robot import facets
from lissom.viewing.building import contact_geometry, robot_geometry
from lissom.viewing.meshing import AROUND, STATIONS, area_vectors

__all__ = ["AROUND", "STATIONS"]


def body_facets(model: Model, q: np.ndarray, name: str) -> np.ndarray:
    """Quadrilaterals of the body of a link, (n, m, 4, 3) [m] for configurations (n, nq); m is 0 without a body."""
    geometry = robot_geometry(model)
    points = geometry.points(q)
    found = [points[:, mesh.rows][:, mesh.quads] for mesh in geometry.meshes if mesh.name == name]
    return np.concatenate([np.zeros((len(q), 0, 4, 3)), *found], axis=1)


def soft_links(model: Model) -> set[str]:
    """Names of the links whose bodies change their shape."""
    return {mesh.name for mesh in robot_geometry(model).meshes if mesh.kind != "rigid"}


def connectors(model: Model, q: np.ndarray, links: Sequence[str]) -> np.ndarray:
    """Straight lines from each link to the links it carries away from its own end, shape (n, m, 2, 3) [m]."""
    geometry = robot_geometry(model)
    points = geometry.points(q)
    lines = [points[:, line.rows] for line in geometry.of("tie") if set(line.links) <= set(links)]
    return np.stack(lines, axis=1) if lines else np.zeros((len(q), 0, 2, 3))


def tendon_lines(model: Model, q: np.ndarray) -> dict[str, np.ndarray]:
    """Lines of the tendons by name, each (n, points, 3) [m] for configurations (n, nq)."""
    geometry = robot_geometry(model)
    points = geometry.points(q)
    return {line.name: points[:, line.rows] for line in geometry.of("tendon")}


def obstacle_facets(
    model: Model, q: np.ndarray, links: Sequence[str], low: np.ndarray, high: np.ndarray
) -> list[np.ndarray]:
    """Quadrilaterals (n, m, 4, 3) [m] of each shape that contacts fix to the world or to one of the links, at
    configurations (n, nq), the first of which decides how far those reach that have no end; see contact_geometry."""
    geometry = contact_geometry(model, q[0], low, high, links)
    points = geometry.points(q)
    return [points[:, mesh.rows][:, mesh.quads] for mesh in geometry.meshes]


def cut_to_box(polygons: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """What lies inside a box of polygons (m, corners, 3), each a polygon (k, 3)."""
    inside = ((polygons >= low) & (polygons <= high)).all(axis=(1, 2))
    cut = [_cut(polygon, low, high) for polygon in polygons[~inside]]
    return [*polygons[inside], *(polygon for polygon in cut if len(polygon) > 2)]


def _cut(polygon: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The part of a convex polygon inside a box, side after side (Sutherland and Hodgman 1974)."""
    for axis in range(3):
        for sign, bound in ((1.0, low[axis]), (-1.0, high[axis])):
            kept, depth = [], sign * (polygon[:, axis] - bound)
            for k in range(len(polygon)):
                if depth[k - 1] * depth[k] < 0.0:
                    part = depth[k - 1] / (depth[k - 1] - depth[k])
                    kept.append(polygon[k - 1] + part * (polygon[k] - polygon[k - 1]))
                if depth[k] >= 0.0:
                    kept.append(polygon[k])
            polygon = np.array(kept).reshape(-1, 3)
    return polygon


def ribbon_facets(line: np.ndarray, radius: float) -> np.ndarray:
    """A thin three-sided tube along lines (n, points, 3), as quadrilaterals (n, m, 4, 3)."""
    along = np.gradient(line, axis=1)
    along /= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-300)
    least = np.eye(3)[np.argmin(np.abs(along).mean(axis=1), axis=-1)]
    side = np.cross(along, least[:, None])
    side /= np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-300)
    other = np.cross(along, side)
    turns = 2 * np.pi / 3 * np.arange(3)
    return facets.between(np.stack([line + radius * (np.cos(a) * side + np.sin(a) * other) for a in turns], axis=2))


def facet_normals(facets: np.ndarray) -> np.ndarray:
    """Unit normals of quadrilaterals (m, 4, 3) from their diagonals, shape (m, 3)."""
    normals = area_vectors(facets)
    return normals / np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)
