"""Plots beside the scene of a viewer, which go on while a robot moves: one axis for each quantity."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.viewing.session import Session
from lissom.viewing.style import SERIES
from lissom.viewing.trajectories import inputs_by_unit

_WINDOWS = {"2 s": 2.0, "5 s": 5.0, "10 s": 10.0, "30 s": 30.0, "all": np.inf}
_EMPTY = np.zeros(2)


@final
class PlotPanels:
    """The plots of one session: the position of a frame, inputs by their units, energies.

    Args:
        gui: of viser, at the place where they stand.
    """

    def __init__(self, gui: Any, session: Session) -> None:
        self.session, model = session, session.model
        names = tuple(dict.fromkeys([*model.frames, *reversed(model.links.names)]))
        self.frame = gui.add_dropdown("frame", names, initial_value=names[0])
        self.window = gui.add_dropdown("window", tuple(_WINDOWS), initial_value="10 s")
        self.is_live = gui.add_checkbox("live", True, hint="let the plots go on")
        self.position = self._plot(gui, "position [m]", ["x", "y", "z"])
        self.inputs = [(columns, self._plot(gui, unit, [model.inputs.names[k] for k in columns]))
                       for unit, columns in inputs_by_unit(model).items()]  # fmt: skip
        self.energies = self._plot(gui, "energy [J]", ["kinetic", "gravitational", "elastic"])
        self._last: tuple[Any, ...] = ()

    def _plot(self, gui: Any, title: str, labels: list[str]) -> Any:
        lines = [{"label": label, "stroke": SERIES[k % len(SERIES)], "width": 2} for k, label in enumerate(labels)]
        return gui.add_uplot(
            (_EMPTY, *(_EMPTY for _ in labels)), ({"label": "t [s]"}, *lines), title=title, height=190,
            scales={"x": {"time": False, "auto": True}}, legend={"show": True},
            axes=({"label": "", "size": 26}, {"size": 54}),
        )  # fmt: skip

    def refresh(self) -> None:
        """Draw what has come since."""
        session, record = self.session, self.session.record
        here = (len(record), session.t, self.frame.value, self.window.value, session.mode)
        if not self.is_live.value or not len(record) or here == self._last:
            return
        self._last = here
        end = session.t if session.mode in ("simulate", "replay") else record.span[1]
        series = record.series(end, _WINDOWS[self.window.value], self.frame.value)
        if len(series.t) < 2:
            return
        self.position.data = (series.t, *series.position.T.copy())
        self.energies.data = (series.t, *series.energies.T.copy())
        for columns, plot in self.inputs:
            plot.data = (series.t, *series.inputs[:, columns].T.copy())
