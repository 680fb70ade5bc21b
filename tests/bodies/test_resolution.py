"""What bodies are integrated with by default, and what `build` says of those that cannot be."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from bodies.kinematics_makers import L

import lissom as ls
from lissom.bodies import resolution
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.resolution import TOLERANCE, Resolution
from lissom.errors import AccuracyWarning, ModelError, PlausibilityWarning

jax = pytest.importorskip("jax")
jnp = jax.numpy
RADIUS, YOUNG = 0.01, 1e5
LAW = ls.HyperelasticSaintVenantKirchhoff(YOUNG, 0.0)
CYLINDER = ls.DomainCylinder(L, RADIUS)


def body(kinematics, domain=CYLINDER, material=LAW, **options):
    """A body with defaults for all fields that are not under test."""
    return ls.DeformableBody(kinematics, domain, material, 1e3, **options)


def built(one):
    """A model of one body, clamped."""
    robot = ls.Robot("one")
    robot.add_link("arm", one)
    return robot.build()


@pytest.mark.parametrize("order", [4, pytest.param(3, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)])
def test_frequencies_of_polynomial_curvature(order):
    """Mass and stiffness at rest are those of beam theory, integrated in closed form, to 1e-6 in each frequency.

    v″ = Σ θ_k x^k/L^k: with v and its slope in closed form, M = ρ ∫ (A v_j v_k + I v_j′v_k′), K = E I ∫ v_j″v_k″. The
    axis does not change its length to first order.
    """
    from scipy.linalg import eigh

    found = body(ls.KinematicsStrain.polynomial_curvature(L, order, planar=True)).integrals
    zero = np.zeros(order + 1)
    A, inertia = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4
    k = np.arange(order + 1)
    both = k[:, None] + k
    ends = L ** (both + 3) * (1 / np.outer(k + 1, k + 1)) / (both + 3)
    sags = L ** (both + 5) / np.outer((k + 1) * (k + 2), (k + 1) * (k + 2)) / (both + 5)
    scale = np.power(L, -both.astype(float))
    M = 1e3 * (A * sags + inertia * ends) * scale
    K = YOUNG * inertia * L ** (both + 1) / (both + 1) * scale
    square = eigh(found.derivatives(zero, zero, zero).K, found.values(zero, zero).M, eigvals_only=True)
    np.testing.assert_allclose(np.sqrt(square), np.sqrt(eigh(K, M, eigvals_only=True)), rtol=TOLERANCE)


def _bump(u, a):
    inside = 1.0 - u * u > a / 700
    t = np.where(inside, 1.0 - u * u, 1.0)
    B = np.where(inside, np.exp(a - a / t), 0.0)
    return B, B * (-2.0 * a * u / t**2)


def test_elastic_force_of_bumps():
    """Energy and its slope along one bump's coordinate are those of trapezoidal sums, which converge fast as bumps end
    flat, of the deformation gradient in cylindrical coordinates, written down by hand."""
    theta, sharpness, law = 0.15, 20.0, ls.HyperelasticCompressibleNeoHookean(4e5, 0.0)
    bumps = ls.InflationBumps(angles=(0.0,), sharpness_along=sharpness)
    one = body(ls.KinematicsStrain(L, ls.BasisMonomial(elongation=0), bumps), material=law)
    mu = 2e5

    def density(s, phi, g):
        """∫ W r dr at g = θ: a section's place grows by G = 1 + g B(s) B(φ); F = 1 but for G and its slopes."""
        along, along_s = _bump(2.0 * s - 1.0, sharpness)
        round_, round_u = _bump(2.0 * phi / np.pi, 4.0 / np.pi**2)
        G, Gx, Gphi = 1.0 + g * along * round_, g * along_s * 2.0 / L * round_, g * along * round_u * 2.0 / np.pi
        # of a row (1, 0, 0), (r Gx, G, Gphi), (0, 0, G) in the axes x, r, φ: det = G²
        square, slope = 1.0 + 2.0 * G**2 + Gphi**2 - 3.0 - 4.0 * np.log(G), Gx**2
        return 0.5 * mu * (square * RADIUS**2 / 2 + slope * RADIUS**4 / 4)

    s, phi = np.meshgrid(
        np.linspace(0.0, 1.0, 301)[1:-1], np.linspace(-np.pi / 2, np.pi / 2, 1501)[1:-1], indexing="ij"
    )

    def energy(g):
        return L / 300 * np.pi / 1500 * density(s, phi, g).sum()

    found = one.integrals.values(np.array([0.0, theta]), np.zeros(2))
    assert float(found.U) == pytest.approx(energy(theta), rel=3 * TOLERANCE)
    h = 1e-3
    slope = (8 * (energy(theta + h) - energy(theta - h)) - energy(theta + 2 * h) + energy(theta - 2 * h)) / (12 * h)
    assert found.g[1] == pytest.approx(slope, rel=3 * TOLERANCE)


def test_steps_of_varying_strain():
    """The tip of an arm bent and twisted by up to a turn is where an integrator of ordinary differential equations has
    it, with the steps that are chosen."""
    from scipy.integrate import solve_ivp

    basis = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1)
    q = np.array([5.0, 3.0, 4.0, -3.0, 6.0, 2.0])

    def slope(x, y):
        w = basis.evaluate(x / L)[:3] @ q
        R = y[:9].reshape(3, 3)
        turned = R @ np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([turned.ravel(), R[:, 0]])

    exact = solve_ivp(slope, (0.0, L), [*np.eye(3).ravel(), 0, 0, 0], rtol=1e-12, atol=1e-14, method="DOP853").y[9:, -1]
    one = body(ls.KinematicsStrain(L, basis))
    np.testing.assert_allclose(one.moved(np.array([[L, 0.0, 0.0]]), q)[0], exact, atol=TOLERANCE * L)
    assert one.motion.steps is not None and one.kinematics.steps is None


def test_what_is_given_stays():
    """Degrees and steps that a user gives are taken as they are; pieces of strain are integrated one by one."""
    affine = ls.KinematicsStrain.polynomial_curvature(L)
    given = body(ls.KinematicsStrain(L, affine.basis, steps=3), ls.DomainCylinder(L, RADIUS, 4, 20))
    assert given.motion.steps == 3
    assert len(given.integrals.masses) == 11 * 2 * 5
    assert given.resolution.chosen.left == 0.0 and not given.resolution.chosen.words
    along = body(affine, ls.DomainCylinder(L, RADIUS, degree_along=20)).resolution.chosen
    assert along.counts[0] == 11
    pieces = body(ls.KinematicsStrain(L, ls.BasisPiecewiseConstant(bending_z=3))).integrals.domain.points[:, 0]
    shares = [((pieces > k * L / 3) & (pieces < (k + 1) * L / 3)).mean() for k in range(3)]
    np.testing.assert_allclose(shares, 1 / 3, atol=1e-12)


def test_a_ceiling_is_reported():
    """A motion that no number of points resolves is a warning that says how far off its integrals are."""
    rough = ls.KinematicsRitz(lambda x: jnp.stack([0.0, jnp.abs(jnp.sin(300.0 * x[0])), 0.0])[:, None], 1)
    assert Resolution(rough, CYLINDER, LAW, 1e3).chosen.left > TOLERANCE
    with pytest.warns(AccuracyWarning, match="arm > body: its integrals are off by .* no more points"):
        body(rough).check("arm > body")


MESHES = {
    "thick": ((0.1, 0.02, 0.02), (5, 1, 2), 2),
    "slender": ((0.2, 0.01, 0.01), (10, 1, 1), 2),
    "needle": ((0.3, 0.005, 0.005), (30, 1, 1), 1),
    "strip": ((0.2, 0.03, 0.002), (10, 2, 1), 1),
}


@pytest.mark.parametrize("kind", MESHES)
def test_sound_meshes_are_taken(kind):
    """Trial moves are parts of a cell's size, so that thin and long meshes of either degree are not said to fold."""
    size, divisions, degree = MESHES[kind]
    mesh = ls.DomainTetrahedra(*ls.box_mesh(size, divisions), degree=2 * degree)
    law = ls.HyperelasticLinear(1e6, 0.3)
    body(ls.KinematicsFiniteElements(mesh, degree), mesh, law).check("arm")


def test_messages_are_short():
    """The error of a fold of many coordinates does not list them."""
    waves = ls.KinematicsRitz(
        lambda x: jnp.stack([0.0 * jnp.arange(9.0), jnp.sin(5000.0 * x[1] + jnp.arange(9.0)), 0.0 * jnp.arange(9.0)]), 9
    )
    with pytest.raises(ModelError, match=r"folds: .* θ = 9 coordinates up to") as told:
        body(waves, ls.DomainCylinder(L, RADIUS, 4)).check("arm")
    assert len(str(told.value)) < 250


def test_dependent_coordinates_are_refused():
    """Three shapes of which one is the sum of the others, and two angles that turn the same at any θ."""
    summed = ls.KinematicsRitz(
        lambda x: jnp.stack([jnp.zeros(3), jnp.stack([x[0], x[0] ** 2, x[0] + x[0] ** 2]), jnp.zeros(3)]), 3
    )
    with pytest.raises(ModelError, match="arm > kinematics: coordinates 0, 1 and 2 depend on each other: together"):
        body(summed).check("arm")

    def turned(x, q):
        angle = x[0] * (q[0] + q[1]) / L
        return jnp.stack(
            [x[0], jnp.cos(angle) * x[1] - jnp.sin(angle) * x[2], jnp.sin(angle) * x[1] + jnp.cos(angle) * x[2]]
        )

    with pytest.raises(ModelError, match="coordinates 0 and 1 depend on each other"):
        body(turned, n=2).check("arm")


def test_fewer_points_than_modes_are_refused():
    """Four points along the axis cannot hold five modes of curvature: they would have a mode without stiffness."""
    few = body(ls.KinematicsStrain.polynomial_curvature(L, 4, planar=True), ls.DomainCylinder(L, RADIUS, 6))
    with pytest.raises(ModelError, match=r"its points are too few to tell coordinates .* apart .* higher degree"):
        few.check("arm")


def test_rigid_sections_and_poisson_ratio():
    """A law of three dimensions on sections that cannot expand is a warning that says how much too stiff it is; the
    uniaxial law has the moduli of a rod, and is refused where sections change."""
    bending = ls.KinematicsStrain.constant_curvature(L, elongation=True)
    factor = (1 - 0.45) / (1.45 * 0.1)
    stiff = body(bending, material=ls.HyperelasticSaintVenantKirchhoff(YOUNG, 0.45))
    with pytest.warns(PlausibilityWarning, match=f"link 'arm' > body: .* {factor:.3g} times too stiff"):
        built(stiff)
    strains = ls.KinematicsStrain.constant_strain(L)
    right = body(strains, material=ls.HyperelasticUniaxial(YOUNG, 0.45))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = built(right)
        built(body(bending))
    zero, A, inertia = np.zeros(6), np.pi * RADIUS**2, np.pi * RADIUS**4 / 4
    shear = YOUNG / 2.9
    expected = L * np.array([2 * shear * inertia, YOUNG * inertia, YOUNG * inertia, YOUNG * A, shear * A, shear * A])
    np.testing.assert_allclose(np.diag(right.integrals.derivatives(zero, zero, zero).K), expected, rtol=1e-9)
    assert model.nv == 6
    growing = ls.KinematicsStrain(L, ls.BasisMonomial(bending_z=0), ls.InflationUniform([[1.0]]))
    with pytest.raises(ModelError, match="HyperelasticUniaxial needs sections that keep their shape"):
        body(growing, material=ls.HyperelasticUniaxial(YOUNG, 0.45)).check("arm")


def test_what_a_given_degree_leaves_is_estimated():
    """At an equilibrium of a body with too low a degree, the estimate is how far its surface is from that of the body
    which chooses its own points, within a tenth."""
    robot = ls.Robot("finger", gravity=(0.0, -9.81, 0.0))
    motion = ls.KinematicsStrain.polynomial_curvature(0.3, 2, planar=True)
    law, domain = ls.HyperelasticUniaxial(1e5, 0.4), ls.DomainCylinder(0.3, 0.02, 4)
    robot.add_link("finger", ls.DeformableBody(motion, domain, law, 1000.0))
    model = robot.build()
    rest = ls.solve_statics(model)
    own = model.description.with_({"links.finger.body.domain": ls.DomainCylinder(0.3, 0.02)}).build()
    ends = [own.links.body[0].surface(q).vertices for q in (rest.q, ls.solve_statics(own, q0=rest.q).q)]
    apart = np.linalg.norm(ends[1] - ends[0], axis=1).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # of the basis
        found = rest.accuracy
    assert found.points[0] == pytest.approx(apart, rel=0.1) and apart > 1e-4
    by_points = "leave degree and steps of link 'finger'" in found.cure
    assert by_points == (found.points[0] > found.basis[0]) or "raise the orders of the strains" in found.cure


def inflated(sharpness=20.0):
    """A body of so many points that they are reduced."""
    bumps = ls.InflationBumps(angles=(0.0, np.pi), sharpness_along=sharpness)
    motion = ls.KinematicsStrain.constant_curvature(L, planar=True, elongation=True, inflation=bumps)
    return body(motion, material=ls.HyperelasticCompressibleNeoHookean(4e5, 0.2, damping_time=0.1))


def test_many_points_are_reduced_to_few():
    """Mass matrix, elastic force, stiffness and damping of a rule that is reduced to few points are those of the whole
    rule, at θ that it has not seen, and its weights are positive."""
    one = inflated()
    chosen = one.resolution.chosen
    assert len(chosen.whole.weights) > 5000 and len(chosen.quadrature.weights) < 300 and "reduced to" in chosen.words
    assert chosen.quadrature.weights.min() > 0.0 and chosen.left < TOLERANCE
    whole = ShapeIntegrals(chosen.kinematics, chosen.whole, one.material, one.density)
    for q in one.resolution._random_shapes(9, 4):
        v, a = 0.3 * q[::-1], 0.2 * q
        for few, all_of_them in (
            (one.integrals.values(q, v), whole.values(q, v)),
            (one.integrals.derivatives(q, v, a), whole.derivatives(q, v, a)),
        ):
            for name in few._fields:
                found, expected = (np.asarray(getattr(x, name)) for x in (few, all_of_them))
                np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max(initial=1e-9))


def test_points_of_a_mesh_are_reduced_to_few(monkeypatch):
    """Inverse dynamics and its derivatives of a free body of a mesh that moves by a function are those of all points.
    A body of finite elements keeps the points of its cells."""
    motion = ls.KinematicsVolumePreserving(L, [ls.PrimitiveBending([[5.0], [0.0, 5.0]], axis="y")])
    law, models = ls.HyperelasticNeoHookean(1e5, damping_time=0.1), []
    monkeypatch.setattr(resolution, "read_cached", lambda *_: None)
    for most in (500, 10_000):
        monkeypatch.setattr(resolution, "_LARGEST_WHOLE_RULE", most)
        marks = {f"of {most}": (0.0, 0.0, 0.0)}  # equal descriptions share their choice
        mesh = ls.DomainTetrahedra(*ls.box_mesh((L, 0.04, 0.03), (8, 3, 2)), degree=4, marks=marks)
        one = ls.DeformableBody(motion, mesh, law, 1e3)
        chosen, robot = one.resolution.chosen, ls.Robot("free")
        assert len(chosen.quadrature.weights) == len(mesh.weights) > 2000 or 10 < len(chosen.quadrature.weights) < 120
        assert ("4032 points of the mesh, reduced to" in chosen.words) == (most == 500) and chosen.left < TOLERANCE
        robot.add_link("body", one, ls.JointFree())
        models.append(robot.build())
    rng = np.random.default_rng(0)
    for q in one.resolution._random_shapes(9, 4):
        x = np.concatenate([ls.integrate(models[0], models[0].neutral(), rng.normal(size=8))[:7], q])
        v, a = rng.normal(size=(2, 8))
        few, whole = ([ls.inverse_dynamics(m, x, v, a), *ls.inverse_dynamics_derivatives(m, x, v, a)] for m in models)
        for found, expected in zip(few, whole):
            np.testing.assert_allclose(found, expected, rtol=0, atol=0.1 * TOLERANCE * np.abs(expected).max())
    elements = ls.DeformableBody(ls.KinematicsFiniteElements(mesh), mesh, law, 1e3)
    longer = ls.DeformableBody(motion, replace(mesh, stretch=(1.1, 1.0, 1.0)), law, 1e3)
    assert not elements.resolution.chosen.words and not longer.resolution.chosen.words


def test_derivatives_by_design_values_of_a_body_with_few_points(monkeypatch):
    """Derivatives of an equilibrium by sizes, moduli and density of a body whose points are reduced are those with all
    points, which equal differences of rebuilt bodies. Few points do not integrate derivatives by the length."""
    robot = ls.Robot("inflated", gravity=(0.0, 9.81, 0.0))
    robot.add_link("arm", inflated(5.0))
    robot.add_frame("tip", "arm")
    robot.add_point_load("load", "arm", force=(0.01, 0.0, 0.02))
    paths = "arm.domain.length", "arm.domain.radius", "arm.material.young", "arm.density"
    few = robot.build()
    assert few.description.links["arm"].body.has_few_points
    found = ls.equilibrium_derivatives(ls.solve_statics(few), parameters=paths).parameters
    monkeypatch.setattr(resolution, "_LARGEST_WHOLE_RULE", 100_000)
    monkeypatch.setattr(resolution, "read_cached", lambda *_: None)
    whole = robot.with_({"arm.density": 1e3 * (1.0 + 1e-12)}).build()  # equal descriptions share their choice
    assert not whole.description.links["arm"].body.has_few_points
    rest = ls.solve_statics(whole)
    for path, expected in ls.equilibrium_derivatives(rest, parameters=paths).parameters.items():
        np.testing.assert_allclose(found[path], expected, rtol=0, atol=1e-6 * np.abs(expected).max(), err_msg=path)
    h = 1e-4  # relative; the error of second order is 1e-7
    longer, shorter = (robot.with_({"arm.domain.length": (1.0 + place * h) * L}).build() for place in (1, -1))
    expected = np.subtract(*(ls.solve_statics(one, q0=rest.q).q for one in (longer, shorter))) / (2.0 * h * L)
    np.testing.assert_allclose(found[paths[0]], expected, rtol=0, atol=1e-6 * np.abs(expected).max())
