"""Fit of design values to measured shapes at rest or measured motions, by least squares.

fit_residuals defines the residuals r and their derivatives J. With the loss ρ(r) of the fit, ψ = ρ′, m residuals and k
values, the covariance of the values is

    C = Σψ²/(m − k) / (Σψ′/m)² (JᵀJ)⁻¹                                                                    (1)

For least squares this is s² (JᵀJ)⁻¹. The confidence intervals are d ± t √C_dd, with the quantile t of Student's
distribution with m − k degrees of freedom.

Source: P. J. Huber and E. M. Ronchetti, Robust Statistics, 2009, §7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.optimize import least_squares
from scipy.special import stdtrit

from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.start import default_start
from lissom.errors import ConvergenceError, ModelError, ShapeError, keeping, renamed
from lissom.gradients.rollout import Rollout
from lissom.inverse.fit_residuals import (
    STARTS,
    Motions,
    ShapesAtRest,
    Trials,
    measured_points,
    times_among_steps,
)
from lissom.inverse.numbers import numbers_of
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.robot.traced_functions import TracedFunction
from lissom.statics.equilibrium import Equilibrium
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SEEN = 1e-9  # smallest allowed ratio of the smallest to the largest singular value of J, in units of the values
_ROUNDING = 1e-14  # columns of J below this fraction of the largest one count as zero


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Fit:
    """Design values fitted to measurements.

    Fields:
        model: model with the fitted values.
        values: fitted values by path, and "q0" and "v0" if these are fitted.
        low, high: ends of the confidence intervals. They are not cut off at the bounds. For q0 they are increments in
            the tangent space of `integrate`.
        covariance: covariance of all fitted numbers (k, k), in the order of the paths, then of the increments of q0
            and v0.
        residuals: positions of the model minus measured positions [m], (..., n, points, 3); NaN without a measurement.
        noise: σ of the covariance σ² (JᵀJ)⁻¹ [m], with the Jacobian J of the residuals. Without an outlier limit it is
            the standard deviation of the residuals.
        equilibrium: equilibria with the fitted values; None for motions.
        motion: motions with the fitted values; None for equilibria.
        iterations: number of evaluations of the derivatives.
    """

    model: Model
    values: dict[str, np.ndarray]
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    covariance: np.ndarray
    residuals: np.ndarray
    noise: float
    equilibrium: Equilibrium | None
    motion: Rollout | None
    iterations: int


@renamed(scheme="method")
def fit(
    model: Model,
    parameters: Sequence[str],
    u: ArrayLike | None,
    measured: Mapping[Any, Any],
    *,
    bounds: Mapping[str, Any] | None = None,
    outlier: float | None = None,
    confidence: float = 0.95,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    dt: float | None = None,
    t: ArrayLike | None = None,
    method: str | Scheme = "sdirk",
    controller: TracedFunction | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> Fit:
    """Fit design values, such as moduli, damping, offsets or lengths, to measured positions, with confidence intervals.

    Without dt, equilibria are fitted. With dt, motions of `rollout` are fitted.

    Args:
        parameters: paths of the design values (`Robot.described_values`), numbers or arrays of numbers. The search
            starts at the values of the model. For motions also "q0" and "v0", to fit an unknown initial state.
        u: known inputs. Equilibria: (n, nu) for n measurements. Motions: inputs of each step, (steps, nu) or (motions,
            steps, nu).
        measured: measured positions in the world [m] by name of a link or frame, or by (name, s) on a rod, shape (n, 3)
            or (motions, n, 3). NaN is a missing measurement. All measurements have the same weight.
        bounds: (low, high) by path, numbers or arrays of the shape of the value. Other values have no bounds. Values
            that break a rule of the description are never accepted.
        outlier: residuals above this size [m] enter the loss linearly instead of quadratically. None: all enter
            quadratically.
        confidence: confidence level of the intervals, between 0 and 1.
        q0: start of the search for equilibria, (nq,) or (n, nq); or initial configurations of motions, (nq,) or
            (motions, nq). None is `start_configuration`.
        v0: initial velocities of motions, (nv,) or (motions, nv); None is rest.
        dt: step size of motions [s].
        t: times of the n measurements of a motion [s], from 0 to the end of the steps; None: the start and the end of
            each step.
        method, controller: scheme of the steps, and a feedback law that adds to u, see `rollout`.
        progress: True shows the progress of a fit that takes longer than one second. A function is called with the
            number of values tried instead.
    Returns:
        Fit.
    Raises:
        ModelError: wrong paths, bounds or points; too few measurements; or the measurements do not determine the
            values.
        ShapeError: an argument has a wrong shape.
        ConvergenceError: no equilibrium or motion at the start, or the sum of squares did not converge to a minimum.
        KeyboardInterrupt: Ctrl-C. Its attribute `partial` is the Fit of the best values so far, if the measurements
            determine them; this needs one more evaluation of the derivatives.
    Accuracy: derivatives as in equilibrium_derivatives and Rollout.forward. Intervals follow from the linearisation at
    the fitted values. They are too narrow if residuals are not independent, and meaningless for a value at a bound.
    """
    checks.require(0.0 < confidence < 1.0, "confidence", "must be > 0 and < 1", confidence)
    if outlier is not None:
        checks.number(outlier, "outlier", above=0.0)
    paths = tuple(parameters)
    checks.require(len(paths) > 0 and len(set(paths)) == len(paths), "parameters", "must be paths, each once", paths)
    if dt is None:
        begin = {"q0": q0, "v0": v0, "t": t, "controller": controller}
        task = _at_rest(model, paths, u, measured, bounds or {}, begin)
    else:
        options = {"dt": dt, "method": method, "controller": controller}
        task = _moving(model, paths, u, measured, bounds or {}, {"q0": q0, "v0": v0, "t": t}, options)
    trials = Trials(task)
    with keeping(lambda: _best_fit(trials, outlier, confidence)):
        trials.at(task.start)  # errors at the start go to the caller
        rule = f"must be more numbers than the {len(task.start)} values"
        checks.require(task.measured.count > len(task.start), "measured", rule, task.measured.count)
        return _fit(trials, _best_values(trials, outlier, progress), outlier, confidence)


def _best_values(trials: Trials, outlier: float | None, progress: bool | Callable[[float], Any]) -> np.ndarray:
    """Values with the least loss: first by least squares, then with the loss for outliers, which is not convex far
    away."""
    task = trials.task
    values, units, (low, high) = task.start, task.units, task.ends
    with progress_bar(progress, None, "fitting", patience=PATIENCE) as advance:

        def residual(x: np.ndarray) -> np.ndarray:
            r = trials.residual(x * units)
            advance(trials.count, f"{trials.count} tried, residuals of {np.sqrt(np.mean(r**2)):.3g} m")
            return r

        def slopes(x: np.ndarray) -> np.ndarray:
            J = trials.slopes(x * units) * units
            sizes = np.abs(J).max(axis=0, initial=0.0)
            return np.where(sizes > _ROUNDING * sizes.max(), J, 0.0)  # values without influence stay unchanged

        for scale in (None,) if outlier is None else (None, outlier):
            trials.count_by(scale)
            least = np.finfo(float).eps  # so that a start without residual, where SciPy would divide 0 by 0, is the end
            options: dict[str, Any] = {"xtol": 1e-9, "ftol": 1e-13, "gtol": least, "f_scale": scale or 1.0}
            options |= {"loss": "soft_l1" if scale else "linear", "jac": slopes}
            found = least_squares(residual, values / units, bounds=(low / units, high / units), **options)
            if not found.success:
                name = trials.at(values)[0].name
                raise ConvergenceError(f"fit of robot {name!r}: no least sum of squares ({found.message})")
            values = found.x * units
    return values


def _best_fit(trials: Trials, outlier: float | None, confidence: float) -> Fit | None:
    """Fit of the best values so far; None if there are none, or if the measurements do not determine them."""
    try:
        return None if trials.best is None else _fit(trials, trials.best, outlier, confidence)
    except (ModelError, ConvergenceError):
        return None


def _at_rest(
    model: Model, paths: tuple[str, ...], u: Any, measured: Any, bounds: Mapping[str, Any], begin: dict[str, Any]
) -> ShapesAtRest:
    """The fit task for equilibria."""
    for name in ("v0", "t", "controller"):
        if begin[name] is not None:
            raise ModelError(f"{name}: must be given with dt, of a motion (got no dt)")
    inputs = stack("u", u, model.nu)
    if inputs.ndim != 2:
        raise ShapeError(f"u: expected shape (n, {model.nu}), got {inputs.shape}")
    numbers = numbers_of(model, paths, bounds)
    return ShapesAtRest(model, numbers, inputs, measured_points(measured, (len(inputs),)), begin["q0"])


def _moving(
    model: Model, paths: tuple[str, ...], u: Any, measured: Any, bounds: Mapping[str, Any], begin: dict[str, Any],
    options: dict[str, Any],
) -> Motions:  # fmt: skip
    """The fit task for motions by rollouts with options."""
    dt = checks.number(options["dt"], "dt", above=0.0)
    inputs = stack("u", u, model.nu)
    if inputs.ndim not in (2, 3) or 0 in inputs.shape[:-1]:
        raise ShapeError(f"u: expected shape (steps, {model.nu}) or (motions, steps, {model.nu}), got {inputs.shape}")
    lead, steps = inputs.shape[:-2], inputs.shape[-2]
    times = dt * np.arange(steps + 1) if begin["t"] is None else checks.array(
        begin["t"], (-1,), "t", "must be a list of finite times")  # fmt: skip
    inside = bool((times >= 0.0).all() and (times <= dt * steps * (1.0 + 1e-12)).all())
    checks.require(inside and len(times) > 0, "t", f"must be times between 0 and the end, {dt * steps:g} s", begin["t"])
    unknown = tuple(name for name in STARTS if name in paths)
    if unknown and model.n_rows:
        rule = "must be known for a robot with loops, since their coordinates are not independent"
        raise ModelError(f"robot {model.name!r} > {unknown[0]}: {rule} (got it among the parameters)")
    points = measured_points(measured, (*lead, len(times)))
    flat = inputs.reshape(-1, steps, model.nu)
    states = []
    for name, size in (("q0", model.nq), ("v0", model.nv)):
        none = default_start(model) if name == "q0" else np.zeros(model.nv)
        given = none if begin[name] is None else stack(name, begin[name], size)
        if given.shape not in ((size,), (*lead, size)):
            raise ShapeError(f"{name}: expected shape {(*lead, size)}, got {given.shape}")
        states.append(np.broadcast_to(given, (len(flat), size)))
    measured = type(points)(points.points, points.positions.reshape(len(flat), *points.positions.shape[-3:]))
    numbers = numbers_of(model, tuple(path for path in paths if path not in STARTS), bounds)
    q0, v0 = checked_configuration(model, "q0", states[0]), states[1]
    return Motions(model, numbers, flat, lead, measured, times_among_steps(times, dt, steps), q0, v0, unknown, options)


def _fit(trials: Trials, values: np.ndarray, outlier: float | None, confidence: float) -> Fit:
    """The Fit at `values`, with intervals by (1)."""
    task, iterations = trials.task, trials.derivatives
    units = task.units
    J, r = trials.slopes(values) * units, trials.residual(values)
    sizes = np.linalg.svd(J, compute_uv=False)
    if sizes[-1] <= _SEEN * sizes[0]:
        rule = "measured positions must determine all values; fit fewer values, or measure under other inputs"
        raise ModelError(f"{', '.join(task.names)}: {rule} (got singular values {sizes!r})")
    bend = np.ones_like(r) if outlier is None else 1.0 / np.sqrt(1.0 + (r / outlier) ** 2)
    psi, slope = bend * r, bend**3
    freedom = len(r) - len(values)
    share = float(np.sum(psi**2)) / freedom / np.mean(slope) ** 2
    covariance = share * np.linalg.inv(J.T @ J) * np.outer(units, units)  # (1)
    reach = float(stdtrit(freedom, 0.5 + 0.5 * confidence)) * np.sqrt(np.diag(covariance))
    residuals = np.full(task.measured.positions.shape, np.nan)
    residuals[task.measured.seen] = r
    model, done = trials.at(values)
    intervals, residuals = task.intervals(values, reach), task.shaped(residuals)
    return Fit(model, *intervals, covariance, residuals, float(np.sqrt(share)), *task.shown(done), iterations)
