"""Partial derivatives of functions of a state by design values, with the state held fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from lissom.errors import ModelError
from lissom.gradients.designs import Designs
from lissom.model.model import Model
from lissom.robot import checks


def design_derivatives(
    function: Callable[..., Any], model: Model, *args: Any, parameters: Sequence[str], **kwargs: Any
) -> dict[str, Any]:
    """Partial derivatives of function(model, *args, **kwargs) by design values, with the other arguments held fixed.

    Args:
        function: a function of a model that returns an array, a tuple of arrays or a result such as `Energy` or
            `InternalWrench`: `frame_pose`, `tendon_tensions`, `path_lengths`, `internal_wrench`, `energy`, or your own.
        model: one Model. args, kwargs: further arguments of the function, such as the state.
        parameters: paths of design values (`Robot.described_values`), numbers, arrays of numbers, poses or functions.
    Returns:
        Derivatives by path, in the form of the result: arrays of shape (*shape of the result, *shape of the value)
        [unit of the result per unit of the value]. The derivative by a pose is that by an increment (w; u) on its
        right, (6,); that by a function is the derivative by a constant that is added to it.
    Raises:
        ModelError: a path leads to no number, the model is a batch, or the function returns no numbers; and errors of
        the function.
    Accuracy: 1e-9 of the largest terms of the result, by differences of fourth order in which only the tables of the
    model change. It is wrong if a tendon becomes slack or a contact begins within 2e-4 of a design value. Cost: four
    calls for each number; the first time four models are built for each.
    """
    checks.require(isinstance(model, Model), "model", "must be one Model", model)
    paths = tuple(parameters)
    designs = Designs(model, paths, 1)
    slopes = []
    for stencil in designs.stencils[0]:
        results = []
        for changed in stencil.models:
            with changed.temporary_buffers():
                results.append(function(changed, *args, **kwargs))
        slopes.append(_combined(results, list(stencil.weights)))
    out, at = {}, 0
    for path, shape in designs.shapes.items():
        count = int(np.prod(shape))
        out[path] = _stacked(slopes[at : at + count], shape)
        at += count
    return out


def _combined(results: list[Any], weights: list[float]) -> Any:
    """The weighted sum of results of the same form."""
    first = results[0]
    if isinstance(first, tuple):
        return tuple(_combined(list(parts), weights) for parts in zip(*results))
    if is_dataclass(first) and not isinstance(first, type):
        names = [item.name for item in fields(first) if item.init and _is_array(getattr(first, item.name))]
        found = {name: _combined([getattr(one, name) for one in results], weights) for name in names}
        return replace(first, **found)
    try:
        parts = [weight * np.asarray(one, dtype=np.float64) for one, weight in zip(results, weights)]
    except (TypeError, ValueError):
        rule = "must return an array, a tuple of arrays or a result with arrays"
        raise ModelError(f"function: {rule} (got {type(first).__name__})") from None
    return np.sum(parts, axis=0)


def _is_array(value: Any) -> bool:
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _stacked(slopes: list[Any], shape: tuple[int, ...]) -> Any:
    """Derivatives by the numbers of a value of a shape, which become the last axes."""
    first: Any = slopes[0]
    if isinstance(first, tuple):
        return tuple(_stacked(list(parts), shape) for parts in zip(*slopes))
    if is_dataclass(first) and not isinstance(first, type):
        names = [item.name for item in fields(first) if item.init and _is_array(getattr(first, item.name))]
        return replace(first, **{name: _stacked([getattr(one, name) for one in slopes], shape) for name in names})
    out = np.zeros((*np.shape(slopes[0]), *shape))
    for index, slope in zip(product(*map(range, shape)), slopes):
        out[(..., *index)] = slope
    return out
