"""Facets and lines that pictures draw, in the world, for tests of where they are."""

import numpy as np

from lissom.viewing.geometry import area_vectors, robot_geometry


def body_facets(model, q, name):
    """Quadrilaterals of the body of a link, (n, m, 4, 3) [m] for configurations (n, nq); m is 0 without a body."""
    geometry = robot_geometry(model)
    points = geometry.points(q)
    found = [points[:, mesh.rows][:, mesh.quads] for mesh in geometry.meshes if mesh.name == name]
    return np.concatenate([np.zeros((len(q), 0, 4, 3)), *found], axis=1)


def facet_normals(facets):
    """Unit normals of quadrilaterals (m, 4, 3), shape (m, 3)."""
    normals = area_vectors(facets)
    return normals / np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)


def tendon_lines(model, q):
    """Lines of the tendons by name, each (n, points, 3) [m] for configurations (n, nq)."""
    geometry = robot_geometry(model)
    points = geometry.points(q)
    return {line.name: points[:, line.rows] for line in geometry.of("tendon")}
