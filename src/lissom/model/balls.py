"""Balls that touch: which may meet which, and the blocks of pairs that a search for near ones passes over at once.

Balls that follow each other on a link make a cluster. A block holds the pairs of the balls of one cluster with those of
another, or with one shape; where the two are far apart, so are all of its pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lissom.model.bodies import PlacedBody
from lissom.model.nodes import Node
from lissom.robot.contacts import Contact
from lissom.robot.robot import Robot

_NEIGHBOURS = 1.2  # balls of a link, or of a link and its parent, closer than this times their radii never touch
_TOGETHER = 16  # balls of a cluster


class Ball(NamedTuple):
    """One ball: name of its link, place on it and number of all there, node, position in it, radius [m]."""

    link: str
    s: Any
    number: int
    node: Node | None
    position: np.ndarray
    radius: float


def clusters(balls: Sequence[Ball]) -> np.ndarray:
    """The cluster of each ball; those of a link follow each other, numbered from 0."""
    return np.cumsum([ball.number % _TOGETHER == 0 for ball in balls], dtype=np.int32) - 1


def in_blocks(pairs: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of ball, obstacle and law (n, 3), those of a block together, and the blocks.

    Args:
        ours: cluster of each ball. theirs: cluster of each obstacle, which is a ball, or −1 less its number for shapes.

    Returns:
        pairs (n, 3) and blocks (m, 4): cluster, other cluster or −1 for a shape, first pair and where it ends.
    """
    a, b = ours[pairs[:, 0]], theirs[pairs[:, 1]]
    order = np.lexsort((b, a, pairs[:, 2]))
    pairs, a, b = pairs[order], a[order], b[order]
    begins = np.ones(len(pairs), dtype=bool)
    begins[1:] = (np.diff(a) != 0) | (np.diff(b) != 0) | (np.diff(pairs[:, 2]) != 0)
    first = np.flatnonzero(begins)
    ends = np.append(first[1:], len(pairs))[: len(first)]
    return pairs, np.column_stack([a[first], np.maximum(b[first], -1), first, ends]).astype(np.int32)


def meetings(
    robot: Robot,
    bodies: Mapping[str, PlacedBody],
    contact: Contact,
    ours: Mapping[str, Sequence[Ball]],
    theirs: Mapping[str, Sequence[Ball]],
) -> dict[tuple[str, str], np.ndarray]:
    """Which balls of two links may meet, by the numbers on their links (n, 2); what is always close never does."""
    twice, place = set(contact.carriers()) & set(contact.touched()), {name: k for k, name in enumerate(robot.links)}
    found = {}
    for a, some in ours.items():
        for b, others in theirs.items():
            if {a, b} <= twice and place[a] > place[b]:
                continue  # the same two the other way round
            may = np.array([id(x.node) for x in some])[:, None] != np.array([id(x.node) for x in others])
            if a == b and a in twice:
                may &= np.arange(len(some))[:, None] < np.arange(len(others))
            apart = _apart(robot, bodies, a, some, b, others)
            if apart is not None:
                may &= apart > _NEIGHBOURS * (_radii(some)[:, None] + _radii(others))
            found[a, b] = np.argwhere(may)
    return found


def _apart(
    robot: Robot, bodies: Mapping[str, PlacedBody], a: str, ours: Sequence[Ball], b: str, theirs: Sequence[Ball]
) -> np.ndarray | None:
    """How far apart balls of a link, or of a link and its parent, are along these [m]; None for other links."""
    if a == b:
        return np.array([[bodies[a].between(x.s, y.s) for y in theirs] for x in ours])
    if robot.links[a].parent == b:
        to_joint, from_joint = robot.links[a].at, 0.0
        return _along(bodies[a], ours, from_joint)[:, None] + _along(bodies[b], theirs, to_joint)
    if robot.links[b].parent == a:
        return _along(bodies[a], ours, robot.links[b].at)[:, None] + _along(bodies[b], theirs, 0.0)
    return None


def _along(body: PlacedBody, balls: Sequence[Ball], at: Any) -> np.ndarray:
    return np.array([body.between(ball.s, at) for ball in balls])


def _radii(balls: Sequence[Ball]) -> np.ndarray:
    return np.array([ball.radius for ball in balls])
