"""Motions against time, by matplotlib, which is imported when a picture is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.internal_wrench import internal_wrench, joint_wrench
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.integration.trajectory import Trajectory
from lissom.model.model import Model
from lissom.view.style import FAINT, GRID, INK, SERIES, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_trajectory(
    model: Model,
    trajectory: Trajectory,
    *,
    path: str | Path | None = None,
    link: str | None = None,
    internal: tuple[str, float] | None = None,
    joint: str | None = None,
    title: str | None = None,
) -> Figure:
    """A motion against time: coordinates of a tip in the world, and below it what a section or a joint carries, if that
    is asked for, and the inputs.

    Args:
        trajectory: of one motion.
        path: file to write; its ending chooses the format (.png, .pdf, .svg).
        link: name of the link or frame followed, a rod at its far end; None is the last link that carries no other.
        internal: link and abscissa of a section whose internal_wrench is drawn, rod, tendons and chambers together:
            moments, then forces. joint: name of the link whose joint_wrench is drawn in the same way.
        title: None is the name of the robot.
    Returns:
        The figure.
    Raises:
        ShapeError: the trajectory is a batch. ModelError: no such link, frame or rod, or s outside [0, 1].
    """
    from matplotlib.figure import Figure

    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a plot shows one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    rods, links = model.rods, model.links
    carriers = set(links.parent.tolist())
    followed = link or [name for k, name in enumerate(links.names) if k not in carriers][-1]
    tip = frame_pose(model, trajectory.q, followed)[:, :3, 3]
    place = f"tip of {followed}" if followed in rods else followed
    drawn = [(f"{place} [m]", tip, list("xyz")), *_wrench_panels(model, trajectory, internal, joint)]
    for unit, columns in inputs_by_unit(model).items():
        drawn.append((unit, trajectory.u[:, columns], [model.inputs.names[k] for k in columns]))
    heights = [1.25] + [1.0] * (len(drawn) - 1)
    figure = Figure(figsize=(8.0, 1.1 + 2.3 * sum(heights)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))
    for panel, (ylabel, series, labels) in zip(panels, drawn):
        _draw_series(panel, trajectory.t, series, labels, ylabel)
    panels[-1].set_xlabel("time [s]", color=INK)
    panels[0].set_title(model.name if title is None else title, loc="left", color=INK, fontsize=12, weight="bold")
    return finish(figure, path)


def _wrench_panels(
    model: Model, x: Trajectory, internal: tuple[str, float] | None, joint: str | None
) -> list[tuple[str, np.ndarray, list[str]]]:
    """Label, rows and their names of two panels for each wrench asked for: moments and forces."""
    states, panels = (model, x.q, x.v, x.a, x.u), []
    if internal is not None:
        if not isinstance(internal, tuple | list) or len(internal) != 2 or np.ndim(internal[1]):
            raise ModelError(f"internal: must be (link, s), one abscissa (got {internal!r})")
        rod, s = internal
        W = internal_wrench(*states, rod, s, t=x.t, multipliers=x.multipliers).total
        names = ["torsion", "bending y", "bending z"], ["tension", "shear y", "shear z"]
        panels.append((f"{rod} at s = {s:g}", W, names))
    if joint is not None:
        W = joint_wrench(*states, joint, t=x.t, multipliers=x.multipliers)
        panels.append((f"joint of {joint}", W, (list("xyz"), list("xyz"))))
    return [
        (f"{place}\n{kind}", W[:, 3 * k : 3 * k + 3], names[k])
        for place, W, names in panels
        for k, kind in enumerate(("moment [N·m]", "force [N]"))
    ]


def inputs_by_unit(model: Model) -> dict[str, list[int]]:
    """Columns of u under the words of their panel: what an input is, and its unit."""
    groups: dict[str, list[int]] = {}
    kinds = _joint_force_kinds(model)
    for k in range(model.nu):
        used = np.flatnonzero(model.channels.gain[:, k])
        found = {model.channels.units[c] for c in used}
        found |= {kinds[int(j)] for j in np.flatnonzero(model.inputs.joint_gain[:, k])}
        found |= {"input" for _, gain in model.inputs.custom if gain[:, k].any()}
        groups.setdefault(found.pop() if len(found) == 1 else "input", []).append(k)
    return groups


def _joint_force_kinds(model: Model) -> dict[int, str]:
    """By velocity coordinate of a joint: torque or force."""
    kinds = {}
    for joint, start in zip(model.links.joint, model.links.v_start):
        columns = [column for motion in joint.motions("joint") for column in motion.Phi.T]
        for k, column in enumerate(columns):
            kinds[int(start) + k] = "torque [N·m]" if column[:3].any() else "force [N]"
    return kinds


def _draw_series(panel: Any, t: np.ndarray, series: np.ndarray, labels: list[str], ylabel: str) -> None:
    for k, label in enumerate(labels):
        dashes = ("-", "--", ":")[k // len(SERIES) % 3]
        panel.plot(t, series[:, k], dashes, color=SERIES[k % len(SERIES)], linewidth=1.5, label=label)
    panel.set_ylabel(ylabel, color=INK)
    panel.margins(x=0.0)
    panel.grid(color=GRID, linewidth=0.8)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(FAINT)
    panel.tick_params(labelsize=9, labelcolor=INK, color=FAINT)
    panel.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9, labelcolor=INK,
                 ncols=1 + (len(labels) - 1) // 12)  # fmt: skip
