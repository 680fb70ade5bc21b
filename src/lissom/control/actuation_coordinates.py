"""Actuation coordinates y(q), conjugate to the inputs: ∂y/∂q = B(q)ᵀ, so that the power of the inputs is uᵀẏ.

    y = shortening of a tendon, increase of the volume of a chamber, coordinate of a motor                 (1)
    ẏ = B(q)ᵀ v,     ÿ = B(q)ᵀ a + Ḃ(q, v)ᵀ v                                                              (2)

The actuated rows of the equation of motion are M_a a + h_a = B_a(q) u.

Partial feedback linearisation on y:

    M a + h = B(q) u,   ẏ = Bᵀ v          h = c + g + K q + D v − F                                       (3)
    ÿ = Bᵀ M⁻¹ B u + Bᵀ a₀ + Ḃᵀ v,        a₀ = −M⁻¹ h                                                     (4)
    w = ÿ_d + K_D (ẏ_d − ẏ) + K_P (y_d − y)                                                               (5)
    u = (Bᵀ M⁻¹ B)⁻¹ (w − Bᵀ a₀ − Ḃᵀ v)   and so   ë + K_D ė + K_P e = 0,   e = y_d − y                   (6)

This is the law of Pustina 2025 §7.1, without a choice of passive coordinates z: in coordinates θ = (y, z), with any z
that completes y, (Bᵀ M⁻¹ B)⁻¹ is the Schur complement M_aa − M_au M_uu⁻¹ M_ua of the mass matrix. With loops and
prescribed motions, M⁻¹ is the map from forces to the accelerations that they allow.

Implicit methods need the derivatives of u with respect to q and v. With r = ID(q, v, a) − B u, and without the small
derivative of B, they are

    ∂u/∂q = D⁻¹ (BᵀM⁻¹ ∂r/∂q − K_P Bᵀ),   ∂u/∂v = D⁻¹ (BᵀM⁻¹ ∂r/∂v − K_D Bᵀ),   D = Bᵀ M⁻¹ B           (7)

An implicit step with increment Δ, which changes v by c₁ Δ and a by c₀ Δ, knows K = ∂r/∂q T + c₁ ∂r/∂v + c₀ M at its own
a. With this K,

    ∂u/∂Δ = D⁻¹ (BᵀM⁻¹ (K − c₀ M) − K_P Bᵀ T − c₁ K_D Bᵀ)                                                 (8)

The incomplete law uses the actuated rows a of (3) and neglects the accelerations a_u of the passive coordinates in
them:

    u = B_a⁻¹ (M_aa B_a⁻ᵀ (w − Ḃ_aᵀ v_a) + h_a)   and so   ë + K_D ė + K_P e = B_aᵀ M_aa⁻¹ M_au a_u       (9)

PD control in y, with compensation of potential forces:

    u = u_d + K_P (y_d − y) − K_D ẏ,         B(q_d) u_d = g(q_d) + K q_d − F = ID(q_d, 0, 0)               (10)
    u = B_a(q)⁻¹ ID(q, 0, 0)_a + K_P (y_d − y) − K_D ẏ                                                   (11)

With V = ½ vᵀM v + U(q) + ½ (y_d − y)ᵀK_P(y_d − y) − u_dᵀy, (10) gives V̇ = −ẏᵀK_D ẏ − vᵀD v, because the power of the
inputs is uᵀẏ. V has its minimum at q_d if ∂(ID − B u_d)/∂q + B K_P Bᵀ is positive definite there.                (12)

Source: Pustina 2025 §7.1 (the tendons' elongation inside the robot) and the principle of virtual work there. For (3) to
(9): Pustina 2025 §7.1 and Simulation 9. The supplement prints −c_a − g_a in (2); the sign here is the one of §7.1. For
(10) to (12): Pustina 2025, supplement eq. (3) for (10) with y = q, and §7.2 for (11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.linalg import get_lapack_funcs

from lissom.dynamics.actuation import actuation_matrix, has_length_accelerations, require_linear_forces, run_actuation
from lissom.dynamics.configuration import checked_configuration, integrate, quaternion_joints
from lissom.dynamics.constraints import constraint_jacobian
from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.input_dynamics import input_dynamics
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.mass_matrix import mass_inverse_dynamics
from lissom.errors import ModelError, ShapeError
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.functions import Expression, RowsOfTime, Tabulated
from lissom.robot.joints import JointMotion
from lissom.robot.loads import Force
from lissom.simulation.inputs import Controller

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
        q: configuration, shape (..., nq).
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
_LEAST_SINGULAR_VALUE = 1e-10  # smallest singular value of a regular B_a with columns of unit length


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
    if least < _LEAST_SINGULAR_VALUE:
        where = f"actuation matrix of {model.name!r} at t={t:g} s"
        got = f"got the least singular value {least:.3g}, scaled, for at least {_LEAST_SINGULAR_VALUE:g}"
        raise ModelError(f"{where}: must not be singular in the actuated coordinates ({got})")
    return np.linalg.solve(B_a, force)


if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_potrf, _potrs, _pocon, _posv = get_lapack_funcs(("potrf", "potrs", "pocon", "posv"), dtype=np.float64)
_LEAST_EIGENVALUE = 1e-10  # smallest eigenvalue of a regular decoupling matrix with unit diagonal


def partial_feedback_linearization(
    model: Model,
    y: Any,
    *,
    proportional: ArrayLike,
    derivative: ArrayLike,
    velocity: Any = None,
    acceleration: Any = None,
    complete: bool = True,
    coordinates: Any = None,
) -> Controller:
    """Control law by which the actuation coordinates y follow y_d(t), for any motion of the passive coordinates.

        u = (Bᵀ M⁻¹ B)⁻¹ (w − Bᵀ a₀ − Ḃᵀ v),   w = ÿ_d + K_D (ẏ_d − ẏ) + K_P (y_d − y)

    M is the mass matrix, B the actuation matrix, and a₀ the acceleration at u = 0. The error e = y_d − y obeys ë + K_D
    ė + K_P e = 0, so it decays exponentially from any start. The rest of the robot stays bounded if its zero dynamics
    (the motion with y = y_d) is stable. This holds if the passive motions are damped and their elasticity outweighs
    gravity. With a sampling `period` T there is no feedback between samples: keep T K_D and T² K_P well below 1.
    Elastic forces that change within T are not cancelled correctly.

    Args:
        y: desired y_d, shape (nu,) [m, m³, rad], for the coordinates of `actuation_coordinates`: a constant, a function
            of t, or an ls.Tabulated, such as `path` of `static_reference`.
        proportional, derivative: gains K_P [1/s²] and K_D [1/s], positive definite: numbers, shape (nu,) or (nu, nu).
        velocity, acceleration: functions of t that return ẏ_d [m/s, m³/s, rad/s] and ÿ_d [m/s², m³/s², rad/s²]. None:
            they are derivatives of y_d.
        complete: False neglects the accelerations a_u of the passive coordinates (index u), as a computed torque for
            the actuated rows (index a): u = B_a⁻¹ (M_aa B_a⁻ᵀ (w − Ḃ_aᵀ v_a) + h_a), with the bias force h. Then the
            term B_aᵀ M_aa⁻¹ M_au a_u drives the error, which does not vanish while the passive coordinates accelerate.
        coordinates: function of q that returns y, with gradient B(q)ᵀ, for inputs that `actuation_coordinates` does not
            support.
    Returns:
        Controller for `simulate`, continuous or with a period.
    Raises:
        ModelError: wrong gains or reference; more inputs than coordinates; a force that is not linear in u; an input
            without an actuation coordinate; for complete=False, different numbers of actuated rows and inputs. During a
            simulation: the decoupling matrix Bᵀ M⁻¹ B is singular (the message gives its smallest eigenvalue).
    Source: Pustina 2025 §7.1 and supplement eq. (2); Spong 1994.
    """
    require_inputs(model)
    K = [gain(value, model.nu, name) for name, value in (("proportional", proportional), ("derivative", derivative))]
    given = callable(y) or (velocity is None and acceleration is None)
    checks.require(given, "y", "must be a function of t if its rates are given", y)
    motion = JointMotion("reference", "", y, velocity, acceleration)
    motion.check("reference", model.nu)
    reference = motion.kinematics("reference", model.nu)
    rows = None if complete else actuated_rows(model)
    in_one = coordinates is None and rows is None and not model.n_multipliers and has_length_accelerations(model)
    fixed = isinstance(y, Tabulated | Expression) and velocity is None and acceleration is None
    law = _Linearization(model, coordinate_function(model, coordinates), reference, K[0], K[1], rows, in_one, fixed)
    return Controller(law, derivatives=law.derivatives if rows is None and not model.n_multipliers else None)


def gain(value: Any, size: int, name: str) -> np.ndarray:
    """A gain as a positive definite matrix (size, size)."""
    rule = "must be symmetric positive definite"
    K = checks.symmetric(value, size, name, rule=rule)
    checks.require(bool(np.linalg.eigvalsh(K).min(initial=1.0) > 0.0), name, rule, value)
    return K


@final
@dataclass(frozen=True)
class _Linearization:
    """The law as a function of (t, q, v, z). `rows` holds the actuated rows for the incomplete law; None for the
    complete law. `in_one`: whether one launch computes all parts of the law. `keeps_reference`: whether the reference
    depends on t alone, so that its last value is cached."""

    model: Model
    coordinates: Callable[[np.ndarray], np.ndarray]
    reference: tuple[RowsOfTime, RowsOfTime, RowsOfTime]
    proportional: np.ndarray
    derivative: np.ndarray
    rows: np.ndarray | None
    in_one: bool
    keeps_reference: bool
    last: dict[str, tuple[Any, Any]] = field(default_factory=dict, compare=False)  # by name a key and its value

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        if self.rows is None:
            return self._complete(t, q, v)[0]
        own = mass_inverse_dynamics(self.model, q, v, t=t)
        B, curving, w = self._wanted(t, q, v)
        a = self.rows
        acceleration = solve_rows(self.model, B[a].T, w - curving, t)
        return solve_rows(self.model, B[a], own.mass[np.ix_(a, a)] @ acceleration + own.bias[a], t)  # (9)

    def _wanted(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B, Ḃᵀv and w of (5)."""
        B, curving = actuation_rates(self.model, q, v)
        return B, curving, self._acceleration(t, v, B, self.coordinates(q))

    def _acceleration(self, t: float, v: np.ndarray, B: np.ndarray, y: np.ndarray) -> np.ndarray:
        """w of (5)."""
        known = self.last.get("reference") if self.keeps_reference else None
        if known is None or known[0] != t:  # iterations of a step ask again at its end
            known = self.last["reference"] = t, [np.array(function(t)) for function in self.reference]
        y_d, rate_d, wanted = known[1]
        return wanted + self.derivative @ (rate_d - B.T @ v) + self.proportional @ (y_d - y)

    def _complete(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """u of (6), B, a₀, M⁻¹B and M (zero with multipliers). The result at the last state is cached, because the
        derivatives there are computed next."""
        key = (t, q.tobytes(), v.tobytes())
        known = self.last.get("state")  # as one object, since other threads may replace it
        if known is None or known[0] != key:
            known = self.last["state"] = key, self._solved(t, q, v)
        return known[1]

    def _solved(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        model, mass = self.model, np.zeros((self.model.nv, self.model.nv))
        if self.in_one:
            own = input_dynamics(model, q, v, t)
            mass, B, curving = own.mass, own.B, own.curving
            w = self._acceleration(t, v, B, coordinates_from(model, q, own.lengths))
            a = solve_mass(mass, np.column_stack([-own.bias, B]))
            a_0, response = a[:, 0], a[:, 1:]
        elif model.n_multipliers:
            B, curving, w = self._wanted(t, q, v)
            a = forward_dynamics(model, q, v, np.vstack([np.zeros(model.nu), np.eye(model.nu)]), t)
            a_0, response = a[0], (a[1:] - a[0]).T
        else:
            both = mass_inverse_dynamics(model, q, v, t=t)  # first: its cached body results serve _wanted
            mass, (B, curving, w) = both.mass, self._wanted(t, q, v)
            a = solve_mass(mass, np.column_stack([-both.bias, B]))
            a_0, response = a[:, 0], a[:, 1:]
        return decoupled(model.inputs.names, B.T @ response, w - B.T @ a_0 - curving, t), B, a_0, response, mass

    def along_step(
        self, t: float, q: np.ndarray, v: np.ndarray, matrix: np.ndarray, c0: float, c1: float, turned: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """B and ∂u/∂Δ of (8), from the matrix of a step without feedback."""
        _, B, _, response, mass = self._complete(t, q, v)
        moved = self.proportional @ turned(B.T) + c1 * self.derivative @ B.T
        return B, np.linalg.solve(B.T @ response, response.T @ (matrix - c0 * mass) - moved)

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v of (7)."""
        u, B, a_0, response, _ = self._complete(t, q, v)
        dq, dv, _, _ = residual_derivatives(self.model, q, v, a_0 + response @ u, u, t, approximate=True)
        D = B.T @ response
        by_q = np.linalg.solve(D, response.T @ dq - self.proportional @ B.T)
        return by_q, np.linalg.solve(D, response.T @ dv - self.derivative @ B.T)


def decoupled(names: tuple[str, ...], D: np.ndarray, wanted: np.ndarray, t: float) -> np.ndarray:
    """D⁻¹ wanted, for the decoupling matrix D = BᵀM⁻¹B of inputs with the given names.

    Raises:
        ModelError: D is singular; the message gives its smallest eigenvalue (after scaling to unit diagonal) and the
            inputs concerned.
    """
    size = np.sqrt(np.maximum(np.diag(D), 0.0))
    if not size.all():
        name = names[int(np.argmin(size))]
        raise ModelError(f"input {name!r}: must move the robot at t={t:g} s (got 0 on the diagonal of BᵀM⁻¹B)")
    scaled = 0.5 * (D + D.T) / np.outer(size, size)
    factor, failed = _potrf(scaled)
    # 1 / |scaled⁻¹| in the 1-norm, estimated to a factor of some units, is a lower bound of the least eigenvalue
    if failed or _pocon(factor, norm := np.abs(scaled).sum(axis=0).max())[0] * norm < 1e3 * _LEAST_EIGENVALUE:
        value, vector = np.linalg.eigh(scaled)
        if value[0] < _LEAST_EIGENVALUE:
            alike = [repr(names[k]) for k in np.flatnonzero(np.abs(vector[:, 0]) > 0.1)]
            rule = f"must not be singular, but {', '.join(alike)} move the robot alike"
            least = f"{value[0]:.3g}, scaled to a unit diagonal, for at least {_LEAST_EIGENVALUE:g}"
            raise ModelError(f"decoupling matrix BᵀM⁻¹B at t={t:g} s: {rule} (got the least eigenvalue {least})")
    return _potrs(factor, wanted / size)[0] / size


def solve_mass(mass: np.ndarray, B: np.ndarray) -> np.ndarray:
    """M⁻¹ B.

    Raises:
        ModelError: M is not positive definite; the message gives the size of its first leading block that is not.
    """
    _, found, failed = _posv(mass, B)
    if failed:
        raise ModelError(f"mass matrix: must be positive definite (its leading block of size {failed} is not)")
    return found


if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LEFT = 1e-6  # largest fraction of the potential force that inputs need not balance at the reference


def pd_compensation(
    model: Model,
    q: ArrayLike,
    *,
    proportional: ArrayLike,
    derivative: ArrayLike,
    cancel: bool = False,
    coordinates: Any = None,
) -> Controller:
    """PD control law that holds a robot at a reference q_d against gravity, elasticity and loads.

        u = u_d + K_P (y_d − y) − K_D ẏ,     B(q_d) u_d = ID(q_d, 0, 0),     y_d = y(q_d)

    y are the `actuation_coordinates`. With a motor on each coordinate y = q, and this is the law of the source. The
    model is used only once, for u_d. The energy of the closed loop never increases. q_d is asymptotically stable if
    ∂(ID − B u_d)/∂q + B K_P Bᵀ is positive definite there, and all motions with constant y are damped. With a sampling
    `period` T this holds if T is well below the periods of the closed loop and below M/K_D, with the smallest inertia M
    at a motor.

    Args:
        q: q_d, shape (nq,) [rad, m, strain units]: an equilibrium under some inputs, for instance of `solve_statics`.
        proportional, derivative: gains K_P [N·m/rad, N/m] and K_D [N·m·s/rad, N·s/m], positive definite: numbers, shape
            (nu,) or (nu, nu).
        cancel: True compensates the forces at the present q instead of q_d: u = B_a(q)⁻¹ ID(q, 0, 0)_a + K_P (y_d − y)
            − K_D ẏ, in the actuated rows a. If all coordinates are actuated, this law is stable from any start, and q_d
            need not be an equilibrium.
        coordinates: function of q that returns y, with gradient B(q)ᵀ, for inputs that `actuation_coordinates` does not
            support.
    Returns:
        Controller for `simulate`, continuous or with a period.
    Raises:
        ModelError: wrong gains; more inputs than coordinates; a force that is not linear in u; an input without an
            actuation coordinate; a q that no inputs balance (the message gives the remaining force); for cancel=True,
            different numbers of actuated rows and inputs.
        ShapeError: an argument has a wrong shape.
    Source: Pustina 2025, supplement eq. (3), and §7.2.
    """
    require_inputs(model)
    K = [gain(value, model.nu, name) for name, value in (("proportional", proportional), ("derivative", derivative))]
    q = checked_configuration(model, "q", q)
    if q.ndim != 1:
        raise ShapeError(f"q: expected shape ({model.nq},), got {q.shape}")
    y = coordinate_function(model, coordinates)
    rows = actuated_rows(model) if cancel else None
    held = np.zeros(model.nu) if cancel else _balancing_inputs(model, q)
    return Controller(_Compensation(model, y, y(q), held, K[0], K[1], rows))


def _balancing_inputs(model: Model, q: np.ndarray) -> np.ndarray:
    """u_d of (10); of several solutions the smallest. Loops and prescribed motions carry a part of the force."""
    zero = np.zeros(model.nv)
    force, B = model.dofs.scale * inverse_dynamics(model, q, zero, zero), actuation_matrix(model, q)
    supports = np.hstack([B, constraint_jacobian(model, q).T]) if model.n_multipliers else B
    found = np.linalg.lstsq(model.dofs.scale[:, None] * supports, force, rcond=None)[0]
    left = np.abs(force - model.dofs.scale * (supports @ found)).max()
    if left > _LEFT * np.abs(force).max():
        part = f"{left / np.abs(force).max():.3g} of the potential force there"
        rule = f"must be an equilibrium under some inputs, but they leave {part}; take it from solve_statics"
        raise ModelError(f"q: {rule} (got {q!r})")
    return found[: model.nu]


@final
@dataclass(frozen=True)
class _Compensation:
    """The law as a function of (t, q, v, z). `rows` holds the actuated rows if forces at the present q are cancelled,
    otherwise None."""

    model: Model
    coordinates: Callable[[np.ndarray], np.ndarray]
    y_d: np.ndarray
    u_d: np.ndarray
    proportional: np.ndarray
    derivative: np.ndarray
    rows: np.ndarray | None

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        B = actuation_matrix(self.model, q)
        u = self.u_d + self.proportional @ (self.y_d - self.coordinates(q)) - self.derivative @ (B.T @ v)  # (10)
        if self.rows is None:
            return u
        zero = np.zeros(self.model.nv)
        force = inverse_dynamics(self.model, q, zero, zero, t=t)[self.rows]
        return u + solve_rows(self.model, B[self.rows], force, t)  # (11)
