"""Inputs that hold frames at their targets, found together with the configuration and the constraint forces.

A search along equilibria needs an equilibrium to begin with, and inputs that act there. A platform on cables has
neither: slack cables exert no force, however much they change. Therefore all unknowns are found at once, with the
tensions z of elastic tendons in place of the lengths u that are pulled in. Tensions are linear in the balance of forces
where each tendon counts as taut:

    r(q, z, λ) = ID(q, 0, 0) − f − B z − Aᵀ λ = 0,   c(q) = 0,   e(q) = 0                                 (1)
    P (δq; δλ) = (B z⁺ − B z − r; −c; e),   P = [K, −Aᵀ; A_q, 0; J, 0],   K = ∂r/∂q at constant z         (2)
    min |z⁺|²   with   N (B z⁺ − B z − r; −c; e) = 0,   low ≤ z⁺ ≤ high,   N P = 0                        (3)
    g u = z/k + L₀ − L(q),   K = ∂r/∂q at constant u − k b bᵀ,   b = −∂L/∂q,   g gain of the input        (4)

(3) are the conditions on the inputs that remain if q and λ are eliminated from (2): one for each number that the
targets fix, however many coordinates there are. If the targets fix all coordinates, they are the balance of forces at
the targets. Limits of u are limits of z by (4) at the present q. The steps (2) are shortened until |r|, |c| and |e|
decrease. At last |z⁺ − z|² takes the place of |z⁺|² in (3), which then has no more influence on the convergence.

Source: as `searches`; cables: A. Pott, Cable-Driven Parallel Robots, 2018, §3 (distributions of tensions).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import null_space

from lissom.dynamics.actuation import input_response, run_actuation
from lissom.dynamics.configuration import integrate
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.dynamics.linearization import steady_velocity
from lissom.errors import ModelError
from lissom.inverse.searches import (
    Bounds,
    InputLimits,
    InputSearch,
    begin_search,
    equilibria,
    least_within,
    search_coordinates,
    units_by_kind,
)
from lissom.inverse.targets import Targets
from lissom.model.model import Model
from lissom.robot import checks
from lissom.statics.blas_threads import one_thread
from lissom.statics.residual import residual_jacobian, static_residual
from lissom.statics.stability import link_of, unstable_modes

_LONGEST = 0.5  # longest step, in natural sizes of the coordinates
_LEAST_PART = 1 / 64  # smallest part of a step
_FREE_STEPS = 30  # steps in which |z⁺|² is least, before |z⁺ − z|² is
_CURVED = 0.1  # largest residual after a step along solutions of (1), relative to its length
_RANK = 1e-10  # relative size of singular values that count as zero
_SMALL = 1e-11  # residual of (1) at which it counts as solved
_SETTLED = 1e-9  # relative change of z that ends the search for the least z
_MET = 1e-7  # relative mismatch of (3) above which no z within the limits solves it
_SAME_PLACE = 1e-9  # relative force that inputs may leave if they are to hold a configuration as it is
_SLACK = 1e-6  # length that a tendon without tension is let out, relative to its slack length
_WITHIN = 1e-9  # relative rounding error of limits


@final
@dataclass(frozen=True)
class OwnTendons:
    """Elastic tendons with an input of their own, whose tensions are unknowns.

    Fields:
        input: their inputs (n,).
        channel, stiffness, slack: their channels, k [N/m] and L₀ [m].
        gain: g of (4).
    """

    input: np.ndarray
    channel: np.ndarray
    stiffness: np.ndarray
    slack: np.ndarray
    gain: np.ndarray

    @classmethod
    def of(cls, model: Model) -> OwnTendons:
        """Those of a model."""
        gain, spools = model.channels.gain, model.spools
        alone = ((gain != 0.0).sum(axis=0) == 1) & ~(model.inputs.joint_gain != 0.0).any(axis=0)
        for _, others in model.inputs.custom:
            alone &= ~(np.asarray(others) != 0.0).any(axis=0)
        rows = gain[spools.channel]
        at = np.flatnonzero((rows != 0.0).sum(axis=1) == 1)
        at = at[[bool(alone[np.argmax(rows[k] != 0.0)]) for k in at]] if len(at) else at
        column = np.argmax(rows[at] != 0.0, axis=1) if len(at) else np.zeros(0, dtype=int)
        return cls(column, spools.channel[at], spools.stiffness[at], spools.slack[at], rows[at, column])


def tension_limits(model: Model, tensions: object) -> tuple[np.ndarray, np.ndarray]:
    """Low and high limits (nu,) of z from a user's limits of tensions; infinite for inputs of other kinds.

    Raises:
        ModelError: the limits are no pair of numbers or arrays, or a tendon shares its input.
    """
    low, high = np.full(model.nu, -np.inf), np.full(model.nu, np.inf)
    own = OwnTendons.of(model)
    low[own.input] = 0.0
    if tensions is None:
        return low, high
    n = int(model.channels.is_tendon.sum())
    rule = f"must be a pair (low, high) of numbers or of shape ({n},) by tendon, 0 <= low <= high [N]"
    checks.require(isinstance(tensions, tuple | list | np.ndarray) and len(tensions) == 2, "tensions", rule, tensions)
    pair: tuple = tuple(tensions)  # type: ignore[arg-type]
    try:
        least, most = (np.broadcast_to(np.asarray(side, dtype=np.float64), (n,)) for side in pair)
    except (TypeError, ValueError):
        raise ModelError(f"tensions: {rule} (got {tensions!r})") from None
    checks.require(bool((least >= 0.0).all() and (least <= most).all()), "tensions", rule, tensions)
    gain = model.channels.gain
    for c, least_here, most_here in zip(np.flatnonzero(model.channels.is_tendon), least, most):
        (column,) = np.nonzero(gain[c])
        is_own = len(column) == 1 and (c not in model.spools.channel or c in own.channel)
        rule = "must have an input of its own where its tension has limits"
        checks.require(is_own, f"tensions: tendon {model.channels.names[c]!r}", rule, "a shared one")
        j = column[0]
        scale = 1.0 if c in own.channel else 1.0 / gain[c, j]
        sides = sorted((least_here * scale, most_here * scale))
        low[j], high[j] = max(low[j], sides[0]), min(high[j], sides[1])
    checks.require(bool((low <= high).all()), "tensions", "must allow a value of each input", tensions)
    return low, high


@final
@dataclass(frozen=True)
class _State:
    """A configuration (nq,), z (nu,) and constraint forces (n_rows,)."""

    q: np.ndarray
    z: np.ndarray
    force: np.ndarray


@final
@dataclass(frozen=True)
class _Support:
    """z (nu,) that balance a robot, and the generalised force that they leave, relative to the largest one."""

    z: np.ndarray
    missing: float


@final
@dataclass(frozen=True)
class Held:
    """Search by (1) to (4) for one set of targets.

    Fields:
        targets: targets of one row.
        limits: limits of u, and the units of z.
        low, high: limits of z by `tension_limits` (nu,).
        own: elastic tendons whose tensions are in z.
        t: time of loads [s].
    """

    model: Model
    targets: Targets
    limits: InputLimits
    low: np.ndarray
    high: np.ndarray
    own: OwnTendons
    t: float

    def found(self, q: np.ndarray, u: np.ndarray, force: np.ndarray, tolerance: float, most: int) -> InputSearch:
        """The end of the search from q (nq,), inputs u (nu,) and constraint forces (n_rows,), as one row."""
        state, count, left = self._search(_State(q, self.z(q, u), force), tolerance, most)
        if self.is_linear:
            least = self.supporting(state.q)[0]
            if least.missing <= _SAME_PLACE:  # all inputs that hold this configuration are known, at last
                state = _State(state.q, least.z, state.force)
        given = self.inputs(state)
        q, force, there, stable = equilibria(self.model, state.q[None], given[None], state.force[None], self.t)
        if not there[0]:
            q, force = state.q[None], state.force[None]
            if left <= _SMALL:  # solved, but Newton's method finds a robot that moves freely there
                there = np.array([True])
                stable = np.array([unstable_modes(self.model, q[0], given, self.t, force[0]) == 0])
        errors = self.targets.errors(self.model, q)
        numbers = errors, stable & there, np.array([count]), there, np.array([""], dtype=object)
        return InputSearch(q, given[None], force, *numbers)

    @property
    def is_linear(self) -> bool:
        """Whether the forces at a configuration are linear in z: no force of a user is another function of its inputs,
        and no elastic tendons share an input."""
        return self.model.nonlinear_input is None and len(self.own.input) == len(self.model.spools.channel)

    def units(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Units of z (nu,): the z that exerts a unit of generalised force, as the median over inputs of a kind."""
        size = np.abs(self.model.dofs.scale[:, None] * self._columns(q, u))[self._moving()].max(axis=0, initial=0.0)
        return units_by_kind(self.model, 1.0 / np.maximum(size, 1e-12 * size.max(initial=1e-300)))

    def z(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """z (nu,) of inputs u: tensions of elastic tendons, zero where they are slack."""
        z, own = u.copy(), self.own
        z[own.input] = np.maximum(0.0, own.stiffness * (own.gain * u[own.input] - self._missing(q)))
        return z

    def inputs(self, state: _State, loosened: float = _SLACK) -> np.ndarray:
        """u of (4). Tendons without tension are let out, as far as limits allow, so that they do not count as taut."""
        u, own = state.z.copy(), self.own
        tension = u[own.input]
        length = tension / own.stiffness + self._missing(state.q)
        u[own.input] = (length - np.where(tension > 0.0, 0.0, loosened * own.slack)) / own.gain
        return np.clip(u, self.limits.low, self.limits.high) if loosened else u

    def within(self, q: np.ndarray, u: np.ndarray) -> bool:
        """Whether inputs u at q satisfy all limits."""
        z = self.z(q, u)
        slack = _WITHIN * (1.0 + np.abs(z))
        return bool(((z >= self.low - slack) & (z <= self.high + slack)).all())

    def is_fixed(self, q: np.ndarray) -> bool:
        """Whether the targets fix all coordinates at q."""
        J = self.targets.jacobian(self.model, q[None], self.targets.errors(self.model, q[None]))[0]
        rows = J[self.targets.weights() > 0.0]
        if self.model.n_rows:
            w, _ = run_constraints(self.model, q)
            rows = np.vstack([rows, row_results(self.model, w, "A_q")])
        free = self._moving()
        return bool(np.linalg.matrix_rank((rows * self.model.dofs.scale)[:, free], tol=1e-9) == free.sum())

    def reached(self, q: np.ndarray) -> tuple[np.ndarray, bool]:
        """The configuration near q (nq,) with the frames nearest to their targets, and whether they are there."""
        every = np.full(self.model.nv, np.inf)
        bounds = Bounds(-every, every, self._moving())
        here = begin_search(self.model, self.targets, q[None], bounds)
        search_coordinates(self.model, self.targets, here, bounds, 1e-10, 100, lambda _: None)
        return here.q[0], bool(here.found(self.targets, 1e-9)[0])

    def supporting(self, q: np.ndarray) -> tuple[_Support, _Support, _Support]:
        """The least z that balance the robot at q without motion: within limits, above low limits, without limits."""
        model, none = self.model, _State(q, np.zeros(self.model.nu), np.zeros(self.model.n_rows))
        r, moving, S = self._residual(none), self._moving(), model.dofs.scale
        if r is None:
            failed = _Support(none.z, np.inf)
            return failed, failed, failed
        G = (S[:, None] * self._columns(q, self.inputs(none, 0.0)) * self.limits.unit)[moving]
        push = (S * r[: model.nv])[moving]
        if model.n_rows:
            w, lead = run_constraints(model, q)
            with one_thread(model.nv):
                N = null_space((row_results(model, w, "A", lead) * S)[:, moving], rcond=_RANK)
            push, G = N.T @ push, N.T @ G
        size, far = max(float(np.abs(push).max(initial=0.0)), 1e-300), np.full(model.nu, np.inf)
        found, bounds = [], self._bounds(q)
        for low, high in (bounds, (bounds[0], far), (-far, far)):
            z = self._least(G, push, low, high)
            found.append(_Support(z, float(np.abs(G @ (z / self.limits.unit) - push).max(initial=0.0)) / size))
        return found[0], found[1], found[2]

    def why_not(self, q: np.ndarray, u: np.ndarray, is_rest: bool, is_stable: bool, tolerance: float) -> str:
        """Why the frames are not held at their targets by a stable equilibrium with inputs u at q, and a cure."""
        away = float(self.targets.away(self.targets.errors(self.model, q[None]))[0])
        if away <= tolerance and is_rest and not is_stable:
            return (
                "the equilibrium at the targets is unstable under constant inputs: ask for larger tensions "
                "(tensions=), give lengths (elastic tendons, prescribed_equilibrium), or take stable=False"
            )
        ended = f"the search ended {away:.3g} rad or m off"
        if not self.is_fixed(q):
            return f"{ended}{self._at_limits(q, u)}: take more starts, another u0 or wider limits"
        at, there = self.reached(q)
        if not there:
            left = float(self.targets.away(self.targets.errors(self.model, at[None]))[0])
            return (
                f"no configuration near the result brings the frames to their targets ({left:.3g} rad or m are left): "
                "choose targets within reach, or another q0"
            )
        if not self.is_linear:
            return f"{ended}{self._at_limits(q, u)}: take more starts, another u0 or wider limits"
        within, above, without = self.supporting(at)
        if without.missing > _MET:
            k = int(np.argmax(np.abs(self._unbalanced(at, without.z))))
            return (
                f"no inputs, however large, balance the robot at the targets ({without.missing:.3g} of the largest "
                f"force is left, most on link {link_of(self.model, k)!r}): add an actuator that acts there"
            )
        if within.missing > _MET:
            return self._beyond(at, *((above.z, True) if above.missing <= _MET else (without.z, False)))
        return f"{ended}, though inputs within limits hold the targets: start nearer"

    def _unbalanced(self, q: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The generalised force (nv,) that z leaves at q, in natural sizes."""
        r = self._residual(_State(q, z, np.zeros(self.model.n_rows)))
        return np.zeros(self.model.nv) if r is None else self.model.dofs.scale * r[: self.model.nv]

    def _at_limits(self, q: np.ndarray, u: np.ndarray) -> str:
        """Names of the inputs that are at their limits."""
        z, (low, high) = self.z(q, u), self._bounds(q)
        slack = _WITHIN * (1.0 + np.abs(z))
        names = [name for name, at in zip(self.model.inputs.names, (z <= low + slack) | (z >= high - slack)) if at]
        return f", with {', '.join(map(repr, names[:4]))}{' and others' * (len(names) > 4)} at limits" if names else ""

    def _beyond(self, q: np.ndarray, z: np.ndarray, is_above: bool) -> str:
        """The text about limits that forbid to hold the targets: the input that exceeds its limits most, of the least z
        above low limits, or without any limits."""
        low, high = self._bounds(q)
        j = int(np.argmax(np.maximum(low - z, z - high) / self.limits.unit))
        name, is_tension = self.model.inputs.names[j], j in self.own.input
        what = f"a tension of {z[j]:.4g} N of {name!r}" if is_tension else f"{name!r} at {z[j]:.4g}"
        return (
            f"no inputs within the limits hold the targets: the least inputs {'above low' if is_above else 'without'} "
            f"limits take {what}, outside {low[j]:.4g} to {high[j]:.4g}: widen the limits, move the targets, or add an "
            f"actuator that {'helps' if is_above else 'pulls the other way'}"
        )

    def _missing(self, q: np.ndarray) -> np.ndarray:
        """L₀ − L(q) of the elastic tendons with inputs of their own."""
        if not len(self.own.input):
            return np.zeros(0)
        w, lead = run_actuation(self.model, q)
        length = w.result("length", lead, len(self.model.channels.names))
        return self.own.slack - length[self.own.channel]

    def _moving(self) -> np.ndarray:
        """Mask (nv,) of the coordinates without prescribed motion."""
        return ~np.isin(np.arange(self.model.nv), self.model.prescribed.dof)

    def _bounds(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Limits of z (nu,) at q: of tensions, and of inputs by (4)."""
        own, u = self.own, self.limits
        low, high = np.maximum(self.low, u.low), np.minimum(self.high, u.high)
        j = own.input
        sides = own.stiffness * (own.gain * np.array([u.low[j], u.high[j]]) - self._missing(q))
        least, most = np.minimum(*sides), np.maximum(np.maximum(*sides), 0.0)
        low[j], high[j] = np.maximum(self.low[j], least), np.minimum(self.high[j], most)
        return low, np.maximum(low, high)

    def _residual(self, state: _State) -> np.ndarray | None:
        """r and c of (1), shape (nv + n_rows,); None if a rod interval turns too far."""
        return static_residual(self.model, state.q, self.inputs(state, 0.0), self.t, 1.0, state.force)

    def _columns(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """B of (1), shape (nv, nu): forces per tension of the elastic tendons."""
        model, own = self.model, self.own
        B = input_response(model, q[None], steady_velocity(model)[None], u[None], self.t)[0]
        if len(own.input):
            w, lead = run_actuation(model, q)
            B[:, own.input] = w.result("B", lead, len(model.channels.names), model.nv)[own.channel].T
        return B

    def _least(self, G: np.ndarray, right: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The least z, in units, with G z = right within limits; G is for z in units."""
        unit = self.limits.unit
        size = float(np.abs(G).max(initial=0.0))
        scale = float(np.abs(right).max(initial=0.0)) / size if size else 0.0
        scale = scale or 1.0
        z = least_within(G[None], right[None] / scale, low[None] / unit / scale, high[None] / unit / scale)[0]
        return np.clip(scale * unit * z, low, high)

    def _distance(self, state: _State, stiff: float) -> float:
        """Largest of |r| in units of a stiffness, |c| and |e|; infinite if a rod interval turns too far."""
        rows = self._residual(state)
        if rows is None:
            return np.inf
        nv, e = self.model.nv, self.targets.errors(self.model, state.q[None])
        force = np.abs(self.model.dofs.scale * rows[:nv]).max(initial=0.0) / stiff
        away = float(self.targets.away(e * np.minimum(self.targets.weights(), 1.0))[0])
        return float(max(force, np.abs(rows[nv:]).max(initial=0.0), away))

    def _search(self, state: _State, tolerance: float, most: int) -> tuple[_State, int, float]:
        """The state after steps (2) until (1) is solved with the least z, or no step comes nearer; the number of steps,
        and the distance that is left."""
        stiff, here, count = 0.0, np.inf, 0
        for count in range(1, most + 1):
            is_free = count <= _FREE_STEPS
            step, own_stiff = self._step(state, is_free)
            if not stiff:
                stiff = own_stiff
                here = self._distance(state, stiff)
            size = float(np.abs(step.q).max(initial=0.0))
            part, goal = min(1.0, _LONGEST / max(size, 1e-300)), None
            while part >= _LEAST_PART:
                trial = _State(
                    integrate(self.model, state.q, part * step.q * self.model.dofs.scale),
                    state.z + part * step.z,
                    state.force + part * step.force,
                )
                there = self._distance(trial, stiff)
                if there <= max((1.0 - 1e-4 * part) * here, _CURVED * part * size * is_free, 0.01 * _SMALL):
                    goal = trial, there
                    break
                part *= 0.5
            if goal is None:
                return state, count, here
            change = float(np.abs(step.z / self.limits.unit).max(initial=0.0))
            all_of = float(np.abs(goal[0].z / self.limits.unit).max(initial=0.0))
            state, here = goal
            solved = here <= min(_SMALL, 0.1 * tolerance)
            if solved and part == 1.0 and (not is_free or change <= _SETTLED * all_of or count == _FREE_STEPS):
                return state, count, here
        return state, count, here

    def _step(self, state: _State, is_free: bool) -> tuple[_State, float]:
        """The step (2), with δq in natural sizes, and the unit of stiffness of its rows."""
        model, own, S = self.model, self.own, self.model.dofs.scale
        nv, q, u, moving = model.nv, state.q, self.inputs(state, 0.0), self._moving()
        r = self._residual(state)
        if r is None:
            raise ModelError("inverse kinematics by statics: q0 turns a rod interval by 2π or more; start nearer the "
                             "reference")  # fmt: skip
        K, A, A_q = residual_jacobian(model, q, u, self.t, 1.0, state.force)
        B, given = self._columns(q, u), input_response(model, q[None], steady_velocity(model)[None], u[None], self.t)[0]
        for j, k in zip(own.input, own.stiffness):  # (4), of the tendons that count as taut in K
            if given[:, j].any():
                K = K - k * np.outer(B[:, j], B[:, j])
        e = self.targets.errors(model, q[None])
        J, counted = self.targets.jacobian(model, q[None], e)[0], self.targets.weights() > 0.0
        K, A, A_q, J = S[:, None] * K * S, A * S, A_q * S, J[counted] * S
        unit, push = self.limits.unit, S * r[:nv]
        G = S[:, None] * B * unit
        stiff = max(np.abs(K).max(initial=0.0), np.abs(G @ (state.z / unit)).max(initial=0.0),
                    np.abs(push).max(initial=0.0), 1e-300)  # fmt: skip
        none = np.zeros((model.n_rows + len(J), model.n_rows))
        pull = np.abs(A).max(initial=0.0) or 1.0  # δλ in units of stiff / pull
        P = np.block([[K[np.ix_(moving, moving)] / stiff, -A[:, moving].T / pull],
                      [np.vstack([A_q, J])[:, moving], none]])  # fmt: skip
        G = np.vstack([G[moving] / stiff, np.zeros((len(none), model.nu))])
        right = np.concatenate([-push[moving] / stiff, -r[nv:], e[0, counted]]) - G @ (state.z / unit)
        with one_thread(len(P)):
            U, size, V = np.linalg.svd(P)
        rank = int((size > _RANK * size.max(initial=0.0)).sum())
        N = U[:, rank:].T
        low, high = self._bounds(q)
        x = np.zeros(model.nu) if is_free else state.z
        aim = -N @ right - N @ G @ (x / unit)
        z = x + self._least(N @ G, aim, low - x, high - x)
        X = V[:rank].T @ ((U[:, :rank].T @ (right + G @ (z / unit))) / size[:rank])
        move = np.zeros(nv)
        move[moving] = X[: moving.sum()]
        return _State(move, z - state.z, X[moving.sum() :] * stiff / pull), stiff
