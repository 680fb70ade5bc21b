"""Residuals of measured shapes at rest, and their derivatives by design values.

With residuals r = p(q(d), d) − p_measured of points at equilibria q(d) under known inputs, and design values d,

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (1)

dq/dd by `equilibrium_derivatives` and ∂p/∂d, at the same q, by the differences that it takes of tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import ConvergenceError, ModelError
from lissom.gradients.designs import Designs
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.inverse.measured import Measured, Numbers, stand_alike
from lissom.model.model import Model
from lissom.statics.equilibrium import Equilibrium, solve_statics


@final
@dataclass
class ShapesAtRest:
    """Residuals and their derivatives (1) at values; the last equilibria are kept, and are where the next begin.

    Fields:
        q: where equilibria are sought from.
    """

    model: Model
    numbers: Numbers
    u: np.ndarray
    measured: Measured
    q: Any
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Of what is looked for."""
        return self.numbers.paths

    @property
    def start(self) -> np.ndarray:
        """Numbers where the search begins."""
        return self.numbers.start

    @property
    def units(self) -> np.ndarray:
        """Their sizes."""
        return self.numbers.units

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """How far they may go."""
        return self.numbers.low, self.numbers.high

    def at(self, x: np.ndarray) -> tuple[Model, Equilibrium]:
        """The model with values x, and its equilibria."""
        if "x" not in self.last or not np.array_equal(self.last["x"], x):
            one = self.numbers.model(self.model, x)
            rest = solve_statics(one, self.u, self.q)
            self.q, self.last = rest.q, {"x": x.copy(), "found": (one, rest)}
        return self.last["found"]

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Positions of the model less those measured; NaN, which shortens the step, where there is no such robot."""
        try:
            one, rest = self.at(x)
        except (ModelError, ConvergenceError):
            return np.full(self.measured.count, np.nan)
        return (self._positions(one, rest.q) - self.measured.positions)[self.measured.seen]

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """(1), shape (count, values)."""
        self.at(x)
        if "slopes" not in self.last:
            self.last["slopes"] = self._slopes(x)
        return self.last["slopes"]

    def _slopes(self, x: np.ndarray) -> np.ndarray:
        one, rest = self.at(x)
        paths = self.numbers.paths
        answer = equilibrium_derivatives(rest, parameters=paths).parameters
        n = len(self.u)
        dq = np.concatenate([answer[path].reshape(n, one.nv, -1) for path in paths], axis=-1)
        out = np.zeros((*self.measured.positions.shape, dq.shape[-1]))
        for name, (at, abscissae) in self.measured.places.items():
            R = frame_pose(one, rest.q, name, abscissae)[..., :3, :3]
            out[:, at] = R @ frame_jacobian(one, rest.q, name, abscissae)[..., 3:, :] @ dq[:, None]
        for k, entry in enumerate(Designs(one, paths, n).entries[0]):
            if stand_alike(entry.models, one, self.measured):
                continue
            for other, weight in zip(entry.models, entry.weights):
                with other.lent():
                    out[..., k] += weight * self._positions(other, rest.q)
        return out[self.measured.seen]

    def told(
        self, x: np.ndarray, reach: np.ndarray
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Values, and the ends of intervals of such reach."""
        own, low, high = (self.numbers.split(y) for y in (x, x - reach, x + reach))
        return own, low, high

    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of what was measured."""
        return residuals

    def shown(self, x: np.ndarray) -> tuple[Equilibrium, None]:
        """Equilibria with values x, and no motion."""
        return self.at(x)[1], None

    def _positions(self, model: Model, q: np.ndarray) -> np.ndarray:
        """Of all points, shape (n, points, 3)."""
        out = np.zeros(self.measured.positions.shape)
        for name, (at, abscissae) in self.measured.places.items():
            out[:, at] = frame_pose(model, q, name, abscissae)[..., :3, 3]
        return out
