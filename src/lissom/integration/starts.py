"""The states at t = 0 that implicit steps go on from, of one motion or of many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.configuration import integrate
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics
from lissom.errors import of_instance
from lissom.integration.schemes import Scheme
from lissom.launch.cores import states_together
from lissom.launch.workspace import Workspace
from lissom.model.model import Model

_RESOLVED = 0.25  # change of the acceleration in a step, over the acceleration, that a lead may have

Inputs = Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def starting_accelerations(
    model: Model,
    scheme: Scheme,
    q: np.ndarray,
    v: np.ndarray,
    z: np.ndarray,
    inputs: Inputs,
    rate: Inputs,
    h: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """a (n, nv), â (n, nv), the forces of loops (n, n_rows) and the size (n,) of a step before the start, of states on
    their prescribed motions; inputs and rate are functions of t and of rows of q, v and z.

    With loops, and a size h of the steps to come, â runs ahead of a by its lead times da/dt, without which multipliers
    begin with an error of first order; where a step of h does not resolve da/dt, â stays at a.
    """
    a, force = accelerations(model, 0.0, q, v, inputs(0.0, q, v, z))
    sizes = np.zeros(len(q))
    if not model.n_rows or h is None:
        return a, a, force, sizes
    part, later, slope = 1e-3 * h, [], rate(0.0, q, v, z)
    for ahead in (part, 2.0 * part):
        moved = integrate(model, q, ahead * v + 0.5 * ahead**2 * a)
        there = on_motion(model, ahead, moved, v + ahead * a)
        u = inputs(ahead, *there, z + ahead * slope)
        later.append(accelerations(model, ahead, *there, u)[0])
    change = scheme.lead * h * (4.0 * later[0] - later[1] - 3.0 * a) / (2.0 * part)
    scale = model.by_row(lambda one: one.dofs.scale, len(q))
    size, most = (np.max(np.abs(x) / scale, axis=1, initial=0.0) for x in (change, a))
    is_resolved = size <= _RESOLVED * most
    sizes[is_resolved] = h
    return a, np.where(is_resolved[:, None], a + change, a), force, sizes


def accelerations(model: Model, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forward dynamics of states (n, ...), and the forces of loops."""
    n = len(q)
    a, force = np.zeros((n, model.nv)), np.zeros((n, model.n_rows))
    many = states_together()
    for first in range(0, n, many):
        some = slice(first, first + many)
        w = run_forward_dynamics(model.some(some, n), q[some], v[some], u[some], t)
        if w.status.any():
            k = first + int(np.flatnonzero(w.status)[0])
            with of_instance(k, n):
                one = model.one(k, n)
                _raise(one, run_forward_dynamics(one, q[k : k + 1], v[k : k + 1], u[k : k + 1], t))
        a[some], force[some] = w.host["a"], w.host["force"]
    return a, force


def _raise(model: Model, w: Workspace) -> None:
    """Say why a state has no acceleration."""
    raise_if_massless(model, w)
    w.raise_for_status()
