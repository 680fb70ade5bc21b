"""Episodes of copies of a robot at one task: the common part of single and vector environments.

Each copy has its own generator of random numbers with its own seed, so that its episodes do not depend on the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError, ShapeError
from lissom.gym.task import Task, TaskState
from lissom.launch.workspace import stack
from lissom.model.model_batch import ModelBatch
from lissom.stepping.stepper import Copies


class Outcome(NamedTuple):
    """The results of an action for n copies: observations `seen` (n, n_seen), rewards (n,), whether the episode has
    terminated or is truncated (n,), and `info`, the further information by name."""

    seen: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    info: dict[str, np.ndarray]


@final
class Episodes:
    """Episodes of n copies. Each model of a batch has equally many, one model after the other.

    Raises:
        ModelError: the number of copies is no multiple of that of the models, or a rule of the task is broken.
    Fields:
        task. n: number of copies. random: their generators. least, most: limits of observations, each (n_seen,).
    """

    def __init__(self, task: Task, copies: int, random: list[np.random.Generator]) -> None:
        task.check()
        self.task, self.random = task, random
        model = task.model
        self._tasks = [replace(task, model=one) for one in model] if isinstance(model, ModelBatch) else [task]
        if copies % len(self._tasks):
            raise ModelError(f"copies: must be a multiple of the {len(self._tasks)} models of the task (got {copies})")
        common = model.common if isinstance(model, ModelBatch) else model
        self.copies = Copies(common, copies, dt=task.period / task.steps, steps=task.steps)
        self.n, n = copies, copies
        self._count = np.zeros(n, dtype=int)
        self._u, self._action, self._goal = np.zeros((n, model.nu)), np.zeros((n, task.n_actions)), np.zeros((n, 0))
        self._goal = self._begin(np.arange(n), np.random.default_rng(0))
        limits = task.observation_limits()
        size = self._see(self.state()).shape[1]
        self.least, self.most = (np.broadcast_to(np.asarray(x, dtype=np.float64), size).copy() for x in limits)

    def state(self) -> TaskState:
        """The present state of the copies."""
        task = self.task
        own = (self.copies.q, self.copies.v, self._u, self._action, self._goal)
        q, v, u, action, goal = (x.copy() for x in own)
        return TaskState(self._count * task.period, q, v, u, action, goal, task.model)

    def task_of(self, copy: int) -> Task:
        """The task of one copy, with the model of this copy."""
        return self._tasks[copy * len(self._tasks) // self.n]

    def see(self) -> np.ndarray:
        """The present observations (n, n_seen)."""
        return np.clip(self._see(self.state()), self.least, self.most)

    def begin(self, which: np.ndarray) -> None:
        """Begin new episodes of copies `which` (k,)."""
        self._goal[which] = self._begin(which)

    def act(self, action: Any, rests: np.ndarray | None = None) -> Outcome:
        """Apply actions (n, n_actions), clipped to −1 and 1, for a period, except for copies that rest (n,).

        Raises:
            ShapeError: the expected and the received shape, or NaN.
        """
        task = self.task
        rows = stack("action", action, task.n_actions)
        if rows.shape != (self.n, task.n_actions) or np.isnan(rows).any():
            raise ShapeError(f"action: expected numbers of shape {(self.n, task.n_actions)}, got {action!r}")
        moves = slice(None) if rests is None else ~rests
        self._action[moves] = np.clip(rows, -1.0, 1.0)[moves]
        self._u[moves] = task.inputs(self._action)[moves]
        lost = self.copies.advance(self._u, rests)
        self._count[moves] += 1
        state = self.state()
        info = {name: self._rows(f"told[{name!r}]", value) for name, value in task.told(state).items()}
        truncated = self._count >= task.limit
        if len(lost):
            truncated[lost] = True
            info["is_unsolved"] = np.isin(np.arange(self.n), lost)
        seen = np.clip(self._see(state), self.least, self.most)
        reward = self._rows("reward", task.reward(state), axes=1)
        return Outcome(seen, reward, self._rows("terminated", task.terminated(state), axes=1), truncated, info)

    def _rows(self, name: str, value: Any, axes: int | None = None) -> np.ndarray:
        """A value of a task for all copies, as an array (n, ...) with `axes` axes if this is given."""
        rows = np.asarray(value)
        if rows.ndim != (axes or max(rows.ndim, 1)) or len(rows) != self.n:
            rest = "" if axes == 1 else " ..."
            raise ShapeError(f"{type(self.task).__name__}.{name}: expected shape ({self.n},{rest}), got {rows.shape}")
        return rows

    def _see(self, state: TaskState) -> np.ndarray:
        return self._rows("observe", self.task.observe(state), axes=2).astype(np.float64)

    def _begin(self, which: np.ndarray, random: np.random.Generator | None = None) -> np.ndarray:
        """Set copies (k,) to starts of episodes. Returns their goals (k, ...)."""
        model = self.task.model
        starts = [self.task_of(k).start(self.random[k] if random is None else random) for k in which.tolist()]
        rest, none = np.zeros(model.nv), np.zeros(model.nu)
        q = np.array([model.neutral() if x.q is None else x.q for x in starts]).reshape(len(which), model.nq)
        v = np.array([rest if x.v is None else x.v for x in starts]).reshape(len(which), model.nv)
        u = np.array([none if x.u is None else x.u for x in starts]).reshape(len(which), model.nu)
        self.copies.place(which, q, v, u)
        self._count[which], self._action[which], self._u[which] = 0, 0.0, u
        return np.array([np.zeros(0) if x.goal is None else np.asarray(x.goal, dtype=np.float64) for x in starts])
