"""What a ball met on the way between two states of a motion, however long the step between them.

Of each pair of a ball and an obstacle: the gap d of the surfaces, its rate, and the speed w of the ball's centre as
seen from the obstacle. A distance changes no faster than the centre moves, so that over a step of length h

    d(t) >= (d₀ + d₁ − L) / 2,   L = 1.5 h max(w₀, w₁) the length of the way                              (1)

where accelerations lengthen it by no more than half. Where (1) leaves it open whether a ball was inside, the step is
halved until it does not, or until the way is shorter than half a radius, which nothing passes through; then the cubic
through gaps and rates tells. In between the configuration follows from the states at both ends, s from 0 to 1,

    q(s) = q₀ ⊕ (h s v₀ + ½ h s² (v₁ − v₀) + s² (3 − 2s) ρ),   q(1) = q₁                                  (2)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import warp as wp

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.configuration import difference, integrate, unit_quaternions
from lissom.forces.contact import ball_centre, pose_of, signed_distance, twist_of
from lissom.launch.buffers import Buffers
from lissom.launch.workspace import workspace
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import traversal
from lissom.passes.base_frames import origin_between, place_bases
from lissom.passes.scratch import Scratch, ScratchStruct

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)
_ROWS = 64  # states evaluated at a time
_LONGER = 1.5  # than the speeds at its ends make the way
LONGER = wp.constant(wp.float64(_LONGER))
_POINT = 5e-4  # what counts as the radius of a ball that has none, as a box's corners, [m]
POINT = wp.constant(wp.float64(_POINT))
_SHORT = 0.5  # way within which the cubic of a gap tells, in radii
SHORT = wp.constant(wp.float64(_SHORT))
_GRAZE, _DEEPER = 1e-3, 0.25  # see Lookout
GRAZE = wp.constant(wp.float64(_GRAZE))
DEEPER = wp.constant(wp.float64(_DEEPER))
_MOST_STATES = 4096  # between the ends of one step
_S = np.linspace(0.0, 1.0, 9)
_CUBIC = np.array([(1 + 2 * _S) * (1 - _S) ** 2, _S * (1 - _S) ** 2, _S**2 * (3 - 2 * _S), _S**2 * (_S - 1)])  # Hermite


@wp.func
def approach(t: Tables, s: Scratch, i: int, e: int) -> vec3:
    """Gap of pair e, its rate, and the speed of the ball's centre as seen from the obstacle."""
    ball = t.surroundings.pair[e, 0]
    obstacle = t.surroundings.pair[e, 1]
    a = t.surroundings.ball_node[ball]
    b = t.surroundings.obstacle_node[obstacle]
    origin = origin_between(t, s, i, a, b)
    c = ball_centre(t, s, i, ball, origin)
    R_b, p_b = pose_of(s, i, b, origin)
    R = R_b * t.surroundings.obstacle_R[obstacle]
    y = wp.transpose(R) * (c - R_b * t.surroundings.obstacle_p[obstacle] - p_b)
    d, n, _N = signed_distance(t.surroundings.obstacle_kind[obstacle], t.surroundings.obstacle_size[obstacle], y)
    rho = twist_of(s, i, a) - twist_of(s, i, b)
    u = se3.linear(rho) + wp.cross(se3.angular(rho), c)
    return vec3(d - t.surroundings.ball_radius[ball], wp.dot(R * n, u), wp.length(u))


@wp.func
def least_radius(t: Tables, e: int) -> wp.float64:
    """Radius of the ball of pair e, or what counts as that."""
    return wp.max(t.surroundings.ball_radius[t.surroundings.pair[e, 0]], POINT)


@wp.func
def limit_of(x: vec3, y: vec3, radius: wp.float64, graze: wp.float64, deeper: wp.float64) -> wp.float64:
    """The gap below which the ball was inside between two states of a pair, by more than these show."""
    lowest = wp.min(x[0], y[0])
    return wp.where(lowest < so3.ZERO, lowest - deeper * radius, -graze * radius)


@wp.func
def may_have_met(h: wp.float64, x: vec3, y: vec3, limit: wp.float64) -> int:
    """Whether (1) leaves it open that the gap was below a limit between two states of a pair."""
    if so3.HALF * (x[0] + y[0] - LONGER * h * wp.max(x[2], y[2])) < limit:
        return 1
    return 0


@wp.kernel
def encounters_kernel(
    t: TablesStruct,
    s: ScratchStruct,
    count: wp.array(dtype=wp.int32),
    times: wp.array(dtype=wp.float64),
    share: wp.array(dtype=wp.float64),
    q: Rows,
    v: Rows,
    q_now: Rows,
    v_now: Rows,
    pairs: wp.array2d(dtype=vec3),
    doubtful: wp.array(dtype=wp.int32),
    first: int,
):
    i = first + wp.tid()
    for row in range(count[0]):
        for j in range(q.shape[1]):
            q_now[i, j] = q[row, j]
        for j in range(v.shape[1]):
            v_now[i, j] = v[row, j]
        place_bases(t, s, i, q_now)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q_now, v_now, v_now, vec6())
        doubtful[row] = 0
        for e in range(t.surroundings.pair.shape[0]):
            x = approach(t, s, i, e)
            pairs[row, e] = x
            if row > 0:
                h = times[row] - times[row - 1]
                limit = limit_of(pairs[row - 1, e], x, least_radius(t, e), share[0], share[1])
                if may_have_met(h, pairs[row - 1, e], x, limit) == 1:
                    doubtful[row] = 1


def _make(model: Model, batch: int) -> Buffers:
    w, n = Buffers(model, batch, {"q_now": (model.nq,), "v_now": (model.nv,)}), len(model.surroundings.pair)
    d = [w.buffer("count", (1,), wp.int32), w.buffer("times", (_ROWS,)), w.buffer("share", (2,))]
    d += [w.buffer("q", (_ROWS, model.nq)), w.buffer("v", (_ROWS, model.nv))]
    d += [w.on_device["q_now"], w.on_device["v_now"]]
    d += [w.buffer("pairs", (_ROWS, n), vec3), w.buffer("doubtful", (_ROWS,), wp.int32)]
    w.record(encounters_kernel, [w.tables, w.scratch, *d])
    return w


def _approaches(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, share: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """At no more than _ROWS states (n, nq), (n, nv) the gap [m], its rate and the speed of the ball's centre seen from
    the obstacle [m/s] of every pair, shape (n, n_pairs, 3), and whether a ball may have met something before each."""
    n = len(t)
    if model.asks_before_launch and n > 1:
        return _approaches_one_by_one(model, t, q, v, share)
    w = workspace(model, "encounters", 1, _make)
    host = w.host
    host["count"][0], host["share"][:] = n, share
    host["times"][:n], host["q"][:n], host["v"][:n] = t, q, v
    w.run()
    return host["pairs"][:n].copy(), host["doubtful"][:n].copy()


@final
@dataclass(frozen=True)
class Lookout:
    """Looks for what a motion's steps went through.

    Fields:
        model. graze: depth in radii from which on a touch between two states free of it counts; deeper: depth in radii
        that counts beyond that at the ends of a step, where one of them touches.
    """

    model: Model
    graze: float = _GRAZE
    deeper: float = _DEEPER

    def first_met(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[int, float] | None:
        """The first step of a motion during which a ball was inside something that its ends do not show, k from state k
        to k + 1, and a time at which it was; times (n,), states (n, nq), (n, nv)."""
        if len(self.model.surroundings.pair) == 0:
            return None
        for first in range(0, len(t) - 1, _ROWS - 1):
            part = slice(first, first + _ROWS)
            pairs, doubtful = _approaches(self.model, t[part], q[part], v[part], (self.graze, self.deeper))
            if not any(doubtful.tolist()):
                continue
            for k in np.flatnonzero(doubtful) - 1:
                ends, at = slice(first + k, first + k + 2), slice(k, k + 2)
                time = self._met(t[ends], q[ends], v[ends], pairs[at])
                if time is not None:
                    return int(first + k), time
        return None

    def is_clear(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether (1) alone says that nothing was met on the way along these states, arguments as above."""
        share, n = (self.graze, self.deeper), _ROWS - 1
        parts = [slice(first, first + _ROWS) for first in range(0, len(t) - 1, n)]
        return not any(_approaches(self.model, t[part], q[part], v[part], share)[1].any() for part in parts)

    def _met(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, pairs: np.ndarray) -> float | None:
        """When a ball was inside during one step, given its ends; None where it was not."""
        world, lowest = self.model.surroundings, pairs[..., 0].min(axis=0)
        radius = np.maximum(world.ball_radius[world.pair[:, 0]], _POINT)
        limit = np.where(lowest < 0.0, lowest - self.deeper * radius, -self.graze * radius)
        between, times = _Between(self.model, t, q, v), t
        while True:
            gap, way = pairs[..., 0], _LONGER * np.diff(times)[:, None] * np.maximum(pairs[:-1, :, 2], pairs[1:, :, 2])
            doubtful = 0.5 * (gap[:-1] + gap[1:] - way) < limit
            near = doubtful & (way <= _SHORT * radius)
            dips = _dips(times, pairs, near, limit)
            halved = np.flatnonzero((doubtful & ~near).any(axis=1))
            if dips is not None or len(halved) == 0 or len(times) > _MOST_STATES:
                return dips
            middle = 0.5 * (times[halved] + times[halved + 1])
            new = np.concatenate([_approaches(self.model, part, *between(part), (0.0, 0.0))[0]
                                  for part in np.split(middle, range(_ROWS, len(middle), _ROWS))])  # fmt: skip
            inside = np.flatnonzero((new[..., 0] < limit).any(axis=1))
            if len(inside):
                return float(middle[inside[0]])
            times, pairs = np.insert(times, halved + 1, middle), np.insert(pairs, halved + 1, new, axis=0)


def _approaches_one_by_one(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, share: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The same for robots whose poses Python must give before each launch; (1) is asked here then."""
    rows = [_approaches(model, t[k : k + 1], q[k : k + 1], v[k : k + 1], share)[0] for k in range(len(t))]
    pairs = np.concatenate(rows)
    world = model.surroundings
    radius = np.maximum(world.ball_radius[world.pair[:, 0]], _POINT)
    before, after, h = pairs[:-1], pairs[1:], np.diff(t)[:, None]
    least = np.minimum(before[..., 0], after[..., 0])
    limit = np.where(least < 0.0, least - share[1] * radius, -share[0] * radius)
    fastest = np.maximum(before[..., 2], after[..., 2])
    met = 0.5 * (before[..., 0] + after[..., 0] - _LONGER * h * fastest) < limit
    return pairs, np.concatenate([[0], met.any(axis=1).astype(np.int32)])


def _dips(times: np.ndarray, pairs: np.ndarray, near: np.ndarray, limit: np.ndarray) -> float | None:
    """When the cubic through gaps and rates first dips below the limit, on the intervals and for the pairs `near`."""
    at, e = np.nonzero(near)
    if len(at) == 0:
        return None
    h, (d, rate) = np.diff(times)[at], np.moveaxis(pairs[..., :2], -1, 0)
    gaps = np.stack([d[at, e], h * rate[at, e], d[at + 1, e], h * rate[at + 1, e]], axis=1) @ _CUBIC
    low = np.flatnonzero(gaps.min(axis=1) < limit[e])
    if len(low) == 0:
        return None
    k = low[0]
    return float(times[at[k]] + h[k] * _S[np.argmin(gaps[k])])


@final
class _Between:
    """States between the two ends of a step, by (2); prescribed coordinates are on their motion."""

    def __init__(self, model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        self.model, self.t, self.h = model, float(t[0]), float(t[1] - t[0])
        self.q, self.v, self.change = unit_quaternions(model, q)[0], v[0], v[1] - v[0]
        reached = integrate(model, self.q, self.h * (self.v + 0.5 * self.change))
        self.rest = difference(model, reached, unit_quaternions(model, q)[1])

    def __call__(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = ((times - self.t) / self.h)[:, None]
        q = integrate(self.model, self.q,
                      self.h * s * (self.v + 0.5 * s * self.change) + s * s * (3 - 2 * s) * self.rest)  # fmt: skip
        v = self.v + s * self.change + 6 * s * (1 - s) / self.h * self.rest
        if self.model.n_motions:
            for row, v_row, t in zip(q, v, times.tolist()):
                row[:], v_row[:] = on_motion(self.model, t, row, v_row)
        return q, v
