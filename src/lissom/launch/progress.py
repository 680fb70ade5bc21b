"""Progress bars on a terminal; elsewhere lines of the logger "lissom", at growing intervals."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

PATIENCE = 1.0  # [s] before a bar is shown
_PAUSE = 1.0  # [s] before the first line of the log; each further pause is twice as long


@contextmanager
def progress_bar(
    show: bool | Callable[[float], Any],
    total: float | None,
    label: str = "simulating",
    unit: str = "s",
    patience: float = 0.0,
) -> Iterator[Callable[..., None]]:
    """A function to call with the amount done, and optionally with a text to show in its place.

    Args:
        show: whether to show a bar; or a function that is called with the amount done instead.
        total: the amount at the end; None if it is unknown.
        label: text before the bar. unit: of the amounts. patience: time before the bar is shown [s].
    """
    if callable(show):
        yield lambda done, said="": show(done)
        return
    if not show:
        yield lambda done, said="": None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn()]
    bar = Progress(*columns, *[TimeRemainingColumn()] * (total is not None))
    task, shown = bar.add_task(label, total=total, said=""), []
    pause, due = _PAUSE, time.monotonic() + _PAUSE

    def start() -> None:
        shown.append(True)
        bar.start()

    def advance(done: float, said: str = "") -> None:
        nonlocal due, pause
        amount = f"{done:.2f}" if unit == "s" else f"{done:.4g}"
        bar.update(task, completed=done, said=said or f"{amount} of {total:g} {unit}")
        if not bar.console.is_terminal and time.monotonic() >= due:
            logging.getLogger("lissom").info("%s: %s", label, said or f"{done:.4g} of {total:g} {unit}")
            pause *= 2.0
            due = time.monotonic() + pause

    try:
        with _delayed(start, patience):
            yield advance
    finally:
        if shown:
            bar.stop()


@contextmanager
def _delayed(start: Callable[[], Any], patience: float) -> Iterator[None]:
    """Call a function after `patience` seconds, unless the context ends before."""
    if patience <= 0.0:
        start()
        yield
        return
    waiting = Timer(patience, start)
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
        waiting.join()
