"""Pictures of robots in space, by matplotlib, which is imported when a picture is made.

The figures belong to no window and to no backend: they are made, saved and returned without a display and without
changing matplotlib's settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.errors import ModelError, ShapeError
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot.robot import Robot
from lissom.view import scene
from lissom.view.style import FAINT, GRID, INK, SERIES, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RIGID = np.array([0.58, 0.60, 0.64])
_ROD = np.array([0.93, 0.66, 0.45])
_OBSTACLE = np.array([0.44, 0.55, 0.68])
_TRACE = "#c2272d"
_FILLED = 0.8  # of the width or height of 3-D axes by the box drawn in them


def plot_shapes(
    model: Model,
    q: Any,
    *,
    path: str | Path | None = None,
    robot: Robot | None = None,
    links: Sequence[str] | None = None,
    trace: Any = None,
    values: Any = None,
    value_label: str = "",
    title: str | None = None,
    view: tuple[float, float] = (20.0, -60.0),
    obstacles: bool = True,
    axes: Any = None,
) -> Figure:
    """Picture of a robot in space, at one configuration or at several on top of each other.

    Rods are drawn as tubes with the outline of their section, rigid bodies as solids. Several configurations go from
    pale to solid in the order given. What contacts fix to the world or to a link stands translucent behind the robot,
    as it is in the last configuration and cut to the box of the picture.

    Args:
        q: configurations, shape (nq,) or (n, nq).
        path: file to write; its ending chooses the format (.png, .pdf, .svg).
        robot: the description the model was built from; with it the tendons of a single shape are drawn, too.
        links: names of the links to draw; None is all of them.
        trace: a curve to draw, such as the path of a tip, shape (m, 3) [m], or a list of curves.
        values: one number for each configuration, shape (n,), which its colour tells, such as the time.
        value_label: of the scale of these colours, with its unit.
        title: None is the name of the robot.
        view: elevation and azimuth of the eye [deg].
        obstacles: whether shapes that the robot may touch are drawn.
        axes: matplotlib 3-D axes to draw into; None makes a figure.
    Returns:
        The figure.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: no such link.
    """
    rows = np.atleast_2d(stack("q", q, model.nq))
    if rows.ndim != 2 or len(rows) == 0:
        raise ShapeError(f"q: expected shape ({model.nq},) or (n, {model.nq}), got {np.shape(q)}")
    levels, names, curves = _levels(values, len(rows)), _drawn_links(model, links), _curves(trace)
    bodies = {name: scene.body_facets(model, rows, name) for name in names}
    tendons = {} if robot is None or links is not None or len(rows) > 1 else scene.tendon_lines(model, rows)
    ties = scene.connectors(model, rows, names)
    drawn = (*bodies.values(), *tendons.values(), ties, *curves)
    points = np.concatenate([x.reshape(-1, 3) for x in drawn])
    if obstacles:
        points = np.concatenate([points, _near(model, rows, names, points)])
    low, high, origin = _bounds(points)
    colors = _tendon_colors(list(tendons))
    radius = 0.003 * float((high - low).max())
    lines = [(line, _RIGID, radius) for line in np.moveaxis(ties, 1, 0)]
    lines += [(line, colors[name], radius) for name, line in tendons.items()]
    scaled = values is not None and float(np.ptp(values)) > 0.0
    ax = _space_axes(high - low, view, scaled, bool(tendons)) if axes is None else axes
    add_shapes(ax, model, bodies, lines, levels, view)
    if obstacles:
        add_obstacles(ax, model, rows[-1:], names, low, high, view)
    for name, line in tendons.items():  # inside or behind a body, faintly
        ax.plot(*line[0].T, color=colors[name], linewidth=1.0, alpha=0.6, zorder=4)
    for curve in curves:
        ax.plot(*curve.T, color=_TRACE, linewidth=1.2, zorder=4)
    _dress(ax, low, high, view, None if axes is None else 0.8)
    _add_world(ax, low, high, origin, model.gravity, _free_corner(points, low, high, view))
    _add_words(ax, model.name if title is None else title, colors, axes is None)
    if scaled:
        _add_scale(ax, np.asarray(values, dtype=np.float64), value_label, axes is None)
    return finish(ax.figure, path)


def _space_axes(size: np.ndarray, view: tuple[float, float], scaled: bool, legend: bool) -> Any:
    """3-D axes on a figure cut to the picture of a box of this size, with room for labels and keys."""
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d import Axes3D

    wide, tall = (float(np.abs(direction) @ size) for direction in _picture_plane(view))
    inches = min(5.8 / wide, 5.2 / tall)
    wide, tall = inches * wide, inches * tall
    left, right, bottom, top = 0.75, 2.0 if scaled else 1.05, 1.05 if legend else 0.8, 0.6
    width, height = max(left + wide + right, 4.5), bottom + tall + top
    side = max(wide, tall) / _FILLED
    figure = Figure(figsize=(width, height))
    corner = left + 0.5 * wide - 0.5 * side, bottom + 0.5 * tall - 0.5 * side
    place = (corner[0] / width, corner[1] / height, side / width, side / height)
    return figure.add_axes(place, axes_class=Axes3D)


def _picture_plane(view: tuple[float, float]) -> np.ndarray:
    """Unit vectors to the right and upwards in the picture, shape (2, 3)."""
    azimuth = np.radians(view[1])
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    return np.array([right, np.cross(_eye(view), right)])


def _free_corner(points: np.ndarray, low: np.ndarray, high: np.ndarray, view: tuple[float, float]) -> np.ndarray:
    """The upper corner of the box that is farthest from everything drawn, as the picture shows it."""
    plane = _picture_plane(view)
    corners = np.array([[x, y, high[2]] for x in (low[0], high[0]) for y in (low[1], high[1])])
    apart = (corners @ plane.T)[:, None] - (points[:: 1 + len(points) // 4000] @ plane.T)
    free = np.linalg.norm(apart, axis=-1).min(axis=1)
    free[np.argmax(corners @ plane[0])] = -1.0  # the numbers of z stand there
    return corners[np.argmax(free)]


def _levels(values: Any, count: int) -> np.ndarray:
    """Where each configuration stands between the first colour, 0, and the last, 1."""
    if values is None:
        return np.linspace(0.0, 1.0, count) if count > 1 else np.ones(1)
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ShapeError(f"values: expected finite numbers of shape ({count},), got shape {numbers.shape}")
    return (numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-300)


def _drawn_links(model: Model, links: Sequence[str] | None) -> list[str]:
    for name in links or ():
        if name not in model.links.names:
            raise ModelError(f"links: must be among the links {sorted(model.links.names)} (got {name!r})")
    return list(model.links.names if links is None else links)


def _curves(trace: Any) -> list[np.ndarray]:
    if trace is None:
        return []
    curves = [np.asarray(curve, dtype=np.float64) for curve in ([trace] if np.ndim(trace[0]) == 1 else trace)]
    for curve in curves:
        if curve.ndim != 2 or curve.shape[1] != 3:
            raise ShapeError(f"trace: expected shape (m, 3) or a list of such, got {curve.shape}")
    return curves


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners of the drawn box, no side under half of the longest, and where the world's axes are drawn in it.

    That is the world's origin, unless the robot is far away from it.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    origin = np.zeros(3)
    if np.all((origin > low - size) & (origin < high + size)):
        low, high = np.minimum(low, origin), np.maximum(high, origin)
    else:
        origin = low
    size = float((high - low).max())
    middle, half = 0.5 * (low + high), 0.5 * np.maximum(1.08 * (high - low), 0.5 * size)
    return middle - half, middle + half, origin


def _eye(view: tuple[float, float], turned: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Unit vector towards the eye, or from there turned by elevation and azimuth [rad]."""
    e, a = np.radians(view) + turned
    return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])


def _ramp(levels: np.ndarray) -> np.ndarray:
    from matplotlib import colormaps

    return colormaps["viridis"](0.97 - 0.85 * np.asarray(levels))[..., :3]


def add_shapes(
    ax: Any,
    model: Model,
    bodies: dict[str, np.ndarray],
    lines: list[tuple[np.ndarray, np.ndarray, float]],
    levels: np.ndarray,
    view: tuple[float, float],
) -> None:
    """Every shape as one collection of facets, those nearer to the eye over those behind them.

    A line is drawn nearer by a few of its radii, so that it lies on its body; seen along the line of sight this moves
    nothing.
    """
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    eye, ramp = _eye(view), _ramp(levels)
    depth = sum(found.reshape(len(levels), -1, 3).sum(axis=1) @ eye for found in bodies.values())
    ax.computed_zorder, soft = False, scene.soft_links(model)
    for rank, k in enumerate(np.argsort(depth, kind="stable")):
        facets, colors = [], []
        for name, found in bodies.items():
            own = _ROD if name in soft else _RIGID
            mixed = ramp[k] if name in soft else 0.45 * own + 0.55 * ramp[k]
            facets.append(found[k])
            colors.append(_shaded(own if len(levels) == 1 else mixed, found[k], view))
        for line, color, radius in lines:
            facets.append(scene.ribbon_facets(line[k : k + 1], radius)[0] + 6.0 * radius * eye)
            colors.append(np.broadcast_to(color, (len(facets[-1]), 3)))
        paint = np.concatenate(colors)
        edges = {"edgecolors": paint, "linewidths": 0.25}  # closes the hair between antialiased facets
        shape = Poly3DCollection(np.concatenate(facets), facecolors=paint, zorder=2 + rank / len(levels), **edges)
        ax.add_collection3d(shape)


def add_obstacles(
    ax: Any,
    model: Model,
    q: np.ndarray,
    links: Sequence[str],
    low: np.ndarray,
    high: np.ndarray,
    view: tuple[float, float],
) -> None:
    """What the robot may touch at a configuration (1, nq), behind it, as far as it lies in a box."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    found = scene.obstacle_facets(model, q, links, low, high)
    for facets in sorted(found, key=lambda facets: float(facets.mean(axis=(0, 1, 2)) @ _eye(view))):
        polygons = scene.cut_to_box(facets[0], low, high)
        if polygons:
            paint = _shaded(_OBSTACLE, np.array([polygon[[0, 1, 2, -1]] for polygon in polygons]), view)
            ax.add_collection3d(Poly3DCollection(polygons, facecolors=paint, alpha=0.16, linewidths=0.0, zorder=1))


def _near(model: Model, q: np.ndarray, links: Sequence[str], points: np.ndarray) -> np.ndarray:
    """Corners (m, 3) of what the robot may touch, no farther from its box than that is long."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max())
    found = scene.obstacle_facets(model, q, links, low, high)
    corners = np.concatenate([np.zeros((0, 3)), *(facets.reshape(-1, 3) for facets in found)])
    return corners[((corners > low - size) & (corners < high + size)).all(axis=1)]


def _shaded(color: np.ndarray, facets: np.ndarray, view: tuple[float, float]) -> np.ndarray:
    """Colours of facets by Lambert's law with a soft shadow side and a highlight; the light is above the eye's left."""
    light = _eye(view, (0.6, -0.7))
    half = light + _eye(view)
    normals = scene.facet_normals(facets)
    diffuse = 0.5 + 0.5 * normals @ light
    gloss = np.maximum(normals @ half / np.linalg.norm(half), 0.0) ** 24
    return np.clip((0.42 + 0.66 * diffuse)[:, None] * color + 0.22 * gloss[:, None], 0.0, 1.0)


def _tendon_colors(names: list[str]) -> dict[str, np.ndarray]:
    from matplotlib.colors import to_rgb

    return {name: np.array(to_rgb(SERIES[k % len(SERIES)])) for k, name in enumerate(names)}


def _dress(ax: Any, low: np.ndarray, high: np.ndarray, view: tuple[float, float], filled: float | None) -> None:
    """Axes of equal scales around the box, whose picture fills a part of the axes."""
    from matplotlib.ticker import MaxNLocator
    from mpl_toolkits.mplot3d.proj3d import proj_transform

    size = high - low
    ax.set_proj_type("ortho")
    ax.view_init(*view)
    for k, (name, axis) in enumerate(zip("xyz", (ax.xaxis, ax.yaxis, ax.zaxis))):
        getattr(ax, f"set_{name}lim")(low[k], high[k])
        getattr(ax, f"set_{name}label")(f"{name} [m]", color=INK, labelpad=8)
        axis.set_major_locator(MaxNLocator(max(4, round(7 * size[k] / size.max())), steps=[1, 2, 5, 10]))
        axis.set_pane_color((1.0, 1.0, 1.0, 1.0))
        axis.line.set_color(FAINT)
        axis._axinfo["grid"].update(color=GRID, linewidth=0.7)
        ax.tick_params(axis=name, labelsize=8, labelcolor=INK, color=FAINT, pad=2)
    corners = np.array(np.meshgrid(*zip(low, high))).reshape(3, -1)
    ax.set_box_aspect(size, zoom=1.0)
    ax.apply_aspect()
    x, y, _ = proj_transform(corners[0], corners[1], corners[2], ax.get_proj())
    picture = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack([x, y])))
    ax.set_box_aspect(size, zoom=float((filled or _FILLED) / np.ptp(picture, axis=0).max()))


def _add_world(
    ax: Any, low: np.ndarray, high: np.ndarray, origin: np.ndarray, gravity: np.ndarray, corner: np.ndarray
) -> None:
    """The world's axes at `origin`, and gravity at a corner of the box."""
    long = 0.14 * float((high - low).max())
    style = {"linewidth": 1.8, "arrow_length_ratio": 0.22, "zorder": 4}
    for k, color in enumerate(("#c2272d", "#2e8b3d", "#2456a6")):
        tip = long * np.eye(3)[k]
        ax.quiver(*origin, *tip, color=color, **style)
        ax.text(*(origin + 1.2 * tip), "xyz"[k], color=color, fontsize=10, ha="center", va="center", weight="bold",
                zorder=4)  # fmt: skip
    strength = float(np.linalg.norm(gravity))
    if strength > 0.0:
        down = long * gravity / strength
        start = corner - np.minimum(corner + down - low, 0.0) - np.maximum(corner + down - high, 0.0)
        ax.quiver(*start, *down, color=INK, **style)
        ax.text(*(start + 0.5 * down), f"  g = {strength:.4g} m/s²", color=INK, fontsize=9, va="center", zorder=4)


def _add_words(ax: Any, title: str, colors: dict[str, np.ndarray], own: bool) -> None:
    """The title and the legend of the tendons: on the figure that was made for them, or on the axes given."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=tuple(color), linewidth=2.0, label=name) for name, color in colors.items()]
    look: Any = {"handles": handles, "frameon": False, "fontsize": 9, "labelcolor": INK, "ncols": min(len(colors), 6)}
    bold: Any = {"color": INK, "fontsize": 13, "weight": "bold"}
    if own:
        ax.figure.suptitle(title, y=1.0 - 0.2 / ax.figure.get_figheight(), **bold)
    else:
        ax.set_title(title, **bold)
    if colors:
        (ax.figure if own else ax).legend(loc="lower center", **look)


def _add_scale(ax: Any, values: np.ndarray, label: str, own: bool) -> None:
    """The scale of the values that colours tell."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    figure = ax.figure
    shown = ScalarMappable(Normalize(values.min(), values.max()), ListedColormap(_ramp(np.linspace(0, 1, 256))))
    place: Any = {"ax": ax, "shrink": 0.5}
    if own:
        width = figure.get_figwidth()
        place = {"cax": figure.add_axes(((width - 0.85) / width, 0.27, 0.14 / width, 0.5))}
    bar = figure.colorbar(shown, **place)
    bar.set_label(label, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, labelcolor=INK, color=FAINT)
