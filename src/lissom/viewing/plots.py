"""Figures by matplotlib: motions against time, and pictures of robots as parts of figures.

Matplotlib is imported when a figure is made. Figures belong to no window and to no backend: they are made, saved and
returned without a display, and matplotlib's settings stay as they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.internal_wrench import internal_wrench, joint_wrench
from lissom.dynamics.kinematics import frame_pose
from lissom.errors import ModelError, ShapeError, renamed
from lissom.model.model import Model
from lissom.portable import optional, write_whole
from lissom.robot.bases import STRAINS
from lissom.robot.checks import require
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.colors import FAINT, GRID, INK, SERIES
from lissom.viewing.render import Scene, configuration_rows, curves_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_DPI, _PICTURE_DPI, _NOTEBOOK_DPI = 200, 150, 100  # dots per inch of figures, of robots in them, in notebooks
_WIDE, _TITLE = 7.0, 0.5  # width of a figure with one picture, and height of its title [in]
_SMALLEST = 64  # smallest number of pixels of a picture along each side
_APART = 10.0  # largest ratio of the range of a panel to the span of a curve in it
_STILL = 1e-6  # largest span of a curve that counts as constant, relative to the largest span
_INCHES = 1.9  # approximate height of a panel [in]


@renamed(trace="trail")
def plot_shapes(
    model: Model,
    q: ArrayLike,
    *,
    path: str | Path | None = None,
    links: Sequence[str] | None = None,
    trail: ArrayLike | Sequence[ArrayLike] | str | None = None,
    values: ArrayLike | None = None,
    value_label: str = "",
    title: str | None = None,
    view: tuple[float, float] | None = (20.0, -60.0),
    obstacles: bool = True,
    axes: Any = None,
) -> Figure:
    """Draw a robot in one or several configurations, as a figure of matplotlib or in given axes.

    The picture is that of `render`. On a machine without PyVista or OpenGL the axes show a text that names the missing
    package.

    Args:
        q: configurations, shape (nq,) or (n, nq) [rad, m, or strain units]; the last one is opaque.
        path: file to write, whose ending selects the format (.png, .pdf, .svg).
        links: names of the links to draw; None draws all of them.
        trail: a curve to draw, shape (m, 3) [m], a list of curves, or the name of a link or frame whose path is drawn.
        values: one number for each configuration, shape (n,), which the colours of soft bodies show.
        value_label: label of the colour scale of `values`, with their unit.
        title: title of the figure; None is the name of the robot.
        view: elevation and azimuth of the eye [deg]; with None a direction is chosen.
        obstacles: whether to draw contact shapes.
        axes: axes of matplotlib to draw into, without a projection; with None a figure is made.
    Returns:
        The figure.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: no such link, or `axes` is 3-D.
    """
    rows = configuration_rows(model, q)
    curves = curves_of(model, trail, rows)
    size: Any = round(_PICTURE_DPI * _WIDE)
    if axes is not None:
        require(axes.name != "3d", "axes", "must be axes without projection", "3-D axes")
        extent = axes.get_window_extent()
        size = tuple(
            max(round(_PICTURE_DPI * side / axes.figure.dpi), _SMALLEST) for side in (extent.width, extent.height)
        )
    scene = Scene(model, rows, curves, links, None, values, view, obstacles, size)
    if axes is None:
        axes = _picture_axes(*scene.camera.size)
    axes.set_axis_off()
    axes.set_title(model.name if title is None else title, color=INK, fontsize=12, weight="bold")
    try:
        axes.imshow(scene.labelled_picture(rows, curves, value_label, None))
    except ModelError as error:  # PyVista or OpenGL is missing
        words = textwrap.fill(f"not drawn: {error}", 45)
        axes.text(0.5, 0.5, words, transform=axes.transAxes, color=INK, ha="center", va="center")
    return finish(axes.figure, path)


def figure_class() -> Any:
    """The class of figures of matplotlib; a ModelError names the extra where it is missing."""
    return optional("matplotlib.figure", "graphs need matplotlib", "view").Figure


def _picture_axes(width: int, height: int) -> Any:
    """Axes over all of a figure but its title, for a picture of this shape."""
    Figure = figure_class()
    tall = _WIDE * height / width
    return Figure(figsize=(_WIDE, tall + _TITLE)).add_axes((0.0, 0.0, 1.0, tall / (tall + _TITLE)))


@final
class Panel(NamedTuple):
    """Curves over time in one pair of axes.

    Fields:
        label: with a unit. series: rows (n, k). names: of the columns. is_input: whether they are inputs, which may be
        constant between samples. looks: numbers of the colours of the columns; None is their order.
    """

    label: str
    series: np.ndarray
    names: list[str]
    is_input: bool = False
    looks: list[int] | None = None


def plot_trajectory(
    model: Model,
    trajectory: Trajectory,
    *,
    path: str | Path | None = None,
    link: str | None = None,
    internal: tuple[str, float] | None = None,
    joint: str | None = None,
    coordinates: str | Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Plot a motion against time: the position of a frame in the world, coordinates, wrenches of a section or a joint,
    and the inputs.

    Curves of one unit share axes as long as each of them is visible beside the others. Inputs that are constant during
    the motion, and positions and coordinates that are constant far from the others, are not drawn; a line below the
    graphs gives their values. Inputs that are constant between samples are drawn as steps.

    Args:
        trajectory: of one motion.
        path: file to write, whose ending selects the format (.png, .pdf, .svg).
        link: name of the link or frame whose position is drawn, for a rod that of its far end; None is the last
            link of the tree without children.
        internal: link and abscissa of a section. Its internal_wrench is drawn, tendons and chambers included: first the
            moments, then the forces.
        joint: name of a link. Its joint_wrench is drawn in the same way.
        coordinates: names of links, or "all". The coordinates of their joints and bodies are drawn: angles, positions,
            and of a rod the coordinates of its curvatures and of its strains, by their names and orders.
        title: title of the figure; None is the name of the robot.
    Returns:
        The figure.
    Raises:
        ShapeError: the trajectory is a batch. ModelError: no such link, frame or rod, or s outside [0, 1].
    """
    Figure = figure_class()
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
    moving = _coordinate_panels(model, trajectory.q, _chosen_links(model, coordinates))
    position = Panel(f"{place} [m]", tip, list("xyz"))
    drawn, still = _split_by_scale([position, *moving, *_wrench_panels(model, trajectory, internal, joint), *inputs])
    heights = [1.25] + [1.0] * (len(drawn) - 1)
    figure = Figure(figsize=(8.0, 1.1 + 2.3 * sum(heights)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))
    for axes, panel in zip(panels, drawn):
        _draw(axes, trajectory.t, panel)
    figure.align_ylabels(panels)
    panels[-1].set_xlabel("time [s]", color=INK)
    panels[0].set_title(model.name if title is None else title, loc="left", color=INK, fontsize=12, weight="bold")
    if still:
        figure.supxlabel(textwrap.fill(f"constant: {', '.join(still)}", 110), fontsize=8.5, color=INK)
    return finish(figure, path)


def _chosen_links(model: Model, coordinates: str | Sequence[str] | None) -> list[str]:
    """The links whose coordinates are drawn."""
    names = list(model.links.names)
    if coordinates is None:
        return []
    if isinstance(coordinates, str):
        return names if coordinates == "all" else _chosen_links(model, [coordinates])
    for name in coordinates:
        require(name in names, "coordinates", 'must be names of links, or "all"', name)
    return list(coordinates)


def _coordinate_panels(model: Model, q: np.ndarray, links: Sequence[str]) -> list[Panel]:
    """The coordinates (n, nq) of links: those of all joints in one panel for each unit, then those of each body."""
    of_joints: dict[str, list[tuple[int, str]]] = {}
    of_bodies: list[tuple[str, list[tuple[int, str]]]] = []
    units = {"torque [N·m]": "angle [rad]", "force [N]": "position [m]"}
    kinds, ends = _joint_force_kinds(model), [*model.links.v_start[1:].tolist(), model.nv]
    for k in (model.links.names.index(name) for name in links):
        name, joint, v = model.links.names[k], model.links.joint[k], int(model.links.v_start[k])
        at = int(model.links.q_start[k])
        if joint.nq != joint.nv:  # a quaternion, before a position
            of_joints.setdefault("quaternion [-]", []).extend((at + j, f"{name} {x}") for j, x in enumerate("wxyz"))
            of_joints.setdefault("position [m]", []).extend(
                (at + j, f"{name} {x}") for j, x in zip(range(4, joint.nq), "xyz")
            )
        else:
            for j in range(joint.nv):
                label = name if joint.nv == 1 else f"{name} {j + 1}"
                unit = units.get(kinds.get(v + j, ""), "coordinate")
                of_joints.setdefault(unit, []).append((at + j, label))
        body = range(v + joint.nv, ends[k])
        of_bodies += _body_coordinates(model, name, body)
    panels = [*of_joints.items(), *of_bodies]
    return [Panel(label, q[:, [c for c, _ in rows]], [own for _, own in rows]) for label, rows in panels if rows]


def _body_coordinates(model: Model, name: str, body: range) -> list[tuple[str, list[tuple[int, str]]]]:
    """Columns of q and names of the coordinates of a body, which has the indices `body` in v, by the label of their
    panel."""
    columns = model.dofs.q[body.start : body.stop].tolist()
    if name not in model.rods:
        return [(f"{name}\ncoordinates", [(c, str(j)) for j, c in enumerate(columns)])]
    modes = np.abs([model.rods[name].strain.modes(s) for s in np.linspace(0.013, 0.987, 7).tolist()]).max(axis=0) > 0.0
    orders, rows = dict.fromkeys(STRAINS, 0), {"curvature [rad/m]": [], "strain [-]": []}
    for j, (c, active) in enumerate(zip(columns, modes.T)):
        label = f"mode {j}"
        if active.sum() == 1:
            strain = STRAINS[int(np.argmax(active))]
            label, orders[strain] = f"{strain.replace('_', ' ')} {orders[strain]}", orders[strain] + 1
        rows["curvature [rad/m]" if active[:3].any() else "strain [-]"].append((c, label))
    return [(f"{name}\n{unit}", own) for unit, own in rows.items()]


def _wrench_panels(model: Model, x: Trajectory, internal: tuple[str, float] | None, joint: str | None) -> list[Panel]:
    """Two panels for each requested wrench: moments and forces."""
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
    """Columns of u by the label of their panel: the quantity and its unit."""
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
    """Label of the joint force, torque or force, by velocity coordinate."""
    kinds = {}
    for joint, start in zip(model.links.joint, model.links.v_start):
        columns = [column for motion in joint.motions("joint") for column in motion.Phi.T]
        for k, column in enumerate(columns):
            kinds[int(start) + k] = "torque [N·m]" if column[:3].any() else "force [N]"
    return kinds


def _split_by_scale(panels: list[Panel]) -> tuple[list[Panel], list[str]]:
    """Split panels so that no curve looks flat beside others: the range of a panel is at most `_APART` times the span
    of each of its curves. Constant outputs stay where this leaves them visible.

    Returns:
        the panels that are drawn, and the constants that are not, such as "tension of left = 2 N".
    """
    out, still = [], []
    for panel in panels:
        low, high = panel.series.min(axis=0, initial=np.inf), panel.series.max(axis=0, initial=-np.inf)
        spans = np.maximum(high - low, 0.0) if len(panel.series) else np.zeros(len(panel.names))
        fixed = spans <= _STILL * spans.max(initial=0.0)
        groups: list[list[int]] = []
        for k in np.argsort(-spans, kind="stable").tolist():
            if not fixed[k]:
                fitting = [own for own in groups if np.ptp([*low[[*own, k]], *high[[*own, k]]]) <= _APART * spans[k]]
                fitting[0].append(k) if fitting else groups.append([k])
        for k in np.flatnonzero(fixed).tolist():
            among = [own for own in groups if not spans.any() or low[own].min() <= low[k] <= high[own].max()]
            if not panel.is_input and (among or not groups):
                among[0].append(k) if among else groups.append([k])
            elif len(panel.series):
                quantity, _, unit = panel.label.replace("\n", " ").removesuffix("]").partition(" [")
                still.append(f"{quantity} {panel.names[k]} = {low[k]:.4g} {unit}".rstrip(" -"))
        for group in map(sorted, groups):
            names = [panel.names[k] for k in group]
            out.append(panel._replace(series=panel.series[:, group], names=names, looks=group))
    return out, still


def _is_sampled(u: np.ndarray) -> bool:
    """Whether an input, shape (n,), is piecewise constant: it jumps, and is constant after nearly every jump."""
    jumps = np.diff(u) != 0.0
    return bool(jumps.any() and (jumps[1:] & jumps[:-1]).sum() <= 0.1 * jumps.sum())


def _draw(axes: Any, t: np.ndarray, panel: Panel) -> None:
    ends = []
    for k, (label, look) in enumerate(zip(panel.names, panel.looks or range(len(panel.names)))):
        dashes = ("-", "--", ":")[look // len(SERIES) % 3]
        style = "steps-post" if panel.is_input and _is_sampled(panel.series[:, k]) else "default"
        color = SERIES[look % len(SERIES)]
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
    """Write the name of each curve beside its end, shifted where names would overlap."""
    low, high = axes.get_ylim()
    height = _INCHES * 72.0  # of the panel, in points
    size = float(np.clip(0.8 * height / max(len(ends), 1), 4.0, 9.0))
    order = np.argsort([y for y, _, _ in ends], kind="stable")
    places = spread(np.array([(ends[k][0] - low) / (high - low) for k in order]), 1.2 * size / height)
    written = {k: place for k, place in zip(order.tolist(), places)}
    for k, (_, label, color) in enumerate(ends):
        axes.text(1.012, written[k], label, transform=axes.transAxes, color=color, fontsize=size, va="center")


def spread(places: np.ndarray, apart: float) -> np.ndarray:
    """Move sorted places from 0 to 1 as little as possible until they are `apart` from each other, within [0, 1] if
    there is room."""
    shift = apart * np.arange(len(places))
    level = places - shift  # made monotone by pooling adjacent violators
    pools: list[list[float]] = []
    for value in level.tolist():
        pools.append([value, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, m) = pools[-2:]
            pools[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    found = np.concatenate([np.zeros(0), *(np.full(int(n), value) for value, n in pools)])
    most = 1.0 - apart * (len(places) - 1)
    return np.clip(found, min(0.0, most), max(most, 0.0)) + shift


def notebook_picture(figure: Any) -> bytes:
    """A figure as PNG."""
    out = BytesIO()
    figure.savefig(out, format="png", dpi=_NOTEBOOK_DPI, facecolor="white")
    return out.getvalue()


def finish(figure: Any, path: str | Path | None) -> Figure:
    """Write a figure to `path` unless that is None, and return it. Notebooks show it as a picture, also without an
    import of pyplot, which would teach them to.

    Raises:
        ModelError: matplotlib cannot write files of this ending. OSError: the file cannot be written.
    """
    if path is not None:
        file = Path(path)
        kind, known = file.suffix.lstrip(".").lower() or "png", sorted(figure.canvas.get_supported_filetypes())
        require(kind in known, "picture", f"must end in one of {', '.join(f'.{end}' for end in known)}", file.name)
        file = file if file.suffix else file.with_name(f"{file.name}.{kind}")
        write_whole(file, lambda stream: figure.savefig(stream, format=kind, dpi=_DPI, facecolor="white"))
    if hasattr(figure, "savefig"):  # no part of another figure
        figure._repr_png_ = partial(notebook_picture, figure)
    return figure
