"""Motions against time, by matplotlib, which is imported when a picture is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.internal_wrench import internal_wrench, joint_wrench
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError
from lissom.model.model import Model
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.style import FAINT, GRID, INK, SERIES, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_APART = 50.0  # between spans of curves in one panel
_INCHES = 1.9  # height of a panel, about


@final
class Panel(NamedTuple):
    """Curves over time in one pair of axes: a label with a unit, rows (n, k), their names, and whether they are inputs,
    which may have been held between samples."""

    label: str
    series: np.ndarray
    names: list[str]
    may_be_held: bool = False


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

    Curves whose scales differ much have axes of their own; inputs that were held between samples are drawn as steps.

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
    inputs = [
        Panel(unit, trajectory.u[:, columns], [model.inputs.names[k] for k in columns], True)
        for unit, columns in inputs_by_unit(model).items()
    ]
    others = _parted([*_wrench_panels(model, trajectory, internal, joint), *inputs])
    drawn = [Panel(f"{place} [m]", tip, list("xyz")), *others]
    heights = [1.25] + [1.0] * (len(drawn) - 1)
    figure = Figure(figsize=(8.0, 1.1 + 2.3 * sum(heights)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))
    for axes, panel in zip(panels, drawn):
        _draw(axes, trajectory.t, panel)
    figure.align_ylabels(panels)
    panels[-1].set_xlabel("time [s]", color=INK)
    panels[0].set_title(model.name if title is None else title, loc="left", color=INK, fontsize=12, weight="bold")
    return finish(figure, path)


def _wrench_panels(model: Model, x: Trajectory, internal: tuple[str, float] | None, joint: str | None) -> list[Panel]:
    """Two panels for each wrench asked for: moments and forces."""
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
        Panel(f"{place}\n{kind}", W[:, 3 * k : 3 * k + 3], list(names[k]))
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


def _parted(panels: list[Panel]) -> list[Panel]:
    """Panels whose series have scales apart, as one panel for each scale: a curve that would be flat beside another one
    is drawn alone. What stands still asks for nothing and stays with the first."""
    out = []
    for panel in panels:
        spans = np.ptp(panel.series, axis=0) if len(panel.series) else np.zeros(len(panel.names))
        groups: list[list[int]] = []
        for k in np.argsort(-spans, kind="stable").tolist():
            fits = spans[k] <= 1e-9 * spans.max() or not groups or spans[groups[-1][0]] <= _APART * spans[k]
            if not groups or not fits:
                groups.append([])
            groups[0 if spans[k] <= 1e-9 * spans.max() else -1].append(k)
        for group in map(sorted, groups):
            out.append(panel._replace(series=panel.series[:, group], names=[panel.names[k] for k in group]))
    return out


def _held(u: np.ndarray) -> bool:
    """Whether an input (n,) was sampled: it jumps, and after nearly every jump it stands exactly still."""
    jumps = np.diff(u) != 0.0
    return bool(jumps.any() and (jumps[1:] & jumps[:-1]).sum() <= 0.1 * jumps.sum())


def _draw(axes: Any, t: np.ndarray, panel: Panel) -> None:
    ends = []
    for k, label in enumerate(panel.names):
        dashes = ("-", "--", ":")[k // len(SERIES) % 3]
        style = "steps-post" if panel.may_be_held and _held(panel.series[:, k]) else "default"
        color = SERIES[k % len(SERIES)]
        axes.plot(t, panel.series[:, k], dashes, color=color, linewidth=1.5, label=label, drawstyle=style)
        ends.append((float(panel.series[-1, k]), label, color))
    axes.set_ylabel(panel.label, color=INK)
    axes.margins(x=0.0)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=9, labelcolor=INK, color=FAINT)
    _label_ends(axes, ends)


def _label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """The name of each curve beside its end, moved up or down where names would meet."""
    low, high = axes.get_ylim()
    height = _INCHES * 72.0  # of the panel, in points
    size = float(np.clip(0.8 * height / max(len(ends), 1), 4.0, 9.0))
    order = np.argsort([y for y, _, _ in ends], kind="stable")
    places = spread(np.array([(ends[k][0] - low) / (high - low) for k in order]), 1.2 * size / height)
    written = {k: place for k, place in zip(order.tolist(), places)}
    for k, (_, label, color) in enumerate(ends):
        axes.text(1.012, written[k], label, transform=axes.transAxes, color=color, fontsize=size, va="center")


def spread(places: np.ndarray, apart: float) -> np.ndarray:
    """Rising places from 0 to 1, moved as little as keeps neighbours apart, and within [0, 1] where there is room."""
    shift = apart * np.arange(len(places))
    level = places - shift  # must rise: what falls is levelled (pool adjacent violators)
    pools: list[list[float]] = []
    for value in level.tolist():
        pools.append([value, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, m) = pools[-2:]
            pools[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    found = np.concatenate([np.zeros(0), *(np.full(int(n), value) for value, n in pools)])
    most = 1.0 - apart * (len(places) - 1)
    return np.clip(found, min(0.0, most), max(most, 0.0)) + shift
