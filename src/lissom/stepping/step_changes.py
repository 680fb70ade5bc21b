"""Steps of fixed size in which a stiff force begins or ends, inside kernels: that of a contact, a stop, a slack cable.

Such a force can rise from zero to many times the weight of its bodies within one step. Schemes of second order weight
the forces of both ends of a step, so that a force at the end of one step acts in the next one, too, although the bodies
may have parted by then. This would make energy: a ball would leave the floor faster than it came. Implicit Euler takes
the force at the end of a step alone, and never makes energy in a force whose potential is convex. Therefore a step is
repeated with its weights if the normal force N of a pair in contact changes by more than half within one of its stages,
and the speed by more than a part ε of the fastest one:

    |Nₙ₊₁ − Nₙ| > ½ max(Nₙ₊₁, Nₙ)   and   h |aₙ₊₁ − aₙ| > ε max |v|                                      (1)

Stops and slack cables take the place of pairs by (1) of spring_changes, unless the energy of their change
is a small part of the kinetic energy. A robot whose forces change so in a step begins the next one with these weights.
They return when (1) no longer holds.

Such a step is plastic: bodies that meet in it do not part with the speed of their restitution e. Implicit Euler loses
half of the change of the velocity times the impulse, and half of the change of the force times that of the depth. Of
pairs that close at the start, the share e² of the energy would have come back:

    Σ ½ e² (h N |δ̇ₙ₊₁ − δ̇ₙ| + |Nₙ₊₁ − Nₙ| |δₙ₊₁ − δₙ|),   e = 1 for pairs that open                       (2)

A step is rejected, and taken in parts (driver), if (2) exceeds a hundredth of the kinetic energy of the robot, of the
energy that its contacts and springs store, and of (2) together. If the first try by the scheme already says so,
implicit Euler is not tried. The kinetic energy is that in the frame of the world, so that fewer steps are divided where
bodies travel fast together. Pairs that are slower than twice the speed that gravity gives in the whole step do not
count: their bounces are shorter than the step. Rollouts are not divided, and stay plastic.

A step is also rejected if a ball went through an obstacle (contact_changes).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportReturnType=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.terms import Acting, no_memory, no_springs, spring_count
from lissom.lie import so3
from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.linear_algebra import largest
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS, Scratch
from lissom.stepping.contact_changes import (
    any_pair_differs,
    energy_of_pairs,
    keep_contacts,
    note_contacts,
    passes_through,
)
from lissom.stepping.contact_search import ContactRows, put_motion
from lissom.stepping.newton_stages import Counts
from lissom.stepping.spring_changes import CHANGE, energy_of_springs, jump_of_springs, keep_springs
from lissom.stepping.step_rows import IS_NOTED, IS_PLASTIC, PASSED, StepRows
from lissom.systems.mass import armature_energy

# Verdicts on a step: it is accepted; repeated with implicit Euler; rejected; or divided without a try of implicit Euler
KEPT, CHANGED, REJECTED, COSTLY = range(4)

LEAST_CHANGE = wp.constant(wp.float64(1e-3))  # ε of (1)
SLOW = wp.constant(wp.float64(2.0))  # speed of bounces that are not resolved, over that of gravity in a step
LEAST_JUMP = wp.constant(wp.float64(1e-4))  # of the energy of a change of springs, over the kinetic energy
LOST = wp.constant(wp.float64(0.01))  # largest part of the kinetic energy that (2) may be


def may_change(model: Model) -> bool:
    """Whether fixed steps of a robot are judged."""
    one = model.of_row(0, 1)
    return len(one.contacts.pair) > 0 or spring_count(one) > 0


@wp.func
def has_pairs(m: ContactRows) -> bool:
    """Whether the robot may have contacts."""
    return m.start.shape[1] > 0


@wp.func
def has_springs(m: ContactRows) -> bool:
    """Whether the robot has springs that are measured."""
    return m.spring_start.shape[1] > 0


@wp.func
def is_judged(m: ContactRows) -> bool:
    """Whether fixed steps are judged."""
    return has_pairs(m) or has_springs(m)


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
def changes_speed(t: Tables, x: StepRows, i: int, h: wp.float64, gravity: vec3) -> bool:
    """The second condition of (1), in natural units. The speed that gravity gives in a step counts as the least of the
    fastest one, so that rest is not disturbed by rounding."""
    change = wp.float64(0.0)
    for j in range(t.nv):
        change = wp.max(change, wp.abs(x.a[i, j] - x.before[i, j]) * x.inverse_scale[j])
    fastest = wp.max(largest(t.nv, i, x.inverse_scale, x.v), largest(t.nv, i, x.inverse_scale, x.v_start))
    return h * change > LEAST_CHANGE * wp.max(fastest, h * wp.length(gravity))


@wp.func
def no_pair_differs(s: Scratch, m: ContactRows, i: int, part: wp.float64) -> bool:
    """`any_pair_differs` of robots without contacts."""
    return False


@wp.func
def energy_of_none(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, slow: wp.float64
):  # fmt: skip
    """`energy_of_pairs` of robots without contacts."""
    return so3.ZERO, so3.ZERO


@wp.func
def passes_none(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64) -> bool:
    """`passes_through` of robots without contacts."""
    return False


@wp.func
def notes_none(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: Counts):
    """`note_contacts` of robots without contacts."""
    ...


@wp.func
def keeps_none(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64):
    """`keep_contacts` of robots without contacts."""
    ...


CONTACTS = note_contacts, any_pair_differs, energy_of_pairs, passes_through, keep_contacts
NO_CONTACTS = notes_none, no_pair_differs, energy_of_none, passes_none, keeps_none


def judging_of(act: Acting) -> tuple[Any, Any, Any]:
    """The functions (begin, judge, keep) of the step kernel for robots with the forces `act`.

    begin(t, s, x, m, i, counts) notes contacts and springs at the start of a run of fixed steps, unless the last step
    has done it. judge, below, is the verdict on a step. keep(t, s, x, m, i, h, counts) notes contacts and springs at
    the end of an accepted step, after the anchors have been updated there.
    """
    measure = act.measure
    if act.renew is no_memory and measure is no_springs:
        return begins_unnoted, no_verdict, keeps_nothing
    note, any_differs, energy, passes, keep_pairs = NO_CONTACTS if act.renew is no_memory else CONTACTS

    @wp.func(module="unique")
    def begin(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: Counts):
        if has_pairs(m):
            note(t, s, x, m, i, counts)
        if has_springs(m) and counts[i, IS_NOTED] == 0:
            put_motion(t, s, i, x.q, x.v, x.a)
            measure(t, s, i, x.q, x.v, x.u, x.inverse_scale, m.spring_start, 0)

    @wp.func(module="unique")
    def loses_rebound(
        t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, whole: wp.float64, gravity: vec3
    ) -> bool:  # fmt: skip
        """Whether (2) of a step, which is a part of a step of size `whole`, is too large. Forces and speeds at its end
        depend little on the scheme."""
        lost = wp.float64(0.0)
        stored = wp.float64(0.0)
        slow = SLOW * wp.length(gravity) * wp.max(whole, h)
        if has_pairs(m):
            lost, stored = energy(t, s, x, m, i, h, slow)
        if has_springs(m):
            lost_in_springs, stored_in_springs = energy_of_springs(m, i, h, slow)
            lost += lost_in_springs
            stored += stored_in_springs
        return lost > LOST * (kinetic_energy(t, s, x, i) + stored + lost)

    @wp.func(module="unique")
    def judge(
        t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, whole: wp.float64, is_last: bool,
        divides: bool, gravity: vec3, counts: Counts,
    ) -> int:  # fmt: skip
        """The verdict on a fixed step after one of its stages. Sets whether the next step begins with implicit Euler.

        Poses, twists and contacts in s are those of the last evaluation of the stage, which differ from those at its
        end by less than the tolerance of Newton's method.

        Args:
            whole: size of the step of which this one is a part [s]. is_last: whether the stage ends the step. divides:
            whether the step may be taken in parts. counts: of all instances; column IS_PLASTIC is 1 if the step has the
            weights of implicit Euler.
        """
        if not is_judged(m):
            return KEPT
        if s.status[i] == STATUS_TOO_MANY_PAIRS:
            return REJECTED
        differs = has_pairs(m) and any_differs(s, m, i, CHANGE)
        if has_springs(m):
            measure(t, s, i, x.q, x.v, x.u, x.inverse_scale, m.spring_end, 0)
            jump = jump_of_springs(m, i)
            differs = differs or (jump > so3.ZERO and jump > LEAST_JUMP * kinetic_energy(t, s, x, i))
        changed = differs and changes_speed(t, x, i, h, gravity)
        if changed and counts[i, IS_PLASTIC] == 0:
            counts[i, PASSED] = 0
            if is_last and divides and loses_rebound(t, s, x, m, i, h, whole, gravity):
                return COSTLY
            return CHANGED
        if not is_last:
            return KEPT
        counts[i, PASSED] = 0
        if has_pairs(m) and passes(t, s, x, m, i, h):
            counts[i, PASSED] = 1
            return REJECTED
        if counts[i, IS_PLASTIC] == 1 and divides and loses_rebound(t, s, x, m, i, h, whole, gravity):
            return REJECTED
        counts[i, IS_PLASTIC] = wp.where(changed, 1, 0)
        return KEPT

    @wp.func(module="unique")
    def keep(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, counts: Counts):
        if has_pairs(m):
            keep_pairs(t, s, x, m, i, h)
        keep_springs(m, i)
        counts[i, IS_NOTED] = 1

    return begin, judge, keep


@wp.func
def begins_unnoted(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, counts: Counts):
    """`begin` of robots without contacts and springs."""
    ...


@wp.func
def no_verdict(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, whole: wp.float64, is_last: bool,
    divides: bool, gravity: vec3, counts: Counts,
) -> int:  # fmt: skip
    """`judge` of robots without contacts and springs."""
    return int(KEPT)


@wp.func
def keeps_nothing(t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, h: wp.float64, counts: Counts):
    """`keep` of robots without contacts and springs."""
    ...
