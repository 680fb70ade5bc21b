"""What a fit looks for, and the values that it tries: residuals r = p(d) − p_measured and their derivatives by d."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, final

import numpy as np

from lissom.errors import ConvergenceError, ModelError
from lissom.gradients.rollout import Rollout
from lissom.inverse.measured import Measured
from lissom.model.model import Model
from lissom.statics.equilibrium import Equilibrium

Done = TypeVar("Done", Equilibrium, Rollout)
Told = dict[str, np.ndarray]  # values by path


class FitTask(ABC, Generic[Done]):
    """Values that are looked for in one row of numbers x (k,), and what the robot does with them.

    `done` is the model with values x and its equilibria or motions; `positions` are those of the points then, of the
    shape of what was measured, and `slopes` their derivatives by x, with a last axis more.
    """

    measured: Measured

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Of what is looked for."""

    @property
    @abstractmethod
    def start(self) -> np.ndarray:
        """Numbers where the search begins."""

    @property
    @abstractmethod
    def units(self) -> np.ndarray:
        """Their sizes."""

    @property
    @abstractmethod
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """How far they may go."""

    @abstractmethod
    def done(self, x: np.ndarray) -> tuple[Model, Done]:
        """The model with values x, and what it does; ModelError or ConvergenceError where there is no such robot."""

    @abstractmethod
    def positions(self, model: Model, done: Done) -> np.ndarray:
        """Of all points [m]."""

    @abstractmethod
    def slopes(self, model: Model, done: Done) -> np.ndarray:
        """Their derivatives by values."""

    @abstractmethod
    def told(self, x: np.ndarray, reach: np.ndarray) -> tuple[Told, Told, Told]:
        """Values, and the ends of intervals of such reach."""

    @abstractmethod
    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of what the caller gave."""

    @abstractmethod
    def shown(self, done: Done) -> tuple[Equilibrium | None, Rollout | None]:
        """What the robot does as the caller is told, the one of the two that it is."""


@final
@dataclass
class Trials:
    """Residuals of a task and their derivatives at values that are tried; those of the last values are kept.

    Fields:
        count: of residuals, derivatives: of derivatives that were asked for. outlier: residual beyond which one counts
        by its size, None where all count by their squares [m]. best: the values whose residuals count least.
    """

    task: FitTask[Any]
    outlier: float | None = None
    count: int = 0
    derivatives: int = 0
    best: np.ndarray | None = None
    _least: float = np.inf
    _last: dict[str, Any] = field(default_factory=dict)

    def count_by(self, outlier: float | None) -> None:
        """Let residuals count in this way from now on; the next values are the best until others are better."""
        self.outlier, self._least = outlier, np.inf

    def at(self, x: np.ndarray) -> tuple[Model, Any]:
        """The model with values x, and what it does."""
        if "x" not in self._last or not np.array_equal(self._last["x"], x):
            self._last = {"x": x.copy(), "done": self.task.done(x)}
        return self._last["done"]

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Positions of the model less those measured, (count,) [m]; NaN, which shortens the step, where the robot does
        nothing with such values."""
        self.count += 1
        measured = self.task.measured
        try:
            found = self.task.positions(*self.at(x))
        except (ModelError, ConvergenceError):
            return np.full(measured.count, np.nan)
        r = (found - measured.positions)[measured.seen]
        size = float(np.sum(r**2 if self.outlier is None else np.sqrt(1.0 + (r / self.outlier) ** 2) - 1.0))
        if size < self._least:
            self.best, self._least = x.copy(), size
        return r

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the residuals, (count, values)."""
        self.derivatives += 1
        done = self.at(x)
        if "slopes" not in self._last:
            self._last["slopes"] = self.task.slopes(*done)[self.task.measured.seen]
        return self._last["slopes"]
