"""Films of motions, drawn by PyVista without a screen."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.model.model import Model
from lissom.portable import whole, write_whole
from lissom.robot import checks
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.camera import Camera
from lissom.viewing.canvas import canvas
from lissom.viewing.render import Scene

_FRAMES = 1_000_000  # of a film at most
_FRAMED = 60  # number of instants to which the camera is fitted


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
        raise ShapeError("trajectory: a film needs a motion of at least one time, got none")
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
                labels.clock(float(t))
                yield labels.over(seen.picture(drawn, q[None], grown))
                advance(k + 1)

    _WRITERS[path.suffix](path, frames(), fps, size)
    return path


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
