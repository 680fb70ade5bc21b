"""Steps of one size of motions that run together, taken to the end of Newton's iteration in the kernel of fused_steps,
or in Python where bodies or maps of the robot are Python's, and what each stage of them was.

Every step is the solution of (1) of implicit_steps, so that its derivatives are those of that solution. A step that is
not found ends the motion; none is cut, since then its size would depend on the state. Loops are closed in q alone
(index 3), as `simulate(project_velocity=False)` does: the projection of velocities follows the matrices that the
iteration has met, and has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.contacts import anchors_after
from lissom.errors import ConvergenceError, keeping
from lissom.gradients.damped_steps import DampedStep, damped_step
from lissom.integration.fused_runs import keeping_workspace, put_inputs, put_times, stage_times
from lissom.integration.schemes import ORDER_SHARE, Scheme
from lissom.integration.step_rows import scheme_numbers
from lissom.launch.workspace import Workspace, crowded
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED

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
    ) -> Path:
        """Steps with inputs u (n, steps, nu) from states q, v, a, ahead, force and anchors (n, ...); `tell` is called
        with how many there are.

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
            for done in (self._in_python if model.calls_python else self._in_kernels)(model, path, out):
                tell(first + done)
        return path

    def _in_kernels(self, model: Model, path: Path, out: dict[str, np.ndarray]) -> Iterator[int]:
        """Take the steps and put them there; how many there are, now and then."""
        n, u = len(path.u), path.u
        w = keeping_workspace(model, n, self.scheme)
        host, longest = w.host, w.host["inputs"].shape[1]
        small = _OF_SMALL * self.tolerance
        host["numbers"][:] = scheme_numbers(self.scheme, self.tolerance, (small, small), False, ORDER_SHARE)
        host["counts"][:], host["pause"][:], host["pace"][:], host["h"][:] = 0, 0, 0.0, self.dt
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
            rows = self._window(model, w, u[:, start : start + many], path.first + start, here)
            for x, found in zip(out.values(), np.split(rows, ends[:-1], axis=-1)):
                x[:, start + 1 : start + many + 1] = found
            if path.left.size:
                path.left[:, start : start + many] = host["left"].reshape(n, -1, *path.left.shape[2:])[:, :many]
            if anchors.size:
                anchors[:, start + 1 : start + many + 1] = host["anchored"].reshape(n, -1, *anchors.shape[2:])[:, :many]
            yield start + many

    def _in_python(self, model: Model, path: Path, out: dict[str, np.ndarray]) -> Iterator[int]:
        """The same one by one, where bodies ask Python at every state."""
        n = len(path.u)
        for k in range(path.steps):
            for i in range(n):
                here = {name: x[i, k] for name, x in out.items()} | {"anchors": path.anchors[i, k]}
                found = self._damped(model.one(i, n), (i, n), path.u[i, k], path.first + k, here)
                for name, x in out.items():
                    x[i, k + 1] = getattr(found, name)
                path.left[i, k] = found.left
            if path.anchors.size:
                path.anchors[:, k + 1] = anchors_after(model, path.anchors[:, k], path.q[:, k + 1], path.v[:, k + 1])
            yield k + 1

    def _window(self, model: Model, w: Workspace, u: np.ndarray, first: int, here: dict[str, np.ndarray]) -> np.ndarray:
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
            for i in np.flatnonzero(done < many).tolist():
                if w.status[i] == STATUS_CROWDED:
                    raise crowded(model)
                k = int(done[i])
                before = {name: x[i] for name, x in here.items()} if k == 0 else _named(rows[i, k - 1], here)
                self._go_on(model, w, (i, k), u[i, k], first + k, before)
                rows[i, k] = np.concatenate([host[name][i] for name in here])
                done[i] = host["span"][i, 0] = k + 1
            w.run()
        return rows

    def _go_on(
        self, model: Model, w: Workspace, at: tuple[int, int], u: np.ndarray, number: int, here: dict[str, np.ndarray]
    ) -> None:
        """Put a step of one motion, which the kernel did not find, where the next one begins."""
        (i, k), host, n = at, w.host, w.batch
        own = model.one(i, n)
        anchors = host["anchor"][i].reshape(-1, 6) if "anchor" in host else np.zeros((0, 6))
        found = self._damped(own, (i, n), u, number, here | {"anchors": anchors})
        if anchors.size:
            after = anchors_after(own, anchors[None], found.q[None], found.v[None])
            host["anchor"][i] = after.reshape(-1, 3)
            host["anchored"].reshape(n, -1, anchors.size)[i, k] = after.ravel()
        for name in here:
            host[name][i] = getattr(found, name)
        host["before"][i], host["force_before"][i] = found.a, found.force
        host["counts"][i, 1:] = 0
        if found.left.size:
            host["left"].reshape(n, -1, found.left.size)[i, k] = found.left.ravel()

    def _damped(
        self, own: Model, one: tuple[int, int], u: np.ndarray, number: int, here: dict[str, np.ndarray]
    ) -> DampedStep:
        """A step of one of so many motions from a state, in Python."""
        found = damped_step(own, self.scheme, self.dt, self.tolerance, here, u, self.times(number, 1)[0])
        if found is None:
            where = f"instance {one[0]} of {one[1]}: " if one[1] > 1 else ""
            raise ConvergenceError(
                f"{where}rollout by {self.scheme.name} stopped at t={self.dt * number:g} s: Newton's method finds no "
                "step; take a shorter dt, or one that the stiffest part of the motion allows"
            )
        return found


def _named(row: np.ndarray, like: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parts of a row, of the sizes of others."""
    ends = np.cumsum([x.shape[-1] for x in like.values()])
    return dict(zip(like, np.split(row.copy(), ends[:-1])))
