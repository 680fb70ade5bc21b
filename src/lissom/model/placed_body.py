"""What every kind of body is asked for while a robot is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from lissom.model.growing import GrowingTree
from lissom.model.nodes import Frame, Point, RodStrain, RodTable
from lissom.robot.contacts import Contact
from lissom.robot.materials import Material
from lissom.robot.robot import Link

WORLD: Frame = (None, np.eye(4))


class PlacedBody(ABC):
    """The body of a link: `place` adds what it is made of to the tree, from then on `anchor` gives frames on it.

    What else it is asked for has an answer here that suits bodies that do not extend along s.

    Fields:
        strain: along s, of a body that paths may run along, once it is placed.
    """

    strain: RodStrain

    @abstractmethod
    def place(self, tree: GrowingTree, link: Link, base: Frame) -> None:
        """Add its nodes, mass and elasticity, from the child frame of its joint on."""

    @abstractmethod
    def anchor(self, s: Any) -> Frame:
        """Its frame at s, on a node that may have to be added."""

    def point(self, s: Any) -> Frame:
        """A frame whose origin alone is asked for: its axes may be others than those at s."""
        return self.anchor(s)

    def along(self, s: Any) -> float:
        """The abscissa of s."""
        return float(s)

    def between(self, a: Any, b: Any) -> float:
        """How far apart two places are along it [m]."""
        return abs(a - b) * self.length

    @property
    def doubt(self) -> str | None:
        """What of it is unlikely to be meant."""
        return None

    @property
    def size(self) -> int:
        """Number of coordinates of its own."""
        return 0

    @property
    def length(self) -> float:
        """How long it is along s [m]."""
        return 0.0

    @property
    def material(self) -> Material | None:
        """What its stiffness and mass come from, if a material."""
        return None

    def stretches(self, where: str) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
        """Gauss rules for integrals along it: (start, stop, points, weights on [0, 1])."""
        return []

    def stations(self) -> list[tuple[float, float]]:
        """Abscissa and weight [m] of the points where what is spread along it acts."""
        return []

    def reach(self, s: float) -> float:
        """Largest distance of its outline from the line of its frames [m], 0 where that is not known."""
        return 0.0

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[Any, Point, float]]:
        """Place, centre and radius [m] of the balls by which it touches."""
        yield from ()

    def refined(self, *, enriched: bool) -> dict[str, Any]:
        """Values of its description, by their fields, with which its errors are told: those of its points by finer
        points alone, those of its basis too where it is `enriched`, by coordinates behind its own. Empty where there is
        no finer body."""
        return {}

    def outline(self, q: np.ndarray) -> np.ndarray:
        """Points of a body that deforms by coordinates of its own, in its base frame (n, 3) [m]; others have none."""
        return np.zeros((0, 3))

    def table(self) -> RodTable | None:
        """What a model keeps of it in order to place further points, once the nodes have their numbers."""
        return None
