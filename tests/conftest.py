"""Shared by all tests: one thread for linear algebra, whose matrices here are small, and what JAX compiles is kept.

JAX optimises little: its functions run a few times here, and compiling them takes most of the time. What it
has compiled serves other processes and later runs, as Warp's kernels do.
"""

import os
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
