"""Springs that stiffen or become slack within a step of fixed size, inside kernels: stops of joints and couplings,
cables, elastic tendons, nonlinear springs (`measure` of forces.term).

The force f of a stop acts as that of a contact does (step_changes). It also changes by more than half while the joint
vibrates on its stop, which makes no energy. So the stiffness k must change as well:

    |fₙ₊₁ − fₙ| > ½ max(|fₙ₊₁|, |fₙ|)   and   |kₙ₊₁ − kₙ| > max(|kₙ₊₁|, |kₙ|)/10                         (1)

Of other springs one end of the step must be slack, f = k = 0. A spring that hardens smoothly makes energy at one place
of its vibration and loses it at another, and implicit Euler would damp it.

In springs for which this holds, a step by implicit Euler loses the energy (2) of step_changes. The restitution e of a
spring with the damping c follows from the mass m that it stops, as if no other force acted in the step:

    e = exp(−π ζ/√(1 − ζ²)),   ζ = c/(2 √(k m)),   m = h |f/Δẋ|                                           (2)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportReturnType=false

from __future__ import annotations

import math

import warp as wp

from lissom.forces.term import (
    DAMPING,
    FORCE,
    KIND,
    PLACE,
    PLACE_RATE,
    SIZE,
    SLOPE,
    SPRING_NUMBERS,
    STIFFNESS,
    STOP,
    TAUT_FROM,
    TENDON,
)
from lissom.lie import so3
from lissom.stepping.contact_search import ContactRows, Rows

CHANGE = wp.constant(wp.float64(0.5))  # of the force in (1)
CHANGE_OF_STIFFNESS = wp.constant(wp.float64(0.1))
PI = wp.constant(wp.float64(math.pi))


@wp.func
def differs(now: wp.float64, before: wp.float64, part: wp.float64) -> bool:
    """One of the two conditions (1)."""
    return wp.abs(now - before) > part * wp.max(wp.abs(now), wp.abs(before))


@wp.func
def force_in(rows: Rows, m: ContactRows, i: int, at: int) -> wp.float64:
    """f of the spring whose numbers begin in column `at`, at the end of a step whose springs are `rows`. An elastic
    tendon has the inputs of the present stage at both ends: they may jump where a step begins."""
    if m.spring_end[i, at + KIND] == wp.float64(TENDON):
        stretch = rows[i, at + PLACE] - m.spring_end[i, at + TAUT_FROM]
        return m.spring_end[i, at + STIFFNESS] * wp.max(stretch, so3.ZERO)
    return rows[i, at + FORCE]


@wp.func
def slope_in(rows: Rows, m: ContactRows, i: int, at: int) -> wp.float64:
    """k of the same spring."""
    if m.spring_end[i, at + KIND] == wp.float64(TENDON):
        is_taut = rows[i, at + PLACE] > m.spring_end[i, at + TAUT_FROM]
        return wp.where(is_taut, m.spring_end[i, at + STIFFNESS], so3.ZERO)
    return rows[i, at + SLOPE]


@wp.func
def spring_differs(m: ContactRows, i: int, at: int) -> bool:
    """(1) for the spring whose numbers begin in column `at`."""
    f = force_in(m.spring_end, m, i, at)
    k = slope_in(m.spring_end, m, i, at)
    before = force_in(m.spring_start, m, i, at)
    k_before = slope_in(m.spring_start, m, i, at)
    begins = before == so3.ZERO and k_before == so3.ZERO
    ends = f == so3.ZERO and k == so3.ZERO
    is_one_sided = begins or ends or m.spring_end[i, at + KIND] == wp.float64(STOP)
    return is_one_sided and differs(f, before, CHANGE) and differs(k, k_before, CHANGE_OF_STIFFNESS)


@wp.func
def spring_count(m: ContactRows) -> int:
    """Number of springs of a robot."""
    return m.spring_start.shape[1] / SPRING_NUMBERS


@wp.func(inline=False)
def jump_of_springs(m: ContactRows, i: int) -> wp.float64:
    """The energy ½ |Δf Δx| [J] of all springs for which (1) holds, which a scheme may make of their change."""
    jump = wp.float64(0.0)
    for e in range(spring_count(m)):
        at = e * SPRING_NUMBERS
        if spring_differs(m, i, at):
            df = force_in(m.spring_end, m, i, at) - force_in(m.spring_start, m, i, at)
            jump += so3.HALF * wp.abs(df * (m.spring_end[i, at + PLACE] - m.spring_start[i, at + PLACE]))
    return jump


@wp.func
def rebound_of_spring(c: wp.float64, k: wp.float64, m: wp.float64) -> wp.float64:
    """e of (2)."""
    most = so3.TWO * wp.sqrt(wp.max(k * m, so3.ZERO))
    if c <= so3.ZERO:
        return so3.ONE
    if c >= most:
        return so3.ZERO
    ratio = c / most
    return wp.exp(-PI * ratio / wp.sqrt(so3.ONE - ratio * ratio))


@wp.func(inline=False)
def energy_of_springs(m: ContactRows, i: int, h: wp.float64, slow: wp.float64):
    """The energy [J] that a plastic step loses in springs that differ, by (2) of step_changes, and the energy f²/(2 k)
    that all of them store at one end of the step. Springs slower than `slow` [m/s] lose none."""
    lost = wp.float64(0.0)
    stored = wp.float64(0.0)
    for e in range(spring_count(m)):
        at = e * SPRING_NUMBERS
        before = wp.abs(force_in(m.spring_start, m, i, at))
        now = wp.abs(force_in(m.spring_end, m, i, at))
        k_before = slope_in(m.spring_start, m, i, at)
        k_now = slope_in(m.spring_end, m, i, at)
        most = so3.ZERO
        if k_before > so3.ZERO:
            most = so3.HALF * before * before / k_before
        if k_now > so3.ZERO:
            most = wp.max(most, so3.HALF * now * now / k_now)
        stored += most
        rate_before = m.spring_start[i, at + PLACE_RATE]
        rate_now = m.spring_end[i, at + PLACE_RATE]
        fastest = wp.max(wp.abs(rate_before), wp.abs(rate_now)) / m.spring_end[i, at + SIZE]
        if spring_differs(m, i, at) and fastest >= slow:
            turn = wp.abs(rate_now - rate_before)
            share = so3.ONE
            if now > before and turn > so3.ZERO:
                share = rebound_of_spring(m.spring_end[i, at + DAMPING], k_now, h * now / turn)
            way = wp.abs(m.spring_end[i, at + PLACE] - m.spring_start[i, at + PLACE])
            lost += share * share * so3.HALF * (h * now * turn + wp.abs(now - before) * way)
    return lost, stored


@wp.func
def keep_springs(m: ContactRows, i: int):
    """Take the springs at the end of an accepted step as those at the start of the next one. They are those of the last
    evaluation of the step, which differ from those at its end by less than the tolerance of Newton's method."""
    for j in range(m.spring_start.shape[1]):
        m.spring_start[i, j] = m.spring_end[i, j]
