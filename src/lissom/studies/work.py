"""What a process of a sweep does: it computes chunks of samples.

Sent are the study, the robot and the names of the parameters, the same for all chunks, as bytes, and the values of the
samples; back come rows of plain numbers. Functions of the user's travel by cloudpickle where it is installed.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from threading import Lock, Thread
from typing import Any, final

import numpy as np

from lissom import __version__
from lissom.studies.study import Study
from lissom.studies.trials import Designs, Trial

_TOGETHER = Lock()  # what is recorded of warnings is common to all threads of a process
_PACKAGES = ("numpy", "scipy", "warp-lang", "scikit-sundae")
_KINDS = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}


@final
@dataclass(frozen=True)
class Row:
    """What came of one sample: its results, or why there are none; what was warned of; how long it took [s]."""

    number: int
    results: dict[str, Any] | None
    failure: str
    remarks: str
    seconds: float


@final
@dataclass(frozen=True)
class Chunk:
    """What came of some samples, and where."""

    rows: list[Row]
    origin: dict[str, str]


def origin() -> dict[str, str]:
    """Versions of what computes here, and the name of the machine."""
    out = {"lissom": __version__, "python": platform.python_version(), "machine": platform.node()}
    for name in _PACKAGES:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "?"
    return out | {"platform": platform.platform()}


@final
@dataclass(frozen=True)
class Work:
    """What all chunks of a sweep have in common."""

    study: Study
    designs: Designs
    names: tuple[str, ...]

    def packed(self) -> bytes:
        """The same for other processes."""
        try:
            from cloudpickle import dumps
        except ImportError:
            from pickle import dumps
        return dumps((self.study, self.designs.robot, self.names))


@lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Work:
    study, robot, names = pickle.loads(work)
    return Work(study, Designs(robot), names)


def run_packed(work: bytes, numbers: list[int], table: np.ndarray) -> Chunk:
    """Compute samples in a process beside others that compute other chunks; arguments as of `run_chunk`."""
    with _TOGETHER:
        os.environ.setdefault("LISSOM_CORES", "1")
        return run_chunk(_unpacked(work), numbers, table)


def run_chunk(work: Work, numbers: list[int], table: np.ndarray) -> Chunk:
    """Compute samples, given their numbers and the values of their parameters, (n, n_parameters)."""
    trials = [Trial(k, dict(zip(work.names, row)), work.designs) for k, row in zip(numbers, table.tolist())]
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = work.study.run(trials)
    seconds = (time.perf_counter() - began) / len(trials)
    remarks = "; ".join(dict.fromkeys(f"{item.category.__name__}: {item.message}" for item in caught))
    return Chunk([_row(k, outcome, remarks, seconds) for k, outcome in zip(numbers, outcomes)], origin())


def _row(number: int, outcome: Any, remarks: str, seconds: float) -> Row:
    try:
        if isinstance(outcome, Exception):
            raise outcome
        return Row(number, _plain(outcome), "", remarks, seconds)
    except Exception as error:
        return Row(number, None, f"{type(error).__name__}: {error}", remarks, seconds)


def _plain(results: Any) -> dict[str, Any]:
    """Results as arrays that any process can read."""
    if not (isinstance(results, Mapping) and results and all(isinstance(name, str) for name in results)):
        raise TypeError(f"a trial must return results by name (got {results!r})")
    out = {}
    for name, value in results.items():
        array = np.asarray(value)
        if array.dtype.kind == "U" and array.ndim == 0:
            out[name] = str(value)
        elif array.dtype.kind in _KINDS:
            out[name] = np.array(array, dtype=_KINDS[array.dtype.kind])
        else:
            raise TypeError(f"result {name!r} must be a number, a text or an array of numbers (got {value!r})")
    return out


def begin_worker() -> None:
    """Prepare a process of the pool: the client alone hears Ctrl-C, no worker outlives it, and what most studies call,
    which takes a second to import, is there."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=[parent], daemon=True).start()
    import_module("lissom.integration.simulate")


def be_there() -> None:
    """What a pool is asked for, once for each of its processes, so that all of them begin at once."""


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
