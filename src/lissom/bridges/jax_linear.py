"""Linear functions outside of JAX's programs, each with its transpose: what derivatives forwards and backwards, mapped
and compiled, are made of.

A tangent y = L(x) dx is an operation of JAX's own kind, whose operands are what L depends on and dx. Forwards JAX
evaluates it; backwards it asks for Lᵀ, which is the same operation with the two functions in exchanged places. L at a
changed x has no rule, so that second derivatives are an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from lissom.bridges.jax_calls import asked
from lissom.errors import ModelError

Function = Callable[..., tuple[np.ndarray, ...]]
Shapes = tuple[tuple[int, ...], ...]


def linear(function: Function, transpose: Function, shapes: Any, at: tuple[Any, ...], along: tuple[Any, ...]) -> Any:
    """function(*at, *along), arrays of such shapes, linear in `along`; transpose(*at, *weights) returns what has the
    shapes of `along`. `jax.vmap` adds leading axes, of size 1 where one of `at` is the same for all."""
    options = {"function": function, "transpose": transpose, "shapes": tuple(map(tuple, shapes)), "many": len(at)}
    return tuple(_operation().bind(*at, *along, **options))


@lru_cache(maxsize=1)
def _operation() -> Any:
    """The operation with its rules, made when first used."""
    import jax
    from jax.core import ShapedArray
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    made = Primitive("lissom_linear")
    made.multiple_results = True

    def call(*x: Any, function: Function, transpose: Function, shapes: Shapes, many: int) -> Any:
        return asked(function, list(shapes), *x)

    def described(*x: Any, shapes: Shapes, **_: Any) -> Any:
        return [ShapedArray(shape, np.dtype(np.float64)) for shape in shapes]

    def pushed(primals: Any, tangents: Any, *, many: int, **more: Any) -> Any:
        if not all(isinstance(x, ad.Zero) for x in tangents[:many]):
            raise ModelError("functions of the library have no second derivatives in JAX, since it has none itself")
        ways = [ad.instantiate_zeros(x) for x in tangents[many:]]
        return made.bind(*primals, many=many, **more), made.bind(*primals[:many], *ways, many=many, **more)

    def pulled(weights: Any, *x: Any, function: Function, transpose: Function, shapes: Shapes, many: int) -> Any:
        ready = [ad.instantiate_zeros(w) for w in weights]
        own = tuple(tuple(y.aval.shape) for y in x[many:])
        back = made.bind(*x[:many], *ready, function=transpose, transpose=function, shapes=own, many=many)
        return [None] * many + list(back)

    def mapped(x: Any, axes: Any, *, shapes: Shapes, many: int, **more: Any) -> Any:
        size = next(y.shape[axis] for y, axis in zip(x, axes) if axis is not None)
        ready = []
        for k, (y, axis) in enumerate(zip(x, axes)):
            front = jax.numpy.expand_dims(y, 0) if axis is None else jax.numpy.moveaxis(y, axis, 0)
            ready.append(front if k < many else jax.numpy.broadcast_to(front, (size, *front.shape[1:])))
        out = made.bind(*ready, shapes=tuple((size, *shape) for shape in shapes), many=many, **more)
        return out, [0] * len(out)

    made.def_impl(lambda *x, **more: jax.jit(lambda *y: call(*y, **more))(*x))
    made.def_abstract_eval(described)
    mlir.register_lowering(made, mlir.lower_fun(call, multiple_results=True))
    ad.primitive_jvps[made] = pushed
    ad.primitive_transposes[made] = pulled
    batching.primitive_batchers[made] = mapped
    return made
