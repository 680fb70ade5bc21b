"""Functions of a model that take a batch of models as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar, final

import numpy as np

from lissom.errors import of_instance
from lissom.launch.workspace import leading, stack
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks
from lissom.robot.robot import Robot

_OF_MODELS = "nv"  # an attribute that robots lack
P = ParamSpec("P")
R = TypeVar("R")
_SIZES = {"q": "nq", "q0": "nq", "q1": "nq", "u": "nu", "multipliers": "n_multipliers"}


def over_models(
    *arrays: str, together: bool = False, apart: bool = False
) -> Callable[[Callable[Concatenate[Model, P], R]], Callable[Concatenate[Model | ModelBatch, P], R]]:
    """Let a function of a model take a ModelBatch.

    Args:
        arrays: names of its arguments (..., n) whose first leading axis is that of the models. The first one of them is
            always given where `together`.
        together: whether the function itself takes the common Model of a batch, with leading axes that begin with that
            of the models; it is asked about one model after the other else, and where models call Python.
        apart: whether results stay a tuple, with one for each model, since they are seldom of the same shapes.
    """

    def decorate(function: Any) -> Any:
        known = signature(function)
        place = list(known.parameters).index("t") - 1 if "t" in known.parameters else None  # behind the model
        check = checks.time if place is not None and known.parameters["t"].annotation == "float" else checks.times

        @wraps(function)
        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            if place is not None:
                check(kwargs["t"] if "t" in kwargs else args[place] if len(args) > place else 0.0)
            if type(model) is not ModelBatch:
                if type(model) is Robot:
                    getattr(model, _OF_MODELS)  # raises the error that asks for a Model; groups have the same names
                return function(model, *args, **kwargs)
            given = known.bind(model, *args, **kwargs).arguments
            if together:
                return _together(function, given, arrays)
            return tuple(_each(function, given, arrays)) if apart else _one_by_one(function, given, arrays)

        return call

    return decorate


def for_models(function: Callable[..., R], given: dict[str, Any], *arrays: str) -> R:
    """What `over_models(..., together=True)` does, for functions that do not take long: these look themselves whether
    their `model` is a batch, and hand over their arguments, as `locals()` has them."""
    return _together(function, dict(given), arrays)


def _together(function: Any, given: dict[str, Any], arrays: tuple[str, ...]) -> Any:
    common = given["model"].common
    if common.calls_python or common.fills_tables_before_launch:
        return _one_by_one(function, given, arrays)
    return function(**(given | spread(given["model"], given, arrays) | {"model": common}))


def _one_by_one(function: Any, given: dict[str, Any], arrays: tuple[str, ...]) -> Any:
    return stacked(given["model"], _each(function, given, arrays))


def _each(function: Any, given: dict[str, Any], arrays: tuple[str, ...]) -> list[Any]:
    """Results of one model after the other; a KeyboardInterrupt carries those of all that have begun."""
    batch: ModelBatch = given["model"]
    rows, found = spread(batch, given, arrays), []
    for k, model in enumerate(batch):
        own = given | {name: x[k] for name, x in rows.items()} | {"model": model}
        try:
            with model.temporary_buffers(), of_instance(k, len(batch)):
                found.append(function(**own))
        except KeyboardInterrupt as stop:
            last = getattr(stop, "partial", None)
            stop.partial = (*found, *([] if last is None else [last])) or None  # type: ignore[attr-defined]
            raise
    return found


def spread(batch: ModelBatch, given: dict[str, Any], arrays: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those of the arguments that are given, each with all leading axes, of which the first is that of the models."""
    rows = {}
    for name in arrays:
        value = given.get(name)
        if value is not None:
            size = batch.nv + 1 if name == "along" else getattr(batch.common, _SIZES.get(name, "nv"))
            rows[name] = stack(name, value, size)
    lead = leading(**rows) if rows else ()
    models = np.zeros((len(batch), *(1,) * (len(lead) - 1), 1))
    lead = leading(**rows, models=models)
    return {name: np.broadcast_to(x, (*lead, x.shape[-1])) for name, x in rows.items()}


def lead_of_models(model: Model, lead: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes, the first of which is that of the models of a batch."""
    if not model.models:
        return lead
    return leading(arguments=np.zeros((*lead, 0)), models=np.zeros((len(model.models), *(1,) * (len(lead) - 1), 0)))


def stacked(batch: ModelBatch, results: list[Any]) -> Any:
    """Results of all models as one, whose arrays have the axis of the models in front; a tuple of them where they are
    not of the same shapes."""
    try:
        return _stacked(batch, results)
    except _Ragged:
        return tuple(results)


@final
class _Ragged(Exception):
    """Results have different shapes."""


def _stacked(batch: ModelBatch, results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, np.ndarray | np.generic | float | int):
        if len({np.shape(x) for x in results}) > 1:
            raise _Ragged
        return np.array(results)
    if isinstance(first, Model):
        return batch
    if is_dataclass(first) and not isinstance(first, type):
        parts = {item.name: [getattr(x, item.name) for x in results] for item in fields(first)}
        return replace(first, **{name: _stacked(batch, values) for name, values in parts.items()})
    if isinstance(first, tuple) and len({len(x) for x in results}) == 1:
        parts = [_stacked(batch, list(values)) for values in zip(*results)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if isinstance(first, str) and all(x == first for x in results):
        return first
    raise _Ragged
