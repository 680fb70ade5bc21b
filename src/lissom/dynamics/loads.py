"""What kernels read of the loads: wrenches of point loads and of Python forces, then the current and the time."""

from __future__ import annotations

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import node_motion
from lissom.errors import ShapeError, check_kept
from lissom.launch.workspace import Workspace
from lissom.model.model import Model

Times = float | np.ndarray  # one for all instances, or one for each
_DIFFERENCE_STEP = 6e-6


def load_rows(model: Model, t: float, factor: float = 1.0) -> np.ndarray:
    """What kernels read for time t, with forces times a factor, shape (n_load_rows, 6) [N·m, N]; zeros where a Python
    force stands."""
    return load_table(model, [t], factor)[0]


def load_table(model: Model, times: list[float], factor: float = 1.0) -> np.ndarray:
    """The same for many times, shape (n_times, n_load_rows, 6)."""
    rows = np.zeros((len(times), model.n_load_rows, 6))
    for k, wrench in enumerate(model.loads.wrench):
        rows[:, k] = wrench.over(np.array(times)) if len(times) > 1 else [wrench(t) for t in times]
    rows *= factor
    if model.has_surroundings:
        rows[:, -2:] = [model.surroundings.rows(t) for t in times]
    return rows


def rows_of_times(model: Model, times: list[float], factor: float = 1.0) -> np.ndarray:
    """What `load_table` gives, functions being asked once about each time."""
    some = {t: k for k, t in enumerate(dict.fromkeys(times))}
    table = load_table(model, list(some), factor)
    return table if len(some) == len(times) else table[[some[t] for t in times]]


def put_loads(model: Model, w: Workspace, t: Times, factor: float = 1.0) -> None:
    """Fill the `load` buffer (batch, n_load_rows, 6) of a workspace, whose q and v are in it, for time t or a time for
    each instance."""
    if not model.n_load_rows:
        return
    if model.models:
        _put_loads_of_models(model, w, t, factor)
        return
    if model.loads.varies:
        w.host["load"][:] = rows_of_times(model, np.atleast_1d(t).tolist(), factor)
    elif factor == 1.0:
        w.host["load"][:] = model.cached(("steady loads",), lambda: load_table(model, [0.0]))
    else:
        w.host["load"][:] = load_table(model, [0.0], factor)
    if model.surroundings.called:
        v = w.host["v"] if "v" in w.host else np.zeros((w.batch, model.nv))
        first, wrenches = len(model.loads.wrench), called_wrenches(model, w.host["q"], v, t)
        w.host["load"][:, first : first + len(model.surroundings.called)] = factor * wrenches


def _put_loads_of_models(model: Model, w: Workspace, t: Times, factor: float) -> None:
    """The same for a batch of models, none of which calls Python at a state."""
    own = w.batch // len(model.models)
    times = np.broadcast_to(t, w.batch).reshape(len(model.models), own)
    for k, one in enumerate(model.models):
        some = times[k].tolist() if one.loads.varies else [0.0]
        w.host["load"][k * own : (k + 1) * own] = rows_of_times(one, some, factor)


def called_wrenches(model: Model, q: np.ndarray, v: np.ndarray, t: Times) -> np.ndarray:
    """Wrenches of the users' Python forces in the body's axes at states (n, ...), shape (n, n_called, 6).

    Raises:
        ShapeError: the force, the expected and the received shape.
    """
    called = model.surroundings.called
    poses, twists = node_motion(model, q, v)
    times = np.broadcast_to(np.asarray(t, dtype=np.float64), len(q)).tolist()
    out = np.zeros((len(q), len(called), 6))
    for k, (name, function, node, G, weight) in enumerate(called):
        for n, time in enumerate(times):
            given = function(time, poses[n, node] @ G, _carried(G, twists[n, node]))
            check_kept(f"force {name!r} at t={time:g}", given)
            value = np.asarray(given, dtype=np.float64)
            if value.shape != (6,) or not np.isfinite(value).all():
                raise ShapeError(f"force {name!r} at t={time:g}: expected a finite wrench of shape (6,), got {value!r}")
            out[n, k] = weight * value
    return out


def _carried(G: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """A body twist seen in a frame G of the body."""
    w = twist[:3]
    return np.concatenate([G[:3, :3].T @ w, G[:3, :3].T @ (twist[3:] + np.cross(w, G[:3, 3]))])


def called_response(model: Model, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """What Python forces add to the derivatives of inverse dynamics at one state by changing, −Σ Jᵀ ∂F/∂q in the
    tangent space and −Σ Jᵀ ∂F/∂v, by central differences; each (nv, nv)."""
    n = model.nv
    moves, rest = _DIFFERENCE_STEP * np.diag(model.dofs.scale), np.zeros((2 * n, n))
    ends = np.vstack([moves, -moves])
    by_pose = called_wrenches(model, integrate(model, q, np.vstack([ends, rest])), v + np.vstack([rest, ends]), t)
    slopes = by_pose.reshape(2, 2, n, -1, 6)[:, 0] - by_pose.reshape(2, 2, n, -1, 6)[:, 1]
    slopes /= 2.0 * np.diag(moves)[:, None, None]
    _, twists = node_motion(model, np.broadcast_to(q, (n, model.nq)), np.eye(n))  # linear in v: the columns of J
    J = np.array([[_carried(G, row[node]) for _, _, node, G, _ in model.surroundings.called] for row in twists])
    by_q, by_v = -np.einsum("ikc,xjkc->xij", J, slopes)
    return by_q, by_v
