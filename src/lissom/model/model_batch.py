"""Batches of models of one structure, which every function takes in place of one model.

The models have one common Model. In it, a `Differs` replaces each field whose numbers are not the same in all models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, final, overload

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.robot.robot import Robot

_NOT_COMPARED = ("name", "description", "cache", "models")
# Tables without zeros, whose lengths therefore depend on the numbers. Only kernels read them, from each model by
# itself.
_PACKED = {
    "elasticity": ("start", "column", "row_stiffness", "row_damping"),
    "nodes": ("run_start", "run_v"),
    "points": ("run_start", "run_v", "phi"),
    "runs": ("phi1", "phi2"),
}
FUNCTIONS_OF_TIME = {"loads": "wrench", "prescribed": "functions", "fluid": "current"}  # fields by group


@final
class Differs:
    """Placeholder of a field whose numbers differ between the models of a batch. It has only the field's shape.

    `Model.of_row` and `Model.by_row` give the numbers of each model.
    """

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.shape = name, np.shape(value) if isinstance(value, np.ndarray) else ()
        self.size = len(value) if hasattr(value, "__len__") else 0

    def __len__(self) -> int:
        return self.size

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError(f"{self.name} differs between the models of a batch")


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModelBatch:
    """Models of one structure that differ in numbers only. Functions that take a Model also take a batch.

    The first of the leading axes of arguments and results is that of the models; an argument without this axis applies
    to all models. `batch[k]` is one model, a slice is another batch, and `len(batch)` is the number of models.

    Args:
        models: at least one, from Robot.build(); `Model.batch` makes a batch from values.
    Raises:
        ModelError: the first difference of structure between two models.
    """

    models: Sequence[Model]
    common: Model = field(init=False)
    cache: ClassVar[Mapping[Any, Any]] = MappingProxyType({})  # each model has its own

    def __post_init__(self) -> None:
        given = tuple(self.models)
        for k, model in enumerate(given):
            if not isinstance(model, Model) or model.models:
                raise ModelError(f"model {k} of a batch: must be a Model (got {model!r})")
        if not given:
            raise ModelError("models: must hold one Model at least (got none)")
        store: dict[Any, Any] = {}
        own = [sharing(model, given[0], store) for model in given]
        object.__setattr__(self, "models", tuple(own))
        object.__setattr__(self, "common", common_model(own))

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[Model]:
        return iter(self.models)

    @overload
    def __getitem__(self, which: int) -> Model: ...

    @overload
    def __getitem__(self, which: slice) -> ModelBatch: ...

    def __getitem__(self, which: Any) -> Any:
        return ModelBatch(self.models[which]) if isinstance(which, slice) else self.models[which]

    def __repr__(self) -> str:
        return f"ModelBatch({len(self)} x {self.models[0]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelBatch, (self.models,)

    @property
    def nq(self) -> int:
        """Size of q, the same in all models."""
        return self.common.nq

    @property
    def nv(self) -> int:
        """Size of v."""
        return self.common.nv

    @property
    def nu(self) -> int:
        """Size of u."""
        return self.common.nu

    def neutral(self) -> Any:
        """The reference configuration of all models, shape (nq,)."""
        return self.models[0].neutral()

    def on(self, device: str) -> ModelBatch:
        """The same models on another Warp device, such as "cuda:0"."""
        return ModelBatch([model.on(device) for model in self.models])

    if not TYPE_CHECKING:  # else every misspelt attribute would pass

        def __getattr__(self, name: str) -> Any:
            """Raise an error that explains a batch in place of one Model."""
            if name.startswith("_") or not (hasattr(Model, name) or name in Model.__dataclass_fields__):
                raise AttributeError(f"'ModelBatch' object has no attribute {name!r}")
            raise ModelError(f"{self!r}: expected one Model, got a batch: take one of them, as batch[0]")


def common_model(models: Sequence[Model]) -> Model:
    """The common Model of all models, with all of them as its `models`.

    Raises:
        ModelError: the first difference of structure between two models.
    """
    first: Any = models[0]
    found: dict[str, Any] = {}
    _check_links(models)
    for item in fields(Model):
        if item.name in _NOT_COMPARED:
            continue
        values = [getattr(model, item.name) for model in models]
        if all(value is values[0] for value in values):
            found[item.name] = values[0]
        elif is_dataclass(values[0]) and not isinstance(values[0], Robot):
            parts = {part.name: _shared(item.name, part.name, [getattr(value, part.name) for value in values])
                     for part in fields(values[0])}  # fmt: skip
            found[item.name] = replace(getattr(first, item.name), **parts)
        else:
            found[item.name] = _shared("", item.name, values)
    for k, model in enumerate(models):
        ours, theirs = first.contacts.sticking, model.contacts.sticking
        if ours != theirs:
            raise ModelError(f"model {k} of a batch: the contacts that stick must be those of the first one, "
                             f"{list(ours)} (got {list(theirs)})")  # fmt: skip
    found |= _of_time(models, found)
    return replace(first, **found, models=tuple(models), cache={})


def _check_links(models: Sequence[Model]) -> None:
    """Raise ModelError if the links, their joints and bodies, or the points of rods differ between models."""
    for what, of in (
        ("links", lambda model: model.links.names),
        ("parents", lambda model: model.links.parent.tolist()),
        ("joints", lambda model: [type(joint).__name__ for joint in model.links.joint]),
        ("bodies", lambda model: [type(body).__name__ for body in model.links.body]),
        ("bases", lambda model: {name: type(rod.strain.family).__name__ for name, rod in model.rods.items()}),
        ("first coordinates of links", lambda model: model.links.v_start.tolist()),
        ("numbers of points of rods", lambda model: {name: len(rod.node) for name, rod in model.rods.items()}),
        ("actuators", lambda model: model.channels.names),
        ("inputs", lambda model: model.inputs.names),
        (
            "functions of actuators",
            lambda model: [f"{a.name} ({made.functions.name[:12]})" for a, _, made in model.inputs.native],
        ),
        (
            "functions of forces with inputs",
            lambda model: [f"{x.name} ({x.function.functions.name[:12]})" for x in model.forces.driven],
        ),
        ("loops, skates, rolling contacts and constraints", lambda model: model.loops.names),
        ("kinds of their rows", lambda model: model.loops.row_kind.tolist()),
        ("operations in functions of constraints", lambda model: model.constraint_functions.operations()),
        ("couplings of joints", lambda model: model.joint_couplings.names),
        ("elastic couplings of joints", lambda model: model.joint_couplings.elastic_names),
        ("parts that exert forces at places", lambda model: model.placed_parts.names),
        ("contacts", lambda model: model.contacts.names),
        ("numbers of nodes", lambda model: model.n_nodes),
    ):
        expected = of(models[0])
        for k, model in enumerate(models):
            if of(model) != expected:
                raise ModelError(f"model {k} of a batch: {what} must be those of the first one, {expected} "
                                 f"(got {of(model)})")  # fmt: skip


def acts_alike(model: Model) -> bool:
    """Whether loads, prescribed motions and currents are known to be the same in all models at all times, and Python
    fills no tables of several models."""
    if model.models and model.fills_tables_before_launch:
        return False
    of_time = model.loads.wrench, model.prescribed.functions, model.fluid.current
    return not any(isinstance(x, Differs) for x in of_time)


def _of_time(models: Sequence[Model], found: dict[str, Any]) -> dict[str, Any]:
    """The groups with functions of time whose descriptions are the same in all models, with the first model's
    functions."""
    first, out = models[0], {}
    for group, name in FUNCTIONS_OF_TIME.items():
        if all(act_alike(model.description, first.description, group) for model in models):
            out[group] = replace(found[group], **{name: getattr(getattr(first, group), name)})
    return out


def _functions_of_time(robot: Robot, group: str) -> list[Any]:
    """The numbers and functions of time of a description for a group of tables."""
    if group == "loads":
        return [(x.force, x.moment) for x in robot.loads.values()]
    if group == "prescribed":
        return [(x.position, x.velocity, x.acceleration) for x in robot.motions.values()]
    return [robot.fluid and robot.fluid.current]


def act_alike(a: Robot, b: Robot, group: str) -> bool:
    """Whether two descriptions are known to give the same functions of time for a group of tables."""
    return _same(_functions_of_time(a, group), _functions_of_time(b, group))


def sharing(model: Model, first: Model, store: dict[Any, Any]) -> Model:
    """The same model, sharing the memory of arrays that are equal to those of the first model. On the device it shares
    equal arrays with all models that have the same store."""
    found = {}
    for item in fields(Model) if model is not first else ():
        group: Any = getattr(model, item.name)
        other = getattr(first, item.name)
        if group is not other and is_dataclass(other) and not isinstance(other, Robot):
            pairs = {part.name: (getattr(group, part.name), getattr(other, part.name)) for part in fields(group)}
            same = {name: b for name, (a, b) in pairs.items() if isinstance(a, np.ndarray) and _same(a, b)}
            found[item.name] = replace(group, **same)
    kept = {name: model.cache[name] for name in ("redesign",) if name in model.cache}
    return replace(model, **found, cache={"store": store, **kept})


def _shared(group: str, name: str, values: list[Any]) -> Any:
    """The value of a field of the common model."""
    where = f"{group} > {name}" if group else name
    first = values[0]
    if all(value is first for value in values):
        return first
    may_differ = isinstance(first, np.ndarray | float)
    if name not in _PACKED.get(group, ()):
        form = _form(first)
        for k, value in enumerate(values):
            if not _same(_form(value), form):
                raise ModelError(f"model {k} of a batch: {where} must be as in the first one, {_shown(first)} "
                                 f"(got {_shown(value)})")  # fmt: skip
    if may_differ or isinstance(first, int | str | tuple):
        return first if all(_same(value, first) for value in values) else Differs(where, first)
    return Differs(where, first)


def _form(value: Any) -> Any:
    """The structure of a value: everything but its numbers. The count of its numbers belongs to it."""
    if isinstance(value, np.ndarray):
        return ("array", *value.shape) if value.dtype.kind == "f" else value
    if isinstance(value, dict):
        return tuple(value)
    if isinstance(value, tuple):
        return tuple(x if isinstance(x, int | str) else type(x).__name__ for x in value)
    return value if isinstance(value, int | str) else type(value).__name__


def _same(a: Any, b: Any) -> bool:
    """Whether two values are known to be the same. Different functions never are."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, int | float | str) and type(a) is type(b) and a == b


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and (value.dtype.kind == "f" or value.size > 12):
        return f"an array {value.shape}"
    return repr(list(value) if isinstance(value, dict) else value.tolist() if isinstance(value, np.ndarray) else value)
