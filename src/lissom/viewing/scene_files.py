"""Files that a viewer writes: the scene as glTF, the history as a web page, a film or a motion, and a picture."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lissom.errors import ModelError
from lissom.viewing.animated_gltf import animated_gltf
from lissom.viewing.colors import PALETTE, rgb_bytes, state_values
from lissom.viewing.render import tube, write_mp4
from lissom.viewing.session import Session
from lissom.viewing.stage import COLORS, Stage

_FPS = 25  # of pages and films
_LONGEST = 120.0  # of a page or film: its last part is taken [s]
_MOST_SHAPES, _MOST_BYTES = 250, 32e6  # of an animation in glTF, which interpolates between its shapes
_WIDEST, _HIGHEST = 1920, 1080  # of a film


def scene_file(kind: str, server: Any, stage: Stage, session: Session) -> bytes:
    """The content of a file.

    Args:
        kind: "glb", "html", "npz", "mp4" or "png". server: of viser, whose first browser films and pictures show.
    Raises:
        ModelError: there is no such kind, nothing is recorded, or no browser looks on.
    """
    makers = {"glb": gltf, "html": web_page, "npz": motion_file, "mp4": video, "png": picture}
    if kind not in makers:
        raise ModelError(f"file: must end in one of {sorted('.' + key for key in makers)} (got '.{kind}')")
    return makers[kind](server, stage, session)


def gltf(server: Any, stage: Stage, session: Session) -> bytes:
    """Surfaces and tendons as binary glTF: as they are now, with the recorded motion as an animation."""
    moments = [(t, q) for t, (q, _, _) in _recorded(session)]
    count = int(min(_MOST_SHAPES, max(_MOST_BYTES / (12.0 * max(len(stage.geometry.frame), 1)), 2.0)))
    moments = [moments[k] for k in np.unique(np.linspace(0, len(moments) - 1, count).astype(int))]
    shapes = [_surfaces(stage, q) for q in [session.q, *(q for _, q in moments if len(moments) > 1)]]
    colors = _vertex_colors(stage, session, shapes[0])
    times = [t - moments[0][0] for t, _ in moments] if len(moments) > 1 else []
    named = [(name, [shape[k][1] for shape in shapes], faces, color)
             for k, ((name, _, faces), color) in enumerate(zip(shapes[0], colors))]  # fmt: skip
    return animated_gltf(named, np.array(times))


def _surfaces(stage: Stage, q: np.ndarray) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Name, vertices (n, 3) and triangles (k, 3) of all that is drawn at a configuration."""
    points, there, found = stage.geometry.points(q), stage.around.points(q), []
    for geometry, rows in ((stage.geometry, points), (stage.around, there)):
        found += [(f"{k} {mesh.name}", rows[mesh.rows], mesh.triangles) for k, mesh in enumerate(geometry.meshes)]
    for k, line in enumerate(stage.geometry.of("tendon")):
        facets = tube(points[line.rows], 0.004 * stage.size, PALETTE[k % len(PALETTE)])
        found.append((line.name, facets.vertices, facets.triangles))
    return found


def _vertex_colors(stage: Stage, session: Session, surfaces: list[Any]) -> list[np.ndarray]:
    """Colours (n, 4), 0 to 255, of the vertices of all surfaces in the present state."""
    values, found = None, []
    if stage.painted and stage.scale is not None:
        values = state_values(stage.geometry, stage.painted, session.q, session.v, session.u, session.t)
    meshes = [*stage.geometry.meshes, *stage.around.meshes]
    for k, (_, vertices, _) in enumerate(surfaces):
        mesh = meshes[k] if k < len(meshes) else None
        plain = COLORS[mesh.kind] if mesh is not None else 255.0 * PALETTE[(k - len(meshes)) % len(PALETTE)]
        color = np.tile(np.append(plain, 120 if mesh is not None and not mesh.link else 255), (len(vertices), 1))
        if mesh is not None and k < len(stage.geometry.meshes) and values is not None and stage.scale is not None:
            own = values[mesh.rows]
            if np.isfinite(own).any():
                color[:, :3] = rgb_bytes(stage.scale.fractions(own))
        found.append(np.round(color).astype(np.uint8))
    return found


def _recorded(session: Session) -> Iterator[tuple[float, Any]]:
    """Times, _FPS of them per second, and states of the history; the current state if the history is empty."""
    record = session.record
    if session.mode == "pose" or len(record) < 2:
        yield 0.0, (session.q, session.v, session.u)
        return
    first, last = record.span
    for t in np.arange(max(first, last - _LONGEST), last, session.speed / _FPS):
        yield float(t), record.at(float(t))


def web_page(server: Any, stage: Stage, session: Session) -> bytes:
    """History as one self-contained web page."""
    moments = list(_recorded(session))
    t, (q, v, u) = moments[0]
    stage.show(q, v, u, t, None)
    serializer = server.get_scene_serializer()
    for t, (q, v, u) in moments[1:]:
        serializer.insert_sleep(1.0 / _FPS)
        stage.show(q, v, u, t, None)
    if len(moments) > 1:
        serializer.insert_sleep(1.0 / _FPS)
    return serializer.as_html().encode("utf-8")


def video(server: Any, stage: Stage, session: Session) -> bytes:
    """History as a film, seen from the camera of the first browser."""
    clients = list(server.get_clients().values())
    if not clients:
        raise ModelError("film: needs a browser that looks on, whose pictures it is made of (got none)")
    camera = clients[0].camera
    wide, high = (
        min(int(size), most) // 2 * 2 for size, most in ((camera.image_width, _WIDEST), (camera.image_height, _HIGHEST))
    )

    def pictures() -> Iterator[np.ndarray]:
        for t, (q, v, u) in _recorded(session):
            stage.show(q, v, u, t, None)
            yield clients[0].get_render(high, wide, timeout=20.0)[:, :, :3]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        try:
            write_mp4(path, pictures(), _FPS, (wide, high))
        except TimeoutError:
            raise ModelError("film: the browser returns no pictures; keep its window in front") from None
        return path.read_bytes()


def motion_file(server: Any, stage: Stage, session: Session) -> bytes:
    """History as a trajectory file."""
    if not len(session.record):
        raise ModelError("motion: nothing is recorded yet; play a simulation first (got no states)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "motion.npz"
        session.record.trajectory().save(path)
        return path.read_bytes()


def picture(server: Any, stage: Stage, session: Session) -> bytes:
    """What the first browser shows, as PNG."""
    from imageio.v3 import imwrite

    clients = list(server.get_clients().values())
    if not clients:
        raise ModelError("picture: needs a browser that looks on (got none)")
    camera = clients[0].camera
    try:
        pixels = clients[0].get_render(int(camera.image_height), int(camera.image_width), timeout=20.0)
    except TimeoutError:
        raise ModelError("picture: the browser returns no picture; keep its window in front") from None
    file = io.BytesIO()
    imwrite(file, pixels[:, :, :3], extension=".png")
    return file.getvalue()
