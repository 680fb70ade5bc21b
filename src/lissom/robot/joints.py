"""Joints: each is a list of node motions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.fields import FunctionOfS, Numbers, Pose
from lissom.robot.functions import cubic_pieces, is_compiled
from lissom.robot.poses import PoseFunction, PoseSpline

SpringLaw = FunctionOfS | tuple[FunctionOfS | None, ...] | None  # one for all coordinates, or one for each


class MotionKind(Enum):
    """How a node moves: EXP by exp(Ω(q)) with q̇ = v; SPHERICAL and FREE by a stored pose whose velocity is a body
    twist; MAP by any function of q. A BODY node is the frame of a deformable body: it owns the coordinates of the body,
    which do not move it."""

    EXP = 0
    SPHERICAL = 1
    FREE = 2
    MAP = 3
    BODY = 4

    @property
    def has_quaternion(self) -> bool:
        """Whether the pose is stored, so that q has one number more than v."""
        return self in (MotionKind.SPHERICAL, MotionKind.FREE)


class Motion(NamedTuple):
    """One node of a joint: its kind and Φ, shape (6, n), angular first. Φ is constant; for a MAP, which has a `pose`,
    it is the value at q = 0."""

    kind: MotionKind
    Phi: np.ndarray
    pose: PoseFunction | PoseSpline | None = None


@dataclass(frozen=True, kw_only=True)
class Spring:
    """Fields of every joint: a spring and damper on its own coordinates, and stops.

    A coordinate at a distance d behind its limit is pushed back by max(0, k R(d) + c R'(d) ḋ). Up to the width w the
    stop sets in smoothly, R' = z² (3 − 2 z) with z = d/w; beyond it R(d) = d − w/2.

    Args:
        stiffness: scalar, (nv,) or (nv, nv) [N·m/rad, N/m]; the force is zero at `rest`.
        damping: scalar, (nv,) or (nv, nv) [N·m·s/rad, N·s/m].
        armature: inertia of the rotors that turn with the coordinates [kg·m², kg], a number or one for each coordinate.
            A rotor behind a gear of ratio n counts n² times. A spherical joint takes a number, a free one none.
        rest: coordinates where the spring is slack, shape (nq,); None is the neutral configuration.
        limits: (low, high), each a number or one for each coordinate [rad, m]; infinite where there is no stop.
        limit_stiffness, limit_damping: k [N·m/rad, N/m] and c [N·m·s/rad, N·s/m] of the stops, limit_width: w [rad, m];
            numbers, or one for each coordinate.
        spring: force that holds the joint at the distance x from `rest`, in place of `stiffness`, with x in rad or m
            and the force in N·m or N: rows (x, force) of a cubic spline that is straight beyond its ends, a Tabulated,
            or a Warp function of x, which is compiled into the kernels. A joint with several coordinates takes a list
            with one of these, or None, for each.
    """

    stiffness: Numbers = 0.0
    damping: Numbers = 0.0
    armature: Numbers = 0.0
    rest: Numbers | None = None
    limits: Numbers | None = None
    limit_stiffness: Numbers = 0.0
    limit_damping: Numbers = 0.0
    limit_width: Numbers = 1e-3
    spring: SpringLaw = None


class Joint(ABC):
    """A rigid joint: a short list of node motions from the parent's side to the child's.

    Law: g = Π exp(Φ q) over its EXP nodes, the stored pose of its one SPHERICAL or FREE node, or the function of q of
    its one MAP node. Every Φ of an EXP node has independent columns that commute. The joint frames coincide at the
    neutral configuration; those of a MAP may differ there.
    """

    stiffness: Any
    damping: Any
    armature: Any
    rest: Any
    limits: Numbers | None
    limit_stiffness: Numbers
    limit_damping: Numbers
    limit_width: Numbers
    spring: SpringLaw

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

    def armatures(self, where: str) -> np.ndarray:
        """Inertia of rotors by coordinate, shape (nv,)."""
        shapes = [(), (self.nv,)] if self.nq == self.nv else [()]  # rotations of a spherical joint have no fixed axes
        rule = "must be >= 0, a number" + " or one for each coordinate" * (len(shapes) - 1)
        try:
            given = np.asarray(self.armature, dtype=np.float64)
        except (TypeError, ValueError):
            raise checks.fail(f"{where}: armature", rule, self.armature) from None
        good = given.shape in shapes and bool((np.isfinite(given) & (given >= 0.0)).all())
        checks.require(good, f"{where}: armature", rule, self.armature)
        turns = any(motion.kind is MotionKind.FREE for motion in self.motions(where))
        checks.require(not (turns and given.any()), f"{where}: armature", "must be left out on a free joint", given)
        return np.full(self.nv, given)

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        self.motions(where)
        checks.symmetric(self.stiffness, self.nv, f"{where}: stiffness")
        checks.symmetric(self.damping, self.nv, f"{where}: damping")
        self.armatures(where)
        self.rest_configuration(where)
        coordinate_laws(self, where)


class CoordinateLaw(NamedTuple):
    """Stops and nonlinear spring of one coordinate. numbers: low, high, k, c, w and rest. spring: its law, or None.
    pieces: those of the law (see cubic_pieces), None for a Warp function."""

    numbers: tuple[float, ...]
    spring: Any
    pieces: tuple[np.ndarray, np.ndarray] | None


def coordinate_laws(joint: Joint, where: str) -> list[tuple[int, CoordinateLaw]]:
    """The coordinates of a joint that have a stop or a nonlinear spring, each with its laws.

    Raises:
        ModelError: the rule that the description breaks.
    """
    if joint.limits is None and joint.spring is None:
        for name in ("limit_stiffness", "limit_damping"):
            value, rule = getattr(joint, name), "must be left out where there are no limits"
            checks.require(isinstance(value, int | float) and value == 0.0, f"{where}: {name}", rule, value)
        return []
    n = joint.nv
    for name in ("limits", "spring"):
        rule = "must be left out on a joint without coordinates, a spherical and a free one"
        checks.require(
            0 < n == joint.nq or getattr(joint, name) is None, f"{where}: {name}", rule, getattr(joint, name)
        )
    stops, springs = _stops(joint, n, where), _springs(joint, n, where)
    rest = joint.rest_configuration(where)
    rows = [(*map(float, stops[c]), float(rest[c])) for c in range(n)]
    return [(c, CoordinateLaw(row, *spring)) for c, (row, spring) in enumerate(zip(rows, springs))
            if joint.limits is not None or spring[0] is not None]  # fmt: skip


def _stops(joint: Joint, n: int, where: str) -> np.ndarray:
    """Low, high, k, c and w by coordinate, shape (n, 5)."""
    out = np.tile([-np.inf, np.inf, 0.0, 0.0, 1.0], (n, 1))
    if joint.limits is None:
        return out
    rule = "must be (low, high), low < high, each a number or one for each coordinate"
    try:
        for side, value in zip((0, 1), joint.limits, strict=True):
            out[:, side] = value
    except (TypeError, ValueError):
        raise checks.fail(f"{where}: limits", rule, joint.limits) from None
    checks.require(bool((out[:, 0] < out[:, 1]).all()), f"{where}: limits", rule, joint.limits)
    for side, name, least in ((2, "limit_stiffness", True), (3, "limit_damping", False), (4, "limit_width", True)):
        value = getattr(joint, name)
        rule = f"must be {'> 0' if least else '>= 0'}, a number or one for each coordinate"
        try:
            out[:, side] = value
        except (TypeError, ValueError):
            raise checks.fail(f"{where}: {name}", rule, value) from None
        good = np.isfinite(out[:, side]) & ((out[:, side] > 0.0) | ((out[:, side] == 0.0) & (not least)))
        checks.require(bool(good.all()), f"{where}: {name}", rule, value)
    return out


def _springs(joint: Joint, n: int, where: str) -> list[tuple[Any, tuple[np.ndarray, np.ndarray] | None]]:
    """Law of the nonlinear spring and its pieces by coordinate."""
    given = [joint.spring] if n == 1 or joint.spring is None else joint.spring
    laws = list(given) * (n if joint.spring is None else 1) if isinstance(given, list | tuple) else []
    rule = f"must be a list with one for each of the {n} coordinates, None where it has none"
    checks.require(len(laws) == n, f"{where}: spring", rule, joint.spring)
    K, out = checks.symmetric(joint.stiffness, n, f"{where}: stiffness"), []
    for c, law in enumerate(laws):
        if law is None:
            out.append((None, None))
            continue
        rule = "must be left out where there is a spring"
        checks.require(not K[c].any(), f"{where}: stiffness", rule, joint.stiffness)
        rule = "must be rows (x, force), a Tabulated, or a Warp function of x"
        pieces = None if is_compiled(law) else cubic_pieces(law, f"{where}: spring", rule, "coordinates")
        out.append((law, pieces))
    return out


def acting_fields(joint: Joint) -> list[str]:
    """Names of the fields by which the spring, the damper and the stops of a joint exert a force."""
    linear = [name for name in ("stiffness", "damping") if np.any(getattr(joint, name))]
    return linear + [name for name in ("limits", "spring") if getattr(joint, name) is not None]


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
    """Turns about axis_1, then about axis_2, which axis_1 carries along; q = two angles [rad]."""

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


@final
@dataclass(frozen=True)
class JointCustom(Joint, Spring):
    """A user's joint: the pose of the child's joint frame in the parent's is any smooth function of q, with q̇ = v.

    At q = 0 the frames may differ. The spring is slack there unless `rest` gives another configuration.

    Args:
        pose: a function of q, shape (n,), that returns the 4x4 pose, made of jax.numpy (needs the extra `jax`); or,
            for n = 1, a PoseSpline.
        n: number of coordinates, 1 to 6.
    """

    pose: Pose
    n: int = 1

    @property
    def nv(self) -> int:
        return self.n

    @property
    def nq(self) -> int:
        return self.n

    def motions(self, where: str) -> list[Motion]:
        n = checks.integer(self.n, f"{where}: n", least=1, most=6)
        if isinstance(self.pose, PoseSpline):
            self.pose.check(f"{where} > pose")
            checks.require(n == 1, f"{where}: n", "must be 1 for a PoseSpline", n)
            return [Motion(MotionKind.MAP, self.pose.motion(np.zeros(1))[1], self.pose)]
        checks.require(callable(self.pose), f"{where}: pose", "must be a function of q or a PoseSpline", self.pose)
        pose = PoseFunction(self.pose, n)
        pose.check(f"{where}: pose")
        return [Motion(MotionKind.MAP, pose.motion(np.zeros(n))[1], pose)]
