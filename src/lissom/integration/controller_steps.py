"""The state of a continuous controller over an implicit step.

    z = zₙ + h (w₀ rate(tₙ, qₙ, vₙ, zₙ) + w₁ rate(t, q, v, z)) + what earlier stages give                 (1)

at the end t of a stage, with its weights `first_order`: w₀ = w₁ = ½ is the trapezoidal rule, of second order as the
schemes are; w₀ = 0, w₁ = 1 goes with implicit Euler. (1) is solved by Newton's method at every q and v that the step
tries, so that u is a function of these two alone, and nothing of a step that is refused remains. Along small moves of q
and v, at z and with W = (1 − h w₁ ∂rate/∂z)⁻¹,

    δz = W h w₁ (rate(q + δq, v + δv, z) − rate(q, v, z)),   δu = output(q + δq, v + δv, z + δz) − output(q, v, z)   (2)
"""

from __future__ import annotations

from typing import final

import numpy as np

from lissom.integration.schemes import Scheme, StepState
from lissom.integration.state import StateDerivative
from lissom.integration.step_stages import SAME_SIZE, SLOW_CONTRACTION

_SOLVED = 1e-13  # residual of (1) over the size of its terms
_ROUNDING = 1e-9  # residual below which it may have stopped to shrink
_MOST_ITERATIONS = 12
_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


@final
class ControllerUnsolved(Exception):
    """(1) has no solution that Newton's method finds: the step is too long."""


@final
class ControllerSteps:
    """u and z at the end of the steps of one scheme."""

    def __init__(self, f: StateDerivative, scheme: Scheme) -> None:
        self.f, self.size, self.stages = f, len(f.law.carried), scheme.stages
        self.base = self.guess = f.law.carried
        self.weight = 0.0
        self.inverse: np.ndarray | None = None
        self.earlier: list[np.ndarray] = []  # what (1) adds up, in the order of the weights behind the first

    def begin(self, s: StepState, h: float, k: int) -> None:
        """Start stage k of a step of size h: what of (1) is known."""
        if self.size == 0:
            return
        late, *weights = self.stages[k].first_order
        if abs(self.weight - late * h) > SAME_SIZE.value * h:
            self.inverse = None
        self.weight = late * h
        if k == 0:
            self.earlier = [h * self.f.law.rate(s.t, s.q, s.v, s.z)]
        self.base = s.z + sum(w * x for w, x in zip(weights, self.earlier))
        self.guess = s.z + self.stages[k].end * self.earlier[0]

    def end(self, s: StepState, h: float, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Note how a stage ended, for those that follow."""
        if self.size:
            z = self.state(t, q, v)
            self.earlier += [z - s.z, h * self.f.law.rate(t, q, v, z)]

    def inputs(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """u at the end of the step, were it to end at q and v."""
        return self.f.inputs(t, q, v, self.state(t, q, v))

    def state(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """z of (1).

        Raises:
            ControllerUnsolved: none was found.
        """
        if self.size == 0:
            return self.base
        z, last = self.guess, np.inf
        for iteration in range(_MOST_ITERATIONS):
            rate = self.f.law.rate(t, q, v, z)
            miss = z - self.base - self.weight * rate
            terms = np.abs(z) + np.abs(self.base) + self.weight * np.abs(rate)
            left = float(np.max(np.abs(miss) / np.maximum(terms, 1e-300)))
            if left <= _SOLVED or (left <= _ROUNDING and left > SLOW_CONTRACTION.value * last):
                self.guess = z
                return z
            if self.inverse is None or left > SLOW_CONTRACTION.value * last or iteration in (4, 8):
                self.inverse = self._inverse(t, q, v, z, rate)
            z, last = z - self.inverse @ miss, left
        raise ControllerUnsolved

    def changes(self, t: float, q: np.ndarray, v: np.ndarray, moved: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """δu of (2) from q and v to states (q, v) that moved a little, shape (n, nu)."""
        law, z = self.f.law, self.state(t, q, v)
        u = law.inputs(t, q, v, z)
        if self.size == 0:
            return np.array([law.inputs(t, *state, z) - u for state in moved])
        rate = law.rate(t, q, v, z)
        if self.inverse is None:
            self.inverse = self._inverse(t, q, v, z, rate)
        answer = self.weight * self.inverse
        return np.array([law.inputs(t, *state, z + answer @ (law.rate(t, *state, z) - rate)) - u for state in moved])

    def _inverse(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(1 − h w₁ ∂rate/∂z)⁻¹, by differences."""
        step = _ROOT_EPS * np.maximum(np.abs(z), 1.0)
        slopes = [(self.f.law.rate(t, q, v, z + row) - rate) / row.sum() for row in np.diag(step)]
        try:
            return np.linalg.inv(np.eye(self.size) - self.weight * np.array(slopes).T)
        except np.linalg.LinAlgError:
            raise ControllerUnsolved from None
