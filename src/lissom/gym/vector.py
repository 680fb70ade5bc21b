"""Environments of Gymnasium: many copies of a robot at a task as a vector environment, and a single one.

The results are equal to the last bit to those of SyncVectorEnv with as many single environments, for a batch of models
with environments of its models.
"""

from __future__ import annotations

from typing import Any, final

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lissom.errors import ModelError, ShapeError
from lissom.gym.episodes import Episodes, Outcome
from lissom.gym.registered import MODES, picture
from lissom.gym.task import Task

Info = dict[str, Any]


@final
class ManyEnvironments(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Copies that move in one launch for each action."""

    def __init__(self, task: Task, copies: int, autoreset: str, render_mode: str | None, size: int) -> None:
        self.task, self.num_envs, self.render_mode, self.size = task, copies, render_mode, size
        self.mode = AutoresetMode[autoreset.upper()]
        self.metadata = {
            "render_modes": list(MODES),
            "render_fps": round(1.0 / task.period),
            "autoreset_mode": self.mode,
        }
        self.episodes = Episodes(task, copies, [np.random.default_rng(k) for k in range(copies)])
        self.single_action_space = Box(-1.0, 1.0, (task.n_actions,), np.float64)
        self.single_observation_space = Box(self.episodes.least, self.episodes.most, dtype=np.float64)
        self.action_space = batch_space(self.single_action_space, copies)
        self.observation_space = batch_space(self.single_observation_space, copies)
        self._over = np.zeros(copies, dtype=bool)
        self._has_begun = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Info]:
        """Begin episodes of all copies, or of those in options["reset_mask"]. A seed k is k, k + 1, … for the copies.

        Raises:
            ModelError, ShapeError: the numbers of seeds, or of entries of the mask, and of copies differ.
        """
        seeds = (
            [None if seed is None else seed + k for k in range(self.num_envs)] if not isinstance(seed, list) else seed
        )
        if len(seeds) != self.num_envs:
            raise ModelError(f"seed: must be one number, or one for each of {self.num_envs} copies (got {len(seeds)})")
        which = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if which.shape != (self.num_envs,) or which.dtype != bool:
            raise ShapeError(f"reset_mask: expected booleans of shape ({self.num_envs},), got {which!r}")
        for k in np.flatnonzero(which).tolist():
            if seeds[k] is not None or not self._has_begun:
                self.episodes.random[k] = seeding.np_random(seeds[k])[0]
        self._has_begun = True
        self._over[which] = False
        self.episodes.begin(np.flatnonzero(which))
        return self.episodes.see(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """Apply the actions of all copies for a period.

        Raises:
            ShapeError: the expected and the received shape.
        """
        if self.mode is AutoresetMode.NEXT_STEP and self._over.any():
            return self._step_and_begin(actions)
        if self._over.any():
            raise ModelError(f"copies whose episode is over must be reset (got {np.flatnonzero(self._over).tolist()})")
        found = self.episodes.act(actions)
        over = found.terminated | found.truncated
        info = _masked(found.info, ~np.zeros(self.num_envs, dtype=bool))
        if self.mode is not AutoresetMode.SAME_STEP:
            self._over = over
            return found.seen, found.reward, found.terminated, found.truncated, info
        return self._begin_here(found, over)

    def _step_and_begin(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """A step in which copies whose episodes are over begin new ones."""
        begins = self._over
        self.episodes.begin(np.flatnonzero(begins))
        found = self.episodes.act(actions, begins)
        reward = np.where(begins, 0.0, found.reward)
        terminated, truncated = found.terminated & ~begins, found.truncated & ~begins
        self._over = terminated | truncated
        return found.seen, reward, terminated, truncated, _masked(found.info, ~begins)

    def _begin_here(
        self, found: Outcome, over: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """Begin new episodes at once for copies whose episodes are over. Their last observations and information are
        added to the information."""
        info = _masked(found.info, ~over)
        if not over.any():
            return found.seen, found.reward, found.terminated, found.truncated, info
        last = np.full(self.num_envs, None, dtype=object)
        for k in np.flatnonzero(over).tolist():
            last[k] = found.seen[k]
        info |= {"final_obs": last, "_final_obs": over, "final_info": _masked(found.info, over), "_final_info": over}
        self.episodes.begin(np.flatnonzero(over))
        return self.episodes.see(), found.reward, found.terminated, found.truncated, info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Pictures of the present states of all copies."""
        if self.render_mode is None:
            return None
        state = self.episodes.state()
        return tuple(picture(self.episodes.task_of(k), state, k, self.size) for k in range(self.num_envs))


def _masked(info: Info, which: np.ndarray) -> Info:
    """Information on copies `which` in the form of Gymnasium: zeros for the other copies, and a mask."""
    if not which.any():
        return {}
    out: Info = {}
    for name, value in info.items():
        shown = which & value if name == "is_unsolved" else which
        if shown.any():
            wide = shown.reshape(-1, *[1] * (value.ndim - 1))
            out |= {name: np.where(wide, value, np.zeros_like(value)), f"_{name}": shown}
    return out


@final
class SingleEnvironment(gymnasium.Env[np.ndarray, np.ndarray]):
    """A task of one copy: the first one of a vector environment of the same seed, to the last bit."""

    def __init__(self, task: Task, render_mode: str | None, size: int) -> None:
        self.task, self.render_mode, self.size = task, render_mode, size
        self.metadata = {"render_modes": list(MODES), "render_fps": round(1.0 / task.period)}
        self.episodes = Episodes(task, 1, [np.random.default_rng(0)])
        self.action_space = Box(-1.0, 1.0, (task.n_actions,), np.float64)
        self.observation_space = Box(self.episodes.least, self.episodes.most, dtype=np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin an episode. A seed restarts the random numbers."""
        super().reset(seed=seed)
        self.episodes.random[0] = self.np_random
        self.episodes.begin(np.arange(1))
        return self.episodes.see()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action for a period."""
        seen, reward, terminated, truncated, info = self.episodes.act(np.asarray(action)[None])
        info = {name: value[0] for name, value in info.items()}
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Picture of the robot in its present state, shape (height, width, 3)."""
        if self.render_mode is None:
            return None
        return picture(self.task, self.episodes.state(), 0, self.size)
