"""A group of a model: what inputs do inside deformable bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from lissom.bodies.pulls import BodyPulls, LengthPulls, pulls_on
from lissom.model.deformable_bodies import PlacedDeformableBody
from lissom.model.fields import Ints
from lissom.model.maps import starts
from lissom.model.nodes import index_of
from lissom.robot import checks
from lissom.robot.actuators import BodyChamber, PathBody, SurfacePressure


class PullsOfBody(NamedTuple):
    """The pulls of one body: the first of its coordinates in q, the numbers of its pulls, and what gives their work."""

    q_start: int
    rows: slice
    pulls: BodyPulls | LengthPulls


@final
@dataclass(frozen=True, eq=False)
class Pulls:
    """What channels do to the coordinates of deformable bodies, and to their frames, body by body."""

    bodies: tuple[PullsOfBody, ...]
    channel: Ints
    node: Ints  # of kind BODY
    presses: Ints  # whether it acts on the frame
    column_start: Ints  # where what belongs to each coordinate starts
    pair_start: Ints  # and to each pair

    def __len__(self) -> int:
        return len(self.channel)

    def neutral_work(self, channel: int) -> float:
        """Work of a channel in the reference shapes: minus the length of a tendon [m]."""
        total = 0.0
        for part in self.bodies:
            work, _, _ = part.pulls.values(np.zeros((1, part.pulls.motion.n)))
            total += float(work[0, self.channel[part.rows] == channel].sum())
        return total


def pull_tables(found: list[tuple[int, PlacedDeformableBody, PathBody | BodyChamber | SurfacePressure]]) -> Pulls:
    """The tables of channels and what they do to which body."""
    bodies, rows, channels, nodes, presses, sizes = [], 0, [], [], [], []
    for body in dict.fromkeys(body for _, body, _ in found):
        here = [(channel, item) for channel, on, item in found if on is body]
        pulls = pulls_on(body.body, tuple(item for _, item in here))
        _check_finite(pulls, [item for _, item in here])
        node, n = body.base[0], body.size
        bodies.append(PullsOfBody(body.q_start, slice(rows, rows + len(here)), pulls))
        channels += [channel for channel, _ in here]
        nodes += [index_of(node)] * len(here)
        presses += [pull.presses for pull in pulls.pulls]
        sizes += [n] * len(here)
        rows += len(here)
    each = np.array(sizes, dtype=int)
    return Pulls(
        bodies=tuple(bodies),
        channel=np.array(channels, dtype=np.int32),
        node=np.array(nodes, dtype=np.int32),
        presses=np.array(presses, dtype=np.int32),
        column_start=starts(each),
        pair_start=starts(each**2),
    )


def _check_finite(pulls: BodyPulls | LengthPulls, items: list[PathBody | BodyChamber | SurfacePressure]) -> None:
    """Raise ModelError where the body does not know a material point, or its map cannot be differentiated there."""
    work, B, wrench = pulls.values(np.zeros((1, pulls.motion.n)))
    for item, *parts in zip(items, work[0], B[0], wrench[0]):
        finite = all(bool(np.isfinite(part).all()) for part in parts)
        rule = "what it does to the body must be finite in the reference shape, at all its material points"
        checks.require(finite, f"link {item.link!r} > {type(item).__name__}", rule, parts[1])
