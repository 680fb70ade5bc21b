"""Solving by the factors of front_factors, whose equations these are, as native loops inside kernels."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Matrix
from lissom.passes.front_tables import STATE, Fronts
from lissom.systems.block_elimination import Pivots

native = native_functions("systems/fronts.h", STATE=STATE)


@wp.func_native(native("front_inward"))
def front_inward(
    y: Blocks, z: Fronts, i: int, e: int, c: vec6, f: Matrix, R: Matrix, kept: Matrix, swap: Pivots, g: Matrix,
    local: Matrix,
) -> vec6:  # fmt: skip
    """g of the loops open at block e with δ and the loops that close there eliminated, and c with these, from B⁻¹ f."""
    ...


@wp.func_native(native("front_outward"))
def front_outward(
    y: Blocks, z: Fronts, i: int, e: int, x: vec6, w: vec6, m: vec6, C: Matrix, kept: Matrix, u: Matrix, local: Matrix,
    f: Matrix,
):  # fmt: skip
    """The unknowns of the loops that close at block e, which hangs on what moves by (x, w, m), and what all of its
    loops do to δ."""
    ...
