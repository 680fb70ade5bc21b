"""Robot in the scene of the viewer: surfaces, lines, frames, and forces as arrows, which follow its state.

A surface that is fixed to one node is sent once and then moved; of a surface that deforms the vertices are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from lissom.dynamics.contacts import contact_forces
from lissom.dynamics.kinematics import forward_kinematics
from lissom.dynamics.start import start_configuration
from lissom.model.model import Model
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.aids import WORLD, Aids, Cut, Measure
from lissom.viewing.canvas import nice_number
from lissom.viewing.colors import COLOR_LEVELS, PALETTE, ColorScale, facets_by_level, rgb_bytes, state_values
from lissom.viewing.controls import MouseSpring, robot_size
from lissom.viewing.geometry import Geometry, Mesh, contact_geometry, robot_geometry
from lissom.viewing.render import configurations_at

COLORS = {"rod": (226, 158, 104), "deformable": (222, 138, 120), "rigid": (150, 155, 166), "shape": (112, 140, 173)}
COLORS["plane"] = (196, 205, 216)
_WATER, _TIE, _CHAMBER = (70, 140, 200), (150, 155, 166), (204, 121, 167)
_INSIDE = ("tendon", "chamber")  # kinds of lines inside bodies
_LONGEST, _HEAD = 0.35, 0.05  # sizes of an arrow and of its head, relative to the size of the robot
_AWAY = (0.9, -1.85, 0.65)  # from the robot to the camera
_FOV = 0.7  # angle between the lowest and the highest ray of a camera [rad]
_PANEL = 410.0  # width of the panel with its margin [pixels]
_ASPECT, _FREE = 1.1, 0.55  # shape of the scene of a small window, and its part at the left of the panel
_RIM = 0.08  # of a picture that stays free at each side, relative to half its size
_SOLID, _TRANSLUCENT, _GHOST = 1.0, 0.45, 0.3
_NOTHING = np.array([[0, 1, 2]])  # a triangle without area
_SMALLEST = 1e-9  # forces below this fraction of the largest one are not drawn
LOAD, CONTACT, PULL, INPUT = (209, 96, 61), (47, 109, 179), (138, 95, 176), (63, 155, 108)
SHOWN = ("tendons", "frames", "forces", "surroundings", "axes", "grid", "shadows")  # parts that can be hidden
_STROBE = (122, 130, 146)  # colour of earlier shapes


@final
class Stage:
    """Scene of one robot on a server of viser.

    Args:
        server: of viser. q: configuration by which the extent of planes and grid is chosen.
    """

    def __init__(self, server: Any, model: Model, q: np.ndarray) -> None:
        self.server, self.model, self.scene = server, model, server.scene
        self.geometry = robot_geometry(model)
        self.size = robot_size(model, q)
        self.painted, self.scale = "", None
        self.cut: Cut | None = None
        self.measure: Measure | None = None
        self.newtons, self.newton_metres = 0.0, 0.0  # largest force and moment so far
        self.hidden: set[str] = set()
        points = self.geometry.points(q)
        low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.zeros(3))
        middle, half = 0.5 * (low + high), self.size
        self.low, self.high = middle - 1.2 * half, middle + 1.2 * half
        self._first = points if len(points) else np.zeros((1, 3))
        self._down = float(np.sign(-model.gravity[2]))
        self.around = contact_geometry(model, q, self.low, self.high)
        self.opacity = self.own_opacity = _TRANSLUCENT if any(map(self.geometry.of, _INSIDE)) else _SOLID
        self.bodies = [_Surface(self.scene, f"/robot/{k} {m.name}", self.geometry, m, self.opacity)
                       for k, m in enumerate(self.geometry.meshes)]  # fmt: skip
        self.shapes = [_Surface(self.scene, f"/surroundings/{k} {m.name}", self.around, m, 0.35)
                       for k, m in enumerate(self.around.meshes)]  # fmt: skip
        self.levels: list[Any] = []  # of painted bodies, made when the first one is painted
        self._add_lines()
        self._add_frames()
        self._add_surroundings(low)
        self.arrows = self.scene.add_arrows(
            "/forces", np.zeros((1, 2, 3)), np.zeros((1, 3), np.uint8), visible=False,
            shaft_radius=0.008 * self.size, head_radius=0.02 * self.size, head_length=_HEAD * self.size,
        )  # fmt: skip
        self.aids = Aids(self.scene, self.size, low)
        self.camera(server)

    def renewed(self, model: Model) -> Stage:
        """Stage of another robot in the scene, from which this one has been removed, with the same looks."""
        new = Stage(self.server, model, start_configuration(model))
        new.cut = self.cut
        if self.measure is not None and {self.measure.a, self.measure.b} <= {*new.places}:
            new.measure = self.measure
        if self.painted:
            new.paint(self.painted)
        if self.opacity != self.own_opacity:
            new.make_solid(self.opacity)
        if self.hidden:
            new.hide(self.hidden)
        return new

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the places between which one may measure."""
        return tuple(dict.fromkeys([WORLD, *self.model.frames, *reversed(self.model.links.names)]))

    def cut_open(self, cut: Cut | None) -> None:
        """Draw the bodies without what lies beyond a plane; None: whole."""
        self.cut = cut

    def _add_lines(self) -> None:
        self.ghosts: list[Ghost] = []
        self.strobes: list[Ghost] = []
        self.lines: list[tuple[Any, Any]] = []
        tendons = [line.name for line in self.geometry.of("tendon")]
        for k, line in enumerate(self.geometry.lines):
            color, thick = _TIE, 0.006 * self.size
            if line.kind == "tendon":
                color, thick = _bytes(PALETTE[tendons.index(line.name) % len(PALETTE)]), 0.007 * self.size
            elif line.kind == "chamber":
                color, thick = _CHAMBER, 2.0 * float(line.radius.mean())
            elif line.kind in ("spring", "loop"):
                color = _bytes(PALETTE[3])
            handle = self.scene.add_line_segments(
                f"/lines/{line.kind}/{k} {line.name}", np.zeros((1, 2, 3)), color, thickness=thick
            )
            self.lines.append((line, handle))

    def _add_frames(self) -> None:
        """Add axes of the world, of the named frames, and of the tips of all links."""
        length = 0.12 * self.size
        look: Any = {"axes_length": length, "axes_radius": 0.04 * length}
        self.frames = {name: self.scene.add_frame(f"/frames/{name}", **look, visible=name in self.model.frames)
                       for name in {**self.model.links.frame, **self.model.frames}}  # fmt: skip
        self.scene.add_frame("/frames/world", axes_length=1.5 * length, axes_radius=0.04 * length, visible=False)

    def _add_surroundings(self, low: np.ndarray) -> None:
        """Add a grid on the ground, and a surface of the fluid. In the equations the fluid has no surface."""
        cell = nice_number(0.5 * self.size)
        planes = [k for k, mesh in enumerate(self.around.meshes) if mesh.kind == "plane"]
        floor = min((float(self.around.points(start_configuration(self.model))[self.around.meshes[k].rows, 2].min())
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

    def box(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest coordinates of the robot at a configuration [m]."""
        points = self.geometry.points(q)
        return (points.min(axis=0), points.max(axis=0)) if len(points) else (self.low, self.high)

    def view_from(
        self,
        away: Sequence[float] | None = None,
        q: np.ndarray | None = None,
        aspect: float = _ASPECT,
        free: float = _FREE,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The point at which a camera looks and its position, so that the whole robot and the axes are visible beside
        the panel, at its left, and as large as they can be.

        Args:
            away: direction of the camera; None is the usual one. q: configuration that is seen; None is that of the
                start, with some room below, where soft robots hang.
            aspect: width of the picture divided by its height. free: part of the width at the left of the panel.
        """
        toward = np.array(_AWAY if away is None else away, dtype=np.float64)
        toward += np.array([0.0, -1e-3, 0.0]) if not toward[:2].any() else 0.0  # the camera's up is z
        toward /= np.linalg.norm(toward)
        right = np.cross(-toward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        up = np.cross(toward, right)
        points = self._first if q is None else self.geometry.points(q)
        if q is None:
            points = np.concatenate([points, points - 0.25 * self.size * np.array([0.0, 0.0, self._down])])
        points = np.concatenate([points, self.aids.corners])
        x, y, z = points @ right, points @ up, points @ toward
        tall = float(np.tan(0.5 * _FOV))
        wide, left, end = tall * aspect, 1.0 - _RIM, 2.0 * free - 1.0 - _RIM  # of the picture, which is from -1 to 1
        # |x - x₀| and |y - y₀| of each point, divided by its depth d - z, must lie in this part of the picture
        a, b = float((x + wide * end * z).max()), float((wide * left * z - x).max())
        c, e = float((y + tall * left * z).max()), float((tall * left * z - y).max())
        d = max((a + b) / (wide * (end + left)), (c + e) / (2.0 * tall * left))
        x0 = 0.5 * (a - b + wide * (left - end) * d)
        y0 = 0.5 * (c - e)
        axis = x0 * right + y0 * up
        return axis + 0.5 * float(z.min() + z.max()) * toward, axis + d * toward

    def look(
        self, server: Any, away: Sequence[float] | None = None, q: np.ndarray | None = None, keep: bool = False
    ) -> None:
        """Move the cameras of all browsers, see `view_from`. With `keep` they keep their directions."""
        self.camera(server, q)
        for client in server.get_clients().values():
            camera = client.camera
            direction = _direction(camera) if keep else ()
            shape = (_ASPECT, _FREE)
            if camera.update_timestamp:  # the browser has told its camera
                shape = camera.aspect, max(1.0 - _PANEL / camera.image_width, 0.4)
            at, position = self.view_from(direction if len(direction) else away, q, *shape)
            with client.atomic():
                camera.position, camera.look_at = tuple(position), tuple(at)
                camera.up_direction = (0.0, 0.0, 1.0)
                camera.near, camera.far = 0.01 * self.size, 100.0 * self.size

    def camera(self, server: Any, q: np.ndarray | None = None) -> None:
        """Set the initial camera."""
        at, position = self.view_from(None, q)
        server.initial_camera.look_at, server.initial_camera.position = tuple(at), tuple(position)
        server.initial_camera.up, server.initial_camera.fov = (0.0, 0.0, 1.0), _FOV
        server.initial_camera.near = 0.01 * self.size
        server.initial_camera.far = 100.0 * self.size

    def on_pull(self, react: Callable[[str, str | None, Any], Any] | None) -> None:
        """Call a function (phase, link, point) when the mouse drags a body. With None the mouse turns the view
        instead."""
        for surface in self.bodies:
            surface.on_pull(react)

    def paint(self, quantity: str) -> None:
        """Show one of QUANTITIES by colours, or none with "". The colour scale starts again."""
        self.painted, self.scale = quantity, ColorScale(quantity) if quantity else None

    def hide(self, names: set[str]) -> None:
        """Hide these parts of SHOWN, and show the others."""
        self.hidden = set(names)
        self.grid.visible = "grid" not in names
        self.aids.show_axes("axes" not in names)
        for surface in self.shapes:
            surface.handle.visible = "surroundings" not in names
        if self.water is not None:
            self.water.visible = "surroundings" not in names
        for line, handle in self.lines:
            handle.visible = line.kind not in _INSIDE or "tendons" not in names
        for name, handle in self.frames.items():
            handle.visible = "frames" not in names and name in self.model.frames
        if "forces" in names:
            self.arrows.visible = False
        self.scene.configure_default_lights(True, cast_shadow="shadows" not in names)

    def make_solid(self, opacity: float) -> None:
        """Set the opacity of the bodies, 0 to 1."""
        self.opacity = opacity
        for surface in self.bodies:
            surface.handle.opacity = None if opacity >= 1.0 else opacity

    def show(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, spring: MouseSpring | None) -> None:
        """Show a state, and the mouse spring if there is one."""
        points, g = self.geometry.points(q), forward_kinematics(self.model, q)
        values = None
        if self.painted and self.scale is not None:
            values = state_values(self.geometry, self.painted, q, v, u, t)
            self.scale.include(values)
        for surface in self.bodies:
            surface.show(points, g, self.cut)
        self._show_levels(points, values)
        if len(self.around.meshes):
            there = self.around.points(q)
            for surface in self.shapes:
                surface.show(there, g, None)
        for line, handle in self.lines:
            row = points[line.rows]
            handle.points = np.stack([row[:-1], row[1:]], axis=1).astype(np.float32)
        for ghost in self.ghosts:
            ghost.show(t)
        poses = self.geometry.frames(q)
        for name, handle in self.frames.items():
            if handle.visible:
                handle.position, handle.wxyz = poses[name][:3, 3], quaternion(poses[name][:3, :3])
        self._show_forces(q, v, u, t, spring)
        self.aids.show_measure(self.measure, self.model, q)

    def show_strobes(self, motion: Trajectory | None, count: int) -> None:
        """Show shapes of a motion at equal times, from its start to its end, pale; with 0 none."""
        for strobe in self.strobes:
            strobe.remove()
        self.strobes = []
        if motion is not None and count and len(motion.t) > 1:
            for k, t in enumerate(np.linspace(motion.t[0], motion.t[-1], count)):
                self.strobes.append(Ghost(self.scene, f"strobe {k}", self.model, motion, _STROBE))
                self.strobes[-1].show(float(t))

    def show_ghosts(self, motions: Sequence[tuple[str, Model, Trajectory]], t: float) -> None:
        """Show other robots or motions as pale shapes, each in one colour. They move with the time of this one."""
        for ghost in self.ghosts:
            ghost.remove()
        self.ghosts = [Ghost(self.scene, name, model, motion, _bytes(PALETTE[k % len(PALETTE)]))
                       for k, (name, model, motion) in enumerate(motions)]  # fmt: skip
        for ghost in self.ghosts:
            ghost.show(t)

    def _show_levels(self, points: np.ndarray, values: np.ndarray | None) -> None:
        """Draw surfaces with values by colour levels, in place of their plain surfaces."""
        has = [values is not None and bool(np.isfinite(values[s.mesh.rows]).any()) for s in self.bodies]
        for surface, is_painted in zip(self.bodies, has):
            surface.handle.visible = not is_painted
        if values is None or self.scale is None:
            for handle in self.levels:
                handle.visible = False
            return
        if not self.levels:
            self.levels = [self.scene.add_mesh_simple(f"/painted/{k}", np.zeros((3, 3)), np.array([[0, 1, 2]]),
                           color=tuple(color.tolist()), side="double", visible=False)
                           for k, color in enumerate(rgb_bytes(np.linspace(0.0, 1.0, COLOR_LEVELS)))]  # fmt: skip
        found = [s.mesh.quads + s.mesh.rows.start for s, p in zip(self.bodies, has) if p]
        if not found:
            return
        quads = np.concatenate(found)
        if self.cut is not None:
            quads = quads[self.cut.keeps(points[quads].mean(axis=1))]
        for handle, (vertices, faces) in zip(self.levels, facets_by_level(quads, points, values, self.scale)):
            handle.visible = len(faces) > 0
            if len(faces):
                handle.vertices, handle.faces = vertices.astype(np.float32), faces.astype(np.uint32)

    def _show_forces(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, spring: MouseSpring | None) -> None:
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
        self.aids.show_pull(None if spring is None else spring.target, 0.0 if spring is None else spring.newtons)
        if spring is not None:
            pull = Forces()
            pull.add(spring.position(q), spring.target - spring.position(q), PULL)
            line, color = pull.arrows(1.0)
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
        self._whole, self._is_cut = vertices, False
        self.handle = scene.add_mesh_simple(
            name, vertices, mesh.triangles, color=COLORS[mesh.kind], side="double",
            opacity=None if opacity >= 1.0 else opacity, cast_shadow=mesh.kind not in ("plane", "shape"),
        )  # fmt: skip

    def show(self, points: np.ndarray, g: np.ndarray, cut: Cut | None) -> None:
        """Move it to points (P, 3) of its geometry and poses of nodes (n, 4, 4), and cut it open."""
        if cut is not None:
            vertices, triangles = cut.applied(points[self.mesh.rows], self.mesh.triangles)
            self.handle.position, self.handle.wxyz = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
            self._set(vertices if len(vertices) else np.zeros((3, 3)), triangles if len(vertices) else _NOTHING)
            self._is_cut = True
            return
        if self._is_cut:
            self._set(self._whole, self.mesh.triangles)
            self._is_cut = False
        if self.node is None:
            self.handle.vertices = points[self.mesh.rows].astype(np.float32)
        elif self.node < len(g):
            self.handle.position, self.handle.wxyz = g[self.node][:3, 3], quaternion(g[self.node][:3, :3])

    def _set(self, vertices: np.ndarray, triangles: np.ndarray) -> None:
        self.handle.vertices, self.handle.faces = vertices.astype(np.float32), triangles.astype(np.uint32)

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
    """Node that a whole mesh is fixed to, or the number after the nodes for the world; None if the mesh deforms."""
    frames = np.unique(geometry.frame[mesh.rows])
    moves = any(rows.start <= mesh.rows.start < rows.stop for rows, _, _ in geometry.moving)
    return int(frames[0]) if len(frames) == 1 and frames[0] <= geometry.model.n_nodes and not moves else None


def _direction(camera: Any) -> list[float]:
    """Direction from which a browser looks; empty if it has not told its camera yet."""
    try:
        found = np.asarray(camera.position) - np.asarray(camera.look_at)
    except (AttributeError, AssertionError):
        return []
    return found.tolist() if np.isfinite(found).all() and found.any() else []


def quaternion(R: np.ndarray) -> tuple[float, float, float, float]:
    """Quaternion (w, x, y, z) of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat().tolist()
    return w, x, y, z


@final
class Ghost:
    """Pale shape of another motion in the scene.

    Args:
        scene: of viser. name: its name in the scene. model, motion: what is shown. color: of all its bodies.
    """

    def __init__(self, scene: Any, name: str, model: Model, motion: Trajectory, color: tuple[int, int, int]) -> None:
        self.scene, self.name, self.model, self.motion, self.color = scene, name, model, motion, color
        self.geometry = robot_geometry(model)
        self._handles: list[Any] = []
        self._shown = np.nan

    def remove(self) -> None:
        """Take it out of the scene."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def show(self, t: float) -> None:
        """Show the motion at a time [s], or at its end after that."""
        t = float(np.clip(t, self.motion.t[0], self.motion.t[-1]))
        if t == self._shown:
            return
        self._shown = t
        points = self.geometry.points(configurations_at(self.model, self.motion, np.array([t]))[0])
        if not self._handles:
            self._handles = [
                self.scene.add_mesh_simple(f"/ghosts/{self.name}/{k}", points[mesh.rows], mesh.triangles,
                                           color=self.color, opacity=_GHOST, side="double", cast_shadow=False)
                for k, mesh in enumerate(self.geometry.meshes)
            ]  # fmt: skip
        for handle, mesh in zip(self._handles, self.geometry.meshes):
            handle.vertices = points[mesh.rows].astype(np.float32)


@final
class Forces:
    """Points (n, 3) [m], forces (n, 3) [N] or moments [N·m] in world axes, and colours (n, 3)."""

    def __init__(self) -> None:
        self.points: list[np.ndarray] = []
        self.forces: list[np.ndarray] = []
        self.colors: list[tuple[int, int, int]] = []

    def add(self, point: np.ndarray, force: np.ndarray, color: tuple[int, int, int]) -> None:
        """Add a force at a point."""
        self.points.append(point)
        self.forces.append(force)
        self.colors.append(color)

    @property
    def largest(self) -> float:
        """Magnitude of the largest [N, N·m]."""
        return float(max((np.linalg.norm(force) for force in self.forces), default=0.0))

    def arrows(self, per_newton: float) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends of arrows, shape (n, 2, 3), and their colours. Contact forces end at their points, others
        start there."""
        some = [k for k, force in enumerate(self.forces) if np.linalg.norm(force) > _SMALLEST * self.largest]
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
    if len(model.contacts.pair):
        pairs = contact_forces(model, q, v)
        for point, force in zip(pairs.point, pairs.force):
            found.add(point, force, CONTACT)
    return found


def outer_moments(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> Forces:
    """Moments of point loads and controlled wrenches."""
    found = Forces()
    for point, wrench, color in _wrenches(model, q, u, t):
        found.add(point, wrench[0], color)
    return found


def second_heads(lines: np.ndarray, head: float) -> np.ndarray:
    """Arrows, shape (n, 2, 3), shortened by one head, or by half their length if that is less. Drawn over arrows of
    moments, they add a second head."""
    reach = lines[:, 1] - lines[:, 0]
    length = np.maximum(np.linalg.norm(reach, axis=1, keepdims=True), 1e-300)
    return np.stack([lines[:, 0], lines[:, 0] + reach * np.maximum(0.5, 1.0 - head / length)], axis=1)


def _wrenches(
    model: Model, q: np.ndarray, u: np.ndarray, t: float
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[int, int, int]]]:
    """Points, moment and force in world axes (2, 3), and colours, of point loads and controlled wrenches."""
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


def _bytes(color: np.ndarray) -> tuple[int, int, int]:
    """Integers from 0 to 255 of a colour from 0 to 1."""
    red, green, blue = np.round(255.0 * color).astype(int).tolist()
    return red, green, blue
