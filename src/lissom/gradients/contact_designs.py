"""Derivatives of contacts with respect to design values, on the branch of each contact at the present state.

The force of a contact has kinks: where contact begins, where sliding begins, where damping would make the normal force
negative, and between the faces, edges and corners of a shape. Differences across a kink are wrong. So only the
variables X of the law of contact are differenced over design values, since they have no kinks: the constants of the
law, the radius, the centre c, the pose R, p and the sizes of the obstacle, the rotation R_a of the ball's node, the
velocity u of the centre and the spin ω relative to the obstacle, the normal and the cell of a surface point, and Q of a
ball that rolls in an ellipsoid, whose centre is c₀ of contact (16) here. With f
and m of contact, and the Jacobians J_c, J_ω of the ball relative to the obstacle (anchors), the residual r = … − J_cᵀ f
− J_ωᵀ m has the derivative

    r_p = −(J_c'ᵀ f + J_ω'ᵀ m) − J_cᵀ ∂f/∂X X' − J_ωᵀ ∂m/∂X X'                                            (1)

The law is differentiated by the complex step f(X + i h X') = f + i h f' + O(h²), which is exact to rounding for tiny h.
Real parts choose the branches. With the gradient n and the Hessian N of the distance φ,

    φ' = n·(y' − s'),   n' = N (y' − s'),   y = Rᵀ (c − p)                                                (2)

in axes of the shape, where s' is the displacement of its nearest point by changed sizes (SIZE_EFFECTS of robot.shapes).
The side of a cone also turns.
Source: W. Squire, G. Trapp, SIAM Review 40 (1998) 110 (the complex step).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from lissom.dynamics.contacts import contact_geometry
from lissom.dynamics.kinematics import jacobians_at
from lissom.forces.cells import pressures
from lissom.gradients.design_changes import Change, changed_tables
from lissom.launch.workspace import row_slices
from lissom.model.model import Model
from lissom.model.points import on_node
from lissom.robot.shapes import SIZE_EFFECTS, Nearest, ShapeKind

_STEP = 1e-30  # of the complex step
_SURELY = 1.0 - 1e-10  # factor of the limit of friction, as in the kernel
_SMALL = 0.02  # 1 − cos φ below which a series gives G of contact (6)
_LEAST_ROWS, _MOST_NUMBERS = 16, 2**20  # states whose Jacobians are in one launch, and their numbers
_LAWS = 4096  # laws of contact that are evaluated at once
_SIZES = {
    "law": 9, "radius": 1, "bow": 3, "facing": 3, "edges": 6, "size": 3, "c": 3, "R": 9, "p": 3, "R_a": 9, "u": 3,
    "squares": 9, "spin": 3,
}  # of X  # fmt: skip
_ENDS = np.cumsum(list(_SIZES.values()))


@final
class ContactPairs(NamedTuple):
    """Pairs of balls and obstacles in contact, one in each row.

    Fields:
        state, pair: indices of the state and of the contact pair.
        ball, obstacle, kind: indices of the ball, of the obstacle and of its kind of shape.
        depth, n, N: penetration, normal, and derivative of the normal with respect to the position, in the world.
        steep: s and H n/s of contact (12), and δ − ρ of contact (13).
        anchor: NaN for pairs without one.
        is_cell, is_triangle: whether the ball is a surface point, and whether its cell is a triangle.
    """

    state: np.ndarray
    pair: np.ndarray
    ball: np.ndarray
    obstacle: np.ndarray
    kind: np.ndarray
    depth: np.ndarray
    n: np.ndarray
    N: np.ndarray
    steep: np.ndarray
    anchor: np.ndarray
    is_cell: np.ndarray
    is_triangle: np.ndarray

    def take(self, which: slice) -> ContactPairs:
        """Chosen rows."""
        return ContactPairs(*(x[which] for x in self))


@final
class ContactSlopes(NamedTuple):
    """Derivatives of contacts with respect to design values at states in rows.

    Fields:
        residual: r_p of (1), (states, count, nv).
        state, pair: of each pair that touches and sticks, in ascending order. anchor: derivatives of their anchors
        after these states, (rows, count, 6).
    """

    residual: np.ndarray
    state: np.ndarray
    pair: np.ndarray
    anchor: np.ndarray


def contact_pairs(model: Model, q: np.ndarray, anchors: np.ndarray | None) -> ContactPairs:
    """The pairs in contact at states (n, nq) of one model.

    Args:
        anchors: of each state, (n, n_pairs, 6); None takes those of the model.
    """
    world = model.contacts
    state, rows = contact_geometry(model, q)
    pair = rows[:, 0].astype(int)
    ball, obstacle, _ = world.pair[pair].T
    anchor = world.anchors[pair] if anchors is None or not anchors.size else anchors[state, pair]
    N = rows[:, 8:17].reshape(-1, 3, 3)
    kind = world.obstacle_kind[obstacle]
    is_cell, is_triangle = np.any(world.ball_normal[ball] != 0.0, axis=1), world.ball_is_triangle[ball] == 1
    steep = rows[:, 17:22]
    depth = np.where(is_cell, steep[:, 4], rows[:, 1])
    return ContactPairs(state, pair, ball, obstacle, kind, depth, rows[:, 5:8], N, steep, anchor, is_cell, is_triangle)


def contact_slopes(
    model: Model, changes: list[Change], q: np.ndarray, v: np.ndarray, anchors: np.ndarray | None
) -> ContactSlopes:
    """The part of contacts in ∂r/∂p, and the derivatives of anchors, at states (n, ...) of one model.

    Args:
        changes: those of the model, one for each number of the design values.
        anchors: before, (n, n_pairs, 6); None or none of them: those of the model.
    """
    count, nv = len(changes), model.nv
    residual = np.zeros((len(q), count, nv))
    if not len(model.contacts.pair):
        none = np.zeros(0, dtype=int)
        return ContactSlopes(residual, none, none, np.zeros((0, count, 6)))
    x = contact_pairs(model, q, anchors)
    force, moved = np.zeros((len(x.state), count, nv)), np.zeros((len(x.state), count, 6))
    if len(x.state):
        force[:], moved[:] = _derivatives(model, changes, x, q, v)
    np.add.at(residual, x.state, force)
    sticks = np.flatnonzero(model.contacts.law[model.contacts.pair[x.pair, 2], 5] > 0.0)
    order = sticks[np.lexsort((x.pair[sticks], x.state[sticks]))]
    return ContactSlopes(residual, x.state[order], x.pair[order], moved[order])


def _derivatives(
    model: Model, changes: list[Change], x: ContactPairs, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """r_p of (1), (rows, count, nv), and the derivatives of the next anchors, (rows, count, 6). Numbers that move no
    node and change no table of contacts have none."""
    states, own_state = np.unique(x.state, return_inverse=True)
    x, q, v = x._replace(state=own_state), q[states], v[states]
    here = _motions(model, model, x, q)
    own, J_c, J_w = _smooth_variables(model, here, x, v)
    f, m = (np.real(y)[:, 0] for y in _law_in_parts(own[:, None].astype(complex), x)[:2])
    active = [p for p, change in enumerate(changes) if change.ends is not None]
    by_X, pushed = (np.zeros((len(x.state), len(active), size)) for size in (own.shape[1], model.nv))
    with changed_tables(model) as tables:
        for k, change in enumerate(changes[p] for p in active):
            assert change.ends is not None
            if not change.moves:
                by_X[:, k], pushed[:, k] = _by_tables(change.contact_tables, here, own, J_w, x, f)
                continue
            for smooth, changed, weight in zip(change.smooth, change.ends.models, change.ends.weights):
                X, by_c, by_w = _smooth_variables(changed, _motions(tables.of(smooth), changed, x, q), x, v)
                by_X[:, k] += weight * (X - own)
                pushed[:, k] += weight * (np.einsum("rij,ri->rj", by_c, f) + np.einsum("rij,ri->rj", by_w, m))
    f_p, m_p, anchor_p = (np.imag(y) / _STEP for y in _law_in_parts(own[:, None] + 1j * _STEP * by_X, x))
    force = np.einsum("rij,rpi->rpj", J_c, f_p) + np.einsum("rij,rpi->rpj", J_w, m_p)
    residual, anchor = (np.zeros((len(x.state), len(changes), size)) for size in (model.nv, 6))
    residual[:, active], anchor[:, active] = -(pushed + force), anchor_p
    residual[..., model.prescribed.dof] = 0.0
    return residual, anchor


def _law_in_parts(X: np.ndarray, x: ContactPairs) -> list[np.ndarray]:
    """_contact_law, for a limited number of rows at once."""
    size = max(1, _LAWS // max(X.shape[1], 1))
    parts = [slice(first, first + size) for first in range(0, len(X), size)]
    return [np.concatenate(y) for y in zip(*(_contact_law(X[part], x.take(part)) for part in parts))]


def _by_tables(
    tables: dict[str, np.ndarray], at: _Motions, own: np.ndarray, J_w: np.ndarray, x: ContactPairs, f: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """X' and J_c'ᵀ f where no node moves and tables of contacts have given derivatives. X and J_c are linear in these
    tables: the centre moves by c', so that J_c' = −c' × J_ω and u' = −c' × ω."""
    c = np.einsum("rij,rj->ri", at.g_a[..., :3, :3], tables["ball_position"][x.ball])
    obstacle = at.g_b @ tables["obstacle_placement"][x.obstacle]
    spin = own[:, _ENDS[-2] :]
    found = {
        "law": tables["laws"][x.pair], "radius": tables["ball_radius"][x.ball, None], "bow": tables["pair_bow"][x.pair],
        "facing": tables["ball_normal"][x.ball], "edges": tables["ball_cell"][x.ball].reshape(-1, 6),
        "size": tables["obstacle_size"][x.obstacle], "c": c, "R": _flat(obstacle[..., :3, :3]),
        "p": obstacle[..., :3, 3], "R_a": np.zeros((len(c), 9)), "u": np.cross(spin, c),
        "squares": _flat(tables["ball_squares"][x.ball]), "spin": np.zeros_like(c),
    }  # fmt: skip
    pushed = np.einsum("rij,ri->rj", J_w, np.cross(c, f))
    return np.concatenate([found[name] for name in _SIZES], axis=-1), pushed


@final
class _Motions(NamedTuple):
    """Poses (rows, 4, 4) and body Jacobians (rows, 6, nv) of the nodes of balls and of obstacles."""

    g_a: np.ndarray
    J_a: np.ndarray
    g_b: np.ndarray
    J_b: np.ndarray


def _motions(moving: Model, model: Model, x: ContactPairs, q: np.ndarray) -> _Motions:
    """The motions of the nodes of a model, whose launches are those of `moving`."""
    world = model.contacts
    nodes = world.ball_node[x.ball], world.obstacle_node[x.obstacle]
    node, columns = np.unique(nodes, return_inverse=True)
    places = replace(on_node(-1, np.eye(4), len(node), False), node=node.astype(np.int32))
    g, J = np.zeros((len(q), len(node), 4, 4)), np.zeros((len(q), len(node), 6, model.nv))
    for part in row_slices(len(q), max(_LEAST_ROWS, _MOST_NUMBERS // (12 * model.nv * len(node)))):
        g[part], J[part] = jacobians_at(moving, q[part], places)
    mine, other = columns.reshape(2, -1)
    return _Motions(g[x.state, mine], J[x.state, mine], g[x.state, other], J[x.state, other])


def _smooth_variables(
    model: Model, at: _Motions, x: ContactPairs, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (rows, 64), J_c and J_ω (rows, 3, nv) of a model whose nodes move as given."""
    world, (g_a, J_a, g_b, J_b) = model.contacts, at
    obstacle = g_b @ world.obstacle_placement[x.obstacle]
    c = np.einsum("rij,rj->ri", g_a[..., :3, :3], world.ball_position[x.ball]) + g_a[..., :3, 3]
    (a_c, a_w), (b_c, b_w) = _point_jacobians(g_a, J_a, c), _point_jacobians(g_b, J_b, c)
    J_c, J_w = a_c - b_c, a_w - b_w
    speed = v[x.state]
    parts_of_X = {
        "law": world.laws_of(x.pair),
        "radius": world.ball_radius[x.ball, None],
        "bow": world.pair_bow[x.pair], "facing": world.ball_normal[x.ball],
        "edges": world.ball_cell[x.ball].reshape(-1, 6), "size": world.obstacle_size[x.obstacle], "c": c,
        "R": _flat(obstacle[..., :3, :3]), "p": obstacle[..., :3, 3],
        "R_a": _flat(g_a[..., :3, :3]), "u": np.einsum("rij,rj->ri", J_c, speed),
        "squares": _flat(world.ball_squares[x.ball]), "spin": np.einsum("rij,rj->ri", J_w, speed),
    }  # fmt: skip
    return np.concatenate([parts_of_X[name] for name in _SIZES], axis=-1), J_c, J_w


def _point_jacobians(g: np.ndarray, J: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of the point at c of nodes with poses g, and of their spin, in axes of the world."""
    R = g[..., :3, :3]
    by_w = R @ J[..., :3, :]
    return R @ J[..., 3:, :] - np.cross((c - g[..., :3, 3])[..., None], by_w, axisa=-2, axisb=-2, axisc=-2), by_w


def _contact_law(X: np.ndarray, x: ContactPairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f and m on the ball, and the next anchor, from complex X (rows, directions, 64)."""
    law, radius, bow, facing, edges, size, c, R, p, R_a, u, squares, spin = np.split(X, _ENDS[:-1], axis=-1)
    k, power, damping, friction, slip_speed, stick, lag, loss, rest = (law[..., j : j + 1] for j in range(9))
    R, R_a = (y.reshape(*y.shape[:-1], 3, 3) for y in (R, R_a))
    shift = _rolled(squares, radius, R[..., 2], R_a)
    c, u = c + shift, u + np.cross(spin, shift)
    depth, n, slope = _distance(x, radius, size, _applied(_transposed(R), c - p), R)
    is_cell = x.is_cell[:, None, None]
    k = slope * k * np.where(is_cell, -_dot(_applied(R_a, facing), n), 1.0)  # (11) of contact
    edge = [_applied(R_a, edges[..., j : j + 3]) for j in (0, 3)]
    (g_1, g_2), rise = (-_dot(e, n) for e in edge), 1j * np.imag(bow[..., :1])
    pressed = pressures(x.is_triangle[:, None, None], depth - rise, g_1, g_2, bow[..., 1:2], bow[..., 2:])
    spread = sum(m * e for m, e in zip(pressed[1:], edge))
    depth = np.where(is_cell, pressed[0], depth)
    lever = np.where(is_cell, np.cross(spread, n) / depth, 0.0)  # (15) of contact
    rate = -_dot(n, u) - _dot(spin, lever)
    swell = 1.0 + damping * rate + loss * rate / np.sqrt(rate**2 + rest**2)
    push = np.where(np.real(swell) > 0.0, k * depth**power * swell, 0.0)
    slip = u - _dot(n, u) * n - radius * np.cross(spin, n)
    most, sticks = friction * push, np.real(stick) > 0.0
    smooth = -most * slip / np.sqrt(_dot(slip, slip) + slip_speed**2)
    elastic, point = _slip(x, radius, n, c, R, p, R_a, shift)
    s = elastic + lag * slip
    is_sticking, length = _sticking(stick, most, s)
    with np.errstate(divide="ignore", invalid="ignore"):
        spring = np.where(is_sticking, -stick * s, -most * s / length)
        stays, length = _sticking(stick, _SURELY * most, elastic)
        kept = np.where(stays | ~sticks, elastic, _SURELY * most / stick * elastic / length)
    f = push * n + np.where(sticks, spring, smooth)
    rolls = shift.any(axis=-1, keepdims=True)
    on_ball = np.where(rolls, shift - radius * n, -n)
    after = np.concatenate([_applied(_transposed(R), point - kept - p), _applied(_transposed(R_a), on_ball)], axis=-1)
    return f, push * lever + np.cross(shift - radius * n, f), after


def _rolled(squares: np.ndarray, radius: np.ndarray, n: np.ndarray, R_a: np.ndarray) -> np.ndarray:
    """c − c₀ of contact (16) on planes with normals n, zero for balls that do not roll in ellipsoids."""
    Q_n = _applied(squares.reshape(*squares.shape[:-1], 3, 3), _applied(_transposed(R_a), n))
    Q_n = _applied(R_a, Q_n)
    rolls = Q_n.any(axis=-1, keepdims=True)
    return np.where(rolls, radius * n - Q_n / np.sqrt(np.where(rolls, _dot(n, Q_n), 1.0)), 0.0)


def _sticking(stick: np.ndarray, most: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the spring of friction sticks at the elastic displacement s, and the size of s."""
    nothing = ~np.real(s).any(axis=-1, keepdims=True)
    length = np.sqrt(np.where(nothing, 1.0, _dot(s, s)))
    return nothing | (np.real(stick) * np.real(length) <= np.real(most)), length


def _slip(
    x: ContactPairs, radius: np.ndarray, n: np.ndarray, c: np.ndarray, R: np.ndarray, p: np.ndarray, R_a: np.ndarray,
    shift: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """x of (6) or (18) of contact, zero for pairs without an anchor, and the point of contact."""
    has = np.isfinite(x.anchor[:, :1])[:, None]
    A, b = np.split(np.where(has, x.anchor[:, None], 0.0), 2, axis=-1)
    b = np.where(has, _applied(R_a, b), -n)
    point = c - radius * n
    d, rolls = point - _applied(R, A) - p, shift.any(axis=-1, keepdims=True)
    free = np.where(rolls, d + radius * n - shift + b, d + radius * _rolling_factor(n, np.where(rolls, -n, b)) * b)
    return np.where(has, free - _dot(n, free) * n, 0.0), point


def _rolling_factor(n: np.ndarray, b: np.ndarray) -> np.ndarray:
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
    x: ContactPairs, radius: np.ndarray, size: np.ndarray, y: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Depth, normal in the world and s of contact (12). Real parts are those of the kernel, imaginary parts are the
    derivatives by (2)."""
    back = _transposed(np.real(R))
    n, kind = _applied(back, x.n[:, None]), x.kind[:, None, None]
    step = np.imag(y) - _surface_shift(kind, size, np.real(y), n)
    s, bend = x.steep[:, None, :1], _applied(back, x.steep[:, None, 1:4])
    turn, away = _applied(back @ x.N[:, None] @ np.real(R), step), s * _dot(n, step)
    for known in ShapeKind:
        slopes, is_kind = SIZE_EFFECTS[known].slopes, kind == known.value
        if slopes is not None and is_kind.any():
            holds, beyond, across = slopes(np.where(is_kind, size, 1.0), y, n)
            turn, away = np.where(is_kind & holds, across, turn), np.where(is_kind & holds, beyond, away)
    depth = x.depth[:, None, None] + 1j * (np.imag(radius) - away)
    return depth, _applied(R, n + 1j * turn), s * (1.0 + 1j * _dot(bend, step))


def _surface_shift(kind: np.ndarray, size: np.ndarray, y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """s' of (2): the displacement of the nearest point by changed sizes."""
    out, x = np.zeros_like(y), Nearest(np.real(size), np.imag(size), y, n)
    for known in ShapeKind:
        out = np.where(kind == known.value, SIZE_EFFECTS[known].shift(x), out)
    return out


def _applied(X: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The product X x of each row."""
    return (X @ x[..., None])[..., 0]


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x·y of each row, with a last axis of length one."""
    return (x * y).sum(axis=-1, keepdims=True)


def _transposed(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _flat(X: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) as rows of 9."""
    return X.reshape(*X.shape[:-2], 9)
