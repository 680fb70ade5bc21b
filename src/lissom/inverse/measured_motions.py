"""Residuals of points that were followed along motions, and their derivatives by design values and by the start.

With residuals r = p(q(d), d) − p_measured of points of a rollout q(d) with known inputs, and d the design values and
the start,

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (1)

dq/dd by the forward sensitivities of the rollout, since measurements are many and values few, and ∂p/∂d, at the same q,
by the differences that these take of tables. At a time between two steps, θ h behind the first of them, the point is
where the cubic through both with their velocities is,

    p(θ) = Σₑ aₑ(θ) pₑ + h bₑ(θ) ṗₑ,   ṗ = R η_v                                                          (2)
    dṗ/dd = R (dη_v/dd − η_v × J_ω dq/dd)                                                                 (3)

whose error, h⁴/384 of the fourth rate of p, is below that of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import frame_jacobian, frame_pose, frame_twist
from lissom.dynamics.kinematics_derivatives import frame_twist_derivatives
from lissom.gradients.designs import Designs
from lissom.gradients.rollout import Rollout, rollout
from lissom.inverse.fit_tasks import FitTask, Told
from lissom.inverse.measured import Measured, Numbers, stand_alike
from lissom.model.model import Model

STARTS = ("q0", "v0")
_ON_STEP = 1e-9  # of a step


@final
@dataclass(frozen=True)
class Times:
    """Where times are among steps.

    Fields:
        used: numbers of the steps that count (k,). at: for either end, which of these, (2, n). a, b: weights of (2),
        (2, n), b with h in it [s]. between: whether some time is between two steps.
    """

    used: np.ndarray
    at: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @property
    def between(self) -> bool:
        """Whether some time is between two steps."""
        return bool(self.b.any())

    def joined(self, p: np.ndarray, rate: np.ndarray | None) -> np.ndarray:
        """(2) of positions and velocities (motions, k, ...)."""
        out = np.zeros((len(p), self.at.shape[1], *p.shape[2:]))
        wide = (-1, *(1,) * (p.ndim - 2))
        for at, a, b in zip(self.at, self.a, self.b):
            out += a.reshape(wide) * p[:, at]
            if rate is not None:
                out += b.reshape(wide) * rate[:, at]
        return out


def times_among_steps(t: np.ndarray, dt: float, steps: int) -> Times:
    """Of times between 0 and steps dt."""
    k = np.minimum(np.floor(t / dt + _ON_STEP).astype(int), steps - 1)
    x = t / dt - k
    x = np.where(np.abs(x - np.round(x)) < _ON_STEP, np.round(x), x)
    a = np.array([(1.0 + 2.0 * x) * (1.0 - x) ** 2, x**2 * (3.0 - 2.0 * x)])
    b = dt * np.array([x * (1.0 - x) ** 2, x**2 * (x - 1.0)])
    ends = np.array([k, k + 1])
    used = np.unique(ends[(a != 0.0) | (b != 0.0)])
    at = np.minimum(np.searchsorted(used, ends), len(used) - 1)
    return Times(used, at, a, b)


@final
@dataclass
class Motions(FitTask[Rollout]):
    """Positions along some motions and their derivatives (1).

    Fields:
        u: inputs (motions, steps, nu). lead: leading axes that the caller gave. measured: (motions, n, points, 3).
        times: of the n. q0, v0: where motions start, or are looked for from. unknown: which of these are looked for.
        options: of the rollout.
    """

    model: Model
    numbers: Numbers
    u: np.ndarray
    lead: tuple[int, ...]
    measured: Measured
    times: Times
    q0: np.ndarray
    v0: np.ndarray
    unknown: tuple[str, ...]
    options: dict[str, Any]

    @cached_property
    def free(self) -> np.ndarray:
        """Coordinates whose start may be looked for."""
        return np.setdiff1d(np.arange(self.model.nv), self.model.prescribed.dof)

    @property
    def names(self) -> tuple[str, ...]:
        """Of what is looked for."""
        return *self.numbers.paths, *self.unknown

    @property
    def start(self) -> np.ndarray:
        """Numbers where the search begins: design values, then changes of the starts in natural sizes."""
        return np.concatenate([self.numbers.start, np.zeros(len(self.unknown) * len(self.u) * len(self.free))])

    @property
    def units(self) -> np.ndarray:
        """Their sizes."""
        sizes = np.tile(self.model.dofs.scale[self.free], len(self.unknown) * len(self.u))
        return np.concatenate([self.numbers.units, sizes])

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """How far they may go."""
        more = np.full(len(self.start) - len(self.numbers.start), np.inf)
        return np.concatenate([self.numbers.low, -more]), np.concatenate([self.numbers.high, more])

    def done(self, x: np.ndarray) -> tuple[Model, Rollout]:
        """The model with values x, and its motions."""
        one, change = self.numbers.model(self.model, x), self._changes(x)
        q0, v0 = integrate(one, self.q0, change["q0"]), self.v0 + change["v0"]
        return one, rollout(one, q0, v0, self.u, **self.options)

    def positions(self, model: Model, done: Rollout) -> np.ndarray:
        """Of all points at all times by (2), shape (motions, n, points, 3)."""
        q, v = done.q[:, self.times.used], done.v[:, self.times.used]
        out = np.zeros(self.measured.positions.shape)
        for name, (at, abscissae) in self.measured.places.items():
            pose = frame_pose(model, q, name, abscissae)
            rate = None
            if self.times.between:
                rate = np.einsum(
                    "...ij,...j->...i", pose[..., :3, :3], frame_twist(model, q, v, name, abscissae)[..., 3:]
                )
            out[:, :, at] = self.times.joined(pose[..., :3, 3], rate)
        return out

    def slopes(self, model: Model, done: Rollout) -> np.ndarray:
        """(1), shape (motions, n, points, 3, values)."""
        designs, some, n = len(self.numbers.start), len(self.free), len(self.u)
        ways = designs + some * len(self.unknown)
        changes = {name: np.zeros((ways, n, model.nv)) for name in STARTS}
        for k, name in enumerate(self.unknown):  # one way changes the starts of all motions, each for itself
            changes[name][designs + k * some + np.arange(some), :, self.free] = 1.0
        by_value = np.zeros((ways, designs))
        by_value[:designs] = np.eye(designs)
        values = {path: np.zeros((ways, *shape)) for path, shape in self.numbers.shapes.items()}
        for way, row in enumerate(by_value):
            for path, value in self.numbers.split(row).items():
                values[path][way] = value
        change = done.forward(changes["q0"], changes["v0"], parameters=values)
        found = self._followed(model, done, change.q, change.v)
        for k, entry in enumerate(Designs(model, self.numbers.paths, n).entries[0]):
            if stand_alike(entry.models, model, self.measured):
                continue
            for other, weight in zip(entry.models, entry.weights):
                with other.lent():
                    found[..., k] += weight * self.positions(other, done)
        out = np.zeros((*self.measured.positions.shape, designs + some * n * len(self.unknown)))
        out[..., :designs] = found[..., :designs]
        for k in range(len(self.unknown)):
            for i in range(n):
                at = designs + (k * n + i) * some
                out[i, ..., at : at + some] = found[i, ..., designs + k * some : designs + (k + 1) * some]
        return out

    def told(self, x: np.ndarray, reach: np.ndarray) -> tuple[Told, Told, Told]:
        """Values, and the ends of intervals of such reach; of q0 these are increments."""
        own, low, high = (self.numbers.split(y) for y in (x, x - reach, x + reach))
        change, far = self._changes(x), self._changes(reach)
        for name in self.unknown:
            own[name] = integrate(self.model, self.q0, change["q0"]) if name == "q0" else self.v0 + change["v0"]
            middle = 0.0 if name == "q0" else own[name]
            low[name], high[name] = middle - far[name], middle + far[name]
            for told in (own, low, high):
                told[name] = told[name].reshape(*self.lead, told[name].shape[-1])
        return own, low, high

    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of what was measured."""
        return residuals.reshape(*self.lead, *residuals.shape[1:])

    def shown(self, done: Rollout) -> tuple[None, Rollout]:
        """No equilibrium, and motions with the axes that the caller gave."""
        if self.lead:
            return None, done
        return None, replace(done, **{name: getattr(done, name)[0] for name in ("q", "v", "a", "u")})

    def _changes(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Of the starts, (motions, nv) each."""
        out = {name: np.zeros((len(self.u), self.model.nv)) for name in STARTS}
        rows = x[len(self.numbers.start) :].reshape(len(self.unknown), len(self.u), len(self.free))
        for name, change in zip(self.unknown, rows):
            out[name][:, self.free] = change
        return out

    def _followed(self, model: Model, motion: Rollout, dq: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """R J_v dq of all points at all times by (2) and (3), shape (motions, n, points, 3, ways)."""
        used = self.times.used
        q, v = motion.q[:, used], motion.v[:, used]
        dq, dv = (np.moveaxis(x[:, :, used], 0, -1)[:, :, None] for x in (dq, dv))
        out = np.zeros((*self.measured.positions.shape, dq.shape[-1]))
        for name, (at, abscissae) in self.measured.places.items():
            R = frame_pose(model, q, name, abscissae)[..., :3, :3]
            rate = None
            if self.times.between:
                by_q, J = frame_twist_derivatives(model, q, v, name, abscissae)
                twist = frame_twist(model, q, v, name, abscissae)[..., 3:, None]
                turned = np.cross(twist, J[..., :3, :] @ dq, axis=-2)
                rate = R @ (by_q[..., 3:, :] @ dq + J[..., 3:, :] @ dv - turned)  # (3)
            else:
                J = frame_jacobian(model, q, name, abscissae)
            out[:, :, at] = self.times.joined(R @ (J[..., 3:, :] @ dq), rate)
        return out
