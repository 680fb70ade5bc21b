"""Pictures of copies at a task."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.gym.task import Task, TaskState
from lissom.viewing.render import render

MODES = ("rgb_array",)


def picture(task: Task, state: TaskState, copy: int, size: int) -> np.ndarray:
    """Picture of one copy, whose task that is, shape (height, width, 3), whole numbers from 0 to 255."""
    options: dict[str, Any] = {"size": size} | task.drawn(state, copy)
    return render(task.robot, state.q[copy], **options)
