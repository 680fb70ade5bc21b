"""Environments of Gymnasium from tasks, and pictures of them.

The tasks of this library are registered in Gymnasium by name when this module is imported:

gymnasium.make("lissom.gym.registered:lissom/Reach-v0"), and make_vec(..., num_envs=64) for many copies in one launch.
Further arguments are those of `environment` and of `vector_environment`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.registration import register

from lissom.errors import ModelError
from lissom.gym.task import Task, TaskState
from lissom.gym.tasks import TaskBalance, TaskHold, TaskReach, TaskSwim
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks
from lissom.viewing.render import render

if TYPE_CHECKING:
    import gymnasium
    import gymnasium.vector

    from lissom.gym.stable_baselines import StableBaselinesEnvironment

_MODES = ("next_step", "same_step", "disabled")


def environment(task: Task, *, render_mode: str | None = None, size: int = 480) -> gymnasium.Env:
    """Environment of Gymnasium: one robot at a task.

    Actions are numbers from −1 to 1 [-]. An episode is `terminated` by the task. It is `truncated` after `task.limit`
    actions, or if no step is found; `info["is_unsolved"]` is then true.

    Args:
        task: the task, of one model.
        render_mode: "rgb_array": `render()` returns a picture; None: it does not draw.
        size: width of pictures [pixels].
    Returns:
        gymnasium.Env, the extra `gym` of this library.
    Raises:
        ModelError: Gymnasium is missing, or the task breaks a rule.
    """
    _require_gymnasium()
    from gymnasium.envs.registration import EnvSpec

    from lissom.gym.vector import SingleEnvironment

    _check(task, render_mode)
    one = not isinstance(task.model, ModelBatch)
    checks.require(one, "task", "must have one model; vector_environment takes a batch", task.model)
    made = SingleEnvironment(task, render_mode, checks.integer(size, "size", least=1))
    given = {"task": task, "size": size, "render_mode": render_mode}
    made.spec = EnvSpec(
        f"lissom/{type(task).__name__}-v0", entry_point="lissom.gym.registered:environment", kwargs=given
    )
    return made


def vector_environment(
    task: Task, copies: int, *, autoreset: str = "next_step", render_mode: str | None = None, size: int = 480
) -> gymnasium.vector.VectorEnv:
    """Vector environment of Gymnasium: many copies of a robot at a task, which move in one launch on all cores.

    Actions are numbers from −1 to 1 [-]. Copy k is equal to the last bit to a single environment with its seed, which
    is s + k for a seed s of `reset`. If the model of the task is a ModelBatch, each of its models has equally many
    copies, one model after the other: copy k has the model k · models // copies.

    Args:
        task: the task, of one model or of a batch. copies: their number, a multiple of that of the models.
        autoreset: when the next episode of a copy begins: "next_step", "same_step", or "disabled": only by
            `reset(options={"reset_mask": ...})`. It is `metadata["autoreset_mode"]`.
        render_mode, size: as environment.
    Returns:
        gymnasium.vector.VectorEnv.
    Raises:
        ModelError: as environment.
    """
    _require_gymnasium()
    from lissom.gym.vector import ManyEnvironments

    _check(task, render_mode)
    checks.require(checks.among(autoreset, _MODES), "autoreset", f"must be among {list(_MODES)}", autoreset)
    count = checks.integer(copies, "copies", least=1)
    return ManyEnvironments(task, count, autoreset, render_mode, checks.integer(size, "size", least=1))


def stable_baselines_environment(task: Task, copies: int) -> StableBaselinesEnvironment:
    """Many copies of a robot at a task as a vector environment of stable-baselines3.

    Actions are numbers from −1 to 1 [-]. Copies are those of `vector_environment(autoreset="same_step")`.

    Args:
        task: the task. copies: their number.
    Returns:
        A VecEnv of stable-baselines3, the extra `learning` of this library.
    Raises:
        ModelError: stable-baselines3 is missing, or the task breaks a rule.
    """
    _require_gymnasium()
    try:
        from lissom.gym.stable_baselines import StableBaselinesEnvironment
    except ImportError as error:
        raise ModelError(f"stable-baselines3 is needed: pip install 'lissom[learning]' (got {error})") from None
    _check(task, None)
    return StableBaselinesEnvironment(task, checks.integer(copies, "copies", least=1))


def _check(task: Task, render_mode: str | None) -> None:
    checks.require(isinstance(task, Task), "task", "must be a Task", task)
    modes = (None, "rgb_array")
    checks.require(checks.among(render_mode, modes), "render_mode", "must be 'rgb_array' or None", render_mode)


def _require_gymnasium() -> None:
    try:
        import gymnasium  # noqa: F401
    except ImportError:
        raise ModelError("environments need Gymnasium: pip install 'lissom[gym]'") from None


def _single(made: type[Task], **options: Any) -> Any:
    return environment(made(), **options)  # pyright: ignore[reportCallIssue]


def _vectorized(made: type[Task], num_envs: int, **options: Any) -> Any:
    return vector_environment(made(), num_envs, **options)  # pyright: ignore[reportCallIssue]


for _task in (TaskBalance, TaskHold, TaskReach, TaskSwim):
    _name = f"lissom/{_task.__name__.removeprefix('Task')}-v0"
    register(_name, entry_point=partial(_single, _task), vector_entry_point=partial(_vectorized, _task))


MODES = ("rgb_array",)


def picture(task: Task, state: TaskState, copy: int, size: int) -> np.ndarray:
    """Picture of one copy at its task, shape (height, width, 3), integers from 0 to 255."""
    options: dict[str, Any] = {"size": size} | task.drawn(state, copy)
    return render(task.robot, state.q[copy], **options)
