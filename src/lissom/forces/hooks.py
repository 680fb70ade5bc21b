"""Where the surroundings of a robot enter the algorithms, inside kernels.

These do nothing, so that a robot that touches nothing pays nothing. For a model with contacts, a fluid or forces of the
user's own, `variants` puts the functions of the same names of dynamics.surroundings in their place, and the user's own
for `force_of_user`, `current_of_user` and `law_of_user`.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.sweep.column_tables import Columns, Matrix
from lissom.sweep.scratch import NodeChange, Scratch


@wp.func
def add_surroundings(t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """Take what the surroundings do from the wrenches that the nodes need; `acting` is a sum of LOADS and SPRINGS."""
    ...


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
    """Add to H how these answer to the pose of their node; s.near.N and s.near.touch hold the rest."""
    ...


@wp.func
def with_response(s: Scratch, i: int, k: int, N: mat6) -> mat6:
    """N of node k with how the surroundings answer to its twist."""
    return N


@wp.func
def couple_touching(s: Scratch, x: Columns, i: int, k: int, of_twist: int, J: Matrix, W: Matrix):
    """Add to the running sum W of node k how its wrench answers to the columns J of what it touches."""
    ...


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
    """Add to the changes of the wrenches what the surroundings answer to those of the motion."""
    ...


@wp.func
def renew_surroundings(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
):
    """Let the surroundings remember a step that has been taken to this state; for one instance alone."""
    ...


@wp.func
def force_of_user(which: int, R: mat3, p: vec3, eta: vec6, at: wp.float64, time: wp.float64) -> vec6:
    """Wrench of a user's force in the body's axes."""
    return vec6()


@wp.func
def current_of_user(x: vec3, time: wp.float64) -> vec6:
    """Velocity and rate of the current at the point x of the world."""
    return vec6()


@wp.func
def law_of_user(which: int, length: wp.float64, rate: wp.float64) -> wp.float64:
    """Tension of a spring with a law of the user's own."""
    return wp.float64(0.0)
