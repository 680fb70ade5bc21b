"""Inverse kinematics: coordinates, or inputs of equilibria, that bring frames of a robot to their targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.assembly import closed_start, prescribed_configuration
from lissom.dynamics.configuration import checked_configuration, integrate
from lissom.dynamics.start import default_start
from lissom.errors import ConvergenceError, StabilityWarning, keeping
from lissom.inverse.held_targets import Held, OwnTendons, tension_limits
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
    units_by_kind,
)
from lissom.inverse.targets import Targets, read_limits, read_targets
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import batch_of, flat, leading, stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.statics.equilibrium import solve_statics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_WIDE = 2.0  # range of random starts, in natural sizes of the coordinates
_POOL = 4  # number of equilibria under random inputs for each further start; searches begin at the nearest one


@final
@formatting.in_one_line
@dataclass(frozen=True)
class InverseKinematics:
    """Configurations that bring frames to their targets.

    Fields:
        q: configurations (..., nq) [rad, m, or strain units]. If not converged, the nearest one that was found.
        converged: True if all frames are at their targets within the tolerance (...).
        residual: remaining errors (..., m), in the order of the targets: the displacement in world axes [m]; for a pose
            the rotation vector [rad], then the displacement.
        iterations: number of steps of all searches (...).
        u: inputs under which q is an equilibrium (..., nu) [N, m, Pa or N·m, by actuator]; None for by="coordinates".
        multipliers: constraint forces λ at q (..., n_rows); None for by="coordinates".
        is_stable: whether the equilibrium is stable (...); None for by="coordinates".
        optimality: largest entry (...) of the gradient of ½ Σ w² |e|², projected on the directions that limits and
            loops allow, in natural sizes of the coordinates (`model.dofs.scale`). It is zero at an optimum. None for
            by="statics".
        active: −1 for coordinates at their low limits, 1 at their high limits, otherwise 0 (..., nv). None for
            by="statics".
        reason: why the search by="statics" did not converge, and what helps, as texts (...); empty where it converged.
            None for by="coordinates".
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
    reason: np.ndarray | None = None


def inverse_kinematics(
    model: Model,
    targets: Any,
    *,
    by: str = "coordinates",
    weights: ArrayLike | None = None,
    limits: tuple[ArrayLike, ArrayLike] | None = None,
    tensions: tuple[ArrayLike, ArrayLike] | None = None,
    stable: bool = True,
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

    Coordinates are found by bounded least squares with exact Jacobians. Motions that do not affect the targets stay
    near the start. If targets are out of reach, the search ends at an optimum. Inputs are followed along stable
    equilibria, with exact derivatives. If this fails, inputs, coordinates and constraint forces are searched together,
    as a platform on more cables than it needs requires. Of several solutions, the one with the least inputs is found;
    elastic tendons with inputs of their own count by their tensions. Leading axes of targets and starts form a batch.

    Args:
        targets: positions (..., 3) [m] or poses (..., 4, 4) in the world, by name of a frame or link (for a rod, its
            tip), or by (name, s).
        by: "coordinates"; or "statics" for robots whose inputs do not set the coordinates, such as soft robots.
        weights: weights w by the same names: numbers, or pairs (position [1/m], rotation [1/rad]). They matter only if
            not all targets can be met. Zero ignores an error. None is 1.
        limits: (low, high) of the coordinates in the order of v, or of the inputs; numbers or arrays, infinite for no
            limit. None: the `limits` of joints, or tensions >= 0 of tendons.
        tensions: (low, high) of the tensions of all tendons [N] for "statics", elastic ones too; numbers or arrays
            (n_tendons,) in the order added. A low limit above zero keeps all tendons taut. None: tensions >= 0.
        stable: True: the result for "statics" must be stable under constant inputs. False: it may be unstable, as under
            tensions that a controller holds.
        q0: start (..., nq) [rad, m, or strain units]; None is `start_configuration`. For "statics", it should be
            near an equilibrium under u0.
        u0: inputs of the start for "statics" (..., nu) [N, m, Pa or N·m, by actuator]; None is zero, clipped to the
            limits. If the robot has no equilibrium there, all its tendons begin taut, without tension.
        starts: largest number of starts. After a failed search from q0, random starts are tried. The best result is
            returned.
        tolerance: largest remaining error [m, rad].
        max_iterations: largest number of steps of each search.
        seed: seed of the random starts.
        t: time of loads and prescribed motions [s], which are held constant.
        progress: True shows the number of reached targets, if the search takes longer than one second.
    Returns:
        InverseKinematics. Targets out of reach cause no error: check `converged`, and `reason` for "statics".
    Raises:
        ModelError: an unknown frame; wrong weights, limits or tensions; for "statics" a robot without inputs, or with
            contacts that stick.
        ConvergenceError: the robot has no equilibrium under a given u0.
        ShapeError: an argument has a wrong shape.
        KeyboardInterrupt: Ctrl-C. Its attribute `partial` is the InverseKinematics of the best results so far, if the
            searches have begun.
    Accuracy: `tolerance`. For "statics" the inputs are least up to a last step that moves the robot by 1e-5, in units
    of a rod's end rotation [rad] and stretch [-]. If 60 steps do not find the least inputs, other inputs that bring the
    frames to their targets are returned.
    """
    model.require_positions("inverse_kinematics")
    checks.require(checks.among(by, ("coordinates", "statics")), "by", "must be 'coordinates' or 'statics'", by)
    checks.number(tolerance, "tolerance", above=0.0)
    checks.time(t)
    starts = checks.integer(starts, "starts", least=1)
    most = checks.integer(max_iterations, "max_iterations", least=1)
    start = default_start(model) if q0 is None else checked_configuration(model, "q0", q0)
    wanted, lead = read_targets(model, targets, weights)
    axes = {"targets": np.empty((*lead, 0)), "q0": start}
    if by == "statics":
        axes["u0"] = stack("u0", np.zeros(model.nu) if u0 is None else u0, model.nu)
    else:
        for name, value in (("u0", u0), ("tensions", tensions)):
            checks.require(value is None, name, "is for by='statics'", f"by={by!r}")
        checks.require(stable is True, "stable", "is for by='statics'", stable)
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
    limits_of_z = tension_limits(model, tensions)
    plain = ~np.isin(np.arange(model.nu), OwnTendons.of(model).input)
    low[plain], high[plain] = (
        np.maximum(low, limits_of_z[0])[plain],
        np.minimum(high, limits_of_z[1])[plain],
    )
    checks.require(bool((low <= high).all()), "tensions", "must leave a value within the limits", tensions)
    reach: InputSearch | None = None

    def reached(at: InputSearch) -> InverseKinematics:
        converged = (wanted.away(at.errors) <= tolerance) & (at.stable | (at.rest & (not stable)))
        why = np.where(converged, "", np.where(at.reason == "", "the search was interrupted", at.reason))
        parts = [at.q, converged, at.errors, at.iterations, at.u, at.force, at.stable, why]
        *parts, why = (x.reshape(lead + x.shape[1:]) for x in parts)
        return InverseKinematics(*parts, reason=why)

    search = _InputsOf(model, low, high, limits_of_z, random, tolerance, most, t, stable)
    with (
        progress_bar(progress, n, "inverse kinematics", "targets", PATIENCE) as report,
        keeping(lambda: None if reach is None else reached(reach)),
    ):
        reach = _first_equilibria(model, wanted, start, np.clip(axes["u0"], low, high), lead, t, u0 is not None)
        search.run(wanted, reach, starts, report)
    return reached(reach)


def _joint_limits(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Low and high limits of the joints, (nv,) each; infinite for other coordinates."""
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
    """Low and high limits of the inputs, (nu,) each, within which no tension is negative. Elastic tendons have no
    limits, because they become slack."""
    pulls = model.channels.is_tendon.copy()
    pulls[model.spools.channel] = False
    gain = model.channels.gain[pulls]
    pull, push = (gain > 0.0).any(axis=0), (gain < 0.0).any(axis=0)
    return np.where(pull & ~push, 0.0, -np.inf), np.where(push & ~pull, 0.0, np.inf)


def _require_equilibria(model: Model) -> None:
    """Raise ModelError unless the equilibria depend on inputs, and on nothing else."""
    checks.require(model.nu > 0, "inverse kinematics by statics", "needs an actuator", model.nu)
    rule = "needs contacts that do not stick, since their anchors depend on the path"
    checks.require(not model.contacts.sticks, "inverse kinematics by statics", rule, "friction that sticks")


def _by_coordinates(
    model: Model, targets: Targets, best: CoordinateSearch, q: np.ndarray, bounds: Bounds, starts: int,
    random: np.random.Generator, tolerance: float, most: int, report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue the searches in `best`. For searches that fail, try random starts: within the limits, or near q (n, nq)
    for coordinates without limits. `best` receives the best results."""
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
    """`report` with the number of earlier results added to its argument."""
    return lambda done: report(before + done)


def _first_equilibria(
    model: Model, targets: Targets, q: np.ndarray, u: np.ndarray, lead: tuple[int, ...], t: float, is_given: bool
) -> InputSearch:
    """Equilibria at the start. Equal starts are solved only once. Rows without an equilibrium stay where they are, if
    the inputs are not given."""
    try:
        with warnings.catch_warnings():
            if not is_given:
                warnings.simplefilter("ignore", StabilityWarning)  # of a start that nobody asked for
            found = solve_statics(model, u=u, q0=q, v=np.zeros(model.nv), t=t)
        force = found.multipliers[..., model.n_motions - model.prescribed.n_locked :]
        ends, stable, rest = (found.q, found.u, force), found.is_stable, np.array(True)
    except ConvergenceError:
        if is_given:
            raise
        at = [flat(x, leading(u=u, q0=q)) for x in (q, u)]
        at[0] = closed_start(model, prescribed_configuration(model, at[0], t))
        push = np.zeros((len(at[0]), model.n_rows))
        moved, pushed, rest, stable = equilibria(model, at[0], at[1], push, t)
        kept = rest[:, None]
        ends = (np.where(kept, moved, at[0]), at[1], np.where(kept, pushed, push))
        shape = leading(u=u, q0=q)
        ends = tuple(x.reshape(shape + x.shape[1:]) for x in ends)
        rest, stable = rest.reshape(shape), stable.reshape(shape)
    rows = [flat(x, lead).copy() for x in ends]
    masks = [np.broadcast_to(x, lead).reshape(-1).copy() for x in (stable, rest)]
    n = batch_of(lead)
    errors = targets.errors(model, rows[0]) if n else np.zeros((0, len(targets.weights())))
    reason = np.full(n, "", dtype=object)
    return InputSearch(rows[0], rows[1], rows[2], errors, masks[0], np.zeros(n, dtype=int), masks[1], reason)


@final
@dataclass(frozen=True)
class _InputsOf:
    """The searches for inputs of a call.

    Fields:
        low, high: limits of the inputs (nu,).
        limits_of_z: limits of tensions, as in Held.
        most: largest number of steps of each search.
        stable: whether equilibria must be stable.
    """

    model: Model
    low: np.ndarray
    high: np.ndarray
    limits_of_z: tuple[np.ndarray, np.ndarray]
    random: np.random.Generator
    tolerance: float
    most: int
    t: float
    stable: bool

    def run(self, targets: Targets, best: InputSearch, starts: int, report: Callable[[float], None]) -> None:
        """Continue the searches in `best`: along stable equilibria; then with all unknowns together; then from stable
        equilibria under random inputs, the nearest first. `best` receives the best results."""
        n, model = len(best.q), self.model
        if not n:
            return
        limits, first = InputLimits(self.low, self.high, np.ones(model.nu)), best.rows(np.arange(n))
        if best.stable.any():
            limits = replace(limits, unit=_input_units(model, best.rows(np.flatnonzero(best.stable)), self.t))
            search_inputs(model, targets, best, limits, self.t, self.tolerance, self.most, report)
        good = (targets.away(best.errors) <= self.tolerance) & (best.stable | (best.rest & (not self.stable)))
        elastic = len(OwnTendons.of(model).input) > 0
        held = {k: self._held(targets.of(np.array([k])), limits, best, k) for k in range(n) if elastic or not good[k]}
        for k, one in held.items():
            self._together(one, best, first, k)
        pool: InputSearch | None = None
        for attempt in range(starts - 1):
            rows = np.array([k for k, one in held.items() if not self._is_done(one, best, k)], dtype=int)
            if not len(rows):
                break
            if pool is None:
                pool = _pool(model, first.rows(np.arange(1)), limits, _POOL * starts, self.random, self.t)
            if attempt >= len(pool.q):
                break
            end = _nearest(model, targets.of(rows), pool, attempt)
            shifted = _shifted(report, n - len(rows))
            search_inputs(model, targets.of(rows), end, limits, self.t, self.tolerance, self.most, shifted)
            best.iterations[rows] += end.iterations
            better = [self._size(held[k], end, i) < self._size(held[k], best, k) for i, k in enumerate(rows)]
            best.take(rows, end, np.array(better))
        for k, one in held.items():
            if not self._is_done(one, best, k):
                best.reason[k] = one.why_not(best.q[k], best.u[k], best.rest[k], best.stable[k], self.tolerance)

    def _held(self, targets: Targets, limits: InputLimits, best: InputSearch, k: int) -> Held:
        own = OwnTendons.of(self.model)
        made = Held(self.model, targets, limits, *self.limits_of_z, own, self.t)
        return replace(made, limits=replace(limits, unit=made.units(best.q[k], best.u[k])))

    def _size(self, held: Held, at: InputSearch, k: int) -> float:
        """Weighted size of the errors of row k; infinite if it is not an equilibrium as asked for."""
        good = at.stable[k] or (at.rest[k] and not self.stable)
        return float(np.abs(held.targets.weights() * at.errors[k]).max()) if good else np.inf

    def _is_done(self, held: Held, at: InputSearch, k: int) -> bool:
        """Whether row k holds the frames at their targets within all limits."""
        good = at.stable[k] or (at.rest[k] and not self.stable)
        there = bool(held.targets.away(at.errors[k : k + 1])[0] <= self.tolerance)
        return bool(good) and there and held.within(at.q[k], at.u[k])

    def _together(self, held: Held, best: InputSearch, first: InputSearch, k: int) -> None:
        """Search all unknowns of row k together, if it is not done, or if its tensions may be larger than the least.
        Searches begin at the present end and, if the targets fix all coordinates, at the start and at the configuration
        with the frames at their targets. Where they do not, and no tendon is elastic, a search along stable equilibria
        ends where these do."""
        done, elastic = self._is_done(held, best, k), len(held.own.input) > 0
        fixed = not done and held.is_fixed(first.q[k])
        if done and not (elastic and self.model.nu > len(held.targets.weights())):
            return
        if not (done or fixed or elastic) and first.stable[k]:
            return
        starts = [(best.q[k], best.u[k], best.force[k])]
        if fixed:
            at, none = held.reached(first.q[k])[0], np.zeros(self.model.n_rows)
            starts = [(first.q[k], first.u[k], first.force[k]), (at, first.u[k], none), *starts]
        for q, u, force in starts:
            end = held.found(q, u, force, self.tolerance, self.most)
            best.iterations[k] += end.iterations[0]
            there = self._is_done(held, end, 0)
            if there or (not done and self._comes_nearer(held, end, best, k)):
                best.take(np.array([k]), end, np.array([True]))
            if there:
                return

    def _comes_nearer(self, held: Held, end: InputSearch, best: InputSearch, k: int) -> bool:
        """Whether an end that is not as asked for is still the better answer: an equilibrium within the limits at the
        targets that is unstable, in place of one that is not there."""
        there = bool(held.targets.away(end.errors)[0] <= self.tolerance) and bool(end.rest[0])
        return there and held.within(end.q[0], end.u[0]) and self._size(held, best, k) > self.tolerance


def _input_units(model: Model, first: InputSearch, t: float) -> np.ndarray:
    """Units of the inputs, shape (nu,): the input that moves the robot by one unit, as the median over inputs of the
    same kind."""
    S = np.abs(response(model, first.q[:1], first.u[:1], first.force[:1], t)[0] / model.dofs.scale[:, None])
    return units_by_kind(model, 1.0 / np.maximum(S.max(axis=0), 1e-12 * S.max(initial=1e-300)))


def _pool(
    model: Model, origin: InputSearch, limits: InputLimits, count: int, random: np.random.Generator, t: float
) -> InputSearch:
    """Stable equilibria under random inputs within the limits."""
    low = np.where(np.isfinite(limits.low), limits.low, np.minimum(limits.high, 0.0) - 3.0 * limits.unit)
    high = np.where(np.isfinite(limits.high), limits.high, np.maximum(low, 0.0) + 3.0 * limits.unit)
    u = random.uniform(low, high, (count, model.nu))
    q, force = (np.tile(x, (count, 1)) for x in (origin.q, origin.force))
    q, force, _, stable = equilibria(model, q, u, force, t)
    none, found = np.zeros(int(stable.sum()), dtype=int), stable[stable]
    reason = np.full(len(none), "", dtype=object)
    return InputSearch(q[stable], u[stable], force[stable], np.zeros((len(none), 0)), found, none, found, reason)


def _nearest(model: Model, targets: Targets, pool: InputSearch, rank: int) -> InputSearch:
    """For each target, the equilibrium of the pool with the given rank by distance (0 is the nearest)."""
    n, m = len(targets.items[0].position), len(pool.q)
    rows, columns = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    errors = targets.of(rows).errors(model, pool.q[columns]).reshape(n, m, -1)
    order = np.argsort(np.abs(targets.weights() * errors).max(2), axis=1)[:, rank]
    begin = pool.rows(order)
    begin.errors = errors[np.arange(n), order]
    return begin
