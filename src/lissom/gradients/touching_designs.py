"""How contacts answer to design values, with the branch of each held as it is at the state.

A contact has kinks: where it begins, where its ball begins to slip, where damping would pull, between the features of a
shape. Differences across one are wrong by any amount. The law of contact takes X, which has no kinks: its constants,
the radius, the centre c, the pose R, p of the obstacle and its sizes, the rotation R_a of the ball's node, the velocity
u of the centre and the spin ω against the obstacle. X is differenced over design values. With f and m of contact,
and the Jacobians J_c, J_ω of the ball against the obstacle (anchors), r = … − J_cᵀ f − J_ωᵀ m changes by

    r_p = −(J_c'ᵀ f + J_ω'ᵀ m) − J_cᵀ ∂f/∂X X' − J_ωᵀ ∂m/∂X X'                                            (1)

The law is differentiated by the complex step f(X + i h X') = f + i h f' + O(h²), exact to rounding for any h: its
branches are chosen by real parts. The gradient n and Hessian N of the distance φ give

    φ' = n·(y' − s'),   n' = N (y' − s'),   y = Rᵀ (c − p)                                                (2)

in axes of the shape, which moves its nearest point by s' as its sizes change; the side of a cone turns as well.
Source: W. Squire, G. Trapp, SIAM Review 40 (1998) 110 (the complex step).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from lissom.dynamics.contacts import contact_geometry
from lissom.dynamics.kinematics import jacobians_at, poses_at
from lissom.launch.workspace import row_slices
from lissom.model.model import Model
from lissom.model.points import on_node
from lissom.robot.shapes import ShapeKind

_STEP = 1e-30  # of the complex step
_SURELY = 1.0 - 1e-12  # of the limit of friction, as the kernel takes it
_SMALL = 0.02  # 1 − cos φ below which a series gives G of contact (6)
_ROWS = 256  # states of all models in one launch
_SIZES = {"law": 7, "radius": 1, "size": 3, "c": 3, "R": 9, "p": 3, "R_a": 9, "u": 3, "spin": 3}  # of X
_ENDS = np.cumsum(list(_SIZES.values()))
_E_Z, _ACROSS = np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])

_Beside = list[tuple[Model, np.ndarray, tuple[Model, ...]]]


@final
class Touching(NamedTuple):
    """Pairs that touch, row by row: the state of each, ball, obstacle, row of the law, kind of the shape, depth, normal
    and Hessian in the world, and the anchor that it holds on at, NaN where it has none."""

    state: np.ndarray
    ball: np.ndarray
    obstacle: np.ndarray
    law: np.ndarray
    kind: np.ndarray
    depth: np.ndarray
    n: np.ndarray
    N: np.ndarray
    anchor: np.ndarray

    def some(self, which: np.ndarray) -> Touching:
        """Some of the rows."""
        return Touching(*(x[which] for x in self))


@final
class _Answers(NamedTuple):
    """Derivatives by design values of (1), and of the anchor that follows, (rows, count, nv) and (rows, count, 6)."""

    residual: np.ndarray
    anchor: np.ndarray


def touching_pairs(model: Model, q: np.ndarray, anchors: np.ndarray | None) -> tuple[Touching, np.ndarray]:
    """The pairs that touch at states (n, nq) of one model, and their numbers; anchors are those of the model where none
    are given for each state."""
    world = model.contacts
    state, rows = contact_geometry(model, q)
    pair = rows[:, 0].astype(int)
    ball, obstacle, law = world.pair[pair].T
    held = world.anchors[pair] if anchors is None or not anchors.size else anchors[state, pair]
    N = rows[:, 8:17].reshape(-1, 3, 3)
    kind = world.obstacle_kind[obstacle]
    return Touching(state, ball, obstacle, law, kind, rows[:, 1], rows[:, 5:8], N, held), pair


def contact_slopes(
    model: Model, beside: _Beside, count: int, q: np.ndarray, v: np.ndarray, anchors: np.ndarray | None
) -> np.ndarray:
    """What contacts add to ∂r/∂p at states (n, ...) of one model by (1), shape (n, count, nv).

    Args:
        beside: models beside it as they stand together; the weights of each in the derivatives, (count, models); and
            these models, whose contacts push.
    """
    out = np.zeros((len(q), count, model.nv))
    if len(model.contacts.pair):
        x, _ = touching_pairs(model, q, anchors)
        np.add.at(out, x.state, _answers(model, beside, count, x, q, v).residual)
    return out


def anchor_design_slopes(
    model: Model, beside: _Beside, count: int, q: np.ndarray, v: np.ndarray, anchors: np.ndarray
) -> np.ndarray:
    """How the anchors that follow upon those given (n, n_pairs, 6) answer, (n, count, 6 n_pairs); zero of pairs that do
    not touch."""
    out = np.zeros((len(q), anchors.shape[1], count, 6))
    x, pair = touching_pairs(model, q, anchors)
    sticks = model.contacts.law[x.law, 5] > 0.0
    x, pair = x.some(sticks), pair[sticks]
    out[x.state, pair] = _answers(model, beside, count, x, q, v).anchor
    return np.swapaxes(out, 1, 2).reshape(len(q), count, anchors[0].size)


def _answers(model: Model, beside: _Beside, count: int, x: Touching, q: np.ndarray, v: np.ndarray) -> _Answers:
    """Of all rows."""
    out = _Answers(np.zeros((len(x.state), count, model.nv)), np.zeros((len(x.state), count, 6)))
    if not len(x.state):
        return out
    most = max(weights.shape[1] for _, weights, _ in beside)
    for part in row_slices(len(q), max(1, _ROWS // most)):
        rows = np.flatnonzero((x.state >= part.start) & (x.state < part.stop))
        if len(rows):
            some = x.some(rows)
            states, own = np.unique(some.state, return_inverse=True)
            found = _answers_of_part(model, beside, count, some._replace(state=own), q[states], v[states])
            out.residual[rows], out.anchor[rows] = found
    return out


def _answers_of_part(model: Model, beside: _Beside, count: int, x: Touching, q: np.ndarray, v: np.ndarray) -> _Answers:
    """Of the rows of a few states."""
    own, J_c, J_w = (y[0] for y in _smooth(model, (model,), x, q, v))
    f, m, _ = (np.real(y) for y in _law(own[:, None].astype(complex), x))
    f, m = f[:, 0], m[:, 0]
    slopes = np.zeros((len(x.state), count, own.shape[1] + model.nv))
    for common, weights, models in beside:
        with common.temporary_buffers():
            X, by_c, by_w = _smooth(common, models, x, q, v)
        pushed = np.einsum("mrij,ri->mrj", by_c, f) + np.einsum("mrij,ri->mrj", by_w, m)
        slopes += np.einsum("pm,mrj->rpj", weights, np.concatenate([X - own, pushed], axis=-1))
    by_X, pushed = np.split(slopes, [own.shape[1]], axis=-1)
    answer = [np.imag(y) / _STEP for y in _law(own[:, None] + 1j * _STEP * by_X, x)]
    force = np.einsum("rij,rpi->rpj", J_c, answer[0]) + np.einsum("rij,rpi->rpj", J_w, answer[1])
    residual = -(pushed + force)
    residual[..., model.prescribed.dof] = 0.0
    return _Answers(residual, answer[2])


def _smooth(
    common: Model, models: tuple[Model, ...], x: Touching, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, (models, rows, 41), J_c and J_ω, (models, rows, 3, nv), of models that stand together."""
    world, many, n = common.contacts, len(models), len(q)
    nodes = world.ball_node[x.ball], world.obstacle_node[x.obstacle]
    node, columns = np.unique(nodes, return_inverse=True)
    places = replace(on_node(-1, np.eye(4), len(node), False), node=node.astype(np.int32))
    states = np.concatenate([q] * many), np.concatenate([v] * many)
    g = poses_at(common, states[0], places).reshape(many, n, -1, 4, 4)
    J = jacobians_at(common, *states, places)[0].reshape(many, n, -1, 6, common.nv)
    mine, other = columns.reshape(2, -1)
    (g_a, J_a), (g_b, J_b) = ((g[:, x.state, k], J[:, x.state, k]) for k in (mine, other))

    def each(name: str, which: np.ndarray) -> np.ndarray:
        return np.array([getattr(one.contacts, name)[which] for one in models])

    obstacle = g_b @ each("obstacle_placement", x.obstacle)
    c = np.einsum("mrij,mrj->mri", g_a[..., :3, :3], each("ball_position", x.ball)) + g_a[..., :3, 3]
    (a_c, a_w), (b_c, b_w) = _point_jacobians(g_a, J_a, c), _point_jacobians(g_b, J_b, c)
    J_c, J_w = a_c - b_c, a_w - b_w
    speed = v[x.state]
    parts_of_X = {
        "law": each("law", x.law), "radius": each("ball_radius", x.ball)[..., None],
        "size": each("obstacle_size", x.obstacle), "c": c, "R": _flat(obstacle[..., :3, :3]), "p": obstacle[..., :3, 3],
        "R_a": _flat(g_a[..., :3, :3]), "u": np.einsum("mrij,rj->mri", J_c, speed),
        "spin": np.einsum("mrij,rj->mri", J_w, speed),
    }  # fmt: skip
    return np.concatenate([parts_of_X[name] for name in _SIZES], axis=-1), J_c, J_w


def _point_jacobians(g: np.ndarray, J: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity of the point of nodes at g that is at c, and spin, by v, in axes of the world."""
    R = g[..., :3, :3]
    by_w = R @ J[..., :3, :]
    return R @ J[..., 3:, :] - np.cross((c - g[..., :3, 3])[..., None], by_w, axisa=-2, axisb=-2, axisc=-2), by_w


def _law(X: np.ndarray, x: Touching) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f and m on the ball and the anchor that follows, of complex X (rows, directions, 41)."""
    law, radius, size, c, R, p, R_a, u, spin = np.split(X, _ENDS[:-1], axis=-1)
    k, power, damping, friction, slip_speed, stick, lag = (law[..., j : j + 1] for j in range(7))
    R, R_a = (y.reshape(*y.shape[:-1], 3, 3) for y in (R, R_a))
    depth, n = _distance(x, radius, size, _turned(_t(R), c - p), R)
    swell = 1.0 - damping * _dot(n, u)
    push = np.where(np.real(swell) > 0.0, k * depth**power * swell, 0.0)
    slip = u - _dot(n, u) * n - radius * np.cross(spin, n)
    most, sticks = friction * push, np.real(stick) > 0.0
    smooth = -most * slip / np.sqrt(_dot(slip, slip) + slip_speed**2)
    way, moved = _slipped(x, radius, n, c, R, p, R_a)
    s = way + lag * slip
    held, length = _held(stick, most, s)
    with np.errstate(divide="ignore", invalid="ignore"):
        anchored = np.where(held, -stick * s, -most * s / length)
        stays, length = _held(stick, _SURELY * most, way)
        kept = np.where(stays | ~sticks, way, _SURELY * most / stick * way / length)
    f = push * n + np.where(sticks, anchored, smooth)
    after = np.concatenate([_turned(_t(R), moved - kept - p), -_turned(_t(R_a), n)], axis=-1)
    return f, -radius * np.cross(n, f), after


def _held(stick: np.ndarray, most: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether a spring of friction holds at a slip, and the size of that."""
    nothing = ~np.real(s).any(axis=-1, keepdims=True)
    length = np.sqrt(np.where(nothing, 1.0, _dot(s, s)))
    return nothing | (np.real(stick) * np.real(length) <= np.real(most)), length


def _slipped(
    x: Touching, radius: np.ndarray, n: np.ndarray, c: np.ndarray, R: np.ndarray, p: np.ndarray, R_a: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """x of (6) of contact, zero where there is no anchor; and the point of contact."""
    has = np.isfinite(x.anchor[:, :1])[:, None]
    A, b = np.split(np.where(has, x.anchor[:, None], 0.0), 2, axis=-1)
    b = np.where(has, _turned(R_a, b), -n)
    point = c - radius * n
    d = point - _turned(R, A) - p
    free = d + radius * _rolled(n, b) * b
    return np.where(has, free - _dot(n, free) * n, 0.0), point


def _rolled(n: np.ndarray, b: np.ndarray) -> np.ndarray:
    """G of contact (6)."""
    z = -_dot(n, b)
    near = 1.0 - np.real(z) < _SMALL
    y, term, series = np.where(near, 1.0 - z, 0.0), np.ones_like(z), np.zeros_like(z)
    for m in range(9):
        series, term = series + term, term * (m + 1.0) / (2.0 * m + 3.0) * y
    across = b + z * n
    side = np.sqrt(np.where(near, 1.0, _dot(across, across)))
    return np.where(near, series, (0.5 * np.pi - np.arctan(z / side)) / side)


def _distance(
    x: Touching, radius: np.ndarray, size: np.ndarray, y: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Depth and normal in the world by (2): real parts are those of the kernel, imaginary ones follow from them."""
    back = _t(np.real(R))
    n, kind = _turned(back, x.n[:, None]), x.kind[:, None, None]
    step = np.imag(y) - _grown(kind, size, np.real(y), n)
    turn, away = _turned(back @ x.N[:, None] @ np.real(R), step), _dot(n, step)
    if (kind == ShapeKind.CONE.value).any():
        on_side, beyond, across = _side_of_cone(kind, size, y, n)
        turn, away = np.where(on_side, across, turn), np.where(on_side, beyond, away)
    return x.depth[:, None, None] + 1j * (np.imag(radius) - away), _turned(R, n + 1j * turn)


def _grown(kind: np.ndarray, size: np.ndarray, y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """s' of (2)."""
    first, second = np.imag(size)[..., :1], np.imag(size)[..., 1:2] * _E_Z
    out, side = np.zeros_like(y), np.where(y < 0.0, -1.0, 1.0)
    outwards, end = first * _around(y), side[..., 2:] * second
    for known, moved in (
        (ShapeKind.SPHERE, first * n),
        (ShapeKind.BOX, side * np.imag(size)),
        (ShapeKind.CYLINDER, outwards + end),
        (ShapeKind.HOLLOW, outwards),
        (ShapeKind.CAPSULE, first * n + end),
        (ShapeKind.CONE, np.where(_along_side(np.real(size), y)[1] > 1.0, second, outwards - second)),
    ):
        out = np.where(kind == known.value, moved, out)
    return out


def _side_of_cone(
    kind: np.ndarray, size: np.ndarray, y: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the side of a cone is nearest, and how distance and normal change there."""
    radius, half = size[..., :1], size[..., 1:2]
    slant = np.sqrt(radius**2 + 4.0 * half**2)
    out, up = 2.0 * half / slant, radius / slant
    flat = y * _ACROSS
    axis = ~np.real(flat).any(axis=-1, keepdims=True)
    far = np.sqrt(np.where(axis, 1.0, _dot(flat, flat)))
    round_it = np.where(axis, 0.0, flat / far)
    beyond = out * (np.where(axis, 0.0, far) - radius) + up * (y[..., 2:] + half)
    outside, along = _along_side(np.real(size), np.real(y))
    rim = (outside > 0.0) & (along < 0.0)
    on_side = (kind == ShapeKind.CONE.value) & ~rim & (along <= 1.0) & (n[..., 2:] > -1.0 + 1e-9)
    return on_side, np.imag(beyond), np.imag(out * round_it + up * _E_Z)


def _along_side(size: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far a point is outside the rim of a cone, and where along its side, 0 at the rim and 1 at the tip."""
    radius, half = size[..., :1], size[..., 1:2]
    outside = np.linalg.norm(y * _ACROSS, axis=-1, keepdims=True) - radius
    square = np.maximum(radius**2 + 4.0 * half**2, 1e-300)
    return outside, (2.0 * half * (y[..., 2:] + half) - radius * outside) / square


def _around(y: np.ndarray) -> np.ndarray:
    """The direction from the axis z to y, zero on it."""
    flat = y * _ACROSS
    return flat / np.maximum(np.linalg.norm(flat, axis=-1, keepdims=True), 1e-300)


def _turned(X: np.ndarray, x: np.ndarray) -> np.ndarray:
    """X x of each."""
    return (X @ x[..., None])[..., 0]


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x·y of each, with an axis of one."""
    return (x * y).sum(axis=-1, keepdims=True)


def _t(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _flat(X: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) as rows of 9."""
    return X.reshape(*X.shape[:-2], 9)
