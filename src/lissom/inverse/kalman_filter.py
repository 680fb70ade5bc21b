"""Extended Kalman filter of the states of a robot on their manifold, and sensors.

A sensor measures y = h(q, v) + noise and supplies the derivatives of h. The error of an estimate is a tangent increment
(δq, δv) with q ⊕ δq = integrate(q, δq), so that spherical and free joints have no redundant direction. With the exact
derivatives A and B of a step f,

    (q, v) ← f(q, v, u),   P ← A P Aᵀ + B U Bᵀ + Q                                                        (1)

U is the covariance of the inputs and Q the process noise. With measurements y = h(q, v) + n, covariance R of n, and H =
∂h/∂(q, v),

    r = y ⊖ h(q, v),   S = H P Hᵀ + R,   K = P Hᵀ S⁻¹                                                     (2)
    (q, v) ← (q, v) ⊕ K r,   P ← G ((1 − K H) P (1 − K H)ᵀ + K R Kᵀ) Gᵀ                                    (3)

G maps increments at the old estimate to increments at the new one: T(δq) for spherical and free joints, otherwise 1.
Missing measurements have zero rows in H and change nothing.

Source: A. Barrau and S. Bonnabel, IEEE Trans. Autom. Control 62(4), 2017, for filters of errors in the group; P. S.
Maybeck, Stochastic Models, Estimation and Control, vol. 1, 1979, §5.3 and 5.6, for (1) to (3) in a vector space.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.actuation import run_actuation
from lissom.dynamics.assembly import assemble, consistent_start
from lissom.dynamics.configuration import (
    apply_tangent_operator,
    checked_configuration,
    difference,
    integrate,
    quaternion_joints,
)
from lissom.dynamics.kinematics import frame_jacobian, frame_pose, frame_twist
from lissom.dynamics.kinematics_derivatives import frame_twist_derivatives
from lissom.errors import ModelError, ShapeError, check_kept, renamed
from lissom.gradients.rollout import step_derivatives
from lissom.launch.workspace import batch_of, leading, stack
from lissom.lie.arrays import se3_exp, se3_log
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.robot.bases import STRAINS
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_TOLERANCE = 1e-9  # tolerance of steps; larger than in rollouts, because loops at rest have larger rounding errors


# -- sensors ----------------------------------------------------------------------------------------------------------


class Sensor(ABC):
    """A sensor.

    `value` is h, shape (..., *shape). `slopes` are its derivatives with respect to q (in the tangent space of
    `integrate`) and v, (..., size, nv) each. `apart` is the difference y ⊖ h, (..., size), and `moved` its inverse.
    `deviations` are the standard deviations of these `size` numbers.
    """

    @abstractmethod
    def shape(self, model: Model) -> tuple[int, ...]:
        """Shape of a measurement. Raises ModelError if the sensor does not fit the model."""

    @abstractmethod
    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """h(q, v)."""

    @abstractmethod
    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂h/∂q and ∂h/∂v."""

    @abstractmethod
    def deviations(self, model: Model) -> np.ndarray:
        """Standard deviation of each number, shape (size,)."""

    def apart(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Difference y ⊖ h of a measurement and a prediction, shape (..., size)."""
        return y - h

    def moved(self, h: np.ndarray, by: np.ndarray) -> np.ndarray:
        """The measurement h ⊕ by."""
        return h + by


@dataclass(frozen=True)
class SensorOnFrame(Sensor):
    """A sensor on a link or frame; on a rod at abscissa s."""

    name: str
    noise: Any
    s: float = 1.0

    @abstractmethod
    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Shape of a measurement, and number of its noise components."""

    def shape(self, model: Model) -> tuple[int, ...]:
        """Shape of a measurement."""
        frame_pose(model, model.neutral(), self.name, self.s)  # raises ModelError for an unknown frame
        return self.sizes()[0]

    def deviations(self, model: Model) -> np.ndarray:
        """Standard deviation of each number, (size,)."""
        return _deviations(self, self.noise, self.sizes()[1])


@final
@dataclass(frozen=True)
class SensorPosition(SensorOnFrame):
    """Position of a marker in the world, shape (3,) [m].

    Args:
        name: name of a link or frame.
        noise: standard deviation of each coordinate [m], a number or (3,).
        s: abscissa on a rod.
    """

    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Shape of p, and number of its noise components."""
        return (3,), 3

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Position p in the world, shape (..., 3) [m]."""
        return frame_pose(model, q, self.name, self.s)[..., :3, 3]

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂p/∂q = R J_v, and zeros for ∂p/∂v."""
        R = frame_pose(model, q, self.name, self.s)[..., :3, :3]
        by_q = R @ frame_jacobian(model, q, self.name, self.s)[..., 3:, :]
        return by_q, np.zeros_like(by_q)


@final
@dataclass(frozen=True)
class SensorPose(SensorOnFrame):
    """Pose of a frame in the world, a matrix (4, 4) [-, m], for instance measured by a camera.

    Args:
        name: name of a link or frame.
        noise: standard deviation of the increment (w; u) to the right of the pose, rotation first [rad, m], a number or
            (6,).
        s: abscissa on a rod.
    """

    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Shape of the pose, and number of components of (w; u)."""
        return (4, 4), 6

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Pose g in the world, shape (..., 4, 4)."""
        return frame_pose(model, q, self.name, self.s)

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The body Jacobian J_B, and zeros."""
        J = frame_jacobian(model, q, self.name, self.s)
        return J, np.zeros_like(J)

    def apart(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The increment log(h⁻¹ y), shape (..., 6)."""
        back = np.zeros_like(h)
        back[..., :3, :3] = np.swapaxes(h[..., :3, :3], -1, -2)
        back[..., :3, 3] = -(back[..., :3, :3] @ h[..., :3, 3:])[..., 0]
        back[..., 3, 3] = 1.0
        seen = np.isfinite(np.sum(y, axis=(-2, -1)))
        found = se3_log(back @ np.where(seen[..., None, None], y, h))
        return np.where(seen[..., None], found, np.nan)

    def moved(self, h: np.ndarray, by: np.ndarray) -> np.ndarray:
        """The pose h exp(by)."""
        return h @ se3_exp(by)


@final
@dataclass(frozen=True)
class SensorTwist(SensorOnFrame):
    """Body twist of a frame (in its own axes), angular first, shape (6,) [rad/s, m/s]. A gyroscope measures the first
    three components.

    Args:
        name: name of a link or frame.
        noise: standard deviation of each component [rad/s, m/s], a number or (6,); infinite for components that are not
            measured.
        s: abscissa on a rod.
    """

    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Shape of η_B, and number of its noise components."""
        return (6,), 6

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Body twist η_B, shape (..., 6)."""
        return frame_twist(model, q, v, self.name, self.s)

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂η_B/∂q, and J_B."""
        return frame_twist_derivatives(model, q, v, self.name, self.s)


@final
@dataclass(frozen=True)
class SensorStrain(Sensor):
    """Strains of a rod at an abscissa, for instance of strain gauges or a fibre, shape (n,) [1/m, or -].

    Args:
        link: name of the rod.
        s: abscissa.
        noise: standard deviation of each strain [1/m, or -], a number or (n,).
        components: names of the n measured strains.
    """

    link: str
    s: float
    noise: ArrayLike
    components: tuple[str, ...] = ("bending_y", "bending_z")

    def shape(self, model: Model) -> tuple[int, ...]:
        """Shape of a measurement, (n,)."""
        checks.require(self.link in model.rods, "sensor", f"must be on a rod, one of {list(model.rods)}", self.link)
        checks.require(0.0 <= self.s <= 1.0, f"sensor on {self.link!r}", "s must lie in [0, 1]", self.s)
        known = len(self.components) > 0 and set(self.components) <= set(STRAINS)
        checks.require(known, f"sensor on {self.link!r}", f"components must be some of {STRAINS}", self.components)
        return (len(self.components),)

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Strain ξ = Φ q + ξ*, shape (..., n)."""
        rod, rows = model.rods[self.link].strain, [STRAINS.index(name) for name in self.components]
        Phi = np.asarray(rod.basis(self.s))
        at = rod.v_start + rod.q_shift
        return q[..., at : at + Phi.shape[1]] @ Phi[rows].T + np.asarray(rod.reference(self.s))[rows]

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂ξ/∂q = Φ, and zeros for ∂ξ/∂v."""
        rod, rows = model.rods[self.link].strain, [STRAINS.index(name) for name in self.components]
        Phi = np.asarray(rod.basis(self.s))[rows]
        by_q = np.zeros((*q.shape[:-1], len(rows), model.nv))
        by_q[..., rod.v_start : rod.v_start + Phi.shape[1]] = Phi
        return by_q, np.zeros_like(by_q)

    def deviations(self, model: Model) -> np.ndarray:
        """Standard deviation of each strain, (n,)."""
        return _deviations(self, self.noise, len(self.components))


@final
@dataclass(frozen=True)
class SensorLength(Sensor):
    """Length of a tendon inside the robot, for instance of an encoder on its spool, shape (1,) [m].

    Args:
        tendon: name of the tendon.
        noise: standard deviation [m].
    """

    tendon: str
    noise: ArrayLike

    def shape(self, model: Model) -> tuple[int, ...]:
        """Shape of a measurement, (1,)."""
        names = [name for name, one in zip(model.channels.names, model.channels.is_tendon) if one]
        checks.require(self.tendon in names, "sensor", f"must be of a tendon, one of {names}", self.tendon)
        return (1,)

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Length L, shape (..., 1) [m]."""
        w, lead = run_actuation(model, q)
        k = model.channels.names.index(self.tendon)
        return w.result("length", lead, len(model.channels.names))[..., k : k + 1]

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂L/∂q, which is minus the generalised force of a unit tension; and zeros for ∂L/∂v."""
        w, lead = run_actuation(model, q)
        k = model.channels.names.index(self.tendon)
        by_q = -w.result("B", lead, len(model.channels.names), model.nv)[..., k : k + 1, :]
        return by_q, np.zeros_like(by_q)

    def deviations(self, model: Model) -> np.ndarray:
        """Standard deviation of the length, (1,)."""
        return _deviations(self, self.noise, 1)


def _deviations(sensor: Sensor, noise: Any, size: int) -> np.ndarray:
    """Standard deviations from a user's `noise`, shape (size,)."""
    try:
        rows = np.broadcast_to(np.asarray(noise, dtype=np.float64), (size,))
    except (TypeError, ValueError):
        rows = np.full(size, np.nan)
    rule = f"noise must be > 0, a number or of shape ({size},)"
    checks.require(bool((rows > 0.0).all()), f"{sensor!r}", rule, noise)
    return rows


# -- filter -----------------------------------------------------------------------------------------------------------


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Estimate:
    """Estimate of a state. Batches add leading axes; `run` adds an axis of times.

    Fields:
        t: time [s].
        q: configuration (nq,) [rad, m, or strain units].
        v: velocity (nv,) [unit of q per s].
        covariance: covariance (2 nv, 2 nv) of the errors (δq, δv), which are increments of `integrate`, in the units of
            q and v.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    covariance: np.ndarray


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Innovation:
    """Differences between measurements and their predictions. Batches add leading axes.

    Fields:
        values: r of all sensors, concatenated (k,), in the units of the sensors; NaN for missing measurements.
        covariance: S (k, k).
        slopes: H (k, 2 nv).
    """

    values: np.ndarray
    covariance: np.ndarray
    slopes: np.ndarray


@renamed(scheme="method")
@final
@formatting.in_one_line
@dataclass(frozen=True)
class ExtendedKalmanFilter:
    """Extended Kalman filter of the states of a robot.

    Args:
        model: model of the robot.
        sensors: list of sensors, such as `SensorPosition`.
        dt: step size [s].
        input_noise: standard deviation of the true inputs from the known inputs, a number or (nu,) [N, Pa, N·m].
        process_noise: additional noise of each step in the errors (δq, δv): standard deviations (2 nv,), or a
            covariance (2 nv, 2 nv). None: no noise.
        method: scheme of the steps, see `rollout`. Each step starts with the acceleration of its state.
    Raises:
        ModelError: a sensor does not fit the model, or loads or motions depend on time.
        ShapeError: process_noise has a wrong shape.
    """

    model: Model
    sensors: Sequence[Sensor]
    dt: float
    input_noise: ArrayLike = 0.0
    process_noise: ArrayLike | None = None
    method: str | Scheme = "bathe"
    added: np.ndarray = field(init=False, repr=False)
    inputs: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.number(self.dt, "dt", above=0.0)
        model = self.model
        checks.require(isinstance(model, Model) and not model.models, "model", "must be one Model", model)
        checks.require(len(self.sensors) > 0, "sensors", "must contain at least one", self.sensors)
        for sensor in self.sensors:
            checks.require(isinstance(sensor, Sensor), "sensors", "must be a sensor such as ls.SensorPosition", sensor)
            sensor.shape(model)
            sensor.deviations(model)
        if model.loads.varies or model.n_motions > model.prescribed.n_locked:
            rule = "a filter needs loads, currents and motions that do not depend on time"
            raise ModelError(f"robot {model.name!r}: {rule} (got one that does)")
        object.__setattr__(self, "sensors", tuple(self.sensors))
        object.__setattr__(self, "added", _covariance(self.process_noise, 2 * model.nv, "process_noise"))
        rule = f"must be a number or of shape ({model.nu},)"
        object.__setattr__(self, "inputs", checks.each(self.input_noise, model.nu, "input_noise", rule))

    def start(self, q0: ArrayLike, v0: ArrayLike, covariance: ArrayLike, t: float = 0.0) -> Estimate:
        """The first estimate.

        Args:
            q0, v0: shape (..., nq) and (..., nv).
            covariance: covariance of the errors, (..., 2 nv, 2 nv), or standard deviations (2 nv,).
            t: time [s].
        """
        q, v = checked_configuration(self.model, "q0", q0), stack("v0", v0, self.model.nv)
        lead, size = leading(q0=q, v0=v), 2 * self.model.nv
        check_kept("covariance", covariance)
        P = np.asarray(covariance, dtype=np.float64)
        P = _covariance(P, size, "covariance") if P.ndim == 1 else P
        if P.shape[-2:] != (size, size) or not np.isfinite(P).all():
            raise ShapeError(f"covariance: expected finite values of shape (..., {size}, {size}), got {P.shape}")
        q, v = np.broadcast_to(q, (*lead, q.shape[-1])), np.broadcast_to(v, (*lead, v.shape[-1]))
        return Estimate(np.asarray(float(t)), q, v, np.broadcast_to(P, (*lead, size, size)))

    def predict(self, estimate: Estimate, u: ArrayLike | None = None) -> Estimate:
        """Estimate one step later, by (1).

        Args:
            u: inputs during the step, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        Raises:
            ConvergenceError, ShapeError: as in step_derivatives.
        """
        options: dict[str, Any] = {"dt": self.dt, "method": self.method, "tolerance": _TOLERANCE}
        step = step_derivatives(self.model, estimate.q, estimate.v, u, **options)
        B = step.B * self.inputs
        P = step.A @ estimate.covariance @ _transposed(step.A) + B @ _transposed(B) + self.added  # (1)
        return Estimate(estimate.t + self.dt, step.q, step.v, P)

    def innovation(self, estimate: Estimate, measured: Sequence[Any]) -> Innovation:
        """Differences between measurements and their predictions, by (2).

        Args:
            measured: one array for each sensor, (..., *shape of its measurement); None or NaN for missing measurements.
        Raises:
            ShapeError: a measurement has a wrong shape.
        """
        q, v, lead = estimate.q, estimate.v, estimate.q.shape[:-1]
        self._check_count(measured)
        apart, slopes, spread = [], [], []
        for k, (sensor, given) in enumerate(zip(self.sensors, measured)):
            shape, deviation = sensor.shape(self.model), sensor.deviations(self.model)
            check_kept(f"measured[{k}]", given)
            y = np.full(shape, np.nan) if given is None else np.asarray(given, dtype=np.float64)
            if y.shape not in (shape, (*lead, *shape)):
                raise ShapeError(f"measured[{k}]: expected shape {(*lead, *shape)}, got {y.shape}")
            own = sensor.apart(np.broadcast_to(y, (*lead, *shape)), sensor.value(self.model, q, v))
            apart.append(np.where(np.isfinite(deviation), own, np.nan))
            slopes.append(np.concatenate(sensor.slopes(self.model, q, v), axis=-1))
            spread.append(np.where(np.isfinite(deviation), deviation, 1.0))
        r, R = np.concatenate(apart, axis=-1), np.concatenate(spread) ** 2
        H = np.where(np.isnan(r)[..., None], 0.0, np.concatenate(slopes, axis=-2))
        S = H @ estimate.covariance @ _transposed(H) + R * np.eye(len(R))  # (2)
        return Innovation(r, S, H)

    def correct(self, estimate: Estimate, measured: Sequence[Any]) -> Estimate:
        """Estimate after a correction by measurements, by (3). Arguments and errors are the same as for
        `innovation`."""
        new, P, model = self.innovation(estimate, measured), estimate.covariance, self.model
        size, nv = 2 * model.nv, model.nv
        R = np.concatenate([x.deviations(model) for x in self.sensors]) ** 2
        R = np.where(np.isnan(new.values), 1.0, R)
        K = _transposed(np.linalg.solve(new.covariance, new.slopes @ P))  # S and P are symmetric
        change = (K @ np.nan_to_num(new.values)[..., None])[..., 0]
        kept = np.eye(size) - K @ new.slopes
        P = kept @ P @ _transposed(kept) + (K * R[..., None, :]) @ _transposed(K)
        if quaternion_joints(model):
            G = np.zeros((*change.shape[:-1], size, size))
            G[..., nv:, nv:] = np.eye(nv)
            G[..., :nv, :nv] = _transposed(apply_tangent_operator(model, change[..., None, :nv], np.eye(nv)))
            P = G @ P @ _transposed(G)
        q, v = self._closed(integrate(model, estimate.q, change[..., :nv]), estimate.v + change[..., nv:])
        return Estimate(estimate.t, q, v, 0.5 * (P + _transposed(P)))

    def run(self, estimate: Estimate, u: ArrayLike, measured: Sequence[Any]) -> Estimate:
        """The given estimate, and the estimates after each step, corrected by the measurements at its end.

        Args:
            u: inputs of each step, (..., steps, nu) [N, m, Pa or N·m, by actuator].
            measured: one array for each sensor, (..., steps, *shape of its measurement); None or NaN for missing
                measurements.
        Returns:
            Estimate with an axis of times (steps + 1) after the axes of the batch.
        Raises:
            ConvergenceError, ShapeError: as in predict and correct.
        """
        self._check_count(measured)
        inputs = stack("u", u, self.model.nu)
        if inputs.ndim < 2:
            raise ShapeError(f"u: expected shape (..., steps, {self.model.nu}), got {inputs.shape}")
        shapes = [sensor.shape(self.model) for sensor in self.sensors]
        for k, y in enumerate(measured):
            check_kept(f"measured[{k}]", y)
        arrays = [None if y is None else np.asarray(y, dtype=np.float64) for y in measured]
        found, steps = [estimate], inputs.shape[-2]
        for k, (y, shape) in enumerate(zip(arrays, shapes)):
            if y is not None and (y.ndim <= len(shape) or y.shape[y.ndim - len(shape) - 1] != steps):
                raise ShapeError(f"measured[{k}]: expected shape {('...', steps, *shape)}, got {y.shape}")
        for k in range(steps):
            rows = [None if y is None else np.take(y, k, axis=y.ndim - len(shape) - 1)
                    for y, shape in zip(arrays, shapes)]  # fmt: skip
            found.append(self.correct(self.predict(found[-1], inputs[..., k, :]), rows))
        rows = {name: np.stack([getattr(x, name) for x in found], axis=-axes - 1)
                for name, axes in (("q", 1), ("v", 1), ("covariance", 2))}  # fmt: skip
        return Estimate(np.array([x.t for x in found]), **rows)

    def squared_distance(self, estimate: Estimate, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Squared Mahalanobis distance of a state from an estimate, (δq, δv)ᵀ P⁻¹ (δq, δv), shape (...) [-].

        For a consistent filter and true states, its distribution is chi-square. The degrees of freedom are the rank of
        P, which is 2 nv without loops.

        Args:
            q, v: shape (..., nq) and (..., nv).
        """
        error = np.concatenate([difference(self.model, estimate.q, q), np.asarray(v) - estimate.v], axis=-1)
        inverse = np.linalg.pinv(estimate.covariance, rcond=1e-12, hermitian=True)
        return np.einsum("...i,...ij,...j->...", error, inverse, error)

    def _check_count(self, measured: Sequence[Any]) -> None:
        if len(measured) != len(self.sensors):
            raise ShapeError(f"measured: expected {len(self.sensors)} arrays, one for each sensor, got {len(measured)}")

    def _closed(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States whose loops are closed and whose prescribed coordinates have their values."""
        if not (self.model.n_rows or self.model.n_motions):
            return q, v
        lead, n = q.shape[:-1], batch_of(q.shape[:-1])
        q, v = q.reshape(n, -1).copy(), v.reshape(n, -1).copy()
        for i in range(n):
            q[i], v[i] = consistent_start(self.model, 0.0, assemble(self.model, q[i]), v[i])
        return q.reshape(*lead, -1), v.reshape(*lead, -1)


def _covariance(given: Any, size: int, name: str) -> np.ndarray:
    """Covariance from standard deviations (size,) or from a matrix (size, size); zero for None."""
    x = np.zeros(size) if given is None else np.asarray(given, dtype=np.float64)
    if x.shape not in ((size,), (size, size)) or not np.isfinite(x).all():
        raise ShapeError(f"{name}: expected finite values of shape ({size},) or ({size}, {size}), got {x.shape}")
    return np.diag(x**2) if x.ndim == 1 else x


def _transposed(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)
