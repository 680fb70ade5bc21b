"""Where the base frames of the sweeps stand, inside kernels.

A base frame has the world's axes and stands where the robot stands: at the placement of a root, moved along with the
joint there if that can slide, so that a robot far away from the world's origin loses no digits. Roots that loops,
tendons or contacts may tie together share one.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import vec3
from lissom.model.tables import Tables
from lissom.passes.scratch import Scratch
from lissom.passes.traversal import outward_pose


@wp.func
def origin_of(t: Tables, s: Scratch, i: int, k: int) -> vec3:
    """World position of the origin of node k's base frame; zero for the world, −1."""
    if k < 0:
        return vec3()
    return s.origin[i, t.node[k].base]


@wp.func
def origin_between(t: Tables, s: Scratch, i: int, a: int, b: int) -> vec3:
    """World position of the origin of the base frame of two nodes, which share one unless one of them is the world."""
    if a < 0:
        return origin_of(t, s, i, b)
    return origin_of(t, s, i, a)


@wp.func(inline=False)
def slid_base(t: Tables, s: Scratch, i: int, b: int, q: wp.array2d(dtype=wp.float64)) -> vec3:
    """Where the joint of a root has slid to."""
    s.origin[i, b] = vec3()
    p = vec3()
    for e in range(t.bases.slide_start[b], t.bases.slide_start[b + 1]):
        k = t.bases.slide[e]
        outward_pose(t, s, i, k, q)
        p = s.node[i, k].p
    return p


@wp.func
def place_bases(t: Tables, s: Scratch, i: int, q: wp.array2d(dtype=wp.float64)):
    """Origins of the base frames: where a root is placed, or where its joint has slid to.

    What this leaves at the nodes of such joints is for the sweep that follows to overwrite.
    """
    for b in range(t.bases.position.shape[0]):
        if t.bases.slide_start[b] == t.bases.slide_start[b + 1]:
            s.origin[i, b] = t.bases.position[b]
        else:
            p = slid_base(t, s, i, b, q)
            s.origin[i, b] = p
