"""A robot in the scene of a viewer in the browser: its surfaces, lines, frames and forces, which follow its state.

A surface that is fixed to one node is sent once and then moved; of those that deform the vertices are sent each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model
from lissom.viewing.arrows import HAND, Forces, outer_forces, outer_moments, second_heads
from lissom.viewing.bands import BANDS, Scale, banded
from lissom.viewing.building import contact_geometry, robot_geometry
from lissom.viewing.hand import Hand
from lissom.viewing.quantities import of_state, rgb_bytes
from lissom.viewing.sliders import nice, robot_size
from lissom.viewing.style import SERIES
from lissom.viewing.surfaces import Geometry, Mesh

COLORS = {"rod": (226, 158, 104), "deformable": (222, 138, 120), "rigid": (150, 155, 166), "shape": (112, 140, 173)}
COLORS["plane"] = (196, 205, 216)
_WATER, _TIE = (70, 140, 200), (150, 155, 166)
_LONGEST, _HEAD = 0.35, 0.05  # arrow and its head, of the size of the robot
_SOLID, _SEEN_THROUGH = 1.0, 0.45
SHOWN = ("tendons", "frames", "forces", "surroundings", "grid", "shadows")  # what can be hidden


@final
class Stage:
    """The scene of one robot on a server of viser.

    Args:
        server: of viser. q: configuration that decides how far planes and the grid reach.
    """

    def __init__(self, server: Any, model: Model, q: np.ndarray) -> None:
        self.model, self.scene = model, server.scene
        self.geometry = robot_geometry(model)
        self.size = robot_size(model, q)
        self.painted, self.scale = "", None
        self.newtons, self.newton_metres = 0.0, 0.0  # of the largest force and moment so far
        self.hidden: set[str] = set()
        points = self.geometry.points(q)
        low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.zeros(3))
        middle, half = 0.5 * (low + high), self.size
        self.low, self.high = middle - 1.2 * half, middle + 1.2 * half
        self.around = contact_geometry(model, q, self.low, self.high)
        self.opacity = _SEEN_THROUGH if self.geometry.of("tendon") else _SOLID
        self.bodies = [_Surface(self.scene, f"/robot/{k} {m.name}", self.geometry, m, self.opacity)
                       for k, m in enumerate(self.geometry.meshes)]  # fmt: skip
        self.shapes = [_Surface(self.scene, f"/surroundings/{k} {m.name}", self.around, m, 0.35)
                       for k, m in enumerate(self.around.meshes)]  # fmt: skip
        self.bands = [self.scene.add_mesh_simple(f"/painted/{k}", np.zeros((3, 3)), np.array([[0, 1, 2]]),
                      color=tuple(color.tolist()), side="double", visible=False)
                      for k, color in enumerate(rgb_bytes(np.linspace(0.0, 1.0, BANDS)))]  # fmt: skip
        self._add_lines()
        self._add_frames()
        self._add_surroundings(low)
        self.arrows = self.scene.add_arrows(
            "/forces", np.zeros((1, 2, 3)), np.zeros((1, 3), np.uint8), visible=False,
            shaft_radius=0.008 * self.size, head_radius=0.02 * self.size, head_length=_HEAD * self.size,
        )  # fmt: skip
        self.camera(server)

    # -- what there is ------------------------------------------------------------------------------------------------

    def _add_lines(self) -> None:
        self.lines: list[tuple[Any, Any]] = []
        tendons = [line.name for line in self.geometry.of("tendon")]
        for k, line in enumerate(self.geometry.lines):
            color, thick = _TIE, 0.006 * self.size
            if line.kind == "tendon":
                color, thick = _rgb(SERIES[tendons.index(line.name) % len(SERIES)]), 0.007 * self.size
            elif line.kind in ("spring", "loop"):
                color = _rgb(SERIES[3])
            handle = self.scene.add_line_segments(
                f"/lines/{line.kind}/{k} {line.name}", np.zeros((1, 2, 3)), color, thickness=thick
            )
            self.lines.append((line, handle))

    def _add_frames(self) -> None:
        """Axes of the world and of the named frames, and of the tips of all links."""
        length = 0.12 * self.size
        look: Any = {"axes_length": length, "axes_radius": 0.04 * length}
        self.frames = {name: self.scene.add_frame(f"/frames/{name}", **look, visible=name in self.model.frames)
                       for name in {**self.model.links.frame, **self.model.frames}}  # fmt: skip
        self.scene.add_frame("/frames/world", axes_length=1.5 * length, axes_radius=0.04 * length, visible=False)

    def _add_surroundings(self, low: np.ndarray) -> None:
        """A grid on the ground, and the surface of the water, which the equations know no end of."""
        cell = nice(0.5 * self.size)
        planes = [k for k, mesh in enumerate(self.around.meshes) if mesh.kind == "plane"]
        floor = min((float(self.around.points(self.model.neutral())[self.around.meshes[k].rows, 2].min())
                     for k in planes), default=float(low[2]) - 0.6 * self.size)  # fmt: skip
        self.cell = cell
        self.grid = self.scene.add_grid(
            "/grid", 6.0 * self.size, 6.0 * self.size, cell_size=0.2 * cell, section_size=cell, infinite_grid=True,
            fade_distance=9.0 * self.size, cell_color=(236, 238, 242), section_color=(214, 218, 225),
            cell_thickness=0.6, section_thickness=0.8, position=(0.0, 0.0, floor - 1e-3 * self.size),
        )  # fmt: skip
        self.water = None
        if self.model.description.fluid is not None:
            top, r = float(self.high[2]), 3.0 * self.size
            corners = np.array([[-r, -r, top], [r, -r, top], [r, r, top], [-r, r, top]])
            self.water = self.scene.add_mesh_simple("/water", corners, np.array([[0, 1, 2], [0, 2, 3]]), color=_WATER,
                                                    opacity=0.25, side="double", cast_shadow=False)  # fmt: skip

    def camera(self, server: Any) -> None:
        """Put the eye of new visitors where the whole robot is seen, left of the panel."""
        away = np.array([0.9, -1.85, 0.65])
        right = np.cross(-away, [0.0, 0.0, 1.0])
        middle = 0.5 * (self.low + self.high) + 0.3 * self.size * right / np.linalg.norm(right)
        middle[2] -= 0.12 * self.size * float(np.sign(-self.model.gravity[2]))  # soft robots hang
        server.initial_camera.look_at = tuple(middle)
        server.initial_camera.position = tuple(middle + self.size * away)
        server.initial_camera.up, server.initial_camera.fov = (0.0, 0.0, 1.0), 0.7
        server.initial_camera.near = 0.01 * self.size
        server.initial_camera.far = 100.0 * self.size

    def on_pull(self, react: Callable[[str, str | None, Any], Any] | None) -> None:
        """Tell a function (phase, link, point) of bodies that are dragged with the mouse; None lets the mouse turn the
        view there again."""
        for surface in self.bodies:
            surface.on_pull(react)

    # -- what is shown ------------------------------------------------------------------------------------------------

    def paint(self, quantity: str) -> None:
        """Paint a quantity, see QUANTITIES; empty paints none."""
        self.painted, self.scale = quantity, Scale(quantity) if quantity else None

    def hide(self, names: set[str]) -> None:
        """Hide some of SHOWN, and show the others."""
        self.hidden = set(names)
        self.grid.visible = "grid" not in names
        for surface in self.shapes:
            surface.handle.visible = "surroundings" not in names
        if self.water is not None:
            self.water.visible = "surroundings" not in names
        for line, handle in self.lines:
            handle.visible = line.kind != "tendon" or "tendons" not in names
        for name, handle in self.frames.items():
            handle.visible = "frames" not in names and name in self.model.frames
        if "forces" in names:
            self.arrows.visible = False
        self.scene.configure_default_lights(True, cast_shadow="shadows" not in names)

    def make_solid(self, opacity: float) -> None:
        """Set how solid the bodies are, 0 to 1."""
        self.opacity = opacity
        for surface in self.bodies:
            surface.handle.opacity = None if opacity >= 1.0 else opacity

    def show(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, hand: Hand | None) -> None:
        """Bring the scene to a state."""
        points, g = self.geometry.points(q), forward_kinematics(self.model, q)
        values = None
        if self.painted and self.scale is not None:
            values = of_state(self.geometry, self.painted, q, v, u, t)
            self.scale.take_in(values)
        for surface in self.bodies:
            surface.show(points, g)
        self._show_bands(points, values)
        if len(self.around.meshes):
            there = self.around.points(q)
            for surface in self.shapes:
                surface.show(there, g)
        for line, handle in self.lines:
            row = points[line.rows]
            handle.points = np.stack([row[:-1], row[1:]], axis=1).astype(np.float32)
        poses = self.geometry.frames(q)
        for name, handle in self.frames.items():
            if handle.visible:
                handle.position, handle.wxyz = poses[name][:3, 3], quaternion(poses[name][:3, :3])
        self._show_forces(q, v, u, t, hand)

    def _show_bands(self, points: np.ndarray, values: np.ndarray | None) -> None:
        """Paint what has values, which then hides the plain surface."""
        has = [values is not None and bool(np.isfinite(values[s.mesh.rows]).any()) for s in self.bodies]
        for surface, is_painted in zip(self.bodies, has):
            surface.handle.visible = not is_painted
        if values is None or self.scale is None:
            for handle in self.bands:
                handle.visible = False
            return
        quads = [s.mesh.quads + s.mesh.rows.start for s, p in zip(self.bodies, has) if p]
        if not quads:
            return
        for handle, (vertices, faces) in zip(self.bands, banded(np.concatenate(quads), points, values, self.scale)):
            handle.visible = len(faces) > 0
            if len(faces):
                handle.vertices, handle.faces = vertices.astype(np.float32), faces.astype(np.uint32)

    def _show_forces(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, hand: Hand | None) -> None:
        if "forces" in self.hidden:
            return
        found = outer_forces(self.model, q, v, u, t)
        self.newtons = max(self.newtons, found.largest)
        lines, colors = found.arrows(_LONGEST * self.size / self.newtons if self.newtons else 0.0)
        found = outer_moments(self.model, q, u, t)
        self.newton_metres = max(self.newton_metres, found.largest)
        turns, own = found.arrows(_LONGEST * self.size / self.newton_metres if self.newton_metres else 0.0)
        lines = np.concatenate([lines, turns, second_heads(turns, _HEAD * self.size)])
        colors = np.concatenate([colors, own, own])
        if hand is not None:
            held = Forces()
            held.add(hand.place(q), hand.target - hand.place(q), HAND)
            line, color = held.arrows(1.0)
            lines, colors = np.concatenate([lines, line]), np.concatenate([colors, color])
        self.arrows.visible = len(lines) > 0
        if len(lines):
            self.arrows.points, self.arrows.colors = lines.astype(np.float32), colors


@final
class _Surface:
    """One mesh of a geometry in the scene."""

    def __init__(self, scene: Any, name: str, geometry: Geometry, mesh: Mesh, opacity: float) -> None:
        self.mesh, self.node = mesh, _only_node(geometry, mesh)
        vertices = geometry.local[mesh.rows]
        if self.node is None:
            vertices = geometry.points(geometry.model.neutral())[mesh.rows]
        self.handle = scene.add_mesh_simple(
            name, vertices, mesh.triangles, color=COLORS[mesh.kind], side="double",
            opacity=None if opacity >= 1.0 else opacity, cast_shadow=mesh.kind not in ("plane", "shape"),
        )  # fmt: skip

    def show(self, points: np.ndarray, g: np.ndarray) -> None:
        """Bring it to points (P, 3) of its geometry and poses of nodes (n, 4, 4)."""
        if self.node is None:
            self.handle.vertices = points[self.mesh.rows].astype(np.float32)
        elif self.node < len(g):
            self.handle.position, self.handle.wxyz = g[self.node][:3, 3], quaternion(g[self.node][:3, :3])

    def on_pull(self, react: Callable[[str, str | None, Any], Any] | None) -> None:
        """See Stage."""
        self.handle.remove_drag_callback()
        if react is not None:

            async def dragged(event: Any) -> None:
                react(
                    event.phase, self.mesh.link, event.start_position if event.phase == "start" else event.end_position
                )

            self.handle.on_drag("left")(dragged)


def _only_node(geometry: Geometry, mesh: Mesh) -> int | None:
    """The node, or the world behind the nodes, that all of a mesh is fixed to; None where there is none."""
    frames = np.unique(geometry.frame[mesh.rows])
    moves = any(rows.start <= mesh.rows.start < rows.stop for rows, _, _ in geometry.moving)
    return int(frames[0]) if len(frames) == 1 and frames[0] <= geometry.model.n_nodes and not moves else None


def quaternion(R: np.ndarray) -> tuple[float, float, float, float]:
    """(w, x, y, z) of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat().tolist()
    return w, x, y, z


def _rgb(color: str) -> tuple[int, int, int]:
    """Numbers of a colour "#rrggbb"."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
