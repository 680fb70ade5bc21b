"""Derivatives of motions that are made of motions one after the other, points along the last axis.

With z = (p, s) what a motion g moves and its own coordinates, and z_α how z changes with any of the coordinates or of
the directions of x, what g makes of p changes by

    g_z z_α,   g_z z_αβ + g_zz[z_α, z_β],   g_z z_αβγ + Σ g_zz[z_αβ, z_γ] + g_zzz[z_α, z_β, z_γ]           (1)

over the three pairs αβ. Motions have few coordinates each, and most of their derivatives are zero or one: that costs a
hundredth of derivatives of the whole at once, and compiles in the time that its parts take.

Tables stand by the three components of p: X (3, N) by directions x of x, J (n, N) by coordinates, XJ (n, 3, N) by both,
H (n, n, N) and XH (n, n, 3, N) by two coordinates; h = J̇θ̇ (N,), and what directions and coordinates change of it, Xh
(3, N) and h_q (n, N). A motion's own coordinates join those of earlier ones behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lissom.bodies.series import ORDER, Key, Series
from lissom.bodies.slopes import Bends, Slopes

Step = Callable[[tuple[Series, Series, Series], tuple[Series, ...]], Sequence[Series]]  # of a point, own coordinates
Jet = list[list[dict[Key, Any]]]  # of each component of g its derivatives of order 0 to 3 by z
Parts = list[Any]  # tables of the three components, and perhaps what stands for own coordinates behind them


def jets(steps: list[tuple[Step, int]], points: Any, q: Any) -> list[Jet]:
    """The derivatives of motions, each with the number of its coordinates, at θ = q."""
    import jax.numpy as jnp

    p, found, n = list(jnp.asarray(points, dtype=jnp.float64).T), [], 0
    for step, k in steps:
        x, y, z, *own = (Series.variable(part, number) for number, part in enumerate([*p, *q[n : n + k]]))
        moved = step((x, y, z), tuple(own))
        found.append([[g.derivatives(order) for order in range(ORDER + 1)] for g in moved])
        p, n = [g[0][()] for g in found[-1]], n + k
    return found


def slopes(jets: list[Jet], counts: list[int], points: Any, v: Any) -> Slopes:
    """Of motions from their derivatives and the numbers of their coordinates, at θ̇ = v."""
    p, X, J, XJ, _, _ = _start(points)
    h: Parts = [0.0] * 3
    Xh: Parts = h
    N, n = points.shape[0], 0
    for jet, k in zip(jets, counts):
        rate, X_dot = [*_summed(J, v[:n]), *v[n : n + k]], _summed(XJ, v[:n])
        tables = []
        for value, first, second, third in jet:
            A, R = _along(second, X), _along(second, rate)
            bent = _sum(A, h) + 2.0 * _sum(R, X_dot) + _sum(_along(_along(third, rate), rate), X)
            by_both = _table(_sum(first, XJ) + _sum(A, _wide(J, 1)), n, 3, N)
            tables.append((
                _table(value[()], N),
                _table(_sum(first, X), 3, N),
                _joined(_table(_sum(first, J), n, N), _own(first, k), N),
                _joined(by_both, _own(A, k), 3, N),
                _table(_sum(first, h) + _sum(R, rate), N),
                _table(_sum(first, Xh) + bent, 3, N),
            ))  # fmt: skip
        p, X, J, XJ, h, Xh = _apart(tables)
        n += k
    return Slopes(*(_stacked(part, axis) for part, axis in ((p, 0), (X, 0), (J, 1), (XJ, 1), (h, 0), (Xh, 0))))


def bends(jets: list[Jet], counts: list[int], points: Any, v: Any) -> Bends:
    """Of motions from their derivatives and the numbers of their coordinates, at θ̇ = v."""
    p, X, J, XJ, H, XH = _start(points)
    h: Parts = [0.0] * 3
    h_q = J
    N, n = points.shape[0], 0
    for jet, k in zip(jets, counts):
        rate, turned = [*_summed(J, v[:n]), *v[n : n + k]], _summed(H, v[:n])
        tables = []
        for value, first, second, third in jet:
            A, B, R, AX = _along(second, X), _along(second, J), _along(second, rate), _along(third, X)
            C = _along(AX, _wide(J, 1))  # g_zzz[x_i, z_j] by [j, i]
            by_rate = _added(_along(second, h), _along(_along(third, rate), rate))
            B_1 = _wide_keys(B, 1)
            by_two = _sum(first, H) + _sum(B_1, _wide(J, 0))
            by_three = _sum(first, XH) + _sum(A, _wide(H, 2)) + _sum(_wide_keys(C, 1), _wide(_wide(J, 1), 0))
            by_three += _sum(_wide_keys(B_1, 1), _wide(XJ, 0)) + _sum(_wide_keys(B_1, 0), _wide(XJ, 1))
            across = [_sum(_by(second, a), XJ) + C.get((a,), 0.0) for a in range(3, 3 + k)]
            tables.append((
                _table(value[()], N),
                _table(_sum(first, X), 3, N),
                _joined(_table(_sum(first, J), n, N), _own(first, k), N),
                _joined(_table(_sum(first, XJ) + _sum(A, _wide(J, 1)), n, 3, N), _own(A, k), 3, N),
                _table(_sum(first, h) + _sum(R, rate), N),
                _square(_table(by_two, n, n, N), _own(B, k), _own_pairs(second, k), N),
                _square(_table(by_three, n, n, 3, N), across, _own_pairs(AX, k), 3, N),
                _joined(_table(_sum(first, h_q) + _sum(by_rate, J) + 2.0 * _sum(R, turned), n, N), _own(by_rate, k), N),
            ))  # fmt: skip
        p, X, J, XJ, h, H, XH, h_q = _apart(tables)
        n += k
    parts = ((p, 0), (X, 0), (J, 1), (XJ, 1), (H, 2), (XH, 2), (h_q, 1))
    return Bends(*(_stacked(part, axis) for part, axis in parts))


def _start(points: Any) -> tuple[Parts, ...]:
    """p, X, J, XJ, H and XH before any motion."""
    import jax.numpy as jnp

    p = jnp.asarray(points, dtype=jnp.float64).T
    N = p.shape[-1]
    X = list(jnp.broadcast_to(jnp.eye(3)[:, :, None], (3, 3, N)))
    return list(p), X, *([jnp.zeros((*shape, N))] * 3 for shape in ((0,), (0, 3), (0, 0), (0, 0, 3)))


def _along(derivatives: Mapping[Key, Any], rates: Parts) -> dict[Key, Any]:
    """Symmetric derivatives times one vector of z, zero where it ends: those of an order less."""
    total: dict[Key, Any] = {}
    for key, value in derivatives.items():
        for a in sorted(set(key)):
            if a < len(rates):
                rest = _without(key, a)
                part = rates[a] if isinstance(value, float) and value == 1.0 else value * rates[a]
                total[rest] = total[rest] + part if rest in total else part
    return total


def _sum(derivatives: Mapping[Key, Any], rates: Parts) -> Any:
    """First derivatives times one vector of z."""
    return _along(derivatives, rates).get((), 0.0)


def _by(derivatives: Mapping[Key, Any], a: int) -> dict[Key, Any]:
    """Symmetric derivatives once by one of z."""
    return {_without(key, a): value for key, value in derivatives.items() if a in key}


def _without(key: Key, a: int) -> Key:
    place = key.index(a)
    return key[:place] + key[place + 1 :]


def _added(first: Mapping[Key, Any], second: Mapping[Key, Any]) -> dict[Key, Any]:
    return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in {**first, **second}}


def _own(derivatives: Mapping[Key, Any], k: int) -> Parts:
    """First derivatives by a motion's own coordinates."""
    return [derivatives.get((a,), 0.0) for a in range(3, 3 + k)]


def _own_pairs(derivatives: Mapping[Key, Any], k: int) -> list[Parts]:
    """Second derivatives by a motion's own coordinates."""
    own = range(3, 3 + k)
    return [[derivatives.get((min(a, b), max(a, b)), 0.0) for b in own] for a in own]


def _wide(parts: Parts, axis: int) -> Parts:
    """With an axis of length one."""
    import jax.numpy as jnp

    return [jnp.expand_dims(part, axis) for part in parts]


def _wide_keys(derivatives: Mapping[Key, Any], axis: int) -> dict[Key, Any]:
    """The same of derivatives."""
    return dict(zip(derivatives, _wide(list(derivatives.values()), axis)))


def _summed(parts: Parts, v: Any) -> Parts:
    """Along θ̇, over the first axis."""
    return [(part * v.reshape(-1, *[1] * (part.ndim - 1))).sum(axis=0) for part in parts]


def _table(x: Any, *shape: int) -> Any:
    import jax.numpy as jnp

    return jnp.broadcast_to(x, shape)


def _joined(table: Any, own: Parts, *shape: int) -> Any:
    """Rows behind a table, each of the shape of one."""
    import jax.numpy as jnp

    return jnp.concatenate([table, *(_table(row, 1, *shape) for row in own)])


def _square(table: Any, across: Parts, own: list[Parts], *shape: int) -> Any:
    """Rows, each (n, ...), and their transposes beside a table (n, n, ...), and what stands in the corner."""
    import jax.numpy as jnp

    n = len(table)
    rows = jnp.stack([_table(row, n, *shape) for row in across])
    corner = jnp.stack([jnp.stack([_table(x, *shape) for x in row]) for row in own])
    upper, lower = ([table, rows.swapaxes(0, 1)], [rows, corner])
    return jnp.concatenate([jnp.concatenate(upper, axis=1), jnp.concatenate(lower, axis=1)])


def _apart(tables: list[tuple[Any, ...]]) -> list[Parts]:
    """Tables by what they are of, as arrays of their own, which XLA does not make again wherever they are used."""
    import jax

    return [list(parts) for parts in zip(*jax.lax.optimization_barrier(tables))]


def _stacked(parts: Parts, axis: int) -> Any:
    import jax.numpy as jnp

    return jnp.stack(parts, axis=axis)
