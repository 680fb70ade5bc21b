"""Point loads, and how those fixed in the world answer to the pose of their node, inside kernels."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.term import Term
from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import LOADS, Scratch


@wp.func
def apply_loads(
    t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, wrench: wp.array(dtype=vec6), acting: int
):  # fmt: skip
    """Subtract the point loads from the wrenches of their nodes."""
    for j in range(t.loads.node.shape[0]):
        k = t.loads.node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        m = se3.angular(wrench[j])
        f = se3.linear(wrench[j])
        if t.loads.is_body[j] != 0:
            m = R * (t.loads.R[j] * m)
            f = R * (t.loads.R[j] * f)
        x = p + R * t.loads.p[j]
        s.node[i, k].F = s.node[i, k].F - se3.join(m + wp.cross(x, f), f)


@wp.func
def load_stiffness(
    t: Tables, s: Scratch, i: int, gravity: vec3, wrench: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """H of loads fixed in the world: −[[r^ f^ + m^, 0], [f^, 0]]; a load that turns with its body has none."""
    for j in range(t.loads.node.shape[0]):
        if t.loads.is_body[j] == 0:
            k = t.loads.node[j]
            r = s.node[i, k].p + s.node[i, k].R * t.loads.p[j]
            f = so3.hat(se3.linear(wrench[j]))
            top = so3.hat(r) * f + so3.hat(se3.angular(wrench[j]))
            H[i, k] = H[i, k] - se3.block(top, mat3(), f, mat3())


TERM = Term("point loads", int(LOADS), add=apply_loads, respond=load_stiffness)
