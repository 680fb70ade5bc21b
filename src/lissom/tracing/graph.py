"""Scalar operations of a JAX function, found by tracing it once.

JAX traces a user's function, and its own derivatives of it, to a jaxpr: a list of operations on small arrays. Here each
entry of an array becomes a node of a graph of scalar operations. Equal operations share one node, and operations on
known numbers are done at once: the zeros and ones of derivatives along unit vectors vanish. The nodes that remain are
few enough to become straight-line code (`tracing/native.py`).

Loops of a known length are unrolled. What depends on values in other ways, such as the length of a loop, random numbers
or calls of Python, is refused with the name of the operation.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, final

import numpy as np

MOST_COORDINATES = 24  # largest number of coordinates of a body or a pose that becomes native code
# 24 points resolve bending by three turns to rounding error. Native code takes LANES of them at a time.
_UNIT, _WEIGHTS = np.polynomial.legendre.leggauss(24)
GAUSS = 0.5 * (_UNIT + 1.0), 0.5 * _WEIGHTS  # places and weights of the nodes of an integral, on [0, 1]
_SWITCH, _TERMS = 16.0, 20  # of Stumpff functions: series of that many terms below this t, closed forms above
MOST_OPERATIONS = 200_000  # of a row or of a pose; the compiler needs some 20 s for as many
MOST_NODES = 400_000  # largest number of scalar operations, of which most compilers need minutes

LEAVES = frozenset({"number", "input", "variable"})  # nodes without operands
_COMMUTATIVE = frozenset({"add", "mul", "max", "min", "eq", "ne", "and", "or", "xor"})
_BITS = frozenset({"and", "or", "xor", "not", "reduce_and", "reduce_or", "reduce_xor"})  # bitwise for integers
_OF_FLAGS = {"max": "or", "min": "and", "ne": "xor", "reduce_max": "reduce_or", "reduce_min": "reduce_and"}

# Functions of numbers for each operation on nodes. Names are those of JAX where it has the operation.
_FOLDS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "pow": np.power,
    "rem": np.fmod, "max": np.maximum, "min": np.minimum, "atan2": np.arctan2,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt,
    "cbrt": np.cbrt, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc,
    "is_finite": np.isfinite, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "xor": np.logical_xor, "where": np.where, "stumpff": lambda t, k: stumpff_values(t, int(k), 1)[0],
}  # fmt: skip
_FLAT = frozenset({"is_finite", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "xor", "sign", "floor", "ceil",
                   "round", "trunc"})  # operations with derivatives zero  # fmt: skip


@final
class Refused(Exception):
    """Error for a function without a graph. The message names the operation, and a form of it that has a graph."""


def float64() -> Any:
    """A context in which JAX computes in float64, independent of the user's setting of JAX."""
    import jax

    try:
        return jax.enable_x64(True)
    except AttributeError:  # before version 0.8
        from jax.experimental import enable_x64  # pyright: ignore[reportAttributeAccessIssue]

        return enable_x64(True)


def require_few(count: int) -> None:
    """Raise Refused unless a number of operations is at most MOST_OPERATIONS."""
    if count > MOST_OPERATIONS:
        raise Refused(f"needs about {count} operations at a point, more than {MOST_OPERATIONS}")


# Operations whose result may be finite though an operand is not
_CHOOSES = _FLAT | {"where", "max", "min", "pow"}


@final
class Graph:
    """Nodes of scalar operations.

    A node is a number k with `nodes[k] = (operation, *operands)`: ("number", value), ("input", place), ("variable",
    number) or an operation on earlier nodes. Operands precede the node, so `nodes` is in an order of evaluation.
    ("integral", x, h, s) is ∫₀ˣ h ds, with a node h that depends on the variable s of the integral.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._replaced: dict[tuple[int, int], dict[int, int]] = {}

    def copy(self) -> Graph:
        """A graph with the same nodes, to which others can be added."""
        other = Graph()
        other.nodes, other._known = self.nodes.copy(), self._known.copy()
        return other

    def _node(self, key: tuple[Any, ...]) -> int:
        found = self._known.get(key)
        if found is None:
            if len(self.nodes) >= MOST_NODES:
                raise Refused(f"needs more than {MOST_NODES} scalar operations; write it with fewer or smaller arrays")
            found = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return found

    def number(self, value: float) -> int:
        """The node of a number. NaN and −0 have nodes of their own, too."""
        value = float(value)
        return self._node(("number", value, math.copysign(1.0, value) if value == 0.0 else repr(value)))

    def input(self, place: int) -> int:
        """The node of the input number `place`."""
        return self._node(("input", place))

    def variable(self) -> int:
        """The node of a new variable of an integral."""
        return self._node(("variable", len(self.nodes)))

    def integral(self, x: int, h: int, s: int) -> int:
        """The node of ∫₀ˣ h ds."""
        if self.value(h) is not None:
            return self.apply("mul", h, x)
        return self.number(0.0) if self.value(x) == 0.0 else self._node(("integral", x, h, s))

    def replaced(self, k: int, old: int, new: int) -> int:
        """Node k with the node `new` in place of the leaf `old`."""
        found = self._replaced.setdefault((old, new), {old: new})
        pending = [k]
        while pending:
            k = pending[-1]
            operation, *operands = self.nodes[k]
            missing = [] if operation in LEAVES else [x for x in operands if x not in found]
            if missing and k not in found:
                pending.extend(missing)
                continue
            pending.pop()
            if k not in found:
                found[k] = k if operation in LEAVES else self.again(operation, [found[x] for x in operands])
        return found[k]

    def again(self, operation: str, operands: Sequence[int]) -> int:
        """The node of any operation that is no leaf."""
        return self.integral(*operands) if operation == "integral" else self.apply(operation, *operands)

    def value(self, k: int) -> float | None:
        """The number of node k, or None."""
        node = self.nodes[k]
        return node[1] if node[0] == "number" else None

    def never_finite(self, nodes: Sequence[int]) -> list[int]:
        """The places of nodes that are infinite numbers, or not a number for any inputs. A number that `where` may
        choose does not count."""
        lost: set[int] = set()
        for k, (operation, *operands) in enumerate(self.nodes):
            if operation == "number":
                is_lost = math.isnan(operands[0])
            else:
                is_lost = operation not in LEAVES and operation not in _CHOOSES and not lost.isdisjoint(operands)
            if is_lost:
                lost.add(k)
        infinite = (k for k in nodes if self.value(k) is not None and math.isinf(self.value(k) or 0.0))
        wrong = lost | set(infinite)
        return [place for place, k in enumerate(nodes) if k in wrong]

    def apply(self, operation: str, *operands: int) -> int:
        """The node of an operation, simplified if operands are numbers."""
        values = [self.value(k) for k in operands]
        if all(value is not None for value in values):
            with np.errstate(all="ignore"):
                return self.number(float(_FOLDS[operation](*values)))
        simpler = self._simplified(operation, operands, values)
        if simpler is not None:
            return simpler
        return self._node((operation, *(sorted(operands) if operation in _COMMUTATIVE else operands)))

    def _simplified(self, operation: str, operands: Sequence[int], values: list[float | None]) -> int | None:
        """A node that equals the operation for all finite operands, or None."""
        if operation in ("add", "mul") and values[0] is None:
            operands, values = operands[::-1], values[::-1]
        if operation == "add":
            if values[0] == 0.0:
                return operands[1]
            for a, b in (operands, operands[::-1]):
                if self.nodes[a][0] == "neg":
                    return self.apply("sub", b, self.nodes[a][1])
        elif operation == "sub":
            if values[1] == 0.0:
                return operands[0]
            if values[0] == 0.0:
                return self.apply("neg", operands[1])
            if operands[0] == operands[1]:
                return self.number(0.0)
            if self.nodes[operands[1]][0] == "neg":
                return self.apply("add", operands[0], self.nodes[operands[1]][1])
        elif operation == "mul":
            if values[0] == 0.0:
                return self.number(0.0)
            if values[0] == 1.0:
                return operands[1]
            if values[0] == -1.0:
                return self.apply("neg", operands[1])
            negative = [self.nodes[k][0] == "neg" for k in operands]
            if any(negative):
                inner = [self.nodes[k][1] if is_negative else k for k, is_negative in zip(operands, negative)]
                product = self.apply("mul", *inner)
                return product if all(negative) else self.apply("neg", product)
        elif operation == "div":
            if values[0] == 0.0:
                return self.number(0.0)
            if values[1] == 1.0:
                return operands[0]
        elif operation == "neg" and self.nodes[operands[0]][0] == "neg":
            return self.nodes[operands[0]][1]
        elif operation == "where":
            if values[0] is not None:
                return operands[1] if values[0] else operands[2]
            if operands[1] == operands[2]:
                return operands[1]
        elif operation in ("and", "or", "xor"):
            known, k = (values[0], operands[1]) if values[0] is not None else (values[1], operands[0])
            if known is not None and operation == "xor":
                return self.apply("not", k) if known else k
            if known is not None:
                return k if (known != 0.0) == (operation == "and") else self.number(known)
        elif operation == "pow" and values[1] is not None and abs(values[1]) <= 64 and values[1] == int(values[1]):
            return self.power(operands[0], int(values[1]))
        return None

    def power(self, k: int, exponent: int) -> int:
        """The node of an integer power, by multiplication."""
        if exponent < 0:
            return self.apply("div", self.number(1.0), self.power(k, -exponent))
        if exponent == 0:
            return self.number(1.0)
        half = self.power(k, exponent // 2) if exponent > 1 else k
        if exponent == 1:
            return k
        square = self.apply("mul", half, half)
        return self.apply("mul", square, k) if exponent % 2 else square

    def sum(self, terms: Sequence[int]) -> int:
        """The node of a sum."""
        total = self.number(0.0)
        for k in terms:
            total = self.apply("add", total, k)
        return total

    def reached(self, results: Sequence[int], stops: Container[int] = ()) -> list[int]:
        """The nodes that results need, each after its operands; operands of `stops` are left out."""
        found: dict[int, None] = {}
        pending = list(results)
        while pending:
            k = pending.pop()
            if k not in found:
                found[k] = None
                if self.nodes[k][0] not in LEAVES and k not in stops:
                    pending.extend(self.nodes[k][1:])
        return sorted(found)

    def evaluated(self, results: Sequence[int], inputs: Mapping[int, Any]) -> list[np.ndarray]:
        """The values of nodes for values of the input nodes: arrays of one shape, or numbers."""
        shape = np.broadcast_shapes(*map(np.shape, inputs.values()))
        with np.errstate(all="ignore"):
            known = self._evaluated(results, dict(inputs))
        return [np.broadcast_to(np.asarray(known[k], dtype=np.float64), shape) for k in results]

    def _evaluated(self, results: Sequence[int], known: dict[int, Any]) -> dict[int, Any]:
        for k in self.reached(results, known):
            operation, *operands = self.nodes[k]
            if k in known or operation == "variable":
                continue
            if operation == "number":
                known[k] = operands[0]
            elif operation == "integral":
                x, h, s = operands
                if x in known:
                    at = np.reshape(GAUSS[0], (-1, *[1] * np.ndim(known[x])))
                    inner = self._evaluated([h], {**known, s: known[x] * at})
                    if h in inner:  # otherwise it depends on the variable of an outer integral
                        known[k] = np.tensordot(GAUSS[1], inner[h], 1) * known[x]
            elif all(x in known for x in operands):
                known[k] = _FOLDS[operation](*(known[x] for x in operands))
        return known

    def count(self, results: Sequence[np.ndarray]) -> int:
        """The number of operations that results need."""
        pending = [k for nodes in results for k in nodes.ravel().tolist()]
        seen: set[int] = set()
        while pending:
            k = pending.pop()
            if k not in seen and self.nodes[k][0] not in LEAVES:
                seen.add(k)
                pending.extend(self.nodes[k][1:])
        return len(seen)


_INTEGRAL, _STUMPFF = "lissom_integral", "lissom_stumpff"
_STATE = threading.local()


@contextmanager
def _tracing() -> Iterator[None]:
    """Makes `is_tracing` true in this thread."""
    before, _STATE.traces = is_tracing(), True
    try:
        yield
    finally:
        _STATE.traces = before


def is_tracing() -> bool:
    """Whether `run` traces a function in this thread, so that integrals must be those of `integral`."""
    return getattr(_STATE, "traces", False)


def integral(function: Callable[[Any, Any], Any], q: Any, x: Any) -> Any:
    """∫₀ˣ h(q, s) ds as one operation of a traced function.

    Args:
        function: h of q and of s, shape (m,), with values of shape (..., m).
        q: parameters, nested as JAX allows.
        x: upper limits, any shape.
    Returns:
        Integrals of shape (...) + x.shape.
    """
    import jax

    leaves, tree = jax.tree.flatten(q)

    def flat(*operands: Any) -> Any:
        return function(tree.unflatten(operands[:-1]), operands[-1])

    integrand = jax.make_jaxpr(flat)(*leaves, jax.numpy.zeros(1))
    return _primitive(_INTEGRAL).bind(*leaves, x, integrand=integrand)


def stumpff(t: Any, first: int, count: int) -> Any:
    """Stumpff functions c_k(t) = Σ (−t)^j/(2j + k)! for `count` values of k from `first`, stacked along a new first
    axis, as operations of a traced function. dc_k/dt = ½ (k c_(k+2) − c_(k+1))."""
    return _primitive(_STUMPFF).bind(t, first=first, count=count)


def stumpff_values(t: Any, first: int, count: int) -> Any:
    """The numbers of `stumpff`."""
    t = np.asarray(t, dtype=np.float64)
    small = t < _SWITCH
    low, root = np.where(small, t, 0.0), np.sqrt(np.where(small, _SWITCH, t))
    series, closed = [], [np.cos(root), np.sin(root) / root]
    for k in range(first + count):
        total = np.zeros_like(t)
        for j in reversed(range(_TERMS)):
            total = (-1.0) ** j / math.factorial(2 * j + k) + low * total
        series.append(total)
    for k in range(2, first + count):
        closed.append((1.0 / math.factorial(k - 2) - closed[k - 2]) / root**2)
    return np.stack([np.where(small, series[k], closed[k]) for k in range(first, first + count)])


@cache
def _primitive(name: str) -> Any:
    """A primitive of JAX that exists in traced functions only."""
    from jax.core import ShapedArray
    from jax.extend.core import Primitive
    from jax.interpreters.batching import primitive_batchers

    primitive = Primitive(name)

    def shaped(*operands: Any, **parameters: Any) -> Any:
        x = operands[-1]
        rows = parameters["integrand"].out_avals[0].shape[:-1] if name == _INTEGRAL else (parameters["count"],)
        return ShapedArray((*rows, *x.shape), x.dtype)

    def batched(operands: Any, axes: Any, **parameters: Any) -> Any:
        if any(axis is not None for axis in axes[:-1]):
            raise Refused("maps an integral over values of θ; write the loop out")
        out = primitive.bind(*operands, **parameters)
        return out, axes[-1] + out.ndim - operands[-1].ndim

    primitive.def_abstract_eval(shaped)
    primitive_batchers[primitive] = batched
    return primitive


def trace(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> tuple[Graph, list[np.ndarray]]:
    """The graph of a JAX function of arrays in float64.

    Args:
        function: function of arrays of the given shapes. It returns arrays, nested as JAX allows.
        shapes: shapes of its arguments. Their entries are the inputs 0, 1, 2, ... in this order.
    Returns:
        The graph, and the nodes of the entries of each returned array.
    Raises:
        Refused: an operation that has no scalar form.
    """
    graph = Graph()
    return graph, run(graph, function, inputs(graph, shapes))


def inputs(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Arrays of input nodes of the given shapes, numbered from 0 on."""
    ends = np.cumsum([0, *map(math.prod, shapes)]).tolist()
    found = [[graph.input(k) for k in range(first, end)] for first, end in pairwise(ends)]
    return [np.array(nodes, dtype=np.int64).reshape(shape) for nodes, shape in zip(found, shapes)]


def run(graph: Graph, function: Callable[..., Any], arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The nodes of the arrays that a JAX function returns for arrays of nodes.

    Raises:
        Refused: an operation that has no scalar form.
    """
    import jax

    with float64(), _tracing():
        closed = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(nodes.shape, np.float64) for nodes in arguments))
    interpreter = _Interpreter(graph)
    found = interpreter.run(closed, list(arguments))
    return [interpreter.counted(nodes) if aval.dtype.kind == "b" else nodes
            for nodes, aval in zip(found, closed.out_avals)]  # fmt: skip


@cache
def _slope(operation: str, place: int, count: int) -> tuple[Graph, int]:
    """The derivative of an operation with respect to its operand `place` of `count`, as a graph of its operands, by
    JAX."""
    import jax

    primitive = getattr(jax.lax, operation)
    graph, (found,) = trace(jax.grad(primitive, argnums=place), [()] * count)
    return graph, int(found)


def derivative(
    graph: Graph, nodes: np.ndarray, by: Sequence[int], rates: Sequence[Sequence[int]] | None = None
) -> np.ndarray:
    """The nodes of derivatives of nodes, by the chain rule, with the derivatives of operations from JAX.

    Args:
        by: input nodes.
        rates: directions, each with one node for each of `by`. None: the derivatives with respect to each of them.
    Returns:
        Nodes of shape nodes.shape + (number of directions,).
    """
    zero = graph.number(0.0)
    one = graph.number(1.0)
    rates = [[one if j == k else zero for j in range(len(by))] for k in range(len(by))] if rates is None else rates
    slopes: dict[int, list[int] | None] = {k: [rate[j] for rate in rates] for j, k in enumerate(by)}
    pending = nodes.ravel().tolist()
    while pending:
        k = pending[-1]
        operation, *operands = graph.nodes[k]
        if k in slopes or operation in LEAVES:
            slopes.setdefault(k, None)
            pending.pop()
            continue
        missing = [x for x in operands if x not in slopes]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        slopes[k] = _chain(graph, k, operation, operands, [slopes[x] for x in operands])
    flat = [slopes[k] or [zero] * len(rates) for k in nodes.ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(*nodes.shape, len(rates))


def _chain(
    graph: Graph, k: int, operation: str, operands: list[int], slopes: list[list[int] | None]
) -> list[int] | None:
    """The derivatives of node k along all directions from those of its operands; None if all are zero."""
    apply, zero = graph.apply, graph.number(0.0)
    if all(slope is None for slope in slopes) or operation in _FLAT:
        return None
    count = next(len(slope) for slope in slopes if slope is not None)
    given = [slope or [zero] * count for slope in slopes]
    if operation in ("add", "sub", "neg"):
        return [apply(operation, *parts) for parts in zip(*given)]
    if operation == "mul":
        x, y = operands
        return [apply("add", apply("mul", a, y), apply("mul", x, b)) for a, b in zip(*given)]
    if operation == "div":
        inverse = apply("div", graph.number(1.0), operands[1])  # one division for all directions
        return [apply("mul", apply("sub", a, apply("mul", k, b)), inverse) for a, b in zip(*given)]
    if operation == "stumpff":
        t, order = operands
        after = [apply("stumpff", t, apply("add", order, graph.number(k))) for k in (1.0, 2.0)]
        factor = apply("sub", apply("mul", order, after[1]), after[0])
        half = graph.number(0.5)
        return [apply("mul", apply("mul", half, factor), a) for a in given[0]]
    if operation == "integral":
        x, h, s = operands
        here = graph.replaced(h, s, x)
        return [apply("add", apply("mul", here, a), graph.integral(x, b, s)) for a, b, _ in zip(*given)]
    if operation in ("where", "max", "min"):
        which = operands[0] if operation == "where" else apply({"max": "ge", "min": "le"}[operation], *operands)
        return [apply("where", which, a, b) for a, b in zip(*given[-2:])]
    total = [zero] * count
    for place, slope in enumerate(given):
        if slopes[place] is not None:
            factor = _substituted(graph, *_slope(operation, place, len(operands)), operands)
            total = [apply("add", whole, apply("mul", factor, part)) for whole, part in zip(total, slope)]
    return total


def _substituted(graph: Graph, other: Graph, result: int, operands: list[int]) -> int:
    """A node of another graph, with nodes of this one for its inputs."""
    return int(copied(graph, other, np.array(result), operands))


def copied(graph: Graph, other: Graph, nodes: np.ndarray, operands: Sequence[int] | Mapping[int, int]) -> np.ndarray:
    """Nodes of another graph, with nodes of this one for its inputs."""
    found: dict[int, int] = {}
    for k in other.reached(nodes.ravel().tolist()):
        operation, *parts = other.nodes[k]
        if operation == "number":
            found[k] = graph.number(parts[0])
        elif operation == "input":
            found[k] = operands[parts[0]]
        else:
            found[k] = (
                graph.variable() if operation == "variable" else graph.again(operation, [found[x] for x in parts])
            )
    return np.array([found[k] for k in nodes.ravel().tolist()], dtype=np.int64).reshape(nodes.shape)


def _elementwise(operation: str) -> Callable[..., Any]:
    def run_each(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
        return self.each(operation, *operands)

    return run_each


@final
class _Interpreter:
    """Runs the operations of a jaxpr on arrays of nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def numbers(self, values: Any) -> np.ndarray:
        """The nodes of an array of numbers."""
        kind = getattr(values, "dtype", np.asarray(values).dtype)
        if getattr(kind, "kind", "") not in tuple("biuf"):
            raise Refused(_RANDOM if "key" in str(kind) else _reals(kind))
        values = np.asarray(values)
        flat = [self.graph.number(value) for value in values.ravel().astype(np.float64).tolist()]
        return np.array(flat, dtype=np.int64).reshape(values.shape)

    def known(self, nodes: np.ndarray) -> np.ndarray | None:
        """The numbers of nodes, or None if one depends on an input."""
        values = [self.graph.value(k) for k in nodes.ravel().tolist()]
        return None if None in values else np.array(values, dtype=np.float64).reshape(nodes.shape)

    def counted(self, flags: np.ndarray) -> np.ndarray:
        """The numbers 1 and 0 of flags."""
        return self.each("where", flags, self.numbers(1.0), self.numbers(0.0))

    def each(self, operation: str, *operands: np.ndarray) -> np.ndarray:
        """An operation on each entry of arrays that broadcast."""
        arrays = np.broadcast_arrays(*operands)
        apply = self.graph.apply
        flat = [apply(operation, *entries) for entries in zip(*(array.ravel().tolist() for array in arrays))]
        return np.array(flat, dtype=np.int64).reshape(arrays[0].shape)

    def run(self, closed: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
        """The results of a closed jaxpr."""
        jaxpr = closed.jaxpr
        found = dict(zip(jaxpr.constvars, map(self.numbers, closed.consts)))
        found |= dict(zip(jaxpr.invars, arguments))

        def read(atom: Any) -> np.ndarray:
            return self.numbers(atom.val) if hasattr(atom, "val") else found[atom]

        for equation in jaxpr.eqns:
            operands = [read(atom) for atom in equation.invars]
            for variable, result in zip(equation.outvars, self.results(equation, operands)):
                found[variable] = result
        return [read(atom) for atom in jaxpr.outvars]

    def results(self, equation: Any, operands: list[np.ndarray]) -> list[np.ndarray]:
        """The results of one operation of a jaxpr."""
        parameters, name = equation.params, str(equation.primitive.name)
        if name == "scan":
            return self.unrolled(operands, parameters)
        if name == "while":
            raise Refused("has a loop whose length depends on values; give lax.fori_loop a constant length")
        if name == "cond":
            return self.chosen(operands, parameters)
        if name == _INTEGRAL:
            return [self.integrated(operands, parameters["integrand"])]
        if name == _STUMPFF:
            orders = range(parameters["first"], parameters["first"] + parameters["count"])
            return [np.stack([self.each("stumpff", operands[0], self.numbers(float(k))) for k in orders])]
        if name.startswith(("random_", "threefry")):
            raise Refused(_RANDOM)
        if name in ("debug_print", "debug_callback"):
            raise Refused(f"prints ('{name}'); take the print out")
        for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
            if key in parameters:
                inner = parameters[key]
                inner = inner if hasattr(inner, "consts") else _closed(inner)
                special = _function_of_jax(name, inner.jaxpr)
                return self.run(inner, operands) if special is None else [special(self, *operands)]
        known = [self.known(operand) for operand in operands]
        kinds = {str(getattr(variable.aval.dtype, "kind", "")) for variable in equation.outvars}
        is_whole = kinds <= {"i", "u"}
        if is_whole and all(value is not None for value in known) and name not in _REARRANGES:
            return self.evaluated(equation, known)
        if is_whole and name in _BITS:
            raise Refused(f"takes bits of integers that depend on values ('{name}'); use where")
        if equation.invars and all(atom.aval.dtype == bool for atom in equation.invars):
            if name == "convert_element_type":
                return [self.counted(operands[0])] if kinds <= set("iuf") else operands
            if name in ("eq", "lt", "le", "gt", "ge", "select_n"):
                return [_of_flags(self, name, operands)]
            name = _OF_FLAGS.get(name, name)
        method = _OPERATIONS.get(name)
        if method is not None:
            result = method(self, operands, parameters)
            if is_whole and name in ("div", "rem", "pow", "sign"):
                result = self.each("trunc", result)
            return result if isinstance(result, list) else [result]
        if all(value is not None for value in known):
            return self.evaluated(equation, known)
        if name in _MOVES:
            return self.moved(equation, operands, known)
        if name == "scatter-add":
            return self.added(equation, operands, known)
        raise Refused(f"uses the operation '{name}', which has no compiled form; {_ADVICE.get(name, _OTHERWISE)}")

    def unrolled(self, operands: list[np.ndarray], parameters: dict[str, Any]) -> list[np.ndarray]:
        """A loop of known length."""
        length, stacked = parameters["length"], []
        if "ft_in" in parameters:  # since JAX 0.12
            fixed, carry, rows = map(list, parameters["ft_in"].update(operands).unpack())
        else:
            n_consts, n_carry = parameters["num_consts"], parameters["num_carry"]
            ends = n_consts, n_consts + n_carry
            fixed, carry, rows = operands[: ends[0]], operands[ends[0] : ends[1]], operands[ends[1] :]
        n_carry = len(carry)
        order = range(length - 1, -1, -1) if parameters["reverse"] else range(length)
        for k in order:
            out = self.run(parameters["jaxpr"], [*fixed, *carry, *(row[k] for row in rows)])
            carry = out[:n_carry]
            stacked.append(out[n_carry:])
        if parameters["reverse"]:
            stacked.reverse()
        return [*carry, *(np.stack(parts) for parts in zip(*stacked))]

    def integrated(self, operands: list[np.ndarray], integrand: Any) -> np.ndarray:
        """Integrals from 0 to each of the last operand."""
        *fixed, x = operands
        s = self.graph.variable()
        (h,) = self.run(integrand, [*fixed, np.array([s])])
        flat = [self.graph.integral(end, k, s) for k in h.ravel().tolist() for end in x.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(*h.shape[:-1], *x.shape)

    def chosen(self, operands: list[np.ndarray], parameters: dict[str, Any]) -> list[np.ndarray]:
        """A branch: the one of a known index; otherwise all of them, and a choice between their results."""
        index, *others = operands
        known = self.known(index)
        branches = parameters["branches"]
        if known is not None:
            return self.run(branches[int(np.clip(known, 0, len(branches) - 1))], others)
        results = self.run(branches[-1], others)
        for k in range(len(branches) - 2, -1, -1):
            here = self.each("le", index, self.numbers(float(k)))
            results = [self.each("where", here, a, b) for a, b in zip(self.run(branches[k], others), results)]
        return results

    def evaluated(self, equation: Any, known: list[Any]) -> list[np.ndarray]:
        """An operation on numbers, done by JAX; sums of integers and the like by NumPy, in no time."""
        import jax

        typed = [value.astype(atom.aval.dtype) for value, atom in zip(known, equation.invars)]
        name, kinds = equation.primitive.name, {value.dtype.kind for value in typed}
        if kinds <= set("iu") and name in _OF_INTEGERS:
            return [self.numbers(_OF_INTEGERS[name](*typed))]
        if kinds <= set("biu") and name == "convert_element_type":
            return [self.numbers(typed[0].astype(equation.params["new_dtype"]))]
        with jax.ensure_compile_time_eval(), float64():
            found = equation.primitive.bind(*typed, **equation.params)
        return [self.numbers(part) for part in (found if equation.primitive.multiple_results else [found])]

    def moved(self, equation: Any, operands: list[np.ndarray], known: list[Any]) -> list[np.ndarray]:
        """An operation that moves entries without changing them, done by JAX on the numbers of nodes."""
        import jax

        entries = _MOVES[equation.primitive.name]
        numbered = [k for k in range(len(operands)) if k in entries]
        if any(known[k] is None for k in range(len(operands)) if k not in numbered):
            raise Refused("takes an entry of an array by an index that depends on values; use where")
        with jax.ensure_compile_time_eval(), float64():
            typed = [
                operands[k] if k in numbered else known[k].astype(atom.aval.dtype)
                for k, atom in enumerate(equation.invars)
            ]
            outside = {"fill_value": -1} if "fill_value" in equation.params else {}
            found = np.array(equation.primitive.bind(*map(jax.numpy.asarray, typed), **{**equation.params, **outside}))
        if outside and equation.params["fill_value"] is not None:
            found[found < 0] = self.graph.number(float(equation.params["fill_value"]))
        if found.size and (found.min() < 0 or found.max() >= len(self.graph.nodes)):
            raise Refused(f"reads outside an array ('{equation.primitive.name}')")
        return [found.astype(np.int64)]

    def added(self, equation: Any, operands: list[np.ndarray], known: list[Any]) -> list[np.ndarray]:
        """Numbers added to entries of an array at known places (scatter-add)."""
        import jax

        target, _, updates = operands
        if known[1] is None:
            raise Refused("adds to entries of an array at an index that depends on values; use where")
        types = [atom.aval.dtype for atom in equation.invars]
        with jax.ensure_compile_time_eval(), float64():
            index = jax.numpy.asarray(known[1].astype(types[1]))
            units = np.eye(updates.size).reshape(updates.size, *updates.shape)
            blank = jax.numpy.zeros(target.shape)
            spread = jax.vmap(lambda unit: equation.primitive.bind(blank, index, unit, **equation.params))(units)
        out = target.ravel().copy()
        for k, row in enumerate(np.asarray(spread).reshape(updates.size, -1)):
            for place in np.flatnonzero(row):
                out[place] = self.graph.apply("add", int(out[place]), int(updates.ravel()[k]))
        return [out.reshape(target.shape)]

    def reduced(self, operation: str, operand: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        """An operation that is applied along axes."""
        kept = [k for k in range(operand.ndim) if k not in axes]
        count = math.prod(operand.shape[k] for k in axes)
        rows = operand.transpose([*axes, *kept]).reshape(count, *(operand.shape[k] for k in kept))
        if len(rows) == 0:
            empty = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf, "and": 1.0, "or": 0.0}[operation]
            return self.numbers(np.full(rows.shape[1:], empty))
        out = rows[0]
        for row in rows[1:]:
            out = self.each(operation, out, row)
        return out

    def cumulated(self, operation: str, operand: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
        """The running results of an operation along an axis."""
        rows = np.moveaxis(operand, parameters["axis"], 0)
        rows = rows[::-1] if parameters["reverse"] else rows
        found = [rows[0]] if len(rows) else []
        for row in rows[1:]:
            found.append(self.each(operation, found[-1], row))
        stacked = np.stack(found) if found else rows
        return np.moveaxis(stacked[::-1] if parameters["reverse"] else stacked, 0, parameters["axis"])

    def product(self, a: np.ndarray, b: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
        """Sums of products of two arrays over contracted axes."""
        (over_a, over_b), (batch_a, batch_b) = parameters["dimension_numbers"]
        own_a = [k for k in range(a.ndim) if k not in (*over_a, *batch_a)]
        own_b = [k for k in range(b.ndim) if k not in (*over_b, *batch_b)]
        sizes = [a.shape[k] for k in batch_a], [a.shape[k] for k in own_a], [b.shape[k] for k in own_b]
        count, batch = math.prod(a.shape[k] for k in over_a), math.prod(sizes[0])
        rows_a = a.transpose([*batch_a, *own_a, *over_a]).reshape(batch, math.prod(sizes[1]), count).tolist()
        rows_b = b.transpose([*batch_b, *own_b, *over_b]).reshape(batch, math.prod(sizes[2]), count).tolist()
        apply, total = self.graph.apply, self.graph.sum
        out = [
            total([apply("mul", x, y) for x, y in zip(row, column)])
            for left, right in zip(rows_a, rows_b)
            for row in left
            for column in right
        ]
        return np.array(out, dtype=np.int64).reshape(sum(map(tuple, sizes), ()))


def _closed(jaxpr: Any) -> Any:
    from jax.extend.core import ClosedJaxpr

    return ClosedJaxpr(jaxpr, ())


def _same(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> Any:
    return operands if len(operands) > 1 else operands[0]


def _reals(kind: Any) -> str:
    return f"has values of type {kind}; only real numbers can be compiled"


def _function_of_jax(name: str, jaxpr: Any) -> Callable[..., np.ndarray] | None:
    """The nodes of a function of JAX whose own operations have no derivatives at some numbers; None for others.

    Raises:
        Refused: the function has a rule of its own for derivatives, which its operations need not have.
    """
    if _is_of_jax(jaxpr, "sinc"):
        return _sinc
    if not name.startswith("custom_"):
        return None
    if _is_of_jax(jaxpr, "logaddexp"):
        return _log_of_sum
    if not _is_of_jax(jaxpr, "relu"):
        which = str(jaxpr.debug_info.func_src_info).partition(" at ")[0]
        raise Refused(f"has a rule of its own for derivatives ({name} of {which!r}); write it without the rule")
    return None


def _is_of_jax(jaxpr: Any, name: str) -> bool:
    """Whether operations are those of a function of JAX."""
    which, _, place = str(jaxpr.debug_info.func_src_info).partition(" at ")
    return which == name and "/jax/_src/" in place.replace("\\", "/")


def _sinc(self: _Interpreter, x: np.ndarray) -> np.ndarray:
    """sin(π x)/(π x), the Stumpff function c₁((π x)²)."""
    angle = self.each("mul", self.numbers(math.pi), x)
    return self.each("stumpff", self.each("mul", angle, angle), self.numbers(1.0))


def _log_of_sum(self: _Interpreter, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """ln(exp x + exp y), smooth where x = y."""
    which, gap = self.each("ge", x, y), self.each("sub", x, y)
    rest = self.each("exp", self.each("where", which, self.each("neg", gap), gap))
    found = self.each("add", self.each("where", which, x, y), self.each("log1p", rest))
    return self.each("where", self.each("eq", gap, gap), found, self.each("add", x, y))  # infinite x = y


def _logistic(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    """1/(1 + exp(−x)) without large numbers."""
    (x,) = operands
    one, positive = self.numbers(1.0), self.each("ge", x, self.numbers(0.0))
    small = self.each("exp", self.each("where", positive, self.each("neg", x), x))
    return self.each("div", self.each("where", positive, one, small), self.each("add", one, small))


def _rounded(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    """The nearest integer; of two, the even one, or the one away from zero."""
    (x,) = operands
    even = self.each("round", x)
    if int(parameters["rounding_method"]) == 1:
        return even
    between = self.each("eq", self.each("abs", self.each("sub", x, self.each("trunc", x))), self.numbers(0.5))
    away = self.each("add", x, self.each("mul", self.numbers(0.5), self.each("sign", x)))
    return self.each("where", between, away, even)


def _of_flags(self: _Interpreter, operation: str, operands: list[np.ndarray]) -> np.ndarray:
    """A comparison of two flags; or the second flag where the first one is zero, else the third (select_n)."""
    a, *others = operands
    b, each = others[0], self.each
    if operation == "eq":
        return each("not", each("xor", a, b))
    if operation in ("lt", "ge"):
        less = each("and", each("not", a), b)
        return less if operation == "lt" else each("not", less)
    if operation in ("gt", "le"):
        more = each("and", a, each("not", b))
        return more if operation == "gt" else each("not", more)
    return b if len(others) == 1 else each("or", each("and", a, others[1]), each("and", each("not", a), b))


def _converted(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    kind = np.dtype(parameters["new_dtype"]).kind
    if kind not in "biuf":
        raise Refused(_reals(parameters["new_dtype"]))
    if kind == "f":
        return operands[0]
    if kind == "b":
        return self.each("ne", operands[0], self.numbers(0.0))
    return self.each("trunc", operands[0])


def _broadcast(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    shape = [1] * len(parameters["shape"])
    for size, axis in zip(operands[0].shape, parameters["broadcast_dimensions"]):
        shape[axis] = size
    return np.broadcast_to(operands[0].reshape(shape), parameters["shape"])


def _padded(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    operand, value = operands
    shape, places, kept = [], [], []
    for size, (low, high, between) in zip(operand.shape, parameters["padding_config"]):
        first, span = max(low, 0), size + max(size - 1, 0) * between
        shape.append(first + span + max(high, 0))
        places.append(slice(first, first + span, between + 1))
        kept.append(slice(max(-low, 0), shape[-1] - max(-high, 0)))
    out = np.full(shape, value, dtype=np.int64)
    out[tuple(places)] = operand
    return out[tuple(kept)]


def _counted(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    shape, axis = parameters["shape"], parameters["dimension"]
    row = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return self.numbers(np.broadcast_to(row, shape))


def _slice(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    strides = parameters["strides"] or [1] * operands[0].ndim
    cut = zip(parameters["start_indices"], parameters["limit_indices"], strides)
    return operands[0][tuple(slice(*part) for part in cut)]


def _selected(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    which, *cases = operands
    if len(cases) > 2:
        raise Refused("chooses among more than two arrays (select_n); use where")
    return self.each("where", which, cases[1], cases[0]) if len(cases) == 2 else cases[0]


def _power(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    flat = [self.graph.power(k, int(parameters["y"])) for k in operands[0].ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(operands[0].shape)


def _polynomial(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    x, *coefficients = operands  # a_0, a_1, ...
    found = coefficients.pop()
    while coefficients:
        found = self.each("add", self.each("mul", found, x), coefficients.pop())
    return np.broadcast_to(found, np.broadcast_shapes(*(operand.shape for operand in operands)))


def _reduction(operation: str) -> Callable[..., Any]:
    return lambda self, operands, parameters: self.reduced(operation, operands[0], parameters["axes"])


def _cumulation(operation: str) -> Callable[..., Any]:
    return lambda self, operands, parameters: self.cumulated(operation, operands[0], parameters)


def _split(self: _Interpreter, operands: list[np.ndarray], parameters: dict[str, Any]) -> list[np.ndarray]:
    return np.split(operands[0], np.cumsum(parameters["sizes"])[:-1], axis=parameters["axis"])


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(name) for name in _FOLDS if name not in ("where", "pow", "trunc")},
    **dict.fromkeys(("copy", "copy_p", "reduce_precision", "optimization_barrier", "real", "device_put"), _same),
    "pow": _elementwise("pow"),
    "stop_gradient": _same,
    "integer_pow": _power,
    "square": lambda self, operands, parameters: self.each("mul", operands[0], operands[0]),
    "one_minus_square": lambda self, operands, parameters: self.each(
        "mul", self.each("sub", self.numbers(1.0), operands[0]), self.each("add", self.numbers(1.0), operands[0])
    ),
    "log2": lambda self, operands, parameters: self.each(
        "div", self.each("log", operands[0]), self.numbers(math.log(2.0))
    ),
    "polynomial": _polynomial,
    "rsqrt": lambda self, operands, parameters: self.each("div", self.numbers(1.0), self.each("sqrt", operands[0])),
    "logistic": _logistic,
    "round": _rounded,
    "clamp": lambda self, operands, parameters: self.each(
        "min", self.each("max", operands[1], operands[0]), operands[2]
    ),
    "add_any": _elementwise("add"),
    "select_n": _selected,
    "convert_element_type": _converted,
    "broadcast_in_dim": _broadcast,
    "reshape": lambda self, operands, parameters: operands[0].reshape(parameters["new_sizes"]),
    "squeeze": lambda self, operands, parameters: operands[0].squeeze(tuple(parameters["dimensions"])),
    "expand_dims": lambda self, operands, parameters: np.expand_dims(operands[0], parameters["dimensions"]),
    "transpose": lambda self, operands, parameters: operands[0].transpose(parameters["permutation"]),
    "rev": lambda self, operands, parameters: np.flip(operands[0], parameters["dimensions"]),
    "slice": _slice,
    "pad": _padded,
    "iota": _counted,
    "concatenate": lambda self, operands, parameters: np.concatenate(operands, axis=parameters["dimension"]),
    "stack": lambda self, operands, parameters: np.stack(operands, axis=parameters["axis"]),
    "split": _split,
    "unstack": lambda self, operands, parameters: list(np.moveaxis(operands[0], parameters["axis"], 0)),
    "dot_general": lambda self, operands, parameters: self.product(*operands, parameters),
    "reduce_sum": _reduction("add"),
    "reduce_prod": _reduction("mul"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    "reduce_and": _reduction("and"),
    "reduce_or": _reduction("or"),
    "cumsum": _cumulation("add"),
    "cumprod": _cumulation("mul"),
    "cummax": _cumulation("max"),
    "cummin": _cumulation("min"),
}
# Operations that only rearrange or copy entries, so that those on integers are the same.
_REARRANGES = frozenset({
    "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "rev", "slice", "concatenate", "stack",
    "split", "unstack", "iota", "select_n", "copy", "copy_p",
})  # fmt: skip
# Operations of NumPy on integers of one type, with the same overflow.
_OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
# Operations that move entries, with the operands that hold entries; the others are indices.
_MOVES: dict[str, tuple[int, ...]] = {
    "gather": (0,), "dynamic_slice": (0,), "dynamic_update_slice": (0, 1), "scatter": (0, 2),
}  # fmt: skip
_RANDOM = "draws random numbers; draw them outside the function and give it the numbers"
_OTHERWISE = "write it with arithmetic, functions of jax.numpy and where"
_SEARCH = ("jax.numpy.interp and searchsorted use it: write a curve with corners at x_k as a sum of slopes times "
           "maximum(x - x_k, 0)")  # fmt: skip
_ADVICE = {
    "lu": "write small systems out by Cramer's rule",
    "triangular_solve": "write small systems out by Cramer's rule",
    "cholesky": "write small systems out by Cramer's rule",
    "eigh": "use a form without eigenvalues",
    "svd": "use a form without singular values",
    "sort": "use minimum and maximum",
    "argmax": "use where",
    "argmin": "use where",
    "lt_to": _SEARCH,
    "le_to": _SEARCH,
    "pure_callback": "write the function with jax.numpy",
    "io_callback": "write the function with jax.numpy",
}
