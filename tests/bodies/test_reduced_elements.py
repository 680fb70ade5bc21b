"""Finite elements as beams: deflections and frequencies, vibration modes and modal derivatives."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse.linalg import spsolve

import lissom as ls
from lissom.bodies.finite_elements import KinematicsFiniteElements, KinematicsReduced
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.materials import HyperelasticLinear, HyperelasticNeoHookean, HyperelasticSaintVenantKirchhoff
from lissom.bodies.meshes import DomainTetrahedra, box_mesh

pytest.importorskip("jax")
YOUNG, DENSITY, G, LENGTH = 1e6, 1e3, 9.81, 1.0
LAW = HyperelasticLinear(YOUNG, 0.0)  # without lateral contraction a clamped face is what beam theory says


def beam(height, divisions, degree, fixed="base"):
    """A square beam along x."""
    mesh = DomainTetrahedra(*box_mesh((LENGTH, height, height), divisions), degree=2 * degree)
    return KinematicsFiniteElements(mesh, degree, fixed)


def under_weight(elements, law=LAW):
    """θ under the weight along z, and the work of the weight."""
    whole = KinematicsFiniteElements(elements.mesh, elements.degree, fixed=None)
    weight = (whole.mass_matrix(DENSITY) @ np.tile([0.0, 0.0, G], len(whole.free))).reshape(-1, 3)
    load = weight[elements.free].ravel()
    q = spsolve(elements.stiffness_matrix(law), load)
    return q, load @ q


def timoshenko(height, count=12):
    """The lowest frequencies of a cantilever [rad/s]: Ritz on deflection and turn of sections, with polynomials."""
    area, inertia = height**2, height**4 / 12
    x, w = np.polynomial.legendre.leggauss(2 * count)
    x, w = (x + 1) / 2, w / 2
    P = np.polynomial.legendre.Legendre
    V = np.stack([x * P.basis(k)(2 * x - 1) for k in range(count)])
    D = np.stack([P.basis(k)(2 * x - 1) + 2 * x * P.basis(k).deriv()(2 * x - 1) for k in range(count)])
    gram = lambda a, b: (w * a) @ b.T  # noqa: E731
    shear = 5 / 6 * YOUNG / 2 * area
    K = np.block([[shear * gram(D, D), -shear * gram(D, V)],
                  [-shear * gram(V, D), YOUNG * inertia * gram(D, D) + shear * gram(V, V)]])  # fmt: skip
    none = np.zeros((count, count))
    M = DENSITY * np.block([[area * gram(V, V), none], [none, inertia * gram(V, V)]])
    return np.sqrt(eigh(K, M, eigvals_only=True))


def test_slender_cantilever_is_a_beam():
    """A beam ten times as long as high: deflection under its weight and frequencies by Timoshenko's theory."""
    height = 0.1
    elements = beam(height, (20, 2, 2), 2)
    area, inertia, weight = height**2, height**4 / 12, DENSITY * height**2 * G
    tip = np.flatnonzero(np.abs(elements.elements.nodes[elements.free] - (LENGTH, 0, 0)).max(axis=1) < 1e-9)[0]
    deflection = under_weight(elements)[0].reshape(-1, 3)[tip, 2]
    bending = weight * LENGTH**4 / (8 * YOUNG * inertia)
    exact = bending + weight * LENGTH**2 / (2 * 5 / 6 * YOUNG / 2 * area)
    assert deflection == pytest.approx(exact, rel=5e-4)  # shear is 0.5 % of it: Euler and Bernoulli's alone is not it
    assert abs(deflection / bending - 1) > 4e-3
    found, beams = elements.vibration_modes(LAW, DENSITY, 4).frequencies, timoshenko(height)
    np.testing.assert_allclose(found, beams[[0, 0, 1, 1]], rtol=2e-3)
    classical = 1.8751040687**2 * np.sqrt(YOUNG * inertia / (DENSITY * area))
    np.testing.assert_allclose(found[:2], classical, rtol=8e-3)


def test_order_of_convergence():
    """The work of the weight and the lowest frequency converge with h² for linear elements, and faster for others."""
    sizes = {1: [(8, 2, 2), (16, 4, 4), (32, 8, 8)], 2: [(3, 1, 1), (6, 2, 2), (12, 4, 4)]}
    work = {degree: [under_weight(beam(0.25, size, degree))[1] for size in sizes[degree]] for degree in sizes}
    limit = work[2][2] + (work[2][2] - work[2][1]) / (2**2 - 1)  # beyond the finest
    errors = {degree: (limit - np.array(found)) / limit for degree, found in work.items()}
    assert (errors[1] > 0).all() and (errors[2] > 0).all()  # stiffer than the limit, as Ritz says
    order = {degree: np.log2(found[:-1] / found[1:]) for degree, found in errors.items()}
    assert 1.6 < order[1][1] < 2.2 and order[2][0] > 2.2
    assert errors[2][0] < errors[1][2]  # 162 coordinates against 7776
    finest = beam(0.25, sizes[2][2], 2).vibration_modes(LAW, DENSITY, 1).frequencies[0]
    above = [beam(0.25, size, 1).vibration_modes(LAW, DENSITY, 1).frequencies[0] / finest - 1 for size in sizes[1][:2]]
    assert 1.6 < np.log2(above[0] / above[1]) < 2.2
    assert 0 < beam(0.25, (3, 1, 1), 2).vibration_modes(LAW, DENSITY, 1).frequencies[0] / finest - 1 < above[1] / 5


@pytest.mark.parametrize("fixed", ["base", None])
@pytest.mark.parametrize("degree", [1, 2])  # all modes by dense algebra, and a few by Lanczos
def test_modes(degree, fixed):
    """Modes solve K φ = ω² M φ, have unit mass and none but them lies below; none moves a free body as a rigid one."""
    elements = beam(0.3, (4, 2, 2), degree, fixed)
    assert (elements.n > 400) == (degree == 2)
    M, K = elements.mass_matrix(DENSITY), elements.stiffness_matrix(LAW)
    frequencies, shapes = elements.vibration_modes(LAW, DENSITY, 5)
    np.testing.assert_allclose(shapes.T @ (M @ shapes), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(K @ shapes, M @ shapes * frequencies**2, atol=1e-7 * np.abs(K @ shapes).max())
    every = np.sqrt(np.maximum(eigh(K.toarray(), M.toarray(), eigvals_only=True), 0.0))
    np.testing.assert_allclose(frequencies, every[6 if fixed is None else 0 :][:5], rtol=1e-8)
    again = elements.vibration_modes(LAW, DENSITY, 5).shapes
    np.testing.assert_array_equal(shapes, again)
    if fixed is None:
        x, moved = elements.elements.nodes, shapes.reshape(-1, 3, 5)
        momentum = (M @ shapes).reshape(moved.shape)
        rigid = [np.broadcast_to(e, x.shape) for e in np.eye(3)] + [np.cross(e, x) for e in np.eye(3)]
        momenta = [np.einsum("ka,kaj->j", field, momentum) for field in rigid]
        np.testing.assert_allclose(momenta, 0.0, atol=1e-9)


def test_reduced_integrals_are_projections():
    """Integrals of the reduced body are those of the whole in its shapes; in unit masses K is diagonal, ω²."""
    elements = beam(0.3, (2, 1, 1), 2)
    law = HyperelasticSaintVenantKirchhoff(YOUNG, 0.3, damping_time=0.1)
    body = elements.reduced(law, DENSITY, modes=3, derivatives=1)
    body.check("body")
    few, whole = (ShapeIntegrals(part, elements.mesh, law, DENSITY) for part in (body, elements))
    q, v, V = 0.5 * np.array([1.0, -2.0, 1.0, 0.5]), np.array([1.0, 0.5, -1.0, 2.0]), np.asarray(body.columns)
    found, exact = few.values(q, v), whole.values(V @ q, V @ v)
    np.testing.assert_allclose(found.M, np.eye(4), atol=1e-9)
    for name in ("c", "P", "U"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-9, atol=1e-12)
    for name in ("g", "d", "c_j", "w_j", "P_j"):
        projected = np.tensordot(V.T, getattr(exact, name), axes=1)
        np.testing.assert_allclose(getattr(found, name), projected, atol=1e-10 * np.abs(projected).max())
    frequencies = elements.vibration_modes(law, DENSITY, 3).frequencies
    K2 = few.linear_coefficients().K2
    np.testing.assert_allclose(K2[:3, :3], np.diag(frequencies**2), atol=1e-7 * K2.max())


def test_modal_derivatives_are_differences_of_the_stiffness():
    """ψ_jk of the first two modes solves K ψ = −∂K/∂θ φ, with the stiffness of shapes to both sides by differences."""
    elements = beam(0.3, (2, 1, 1), 1)
    law = HyperelasticSaintVenantKirchhoff(YOUNG, 0.3)
    integrals = ShapeIntegrals(elements, elements.mesh, law, DENSITY)
    body = elements.reduced(law, DENSITY, modes=2, derivatives=2)
    shapes, M, none = np.asarray(body.columns), elements.mass_matrix(DENSITY), np.zeros(elements.n)
    assert body.n == 5
    np.testing.assert_allclose(shapes.T @ (M @ shapes), np.eye(5), atol=1e-9)
    K = elements.stiffness_matrix(law)
    for k in range(2):
        h = 1e-3 * shapes[:, k]
        ahead, behind = (integrals.derivatives(q, none, none).K for q in (h, -h))  # the stiffness is quadratic in q
        bent = -spsolve(K, (ahead - behind) @ shapes[:, :2] / 2e-3)
        within = shapes @ (shapes.T @ (M @ bent))
        np.testing.assert_allclose(within, bent, atol=1e-7 * np.abs(bent).max())
        assert np.abs(shapes[:, :2] @ (shapes[:, :2].T @ (M @ bent)) - bent).max() > 0.1 * np.abs(bent).max()


def test_modal_derivatives_let_a_beam_bend_far():
    """A tip that drops by most of the length: four modes miss most of it, with three derivatives a few percent."""
    elements = beam(0.1, (4, 1, 1), 2)
    law = HyperelasticSaintVenantKirchhoff(YOUNG, 0.3)

    def tip(kinematics, steps=3):
        """Where the middle of the end face moves under the weight."""
        integrals = ShapeIntegrals(kinematics, elements.mesh, law, DENSITY)
        load = integrals.linear_coefficients().c_j @ (0.0, 0.0, G)
        q, none = np.zeros(kinematics.n), np.zeros(kinematics.n)
        for step in range(1, steps + 1):
            for _ in range(25):
                r = integrals.values(q, none).g - step / steps * load
                change = -np.linalg.solve(integrals.derivatives(q, none, none).K, r)
                q = q + change
                if np.abs(change).max() < 1e-8 * np.abs(q).max():
                    break
            else:
                raise AssertionError("Newton's method did not converge")
        return kinematics.shapes(np.array([[LENGTH, 0.0, 0.0]]))[0] @ q

    exact = tip(elements)
    assert exact[2] > 0.5 * LENGTH
    plain, enriched = (tip(elements.reduced(law, DENSITY, modes=4, derivatives=derivatives)) for derivatives in (0, 2))
    off = [np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in (plain, enriched)]
    assert off[0] > 0.6 and off[1] < 0.05


def test_what_cannot_be_reduced():
    """A body that is not held, a linear material with derivatives, one that must keep volume, wrong columns."""
    law, at_one = HyperelasticSaintVenantKirchhoff(YOUNG, 0.3), [0, 1]
    loose, held, free = (beam(0.3, (2, 1, 1), 1, fixed) for fixed in (at_one, "base", None))
    with pytest.raises(ls.ModelError, match=r"fixed: must hold three nodes .*; rigid motions left \(got 1\)"):
        loose.reduced(law, DENSITY, modes=2)
    with pytest.raises(ls.ModelError, match=r"derivatives: must be 0 but where some nodes are fixed \(got 1\)"):
        free.reduced(law, DENSITY, modes=2, derivatives=1)
    with pytest.raises(ls.ModelError, match=r"derivatives: must be 0 but for a material that is not linear \(got 1\)"):
        held.reduced(LAW, DENSITY, modes=2, derivatives=1)
    with pytest.raises(ls.ModelError, match="material: must not need a motion that keeps volume"):
        held.reduced(HyperelasticNeoHookean(1e5), DENSITY, modes=2)
    with pytest.raises(ls.ModelError, match=r"modes: must be at most 24 \(got 25\)"):
        held.reduced(law, DENSITY, modes=25)
    with pytest.raises(ls.ModelError, match=r"here: columns: must be independent; their rank \(got 1\)"):
        KinematicsReduced(held, np.ones((24, 2))).check("here")
    with pytest.raises(ls.ModelError, match=r"here: columns: must be finite, one row for each of the 24 coordinates"):
        KinematicsReduced(held, np.ones((23, 2))).check("here")


def test_sizes_of_coefficients():
    """Beyond a size, a polynomial energy is not expanded, and a map is too large for its dense coefficients."""
    law = HyperelasticSaintVenantKirchhoff(YOUNG, 0.3)
    larger = beam(0.3, (5, 1, 1), 1)
    known = ShapeIntegrals(larger, larger.mesh, law, DENSITY).linear_coefficients()
    assert larger.n == 60 and known.K2 is None and known.K4 is None and known.Q_jk.shape == (60, 60, 3, 3)
    huge = beam(0.3, (21, 3, 3), 1)
    with pytest.raises(ls.ModelError, match=r"a linear kinematics must have at most 1000 coordinates \(got 1008\)"):
        ShapeIntegrals(huge, huge.mesh, law, DENSITY).linear_coefficients()
