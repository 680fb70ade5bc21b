"""Residuals of a fit and their derivatives with respect to the fitted values. Residuals are positions of points of the
robot minus measured positions.

With residuals r = p(q(d), d) − p_measured and the fitted values d (design values, and for motions the initial state),

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (1)

∂p/∂d, at constant q, is a finite difference of the tables of the model. For equilibria q(d) under known inputs, dq/dd
comes from `equilibrium_derivatives`. For motions under known inputs, q(d) is a rollout, and dq/dd are its forward
sensitivities, because there are many measurements and few values:

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (2)

Between two steps, at the time θ h after the first, the position is the cubic through positions and velocities at both
steps,

    p(θ) = Σₑ aₑ(θ) pₑ + h bₑ(θ) ṗₑ,   ṗ = R η_v                                                          (3)
    dṗ/dd = R (dη_v/dd − η_v × J_ω dq/dd)                                                                 (4)

Its error, h⁴/384 times the fourth derivative of p, is smaller than the error of the steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar, final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import frame_jacobian, frame_pose, frame_twist
from lissom.dynamics.kinematics_derivatives import frame_twist_derivatives
from lissom.errors import ConvergenceError, ModelError, ShapeError, check_kept
from lissom.gradients.designs import Designs
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.gradients.rollout import Rollout, rollout
from lissom.inverse.numbers import Numbers
from lissom.model.model import Model
from lissom.model.points import places_of
from lissom.robot import checks
from lissom.statics.equilibrium import Equilibrium, solve_statics

_PLACING = ("nodes", "runs", "bases", "dofs", "maps", "deforming")  # tables that determine positions of points


@final
@dataclass(frozen=True)
class Measured:
    """Measured positions of points in the world.

    Fields:
        points: (name, s) of each point.
        positions: (..., n, points, 3) [m], NaN for missing measurements.
    """

    points: list[tuple[str, float]]
    positions: np.ndarray

    @cached_property
    def seen(self) -> np.ndarray:
        """Mask of the measured entries, in the shape of `positions`."""
        return np.isfinite(self.positions)

    @property
    def count(self) -> int:
        """Number of measured entries."""
        return int(self.seen.sum())

    @cached_property
    def places(self) -> dict[str, tuple[list[int], np.ndarray]]:
        """For each link or frame, the indices of its points and their abscissae."""
        names = dict.fromkeys(name for name, _ in self.points)
        own = {name: [k for k, point in enumerate(self.points) if point[0] == name] for name in names}
        return {name: (at, np.array([self.points[k][1] for k in at])) for name, at in own.items()}


def have_same_points(models: tuple[Model, ...], model: Model, measured: Measured) -> bool:
    """Whether the measured points have the same positions in all models as in `model`, at any q. This is so if the
    models differ only in values such as moduli and tendon offsets. False if it cannot be decided."""
    for other in models:
        if not all(_same(getattr(other, group), getattr(model, group)) for group in _PLACING):
            return False
        for name, (_, abscissae) in measured.places.items():
            if not _same(places_of(other, name, abscissae), places_of(model, name, abscissae)):
                return False
    return True


def _same(a: Any, b: Any) -> bool:
    """Whether two tables are equal. False if this cannot be decided."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if is_dataclass(a) and type(a) is type(b):
        return all(_same(getattr(a, part.name), getattr(b, part.name)) for part in fields(a))
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, int | float | str) and type(a) is type(b) and a == b


def measured_points(measured: Mapping[Any, Any], lead: tuple[int, ...]) -> Measured:
    """The Measured of a user's dictionary by name or (name, s), with positions of shape (*lead, 3)."""
    checks.require(len(measured) > 0, "measured", "must contain the positions of at least one point", measured)
    points, positions = [], []
    for key, given in measured.items():
        name, s = key if isinstance(key, tuple) else (key, 1.0)
        check_kept(f"measured > {key!r}", given)
        rows = np.asarray(given, dtype=np.float64)
        if rows.shape != (*lead, 3) or np.isinf(rows).any():
            raise ShapeError(f"measured > {key!r}: expected positions or NaN of shape {(*lead, 3)}, got {rows.shape}")
        points.append((name, float(s)))
        positions.append(rows)
    return Measured(points, np.stack(positions, axis=-2))


Done = TypeVar("Done", Equilibrium, Rollout)
Values = dict[str, np.ndarray]  # by path


class FitTask(ABC, Generic[Done]):
    """Unknown values as a vector of numbers x (k,), and the equilibria or motions of the robot with these values.

    `done` computes the model with values x and its equilibria or motions. `positions` are the positions of the points,
    in the shape of the measurements. `slopes` are their derivatives with respect to x, with x as last axis.
    """

    measured: Measured

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""

    @property
    @abstractmethod
    def start(self) -> np.ndarray:
        """Start of the search, shape (k,)."""

    @property
    @abstractmethod
    def units(self) -> np.ndarray:
        """Sizes of the numbers, shape (k,)."""

    @property
    @abstractmethod
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, shape (k,) each."""

    @abstractmethod
    def done(self, x: np.ndarray) -> tuple[Model, Done]:
        """The model with values x, and its equilibria or motions. Raises ModelError or ConvergenceError if there are
        none."""

    @abstractmethod
    def positions(self, model: Model, done: Done) -> np.ndarray:
        """Positions of all points [m]."""

    @abstractmethod
    def slopes(self, model: Model, done: Done) -> np.ndarray:
        """Derivatives of the positions with respect to x."""

    @abstractmethod
    def intervals(self, x: np.ndarray, reach: np.ndarray) -> tuple[Values, Values, Values]:
        """Values of the fitted parameters at x, and at the lower and upper ends x ± reach of their confidence
        intervals. Ends of q0 are increments of the fitted q0."""

    @abstractmethod
    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of the caller's measurements."""

    @abstractmethod
    def shown(self, done: Done) -> tuple[Equilibrium | None, Rollout | None]:
        """Equilibria and motions in the shape of the caller's arguments; one of the two is None."""


@final
@dataclass
class Trials:
    """Residuals of a task and their derivatives at trial values, with a cache for the last values.

    Fields:
        count: number of evaluations of residuals.
        derivatives: number of evaluations of derivatives.
        outlier: residuals above this size [m] enter linearly; None: all enter quadratically.
        best: values with the least loss so far.
    """

    task: FitTask[Any]
    outlier: float | None = None
    count: int = 0
    derivatives: int = 0
    best: np.ndarray | None = None
    _least: float = np.inf
    _last: dict[str, Any] = field(default_factory=dict)

    def count_by(self, outlier: float | None) -> None:
        """Set `outlier`. This changes the loss, so `best` is searched for again."""
        self.outlier, self._least = outlier, np.inf

    def at(self, x: np.ndarray) -> tuple[Model, Any]:
        """The model with values x, and its equilibria or motions."""
        if "x" not in self._last or not np.array_equal(self._last["x"], x):
            self._last = {"x": x.copy(), "done": self.task.done(x)}
        return self._last["done"]

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Positions of the model minus measured positions, for all measured entries [m]. NaN if there is no equilibrium
        or motion with these values; the search then takes a shorter step."""
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
        """Derivatives of the residuals, shape (measured entries, k)."""
        self.derivatives += 1
        done = self.at(x)
        if "slopes" not in self._last:
            self._last["slopes"] = self.task.slopes(*done)[self.task.measured.seen]
        return self._last["slopes"]


@final
@dataclass
class ShapesAtRest(FitTask[Equilibrium]):
    """Positions at rest and their derivatives (1).

    Fields:
        u: inputs (n, nu).
        measured: measured positions (n, points, 3).
        q: start of the search for equilibria: first the caller's start, then the last equilibria.
    """

    model: Model
    numbers: Numbers
    u: np.ndarray
    measured: Measured
    q: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return self.numbers.paths

    @property
    def start(self) -> np.ndarray:
        """Start of the search, shape (k,)."""
        return self.numbers.start

    @property
    def units(self) -> np.ndarray:
        """Sizes of the numbers, shape (k,)."""
        return self.numbers.units

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, shape (k,) each."""
        return self.numbers.low, self.numbers.high

    def done(self, x: np.ndarray) -> tuple[Model, Equilibrium]:
        """The model with values x, and its equilibria."""
        changed = self.numbers.model(self.model, x)
        rest = solve_statics(changed, self.u, self.q)
        self.q = rest.q
        return changed, rest

    def positions(self, model: Model, done: Equilibrium) -> np.ndarray:
        """Positions of all points, shape (n, points, 3) [m]."""
        return self._positions(model, done.q)

    def slopes(self, model: Model, done: Equilibrium) -> np.ndarray:
        """dp/dd of (1), shape (n, points, 3, values)."""
        paths = self.numbers.paths
        dq_dp = equilibrium_derivatives(done, parameters=paths).parameters
        n = len(self.u)
        dq = np.concatenate([dq_dp[path].reshape(n, model.nv, -1) for path in paths], axis=-1)
        out = np.zeros((*self.measured.positions.shape, dq.shape[-1]))
        for name, (at, abscissae) in self.measured.places.items():
            R = frame_pose(model, done.q, name, abscissae)[..., :3, :3]
            out[:, at] = R @ frame_jacobian(model, done.q, name, abscissae)[..., 3:, :] @ dq[:, None]
        for k, stencil in enumerate(Designs(model, paths, n).stencils[0]):
            if have_same_points(stencil.models, model, self.measured):
                continue
            for other, weight in zip(stencil.models, stencil.weights):
                with other.temporary_buffers():
                    out[..., k] += weight * self._positions(other, done.q)
        return out

    def intervals(self, x: np.ndarray, reach: np.ndarray) -> tuple[Values, Values, Values]:
        """Values of the fitted parameters, and the ends x ± reach of their confidence intervals."""
        own, low, high = (self.numbers.split(y) for y in (x, x - reach, x + reach))
        return own, low, high

    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of the caller's measurements."""
        return residuals

    def shown(self, done: Equilibrium) -> tuple[Equilibrium, None]:
        """The equilibria, and None for the motion."""
        return done, None

    def _positions(self, model: Model, q: np.ndarray) -> np.ndarray:
        """Positions of all points, shape (n, points, 3) [m]."""
        out = np.zeros(self.measured.positions.shape)
        for name, (at, abscissae) in self.measured.places.items():
            out[:, at] = frame_pose(model, q, name, abscissae)[..., :3, 3]
        return out


STARTS = ("q0", "v0")
_ON_STEP = 1e-9  # a time closer than this fraction of a step to its end is on the end


@final
@dataclass(frozen=True)
class Times:
    """Interpolation (3) at n times between the states of a rollout.

    Fields:
        used: indices of the needed states (k,).
        at: for both ends of the interval of each time, the index in `used`, (2, n).
        a: weights of positions in (3), (2, n).
        b: weights of velocities in (3), including the factor h [s], (2, n).
    """

    used: np.ndarray
    at: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @property
    def between(self) -> bool:
        """Whether any time is between two steps, so that velocities are needed."""
        return bool(self.b.any())

    def joined(self, p: np.ndarray, rate: np.ndarray | None) -> np.ndarray:
        """p of (3) from positions and velocities (motions, k, ...), shape (motions, n, ...)."""
        out = np.zeros((len(p), self.at.shape[1], *p.shape[2:]))
        wide = (-1, *(1,) * (p.ndim - 2))
        for at, a, b in zip(self.at, self.a, self.b):
            out += a.reshape(wide) * p[:, at]
            if rate is not None:
                out += b.reshape(wide) * rate[:, at]
        return out


def times_among_steps(t: np.ndarray, dt: float, steps: int) -> Times:
    """Interpolation at times t (n,) between 0 and steps · dt [s]."""
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
    """Positions along motions and their derivatives (2).

    Fields:
        u: inputs (motions, steps, nu).
        lead: leading axes of the caller's arguments.
        measured: measured positions (motions, n, points, 3).
        times: interpolation at the n times of the measurements.
        q0, v0: initial states, or the start of the search for them.
        unknown: names of the initial states to fit, "q0" and "v0".
        options: arguments of the rollout.
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
        """Indices of the coordinates whose initial values can be fitted."""
        return np.setdiff1d(np.arange(self.model.nv), self.model.prescribed.dof)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return *self.numbers.paths, *self.unknown

    @property
    def start(self) -> np.ndarray:
        """Start of the search: design values, then zero increments of the initial states."""
        return np.concatenate([self.numbers.start, np.zeros(len(self.unknown) * len(self.u) * len(self.free))])

    @property
    def units(self) -> np.ndarray:
        """Sizes of the numbers, shape (k,)."""
        sizes = np.tile(self.model.dofs.scale[self.free], len(self.unknown) * len(self.u))
        return np.concatenate([self.numbers.units, sizes])

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, shape (k,) each."""
        more = np.full(len(self.start) - len(self.numbers.start), np.inf)
        return np.concatenate([self.numbers.low, -more]), np.concatenate([self.numbers.high, more])

    def done(self, x: np.ndarray) -> tuple[Model, Rollout]:
        """The model with values x, and its motions."""
        changed, change = self.numbers.model(self.model, x), self._changes(x)
        q0, v0 = integrate(changed, self.q0, change["q0"]), self.v0 + change["v0"]
        return changed, rollout(changed, q0, v0, self.u, **self.options)

    def positions(self, model: Model, done: Rollout) -> np.ndarray:
        """Positions of all points at all times by (3), shape (motions, n, points, 3) [m]."""
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
        """dp/dd of (2), shape (motions, n, points, 3, values)."""
        designs, n_free, n = len(self.numbers.start), len(self.free), len(self.u)
        directions = designs + n_free * len(self.unknown)
        changes = {name: np.zeros((directions, n, model.nv)) for name in STARTS}
        for k, name in enumerate(self.unknown):  # a direction changes all initial states
            changes[name][designs + k * n_free + np.arange(n_free), :, self.free] = 1.0
        by_value = np.zeros((directions, designs))
        by_value[:designs] = np.eye(designs)
        values = {path: np.zeros((directions, *shape)) for path, shape in self.numbers.shapes.items()}
        for direction, row in enumerate(by_value):
            for path, value in self.numbers.split(row).items():
                values[path][direction] = value
        change = done.forward(changes["q0"], changes["v0"], parameters=values)
        found = self._followed(model, done, change.q, change.v)
        for k, stencil in enumerate(Designs(model, self.numbers.paths, n).stencils[0]):
            if have_same_points(stencil.models, model, self.measured):
                continue
            for other, weight in zip(stencil.models, stencil.weights):
                with other.temporary_buffers():
                    found[..., k] += weight * self.positions(other, done)
        out = np.zeros((*self.measured.positions.shape, designs + n_free * n * len(self.unknown)))
        out[..., :designs] = found[..., :designs]
        for k in range(len(self.unknown)):
            for i in range(n):
                at = designs + (k * n + i) * n_free
                out[i, ..., at : at + n_free] = found[i, ..., designs + k * n_free : designs + (k + 1) * n_free]
        return out

    def intervals(self, x: np.ndarray, reach: np.ndarray) -> tuple[Values, Values, Values]:
        """Values, and the ends of the intervals x ± reach. For q0 the ends are increments."""
        own, low, high = (self.numbers.split(y) for y in (x, x - reach, x + reach))
        change, far = self._changes(x), self._changes(reach)
        for name in self.unknown:
            own[name] = integrate(self.model, self.q0, change["q0"]) if name == "q0" else self.v0 + change["v0"]
            middle = 0.0 if name == "q0" else own[name]
            low[name], high[name] = middle - far[name], middle + far[name]
            for values in (own, low, high):
                values[name] = values[name].reshape(*self.lead, values[name].shape[-1])
        return own, low, high

    def shaped(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in the shape of the caller's measurements."""
        return residuals.reshape(*self.lead, *residuals.shape[1:])

    def shown(self, done: Rollout) -> tuple[None, Rollout]:
        """None for the equilibrium, and the motions in the shape of the caller's arguments."""
        if self.lead:
            return None, done
        return None, replace(done, **{name: getattr(done, name)[0] for name in ("q", "v", "a", "u")})

    def _changes(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Increments of q0 and v0, (motions, nv) each."""
        out = {name: np.zeros((len(self.u), self.model.nv)) for name in STARTS}
        rows = x[len(self.numbers.start) :].reshape(len(self.unknown), len(self.u), len(self.free))
        for name, change in zip(self.unknown, rows):
            out[name][:, self.free] = change
        return out

    def _followed(self, model: Model, motion: Rollout, dq: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """R J_v dq of all points at all times by (3) and (4), shape (motions, n, points, 3, directions)."""
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
                rate = R @ (by_q[..., 3:, :] @ dq + J[..., 3:, :] @ dv - turned)  # (4)
            else:
                J = frame_jacobian(model, q, name, abscissae)
            out[:, :, at] = self.times.joined(R @ (J[..., 3:, :] @ dq), rate)
        return out
