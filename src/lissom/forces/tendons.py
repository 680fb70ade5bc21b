"""Tendons, chambers and input wrenches, by channel, inside kernels.

    L(q) = Σ w |𝒯| + Σ |x_b − x_a|,   𝒯 = ε + κ × d + d′                                                 (1)
    B = −(∂L/∂q)ᵀ:  inside a rod  −Σ w Φᵀ (d × t; t),  t = 𝒯/|𝒯|;  a straight piece pulls its two ends         (2)

A chamber has −wA for w, and t = x for one whose pressure acts normal to the section.
Source: SoRoSim 2022 eqs. (23), (29); Mathew 2025 (D60)-(D62), with the opposite sign of u.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.distances import SHORT
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import vec3, vec6
from lissom.model.groups import vec6i, vec7i
from lissom.model.tables import Tables
from lissom.passes.base_frames import origin_of
from lissom.passes.rare_kinds import may_be_tied
from lissom.passes.scratch import Scratch

native = native_functions("passes/strains.h")


Rows = wp.array2d(dtype=wp.float64)


@wp.func_native(native("strain_at"))
def strain_at(phi: wp.array(dtype=wp.float64), run_start: vec7i, run_v: vec6i, i: int, q_shift: int, q: Rows) -> vec6:
    """Φ q at one strain point."""
    ...


@wp.func_native(native("project_at"))
def project_at(phi: wp.array(dtype=wp.float64), run_start: vec7i, run_v: vec6i, i: int, shift: int, y: vec6, tau: Rows):
    """tau += Φᵀ y at one strain point, tau from column `shift` on."""
    ...


@wp.func
def ask_channels(t: Tables, s: Scratch, i: int, u: Rows):
    """Leave in s what the inputs ask of the channels: tensions, pressures, lengths pulled in."""
    for c in range(s.channel.size.shape[1]):
        total = wp.float64(0.0)
        for j in range(u.shape[1]):
            total += t.channels.gain[c, j] * u[i, j]
        s.channel.size[i, c] = total


@wp.func
def path_tangent(t: Tables, xi: vec6, e: int):
    """Direction of (2) at row e of the path table, and the stretch that the length (1) counts."""
    d = t.paths.offset[e]
    T = se3.linear(xi) + wp.cross(se3.angular(xi), d) + t.paths.slope[e]
    if t.paths.is_normal[e] != 0:
        return vec3(so3.ONE, so3.ZERO, so3.ZERO), T[0]
    stretch = wp.length(T)
    return T / stretch, stretch


@wp.func
def add_path_forces(t: Tables, i: int, q: Rows, size: Rows, sign: wp.float64, tau: Rows):
    """tau += sign · (generalised force of the paths inside rods), for channels of the sizes size[i, c]."""
    for k in range(t.points.xi.shape[0]):
        xi = t.points.xi[k] + strain_at(
            t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q
        )
        y = vec6()
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            direction, _stretch = path_tangent(t, xi, e)
            f = (sign * t.paths.weight[e] * size[i, t.paths.channel[e]]) * direction
            y += se3.join(wp.cross(t.paths.offset[e], f), f)
        project_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, 0, y, tau)


@wp.func
def segment_end(t: Tables, s: Scratch, i: int, j: int, side: int) -> vec3:
    """Position of one end of straight piece j in the base frame."""
    k = t.segments.node[j, side]
    x = t.segments.position[j, side]
    if k < 0:
        return x - origin_of(t, s, i, t.segments.node[j, 1 - side])
    return s.node[i, k].R * x + s.node[i, k].p


@wp.func
def add_segment_wrench(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64):
    """F += the wrench needed against straight piece j, which pulls each of its ends towards the other."""
    a = segment_end(t, s, i, j, 0)
    b = segment_end(t, s, i, j, 1)
    f = (tension / wp.max(wp.length(b - a), SHORT)) * (b - a)
    k = t.segments.node[j, 0]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F - se3.join(wp.cross(a, f), f)
    k = t.segments.node[j, 1]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F + se3.join(wp.cross(b, f), f)


@wp.func(inline=False)
def path_length(t: Tables, s: Scratch, i: int, c: int, q: Rows) -> wp.float64:
    """L of (1) of tendon c, from the poses left in s, with that inside deformable bodies; −V of a chamber."""
    total = wp.float64(0.0)
    for k in range(t.points.xi.shape[0]):
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.channel[e] == c:
                phi_q = strain_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q)
                _direction, stretch = path_tangent(t, t.points.xi[k] + phi_q, e)
                total -= t.paths.weight[e] * stretch
    if may_be_tied():
        for j in range(t.segments.channel.shape[0]):
            if t.segments.channel[j] == c:
                total += wp.length(segment_end(t, s, i, j, 1) - segment_end(t, s, i, j, 0))
    for e in range(t.pulls.channel.shape[0]):
        if t.pulls.channel[e] == c:
            total -= s.pulls.work[i, e]
    return total


@wp.func
def input_wrench(t: Tables, s: Scratch, i: int, j: int):
    """Moment and force of controlled wrench j, and its point of application, in the base frame."""
    k = t.wrenches.node[j]
    size = s.channel.size[i, t.wrenches.channel[j]]
    m = size * se3.angular(t.wrenches.unit[j])
    f = size * se3.linear(t.wrenches.unit[j])
    if t.wrenches.is_body[j] != 0:
        m = s.node[i, k].R * m
        f = s.node[i, k].R * f
    return m, f, s.node[i, k].p + s.node[i, k].R * t.wrenches.position[j]


@wp.func
def add_channel_wrenches(t: Tables, s: Scratch, i: int, sign: wp.float64):
    """F += sign · (wrench needed against the straight pieces of tendons and the controlled wrenches)."""
    if may_be_tied():
        for j in range(t.segments.channel.shape[0]):
            add_segment_wrench(t, s, i, j, sign * s.channel.size[i, t.segments.channel[j]])
    for j in range(t.wrenches.channel.shape[0]):
        m, f, x = input_wrench(t, s, i, j)
        k = t.wrenches.node[j]
        s.node[i, k].F = s.node[i, k].F - sign * se3.join(m + wp.cross(x, f), f)
