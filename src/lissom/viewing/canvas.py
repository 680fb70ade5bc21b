"""Surfaces seen by a camera, drawn by PyVista without a screen: their colours and how near they are."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.viewing.camera import Camera

FINER = 2  # pixels drawn for each of the picture, along either side
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
    """What a camera sees of some surfaces: colours (h, w, 3) from 0 to 1 in a window of it, and how near the eye
    each pixel is (h, w) [m]; −inf where there is nothing. window: its rows and columns."""

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


def together(parts: list[Painted]) -> Painted:
    """Several as one."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    triangles = [part.triangles + start for part, start in zip(parts, starts)]
    kinds = [np.concatenate([np.zeros((0, 3)), *column]) for column in list(zip(*parts)) or [()] * 4]
    return Painted(kinds[0], np.concatenate([np.zeros((0, 3), dtype=int), *triangles]), kinds[2], kinds[3])


@contextmanager
def canvas(camera: Camera) -> Iterator[Canvas]:
    """A canvas of the size of a camera's picture, closed at the end."""
    made = Canvas(camera)
    try:
        yield made
    finally:
        made.close()


@final
class Canvas:
    """A window that nobody sees."""

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
        self._plotter.close()

    def window(self, camera: Camera, points: np.ndarray) -> tuple[slice, slice]:
        """The rows and columns that hold points (n, 3)."""
        if not len(points):
            return slice(0, 0), slice(0, 0)
        seen = FINER * camera.pixels(points)[:, :2]
        first = np.floor(seen.min(axis=0)).astype(int) - _RIM
        last = np.ceil(seen.max(axis=0)).astype(int) + _RIM
        x, y = np.clip([first[0], last[0]], 0, self._width), np.clip([first[1], last[1]], 0, self._height)
        return slice(int(y[0]), int(y[1])), slice(int(x[0]), int(x[1]))

    def layer(self, camera: Camera, painted: Painted, window: tuple[slice, slice] | None = None) -> Layer:
        """What the camera sees of facets, in the window that holds them or another one."""
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
        """Point the camera; how near the nearest and the farthest of its depths are [m]."""
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
    """Check that VTK finds OpenGL: where it does not, it takes its last resort, OSMesa, and without that library its
    first picture ends the process.

    Raises:
        ModelError: there is no OpenGL.
    """
    import vtkmodules.vtkRenderingOpenGL2  # noqa: F401  (the makers of windows)
    from vtkmodules.vtkCommonCore import vtkLogger
    from vtkmodules.vtkRenderingCore import vtkRenderWindow

    before = vtkLogger.GetCurrentVerbosityCutoff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)  # it warns of each library that it lacks
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
    """Whether there is an X display to look for, and the libraries that VTK looks for it with."""
    return bool(os.environ.get("DISPLAY")) and _loads("libX11.so.6") and _loads("libGL.so.1")


@contextmanager
def _without_display() -> Iterator[None]:
    """Let VTK draw by EGL at once where there is no display, instead of looking for one in vain."""
    lacks = sys.platform == "linux" and _WINDOW not in os.environ and not _has_display()
    if lacks:
        os.environ[_WINDOW] = "vtkEGLRenderWindow"
    try:
        yield
    finally:
        if lacks:
            del os.environ[_WINDOW]
