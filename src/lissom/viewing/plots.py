"""Pictures of robots in space, by matplotlib, which is imported when a picture is made.

The figures belong to no window and to no backend: they are made, saved and returned without a display and without
changing matplotlib's settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.errors import ModelError, ShapeError, renamed
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot.robot import Robot
from lissom.viewing import scene
from lissom.viewing.quantities import ramp
from lissom.viewing.style import FAINT, GRID, INK, SERIES, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_RIGID = np.array([0.58, 0.60, 0.64])
_ROD = np.array([0.93, 0.66, 0.45])
_OBSTACLE = np.array([0.44, 0.55, 0.68])
_TRACE = "#c2272d"
_ALONG = 0.97  # an axis whose direction has so much of the eye's is not seen
_FILLED = 0.8  # of the width or height of 3-D axes by the box drawn in them


@renamed(trace="trail")
def plot_shapes(
    model: Model,
    q: ArrayLike,
    *,
    path: str | Path | None = None,
    robot: Robot | None = None,
    links: Sequence[str] | None = None,
    trail: ArrayLike | Sequence[ArrayLike] | None = None,
    values: ArrayLike | None = None,
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
        trail: a curve to draw, such as the path of a tip, shape (m, 3) [m], or a list of curves.
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
    levels, names, curves = _levels(values, len(rows)), _drawn_links(model, links), _curves(trail)
    bodies = {name: scene.body_facets(model, rows, name) for name in names}
    tendons = {} if robot is None or links is not None or len(rows) > 1 else scene.tendon_lines(model, rows)
    ties = scene.connectors(model, rows, names)
    drawn = (*bodies.values(), *tendons.values(), ties, *curves)
    points = np.concatenate([x.reshape(-1, 3) for x in drawn])
    if obstacles:
        points = np.concatenate([points, _near(model, rows, names, points)])
    low, high = _bounds(points)
    colors = _tendon_colors(list(tendons))
    radius = 0.003 * float((high - low).max())
    lines = [(line, _RIGID, radius) for line in np.moveaxis(ties, 1, 0)]
    scaled = values is not None and float(np.ptp(values)) > 0.0
    ax = _space_axes(high - low, view, scaled, bool(tendons)) if axes is None else axes
    add_shapes(ax, model, bodies, lines, levels, view)
    if obstacles:
        add_obstacles(ax, model, rows[-1:], names, low, high, view)
    for name, line in tendons.items():  # over the bodies, as matplotlib hides lines by pieces
        ax.plot(*line[0].T, color=colors[name], linewidth=1.4, zorder=4)
    for curve in curves:
        ax.plot(*curve.T, color=_TRACE, linewidth=1.2, zorder=4)
    _dress(ax, low, high, view, None if axes is None else 0.8)
    _add_directions(ax, view, model.gravity, axes is None)
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
    left, right, bottom, top = 0.95, 2.0 if scaled else 1.05, 1.05 if legend else 0.8, 1.0
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


def _curves(trail: Any) -> list[np.ndarray]:
    if trail is None:
        return []
    curves = [np.asarray(curve, dtype=np.float64) for curve in ([trail] if np.ndim(trail[0]) == 1 else trail)]
    for curve in curves:
        if curve.ndim != 2 or curve.shape[1] != 3:
            raise ShapeError(f"trail: expected shape (m, 3) or a list of such, got {curve.shape}")
    return curves


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the drawn box, no side under a third of the longest."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    middle, half = 0.5 * (low + high), 0.5 * np.maximum(1.08 * (high - low), size / 3.0)
    return middle - half, middle + half


def _eye(view: tuple[float, float], turned: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Unit vector towards the eye, or from there turned by elevation and azimuth [rad]."""
    e, a = np.radians(view) + turned
    return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])


def _ramp(levels: np.ndarray) -> np.ndarray:
    """Colours that darken from the first shape to the last."""
    return ramp(1.0 - np.asarray(levels))


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
    from matplotlib.ticker import MaxNLocator, NullLocator
    from mpl_toolkits.mplot3d.proj3d import proj_transform

    size = high - low
    ax.set_proj_type("ortho")
    ax.view_init(*view)
    along = np.abs(_eye(view)) > _ALONG
    seen = np.flatnonzero(~along)
    away = np.ones(3)  # words move away from their axis by parts of the other side of a flat picture
    if len(seen) == 2:
        away[seen] = size.max() / size[seen[::-1]]
    for k, (name, axis) in enumerate(zip("xyz", (ax.xaxis, ax.yaxis, ax.zaxis))):
        getattr(ax, f"set_{name}lim")(low[k], high[k])
        getattr(ax, f"set_{name}label")("" if along[k] else f"{name} [m]", color=INK, labelpad=9.0 * away[k])
        count = max(4, round(7 * size[k] / size.max()))
        # seen along an axis, its numbers would be printed one over the other
        axis.set_major_locator(NullLocator() if along[k] else MaxNLocator(count, steps=[1, 2, 5, 10]))
        axis.set_pane_color((1.0, 1.0, 1.0, 1.0))
        axis.line.set_color(FAINT)
        axis._axinfo["grid"].update(color=GRID, linewidth=0.7)
        ax.tick_params(axis=name, labelsize=8, labelcolor=INK, color=FAINT, pad=4.0 * away[k])
    corners = np.array(np.meshgrid(*zip(low, high))).reshape(3, -1)
    ax.set_box_aspect(size, zoom=1.0)
    ax.apply_aspect()
    x, y, _ = proj_transform(corners[0], corners[1], corners[2], ax.get_proj())
    picture = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack([x, y])))
    ax.set_box_aspect(size, zoom=float((filled or _FILLED) / np.ptp(picture, axis=0).max()))


def _add_directions(ax: Any, view: tuple[float, float], gravity: np.ndarray, own: bool) -> None:
    """The world's axes and gravity as the picture shows them, at the upper right, where no robot is."""
    from matplotlib.transforms import ScaledTranslation

    place = (1.0, 1.0, ax.figure.transFigure) if own else (0.98, 0.98, ax.transAxes)
    inches = ax.figure.dpi_scale_trans + ScaledTranslation(*place)
    centre, plane = np.array([-0.55, -0.62]), _picture_plane(view)
    words: Any = {"xycoords": inches, "textcoords": inches, "annotation_clip": False, "ha": "center", "va": "center"}

    def arrow(start: np.ndarray, stop: np.ndarray, color: str) -> None:
        look = {"arrowstyle": "-|>", "color": color, "linewidth": 1.5, "shrinkA": 0.0, "shrinkB": 0.0}
        ax.annotate("", stop, start, arrowprops=look, **words)

    for k, color in enumerate(("#c2272d", "#2e8b3d", "#2456a6")):
        tip = 0.32 * plane[:, k]
        if np.linalg.norm(tip) > 0.05:
            arrow(centre, centre + tip, color)
            at = centre + tip + 0.1 * tip / np.linalg.norm(tip)
            ax.annotate("xyz"[k], at, at, color=color, fontsize=9, weight="bold", **words)
    strength = float(np.linalg.norm(gravity))
    if strength > 0.0:
        down, start = 0.22 * plane @ gravity / strength, centre - (0.65, 0.0)
        if np.linalg.norm(down) > 0.05:
            arrow(start - down, start + down, INK)
        at, note = start - (0.12, 0.0), "" if np.linalg.norm(down) > 0.05 else "along the sight, "
        ax.annotate(f"{note}g = {strength:.4g} m/s²", at, at, color=INK, fontsize=9, **(words | {"ha": "right"}))


def _add_words(ax: Any, title: str, colors: dict[str, np.ndarray], own: bool) -> None:
    """The title and the legend of the tendons: on the figure that was made for them, or on the axes given."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=tuple(color), linewidth=2.0, label=name) for name, color in colors.items()]
    look: Any = {"handles": handles, "frameon": False, "fontsize": 9, "labelcolor": INK, "ncols": min(len(colors), 6)}
    bold: Any = {"color": INK, "fontsize": 13, "weight": "bold"}
    if own:
        width, height = ax.figure.get_size_inches()
        bold["fontsize"] = min(13.0, 72.0 * (width - 2.9) / max(0.62 * len(title), 1.0))
        ax.figure.suptitle(title, x=0.25 / width, y=1.0 - 0.35 / height, ha="left", **bold)
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
