"""Integrals over deformable bodies whose points move linearly in θ, as sums of rows of their constants, inside kernels.

With the constants of model.deforming, φ_j the shapes, and the equations of the module deforming,

    P_j = ∫ρ x φ_jᵀ + Σ_e θ_e ∫ρ φ_e φ_jᵀ,   w_j = Σ_e θ̇_e ∫ρ φ_e×φ_j,   e_j = Σ_e θ̈_e ∫ρ φ_e·φ_j       (1)
    ∂Π/∂θ_j = (Σ_e θ̇_e ∫ρ φ_e φ_jᵀ)ᵀ,   ∂b/∂θ_j = Σ_e θ̈_e ∫ρ φ_j×φ_e                                    (2)

and of any body

    ċ = Σ c_j θ̇_j,   Π = Σ P_j θ̇_j,   c̈ = ∫ρ J̇θ̇ + Σ c_j θ̈_j,   b = ∫ρ p×J̇θ̇ + Σ ∫ρ p×J_j θ̈_j            (3)

Native, since these sums over pairs are all that such a body costs: the constants of one e stand one after the other, so
that a row of them is added eight numbers at a time.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat3, vec3
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import Scratch

native = native_functions("passes/linear_bodies.h")


@wp.func_native(native("integrate_positions"))
def integrate_positions(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, q: Matrix):
    """c, P, c_j and P_j of body b, whose first coordinate in q is `first`."""
    ...


@wp.func_native(native("integrate_rates"))
def integrate_rates(
    t: Tables, s: Scratch, b: int, first_q: int, first: int, n: int, i: int, q: Matrix, v: Matrix, a: Matrix
):
    """All of (1) and (3) of body b, whose first coordinates in q and v are `first_q` and `first`."""
    ...


@wp.func_native(native("integrate_motion"))
def integrate_motion(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, v: Matrix, a: Matrix):
    """The same of (3) alone, of a body that is not linear."""
    ...


@wp.func_native(native("put_own_forces"))
def put_own_forces(t: Tables, s: Scratch, b: int, n: int, i: int, acc: vec3, w: vec3, A: mat3):
    """What the coordinates of body b need, linear or not: c_j·a + A : P_j + 2 ω·w_j + e_j + f_j."""
    ...


@wp.func_native(native("integrate_slopes"))
def integrate_slopes(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, v: Matrix, a: Matrix):
    """∂Π/∂θ_j and ∂b/∂θ_j of (2) of body b, whose first coordinate in v is `first`."""
    ...


@wp.func_native(native("add_own_block"))
def add_own_block(
    t: Tables, b: int, first: int, n: int, width: int, i: int, A: mat3, w: vec3, by_q: wp.float64, by_v: wp.float64,
    by_a: wp.float64, out: Matrix,
):  # fmt: skip
    """out[j, e] += by_q A : ∂P_j/∂θ_e + by_v 2 w·∂w_j/∂θ̇_e + by_a ∂e_j/∂θ̈_e of body b, out in rows of `width`."""
    ...
