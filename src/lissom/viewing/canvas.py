"""Layers of a picture: surfaces drawn by PyVista without a screen, ground and walls behind them, marks on them (scale
bar, axes, names, colour bar, time, title), and their composition."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.viewing.camera import Camera, base_placement, upwards
from lissom.viewing.colors import INK, ramp, rgb

_LOAD = "#c0392b"
_MARKS = {"W": "#b5179e", "Q": "#2456a6", "U": "#7a5195", "F": _LOAD}  # motors, motions, wrench inputs, loads
_AXES = ("#c0392b", "#2e7d46", "#2456a6")
_FINER = 3  # pixels drawn for each pixel of the picture, along each side


def nice_number(most: float) -> float:
    """Largest of 1, 2 and 5 times a power of ten that is not above `most`."""
    power = 10.0 ** np.floor(np.log10(max(most, 1e-300)))
    return float(power * max(k for k in (1.0, 2.0, 5.0) if k * power <= most * (1.0 + 1e-9)))


@lru_cache(maxsize=16)
def _font(size: int, bold: bool = False) -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), size)


@final
class Labels:
    """Marks over a picture. Their unit of length follows its width."""

    def __init__(self, camera: Camera) -> None:
        from PIL import Image, ImageDraw

        self.camera = camera
        width, height = camera.size
        self._image = Image.new("RGBA", (_FINER * width, _FINER * height), (255, 255, 255, 0))
        self._draw = ImageDraw.Draw(self._image)
        self.unit = _FINER * min(width, 2.0 * height) / 100.0
        self._rows, self._has_bar = 0.0, False
        self._places: list[np.ndarray] = []  # of marks

    def over(self, picture: np.ndarray) -> np.ndarray:
        """The picture (height, width, 3), values from 0 to 1, with the marks on it; integers from 0 to 255."""
        from PIL import Image

        marks = self._image.resize(self.camera.size, Image.Resampling.BOX)
        base = Image.fromarray(np.round(255.0 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)).convert("RGBA")
        return np.asarray(Image.alpha_composite(base, marks).convert("RGB"))

    def text(self, x: float, y: float, words: str, anchor: str = "ls", size: float = 2.0, bold: bool = False) -> float:
        """Write words at a place in units from the lower left corner; returns their width in units."""
        font = _font(max(round(size * self.unit), 6), bold)
        self._draw.text(self._at(x, y), words, fill=INK, font=font, anchor=anchor)
        return self._draw.textlength(words, font=font) / self.unit

    def scale_bar(self) -> None:
        """Draw a length at the lower left."""
        pixels = self.camera.scale
        length = nice_number(0.2 * self.camera.size[0] / pixels)
        long = length * pixels * _FINER / self.unit
        self._line([(3.0, 3.0), (3.0 + long, 3.0)], 0.35)
        for x in (3.0, 3.0 + long):
            self._line([(x, 2.4), (x, 3.6)], 0.35)
        self.text(3.0 + 0.5 * long, 4.3, _length(length), "ms")

    def directions(self, gravity: np.ndarray) -> None:
        """Draw the axes of the world at the lower right, and gravity beside them."""
        right, up, eye = self.camera.axes
        centre = np.array([self.width - 6.5, 4.6])
        order = np.argsort(eye)  # axes towards the eye last
        for k in order.tolist():
            tip = 3.2 * np.array([right[k], up[k]])
            if np.linalg.norm(tip) > 0.6:
                self._arrow(centre, centre + tip, _AXES[k])
                away = centre + tip + 1.2 * tip / np.linalg.norm(tip)
                self._draw.text(self._at(*away), "xyz"[k], fill=_AXES[k], font=self._small(True), anchor="mm")
        size = float(np.linalg.norm(gravity))
        seen = np.array([right @ gravity, up @ gravity]) / max(size, 1e-300)
        if np.linalg.norm(seen) > 0.2:
            start = centre + np.array([-7.0, 1.0])
            self._arrow(start - 1.8 * seen, start + 1.8 * seen, INK)
            self._draw.text(self._at(start[0] - 1.0, start[1]), "g", fill=INK, font=self._small(True), anchor="rm")

    def title(self, words: str) -> None:
        """Write a title at the upper left."""
        self.text(3.0, self.height - 4.2, words, size=2.4, bold=True)
        self._rows += 1.3

    def clock(self, t: float, speed: float = 1.0) -> None:
        """Write the time at the middle of the lower edge, and how much slower or faster than the motion the film is."""
        digits = 2 if speed > 0.2 else 3 if speed > 0.02 else 4
        pace = f", {1.0 / speed:.3g} times slower" if speed < 1.0 else f", {speed:.3g} times faster"
        self.text(0.5 * self.width, 3.0, f"t = {t:.{digits}f} s{pace if speed != 1.0 else ''}", "ms", 2.2)

    def key(self, colors: dict[str, np.ndarray], pixels: np.ndarray) -> None:
        """List names beside their colours, in the upper corner where they hide less of a robot at pixels (n, 3)."""
        at_left, at_right, long = self.hidden_by_key(colors, pixels)
        start = 3.0 if at_left <= at_right or self._has_bar else self.width - 3.0 - long
        for k, (name, color) in enumerate(colors.items()):
            row = self.height - 4.2 - 2.8 * (k + (self._rows if start == 3.0 else 0.0))
            self._line([(start, row + 0.7), (start + 2.6, row + 0.7)], 0.55, _painted(color))
            self.text(start + 3.4, row, name)

    def hidden_by_key(self, colors: Iterable[str], pixels: np.ndarray) -> tuple[int, int, float]:
        """Number of pixels (n, 3) that `key` would hide in the left and in the right corner, and its width in units."""
        names = list(colors)
        long = 4.5 + max(self._draw.textlength(name, font=self._small(False)) for name in names) / self.unit
        x, y = pixels[:, 0] * _FINER / self.unit, self.height - pixels[:, 1] * _FINER / self.unit
        tall = y > self.height - 4.0 - 2.8 * (len(names) + self._rows)
        at_left, at_right = ((x < 4.0 + long) & tall).sum(), ((x > self.width - 4.0 - long) & tall).sum()
        return int(at_left), int(at_right), long

    def color_bar(self, low: float, high: float, label: str) -> None:
        """Draw the scale of colours at the right."""
        self._has_bar = True
        x, bottom, top = self.width - 9.0, 0.38 * self.height, 0.82 * self.height
        levels = np.linspace(0.0, 1.0, 128)
        edges = bottom + (top - bottom) * np.append(levels, levels[-1] + levels[1])
        for level, y, Y in zip(levels, edges, edges[1:]):
            self._draw.rectangle([self._at(x, Y), self._at(x + 1.6, y)], fill=_painted(ramp(level)))
        for value, y in ((low, bottom), (0.5 * (low + high), 0.5 * (bottom + top)), (high, top)):
            self.text(x + 2.1, y, f"{value:.3g}", "lm", 1.8)
        self.text(self.width - 1.5, top + 2.4, label, "rs")

    def mark(self, pixel: np.ndarray, letter: str, name: str) -> None:
        """Draw a disc with a letter at a pixel (3,), and a name beside it. Marks at one place stand side by side."""
        at = self._free_place(pixel)
        x, y = at
        box = [self._at(x - 1.5, y + 1.5), self._at(x + 1.5, y - 1.5)]
        self._draw.ellipse(box, fill=_MARKS[letter], outline=(255, 255, 255), width=max(round(0.2 * self.unit), 1))
        self._draw.text(self._at(x, y), letter, fill=(255, 255, 255), font=self._small(True), anchor="mm")
        self.text(x + 2.0, y, name, "lm", 1.8)

    def force(self, pixel: np.ndarray, seen: np.ndarray, name: str) -> None:
        """Draw an arrow that ends at a pixel (3,), along a direction `seen` (2,) of unit length or shorter, and a
        name at its start. It begins at the pixel if its start would not be in the picture."""
        at = np.array([pixel[0] * _FINER / self.unit, self.height - pixel[1] * _FINER / self.unit])
        start, end = at - 9.0 * seen, at
        if not ((start > 3.0) & (start < np.array([self.width, self.height]) - 3.0)).all():
            start, end = at, at + 9.0 * seen
        self._arrow(start, end, _LOAD)
        x, y = (start - 1.2 * seen).tolist()
        self.text(x, y, name, "mm", 1.8)

    def _free_place(self, pixel: np.ndarray) -> np.ndarray:
        """A place in units at a pixel (3,), above the marks that stand there already."""
        at = np.array([pixel[0] * _FINER / self.unit, self.height - pixel[1] * _FINER / self.unit])
        while any(np.linalg.norm(at - other) < 2.5 for other in self._places):
            at = np.array([at[0], at[1] + 3.2])
        self._places.append(at)
        return at

    @property
    def width(self) -> float:
        """Width of the picture in units."""
        return self._image.width / self.unit

    @property
    def height(self) -> float:
        """Height of the picture in units."""
        return self._image.height / self.unit

    def _small(self, bold: bool) -> Any:
        return _font(max(round(2.0 * self.unit), 6), bold)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return x * self.unit, self._image.height - y * self.unit

    def _line(self, points: list[tuple[float, float]], width: float, color: Any = INK) -> None:
        self._draw.line([self._at(*p) for p in points], fill=color, width=max(round(width * self.unit), 1))

    def _arrow(self, start: np.ndarray, stop: np.ndarray, color: str) -> None:
        along = stop - start
        size = float(np.linalg.norm(along))
        if size < 1e-9:
            return
        along, neck = along / size, stop - min(1.5, 0.6 * size) * along / size
        across = 0.55 * np.array([-along[1], along[0]])
        self._line([tuple(start), tuple(neck)], 0.4, color)
        self._draw.polygon([self._at(*p) for p in (stop, neck + across, neck - across)], fill=color)


def _painted(color: np.ndarray) -> tuple[int, ...]:
    return tuple(np.round(255 * color).astype(int).tolist())


def _length(length: float) -> str:
    for unit, size in (("m", 1.0), ("mm", 1e-3), ("µm", 1e-6)):
        if length >= 0.9995 * (0.1 if unit == "m" else 1.0) * size:
            return f"{length / size:g} {unit}"
    return f"{length:g} m"


AIR, WATER, GROUND, _GRID = rgb("#ffffff"), rgb("#eaf4fa"), rgb("#eef0f3"), rgb("#dfe2e7")
_CELLS = 512  # number of cells of a shadow along each side
_DARK = 0.34  # darkest part of a shadow
_LEVEL = 0.99  # smallest cosine between the normal of a plane and the vertical for which the plane is the ground
FINER = 2  # pixels drawn for each pixel of the picture, along each side
_RIM = 3  # pixels around a window
_WINDOW = "VTK_DEFAULT_OPENGL_WINDOW"
_NO_GRAPHICS = (
    "pictures need OpenGL, and there is neither a display nor a library that draws without one; on Debian and Ubuntu: "
    "apt install libegl1 libgl1-mesa-dri"
)
_OSMESA = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")
_LIGHTS = (((-1.2, 1.6, 1.5), 0.85), ((1.2, 0.3, 1.0), 0.3), ((0.0, -0.4, 1.0), 0.2))  # right, up, towards the eye


@final
class Layer(NamedTuple):
    """Image of some surfaces in a window of a picture.

    Fields:
        colors: from 0 to 1, shape (h, w, 3).
        near: height of each pixel towards the eye, shape (h, w) [m]; −inf where nothing is drawn.
        window: rows and columns of the picture that the layer covers.
    """

    colors: np.ndarray
    near: np.ndarray
    window: tuple[slice, slice]


@final
class Painted(NamedTuple):
    """Facets with a normal and a colour at each vertex: (v, 3), (k, 3), (v, 3) and (v, 3) from 0 to 1."""

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    colors: np.ndarray


def merged(parts: list[Painted]) -> Painted:
    """Facets of several parts in one."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    triangles = [part.triangles + start for part, start in zip(parts, starts)]
    kinds = [np.concatenate([np.zeros((0, 3)), *column]) for column in list(zip(*parts)) or [()] * 4]
    return Painted(kinds[0], np.concatenate([np.zeros((0, 3), dtype=int), *triangles]), kinds[2], kinds[3])


@contextmanager
def canvas(camera: Camera) -> Iterator[Canvas]:
    """Canvas of the size of a camera's picture, closed at the end."""
    made = Canvas(camera)
    try:
        yield made
    finally:
        made.close()


@final
class Canvas:
    """Off-screen window of PyVista."""

    def __init__(self, camera: Camera) -> None:
        vista = loaded_pyvista()
        check_graphics()
        width, height = camera.size
        self._width, self._height = FINER * width, FINER * height
        with _without_display():
            self._plotter: Any = vista.Plotter(
                off_screen=True, window_size=(self._width, self._height), lighting="none"
            )
            self._plotter.disable_anti_aliasing()
            self._plotter.ren_win.SetMultiSamples(0)
            self._plotter.set_background("white")
            for place, intensity in _LIGHTS:
                light = vista.Light(light_type="camera light", intensity=intensity)
                light.position, light.focal_point = place, (0.0, 0.0, 0.0)
                light.positional = False
                self._plotter.add_light(light)
            self._data = vista.PolyData()
            self._vista = vista
            self._shown: Any = None

    def close(self) -> None:
        """Free the window."""
        self._plotter.close()

    def window(self, camera: Camera, points: np.ndarray) -> tuple[slice, slice]:
        """Rows and columns that hold points (n, 3)."""
        if not len(points):
            return slice(0, 0), slice(0, 0)
        seen = FINER * camera.pixels(points)[:, :2]
        first = np.floor(seen.min(axis=0)).astype(int) - _RIM
        last = np.ceil(seen.max(axis=0)).astype(int) + _RIM
        x, y = np.clip([first[0], last[0]], 0, self._width), np.clip([first[1], last[1]], 0, self._height)
        return slice(int(y[0]), int(y[1])), slice(int(x[0]), int(x[1]))

    def layer(self, camera: Camera, painted: Painted, window: tuple[slice, slice] | None = None) -> Layer:
        """Image of facets, in the window that holds them or in a given window."""
        rows, columns = self.window(camera, painted.vertices) if window is None else window
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        if not len(painted.triangles) or 0 in shape:
            nothing = np.full(shape, -np.inf, dtype=np.float32)
            return Layer(np.ones((*shape, 3), dtype=np.float32), nothing, (rows, columns))
        self._show(painted)
        reach = self._look(camera, painted.vertices)
        with _without_display():
            self._plotter.ren_win.Render()
            if not self._plotter.ren_win.IsCurrent():
                raise ModelError(_NO_GRAPHICS)
            corners = (columns.start, self._height - rows.stop, columns.stop - 1, self._height - 1 - rows.start)
            near = self._depth(rows, columns, reach)
            colors = self._colors(corners, shape)
        return Layer(colors, near, (rows, columns))

    def _show(self, painted: Painted) -> None:
        data = self._vista.PolyData.from_regular_faces(painted.vertices.astype(np.float32), painted.triangles)
        data.point_data.active_normals = painted.normals.astype(np.float32)
        data.point_data["colors"] = np.round(255.0 * np.clip(painted.colors, 0.0, 1.0)).astype(np.uint8)
        data.set_active_scalars("colors")
        if self._shown is not None:
            self._shown.mapper.SetInputData(data)
            return
        look: Any = {"ambient": 0.28, "diffuse": 0.85, "specular": 0.2, "specular_power": 30.0}
        self._shown = self._plotter.add_mesh(
            data, scalars="colors", rgb=True, smooth_shading=False, interpolate_before_map=False, **look
        )
        self._shown.prop.interpolation = "Phong"

    def _look(self, camera: Camera, vertices: np.ndarray) -> tuple[float, float]:
        """Point the camera of the window, and return the heights of its near and its far plane [m]."""
        near = (vertices - camera.centre) @ camera.axes[2]
        size = camera.height + float(np.ptp(near))
        first, last = float(near.max()) + 0.05 * size, float(near.min()) - 0.05 * size
        eye: Any = self._plotter.camera
        eye.focal_point = camera.centre
        eye.position = camera.centre + (first + size) * camera.axes[2]
        eye.up = camera.axes[1]
        eye.parallel_projection = True
        eye.parallel_scale = 0.5 * camera.height
        eye.clipping_range = (size, size + first - last)
        self._plotter.renderer.camera_set = True
        return first, last

    def _colors(self, corners: tuple[int, int, int, int], shape: tuple[int, int]) -> np.ndarray:
        from vtkmodules.util.numpy_support import vtk_to_numpy
        from vtkmodules.vtkCommonCore import vtkUnsignedCharArray

        found = vtkUnsignedCharArray()
        self._plotter.ren_win.GetPixelData(*corners, 0, found, 0)
        colors = vtk_to_numpy(found).reshape(*shape, 3)[::-1]
        return colors.astype(np.float32) / np.float32(255.0)

    def _depth(self, rows: slice, columns: slice, reach: tuple[float, float]) -> np.ndarray:
        from vtkmodules.util.numpy_support import vtk_to_numpy
        from vtkmodules.vtkCommonCore import vtkFloatArray

        found = vtkFloatArray()
        self._plotter.ren_win.GetZbufferData(0, 0, self._width - 1, self._height - 1, found)
        depth = vtk_to_numpy(found).reshape(self._height, self._width)[::-1][rows, columns]
        first, last = reach
        near = (first + (last - first) * depth).astype(np.float32)
        near[depth >= 1.0] = -np.inf
        return near


def loaded_pyvista() -> Any:
    """PyVista; a ModelError names the extra where it is missing."""
    try:
        import pyvista
    except ImportError:
        raise ModelError("pictures need PyVista: pip install 'lissom[render]'") from None
    return pyvista


@cache
def check_graphics() -> None:
    """Check that VTK finds OpenGL. Otherwise VTK uses OSMesa, and if that library is missing, the first picture ends
    the process.

    Raises:
        ModelError: there is no OpenGL.
    """
    import vtkmodules.vtkRenderingOpenGL2  # noqa: F401  (the makers of windows)
    from vtkmodules.vtkCommonCore import vtkLogger
    from vtkmodules.vtkRenderingCore import vtkRenderWindow

    before = vtkLogger.GetCurrentVerbosityCutoff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)  # VTK warns of each missing library
    try:
        with _without_display():
            kind = vtkRenderWindow().GetClassName()
    finally:
        vtkLogger.SetStderrVerbosity(before)
    if kind == "vtkOSOpenGLRenderWindow" and not any(map(_loads, _OSMESA)):
        raise ModelError(_NO_GRAPHICS)


def _loads(name: str) -> bool:
    """Whether this machine has a shared library."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _has_display() -> bool:
    """Whether an X display is named, and the libraries exist by which VTK connects to it."""
    return bool(os.environ.get("DISPLAY")) and _loads("libX11.so.6") and _loads("libGL.so.1")


@contextmanager
def _without_display() -> Iterator[None]:
    """Make VTK draw by EGL if there is no display, so that it does not search for one first."""
    lacks = sys.platform == "linux" and _WINDOW not in os.environ and not _has_display()
    if lacks:
        os.environ[_WINDOW] = "vtkEGLRenderWindow"
    try:
        yield
    finally:
        if lacks:
            del os.environ[_WINDOW]


@final
class Composition:
    """Picture composed of layers, at FINER pixels."""

    def __init__(self, behind: Layer) -> None:
        self.colors = np.repeat(np.repeat(behind.colors, FINER, axis=0), FINER, axis=1)
        self.near = np.repeat(np.repeat(behind.near, FINER, axis=0), FINER, axis=1)

    def lay(self, layer: Layer) -> None:
        """Add an opaque layer: its nearer pixels replace those of the picture."""
        colors, near = self.colors[layer.window], self.near[layer.window]
        seen = layer.near > near
        colors[seen], near[seen] = layer.colors[seen], layer.near[seen]

    def blend(self, layer: Layer, opacity: float, ahead: float = 0.0) -> None:
        """Add a translucent layer. Its pixels that are nearer by `ahead` [m] are mixed in; they do not hide layers
        that are drawn later."""
        colors, near = self.colors[layer.window], self.near[layer.window]
        seen = layer.near > near + np.float32(ahead)
        colors[seen] += np.float32(opacity) * (layer.colors[seen] - colors[seen])

    def reduced(self) -> np.ndarray:
        """The picture at its own resolution: means of the finer pixels of each pixel."""
        height, width = self.near.shape
        return self.colors.reshape(height // FINER, FINER, width // FINER, FINER, 3).mean(axis=(1, 3))


@final
class Plane(NamedTuple):
    """Plane by a point (3,) [m], its normal (3,), two directions in it (2, 3), and the radius that is drawn [m]."""

    point: np.ndarray
    normal: np.ndarray
    across: np.ndarray
    reach: float


def background_planes(model: Model, camera: Camera, points: np.ndarray, hanging: bool = False) -> list[Plane]:
    """Planes behind a robot that are drawn: the ground, or a wall that a rod is clamped to if the camera sees its free
    side.

    Args:
        points: points of everything that is drawn, shape (n, 3) [m].
        hanging: whether the robot hangs, so that it does not stand on the ground.
    """
    if camera.is_plane:
        return []
    size = float(np.ptp(points, axis=0).max())
    up, found = upwards(model.gravity), []
    low = points[np.argmin(points @ up)]
    for k, shape in enumerate(model.contacts.obstacle_shape):
        g = model.contacts.obstacle_placement[k]
        if _is_plane(model, k) and shape is not None and g[:3, 2] @ up > _LEVEL:
            found = [(g[:3, 3], g[:3, 2])]
    stands = False
    for k, (name, joint) in enumerate(zip(model.links.names, model.links.joint)):
        if model.links.parent[k] >= 0 or found:
            continue
        if name in model.rods and joint.nv == 0:
            base = base_placement(model, k)
            found = [(base[:3, 3], base[:3, 0])]
        stands = stands or joint.nv < 6
    if not found and stands and not hanging and model.description.fluid is None:
        found = [(low, up)]
    return [_plane(point, normal, points, size) for point, normal in found if normal @ camera.axes[2] > 0.08]


def _is_plane(model: Model, k: int) -> bool:
    world = model.contacts
    return int(world.obstacle_node[k]) < 0 and int(world.obstacle_kind[k]) == 0


def _plane(point: np.ndarray, normal: np.ndarray, points: np.ndarray, size: float) -> Plane:
    """Plane whose point lies under the middle of all points."""
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    point = middle - ((middle - point) @ normal) * normal
    first = np.eye(3)[np.argmin(np.abs(normal))]
    first = np.cross(normal, first)
    first /= np.linalg.norm(first)
    spread = float(np.linalg.norm((points - middle) - ((points - middle) @ normal)[:, None] * normal, axis=1).max())
    return Plane(point, normal, np.array([first, np.cross(normal, first)]), max(1.5 * spread, 0.45 * size))


def light_direction(camera: Camera, normal: np.ndarray) -> np.ndarray:
    """Direction towards the light that casts shadows on a plane."""
    right, up, eye = camera.axes
    return normal + 0.22 * (up - (up @ normal) * normal) - 0.3 * (right - (right @ normal) * normal) + 0.12 * eye


def shadow(plane: Plane, camera: Camera, parts: list[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    """Shadow on a plane in cells (n, n) over its reach, 0 to 1.

    Args:
        parts: vertices (v, 3), triangles (k, 3) and opacity of each shape.
    """
    from PIL import Image, ImageDraw
    from scipy.ndimage import gaussian_filter

    total = np.zeros((_CELLS, _CELLS), dtype=np.float32)
    towards = light_direction(camera, plane.normal)
    for vertices, triangles, opacity in parts:
        above = (vertices - plane.point) @ plane.normal
        flat = vertices - plane.point - (above / (towards @ plane.normal))[:, None] * towards
        cells = (0.5 + 0.5 * (flat @ plane.across.T) / plane.reach) * _CELLS
        image = Image.new("L", (_CELLS, _CELLS))
        draw = ImageDraw.Draw(image)
        for corners in cells[triangles[(above[triangles] > -1e-3 * plane.reach).all(axis=1)]].reshape(-1, 6).tolist():
            draw.polygon(corners, fill=255)
        total = np.maximum(total, opacity * np.asarray(image, dtype=np.float32) / 255.0)
    return 0.6 * gaussian_filter(total, 0.006 * _CELLS) + 0.4 * gaussian_filter(total, 0.022 * _CELLS)


@final
class Background:
    """Planes behind a robot, as one fixed camera sees them."""

    def __init__(self, model: Model, camera: Camera, planes: list[Plane]) -> None:
        self._camera, self.planes = camera, planes
        width, height = camera.size
        background = AIR if model.description.fluid is None else WATER
        self._plain = np.tile(background.astype(np.float32), (height, width, 1))
        self._seen = [self._seen_plane(plane) for plane in planes]
        if camera.is_plane:
            self._draw_level_planes(model)

    def layer(self, shadows: list[np.ndarray]) -> Layer:
        """Image of the planes with their shadows, at one pixel for each of the picture."""
        from scipy.ndimage import map_coordinates

        colors = self._plain.copy()
        near = np.full(colors.shape[:2], -np.inf, dtype=np.float32)
        for (cells, depth, strength, color), dark in zip(self._seen, shadows):
            shade = map_coordinates(dark, cells, order=1, mode="constant")
            tone = color * (1.0 - _DARK * shade[..., None])
            colors += strength[..., None] * (tone - colors)
            near = np.where(strength > 0.02, np.maximum(near, depth), near)
        height, width = colors.shape[:2]
        return Layer(colors, near, (slice(0, height), slice(0, width)))

    def _seen_plane(self, plane: Plane) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The view of a plane in each pixel: the cell of its shadow (2, h, w), height towards the eye (h, w) [m],
        opacity (h, w), and the unshaded colour."""
        eye = self._camera.axes[2]
        rays = self._camera.rays() - plane.point
        depth = -(rays @ plane.normal) / (eye @ plane.normal)
        place = (rays + depth[..., None] * eye) @ plane.across.T
        distance = np.linalg.norm(place, axis=-1) / plane.reach
        strength = np.clip((1.0 - distance) / 0.45, 0.0, 1.0)
        strength = (strength * strength * (3.0 - 2.0 * strength)).astype(np.float32)
        cells = (0.5 + 0.5 * place / plane.reach) * _CELLS - 0.5
        color = np.where(self._on_grid(place, plane)[..., None], _GRID, GROUND).astype(np.float32)
        return np.stack([cells[..., 1], cells[..., 0]]).astype(np.float32), depth.astype(np.float32), strength, color

    def _on_grid(self, place: np.ndarray, plane: Plane) -> np.ndarray:
        cell = nice_number(0.35 * plane.reach)
        slope = np.maximum(np.abs(np.gradient(place, axis=0)), np.abs(np.gradient(place, axis=1)))
        away = np.abs((place / cell + 0.5) % 1.0 - 0.5) * cell
        return np.asarray((away < 0.6 * slope).any(axis=-1))

    def _draw_level_planes(self, model: Model) -> None:
        """Fill the forbidden side of planes that are seen edge on."""
        rays = self._camera.rays()
        for k in range(len(model.contacts.obstacle_kind)):
            g = model.contacts.obstacle_placement[k]
            if _is_plane(model, k) and abs(g[:3, 2] @ self._camera.axes[2]) < 1e-6:
                above = (rays - g[:3, 3]) @ g[:3, 2] * self._camera.scale
                self._plain[above < 0.0] = rgb("#e3e6ea")
                self._plain[np.abs(above + 1.5) < 1.5] = rgb("#9aa1ab")
