"""Tasks of a robot: the base class, which defines a task once for single and for vector environments.

A task works on rows, one for each copy: from states (n, ...) it computes observations, rewards and the ends of
episodes, each row independently. So a task is one class without loops, and a copy behaves the same alone and among
many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import tightening_inputs
from lissom.dynamics.kinematics import frame_pose, frame_twist
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks, formatting
from lissom.robot.fields import Numbers


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TaskStart:
    """The start of an episode of one copy.

    Fields:
        q, v: shape (nq,) and (nv,); None is the neutral configuration, and rest. u: inputs at the start, shape (nu,);
        None is zero. goal: numbers that define the goal of the episode, such as a target point.
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
        t: time since the start of their episodes (n,) [s]. q, v: (n, nq) and (n, nv). u: present inputs (n, nu).
        action: last action (n, ...), zero at the start. goal: of their episodes (n, ...).
        model: the robot, or a batch of models, each with equally many copies, one model after the other.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    action: np.ndarray
    goal: np.ndarray
    model: Model | ModelBatch = field(repr=False)
    _known: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    def pose(self, name: str) -> np.ndarray:
        """Poses (n, 4, 4) of the tip of a link, or of a frame; they are cached."""
        return self._once((name, "pose"), lambda: self._by_model(lambda one, some: frame_pose(one, self.q[some], name)))

    def place(self, name: str) -> np.ndarray:
        """Positions (n, 3) of the tip of a link, or of a frame [m]."""
        return self.pose(name)[:, :3, 3]

    def velocity(self, name: str) -> np.ndarray:
        """Velocities (n, 3) of the tip of a link, or of a frame, in the world [m/s]."""

        def made() -> np.ndarray:
            twists = self._by_model(lambda one, some: frame_twist(one, self.q[some], self.v[some], name))
            own = twists[:, None, 3:]
            return (self.pose(name)[:, :3, :3] * own).sum(axis=2)

        return self._once((name, "velocity"), made)

    def _by_model(self, compute: Callable[[Model, slice], np.ndarray]) -> np.ndarray:
        """The results of a function of each model and the range of its rows, joined."""
        if not isinstance(self.model, ModelBatch):
            return compute(self.model, slice(None))
        ends = np.linspace(0, len(self.t), len(self.model) + 1).astype(int).tolist()
        return np.concatenate([compute(one, slice(*span)) for one, span in zip(self.model, pairwise(ends))])

    def _once(self, key: tuple[str, str], make: Callable[[], np.ndarray]) -> np.ndarray:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


@dataclass(frozen=True, eq=False)
class Task(ABC):
    """A task of a robot, for `environment` and `vector_environment`.

    A subclass defines the starts of episodes (`start`), observations (`observe`) and rewards (`reward`); it may
    override further methods. All of them except `start` and `drawn` work on n copies at once, each row independently.
    Random numbers must come from the argument of `start` only. Loads and motions that depend on time start at time zero
    with each episode.

    Args:
        model: the robot, without Python functions of the state; or a batch, for vector environments. `start` and
            `drawn` are called on the task with the model of one copy, the other methods on the task with the batch.
        most: inputs of an action of 1, one number or (nu,). least: inputs of an action of −1; None is zero for tendons,
            which cannot push, and −most for others.
        period: duration of an action [s]. steps: number of its steps. limit: number of actions after which an episode
            is truncated.
    """

    model: Model | ModelBatch
    most: Numbers = 1.0
    least: Numbers | None = None
    period: float = 0.05
    steps: int = 5
    limit: int = 200

    @abstractmethod
    def start(self, random: np.random.Generator) -> TaskStart:
        """The start of the next episode of one copy."""

    @abstractmethod
    def observe(self, state: TaskState) -> np.ndarray:
        """Observations of states, shape (n, n_seen)."""

    @abstractmethod
    def reward(self, state: TaskState) -> np.ndarray:
        """Rewards of states, shape (n,)."""

    def terminated(self, state: TaskState) -> np.ndarray:
        """Whether each state ends its episode, shape (n,); here none does."""
        return np.zeros(len(state.t), dtype=bool)

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """Further information on states by name, each (n, ...), for the `info` of the environment; here none. Tools
        count `is_success`."""
        return {}

    def inputs(self, action: np.ndarray) -> np.ndarray:
        """Inputs (n, nu) of actions (n, nu): `least` for −1, `most` for 1, linear in between."""
        low, high = self.input_limits
        return low + (high - low) * (0.5 * action + 0.5)

    @property
    def n_actions(self) -> int:
        """Number of components of an action."""
        return self.model.nu

    def observation_limits(self) -> tuple[Any, Any]:
        """Lower and upper limits of observations, to which they are clipped; here infinite."""
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
        """Inputs of actions of −1 and 1, each (nu,)."""
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
        """Low and high limits (nq,) of the stops of joints; infinite for coordinates without stops, such as those of
        rods."""
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
        """Raise ModelError if models of a batch differ in data that determine the spaces of actions and
        observations."""
        if not isinstance(self.model, ModelBatch):
            return
        for name in ("input_limits", "configuration_limits"):
            first = getattr(self, name)
            for k, one in enumerate(self.model):
                own = getattr(replace(self, model=one), name)
                if not np.array_equal(own, first):
                    rule = f"{name} of all models must be those of the first one, {first}"
                    raise ModelError(f"{type(self).__name__}: model {k} of a batch: {rule} (got {own})")
