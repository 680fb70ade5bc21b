"""Joints. A joint is a list of node motions (class Motion). Coordinates of joints may be given functions of time
(class JointMotion)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.expression_programs import Steps, has_corners, jet, programs_of
from lissom.robot.fields import FunctionOfS, FunctionOfT, JointName, Numbers, Pose
from lissom.robot.functions import (
    Expression,
    RowsOfTime,
    Tabulated,
    constant,
    cubic_pieces,
    is_compiled,
    is_exact,
    polynomial_of,
    still,
)
from lissom.robot.poses import PoseFunction, PoseSpline, exponential
from lissom.robot.traced_functions import TracedFunction

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

SpringLaw = FunctionOfS | tuple[FunctionOfS | None, ...] | None  # one for all coordinates, or one for each


class MotionKind(Enum):
    """How a node moves.

    EXP: by exp(Φ q) with q̇ = v. SPHERICAL and FREE: q holds the pose with a quaternion, and v is a body twist. MAP: by
    a user-defined function of q. BODY: the frame of a deformable body; the node owns the coordinates of the body, which
    do not move the frame.
    """

    EXP = 0
    SPHERICAL = 1
    FREE = 2
    MAP = 3
    BODY = 4

    @property
    def has_quaternion(self) -> bool:
        """Whether q holds a quaternion, so that q has one number more than v."""
        return self in (MotionKind.SPHERICAL, MotionKind.FREE)


class Motion(NamedTuple):
    """The motion of one node of a joint.

    Fields:
        kind: the kind of motion.
        Phi: motion subspace Φ, shape (6, n), angular first; for a MAP its value at q = 0.
        pose: the pose function of a MAP, otherwise None.
    """

    kind: MotionKind
    Phi: np.ndarray
    pose: PoseFunction | PoseSpline | None = None


@dataclass(frozen=True, kw_only=True)
class Spring:
    """Fields of every joint: a spring, a damper, dry friction and stops on its coordinates.

    Dry friction has the force −(F + (F_s − F) exp(−(v/v_f)²)) v/√(v² + v_s²) at the rate v of a coordinate: Coulomb's
    law with Stribeck's fall from static to sliding friction, smooth at rest.

    A coordinate at distance d beyond its limit is pushed back with max(0, k R(d) + c R'(d) ḋ). Within the width w the
    stop sets in smoothly: R' = z² (3 − 2 z) with z = d/w. Beyond w, R(d) = d − w/2.

    Args:
        stiffness: number, (nv,) or (nv, nv) [N·m/rad, N/m]. The force is zero at `rest`.
        damping: number, (nv,) or (nv, nv) [N·m·s/rad, N·s/m].
        armature: inertia of rotors that turn with the coordinates [kg·m², kg]: a number, or one for each coordinate.
            With a gear of ratio n, give n² times the inertia of the rotor. A spherical joint takes one number; a free
            joint takes none.
        rest: coordinates where the spring is relaxed, shape (nq,); None is the neutral configuration.
        limits: (low, high), each a number, or one for each coordinate [rad, m]; infinity for no stop.
        limit_stiffness, limit_damping: k [N·m/rad, N/m] and c [N·m·s/rad, N·s/m] of the stops: numbers, or one for each
            coordinate.
        limit_width: w of the stops [rad, m]: a number, or one for each coordinate.
        spring: nonlinear law that replaces `stiffness`: the restoring force (N·m or N) as a function of the
            displacement x from `rest` (rad or m). It is rows (x, force) of a cubic spline that is straight beyond its
            ends, a Tabulated, an ls.TracedFunction of x, whose derivative is exact, or a Warp function of x; both are
            compiled into the kernels. A joint with several coordinates takes a list with one law, or None, for each.
        friction: F, dry friction of a joint that slides [N·m, N]: a number, or one for each coordinate. A spherical and
            a free joint take none.
        static_friction: F_s, the friction from which the joint breaks loose, at least F [N·m, N]: a number, or one for
            each coordinate. None is F.
        stribeck_speed: v_f, the speed over which friction falls from F_s to F [rad/s, m/s]: a number, or one for each
            coordinate. It goes with `static_friction` and is larger than `slip_speed`.
        slip_speed: v_s, the sliding speed at which smooth friction reaches 0.7 F [rad/s, m/s]: a number, or one for
            each coordinate. A joint held by smooth friction creeps at a fraction of this speed.
        start: coordinates where motions begin by default, shape (nq,) [rad, m]; None is the neutral configuration.
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
    friction: Numbers = 0.0
    static_friction: Numbers | None = None
    stribeck_speed: Numbers | None = None
    slip_speed: Numbers = 1e-3
    start: Numbers | None = None


class Joint(ABC):
    """A joint: a short list of node motions from the parent to the child.

    Law: the pose of the child's joint frame in the parent's is g = Π exp(Φ q) over its EXP nodes, the stored pose of
    its single SPHERICAL or FREE node, or the function of q of its single MAP node. The columns of Φ of an EXP node are
    independent and commute. At the neutral configuration both joint frames coincide, except for a MAP.
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
    friction: Numbers
    static_friction: Numbers | None
    stribeck_speed: Numbers | None
    slip_speed: Numbers
    start: Any
    sizes: ClassVar[tuple[int, int] | None] = None  # nq and nv, if all joints of the class have the same

    @abstractmethod
    def motions(self, where: str) -> list[Motion]:
        """The nodes of the joint. Raises ModelError if an axis is wrong."""

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        if self.sizes is not None:
            return self.sizes[1]
        return sum(motion.Phi.shape[1] for motion in self.motions("joint"))

    @property
    def nq(self) -> int:
        """Number of configuration coordinates: nv, or nv + 1 for a joint with a quaternion."""
        if self.sizes is not None:
            return self.sizes[0]
        return self.nv + sum(motion.kind.has_quaternion for motion in self.motions("joint"))

    def neutral(self) -> np.ndarray:
        """The neutral configuration, shape (nq,): zero, with the unit quaternion."""
        q = np.zeros(self.nq)
        if self.nq != self.nv:
            q[0] = 1.0
        return q

    def rest_configuration(self, where: str) -> np.ndarray:
        """The configuration where the spring is relaxed, shape (nq,), with its quaternion normalised."""
        return self.configuration(self.rest, f"{where}: rest")

    def start_configuration(self, where: str) -> np.ndarray:
        """The configuration where motions begin by default, shape (nq,), with its quaternion normalised."""
        return self.configuration(self.start, f"{where}: start")

    def configuration(self, value: Any, where: str) -> np.ndarray:
        """The coordinates `value` of the joint, shape (nq,), with their quaternion normalised. None is the neutral
        configuration; a single coordinate may be a number."""
        if value is None:
            return self.neutral()
        if self.nq == 0:
            raise checks.fail(where, "a joint without coordinates has none", value)
        given = value if -1 in checks.shape(value) else np.atleast_1d(value)
        q = checks.array(given, (self.nq,), where, f"must have shape ({self.nq},)")
        if self.nq != self.nv:
            length = float(np.linalg.norm(q[:4]))
            checks.require(abs(length - 1.0) <= 1e-6, where, "its quaternion must have unit length", q)
            q[:4] /= length
        return q

    def displacement(self, q: np.ndarray, where: str) -> np.ndarray:
        """Pose (4, 4) of the child's joint frame in the parent's at the coordinates q, shape (nq,)."""
        g, first = np.eye(4), 0
        for motion in self.motions(where):
            n = motion.Phi.shape[1] + motion.kind.has_quaternion
            here, first = q[first : first + n], first + n
            if motion.pose is not None:
                g = g @ motion.pose.motion(here)[0]
            elif motion.kind.has_quaternion:
                g = g @ stored_pose(here)
            else:
                rule = "a joint with a node of another kind than EXP needs its own `displacement`"
                checks.require(motion.kind is MotionKind.EXP, where, rule, motion.kind.name)
                g = g @ exponential(motion.Phi @ here)
        return g

    def armatures(self, where: str) -> np.ndarray:
        """Rotor inertia of each coordinate, shape (nv,) [kg·m², kg]."""
        if type(self.armature) is float and self.armature == 0.0:
            return np.zeros(self.nv)
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
        """Raise ModelError if axes, stiffness, damping, armature, rest configuration, limits, friction or start of the
        joint are invalid."""
        self.motions(where)
        checks.symmetric(self.stiffness, self.nv, f"{where}: stiffness")
        checks.symmetric(self.damping, self.nv, f"{where}: damping")
        self.armatures(where)
        self.rest_configuration(where)
        self.start_configuration(where)
        coordinate_laws(self, where)
        friction_numbers(self, where)


def stored_pose(q: np.ndarray) -> np.ndarray:
    """Pose (4, 4) of the coordinates of a spherical joint, a quaternion (w, x, y, z), or of a free joint, a quaternion
    and a position."""
    w, x, y, z = q[:4]
    v = q[1:4]
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    g = np.eye(4)
    g[:3, :3] = (w * w - v @ v) * np.eye(3) + 2 * (w * W + np.outer(v, v))
    g[:3, 3] = q[4:7] if len(q) == 7 else 0.0
    return g


class CoordinateLaw(NamedTuple):
    """Stops and nonlinear spring of one coordinate.

    Fields:
        numbers: low, high, k, c, w and rest.
        spring: law of the spring, or None.
        pieces: cubic pieces of the law (see cubic_pieces); None for a Warp function.
    """

    numbers: tuple[float, ...]
    spring: Any
    pieces: tuple[np.ndarray, np.ndarray] | None


def coordinate_laws(joint: Joint, where: str) -> list[tuple[int, CoordinateLaw]]:
    """The coordinates of a joint that have a stop or a nonlinear spring: (index, CoordinateLaw) of each.

    Raises:
        ModelError: a law or the limits of a coordinate are invalid.
    """
    if joint.limits is None and joint.spring is None:
        check_without_limits(joint, where)
        return []
    n = joint.nv
    for name in ("limits", "spring"):
        rule = "must be left out on a joint without coordinates, a spherical and a free one"
        checks.require(
            0 < n == joint.nq or getattr(joint, name) is None, f"{where}: {name}", rule, getattr(joint, name)
        )
    stops, springs = stop_numbers(joint, n, where), _springs(joint, n, where)
    rest = joint.rest_configuration(where)
    rows = [(*map(float, stops[c]), float(rest[c])) for c in range(n)]
    return [(c, CoordinateLaw(row, *spring)) for c, (row, spring) in enumerate(zip(rows, springs))
            if joint.limits is not None or spring[0] is not None]  # fmt: skip


def has_friction(joint: Joint) -> bool:
    """Whether a coordinate of a joint has dry friction."""
    return bool(np.any(joint.friction)) or joint.static_friction is not None


def friction_numbers(joint: Joint, where: str) -> np.ndarray:
    """F, F_s − F, v_f and v_s of the dry friction of each coordinate, shape (nv, 4); (0, 4) without friction.

    Raises:
        ModelError: the friction, or one of its speeds, is invalid.
    """
    if type(joint.friction) is float and joint.friction == 0.0 and joint.static_friction is None:  # most joints
        rule, value = "must be left out where there is no static_friction", joint.stribeck_speed
        checks.require(value is None, f"{where}: stribeck_speed", rule, value)
        return np.zeros((0, 4))
    n = joint.nv
    F = _numbers_of_coordinates(joint, "friction", n, where, ">= 0", lambda x: x >= 0.0)
    most, v_f = F, np.ones(n)
    v_s = _numbers_of_coordinates(joint, "slip_speed", n, where, "> 0", lambda x: x > 0.0)
    if joint.static_friction is None:
        rule, value = "must be left out where there is no static_friction", joint.stribeck_speed
        checks.require(value is None, f"{where}: stribeck_speed", rule, value)
    else:
        most = _numbers_of_coordinates(joint, "static_friction", n, where, ">= friction", lambda x: x >= F)
        v_f = _numbers_of_coordinates(joint, "stribeck_speed", n, where, "> slip_speed", lambda x: x > v_s)
    rule = "must be left out on a joint without coordinates, a spherical and a free one"
    for name in ("friction", "static_friction"):
        value = getattr(joint, name)
        checks.require(0 < n == joint.nq or not np.any(value), f"{where}: {name}", rule, value)
    return np.stack([F, most - F, v_f, v_s], axis=1) if most.any() else np.zeros((0, 4))


def _numbers_of_coordinates(
    joint: Joint, name: str, n: int, where: str, bound: str, is_good: Callable[[np.ndarray], Any]
) -> np.ndarray:
    """A field of a joint as one number for each of its n coordinates, shape (n,)."""
    value, rule = getattr(joint, name), f"must be {bound}, a number or one for each coordinate"
    try:
        given = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise checks.fail(f"{where}: {name}", rule, value) from None
    fits = given.shape in ((), (n,))
    checks.require(fits and bool((np.isfinite(given) & is_good(given)).all()), f"{where}: {name}", rule, value)
    return np.full(n, given)


def range_of(joint: Joint, where: str) -> tuple[float, float]:
    """Least and largest coordinate of a joint with one coordinate, by its stops [rad, m]; infinite without stops."""
    low, high = stop_numbers(joint, 1, where)[0, :2].tolist()
    return low, high


def check_without_limits(joint: Any, where: str) -> None:
    """Raise ModelError if a joint or a coupling without limits has numbers of stops."""
    for name in ("limit_stiffness", "limit_damping"):
        value, rule = getattr(joint, name), "must be left out where there are no limits"
        checks.require(isinstance(value, int | float) and value == 0.0, f"{where}: {name}", rule, value)


def stop_numbers(joint: Any, n: int, where: str) -> np.ndarray:
    """Low, high, k, c and w of each of the n coordinates of a joint, or of a coupling, shape (n, 5).

    Raises:
        ModelError: the limits, or the stiffness, damping or width of the stops are invalid.
    """
    out = np.empty((n, 5))
    out[:] = -np.inf, np.inf, 0.0, 0.0, 1.0
    if joint.limits is None:
        return out
    rule = "must be (low, high), low < high, each a number or one for each coordinate"
    try:
        for side, value in zip((0, 1), joint.limits, strict=True):
            out[:, side] = value
    except (TypeError, ValueError):
        raise checks.fail(f"{where}: limits", rule, joint.limits) from None
    rising = all(low < high for low, high in out[:, :2].tolist())
    checks.require(rising, f"{where}: limits", rule, joint.limits)
    for side, name, least in ((2, "limit_stiffness", True), (3, "limit_damping", False), (4, "limit_width", True)):
        value = getattr(joint, name)
        rule = f"must be {'> 0' if least else '>= 0'}, a number or one for each coordinate"
        try:
            out[:, side] = value
        except (TypeError, ValueError):
            raise checks.fail(f"{where}: {name}", rule, value) from None
        good = all(isfinite(x) and (x > 0.0 or (x == 0.0 and not least)) for x in out[:, side].tolist())
        checks.require(good, f"{where}: {name}", rule, value)
    return out


def _springs(joint: Joint, n: int, where: str) -> list[tuple[Any, tuple[np.ndarray, np.ndarray] | None]]:
    """Nonlinear law and its cubic pieces, for each coordinate."""
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
        rule = "must be rows (x, force), a Tabulated, an ls.TracedFunction or a Warp function of x"
        is_function = is_compiled(law) or isinstance(law, TracedFunction)
        pieces = None if is_function else cubic_pieces(law, f"{where}: spring", rule, "coordinates")
        out.append((law, pieces))
    return out


def with_native_springs(joint: Joint, where: str) -> Joint:
    """The joint with traced laws of springs as functions of kernels.

    Raises:
        ModelError: a law cannot be traced.
    """

    def native(law: Any) -> Any:
        return law.spring_law(f"{where}: spring", 1) if isinstance(law, TracedFunction) else law

    own: Any = joint  # a dataclass
    given = own.spring
    if isinstance(given, TracedFunction):
        return replace(own, spring=native(given))
    if isinstance(given, list | tuple) and any(isinstance(law, TracedFunction) for law in given):
        return replace(own, spring=tuple(map(native, given)))
    return joint


def acting_fields(joint: Joint) -> list[str]:
    """Names of the fields that give the joint a spring, a damper, dry friction or stops."""
    numbers = [name for name in ("stiffness", "damping", "friction") if np.any(getattr(joint, name))]
    return numbers + [name for name in ("limits", "spring", "static_friction") if getattr(joint, name) is not None]


def _exp(*columns: Any) -> Motion:
    return Motion(MotionKind.EXP, np.array(columns, dtype=np.float64).reshape(-1, 6).T)


def _turn(axis: np.ndarray) -> np.ndarray:
    return np.concatenate([axis, np.zeros(3)])


def _slide(axis: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(3), axis])


@final
@dataclass(frozen=True)
class JointFixed(Joint, Spring):
    """A joint without motion: the link is fixed to its parent."""

    sizes: ClassVar = (0, 0)

    def motions(self, where: str) -> list[Motion]:
        return []


@final
@dataclass(frozen=True)
class JointRevolute(Joint, Spring):
    """Rotates about an axis through the joint's origin; q = angle [rad]."""

    sizes: ClassVar = (1, 1)

    axis: Numbers = (0.0, 0.0, 1.0)

    def motions(self, where: str) -> list[Motion]:
        return [_exp(_turn(checks.direction(self.axis, f"{where}: axis")))]


@final
@dataclass(frozen=True)
class JointPrismatic(Joint, Spring):
    """Slides along an axis; q = displacement [m]."""

    sizes: ClassVar = (1, 1)

    axis: Numbers = (1.0, 0.0, 0.0)

    def motions(self, where: str) -> list[Motion]:
        return [_exp(_slide(checks.direction(self.axis, f"{where}: axis")))]


@final
@dataclass(frozen=True)
class JointHelical(Joint, Spring):
    """Rotates about an axis and advances along it by `pitch` [m/rad]; q = angle [rad]."""

    sizes: ClassVar = (1, 1)

    axis: Numbers = (0.0, 0.0, 1.0)
    pitch: float = 0.0

    def motions(self, where: str) -> list[Motion]:
        axis = checks.direction(self.axis, f"{where}: axis")
        pitch = checks.number(self.pitch, f"{where}: pitch")
        return [_exp(np.concatenate([axis, pitch * axis]))]


@final
@dataclass(frozen=True)
class JointCylindrical(Joint, Spring):
    """Rotates about an axis and slides along it; q = (angle [rad], displacement [m])."""

    sizes: ClassVar = (2, 2)

    axis: Numbers = (0.0, 0.0, 1.0)

    def motions(self, where: str) -> list[Motion]:
        axis = checks.direction(self.axis, f"{where}: axis")
        return [_exp(_turn(axis), _slide(axis))]


@final
@dataclass(frozen=True)
class JointUniversal(Joint, Spring):
    """Rotates about axis_1, then about axis_2, which turns with the first rotation; q = two angles [rad]."""

    sizes: ClassVar = (2, 2)

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
    """Slides in a plane and rotates about its normal; q = (x [m], y [m], θ [rad]).

    For the normal z, the axes of the plane are x and y. For another normal, let k be the coordinate axis of its largest
    component. The x axis of the plane is the projection of the next coordinate axis (after z comes x), and y = normal ×
    x.
    """

    sizes: ClassVar = (3, 3)

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
    """Rotates freely; q = unit quaternion (w, x, y, z), v = body angular velocity [rad/s].

    A spring acts on the rotation vector from `rest` to the present rotation.
    """

    sizes: ClassVar = (4, 3)

    def motions(self, where: str) -> list[Motion]:
        return [Motion(MotionKind.SPHERICAL, np.eye(6)[:, :3])]


@final
@dataclass(frozen=True)
class JointFree(Joint, Spring):
    """Moves freely; q = unit quaternion (w, x, y, z), then position [m]; v = body twist, angular first [rad/s, m/s].

    A spring acts on the logarithm (6,) of the pose relative to `rest`.
    """

    sizes: ClassVar = (7, 6)

    def motions(self, where: str) -> list[Motion]:
        return [Motion(MotionKind.FREE, np.eye(6))]


@final
@dataclass(frozen=True)
class JointCustom(Joint, Spring):
    """A user-defined joint: the pose of the child's joint frame in the parent's is any smooth function of q, with q̇ =
    v.

    The two frames may differ at q = 0. The spring is relaxed at q = 0 unless `rest` gives another configuration.

    Args:
        pose: function of q, shape (n,), that returns the pose (4, 4), written with jax.numpy (extra `jax`); or, for n =
            1, a PoseSpline.
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


Programs = tuple[list[Steps], int] | None
_STEP = 2e-3  # step of the finite differences [s]
_FIRST = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
_SECOND = ((1, 8 / 5), (2, -1 / 5), (3, 8 / 315), (4, -1 / 560))


_ORDERS = {"position": 0, "velocity": 1, "acceleration": 2}
_REST = 1e-3  # rate at the end of a table that counts as rest, relative to its largest rate
_JUMP = 1e-6  # jump of the rate between two polynomials that counts as rounding, relative to the largest rate


@final
@dataclass(frozen=True)
class JointMotion:
    """Prescribed coordinates of a joint. The constraint forces that drive them are Lagrange multipliers.

    Args:
        name: unique among the motions.
        link: name of the link whose joint is driven. For spherical and free joints see `Robot.add_pose_motion`.
        position: all coordinates of the joint [rad, m]: a constant, or a function of t [s]. A single coordinate is a
            number.
        velocity: rate of the position [rad/s, m/s] as a function of t; None differentiates the position.
        acceleration: rate of the velocity [rad/s², m/s²] as a function of t; None differentiates the velocity, or the
            position twice if no velocity is given.
    A table or samples hold their last value. If they end while the joint moves, it would have to stop at once, which
    needs an infinite force: motions that are longer than the table are then refused.

    Accuracy: the derivatives that replace None are exact for constants, expressions without corners, cubic tables,
    SciPy's PPoly without corners and smooth ls.Samples. For other functions they are eighth-order differences over 8 ms
    on each side, with a relative error of 1e-9 up to 10 Hz. Such functions are also called at times before 0.
    """

    name: str
    link: JointName
    position: FunctionOfT
    velocity: FunctionOfT = None
    acceleration: FunctionOfT = None

    def check(self, where: str, size: int) -> None:
        """Raise ModelError if a function is not callable, fails at t = 0 or does not return `size` finite numbers, one
        for each coordinate of the joint."""
        for name in ("velocity", "acceleration"):
            value = getattr(self, name)
            checks.require(value is None or callable(value), f"{where}: {name}", "must be a function of t", value)
        for function in self.kinematics(where, size):
            function(0.0)
        for name, order in _ORDERS.items():
            first, _, rate = _moving_ends(getattr(self, name), order, size)
            rule = f"must begin at t <= 0, or at rest, since it is constant before its first time (rate: {rate:.3g})"
            checks.require(first <= 0.0, f"{where}: {name}", rule, first)

    def last(self, size: int) -> float:
        """The time at which a table or samples end while the joint moves [s]; infinity if none does."""
        return min(_moving_ends(getattr(self, name), order, size)[1] for name, order in _ORDERS.items())

    def kinematics(self, where: str, size: int) -> tuple[RowsOfTime, RowsOfTime, RowsOfTime]:
        """Position, velocity and acceleration as functions of t that return `size` numbers."""
        q = _values(self.position, size, f"{where}: position")
        if not callable(self.position):
            zero = still([0.0] * size)
            return q, zero, zero
        if self.velocity is None:
            v = _exact(self.position, 1, size) or _differenced(_going_on(self.position, q, size), _FIRST)
        else:
            v = _values(self.velocity, size, f"{where}: velocity")
        if self.acceleration is not None:
            a = _values(self.acceleration, size, f"{where}: acceleration")
        elif self.velocity is not None:
            a = _exact(self.velocity, 1, size, given=1) or _differenced(_going_on(self.velocity, v, size), _FIRST)
        else:
            a = _exact(self.position, 2, size) or _differenced(_going_on(self.position, q, size), _SECOND)
        return q, v, a

    def polynomials(self, size: int) -> tuple[PPoly | None, PPoly | None, PPoly | None]:
        """Position, velocity and acceleration as polynomials of time; None for each one that is not a polynomial."""
        q = polynomial_of(self.position, size)
        if not callable(self.position):
            return q, constant(np.zeros(size)), constant(np.zeros(size))
        rates = [None if self.velocity is None else polynomial_of(self.velocity, size)]
        rates.append(None if self.acceleration is None else polynomial_of(self.acceleration, size))
        known, order = self.position, 0
        for k, given in enumerate((self.velocity, self.acceleration)):
            if given is not None:
                known, order = given, k + 1
            elif _is_smooth(known, order, size):
                found = polynomial_of(known, size)
                rates[k] = None if found is None else found.derivative(k + 1 - order)
        return q, rates[0], rates[1]

    def programs(self, size: int) -> tuple[Programs, Programs, Programs]:
        """Position, velocity and acceleration, each as (programs, order): the programs of its components, and the order
        of the derivative to take. None for each one that is not an expression, or whose derivative would have corners.
        """
        if not callable(self.position):
            return None, None, None
        v = (self.position, 1) if self.velocity is None else (self.velocity, 0)
        a = (v[0], v[1] + 1) if self.acceleration is None else (self.acceleration, 0)
        return _programs(self.position, 0, size), _programs(*v, size), _programs(*a, size)


def _programs(value: Any, order: int, size: int) -> Programs:
    found = programs_of(value, size)
    return None if found is None or (order and any(map(has_corners, found))) else (found, order)


def _values(value: Any, size: int, where: str) -> RowsOfTime:
    """A constant or a function of t, as a function of t that returns a list of finite numbers."""
    shape = () if size == 1 else (size,)
    if not callable(value):
        rule = f"must be finite, of shape {shape}, or a function of t"
        row = np.atleast_1d(checks.array(_scalar(value) if size == 1 else value, shape, where, rule)).tolist()
        return still(row)

    def of_time(t: float) -> list[float]:
        return np.atleast_1d(checks.call(lambda time: _scalar(value(time)), t, shape, where)).tolist()

    is_text = isinstance(value, Expression)
    at_times = (lambda times: value.over(times).reshape(len(times), size)) if is_text else None
    quick = (value.on_floats if is_text else None) or value

    def quickly(t: float) -> list[float]:
        try:
            number = quick(t)
        except Exception:
            return of_time(t)  # raises the error if NumPy fails too
        return [float(number)] if isinstance(number, float) and isfinite(number) else of_time(t)

    return RowsOfTime(quickly if size == 1 else of_time, at_times)


def _scalar(value: Any) -> Any:
    """A list with one number as that number; other values unchanged."""
    return value[0] if checks.shape(value) == (1,) else value


def _exact(value: Any, order: int, size: int, *, given: int = 0) -> RowsOfTime | None:
    """The exact derivative of an expression or of polynomials of time. None for other functions, and for functions with
    corners. `given` is 0 if they give the position, 1 if they give the velocity."""
    if isinstance(value, Expression):
        known = _programs(value, order, size)
        return None if known is None else _rates(*known)
    if not _is_smooth(value, given, size):
        return None
    if isinstance(value, Tabulated):
        return RowsOfTime(lambda t: np.reshape(value.slope(t, order), size).tolist())
    found = polynomial_of(value, size)
    return None if found is None else RowsOfTime(lambda t: found(t, order).tolist())


def _is_smooth(value: Any, given: int, size: int) -> bool:
    """Whether the derivatives of polynomials are exact rates: the velocity does not jump between two pieces. The ends
    of tables are treated elsewhere (`JointMotion.last`)."""
    if not is_exact(value) or isinstance(value, Tabulated) or hasattr(value, "polynomial"):
        return is_exact(value)
    found = polynomial_of(value, size)
    if found is None or len(found.x) < 3:
        return True
    rate = found if given else found.derivative()
    before = np.array([np.polynomial.polynomial.polyval(h, c[::-1]) for h, c in
                       zip(np.diff(found.x)[:-1], np.moveaxis(rate.c, 1, 0)[:-1])])  # fmt: skip
    after = rate.c[-1, 1:]
    return bool(np.abs(after - before).max() <= _JUMP * max(np.abs(after).max(), np.abs(before).max()))


def _times_of(value: Any) -> np.ndarray | None:
    """The times of a table or of samples; None for other functions."""
    if isinstance(value, Tabulated):
        return np.asarray(value.points, dtype=np.float64)
    times = getattr(value, "t", None) if hasattr(value, "polynomial") else None
    return None if times is None else np.asarray(times, dtype=np.float64)


def _moving_ends(value: Any, order: int, size: int) -> tuple[float, float, float]:
    """First and last time [s] of a table or of samples of the derivative of order `order`, if the joint moves there,
    and the rate at the first one. Without such an end the times are minus and plus infinity."""
    times = _times_of(value)
    if times is None or len(times) == 1:
        return -inf, inf, 0.0
    ends = (float(times[0]), float(times[-1]))
    if isinstance(value, Tabulated):
        rates = [np.ravel(value.slope(t) if order == 0 else value(t)) for t in (*ends, *times)]
    else:
        found = polynomial_of(value, size)
        if found is None:
            return -inf, inf, 0.0
        rates = [found(t, int(order == 0)) for t in (*ends, *times)]
    first, last, *others = (float(np.abs(rate).max()) for rate in rates)
    still = _REST * max(others)
    return ends[0] if first > still else -inf, ends[1] if last > still else inf, first


def _going_on(value: Any, function: RowsOfTime, size: int) -> RowsOfTime:
    """A function of time, and beyond the ends of a table the line with its rate there. Differences near an end need it:
    a motion that ends at the last time has the rate before it."""
    times = _times_of(value)
    if times is None or len(times) == 1:
        return function
    first, last = float(times[0]), float(times[-1])

    def at(t: float) -> list[float]:
        inside = min(max(t, first), last)
        row = function(inside)
        if inside == t:
            return row
        rate = np.ravel(value.slope(inside) if isinstance(value, Tabulated) else value.polynomial(inside, 1))
        return [x + (t - inside) * float(slope) for x, slope in zip(row, rate)]

    return RowsOfTime(at)


def _rates(programs: list[Steps], order: int) -> RowsOfTime:
    """The derivative of order `order` of each program, as a function of time."""

    def at(t: float) -> list[float]:
        row = [jet(steps, t)[order] for steps in programs]
        return checks.array(row, (len(row),), "motion: rate", f"must be finite at {t:g}").tolist()

    def at_times(times: np.ndarray) -> np.ndarray:
        return np.stack([np.broadcast_to(jet(steps, times)[order], times.shape) for steps in programs], axis=1)

    return RowsOfTime(at, at_times)


def _differenced(function: RowsOfTime, weights: tuple[tuple[int, float], ...]) -> RowsOfTime:
    """First or second derivative by central differences of eighth order."""
    terms = [(0.0, -205 / 72 / _STEP**2)] if weights is _SECOND else []
    mirror, scale = (1.0, _STEP**2) if weights is _SECOND else (-1.0, _STEP)
    for k, weight in weights:
        terms += [(k * _STEP, weight / scale), (-k * _STEP, mirror * weight / scale)]

    def derivative(t: float) -> list[float]:
        rows = [function(t + ahead) for ahead, _ in terms]
        return [sum(weight * x for (_, weight), x in zip(terms, column)) for column in zip(*rows)]

    return RowsOfTime(derivative)
