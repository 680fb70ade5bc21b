"""Environments of Gymnasium for tasks of robots: single ones, or thousands of copies (extra `gym`)."""

try:
    from lissom.gym.registered import environment, stable_baselines_environment, vector_environment
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"environments need Gymnasium: pip install 'lissom[gym]' (got {error})") from None
from lissom.gym.tasks import Task, TaskBalance, TaskHold, TaskReach, TaskStart, TaskState, TaskSwim

__all__ = [
    "Task", "TaskBalance", "TaskHold", "TaskReach", "TaskStart", "TaskState", "TaskSwim", "environment",
    "stable_baselines_environment", "vector_environment",
]  # fmt: skip
