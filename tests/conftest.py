"""Shared by all tests: one thread for linear algebra, whose matrices here are small, kernels that serve many robots,
and what JAX compiles is kept.

Tests try many kinds of robots, each for a moment. Kernels composed for each of them would take most of the time on a
machine that has compiled none (tests/launch/test_shared_kernels.py compares the two).

JAX does not optimise: its functions run a few times here, and compiling them takes most of the time. All that it
compiles is kept in the user's cache, where other processes, later runs and other checkouts find it, as Warp's kernels.
"""

import ctypes
import gc
import os
import sys
from functools import cache
from pathlib import Path

import pytest


def _user_cache():
    """The folder in which the user's programs keep files that can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("LISSOM_SHARED_KERNELS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_user_cache() / "lissom" / "jax_of_tests"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

GROWTH, GROWTH_OF_A_FILE = 1.5e8, 3e7  # [B]
TESTS = Path(__file__).parent
_freed = _searched = 0  # memory when some was last freed, and when all objects were last searched


@cache
def no_graphics():
    """Why pictures of robots cannot be drawn on this machine; empty where they can."""
    from lissom.errors import ModelError
    from lissom.viewing.canvas import check_graphics

    try:
        check_graphics()
    except ModelError as error:
        return str(error)
    return ""


@pytest.fixture
def small_pictures(monkeypatch):
    """Pictures of robots are 400 pixels wide where no width is given, and figures have half their resolution."""
    from lissom import render
    from lissom.viewing import plots

    monkeypatch.setitem(render.__kwdefaults__, "size", 400)
    monkeypatch.setattr(plots, "_PICTURE_DPI", 60)
    monkeypatch.setattr(plots, "_DPI", 100)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip tests that draw, by name and with the reason, where there is no OpenGL: no package of pip brings it."""
    if item.get_closest_marker("graphics") and no_graphics():
        item.add_marker(pytest.mark.skip(reason=no_graphics()))


def pytest_collection(session):
    """Python does not look for cycles while tests are imported, which takes a fifth of the time."""
    gc.disable()


def pytest_collection_finish(session):
    """Imported objects stay: from here on Python does not search them for cycles."""
    global _freed, _searched
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # 700 in Python 3.11: JAX and models make thousands of objects that live on
    gc.enable()
    _freed = _searched = _resident()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Free memory at the end of each file that took GROWTH_OF_A_FILE, and within one where it has grown by GROWTH.

    JAX keeps every function that it compiled, some 20 MB for a deformable body, and Python collects reference cycles
    seldom where many objects live, while each model holds buffers of megabytes. The models that functions of tests keep
    are let go with the file that asked for them. Python looks for cycles among the objects of this file alone, since a
    search among all, which takes up to a second, is worth it only after GROWTH.
    """
    global _freed, _searched
    is_last = nextitem is None or nextitem.path != item.path
    if is_last:
        homes = {getattr(value, "__module__", "") for value in vars(item.module).values() if callable(value)}
        _forget([item.module, *(sys.modules[name] for name in homes & sys.modules.keys())], TESTS)
    if _resident() < _freed + (GROWTH_OF_A_FILE if is_last else GROWTH):
        return
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if "lissom.robot.poses" in sys.modules:  # keeps functions of users, and so all that their scripts have
        _forget([sys.modules["lissom.robot.poses"]], TESTS.parent / "src")
    if is_last and _resident() >= _searched + GROWTH:
        gc.unfreeze()
        _free(is_last)
        _searched = _resident()
    else:
        _free(is_last)
    _freed = _resident()


def _free(is_last):
    """Free what only cycles hold, of the objects made since the last time, and give free memory back to the system.

    Objects that live on after a file are not searched again. Those of a file that has not ended would be garbage later.
    """
    gc.collect()
    if is_last:
        gc.freeze()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def _forget(modules, folder):
    """Empty the caches of functions that modules have, if they stand in a folder."""
    for function in [value for module in modules for value in vars(module).values()]:
        written = getattr(getattr(function, "__wrapped__", None), "__code__", None)
        if written and Path(written.co_filename).is_relative_to(folder) and hasattr(function, "cache_clear"):
            function.cache_clear()


def _resident():
    """Memory of this process [B], or 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
