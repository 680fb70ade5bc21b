"""Functions of the abscissa s or of the time t in descriptions.

A description holds a number, a linear taper, a table, an expression or a Python function. The second half of this file
is about functions of time. `RowsOfTime` evaluates a function at many times. `polynomial_of` converts a function to
polynomials between knots, which kernels evaluate without Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.native_functions import NativeFunction

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

POINT = "x, y, z"  # the variables of a function of a point
CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS = {
    name: getattr(np, name)
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "arcsin", "arccos", "arctan")
} | {"abs": np.abs, "minimum": np.minimum, "maximum": np.maximum, "sign": np.sign}
_BINARY = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Pow: np.power,
}
_AT_ENDS = 0.02  # length of the intervals at the ends of [0, 1] on which `derivative` fits a polynomial
_SIGNS = {ast.UAdd: np.positive, ast.USub: np.negative}

# The same functions for floats, several times faster. If one raises or returns a complex number, NumPy's value is used.
_FAST: dict[Any, Callable[..., Any]] = {
    getattr(np, name): getattr(math, name.replace("arc", "a"))
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "arcsin", "arccos", "arctan")
}
_FAST |= {np.abs: abs, np.minimum: min, np.maximum: max, np.sign: lambda x: float((x > 0) - (x < 0))}
_FAST |= {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul}
_FAST |= {
    np.true_divide: operator.truediv,
    np.power: operator.pow,
    np.positive: operator.pos,
    np.negative: operator.neg,
}


_PARSES = 100  # of one text that other threads may disturb
_DEEPEST = 500  # nested operations; a sum of so many terms fits into the length of a text
_DEGREE, _MOST_PIECES = 7, 1024  # of polynomials that replace a function
_AFTER = 1e-12  # behind the last time of a table, relative to its times; sums of steps differ by less
_MOST_UNEVEN = 1e8  # ratio of gaps between points of a spline


@final
@dataclass(frozen=True)
class Expression:
    """A function of one or several variables, written as text. The text is parsed against a whitelist and never
    executed as Python.

    Allowed are numbers, the variables, ``+ - * / **``, parentheses, ``pi``, ``e`` and the functions ``sin cos tan sinh
    cosh tanh exp log sqrt arcsin arccos arctan abs minimum maximum sign``.

    Args:
        source: one expression, or a (nested) list of them. The value has the same shape.
        variable: name of the variable: ``"s"`` along a rod, ``"t"`` for time. Names of several variables are separated
            by commas: ``"x, y"``. Such an expression is called with an array of their values, and couples joints
            (`Robot.add_coupling`); elsewhere it is an error.
        constants: numbers by the names that the text uses for them. Paths lead to them, such as
            ``arm.section.radius.taper``, and design values may be among them.
    Raises:
        ModelError: the text contains something that is not allowed, or a constant is invalid.
    """

    source: Any
    variable: str = "s"
    constants: Mapping[str, float] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self.source, self.variable, dict(self.constants))

    def __post_init__(self) -> None:
        checks.require(isinstance(self.constants, Mapping), "expression > constants", "must be numbers by name",
                       self.constants)  # fmt: skip
        checks.require(isinstance(self.variable, str), "expression > variable", "must be a name", self.variable)
        names = self.variables
        if len(names) > 1:
            good = all(x.isidentifier() and x not in (*CONSTANTS, *_FUNCTIONS) for x in names)
            rule = "must be different words, no functions or known constants, separated by commas"
            checks.require(good and len(set(names)) == len(names), "expression > variable", rule, self.variable)
        for name, number in self.constants.items():
            taken = (*names, *CONSTANTS, *_FUNCTIONS, *POINT.split(", "))
            good = isinstance(name, str) and name.isidentifier() and name not in taken
            rule = "a name must be a word that is no variable, function or known constant"
            checks.require(good, "expression > constants", rule, name)
            checks.number(number, f"expression > constants > {name}")
        _ = self._program

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables."""
        return names_of(self.variable)

    @cached_property
    def on_floats(self) -> Callable[[float], Any] | None:
        """The expression as a function of a float; None for a list of expressions or for several variables. The
        function may raise or return a complex number where NumPy returns infinity or NaN."""
        if isinstance(self.source, list | tuple) or len(self.variables) > 1:
            return None
        return _compile(self.source, self.variable, fast=True, constants=self.constants)

    @cached_property
    def _program(self) -> Any:
        program = _map_nested(self.source, lambda text: _compile(text, self.variable, constants=self.constants))
        try:
            np.array(_map_nested(program, lambda leaf: 0.0))
        except ValueError:
            raise checks.fail("expression", "its lists must be arrays of one shape", self.source) from None
        return program

    def __call__(self, value: Any) -> Any:
        """The value at `value`: a float for one expression, an array for a list of expressions. With several variables,
        `value` is an array of theirs (n,)."""
        if len(self.variables) > 1:
            rule = f"must be given the values of its {len(self.variables)} variables {self.variable}"
            value = checks.array(value, (len(self.variables),), f"expression {self.source!r}", rule)
        elif self.on_floats is not None:
            try:
                number = self.on_floats(float(value))
                if type(number) is float:
                    return number
            except (ArithmeticError, ValueError):
                pass  # too large, or outside a function's domain
        with np.errstate(all="ignore"):  # the caller refuses values that are not finite
            known = value if np.ndim(value) else float(value)
            out = _map_nested(self._program, lambda program: program(known))
        return out if np.ndim(out) == 0 else np.array(out)

    def over(self, values: np.ndarray) -> np.ndarray:
        """The values of an expression of one variable at `values` (n,), shape (n, ...). They may be infinite or NaN."""
        require_one_variable(self)
        with np.errstate(all="ignore"):
            if self.on_floats is not None:
                return np.broadcast_to(self._program(values), values.shape)
            out = _map_nested(self._program, lambda program: np.broadcast_to(program(values), values.shape))
        return np.moveaxis(np.array(out), -1, 0)


@final
@dataclass(frozen=True)
class Tabulated:
    """A function of s (or t) through given points, constant before the first and after the last one.

    The law of a spring continues as a straight line instead, as its page says.

    Args:
        points: values of s or t, strictly increasing, shape (n,).
        values: values of the function at the points, shape (n, ...).
        interpolation: "linear"; "cubic" (C2 spline with not-a-knot ends); or "barycentric" (one polynomial through all
            points, for Chebyshev points).
    Accuracy: exact at the points. Between points h apart the error is O(h²) for linear and O(h⁴) for cubic
    interpolation.
    """

    points: Any
    values: Any
    interpolation: str = "cubic"

    def __post_init__(self) -> None:
        where = "table"
        points = checks.array(self.points, (-1,), f"{where} > points", "must be a list of finite numbers")
        rule = "needs at least 2 points" if self.interpolation != "cubic" else "a cubic table needs at least 4 points"
        checks.require(len(points) >= (4 if self.interpolation == "cubic" else 2), where, rule, len(points))
        rising = bool((np.diff(points) > 0).all())
        checks.require(rising, f"{where} > points", "must be strictly increasing", self.points)
        if self.interpolation == "cubic":
            _check_gaps(points, f"{where} > points")
        kinds = ("linear", "cubic", "barycentric")
        checks.require(checks.among(self.interpolation, kinds), f"{where} > interpolation", f"must be one of {kinds}",
                       self.interpolation)  # fmt: skip
        try:
            values = np.asarray(self.values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise checks.fail(f"{where} > values", "must be arrays of one shape", self.values) from None
        checks.require(values.ndim >= 1 and len(values) == len(points), f"{where} > values",
                       f"must hold one value for each of the {len(points)} points", values.shape)  # fmt: skip
        checks.require(bool(np.isfinite(values).all()), f"{where} > values", "must be finite", self.values)

    @cached_property
    def _interpolant(self) -> Callable[[Any], Any]:
        from scipy.interpolate import BarycentricInterpolator, CubicSpline, make_interp_spline

        x, y = np.asarray(self.points, dtype=np.float64), np.asarray(self.values, dtype=np.float64)
        if self.interpolation == "linear":
            return make_interp_spline(x, y, k=1)
        if self.interpolation == "cubic":
            return CubicSpline(x, y)
        gaps = (x[:, None] - x) * 4.0 / (x[-1] - x[0]) + np.eye(len(x))
        return BarycentricInterpolator(x, y, wi=1.0 / gaps.prod(axis=1))  # its own weights change from run to run

    def __call__(self, value: Any) -> Any:
        """The interpolated value at `value`, in the shape of one table entry; beyond the ends that of the nearest
        end."""
        with np.errstate(invalid="ignore"):  # at a point SciPy divides 0 by 0 before it puts the value there
            return self._interpolant(np.clip(value, *self.ends))

    def slope(self, value: Any, order: int = 1) -> Any:
        """The derivative of the given order at `value`, zero beyond the ends. At a corner between two straight pieces
        it is the slope of the later piece, at an end that of the inner piece."""
        inside = np.clip(value, *self.ends)
        if self.interpolation == "barycentric":
            found = self._interpolant.derivative(inside, der=order)  # type: ignore[attr-defined]
        else:
            found = self._interpolant(inside, nu=order)  # type: ignore[call-arg]
        is_beyond = np.asarray(inside != value)
        return np.where(is_beyond.reshape(is_beyond.shape + (1,) * (np.ndim(found) - is_beyond.ndim)), 0.0, found)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The first and the last point."""
        return float(self.points[0]), float(self.points[-1])


def _check_gaps(points: np.ndarray, where: str) -> None:
    """Raise ModelError if a cubic spline through rising points would lose its digits, since its equations have the gaps
    between them as coefficients."""
    gaps = np.diff(points)
    even = bool(gaps.max() <= _MOST_UNEVEN * gaps.min())
    rule = f"must have gaps of which the largest is at most {_MOST_UNEVEN:g} times the smallest"
    checks.require(even, where, rule, points.tolist())


def _map_nested(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(tree, list | tuple):
        return [_map_nested(item, leaf) for item in tree]
    return leaf(tree)


def names_of(variable: str) -> tuple[str, ...]:
    """The names of the variables of an expression, which commas separate."""
    return tuple(name.strip() for name in variable.split(","))


def require_one_variable(expression: Expression) -> None:
    """Raise ModelError if an expression has several variables."""
    checks.require(len(expression.variables) == 1, f"expression {expression.source!r}",
                   "must have one variable here", expression.variable)  # fmt: skip


def parsed(text: str) -> ast.expr:
    """The syntax tree of an expression."""
    for _ in range(_PARSES):
        with suppress(SystemError):  # Python before 3.11.8 raises it if another thread parses at the same time
            return ast.parse(text.strip(), mode="eval").body
    return ast.parse(text.strip(), mode="eval").body


def _compile(
    text: Any, variable: str, fast: bool = False, constants: Mapping[str, float] = MappingProxyType({})
) -> Callable[[float], float]:
    """A closure that evaluates one expression. Raises ModelError at the first node that is not on the whitelist."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        try:
            number = float(text)
        except OverflowError:
            raise checks.fail("expression", "holds a number too large", text) from None
        checks.require(math.isfinite(number), "expression", "must hold finite numbers", text)
        return lambda value: number
    if not isinstance(text, str) or len(text) > 1000:
        raise checks.fail("expression", "must be a text of at most 1000 characters", text)
    try:
        node = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise checks.fail("expression", "is not a valid expression", text) from None
    checks.require(_depth(node) <= _DEEPEST, "expression", f"is nested too deeply, more than {_DEEPEST} times", text)
    try:
        return _closure(node, variable, text, fast, constants)
    except OverflowError:
        raise checks.fail("expression", "holds a number too large", text) from None


def _depth(node: ast.AST) -> int:
    """Number of operations and calls that are nested within each other, without recursion."""
    depth, level = 0, [node]
    while level := [child for parent in level for child in ast.iter_child_nodes(parent) if isinstance(child, ast.expr)]:
        depth += 1
    return depth


def _closure(
    node: ast.AST, variable: str, text: str, fast: bool, constants: Mapping[str, float]
) -> Callable[[Any], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        constant = float(node.value)
        return lambda value: constant
    if isinstance(node, ast.Name) and node.id == variable:
        return lambda value: value
    if isinstance(node, ast.Name) and node.id in (names := names_of(variable)):
        place = names.index(node.id)
        return lambda value: value[place]
    if isinstance(node, ast.Name) and (node.id in CONSTANTS or node.id in constants):
        known = CONSTANTS[node.id] if node.id in CONSTANTS else float(constants[node.id])
        return lambda value: known
    if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        sign, operand = _SIGNS[type(node.op)], _closure(node.operand, variable, text, fast, constants)
        sign = _FAST[sign] if fast else sign
        return lambda value: sign(operand(value))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        operation = _BINARY[type(node.op)]
        operation = _FAST[operation] if fast else operation
        left, right = (_closure(side, variable, text, fast, constants) for side in (node.left, node.right))
        if isinstance(node.left, ast.Constant):  # shortcuts: a constant or the variable itself needs no call
            first = left(0.0)
            if isinstance(node.right, ast.Name) and node.right.id == variable:
                return lambda value: operation(first, value)
            return lambda value: operation(first, right(value))
        if isinstance(node.right, ast.Constant):
            second = right(0.0)
            return lambda value: operation(left(value), second)
        return lambda value: operation(left(value), right(value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        function = _FUNCTIONS[node.func.id]
        if not node.keywords and len(node.args) == function.nin:
            arguments = [_closure(argument, variable, text, fast, constants) for argument in node.args]
            called = _FAST[function] if fast else function
            if len(arguments) == 1:
                return lambda value: called(arguments[0](value))
            return lambda value: called(*(argument(value) for argument in arguments))
    piece, names = ast.unparse(node), ", ".join(map(repr, (*names_of(variable), *constants)))
    raise ModelError(
        f"expression {text!r}: only numbers, {names}, + - * / **, pi, e and the functions "
        f"{', '.join(sorted(_FUNCTIONS))} are allowed (got {piece!r})"
    )


def at_points(function: Any, points: np.ndarray, where: str) -> np.ndarray:
    """Values (n,) of a function of a point at points (n, 3).

    Args:
        function: an expression of x, y and z as text, or a Python function of arrays x, y and z (n,).
    Raises:
        ModelError: the function fails, or returns anything but n finite numbers.
    """
    rule = "must be an expression of x, y and z, or a function of them"
    checks.require(isinstance(function, str) or callable(function), where, rule, function)
    try:
        with np.errstate(all="ignore"):  # values that are not finite are refused below
            x = points.T.copy()
            found: Any = _compile(function, POINT)(x) if isinstance(function, str) else function(*x)
            found = np.broadcast_to(found, len(points)) if np.ndim(found) == 0 else found
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    except Exception as error:
        raise ModelError(f"{where}: the function failed ({type(error).__name__}: {error})") from error
    return checks.array(found, (len(points),), where, f"must return {len(points)} finite numbers for so many points")


def profile(value: Any, where: str, *, least: float = 0.0, may_end: bool = False) -> Callable[[float], float]:
    """A positive number that varies along a rod, as a function of s in [0, 1]. `value` is a number, (base, tip) for a
    linear taper, or a function of s. With may_end it may be zero at s = 0 or at s = 1, where a rod ends in a point."""
    if callable(value):

        def at(s: float) -> float:
            limit = {"least": least} if may_end and s in (0.0, 1.0) else {"above": least}
            return checks.number(checks.call(value, s, (), where), f"{where} at s={s:g}", **limit)

        return at
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        base, tip = checks.array(value, (2,), where, "must be a number, (base, tip) or a function of s")
        for end, other in ((base, tip), (tip, base)):
            limit = {"least": least} if may_end and other > least else {"above": least}
            checks.number(end, where, **limit)
        return lambda s: float(base + (tip - base) * s)
    constant = checks.number(value, where, above=least)
    return lambda s: constant


def is_constant(*profiles: Any) -> bool:
    """Whether profiles are numbers, the same at every s."""
    return all(isinstance(value, float | int) for value in profiles)


def derivative(function: Callable[[float], Any], s: float, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Derivative of a smooth function at s in [0, 1], by eighth-order central differences with points in [0, 1].

    Near the ends it is the derivative of a fitted polynomial of degree eight.

    Accuracy: about 1e-12 of the function's scale for functions analytic on [0, 1].
    """
    checks.require(0.0 <= s <= 1.0, where, "a derivative is only taken in [0, 1]", s)
    step = min(3e-3, 0.25 * s, 0.25 * (1.0 - s))
    if step < 1e-5:
        middle = 0.5 * _AT_ENDS if s < 0.5 else 1.0 - 0.5 * _AT_ENDS
        x = np.polynomial.chebyshev.chebpts1(9)
        rows = [checks.call(function, float(middle + 0.5 * _AT_ENDS * y), shape, where) for y in x]
        slope = np.polynomial.chebyshev.chebder(np.polynomial.chebyshev.chebfit(x, np.array(rows), 8))
        return 2.0 / _AT_ENDS * np.polynomial.chebyshev.chebval(2.0 / _AT_ENDS * (s - middle), slope)
    total = np.zeros(shape)
    for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1):
        ahead, behind = (checks.call(function, s + sign * k * step, shape, where) for sign in (1, -1))
        total += weight * (ahead - behind)
    return total / step


def cubic_pieces(law: Any, where: str, rule: str, abscissae: str) -> tuple[np.ndarray, np.ndarray]:
    """A law of one variable as cubic pieces: knots (n,) and coefficients (n, 4).

    The coefficients of a piece belong to powers of the distance from its first knot, the constant first. The last row
    is the straight line beyond the last knot.

    Args:
        law: rows (x, value): two rows give a straight line, more rows a not-a-knot cubic spline; or a Tabulated with
            linear or cubic interpolation.
        rule: text of the error if the law has another form.
        abscissae: name of the first column in errors.
    Raises:
        ModelError: the law has another form, or its abscissae do not increase.
    """
    from scipy.interpolate import CubicSpline

    if isinstance(law, Tabulated):
        points, values = np.asarray(law.points, float), np.asarray(law.values, float)
        plain = law.interpolation in ("linear", "cubic") and values.ndim == 1
        checks.require(plain, where, "must be linear or cubic in one number", (law.interpolation, values.shape))
        rows, linear = np.column_stack([points, values]), law.interpolation == "linear"
    else:
        rows, linear = checks.array(law, (-1, 2), where, rule), False
    rising = len(rows) >= 2 and bool((np.diff(rows[:, 0]) > 0.0).all())
    checks.require(rising, where, f"needs at least two rising {abscissae}", rows[:, 0])
    knot, slope = rows[:, 0], np.diff(rows[:, 1]) / np.diff(rows[:, 0])
    c = np.column_stack([rows[:-1, 1], slope, np.zeros_like(slope), np.zeros_like(slope)])
    if not linear and len(rows) > 2:
        _check_gaps(knot, where)
        try:
            spline: PPoly = CubicSpline(knot, rows[:, 1])
        except ValueError as error:
            raise ModelError(f"{where}: {error}") from None
        c = spline.c[::-1].T
    h = knot[-1] - knot[-2]
    slope = c[-1, 1:] @ (np.arange(1, 4) * h ** np.arange(3))
    return knot, np.vstack([c, [c[-1] @ h ** np.arange(4), slope, 0.0, 0.0]])


@final
class RowsOfTime:
    """A function of time that returns n numbers.

    Args:
        at: function of t that returns a list or an array (n,). It raises ModelError if a number is not finite.
        at_times: function of times (n_times,) that returns the numbers, shape (n_times, n), without checks; None if
            there is no such function.
    """

    def __init__(self, at: Callable[[float], Any], at_times: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        self.at, self.at_times = at, at_times

    def __call__(self, t: float) -> Any:
        """The numbers at time t."""
        return self.at(t)

    def over(self, times: np.ndarray) -> np.ndarray:
        """The numbers at `times` (n_times,), shape (n_times, n). The numbers at one time do not depend on the other
        times."""
        if self.at_times is not None:
            rows = self.at_times(times)
            if np.isfinite(rows).all():
                return rows
        return np.array([self.at(t) for t in times.tolist()])


def still(row: Any) -> RowsOfTime:
    """A function of time with constant values."""
    return RowsOfTime(lambda t: row, lambda times: np.tile(row, (len(times), 1)))


def polynomial_of(value: Any, size: int) -> PPoly | None:
    """A constant or a function of time with `size` components as polynomials between knots, with coefficients of shape
    (order, pieces, size). None for functions that are not polynomials.

    Polynomials are: constants, linear and cubic tables, SciPy's PPoly (and CubicSpline) that extrapolate beyond their
    ends, and objects with an attribute `polynomial`, such as ls.Samples. Tables and samples are constant beyond their
    ends.
    """
    from scipy.interpolate import PPoly

    if value is None:
        return constant(np.zeros(size))
    if not callable(value):
        return constant(np.reshape(np.asarray(value, dtype=np.float64), size))
    found = _table(value) if isinstance(value, Tabulated) else getattr(value, "polynomial", value)
    goes_on = isinstance(found, PPoly) and found.extrapolate is not False and found.extrapolate != "periodic"
    if not goes_on or np.iscomplexobj(found.c) or found.c[0, 0].size != size or found.x[-1] < found.x[0]:
        return None
    return PPoly.construct_fast(found.c.reshape(*found.c.shape[:2], size).astype(float), found.x)


def fitted_polynomial(function: Callable[[float], Any], low: float, high: float, where: str) -> PPoly:
    """A smooth function as polynomials of degree 7 between knots, with coefficients of shape (8, pieces, 1).

    A polynomial of degree up to 7 is one piece, which is valid everywhere.

    Accuracy: about 1e-14 of the largest value in [low, high].
    Raises:
        ModelError: the function fails or is not finite in [low, high], or 1024 pieces do not fit it.
    """
    from scipy.interpolate import PPoly

    nodes, tests = np.polynomial.chebyshev.chebpts1(_DEGREE + 1), np.linspace(-0.97, 0.97, 12)
    powers = np.linalg.inv(np.vander(nodes))  # values at the nodes of [−1, 1] to coefficients, the highest power first
    pieces, fits = 1, False
    while pieces <= _MOST_PIECES:
        knots = np.linspace(low, high, pieces + 1)
        middle, half = 0.5 * (knots[1:] + knots[:-1]), 0.5 * (high - low) / pieces
        values, seen = (np.array([[float(checks.call(function, float(m + half * y), (), where)) for m in middle]
                                  for y in at]) for at in (nodes, tests))  # fmt: skip
        c = powers @ values
        bound = 1e-12 * max(float(np.abs(seen).max()), 1e-300)
        fitted = np.abs(np.vander(tests, _DEGREE + 1) @ c - seen).max() <= bound
        if fits or (fitted and pieces == 1):
            break
        fits = fitted  # pieces of half the size follow: they miss the function by rounding only
        pieces *= 2
    else:
        raise ModelError(f"{where}: must be smooth between {low:g} and {high:g}: {_MOST_PIECES} polynomials of degree "
                         f"{_DEGREE} miss it by more than 1e-12; give its smooth part by span=(low, high)")  # fmt: skip
    c = (c / half ** np.arange(_DEGREE, -1, -1)[:, None])[:, :, None]
    c = np.swapaxes(_moved(c, np.full(pieces, -half), _DEGREE + 1), 0, 1)
    return PPoly.construct_fast(c, knots)


def is_exact(value: Any) -> bool:
    """Whether the derivatives of the polynomials of a function of time are its exact rates. This is false for tables
    and samples with corners. SciPy's polynomials are assumed to be exact."""
    if isinstance(value, Tabulated):
        return value.interpolation != "linear"
    return getattr(value, "smooth", True)


def constant(values: np.ndarray) -> PPoly:
    """A polynomial with constant values."""
    from scipy.interpolate import PPoly

    return PPoly.construct_fast(np.array(values, dtype=np.float64)[None, None], np.array([0.0, 1.0]))


def _table(table: Tabulated) -> Any:
    """A table as polynomials, constant beyond its ends; None for a barycentric table, whose single polynomial has a
    high degree."""
    from scipy.interpolate import CubicSpline

    if table.interpolation == "barycentric":
        return None
    x, y = np.asarray(table.points, dtype=np.float64), np.asarray(table.values, dtype=np.float64)
    if table.interpolation == "cubic":
        return held(CubicSpline(x, y).c, x, y[0], y[-1])
    slope = np.diff(y, axis=0) / np.diff(x).reshape(-1, *[1] * (y.ndim - 1))
    return held(np.stack([slope, y[:-1]]), x, y[0], y[-1])


def held(c: np.ndarray, x: np.ndarray, first: np.ndarray, last: np.ndarray) -> PPoly:
    """Polynomials with coefficients c (order, pieces, ...) between knots x, continued by the constants `first` and
    `last`.

    The last constant begins `_AFTER` behind its knot, so that rates at the last knot are those before it. A motion that
    ends there has them.
    """
    from scipy.interpolate import PPoly

    rows = np.zeros((max(len(c), 1), len(x) + 1, *c.shape[2:]))
    rows[len(rows) - len(c) :, 1:-1] = c
    rows[-1, 0], rows[-1, -1] = first, last
    after = x[-1] + _AFTER * max(abs(x[0]), abs(x[-1]), 1e-300)
    return PPoly(rows, np.concatenate([[x[0] - 1.0], x[:-1], [after, after + 1.0]]))


def stacked_polynomials(parts: list[PPoly]) -> tuple[np.ndarray, np.ndarray]:
    """Polynomials with different knots as one table for kernels.

    Returns:
        knots (2, n): row 0 is the time at which each piece begins (minus infinity for the first piece), row 1 the
        origin of its powers. coefficients (n, order, components), the highest power first.
    """
    inner = np.unique(np.concatenate([[], *(part.x[1:-1] for part in parts)]))
    begins, since = np.append(-np.inf, inner), np.append(inner[0] if len(inner) else 0.0, inner)
    order = max((part.c.shape[0] for part in parts), default=1)
    rows = [np.zeros((len(begins), order, 0))]
    for part in parts:
        k = np.clip(np.searchsorted(part.x, begins, side="right") - 1, 0, part.c.shape[1] - 1)
        rows.append(_moved(part.c[:, k], since - part.x[k], order))
    return np.stack([begins, since]), np.concatenate(rows, axis=2)


def _moved(c: np.ndarray, by: np.ndarray, order: int) -> np.ndarray:
    """Change of the origin of polynomials by Horner's scheme: coefficients `c` (m, n, size) of powers of s become
    coefficients of powers of s − by, with `by` (n,). Returns shape (n, order, size)."""
    c = c.copy()
    for first in range(len(c) - 1):
        for k in range(1, len(c) - first):
            c[k] += by[:, None] * c[k - 1]
    out = np.zeros((c.shape[1], order, c.shape[2]))
    out[:, order - len(c) :] = np.swapaxes(c, 0, 1)
    return out


def is_compiled(function: Any) -> bool:
    """Whether kernels can call a function: it is a Warp function, or native code."""
    return isinstance(function, NativeFunction) or type(function).__module__.startswith("warp")
