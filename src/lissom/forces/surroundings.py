"""What the surroundings do to the nodes, inside kernels, in the place of the empty functions of hooks."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces import touching
from lissom.forces.immersion import add_fluid, respond_to_fluid
from lissom.forces.springs import add_springs, respond_to_springs
from lissom.forces.touching import add_contacts, renew_anchors, respond_to_contacts
from lissom.forces.user_forces import add_forces_of_user, respond_to_user
from lissom.lie.types import mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.sweep import traversal
from lissom.sweep.base_frames import place_bases
from lissom.sweep.scratch import LOADS, SPRINGS, NodeChange, Scratch

couple_touching = touching.couple_touching


@wp.func
def add_surroundings(t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """See hooks."""
    has_loads = acting & LOADS
    add_fluid(t, s, i, gravity, load, has_loads)
    if acting & SPRINGS != 0:
        add_springs(t, s, i)
    if has_loads != 0:
        if t.world.pair.shape[0] > 0:
            add_contacts(t, s, i)
        add_forces_of_user(t, s, i, load)


@wp.func
def respond_to_surroundings(
    t: Tables,
    s: Scratch,
    i: int,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    acting: int,
    H: wp.array2d(dtype=mat6),
):
    """See hooks; what the surroundings do must stand in s already."""
    for k in range(t.n_dynamic):
        s.near.N[i, k] = mat6()
    s.near.touching[i] = 0
    has_loads = acting & LOADS
    respond_to_fluid(t, s, i, gravity, load, has_loads, H)
    if has_loads != 0:
        if t.world.pair.shape[0] > 0:
            respond_to_contacts(t, s, i, H)
        respond_to_user(t, s, i, load, H)
    if acting & SPRINGS != 0:
        respond_to_springs(t, s, i, H)


@wp.func
def with_response(s: Scratch, i: int, k: int, N: mat6) -> mat6:
    """See hooks."""
    return N + s.near.N[i, k]


@wp.func
def change_by_surroundings(
    t: Tables,
    s: Scratch,
    d: wp.array2d(dtype=NodeChange),
    i: int,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    acting: int,
):
    """See hooks."""
    for k in range(t.n_dynamic):
        s.near.H[i, k] = mat6()
    respond_to_surroundings(t, s, i, gravity, load, acting, s.near.H)
    for k in range(t.n_dynamic):
        d[i, k].F = d[i, k].F + s.near.H[i, k] * d[i, k].x + s.near.N[i, k] * d[i, k].w
    for j in range(s.near.touching[i]):
        a = s.near.a[i, j]
        b = s.near.b[i, j]
        d[i, a].F = d[i, a].F - s.near.K[i, j] * d[i, b].x - s.near.D[i, j] * d[i, b].w
        d[i, b].F = d[i, b].F + (s.near.bar[i, j] - s.near.K[i, j]) * d[i, a].x - s.near.D[i, j] * d[i, a].w


@wp.func
def renew_surroundings(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
):
    """See hooks; only anchors of contacts remember."""
    if t.world.sticks != 0:
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        renew_anchors(t, s, i)
