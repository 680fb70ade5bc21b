"""One BLAS thread for small matrices, which threads make slower: they wait for each other longer than they compute.

On a machine whose cores have other work, the eigenvalues of a matrix of 106 rows take 3 ms with one thread and 300 ms
of processor time with two, because each thread spins until the other one has its turn.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg.lapack

LARGE = 500  # rows of a matrix from which threads save time

_NAMES = [f"{lead}openblas_{{}}_num_threads{end}" for lead in ("scipy_", "") for end in ("64_", "")]


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Functions that read and set the number of threads of the BLAS of NumPy and of SciPy. Empty for libraries other
    than OpenBLAS, and where a module does not give access to the libraries that it is linked with (Windows)."""
    found = []
    for module in (np.linalg._umath_linalg, scipy.linalg.lapack._flapack):  # type: ignore[attr-defined]
        try:
            library = ctypes.CDLL(module.__file__)
        except (AttributeError, OSError):  # a module without a file of its own
            continue
        for name in _NAMES:
            if hasattr(library, name.format("set")) and hasattr(library, name.format("get")):
                found.append((getattr(library, name.format("get")), getattr(library, name.format("set"))))
                break
    return found


_lock, _callers = threading.Lock(), [0]
_before: list[int] = []


@contextmanager
def one_thread(rows: int) -> Iterator[None]:
    """Let BLAS use one thread, if a matrix has fewer than `LARGE` rows. The number of threads belongs to the process:
    the first of several callers stores it, and the last one restores it."""
    if rows >= LARGE:
        yield
        return
    with _lock:
        _callers[0] += 1
        if _callers[0] == 1:
            _before[:] = [get() for get, _ in _libraries()]
            for _, put in _libraries():
                put(1)
    try:
        yield
    finally:
        with _lock:
            _callers[0] -= 1
            if _callers[0] == 0:
                for (_, put), count in zip(_libraries(), _before):
                    put(count)
