"""Signed distances of shapes that few robots touch, inside kernels: tori, ellipsoids, height fields, shapes on grids.

A result is the matrix [[N, n], [nᵀ, d]] of the distance d of a point y, its gradient n and its Hessian N. In kernels
for robots without these shapes (kernel_options) the functions are empty.

Ellipsoid with half-axes a_k, where a is the smallest. With the only root s > 0 of (1), n = g/|g|:

    Σ (a_k g_k)² = 1,   g_k = y_k/(s + a_k² − a²)                                                        (1)
    d = (s − a²) |g|                                                                                     (2)
    |g| N = (1 − n nᵀ) W (1 − g wᵀ/(w·g)),   W = diag(1/(s + a_k² − a²)),   w_k = a_k² W_kk g_k           (3)

Height field z = h(X, Y), a cubic spline. Newton's method with the matrix H of (5) finds the foot x = (X, Y) of y:

    x − y_xy − (y_z − h) ∇h = 0                                                                          (4)
    H = 1 + ∇h ∇hᵀ − (y_z − h) ∇∇h,   d = (y_z − h) √(1 + |∇h|²)                                          (5)
    N = (1 − n nᵀ) (−∇∇h; 0) ∂x/∂y/√(1 + |∇h|²),   ∂x/∂y = H⁻¹ [1, ∇h]                                    (6)

Shape on a grid: d is a tensor product of cubic B-splines with coefficients c, and its derivatives are exact:

    d(y) = Σ c_ijk β(u_x − i) β(u_y − j) β(u_z − k),   u = (y − low)/spacing                             (7)
    n = ∂d/∂y,   N = ∂²d/∂y²                                                                             (8)

Outside the grid, with the nearest point p of the grid, d is a lower bound of the distance, continuous at the grid:

    d(y)² = |y − p|² + d(p)²                                                                             (9)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat4, vec3

native = native_functions("forces/rare_shapes.h")


@wp.func_native(native("torus_distance"))
def torus_distance(size: vec3, y: vec3) -> mat4:
    """A torus about z with the radii of its middle circle and of its tube in `size`."""
    ...


@wp.func_native(native("ellipsoid_distance"))
def ellipsoid_distance(size: vec3, y: vec3) -> mat4:
    """(1) to (3)."""
    ...


@wp.func_native(native("heights_distance"))
def heights_distance(
    size: vec3, y: vec3, low: vec3, spacing: vec3, n_x: int, n_y: int, start: int, c: wp.array(dtype=wp.float64)
) -> mat4:
    """(4) to (6). size: the largest √(1 + |∇h|²), and the distance beyond which a lower bound is enough."""
    ...


@wp.func_native(native("grid_distance"))
def grid_distance(
    y: vec3, low: vec3, spacing: vec3, n_x: int, n_y: int, n_z: int, start: int, c: wp.array(dtype=wp.float64)
) -> mat4:
    """(7) to (9)."""
    ...
