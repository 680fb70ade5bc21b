"""Tendons, chambers, motors, wrenches and user actuators: generalised forces B(q) u.

    L(q) = Σ w |𝒯| + Σ |x_b − x_a|,   𝒯 = ε + κ × d + d′                                                 (1)
    B = −(∂L/∂q)ᵀ:  inside a rod  −Σ w Φᵀ (d × t; t),  t = 𝒯/|𝒯|;  a straight piece pulls its two ends         (2)

A chamber has −wA for w, and t = x for one whose pressure acts normal to the section.
Source: SoRoSim 2022 eqs. (23), (29); Mathew 2025 (D60)-(D62), with the opposite sign of u.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.errors import AccuracyWarning, ShapeError, check_kept
from lissom.forces.tendons import (
    add_channel_wrenches,
    add_pull_forces,
    add_pull_wrenches,
    path_length,
    path_tangent,
    project_at,
    strain_at,
)
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.composed import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import Workspace, filled
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec6
from lissom.model.model import Model
from lissom.model.model_batch import Differs
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.scratch import ScratchStruct
from lissom.passes.traversal import project

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def add_path_rows(t: Tables, i: int, q: Rows, B: Rows):
    """B += the generalised force of each path inside rods, for channels of size one: rows of nv, one for each."""
    for k in range(t.points.xi.shape[0]):
        start = t.points.run_start[k]
        v = t.points.run_v[k]
        xi = t.points.xi[k] + strain_at(t.points.phi, start, v, i, t.points.q_shift[k], q)
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            direction, _stretch = path_tangent(t, xi, e)
            f = t.paths.weight[e] * direction
            y = se3.join(wp.cross(t.paths.offset[e], f), f)
            project_at(t.points.phi, start, v, i, t.paths.channel[e] * t.nv, y, B)


@free_of_forces
def actuation_kernel(act: Acting) -> Any:
    """Kernel of the actuation matrix and of lengths of tendons."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def actuation_alone(t: TablesStruct, s: ScratchStruct, q: Rows, tau: Rows, B: Rows, length: Rows, first: int):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, q, q)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_pose(t, s, i, k, q)
        n = s.channel.size.shape[1]
        beyond_rods = t.segments.channel.shape[0] + t.wrenches.channel.shape[0] + t.pulls.channel.shape[0]
        for c in range(n):
            length[i, c] = path_length(t, s, i, c, q)
            if beyond_rods > 0:
                for e in range(n):
                    s.channel.size[i, e] = so3.ZERO
                s.channel.size[i, c] = so3.ONE
                for k in range(t.n_dynamic):
                    s.node[i, k].F = vec6()
                add_channel_wrenches(t, s, i, -so3.ONE)
                add_pull_wrenches(t, s, i, -so3.ONE)
                project(t, s, i, tau)
                add_pull_forces(t, s, i, so3.ONE, tau)
            for j in range(t.nv):
                B[i, c * t.nv + j] = wp.where(beyond_rods > 0, tau[i, j], so3.ZERO)
        add_path_rows(t, i, q, B)

    return actuation_alone


def _make(model: Model, batch: int) -> Buffers:
    n = len(model.channels.names)
    outputs = {"tau": (model.nv,), "B": (n * model.nv,), "length": (n,)}
    w = Buffers(model, batch, {"q": (model.nq,)}, outputs, wanted=Wanted(sums=True, weighs=False))
    d = w.on_device
    w.record(actuation_kernel, [w.tables, w.scratch, d["q"], d["tau"], d["B"], d["length"]])
    return w


def run_actuation(model: Model, q: Any) -> tuple[Workspace, tuple[int, ...]]:
    """The workspace whose `length` (n_channels,) and `B` (n_channels, nv) are those of q per unit of each channel."""
    w, lead = filled(model, "actuation", _make, ("q",), q)
    w.run()
    w.raise_for_status()
    return w, lead


def custom_actuation(model: Model, q: np.ndarray) -> np.ndarray:
    """B(q) of the users' own actuators, in terms of u; q (nq,), shape (nv, nu)."""
    B = np.zeros((model.nv, model.nu))
    for actuator, gain in model.inputs.custom:
        given = actuator.function(q)
        check_kept(f"actuator {actuator.name!r}", given)
        value = np.asarray(given, dtype=np.float64)
        expected = (model.nv, actuator.size)
        if value.shape == (model.nv,) and actuator.size == 1:
            value = value[:, None]
        if value.shape != expected or not np.isfinite(value).all():
            raise ShapeError(f"actuator {actuator.name!r}: expected finite values of shape {expected}, "
                             f"got shape {value.shape}")  # fmt: skip
        B += value @ gain
    return B


def tightening_inputs(model: Model) -> np.ndarray:
    """Which inputs tighten tendons and do nothing else, so that they cannot push, shape (nu,)."""
    gain, tendon = model.channels.gain, model.channels.is_tendon
    others = (gain[~tendon] != 0.0).any(axis=0) | (model.inputs.joint_gain != 0.0).any(axis=0)
    return (gain[tendon] > 0.0).any(axis=0) & (gain[tendon] >= 0.0).all(axis=0) & ~others


def warn_of_pushing(model: Model, u: np.ndarray, depth: int = 3) -> None:
    """Warn, once for a model, that inputs (..., nu) ask a tendon to push; it is computed as asked. An elastic tendon
    never pushes."""
    if "warned of pushing" in model.cache:
        return
    if isinstance(model.channels.gain, Differs):
        own = np.split(u, len(model.models)) if u.ndim > 1 else [u] * len(model.models)
        for one, rows in zip(model.models, own):
            warn_of_pushing(one, rows, depth + 1)
        return
    given = model.channels.is_tendon.copy()
    given[model.spools.channel] = False
    if not given.any():
        return
    tension = u @ model.channels.gain[given].T
    if (tension < 0.0).any():
        model.cache["warned of pushing"] = True
        names = [name for name, pulls in zip(model.channels.names, given) if pulls]
        worst = names[int(np.argmin(tension.reshape(-1, len(names)).min(axis=0)))]
        text = f"tendon {worst!r}: a tension should be >= 0 (got {tension.min():g}); it is computed as a push"
        warnings.warn(text, AccuracyWarning, stacklevel=depth)


@contextmanager
def pushing_without_warning(model: Model) -> Iterator[None]:
    """Let tendons push without a warning, and without using the one up: inputs that a solver only tries."""
    warned = "warned of pushing" in model.cache
    model.cache["warned of pushing"] = True
    try:
        yield
    finally:
        if not warned:
            model.cache.pop("warned of pushing", None)  # another thread may have done so


@over_models("q")
def actuation_matrix(model: Model, q: ArrayLike) -> np.ndarray:
    """Actuation matrix B(q) of M a + c + g + K q + D v = B u + F.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        B, shape (..., nv, nu): generalised force per unit input [per N of tension, Pa of pressure, N·m of torque]. For
        an elastic tendon it is what a metre pulled in adds while it is taut, −k (∂L/∂q)ᵀ.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exactly −(∂L/∂q)ᵀ of path_lengths, times k for elastic tendons.
    Source: SoRoSim 2022 eq. (29); Mathew 2025 (D60)-(D62), with the opposite sign of u.
    """
    size = np.ones(len(model.channels.names))
    size[model.spools.channel] = model.spools.stiffness
    return weighted_actuation(model, q, size)


def weighted_actuation(model: Model, q: Any, size: np.ndarray) -> np.ndarray:
    """B(q), shape (..., nv, nu), where a unit of gain of a channel is of a size (..., n_channels)."""
    w, lead = run_actuation(model, q)
    channels = w.result("B", lead, len(model.channels.names), model.nv) * size[..., None]
    B = np.swapaxes(channels, -1, -2) @ model.channels.gain + model.inputs.joint_gain
    if model.inputs.custom:
        own = [custom_actuation(model, row.copy()) for row in w.host["q"]]
        B = B + np.array(own).reshape(*lead, model.nv, model.nu)
    return B


@over_models("q", together=True)
def path_lengths(model: Model, q: ArrayLike) -> np.ndarray:
    """Lengths of the tendons [m], in the order added, shape (..., n_tendons).

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    w, lead = run_actuation(model, q)
    return w.result("length", lead, len(model.channels.names))[..., model.channels.is_tendon]
