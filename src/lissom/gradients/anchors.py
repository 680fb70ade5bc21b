"""How the anchors of contacts that stick answer to the motion, and the motion to them.

An anchor holds a point A of the obstacle, in its frame, and a direction b in the frame of the ball's node (friction).
With c, r, n and N of the ball and the shape's distance, pose R, p of the obstacle, R_a of the ball's node, G, G' and x
of friction, P = 1 − n nᵀ, and W = P J_c + r n^ J_ω of the slip w = W v,

    ∂x/∂A = −P R,   ∂x/∂b = r (G P − G' P b nᵀ) R_a                                                        (1)
    ∂r/∂(A, b) = −Wᵀ ∂f/∂s ∂x/∂(A, b)                                                   of the residual r  (2)

A step ends by moving the anchor to where the ball now touches, less the slip y that friction holds back:

    A' = Rᵀ (c − r n − y − p),   b' = −R_aᵀ n,   y = x, or y = Y x/|x| where |x| > Y = μ N_p/k_t            (3)

with the pressure N_p, which follows depth and its rate. All of it is as seen from the obstacle, in the axes of the
world: c, its velocity u and the ball's turn are those against the point of the obstacle at c, and so are J_c and J_ω,

    J_c = J_c,a − J_c,b,   u_q = u_q,a − u_q,b − ω_b × J_c − J_ω,b × u                                       (4)

where u_q,b is of the point fixed to the obstacle. Between sticking and slipping, and where a ball begins or ends
to touch, (3) has kinks, and its derivatives are those of the side it is on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from lissom.dynamics.contacts import touching_shapes
from lissom.dynamics.kinematics import jacobians_at, poses_at
from lissom.model.model import Model
from lissom.model.points import on_node

_SURELY = 1.0 - 1e-12  # of the limit of friction, as the kernel takes it
_SMALL = 0.02  # 1 − cos φ below which a series gives G and G'


@final
@dataclass(frozen=True)
class AnchorSlopes:
    """Of one pair that touches and sticks.

    Fields:
        pair: which. force: generalised force by its anchor, −(2), (nv, 6); zero where it has none yet. by_q, by_v,
        by_anchor: of the anchor after (3), (6, nv), (6, nv) and (6, 6).
    """

    pair: int
    force: np.ndarray
    by_q: np.ndarray
    by_v: np.ndarray
    by_anchor: np.ndarray


@final
@dataclass(frozen=True)
class _Point:
    """A point c of a node: rotation of the node, Jacobians J_c and J_ω, velocities u of the point and ω of the node,
    and ∂u/∂q of the point that stays where it is in the node, in axes of the world."""

    c: np.ndarray
    R: np.ndarray
    J_c: np.ndarray
    J_w: np.ndarray
    u: np.ndarray
    spin: np.ndarray
    u_q: np.ndarray

    def seen_from(self, other: _Point) -> _Point:
        """(4), with c in both."""
        J_c, u = self.J_c - other.J_c, self.u - other.u
        u_q = self.u_q - other.u_q - _hat(other.spin) @ J_c - np.cross(other.J_w.T, u).T
        return _Point(self.c, self.R, J_c, self.J_w - other.J_w, u, self.spin - other.spin, u_q)


def anchor_slopes(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> list[AnchorSlopes]:
    """Of all pairs that touch at a state and stick, which anchors (n_pairs, 6) have held until then."""
    world, found = model.surroundings, []
    rows = touching_shapes(model, q)
    rows = rows[world.law[world.pair[rows[:, 0].astype(int), 2], 5] > 0.0]
    if not len(rows):
        return []
    ball, obstacle, law = world.pair[rows[:, 0].astype(int)].T
    node = np.concatenate([world.ball_node[ball], world.obstacle_node[obstacle]]).astype(np.int32)
    places = replace(on_node(-1, np.eye(4), len(node), False), node=node)
    g, J = poses_at(model, q, places), jacobians_at(model, q, v, places)[0]
    each = (model.nv, *q.shape)
    bends = jacobians_at(model, np.broadcast_to(q, each), np.eye(model.nv), places)[1] @ v  # of J v by each coordinate
    for k, row in enumerate(rows):
        radius = float(world.ball_radius[ball[k]])
        c = row[2:5] + radius * row[5:8]
        mine, other = (_point(g[j], J[j], bends[:, j], c, v) for j in (k, len(rows) + k))
        place = g[len(rows) + k] @ world.obstacle_placement[obstacle[k]]
        pair = int(row[0])
        found.append(_slopes(pair, world.law[law[k]], place, radius, row, anchors[pair], mine.seen_from(other), v))
    return found


def _point(g: np.ndarray, J: np.ndarray, bends: np.ndarray, c: np.ndarray, v: np.ndarray) -> _Point:
    """The point that is at c of a node at g, with its body Jacobian J and that of J v by each coordinate."""
    own = g[:3, :3]
    arm = own.T @ (c - g[:3, 3])
    J_c = J[3:] - _hat(arm) @ J[:3]  # in axes of the node
    u_q = np.cross(J[:3].T, J_c @ v) + bends[:, 3:] + np.cross(bends[:, :3], arm)
    return _Point(c, own, own @ J_c, own @ J[:3], own @ J_c @ v, own @ J[:3] @ v, own @ u_q.T)


def _slopes(
    pair: int, law: np.ndarray, place: np.ndarray, radius: float, row: np.ndarray, anchor: np.ndarray, x: _Point,
    v: np.ndarray,
) -> AnchorSlopes:  # fmt: skip
    stiffness, exponent, damping, friction, _, stick, lag = law
    depth, n, N, R_o = row[1], row[5:8], row[8:17].reshape(3, 3), place[:3, :3]
    P, one, nv = np.eye(3) - np.outer(n, n), np.eye(3), len(v)
    static, swell = stiffness * depth**exponent, 1.0 - damping * (n @ x.u)
    push = max(static * swell, 0.0)
    by_depth, by_rate = (exponent * static / depth * swell, static * damping) if push > 0.0 else (0.0, 0.0)
    n_q = N @ x.J_c
    push_q = -by_depth * (n @ x.J_c) - by_rate * (x.u @ n_q + n @ x.u_q)
    push_v = -by_rate * (n @ x.J_c)
    slip, slip_q, slip_a = np.zeros(3), np.zeros((3, nv)), np.zeros((3, 6))
    if np.isfinite(anchor[0]):
        d, b = x.c - radius * n - R_o @ anchor[:3] - place[:3, 3], x.R @ anchor[3:]
        G, bent = _rolled(n, b)
        arm = P @ b
        slip = P @ (d + radius * G * b)
        turned = G * ((n @ b) * one + np.outer(n, b)) + bent * np.outer(arm, b)
        by_c = P @ (one - radius * N) - ((n @ d) * one + np.outer(n, d) + radius * turned) @ N
        by_turn = radius * (bent * np.outer(arm, np.cross(n, b)) - G * P @ _hat(b))
        slip_q = by_c @ x.J_c + by_turn @ x.J_w
        slip_a = np.hstack([-P @ R_o, radius * (G * P - bent * np.outer(arm, n)) @ x.R])  # (1)
    W = P @ x.J_c + radius * _hat(n) @ x.J_w
    s = slip + lag * (W @ v)
    size, most = float(np.linalg.norm(s)), friction * push
    if stick * size <= most or size == 0.0:
        by_s = -stick * one if most > 0.0 else np.zeros((3, 3))
    else:
        by_s = -most / size * (one - np.outer(s, s) / size**2)
    y_q, y_v, y_a = slip_q, np.zeros((3, nv)), slip_a
    far, limit = float(np.linalg.norm(slip)), _SURELY * friction / stick
    if far > limit * push:  # (3)
        along = slip / far
        across = limit * push / far * (one - np.outer(along, along))
        y_q = across @ slip_q + limit * np.outer(along, push_q)
        y_v, y_a = limit * np.outer(along, push_v), across @ slip_a
    by_q = np.vstack([R_o.T @ (x.J_c - radius * n_q - y_q), -x.R.T @ (n_q + _hat(n) @ x.J_w)])
    by_v, by_a = np.zeros((6, nv)), np.zeros((6, 6))
    by_v[:3], by_a[:3] = -R_o.T @ y_v, -R_o.T @ y_a
    return AnchorSlopes(pair, W.T @ by_s @ slip_a, by_q, by_v, by_a)


def _rolled(n: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """G and G' of (5) of friction."""
    z = float(-n @ b)
    if 1.0 - z < _SMALL:
        y, G, bent, term = 1.0 - z, 0.0, 0.0, 1.0
        for m in range(9):
            G, factor = G + term, (m + 1.0) / (2.0 * m + 3.0)
            bent -= (m + 1.0) * factor * term
            term *= factor * y
        return G, bent
    side = float(np.linalg.norm(b + z * n))
    G = float(np.arctan2(side, z)) / side
    return G, (z * G - 1.0) / side**2


def _hat(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
