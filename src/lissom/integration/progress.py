"""The bar that shows how far a motion has come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
        yield lambda t: bar.update(task, completed=t)
