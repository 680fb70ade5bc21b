"""The tasks that come along as environments that Gymnasium knows by name, once this module is imported:

gymnasium.make("lissom.gym.registered:lissom/Reach-v0"), and make_vec(..., num_envs=64) for many copies in one launch.
Further arguments are those of `environment` and of `vector_environment`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from gymnasium.envs.registration import register

from lissom.gym.balance import TaskBalance
from lissom.gym.hold import TaskHold
from lissom.gym.making import environment, vector_environment
from lissom.gym.reach import TaskReach
from lissom.gym.swim import TaskSwim
from lissom.gym.task import Task


def _one(made: type[Task], **options: Any) -> Any:
    return environment(made(), **options)  # pyright: ignore[reportCallIssue]


def _many(made: type[Task], num_envs: int, **options: Any) -> Any:
    return vector_environment(made(), num_envs, **options)  # pyright: ignore[reportCallIssue]


for _task in (TaskBalance, TaskHold, TaskReach, TaskSwim):
    _name = f"lissom/{_task.__name__.removeprefix('Task')}-v0"
    register(_name, entry_point=partial(_one, _task), vector_entry_point=partial(_many, _task))
