"""Distances of rare shapes in kernels, and the empty functions of kernels that serve none."""

import numpy as np
import pytest
import warp as wp

from lissom.forces.rare_shapes import ellipsoid_distance, grid_distance, heights_distance, torus_distance
from lissom.lie.types import RARE, kernel_options, mat4, vec3
from lissom.model.distance_grids import coefficients
from lissom.passes.features import is_rare_shape
from lissom.robot.shapes import ShapeKind

FORMS = ("torus", "ellipsoid", "heights", "grid")
SIZES = {"torus": (0.5, 0.2, 0.0), "ellipsoid": (0.5, 0.3, 0.2), "heights": (1.2, 9.0, 0.0), "grid": (0.0, 0.0, 0.0)}
LOW, STEP, COUNT = np.array([-1.0, -0.9, -0.8]), np.array([0.2, 0.25, 0.3]), (11, 9, 8)
SLOPE = np.array([0.48, 0.6, 0.64])  # of the plane on the grid, a unit vector


def kernel(serves):
    """One that evaluates a shape."""

    @wp.kernel(module="unique", module_options=kernel_options(serves))
    def run_shape(form: int, size: vec3, y: vec3, low: vec3, spacing: vec3, n: wp.array(dtype=wp.int32),
                  c: wp.array(dtype=wp.float64), kind: int, out: wp.array(dtype=mat4),
                  rare: wp.array(dtype=wp.int32)):  # fmt: skip
        if form == 0:
            out[0] = torus_distance(size, y)
        if form == 1:
            out[0] = ellipsoid_distance(size, y)
        if form == 2:
            out[0] = heights_distance(size, y, low, spacing, n[0], n[1], n[3], c)
        if form == 3:
            out[0] = grid_distance(y, low, spacing, n[0], n[1], n[2], n[3], c)
        rare[0] = wp.where(is_rare_shape(kind), 1, 0)

    return run_shape


SERVING, EMPTY = kernel(RARE), kernel(())


def nodes():
    """Positions of the samples of the grid, shape (*COUNT, 3)."""
    axes = [x + h * np.arange(n) for x, h, n in zip(LOW, STEP, COUNT)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def table(form):
    """Coefficients of a plane: of its heights, or of its distances."""
    x = nodes()
    if form == "heights":
        return coefficients(0.1 + 0.3 * x[:, :, 0, 0] - 0.2 * x[:, :, 0, 1])[..., None]
    return coefficients(x @ SLOPE - 0.1)


def ran(made, form, y, kind=ShapeKind.GRID):
    """Distance, gradient and Hessian of a shape at y, and whether its kind is rare. Three numbers come before the
    table."""
    c = table(form)
    numbers = wp.array(np.concatenate([np.full(3, np.nan), c.ravel()]), dtype=wp.float64, device="cpu")
    out = wp.zeros(1, dtype=mat4, device="cpu")
    rare, n = (wp.array(x, dtype=wp.int32, device="cpu") for x in ([0], [*c.shape, 3]))
    given = [FORMS.index(form), vec3(*SIZES[form]), vec3(*y), vec3(*LOW), vec3(*STEP), n, numbers, kind.value]
    wp.launch(made, dim=1, inputs=[*given, out, rare], device="cpu")
    found = out.numpy()[0]
    return found[3, 3], found[:3, 3], found[:3, :3], bool(rare.numpy()[0])


def expected(form, y):
    """The distance of a shape."""
    if form == "torus":
        return np.hypot(np.hypot(y[0], y[1]) - 0.5, y[2]) - 0.2
    if form == "heights":
        return (y[2] - 0.1 - 0.3 * y[0] + 0.2 * y[1]) / np.sqrt(1.13)
    return y @ SLOPE - 0.1


@pytest.mark.parametrize("form", FORMS)
def test_shapes(form):
    """torus_distance(, ellipsoid_distance(, heights_distance( and grid_distance( against closed forms; gradients and
    Hessians against differences."""
    rng = np.random.default_rng(2)
    for _ in range(12):
        y = rng.uniform(-0.6, 0.6, 3)
        if form == "ellipsoid":
            half, far = np.array(SIZES[form]), rng.uniform(0.01, 0.3)
            on = half * y / np.linalg.norm(y)
            normal = on / half**2 / np.linalg.norm(on / half**2)
            y, want = on + far * normal, far
        else:
            want = expected(form, y)
        d, n, N, _ = ran(SERVING, form, y)
        assert d == pytest.approx(want, abs=1e-13)
        ahead, behind = ([ran(SERVING, form, y + s * e)[:2] for e in 1e-6 * np.eye(3)] for s in (1, -1))
        np.testing.assert_allclose(n, [(a[0] - b[0]) / 2e-6 for a, b in zip(ahead, behind)], atol=1e-8)
        np.testing.assert_allclose(N, [(a[1] - b[1]) / 2e-6 for a, b in zip(ahead, behind)], atol=1e-7)


def test_kernels_without_rare_shapes():
    """is_rare_shape( is true for rare kinds only where kernels serve them; elsewhere the functions are empty."""
    y = np.array([0.4, 0.3, 0.2])
    for kind in ShapeKind:
        assert ran(SERVING, "torus", y, kind)[3] == kind.is_rare
        d, n, N, rare = ran(EMPTY, "torus", y, kind)
        assert d == 0.0 and not n.any() and not N.any() and not rare
