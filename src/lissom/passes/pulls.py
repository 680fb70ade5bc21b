"""Forces of unit inputs inside deformable bodies at a state: work, B, wrenches and derivatives, inside kernels.

Native functions of the motion of a body (bodies/native_code) give those of tendons. For chambers and pressures they
move the vertices p_a of the surface. With N = ½ (p_b − p_a)×(p_c − p_a) of each triangle, Σp of its corners, and the
sign ± of `side`,

    B_j = ±⅓ Σ N·Σ∂p/∂θ_j,   force ± Σ N,   moment ±⅓ Σ Σp×N                                              (1)

The work is ±⅙ Σ p_a·(p_b×p_c) for a chamber, three times as much for a pressure, since N in (1) does not vary with the
virtual displacement. Bodies without native functions have these tables from Python (launch/prepare).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.model.tables import Tables
from lissom.passes.deforming import PULL_DERIVATIVES, PULLS
from lissom.passes.scratch import Scratch
from lissom.tracing.graph import MOST_COORDINATES

native = native_functions("passes/pulls.h", MOST_COORDINATES=MOST_COORDINATES)


@wp.func_native(native("call_pull"))
def call_pull(t: Tables, s: Scratch, e: int, b: int, i: int):
    """Work and B of pull e of body b, a tendon or a volume; of a surface, p and ∂p/∂θ of its vertices."""
    ...


@wp.func_native(native("press"))
def press(t: Tables, s: Scratch, e: int, i: int):
    """Write work, B and wrench of pull e by (1), from the vertices of its surface, which call_pull has stored."""
    ...


@wp.func_native(native("call_pull_derivatives"))
def call_pull_derivatives(t: Tables, s: Scratch, e: int, b: int, i: int):
    """∂B/∂θ of pull e of body b, a tendon or a volume; of a surface, the part with second derivatives of vertices."""
    ...


@wp.func_native(native("bend_of_pull"))
def bend_of_pull(t: Tables, s: Scratch, e: int, b: int, i: int) -> wp.float64:
    """The second derivative of the work of pull e of body b, a tendon or a volume, along the rates of θ."""
    ...


@wp.func_native(native("press_derivatives"))
def press_derivatives(t: Tables, s: Scratch, e: int, i: int):
    """Add the other part of ∂B/∂θ of pull e, and write ∂wrench/∂θ, from the vertices of its surface."""
    ...


@wp.func
def body_of(t: Tables, e: int) -> int:
    """The body of pull e."""
    return t.node[t.pulls.node[e]].map


@wp.func(inline=False)
def evaluate(t: Tables, s: Scratch, i: int):
    """Compute work, B and wrenches of the pulls with native functions, unless they are known at the state."""
    for e in range(t.pulls.channel.shape[0]):
        b = body_of(t, e)
        if t.pulls.values_function[e] != wp.uint64(0) and s.deforming.known[i, b] & PULLS == 0:
            call_pull(t, s, e, b, i)
            if t.pulls.surface_start[e + 1] > t.pulls.surface_start[e]:
                press(t, s, e, i)
    for e in range(t.pulls.channel.shape[0]):
        b = body_of(t, e)
        s.deforming.known[i, b] = s.deforming.known[i, b] | PULLS


@wp.func(inline=False)
def evaluate_derivatives(t: Tables, s: Scratch, i: int):
    """Compute ∂B/∂θ and ∂wrench/∂θ of the pulls with native functions, unless they are known at the state."""
    evaluate(t, s, i)
    for e in range(t.pulls.channel.shape[0]):
        b = body_of(t, e)
        if t.pulls.values_function[e] != wp.uint64(0) and s.deforming.known[i, b] & PULL_DERIVATIVES == 0:
            call_pull_derivatives(t, s, e, b, i)
            if t.pulls.surface_start[e + 1] > t.pulls.surface_start[e]:
                press_derivatives(t, s, e, i)
    for e in range(t.pulls.channel.shape[0]):
        b = body_of(t, e)
        s.deforming.known[i, b] = s.deforming.known[i, b] | PULL_DERIVATIVES
