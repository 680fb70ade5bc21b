"""The residual of statics, its Jacobian (the tangent stiffness), and models in steady motion."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.actuation import input_rows
from lissom.dynamics.assembly import row_owner
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import model_in_steady_motion, moving_velocity, steady_velocity
from lissom.dynamics.loads import Times
from lissom.errors import AccuracyWarning, ModelError, ShapeError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import batch_of, leading
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_FULL_TURN, STATUS_TOO_MANY_PAIRS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def static_residual(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> np.ndarray | None:
    """`static_residuals` for one configuration, shape (nv + n_rows,); None if a rod interval turns too far."""
    rows, refused = static_residuals(model, q[None], u[None], t, factor, force)
    return None if refused[0] else rows[0]


def static_residuals(
    model: Model, q: np.ndarray, u: np.ndarray, t: Times, factor: float = 1.0, force: Any = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """ID(q, v, 0) − B(q) u − Aᵀ λ of configurations (n, nq) under inputs (n, nu), followed by the residuals of loops.
    Loads, inputs, gravity and inertia forces are multiplied by `factor`.

    The rows of prescribed coordinates are zero, because the forces of the motions balance them.

    Returns:
        residuals (n, nv + n_rows), and a mask (n,) of configurations in which a rod interval turns too far, or more
        pairs are near than the buffers hold.
    """
    v = np.tile(steady_velocity(model, factor), (len(q), 1))
    w = run_residual(model, q, v, np.zeros_like(v), u, t, factor, force)
    rows = np.concatenate([w.host["tau"], w.host["gap"]], axis=1)
    refused = np.isin(w.status, (STATUS_FULL_TURN, STATUS_TOO_MANY_PAIRS)) | ~np.isfinite(rows).all(axis=1)
    if w.status[~refused].any():
        w.raise_for_status()
    rows[:, model.prescribed.dof] = 0.0
    return rows, refused


def residual_jacobian(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂(ID(q, v, 0) − B(q) u − Aᵀ λ)/∂q in the tangent space. Gravity, loads, u and the inertia forces of a steady
    motion v are multiplied by `factor`.

    Returns:
        K (nv, nv); A (n_rows, nv); the derivative of the residuals of loops (n_rows, nv).
    """
    at_rest = np.zeros(model.nv)
    K, _, _, w = residual_derivatives(model, q, steady_velocity(model, factor), at_rest, u, t, factor, force)
    return K, row_results(model, w, "A"), row_results(model, w, "A_q")


@over_models("q", "u", "v")
def tangent_stiffness(
    model: Model, q: ArrayLike, u: ArrayLike | None = None, *, v: ArrayLike | None = None, t: float = 0.0
) -> np.ndarray:
    """Tangent stiffness: the derivative of the static residual along the tangent space.

        ∂(ID(q, v, 0) − B(q) u)/∂q

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units].
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        v: as in solve_statics: None takes the velocity of prescribed motions at t, zeros are rest.
        t: time of loads and prescribed motions [s].
    Returns:
        stiffness, shape (..., nv, nv). It is symmetric at an equilibrium under conservative gravity and loads. Rows and
        columns of prescribed coordinates, and of coordinates that v moves, are rows and columns of the identity.
    Raises:
        ShapeError: an argument has a wrong shape.
    Accuracy: exact derivative of the discrete model, except for user-defined actuators, which are differentiated by
    finite differences.
    """
    rows, inputs = checked_configuration(model, "q", q), input_rows(model, u)
    if not np.isfinite(inputs).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    model = model_in_steady_motion(model, moving_velocity(model, v, t))
    lead = leading(q=rows, u=inputs)
    flat = (np.broadcast_to(x, lead + x.shape[-1:]).reshape(batch_of(lead), x.shape[-1]) for x in (rows, inputs))
    found = [residual_jacobian(model, row, given, t)[0] for row, given in zip(*flat)]
    return np.array(found).reshape(*lead, model.nv, model.nv)


_UNMOVED = 1e-6  # a loop counts as closed if its rate, relative to the fastest joint, is below this


def moving_model(model: Model, q: np.ndarray, v: Any, t: float) -> Model:
    """The model in the steady motion v, or in the steady motion of its prescribed joints. The model is at rest if the
    latter would open loops."""
    moving = model_in_steady_motion(model, moving_velocity(model, v, t))
    if moving.prescribed.steady is None or not model.n_rows or not len(q):
        return moving
    w, _ = run_constraints(model, q, np.broadcast_to(moving.prescribed.steady, (len(q), model.nv)))
    rate = np.abs(w.host["rate"]).max(axis=0)
    if rate.max(initial=0.0) <= _UNMOVED * np.abs(moving.prescribed.steady).max():
        return moving
    owner = row_owner(model, int(rate.argmax()))
    if v is not None:
        raise ModelError(f"v: must not move {owner} (it parts at {rate.max():.3g} rad/s or m/s)")
    warnings.warn(
        f"robot {model.name!r}: statics takes the robot at rest, at the positions of its prescribed motions at "
        f"t = {t:g}: their velocities would open {owner}; give v=np.zeros(model.nv) if rest is meant",
        AccuracyWarning, stacklevel=3,
    )  # fmt: skip
    return model
