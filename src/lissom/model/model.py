"""Model: the frozen flat tables of a robot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError, ShapeError
from lissom.model.actuation import Pulls
from lissom.model.groups import (
    Bases,
    Channels,
    Dofs,
    Elasticity,
    Inputs,
    Int,
    Links,
    Loads,
    Loops,
    Nodes,
    Paths,
    Points,
    PoseSprings,
    Prescribed,
    Runs,
    Segments,
    Spools,
    Wrenches,
)
from lissom.model.maps import Deforming, Maps
from lissom.model.nodes import RodTable
from lissom.model.surroundings import Springs, Surroundings
from lissom.robot.checks import require
from lissom.robot.formatting import html_inputs, html_table
from lissom.robot.functions import still
from lissom.robot.robot import Robot

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.model.model_batch import ModelBatch

_KEPT = 128
_MOST_BYTES = 2**29


@final
@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A built robot: flat, read-only tables that every function takes, in groups. Made by Robot.build()."""

    name: str
    gravity: np.ndarray  # [m/s²]
    nq: int  # size of q
    nv: Int  # of v
    nu: int  # of u
    n_dynamic: Int  # nodes that carry or hold up anything; the rest are massless frames
    links: Links
    frames: dict[str, tuple[int, np.ndarray]]  # those with a name: node (-1 for the world), placement (4, 4)
    rods: dict[str, RodTable]  # by name of the link
    nodes: Nodes  # kernels read it as rows, `node`
    runs: Runs
    bases: Bases
    dofs: Dofs
    elasticity: Elasticity
    pose_springs: PoseSprings
    maps: Maps
    deforming: Deforming
    springs: Springs
    loads: Loads
    surroundings: Surroundings
    prescribed: Prescribed
    loops: Loops
    points: Points
    paths: Paths
    segments: Segments
    pulls: Pulls
    spools: Spools
    wrenches: Wrenches
    channels: Channels
    inputs: Inputs
    description: Robot  # the robot as it was when it was built
    device: str = "cpu"
    cache: dict[Any, Any] = field(default_factory=dict)
    models: tuple[Model, ...] = ()  # those of a batch, of which this is what they have in common; else none

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name != "models":
                _freeze(getattr(self, item.name))

    def __repr__(self) -> str:
        return f"Model({self.name!r}, nq={self.nq}, nv={self.nv}, nu={self.nu}, n_nodes={self.n_nodes})"

    def _repr_html_(self) -> str:
        ends = [*self.links.v_start[1:].tolist(), self.nv]
        sizes = zip(self.links.names, self.links.v_start.tolist(), ends, self.links.mass)
        rows = [(name, f"{end - start}", f"{mass:.4g}") for name, start, end, mass in sizes]
        return html_table(repr(self), ("link", "dof", "mass [kg]"), rows) + html_inputs(self.inputs.names)

    @property
    def n_nodes(self) -> Int:
        """Number of nodes."""
        return len(self.nodes.parent)

    @cached_property
    def n_multipliers(self) -> int:
        """Number of constraint forces: one for each prescribed coordinate, then one for each row of each loop."""
        return self.n_motions + self.n_rows

    @cached_property
    def n_motions(self) -> int:
        """Number of prescribed coordinates."""
        return len(self.prescribed.dof)

    @cached_property
    def n_rows(self) -> int:
        """Number of directions that loops hold, dependent ones included."""
        return len(self.loops.row_direction)

    @cached_property
    def n_load_rows(self) -> int:
        """Rows that kernels read: wrenches of point loads and of Python forces, then current and time."""
        return len(self.loads.node) + (2 if self.meets_anything else 0)

    @cached_property
    def meets_anything(self) -> bool:
        """Whether kernels must look at surroundings or at springs between points."""
        return self.surroundings.exists or len(self.springs) > 0

    @cached_property
    def calls_python(self) -> bool:
        """Whether forces, or poses of what carries anything, come from Python functions of the state, which kernels
        cannot call."""
        if self.models:
            return any(model.calls_python for model in self.models)
        maps = any(self.maps.node[m] < self.n_dynamic for m in self.maps.called())
        bodies = self.deforming.calls_python or len(self.pulls) > 0
        return bool(self.python_forces or maps or bodies)

    @cached_property
    def python_forces(self) -> bool:
        """Whether forces of actuators or of the surroundings come from Python functions of the state."""
        return any(model.inputs.custom or model.surroundings.called for model in self.models or (self,))

    @cached_property
    def asks_before_launch(self) -> bool:
        """Whether tables of a state come from Python functions before each launch."""
        if self.models:
            return any(model.asks_before_launch for model in self.models)
        return self.maps.calls_python or self.deforming.calls_python or len(self.pulls) > 0

    def motions(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and accelerations of the prescribed coordinates at time t, each (n_motions,)."""
        known = self.cache.get("motions")
        if known is None or known[0] != t:
            rows = np.array(self.motion_numbers(t)).reshape(3, -1)
            rows.setflags(write=False)
            known = self.cache["motions"] = (t, (rows[0], rows[1], rows[2]))
        return known[1]

    def motion_numbers(self, t: float) -> list[float]:
        """What `motions` returns, as 3 n_motions numbers."""
        return [x for order in range(3) for functions in self.prescribed.functions for x in functions[order](t)]

    def motions_over(self, times: np.ndarray, orders: Iterable[int] = (0, 1, 2)) -> np.ndarray:
        """The same at many times (n,), shape (n, 3 n_motions), or no more than positions, velocities or accelerations,
        of orders 0, 1 and 2."""
        return np.hstack([f[order].over(times) for order in orders for f in self.prescribed.functions])

    def __reduce__(self) -> tuple[Any, ...]:
        held = self.prescribed.dof[self.n_motions - self.prescribed.n_held :].copy()
        return _rebuilt, (self.description, self.device, held, self.prescribed.steady, self.surroundings.anchors)

    def __copy__(self) -> Model:
        """The same tables, which nothing can change, with buffers of its own."""
        return replace(self, cache={})

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return replace(self, cache={})

    def cached(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` returned for this key. It is made again once more than _KEPT things, or _MOST_BYTES of buffers,
        have been used since."""
        found = self.cache.pop(key, None)
        made = make() if found is None else found
        self.cache[key] = made  # the last is what was used last
        if found is None:
            self._forget()
        return made

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Forget at the end the buffers for many states that were made meanwhile: there may be many models."""
        known = set(self.cache)
        try:
            yield
        finally:
            for key in [key for key in self.cache if isinstance(key, tuple) and key[1:2] == ("batch",)]:
                if key not in known:
                    del self.cache[key]

    def one(self, k: int, count: int) -> Model:
        """The model that row k of so many rows belongs to, each model having as many, one behind the other."""
        return self.models[k * len(self.models) // count] if self.models else self

    def of_rows(self, count: int) -> list[Model]:
        """The model of each of so many rows."""
        if self.models and count % len(self.models):
            raise RuntimeError(f"{count} rows of {len(self.models)} models")
        return [self.one(k, count) for k in range(count)]

    def some(self, which: slice, count: int) -> Model:
        """What models of some of so many rows have in common."""
        rows = range(count)[which]
        if not self.models or len(rows) == count:
            return self
        return replace(self, models=tuple(self.one(k, count) for k in rows), cache={})

    def by_row(self, get: Callable[[Model], Any], count: int) -> np.ndarray:
        """An array of the model, for all rows, or those of the models, one for each of so many rows."""
        return np.array([get(model) for model in self.of_rows(count)]) if self.models else get(self)

    def batch(self, path: str, values: ArrayLike, *more: Any) -> ModelBatch:
        """Models that differ from this one in values of the description, such as `arm.material.young`.

        Args:
            path, values: of `Robot.with_`, and one value for each model; further pairs of both may follow, of as many
                values.
        Raises:
            ModelError: there is no such value, its rule is broken, the numbers of values differ, or the models are not
                of one structure.
        """
        from lissom.model.model_batch import ModelBatch

        pairs = [path, values, *more]
        for name, given in zip(pairs[::2], pairs[1::2]):
            zero = isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim == 0)
            listed = isinstance(given, Iterable) and not zero
            require(listed, f"batch: {name}", "must be a list of values, one for each model", given)
        columns = dict(zip(pairs[::2], map(list, pairs[1::2])))
        counts = {name: len(column) for name, column in columns.items()}
        if len(pairs) % 2 or len(set(counts.values())) != 1:
            raise ModelError(f"batch: paths and as many values of each must follow each other (got {counts})")
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
        return ModelBatch([self._as(self.description.with_(row)) for row in rows])

    def with_(self, values: Mapping[str, Any] | None = None, **more: Any) -> Model:
        """The model of the same robot with some values of its description replaced, by their paths, as of
        `Robot.with_`: `model.with_({"arm.material.young": 2e6}, gravity=(0, 0, 0))`.

        Where only numbers change, so that the structure stays, no kernel is compiled.

        Raises:
            ModelError: the word of a path that there is none of and the nearest one, or the rule that a value breaks.
        """
        return self._as(self.description.with_(values, **more), says=True)

    def _as(self, description: Robot, says: bool = False) -> Model:
        """The model of another description, on the same device, with the same motions and anchors; `says` where what
        the build warns of is new."""
        held = self.prescribed.dof[self.n_motions - self.prescribed.n_held :].copy()
        return _rebuilt(description, self.device, held, self.prescribed.steady, self.surroundings.anchors, says)

    def _forget(self) -> None:
        """Drop what was used least recently, but never the last."""
        keys = [key for key in list(self.cache) if isinstance(key, tuple)]
        sizes = [getattr(self.cache.get(key), "nbytes", 0) for key in keys]
        held, count = sum(sizes), len(keys)
        for key, size in zip(keys[:-1], sizes):
            if count <= _KEPT and held <= _MOST_BYTES:
                return
            if count > _KEPT or size:
                self.cache.pop(key, None)
                held, count = held - size, count - 1

    def on(self, device: str) -> Model:
        """The same model whose functions run on another Warp device, such as "cuda:0"."""
        return replace(self, device=device, cache={})

    def anchored(self, anchors: ArrayLike) -> Model:
        """The same model whose contacts hold on at given anchors.

        Args:
            anchors: shape (n_pairs, 6) [m, -], of `contact_anchors`, an `Equilibrium` or a `Trajectory`: of each pair
                the point of the obstacle and the direction in the ball where they hold on; rows of NaN do not hold.
        Returns:
            Model.
        Raises:
            ShapeError: the expected and the received shape, or an infinite value.
        """
        rows, shape = np.array(anchors, dtype=np.float64), self.surroundings.anchors.shape
        if rows.shape != shape:
            raise ShapeError(f"anchors: expected shape {shape}, got {rows.shape}")
        if np.isinf(rows).any() or (np.isnan(rows).any(axis=1) != np.isnan(rows).all(axis=1)).any():
            raise ShapeError("anchors: a row must be finite, or NaN where a pair does not hold on")
        rows.setflags(write=False)
        return with_groups(self, surroundings=replace(self.surroundings, anchors=rows), cache={})

    def holding(self, dofs: np.ndarray, steady: np.ndarray | None) -> Model:
        """The same model with more coordinates held as if they had a motion, in a steady motion of velocity (nv,)."""
        zero, known = [0.0] * len(dofs), self.prescribed
        held = Prescribed(
            names=(*known.names, *(f"held[{j}]" for j in dofs.tolist())),
            dof=np.append(known.dof, dofs).astype(np.int32),
            functions=(*known.functions, (still(zero),) * 3),
            n_held=len(dofs),
            steady=steady,
        )
        return replace(self, prescribed=held, cache={})

    def neutral(self) -> np.ndarray:
        """The reference configuration: zero coordinates, unit quaternions; shape (nq,)."""
        return self.dofs.neutral.copy()


def with_groups(model: Model, **groups: Any) -> Model:
    """A copy of a model that has other groups of tables, which are read-only already.

    `dataclasses.replace` would visit every table to make it read-only, which takes longer than a step.
    """
    copy = object.__new__(type(model))
    copy.__dict__.update(model.__dict__, **groups)
    return copy


def _rebuilt(
    description: Robot,
    device: str,
    held: np.ndarray,
    steady: np.ndarray | None,
    anchors: np.ndarray,
    says: bool = False,
) -> Model:
    with warnings.catch_warnings():
        if not says:
            warnings.simplefilter("ignore")  # what there was to say was said when it was first built
        model = description.build()
    model = model if device == model.device else model.on(device)
    model = model if steady is None else model.holding(held, steady)
    holds = model.surroundings.sticks and model.surroundings.anchors.shape == anchors.shape
    return model.anchored(anchors) if holds else model


def _freeze(value: Any) -> None:
    """Make every array of a table read-only, in the groups, frames and rods too."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            _freeze(part)
    elif type(value).__module__.startswith("lissom.model.") and is_dataclass(value):
        for item in fields(value):
            _freeze(getattr(value, item.name))
