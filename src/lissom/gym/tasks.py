"""Keeping a soft rod upright on a cart.

Holding a ball with soft fingers while its table sinks.

Reaching for points with a soft arm that tendons pull.

Swimming ahead by bending.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.gym.robots import FINGERS, ball_start, gripper, manipulator, pendulum, swimmer
from lissom.gym.task import Task, TaskStart, TaskState
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.fields import Numbers
from lissom.statics.equilibrium import solve_statics


@final
@dataclass(frozen=True, eq=False)
class TaskBalance(Task):
    """Keep a soft rod upright that would fall over, by the force on the cart that it stands on.

    Episodes begin nearly straight, at rest. An action is worth how high the tip stands, over the length of the rod,
    less the square of the way of the cart over its most. They end where the tip is below 0.7 of the length, or the
    cart is at a stop.

    Seen are all coordinates and velocities: the cart in units of its most and of 1 m/s, the rod in 1/m and
    10/(m·s).

    Args:
        model: as it comes along: a cart, the first coordinate, and a rod of half a metre.
        most, least, steps, limit: as of Task. period: how long an action acts [s].
        bend: of starts at random, standard deviation [1/m].
    """

    model: Model | ModelBatch = field(default_factory=pendulum)
    most: Numbers = 10.0
    period: float = 0.02
    steps: int = 2
    limit: int = 250
    bend: float = 0.05

    def start(self, random: np.random.Generator) -> TaskStart:
        """Nearly straight."""
        q = np.zeros(self.model.nq)
        q[1:] = self.bend * random.normal(size=self.model.nq - 1)
        return TaskStart(q=q)

    def height(self, state: TaskState) -> np.ndarray:
        """Of the tip above the foot of the rod, over its length (n,)."""
        return state.place("rod")[:, 2] / 0.5

    def observe(self, state: TaskState) -> np.ndarray:
        """Everything."""
        q, v = state.q.copy(), state.v.copy()
        q[:, 0] /= self.configuration_limits[1][0]
        v[:, 1:] /= 10.0
        return np.concatenate([q, v], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Upright, and in the middle."""
        return self.height(state) - (state.q[:, 0] / self.configuration_limits[1][0]) ** 2

    def terminated(self, state: TaskState) -> np.ndarray:
        """Where the rod has fallen over, or the cart is at a stop."""
        low, high = self.configuration_limits
        return (self.height(state) < 0.7) | (state.q[:, 0] <= low[0]) | (state.q[:, 0] >= high[0])

    def observation_limits(self) -> tuple[Any, Any]:
        """The stops of the cart, and more than is seen of the rod."""
        model = self.model
        most = np.concatenate([[1.0], np.full(model.nq - 1, 50.0), np.full(model.nv, 50.0)])
        return -most, most


@final
@dataclass(frozen=True, eq=False)
class TaskHold(Task):
    """Take hold of a ball with three soft fingers before its table has sunk away, and keep it.

    Episodes begin with straight fingers and a ball on the table, a little away from the middle. The one
    action is the tension that closes the fingers. It is worth 1 less what the ball has fallen, in units of 0.03 m,
    and 0.1 of the tension over its most. Episodes end where the ball has fallen by 0.09 m.

    Seen are the place of the ball from where the middle of its starts is, in 0.01 m, its velocity in 0.1 m/s, the
    coordinates of the fingers over 10 and the tension, from −1 to 1.

    Args:
        model: as it comes along: three fingers, a ball and a table.
        most, least, steps, limit: as of Task. period: how long an action acts [s].
        aside: most way of the ball from the middle, along each axis [m].
    """

    model: Model | ModelBatch = field(default_factory=gripper)
    most: Numbers = 4.0
    period: float = 0.05
    steps: int = 25
    limit: int = 60
    aside: float = 0.004

    @cached_property
    def begin(self) -> tuple[np.ndarray, int]:
        """The start with the ball in the middle, and where its place stands in q."""
        return ball_start(self.model)

    def start(self, random: np.random.Generator) -> TaskStart:
        """With the ball somewhere near the middle."""
        q, at = self.begin[0].copy(), self.begin[1]
        q[at : at + 2] = self.aside * random.uniform(-1.0, 1.0, 2)
        return TaskStart(q=q)

    def fallen(self, state: TaskState) -> np.ndarray:
        """How far the ball has come down (n,) [m]."""
        q, at = self.begin
        return q[at + 2] - state.q[:, at + 2]

    def observe(self, state: TaskState) -> np.ndarray:
        """Ball, fingers and tension."""
        q, at = self.begin
        low, high = self.input_limits
        away = (state.q[:, at : at + 3] - q[at : at + 3]) / 0.01
        fingers = state.q[:, : at - 4] / 10.0
        tension = 2.0 * (state.u - low) / (high - low) - 1.0
        return np.concatenate([away, state.velocity("ball") / 0.1, fingers, tension], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """High, and with little tension."""
        return 1.0 - self.fallen(state) / 0.03 - 0.1 * state.u[:, 0] / self.input_limits[1][0]

    def terminated(self, state: TaskState) -> np.ndarray:
        """Where the ball is lost."""
        return self.fallen(state) > 0.09

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """How far the ball has fallen [m], and whether it is held: less than by 0.04 m."""
        fallen = self.fallen(state)
        return {"fallen": fallen, "is_success": fallen < 0.04}

    def observation_limits(self) -> tuple[Any, Any]:
        """More than is seen; the tension is from −1 to 1."""
        most = np.append(np.full(6 + self.begin[1] - 4, 100.0), 1.0)
        return -most, most

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """Fingers and ball alone."""
        return {"links": ["palm", *FINGERS, "ball"], "obstacles": False, "view": (10.0, -75.0)}


_POINTS, _SEED = 256, 20250101  # reachable ones, and the seed of the tensions that reach them


@final
@dataclass(frozen=True, eq=False)
class TaskReach(Task):
    """Bring the tip of an arm to a point and keep it there.

    Episodes begin at rest without inputs. Points are where the tip rests under random inputs, so that each can be
    reached: one of 256. An action is worth −d/0.1 m, with the distance d at its end, and 1 more if that is a success.

    Seen are the place of the tip, how far it goes in the time of an action and its way to the point, in units of 0.1 m,
    and the inputs, from −1 to 1.

    Args:
        model: None is the cable-driven manipulator, of 24 coordinates with five tendons. link: whose tip it is.
        most, least, steps, limit: as of Task. period: how long an action acts [s].
        share: of the most inputs that points ask for, a ratio. tolerance: distance of success [m].
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
        """Where episodes begin, shape (nq,)."""
        return solve_statics(self.model).q

    @cached_property
    def points(self) -> np.ndarray:
        """Points to reach for, shape (256, 3) [m]."""
        low, high = self.input_limits
        pulls = np.random.default_rng(_SEED).uniform(0.0, self.share, (_POINTS, self.model.nu))
        still = np.clip(0.0, low, high)
        q = solve_statics(self.model, still + (high - still) * pulls).q
        return frame_pose(self.model, q, self.link)[:, :3, 3]

    def start(self, random: np.random.Generator) -> TaskStart:
        """At rest, with a point of its own."""
        return TaskStart(q=self.rest, goal=self.points[random.integers(_POINTS)])

    def distance(self, state: TaskState) -> np.ndarray:
        """From the tip to the point (n,) [m]."""
        return np.sqrt(((state.goal - state.place(self.link)) ** 2).sum(axis=1))

    def observe(self, state: TaskState) -> np.ndarray:
        """Tip, its velocity, its way to the point, and inputs."""
        tip, low, high = state.place(self.link), *self.input_limits
        way, speed = state.goal - tip, self.period * state.velocity(self.link)
        return np.concatenate([tip / 0.1, speed / 0.1, way / 0.1, 2.0 * (state.u - low) / (high - low) - 1.0], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """The nearer, the more."""
        distance = self.distance(state)
        return np.where(distance < self.tolerance, 1.0, 0.0) - distance / 0.1

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """The distance [m], and whether it is within the tolerance."""
        distance = self.distance(state)
        return {"distance": distance, "is_success": distance < self.tolerance}

    def observation_limits(self) -> tuple[Any, Any]:
        """Inputs are from −1 to 1, lengths are cut at a metre."""
        most = np.append(np.full(9, 10.0), np.ones(self.model.nu))
        return -most, most

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """The way from the tip to the point."""
        return {"trail": np.stack([state.place(self.link)[copy], state.goal[copy]]), "view": (20.0, -60.0)}


@final
@dataclass(frozen=True, eq=False)
class TaskSwim(Task):
    """Swim ahead, towards −x, as fast as two pairs of tendons can.

    Episodes begin at rest, nearly straight, under the half of the most tension everywhere. An action is two
    numbers, for each pair by how much of that half one tendon pulls more and the other less. It is worth the mean
    velocity of nose, middle and tail towards −x, in body lengths per second, less 0.02 of its squares.

    Seen are cosine and sine of the heading of the nose, its velocity along its axes and its turning, curvatures in
    1/m and their rates in 10/(m·s), and the last action.

    Args:
        model: as it comes along: a rod on a planar joint, with left and right of front and rear as inputs.
        most, least, steps, limit: as of Task. period: how long an action acts [s].
        bend: of starts at random, standard deviation [1/m].
    """

    model: Model | ModelBatch = field(default_factory=swimmer)
    most: Numbers = 20.0
    period: float = 0.1
    steps: int = 10
    limit: int = 100
    bend: float = 0.05

    @property
    def n_actions(self) -> int:
        """One for each pair."""
        return 2

    def inputs(self, action: np.ndarray) -> np.ndarray:
        """Tensions of left and right of each pair."""
        low, high = self.input_limits
        share = np.stack([action, -action], axis=2).reshape(len(action), 4)
        return low + (high - low) * (0.5 + 0.5 * share)

    def start(self, random: np.random.Generator) -> TaskStart:
        """Nearly straight."""
        q = np.zeros(self.model.nq)
        q[3:] = self.bend * random.normal(size=self.model.nq - 3)
        return TaskStart(q=q, u=self.inputs(np.zeros((1, 2)))[0])

    def speed(self, state: TaskState) -> np.ndarray:
        """Mean velocity of nose, middle and tail towards −x (n,) [m/s]."""
        return -(state.velocity("nose") + state.velocity("middle") + state.velocity("body"))[:, 0] / 3.0

    def observe(self, state: TaskState) -> np.ndarray:
        """Heading, motion of the nose, shape and its rate, last action."""
        c, s = np.cos(state.q[:, 2]), np.sin(state.q[:, 2])
        x, y, turning = state.v[:, :3].T
        nose = np.stack([c, s, c * x + s * y, c * y - s * x, turning], axis=1)
        return np.concatenate([nose, state.q[:, 3:], state.v[:, 3:] / 10.0, state.action], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Fast, and with little effort."""
        return self.speed(state) / 0.5 - 0.02 * (state.action**2).sum(axis=1)

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """How far the nose has come towards −x [m]."""
        return {"way": -state.place("nose")[:, 0]}

    def observation_limits(self) -> tuple[Any, Any]:
        """More than is seen; actions are from −1 to 1."""
        most = np.full(5 + 2 * (self.model.nq - 3) + 2, 50.0)
        most[:2] = most[-2:] = 1.0
        return -most, most
