"""Finite elements as links of robots: rigid motions against a rigid body, weight against their own sparse matrices."""

import numpy as np
import pytest

import lissom as ls
from lissom.bodies.body import DeformableBody
from lissom.bodies.finite_elements import KinematicsFiniteElements, KinematicsReduced
from lissom.bodies.materials import HyperelasticLinear, HyperelasticSaintVenantKirchhoff
from lissom.bodies.meshes import DomainTetrahedra, box_mesh

pytest.importorskip("jax")
DENSITY, GRAVITY = 800.0, np.array([1.0, -2.0, -9.0])
SIZE = (0.3, 0.1, 0.06)


def hat(w):
    """The matrix of w×."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def test_rigid_motions_are_those_of_a_rigid_body():
    """Elements reduced to affine motions, moved as a rigid body in free flight, need the wrench that one needs."""
    mesh = DomainTetrahedra(*box_mesh(SIZE, (2, 2, 1)))
    whole = KinematicsFiniteElements(mesh, 1, fixed=None)
    x = whole.elements.nodes
    affine = [np.outer(part, axis).ravel() for part in (np.ones(len(x)), *x.T) for axis in np.eye(3)]
    kinematics = KinematicsReduced(whole, np.stack(affine, axis=-1))
    law = HyperelasticSaintVenantKirchhoff(1e3, 0.3, damping_time=0.1)
    soft, rigid = ls.Robot("soft", gravity=GRAVITY), ls.Robot("rigid", gravity=GRAVITY)
    soft.add_link("body", DeformableBody(kinematics, mesh, law, DENSITY), ls.JointFixed())
    mass = DENSITY * np.prod(SIZE)
    squares = np.array(SIZE) ** 2
    inertia = mass / 12 * np.diag(squares.sum() - squares)
    rigid.add_link("body", ls.RigidBody(mass, (SIZE[0] / 2, 0, 0), inertia), ls.JointFree())
    soft, rigid = soft.build(), rigid.build()
    rng = np.random.default_rng(0)
    q = ls.integrate(rigid, rigid.neutral(), rng.normal(size=6))
    v, a = rng.normal(size=(2, 6))
    g = ls.frame_pose(rigid, q, "body", 0.0)
    R, w, alpha = g[:3, :3], v[:3], a[:3]
    theta = lambda shift, turn: np.concatenate([shift, turn.T.ravel()])  # noqa: E731
    theta_v = theta(R @ v[3:], R @ hat(w))
    theta_a = theta(R @ (a[3:] + np.cross(w, v[3:])), R @ (hat(w) @ hat(w) + hat(alpha)))
    S = [theta(np.zeros(3), R @ hat(e)) for e in np.eye(3)] + [theta(R @ e, np.zeros((3, 3))) for e in np.eye(3)]
    q_soft = theta(g[:3, 3], R - np.eye(3))
    tau = ls.inverse_dynamics(soft, q_soft, theta_v, theta_a)
    expected = ls.inverse_dynamics(rigid, q, v, a)
    np.testing.assert_allclose(np.array(S) @ tau, expected, atol=1e-12 * np.abs(expected).max())
    M = np.array(S) @ ls.mass_matrix(soft, q_soft) @ np.array(S).T
    np.testing.assert_allclose(M, ls.mass_matrix(rigid, q), atol=1e-12 * mass)


def test_weight_bends_reduced_elements():
    """The equilibrium of a robot of reduced elements is that of the modes, and its tip follows the elements."""
    law = HyperelasticLinear(1e6, 0.3, damping_time=0.01)
    mesh = DomainTetrahedra(*box_mesh(SIZE, (3, 1, 1)), degree=4)
    elements = KinematicsFiniteElements(mesh, 2)
    frequencies, shapes = elements.vibration_modes(law, DENSITY, 4)
    body = DeformableBody(elements.reduced(law, DENSITY, modes=4), mesh, law, DENSITY, tip="tip")
    robot = ls.Robot("finger", gravity=GRAVITY)
    robot.add_link("finger", body, ls.JointFixed())
    robot.add_frame("end", "finger")
    model = robot.build()
    theta = ls.solve_statics(model).q
    whole = KinematicsFiniteElements(mesh, 2, fixed=None)
    weight = (whole.mass_matrix(DENSITY) @ np.tile(GRAVITY, len(whole.free))).reshape(-1, 3)
    load = shapes.T @ weight[elements.free].ravel()
    np.testing.assert_allclose(theta, load / frequencies**2, rtol=1e-7, atol=1e-9)
    tip = np.array([[SIZE[0], 0.0, 0.0]])
    place = ls.frame_pose(model, theta, "end")[:3, 3]
    np.testing.assert_allclose(place, body.moved(tip, theta)[0], atol=1e-12)
    found = np.sqrt(
        np.linalg.eigvals(np.linalg.solve(ls.mass_matrix(model, theta), ls.tangent_stiffness(model, theta)))
    )
    np.testing.assert_allclose(np.sort(found.real), frequencies, rtol=1e-7)
