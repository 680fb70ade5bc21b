"""Buffers and recorded launches: the only module that passes arrays to kernels.

Buffers belong to one model, one kernel family and one batch size. They are made once and leased repeatedly
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
from lissom.launch.compiling import begin_native_functions, kernel_for, load, wait_for_native_functions
from lissom.launch.cores import build_lock, cores, run_on_pool
from lissom.launch.prepare import TableOptions, Views, fill_tables, has_tables_to_fill
from lissom.lie.types import vec3
from lissom.lie.warp_private import arrays_of, bytes_of, direct_call, repeat_row, struct_of
from lissom.model.model import Model
from lissom.model.tables import TablesStruct, altered, device_array, with_anchors
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
from lissom.systems.residual import MotionInputsStruct


def scratch_memory(model: Model, batch: int, extra_nodes: int = 0) -> ScratchStruct:
    """Scratch memory of a batch, with `extra_nodes` nodes beyond those of the model."""
    s = ScratchStruct()
    s.node = wp.zeros((batch, model.n_nodes + extra_nodes), dtype=NodeState, device=model.device)
    s.origin = wp.zeros((batch, len(model.bases.position)), dtype=vec3, device=model.device)
    s.status = wp.zeros(batch, dtype=wp.int32, device=model.device)
    s.function = _function_state(model, batch)
    s.near = _contact_state(model, batch)
    for name, state, make, count in (
        ("maps", MapState, _map_state, len(model.maps)),
        ("deforming", DeformingState, _deforming_state, len(model.deforming)),
        ("pulls", PullState, _pull_state, len(model.pulls)),
        ("channel", ChannelState, _channel_state, len(model.channels.names) + len(model.of_row(0, 1).forces.native)),
    ):
        setattr(s, name, make(model, batch) if count else state_of_none(state, model.device))
    return s


def _function_state(model: Model, batch: int) -> Any:
    """The array of derivatives of functions of constraints."""
    numbers = int(model.constraint_functions.at[-1])
    if not numbers:
        return device_array(model, "", np.zeros((0, 0)), wp.float64)
    return wp.zeros((batch, numbers), dtype=wp.float64, device=model.device)


@cache
def state_of_none(state: Any, device: str) -> Any:
    """A struct of arrays without entries. All robots without features of this kind share it, since making an array
    takes as long as a small kernel."""
    none = state()
    for name, variable in state.vars.items():
        array = variable.type
        setattr(none, name, wp.zeros((0,) * array.ndim, dtype=array.dtype, device=device))
    return none


def _channel_state(model: Model, batch: int) -> ChannelState:
    """Buffers of the lengths pulled in by channels, of rows of elastic tendons and of users' actuators, and of inputs
    and derivatives of users' forces."""
    n, is_native, state = model.nv, len(model.inputs.native) > 0, ChannelState()
    row = n if len(model.spools.channel) or is_native else 0
    forces = model.of_row(0, 1).forces
    own = [*(len(force.inputs) for force in forces.driven), *(0 for _ in forces.native)]
    of_forces = max((k + max(72, 6 * k) for k in own), default=0)
    of_actuators = max((row + n * max(n, made.shape[1]) for _, _, made in model.of_row(0, 1).inputs.native), default=0)
    sizes = {"size": len(model.channels.names), "row": max(row, of_actuators, of_forces), "moved_row": row}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    return state


def _contact_state(model: Model, batch: int) -> Near:
    """Buffers of near pairs, contacts and ties; empty if the model has none of these."""
    if not model.couples_nodes:
        return state_of_none(Near, model.device)
    world, near = model.contacts, Near()
    count = batch if model.has_surroundings else 0
    clusters = len(world.cluster_start) - 1
    sizes = dict.fromkeys(("pair", "room", "place", "gap", "push", "made_pair", "made_push"), world.capacity)
    sizes |= {"listed_position": len(world.ball_node), "N": model.n_dynamic}
    sizes |= {"centre": clusters, "radius": clusters}
    shapes = {name: (count, size) for name, size in sizes.items()}
    tied = batch if count or model.n_ties else 0
    shapes |= dict.fromkeys(("a", "b", "K", "D", "bar", "is_damped"), (tied, world.capacity + model.n_ties))
    for name, shape in shapes.items():
        setattr(near, name, wp.zeros(shape, dtype=Near.vars[name].type.dtype, device=model.device))
    near.moved = wp.zeros(count, dtype=wp.float64, device=model.device)
    near.lists = wp.zeros(count, dtype=wp.int32, device=model.device)
    near.is_swept = wp.zeros(count, dtype=wp.int32, device=model.device)
    near.count = wp.full(count, -1, dtype=wp.int32, device=model.device)
    near.made_count = wp.full(count, -1, dtype=wp.int32, device=model.device)
    near.coupled = wp.zeros(tied, dtype=wp.int32, device=model.device)
    return near


def _map_state(model: Model, batch: int) -> MapState:
    """Buffers of poses of mapped nodes, their columns and derivatives of columns."""
    maps, state = model.maps, MapState()
    sizes = {"R": len(maps), "p": len(maps), "sides": len(maps), "S": maps.column_start[-1], "x": maps.column_start[-1]}
    sizes |= {"S_vv": maps.column_start[-1]}
    sizes |= {"S_q": maps.pair_start[-1], "S_qq": maps.triple_start[-1]}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, int(size)), dtype=MapState.vars[name].type.dtype, device=model.device))
    return state


def _deforming_state(model: Model, batch: int) -> DeformingState:
    """Buffers of integrals over deformable bodies; those by pair of coordinates are empty if all bodies are linear."""
    bodies, state = model.deforming, DeformingState()
    is_general = not bool(np.all(bodies.is_linear))
    for name, variable in DeformingState.vars.items():
        size = len(bodies) if name in BY_BODY else bodies.column_start[-1]
        if name in BY_PAIR:
            size = bodies.pair_start[-1] * is_general
        setattr(state, name, wp.zeros((batch, int(size)), dtype=variable.type.dtype, device=model.device))
    return state


def _pull_state(model: Model, batch: int) -> PullState:
    """Buffers of the forces of unit inputs inside deformable bodies, and of their derivatives."""
    pulls, state = model.pulls, PullState()
    columns = int(pulls.column_start[-1])
    sizes = {"work": len(pulls), "wrench": len(pulls), "B": columns, "wrench_q": columns}
    sizes |= {"B_q": int(pulls.pair_start[-1]), "room": int(pulls.room_start[-1])}
    sizes |= {"response": int(model.deforming.column_start[-1]) if pulls.presses.any() else 0}
    for name, size in sizes.items():
        setattr(state, name, wp.zeros((batch, size), dtype=PullState.vars[name].type.dtype, device=model.device))
    return state


# A model, its number in a batch of models, its first instance, and the end of its instances (exclusive).
Instances = tuple[Model, int, int, int]


def split_instances(model: Model, batch: int, parts: int) -> list[list[Instances]]:
    """Split the instances of a batch into at most `parts` parts for threads.

    Each part is a list of runs of instances that share a model. With one model each part is one run.
    """
    if not model.models:
        edges = np.linspace(0, batch, parts + 1).astype(int).tolist()
        return [[(model, 0, *ends)] for ends in pairwise(edges)]
    rows = model.of_rows(batch)
    starts = [k for k, one in enumerate(rows) if k == 0 or one is not rows[k - 1]]
    runs: list[Instances] = []
    pieces = -(-parts // len(starts))  # per model, if there are fewer models than parts
    for first, stop in pairwise([*starts, batch]):
        edges = np.linspace(first, stop, min(pieces, stop - first) + 1).astype(int).tolist()
        runs += [(rows[first], first * len(model.models) // batch, *ends) for ends in pairwise(edges)]
    edges = np.linspace(0, len(runs), min(parts, len(runs)) + 1).astype(int).tolist()
    return [runs[first:stop] for first, stop in pairwise(edges)]


def argument_for_model(value: Any, model: Model, k: int, own: dict[int, list[Any]]) -> Any:
    """An argument of a kernel for model k of a batch: its own tables, and its own arrays in place of common ones.

    Args:
        value: an array, a struct or a number. own: arrays of the models, by the id of the array that they replace.
    """
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
    changed = {name: argument_for_model(part, model, k, own) for name, part in parts.items()}
    changed = {name: part for name, part in changed.items() if part is not parts[name]}
    return altered(value, **changed) if changed else value


def in_sequence(calls: list[Callable[[], None]]) -> Callable[[], None]:
    """One function that makes several calls in order. Its attribute `calls` has them."""
    if len(calls) == 1:
        return calls[0]

    def run() -> None:
        for call in calls:
            call()

    vars(run)["calls"] = calls
    return run


_MIN_INSTANCES_PER_THREAD = 16  # of a kernel of cost 1 and a small robot
_SMALL_ROBOT = 256  # nodes times coordinates; larger robots take longer in proportion
ITERATIVE_COST = 16  # cost of an instance of an iterative kernel, relative to a short kernel
_PIECES_PER_CORE = 8  # parts of a batch per core if instances take long and different times
Shapes = dict[str, tuple[int, ...]]  # shapes of arrays without the axis of instances, by name


def least_instances(model: Model) -> int:
    """Instances of a kernel of cost 1 whose work is worth a thread of its own."""
    return max(_MIN_INSTANCES_PER_THREAD * _SMALL_ROBOT // max(model.n_nodes * model.nv, _SMALL_ROBOT), 1)


@final
@dataclass(frozen=True)
class Temporary:
    """An argument of a kernel whose contents are needed only while one instance is computed.

    `make(rows)` returns a struct of arrays. On the CPU a launch computes its instances one after the other, so all of
    them use one row, which stays in the processor's cache.
    """

    make: Callable[[int], Any]


@final
class Buffers:
    """Buffers of one kernel family for a batch of instances, and their launch.

    Args:
        model: the robot. batch: number of instances.
        inputs: shapes, without the axis of instances, of the float64 arrays that are filled before each launch.
        outputs: those of the arrays that the launch writes.
        table_options: entries that the kernel reads of the tables filled by Python.
        extra_nodes: number of nodes beyond those of the model.
        cost: time of an instance relative to a short kernel.
    """

    def __init__(
        self,
        model: Model,
        batch: int,
        inputs: Shapes,
        outputs: Shapes | None = None,
        *,
        table_options: TableOptions | None = None,
        extra_nodes: int = 0,
        cost: int = 1,
    ) -> None:
        self.model, self.batch, self.device = model, batch, model.device
        self.capacity = batch  # largest number of instances
        self.table_options, self.cost = table_options or TableOptions(), cost
        self.calls_python = model.fills_tables_before_launch and has_tables_to_fill(model, self.table_options)
        self.tables = tables_with_terms(model)
        self.scratch = scratch_memory(model, batch, extra_nodes)
        self._views = Views(model, self.scratch)
        self.on_device: dict[str, Any] = {}
        self._common: set[str] = set()
        self.host: dict[str, np.ndarray] = {}
        self.single_rows: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {}  # row and its shape, if batch is 1
        self.argument_views: dict[tuple[str, ...], tuple[memoryview, ...]] = {}  # of argument buffers, by names
        self.inputs, self.outputs = tuple(inputs), frozenset(outputs or ())
        for name, shape in (inputs | (outputs or {})).items():
            self.buffer(name, (batch, *shape))
        if self.device == "cpu":
            self.status = self.scratch.status.numpy()
        self.single_status = memoryview(self.status) if batch == 1 and self.device == "cpu" else None
        self.launches: list[Any] = []
        self.only_launch: Callable[[], None] | None = None  # on the CPU, if one thread runs all instances
        self.direct_launch: Callable[[], None] | None = None  # the same, if Python fills no tables before
        self.places: object = None  # the frames whose points are in the tables (points.put_places)
        self.nbytes = 0
        self._recorded: list[tuple[Any, list[Any]]] = []
        self._model_arrays: dict[int, list[Any]] = {}
        self._temporaries: dict[tuple[int, int, int], Any] = {}  # by kernel, argument and thread
        self._full_arrays: dict[str, np.ndarray] = {}

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any = wp.float64, *, common: bool = False) -> Any:
        """A device array of zeros, registered under a name.

        Its host array is a view of the same memory on the CPU, a copy elsewhere. Its first axis is that of the
        instances, unless the array is `common` to all.
        """
        array = wp.zeros(shape, dtype=dtype, device=self.device)
        self.register(name, array)
        if common:
            self._common.add(name)
        return array

    def gravity(self) -> Any:
        """A buffer of gravity, (1,) or one entry for each model of a batch, registered as "gravity"."""
        models = self.model.models or (self.model,)
        array = self.buffer("gravity", (len(models),), vec3, common=True)
        self.host["gravity"][:] = [model.gravity for model in models]
        return self.per_model(array, [array[k : k + 1] for k in range(len(models))])

    def per_model(self, array: Any, arrays: list[Any]) -> Any:
        """`array`; launches for model k of a batch of models take arrays[k] in its place."""
        if self.model.models:
            self._model_arrays[id(array)] = arrays
        return array

    def anchored_tables(self) -> TablesStruct:
        """The model's tables with contact anchors for each instance, which are the buffer "anchor"."""
        array = self.buffer("anchor", (self.batch, 2 * len(self.model.of_row(0, 1).contacts.pair)), vec3)
        return with_anchors(self.tables, self.per_model(array, [array] * len(self.model.models)))

    def register(self, name: str, array: Any) -> None:
        """Make a device array accessible on the host under a name."""
        self.on_device[name] = array
        self.host[name] = array.numpy()
        if self.batch == 1 and self.device == "cpu" and len(self.host[name]) == 1:
            self.single_rows[name] = self.host[name][0], self.host[name][0].shape

    def record(self, kernel: Any, inputs: list[Any]) -> None:
        """Record the launch of a kernel, split over threads on the CPU.

        Kernels that are recorded one after the other run one after the other for each part of the instances.

        Args:
            kernel: a kernel, or a function that composes one for a model. Its last argument is the first instance.
            inputs: its arguments before that one.
        """
        if self.batch == 0:
            return
        if self.device != "cpu":
            inputs = [value.make(self.batch) if isinstance(value, Temporary) else value for value in inputs]
        self._recorded.append((kernel, inputs))
        self.nbytes += sum(bytes_of(value) for value in inputs[1:])  # inputs[0] are the tables of the model
        self._record_launches()

    def persistent_arrays(self, inputs: int) -> list[np.ndarray]:
        """Arrays that the first kernel reads again in its next launch, as views on the CPU: those of the scratch memory
        and of the `inputs` − 1 arguments behind it. Addresses of functions are left out, since other processes have
        others."""
        arrays = (array for value in self._recorded[0][1][1 : 1 + inputs] for array in arrays_of(value))
        return [array.numpy() for array in arrays if array.dtype is not wp.uint64]

    def arguments(self) -> tuple[Any, list[Any]]:
        """The first kernel of these buffers, and its arguments on the first thread, without the first instance."""
        kernel, inputs = self._recorded[0]
        return kernel_for(kernel, self.model), self._arguments_of_thread(0, inputs, 0)

    def instance_arrays(self) -> set[str]:
        """Names of the arrays in `host` that have a row for each instance."""
        full = self._full_arrays or self.host
        return {name for name, array in full.items() if len(array) == self.capacity} - self._common - {"status"}

    def resized(self, batch: int) -> Buffers:
        """These buffers, set to a batch of any size up to their capacity."""
        if batch == self.batch:
            return self
        if not self._full_arrays:
            self._full_arrays = self.host | {"status": self.status}
        own = self.instance_arrays() | {"status"}
        rows = {name: array[:batch] if name in own else array for name, array in self._full_arrays.items()}
        self.status, self.host, self.batch = rows.pop("status"), rows, batch
        self._record_launches()
        return self

    def _record_launches(self) -> None:
        self.launches, self.only_launch, parts = [], None, 1
        if self.device == "cpu":
            most = cores()
            most *= _PIECES_PER_CORE if most > 1 and self.cost > 1 else 1
            parts = max(1, min(most, self.batch, self.cost * self.batch // least_instances(self.model)))
        for thread, calls in enumerate(split_instances(self.model, self.batch, parts)):
            own = [(kernel, self._arguments_of_thread(n, inputs, thread))
                   for n, (kernel, inputs) in enumerate(self._recorded)]  # fmt: skip
            made = [self._launch_of_model(kernel, inputs, *call) for call in calls for kernel, inputs in own]
            self.launches.append(in_sequence(made))
        if len(self.launches) == 1 and self.device == "cpu":
            self.only_launch = self.launches[0]
        self.direct_launch = None if self.calls_python else self.only_launch

    def _arguments_of_thread(self, n: int, inputs: list[Any], thread: int) -> list[Any]:
        """Arguments of the launches of kernel n in one thread; a temporary one has an own copy for each thread."""
        return [self._temporary(value, (n, k, thread)) if isinstance(value, Temporary) else value
                for k, value in enumerate(inputs)]  # fmt: skip

    def _temporary(self, value: Temporary, key: tuple[int, int, int]) -> Any:
        if key not in self._temporaries:
            with build_lock():
                self._temporaries[key] = repeat_row(value.make(1), self.capacity)
        return self._temporaries[key]

    def _launch_of_model(self, kernel: Any, inputs: list[Any], model: Model, k: int, first: int, stop: int) -> Any:
        """The recorded launch for the instances `first` to `stop` of model k of a batch."""
        if self.model.models:
            inputs = [argument_for_model(value, model, k, self._model_arrays) for value in inputs]
        begin_native_functions(kernel, model)
        with build_lock():
            span = {"dim": stop - first, "inputs": [*inputs, first], "device": self.device}
            made = kernel_for(kernel, model)
            load([made.module], self.device)
        wait_for_native_functions(kernel, model)
        with build_lock():
            return direct_call(wp.launch(made, **span, record_cmd=True))

    def run(self, options: TableOptions | None = None, *, keep_tables: bool = False) -> None:
        """Run the recorded launch, after Python has filled the tables that it reads.

        Args:
            options: entries of the tables that it reads; None: those for which the buffers were made.
            keep_tables: whether the tables stay as they are.
        """
        if self.direct_launch is not None:
            self.direct_launch()
            return
        if self.calls_python and not keep_tables:
            fill_tables(self._views, self.host, options or self.table_options)
        if self.only_launch is not None:
            self.only_launch()
            return
        if self.device == "cpu":
            run_on_pool(self.launches)
            return
        for name, array in self.on_device.items():
            array.assign(self.host[name])
        for launch in self.launches:
            launch()
        for name, array in self.on_device.items():
            self.host[name] = array.numpy()
        self.status = self.scratch.status.numpy()


def loop_buffers(w: Buffers, model: Model, batch: int, *, dense: bool = True) -> LoopRowsStruct:
    """Buffers of loop rows (`loop_rows`), registered; without rows and matrices unless `dense`."""
    return register_loops(w, loop_rows(model, batch, dense=dense))


def register_loops(w: Buffers, loops: LoopRowsStruct) -> LoopRowsStruct:
    """Register buffers of loop rows, and their scales for each model of a batch."""
    w.per_model(loops.scale, [scale_array(model) for model in w.model.models])
    for name in ("force", "gap", "rate", "acceleration", "A", "A_q", "slot", "rank"):
        w.register(name, getattr(loops, name))
    return loops


def motion_inputs(w: Buffers, *, a: str = "a") -> MotionInputsStruct:
    """Inputs of the equation of motion from the registered buffers of these names; `a` names the accelerations."""
    x = MotionInputsStruct()
    for name in MotionInputsStruct.vars:
        array = w.on_device.get(a if name == "a" else name)
        if array is not None:
            setattr(x, name, array)
    return x
