"""Buffers and recorded launches: the only place where arrays meet kernels.

Buffers belong to one model, one kernel family and one batch size. They are made once and lent again and again
(workspace), so that a call costs a few copies and a recorded launch. A batch on the CPU is split over a thread pool,
since a launch runs on one core and releases the interpreter. A batch of models is split into runs of instances that
share a model; each run launches with the tables and arrays of its own model.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# Structs of Warp are objects to pyright, not classes.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, final

import numpy as np
import warp as wp

from lissom.forces.terms import tables_with_terms
from lissom.launch.compiling import kernel_for, load
from lissom.launch.cores import cores, making, on_all
from lissom.launch.prepare import Views, Wanted, fills_tables, prepare
from lissom.launch.warp_private import arrays_of, bytes_of, direct, one_row_for_all, struct_of
from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.model.tables import TablesStruct, altered, with_anchors
from lissom.passes.blocks import band_columns, block_columns
from lissom.passes.columns import ColumnsStruct, column_tables
from lissom.passes.scratch import (
    BY_BODY,
    BY_PAIR,
    ChannelState,
    DeformingState,
    MapState,
    Near,
    NodeState,
    PullState,
    ScratchStruct,
)
from lissom.systems.bordered import LoopRowsStruct, loop_rows, scale_array


def scratch_memory(model: Model, batch: int, more_nodes: int = 0) -> ScratchStruct:
    """Scratch memory of a batch, with room for further nodes."""
    s = ScratchStruct()
    s.node = wp.zeros((batch, model.n_nodes + more_nodes), dtype=NodeState, device=model.device)
    s.origin = wp.zeros((batch, len(model.bases.position)), dtype=vec3, device=model.device)
    s.status = wp.zeros(batch, dtype=wp.int32, device=model.device)
    s.near = _near(model, batch)
    for name, state, make, count in (
        ("maps", MapState, _map_state, len(model.maps)),
        ("deforming", DeformingState, _deforming_state, len(model.deforming)),
        ("pulls", PullState, _pull_state, len(model.pulls)),
        ("channel", ChannelState, _channel_state, len(model.channels.names)),
    ):
        setattr(s, name, make(model, batch) if count else state_of_none(state, model.device))
    return s


@cache
def state_of_none(state: Any, device: str) -> Any:
    """A struct of arrays without entries, which robots share that have nothing of a kind: making an array takes as long
    as a small kernel."""
    none = state()
    for name, variable in state.vars.items():
        array = variable.type
        setattr(none, name, wp.zeros((0,) * array.ndim, dtype=array.dtype, device=device))
    return none


def _channel_state(model: Model, batch: int) -> ChannelState:
    row, state = model.nv if len(model.spools.channel) else 0, ChannelState()
    for name, size in {"size": len(model.channels.names), "row": row, "moved_row": row}.items():
        setattr(state, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    return state


def _near(model: Model, batch: int) -> Near:
    world, near = model.contacts, Near()
    if not (model.has_surroundings or len(model.springs) or len(model.segments.channel)):
        return state_of_none(Near, model.device)
    count = batch if model.has_surroundings else 0
    clusters = len(world.cluster_start) - 1
    sizes = {"pair": world.capacity, "seen": len(world.ball_node), "N": model.n_dynamic}
    sizes |= {"centre": clusters, "reach": clusters}
    shapes = {name: (count, size) for name, size in sizes.items()}
    ties = len(model.springs) + len(model.segments.channel)
    tied = batch if count or ties else 0
    shapes |= dict.fromkeys(("a", "b", "K", "D", "bar", "is_damped"), (tied, world.capacity + ties))
    for name, shape in shapes.items():
        setattr(near, name, wp.zeros(shape, dtype=Near.vars[name].type.dtype, device=model.device))
    near.count = wp.full(count, -1, dtype=wp.int32, device=model.device)
    near.coupled = wp.zeros(tied, dtype=wp.int32, device=model.device)
    return near


def _map_state(model: Model, batch: int) -> MapState:
    maps, state = model.maps, MapState()
    sizes = {"R": len(maps), "p": len(maps), "S": maps.column_start[-1]}
    sizes |= {"S_q": maps.pair_start[-1], "S_qq": maps.triple_start[-1]}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, int(size)), dtype=MapState.vars[name].type.dtype, device=model.device))
    return state


def _deforming_state(model: Model, batch: int) -> DeformingState:
    """Room for the integrals; what kernels make of constants has none by pair."""
    bodies, state = model.deforming, DeformingState()
    called = bodies.calls_python
    for name, variable in DeformingState.vars.items():
        size = len(bodies) if name in BY_BODY else bodies.column_start[-1]
        if name in BY_PAIR:
            size = bodies.pair_start[-1] * called
        setattr(state, name, wp.zeros((batch, int(size)), dtype=variable.type.dtype, device=model.device))
    return state


def _pull_state(model: Model, batch: int) -> PullState:
    pulls, state = model.pulls, PullState()
    columns = int(pulls.column_start[-1])
    sizes = {"work": len(pulls), "wrench": len(pulls), "B": columns, "wrench_q": columns}
    sizes |= {"B_q": int(pulls.pair_start[-1])}
    sizes |= {"response": int(model.deforming.column_start[-1]) if pulls.presses.any() else 0}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, size), dtype=PullState.vars[name].type.dtype, device=model.device))
    return state


# a model, its number in a batch, its first instance and the one behind its last
Instances = tuple[Model, int, int, int]


def shares(model: Model, batch: int, parts: int) -> list[list[Instances]]:
    """Instances of a batch split into so many parts; of a batch of models each part is a list of runs that share one,
    and there are no more parts than such runs."""
    if not model.models:
        edges = np.linspace(0, batch, parts + 1).astype(int).tolist()
        return [[(model, 0, *ends)] for ends in pairwise(edges)]
    rows = model.of_rows(batch)
    starts = [k for k, one in enumerate(rows) if k == 0 or one is not rows[k - 1]]
    runs: list[Instances] = []
    pieces = -(-parts // len(starts))  # of each, where models are few
    for first, stop in pairwise([*starts, batch]):
        edges = np.linspace(first, stop, min(pieces, stop - first) + 1).astype(int).tolist()
        runs += [(rows[first], first * len(model.models) // batch, *ends) for ends in pairwise(edges)]
    edges = np.linspace(0, len(runs), min(parts, len(runs)) + 1).astype(int).tolist()
    return [runs[first:stop] for first, stop in pairwise(edges)]


def for_model(value: Any, model: Model, k: int, own: dict[int, list[Any]]) -> Any:
    """An argument of a kernel as a model, number k of a batch, needs it: its tables, and its own arrays in place of
    others."""
    if isinstance(value, wp.array):
        return own[id(value)][k] if id(value) in own else value
    struct = struct_of(value)
    if struct is TablesStruct:
        tables = tables_with_terms(model)
        anchor = value.contacts.anchor
        return with_anchors(tables, own[id(anchor)][k]) if id(anchor) in own else tables
    if struct is ColumnsStruct:
        return {0: block_columns, -1: band_columns}.get(value.n_slots, column_tables)(model)
    parts = {} if struct is None else {name: getattr(value, name) for name in struct.vars}
    changed = {name: for_model(part, model, k, own) for name, part in parts.items()}
    changed = {name: part for name, part in changed.items() if part is not parts[name]}
    return altered(value, **changed) if changed else value


def in_turn(calls: list[Callable[[], None]]) -> Callable[[], None]:
    """Calls as one."""

    def run() -> None:
        for call in calls:
            call()

    return run


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
        array = self.buffer("anchor", (self.batch, 2 * len(self.model.of_row(0, 1).contacts.pair)), vec3)
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


def with_loops(w: Buffers, model: Model, batch: int, *, whole: bool = True) -> LoopRowsStruct:
    """Buffers of loop_rows, without a matrix for robots without loops, that the host sees."""
    return shown(w, loop_rows(model, batch, whole=whole))


def shown(w: Buffers, loops: LoopRowsStruct) -> LoopRowsStruct:
    """The same buffers, shown to the host."""
    w.own(loops.scale, [scale_array(model) for model in w.model.models])
    for name in ("force", "gap", "rate", "acceleration", "A", "A_q", "slot", "kept"):
        w.share(name, getattr(loops, name))
    return loops
