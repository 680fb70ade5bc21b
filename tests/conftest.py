"""Shared by all tests: one thread for linear algebra, whose matrices here are small, and what JAX compiles is kept.

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
    """The folder in which the user's programs keep what can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_user_cache() / "lissom" / "jax_of_tests"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

GROWTH = 2e8  # [B]
_freed = 0  # memory when some was last freed


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip tests that draw, by name and with the reason, where there is no OpenGL: no package of pip brings it."""
    if item.get_closest_marker("graphics") and no_graphics():
        item.add_marker(pytest.mark.skip(reason=no_graphics()))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Free memory at the end of each file, and within one where it has grown by GROWTH.

    JAX keeps every function that it compiled, some 20 MB for a deformable body, and Python collects reference cycles
    seldom where many objects live, while each model holds buffers of megabytes.
    """
    global _freed
    if nextitem is not None and nextitem.path == item.path and _resident() < _freed + GROWTH:
        return
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    _freed = _resident()


def _resident():
    """Memory of this process [B], or 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
