"""Meshes of bodies that a few numbers stretch and reshape: what moves with them, and derivatives by these numbers."""

from functools import cache

import numpy as np
import pytest

import lissom as ls

SIZE, MATERIAL = (0.1, 0.03, 0.02), ls.HyperelasticSaintVenantKirchhoff(young=4e5, poisson=0.3, damping_time=0.02)


def waist(x, depth, twist):
    """Narrow sections in the middle, by a share, and turn them along x [rad/m]."""
    share = 1.0 - depth * np.sin(np.pi * x[:, 0] / SIZE[0])
    c, s = np.cos(twist * x[:, 0]), np.sin(twist * x[:, 0])
    return np.stack([x[:, 0], share * (c * x[:, 1] - s * x[:, 2]), share * (s * x[:, 1] + c * x[:, 2])], axis=1)


def block(divisions=(4, 2, 2), degree=2, **options):
    """The mesh of a block."""
    given = {"shape": waist, "numbers": {"depth": 0.2, "twist": 3.0}, "stretch": (1.1, 1.0, 0.9)} | options
    return ls.DomainTetrahedra(*ls.box_mesh(SIZE, divisions), degree=degree, marks={"nail": (0.1, 0.01, 0.0)}, **given)


def elements():
    """A clamped block of finite elements in modes, with a ball at its tip."""
    mesh = block()
    whole = ls.KinematicsFiniteElements(mesh, 1)
    body = ls.DeformableBody(whole.reduced(MATERIAL, 1e3, modes=4), mesh, MATERIAL, 1e3, tip="tip")
    robot = ls.Robot("block")
    robot.add_link("block", body)
    robot.add_link("ball", ls.RigidBody.sphere(0.01, density=3e4), parent="block")
    return robot


def touching():
    """The block on a soft floor, where its surface touches."""
    robot, down = elements(), np.eye(4)
    down[2, 3] = -0.0095
    robot.add_contact("floor", "block", ls.ShapePlane(), placement=down, stiffness=2e5, surface=True)
    return robot


def function():
    """A block that moves by a function, native code in kernels."""
    import jax.numpy as jnp

    def bent(x, q):
        s = x[0] / 0.1
        return x + q[0] * jnp.stack([-x[2] * s, 0.0 * s, 0.05 * s**2]) + q[1] * jnp.stack([x[0], -0.3 * x[1], 0.0 * s])

    robot = ls.Robot("block")
    body = ls.DeformableBody(ls.KinematicsFunction(bent, 2), block(), MATERIAL, 1e3)
    robot.add_link("block", body)
    return robot


ROBOTS = {"elements": elements, "touching": touching, "function": function}
DIRECTIONS = {
    "block.domain.numbers.depth": np.array(0.3),
    "block.domain.numbers.twist": np.array(3.0),
    "block.domain.stretch": np.array([0.8, -0.6, 0.7]),
}
STEP = 1e-3
FREE = pytest.param("elements", marks=pytest.mark.slow)  # the robot that touches has the same body, and more


@pytest.fixture(scope="module", params=[FREE if name == "elements" else name for name in ROBOTS])
def model(request):
    """A robot."""
    return ROBOTS[request.param]().build()


@pytest.fixture(scope="module")
def start(model):
    """Equilibrium, and start of a motion from it."""
    rest, rng = ls.solve_statics(model), np.random.default_rng(2)
    return rest, 0.1 * rng.normal(size=model.nv) * model.dofs.scale


@pytest.fixture(scope="module")
def ends(model, start):
    """q of the equilibrium, and at the end of the motion, of the model whose numbers at paths have moved by x in their
    directions. Each is built once, and let go, since it takes 50 MB."""
    described, (rest, v0) = model.description.described_values(), start

    @cache
    def made(paths, x):
        moved = {path: np.asarray(described[path]) + x * DIRECTIONS[path] for path in paths}
        one = model.with_({p: tuple(new.tolist()) if new.shape else float(new) for p, new in moved.items()})
        return ls.solve_statics(one, q0=rest.q).q, ls.rollout(one, rest.q, v0, **OPTIONS).q[-1]

    return made


def differenced(ends, which, paths):
    """Slope of one of the two ends along the directions of paths together, by differences of order four."""
    values = [ends(paths, x * STEP)[which] for x in (-2, -1, 1, 2)]
    return (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * STEP)


OPTIONS = {"dt": 2e-3, "steps": 6, "tolerance": 1e-12}
ALL = tuple(DIRECTIONS)
ALONE = [pytest.param((path,), marks=pytest.mark.slow) for path in DIRECTIONS]  # in `ALL`, one difference for three


@pytest.mark.parametrize("paths", [ALL, *ALONE], ids=" ".join)
def test_equilibria(model, start, ends, paths):
    """Derivatives of the equilibrium under gravity are those of converged differences of rebuilt robots: masses,
    elastic tables, places of attached links and surfaces of contact move with the numbers."""
    rest, _ = start
    if "floor" in model.description.contacts:
        assert len(ls.contact_forces(model, rest.q).depth) > 2
    found = ls.equilibrium_derivatives(rest, parameters=list(paths)).parameters
    exact = sum(found[path].reshape(model.nv, -1) @ DIRECTIONS[path].ravel() for path in paths)
    slope = differenced(ends, 0, paths)
    assert np.abs(slope).max() > 1e-3 * np.abs(rest.q).max()
    np.testing.assert_allclose(exact, slope, rtol=0, atol=1e-7 * np.abs(slope).max())


def test_motions(model, start, ends):
    """The same for the end of a motion, by the backward pass."""
    rest, v0 = start
    motion, weights = ls.rollout(model, rest.q, v0, **OPTIONS), np.zeros((7, model.nv))
    weights[-1] = 1.0 / model.dofs.scale
    found = motion.backward(weights, parameters=list(ALL)).parameters
    exact = sum(found[path].ravel() @ DIRECTIONS[path].ravel() for path in ALL)
    slope = weights[-1] @ differenced(ends, 1, ALL)
    np.testing.assert_allclose(exact, slope, rtol=0, atol=1e-6 * np.abs(slope).max())


def test_mass_inertia_and_places_are_those_of_the_moved_vertices():
    """A mesh with numbers equals one whose vertices were moved before: volume, quadrature, places, surface, modes."""
    mesh = block()
    plain = ls.DomainTetrahedra(waist(mesh.vertices, 0.2, 3.0) * (1.1, 1.0, 0.9), mesh.cells)
    assert mesh.volume == pytest.approx(plain.volume, rel=1e-14)
    np.testing.assert_allclose(mesh.points, plain.points, rtol=0, atol=1e-16)
    np.testing.assert_array_equal(mesh.surface().triangles, plain.surface().triangles)
    np.testing.assert_allclose(mesh.surface().vertices, plain.surface().vertices, rtol=0, atol=1e-16)
    np.testing.assert_allclose(mesh.places["tip"], plain.places["tip"], rtol=0, atol=1e-16)
    nail = waist(np.array([[0.1, 0.01, 0.0]]), 0.2, 3.0)[0] * (1.1, 1.0, 0.9)
    np.testing.assert_allclose(mesh.places["nail"], nail, rtol=1e-14)
    found, wanted = (ls.KinematicsFiniteElements(one).vibration_modes(MATERIAL, 1e3, 3) for one in (mesh, plain))
    np.testing.assert_allclose(found.frequencies, wanted.frequencies, rtol=1e-9)
    fine, _ = mesh.halved()
    assert not fine.is_reshaped and fine.volume == pytest.approx(mesh.volume, rel=1e-12)


def test_few_points_keep_the_moments_of_the_stretched_mesh():
    """With `compress`, the points are the same for all factors, and polynomials over the stretched body stay exact."""
    plain = {"shape": None, "numbers": None}
    for stretch in (1.0, (1.3, 0.8, 1.1), (1.31, 0.8, 1.1)):
        few, all_points = (block(compress=x, degree=4, stretch=stretch, **plain) for x in (4, None))
        assert len(few.points) < 0.3 * len(all_points.points) and few.weights.min() > 0.0
        np.testing.assert_allclose(
            few.points, block(compress=4, degree=4, stretch=1.0, **plain).points * stretch, rtol=1e-12
        )
        for a, b, c in ((0, 0, 0), (1, 0, 0), (0, 2, 0), (2, 0, 2), (1, 1, 2), (0, 4, 0)):
            powers = [np.prod(one.points ** (a, b, c), axis=1) for one in (few, all_points)]
            size = all_points.weights @ np.abs(powers[1])
            assert few.weights @ powers[0] == pytest.approx(all_points.weights @ powers[1], abs=1e-12 * size)


def test_a_mesh_and_its_elements_change_together():
    """A path to the mesh of the body changes that of its finite elements, and the other way round."""
    robot = elements()
    for path in ("block.domain.stretch", "block.kinematics.whole.mesh.stretch"):
        body = robot.with_({path: 1.2}).links["block"].body
        assert body.domain is body.kinematics.whole.mesh and body.domain.stretch == 1.2
    body = robot.with_({"block.density": 900.0}).links["block"].body
    assert body.domain is robot.links["block"].body.domain


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stretch": (1.0, 0.0, 1.0)}, "stretch: must be three numbers > 0"),
        ({"stretch": (1.0, 2.0)}, "stretch: must be three numbers"),
        ({"numbers": {"depth": np.nan, "twist": 0.0}}, "numbers > depth"),
        ({"numbers": {"depth": 0.1}}, r"f\(x, \*\*numbers\)"),
        ({"shape": lambda x, depth, twist: x[:1]}, "in the shape of its points"),
        ({"shape": None}, "numbers: must be left out without a shape"),
        ({"numbers": {"depth": 1.5, "twist": 0.0}}, "is inverted or flat"),
        ({"compress": 4}, "compress: must be None with a shape"),
    ],
)
def test_wrong_numbers_are_refused(options, text):
    """An array that is no shape, or turns cells inside out, raises an error of one line."""
    with pytest.raises(ls.ModelError, match=text):
        block(**options).check("block > domain")
