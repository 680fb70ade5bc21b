"""Drawings beside the forms of the studio, as SVG: graphs of functions, sections with the routes of tendons and
chambers, and the modes of a basis."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import numpy as np

from lissom.model.model import Model
from lissom.robot.actuators import Chamber, PathRod, Tendon, offset_function
from lissom.robot.bases import STRAINS
from lissom.robot.functions import profile
from lissom.viewing.canvas import nice_number
from lissom.viewing.colors import SERIES

_WIDE, _HIGH = 260, 74  # of a graph [pixels]
_SECTION, _MARGIN = 190, 30  # height of a drawing of a section, and its margin [pixels]
_AROUND, _ALONG, _MODES = 72, 33, 81  # points of an outline, of a route, of a mode
_NAMES = 96  # width for names beside a section [pixels]
_TEXT = 'font-size="10" fill="#667"'


def graph_picture(found: tuple[np.ndarray, np.ndarray] | None, variable: str, title: str = "") -> str:
    """A graph of a function as SVG; empty if there is no function.

    Args:
        found: the variable (n,) and the values (n, m).
        title: a text above the graph.
    """
    if found is None:
        return ""
    x, y = found
    low, high = float(y.min()), float(y.max())
    spread = high - low or max(abs(high), 1e-12)
    low, high = (low, high) if high > low else (low - 0.5 * spread, high + 0.5 * spread)
    more = 12 if title else 0
    left, top, width, height = 4.0, 6.0 + more, _WIDE - 64.0, _HIGH - 24.0
    lines = []
    for k, row in enumerate(y.T):
        across = left + width * (x - x[0]) / (x[-1] - x[0])
        up = top + height * (1.0 - (row - low) / (high - low))
        lines.append(_line(across, up, SERIES[k % len(SERIES)]))
    frame = f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccd"/>'
    right, base = left + width + 4, top + height
    words = (f'<text x="{right}" y="{top + 8}" {_TEXT}>{high:.3g}</text><text x="{right}" y="{base}" {_TEXT}>{low:.3g}'
             f'</text><text x="{left}" y="{base + 13}" {_TEXT}>{variable} = {x[0]:g}</text>'
             f'<text x="{left + width - 22}" y="{base + 13}" {_TEXT}>{x[-1]:g}</text>'
             f'<text x="{left}" y="10" {_TEXT}>{html.escape(title)}</text>')  # fmt: skip
    return f'<svg width="100%" viewBox="0 0 {_WIDE} {_HIGH + more}">{frame}{"".join(lines)}{words}</svg>'


def _line(x: np.ndarray, y: np.ndarray, color: str, more: str = "") -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6" {more}/>'


# -- sections ---------------------------------------------------------------------------------------------------------


def routes(model: Model, link: str) -> Iterator[tuple[str, PathRod, Any]]:
    """The tendons and chambers that run along a rod: name, part of the path, and the actuator."""
    for actuator in model.description.actuators.values():
        items = actuator.path if isinstance(actuator, Tendon) else ()
        items = (actuator.path,) if isinstance(actuator, Chamber) else items
        for item in items:
            if isinstance(item, PathRod) and item.link == link:
                yield actuator.name, item, actuator


def rods_of(model: Model, name: str) -> list[str]:
    """The rods along which a tendon or chamber runs."""
    return [link for link in model.rods if any(one == name for one, _, _ in routes(model, link))]


def blank_section() -> str:
    """Room for a drawing that is not there yet, so that the form below does not move when it comes."""
    return f'<svg width="100%" viewBox="0 0 {_SECTION + _NAMES} {_SECTION}"></svg>'


def section_drawing(model: Model, link: str, marked: str = "") -> str:
    """The section of a rod in its plane, y to the right and z upwards: at the base, dashed at the tip, with its hole,
    and the routes of tendons and chambers from their start (a dot, or a circle of the area) to their end (a ring).

    Args:
        marked: name of an actuator that stands out. The drawing is empty if the link has no section to draw.
    """
    body = model.links.body[model.links.names.index(link)] if link in model.links.names else None
    if body is None or not body.is_slender:
        return ""
    outlines = [np.asarray(body.cross_outline(s, _AROUND)) for s in (0.0, 1.0)]
    holes = [np.asarray(body.cross_hole(s, _AROUND)) for s in (0.0, 1.0)]
    paths = [(name, actuator, _offsets(item), item) for name, item, actuator in routes(model, link)]
    points = np.concatenate([*outlines, *(rows for _, _, rows, _ in paths)])
    reach = float(np.abs(points).max(initial=0.0))
    if not reach > 0.0:
        return ""
    half = 0.5 * _SECTION
    scale = (half - _MARGIN) / reach
    parts = [f'<line x1="{half}" y1="8" x2="{half}" y2="{_SECTION - 8}" stroke="#dde"/>'
             f'<line x1="8" y1="{half}" x2="{_SECTION - 8}" y2="{half}" stroke="#dde"/>'
             f'<text x="{_SECTION - 14}" y="{half - 4}" {_TEXT}>y</text>'
             f'<text x="{half + 4}" y="14" {_TEXT}>z</text>']  # fmt: skip
    tapers = not np.allclose(outlines[0], outlines[1], rtol=0, atol=1e-9 * reach)
    for k, (outline, hole) in enumerate(zip(outlines, holes)):
        if k == 0 or tapers:
            parts += [_closed(part, half, scale, "#f6dcc3" if k == 0 and not j else "white" if k == 0 else "none",
                              "4 3" if k else "") for j, part in enumerate((outline, hole)) if len(part)]  # fmt: skip
    for k, (name, actuator, rows, item) in enumerate(paths):
        parts.append(_route(rows, half, scale, SERIES[k % len(SERIES)], actuator, item, name == marked))
        weight = "bold" if name == marked else "normal"
        word = html.escape(name if len(name) <= 14 else f"{name[:13]}…")
        parts.append(f'<text x="{_SECTION + 4}" y="{20 + 13 * k}" font-size="10" font-weight="{weight}" '
                     f'fill="{SERIES[k % len(SERIES)]}">{word}</text>')  # fmt: skip
    length = nice_number(0.4 * reach)
    bar, end = (f"{1e3 * length:g} mm" if length < 1.0 else f"{length:g} m"), 8 + length * scale
    base = _SECTION - 6
    parts.append(f'<line x1="8" y1="{base}" x2="{end:.1f}" y2="{base}" stroke="#333" stroke-width="2"/>')
    parts.append(f'<text x="{end + 4:.1f}" y="{base + 3}" {_TEXT}>{bar}</text>')
    if tapers:
        parts.append(f'<text x="{_SECTION + 4}" y="{_SECTION - 3}" {_TEXT}>dashed: tip</text>')
    return f'<svg width="100%" viewBox="0 0 {_SECTION + _NAMES} {_SECTION}">{"".join(parts)}</svg>'


def _offsets(item: PathRod) -> np.ndarray:
    """Positions (n, 2) of a path in the section, from its start to its stop [m]."""
    offset = offset_function(item.offset, "tendon: offset")
    return np.array([offset(float(s)) for s in np.linspace(item.start, item.stop, _ALONG)], dtype=np.float64)


def _pixels(points: np.ndarray, half: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    return half + scale * points[:, 0], half - scale * points[:, 1]


def _closed(points: np.ndarray, half: float, scale: float, fill: str, dashes: str) -> str:
    ring = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(*_pixels(points, half, scale)))
    return f'<polygon points="{ring}" fill="{fill}" stroke="#9a7b5f" stroke-dasharray="{dashes}"/>'


def _route(
    rows: np.ndarray, half: float, scale: float, color: str, actuator: Any, item: PathRod, is_marked: bool
) -> str:
    x, y = _pixels(rows, half, scale)
    size, out = (4.5 if is_marked else 3.0), []
    if np.ptp(rows, axis=0).max() > 0.0:
        out.append(_line(x, y, color))
        out.append(f'<circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="{size + 1}" fill="none" stroke="{color}"/>')
    if isinstance(actuator, Chamber):
        radius = scale * float(np.sqrt(profile(actuator.area, "area")(item.start) / np.pi))
        out.append(f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="{radius:.1f}" fill="{color}" fill-opacity="0.35" '
                   f'stroke="{color}" stroke-width="{2 if is_marked else 1}"/>')  # fmt: skip
    else:
        out.append(f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="{size}" fill="{color}"/>')
    return "".join(out)


# -- modes ------------------------------------------------------------------------------------------------------------


def modes_drawing(model: Model, link: str) -> str:
    """The modes of the basis of a rod along s, one graph for each strain that has some; empty for other links."""
    if link not in model.rods:
        return ""
    s = np.linspace(0.0, 1.0, _MODES)
    Phi = np.array([np.asarray(model.rods[link].strain.modes(float(x))) for x in s])
    graphs = []
    for k, strain in enumerate(STRAINS):
        own = Phi[:, k, np.abs(Phi[:, k]).max(axis=0, initial=0.0) > 0.0]
        if own.shape[1]:
            title = f"{strain.replace('_', ' ')}: {own.shape[1]} mode{'' if own.shape[1] == 1 else 's'}"
            graphs.append(graph_picture((s, own), "s", title))
    return "".join(graphs)
