"""Pressures on cells: kernels beside NumPy, derivatives beside complex steps, and sums over many small pieces."""

import numpy as np
import pytest
import warp as wp

from lissom.forces import cells

COLUMNS = ["depth", "m_1", "m_2", "cover", "depth_1", "depth_2", "m_11", "m_12", "m_22"]


@wp.func
def put(x: cells.CellPressure, i: int, out: wp.array2d(dtype=wp.float64)):
    out[i, 0] = x.depth
    out[i, 1] = x.m_1
    out[i, 2] = x.m_2
    out[i, 3] = x.cover
    out[i, 4] = x.depth_1
    out[i, 5] = x.depth_2
    out[i, 6] = x.m_11
    out[i, 7] = x.m_12
    out[i, 8] = x.m_22


@wp.kernel
def of_triangles(x: wp.array2d(dtype=wp.float64), out: wp.array2d(dtype=wp.float64)):
    i = wp.tid()
    put(cells.triangle_pressure(x[i, 0], x[i, 1], x[i, 2]), i, out)


@wp.kernel
def of_parallelograms(x: wp.array2d(dtype=wp.float64), out: wp.array2d(dtype=wp.float64)):
    i = wp.tid()
    put(cells.curved_cell_pressure(x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4]), i, out)


KINDS = {"triangle": (of_triangles, True), "parallelogram": (of_parallelograms, False)}


def some_cells(count=600):
    """Mean depths, slopes and bends: all bent in both directions, in one, or flat, and some slopes zero."""
    x = np.random.default_rng(5).normal(size=(count, 5))
    x[: count // 3, 3], x[count // 6 : count // 2, 4], x[::11, 1], x[::13, 2] = 0.0, 0.0, 0.0, 0.0
    return x


def in_kernel(kernel, x):
    out = wp.zeros((len(x), len(COLUMNS)), dtype=wp.float64)
    wp.launch(kernel, len(x), [wp.array(x), out])
    return out.numpy()


@pytest.mark.parametrize("name", KINDS)
def test_kernels_equal_numpy_and_its_complex_steps(name):
    """The kernel returns M and m as NumPy does, and exact derivatives of them."""
    kernel, is_triangle = KINDS[name]
    x, step = some_cells(), 1e-30
    found = in_kernel(kernel, x)
    assert 0.1 < (found[:, 3] == 0.0).mean() < 0.4  # open, partly and wholly pressed cells
    assert (np.abs(found[:, 3] - 1.0) < 1e-15).mean() > 0.05
    np.testing.assert_allclose(found[:, :3].T, cells.pressures(is_triangle, *x.T), atol=1e-14)
    for j, columns in enumerate(((3, 4, 5), (4, 6, 7), (5, 7, 8))):
        moved = x.astype(complex)
        moved[:, j] += 1j * step
        slopes = np.imag(cells.pressures(is_triangle, *moved.T)) / step
        np.testing.assert_allclose(found[:, columns].T, slopes, atol=1e-14)


def clipped(places, weights, x):
    """M and m of a linear depth, less the bends, at many places (n, 2) in a cell."""
    d, g_1, g_2, c_1, c_2 = x
    u, v = places.T
    depth = np.maximum(d + u * g_1 + v * g_2 - c_1 * (u**2 - 1 / 3) - c_2 * (v**2 - 1 / 3), 0.0)
    return weights @ np.column_stack([depth, u * depth, v * depth])


def test_triangles_equal_a_sum_over_small_pieces():
    """M and m of a triangle whose corners have the coordinates (1, 0), (0, 1) and (−1, −1) from its centroid."""
    n = 400
    a, b = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n)
    a, b = np.where(a + b > 1.0, 1.0 - a, a), np.where(a + b > 1.0, 1.0 - b, b)
    shares = np.stack([a.ravel(), b.ravel(), 1.0 - a.ravel() - b.ravel()], axis=1)
    places = shares @ np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    weights = np.full(len(places), 1.0 / len(places))
    x = some_cells(12) * [1, 1, 1, 0, 0]
    for row, found in zip(x, in_kernel(of_triangles, x)):
        np.testing.assert_allclose(found[:3], clipped(places, weights, row), atol=3e-3)


def test_curved_cells_equal_a_sum_over_small_pieces():
    """M and m of cells that bend: the strips are flat, so that the rest is of second order in their width."""
    at = 2.0 * (np.arange(600) + 0.5) / 600 - 1.0
    places = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    weights = np.full(len(places), 1.0 / len(places))
    x = some_cells(24)
    error = np.array(
        [found[:3] - clipped(places, weights, row) for row, found in zip(x, in_kernel(of_parallelograms, x))]
    )
    bends = np.abs(x[:, 3]) / cells.STRIPS_OF_BOTH**2 + np.abs(x[:, 4]) / cells.STRIPS_OF_BOTH**2
    assert (np.abs(error).max(axis=1) < 1e-4 + 0.25 * bends).all()


def test_triangles_with_a_corner_or_an_edge_on_the_plane():
    """Corners of depth zero: M is a third of the depth of the only pressed corner, or of the sum of two."""
    rows = {(0.0, 0.0, 0.0): 0.0, (1.0, 0.0, 0.0): 1 / 3, (0.0, 1.0, 1.0): 2 / 3, (0.0, -1.0, -1.0): 0.0,
            (0.0, 1.0, -1.0): 1 / 6, (1.0, 0.0, -3.0): 1 / 12}  # fmt: skip
    for corners, expected in rows.items():
        for k in range(3):
            c = np.roll(corners, k)
            x = np.array([[c.mean(), c[0] - c.mean(), c[1] - c.mean(), 0.0, 0.0]])
            assert in_kernel(of_triangles, x)[0, 0] == pytest.approx(expected, abs=1e-15)
            assert cells.triangle_pressures(*x[0, :3])[0] == pytest.approx(expected, abs=1e-15)


def test_a_triangle_begins_smoothly():
    """Depth and derivatives at the moment of touching, and where the last corner is pressed, have no jump."""
    for d in (-1.0, 0.5):  # the first corner at the plane; the last one
        x = np.array([[d + e, 1.0, -0.5, 0.0, 0.0] for e in (-1e-9, 1e-9)])
        low, high = in_kernel(of_triangles, x)
        assert np.abs(high - low).max() < 1e-8
        assert np.isfinite(high).all()
