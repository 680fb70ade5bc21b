"""Reaching for points with a soft arm that tendons pull."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_pose
from lissom.gym.robots import manipulator
from lissom.gym.task import Task, TaskStart, TaskState
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.fields import Numbers
from lissom.statics.equilibrium import solve_statics

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
