"""What the fluid around a robot does at a node."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from lissom.robot.bodies import RigidBody
from lissom.robot.fluid import Hydrodynamics, Immersion
from lissom.robot.robot import Robot
from lissom.robot.sections import Section


class Wet(NamedTuple):
    """What the fluid does at a node: added inertia and drag matrix, inertia of the fluid driven and displaced, on which
    gravity does not act, each (6, 6), and first moment and mass of the fluid displaced (4,)."""

    added: np.ndarray
    drag: np.ndarray
    weightless: np.ndarray
    carried: np.ndarray


@final
class Felt(NamedTuple):
    """How a link feels the fluid: by which coefficients, its density [kg/m³], and where errors are to point."""

    feels: Hydrodynamics
    density: float
    where: str

    def by_body(self, body: RigidBody) -> Wet:
        """A rigid body in it, whose volume is around its centre of mass unless the form says better."""
        return _displaced(self.feels.of_body(body, self.density, self.where), 1.0, self.density)

    def by_rod(self, section: Section, s: float, weight: float) -> Wet:
        """A length `weight` of a rod in it at s."""
        return _displaced(self.feels.of_rod(section, s, self.density, self.where), weight, self.density)

    def wake(self, section: Section) -> np.ndarray | None:
        """Added mass across the tip of a rod (3, 3), where a wake begins there."""
        if not self.feels.tail:
            return None
        added = self.feels.of_rod(section, 1.0, self.density, self.where).added
        return np.diag([0.0, added[4, 4], added[5, 5]])


def felt_by(robot: Robot, link: str) -> Felt | None:
    """How a link feels the fluid around a robot, if it does."""
    feels = None if robot.fluid is None else robot.fluid.felt_by(link)
    if robot.fluid is None or feels is None:
        return None
    return Felt(feels, robot.fluid.density, f"fluid > link {link!r}")


def _displaced(immersion: Immersion, weight: float, density: float) -> Wet:
    """What a body, or a length `weight` of a rod, feels of a fluid."""
    mass, centre = weight * density * immersion.volume, immersion.centre
    x, y, z = centre
    C = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    fluid = mass * np.block([[-C @ C, C], [-C, np.eye(3)]])
    added = weight * immersion.added
    return Wet(added, weight * immersion.drag, added + fluid, np.array([*(mass * centre), mass]))
