"""Environments of Gymnasium for tasks of robots: single ones, or thousands of copies (extra `gym`)."""

from lissom.gym.registered import environment, stable_baselines_environment, vector_environment
from lissom.gym.tasks import Task, TaskBalance, TaskHold, TaskReach, TaskStart, TaskState, TaskSwim

__all__ = [
    "Task", "TaskBalance", "TaskHold", "TaskReach", "TaskStart", "TaskState", "TaskSwim", "environment",
    "stable_baselines_environment", "vector_environment",
]  # fmt: skip
