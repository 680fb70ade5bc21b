"""Least value of a function of design values, inputs or other numbers, from its gradient, by SciPy or Ipopt.

The solvers get scaled numbers y = x / unit, the scaled loss L / |dL/dy| with the gradient at the start, and rows of
constraints divided by the size of their gradients at the start. With the rows c ≥ 0 that hold with equality at y, their
derivatives A, and those of bounds among them, the gradient that remains at y is

    r = g − Aᵀ μ,   μ = argmin |g − Aᵀ μ|,   μ ≥ 0 for inequalities                                       (1)

It is zero at a minimum. Where the loss has no value, the solvers get a paraboloid about the last point y₀ that had one,
so that they take a shorter step:

    f(y) = f(y₀) + K |y − y₀|² / d²,   d = |y − y₀| of the first such y,   K = 10 max(|g(y₀)| d, 10⁻³)          (2)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import nnls

from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.inverse.numbers import Numbers, array_at, numbers_from
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.robot.paths import is_pose, value_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

METHODS = ("L-BFGS-B", "SLSQP", "ipopt")
_ACTIVE = 1e-6  # scaled rows and bounds closer than this hold with equality
_BROKEN = 1e-6  # scaled rows may be broken by this
_STEEP = 10.0  # of (2)
_SHOWN = 8  # entries of an array in the report

Loss = Callable[[dict[str, Any]], tuple[float, Mapping[str, Any]]]
Constraint = tuple[Callable[[dict[str, Any]], tuple[Any, Mapping[str, Any]]], Any, Any]


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Minimum:
    """The best values of a search by `minimize`.

    Fields:
        values: best values by name, in the units of each.
        loss: value of the function there [-, or its own unit].
        gradient: its derivatives with respect to the values, by name; (6,) for a pose.
        gradient_norm: norm of the gradient that bounds and constraints leave [-], as a fraction of the gradient at the
            start, in scaled numbers. It is zero at a minimum.
        violation: largest scaled violation of a constraint [-]; below 1e-6 counts as none.
        converged: whether the solver or gradient_norm reached the tolerance.
        reason: why the search ended.
        calls: number of calls of the loss, each with its gradient.
        iterations: number of iterations of the solver.
        seconds: computing time [s].
        losses: the loss of each call (calls,), NaN if it had none.
        model: the model with these values; None without a model.
    """

    values: dict[str, Any]
    loss: float
    gradient: dict[str, np.ndarray]
    gradient_norm: float
    violation: float
    converged: bool
    reason: str
    calls: int
    iterations: int
    seconds: float
    losses: np.ndarray = field(repr=False)
    model: Model | None = field(default=None, repr=False)

    @property
    def report(self) -> str:
        """The result as lines of text: the end of the search, then each value with its derivative."""
        state = "converged" if self.converged else "not converged"
        first = next((x for x in self.losses if np.isfinite(x)), np.nan)
        out = [
            f"{state}: {self.reason}",
            f"loss {self.loss:.6g} (at the start {first:.6g}), remaining gradient {self.gradient_norm:.2g}, "
            f"violation {self.violation:.2g}",
            f"{self.calls} calls, {self.iterations} iterations, {self.seconds:.3g} s",
        ]
        width = max((len(name) for name in self.values), default=0)
        for name, value in self.values.items():
            out.append(f"{name:{width}}  {_listed(value)}  derivative {_listed(self.gradient[name])}")
        return "\n".join(out)


def minimize(
    loss: Loss,
    over: Sequence[str] | None = None,
    start: Mapping[str, ArrayLike] | None = None,
    *,
    model: Model | None = None,
    bounds: Mapping[str, Any] | None = None,
    constraints: Sequence[Constraint] = (),
    method: str | None = None,
    tolerance: float = 1e-6,
    iterations: int = 200,
    options: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Minimum:
    """Minimise a function of design values, inputs or other numbers by its gradient, for instance a co-design.

    Numbers of different units are scaled. The best values are kept, also if the search is interrupted.

    Args:
        loss: function of the values by name, floats, arrays or poses. It returns L and its derivatives by name, in the
            shape of each value; for a pose with respect to an increment (w; u) on its right, (6,). These are the forms
            of `Gradient.parameters` and `EquilibriumDerivatives.parameters`. If it raises a ConvergenceError or a
            ModelError, or returns NaN, the search takes a shorter step.
        over: names of the values: paths of design values of `model`, or names of your own. None: those of `start`.
        start: values at the start by name. Paths that it leaves out start at the values of the model.
        model: robot whose paths are among the names; needed only for paths without a start, and for `Minimum.model`.
        bounds: (low, high) by name, numbers or arrays in the shape of the value; for a pose bounds of its increment
            from the start, (6,) [rad, m].
        constraints: (function, low, high) each, with low ≤ c ≤ high; None is no limit, equal limits are an equation.
            The function takes the values by name, and returns c, a number or an array (m,), and its derivatives by
            name, of shape (*shape of c, *shape of the value).
        method: "L-BFGS-B" (without constraints), "SLSQP", or "ipopt", which needs the package cyipopt. None:
            L-BFGS-B, or SLSQP with constraints.
        tolerance: the search ends if the gradient, or the square root of the change of the loss, falls below this
            fraction of the gradient at the start, in scaled numbers [-].
        iterations: largest number of iterations of the solver.
        options: further options of the solver.
        progress: True shows the number of calls and the best loss, if the search takes longer than one second.
    Returns:
        Minimum. Its `report` says how the search ended. It is a local minimum, since gradients lead to no other.
    Raises:
        ModelError: a name, a bound, a constraint or the method is wrong; a gradient lacks a name; or the loss has no
            value at the start. ShapeError: an array has a wrong shape.
        Errors of the loss, and KeyboardInterrupt: their attribute `partial` is the Minimum so far; None before the
            first value.
    Accuracy: `gradient_norm` measures the distance from a minimum, independently of the solver. Cost: one call of the
        loss for each step; SLSQP adds O(k³) for k numbers, L-BFGS-B O(k).
    """
    names = tuple(start or ()) if over is None else tuple(over)
    known = dict(start or {})
    rule = "must be names of values, each once"
    texts = all(isinstance(name, str) for name in names)
    checks.require(len(names) > 0 and texts and len(set(names)) == len(names), "over", rule, over)
    for name in known:
        checks.require(name in names, f"start > {name}", f"must be one of the values to search, {list(names)}", name)
    parts = {name: _begin(name, known, model) for name in names}
    numbers = numbers_from(parts, bounds or {}, "values at the start")
    checks.number(tolerance, "tolerance", above=0.0)
    checks.integer(iterations, "iterations", least=1)
    rows = [_checked(k, one) for k, one in enumerate(constraints)]
    chosen = method or ("SLSQP" if rows else "L-BFGS-B")
    checks.require(checks.among(chosen, METHODS), "method", f"must be one of {', '.join(METHODS)}", method)
    checks.require(chosen != "L-BFGS-B" or not rows, "method", "must take constraints, as SLSQP does", method)
    with progress_bar(progress, None, "minimizing", patience=PATIENCE) as advance:
        search = Search(loss, numbers, rows, model, advance)
        try:
            search.begin()
            _solve(search, chosen, tolerance, iterations, dict(options or {}))
            return search.minimum(tolerance)
        except BaseException as error:
            search.reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            error.partial = search.minimum(tolerance) if search.best else None  # type: ignore[attr-defined]
            raise


def _begin(name: str, start: dict[str, Any], model: Model | None) -> np.ndarray:
    """The value at the start."""
    if name in start:
        rule = "must be a finite number, an array of finite numbers or a pose"
        array = checks.array(start[name], np.shape(start[name]), f"start > {name}", rule)
        return checks.pose(array, f"start > {name}") if is_pose(array) else array
    checks.require(model is not None, f"start > {name}", "must be given without a model", None)
    assert model is not None
    return array_at(model, name)


def _checked(k: int, given: Any) -> tuple[Any, float | np.ndarray, float | np.ndarray]:
    """A constraint with limits as arrays, infinite if it has none."""
    good = isinstance(given, tuple | list) and len(given) == 3 and callable(given[0])
    checks.require(good, f"constraints[{k}]", "must be (function, low, high)", given)
    try:
        low = np.asarray(-np.inf if given[1] is None else given[1], dtype=np.float64)
        high = np.asarray(np.inf if given[2] is None else given[2], dtype=np.float64)
        fits = bool((low <= high).all()) and not (np.isposinf(low).any() or np.isneginf(high).any())
    except (TypeError, ValueError):
        raise checks.fail(f"constraints[{k}]", "must have numbers as limits", given[1:]) from None
    checks.require(fits, f"constraints[{k}]", "must have low <= high", (given[1], given[2]))
    return given[0], low, high


@final
@dataclass
class Point:
    """The loss and the constraints at scaled numbers.

    Fields:
        y: scaled numbers (k,).
        loss, slopes: the loss and its derivatives with respect to the values (k,), not scaled.
        f, g: scaled loss and its derivatives with respect to y.
        c, A: scaled rows of constraints (m,) and their derivatives (m, k).
        real: False if the loss has no value, and f is (2).
    """

    y: np.ndarray
    loss: float
    slopes: np.ndarray
    f: float
    g: np.ndarray
    c: np.ndarray
    A: np.ndarray
    real: bool = True


@final
class Search:
    """Calls of the loss and of the constraints, with a cache of the last point, and the best point so far."""

    def __init__(
        self, loss: Loss, numbers: Numbers, constraints: list[Any], model: Model | None, advance: Callable[..., None]
    ) -> None:
        self.loss, self.numbers, self.constraints, self.model = loss, numbers, constraints, model
        self.units, self.advance, self.began = numbers.units, advance, time.perf_counter()
        self.low, self.high = numbers.low / self.units, numbers.high / self.units
        self.scale, self.row_scale = 1.0, np.ones(0)
        self.limits = np.zeros((2, 0))  # of all rows, scaled
        self.best: Point | None = None
        self.last: Point | None = None
        self.losses: list[float] = []
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []
        self.iterations, self.success, self.reason = 0, False, ""

    def begin(self) -> None:
        """Compute the first point, and the scales from it."""
        first = self._computed(self.numbers.start / self.units)
        if first is None:
            raise ModelError("loss: must be finite at the start, with finite derivatives (got NaN or infinity)")
        ends = [np.zeros((2, 0))]
        for k, ((row, _), (_, *limits)) in enumerate(zip(self._rows, self.constraints)):
            try:
                ends.append(np.array([np.broadcast_to(limit, row.shape).ravel() for limit in limits]))
            except ValueError:
                raise ShapeError(f"constraints[{k}]: expected limits that are numbers or of shape {row.shape}, got "
                                 f"{[limit.shape for limit in limits]}") from None  # fmt: skip
        self.limits = np.concatenate(ends, axis=1)
        self.scale = float(np.linalg.norm(first.g)) or abs(first.loss) or 1.0
        wide = np.linalg.norm(first.A, axis=1)
        self.row_scale = np.where(wide > 0.0, wide, 1.0)
        self.limits = self.limits / self.row_scale
        first.f, first.g = first.f / self.scale, first.g / self.scale
        first.c, first.A = first.c / self.row_scale, first.A / self.row_scale[:, None]
        self._keep(first)

    def at(self, y: np.ndarray) -> Point:
        """The point at scaled numbers, within the bounds."""
        y = np.clip(np.asarray(y, dtype=np.float64), self.low, self.high)
        assert self.last is not None
        if np.array_equal(y, self.last.y):
            return self.last
        try:
            found = self._computed(y)
        except (ConvergenceError, ModelError):
            found = None
        self._keep(found or self._paraboloid(y))
        return self.last

    def _computed(self, y: np.ndarray) -> Point | None:
        """The loss and the constraints at y; None if a number is not finite."""
        x = np.clip(y * self.units, self.numbers.low, self.numbers.high)
        self.losses.append(np.nan)
        value, slopes = self._pair(self.loss(self.numbers.values(x)), "loss")
        if np.shape(value):
            raise ShapeError(f"loss: expected a number, got shape {np.shape(value)}")
        self._rows = [self._pair(one(self.numbers.values(x)), f"constraints[{k}]")
                      for k, (one, *_) in enumerate(self.constraints)]  # fmt: skip
        c = np.concatenate([np.zeros(0), *(np.ravel(row) for row, _ in self._rows)])
        k = len(y)
        by_x = np.concatenate([slopes[None], *(A.reshape(-1, k) for _, A in self._rows)])
        by_y = self.numbers.by_numbers(x, by_x) * self.units
        if not (np.isfinite(value) and np.isfinite(c).all() and np.isfinite(by_y).all()):
            return None
        self.losses[-1] = float(value)
        rows = self.row_scale if len(self.row_scale) == len(c) else np.ones(len(c))
        f, g = float(value) / self.scale, by_y[0] / self.scale
        return Point(y, float(value), slopes, f, g, c / rows, by_y[1:] / rows[:, None])

    def _pair(self, found: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
        """A value and its derivatives with respect to all numbers, (*shape of the value, k)."""
        pair = isinstance(found, tuple | list) and len(found) == 2
        checks.require(pair, where, "must return a value and its derivatives by name", found)
        value = np.asarray(found[0], dtype=np.float64)
        return value, self.numbers.joined(found[1], f"{where} > derivatives", value.shape)

    def _paraboloid(self, y: np.ndarray) -> Point:
        """(2) about the last point with a value."""
        near = self._origin
        away = y - near.y
        d = float(np.linalg.norm(away))
        steep = _STEEP * max(float(np.linalg.norm(near.g)) * d, 1e-3)
        return Point(y, np.nan, near.slopes, near.f + steep, 2.0 * steep * away / d**2, near.c, near.A, real=False)

    def _keep(self, point: Point) -> None:
        self.last = point
        if point.real:
            self._origin = point
            if self.best is None or self._order(point) < self._order(self.best):
                self.best = point
        best = self.best.loss if self.best else np.nan
        self.advance(len(self.losses), f"{len(self.losses)} calls, loss {best:.6g}")

    def _order(self, point: Point) -> tuple[float, float]:
        """Smaller for better points: first by violations of constraints, then by the loss."""
        broken = self.violation(point)
        return (broken if broken > _BROKEN else 0.0), point.loss

    def violation(self, point: Point) -> float:
        """The largest scaled violation of a constraint."""
        low, high = self.limits
        return float(np.max(np.maximum(low - point.c, point.c - high), initial=0.0))

    def remaining(self, point: Point) -> float:
        """Norm of the remaining gradient (1)."""
        low, high = self.limits
        eye = np.eye(len(point.y))
        equal = low == high
        at_low, at_high = point.c - low <= _ACTIVE, high - point.c <= _ACTIVE
        walls = [point.A[at_low & ~equal], -point.A[at_high & ~equal], point.A[equal], -point.A[equal]]
        walls += [eye[point.y - self.low <= _ACTIVE], -eye[self.high - point.y <= _ACTIVE]]
        A = np.concatenate(walls)
        return float(nnls(A.T, point.g)[1] if len(A) else np.linalg.norm(point.g))

    def minimum(self, tolerance: float) -> Minimum:
        """The best point as a result."""
        assert self.best is not None
        best, numbers = self.best, self.numbers
        x = np.clip(best.y * self.units, numbers.low, numbers.high)
        values, left, broken = numbers.values(x), self.remaining(best), self.violation(best)
        own = None
        if self.model is not None:
            own = self.model.with_({name: value for name, value in values.items() if is_path(self.model, name)})
        good = broken <= _BROKEN and (self.success or left <= tolerance)
        return Minimum(
            values, best.loss, numbers.split(best.slopes), left, broken, good, self.reason, len(self.losses),
            self.iterations, time.perf_counter() - self.began, np.array(self.losses), own,
        )  # fmt: skip


def _solve(search: Search, method: str, tolerance: float, iterations: int, options: dict[str, Any]) -> None:
    """Run the solver, and keep its count of iterations and its reason to stop."""

    def count(*_: Any) -> None:
        search.iterations += 1

    def value(y: np.ndarray) -> tuple[float, np.ndarray]:
        point = search.at(y)
        return point.f, point.g.copy()

    first = search.at(search.numbers.start / search.units).y.copy()
    common = {"jac": True, "bounds": list(zip(search.low, search.high)), "constraints": _constraints(search)}
    if method == "ipopt":
        ends = {"max_iter": iterations, **options}
        found = _ipopt()(value, first, **common, tol=tolerance, options=ends)  # it calls nothing after a step
        search.iterations = int(found.nit)
    else:
        ends = {"maxiter": iterations, "ftol": tolerance**2}
        ends |= {"gtol": tolerance, "maxfun": 20 * iterations} if method == "L-BFGS-B" else {}
        found = scipy_minimize(value, first, **common, method=method, callback=count, options=ends | options)
    message = found.message.decode() if isinstance(found.message, bytes) else str(found.message)
    search.success, search.reason = bool(found.success), message
    end = search.at(found.x)
    if search.success and end.real and search.violation(end) <= _BROKEN:
        search.best = end  # a point before it may have a smaller loss, since it broke a constraint slightly


def _ipopt() -> Any:
    """The function of cyipopt with SciPy's interface."""
    try:
        from cyipopt import minimize_ipopt  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ModelError("method: 'ipopt' needs cyipopt: conda install -c conda-forge cyipopt (got none)") from None
    return minimize_ipopt


def _constraints(search: Search) -> list[dict[str, Any]]:
    """The rows as equations c = low and inequalities c ≥ low and c ≤ high, in SciPy's form."""
    low, high = search.limits
    equal = low == high
    out = []
    for kind, rows, sign, end in (
        ("eq", equal, 1.0, low),
        ("ineq", ~equal & np.isfinite(low), 1.0, low),
        ("ineq", ~equal & np.isfinite(high), -1.0, high),
    ):
        if rows.any():
            out.append(
                {
                    "type": kind,
                    "fun": lambda y, rows=rows, sign=sign, end=end: sign * (search.at(y).c - end)[rows],
                    "jac": lambda y, rows=rows, sign=sign: sign * search.at(y).A[rows],
                }
            )
    return out


def is_path(model: Model, name: str) -> bool:
    """Whether a name is a path of the robot."""
    try:
        value_at(model.description, name)
    except ModelError:
        return False
    return True


def _listed(value: Any) -> str:
    """Numbers as text, at most eight of an array."""
    array = np.asarray(value)
    first = " ".join(f"{x:.6g}" for x in array.ravel()[:_SHOWN])
    return f"{first} ... {array.shape}" if array.size > _SHOWN else first
