"""A closed mesh without an inside, for readers, shapes of contacts and distances that must refuse it."""

import numpy as np

import lissom as ls

TRIANGLES = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5], [0, 5, 1],
                      [1, 2, 4], [2, 3, 5], [3, 4, 1], [4, 5, 2], [5, 1, 3]])  # fmt: skip


def projective_plane():
    """The real projective plane of six random vertices, which has one side."""
    return ls.Mesh(vertices=np.random.default_rng(0).normal(size=(6, 3)), triangles=TRIANGLES)
