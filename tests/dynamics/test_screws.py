"""Joints that turn about or slide along one axis take a short way through kernels, with the results of the long one."""

from dataclasses import replace

import numpy as np
import pytest

import lissom as ls


def robot():
    """A slider, a hinge about a slanting axis, a screw, a universal and a cylindrical joint, bodies off their axes."""
    made = ls.Robot("screws")
    end = np.eye(4)
    end[:3, 3] = 0.1, 0.2, 0.3
    joints = {
        "slider": ls.JointPrismatic((1, 2, 2)),
        "hinge": ls.JointRevolute((0.3, -0.5, 0.7)),
        "screw": ls.JointHelical((1, 1, 0), pitch=0.02),
        "universal": ls.JointUniversal(),
        "cylinder": ls.JointCylindrical((0, 1, 0)),
    }
    for k, (name, joint) in enumerate(joints.items()):
        body = ls.RigidBody(1.0 + k, (0.1, -0.05, 0.02 * k), (0.03, 0.04, 0.05))
        parent = list(joints)[k - 1] if k else None
        made.add_link(name, body, joint, parent=parent, placement=end)
    return made.build()


@pytest.fixture(scope="module")
def both():
    """The robot as it is, and with the twist of each of its joints taken for any twist."""
    model = robot()
    assert model.nodes.is_screw.sum() == 5
    return model, replace(model, nodes=replace(model.nodes, screw=np.zeros_like(model.nodes.screw)), cache={})


@pytest.mark.parametrize("size", [1e-9, 0.5, 8.0])
def test_dynamics_agree(both, size):
    """Inverse dynamics, the mass matrix, poses and derivatives at small and large angles."""
    rng = np.random.default_rng(2)
    n = both[0].nv
    q, v, a = size * rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
    found, want = (
        [
            ls.inverse_dynamics(model, q, v, a),
            ls.mass_matrix(model, q),
            ls.forward_kinematics(model, q),
            *ls.inverse_dynamics_derivatives(model, q, v, a),
        ]
        for model in both
    )
    for one, other in zip(found, want):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-13 * np.abs(other).max())


def test_what_takes_the_long_way():
    """Twists of several columns, stored poses, and rods of one coordinate, also of unit length."""
    made = ls.Robot("others")
    made.add_link("cylinder", ls.RigidBody(1.0, (0, 0, 0), (1, 1, 1)), ls.JointCylindrical())
    made.add_link("free", ls.RigidBody(1.0, (0, 0, 0), (1, 1, 1)), ls.JointFree(), parent="cylinder")
    for length in (0.3, 1.0):
        rod = ls.Rod(length, ls.SectionCircle(0.01), ls.BasisLegendre(torsion=0), ls.Material(young=1e6, density=1e3))
        made.add_link(f"rod {length}", rod, parent="free")
    assert not made.build().nodes.is_screw.any()
