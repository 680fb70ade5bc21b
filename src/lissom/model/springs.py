"""Tables of the springs between two points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.model.fields import IntRows, Vectors3Rows
from lissom.model.nodes import Point, distance, index_of
from lissom.robot.functions import is_compiled
from lissom.robot.robot import Robot


@final
@dataclass(frozen=True, eq=False)
class Springs:
    """Springs without mass of their own between two points."""

    names: tuple[str, ...]
    node: IntRows  # of both ends, -1 for the world
    position: Vectors3Rows  # in these (n, 2, 3)
    law: np.ndarray  # k, L₀, T₀, c, and 1 where it only pulls, of robot.springs.Spring (n, 5)
    other_law: tuple[Any, ...]  # in place of k, L₀ and T₀: knots and coefficients, see cubic_pieces, or a Warp function

    def __len__(self) -> int:
        return len(self.names)


def spring_tables(robot: Robot, ends: list[tuple[Point, Point]]) -> Springs:
    """The tables, from both ends of each spring, once nodes have their numbers."""
    law, other = [], []
    for spring, pair in zip(robot.springs.values(), ends):
        rest = spring.rest
        if rest is None and spring.law is None:
            rest = distance(pair)
        law.append((spring.stiffness, rest or 0.0, spring.preload, spring.damping, float(spring.slack)))
        is_table = spring.law is not None and not is_compiled(spring.law)
        other.append(spring.table(f"spring {spring.name!r}") if is_table else spring.law)
    return Springs(
        names=tuple(robot.springs),
        node=np.array([[index_of(node) for node, _ in pair] for pair in ends], dtype=np.int32).reshape(-1, 2),
        position=np.array([[x for _, x in pair] for pair in ends]).reshape(-1, 2, 3),
        law=np.array(law).reshape(-1, 5),
        other_law=tuple(other),
    )
