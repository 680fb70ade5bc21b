"""Graphs of branches of equilibria by matplotlib: a quantity against the load factor, with folds and bifurcations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ShapeError
from lissom.model.model import Model
from lissom.robot import checks
from lissom.statics.continuation import Branch
from lissom.viewing.colors import FAINT, GRID, INK, SERIES
from lissom.viewing.plots import figure_class, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKS = {"limit": ("o", "limit point (fold)"), "bifurcation": ("D", "bifurcation"), "flutter": ("^", "flutter")}
_AXES = {"factor": "load factor [-]", "time": "time [s]"}


def plot_branch(
    model: Model,
    branch: Branch | Sequence[Branch],
    *,
    path: str | Path | None = None,
    link: str | None = None,
    values: Callable[[np.ndarray], Any] | None = None,
    label: str | None = None,
    parameter: str = "factor",
    title: str | None = None,
    axes: Any = None,
) -> Figure:
    """Plot branches of equilibria against their load factor: stable parts solid, unstable ones dashed, with a mark at
    each event.

    Args:
        branch: from `continuation`, or several, which share the axes.
        path: file to write, whose ending selects the format (.png, .pdf, .svg).
        link: name of a link or frame. The coordinate of its position that varies most is drawn; None is the last link
            of the tree without children.
        values: instead of a position, a function of configurations (n, nq) [rad, m, or strain units] that returns a
            number for each, shape (n,).
        label: label of the values, with their unit.
        parameter: "factor" or "time", as for `continuation`.
        title: title of the figure; None is the name of the robot.
        axes: axes of matplotlib to draw into; with None a figure is made.
    Returns:
        The figure.
    Raises:
        ShapeError: the values have another shape, or a branch is one of another model. ModelError: no such link.
    """
    nq, own = model.nq, [branch] if isinstance(branch, Branch) else list(branch)
    checks.require(bool(own) and all(isinstance(one, Branch) for one in own), "branch", "must be a Branch, or several",
                   branch)  # fmt: skip
    for one in own:
        if one.q.ndim != 2 or one.q.shape[1] != nq:
            raise ShapeError(f"branch: expected points of {nq} coordinates, got {one.q.shape}")
    checks.require(parameter in _AXES, "parameter", "must be 'factor' or 'time'", parameter)
    height, words = _tip(model, own, link) if values is None else (values, "value")
    figure = figure_class()(figsize=(7.0, 5.0), layout="constrained") if axes is None else axes.figure
    axes = figure.subplots() if axes is None else axes
    known: dict[str, Any] = {}
    for k, one in enumerate(own):
        color = SERIES[k % len(SERIES)]
        events = [event for event in one.events if event.index < len(one.factor) - 1]
        y, at_events = _values(height, one.q), _values(height, np.array([event.q for event in events]))
        for is_stable, factor, value in _parts(one, y, events, at_events):
            style, name = ("-", "stable") if is_stable else ((0, (4, 2.5)), "unstable")
            (line,) = axes.plot(factor, value, linestyle=style, color=color, linewidth=1.8)
            known.setdefault(name, line)
        for event, value in zip(events, at_events):
            mark, name = _MARKS[event.kind]
            face = color if event.kind == "bifurcation" else "white"
            (dot,) = axes.plot([event.factor], [value], mark, color=color, markerfacecolor=face, markersize=7,
                               markeredgewidth=1.6, zorder=3)  # fmt: skip
            known.setdefault(name, dot)
    axes.set_xlabel(_AXES[parameter], color=INK)
    axes.set_ylabel(words if label is None else label, color=INK)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=9, labelcolor=INK, color=FAINT)
    axes.set_title(model.name if title is None else title, loc="left", color=INK, fontsize=12, weight="bold")
    axes.legend(list(known.values()), list(known), loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=len(known),
                frameon=False, fontsize=9, labelcolor=INK)  # fmt: skip
    return finish(figure, path)


def _tip(model: Model, branches: list[Branch], link: str | None) -> tuple[Callable[[np.ndarray], Any], str]:
    """The coordinate of a position that varies most, as a function of configurations, and its label."""
    carriers = set(model.links.parent.tolist())
    name = link or [one for k, one in enumerate(model.links.names) if k not in carriers][-1]
    q = np.concatenate([one.q for one in branches])
    axis = int(np.argmax(np.ptp(frame_pose(model, q, name)[:, :3, 3], axis=0)))
    place = f"tip of {name}" if name in model.rods else name
    return lambda q: frame_pose(model, q, name)[:, axis, 3], f"{'xyz'[axis]} of {place} [m]"


def _values(height: Callable[[np.ndarray], Any], q: np.ndarray) -> np.ndarray:
    """The values at configurations (n, nq), shape (n,)."""
    if not len(q):
        return np.zeros(0)
    found = np.asarray(height(q), dtype=np.float64)
    if found.shape != (len(q),):
        raise ShapeError(f"values: expected shape ({len(q)},) at configurations of shape {q.shape}, got {found.shape}")
    return found


def _parts(
    branch: Branch, y: np.ndarray, events: Sequence[Any], at_events: np.ndarray
) -> Iterator[tuple[bool, list[float], list[float]]]:
    """The parts of a branch between changes of its stability: whether stable, factors and values. A change lies at the
    event between its points, or half way where no event was located."""
    factor, value, is_stable = [float(branch.factor[0])], [float(y[0])], bool(branch.stable[0])
    for k in range(1, len(y)):
        between = [j for j, event in enumerate(events) if event.index == k - 1]
        changes = bool(branch.stable[k]) != is_stable
        for j in between:
            factor.append(float(events[j].factor))
            value.append(float(at_events[j]))
        if changes and not between:
            factor.append(0.5 * float(branch.factor[k - 1] + branch.factor[k]))
            value.append(0.5 * float(y[k - 1] + y[k]))
        if changes:
            yield is_stable, factor, value
            factor, value, is_stable = factor[-1:], value[-1:], not is_stable
        factor.append(float(branch.factor[k]))
        value.append(float(y[k]))
    yield is_stable, factor, value
