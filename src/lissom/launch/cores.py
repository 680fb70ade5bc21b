"""The cores that batches are split over, and the lock under which kernels and their buffers are made."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from threading import RLock

from lissom.errors import ModelError

_making = RLock()


def making() -> AbstractContextManager[bool]:
    """The lock of this process. Reading the source of a kernel is not safe in several threads at once, nor beside NumPy
    as it reads the name of a type."""
    return _making


def cores() -> int:
    """Cores that this process may use: those that the environment variable LISSOM_CORES says, or all."""
    asked = os.environ.get("LISSOM_CORES", "")
    if asked:
        if not (asked.isdecimal() and int(asked) > 0):
            raise ModelError(f"environment variable LISSOM_CORES: must be an integer >= 1 (got {asked!r})")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_all(calls: list[Callable[[], None]]) -> None:
    """Make calls that release the interpreter, on all cores, and wait for them."""
    list(_pool().map(_call, calls))


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="lissom")


def _call(call: Callable[[], None]) -> None:
    call()


def _after_fork() -> None:
    """A forked child has the parent's pool without its threads, and perhaps a lock that nobody will give back."""
    global _making
    _making = RLock()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
