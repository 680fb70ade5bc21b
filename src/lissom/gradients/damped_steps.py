"""A step that Newton's method finds with damping, where the iteration of the kernel, made to fail early, finds none.

A stage asks for the acceleration x, which moves q by Δ = p₀ x + k (recursion), and for forces λ of loops:

    F(x, λ) = (r − Aᵀ λ; e) = 0,   S (δx; δλ) = −F                                                        (1)

A change is halved until the next one by the same matrix is shorter, in natural units of Δ, or F smaller, in units of
the rows of S:

    |S⁻¹ F(x + s δx, λ + s δλ)| ≤ (1 − s/2) |δx|   or   |F(x + s δx, λ + s δλ)| ≤ (1 − ε s) |F(x, λ)|        (2)

The first is quick among stiff rods, the second where a stiff contact begins, which S knows nothing of. The robot that
stays where it is starts the iteration, since what then touches does so already, while one that goes on as before may be
deep inside an obstacle at the end of the step. Of several roots, which a step that is long for its motion has, that
finds the near one. Other starts, x = 0 and the x before, follow.
Source: P. Deuflhard, Newton Methods for Nonlinear Problems, 2004, section 3.3: the natural monotonicity test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.configuration import groups, integrate
from lissom.dynamics.forward_dynamics import run_residual
from lissom.gradients.recursion import StageSystems
from lissom.gradients.stage_states import StageStates, over_groups
from lissom.gradients.stage_systems import stage_weights, systems_of_states
from lissom.integration.schemes import Scheme
from lissom.model.model import Model

_MOST_ITERATIONS = 60
_LEAST_PART = 2.0**-12  # of a change
_GAIN = 1e-4  # ε of (2)
_SHARE = 1e-2  # of the tolerance that a change may have
_ROUNDING = 1e-12  # changes of Δ of this size may be rounding, in natural units,
_SLOW = 0.5  # where they fall no faster


@final
@dataclass(frozen=True)
class DampedStep:
    """The end of a step as in StepState, and Δ, its rate and a of the stages before the last, (stages − 1, 3, nv)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    ahead: np.ndarray
    force: np.ndarray
    left: np.ndarray


@final
@dataclass(frozen=True)
class _Stage:
    """One stage of a step: from q and anchors, with k of Δ, of its rate and of â, and the weights of x in these;
    prescribed coordinates, their rates and accelerations at its end."""

    model: Model
    q: np.ndarray
    anchors: np.ndarray
    u: np.ndarray
    t: float
    known: np.ndarray
    onto: np.ndarray
    held: np.ndarray
    rates: bool

    def move(self, x: np.ndarray) -> np.ndarray:
        """Δ."""
        out, dof = self.known[0] + self.onto[0] * x, self.model.prescribed.dof
        out[dof] = self.held[0] - self.q[self.model.dofs.q[dof]]
        return out

    def rate(self, x: np.ndarray) -> np.ndarray:
        """The rate of Δ."""
        out = self.known[1] + self.onto[1] * x
        out[self.model.prescribed.dof] = self.held[1]
        return out

    def state(self, x: np.ndarray, force: np.ndarray) -> StageStates:
        """The state that an acceleration leads to, as one row."""
        move, rate = self.move(x), self.rate(x)
        a = x.copy()
        a[self.model.prescribed.dof] = self.held[2]
        v = rate
        if self.rates:
            v = over_groups(self.model, move, rate)
            a = a + self.onto[1] / self.onto[0] * (v - rate)
        q = integrate(self.model, self.q, move)
        q, v, a, u, force, move, rate = (y[None] for y in (q, v, a, self.u, force, move, rate))
        return StageStates(q, v, a, u, force, np.array([self.t]), move, rate, self.anchors[None])

    def residual(self, x: np.ndarray, force: np.ndarray) -> np.ndarray | None:
        """F of (1), rows of loops in the units of the systems; None where it has no value."""
        s = self.state(x, force)
        w = run_residual(self.model, s.q, s.v, s.a, s.u, s.t, 1.0, force, s.anchors)
        if w.status[0] != 0:
            return None
        r, gap = w.host["tau"][0].copy(), w.host["gap"][0] / self.onto[0]
        r[self.model.prescribed.dof] = 0.0
        found = np.concatenate([r, gap]) if len(force) else r
        return found if np.isfinite(found).all() else None

    def systems(self, x: np.ndarray, force: np.ndarray) -> StageSystems:
        """S of (1)."""
        weights = np.zeros((3, 4))
        weights[:, 0] = self.onto
        systems = systems_of_states(self.model, self.state(x, force), weights.reshape(1, 12), (1, 1), self.rates)
        next(systems.matrices())
        return systems


def damped_step(
    model: Model, scheme: Scheme, h: float, tolerance: float, here: dict[str, np.ndarray], u: np.ndarray,
    times: np.ndarray,
) -> DampedStep | None:  # fmt: skip
    """A step of size h from a state q, v, a, ahead, force and anchors with inputs u, whose stages end at `times`; None
    where none is found."""
    weights = stage_weights(scheme, h)
    known, force, rates = [here["v"], here["a"], here["ahead"]], here["force"], scheme.follows_rates and groups(model)
    move, x, s, ahead = np.zeros(model.nv), here["a"], None, here["ahead"]
    for row, t in zip(weights.reshape(len(weights), 3, -1), times.tolist()):
        count = 1 + len(known)
        k, onto = row[:, 1:count] @ np.array(known), row[:, 0]
        held = model.motions_over(np.array([t])).reshape(3, -1) if model.n_motions else np.zeros((3, 0))
        stage = _Stage(model, here["q"], here["anchors"], u, t, k, onto, held, bool(rates))
        stays = (move - k[0]) / onto[0]
        ends = (_iterated(stage, start, force, tolerance) for start in (stays, np.zeros(model.nv), x))
        found = next((end for end in ends if end is not None), None)
        if found is None:
            return None
        x, force = found
        s = stage.state(x, force)
        move, ahead = stage.move(x), k[2] + onto[2] * x
        ahead[model.prescribed.dof] = s.a[0, model.prescribed.dof]
        known += [move, stage.rate(x), s.a[0]]
    assert s is not None
    last = np.array(known[3:-3]).reshape(len(weights) - 1, 3, model.nv)
    return DampedStep(s.q[0], s.v[0], s.a[0], ahead, force, last)


def _iterated(
    stage: _Stage, x: np.ndarray, force: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """x and λ by (1) and (2) from a start on; None where they are not found."""
    model, nv, last = stage.model, stage.model.nv, np.inf
    scale = stage.onto[0] / model.dofs.scale
    F = stage.residual(x, force)
    for _ in range(_MOST_ITERATIONS):
        if F is None:
            return None
        systems = stage.systems(x, force)
        change, rest = _solved(systems, F, model.dofs.scale)
        size, part = _largest(scale, change), 1.0
        if not np.isfinite(size):
            return None
        far = float(np.abs(stage.move(x + change[:nv]) / model.dofs.scale).max())
        if size <= _SHARE * tolerance * far or (size < _ROUNDING and size > _SLOW * last):
            return x + change[:nv], force + change[nv:]
        while part > _LEAST_PART:
            new = x + part * change[:nv], force + part * change[nv:]
            F = stage.residual(*new)
            if F is not None:
                after, left = _solved(systems, F, model.dofs.scale)
                falls = _largest(scale, after) <= (1.0 - 0.5 * part) * size or left <= (1.0 - _GAIN * part) * rest
                if falls or size < _ROUNDING:
                    break
            part *= 0.5
        else:
            return None
        x, force = new
        last = size if part == 1.0 else np.inf
    return None


def _largest(scale: np.ndarray, change: np.ndarray) -> float:
    """Size of a change of x, as one of Δ in natural units."""
    return float(np.abs(scale * change[: len(scale)]).max())


def _solved(systems: StageSystems, F: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """−S⁻¹ F, which is infinite where S is singular, and |F| as in (2)."""
    n, nv = systems.unknowns, systems.nv
    S = systems.matrix.reshape(n, -1)[:, :n]
    F = F * systems.units[0]
    if n > nv:
        loops = systems.given.A_q.numpy()[0].reshape(n - nv, -1)
        F[nv:][~loops.any(axis=1)] = 0.0  # what other rows close
    rows = np.abs(S[:, :nv] * scale).max(axis=1)
    size = float(np.linalg.norm(F / np.where(rows > 0.0, rows, 1.0)))
    try:
        return -np.linalg.solve(S, F), size
    except np.linalg.LinAlgError:
        return np.full(n, np.inf), size
