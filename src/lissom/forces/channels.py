"""Tendons, chambers and controlled wrenches as a term of what acts, inside kernels.

Inputs reach a robot by channels. s.channel.size holds what the inputs ask of each; `add` turns the lengths pulled in of
elastic tendons into tensions, and what follows at the same state finds those there. Straight pieces of tendons and
wrenches act on nodes, paths inside rods on strains. An elastic tendon has no energy here: what it holds is work of its
input. Equations are those of tendons, tendon_derivatives and elastic_tendons.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.forces.elastic_tendons import add_tendon_stretch, pull_elastic_tendons
from lissom.forces.tendon_derivatives import add_path_derivatives, respond_to_segments, respond_to_wrenches
from lissom.forces.tendons import add_channel_wrenches, add_path_forces
from lissom.forces.term import Term
from lissom.lie import so3
from lissom.lie.types import mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import INPUTS, Scratch


@wp.func
def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """See term."""
    pull_elastic_tendons(t, s, i, q)
    add_channel_wrenches(t, s, i, so3.ONE)


@wp.func
def respond(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """See term."""
    respond_to_segments(t, s, i, H)
    respond_to_wrenches(t, s, i, H)


@wp.func
def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
    """See term."""
    add_path_forces(t, i, q, s.channel.size, -so3.ONE, tau)


@wp.func(inline=False)
def stiffen(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64, by_v: wp.float64,
    out: Matrix,
):  # fmt: skip
    """See term; the wrenches in s are lost where there are elastic tendons."""
    if by_q != so3.ZERO:
        add_path_derivatives(t, x, i, q, s.channel.size, by_q, out)
        add_tendon_stretch(t, s, i, x.width, q, move, by_q, out)


TERM = Term("tendons, chambers and wrenches", int(INPUTS), add=add, respond=respond, force=force, stiffen=stiffen)
