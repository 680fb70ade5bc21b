"""A vector environment for stable-baselines3."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]

from lissom.gym.registered import ManyEnvironments
from lissom.gym.tasks import Task


@final
class StableBaselinesEnvironment(VecEnv):
    """Copies as a VecEnv. The next episode of a copy begins in the step that ends the previous one. The info of that
    step holds the last observation as `terminal_observation`."""

    def __init__(self, task: Task, copies: int) -> None:
        self.made = ManyEnvironments(task, copies, "same_step", None, 1)
        made = self.made
        self._actions = np.zeros((copies, task.n_actions))
        self.render_mode = None
        super().__init__(copies, made.single_observation_space, made.single_action_space)

    def reset(self) -> np.ndarray:
        """Begin episodes of all copies."""
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        self._reset_seeds()
        return self.made.reset(seed=seeds)[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take the step."""
        seen, reward, terminated, truncated, info = self.made.step(self._actions)
        over, last = terminated | truncated, info.pop("final_obs", None)
        ends = info.pop("final_info", {})
        infos: list[dict[str, Any]] = []
        for k in range(self.num_envs):
            own = ends if over[k] else info
            infos.append({name: own[name][k] for name in own if name[0] != "_" and own[f"_{name}"][k]})
            if over[k] and last is not None:
                infos[k] |= {"terminal_observation": last[k], "TimeLimit.truncated": bool(~terminated[k])}
        return seen, reward, over, infos

    def close(self) -> None:
        """Without effect: there is nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, which is the same for all copies."""
        return [getattr(self.made, attr_name)] * len(self._indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all copies."""
        setattr(self.made, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """The result of a method, which is the same for all copies."""
        return [getattr(self.made, method_name)(*method_args, **method_kwargs)] * len(self._indices(indices))

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: Any = None) -> list[bool]:
        """False for each copy, because copies are not wrapped."""
        return [False] * len(self._indices(indices))

    def _indices(self, indices: Any) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return list(indices) if isinstance(indices, Iterable) else [indices]
