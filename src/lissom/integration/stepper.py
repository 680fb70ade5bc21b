"""A motion that goes on as long as it is asked to, under inputs that are told on the way: for simulations that are
watched and touched while they run.

The steps are those of implicit_steps, all of one size, so that Newton's matrix is kept from one call to the next.
Inputs are those at the end of each step, which is right to second order where they change without a jump.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import input_rows
from lissom.dynamics.assembly import consistent_start, on_motion
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.contacts import contact_anchors
from lissom.integration.controllers import ControlLaw
from lissom.integration.fused_runs import LONGEST_RUN, FusedSteps
from lissom.integration.implicit_steps import ImplicitSteps
from lissom.integration.schemes import ORDER_SHARE, Scheme, StepState, generalized_alpha
from lissom.integration.starts import accelerations
from lissom.integration.state import StateDerivative
from lissom.integration.step_control import cut_step
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks

RTOL, ATOL = 1e-5, 1e-7  # of what an iteration may leave: far less than a picture shows


@final
class Stepper:
    """A robot in motion, which `advance` moves on.

    Args:
        q, v: start, shape (nq,) and (nv,); None is the neutral configuration, and rest. Moved onto loops and onto
            prescribed motions.
        u: inputs there, shape (nu,); None is zero. t: time of the start [s]. dt: size of the steps [s].
    Raises:
        ModelError, ShapeError: an argument is wrong, or q leaves a loop open.
    """

    def __init__(
        self,
        model: Model,
        q: Any = None,
        v: Any = None,
        u: Any = None,
        *,
        t: float = 0.0,
        dt: float,
        scheme: Scheme | None = None,
    ) -> None:
        self.dt = checks.number(dt, "dt", above=0.0)
        begin = model.neutral() if q is None else checked_configuration(model, "q", q)
        speed = np.zeros(model.nv) if v is None else stack("v", v, model.nv)
        begin, speed = consistent_start(model, *on_motion(model, t, begin, speed))
        self.model = model.anchored(contact_anchors(model, begin, speed)) if model.surroundings.sticks else model
        scheme = generalized_alpha() if scheme is None else scheme
        nothing = np.zeros(0)
        held = ControlLaw(lambda *_: np.zeros(model.nu), lambda *_: nothing, nothing, self.dt)
        self._f = StateDerivative(self.model, held)
        self._f.held, self._f.held_z = input_rows(model, u), nothing
        limits = RTOL, (ATOL, ATOL), True
        self._fused = FusedSteps(self.model, self._f, scheme, *limits)
        self._single = ImplicitSteps(self.model, self._f, scheme, *limits, ORDER_SHARE)
        a, force = (x[0] for x in accelerations(self.model, t, begin[None], speed[None], self._f.held[None]))
        self.state = StepState(t, begin, speed, a, a, 0.0, force, nothing, a, force)

    @property
    def matrices(self) -> int:
        """How often Newton's matrix was made."""
        return self._f.jacobians

    def advance(self, steps: int, u: Any = None) -> StepState:
        """Take so many steps under inputs u, shape (nu,), zero where there are none; the state they end in.

        Raises:
            ConvergenceError: at which time no step was found, the state being that before the steps.
        """
        self._f.held = input_rows(self.model, u)
        here, in_kernel = self.state, FusedSteps.can_run(self.model, self._f)
        ends = here.t + self.dt * np.arange(1, steps + 1)
        while len(ends):
            if in_kernel:
                done, _, here = self._fused.run(here, ends[:LONGEST_RUN])
                ends = ends[len(done) :]
                if len(done):
                    continue
            here = self._one(here, float(ends[0]), in_kernel)
            ends = ends[1:]
        self.state = here
        return here

    def _one(self, here: StepState, end: float, failed: bool) -> StepState:
        """One step, in parts where Newton's method needs them."""
        one = self._fused.step_to if failed else self._single.step_to
        here, parts = cut_step(self._single.scheme, one, here, end, self.dt, 0, failed)
        if parts > 1:
            self._fused.forget()
        return here
