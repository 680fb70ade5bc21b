"""What a method leaves at the times asked for, made into the arrays of trajectories, of one motion or of many at once.

A state x is (q, v, a, λ of loops), or (q, v) where a and λ follow from these. All that is done here is done to each
motion as if it were alone, so that a motion of a batch is the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.assembly import on_motion, onto_loops
from lissom.dynamics.configuration import unit_quaternions
from lissom.dynamics.constraints import least_norm, minimum_norm
from lissom.dynamics.forward_dynamics import run_forward_dynamics, run_residual
from lissom.launch.workspace import parts
from lissom.model.model import Model

_ROWS = 512  # of many motions that are looked at together


def motion_arrays(model: Model, t: np.ndarray, x: np.ndarray, shown: np.ndarray) -> dict[str, np.ndarray]:
    """q, v, a, u, multipliers and z (n, n_times, ...) of n motions with states x and (u, z) at common times."""
    u, z = shown[..., : model.nu], shown[..., model.nu :]
    q, v, a, force = np.split(x, np.cumsum([model.nq, model.nv, model.nv]), axis=-1)
    q = unit_quaternions(model, q)
    if a.shape[-1] < model.nv:
        q, v = _on_motion(model, t, q, v)
        q, v = onto_loops(model, q, v)
        a, force = accelerations(model, t, q, v, u)
    else:
        force = minimum_norm(model, q, force)
    multipliers = _multipliers(model, t, q, v, a, u, force)
    return {"q": q, "v": v, "a": a, "u": u, "multipliers": multipliers, "z": z}


def _on_motion(model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if model.n_motions:
        rows = [on_motion(model, time, q[:, k], v[:, k]) for k, time in enumerate(t.tolist())]
        q, v = (np.stack(x, axis=1) for x in zip(*rows))
    return q, v


def _by_time(t: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays (n, n_times, ...) as rows, those of one time behind each other, and the time of each."""
    n = len(arrays[0])
    rows = [np.swapaxes(x, 0, 1).reshape(n * len(t), x.shape[-1]) for x in arrays]
    return [*rows, np.repeat(t, n)]


def _by_motion(rows: np.ndarray, n: int) -> np.ndarray:
    """Rows of _by_time as an array (n, n_times, ...)."""
    times = len(rows) // n if n else 0
    return np.ascontiguousarray(np.swapaxes(rows.reshape(times, n, rows.shape[-1]), 0, 1))


def accelerations(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations of motions (n, n_times, ...), and the forces of loops of least norm."""
    n = len(q)
    q, v, u, t = _by_time(t, q, v, u)
    a, force = np.zeros((len(t), model.nv)), np.zeros((len(t), model.n_rows))
    for part in _parts(n, len(t)):
        w = run_forward_dynamics(model, q[part], v[part], u[part], t[part])
        a[part], force[part] = w.host["a"], least_norm(model, w, w.host["force"]) if model.n_rows else 0.0
    return _by_motion(a, n), _by_motion(force, n)


def _parts(n: int, rows: int) -> Any:
    return parts(rows) if n == 1 else parts(rows, _ROWS)


def _multipliers(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray
) -> np.ndarray:
    """Forces of prescribed motions, which are what is left of the equation of motion in their rows, and of loops."""
    if not model.n_motions:
        return force
    loops, n = force, len(q)
    q, v, a, u, force, t = _by_time(t, q, v, a, u, force)
    left = np.zeros((len(t), model.nv))
    for part in _parts(n, len(t)):
        w = run_residual(model, q[part], v[part], a[part], u[part], t[part], 1.0, force[part])
        left[part] = w.host["tau"]
    return np.concatenate([_by_motion(left[:, model.prescribed.dof], n), loops], axis=-1)
