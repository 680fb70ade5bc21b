"""User-defined poses of joints: a smooth function of the joint's coordinates, given as JAX code or as a table.

With the pose g(q) (4, 4) of the child's side in the parent's, algorithms use the columns of the motion subspace S in
the child's frame and their derivatives:

    S_j = (g⁻¹ ∂g/∂q_j)^∨,   ∂S_j/∂q_c,   ∂²S_j/∂q_c∂q_e                                                  (1)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property, lru_cache, partial
from math import factorial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import Numbers
from lissom.tracing.graph import MOST_COORDINATES, Graph, Refused, derivative, float64, inputs, require_few, run

if TYPE_CHECKING:
    from lissom.tracing.native import Code, Traced

_RIGID = 1e-9  # largest allowed deviation of a pose from a rigid transform
_CHECKED = 5  # configurations at which a user's function is checked
_ROOM = 64  # configurations that are evaluated in one call
_MOST_DATA = 10_000_000  # bytes, of data that are part of a key
_PACKAGES = frozenset({"lissom", "jax", "jaxlib", "numpy", "scipy", "warp", "builtins", "functools", "math"})
_ADDRESS = re.compile(r"0x[0-9a-f]+")  # of a function, in the text of operations


class PoseDerivatives(NamedTuple):
    """Pose and motion subspace (1) of a joint at m configurations.

    Fields:
        g: poses (m, 4, 4).
        S: motion subspace (m, n, 6), indexed [j].
        S_q: first derivatives (m, n, n, 6), indexed [j, c].
        S_qq: second derivatives (m, n, n, n, 6), indexed [j, c, e].
    """

    g: np.ndarray
    S: np.ndarray
    S_q: np.ndarray
    S_qq: np.ndarray


@final
@dataclass(frozen=True)
class PoseSpline:
    """The pose of a joint with one coordinate, as a spline through a table.

    Args:
        points: values of the coordinate, strictly increasing, shape (m,).
        rotation: rotation vectors at the points, shape (m, 3) [rad]. They may be longer than π, and must not jump by
            2π.
        position: positions at the points, shape (m, 3) [m].
        degree: 5 or 3. With 3, derivatives of forces jump at the points.
    Accuracy: exact at the points. Between points h apart the error is O(h⁶) for degree 5 and O(h⁴) for degree 3. The
    end pieces extrapolate beyond the ends.
    """

    points: Numbers
    rotation: Numbers
    position: Numbers
    degree: int = 5

    def check(self, where: str) -> None:
        """Raise ModelError unless the degree is 3 or 5, the points increase, and each point has a rotation and a
        position."""
        points = checks.array(self.points, (-1,), f"{where}: points", "must be a list of finite numbers")
        known = type(self.degree) is int and self.degree in (3, 5)
        checks.require(known, f"{where}: degree", "must be 3 or 5", self.degree)
        rule = f"a table of degree {self.degree} needs at least {self.degree + 1}"
        checks.require(len(points) > self.degree, f"{where}: points", rule, len(points))
        rising = bool((np.diff(points) > 0).all())
        checks.require(rising, f"{where}: points", "must be strictly increasing", self.points)
        for name in ("rotation", "position"):
            rule = f"must hold 3 finite numbers for each of the {len(points)} points"
            checks.array(getattr(self, name), (len(points), 3), f"{where}: {name}", rule)

    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Start of each piece, shape (p,), and its coefficients, shape (p, 6, 6). Row k of a piece holds the
        coefficients of power k of the distance from its start: rotation vector, then position."""
        from scipy.interpolate import make_interp_spline

        x = np.asarray(self.points, dtype=np.float64)
        y = np.hstack([np.asarray(part, dtype=np.float64) for part in (self.rotation, self.position)])
        spline = make_interp_spline(x, y, k=self.degree)
        start = np.unique(spline.t)[:-1]
        coefficients = np.zeros((len(start), 6, 6))
        for power in range(self.degree + 1):
            coefficients[:, power] = spline(start, nu=power) / factorial(power)
        coefficients[:, 0] = y[np.searchsorted(x, start)]  # without the rounding of the spline
        return start, coefficients

    def motion(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pose g (4, 4) and motion subspace S (6, 1) at one configuration. Kernels compute both with all
        derivatives."""
        start, coefficients = self.pieces()
        piece = max(int(np.searchsorted(start, q[0], side="right")) - 1, 0)
        polynomial = np.polynomial.Polynomial
        x = [polynomial(c) for c in coefficients[piece].T]
        value, slope = (np.array([f(q[0] - start[piece]) for f in p]) for p in (x, [f.deriv() for f in x]))
        g, S = np.eye(4), np.zeros((6, 1))
        g[:3, 3] = value[3:]
        g[:3, :3], T = _turned(value[:3])
        S[:3, 0], S[3:, 0] = T @ slope[:3], g[:3, :3].T @ slope[3:]
        return g, S


def _turned(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation matrix R (3, 3) of the rotation vector w, and the matrix T (3, 3) with the angular velocity ω = T ẇ in
    the rotated axes."""
    W = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    angle = float(np.linalg.norm(w))
    first, half = np.sinc(angle / np.pi), np.sinc(angle / (2.0 * np.pi))
    second = 0.5 * half * half
    third = (1.0 - first) / angle**2 if angle > 1e-2 else (1.0 - angle**2 / 20.0) / 6.0
    return np.eye(3) + first * W + second * W @ W, np.eye(3) - second * W + third * W @ W


def exponential(twist: np.ndarray) -> np.ndarray:
    """The pose (4, 4) after a motion with the constant twist (6,), angular first, for a unit of time."""
    g = np.eye(4)
    g[:3, :3], T = _turned(twist[:3])
    g[:3, 3] = T.T @ twist[3:]
    return g


@final
@dataclass(frozen=True)
class PoseFunction:
    """The pose of a joint as a user-defined function of its n coordinates, written with jax.numpy. JAX computes its
    derivatives; they become native code where the function can be traced to scalar operations."""

    function: Callable[[Any], Any]
    n: int

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: native code belongs to one process."""
        return {"function": self.function, "n": self.n}

    def check(self, where: str) -> None:
        """Raise ModelError if `function` is no function, does not run under JAX, or returns no rigid transform."""
        try:
            import jax  # noqa: F401
        except ImportError:
            rule = "a function of the coordinates needs JAX: pip install 'lissom[jax]', or give a PoseSpline"
            raise ModelError(f"{where}: {rule}") from None
        samples = np.random.default_rng(0).uniform(-0.1, 0.1, (_CHECKED, self.n))
        samples[0] = 0.0
        try:
            shape = result_shape(self.function, np.zeros(self.n))
            checks.require(shape == (4, 4), where, "must return a 4x4 matrix, got shape", shape)
            found = self.derivatives(samples)
        except ModelError:
            raise
        except Exception as error:
            rule = "must be a function of an array (n,) made of jax.numpy"
            raise ModelError(f"{where}: {rule}; it {failure(error)}") from error
        g, R = found.g, found.g[:, :3, :3]
        checks.require(bool(np.isfinite(g[0]).all()), where, "must be finite where all coordinates are zero", g[0])
        for k in np.flatnonzero(np.isfinite(g).all(axis=(1, 2))):
            off = np.abs(R[k] @ R[k].T - np.eye(3)).max() + np.abs(g[k, 3] - (0.0, 0.0, 0.0, 1.0)).max()
            rule = f"must be a rigid transform, its rotation orthonormal, its last row (0, 0, 0, 1), at {samples[k]}"
            checks.require(bool(off < _RIGID and np.linalg.det(R[k]) > 0.0), where, rule, g[k].tolist())
        smooth = all(np.isfinite(part[0]).all() for part in found)
        checks.require(smooth, where, "must have three derivatives where all coordinates are zero", self.function)

    @cached_property
    def native(self) -> Traced | None:
        """The functions of passes/mapped, (R, p, S, S_q) of q and S_vv of q and v, as native code; None if `why_python`
        gives a reason."""
        return self._native_or_reason[0]

    @property
    def why_python(self) -> str:
        """The reason for which the pose is no native code; empty if it is."""
        return self._native_or_reason[1]

    @cached_property
    def _native_or_reason(self) -> tuple[Traced | None, str]:
        return _traced(self.function, self.n, captured(self.function))

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        return _compiled(self.function, self.n, captured(self.function))

    def motion(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pose g (4, 4) and motion subspace S (6, n) at one configuration."""
        found = self.derivatives(q[None])
        return found.g[0], found.S[0].T

    def derivatives(self, q: np.ndarray) -> PoseDerivatives:
        """The pose and the derivatives (1) at configurations q (m, n)."""
        if self.native is not None:
            return self._from_native(self.native, q)
        return self.by_jax(q)

    def by_jax(self, q: np.ndarray) -> PoseDerivatives:
        """`derivatives` by functions that XLA compiles."""
        room = 1 if len(q) == 1 else _ROOM  # only two sizes, since the compilation of each takes seconds
        parts = []
        for first in range(0, max(len(q), 1), room):
            rows, count = np.zeros((room, self.n)), len(q[first : first + room])
            rows[:count] = q[first : first + room]
            parts.append([np.asarray(part)[:count] for part in self._compiled(rows)])
        return PoseDerivatives(*(np.concatenate(part) for part in zip(*parts)))

    def _from_native(self, native: Traced, q: np.ndarray) -> PoseDerivatives:
        m, n = q.shape
        R, p, g = np.empty((3, 3)), np.empty(3), np.zeros((m, 4, 4))
        S, S_q, S_qq = np.empty((m, n, 6)), np.empty((m, n, n, 6)), np.empty((m, n, n, n, 6))
        g[:, 3, 3] = 1.0
        for k, row in enumerate(np.ascontiguousarray(q, dtype=np.float64)):
            native.call(0, [row], [R, p, S[k], S_q[k]])
            S_qq[k] = _second_derivatives(native, row)
            g[k, :3, :3], g[k, :3, 3] = R, p
        return PoseDerivatives(g, S, S_q, S_qq)


def _second_derivatives(native: Traced, q: np.ndarray) -> np.ndarray:
    """S_qq (n, n, n, 6) from S_vv along each coordinate, and along each two."""
    n, axes = len(q), np.eye(len(q))
    found = np.empty((n, n, n, 6))
    for c in range(n):
        for e in range(c + 1):
            native.call(1, [q, axes[c] + axes[e] * (e < c)], [along := np.empty((n, 6))])
            found[:, c, e] = along
    for c in range(n):
        for e in range(c):
            found[:, c, e] = found[:, e, c] = 0.5 * (found[:, c, e] - found[:, c, c] - found[:, e, e])
    return found


@final
@dataclass(frozen=True, eq=False)
class _Itself:
    """A part of a key that is equal only for the same object, which it keeps alive."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def captured(function: Any) -> Any:
    """A key of the data that a Python function reads besides its arguments, as part of the key of a cache: its closure,
    defaults, globals and the attributes of its object. Modules, classes and objects of packages count as themselves; so
    do all data if they are too many."""
    try:
        return _content(function, (), [_MOST_DATA])
    except OverflowError:
        return _Itself(function)


def _content(value: Any, around: tuple[int, ...], left: list[int]) -> Any:
    """`captured` of a part of the data. around: identities of the objects that it is part of. left: a budget."""
    if id(value) in around:
        return "around"
    left[0] -= 100 + (value.nbytes if isinstance(value, np.ndarray) else 0)
    if left[0] < 0:
        raise OverflowError
    around = (*around, id(value))

    def each(parts: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(_content(part, around, left) for part in parts)

    if isinstance(value, bool | int | float | complex | str | bytes | None):
        return type(value), repr(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        return value.dtype.str, value.shape, hashlib.blake2b(value.tobytes()).digest()
    if isinstance(value, list | tuple | set | frozenset):
        return type(value), each(value)
    if isinstance(value, Mapping):
        return type(value), each(value), each(value.values())
    if isinstance(value, MethodType):
        return each((value.__func__, value.__self__))
    if isinstance(value, partial):
        return each((value.func, value.args, value.keywords))
    package = str(getattr(value, "__module__", type(value).__module__)).partition(".")[0]
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), each(getattr(value, item.name) for item in fields(value))
    if isinstance(value, ModuleType | type) or package in _PACKAGES:
        return _Itself(value)
    if isinstance(value, FunctionType):
        return value.__code__, each(_read_by(value))
    return _Itself(value), each(vars(value).values() if hasattr(value, "__dict__") else ())


def _read_by(function: FunctionType) -> Iterator[Any]:
    """The values that a Python function reads besides its arguments."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    yield function.__defaults__
    yield function.__kwdefaults__
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        pending += [part for part in code.co_consts if isinstance(part, CodeType)]
        for name in code.co_names:
            if name in function.__globals__:
                yield function.__globals__[name]


@final
class NotRepeatable(Exception):
    """A function that does other operations when it is called again."""


def result_shape(function: Callable[..., Any], *arguments: Any) -> tuple[int, ...]:
    """The shape of the result of a JAX function of arrays; lists of results count as an array.

    Raises:
        NotRepeatable: the function draws random numbers, or depends on earlier calls.
        Exception: errors of the function, and of JAX if it cannot be traced; see `failure`.
    """
    return _result_shape(function, tuple(map(np.shape, arguments)), captured(function))


@lru_cache(maxsize=64)
def _result_shape(function: Callable[..., Any], given: tuple[tuple[int, ...], ...], data: Any) -> tuple[int, ...]:
    """`result_shape` for arguments of the shapes `given`, with the data that the function reads."""
    import jax

    arrays = [jax.ShapeDtypeStruct(shape, np.float64) for shape in given]
    traced = in_double(lambda: [jax.make_jaxpr(lambda *x: function(*x), return_shape=True)(*arrays) for _ in range(2)])
    (first, shapes), (second, _) = traced()
    constants = [[np.asarray(x).tobytes() for x in each.consts if hasattr(x, "__array__")] for each in (first, second)]
    operations = [_ADDRESS.sub("", str(each)) for each in (first, second)]
    if operations[0] != operations[1] or constants[0] != constants[1]:
        raise NotRepeatable
    return np.asarray(jax.tree.map(lambda result: np.zeros(result.shape), shapes)).shape


def failure(error: Exception) -> str:
    """The reason why a function of jax.numpy cannot be traced, and the remedy, in one line."""
    from jax import errors

    text = str(error).partition("\n")[0]
    value = "a value that depends on its arguments"
    known: list[tuple[Any, str, str]] = [
        (NotRepeatable, "", "computes another result when it is called again; draw random numbers outside of it"),
        (errors.TracerBoolConversionError, "", f"branches (if, while, and, or) on {value}; write jax.numpy.where"),
        (errors.NonConcreteBooleanIndexError, "", f"chooses entries by {value}; write jax.numpy.where"),
        (errors.TracerArrayConversionError, "", f"gives NumPy {value}; write the function of jax.numpy"),
        (errors.UnexpectedTracerError, "", "uses a value of an earlier call; return all values"),
        ((errors.ConcretizationTypeError, errors.TracerIntegerConversionError), "",
         f"makes a Python number (float, int, math, range, a text) of {value}; write functions of jax.numpy"),
        (TypeError, "scalar index", f"counts or indexes by {value}; write jax.numpy.where, or a constant length"),
        (TypeError, "format string", f"writes {value} as text; take the output out"),
        (ValueError, "lax.while_loop", f"has a loop whose length is {value}; give lax.fori_loop a constant length"),
    ]  # fmt: skip
    for kind, part, line in known:
        if isinstance(error, kind) and part in text:
            return line
    return f"failed ({type(error).__name__}: {text})"


def _columns(g: Any, slope: Any) -> Any:
    """S of (1) from a pose (4, 4) and its derivatives (4, 4, n)."""
    import jax.numpy as jnp

    W = jnp.einsum("ki,kjn->nij", g[:3, :3], slope[:3, :3])
    u = jnp.einsum("ki,kn->ni", g[:3, :3], slope[:3, 3])
    turn = (W[:, 2, 1] - W[:, 1, 2], W[:, 0, 2] - W[:, 2, 0], W[:, 1, 0] - W[:, 0, 1])
    return jnp.concatenate([0.5 * jnp.stack(turn, axis=1), u], axis=1)


def _in_double(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pose function whose result is an array of float64."""
    import jax.numpy as jnp

    return lambda q: jnp.asarray(function(q), dtype=jnp.float64)


@lru_cache(maxsize=64)
def _compiled(function: Callable[[Any], Any], n: int, data: Any) -> Callable[..., Any]:
    """The pose with its derivatives (1) as a function of configurations (m, n), in float64, compiled by JAX. `data` are
    those of the function (`captured`)."""
    import jax
    import jax.numpy as jnp

    pose = _in_double(function)

    def columns(q: Any) -> Any:
        return _columns(pose(q), jax.jacfwd(pose)(q))

    def everything(q: Any) -> Any:
        once = jax.jacfwd(columns)
        return pose(q), columns(q), jnp.moveaxis(once(q), 1, -1), jnp.moveaxis(jax.jacfwd(once)(q), 1, -1)

    return compiled(jax.vmap(everything))


def traced_pose(function: Callable[[Any], Any], n: int) -> tuple[Traced | None, str]:
    """The native functions of a pose as a function of n coordinates, or the reason for which there are none."""
    if n > MOST_COORDINATES:
        return None, f"has {n} coordinates, more than {MOST_COORDINATES}"
    graph = Graph()
    (q,) = inputs(graph, [(n,)])
    try:
        (g,) = run(graph, _in_double(function), [q])
        return native_pose(graph, g, q), ""
    except Refused as error:
        return None, str(error)


def native_pose(graph: Graph, g: np.ndarray, q: np.ndarray) -> Traced:
    """The native functions of a pose with nodes g (4, 4): R, p, S, S_q of q; and Σ ∂²S_j/∂q_c∂q_e v_c v_e of q and v.

    Raises:
        Refused: too many operations.
    """
    from lissom.tracing.code_cache import content_key, stored_code  # describing a robot needs no Warp
    from lissom.tracing.native import compiled_functions

    key = content_key("pose", graph, g)
    return compiled_functions(stored_code(key, lambda: pose_code(graph, g, q)))


_FEW = 2500  # operations of ∂S along one direction up to which code of all of ∂S is short, and faster


def pose_code(graph: Graph, g: np.ndarray, q: np.ndarray, *, row: Sequence[int] = (), few: bool = False) -> Code:
    """The code of `native_pose` for nodes g (3 or 4, 4).

    Args:
        row: input nodes on which g depends beside q. The columns of this row are the last argument of the functions.
    Raises:
        Refused: too many operations; with `few`, more than MOST_OPERATIONS.
    """
    from lissom.tracing.native import ByDirection, code_of, table_of

    n, by = len(q), q.tolist()
    v, rates = ([graph.input(first + k) for k in range(n)] for first in (n, 2 * n + len(row)))

    def along(nodes: np.ndarray, direction: list[int]) -> np.ndarray:
        return derivative(graph, nodes, by, [direction])[..., 0]

    def twist(direction: list[int]) -> np.ndarray:
        (S,) = run(graph, lambda g, g_dot: _columns(g, g_dot[..., None])[0], [g, along(g, direction)])
        return S

    (S,) = run(graph, _columns, [g, derivative(graph, g, by)])
    S_q = along(S, rates)
    eta = twist(v)
    eta_v = along(eta, v)
    (S_vv,) = run(graph, _turning, [twist(rates), eta, eta_v, along(eta, rates), along(eta_v, rates)])
    if few:
        require_few(max(graph.count([nodes]) for nodes in (S_q, S_vv)))
    slopes: Any = ByDirection(S_q)
    if graph.count([S_q]) <= _FEW:
        slopes = np.moveaxis(derivative(graph, S, by), -1, 1)
    functions = [
        (graph, (g[:3, :3], g[:3, 3], S, slopes)),
        (graph, (ByDirection(S_vv[None]),)),
    ]
    if not row:
        return code_of(functions, [n, n], rates=rates)
    by_row = slopes.nodes if isinstance(slopes, ByDirection) else slopes
    table = table_of(graph, [(g, S, by_row), (S_vv,)], row, ())
    return code_of(functions, [n, n, len(row)], row=table, rates=rates)


def _turning(S: Any, eta: Any, eta_v: Any, eta_q: Any, eta_vq: Any) -> Any:
    """Σ ∂²S_j/∂q_c∂q_e v_c v_e of one column S_j (6,), by brackets × of twists:

        ∂_v S_j = ∂_j η + S_j × η,   ∂_v∂_v S_j = ∂_j ∂_v η + ∂_v S_j × η + S_j × ∂_v η,   η = Σ S_k v_k

    Args:
        eta, eta_v: η, and its derivative ∂_v along v, which stays constant.
        eta_q, eta_vq: the derivatives ∂_j of both.
    """
    import jax.numpy as jnp

    def bracket(a: Any, b: Any) -> Any:
        ends = jnp.cross(a[:3], b[3:]) - jnp.cross(b[:3], a[3:])
        return jnp.concatenate([jnp.cross(a[:3], b[:3]), ends])

    S_v = eta_q + bracket(S, eta)
    return eta_vq + bracket(S_v, eta) + bracket(S, eta_v)


@lru_cache(maxsize=64)
def _traced(function: Callable[[Any], Any], n: int, data: Any) -> tuple[Traced | None, str]:
    """`traced_pose` of a function with the data `captured`."""
    return traced_pose(function, n)


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """A JAX function that computes in float64, independent of the user's setting of JAX."""

    def call(*arguments: Any) -> Any:
        with float64():
            return function(*arguments)

    return call


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A JAX function in float64, compiled on first use. `options` are added to the compiler options `_QUICK`."""

    @cache
    def made() -> Callable[..., Any]:
        import jax

        known = {name: value for name, value in (_QUICK | options).items() if _is_known(name, value)}
        return in_double(jax.jit(function, compiler_options=known))

    return lambda *arguments: made()(*arguments)


# Without MLIR emitters XLA compiles in half the time. The compiled code is as fast.
_QUICK: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}


@lru_cache(maxsize=64)
def _is_known(name: str, value: Any) -> bool:
    """Whether this version of JAX accepts an option of XLA's compiler."""
    import jax

    try:
        jax.jit(jax.lax.optimization_barrier, compiler_options={name: value})(0)  # an option may allow this operation
    except Exception:  # the type depends on whether JAX rejects the argument or the option
        return False
    return True
