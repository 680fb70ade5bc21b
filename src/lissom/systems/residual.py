"""The equation of motion: recursive Newton-Euler, and the residual r = ID(q, v, a) − B(q) u − Aᵀ λ, with loops."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportIndexIssue=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from lissom.forces.tendons import channel_sizes
from lissom.forces.terms import Acting
from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import kinds, traversal
from lissom.passes.scratch import ALL_TERMS, Scratch
from lissom.passes.traversal import place_bases, project
from lissom.systems.bordered import LoopRows
from lissom.systems.couplings import add_coupling_forces
from lissom.systems.loops import add_function_forces, add_loop_wrenches
from lissom.systems.mass import add_armature_force


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
    """Outward half-passes: motion of the nodes, and the wrench F of each: that of its inertia minus the external
    wrenches, which `add` subtracts. Gravity enters as the acceleration −G of the base."""
    place_bases(t, s, i, q)
    acc_base = vec6(so3.ZERO, so3.ZERO, so3.ZERO, -gravity[0], -gravity[1], -gravity[2])
    for k in range(t.n_dynamic):
        traversal.outward_motion(t, s, i, k, q, v, a, acc_base)
        kinds.newton_euler(t, s, i, k)
    add(t, s, i, q, gravity, load, acting)


native = native_functions("passes/linear_algebra.h")


Rows = wp.array2d(dtype=wp.float64)


@wp.func_native(native("subtract_inputs"))
def subtract_inputs(nv: int, nu: int, i: int, gain: Rows, u: Rows, extra: Rows, tau: Rows):
    """tau −= gain u + extra: forces of motors and of custom actuators."""
    ...


@wp.struct
class MotionInputsStruct:
    """Inputs of the equation of motion, with a row for each instance.

    q, v, a: configuration, velocity and acceleration. u: inputs. extra: forces of custom actuators. gravity: one vector
    for all. load: the table of `put_loads`. terms: the terms that act, one number for all (`acting_flags`).
    """

    q: Rows
    v: Rows
    a: Rows
    u: Rows
    extra: Rows
    gravity: wp.array(dtype=vec3)
    load: wp.array2d(dtype=vec6)
    terms: wp.array(dtype=wp.int32)


MotionInputs = by_reference(MotionInputsStruct)


@cache
def residual_of(act: Acting) -> Any:
    """The residual with the terms of a model."""
    add, force = act.add, act.force

    @wp.func(inline=False, module="unique")
    def residual(
        t: Tables, s: Scratch, i: int, q: Rows, v: Rows, a: Rows, u: Rows, extra: Rows, gravity: vec3,
        load: wp.array(dtype=vec6), loops: LoopRows, tau: Rows,
    ):  # fmt: skip
        """tau = ID(q, v, a) − B(q) u − extra − Aᵀ λ, by one outward and one inward sweep; loops.gap gets the residuals
        e of loops and couplings. Leaves in s the motion of the nodes, in F the wrenches summed over subtrees, and the
        magnitudes of channels."""
        channel_sizes(t, s, i, u)
        recursive_newton_euler(t, s, i, q, v, a, gravity, load, ALL_TERMS, add)
        add_loop_wrenches(t, s, i, q, loops.force, loops.gap)
        project(t, s, i, tau)
        add_coupling_forces(t, s, i, q, loops.force, loops.gap, tau)
        add_function_forces(t, s, i, loops.force, tau)
        force(t, s, i, q, v, ALL_TERMS, tau)
        add_armature_force(t, i, a, tau)
        subtract_inputs(t.nv, u.shape[1], i, t.inputs.joint_gain, u, extra, tau)

    return residual
