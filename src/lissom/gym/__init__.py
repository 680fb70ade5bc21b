"""Robots at tasks as environments of Gymnasium, one or thousands of copies at once (extra `gym`)."""

from lissom.gym.registered import environment, stable_baselines_environment, vector_environment
from lissom.gym.tasks import Task, TaskBalance, TaskHold, TaskReach, TaskStart, TaskState, TaskSwim

__all__ = [
    "Task", "TaskBalance", "TaskHold", "TaskReach", "TaskStart", "TaskState", "TaskSwim", "environment",
    "stable_baselines_environment", "vector_environment",
]  # fmt: skip
