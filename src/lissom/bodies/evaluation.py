"""Evaluation of motions at material points, with shared JAX functions and a cache of results by state.

The points belong to a quadrature, to frames and to tendons. They are arguments of compiled functions, in rows of one
length that are filled up with the first point. So all bodies of the same kinematics share compiled functions. Several
bodies with the same points are evaluated in one call, each at its own θ: the overhead of a call equals some hundred
operations on a row. Results are cached by state, so that launches, integrals, frames and tendons at one state call JAX
once.

The choice of a quadrature tries many rules, and JAX would compile a function for each number of points. So `Samples`
pass points through compiled functions in chunks of one size. Motions that need no JAX, and those that are traced to
scalar operations, are evaluated by NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeVar, final
from weakref import WeakValueDictionary

import numpy as np

from lissom.bodies.jets import FirstDerivatives, SecondDerivatives, packed, unpacked, value_and_jacobian
from lissom.robot.poses import captured, compiled
from lissom.tracing.graph import MOST_COORDINATES, Graph, Refused, derivative, inputs, require_few, run

Made = TypeVar("Made")
_known: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
_UNIT = 16  # row lengths are multiples of this number
_LONGEST = 256  # length of long rows
_SHORT = 128  # a row with more points is filled up to _LONGEST, so that its function is compiled once
_EXTRA_POINTS = 56  # places of a row for points of frames and tendons, in addition to quadrature points
_KEPT = 64  # entries (row, state) of a cache
_CHUNK = 256  # points in one call of `in_chunks`
_POINTS_AT_A_TIME = 1024  # points that NumPy evaluates at a time
# At each barrier in the code XLA computes a shared value once, instead of once for each use
_ONCE = {"xla_disable_hlo_passes": "cse_barrier_expander"}


def shared_by_equals(make: Callable[..., Made], *parts: Any) -> Made:
    """The object `make(*parts)`. While it lives, equal parts return the same object."""
    key = (make, *map(_identity, parts))
    found = _known.get(key)
    return _known.setdefault(key, make(*parts)) if found is None else found


def equal(a: Any, b: Any) -> bool:
    """Whether two descriptions are equal. A function is equal only to itself."""
    return a is b or (type(a) is type(b) and _identity(a) == _identity(b))


def _identity(part: Any) -> Any:
    """A key that is equal for equal descriptions. A function is equal only to itself, with the data that it reads."""
    if is_dataclass(part) and not isinstance(part, type):
        return type(part), *(_identity(getattr(part, field.name)) for field in fields(part))
    if isinstance(part, list | tuple):
        return tuple(map(_identity, part))
    if isinstance(part, Mapping):
        return tuple((key, _identity(value)) for key, value in part.items())
    if isinstance(part, np.ndarray):
        return part.shape, part.tobytes()
    try:
        hash(part)
    except TypeError:
        return id(part)
    return (part, captured(part)) if callable(part) else part


def memoized(function: Callable[..., Any], count: int = 16) -> Callable[..., list[np.ndarray]]:
    """A function of arrays that returns several NumPy arrays, with a cache of the last `count` results."""
    known: OrderedDict[tuple[bytes, ...], list[np.ndarray]] = OrderedDict()

    def call(*arguments: np.ndarray) -> list[np.ndarray]:
        key = tuple(part.tobytes() for part in arguments)
        if key not in known:
            known[key] = [np.asarray(part) for part in function(*arguments)]
            if len(known) > count:
                known.popitem(last=False)
        return known[key]

    return call


def one_by_one(function: Callable[..., Any], *arguments: Any) -> Any:
    """Evaluate a function for one body after another, along the first axis of its arguments; lists are stacked.

    The intermediate results of one body fit into the processor's cache. A call for all bodies at the same time would
    take longer.
    """
    import jax
    import jax.numpy as jnp

    if len(arguments[0]) == 1:
        return function(*(x[0] for x in arguments))[None]
    return jax.lax.map(lambda rows: function(*rows), [jnp.stack(x) if isinstance(x, list) else x for x in arguments])


@final
class BatchedFunction:
    """A function that returns several arrays, evaluated for several bodies in one call of JAX, which returns one array.

    Args:
        function: function of the arguments that all bodies share, followed by the arguments of one body.
        common: number of shared arguments.
    """

    def __init__(self, function: Callable[..., Any], common: int = 0) -> None:
        self.function, self.common = function, common
        self._shapes: list[tuple[int, ...]] = []  # of its results, once it is compiled
        self._compiled = compiled(self._all)

    def __call__(self, *arguments: Any) -> list[np.ndarray]:
        """The results, with the bodies along the first axis. In the arguments of the bodies, the bodies are also along
        the first axis."""
        flat, parts, first = np.asarray(self._compiled(*arguments)), [], 0
        for shape in self._shapes:
            size = prod(shape)
            parts.append(flat[:, first : first + size].reshape(len(flat), *shape))
            first += size
        return parts

    def _all(self, *arguments: Any) -> Any:
        import jax.numpy as jnp

        def one(*own: Any) -> Any:
            found = [jnp.asarray(part) for part in self.function(*arguments[: self.common], *own)]
            self._shapes[:] = [part.shape for part in found]
            return jnp.concatenate([part.ravel() for part in found])

        return one_by_one(one, *arguments[self.common :])


@final
@dataclass(frozen=True, eq=False)
class CompiledDerivatives:
    """Derivatives, with respect to θ, of points that move by a ComposedKinematics, as functions compiled by JAX."""

    kinematics: Any

    @cached_property
    def _structure(self) -> list[Any]:
        """The tree structure of the jets, and the values of their constant leaves, after compilation."""
        return []

    @cached_property
    def jets(self) -> Callable[..., Any]:
        """Jets of the composed motions as a function of points (m, 3) and θ."""
        import jax
        import jax.numpy as jnp

        def stacked(points: Any, q: Any) -> Any:
            leaves, tree = jax.tree.flatten(self.kinematics.jets(points, q))
            self._structure[:] = [tree, [x if isinstance(x, float) else None for x in leaves]]
            rows = [jnp.broadcast_to(x, len(points)) for x in leaves if not isinstance(x, float)]
            return jnp.stack(jax.lax.optimization_barrier(rows))

        return compiled(stacked, **_ONCE, xla_cpu_use_fusion_emitters=True)

    @cached_property
    def first(self) -> Callable[..., Any]:
        """Packed FirstDerivatives of each body, as a function of jets, points and θ̇ (k, n)."""
        function = compiled(lambda *state: self._packed(self.kinematics.first_from, *state), **_ONCE)
        return lambda jets, points, v: [function(*own, points, rate) for *own, rate in zip(jets, v)]

    @cached_property
    def second(self) -> Callable[..., Any]:
        """Packed SecondDerivatives of all bodies in one array, as a function of jets, points and θ̇ (k, n)."""

        def second(jets: Any, points: Any, v: Any) -> Any:
            return one_by_one(lambda own, rate: self._packed(self.kinematics.second_from, own, points, rate), jets, v)

        return compiled(second, **_ONCE)

    def _packed(self, function: Callable[..., Any], jets: Any, points: Any, v: Any) -> Any:
        (tree, constants), rows = self._structure, iter(jets)
        given = tree.unflatten([next(rows) if x is None else x for x in constants])
        return packed(function(given, points, v))


class Places(NamedTuple):
    """Indices of points (m,), and for each the index of its body among the k bodies of a call."""

    number: np.ndarray
    body: np.ndarray


@final
class _Row:
    """Packed derivatives of one row of points of several bodies at one θ̇, and of selected points of the row."""

    def __init__(self, rate: bytes, found: Any) -> None:
        self.rate, self.found = rate, found
        self._picked: dict[tuple[bytes, bytes], np.ndarray] = {}

    def picked(self, number: np.ndarray, body: np.ndarray) -> np.ndarray:
        """Packed derivatives of selected points, along the last axis."""
        key = number.tobytes(), body.tobytes()
        if key not in self._picked:
            found = [np.asarray(x) for x in self.found] if isinstance(self.found, list) else np.asarray(self.found)
            picked = self._picked[key] = np.empty((len(found[0]), len(number)))
            for b in set(body.tolist()):
                at = np.flatnonzero(body == b)
                picked[:, at] = found[b][:, number[at]]
        return self._picked[key]


@final
class _Rows:
    """A function of jets, points and θ̇ on rows of points, with a cache of recent states.

    Args:
        function: function of jets, points and θ̇ (k, n).
        given: function that returns jets and points of a row at θ (k, n).
        size: length of a row.
    """

    def __init__(self, function: Callable[..., Any], given: Callable[[int, np.ndarray], Any], size: int) -> None:
        self.function, self.given, self.size = function, given, size
        self._found: OrderedDict[tuple[int, bytes], _Row] = OrderedDict()

    def numbers_of_rows(self, numbers: np.ndarray) -> list[int]:
        """Indices of the rows that hold the points, in ascending order."""
        return sorted(set((numbers // self.size).tolist()))

    def has(self, row: int, q: np.ndarray) -> bool:
        """Whether a row is in the cache at θ = q."""
        return (row, q.tobytes()) in self._found

    def get(self, row: int, q: np.ndarray, v: np.ndarray | None) -> _Row:
        """The row at θ = q and θ̇ = v. With v None, a cached row at any θ̇ is returned."""
        key, rate = (row, q.tobytes()), b"" if v is None else v.tobytes()
        known = self._found.get(key)
        if known is None or not (v is None or known.rate == rate):
            found = self.function(*self.given(row, q), np.zeros_like(q) if v is None else v)
            known = self._found[key] = _Row(rate, found)
            _forget_oldest(self._found, len(q))
        return known

    def picked(self, places: Places, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Packed derivatives of selected points, as a NumPy array with the points along the last axis."""
        rows = self.numbers_of_rows(places.number)
        if len(rows) == 1:
            return self.get(rows[0], q, v).picked(places.number - rows[0] * self.size, places.body)
        there = places.number // self.size
        parts = [np.flatnonzero(there == row) for row in rows]
        found = [self.get(row, q, v).picked(places.number[at] - row * self.size, places.body[at])
                 for row, at in zip(rows, parts)]  # fmt: skip
        return np.concatenate(found, axis=1)[:, np.argsort(np.concatenate(parts))]

    def forget(self) -> None:
        """Clear the cache."""
        self._found.clear()


def _forget_oldest(found: OrderedDict[tuple[int, bytes], Any], bodies: int) -> None:
    """Remove the oldest state of a full cache. The more bodies a state has, the fewer states are kept."""
    if len(found) > max(_KEPT // bodies, 4):
        found.popitem(last=False)


@final
class EvaluatedPoints:
    """The points of a body with their derivatives; quadrature points come first.

    Args:
        motion: derivatives of the body's kinematics.
        points: quadrature points, shape (N, 3) [m].
        longest: True gives rows the length _LONGEST even for few points.
    """

    def __init__(self, motion: CompiledDerivatives, points: np.ndarray, *, longest: bool = False) -> None:
        self.count = len(points)
        self.size = float(np.ptp(points, axis=0).max()) or 1.0
        self._points = list(points)
        self._number: dict[bytes, int] = {}
        length = -(-(len(points) + _EXTRA_POINTS) // _UNIT) * _UNIT
        length = _LONGEST if longest or length > _SHORT else length
        self._jets = motion.jets
        self._given: OrderedDict[tuple[int, bytes], tuple[Any, np.ndarray]] = OrderedDict()
        self._first, self._second = (_Rows(find, self._of_row, length) for find in (motion.first, motion.second))

    def _of_row(self, row: int, q: np.ndarray) -> tuple[Any, np.ndarray]:
        """Jets and points of a row, filled up with its first point."""
        key = row, q.tobytes()
        if key not in self._given:
            size = self._first.size
            some = np.array(self._points[row * size : (row + 1) * size])
            filled = np.concatenate([some, np.repeat(some[:1], size - len(some), axis=0)])
            self._given[key] = [self._jets(filled, theta) for theta in q], filled
            _forget_oldest(self._given, len(q))
        return self._given[key]

    def numbers(self, points: np.ndarray) -> np.ndarray:
        """Indices of points (m, 3). New points are appended."""
        for x in points:
            if x.tobytes() not in self._number:
                self._number[x.tobytes()] = len(self._points)
                self._points.append(x.copy())
                for part in (self._first, self._second):
                    part.forget()
                self._given.clear()
        return np.array([self._number[x.tobytes()] for x in points], dtype=np.int64)

    def of_quadrature(self, q: np.ndarray) -> FirstDerivatives:
        """Derivatives of the quadrature points at θ = q (n,), as NumPy arrays. The fields h and F_h belong to an
        arbitrary θ̇ and must not be used."""
        numbers = np.arange(self.count)
        rows = self.packed_first(Places(numbers, np.zeros_like(numbers)), q[None], None)
        return unpacked(FirstDerivatives, rows, len(q))

    def packed_first(self, places: Places, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Packed FirstDerivatives of points of k bodies at θ = q (k, n) and θ̇ = v (k, n), points along the last axis.
        With v None, the fields h and F_h belong to an arbitrary θ̇."""
        if v is None and all(self._second.has(row, q) for row in self._second.numbers_of_rows(places.number)):
            x = unpacked(SecondDerivatives, self.packed_second(places, q, None), q.shape[1])
            x = FirstDerivatives(x.p, x.F, x.J, x.F_j, np.zeros_like(x.p), np.zeros_like(x.F))
            return np.concatenate([part.reshape(-1, part.shape[-1]) for part in x])
        return self._first.picked(places, q, v)

    def packed_second(self, places: Places, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Packed SecondDerivatives of points of k bodies at θ = q (k, n) and θ̇ = v (k, n), points along the last axis.
        With v None, the field h_q belongs to an arbitrary θ̇."""
        return self._second.picked(places, q, v)

    def by_row(self, kind: type[Any], q: np.ndarray, v: np.ndarray) -> list[Any]:
        """Packed derivatives (`kind` is FirstDerivatives or SecondDerivatives) of the rows that hold the quadrature
        points, at θ = q (k, n), as JAX arrays."""
        rows = self._first if kind is FirstDerivatives else self._second
        return [rows.get(row, q, v).found for row in range(-(-self.count // rows.size))]

    def weights(self, weights: np.ndarray) -> list[np.ndarray]:
        """Quadrature weights (N,) divided into rows; zero for other points."""
        size = self._first.size
        return list(np.pad(weights, (0, -len(weights) % size)).reshape(-1, size))


class Samples(ABC):
    """Points (N, 3) of a motion, evaluated with NumPy arrays.

    Law: positions p and gradients F = ∂f/∂x, with exact derivatives with respect to θ. F may differ by a rotation from
    the left.
    """

    @abstractmethod
    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p (N, 3) and ∂p/∂θ (N, 3, n) at θ = q."""

    @abstractmethod
    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F (N, 3, 3) and ∂F/∂θ (N, 3, 3, n) at θ = q."""

    def at_each(self, q: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """p, ∂p/∂θ, F and ∂F/∂θ at each of several θ, shape (k, n)."""
        return ((*self.positions(theta), *self.slopes(theta)) for theta in q)


def in_chunks(function: Callable[..., Any], points: np.ndarray, *others: Any) -> list[np.ndarray]:
    """Results of `function` at points (n, 3), in calls with _CHUNK points each, so that JAX compiles one shape. The
    last call is filled up with copies of its first point."""
    found = []
    for k in range(0, len(points), _CHUNK):
        some = points[k : k + _CHUNK]
        filled = np.concatenate([some, np.repeat(some[:1], _CHUNK - len(some), axis=0)])
        found.append([np.asarray(part)[: len(some)] for part in function(filled, *others)])
    return [np.concatenate(parts) for parts in zip(*found)]


@final
@dataclass(frozen=True, eq=False)
class _Chunks:
    """Kinematics that takes points as arguments, compiled by JAX."""

    kinematics: Any

    @cached_property
    def moved(self) -> Callable[..., Any]:
        """p, F, ∂p/∂θ and ∂F/∂θ as a function of points and θ."""
        motion = self.kinematics

        def moved(points: Any, q: Any) -> Any:
            (p, F), (J, F_j) = value_and_jacobian(
                lambda q: (motion.positions(points, q), motion.deformations(points, q)), q
            )
            return p, F, J.transpose(1, 2, 0), F_j.transpose(1, 2, 3, 0)

        return compiled(moved)


@final
class SamplesByJax(Samples):
    """Samples of any kinematics.

    Args:
        kinematics: kinematics that takes points as arguments.
        points: shape (N, 3) [m].
    """

    def __init__(self, kinematics: Any, points: np.ndarray) -> None:
        self._points, self._chunks = points, shared_by_equals(_Chunks, kinematics)
        self._last: tuple[bytes, list[np.ndarray]] = b"", []

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, _, J, _ = self._moved(q)
        return p, J

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, F, _, F_j = self._moved(q)
        return F, F_j

    def _moved(self, q: np.ndarray) -> list[np.ndarray]:
        if self._last[0] != q.tobytes():
            self._last = q.tobytes(), in_chunks(self._chunks.moved, self._points, q)
        return self._last[1]


class MotionNodes(NamedTuple):
    """The nodes of a motion at one point. The inputs of the graph are θ, θ̇, x, and the weight and the mass of the
    point.

    Fields:
        inputs: the nodes of θ (n,), of θ̇ (n,) and of the five numbers of the point (5,).
        p: position (3,).
        F: ∂p/∂x (3, 3), up to a rotation from the left.
        J, F_j: ∂p/∂θ (3, n) and ∂F/∂θ (3, 3, n).
    """

    graph: Graph
    inputs: tuple[np.ndarray, np.ndarray, np.ndarray]
    p: np.ndarray
    F: np.ndarray
    J: np.ndarray
    F_j: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class TracedMotion:
    """Kinematics as a graph of scalar operations, traced once."""

    kinematics: Any

    @property
    def why_python(self) -> str:
        """The reason for which there is no graph with derivatives; empty if there is one."""
        return self._nodes_or_reason if isinstance(self._nodes_or_reason, str) else ""

    @property
    def map(self) -> tuple[Graph, tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Graph, inputs and p of MotionNodes, in a graph of their own, to which the caller may add.

        Raises:
            Refused: there is no graph.
        """
        found = self._map_or_reason
        if isinstance(found, str):
            raise Refused(found)
        return found[0].copy(), *found[1:]

    @property
    def nodes(self) -> MotionNodes:
        """All nodes, in a graph of their own, to which the caller may add.

        Raises:
            Refused: there is no graph.
        """
        found = self._nodes_or_reason
        if isinstance(found, str):
            raise Refused(found)
        return found._replace(graph=found.graph.copy())

    @cached_property
    def _map_or_reason(self) -> tuple[Graph, tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | str:
        motion, n = self.kinematics, self.kinematics.n
        if motion.is_of_cells:
            return "moves by functions of the cells of a mesh"
        if n > MOST_COORDINATES:
            return f"has {n} coordinates, more than {MOST_COORDINATES}"
        graph = Graph()
        q, v, row = inputs(graph, [(n,), (n,), (5,)])
        try:
            return graph, (q, v, row), run(graph, motion.map, [row[:3], q])[0]
        except Refused as error:
            return str(error)

    @cached_property
    def _nodes_or_reason(self) -> MotionNodes | str:
        try:
            graph, (q, v, row), p = self.map
            J = derivative(graph, p, q.tolist())
            require_few(graph.count([J]) * (len(q) + 1) // 2)  # about as many as ∂²p/∂θ² has
            if self.kinematics.strained is None:
                F = derivative(graph, p, row[:3].tolist())
            else:
                (F,) = run(graph, self.kinematics.strained, [row[:3], q])
            return MotionNodes(graph, (q, v, row), p, F, J, derivative(graph, F, q.tolist()))
        except Refused as error:
            return str(error)


@final
class SamplesOfGraph(Samples):
    """Samples of a traced kinematics. NumPy runs its operations on all points, so that JAX compiles nothing.

    Args:
        motion: the traced kinematics.
        points: shape (N, 3) [m].
    """

    def __init__(self, motion: TracedMotion, points: np.ndarray) -> None:
        self._motion, self._points, self._nodes = motion, points, motion.nodes
        self._last: dict[str, tuple[bytes, list[np.ndarray]]] = {}

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, J = self._evaluated("positions", [self._nodes.p, self._nodes.J], q)
        return p, J

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, F_j = self._evaluated("slopes", [self._nodes.F, self._nodes.F_j], q)
        return F, F_j

    def at_each(self, q: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        return zip(*self._at([self._nodes.p, self._nodes.J, self._nodes.F, self._nodes.F_j], q))

    def _evaluated(self, name: str, parts: list[np.ndarray], q: np.ndarray) -> list[np.ndarray]:
        key = q.tobytes()
        if self._last.get(name, (None,))[0] != key:
            self._last[name] = key, [part[0] for part in self._at(parts, q[None])]
        return self._last[name][1]

    def _at(self, parts: list[np.ndarray], q: np.ndarray) -> list[np.ndarray]:
        """The values of nodes at several θ (k, n), each with the axes of θ and of points in front."""
        theta, _, row = self._nodes.inputs
        k, m = len(q), len(self._points)
        points, states = np.tile(self._points.T, k), np.repeat(np.asarray(q, dtype=np.float64).T, m, axis=1)
        wanted = [node for nodes in parts for node in nodes.ravel().tolist()]
        values = np.empty((k * m, len(wanted)))
        for first in range(0, k * m, _POINTS_AT_A_TIME):
            part = slice(first, first + _POINTS_AT_A_TIME)
            given = dict(zip([*row[:3].tolist(), *theta.tolist()], [*points[:, part], *states[:, part]]))
            values[part] = np.transpose(self._nodes.graph.evaluated(wanted, given))
        ends = np.cumsum([0, *(nodes.size for nodes in parts)])
        return [values[:, a:b].reshape(k, m, *nodes.shape) for a, b, nodes in zip(ends, ends[1:], parts)]


@final
class SamplesOfComposition(Samples):
    """Samples of a ComposedKinematics.

    Args:
        kinematics: the kinematics.
        points: shape (N, 3) [m].
    """

    def __init__(self, kinematics: Any, points: np.ndarray) -> None:
        motion = shared_by_equals(CompiledDerivatives, kinematics)
        self._points = EvaluatedPoints(motion, points, longest=True)

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self._points.of_quadrature(q)
        return x.p.T, np.moveaxis(x.J, 0, -1).swapaxes(0, 1)

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self._points.of_quadrature(q)
        return np.moveaxis(x.F, -1, 0), x.F_j.transpose(3, 1, 2, 0)


@final
class SamplesOfShapes(Samples):
    """Samples of a linear kinematics, from its shape functions.

    Args:
        kinematics: the kinematics.
        points: shape (N, 3) [m].
    """

    def __init__(self, kinematics: Any, points: np.ndarray) -> None:
        self._kinematics, self._points = kinematics, points

    @cached_property
    def _shapes(self) -> np.ndarray:
        return self._kinematics.shapes(self._points)

    @cached_property
    def _gradients(self) -> np.ndarray:
        return self._kinematics.shape_gradients(self._points)

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._points + self._shapes @ q, self._shapes

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3) + self._gradients @ q, self._gradients
