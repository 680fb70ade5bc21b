"""The tree of a robot while its links are placed: nodes, coordinates, masses and elasticity."""

from __future__ import annotations

from typing import final

import numpy as np

from lissom.model.elasticity import Elasticity, PoseSprings
from lissom.model.fluid import Wet
from lissom.model.nodes import Frame, Node
from lissom.robot.robot import Robot


@final
class GrowingTree:
    """What joints and bodies add to, one link after another; nodes are objects, which have no number yet.

    Fields:
        names: of the links in the order added. nodes: parents before children.
        q_start, v_start: where a link's coordinates start, its joint's before its body's.
        neutral (nq,), dof_q, scale, rest (nv,), K, D, K_linear (nv, nv): by coordinate; K_linear is without the springs
        of joints that turn freely, which are in `groups`: node, rest pose, stiffness (6, 6). has_rows (nv,): whether
        the rows that kernels read have K and D, and not the term of a body.
        mass: of each link [kg]. wet: nodes in the fluid and what it does there; tails: nodes with a wake, added mass.
    """

    def __init__(self, robot: Robot, sizes: dict[str, int]) -> None:
        """Number the coordinates.

        Args:
            sizes: how many each link's body has of its own.
        """
        self.robot = robot
        self.names = list(robot.links)
        self.sizes = sizes
        self.nodes: list[Node] = []
        self.mass = np.zeros(len(self.names))
        self.groups: list[tuple[Node, np.ndarray, np.ndarray]] = []
        self.wet: list[tuple[Node, Wet]] = []
        self.tails: list[tuple[Node, np.ndarray]] = []
        self.q_start, self.v_start, neutral = [0], [0], []
        for name in self.names:
            joint, size = robot.links[name].joint, sizes[name]
            self.q_start.append(self.q_start[-1] + joint.nq + size)
            self.v_start.append(self.v_start[-1] + joint.nv + size)
            neutral += [joint.neutral(), np.zeros(size)]
        self.neutral = np.concatenate(neutral)
        self.nv = self.v_start[-1]
        self.dof_q = np.full(self.nv, -1, dtype=np.int32)
        self.scale = np.ones(self.nv)
        self.K, self.D = np.zeros((self.nv, self.nv)), np.zeros((self.nv, self.nv))
        self.K_linear, self.rest = np.zeros((self.nv, self.nv)), np.zeros(self.nv)
        self.has_rows = np.ones(self.nv, dtype=bool)

    def add(self, node: Node) -> Frame:
        """Take in a node whose parent is there; its frame."""
        self.nodes.append(node)
        return node, np.eye(4)

    def body_coordinates(self, link: str) -> tuple[slice, int]:
        """The coordinates of a link's body: their range in v, and how far they stand further on in q."""
        k, joint = self.names.index(link), self.robot.links[link].joint
        v = self.v_start[k] + joint.nv
        return slice(v, v + self.sizes[link]), self.q_start[k] + joint.nq - v

    def put_inertia(self, node: Node, inertia: np.ndarray) -> None:
        """Give a node its mass, which gravity pulls."""
        C = inertia[:3, 3:]
        node.inertia = inertia
        node.dry = node.heavy = np.array([C[2, 1], C[0, 2], C[1, 0], inertia[3, 3]])
        self.mass[node.link] += inertia[3, 3]

    def put_in_fluid(self, node: Node, wet: Wet) -> None:
        """Let a node drive the fluid around it, which carries a part of its weight."""
        node.inertia = node.inertia + wet.added
        node.heavy = node.heavy - wet.carried
        self.wet.append((node, wet))

    def elasticity(self) -> Elasticity:
        """K and D, and both on their common pattern, row by row."""
        rows, columns = np.nonzero(self.has_rows[:, None] & ((self.K_linear != 0.0) | (self.D != 0.0)))
        return Elasticity(
            stiffness=self.K,
            damping=self.D,
            start=np.searchsorted(rows, np.arange(self.nv + 1)).astype(np.int32),
            column=columns.astype(np.int32),
            row_stiffness=self.K_linear[rows, columns],
            row_damping=self.D[rows, columns],
        )

    def pose_springs(self) -> PoseSprings:
        """The springs of joints that turn freely."""
        return PoseSprings(
            node=np.array([group[0].index for group in self.groups], dtype=np.int32),
            rest=np.array([group[1] for group in self.groups]).reshape(-1, 4, 4),
            stiffness=np.array([group[2] for group in self.groups]).reshape(-1, 6, 6),
        )
