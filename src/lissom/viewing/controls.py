"""Controls of a viewer: sliders for coordinates and inputs, and a spring between a robot and the mouse."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import actuation_matrix, input_response
from lissom.dynamics.configuration import difference, integrate, quaternion_joints
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.launch.workspace import write_model
from lissom.model.build import build
from lissom.model.model import Model
from lissom.model.redesign import described
from lissom.robot.bases import STRAINS
from lissom.robot.bodies import Rod
from lissom.statics.residual import tangent_stiffness
from lissom.viewing.canvas import nice_number
from lissom.viewing.geometry import robot_geometry
from lissom.viewing.plots import inputs_by_unit

_MOST_STRAIN = 0.3  # largest elongation and shear of a slider
_REACH = 6.0  # rotation by which an input at the end of its range bends a rod, to first order [rad]
_SLOWEST = 2.0 * np.pi * 0.5  # frequency that replaces a missing stiffness [rad/s]
_STIFFER = 3.0  # stiffness of the mouse spring, relative to the robot at that place
_DAMPING_RATIO = 0.3  # of the mouse spring
_LAG = 0.05  # time constant with which the end of the spring follows the mouse [s]
_TOLERANCE = 1e-3  # relative tolerance of the force of the spring at rest
_INPUT = "mouse"  # name of the wrench input, and of the frame, at the grip


@final
@dataclass(frozen=True)
class Slider:
    """Slider of one coordinate or input.

    Fields:
        name, unit: of the coordinate or input.
        group: name of the link, or quantity of the input.
        part: strain of the link; empty for its joint.
        low, high: ends of the range.
        column: index in v or u.
    """

    name: str
    unit: str
    group: str
    part: str
    low: float
    high: float
    column: int

    @property
    def step(self) -> float:
        """Smallest change of the value."""
        return nice_number((self.high - self.low) / 200.0)


def robot_size(model: Model, q: np.ndarray | None = None) -> float:
    """Longest side of the box around a robot [m]."""
    points = robot_geometry(model).points(model.neutral() if q is None else q)
    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    return size if size > 0.0 else 1.0


def coordinate_sliders(model: Model) -> list[Slider]:
    """Sliders of all velocity coordinates, in their order."""
    found, ends, size = [], [*model.links.v_start[1:].tolist(), model.nv], robot_size(model)
    for k, name in enumerate(model.links.names):
        start = int(model.links.v_start[k])
        joint = _joint_sliders(model, k, name, start, size)
        body = _body_sliders(model, name, start + len(joint), ends[k])
        found += [*joint, *body]
    return found


def _joint_sliders(model: Model, k: int, name: str, start: int, size: float) -> list[Slider]:
    joint = model.links.joint[k]
    columns = [column for motion in joint.motions("joint") for column in motion.Phi.T]
    limits = np.broadcast_to(np.array([-np.inf, np.inf]), (len(columns), 2))
    if joint.limits is not None:
        limits = np.stack([np.broadcast_to(side, len(columns)) for side in joint.limits], axis=1)
    found = []
    for j, (column, (low, high)) in enumerate(zip(columns, limits)):
        turns = bool(column[:3].any())
        part = column[:3] if turns else column[3:]
        axis = "xyz"[int(np.argmax(np.abs(part)))] if np.count_nonzero(np.abs(part) > 1e-9) == 1 else str(j + 1)
        most = np.pi if turns else size
        first, last = (float(x) if np.isfinite(x) else sign * most for x, sign in ((low, -1.0), (high, 1.0)))
        label = f"{'turn about' if turns else 'move along'} {axis}"
        found.append(Slider(label, "rad" if turns else "m", name, "", first, last, start + j))
    return found


def _body_sliders(model: Model, name: str, start: int, stop: int) -> list[Slider]:
    """Sliders of the coordinates of a body, grouped by strain on a rod."""
    body = model.links.body[model.links.names.index(name)]
    if not isinstance(body, Rod):
        return [
            Slider(f"{j - start + 1}", "", name, "shape", -_MOST_STRAIN, _MOST_STRAIN, j) for j in range(start, stop)
        ]
    Phi = np.array([np.asarray(body.basis.evaluate(s)) for s in np.linspace(0.0, 1.0, 33)])
    size, found, orders = np.abs(Phi).max(axis=0), [], dict.fromkeys(STRAINS, 0)
    for j in range(stop - start):
        row = int(size[:, j].argmax())
        strain = STRAINS[row]
        most = (np.pi / body.length if row < 3 else _MOST_STRAIN) / max(size[row, j], 1e-12)
        unit = "1/m" if row < 3 else ""
        found.append(Slider(f"{strain} {orders[strain]}", unit, name, strain, -most, most, start + j))
        orders[strain] += 1
    return found


def configuration_of(model: Model, values: np.ndarray) -> np.ndarray:
    """Configuration from values (nv,) of the coordinate sliders.

    Rotations of spherical and free joints are rotation vectors; positions of free joints are coordinates in the parent.
    """
    turned = values.copy()
    for _, at, free in quaternion_joints(model):
        turned[at + 3 : at + 6 if free else at + 3] = 0.0
    q = integrate(model, model.neutral(), turned)
    for first, at, free in quaternion_joints(model):
        if free:
            q[first + 4 : first + 7] = values[at + 3 : at + 6]
    return q


def values_of(model: Model, q: np.ndarray) -> np.ndarray:
    """Values of the coordinate sliders at a configuration, inverse of `configuration_of`."""
    values = difference(model, model.neutral(), q)
    for first, at, free in quaternion_joints(model):
        if free:
            values[at + 3 : at + 6] = q[first + 4 : first + 7]
    return values


def input_sliders(model: Model) -> list[Slider]:
    """Sliders of all inputs, in their order, with ranges over which the robot bends or moves visibly."""
    found: list[Slider] = []
    for kind, columns in inputs_by_unit(model).items():
        name, _, unit = kind.partition(" [")
        for k in columns:
            found.append(Slider(model.inputs.names[k], unit.rstrip("]"), name, "", 0.0, 1.0, k))
    most = _visible_inputs(model)
    return [_ranged(one, most[one.column]) for one in sorted(found, key=lambda one: one.column)]


def _ranged(slider: Slider, most: float) -> Slider:
    """The slider with its range: one-sided for tendons, which have no negative tension, and for pressures."""
    one_sided = slider.group in ("tension", "pressure", "length pulled in")
    low = 0.0 if one_sided else -most
    return Slider(slider.name, slider.unit, slider.group, "", low, most, slider.column)


def _visible_inputs(model: Model) -> np.ndarray:
    """Size of each input that moves the robot by about _REACH, to first order, shape (nu,)."""
    if not model.nu:
        return np.zeros(0)
    q, zero = model.neutral(), np.zeros(model.nu)
    K: Any = tangent_stiffness(model, q, zero)
    stiffness = 0.5 * (K + K.T) + _SLOWEST**2 * mass_matrix(model, q)
    nonlinear = model.nonlinear_input is not None
    B = input_response(model, q, np.zeros(model.nv), zero, 0.0) if nonlinear else actuation_matrix(model, q)
    moved = np.linalg.lstsq(stiffness, B, rcond=1e-12)[0] / model.dofs.scale[:, None]
    reach = np.abs(moved).max(axis=0)
    return np.array([nice_number(_REACH / x) if np.isfinite(x) and x > 1e-12 else 1.0 for x in reach])


@final
@dataclass(frozen=True)
class Grip:
    """Place on a robot at which the spring of the mouse acts.

    Fields:
        link: name of the link.
        s: abscissa on a rod, or a material point (x, y, z) of a deformable body.
        position: point in the frame there, shape (3,) [m].
    """

    link: str
    s: Any
    position: np.ndarray

    @property
    def frame(self) -> tuple[str, Any]:
        """Frame of the point, for functions of kinematics."""
        return (_INPUT, 1.0) if isinstance(self.s, tuple) else (self.link, self.s)


def nearest_grip(model: Model, q: np.ndarray, link: str | None, point: np.ndarray) -> Grip | None:
    """Place nearest to a point in the world, on one link or, with None, on any link; None for a robot without
    bodies."""
    geometry = robot_geometry(model)
    points, best = geometry.points(q), None
    for mesh in geometry.meshes:
        if link in (None, mesh.link) and mesh.link is not None:
            k = int(np.argmin(np.linalg.norm(points[mesh.rows] - point, axis=1)))
            gap = float(np.linalg.norm(points[mesh.rows][k] - point))
            if best is None or gap < best[0]:
                best = gap, mesh, k
    if best is None:
        return None
    _, mesh, k = best
    on = str(mesh.link)
    if mesh.kind == "deformable":
        at = tuple(geometry.local[mesh.rows][k].tolist())
        return Grip(on, at, np.zeros(3))
    s = float(mesh.s[k]) if mesh.kind == "rod" else 1.0
    g = frame_pose(model, q, on, s)
    return Grip(on, s, (points[mesh.rows][k] - g[:3, 3]) @ g[:3, :3])


def with_pull_input(model: Model, grip: Grip | None, before: Model | None = None, *, overwrite: bool = False) -> Model:
    """The same robot with three more inputs after the others: a force at the grip in world axes [N].

    Args:
        before: such a model of the robot with other values, of which only what differs is computed.
        overwrite: whether `before` may become the new model, so that its buffers stay. Nothing else may use it then.
    """
    if grip is None:
        return model
    robot = copy(model.description)
    directions = np.vstack([np.zeros((3, 3)), np.eye(3)])
    robot.add_wrench_input(_INPUT, grip.link, s=grip.s, directions=directions, frame="world", position=grip.position)
    if isinstance(grip.s, tuple):  # a material point has a frame only on demand
        robot.add_frame(_INPUT, grip.link, s=grip.s)
    if before is not None:
        changed = described(before, robot)
        is_own = overwrite and before.device == "cpu" and not before.fills_tables_before_launch
        return before if is_own and write_model(before, changed) else changed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first build has raised the same warnings
        return build(robot, like=model)


@final
class MouseSpring:
    """Spring from a grip of a robot to the mouse, in a model of `with_pull_input`.

    Over a step of size h of a motion the force is

        F = (1 + h (c + h k) W)⁻¹ (k (x* − x − h ẋ) − c ẋ),   W = J (M + h D + h² K)⁻¹ Jᵀ                  (1)

    This is the force at the end of an implicit step if nothing else changes. Applied step by step, it makes neither a
    light body nor a stiff spring oscillate; a stiff spring becomes softer. x* follows the mouse with the time constant
    _LAG. At rest the force is computed from the compliance C = J K⁻¹ Jᵀ instead:

        F = (1 + k C)⁻¹ (k (x* − x) + k C F_before)                                                       (2)

    Args:
        q, u, t: state when the spring is attached, from which the stiffness is computed.
        target: position of the mouse [m].
    """

    def __init__(self, model: Model, grip: Grip, q: np.ndarray, u: np.ndarray, t: float, target: np.ndarray) -> None:
        self.model, self.grip, self.target = model, grip, np.array(target, dtype=np.float64)
        self.force, self._end = np.zeros(3), self.target.copy()
        J = self._jacobian(q)
        K, _, M = self._matrices(q, u, t)
        compliance, mobility = (
            float(np.trace(J @ np.linalg.pinv(X, hermitian=True) @ J.T)) / 3.0
            for X in (0.5 * (K + K.T) + _SLOWEST**2 * M, M)
        )
        is_fixed = compliance <= 0.0 or mobility <= 0.0  # such a place cannot move
        self.stiffness = 1.0 if is_fixed else _STIFFER / compliance
        self.damping = 0.0 if is_fixed else 2.0 * _DAMPING_RATIO * float(np.sqrt(self.stiffness / mobility))
        self._inverse: tuple[float, np.ndarray] | None = None

    def position(self, q: np.ndarray) -> np.ndarray:
        """Position of the grip in the world [m]."""
        g = self._pose(q)
        return g[:3, 3] + g[:3, :3] @ self.grip.position

    def static_force(self, q: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
        """Force (2) at rest, from the previous one."""
        J, (K, _, M) = self._jacobian(q), self._matrices(q, u, t)
        C = J @ np.linalg.pinv(0.5 * (K + K.T) + 1e-9 * M, hermitian=True) @ J.T
        k = self.stiffness
        self.force = np.linalg.solve(np.eye(3) + k * C, k * (self.target - self.position(q)) + k * C @ self.force)
        return self.force

    def step_force(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, h: float) -> np.ndarray:
        """Force (1) over a step that begins at a state."""
        J = self._jacobian(q)
        if self._inverse is None or t - self._inverse[0] > 0.05:  # this matrix changes slowly
            K, D, M = self._matrices(q, u, t)
            self._inverse = t, np.linalg.pinv(M + h * D + h * h * 0.5 * (K + K.T))
        W = J @ self._inverse[1] @ J.T
        x_dot, k, c = J @ v, self.stiffness, self.damping
        self._end += (self.target - self._end) * (1.0 - np.exp(-h / _LAG))
        wanted = k * (self._end - self.position(q) - h * x_dot) - c * x_dot
        self.force = np.linalg.solve(np.eye(3) + h * (c + h * k) * W, wanted)
        return self.force

    @property
    def newtons(self) -> float:
        """Size of the force [N]."""
        return float(np.linalg.norm(self.force))

    def is_converged(self, q: np.ndarray) -> bool:
        """Whether the force at rest is that of the spring."""
        wanted = self.stiffness * (self.target - self.position(q))
        return bool(np.linalg.norm(wanted - self.force) <= _TOLERANCE * np.linalg.norm(wanted))

    def _pose(self, q: np.ndarray) -> np.ndarray:
        return frame_pose(self.model, q, *self.grip.frame).reshape(4, 4)

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """Jacobian of the grip in world axes, shape (3, nv)."""
        J, R = frame_jacobian(self.model, q, *self.grip.frame).reshape(6, -1), self._pose(q)[:3, :3]
        return R @ (J[3:] + np.cross(J[:3], self.grip.position, axisa=0, axisc=0))

    def _matrices(self, q: np.ndarray, u: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        zero = np.zeros(self.model.nv)
        K, D, M, _ = residual_derivatives(self.model, q, zero, zero, np.concatenate([u, self.force]), t)
        return K.copy(), D.copy(), M.copy()
