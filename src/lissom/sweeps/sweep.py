"""Sweeps: the same study of many samples of a robot's values, inputs and starts, over all cores or a cluster.

Samples are computed in chunks. The first of them is computed alone, so that kernels are compiled once, into the cache
that all processes of a machine share. A chunk is written as soon as it is finished; one whose process is gone is
computed again, and one that a process was lost with twice is computed while no other is, so that the sample that ends
its process is found, and noted, and the others go on.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, PlausibilityWarning
from lissom.io.robot_file import document, load_robot
from lissom.io.yaml_text import dump
from lissom.launch.progress import progress_bar
from lissom.robot import checks
from lissom.robot.paths import described_values
from lissom.robot.robot import Robot
from lissom.sweeps.results import Store, SweepResults, digest, table_digest
from lissom.sweeps.samples import Sampling, sampling
from lissom.sweeps.study import Designs, Study, lasting, parameter_units, study_of
from lissom.sweeps.workers import Chunk, Row, Work, WorkerPool, end_if_reading_anew, origin, pool_of, was_lost

_LARGEST = 64  # samples of a chunk
_LEAST = 4
_CHUNKS_EACH = 3  # of what is left, for each place at which one is computed or waits
_LOOK = 2.0  # [s] between two looks at who computes
_TRIES = 2  # before a chunk is computed while no other is


def sweep(
    task: Any,
    parameters: Mapping[str, Any],
    *,
    out: str | os.PathLike[str],
    robot: Any = None,
    samples: str = "grid",
    count: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: Any = None,
    chunk: int | None = None,
    units: Mapping[str, str] | None = None,
    progress: bool = False,
) -> SweepResults:
    """Results of a study for many samples of the values of a robot, its inputs and its starts.

    A sweep that was interrupted goes on where it stopped when it is asked for again with the same `out`; what is
    finished is never lost, whether a worker or this process is killed, or the disk is full.

    Args:
        task: a StudyStatics, a StudySimulation, or a function of a Trial that returns numbers or arrays by name.
        parameters: by path of the description (`arm.material.young`, see `Robot.described_values`), `u.<input>`,
            `q0[k]`, `q0.<link>[k]`, `v0[k]`, `v0.<link>[k]`, or `extra.<name>` for the function alone: a Span, a list
            of values, or a distribution of scipy.stats. Without a robot all names are for the function.
        out: folder of the results, in Parquet files.
        robot: a Robot, or the path of a robot file.
        samples: "grid" (all combinations, the last parameter fastest), "listed" (lists of one length, side by side),
            "random", "latin_hypercube" or "sobol".
        count: of the samples, but for a grid and a list. seed: of what is random.
        workers: processes of this machine; None: one for each core, 1: this one alone.
        cluster: address of a Dask scheduler, or a client, instead of `workers`.
        chunk: samples that are computed and written together; None chooses.
        units: of the results of a function, by their names, such as {"tip": "m"}; [m] and others are kept with them.
        progress: show a progress bar.
    Returns:
        SweepResults. A sample that fails is among its `failures` with the reason, and stops nothing.
    Raises:
        ModelError: an argument is wrong, or `out` holds another sweep.
        OSError: results cannot be written, or nobody is left to compute them; those that were written stay.
    """
    end_if_reading_anew(workers, cluster)
    if chunk is not None:
        checks.integer(chunk, "chunk", least=1)
    study, asked = study_of(task, units), sampling(parameters, samples, count, seed)
    described = _robot(robot)
    study.check(described)
    store = Store(Path(out), asked.names, parameter_units(described, asked.names))
    text, file = _robot_text(described), None if robot is None or isinstance(robot, Robot) else os.fspath(robot)
    same = {"samples": table_digest(asked), "robot": digest(text.encode()), "study": study.text()}
    more = {"count": len(asked.table), "parameters": {n: _shown(parameters[n]) for n in asked.names}}
    more |= {"kind": asked.kind, "seed": asked.seed, "robot": text, "robot_file": file}
    finished = store.open(same, more)
    left = [k for k in range(len(asked.table)) if k not in finished]
    with pool_of(workers, cluster) as pool, _progress_bar(progress, len(asked.table), len(finished)) as advance:
        work = pool.prepared(Work(study, Designs(described), asked.names))
        _Run(pool, store, study, asked, work, advance).all_of(_chunks(left, chunk, pool.room))
    return SweepResults.load(out)


def _robot(robot: Any) -> Robot | None:
    if robot is None or isinstance(robot, Robot):
        return robot
    if isinstance(robot, str | os.PathLike):
        return load_robot(robot)
    raise checks.fail("robot", "must be a Robot, the description and not its Model, or the path of a robot file", robot)


def _robot_text(robot: Robot | None) -> str:
    """The robot file, or what can be said of a robot that a file cannot hold."""
    if robot is None:
        return ""
    try:
        return dump(document(robot))
    except ModelError:
        rows = described_values(robot).items()
        return "".join(f"{path}: {getattr(value, '__qualname__', None) or lasting(value)}\n" for path, value in rows)


def _shown(values: Any) -> Any:
    """Values of a parameter as the header holds them."""
    return list(map(float, values)) if isinstance(values, list | tuple | np.ndarray) else lasting(values)


def _chunks(left: list[int], size: int | None, room: int) -> list[list[int]]:
    """Samples that are left, in chunks of neighbours, the first alone; smaller ones towards the end, so that no process
    waits long for the last."""
    out: list[list[int]] = []
    most = 1
    for done, k in enumerate(left):
        if len(out) > 1 and len(out[-1]) < most and out[-1][-1] == k - 1:
            out[-1].append(k)
        else:
            out.append([k])
            most = size or max(_LEAST, min(_LARGEST, (len(left) - done) // (_CHUNKS_EACH * room)))
    return out


@final
@dataclass
class _Run:
    """The chunks of a sweep on their way."""

    pool: WorkerPool
    store: Store
    study: Study
    asked: Sampling
    work: Any
    advance: Callable[[list[Row]], None]
    failed: list[Row] = field(default_factory=list)  # the first

    def all_of(self, chunks: list[list[int]]) -> None:
        """Compute chunks, the first while no other is."""
        suspects = self._some(chunks[:1], 1)
        for row in self.failed[: len(chunks) - 1]:
            text = f"sweep: the first sample failed ({row.failure}); the others are computed all the same"
            warnings.warn(text, PlausibilityWarning, stacklevel=3)
        suspects += self._some(chunks[1:], self.pool.room)
        for number in self._some([[k] for numbers in suspects for k in numbers], 1):
            why = "the process that computed it ended each time"
            self._write(Chunk([Row(k, None, why, "", 0.0) for k in number], origin()), number)

    def _some(self, chunks: list[list[int]], room: int) -> list[list[int]]:
        """Compute chunks, so many at once; those that processes were lost with too often."""
        waiting, suspects = deque(chunks), []
        running: dict[Future[Any], list[int]] = {}
        tries: dict[int, int] = {}
        while waiting or running:
            while waiting and len(running) < room:
                numbers = waiting.popleft()
                running[self._submitted(numbers)] = numbers
            done = self._awaited(running)
            lost = [running.pop(future) for future in done if not self._taken(future, running[future])]
            running = {future: numbers for future, numbers in running.items() if future not in done}
            if lost and self.pool.ends_together:
                rest = wait(running).done
                lost += [running[future] for future in rest if not self._taken(future, running[future])]
                running = {}
            if lost:
                self.pool.renew()
            for numbers in lost:
                tries[numbers[0]] = tries.get(numbers[0], 0) + 1
                (suspects if tries[numbers[0]] >= _TRIES else waiting).append(numbers)
        return suspects

    def _awaited(self, running: dict[Future[Any], list[int]]) -> set[Future[Any]]:
        """Chunks that are done, at least one; meanwhile the pool is asked whether anybody computes them."""
        while not (done := wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED).done):
            self.pool.check()
        return done

    def _submitted(self, numbers: list[int]) -> Future[Any]:
        try:
            return self.pool.submit(self.work, numbers, self.asked.table[numbers])
        except Exception as error:
            if not was_lost(error):
                raise
            lost: Future[Any] = Future()
            lost.set_exception(error)
            return lost

    def _taken(self, future: Future[Any], numbers: list[int]) -> bool:
        """Write what came of a chunk; whether anything did."""
        try:
            chunk = future.result()
        except BaseException as error:
            if not was_lost(error):
                raise
            return False
        self._write(chunk, numbers)
        return True

    def _write(self, chunk: Chunk, numbers: list[int]) -> None:
        try:
            rows = self.store.write(chunk, self.asked.table[numbers], self.study.unit)
        except OSError as error:
            why = f"{error.strerror or error}; what is finished is kept, and the same sweep goes on from there"
            raise OSError(error.errno, why, str(self.store.path)) from error
        self.failed += [row for row in rows if row.results is None][: 1 - len(self.failed)]
        self.advance(rows)


@contextmanager
def _progress_bar(show: bool, count: int, finished: int) -> Iterator[Callable[[list[Row]], None]]:
    """A function to call with rows that were finished."""
    failed = 0
    with progress_bar(show, count, "sweeping", "samples") as tell:

        def advance(rows: list[Row]) -> None:
            nonlocal finished, failed
            finished += len(rows)
            failed += sum(row.results is None for row in rows)
            tell(finished, f"{finished} of {count} samples, {failed} failed")

        advance([])
        yield advance
