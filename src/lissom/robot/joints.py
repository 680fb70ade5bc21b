"""Joints: each says which node motions it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.fields import Numbers


class MotionKind(Enum):
    """How a node moves: exp(Ω(q)) with q̇ = v, or a stored pose whose velocity is a body twist."""

    EXP = 0
    SPHERICAL = 1
    FREE = 2

    @property
    def has_quaternion(self) -> bool:
        """Whether the pose is stored, so that q has one number more than v."""
        return self in (MotionKind.SPHERICAL, MotionKind.FREE)


class Motion(NamedTuple):
    """One node of a joint: its kind and constant Φ, shape (6, n), angular first."""

    kind: MotionKind
    Phi: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Spring:
    """What every joint may have: a linear spring and damper on its own coordinates.

    Args:
        stiffness: scalar, (nv,) or (nv, nv) [N·m/rad, N/m]; the force is zero at `rest`.
        damping: scalar, (nv,) or (nv, nv) [N·m·s/rad, N·s/m].
        rest: coordinates where the spring is slack, shape (nq,); None is the neutral configuration.
    """

    stiffness: Numbers = 0.0
    damping: Numbers = 0.0
    rest: Numbers | None = None


class Joint(ABC):
    """A rigid joint: a short list of node motions from the parent's side to the child's.

    Law: g = Π exp(Φ q) over its EXP nodes, or the stored pose of its one GROUP node; every Φ has independent columns
    that commute. Joint frames coincide at the neutral configuration.
    """

    stiffness: Any
    damping: Any
    rest: Any

    @abstractmethod
    def motions(self, where: str) -> list[Motion]:
        """The nodes of the joint; raises ModelError where an axis is wrong."""

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return sum(motion.Phi.shape[1] for motion in self.motions("joint"))

    @property
    def nq(self) -> int:
        """Number of configuration coordinates; one more than nv where a quaternion is stored."""
        return self.nv + sum(motion.kind.has_quaternion for motion in self.motions("joint"))

    def neutral(self) -> np.ndarray:
        """The configuration where both joint frames coincide, shape (nq,)."""
        q = np.zeros(self.nq)
        if self.nq != self.nv:
            q[0] = 1.0
        return q

    def rest_configuration(self, where: str) -> np.ndarray:
        """The configuration where the spring is slack, shape (nq,), its quaternion normalised."""
        if self.rest is None:
            return self.neutral()
        if self.nq == 0:
            raise checks.fail(f"{where}: rest", "a joint without coordinates has none", self.rest)
        q = checks.array(np.atleast_1d(self.rest), (self.nq,), f"{where}: rest", f"must have shape ({self.nq},)")
        if self.nq != self.nv:
            length = float(np.linalg.norm(q[:4]))
            checks.require(abs(length - 1.0) <= 1e-6, f"{where}: rest", "its quaternion must have unit length", q)
            q[:4] /= length
        return q

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        self.motions(where)
        checks.symmetric(self.stiffness, self.nv, f"{where}: stiffness")
        checks.symmetric(self.damping, self.nv, f"{where}: damping")
        self.rest_configuration(where)


def acting_fields(joint: Joint) -> list[str]:
    """The fields by which the springs of a joint act."""
    return [name for name in ("stiffness", "damping") if np.any(getattr(joint, name))]


def _exp(*columns: Any) -> Motion:
    return Motion(MotionKind.EXP, np.array(columns, dtype=np.float64).reshape(-1, 6).T)


def _turn(axis: np.ndarray) -> np.ndarray:
    return np.concatenate([axis, np.zeros(3)])


def _slide(axis: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(3), axis])


@final
@dataclass(frozen=True)
class JointFixed(Joint, Spring):
    """No motion."""

    def motions(self, where: str) -> list[Motion]:
        return []


@final
@dataclass(frozen=True)
class JointRevolute(Joint, Spring):
    """Turns about an axis through the joint origin; q = angle [rad]."""

    axis: Numbers = (0.0, 0.0, 1.0)

    def motions(self, where: str) -> list[Motion]:
        return [_exp(_turn(checks.direction(self.axis, f"{where}: axis")))]


@final
@dataclass(frozen=True)
class JointPrismatic(Joint, Spring):
    """Slides along an axis; q = displacement [m]."""

    axis: Numbers = (1.0, 0.0, 0.0)

    def motions(self, where: str) -> list[Motion]:
        return [_exp(_slide(checks.direction(self.axis, f"{where}: axis")))]


@final
@dataclass(frozen=True)
class JointHelical(Joint, Spring):
    """Turns about an axis and advances along it by `pitch` [m/rad]; q = angle [rad]."""

    axis: Numbers = (0.0, 0.0, 1.0)
    pitch: float = 0.0

    def motions(self, where: str) -> list[Motion]:
        axis = checks.direction(self.axis, f"{where}: axis")
        pitch = checks.number(self.pitch, f"{where}: pitch")
        return [_exp(np.concatenate([axis, pitch * axis]))]


@final
@dataclass(frozen=True)
class JointCylindrical(Joint, Spring):
    """Turns about an axis and slides along it; q = (angle [rad], displacement [m])."""

    axis: Numbers = (0.0, 0.0, 1.0)

    def motions(self, where: str) -> list[Motion]:
        axis = checks.direction(self.axis, f"{where}: axis")
        return [_exp(_turn(axis), _slide(axis))]


@final
@dataclass(frozen=True)
class JointUniversal(Joint, Spring):
    """Turns about axis_1, then about axis_2 carried along; q = two angles [rad]."""

    axis_1: Numbers = (0.0, 1.0, 0.0)
    axis_2: Numbers = (0.0, 0.0, 1.0)

    def motions(self, where: str) -> list[Motion]:
        first = checks.direction(self.axis_1, f"{where}: axis_1")
        second = checks.direction(self.axis_2, f"{where}: axis_2")
        parallel = float(np.linalg.norm(np.cross(first, second))) < 1e-9
        checks.require(not parallel, f"{where}: axis_2", "must not be parallel to axis_1", self.axis_2)
        return [_exp(_turn(first)), _exp(_turn(second))]


@final
@dataclass(frozen=True)
class JointPlanar(Joint, Spring):
    """Slides in a plane and turns about its normal; q = (x [m], y [m], θ [rad]).

    The in-plane x is the projection of the axis that follows the normal's largest component cyclically (for normal z:
    x, then y), and y = normal × x.
    """

    normal: Numbers = (0.0, 0.0, 1.0)

    def motions(self, where: str) -> list[Motion]:
        normal = checks.direction(self.normal, f"{where}: normal")
        x = np.eye(3)[(int(np.argmax(np.abs(normal))) + 1) % 3]
        x = x - normal * (normal @ x)
        x /= np.linalg.norm(x)
        return [_exp(_slide(x)), _exp(_slide(np.cross(normal, x))), _exp(_turn(normal))]


@final
@dataclass(frozen=True)
class JointSpherical(Joint, Spring):
    """Turns freely; q = unit quaternion (w, x, y, z), v = body angular velocity [rad/s].

    A spring acts on the rotation vector from `rest`.
    """

    def motions(self, where: str) -> list[Motion]:
        return [Motion(MotionKind.SPHERICAL, np.eye(6)[:, :3])]


@final
@dataclass(frozen=True)
class JointFree(Joint, Spring):
    """Moves freely; q = quaternion (w, x, y, z), then position [m]; v = body twist (ω, v).

    A spring acts on the logarithm of the pose from `rest`.
    """

    def motions(self, where: str) -> list[Motion]:
        return [Motion(MotionKind.FREE, np.eye(6))]
