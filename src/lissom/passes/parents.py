"""What a node finds at its parent, inside kernels: where its own motion begins, and what moves there."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import vec6
from lissom.model.tables import Tables
from lissom.passes.scratch import Scratch


@wp.func
def joint_side(t: Tables, s: Scratch, i: int, k: int):
    """Pose of node k before its own motion: g_p G."""
    parent = t.node[k].parent
    if parent < 0:
        return t.node[k].R, t.node[k].p - s.origin[i, t.node[k].base]
    R = s.node[i, parent].R
    p = s.node[i, parent].p
    if not t.node[k].is_placed:
        return R, p
    return R * t.node[k].R, R * t.node[k].p + p


@wp.func
def parent_motion(t: Tables, s: Scratch, i: int, k: int, acc_base: vec6):
    """Twist and acceleration of the parent of node k; the world accelerates by acc_base."""
    parent = t.node[k].parent
    eta = vec6()
    acc = acc_base
    if parent >= 0:
        eta = s.node[i, parent].eta
        acc = s.node[i, parent].acc
    return eta, acc
