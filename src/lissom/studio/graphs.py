"""Graphs of results of the studio by matplotlib: one result, or several over each other."""

from __future__ import annotations

import html
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.studio.session import Result
from lissom.viewing.branch_plot import plot_branch
from lissom.viewing.colors import FAINT, GRID, INK, SERIES
from lissom.viewing.plots import figure_class, plot_trajectory

_DPI = 110
_CURVES = 8  # curves of a sweep of two values


def graph_of(results: Sequence[Result]) -> bytes:
    """A graph of one result, or of several results of one kind over each other, as PNG.

    Raises:
        ModelError: the results are of different kinds, or of a kind without a graph; or matplotlib is missing.
    """
    kinds = {result.kind for result in results}
    if len(kinds) != 1 or not kinds <= {"motion", "branch", "sweep"}:
        raise ModelError(f"graph: must be of motions, of branches or of sweeps (got {', '.join(sorted(kinds))})")
    (kind,) = kinds
    first = results[0]
    if kind == "motion":
        figure = plot_trajectory(first.model, first.value) if len(results) == 1 else _motions(results)
    elif kind == "branch":
        same = [result.value for result in results if result.value.q.shape[1] == first.model.nq]
        figure = plot_branch(first.model, same, title=", ".join(result.name for result in results))
    else:
        figure = _sweeps(results)
    out = BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, facecolor="white")
    return out.getvalue()


def tip_of(model: Model) -> str:
    """The last link of the tree without children."""
    carriers = set(model.links.parent.tolist())
    return [name for k, name in enumerate(model.links.names) if k not in carriers][-1]


def _motions(results: Sequence[Result]) -> Any:
    """Positions of the tips of motions over each other, one colour for each."""
    figure = figure_class()(figsize=(8.0, 7.0), layout="constrained")
    for axes, (k, axis) in zip(figure.subplots(3, 1, sharex=True), enumerate("xyz")):
        for j, result in enumerate(results):
            tip = tip_of(result.model)
            z = frame_pose(result.model, result.value.q, tip)[:, k, 3]
            axes.plot(result.value.t, z, color=SERIES[j % len(SERIES)], linewidth=1.5, label=f"{result.name}: {tip}")
        _dressed(axes, f"{axis} [m]")
    axes.set_xlabel("time [s]", color=INK)
    _key(figure, axes)
    return figure


def _sweeps(results: Sequence[Result]) -> Any:
    """The coordinate of the tip that varies most against the first value; a curve for each second value. Circles are
    not stable."""
    figure = figure_class()(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.subplots()
    first = results[0]
    rows = [frame_pose(one.model, one.value.q[one.value.found], tip_of(one.model))[:, :3, 3] for one in results]
    k = int(np.argmax(np.ptp(np.concatenate(rows), axis=0)))
    color = 0
    for result in results:
        swept = result.value
        z = np.full(len(swept.q), np.nan)
        z[swept.found] = frame_pose(result.model, swept.q[swept.found], tip_of(result.model))[:, k, 3]
        others = [None] if len(swept.axes) == 1 else np.unique(swept.values[:, 1]).tolist()
        for other in others[:: max(len(others) // _CURVES, 1)]:
            own = slice(None) if other is None else swept.values[:, 1] == other
            label = result.name if other is None else f"{result.name}: {swept.axes[1].name} = {other:.3g}"
            x, y, loose = swept.values[own, 0], z[own], ~swept.stable[own]
            axes.plot(x, y, ".-", color=SERIES[color % len(SERIES)], linewidth=1.3, label=label)
            axes.plot(x[loose], y[loose], "o", color=SERIES[color % len(SERIES)], markerfacecolor="white")
            color += 1
    axes.set_xlabel(first.value.axes[0].name, color=INK)
    _dressed(axes, f"{'xyz'[k]} of {tip_of(first.model)} [m]")
    _key(figure, axes)
    return figure


def _dressed(axes: Any, label: str) -> None:
    axes.set_ylabel(label, color=INK)
    axes.grid(color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=9, labelcolor=INK, color=FAINT)


def _key(figure: Any, axes: Any) -> None:
    """A legend below the axes, which covers nothing."""
    lines, names = axes.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=min(len(names), 3), frameon=False, fontsize=9)


def fit_table(result: Result) -> str:
    """The values of an identification with their intervals, as an HTML table."""
    columns = result.value.values, result.value.low, result.value.high
    rows = "".join(f"<tr><td>{html.escape(path)}</td>{''.join(f'<td>{_numbers(x[path])}</td>' for x in columns)}</tr>"
                   for path in result.value.values)  # fmt: skip
    return f"<table><tr><th>value</th><th>found</th><th>from</th><th>to</th></tr>{rows}</table>"


def _numbers(value: Any) -> str:
    return ", ".join(f"{x:.4g}" for x in np.ravel(value).tolist())
