"""The bar that shows how far a motion has come, on a terminal; elsewhere the logger "lissom" says it, seldom."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PAUSE = 1.0  # [s] before the first line of the log; each further one takes twice as long


@contextmanager
def progress_bar(show: bool, duration: float) -> Iterator[Any]:
    """A function to call with the time reached."""
    if not show:
        yield lambda t: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [
        "[progress.description]{task.description}",
        BarColumn(),
        TextColumn("{task.completed:.2f} of {task.total:g} s"),
    ]
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("simulating", total=duration)
        pause = _PAUSE
        due = time.monotonic() + pause

        def advance(t: float) -> None:
            nonlocal due, pause
            bar.update(task, completed=t)
            if not bar.console.is_terminal and time.monotonic() >= due:
                logging.getLogger("lissom").info("simulating: %.4g of %g s", t, duration)
                pause *= 2.0
                due = time.monotonic() + pause

        yield advance
