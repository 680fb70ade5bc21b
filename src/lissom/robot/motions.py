"""Prescribed joint motions: the coordinates of a joint are given functions of time."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.robot import checks
from lissom.robot.expression_programs import Steps, has_corners, jet, programs_of
from lissom.robot.fields import FunctionOfT, JointName
from lissom.robot.functions import Expression, RowsOfTime, Tabulated, constant, is_exact, polynomial_of, still

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

Programs = tuple[list[Steps], int] | None
_STEP = 2e-3  # step of the finite differences [s]
_FIRST = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
_SECOND = ((1, 8 / 5), (2, -1 / 5), (3, 8 / 315), (4, -1 / 560))


@final
@dataclass(frozen=True)
class JointMotion:
    """Prescribed coordinates of a joint. The constraint forces that drive them are Lagrange multipliers.

    Args:
        name: unique among the motions.
        link: name of the link whose joint is driven. The joint must not be spherical or free.
        position: all coordinates of the joint [rad, m]: a constant, or a function of t [s]. A single coordinate is a
            number.
        velocity: rate of the position [rad/s, m/s] as a function of t; None differentiates the position.
        acceleration: rate of the velocity [rad/s², m/s²] as a function of t; None differentiates the velocity, or the
            position twice if no velocity is given.
    Accuracy: the derivatives that replace None are exact for constants, expressions without corners, cubic tables,
    SciPy's PPoly and smooth ls.Samples. For other functions they are eighth-order differences over 8 ms on each side,
    with a relative error of 1e-9 up to 10 Hz. Such functions are also called at times before 0.
    """

    name: str
    link: JointName
    position: FunctionOfT
    velocity: FunctionOfT = None
    acceleration: FunctionOfT = None

    def check(self, where: str, size: int) -> None:
        """Raise ModelError where the description breaks a rule. `size` is the number of coordinates of the joint."""
        for name in ("velocity", "acceleration"):
            value = getattr(self, name)
            checks.require(value is None or callable(value), f"{where}: {name}", "must be a function of t", value)
        for function in self.kinematics(where, size):
            function(0.0)

    def kinematics(self, where: str, size: int) -> tuple[RowsOfTime, RowsOfTime, RowsOfTime]:
        """Position, velocity and acceleration as functions of t that return `size` numbers."""
        q = _values(self.position, size, f"{where}: position")
        if not callable(self.position):
            zero = still([0.0] * size)
            return q, zero, zero
        if self.velocity is None:
            v = _exact(self.position, 1, size) or _differenced(q, _FIRST)
        else:
            v = _values(self.velocity, size, f"{where}: velocity")
        if self.acceleration is not None:
            a = _values(self.acceleration, size, f"{where}: acceleration")
        elif self.velocity is not None:
            a = _exact(self.velocity, 1, size) or _differenced(v, _FIRST)
        else:
            a = _exact(self.position, 2, size) or _differenced(q, _SECOND)
        return q, v, a

    def polynomials(self, size: int) -> tuple[PPoly | None, PPoly | None, PPoly | None]:
        """Position, velocity and acceleration as polynomials of time; None for each one that is not a polynomial."""
        q = polynomial_of(self.position, size)
        if not callable(self.position):
            return q, constant(np.zeros(size)), constant(np.zeros(size))
        rates = [None if self.velocity is None else polynomial_of(self.velocity, size)]
        rates.append(None if self.acceleration is None else polynomial_of(self.acceleration, size))
        known, order = self.position, 0
        for k, given in enumerate((self.velocity, self.acceleration)):
            if given is not None:
                known, order = given, k + 1
            elif is_exact(known):
                found = polynomial_of(known, size)
                rates[k] = None if found is None else found.derivative(k + 1 - order)
        return q, rates[0], rates[1]

    def programs(self, size: int) -> tuple[Programs, Programs, Programs]:
        """Position, velocity and acceleration, each as (programs, order): the programs of its components, and the order
        of the derivative to take. None for each one that is not an expression, or whose derivative would have corners.
        """
        if not callable(self.position):
            return None, None, None
        v = (self.position, 1) if self.velocity is None else (self.velocity, 0)
        a = (v[0], v[1] + 1) if self.acceleration is None else (self.acceleration, 0)
        return _programs(self.position, 0, size), _programs(*v, size), _programs(*a, size)


def _programs(value: Any, order: int, size: int) -> Programs:
    found = programs_of(value, size)
    return None if found is None or (order and any(map(has_corners, found))) else (found, order)


def _values(value: Any, size: int, where: str) -> RowsOfTime:
    """A constant or a function of t, as a function of t that returns a list of finite numbers."""
    shape = () if size == 1 else (size,)
    if not callable(value):
        rule = f"must be finite, of shape {shape}, or a function of t"
        row = np.atleast_1d(checks.array(_scalar(value) if size == 1 else value, shape, where, rule)).tolist()
        return still(row)

    def of_time(t: float) -> list[float]:
        return np.atleast_1d(checks.call(lambda time: _scalar(value(time)), t, shape, where)).tolist()

    is_text = isinstance(value, Expression)
    at_times = (lambda times: value.over(times).reshape(len(times), size)) if is_text else None
    quick = (value.on_floats if is_text else None) or value

    def quickly(t: float) -> list[float]:
        try:
            number = quick(t)
        except Exception:
            return of_time(t)  # raises the error if NumPy fails too
        return [float(number)] if isinstance(number, float) and isfinite(number) else of_time(t)

    return RowsOfTime(quickly if size == 1 else of_time, at_times)


def _scalar(value: Any) -> Any:
    """A list with one number as that number; other values unchanged."""
    return value[0] if checks.shape(value) == (1,) else value


def _exact(value: Any, order: int, size: int) -> RowsOfTime | None:
    """The exact derivative of an expression or of polynomials of time. None for other functions, and for functions with
    corners."""
    if isinstance(value, Expression):
        known = _programs(value, order, size)
        return None if known is None else _rates(*known)
    if not is_exact(value):
        return None
    if isinstance(value, Tabulated):
        return RowsOfTime(lambda t: np.reshape(value.slope(t, order), size).tolist())
    found = polynomial_of(value, size)
    return None if found is None else RowsOfTime(lambda t: found(t, order).tolist())


def _rates(programs: list[Steps], order: int) -> RowsOfTime:
    """The derivative of order `order` of each program, as a function of time."""

    def at(t: float) -> list[float]:
        row = [jet(steps, t)[order] for steps in programs]
        return checks.array(row, (len(row),), "motion: rate", f"must be finite at {t:g}").tolist()

    def at_times(times: np.ndarray) -> np.ndarray:
        return np.stack([np.broadcast_to(jet(steps, times)[order], times.shape) for steps in programs], axis=1)

    return RowsOfTime(at, at_times)


def _differenced(function: RowsOfTime, weights: tuple[tuple[int, float], ...]) -> RowsOfTime:
    """First or second derivative by central differences of eighth order."""
    terms = [(0.0, -205 / 72 / _STEP**2)] if weights is _SECOND else []
    mirror, scale = (1.0, _STEP**2) if weights is _SECOND else (-1.0, _STEP)
    for k, weight in weights:
        terms += [(k * _STEP, weight / scale), (-k * _STEP, mirror * weight / scale)]

    def derivative(t: float) -> list[float]:
        rows = [function(t + ahead) for ahead, _ in terms]
        return [sum(weight * x for (_, weight), x in zip(terms, column)) for column in zip(*rows)]

    return RowsOfTime(derivative)
