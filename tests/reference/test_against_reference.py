"""The library against the independent slow model, on the fifty random trees.

Both follow the same discretisation, so they differ by rounding only: the reference loses about 1e-13 in its matrix
exponentials, and derivatives of tendon offsets are differences good to 1e-12. 1e-10 of the largest entry leaves room
for cancellation between heavy and light links and would still show any difference of method.
"""

from functools import lru_cache

import numpy as np
import pytest
from reference.reference_model import ReferenceModel
from robots import SEEDS, build, random_state, random_tree

import lissom as ls

TOLERANCE = 1e-10
TIME = 0.37

pytestmark = pytest.mark.parametrize("seed", SEEDS, scope="module")  # so that all quantities of one seed come together


@lru_cache(maxsize=1)
def case(seed):
    """A tree's model, its slow model and a state."""
    robot = random_tree(seed)
    return (build(robot), ReferenceModel(robot), *random_state(robot, seed))


def check(value, expected, what):
    """Agreement in shape, and in value relative to the largest entry."""
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape, what
    error = np.abs(value - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-3)
    assert error < TOLERANCE, f"{what}: {error:.1e} of {np.abs(expected).max():.3g}"


def places(reference):
    """Links at a few abscissae (rod ends, a generic one, a break of many bases), and frames."""
    names = list(reference.robot.links)
    return [(name, s) for name in names for s in (0.0, 0.5, 0.613, 1.0)] + [(f, 1.0) for f in reference.robot.frames]


def test_sizes_and_neutral(seed):
    """nq, nv, nu and the neutral configuration are those of the description."""
    model, reference, *_ = case(seed)
    assert (model.nq, model.nv, model.nu) == (reference.nq, reference.nv, reference.nu)
    assert np.array_equal(model.neutral(), reference.neutral())


def test_kinematics(seed):
    """Poses, Jacobians, their rates, twists and accelerations at links and frames agree."""
    model, reference, q, v, a, _ = case(seed)
    for name, s in places(reference):
        where = f"{name} at {s}"
        check(ls.frame_pose(model, q, name, s=s), reference.frame_pose(q, name, s), f"pose of {where}")
        check(ls.frame_jacobian(model, q, name, s=s), reference.frame_jacobian(q, name, s), f"Jacobian of {where}")
        rate = reference.frame_jacobian_derivative(q, v, name, s)
        check(ls.frame_jacobian_derivative(model, q, v, name, s=s), rate, f"Jacobian rate of {where}")
        check(ls.frame_twist(model, q, v, name, s=s), reference.frame_twist(q, v, name, s), f"twist of {where}")
        acceleration = reference.frame_acceleration(q, v, a, name, s)
        check(ls.frame_acceleration(model, q, v, a, name, s=s), acceleration, f"acceleration of {where}")


def test_inverse_dynamics(seed):
    """Inverse dynamics agrees, whole and with each of its options off."""
    model, reference, q, v, a, _ = case(seed)
    options = [{}, {"gravity": False}, {"elastic": False}, {"loads": False}]
    options.append({"gravity": False, "elastic": False, "loads": False})
    for option in options:
        expected = reference.inverse_dynamics(q, v, a, TIME, **option)
        check(ls.inverse_dynamics(model, q, v, a, t=TIME, **option), expected, f"inverse dynamics {option}")


def test_mass_and_coriolis_matrices(seed):
    """M and C agree."""
    model, reference, q, v, *_ = case(seed)
    check(ls.mass_matrix(model, q), reference.mass_matrix(q), "M")
    check(ls.coriolis_matrix(model, q, v), reference.coriolis_matrix(q, v), "C")


def test_stiffness_and_damping_matrices(seed):
    """K and D agree."""
    model, reference, *_ = case(seed)
    check(ls.stiffness_matrix(model), reference.stiffness_matrix(), "K")
    check(ls.damping_matrix(model), reference.damping_matrix(), "D")


def test_actuation(seed):
    """B and the tendons' lengths agree."""
    model, reference, q, *_ = case(seed)
    check(ls.path_lengths(model, q), reference.path_lengths(q), "lengths")
    B, expected = ls.actuation_matrix(model, q), reference.actuation_matrix(q)
    assert B.shape == expected.shape
    for k in range(reference.nu):  # one by one: a chamber's column is smaller than a tendon's by its area
        column, wanted = B[:, k], expected[:, k]
        assert np.abs(column - wanted).max() < TOLERANCE * np.abs(wanted).max(), f"input {k}"


def test_external_force(seed):
    """Weight and loads agree, together and alone."""
    model, reference, q, v, *_ = case(seed)
    for option in ({}, {"gravity": False}, {"loads": False}):
        expected = reference.external_force(q, v, TIME, **option)
        check(ls.external_force(model, q, v, t=TIME, **option), expected, f"external force {option}")


def test_energy(seed):
    """Kinetic, gravitational and elastic energy agree, and add up."""
    model, reference, q, v, *_ = case(seed)
    energy, expected = ls.energy(model, q, v), reference.energy(q, v)
    for part in ("kinetic", "gravitational", "elastic"):
        check(getattr(energy, part), getattr(expected, part), part)
    check(energy.total, energy.kinetic + energy.gravitational + energy.elastic, "total")


def test_momentum_and_center_of_mass(seed):
    """Both agree: momenta each relative to its own size."""
    model, reference, q, v, *_ = case(seed)
    ours, expected = ls.momentum(model, q, v), reference.momentum(q, v)
    check(ours[:3], expected[:3], "angular momentum")
    check(ours[3:], expected[3:], "linear momentum")
    check(ls.center_of_mass(model, q), reference.center_of_mass(q), "centre of mass")


def test_integrate(seed):
    """A step on the manifold agrees, up to the sign of quaternions."""
    model, reference, q, v, *_ = case(seed)
    ours, expected = ls.integrate(model, q, 0.3 * v), reference.integrate(q, 0.3 * v)
    for name in reference.robot.links:
        block = reference.q_joint[name]
        same = ours[block][:4] @ expected[block][:4] >= 0
        if block.stop - block.start != reference.v_joint[name].stop - reference.v_joint[name].start and not same:
            expected[block][:4] *= -1
    check(ours, expected, "q + dv")
