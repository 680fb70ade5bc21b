"""Steps of one size of motions that run together, taken to the end of Newton's iteration in the kernel of step_kernel,
and the stages of each.

Every step is the solution of (1) of newton_stages, so that its derivatives are those of that solution. No step is cut,
since then its size would depend on the state: an iteration that fails goes on with damping, (9) and (10) there, and a
step that is not found ends the motion. Loops are closed in q alone (index 3), as `simulate(project_velocity=False)`
does: the projection of velocities follows the matrices that the iteration has met, and has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.contacts import present_anchors, put_anchors
from lissom.errors import ConvergenceError, keeping
from lissom.launch.workspace import Workspace, near_pairs_error
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import ORDER_SHARE, Scheme, StepState
from lissom.stepping.state import ControlLaw, StateDerivative
from lissom.stepping.step_kernel import put_inputs, put_times, recording_workspace, stage_times
from lissom.stepping.step_rows import DAMPED, DAMPED_EVALUATIONS, DONE, EVALUATIONS, MATRICES, scheme_numbers

_OF_SMALL = 1e-3  # absolute tolerance, of the relative one
_NOTHING = np.zeros(0)
HELD = ControlLaw(lambda t, q, v, z: _NOTHING, lambda t, q, v, z: _NOTHING, _NOTHING, 0.0)  # inputs of a step are held
_STATE = ("q", "v", "a", "ahead", "force", "anchors")  # at the ends of steps, what the next one goes on from


@final
@dataclass(frozen=True)
class Path:
    """States (n, steps + 1, ...) of n motions at the ends of their steps, the start first.

    Fields:
        first: number of the first step since t = 0. q, v, a, ahead, force: as in StepState. anchors: where contacts
        that stick hold on, (n, steps + 1, n_pairs, 6), of no pair where none does. u: inputs of each step
        (n, steps, nu). left: Δ, the rate of Δ and a of the stages before the last one, (n, steps, stages − 1, 3, nv).
    """

    first: int
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    ahead: np.ndarray
    force: np.ndarray
    anchors: np.ndarray
    u: np.ndarray
    left: np.ndarray

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.u.shape[1]

    def state(self, k: int) -> dict[str, np.ndarray]:
        """What a step goes on from, k steps after the first state."""
        return {name: getattr(self, name)[:, k] for name in _STATE}

    def part(self, start: int, stop: int) -> Path:
        """Some of the steps."""
        states = {name: getattr(self, name)[:, start : stop + 1] for name in _STATE}
        return Path(self.first + start, **states, u=self.u[:, start:stop], left=self.left[:, start:stop])


@final
@dataclass
class Cost:
    """Cost of the steps so far: how many, residuals, matrices; how many were damped, and the residuals for that."""

    steps: int = 0
    evaluations: int = 0
    matrices: int = 0
    damped: int = 0
    damped_evaluations: int = 0

    @property
    def damped_share(self) -> float:
        """Part of the residuals that damping took."""
        return self.damped_evaluations / max(self.evaluations, 1)

    def take(self, counts: np.ndarray) -> None:
        """Add the counts of a kernel (n, COUNTS), which then start again."""
        self.evaluations += int(counts[:, EVALUATIONS].sum())
        self.matrices += int(counts[:, MATRICES].sum())
        self.damped += int(counts[:, DAMPED].sum())
        self.damped_evaluations += int(counts[:, DAMPED_EVALUATIONS].sum())
        counts[:, [EVALUATIONS, MATRICES, DAMPED, DAMPED_EVALUATIONS]] = 0


@final
@dataclass(frozen=True)
class Stepping:
    """How steps are taken: their scheme, their size [s], and what Newton's iteration leaves of one."""

    scheme: Scheme
    dt: float
    tolerance: float

    def times(self, first: int, steps: int) -> np.ndarray:
        """Where stages of steps end, shape (steps, stages)."""
        ends = self.dt * np.arange(first + 1, first + steps + 1)
        return np.array(stage_times(self.scheme, self.dt * first, ends)).reshape(steps, len(self.scheme.stages))

    def run(
        self,
        model: Model,
        begin: dict[str, np.ndarray],
        u: np.ndarray,
        first: int = 0,
        tell: Callable[[float], None] = lambda done: None,
        cost: Cost | None = None,
    ) -> Path:
        """Steps with inputs u (n, steps, nu) from states q, v, a, ahead, force and anchors (n, ...); `tell` is called
        with how many there are, and what they cost is added up.

        Raises:
            ConvergenceError: Newton's method found no step, with its time. KeyboardInterrupt: Ctrl-C; its `partial` is
            the Path so far, None where there are no steps.
        """
        n, steps, _ = u.shape
        out = {name: np.zeros((n, steps + 1, *x.shape[1:])) for name, x in begin.items()}
        for name, x in begin.items():
            out[name][:, 0] = x
        left = np.zeros((n, steps, len(self.scheme.stages) - 1, 3, model.nv))
        path, done = Path(first, **out, u=u, left=left), 0
        del out["anchors"]  # which kernels and Python leave in ways of their own
        with keeping(lambda: path.part(0, done) if done else None):
            cost = Cost() if cost is None else cost
            for done in (self._in_python if model.calls_python else self._in_kernels)(model, path, out, cost):
                tell(first + done)
        cost.steps += n * steps
        return path

    def _in_kernels(self, model: Model, path: Path, out: dict[str, np.ndarray], cost: Cost) -> Iterator[int]:
        """Take the steps and put them there; how many there are, now and then."""
        n, u = len(path.u), path.u
        w = recording_workspace(model, n, self.scheme)
        host, longest = w.host, w.host["inputs"].shape[1]
        small = _OF_SMALL * self.tolerance
        host["numbers"][:] = scheme_numbers(self.scheme, self.tolerance, (small, small), False, ORDER_SHARE, damps=True)
        host["counts"][:], host["pause"][:], host["adaptive"][:], host["h"][:] = 0, 0, 0.0, self.dt
        anchors = path.anchors
        for name, x in out.items():
            host[name][:] = x[:, 0]
        host["before"][:], host["force_before"][:] = path.a[:, 0], path.force[:, 0]
        if anchors.size:
            w.put_anchors(anchors[:, 0])
        ends = np.cumsum([x.shape[-1] for x in out.values()])
        for start in range(0, path.steps, longest):
            many = min(longest, path.steps - start)
            rows = self._window(model, w, u[:, start : start + many], path.first + start, cost)
            for x, found in zip(out.values(), np.split(rows, ends[:-1], axis=-1)):
                x[:, start + 1 : start + many + 1] = found
            if path.left.size:
                path.left[:, start : start + many] = host["left"].reshape(n, -1, *path.left.shape[2:])[:, :many]
            if anchors.size:
                anchors[:, start + 1 : start + many + 1] = host["anchored"].reshape(n, -1, *anchors.shape[2:])[:, :many]
            yield start + many

    def _in_python(self, model: Model, path: Path, out: dict[str, np.ndarray], cost: Cost) -> Iterator[int]:
        """The same where bodies, joints or forces of Python act between the parts of a stage, motion by motion: bodies
        may round otherwise in a batch."""
        n, ends = len(path.u), self.times(path.first, path.steps)[:, -1].tolist()
        sticks = bool(path.anchors.size)
        own = model.anchored(path.anchors[0, 0]) if sticks else model
        small = _OF_SMALL * self.tolerance
        given = self.tolerance, (small, small), False, ORDER_SHARE
        f = StateDerivative(own, HELD)
        for k, end in enumerate(ends):
            t = self.dt * (path.first + k)
            for i in range(n):
                steps = ImplicitSteps(own, f, self.scheme, *given, damps=True)
                f.held = path.u[i, k]
                if sticks:
                    put_anchors(own, path.anchors[i, k])
                q, v, a, ahead, force = (x[i, k] for x in out.values())
                new = steps.step_to(StepState(t, q, v, a, ahead, self.dt, force, HELD.start, a, force), end)
                if new is None:
                    raise self._failure(i, n, t)
                for x, found in zip(out.values(), (new.q, new.v, new.a, new.ahead, new.force)):
                    x[i, k + 1] = found
                path.left[i, k] = steps.earlier
                if sticks:
                    path.anchors[i, k + 1] = present_anchors(own)
                cost.take(steps.counts)
            yield k + 1

    def _window(self, model: Model, w: Workspace, u: np.ndarray, first: int, cost: Cost) -> np.ndarray:
        """Rows (q, v, a, â, λ) behind each of as many steps as there are inputs."""
        host, many, stages = w.host, u.shape[1], len(self.scheme.stages)
        put_times(model, w, self.times(first, many).ravel().tolist())
        put_inputs(w, np.repeat(u, stages, axis=1), stages)
        host["counts"][:, DONE], host["span"][:] = 0, (0, many, 0)
        w.run()
        done = host["counts"][:, DONE]
        if (done < many).any():
            i = int(np.argmin(done))
            if w.status[i] == STATUS_TOO_MANY_PAIRS:
                raise near_pairs_error(model)
            raise self._failure(i, len(u), self.dt * (first + int(done[i])))
        cost.take(host["counts"])
        return host["out"].reshape(len(u), -1, host["out"].shape[1] // host["h"][:, 1:].shape[1])[:, :many]

    def _failure(self, i: int, n: int, t: float) -> ConvergenceError:
        """The error of motion i of n, which has no step at a time."""
        where = f"instance {i} of {n}: " if n > 1 else ""
        return ConvergenceError(
            f"{where}rollout by {self.scheme.name} stopped at t={t:g} s: Newton's method finds "
            "no step; take a shorter dt, or one that the stiffest part of the motion allows"
        )
