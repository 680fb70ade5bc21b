"""Generalised forces of inputs and of elasticity: tendons, chambers, motors, wrenches, user actuators and springs.

    L(q) = Σ w |𝒯| + Σ |x_b − x_a|,   𝒯 = ε + κ × d + d′                                                 (1)
    B = −(∂L/∂q)ᵀ:  inside a rod  −Σ w Φᵀ (d × t; t),  t = 𝒯/|𝒯|;  a straight piece pulls its two ends         (2)

A chamber has −wA in place of w. If its pressure acts normal to the section, t = x. The tension of an elastic tendon
depends on its length; that of any other tendon is its input:

    T = max(0, k (L − L₀ + u))   of an elastic tendon,   T = u of another                                 (3)
    ∂(B T)/∂u = B where a tendon is not elastic, k B where an elastic one is taut, 0 where it is slack       (4)

The force of users' forces that depend on inputs w, W(t, g, η, w) at frames with the body Jacobians J, is

    τ = Σ Jᵀ W,   ∂τ/∂w = Σ Jᵀ ∂W/∂w                                                                     (8)

and B of those that are linear in their inputs is its derivative.

Lengths of tendons and volumes of chambers, taken as outputs y with the sign of B, have the second derivative

    ÿ = Bᵀ a + Ḃᵀ v,   (Ḃᵀ v)_c = −L̈_c at a = 0                                                           (5)
    in a rod        L̈ = Σ w (|𝒯̇|² − (t·𝒯̇)²)/|𝒯|,   𝒯̇ of 𝒯 = ε + κ×d + d′, which is linear in q           (6)
    straight        L̈ = t·(ẍ_b − ẍ_a) + (|ẋ_b − ẋ_a|² − L̇²)/L                                             (7)

The ends in (7) have their accelerations at a = 0. The share of deformable bodies is −vᵀ (∂B/∂θ) v, or Python computes
it before the launch.
Source: SoRoSim 2022 eqs. (23), (29); Mathew 2025 (D60)-(D62), with the opposite sign of u.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.kinematics import forward_kinematics, jacobians_at
from lissom.errors import AccuracyWarning, ModelError, ShapeError, check_kept
from lissom.forces.contact import SHORT
from lissom.forces.path_springs import path_spring_length
from lissom.forces.tendons import (
    SLACK_TOLERANCE,
    add_channel_wrenches,
    add_pull_forces,
    add_pull_wrenches,
    path_length,
    path_tangent,
    segment_end,
    wrapped_piece,
)
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace, filled_workspace, flat, leading, require_finite_rows, stack
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.model_batch import Differs
from lissom.model.points import on_node
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import traversal
from lissom.passes.features import may_have_couplings, may_have_straight_tendons
from lissom.passes.interval import project_at, strain_at
from lissom.passes.pulls import bend_of_pull, evaluate_derivatives
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import place_bases, project

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.dynamics.loads import Times

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def add_path_rows(t: Tables, i: int, q: Rows, B: Rows):
    """B += the generalised force of each path inside rods, one row of nv numbers for each channel at unit size."""
    for k in range(t.points.xi.shape[0]):
        start = t.points.run_start[k]
        v = t.points.run_v[k]
        xi = t.points.xi[k] + strain_at(t.points.phi, start, v, i, t.points.q_shift[k], q)
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            direction, _stretch = path_tangent(t, xi, e)
            f = t.paths.weight[e] * direction
            y = se3.join(wp.cross(t.paths.offset[e], f), f)
            project_at(t.points.phi, start, v, i, t.paths.channel[e] * t.nv, y, B)


@wp.func
def put_actuation(t: Tables, s: Scratch, i: int, q: Rows, tau: Rows, B: Rows, length: Rows):
    """Lengths of the channels, and the generalised force of each at unit size, from the poses in s and zeros in
    deforming.inertial. Overwrites node.F and the sizes of channels in s, and tau."""
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


@free_of_forces
def actuation_kernel(act: Acting) -> Any:
    """Kernel of the actuation matrix and of lengths of tendons."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def actuation_alone(
        t: TablesStruct, s: ScratchStruct, q: Rows, tau: Rows, B: Rows, length: Rows, along: Rows, first: int
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, q, q)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_pose(t, s, i, k, q)
        put_actuation(t, s, i, q, tau, B, length)
        if may_have_straight_tendons():
            for e in range(along.shape[1]):
                along[i, e] = path_spring_length(t, s, i, e)

    return actuation_alone


def actuation_buffers(model: Model, batch: int) -> Buffers:
    """Buffers of the actuation matrix and of lengths of tendons."""
    n = len(model.channels.names)
    outputs = {"tau": (model.nv,), "B": (n * model.nv,), "length": (n,), "along": (model.springs.n_paths,)}
    w = Buffers(
        model, batch, {"q": (model.nq,)}, outputs, table_options=TableOptions(only_along_v=True, integrals=False)
    )
    d = w.on_device
    w.record(actuation_kernel, [w.tables, w.scratch, d["q"], d["tau"], d["B"], d["length"], d["along"]])
    return w


def input_rows(model: Model, u: Any) -> np.ndarray:
    """Inputs u as an array (..., nu); None is zero."""
    return np.zeros(model.nu) if u is None else stack("u", u, model.nu)


def single_inputs(model: Model, u: Any) -> np.ndarray:
    """u as an array of one set of inputs (nu,); None is zero.

    Raises:
        ShapeError: a wrong shape, or a value that is not finite.
    """
    row = input_rows(model, u)
    if row.ndim != 1:
        raise ShapeError(f"u: expected shape ({model.nu},), got {row.shape}")
    if not np.isfinite(row).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    return row


def run_actuation(model: Model, q: Any) -> tuple[Workspace, tuple[int, ...]]:
    """Run the kernel of lengths at q (..., nq): the workspace and the leading axes.

    Its results are `length` (n_channels,) and, per unit of each channel, `B` (n_channels, nv), which is zero for
    actuators of users.
    """
    w, lead = filled_workspace(model, "actuation", actuation_buffers, ("q",), q)
    w.run()
    w.raise_for_status()
    return w, lead


@final
@dataclass(frozen=True)
class DrivenState:
    """States (n, ...) for users' forces and actuators whose force is no product B(q) u: q, v, sizes of channels (n,
    n_channels), and times (n,)."""

    q: np.ndarray
    v: np.ndarray
    size: np.ndarray
    t: np.ndarray


def driven_state(model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times) -> DrivenState:
    """The DrivenState of states (..., n) with inputs u."""
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], u.shape[:-1], np.shape(t))
    q, v, u = (flat(x, lead) for x in (q, v, u))
    size = np.einsum("...ck,...k->...c", model.by_row(lambda one: one.channels.gain, len(u)), u)
    return DrivenState(q, v, size, np.broadcast_to(t, lead).ravel())


def needs_state(model: Model) -> bool:
    """Whether the force of an input depends on the velocity, the time or other inputs, or may do so."""
    return len(model.forces.driven) > 0 or model.nonlinear_input is not None


def driven_forces(model: Model, state: DrivenState) -> np.ndarray:
    """τ of users' forces that depend on inputs, (8), shape (n, nv).

    Raises:
        ShapeError: a force is not finite.
    """
    tau = np.zeros((len(state.q), model.nv))
    for along, _, W in _driven_results(model, state, 0):
        tau += np.einsum("nrj,nr->nj", along, W)
    return tau


def driven_slopes(model: Model, state: DrivenState) -> np.ndarray:
    """∂τ/∂w of (8) by the sizes of channels, shape (n, n_channels, nv).

    Raises:
        ShapeError: a derivative is not finite.
    """
    slopes = np.zeros((len(state.q), len(model.channels.names), model.nv))
    for along, columns, by_input in _driven_results(model, state, 2):
        slopes[:, columns] += np.einsum("nrj,ncr->ncj", along, by_input)
    return slopes


def _driven_results(model: Model, state: DrivenState, k: int) -> Iterator[tuple[np.ndarray, list[int], np.ndarray]]:
    """For each frame on which a force acts: its Jacobian times the weight (n, 6, nv), the channels of its inputs, and
    the results of function k of the force."""
    first, names, n = model.of_row(0, 1).forces.driven, model.channels.names, len(state.q)
    every = np.concatenate([force.node for force in first])
    places = replace(on_node(-1, np.eye(4), len(every), single=False), node=every)
    poses, J = jacobians_at(model, state.q, places)
    eta, at = np.einsum("nkrj,nj->nkr", J, state.v), 0
    for e, force in enumerate(first):
        columns, count = [names.index(name) for name in force.inputs], len(force.node)
        weights = np.broadcast_to(model.by_row(lambda one, e=e: one.forces.driven[e].weight, n), (n, count))
        for j in range(count):
            found = force.function.results(k, state.t, poses[:, at], eta[:, at], state.size[:, columns])
            if not np.isfinite(found).all():
                raise ShapeError(f"force {force.name!r}: expected finite values, got NaN or infinity")
            yield weights[:, j, None, None] * J[:, at], columns, found
            at += 1


def channel_forces(model: Model, w: Workspace, lead: tuple[int, ...], driven: DrivenState | None = None) -> np.ndarray:
    """Generalised force per unit of each channel, shape (..., n_channels, nv), from a workspace with q and `B`; the
    derivative with respect to the channel for users' forces and actuators, at the state `driven`.

    Raises:
        ShapeError: the force of a user's actuator is not finite.
        ModelError: without `driven`, the force of an input is not linear.
    """
    B = w.result("B", lead, len(model.channels.names), model.nv)
    if driven is None and needs_state(model):
        require_linear_forces(model)
        driven = driven_state(model, w.host["q"], np.zeros(model.nv), np.zeros(model.nu), 0.0)
    if len(model.forces.driven) and driven is not None:
        B += driven_slopes(model, driven).reshape(B.shape)
    for actuator, c, made in model.inputs.native:
        none = np.zeros((len(w.host["q"]), actuator.size))
        rows = made.matrix(w.host["q"], none if driven is None else driven.size[:, c : c + actuator.size])
        rows = np.swapaxes(rows, 1, 2)
        if not np.isfinite(rows).all():
            raise ShapeError(f"actuator {actuator.name!r}: expected finite values, got NaN or infinity")
        B[..., c : c + actuator.size, :] = rows.reshape(*lead, actuator.size, model.nv)
    return B


def require_linear_forces(model: Model) -> None:
    """Raise ModelError if there is no actuation matrix, because the force of an input is no linear function."""
    if model.nonlinear_input is not None:
        rule = "must be linear in its inputs, and depend on neither time nor twist, where an actuation matrix is needed"
        raise ModelError(f"{model.nonlinear_input}: {rule}")


def custom_actuation(model: Model, q: np.ndarray) -> np.ndarray:
    """B(q) of the users' actuators that Python calls, at q (nq,), shape (nv, nu)."""
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
    """Whether each input only tightens tendons, so that it should be >= 0, shape (nu,)."""
    gain, tendon = model.channels.gain, model.channels.is_tendon
    others = (gain[~tendon] != 0.0).any(axis=0) | (model.inputs.joint_gain != 0.0).any(axis=0)
    return (gain[tendon] > 0.0).any(axis=0) & (gain[tendon] >= 0.0).all(axis=0) & ~others


def warn_of_pushing(model: Model, u: np.ndarray, depth: int = 3) -> None:
    """Warn, once for a model, if inputs (..., nu) make a tendon push. The push is computed as given. An elastic
    tendon never pushes."""
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
    least = tension.min(initial=0.0)
    if least < 0.0 and least < -1e-12 * tension.max(initial=0.0):  # no rounding error of a slack tendon
        model.cache["warned of pushing"] = True
        names = [name for name, pulls in zip(model.channels.names, given) if pulls]
        worst = names[int(np.argmin(tension.reshape(-1, len(names)).min(axis=0)))]
        text = f"tendon {worst!r}: a tension should be >= 0 (got {least:g}); it is computed as a push"
        warnings.warn(text, AccuracyWarning, stacklevel=depth)


@contextmanager
def pushing_without_warning(model: Model) -> Iterator[None]:
    """Let tendons push without a warning, for trial inputs of a solver; later inputs still warn."""
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
        an elastic tendon it is the force of a metre pulled in while the tendon is taut, −k (∂L/∂q)ᵀ.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: a user's force or actuator is not
            linear in its inputs, or depends on time or twist besides.
    Accuracy: exactly −(∂L/∂q)ᵀ of path_lengths, times k for elastic tendons.
    Source: SoRoSim 2022 eq. (29); Mathew 2025 (D60)-(D62), with the opposite sign of u.
    """
    size = np.ones(len(model.channels.names))
    size[model.spools.channel] = model.spools.stiffness
    return weighted_actuation(model, q, size)


def weighted_actuation(model: Model, q: Any, size: np.ndarray, driven: DrivenState | None = None) -> np.ndarray:
    """B(q), shape (..., nv, nu), with the force of each channel multiplied by `size` (..., n_channels), and derivatives
    of users' forces at the state `driven`; without it, these must be linear in their inputs."""
    w, lead = run_actuation(model, q)
    channels = channel_forces(model, w, lead, driven) * size[..., None]
    B = np.swapaxes(channels, -1, -2) @ model.channels.gain + model.inputs.joint_gain
    if model.inputs.custom:
        own = [custom_actuation(model, row.copy()) for row in w.host["q"]]
        B = B + np.array(own).reshape(*lead, model.nv, model.nu)
    return B


@over_models("q", batched=True)
def path_lengths(model: Model, q: ArrayLike) -> np.ndarray:
    """Lengths of the tendons [m], in the order added, shape (..., n_tendons).

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    w, lead = run_actuation(model, q)
    return w.result("length", lead, len(model.channels.names))[..., model.channels.is_tendon]


def channel_sizes(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Tensions by (3) [N], pressures [Pa] and magnitudes of wrenches under inputs u, shape (..., n_channels)."""
    lead = np.broadcast_shapes(q.shape[:-1], u.shape[:-1])
    size = np.broadcast_to(u @ model.channels.gain.T, (*lead, len(model.channels.names))).copy()
    if len(model.spools.channel):
        size[..., model.spools.channel] = model.spools.stiffness * np.maximum(0.0, _elongation(model, q, u))
    return size


def _elongation(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """L − L₀ + u of the elastic tendons, negative where they are slack, shape (..., n)."""
    w, lead = run_actuation(model, q)
    c = model.spools.channel
    return (
        w.result("length", lead, len(model.channels.names))[..., c] - model.spools.slack + u @ model.channels.gain[c].T
    )


@over_models("q", "u")
def tendon_tensions(model: Model, q: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
    """Tensions of the tendons under given inputs [N], in the order added.

    Args:
        q: configuration, shape (..., nq). u: inputs, shape (..., nu); None is zero.
    Returns:
        T, shape (..., n_tendons): max(0, k (L − L₀ + u)) for an elastic tendon, the given input for any other.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    q, u = stack("q", q, model.nq), input_rows(model, u)
    leading(q=q, u=u)
    require_finite_rows(q=q, u=u)
    q = checked_configuration(model, "q", q)
    return channel_sizes(model, q, u)[..., model.channels.is_tendon]


def elastic_tendons(model: Model, q: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tensions [N] of the elastic tendons, shape (..., n), and the energy that they store [J], shape (...)."""
    stretch = np.maximum(0.0, _elongation(model, q, u))
    return model.spools.stiffness * stretch, 0.5 * np.square(stretch) @ model.spools.stiffness


def input_force(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times, *, elastic: bool = True
) -> np.ndarray:
    """Generalised force of all inputs, B T of (4) and (8), at states q (n, nq), v (n, nv), u (n, nu); shape (n, nv).
    Without `elastic`, elastic tendons have none."""
    is_driven = needs_state(model)
    if not len(model.spools.channel) and not is_driven:
        return np.einsum("nij,nj->ni", actuation_matrix(model, q), u)
    w, lead = run_actuation(model, q)
    driven, force = driven_state(model, q, v, u, t) if is_driven else None, u @ model.inputs.joint_gain.T
    B, size = channel_forces(model, w, lead, driven), channel_sizes(model, q, u)
    if not elastic:
        size[..., model.spools.channel] = 0.0
    if driven is not None:
        for actuator, c, made in model.inputs.native:
            force += made.force(q, driven.size[:, c : c + actuator.size])
            B[:, c : c + actuator.size] = 0.0
        if len(model.forces.driven):
            force += driven_forces(model, driven)
            B[:, len(B[0]) - len(model.of_row(0, 1).description.inputs_of_forces()) :] = 0.0  # their channels, the last
    force += np.einsum("nci,nc->ni", B, size)
    if model.inputs.custom:
        force += np.array([custom_actuation(model, row) @ given for row, given in zip(q, u)])
    return force


def has_constant_response(model: Model) -> bool:
    """Whether `input_response` depends on no state."""
    return not (len(model.channels.names) or model.inputs.custom or needs_state(model))


def input_response(model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times) -> np.ndarray:
    """Derivative of the generalised force with respect to the inputs, (4) and (8), shape (..., nv, nu)."""
    driven, is_driven = None, needs_state(model)
    if has_constant_response(model):
        return np.broadcast_to(model.inputs.joint_gain, (*q.shape[:-1], model.nv, model.nu))
    if not len(model.spools.channel) and not is_driven:
        return actuation_matrix(model, q)
    if is_driven:
        driven = driven_state(model, q, v, u, t)
        q = driven.q.reshape(*np.broadcast_shapes(q.shape[:-1], v.shape[:-1], u.shape[:-1], np.shape(t)), model.nq)
    size = np.ones(len(model.channels.names))
    if len(model.spools.channel):
        taut = _elongation(model, q, u) > -SLACK_TOLERANCE * model.spools.slack
        size = np.ones((*taut.shape[:-1], len(size)))
        size[..., model.spools.channel] = taut * model.spools.stiffness
    return weighted_actuation(model, q, size, driven)


@wp.func
def carried_rates(s: Scratch, i: int, k: int, x: vec3):
    """Velocity and acceleration of the point of node k, or of the world, that is at x in the base frame."""
    if k < 0:
        return vec3(), vec3()
    turn = se3.angular(s.node[i, k].eta)
    rate = wp.cross(turn, x) + se3.linear(s.node[i, k].eta)
    return rate, wp.cross(se3.angular(s.node[i, k].acc), x) + se3.linear(s.node[i, k].acc) + wp.cross(turn, rate)


@wp.func
def end_rates(t: Tables, s: Scratch, i: int, j: int, side: int):
    """Position, velocity and acceleration of end `side` (0 or 1) of straight piece j in the base frame."""
    x = segment_end(t, s, i, j, side)
    rate, bend = carried_rates(s, i, t.segments.node[j, side], x)
    return x, rate, bend


@wp.func
def wrapped_length_acceleration(t: Tables, s: Scratch, i: int, j: int) -> wp.float64:
    """L̈ of piece j round a shape: ∂l/∂x · ẍ + ẋᵀ ∂²l/∂x² ẋ with the motion of both ends relative to the shape."""
    w = t.segments.wrap_node[t.segments.wrap[j]]
    piece = wrapped_piece(t, s, i, j)
    turn = vec3()
    if w >= 0:
        turn = se3.angular(s.node[i, w].eta)
    inward = wp.transpose(piece.R)
    a1, a2 = carried_rates(s, i, t.segments.node[j, 0], piece.a)
    at_a1, at_a2 = carried_rates(s, i, w, piece.a)
    b1, b2 = carried_rates(s, i, t.segments.node[j, 1], piece.b)
    at_b1, at_b2 = carried_rates(s, i, w, piece.b)
    ra = inward * (a1 - at_a1)
    rb = inward * (b1 - at_b1)
    bend_a = inward * (a2 - at_a2 - so3.TWO * wp.cross(turn, a1 - at_a1))
    bend_b = inward * (b2 - at_b2 - so3.TWO * wp.cross(turn, b1 - at_b1))
    total = wp.dot(piece.path.by_a, bend_a) + wp.dot(piece.path.by_b, bend_b)
    total += wp.dot(ra, piece.path.aa * ra) + wp.dot(rb, piece.path.bb * rb)
    return total + so3.TWO * wp.dot(ra, piece.path.ab * rb)


@wp.func
def segment_length_acceleration(t: Tables, s: Scratch, i: int, j: int) -> wp.float64:
    """L̈ of piece j between two points, by (7) for a straight one."""
    if t.segments.wrap[j] >= 0:
        return wrapped_length_acceleration(t, s, i, j)
    a, a1, a2 = end_rates(t, s, i, j, 0)
    b, b1, b2 = end_rates(t, s, i, j, 1)
    length = wp.length(b - a)
    if length < SHORT:
        return so3.ZERO
    along = (b - a) / length
    rate = wp.dot(along, b1 - a1)
    return wp.dot(along, b2 - a2) + (wp.dot(b1 - a1, b1 - a1) - rate * rate) / length


@wp.func
def rod_length_acceleration(t: Tables, i: int, c: int, q: Rows, v: Rows) -> wp.float64:
    """L̈ of channel c inside rods by (6)."""
    total = wp.float64(0.0)
    for k in range(t.points.xi.shape[0]):
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.channel[e] == c and t.paths.is_normal[e] == 0:
                start = t.points.run_start[k]
                xi = t.points.xi[k] + strain_at(t.points.phi, start, t.points.run_v[k], i, t.points.q_shift[k], q)
                xi_dot = strain_at(t.points.phi, start, t.points.run_v[k], i, 0, v)
                along, stretch = path_tangent(t, xi, e)
                T_dot = se3.linear(xi_dot) + wp.cross(se3.angular(xi_dot), t.paths.offset[e])
                rate = wp.dot(along, T_dot)
                total -= t.paths.weight[e] * (wp.dot(T_dot, T_dot) - rate * rate) / stretch
    return total


@wp.func(inline=False)
def pull_rate(t: Tables, s: Scratch, i: int, e: int, v: Rows) -> wp.float64:
    """The second derivative of the work of pull e along v, if it has native functions; otherwise zero."""
    total = wp.float64(0.0)
    n = t.pulls.column_start[e + 1] - t.pulls.column_start[e]
    first = t.node[t.pulls.node[e]].v_start
    if t.pulls.second_function[e] != wp.uint64(0):
        b = t.node[t.pulls.node[e]].map
        for j in range(n):
            s.deforming.theta_dot[i, t.deforming.column_start[b] + j] = v[i, first + j]
        total = bend_of_pull(t, s, e, b, i)
    elif t.pulls.values_function[e] != wp.uint64(0):
        evaluate_derivatives(t, s, i)
        at = t.pulls.pair_start[e]
        for j in range(n):
            for c in range(n):
                total += v[i, first + j] * s.pulls.B_q[i, at + n * j + c] * v[i, first + c]
    return total


@wp.func
def length_acceleration(t: Tables, s: Scratch, i: int, c: int, q: Rows, v: Rows, inside: Rows) -> wp.float64:
    """L̈ of channel c by (6) and (7), from the motion in s at a = 0 without gravity. `inside` is the share of pulls that
    Python computes."""
    total = rod_length_acceleration(t, i, c, q, v)
    if may_have_couplings():
        for j in range(t.segments.channel.shape[0]):
            if t.segments.channel[j] == c:
                total += segment_length_acceleration(t, s, i, j)
    for e in range(t.pulls.channel.shape[0]):
        if t.pulls.channel[e] == c:
            total -= inside[i, e] + pull_rate(t, s, i, e, v)
    return total


def has_length_accelerations(model: Model) -> bool:
    """Whether all inputs except motors act on lengths and volumes with a known L̈."""
    others = any(model.channels.gain[c].any() for c in (*model.spools.channel, *model.wrenches.channel))
    by_functions = model.inputs.custom or model.inputs.native or model.forces.driven
    return not (others or model.pulls.presses.any() or by_functions)


@over_models()
def stiffness_matrix(model: Model) -> np.ndarray:
    """Stiffness matrix K of the equation of motion, shape (nv, nv) [N·m², N·m, N in the units of each coordinate].

    Constant; for the spring of a spherical or free joint it is the value at rest.

    Source: SoRoSim 2022 eq. (28), on the rods' Gauss points.
    """
    return model.elasticity.stiffness.copy()


@over_models()
def damping_matrix(model: Model) -> np.ndarray:
    """Damping matrix D of the equation of motion, shape (nv, nv) [N·m²·s, N·m·s, N·s in the units of each coordinate].

    Constant.

    Source: SoRoSim 2022 eq. (27), on the rods' Gauss points.
    """
    return model.elasticity.damping.copy()


@over_models("q")
def spring_lengths(model: Model, q: ArrayLike) -> np.ndarray:
    """Lengths of the springs between points and along paths [m], in the order added, shape (..., n_springs).

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    springs, g = model.springs, forward_kinematics(model, q)
    along = np.zeros((*g.shape[:-3], 0))
    if springs.n_paths:
        w, lead = run_actuation(model, q)
        along = w.result("along", lead, springs.n_paths)
    world = np.broadcast_to(np.eye(4), (*g.shape[:-3], 1, 4, 4))
    here = np.concatenate([g, world], axis=-3)[..., springs.node, :, :]  # node -1 is the last
    ends = np.einsum("...ij,...j->...i", here[..., :3, :3], springs.position) + here[..., :3, 3]
    straight = np.linalg.norm(ends[..., 1, :] - ends[..., 0, :], axis=-1)
    return np.concatenate([straight, along], axis=-1)[..., springs.place]
