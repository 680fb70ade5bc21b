"""Films of motions, drawn by PyVista without a screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.camera import Camera
from lissom.viewing.canvas import canvas
from lissom.viewing.films import write_mp4
from lissom.viewing.quantities import QUANTITIES
from lissom.viewing.render import Scene

_FRAMES = 1_000_000  # of a film at most
_SEEN = 60  # instants that decide what the camera must hold


def film(
    model: Model,
    trajectory: Trajectory,
    path: str | Path,
    *,
    fps: float,
    speed: float,
    trail: str | None,
    follow: str | None,
    orbit: float,
    links: Sequence[str] | None,
    paint: str | None,
    view: tuple[float, float] | None,
    obstacles: bool,
    size: tuple[int, int],
    progress: bool,
) -> Path:
    """Film of a motion; see `Trajectory.animate`."""
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a film shows one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    checks.number(fps, "fps", above=0.0)
    checks.number(speed, "speed", above=0.0)
    checks.number(orbit, "orbit")
    if not len(trajectory.t):
        raise ShapeError("trajectory: a film needs a motion of one time at least, got none")
    count = (trajectory.t[-1] - trajectory.t[0]) * fps / speed
    checks.require(count < _FRAMES, "film", f"must have at most {_FRAMES:,} frames; lower fps or raise speed", count)
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise ModelError(f"film: must end in .gif or .mp4 (got {path.name!r})")
    size = size[0] + size[0] % 2, size[1] + size[1] % 2  # as films want
    times = np.arange(trajectory.t[0], trajectory.t[-1] + 1e-9, speed / fps)
    rows = configurations_at(model, trajectory, times)
    path_of = None if trail is None else frame_pose(model, rows, trail)[:, :3, 3]
    away = None if follow is None else frame_pose(model, rows, follow)[:, :3, 3]
    some = np.unique(np.linspace(0, len(rows) - 1, _SEEN).astype(int))
    held = rows[some] if away is None else rows[:1]
    curves = [] if path_of is None or away is not None else [path_of]
    scene = Scene(model, held, curves, links, paint, None, view, obstacles, size)
    if paint is not None:
        painted = scene.paint.painted_values(rows[some])
        scene.paint.span = float(np.nanmin(painted)), float(np.nanmax(painted))
    cameras = list(_cameras(scene, len(rows), away, np.radians(orbit) / fps))
    label = "" if paint is None else f"{paint} [{QUANTITIES[paint]}]"

    def frames() -> Iterator[np.ndarray]:
        with (
            canvas(scene.camera) as drawn,
            progress_bar(progress, len(rows), "filming", "frames", PATIENCE) as advance,
        ):
            for k, (t, q, camera) in enumerate(zip(times, rows, cameras)):
                seen = scene if camera is scene.camera else scene.seen_by(camera)
                grown = [] if path_of is None or k == 0 else [path_of[: k + 1]]
                labels = seen.labels(label)
                labels.clock(float(t))
                yield labels.over(seen.picture(drawn, q[None], grown))
                advance(k + 1)

    _WRITERS[path.suffix](path, frames(), fps, size)
    return path


def configurations_at(model: Model, trajectory: Trajectory, times: np.ndarray) -> np.ndarray:
    """Configurations of one motion at any times within it, between two samples on the manifold; shape (n, nq)."""
    k = np.clip(np.searchsorted(trajectory.t, times, side="right") - 1, 0, max(len(trajectory.t) - 2, 0))
    if len(trajectory.t) == 1:
        return trajectory.q[k]
    before, after = trajectory.q[k], trajectory.q[k + 1]
    part = (times - trajectory.t[k]) / (trajectory.t[k + 1] - trajectory.t[k])
    return integrate(model, before, np.clip(part, 0.0, 1.0)[:, None] * difference(model, before, after))


def _cameras(scene: Scene, count: int, away: np.ndarray | None, turn: float) -> Iterator[Camera]:
    """The camera of each frame: moved along with what is followed, turned about the vertical."""
    start = scene.camera if turn == 0.0 else scene.all_around()
    for k in range(count):
        if turn == 0.0 and away is None:
            yield start
            continue
        axes = start.axes @ _about_z(-turn * k)
        yield replace(start, axes=axes, centre=start.centre + (0.0 if away is None else away[k] - away[0]))


def _about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: float, size: tuple[int, int]) -> None:
    from PIL import Image

    images = (Image.fromarray(frame).quantize(255) for frame in frames)
    first = next(images)
    how = {"save_all": True, "append_images": images, "duration": 1000.0 / fps, "loop": 0, "disposal": 1}
    write_whole(path, lambda file: first.save(file, "GIF", **how))


_WRITERS = {".gif": _write_gif, ".mp4": write_mp4}
