"""Files of what a viewer shows: glTF, a web page, a film, a trajectory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lissom.errors import ModelError
from lissom.viewing.films import write_mp4
from lissom.viewing.quantities import of_state, rgb_bytes
from lissom.viewing.scene import ribbon_facets
from lissom.viewing.session import Session
from lissom.viewing.stage import COLORS, Stage
from lissom.viewing.style import SERIES

FPS = 25
_LONGEST = 120.0  # of a page or film: its last part is taken [s]
_WIDE, _HIGH = 1920, 1080  # of a film at most


def gltf(server: Any, stage: Stage, session: Session) -> bytes:
    """The surfaces and tendons as they are shown, as binary glTF."""
    import trimesh

    points, scene = stage.geometry.points(session.q), trimesh.Scene()
    values = None
    if stage.painted and stage.scale is not None:
        values = of_state(stage.geometry, stage.painted, session.q, session.v, session.u, session.t)
    there = stage.around.points(session.q)
    for geometry, rows in ((stage.geometry, points), (stage.around, there)):
        for k, mesh in enumerate(geometry.meshes):
            made: Any = trimesh.Trimesh(rows[mesh.rows], mesh.triangles, process=False)
            made.visual.vertex_colors = np.append(COLORS[mesh.kind], 255 if mesh.link else 120).astype(np.uint8)
            own = None if values is None or geometry is not stage.geometry else values[mesh.rows]
            if own is not None and stage.scale is not None and np.isfinite(own).any():
                low, high = stage.scale.ends
                made.visual.vertex_colors = rgb_bytes((np.nan_to_num(own, nan=low) - low) / (high - low))
            scene.add_geometry(made, node_name=f"{k} {mesh.name}", geom_name=f"{k} {mesh.name}")
    for k, line in enumerate(stage.geometry.of("tendon")):
        quads = ribbon_facets(points[None, line.rows], 0.004 * stage.size)[0].reshape(-1, 3)
        four = np.arange(len(quads)).reshape(-1, 4)
        tube: Any = trimesh.Trimesh(quads, np.concatenate([four[:, :3], four[:, [0, 2, 3]]]), process=False)
        color = SERIES[k % len(SERIES)]
        tube.visual.vertex_colors = [int(color[at : at + 2], 16) for at in (1, 3, 5)] + [255]
        scene.add_geometry(tube, node_name=line.name, geom_name=line.name)
    content = scene.export(file_type="glb")
    return bytes(content) if isinstance(content, bytes | bytearray) else str(content).encode()


def _moments(session: Session) -> Iterator[tuple[float, Any]]:
    """Times, FPS of them a second, and the states recorded there; what is shown, where nothing is recorded."""
    record = session.record
    if session.mode == "pose" or len(record) < 2:
        yield 0.0, (session.q, session.v, session.u)
        return
    first, last = record.span
    for t in np.arange(max(first, last - _LONGEST), last, session.speed / FPS):
        yield float(t), record.at(float(t))


def web_page(server: Any, stage: Stage, session: Session) -> bytes:
    """What is recorded, as one page that needs nothing else."""
    moments = list(_moments(session))
    t, (q, v, u) = moments[0]
    stage.show(q, v, u, t, None)
    serializer = server.get_scene_serializer()
    for t, (q, v, u) in moments[1:]:
        serializer.insert_sleep(1.0 / FPS)
        stage.show(q, v, u, t, None)
    if len(moments) > 1:
        serializer.insert_sleep(1.0 / FPS)
    return serializer.as_html().encode("utf-8")


def video(server: Any, stage: Stage, session: Session) -> bytes:
    """What is recorded, as the first of those who look on sees it, as a film."""
    clients = list(server.get_clients().values())
    if not clients:
        raise ModelError("film: needs a browser that looks on, whose pictures it is made of (got none)")
    camera = clients[0].camera
    wide, high = (
        min(int(size), most) // 2 * 2 for size, most in ((camera.image_width, _WIDE), (camera.image_height, _HIGH))
    )

    def pictures() -> Iterator[np.ndarray]:
        for t, (q, v, u) in _moments(session):
            stage.show(q, v, u, t, None)
            yield clients[0].get_render(high, wide, timeout=20.0)[:, :, :3]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        try:
            write_mp4(path, pictures(), FPS, (wide, high))
        except TimeoutError:
            raise ModelError("film: the browser hands out no pictures; keep its window in front") from None
        return path.read_bytes()


def motion_file(server: Any, stage: Stage, session: Session) -> bytes:
    """What is recorded, as a trajectory file."""
    if not len(session.record):
        raise ModelError("motion: nothing is recorded yet; play a simulation first (got no states)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "motion.npz"
        session.record.trajectory().save(path)
        return path.read_bytes()
