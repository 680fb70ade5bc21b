"""One robot at a task, as an environment of Gymnasium."""

from __future__ import annotations

from typing import Any, final

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from lissom.gym.episodes import Episodes
from lissom.gym.pictures import MODES, picture
from lissom.gym.task import Task


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
        """Begin an episode; a seed begins the random numbers anew."""
        super().reset(seed=seed)
        self.episodes.random[0] = self.np_random
        self.episodes.begin(np.arange(1))
        return self.episodes.see()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Let an action act for a period."""
        seen, reward, terminated, truncated, told = self.episodes.act(np.asarray(action)[None])
        info = {name: value[0] for name, value in told.items()}
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Picture of the robot where it is, (height, width, 3)."""
        if self.render_mode is None:
            return None
        return picture(self.task, self.episodes.state(), 0, self.size)
