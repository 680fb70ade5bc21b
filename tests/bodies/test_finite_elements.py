"""Finite elements: fields that they hold exactly, patches, matrices and large deflections against scikit-fem."""

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

import lissom as ls
from lissom.bodies.cubature import tetrahedron
from lissom.bodies.finite_elements import KinematicsFiniteElements, KinematicsReduced
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.materials import (
    HyperelasticCompressibleNeoHookean,
    HyperelasticLinear,
    HyperelasticSaintVenantKirchhoff,
    lame,
)
from lissom.bodies.meshes import DomainTetrahedra, box_mesh, cylinder_mesh
from lissom.robot.poses import in_double

pytest.importorskip("jax")
skfem = pytest.importorskip("skfem")
YOUNG, POISSON, DENSITY = 1e5, 0.3, 1100.0
LAWS = {"linear": HyperelasticLinear(YOUNG, POISSON), "Saint Venant": HyperelasticSaintVenantKirchhoff(YOUNG, POISSON),
        "neo-Hookean": HyperelasticCompressibleNeoHookean(YOUNG, POISSON)}  # fmt: skip
DEGREES = (1, 2)


def uneven_box(size=(0.6, 0.3, 0.2), divisions=(3, 2, 2), degree=4):
    """A box mesh with its inner vertices moved, and a vertex that no cell uses in front."""
    vertices, cells = box_mesh(size, divisions)
    half = np.array([0.0, 0.5, 0.5]) * size
    inner = ((vertices > 1e-9 - half) & (vertices < size - half - 1e-9)).all(axis=1)
    vertices[inner] += np.random.default_rng(0).uniform(-0.02, 0.02, (inner.sum(), 3))
    return DomainTetrahedra(np.concatenate([[[9.0, 9.0, 9.0]], vertices]), cells + 1, degree=degree)


def coordinates(elements, field):
    """θ of the displacements (m, 3) that a function gives at points (m, 3)."""
    return field(elements.elements.nodes[elements.free]).ravel()


@pytest.mark.parametrize("mesh, volume, faces", [
    (box_mesh((0.5, 0.2, 0.3), (3, 2, 4)), 0.03, 4 * (3 * 2 + 3 * 4 + 2 * 4)),
    (cylinder_mesh(0.4, 0.1, (3, 3)), 0.4 * 9 * 0.01 * np.sin(np.pi / 9), 2 * (3 * 18 + 6 * 9)),
    (cylinder_mesh(0.4, 0.1, (1, 1)), 0.4 * 3 * 0.01 * np.sin(np.pi / 3), 2 * (6 + 6)),
])  # fmt: skip
def test_structured_meshes(mesh, volume, faces):
    """Cells fit together: their volumes add up, and the faces of one cell alone are those of the outside."""
    domain = DomainTetrahedra(*mesh)
    domain.check("mesh")
    assert domain.volume == pytest.approx(volume, rel=1e-12)
    vertices, triangles = domain.surface()
    assert len(triangles) == faces and len(vertices) == faces / 2 + 2  # a closed surface (Euler)
    a, b, c = vertices[triangles].swapaxes(0, 1)
    assert np.einsum("ki,ki->", a, np.cross(b, c)) / 6 == pytest.approx(volume, rel=1e-12)


@pytest.mark.parametrize("degree", DEGREES)
def test_shapes_hold_polynomials(degree):
    """Polynomials of the degree of the elements are exact, with their gradients, at points known and searched for."""
    elements = KinematicsFiniteElements(uneven_box(), degree, fixed=None)
    rng = np.random.default_rng(1)
    shift, A, B = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(3, 3, 3)) * (degree - 1)
    field = lambda x: shift + x @ A.T + np.einsum("abc,kb,kc->ka", B, x, x)  # noqa: E731
    slope = lambda x: A + np.einsum("abc,kc->kab", B + B.swapaxes(1, 2), x)  # noqa: E731
    q = coordinates(elements, field)
    inside = rng.uniform((0, -0.15, -0.1), (0.6, 0.15, 0.1), (60, 3))
    for points in (elements.mesh.points, inside):
        exact = points + field(points)
        np.testing.assert_allclose(points + elements.shapes(points) @ q, exact, atol=1e-13)
        np.testing.assert_allclose(np.asarray(in_double(elements.positions)(points, q)), exact, atol=1e-13)
        np.testing.assert_allclose(elements.shape_gradients(points) @ q, slope(points), atol=1e-12)
        F = np.asarray(in_double(elements.deformations)(points, q))
        np.testing.assert_allclose(F, np.eye(3) + slope(points), atol=1e-12)
    one_by_one = in_double(lambda x, q: Kinematics.positions(elements, x, q))
    np.testing.assert_allclose(np.asarray(one_by_one(inside, q)), inside + field(inside), atol=1e-13)


def test_frames_on_nodes_follow_all_cells():
    """At a node the frame is that of the mean ∂f/∂x of the cells about it, and turns with them where all turn."""
    elements = KinematicsFiniteElements(uneven_box((0.6, 0.2, 0.2)))
    tip, angle = elements.mesh.places["tip"], 0.3
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    q = coordinates(elements, lambda x: np.where(x[:, :1] > 0.3, (x - tip) @ (turn - np.eye(3)).T, 0.0))
    axes, place = (np.asarray(part)[0] for part in in_double(elements.frames)(tip[None], q))
    np.testing.assert_allclose(axes, turn, atol=1e-12)
    np.testing.assert_allclose(place, tip, atol=1e-13)
    q = np.random.default_rng(4).uniform(-0.01, 0.01, elements.n)
    corners = elements.mesh.corners
    about = np.flatnonzero((np.abs(corners - tip).max(axis=-1) < 1e-9).any(axis=1))
    F = np.eye(3) + elements.shape_gradients(tip + 1e-3 * (corners[about].mean(axis=1) - tip)) @ q
    assert len(about) > 3 and np.abs(np.ptp(F, axis=0)).max() > 0.01
    normal = np.cross(F.mean(axis=0)[:, 1], F.mean(axis=0)[:, 2])
    axes = np.asarray(in_double(elements.frames)(tip[None], q)[0])[0]
    np.testing.assert_allclose(axes[:, 0], normal / np.linalg.norm(normal), atol=1e-12)
    assert axes[:, 1] @ F.mean(axis=0)[:, 1] > 0 and np.linalg.det(axes) == pytest.approx(1.0)


def test_points_are_found_where_they_are():
    """The points of the quadrature, searched for, lie where they are known to; flat long cells do not mislead."""
    vertices, cells = box_mesh((1.0, 1.0, 1.0), (2, 3, 4))
    elements = KinematicsFiniteElements(DomainTetrahedra(vertices * (1.0, 0.02, 0.3), cells)).elements
    known = elements.locate(elements.mesh.points)
    found = elements.locate(elements.mesh.points[:-1])
    np.testing.assert_array_equal(found.cell, known.cell[:-1])
    np.testing.assert_allclose(found.barycentric, known.barycentric[:-1], atol=1e-12)
    with pytest.raises(ls.ModelError, match=r"points must lie in the mesh \(got \[3"):
        elements.locate(np.array([[0.5, 0.0, 0.0], [3.0, 0.0, 0.0]]))


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("law", LAWS)
def test_patch(law, degree):
    """In a patch that is stretched and sheared evenly no inner node feels a force, and the energy is V W(F)."""
    divisions = (2, 2, 2) if degree == 1 else (2, 1, 1)
    mesh = uneven_box(divisions=divisions)
    elements = KinematicsFiniteElements(mesh, degree, fixed=None)
    G = 0.1 * np.random.default_rng(2).normal(size=(3, 3))
    q = coordinates(elements, lambda x: x @ G.T)
    found = ShapeIntegrals(elements, mesh, LAWS[law], DENSITY).values(q, np.zeros(elements.n))
    W = float(in_double(LAWS[law].energy_density)(np.eye(3) + G))
    np.testing.assert_allclose(found.U, mesh.volume * W, rtol=1e-12)
    nodes, half = elements.elements.nodes, np.array([0.3, 0.15, 0.1])
    inner = (np.abs(nodes - (0.3, 0.0, 0.0)) < half - 1e-9).all(axis=1)
    assert inner.any()
    force = found.g.reshape(-1, 3)
    np.testing.assert_allclose(force[inner], 0.0, atol=1e-13 * np.abs(force).max())
    if law == "linear":
        K = elements.stiffness_matrix(LAWS[law])
        np.testing.assert_allclose(K @ q, found.g, atol=1e-12 * np.abs(found.g).max())
        inside, rest = np.repeat(inner, 3), ~np.repeat(inner, 3)
        solved = np.atleast_1d(spsolve(K[inside][:, inside], -K[inside][:, rest] @ q[rest]))
        np.testing.assert_allclose(solved, q[inside], atol=1e-13)


def peer(elements, quadrature=None):
    """scikit-fem's basis of the same elements and, for each of our coordinates, the number of its own."""
    used, cells = np.unique(np.asarray(elements.mesh.cells), return_inverse=True)
    mesh = skfem.MeshTet(elements.mesh.vertices[used].T.copy(), cells.reshape(-1, 4).T.copy())
    element = skfem.ElementVector(skfem.ElementTetP1() if elements.degree == 1 else skfem.ElementTetP2())
    basis = skfem.Basis(mesh, element, intorder=None if quadrature else 4, quadrature=quadrature)
    places = basis.doflocs.T  # of each component of each node
    free = elements.elements.nodes[elements.free]
    order = np.abs(places[None, :, :] - free[:, None, :]).max(axis=-1) < 1e-9
    number = np.array([np.flatnonzero(row) for row in order])
    assert number.shape == (len(free), 3)
    return basis, number.ravel()


@pytest.mark.parametrize("degree", DEGREES)
def test_matrices_against_scikit_fem(degree):
    """Mass and stiffness are those that scikit-fem assembles, to round-off, sparse and from the shape integrals."""
    from skfem.models.elasticity import linear_elasticity

    elements = KinematicsFiniteElements(uneven_box(divisions=(2, 1, 1)), degree)
    basis, number = peer(elements)
    mass = skfem.BilinearForm(lambda u, v, w: DENSITY * skfem.helpers.dot(u, v))
    law = LAWS["Saint Venant"]
    forms = mass.assemble(basis), linear_elasticity(*lame(YOUNG, POISSON)).assemble(basis)
    M, K = (part.toarray()[np.ix_(number, number)] for part in forms)
    known = ShapeIntegrals(elements, elements.mesh, LAWS["linear"], DENSITY).linear_coefficients()
    ours = (elements.mass_matrix(DENSITY), elements.stiffness_matrix(law))
    for exact, found, dense in zip((M, K), ours, (np.einsum("jkaa->jk", known.Q_jk), known.K2)):
        np.testing.assert_allclose(found.toarray(), exact, atol=1e-12 * np.abs(exact).max())
        np.testing.assert_allclose(dense, exact, atol=1e-12 * np.abs(exact).max())


def neo_hookean_peer(elements, force, steps):
    """Displacements by scikit-fem: Newton in steps of a load per volume, with stress and tangent written by hand."""
    barycentric, weights = tetrahedron(4)  # ours: no rule is exact for this energy
    basis, number = peer(elements, (barycentric[:, 1:].T.copy(), weights / 6))
    first, shear = lame(YOUNG, POISSON)

    def state(field):
        F = np.eye(3)[:, :, None, None] + field.grad
        inverse = np.moveaxis(np.linalg.inv(np.moveaxis(F, (0, 1), (-2, -1))), (-2, -1), (0, 1))
        return F, inverse, np.log(np.linalg.det(np.moveaxis(F, (0, 1), (-2, -1))))

    @skfem.LinearForm
    def residual(v, w):
        P = shear * F + (first * grown - shear) * inverse.swapaxes(0, 1)
        return np.einsum("ab...,ab...->...", P, v.grad) - w["load"] * np.einsum("a,a...->...", force, np.asarray(v))

    @skfem.BilinearForm
    def tangent(u, v, w):
        turned = np.einsum("ab...,bc...->ac...", inverse, u.grad)
        spread = np.einsum("aa...->...", turned)
        back = np.einsum("ab...,bc...->ca...", turned, inverse)  # (F⁻¹ ∇u F⁻¹)ᵀ
        dP = shear * u.grad - (first * grown - shear) * back + first * spread * inverse.swapaxes(0, 1)
        return np.einsum("ab...,ab...->...", dP, v.grad)

    u = np.zeros(basis.N)
    for step in range(1, steps + 1):
        for _ in range(12):
            F, inverse, grown = state(basis.interpolate(u))
            r = residual.assemble(basis, load=step / steps)[number]
            change = spsolve(tangent.assemble(basis).tocsc()[number][:, number], -r)
            u[number] += change
            if np.abs(change).max() < 1e-13:
                break
    return u[number]


def equilibrium(integrals, load, steps=2):
    """θ at which the material bears generalised forces (n,), by Newton's method in steps of the load."""
    n = integrals.kinematics.n
    q, none = np.zeros(n), np.zeros(n)
    for step in range(1, steps + 1):
        for _ in range(20):
            r = integrals.values(q, none).g - step / steps * load
            change = -np.linalg.solve(integrals.derivatives(q, none, none).K, r)
            q = q + change
            if np.abs(change).max() < 1e-12:
                break
    return q


@pytest.mark.parametrize("degree, divisions", [(1, (3, 1, 1)), (2, (2, 1, 1))])
def test_large_deflection_against_scikit_fem(degree, divisions):
    """A neo-Hookean block that bends far under its weight, against Newton's method by scikit-fem."""
    mesh = uneven_box(divisions=divisions)
    elements = KinematicsFiniteElements(mesh, degree)
    elements.check("elements")
    force = np.array([0.0, 2e3, -1e4])  # [N/m³]
    integrals = ShapeIntegrals(elements, mesh, LAWS["neo-Hookean"], DENSITY)
    load = integrals.linear_coefficients().c_j @ force / DENSITY
    q = equilibrium(integrals, load)
    assert np.abs(q).max() > 0.1  # of a block 0.6 long
    np.testing.assert_allclose(q, neo_hookean_peer(elements, force, 2), atol=1e-10)


def test_rigid_motions():
    """Elements that move in affine shapes alone have the integrals of a rigid body where that motion is rigid."""
    mesh = uneven_box()
    whole = KinematicsFiniteElements(mesh, 1, fixed=None)
    nodes = whole.elements.nodes
    affine = [np.einsum("a,k->ka", axis, part) for part in (np.ones(len(nodes)), *nodes.T) for axis in np.eye(3)]
    body = KinematicsReduced(whole, np.stack([field.ravel() for field in affine], axis=-1))
    body.check("rigid")
    angle, w, shift = 0.7, np.array([0.3, -0.5, 0.8]), np.array([0.1, 0.2, -0.3])
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    spin = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]) @ R
    q = np.concatenate([shift, (R - np.eye(3)).T.ravel()])
    v = np.concatenate([np.cross(w, shift), spin.T.ravel()])
    found = ShapeIntegrals(body, mesh, LAWS["neo-Hookean"], DENSITY).values(q, v)
    mass, x, X = DENSITY * 0.036, np.array([0.3, 0.0, 0.0]), np.diag([0.36 / 3, 0.09 / 12, 0.04 / 12])
    P = mass * (R @ X @ R.T + np.outer(R @ x, shift) + np.outer(shift, R @ x) + np.outer(shift, shift))
    assert found.mass == pytest.approx(mass, rel=1e-12)
    np.testing.assert_allclose(found.c, mass * (R @ x + shift), atol=1e-12 * mass)
    np.testing.assert_allclose(found.P, P, atol=1e-12 * mass)
    np.testing.assert_allclose(v @ found.M @ v, w @ (np.trace(P) * w - P @ w), rtol=1e-12)
    np.testing.assert_allclose((found.U, *found.g, *found.d), 0.0, atol=1e-12 * YOUNG * 0.036)


@pytest.mark.parametrize("change, message", [
    ({"degree": 3}, r"body: degree: must be at most 2 \(got 3\)"),
    ({"degree": 2}, r"body > mesh: degree: must be at least 4 for elements of degree 2 \(got 2\)"),
    ({"fixed": "left"}, r"body: fixed: must be 'base' or 'tip' as a word \(got 'left'\)"),
    ({"fixed": [999]}, r"body: fixed: must be whole numbers of vertices from 0 to 36 \(got \[999\]\)"),
    ({"fixed": lambda x: False}, r"body: fixed: must hold some node, or be None"),
    ({"fixed": lambda x: True}, r"body: fixed: must leave some node free"),
    ({"mesh": 5}, r"body: mesh: must be a DomainTetrahedra \(got 5\)"),
    ({"mesh": DomainTetrahedra(*box_mesh((1, 1, 1), (4, 7, 7)))},
     r"body: must have at most 600 coordinates unless it is reduced\(\) \(got 768\)"),
    ({"mesh": DomainTetrahedra(*box_mesh((1, 1, 1), (2, 1, 1)), compress=1)},
     r"body > mesh: compress: must be None: finite elements need the points of every cell \(got 1\)"),
])  # fmt: skip
def test_descriptions_that_break_rules(change, message):
    """Elements that cannot be made, or are too many, raise errors with the rule and the value."""
    with pytest.raises(ls.ModelError, match=message):
        KinematicsFiniteElements(**{"mesh": uneven_box(degree=2)} | change).check("body")


def test_fixed_nodes():
    """Nodes are fixed by the end they lie at, by a function, and by their numbers with those amid them."""
    mesh = uneven_box()
    at_tip = np.flatnonzero(np.abs(np.asarray(mesh.vertices)[:, 0] - 0.6) < 1e-9)
    kinds = "tip", lambda x: x[0] > 0.6 - 1e-9, at_tip
    free = [KinematicsFiniteElements(mesh, 2, fixed).free for fixed in kinds]
    assert all(np.array_equal(free[0], other) for other in free[1:])
    nodes = KinematicsFiniteElements(mesh, 2).elements.nodes
    assert len(nodes) - len(free[0]) == 5 * 5 and nodes[free[0], 0].max() < 0.6 - 1e-9
