"""Many copies of a robot in motion at once, each from a start of its own and under inputs of its own, for learning and
control: steps of one size, all copies in one launch, in buffers that stay.

The steps are those of implicit_steps. Inputs are held from one call to the next. A copy whose Newton iteration finds no
step takes it in parts, in further launches that leave the others alone. What a copy does depends on nothing but its own
start and inputs: it is the same to the last bit alone, among others and in any place among them.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.dynamics.assembly import consistent_start
from lissom.dynamics.configuration import checked_configuration
from lissom.errors import ModelError
from lissom.integration.fused_runs import private_workspace, put_times
from lissom.integration.schemes import ORDER_SHARE, Scheme, generalized_alpha
from lissom.integration.starts import accelerations
from lissom.integration.step_rows import DONE, HAS_MATRIX, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks

RTOL, ATOL = 1e-5, 1e-7  # of what an iteration may leave
_PARTS = 4  # that a step is cut into,
_MOST_PARTS = _PARTS**4  # and these in turn
_TOGETHER = 64  # starts that are taken at once


@final
class Copies:
    """So many copies of a robot in motion.

    Args:
        copies: how many. dt: size of the steps [s]. steps: how many of them `advance` takes. scheme: None is
            generalised-α.
    Fields:
        q, v: where the copies are, (copies, nq) and (copies, nv); they change as `place` and `advance` are called.
    Raises:
        ModelError: an argument is wrong, or something needs Python, the time, or a memory from one step to the next.
    """

    def __init__(
        self, model: Model, copies: int = 1, *, dt: float, steps: int = 1, scheme: Scheme | None = None
    ) -> None:
        self.model, self.n = _checked(model), checks.integer(copies, "copies", least=1)
        self.dt = checks.number(dt, "dt", above=0.0)
        self.steps = checks.integer(steps, "steps", least=1)
        self.w = private_workspace(model, self.n, max(self.steps, _PARTS))
        host, project = self.w.host, model.n_rows > 0
        host["numbers"][:] = scheme_numbers(scheme or generalized_alpha(), RTOL, (ATOL, ATOL), project, ORDER_SHARE)
        put_times(model, self.w, [0.0] * len(host["load"]))
        self.q, self.v, self._u = host["q"], host["v"], host["inputs"]
        self._counts, self._span, self._h = host["counts"], host["span"], host["h"]
        self._all, self._together = np.arange(self.n), min(self.n, _TOGETHER)
        self._h[:] = self.dt

    def place(self, which: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Put copies (k,) to states (k, ...), moved onto loops, at which inputs (k, nu) act.

        Raises:
            ShapeError: the argument, the expected and the received shape. ModelError: a state has no acceleration.
        """
        model, which = self.model, np.asarray(which, dtype=int)
        q, v = checked_configuration(model, "q", q).copy(), stack("v", v, model.nv).copy()
        if model.n_rows:
            for k in range(len(which)):
                q[k], v[k] = consistent_start(model, q[k], v[k])
        a, force = self._accelerations(q, v, stack("u", u, model.nu))
        self._put(which, {"q": q, "v": v, "a": a, "ahead": a, "force": force})
        self._h[which, 0] = 0.0

    def _accelerations(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of any number of states, in launches of one size, as others would be recorded anew each time."""
        a, force = np.zeros_like(v), np.zeros((len(q), self.model.n_rows))
        for first in range(0, len(q), self._together):
            some = np.minimum(np.arange(first, first + self._together), len(q) - 1)
            a[some], force[some] = accelerations(self.model, 0.0, q[some], v[some], u[some])
        return a, force

    def advance(self, u: np.ndarray, rests: np.ndarray | None = None) -> np.ndarray:
        """Take the steps under inputs u (copies, nu) that are held, but for copies that rest (copies,); which copies
        (k,) could not, which mostly is none. These stay where Newton's method found nothing."""
        stages = self._u.shape[2] // max(self.model.nu, 1)
        for stage in range(stages):
            self._u[:, :, stage * self.model.nu : (stage + 1) * self.model.nu] = u[:, None]
        self._h[:, 1 : self.steps + 1] = self.dt
        self._counts[:, DONE], self._span[:, 1] = 0, self.steps
        if rests is not None:
            self._span[rests, 1] = 0
        self.w.run()
        left = self._span[:, 1] - self._counts[:, DONE]
        self._h[self._counts[:, DONE] > 0, 0] = self.dt
        return self._cut(left) if left.any() else self._all[:0]

    def _cut(self, left: np.ndarray) -> np.ndarray:
        """Take in parts the steps (copies,) that some copies have left to do; which of them remain."""
        behind, parts = np.flatnonzero(left), np.ones(self.n, dtype=int)
        failed, lost = behind, []
        while len(behind):
            self._back(failed)
            parts[failed] *= _PARTS
            left[failed] *= _PARTS
            lost.append(behind[parts[behind] > _MOST_PARTS])
            behind = behind[parts[behind] <= _MOST_PARTS]
            many = np.minimum(left[behind], self._h.shape[1] - 1)
            self._h[behind, 1:] = (self.dt / parts[behind])[:, None]
            self._counts[:, DONE], self._span[:, 1] = 0, 0
            self._span[behind, 1] = many
            self.w.run()
            reached = self._counts[behind, DONE]
            self._h[behind[reached > 0], 0] = self._h[behind[reached > 0], 1]
            left[behind] -= reached
            failed = behind[reached < many]
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
    """The model, if its steps need nothing but the state and the inputs."""
    where = f"robot {model.name!r}"
    checks.require(not model.calls_python, where, "must need kernels alone for many steps at once", "Python functions")
    checks.require(not model.n_motions, where, "must have no prescribed motion, as copies have times of their own",
                   model.n_motions)  # fmt: skip
    checks.require(not model.loads.varies, where, "must have loads and currents that do not vary in time, as copies "
                   "have times of their own", "others")  # fmt: skip
    if model.surroundings.sticks:
        name = model.surroundings.sticking[0]
        raise ModelError(f"contact {name!r}: stick_stiffness must be 0 for copies, since anchors remember")
    return model
