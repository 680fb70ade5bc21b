"""Rigid robots against Pinocchio, an independent library for rigid bodies.

Both are exact up to rounding; 1e-11 of the largest entry covers the sums over a dozen bodies.
"""

import numpy as np
import pytest
from robots import build, pinocchio_model, random_rigid_tree, random_state, seven_revolute_arm

import lissom as ls

pin = pytest.importorskip("pinocchio")

UNKNOWN = ("Custom",)  # to Pinocchio, which has no joint of a user's own pose
TREES = {f"tree {k}": lambda k=k: random_rigid_tree(k, UNKNOWN) for k in range(6)}
ROBOTS = {"7R": seven_revolute_arm, **TREES}


def close(value, expected):
    """Agreement to 1e-11 of the largest entry."""
    return np.abs(value - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_agree(name):
    """Inverse dynamics, mass matrix and tip poses are those of Pinocchio."""
    robot = ROBOTS[name]()
    model, (theirs, q_index, v_index, ends) = build(robot), pinocchio_model(robot)
    q, v, a, _ = random_state(robot, 3)
    q_pin, v_pin, a_pin = np.zeros(theirs.nq), np.zeros(theirs.nv), np.zeros(theirs.nv)
    q_pin[q_index], v_pin[v_index], a_pin[v_index] = q, v, a
    data = theirs.createData()
    tau = pin.rnea(theirs, data, q_pin, v_pin, a_pin)
    assert close(ls.inverse_dynamics(model, q, v, a), tau[v_index])
    M = pin.crba(theirs, data, q_pin)
    M = np.triu(M) + np.triu(M, 1).T
    assert close(ls.mass_matrix(model, q), M[np.ix_(v_index, v_index)])
    pin.forwardKinematics(theirs, data, q_pin)
    for link, (joint, at) in ends.items():
        assert close(ls.frame_pose(model, q, link), (data.oMi[joint] * at).homogeneous), link
