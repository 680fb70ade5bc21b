"""Frames at any place of a robot: on its nodes, or at further points of its rods.

A further point is a massless leaf on the last node before it. Its interval is computed on demand; the tables of the
model do not change. Kernels read such points behind the nodes, from tables of `launch.points`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, check_kept
from lissom.model.model import Model
from lissom.model.nodes import Key, line_through_moments, point_before
from lissom.robot import checks
from lissom.robot.bases import BasisCustom

_KEPT = 128  # number of places in the cache of a model
_ONE = np.eye(4)
_SAME = 1e-12  # abscissae that differ by less count as the same
_FITS = 1e-13  # largest error of the polynomials of a basis, relative to its size
_MOST_COEFFICIENTS = 40


@final
@dataclass(frozen=True, eq=False)
class Places:
    """The places of n frames on a robot.

    Fields:
        node: of each frame, -1 for the world; further points are numbered behind the nodes. placement: of the frame in
        that node, (n, 4, 4). single: whether the caller gave one place instead of a list.
        For the m further points, all on one rod, as in Node: parent and placement G (m, 4, 4); h, kappa (m,); xi1, xi2
        (m, 6) of the reference strain; Phi1, Phi2 (m, 6, number of modes); base, v_start and q_shift of the rod.
    """

    node: np.ndarray
    placement: np.ndarray
    single: bool
    parent: np.ndarray
    G: np.ndarray
    h: np.ndarray
    xi1: np.ndarray
    xi2: np.ndarray
    Phi1: np.ndarray
    Phi2: np.ndarray
    base: int = 0
    v_start: int = 0
    q_shift: int = 0

    @property
    def kappa(self) -> np.ndarray:
        """√3 h²/12."""
        return np.sqrt(3.0) * self.h**2 / 12.0


def places_of(model: Model, name: str, s: Any) -> Places:
    """The places of a link, of a rod at s, of a deformable body at s, or of a named frame.

    Raises:
        ModelError: no link or frame has this name, s is outside [0, 1], or the deformable body has no frame there.
    """
    body = _body_number(model, name) if len(model.deforming) else -1
    if body >= 0:
        return _on_deformable(model, name, body, s)
    key = s if type(s) is float else None
    if key is None:
        check_kept("s", s)
        try:
            abscissae = np.asarray(s, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"s: must lie in [0, 1], a number or a list (got {s!r})") from None
        key = float(abscissae) if abscissae.ndim == 0 else abscissae.tobytes() if abscissae.ndim == 1 else None
    kept: dict[Any, Places] = model.cache.setdefault("places", {})
    found = kept.pop((name, key), None) if isinstance(name, str) and key is not None else None
    if found is not None:
        kept[name, key] = found  # keys are in the order of their last use
        return found
    abscissae = np.asarray(s, dtype=np.float64)
    if abscissae.ndim > 1 or not np.all((abscissae >= 0.0) & (abscissae <= 1.0)):
        raise ModelError(f"s: must lie in [0, 1], a number or a list (got {s!r})")
    known = sorted([*model.links.names, *model.frames])
    if not isinstance(name, str) or name not in known:
        raise ModelError(f"link or frame: must be one of {known} (got {name!r})")
    single, rows = abscissae.ndim == 0, np.atleast_1d(abscissae).tolist()
    found = kept[name, key] = _find(model, name, rows, single)
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
    return found


def _find(model: Model, name: str, abscissae: list[float], single: bool) -> Places:
    if name in model.rods and name not in model.frames:
        return _on_rod(model, name, abscissae, single)
    node, g = model.frames[name] if name in model.frames else model.links.frame[name]
    return on_node(node, g, len(abscissae), single)


def place_of_point(model: Model, name: str, s: Any) -> Places:
    """The single place s of a description on a link. The axes of its frame may differ from those at s."""
    body = _body_number(model, name)
    if body < 0 or not (isinstance(s, str) or checks.shape(s)):
        return places_of(model, name, s)
    return _on_deformable(model, name, body, [s], turns=False)


def _body_number(model: Model, name: Any) -> int:
    """Index of a link's deformable body, -1 for other links."""
    if not isinstance(name, str) or name not in model.links.names or name in model.frames:
        return -1
    found = np.flatnonzero(model.nodes.link[model.deforming.node] == model.links.names.index(name))
    return int(found[0]) if len(found) else -1


def _on_deformable(model: Model, name: str, b: int, s: Any, *, turns: bool = True) -> Places:
    """Places on a deformable body. They exist at its base, its tip, and where the description has placed something."""
    body, base = model.links.body[model.links.names.index(name)], int(model.deforming.node[b])
    if body is None:
        raise ModelError(f"link {name!r}: must carry a deformable body (got None)")
    known = {0.0: base} | model.deforming.place[b]
    wanted, single = _listed(s)
    rows = []
    for one in wanted:
        if isinstance(one, float):
            numbers = sorted(key for key in known if isinstance(key, float))
            rule = f"must be one of {numbers} on the deformable body of {name!r}, or name a place by add_frame"
            rule += "; a material point is a row, s=[(x, y, z)]" if len(wanted) == 3 else ""
            key: Key = one
        else:
            point = body.material_point(one, "s")
            key = (turns, *point.tolist()) if point is not None else 0.0
            rule = f"there is no frame at this material point of {name!r}; name the place by add_frame"
        if key not in known:
            raise ModelError(f"s: {rule} (got {one!r})")
        rows.append(known[key])
    at = on_node(base, _ONE, len(rows), single)
    return replace(at, node=np.array(rows, dtype=np.int32))


def _listed(s: Any) -> tuple[list[Any], bool]:
    """Places on a deformable body as a list of abscissae, names and material points; whether `s` is a single place."""
    if isinstance(s, str):
        return [s], True
    if isinstance(s, list | tuple) and any(isinstance(one, str) for one in s):
        return [one if isinstance(one, str) else np.asarray(one).tolist() for one in s], False
    check_kept("s", s)
    try:
        numbers = np.asarray(s, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros((0, 0))
    if numbers.ndim > 2 or (numbers.ndim == 2 and numbers.shape[1:] != (3,)):
        rule = "must be an abscissa in [0, 1] or the name of a place, or a list of these or of material points (3,)"
        raise ModelError(f"s: {rule} (got {s!r})")
    return np.atleast_1d(numbers).tolist(), numbers.ndim == 0


def on_node(node: int, g: np.ndarray, count: int = 1, single: bool = True) -> Places:
    """`count` equal places at the frame g (4, 4) of a node."""
    nodes, placements, none = np.full(count, node, dtype=np.int32), np.tile(g, (count, 1, 1)), np.zeros((0, 6))
    return Places(nodes, placements, single, np.zeros(0, np.int32), np.zeros((0, 4, 4)), np.zeros(0), none, none,
                  np.zeros((0, 6, 0)), np.zeros((0, 6, 0)))  # fmt: skip


def _on_rod(model: Model, name: str, abscissae: list[float], single: bool) -> Places:
    rod = model.rods[name]
    strain = rod.strain
    x, line = line_through_moments(strain.interval_points)
    nodes, placements = np.empty(len(abscissae), dtype=np.int32), []
    parents, G, h, xi, Phi = [], [], [], [], []
    for j, s in enumerate(abscissae):
        k = point_before(rod.node_s, s)
        node, g = (int(rod.node[k]), _ONE) if k >= 0 else rod.base
        start = float(rod.node_s[k]) if k >= 0 else 0.0
        if s - start > _SAME:
            modes = model.cached(("modes", name), lambda: _modes(model, name))
            points = start + (s - start) * (x + 1) / 2
            xi.append(line @ np.array([strain.reference(point) for point in points.tolist()]))
            Phi.append(line @ modes(points))
            parents.append(node)
            G.append(g)
            h.append((s - start) * strain.length)
            node, g = model.n_nodes + len(h) - 1, _ONE
        nodes[j] = node
        placements.append(g)
    m = len(h)
    ends, both = np.array(Phi).reshape(m, 2, 6, -1 if m else 0), np.array(xi).reshape(m, 2, 6)
    return Places(nodes, np.array(placements).reshape(-1, 4, 4), single, np.array(parents, dtype=np.int32),
                  np.array(G).reshape(m, 4, 4), np.array(h), both[:, 0], both[:, 1], ends[:, 0], ends[:, 1],
                  int(model.nodes.base[rod.node[0]]), strain.v_start, strain.q_shift)  # fmt: skip


def _modes(model: Model, name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The basis of a rod as a function of abscissae (n,) in one interval, shape (n, 6 modes). A basis of polynomials is
    evaluated by their Chebyshev coefficients, several times faster than by the basis itself."""
    strain = model.rods[name].strain
    family, count = strain.family, strain.family.degree() + 1

    def exact(s: np.ndarray) -> np.ndarray:
        return np.array([strain.basis(x).ravel() for x in s.tolist()])

    if isinstance(family, BasisCustom) or count > _MOST_COEFFICIENTS:
        return exact
    edges = [0.0, *family.breaks(), 1.0]
    pieces, orders = [_fitted(exact, a, b, count) for a, b in pairwise(edges)], np.arange(count)
    if any(piece is None for piece in pieces):
        return exact

    def fast(s: np.ndarray) -> np.ndarray:
        k = bisect_right(edges, float(s[len(s) // 2]), 1, len(edges) - 1) - 1  # an interval never contains a break
        x = (2.0 * s - edges[k] - edges[k + 1]) / (edges[k + 1] - edges[k])
        return np.cos(np.arccos(x)[:, None] * orders) @ pieces[k]

    return fast


def _fitted(basis: Callable[[np.ndarray], np.ndarray], a: float, b: float, count: int) -> np.ndarray | None:
    """Chebyshev coefficients (count, 6 modes) of a basis on [a, b]; None if these do not fit it."""
    orders = np.arange(count)
    angles = np.pi * (orders + 0.5) / count
    values = basis(0.5 * (a + b) + 0.5 * (b - a) * np.cos(angles))
    c = 2.0 / count * np.cos(orders[:, None] * angles) @ values
    c[0] *= 0.5
    x = np.linspace(-0.999, 0.999, 2 * count + 3)
    missed = np.cos(np.arccos(x)[:, None] * orders) @ c - basis(0.5 * (a + b) + 0.5 * (b - a) * x)
    return c if np.abs(missed).max(initial=0.0) <= _FITS * np.abs(values).max(initial=0.0) else None
