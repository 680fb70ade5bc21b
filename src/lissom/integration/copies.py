"""Many copies of a robot in motion at once, each from a start of its own and under inputs of its own, for learning and
control: steps of one size, all copies in one launch, in buffers that stay.

The steps are those of implicit_steps. Inputs are held from one call to the next. A copy whose Newton iteration finds no
step takes it in parts, in further launches that leave the others alone. Time is a copy's own, and begins where it is
placed; so do the anchors of contacts that stick. What a copy does depends on nothing but its own model, start and
inputs: it is the same to the last bit alone, among others and in any place among them.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.dynamics.assembly import consistent_start, on_motion
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.contacts import contact_anchors
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.integration.fused_runs import private_workspace, put_times
from lissom.integration.own_times import OwnTimes
from lissom.integration.schemes import ORDER_SHARE, Scheme, generalized_alpha
from lissom.integration.starts import accelerations
from lissom.integration.step_rows import DONE, HAS_MATRIX, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks

RTOL, ATOL = 1e-5, 1e-7  # of what an iteration may leave
_PARTS = 4  # that a step is cut into,
_MOST_PARTS = _PARTS**6  # and these in turn
_TOGETHER = 64  # starts that are taken at once


@final
class Copies:
    """So many copies of a robot in motion.

    Args:
        model: the robot, or what the models of a batch have in common, of which each has as many copies, one model
            behind the other. copies: how many. dt: size of the steps [s]. steps: how many of them `advance` takes.
            scheme: None is generalised-α.
    Fields:
        q, v: where the copies are, (copies, nq) and (copies, nv); they change as `place` and `advance` are called.
    Raises:
        ModelError: an argument is wrong, or something needs Python functions of the state.
    """

    def __init__(
        self, model: Model, copies: int = 1, *, dt: float, steps: int = 1, scheme: Scheme | None = None
    ) -> None:
        self.model, self.n = _checked(model), checks.integer(copies, "copies", least=1)
        self.dt = checks.number(dt, "dt", above=0.0)
        self.steps = checks.integer(steps, "steps", least=1)
        scheme, most, alike = scheme or generalized_alpha(), max(self.steps, _PARTS), not OwnTimes.are_needed(model)
        self.w = private_workspace(model, self.n, most, 0 if alike else OwnTimes.rows(scheme, self.n, most))
        host, project = self.w.host, model.n_rows > 0
        host["numbers"][:] = scheme_numbers(scheme, RTOL, (ATOL, ATOL), project, ORDER_SHARE)
        self._times: OwnTimes | None = None
        if alike:
            put_times(model, self.w, [0.0] * len(host["load"]))
        else:
            self._times = OwnTimes(model, self.w, scheme, self.n, most, self.dt, self.steps)
        self.q, self.v, self._u = host["q"], host["v"], host["inputs"]
        self._counts, self._span, self._h = host["counts"], host["span"], host["h"]
        self._all, self._together, self._taken = np.arange(self.n), min(self.n, _TOGETHER), np.zeros(self.n, dtype=int)
        self._h[:] = self.dt

    def place(self, which: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Put copies (k,) to states (k, ...) at time zero, moved onto loops and prescribed motions, at which inputs
        (k, nu) act; contacts that stick begin to hold there.

        Raises:
            ShapeError: the argument, the expected and the received shape. ModelError: a state has no acceleration.
        """
        model, which = self.model, np.asarray(which, dtype=int)
        q, v = checked_configuration(model, "q", q).copy(), stack("v", v, model.nv).copy()
        own = [model.one(k, self.n) for k in which.tolist()]
        for k, one in enumerate(own if model.n_rows or model.n_motions else ()):
            q[k], v[k] = consistent_start(one, *on_motion(one, 0.0, q[k], v[k]))
        a, force = self._accelerations(which, q, v, stack("u", u, model.nu))
        self._put(which, {"q": q, "v": v, "a": a, "ahead": a, "force": force})
        self._h[which, 0], self._taken[which] = 0.0, 0
        for k, one in enumerate(own if "anchor" in self.w.host else ()):
            self.w.host["anchor"][which[k]] = contact_anchors(one, q[k], v[k]).reshape(-1, 3)

    def _accelerations(
        self, which: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of any number of states, in launches of one size, as others would be recorded anew each time; of a
        batch of models in one launch of all copies, in which the others are where they are."""
        if self.model.models:
            return self._of_models(which, q, v, u)
        a, force = np.zeros_like(v), np.zeros((len(q), self.model.n_rows))
        for first in range(0, len(q), self._together):
            some = np.minimum(np.arange(first, first + self._together), len(q) - 1)
            a[some], force[some] = accelerations(self.model, 0.0, q[some], v[some], u[some])
        return a, force

    def _of_models(
        self, which: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = self.q.copy(), self.v.copy(), np.zeros((self.n, self.model.nu))
        for all_rows, own in zip(rows, (q, v, u)):
            all_rows[which] = own
        w = run_forward_dynamics(self.model, *rows, 0.0)
        for k in np.flatnonzero(w.status[which])[:1].tolist():
            some = slice(k, k + 1)
            accelerations(self.model.one(int(which[k]), self.n), 0.0, q[some], v[some], u[some])  # says what is wrong
        return w.host["a"][which], w.host["force"][which]

    def advance(self, u: np.ndarray, rests: np.ndarray | None = None) -> np.ndarray:
        """Take the steps under inputs u (copies, nu) that are held, but for copies that rest (copies,); which copies
        (k,) could not, which mostly is none. These stay where Newton's method found nothing."""
        stages = self._u.shape[2] // max(self.model.nu, 1)
        for stage in range(stages):
            self._u[:, :, stage * self.model.nu : (stage + 1) * self.model.nu] = u[:, None]
        self._h[:, 1 : self.steps + 1] = self.dt
        self._counts[:, DONE], self._span[:, 1] = 0, self.steps
        moving = self._all if rests is None else np.flatnonzero(~rests)
        if rests is not None:
            self._span[rests, 1] = 0
        if self._times is not None:
            self._times.put_steps(moving, self._taken[moving])
        self.w.run()
        left = self._span[:, 1] - self._counts[:, DONE]
        self._h[self._counts[:, DONE] > 0, 0] = self.dt
        self._taken[moving] += self.steps
        return self._cut(left) if left.any() else self._all[:0]

    def _cut(self, left: np.ndarray) -> np.ndarray:
        """Take in parts the steps (copies,) that some copies have left to do; which of them remain. What fails is cut
        in parts; what follows these is as long as before."""
        behind, parts = np.flatnonzero(left), np.ones(self.n, dtype=int)
        t = self.dt * (self._taken - left)
        failed, lost = behind, []
        while len(behind):
            self._back(failed)
            parts[failed] *= _PARTS
            left[failed] *= _PARTS
            lost.append(behind[parts[behind] > _MOST_PARTS])
            behind = behind[parts[behind] <= _MOST_PARTS]
            many = np.where(parts[behind] > 1, (left[behind] - 1) % _PARTS + 1, left[behind])
            sizes = self.dt / parts[behind]
            self._h[behind, 1:] = sizes[:, None]
            if self._times is not None:
                self._times.put_parts(behind, t[behind], sizes, many)
            self._counts[:, DONE], self._span[:, 1] = 0, 0
            self._span[behind, 1] = many
            self.w.run()
            reached = self._counts[behind, DONE]
            self._h[behind[reached > 0], 0] = self._h[behind[reached > 0], 1]
            left[behind] -= reached
            t[behind] += reached * sizes
            failed, whole = behind[reached < many], behind[(reached == many) & (parts[behind] > 1)]
            whole = whole[left[whole] % _PARTS == 0]
            parts[whole] //= _PARTS
            left[whole] //= _PARTS
            behind = behind[left[behind] > 0]
        return np.concatenate(lost)

    def _back(self, which: np.ndarray) -> None:
        """Put copies whose iteration failed back to the start of the step."""
        host = self.w.host
        names = {"q": "start", "v": "v_start", "a": "before", "ahead": "ahead_start", "force": "force_before"}
        self._put(which, {name: host[source][which] for name, source in names.items()})

    def _put(self, which: np.ndarray, state: dict[str, np.ndarray]) -> None:
        host = self.w.host
        for name, value in (state | {"before": state["a"], "force_before": state["force"]}).items():
            host[name][which] = value
        self._counts[which[:, None], [HAS_MATRIX, NEW_FIRST, STEADY, SLOW_IS_ENOUGH]] = 0


def _checked(model: Model) -> Model:
    """The model, if its steps need kernels alone."""
    where = f"robot {model.name!r}"
    checks.require(not model.calls_python, where, "must need kernels alone for many steps at once", "Python functions")
    return model
