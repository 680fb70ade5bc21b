"""Saint-Venant torsion of a solid section by finite elements, between bounds.

A bar that is twisted by 1 rad/m carries the shear stress G τ, and its torque is G J. For the warping function ω and
Prandtl's stress function φ, which vanishes on the boundary, and for approximations of them by elements,

    τ = (∂ω/∂y − z, ∂ω/∂z + y),     J <= ∫ |τ|²                                                               (1)
    τ = (∂φ/∂z, −∂φ/∂y),            J >= ∫ |τ|² = 2 ∫ φ                                                       (2)
    upper bound − lower bound = ∫ |τ of (1) − τ of (2)|²                                                      (3)

(Prager and Synge 1947). The share of each element in (3) says where to refine, corners that point inwards above all.
The section turns about the point e about which its warping does no work with bending (Trefftz 1935),

    ∫ (ω − e_z y + e_y z) y = ∫ (ω − e_z y + e_y z) z = 0,     y and z from the centroid                      (4)

and a force through e bends without twist: the shear centre.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lissom.errors import ModelError

ACCURACY = 5e-6  # half the distance of the bounds, relative
MOST_ROUNDS = 60
SHARE = 0.2  # of the largest share in (3), beyond which an element is refined
Corners = tuple[tuple[float, float], ...]


class Torsion(NamedTuple):
    """Torsion constant J [m⁴] and shear centre (y, z) [m]."""

    constant: float
    centre: np.ndarray


def torsion(corners: Corners, centroid: np.ndarray, where: str) -> Torsion:
    """Of the polygon with these corners, in order.

    Raises:
        ModelError: the packages that it needs are not installed.
    Accuracy: J to ACCURACY.
    """
    try:
        import shapely  # noqa: F401  (optional, heavy)
        import skfem  # noqa: F401  (optional, heavy)
    except ImportError as error:
        needs = "Saint-Venant torsion of a polygon needs scikit-fem and shapely (pip install 'lissom[sections]')"
        raise ModelError(f"{where}: {needs}; {error}") from error
    points = np.array(corners) - centroid
    size = float(np.abs(points).max())
    scaled = _solved(tuple(map(tuple, (points / size).tolist())))
    return Torsion(size**4 * scaled.constant, centroid + size * scaled.centre)


@lru_cache(maxsize=64)
def _solved(corners: Corners) -> Torsion:
    """Of a polygon around its centroid, of size 1."""
    import skfem

    mesh, gap, lower = _triangles(np.array(corners)), np.inf, 1.0
    for _ in range(MOST_ROUNDS):
        basis: Any = skfem.Basis(mesh, skfem.ElementTriP4(), intorder=8)
        omega, phi, lower = _potentials(basis)
        (y, z), slope, stress = basis.global_coordinates(), basis.interpolate(omega).grad, basis.interpolate(phi).grad
        share = (((slope[0] - z - stress[1]) ** 2 + (slope[1] + y + stress[0]) ** 2) * basis.dx).sum(axis=1)  # (3)
        gap = float(share.sum())
        if gap <= 2.0 * ACCURACY * lower:
            return Torsion(lower + gap / 2, _centre(basis, omega))
        mesh = mesh.refined(np.flatnonzero(share > SHARE * share.max()))
    raise ModelError(f"the torsion constant of a polygon is between bounds {gap / lower:.1e} of it apart after "
                     f"{MOST_ROUNDS} refinements; has it corners much sharper or edges much shorter than the "
                     "others?")  # fmt: skip


def _triangles(points: np.ndarray) -> Any:
    """A mesh of triangles between the corners of a polygon."""
    import shapely
    import skfem

    pieces = shapely.constrained_delaunay_triangles(shapely.Polygon(points)).geoms
    rows = np.array([shapely.get_coordinates(piece)[:3] for piece in pieces])
    index = np.linalg.norm(rows[:, :, None] - points, axis=-1).argmin(axis=-1)
    return skfem.MeshTri(points.T.copy(), index.T.copy())


def _potentials(basis: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """ω and φ in the coordinates of the elements, and the bound (2)."""
    import skfem

    @skfem.BilinearForm
    def laplacian(u: Any, v: Any, w: Any) -> Any:
        return u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1]

    @skfem.LinearForm
    def turning(v: Any, w: Any) -> Any:
        return w.x[1] * v.grad[0] - w.x[0] * v.grad[1]

    @skfem.LinearForm
    def pressure(v: Any, w: Any) -> Any:
        return 2.0 * v

    K, f, p = laplacian.assemble(basis), turning.assemble(basis), pressure.assemble(basis)
    omega: Any = skfem.solve(*skfem.condense(K, f, D=np.array([0])))  # ω but for a constant
    phi: Any = skfem.solve(*skfem.condense(K, p, D=basis.get_dofs()))
    return omega, phi, float(p @ phi)


def _centre(basis: Any, omega: np.ndarray) -> np.ndarray:
    """e of (4), shape (2,)."""
    (y, z), w, dx = basis.global_coordinates(), basis.interpolate(omega), basis.dx
    yy, zz, yz, wy, wz = (float((a * b * dx).sum()) for a, b in ((y, y), (z, z), (y, z), (w, y), (w, z)))
    return np.linalg.solve([[yz, -yy], [zz, -yz]], [-wy, -wz])
