"""Films of motions by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lissom.dynamics.configuration import difference, integrate
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.integration.trajectory import Trajectory
from lissom.model.model import Model
from lissom.robot import checks
from lissom.view import scene
from lissom.view.plots import add_obstacles, add_shapes, plot_shapes


def animate(
    model: Model,
    trajectory: Trajectory,
    path: str | Path,
    *,
    fps: float = 25.0,
    speed: float = 1.0,
    links: Sequence[str] | None = None,
    follow: str | None = None,
    view: tuple[float, float] = (20.0, -60.0),
    obstacles: bool = True,
    dpi: int = 100,
) -> Path:
    """Film of a motion.

    Args:
        trajectory: of one motion.
        path: file to write: .gif, or .mp4 where ffmpeg is installed.
        fps: frames per second of the film [1/s]. speed: seconds of the motion in one second of the film [-].
        links: names of the links to draw; None is all of them.
        follow: name of a link or frame whose path is drawn.
        view: elevation and azimuth of the eye [deg].
        obstacles: whether shapes that the robot may touch are drawn.
        dpi: dots per inch.
    Returns:
        The path.
    Raises:
        ShapeError: the trajectory is a batch. ModelError: no such link, or a film of this kind cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a film shows one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    checks.number(fps, "fps", above=0.0)
    checks.number(speed, "speed", above=0.0)
    path = Path(path)
    writer = _writer(path, fps)
    times = np.arange(trajectory.t[0], trajectory.t[-1] + 1e-9, speed / fps)
    rows = configurations_at(model, trajectory, times)
    trace = None if follow is None else frame_pose(model, trajectory.q, follow)[:, :3, 3]
    figure = plot_shapes(model, rows, links=links, trace=trace, view=view, obstacles=obstacles)
    FigureCanvasAgg(figure)
    ax: Any = figure.axes[0]
    clock = figure.text(0.03, 0.03, "")
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
    names = [name for name in model.links.names if links is None or name in links]
    with writer.saving(figure, str(path), dpi):
        for t, q in zip(times, rows):
            for shape in [c for c in ax.collections if isinstance(c, Poly3DCollection)]:
                shape.remove()
            bodies = {name: scene.body_facets(model, q[None], name) for name in names}
            add_shapes(ax, model, bodies, [], np.zeros(1), view)
            if obstacles:
                add_obstacles(ax, model, q[None], names, low, high, view)
            clock.set_text(f"t = {t:.2f} s")
            writer.grab_frame()
    return path


def configurations_at(model: Model, trajectory: Trajectory, times: np.ndarray) -> np.ndarray:
    """Configurations of one motion at any times within it, between two samples on the manifold; shape (n, nq)."""
    k = np.clip(np.searchsorted(trajectory.t, times, side="right") - 1, 0, max(len(trajectory.t) - 2, 0))
    if len(trajectory.t) == 1:
        return trajectory.q[k]
    before, after = trajectory.q[k], trajectory.q[k + 1]
    part = (times - trajectory.t[k]) / (trajectory.t[k + 1] - trajectory.t[k])
    return integrate(model, before, np.clip(part, 0.0, 1.0)[:, None] * difference(model, before, after))


def _writer(path: Path, fps: float) -> Any:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    kinds = {".gif": PillowWriter, ".mp4": FFMpegWriter}
    if path.suffix not in kinds:
        raise ModelError(f"film: must end in .gif or .mp4 (got {path.name!r})")
    kind = kinds[path.suffix]
    if not kind.isAvailable():
        raise ModelError(
            f"film: an {path.suffix} film needs ffmpeg on the path; write a .gif instead (got {path.name!r})"
        )
    return kind(fps=fps)
