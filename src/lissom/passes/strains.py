"""Native loops over the strain basis of one node: strains from coordinates, and coordinates' forces from wrenches."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat6, vec6
from lissom.model.groups import vec6i, vec7i

native = native_functions("passes/strains.h")


@wp.func_native(native("strain_sums"))
def strain_sums(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    q_shift: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
) -> mat6:
    """Rows Φ₁q, Φ₂q, Φ₁v, Φ₂v, Φ₁a, Φ₂a of one node. Native, since indexing arrays costs more than the sums."""
    ...


@wp.func_native(native("project_strains"))
def project_strains(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    y1: vec6,
    y2: vec6,
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += Φ₁ᵀ y1 + Φ₂ᵀ y2 of one node."""
    ...


@wp.func_native(native("strain_at"))
def strain_at(
    phi: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    q_shift: int,
    q: wp.array2d(dtype=wp.float64),
) -> vec6:
    """Φ q at one strain point."""
    ...


@wp.func_native(native("project_at"))
def project_at(
    phi: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    shift: int,
    y: vec6,
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += Φᵀ y at one strain point, tau from column `shift` on."""
    ...
