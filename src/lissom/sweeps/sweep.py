"""Sweeps: a study computed for many samples of a robot's values, inputs and starts, on all cores or a cluster.

Samples are computed in chunks. The first chunk is computed alone, so that kernels are compiled once, into the cache
that all processes of a machine share. A finished chunk is written immediately. If its worker dies, it is computed
again. After a second death it is computed sample by sample: the sample that kills its worker is recorded as failed, and
the others continue.

A study file describes a sweep in YAML, for the command line. Nothing in a file is executed.

robot: arm.yaml                       beside the study file
parameters:
  arm.material.young: {low: 1e6, high: 3e6, steps: 5, scale: log}
  u.t1: [0, 1, 2]
samples: {kind: grid}                 or {kind: sobol, count: 256, seed: 1}
statics: {results: [q, arm.position]}
simulation: {duration: 1, dt: 0.01, results: [q]}        instead of statics
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, PlausibilityWarning, ShapeError
from lissom.io.robot_file import document, load_robot
from lissom.io.text_files import Source, dump, parse, text_of
from lissom.launch.progress import progress_bar
from lissom.robot import checks
from lissom.robot.paths import described_values
from lissom.robot.robot import Robot
from lissom.sweeps.results import Store, SweepResults, digest, table_digest
from lissom.sweeps.samples import Sampling, Span, sampling
from lissom.sweeps.study import Designs, Study, StudySimulation, StudyStatics, lasting, parameter_units, study_of
from lissom.sweeps.workers import Chunk, Row, Work, WorkerPool, end_if_imported_by_worker, origin, pool_of, was_lost

_LARGEST = 64  # largest number of samples of a chunk
_LEAST = 4
_CHUNKS_EACH = 3  # the remaining samples give this many chunks for each chunk that is computed or waits
_LOOK = 2.0  # time between two checks of the pool [s]
_TRIES = 2  # number of attempts before a chunk is computed sample by sample


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
    progress: bool | Callable[[float], Any] = False,
) -> SweepResults:
    """Compute a study for many samples of a robot's values, inputs and starts.

    An interrupted sweep continues when it is called again with the same `out`. Finished samples are never lost, even if
    a worker or this process is killed, or the disk is full.

    Args:
        task: a StudyStatics, a StudySimulation, or a function of a Trial that returns numbers or arrays by name.
        parameters: a Span, a list of values, or a distribution of scipy.stats, by name. A name is a path of the
            description (`arm.material.young`, see `Robot.described_values`), `u.<input>`, `q0[k]`, `q0.<link>[k]`,
            `v0[k]`, `v0.<link>[k]`, or `extra.<name>` for the function only. Without a robot all names are for the
            function. Values have the units of the description, such as [m] or [Pa].
        out: folder for the results, in Parquet files.
        robot: a Robot, or the path of a robot file.
        samples: "grid" (all combinations; the last parameter varies fastest); "listed" (lists of equal length; sample k
            takes value k of each); "random", "latin_hypercube" or "sobol".
        count: number of samples; leave it out for "grid" and "listed".
        seed: seed of random samples.
        workers: number of processes on this machine. None: one per core. 1: this process only.
        cluster: address of a Dask scheduler, or a client, instead of `workers`.
        chunk: number of samples that are computed and written together; None chooses it.
        units: units of the results of a function by name, such as {"tip": "m"}. They are stored with the results.
        progress: True shows a progress bar. A function is called with the number of finished samples instead.
    Returns:
        SweepResults. Failed samples are listed in `failures` with the reasons; the others continue.
    Raises:
        ModelError: an argument is wrong, or `out` holds another sweep.
        OSError: results cannot be written, or no worker is left. Written results are kept.
    """
    end_if_imported_by_worker(workers, cluster)
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
    """The text of the robot file. If a file cannot hold the robot, a text that identifies it."""
    if robot is None:
        return ""
    try:
        return dump(document(robot))
    except ModelError:
        rows = described_values(robot).items()
        return "".join(f"{path}: {getattr(value, '__qualname__', None) or lasting(value)}\n" for path, value in rows)


def _shown(values: Any) -> Any:
    """Values of a parameter as the header stores them."""
    return list(map(float, values)) if isinstance(values, list | tuple | np.ndarray) else lasting(values)


def _chunks(left: list[int], size: int | None, room: int) -> list[list[int]]:
    """The remaining samples in chunks of neighbours. The first chunk has one sample. Chunks become smaller towards the
    end, so that no worker waits long for the last one."""
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
    """The computation of the chunks of a sweep."""

    pool: WorkerPool
    store: Store
    study: Study
    asked: Sampling
    work: Any
    advance: Callable[[list[Row]], None]
    failed: list[Row] = field(default_factory=list)  # the first failed row

    def all_of(self, chunks: list[list[int]]) -> None:
        """Compute chunks. The first one is computed before the others."""
        suspects = self._compute(chunks[:1], 1)
        for row in self.failed[: len(chunks) - 1]:
            text = f"sweep: the first sample failed ({row.failure}); the others are computed nevertheless"
            warnings.warn(text, PlausibilityWarning, stacklevel=3)
        suspects += self._compute(chunks[1:], self.pool.room)
        for number in self._compute([[k] for numbers in suspects for k in numbers], 1):
            why = "the process that computed it ended each time"
            self._write(Chunk([Row(k, None, why, "", 0.0) for k in number], origin()), number)

    def _compute(self, chunks: list[list[int]], room: int) -> list[list[int]]:
        """Compute chunks, at most `room` of them at the same time. Returns the chunks whose workers died too often."""
        waiting, suspects = deque(chunks), []
        pending: dict[Future[Any], list[int]] = {}
        tries: dict[int, int] = {}
        while waiting or pending:
            while waiting and len(pending) < room:
                numbers = waiting.popleft()
                pending[self._submitted(numbers)] = numbers
            done = self._awaited(pending)
            lost = [pending.pop(future) for future in done if not self._taken(future, pending[future])]
            pending = {future: numbers for future, numbers in pending.items() if future not in done}
            if lost and self.pool.ends_together:
                rest = wait(pending).done
                lost += [pending[future] for future in rest if not self._taken(future, pending[future])]
                pending = {}
            if lost:
                self.pool.renew()
            for numbers in lost:
                tries[numbers[0]] = tries.get(numbers[0], 0) + 1
                (suspects if tries[numbers[0]] >= _TRIES else waiting).append(numbers)
        return suspects

    def _awaited(self, pending: dict[Future[Any], list[int]]) -> set[Future[Any]]:
        """Wait for at least one finished chunk and check the pool regularly. Returns the finished chunks."""
        while not (done := wait(pending, timeout=_LOOK, return_when=FIRST_COMPLETED).done):
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
        """Write the results of a chunk. Returns False if its worker died."""
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
            why = f"{error.strerror or error}; finished samples are kept, and the same call continues the sweep"
            raise OSError(error.errno, why, str(self.store.path)) from error
        self.failed += [row for row in rows if row.results is None][: 1 - len(self.failed)]
        self.advance(rows)


@contextmanager
def _progress_bar(
    show: bool | Callable[[float], Any], count: int, finished: int
) -> Iterator[Callable[[list[Row]], None]]:
    """A function that advances the bar by the finished rows of its argument."""
    failed = 0
    with progress_bar(show, count, "sweeping", "samples") as tell:

        def advance(rows: list[Row]) -> None:
            nonlocal finished, failed
            finished += len(rows)
            failed += sum(row.results is None for row in rows)
            tell(finished, f"{finished} of {count} samples, {failed} failed")

        advance([])
        yield advance


# -- study files ------------------------------------------------------------------------------------------------------

_FILE_KEYS = ("robot", "parameters", "samples", "statics", "simulation")
_STUDIES: dict[str, Any] = {"statics": StudyStatics, "simulation": StudySimulation}
_SAMPLE_KEYS = {"kind": "samples", "count": "count", "seed": "seed"}


def load_study(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a study file and return the arguments of `sweep`, as a dict.

    Raises:
        ModelError: an entry is invalid; the message gives file, line, rule and value.
        OSError: the file cannot be read.
    """
    source = parse(text_of(path), os.fspath(path))
    found: list[tuple[int, str]] = []
    data = source.data(found)
    if found:
        raise source.error(*min(found))
    _require_known(source, data, _FILE_KEYS, [])
    kinds = [kind for kind in _STUDIES if kind in data]
    for known, rule in ((len(kinds) == 1, "statics or simulation, and not both"), ("parameters" in data, "parameters")):
        if not known:
            raise source.error(1, f"a study needs {rule} (got {sorted(data)})")
    out: dict[str, Any] = {"task": _study_of_file(source, data, kinds[0])}
    out["parameters"] = {
        name: _span_of_file(source, data, name) for name in _mapping(source, data["parameters"], ["parameters"])
    }
    if "robot" in data:
        if not isinstance(data["robot"], str):
            raise _wrong(source, ["robot"], "must be the path of a robot file", data["robot"])
        out["robot"] = Path(path).parent / data["robot"]
    given = _mapping(source, data.get("samples", {}), ["samples"])
    _require_known(source, given, tuple(_SAMPLE_KEYS), ["samples"])
    return out | {_SAMPLE_KEYS[key]: value for key, value in given.items()}


def _study_of_file(source: Source, data: dict[str, Any], kind: str) -> Any:
    given, make = dict(_mapping(source, data[kind], [kind])), _STUDIES[kind]
    _require_known(source, given, tuple(item.name for item in fields(make) if item.name != "controller"), [kind])
    if isinstance(given.get("u"), dict):
        from lissom.simulation.inputs import Samples

        _require_known(source, given["u"], ("t", "u", "smooth"), [kind, "u"])
        given["u"] = _made_from(source, [kind, "u"], Samples, given["u"])
    return _made_from(source, [kind], make, given)


def _span_of_file(source: Source, data: dict[str, Any], name: str) -> Any:
    """The values of a parameter in a study file."""
    given = data["parameters"][name]
    if not isinstance(given, dict):
        return given
    _require_known(source, given, tuple(item.name for item in fields(Span)), ["parameters", name])
    return _made_from(source, ["parameters", name], Span, given)


def _made_from(source: Source, keys: list[str], make: Callable[..., Any], given: dict[str, Any]) -> Any:
    try:
        return make(**given)
    except (ModelError, ShapeError, TypeError) as error:
        raise source.error(source.locate(keys)[0], f"{' > '.join(keys)}: {error}") from error


def _mapping(source: Source, value: Any, keys: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(source, keys, "must hold keys and values", value)
    return value


def _require_known(source: Source, data: Any, known: tuple[str, ...], keys: list[str]) -> None:
    for key in _mapping(source, data, keys):
        if key not in known:
            raise _wrong(source, [*keys, key], f"must be one of {', '.join(known)}", key)


def _wrong(source: Source, keys: list[str], rule: str, value: Any) -> ModelError:
    return source.error(source.locate(keys)[0], f"{' > '.join(['study', *keys])}: {rule} (got {value!r})")
