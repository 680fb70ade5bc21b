"""A rod written as a deformable body, its cross-sections as material points, is the native rod."""

from dataclasses import replace

import numpy as np
import pytest

import lissom as ls
from lissom.bodies.body import DeformableBody
from lissom.bodies.domains import DomainCylinder
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.materials import HyperelasticSaintVenantKirchhoff
from lissom.bodies.strains import KinematicsStrain

LENGTH, RADIUS, YOUNG, DENSITY = 0.4, 0.03, 2e5, 1100.0


def both(points, degree):
    """A hinged rod with constant bending and elongation: native with so many Gauss points, and by a quadrature."""
    motion = KinematicsStrain.constant_curvature(LENGTH, elongation=True)
    domain = DomainCylinder(LENGTH, RADIUS, degree=4, degree_along=degree)
    body = DeformableBody(motion, domain, HyperelasticSaintVenantKirchhoff(YOUNG, 0.0), DENSITY, tip="tip")
    material = ls.Material(young=YOUNG, poisson=0.0, density=DENSITY)
    section = ls.SectionCircle(radius=RADIUS)
    rod = ls.Rod(length=LENGTH, section=section, material=material, basis=motion.basis, gauss_points=points)
    models = []
    for part in (rod, body):
        robot = ls.Robot("flap")
        robot.add_link("flap", body=part, joint=ls.JointRevolute((0, 1, 0)))
        tool = ls.RigidBody(0.05, (0.02, 0.0, 0.01), np.diag([1e-5, 2e-5, 2e-5]))
        robot.add_link("tool", body=tool, joint=ls.JointRevolute((1, 0, 0)), parent="flap")
        models.append(robot.build())
    return models


@pytest.fixture(scope="module")
def fine():
    """Both with enough points."""
    return both(12, 24)


def state(model, seed=0):
    """A bent state in motion."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, model.nq) * (1.0, 2.0, 2.0, 0.1, 1.0), *rng.normal(size=(2, model.nv))


def test_inverse_dynamics_mass_and_derivatives_agree(fine):
    """Inertia and weight of rod and body, with all that follows."""
    rod, body = fine
    q, v, a = state(rod)
    one, other = (ls.inverse_dynamics(model, q, v, a, elastic=False) for model in (rod, body))
    assert np.allclose(one, other, rtol=0, atol=1e-8 * np.abs(one).max())
    one, other = (ls.mass_matrix(model, q) for model in (rod, body))
    assert np.allclose(one, other, rtol=0, atol=1e-8 * np.abs(one).max())
    pairs = zip(*(ls.inverse_dynamics_derivatives(model, q, v, a, elastic=False) for model in (rod, body)))
    for one, other in pairs:
        assert np.allclose(one, other, rtol=0, atol=1e-7 * np.abs(one).max())


def test_the_tip_goes_the_same_way(fine):
    """Pose and twist of the tool."""
    rod, body = fine
    q, v, _ = state(rod, 3)
    for function, arguments in ((ls.frame_pose, (q, "tool")), (ls.frame_twist, (q, v, "tool"))):
        one, other = (function(model, *arguments) for model in (rod, body))
        assert np.allclose(one, other, rtol=0, atol=1e-9)


def test_stiffness_at_rest_is_that_of_the_sections(fine):
    """Without Poisson's effect small strains cost EA, EJ; the body's law is in the Green strain, so no others."""
    rod, body = fine
    zero = np.zeros(rod.nv)
    dq = [ls.inverse_dynamics_derivatives(model, zero, zero, zero, gravity=False)[0] for model in (rod, body)]
    assert np.allclose(dq[0], dq[1], rtol=0, atol=1e-9 * np.abs(dq[0]).max())


def test_they_swing_alike(fine):
    """Small motions by the same steps; the laws of elasticity differ by the square of the strain."""
    rod, body = fine
    start = np.array([0.005, 0.0, 0.0, 0.0, 0.01])
    light = [replace(model, gravity=0.1 * np.array(model.gravity), cache={}) for model in (rod, body)]
    ends = [ls.simulate(model, 0.05, q0=start, method="generalized_alpha", dt=5e-3).q[-1] for model in light]
    assert np.allclose(ends[0], ends[1], rtol=0, atol=1e-4 * np.abs(ends[0] - start).max())


def test_integrals_converge_with_the_quadrature():
    """Two degrees more along the body gain hundreds, as Gauss's rules do for smooth motions."""
    motion, law = KinematicsStrain.constant_curvature(LENGTH, elongation=True), HyperelasticSaintVenantKirchhoff(1e5, 0)

    def mass(degree):
        domain = DomainCylinder(LENGTH, RADIUS, degree=4, degree_along=degree)
        return ShapeIntegrals(motion, domain, law, DENSITY).values(np.array([1.0, -1.5, 0.1]), np.zeros(3)).M

    exact = mass(24)
    errors = [np.abs(mass(degree) - exact).max() / np.abs(exact).max() for degree in (5, 7)]
    assert errors[0] < 1e-5 and errors[1] < 0.01 * errors[0]
