"""What a robot is to do, written down once for one copy of it and for many: the base of all tasks.

A task speaks of copies as rows: of states (n, ...) it says what is seen, what they are worth and which of them end an
episode, each row by itself. So a task is one class without any loop, and a copy among many does what it does alone.
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
    """Where an episode of one copy begins.

    Fields:
        q, v: shape (nq,) and (nv,); None is the neutral configuration, and rest. u: inputs that act there, shape (nu,);
        None is zero. goal: what the episode is about, numbers of a task's own.
    """

    q: np.ndarray | None = None
    v: np.ndarray | None = None
    u: np.ndarray | None = None
    goal: np.ndarray | None = None


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TaskState:
    """Where n copies are, at the end of an action or at the start of an episode.

    Fields:
        t: time since their episodes began (n,) [s]. q, v: (n, nq) and (n, nv). u: inputs that act (n, nu).
        action: the one that led there (n, ...), zero at the start. goal: of their episodes (n, ...).
        model: the robot, or a batch of as many models as divide n, one model behind the other.
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
        """Poses of the tip of a link, or of a frame (n, 4, 4), computed once for these states."""
        return self._once((name, "pose"), lambda: self._by_model(lambda one, some: frame_pose(one, self.q[some], name)))

    def place(self, name: str) -> np.ndarray:
        """Where these are (n, 3) [m]."""
        return self.pose(name)[:, :3, 3]

    def velocity(self, name: str) -> np.ndarray:
        """Their velocities in the world (n, 3) [m/s]."""

        def made() -> np.ndarray:
            twists = self._by_model(lambda one, some: frame_twist(one, self.q[some], self.v[some], name))
            own = twists[:, None, 3:]
            return (self.pose(name)[:, :3, :3] * own).sum(axis=2)

        return self._once((name, "velocity"), made)

    def _by_model(self, compute: Callable[[Model, slice], np.ndarray]) -> np.ndarray:
        """What is computed of the rows of each model."""
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
    """What a robot is to do, for `environment` and `vector_environment`.

    A class of your own says where episodes begin (`start`), what is seen (`observe`) and what it is worth (`reward`);
    it may say more. All of these but `start` speak of n copies at once, and of each row by itself. Random numbers come
    from the generator that `start` is given, and from nowhere else. Loads and motions that vary in time begin with
    each episode, at time zero.

    Args:
        model: the robot, which may have no Python functions of the state; or a batch, for vector environments.
            `start` and `drawn` are asked of the task with the model of one copy, all else of that with the batch.
        most: inputs that an action of 1 stands for, one number or (nu,). least: those of −1; None is zero for tendons,
            which cannot push, and −most for everything else.
        period: how long an action acts [s]. steps: in which number of steps. limit: actions of an episode, after which
            it is cut.
    """

    model: Model | ModelBatch
    most: Numbers = 1.0
    least: Numbers | None = None
    period: float = 0.05
    steps: int = 5
    limit: int = 200

    @abstractmethod
    def start(self, random: np.random.Generator) -> TaskStart:
        """Where the next episode of one copy begins."""

    @abstractmethod
    def observe(self, state: TaskState) -> np.ndarray:
        """What is seen of states, shape (n, ...) with one axis of numbers."""

    @abstractmethod
    def reward(self, state: TaskState) -> np.ndarray:
        """What states are worth, shape (n,)."""

    def terminated(self, state: TaskState) -> np.ndarray:
        """Which states end an episode, shape (n,): here none."""
        return np.zeros(len(state.t), dtype=bool)

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """What else is told of states, by name, each (n, ...): here nothing. `is_success` is what tools count."""
        return {}

    def inputs(self, action: np.ndarray) -> np.ndarray:
        """Inputs (n, nu) of actions (n, nu) from −1 to 1: from least to most."""
        low, high = self.input_limits
        return low + (high - low) * (0.5 * action + 0.5)

    @property
    def n_actions(self) -> int:
        """Numbers of an action."""
        return self.model.nu

    def observation_limits(self) -> tuple[Any, Any]:
        """Least and most of what is seen; what goes beyond is seen as these. Here there are none."""
        return -np.inf, np.inf

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """What `render` is told besides where a copy is."""
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
        """Where the stops of joints are, low and high (nq,); infinite where there is none, as in rods."""
        model = self.robot
        low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
        for joint, start in zip(model.links.joint, model.links.q_start.tolist()):
            if joint.limits is not None:
                low[start : start + joint.nq], high[start : start + joint.nq] = joint.limits
        return low, high

    def check(self) -> None:
        """Raise ModelError where a number of the task is out of its range."""
        where = type(self).__name__
        self._check_models()
        checks.number(self.period, f"{where}: period", above=0.0)
        checks.integer(self.steps, f"{where}: steps", least=1)
        checks.integer(self.limit, f"{where}: limit", least=1)
        checks.require(
            bool(np.isfinite(self.input_limits).all()), where, "must have finite limits of inputs", self.most
        )

    def _check_models(self) -> None:
        """Models of a batch share the spaces of actions and of what is seen, and so what these are made of."""
        if not isinstance(self.model, ModelBatch):
            return
        for name in ("input_limits", "configuration_limits"):
            first = getattr(self, name)
            for k, one in enumerate(self.model):
                own = getattr(replace(self, model=one), name)
                if not np.array_equal(own, first):
                    rule = f"{name} of all models must be those of the first one, {first}"
                    raise ModelError(f"{type(self).__name__}: model {k} of a batch: {rule} (got {own})")
