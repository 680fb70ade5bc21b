"""Conversion of target points in space to references of actuation coordinates, by statics at samples.

    r(q, u) = ID(q, 0, 0) − B(q) u = 0,   x(q) = x_d(tₖ)                                                  (1)
    K δq − B δu = −r,   J δq = x_d − x    Newton's step, K = ∂r/∂q, J = ∂x/∂q                             (2)

(2) is solved as one system, because K is singular if inputs drive coordinates without stiffness. The solution is the
shortest step, in natural sizes of the coordinates and corresponding units of the inputs. A spline with a continuous
second derivative interpolates y(tₖ) = y(qₖ).

Source: Pustina 2025 §7.1, eq. (49), where a Cartesian regulator finds u.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.control.actuation_coordinates import coordinate_function, require_inputs
from lissom.dynamics.actuation import actuation_matrix
from lissom.dynamics.configuration import checked_configuration, integrate
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.dynamics.start import default_start
from lissom.errors import ConvergenceError, ModelError, StabilityWarning, renamed
from lissom.launch.workspace import require_finite_rows, stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.robot.functions import Tabulated
from lissom.statics.residual import tangent_stiffness

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LONGEST = 0.5  # longest step, in natural sizes of the coordinates
_ITERATIONS = 30
_SMALLEST = 1 / 256  # smallest fraction of the path between two samples


@final
@formatting.in_one_line
@dataclass(frozen=True)
class StaticReference:
    """Equilibria in which points of a robot are at their targets, and the path of actuation coordinates y through them.

    Fields:
        path: y as a function of time [m, m³, rad], an ls.Tabulated with a continuous second derivative. Use it between
            the first and the last sample.
        q: equilibria, shape (n, nq) [rad, m, or strain units].
        u: their inputs, shape (n, nu) [N, m, Pa or N·m, by actuator].
    """

    path: Tabulated
    q: np.ndarray
    u: np.ndarray


@renamed(u="u0", q="q0")
def static_reference(
    model: Model,
    t: ArrayLike,
    points: ArrayLike | Callable[[float], ArrayLike],
    frames: Sequence[str],
    *,
    u0: ArrayLike | None = None,
    q0: ArrayLike | None = None,
    tolerance: float = 1e-9,
    coordinates: Any = None,
) -> StaticReference:
    """Path of actuation coordinates y whose equilibria carry points of a robot along paths in space, for
    `partial_feedback_linearization`.

        ID(q, 0, 0) = B(q) u,   x(q) = x_d(tₖ)   for q and u at each sample

    Newton's method solves this for each sample, starting from the last sample, in several parts if the distance is
    large. If there are more inputs than necessary, inputs and shape change as little as possible. A slow robot passes
    through the points; a fast robot deviates because of the dynamics of its passive coordinates.

    Args:
        t: ascending times of at least four samples [s], shape (n,).
        points: target points x_d at these times, shape (n, k, 3) [m], or a function of t that returns (k, 3).
        frames: k names of links or frames whose origins (for rods, tips) move to the points.
        u0, q0: inputs (nu,), and a configuration near their equilibrium (nq,): start of the search for the first
            sample. None: zero, and `start_configuration`.
        tolerance: largest distance from a point [m].
        coordinates: function of q that returns y, with gradient B(q)ᵀ, for inputs that `actuation_coordinates` does not
            support.
    Returns:
        StaticReference.
    Raises:
        ModelError: more inputs than coordinates; an input without an actuation coordinate; unknown frames; or a robot
            with loops or prescribed motions.
        ShapeError: an argument has a wrong shape.
        ConvergenceError: no equilibrium reaches the points; the message gives the time and the remaining distance.
        StabilityWarning: passive coordinates are unstable at constant y, like an upright pendulum.
    Source: Pustina 2025 §7.1, eq. (49).
    """
    require_inputs(model)
    if model.n_multipliers:
        raise ModelError(f"static reference: needs a robot without loops and prescribed motions (got "
                         f"{model.n_multipliers} rows)")  # fmt: skip
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    times, targets = _samples(t, points, len(names))
    y = coordinate_function(model, coordinates)
    start = checked_configuration(model, "q0", default_start(model) if q0 is None else q0)
    state = start, stack("u0", np.zeros(model.nu) if u0 is None else u0, model.nu)
    require_finite_rows(u0=state[1])
    here = _positions(model, start, names)
    found = []
    for time, target in zip(times, targets):
        state = _along(model, state, here, target, names, time, tolerance)
        found.append(state)
        here = target
    rows, inputs = (np.array(part) for part in zip(*found))
    _warn_of_falling(model, times, rows, inputs)
    return StaticReference(Tabulated(times, np.array([y(row) for row in rows])), rows, inputs)


def _warn_of_falling(model: Model, times: np.ndarray, q: np.ndarray, u: np.ndarray) -> None:
    """Warn at the first sample where K of (2) is not positive definite on the motions N with constant y (BᵀN = 0)."""
    scale = model.dofs.scale
    for time, row, given in zip(times, q, u):
        left, size, _ = np.linalg.svd(scale[:, None] * actuation_matrix(model, row))
        N = left[:, int(np.count_nonzero(size > 1e-10 * size[0])) :]
        K = scale[:, None] * tangent_stiffness(model, row, given) * scale
        least = float(np.linalg.eigvalsh(N.T @ (0.5 * (K + K.T)) @ N).min(initial=np.inf))
        if least < -1e-9 * np.abs(K).max():
            text = f"points at t={time:g} s: unstable passive coordinates at fixed y (least stiffness {least:.3g} J)"
            warnings.warn(text, StabilityWarning, stacklevel=4)
            return


def _samples(t: Any, points: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and targets (n, 3k)."""
    times = checks.array(t, (-1,), "t", "must be a list of finite times")
    rising = len(times) >= 4 and bool((np.diff(times) > 0).all())
    checks.require(rising, "t", "must be at least four times that rise strictly", t)
    if callable(points):
        rows = np.array([checks.call(points, time, (k, 3), "points") for time in times.tolist()])
    else:
        rows = checks.array(points, (len(times), k, 3), "points", f"must be finite, of shape ({len(times)}, {k}, 3)")
    return times, rows.reshape(len(times), 3 * k)


def _positions(model: Model, q: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    return np.concatenate([frame_pose(model, q, name)[:3, 3] for name in names])


def _jacobian(model: Model, q: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """∂x/∂q in world axes, shape (3k, nv)."""
    return np.vstack([frame_pose(model, q, name)[:3, :3] @ frame_jacobian(model, q, name)[3:] for name in names])


def _along(
    model: Model,
    state: tuple[np.ndarray, np.ndarray],
    here: np.ndarray,
    target: np.ndarray,
    names: tuple[str, ...],
    time: float,
    tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(q, u) of (1) at a target, reached from a state whose points are near `here`, in parts if necessary."""
    done, part = 0.0, 1.0
    while done < 1.0:
        goal = min(1.0, done + part)
        found, away = _newton(model, state, here + goal * (target - here), names, tolerance)
        if found is not None:
            state, done, part = found, goal, 2.0 * part
        elif part < _SMALLEST:
            way = f"after {100 * done:.0f} % of the way from the sample before"
            rule = "no equilibrium reaches them"
            raise ConvergenceError(f"points at t={time:g} s: {rule} (got a distance of {away:.3g} m {way})")
        else:
            part = 0.5 * part
    return state


def _step(
    model: Model, q: np.ndarray, u: np.ndarray, B: np.ndarray, J: np.ndarray, r: np.ndarray, missing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """δq and δu of (2). They are not finite if the robot is folded."""
    scale, n = model.dofs.scale, model.nv
    K, B = scale[:, None] * tangent_stiffness(model, q, u) * scale, scale[:, None] * B
    stiff, reach = np.abs(K).max() or 1.0, np.abs(J * scale).max() or 1.0
    unit = np.linalg.norm(B, axis=0) / stiff
    unit = 1.0 / np.where(unit > 0.0, unit, 1.0)
    upper = np.hstack([K, -B * unit]) / stiff
    lower = np.hstack([J * scale / reach, np.zeros((len(J), model.nu))])
    matrix, wanted = np.vstack([upper, lower]), np.concatenate([-scale * r / stiff, missing / reach])
    if not (np.isfinite(matrix).all() and np.isfinite(wanted).all()):
        return np.full(n, np.nan), np.full(model.nu, np.nan)
    found = np.linalg.lstsq(matrix, wanted, rcond=1e-12)[0]
    return scale * found[:n], unit * found[n:]


def _newton(
    model: Model, state: tuple[np.ndarray, np.ndarray], x_d: np.ndarray, names: tuple[str, ...], tolerance: float
) -> tuple[tuple[np.ndarray, np.ndarray] | None, float]:
    """The solution (q, u) of (1) by Newton's method (None if it does not converge), and the distance from the points
    [m]."""
    (q, u), zero, scale = state, np.zeros(model.nv), model.dofs.scale
    away = np.inf
    for _ in range(_ITERATIONS):
        B, missing = actuation_matrix(model, q), x_d - _positions(model, q, names)
        r = inverse_dynamics(model, q, zero, zero) - B @ u
        step, change = _step(model, q, u, B, _jacobian(model, q, names), r, missing)
        size, away = float(np.abs(step / scale).max()), float(np.abs(missing).max())
        if not np.isfinite(size):
            break
        if size < 1e-9:
            return ((q, u), away) if away <= tolerance else (None, away)
        part = min(1.0, _LONGEST / size)
        q, u = integrate(model, q, part * step), u + part * change
    return None, away
