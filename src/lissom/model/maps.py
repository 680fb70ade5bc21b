"""Tables of the joints whose pose is any function of their coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.bodies.material_frames import MaterialFrame
from lissom.model.fields import Floats, Ints, Vectors3, Vectors6Rows
from lissom.model.nodes import Node
from lissom.robot.poses import PoseFunction, PoseSpline


@final
@dataclass(frozen=True, eq=False)
class Maps:
    """The nodes of kind MAP."""

    node: np.ndarray
    q_start: np.ndarray  # first coordinate in q
    pose: tuple[PoseFunction | PoseSpline | MaterialFrame, ...]  # what gives each pose
    group: tuple[tuple[int, ...], ...]  # numbers of those on each deformable body that Python gives together
    column_start: Ints  # where the columns of each start
    pair_start: Ints  # and those of one derivative, none where it is linear
    triple_start: Ints  # and of two
    is_linear: Ints  # whether it is a point at origin + Σ slope_j q_j that keeps the axes of its parent
    origin: Vectors3
    slope: Vectors3  # by column
    piece_start: Ints  # where the pieces of its spline do, none for a function
    knot: Floats  # where each piece begins
    coefficient: Vectors6Rows  # of each power of the distance from there (pieces, 6, 6)

    def __len__(self) -> int:
        return len(self.node)

    @property
    def calls_python(self) -> bool:
        """Whether tables come from Python functions, which kernels cannot call."""
        return any(True for _ in self.called())

    def called(self) -> Iterator[int]:
        """Numbers of all whose tables come from Python."""
        yield from (m for m, _ in self.functions())
        for group in self.group:
            yield from group

    def functions(self) -> Iterator[tuple[int, PoseFunction]]:
        """Number and pose of each whose tables come from a Python function of its own."""
        return ((m, pose) for m, pose in enumerate(self.pose) if isinstance(pose, PoseFunction))


def map_tables(nodes: list[Node]) -> Maps:
    """The tables for the nodes of a model in their order."""
    found = [(k, node) for k, node in enumerate(nodes) if node.pose is not None]
    sizes = np.array([node.Phi1.shape[1] for _, node in found], dtype=int)
    linear = np.array([isinstance(node.pose, MaterialFrame) and node.pose.is_linear for _, node in found], dtype=bool)
    straight = [_straight(node) for _, node in found]
    pieces = [node.pose.pieces() for _, node in found if isinstance(node.pose, PoseSpline)]
    counts = iter([len(knot) for knot, _ in pieces])
    room = [next(counts) if isinstance(node.pose, PoseSpline) else 0 for _, node in found]
    return Maps(
        node=np.array([k for k, _ in found], dtype=np.int32),
        q_start=np.array([node.v_start + node.q_shift for _, node in found], dtype=np.int32),
        pose=tuple(node.pose for _, node in found if node.pose is not None),
        group=_groups([node for _, node in found]),
        column_start=starts(sizes),
        pair_start=starts(np.where(linear, 0, sizes**2)),
        triple_start=starts(np.where(linear, 0, sizes**3)),
        is_linear=linear.astype(np.int32),
        origin=np.array([origin for origin, _ in straight]).reshape(-1, 3),
        slope=np.concatenate([np.zeros((0, 3)), *(slopes for _, slopes in straight)]),
        piece_start=starts(np.array(room, dtype=int)),
        knot=np.concatenate([np.zeros(0), *(knot for knot, _ in pieces)]),
        coefficient=np.concatenate([np.zeros((0, 6, 6)), *(c for _, c in pieces)]),
    )


def _straight(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Origin and slopes of a linear point; zero for other nodes."""
    if isinstance(node.pose, MaterialFrame) and node.pose.is_linear:
        return node.pose.point, node.pose.slopes
    return np.zeros(3), np.zeros((node.Phi1.shape[1], 3))


def _groups(nodes: list[Node]) -> tuple[tuple[int, ...], ...]:
    """Numbers of the frames at material points that are not linear, those of one body and the same coordinates
    together, apart what carries something and what does not: Python is not asked for the latter by dynamics."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for m, node in enumerate(nodes):
        if isinstance(node.pose, MaterialFrame) and not node.pose.is_linear:
            groups.setdefault((id(node.pose.family), node.v_start), []).append(m)
    return tuple(map(tuple, groups.values()))


def starts(sizes: np.ndarray) -> np.ndarray:
    """Where stretches of these sizes start, one after another, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
