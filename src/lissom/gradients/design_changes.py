"""How a model changes with design values, and launches of many changed models on one set of tables.

The residual r is linear in the tables of inertia, weight, stiffness, damping and the fluid, and in gravity. If a design
value p changes only these tables T, the derivative

    r_p = (r(T + P T') − r(T)) / P                                                                        (1)

is exact for any P, here the size of p. T' is the derivative of the tables alone, by a central difference with an error
of 1e-10. Other tables, such as lengths and placements, move the robot: r is then differenced over p.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.launch.workspace import write_model
from lissom.lie.arrays import se3_exp
from lissom.model.model import Model, with_groups
from lissom.model.redesign import described, redesign_of
from lissom.robot.paths import number_at, with_each

SHARE = 1e-4  # step of the differences over a value, or over the largest number of its array
CENTRAL = ((-2.0, -1.0, 1.0, 2.0), (1.0 / 12.0, -8.0 / 12.0, 8.0 / 12.0, -1.0 / 12.0))
_NEAR = ((-1.0, 1.0), (-0.5, 0.5))
_ONE_SIDED = ((0.0, 1.0, 2.0, 3.0, 4.0), (-25.0 / 12.0, 4.0, -3.0, 4.0 / 3.0, -0.25))
_SMALL_SHARE = 1e-5  # the same for tables alone, whose differences lose no digits in sums
# tables in which the residual is linear, by group
_LINEAR = {
    "nodes": ("inertia", "dry", "heavy"),
    "elasticity": ("row_stiffness", "row_damping"),
    "dofs": ("armature",),
    "pose_springs": ("stiffness",),
    "fluid": ("added", "drag", "weightless", "displaced", "tail_mass"),
}
# tables that no residual reads; those of contacts and elastic tendons have derivatives of their own
_UNREAD = {
    "links": ("mass", "frame", "body"),
    "dofs": ("scale", "neutral"),
    "elasticity": ("block_stiffness", "block_damping"),
}
_APART = ("name", "description", "cache", "models", "rods", "frames", "contacts", "spools")


@final
@dataclass(frozen=True)
class Stencil:
    """The difference stencil of one number of the description.

    Fields:
        models: with changed values of the number. steps: their changes. weights: of the models in the derivative.
    """

    models: tuple[Model, ...]
    weights: tuple[float, ...]
    steps: tuple[float, ...]


@final
@dataclass(frozen=True, eq=False)
class Change:
    """How one number of the description changes the tables of a model.

    Fields:
        stencil: of the number; two models suffice if the residual is linear in all changed tables.
        size: P of (1).
        moves: whether tables change in which the residual is not linear.
        touches: whether the tables of contacts change, or tables that move the robot.
        linear: the model without kinks with the tables T + P T' of (1); None if the number moves the robot.
    """

    stencil: Stencil
    size: float
    moves: bool
    touches: bool
    linear: Model | None

    @cached_property
    def smooth(self) -> tuple[Model, ...]:
        """The models of the stencil without forces of contacts and elastic tendons."""
        return tuple(map(without_kinks, self.stencil.models))


def changes(model: Model, paths: tuple[str, ...]) -> list[Change]:
    """The changes by all numbers of all paths."""
    return model.cached(("changes", paths), lambda: [_change(model, *number) for number in _numbers(model, paths)])


def _numbers(model: Model, paths: tuple[str, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """Path and index of all numbers of all paths."""
    return [(path, index) for path in paths for index in np.ndindex(*shape_of(model, path))]


def stencils(model: Model, paths: tuple[str, ...]) -> list[Stencil]:
    """The stencils of fourth order of all numbers of all paths."""
    return model.cached(("stencils", paths), lambda: [_stencil(model, *number) for number in _numbers(model, paths)])


def without_kinks(model: Model) -> Model:
    """The model without forces of contacts and elastic tendons."""
    world, spools = model.contacts, model.spools
    if not len(world.pair) and not len(spools.channel):
        return model
    law = world.law.copy()
    law[:, 0] = 0.0
    none = replace(spools, stiffness=np.zeros_like(spools.stiffness))
    return _alone(model, contacts=replace(world, law=law), spools=none)


def _alone(model: Model, **groups: Any) -> Model:
    """A copy of a model with other groups and buffers of its own."""
    copy = with_groups(model, **groups, cache={})
    for name in ("_home", "_root"):
        copy.__dict__.pop(name, None)
    return copy


@final
class ChangedTables:
    """Tables of a model without kinks, into which those of changed models are written one after the other."""

    def __init__(self, model: Model) -> None:
        self.first = without_kinks(model)
        self.home = _alone(self.first)
        self.is_apart = model.calls_python or model.fills_tables_before_launch or model.device != "cpu"
        self.lock = RLock()

    def of(self, changed: Model) -> Model:
        """A model whose launches compute the changed model, until the next call; the changed model itself if its
        structure differs, it calls Python, or its tables are on another device than the CPU."""
        if self.is_apart:
            return changed
        same = with_groups(changed, contacts=self.first.contacts, spools=self.first.spools)
        return self.home if write_model(self.home, same) else changed


@contextmanager
def changed_tables(model: Model) -> Iterator[ChangedTables]:
    """The ChangedTables of a model, for one thread at a time."""
    tables: ChangedTables = model.cached(("changed tables",), lambda: ChangedTables(model))
    with tables.lock:
        yield tables


def _value(model: Model, path: str) -> tuple[Any, np.ndarray]:
    """The value at a path, and the same as an array. The array of a function is its value at 0."""
    value = number_at(model.description, path)
    try:
        array = np.asarray(value(0.0) if callable(value) else value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((), np.nan)
    if not np.isfinite(array).all() or isinstance(value, bool):
        rule = "a design value must be a number, an array of numbers, a pose, or a function that returns one of these"
        raise ModelError(f"robot {model.name!r} > {path}: {rule} (got {value!r})")
    return value, array


def is_pose(array: np.ndarray) -> bool:
    """Whether an array is a pose (4, 4)."""
    return array.shape == (4, 4) and bool(np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)))


def shape_of(model: Model, path: str) -> tuple[int, ...]:
    """The shape of a design value; that of an increment, (6,), for a pose."""
    array = _value(model, path)[1]
    return (6,) if is_pose(array) else array.shape


def _sized(array: np.ndarray, index: tuple[int, ...]) -> float:
    """Size of a number: that of its value, else of its array."""
    return 0.3 if is_pose(array) else float(abs(array[index])) or float(np.abs(array).max(initial=0.0)) or 0.1


def _models(model: Model, path: str, index: tuple[int, ...], steps: tuple[float, ...]) -> tuple[Model, ...]:
    """The models with one number changed by each of some steps."""
    value, array = _value(model, path)
    values = [_changed(value, array, index, step) for step in steps]
    return tuple(described(model, robot) for robot in with_each(model.description, path, values))


def _stencil(model: Model, path: str, index: tuple[int, ...]) -> Stencil:
    """The stencil of one number, central or one-sided."""
    size, tried = _sized(_value(model, path)[1], index), []
    for side, (places, weights) in ((1.0, CENTRAL), (1.0, _ONE_SIDED), (-1.0, _ONE_SIDED)):
        h = side * SHARE * size
        try:
            models = _models(model, path, index, tuple(c * h for c in places))
        except ModelError as error:
            tried.append(error)
            continue
        return Stencil(models, tuple(weight / h for weight in weights), tuple(c * h for c in places))
    raise tried[0]


def _change(model: Model, path: str, index: tuple[int, ...]) -> Change:
    size = _sized(_value(model, path)[1], index)
    stencil = _stencil_of_tables(model, path, index, _SMALL_SHARE * size) or _stencil(model, path, index)
    moves = any(_moves(model, one) for one in stencil.models)
    touches = moves or any(one.contacts is not model.contacts for one in stencil.models)
    linear = None if moves else _with_slopes(model, stencil, size)
    return Change(stencil, size, moves, touches, linear)


def _stencil_of_tables(model: Model, path: str, index: tuple[int, ...], h: float) -> Stencil | None:
    """The stencil of two models of a number that changes only tables in which the residual is linear. None for other
    numbers; a number that had none for an earlier model of the same structure is not tried."""
    known = redesign_of(model).others
    if (path, index) in known:
        return None
    places, weights = _NEAR
    try:
        models = _models(model, path, index, tuple(c * h for c in places))
    except ModelError:
        return None  # a rule of the description allows values on one side only
    for one in models:
        if one.contacts is not model.contacts or one.spools is not model.spools or _moves(model, one):
            known.add((path, index))
            return None
    return Stencil(models, tuple(weight / h for weight in weights), tuple(c * h for c in places))


def _table(model: Model, name: str, field: str) -> np.ndarray:
    return getattr(getattr(model, name), field) if field else getattr(model, name)


def _linear_fields(model: Model, models: tuple[Model, ...]) -> list[tuple[str, str]]:
    """Tables in which the residual is linear and that differ in some of the models."""
    known = [(name, field) for name, names in _LINEAR.items() for field in names] + [("gravity", "")]
    return [x for x in known if any(_table(one, *x) is not _table(model, *x) for one in models)]


def _moves(model: Model, changed: Model) -> bool:
    """Whether a table differs in which the residual is not linear."""
    for item in fields(Model):
        a, b = getattr(model, item.name), getattr(changed, item.name)
        if a is b or item.name in (*_APART, "gravity"):
            continue
        if not is_dataclass(a):
            if not (isinstance(a, int | str) and a == b):
                return True
            continue
        free = (*_LINEAR.get(item.name, ()), *_UNREAD.get(item.name, ()))
        for part in fields(a):
            x, y = getattr(a, part.name), getattr(b, part.name)
            if part.name not in free and x is not y and not (isinstance(x, int | float | str) and x == y):
                return True
        if any(np.shape(getattr(a, field)) != np.shape(getattr(b, field)) for field in _LINEAR.get(item.name, ())):
            return True
    return False


def _with_slopes(model: Model, stencil: Stencil, size: float) -> Model:
    """The model without kinks with the tables T + P T' of (1)."""
    groups: dict[str, Any] = {}
    for name, field in _linear_fields(model, stencil.models):
        slope = sum(w * _table(one, name, field) for one, w in zip(stencil.models, stencil.weights))
        table = _table(model, name, field) + size * slope
        groups[name] = replace(groups.get(name, getattr(model, name)), **{field: table}) if field else table
    return _alone(without_kinks(model), **groups)


def changed_model(model: Model, path: str, change: np.ndarray) -> tuple[Model, float]:
    """The model with a changed design value, and the size of that value. change: in the shape of the value."""
    value, array = _value(model, path)
    size = 0.3 if is_pose(array) else float(np.abs(array).max(initial=0.0)) or 0.1
    for index in np.ndindex(*change.shape):
        if change[index] != 0.0:
            value = _changed(value, _value_of(value), index, float(change[index]))
    return described(model, model.description.with_({path: value})), size


def _value_of(value: Any) -> np.ndarray:
    """A value as an array. That of a function is its value at 0."""
    return np.asarray(value(0.0) if callable(value) else value, dtype=np.float64)


def _changed(value: Any, array: np.ndarray, index: tuple[int, ...], by: float) -> Any:
    """The value with one number, or one direction of a pose, changed by `by`. Its type stays the same."""
    if callable(value):
        return _changed_function(value, array, index, by)
    if is_pose(array):
        return array @ se3_exp(by * np.eye(6)[index[0]])
    out = array.copy()
    out[index] += by
    if array.ndim == 0:
        return float(out)
    return type(value)(out.tolist()) if isinstance(value, tuple | list) else out


def _changed_function(function: Any, array: np.ndarray, index: tuple[int, ...], by: float) -> Any:
    """A function whose values are changed by the same constant everywhere."""
    if is_pose(array):
        step = se3_exp(by * np.eye(6)[index[0]])
        return lambda s: np.asarray(function(s), dtype=np.float64) @ step
    step = np.zeros(array.shape)
    step[index] = by
    return lambda s: np.asarray(function(s), dtype=np.float64) + step
