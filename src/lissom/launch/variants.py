"""Kernels with functions put in place of others: those of a robot's surroundings in place of the empty ones of hooks.

A kernel and the functions it calls are Python functions whose names Warp looks up. A variant is made of the same code
with other names bound, down to what is put in place; it is compiled as a module of its own, the first time a robot
needs it, and kept on disk by Warp like any other.
"""

from __future__ import annotations

from dis import get_instructions
from functools import reduce
from itertools import pairwise
from types import FunctionType, ModuleType
from typing import Any

import warp as wp

from lissom.forces import hooks, surroundings
from lissom.lie.types import kernel_options, mat3, vec3, vec6
from lissom.model.model import Model
from lissom.robot.forces import is_compiled

_made: dict[Any, Any] = {}


def variant(kernel: Any, model: Model) -> Any:
    """The kernel that a model needs."""
    world, laws = model.surroundings, model.springs.compiled
    if not model.meets_anything:
        return kernel
    own = world.current if is_compiled(world.current) else None
    key = (kernel.key, kernel.module.name, world.compiled, own, laws)
    if key not in _made:
        _made[key] = _kernel(kernel, _replacements(world.compiled, own, laws))
    return _made[key]


def _replacements(compiled: tuple[Any, ...], current: Any, laws: tuple[Any, ...]) -> dict[Any, Any]:
    """What is put in place of each hook."""
    users = {}
    if compiled:
        users[hooks.force_of_user] = _chosen(compiled, _either_force)
    if laws:
        users[hooks.law_of_user] = _chosen(laws, _either_law)
    if current is not None:
        users[hooks.current_of_user] = current
    names = (
        "add_surroundings",
        "respond_to_surroundings",
        "with_response",
        "couple_touching",
        "change_by_surroundings",
        "renew_surroundings",
    )
    made: dict[Any, Any] = dict(users)
    return users | {getattr(hooks, name): _function(getattr(surroundings, name), made) for name in names}


def _chosen(functions: tuple[Any, ...], either: Any) -> Any:
    """One function that calls the one of a number."""
    return reduce(either, reversed(list(enumerate(functions))), None)


def _either_force(other: Any, numbered: tuple[int, Any]) -> Any:
    number, function = numbered
    if other is None:

        @wp.func(module="unique")
        def last(which: int, R: mat3, p: vec3, eta: vec6, at: wp.float64, time: wp.float64) -> vec6:
            return function(R, p, eta, at, time)

        return last
    here = wp.constant(wp.int32(number))

    @wp.func(module="unique")
    def either(which: int, R: mat3, p: vec3, eta: vec6, at: wp.float64, time: wp.float64) -> vec6:
        if which == here:
            return function(R, p, eta, at, time)
        return other(which, R, p, eta, at, time)

    return either


def _either_law(other: Any, numbered: tuple[int, Any]) -> Any:
    number, function = numbered
    if other is None:

        @wp.func(module="unique")
        def last(which: int, length: wp.float64, rate: wp.float64) -> wp.float64:
            return function(length, rate)

        return last
    here = wp.constant(wp.int32(number))

    @wp.func(module="unique")
    def either(which: int, length: wp.float64, rate: wp.float64) -> wp.float64:
        if which == here:
            return function(length, rate)
        return other(which, length, rate)

    return either


def _kernel(kernel: Any, made: dict[Any, Any]) -> Any:
    code = _rebound(kernel.func, made)
    if code is None:
        return kernel
    return wp.kernel(code, module="unique", module_options=kernel_options())


def _function(function: Any, made: dict[Any, Any]) -> Any:
    """A Warp function with `made` in the place of what it calls; itself where it calls none of these."""
    if function not in made:
        code = None if function.native_snippet is not None else _rebound(function.func, made)
        made[function] = function if code is None else _put(code, function)
    return made[function]


def _put(code: FunctionType, old: Any) -> Any:
    """The Warp function of a Python function that takes the place of an old one, inlined or not as that is."""
    hint = {None: None, "noinline": False, "forceinline": True}[old.inline_hint]
    return wp.func(module="unique", inline=hint)(code)


def _rebound(code: FunctionType, made: dict[Any, Any]) -> FunctionType | None:
    """The same Python function with other names bound; None where none is."""
    bound: dict[str, Any] = {}
    steps = list(get_instructions(code))
    for step, after in pairwise(steps):
        value = code.__globals__.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
        if isinstance(value, wp.Function):
            bound[step.argval] = _function(value, made)
        elif isinstance(value, ModuleType) and value.__name__.startswith("lissom."):
            part = getattr(value, after.argval, None)
            if isinstance(part, wp.Function):
                setattr(bound.setdefault(step.argval, _copied(value)), after.argval, _function(part, made))
    if all(_same(value, code.__globals__[name]) for name, value in bound.items()):
        return None
    out = FunctionType(code.__code__, {**code.__globals__, **bound}, code.__name__, code.__defaults__, code.__closure__)
    out.__annotations__, out.__qualname__, out.__doc__ = code.__annotations__, code.__qualname__, code.__doc__
    out.__module__ = code.__module__
    return out


def _copied(module: ModuleType) -> ModuleType:
    """A module with the same names."""
    out = ModuleType(module.__name__)
    vars(out).update(vars(module))
    return out


def _same(new: Any, old: Any) -> bool:
    """Whether a name means what it did; of a module, all its names."""
    if isinstance(new, ModuleType):
        return all(value is getattr(old, name) for name, value in vars(new).items())
    return new is old
