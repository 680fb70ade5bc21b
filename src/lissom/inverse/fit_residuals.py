"""Residuals of a fit: measured positions of points less those of the robot, and their derivatives by the fitted values.

With residuals r = p(q(d), d) − p_measured, and the fitted values d (design values, and for motions the start as well),

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (1)

∂p/∂d, at fixed q, comes from differences of the tables of the model. For shapes at rest under known inputs, q(d) is an
equilibrium, and dq/dd comes from `equilibrium_derivatives`. For points that were followed along motions under known
inputs, q(d) is a rollout, and dq/dd are its forward sensitivities, since measurements are many and values few:

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (2)

At a time between two steps, θ h behind the first of them, the point is where the cubic through both with their
velocities is,

    p(θ) = Σₑ aₑ(θ) pₑ + h bₑ(θ) ṗₑ,   ṗ = R η_v                                                          (3)
    dṗ/dd = R (dη_v/dd − η_v × J_ω dq/dd)                                                                 (4)

whose error, h⁴/384 of the fourth rate of p, is below that of the steps.
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
from lissom.model.model import Model
from lissom.model.points import places_of
from lissom.robot import checks
from lissom.robot.paths import value_at
from lissom.statics.equilibrium import Equilibrium, solve_statics

_PLACING = ("nodes", "runs", "bases", "dofs", "maps", "deforming")  # tables that say where points are


@final
@dataclass(frozen=True)
class Measured:
    """Where points were seen in the world.

    Fields:
        points: (name, s) of each. positions: (..., n, points, 3) [m], NaN where there is none.
    """

    points: list[tuple[str, float]]
    positions: np.ndarray

    @cached_property
    def seen(self) -> np.ndarray:
        """Where something was measured."""
        return np.isfinite(self.positions)

    @property
    def count(self) -> int:
        """Of numbers measured."""
        return int(self.seen.sum())

    @cached_property
    def places(self) -> dict[str, tuple[list[int], np.ndarray]]:
        """Of each link or frame, which points are on it, and their abscissae."""
        names = dict.fromkeys(name for name, _ in self.points)
        own = {name: [k for k, point in enumerate(self.points) if point[0] == name] for name in names}
        return {name: (at, np.array([self.points[k][1] for k in at])) for name, at in own.items()}


@final
@dataclass(frozen=True)
class Numbers:
    """Design values, one behind the other.

    Fields:
        shapes: of the values, by path. start, low, high: of the numbers (k,). units: of each path its largest.
    """

    shapes: dict[str, tuple[int, ...]]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the values."""
        return tuple(self.shapes)

    @property
    def units(self) -> np.ndarray:
        """Of each number the size of its value."""
        parts = self.split(self.start).values()
        return np.concatenate([np.zeros(0), *(np.full(x.size, np.abs(x).max() or 1.0) for x in parts)])

    def split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers by path."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes.values())])
        return {path: x[a:b].reshape(shape) for (path, shape), a, b in zip(self.shapes.items(), ends, ends[1:])}

    def model(self, model: Model, x: np.ndarray) -> Model:
        """The model with values x."""
        values = {path: value.tolist() for path, value in self.split(x).items()}
        return model.with_(values) if values else model


def stand_alike(models: tuple[Model, ...], model: Model, measured: Measured) -> bool:
    """Whether the points of a model are at the same places in all models, at any q, as far as can be told: where
    design values such as moduli and offsets of tendons differ."""
    for other in models:
        if not all(_same(getattr(other, group), getattr(model, group)) for group in _PLACING):
            return False
        for name, (_, abscissae) in measured.places.items():
            if not _same(places_of(other, name, abscissae), places_of(model, name, abscissae)):
                return False
    return True


def _same(a: Any, b: Any) -> bool:
    """Whether two tables are the same, as far as that can be told."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if is_dataclass(a) and type(a) is type(b):
        return all(_same(getattr(a, part.name), getattr(b, part.name)) for part in fields(a))
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, int | float | str) and type(a) is type(b) and a == b


def numbers_of(model: Model, paths: tuple[str, ...], bounds: Mapping[str, Any]) -> Numbers:
    """The values of a model at paths, and how far they may go.

    Raises:
        ModelError: a path leads to no number or array of numbers; bounds do not hold the values. ShapeError: bounds.
    """
    parts = []
    for path in paths:
        value = value_at(model.description, path)
        try:
            array = np.asarray(None if callable(value) or isinstance(value, bool) else value, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.full((), np.nan)
        good = bool(np.isfinite(array).all()) and array.shape != (4, 4)
        checks.require(good, f"robot {model.name!r} > {path}", "must be a number or an array of numbers", value)
        parts.append(array)
    start = np.concatenate([np.zeros(0), *(x.ravel() for x in parts)])
    shapes = {path: x.shape for path, x in zip(paths, parts)}
    low, high = _bounds(bounds, shapes)
    if not (low <= start).all() or not (start <= high).all():
        raise ModelError(f"bounds: must hold the values of the model, {start!r} (got {bounds!r})")
    return Numbers(shapes, start, low, high)


def _bounds(bounds: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest of all numbers."""
    for path in bounds:
        checks.require(path in shapes, f"bounds > {path}", f"must be of a value that is fitted, {list(shapes)}", path)
    ends: tuple[list[np.ndarray], list[np.ndarray]] = ([np.zeros(0)], [np.zeros(0)])
    for path, shape in shapes.items():
        try:
            low, high = (np.asarray(x, dtype=np.float64) for x in bounds.get(path, (-np.inf, np.inf)))
            for side, x in zip(ends, (low, high)):
                side.append(np.broadcast_to(x, shape).ravel())
        except (TypeError, ValueError):
            got = f"got {bounds[path]!r}"
            raise ShapeError(f"bounds > {path}: expected (low, high), numbers or shape {shape}, {got}") from None
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def measured_points(measured: Mapping[Any, Any], lead: tuple[int, ...]) -> Measured:
    """Points by name or (name, s), with positions of shape (*lead, 3)."""
    checks.require(len(measured) > 0, "measured", "must hold the positions of a point at least", measured)
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
                with other.temporary_buffers():
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


STARTS = ("q0", "v0")
_ON_STEP = 1e-9  # of a step


@final
@dataclass(frozen=True)
class Times:
    """Where times are among steps.

    Fields:
        used: numbers of the steps that count (k,). at: for either end, which of these, (2, n). a, b: weights of (3),
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
        """(3) of positions and velocities (motions, k, ...)."""
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
    """Positions along some motions and their derivatives (2).

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
        """Of all points at all times by (3), shape (motions, n, points, 3)."""
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
        """(2), shape (motions, n, points, 3, values)."""
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
                with other.temporary_buffers():
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
        """R J_v dq of all points at all times by (3) and (4), shape (motions, n, points, 3, ways)."""
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
