"""What inputs do inside deformable bodies as a term of what acts, inside kernels.

For each pull of size u its work, B, its wrench w on the frame and their derivatives by θ stand in s.pulls, filled in
before a launch from the equations of bodies.pulls. In

    r = ID(q, v, a) − B u,   the frame needs −u w more and answers to θ by −u ∂w/∂θ,   θ by −u ∂B/∂θ      (1)

w turns with the frame. The sizes are those that channels, the term before, has left.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.term import Term
from lissom.lie import se3, so3
from lissom.lie.types import mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import INPUTS, Scratch


@wp.func
def add_pull_force(t: Tables, s: Scratch, i: int, e: int, size: wp.float64, tau: Matrix):
    """tau += size · B of pull e."""
    at = t.pulls.column_start[e]
    first = t.node[t.pulls.node[e]].v_start
    for j in range(t.pulls.column_start[e + 1] - at):
        tau[i, first + j] = tau[i, first + j] + size * s.pulls.B[i, at + j]


@wp.func
def add_pull_forces(t: Tables, s: Scratch, i: int, sign: wp.float64, tau: Matrix):
    """tau += sign · B u on the coordinates of the bodies."""
    for e in range(t.pulls.channel.shape[0]):
        add_pull_force(t, s, i, e, sign * s.channel.size[i, t.pulls.channel[e]], tau)


@wp.func
def add_pull_wrenches(t: Tables, s: Scratch, i: int, sign: wp.float64):
    """F += sign · (wrench needed against what presses on the bodies)."""
    for e in range(t.pulls.channel.shape[0]):
        if t.pulls.presses[e] != 0:
            k = t.pulls.node[e]
            size = sign * s.channel.size[i, t.pulls.channel[e]]
            s.node[i, k].F = s.node[i, k].F - se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, size * s.pulls.wrench[i, e])


@wp.func
def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """See term."""
    add_pull_wrenches(t, s, i, so3.ONE)


@wp.func
def respond(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """See term; how frames answer to θ is left in s.pulls."""
    for c in range(s.pulls.answer.shape[1]):
        s.pulls.answer[i, c] = vec6()
    for e in range(t.pulls.channel.shape[0]):
        if t.pulls.presses[e] != 0:
            at = t.pulls.column_start[e]
            to = t.deforming.column_start[t.node[t.pulls.node[e]].map]
            size = s.channel.size[i, t.pulls.channel[e]]
            for j in range(t.pulls.column_start[e + 1] - at):
                s.pulls.answer[i, to + j] = s.pulls.answer[i, to + j] - size * s.pulls.wrench_q[i, at + j]


@wp.func
def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
    """See term."""
    add_pull_forces(t, s, i, -so3.ONE, tau)


@wp.func(inline=False)
def stiffen(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64, by_v: wp.float64,
    out: Matrix,
):  # fmt: skip
    """See term."""
    if by_q != so3.ZERO:
        for e in range(t.pulls.channel.shape[0]):
            first = t.node[t.pulls.node[e]].v_start
            at = t.pulls.pair_start[e]
            n = t.pulls.column_start[e + 1] - t.pulls.column_start[e]
            size = by_q * s.channel.size[i, t.pulls.channel[e]]
            for j in range(n):
                for c in range(n):
                    to = (first + j) * x.width + first + c
                    out[i, to] = out[i, to] - size * s.pulls.B_q[i, at + n * j + c]


TERM = Term(
    "pulls inside deformable bodies",
    int(INPUTS),
    is_in=lambda model: len(model.pulls) > 0,
    add=add,
    respond=respond,
    force=force,
    stiffen=stiffen,
)
