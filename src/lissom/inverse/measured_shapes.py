"""Residuals of measured shapes at rest, and their derivatives by design values.

With residuals r = p(q(d), d) − p_measured of points at equilibria q(d) under known inputs, and design values d,

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (1)

dq/dd by `equilibrium_derivatives` and ∂p/∂d, at the same q, by the differences that it takes of tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.gradients.designs import Designs
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.inverse.fit_tasks import FitTask, Told
from lissom.inverse.measured import Measured, Numbers, stand_alike
from lissom.model.model import Model
from lissom.statics.equilibrium import Equilibrium, solve_statics


@final
@dataclass
class ShapesAtRest(FitTask[Equilibrium]):
    """Positions at rest and their derivatives (1).

    Fields:
        u: inputs (n, nu). measured: (n, points, 3). q: where equilibria are sought from, at first as the caller says,
        then from the last ones.
    """

    model: Model
    numbers: Numbers
    u: np.ndarray
    measured: Measured
    q: Any

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

    def done(self, x: np.ndarray) -> tuple[Model, Equilibrium]:
        """The model with values x, and its equilibria."""
        one = self.numbers.model(self.model, x)
        rest = solve_statics(one, self.u, self.q)
        self.q = rest.q
        return one, rest

    def positions(self, model: Model, done: Equilibrium) -> np.ndarray:
        """Of all points, shape (n, points, 3)."""
        return self._positions(model, done.q)

    def slopes(self, model: Model, done: Equilibrium) -> np.ndarray:
        """(1), shape (n, points, 3, values)."""
        paths = self.numbers.paths
        answer = equilibrium_derivatives(done, parameters=paths).parameters
        n = len(self.u)
        dq = np.concatenate([answer[path].reshape(n, model.nv, -1) for path in paths], axis=-1)
        out = np.zeros((*self.measured.positions.shape, dq.shape[-1]))
        for name, (at, abscissae) in self.measured.places.items():
            R = frame_pose(model, done.q, name, abscissae)[..., :3, :3]
            out[:, at] = R @ frame_jacobian(model, done.q, name, abscissae)[..., 3:, :] @ dq[:, None]
        for k, entry in enumerate(Designs(model, paths, n).entries[0]):
            if stand_alike(entry.models, model, self.measured):
                continue
            for other, weight in zip(entry.models, entry.weights):
                with other.lent():
                    out[..., k] += weight * self._positions(other, done.q)
        return out

    def told(self, x: np.ndarray, reach: np.ndarray) -> tuple[Told, Told, Told]:
        """Values, and the ends of intervals of such reach."""
        own, low, high = (self.numbers.split(y) for y in (x, x - reach, x + reach))
        return own, low, high

    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of what was measured."""
        return residuals

    def shown(self, done: Equilibrium) -> tuple[Equilibrium, None]:
        """Equilibria, and no motion."""
        return done, None

    def _positions(self, model: Model, q: np.ndarray) -> np.ndarray:
        """Of all points, shape (n, points, 3)."""
        out = np.zeros(self.measured.positions.shape)
        for name, (at, abscissae) in self.measured.places.items():
            out[:, at] = frame_pose(model, q, name, abscissae)[..., :3, 3]
        return out
