"""Thread pools over the cores of the process, and the lock under which kernels and their buffers are made.

A batch is split in one of two ways. Either each launch runs on all cores, or the batch is split into groups that run in
parallel, each on one core. Work of Python between the launches of one group then leaves no core idle.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import lru_cache
from threading import Event, RLock, local
from typing import TypeVar

from lissom.lie.warp_private import share_headers
from lissom.portable import cores_of_process

_STATES_PER_CORE = 256  # in one launch: the results of more states do not fit into a processor's cache
_T = TypeVar("_T")
_build_lock = RLock()
_thread = local()  # its attribute `uses_one_core` is true in threads that run_in_parallel started


def build_lock() -> AbstractContextManager[bool]:
    """The lock of this process for making kernels and buffers.

    Warp's code generation is not safe in several threads at once, nor while NumPy reads the name of a type.
    """
    return _build_lock


def cores() -> int:
    """Number of cores that this thread may use: one within a call of `run_in_parallel`, else those of the process."""
    return 1 if getattr(_thread, "uses_one_core", False) else cores_of_process()


def states_per_launch() -> int:
    """Number of states of many motions for one launch."""
    return _STATES_PER_CORE * cores()


def run_on_pool(calls: list[Callable[[], None]]) -> None:
    """Run calls on all cores and wait for them. The calls must release Python's interpreter lock."""
    list(_pool(cores()).map(_call, calls))


def run_in_parallel(calls: list[Callable[[], _T]], stop: Event) -> list[_T]:
    """Results of calls that run in parallel, each on one core; one after the other if there is one core.

    If a call raises or this thread is interrupted, `stop` is set; the calls check it. Calls that have not begun are
    cancelled. When the others have ended, the error of the first failed call in their order is raised.
    """
    if cores() == 1 or len(calls) == 1:
        return [call() for call in calls]
    futures = [_pool(cores()).submit(_call_on_one_core, call) for call in calls]
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
    """Pool of threads that compile kernels. It stays alive, since its threads share the precompiled headers of Warp."""
    return ThreadPoolExecutor(size, thread_name_prefix="lissom-compiler", initializer=share_headers)


@lru_cache(maxsize=4)
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=size, thread_name_prefix="lissom")


def _call(call: Callable[[], None]) -> None:
    call()


def _call_on_one_core(call: Callable[[], _T]) -> _T:
    _thread.uses_one_core = True
    try:
        return call()
    finally:
        _thread.uses_one_core = False


def _after_fork() -> None:
    """Replace the lock and the pools in a forked child: the pools have no threads there, and the lock may be locked."""
    global _build_lock
    _build_lock = RLock()
    _pool.cache_clear()
    compilers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
