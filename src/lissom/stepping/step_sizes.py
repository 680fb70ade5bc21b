"""The law of adaptive step sizes and of rejected steps, and inputs at a time, inside kernels.

A step of size h with the estimated error e, relative to the tolerance, is accepted if e ≤ 1. The next step has the size

    h · min(4, 0.9 e^(−0.7/p) e₋^(0.4/p)),  e ~ h^p, e₋ the error of the step before                        (1)

After a rejected step the size does not increase. A step rejected for its error is shortened by the factor max(0.2, 0.9
e^(−1/p)). A step for which Newton's method fails is shortened to a quarter. If (1) changes the size little, the size
stays, so that the matrix can be kept. The last two steps before a stop have equal sizes if one step would leave a short
rest. The same holds before an event: the entry of a ball into an obstacle that a step passed through, or the begin or
end of a contact during a rejected step (contact_search).

Loads, prescribed motions and inputs are polynomials of time between knots, or expressions. For other functions the host
plans steps of one size, and a run ends when another size is needed. A stack machine evaluates expressions, which are
programs (robot/expression_programs). In kernels for robots and inputs without expressions (kernel_options) it is empty.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, final

import warp as wp

from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, vec6
from lissom.model.tables import Tables
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS, Scratch
from lissom.robot.expression_programs import DEPTH, Operation
from lissom.stepping.newton_stages import CONVERGED
from lissom.stepping.step_rows import ERROR, HAS_MATRIX, POWER, STEADY, StepRows
from lissom.systems.bordered import LoopRows

Rows = wp.array2d(dtype=wp.float64)
Counts = wp.array2d(dtype=wp.int32)

# Numbers of an instance with adaptive steps: the time of its stop (zero or negative for fixed steps), the present time,
# the size of the next step and the least size [s]; whether sizes, loads and inputs are planned until another size is
# needed; the error of the last step (negative: it was rejected); and the time of the next event, if it is after the
# present time [s].
STOP, NOW, NEXT, LEAST, IS_PLANNED, BEFORE, EVENT = range(7)
ADAPTIVE = 7

SAFETY = wp.constant(wp.float64(0.9))
SHRINK = wp.constant(wp.float64(0.2))
GROW = wp.constant(wp.float64(4.0))
GAIN = wp.constant(wp.float64(1.2))  # if the size would grow by less than this factor, it stays
CUT = wp.constant(wp.float64(0.25))
TINY_ERROR = wp.constant(wp.float64(1e-4))
# Shares of the exponent 1/p of the errors in (1): K. Gustafsson, ACM Trans. Math. Softw. 17, 1991.
OWN_SHARE = wp.constant(wp.float64(0.7))
SHARE_BEFORE = wp.constant(wp.float64(0.4))
WHOLE = wp.constant(wp.float64(1.0 - 1e-9))


@wp.struct
class LawsStruct:
    """Loads, motions and inputs by time: polynomials between knots, (n, order, numbers), and the program that adds the
    numbers of expressions, whose polynomials are zero (stepping/step_sizes)."""

    knots: Rows
    pieces: wp.array3d(dtype=wp.float64)
    code: wp.array2d(dtype=wp.int32)
    numbers: wp.array(dtype=wp.float64)


Laws = by_reference(LawsStruct)


@wp.func
def next_stop(adaptive: Rows, i: int) -> wp.float64:
    """The next time at which a step must end [s]: a stop or an event."""
    if adaptive[i, EVENT] > adaptive[i, NOW]:
        return wp.min(adaptive[i, EVENT], adaptive[i, STOP])
    return adaptive[i, STOP]


@wp.func
def size_towards(left: wp.float64, size: wp.float64) -> wp.float64:
    """Size of the next step, for `left` to the stop and a wanted `size` [s]. Two equal steps lead to the stop if one of
    the wanted size would leave a short rest."""
    if size >= left * WHOLE:
        return left
    return wp.min(size, wp.float64(0.5) * left)


@wp.func
def next_size(adaptive: Rows, i: int) -> wp.float64:
    """Size of the next step of an instance."""
    return size_towards(next_stop(adaptive, i) - adaptive[i, NOW], adaptive[i, NEXT])


@wp.func
def change_of_size(error: wp.float64, before: wp.float64, power: wp.float64, part: wp.float64) -> wp.float64:
    """Factor of (1) on the step size after an accepted step. `part` is the size of this step over the wanted size."""
    change = SAFETY * wp.pow(wp.max(error, TINY_ERROR), -OWN_SHARE / power)
    if before < wp.float64(0.0):
        change = wp.min(change, wp.float64(1.0))
    else:
        change *= wp.pow(wp.max(before, TINY_ERROR), SHARE_BEFORE / power)
    if part < WHOLE:  # a step cut short by a stop does not justify a larger one
        change = wp.max(change * part, wp.float64(1.0))
    if change > wp.float64(1.0) and change < GAIN:
        change = wp.float64(1.0)
    return wp.min(change, GROW)


@wp.func
def cut_of_size(error: wp.float64, power: wp.float64) -> wp.float64:
    """Factor on the size of a step that is rejected for its error."""
    return wp.max(SHRINK, SAFETY * wp.pow(error, -wp.float64(1.0) / power))


@wp.func
def retry(
    t: Tables, x: StepRows, i: int, h: wp.float64, status: int, event: wp.float64,
    numbers: wp.array(dtype=wp.float64), adaptive: Rows, loops: LoopRows, counts: Counts,
) -> int:  # fmt: skip
    """1 if a step must be repeated, otherwise 0; sets the size of the next one by (1).

    Args:
        status: how Newton's iteration ended. event: part of the step up to an event; zero without one.
    """
    error = x.notes[i, ERROR]
    if status == CONVERGED and error <= so3.ONE and event <= so3.ZERO:
        stop = next_stop(adaptive, i)
        adaptive[i, NOW] = wp.where(h < stop - adaptive[i, NOW], adaptive[i, NOW] + h, stop)
        adaptive[i, NEXT] = adaptive[i, NEXT] * change_of_size(
            error, adaptive[i, BEFORE], numbers[POWER], h / adaptive[i, NEXT]
        )
        adaptive[i, BEFORE] = error
        return 0
    adaptive[i, EVENT] = wp.where(event > so3.ZERO, adaptive[i, NOW] + event * h, adaptive[i, EVENT])
    if status != CONVERGED or error > so3.ONE or adaptive[i, EVENT] <= adaptive[i, NOW]:
        adaptive[i, BEFORE] = -so3.ONE
        change = CUT
        if status == CONVERGED and error > so3.ONE:
            change = cut_of_size(error, numbers[POWER])
        adaptive[i, NEXT] = change * h
    restore_start(t, x, i, loops)
    counts[i, STEADY] = 0
    counts[i, HAS_MATRIX] = 0
    return 1


@wp.func
def gives_up(s: Scratch, adaptive: Rows, i: int) -> bool:
    """Whether no shorter step is tried: it would be too short, or the robot has more near pairs than it has room
    for."""
    return adaptive[i, NEXT] < adaptive[i, LEAST] or s.status[i] == STATUS_TOO_MANY_PAIRS


@wp.func
def restore_start(t: Tables, x: StepRows, i: int, loops: LoopRows):
    """Restore q, v, a, â and λ at the start of the step, and the acceleration at the start of the step before."""
    for j in range(x.q.shape[1]):
        x.q[i, j] = x.start[i, j]
    for j in range(t.nv):
        a = x.before[i, j]
        x.a[i, j] = a
        x.v[i, j] = x.v_start[i, j]
        x.before[i, j] = x.before_left[i, j]
        x.ahead[i, j] = x.ahead_left[i, j]
    for row in range(x.force_before.shape[1]):
        loops.force[i, row] = x.force_before[i, row]


@wp.func
def stretch_of(now: wp.float64, knots: wp.array(dtype=wp.float64)) -> int:
    """Index of the last knot at or before a time; 0 if there is none."""
    k = wp.int32(0)
    stop = int(knots.shape[0])
    while stop - k > 1:
        middle = (k + stop) / 2
        inside = now >= knots[middle]
        k = wp.where(inside, middle, k)
        stop = wp.where(inside, stop, middle)
    return k


@wp.func
def put_polynomials(
    x: StepRows, i: int, now: wp.float64, knots: wp.array(dtype=wp.float64), pieces: wp.array3d(dtype=wp.float64)
):
    """Set u at a time from cubics between knots. A row of `pieces` holds their coefficients, highest power first."""
    k = stretch_of(now, knots)
    s = so3.ZERO
    if k > 0:
        s = now - knots[k]
    nu = x.u.shape[1]
    for j in range(nu):
        value = pieces[i, k, j]
        for power in range(1, 4):
            value = value * s + pieces[i, k, power * nu + j]
        x.u[i, j] = value


@wp.func(inline=False)
def law_at(now: wp.float64, k: int, j: int, laws: Laws):
    """Value of law j at a time in piece k: a polynomial in the time since its origin in `knots`, highest power
    first."""
    s = now - laws.knots[1, k]
    value = laws.pieces[k, 0, j]
    for power in range(1, laws.pieces.shape[1]):
        value = value * s + laws.pieces[k, power, j]
    return value


@wp.func
def put_laws(
    now: wp.float64, laws: Laws, load: wp.array(dtype=vec6), motion: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.float64),
):  # fmt: skip
    """Set loads, prescribed coordinates with their rates, and inputs that are expressions, at a time."""
    k = stretch_of(now, laws.knots[0])
    loads = load.shape[0]
    for row in range(loads):
        value = vec6()
        for e in range(6):
            value[e] = law_at(now, k, 6 * row + e, laws)
        load[row] = value
    for j in range(motion.shape[0]):
        motion[j] = law_at(now, k, 6 * loads + j, laws)
    evaluate(now, laws.code, laws.numbers, load, motion, u)


@final
class _Numbers:
    """Python functions under the names of Warp's."""

    float64, pow, min, max = float, pow, min, max


def of_numbers(law: Any) -> Callable[..., float]:
    """A Warp function as a Python function of floats: its code with Python constants and functions."""
    known = {name: getattr(value, "value", value) for name, value in globals().items()}
    return FunctionType(law.func.__code__, known | {"wp": _Numbers})


native = native_functions("stepping/expressions.h", DEPTH=DEPTH, **{code.name: code.value for code in Operation})


@wp.func_native(native("evaluate"))
def evaluate(
    now: wp.float64,
    code: wp.array2d(dtype=wp.int32),
    numbers: wp.array(dtype=wp.float64),
    load: wp.array(dtype=vec6),
    prescribed: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.float64),
):
    """Run a program at time `now` [s]. It writes values of loads, of prescribed motions and of inputs.

    Args:
        code, numbers: the program. load: rows of loads. prescribed: positions, velocities and accelerations of
            prescribed coordinates. u: inputs. Places are counted through load, then prescribed, then u.
    """
    ...
