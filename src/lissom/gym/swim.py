"""Swimming ahead by bending."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from lissom.gym.robots import swimmer
from lissom.gym.task import Task, TaskStart, TaskState
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.fields import Numbers


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
