"""Inputs as functions of time, and controllers with or without a state z.

    u = output(t, q, v, z),   dz/dt = rate(t, q, v, z),   z(0) = start                                    (1)

A controller with a period T updates z once per sample, after its output. u is constant until the next sample:

    uₖ = output(tₖ, q, v, zₖ),   zₖ₊₁ = zₖ + T rate(tₖ, q, v, zₖ)                                          (2)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, final

import numpy as np
from scipy.interpolate import PchipInterpolator, PPoly

from lissom.errors import ModelError, ShapeError, check_kept, lost
from lissom.launch.workspace import batch_of, require_finite_rows, stack
from lissom.model.model import Model
from lissom.portable import reduced
from lissom.robot import checks, formatting
from lissom.robot.expression_programs import Steps, programs_of
from lissom.robot.functions import Expression, held
from lissom.robot.traced_functions import TracedFunction
from lissom.stepping.feedback import native_law
from lissom.stepping.state import ControlLaw, FunctionOfTime, constant_polynomials

_FEW = 12  # up to this number of inputs, Python floats are faster than arrays


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Samples:
    """Inputs at given times, interpolated between them and constant beyond the ends.

    Args:
        t: ascending times [s], shape (n,).
        u: inputs at these times, shape (n, nu), or (..., n, nu) [N, m, Pa or N·m, by actuator] for the motions of a
            batch.
        smooth: False: linear interpolation. True: cubics with a continuous slope that do not overshoot (PCHIP). An
            adaptive method must stop at the corners of linear interpolation.
    Raises:
        ShapeError: an argument has a wrong shape or is not finite.
    """

    t: Any
    u: Any
    smooth: bool = False

    def __post_init__(self) -> None:
        check_kept("samples: t", self.t)
        check_kept("samples: u", self.u)
        try:
            t, u = np.array(self.t, dtype=np.float64), np.array(self.u, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ShapeError(f"samples: expected numbers, got t={self.t!r} and u={self.u!r}") from None
        if t.ndim != 1 or len(t) == 0 or u.ndim < 2 or u.shape[-2] != len(t):
            raise ShapeError(f"samples: expected t of shape (n,) and u of shape (n, nu), got {t.shape} and {u.shape}")
        if not (np.isfinite(t).all() and np.isfinite(u).all()):
            raise ShapeError("samples: must be finite, got NaN or infinity")
        if np.any(np.diff(t) <= 0):
            k = int(np.argmax(np.diff(t) <= 0))
            raise ShapeError(f"samples: t must rise strictly (got {t[k + 1]:g} s after {t[k]:g} s, row {k + 1})")
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "u", u)

    @cached_property
    def pieces(self) -> tuple[list[float], np.ndarray]:
        """Times, and for each interval between them the coefficients of a polynomial, highest power first."""
        if self.smooth and len(self.t) > 1:
            return self.t.tolist(), np.moveaxis(PchipInterpolator(self.t, self.u, axis=-2).c, 1, 0)
        slope = np.diff(self.u, axis=-2) / np.diff(self.t)[:, None]
        pieces = np.stack([slope, self.u[..., :-1, :]], axis=-2)  # (..., stretches, 2, nu)
        return self.t.tolist(), np.moveaxis(pieces, (-3, -2), (0, 1))

    @cached_property
    def polynomial(self) -> PPoly | None:
        """The samples as SciPy's piecewise polynomial; None for a batch."""
        if self.u.ndim > 2:
            return None
        return held(np.swapaxes(self.pieces[1], 0, 1), self.t, self.u[0], self.u[-1])

    def __call__(self, t: float) -> np.ndarray:
        """The inputs at time t, shape (..., nu)."""
        times, pieces = self.pieces
        if t <= times[0] or t >= times[-1]:
            return self.u[..., 0 if t <= times[0] else -1, :].copy()
        k = bisect_right(times, t) - 1
        x = t - times[k]
        if self._numbers is None:
            return _polynomial(pieces[k], x)
        return np.array([_horner(c, x) for c in self._numbers[k]])

    @cached_property
    def _numbers(self) -> list[list[list[float]]] | None:
        """The coefficients for each interval and input as Python floats, which are faster; None for more than _FEW
        inputs or for a batch."""
        return np.swapaxes(self.pieces[1], 1, 2).tolist() if self.u.ndim == 2 and self.u.shape[1] <= _FEW else None

    def polynomials(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples of one motion in the form of `FunctionOfTime.polynomials`."""
        times, pieces = self.pieces
        nu = self.u.shape[1]
        rows = np.zeros((len(times) + 1, 4, nu))
        rows[1:-1, 4 - pieces.shape[1] :] = pieces
        rows[0, 3], rows[-1, 3] = self.u[0], self.u[-1]
        return np.append(-np.inf, times), rows.reshape(len(rows), 4 * nu)

    @property
    def programs(self) -> list[Steps]:
        """Programs of expressions: samples have none."""
        return []

    def over(self, times: np.ndarray) -> np.ndarray:
        """The inputs at times (n,), shape (..., n, nu). They equal the inputs of calls at single times."""
        known, pieces = self.pieces
        rows = np.empty((len(times), *self.u.shape[:-2], self.u.shape[-1]))
        early, late = times <= known[0], times >= known[-1]
        rows[early], rows[late] = self.u[..., 0, :], self.u[..., -1, :]
        inside = ~(early | late)
        if inside.any():
            t = times[inside]
            k = np.searchsorted(self.t, t, side="right") - 1
            x = (t - self.t[k]).reshape(-1, *[1] * (rows.ndim - 1))
            rows[inside] = _polynomial(np.moveaxis(pieces[k], 1, 0), x)
        return np.moveaxis(rows, 0, -2)


def _polynomial(coefficients: np.ndarray, x: Any) -> np.ndarray:
    """Σ c_k x^(n−k) by Horner's rule, for each component alone, so that the result does not depend on the batch."""
    value = coefficients[0] * x
    for k in range(1, len(coefficients) - 1):
        value += coefficients[k]
        value *= x
    value += coefficients[-1]
    return value


def _horner(coefficients: list[float], x: float) -> float:
    """`_polynomial` for one component, equal to the last bit."""
    value = coefficients[0] * x
    for c in coefficients[1:-1]:
        value = (value + c) * x
    return value + coefficients[-1]


@final
@dataclass(frozen=True)
class Constant:
    """Constant inputs (nu,) as a function of time."""

    u: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        return self.u

    def over(self, times: np.ndarray) -> np.ndarray:
        """The inputs at many times (n,), shape (n, nu)."""
        return np.tile(self.u, (len(times), 1))

    def polynomials(self) -> tuple[np.ndarray, np.ndarray]:
        """The inputs in the form of `FunctionOfTime.polynomials`."""
        return constant_polynomials(self.u)

    @property
    def programs(self) -> list[Steps]:
        """Programs of expressions: none."""
        return []


@final
@dataclass(frozen=True)
class CheckedFunction:
    """A user's function of time. Its values are checked."""

    function: Callable[[float], Any]
    nu: int

    def __call__(self, t: float) -> np.ndarray:
        return checked_row(called("u", t, self.function, t), self.nu, "u", t)

    def over(self, times: np.ndarray) -> np.ndarray:
        """The inputs at many times (n,), shape (n, nu)."""
        return np.stack([self(t) for t in times.tolist()])

    def polynomials(self) -> None:
        """None: a Python function is not a polynomial."""
        return None

    @property
    def programs(self) -> list[Steps]:
        """Programs of expressions: none."""
        return []


@final
class Formulas:
    """Inputs given by an Expression of time. Kernels evaluate its `programs`, one for each input."""

    def __init__(self, expression: Expression, programs: list[Steps]) -> None:
        self.expression, self.programs = expression, programs

    @staticmethod
    def of(u: Any, nu: int) -> Formulas | None:
        """The Formulas of u if u is an Expression with nu components; otherwise None."""
        flat = isinstance(u, Expression) and np.shape(u.source) == (nu,)
        programs = programs_of(u, nu) if flat else None
        return None if programs is None else Formulas(u, programs)

    def __call__(self, t: float) -> np.ndarray:
        """The inputs at time t, shape (nu,), equal to the result of `over`."""
        return self.over(np.array([t]))[0]

    def over(self, times: np.ndarray) -> np.ndarray:
        """The inputs at many times (n,), shape (n, nu).

        Raises:
            ShapeError: an input is not finite.
        """
        rows = self.expression.over(np.ascontiguousarray(times, dtype=np.float64))
        good = np.isfinite(rows).all(axis=1)
        if not good.all():
            raise ShapeError(f"u at t={times[np.argmin(good)]:g}: must be finite, got NaN or infinity")
        return rows

    def polynomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Zeros in the form of `FunctionOfTime.polynomials`; kernels add the programs to them."""
        return constant_polynomials(np.zeros(len(self.programs)))


def joined(u: Any) -> Any:
    """A list of numbers and Expressions as one Expression; other u unchanged.

    Raises:
        ModelError: an entry is neither a number nor an expression of t, or two use one name for different numbers.
    """
    if not isinstance(u, list | tuple) or not any(isinstance(x, Expression) for x in u):
        return u
    constants: dict[str, float] = {}
    for k, x in enumerate(u):
        if not isinstance(x, Expression):
            checks.number(x, f"u > input {k}")
            continue
        checks.require(isinstance(x.source, str | int | float), f"u > input {k}", "must be one expression", x.source)
        checks.require(x.variable == "t", f"u > input {k}", "must be an expression of t", x.variable)
        for name, value in x.constants.items():
            rule = f"must have the number that {name!r} has in the inputs before it, {constants.get(name, value):g}"
            checks.require(constants.setdefault(name, value) == value, f"u > input {k}", rule, value)
    return Expression([x.source if isinstance(x, Expression) else float(x) for x in u], "t", constants)


def input_function(model: Model, u: Any) -> FunctionOfTime:
    """u as a function of time with checked values. u is None, an array (nu,), Samples, an Expression, a list of these
    or a function of t."""
    u = joined(u)
    if u is None:
        return Constant(np.zeros(model.nu))
    formulas = Formulas.of(u, model.nu)
    if formulas is not None:
        return formulas
    if isinstance(u, Samples):
        if u.u.ndim != 2 or u.u.shape[1] != model.nu:
            raise ShapeError(f"u: expected samples of shape (n, {model.nu}), got {u.u.shape}")
        return u
    if callable(u):
        return CheckedFunction(u, model.nu)
    row = stack("u", u, model.nu)
    if row.ndim != 1:
        raise ShapeError(f"u: expected shape ({model.nu},), ls.Samples or a function of t, got {row.shape}")
    return Constant(checked_row(row, model.nu, "u", 0.0))


@final
class InputRows:
    """The inputs of the motions of a batch, from `u` of `simulate`. `lead` holds the leading axes of u."""

    u: Any

    def __init__(self, model: Model, u: Any) -> None:
        self.model, self.u = model, (u := joined(u))
        self.lead: tuple[int, ...] = ()
        if isinstance(u, Samples):
            if u.u.shape[-1] != model.nu:
                lead = "..., " if u.u.ndim > 2 else ""
                raise ShapeError(f"u: expected samples of shape ({lead}n, {model.nu}), got {u.u.shape}")
            self.lead = u.u.shape[:-2]
        elif u is not None and not callable(u):
            self.u = stack("u", u, model.nu)
            self.lead = self.u.shape[:-1]

    @cached_property
    def function(self) -> FunctionOfTime:
        """The inputs as a function of time, if all motions share them."""
        return input_function(self.model, self.u)

    def over(self, lead: tuple[int, ...]) -> InputRows:
        """The inputs broadcast to the leading axes of a batch, as one axis."""
        out, count = InputRows(self.model, self.u), batch_of(lead)
        if self.lead and isinstance(self.u, Samples):
            rows = np.broadcast_to(self.u.u, (*lead, *self.u.u.shape[-2:]))
            out = InputRows(self.model, Samples(self.u.t, rows.reshape(count, *rows.shape[-2:]), self.u.smooth))
        elif self.lead:
            out = InputRows(self.model, np.broadcast_to(self.u, (*lead, self.model.nu)).reshape(count, self.model.nu))
        return out

    def of(self, i: int) -> Any:
        """The inputs of motion i, for the result of `over`."""
        if not self.lead:
            return self.u
        return replace(self.u, u=self.u.u[i]) if isinstance(self.u, Samples) else self.u[i]

    def part(self, motions: slice) -> InputRows:
        """The inputs of a range of motions, for the result of `over`."""
        if not self.lead:
            return self
        if isinstance(self.u, Samples):
            return InputRows(self.model, replace(self.u, u=self.u.u[motions]))
        return InputRows(self.model, self.u[motions])

    @property
    def are_known(self) -> bool:
        """Whether the inputs are constants, samples or formulas, so that kernels can evaluate them."""
        return self.u is None or isinstance(self.u, Samples) or not callable(self.u) or bool(self.programs)

    @cached_property
    def programs(self) -> list[Steps]:
        """Programs of formulas; empty for other inputs."""
        found = Formulas.of(self.u, self.model.nu)
        return [] if found is None else found.programs

    def polynomials(self) -> tuple[np.ndarray, np.ndarray]:
        """The polynomials of all motions, for the result of `over`: knots, and coefficients (n, n_knots, 4 nu), or (1,
        ...) if all motions have the same inputs. See `FunctionOfTime.polynomials`."""
        found = []
        for i in range(len(self.u.u if isinstance(self.u, Samples) else self.u) if self.lead else 1):
            one = input_function(self.model, self.of(i)).polynomials()
            if one is None:
                raise RuntimeError("inputs that are functions of time are no polynomials")
            found.append(one)
        return found[0][0], np.stack([pieces for _, pieces in found])

    def row(self, i: int, t: float) -> np.ndarray:
        """The inputs of motion i at a time, shape (nu,), for the result of `over`."""
        if self.lead and not isinstance(self.u, Samples):
            return self.u[i]
        return self.u(t)[i] if self.lead else self.function(t)

    def each(self, motions: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Inputs of n motions, each at its own k times, from `times` (n, k), as rows (n, k nu). Call it on the result
        of `over`."""
        if self.lead and not isinstance(self.u, Samples):
            return np.tile(self.u[motions], times.shape[1])
        found = [[self.row(i, t) for t in row] for i, row in zip(motions.tolist(), times.tolist())]
        return np.reshape(found, (len(motions), times.shape[1] * self.model.nu))

    def at(self, times: list[float]) -> np.ndarray:
        """The inputs of the motions at times, shape (n, n_times, nu), or (1, n_times, nu) if all motions have the same
        inputs, for the result of `over`.

        Raises:
            ShapeError: an input is not finite, or a function returns a wrong shape.
        """
        if self.lead and not isinstance(self.u, Samples):
            require_finite_rows(u=self.u)
            return np.broadcast_to(self.u[:, None], (len(self.u), len(times), self.model.nu))
        if self.lead:
            return self.u.over(np.array(times))
        return self.function.over(np.array(times))[None]


def called(name: str, t: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """The value of a user's function. An error of the function gets a note with the time and is raised again."""
    try:
        return function(*arguments)
    except Exception as error:
        note = f"raised by {name} at t={t:g} s"
        add_note = getattr(error, "add_note", None)
        if add_note is None:  # Python 3.10
            error.args = (f"{error} ({note})", *error.args[1:])
        elif note not in getattr(error, "__notes__", ()):
            add_note(note)
        raise


def checked_row(value: Any, size: int, name: str, t: float) -> np.ndarray:
    """`value` as a finite array of shape (size,). Otherwise a ShapeError with the name and the time is raised."""
    if missing := lost(value):
        raise ShapeError(f"{name} at t={t:g}: {missing}")
    try:
        row = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{name} at t={t:g}: expected shape ({size},), got {value!r}") from None
    if row.shape != (size,):
        raise ShapeError(f"{name} at t={t:g}: expected shape ({size},), got {row.shape}")
    if not isfinite(sum(row.tolist())) and not np.isfinite(row).all():  # the sum is several times faster
        raise ShapeError(f"{name} at t={t:g}: must be finite, got NaN or infinity")
    return row


@final
@dataclass(frozen=True)
class Controller:
    """Feedback with a state z, such as the integral of an error or a filter, for `simulate(controller=)`.

        u = output(t, q, v, z),   dz/dt = rate(t, q, v, z),   z(0) = start

    Args:
        output: function of (t, q, v, z) that returns u, shape (nu,).
        rate: function of (t, q, v, z) that returns dz/dt, shape (nz,). None: there is no state, and z is empty.
        start: z at t = 0, shape (nz,).
        derivatives: function of (t, q, v, z) that returns (∂u/∂q, ∂u/∂v), each of shape (nu, nv); increments of q are
            in the tangent space. Implicit methods use it, for a controller without a state. None: finite differences of
            `output`, in 2 nv evaluations. Small terms may be omitted: Newton's method then takes more iterations, and
            the result is the same.
    Raises:
        ModelError, ShapeError: an argument is no function, or `start` is not finite or has a wrong shape.
    """

    output: Callable[[float, np.ndarray, np.ndarray, np.ndarray], Any]
    rate: Callable[[float, np.ndarray, np.ndarray, np.ndarray], Any] | None = None
    start: Any = None
    derivatives: Callable[[float, np.ndarray, np.ndarray, np.ndarray], Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {"output": self.output, "rate": self.rate, "start": None if self.rate is None else self.start}
        parts["derivatives"] = self.derivatives
        return reduced(_controller, parts, "controller")

    def __deepcopy__(self, memo: dict[int, Any]) -> Controller:
        return self  # it is immutable

    def __post_init__(self) -> None:
        parts = (("output", self.output), ("rate", self.rate), ("derivatives", self.derivatives))
        for name, value in parts:
            if not (callable(value) or (name != "output" and value is None)):
                raise ModelError(f"controller: {name}: must be a function of (t, q, v, z) (got {value!r})")
        if (self.rate is None) != (self.start is None):
            one, other = ("rate", "start") if self.start is None else ("start", "rate")
            raise ModelError(f"controller: {one}: needs a {other} (got no {other})")
        if self.rate is not None and self.derivatives is not None:
            raise ModelError(f"controller: derivatives: need a law without a state (got the rate {self.rate!r})")
        check_kept("controller: start", self.start)
        try:
            start = np.array(() if self.start is None else self.start, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ShapeError(f"controller: start: expected shape (nz,), got {self.start!r}") from None
        if start.ndim != 1:
            raise ShapeError(f"controller: start: expected shape (nz,), got {start.shape}")
        if not np.isfinite(start).all():
            raise ShapeError("controller: start: must be finite, got NaN or infinity")
        start.setflags(write=False)
        object.__setattr__(self, "start", start)


@final
@dataclass(frozen=True)
class FedLaw:
    """Inputs u(t) as a law of (t, q, v). Another law may be added to them."""

    feed: Callable[[Any], Any]
    law: Callable[[Any, Any, Any], Any] | None

    def __call__(self, t: Any, q: Any, v: Any) -> Any:
        if self.law is None:
            return self.feed(t)
        import jax.numpy as jnp

        one, other = jnp.asarray(self.feed(t)), jnp.asarray(self.law(t, q, v))
        if one.shape != other.shape:
            raise ShapeError(f"adds u of shape {one.shape} to inputs of shape {other.shape}")
        return one + other


def traced_law(u: TracedFunction, controller: Any, period: float | None) -> TracedFunction:
    """The law of inputs u(t), and of a controller that adds to them.

    Raises:
        ModelError: the controller is no `ls.TracedFunction`, or has a period.
    """
    if period is not None:
        raise ModelError(f"period: must be left out with u as an ls.TracedFunction (got {period!r})")
    if controller is None:
        return TracedFunction(FedLaw(u.function, None))
    if not isinstance(controller, TracedFunction):
        rule = "must be an ls.TracedFunction where u is one, which adds to it"
        raise ModelError(f"controller: {rule} (got {controller!r})")
    return TracedFunction(FedLaw(u.function, controller.function))


def _controller(parts: dict[str, Any]) -> Controller:
    return Controller(**parts)


def control_law(model: Model, u: Any, controller: Any, period: float | None) -> ControlLaw:
    """The control law for the arguments of `simulate`: inputs as a function of time, or a controller with its period
    [s]."""
    if controller is None:
        if period is not None:
            raise ModelError("period: needs a controller (got no controller)")
        feed, empty = input_function(model, u), np.zeros(0)
        return ControlLaw(lambda t, q, v, z: feed(t), lambda t, q, v, z: empty, empty, np.inf, feed)
    if u is not None:
        raise ModelError("controller: give u or a controller, not both (got both)")
    if not (callable(controller) or isinstance(controller, Controller)):
        raise ModelError(f"controller: must be a function of (t, q, v) or an ls.Controller (got {controller!r})")
    good = period is None or (isinstance(period, int | float | np.number) and np.isfinite(period) and period > 0)
    if not good:
        raise ModelError(f"period: must be > 0 (got {period!r})")
    sampling = period or np.inf
    if isinstance(controller, TracedFunction):
        alone = isinstance(controller.function, FedLaw) and controller.function.law is None
        return native_law(model, controller, "u" if alone else "controller").control_law(sampling)
    if not isinstance(controller, Controller):
        empty = np.zeros(0)

        def plain(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
            return checked_row(called("controller", t, controller, t, q.copy(), v.copy()), model.nu, "controller", t)

        return ControlLaw(plain, lambda t, q, v, z: empty, empty, sampling)
    return _with_state(model, controller, sampling)


def _with_state(model: Model, controller: Controller, sampling: float) -> ControlLaw:
    output, own_rate, nz = controller.output, controller.rate, len(controller.start)

    def inputs(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        value = called("controller: output", t, output, t, q.copy(), v.copy(), z.copy())
        return checked_row(value, model.nu, "controller: output", t)

    def rate(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        if own_rate is None:
            return z
        value = called("controller: rate", t, own_rate, t, q.copy(), v.copy(), z.copy())
        return checked_row(value, nz, "controller: rate", t)

    known = controller.derivatives

    def derivatives(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        if known is None:
            raise RuntimeError("no derivatives of the law are known")
        shape = (2 * model.nu, model.nv)
        value = called("controller: derivatives", t, known, t, q.copy(), v.copy(), z.copy())
        both = np.vstack([np.asarray(part, dtype=np.float64) for part in value])
        if both.shape != shape or not np.isfinite(both).all():
            got = both.tolist() if both.shape == shape else [np.shape(part) for part in value]
            rule = f"expected two finite arrays {(model.nu, model.nv)} at t={t:g}"
            raise ShapeError(f"controller: derivatives: {rule}, got {got}")
        return np.hstack([both[: model.nu], both[model.nu :]])

    along = getattr(output, "along_step", None) if known is not None else None
    law = None if known is None else derivatives
    return ControlLaw(inputs, rate, controller.start, sampling, derivatives=law, along_step=along)
