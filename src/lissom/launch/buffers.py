"""Buffers and recorded launches: the only place where arrays meet kernels.

Buffers belong to one model, one kernel family and one batch size; they are made once and lent again and again
(workspace), so that a call costs a few copies and a recorded launch. A batch on the CPU is split over a thread pool,
since a launch runs on one core and releases the interpreter.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import warp as wp

from lissom.forces.acting import tables_with_terms
from lissom.launch.compiling import load
from lissom.launch.composed import kernel_for
from lissom.launch.cores import cores, making, on_all
from lissom.launch.model_launches import for_model, in_turn, shares
from lissom.launch.prepare import Views, Wanted, fills_tables, prepare
from lissom.launch.scratch_memory import scratch_memory
from lissom.launch.warp_private import arrays_of, bytes_of, direct, one_row_for_all
from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.model.tables import TablesStruct, with_anchors

_LEAST_PER_THREAD = 16
LONG = 16  # what an instance of a kernel that iterates takes, in units of a short one
_PIECES = 8  # for each core, of a batch whose instances take long and not all the same
Shapes = dict[str, tuple[int, ...]]  # core shapes of arrays, by their names


@final
@dataclass(frozen=True)
class Passing:
    """An argument of a kernel that holds nothing once an instance is done: `make(rows)` returns a struct of arrays. On
    the CPU the instances of a launch follow each other, and one row for all of them stays in a cache."""

    make: Callable[[int], Any]


@final
class Buffers:
    """Buffers of one kernel family for a batch of instances, and their launch.

    Args:
        model: the robot. batch: number of instances.
        inputs: core shapes of the float64 arrays that are filled before each launch.
        outputs: those of the arrays that the launch leaves.
        wanted: what the launch asks of the tables that Python fills. more_nodes: beyond those of the model.
        weight: what an instance takes, in units of a short kernel.
    """

    def __init__(
        self,
        model: Model,
        batch: int,
        inputs: Shapes,
        outputs: Shapes | None = None,
        *,
        wanted: Wanted | None = None,
        more_nodes: int = 0,
        weight: int = 1,
    ) -> None:
        self.model, self.batch, self.device = model, batch, model.device
        self.room = batch  # instances that fit in
        self.wanted, self.weight = wanted or Wanted(), weight
        self.asks = model.fills_tables_before_launch and fills_tables(model, self.wanted)
        self.tables = tables_with_terms(model)
        self.scratch = scratch_memory(model, batch, more_nodes)
        self._views = Views(model, self.scratch)
        self.on_device: dict[str, Any] = {}
        self._common: set[str] = set()
        self.host: dict[str, np.ndarray] = {}
        self.row: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {}  # of one instance, and its shape
        self.into: dict[tuple[str, ...], tuple[memoryview, ...]] = {}  # where arguments go, by their names
        self.inputs = tuple(inputs)
        for name, shape in (inputs | (outputs or {})).items():
            self.buffer(name, (batch, *shape))
        if self.device == "cpu":
            self.status = self.scratch.status.numpy()
        self.one_status = memoryview(self.status) if batch == 1 and self.device == "cpu" else None
        self.launches: list[Any] = []
        self.alone: Callable[[], None] | None = None  # the only launch, on the CPU
        self.plain: Callable[[], None] | None = None  # the same where Python has nothing to fill in before
        self.places: object = None  # those that stand in the tables of further points
        self.nbytes = 0
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
        """A buffer of gravity, shown to the host; each model of a batch has its own."""
        models = self.model.models or (self.model,)
        array = self.buffer("gravity", (len(models),), vec3, common=True)
        self.host["gravity"][:] = [model.gravity for model in models]
        return self.own(array, [array[k : k + 1] for k in range(len(models))])

    def own(self, array: Any, arrays: list[Any]) -> Any:
        """The same array, in whose place launches for the models of a batch have each its own of some arrays."""
        if self.model.models:
            self._own[id(array)] = arrays
        return array

    def anchored_tables(self) -> TablesStruct:
        """The model's tables, in which each instance has anchors of its own: the buffer "anchor"."""
        array = self.buffer("anchor", (self.batch, 2 * len(self.model.of_row(0, 1).surroundings.pair)), vec3)
        return with_anchors(self.tables, self.own(array, [array] * len(self.model.models)))

    def share(self, name: str, array: Any) -> None:
        """Show a device array to the host under a name."""
        self.on_device[name] = array
        self.host[name] = array.numpy()
        if self.batch == 1 and self.device == "cpu" and len(self.host[name]) == 1:
            self.row[name] = self.host[name][0], self.host[name][0].shape

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

    def hold(self, batch: int) -> Buffers:
        """The same buffers for a smaller batch than they were made for, or for all of it again."""
        if batch == self.batch:
            return self
        if not self._whole:
            self._whole = self.host | {"status": self.status}
        own = {name for name, array in self._whole.items() if len(array) == self.room} - self._common
        rows = {name: array[:batch] if name in own else array for name, array in self._whole.items()}
        self.status, self.host, self.batch = rows.pop("status"), rows, batch
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
        self.plain = None if self.asks else self.alone

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

    def run(self, wanted: Wanted | None = None, *, still: bool = False) -> None:
        """Run the recorded launch, after Python has filled the tables that it asks for.

        Args:
            wanted: what it asks of them; None is what the buffers were made for. still: they stay as they are.
        """
        if self.plain is not None:
            self.plain()
            return
        if self.asks and not still:
            prepare(self._views, self.host, wanted or self.wanted)
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
