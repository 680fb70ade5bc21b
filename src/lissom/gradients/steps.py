"""Steps of one size of motions that run together, taken to the end of Newton's iteration in the kernel of fused_steps,
and what each stage of them was.

Every step is the solution of (1) of implicit_steps, so that its derivatives are those of that solution. A step that is
not found ends the motion; none is cut, since then its size would depend on the state. Loops are closed in q alone
(index 3), as `simulate(project_velocity=False)` does: the projection of velocities follows the matrices that the
iteration has met, and has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.configuration import difference, groups, integrate
from lissom.errors import ConvergenceError
from lissom.integration.fused_runs import keeping_workspace, put_inputs, put_times, stage_times
from lissom.integration.schemes import ORDER_SHARE, Scheme
from lissom.integration.step_rows import scheme_numbers
from lissom.launch.workspace import Workspace, crowded
from lissom.lie.arrays import se3_tangent, se3_tangent_inverse
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED

_OF_SMALL = 1e-3  # absolute tolerance, of the relative one


@final
@dataclass(frozen=True)
class Path:
    """States (n, steps + 1, ...) of n motions at the ends of their steps, the start first.

    Fields:
        first: number of the first step since t = 0. q, v, a, ahead, force: as in StepState. u: inputs of each step
        (n, steps, nu). left: Δ, the rate of Δ and a of the stages before the last one, (n, steps, stages − 1, 3, nv).
    """

    first: int
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    ahead: np.ndarray
    force: np.ndarray
    u: np.ndarray
    left: np.ndarray

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.u.shape[1]

    def part(self, start: int, stop: int) -> Path:
        """Some of the steps."""
        names = ("q", "v", "a", "ahead", "force")
        states = {name: getattr(self, name)[:, start : stop + 1] for name in names}
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
        """Steps with inputs u (n, steps, nu) from states q, v, a, ahead and force (n, ...); `tell` is called with how
        many there are.

        Raises:
            ConvergenceError: Newton's method found no step, with its time.
        """
        n, steps, _ = u.shape
        w = keeping_workspace(model, n, self.scheme)
        w.user = None  # whoever was here before finds no matrix of his own
        host, longest = w.host, w.host["inputs"].shape[1]
        small = _OF_SMALL * self.tolerance
        host["numbers"][:] = scheme_numbers(self.scheme, self.tolerance, (small, small), False, ORDER_SHARE)
        host["counts"][:], host["pause"][:], host["pace"][:], host["h"][:] = 0, 0, 0.0, self.dt
        for name in ("q", "v", "a", "ahead", "force"):
            host[name][:] = begin[name]
        host["before"][:], host["force_before"][:] = begin["a"], begin["force"]
        sizes = {"q": model.nq, "v": model.nv, "a": model.nv, "ahead": model.nv, "force": model.n_rows}
        out = {name: np.concatenate([begin[name][:, None], np.zeros((n, steps, k))], 1) for name, k in sizes.items()}
        before = len(self.scheme.stages) - 1
        left = np.zeros((n, steps, before, 3, model.nv))
        for start in range(0, steps, longest):
            many = min(longest, steps - start)
            rows = self._window(model, w, u[:, start : start + many], first + start)
            tell(first + start + many)
            at = 0
            for name, k in sizes.items():
                out[name][:, start + 1 : start + many + 1] = rows[..., at : at + k]
                at += k
            if before:
                kept = host["left"].reshape(n, -1, before, 3, model.nv)
                left[:, start : start + many] = kept[:, :many]
        return Path(first, **out, u=u, left=left)

    def _window(self, model: Model, w: Workspace, u: np.ndarray, first: int) -> np.ndarray:
        """Rows (q, v, a, â, λ) that so many steps leave as there are inputs."""
        host, many, stages = w.host, u.shape[1], len(self.scheme.stages)
        put_times(model, w, self.times(first, many).ravel().tolist())
        put_inputs(w, np.repeat(u, stages, axis=1), stages)
        host["counts"][:, 0], host["span"][:] = 0, (0, many, 0)
        w.run()
        done = host["counts"][:, 0]
        if (done < many).any():
            i = int(np.argmin(done))
            if w.status[i] == STATUS_CROWDED:
                raise crowded(model)
            where = f"instance {i} of {len(u)}: " if len(u) > 1 else ""
            raise ConvergenceError(
                f"{where}rollout by {self.scheme.name} stopped at t={self.dt * (first + int(done[i])):g} s: Newton's "
                "method finds no step; take a shorter dt, or one that the stiffest part of the motion allows"
            )
        return host["out"].reshape(len(u), -1, host["out"].shape[1] // host["h"][:, 1:].shape[1])[:, :many]


@final
@dataclass(frozen=True)
class StageStates:
    """The state at the end of each stage of a path, rows of motion after motion, step by step.

    Fields:
        q, v, a, u, force, t: of each. move, rate: Δ and its rate, where poses are stored.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    force: np.ndarray | None
    t: np.ndarray
    move: np.ndarray | None
    rate: np.ndarray | None


def stage_states(model: Model, stepping: Stepping, path: Path) -> StageStates:
    """The states of all stages. Forces of loops in stages before the last one are not kept by the steps: None."""
    n, steps, before = path.left.shape[:3]
    start, has_groups = path.q[:, :-1], bool(groups(model))
    move = rate = None
    v, a = path.v[:, 1:, None], path.a[:, 1:, None]
    q = path.q[:, 1:, None]
    if has_groups:
        move = difference(model, start, path.q[:, 1:])[:, :, None]
        rate = over_groups(model, move, v, invert=True) if stepping.scheme.follows_rates else v
    if before:
        moves, rates, found = (path.left[:, :, :, k] for k in range(3))
        speeds = over_groups(model, moves, rates) if has_groups and stepping.scheme.follows_rates else rates
        q = np.concatenate([integrate(model, start[:, :, None], moves), q], axis=2)
        v, a = np.concatenate([speeds, v], axis=2), np.concatenate([found, a], axis=2)
        if move is not None and rate is not None:
            move, rate = np.concatenate([moves, move], axis=2), np.concatenate([rates, rate], axis=2)
    times = np.broadcast_to(stepping.times(path.first, steps), (n, steps, before + 1))
    u = np.repeat(path.u.reshape(n * steps, -1), before + 1, axis=0)
    rows = [None if x is None else x.reshape(n * steps * (before + 1), -1) for x in (q, v, a, move, rate)]
    force = path.force[:, 1:].reshape(n * steps, -1) if not before else None
    return StageStates(rows[0], rows[1], rows[2], u, force, times.ravel(), rows[3], rows[4])  # pyright: ignore


def over_groups(model: Model, move: np.ndarray, x: np.ndarray, *, invert: bool = False) -> np.ndarray:
    """T(Δ) x in the coordinates of stored poses, or T(Δ)⁻¹ x; the others stay."""
    out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, move.shape)))
    for _, j, free in groups(model):
        block = slice(j, j + (6 if free else 3))
        own = six(move[..., block])
        T = (se3_tangent_inverse if invert else se3_tangent)(own)
        many = block.stop - block.start
        out[..., block] = np.einsum("...ij,...j->...i", T[..., :many, :many], out[..., block])
    return out


def six(x: np.ndarray) -> np.ndarray:
    """Increments of a spherical joint as those of a free one that stays in place."""
    return x if x.shape[-1] == 6 else np.concatenate([x, np.zeros_like(x)], axis=-1)
