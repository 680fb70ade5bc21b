"""Frames at any place of a robot: on its nodes, or at further points of its rods.

A further point is a massless leaf on the last node before it, whose interval is computed when it is asked for; the
tables of the model stay as they are. Kernels find such points behind the nodes, in tables of `launch.points`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.model.nodes import line_through_moments
from lissom.robot.bases import BasisCustom

_KEPT = 128  # places that are remembered
_ONE = np.eye(4)
_SAME = 1e-12  # abscissae that only rounding parts
_FITS = 1e-13  # what a polynomial may miss of a basis, relative to its size
_MOST_COEFFICIENTS = 40
_KAPPA = np.sqrt(3.0) / 12.0
_ModesAt = Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, eq=False)
class Places:
    """Where frames stand.

    Fields:
        node: of each frame, -1 for the world; further points are numbered behind the nodes. placement: of the frame in
        that node, (n, 4, 4). single: whether one was asked for by a number.
        Of the m further points, which all belong to one rod: parent and its frame G (m, 4, 4), h, kappa, and both xi
        (2, m, 6) of the reference strain and Phi (2, m, 6, number of modes), as nodes have them; whether a G is not the
        identity; base, v_start and q_shift of the rod.
    """

    node: np.ndarray
    placement: np.ndarray
    single: bool
    parent: np.ndarray
    G: np.ndarray
    h: np.ndarray
    xi: np.ndarray
    Phi: np.ndarray
    is_placed: bool = False
    base: int = 0
    v_start: int = 0
    q_shift: int = 0

    @property
    def kappa(self) -> np.ndarray:
        """√3 h²/12."""
        return _KAPPA * self.h**2


def places_of(model: Model, name: str, s: Any) -> Places:
    """Where the link, rod at s, or named frame stands.

    Raises:
        ModelError: no link or frame has this name, or s is outside [0, 1].
    """
    rows, single = ([s], True) if type(s) is float else _abscissae(s)
    key = rows[0] if single else tuple(rows)
    kept: dict[Any, Places] = model.cache.setdefault("places", {})
    found = kept.pop((name, key), None) if isinstance(name, str) else None
    if found is not None:
        kept[name, key] = found  # the last is what was used last
        return found
    if not all(0.0 <= x <= 1.0 for x in rows):
        raise _outside(s)
    if not isinstance(name, str) or not (name in model.frames or name in model.links.frame):
        known = sorted([*model.links.names, *model.frames])
        raise ModelError(f"link or frame: must be one of {known} (got {name!r})")
    found = kept[name, key] = _find(model, name, rows, single)
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
    return found


def _abscissae(s: Any) -> tuple[list[float], bool]:
    """The abscissae of a number or an array (n,), and whether it is a number."""
    try:
        rows = np.asarray(s, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _outside(s) from None
    if rows.ndim > 1:
        raise _outside(s)
    return rows.reshape(-1).tolist(), rows.ndim == 0


def _outside(s: Any) -> ModelError:
    return ModelError(f"s: must lie in [0, 1], a number or a list (got {s!r})")


def _find(model: Model, name: str, abscissae: list[float], single: bool) -> Places:
    if name in model.rods and name not in model.frames:
        return _on_rod(model, name, abscissae, single)
    node, g = model.frames[name] if name in model.frames else model.links.frame[name]
    return on_node(node, g, len(abscissae), single)


def on_node(node: int, g: np.ndarray, count: int = 1, single: bool = True) -> Places:
    """Places all at one frame g of a node."""
    nodes, placements = np.full(count, node, dtype=np.int32), np.tile(g, (count, 1, 1))
    return Places(nodes, placements, single, np.zeros(0, np.int32), np.zeros((0, 4, 4)), np.zeros(0),
                  np.zeros((2, 0, 6)), np.zeros((2, 0, 6, 0)))  # fmt: skip


def _on_rod(model: Model, name: str, abscissae: list[float], single: bool) -> Places:
    rod = model.rods[name]
    strain, (starts, frames, modes) = rod.strain, model.cached(("places on", name), lambda: _stretches(model, name))
    x, line = line_through_moments(strain.interval_points)
    nodes, placements, parents, G, h, xi, Phi = [], [], [], [], [], [], []
    for s in abscissae:
        k = max(bisect_right(starts, s + _SAME) - 1, 0)
        (node, g), along = frames[k], s - starts[k]
        if along > _SAME:
            points = starts[k] + 0.5 * along * (x + 1.0)
            xi.append((line @ [strain.reference(point) for point in points.tolist()])[:, None])
            Phi.append((line @ modes(points)).reshape(2, 1, 6, -1))
            parents.append(node)
            G.append(g)
            h.append(along * strain.length)
            node, g = model.n_nodes + len(h) - 1, _ONE
        nodes.append(node)
        placements.append(g)
    return Places(
        np.array(nodes, dtype=np.int32), np.array(placements).reshape(-1, 4, 4), single,
        np.array(parents, dtype=np.int32), np.array(G).reshape(-1, 4, 4), np.array(h),
        np.concatenate(xi, axis=1) if xi else np.zeros((2, 0, 6)),
        np.concatenate(Phi, axis=1) if Phi else np.zeros((2, 0, 6, 0)),
        any(g is not _ONE for g in G), int(model.nodes.base[rod.node[0]]), strain.v_start, strain.q_shift,
    )  # fmt: skip


def _stretches(model: Model, name: str) -> tuple[list[float], list[tuple[int, np.ndarray]], _ModesAt]:
    """Where the base and the nodes of a rod stand, rising, the frames there, and its modes at any abscissa."""
    rod = model.rods[name]
    node, g = rod.base
    base = (node, _ONE if np.array_equal(g, _ONE) else g)
    return [0.0, *rod.node_s.tolist()], [base, *((int(k), _ONE) for k in rod.node)], _modes(model, name)


def _modes(model: Model, name: str) -> _ModesAt:
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
