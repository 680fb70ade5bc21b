"""Tables of the springs between two points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.model.nodes import Point, distance, index_of
from lissom.robot.forces import is_compiled
from lissom.robot.robot import Robot

LINEAR, TABLE, COMPILED = 0, 1, 2


@final
@dataclass(frozen=True, eq=False)
class Springs:
    """Tables of the springs, those without mass of their own between two points.

    Fields:
        names. node (n, 2), position (n, 2, 3): where the ends are; node -1 is the world.
        law (n, 5): k, L₀, T₀, c, and 1 where it only pulls, of robot.springs.Spring. kind: of the law, LINEAR, TABLE or
        COMPILED. first: of a table, its first knot; of a compiled law, its number. pieces: of a table.
        knot: lengths where pieces of tables begin [m], with the last one's end; coefficient (n_knots, 4) of the powers
        of the distance from there, those at an end for the straight line beyond it. compiled: the Warp functions.
    """

    names: tuple[str, ...]
    node: np.ndarray
    position: np.ndarray
    law: np.ndarray
    kind: np.ndarray
    first: np.ndarray
    pieces: np.ndarray
    knot: np.ndarray
    coefficient: np.ndarray
    compiled: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.names)


def spring_tables(robot: Robot, ends: list[tuple[Point, Point]]) -> Springs:
    """The tables, from both ends of each spring, once nodes have their numbers."""
    springs = list(robot.springs.values())
    compiled = tuple(dict.fromkeys(spring.law for spring in springs if is_compiled(spring.law)))
    law, kind, first, pieces = [], [], [], []
    knots, coefficients = [np.zeros(0)], [np.zeros((0, 4))]
    for spring, pair in zip(springs, ends):
        rest = spring.rest
        if rest is None and spring.law is None:
            rest = distance(pair)
        law.append((spring.stiffness, rest or 0.0, spring.preload, spring.damping, float(spring.slack)))
        count = 0
        kind.append(LINEAR if spring.law is None else COMPILED if is_compiled(spring.law) else TABLE)
        first.append(compiled.index(spring.law) if kind[-1] == COMPILED else sum(map(len, knots)))
        if kind[-1] == TABLE:
            x, c = spring.table(f"spring {spring.name!r}")
            knots.append(x)
            coefficients.append(c)
            count = len(x) - 1
        pieces.append(count)
    return Springs(
        names=tuple(robot.springs),
        node=np.array([[index_of(node) for node, _ in pair] for pair in ends], dtype=np.int32).reshape(-1, 2),
        position=np.array([[x for _, x in pair] for pair in ends]).reshape(-1, 2, 3),
        law=np.array(law).reshape(-1, 5),
        kind=np.array(kind, dtype=np.int32),
        first=np.array(first, dtype=np.int32),
        pieces=np.array(pieces, dtype=np.int32),
        knot=np.concatenate(knots),
        coefficient=np.concatenate(coefficients),
        compiled=compiled,
    )
