"""How the anchors of contacts that stick answer to the motion, and the motion to them.

An anchor holds a point A of the obstacle, in its frame, and a direction b in the frame of the ball's node (contact).
With c, r, n and N of the ball and the shape's distance, pose R, p of the obstacle, R_a of the ball's node, G, G' and x
of contact, P = 1 − n nᵀ, and W = P J_c + r n^ J_ω of the slip w = W v,

    ∂x/∂A = −P R,   ∂x/∂b = r (G P − G' P b nᵀ) R_a                                                        (1)
    ∂r/∂(A, b) = −Wᵀ ∂f/∂s ∂x/∂(A, b)                                                   of the residual r  (2)

A step ends by moving the anchor to where the ball now touches, less the slip y that friction holds back:

    A' = Rᵀ (c − r n − y − p),   b' = −R_aᵀ n,   y = x, or y = Y x/|x| where |x| > Y = μ N_p/k_t            (3)

with the pressure N_p, which follows depth and its rate. All of it is as seen from the obstacle, in the axes of the
world: c, its velocity u and the ball's turn are those against the point of the obstacle at c, and so are J_c and J_ω,

    J_c = J_c,a − J_c,b,   u_q = u_q,a − u_q,b − ω_b × J_c − J_ω,b × u                                       (4)

where u_q,b is of the point fixed to the obstacle. Velocities η = J v of nodes answer to coordinates as body twists of
one motion do; with the twist v_g of a stored pose, whose directions do not commute, and its columns J_g,

    ∂(J v)/∂q = J̇ + ad_η J,   in the columns of a stored pose less J_g ad(v_g)                              (5)

Between sticking and slipping, and where a ball begins or ends to touch, (3) has kinks, and its derivatives are those of
the side it is on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from lissom.dynamics.configuration import free_increment, quaternion_joints
from lissom.dynamics.contacts import contact_geometry
from lissom.dynamics.kinematics import jacobians_at, poses_at
from lissom.gradients.recursion import AnchorRows
from lissom.launch.workspace import row_slices
from lissom.lie.arrays import se3_ad
from lissom.model.model import Model
from lissom.model.points import on_node

_SURELY = 1.0 - 1e-12  # of the limit of friction, as the kernel takes it
_SMALL = 0.02  # 1 − cos φ below which a series gives G and G'
_TOGETHER = 64  # states whose Jacobians are in memory at once


@final
@dataclass(frozen=True)
class _Points:
    """Points c of nodes: rotation of the node, Jacobians J_c and J_ω, velocities u of the point and ω of the node, and
    ∂u/∂q of the point that stays where it is in the node, in axes of the world, row by row."""

    c: np.ndarray
    R: np.ndarray
    J_c: np.ndarray
    J_w: np.ndarray
    u: np.ndarray
    spin: np.ndarray
    u_q: np.ndarray

    def seen_from(self, other: _Points) -> _Points:
        """(4), with c in both."""
        J_c, u = self.J_c - other.J_c, self.u - other.u
        u_q = self.u_q - other.u_q - _hat(other.spin) @ J_c + _hat(u) @ other.J_w
        return _Points(self.c, self.R, J_c, self.J_w - other.J_w, u, self.spin - other.spin, u_q)


def anchor_rows(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> AnchorRows:
    """Of all pairs that touch at states (n, ...) and stick, which anchors (n, n_pairs, 6) have held until then: −(2),
    zero where a pair has no anchor yet, and how the anchor after (3) answers to q, v and the anchor."""
    size, found = len(q) // len(model.models or (model,)), []
    for k, one in enumerate(model.models or (model,)):
        for part in row_slices(size, _TOGETHER):
            some = slice(k * size + part.start, k * size + part.stop)
            state, *rest = _touching_slopes(one, anchors[some], q[some], v[some])
            found.append((state + some.start, *rest))
    state, pair, *slopes = (np.concatenate(x) for x in zip(*found))
    _, once = np.unique(np.column_stack([state, pair]), axis=0, return_index=True)  # parts may share states
    slopes[0][:, model.prescribed.dof] = 0.0
    flat = np.concatenate([x[once].reshape(len(once), x.shape[1] * x.shape[2]) for x in slopes], axis=1)
    begin = np.searchsorted(state[once], np.arange(len(q) + 1)).astype(np.int32)
    return AnchorRows(6 * anchors.shape[1], begin, pair[once].astype(np.int32), flat)


def anchor_pulls(rows: AnchorRows, nv: int, some: np.ndarray) -> np.ndarray:
    """Generalised forces at some states by changes of all anchors, (states, nv, 6 n_pairs)."""
    out = np.zeros((len(some), nv, rows.numbers // 6, 6))
    state, at = rows_of(rows, some)
    out[state, :, rows.pair[at]] = rows.slopes[at, : 6 * nv].reshape(-1, nv, 6)
    return out.reshape(len(some), nv, rows.numbers)


def anchor_moves(rows: AnchorRows, nv: int, some: np.ndarray) -> np.ndarray:
    """Changes of all anchors after some states by those of q and v there, (states, 6 n_pairs, 2 nv)."""
    out = np.zeros((len(some), rows.numbers // 6, 6, 2, nv))
    state, at = rows_of(rows, some)
    slopes = rows.slopes[at, 6 * nv : 18 * nv].reshape(-1, 2, 6, nv)
    out[state, rows.pair[at]] = np.swapaxes(slopes, 1, 2)
    return out.reshape(len(some), rows.numbers, 2 * nv)


def anchor_carries(rows: AnchorRows, nv: int, some: np.ndarray) -> np.ndarray:
    """Changes of all anchors after some states by those of the anchors before, (states, 6 n_pairs, 6 n_pairs)."""
    out = np.zeros((len(some), rows.numbers // 6, 6, rows.numbers // 6, 6))
    state, at = rows_of(rows, some)
    out[state, rows.pair[at], :, rows.pair[at]] = rows.slopes[at, 18 * nv :].reshape(-1, 6, 6)
    return out.reshape(len(some), rows.numbers, rows.numbers)


def rows_of(rows: AnchorRows, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of some states: which of these each is of, and where it stands."""
    counts = rows.begin[some + 1] - rows.begin[some]
    state = np.repeat(np.arange(len(some)), counts)
    return state, rows.begin[some][state] + np.arange(len(state)) - np.repeat(np.cumsum(counts) - counts, counts)


def _touching_slopes(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
    """State, pair and the four slopes of anchor_rows of one model, row by row."""
    world = model.contacts
    state, rows = contact_geometry(model, q)
    sticks = world.law[world.pair[rows[:, 0].astype(int), 2], 5] > 0.0
    state, rows = state[sticks], rows[sticks]
    pair = rows[:, 0].astype(int)
    ball, obstacle, law = world.pair[pair].T
    node, columns = np.unique([world.ball_node[ball], world.obstacle_node[obstacle]], return_inverse=True)
    mine, other = columns.reshape(2, -1)
    if not len(rows):
        none = np.zeros((0, 6, model.nv))
        return state, pair, _t(none), none, none, np.zeros((0, 6, 6))
    places = replace(on_node(-1, np.eye(4), len(node), False), node=node.astype(np.int32))
    g, (J, J_dot) = poses_at(model, q, places), jacobians_at(model, q, v, places)
    bends = _bends(model, J, J_dot, v)
    radius, speed = world.ball_radius[ball], v[state]
    c = rows[:, 2:5] + radius[:, None] * rows[:, 5:8]
    ours, theirs = (_points(g[state, k], J[state, k], bends[state, k], c, speed) for k in (mine, other))
    place = g[state, other] @ world.obstacle_placement[obstacle]
    found = _slopes(world.law[law], place, radius, rows, anchors[state, pair], ours.seen_from(theirs), speed)
    return state, pair, *found


def _bends(model: Model, J: np.ndarray, J_dot: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(5) from body Jacobians of nodes (states, nodes, 6, nv) and their rates along v (states, nv)."""
    out = J_dot + se3_ad((J @ v[:, None, :, None])[..., 0]) @ J
    for _, j, free in quaternion_joints(model):
        block = slice(j, j + (6 if free else 3))
        out[..., block] -= (
            J[..., block] @ se3_ad(free_increment(v[:, None, block]))[..., : block.stop - j, : block.stop - j]
        )
    return out


def _points(g: np.ndarray, J: np.ndarray, bends: np.ndarray, c: np.ndarray, v: np.ndarray) -> _Points:
    """The points that are at c of nodes at g, with their body Jacobians J and those of J v by each coordinate."""
    own = g[:, :3, :3]
    arm = _hat(_turned(_t(own), c - g[:, :3, 3]))
    J_w, J_c = J[:, :3], J[:, 3:] - arm @ J[:, :3]  # in axes of the node
    u = _turned(J_c, v)
    u_q = bends[:, 3:] - arm @ bends[:, :3] - _hat(u) @ J_w
    return _Points(c, own, own @ J_c, own @ J_w, _turned(own, u), _turned(own @ J_w, v), own @ u_q)


def _slopes(
    laws: np.ndarray, place: np.ndarray, radius: np.ndarray, rows: np.ndarray, anchor: np.ndarray, x: _Points,
    v: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """−(2), and how (3) answers to q, v and the anchor."""
    friction, stick, lag = laws[:, 3], laws[:, 5], laws[:, 6]
    n, N, R_o = rows[:, 5:8], rows[:, 8:17].reshape(-1, 3, 3), place[:, :3, :3]
    n_q = N @ x.J_c
    push, push_q, push_v = _pressed(laws, rows[:, 1], n, n_q, x)
    slip, slip_q, slip_a = _slipped(place, radius, n, N, anchor, x)
    P, one = np.eye(3) - _outer(n, n), np.eye(3)
    W = P @ x.J_c + _wide(radius) * _hat(n) @ x.J_w
    s = slip + lag[:, None] * _turned(W, v)
    size, most = np.linalg.norm(s, axis=1), friction * push
    holds = (stick * size <= most) | (size == 0.0)
    along = s / np.where(holds, 1.0, size)[:, None]
    slides = -_wide(most / np.where(holds, 1.0, size)) * (one - _outer(along, along))
    by_s = np.where(_wide(holds), -_wide(np.where(most > 0.0, stick, 0.0)) * one, slides)
    far, limit = np.linalg.norm(slip, axis=1), _SURELY * friction / stick
    goes = far > limit * push  # (3)
    along = slip / np.where(goes, far, 1.0)[:, None]
    share = np.where(goes, limit * push / np.where(goes, far, 1.0), 1.0)
    across = _wide(share) * (one - _wide(goes) * _outer(along, along))
    pulled = np.where(goes, limit, 0.0)[:, None] * along
    y_q, y_v = across @ slip_q + _outer(pulled, push_q), _outer(pulled, push_v)
    by_n = -_t(x.R) @ (n_q + _hat(n) @ x.J_w)
    by_q = np.concatenate([_t(R_o) @ (x.J_c - _wide(radius) * n_q - y_q), by_n], axis=1)
    by_v, by_a = np.zeros(by_q.shape), np.zeros((len(rows), 6, 6))
    by_v[:, :3], by_a[:, :3] = -_t(R_o) @ y_v, -_t(R_o) @ (across @ slip_a)
    return _t(W) @ by_s @ slip_a, by_q, by_v, by_a


def _pressed(
    laws: np.ndarray, depth: np.ndarray, n: np.ndarray, n_q: np.ndarray, x: _Points
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """N_p, and how it answers to q and v."""
    stiffness, exponent, damping = laws[:, 0], laws[:, 1], laws[:, 2]
    static, swell = stiffness * depth**exponent, 1.0 - damping * np.einsum("ri,ri->r", n, x.u)
    push = np.maximum(static * swell, 0.0)
    by_depth = np.where(push > 0.0, exponent * static / depth * swell, 0.0)
    by_rate = np.where(push > 0.0, static * damping, 0.0)
    along, rate = _turned(_t(x.J_c), n), _turned(_t(n_q), x.u) + _turned(_t(x.u_q), n)
    return push, -by_depth[:, None] * along - by_rate[:, None] * rate, -by_rate[:, None] * along


def _slipped(
    place: np.ndarray, radius: np.ndarray, n: np.ndarray, N: np.ndarray, anchor: np.ndarray, x: _Points
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, and how it answers to q and by (1) to the anchor; zero where there is none."""
    R_o, one, P, r = place[:, :3, :3], np.eye(3), np.eye(3) - _outer(n, n), _wide(radius)
    held = np.isfinite(anchor[:, 0])
    b = np.where(held[:, None], _turned(x.R, anchor[:, 3:]), -n)
    d = x.c - radius[:, None] * n - _turned(R_o, np.where(held[:, None], anchor[:, :3], 0.0)) - place[:, :3, 3]
    G, bent = (_wide(y) for y in _rolled(n, b))
    arm, (drop, lift) = _turned(P, b), (_wide(np.einsum("ri,ri->r", n, y)) for y in (b, d))
    slip = _turned(P, d + r[..., 0] * G[..., 0] * b)
    turned = G * (drop * one + _outer(n, b)) + bent * _outer(arm, b)
    by_c = P @ (one - r * N) - (lift * one + _outer(n, d) + r * turned) @ N
    by_turn = r * (bent * _outer(arm, np.cross(n, b)) - G * P @ _hat(b))
    slip_a = np.concatenate([-P @ R_o, r * (G * P - bent * _outer(arm, n)) @ x.R], axis=2)  # (1)
    has = _wide(held)
    return held[:, None] * slip, has * (by_c @ x.J_c + by_turn @ x.J_w), has * slip_a


def _rolled(n: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """G and G' of contact (8)."""
    z = -np.einsum("ri,ri->r", n, b)
    near = 1.0 - z < _SMALL
    y, G, bent, term = np.where(near, 1.0 - z, 0.0), np.zeros(len(z)), np.zeros(len(z)), np.ones(len(z))
    for m in range(9):
        G, factor = G + term, (m + 1.0) / (2.0 * m + 3.0)
        bent -= (m + 1.0) * factor * term
        term *= factor * y
    side = np.where(near, 1.0, np.linalg.norm(b + z[:, None] * n, axis=1))
    far = np.arctan2(side, z) / side
    return np.where(near, G, far), np.where(near, bent, (z * far - 1.0) / side**2)


def _turned(X: np.ndarray, x: np.ndarray) -> np.ndarray:
    """X x of each row."""
    return np.einsum("rij,rj->ri", X, x)


def _t(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _outer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x[:, :, None] * y[:, None, :]


def _wide(x: np.ndarray) -> np.ndarray:
    """Numbers of rows beside matrices of rows."""
    return x[:, None, None]


def _hat(x: np.ndarray) -> np.ndarray:
    """The matrix of x × of each row."""
    out = np.zeros((len(x), 3, 3))
    out[:, (2, 0, 1), (1, 2, 0)], out[:, (1, 2, 0), (2, 0, 1)] = x, -x
    return out
