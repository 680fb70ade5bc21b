"""How deformable bodies place themselves among the nodes."""

from __future__ import annotations

from typing import final

import numpy as np

from lissom.deformable.body import DeformableBody
from lissom.model.deforming import MOST_IN_KERNELS
from lissom.model.growing import GrowingTree
from lissom.model.nodes import Flesh, Frame, Node, Point
from lissom.model.placed_body import WORLD, PlacedBody
from lissom.robot.joints import MotionKind
from lissom.robot.poses import PoseFunction
from lissom.robot.robot import Link


@final
class PlacedDeformableBody(PlacedBody):
    """A node that owns the body's coordinates at its base; frames on the body hang from that as mapped nodes."""

    def __init__(self, body: DeformableBody) -> None:
        self.body = body
        self.base = self.behind = WORLD
        self.leaves: dict[float, Node] = {}
        self.ends: dict[bytes, Node] = {}
        self.q_start = 0

    @property
    def size(self) -> int:
        return self.body.motion.n

    def place(self, tree: GrowingTree, link: Link, base: Frame) -> None:
        integrals, n = self.body.integrals, self.size
        block, shift = tree.body_coordinates(link.name)
        tree.dof_q[block] = np.arange(block.start, block.stop) + shift
        known = integrals.linear_coefficients() if self.body.motion.is_linear else None
        if known is not None and (known.K2 is None or (known.K3 is not None and n > MOST_IN_KERNELS)):
            known = None  # kernels do not know its elasticity
        if known is not None and known.K2 is not None:
            tree.K[block, block] = tree.K_linear[block, block] = known.K2
            tree.D[block, block] = self.body.material.damping_time * known.K2
        none = np.zeros((6, n))
        self.behind, self.q_start = base, block.start + shift
        self.tree, self.link = tree, tree.names.index(link.name)
        node = Node(*base, self.link, 0.0, block.start, shift, MotionKind.BODY, none, none)
        node.flesh = Flesh(integrals, known)
        self.base = tree.add(node)
        tree.put_inertia(node, _reference_inertia(integrals.domain.points, integrals.masses))
        self.anchor(1.0)  # where the link is said to be

    def anchor(self, s: float) -> Frame:
        """On a mapped node that follows the material there."""
        node, _ = self.base
        if s == 0.0 or node is None:
            return self.base
        if s not in self.leaves:
            self.leaves[s] = self._leaf(node, s, self._pose(s))
        return self.leaves[s], np.eye(4)

    def end_of_path(self, x: np.ndarray) -> Point:
        """A material point where a tendon enters or leaves, on a node with which it moves: what the body hangs on, its
        tip, or a node of its own."""
        node, _ = self.base
        tip = self.body.tip_pose
        if node is None or self.body.stays(x, None):
            behind, G = self.behind
            return behind, G[:3, :3] @ x + G[:3, 3]
        if tip is not None and self.body.stays(x, tip):
            g, _ = tip.motion(np.zeros(self.size))
            return self.anchor(1.0)[0], g[:3, :3].T @ (x - g[:3, 3])
        if x.tobytes() not in self.ends:
            self.ends[x.tobytes()] = self._leaf(node, 1.0, self.body.frame(x))
        return self.ends[x.tobytes()], np.zeros(3)

    def _leaf(self, node: Node, s: float, pose: PoseFunction) -> Node:
        """A mapped node."""
        _, columns = pose.motion(np.zeros(self.size))
        leaf = Node(node, np.eye(4), self.link, s, node.v_start, node.q_shift, MotionKind.MAP, columns, columns)
        leaf.pose = pose
        self.tree.add(leaf)
        return leaf

    def _pose(self, s: float) -> PoseFunction:
        """The tip at s = 1, if one is given, otherwise what follows the material between base and tip."""
        if s == 1.0 and self.body.tip_pose is not None:
            return self.body.tip_pose
        ends = self.body.domain.places
        return self.body.frame((1.0 - s) * ends["base"] + s * ends["tip"])


def _reference_inertia(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """6x6 of masses at points, about the origin."""
    mass, c = masses.sum(), masses @ points
    P = np.einsum("k,ka,kb->ab", masses, points, points)
    C = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    return np.block([[np.trace(P) * np.eye(3) - P, C], [C.T, mass * np.eye(3)]])
