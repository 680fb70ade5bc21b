"""What balls met during a step that a kernel has found, and when a touch began or ended on its way, inside kernels.

Of such a step of size h, Δ, v and the rate w of Δ are known at both ends. A part s of it further on stands

    q(s) = qₙ ⊕ Δ(s),   Δ(s) the cubic from 0 to Δ that begins with the slope h vₙ and ends with h w      (1)

Where (1) of encounters leaves it open whether a ball was inside, the way is walked through in strides, so long in s
that nothing can be deeper than a limit before, with the gap d at the beginning and the speed u of the ball's centre:

    (d − limit) / (1.5 h max(u, uₙ₊₁)),   or a way of half a radius                                       (2)

Nothing passes through half a radius; within such a stride the cubic through gaps and rates tells. A step that went
through something is taken again to where that began.

Schemes lose their order where a touch begins or ends on the way, a part s after the start by the cubic through the gaps
and rates at both ends, and their error estimates miss most of that near the ends. There a step is taken again to, too:
where it is refused for its error, and else where what it may have missed of v is above the tolerance:

    h min(s, 1 − s) |aₙ₊₁ − aₙ|                                                                           (3)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.integration.encounters import DEEPER, GRAZE, LONGER, SHORT, approach, least_radius, limit_of, may_have_met
from lissom.integration.paced_steps import LawsStruct, put_laws
from lissom.integration.step_rows import ERROR, StepRows, Tolerances
from lissom.integration.step_stages import CONVERGED
from lissom.launch.buffers import Buffers
from lissom.lie import so3
from lissom.lie.types import by_reference, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import group, traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.linear_solve import largest
from lissom.passes.moves import move_configuration
from lissom.passes.rare_kinds import is_stored
from lissom.passes.scratch import Scratch

Rows = wp.array2d(dtype=wp.float64)
Approaches = wp.array2d(dtype=vec3)

MOST_STRIDES = wp.constant(4096)
BISECTIONS = wp.constant(40)
LOOKS = wp.constant(8)  # parts of a stride between which its cubic is looked at,
LOOK = wp.constant(wp.float64(1.0 / 8.0))  # and how long each is
NEAR_START = wp.constant(wp.float64(0.02))  # part of a refused step before which a touch counts as begun at its start


@wp.struct
class MeetingRowsStruct:
    """By instance and pair the gap, its rate and the speed of the ball's centre (`approach` of encounters) at the start
    of a step, at its end, and at both ends of the stride at hand; by instance the state at the end of that, and what
    drives the robot then, by the laws of time (`put_laws` of paced_steps)."""

    start: Approaches
    end: Approaches
    left: Approaches
    right: Approaches
    q: Rows
    v: Rows
    a: Rows
    move: Rows
    rate: Rows
    load: wp.array2d(dtype=vec6)
    held: Rows
    u: Rows
    laws: LawsStruct


MeetingRows = by_reference(MeetingRowsStruct)


def meeting_rows(w: Buffers, model: Model, laws: LawsStruct) -> MeetingRowsStruct:
    """Rows for the instances of buffers, and the laws of time; empty where nothing can meet anything."""
    m, pairs = MeetingRowsStruct(), len(model.surroundings.pair)
    batch = w.batch if pairs else 0
    for name in ("start", "end", "left", "right"):
        setattr(m, name, wp.zeros((batch, pairs), dtype=vec3, device=model.device))
    for name, size in (("q", model.nq), ("held", 3 * model.n_motions), ("u", model.nu)):
        setattr(m, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    for name in ("v", "a", "move", "rate"):
        setattr(m, name, wp.zeros((batch, model.nv), dtype=wp.float64, device=model.device))
    m.load, m.laws = wp.zeros((batch, model.n_load_rows), dtype=vec6, device=model.device), laws
    return m


@wp.func(inline=False)
def note_approaches(t: Tables, s: Scratch, i: int, q: Rows, v: Rows, a: Rows, out: Approaches):
    """Gap, rate and speed of every pair at a state."""
    place_bases(t, s, i, q)
    for k in range(t.n_dynamic):
        traversal.outward_motion(t, s, i, k, q, v, a, vec6())
    for e in range(t.surroundings.pair.shape[0]):
        out[i, e] = approach(t, s, i, e)


@wp.func
def copy_approaches(i: int, source: Approaches, out: Approaches):
    """out = source."""
    for e in range(source.shape[1]):
        out[i, e] = source[i, e]


@wp.func
def follow_laws(t: Tables, m: MeetingRows, i: int, now: wp.float64):
    """Put prescribed coordinates where they are, and as fast, at a time."""
    count = t.prescribed.dof.shape[0]
    if count > 0:
        put_laws(now, m.laws, m.load[i], m.held[i], m.u[i])
    for e in range(count):
        j = t.prescribed.dof[e]
        m.q[i, t.dofs.q[j]] = m.held[i, e]
        m.v[i, j] = m.held[i, count + e]


@wp.func(inline=False)
def put_between(
    t: Tables, x: StepRows, m: MeetingRows, i: int, h: wp.float64, part: wp.float64, start: wp.float64, knows: bool
):  # fmt: skip
    """The state (1) a part of a step from a time further on; prescribed coordinates are on their motion where that is
    known to the kernel."""
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
            if is_stored(t.node[k].has_quaternion):
                group.take_rate(t, i, k, so3.ZERO, m.move, m.rate, m.a, m.v, m.a)
    if knows:
        follow_laws(t, m, i, start + part * h)


@wp.func
def gap_within(x: vec3, y: vec3, h: wp.float64, part: wp.float64) -> wp.float64:
    """The gap by the cubic through gaps and rates of a pair a time h apart."""
    rest = so3.ONE - part
    late = part * part * ((so3.ONE + so3.TWO * rest) * y[0] - rest * h * y[1])
    return rest * rest * ((so3.ONE + so3.TWO * part) * x[0] + part * h * x[1]) + late


@wp.func
def crossing(x: vec3, y: vec3, h: wp.float64, level: wp.float64, last: wp.float64) -> wp.float64:
    """Where before the part `last`, by that cubic, the gap comes to the level, which it begins on one side of and then
    is on the other."""
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
def stride_from(t: Tables, m: MeetingRows, i: int, h: wp.float64, rest: wp.float64) -> wp.float64:
    """Length of the next stride by (2), no more than the rest of the step."""
    stride = wp.float64(rest)
    for e in range(m.left.shape[1]):
        x = m.left[i, e]
        y = m.end[i, e]
        radius = least_radius(t, e)
        limit = limit_of(m.start[i, e], y, radius, GRAZE, DEEPER)
        way = LONGER * h * wp.max(x[2], y[2])
        if so3.HALF * (x[0] + y[0] - rest * way) < limit:
            stride = wp.min(stride, wp.max(x[0] - limit, SHORT * radius) / way)
    return stride


@wp.func
def first_inside(t: Tables, m: MeetingRows, i: int, h: wp.float64, stride: wp.float64) -> wp.float64:
    """The part of a stride at which a ball comes to the surface, or where it has been there to the limit, of those
    that go beyond it; more than one where none does."""
    found = wp.float64(2.0)
    for e in range(m.left.shape[1]):
        x = m.left[i, e]
        y = m.right[i, e]
        radius = least_radius(t, e)
        limit = limit_of(m.start[i, e], m.end[i, e], radius, GRAZE, DEEPER)
        inside = wp.float64(2.0)
        if y[0] < limit:
            inside = wp.float64(1.0)
        if may_have_met(stride * h, x, y, limit) == 1:
            for n in range(1, LOOKS):
                look = LOOK * wp.float64(LOOKS - n)
                if gap_within(x, y, stride * h, look) < limit:
                    inside = look
        if inside <= so3.ONE:
            level = wp.where(m.start[i, e][0] > GRAZE * radius, so3.ZERO, limit)
            at = so3.ZERO
            if x[0] > level:
                at = crossing(x, y, stride * h, level, inside)
            found = wp.min(found, at)
    return found


@wp.func(inline=False)
def unseen_meeting(
    t: Tables, s: Scratch, x: StepRows, m: MeetingRows, i: int, h: wp.float64, start: wp.float64, knows: bool
) -> wp.float64:  # fmt: skip
    """The part of a step at which a ball came inside something that the ends of the step do not show; zero where none
    did."""
    copy_approaches(i, m.start, m.left)
    part = wp.float64(0.0)
    count = wp.int32(0)
    while part < so3.ONE and count < MOST_STRIDES:
        rest = so3.ONE - part
        stride = stride_from(t, m, i, h, rest)
        if stride < rest:
            put_between(t, x, m, i, h, part + stride, start, knows)
            note_approaches(t, s, i, m.q, m.v, m.v, m.right)
        else:
            copy_approaches(i, m.end, m.right)
        inside = first_inside(t, m, i, h, stride)
        if inside <= so3.ONE:
            return wp.max(part + inside * stride, wp.float64(1e-12))
        copy_approaches(i, m.right, m.left)
        part = wp.where(stride < rest, part + stride, so3.ONE)
        count += 1
    return so3.ZERO


@wp.func
def change_of_speed(t: Tables, x: StepRows, c: Tolerances, i: int, h: wp.float64) -> wp.float64:
    """What (3) is without s, over the tolerance."""
    change = wp.float64(0.0)
    for j in range(t.nv):
        change = wp.max(change, wp.abs(x.a[i, j] - x.before[i, j]) * x.inverse_scale[j])
    return h * change / (c.atol_v + c.rtol * largest(t.nv, i, x.inverse_scale, x.v))


@wp.func
def first_change(
    t: Tables, x: StepRows, m: MeetingRows, c: Tolerances, i: int, h: wp.float64, is_refused: bool
) -> wp.float64:  # fmt: skip
    """The part of a step at which a touch began or ended, the first that matters; zero where none does."""
    size = wp.float64(-1.0)
    found = wp.float64(2.0)
    for e in range(m.start.shape[1]):
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
    t: Tables, s: Scratch, x: StepRows, m: MeetingRows, c: Tolerances, i: int, h: wp.float64, going: int,
    start: wp.float64, knows: bool,
) -> wp.float64:  # fmt: skip
    """The part of a step after which it is to end: where a ball came inside something unseen, or where a touch began or
    ended; zero where it is to end nowhere. `knows` says whether the kernel knows prescribed motions at all times, and
    `start` when the step starts. Notes the approaches at the end of a step that was found."""
    if going != CONVERGED or m.end.shape[1] == 0:
        return so3.ZERO
    note_approaches(t, s, i, x.q, x.v, x.a, m.end)
    is_refused = x.notes[i, ERROR] > so3.ONE
    change = first_change(t, x, m, c, i, h, is_refused)
    if is_refused:
        return change
    unseen = unseen_meeting(t, s, x, m, i, h, start, knows)
    if unseen > so3.ZERO and change > so3.ZERO:
        return wp.min(unseen, change)
    return wp.max(unseen, change)


@wp.func
def begin_approaches(t: Tables, s: Scratch, x: StepRows, m: MeetingRows, i: int, looks: bool):
    """Note the approaches at the state from which steps start that look along their way."""
    if looks and m.start.shape[1] > 0:
        note_approaches(t, s, i, x.q, x.v, x.a, m.start)


@wp.func
def keep_approaches(m: MeetingRows, i: int):
    """Let the next step start where this one ended."""
    copy_approaches(i, m.end, m.start)


@wp.func
def no_event(
    t: Tables, s: Scratch, x: StepRows, m: MeetingRows, c: Tolerances, i: int, h: wp.float64, going: int,
    start: wp.float64, knows: bool,
) -> wp.float64:  # fmt: skip
    """Of robots that nothing can touch."""
    return wp.float64(0.0)


@wp.func
def no_approaches(t: Tables, s: Scratch, x: StepRows, m: MeetingRows, i: int, looks: bool):
    """Of robots that nothing can touch."""
    ...
