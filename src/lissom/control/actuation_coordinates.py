"""Actuation coordinates y(q), conjugate to the inputs: ∂y/∂q = B(q)ᵀ, so that the power of the inputs is uᵀẏ.

    y = shortening of a tendon, increase of the volume of a chamber, coordinate of a motor                 (1)
    ẏ = B(q)ᵀ v,     ÿ = B(q)ᵀ a + Ḃ(q, v)ᵀ v                                                              (2)

The actuated rows of the equation of motion are M_a a + h_a = B_a(q) u.

Source: Pustina 2025 §7.1 (the tendons' elongation inside the robot) and the principle of virtual work there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.actuation import actuation_matrix, has_length_accelerations, require_linear_forces, run_actuation
from lissom.dynamics.configuration import integrate, quaternion_joints
from lissom.dynamics.input_dynamics import input_dynamics
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.loads import Force

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_UNKNOWN = "has no known actuation coordinate: give `coordinates`, y(q) with the gradient B(q)ᵀ"
_STEP = 1e-5  # step of the finite difference along v, in natural sizes of the coordinates


def actuation_coordinates(model: Model, q: ArrayLike) -> np.ndarray:
    """Actuation coordinates y, conjugate to the inputs: ∂y/∂q = B(q)ᵀ, and y = 0 in the neutral configuration.

        y = Σ gain · (L(neutral) − L(q), V(q) − V(neutral), q of a motor)

    The coordinate of a tendon is its shortening [m], of a chamber its increase of volume [m³], of a motor its joint
    coordinate [rad, m]. The coordinate of a coupled input is the sum over its actuators, weighted by their gains.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units].
    Returns:
        y, shape (..., nu).
    Raises:
        ModelError: an input has no such coordinate: a controlled wrench, a motor of a spherical or free joint, an
            elastic tendon, or a user-defined actuator.
        ShapeError: q has a wrong shape.
    Source: Pustina 2025 §7.1, with the same y up to origin and sign.
    """
    require_coordinates(model, np.arange(model.nu))
    return coordinates_of_all(model, q)


def coordinates_of_all(model: Model, q: Any) -> np.ndarray:
    """y as in `actuation_coordinates`, without checks. Entries of inputs without a coordinate are meaningless."""
    return coordinates_from(model, q, _channel_lengths(model, q))


def coordinates_from(model: Model, q: Any, lengths: np.ndarray) -> np.ndarray:
    """`coordinates_of_all` from the lengths of channels."""
    here = model.cached(("lengths of channels", "neutral"), lambda: _channel_lengths(model, model.neutral()))
    plain = np.flatnonzero(model.dofs.q >= 0)
    moved = (np.asarray(q, dtype=np.float64) - model.neutral())[..., model.dofs.q[plain]]
    return (here - lengths) @ model.channels.gain + moved @ model.inputs.joint_gain[plain]  # (1)


def actuation_rates(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B(q), shape (nv, nu), and Ḃᵀv of (2), shape (nu,). For wrenches, pressures on deformable bodies and user-defined
    actuators Ḃ is a central difference along v, with a relative error of 1e-9."""
    pace = float(np.abs(v / model.dofs.scale).max(initial=0.0))
    if pace == 0.0 or not (model.channels.names or model.inputs.custom):
        return actuation_matrix(model, q), np.zeros(model.nu)
    if has_length_accelerations(model):
        one = input_dynamics(model, q, v)
        return one.B, one.curving
    h = _STEP / pace
    B = actuation_matrix(model, integrate(model, q, np.array([[0.0], [h], [-h]]) * v))
    return B[0], (B[1] - B[2]).T @ v / (2 * h)


def coordinate_function(model: Model, coordinates: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A function of q that returns y: `actuation_coordinates`, or the user's function."""
    if coordinates is None:
        require_coordinates(model, np.arange(model.nu))
        return lambda q: actuation_coordinates(model, q)
    checks.require(callable(coordinates), "coordinates", "must be a function of q", coordinates)
    rule = f"the function must return finite values of shape ({model.nu},)"
    return lambda q: checks.array(coordinates(q.copy()), (model.nu,), "coordinates", rule)


def require_inputs(model: Model) -> None:
    """Raise ModelError unless there are 1 to nv inputs and their forces are linear in u."""
    checks.require(model.nu > 0, "inputs", "a control law needs an actuator", model.nu)
    checks.require(model.nu <= model.nv, "inputs", f"must be at most as many as the {model.nv} coordinates", model.nu)
    require_linear_forces(model)
    for c in model.spools.channel:
        name = model.channels.names[c]
        raise ModelError(f"tendon {name!r}: must be inelastic, for its force to be linear in its input "
                         f"(got stiffness {model.channels.actuator[c].stiffness!r})")  # fmt: skip


def _channel_lengths(model: Model, q: Any) -> np.ndarray:
    """Length L of each tendon and −V of each chamber, shape (..., n_channels)."""
    w, lead = run_actuation(model, q)
    return w.result("length", lead, len(model.channels.names))


def require_coordinates(model: Model, inputs: np.ndarray, rule: str = _UNKNOWN) -> None:
    """Raise ModelError with the text `rule` if one of the `inputs` has no known actuation coordinate."""
    for c in (*model.spools.channel, *model.wrenches.channel):
        if model.channels.gain[c][inputs].any():
            raise ModelError(f"{model.channels.names[c]}: {rule} (got {type(model.channels.actuator[c]).__name__})")
    for c, pressing in zip(model.pulls.channel, model.pulls.presses):
        if pressing and model.channels.gain[c][inputs].any():
            raise ModelError(f"{model.channels.names[c]}: {rule} (got {type(model.channels.actuator[c]).__name__})")
    native = ((actuator, model.channels.gain[c : c + actuator.size]) for actuator, c, _ in model.inputs.native)
    for actuator, gain in (*model.inputs.custom, *native):
        if gain[:, inputs].any():
            raise ModelError(f"actuator {actuator.name!r}: {rule} (got {type(actuator).__name__})")
    for c, name in enumerate(model.channels.names):
        if isinstance(model.channels.actuator[c], Force) and model.channels.gain[c][inputs].any():
            raise ModelError(f"input {name!r}: {rule} (got a Force)")
    for _, j, free in quaternion_joints(model):
        driven = model.inputs.joint_gain[j : j + (6 if free else 3), inputs].any(axis=0)
        if driven.any():
            kind = "JointFree" if free else "JointSpherical"
            raise ModelError(f"input {model.inputs.names[inputs[int(np.argmax(driven))]]!r}: {rule} (got a {kind})")


_ROUNDING = 1e-9  # smaller entries of B, relative to the largest of their column, count as zero
_LEAST = 1e-10  # smallest singular value of a regular B_a with columns of unit length


def actuated_rows(model: Model) -> np.ndarray:
    """Indices of the actuated coordinates: coordinates on which an input acts in the neutral configuration, or in one
    of three configurations near it.

    Raises:
        ModelError: their number differs from the number of inputs.
    """
    near = np.random.default_rng(0).uniform(-0.3, 0.3, (4, model.nv)) * model.dofs.scale
    near[0] = 0.0
    B = np.abs(actuation_matrix(model, integrate(model, model.neutral(), near))) * model.dofs.scale[:, None]
    rows = np.flatnonzero((_ROUNDING * B.max(axis=1, keepdims=True) < B).any(axis=(0, 2)))
    if len(rows) != model.nu:
        raise ModelError(f"inputs: must be as many as the actuated coordinates, {len(rows)} (got {model.nu})")
    return rows


def solve_rows(model: Model, B_a: np.ndarray, force: np.ndarray, t: float) -> np.ndarray:
    """B_a⁻¹ force.

    Raises:
        ModelError: B_a is singular; the message gives its smallest singular value.
    """
    size = np.linalg.norm(B_a, axis=0)
    least = float(np.linalg.svd(B_a / np.where(size > 0.0, size, 1.0), compute_uv=False)[-1])
    if least < _LEAST:
        where = f"actuation matrix of {model.name!r} at t={t:g} s"
        got = f"got the least singular value {least:.3g}, scaled, for at least {_LEAST:g}"
        raise ModelError(f"{where}: must not be singular in the actuated coordinates ({got})")
    return np.linalg.solve(B_a, force)
