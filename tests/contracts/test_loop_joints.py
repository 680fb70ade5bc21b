"""The contract of a joint that closes a loop: its motions and no others leave the loop closed."""

from functools import cache

import families
import numpy as np
import pytest

import lissom as ls
from lissom.robot.joints import Joint


def closes(joint):
    """Whether a joint may close a loop: not one that holds nothing, nor one without axes."""
    return joint.nv < 6 and not isinstance(joint, ls.JointCustom)


JOINTS = {
    "fixed": ls.JointFixed(),
    "revolute": ls.JointRevolute((1, 2, 3)),
    "prismatic": ls.JointPrismatic((1, 2, 3)),
    "helical": ls.JointHelical((0, 1, 2), 0.1),
    "cylindrical": ls.JointCylindrical((1, 0, 2)),
    "universal": ls.JointUniversal((1, 0, 0), (0, 1, 1)),
    "planar": ls.JointPlanar((1, 1, 0)),
    "spherical": ls.JointSpherical(),
} | {f"random {type(joint).__name__}": joint for joint in families.all_made(Joint) if closes(joint)}


def body(joint):
    """A free body that a loop holds to the world."""
    robot = ls.Robot("body")
    robot.add_link("body", ls.RigidBody.box(0.3, 0.2, 0.1, density=500), ls.JointFree())
    robot.add_loop("joint", "body", joint=joint)
    return robot.build()


@cache
def models(name):
    """Two models of a body: free and held by a loop with the joint of a name, and on that joint."""
    robot = ls.Robot("joint")
    robot.add_link("body", ls.RigidBody.box(0.3, 0.2, 0.1, density=500), JOINTS[name])
    return body(JOINTS[name]), robot.build()


def placed(model, seed):
    """A configuration of the free body that its joint allows, and the joint's motion subspace in body axes."""
    far = ls.integrate(model, model.neutral(), 3.0 * np.random.default_rng(seed).uniform(-1, 1, model.nv))
    return ls.frame_pose(model, far, "body"), ls.frame_jacobian(model, far, "body")


def stored(g):
    """q of a free joint at a pose."""
    free = models("fixed")[0]
    q = ls.integrate(free, free.neutral(), ls.lie.se3_log(g))
    q[4:] = g[:3, 3]
    return q


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("seed", range(4))
def test_motions_of_the_joint_keep_the_loop_closed(name, seed):
    """Far along the joint, beyond half a turn, the residual is zero, and A holds all directions but the joint's."""
    joint, (model, on_joint) = JOINTS[name], models(name)
    g, S = placed(on_joint, seed)
    q = stored(g)
    np.testing.assert_allclose(ls.frame_pose(model, q, "body"), g, rtol=0, atol=1e-14)
    assert model.n_rows == 6 - joint.nv
    assert np.abs(ls.loop_residual(model, q)).max(initial=0.0) < 1e-13
    A = ls.constraint_jacobian(model, q)
    assert np.linalg.matrix_rank(A) == 6 - joint.nv
    assert np.abs(A @ S).max(initial=0.0) < 1e-13


@pytest.mark.parametrize("name", JOINTS)
def test_other_motions_open_it(name):
    """A move across the joint's motion subspace leaves a residual of its own size."""
    joint, (model, on_joint) = JOINTS[name], models(name)
    g, S = placed(on_joint, 1)
    across = np.linalg.svd(S.T)[2][joint.nv :]
    for move in across:
        e = ls.loop_residual(model, ls.integrate(model, stored(g), 1e-3 * move))
        assert 3e-5 < np.abs(e).max() < 3e-3


@pytest.mark.parametrize("turns", [0.4, 1.3, -2.6])
def test_a_helical_loop_turns_on(turns):
    """The advance of a helical joint counts whole turns, which a pose does not show."""
    joint = ls.JointHelical((0, 0, 1), pitch=0.02)
    model, angle = body(joint), 2 * np.pi * turns
    q = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2), 0, 0, 0.02 * angle])
    assert np.abs(ls.loop_residual(model, q)).max() < 1e-14
    q[6] += 1e-3
    assert ls.loop_residual(model, q)[-1] == pytest.approx(1e-3, abs=1e-12)


def test_wrenches_hold_the_weight():
    """The wrench on a body that a fixed loop holds carries its weight, with the arm to frame B."""
    robot = ls.Robot("held")
    robot.add_link("body", ls.RigidBody(2.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1)), ls.JointFree())
    robot.add_loop("grip", "body")
    model = robot.build()
    at = ls.solve_statics(model)
    (wrench,) = ls.loop_wrenches(model, at.q, at.multipliers)
    np.testing.assert_allclose(wrench, [0, -0.3 * 2 * 9.81, 0, 0, 0, 2 * 9.81], rtol=0, atol=1e-12)
