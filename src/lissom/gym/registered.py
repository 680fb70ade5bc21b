"""Environments of Gymnasium from tasks.

The tasks that come along as environments that Gymnasium knows by name, once this module is imported:

gymnasium.make("lissom.gym.registered:lissom/Reach-v0"), and make_vec(..., num_envs=64) for many copies in one launch.
Further arguments are those of `environment` and of `vector_environment`.

Pictures of copies at a task.
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

    Actions are numbers from −1 to 1 [-]. An episode is over (`terminated`) where the task says so and cut (`truncated`)
    after `task.limit` actions, or where no step is found, of which `info["is_unsolved"]` tells.

    Args:
        task: what the robot is to do; of one model.
        render_mode: "rgb_array", of which `render()` is a picture; None draws nothing.
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
    checks.require(one, "task", "must have one model, as vector_environment alone takes a batch", task.model)
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

    Actions are numbers from −1 to 1 [-]. Copy k does what an environment alone with the seed of copy k does, to the
    last bit; a seed s of `reset` is s + k for it. Where the model of the task is a ModelBatch, each of its models has
    as many copies, one model behind the other: copy k has model k · models // copies, whole.

    Args:
        task: what the robot is to do, or robots that differ in numbers. copies: how many, a multiple of the models.
        autoreset: when the next episode of a copy begins: "next_step", "same_step", or "disabled", by
            `reset(options={"reset_mask": ...})` alone. It stands in `metadata["autoreset_mode"]`.
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
    """Many copies of a robot at a task, as stable-baselines3 wants them.

    Actions are numbers from −1 to 1 [-]. Copies are those of `vector_environment(autoreset="same_step")`.

    Args:
        task: what the robot is to do. copies: how many.
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


def _one(made: type[Task], **options: Any) -> Any:
    return environment(made(), **options)  # pyright: ignore[reportCallIssue]


def _many(made: type[Task], num_envs: int, **options: Any) -> Any:
    return vector_environment(made(), num_envs, **options)  # pyright: ignore[reportCallIssue]


for _task in (TaskBalance, TaskHold, TaskReach, TaskSwim):
    _name = f"lissom/{_task.__name__.removeprefix('Task')}-v0"
    register(_name, entry_point=partial(_one, _task), vector_entry_point=partial(_many, _task))


MODES = ("rgb_array",)


def picture(task: Task, state: TaskState, copy: int, size: int) -> np.ndarray:
    """Picture of one copy, whose task that is, shape (height, width, 3), whole numbers from 0 to 255."""
    options: dict[str, Any] = {"size": size} | task.drawn(state, copy)
    return render(task.robot, state.q[copy], **options)
