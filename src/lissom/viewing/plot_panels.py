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
    """The plots of one session: positions of frames, inputs by their units, energies.

    Args:
        gui: of viser, at the place where they stand.
    """

    def __init__(self, gui: Any, session: Session) -> None:
        self.session, model, self._gui = session, session.model, gui
        self._names = tuple(dict.fromkeys([*model.frames, *reversed(model.links.names)]))
        self.frames: list[tuple[Any, Any]] = []  # which, and its plot
        self.window = gui.add_dropdown("window", tuple(_WINDOWS), initial_value="10 s")
        self.is_live = gui.add_checkbox("live", True, hint="let the plots go on")
        self._folder = gui.add_folder("Frames")
        self.add_frame()
        more = gui.add_button("Plot another frame", hint="its position beside those that are plotted")
        more.on_click(lambda _: self.add_frame())
        self.inputs = [(columns, self._plot(gui, unit, [model.inputs.names[k] for k in columns]))
                       for unit, columns in inputs_by_unit(model).items()]  # fmt: skip
        self.energies = self._plot(gui, "energy [J]", ["kinetic", "gravitational", "elastic"])
        self._last: tuple[Any, ...] = ()

    def add_frame(self) -> None:
        """Plot the position of one more frame, which is chosen beside its plot."""
        first = self._names[len(self.frames) % len(self._names)]
        with self._folder:
            which = self._gui.add_dropdown("frame", self._names, initial_value=first)
            self.frames.append((which, self._plot(self._gui, "position [m]", ["x", "y", "z"])))

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
        frames = list(self.frames)
        names = tuple(which.value for which, _ in frames)
        here = (len(record), session.t, names, self.window.value, session.mode)
        if not self.is_live.value or not len(record) or here == self._last:
            return
        self._last = here
        end = session.t if session.mode in ("simulate", "replay") else record.span[1]
        series = record.series(end, _WINDOWS[self.window.value], names)
        if len(series.t) < 2:
            return
        for name, (_, plot) in zip(names, frames):
            plot.data = (series.t, *series.positions[name].T.copy())
        self.energies.data = (series.t, *series.energies.T.copy())
        for columns, plot in self.inputs:
            plot.data = (series.t, *series.inputs[:, columns].T.copy())
