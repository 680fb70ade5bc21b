"""Still pictures of robots and films of motions by PyVista, without a screen."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.kinematics import forward_kinematics, frame_pose
from lissom.dynamics.loads import load_rows
from lissom.errors import ModelError, ShapeError
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.portable import whole, write_whole
from lissom.robot import checks
from lissom.robot.actuators import JointActuator, WrenchInput
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.camera import Camera, chosen_view, framed, looking, plane_axes, plane_of, upwards
from lissom.viewing.canvas import (
    Background,
    Canvas,
    Composition,
    Labels,
    Layer,
    Painted,
    background_planes,
    canvas,
    loaded_pyvista,
    merged,
    nice_number,
    shadow,
)
from lissom.viewing.colors import PALETTE, QUANTITIES, SHAPE_QUANTITIES, ramp, readable, rgb, shape_values
from lissom.viewing.geometry import Geometry, Mesh, contact_geometry, robot_geometry
from lissom.viewing.mounts import hangs, mounts, unseen
from lissom.viewing.picture import Picture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SOFT, _RIGID, _TIE, _SPRING, _WHITE = rgb("#f0b98a"), rgb("#aab2bd"), rgb("#8d949e"), rgb("#4a5058"), rgb("#ffffff")
_OBSTACLE, _TRAIL = rgb("#7fa3c7"), rgb("#b5179e")
_SIDES = 10  # of a tube
_TURNS = 9  # of a spring
_GHOSTS = (0.26, 0.5)  # opacity of the first and of the last but one of several configurations
_OBSTACLE_OPACITY = (0.36, 0.16)  # opacity of sides that face away from the eye, and of sides that face it
_RIM = 0.3  # more opacity of the outlines of earlier configurations
_HIDDEN = 0.35  # opacity of a tendon inside a body
_MOST_NAMED = 8  # tendons
_MARGINS = (0.08, 0.08, 0.11, 0.06)


def render(
    model: Model,
    motion: ArrayLike | Trajectory,
    path: str | Path | None = None,
    *,
    shapes: int = 6,
    links: Sequence[str] | None = None,
    trail: ArrayLike | Sequence[ArrayLike] | str | None = None,
    paint: str | None = None,
    values: ArrayLike | None = None,
    value_label: str = "",
    title: str | None = None,
    view: tuple[float, float] | None = None,
    obstacles: bool = True,
    colors: Mapping[str, Any] | None = None,
    fineness: Mapping[str, tuple[int, int]] | None = None,
    marks: bool = False,
    size: tuple[int, int] | int = 1200,
) -> np.ndarray:
    """Draw a robot: shaded bodies that hide each other, tendons, and the ground or a wall with shadows.

    Several configurations share one picture: the last one is opaque, and the earlier a configuration, the more
    transparent it is. A planar robot is seen at right angles to its plane. No screen is needed, but the extra `render`
    is.

    Args:
        motion: a configuration, shape (nq,), several configurations, shape (n, nq), or a Trajectory of one motion.
        path: file to write, .png or another format of Pillow; with None no file is written.
        shapes: number of instants of a trajectory that are drawn, equally spaced in time.
        links: names of the links to draw; None draws all of them.
        trail: a curve to draw, shape (m, 3) [m], a list of curves, or the name of a link or frame whose path is drawn.
        paint: quantity that the colours of rods show: "torsion", "bending_y", "bending_z", "elongation", "shear_y",
            "shear_z", "curvature" (the magnitude of both bendings), or "strain" or "stress" (of the fibres along the
            rod, at its surface; stress is the elastic one, of rods with a material).
        values: one number for each configuration, shape (n,), which the colours of soft bodies show.
        value_label: label of the colour scale of `values`, with their unit.
        title: text in the upper left corner.
        view: elevation and azimuth of the eye [deg]; with None a direction is chosen.
        obstacles: whether to draw contact shapes.
        colors: colours of links by their names, each (red, green, blue) from 0 to 1 or a text such as "#aa3377". They
            count where `paint` and `values` do not.
        fineness: numbers of sections along a rod and of points around it, by names of links. Others have 41 and 32.
        marks: True marks what acts on the last configuration: joints of motors by W, joints of prescribed motions by Q,
            wrench inputs by U, with their names, and point loads by arrows along their forces at t = 0, or by F if
            there is no force to be seen.
        size: width and height [pixels], or the width alone.
    Returns:
        The picture, shape (height, width, 3), integers from 0 to 255, which a notebook shows.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: no such link, or PyVista is missing.
    """
    kind = None if path is None else _picture_format(path)
    rows, known = _configurations(model, motion, shapes)
    curves = curves_of(model, trail, known)
    scene = Scene(model, rows, curves, links, paint, values, view, obstacles, size, colors, marks, fineness)
    picture = scene.labelled_picture(rows, curves, value_label, title)
    if path is not None:
        from PIL import Image

        write_whole(Path(path), lambda file: Image.fromarray(picture).save(file, kind))
    return picture.view(Picture)


def _picture_format(path: str | Path) -> str:
    """Format of Pillow that the ending of a file names."""
    loaded_pyvista()  # which brings Pillow
    from PIL import Image

    Image.init()
    kind = Image.registered_extensions().get(Path(path).suffix.lower())
    if kind not in Image.SAVE:
        raise ModelError(f"picture: must end in .png or another format of Pillow (got {Path(path).name!r})")
    return kind


@final
class Scene:
    """Data that all pictures of one model share: its parts, the camera, the background.

    Args:
        rows: configurations that the picture must hold, shape (n, nq). curves: lines that it must hold, shape (m, 3)
            each.
        Others: as for `render`.
    """

    def __init__(
        self,
        model: Model,
        rows: np.ndarray,
        curves: Sequence[np.ndarray],
        links: Sequence[str] | None,
        paint: str | None,
        values: Any,
        view: tuple[float, float] | None,
        obstacles: bool,
        size: tuple[int, int] | int,
        colors: Mapping[str, Any] | None = None,
        marks: bool = False,
        fineness: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        for name in (*(links or ()), *(colors or ()), *(fineness or ())):
            checks.require(
                name in model.links.names, "links", f"must be among the links {sorted(model.links.names)}", name
            )
        own = {name: _given_color(name, color) for name, color in (colors or {}).items()}
        self.model, self.links = model, list(model.links.names if links is None else links)
        fine = _given_fineness(model, fineness or {})
        self.paint = Paint(model, self.links, paint, 1.0, own, fine)
        self._marked = rows[-1] if marks else None
        self._obstacles, self._values = obstacles, values
        points = self._everything(rows, curves)
        has_pins = view is None and plane_of(model) is not None
        self._mounts = mounts(model, self.paint.geometry, rows[-1], points, self.links, has_pins)
        points = np.concatenate([points, *(part.vertices for part in self._mounts)])
        extent = float(np.ptp(points, axis=0).max()) or 1.0
        self.paint = Paint(model, self.links, paint, extent, own, fine)
        self.camera = self._with_room_for_key(self._camera(points, view, size), points)
        if paint is not None:
            painted = self.paint.painted_values(rows)
            self.paint.span = float(np.nanmin(painted)), float(np.nanmax(painted))
        self._levels = _levels(values, len(rows))
        self._points, self._hangs = points, hangs(model, points)
        self._look_from(self.camera)

    def seen_by(self, camera: Camera) -> Scene:
        """The same scene seen by another camera."""
        other = copy(self)
        other._look_from(camera)
        return other

    def _look_from(self, camera: Camera) -> None:
        """Set the camera and what is behind the robot for it."""
        self.camera = camera
        planes = background_planes(self.model, camera, self._points, self._hangs)
        self._background = Background(self.model, camera, planes)
        self._shown_mounts = unseen(self._mounts, planes)

    def all_around(self) -> Camera:
        """Camera that keeps everything in the picture while it turns about the vertical."""
        middle = 0.5 * (self._points.min(axis=0) + self._points.max(axis=0))
        reach = float(np.linalg.norm(self._points - middle, axis=1).max())
        wide = self.camera.size[0] / self.camera.size[1]
        return replace(self.camera, centre=middle, height=2.2 * reach / min(wide, 1.0))

    def picture(self, drawn: Canvas, rows: np.ndarray, curves: Sequence[np.ndarray]) -> np.ndarray:
        """Picture (height, width, 3) of configurations and curves without labels, values from 0 to 1."""
        points = self.paint.geometry.points(rows)
        solid = len(rows) - 1
        bodies = [self._bodies(q, x, self._tint(k)) for k, (q, x) in enumerate(zip(rows, points))]
        opacity = [*np.linspace(*_GHOSTS, max(solid, 1))[-solid:], 1.0] if solid else [1.0]
        shading = [(body.vertices, body.triangles, part) for body, part in zip(bodies, np.square(opacity))]
        shadows = [shadow(plane, self.camera, shading) for plane in self._background.planes]
        image = Composition(self._background.layer(shadows))
        image.lay(self._robot(drawn, merged([bodies[-1], *self._shown_mounts]), points[-1]))
        for layer, part in self._contact_shapes(drawn, rows[-1], points):
            image.blend(layer, part)
        for k in range(solid):
            # at places that all configurations share, such as a clamped end, the solid one shows
            ghost, ahead = self._robot(drawn, bodies[k], points[k]), 5.0 * self.paint.radius
            image.blend(ghost, float(opacity[k]), ahead)
            image.blend(_rim(ghost), min(float(opacity[k]) + _RIM, 1.0), ahead)
        if curves:
            tubes = merged([tube(curve, 0.8 * self.paint.radius, _TRAIL) for curve in curves])
            image.lay(drawn.layer(self.camera, tubes))
        return image.reduced()

    def labelled_picture(
        self, rows: np.ndarray, curves: Sequence[np.ndarray], value_label: str, title: str | None
    ) -> np.ndarray:
        """Picture (height, width, 3) with its labels, integers from 0 to 255."""
        with canvas(self.camera) as drawn:
            picture = self.picture(drawn, rows, curves)
        return self.labels(value_label, title).over(picture)

    def _bodies(self, q: np.ndarray, points: np.ndarray, tint: np.ndarray | None) -> Painted:
        parts = self.paint.bodies(q, points, tint, self.camera.axes[2] if self.camera.is_plane else None)
        return merged([*parts, *(self.paint.pins(q, points, self.camera.axes) if self.camera.is_plane else [])])

    def labels(self, value_label: str = "", title: str | None = None) -> Labels:
        """The labels of a picture: title, scale bar, directions of axes and gravity, colour bar and names of tendons.

        `value_label` is the text at the colour bar of the values by which bodies are coloured.
        """
        labels = Labels(self.camera)
        if title is not None:
            labels.title(title)
        labels.scale_bar()
        labels.directions(self.model.gravity)
        if self.paint.paint is not None:
            low, high = self.paint.span
            factor, unit = readable(max(abs(low), abs(high)), QUANTITIES[self.paint.paint])
            labels.color_bar(factor * low, factor * high, f"{self.paint.paint} [{unit}]")
        elif self._values is not None and np.ptp(self._values) > 0.0:
            labels.color_bar(float(np.min(self._values)), float(np.max(self._values)), value_label)
        if self._marked is not None:
            self._mark(labels, self._marked)
        if 0 < len(self.paint.keys) <= _MOST_NAMED:
            labels.key(self.paint.keys, self.camera.pixels(self._points))
        return labels

    def _mark(self, labels: Labels, q: np.ndarray) -> None:
        """Mark motors, prescribed motions, wrench inputs and point loads at a configuration (nq,)."""
        model, described = self.model, self.model.description
        for name, actuator in described.actuators.items():
            if isinstance(actuator, JointActuator | WrenchInput) and actuator.link in self.links:
                at = 0.0 if isinstance(actuator, JointActuator) else actuator.s
                letter = "W" if isinstance(actuator, JointActuator) else "U"
                labels.mark(self.camera.pixels(frame_pose(model, q, actuator.link, at)[:3, 3]), letter, name)
        for name, motion in described.motions.items():
            if motion.link in self.links:
                labels.mark(self.camera.pixels(frame_pose(model, q, motion.link, 0.0)[:3, 3]), "Q", name)
        if not described.loads:
            return
        poses, forces = forward_kinematics(model, q), load_rows(model, 0.0)
        for k, (name, load) in enumerate(described.loads.items()):
            g = poses[model.loads.node[k]] @ model.loads.placement[k]
            force = g[:3, :3] @ forces[k, 3:] if model.loads.is_body[k] else forces[k, 3:]
            seen = self.camera.axes[:2] @ force / max(float(np.linalg.norm(force)), 1e-300)
            if load.link in self.links and np.linalg.norm(seen) > 0.2:
                labels.force(self.camera.pixels(g[:3, 3]), seen, name)
            elif load.link in self.links:  # a moment, a force towards the eye, or none at t = 0
                labels.mark(self.camera.pixels(g[:3, 3]), "F", name)

    def _robot(self, drawn: Canvas, bodies: Painted, points: np.ndarray) -> Layer:
        """Image of bodies with their tendons; where a body hides its own tendon, the tendon shows faintly through
        it, but not through a plate on which the robot stands or hangs."""
        lines = self.paint.lines(points)
        window = drawn.window(self.camera, np.concatenate([bodies.vertices, lines.vertices]))
        found = drawn.layer(self.camera, bodies, window)
        if self.camera.is_plane:
            _outline(found, 0.3 * self.paint.step)
        if not len(lines.triangles):
            return found
        tendons = drawn.layer(self.camera, lines, window)
        there = np.isfinite(tendons.near)
        behind = found.near[there] - tendons.near[there] - 4.0 * self.paint.radius
        part = np.where(behind < 0.0, 1.0, np.where(behind < self.paint.thickness, _HIDDEN, 0.0)).astype(np.float32)
        if self._shown_mounts:
            plates = drawn.layer(self.camera, merged(self._shown_mounts), window)
            part[plates.near[there] > tendons.near[there]] = 0.0
        found.colors[there] += part[:, None] * (tendons.colors[there] - found.colors[there])
        return Layer(found.colors, np.where(np.isfinite(found.near), found.near, tendons.near), window)

    def _contact_shapes(self, drawn: Canvas, q: np.ndarray, points: np.ndarray) -> Iterator[tuple[Layer, float]]:
        """Images of contact shapes with their opacity, first of the sides that face away from the eye.

        They are drawn slightly behind their place, so that a body whose surface is in the same place hides them.
        """
        low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
        more = 0.15 * float((high - low).max())
        geometry = contact_geometry(self.model, q, low - more, high + more, self.links)
        x, parts, normals = geometry.points(q), ([], []), geometry.normals(geometry.points(q))
        for mesh in geometry.meshes if self._obstacles else ():
            if mesh.kind == "shape":
                v = x[mesh.rows] - 1.5 * self.paint.radius * self.camera.axes[2]
                corners = v[mesh.triangles]
                facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) @ self.camera.axes[2]
                for side, kept in zip(parts, (facing < 0.0, facing >= 0.0)):
                    side.append(Painted(v, mesh.triangles[kept], normals[mesh.rows], np.tile(_OBSTACLE, (len(v), 1))))
        for side, part in zip(parts, _OBSTACLE_OPACITY):
            if side:
                yield drawn.layer(self.camera, merged(side)), part

    def _everything(self, rows: np.ndarray, curves: Sequence[np.ndarray]) -> np.ndarray:
        """All points that the picture must hold."""
        points = self.paint.geometry.points(rows)
        wanted = [mesh.rows for mesh in self.paint.meshes]
        wanted += [line.rows for line in self.paint.geometry.lines if set(line.links) <= set(self.links)]
        seen = [points[:, part].reshape(-1, 3) for part in wanted] + list(curves)
        found = np.concatenate([np.zeros((0, 3)), *seen])
        if not len(found):
            raise ModelError("picture: there is nothing to draw; the links have no bodies")
        if self._obstacles:
            found = np.concatenate([found, self._near(rows[-1], found)])
        return found

    def _near(self, q: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Corners of bounded contact shapes near the robot: within half its size."""
        low, high = points.min(axis=0), points.max(axis=0)
        size = float((high - low).max())
        geometry = contact_geometry(self.model, q, low, high, self.links)
        x = geometry.points(q)
        found = np.concatenate([np.zeros((0, 3)), *(x[mesh.rows] for mesh in geometry.meshes if mesh.kind == "shape")])
        return found[((found > low - 0.5 * size) & (found < high + 0.5 * size)).all(axis=1)]

    def _camera(self, points: np.ndarray, view: tuple[float, float] | None, size: tuple[int, int] | int) -> Camera:
        normal = plane_of(self.model) if view is None else None
        if normal is not None:
            axes = plane_axes(normal, upwards(self.model.gravity))
        else:
            axes = looking(chosen_view(self.model, points) if view is None else view)
        wanted = (size, None) if isinstance(size, int) else size
        left, right, bottom, top = _MARGINS
        scaled = self.paint.paint is not None or self._values is not None
        return framed(axes, points, wanted, (left, right + 0.05 * scaled, bottom, top), normal is not None)

    def _with_room_for_key(self, camera: Camera, points: np.ndarray) -> Camera:
        """A camera whose picture has a free corner for the names of tendons and chambers."""
        if not 0 < len(self.paint.keys) <= _MOST_NAMED:
            return camera
        at_left, at_right, long = Labels(camera).hidden_by_key(self.paint.keys, camera.pixels(points))
        if not min(at_left, at_right):
            return camera
        left, right, bottom, top = _MARGINS
        scaled = self.paint.paint is not None or self._values is not None
        margins = max(left, 0.01 * (long + 5.0)), right + 0.05 * scaled, bottom, top
        return framed(camera.axes, points, camera.size, margins, camera.is_plane)

    def _tint(self, k: int) -> np.ndarray | None:
        return None if self._values is None else ramp(self._levels[k])


def _outline(layer: Layer, step: float) -> None:
    """Darken pixels that are nearer to the eye than a neighbour by more than a step [m]."""
    layer.colors[_edges(layer.near, step)] *= 0.45


def _edges(near: np.ndarray, step: float) -> np.ndarray:
    """Pixels that are nearer to the eye than a neighbour by more than a step [m]."""
    rim = np.zeros(near.shape, dtype=bool)
    for axis in (0, 1):
        for way in (1, -1):
            rim |= near > np.roll(near, way, axis=axis) + step
    return rim


def _rim(layer: Layer) -> Layer:
    """The outline of a layer against what is behind it."""
    rim = _edges(np.where(np.isfinite(layer.near), np.float32(0.0), -np.inf), 1.0)
    return Layer(0.5 * layer.colors, np.where(rim, layer.near, -np.inf), layer.window)


def _configurations(model: Model, motion: Any, shapes: int) -> tuple[np.ndarray, np.ndarray]:
    """Configurations to draw, and all configurations of the motion."""
    if isinstance(motion, Trajectory):
        if motion.q.ndim != 2:
            raise ShapeError(f"motion: a picture shows one motion, got a batch of shape {motion.q.shape[:-2]}")
        count = checks.integer(shapes, "shapes", least=1, most=1000)
        times = np.linspace(motion.t[0], motion.t[-1], count) if count > 1 else motion.t[-1:]
        return motion.q[np.abs(motion.t[:, None] - times).argmin(axis=0)], motion.q
    rows = configuration_rows(model, motion)
    return rows, rows


def configuration_rows(model: Model, q: Any) -> np.ndarray:
    """One configuration or several as rows (n, nq), checked."""
    rows = np.atleast_2d(stack("q", q, model.nq))
    if rows.ndim != 2 or len(rows) == 0:
        raise ShapeError(f"q: expected shape ({model.nq},) or (n, {model.nq}), got {np.shape(q)}")
    return rows


def curves_of(model: Model, trail: Any, rows: np.ndarray) -> list[np.ndarray]:
    """Curves, shape (m, 3) each, of the argument `trail`; the path of a frame is computed at configurations (n, nq)."""
    if trail is None:
        return []
    if isinstance(trail, str):
        return [frame_pose(model, rows, trail)[:, :3, 3]]
    curves = [np.asarray(curve, dtype=np.float64) for curve in ([trail] if np.ndim(trail[0]) == 1 else trail)]
    for curve in curves:
        if curve.ndim != 2 or curve.shape[1] != 3:
            raise ShapeError(f"trail: expected shape (m, 3) or a list of such arrays, got {curve.shape}")
    return curves


def _levels(values: Any, count: int) -> np.ndarray:
    """Position of the value of each configuration on the colour scale, 0 to 1."""
    numbers = np.asarray(np.zeros(count) if values is None else values, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ShapeError(f"values: expected finite numbers of shape ({count},), got shape {numbers.shape}")
    return (numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-300)


@final
class Paint:
    """Coloured facets of a model: its bodies, and tubes for its tendons, springs and ties.

    Args:
        links: names of the links to draw.
        paint: one of SHAPE_QUANTITIES, which the colours of rods show; with None rods have their own colour.
        size: extent of the picture [m], to which the thickness of lines is proportional.
        colors: colours (3,) of links by their names. fineness: as for `robot_geometry`.
    """

    def __init__(
        self,
        model: Model,
        links: Sequence[str],
        paint: str | None,
        size: float,
        colors: Mapping[str, np.ndarray] | None = None,
        fineness: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        if paint is not None and paint not in SHAPE_QUANTITIES:
            raise ModelError(f"paint: must be one of {sorted(SHAPE_QUANTITIES)} (got {paint!r})")
        self.geometry: Geometry = robot_geometry(model, fineness)
        self.paint, self.radius, self._colors = paint, 0.0032 * size, dict(colors or {})
        self.meshes = [mesh for mesh in self.geometry.meshes if mesh.name in links]
        self._lines = [line for line in self.geometry.lines if set(line.links) <= set(links)]
        tendons = [line.name for line in self._lines if line.kind == "tendon"]
        self.tendons = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(tendons)}
        chambers = [line.name for line in self._lines if line.kind == "chamber"]
        self.keys = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate([*tendons, *chambers])}
        springs = model.description.springs
        self._coils = {name for name, x in springs.items() if not x.slack and (x.stiffness > 0.0 or x.law is not None)}
        self.span = (0.0, 1.0)
        rods = [body for body in model.links.body if body is not None and body.is_slender]
        widths = [np.linalg.norm(body.cross_outline(s, 24), axis=1).max() for body in rods for s in (0.0, 0.5, 1.0)]
        self.thickness = 2.2 * float(max(widths, default=0.0))  # of rods, through which tendons shine [m]
        self.step = 2.0 * self.radius  # between links of planar robots, towards the eye [m]
        self._model = model

    def painted_values(self, q: np.ndarray) -> np.ndarray:
        """Painted quantity at all points and configurations (..., nq); NaN where undefined."""
        return shape_values(self.geometry, self.paint or "curvature", q)

    def bodies(
        self, q: np.ndarray, points: np.ndarray, tint: np.ndarray | None = None, eye: np.ndarray | None = None
    ) -> list[Painted]:
        """Bodies, ties and springs at one configuration.

        Args:
            points: all points at q.
            tint: colour of soft bodies; with None they have their own.
            eye: for planar robots the direction towards the eye, along which links are stacked.
        """
        values = None if self.paint is None else self._ramp(self.painted_values(q))
        parts = []
        for k, mesh in enumerate(self.meshes):
            vertices = points[mesh.rows]
            color = self._colors.get(mesh.name) if tint is None else None
            colors = np.tile(_color(mesh, tint) if color is None else color, (len(vertices), 1))
            if values is not None and mesh.kind == "rod":
                colors = values[mesh.rows]
            if mesh.kind == "rod" and not np.ptp(self.geometry.local[mesh.rows], axis=0).any():  # without an outline
                centres = np.array([vertices[mesh.s == s].mean(axis=0) for s in np.unique(mesh.s)])
                parts.append(tube(centres, 1.5 * self.radius, colors[0]))
            shifted = vertices if eye is None else vertices + k * self.step * eye
            parts.append(Painted(shifted, mesh.triangles, mesh.normals(vertices), colors))
        for line in self._lines:
            ends = points[line.rows]
            if line.kind == "tie" and np.linalg.norm(ends[1] - ends[0]) > 2.0 * self.radius:
                parts.append(tube(ends, 1.7 * self.radius, _TIE))
            elif line.kind == "spring":
                coil = line.name in self._coils and len(ends) == 2
                parts.append(tube(_coil(ends, 4.0 * self.radius) if coil else ends, self.radius, _SPRING))
        return parts

    def pins(self, q: np.ndarray, points: np.ndarray, axes: np.ndarray) -> list[Painted]:
        """Hinges of a planar robot, and supports of those on the world."""
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
        for place, is_on_world in found:
            at = place + (front - (place @ eye)) * eye + max(float((points @ eye).max()), 0.0) * eye
            parts += [
                _disc(at, axes, 2.6 * self.radius, _SPRING),
                _disc(at + self.step * eye, axes, 1.3 * self.radius, _WHITE),
            ]
            if is_on_world:
                corners = at - self.step * eye + self.radius * np.array([(0, 0), (-5, -8), (5, -8)]) @ axes[:2]
                parts.append(_flat(corners, eye, _TIE))
        return parts

    def lines(self, points: np.ndarray) -> Painted:
        """Tendons and chambers as tubes, chambers as wide as they are."""
        inside = [line for line in self._lines if line.kind in ("tendon", "chamber")]
        return merged([tube(points[line.rows], line.radius if line.kind == "chamber" else self.radius,
                            self.keys[line.name]) for line in inside])  # fmt: skip

    def _ramp(self, values: np.ndarray) -> np.ndarray:
        low, high = self.span
        return ramp(np.nan_to_num((values - low) / max(high - low, 1e-300)))


def _given_fineness(model: Model, fineness: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Numbers of sections and of points around rods that the user gives, by names of links."""
    out = {}
    for name, numbers in fineness.items():
        where, rule = f"fineness > {name}", "must be two integers, of a link whose body is a rod"
        good = name in model.rods and isinstance(numbers, tuple | list) and len(numbers) == 2
        checks.require(good, where, rule, numbers)
        most = zip(("sections", "points around"), numbers, (2, 3))
        along, around = (checks.integer(x, f"{where}: {what}", least=least, most=1000) for what, x, least in most)
        out[name] = int(along), int(around)
    return out


def _given_color(name: str, color: Any) -> np.ndarray:
    """A colour that the user gives for a link, (3,)."""
    where, rule = f"colors > {name}", "must be three numbers from 0 to 1, or a text such as '#aa3377'"
    if isinstance(color, str):
        checks.require(re.fullmatch("#[0-9a-fA-F]{6}", color) is not None, where, rule, color)
        return rgb(color)
    given = checks.array(color, (3,), where, rule)
    checks.require(bool(((given >= 0.0) & (given <= 1.0)).all()), where, rule, color)
    return given


def _color(mesh: Mesh, tint: np.ndarray | None) -> np.ndarray:
    if mesh.color is not None:
        return np.array(mesh.color[:3])
    own = _RIGID if mesh.kind == "rigid" else _SOFT
    if tint is None:
        return own
    return tint if mesh.kind != "rigid" else 0.6 * own + 0.4 * tint


def tube(line: np.ndarray, radius: float | np.ndarray, color: np.ndarray) -> Painted:
    """Round tube along a line (n, 3), closed at its ends. The radius is a number, or one for each point (n,) [m]."""
    radius = np.broadcast_to(radius, len(line))
    apart = np.append(True, np.linalg.norm(np.diff(line, axis=0), axis=1) > 1e-3 * radius[1:])
    line, radius = line[apart], radius[apart]
    if len(line) < 2:
        return Painted(np.zeros((0, 3)), np.zeros((0, 3), dtype=int), np.zeros((0, 3)), np.zeros((0, 3)))
    along = np.gradient(line, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    side = _transported_normals(along)
    other = np.cross(along, side)
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    normals = np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * other[:, None]
    rings = line[:, None] + radius[:, None, None] * normals
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
    """Convex polygon that faces the eye."""
    k = np.arange(1, len(corners) - 1)
    ones = np.ones((len(corners), 1))
    return Painted(corners, np.stack([0 * k, k, k + 1], axis=1), ones * eye, ones * color)


def _transported_normals(along: np.ndarray) -> np.ndarray:
    """Unit normals of a line with unit tangents (n, 3), transported in parallel along it."""
    side = np.zeros_like(along)
    start = np.eye(3)[np.argmin(np.abs(along[0]))]
    for k, tangent in enumerate(along):
        start = start - (start @ tangent) * tangent
        size = np.linalg.norm(start)
        start = start / size if size > 1e-9 else np.cross(tangent, np.eye(3)[np.argmin(np.abs(tangent))])
        side[k] = start
    return side


def _coil(ends: np.ndarray, radius: float) -> np.ndarray:
    """Helix of a spring between two points."""
    along = ends[1] - ends[0]
    length = float(np.linalg.norm(along))
    if length < 4.0 * radius:
        return ends
    axis = along / length
    side = _transported_normals(axis[None])[0]
    s = np.linspace(0.0, 1.0, 24 * _TURNS + 1)
    size = radius * np.clip(8.0 * np.minimum(s, 1.0 - s), 0.0, 1.0)[:, None]
    angle = 2.0 * np.pi * _TURNS * s[:, None]
    return ends[0] + s[:, None] * along + size * (np.cos(angle) * side + np.sin(angle) * np.cross(axis, side))


_FRAMES = 1_000_000  # of a film at most
_SHORT = 3.0  # duration below which a motion is slowed down [s]
_FRAMED = 60  # number of instants to which the camera is fitted


def film(
    model: Model,
    trajectory: Trajectory,
    path: str | Path,
    *,
    fps: float,
    speed: float | None,
    trail: str | None,
    follow: str | None,
    orbit: float,
    links: Sequence[str] | None,
    paint: str | None,
    view: tuple[float, float] | None,
    obstacles: bool,
    size: tuple[int, int],
    progress: bool | Callable[[float], Any],
) -> Path:
    """Film of a motion; see `Trajectory.animate`."""
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a film shows one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    checks.number(fps, "fps", above=0.0)
    checks.number(orbit, "orbit")
    if not len(trajectory.t):
        raise ShapeError("trajectory: a film needs a motion of at least one time, got none")
    speed = chosen_speed(float(trajectory.t[-1] - trajectory.t[0])) if speed is None else speed
    checks.number(speed, "speed", above=0.0)
    count = (trajectory.t[-1] - trajectory.t[0]) * fps / speed
    checks.require(count < _FRAMES, "film", f"must have at most {_FRAMES:,} frames; lower fps or raise speed", count)
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise ModelError(f"film: must end in .gif or .mp4 (got {path.name!r})")
    size = size[0] + size[0] % 2, size[1] + size[1] % 2  # codecs need even numbers
    times = np.arange(trajectory.t[0], trajectory.t[-1] + 1e-9, speed / fps)
    rows = configurations_at(model, trajectory, times)
    curve = None if trail is None else frame_pose(model, rows, trail)[:, :3, 3]
    followed = None if follow is None else frame_pose(model, rows, follow)[:, :3, 3]
    sample = rows[np.unique(np.linspace(0, len(rows) - 1, _FRAMED).astype(int))]
    framed = sample if followed is None else rows[:1]
    curves = [] if curve is None or followed is not None else [curve]
    scene = Scene(model, framed, curves, links, paint, None, view, obstacles, size)
    if paint is not None:
        painted = scene.paint.painted_values(sample)
        scene.paint.span = float(np.nanmin(painted)), float(np.nanmax(painted))
    cameras = list(_cameras(scene, len(rows), followed, np.radians(orbit) / fps))

    def frames() -> Iterator[np.ndarray]:
        with (
            canvas(scene.camera) as drawn,
            progress_bar(progress, len(rows), "filming", "frames", PATIENCE) as advance,
        ):
            for k, (t, q, camera) in enumerate(zip(times, rows, cameras)):
                seen = scene if camera is scene.camera else scene.seen_by(camera)
                grown = [] if curve is None or k == 0 else [curve[: k + 1]]
                labels = seen.labels()
                labels.clock(float(t), speed)
                yield labels.over(seen.picture(drawn, q[None], grown))
                advance(k + 1)

    _WRITERS[path.suffix](path, frames(), fps, size)
    return path


def chosen_speed(duration: float) -> float:
    """Seconds of a motion per second of its film: 1, or less for a short motion, whose film takes some seconds."""
    return 1.0 if duration >= _SHORT or duration <= 0.0 else nice_number(duration / _SHORT)


def configurations_at(model: Model, trajectory: Trajectory, times: np.ndarray) -> np.ndarray:
    """Configurations of one motion at times within it, interpolated on the manifold; shape (n, nq)."""
    k = np.clip(np.searchsorted(trajectory.t, times, side="right") - 1, 0, max(len(trajectory.t) - 2, 0))
    if len(trajectory.t) == 1:
        return trajectory.q[k]
    before, after = trajectory.q[k], trajectory.q[k + 1]
    part = (times - trajectory.t[k]) / (trajectory.t[k + 1] - trajectory.t[k])
    return integrate(model, before, np.clip(part, 0.0, 1.0)[:, None] * difference(model, before, after))


def _cameras(scene: Scene, count: int, followed: np.ndarray | None, turn: float) -> Iterator[Camera]:
    """Camera of each frame: it moves with a followed point (n, 3) and turns about the vertical by `turn` a frame."""
    start = scene.camera if turn == 0.0 else scene.all_around()
    for k in range(count):
        if turn == 0.0 and followed is None:
            yield start
            continue
        axes = start.axes @ _about_z(-turn * k)
        yield replace(start, axes=axes, centre=start.centre + (0.0 if followed is None else followed[k] - followed[0]))


def _about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: float, size: tuple[int, int]) -> None:
    from PIL import Image

    images = (Image.fromarray(frame).quantize(255) for frame in frames)
    first = next(images)
    how = {"save_all": True, "append_images": images, "duration": 1000.0 / fps, "loop": 0, "disposal": 1}
    write_whole(path, lambda file: first.save(file, "GIF", **how))


def write_mp4(path: Path, frames: Iterator[np.ndarray], fps: float, size: tuple[int, int]) -> None:
    """Write frames (height, width, 3) of integers from 0 to 255 as a film in H.264.

    Args:
        fps: frames a second. size: width and height, even numbers.
    Raises:
        ModelError: imageio-ffmpeg is missing, or its message if it fails.
    """
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        raise ModelError("film: an .mp4 film needs imageio-ffmpeg: pip install 'lissom[render]'") from None
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", f"{fps:.12g}", "-i", "-"]
    coded = ["-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-an", "-f", "mp4"]
    with whole(path) as new:
        command = [get_ffmpeg_exe(), "-y", "-v", "error", *raw, *coded, str(new)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as coder:
            with suppress(BrokenPipeError):  # its message follows
                for frame in frames:
                    coder.stdin.write(np.ascontiguousarray(frame).tobytes())  # pyright: ignore[reportOptionalMemberAccess]
            words = coder.communicate()[1].decode(errors="replace").strip()
        if coder.returncode != 0:
            raise ModelError(f"film: ffmpeg could not write {path.name!r} ({words})")


_WRITERS = {".gif": _write_gif, ".mp4": write_mp4}
