"""Design values from measured shapes at rest or from measured motions, by least squares.

Residuals and their derivatives J are those of measured_shapes and measured_motions. With the loss ρ(r) of the fit,
ψ = ρ′, m residuals and k values, the covariance of values is

    C = Σψ²/(m − k) / (Σψ′/m)² (JᵀJ)⁻¹                                                                    (1)

which is s² (JᵀJ)⁻¹ for squares, and their intervals are d ± t √C_dd with Student's t of m − k.
Source: P. J. Huber and E. M. Ronchetti, Robust Statistics, 2009, §7.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import t as student

from lissom.dynamics.configuration import checked_configuration
from lissom.errors import ConvergenceError, ModelError, ShapeError, keeping, renamed
from lissom.gradients.rollout import Rollout
from lissom.inverse.fit_residuals import (
    STARTS,
    Motions,
    ShapesAtRest,
    Trials,
    measured_points,
    numbers_of,
    times_among_steps,
)
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.statics.equilibrium import Equilibrium
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SEEN = 1e-9  # least singular value of J, of the largest, in units of the values
_ROUNDING = 1e-14  # slope by one value, of the largest: below that it is none


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Fit:
    """Design values that measurements tell.

    Fields:
        model: with the values found. values: by path, and by "q0" and "v0" where these are looked for. low, high: ends
        of their confidence intervals, which bounds do not cut off; of q0 as increments of `integrate`.
        covariance: of all numbers, one behind the other in the order of the paths, then of changes of q0 and of v0,
        (k, k).
        residuals: of positions, model less measured, (..., n, points, 3), NaN where nothing was measured [m].
        noise: their standard deviation, or what an efficient fit would make of as wide intervals where outliers count
        less [m].
        equilibrium: the robot at rest with these values, or motion: the robot moving with them; the other is None.
        iterations: evaluations of the derivatives.
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
    method: str | Scheme = "generalized_alpha",
    progress: bool = False,
) -> Fit:
    """Design values, such as moduli, damping, offsets or lengths, from measured positions, with intervals.

    The robot is at rest, or, where dt is given, moves as by `rollout`.

    Args:
        parameters: paths of design values (`Robot.described_values`), numbers or arrays of numbers; those of the model
            are the start. Of motions "q0" and "v0" too, where it is not known how they begin.
        u: inputs, known: of n measurements at rest, shape (n, nu); of a motion during each of its steps, (steps, nu),
            or of several, (motions, steps, nu).
        measured: positions in the world [m], of each link or frame by its name, or by (name, s) on a rod; NaN where
            there is none. Shape (n, 3), or (motions, n, 3). All are taken as equally noisy.
        bounds: (low, high) by path, numbers or of the value's shape; paths that are left out have none. Values that
            break a rule of the description are never taken.
        outlier: residual beyond which a measurement counts by its size and no longer by its square [m].
            None: all count by their squares.
        confidence: of the intervals, between 0 and 1.
        q0: start of the equilibria, shape (nq,) or (n, nq); or start of the motions, (nq,) or (motions, nq), None is
            the neutral configuration. v0: velocity there, (nv,) or (motions, nv); None is rest.
        dt: size of the steps of a motion [s]. t: when its n measurements were made, from 0 to the end of the steps
            [s]; None: at the start and after each step. method: of the steps, as of `rollout`.
        progress: show how far it is, where it takes longer than a second.
    Returns:
        Fit.
    Raises:
        ModelError: paths, bounds, points, too few measurements, or such as do not tell the values apart.
        ShapeError: the argument, the expected and the received shape. ConvergenceError: no equilibrium or motion at the
        start, or no least sum of squares. KeyboardInterrupt: Ctrl-C; its `partial` is the Fit of the best values so
        far, if these can be told apart, which takes their derivatives once more.
    Accuracy: derivatives as of equilibrium_derivatives and of Rollout.forward. Intervals are those of the linearisation
    at the values found: too narrow where residuals are not independent, and of no meaning for a value at its bound.
    """
    checks.require(0.0 < confidence < 1.0, "confidence", "must be > 0 and < 1", confidence)
    if outlier is not None:
        checks.number(outlier, "outlier", above=0.0)
    paths = tuple(parameters)
    checks.require(len(paths) > 0 and len(set(paths)) == len(paths), "parameters", "must be paths, each once", paths)
    if dt is None:
        task = _at_rest(model, paths, u, measured, bounds or {}, {"q0": q0, "v0": v0, "t": t})
    else:
        task = _moving(model, paths, u, measured, bounds or {}, {"q0": q0, "v0": v0, "t": t}, dt, method)
    trials = Trials(task)
    with keeping(lambda: _best_fit(trials, outlier, confidence)):
        trials.at(task.start)  # an error here is the caller's
        rule = f"must be more numbers than the {len(task.start)} values"
        checks.require(task.measured.count > len(task.start), "measured", rule, task.measured.count)
        return _fit(trials, _best_values(trials, outlier, progress), outlier, confidence)


def _best_values(trials: Trials, outlier: float | None, progress: bool) -> np.ndarray:
    """Where residuals count least, by squares, then as the caller says: far away that has no curvature."""
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
            return np.where(sizes > _ROUNDING * sizes.max(), J, 0.0)  # a value that does nothing is left as it is

        for scale in (None,) if outlier is None else (None, outlier):
            trials.count_by(scale)
            options: dict[str, Any] = {"xtol": 1e-9, "ftol": 1e-13, "gtol": None, "f_scale": scale or 1.0}
            options |= {"loss": "soft_l1" if scale else "linear", "jac": slopes}
            found = least_squares(residual, values / units, bounds=(low / units, high / units), **options)
            if not found.success:
                name = trials.at(values)[0].name
                raise ConvergenceError(f"fit of robot {name!r}: no least sum of squares ({found.message})")
            values = found.x * units
    return values


def _best_fit(trials: Trials, outlier: float | None, confidence: float) -> Fit | None:
    """The fit of the best values that were tried, if it says anything."""
    try:
        return None if trials.best is None else _fit(trials, trials.best, outlier, confidence)
    except (ModelError, ConvergenceError):
        return None


def _at_rest(
    model: Model, paths: tuple[str, ...], u: Any, measured: Any, bounds: Mapping[str, Any], begin: dict[str, Any]
) -> ShapesAtRest:
    """The task of shapes at rest."""
    for name in ("v0", "t"):
        if begin[name] is not None:
            raise ModelError(f"{name}: must be given with dt, of a motion (got no dt)")
    inputs = stack("u", u, model.nu)
    if inputs.ndim != 2:
        raise ShapeError(f"u: expected shape (n, {model.nu}), got {inputs.shape}")
    numbers = numbers_of(model, paths, bounds)
    return ShapesAtRest(model, numbers, inputs, measured_points(measured, (len(inputs),)), begin["q0"])


def _moving(
    model: Model, paths: tuple[str, ...], u: Any, measured: Any, bounds: Mapping[str, Any], begin: dict[str, Any],
    dt: float, method: str | Scheme,
) -> Motions:  # fmt: skip
    """The task of measured motions."""
    checks.number(dt, "dt", above=0.0)
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
        rule = "must be known where the robot has loops, whose starts are not free"
        raise ModelError(f"robot {model.name!r} > {unknown[0]}: {rule} (got it among the parameters)")
    points = measured_points(measured, (*lead, len(times)))
    flat = inputs.reshape(-1, steps, model.nu)
    states = []
    for name, size in (("q0", model.nq), ("v0", model.nv)):
        none = model.neutral() if name == "q0" else np.zeros(model.nv)
        given = none if begin[name] is None else stack(name, begin[name], size)
        if given.shape not in ((size,), (*lead, size)):
            raise ShapeError(f"{name}: expected shape {(*lead, size)}, got {given.shape}")
        states.append(np.broadcast_to(given, (len(flat), size)))
    measured = type(points)(points.points, points.positions.reshape(len(flat), *points.positions.shape[-3:]))
    numbers = numbers_of(model, tuple(path for path in paths if path not in STARTS), bounds)
    q0, v0 = checked_configuration(model, "q0", states[0]), states[1]
    options = {"dt": dt, "method": method}
    return Motions(model, numbers, flat, lead, measured, times_among_steps(times, dt, steps), q0, v0, unknown, options)


def _fit(trials: Trials, values: np.ndarray, outlier: float | None, confidence: float) -> Fit:
    """Values with their intervals by (1)."""
    task, iterations = trials.task, trials.derivatives
    units = task.units
    J, r = trials.slopes(values) * units, trials.residual(values)
    sizes = np.linalg.svd(J, compute_uv=False)
    if sizes[-1] <= _SEEN * sizes[0]:
        rule = "measured positions must tell the values apart; leave one out, or measure under other inputs"
        raise ModelError(f"{', '.join(task.names)}: {rule} (got singular values {sizes!r})")
    bend = np.ones_like(r) if outlier is None else 1.0 / np.sqrt(1.0 + (r / outlier) ** 2)
    psi, slope = bend * r, bend**3
    freedom = len(r) - len(values)
    share = float(np.sum(psi**2)) / freedom / np.mean(slope) ** 2
    covariance = share * np.linalg.inv(J.T @ J) * np.outer(units, units)  # (1)
    reach = float(student.ppf(0.5 + 0.5 * confidence, freedom)) * np.sqrt(np.diag(covariance))
    residuals = np.full(task.measured.positions.shape, np.nan)
    residuals[task.measured.seen] = r
    model, done = trials.at(values)
    told, residuals = task.told(values, reach), task.shaped(residuals)
    return Fit(model, *told, covariance, residuals, float(np.sqrt(share)), *task.shown(done), iterations)
