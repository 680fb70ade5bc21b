"""The error that a step is estimated to make in q and v, from the values of its stages, inside kernels.

e = Σ of the weights `error` of a scheme over (h² a; h vₙ, h² aₙ, h² âₙ; Δ₁, h v₁, h² a₁; …)           (1)
    of v: h Σ of the weights of h v in (1) over (aₙ; a₁, …, a)                                          (2)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.integration.step_rows import ERROR, FIRST_ERROR, FIRST_STAGE, FOLLOWS_RATES, N_STAGES, StepRows, Tolerances
from lissom.lie import so3
from lissom.model.tables import Tables

ADD_UP = wp.constant(wp.float64(2.0))  # errors of steps add up, those of vibrations that go on above all


@wp.func
def is_held(t: Tables, j: int) -> bool:
    """Whether a coordinate has a prescribed motion."""
    found = wp.int32(0)
    for e in range(t.prescribed.dof.shape[0]):
        if t.prescribed.dof[e] == j:
            found = wp.int32(1)
    return found != 0


@wp.func
def weight(t: Tables, x: StepRows, c: Tolerances, i: int, j: int) -> wp.float64:
    """One over the tolerance of a coordinate."""
    size = so3.ONE
    place = t.dofs.q[j]
    if place >= 0:
        size = wp.abs(x.q[i, place]) * x.inverse_scale[j]
    return x.inverse_scale[j] / (c.atol + c.rtol * size)


@wp.func
def velocity_error(
    t: Tables, x: StepRows, c: Tolerances, i: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)
) -> wp.float64:
    """(2) of schemes that add up rates, over the tolerance: the largest entry. What is relative is so to the fastest
    coordinate, as in slow ones stiff vibrations would ask for short steps without end."""
    stages = int(numbers[N_STAGES])
    last = numbers[FIRST_ERROR] / numbers[FIRST_STAGE + 5]
    first = numbers[FIRST_ERROR + 1] - last
    fastest = wp.float64(0.0)
    most = wp.float64(0.0)
    for j in range(t.nv):
        e = last * x.a[i, j] + first * x.before[i, j]
        for k in range(stages - 1):
            e += numbers[FIRST_ERROR + 5 + 3 * k] * x.earlier[i, (3 * k + 2) * t.nv + j]
        fastest = wp.max(fastest, wp.abs(x.v[i, j]) * x.inverse_scale[j])
        if not is_held(t, j):
            most = wp.max(most, wp.abs(e) * h * x.inverse_scale[j])
    return most / (c.atol_v + c.rtol * fastest)


@wp.func
def estimate_error(t: Tables, x: StepRows, c: Tolerances, i: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)):
    """Note (1) of the step just made, over the tolerance: the largest entry, as a mean over many coordinates that rest
    would hide the one that moves."""
    stages = int(numbers[N_STAGES])
    most = wp.float64(0.0)
    for j in range(t.nv):
        at = FIRST_ERROR
        e = numbers[at] * x.bare[i, j] + numbers[at + 2] * x.before[i, j] + numbers[at + 3] * x.ahead_start[i, j]
        e = h * (h * e + numbers[at + 1] * x.v_start[i, j])
        for k in range(stages - 1):
            at = FIRST_ERROR + 4 + 3 * k
            move = x.earlier[i, 3 * k * t.nv + j]
            rate = x.earlier[i, (3 * k + 1) * t.nv + j]
            a = x.earlier[i, (3 * k + 2) * t.nv + j]
            e += numbers[at] * move + h * (numbers[at + 1] * rate + h * numbers[at + 2] * a)
        e = e * weight(t, x, c, i, j)
        if not is_held(t, j):
            most = wp.max(most, wp.abs(e))
    if numbers[FOLLOWS_RATES] != so3.ZERO:
        most = ADD_UP * wp.max(most, velocity_error(t, x, c, i, h, numbers))
    x.notes[i, ERROR] = most
