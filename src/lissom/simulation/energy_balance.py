"""The energy balance of a simulated motion. It checks all forces and the integrator together.

Powers are integrated by the three-point Gauss rule between the times of the trajectory. The states there are those of
Hermite's polynomials through q, v and a at both times. Steps of an integrator are close enough for it, although the
powers at their ends alone would not be. Simpson's rule for these powers counts where it is estimated to be better, as
between distant times, and with contacts, whose forces begin and end between the times. Integrals over every second time
give the estimate.

Contacts store energy in their springs. That of the spring of friction and of the depth of a ball is known exactly, that
of the pressure of a surface is the integral of its power. With the power P of all contact forces, E their stored energy
and d the power of their dampers, contacts dissipate

    ΔD = ∫ d dt while all anchors stay,   ΔD = −ΔE − ∫ P dt if one follows                                 (1)

from one time to the next. The anchors are not part of a trajectory. They are computed from time to time, as in the
motion, from those of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.interpolate import CubicSpline

from lissom.dynamics.actuation import elastic_tendons, input_force
from lissom.dynamics.contacts import contact_powers
from lissom.dynamics.energy import energy
from lissom.dynamics.inverse_dynamics import external_force, inverse_dynamics
from lissom.errors import ShapeError
from lissom.launch.over_models import stacked
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import formatting
from lissom.simulation.implicit_methods import between
from lissom.simulation.trajectory import Trajectory

_AT_REST = 1e-9  # an exchange of energy below this fraction of the stored energies is rounding or tolerance
_GAUSS = np.polynomial.legendre.leggauss(3)  # points in [-1, 1] and weights of the rule between two times
_SHRINKS = 15.0  # distance from the integrals over every second time, divided by their error, of rules of order 4
_ARRAYS = ("t", "q", "v", "a", "u", "multipliers", "z")  # of a trajectory
_STEPS = 4096  # steps whose powers are computed at once
_OVERLAP = 8  # times before and after them that splines of inputs use


@final
@formatting.in_one_line
@dataclass(frozen=True)
class EnergyBalance:
    """E(t) − E(0) = work of inputs, loads and prescribed motions − dissipation. Arrays have shape (n,) [J], at the
    times of the trajectory.

    Fields:
        kinetic, gravitational, elastic: energies.
        contact: energy stored in the springs of contacts, of their depth and of friction, since the start.
        work: work of inputs, loads and motions. The energy stored in an elastic tendon counts as (recoverable) work of
            its input.
        dissipated: energy dissipated by damping and friction.
        dissipated_in_contacts: the part of it that friction and damping of contacts dissipate.
        made: energy that the steps made [J]: the largest rise of E + contact − work. It is 0 for exact motions.
        error: left side minus right side.
        residual: largest |error| divided by the exchanged energy [-]. The divisor is at least 1e-9 of the stored
            energies.
        is_at_rest: True if the exchanged energy is below 1e-9 of the stored energies.
        quadrature: estimate of the part of `residual` that the distance of the times causes [-]. If it is as large as
            `residual`, the motion may be better than its balance says: take closer times.
    """

    kinetic: np.ndarray
    gravitational: np.ndarray
    elastic: np.ndarray
    contact: np.ndarray
    work: np.ndarray
    dissipated: np.ndarray
    dissipated_in_contacts: np.ndarray
    made: float
    error: np.ndarray
    residual: float
    is_at_rest: bool = False
    quadrature: float = 0.0


def energy_balance(model: Model | ModelBatch, trajectory: Trajectory) -> EnergyBalance:
    """Energies, work and dissipation along one motion, and the error of their balance.

    Args:
        model: the model that was simulated, with the anchors of its start if it had any.
        trajectory: one motion, or one motion of each model of a batch. Powers are integrated over its times, so these
            must resolve the motion, as the steps of a method do, and follow all changes between sticking and sliding.
    Returns:
        EnergyBalance.
    Raises:
        ShapeError: the trajectory is a batch.
    Accuracy: error O(Δt⁴) in the trajectory's time steps Δt, where powers are smooth, estimated by `quadrature`; none
        where all forces have a potential.
    """
    if isinstance(model, ModelBatch):
        return _of_models(model, trajectory)
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a balance is of one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    t, q, v = trajectory.t, trajectory.q, trajectory.v
    E, (contact, lost) = energy(model, q, v), _contact_energies(model, t, q, v)
    (work, damped), missed = _integrals(model, trajectory)
    made = _largest_rise(E.total + contact - work)
    if len(model.spools.channel):  # they may be taut for less than the times are apart
        made = energy_made(model, t, q, v, trajectory.u, trajectory.multipliers)
    dissipated = damped + lost
    error = E.total - E.total[0] + contact - work + dissipated
    stored = E.kinetic, E.gravitational, E.elastic, contact
    exchanged = sum(float(np.ptp(part)) for part in (*stored, work)) + dissipated[-1]
    least = _AT_REST * sum(float(np.abs(part).max()) for part in stored)
    size, at_rest = max(exchanged, least), bool(exchanged <= least)
    residual, quadrature = (float(x / size) if size > 0.0 else 0.0 for x in (np.abs(error).max(), missed))
    return EnergyBalance(*stored, work, dissipated, lost, made, error, residual, at_rest, quadrature)


def energy_made(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray, multipliers: np.ndarray | None = None,
    after: np.ndarray | None = None,
) -> float:  # fmt: skip
    """Energy that the steps of a motion made [J], as `EnergyBalance.made`.

    Args:
        t: times (n,). q, v: states (n, ...). u: inputs (n, nu), before they jump. multipliers: forces of prescribed
            motions first (n, ...); None: there are no such motions.
        after: inputs after they jump (n, nu); between two times they are constant then. None: they do not jump.
    """
    if not len(t):
        return 0.0
    multipliers = np.zeros((len(t), 0)) if multipliers is None else multipliers
    power = _power(model, t, q, v, u, multipliers, elastic=False)
    if after is None:
        work = _integral(t, power)
    else:
        left = _power(model, t, q, v, after, multipliers, elastic=False)
        work = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (left[:-1] + power[1:]))])
    stored = _contact_energies(model, t, q, v)[0]
    if len(model.spools.channel):
        tension, own = elastic_tendons(model, q, u)
        stored = stored + own
        work = work + _work_of_spools(model, q, u, after, tension, own)
    return _largest_rise(energy(model, q, v).total + stored - work)


def _work_of_spools(
    model: Model, q: np.ndarray, u: np.ndarray, after: np.ndarray | None, tension: np.ndarray, stored: np.ndarray
) -> np.ndarray:
    """Work of the lengths by which the inputs pull elastic tendons in, (n,): what they store where inputs jump, with
    `after` of `energy_made`, otherwise the integral of the tensions (n, n_elastic) over the inputs, by trapezoids."""
    if after is not None:
        steps = (elastic_tendons(model, q, after)[1] - stored)[:-1]
    else:
        pulled = u @ model.channels.gain[model.spools.channel].T
        steps = 0.5 * ((tension[1:] + tension[:-1]) * np.diff(pulled, axis=0)).sum(axis=1)
    return np.concatenate([[0.0], np.cumsum(steps)])


def _largest_rise(x: np.ndarray) -> float:
    """The largest increase of x (n,) from one entry to a later one."""
    return float(np.max(x - np.minimum.accumulate(x), initial=0.0))


def _integrals(model: Model, trajectory: Trajectory) -> tuple[np.ndarray, float]:
    """∫ power dt from the first time on, of inputs, loads and motions, and of damping, (2, n) [J], by the rule with the
    smaller estimated error, and this error [J]."""
    rows = np.union1d(np.arange(0, len(trajectory.t), 2), max(len(trajectory.t) - 1, 0))
    coarse = replace(trajectory, **{name: getattr(trajectory, name)[rows] for name in _ARRAYS})
    found: list[tuple[np.ndarray, float]] = []
    for rule in (_at_times, _between_times):
        fine, less = rule(model, trajectory), rule(model, coarse)
        if fine is not None and less is not None:
            apart = np.abs(less - fine[:, rows]).max(initial=0.0) if len(rows) > 2 else np.abs(fine).max(initial=0.0)
            found.append((fine, float(apart) / _SHRINKS))
    return min(found, key=lambda one: one[1])


def _at_times(model: Model, x: Trajectory) -> np.ndarray:
    """∫ power dt as in `_integrals`, by Simpson's rule from the powers at the times."""
    return np.array([_integral(x.t, power) for power in _powers(model, x.t, x.q, x.v, x.u, x.multipliers)])


def _between_times(model: Model, x: Trajectory) -> np.ndarray | None:
    """∫ power dt as in `_integrals`, by the Gauss rule between the times. None with contacts, and if a state between
    two times is impossible."""
    if len(model.contacts.pair):
        return None
    count = len(x.t)
    out = np.zeros((2, count))
    for first in range(0, count - 1, _STEPS):
        part = slice(first, min(first + _STEPS, count - 1))
        try:
            out[:, part.start + 1 : part.stop + 1] = _over_steps(model, x, part)
        except ShapeError:  # Hermite's polynomials overshoot between distant times: a rod turns by 2π
            return None
    return np.cumsum(out, axis=1)


def _over_steps(model: Model, x: Trajectory, part: slice) -> np.ndarray:
    """∫ power dt of inputs, loads and motions, and of damping, over the steps `part` of n times, (2, n_steps)."""
    rows = slice(part.start, part.stop + 1)
    t, h = x.t[rows], np.diff(x.t[rows])
    at = (t[:-1, None] + 0.5 * h[:, None] * (1.0 + _GAUSS[0])).ravel()
    q, v, _ = between(model, t, x.q[rows], x.v[rows], x.a[rows], at)
    u, force = _between_rows(x.t, x.u, part, at), _between_rows(x.t, x.multipliers, part, at)
    return np.array([0.5 * h * (power.reshape(len(h), -1) @ _GAUSS[1]) for power in _powers(model, at, q, v, u, force)])


def _between_rows(t: np.ndarray, x: np.ndarray, part: slice, at: np.ndarray) -> np.ndarray:
    """x (n, m) at the times `at` of the Gauss points of the steps `part`: by cubic splines, and constant in steps with
    equal ends, as inputs that are held have them."""
    if len(t) < 2 or not x.shape[1]:
        return np.zeros((len(at), x.shape[1]))
    near = slice(max(part.start - _OVERLAP, 0), part.stop + 1 + _OVERLAP)
    smooth = CubicSpline(t[near], x[near])(at).reshape(-1, len(_GAUSS[0]), x.shape[1])
    start, stop = x[part][:, None], x[part.start + 1 : part.stop + 1][:, None]
    return np.where(start == stop, start, smooth).reshape(len(at), -1)


def _powers(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Powers of inputs, loads and motions, and of damping, at states (n, ...) and times t (n,), (n,) each [W]."""
    return _power(model, t, q, v, u, multipliers), _damping_power(model, q, v)


def _power(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray, multipliers: np.ndarray, *,
    elastic: bool = True,
) -> np.ndarray:  # fmt: skip
    """Power of inputs, loads and motions as in `_powers`, with or without elastic tendons."""
    force = input_force(model, q, v, u, t, elastic=elastic)
    force[:, model.prescribed.dof] += multipliers[:, : model.n_motions]  # loops do no work
    power = np.einsum("ti,ti->t", force, v)
    if model.n_load_rows:
        pushes = [external_force(model, *state, gravity=False, t=time) for *state, time in zip(q, v, t.tolist())]
        power += np.einsum("ti,ti->t", np.array(pushes).reshape(v.shape), v)
        power -= contact_powers(model, q, v, follows=False).whole  # contacts are counted by _contact_energies
    return power


def _contact_energies(model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energy stored in contacts since the start, and energy dissipated by them, by (1), (n,)."""
    if not len(model.contacts.pair):
        return np.zeros(len(t)), np.zeros(len(t))
    powers = contact_powers(model, q, v, follows=True)
    pressed, damped, whole = (
        np.diff(_integral(t, power, powers.changes)) for power in (powers.pressing, powers.lost, powers.whole)
    )
    stored = powers.stored - powers.stored[0] - np.concatenate([[0.0], np.cumsum(pressed)])
    lost = np.where(powers.slides[1:], -np.diff(stored) - whole, damped)
    return stored, np.concatenate([[0.0], np.cumsum(lost)])


def _of_models(batch: ModelBatch, trajectory: Trajectory) -> EnergyBalance:
    """The balances of the motions of a batch of models, one motion after another."""
    if trajectory.q.ndim != 3 or len(trajectory.q) != len(batch):
        raise ShapeError(f"trajectory: expected one motion of each model, shape ({len(batch)},), "
                         f"got a batch of shape {trajectory.q.shape[:-2]}")  # fmt: skip
    found = []
    for k, model in enumerate(batch):
        rows = {name: getattr(trajectory, name)[k] for name in _ARRAYS[1:]}
        with model.temporary_buffers():
            found.append(energy_balance(model, replace(trajectory, **rows)))
    return stacked(batch, found)


def _damping_power(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Power dissipated by the damping of rods, joints, elastic couplings and springs between points [W], shape (n,)."""
    zero, quiet = np.zeros_like(v), {"gravity": False, "loads": False}
    forces = [
        inverse_dynamics(model, q, w, zero, elastic=on, **quiet) for w, on in ((v, True), (v, False), (zero, True))
    ]
    return np.einsum("ti,ti->t", forces[0] - forces[1] - forces[2], v)


def _integral(t: np.ndarray, power: np.ndarray, changes: np.ndarray | None = None) -> np.ndarray:
    """∫ power dt from the first time on, (n,), by Simpson's rule. Steps in which `changes` (n − 1,) is True have a
    kink: there the trapezoidal rule counts, and parabolas end."""
    steps = 0.5 * np.diff(t) * (power[1:] + power[:-1])
    ends = np.flatnonzero(changes) if changes is not None else np.zeros(0, dtype=int)
    for first, last in zip([0, *(ends + 1)], [*ends, len(t) - 1]):
        if last - first > 1:
            part = slice(first, last + 1)
            steps[first:last] = np.diff(cumulative_simpson(power[part], x=t[part], initial=0.0))
    return np.concatenate([[0.0], np.cumsum(steps)])
