"""Pictures of robots by PyVista, which needs no screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.backdrop import Backdrop, planes_behind, shadow
from lissom.viewing.building import contact_geometry
from lissom.viewing.camera import Camera, framed, looking, plane_axes, plane_of, upwards
from lissom.viewing.canvas import FINER, Canvas, Layer, Painted, canvas, loaded_pyvista, together
from lissom.viewing.labels import Labels
from lissom.viewing.painting import Paint, tube
from lissom.viewing.quantities import QUANTITIES, ramp
from lissom.viewing.style import rgb

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_GHOST = (0.14, 0.42)  # how opaque the first and the last but one of several shapes are
_SHAPE = (0.36, 0.16)  # how opaque are sides of what a robot may touch that face away, and towards the eye
_HIDDEN = 0.35  # how much is seen of a tendon inside a body
_MOST_NAMED = 8  # tendons
_OBSTACLE, _TRAIL = rgb("#7fa3c7"), rgb("#b5179e")
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
    size: tuple[int, int] | int = 1200,
) -> np.ndarray:
    """Picture of a robot as it looks: smooth bodies that hide each other, tendons, ground or wall with shadows.

    Several configurations stand in one picture, the last one solid, those before it the more transparent the earlier
    they are. A robot whose every motion is parallel to a plane is seen square on. Needs no screen, but the extra
    `render`.

    Args:
        motion: a configuration (nq,), several (n, nq), or a Trajectory of one motion.
        path: file to write, .png or another format of Pillow; None writes none.
        shapes: how many instants of a trajectory are drawn, equally apart.
        links: names of the links to draw; None is all of them.
        trail: a curve to draw, shape (m, 3) [m], a list of such, or the name of a link or frame, whose path it is.
        paint: what rods show by colour: "torsion", "bending_y", "bending_z", "elongation", "shear_y", "shear_z",
            "curvature", the size of both bendings, or "strain" of the fibres along the rod at its surface.
        values: one number for each configuration, shape (n,), which the colour of soft bodies tells.
        value_label: of the scale of these colours, with its unit.
        title: words above the picture.
        view: elevation and azimuth of the eye [deg]; None chooses.
        obstacles: whether shapes that the robot may touch are drawn.
        size: width and height [pixels], or the width alone.
    Returns:
        The picture, shape (height, width, 3), whole numbers from 0 to 255.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: no such link, or PyVista is missing.
    """
    kind = None if path is None else _picture_format(path)
    rows, sources = _configurations(model, motion, shapes)
    curves = _curves(model, trail, sources)
    scene = Scene(model, rows, curves, links, paint, values, view, obstacles, size)
    with canvas(scene.camera) as drawn:
        picture = scene.picture(drawn, rows, curves)
    labels = scene.labels(value_label if paint is None else f"{paint} [{QUANTITIES[paint]}]", title)
    found = labels.over(picture)
    if path is not None:
        from PIL import Image

        write_whole(Path(path), lambda file: Image.fromarray(found).save(file, kind))
    return found


def _picture_format(path: str | Path) -> str:
    """The format that a file's ending names, of those that can be written."""
    loaded_pyvista()  # which brings Pillow
    from PIL import Image

    Image.init()
    kind = Image.registered_extensions().get(Path(path).suffix.lower())
    if kind not in Image.SAVE:
        raise ModelError(f"picture: must end in .png or another format of Pillow (got {Path(path).name!r})")
    return kind


@final
class Scene:
    """What is drawn of a model, from where, before what.

    Args:
        rows: configurations (n, nq) that must be in the picture. curves: lines (m, 3) besides.
        Others: as of render.
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
    ) -> None:
        for name in links or ():
            checks.require(name in model.links.names, "links", f"must be among {sorted(model.links.names)}", name)
        self.model, self.links = model, list(model.links.names if links is None else links)
        self.paint = Paint(model, self.links, paint, 1.0)
        self._obstacles, self._values = obstacles, values
        points = self._everything(rows, curves)
        extent = float(np.ptp(points, axis=0).max()) or 1.0
        self.paint = Paint(model, self.links, paint, extent)
        self.camera = self._camera(points, view, size)
        if paint is not None:
            painted = self.paint.painted_values(rows)
            self.paint.span = float(np.nanmin(painted)), float(np.nanmax(painted))
        self._levels = _levels(values, len(rows))
        self._points = points
        self._backdrop = Backdrop(model, self.camera, planes_behind(model, self.camera, points))

    def seen_by(self, camera: Camera) -> Scene:
        """The same looked at by another camera."""
        other = copy(self)
        other.camera = camera
        other._backdrop = Backdrop(self.model, camera, planes_behind(self.model, camera, self._points))
        return other

    def all_around(self) -> Camera:
        """The camera moved so that all stays in the picture when it goes round."""
        middle = 0.5 * (self._points.min(axis=0) + self._points.max(axis=0))
        reach = float(np.linalg.norm(self._points - middle, axis=1).max())
        wide = self.camera.size[0] / self.camera.size[1]
        return replace(self.camera, centre=middle, height=2.2 * reach / min(wide, 1.0))

    def picture(self, drawn: Canvas, rows: np.ndarray, curves: Sequence[np.ndarray]) -> np.ndarray:
        """Colours (height, width, 3) from 0 to 1 of configurations, the last of them solid, and of curves."""
        points = self.paint.geometry.points(rows)
        solid = len(rows) - 1
        bodies = [self._bodies(q, x, self._tint(k)) for k, (q, x) in enumerate(zip(rows, points))]
        opacity = [*np.linspace(*_GHOST, max(solid, 1))[-solid:], 1.0] if solid else [1.0]
        darkness = [(body.vertices, body.triangles, part) for body, part in zip(bodies, np.square(opacity))]
        shadows = [shadow(plane, self.camera, darkness) for plane in self._backdrop.planes]
        image = _Composed(self._backdrop.layer(shadows))
        image.lay(self._robot(drawn, bodies[-1], points[-1]))
        for layer, part in self._shapes(drawn, rows[-1], points):
            image.blend(layer, part)
        for k in range(solid):
            # where shapes lie in each other, as at a clamped end, the solid one shows
            image.blend(self._robot(drawn, bodies[k], points[k]), float(opacity[k]), 5.0 * self.paint.radius)
        if curves:
            tubes = together([tube(curve, 0.8 * self.paint.radius, _TRAIL) for curve in curves])
            image.lay(drawn.layer(self.camera, tubes))
        return image.reduced()

    def _bodies(self, q: np.ndarray, points: np.ndarray, tint: np.ndarray | None) -> Painted:
        parts = self.paint.bodies(q, points, tint, self.camera.axes[2] if self.camera.is_plane else None)
        return together([*parts, *(self.paint.pins(q, points, self.camera.axes) if self.camera.is_plane else [])])

    def labels(self, value_label: str, title: str | None = None) -> Labels:
        """Marks that every picture has."""
        labels = Labels(self.camera)
        if title is not None:
            labels.title(title)
        labels.scale_bar()
        labels.directions(self.model.gravity)
        if self.paint.paint is not None:
            labels.color_bar(*self.paint.span, value_label)
        elif self._values is not None and np.ptp(self._values) > 0.0:
            labels.color_bar(float(np.min(self._values)), float(np.max(self._values)), value_label)
        if 0 < len(self.paint.tendons) <= _MOST_NAMED:
            labels.key(self.paint.tendons, self.camera.pixels(self._points))
        return labels

    def _robot(self, drawn: Canvas, bodies: Painted, points: np.ndarray) -> Layer:
        """Bodies with tendons, which are seen faintly where their own body hides them."""
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
        found.colors[there] += part[:, None] * (tendons.colors[there] - found.colors[there])
        return Layer(found.colors, np.where(np.isfinite(found.near), found.near, tendons.near), window)

    def _shapes(self, drawn: Canvas, q: np.ndarray, points: np.ndarray) -> Iterator[tuple[Layer, float]]:
        """What the robot may touch, sides that face away first; a little behind bodies that have the same surface."""
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
        for side, part in zip(parts, _SHAPE):
            if side:
                yield drawn.layer(self.camera, together(side)), part

    def _everything(self, rows: np.ndarray, curves: Sequence[np.ndarray]) -> np.ndarray:
        """Points that the picture must hold."""
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
        """Corners of shapes with an end that the robot may touch, no farther from it than it is long."""
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

    def _tint(self, k: int) -> np.ndarray | None:
        return None if self._values is None else ramp(self._levels[k])


@final
class _Composed:
    """A picture that layers are laid into, at FINER pixels."""

    def __init__(self, behind: Layer) -> None:
        self.colors = np.repeat(np.repeat(behind.colors, FINER, axis=0), FINER, axis=1)
        self.near = np.repeat(np.repeat(behind.near, FINER, axis=0), FINER, axis=1)

    def lay(self, layer: Layer) -> None:
        """What is nearer hides what is there."""
        colors, near = self.colors[layer.window], self.near[layer.window]
        seen = layer.near > near
        colors[seen], near[seen] = layer.colors[seen], layer.near[seen]

    def blend(self, layer: Layer, part: float, ahead: float = 0.0) -> None:
        """What is nearer, by so much [m] at least, is laid over it, a part of it opaque, and hides nothing."""
        colors, near = self.colors[layer.window], self.near[layer.window]
        seen = layer.near > near + np.float32(ahead)
        colors[seen] += np.float32(part) * (layer.colors[seen] - colors[seen])

    def reduced(self) -> np.ndarray:
        """The means of the pixels drawn for each of the picture."""
        height, width = self.near.shape
        return self.colors.reshape(height // FINER, FINER, width // FINER, FINER, 3).mean(axis=(1, 3))


def _outline(layer: Layer, step: float) -> None:
    """Darken the rim of everything that is nearer than what is beside it by more than a step [m]."""
    rim = np.zeros(layer.near.shape, dtype=bool)
    for axis in (0, 1):
        for way in (1, -1):
            rim |= layer.near > np.roll(layer.near, way, axis=axis) + step
    layer.colors[rim] *= 0.45


def chosen_view(model: Model, points: np.ndarray) -> tuple[float, float]:
    """From above and aside, where most is seen of points (n, 3), and walls that rods are clamped to from their free
    side."""
    best = (20.0, -60.0)
    spread = points - points.mean(axis=0)
    area = {}
    for azimuth in (quarter + part for quarter in (-180, -90, 0, 90) for part in (25, 35, 45, 55, 65)):
        axes = looking((best[0], float(azimuth)))
        wide = np.linalg.svd((spread @ axes[:2].T)[:: 1 + len(spread) // 2000], compute_uv=False)
        faces = [_base(model, k)[:3, 0] @ axes[2] for k in range(len(model.links.names)) if _is_clamped(model, k)]
        behind = any(face < 0.3 for face in faces)
        turned = abs((azimuth + 60 + 180) % 360 - 180) / 180.0
        area[azimuth] = float(wide.prod()) * (0.4 if behind else 1.0) * (1.0 - 0.25 * turned)
    return best[0], float(max(area, key=lambda k: area[k]))


def _is_clamped(model: Model, k: int) -> bool:
    """Whether a link is a rod that is clamped to the world, about level."""
    clamped = model.links.parent[k] < 0 and model.links.names[k] in model.rods and model.links.joint[k].nv == 0
    return bool(clamped and abs(_base(model, k)[:3, 0] @ upwards(model.gravity)) < 0.7)


def _base(model: Model, k: int) -> np.ndarray:
    place = model.description.links[model.links.names[k]].placement
    return np.eye(4) if place is None else np.asarray(place, dtype=np.float64)


def _configurations(model: Model, motion: Any, shapes: int) -> tuple[np.ndarray, np.ndarray]:
    """Those that are drawn, and all that are known."""
    if isinstance(motion, Trajectory):
        if motion.q.ndim != 2:
            raise ShapeError(f"motion: a picture shows one motion, got a batch of shape {motion.q.shape[:-2]}")
        count = checks.integer(shapes, "shapes", least=1, most=1000)
        times = np.linspace(motion.t[0], motion.t[-1], count) if count > 1 else motion.t[-1:]
        return motion.q[np.abs(motion.t[:, None] - times).argmin(axis=0)], motion.q
    rows = np.atleast_2d(stack("q", motion, model.nq))
    if rows.ndim != 2 or len(rows) == 0:
        raise ShapeError(f"q: expected shape ({model.nq},) or (n, {model.nq}), got {np.shape(motion)}")
    return rows, rows


def _curves(model: Model, trail: Any, rows: np.ndarray) -> list[np.ndarray]:
    if trail is None:
        return []
    if isinstance(trail, str):
        return [frame_pose(model, rows, trail)[:, :3, 3]]
    curves = [np.asarray(curve, dtype=np.float64) for curve in ([trail] if np.ndim(trail[0]) == 1 else trail)]
    for curve in curves:
        if curve.ndim != 2 or curve.shape[1] != 3:
            raise ShapeError(f"trail: expected shape (m, 3) or a list of such, got {curve.shape}")
    return curves


def _levels(values: Any, count: int) -> np.ndarray:
    """Where each configuration stands between the first colour, 0, and the last, 1."""
    numbers = np.asarray(np.zeros(count) if values is None else values, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ShapeError(f"values: expected finite numbers of shape ({count},), got shape {numbers.shape}")
    return (numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-300)
