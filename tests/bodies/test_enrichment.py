"""Bodies with further coordinates: their motion, and their estimate of the error of a body's own coordinates."""

import warnings
from functools import cache

import numpy as np
import pytest
from bodies.kinematics_makers import KINDS, MESH, RADIUS, L

import lissom as ls
from lissom.bodies.kinematics import KinematicsFunction

jax = pytest.importorskip("jax")
jnp = jax.numpy
SIZE, MARGIN = (0.1, 0.02, 0.02), 2.0  # of a bar [m]; within which estimates are
SOFT, GREEN = ls.HyperelasticLinear(1e6, 0.3), ls.HyperelasticSaintVenantKirchhoff(3e5, 0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_own_coordinates_keep_their_motion(kind):
    """With the further coordinates zero, points of each kind of body move as before, as they do with its own
    coordinates; the further ones move and strain what these do not."""
    motion, size = KINDS[kind]
    domain, law = MESH if motion.is_of_cells else ls.DomainCylinder(L, RADIUS), ls.HyperelasticLinear(1e5, 0.3)
    found = motion.enriched(domain, law, 1e3)
    if isinstance(motion, KinematicsFunction):
        assert found is None
        return
    finer = found.domain or domain
    points = np.random.default_rng(1).uniform(-0.7 * RADIUS, 0.7 * RADIUS, (40, 3))
    points[:, 0] = np.linspace(0.02, 0.98, 40) * L
    points = finer.points[:: max(1, len(finer.points) // 40)] if motion.is_of_cells else points
    assert finer.volume == pytest.approx(domain.volume) and len(found.own) == motion.n < found.kinematics.n
    q, both = np.random.default_rng(0).uniform(-0.3, 0.3, motion.n) * size, np.zeros(found.kinematics.n)
    both[found.own] = q
    (p, J), (p_more, J_more) = motion.samples(points).positions(q), found.kinematics.samples(points).positions(both)
    atol = 2e-5 * L if getattr(motion, "chooses_steps", False) else 1e-9 * L  # steps of the integrator
    np.testing.assert_allclose(p_more, p, atol=atol)
    np.testing.assert_allclose(J_more[:, :, found.own], J, atol=1e-3 * np.abs(J).max() if atol > 1e-6 else 1e-7)
    columns = J_more.reshape(-1, found.kinematics.n)
    used = np.linalg.norm(columns, axis=0)
    assert used.min() > 0.0
    if len(columns) > 2 * found.kinematics.n:
        assert np.linalg.svd(columns / used, compute_uv=False)[-1] > 1e-8


def bar(divisions, degree, law, **reduced):
    """A bar of finite elements, or of their modes."""
    mesh = ls.DomainTetrahedra(*ls.box_mesh(SIZE, divisions), degree=2 * degree)
    elements = ls.KinematicsFiniteElements(mesh, degree)
    motion = elements.reduced(law, 1e3, **reduced) if reduced else elements
    return ls.DeformableBody(motion, mesh, law, 1e3)


def bending(x):
    """Quadratic bending to both sides, and stretch."""
    s = x[0] / SIZE[0]
    along = jnp.stack([-2.0 * x[1] * s / SIZE[0], -2.0 * x[2] * s / SIZE[0], s])
    return jnp.stack([along, jnp.stack([s**2, 0.0 * s, 0.0 * s]), jnp.stack([0.0 * s, s**2, 0.0 * s])])


@cache
def fine():
    """A bar of many modes, at rest as in `at_rest`."""
    return at_rest(bar((10, 2, 2), 2, SOFT, modes=60))


@cache
def finely_deflected():
    """The same for a bar that bends far."""
    return at_rest(bar((10, 2, 2), 2, GREEN, modes=14, derivatives=5))


CASES = {  # a coarse body, and a fine one at rest
    "linear elements": (lambda: bar((4, 1, 1), 1, SOFT), fine),
    "quadratic elements": (lambda: bar((3, 1, 1), 2, SOFT), fine),
    "modes": (lambda: bar((8, 2, 2), 2, SOFT, modes=2), fine),
    "shape functions": (
        lambda: ls.DeformableBody(ls.KinematicsRitz(bending, 3), ls.DomainBox(*SIZE), SOFT, 1e3),
        fine,
    ),
    "large deflection": (
        lambda: bar((6, 2, 2), 2, GREEN, modes=4),
        finely_deflected,
    ),
    "large deflection with derivatives": (
        lambda: bar((6, 2, 2), 2, GREEN, modes=4, derivatives=2),
        finely_deflected,
    ),
}
SLOW = ("linear elements", "quadratic elements", "modes", "shape functions", "large deflection with derivatives")


def loaded(body):
    """A model of the body, held at its base, heavy and pulled at its tip."""
    robot = ls.Robot("bar", gravity=(0.0, -9.81, 0.0))
    robot.add_link("bar", body)
    robot.add_point_load("tip", "bar", s="tip", force=(0.0, 0.02, 0.01))
    return robot.build()


def at_rest(body):
    """The body, and its equilibrium under its weight and a load at the tip."""
    return body, ls.solve_statics(loaded(body), stable=False)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in SLOW else case for case in CASES]
)
def test_estimates_are_right(case):
    """At rest under weight and a load at the tip, the estimated error is the largest distance of the surface from that
    of a fine body, within a factor of two."""
    make, exact = CASES[case]
    (coarse, rest), (best, far) = at_rest(make()), exact()
    skin = coarse.domain.surface().vertices
    error = np.linalg.norm(coarse.moved(skin, rest.q) - best.moved(skin, far.q), axis=1).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.AccuracyWarning)
        found = rest.accuracy
    assert error / MARGIN < float(found.error) < MARGIN * error, (error, found)
    assert not found.not_estimated and "link 'bar'" in found.cure
    assert found.length[0] == pytest.approx(SIZE[0])


def test_frequencies_and_motions():
    """The error of the lowest frequency of a bar of two modes, within a factor of two; a motion has an estimate too."""
    coarse, fine = loaded(bar((4, 1, 1), 2, SOFT, modes=2)), loaded(bar((10, 2, 2), 2, SOFT, modes=20))
    found, exact = ls.modes(coarse, [0.0, 0.0]), ls.modes(fine, np.zeros(20))
    error = abs(exact.frequencies[0] / found.frequencies[0] - 1.0)
    with pytest.warns(ls.AccuracyWarning, match="the lowest frequency is off by about 2 %"):
        assert error / MARGIN < found.accuracy.error[0] < MARGIN * error
    motion = ls.simulate(coarse, 0.02, dt=1e-3)
    assert 1e-6 < float(motion.accuracy.error) < 1e-2


def test_what_is_not_estimated():
    """A motion that is a function of a user is said not to be estimated, at rest and of frequencies."""
    box, law = ls.DomainBox(*SIZE), ls.HyperelasticLinear(1e6, 0.0)
    by_user = ls.DeformableBody(lambda x, q: x + q[0] * jnp.stack([0.0, x[0] ** 2, 0.0]), box, law, 1e3, n=1)
    rest = ls.solve_statics(loaded(by_user), stable=False)
    found = rest.accuracy
    assert found.not_estimated == ("bar",) and np.isnan(found.basis[0]) and found.error == found.points[0]
    assert repr(found) == "Accuracy(bar: points 0.0e+00 m, basis not estimated)" and not found.is_doubtful
    of_modes = ls.modes(rest.model, rest.q).accuracy
    assert of_modes.not_estimated == ("bar",) and "basis of bar not estimated" in repr(of_modes)


def test_a_warning_that_is_justified():
    """A bar of one linear element across locks: its equilibrium is off by a tenth of its length, and says so."""
    robot = ls.Robot("bar", gravity=(0.0, -9.81, 0.0))
    law = ls.HyperelasticLinear(2e4, 0.3)
    robot.add_link("bar", bar((4, 1, 1), 1, law))
    rest = ls.solve_statics(robot.build())
    with pytest.warns(ls.AccuracyWarning, match=r"an error of about .* smaller cells in link 'bar', or quadratic"):
        assert rest.accuracy.is_doubtful
