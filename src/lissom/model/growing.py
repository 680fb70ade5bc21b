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
        neutral (nq,), dof_q, scale, rest, armature (nv,): by coordinate. groups: springs of joints that turn freely:
        node, rest pose, stiffness (6, 6).
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
        self.rest = np.zeros(self.nv)
        self.armature = np.zeros(self.nv)
        self._elastic: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, bool]] = {}

    def add(self, node: Node) -> Frame:
        """Take in a node whose parent is there; its frame."""
        self.nodes.append(node)
        return node, np.eye(4)

    def body_coordinates(self, link: str) -> tuple[slice, int]:
        """The coordinates of a link's body: their range in v, and how far they stand further on in q."""
        k, joint = self.names.index(link), self.robot.links[link].joint
        v = self.v_start[k] + joint.nv
        return slice(v, v + self.sizes[link]), self.q_start[k] + joint.nq - v

    def armatures(self) -> np.ndarray:
        """Inertia of rotors by coordinate, empty where there are none."""
        return self.armature if self.armature.any() else np.zeros(0)

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

    def put_elasticity(
        self, v: int, K: np.ndarray, D: np.ndarray, *, is_linear: bool = True, has_rows: bool = True
    ) -> None:
        """Give the coordinates from v on their K and D.

        Args:
            is_linear: whether the force is K times the coordinates; that of a spring in `groups` is not.
            has_rows: whether kernels read K and D as rows, and not in the term of a body.
        """
        if len(K):
            self._elastic[v] = K, D, K if is_linear else np.zeros_like(K), has_rows

    def elasticity(self) -> Elasticity:
        """K and D by blocks, and both on their common pattern, row by row."""
        blocks = sorted(self._elastic.items())
        rows, columns = [np.zeros(0, int)], [np.zeros(0, int)]
        values: list[list[np.ndarray]] = [[np.zeros(0)] for _ in range(4)]
        for v, (K, D, K_linear, has_rows) in blocks:
            row, column = np.nonzero(has_rows & ((K_linear != 0.0) | (D != 0.0)))
            rows.append(v + row)
            columns.append(v + column)
            for found, part in zip(values, (K.ravel(), D.ravel(), K_linear[row, column], D[row, column])):
                found.append(part)
        stiffness, damping, row_stiffness, row_damping = map(np.concatenate, values)
        return Elasticity(
            block_start=np.array([v for v, _ in blocks], dtype=np.int32),
            block_size=np.array([len(block[0]) for _, block in blocks], dtype=np.int32),
            block_stiffness=stiffness,
            block_damping=damping,
            start=np.searchsorted(np.concatenate(rows), np.arange(self.nv + 1)).astype(np.int32),
            column=np.concatenate(columns).astype(np.int32),
            row_stiffness=row_stiffness,
            row_damping=row_damping,
        )

    def pose_springs(self) -> PoseSprings:
        """The springs of joints that turn freely."""
        return PoseSprings(
            node=np.array([group[0].index for group in self.groups], dtype=np.int32),
            rest=np.array([group[1] for group in self.groups]).reshape(-1, 4, 4),
            stiffness=np.array([group[2] for group in self.groups]).reshape(-1, 6, 6),
        )
