"""Contacts that begin or end in a step of fixed size, and balls that pass through an obstacle in it, inside kernels;
the equations are those of step_changes.

A ball went through an obstacle if it passed it by more than half of its radius, without contact at the ends of the step
(contact_search). Only pairs that are near each other at one of the ends are searched, or all pairs if a ball may have
moved farther than the margin of the list of near pairs.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.forces.contact import (
    ContactLaw,
    contact_of,
    list_near,
    note_if_open,
    put_push,
    renew_near,
    touching_centre,
    twist_of,
)
from lissom.lie import se3, so3
from lissom.lie.types import vec3
from lissom.model.tables import Tables
from lissom.passes.scratch import Scratch
from lissom.passes.traversal import origin_between
from lissom.stepping.contact_search import (
    FOUND,
    LIST,
    LISTED,
    LONGER,
    TOUCHING,
    ContactRows,
    fastest_pair,
    hidden_contact,
    least_radius,
    limit_of,
    may_be_in_contact,
    put_both_ends,
    put_motion,
)
from lissom.stepping.newton_stages import Counts
from lissom.stepping.step_rows import IS_NOTED, StepRows

SLIGHT_CHANGE = wp.constant(wp.float64(0.1))  # of a contact that lasts
NEARLY = wp.constant(wp.float64(0.99))
THROUGH = wp.constant(wp.float64(0.5))  # depth, in radii, of a ball that went through an obstacle
HALVINGS = wp.constant(30)
FAR = wp.constant(wp.float64(0.05))  # distance since the last list, in margins, from which a new one pays if the robot
SOON = wp.constant(wp.float64(16.0))  # needs more than this number of steps to move as far again
FOREVER = wp.constant(wp.float64(1e30))  # a time in which all pairs may meet [s]


@wp.func
def rebound(law: ContactLaw, speed: wp.float64) -> wp.float64:
    """Coefficient of restitution e of a law at an approach speed v: that of its hysteresis, (5) of robot.contact_laws
    for fast impacts, times that of its damping, c v (1 + e) = ln((1 + c v)/(1 − c e v))."""
    e = wp.sqrt(wp.max((so3.ONE - law.hysteresis) / (so3.ONE + law.hysteresis), so3.ZERO))
    y = law.damping * speed
    if y < wp.float64(1e-9):
        return e
    low = wp.float64(0.0)
    high = wp.min(so3.ONE, so3.ONE / y)
    for _n in range(HALVINGS):
        trial = so3.HALF * (low + high)
        above = y * (so3.ONE + trial) > wp.log((so3.ONE + y) / (so3.ONE - trial * y))
        low = wp.where(above, trial, low)
        high = wp.where(above, high, trial)
    return e * low


@wp.func
def pair_speed(t: Tables, s: Scratch, i: int, e: int) -> wp.float64:
    """Speed of the ball's centre of pair e relative to the obstacle [m/s]."""
    a = t.contacts.ball_node[t.contacts.pair[e, 0]]
    b = t.contacts.obstacle_node[t.contacts.pair[e, 1]]
    rho = twist_of(s, i, a) - twist_of(s, i, b)
    c = touching_centre(t, s, i, e, origin_between(t, s, i, a, b))
    return wp.length(se3.linear(rho) + wp.cross(se3.angular(rho), c))


@wp.func(inline=False)
def any_pair_differs(s: Scratch, m: ContactRows, i: int, part: wp.float64) -> bool:
    """The first condition of (1) with a `part` in place of ½, by the last evaluation of contacts. Lists the pairs in
    contact as `found`."""
    count = wp.int32(0)
    still = wp.int32(0)
    different = wp.int32(0)
    for j in range(s.near.count[i]):
        now = s.near.push[i, j]
        if now > so3.ZERO:
            m.found[i, count] = j
            count += 1
            before = m.push[i, s.near.pair[i, j]]
            if before > so3.ZERO:
                still += 1
            if wp.abs(now - before) > part * wp.max(now, before):
                different += 1
    m.n[i, FOUND] = count
    return different > 0 or still < m.n[i, TOUCHING]


@wp.func(inline=False)
def energy_of_pairs(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, slow: wp.float64
):  # fmt: skip
    """The energy (2) [J] that a plastic step loses, and the energy that its contacts store at one end of the step.
    Pairs slower than `slow` [m/s] lose none."""
    count = wp.int32(0)
    for j in range(m.n[i, FOUND]):
        e = s.near.pair[i, m.found[i, j]]
        m.searched[i, count] = e
        m.noted[i, e] = 1
        count += 1
    for j in range(m.n[i, TOUCHING]):
        if m.noted[i, m.touching[i, j]] == 0:
            m.searched[i, count] = m.touching[i, j]
            count += 1
    m.n_searched[i] = count
    put_both_ends(t, s, x, m, i)
    lost = wp.float64(0.0)
    stored = wp.float64(0.0)
    for j in range(count):
        e = m.searched[i, j]
        m.noted[i, e] = 0
        before = m.push[i, e]
        now = so3.ZERO
        if j < m.n[i, FOUND]:
            now = s.near.push[i, m.found[i, j]]
        begins = m.start[i, e]
        ends = m.end[i, e]
        row = t.contacts.pair[e, 2]
        stored += wp.max(-now * ends[0], -before * begins[0]) / (t.contacts.law[row, 1] + so3.ONE)
        share = so3.ONE
        if begins[1] < so3.ZERO:
            share = rebound(contact_of(t, s, i, e, False).law, -begins[1])
        if wp.max(wp.abs(begins[1]), wp.abs(ends[1])) < slow:
            share = so3.ZERO
        kinetic = h * now * wp.abs(ends[1] - begins[1])
        elastic = wp.abs(now - before) * wp.abs(ends[0] - begins[0])
        lost += share * share * so3.HALF * (kinetic + elastic)
    return lost, stored


@wp.func
def may_pass(
    t: Tables, s: Scratch, m: ContactRows, i: int, j: int, h: wp.float64, fastest: wp.float64
) -> bool:  # fmt: skip
    """Whether (1) of contact_search does not exclude that near pair j went through an obstacle."""
    e = s.near.pair[i, j]
    radius = least_radius(t, e)
    gap = s.near.gap[i, j]
    begins = vec3(m.gap[i, e], so3.ZERO, m.speed[i, e])
    limit = limit_of(begins, vec3(gap, so3.ZERO, so3.ZERO), radius, THROUGH, THROUGH)
    if is_bounded(t, e) and may_be_in_contact(h, begins, vec3(gap, so3.ZERO, fastest), limit) == 0:
        return False
    return may_be_in_contact(h, begins, vec3(gap, so3.ZERO, pair_speed(t, s, i, e)), limit) == 1


@wp.func
def is_bounded(t: Tables, e: int) -> bool:
    """Whether `fastest_pair` bounds the speed of pair e: its obstacle is bounded, or at rest."""
    return t.contacts.obstacle_roams[t.contacts.pair[e, 1]] == 0


@wp.func(inline=False)
def list_doubtful(t: Tables, s: Scratch, m: ContactRows, i: int, h: wp.float64):
    """Search the pairs that may have gone through an obstacle. Those in contact at an end of the step have not. Of the
    others these may have: those near at its end that the bound does not exclude or that were not near at its start,
    those near at its start alone, and all if a ball may have moved farther than near pairs are apart."""
    fastest = fastest_pair(t, s, i)
    is_fast = LONGER * h * fastest > t.contacts.margin
    count = wp.int32(0)
    if m.n[i, LIST] == s.near.lists[i] and not is_fast:  # the same pairs are near at both ends
        for j in range(s.near.count[i]):
            is_open = s.near.push[i, j] == so3.ZERO and m.push[i, s.near.pair[i, j]] == so3.ZERO
            if is_open and may_pass(t, s, m, i, j, h, fastest):
                m.searched[i, count] = s.near.pair[i, j]
                count += 1
        m.n_searched[i] = count
        return
    for j in range(m.n[i, LISTED]):
        m.noted[i, m.listed[i, j]] = 1
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        passes = m.noted[i, e] == 0
        m.noted[i, e] = 2
        is_open = s.near.push[i, j] == so3.ZERO and m.push[i, e] == so3.ZERO
        if is_open and (passes or may_pass(t, s, m, i, j, h, fastest)):
            m.searched[i, count] = e
            count += 1
    for j in range(m.n[i, LISTED]):
        e = m.listed[i, j]
        if m.noted[i, e] == 1 and m.push[i, e] == so3.ZERO:
            m.searched[i, count] = e
            count += 1
            m.noted[i, e] = 2
    if is_fast:
        for e in range(t.contacts.pair.shape[0]):
            if m.noted[i, e] == 0:
                m.searched[i, count] = e
                count += 1
    for j in range(m.n[i, LISTED]):
        m.noted[i, m.listed[i, j]] = 0
    for j in range(s.near.count[i]):
        m.noted[i, s.near.pair[i, j]] = 0
    m.n_searched[i] = count


@wp.func(inline=False)
def passes_through(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64) -> bool:
    """Whether a ball went through an obstacle in a step. The motion of the nodes in s must be that at its end."""
    list_doubtful(t, s, m, i, h)
    if m.n_searched[i] == 0:
        return False
    put_both_ends(t, s, x, m, i)
    passed = hidden_contact(t, s, x, m, i, h, so3.ZERO, False, THROUGH, THROUGH) > so3.ZERO
    put_motion(t, s, i, x.q, x.v, x.a)
    return passed


@wp.func(inline=False)
def note_contacts(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: Counts):
    """Note contacts and gaps at the start of a run of fixed steps, unless the last step has done it."""
    s.near.is_swept[i] = 0  # anchors may have been given to any pair
    if counts[i, IS_NOTED] == 1:
        for j in range(m.n[i, TOUCHING]):
            m.deepest[i] = wp.max(m.deepest[i], -m.gap[i, m.touching[i, j]])
        return
    evaluate_contacts(t, s, x, i)
    take_contacts(t, s, m, i, FOREVER)


@wp.func(inline=False)
def keep_contacts(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64):
    """Note contacts and gaps at the end of an accepted step, after the anchors have been updated there. Without
    anchors, contacts that last are those of the last evaluation of the step: they differ from those at its end by a
    small part of their change, unless one of them changes much or is the deepest so far."""
    if t.contacts.sticks == 0 and (any_pair_differs(s, m, i, SLIGHT_CHANGE) or may_be_deepest(s, m, i)):
        evaluate_contacts(t, s, x, i)
    take_contacts(t, s, m, i, h)


@wp.func
def may_be_deepest(s: Scratch, m: ContactRows, i: int) -> bool:
    """Whether a contact of the last evaluation is nearly as deep as the deepest one so far, or deeper."""
    for j in range(s.near.count[i]):
        if s.near.push[i, j] > so3.ZERO and -s.near.gap[i, j] > NEARLY * m.deepest[i]:
            return True
    return False


@wp.func
def evaluate_contacts(t: Tables, s: Scratch, x: StepRows, i: int):
    """Store `gap` and `push` of near pairs at the state of x."""
    put_motion(t, s, i, x.q, x.v, x.a)
    renew_near(t, s, i)
    for j in range(s.near.count[i]):
        if not note_if_open(t, s, i, j):
            put_push(s, i, j, contact_of(t, s, i, s.near.pair[i, j], False))


@wp.func(inline=False)
def take_contacts(t: Tables, s: Scratch, m: ContactRows, i: int, h: wp.float64):
    """Take the contacts in s.near, and the gaps of near pairs, as those at the start of the next step. Pairs that can
    neither meet nor part in a step h have an upper bound in place of their speed. The list of near pairs is renewed
    where it pays: the robot moves slowly and is far from the place of the last list, so that few pairs are surely
    open."""
    fastest = fastest_pair(t, s, i)
    m.n[i, LIST] = s.near.lists[i]
    for j in range(m.n[i, TOUCHING]):
        m.push[i, m.touching[i, j]] = so3.ZERO
    count = wp.int32(0)
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        m.listed[i, j] = e
        m.gap[i, e] = s.near.gap[i, j]
        m.speed[i, e] = fastest
        if wp.abs(s.near.gap[i, j]) < LONGER * h * fastest or not is_bounded(t, e):
            m.speed[i, e] = pair_speed(t, s, i, e)
        if s.near.push[i, j] > so3.ZERO:
            m.touching[i, count] = e
            m.push[i, e] = s.near.push[i, j]
            m.deepest[i] = wp.max(m.deepest[i], -s.near.gap[i, j])
            count += 1
    m.n[i, TOUCHING] = count
    m.n[i, LISTED] = s.near.count[i]
    moved = s.near.moved[i]
    if moved > FAR * t.contacts.margin and SOON * h * fastest < moved:
        list_near(t, s, i)
