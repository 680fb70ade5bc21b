"""Derivatives of the anchors of contacts that stick with respect to the motion, and of the motion with respect to the
anchors.

An anchor is a point A of the obstacle, in the obstacle's frame, and a direction b in the frame of the ball's node
(contact). c and r are the centre and radius of the ball, n and N the gradient and Hessian of the shape's distance, R, p
the pose of the obstacle, R_a the rotation of the ball's node, and G, G' and x those of contact. With P = 1 − n nᵀ and
W = P J_c + r n^ J_ω of the sliding velocity w = W v,

    ∂x/∂A = −P R,   ∂x/∂b = r (G P − G' P b nᵀ) R_a                                                        (1)
    ∂r/∂(A, b) = −Wᵀ ∂f/∂s ∂x/∂(A, b)                                                   of the residual r  (2)

At the end of a step the anchor moves to the present point of contact, minus the elastic displacement y that friction
can hold:

    A' = Rᵀ (c − r n − y − p),   b' = −R_aᵀ n,   y = x, or y = Y x/|x| where |x| > Y = μ N_p/k_t            (3)

with the normal force N_p, a function of depth and its rate. Motions are relative to the obstacle, in the axes of the
world: the velocity u of c and the spin of the ball are those relative to the point of the obstacle at c. So are the
Jacobians J_c and J_ω,

    J_c = J_c,a − J_c,b,   u_q = u_q,a − u_q,b − ω_b × J_c − J_ω,b × u                                       (4)

where u_q,b belongs to the point that is fixed to the obstacle. The centre of a ball that rolls inside an ellipsoid
moves in its body by B J_ω, with (17) of contact, which adds ω × B J_ω to u_q. Its anchor is the point e of (18) in
place of b:

    ∂x/∂e = P R_a,   e' = R_aᵀ (c − r n − c₀),   ∂e'/∂q = R_aᵀ (B − r n^) J_ω                                (6)

The derivative of a node's body twist η = J v with
respect to the coordinates follows from J̇. Increments of a stored pose do not commute; with the twist v_g of the pose
and its columns J_g of J,

    ∂(J v)/∂q = J̇ + ad_η J,   in the columns of a stored pose minus J_g ad(v_g)                             (5)

(3) has kinks between sticking and sliding, and where contact begins or ends. Its derivatives there are those of the
branch of the present state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from lissom.dynamics.configuration import free_increment, quaternion_joints
from lissom.dynamics.contacts import contact_geometry
from lissom.dynamics.kinematics import jacobian_rates_at
from lissom.forces.cells import pressures
from lissom.gradients.recursion import AnchorRows
from lissom.launch.workspace import row_slices
from lissom.lie.arrays import se3_ad
from lissom.model.model import Model
from lissom.model.points import on_node

_SURELY = 1.0 - 1e-10  # factor of the limit of friction, as in the kernel
_STEP = 1e-40  # complex step [m]
_SMALL = 0.02  # 1 − cos φ below which a series gives G and G'
_LEAST_STATES, _MOST_NUMBERS = 16, 2**20  # states whose Jacobians are in memory at once, and their numbers


@final
class _Cells(NamedTuple):
    """Cells of surface points in the world, one in each row, zero for balls: outward normals m of contact (11), edges
    eᵢ of contact (13) (rows, 2, 3), bends of forces.cells (rows, 2), and whether they are triangles."""

    facing: np.ndarray
    edges: np.ndarray
    bends: np.ndarray
    is_triangle: np.ndarray


@final
class _Rolling(NamedTuple):
    """Balls that roll inside ellipsoids, in the world, zero for others: whether they do (rows,), B J_ω (rows, 3, nv),
    and b of contact (18) (rows, 3)."""

    does: np.ndarray
    moves: np.ndarray
    arm: np.ndarray


@final
@dataclass(frozen=True)
class _Points:
    """Points fixed to nodes, one in each row. All vectors are in the axes of the world.

    Fields:
        c: position [m]. R: rotation of the node. J_c, J_w: ∂u/∂v and ∂spin/∂v. u: velocity [m/s].
        spin: angular velocity [rad/s]. u_q, spin_q: ∂u/∂q and ∂spin/∂q.
    """

    c: np.ndarray
    R: np.ndarray
    J_c: np.ndarray
    J_w: np.ndarray
    u: np.ndarray
    spin: np.ndarray
    u_q: np.ndarray
    spin_q: np.ndarray

    def relative_to(self, other: _Points) -> _Points:
        """The point relative to another one at the same c, by (4)."""
        J_c, u = self.J_c - other.J_c, self.u - other.u
        u_q = self.u_q - other.u_q - _hat(other.spin) @ J_c + _hat(u) @ other.J_w
        spin = self.spin - other.spin
        spin_q = self.spin_q - other.spin_q + _hat(spin) @ other.J_w
        return _Points(self.c, self.R, J_c, self.J_w - other.J_w, u, spin, u_q, spin_q)


def anchor_rows(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> AnchorRows:
    """Derivatives of all contact pairs that stick at states (n, ...), with the anchors (n, n_pairs, 6) before (3).

    Rows contain −(2), which is zero for pairs without an anchor, and the derivatives of (3) with respect to q, v and
    the anchor.
    """
    size, found = len(q) // len(model.models or (model,)), []
    at_once = max(_LEAST_STATES, _MOST_NUMBERS // (12 * model.nv * model.n_nodes))
    for k, model_k in enumerate(model.models or (model,)):
        for part in row_slices(size, at_once):
            rows = slice(k * size + part.start, k * size + part.stop)
            state, *rest = _contact_slopes(model_k, anchors[rows], q[rows], v[rows])
            found.append((state + rows.start, *rest))
    state, pair, *slopes = (np.concatenate(x) for x in zip(*found))
    _, once = np.unique(np.column_stack([state, pair]), axis=0, return_index=True)  # parts may share states
    slopes[0][:, model.prescribed.dof] = 0.0
    flat = np.concatenate([x[once].reshape(len(once), x.shape[1] * x.shape[2]) for x in slopes], axis=1)
    begin = np.searchsorted(state[once], np.arange(len(q) + 1)).astype(np.int32)
    return AnchorRows(6 * anchors.shape[1], begin, pair[once].astype(np.int32), flat)


def anchor_pulls(rows: AnchorRows, nv: int, states: np.ndarray) -> np.ndarray:
    """Derivatives of generalised forces at chosen states with respect to all anchors, (states, nv, 6 n_pairs)."""
    out = np.zeros((len(states), nv, rows.numbers // 6, 6))
    state, at = rows_of(rows, states)
    out[state, :, rows.pair[at]] = rows.slopes[at, : 6 * nv].reshape(-1, nv, 6)
    return out.reshape(len(states), nv, rows.numbers)


def anchor_moves(rows: AnchorRows, nv: int, states: np.ndarray) -> np.ndarray:
    """Derivatives of all anchors after chosen states with respect to q and v there, (states, 6 n_pairs, 2 nv)."""
    out = np.zeros((len(states), rows.numbers // 6, 6, 2, nv))
    state, at = rows_of(rows, states)
    slopes = rows.slopes[at, 6 * nv : 18 * nv].reshape(-1, 2, 6, nv)
    out[state, rows.pair[at]] = np.swapaxes(slopes, 1, 2)
    return out.reshape(len(states), rows.numbers, 2 * nv)


def anchor_carries(rows: AnchorRows, nv: int, states: np.ndarray) -> np.ndarray:
    """Derivatives of all anchors after chosen states with respect to the anchors before, shape
    (states, 6 n_pairs, 6 n_pairs)."""
    out = np.zeros((len(states), rows.numbers // 6, 6, rows.numbers // 6, 6))
    state, at = rows_of(rows, states)
    out[state, rows.pair[at], :, rows.pair[at]] = rows.slopes[at, 18 * nv :].reshape(-1, 6, 6)
    return out.reshape(len(states), rows.numbers, rows.numbers)


def rows_of(rows: AnchorRows, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For the rows of chosen states: the index of the state in `states`, and the index of the row."""
    counts = rows.begin[states + 1] - rows.begin[states]
    state = np.repeat(np.arange(len(states)), counts)
    return state, rows.begin[states][state] + np.arange(len(state)) - np.repeat(np.cumsum(counts) - counts, counts)


def _contact_slopes(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
    """State, pair and the four derivatives of anchor_rows for one model, one contact pair in each row."""
    world = model.contacts
    state, rows = contact_geometry(model, q)
    sticks = world.law[world.pair[rows[:, 0].astype(int), 2], 5] > 0.0
    state, rows = state[sticks], rows[sticks]
    pair = rows[:, 0].astype(int)
    ball, obstacle, _ = world.pair[pair].T
    node, columns = np.unique([world.ball_node[ball], world.obstacle_node[obstacle]], return_inverse=True)
    mine, other = columns.reshape(2, -1)
    if not len(rows):
        none = np.zeros((0, 6, model.nv))
        return state, pair, _transposed(none), none, none, np.zeros((0, 6, 6))
    places = replace(on_node(-1, np.eye(4), len(node), False), node=node.astype(np.int32))
    g, J, J_dot = jacobian_rates_at(model, q, v, places)
    twist_q = _twist_derivatives(model, J, J_dot, v)
    radius, speed = world.ball_radius[ball], v[state]
    c = rows[:, 2:5] + radius[:, None] * rows[:, 5:8]
    ours, theirs = (_points(g[state, k], J[state, k], twist_q[state, k], c, speed) for k in (mine, other))
    place = g[state, other] @ world.obstacle_placement[obstacle]
    x, facing = ours.relative_to(theirs), _applied(ours.R, world.ball_normal[ball])
    edges, is_triangle = world.ball_cell[ball] @ _transposed(ours.R), world.ball_is_triangle[ball] == 1
    cells = _Cells(facing, edges, world.pair_bow[pair, 1:], is_triangle)
    rolling = _rolling(world.ball_squares[ball], radius, rows[:, 5:8], x)
    x = replace(x, u_q=x.u_q + _hat(x.spin) @ rolling.moves)
    centre = _applied(ours.R, world.ball_position[ball]) + g[state, mine][:, :3, 3]
    arm = centre + _applied(ours.R, np.nan_to_num(anchors[state, pair, 3:])) - c
    rolling = rolling._replace(arm=np.where(rolling.does[:, None], arm, 0.0))
    found = _anchor_slopes(world.laws_of(pair), place, radius, cells, rolling, rows, anchors[state, pair], x, speed)
    return state, pair, *found


def _rolling(squares: np.ndarray, radius: np.ndarray, n: np.ndarray, x: _Points) -> _Rolling:
    """The _Rolling, without arms, of balls with Q of contact (16) in their nodes."""
    does = squares[:, 0, 0] > 0.0
    Q = x.R @ squares @ _transposed(x.R)
    Q_n = _applied(Q, n)
    size = _as_matrices(np.sqrt(np.where(does, np.einsum("ri,ri->r", n, Q_n), 1.0)))
    swing = (_as_matrices(radius) * np.eye(3) - Q / size + _outer(Q_n, Q_n) / size**3) @ _hat(n)  # (17) of contact
    return _Rolling(does, _as_matrices(does) * swing @ x.J_w, np.zeros(n.shape))


def _twist_derivatives(model: Model, J: np.ndarray, J_dot: np.ndarray, v: np.ndarray) -> np.ndarray:
    """∂(J v)/∂q by (5), from body Jacobians J (states, nodes, 6, nv), their rates along v, and v (states, nv)."""
    out = J_dot + se3_ad((J @ v[:, None, :, None])[..., 0]) @ J
    for _, j, free in quaternion_joints(model):
        block = slice(j, j + (6 if free else 3))
        out[..., block] -= (
            J[..., block] @ se3_ad(free_increment(v[:, None, block]))[..., : block.stop - j, : block.stop - j]
        )
    return out


def _points(g: np.ndarray, J: np.ndarray, twist_q: np.ndarray, c: np.ndarray, v: np.ndarray) -> _Points:
    """Points at c of nodes with poses g, body Jacobians J, and `twist_q`, ∂(J v)/∂q."""
    own = g[:, :3, :3]
    arm = _hat(_applied(_transposed(own), c - g[:, :3, 3]))
    J_w, J_c = J[:, :3], J[:, 3:] - arm @ J[:, :3]  # in axes of the node
    u = _applied(J_c, v)
    u_q = twist_q[:, 3:] - arm @ twist_q[:, :3] - _hat(u) @ J_w
    w = _applied(J_w, v)
    spin_q = twist_q[:, :3] - _hat(w) @ J_w
    return _Points(c, own, own @ J_c, own @ J_w, _applied(own, u), _applied(own, w), own @ u_q, own @ spin_q)


def _anchor_slopes(
    laws: np.ndarray, place: np.ndarray, radius: np.ndarray, cells: _Cells, rolling: _Rolling, rows: np.ndarray,
    anchor: np.ndarray, x: _Points, v: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """−(2), and the derivatives of (3) with respect to q, v and the anchor."""
    friction, stick, lag = laws[:, 3], laws[:, 5], laws[:, 6]
    n, N, R_o = rows[:, 5:8], rows[:, 8:17].reshape(-1, 3, 3), place[:, :3, :3]
    n_q = N @ x.J_c
    push, push_q, push_v = _pressure(laws, cells, rows[:, 1], rows[:, 17:22], n, n_q, x)
    slip, slip_q, slip_a = _slip(place, radius, rolling, n, N, anchor, x)
    P, identity = np.eye(3) - _outer(n, n), np.eye(3)
    W = P @ x.J_c + _as_matrices(radius) * _hat(n) @ x.J_w
    s = slip + lag[:, None] * _applied(W, v)
    size, most = np.linalg.norm(s, axis=1), friction * push
    sticks = (stick * size <= most) | (size == 0.0)
    along = s / np.where(sticks, 1.0, size)[:, None]
    slip_slope = -_as_matrices(most / np.where(sticks, 1.0, size)) * (identity - _outer(along, along))
    by_s = np.where(_as_matrices(sticks), -_as_matrices(np.where(most > 0.0, stick, 0.0)) * identity, slip_slope)
    length, limit = np.linalg.norm(slip, axis=1), _SURELY * friction / stick
    slips = length > limit * push  # (3)
    along = slip / np.where(slips, length, 1.0)[:, None]
    share = np.where(slips, limit * push / np.where(slips, length, 1.0), 1.0)
    across = _as_matrices(share) * (identity - _as_matrices(slips) * _outer(along, along))
    pulled = np.where(slips, limit, 0.0)[:, None] * along
    y_q, y_v = across @ slip_q + _outer(pulled, push_q), _outer(pulled, push_v)
    turned = _hat(n) @ x.J_w
    rolled = rolling.moves - _as_matrices(radius) * turned  # (6)
    by_n = _transposed(x.R) @ np.where(_as_matrices(rolling.does), rolled, -n_q - turned)
    by_q = np.concatenate([_transposed(R_o) @ (x.J_c + rolling.moves - _as_matrices(radius) * n_q - y_q), by_n], axis=1)
    by_v, by_a = np.zeros(by_q.shape), np.zeros((len(rows), 6, 6))
    by_v[:, :3], by_a[:, :3] = -_transposed(R_o) @ y_v, -_transposed(R_o) @ (across @ slip_a)
    return _transposed(W) @ by_s @ slip_a, by_q, by_v, by_a


def _pressure(
    laws: np.ndarray, cells: _Cells, depth: np.ndarray, steep: np.ndarray, n: np.ndarray, n_q: np.ndarray, x: _Points
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """N_p, and its derivatives with respect to q and v. steep: s and H n/s of contact (12), and δ − ρ."""
    facing = cells.facing
    share = np.where(facing.any(axis=1), -np.einsum("ri,ri->r", facing, n), 1.0)
    share_q = -_applied(_transposed(x.J_w), np.cross(facing, n)) - _applied(_transposed(n_q), facing)
    stiffness, exponent, damping = share * steep[:, 0] * laws[:, 0], laws[:, 1], laws[:, 2]
    level, *slopes = _cell_slopes(cells, steep[:, 4], n, x.spin)
    static, closing = stiffness * depth**exponent, -np.einsum("ri,ri->r", n, x.u) - level
    loss, size = laws[:, 7], np.hypot(closing, laws[:, 8])
    swell = 1.0 + damping * closing + loss * closing / size
    push = np.maximum(static * swell, 0.0)
    by_depth = np.where(push > 0.0, exponent * static / depth * swell, 0.0)
    by_rate = np.where(push > 0.0, static * (damping + loss * laws[:, 8] ** 2 / size**3), 0.0)
    along, rate = _applied(_transposed(x.J_c), n), _applied(_transposed(n_q), x.u) + _applied(_transposed(x.u_q), n)
    by_share = push[:, None] * (share_q / share[:, None] + _applied(_transposed(x.J_c), steep[:, 1:4]))
    depth_q, level_q = (
        -(y[:, 0] * steep[:, 0])[:, None] * along
        + _applied(_transposed(n_q), y[:, 1:4])
        + _applied(_transposed(x.J_w), y[:, 4:7])
        for y in slopes
    )
    lever = slopes[1][:, 7:]
    rate_q, rate_v = (
        rate + level_q + _applied(_transposed(x.spin_q), lever),
        along + _applied(_transposed(x.J_w), lever),
    )
    return push, by_share + by_depth[:, None] * depth_q - by_rate[:, None] * rate_q, -by_rate[:, None] * rate_v


def _cell_slopes(
    cells: _Cells, depth: np.ndarray, n: np.ndarray, spin: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """l·ω of contact (15), and the derivatives of M of contact (13) and of l·ω with respect to δ, n, a rotation of the
    cell, and ω, shape (rows, 10); for balls with respect to their depth only."""
    is_cell = cells.facing.any(axis=1)
    level, slopes = np.zeros(len(n)), np.zeros((2, len(n), 10))
    slopes[0, :, 0] = 1.0
    if not is_cell.any():
        return level, slopes[0], slopes[1]
    cells, depth, n, spin = _Cells(*(part[is_cell] for part in cells)), depth[is_cell], n[is_cell], spin[is_cell]
    edges, found = cells.edges, []
    for j in range(10):
        step = 1j * _STEP * np.eye(10)[j]
        e = edges + np.cross(step[4:7], edges)
        m = n + step[1:4]
        steep = (-np.einsum("ri,ri->r", e[:, k], m) for k in range(2))
        M, *moments = pressures(cells.is_triangle, depth + step[0], *steep, *cells.bends.T)
        spread = moments[0][:, None] * e[:, 0] + moments[1][:, None] * e[:, 1]
        M = np.where(np.real(M) > 0.0, M, 1.0)
        found.append((M, np.einsum("ri,ri->r", np.cross(spread, m), spin + step[7:]) / M))
    slopes[:, is_cell] = np.moveaxis(np.imag(found), 0, -1) / _STEP
    level[is_cell] = np.real(found[0][1])
    return level, slopes[0], slopes[1]


def _slip(
    place: np.ndarray, radius: np.ndarray, rolling: _Rolling, n: np.ndarray, N: np.ndarray, anchor: np.ndarray,
    x: _Points,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """x, and its derivatives with respect to q and, from (1) or (6), the anchor. All are zero for pairs without an
    anchor."""
    R_o, identity, P, r = place[:, :3, :3], np.eye(3), np.eye(3) - _outer(n, n), _as_matrices(radius)
    anchored = np.isfinite(anchor[:, 0])
    b = np.where((anchored & ~rolling.does)[:, None], _applied(x.R, anchor[:, 3:]), -n)
    d = x.c - radius[:, None] * n - _applied(R_o, np.where(anchored[:, None], anchor[:, :3], 0.0)) - place[:, :3, 3]
    G, G_prime = (_as_matrices(y) for y in _rolling_factors(n, b))
    arm, (b_n, d_n) = _applied(P, b), (_as_matrices(np.einsum("ri,ri->r", n, y)) for y in (b, d))
    slip = _applied(P, d + r[..., 0] * G[..., 0] * b)
    turned = G * (b_n * identity + _outer(n, b)) + G_prime * _outer(arm, b)
    by_c = P @ (identity - r * N) - (d_n * identity + _outer(n, d) + r * turned) @ N
    by_turn = r * (G_prime * _outer(arm, np.cross(n, b)) - G * P @ _hat(b))
    slip_a = np.concatenate([-P @ R_o, r * (G * P - G_prime * _outer(arm, n)) @ x.R], axis=2)  # (1)
    mask, does = _as_matrices(anchored), _as_matrices(rolling.does)
    slip = np.where(rolling.does[:, None], _applied(P, d + radius[:, None] * n + rolling.arm), slip)
    by_c, by_turn = np.where(does, P, by_c), np.where(does, -P @ _hat(rolling.arm), by_turn)
    slip_a[..., 3:] = np.where(does, P @ x.R, slip_a[..., 3:])
    return anchored[:, None] * slip, mask * (by_c @ x.J_c + by_turn @ x.J_w), mask * slip_a


def _rolling_factors(n: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """G and G' of contact (8), in a row for each pair."""
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


def _applied(X: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The product X x of each row."""
    return np.einsum("rij,rj->ri", X, x)


def _transposed(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _outer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x[:, :, None] * y[:, None, :]


def _as_matrices(x: np.ndarray) -> np.ndarray:
    """Numbers of rows in the shape (rows, 1, 1), for products with matrices."""
    return x[:, None, None]


def _hat(x: np.ndarray) -> np.ndarray:
    """The matrix of x × in each row."""
    out = np.zeros((len(x), 3, 3))
    out[:, (2, 0, 1), (1, 2, 0)], out[:, (1, 2, 0), (2, 0, 1)] = x, -x
    return out
