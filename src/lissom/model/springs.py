"""Tables of the springs between two points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.model.fields import FloatRows, Floats, IntRows, Ints, Vectors3Rows
from lissom.model.nodes import Point, distance, index_of
from lissom.robot.forces import is_compiled
from lissom.robot.robot import Robot

LINEAR, TABLE, COMPILED = 0, 1, 2


@final
@dataclass(frozen=True, eq=False)
class Springs:
    """Springs without mass of their own between two points."""

    names: tuple[str, ...]
    node: IntRows  # of both ends, -1 for the world
    position: Vectors3Rows  # in these (n, 2, 3)
    law: FloatRows  # k, L₀, T₀, c, and 1 where it only pulls, of robot.springs.Spring (n, 5)
    kind: Ints  # of the law: LINEAR, TABLE or COMPILED
    first: Ints  # of a table its first knot, of a compiled law its number
    pieces: Ints  # of a table
    knot: Floats  # lengths where pieces of tables begin [m], with the last one's end
    coefficient: FloatRows  # of powers of the distance from the knot, those at an end for the straight line beyond it
    compiled: tuple[Any, ...]  # the Warp functions

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
