"""Functions of a Model that also take a ModelBatch."""

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

_MODEL_ATTRIBUTE = "nv"  # a Robot has no such attribute
P = ParamSpec("P")
R = TypeVar("R")
_SIZES = {"q": "nq", "q0": "nq", "q1": "nq", "u": "nu", "multipliers": "n_multipliers"}


def over_models(
    *arrays: str, batched: bool = False, as_tuple: bool = False, try_launch: Callable[..., Any] | None = None
) -> Callable[[Callable[Concatenate[Model, P], R]], Callable[Concatenate[Model | ModelBatch, P], R]]:
    """Decorator of a function of a Model that lets it take a ModelBatch.

    Args:
        arrays: names of its arguments (..., n) whose first leading axis is that of the models. The first of them is
            required if `batched`.
        batched: whether one call handles all models: it gets the common Model of the batch, and the first leading axis
            of its arguments is that of the models. Otherwise, and if models call Python, it is called for each model.
        as_tuple: whether results stay a tuple with one entry for each model, because their shapes mostly differ.
        try_launch: function of the arguments that computes the results of all models in one launch, as with `batched`,
            or returns None if it cannot. Then the decorated function is called for each model.
    """

    def decorate(function: Any) -> Any:
        known = signature(function)
        place = list(known.parameters).index("t") - 1 if "t" in known.parameters else None  # among those after model
        check = checks.time if place is not None and known.parameters["t"].annotation == "float" else checks.times

        @wraps(function)
        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            if place is not None:
                check(kwargs["t"] if "t" in kwargs else args[place] if len(args) > place else 0.0)
            if type(model) is not ModelBatch:
                if type(model) is Robot:
                    # Raise the error that asks for a Model. Some fields of a Robot have the names of groups of a Model.
                    getattr(model, _MODEL_ATTRIBUTE)
                return function(model, *args, **kwargs)
            bound = known.bind(model, *args, **kwargs)
            given = bound.arguments
            if batched:
                return for_models(function, given, *arrays)
            if try_launch is not None and not _calls_python(model):
                bound.apply_defaults()
                found = for_models(try_launch, bound.arguments, *arrays)
                if found is not None:
                    return found
            if as_tuple:
                return tuple(_results_of_models(function, given, arrays))
            return _model_by_model(function, given, arrays)

        return call

    return decorate


def _calls_python(batch: ModelBatch) -> bool:
    """Whether Python functions act on the models, so that each of them needs a call of its own."""
    return batch.common.calls_python or batch.common.fills_tables_before_launch


def for_models(function: Callable[..., R], given: dict[str, Any], *arrays: str) -> R:
    """The result of one call of a function for all models, or of a call for each model if models call Python.

    Short functions call this if their model is a ModelBatch, since a decorator costs time in each call.

    Args:
        function: takes the common Model of the batch, as with `over_models(..., batched=True)`.
        given: its arguments by name, as `locals()` gives them. arrays: as for `over_models`.
    """
    given = dict(given)
    batch = given["model"]
    if _calls_python(batch):
        return _model_by_model(function, given, arrays)
    return function(**(given | broadcast_arguments(batch, given, arrays) | {"model": batch.common}))


def _model_by_model(function: Any, given: dict[str, Any], arrays: tuple[str, ...]) -> Any:
    return stacked(given["model"], _results_of_models(function, given, arrays))


def _results_of_models(function: Any, given: dict[str, Any], arrays: tuple[str, ...]) -> list[Any]:
    """Results of a call for each model; a KeyboardInterrupt carries the finished ones and the partial last one."""
    batch: ModelBatch = given["model"]
    rows, found = broadcast_arguments(batch, given, arrays), []
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


def broadcast_arguments(batch: ModelBatch, given: dict[str, Any], arrays: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The given arguments among `arrays`, broadcast to common leading axes that begin with that of the models."""
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
    """Leading axes `lead` broadcast against the axis of the models of a batch, which is the first."""
    if not model.models:
        return lead
    return leading(arguments=np.zeros((*lead, 0)), models=np.zeros((len(model.models), *(1,) * (len(lead) - 1), 0)))


def stacked(batch: ModelBatch, results: list[Any]) -> Any:
    """The results of all models as one result, whose arrays have an axis of models in front; a tuple of the results if
    their shapes differ."""
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
        return np.stack(results) if isinstance(first, np.ndarray) else np.array(results)
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
