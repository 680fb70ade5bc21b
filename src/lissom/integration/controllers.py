"""Controllers, with or without a state of their own, and the law that the integrators follow.

    u = output(t, q, v, z),   dz/dt = rate(t, q, v, z),   z(0) = start                                    (1)

A controller that acts every T seconds advances z once a sample, after its output, and holds u in between:

    uₖ = output(tₖ, q, v, zₖ),   zₖ₊₁ = zₖ + T rate(tₖ, q, v, zₖ)                                          (2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, ShapeError, check_kept
from lissom.integration.inputs import called, checked_row, input_function
from lissom.model.model import Model
from lissom.portable import reduced


@final
@dataclass(frozen=True)
class Controller:
    """Feedback with a state z of its own, such as the integral of an error or a filter, for `simulate(controller=)`.

        u = output(t, q, v, z),   dz/dt = rate(t, q, v, z),   z(0) = start

    Args:
        output: function of (t, q, v, z) that returns u, shape (nu,).
        rate: function of (t, q, v, z) that returns dz/dt, shape (nz,); None: there is no state, and z is empty.
        start: z at t = 0, shape (nz,).
        derivatives: function of (t, q, v, z) that returns ∂u/∂q and ∂u/∂v, shapes (nu, nv), by changes of q along v,
            for implicit methods, of a law without a state; None: they difference `output`, nv times two evaluations.
            What is small may be left out: Newton's method then takes more iterations to the same result.
    Raises:
        ModelError, ShapeError: what is wrong, the rule and the value.
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
        return self  # nothing of it changes

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


def _controller(parts: dict[str, Any]) -> Controller:
    return Controller(**parts)


@final
@dataclass(frozen=True)
class ControlLaw:
    """What an integrator follows: (1), checked and handed copies of its own.

    Fields:
        inputs, rate: u and dz/dt as functions of (t, q, v, z). start: z(0).
        feed: u as a function of time alone, where it is one.
        period: between samples [s]; infinite when the law acts continuously.
    """

    inputs: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    rate: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    start: np.ndarray
    period: float
    feed: Callable[[float], np.ndarray] | None = None
    derivatives: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None

    @property
    def is_feedback(self) -> bool:
        """Whether u follows q and v."""
        return self.feed is None

    @property
    def carried(self) -> np.ndarray:
        """z(0) as far as the integrator carries z on: nothing where it moves at samples only."""
        return self.start if np.isinf(self.period) else self.start[:0]


def control_law(model: Model, u: Any, controller: Any, period: float | None) -> ControlLaw:
    """The law of `simulate`'s arguments: inputs of time, or a controller."""
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
    hold = period or np.inf
    if not isinstance(controller, Controller):
        empty = np.zeros(0)

        def plain(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
            return checked_row(called("controller", t, controller, t, q.copy(), v.copy()), model.nu, "controller", t)

        return ControlLaw(plain, lambda t, q, v, z: empty, empty, hold)
    return _with_state(model, controller, hold)


def _with_state(model: Model, controller: Controller, hold: float) -> ControlLaw:
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

    return ControlLaw(inputs, rate, controller.start, hold, derivatives=None if known is None else derivatives)
