"""Steps of constant size of a batch of motions, with converged Newton iterations, and the states of their stages.

The steps are computed by the kernel of step_kernel. Every step is the solution of (1) of newton_stages, so that its
derivatives are those of that solution. Steps are never shortened, since their size would then depend on the state. An
iteration that fails continues with damping by (9) and (10) of newton_stages. If it finds no step, the motion ends.
Loops are closed in q only (index 3), as by `simulate(project_velocity=False)`: the projection of velocities depends on
the matrices of the iteration and has no derivative. `sdirk` is (8) of schemes there, which keeps its second order.

Under a feedback law f, the inputs at the end of each stage are f(t, q, v) + u, with the given u of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.contacts import present_anchors, put_anchors
from lissom.errors import ConvergenceError, keeping
from lissom.model.model import Model
from lissom.stepping.driver import Motions, deepest_contact, end_of_motion, why_rejected
from lissom.stepping.feedback import NativeLaw
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import ORDER_SHARE, Scheme, StepState
from lissom.stepping.state import ControlLaw, StateDerivative
from lissom.stepping.step_kernel import put_times, recording_workspace, stage_times
from lissom.stepping.step_rows import (
    DAMPED,
    DAMPED_EVALUATIONS,
    EVALUATIONS,
    MATRICES,
    PLASTIC_STEPS,
    scheme_numbers,
)

_OF_SMALL = 1e-3  # absolute tolerance over the relative one
_NOTHING = np.zeros(0)
# a law without inputs, since u is constant in a step
CONSTANT_INPUTS = ControlLaw(lambda t, q, v, z: _NOTHING, lambda t, q, v, z: _NOTHING, _NOTHING, 0.0)
_STATE = ("q", "v", "a", "ahead", "force", "anchors")  # the state at the end of a step, with which the next one begins


@final
@dataclass(frozen=True)
class Path:
    """States (n, steps + 1, ...) of n motions at the ends of their steps, beginning with the start.

    Fields:
        first: number of the first step since t = 0. q, v, a, ahead, force: as in StepState. anchors: of contacts that
        stick, (n, steps + 1, n_pairs, 6); n_pairs is 0 if none sticks. u: given inputs of each step, (n, steps, nu).
        earlier: Δ, its rate and a of the stages before the last one, (n, steps, stages − 1, 3, nv). scheme: 0 for each
        step of the scheme, 1 for those of implicit Euler, in which contacts or stops changed, (n, steps).
    """

    first: int
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    ahead: np.ndarray
    force: np.ndarray
    anchors: np.ndarray
    u: np.ndarray
    earlier: np.ndarray
    scheme: np.ndarray

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.u.shape[1]

    def state(self, k: int) -> dict[str, np.ndarray]:
        """The state k steps after the first one, by name."""
        return {name: getattr(self, name)[:, k] for name in _STATE}

    def part(self, start: int, stop: int) -> Path:
        """The path of a range of steps."""
        states = {name: getattr(self, name)[:, start : stop + 1] for name in _STATE}
        steps = {name: getattr(self, name)[:, start:stop] for name in ("u", "earlier", "scheme")}
        return Path(self.first + start, **states, **steps)


@final
@dataclass
class Cost:
    """Cost of the steps so far.

    Fields:
        steps: their number. evaluations: of the residual. matrices: factored. damped: steps with damping.
        damped_evaluations: residuals of damped iterations. plastic: steps by implicit Euler, in which contacts or
        stops change. deepest: largest depth of a contact that steps found [m].
    """

    steps: int = 0
    evaluations: int = 0
    matrices: int = 0
    damped: int = 0
    damped_evaluations: int = 0
    plastic: int = 0
    deepest: float = 0.0

    @property
    def damped_share(self) -> float:
        """Share of the residuals that belongs to damping."""
        return self.damped_evaluations / max(self.evaluations, 1)

    def take(self, counts: np.ndarray) -> None:
        """Add the counts of a kernel (n, COUNTS), and set them to zero."""
        self.evaluations += int(counts[:, EVALUATIONS].sum())
        self.matrices += int(counts[:, MATRICES].sum())
        self.damped += int(counts[:, DAMPED].sum())
        self.damped_evaluations += int(counts[:, DAMPED_EVALUATIONS].sum())
        self.plastic += int(counts[:, PLASTIC_STEPS].sum())
        counts[:, [EVALUATIONS, MATRICES, DAMPED, DAMPED_EVALUATIONS, PLASTIC_STEPS]] = 0


@final
@dataclass(frozen=True)
class FixedSteps:
    """Steps of constant size: their scheme, size [s], the tolerance of Newton's method, relative to a step, and a
    feedback law that adds to the given inputs, or None."""

    scheme: Scheme
    dt: float
    tolerance: float
    law: NativeLaw | None = None

    def times(self, first: int, steps: int) -> np.ndarray:
        """Times at the ends of stages, shape (steps, stages) [s]."""
        ends = self.dt * np.arange(first + 1, first + steps + 1)
        return np.array(stage_times(self.scheme, self.dt * first, ends)).reshape(steps, len(self.scheme.stages))

    def inputs(self, u: np.ndarray, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """All inputs at times (n,) and states (n, ...), (n, nu), where u (n, nu) is given.

        Raises:
            ShapeError: an input of the law is not finite.
        """
        return u if self.law is None else u + self.law.inputs_over(t, q, v)

    def start_inputs(self, path: Path) -> np.ndarray:
        """All inputs at t = 0, (n, nu)."""
        return self.inputs(path.u[:, 0], np.zeros(len(path.q)), path.q[:, 0], path.v[:, 0])

    def run(
        self,
        model: Model,
        begin: dict[str, np.ndarray],
        u: np.ndarray,
        first: int = 0,
        report: Callable[[float], None] = lambda done: None,
        cost: Cost | None = None,
    ) -> Path:
        """The path of steps from initial states.

        Args:
            begin: q, v, a, ahead, force and anchors, (n, ...). u: given inputs, (n, steps, nu). first: number of the
                first step. report: called with the number of finished steps. cost: to which the cost of the steps is
                added.
        Raises:
            ConvergenceError: Newton's method finds no step, with its time. KeyboardInterrupt: Ctrl-C; its `partial` is
            the Path so far, or None without steps.
        """
        n, steps, _ = u.shape
        out = {name: np.zeros((n, steps + 1, *x.shape[1:])) for name, x in begin.items()}
        for name, x in begin.items():
            out[name][:, 0] = x
        earlier = np.zeros((n, steps, len(self.scheme.stages) - 1, 3, model.nv))
        path, done = Path(first, **out, u=u, earlier=earlier, scheme=np.zeros((n, steps), dtype=int)), 0
        del out["anchors"]  # kernels and Python store them in different ways
        with keeping(lambda: path.part(0, done) if done else None):
            cost = Cost() if cost is None else cost
            for done in (self._in_python if model.calls_python else self._in_kernels)(model, path, out, cost):
                report(first + done)
        cost.steps += n * steps
        return path

    def _in_kernels(self, model: Model, path: Path, out: dict[str, np.ndarray], cost: Cost) -> Iterator[int]:
        """Compute the steps in kernels and write them to `path`. Yields the number of finished steps."""
        n, u = len(path.u), path.u
        workspace = recording_workspace(model, n, self.scheme, self.law)
        small = _OF_SMALL * self.tolerance
        numbers = scheme_numbers(self.scheme, self.tolerance, (small, small), False, ORDER_SHARE, damps=True)
        motions = Motions(model, n, self.scheme, np.inf, w=workspace, numbers=numbers)
        motions.put(slice(None), {name: x[:, 0] for name, x in out.items()}, self.dt)
        host, anchors = workspace.host, path.anchors
        host["h"][:] = self.dt
        if anchors.size:
            workspace.put_anchors(anchors[:, 0])
        for start in range(0, path.steps, motions.longest):
            stop = min(start + motions.longest, path.steps)
            count, first = stop - start, path.first + start
            put_times(model, workspace, self.times(first, count).ravel().tolist())
            motions.put_inputs(u[:, start:stop], count)
            motions.take(motions.all, count, self.dt * np.arange(first, first + count + 1))
            if len(motions.lost):
                i = int(np.argmin(motions.reached))
                t = self.dt * (first + int(motions.reached[i]))
                self._require_finite(t, host["q"][i], host["v"][i])
                raise self._failure(i, n, t, model.of_row(i, n), host["counts"][i], host["q"][i], host["v"][i])
            cost.take(host["counts"])
            cost.deepest = max(cost.deepest, motions.deepest)
            for name, x in out.items():
                x[:, start + 1 : stop + 1] = motions.rows()[:, :count, motions.parts[name]]
            path.scheme[:, start:stop] = host["weights"][:, :count]
            if path.earlier.size:
                path.earlier[:, start:stop] = host["left"].reshape(n, -1, *path.earlier.shape[2:])[:, :count]
            if anchors.size:
                found = host["anchored"].reshape(n, -1, *anchors.shape[2:])
                anchors[:, start + 1 : stop + 1] = found[:, :count]
            yield stop

    def _in_python(self, model: Model, path: Path, out: dict[str, np.ndarray], cost: Cost) -> Iterator[int]:
        """Compute the steps if bodies, joints or forces are Python functions, which are called within a stage.

        Motions are computed one by one, since bodies may round differently in a batch.
        """
        n, ends = len(path.u), self.times(path.first, path.steps)[:, -1].tolist()
        sticks = bool(path.anchors.size)
        own = model.anchored(path.anchors[0, 0]) if sticks else model
        small = _OF_SMALL * self.tolerance
        given = self.tolerance, (small, small), False, ORDER_SHARE
        f = StateDerivative(own, CONSTANT_INPUTS if self.law is None else self.law.control_law())
        for k, end in enumerate(ends):
            t = self.dt * (path.first + k)
            for i in range(n):
                steps = ImplicitSteps(own, f, self.scheme, *given, damps=True)
                f.give(path.u[i, k])
                if sticks:
                    put_anchors(own, path.anchors[i, k])
                q, v, a, ahead, force = (x[i, k] for x in out.values())
                new = steps.step_to(StepState(t, q, v, a, ahead, self.dt, force, CONSTANT_INPUTS.start, a, force), end)
                if new is None:
                    self._require_finite(t, q, v)
                    raise self._failure(i, n, t, own, np.atleast_2d(steps.counts)[0], q, v)
                for x, found in zip(out.values(), (new.q, new.v, new.a, new.ahead, new.force)):
                    x[i, k + 1] = found
                path.earlier[i, k], path.scheme[i, k] = steps.earlier, steps.weights
                if sticks:
                    path.anchors[i, k + 1] = present_anchors(own)
                cost.take(steps.counts)
                cost.deepest = f.deepest
            yield k + 1

    def _require_finite(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Raise ShapeError if inputs of the law are not finite at the start or at the end of a step from a state at
        time t, for which Newton's method has failed."""
        if self.law is not None:
            for time in (t, t + self.dt):
                self.law.inputs(time, q, v)

    def _failure(
        self, i: int, n: int, t: float, model: Model, counts: np.ndarray, q: np.ndarray, v: np.ndarray
    ) -> ConvergenceError:
        """The error of motion i of n, whose step at time t from (q, v) is not found."""
        where = f"instance {i} of {n}: " if n > 1 else ""
        text = f"{where}rollout by {self.scheme.name} stopped at t={t:g} s: {why_rejected(counts)}"
        end = end_of_motion(model, q) or end_of_motion(model, integrate(model, q, self.dt * v))
        if end:
            return ConvergenceError(f"{text}{end}")
        cure = "take a shorter dt, or one that the stiffest part of the motion allows"
        return ConvergenceError(f"{text}{deepest_contact(model, q)}; {cure}")
