"""What a robot is painted like: colours of its bodies, and tubes for its tendons, springs and ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from lissom.dynamics.kinematics import forward_kinematics
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.viewing.building import robot_geometry
from lissom.viewing.canvas import Painted, together
from lissom.viewing.quantities import OF_SHAPE, of_shape, ramp
from lissom.viewing.style import PALETTE, rgb
from lissom.viewing.surfaces import Geometry, Mesh

SOFT, RIGID, TIE, SPRING, WHITE = rgb("#f0b98a"), rgb("#aab2bd"), rgb("#8d949e"), rgb("#4a5058"), rgb("#ffffff")
_SIDES = 10  # of a tube
_TURNS = 9  # of a spring


@final
class Paint:
    """How the parts of a model are painted.

    Args:
        links: names of the links that are drawn.
        paint: the quantity that rods show, see OF_SHAPE; None is their colour.
        size: of what is seen [m], that the thickness of lines follows.
    """

    def __init__(self, model: Model, links: Sequence[str], paint: str | None, size: float) -> None:
        if paint is not None and paint not in OF_SHAPE:
            raise ModelError(f"paint: must be one of {sorted(OF_SHAPE)} (got {paint!r})")
        self.geometry: Geometry = robot_geometry(model)
        self.paint, self.radius = paint, 0.0032 * size
        self.meshes = [mesh for mesh in self.geometry.meshes if mesh.name in links]
        self._lines = [line for line in self.geometry.lines if set(line.links) <= set(links)]
        tendons = [line.name for line in self._lines if line.kind == "tendon"]
        self.tendons = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(tendons)}
        springs = model.description.springs
        self._coils = {name for name, x in springs.items() if not x.slack and (x.stiffness > 0.0 or x.law is not None)}
        self.span = (0.0, 1.0)
        rods = [body for body in model.links.body if body is not None and body.is_slender]
        widths = [np.linalg.norm(body.cross_outline(s, 24), axis=1).max() for body in rods for s in (0.0, 0.5, 1.0)]
        self.thickness = 2.2 * float(max(widths, default=0.0))  # of rods, which tendons are seen through [m]
        self.step = 2.0 * self.radius  # between the links of planar robots towards the eye [m]
        self._model = model

    def painted_values(self, q: np.ndarray) -> np.ndarray:
        """The quantity that is painted, at all points and configurations (..., nq); NaN where there is none."""
        return of_shape(self.geometry, self.paint or "curvature", q)

    def bodies(
        self, q: np.ndarray, points: np.ndarray, tint: np.ndarray | None = None, eye: np.ndarray | None = None
    ) -> list[Painted]:
        """The bodies at one configuration, whose points are given; soft ones in a tint, if there is one, and the links
        of planar robots one before the other towards the eye."""
        values = None if self.paint is None else self._ramp(self.painted_values(q))
        parts = []
        for k, mesh in enumerate(self.meshes):
            vertices = points[mesh.rows]
            colors = np.tile(_color(mesh, tint), (len(vertices), 1))
            if values is not None and mesh.kind == "rod":
                colors = values[mesh.rows]
            shifted = vertices if eye is None else vertices + k * self.step * eye
            parts.append(Painted(shifted, mesh.triangles, mesh.normals(vertices), colors))
        for line in self._lines:
            ends = points[line.rows]
            if line.kind == "tie" and np.linalg.norm(ends[1] - ends[0]) > 2.0 * self.radius:
                parts.append(tube(ends, 1.7 * self.radius, TIE))
            elif line.kind == "spring":
                coil = line.name in self._coils
                parts.append(tube(_coil(ends, 4.0 * self.radius) if coil else ends, self.radius, SPRING))
        return parts

    def pins(self, q: np.ndarray, points: np.ndarray, axes: np.ndarray) -> list[Painted]:
        """The hinges of a planar robot, and the supports of those that the world holds."""
        model, eye, parts = self._model, axes[2], []
        g = forward_kinematics(model, q)
        found = []
        for k, joint in enumerate(model.links.joint):
            nodes = np.flatnonzero(model.nodes.link == k)
            turns = [
                abs(motion.Phi[:3, 0] @ np.eye(3)).sum() > 0.0 for motion in joint.motions("joint") if motion.Phi.size
            ]
            if len(turns) == 1 and turns[0] and len(nodes):
                found.append((g[nodes[0], :3, 3], int(model.nodes.parent[nodes[0]]) < 0))
        for line in self._lines:
            joint = model.description.loops[line.name].joint if line.kind == "loop" else None
            if joint is not None and joint.nv == 1 and joint.motions("joint")[0].Phi[:3].any():
                found.append((points[line.rows][1], model.description.loops[line.name].link_b is None))
        front = (len(self.meshes) + 1) * self.step
        for place, is_held in found:
            at = place + (front - (place @ eye)) * eye + max(float((points @ eye).max()), 0.0) * eye
            parts += [
                _disc(at, axes, 2.6 * self.radius, SPRING),
                _disc(at + self.step * eye, axes, 1.3 * self.radius, WHITE),
            ]
            if is_held:
                corners = at - self.step * eye + self.radius * np.array([(0, 0), (-5, -8), (5, -8)]) @ axes[:2]
                parts.append(_flat(corners, eye, TIE))
        return parts

    def lines(self, points: np.ndarray) -> Painted:
        """The tendons."""
        tendons = [line for line in self._lines if line.kind == "tendon"]
        return together([tube(points[line.rows], self.radius, self.tendons[line.name]) for line in tendons])

    def _ramp(self, values: np.ndarray) -> np.ndarray:
        low, high = self.span
        return ramp(np.nan_to_num((values - low) / max(high - low, 1e-300)))


def _color(mesh: Mesh, tint: np.ndarray | None) -> np.ndarray:
    if mesh.color is not None:
        return np.array(mesh.color[:3])
    own = RIGID if mesh.kind == "rigid" else SOFT
    if tint is None:
        return own
    return tint if mesh.kind != "rigid" else 0.6 * own + 0.4 * tint


def tube(line: np.ndarray, radius: float, color: np.ndarray) -> Painted:
    """A round tube along a line (n, 3), closed at its ends."""
    apart = np.linalg.norm(np.diff(line, axis=0), axis=1) > 1e-3 * radius
    line = line[np.append(True, apart)]
    if len(line) < 2:
        return Painted(np.zeros((0, 3)), np.zeros((0, 3), dtype=int), np.zeros((0, 3)), np.zeros((0, 3)))
    along = np.gradient(line, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    side = _carried_along(along)
    other = np.cross(along, side)
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    normals = np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * other[:, None]
    rings = line[:, None] + radius * normals
    k, i = (part.ravel() for part in np.meshgrid(np.arange(len(line) - 1), np.arange(_SIDES), indexing="ij"))
    a, b = k * _SIDES + i, k * _SIDES + (i + 1) % _SIDES
    sides = [np.stack([a, b, b + _SIDES], axis=1), np.stack([a, b + _SIDES, a + _SIDES], axis=1)]
    i, last = np.arange(1, _SIDES - 1), (len(line) - 1) * _SIDES
    lids = [np.stack([0 * i, i + 1, i], axis=1), last + np.stack([0 * i, i, i + 1], axis=1)]
    vertices = rings.reshape(-1, 3)
    return Painted(
        vertices, np.concatenate([*sides, *lids]), normals.reshape(-1, 3), np.tile(color, (len(vertices), 1))
    )


def _disc(centre: np.ndarray, axes: np.ndarray, radius: float, color: np.ndarray) -> Painted:
    angle = 2.0 * np.pi * np.arange(24) / 24
    return _flat(centre + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ axes[:2], axes[2], color)


def _flat(corners: np.ndarray, eye: np.ndarray, color: np.ndarray) -> Painted:
    """A convex polygon that faces the eye."""
    k = np.arange(1, len(corners) - 1)
    ones = np.ones((len(corners), 1))
    return Painted(corners, np.stack([0 * k, k, k + 1], axis=1), ones * eye, ones * color)


def _carried_along(along: np.ndarray) -> np.ndarray:
    """Unit vectors across unit tangents (n, 3) that turn about the line no more than they must."""
    side = np.zeros_like(along)
    start = np.eye(3)[np.argmin(np.abs(along[0]))]
    for k, tangent in enumerate(along):
        start = start - (start @ tangent) * tangent
        size = np.linalg.norm(start)
        start = start / size if size > 1e-9 else np.cross(tangent, np.eye(3)[np.argmin(np.abs(tangent))])
        side[k] = start
    return side


def _coil(ends: np.ndarray, radius: float) -> np.ndarray:
    """The line of a spring between two points."""
    along = ends[1] - ends[0]
    length = float(np.linalg.norm(along))
    if length < 4.0 * radius:
        return ends
    axis = along / length
    side = _carried_along(axis[None])[0]
    s = np.linspace(0.0, 1.0, 24 * _TURNS + 1)
    size = radius * np.clip(8.0 * np.minimum(s, 1.0 - s), 0.0, 1.0)[:, None]
    angle = 2.0 * np.pi * _TURNS * s[:, None]
    return ends[0] + s[:, None] * along + size * (np.cos(angle) * side + np.sin(angle) * np.cross(axis, side))
