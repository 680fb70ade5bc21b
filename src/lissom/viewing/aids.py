"""What a viewer adds to the scene of a robot for reading it: axes and a scale bar, the force of the mouse, a measured
distance, and surfaces that are cut open by a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.model.model import Model
from lissom.viewing.canvas import nice_number
from lissom.viewing.colors import readable

WORLD = "the world"
CUTS = {"nothing": (0, 0.0), **{f"{'xyz'[k]} {'above' if sign > 0 else 'below'}": (k, sign)
                                for k in range(3) for sign in (1.0, -1.0)}}  # fmt: skip
_INK = (70, 76, 88)
_MEASURE = (176, 58, 46)


@final
@dataclass(frozen=True)
class Cut:
    """A plane at right angles to a coordinate axis, beyond which nothing is drawn.

    Fields:
        axis: of x, y, z, counted from 0. sign: 1 removes larger coordinates, -1 smaller ones. at: coordinate [m].
    """

    axis: int
    sign: float
    at: float

    def keeps(self, points: np.ndarray) -> np.ndarray:
        """Whether each of some points (n, 3) is drawn."""
        return self.sign * (points[:, self.axis] - self.at) <= 0.0

    def applied(self, vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n, 3) and triangles (k, 3) of what is left of a surface. Triangles that the plane crosses are cut
        along it."""
        d = (self.sign * (vertices[:, self.axis] - self.at))[triangles]
        lost = d > 0.0
        count = lost.sum(axis=1)
        found = [vertices[triangles[count == 0]]]
        for number in (1, 2):  # of corners beyond the plane; the odd corner comes first
            rows = count == number
            odd = np.argmax(lost[rows] if number == 1 else ~lost[rows], axis=1)
            order = (odd[:, None] + np.arange(3)) % 3
            corners = vertices[np.take_along_axis(triangles[rows], order, axis=1)]
            far = np.take_along_axis(d[rows], order, axis=1)
            a, b, c = corners.transpose(1, 0, 2)
            ab, ac = (a + (far[:, :1] / (far[:, :1] - far[:, k : k + 1])) * (corners[:, k] - a) for k in (1, 2))
            if number == 1:
                found += [np.stack([ab, b, c], axis=1), np.stack([ab, c, ac], axis=1)]
            else:
                found.append(np.stack([a, ab, ac], axis=1))
        points = np.concatenate(found).reshape(-1, 3)
        return points, np.arange(len(points)).reshape(-1, 3)


@final
@dataclass(frozen=True)
class Measure:
    """Two places between which a viewer measures.

    Fields:
        a, b: names of links or frames, or WORLD. s_a, s_b: abscissae on rods.
    """

    a: str
    b: str
    s_a: float = 1.0
    s_b: float = 1.0

    def poses(self, model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Poses (4, 4) of both places in the world."""
        return _pose(model, q, self.a, self.s_a), _pose(model, q, self.b, self.s_b)

    def values(self, model: Model, q: np.ndarray) -> tuple[float, np.ndarray, float, float]:
        """Distance [m], its components in the world (3,) [m], the angle between the x axes of the places, which are the
        tangents of rods, and the angle of the turn from one frame to the other [rad]."""
        first, second = self.poses(model, q)
        away = second[:3, 3] - first[:3, 3]
        x, y = first[:3, 0], second[:3, 0]
        between = float(np.arctan2(np.linalg.norm(np.cross(x, y)), x @ y))
        R = first[:3, :3].T @ second[:3, :3]
        sine = np.linalg.norm([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        return float(np.linalg.norm(away)), away, between, float(np.arctan2(sine, np.trace(R) - 1.0))


def _pose(model: Model, q: np.ndarray, name: str, s: float) -> np.ndarray:
    if name == WORLD:
        return np.eye(4)
    is_rod = name in model.rods
    return np.asarray(frame_pose(model, q, name, s) if is_rod else frame_pose(model, q, name)).reshape(4, 4)


def length_text(length: float) -> str:
    """A length with a unit that suits its size."""
    if length and abs(length) < 0.1:
        return f"{1e3 * length:.3g} mm"
    return f"{length:.3g} m"


def force_text(force: float) -> str:
    """A force with a unit that suits its size."""
    factor, unit = readable(abs(force), "N")
    return f"{factor * force:.3g} {unit}"


@final
class Aids:
    """Axes with a scale bar, the force of the mouse, and a measured distance, in the scene of viser.

    Args:
        size: of the robot [m]. low: its lowest coordinates (3,) [m], beside which the axes stand.
    Fields:
        corners: the outermost points of the axes and the bar, shape (6, 3) [m].
    """

    def __init__(self, scene: Any, size: float, low: np.ndarray) -> None:
        self.scene, self.length = scene, nice_number(0.3 * size)
        at = low - np.array([0.25, 0.0, 0.15]) * size
        self.axes = [scene.add_frame("/aids/axes", axes_length=0.6 * self.length, axes_radius=0.012 * self.length,
                                     origin_radius=0.02 * self.length, position=at)]  # fmt: skip
        for k, name in enumerate("xyz"):
            there = at + 0.7 * self.length * np.eye(3)[k]
            self.axes.append(_label(scene, f"/aids/{name}", name, there))
        bar = at + np.array([0.0, 0.0, -0.25 * self.length])
        end, tick = bar + self.length * np.eye(3)[0], 0.05 * self.length * np.eye(3)[2]
        lines = np.array([[bar, end], [bar - tick, bar + tick], [end - tick, end + tick]])
        self.axes.append(scene.add_line_segments("/aids/bar", lines, _INK, thickness=0.012 * self.length))
        middle = 0.5 * (bar + end) - np.array([0.0, 0.0, 0.12 * self.length])
        self.axes.append(_label(scene, "/aids/length", length_text(self.length), middle))
        self.corners = np.concatenate([at + 0.8 * self.length * np.eye(3), [bar, end, middle]])
        self.pull = _label(scene, "/aids/pull", "", np.zeros(3), visible=False)
        self.line = scene.add_line_segments(
            "/aids/distance", np.zeros((1, 2, 3)), _MEASURE, thickness=0.008 * self.length, visible=False
        )
        self.distance = _label(scene, "/aids/measured", "", np.zeros(3), visible=False)

    def show_axes(self, visible: bool) -> None:
        """Show or hide the axes and the scale bar."""
        for handle in self.axes:
            handle.visible = visible

    def show_pull(self, point: np.ndarray | None, force: float) -> None:
        """Write the force of the mouse [N] at a point; None: there is none."""
        self.pull.visible = point is not None
        if point is not None:
            self.pull.position, self.pull.text = point, force_text(force)

    def show_measure(self, measure: Measure | None, model: Model, q: np.ndarray) -> None:
        """Draw a measured distance; None: there is none."""
        self.line.visible = self.distance.visible = measure is not None
        if measure is not None:
            a, b = (g[:3, 3] for g in measure.poses(model, q))
            self.line.points = np.array([[a, b]], dtype=np.float32)
            self.distance.position, self.distance.text = 0.5 * (a + b), length_text(float(np.linalg.norm(b - a)))


def _label(scene: Any, name: str, text: str, position: np.ndarray, visible: bool = True) -> Any:
    return scene.add_label(name, text, position=position, visible=visible, anchor="center-center")
