"""Model: the frozen flat tables of a robot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, final
from weakref import finalize

import numpy as np
import warp as wp

from lissom.errors import ModelError, ShapeError
from lissom.model.actuation import Pulls
from lissom.model.groups import (
    Bases,
    Channels,
    ConstraintFunctions,
    Dofs,
    Elasticity,
    Inputs,
    Int,
    JointCouplings,
    Links,
    Loads,
    Loops,
    Nodes,
    Paths,
    PlacedParts,
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
from lissom.model.surroundings import Contacts, FluidNodes, Springs, UserForces
from lissom.robot.checks import named, require
from lissom.robot.constraints import RATES
from lissom.robot.formatting import html_inputs, html_table
from lissom.robot.functions import still
from lissom.robot.paths import with_each
from lissom.robot.robot import PARTS, Robot, limit_values, state_values

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.model.model_batch import ModelBatch

_KEPT = 128
_MOST_BYTES = 2**29


@final
@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A built robot, made by Robot.build(): groups of flat, read-only tables. It is the first argument of most
    functions."""

    name: str
    gravity: np.ndarray  # [m/s²]
    nq: int  # size of q
    nv: Int  # of v
    nu: int  # of u
    n_dynamic: Int  # nodes with masses or forces on them or on their descendants; the rest are massless frames
    links: Links
    frames: dict[str, tuple[int, np.ndarray]]  # named frames: node (-1 for the world), placement (4, 4)
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
    placed_parts: PlacedParts
    loads: Loads
    contacts: Contacts
    fluid: FluidNodes
    forces: UserForces
    prescribed: Prescribed
    loops: Loops
    constraint_functions: ConstraintFunctions
    joint_couplings: JointCouplings
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
    models: tuple[Model, ...] = ()  # the models of a batch, if this is their common Model; otherwise empty

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name != "models":
                freeze(getattr(self, item.name))

    @property
    def input_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each input, shape (nu,) each; infinite without a limit (see
        Robot.limit_input)."""
        low, high = np.full(self.nu, -np.inf), np.full(self.nu, np.inf)
        for name, limits in self.description.input_limits.items():
            ends = limit_values(self.description, limits)
            first = self.inputs.names.index(name if len(ends[0]) == 1 else f"{name}[0]")
            for vector, values in zip((low, high), ends):
                vector[first : first + len(values)] = values
        return low, high

    def state(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The vectors q (nq,), v (nv,) and u (nu,) of a named state of the description (see Robot.add_state).

        Raises:
            ModelError: no state has this name.
        """
        named(name, self.description.states, f"model {self.name!r}: state", "states")
        values = state_values(self.description, self.description.states[name])
        q, v, u = self.neutral(), np.zeros(self.nv), np.zeros(self.nu)
        of_link = {link: k for k, link in enumerate(self.links.names)}
        for vector, start, parts in ((q, self.links.q_start, values[0]), (v, self.links.v_start, values[1])):
            for link, part in parts.items():
                first = int(start[of_link[link]])
                vector[first : first + len(part)] = part
        names = {name: k for k, name in enumerate(self.inputs.names)}
        for name, part in values[2].items():
            first = names[name] if len(part) == 1 else names[f"{name}[0]"]
            u[first : first + len(part)] = part
        return q, v, u

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
        """Number of constraint forces: one for each prescribed coordinate, for each row of each loop, skate, rolling
        contact and constraint by a function, and for each coupling of joints, in this order."""
        return self.n_motions + self.n_rows

    @cached_property
    def n_motions(self) -> int:
        """Number of prescribed coordinates."""
        return len(self.prescribed.dof)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows of the constraint Jacobian: the directions that loops constrain, dependent ones included,
        those of skates, rolling contacts and functions, then one for each coupling of joints."""
        return len(self.loops.row_direction) + len(self.joint_couplings.names)

    @cached_property
    def rate_rows(self) -> np.ndarray:
        """Whether each constraint row restricts velocities and no positions, shape (n_rows,): rows of skates, of
        rolling along the plane, and of functions of velocities."""
        none = np.zeros(len(self.joint_couplings.names), dtype=bool)
        return np.append(np.isin(self.loops.row_kind, RATES), none)

    def require_positions(self, function: str) -> None:
        """Raise ModelError if the robot has constraints on velocities, of which a function takes none."""
        rows = np.split(self.rate_rows, self.loops.row_start[1:])
        names = [f"{PARTS[kind].word} {name!r}" for kind, name, own in zip(self.loops.kinds, self.loops.names, rows)
                 if own.any()]  # fmt: skip
        if names:
            rule = f"{function}: must have no constraints on velocities, since the path decides where it can be"
            cure = "; remove them from the description, or use simulate"
            raise ModelError(f"robot {self.name!r}: {rule} (got {', '.join(names)}){cure}")

    @cached_property
    def n_load_rows(self) -> int:
        """Rows that kernels read: wrenches of point loads and of Python forces, then current and time."""
        return len(self.loads.node) + (2 if self.has_surroundings else 0)

    @cached_property
    def has_surroundings(self) -> bool:
        """Whether contacts, the fluid, users' forces or placed parts, such as springs, act on the robot. Their wrenches
        may depend on twists, and on the current and the time."""
        own = (
            self.contacts.pair,
            self.fluid.node,
            self.fluid.tail_node,
            self.forces.node,
            self.forces.driven,
            self.placed_parts,
        )
        return any(len(rows) > 0 for rows in own)

    @property
    def tied_nodes(self) -> np.ndarray:
        """Pairs of nodes (n, 2), −1 for the world, that pieces of tendons and springs along paths, or placed parts
        couple."""
        return np.vstack([self.segments.coupled(), self.placed_parts.pairs])

    @property
    def n_ties(self) -> int:
        """Largest number of pairs of nodes that these forces couple at the same time."""
        return self.segments.n_couplings + len(self.placed_parts.pairs)

    @property
    def couples_nodes(self) -> bool:
        """Whether kernels need buffers for derivatives with respect to twists, near pairs or coupled nodes."""
        return self.has_surroundings or len(self.segments.channel) > 0

    @cached_property
    def nonlinear_input(self) -> str | None:
        """The title of an actuator or a force of a user that is no linear function of its inputs at a configuration;
        None without one."""
        one = self.of_row(0, 1)
        actuators = (f"actuator {actuator.name!r}" for actuator, _, made in one.inputs.native if not made.is_linear)
        forces = (f"force {force.name!r}" for force in one.forces.driven if not force.function.is_linear)
        return next(chain(actuators, forces), None)

    @cached_property
    def has_contacts_only(self) -> bool:
        """Whether contacts act on the robot, and neither fluid, placed parts, such as springs, loops, couplings of
        joints nor tendons with straight or elastic pieces."""
        wet, springs = (self.fluid.node, self.fluid.tail_node), (self.placed_parts, self.joint_couplings.elastic_names)
        others = *wet, *springs, self.segments.channel, self.spools.channel
        return len(self.contacts.pair) > 0 and not self.n_rows and not any(len(rows) > 0 for rows in others)

    @cached_property
    def calls_python(self) -> bool:
        """Whether Python functions of the state, which kernels cannot call, give forces or the poses of nodes with
        masses or forces."""
        if self.models:
            return any(model.calls_python for model in self.models)
        maps = any(self.maps.node[m] < self.n_dynamic for m in self.maps.called())
        bodies = self.deforming.calls_python or self.pulls.calls_python
        return bool(self.python_forces or maps or bodies)

    @cached_property
    def python_forces(self) -> bool:
        """Whether forces of actuators, or those of users, come from Python functions of the state."""
        return any(model.inputs.custom or model.forces.called for model in self.models or (self,))

    @cached_property
    def fills_tables_before_launch(self) -> bool:
        """Whether Python functions fill tables for the state before each launch."""
        if self.models:
            return any(model.fills_tables_before_launch for model in self.models)
        return self.maps.calls_python or self.deforming.calls_python or self.pulls.calls_python

    def motions(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and accelerations of the prescribed coordinates at time t, each (n_motions,)."""
        known = self.cache.get("motions")
        if known is None or known[0] != t:
            rows = np.array(self.motion_numbers(t)).reshape(3, -1)
            rows.setflags(write=False)
            known = self.cache["motions"] = (t, (rows[0], rows[1], rows[2]))
        return known[1]

    def motion_numbers(self, t: float) -> list[float]:
        """The numbers that `motions` returns, as one list (3 n_motions,)."""
        return [x for order in range(3) for functions in self.prescribed.functions for x in functions[order](t)]

    def motions_over(self, times: np.ndarray, orders: Iterable[int] = (0, 1, 2)) -> np.ndarray:
        """The prescribed coordinates at times (n,), shape (n, 3 n_motions): positions, velocities, accelerations. With
        `orders` only those of the given orders of derivative, 0 to 2."""
        return np.hstack([f[order].over(times) for order in orders for f in self.prescribed.functions])

    def __reduce__(self) -> tuple[Any, ...]:
        locked = self.prescribed.dof[self.n_motions - self.prescribed.n_locked :].copy()
        return _rebuilt, (self.description, self.device, locked, self.prescribed.steady, self.contacts.anchors)

    def __copy__(self) -> Model:
        """A model that shares the read-only tables and has buffers of its own."""
        return replace(self, cache={})

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return replace(self, cache={})

    def cached(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Value that `make` returned for a key, from the cache. The cache keeps the _KEPT values used last and at most
        _MOST_BYTES of buffers."""
        found = self.cache.pop(key, None)
        made = make() if found is None else found
        self.cache[key] = made  # keys are in the order of their last use
        if found is None:
            self._forget()
        return made

    @contextmanager
    def temporary_buffers(self) -> Iterator[None]:
        """Remove from the cache, at the end of the block, the buffers of batches that were added in it. Callers build
        many models, whose buffers together would fill the memory."""
        known = set(self.cache)
        try:
            yield
        finally:
            for key in [key for key in self.cache if isinstance(key, tuple) and key[1:2] == ("batch",)]:
                if key not in known:
                    del self.cache[key]

    def of_row(self, k: int, count: int) -> Model:
        """The model of row k of `count` rows. Each model of a batch has equally many rows, one model after the
        other."""
        return self.models[k * len(self.models) // count] if self.models else self

    def of_rows(self, count: int) -> list[Model]:
        """The model of each of `count` rows."""
        if self.models and count % len(self.models):
            raise RuntimeError(f"{count} rows of {len(self.models)} models")
        return [self.of_row(k, count) for k in range(count)]

    def common_of_rows(self, which: slice, count: int) -> Model:
        """The common Model of the models of a range of rows, out of `count` rows."""
        rows = range(count)[which]
        if not self.models or len(rows) == count:
            return self
        return replace(self, models=tuple(self.of_row(k, count) for k in rows), cache={})

    def by_row(self, get: Callable[[Model], Any], count: int) -> np.ndarray:
        """The array `get(model)`. For a batch it gets a leading axis, with one entry for each of `count` rows."""
        return np.array([get(model) for model in self.of_rows(count)]) if self.models else get(self)

    def batch(self, path: str, values: ArrayLike, *more: Any) -> ModelBatch:
        """Models that differ from this one in values of the description, such as `arm.material.young`.

        Args:
            path, values: a path as in `Robot.with_`, and one value for each model. Further pairs of a path and its
                values may follow, with equally many values.
        Returns:
            ModelBatch.
        Raises:
            ModelError: there is no such value, a value breaks its rule, the numbers of values differ, or the models
                have different structures.
        """
        from lissom.model.model_batch import ModelBatch
        from lissom.model.redesign import described

        pairs = [path, values, *more]
        for name, given in zip(pairs[::2], pairs[1::2]):
            zero = isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim == 0)
            listed = isinstance(given, Iterable) and not zero
            require(listed, f"batch: {name}", "must be a list of values, one for each model", given)
        columns = dict(zip(pairs[::2], map(list, pairs[1::2])))
        counts = {name: len(column) for name, column in columns.items()}
        if len(pairs) % 2 or len(set(counts.values())) != 1:
            raise ModelError(f"batch: paths and as many values of each must follow each other (got {counts})")
        if len(columns) == 1:
            robots = with_each(self.description, path, columns[path])
        else:  # a path may lead into what an earlier one has replaced
            robots = [self.description.with_(dict(zip(columns, row))) for row in zip(*columns.values())]
        return ModelBatch([described(self, robot) for robot in robots])

    def with_(self, values: Mapping[str, Any] | None = None, **more: Any) -> Model:
        """Model of the same robot with other values at paths of its description, as in `Robot.with_`:
        `model.with_({"arm.material.young": 2e6}, gravity=(0, 0, 0))`.

        If only numbers change and the structure stays the same, no kernel is compiled.

        Args:
            values: new value by path.
            more: further values, by names that are Python identifiers.
        Returns:
            Model.
        Raises:
            ModelError: the unknown word of a path with the nearest known one, or the rule that a value breaks.
        """
        return rebuilt(self, self.description.with_(values, **more), warns=True)

    def _forget(self) -> None:
        """Remove the values that have not been used for longest until the cache is within its limits; the last value
        stays."""
        keys = [key for key in list(self.cache) if isinstance(key, tuple)]
        sizes = [getattr(self.cache.get(key), "nbytes", 0) for key in keys]
        total, count = sum(sizes), len(keys)
        for key, size in zip(keys[:-1], sizes):
            if count <= _KEPT and total <= _MOST_BYTES:
                return
            if count > _KEPT or size:
                self.cache.pop(key, None)
                total, count = total - size, count - 1

    def on(self, device: str) -> Model:
        """The same model whose functions run on another Warp device.

        Args:
            device: name of the device, such as "cuda:0". Arguments and results of functions stay NumPy arrays.
        Raises:
            ModelError: this machine has no such device, or a force depends on inputs, or an actuator is not linear in
                them, which needs the CPU.
        """
        check_device(device)
        titles = [f"force {force.name!r}" for force in self.forces.driven]
        if self.nonlinear_input is not None:
            titles.append(self.nonlinear_input)
        if titles and device != "cpu":
            raise ModelError(f"{titles[0]}: its dependence on inputs needs a model on the CPU (got {device!r})")
        own = {name: getattr(self, name).on(device) for name in ("maps", "deforming", "pulls")}
        return replace(self, device=device, cache={}, inputs=self.inputs.on(device, self.channels.gain), **own)

    def anchored(self, anchors: ArrayLike) -> Model:
        """Same model, with given anchors at which contacts stick.

        Args:
            anchors: shape (n_pairs, 6) [m, -], from `contact_anchors`, an `Equilibrium` or a `Trajectory`. Each row is
                the anchor of a pair: a point of the obstacle and a direction in the ball. A pair whose row is NaN does
                not stick.
        Returns:
            Model.
        Raises:
            ShapeError: the expected and the received shape, or an infinite value.
        """
        rows, shape = np.array(anchors, dtype=np.float64), self.contacts.anchors.shape
        if rows.shape != shape:
            raise ShapeError(f"anchors: expected shape {shape}, got {rows.shape}")
        if np.isinf(rows).any() or (np.isnan(rows).any(axis=1) != np.isnan(rows).all(axis=1)).any():
            raise ShapeError("anchors: a row must be finite, or NaN for a pair that does not stick")
        rows.setflags(write=False)
        root, world = self.__dict__.get("_root", self), replace(self.contacts, anchors=rows)
        free = root.cached(("homes of anchored copies",), list)
        try:
            home = free.pop()
        except IndexError:
            home = with_groups(root, cache={})
        home.__dict__["contacts"] = world
        if "tables" in home.cache:
            home.cache["tables"].contacts.anchor.assign(rows.reshape(1, -1, 3))
        copy = with_groups(self, contacts=world, cache=home.cache, _root=root, _home=home)
        finalize(copy, free.append, home).atexit = False
        return copy

    @property
    def home(self) -> Model:
        """The equal model for which tables and buffers are made.

        An anchored copy has such a model of its own, which the next copy uses once Python has deleted this copy. To
        make tables and buffers takes a hundred times as long as a step.
        """
        return self.__dict__.get("_home", self)

    def with_locked(self, dofs: np.ndarray, steady: np.ndarray | None) -> Model:
        """Same model in a steady motion of velocity `steady` (nv,), with the coordinates `dofs` (indices in v) locked
        at zero like prescribed ones."""
        zero, known = [0.0] * len(dofs), self.prescribed
        locked = Prescribed(
            names=(*known.names, *(f"locked[{j}]" for j in dofs.tolist())),
            dof=np.append(known.dof, dofs).astype(np.int32),
            functions=(*known.functions, (still(zero),) * 3),
            n_locked=len(dofs),
            steady=steady,
        )
        return replace(self, prescribed=locked, cache={})

    def neutral(self) -> np.ndarray:
        """The reference configuration: zero coordinates, unit quaternions; shape (nq,)."""
        return self.dofs.neutral.copy()


def with_groups(model: Model, **groups: Any) -> Model:
    """A copy of a model with other groups of tables. Their arrays must be read-only already.

    `dataclasses.replace` would visit every table to make it read-only, which takes longer than a step.
    """
    copy = object.__new__(type(model))
    copy.__dict__.update(model.__dict__, **groups)
    return copy


def check_device(device: str) -> None:
    """Raise a ModelError unless this machine has a Warp device of this name."""
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError):
        known = ", ".join(str(found) for found in wp.get_devices())
        raise ModelError(f"device: must be one of {known} (got {device!r})") from None


def rebuilt(model: Model, description: Robot, warns: bool = False) -> Model:
    """The model of another description, on the same device, with the same locked coordinates and anchors. `warns`:
    whether to show the warnings of the build."""
    locked = model.prescribed.dof[model.n_motions - model.prescribed.n_locked :].copy()
    return _rebuilt(description, model.device, locked, model.prescribed.steady, model.contacts.anchors, warns)


def _rebuilt(
    description: Robot,
    device: str,
    locked: np.ndarray,
    steady: np.ndarray | None,
    anchors: np.ndarray,
    warns: bool = False,
) -> Model:
    with warnings.catch_warnings():
        if not warns:
            warnings.simplefilter("ignore")  # the first build has shown these warnings
        model = description.build()
    model = model if device == model.device else model.on(device)
    model = model if steady is None else model.with_locked(locked, steady)
    fits = model.contacts.sticks and model.contacts.anchors.shape == anchors.shape
    return model.anchored(anchors) if fits else model


def freeze(value: Any) -> None:
    """Make every array of a table read-only, those inside groups, frames and rods too. Arrays in the cache `known` of a
    rod are read-only already."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            freeze(part)
    elif type(value) not in (float, int, str) and type(value).__module__.startswith("lissom.model."):
        for name, part in vars(value).items() if is_dataclass(value) else ():
            if name != "known":
                freeze(part)
