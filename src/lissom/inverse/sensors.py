"""Sensors of a robot: measurements y = h(q, v) + noise, with the derivatives of h."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.actuation import run_actuation
from lissom.dynamics.kinematics import frame_jacobian, frame_pose, frame_twist
from lissom.dynamics.kinematics_derivatives import frame_twist_derivatives
from lissom.lie.arrays import se3_exp, se3_log
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.bases import STRAINS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Sensor(ABC):
    """A sensor. `value` is h, of shape (..., *shape). `slopes` are its derivatives by q, in the tangent space of
    `integrate`, and by v, (..., size, nv) each. `apart` is the difference y ⊖ h, (..., size), and `moved` its inverse.
    `noise` is the standard deviation of each of these numbers."""

    @abstractmethod
    def shape(self, model: Model) -> tuple[int, ...]:
        """Shape of a measurement. ModelError if the sensor does not fit the model."""

    @abstractmethod
    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """h(q, v)."""

    @abstractmethod
    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂h/∂q and ∂h/∂v."""

    @abstractmethod
    def deviations(self, model: Model) -> np.ndarray:
        """Standard deviation of each number, (size,)."""

    def apart(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Difference y ⊖ h of a measurement and h, (..., size)."""
        return y - h

    def moved(self, h: np.ndarray, by: np.ndarray) -> np.ndarray:
        """The measurement h ⊕ by."""
        return h + by


@dataclass(frozen=True)
class SensorOnFrame(Sensor):
    """A sensor on a link or frame, at an abscissa where it is a rod."""

    name: str
    noise: Any
    s: float = 1.0

    @abstractmethod
    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Shape of a measurement, and the size of its noise."""

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
        name: of a link or frame. noise: standard deviation of each coordinate, a number or (3,) [m].
        s: abscissa on a rod.
    """

    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Sizes of p."""
        return (3,), 3

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """p."""
        return frame_pose(model, q, self.name, self.s)[..., :3, 3]

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R J_v, and zeros."""
        R = frame_pose(model, q, self.name, self.s)[..., :3, :3]
        by_q = R @ frame_jacobian(model, q, self.name, self.s)[..., 3:, :]
        return by_q, np.zeros_like(by_q)


@final
@dataclass(frozen=True)
class SensorPose(SensorOnFrame):
    """Pose of a frame in the world, a matrix (4, 4), measured by a camera for instance [-, m].

    Args:
        name: of a link or frame. noise: standard deviation of the increment (w; u) on the right of the pose, rotation
            first, a number or (6,) [rad, m].
        s: abscissa on a rod.
    """

    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Sizes of the pose and of (w; u)."""
        return (4, 4), 6

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """g."""
        return frame_pose(model, q, self.name, self.s)

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J_B, and zeros."""
        J = frame_jacobian(model, q, self.name, self.s)
        return J, np.zeros_like(J)

    def apart(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """log(h⁻¹ y)."""
        back = np.zeros_like(h)
        back[..., :3, :3] = np.swapaxes(h[..., :3, :3], -1, -2)
        back[..., :3, 3] = -(back[..., :3, :3] @ h[..., :3, 3:])[..., 0]
        back[..., 3, 3] = 1.0
        seen = np.isfinite(np.sum(y, axis=(-2, -1)))
        found = se3_log(back @ np.where(seen[..., None, None], y, h))
        return np.where(seen[..., None], found, np.nan)

    def moved(self, h: np.ndarray, by: np.ndarray) -> np.ndarray:
        """h exp(by)."""
        return h @ se3_exp(by)


@final
@dataclass(frozen=True)
class SensorTwist(SensorOnFrame):
    """Twist of a frame in its own axes, shape (6,) [rad/s, m/s]. A gyroscope measures the first three components.

    Args:
        name: of a link or frame. noise: standard deviation of each component, a number or (6,) [rad/s, m/s]; infinite
            for components that are not measured.
        s: abscissa on a rod.
    """

    def sizes(self) -> tuple[tuple[int, ...], int]:
        """Sizes of η_B."""
        return (6,), 6

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """η_B."""
        return frame_twist(model, q, v, self.name, self.s)

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂η_B/∂q, and J_B."""
        return frame_twist_derivatives(model, q, v, self.name, self.s)


@final
@dataclass(frozen=True)
class SensorStrain(Sensor):
    """Strains of a rod at an abscissa, measured by strain gauges or a fibre, shape (n,) [1/m, or a ratio].

    Args:
        link: name of the rod. s: abscissa. noise: standard deviation of each, a number or (n,) [1/m, or a ratio].
        components: names of the measured strains.
    """

    link: str
    s: float
    noise: ArrayLike
    components: tuple[str, ...] = ("bending_y", "bending_z")

    def shape(self, model: Model) -> tuple[int, ...]:
        """(n,)."""
        checks.require(self.link in model.rods, "sensor", f"must be on a rod, one of {list(model.rods)}", self.link)
        checks.require(0.0 <= self.s <= 1.0, f"sensor on {self.link!r}", "s must lie in [0, 1]", self.s)
        known = len(self.components) > 0 and set(self.components) <= set(STRAINS)
        checks.require(known, f"sensor on {self.link!r}", f"components must be some of {STRAINS}", self.components)
        return (len(self.components),)

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """ξ = Φ q + ξ*."""
        rod, rows = model.rods[self.link].strain, [STRAINS.index(name) for name in self.components]
        Phi = np.asarray(rod.basis(self.s))
        at = rod.v_start + rod.q_shift
        return q[..., at : at + Phi.shape[1]] @ Phi[rows].T + np.asarray(rod.reference(self.s))[rows]

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Φ, and zeros."""
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
    """Length of a tendon inside the robot, measured by an encoder of its spool, shape (1,) [m].

    Args:
        tendon: its name. noise: standard deviation [m].
    """

    tendon: str
    noise: ArrayLike

    def shape(self, model: Model) -> tuple[int, ...]:
        """(1,)."""
        names = [name for name, one in zip(model.channels.names, model.channels.is_tendon) if one]
        checks.require(self.tendon in names, "sensor", f"must be of a tendon, one of {names}", self.tendon)
        return (1,)

    def value(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """L."""
        w, lead = run_actuation(model, q)
        k = model.channels.names.index(self.tendon)
        return w.result("length", lead, len(model.channels.names))[..., k : k + 1]

    def slopes(self, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂L/∂q, the generalised force of a unit of tension with the opposite sign; and zeros."""
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
