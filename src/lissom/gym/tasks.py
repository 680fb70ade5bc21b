"""Tasks of robots: the base class, and the tasks of this library with their robots.

A task works on rows, one for each copy. From states (n, ...) it computes observations, rewards and ends of episodes,
each row independently. So a task needs no loops, single and vector environments share it, and a copy behaves the same
alone and among many.

TaskBalance: balance a soft rod on a cart. TaskHold: hold a ball with soft fingers while its table sinks. TaskReach:
reach points with a soft arm driven by tendons. TaskSwim: swim forwards by bending.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from lissom.dynamics.actuation import tightening_inputs
from lissom.dynamics.kinematics import frame_pose, frame_twist
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks, formatting
from lissom.robot.bases import BasisLegendre
from lissom.robot.bodies import RigidBody, Rod
from lissom.robot.fields import Numbers
from lissom.robot.fluid import Hydrodynamics
from lissom.robot.joints import JointFree, JointPlanar, JointPrismatic
from lissom.robot.materials import Material
from lissom.robot.robot import Robot
from lissom.robot.sections import SectionCircle, SectionEllipse
from lissom.robot.shapes import ShapePlane, ShapeSphere
from lissom.robot.traced_functions import TracedFunction
from lissom.statics.equilibrium import solve_statics

FINGERS = ("finger 1", "finger 2", "finger 3")
_BALL, _DEPTH, _PALM = 0.03, 0.087, 0.04  # ball radius, depth of its centre below the palm, distance of the fingers [m]


def manipulator() -> Model:
    """The cable-driven manipulator of Mathew 2025 §4.5: a tapered silicone arm, horizontal from a wall. Three straight
    tendons run near its surface, and two tendons wind around it twice."""
    robot = Robot("cable-driven manipulator", gravity=(0.0, 0.0, -9.81))
    basis = BasisLegendre(torsion=4, bending_y=4, bending_z=4, elongation=2, shear_y=2, shear_z=2)
    material = Material(young=1e6, poisson=0.5, density=1000.0, viscosity=1e4)
    rod = Rod(0.5, SectionCircle((0.03, 0.015)), basis, material, gauss_points=5, interval_points=2)
    robot.add_link("arm", rod)
    for k, angle in enumerate(np.deg2rad([90.0, 210.0, 330.0])):
        side = np.array([np.cos(angle), np.sin(angle)])
        robot.add_tendon(f"t{k + 1}", "arm", [[s, *((0.03 - 0.015 * s) * side)] for s in (0.0, 1.0)])
    for k, sign in enumerate((1.0, -1.0)):
        robot.add_tendon(f"t{k + 4}", "arm", _winding(sign))
    return robot.build()


def _winding(sign: float) -> Callable[[float], tuple[float, float]]:
    """Path (y, z) [m] of a tendon that winds around the arm twice."""
    return lambda s: (0.015 * np.sin(4.0 * np.pi * s), sign * 0.015 * np.cos(4.0 * np.pi * s))


def pendulum() -> Model:
    """A soft inverted pendulum. A force drives a cart of 0.3 kg between stops at 0.5 m on both sides. On the cart
    stands a silicone rod of 0.5 m, 1.5 times the length up to which it would stand by itself."""
    robot = Robot("soft inverted pendulum")
    rails = JointPrismatic((1.0, 0.0, 0.0), limits=(-0.5, 0.5), limit_stiffness=2e3, limit_damping=20.0)
    robot.add_link("cart", RigidBody.box(0.1, 0.06, 0.05, density=1000.0), rails)
    robot.add_joint_actuator("motor", "cart")
    upright = np.eye(4)
    upright[:3, :3] = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    material = Material(young=1.6e6, poisson=0.5, density=1000.0, viscosity=5e3)
    rod = Rod(0.5, SectionCircle(0.01), BasisLegendre(bending_y=2), material)
    robot.add_link("rod", rod, parent="cart", placement=upright)
    return robot.build()


def swimmer() -> Model:
    """A soft fish of half a metre that moves in a plane, in still water of its own density. Each half has a pair of
    tendons. The nose is at the origin, the tail in the direction of x."""
    robot = Robot("swimmer", gravity=(0.0, 0.0, 0.0))
    section = SectionEllipse(lambda s: 0.03 - 0.022 * s, lambda s: 0.05 - 0.02 * s)  # half-widths
    material = Material(young=1e5, poisson=0.5, density=1000.0, damping_time=0.02)
    robot.add_link("body", Rod(0.5, section, BasisLegendre(bending_z=4), material), JointPlanar())
    for half, start, stop in (("front", 0.0, 0.5), ("rear", 0.5, 1.0)):
        for side, sign in (("left", 1.0), ("right", -1.0)):
            path = [[s, sign * (0.024 - 0.018 * s), 0.0] for s in (0.0, 1.0)]
            robot.add_tendon(f"{side} of {half}", "body", path, start=start, stop=stop)
    robot.add_frame("nose", "body", s=0.0)
    robot.add_frame("middle", "body", s=0.5)
    robot.set_fluid(1000.0, default=Hydrodynamics(drag_normal=1.0, drag_tangent=0.02))
    return robot.build()


def gripper() -> Model:
    """Three soft fingers that hang from a palm, and a ball between them on a table. One motor tightens the tendons of
    all fingers. The table sinks slowly on a damper."""
    robot = Robot("gripper")
    contact: dict[str, Any] = {"stiffness": 1e4, "exponent": 1.5, "damping": 10.0, "friction": 0.8, "slip_speed": 1e-3}
    robot.add_link("palm", RigidBody.box(0.09, 0.09, 0.01, density=1000.0))
    silicone = Material(young=1e6, poisson=0.5, density=1100.0, viscosity=3e3)
    basis = BasisLegendre(torsion=0, bending_y=1, bending_z=4)
    rod = Rod(0.11, SectionCircle((0.009, 0.006)), basis, silicone, gauss_points=7)
    for k, name in enumerate(FINGERS):
        robot.add_link(name, rod, parent="palm", placement=_finger_frame(2.0 * np.pi * k / 3.0))
        robot.add_tendon(f"tendon {k + 1}", name, [[s, 0.8 * (0.009 - 0.003 * s), 0.0] for s in (0.0, 1.0)])
    robot.couple_inputs("motor", {f"tendon {k}": 1.0 for k in (1, 2, 3)})
    robot.add_link("ball", RigidBody.sphere(_BALL, density=300.0), JointFree())
    below = np.eye(4)
    below[2, 3] = -_DEPTH - _BALL - 0.003
    table = RigidBody.box(0.12, 0.12, 0.006, density=500.0)
    robot.add_link("table", table, JointPrismatic((0.0, 0.0, 1.0), damping=18.0), placement=below)
    robot.add_contact("grasp", FINGERS, ShapeSphere(_BALL), on="ball", per_interval=2, **contact)
    top = np.eye(4)
    top[2, 3] = 0.003
    robot.add_contact("stand", "ball", ShapePlane(), on="table", placement=top, **contact)
    return robot.build()


def ball_start(model: Model | ModelBatch) -> tuple[np.ndarray, int]:
    """The start q (nq,) of the gripper, with the ball in equilibrium on the table, and the index of the ball's position
    in q."""
    q, at = model.neutral(), model.nq - 4
    weight = 300.0 * 4.0 / 3.0 * np.pi * _BALL**3 * 9.81
    q[at + 2] = -_DEPTH - (weight / 1e4) ** (2.0 / 3.0)
    return q, at


def _finger_frame(angle: float) -> np.ndarray:
    """Pose of the base of a finger: x points down along the finger, y inwards."""
    inwards, down = -np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, -1.0])
    g = np.eye(4)
    g[:3, :4] = np.column_stack([down, inwards, np.cross(down, inwards), -_PALM * inwards])
    return g


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TaskStart:
    """The start of an episode of one copy.

    Fields:
        q: configuration (nq,) [rad, m, or strain units]; None is `start_configuration`.
        v: velocity (nv,) [unit of q per s]; None is rest.
        u: inputs at the start (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        goal: numbers that define the goal of the episode, such as a target point.
    """

    q: np.ndarray | None = None
    v: np.ndarray | None = None
    u: np.ndarray | None = None
    goal: np.ndarray | None = None


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TaskState:
    """The state of n copies, at the end of an action or at the start of an episode.

    Fields:
        t: time since the start of the episode (n,) [s].
        q, v: configurations (n, nq) and velocities (n, nv).
        u: present inputs (n, nu) [N, m, Pa or N·m, by actuator], without those of a controller.
        action: last action (n, ...), zero at the start.
        goal: goals of the episodes (n, ...).
        model: the model; or a batch of models, each with the same number of consecutive copies.

    `before` and `noise` are for observations by real sensors, which are late and inexact.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    action: np.ndarray
    goal: np.ndarray
    model: Model | ModelBatch = field(repr=False)
    _known: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)
    _memory: TaskMemory | None = field(default=None, repr=False)

    def before(self, actions: int | np.ndarray) -> TaskState:
        """The state a number of actions ago, at most `Task.memory`; the first state of the episode if it is shorter.

        Args:
            actions: a number for all copies, or one for each, (n,).
        Raises:
            ModelError: the number is not an integer from 0 to `Task.memory`.
        """
        ago, most = (
            np.broadcast_to(np.asarray(actions), len(self.t)),
            0 if self._memory is None else self._memory.length,
        )
        if ago.dtype.kind not in "iu" or (ago < 0).any() or (ago > most).any():
            rule = f"must be integers from 0 to the memory of the task, {most}"
            raise ModelError(f"actions: {rule} (got {actions!r})")
        if not most:
            return self
        return replace(self, **self._memory.states(ago), _known={})  # type: ignore[union-attr]

    def noise(self, size: int) -> np.ndarray:
        """Random numbers (n, size) of standard normal distribution. Each copy has its own generator, whose seed follows
        from that of the copy. The numbers of one state stay the same."""
        if ("noise", str(size)) not in self._known and self._memory is None:
            raise ModelError("noise: needs a state of an environment (got another one)")
        return self._once(("noise", str(size)), lambda: self._memory.noise(size))  # type: ignore[union-attr]

    def pose(self, name: str) -> np.ndarray:
        """Poses (n, 4, 4) of the tip of a link, or of a frame, in the world. They are cached."""
        return self._once((name, "pose"), lambda: frame_pose(self.model, self._rows(self.q), name).reshape(-1, 4, 4))

    def place(self, name: str) -> np.ndarray:
        """Positions (n, 3) of the tip of a link, or of a frame, in the world [m]."""
        return self.pose(name)[:, :3, 3]

    def velocity(self, name: str) -> np.ndarray:
        """Velocities (n, 3) of the tip of a link, or of a frame, in the world [m/s]."""

        def made() -> np.ndarray:
            twists = frame_twist(self.model, self._rows(self.q), self._rows(self.v), name)
            own = twists.reshape(-1, 1, 6)[..., 3:]
            return (self.pose(name)[:, :3, :3] * own).sum(axis=2)

        return self._once((name, "velocity"), made)

    def _rows(self, states: np.ndarray) -> np.ndarray:
        """Rows (n, k) of the copies as functions take them: those of each model of a batch, one model after the other;
        one row alone as a state (k,), which takes a third of the time of a batch of one."""
        if isinstance(self.model, ModelBatch):
            return states.reshape(len(self.model), -1, states.shape[1])
        return states[0] if len(states) == 1 else states

    def _once(self, key: tuple[str, str], make: Callable[[], np.ndarray]) -> np.ndarray:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


@final
class TaskMemory:
    """The last states of n copies, and the random numbers of their present state.

    Args:
        state: the present state of all copies. length: number of states before it that are stored.
    """

    def __init__(self, state: TaskState, length: int) -> None:
        self.length = length
        names = _REMEMBERED if length else ()
        self._rows = {name: np.array([getattr(state, name)] * (length + 1)) for name in names}
        self._random: list[np.random.Generator | None] = [None] * len(state.t)
        self._noise: list[list[float]] = [[] for _ in state.t]

    def begin(self, which: np.ndarray, state: TaskState, random: list[np.random.Generator]) -> None:
        """Begin episodes of the copies `which` (k,), whose generators of random numbers are given."""
        for name, rows in self._rows.items():
            rows[:, which] = getattr(state, name)[which]
        for k, generator in zip(which.tolist(), random):
            self._random[k], self._noise[k] = generator.spawn(1)[0], []

    def add(self, state: TaskState, moves: np.ndarray | None) -> None:
        """Add the states of the copies in the mask `moves` (n,); None: of all copies."""
        chosen = slice(None) if moves is None else moves
        for name, rows in self._rows.items():
            rows[1:, chosen] = rows[:-1, chosen]
            rows[0, chosen] = getattr(state, name)[chosen]
        if any(self._noise):
            for k in np.arange(len(self._noise))[chosen].tolist():
                self._noise[k] = []

    def states(self, ago: np.ndarray) -> dict[str, np.ndarray]:
        """Fields of TaskState a number of actions ago, (n,)."""
        return {name: rows[ago, np.arange(len(ago))] for name, rows in self._rows.items()}

    def noise(self, size: int) -> np.ndarray:
        """The first `size` random numbers of the present states, (n, size)."""
        for random, known in zip(self._random, self._noise):
            if random is not None and len(known) < size:
                known += random.standard_normal(size - len(known)).tolist()
        return np.array([known[:size] or [0.0] * size for known in self._noise]).reshape(-1, size)


_REMEMBERED = ("t", "q", "v", "u", "action")


@dataclass(frozen=True, eq=False)
class Task(ABC):
    """A task of a robot, for `environment` and `vector_environment`.

    A subclass defines starts of episodes (`start`), observations (`observe`) and rewards (`reward`), and may override
    other methods. All of them except `start` and `drawn` work on n copies, each row independently. Random numbers must
    come from the argument of `start` or `design`, or from `TaskState.noise`. Time-dependent loads and motions begin at
    time zero with each episode.

    Args:
        model: the model, without Python functions of the state; or a batch of models, for vector environments. Then
            `start` and `drawn` are called on the task with the model of one copy, other methods on the task with the
            batch.
        most: inputs for an action of 1, a number or (nu,) [N, m, Pa or N·m, by actuator].
        least: inputs for an action of −1. None: zero for tendons, which have no negative tension, and −most for other
            inputs.
        period: duration of an action [s].
        steps: number of time steps of an action.
        limit: number of actions after which an episode is truncated.
        controller: a feedback law f(t, q, v) of `ls.TracedFunction`, with the time t of the episode, or None. Its
            inputs, such as those of servo motors, are added to those of the action at all times. Numbers that it reads
            besides its arguments are those at the start of the environment.
    Fields of the class:
        memory: largest number of actions for `TaskState.before`.
    """

    memory: ClassVar[int] = 0
    model: Model | ModelBatch
    most: Numbers = 1.0
    least: Numbers | None = None
    period: float = 0.05
    steps: int = 5
    limit: int = 200
    controller: TracedFunction | None = field(default=None, kw_only=True)

    @abstractmethod
    def start(self, random: np.random.Generator) -> TaskStart:
        """The start of the next episode of one copy."""

    @abstractmethod
    def observe(self, state: TaskState) -> np.ndarray:
        """Observations of states, shape (n, n_seen)."""

    @abstractmethod
    def reward(self, state: TaskState) -> np.ndarray:
        """Rewards of states, shape (n,)."""

    def design(self, random: np.random.Generator) -> dict[str, Any]:
        """Values of the description of the robot in the next episode of one copy, by path (`Robot.with_`). Other values
        are those of `model`. By default every episode has the robot of `model`.

        The structure of the robot, point loads and motions of joints stay. `start` is called afterwards, on the task
        with the robot of the copy. A task that overrides this gives each copy a model of its own.
        """
        return {}

    def terminated(self, state: TaskState) -> np.ndarray:
        """Whether each state ends its episode, shape (n,). By default none does."""
        return np.zeros(len(state.t), dtype=bool)

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """Further results about states by name, each (n, ...), for the `info` of the environment. By default empty.
        Training tools evaluate `is_success`."""
        return {}

    def inputs(self, action: np.ndarray) -> np.ndarray:
        """Inputs (n, nu) for actions (n, nu): `least` for −1, `most` for 1, linear between them."""
        low, high = self.input_limits
        return low + (high - low) * (0.5 * action + 0.5)

    @property
    def n_actions(self) -> int:
        """Number of components of an action."""
        return self.model.nu

    def observation_limits(self) -> tuple[Any, Any]:
        """Lower and upper limits to which observations are clipped. By default infinite."""
        return -np.inf, np.inf

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """Further arguments of `render` for the picture of a copy."""
        return {}

    @property
    def robot(self) -> Model:
        """The model, or the first one of a batch."""
        return self.model[0] if isinstance(self.model, ModelBatch) else self.model

    @cached_property
    def input_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs for actions of −1 and of 1, each (nu,)."""
        where, nu = type(self).__name__, self.model.nu
        rule = "must be a number, or one for each input"
        high = checks.each(self.most, nu, f"{where}: most", rule)
        if self.least is not None:
            low = checks.each(self.least, nu, f"{where}: least", rule)
        else:
            low = np.where(tightening_inputs(self.robot), 0.0, -high)
        checks.require(bool((low < high).all()), f"{where}: least", "must be < most", low)
        return low, high

    @cached_property
    def configuration_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Low and high limits (nq,) of joint stops; infinite for coordinates without stops, such as those of rods."""
        model = self.robot
        low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
        for joint, start in zip(model.links.joint, model.links.q_start.tolist()):
            if joint.limits is not None:
                low[start : start + joint.nq], high[start : start + joint.nq] = joint.limits
        return low, high

    def check(self) -> None:
        """Raise ModelError if a number of the task is out of its range."""
        where = type(self).__name__
        self._check_models()
        checks.number(self.period, f"{where}: period", above=0.0)
        checks.integer(self.steps, f"{where}: steps", least=1)
        checks.integer(self.limit, f"{where}: limit", least=1)
        checks.require(
            bool(np.isfinite(self.input_limits).all()), where, "must have finite limits of inputs", self.most
        )

    def _check_models(self) -> None:
        """Raise ModelError if the models of a batch would have different spaces of actions or observations."""
        if not isinstance(self.model, ModelBatch):
            return
        for name in ("input_limits", "configuration_limits"):
            first = getattr(self, name)
            for k, one in enumerate(self.model):
                own = getattr(replace(self, model=one), name)
                if not np.array_equal(own, first):
                    rule = f"{name} of all models must be those of the first one, {first}"
                    raise ModelError(f"{type(self).__name__}: model {k} of a batch: {rule} (got {own})")


# -- tasks of this library --------------------------------------------------------------------------------------------

_POINTS, _SEED = 256, 20250101  # number of target points, and seed of the tensions that reach them


@final
@dataclass(frozen=True, eq=False)
class TaskBalance(Task):
    """Balance an unstable soft rod by a force on its cart.

    Episodes begin at rest with a nearly straight rod. The reward is (height of the tip) / (length of the rod) −
    (displacement of the cart / its largest displacement)². An episode ends if the tip is below 0.7 of the length, or
    the cart reaches a stop.

    Observations are all coordinates and velocities. Units: the cart's largest displacement, and 1 m/s; for the rod 1/m,
    and 10/(m·s).

    Args:
        model: by default a cart (the first coordinate) and a rod of 0.5 m.
        most, least, steps, limit: see Task.
        period: duration of an action [s].
        bend: standard deviation of the random bending coordinates at the start [1/m].
    """

    model: Model | ModelBatch = field(default_factory=pendulum)
    most: Numbers = 10.0
    period: float = 0.02
    steps: int = 2
    limit: int = 250
    bend: float = 0.05

    def start(self, random: np.random.Generator) -> TaskStart:
        """A start at rest with a nearly straight rod."""
        q = np.zeros(self.model.nq)
        q[1:] = self.bend * random.normal(size=self.model.nq - 1)
        return TaskStart(q=q)

    def height(self, state: TaskState) -> np.ndarray:
        """Height of the tip above the foot of the rod, divided by the length of the rod (n,) [-]."""
        return state.place("rod")[:, 2] / 0.5

    def observe(self, state: TaskState) -> np.ndarray:
        """Observations of all coordinates and velocities, see the class."""
        q, v = state.q.copy(), state.v.copy()
        q[:, 0] /= self.configuration_limits[1][0]
        v[:, 1:] /= 10.0
        return np.concatenate([q, v], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Rewards for an upright rod on a centred cart, see the class."""
        return self.height(state) - (state.q[:, 0] / self.configuration_limits[1][0]) ** 2

    def terminated(self, state: TaskState) -> np.ndarray:
        """Whether the rod has fallen, or the cart is at a stop."""
        low, high = self.configuration_limits
        return (self.height(state) < 0.7) | (state.q[:, 0] <= low[0]) | (state.q[:, 0] >= high[0])

    def observation_limits(self) -> tuple[Any, Any]:
        """±1 for the cart's displacement; for other observations limits beyond the usual range."""
        model = self.model
        most = np.concatenate([[1.0], np.full(model.nq - 1, 50.0), np.full(model.nv, 50.0)])
        return -most, most


@final
@dataclass(frozen=True, eq=False)
class TaskHold(Task):
    """Grasp a ball with three soft fingers before its table has sunk, and hold it.

    Episodes begin with straight fingers and a ball on the table, slightly off the centre. The action is the tension
    that closes the fingers. The reward is 1 − (fall of the ball / 0.03 m) − 0.1 (tension / largest tension). An episode
    ends if the ball has fallen by 0.09 m.

    Observations are the position of the ball relative to the centre of its starts (unit 0.01 m), its velocity (unit 0.1
    m/s), the coordinates of the fingers divided by 10, and the tension scaled to −1 … 1.

    Args:
        model: by default three fingers, a ball and a table.
        most, least, steps, limit: see Task.
        period: duration of an action [s].
        aside: largest offset of the ball from the centre at the start, along each axis [m].
    """

    model: Model | ModelBatch = field(default_factory=gripper)
    most: Numbers = 4.0
    period: float = 0.05
    steps: int = 25
    limit: int = 60
    aside: float = 0.004

    @cached_property
    def begin(self) -> tuple[np.ndarray, int]:
        """The start q (nq,) with the ball at the centre, and the index of the ball's position in q."""
        return ball_start(self.model)

    def start(self, random: np.random.Generator) -> TaskStart:
        """A start with the ball at a random place near the centre."""
        q, at = self.begin[0].copy(), self.begin[1]
        q[at : at + 2] = self.aside * random.uniform(-1.0, 1.0, 2)
        return TaskStart(q=q)

    def fallen(self, state: TaskState) -> np.ndarray:
        """Fall of the ball since the start (n,) [m]."""
        q, at = self.begin
        return q[at + 2] - state.q[:, at + 2]

    def observe(self, state: TaskState) -> np.ndarray:
        """Observations of ball, fingers and tension, see the class."""
        q, at = self.begin
        low, high = self.input_limits
        away = (state.q[:, at : at + 3] - q[at : at + 3]) / 0.01
        fingers = state.q[:, : at - 4] / 10.0
        tension = 2.0 * (state.u - low) / (high - low) - 1.0
        return np.concatenate([away, state.velocity("ball") / 0.1, fingers, tension], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Rewards for a high ball and little tension, see the class."""
        return 1.0 - self.fallen(state) / 0.03 - 0.1 * state.u[:, 0] / self.input_limits[1][0]

    def terminated(self, state: TaskState) -> np.ndarray:
        """Whether the ball is lost."""
        return self.fallen(state) > 0.09

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """The fall of the ball [m], and whether it is held (fall below 0.04 m)."""
        fallen = self.fallen(state)
        return {"fallen": fallen, "is_success": fallen < 0.04}

    def observation_limits(self) -> tuple[Any, Any]:
        """±1 for the tension; for other observations limits beyond the usual range."""
        most = np.append(np.full(6 + self.begin[1] - 4, 100.0), 1.0)
        return -most, most

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """The picture shows only fingers and ball."""
        return {"links": ["palm", *FINGERS, "ball"], "obstacles": False, "view": (10.0, -75.0)}


@final
@dataclass(frozen=True, eq=False)
class TaskReach(Task):
    """Move the tip of an arm to a target point and keep it there.

    Episodes begin at rest without inputs. The point is one of 256 equilibrium positions of the tip under random inputs,
    so it can be reached. The reward is −d / 0.1 m, with the distance d at the end of the action, plus 1 if d is below
    the tolerance.

    Observations are, in units of 0.1 m, the position of the tip, its velocity times the duration of an action, and the
    vector to the point; and the inputs scaled to −1 … 1.

    Args:
        model: by default the cable-driven manipulator with 24 coordinates and five tendons.
        link: name of the link with the tip.
        most, least, steps, limit: see Task.
        period: duration of an action [s].
        share: largest inputs used to generate the points, relative to `most` [-].
        tolerance: distance that counts as success [m].
    """

    model: Model | ModelBatch = field(default_factory=manipulator)
    most: Numbers = (30.0, 30.0, 30.0, 10.0, 10.0)
    period: float = 0.05
    steps: int = 5
    limit: int = 40
    link: str = "arm"
    share: float = 0.8
    tolerance: float = 0.02

    @cached_property
    def rest(self) -> np.ndarray:
        """The configuration at the start of episodes, shape (nq,)."""
        return solve_statics(self.model).q

    @cached_property
    def points(self) -> np.ndarray:
        """The target points, shape (256, 3) [m]."""
        low, high = self.input_limits
        pulls = np.random.default_rng(_SEED).uniform(0.0, self.share, (_POINTS, self.model.nu))
        still = np.clip(0.0, low, high)
        q = solve_statics(self.model, still + (high - still) * pulls).q
        return frame_pose(self.model, q, self.link)[:, :3, 3]

    def start(self, random: np.random.Generator) -> TaskStart:
        """A start at rest, with a random point as goal."""
        return TaskStart(q=self.rest, goal=self.points[random.integers(_POINTS)])

    def distance(self, state: TaskState) -> np.ndarray:
        """Distance of the tip from the point (n,) [m]."""
        return np.sqrt(((state.goal - state.place(self.link)) ** 2).sum(axis=1))

    def observe(self, state: TaskState) -> np.ndarray:
        """Observations of the tip, its velocity, the vector to the point, and inputs, see the class."""
        tip, low, high = state.place(self.link), *self.input_limits
        way, speed = state.goal - tip, self.period * state.velocity(self.link)
        return np.concatenate([tip / 0.1, speed / 0.1, way / 0.1, 2.0 * (state.u - low) / (high - low) - 1.0], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Rewards for a short distance, see the class."""
        distance = self.distance(state)
        return np.where(distance < self.tolerance, 1.0, 0.0) - distance / 0.1

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """The distance [m], and whether it is below the tolerance."""
        distance = self.distance(state)
        return {"distance": distance, "is_success": distance < self.tolerance}

    def observation_limits(self) -> tuple[Any, Any]:
        """±1 for inputs; lengths are clipped at one metre."""
        most = np.append(np.full(9, 10.0), np.ones(self.model.nu))
        return -most, most

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """The picture shows the line from the tip to the point."""
        return {"trail": np.stack([state.place(self.link)[copy], state.goal[copy]]), "view": (20.0, -60.0)}


@final
@dataclass(frozen=True, eq=False)
class TaskSwim(Task):
    """Swim as fast as possible towards −x with two pairs of tendons.

    Episodes begin at rest, nearly straight, with half of the largest tension in all tendons. An action has two numbers,
    one for each pair: the fraction of this half by which the tension of one tendon increases and of the other
    decreases. The reward is the mean velocity of nose, middle and tail towards −x, in body lengths per second, minus
    0.02 times the sum of squares of the action.

    Observations are cosine and sine of the heading of the nose, its velocity in its own axes and its angular velocity,
    curvatures [1/m] and their rates [10/(m·s)], and the last action.

    Args:
        model: by default a rod on a planar joint, with left and right tendons in front and rear as inputs.
        most, least, steps, limit: see Task.
        period: duration of an action [s].
        bend: standard deviation of the random bending coordinates at the start [1/m].
    """

    model: Model | ModelBatch = field(default_factory=swimmer)
    most: Numbers = 20.0
    period: float = 0.1
    steps: int = 10
    limit: int = 100
    bend: float = 0.05

    @property
    def n_actions(self) -> int:
        """One component for each pair of tendons."""
        return 2

    def inputs(self, action: np.ndarray) -> np.ndarray:
        """Tensions of the left and the right tendon of each pair."""
        low, high = self.input_limits
        share = np.stack([action, -action], axis=2).reshape(len(action), 4)
        return low + (high - low) * (0.5 + 0.5 * share)

    def start(self, random: np.random.Generator) -> TaskStart:
        """A start at rest, nearly straight."""
        q = np.zeros(self.model.nq)
        q[3:] = self.bend * random.normal(size=self.model.nq - 3)
        return TaskStart(q=q, u=self.inputs(np.zeros((1, 2)))[0])

    def speed(self, state: TaskState) -> np.ndarray:
        """Mean velocity of nose, middle and tail towards −x (n,) [m/s]."""
        return -(state.velocity("nose") + state.velocity("middle") + state.velocity("body"))[:, 0] / 3.0

    def observe(self, state: TaskState) -> np.ndarray:
        """Observations of heading, motion of the nose, shape and its rate, and last action, see the class."""
        c, s = np.cos(state.q[:, 2]), np.sin(state.q[:, 2])
        x, y, turning = state.v[:, :3].T
        nose = np.stack([c, s, c * x + s * y, c * y - s * x, turning], axis=1)
        return np.concatenate([nose, state.q[:, 3:], state.v[:, 3:] / 10.0, state.action], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Rewards for speed with little effort, see the class."""
        return self.speed(state) / 0.5 - 0.02 * (state.action**2).sum(axis=1)

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """Distance that the nose has moved towards −x [m]."""
        return {"way": -state.place("nose")[:, 0]}

    def observation_limits(self) -> tuple[Any, Any]:
        """±1 for heading and actions; for other observations limits beyond the usual range."""
        most = np.full(5 + 2 * (self.model.nq - 3) + 2, 50.0)
        most[:2] = most[-2:] = 1.0
        return -most, most
