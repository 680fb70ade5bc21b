"""Tables of the joints whose pose is any function of their coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.model.fields import Floats, Ints, Vectors6Rows
from lissom.model.nodes import Node
from lissom.robot.poses import PoseFunction, PoseSpline


@final
@dataclass(frozen=True, eq=False)
class Maps:
    """The nodes of kind MAP."""

    node: np.ndarray
    q_start: np.ndarray  # first coordinate in q
    pose: tuple[PoseFunction | PoseSpline, ...]  # what gives each pose
    column_start: Ints  # where the columns of each start
    pair_start: Ints  # and those of one derivative
    triple_start: Ints  # and of two
    piece_start: Ints  # where the pieces of its spline do, none for a function
    knot: Floats  # where each piece begins
    coefficient: Vectors6Rows  # of each power of the distance from there (pieces, 6, 6)

    def __len__(self) -> int:
        return len(self.node)

    @property
    def calls_python(self) -> bool:
        """Whether tables come from Python functions, which kernels cannot call."""
        return any(isinstance(pose, PoseFunction) for pose in self.pose)

    def functions(self) -> Iterator[tuple[int, PoseFunction]]:
        """Number and pose of each whose tables come from Python."""
        return ((m, pose) for m, pose in enumerate(self.pose) if isinstance(pose, PoseFunction))


def map_tables(nodes: list[Node]) -> Maps:
    """The tables for the nodes of a model in their order."""
    found = [(k, node) for k, node in enumerate(nodes) if node.pose is not None]
    sizes = np.array([node.Phi1.shape[1] for _, node in found], dtype=int)
    pieces = [node.pose.pieces() for _, node in found if isinstance(node.pose, PoseSpline)]
    counts = iter([len(knot) for knot, _ in pieces])
    room = [next(counts) if isinstance(node.pose, PoseSpline) else 0 for _, node in found]
    return Maps(
        node=np.array([k for k, _ in found], dtype=np.int32),
        q_start=np.array([node.v_start + node.q_shift for _, node in found], dtype=np.int32),
        pose=tuple(node.pose for _, node in found if node.pose is not None),
        column_start=starts(sizes),
        pair_start=starts(sizes**2),
        triple_start=starts(sizes**3),
        piece_start=starts(np.array(room, dtype=int)),
        knot=np.concatenate([np.zeros(0), *(knot for knot, _ in pieces)]),
        coefficient=np.concatenate([np.zeros((0, 6, 6)), *(c for _, c in pieces)]),
    )


def starts(sizes: np.ndarray) -> np.ndarray:
    """Where stretches of these sizes start, one after another, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
