"""Workspaces: exclusive leases of buffers from a pool.

A workspace takes buffers from a pool of its model. The pool is keyed by kernel family and batch size. If it has no free
buffers, new ones are made. When Python drops the last reference to the workspace, its buffers return to the pool. A
user's function that runs during a call, a nested simulation and a second thread therefore never share buffers.

For small robots the checks of arguments in Python take longer than the kernel. Calls at a single state are therefore
prepared once for each workspace. A buffer accepts a float64 array of exactly its shape and rejects all other values. If
the buffer or the kernel rejects an argument, the prepared call returns None. The general call then reports the error or
succeeds.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import isfinite, prod
from threading import get_ident
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError, ShapeError, check_kept
from lissom.forces.terms import write_tables_with_terms
from lissom.launch.buffers import Buffers, in_sequence, least_instances
from lissom.launch.cores import build_lock, cores
from lissom.launch.prepare import TableOptions
from lissom.lie.warp_private import launch_under_lock
from lissom.model.model import Model
from lissom.passes.scratch import (
    STATUS_FLAT_DISC,
    STATUS_FULL_TURN,
    STATUS_FUNCTION,
    STATUS_NOT_FINITE,
    STATUS_OVERFLOW,
    STATUS_QUATERNION,
    STATUS_SINGULAR,
    STATUS_TOO_MANY_PAIRS,
    ScratchStruct,
)
from lissom.systems.mass import is_rigid

Call = Callable[..., Any]  # of arguments of one state: its result or results; None if a buffer rejects an argument

_ALL = slice(None)
MASKED = np.ma.MaskedArray  # a buffer would accept it and ignore its mask
REJECTED = (TypeError, ValueError, BufferError)  # errors of a buffer to which an array does not fit


def prepared_call(
    into: list[memoryview], launch: Callable[[], None], status: memoryview, results: list[np.ndarray]
) -> Call:  # fmt: skip
    """A function that fills the argument buffers, launches and returns a copy of the result, or of three; None on an
    error.

    Args:
        into: views of the argument buffers, one to three. launch: the recorded launch. status: its status, (1,).
        results: views of the output, or of three.

    The three cases are spelled out, because a loop over the buffers takes as long as the copies.
    """
    copies = [result.copy for result in results]
    copy, (first, second, third) = copies[0], [*into, *[memoryview(b"")] * (3 - len(into))]
    if len(copies) == 3:
        one, two, three = copies

        def copy() -> tuple[np.ndarray, ...]:
            return one(), two(), three()

    def of_one(x: Any) -> Any:
        try:
            if x.__class__ is MASKED:
                return None
            first[_ALL] = x
        except REJECTED:
            return None
        launch()
        return None if status[0] else copy()

    def of_two(x: Any, y: Any) -> Any:
        try:
            if x.__class__ is MASKED or y.__class__ is MASKED:
                return None
            first[_ALL], second[_ALL] = x, y
        except REJECTED:
            return None
        launch()
        return None if status[0] else copy()

    def of_three(x: Any, y: Any, z: Any) -> Any:
        try:
            if x.__class__ is MASKED or y.__class__ is MASKED or z.__class__ is MASKED:
                return None
            first[_ALL], second[_ALL], third[_ALL] = x, y, z
        except REJECTED:
            return None
        launch()
        return None if status[0] else copy()

    return (of_one, of_two, of_three)[len(into) - 1]


def no_prepared_call(*_: Any) -> None:
    """Placeholder where no call is prepared: it returns None for all arguments."""


_SMALL_ROBOT = 16  # nodes: up to this size a launch takes less time than releasing Python's interpreter lock
# Nodes times coordinates of all instances in one launch of a large batch: their scratch memory fits into the cache
_COLUMNS_PER_CORE = 2**15
_ROWS_PER_LAUNCH = 64  # rows of a trajectory in one launch: enough for all threads, in small buffers
_STATUS_TEXT = {
    STATUS_NOT_FINITE: "must be finite, got NaN or infinity",
    STATUS_QUATERNION: "a quaternion must have unit length to 1e-6",
    STATUS_FULL_TURN: "a rod interval turns by 2π or more; use more Gauss points or smaller strains",
    STATUS_FLAT_DISC: "a disc that rolls lies flat on its plane, where it touches at no single point; tilt it",
    STATUS_OVERFLOW: "the result is not finite; the arguments are too large",
}


@final
class Pool:
    """Buffers of one family: all of them, and the free ones.

    The pool also refers to the leased buffers, so that the garbage collector cannot finalise them before it finalises
    the workspace that returns them.
    """

    __slots__ = ("buffers", "free")

    def __init__(self) -> None:
        self.buffers: list[Buffers] = []
        self.free: list[Buffers] = []

    @property
    def nbytes(self) -> int:
        """Memory of all buffers [bytes]."""
        return sum(buffers.nbytes for buffers in self.buffers)

    def take(self, batch: int) -> Buffers | None:
        """Free buffers with capacity for a batch; None if there are none. Smaller free buffers are discarded."""
        while self.free:
            try:
                buffers = self.free.pop()
            except IndexError:  # another thread took them
                break
            if buffers.capacity >= batch:
                return buffers
            self.buffers.remove(buffers)
        return None


@final
class Workspace:
    """An exclusive lease of buffers. They return to the pool when Python drops this object.

    `run` launches the kernel on them; its arguments are those of `Buffers.run`. A batch that is larger than the buffers
    has arrays of its own in `host`, and `run` launches it block by block. The scratch memory then holds the last block.

    Args:
        batch: number of instances; None is that of the buffers.
    """

    __slots__ = ("_status", "batch", "buffers", "host", "model", "pool", "run")

    def __init__(self, buffers: Buffers, pool: Pool, batch: int | None = None) -> None:
        self.buffers, self.pool, self.run = buffers, pool, buffers.run
        self.model, self.batch, self.host = buffers.model, buffers.batch, buffers.host
        self._status = None
        if batch is not None and batch > buffers.batch:
            self.batch, self._status, self.host = batch, np.zeros(batch, dtype=buffers.status.dtype), dict(buffers.host)
            names = buffers.instance_arrays()
            for name in names:
                row = buffers.host[name][:1]
                is_output = name in buffers.outputs
                self.host[name] = np.empty((batch, *row.shape[1:])) if is_output else np.repeat(row, batch, axis=0)
            self.run = partial(_run_blocks, buffers, names, self.host, self._status)

    def __del__(self) -> None:
        self.pool.free.append(self.buffers)

    @property
    def status(self) -> np.ndarray:
        """Status of each instance (batch,): 0 or one of the STATUS constants of `scratch`."""
        return self.buffers.status if self._status is None else self._status

    @property
    def scratch(self) -> ScratchStruct:
        """Scratch memory of the kernel, such as the states of nodes."""
        return self.buffers.scratch

    def put_gravity(self, acts: bool = True, factor: float = 1.0) -> None:
        """Fill the buffer of gravity with factor times the gravity of the model, or with zero unless it `acts`."""
        for k, model in enumerate(self.model.models or (self.model,)):
            self.host["gravity"][k] = factor * model.gravity if acts else 0.0

    def put_anchors(self, anchors: np.ndarray) -> None:
        """Fill in the contact anchors of each instance, batch · n_pairs · 6 numbers in any shape."""
        self.host["anchor"][:] = anchors.reshape(self.host["anchor"].shape)

    def fill(self, lead: tuple[int, ...], **arrays: np.ndarray) -> None:
        """Copy each array (..., n) to the buffer of its name, broadcast to the leading axes `lead`."""
        for name, value in arrays.items():
            if self._status is None:
                self.host[name][:] = flat(value, lead)
            else:
                self.host[name] = flat(value, lead)  # `run` copies it block by block
        row = self.buffers.single_rows
        if not lead and row:
            self.buffers.argument_views[tuple(arrays)] = tuple(memoryview(row[name][0]) for name in arrays)

    def result(self, name: str, lead: tuple[int, ...], *shape: int) -> np.ndarray:
        """An output of shape (*lead, *shape): a copy, or the array of this workspace for a batch in blocks."""
        if not lead:
            known = self.buffers.single_rows.get(name)
            if known is not None:
                return (known[0] if known[1] == shape else known[0].reshape(shape)).copy()
        rows = self.host[name].reshape((*lead, *shape))
        return rows.copy() if self._status is None else rows

    def persistent_arrays(self, inputs: int) -> list[np.ndarray]:
        """Arrays that a kernel reads again in its next launch, as views on the CPU (`Buffers.persistent_arrays`)."""
        return self.buffers.persistent_arrays(inputs)

    def prepare(
        self,
        family: str,
        names: tuple[str, ...],
        results: tuple[str, ...],
        *shapes: tuple[int, ...],
        options: tuple[object, ...] = (),
        places: object = None,
    ) -> None:
        """Prepare the call at one state for `call_of`; its buffers stay leased to it.

        Nothing is prepared if Python fills tables before the launch or the launch runs on several threads.

        Args:
            family: kernel family of the buffers. names: the arguments, one to three. results, shapes: the output,
                or three of them, whose rows may be longer than those of the shapes.
            options: further parts of the key of the call. places: the frames for which the call holds, if any.
        """
        buffers = self.buffers
        if buffers.direct_launch is None or buffers.single_status is None:
            return
        into = [memoryview(buffers.single_rows[x][0]) for x in names]
        rows = [_shaped(buffers.single_rows[name][0], shape) for name, shape in zip(results, shapes)]
        launch = buffers.direct_launch
        if self.model.n_nodes <= _SMALL_ROBOT:
            launch = in_sequence([launch_under_lock(one) for one in getattr(launch, "calls", [launch])])
        call = prepared_call(into, launch, buffers.single_status, rows)
        key = family, *options, get_ident()
        self.model.cache.pop(key, None)
        self.model.cached(key, lambda: _PreparedCall(call, places, self))

    def raise_for_status(self) -> None:
        """Raise ShapeError, or ModelError if too many pairs are near, for the first instance with a status."""
        status, single = self.status, self.buffers.single_status
        if status.any() if single is None else single[0]:
            k = int(np.flatnonzero(status)[0])
            if status[k] == STATUS_TOO_MANY_PAIRS:
                raise near_pairs_error(self.model)
            raise ShapeError(self.describe(k))

    def describe(self, k: int) -> str:
        """The error text of instance k, with the name of the argument."""
        status = int(self.status[k])
        given = [name for name in ("q", "v", "a", "u") if name in self.buffers.inputs]
        names = [n for n in given if not np.isfinite(self.host[n][k]).all()]
        subject = " and ".join(names if status == STATUS_NOT_FINITE else given if status == STATUS_OVERFLOW else ["q"])
        where = f" (instance {k} of {self.batch})" if self.batch > 1 else ""
        got = f" ({describe_quaternion(self.model, self.host['q'][k])})" if status == STATUS_QUATERNION else ""
        text = _STATUS_TEXT.get(status) or _function_without_value(self.model, status)
        text = text or self.model.joint_couplings.without_value(self.host["q"][k])
        return f"{subject}{where}: {text}{got}"


def _shaped(row: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A view of an array in a shape, whose last axis may be shorter than in the array."""
    if row.shape == shape or row.size == prod(shape):
        return row.reshape(shape)
    return row.reshape(*shape[:-1], -1)[..., : shape[-1]]


def _function_without_value(model: Model, status: int) -> str:
    """A text that names the function of a constraint which has no value, from the status; empty for others."""
    if not STATUS_FUNCTION <= status < STATUS_SINGULAR:
        return ""
    return f"the function of constraint {model.constraint_functions.names[status - STATUS_FUNCTION]!r} is not finite"


def _run_blocks(
    buffers: Buffers,
    names: set[str],
    host: dict[str, np.ndarray],
    status: np.ndarray,
    options: TableOptions | None = None,
    *,
    keep_tables: bool = False,
) -> None:
    """`Buffers.run` for a larger batch: block by block it copies inputs from the arrays `names` of `host`, and results
    and status to `host` and `status`."""
    for part in row_slices(len(status), buffers.batch):
        for name in names - buffers.outputs:
            buffers.host[name][:] = host[name][part]
        buffers.run(options, keep_tables=keep_tables)
        for name in names.difference(buffers.inputs):
            host[name][part] = buffers.host[name]
        status[part] = buffers.status


class _PreparedCall(NamedTuple):
    """A prepared call, the frames for which it holds, and the workspace with its buffers."""

    call: Call
    places: object
    workspace: Workspace


def describe_quaternion(model: Model, q: np.ndarray) -> str:
    """Length and link of the quaternion in q (nq,) that is farthest from unit length, as text."""
    starts = (model.nodes.v_start + model.nodes.q_shift)[model.nodes.has_quaternion]
    lengths = np.array([np.linalg.norm(q[at : at + 4]) for at in starts])
    k = int(np.argmax(np.abs(lengths - 1.0)))
    link = model.links.names[int(np.searchsorted(model.links.q_start, starts[k], side="right")) - 1]
    return f"got {lengths[k]:.9g}, of link {link!r}"


def near_pairs_error(model: Model) -> ModelError:
    """The error for a list of near pairs that overflows."""
    capacity, pairs = model.contacts.capacity, len(model.contacts.pair)
    rule = f"near_pairs must hold the pairs that are near each other at once, and more of its {pairs} are"
    return ModelError(f"robot {model.name!r}: {rule} (got {capacity})")


def row_slices(count: int, size: int = _ROWS_PER_LAUNCH) -> Iterator[slice]:
    """Slices of min(size, count) rows that cover `count` rows. The last slice may overlap the one before."""
    for first in range(0, count, size):
        start = max(0, min(first, count - size))
        yield slice(start, min(start + size, count))


def rows_of_block(model: Model) -> int:
    """Largest number of instances of a block, whose scratch memory fits into the caches of the cores. A batch of so
    many is one block, after which scratch memory holds all of its instances."""
    return max(_COLUMNS_PER_CORE // (model.n_nodes * max(model.nv, 1)), 2 * least_instances(model)) * cores()


def workspace(
    model: Model, family: str, batch: int, make: Callable[[Model, int], Buffers], *, in_blocks: bool = False
) -> Workspace:
    """A workspace for (model, family, batch); `make` makes its buffers if none are free.

    On the CPU all batches of a family share one pool, and larger buffers replace smaller ones.

    Args:
        in_blocks: whether the buffers on the CPU hold at most a block of the batch, since scratch memory takes 10 to
            100 kB for each instance of a soft arm. No launch may then read scratch memory of the launch before.
    """
    has_own_pool = batch < 2 or model.device != "cpu"
    size = batch
    if in_blocks and not has_own_pool and not model.models:
        blocks = -(-batch // rows_of_block(model))
        size = -(-batch // blocks)  # more than half of a block, so that each core gets its least number of instances
    key = (family, batch) if has_own_pool else (family, "batch", cores())
    pool: Pool = model.cached(key, Pool)
    buffers = pool.take(size)
    if buffers is None:
        with build_lock():
            buffers = make(model.home, size)
        pool.buffers.append(buffers)
        model.cache.pop(key, None)
        model.cached(key, lambda: pool)  # insert it again, so that the cache counts its memory and its last use
    return Workspace(buffers if has_own_pool else buffers.resized(size), pool, batch)


# Cached values of a model that stay right when other numbers are written into its tables.
_OF_STRUCTURE = ("tables", "views of tables", "terms", "derived arrays", "columns", "block columns", "band columns",
                 "blocks", "store", "redesign")  # fmt: skip


def write_model(model: Model, changed: Model, *, is_alike: bool = False) -> bool:
    """Overwrite the numbers of `model` with those of `changed`: on the host, in device tables and in pooled buffers.

    The model must own its device arrays, which must be on the CPU. Nothing else may use the model meanwhile.

    Args:
        is_alike: whether the two models are known to have the same kernels.
    Returns:
        False, with nothing written, if the two models differ in structure or in their kernels.
    """
    if not is_alike:
        runs = zip(vars(model.runs).values(), vars(changed.runs).values())
        same = model.runs is changed.runs or all(np.array_equal(a, b) for a, b in runs)
        if not same or is_rigid(model) != is_rigid(changed):
            return False
    if not write_tables_with_terms(model, changed, is_alike=is_alike):
        return False
    rows = model.cache["views of tables"].get(("nodes", ""))  # None: never written, so that copies are right
    for buffers in buffers_of(model):
        if rows is not None and "rows of nodes" in buffers.host:
            buffers.host["rows of nodes"][: model.n_nodes] = rows
        if "gravity" in buffers.host:
            buffers.host["gravity"][:] = model.gravity
    forget_numbers(model)
    return True


def forget_numbers(model: Model) -> None:
    """Remove the cached values of a model that depend on its numbers."""
    for key, value in list(model.cache.items()):
        if key not in _OF_STRUCTURE and not isinstance(value, Pool):
            del model.cache[key]


def buffers_of(model: Model) -> list[Buffers]:
    """All pooled buffers of a model."""
    return [buffers for pool in list(model.cache.values()) if isinstance(pool, Pool) for buffers in pool.buffers]


def unpooled_workspace(model: Model, batch: int, make: Callable[[Model, int], Buffers]) -> Workspace:
    """A workspace whose buffers belong to no shared pool, for owners that keep it for long."""
    pool = Pool()
    with build_lock():
        pool.buffers.append(make(model.home, batch))
    return Workspace(pool.buffers[0], pool)


def call_of(model: Model, family: str, *options: object, places: object = None) -> Call:
    """The prepared call of this thread for the output of (model, family) with these options and frames `places`;
    `no_prepared_call` if there is none."""
    found = model.cache.get((family, *options, get_ident()))
    return no_prepared_call if found is None or found.places is not places else found.call


def filled_workspace(
    model: Model, family: str, make: Callable[[Model, int], Buffers], names: tuple[str, ...], *values: Any
) -> tuple[Workspace, tuple[int, ...]]:
    """A workspace with arguments in its buffers, and the common leading axes of the arguments.

    Args:
        family, make: as in `workspace`. names: names of the arguments. values: the arguments, each (..., n).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    pool = model.cache.get((family, 1))
    buffers = None if pool is None else pool.take(1)
    if buffers is not None:
        w = Workspace(buffers, pool)
        try:  # a buffer accepts only float64 of its own shape, so that no further check is needed
            for buffer, value in zip(buffers.argument_views[names], values):
                buffer[_ALL] = value if value.__class__ is not MASKED else None  # the buffer rejects None
            return w, ()
        except (KeyError, *REJECTED):
            del w, buffers
    sizes = {"q": model.nq, "u": model.nu}
    rows = {name: stack(name, value, sizes.get(name, model.nv)) for name, value in zip(names, values)}
    lead = leading(**rows)
    w = workspace(model, family, batch_of(lead), make, in_blocks=True)
    w.fill(lead, **rows)
    return w, lead


def independent_rows(w: Workspace, k: int = 0) -> np.ndarray:
    """Indices of the rows of A that a kernel found independent at instance k, rising."""
    return np.flatnonzero(w.host["slot"][k] >= 0)


def require_finite(*results: np.ndarray) -> None:
    """Raise ShapeError if a result is not finite."""
    for x in results:  # the square of a finite result may overflow, but is found in a third of the time
        if not (isfinite(np.vdot(x, x)) or np.isfinite(x).all()):
            raise ShapeError(f"q, v, a and u: {_STATUS_TEXT[STATUS_OVERFLOW]}")


def require_finite_rows(**rows: np.ndarray) -> None:
    """Raise ShapeError if an argument (..., n) is not finite, with the instance of a batch."""
    for name, value in rows.items():
        bad = np.flatnonzero(~np.isfinite(value).all(axis=-1))
        if len(bad):
            where = f" (instance {bad[0]} of {batch_of(value.shape[:-1])})" if value.ndim > 1 else ""
            raise ShapeError(f"{name}{where}: {_STATUS_TEXT[STATUS_NOT_FINITE]}")


def batch_of(lead: tuple[int, ...]) -> int:
    """Number of instances of leading axes: their product."""
    return prod(lead)


def flat(rows: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """Rows (..., n) broadcast to leading axes and joined to one axis: shape (batch_of(lead), n)."""
    if rows.shape[:-1] != lead:  # np.broadcast_to takes as long as a launch even if the shapes agree
        rows = np.broadcast_to(rows, lead + rows.shape[-1:])
    return rows.reshape(-1 if rows.size else batch_of(lead), rows.shape[-1])


def stack(name: str, value: Any, size: int) -> np.ndarray:
    """`value` as a float64 array of shape (..., size).

    Raises:
        ShapeError: the name, the expected and the received shape.
    """
    check_kept(name, value)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        got, own = repr(value), getattr(value, name.rstrip("0"), None)
        if isinstance(own, np.ndarray):  # a result, such as an Equilibrium
            row = "" if own.ndim == 1 else f", such as .{name.rstrip('0')}[-1]"
            got = f"the {type(value).__name__} itself; give its {name.rstrip('0')}{row}"
        raise ShapeError(f"{name}: expected numbers of shape (..., {size}), got {got}") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{name}: expected shape (..., {size}), got {array.shape}")
    return array


def leading(**arrays: np.ndarray) -> tuple[int, ...]:
    """The common leading axes of arrays (..., n), by broadcasting; ShapeError if they do not broadcast."""
    shapes = {array.shape[:-1] for array in arrays.values()}
    if len(shapes) == 1:  # np.broadcast_shapes takes longer than a launch
        return shapes.pop()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"leading axes do not broadcast: {shapes}") from None
