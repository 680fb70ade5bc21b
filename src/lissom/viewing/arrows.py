"""Forces that act on a robot from outside, as arrows in the world."""

from __future__ import annotations

from typing import final

import numpy as np

from lissom.dynamics.contacts import contact_forces
from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model

LOAD, CONTACT, HAND, INPUT = (209, 96, 61), (47, 109, 179), (138, 95, 176), (63, 155, 108)
_LEAST = 1e-9  # of the largest force: smaller ones are not drawn


@final
class Forces:
    """Points (n, 3) [m], forces (n, 3) [N] in world axes, and colours (n, 3)."""

    def __init__(self) -> None:
        self.points: list[np.ndarray] = []
        self.forces: list[np.ndarray] = []
        self.colors: list[tuple[int, int, int]] = []

    def add(self, point: np.ndarray, force: np.ndarray, color: tuple[int, int, int]) -> None:
        """Take in one of them."""
        self.points.append(point)
        self.forces.append(force)
        self.colors.append(color)

    @property
    def largest(self) -> float:
        """Size of the largest [N]."""
        return float(max((np.linalg.norm(force) for force in self.forces), default=0.0))

    def arrows(self, per_newton: float) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends (n, 2, 3), and colours: contacts press on their points, all else pulls at them."""
        some = [k for k, force in enumerate(self.forces) if np.linalg.norm(force) > _LEAST * self.largest]
        lines = []
        for k in some:
            reach = per_newton * self.forces[k]
            start = self.points[k] - (reach if self.colors[k] == CONTACT else 0.0)
            lines.append([start, start + reach])
        return np.array(lines).reshape(-1, 2, 3), np.array([self.colors[k] for k in some], np.uint8).reshape(-1, 3)


def outer_forces(model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float) -> Forces:
    """Forces of point loads, controlled wrenches and contacts at a state. Moments have no arrow."""
    found, g = Forces(), forward_kinematics(model, q)
    loads, wrenches = model.loads, model.wrenches
    for wrench, node, placement, follows in zip(loads.wrench, loads.node, loads.placement, loads.is_body):
        at = g[node] @ placement
        force = wrench(t)[3:]
        found.add(at[:3, 3], at[:3, :3] @ force if follows else force, LOAD)
    sizes = model.channels.gain @ u if model.nu else np.zeros(len(model.channels.names))
    for channel, node, unit, position, follows in zip(
        wrenches.channel, wrenches.node, wrenches.unit, wrenches.position, wrenches.is_body
    ):
        R, force = g[node][:3, :3], sizes[channel] * unit[3:]
        found.add(g[node][:3, 3] + R @ position, R @ force if follows else force, INPUT)
    if len(model.surroundings.pair):
        touching = contact_forces(model, q, v)
        for point, force in zip(touching.point, touching.force):
            found.add(point, force, CONTACT)
    return found
