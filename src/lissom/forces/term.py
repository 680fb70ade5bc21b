"""Terms of force: their functions, and the derivatives of their wrenches in s.near.

F is the wrench that the motion of a node requires, minus external wrenches; τ is the force on coordinates that the
motion requires, minus external forces. A term is a set of functions with fixed signatures. It has, inside kernels, any
of

    add(t, s, i, q, gravity, load, acting)                       subtracts its wrenches from F              (1)
    respond(t, s, i, gravity, load, acting, H)                   adds ∂F by the pose of each node to H, and ∂F by its
                                                                 twist and by other nodes to s.near; runs after (1)
    force(t, s, i, q, v, tau)                                    adds f(q, v) to τ; its own force is −f     (2)
    stiffen(t, s, x, i, q, v, move, by_q, by_v, out)             out += by_q ∂f/∂q T(move) + by_v ∂f/∂v, in rows of x
    change(t, s, i, q, v, dq, dv, tau)                           τ += ∂f/∂q dq + ∂f/∂v dv
    energy(t, s, i, q)                                           energy, whose gradient is (2) at rest [J]
    renew(t, s, i, q, v, a)                                      updates its internal state after a step to this state
    measure(t, s, i, q, v, u, inverse_scale, out, row)           writes its springs, stops and cables to rows of `out`,
                                                                 from `row` on (put_spring), and returns the next row

`acting` is a sum of flags. A term is called if its flag is in the sum; a term without a flag is always called.

The buffers of derivatives with respect to twists, s.near.N, are empty in models without a term that depends on twists.
Those of coupled pairs of nodes are empty in models without a term that couples two nodes.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from lissom.lie.types import mat6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.columns import Columns, Matrix, add_cross_product
from lissom.passes.features import may_have_couplings
from lissom.passes.scratch import NodeChange, Scratch
from lissom.robot.native_functions import NativeFunction

# Numbers of a spring in a row of `measure`: its force f, which pulls its coordinate x down, x, ẋ, ∂f/∂x, ∂f/∂ẋ; the
# natural size of x, 1 for a length [m] or an angle; and its kind. An elastic tendon has the x at which its present
# inputs make it taut, and its stiffness when taut, too
FORCE, PLACE, PLACE_RATE, SLOPE, DAMPING, SIZE, KIND, TAUT_FROM, STIFFNESS = range(9)
SPRING_NUMBERS = 9
SPRING, STOP, TENDON = range(3)  # kinds

ONE_WAY = wp.constant(wp.int32(2))  # is_damped of a coupling that acts on node a alone


class Term(NamedTuple):
    """A term of force.

    Fields:
        name. flag: LOADS, SPRINGS, INPUTS or 0. is_in: whether the kernels of a model include it.
        add, respond, force, stiffen, change, energy, renew, measure: the functions above, or None.
        springs: the number of rows that `measure` writes for a model.
        users: the functions of a model's user that it calls. bind: makes the functions above from those.
        tables: makes the term's tables of integers and of numbers from a model. They are t.terms[place], with the place
            of the term in the list of terms, which is then the first argument of `bind`.
        natives: the native code of users' functions that it calls, for each row of its tables; None for rows without.
    """

    name: str
    flag: int
    is_in: Callable[[Model], bool] = lambda model: True
    add: Any = None
    respond: Any = None
    force: Any = None
    stiffen: Any = None
    change: Any = None
    energy: Any = None
    renew: Any = None
    measure: Any = None
    springs: Callable[[Model], int] = lambda model: 0
    users: Callable[[Model], tuple[Any, ...]] = lambda model: ()
    bind: Callable[..., dict[str, Any]] | None = None
    tables: Callable[[Model], tuple[np.ndarray, np.ndarray]] | None = None
    natives: Callable[[Model], list[Any]] = lambda model: []


def code_in_kernels(model: Model, function: Any) -> Any:
    """The Warp function whose code the kernels of a model contain for a user's function; None for native code that they
    call by its address."""
    if not isinstance(function, NativeFunction):
        return function
    return None if model.device == "cpu" else function.in_kernel()


def codes_in_kernels(model: Model, functions: Iterable[Any]) -> tuple[Any, ...]:
    """`code_in_kernels` of several functions, each once, without those that are called by address."""
    found = dict.fromkeys(code_in_kernels(model, function) for function in functions)
    return tuple(code for code in found if code is not None)


def native_codes(model: Model, functions: Iterable[Any]) -> list[Any]:
    """For each of several functions, or None, its native code if kernels call it by its address."""
    return [
        function.functions if isinstance(function, NativeFunction) and model.device == "cpu" else None
        for function in functions
    ]


def switch_of(functions: tuple[Any, ...], either: Callable[[Any, Any, int], Any], nothing: Any) -> Any:
    """One function that calls one of several functions by number.

    Args:
        either: joins a function, all functions of larger number, and the number. nothing: the result of no function.
    """
    return reduce(lambda other, pair: either(pair[1], other, pair[0]), reversed(list(enumerate(functions))), nothing)


@wp.func
def put_spring(
    out: Matrix, i: int, row: int, f: wp.float64, x: wp.float64, rate: wp.float64, slope: wp.float64,
    damping: wp.float64, size: wp.float64, kind: int,
):  # fmt: skip
    """Write a spring to a row of `measure`."""
    at = row * SPRING_NUMBERS
    out[i, at + FORCE] = f
    out[i, at + PLACE] = x
    out[i, at + PLACE_RATE] = rate
    out[i, at + SLOPE] = slope
    out[i, at + DAMPING] = damping
    out[i, at + SIZE] = size
    out[i, at + KIND] = wp.float64(kind)


@wp.func
def clear_responses(t: Tables, s: Scratch, i: int):
    """Clear the derivatives with respect to twists and the list of coupled pairs, which belong to an earlier state."""
    if s.near.N.shape[0] > 0:
        for k in range(t.n_dynamic):
            s.near.N[i, k] = mat6()
    if s.near.coupled.shape[0] > 0:
        s.near.coupled[i] = 0


@wp.func
def couple_nodes(s: Scratch, i: int, a: int, b: int, K: mat6, D: mat6, bar: mat6, is_damped: int):
    """List a coupled pair of nodes with K, N (here D) and W̄ of contact (9) and (10); no effect if one is the world."""
    if a >= 0 and b >= 0:
        at = s.near.coupled[i]
        s.near.a[i, at] = a
        s.near.b[i, at] = b
        s.near.K[i, at] = K
        s.near.D[i, at] = D
        s.near.bar[i, at] = bar
        s.near.is_damped[i, at] = is_damped
        s.near.coupled[i] = at + 1


@wp.func
def couple_one_way(s: Scratch, i: int, a: int, b: int, K: mat6, D: mat6):
    """List the share −K δ_b − D δη_b of node b in δF_a; F_b does not change. No effect if one is the world."""
    if a >= 0 and b >= 0:
        couple_nodes(s, i, a, b, K, D, mat6(), ONE_WAY)


@wp.func
def with_response(s: Scratch, i: int, k: int, N: mat6) -> mat6:
    """N of node k plus the derivative of the terms' wrenches by its twist."""
    if s.near.N.shape[0] > 0:
        return N + s.near.N[i, k]
    return N


@wp.func
def add_coupled(s: Scratch, x: Columns, i: int, k: int, of_twist: int, J: Matrix, W: Matrix):
    """Add to the subtree sum W of node k the derivative of its wrench by the motion of coupled nodes, contact (9) and
    (10), times their columns J. `of_twist`: 1 for derivatives with respect to twists, 0 for those by poses."""
    if may_have_couplings() and s.near.coupled.shape[0] > 0:
        add_coupled_pairs(s, x, i, k, of_twist, J, W)


@wp.func(inline=False)
def add_coupled_pairs(s: Scratch, x: Columns, i: int, k: int, of_twist: int, J: Matrix, W: Matrix):
    """As `add_coupled`, for models with buffers of coupled pairs."""
    for j in range(s.near.coupled[i]):
        counts = of_twist == 0 or s.near.is_damped[i, j] != 0
        both = counts and s.near.is_damped[i, j] != ONE_WAY
        if s.near.a[i, j] == k and counts:
            if of_twist == 1:
                add_cross_product(x, i, k, s.near.b[i, j], -s.near.D[i, j], J, W)
            else:
                add_cross_product(x, i, k, s.near.b[i, j], -s.near.K[i, j], J, W)
        if s.near.b[i, j] == k and both:
            if of_twist == 1:
                add_cross_product(x, i, k, s.near.a[i, j], -s.near.D[i, j], J, W)
            else:
                add_cross_product(x, i, k, s.near.a[i, j], s.near.bar[i, j] - s.near.K[i, j], J, W)


@wp.func(inline=False)
def change_by_responses(
    t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6), d: wp.array2d(dtype=NodeChange)
):  # fmt: skip
    """Add to the changes of wrenches the products of H and s.near with the changes of poses and twists."""
    for k in range(t.n_dynamic):
        d[i, k].F = d[i, k].F + H[i, k] * d[i, k].x
    if s.near.N.shape[0] > 0:
        for k in range(t.n_dynamic):
            d[i, k].F = d[i, k].F + s.near.N[i, k] * d[i, k].w
    if may_have_couplings() and s.near.coupled.shape[0] > 0:
        for j in range(s.near.coupled[i]):
            a = s.near.a[i, j]
            b = s.near.b[i, j]
            d[i, a].F = d[i, a].F - s.near.K[i, j] * d[i, b].x - s.near.D[i, j] * d[i, b].w
            if s.near.is_damped[i, j] != ONE_WAY:
                d[i, b].F = d[i, b].F + (s.near.bar[i, j] - s.near.K[i, j]) * d[i, a].x - s.near.D[i, j] * d[i, a].w
