"""Forces and moments that act on a robot from outside, as arrows in the world; those of moments have two heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from lissom.dynamics.contacts import contact_forces
from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model

LOAD, CONTACT, HAND, INPUT = (209, 96, 61), (47, 109, 179), (138, 95, 176), (63, 155, 108)
_LEAST = 1e-9  # of the largest force: smaller ones are not drawn


@final
class Forces:
    """Points (n, 3) [m], forces (n, 3) [N], or moments [N·m], in world axes, and colours (n, 3)."""

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
        """Size of the largest [N, N·m]."""
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
    """Forces of point loads, controlled wrenches and contacts at a state."""
    found = Forces()
    for point, wrench, color in _wrenches(model, q, u, t):
        found.add(point, wrench[1], color)
    if len(model.surroundings.pair):
        touching = contact_forces(model, q, v)
        for point, force in zip(touching.point, touching.force):
            found.add(point, force, CONTACT)
    return found


def outer_moments(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> Forces:
    """Moments of point loads and controlled wrenches."""
    found = Forces()
    for point, wrench, color in _wrenches(model, q, u, t):
        found.add(point, wrench[0], color)
    return found


def second_heads(lines: np.ndarray, head: float) -> np.ndarray:
    """Arrows (n, 2, 3) that end a head's length before others, or halfway where these are short: what gives those of
    moments their second head."""
    reach = lines[:, 1] - lines[:, 0]
    length = np.maximum(np.linalg.norm(reach, axis=1, keepdims=True), 1e-300)
    return np.stack([lines[:, 0], lines[:, 0] + reach * np.maximum(0.5, 1.0 - head / length)], axis=1)


def _wrenches(
    model: Model, q: np.ndarray, u: np.ndarray, t: float
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[int, int, int]]]:
    """Points, moment and force in world axes (2, 3), and colours of point loads and controlled wrenches."""
    g, loads, wrenches = forward_kinematics(model, q), model.loads, model.wrenches
    for wrench, node, placement, follows in zip(loads.wrench, loads.node, loads.placement, loads.is_body):
        at = g[node] @ placement
        both = np.reshape(wrench(t), (2, 3))
        yield at[:3, 3], both @ at[:3, :3].T if follows else both, LOAD
    sizes = model.channels.gain @ u if model.nu else np.zeros(len(model.channels.names))
    for channel, node, unit, position, follows in zip(
        wrenches.channel, wrenches.node, wrenches.unit, wrenches.position, wrenches.is_body
    ):
        R, both = g[node][:3, :3], sizes[channel] * np.reshape(unit, (2, 3))
        yield g[node][:3, 3] + R @ position, both @ R.T if follows else both, INPUT
