"""Newton's method for equilibria with Python between its parts: where forces call it, and for shortest steps.

The parts are those of newton_stages, run by the kernel of newton_kernel.
"""

from __future__ import annotations

import numpy as np

from lissom.dynamics.python_forces import put_python_forces, python_response
from lissom.launch.loop_buffers import chosen_rows
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.model.plausibility import is_folded
from lissom.passes.scratch import STATUS_CROWDED
from lissom.statics.neutral_step import SUSPECT, shortest_step
from lissom.statics.newton_kernel import Sought, newton_workspace
from lissom.statics.newton_stages import (
    ASTRAY,
    ASTRAY_BELOW,
    BORDER,
    CONVERGED,
    LIMIT,
    LOOKED_AT_FROM,
    RESIDUAL,
    SHORTEST,
    SINGULAR,
    SOLVE,
    UNKNOWNS,
)

_BEYOND = 1e150  # residual of a point to which no step may lead: matter is turned inside out there


def newton_in_python(
    model: Model, q: np.ndarray, force: np.ndarray, sought: Sought, *, shortest: bool = True
) -> tuple[Workspace, int]:
    """The iteration of newton_in_kernel for one robot, with Python forces; and with the shortest steps where the
    stiffness is singular to rounding, if nothing drives what nothing holds there. Its workspace behind the last one,
    and how it ended."""
    w = newton_workspace(model, q[None], force[None], sought)
    host, matrix, right = w.host, np.zeros(0), np.zeros(0)
    if shortest:
        host["numbers"][[ASTRAY_BELOW, LOOKED_AT_FROM]] = SUSPECT, 0.0
    part = _run(w)
    while part < CONVERGED:
        if part == SOLVE:
            matrix, right = host["matrix"].copy(), host["unknown"].copy()
        part = _gone_on(model, w, part, sought)
        if shortest and part in (SINGULAR, ASTRAY) and not host["notes"][0, SHORTEST]:
            part = _shortened(model, w, matrix, right, part)
    return w, part


def bordered_at(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> tuple[np.ndarray, float]:
    """Which rows of loops an iteration from q would keep, rising, and its unit σ of their forces."""
    slack = np.zeros(model.n_rows)
    sought = Sought(u[None], t, 1.0, slack, 1.0, 1)
    w = newton_workspace(model, q[None], slack[None], sought)
    part = _run(w)
    while part < SOLVE:
        part = _gone_on(model, w, part, sought)
    w.raise_for_status()
    return chosen_rows(w), float(w.host["sigma"][0])


def _gone_on(model: Model, w: Workspace, part: int, sought: Sought) -> int:
    """Fill in what a part needs of Python, and run from there to the next pause; which part comes then, or how it
    ended."""
    q, v, u = (w.host[name][0] for name in ("q", "v", "u"))
    t, factor = sought.t, sought.factor
    if part == RESIDUAL:
        put_python_forces(model, w.host["extra"][0], w.host["load"], q, v, u, t, factor, sought.hold)
        if not np.array_equal(q, w.host["start"][0]) and is_folded(model, q):
            w.host["extra"][0] = _BEYOND
    elif part == BORDER and model.calls_python:
        K = w.host["K"][0].reshape(model.nv, -1)[:, : model.nv]
        K += python_response(model, q, v, u, t, factor)[0]
    return _run(w)


def _run(w: Workspace) -> int:
    """Run from the part that comes next to the next pause, or to the end; which part comes then, or how it ended."""
    w.host["pause"][0, 0] = 1
    w.run()
    if w.status[0] == STATUS_CROWDED:
        w.raise_for_status()
    return int(w.host["pause"][0, 1])


def _shortened(model: Model, w: Workspace, matrix: np.ndarray, right: np.ndarray, part: int) -> int:
    """Let the iteration go on by shortest steps behind `part`, or as it is; which part comes next, or how it ended."""
    host, n = w.host, int(w.host["notes"][0, UNKNOWNS])
    width = matrix.size // (model.nv + model.n_rows)
    square = matrix.reshape(-1, width)[:n, :n]
    factors = shortest_step(model, host["own"][0], square, right[0, :n])
    if factors is not None:
        for name, factor in zip(("matrix", "factors"), factors):
            host[name].reshape(-1, width)[:n, :n] = factor
        host["unknown"][:], host["notes"][0, SHORTEST] = right, 1.0
    elif part == SINGULAR:
        return SINGULAR
    host["pause"][0, 1] = LIMIT if factors is None else SOLVE
    return _run(w)
