"""Search for contacts between two states of a motion, which steps of any length may miss.

Each pair of a ball and an obstacle has a gap d between the surfaces, its rate, and the speed w of the ball's centre
relative to the obstacle. A gap changes no faster than the centre moves, so over a step of length h

    d(t) >= (d₀ + d₁ − L) / 2,   L = 1.5 h max(w₀, w₁) the length of the path                             (1)

with the factor 1.5 for accelerations. If (1) does not exclude that the ball was inside, the step is halved. This ends
when (1) excludes a contact, or when the path is shorter than half a radius, on which a ball cannot pass through an
obstacle; then the cubic through gaps and rates decides. Intermediate configurations follow from the states at both
ends, with s from 0 to 1,

    q(s) = q₀ ⊕ (h s v₀ + ½ h s² (v₁ − v₀) + s² (3 − 2s) ρ),   q(1) = q₁                                  (2)

Step kernels search along each step that they have found. Δ, v and the rate w of Δ are known at both ends:

    q(s) = qₙ ⊕ Δ(s),   Δ(s) the cubic from 0 to Δ that begins with the slope h vₙ and ends with h w      (3)

They divide the step into strides. The length of a stride in s is so short that no ball gets deeper than a limit before
its end, with the gap d at its start and the speed u of the ball's centre:

    (d − limit) / (1.5 h max(u, uₙ₊₁)),   or a path of half a radius                                      (4)

Within such a stride the cubic through gaps and rates decides. A step that passed through an obstacle is repeated up to
the time of entry.

Schemes lose their order if a contact begins or ends within a step. The cubic through gaps and rates at both ends gives
the fraction s of the step before this event. Error estimates miss most of this loss if the event is near an end.
Therefore the step is repeated up to the event if it is rejected for its error, or if the possible error of v exceeds
the tolerance:

    h min(s, 1 − s) |aₙ₊₁ − aₙ|                                                                           (5)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportReturnType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.assembly import prescribed_state
from lissom.dynamics.configuration import difference, integrate, unit_quaternions
from lissom.forces.contact import is_aside, obstacle_distance, pose_of, renew_near, touching_centre, twist_of
from lissom.forces.term import SPRING_NUMBERS
from lissom.forces.terms import Acting, spring_count
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import free_of_forces
from lissom.launch.workspace import workspace
from lissom.lie import se3, so3
from lissom.lie.types import by_reference, kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import kinds, traversal
from lissom.passes.kinds import move_configuration
from lissom.passes.linear_algebra import largest
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import origin_between, place_bases
from lissom.stepping.newton_stages import CONVERGED
from lissom.stepping.step_rows import ERROR, IS_NOTED, StepRows, Tolerances
from lissom.stepping.step_sizes import LawsStruct, put_laws

Rows = wp.array2d(dtype=wp.float64)
_ROWS = 64  # number of states evaluated in one launch
_LONGER = 1.5  # bound of a path length, relative to the larger of the speeds at its ends
LONGER = wp.constant(wp.float64(_LONGER))
_POINT = 5e-4  # radius assumed for a ball of radius zero, such as the corner of a box [m]
POINT = wp.constant(wp.float64(_POINT))
_SHORT = 0.5  # largest length of a path on which the cubic of a gap decides, in radii
SHORT = wp.constant(wp.float64(_SHORT))
_GRAZE, _DEEPER = 1e-3, 0.25  # see ContactSearch
GRAZE = wp.constant(wp.float64(_GRAZE))
DEEPER = wp.constant(wp.float64(_DEEPER))
_MOST_STATES = 4096  # largest number of states between the ends of one step
TOUCHING, FOUND, LISTED, LIST = range(4)  # columns of `n` in ContactRows; the last is the number of the list
_S = np.linspace(0.0, 1.0, 9)
_CUBIC = np.array([(1 + 2 * _S) * (1 - _S) ** 2, _S * (1 - _S) ** 2, _S**2 * (3 - 2 * _S), _S**2 * (_S - 1)])  # Hermite


@wp.func
def gap_motion(t: Tables, s: Scratch, i: int, e: int) -> vec3:
    """Gap of pair e [m], its rate, and the speed of the ball's centre relative to the obstacle [m/s]. Reads poses and
    twists in s. A ball that is aside has a gap of at least the margin."""
    ball = t.contacts.pair[e, 0]
    obstacle = t.contacts.pair[e, 1]
    a = t.contacts.ball_node[ball]
    b = t.contacts.obstacle_node[obstacle]
    origin = origin_between(t, s, i, a, b)
    c = touching_centre(t, s, i, e, origin)
    R_b, p_b = pose_of(s, i, b, origin)
    R = R_b * t.contacts.obstacle_R[obstacle]
    y = wp.transpose(R) * (c - R_b * t.contacts.obstacle_p[obstacle] - p_b)
    d, n, _N = obstacle_distance(t, obstacle, y)
    rho = twist_of(s, i, a) - twist_of(s, i, b)
    u = se3.linear(rho) + wp.cross(se3.angular(rho), c)
    R_a, _p_a = pose_of(s, i, a, origin)
    if is_aside(t, ball, R_a, R * n) == 1:
        return vec3(wp.max(d - t.contacts.ball_radius[ball], t.contacts.margin), so3.ZERO, wp.length(u))
    return vec3(d - t.contacts.ball_radius[ball], wp.dot(R * n, u), wp.length(u))


@wp.func
def least_radius(t: Tables, e: int) -> wp.float64:
    """Radius of the ball of pair e, or the least length in its place [m]."""
    return wp.max(t.contacts.ball_radius[t.contacts.pair[e, 0]], POINT)


@wp.func
def limit_of(x: vec3, y: vec3, radius: wp.float64, graze: wp.float64, deeper: wp.float64) -> wp.float64:
    """The gap [m] below which a ball counts as inside between two states x, y of a pair: `deeper` radii below the lower
    gap if that is negative, otherwise −`graze` radii."""
    lowest = wp.min(x[0], y[0])
    return wp.where(lowest < so3.ZERO, lowest - deeper * radius, -graze * radius)


@wp.func
def may_be_in_contact(h: wp.float64, x: vec3, y: vec3, limit: wp.float64) -> int:
    """Whether (1) does not exclude that the gap was below a limit between two states of a pair."""
    if so3.HALF * (x[0] + y[0] - LONGER * h * wp.max(x[2], y[2])) < limit:
        return 1
    return 0


@free_of_forces
def contact_search_kernel(act: Acting) -> Any:
    """Kernel of gaps, rates and speeds of all pairs at many states. It marks the states before which a ball may have
    been in contact."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def gaps_of_states(
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
            for e in range(t.contacts.pair.shape[0]):
                x = gap_motion(t, s, i, e)
                pairs[row, e] = x
                if row > 0:
                    h = times[row] - times[row - 1]
                    limit = limit_of(pairs[row - 1, e], x, least_radius(t, e), share[0], share[1])
                    if may_be_in_contact(h, pairs[row - 1, e], x, limit) == 1:
                        doubtful[row] = 1

    return gaps_of_states


def _make(model: Model, batch: int) -> Buffers:
    w, n = Buffers(model, batch, {"q_now": (model.nq,), "v_now": (model.nv,)}), len(model.contacts.pair)
    d = [w.buffer("count", (1,), wp.int32), w.buffer("times", (_ROWS,)), w.buffer("share", (2,))]
    d += [w.buffer("q", (_ROWS, model.nq)), w.buffer("v", (_ROWS, model.nv))]
    d += [w.on_device["q_now"], w.on_device["v_now"]]
    d += [w.buffer("pairs", (_ROWS, n), vec3), w.buffer("doubtful", (_ROWS,), wp.int32)]
    w.record(contact_search_kernel, [w.tables, w.scratch, *d])
    return w


def _gaps(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, share: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """For at most _ROWS states (n, nq), (n, nv): the gap of every pair [m], its rate and the speed of the ball's centre
    relative to the obstacle [m/s], shape (n, n_pairs, 3); and whether a ball may have been in
    contact before each state."""
    n = len(t)
    if model.fills_tables_before_launch and n > 1:
        return _gaps_of_states(model, t, q, v, share)
    w = workspace(model, "gaps", 1, _make)
    host = w.host
    host["count"][0], host["share"][:] = n, share
    host["times"][:n], host["q"][:n], host["v"][:n] = t, q, v
    w.run()
    return host["pairs"][:n].copy(), host["doubtful"][:n].copy()


@final
@dataclass(frozen=True)
class ContactSearch:
    """Search for obstacles through which the steps of a motion passed.

    Fields:
        model: the model.
        graze: smallest depth, in radii, of a contact between two states without contact.
        deeper: smallest additional depth, in radii, if the ball is in contact at an end of the step.
    """

    model: Model
    graze: float = _GRAZE
    deeper: float = _DEEPER

    def first_contact(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[int, float] | None:
        """The first step during which a ball was inside an obstacle without contact at the step's ends.

        Args:
            t: times (n,) [s].
            q, v: states (n, nq), (n, nv).
        Returns:
            (k, time): the step goes from state k to state k + 1, and the ball was inside at `time` [s]. None if there
            is no such step.
        """
        if len(self.model.contacts.pair) == 0:
            return None
        for first in range(0, len(t) - 1, _ROWS - 1):
            part = slice(first, first + _ROWS)
            pairs, doubtful = _gaps(self.model, t[part], q[part], v[part], (self.graze, self.deeper))
            if not any(doubtful.tolist()):
                continue
            for k in np.flatnonzero(doubtful) - 1:
                ends, at = slice(first + k, first + k + 2), slice(k, k + 2)
                time = self._time_inside(t[ends], q[ends], v[ends], pairs[at])
                if time is not None:
                    return int(first + k), time
        return None

    def _time_inside(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, pairs: np.ndarray) -> float | None:
        """A time at which a ball was inside during one step, from the two ends of the step; None if there is none."""
        world, lowest = self.model.contacts, pairs[..., 0].min(axis=0)
        radius = np.maximum(world.ball_radius[world.pair[:, 0]], _POINT)
        limit = np.where(lowest < 0.0, lowest - self.deeper * radius, -self.graze * radius)
        between, times = _Between(self.model, t, q, v), t
        while True:
            gap, way = pairs[..., 0], _LONGER * np.diff(times)[:, None] * np.maximum(pairs[:-1, :, 2], pairs[1:, :, 2])
            doubtful = 0.5 * (gap[:-1] + gap[1:] - way) < limit
            near = doubtful & (way <= _SHORT * radius)
            below = _first_below(times, pairs, near, limit)
            halved = np.flatnonzero((doubtful & ~near).any(axis=1))
            if below is not None or len(halved) == 0 or len(times) > _MOST_STATES:
                return below
            middle = 0.5 * (times[halved] + times[halved + 1])
            new = np.concatenate([_gaps(self.model, part, *between(part), (0.0, 0.0))[0]
                                  for part in np.split(middle, range(_ROWS, len(middle), _ROWS))])  # fmt: skip
            inside = np.flatnonzero((new[..., 0] < limit).any(axis=1))
            if len(inside):
                return float(middle[inside[0]])
            times, pairs = np.insert(times, halved + 1, middle), np.insert(pairs, halved + 1, new, axis=0)


def _gaps_of_states(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, share: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """`_gaps` for robots whose poses Python computes before each launch. Python evaluates (1)."""
    rows = [_gaps(model, t[k : k + 1], q[k : k + 1], v[k : k + 1], share)[0] for k in range(len(t))]
    pairs = np.concatenate(rows)
    world = model.contacts
    radius = np.maximum(world.ball_radius[world.pair[:, 0]], _POINT)
    before, after, h = pairs[:-1], pairs[1:], np.diff(t)[:, None]
    least = np.minimum(before[..., 0], after[..., 0])
    limit = np.where(least < 0.0, least - share[1] * radius, -share[0] * radius)
    fastest = np.maximum(before[..., 2], after[..., 2])
    doubtful = 0.5 * (before[..., 0] + after[..., 0] - _LONGER * h * fastest) < limit
    return pairs, np.concatenate([[0], doubtful.any(axis=1).astype(np.int32)])


def _first_below(times: np.ndarray, pairs: np.ndarray, near: np.ndarray, limit: np.ndarray) -> float | None:
    """The first time at which the cubic through gaps and rates is below the limit, for the intervals and pairs in the
    mask `near`."""
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
    """States between the two ends of a step, by (2). Prescribed coordinates follow their motion."""

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
                row[:], v_row[:] = prescribed_state(self.model, t, row, v_row)
        return q, v


Rows = wp.array2d(dtype=wp.float64)
Gaps = wp.array2d(dtype=vec3)

MOST_STRIDES = wp.constant(4096)
BISECTIONS = wp.constant(40)
SAMPLES = wp.constant(8)  # number of intervals of a stride at whose ends its cubic is evaluated,
SAMPLE_LENGTH = wp.constant(wp.float64(1.0 / 8.0))  # and the length of each interval
NEAR_START = wp.constant(wp.float64(0.02))  # a contact before this part of a rejected step counts as begun at its start


@wp.struct
class ContactRowsStruct:
    """Arrays of the search along a step.

    Fields:
        searched, n_searched: pairs of each instance that are searched, and their number.
        start, end, left, right: gap, rate and speed of each instance and pair at the start and the end of the step,
        and at both ends of the current stride. q, v, a, move, rate: state of each instance at the end of the stride.
        load, motion, u: loads, prescribed coordinates and inputs there, from `laws` (`put_laws` of step_sizes).
        listed: near pairs at the start of the step, and their number in column LISTED of `n`.
        Of fixed steps, with their numbers in the columns of `n` (step_changes):
        gap, speed: of every pair in it [m, m/s]. touching, push: pairs in contact at the start, and the normal force of
        every pair [N]. found: places in the list of near pairs of those in contact at the end. noted: for every pair,
        whether a list holds it. deepest: largest depth of the steps so far [m]. spring_start, spring_end: springs at
        the start of the step and at the end of its last stage (`measure` of forces.term).
    """

    searched: wp.array2d(dtype=wp.int32)
    n_searched: wp.array(dtype=wp.int32)
    start: Gaps
    end: Gaps
    left: Gaps
    right: Gaps
    listed: wp.array2d(dtype=wp.int32)
    touching: wp.array2d(dtype=wp.int32)
    found: wp.array2d(dtype=wp.int32)
    noted: wp.array2d(dtype=wp.int32)
    n: wp.array2d(dtype=wp.int32)
    gap: Rows
    speed: Rows
    push: Rows
    deepest: wp.array(dtype=wp.float64)
    spring_start: Rows
    spring_end: Rows
    q: Rows
    v: Rows
    a: Rows
    move: Rows
    rate: Rows
    load: wp.array2d(dtype=vec6)
    motion: Rows
    u: Rows
    laws: LawsStruct


ContactRows = by_reference(ContactRowsStruct)
LISTS = ("listed", "touching", "found")


def contact_rows(w: Buffers, model: Model, laws: LawsStruct) -> ContactRowsStruct:
    """Rows for the instances of buffers, with the laws of time; those of contacts are empty for robots without
    pairs."""
    m, pairs = ContactRowsStruct(), len(model.contacts.pair)
    batch = w.batch if pairs else 0
    near = model.contacts.capacity if pairs else 0
    for name in ("start", "end", "left", "right"):
        setattr(m, name, wp.zeros((batch, pairs), dtype=vec3, device=model.device))
    for name, size in (("searched", pairs), ("noted", pairs), ("n", 4), *((x, near) for x in LISTS)):
        setattr(m, name, wp.zeros((batch, size), dtype=wp.int32, device=model.device))
    for name in ("gap", "speed", "push"):
        setattr(m, name, wp.zeros((batch, pairs), dtype=wp.float64, device=model.device))
    m.n_searched = wp.zeros(batch, dtype=wp.int32, device=model.device)
    m.deepest = w.buffer("deepest", (w.batch,))
    springs = spring_count(model.of_row(0, 1)) * SPRING_NUMBERS
    for name in ("spring_start", "spring_end"):
        setattr(m, name, wp.zeros((w.batch, springs), dtype=wp.float64, device=model.device))
    for name, size in (("q", model.nq), ("motion", 3 * model.n_motions), ("u", model.nu)):
        setattr(m, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    for name in ("v", "a", "move", "rate"):
        setattr(m, name, wp.zeros((batch, model.nv), dtype=wp.float64, device=model.device))
    m.load, m.laws = wp.zeros((batch, model.n_load_rows), dtype=vec6, device=model.device), laws
    return m


@wp.func(inline=False)
def fastest_pair(t: Tables, s: Scratch, i: int) -> wp.float64:
    """An upper bound of `pair_speed` of all pairs that are near, unless their obstacle is unbounded, by the speeds of
    the nodes in s: the fastest of the balls that are watched, twice if obstacles move, and what the turning of an
    obstacle adds within the margin around it [m/s]."""
    fastest = wp.float64(0.0)
    turning = wp.float64(0.0)
    for k in range(t.contacts.watched.shape[0]):
        ball = t.contacts.watched[k]
        node = t.contacts.ball_node[ball]
        if node >= 0:
            eta = s.node[i, node].eta
            at = s.node[i, node].R * t.contacts.ball_position[ball] + s.node[i, node].p
            fastest = wp.max(fastest, wp.length(se3.linear(eta) + wp.cross(se3.angular(eta), at)))
            turning = wp.max(turning, wp.length(se3.angular(eta)))
    moving = wp.float64(0.0)
    for k in range(t.contacts.obstacle_node.shape[0]):
        if t.contacts.obstacle_node[k] >= 0:
            moving = so3.ONE
    return fastest + moving * (fastest + turning * t.contacts.margin)


@wp.func(inline=False)
def search_pairs(t: Tables, s: Scratch, m: ContactRows, i: int, everywhere: bool):
    """Search the pairs that were near at the start of a step and those that are near now, or all pairs."""
    count = wp.int32(0)
    if everywhere:
        for e in range(t.contacts.pair.shape[0]):
            m.searched[i, e] = e
        m.n_searched[i] = t.contacts.pair.shape[0]
        return
    for j in range(m.n[i, LISTED]):
        m.searched[i, count] = m.listed[i, j]
        m.noted[i, m.listed[i, j]] = 1
        count += 1
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        if m.noted[i, e] == 0:
            m.searched[i, count] = e
            count += 1
    for j in range(m.n[i, LISTED]):
        m.noted[i, m.listed[i, j]] = 0
    m.n_searched[i] = count


@wp.func
def take_list(s: Scratch, m: ContactRows, i: int):
    """Take the present list of near pairs as that at the start of a step."""
    if m.n[i, LIST] != s.near.lists[i]:
        m.n[i, LIST] = s.near.lists[i]
        m.n[i, LISTED] = s.near.count[i]
        for j in range(s.near.count[i]):
            m.listed[i, j] = s.near.pair[i, j]


@wp.func(inline=False)
def put_motion(t: Tables, s: Scratch, i: int, q: Rows, v: Rows, a: Rows):
    """Set poses and twists of the nodes in s to those of a state."""
    place_bases(t, s, i, q)
    for k in range(t.n_dynamic):
        traversal.outward_motion(t, s, i, k, q, v, a, vec6())


@wp.func(inline=False)
def put_gaps(t: Tables, s: Scratch, m: ContactRows, i: int, q: Rows, v: Rows, a: Rows, out: Gaps):
    """Store gap, rate and speed of every searched pair at a state in `out`. Overwrites the motion of the nodes in
    s."""
    put_motion(t, s, i, q, v, a)
    for j in range(m.n_searched[i]):
        e = m.searched[i, j]
        out[i, e] = gap_motion(t, s, i, e)


@wp.func
def put_both_ends(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int):
    """Store gaps, rates and speeds of searched pairs at both ends of a step. Leaves the motion at its end in s."""
    put_gaps(t, s, m, i, x.start, x.v_start, x.before, m.start)
    put_gaps(t, s, m, i, x.q, x.v, x.a, m.end)


@wp.func
def copy_gaps(m: ContactRows, i: int, source: Gaps, out: Gaps):
    """out = source, for searched pairs."""
    for j in range(m.n_searched[i]):
        e = m.searched[i, j]
        out[i, e] = source[i, e]


@wp.func
def follow_laws(t: Tables, m: ContactRows, i: int, now: wp.float64):
    """Set prescribed coordinates and their velocities to their values at time `now`."""
    count = t.prescribed.dof.shape[0]
    if count > 0:
        put_laws(now, m.laws, m.load[i], m.motion[i], m.u[i])
    for e in range(count):
        j = t.prescribed.dof[e]
        m.q[i, t.dofs.q[j]] = m.motion[i, e]
        m.v[i, j] = m.motion[i, count + e]


@wp.func(inline=False)
def put_between(
    t: Tables, x: StepRows, m: ContactRows, i: int, h: wp.float64, part: wp.float64, start: wp.float64, has_laws: bool
):  # fmt: skip
    """Set the state (3) at a part of a step that begins at `start`. Prescribed coordinates follow their motion if the
    kernel can evaluate it (`has_laws`)."""
    rest = so3.ONE - part
    for j in range(t.nv):
        begins = h * x.v_start[i, j]
        ends = h * x.rate[i, j]
        move = x.move[i, j]
        m.move[i, j] = part * (part * ((so3.ONE + so3.TWO * rest) * move - rest * ends) + rest * rest * begins)
        slope = wp.float64(6.0) * part * rest * move + rest * (so3.ONE - wp.float64(3.0) * part) * begins
        m.rate[i, j] = (slope + part * (wp.float64(3.0) * part - so3.TWO) * ends) / h
        m.v[i, j] = m.rate[i, j]
    move_configuration(t, i, x.start, m.move, m.q)
    if m.q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            kinds.set_rates(t, i, k, so3.ZERO, m.move, m.rate, m.a, m.v, m.a)
    if has_laws:
        follow_laws(t, m, i, start + part * h)


@wp.func
def gap_within(x: vec3, y: vec3, h: wp.float64, part: wp.float64) -> wp.float64:
    """The gap at a part of an interval h, by the cubic through gaps and rates at its ends."""
    rest = so3.ONE - part
    late = part * part * ((so3.ONE + so3.TWO * rest) * y[0] - rest * h * y[1])
    return rest * rest * ((so3.ONE + so3.TWO * part) * x[0] + part * h * x[1]) + late


@wp.func
def crossing(x: vec3, y: vec3, h: wp.float64, level: wp.float64, last: wp.float64) -> wp.float64:
    """The part of an interval h, before `last`, at which the gap of `gap_within` crosses a level, by bisection."""
    low = wp.float64(0.0)
    high = wp.float64(last)
    is_above = x[0] > level
    for _n in range(BISECTIONS):
        middle = so3.HALF * (low + high)
        stays = (gap_within(x, y, h, middle) > level) == is_above
        low = wp.where(stays, middle, low)
        high = wp.where(stays, high, middle)
    return high


@wp.func
def stride_from(
    t: Tables, m: ContactRows, i: int, h: wp.float64, rest: wp.float64, graze: wp.float64, deeper: wp.float64
) -> wp.float64:
    """Length of the next stride by (4), no more than the rest of the step."""
    stride = wp.float64(rest)
    for j in range(m.n_searched[i]):
        e = m.searched[i, j]
        x = m.left[i, e]
        y = m.end[i, e]
        radius = least_radius(t, e)
        limit = limit_of(m.start[i, e], y, radius, graze, deeper)
        way = LONGER * h * wp.max(x[2], y[2])
        if so3.HALF * (x[0] + y[0] - rest * way) < limit:
            stride = wp.min(stride, wp.max(x[0] - limit, SHORT * radius) / way)
    return stride


@wp.func
def first_inside(
    t: Tables, m: ContactRows, i: int, h: wp.float64, stride: wp.float64, graze: wp.float64, deeper: wp.float64
) -> wp.float64:
    """The first part of a stride at which a ball that gets deeper than its limit crosses the surface. A ball whose gap
    at the start of the step is at most `graze` radii counts from where it crosses the limit. Above 1 if no ball gets so
    deep."""
    found = wp.float64(2.0)
    for j in range(m.n_searched[i]):
        e = m.searched[i, j]
        x = m.left[i, e]
        y = m.right[i, e]
        radius = least_radius(t, e)
        limit = limit_of(m.start[i, e], m.end[i, e], radius, graze, deeper)
        inside = wp.float64(2.0)
        if y[0] < limit:
            inside = wp.float64(1.0)
        if may_be_in_contact(stride * h, x, y, limit) == 1:
            for n in range(1, SAMPLES):
                sample = SAMPLE_LENGTH * wp.float64(SAMPLES - n)
                if gap_within(x, y, stride * h, sample) < limit:
                    inside = sample
        if inside <= so3.ONE:
            level = wp.where(m.start[i, e][0] > graze * radius, so3.ZERO, limit)
            at = so3.ZERO
            if x[0] > level:
                at = crossing(x, y, stride * h, level, inside)
            found = wp.min(found, at)
    return found


@wp.func(inline=False)
def hidden_contact(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, start: wp.float64, has_laws: bool,
    graze: wp.float64, deeper: wp.float64,
) -> wp.float64:  # fmt: skip
    """The part of a step at which a ball entered an obstacle without contact at the step's ends; zero if none did. See
    `limit_of` for `graze` and `deeper`."""
    copy_gaps(m, i, m.start, m.left)
    part = wp.float64(0.0)
    count = wp.int32(0)
    while part < so3.ONE and count < MOST_STRIDES:
        rest = so3.ONE - part
        stride = stride_from(t, m, i, h, rest, graze, deeper)
        if stride < rest:
            put_between(t, x, m, i, h, part + stride, start, has_laws)
            put_gaps(t, s, m, i, m.q, m.v, m.v, m.right)
        else:
            copy_gaps(m, i, m.end, m.right)
        inside = first_inside(t, m, i, h, stride, graze, deeper)
        if inside <= so3.ONE:
            return wp.max(part + inside * stride, wp.float64(1e-12))
        copy_gaps(m, i, m.right, m.left)
        part = wp.where(stride < rest, part + stride, so3.ONE)
        count += 1
    return so3.ZERO


@wp.func
def change_of_speed(t: Tables, x: StepRows, c: Tolerances, i: int, h: wp.float64) -> wp.float64:
    """(5) without the factor of s, over the tolerance."""
    change = wp.float64(0.0)
    for j in range(t.nv):
        change = wp.max(change, wp.abs(x.a[i, j] - x.before[i, j]) * x.inverse_scale[j])
    return h * change / (c.atol_v + c.rtol * largest(t.nv, i, x.inverse_scale, x.v))


@wp.func
def first_change(
    t: Tables, x: StepRows, m: ContactRows, c: Tolerances, i: int, h: wp.float64, is_refused: bool
) -> wp.float64:  # fmt: skip
    """The part of a step at which the first relevant contact began or ended; zero if there is none."""
    size = wp.float64(-1.0)
    found = wp.float64(2.0)
    for j in range(m.n_searched[i]):
        e = m.searched[i, j]
        begins = m.start[i, e]
        ends = m.end[i, e]
        if (begins[0] < so3.ZERO) != (ends[0] < so3.ZERO):
            if size < so3.ZERO:
                size = change_of_speed(t, x, c, i, h)
            part = crossing(begins, ends, h, so3.ZERO, so3.ONE)
            if (is_refused and part > NEAR_START) or (not is_refused and wp.min(part, so3.ONE - part) * size > so3.ONE):
                found = wp.min(found, part)
    return wp.where(found < so3.ONE, found, so3.ZERO)


@wp.func(inline=False)
def first_event(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, c: Tolerances, i: int, h: wp.float64, status: int,
    start: wp.float64, has_laws: bool,
) -> wp.float64:  # fmt: skip
    """The part of a step up to which it must be repeated: to a hidden contact, or to the begin or end of a contact.
    Zero if it need not be repeated. Pairs that are near at neither end are searched only if the path (1) of the fastest
    one is longer than the margin of the lists of near pairs.

    Args:
        start: time at which the step starts [s]. has_laws: whether the kernel can evaluate prescribed motions at all
            times.
    """
    if status != CONVERGED or m.end.shape[1] == 0:
        return so3.ZERO
    put_motion(t, s, i, x.start, x.v_start, x.before)
    fastest = fastest_pair(t, s, i)
    put_motion(t, s, i, x.q, x.v, x.a)
    fastest = wp.max(fastest, fastest_pair(t, s, i))
    renew_near(t, s, i)
    search_pairs(t, s, m, i, LONGER * h * fastest > t.contacts.margin)
    put_both_ends(t, s, x, m, i)
    is_refused = x.notes[i, ERROR] > so3.ONE
    change = first_change(t, x, m, c, i, h, is_refused)
    if is_refused:
        return change
    hidden = hidden_contact(t, s, x, m, i, h, start, has_laws, GRAZE, DEEPER)
    if hidden > so3.ZERO and change > so3.ZERO:
        return wp.min(hidden, change)
    return wp.max(hidden, change)


@wp.func
def begin_search(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: wp.array2d(dtype=wp.int32)):
    """List the near pairs at the start of a run of adaptive steps."""
    if m.start.shape[1] == 0:
        return
    counts[i, IS_NOTED] = 0
    s.near.is_swept[i] = 0  # anchors may have been given to any pair
    put_motion(t, s, i, x.q, x.v, x.a)
    renew_near(t, s, i)
    take_list(s, m, i)


@wp.func
def advance_search(s: Scratch, m: ContactRows, i: int):
    """Take the near pairs at the end of an accepted step, which `first_event` has listed, as those at the start of the
    next one, and note the deepest contact."""
    if m.start.shape[1] > 0:
        take_list(s, m, i)
        for j in range(m.n_searched[i]):
            m.deepest[i] = wp.max(m.deepest[i], -m.end[i, m.searched[i, j]][0])


@wp.func
def no_event(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, c: Tolerances, i: int, h: wp.float64, status: int,
    start: wp.float64, has_laws: bool,
) -> wp.float64:  # fmt: skip
    """`first_event` of robots without pairs."""
    return wp.float64(0.0)
