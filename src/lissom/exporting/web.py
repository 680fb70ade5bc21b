"""A robot as one web page, which simulates and shows it: WebAssembly of its step, and a picture of its bodies.

The page gets poses of nodes from the compiled code. Sections of rods lie between two nodes, on a cubic along their
tangents; points of bodies are fixed in frames, or move by shapes times coordinates.
"""

from __future__ import annotations

import base64
import html
import json
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.dynamics.assembly import closed_start
from lissom.dynamics.start import start_configuration
from lissom.errors import LeftOutWarning
from lissom.exporting import sources
from lissom.exporting.building import build_web, find_web_compiler
from lissom.exporting.export import require_exportable, write_sources
from lissom.model.model import Model
from lissom.model.points import places_of
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.viewing.camera import chosen_view, upwards
from lissom.viewing.controls import input_sliders
from lissom.viewing.geometry import Geometry, Mesh, contact_geometry, robot_geometry
from lissom.viewing.mounts import roots
from lissom.viewing.stage import COLORS

_FUNCTIONS = "step", "forward_kinematics"
_LINES = {"tendon": (170, 51, 60), "chamber": (204, 121, 167), "spring": (47, 109, 179), "tie": (150, 155, 166)}
_INSIDE = ("tendon", "chamber")  # kinds of lines inside bodies
_AROUND = 0.4  # margin of unbounded shapes of contacts, relative to the robot
_FAR = 1.9  # distance of the eye, relative to the size of the robot
_LINEAR = 1e-9  # deviation from a linear function, relative to its size, up to which a surface counts as one


def export_web(model: Model, out: str | Path, *, dt: float = 2e-3, name: str | None = None) -> Path:
    """Write a robot as one web page that simulates it in a browser, without a server and without Python.

    The page has the robot as WebAssembly, a picture of it that the mouse turns, and a slider for each input. Clang
    compiles it, with the C library of WASI: the Debian packages clang, lld, wasi-libc, libc++-dev-wasm32 and
    libclang-rt-dev-wasm32, or the clang++ that the environment variable WASM_CXX names.

    Args:
        out: file to write, such as `arm.html`.
        dt: size of a step [s].
        name: prefix of the functions; None: the name of the robot, in lower case.
    Returns:
        Path of the file.
    Raises:
        ModelError: as of `export`, or there is no compiler for WebAssembly. OSError: the compiler fails, or the file
            cannot be written.
    """
    require_exportable(model, _FUNCTIONS)
    checks.number(dt, "dt", above=0.0)
    compiler = find_web_compiler("export_web")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made = write_sources(model, folder, _FUNCTIONS, name)
        main = folder / "page.cpp"
        main.write_text(sources.prefixed(sources.native(main.name), made.name), encoding="utf-8")
        files = [main, *(folder / path for path in made.files if path.endswith(".cpp"))]
        build_web("export_web", compiler, folder, files, folder / "robot.wasm")
        module = base64.b64encode((folder / "robot.wasm").read_bytes()).decode("ascii")
    text = sources.native("page.html").replace("@TITLE@", html.escape(model.name))
    scene = json.dumps(scene_of(model, dt), separators=(",", ":")).replace("</", "<\\/")
    text = text.replace("@SCENE@", scene).replace("@MODULE@", module)
    write_whole(Path(out), lambda stream: stream.write(text.encode("utf-8")))
    return Path(out)


def scene_of(model: Model, dt: float) -> dict[str, Any]:
    """What the page knows of a robot besides its code."""
    q = closed_start(model, start_configuration(model)[None])[0]
    body = robot_geometry(model)
    seen = body.points(q)
    size = float(np.ptp(seen, axis=0).max()) if len(seen) else 1.0
    low, high = seen.min(axis=0, initial=np.inf), seen.max(axis=0, initial=-np.inf)
    if not len(seen):
        low = high = np.zeros(3)
    around = contact_geometry(model, q, low - _AROUND * size, high + _AROUND * size)
    ends, sections = _sections(body)
    up = upwards(model.gravity)
    side = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    side = side - (side @ up) * up
    side /= np.linalg.norm(side)
    shown = np.array([side, np.cross(up, side), up])
    view = np.radians(chosen_view(model, seen @ shown.T)) if len(seen) else np.radians([20.0, -60.0])
    first = len(body.frame)
    surfaces, local = _surfaces(body), body.local.copy()
    for one in surfaces:
        local[one.rows] = one.base
    meshes = [*_shown(body, surfaces), *((mesh, first) for mesh in around.meshes)]
    facets = [mesh.triangles + mesh.rows.start + offset for mesh, offset in meshes]
    return {
        "nq": model.nq, "nv": model.nv, "nodes": model.n_nodes, "dt": dt, "q": q.tolist(), "inputs": _inputs(model),
        "ends": ends, "sections": sections, "moving": _moving(surfaces), "is_free": _is_free(model),
        "own": first, "axes": shown.tolist(), "view": view.tolist(),
        "centre": (0.5 * (low + high)).tolist(), "distance": _FAR * max(float(np.linalg.norm(high - low)), 1e-6),
        "frame": _packed(np.concatenate([body.frame, around.frame]), np.uint32),
        "local": _packed(np.concatenate([local, around.local]), np.float32),
        "triangles": _packed(np.concatenate([np.zeros((0, 3)), *facets]), np.uint32),
        "colors": [_colored(mesh, offset) for mesh, offset in meshes],
        "lines": [{"first": line.rows.start, "stop": line.rows.stop, "color": _share(_LINES[line.kind]),
                   "is_inside": line.kind in _INSIDE}
                  for line in body.lines if line.kind in _LINES],
    }  # fmt: skip


def _is_free(model: Model) -> bool:
    """Whether nothing holds the robot in the world, so that the eye follows it."""
    return bool(model.links.names) and not roots(model)


def _inputs(model: Model) -> list[dict[str, Any]]:
    """Sliders of the inputs, inside their limits."""
    low, high = model.input_limits
    found = []
    for one in input_sliders(model):
        own = replace(one, low=max(one.low, float(low[one.column])), high=min(one.high, float(high[one.column])))
        found.append({"name": own.name, "unit": own.unit, "low": own.low, "high": own.high, "step": own.step})
    return found


def _sections(body: Geometry) -> tuple[list[Any], list[Any]]:
    """Frames of rods on nodes, as node and placement (12 numbers); and for each section of a rod the two of them
    between which it lies, with its share of the way."""
    model, ends, sections = body.model, [], []
    for part in body.sections:
        own = np.unique(np.append(model.nodes.s[np.asarray(model.rods[part.link].node, dtype=int)], [0.0, 1.0]))
        places = places_of(model, part.link, own.tolist())
        if len(places.h):
            raise AssertionError(f"rod {part.link!r}: its nodes must be frames of sections")
        at = np.clip(np.searchsorted(own, part.s, side="right") - 1, 0, len(own) - 2)
        share = (part.s - own[at]) / (own[at + 1] - own[at])
        sections += [[len(ends) + int(k), len(ends) + int(k) + 1, float(x)] for k, x in zip(at, share)]
        ends += [[int(k), g[:3].ravel().tolist()] for k, g in zip(places.node, places.placement)]
    return [[model.n_nodes if k < 0 else k, g] for k, g in ends], sections


@final
@dataclass(frozen=True, eq=False)
class _Surface:
    """Points of a deformable body, x(θ) = base + shapes θ; without shapes if they are no linear function of θ.

    Fields:
        rows: the points. columns: θ in q. base: (m, 3). shapes: (m, 3, n).
    """

    rows: slice
    columns: slice
    base: np.ndarray
    shapes: np.ndarray | None


def _surfaces(body: Geometry) -> list[_Surface]:
    """All points of deformable bodies."""
    found = []
    for rows, columns, moved in body.moving:
        n = columns.stop - columns.start
        base = np.asarray(moved(np.zeros(n)))
        shapes = np.stack([np.asarray(moved(x)) - base for x in np.eye(n)], axis=-1)
        x = np.linspace(0.3, 0.7, n)
        wrong = np.abs(moved(x) - base - shapes @ x).max(initial=0.0)
        is_linear = wrong <= _LINEAR * np.abs(shapes).max(initial=1e-300)
        found.append(_Surface(rows, columns, base, shapes if is_linear else None))
    return found


def _moving(surfaces: Iterable[_Surface]) -> list[dict[str, Any]]:
    """Points that are linear functions of coordinates."""
    return [
        {"first": one.rows.start, "count": len(one.base), "start": one.columns.start, "n": one.shapes.shape[2],
         "shapes": _packed(one.shapes, np.float32)}
        for one in surfaces if one.shapes is not None
    ]  # fmt: skip


def _shown(body: Geometry, surfaces: Iterable[_Surface]) -> list[tuple[Mesh, int]]:
    """The meshes that the page can move; a LeftOutWarning names the others."""
    curved = {one.rows.start for one in surfaces if one.shapes is None}
    left_out = [mesh.name for mesh in body.meshes if mesh.rows.start in curved]
    if left_out:
        rule = "the page does not show bodies whose surface is no linear function of their coordinates"
        warnings.warn(f"{rule}: {', '.join(left_out)}; their mechanics is there", LeftOutWarning, stacklevel=4)
    return [(mesh, 0) for mesh in body.meshes if mesh.rows.start not in curved]


def _colored(mesh: Mesh, offset: int) -> dict[str, Any]:
    color = _share(COLORS[mesh.kind]) if mesh.color is None else list(mesh.color[:3])
    return {"first": mesh.rows.start + offset, "stop": mesh.rows.stop + offset, "color": color}


def _share(color: Iterable[int]) -> list[float]:
    return [round(part / 255.0, 4) for part in color]


def _packed(values: np.ndarray, dtype: Any) -> str:
    """Numbers as text, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<")).tobytes()).decode("ascii")
