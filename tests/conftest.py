"""Shared by all tests: one thread for linear algebra, whose matrices here are small, and what JAX compiles is kept.

JAX optimises little: its functions run a few times here, and compiling them takes most of the time. What it
has compiled serves other processes and later runs, as Warp's kernels do.
"""

import os
from functools import cache
from pathlib import Path

import pytest

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")


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


def pytest_runtest_setup(item):
    """Skip tests that draw, by name and with the reason, where there is no OpenGL: no package of pip brings it."""
    if item.get_closest_marker("graphics") and no_graphics():
        pytest.skip(no_graphics())
