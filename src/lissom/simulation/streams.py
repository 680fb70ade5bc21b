"""Motions that are written to a folder during the simulation, and resumed from there.

Each quantity is one .npy file that grows. `run.json` holds the number of rows on the disk; it is replaced as a whole
after the rows are written. A killed motion loses only the rows after its last write.

A checkpoint is written with the rows. The method resumes from it bit for bit. The checkpoint holds the plain fields of
the objects that take the steps, and the buffers of their kernels, which keep Newton's matrix from step to step. It is
taken between two iterations of the method's loop, after the last point of an iteration.
"""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom import __version__
from lissom.dynamics.actuation import warn_of_pushing
from lissom.dynamics.contacts import largest_depth, present_anchors
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.model.model import Model
from lissom.model.plausibility import warn_of_shapes, warn_of_wheels
from lissom.portable import NEW, packed, write_whole
from lissom.robot import checks
from lissom.simulation.external_integrators import quiet_sundials
from lissom.simulation.trajectory import STREAMED, Trajectory, motion_arrays
from lissom.stepping.state import Checkpoint, StateDerivative
from lissom.stepping.statistics import Statistics

_MOST_BYTES = 2**24  # largest size of the rows that wait to be written [B]
_ARGUMENTS = "arguments.pickle"
_GIVEN = {"model", "duration", "q0", "v0", "u", "method", "dt", "rtol", "atol", "t_eval", "controller", "period",
          "project_velocity", "jacobian", "baumgarte_time", "flush"}  # fmt: skip
_CHANGING = ("u", "controller")  # arguments that may have a state of their own


@final
class Stream:
    """The folder of one motion.

    Args:
        arguments: arguments of `simulate`.
        flush: time between two writes [s].
    """

    def __init__(self, path: Path, arguments: dict[str, Any], flush: float) -> None:
        self.path, self.arguments, self.flush = path, arguments, flush
        self.rows = self.left_out = self.steps = 0
        self.spent = self.deepest = 0.0
        self.checkpoint: Checkpoint | None = None
        self.state: dict[str, Any] = {}
        self.waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.bytes = 0

    def check(self) -> None:
        """Raise ModelError if the folder of a new motion holds one, or any other file."""
        checks.number(self.flush, "flush", least=0.0)
        if self.state or not self.path.exists():
            return
        got = f"(got {str(self.path)!r})"
        if not self.path.is_dir():
            raise ModelError(f"out: must be a new folder {got}")
        found = sorted(os.listdir(self.path))
        if STREAMED in found and _ARGUMENTS in found:
            raise ModelError(f"out: the folder holds a motion; continue it by resume {got}")
        if found:
            raise ModelError(f"out: must be a new or an empty folder, but it holds {found[0]!r} {got}")

    def _begin(self) -> None:
        """Create the folder.

        Raises:
            ModelError: an argument cannot be pickled.
        """
        data = packed(self.arguments | {"flush": self.flush}, "simulate")
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / _ARGUMENTS, lambda file: file.write(data))
        self._write_state({"rows": 0, "is_finished": False, "memory": None, "statistics": None})

    @classmethod
    def open(cls, path: Any) -> Stream:
        """The stream of a folder, to continue its motion. For a finished motion nothing is unpickled.

        Raises:
            ModelError: the folder holds no motion, or a file is damaged.
        """
        folder = Path(path)
        state = _state(folder)
        if state["is_finished"]:
            stream = cls(folder, {}, 0.0)
            stream.state = state
            return stream
        arguments = _unpickled(folder / _ARGUMENTS, _GIVEN)
        stream = cls(folder, arguments, arguments.pop("flush"))
        stream.state = state
        for left in [*folder.glob(f"*{NEW}*"), *folder.glob("memory-*.pickle")]:
            if left.name != state["memory"]:
                left.unlink(missing_ok=True)  # the unfinished file of a killed process
        if state["memory"] is not None:
            kept = _unpickled(folder / state["memory"], {"rows", "left_out", "steps", "spent", "deepest", "memory",
                                                          "changing"})  # fmt: skip
            stream.rows, stream.left_out, stream.steps = kept["rows"], kept["left_out"], kept["steps"]
            stream.spent, stream.checkpoint, stream.deepest = kept["spent"], kept["memory"], kept["deepest"]
            stream.arguments |= kept["changing"]
        if stream.rows:
            try:
                Trajectory.load(folder)  # checks the files, since writing on would fill missing rows with zeros
            except ShapeError as error:
                raise ModelError(f"resume: {error}; begin the motion again") from error
        return stream

    @property
    def is_finished(self) -> bool:
        """Whether the motion has reached its end."""
        return self.state["is_finished"]

    def collect(
        self, model: Model, f: StateDerivative, run: Callable[[], Iterator[Any]], method: str, why: str, advance: Any,
        left_out: int,
    ) -> Trajectory:  # fmt: skip
        """Run the method to its end or its failure, like `_collect` of simulate, and read the motion from the disk."""
        if not self.state:
            self._begin()
        f.streams, f.checkpoint = True, self.checkpoint
        began = last = time.perf_counter()
        spent = self.spent

        def cost() -> Statistics:
            remark = "; ".join(filter(None, (why, f.monitor.remark if f.monitor is not None else "")))
            now = spent + time.perf_counter() - began
            contacts = {"parts": f.parts, "plastic": f.plastic, "deepest": max(f.deepest, self.deepest)}
            return Statistics(method, self.steps, f.evaluations, f.jacobians, now, remark, **contacts)

        try:
            with quiet_sundials():
                for point in run():
                    if point is not None:
                        self._take(point, left_out)
                        advance(float(np.ravel(point[0])[-1]))
                    now = time.perf_counter()
                    if f.take_checkpoint is not None and (now - last >= self.flush or self.bytes > _MOST_BYTES):
                        self._flush(model, cost, f.take_checkpoint())
                        last = now
        except ConvergenceError as error:
            self._flush(model, cost, None)
            raise ConvergenceError(str(error), Trajectory.load(self.path)) from error
        self._flush(model, cost, None, is_finished=True)
        return Trajectory.load(self.path)

    def _take(self, point: Any, left_out: int) -> None:
        """Add points, except the first `left_out` points of the motion, to the rows that wait to be written."""
        t, x, shown = np.atleast_1d(point[0]), np.atleast_2d(point[1]), np.atleast_2d(point[2])
        self.steps = point[3]
        drop = min(left_out - self.left_out, len(t))
        self.left_out += drop
        if drop < len(t):
            self.waiting.append((t[drop:], x[drop:], shown[drop:]))
            self.bytes += x.nbytes + shown.nbytes

    def _flush(
        self, model: Model, counted: Callable[[], Statistics], memory: Checkpoint | None, is_finished: bool = False
    ) -> None:
        """Write the waiting rows to the disk, then the checkpoint."""
        if self.waiting or not self.rows:
            self._append(model)
        old, cost = self.state["memory"], counted()
        state = {"rows": self.rows, "is_finished": is_finished, "statistics": asdict(cost)}
        state["memory"] = old if memory is None else self._write_checkpoint(memory, cost)
        if model.contacts.sticks:
            write_whole(self.path / "anchors.npy", lambda file: np.save(file, present_anchors(model)))
        self._write_state(state)
        if old is not None and old != state["memory"]:
            (self.path / old).unlink(missing_ok=True)

    def _append(self, model: Model) -> None:
        """Append rows to the files."""
        sizes = [1, model.nq + model.nv, model.nu + len(getattr(self.arguments["controller"], "start", ()))]
        parts = zip(*self.waiting) if self.waiting else (np.zeros((0, n)) for n in sizes)
        t, x, shown = (np.concatenate(rows) if isinstance(rows, tuple) else rows for rows in parts)
        arrays = {name: rows[0] for name, rows in motion_arrays(model, np.ravel(t), x[None], shown[None]).items()}
        if len(t):
            warn_of_pushing(model, arrays["u"])
            warn_of_shapes(model, arrays["q"], t)
            warn_of_wheels(model, arrays["multipliers"], t)
        for name, rows in ({"t": np.ravel(t)} | arrays).items():
            _grow(self.path / f"{name}.npy", self.rows, np.ascontiguousarray(rows, dtype=np.float64))
        self.deepest = max(self.deepest, largest_depth(model, arrays["q"]))
        self.rows += len(t)
        self.waiting, self.bytes = [], 0

    def _write_checkpoint(self, memory: Checkpoint, cost: Statistics) -> str:
        """Write the checkpoint to a new file. Returns the name of the file."""
        changing = {name: self.arguments[name] for name in _CHANGING if callable(self.arguments[name])}
        kept = {"rows": self.rows, "left_out": self.left_out, "steps": self.steps, "spent": cost.wall_time,
                "deepest": self.deepest}  # fmt: skip
        name = f"memory-{self.rows:012d}-{cost.steps:012d}.pickle"
        data = packed(kept | {"memory": memory, "changing": changing}, "simulate")
        write_whole(self.path / name, lambda file: file.write(data))
        return name

    def _write_state(self, state: dict[str, Any]) -> None:
        """Replace `run.json`, which holds the state of the folder."""
        self.state = {"lissom": __version__, **state}
        write_whole(self.path / STREAMED, lambda file: file.write(json.dumps(self.state, indent=1).encode()))


def _state(folder: Path) -> dict[str, Any]:
    """The state of the motion in a folder.

    Raises:
        ModelError: the folder has no valid state, or another version of lissom wrote it.
    """
    try:
        state = json.loads((folder / STREAMED).read_text(encoding="utf-8"))
        version, memory = state["lissom"], state["memory"]
        if not isinstance(state["is_finished"], bool) or not isinstance(state["rows"], int):
            raise ValueError(f"{STREAMED} holds no state of a motion")
        if memory is not None and (not isinstance(memory, str) or Path(memory).name != memory):
            raise ValueError(f"memory must be the name of a file in it, got {memory!r}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ModelError(f"resume: the folder must hold a motion ({why}) (got {str(folder)!r})") from None
    if version != __version__:
        rule = f"the motion can be continued only by the version of lissom that began it, {version}"
        raise ModelError(f"resume: {rule} (got {__version__})")
    return state


def _unpickled(path: Path, names: set[str]) -> dict[str, Any]:
    """The entries of a pickled file of a folder. It must hold all of `names`, and may hold more.

    Raises:
        ModelError: the file is damaged or missing.
    """
    try:
        found = pickle.loads(path.read_bytes())
        if not isinstance(found, dict) or not names <= set(found):
            raise ValueError(f"it must hold {sorted(names)}")
    except Exception as error:  # a damaged pickle raises errors of any kind
        why = f"{type(error).__name__}: {error}"
        raise ModelError(f"resume: {path}: is damaged; begin the motion again ({why})") from error
    return found


def _grow(path: Path, at: int, rows: np.ndarray) -> None:
    """Write rows to an .npy file from row `at` on, cut the file off after them, and flush it to the disk."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (at + len(rows), *rows.shape[1:])}
        np.lib.format.write_array_header_1_0(file, head)  # this header leaves room for a larger number of rows
        file.seek(at * rows[:1].size * 8 if len(rows) else 0, os.SEEK_CUR)
        if len(rows):
            file.write(rows.tobytes())
        file.flush()
        os.fsync(file.fileno())
