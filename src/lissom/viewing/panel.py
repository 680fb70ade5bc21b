"""Panel beside the scene of a viewer: mode, time, sliders, plots, appearance, files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lissom.model.model import Model
from lissom.viewing.aids import CUTS, WORLD, Cut, Measure
from lissom.viewing.colors import COLOR_LEVELS, QUANTITIES, SERIES, rgb_bytes
from lissom.viewing.controls import Slider
from lissom.viewing.plots import inputs_by_unit
from lissom.viewing.session import Session
from lissom.viewing.stage import SHOWN, Stage

Post = Callable[[Callable[[], Any]], None]
_OPEN_SLIDERS = 8  # largest number of sliders of a folder that is open at first
_WINDOWS = {"2 s": 2.0, "5 s": 5.0, "10 s": 10.0, "30 s": 30.0, "all": np.inf}
_EMPTY = np.zeros(2)
_NO_STATE, _NOWHERE = "as it is", "nothing"
_TIME = {
    "pose": "The sliders under **Shape** say where the robot is.",
    "equilibrium": "The robot is at rest under the inputs. Pull it with the mouse.",
    "simulate": "The robot moves in real time. Pull it with the mouse; pause to look back.",
    "replay": "A recorded motion.",
}


@final
class Panel:
    """Controls of one session on a server of viser. Their actions are posted, and run between two pictures.

    Args:
        server: of viser. save: called with the kind of file.
    """

    def __init__(self, server: Any, session: Session, stage: Stage, post: Post, save: Callable[[str], None]) -> None:
        self.gui, self.session, self.stage, self.post, self.save = server.gui, session, stage, post, save
        self._locked = self._locks()
        self.sliders: list[tuple[Slider, Any]] = []
        self.input_sliders: list[tuple[Slider, Any]] = []
        self._shown = ""
        gui = self.gui
        self.status = gui.add_markdown("")
        self.mode = gui.add_dropdown("mode", session.modes, initial_value=session.mode)
        self._on(self.mode, lambda value: self.set_mode(value))
        self._add_time()
        tabs = gui.add_tab_group()
        with tabs.add_tab("Inputs"):
            self._add_inputs()
        with tabs.add_tab("Shape"):
            self._add_shape()
        with tabs.add_tab("Plots"):
            self.plots = PlotPanels(gui, session)
        with tabs.add_tab("Look"):
            self._add_look()
        with tabs.add_tab("Measure"):
            self._add_measure()
        with tabs.add_tab("Save"):
            self._add_save()
        self._mode_changed()

    def follow(self, session: Session, stage: Stage) -> bool:
        """Control another session and its stage. Returns whether these controls fit it: its coordinates, inputs, frames
        and modes have the same names. If not, nothing changes, and a new panel is needed."""
        if _controls(session) != _controls(self.session):
            return False
        self.session, self.stage, self.plots.session = session, stage, session
        shown = self.sliders
        self.sliders = [(one, handle) for one, (_, handle) in zip(session.coordinates, shown)]
        if session.coordinates != [one for one, _ in shown]:
            for one, handle in self.sliders:
                handle.min, handle.max, handle.step = float(one.low), float(one.high), one.step
        if _by_group(session.inputs) != [one for one, _ in self.input_sliders]:
            self.take_ranges()
        self.grid_note.content = self._grid_text()
        self.strobes.value = 0
        self._mode_changed()
        return True

    def take_ranges(self) -> None:
        """Show the ranges that the inputs of the session have now."""
        self.input_sliders = [(one, handle) for one, (_, handle) in
                              zip(_by_group(self.session.inputs), self.input_sliders)]  # fmt: skip
        self._widen()

    def _widen(self) -> None:
        """Set the ranges of the inputs."""
        for one, handle in self.input_sliders:
            handle.max, handle.min = one.high * self.factor.value, one.low * self.factor.value

    def _on(self, handle: Any, react: Callable[[Any], Any]) -> None:
        """Post a reaction to changes of a control by a user; changes by the program are ignored."""

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                value = handle.value
                self.post(lambda: react(value))

    def _click(self, label: str, react: Callable[[], Any], hint: str) -> Any:
        button = self.gui.add_button(label, hint=hint)
        button.on_click(lambda _: self.post(react))
        return button

    def _add_time(self) -> None:
        self.time = self.gui.add_folder("Time")
        with self.time:
            self.play = self.gui.add_button_group("", ("Play", "Pause", "Reset"))
            self.play.on_click(lambda event: self.post(lambda: self.press(event.target.value)))
            self.moment = self.gui.add_slider(
                "time [s]", 0.0, 1.0, 0.001, 0.0, hint="the recorded motion; pause to look back"
            )
            self.speed = self.gui.add_slider("speed [×]", 0.05, 4.0, 0.05, 1.0, hint="seconds of motion in one second")
        self._on(self.moment, self.scrub)
        self._on(self.speed, lambda value: setattr(self.session, "speed", float(value)))
        self.stable = self._click("Fall to a stable equilibrium", self.fall, "let an overdamped robot go from here")

    def _add_inputs(self) -> None:
        gui, session = self.gui, self.session
        if not session.inputs:
            gui.add_markdown("This robot has no inputs.")
            return
        self.factor = gui.add_number("range ×", 1.0, min=0.01, max=1000.0, step=0.5, hint="makes all ranges wider")
        for group in dict.fromkeys(one.group for one in session.inputs):
            with gui.add_folder(group):
                for one in (one for one in session.inputs if one.group == group):
                    value = float(session.u[one.column])
                    self.input_sliders.append((one, self._slider(one, self.set_input, value, self._locked[1])))
        self._click("All inputs to zero", self.no_inputs, "let go of all inputs")
        self._on(self.factor, lambda _: self._widen())

    def _add_shape(self) -> None:
        coordinates, values = self.session.coordinates, self.session.values

        def slider(one: Slider) -> tuple[Slider, Any]:
            return one, self._slider(one, self.set_coordinate, float(values[one.column]), self._locked[0])

        if not coordinates:
            self.gui.add_markdown("This robot has no coordinates.")
        self._click("Take the shape as the start", self.keep_start, "Reset comes back to it")
        if self.session.model.description.states:
            states = self.gui.add_dropdown("state", (_NO_STATE, *self.session.model.description.states))
            self._on(states, self.take_state)
        for group in dict.fromkeys(one.group for one in coordinates):
            own = [one for one in coordinates if one.group == group]
            with self.gui.add_folder(group, expand_by_default=len(coordinates) <= 4 * _OPEN_SLIDERS):
                for part in dict.fromkeys(one.part for one in own):
                    some = [one for one in own if one.part == part]
                    if not part:
                        self.sliders += [slider(one) for one in some]
                        continue
                    with self.gui.add_folder(part.replace("_", " "), expand_by_default=len(own) <= _OPEN_SLIDERS):
                        self.sliders += [slider(one) for one in some]

    def _slider(self, one: Slider, react: Callable[[Slider, float], Any], value: float, is_locked: bool) -> Any:
        """A slider with its first value: each later change of an attribute of a new handle costs viser a reading of
        type hints, a third of a millisecond."""
        label = one.name.replace("_", " ") + (f" [{one.unit}]" if one.unit else "")
        handle = self.gui.add_slider(label, float(one.low), float(one.high), one.step,
                                     float(np.clip(value, one.low, one.high)), disabled=is_locked)  # fmt: skip
        self._on(handle, lambda value: react(one, float(value)))
        return handle

    def _add_look(self) -> None:
        gui = self.gui
        names = ("nothing", *(f"{name} [{unit}]" for name, unit in QUANTITIES.items()))
        painted = next((name for name in names if name.partition(" [")[0] == self.stage.painted), names[0])
        self.paint = gui.add_dropdown("paint", names, initial_value=painted)
        self._on(self.paint, lambda value: self.stage.paint("" if value == names[0] else value.partition(" [")[0]))
        self.legend = gui.add_html("", visible=False)
        solid = gui.add_slider("solid", 0.05, 1.0, 0.05, self.stage.opacity, hint="how solid the bodies are")
        self._on(solid, lambda value: self.stage.make_solid(float(value)))
        checks = {name: gui.add_checkbox(name, name not in self.stage.hidden) for name in SHOWN}
        for check in checks.values():
            self._on(check, lambda _: self.stage.hide({name for name, one in checks.items() if not one.value}))
        self._click(
            "Reset colours",
            lambda: self.stage.paint(self.stage.painted),
            "start the scale of colours at the values of now",
        )
        self._add_cut()
        self.strobes = gui.add_slider("strobes", 0, 12, 1, 0, hint="earlier shapes of the recorded motion")
        self._on(self.strobes, self.show_strobes)
        self.grid_note = gui.add_markdown(self._grid_text())

    def _add_cut(self) -> None:
        """A plane that opens the bodies."""
        cut = self.stage.cut
        known = next((name for name, one in CUTS.items() if cut is not None and one == (cut.axis, cut.sign)), "nothing")
        self.cut = self.gui.add_dropdown("cut away", tuple(CUTS), initial_value=known)
        self.cut_at = self.gui.add_slider("cut at", 0.0, 1.0, 0.01, 0.5, hint="from one side of the robot to the other")
        for handle in (self.cut, self.cut_at):
            self._on(handle, lambda _: self.cut_open(self.cut.value, float(self.cut_at.value)))

    def cut_open(self, name: str, part: float) -> None:
        """Cut the bodies open: one of CUTS, and the place of the plane from 0 to 1 of the robot as it stands."""
        axis, sign = CUTS[name]
        low, high = self.stage.box(self.session.q)
        at = float(low[axis] + part * (high - low)[axis])
        self.stage.cut_open(Cut(axis, sign, at) if sign else None)

    def show_strobes(self, count: int) -> None:
        """Show earlier shapes of the recorded motion."""
        record = self.session.record
        self.stage.show_strobes(record.trajectory() if len(record) > 1 else None, int(count))

    def _add_measure(self) -> None:
        """Two places, and what lies between them."""
        places, measure = self.stage.places, self.stage.measure
        rows = []
        for label, name, s in (("from", WORLD, 1.0), ("to", _NOWHERE, 1.0)) if measure is None else (
            ("from", measure.a, measure.s_a), ("to", measure.b, measure.s_b)
        ):  # fmt: skip
            which = self.gui.add_dropdown(label, (_NOWHERE, *places), initial_value=name)
            rows.append((which, self.gui.add_slider(f"s {label}", 0.0, 1.0, 0.01, s, hint="abscissa, on rods")))

        def chosen(_: Any) -> None:
            (a, s_a), (b, s_b) = ((which.value, float(s.value)) for which, s in rows)
            self.stage.measure = None if _NOWHERE in (a, b) else Measure(a, b, s_a, s_b)

        for which, s in rows:
            self._on(which, chosen)
            self._on(s, chosen)
        self.measured = self.gui.add_markdown("")

    def take_state(self, name: str) -> None:
        """Take a named state of the robot: its shape, and its inputs."""
        if name != _NO_STATE:
            q, _, u = self.session.model.state(name)
            if self.session.mode == "replay":
                self.set_mode("pose")
            self.session.set_shape(q)
            self.session.set_inputs(u)
            self.show_values()

    def _grid_text(self) -> str:
        cell = self.stage.cell
        return f"A small square of the grid is {0.2 * cell:g} m wide, a large one {cell:g} m."

    def _add_save(self) -> None:
        hints = {"html": ("Web page (.html)", "the recorded motion, for any browser, in one file"),
                 "mp4": ("Video (.mp4)", "the recorded motion in this view"),
                 "glb": ("Scene (.glb)", "the shape in view as glTF, with the recorded motion as an animation"),
                 "png": ("Picture (.png)", "what this view shows now"),
                 "npz": ("Motion (.npz)", "the recorded motion, as a trajectory file")}  # fmt: skip
        self.gui.add_markdown("Save the shape in view or the recorded motion:")
        for kind, (label, hint) in hints.items():
            self._click(label, lambda kind=kind: self.save(kind), hint)
        self.progress = self.gui.add_markdown("")

    def set_mode(self, mode: str) -> None:
        """Change the mode."""
        self.session.set_mode(mode)
        self._mode_changed()

    def press(self, what: str) -> None:
        """React to "Play", "Pause" or "Reset"."""
        if what == "Reset":
            self.session.reset()
            self.show_values()
        elif what == "Play":
            self.session.play()
        else:
            self.session.pause()
            self.show_values()

    def scrub(self, t: float) -> None:
        """Pause at another time of the history [s]."""
        self.session.pause()
        self.session.scrub(float(t))
        self.show_values()

    def fall(self) -> None:
        """Go from an unstable equilibrium to a stable one."""
        if self.session.mode == "equilibrium":
            self.session.settle(stable=True)

    def set_input(self, slider: Slider, value: float) -> None:
        """Set one input [its unit]."""
        u = self.session.u.copy()
        u[slider.column] = value
        self.session.set_inputs(u)

    def no_inputs(self) -> None:
        """Set all inputs to zero."""
        self.session.set_inputs(np.zeros(self.session.model.nu))
        self.show_values()

    def set_coordinate(self, slider: Slider, value: float) -> None:
        """Set one coordinate [its unit]."""
        values = self.session.values
        values[slider.column] = value
        self.session.set_values(values)

    def keep_start(self) -> None:
        """Make the current configuration the start."""
        self.session.start = self.session.q.copy()

    def show_values(self) -> None:
        """Set all sliders to the current state."""
        wide = self.factor.value if self.input_sliders else 1.0
        for rows, values, k in ((self.sliders, self.session.values, 1.0), (self.input_sliders, self.session.u, wide)):
            for one, handle in rows:
                value = float(np.clip(values[one.column], k * one.low, k * one.high))
                if handle.value != value:
                    handle.value = value

    def _mode_changed(self) -> None:
        mode = self.session.mode
        self.mode.value = mode
        self.time.visible = mode in ("simulate", "replay")
        before, self._locked = self._locked, self._locks()
        for rows, was_locked, is_locked in zip((self.sliders, self.input_sliders), before, self._locked):
            for _, handle in rows if was_locked != is_locked else ():
                handle.disabled = is_locked
        self.show_values()

    def _locks(self) -> tuple[bool, bool]:
        """Whether the mode keeps the user from coordinates, and from inputs."""
        return self.session.mode == "replay", self.session.mode in ("replay", "pose")

    def refresh(self, update: float) -> None:
        """Update status, plots and legend; `update` is the median time of an update [s]."""
        session = self.session
        lines = [_TIME[session.mode]]
        if session.note:
            lines.append(session.note if session.is_good else f"**{session.note}**")
        if session.mode in ("simulate", "replay"):
            state = "playing" if session.is_playing else "paused"
            lines.append(f"t = {session.t:.2f} s, {state}")
            if session.deepest is not None:
                lines.append(f"deepest contact {1e3 * session.deepest:.2g} mm")
            self._show_time()
        if update > 0.0:
            lines.append(f"median update {1e3 * update:.1f} ms; computing {1e3 * session.solving:.1f} ms")
        text = "<br/>".join(lines)
        if text != self._shown:
            self.status.content = self._shown = text
        if session.mode == "replay":
            self.show_values()
        self.stable.visible = session.mode == "equilibrium" and not session.is_good
        self.plots.refresh()
        self._show_legend()
        text = measured_text(self.stage.measure, session.model, session.q)
        if self.measured.content != text:
            self.measured.content = text

    def _show_time(self) -> None:
        low, high = self.session.record.span
        low, high = np.floor(100.0 * low) / 100.0, max(np.ceil(100.0 * high), 1.0) / 100.0
        if abs(self.moment.max - high) > 1e-9 or abs(self.moment.min - low) > 1e-9:
            self.moment.min, self.moment.max = low, high
        self.moment.value = float(np.clip(self.session.t, low, high))

    def _show_legend(self) -> None:
        scale = self.stage.scale
        self.legend.visible = scale is not None
        if scale is None:
            return
        colors = ", ".join(f"rgb({r},{g},{b})" for r, g, b in rgb_bytes(np.linspace(0.0, 1.0, COLOR_LEVELS)).tolist())
        (low, high), (label, factor) = scale.ends, scale.label
        style = "height:0.9em;border-radius:3px;"
        ticks = "".join(f"<span>{factor * value:.3g}</span>" for value in np.linspace(low, high, 5).tolist())
        text = (f'<div style="padding:0 1em;font-size:0.8em">{label}'
                f'<div style="{style}background:linear-gradient(90deg,{colors})"></div>'
                f'<div style="display:flex;justify-content:space-between">{ticks}</div></div>')  # fmt: skip
        if self.legend.content != text:
            self.legend.content = text


def measured_text(measure: Measure | None, model: Model, q: np.ndarray) -> str:
    """The distance and the angles between two places, in words."""
    if measure is None:
        return "Choose two places; rods have them anywhere along s."
    distance, away, between, turn = measure.values(model, q)
    along = ", ".join(f"{name} {1e3 * x:.2f}" for name, x in zip("xyz", away))
    lines = (
        f"distance **{1e3 * distance:.2f} mm** ({along})",
        f"angle between the x axes, which are tangents of rods: **{np.degrees(between):.2f}°**",
        f"turn from one frame to the other: **{np.degrees(turn):.2f}°**",
    )
    return "<br/>".join(lines)


def _by_group(sliders: list[Slider]) -> list[Slider]:
    """Sliders in the order of the panel: group by group."""
    groups = dict.fromkeys(one.group for one in sliders)
    return [one for group in groups for one in sliders if one.group == group]


def _controls(session: Session) -> tuple[Any, ...]:
    """What the controls of a session depend on, but for ranges."""
    model = session.model
    names = [(one.name, one.unit, one.group, one.part) for one in (*session.coordinates, *session.inputs)]
    return names, session.modes, [*model.frames, *model.links.names], list(model.description.states)


@final
class PlotPanels:
    """Plots of one session against time: positions of frames, inputs by their units, energies.

    Args:
        gui: of viser, inside the tab of the plots.
    """

    def __init__(self, gui: Any, session: Session) -> None:
        self.session, model, self._gui = session, session.model, gui
        self._names = tuple(dict.fromkeys([*model.frames, *reversed(model.links.names)]))
        self.frames: list[tuple[Any, Any]] = []  # the dropdown of each frame, and its plot
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
        """Add a plot of the position of a frame, with a choice of the frame."""
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
        """Redraw the plots if the history or a choice has changed."""
        session, record = self.session, self.session.record
        frames = list(self.frames)
        names = tuple(which.value for which, _ in frames)
        here = (len(record), session.t, names, self.window.value, session.mode)
        if not self.is_live.value or len(record) < 2 or here == self._last:
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
