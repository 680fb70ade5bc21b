"""Steps of fixed size in which a contact begins or ends, inside kernels.

The force of a stiff contact can rise from zero to many times the weight of its bodies within one step. Schemes of
second order weight the forces of both ends of a step, so that a force at the end of one step acts in the next one, too,
although the bodies may have parted by then. This would make energy: a ball would leave the floor faster than it came.
Implicit Euler takes the force at the end of a step alone, and never makes energy in a contact whose potential is
convex. Therefore a step is repeated with its weights if the normal force N of a pair changes by more than half within
one of its stages, and the speed by more than a part ε of the fastest one:

    |Nₙ₊₁ − Nₙ| > ½ max(Nₙ₊₁, Nₙ)   and   h |aₙ₊₁ − aₙ| > ε max |v|                                      (1)

A robot whose contacts change in a step begins the next one with these weights. They return when (1) no longer holds.

Such a step is plastic: bodies that meet in it do not part with the speed of their restitution e. Implicit Euler loses
half of the change of the velocity times the impulse, and half of the change of the force times that of the depth. Of
pairs that close at the start, the share e² of the energy would have come back:

    Σ ½ e² (h N |δ̇ₙ₊₁ − δ̇ₙ| + |Nₙ₊₁ − Nₙ| |δₙ₊₁ − δₙ|),   e = 1 for pairs that open                       (2)

A step is rejected, and taken in parts (driver), if (2) exceeds a hundredth of the kinetic energy of the robot, of the
energy that its contacts store, and of (2) together. If the first try by the scheme already says so, implicit Euler is
not tried. The kinetic energy is that in the frame of the world, so that fewer steps are divided where bodies travel
fast together. Pairs that are slower than twice the speed that gravity gives in the whole step do not count: their
bounces are shorter than the step. Rollouts are not divided, and stay plastic.

A step is also rejected if a ball went through an obstacle, by more than half of its radius, without contact at the ends
of the step (contact_search). Only pairs that are near each other at one of the ends are searched, or all pairs if a
ball may have moved farther than the margin of the list of near pairs.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.forces.contact import (
    ContactLaw,
    contact_of,
    finds_open,
    list_near,
    put_push,
    renew_near,
    touching_centre,
    twist_of,
)
from lissom.lie import se3, so3
from lissom.lie.types import vec3
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.linear_algebra import largest
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS, Scratch
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
from lissom.stepping.step_rows import IS_NOTED, IS_PLASTIC, PASSED, StepRows
from lissom.systems.mass import armature_energy

Counts = wp.array2d(dtype=wp.int32)

# Verdicts on a step: it is accepted; repeated with implicit Euler; rejected; or divided without a try of implicit Euler
KEPT, CHANGED, REJECTED, COSTLY = range(4)

CHANGE = wp.constant(wp.float64(0.5))  # of (1)
SLIGHT_CHANGE = wp.constant(wp.float64(0.1))  # of a contact that lasts
NEARLY = wp.constant(wp.float64(0.99))
LEAST_CHANGE = wp.constant(wp.float64(1e-3))  # ε of (1)
SLOW = wp.constant(wp.float64(2.0))  # speed of bounces that are not resolved, over that of gravity in a step
LOST = wp.constant(wp.float64(0.01))  # largest part of the kinetic energy that (2) may be
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
def kinetic_energy(t: Tables, s: Scratch, x: StepRows, i: int) -> wp.float64:
    """Kinetic energy [J] of the motion of the nodes in s."""
    sum = armature_energy(t, i, x.v)
    for k in range(t.n_dynamic):
        if t.node[k].has_inertia:
            _h, T = kinds.momentum(t, s, i, k, x.v)
            sum += T
    return sum


@wp.func
def pair_speed(t: Tables, s: Scratch, i: int, e: int) -> wp.float64:
    """Speed of the ball's centre of pair e relative to the obstacle [m/s]."""
    a = t.contacts.ball_node[t.contacts.pair[e, 0]]
    b = t.contacts.obstacle_node[t.contacts.pair[e, 1]]
    rho = twist_of(s, i, a) - twist_of(s, i, b)
    c = touching_centre(t, s, i, e, origin_between(t, s, i, a, b))
    return wp.length(se3.linear(rho) + wp.cross(se3.angular(rho), c))


@wp.func
def changes_speed(t: Tables, x: StepRows, i: int, h: wp.float64, gravity: vec3) -> bool:
    """The second condition of (1), in natural units. The speed that gravity gives in a step counts as the least of the
    fastest one, so that rest is not disturbed by rounding."""
    change = wp.float64(0.0)
    for j in range(t.nv):
        change = wp.max(change, wp.abs(x.a[i, j] - x.before[i, j]) * x.inverse_scale[j])
    fastest = wp.max(largest(t.nv, i, x.inverse_scale, x.v), largest(t.nv, i, x.inverse_scale, x.v_start))
    return h * change > LEAST_CHANGE * wp.max(fastest, h * wp.length(gravity))


@wp.func(inline=False)
def any_differs(s: Scratch, m: ContactRows, i: int, part: wp.float64) -> bool:
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
def lost_energy(
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
            share = rebound(contact_of(t, s, i, e).law, -begins[1])
        if wp.max(wp.abs(begins[1]), wp.abs(ends[1])) < slow:
            share = so3.ZERO
        kinetic = h * now * wp.abs(ends[1] - begins[1])
        elastic = wp.abs(now - before) * wp.abs(ends[0] - begins[0])
        lost += share * share * so3.HALF * (kinetic + elastic)
    return lost, stored


@wp.func
def loses_rebound(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, whole: wp.float64, gravity: vec3
) -> bool:  # fmt: skip
    """Whether (2) of a step, which is a part of a step of size `whole`, is too large. Forces and speeds at its end
    depend little on the scheme."""
    lost, stored = lost_energy(t, s, x, m, i, h, SLOW * wp.length(gravity) * wp.max(whole, h))
    return lost > LOST * (kinetic_energy(t, s, x, i) + stored + lost)


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
def judge_stage(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, whole: wp.float64, is_last: bool,
    divides: bool, gravity: vec3, counts: Counts,
) -> int:  # fmt: skip
    """The verdict on a fixed step after one of its stages. Sets whether the next step begins with implicit Euler.

    Poses, twists and contacts in s are those of the last evaluation of the stage, which differ from those at its end by
    less than the tolerance of Newton's method.

    Args:
        whole: size of the step of which this one is a part [s]. is_last: whether the stage ends the step. divides:
        whether the step may be taken in parts. counts: of all instances; column IS_PLASTIC is 1 if the step has the
        weights of implicit Euler.
    """
    if m.start.shape[1] == 0:
        return KEPT
    if s.status[i] == STATUS_TOO_MANY_PAIRS:
        return REJECTED
    changed = any_differs(s, m, i, CHANGE) and changes_speed(t, x, i, h, gravity)
    if changed and counts[i, IS_PLASTIC] == 0:
        counts[i, PASSED] = 0
        if is_last and divides and loses_rebound(t, s, x, m, i, h, whole, gravity):
            return COSTLY
        return CHANGED
    if not is_last:
        return KEPT
    counts[i, PASSED] = 0
    if passes_through(t, s, x, m, i, h):
        counts[i, PASSED] = 1
        return REJECTED
    if counts[i, IS_PLASTIC] == 1 and divides and loses_rebound(t, s, x, m, i, h, whole, gravity):
        return REJECTED
    counts[i, IS_PLASTIC] = wp.where(changed, 1, 0)
    return KEPT


@wp.func
def no_verdict(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, whole: wp.float64, is_last: bool,
    divides: bool, gravity: vec3, counts: Counts,
) -> int:  # fmt: skip
    """`judge_stage` of robots without contacts."""
    return int(KEPT)


@wp.func(inline=False)
def note_contacts(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: Counts):
    """Note contacts and gaps at the start of a run of fixed steps, unless the last step has done it."""
    if m.start.shape[1] == 0:
        return
    s.near.is_swept[i] = 0  # anchors may have been given to any pair
    if counts[i, IS_NOTED] == 1:
        for j in range(m.n[i, TOUCHING]):
            m.deepest[i] = wp.max(m.deepest[i], -m.gap[i, m.touching[i, j]])
        return
    evaluate_contacts(t, s, x, i)
    take_contacts(t, s, m, i, FOREVER)


@wp.func(inline=False)
def keep_contacts(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, counts: Counts):
    """Note contacts and gaps at the end of an accepted step, after the anchors have been updated there. Without
    anchors, contacts that last are those of the last evaluation of the step: they differ from those at its end by a
    small part of their change, unless one of them changes much or is the deepest so far."""
    if m.start.shape[1] == 0:
        return
    if t.contacts.sticks == 0 and (any_differs(s, m, i, SLIGHT_CHANGE) or may_be_deepest(s, m, i)):
        evaluate_contacts(t, s, x, i)
    take_contacts(t, s, m, i, h)
    counts[i, IS_NOTED] = 1


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
        if not finds_open(t, s, i, j):
            put_push(s, i, j, contact_of(t, s, i, s.near.pair[i, j]))


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


@wp.func
def no_contacts(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: Counts):
    """`note_contacts` of robots without contacts."""
    ...


@wp.func
def keeps_none(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, counts: Counts):
    """`keep_contacts` of robots without contacts."""
    ...
