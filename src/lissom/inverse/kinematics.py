"""Inverse kinematics: coordinates, or inputs at rest, that bring frames of a robot to their targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.assembly import prescribed_configuration
from lissom.dynamics.configuration import checked_configuration, integrate
from lissom.errors import ModelError, keeping
from lissom.inverse.searches import (
    Bounds,
    CoordinateSearch,
    InputLimits,
    InputSearch,
    begin_search,
    equilibria,
    response,
    search_coordinates,
    search_inputs,
)
from lissom.inverse.targets import Targets, read_limits, read_targets
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import batch_of, flat, leading, stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.statics.equilibrium import solve_statics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_WIDE = 2.0  # range of random starts, in units of the coordinates' natural sizes
_POOL = 4  # equilibria under random inputs for each further start; searches begin at the nearest


@final
@formatting.in_one_line
@dataclass(frozen=True)
class InverseKinematics:
    """Configurations that bring frames to their targets.

    Fields:
        q: (..., nq). converged: whether all frames are at their targets within the tolerance (...). If not, q is the
            nearest that was found. residual: remaining error of each target, in their order, (..., m): the displacement
            in world axes [m], for poses after the rotation vector [rad]. iterations: steps of all searches (...).
        u: the inputs under which q is an equilibrium, (..., nu). multipliers: forces of loops there, (..., n_rows).
            is_stable: whether it is stable (...). All three are None by coordinates.
        optimality: largest entry of the gradient of ½ Σ w² |e|², projected on the moves that limits and loops admit,
            for coordinates in units of their natural sizes (`model.dofs.scale`); zero at an optimum (...). active: −1
            for coordinates at their low limits, 1 at their high limits, else 0 (..., nv). Both are None by statics.
    """

    q: np.ndarray
    converged: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    u: np.ndarray | None = None
    multipliers: np.ndarray | None = None
    is_stable: np.ndarray | None = None
    optimality: np.ndarray | None = None
    active: np.ndarray | None = None


def inverse_kinematics(
    model: Model,
    targets: Any,
    *,
    by: str = "coordinates",
    weights: ArrayLike | None = None,
    limits: tuple[ArrayLike, ArrayLike] | None = None,
    q0: ArrayLike | None = None,
    u0: ArrayLike | None = None,
    starts: int = 1,
    tolerance: float = 1e-9,
    max_iterations: int = 100,
    seed: int = 0,
    t: float = 0.0,
    progress: bool = False,
) -> InverseKinematics:
    """Configurations of a robot, or inputs and their equilibria, that bring frames to their targets.

        by="coordinates":   min over q of Σ w² |e(q)|²,   low ≤ q ≤ high,   loops closed
        by="statics":       min over u of |u|²   with   e(q) = 0,   ID(q, 0, 0) = B(q) u + Aᵀ λ,   low ≤ u ≤ high

    Coordinates are found by bounded least squares with exact Jacobians. Motions that the targets leave free stay near
    the start. If targets are out of reach, the search ends at an optimum. Inputs are followed along stable equilibria,
    by exact derivatives of these. Of several solutions the one of least inputs is found. Leading axes of targets and
    starts are solved as a batch.

    Args:
        targets: by name of a frame or link (the tip of a rod), or by (name, s): positions (..., 3) [m] or poses
            (..., 4, 4), in the world.
        by: "coordinates", or "statics" for soft robots and others whose inputs do not set the coordinates.
        weights: by the same names, numbers or pairs (of position [1/m], of rotation [1/rad]). They matter if not all
            targets can be met. Zero ignores an error. None is 1.
        limits: (low, high) of the coordinates in the order of v, or of the inputs; numbers or arrays, infinite for no
            limit. None: the `limits` of joints, or inputs of tendons >= 0.
        q0: start (..., nq); None is the neutral configuration. By statics, near an equilibrium under u0.
        u0: by statics, inputs of the start (..., nu); None is zero, within the limits.
        starts: largest number of starts: after a failed search from q0, random ones. The best result is returned.
        tolerance: largest remaining error [m, rad].
        max_iterations: of each search.
        seed: of random starts.
        t: time of loads and prescribed motions, which count as constant [s].
        progress: show the number of reached targets if the search takes longer than a second.
    Returns:
        InverseKinematics. Targets out of reach raise no error: check `converged`.
    Raises:
        ModelError: an unknown frame, wrong weights or limits, and by statics a robot without inputs or with contacts
        that stick. ShapeError: the argument, the expected and the received shape. KeyboardInterrupt: Ctrl-C; its
        `partial` is the InverseKinematics of the best results so far, if the searches have begun.
    Accuracy: `tolerance`. By statics, inputs are least up to a last step that moves the robot by 1e-5, in units of a
        rod's end rotation [rad] and stretch [-]. If 60 steps do not find them, other inputs that bring the frames to
        their targets are returned.
    """
    checks.require(checks.among(by, ("coordinates", "statics")), "by", "must be 'coordinates' or 'statics'", by)
    checks.number(tolerance, "tolerance", above=0.0)
    checks.time(t)
    starts = checks.integer(starts, "starts", least=1)
    most = checks.integer(max_iterations, "max_iterations", least=1)
    start = model.neutral() if q0 is None else checked_configuration(model, "q0", q0)
    wanted, lead = read_targets(model, targets, weights)
    axes = {"targets": np.empty((*lead, 0)), "q0": start}
    if by == "statics":
        axes["u0"] = stack("u0", np.zeros(model.nu) if u0 is None else u0, model.nu)
    elif u0 is not None:
        raise ModelError(f"u0: is for by='statics' (got by={by!r})")
    lead = leading(**axes)
    n = batch_of(lead)
    wanted, q = wanted.flat(lead), flat(start, lead)
    random = np.random.default_rng(seed)
    if by == "coordinates":
        bounds = Bounds(*read_limits(limits, *_joint_limits(model)), _moving(model))
        q = prescribed_configuration(model, q, t)
        best = begin_search(model, wanted, q, bounds)

        def nearest() -> InverseKinematics:
            shapes = (best.q, best.found(wanted, tolerance), best.errors, best.iterations)
            shapes = [x.reshape(lead + x.shape[1:]) for x in shapes]
            active = bounds.active(model, best.q).reshape(*lead, model.nv)
            return InverseKinematics(*shapes, optimality=best.optimality.reshape(lead), active=active)

        with progress_bar(progress, n, "inverse kinematics", "targets", PATIENCE) as report, keeping(nearest):
            _by_coordinates(model, wanted, best, q, bounds, starts, random, tolerance, most, report)
        return nearest()
    _require_equilibria(model)
    low, high = read_limits(limits, *_input_limits(model))
    reach: InputSearch | None = None

    def reached(at: InputSearch) -> InverseKinematics:
        converged = (wanted.away(at.errors) <= tolerance) & at.stable
        parts = (at.q, converged, at.errors, at.iterations, at.u, at.force, at.stable)
        return InverseKinematics(*(x.reshape(lead + x.shape[1:]) for x in parts))

    with (
        progress_bar(progress, n, "inverse kinematics", "targets", PATIENCE) as report,
        keeping(lambda: None if reach is None else reached(reach)),
    ):
        reach = _first_equilibria(model, wanted, start, np.clip(axes["u0"], low, high), lead, t)
        _by_statics(model, wanted, reach, low, high, starts, random, tolerance, most, t, report)
    return reached(reach)


def _joint_limits(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the joints, infinite for the other coordinates, (nv,) each."""
    low, high = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
    for link, first in zip(model.description.links.values(), model.links.v_start):
        if link.joint.limits is not None:
            at = slice(int(first), int(first) + link.joint.nv)
            low[at], high[at] = link.joint.limits
    return low, high


def _moving(model: Model) -> np.ndarray:
    """Mask (nv,) of the coordinates without prescribed motion."""
    return ~np.isin(np.arange(model.nv), model.prescribed.dof)


def _input_limits(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Limits (nu,) that let inputs of tendons pull only. Elastic tendons need none, since they become slack."""
    pulls = model.channels.is_tendon.copy()
    pulls[model.spools.channel] = False
    gain = model.channels.gain[pulls]
    pull, push = (gain > 0.0).any(axis=0), (gain < 0.0).any(axis=0)
    return np.where(pull & ~push, 0.0, -np.inf), np.where(push & ~pull, 0.0, np.inf)


def _require_equilibria(model: Model) -> None:
    """Raise ModelError if the equilibria do not depend on inputs, or not on these alone."""
    checks.require(model.nu > 0, "inverse kinematics by statics", "needs an actuator", model.nu)
    rule = "needs contacts that do not stick, since their anchors depend on the path"
    checks.require(not model.contacts.sticks, "inverse kinematics by statics", rule, "friction that sticks")


def _by_coordinates(
    model: Model, targets: Targets, best: CoordinateSearch, q: np.ndarray, bounds: Bounds, starts: int,
    random: np.random.Generator, tolerance: float, most: int, report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue the searches in `best`, and try random starts for those that fail: within the limits, or near q (n, nq)
    for coordinates without limits. `best` is updated with the best results."""
    weights = targets.weights()
    search_coordinates(model, targets, best, bounds, tolerance, most, report)
    for _ in range(starts - 1):
        rows = np.flatnonzero(~best.found(targets, tolerance))
        if not len(rows):
            break
        step = _WIDE * random.uniform(-1.0, 1.0, (len(rows), model.nv)) * model.dofs.scale * bounds.moves
        closed = np.isfinite(bounds.low) & np.isfinite(bounds.high)
        other = integrate(model, q[rows], step)
        plain = np.flatnonzero(closed & bounds.moves & (model.dofs.q >= 0))
        other[:, model.dofs.q[plain]] = random.uniform(bounds.low[plain], bounds.high[plain], (len(rows), len(plain)))
        end = begin_search(model, targets.of(rows), other, bounds)
        shifted = _shifted(report, len(q) - len(rows))
        search_coordinates(model, targets.of(rows), end, bounds, tolerance, most, shifted)
        best.iterations[rows] += end.iterations
        best.take(rows, end, end.cost(weights) < best.rows(rows).cost(weights))


def _shifted(report: Callable[[float], None], before: int) -> Callable[[float], None]:
    """`report` with the number of earlier results added."""
    return lambda done: report(before + done)


def _first_equilibria(
    model: Model, targets: Targets, q: np.ndarray, u: np.ndarray, lead: tuple[int, ...], t: float
) -> InputSearch:
    """Equilibria at the start. Equal starts are solved once."""
    found = solve_statics(model, u=u, q0=q, v=np.zeros(model.nv), t=t)
    force = found.multipliers[..., model.n_motions - model.prescribed.n_locked :]
    rows = [flat(x, lead).copy() for x in (found.q, found.u, force)]
    stable = np.broadcast_to(found.is_stable, lead).reshape(-1).copy()
    n = batch_of(lead)
    errors = targets.errors(model, rows[0]) if n else np.zeros((0, len(targets.weights())))
    return InputSearch(rows[0], rows[1], rows[2], errors, stable, np.zeros(n, dtype=int))


def _by_statics(
    model: Model, targets: Targets, best: InputSearch, low: np.ndarray, high: np.ndarray, starts: int,
    random: np.random.Generator, tolerance: float, most: int, t: float, report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue the searches in `best`, and try equilibria under random inputs as starts for those that fail, the
    nearest first. `best` is updated with the best results."""
    n = len(best.q)
    if not n:
        return
    limits, weights = InputLimits(low, high, _input_units(model, best, t)), targets.weights()
    origin = best.rows(np.arange(1))
    search_inputs(model, targets, best, limits, t, tolerance, most, report)
    pool: InputSearch | None = None
    for attempt in range(starts - 1):
        rows = np.flatnonzero(~((targets.away(best.errors) <= tolerance) & best.stable))
        if not len(rows):
            break
        pool = _pool(model, origin, limits, _POOL * starts, random, t) if pool is None else pool
        if attempt >= len(pool.q):
            break
        end = _nearest(model, targets.of(rows), pool, attempt)
        search_inputs(model, targets.of(rows), end, limits, t, tolerance, most, _shifted(report, n - len(rows)))
        best.iterations[rows] += end.iterations
        size, was = (np.abs(weights * x).max(1) + np.where(s, 0.0, np.inf)
                     for x, s in ((end.errors, end.stable), (best.errors[rows], best.stable[rows])))  # fmt: skip
        best.take(rows, end, size < was)


def _input_units(model: Model, first: InputSearch, t: float) -> np.ndarray:
    """Units of inputs, shape (nu,): the median, over the inputs of one kind, of the input that moves the robot by one
    unit."""
    S = np.abs(response(model, first.q[:1], first.u[:1], first.force[:1], t)[0] / model.dofs.scale[:, None])
    size = 1.0 / np.maximum(S.max(axis=0), 1e-12 * S.max(initial=1e-300))
    kinds = []
    for j in range(model.nu):
        owners = [a for a, gain in zip(model.channels.actuator, model.channels.gain[:, j]) if gain]
        kinds.append(tuple(sorted({f"{type(a).__name__} {getattr(a, 'is_elastic', '')}" for a in owners})))
    return np.array([np.median([s for s, other in zip(size, kinds) if other == kind]) for kind in kinds])


def _pool(
    model: Model, origin: InputSearch, limits: InputLimits, count: int, random: np.random.Generator, t: float
) -> InputSearch:
    """Stable equilibria under random inputs within the limits."""
    low = np.where(np.isfinite(limits.low), limits.low, np.minimum(limits.high, 0.0) - 3.0 * limits.unit)
    high = np.where(np.isfinite(limits.high), limits.high, np.maximum(low, 0.0) + 3.0 * limits.unit)
    u = random.uniform(low, high, (count, model.nu))
    q, force = (np.tile(x, (count, 1)) for x in (origin.q, origin.force))
    q, force, _, stable = equilibria(model, q, u, force, t)
    none = np.zeros(int(stable.sum()), dtype=int)
    return InputSearch(q[stable], u[stable], force[stable], np.zeros((len(none), 0)), stable[stable], none)


def _nearest(model: Model, targets: Targets, pool: InputSearch, rank: int) -> InputSearch:
    """For each target the equilibrium of the pool with the given rank by distance, 0 the nearest."""
    n, m = len(targets.items[0].position), len(pool.q)
    rows, columns = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    errors = targets.of(rows).errors(model, pool.q[columns]).reshape(n, m, -1)
    order = np.argsort(np.abs(targets.weights() * errors).max(2), axis=1)[:, rank]
    begin = pool.rows(order)
    begin.errors = errors[np.arange(n), order]
    return begin
