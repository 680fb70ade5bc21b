"""Inertia of rotors behind gears, which turn with coordinates of joints, inside kernels.

A rotor of inertia I behind a gear of ratio n turns n times as fast as its joint, and its inertia is felt there n²
times; I_a = n² I adds to the equation of motion and to the kinetic energy

    I_a a,   ½ I_a v²                                                                                     (1)

Its own turning with the link that carries it is left out, which is small beside (1) for gears of large ratio.
Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §9.6.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix


@wp.func
def add_armature_force(t: Tables, i: int, a: Matrix, tau: Matrix):
    """tau += I_a a."""
    for j in range(t.dofs.armature.shape[0]):
        tau[i, j] = tau[i, j] + t.dofs.armature[j] * a[i, j]


@wp.func
def add_armature_rows(t: Tables, width: int, i: int, by_a: wp.float64, out: Matrix):
    """out += by_a I_a, rows of `width`."""
    for j in range(t.dofs.armature.shape[0]):
        out[i, j * width + j] = out[i, j * width + j] + by_a * t.dofs.armature[j]


@wp.func
def add_armature_block(t: Tables, i: int, first: int, n: int, square: int, width: int, row: int, H: Matrix,
                       diagonal: Matrix):  # fmt: skip
    """H and the diagonal of a block of n coordinates from `first` on += I_a, in their places in `articulated`."""
    if t.dofs.armature.shape[0] > 0:
        for j in range(n):
            H[i, square + j * width + j] = H[i, square + j * width + j] + t.dofs.armature[first + j]
            diagonal[i, row + j] = diagonal[i, row + j] + t.dofs.armature[first + j]


@wp.func
def armature_energy(t: Tables, i: int, v: Matrix) -> wp.float64:
    """½ Σ I_a v² [J]."""
    total = wp.float64(0.0)
    for j in range(t.dofs.armature.shape[0]):
        total += so3.HALF * t.dofs.armature[j] * v[i, j] * v[i, j]
    return total
