"""Closing the loops of a description that is open: damped Gauss-Newton steps on the residuals.

    minimise |e + A_q δ|² + μ |δ|²_W,   W⁻¹ = S² / (1 + K S² / k)                                         (1)

in units S of each coordinate, where stiff coordinates count more: k is the stiffness of the softest. μ follows
Marquardt; rotations and displacements of e are weighed alike after division by the size of the robot.
Source: Boyer 2023 §X.C (the mounting phase); D. W. Marquardt, 1963.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from lissom.dynamics.configuration import checked_configuration, integrate
from lissom.dynamics.constraints import (
    SHUT,
    STILL,
    SWING,
    loop_residual,
    run_closing,
    run_constraints,
    run_residuals,
    warn_of_redundancy,
)
from lissom.dynamics.forward_dynamics import forward_dynamics, solves_closed
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.launch.cores import states_together
from lissom.launch.over_models import over_models
from lissom.launch.workspace import chosen_rows, parts
from lissom.model.model import Model
from lissom.robot import checks
from lissom.systems.bordered import solve_with_mass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_CLOSED = 1e-13  # [rad, m], where rounding allows
_CLOSED_ENOUGH = 1e-10
_MOST_STEPS = 200
_LONGEST = 0.5  # of one step, in units of each coordinate
_GIVEN_UP = 1e12
_OUTPUT_STEPS, _OUTPUT_CLOSED, _OUTPUT_STILL = 3, 1e-12, 1e-11  # [rad, m; rad/s, m/s]
_ASIDE = (0.02, 0.1, 0.3, 0.3, 1.0)  # moves of the start, in units of each coordinate
_LEAST_DAMPING = 1e-12
_OPEN = 1e-6  # residual from which on a start is called open [rad, m]

Step = Callable[[np.ndarray, np.ndarray, float], np.ndarray]  # δ from q, e and μ
Least = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@over_models("q0")
def assemble(
    model: Model, q0: ArrayLike | None = None, *, fixed: Iterable[str | int] = (), t: float = 0.0
) -> np.ndarray:
    """A configuration near q0 in which every loop is closed.

    Args:
        q0: start, shape (nq,); None is the neutral configuration.
        fixed: what keeps its place: names of links, for the coordinates of their joints, and indices of velocity
            coordinates. Prescribed coordinates are put where they are at time t and stay there.
        t: time of prescribed motions [s].
    Returns:
        q, shape (nq,). Soft coordinates move rather than stiff ones, and joints rather than rods. A RedundancyWarning
        says once for each model how many rows of its loops are independent there, if not all are.
    Raises:
        ConvergenceError: which loop stays open and by how much; carries the last configuration.
        ModelError: an unknown name or index in fixed. ShapeError: the argument, the expected and the received shape.
    Accuracy: residuals below 1e-10 rad and m, mostly 1e-13. Source: Boyer 2023 §X.C.
    """
    q = checked_configuration(model, "q0", model.neutral() if q0 is None else q0)
    if q.ndim != 1:
        raise ShapeError(f"q0: expected shape ({model.nq},), got {q.shape}")
    checks.number(t, "t")
    free = np.ones(model.nv, dtype=bool)
    free[_fixed_coordinates(model, fixed)] = False
    q = _closed(model, moved_to(model, q, t), free)
    warn_of_redundancy(model, q)
    return q


def moved_to(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    """Configurations (..., nq) with the prescribed coordinates where they are at time t."""
    q = q.copy()
    n = model.n_motions - model.prescribed.n_locked
    if n:
        q[..., model.dofs.q[model.prescribed.dof[:n]]] = model.motions(t)[0][:n]
    return q


def on_motion(model: Model, t: float | np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A state (..., nq), (..., nv) with the prescribed coordinates where and as fast as they are at time t, or states
    (..., n, nq), (..., n, nv) at times (n,)."""
    if not model.n_motions:
        return q, v
    q, v = q.copy(), v.copy()
    known = (
        (*np.split(model.motions_over(t, (0, 1)), 2, axis=1), None) if isinstance(t, np.ndarray) else model.motions(t)
    )
    q[..., model.dofs.q[model.prescribed.dof]], v[..., model.prescribed.dof], _ = known
    return q, v


def closed_start(model: Model, q: np.ndarray) -> np.ndarray:
    """Configurations (n, nq), each assembled where a loop is open, prescribed coordinates staying."""
    if not model.n_rows or not len(q):
        return q
    is_open = np.abs(loop_residual(model, q)).max(axis=1) > _OPEN
    free = np.ones(model.nv, dtype=bool)
    return np.array([_closed(model, row, free) if far else row for row, far in zip(q, is_open)])


def _fixed_coordinates(model: Model, fixed: Iterable[str | int]) -> list[int]:
    """Indices of the velocity coordinates that stay."""
    out: list[int] = []
    for item in [fixed] if isinstance(fixed, str) else fixed:
        if isinstance(item, str):
            if item not in model.links.names:
                raise ModelError(f"fixed: must name links among {sorted(model.links.names)} (got {item!r})")
            k = model.links.names.index(item)
            start = int(model.links.v_start[k])
            out += range(start, start + model.links.joint[k].nv)
        else:
            good = isinstance(item, int | np.integer) and not isinstance(item, bool) and 0 <= item < model.nv
            checks.require(good, "fixed", f"must be links, or indices from 0 to {model.nv - 1}", item)
            out.append(int(item))
    return out


def closing_weights(model: Model, free: np.ndarray) -> np.ndarray:
    """Square root of W of (1), zero for what stays."""
    stiffness = model.elasticity.stiffness_diagonal * model.dofs.scale**2
    soft = stiffness[stiffness > 0.0].min(initial=np.inf)
    weights = model.dofs.scale / np.sqrt(1.0 + stiffness / soft)
    weights[~free] = 0.0
    weights[model.prescribed.dof] = 0.0
    return weights


def _closed(model: Model, q: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The nearest closed configuration that Marquardt's iteration finds on the free coordinates; where it gets stuck,
    as between bars in one line, from starts that are moved a little."""
    if not model.n_rows:
        return q
    weights, rng = closing_weights(model, free), np.random.default_rng(0)
    ends = [_nearest(model, q, weights)]
    for size in _ASIDE:
        if np.abs(ends[-1][1]).max() <= _CLOSED_ENOUGH:
            return ends[-1][0]
        aside = size * weights * rng.uniform(-1.0, 1.0, model.nv)
        ends.append(_nearest(model, integrate(model, q, aside), weights))
    best, e = min(ends, key=lambda end: float(np.abs(end[1]).max()))
    if np.abs(e).max() <= _CLOSED_ENOUGH:
        return best
    raise ConvergenceError(f"assemble: {describe_gap(model, e)}; move q0 nearer, free more coordinates, or check the "
                           "placements of the loop", best)  # fmt: skip


def _nearest(model: Model, q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the iteration of (1) ends, and the residual there."""
    units, step_from = (_steps_by_blocks if solves_closed(model) else _steps_by_rows)(model, q, weights)
    e, damping = _residual(model, q), 1e-6
    for _ in range(_MOST_STEPS):
        if np.abs(e).max() <= _CLOSED:
            break
        step = step_from(q, e, damping)
        step *= min(1.0, _LONGEST / max(float(np.max(np.abs(step) / model.dofs.scale)), 1e-300))
        trial = integrate(model, q, step)
        e_trial = _residual(model, trial)
        if np.linalg.norm(e_trial / units) < np.linalg.norm(e / units):
            q, e, damping = trial, e_trial, max(0.1 * damping, 1e-24)
        elif np.abs(e).max() <= _CLOSED_ENOUGH:
            break
        else:
            damping = max(10.0 * damping, 1e-12)
            if damping > _GIVEN_UP:
                break
    return q, e


def _steps_by_rows(model: Model, q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Step]:
    """Units of the rows (n_rows,) as at q, and steps δ of (1) from there and from elsewhere; of μ as a part of the
    square of the largest singular value."""
    units = _row_units(model, np.abs(_rows(model, q) * model.dofs.scale).max(axis=1, initial=0.0))

    def step(q: np.ndarray, e: np.ndarray, damping: float) -> np.ndarray:
        U, size, V = np.linalg.svd(_rows(model, q) * weights / units[:, None], full_matrices=False)
        along = size / (size**2 + damping * max(size[0], 1e-300) ** 2)
        return -weights * (V.T @ (along * (U.T @ (e / units))))

    return units, step


def _steps_by_blocks(model: Model, q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Step]:
    """The same block by block; of μ as a part of the square of the largest row, and never less than what rounding
    leaves of rows that depend on each other."""
    sizes = run_closing(model, SHUT, q[None], weights=weights).host["size"][0].copy()
    units = _row_units(model, np.sqrt(sizes))
    whole = max(float((sizes / units**2).max()), 1e-300) * units**2

    def step(q: np.ndarray, e: np.ndarray, damping: float) -> np.ndarray:
        w = run_closing(model, SHUT, q[None], weights=weights, damping=max(damping, _LEAST_DAMPING) * whole)
        return _steps_by_rows(model, q, weights)[1](q, e, damping) if w.status.any() else w.host["move"][0].copy()

    return units, step


def _residual(model: Model, q: np.ndarray) -> np.ndarray:
    """Residuals (n_rows,)."""
    return run_residuals(model, q)[0].host["gap"][0].copy()


def _rows(model: Model, q: np.ndarray) -> np.ndarray:
    """Their Jacobian (n_rows, nv)."""
    return row_results(model, run_constraints(model, q)[0], "A_q")


def _row_units(model: Model, sizes: np.ndarray) -> np.ndarray:
    """1 for rows on rotations; for rows on displacements the largest of what a unit of a coordinate makes of one."""
    turns = np.abs(model.loops.row_direction[:, :3]).max(axis=1, initial=0.0) + model.loops.row_is_hinge > 0.0
    size = float(sizes[~turns].max(initial=0.0)) or 1.0
    return np.where(turns, 1.0, size)


def describe_gap(model: Model, e: np.ndarray) -> str:
    """Which loop is open most, and by how much."""
    first, stop = model.loops.row_start[:-1], model.loops.row_start[1:]
    worst = max(range(len(first)), key=lambda k: np.abs(e[first[k] : stop[k]]).max())
    rows = slice(first[worst], stop[worst])
    turns = (model.loops.row_direction[rows, 3:] == 0.0).all(axis=1)
    parts = []
    for chosen, unit in ((~turns, "m"), (turns, "rad")):
        if chosen.any():
            parts.append(f"{np.linalg.norm(e[rows][chosen]):.3g} {unit}")
    return f"loop {model.loops.names[worst]!r} stays open by {' and '.join(parts)}"


def consistent_start(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A start (nq,), (nv,) on the loops: q closed to rounding, v on A v = 0 by the least change in kinetic energy.

    Raises:
        ModelError: q leaves a loop open, with its name.
    """
    if not model.n_rows:
        return q, v
    warn_of_redundancy(model, q)
    e = _residual(model, q)
    if np.abs(e).max() > _OPEN:
        raise ModelError(f"q0: {describe_gap(model, e)}; close it by assemble or solve_statics")
    if np.abs(e).max() > _CLOSED:
        q = _closed(model, q, np.ones(model.nv, dtype=bool))
    return q, consistent_velocity(model, q, v)


def consistent_velocity(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v (nv,) moved onto A v = 0 by the least change in kinetic energy, prescribed coordinates standing:
    [M, −Aᵀ; A, 0] (δ; λ) = (0; −A v) with independent rows.

    Raises:
        ModelError: a coordinate moves no mass, and no loop says how it moves.
    """
    if not run_residuals(model, q, v)[0].host["rate"][0].any():
        return v  # as at rest
    if solves_closed(model):
        w = run_closing(model, SWING, q[None], v[None])
        if not w.status.any():
            return v + w.host["move"][0]
    w, _ = run_constraints(model, q, v, choosing=True)
    A, rate, kept = row_results(model, w, "A"), w.host["rate"][0].copy(), chosen_rows(w)
    M = mass_matrix(model, q)
    held = model.prescribed.dof
    A[:, held] = M[held] = M[:, held] = 0.0
    M[held, held] = 1.0
    try:
        return v + solve_with_mass(model, M, A[kept], np.zeros((model.nv, 1)), -rate[kept, None])[:, 0]
    except np.linalg.LinAlgError:
        forward_dynamics(model, q, v)  # names the coordinate
        rule = "each coordinate must move some mass, or be moved by a loop"
        raise ModelError(f"robot {model.name!r}: {rule} (got a singular mass matrix)") from None


def onto_loops(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (n, nq), (n, nv) of a motion, or (m, n, ...) of many, that a method left within its tolerance of the
    loops, moved onto them by steps as in (1) without damping."""
    if not model.n_rows:
        return q, v
    if q.ndim == 2:
        q, v = onto_loops(model, q[None], v[None])
        return q[0], v[0]
    if model.models:
        return _models_onto_loops(model, q, v)
    q, v = q.copy(), v.copy()
    for part in parts(q.shape[1]):
        size = max(1, states_together() // (part.stop - part.start))
        for some in (slice(first, first + size) for first in range(0, len(q), size)):
            q[some, part], v[some, part] = _moved_onto(model, q[some, part], v[some, part])
    return q, v


def _models_onto_loops(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for motions of many models, of one after the other."""
    moved = []
    for one, x, y in zip(model.of_rows(len(q)), q, v):
        with one.temporary_buffers():
            moved.append(onto_loops(one, x, y))
    q_moved, v_moved = zip(*moved)
    return np.array(q_moved), np.array(v_moved)


def _moved_onto(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for a few states of a few motions, of each by itself; most of them need no step."""
    (m, n), weights = q.shape[:2], closing_weights(model, np.ones(model.nv, dtype=bool))
    least = _least_by_blocks(model, weights) if solves_closed(model) else _least_by_rows(model, q, weights)
    q, v = q.reshape(m * n, -1).copy(), v.reshape(m * n, -1).copy()
    left = np.arange(m * n)
    for steps in reversed(range(_OUTPUT_STEPS + 1)):
        w, _ = run_residuals(model, *_repeated(q[left], v[left]))
        gap, rate = (w.host[name][: len(left)].copy() for name in ("gap", "rate"))
        is_open = (np.abs(gap).max(axis=1) > _OUTPUT_CLOSED) & (steps > 0)
        moves = ~is_open & (np.abs(rate).max(axis=1) > _OUTPUT_STILL)
        still, shut = left[moves], left[is_open]
        if len(still):
            v[still] += least(STILL, still, q[still], v[still])
        if len(shut):
            q[shut] = integrate(model, q[shut], least(SHUT, shut, q[shut], v[shut]))
        left = shut
        if not len(left):
            break
    return q.reshape(m, n, -1), v.reshape(m, n, -1)


def _least_by_rows(model: Model, begin: np.ndarray, weights: np.ndarray) -> Least:
    """The least steps STILL or SHUT, as `run_closing` has them, of states (k, ...) that are numbers `which` of motions
    (m, n, nq) one behind the other, each with the rows that are independent where its motion begins."""
    m, n = begin.shape[:2]
    w, _ = run_constraints(model, begin[:, 0], choosing=True)
    chosen = [tuple(chosen_rows(w, k)) for k in range(m)]
    kinds = list(dict.fromkeys(chosen))  # motions with the same independent rows are moved together
    kind = np.repeat([kinds.index(rows) for rows in chosen], n)

    def least(task: int, which: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        w, _ = run_constraints(model, *_repeated(q, v))
        A, missing = (w.host[name] for name in (("A_q", "gap") if task == SHUT else ("A", "rate")))
        move = np.zeros((len(q), model.nv))
        for k, kept in enumerate(kinds):
            some = np.flatnonzero(kind[which] == k)
            rows = A.reshape(w.batch, model.n_rows, -1)[some][:, kept, : model.nv] * weights
            across = np.swapaxes(rows, -1, -2)
            move[some] = -weights * (across @ np.linalg.solve(rows @ across, missing[some][:, kept, None]))[..., 0]
        return move

    return least


def _least_by_blocks(model: Model, weights: np.ndarray) -> Least:
    """The same block by block, with rows that are independent in each state; by rows where a block is singular."""

    def least(task: int, _: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        w = run_closing(model, task, *_repeated(q, v), weights=weights)
        if w.status.any():
            return _least_by_rows(model, q[:, None], weights)(task, np.arange(len(q)), q, v)
        return w.host["move"][: len(q)].copy()

    return least


def _repeated(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (n, nq), (n, nv), the first of them again behind the last, so that workspaces are of few sizes."""
    some = np.arange(2 ** int(np.ceil(np.log2(len(q))))) % len(q)
    return q[some], v[some]
