"""Worker pools that compute the chunks of a sweep: this process, processes of this machine, or a Dask cluster.

The study, the robot and the names of the parameters are common to all chunks and sent once, as bytes. For a chunk, the
values of its samples are sent, and rows of plain numbers come back. cloudpickle, if it is installed, pickles the user's
functions.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import current_process, get_context
from threading import Lock, Thread
from typing import Any, final

import numpy as np

from lissom import __version__
from lissom.errors import ModelError, PlausibilityWarning
from lissom.robot import checks
from lissom.sweeps.study import Designs, Study, Trial

_WARNINGS = Lock()  # all threads of a process share the list of recorded warnings
_PACKAGES = ("numpy", "scipy", "warp-lang", "scikit-sundae")
_KINDS = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}


@final
@dataclass(frozen=True)
class Row:
    """The outcome of one sample.

    Fields:
        number: number of the sample.
        results: its results by name; None for a failed sample.
        failure: the reason of a failure; otherwise empty.
        remarks: warnings.
        seconds: computing time [s].
    """

    number: int
    results: dict[str, Any] | None
    failure: str
    remarks: str
    seconds: float


@final
@dataclass(frozen=True)
class Chunk:
    """The outcomes of the samples of a chunk, and the origin of the process that computed them: machine, platform and
    library versions."""

    rows: list[Row]
    origin: dict[str, str]


def origin() -> dict[str, str]:
    """Versions of the libraries of this process, the name of the machine, and its platform."""
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
    """The data that all chunks of a sweep share."""

    study: Study
    designs: Designs
    names: tuple[str, ...]

    def packed(self) -> bytes:
        """The data as bytes for other processes."""
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
    """Compute samples in a worker process; arguments as for `run_chunk`."""
    with _WARNINGS:
        os.environ.setdefault("LISSOM_CORES", "1")
        return run_chunk(_unpacked(work), numbers, table)


def run_chunk(work: Work, numbers: list[int], table: np.ndarray) -> Chunk:
    """Compute samples.

    Args:
        numbers: numbers of the samples.
        table: values of their parameters (n, n_parameters).
    """
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
    """Results as NumPy arrays and texts, which any process can unpickle."""
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
    """Prepare a worker process: it ignores Ctrl-C, ends with its parent, and imports the modules of most studies (which
    takes a second)."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=[parent], daemon=True).start()
    import_module("lissom.simulation.simulate")


def be_there() -> None:
    """Do nothing. One such call for each process of a pool makes all processes start immediately."""


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


_ALONE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MOST = 1024  # largest number of processes of one machine
_AHEAD = 2  # number of submitted chunks that wait, so that no worker is idle
_PATIENCE = "10s"  # longest time to connect to the scheduler of a cluster
_SILENCE = 10.0  # time without workers after which a warning is issued [s]
_GONE = 600.0  # time without workers after which the sweep ends [s]
_NONE_BEGAN = (
    'workers: the processes end at their start; in a script, call sweep under `if __name__ == "__main__":`, '
    "since each process runs the script again (workers=1 needs no processes)"
)


class WorkerPool(ABC):
    """Computes chunks, in any order.

    Law: the future of a chunk holds the result of `run_chunk`. If its process died, it raises an error for which
    `was_lost` is true.
    """

    ends_together = False  # whether all chunks are lost if one is lost

    @property
    @abstractmethod
    def room(self) -> int:
        """Number of chunks that may be submitted at the same time."""

    @abstractmethod
    def prepared(self, work: Work) -> Any:
        """The common data of all chunks, as first argument of `submit`."""

    @abstractmethod
    def submit(self, *arguments: Any) -> Future[Any]:
        """Submit a chunk: the prepared data, and the arguments `numbers` and `table` of `run_chunk`."""

    @abstractmethod
    def renew(self) -> None:
        """Replace dead processes."""

    @abstractmethod
    def check(self) -> None:
        """Check whether there are workers. It is called every few seconds while no chunk finishes.

        Raises:
            OSError: there were no workers for a long time.
        """

    @abstractmethod
    def close(self) -> None:
        """End the processes and drop their unfinished chunks."""


def was_lost(error: BaseException) -> bool:
    """Whether a chunk failed because its process died, and not because its computation raised an error."""
    return isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ == "KilledWorker"


def end_if_imported_by_worker(workers: int | None, cluster: Any) -> None:
    """End this process if it is a worker that imports the user's script, and the script calls `sweep` again. The parent
    process raises the error."""
    if workers != 1 and cluster is None and getattr(current_process(), "_inheriting", False):
        os._exit(1)


@contextmanager
def pool_of(workers: int | None, cluster: Any) -> Iterator[WorkerPool]:
    """The worker pool for the arguments of `sweep`."""
    checks.require(workers is None or cluster is None, "workers", "give a number or a cluster, not both", workers)
    count = cores() if workers is None else checks.integer(workers, "workers", least=1, most=_MOST)
    with _single_threaded():
        pool: WorkerPool = Cluster(cluster) if cluster is not None else Alone() if count == 1 else Processes(count)
        try:
            yield pool
        finally:
            pool.close()


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes that start inside this block use one thread for linear algebra, unless the user has set the number of
    threads."""
    new = [name for name in _ALONE if name not in os.environ]
    os.environ.update(dict.fromkeys(new, "1"))
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


@final
class Alone(WorkerPool):
    """This process. It computes a chunk in `submit`."""

    @property
    def room(self) -> int:
        return 1

    def prepared(self, work: Work) -> Any:
        return work

    def submit(self, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(run_chunk(*arguments))
        return future

    def renew(self) -> None:
        pass

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass


@final
class Processes(WorkerPool):
    """Processes of this machine with one core each, started by spawn."""

    ends_together = True

    def __init__(self, count: int) -> None:
        self.count = count
        self.pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(self.count, get_context("spawn"), begin_worker)
        # a pool starts a process only if none is idle when a call is submitted
        self.there = [pool.submit(be_there) for _ in range(self.count)]
        return pool

    @property
    def room(self) -> int:
        return self.count + _AHEAD

    def prepared(self, work: Work) -> Any:
        return work.packed()

    def submit(self, *arguments: Any) -> Future[Any]:
        return self.pool.submit(run_packed, *arguments)

    def renew(self) -> None:
        if not any(one.done() and not one.cancelled() and one.exception() is None for one in self.there):
            self.close()
            raise ModelError(_NONE_BEGAN)
        self.close()
        self.pool = self._made()

    def check(self) -> None:
        pass

    def close(self) -> None:
        for process in list((getattr(self.pool, "_processes", None) or {}).values()):
            process.terminate()
        self.pool.shutdown(wait=True, cancel_futures=True)


@final
class Cluster(WorkerPool):
    """The workers of a Dask cluster, from the address of its scheduler or a client. The scheduler gives the chunk of a
    dead worker to another worker."""

    def __init__(self, cluster: Any) -> None:
        try:
            from distributed import Client
        except ImportError:
            rule = "a cluster needs Dask: pip install 'lissom[cluster]'"
            raise ModelError(f"cluster: {rule} (got {cluster!r})") from None
        self.is_ours = not isinstance(cluster, Client)
        try:
            self.client: Any = Client(cluster, timeout=_PATIENCE) if self.is_ours else cluster
        except (OSError, ValueError, TypeError) as error:
            raise ModelError(f"cluster: the scheduler does not respond ({error}) (got {cluster!r})") from error
        self.executor: Executor = self.client.get_executor(pure=False)
        self.seen, self.is_told, self.had_workers = time.monotonic(), False, False

    def prepared(self, work: Work) -> Any:
        return work.packed()

    @property
    def room(self) -> int:
        return sum(self.client.nthreads().values()) + _AHEAD

    def submit(self, *arguments: Any) -> Future[Any]:
        future = self.executor.submit(run_packed, *arguments)
        future.add_done_callback(self._note_worker)
        return future

    def _note_worker(self, future: Future[Any]) -> None:
        """Note that there was a worker, if one has computed this chunk: it may be gone before the first `check`."""
        if not future.cancelled() and future.exception() is None:
            self.seen, self.is_told, self.had_workers = time.monotonic(), False, True

    def renew(self) -> None:
        pass

    def check(self) -> None:
        now = time.monotonic()
        try:
            is_there = bool(self.client.nthreads())
        except (OSError, RuntimeError, ValueError):  # the errors of Dask for a lost scheduler
            is_there = False
        if is_there:
            self.seen, self.is_told, self.had_workers = now, False, True
        elif now - self.seen > _SILENCE and not self.is_told:
            self.is_told = True
            rest = f"; the sweep ends in {_GONE:g} s and can be continued" if self.had_workers else ""
            warnings.warn(f"sweep: the cluster has no worker{rest}", PlausibilityWarning, stacklevel=2)
        if self.had_workers and now - self.seen > _GONE:
            rest = "finished samples are kept, and the same call continues the sweep"
            raise OSError(f"sweep: the last worker of the cluster is gone; {rest}")

    def close(self) -> None:
        self.executor.shutdown(wait=False)
        if self.is_ours:
            self.client.close()
