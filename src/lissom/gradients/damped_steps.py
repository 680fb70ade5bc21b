"""Steps that Newton's method finds with damping, where the iteration of the kernel, made to fail early, finds none.

A stage asks for the acceleration x, which moves q by Δ = p₀ x + k (recursion), and for forces λ of loops:

    F(x, λ) = (r − Aᵀ λ; e) = 0,   S (δx; δλ) = −F                                                        (1)

A change is halved until the next one by the same matrix is shorter, in natural units of Δ, or F smaller, in units of
the rows of S:

    |S⁻¹ F(x + s δx, λ + s δλ)| ≤ (1 − s/2) |δx|   or   |F(x + s δx, λ + s δλ)| ≤ (1 − ε s) |F(x, λ)|        (2)

The first is quick among stiff rods, the second where a stiff contact begins, which S knows nothing of. The robot that
stays where it is starts the iteration, since what then touches does so already, while one that goes on as before may be
deep inside an obstacle at the end of the step. Of several roots, which a step that is long for its motion has, that
finds the near one. Other starts, x = 0 and the x before, follow. The steps of many motions go together, in launches of
those that still iterate; each is the same as alone.
Source: P. Deuflhard, Newton Methods for Nonlinear Problems, 2004, section 3.3: the natural monotonicity test.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np

from lissom.dynamics.configuration import groups, integrate, over_groups
from lissom.dynamics.forward_dynamics import run_residual
from lissom.gradients.recursion import StageSystems
from lissom.gradients.stage_systems import StageStates, stage_weights, systems_of_states
from lissom.model.model import Model
from lissom.stepping.schemes import Scheme

_MOST_ITERATIONS = 60
_LEAST_PART = 2.0**-12  # of a change
_GAIN = 1e-4  # ε of (2)
_SHARE = 1e-2  # of the tolerance that a change may have
_ROUNDING = 1e-12  # changes of Δ of this size may be rounding, in natural units,
_SLOW = 0.5  # where they fall no faster


@final
@dataclass(frozen=True)
class DampedSteps:
    """The ends of n steps as in StepState, and Δ, its rate and a of the stages before the last, (n, stages − 1, 3, nv);
    which were found, (n,), and how many iterations all took."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    ahead: np.ndarray
    force: np.ndarray
    left: np.ndarray
    found: np.ndarray
    iterations: int


@final
@dataclass(frozen=True)
class _Stage:
    """One stage of n steps: from q and anchors, with k of Δ, of its rate and of â, (3, n, nv), and the weights of x in
    these; prescribed coordinates, their rates and accelerations at its ends, (3, n, ...)."""

    model: Model
    q: np.ndarray
    anchors: np.ndarray
    u: np.ndarray
    t: np.ndarray
    known: np.ndarray
    onto: np.ndarray
    held: np.ndarray
    rates: bool

    def some(self, rows: np.ndarray) -> _Stage:
        """The same of some of the steps."""
        own = {name: getattr(self, name)[rows] for name in ("q", "anchors", "u", "t")}
        return replace(self, **own, known=self.known[:, rows], held=self.held[:, rows])

    def move(self, x: np.ndarray) -> np.ndarray:
        """Δ."""
        out, dof = self.known[0] + self.onto[0] * x, self.model.prescribed.dof
        out[:, dof] = self.held[0] - self.q[:, self.model.dofs.q[dof]]
        return out

    def rate(self, x: np.ndarray) -> np.ndarray:
        """The rate of Δ."""
        out = self.known[1] + self.onto[1] * x
        out[:, self.model.prescribed.dof] = self.held[1]
        return out

    def state(self, x: np.ndarray, force: np.ndarray) -> StageStates:
        """The states that accelerations lead to."""
        move, rate = self.move(x), self.rate(x)
        a = x.copy()
        a[:, self.model.prescribed.dof] = self.held[2]
        v = rate
        if self.rates:
            v = over_groups(self.model, move, rate)
            a = a + self.onto[1] / self.onto[0] * (v - rate)
        q = integrate(self.model, self.q, move)
        return StageStates(q, v, a, self.u, force, self.t, move, rate, self.anchors)

    def residual(self, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        """F of (1), rows of loops in the units of the systems; NaN where it has no value."""
        s = self.state(x, force)
        w = run_residual(self.model, s.q, s.v, s.a, s.u, s.t, 1.0, force, s.anchors)
        r = w.host["tau"].copy()
        r[:, self.model.prescribed.dof] = 0.0
        found = np.hstack([r, w.host["gap"] / self.onto[0]]) if force.shape[1] else r
        found[(w.status != 0) | ~np.isfinite(found).all(axis=1)] = np.nan
        return found

    def systems(self, x: np.ndarray, force: np.ndarray) -> StageSystems:
        """S of (1)."""
        weights = np.zeros((3, 4))
        weights[:, 0] = self.onto
        systems = systems_of_states(self.model, self.state(x, force), weights.reshape(1, 12), (len(x), 1), self.rates)
        next(systems.matrices())
        return systems


def damped_steps(
    model: Model, scheme: Scheme, h: float, tolerance: float, here: dict[str, np.ndarray], u: np.ndarray,
    times: np.ndarray,
) -> DampedSteps:  # fmt: skip
    """Steps of size h from states q, v, a, ahead, force and anchors (n, ...) of one model with inputs u (n, nu), whose
    stages end at `times` (n, stages); each is as it is alone."""
    weights = stage_weights(scheme, h)
    known, force, rates = [here["v"], here["a"], here["ahead"]], here["force"].copy(), scheme.follows_rates
    move, x, ahead = np.zeros_like(here["v"]), here["a"].copy(), here["ahead"]
    found, count, s = np.ones(len(u), dtype=bool), 0, None
    for row, t in zip(weights.reshape(len(weights), 3, -1), times.T):
        k, onto = np.tensordot(row[:, 1 : 1 + len(known)], np.array(known), 1), row[:, 0]
        held = model.motions_over(t) if model.n_motions else np.zeros((len(t), 0))
        held = np.moveaxis(held.reshape(len(t), 3, -1), 1, 0)
        stage = _Stage(model, here["q"], here["anchors"], u, t, k, onto, held, bool(rates and groups(model)))
        stays, before, first, left = (move - k[0]) / onto[0], x.copy(), force.copy(), found.copy()
        for start in (stays, np.zeros_like(x), before):
            rows = np.flatnonzero(left)
            if len(rows):
                x[rows], force[rows], ends, more = _iterated(stage.some(rows), start[rows], first[rows], tolerance)
                left[rows[ends]], count = False, count + more
        found &= ~left
        x[~found], force[~found] = before[~found], first[~found]
        s = stage.state(x, force)
        move, ahead = stage.move(x), k[2] + onto[2] * x
        ahead[:, model.prescribed.dof] = s.a[:, model.prescribed.dof]
        known += [move, stage.rate(x), s.a]
    assert s is not None
    last = np.moveaxis(np.array(known[3:-3]).reshape(len(weights) - 1, 3, *x.shape), 2, 0)
    return DampedSteps(s.q, s.v, s.a, ahead, force, last, found, count)


def joined(parts: list[DampedSteps]) -> DampedSteps:
    """Steps of several models, one behind the other."""
    rows = {field.name: [getattr(part, field.name) for part in parts] for field in fields(DampedSteps)}
    count = sum(rows.pop("iterations"))
    return DampedSteps(**{name: np.concatenate(x) for name, x in rows.items()}, iterations=count)


def _iterated(
    stage: _Stage, x: np.ndarray, force: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """x and λ of n steps by (1) and (2) from starts on, which were found, and how many iterations all took."""
    model, nv, count = stage.model, stage.model.nv, 0
    x, force, found, last = x.copy(), force.copy(), np.zeros(len(x), dtype=bool), np.full(len(x), np.inf)
    scale = stage.onto[0] / model.dofs.scale
    F = stage.residual(x, force)
    rows = np.flatnonzero(np.isfinite(F).all(axis=1))  # those that the iteration goes on with
    for _ in range(_MOST_ITERATIONS):
        if not len(rows):
            break
        count += len(rows)
        part_of = stage.some(rows)
        systems = _Systems(part_of.systems(x[rows], force[rows]), model.dofs.scale)
        change, rest = systems.solved(F[rows])
        size = np.abs(scale * change[:, :nv]).max(axis=1)
        far = np.abs(part_of.move(_moved(x[rows], change[:, :nv], size)) / model.dofs.scale).max(axis=1)
        ends = (size <= _SHARE * tolerance * far) | ((size < _ROUNDING) & (size > _SLOW * last[rows]))
        done = rows[ends]
        x[done], force[done], found[done] = x[done] + change[ends, :nv], force[done] + change[ends, nv:], True
        seeks, part = np.flatnonzero(~ends & np.isfinite(size)), 1.0
        goes = np.zeros(len(rows), dtype=bool)
        begun = x[rows], force[rows]
        while part > _LEAST_PART and len(seeks):
            new = begun[0][seeks] + part * change[seeks, :nv], begun[1][seeks] + part * change[seeks, nv:]
            tried = part_of.some(seeks).residual(*new)
            after, left = systems.solved(tried, seeks)
            ahead = np.abs(scale * after[:, :nv]).max(axis=1)
            falls = (ahead <= (1.0 - 0.5 * part) * size[seeks]) | (left <= (1.0 - _GAIN * part) * rest[seeks])
            falls |= (size[seeks] < _ROUNDING) & np.isfinite(tried).all(axis=1)
            at = rows[seeks[falls]]
            x[at], force[at], F[at] = new[0][falls], new[1][falls], tried[falls]
            last[at] = size[seeks[falls]] if part == 1.0 else np.inf
            goes[seeks[falls]] = True
            seeks, part = seeks[~falls], 0.5 * part
        rows = rows[goes]
    return x, force, found, count


def _moved(x: np.ndarray, change: np.ndarray, size: np.ndarray) -> np.ndarray:
    """x after changes, those left out that are not finite."""
    return x + np.where(np.isfinite(size)[:, None], change, 0.0)


@final
class _Systems:
    """The systems S of n steps, and the units of |F| in (2)."""

    def __init__(self, systems: StageSystems, scale: np.ndarray) -> None:
        n, nv = systems.unknowns, systems.nv
        self.S, self.units = systems.matrix.reshape(len(systems.matrix), n, -1)[:, :, :n], systems.units
        rows = np.abs(self.S[:, :, :nv] * scale).max(axis=2)
        self.rows = np.where(rows > 0.0, rows, 1.0)
        self.open = np.zeros(self.rows.shape, dtype=bool)
        if n > nv:
            self.open[:, nv:] = ~systems.given.A_q.numpy()[: len(self.S)].reshape(len(self.S), n - nv, -1).any(axis=2)

    def solved(self, F: np.ndarray, some: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """−S⁻¹ F (n, unknowns), which is infinite where S is singular, and |F| as in (2)."""
        at = slice(None) if some is None else some
        F = np.where(self.open[at], 0.0, F * self.units[at])  # what other rows close
        size = np.linalg.norm(F / self.rows[at], axis=1)
        try:
            return -np.linalg.solve(self.S[at], F[:, :, None])[:, :, 0], size
        except np.linalg.LinAlgError:
            return np.array([_solved(S, row) for S, row in zip(self.S[at], F)]), size


def _solved(S: np.ndarray, F: np.ndarray) -> np.ndarray:
    """−S⁻¹ F of one."""
    try:
        return -np.linalg.solve(S, F)
    except np.linalg.LinAlgError:
        return np.full(len(F), np.inf)
