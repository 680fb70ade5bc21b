"""Steps of one size of motions that run together, taken to the end of Newton's iteration in the kernel of step_kernel,
or in Python where bodies or maps of the robot are Python's, and what each stage of them was.

Every step is the solution of (1) of newton_stages, so that its derivatives are those of that solution. A step that is
not found ends the motion; none is cut, since then its size would depend on the state. Loops are closed in q alone
(index 3), as `simulate(project_velocity=False)` does: the projection of velocities follows the matrices that the
iteration has met, and has no derivative.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.contacts import anchors_after
from lissom.errors import ConvergenceError, keeping
from lissom.gradients.damped_steps import DampedSteps, damped_steps, joined
from lissom.launch.workspace import Workspace, crowded
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED
from lissom.stepping.schemes import ORDER_SHARE, Scheme
from lissom.stepping.step_kernel import put_inputs, put_times, recording_workspace, stage_times
from lissom.stepping.step_rows import EVALUATIONS, MATRICES, scheme_numbers

_OF_SMALL = 1e-3  # absolute tolerance, of the relative one
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
    """What steps cost so far: how many, residuals, matrices; how many were damped, and the time of those [s]."""

    steps: int = 0
    evaluations: int = 0
    matrices: int = 0
    damped: int = 0
    damped_time: float = 0.0

    def take(self, counts: np.ndarray) -> None:
        """Add what the kernel has counted of some motions, which starts to count again."""
        self.evaluations += int(counts[:, EVALUATIONS].sum())
        self.matrices += int(counts[:, MATRICES].sum())
        counts[:, [EVALUATIONS, MATRICES]] = 0


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
        host["numbers"][:] = scheme_numbers(self.scheme, self.tolerance, (small, small), False, ORDER_SHARE)
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
            here = {name: x[:, start] for name, x in out.items()}
            rows = self._window(model, w, u[:, start : start + many], path.first + start, here, cost)
            for x, found in zip(out.values(), np.split(rows, ends[:-1], axis=-1)):
                x[:, start + 1 : start + many + 1] = found
            if path.left.size:
                path.left[:, start : start + many] = host["left"].reshape(n, -1, *path.left.shape[2:])[:, :many]
            if anchors.size:
                anchors[:, start + 1 : start + many + 1] = host["anchored"].reshape(n, -1, *anchors.shape[2:])[:, :many]
            yield start + many

    def _in_python(self, model: Model, path: Path, out: dict[str, np.ndarray], cost: Cost) -> Iterator[int]:
        """The same with damping, where bodies ask Python at every state."""
        n = len(path.u)
        for k in range(path.steps):
            for i in range(n):  # one by one: bodies may round otherwise in a batch
                one = np.array([i])
                here = {name: x[one, k] for name, x in out.items()} | {"anchors": path.anchors[one, k]}
                found = self._damped(model, one, n, path.u[one, k], np.array([path.first + k]), here, cost)
                for name, x in out.items():
                    x[i, k + 1] = getattr(found, name)[0]
                path.left[i, k] = found.left[0]
            if path.anchors.size:
                path.anchors[:, k + 1] = anchors_after(model, path.anchors[:, k], path.q[:, k + 1], path.v[:, k + 1])
            yield k + 1

    def _window(
        self, model: Model, w: Workspace, u: np.ndarray, first: int, here: dict[str, np.ndarray], cost: Cost
    ) -> np.ndarray:
        """Rows (q, v, a, â, λ) that so many steps from `here` leave as there are inputs."""
        host, many, stages = w.host, u.shape[1], len(self.scheme.stages)
        put_times(model, w, self.times(first, many).ravel().tolist())
        put_inputs(w, np.repeat(u, stages, axis=1), stages)
        host["counts"][:, 0], host["span"][:] = 0, (0, many, 0)
        w.run()
        done = host["counts"][:, 0]
        rows = host["out"].reshape(len(u), -1, host["out"].shape[1] // host["h"][:, 1:].shape[1])[:, :many]
        while (done < many).any():
            host["span"][:, 0] = many
            behind = np.flatnonzero(done < many)
            if (w.status[behind] == STATUS_CROWDED).any():
                raise crowded(model)
            k = done[behind].copy()
            starts = np.hstack([x[behind] for x in here.values()])
            begun = np.where((k > 0)[:, None], rows[behind, np.maximum(k - 1, 0)], starts)
            cost.take(host["counts"])
            self._go_on(model, w, (behind, k), u[behind, k], first, _named(begun, here), cost)
            rows[behind, k] = np.hstack([host[name][behind] for name in here])
            done[behind] = host["span"][behind, 0] = k + 1
            w.run()
        cost.take(host["counts"])
        return rows

    def _go_on(
        self, model: Model, w: Workspace, at: tuple[np.ndarray, np.ndarray], u: np.ndarray, first: int,
        here: dict[str, np.ndarray], cost: Cost,
    ) -> None:  # fmt: skip
        """Put a step of some motions, the k-th of a window of each, which the kernel did not find, where the next one
        begins."""
        (some, k), host, n, many = at, w.host, w.batch, len(at[0])
        anchors = host["anchor"][some].reshape(many, -1, 6) if "anchor" in host else np.zeros((many, 0, 6))
        found = self._damped(model, some, n, u, first + k, here | {"anchors": anchors}, cost)
        if anchors.size:
            own = [model.of_row(i, n) for i in some.tolist()] if model.models else [model]
            rows = zip(*(np.array_split(x, len(own)) for x in (anchors, found.q, found.v)))
            after = np.concatenate([anchors_after(one, *row) for one, row in zip(own, rows)]).reshape(many, -1)
            host["anchor"][some] = after.reshape(host["anchor"][some].shape)
            host["anchored"].reshape(n, -1, after.shape[1])[some, k] = after
        for name in here:
            host[name][some] = getattr(found, name)
        host["before"][some], host["force_before"][some] = found.a, found.force
        host["counts"][some, 1:] = 0
        if found.left.size:
            host["left"].reshape(n, -1, found.left[0].size)[some, k] = found.left.reshape(many, -1)

    def _damped(
        self, model: Model, some: np.ndarray, n: int, u: np.ndarray, number: np.ndarray, here: dict[str, np.ndarray],
        cost: Cost,
    ) -> DampedSteps:  # fmt: skip
        """A step of some of n motions from states, in Python; those of one model together."""
        began, times = time.perf_counter(), np.concatenate([self.times(k, 1) for k in number.tolist()])
        own, parts = [model.of_row(i, n) for i in some.tolist()] if model.models else [model], []
        for one, rows in zip(own, np.array_split(np.arange(len(some)), len(own))):
            begin = {name: x[rows] for name, x in here.items()}
            parts.append(damped_steps(one, self.scheme, self.dt, self.tolerance, begin, u[rows], times[rows]))
        found = joined(parts)
        if not found.found.all():
            k = int(np.argmin(found.found))
            where = f"instance {some[k]} of {n}: " if n > 1 else ""
            raise ConvergenceError(
                f"{where}rollout by {self.scheme.name} stopped at t={self.dt * number[k]:g} s: Newton's method finds "
                "no step; take a shorter dt, or one that the stiffest part of the motion allows"
            )
        cost.damped += len(some)
        cost.evaluations += found.iterations
        cost.matrices += found.iterations
        cost.damped_time += time.perf_counter() - began
        return found


def _named(rows: np.ndarray, like: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parts of rows, of the sizes of others."""
    ends = np.cumsum([x.shape[-1] for x in like.values()])
    return dict(zip(like, np.split(rows.copy(), ends[:-1], axis=-1)))
