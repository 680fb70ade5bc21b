"""Buffers on loan: the holder of a workspace has its buffers alone until nobody refers to them any more.

A workspace is such a loan. It takes buffers from a pool of its model, by family and batch, or makes others where the
pool is empty; when Python drops the last reference to it, they go back. So a user's function that is called while a
launch is prepared, a run that is interrupted by another, and another thread all get buffers of their own.

Calls of a function at one state are prepared once for a workspace, since robots of a few links take less time than
Python takes to check a few arrays. A buffer accepts a float64 array of exactly its shape and refuses all else. Where
the buffer or the kernel refuses, the prepared call returns None, and the general call reports the error or succeeds.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError, ShapeError, check_kept
from lissom.launch.buffers import Buffers
from lissom.launch.cores import cores, making
from lissom.launch.warp_private import holding
from lissom.model.model import Model
from lissom.passes.scratch import (
    STATUS_CROWDED,
    STATUS_FULL_TURN,
    STATUS_NOT_FINITE,
    STATUS_OVERFLOW,
    STATUS_QUATERNION,
    ScratchStruct,
)

Call = Callable[..., np.ndarray | None]

_ALL = slice(None)
MASKED = np.ma.MaskedArray  # which buffers would take without its mask
REFUSED = (TypeError, ValueError, BufferError)  # what a buffer raises where an array does not fit


def prepared(into: list[memoryview], launch: Callable[[], None], status: memoryview, result: np.ndarray) -> Call:
    """A function of as many arguments as there are buffers, at most three, that returns a fresh copy of a result. They
    are written one by one, since a loop over them takes as long as the copies."""
    copy, (first, second, third) = result.copy, [*into, *[memoryview(b"")] * (3 - len(into))]

    def of_one(x: Any) -> np.ndarray | None:
        try:
            if x.__class__ is MASKED:
                return None
            first[_ALL] = x
        except REFUSED:
            return None
        launch()
        return None if status[0] else copy()

    def of_two(x: Any, y: Any) -> np.ndarray | None:
        try:
            if x.__class__ is MASKED or y.__class__ is MASKED:
                return None
            first[_ALL], second[_ALL] = x, y
        except REFUSED:
            return None
        launch()
        return None if status[0] else copy()

    def of_three(x: Any, y: Any, z: Any) -> np.ndarray | None:
        try:
            if x.__class__ is MASKED or y.__class__ is MASKED or z.__class__ is MASKED:
                return None
            first[_ALL], second[_ALL], third[_ALL] = x, y, z
        except REFUSED:
            return None
        launch()
        return None if status[0] else copy()

    return (of_one, of_two, of_three)[len(into) - 1]


def unprepared(*_: Any) -> None:
    """What stands for a call that is not prepared."""


_FEW = 16  # nodes: what takes no longer than letting other threads of Python run
_PART = 64  # rows of a trajectory at a time: enough for all threads, and buffers stay small
_STATUS_TEXT = {
    STATUS_NOT_FINITE: "must be finite, got NaN or infinity",
    STATUS_QUATERNION: "a quaternion must have unit length to 1e-6",
    STATUS_FULL_TURN: "a rod interval turns by 2π or more; use more Gauss points or smaller strains",
    STATUS_OVERFLOW: "the result is not finite; the arguments are too large",
}


@final
class Pool:
    """Buffers of one kind: all of them, and those that are free. It holds the lent ones too, so that the garbage
    collector never takes them apart while it finds a loan that nobody refers to."""

    __slots__ = ("buffers", "free")

    def __init__(self) -> None:
        self.buffers: list[Buffers] = []
        self.free: list[Buffers] = []

    @property
    def nbytes(self) -> int:
        """Memory of all of them."""
        return sum(buffers.nbytes for buffers in self.buffers)

    def taken(self, batch: int) -> Buffers | None:
        """Free buffers with room for a batch; smaller ones are thrown away. None where there are none."""
        while self.free:
            try:
                buffers = self.free.pop()
            except IndexError:  # another thread was faster
                break
            if buffers.room >= batch:
                return buffers
            self.buffers.remove(buffers)
        return None


@final
class Workspace:
    """Buffers that the holder of this object has alone; the pool gets them back when Python drops it.

    `run` launches the kernel on them; its arguments are those of `Buffers.run`.
    """

    __slots__ = ("batch", "buffers", "host", "model", "pool", "run")

    def __init__(self, buffers: Buffers, pool: Pool) -> None:
        self.buffers, self.pool, self.run = buffers, pool, buffers.run
        self.model, self.batch, self.host = buffers.model, buffers.batch, buffers.host

    def __del__(self) -> None:
        self.pool.free.append(self.buffers)

    @property
    def status(self) -> np.ndarray:
        """What became of each instance, 0 where all is well."""
        return self.buffers.status

    @property
    def scratch(self) -> ScratchStruct:
        """What the launch leaves beside its outputs."""
        return self.buffers.scratch

    def put_gravity(self, acts: bool = True, factor: float = 1.0) -> None:
        """Fill in gravity, times a factor, or none."""
        for k, model in enumerate(self.model.models or (self.model,)):
            self.host["gravity"][k] = factor * model.gravity if acts else 0.0

    def put_anchors(self, anchors: np.ndarray) -> None:
        """Fill in those of each instance, (batch, n_pairs, 6) in any shape."""
        self.host["anchor"][:] = anchors.reshape(self.host["anchor"].shape)

    def fill(self, lead: tuple[int, ...], **arrays: np.ndarray) -> None:
        """Copy arrays (..., n) into their buffers, broadcast to the leading axes."""
        for name, value in arrays.items():
            self.host[name][:] = flat(value, lead)
        row = self.buffers.row
        if not lead and row:
            self.buffers.into[tuple(arrays)] = tuple(memoryview(row[name][0]) for name in arrays)

    def result(self, name: str, lead: tuple[int, ...], *shape: int) -> np.ndarray:
        """A fresh copy of an output, with the leading axes of the arguments and the core `shape`."""
        if not lead:
            known = self.buffers.row.get(name)
            if known is not None:
                return (known[0] if known[1] == shape else known[0].reshape(shape)).copy()
        return self.host[name].reshape((*lead, *shape)).copy()

    def kept(self, inputs: int) -> list[np.ndarray]:
        """What its kernel finds again in its scratch and in its next `inputs` - 1 arguments, as views on the CPU."""
        return self.buffers.kept(inputs)

    def prepare(
        self,
        family: str,
        names: tuple[str, ...],
        name: str,
        *shape: int,
        options: tuple[object, ...] = (),
        places: object = None,
    ) -> None:
        """Prepare the call of one state that fills arguments, launches and returns an output of the core `shape`, if
        nothing else has to be done: `call_of` finds it from now on for the family, options and places, and has these
        buffers for itself."""
        buffers = self.buffers
        if buffers.plain is None or buffers.one_status is None:
            return
        into, (row, known) = [memoryview(buffers.row[x][0]) for x in names], buffers.row[name]
        result = row if known == shape else row.reshape(shape)
        launch = holding(buffers.plain) if self.model.n_nodes <= _FEW else buffers.plain
        call = prepared(into, launch, buffers.one_status, result)
        key = family, *options, get_ident()
        self.model.cache.pop(key, None)
        self.model.cached(key, lambda: _Prepared(call, places, self))

    def raise_for_status(self) -> None:
        """Raise ShapeError if an instance was refused."""
        status, one = self.buffers.status, self.buffers.one_status
        if status.any() if one is None else one[0]:
            k = int(np.flatnonzero(status)[0])
            if status[k] == STATUS_CROWDED:
                raise crowded(self.model)
            raise ShapeError(self.describe(k))

    def describe(self, k: int) -> str:
        """What was wrong with instance k, naming the argument."""
        status = int(self.status[k])
        given = [name for name in ("q", "v", "a", "u") if name in self.buffers.inputs]
        names = [n for n in given if not np.isfinite(self.host[n][k]).all()]
        subject = " and ".join(names if status == STATUS_NOT_FINITE else given if status == STATUS_OVERFLOW else ["q"])
        where = f" (instance {k} of {self.batch})" if self.batch > 1 else ""
        got = f" ({stretched(self.model, self.host['q'][k])})" if status == STATUS_QUATERNION else ""
        return f"{subject}{where}: {_STATUS_TEXT[status]}{got}"


class _Prepared(NamedTuple):
    """A call, the places of which it tells, and the workspace that is its own."""

    call: Call
    places: object
    workspace: Workspace


def stretched(model: Model, q: np.ndarray) -> str:
    """How long the quaternion of q (nq,) is that is farthest from unit length, and of which link."""
    starts = (model.nodes.v_start + model.nodes.q_shift)[model.nodes.has_quaternion]
    lengths = np.array([np.linalg.norm(q[at : at + 4]) for at in starts])
    k = int(np.argmax(np.abs(lengths - 1.0)))
    link = model.links.names[int(np.searchsorted(model.links.q_start, starts[k], side="right")) - 1]
    return f"got {lengths[k]:.9g}, of link {link!r}"


def crowded(model: Model) -> ModelError:
    """What is wrong where the list of near pairs overflows."""
    room, pairs = model.contacts.capacity, len(model.contacts.pair)
    rule = f"near_pairs must hold the pairs that are near each other at once, and more of its {pairs} are"
    return ModelError(f"robot {model.name!r}: {rule} (got {room})")


def parts(count: int, size: int = _PART) -> Iterator[slice]:
    """Slices of at most `size` rows that cover `count` rows; the last may cover rows again, so that few sizes occur."""
    for first in range(0, count, size):
        start = max(0, min(first, count - size))
        yield slice(start, min(start + size, count))


def workspace(model: Model, family: str, batch: int, make: Callable[[Model, int], Buffers]) -> Workspace:
    """Buffers for (model, family, batch) that nobody else has, made by `make` where none are free. On the CPU the same
    serve all batches; they grow with these."""
    alone = batch < 2 or model.device != "cpu"
    key = (family, batch) if alone else (family, "batch", cores())
    pool: Pool = model.cached(key, Pool)
    buffers = pool.taken(batch)
    if buffers is None:
        with making():
            buffers = make(model.home, batch)
        pool.buffers.append(buffers)
        model.cache.pop(key, None)
        model.cached(key, lambda: pool)  # which now counts with its memory, and is what was used last
    return Workspace(buffers if alone else buffers.hold(batch), pool)


def own_workspace(model: Model, batch: int, make: Callable[[Model, int], Buffers]) -> Workspace:
    """Buffers that come from no pool, for those who have them for long."""
    pool = Pool()
    with making():
        pool.buffers.append(make(model.home, batch))
    return Workspace(pool.buffers[0], pool)


def call_of(model: Model, family: str, *options: object, places: object = None) -> Call:
    """The prepared call of this thread that returns the output of (model, family) for these options and places; where
    there is none a function that returns None, as prepared calls do of what they do not take."""
    found = model.cache.get((family, *options, get_ident()))
    return unprepared if found is None or found.places is not places else found.call


def filled(
    model: Model, family: str, make: Callable[[Model, int], Buffers], names: tuple[str, ...], *values: Any
) -> tuple[Workspace, tuple[int, ...]]:
    """The workspace for these arguments (q, v, a or u, each (..., n)), called by their names, with them in its buffers,
    and their leading axes.

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    pool = model.cache.get((family, 1))
    buffers = None if pool is None else pool.taken(1)
    if buffers is not None:
        w = Workspace(buffers, pool)
        try:  # a buffer takes float64 of just its shape and nothing else, so that nothing is left to check
            for buffer, value in zip(buffers.into[names], values):
                buffer[_ALL] = value if value.__class__ is not MASKED else None  # which the buffer refuses
            return w, ()
        except (KeyError, *REFUSED):
            del w, buffers
    sizes = {"q": model.nq, "u": model.nu}
    rows = {name: stack(name, value, sizes.get(name, model.nv)) for name, value in zip(names, values)}
    lead = leading(**rows)
    w = workspace(model, family, batch_of(lead), make)
    w.fill(lead, **rows)
    return w, lead


def chosen_rows(w: Workspace, k: int = 0) -> np.ndarray:
    """Indices of the rows A that kernels of a workspace have found independent at instance k; rising."""
    return np.flatnonzero(w.host["slot"][k] >= 0)


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
    check_kept(name, value)
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
