"""Springs along paths: over points and round spheres and cylinders, with branches, inside kernels.

The length of a spring is L = Σ f l over its pieces, with factors f. Its tension T(L, L̇) is that of springs, and each
piece is pulled by f T as the piece of a tendon (forces.tendons). At T = 1 piece p acts on its nodes k by wrenches w_pk,
whose sum over the nodes, and the world, is zero. With w_k = Σ f w_pk,

    δL = −Σ w_k·δ_k,   L̇ = −Σ w_k·η_k,   δL̇ = −Σ h_k·δ_k − Σ w_k·δη_k                                     (1)

in the axes of the nodes. With T_L and T_L̇ the derivatives of the tension, and beside those of the pieces at constant T,

    δF_k = w_k Σ_m ((T_L w_m + T_L̇ h_m)·δ_m + T_L̇ w_m·δη_m)                                               (2)

A piece round a shape on node w has P, Q, R, S and wrenches of tendons (10) at T = 1. Let ρ_a = η_a − η_w, alike ρ_b:

    h_a = −(Pᵀ ρ_a + Rᵀ ρ_b + W̄_aᵀ η_w),   h_b = −(Qᵀ ρ_a + Sᵀ ρ_b + W̄_bᵀ η_w),   h_w = −h_a − h_b           (3)

A straight piece is the case that the shape is its end b: P = H_a of tendons (5), and Q = R = S = 0.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

from functools import partial

import warp as wp

from lissom.forces.contact import twist_of
from lissom.forces.springs import bound_to_springs, energy_of_length, law_tables, laws_of_users, native_laws, tension_of
from lissom.forces.tendons import (
    add_piece_wrench,
    piece_length,
    respond_to_piece,
    straight_response,
    wrapped_piece,
    wrapped_response,
)
from lissom.forces.term import SPRING, Term, couple_one_way, put_spring
from lissom.lie import so3
from lissom.lie.se3 import adbar_matrix
from lissom.lie.types import mat6, vec6
from lissom.model.tables import Tables, TermRows
from lissom.passes.columns import Matrix
from lissom.passes.scratch import SPRINGS, Scratch


@wp.struct
class PieceState:
    """A piece at one state: nodes of its ends and of its shape, the wrenches on the ends a and b at unit tension, and
    h_a and h_b of (3)."""

    a: wp.int32
    b: wp.int32
    w: wp.int32
    on_a: vec6
    on_b: vec6
    by_a: vec6
    by_b: vec6


@wp.func(inline=False)
def piece_state(t: Tables, s: Scratch, i: int, j: int) -> PieceState:
    """The state of piece j."""
    x = PieceState()
    x.a = t.segments.node[j, 0]
    x.b = t.segments.node[j, 1]
    x.w = x.b
    if t.segments.wrap[j] >= 0:
        x.w = t.segments.wrap_node[t.segments.wrap[j]]
        P, Q, R, S, on_a, on_b = wrapped_response(wrapped_piece(t, s, i, j), so3.ONE)
        eta = twist_of(s, i, x.w)
        rho_a = twist_of(s, i, x.a) - eta
        rho_b = twist_of(s, i, x.b) - eta
        x.on_a = on_a
        x.on_b = on_b
        bar_a = adbar_matrix(on_a)
        bar_b = adbar_matrix(on_b)
        x.by_a = -(wp.transpose(P) * rho_a + wp.transpose(R) * rho_b + wp.transpose(bar_a) * eta)  # (3)
        x.by_b = -(wp.transpose(Q) * rho_a + wp.transpose(S) * rho_b + wp.transpose(bar_b) * eta)
    else:
        K, on_end = straight_response(t, s, i, j, so3.ONE)
        turn = adbar_matrix(on_end)
        end = twist_of(s, i, x.b)
        x.on_a = on_end
        x.by_a = -(wp.transpose(K) * (twist_of(s, i, x.a) - end) + wp.transpose(turn) * end)
    return x


@wp.func
def end_of_piece(x: PieceState, end: int):
    """Node, wrench at unit tension and h of an end: 0 is a, 1 is b of a piece round a shape, 2 is the shape, or b of a
    straight piece."""
    if end == 0:
        return x.a, x.on_a, x.by_a
    if end == 1:
        return x.b, x.on_b, x.by_b
    return x.w, -(x.on_a + x.on_b), -(x.by_a + x.by_b)


@wp.func
def path_spring_length(t: Tables, s: Scratch, i: int, e: int) -> wp.float64:
    """L of spring e along a path."""
    first = t.segments.channel.shape[0]
    total = wp.float64(0.0)
    for j in range(t.segments.spring.shape[0]):
        if t.segments.spring[j] == e:
            total += t.segments.factor[j] * piece_length(t, s, i, first + j)
    return total


@wp.func(inline=False)
def path_tension(t: Tables, s: Scratch, rows: TermRows, i: int, e: int, law: wp.Function):
    """T of spring e, its derivatives with respect to L and L̇, L and L̇."""
    first = t.segments.channel.shape[0]
    rate = wp.float64(0.0)
    for j in range(t.segments.spring.shape[0]):
        if t.segments.spring[j] == e:
            x = piece_state(t, s, i, first + j)
            eta = twist_of(s, i, x.w)
            rho_a = twist_of(s, i, x.a) - eta
            rho_b = twist_of(s, i, x.b) - eta
            rate -= t.segments.factor[j] * (wp.dot(x.on_a, rho_a) + wp.dot(x.on_b, rho_b))  # (1)
    length = path_spring_length(t, s, i, e)
    T, by_length, by_rate = tension_of(rows, e, length, rate, law)
    return T, by_length, by_rate, length, rate


@wp.func(inline=False)
def add_path_springs(t: Tables, s: Scratch, rows: TermRows, i: int, law: wp.Function):
    """Subtract the wrenches of springs along paths from F of their nodes."""
    first = t.segments.channel.shape[0]
    for e in range(rows.index.shape[0]):
        T, _by_length, _by_rate, _length, _rate = path_tension(t, s, rows, i, e, law)
        for j in range(t.segments.spring.shape[0]):
            if t.segments.spring[j] == e:
                add_piece_wrench(t, s, i, first + j, T * t.segments.factor[j])


@wp.func(inline=False)
def couple_piece_ends(
    s: Scratch, i: int, k: int, out: vec6, x: PieceState, end: int, by_length: wp.float64, by_rate: wp.float64,
    H: wp.array2d(dtype=mat6),
):  # fmt: skip
    """Add one term m of the sum (2) to the derivatives of F of node k: that of end `end` of piece x. `out` is the
    wrench w_k. by_length, by_rate: T_L and T_L̇ times the factor of the piece."""
    m, w, h = end_of_piece(x, end)
    K = wp.outer(out, by_length * w + by_rate * h)
    N = wp.outer(out, by_rate * w)
    if k >= 0 and k == m:
        H[i, k] = H[i, k] + K
        s.near.N[i, k] = s.near.N[i, k] + N
    else:
        couple_one_way(s, i, k, m, -K, -N)


@wp.func(inline=False)
def respond_to_path_springs(
    t: Tables, s: Scratch, rows: TermRows, i: int, H: wp.array2d(dtype=mat6), law: wp.Function
):  # fmt: skip
    """Add the derivatives of the pieces at constant tension, and (2), to H and N of the nodes, and list the couplings
    in s.near."""
    first = t.segments.channel.shape[0]
    for e in range(rows.index.shape[0]):
        T, by_length, by_rate, _length, _rate = path_tension(t, s, rows, i, e, law)
        for j in range(t.segments.spring.shape[0]):
            if t.segments.spring[j] == e:
                respond_to_piece(t, s, i, first + j, T * t.segments.factor[j], H)
                x = piece_state(t, s, i, first + j)
                for end in range(3):
                    if end != 1 or t.segments.wrap[first + j] >= 0:
                        k, w, _h = end_of_piece(x, end)
                        out = t.segments.factor[j] * w
                        for c in range(t.segments.spring.shape[0]):
                            if t.segments.spring[c] == e:
                                y = piece_state(t, s, i, first + c)
                                f = t.segments.factor[c]
                                for other in range(3):
                                    if other != 1 or t.segments.wrap[first + c] >= 0:
                                        couple_piece_ends(s, i, k, out, y, other, f * by_length, f * by_rate, H)


@wp.func(inline=False)
def energy_of_path_springs(t: Tables, s: Scratch, rows: TermRows, i: int, law: wp.Function) -> wp.float64:
    """U of all springs along paths at rest, as that of springs between points."""
    total = wp.float64(0.0)
    for e in range(rows.index.shape[0]):
        total += energy_of_length(rows, e, path_spring_length(t, s, i, e), law)
    return total


@wp.func(inline=False)
def measure_path_springs(t: Tables, s: Scratch, rows: TermRows, i: int, out: Matrix, row: int, law: wp.Function):
    """`measure` of all springs along paths, whose coordinates are their lengths."""
    for e in range(rows.index.shape[0]):
        T, by_length, by_rate, length, rate = path_tension(t, s, rows, i, e, law)
        put_spring(out, i, row + e, T, length, rate, by_length, by_rate, so3.ONE, SPRING)


TERM = Term(
    "springs along paths",
    int(SPRINGS),
    lambda model: model.springs.n_paths > 0,
    springs=lambda model: model.springs.n_paths,
    users=lambda model: laws_of_users(model, slice(len(model.springs.node), None)),
    bind=partial(
        bound_to_springs, add_path_springs, respond_to_path_springs, energy_of_path_springs, measure_path_springs
    ),
    tables=lambda model: law_tables(model, slice(len(model.springs.node), None)),
    natives=lambda model: native_laws(model, slice(len(model.springs.node), None)),
)
