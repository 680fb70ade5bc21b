"""Frames at any place of a robot: on its nodes, or at further points of its rods.

A further point is a massless leaf on the last node before it, whose interval is computed when it is asked for; the
tables of the model stay as they are. Kernels find such points behind the nodes, in tables of `launch.points`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.model.nodes import line_through_moments, point_before
from lissom.robot.bases import BasisCustom
from lissom.robot.joints import MotionKind

_KEPT = 128  # places that are remembered
_ONE = np.eye(4)
_SAME = 1e-12  # abscissae that only rounding parts
_FITS = 1e-13  # what a polynomial may miss of a basis, relative to its size
_MOST_COEFFICIENTS = 40


@final
@dataclass(frozen=True, eq=False)
class Places:
    """Where frames stand.

    Fields:
        node: of each frame, -1 for the world; further points are numbered behind the nodes. placement: of the frame in
        that node, (n, 4, 4). single: whether one was asked for by a number.
        Of the m further points, which all belong to one rod: parent and its frame G (m, 4, 4), h, kappa, and of the
        reference strain xi1, xi2, (m, 6), as nodes have them; modes Phi1, Phi2, (m, 6, number of modes); base, v_start
        and q_shift of the rod.
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
    """Where the link, rod at s, or named frame stands.

    Raises:
        ModelError: no link or frame has this name, or s is outside [0, 1].
    """
    key = s if type(s) is float else None
    if key is None:
        try:
            abscissae = np.asarray(s, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"s: must lie in [0, 1], a number or a list (got {s!r})") from None
        key = float(abscissae) if abscissae.ndim == 0 else abscissae.tobytes() if abscissae.ndim == 1 else None
    kept: dict[Any, Places] = model.cache.setdefault("places", {})
    found = kept.pop((name, key), None) if isinstance(name, str) and key is not None else None
    if found is not None:
        kept[name, key] = found  # the last is what was used last
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
    if name not in model.frames and model.links.names.index(name) in model.nodes.link[model.deforming.node]:
        return _on_deformable(model, name, abscissae, single)
    node, g = model.frames[name] if name in model.frames else model.links.frame[name]
    return on_node(node, g, len(abscissae), single)


def _on_deformable(model: Model, name: str, abscissae: list[float], single: bool) -> Places:
    """On the nodes that a deformable body has: its base, its tip and where something stands on it."""
    nodes, link = model.nodes, model.links.names.index(name)
    (base,) = (int(k) for k in model.deforming.node if nodes.link[k] == link)
    leaves = np.flatnonzero((nodes.parent == base) & (nodes.link == link) & (nodes.kind == MotionKind.MAP.value))
    known = {0.0: base} | {float(nodes.s[k]): int(k) for k in leaves}
    for s in abscissae:
        if s not in known:
            rule = f"must be one of {sorted(known)} on the deformable body of {name!r}, or name a place by add_frame"
            raise ModelError(f"s: {rule} (got {s!r})")
    at = on_node(base, _ONE, len(abscissae), single)
    return replace(at, node=np.array([known[s] for s in abscissae], dtype=np.int32))


def on_node(node: int, g: np.ndarray, count: int = 1, single: bool = True) -> Places:
    """Places all at one frame g of a node."""
    nodes, placements, none = np.full(count, node, dtype=np.int32), np.tile(g, (count, 1, 1)), np.zeros((0, 6))
    return Places(nodes, placements, single, np.zeros(0, np.int32), np.zeros((0, 4, 4)), np.zeros(0), none, none,
                  np.zeros((0, 6, 0)), np.zeros((0, 6, 0)))  # fmt: skip


def _on_rod(model: Model, name: str, abscissae: list[float], single: bool) -> Places:
    rod = model.rods[name]
    strain, modes = rod.strain, model.cached(("modes", name), lambda: _modes(model, name))
    x, line = line_through_moments(strain.interval_points)
    nodes, placements = np.empty(len(abscissae), dtype=np.int32), []
    parents, G, h, xi, Phi = [], [], [], [], []
    for j, s in enumerate(abscissae):
        k = point_before(rod.node_s, s)
        node, g = (int(rod.node[k]), _ONE) if k >= 0 else rod.base
        start = float(rod.node_s[k]) if k >= 0 else 0.0
        if s - start > _SAME:
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
    """The basis of a rod at abscissae (n,), as (n, 6 modes): by the coefficients of its polynomials where it consists
    of such, which is several times faster than the basis itself."""
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
        k = bisect_right(edges, float(s[len(s) // 2]), 1, len(edges) - 1) - 1  # no interval reaches across a break
        x = (2.0 * s - edges[k] - edges[k + 1]) / (edges[k + 1] - edges[k])
        return np.cos(np.arccos(x)[:, None] * orders) @ pieces[k]

    return fast


def _fitted(basis: Callable[[np.ndarray], np.ndarray], a: float, b: float, count: int) -> np.ndarray | None:
    """Chebyshev coefficients (count, 6 modes) of a basis on [a, b], None where so many do not fit it."""
    orders = np.arange(count)
    angles = np.pi * (orders + 0.5) / count
    values = basis(0.5 * (a + b) + 0.5 * (b - a) * np.cos(angles))
    c = 2.0 / count * np.cos(orders[:, None] * angles) @ values
    c[0] *= 0.5
    x = np.linspace(-0.999, 0.999, 2 * count + 3)
    missed = np.cos(np.arccos(x)[:, None] * orders) @ c - basis(0.5 * (a + b) + 0.5 * (b - a) * x)
    return c if np.abs(missed).max(initial=0.0) <= _FITS * np.abs(values).max(initial=0.0) else None
