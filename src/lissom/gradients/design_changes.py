"""How a model changes with design values, and launches of many changed models on one set of tables.

The residual r is linear in the tables of inertia, weight, stiffness, damping and the fluid, and in gravity. If a design
value p changes only these tables T, the derivative

    r_p = (r(T + P T') − r(T)) / P                                                                        (1)

is exact for any P, here the size of p. T' is the derivative of the tables alone. It is a central difference of second
order if they are linear in p, and of fourth order otherwise, with an error of 1e-12. Other tables, such as lengths and
placements, move the robot. r is then differenced along the line of all tables that change,

    r_p = d/dε r(T + ε T') at ε = 0,                                                                      (2)

which equals the derivative along T(p) by the chain rule. Elastic and viscous forces K (q − q_rest) + D v of joints and
bodies are left out of (1) and (2), since their rounding errors in (2) would be the largest. Their derivative

    K' (q − q_rest) − K q_rest' + D' v                                                                    (3)

needs no launch. If numbers change that are in no table, such as functions of Python, r is differenced over p itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from lissom.bodies.body import DeformableBody
from lissom.errors import ModelError
from lissom.forces.terms import have_same_tables_of_terms
from lissom.launch.workspace import write_model
from lissom.lie.arrays import se3_exp
from lissom.model.model import Model, with_groups
from lissom.model.redesign import described, same_parts, same_values
from lissom.robot.paths import is_pose, number_at, size_of, with_each
from lissom.robot.robot import Robot

SHARE = 1e-4  # step of the differences over a value, or over the largest number of its array
# the same along a line of tables, where two points suffice: of lengths and places, which turn and move what hangs on
# them, and of laws of contacts, whose forces are large beside their derivatives
_LINE_SHARE, _LAW_SHARE = 1e-5, 5e-5
CENTRAL = ((-2.0, -1.0, 1.0, 2.0), (1.0 / 12.0, -8.0 / 12.0, 8.0 / 12.0, -1.0 / 12.0))
_NEAR = ((-1.0, 1.0), (-0.5, 0.5))
_ONE_SIDED = ((0.0, 1.0, 2.0, 3.0, 4.0), (-25.0 / 12.0, 4.0, -3.0, 4.0 / 3.0, -0.25))
_TABLE_SHARE = 5e-4  # the same for tables alone, which are smooth
_ROUNDING = 1e-14  # of tables, over their largest number
# tables in which the residual is linear, by group
_LINEAR = {
    "nodes": ("inertia", "dry", "heavy"),
    "elasticity": ("row_stiffness", "row_damping"),
    "dofs": ("armature", "rest"),
    "pose_springs": ("stiffness",),
    "fluid": ("added", "drag", "weightless", "displaced", "tail_mass"),
}
_ELASTIC = {"elasticity": ("row_stiffness", "row_damping"), "dofs": ("rest",)}  # of them, those of (3) alone
# fields that no residual reads; those of contacts and elastic tendons have derivatives of their own
_UNREAD = {
    "links": ("mass", "frame", "body"),
    "contacts": ("ball_s", "obstacle_s", "obstacle_shape"),
    "channels": ("actuator",),
    "dofs": ("scale", "neutral"),
    "elasticity": ("block_stiffness", "block_damping"),
}
# fields of Python functions, which kernels read if they call Python only
_OF_PYTHON = {"maps": ("pose",), "deforming": ("integrals", "place"), "pulls": ("bodies",)}
_APART = ("name", "description", "cache", "models", "rods", "frames")
_OF_KINKS = ("contacts", "spools")
# tables of contacts in which the variables of contact_designs are linear, where no node moves
_OF_PAIRS = ("ball_radius", "ball_position", "ball_normal", "ball_cell", "ball_squares", "pair_bow",
             "obstacle_size", "obstacle_placement")  # fmt: skip
# functions of time in tables, and the parts of a description that they come from
_FUNCTIONS = {("loads", "wrench"): "loads", ("prescribed", "functions"): "motions"}


@final
@dataclass(frozen=True)
class Stencil:
    """The difference stencil of one number of the description.

    Fields:
        models: models with changed values of the number.
        weights: weights of the models in the derivative.
        steps: increments of the number in the models.
    """

    models: tuple[Model, ...]
    weights: tuple[float, ...]
    steps: tuple[float, ...]


@final
@dataclass(frozen=True, eq=False)
class ElasticSlope:
    """The derivative (3) of elastic and viscous forces with respect to one number.

    Fields:
        stiffness, damping: K' and D' (nv, nv). offset: −K q_rest' (nv,).
    """

    stiffness: csr_array
    damping: csr_array
    offset: np.ndarray

    def force(self, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(3) at states (n, nq), (n, nv) of a model, (n, nv). Springs of spherical and free joints have other
        tables."""
        at = model.dofs.q
        deflection = np.where(at >= 0, q[:, at] - model.dofs.rest, 0.0)
        return (self.stiffness @ deflection.T + self.damping @ v.T).T + self.offset


@final
@dataclass(frozen=True, eq=False)
class Change:
    """How one number of the description changes the tables of a model.

    Fields:
        stencil: models from which the derivatives T' of the tables follow.
        size: P of (1).
        moves: whether tables change in which the residual is not linear.
        linear: the model without kinks with the tables T + P T' of (1); None if no such tables change, or if `ends`
            has all changes.
        elastic: (3); None if its tables do not change, or if `ends` has all changes.
        ends: the stencil of the residual, for numbers that move the robot and those of contacts. Its models are two
            with the tables of (2), or more with changed values of the number. None for other numbers.
    """

    stencil: Stencil
    size: float
    moves: bool
    linear: Model | None
    elastic: ElasticSlope | None
    ends: Stencil | None

    @cached_property
    def contact_tables(self) -> dict[str, np.ndarray]:
        """Derivatives of tables of contacts by their names, and of the `laws` of all pairs; empty without `ends`."""
        ends = self.ends
        if ends is None:
            return {}
        worlds = [one.contacts for one in ends.models]
        tables = {name: [getattr(world, name) for world in worlds] for name in _OF_PAIRS}
        tables["laws"] = [world.laws_of(np.arange(len(world.pair))) for world in worlds]
        return {name: np.tensordot(ends.weights, np.array(found), 1) for name, found in tables.items()}

    @cached_property
    def smooth(self) -> tuple[Model, ...]:
        """The models of `ends` without forces of contacts and elastic tendons."""
        return () if self.ends is None else tuple(map(without_kinks, self.ends.models))


def changes(model: Model, paths: tuple[str, ...]) -> list[Change]:
    """A Change for each number of the design values at `paths`, in order."""
    return model.cached(
        ("changes", paths), lambda: [_change(_precise(model, path), path, at) for path, at in _numbers(model, paths)]
    )


def _numbers(model: Model, paths: tuple[str, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """Path and index of each number of the design values at `paths`, in order."""
    return [(path, index) for path in paths for index in np.ndindex(*shape_of(model, path))]


def stencils(model: Model, paths: tuple[str, ...]) -> list[Stencil]:
    """A stencil of fourth order for each number of the design values at `paths`, in order."""
    return model.cached(
        ("stencils", paths), lambda: [_stencil(_precise(model, path), path, at) for path, at in _numbers(model, paths)]
    )


def _precise(model: Model, path: str) -> Model:
    """The model for differences over a path: if it leads to a body whose quadrature is reduced to few points, a model
    in which such bodies have all points. Few points integrate the body's functions, but not their derivatives with
    respect to design values."""
    links = model.description.links
    few = [name for name, link in links.items() if isinstance(link.body, DeformableBody) and link.body.has_few_points]
    if not few:
        return model
    (changed,) = with_each(model.description, path, [number_at(model.description, path)])
    is_of_bodies = any(changed.links[name].body is not links[name].body for name in few)
    return _with_all_points(model, few) if is_of_bodies else model


def _with_all_points(model: Model, few: list[str]) -> Model:
    def made() -> Model:
        robot, links = copy(model.description), model.description.links
        bodies = [(name, links[name].body) for name in few]
        wholes = {name: body.with_all_points() for name, body in bodies if isinstance(body, DeformableBody)}
        robot.links = links | {name: replace(links[name], body=body) for name, body in wholes.items()}
        return described(model, robot)

    return model.cached(("all points",), made)


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
        self.alike: WeakKeyDictionary[Model, Model] = WeakKeyDictionary()  # models that were written before

    def of(self, changed: Model) -> Model:
        """A model whose launches compute the changed model, until the next call; the changed model itself if its
        structure differs, it calls Python, or its tables are on another device than the CPU."""
        if self.is_apart:
            return changed
        same = self.alike.get(changed)
        if same is not None:
            return self.home if write_model(self.home, same, is_alike=True) else changed
        same = with_groups(changed, contacts=self.first.contacts, spools=self.first.spools)
        if not write_model(self.home, same):
            return changed
        self.alike[changed] = same
        return self.home


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


def shape_of(model: Model, path: str) -> tuple[int, ...]:
    """The shape of a design value; that of an increment, (6,), for a pose."""
    array = _value(model, path)[1]
    return (6,) if is_pose(array) else array.shape


def _sized(array: np.ndarray, index: tuple[int, ...] | None = None) -> float:
    """Size of a number of a design value, or of the largest one."""
    return 0.3 if is_pose(array) else size_of(array, index, default=0.1)


def _models(model: Model, path: str, index: tuple[int, ...], steps: tuple[float, ...]) -> tuple[Model, ...]:
    """The models with one number changed by each of some steps."""
    value, array = _value(model, path)
    values = [_changed(value, array, index, step) for step in steps]
    return tuple(_described(model, robot) for robot in with_each(model.description, path, values))


def _described(model: Model, robot: Robot) -> Model:
    """The model of a description that differs slightly from that of a model. Its deformable bodies keep the quadrature
    points of the first ones, which would jump otherwise."""
    links = {}
    for name, link in robot.links.items():
        first = model.description.links[name].body
        if isinstance(link.body, DeformableBody) and isinstance(first, DeformableBody) and link.body is not first:
            links[name] = replace(link, body=link.body.with_rules_of(first))
    if links:
        robot = copy(robot)
        robot.links = robot.links | links
    return described(model, robot)


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
    stencil = _table_stencil(model, path, index, _TABLE_SHARE * size)
    wide = _stencil(model, path, index) if stencil is None else None
    stencil = stencil or wide
    assert stencil is not None
    moves = any(_moves(model, one) for one in stencil.models)
    ends, moves_alone = wide, False
    if ends is None and (moves or any(_differs(model, one, "contacts") for one in stencil.models)):
        along = _along_tables(model, stencil, (_LINE_SHARE if moves else _LAW_SHARE) * size)
        ends, moves_alone = along or _stencil(model, path, index), along is not None
    linear = None if moves else _with_slopes(model, stencil, size)
    elastic = _elastic_slope(model, stencil) if moves_alone or not moves else None
    return Change(stencil, size, moves, linear, elastic, ends)


def _table_stencil(model: Model, path: str, index: tuple[int, ...], h: float) -> Stencil | None:
    """The stencil of tables, of two models if all are linear in the number and of four otherwise; None if a rule of the
    description allows values on one side only."""
    places, weights = _NEAR
    try:
        models = _models(model, path, index, tuple(c * h for c in places))
        if not _are_linear(model, *models):
            places, weights = CENTRAL
            far = _models(model, path, index, (places[0] * h, places[-1] * h))
            models = far[0], *models, far[1]
    except ModelError:
        return None
    return Stencil(models, tuple(weight / h for weight in weights), tuple(c * h for c in places))


def _are_linear(model: Model, before: Model, after: Model) -> bool:
    """Whether the tables are linear in the value: those of `model` are the mean of those of `before` and `after`, whose
    values are at equal distances on both sides. A table c h² of lengths h counts as linear if h is."""
    for name, field in _differing(model, (before, after)):
        T, low, high = (_table(x, name, field) for x in (model, before, after))
        if not (_is_real(T) and np.shape(low) == np.shape(high) == np.shape(T)):
            continue  # no table, or another structure
        if (name, field) == ("nodes", "kappa"):  # c h²: the central difference is exact where h is linear
            square = model.nodes.h**2
            low, high = (np.where(x.nodes.h > 0.0, kappa * square / x.nodes.h**2, kappa)
                         for x, kappa in ((before, low), (after, high)))  # fmt: skip
        bend, size = np.abs(0.5 * (low + high) - T), np.abs(T)
        if np.max(bend, initial=0.0) > _ROUNDING * np.max(size, initial=0.0):
            return False
    return True


def _differing(model: Model, changed: tuple[Model, ...]) -> Iterator[tuple[str, str]]:
    """Groups and fields that residuals read and that differ in some changed models."""
    for item in fields(Model):
        name, group = item.name, getattr(model, item.name)
        if name in _APART or all(getattr(one, name) is group for one in changed):
            continue
        for field in [part.name for part in fields(group)] if is_dataclass(group) else [""]:
            if field not in _unread(model, name) and not all(_is_same(model, x, name, field) for x in changed):
                yield name, field


def _is_same(model: Model, changed: Model, name: str, field: str) -> bool:
    """Whether a field of a group has the same effect on residuals in a changed model."""
    if same_values(_table(model, name, field), _table(changed, name, field)):
        return True
    before, after = model.description, changed.description
    kind = _FUNCTIONS.get((name, field))
    if kind:
        return same_parts(getattr(before, kind), getattr(after, kind))
    if (name, field) == ("fluid", "current") and before.fluid and after.fluid:
        return before.fluid.current is after.fluid.current
    return (name, field) == ("links", "joint") and have_same_tables_of_terms(model, changed)


def _unread(model: Model, name: str) -> tuple[str, ...]:
    """Fields of a group that no residual of the model reads."""
    more = () if model.calls_python or model.fills_tables_before_launch else _OF_PYTHON.get(name, ())
    return (*_UNREAD.get(name, ()), *more)


def _along_tables(model: Model, stencil: Stencil, h: float) -> Stencil | None:
    """The stencil of models with the tables T + ε T' of (2), without elastic forces; None if fields that are no tables
    change too."""
    if model.calls_python or model.fills_tables_before_launch:
        return None
    slopes: list[tuple[str, str, Any, Any]] = []
    for name, field in _differing(model, stencil.models):
        known, found = _table(model, name, field), [_table(one, name, field) for one in stencil.models]
        if not all(_is_real(x) and np.shape(x) == np.shape(known) for x in (known, *found)):
            return None
        if field not in _ELASTIC.get(name, ()):
            slopes.append((name, field, known, sum(w * x for x, w in zip(found, stencil.weights))))
    places, weights = _NEAR
    rigid = [("elasticity", name, np.zeros_like(getattr(model.elasticity, name))) for name in _ELASTIC["elasticity"]]
    models = tuple(_with_tables(model, [(*at, T + c * h * slope) for *at, T, slope in slopes] + rigid) for c in places)
    return Stencil(models, tuple(weight / h for weight in weights), tuple(c * h for c in places))


def _is_real(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == np.float64)


def _with_tables(model: Model, tables: list[Any]) -> Model:
    """The model with other tables, each given with the name of its group and its field."""
    groups: dict[str, Any] = {}
    for name, field, table in tables:
        groups[name] = replace(groups.get(name, getattr(model, name)), **{field: table}) if field else table
    return _alone(model, **groups)


def _differs(model: Model, changed: Model, name: str) -> bool:
    """Whether a group of tables has other values."""
    a, b = getattr(model, name), getattr(changed, name)
    return a is not b and not all(same_values(getattr(a, x.name), getattr(b, x.name)) for x in fields(a))


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
        if a is b or item.name in (*_APART, *_OF_KINKS, "gravity"):
            continue
        if not is_dataclass(a):
            if not same_values(a, b):
                return True
            continue
        free = (*_LINEAR.get(item.name, ()), *_unread(model, item.name))
        for part in fields(a):
            if part.name not in free and not _is_same(model, changed, item.name, part.name):
                return True
        if any(np.shape(getattr(a, field)) != np.shape(getattr(b, field)) for field in _LINEAR.get(item.name, ())):
            return True
    return False


def _with_slopes(model: Model, stencil: Stencil, size: float) -> Model | None:
    """The model without kinks with the tables T + P T' of (1), but for those of (3); None without such tables."""
    tables = []
    for name, field in _linear_fields(model, stencil.models):
        if field not in _ELASTIC.get(name, ()):
            tables.append((name, field, _table(model, name, field) + size * _slope(stencil, name, field)))
    return _with_tables(without_kinks(model), tables) if tables else None


def _slope(stencil: Stencil, name: str, field: str) -> np.ndarray:
    """The derivative T' of a table."""
    return np.sum([w * _table(one, name, field) for one, w in zip(stencil.models, stencil.weights)], axis=0)


def _elastic_slope(model: Model, stencil: Stencil) -> ElasticSlope | None:
    """(3) of one number; None if its tables do not change."""
    if not any((name, field) in _linear_fields(model, stencil.models) for name in _ELASTIC for field in _ELASTIC[name]):
        return None
    stiffness, damping = (_sparse(model, _slope(stencil, "elasticity", field)) for field in _ELASTIC["elasticity"])
    known, rest = _sparse(model, model.elasticity.row_stiffness), _slope(stencil, "dofs", "rest")
    return ElasticSlope(stiffness, damping, -(known @ np.where(model.dofs.q >= 0, rest, 0.0)))


def _sparse(model: Model, rows: np.ndarray) -> csr_array:
    """A matrix (nv, nv) from numbers of the compressed rows of a model."""
    return csr_array((rows, model.elasticity.column, model.elasticity.start), shape=(model.nv, model.nv))


def changed_model(model: Model, path: str, change: np.ndarray) -> tuple[Model, float]:
    """The model with a design value increased by `change`, in the shape of the value; and the size of that value."""
    value, array = _value(model, path)
    size = _sized(array)
    for index in np.ndindex(*change.shape):
        if change[index] != 0.0:
            value = _changed(value, _value_of(value), index, float(change[index]))
    model = _precise(model, path)
    return _described(model, model.description.with_({path: value})), size


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
