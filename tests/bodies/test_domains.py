"""Domains: quadratures exact to their degree, places, surfaces, and refused arguments."""

from math import factorial, pi

import numpy as np
import pytest

from lissom.bodies.cubature import compressed, tetrahedron
from lissom.bodies.domains import DomainAnnulus, DomainBox, DomainCone, DomainCylinder
from lissom.bodies.meshes import DomainTetrahedra
from lissom.errors import ModelError

L, R, R1, WY, WZ = 0.7, 0.3, 0.12, 0.4, 0.25


def powers(degree):
    """Exponents of all monomials up to a degree."""
    return [(a, b, k - a - b) for k in range(degree + 1) for a in range(k + 1) for b in range(k + 1 - a)]


def double_factorial(n):
    """n!! with (−1)!! = 1."""
    return 1 if n <= 0 else n * double_factorial(n - 2)


def circle(b, c):
    """∫ cos^b sin^c dφ over a turn, without the radius."""
    if b % 2 or c % 2:
        return 0.0
    return 2 * pi * double_factorial(b - 1) * double_factorial(c - 1) / double_factorial(b + c)


def of_cylinder(a, b, c):
    return L ** (a + 1) / (a + 1) * circle(b, c) * R ** (b + c + 2) / (b + c + 2)


def of_annulus(a, b, c):
    return L ** (a + 1) / (a + 1) * circle(b, c) * (R ** (b + c + 2) - R1 ** (b + c + 2)) / (b + c + 2)


def of_cone(a, b, c):
    k, slope = b + c + 2, np.polynomial.Polynomial([R, (R1 - R) / L])
    along = (np.polynomial.Polynomial([0.0] * a + [1.0]) * slope**k).integ()
    return along(L) * circle(b, c) / k


def of_box(a, b, c):
    def side(w, k):
        return 0.0 if k % 2 else 2 * (w / 2) ** (k + 1) / (k + 1)

    return L ** (a + 1) / (a + 1) * side(WY, b) * side(WZ, c)


def block(count=2, **options):
    """A box of 6 count³ tetrahedra."""
    steps = np.stack(np.meshgrid(*[np.arange(count + 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    vertices = steps / count * (L, WY, WZ) - (0.0, WY / 2, WZ / 2)
    number = {tuple(step): k for k, step in enumerate(steps.tolist())}
    cells = []
    for corner in steps[(steps < count).all(axis=1)]:
        for axes in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)):
            path = [corner.copy()]
            for axis in axes:
                path.append(path[-1] + np.eye(3, dtype=int)[axis])
            cell = [number[tuple(step.tolist())] for step in path]
            x = vertices[cell]
            cells.append(cell if np.linalg.det(x[1:] - x[0]) > 0 else [cell[0], cell[2], cell[1], cell[3]])
    return DomainTetrahedra(vertices, np.array(cells), **options)


MAKERS = {
    "cylinder": (lambda d: DomainCylinder(L, R, d), of_cylinder),
    "annulus": (lambda d: DomainAnnulus(L, R, R1, d), of_annulus),
    "cone": (lambda d: DomainCone(L, R, R1, d), of_cone),
    "box": (lambda d: DomainBox(L, WY, WZ, d), of_box),
    "tetrahedra": (lambda d: block(degree=d), of_box),
    "compressed": (lambda d: block(degree=d, compress=d), of_box),
}


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("kind", MAKERS)
def test_all_monomials_are_exact(kind, degree):
    """Every monomial up to the degree has its closed form; all weights are positive and sum to the volume."""
    make, exact = MAKERS[kind]
    domain = make(degree)
    domain.check("here")
    x, w = domain.points, domain.weights
    assert (w > 0).all()
    assert w.sum() == pytest.approx(domain.volume, rel=1e-13)
    for a, b, c in powers(degree):
        scale = L**a * R ** (b + c) * domain.volume
        assert w @ (x[:, 0] ** a * x[:, 1] ** b * x[:, 2] ** c) == pytest.approx(exact(a, b, c), abs=1e-12 * scale)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_degree_is_that_of_the_rule(kind):
    """A monomial of much higher degree is not integrated exactly: the tests of exactness can fail."""
    make, exact = MAKERS[kind]
    domain = make(2)
    found = domain.weights @ domain.points[:, 0] ** 10
    assert abs(found / exact(10, 0, 0) - 1) > 1e-6


def test_higher_degree_along_the_axis():
    """`degree_along` raises the degree in x alone."""
    domain = DomainCylinder(L, R, 2, degree_along=11)
    assert domain.weights @ domain.points[:, 0] ** 11 == pytest.approx(of_cylinder(11, 0, 0), rel=1e-13)
    assert len(domain.points) == 6 * len(DomainCylinder(L, R, 2, degree_along=0).points) / 2


def test_tetrahedron_rules_against_the_simplex_formula():
    """∫ of barycentric monomials over a tetrahedron is a! b! c! d! 3!/(a + b + c + d + 3)! of its volume."""
    for degree in (1, 2, 3, 5, 7):
        b, w = tetrahedron(degree)
        for p, q, r in powers(degree):
            exact = 6 * factorial(p) * factorial(q) * factorial(r) / factorial(p + q + r + 3)
            assert w @ (b[:, 1] ** p * b[:, 2] ** q * b[:, 3] ** r) == pytest.approx(exact, rel=1e-12)


def test_compressing_keeps_moments_with_few_points():
    """At most as many points as monomials remain of many, on points that were there, with moments to 1e-12."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4000, 3)), rng.uniform(0.1, 1.0, 4000)
    for degree in (1, 3, 5):
        kept, weights = compressed(x, w, degree)
        few = x[kept]
        assert len(few) <= len(powers(degree)) and (weights > 0).all()
        assert len(set(kept.tolist())) == len(kept)
        for a, b, c in powers(degree):
            terms = x[:, 0] ** a * x[:, 1] ** b * x[:, 2] ** c
            found = weights @ (few[:, 0] ** a * few[:, 1] ** b * few[:, 2] ** c)
            assert found == pytest.approx(w @ terms, abs=1e-12 * (w @ np.abs(terms)))


@pytest.mark.parametrize("kind", MAKERS)
def test_surface_is_closed_and_outward(kind):
    """Each edge belongs to two triangles, once each way, and the enclosed volume is that of the body, from below."""
    domain = MAKERS[kind][0](2)
    vertices, triangles = domain.surface()
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert sorted(map(tuple, edges.tolist())) == sorted(map(tuple, edges[:, ::-1].tolist()))
    assert len(np.unique(edges, axis=0)) == len(edges)
    volume = (
        np.einsum("ki,ki->", vertices[triangles[:, 0]], np.cross(vertices[triangles[:, 1]], vertices[triangles[:, 2]]))
        / 6
    )
    assert 0.99 * domain.volume < volume < domain.volume * (1 + 1e-12)


@pytest.mark.parametrize("kind", MAKERS)
def test_places(kind):
    """Base, tip and centre of volume are where they should be."""
    domain = MAKERS[kind][0](4)
    x, w = domain.points, domain.weights
    np.testing.assert_allclose(domain.places["base"], (0, 0, 0), atol=1e-12)
    np.testing.assert_allclose(domain.places["tip"], (L, 0, 0), atol=1e-12)
    np.testing.assert_allclose(domain.places["center"], w @ x / w.sum(), atol=1e-12)


def test_a_mesh_file_comes_back(tmp_path):
    """A mesh written by meshio is read as it was, in its unit of length."""
    meshio = pytest.importorskip("meshio")
    mesh = block(marks={"grip": (0.1, 0.0, 0.0)})
    path = tmp_path / "block.vtu"
    meshio.write_points_cells(path, 1e3 * np.asarray(mesh.vertices), [("tetra", mesh.cells)])
    back = DomainTetrahedra.load(path, scale=1e-3, degree=3)
    back.check("here")
    assert back.volume == pytest.approx(mesh.volume, rel=1e-12)
    np.testing.assert_array_equal(back.cells, mesh.cells)
    with pytest.raises(ModelError, match="cannot be read"):
        DomainTetrahedra.load(tmp_path / "none.vtu")
    np.testing.assert_array_equal(mesh.places["grip"], (0.1, 0.0, 0.0))


def test_inverted_cells_are_named():
    """A cell that is inverted, flat or numbers no vertex is refused by its number and value."""
    mesh = block()
    cells = np.array(mesh.cells)
    cells[7] = cells[7, [1, 0, 2, 3]]
    with pytest.raises(ModelError, match=r"arm > domain: cells\[7\]: is inverted or flat: .* \(got -0\.00"):
        DomainTetrahedra(mesh.vertices, cells).check("arm > domain")
    cells = np.array(mesh.cells)
    cells[5, 3] = 99
    with pytest.raises(ModelError, match=r"cells\[5\]: must number vertices from 0 to 26 \(got"):
        DomainTetrahedra(mesh.vertices, cells).check("here")


@pytest.mark.parametrize(
    "domain, text",
    [
        (DomainCylinder(-1.0, R), r"length: must be > 0 \(got -1.0\)"),
        (DomainCylinder(L, R, -2), r"degree: must be an integer >= 0 \(got -2\)"),
        (DomainAnnulus(L, R1, R), r"outer: must be > inner, 0.3 \(got 0.12\)"),
        (DomainCone(L, 0.0, R), r"base_radius: must be > 0"),
        (DomainBox(L, 0.0, 1.0), r"width_y: must be > 0"),
    ],
)
def test_wrong_numbers_are_named(domain, text):
    """What breaks a rule is refused with its place, rule and value."""
    with pytest.raises(ModelError, match="here: " + text):
        domain.check("here")
