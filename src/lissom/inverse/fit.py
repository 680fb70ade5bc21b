"""Design values from measured shapes at rest, by least squares.

With residuals r = p(q(d), d) − p_measured of points at equilibria q(d) under known inputs, and design values d,

    dp/dd = R J_v dq/dd + ∂p/∂d                                                                           (1)

dq/dd by `equilibrium_derivatives` and ∂p/∂d, at the same q, by the differences that it takes of tables. With the loss
ρ(r) of the fit, ψ = ρ′, m residuals and k values, the covariance of values is

    C = Σψ²/(m − k) / (Σψ′/m)² (JᵀJ)⁻¹                                                                    (2)

which is s² (JᵀJ)⁻¹ for squares, and their intervals are d ± t √C_dd with Student's t of m − k.
Source: P. J. Huber and E. M. Ronchetti, Robust Statistics, 2009, §7.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import t as student

from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.gradients.designs import Designs
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.paths import value_at
from lissom.statics.equilibrium import Equilibrium, solve_statics

_SEEN = 1e-9  # least singular value of J, of the largest, in units of the values


@final
@dataclass(frozen=True)
class Fit:
    """Design values that measurements tell.

    Fields:
        model: with the values found. values: by path. low, high: ends of their confidence intervals, which bounds do
        not cut off.
        covariance: of all numbers, one behind the other in the order of the paths (k, k).
        residuals: of positions, model less measured, (n, points, 3), NaN where nothing was measured [m]. noise: their
        standard deviation, or what an efficient fit would make of as wide intervals where outliers count less [m].
        equilibrium: the robot at rest with these values. iterations: evaluations of the derivatives.
    """

    model: Model
    values: dict[str, np.ndarray]
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    covariance: np.ndarray
    residuals: np.ndarray
    noise: float
    equilibrium: Equilibrium
    iterations: int


def fit(
    model: Model,
    parameters: Sequence[str],
    u: Any,
    measured: Mapping[Any, Any],
    *,
    bounds: Mapping[str, Any] | None = None,
    outlier: float | None = None,
    confidence: float = 0.95,
    q0: Any = None,
    progress: bool = False,
) -> Fit:
    """Design values, such as moduli, offsets or lengths, from measured positions of a robot at rest, with intervals.

    Args:
        parameters: paths of design values (`Robot.described_values`), numbers or arrays of numbers; those of the model
            are the start.
        u: inputs of n measurements, shape (n, nu), known.
        measured: positions in the world, shape (n, 3) [m], of each link or frame by its name, or by (name, s) on a rod;
            NaN where there is none. All are taken as equally noisy.
        bounds: (low, high) by path, numbers or of the value's shape; paths that are left out have none. Values that
            break a rule of the description are never taken.
        outlier: residual beyond which a measurement counts by its size and no longer by its square [m].
            None: all count by their squares.
        confidence: of the intervals, between 0 and 1.
        q0: start of the equilibria, shape (nq,) or (n, nq).
        progress: show how far it is, where it takes longer than a second.
    Returns:
        Fit.
    Raises:
        ModelError: paths, bounds, points, too few measurements, or such as do not tell the values apart.
        ShapeError: the argument, the expected and the received shape. ConvergenceError: no equilibrium at the start,
        or no least sum of squares.
    Accuracy: derivatives as of equilibrium_derivatives. Intervals are those of the linearisation at the values found:
    too narrow where residuals are not independent, and of no meaning for a value at its bound.
    """
    checks.require(0.0 < confidence < 1.0, "confidence", "must be > 0 and < 1", confidence)
    if outlier is not None:
        checks.number(outlier, "outlier", above=0.0)
    inputs = stack("u", u, model.nu)
    if inputs.ndim != 2:
        raise ShapeError(f"u: expected shape (n, {model.nu}), got {inputs.shape}")
    start, shapes = _start(model, tuple(parameters))
    task = _Task(model, tuple(parameters), shapes, inputs, *_points(measured, len(inputs)), q0)
    parts = task.split(start).values()
    units = np.concatenate([np.full(x.size, np.abs(x).max() or 1.0) for x in parts])  # of each path its largest
    low, high = _bounds(bounds or {}, shapes)
    if not (low <= start).all() or not (start <= high).all():
        raise ModelError(f"bounds: must hold the values of the model, {start!r} (got {bounds!r})")
    task.at(start)  # an error here is the caller's
    checks.require(task.count > len(start), "measured", f"must be more numbers than the {len(start)} values",
                   task.count)  # fmt: skip
    values, iterations, count = start, 0, 0
    with progress_bar(progress, None, "fitting", patience=PATIENCE) as advance:

        def residual(x: np.ndarray) -> np.ndarray:
            nonlocal count
            r, count = task.residual(x * units), count + 1
            advance(count, f"{count} shapes, residuals of {np.sqrt(np.mean(r**2)):.3g} m")
            return r

        for loss in ("linear",) if outlier is None else ("linear", "soft_l1"):  # far away the second has no curvature
            options: dict[str, Any] = {"xtol": 1e-9, "ftol": 1e-13, "gtol": None, "loss": loss}
            options |= {"f_scale": outlier or 1.0, "jac": lambda x: task.slopes(x * units) * units}
            found = least_squares(residual, values / units, bounds=(low / units, high / units), **options)
            if not found.success:
                raise ConvergenceError(f"fit of robot {model.name!r}: no least sum of squares ({found.message})")
            values, iterations = found.x * units, iterations + int(found.njev)
    return _fit(task, values, units, outlier, confidence, iterations)


def _fit(
    task: _Task, values: np.ndarray, units: np.ndarray, outlier: float | None, confidence: float, iterations: int
) -> Fit:
    """Values with their intervals by (2)."""
    J, r = task.slopes(values) * units, task.residual(values)
    sizes = np.linalg.svd(J, compute_uv=False)
    if sizes[-1] <= _SEEN * sizes[0]:
        rule = "measured positions must tell the values apart; leave one out, or measure under other inputs"
        raise ModelError(f"{', '.join(task.paths)}: {rule} (got singular values {sizes!r})")
    bend = np.ones_like(r) if outlier is None else 1.0 / np.sqrt(1.0 + (r / outlier) ** 2)
    psi, slope = bend * r, bend**3
    freedom = len(r) - len(values)
    share = float(np.sum(psi**2)) / freedom / np.mean(slope) ** 2
    covariance = share * np.linalg.inv(J.T @ J) * np.outer(units, units)  # (2)
    reach = float(student.ppf(0.5 + 0.5 * confidence, freedom)) * np.sqrt(np.diag(covariance))
    noise = float(np.sqrt(share))
    residuals = np.full(task.positions.shape, np.nan)
    residuals[task.seen] = r
    model, rest = task.at(values)
    own, low, high = (task.split(x) for x in (values, values - reach, values + reach))
    return Fit(model, own, low, high, covariance, residuals, noise, rest, iterations)


@final
@dataclass
class _Task:
    """Residuals and their derivatives (1) at values; the last equilibria are kept, and are where the next begin.

    Fields:
        points: (name, s) of each. positions: measured (n, points, 3). q: where equilibria are sought from.
    """

    model: Model
    paths: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]]
    u: np.ndarray
    points: list[tuple[str, float]]
    positions: np.ndarray
    q: Any
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def seen(self) -> np.ndarray:
        """Where something was measured."""
        return np.isfinite(self.positions)

    @property
    def count(self) -> int:
        """Of numbers measured."""
        return int(self.seen.sum())

    def split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers by path."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])[:-1]
        return {path: part.reshape(shape) for (path, shape), part in zip(self.shapes.items(), np.split(x, ends))}

    def at(self, x: np.ndarray) -> tuple[Model, Equilibrium]:
        """The model with values x, and its equilibria."""
        if "x" not in self.last or not np.array_equal(self.last["x"], x):
            values = {path: value.tolist() for path, value in self.split(x).items()}
            one = self.model.with_(values)
            rest = solve_statics(one, self.u, self.q)
            self.q, self.last = rest.q, {"x": x.copy(), "found": (one, rest)}
        return self.last["found"]

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Positions of the model less those measured; NaN, which shortens the step, where there is no such robot."""
        try:
            one, rest = self.at(x)
        except (ModelError, ConvergenceError):
            return np.full(self.count, np.nan)
        return (self._positions(one, rest.q) - self.positions)[self.seen]

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """(1), shape (count, values)."""
        one, rest = self.at(x)
        answer = equilibrium_derivatives(rest, parameters=self.paths).parameters
        n = len(self.u)
        dq = np.concatenate([answer[path].reshape(n, one.nv, -1) for path in self.paths], axis=-1)
        out = np.zeros((*self.positions.shape, dq.shape[-1]))
        for name, (at, abscissae) in self._places().items():
            R = frame_pose(one, rest.q, name, abscissae)[..., :3, :3]
            out[:, at] = R @ frame_jacobian(one, rest.q, name, abscissae)[..., 3:, :] @ dq[:, None]
        for k, entry in enumerate(Designs(one, self.paths, n).entries[0]):
            for other, weight in zip(entry.models, entry.weights):
                with other.lent():
                    out[..., k] += weight * self._positions(other, rest.q)
        return out[self.seen]

    def _positions(self, model: Model, q: np.ndarray) -> np.ndarray:
        """Of all points, shape (n, points, 3)."""
        out = np.zeros(self.positions.shape)
        for name, (at, abscissae) in self._places().items():
            out[:, at] = frame_pose(model, q, name, abscissae)[..., :3, 3]
        return out

    def _places(self) -> dict[str, tuple[list[int], np.ndarray]]:
        """Of each link or frame, which points are on it, and their abscissae."""
        names = dict.fromkeys(name for name, _ in self.points)
        own = {name: [k for k, point in enumerate(self.points) if point[0] == name] for name in names}
        return {name: (at, np.array([self.points[k][1] for k in at])) for name, at in own.items()}


def _start(model: Model, paths: tuple[str, ...]) -> tuple[np.ndarray, dict[str, tuple[int, ...]]]:
    """Numbers at the paths, and the shape of each value."""
    parts = []
    checks.require(len(paths) > 0 and len(set(paths)) == len(paths), "parameters", "must be paths, each once", paths)
    for path in paths:
        value = value_at(model.description, path)
        try:
            array = np.asarray(None if callable(value) or isinstance(value, bool) else value, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.full((), np.nan)
        good = bool(np.isfinite(array).all()) and array.shape != (4, 4)
        checks.require(good, f"robot {model.name!r} > {path}", "must be a number or an array of numbers", value)
        parts.append(array)
    return np.concatenate([x.ravel() for x in parts]), {path: x.shape for path, x in zip(paths, parts)}


def _bounds(bounds: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest of all numbers."""
    for path in bounds:
        checks.require(path in shapes, f"bounds > {path}", f"must be of a value that is fitted, {list(shapes)}", path)
    ends: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for path, shape in shapes.items():
        try:
            low, high = (np.asarray(x, dtype=np.float64) for x in bounds.get(path, (-np.inf, np.inf)))
            for side, x in zip(ends, (low, high)):
                side.append(np.broadcast_to(x, shape).ravel())
        except (TypeError, ValueError):
            got = f"got {bounds[path]!r}"
            raise ShapeError(f"bounds > {path}: expected (low, high), numbers or shape {shape}, {got}") from None
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def _points(measured: Mapping[Any, Any], n: int) -> tuple[list[tuple[str, float]], np.ndarray]:
    """(name, s) of points, and their positions (n, points, 3)."""
    checks.require(len(measured) > 0, "measured", "must hold the positions of a point at least", measured)
    points, positions = [], []
    for key, given in measured.items():
        name, s = key if isinstance(key, tuple) else (key, 1.0)
        rows = np.asarray(given, dtype=np.float64)
        if rows.shape != (n, 3) or np.isinf(rows).any():
            raise ShapeError(f"measured > {key!r}: expected positions or NaN of shape {(n, 3)}, got {rows.shape}")
        points.append((name, float(s)))
        positions.append(rows)
    return points, np.stack(positions, axis=1)
