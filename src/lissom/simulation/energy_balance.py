"""The energy balance of a simulated motion. It checks all forces and the integrator together.

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

from lissom.dynamics.actuation import input_force
from lissom.dynamics.contacts import contact_powers
from lissom.dynamics.energy import energy
from lissom.dynamics.inverse_dynamics import external_force, inverse_dynamics
from lissom.errors import ShapeError
from lissom.launch.over_models import stacked
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import formatting
from lissom.simulation.trajectory import Trajectory

_AT_REST = 1e-9  # an exchange of energy below this fraction of the stored energies is rounding or tolerance


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


def energy_balance(model: Model | ModelBatch, trajectory: Trajectory) -> EnergyBalance:
    """Energies, work and dissipation along one motion, and the error of their balance.

    Args:
        model: the model that was simulated, with the anchors of its start if it had any.
        trajectory: one motion, or one motion of each model of a batch. Powers are integrated over its times, so these
            must resolve the motion, and follow all changes between sticking and sliding.
    Returns:
        EnergyBalance.
    Raises:
        ShapeError: the trajectory is a batch.
    Accuracy: error O(Δt⁴) of Simpson's rule with the trajectory's time steps Δt, where powers are smooth; none where
        all forces have a potential.
    """
    if isinstance(model, ModelBatch):
        return _of_models(model, trajectory)
    if trajectory.q.ndim != 2:
        raise ShapeError(f"trajectory: a balance is of one motion, got a batch of shape {trajectory.q.shape[:-2]}")
    t, q, v, u = trajectory.t, trajectory.q, trajectory.v, trajectory.u
    E = energy(model, q, v)
    work = _integral(t, _power(model, t, q, v, u, trajectory.multipliers))
    contact, lost = _contact_energies(model, t, q, v)
    made = _largest_rise(E.total + contact - work)
    dissipated = _integral(t, _damping_power(model, q, v)) + lost
    error = E.total - E.total[0] + contact - work + dissipated
    stored = E.kinetic, E.gravitational, E.elastic, contact
    exchanged = sum(float(np.ptp(part)) for part in (*stored, work)) + dissipated[-1]
    least = _AT_REST * sum(float(np.abs(part).max()) for part in stored)
    at_rest = bool(exchanged <= least)
    residual = float(np.abs(error).max() / max(exchanged, least)) if max(exchanged, least) > 0.0 else 0.0
    return EnergyBalance(*stored, work, dissipated, lost, made, error, residual, at_rest)


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
    power = _power(model, t, q, v, u, multipliers)
    if after is None:
        work = _integral(t, power)
    else:
        left = _power(model, t, q, v, after, multipliers)
        work = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (left[:-1] + power[1:]))])
    return _largest_rise(energy(model, q, v).total + _contact_energies(model, t, q, v)[0] - work)


def _largest_rise(x: np.ndarray) -> float:
    """The largest increase of x (n,) from one entry to a later one."""
    return float(np.max(x - np.minimum.accumulate(x), initial=0.0))


def _power(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray, multipliers: np.ndarray
) -> np.ndarray:
    """Power of inputs, loads and prescribed motions [W], shape (n,)."""
    force = input_force(model, q, v, u, t)
    force[:, model.prescribed.dof] += multipliers[:, : model.n_motions]  # loops do no work
    power = np.einsum("ti,ti->t", force, v)
    if model.n_load_rows:
        pushes = [external_force(model, *state, gravity=False, t=time) for *state, time in zip(q, v, t)]
        power += np.einsum("ti,ti->t", np.array(pushes), v)
        power -= contact_powers(model, q, v, follows=False).whole  # contacts are counted apart
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
        rows = {name: getattr(trajectory, name)[k] for name in ("q", "v", "a", "u", "multipliers", "z")}
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
