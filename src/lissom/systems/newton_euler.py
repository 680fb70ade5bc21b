"""The outward half of inverse dynamics, inside kernels: motion of the nodes and the wrench that each of them needs."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.types import vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.scratch import Scratch


@wp.func
def recursive_newton_euler(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
    gravity: vec3,
    load: wp.array(dtype=vec6),
    acting: int,
    add: wp.Function,
):
    """Outward half-passes: motion of the nodes and the wrench each of them needs, that of inertia and of what `add`
    takes from it; gravity as a₀ = −G."""
    place_bases(t, s, i, q)
    acc_base = vec6(so3.ZERO, so3.ZERO, so3.ZERO, -gravity[0], -gravity[1], -gravity[2])
    for k in range(t.n_dynamic):
        traversal.outward_motion(t, s, i, k, q, v, a, acc_base)
        traversal.newton_euler(t, s, i, k)
    add(t, s, i, q, gravity, load, acting)
