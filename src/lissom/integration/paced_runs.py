"""Adaptive implicit steps that a kernel takes by itself, as paced_steps says, and what stands in its buffers before.

A launch ends at a stop, where it has left as many steps as there is room for, or where no step is found. What it goes
through without touching it (encounters) is found behind: the steps from there on are taken back, and again with a first
one that ends before.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.dynamics.loads import load_rows
from lissom.integration.fused_runs import LONGEST_RUN, steps_workspace
from lissom.integration.inputs import Constant, knots_and_pieces
from lissom.integration.paced_steps import LEAST, MOST, NEXT, NOW, STOP
from lissom.integration.schemes import Scheme, StepState
from lissom.integration.state import StateDerivative
from lissom.integration.step_rows import DONE, EVALUATIONS, MATRICES, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers
from lissom.model.model import Model
from lissom.sweep.scratch import STATUS_CROWDED


@final
class PacedSteps:
    """Runs of adaptive steps of one scheme for one robot; counts evaluations in `f`.

    Fields:
        size: of the next step [s]. is_stuck: whether the last run found no step that is long enough.
    """

    def __init__(
        self, model: Model, f: StateDerivative, scheme: Scheme, rtol: float, atol: float, project: bool,
        least: float, most: float,
    ) -> None:  # fmt: skip
        self.model, self.f, self.scheme, self.least, self.most = model, f, scheme, least, most
        self.numbers = scheme_numbers(scheme, rtol, atol, project and model.n_rows > 0, None)
        self.size, self.is_stuck = least, False
        self.new_first = self.slow_is_enough = 0

    @staticmethod
    def can_run(model: Model, f: StateDerivative) -> bool:
        """Whether all that acts between two stops is known to the kernel."""
        acts = model.calls_python or model.loads.varies or model.n_motions > 0 or f.is_feedback
        return not acts and _inputs(f, model.nu) is not None

    def run(self, here: StepState, stop: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, StepState]:
        """Steps towards `stop`: the times reached (n,), rows (q, v, a, λ) and inputs there, and the last state."""
        model, nq, nv = self.model, self.model.nq, self.model.nv
        w = self._put(here, stop)
        w.run()
        host = w.host
        if w.status[0] == STATUS_CROWDED:
            w.raise_for_status()
        counts = host["counts"][0].tolist()
        done, self.new_first, self.slow_is_enough = counts[DONE], counts[NEW_FIRST], counts[SLOW_IS_ENOUGH]
        self.f.evaluations += counts[EVALUATIONS]
        self.f.jacobians += counts[MATRICES]
        times, sizes = host["times"][0, :done].copy(), host["h"][0, 1 : done + 1]
        self.size = float(host["pace"][0, NEXT])
        self.is_stuck = self.size < self.least
        host["pace"][0, STOP] = 0.0
        rows = host["out"][0].reshape(LONGEST_RUN, -1)[:done]
        stages = len(self.scheme.stages)
        shown = host["inputs"][0, :done, (stages - 1) * model.nu : stages * model.nu].copy()
        if done == 0:
            return times, rows, shown, here
        q, v, a, ahead, force = np.split(rows, np.cumsum([nq, nv, nv, nv]), axis=1)
        before = (a[-2].copy(), force[-2].copy()) if done > 1 else (here.a, here.force)
        end = (x[-1].copy() for x in (q, v, a, ahead))
        last = StepState(float(times[-1]), *end, float(sizes[-1]), force[-1].copy(), here.z, *before,
                         bool(counts[STEADY]))  # fmt: skip
        return times, np.hstack([q, v, a, force]), shown, last

    def _put(self, here: StepState, stop: float) -> Any:
        """Fill in where a run starts and what acts in it."""
        model, found = self.model, _inputs(self.f, self.model.nu)
        if found is None:
            raise RuntimeError("inputs of a run must be polynomials of time")
        knots, pieces = found
        w = steps_workspace(model, 1, len(knots))
        host, w.user = w.host, None
        host["knots"][:], host["pieces"][: len(pieces)] = np.inf, pieces
        host["knots"][: len(knots)] = knots
        host["numbers"][:], host["span"][0], host["pause"][:] = self.numbers, (0, LONGEST_RUN, 0), 0
        pace = host["pace"][0]
        pace[STOP], pace[NOW], pace[NEXT], pace[LEAST], pace[MOST] = stop, here.t, self.size, self.least, self.most
        host["h"][0, 0] = here.h
        for name in ("q", "v", "a", "ahead", "before", "force", "force_before"):
            host[name][0] = getattr(here, name)
        if model.n_load_rows:
            host["load"][0] = load_rows(model, 0.0)
        host["counts"][0] = 0, 0, 0, 0, self.new_first, here.is_steady, self.slow_is_enough
        return w


def _inputs(f: StateDerivative, nu: int) -> tuple[np.ndarray, np.ndarray] | None:
    """What drives the robot until the next sample of a controller, as polynomials."""
    function = f.law.feed if f.held is None else Constant(f.held)
    return None if function is None else knots_and_pieces(function, nu)
