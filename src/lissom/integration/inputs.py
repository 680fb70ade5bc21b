"""Inputs as functions of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, final

import numpy as np
from scipy.interpolate import PchipInterpolator

from lissom.errors import ShapeError
from lissom.launch.workspace import stack
from lissom.model.model import Model


@final
@dataclass(frozen=True)
class Samples:
    """Inputs given at times, held beyond the ends.

    Args:
        t: rising times [s], shape (n,).
        u: inputs there, shape (n, nu).
        smooth: join the samples by cubics with a continuous slope that never overshoot (PCHIP) instead of straight
            lines, whose kinks an adaptive method must stop at.
    Raises:
        ShapeError: the argument, the expected and the received shape, or what is not finite.
    """

    t: Any
    u: Any
    smooth: bool = False

    def __post_init__(self) -> None:
        try:
            t, u = np.array(self.t, dtype=np.float64), np.array(self.u, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ShapeError(f"samples: expected numbers, got t={self.t!r} and u={self.u!r}") from None
        if t.ndim != 1 or len(t) == 0 or u.ndim != 2 or len(u) != len(t):
            raise ShapeError(f"samples: expected t of shape (n,) and u of shape (n, nu), got {t.shape} and {u.shape}")
        if not (np.isfinite(t).all() and np.isfinite(u).all()):
            raise ShapeError("samples: must be finite, got NaN or infinity")
        if np.any(np.diff(t) <= 0):
            raise ShapeError("samples: t must rise strictly")
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "u", u)

    @cached_property
    def _pieces(self) -> tuple[list[float], np.ndarray]:
        """Times, and for each stretch between them the coefficients of a polynomial, highest power first."""
        if self.smooth and len(self.t) > 1:
            return self.t.tolist(), np.moveaxis(PchipInterpolator(self.t, self.u).c, 1, 0)
        slope = np.diff(self.u, axis=0) / np.diff(self.t)[:, None]
        return self.t.tolist(), np.stack([slope, self.u[:-1]], axis=1)

    def __call__(self, t: float) -> np.ndarray:
        """The inputs at time t, shape (nu,)."""
        times, pieces = self._pieces
        if t <= times[0] or t >= times[-1]:
            return self.u[0 if t <= times[0] else -1].copy()
        k = bisect_right(times, t) - 1
        x = t - times[k]
        return np.array((x * x * x, x * x, x, 1.0) if self.smooth else (x, 1.0)) @ pieces[k]


def input_function(model: Model, u: Any) -> Callable[[float], np.ndarray]:
    """u as a function of time that checks what it returns: None, (nu,), Samples or a function of t."""
    if u is None:
        constant = np.zeros(model.nu)
        return lambda t: constant
    if isinstance(u, Samples):
        if u.u.shape[1] != model.nu:
            raise ShapeError(f"u: expected samples of shape (n, {model.nu}), got {u.u.shape}")
        return u
    if callable(u):
        return lambda t: checked_row(called("u", t, u, t), model.nu, "u", t)
    row = stack("u", u, model.nu)
    if row.ndim != 1:
        raise ShapeError(f"u: expected shape ({model.nu},), ls.Samples or a function of t, got {row.shape}")
    constant = checked_row(row, model.nu, "u", 0.0)
    return lambda t: constant


def called(name: str, t: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a user's function returns; what it raises goes on as it is, with a note of when that was."""
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
    """A finite array of shape (size,), or ShapeError naming where it came from."""
    try:
        row = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{name} at t={t:g}: expected shape ({size},), got {value!r}") from None
    if row.shape != (size,):
        raise ShapeError(f"{name} at t={t:g}: expected shape ({size},), got {row.shape}")
    if not isfinite(sum(row.tolist())) and not np.isfinite(row).all():  # the sum is several times faster
        raise ShapeError(f"{name} at t={t:g}: must be finite, got NaN or infinity")
    return row
