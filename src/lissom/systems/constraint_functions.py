"""Functions of the relative pose or velocity of two frames, inside kernels: one row of constraints for each.

The variables of robot.constraint_functions change by the m motions k of (p, R, q): the unit twists of A in B in the
axes of B, and the joints of the function. With ∂_k the derivative along motion k, and Y = (y, q̇) the relative twist
and the rates of these joints,

    P_k = ∂_k Φ,   or Φ itself for the rates of motion k, if it is a velocity                             (1)
    D_jk = ∂_k P_j,   Ṗ = D Y,   P Y = 0,   P Ẏ + Y·D Y = 0                                               (2)
    δ(Y·D Y) = Y·(D + Dᵀ) δY + δx·T,   T_k = ∂_k (Y·D Y) for constant Y                                   (3)

D is not symmetric, since motions of poses do not commute. The first six numbers of P are the row of the loop in
systems/loops, the others its entries for joints. For each function the scratch memory of an instance has, from
`at` on,

    Φ or 0,   P (m),   T (m),   D (m m, row by row)                                                       (4)

Φ, P and D follow from the poses (put_functions), T also from twists (put_bends).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.columns import Matrix
from lissom.passes.scratch import Scratch
from lissom.robot.constraint_functions import JOINTS, MOST_JOINTS, RATES
from lissom.robot.expression_programs import DEPTH

native = native_functions(
    "systems/programs.h", DEPTH=DEPTH, FIRST_RATE=RATES, FIRST_JOINT=JOINTS, MOST_JOINTS=MOST_JOINTS
)


@wp.func_native(native("put_function"))
def put_function(t: Tables, i: int, f: int, R: mat3, p: vec3, q: Matrix, out: Matrix):
    """Store Φ, P and D of function f at the pose (R, p) of A in B."""
    ...


@wp.func_native(native("put_function_bend"))
def put_function_bend(t: Tables, i: int, f: int, R: mat3, p: vec3, twist: vec6, q: Matrix, v: Matrix, out: Matrix):
    """Store T of function f at the pose (R, p) of A in B, which moves by a twist."""
    ...


@wp.func_native(native("number_of_product"))
def number_of_product(
    t: Tables, i: int, f: int, j: int, y: vec6, v: Matrix, transposed: int, values: Matrix
) -> wp.float64:
    """Number j of D Y, or of Dᵀ Y if `transposed`, with the twist y and the rates v."""
    ...


@wp.func_native(native("six_slopes"))
def six_slopes(t: Tables, i: int, f: int, first_row: int, first_column: int, down: int, values: Matrix) -> vec6:
    """Six numbers of D from a row and a column on, down a column or along a row."""
    ...


@wp.func_native(native("turned_slopes"))
def turned_slopes(t: Tables, i: int, f: int, R: mat3, p: vec3, values: Matrix) -> mat6:
    """Ad⁻ᵀ D Ad⁻¹ of the pose (R, p) of frame B, with D for motions of A in B."""
    ...


@wp.func
def joint_count(t: Tables, f: int) -> int:
    """Number of joints on which function f depends."""
    return t.constraint_functions.term_start[f + 1] - t.constraint_functions.term_start[f]


@wp.func
def stored(s: Scratch, i: int, at: int) -> vec6:
    """Six numbers in a row."""
    return vec6(
        s.function[i, at], s.function[i, at + 1], s.function[i, at + 2], s.function[i, at + 3],
        s.function[i, at + 4], s.function[i, at + 5],
    )  # fmt: skip


@wp.func
def value_of(t: Tables, s: Scratch, i: int, f: int) -> wp.float64:
    """Φ, zero for a velocity."""
    return s.function[i, t.constraint_functions.at[f]]


@wp.func
def row_of(t: Tables, s: Scratch, i: int, f: int) -> vec6:
    """P of the pose."""
    return stored(s, i, t.constraint_functions.at[f] + 1)


@wp.func
def entry_of(t: Tables, s: Scratch, i: int, f: int, k: int) -> wp.float64:
    """P of joint k."""
    return s.function[i, t.constraint_functions.at[f] + 7 + k]


@wp.func
def bend_of(t: Tables, s: Scratch, i: int, f: int) -> vec6:
    """T of the pose."""
    return stored(s, i, t.constraint_functions.at[f] + 7 + joint_count(t, f))


@wp.func
def entry_of_bend(t: Tables, s: Scratch, i: int, f: int, k: int) -> wp.float64:
    """T of joint k."""
    return s.function[i, t.constraint_functions.at[f] + 13 + joint_count(t, f) + k]


@wp.func
def slope(t: Tables, s: Scratch, i: int, f: int, j: int, k: int) -> wp.float64:
    """D_jk."""
    m = 6 + joint_count(t, f)
    return s.function[i, t.constraint_functions.at[f] + 1 + 2 * m + j * m + k]


@wp.func
def joint_rate(t: Tables, i: int, f: int, k: int, v: Matrix) -> wp.float64:
    """The entry of v (or a) of joint k."""
    return v[i, t.constraint_functions.v[t.constraint_functions.term_start[f] + k]]


@wp.func(inline=False)
def product_of(t: Tables, s: Scratch, i: int, f: int, y: vec6, v: Matrix, transposed: int) -> vec6:
    """The numbers of D Y, or of Dᵀ Y, for the pose."""
    out = vec6()
    for j in range(6):
        out[j] = number_of_product(t, i, f, j, y, v, transposed, s.function)
    return out


@wp.func
def column_of(t: Tables, s: Scratch, i: int, f: int, k: int) -> vec6:
    """∂P/∂q of the pose by joint k: a column of D."""
    return six_slopes(t, i, f, 0, 6 + k, 1, s.function)


@wp.func
def row_by_pose(t: Tables, s: Scratch, i: int, f: int, k: int) -> vec6:
    """The derivative by the pose of P of joint k: a row of D."""
    return six_slopes(t, i, f, 6 + k, 0, 0, s.function)
