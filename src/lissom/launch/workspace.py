"""Buffers and recorded launches: the only place where arrays meet kernels.

A workspace belongs to one model, one kernel family, one batch size and one thread; it is made once and found again, so
that a call costs a few copies and a recorded launch. A batch on the CPU is split over a thread pool, since a launch
runs on one core and releases the interpreter.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import Any, final

import numpy as np
import warp as wp

from lissom.errors import ModelError, ShapeError, lost
from lissom.forces.acting import tables_with_terms
from lissom.launch.compiling import load
from lissom.launch.composed import kernel_for
from lissom.launch.cores import cores, making, on_all
from lissom.launch.model_launches import for_model, in_turn, shares
from lissom.launch.one_state import MASKED, REFUSED, Call, prepared, unprepared
from lissom.launch.prepare import Views, Wanted, fills_tables, prepare
from lissom.launch.scratch_memory import scratch_memory
from lissom.launch.warp_private import arrays_of, bytes_of, direct, holding, one_row_for_all
from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.model.tables import TablesStruct, with_anchors
from lissom.passes.scratch import (
    STATUS_CROWDED,
    STATUS_FULL_TURN,
    STATUS_NOT_FINITE,
    STATUS_OVERFLOW,
    STATUS_QUATERNION,
)

_ALL = slice(None)
_LEAST_PER_THREAD = 16
LONG = 16  # what an instance of a kernel that iterates takes, in units of a short one
_FEW = 16  # nodes: what takes no longer than letting other threads of Python run
_PIECES = 8  # for each core, of a batch whose instances take long and not all the same
_PART = 64  # rows of a trajectory at a time: enough for all threads, and buffers stay small
_STATUS_TEXT = {
    STATUS_NOT_FINITE: "must be finite, got NaN or infinity",
    STATUS_QUATERNION: "a quaternion must have unit length to 1e-6",
    STATUS_FULL_TURN: "a rod interval turns by 2π or more; use more Gauss points or smaller strains",
    STATUS_OVERFLOW: "the result is not finite; the arguments are too large",
}


@final
@dataclass(frozen=True)
class Passing:
    """An argument of a kernel that holds nothing once an instance is done: `make(rows)` returns a struct of arrays. On
    the CPU the instances of a launch follow each other, and one row for all of them stays in a cache."""

    make: Callable[[int], Any]


@final
class Workspace:
    """Buffers of one kernel family for a batch of instances.

    Args:
        model: the robot. batch: number of instances.
        arrays: name -> core shape of each float64 input and output; kept as attributes of the same name.
        more_nodes: beyond those of the model.
    """

    def __init__(self, model: Model, batch: int, arrays: dict[str, tuple[int, ...]], more_nodes: int = 0) -> None:
        self.model, self.batch, self.device = model, batch, model.device
        self.tables = tables_with_terms(model)
        self.scratch = scratch_memory(model, batch, more_nodes)
        self._views = Views(model, self.scratch)
        self.on_device: dict[str, Any] = {}
        self._common: set[str] = set()
        self.host: dict[str, np.ndarray] = {}
        self.row: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {}  # of one instance, and its shape
        self.into: dict[tuple[str, ...], tuple[memoryview, ...]] = {}  # where arguments go, by their names
        self.calls: dict[str, Call] = {}  # of one state, by the output that they return
        self.options: tuple[object, ...] = ()  # what its buffers stand for beside the state
        self.factor = np.nan  # of the forces that stand in the buffers and do not vary
        for name, shape in arrays.items():
            self.buffer(name, (batch, *shape))
        if self.device == "cpu":
            self.status = self.scratch.status.numpy()
        self.one_status = memoryview(self.status) if batch == 1 and self.device == "cpu" else None
        self.launches: list[Any] = []
        self.calls_python = model.asks_before_launch
        self.differentiates = self.curved = self.sums = self.rough = False  # what of these tables is asked for
        self.everywhere = self.is_still = False  # or of nodes that carry nothing, or nothing of them by the next launch
        self.weighs = True  # whether inertia and elasticity of deformable bodies count
        self._is_prepared: bool | None = None  # whether Python fills tables before it, once that is known
        self.alone: Callable[[], None] | None = None  # the only launch, on the CPU
        self.plain: Callable[[], None] | None = None  # the same where Python has nothing to fill in before
        self.outputs: tuple[str, ...] = ()
        self.user: object = None  # whose results of an earlier run may still be in the buffers
        self.nbytes = 0
        self.room = batch  # instances that fit in
        self.weight = 1  # what an instance takes, in units of a short kernel
        self._recorded: list[tuple[Any, list[Any]]] = []
        self._own: dict[int, list[Any]] = {}
        self._passing: dict[tuple[int, int], Any] = {}  # by argument and thread
        self._whole: dict[str, np.ndarray] = {}

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any = wp.float64, *, common: bool = False) -> Any:
        """A zeroed device array with a host view of the same memory on the CPU, a host copy elsewhere; its first axis
        is that of the instances, unless it is common to all."""
        array = wp.zeros(shape, dtype=dtype, device=self.device)
        self.share(name, array)
        if common:
            self._common.add(name)
        return array

    def gravity(self) -> Any:
        """A buffer of gravity, shown to the host, which put_gravity fills; each model of a batch has its own."""
        models = self.model.models or (self.model,)
        array = self.buffer("gravity", (len(models),), vec3, common=True)
        return self.own(array, [array[k : k + 1] for k in range(len(models))])

    def put_gravity(self, acts: bool = True, factor: float = 1.0) -> None:
        """Fill in gravity, times a factor, or none."""
        for k, model in enumerate(self.model.models or (self.model,)):
            self.host["gravity"][k] = factor * model.gravity if acts else 0.0

    def own(self, array: Any, arrays: list[Any]) -> Any:
        """The same array, in whose place launches for the models of a batch have each its own of some arrays."""
        if self.model.models:
            self._own[id(array)] = arrays
        return array

    def anchored_tables(self) -> TablesStruct:
        """The model's tables, in which each instance has anchors of its own: the buffer "anchor"."""
        array = self.buffer("anchor", (self.batch, 2 * len(self.model.one(0, 1).surroundings.pair)), vec3)
        return with_anchors(self.tables, self.own(array, [array] * len(self.model.models)))

    def put_anchors(self, anchors: np.ndarray) -> None:
        """Fill those in, (batch, n_pairs, 6) in any shape."""
        self.host["anchor"][:] = anchors.reshape(self.host["anchor"].shape)

    def share(self, name: str, array: Any) -> None:
        """Show a device array to the host under a name."""
        self.on_device[name] = array
        self.host[name] = array.numpy()
        if self.batch == 1 and self.device == "cpu" and len(self.host[name]) == 1:
            self.row[name] = self.host[name][0], self.host[name][0].shape

    def result(self, name: str, lead: tuple[int, ...], *shape: int) -> np.ndarray:
        """A fresh copy of an output, with the leading axes of the arguments and the core `shape`."""
        if not lead:
            known = self.row.get(name)
            if known is not None:
                return (known[0] if known[1] == shape else known[0].reshape(shape)).copy()
        return self.host[name].reshape((*lead, *shape)).copy()

    def prepare(self, names: tuple[str, ...], name: str, *shape: int) -> None:
        """Prepare the call of one state that fills arguments, launches and returns an output of the core `shape`, if
        nothing else has to be done: `call_of` finds it from now on."""
        if self.plain is not None and self.one_status is not None:
            into, (row, known) = [memoryview(self.row[x][0]) for x in names], self.row[name]
            result = row if known == shape else row.reshape(shape)
            launch = holding(self.plain) if self.model.n_nodes <= _FEW else self.plain
            self.calls[name] = prepared(into, launch, self.one_status, result)

    def fill(self, lead: tuple[int, ...], **arrays: np.ndarray) -> None:
        """Copy arrays (..., n) into their buffers, broadcast to the leading axes."""
        for name, value in arrays.items():
            self.host[name][:] = flat(value, lead)
        if not lead and self.row:
            self.into[tuple(arrays)] = tuple(memoryview(self.row[name][0]) for name in arrays)

    def record(self, kernel: Any, inputs: list[Any]) -> None:
        """Record the launch of a kernel whose last argument is the first instance, split over threads on the CPU."""
        if self.batch == 0:
            return
        if self.device != "cpu":
            inputs = [value.make(self.batch) if isinstance(value, Passing) else value for value in inputs]
        self._recorded = [(kernel, inputs)]
        self.nbytes = sum(bytes_of(value) for value in inputs[1:])  # the first are the model's own tables
        self._launch_all(kernel, inputs)

    def kept(self, inputs: int) -> list[np.ndarray]:
        """What its kernel finds again in its scratch and in its next `inputs` - 1 arguments, as views on the CPU."""
        return [array.numpy() for value in self._recorded[0][1][1 : 1 + inputs] for array in arrays_of(value)]

    def hold(self, batch: int) -> Workspace:
        """The same buffers for a smaller batch than they were made for, or for all of it again."""
        if batch == self.batch:
            return self
        if not self._whole:
            self._whole = self.host | {"status": self.status}
        own = {name for name, array in self._whole.items() if len(array) == self.room} - self._common
        rows = {name: array[:batch] if name in own else array for name, array in self._whole.items()}
        self.status, self.host = rows.pop("status"), rows
        self.batch, self.options, self.factor, self.user = batch, (), np.nan, None
        for kernel, inputs in self._recorded:
            self._launch_all(kernel, inputs)
        return self

    def _launch_all(self, kernel: Any, inputs: list[Any]) -> None:
        self.launches, self.alone, parts = [], None, 1
        if self.device == "cpu":
            most = cores()
            most *= _PIECES if most > 1 and self.weight > 1 else 1
            parts = max(1, min(most, self.weight * self.batch // _LEAST_PER_THREAD))
        for thread, calls in enumerate(shares(self.model, self.batch, parts)):
            own = [self._passed(value, k, thread) for k, value in enumerate(inputs)]
            made = [self._recorded_launch(kernel, own, *call) for call in calls]
            self.launches.append(made[0] if len(made) == 1 else in_turn(made))
        if len(self.launches) == 1 and self.device == "cpu":
            self.alone = self.launches[0]
        self.plain = None if self.calls_python else self.alone

    def _passed(self, value: Any, k: int, thread: int) -> Any:
        """Argument k of the launches of one thread."""
        if not isinstance(value, Passing):
            return value
        if (k, thread) not in self._passing:
            with making():
                self._passing[k, thread] = one_row_for_all(value.make(1), self.room)
        return self._passing[k, thread]

    def _recorded_launch(self, kernel: Any, inputs: list[Any], model: Model, k: int, first: int, stop: int) -> Any:
        """The launch for some instances of a model, number k of a batch."""
        if self.model.models:
            inputs = [for_model(value, model, k, self._own) for value in inputs]
        with making():
            span = {"dim": stop - first, "inputs": [*inputs, first], "device": self.device}
            made = kernel_for(kernel, model)
            load([made.module], self.device)
            return direct(wp.launch(made, **span, record_cmd=True))

    def run(self) -> None:
        """Run the recorded launch."""
        if self.plain is not None:
            self.plain()
            return
        if self._is_prepared is None:
            self._is_prepared = self.calls_python and fills_tables(self.model, self.everywhere, self.weighs)
        if self._is_prepared and not self.is_still:
            prepare(self._views, self.host, Wanted(*(getattr(self, name) for name in Wanted._fields)))
        if self.alone is not None:
            self.alone()
            return
        if self.device == "cpu":
            on_all(self.launches)
            return
        for name, array in self.on_device.items():
            array.assign(self.host[name])
        for launch in self.launches:
            launch()
        for name, array in self.on_device.items():
            self.host[name] = array.numpy()
        self.status = self.scratch.status.numpy()

    def raise_for_status(self) -> None:
        """Raise ShapeError if an instance was refused."""
        if self.status.any() if self.one_status is None else self.one_status[0]:
            k = int(np.flatnonzero(self.status)[0])
            if self.status[k] == STATUS_CROWDED:
                raise crowded(self.model)
            raise ShapeError(self.describe(k))

    def describe(self, k: int) -> str:
        """What was wrong with instance k, naming the argument."""
        status = int(self.status[k])
        given = [n for n in ("q", "v", "a", "u") if n in self.host and n not in self.outputs]
        names = [n for n in given if not np.isfinite(self.host[n][k]).all()]
        subject = " and ".join(names if status == STATUS_NOT_FINITE else given if status == STATUS_OVERFLOW else ["q"])
        where = f" (instance {k} of {self.batch})" if self.batch > 1 else ""
        got = f" ({stretched(self.model, self.host['q'][k])})" if status == STATUS_QUATERNION else ""
        return f"{subject}{where}: {_STATUS_TEXT[status]}{got}"


def stretched(model: Model, q: np.ndarray) -> str:
    """How long the quaternion of q (nq,) is that is farthest from unit length, and of which link."""
    starts = (model.nodes.v_start + model.nodes.q_shift)[model.nodes.has_quaternion]
    lengths = np.array([np.linalg.norm(q[at : at + 4]) for at in starts])
    k = int(np.argmax(np.abs(lengths - 1.0)))
    link = model.links.names[int(np.searchsorted(model.links.q_start, starts[k], side="right")) - 1]
    return f"got {lengths[k]:.9g}, of link {link!r}"


def crowded(model: Model) -> ModelError:
    """What is wrong where the list of near pairs overflows."""
    room, pairs = model.surroundings.capacity, len(model.surroundings.pair)
    rule = f"near_pairs must hold the pairs that are near each other at once, and more of its {pairs} are"
    return ModelError(f"robot {model.name!r}: {rule} (got {room})")


def parts(count: int, size: int = _PART) -> Iterator[slice]:
    """Slices of at most `size` rows that cover `count` rows; the last may cover rows again, so that few sizes occur."""
    for first in range(0, count, size):
        start = max(0, min(first, count - size))
        yield slice(start, min(start + size, count))


def workspace(model: Model, family: str, batch: int, make: Callable[[Model, int], Workspace]) -> Workspace:
    """The workspace of this thread for (model, family, batch), made by `make` the first time. On the CPU one serves all
    batches; it grows with them."""

    def made() -> Workspace:
        with making():
            return make(model, batch)

    if batch < 2 or model.device != "cpu":
        return model.cached((family, batch, get_ident()), made)
    key = (family, "batch", get_ident())
    found = model.cache.get(key)
    if found is not None and found.room < batch:
        model.cache.pop(key, None)
    return model.cached(key, made).hold(batch)


def call_of(model: Model, family: str, name: str, options: tuple[object, ...] = ()) -> Call:
    """The prepared call of this thread that returns an output of (model, family) for these options; where there is none
    a function that returns None, as prepared calls do of what they do not take."""
    w = model.cache.get((family, 1, get_ident()))
    return unprepared if w is None or w.options != options else w.calls.get(name, unprepared)


def filled(
    model: Model, family: str, make: Callable[[Model, int], Workspace], names: tuple[str, ...], *values: Any
) -> tuple[Workspace, tuple[int, ...]]:
    """The workspace for these arguments (q, v, a or u, each (..., n)), called by their names, with them in its buffers,
    and their leading axes.

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    w = model.cache.get((family, 1, get_ident()))
    if w is not None:
        try:  # a buffer takes float64 of just its shape and nothing else, so that nothing is left to check
            for buffer, value in zip(w.into[names], values):
                buffer[_ALL] = value if value.__class__ is not MASKED else None  # which the buffer refuses
            return w, ()
        except (KeyError, *REFUSED):
            pass
    sizes = {"q": model.nq, "u": model.nu}
    rows = {name: stack(name, value, sizes.get(name, model.nv)) for name, value in zip(names, values)}
    lead = leading(**rows)
    w = workspace(model, family, batch_of(lead), make)
    w.fill(lead, **rows)
    return w, lead


def require_finite(*results: np.ndarray) -> None:
    """Raise ShapeError where a result is not finite, as kernels do of theirs."""
    if not all(np.isfinite(x).all() for x in results):
        raise ShapeError(f"q, v, a and u: {_STATUS_TEXT[STATUS_OVERFLOW]}")


def require_finite_rows(**rows: np.ndarray) -> None:
    """Raise ShapeError where an argument (..., n) is not finite, naming the instance of a batch."""
    for name, value in rows.items():
        bad = np.flatnonzero(~np.isfinite(value).all(axis=-1))
        if len(bad):
            where = f" (instance {bad[0]} of {batch_of(value.shape[:-1])})" if value.ndim > 1 else ""
            raise ShapeError(f"{name}{where}: {_STATUS_TEXT[STATUS_NOT_FINITE]}")


def batch_of(lead: tuple[int, ...]) -> int:
    """Number of instances in leading axes."""
    return int(np.prod(lead, dtype=int))


def flat(rows: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """Rows (..., n) broadcast to leading axes, as one axis: shape (batch_of(lead), n)."""
    if rows.shape[:-1] != lead:  # where it is nothing to do, broadcasting takes as long as a launch
        rows = np.broadcast_to(rows, lead + rows.shape[-1:])
    return rows.reshape(-1 if rows.size else batch_of(lead), rows.shape[-1])


def stack(name: str, value: Any, size: int) -> np.ndarray:
    """`value` as float64 of shape (..., size)."""
    if missing := lost(value):
        raise ShapeError(f"{name}: {missing}")
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{name}: expected numbers of shape (..., {size}), got {value!r}") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{name}: expected shape (..., {size}), got {array.shape}")
    return array


def leading(**arrays: np.ndarray) -> tuple[int, ...]:
    """The common leading axes of arrays (..., n), broadcast."""
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"leading axes do not broadcast: {shapes}") from None
