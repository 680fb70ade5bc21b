"""The cores that batches are split over, and the lock under which kernels and their buffers are made.

A batch is split in one of two ways: each launch over all cores, or into groups of instances that go their way at once,
each on one core, so that what Python does between the launches of one group keeps no core waiting.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import lru_cache
from threading import Event, RLock, local
from typing import TypeVar

from lissom.errors import ModelError
from lissom.launch.warp_private import share_headers

_STATES = 256  # in a launch, for each core: what more would leave does not stay in the cache
_T = TypeVar("_T")
_making = RLock()
_thread = local()  # has `is_alone` where a thread is to use one core


def making() -> AbstractContextManager[bool]:
    """The lock of this process. Reading the source of a kernel is not safe in several threads at once, nor beside NumPy
    as it reads the name of a type."""
    return _making


def cores() -> int:
    """Cores that this thread may use: those of the process, but one within a call of `at_once`."""
    return 1 if getattr(_thread, "is_alone", False) else cores_of_process()


def cores_of_process() -> int:
    """Cores that the environment variable LISSOM_CORES says, or all."""
    asked = os.environ.get("LISSOM_CORES", "")
    if asked:
        if not (asked.isdecimal() and int(asked) > 0):
            raise ModelError(f"environment variable LISSOM_CORES: must be an integer >= 1 (got {asked!r})")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def states_together() -> int:
    """How many states of many motions to put into one launch."""
    return _STATES * cores()


def on_all(calls: list[Callable[[], None]]) -> None:
    """Make calls that release the interpreter, on all cores, and wait for them."""
    list(_pool(cores()).map(_call, calls))


def at_once(calls: list[Callable[[], _T]], stop: Event) -> list[_T]:
    """What calls return that go their way at once, each on one core; one after the other where there is one core.

    What the first of them raises, in their order, goes on to the caller, when those that have begun are over: `stop`
    is set, for them to look at, as it is where this thread is interrupted.
    """
    if cores() == 1 or len(calls) == 1:
        return [call() for call in calls]
    futures = [_pool(cores()).submit(_alone, call) for call in calls]
    try:
        return [future.result() for future in futures]
    except BaseException:
        stop.set()
        raise
    finally:
        for future in futures:
            future.cancel()
        wait(futures)


@lru_cache(maxsize=4)
def compilers(size: int) -> ThreadPoolExecutor:
    """Threads that compile kernels. They stay, since they have what was read of Warp's headers."""
    return ThreadPoolExecutor(size, thread_name_prefix="lissom-compiler", initializer=share_headers)


@lru_cache(maxsize=4)
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=size, thread_name_prefix="lissom")


def _call(call: Callable[[], None]) -> None:
    call()


def _alone(call: Callable[[], _T]) -> _T:
    _thread.is_alone = True
    try:
        return call()
    finally:
        _thread.is_alone = False


def _after_fork() -> None:
    """A forked child has the parent's pool without its threads, and perhaps a lock that nobody will give back."""
    global _making
    _making = RLock()
    _pool.cache_clear()
    compilers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
