"""Curves of a motion below the scene, whose cursor moves the robot: the tip, and the inputs, against time."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.studio.graphs import tip_of
from lissom.studio.scene import Studio
from lissom.studio.session import Result
from lissom.viewing.canvas import nice_number
from lissom.viewing.colors import FAINT, INK, SERIES

_HEIGHT = 210  # [pixels]
_MOST = 400  # points of a curve
_OFTEN = 0.05  # time between two messages of the cursor [s]


@final
class CursorPlot:
    """The plot, hidden at first, in the container that is current when it is made.

    Args:
        made: what all pages share.
    """

    def __init__(self, made: Studio) -> None:
        from nicegui import ui

        self.studio, self.name = made, ""
        self._t = np.zeros(0)
        self.room = ui.column().classes("w-full gap-0 bg-white").style(f"height: {_HEIGHT}px; flex: none")
        self.room.set_visibility(False)

    def show(self, result: Result) -> None:
        """Show the curves of a motion, and the motion in the scene."""
        from nicegui import ui

        self.name = result.name
        t = np.asarray(result.value.t)
        rows = np.unique(np.linspace(0, len(t) - 1, _MOST).astype(int))
        self._t = t[rows]
        self.room.clear()
        self.room.set_visibility(True)
        with self.room:
            with ui.row().classes("w-full items-center justify-between q-px-sm no-wrap"):
                said = f"{result.name}: the robot follows the mouse over the curves"
                ui.label(said).classes("text-caption")
                ui.button(icon="close", on_click=self.hide).props("flat dense size=sm data-place=close-curves")
            chart = ui.echart(curves(result, rows)).classes("w-full").style("height: 100%; min-height: 0")
            chart.props("data-place=curves")
            chart.on("chart:highlight", self._on_cursor, ["batch"], throttle=_OFTEN)

    def hide(self) -> None:
        """Hide the plot."""
        self.room.clear()
        self.room.set_visibility(False)

    def _on_cursor(self, event: Any) -> None:
        batch = event.args.get("batch") if isinstance(event.args, dict) else None
        if batch and isinstance(k := batch[0].get("dataIndex"), int) and 0 <= k < len(self._t):
            self.move(float(self._t[k]))

    def move(self, t: float) -> None:
        """Show the motion at a time [s]."""
        viewer = self.studio.viewer
        if viewer.session.mode == "replay":
            viewer.post(lambda: viewer.panel.scrub(t))


def curves(result: Result, rows: np.ndarray) -> dict[str, Any]:
    """The options of ECharts for the curves of a motion at some of its states: how far the tip has moved at the left,
    inputs that change at the right."""
    model, motion = result.model, result.value
    t, tip = np.asarray(motion.t)[rows], tip_of(model)
    moved = frame_pose(model, motion.q[rows], tip)[:, :3, 3]
    groups = [[(f"Δ{axis} of {tip}", values) for axis, values in zip("xyz", (moved - moved[0]).T)]]
    driven = [(name, x) for name, x in zip(model.inputs.names, motion.u[rows].T) if np.ptp(x) > 0.0]
    groups += [driven] if driven else []
    wide, series, axes = 100 / len(groups), [], []
    for k, group in enumerate(groups):
        axes.append({"left": f"{wide * k + 5:.0f}%", "width": f"{wide - 9:.0f}%", "top": 30, "bottom": 28})
        for name, values in group:
            step = nice_number(1e-4 * float(np.abs(values).max(initial=1e-12)))
            rounded = np.round(np.round(values / step) * step, 12)
            points = [[round(a, 6), b] for a, b in zip(t.tolist(), rounded.tolist())]
            series.append({"name": name, "type": "line", "data": points, "xAxisIndex": k, "yAxisIndex": k,
                           "showSymbol": False, "lineStyle": {"width": 1.6}})  # fmt: skip
    words, line = {"color": INK, "fontSize": 11}, {"lineStyle": {"color": FAINT}}
    return {
        "color": list(SERIES), "animation": False, "grid": axes, "series": series,
        "legend": {"top": 2, "itemHeight": 8, "textStyle": words},
        "tooltip": {"trigger": "axis", "textStyle": {"fontSize": 11}},
        "axisPointer": {"link": [{"xAxisIndex": "all"}]},
        "xAxis": [{"type": "value", "gridIndex": k, "min": float(t[0]), "max": float(t[-1]), "axisLabel": words,
                   "axisLine": line, "splitLine": {"show": False}} for k in range(len(groups))],
        "yAxis": [{"type": "value", "gridIndex": k, "scale": True, "axisLabel": words, "splitNumber": 4,
                   "name": "m" if k == 0 else "", "nameTextStyle": words} for k in range(len(groups))],
    }  # fmt: skip
