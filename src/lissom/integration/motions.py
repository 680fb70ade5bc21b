"""What a method leaves at the times asked for, made into the arrays of trajectories, of one motion or of many at once.

A state x is (q, v, a, λ of loops), or (q, v) where a and λ follow from these. All that is done here is done to each
motion as if it were alone, so that a motion of a batch is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lissom.dynamics.assembly import on_motion, onto_loops
from lissom.dynamics.configuration import unit_quaternions
from lissom.dynamics.constraints import least_norm, minimum_norm
from lissom.dynamics.forward_dynamics import run_forward_dynamics, run_residual
from lissom.launch.cores import states_together
from lissom.launch.workspace import parts
from lissom.model.model import Model


def motion_arrays(model: Model, t: np.ndarray, x: np.ndarray, shown: np.ndarray) -> dict[str, np.ndarray]:
    """q, v, a, u, multipliers and z (n, n_times, ...) of n motions with states x and (u, z) at common times."""
    u, z = shown[..., : model.nu], shown[..., model.nu :]
    q, v, a, force = np.split(x, np.cumsum([model.nq, model.nv, model.nv]), axis=-1)
    q = unit_quaternions(model, q)
    if a.shape[-1] < model.nv:
        q, v = on_motion(model, t, q, v)
        q, v = onto_loops(model, q, v)
        a, force = accelerations(model, t, q, v, u)
    else:
        force = minimum_norm(model, q, force)
    multipliers = _multipliers(model, t, q, v, a, u, force)
    return {"q": q, "v": v, "a": a, "u": u, "multipliers": multipliers, "z": z}


def _parts(n: int, times: int) -> Iterator[slice]:
    """Slices of times at which n motions are looked at together."""
    return parts(times) if n == 1 else parts(times, max(1, states_together() // n))


def _rows(x: np.ndarray, part: slice) -> np.ndarray:
    """An array (n, n_times, ...) at some times as rows, motion by motion."""
    some = x[:, part]
    return some.reshape(some.shape[0] * some.shape[1], some.shape[2])


def accelerations(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations of motions (n, n_times, ...), and the forces of loops of least norm."""
    n = len(q)
    a, force = np.zeros((n, len(t), model.nv)), np.zeros((n, len(t), model.n_rows))
    for part in _parts(n, len(t)):
        w = run_forward_dynamics(model, _rows(q, part), _rows(v, part), _rows(u, part), np.tile(t[part], n))
        a[:, part] = w.host["a"].reshape(a[:, part].shape)
        if model.n_rows:
            force[:, part] = least_norm(model, w, w.host["force"]).reshape(force[:, part].shape)
    return a, force


def _multipliers(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray
) -> np.ndarray:
    """Forces of prescribed motions, which are what is left of the equation of motion in their rows, and of loops."""
    if not model.n_motions:
        return force
    n = len(q)
    left = np.zeros((n, len(t), model.nv))
    for part in _parts(n, len(t)):
        x, v_x, a_x, u_x = (_rows(x, part) for x in (q, v, a, u))
        w = run_residual(model, x, v_x, a_x, u_x, np.tile(t[part], n), 1.0, _rows(force, part))
        left[:, part] = w.host["tau"].reshape(left[:, part].shape)
    return np.concatenate([left[..., model.prescribed.dof], force], axis=-1)
