"""How joints place themselves among the nodes."""

from __future__ import annotations

import numpy as np

from lissom.model.growing import GrowingTree
from lissom.model.nodes import Frame, Node
from lissom.robot import checks
from lissom.robot.robot import Link


def place_joint(tree: GrowingTree, link: Link, here: Frame) -> Frame:
    """Add the nodes of a link's joint, whose frame in the parent is `here`; the frame of the child."""
    where = f"link {link.name!r} > joint"
    k = tree.names.index(link.name)
    v, q = tree.v_start[k], tree.q_start[k]
    for motion in link.joint.motions(where):
        n = motion.Phi.shape[1]
        here = tree.add(Node(*here, k, 0.0, v, q - v, motion.kind, motion.Phi, motion.Phi, pose=motion.pose))
        if not motion.kind.has_quaternion:
            tree.dof_q[v : v + n] = np.arange(q, q + n)
        v, q = v + n, q + n
    _add_spring(tree, link, tree.v_start[k], here[0], where)
    return here


def _add_spring(tree: GrowingTree, link: Link, v: int, node: Node | None, where: str) -> None:
    joint, n = link.joint, link.joint.nv
    K = checks.symmetric(joint.stiffness, n, f"{where}: stiffness")
    D = checks.symmetric(joint.damping, n, f"{where}: damping")
    tree.put_elasticity(v, K, D, is_linear=joint.nq == n)
    tree.armature[v : v + n] = joint.armatures(where)
    rest = joint.rest_configuration(where)
    if joint.nq == n:
        tree.rest[v : v + n] = rest
    elif K.any() and node is not None:
        wide = np.zeros((6, 6))
        wide[:n, :n] = K
        tree.groups.append((node, _pose_of(rest), wide))


def _pose_of(rest: np.ndarray) -> np.ndarray:
    """4x4 of a stored pose: quaternion (w, x, y, z), then position for a free joint."""
    w, x, y, z = rest[:4]
    v = rest[1:4]
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    g = np.eye(4)
    g[:3, :3] = (w * w - v @ v) * np.eye(3) + 2 * (w * W + np.outer(v, v))
    g[:3, 3] = rest[4:7] if len(rest) == 7 else 0.0
    return g
