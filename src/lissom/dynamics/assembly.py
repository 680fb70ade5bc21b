"""Closing open loops by damped Gauss-Newton steps on their residuals, and velocities that satisfy the loops.

    minimise |e + A_q δ|² + μ |δ|²_W,   W⁻¹ = S² / (1 + K S² / k)                                         (1)

S is the unit of each coordinate, K its stiffness and k the smallest stiffness, so that stiff coordinates move less. The
damping μ follows Marquardt. Displacements in e are divided by the size of the robot, so that they are comparable with
rotations.

Loops and prescribed motions act on velocities v₀ like an impulse. Let w be the prescribed velocities. Kelvin's theorem
gives the velocities after it:

    minimise ½ (v − v₀)ᵀ M (v − v₀) with A v = 0 and v = w at the drives                                  (2)

A joint lies on a loop if its links stay connected without it. Neither this nor (2), whose energy is that of the bodies,
depends on the joint at which the tree cuts a loop. A drive on no loop carries its links along: w takes the place of its
entries of v₀. A running start has no rates of strain if the loops allow it:

    minimise δᵀ K δ of the strains, then (2) among these, δ = v − v₀                                       (3)

Source: Boyer 2023 §X.C (the mounting phase); D. W. Marquardt, 1963; for (2) W. Thomson, P. G. Tait, Treatise on Natural
Philosophy, 1867, §317.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are imported at their first use

from lissom.dynamics.configuration import integrate, single_configuration
from lissom.dynamics.constraints import (
    STEP_BY_KINETIC_ENERGY,
    STEP_POSITIONS,
    STEP_VELOCITIES,
    joined_too_often,
    loop_residual,
    run_closing,
    run_constraints,
    run_residuals,
    warn_of_redundancy,
)
from lissom.dynamics.forward_dynamics import forward_dynamics, solves_closed
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.dynamics.kinematics import forward_kinematics
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.errors import ConvergenceError, ModelError, PlausibilityWarning, ShapeError
from lissom.launch.cores import states_per_launch
from lissom.launch.over_models import over_models
from lissom.launch.workspace import independent_rows, row_slices, stack
from lissom.model.model import Model
from lissom.model.stops import within_stops
from lissom.robot import checks
from lissom.robot.constraints import RowKind
from lissom.robot.robot import PARTS
from lissom.systems.bordered import solve_with_mass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LATE = 1e-9  # time behind the end of a table that counts as rounding, relative to the times
_CLOSED_RESIDUAL = 1e-13  # at which the iteration ends [rad, m]
_ACCEPTED_RESIDUAL = 1e-10  # of a closed loop, if rounding prevents a smaller one [rad, m]
_ALMOST_CLOSED = 1e-6  # residual [rad or m] of loops whose rows are the reason that they do not close
_MAX_STEPS = 200
_MAX_STEP = 0.5  # in units of each coordinate
_MAX_DAMPING = 1e12
_OUTPUT_STEPS, _OUTPUT_RESIDUAL, _OUTPUT_RATE = 3, 1e-12, 1e-11  # [rad, m; rad/s, m/s]
_PERTURBATIONS = (0.02, 0.1, 0.3, 0.3, 1.0)  # of the start for further attempts, in units of each coordinate
_MIN_DAMPING = 1e-12
_OPEN_RESIDUAL = 1e-6  # of a start above which a loop counts as open [rad, m]
_STARTS = ("impulse", "running")
_KEPT_RATE = 1e-6  # of A v₀, relative to |A| |v₀|, up to which given velocities satisfy the loops
_FAR = 2.0  # a start with so many times the kinetic energy that the drives need causes a warning

Step = Callable[[np.ndarray, np.ndarray, float], np.ndarray]  # δ from q, e and μ
SmallestStep = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@over_models("q0")
def assemble(
    model: Model, q0: ArrayLike | None = None, *, fixed: Iterable[str | int] = (), t: float = 0.0
) -> np.ndarray:
    """A configuration near q0 in which every loop is closed, and every wheel touches its plane.

    Args:
        q0: start, shape (nq,) [rad, m, or strain units]; None is `start_configuration`.
        fixed: coordinates that do not move: names of links, for the coordinates of their joints, and indices of
            velocity coordinates. Prescribed coordinates have their values at time t.
        t: time of prescribed motions [s].
    Returns:
        q, shape (nq,). Soft coordinates move more than stiff ones, and joints more than rods. If constraints of the
        loops depend on each other, a RedundancyWarning gives the number of independent ones, once for each model.
    Raises:
        ConvergenceError: the loop that stays open and its residual; carries the last configuration.
        ModelError: an unknown name or index in fixed. ShapeError: the argument, the expected and the received shape.
    Accuracy: residuals below 1e-10 rad and m, mostly 1e-13. Source: Boyer 2023 §X.C.
    """
    q = single_configuration(model, within_stops(model) if q0 is None else q0, "q0")
    checks.number(t, "t")
    free = np.ones(model.nv, dtype=bool)
    free[_fixed_coordinates(model, fixed)] = False
    q = _close_loops(model, prescribed_configuration(model, q, t), free)
    warn_of_redundancy(model, q)
    return q


def prescribed_configuration(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    """Configurations (..., nq) with prescribed coordinates set to their values at time t."""
    q = q.copy()
    n = model.n_motions - model.prescribed.n_locked
    if n:
        q[..., model.dofs.q[model.prescribed.dof[:n]]] = model.motions(t)[0][:n]
    return q


def prescribed_state(
    model: Model, t: float | np.ndarray, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """States with prescribed coordinates and velocities set to their values: (..., nq), (..., nv) at one time t [s], or
    (..., n, nq), (..., n, nv) at times (n,)."""
    if not model.n_motions:
        return q, v
    q, v = q.copy(), v.copy()
    known = (
        (*np.split(model.motions_over(t, (0, 1)), 2, axis=1), None) if isinstance(t, np.ndarray) else model.motions(t)
    )
    q[..., model.dofs.q[model.prescribed.dof]], v[..., model.prescribed.dof], _ = known
    return q, v


def require_motions_until(model: Model, t: float) -> None:
    """Raise ModelError if the table of a prescribed motion ends before the time t [s] while its joint moves."""
    motions = model.of_row(0, 1).description.motions
    if not motions:
        return
    for name, last in model.cached(("ends of motions",), lambda: _ends_of_motions(model)):
        if t > last + _LATE * max(abs(last), abs(t)):
            rule = f"its table must reach to {t:g} s, or end at rest; then the joint stays where it is"
            raise ModelError(f"robot {model.name!r}: motion {name!r}: {rule} (got a last time of {last:g} s)")


def _ends_of_motions(model: Model) -> list[tuple[str, float]]:
    """`JointMotion.last` of the motions of which it is finite."""
    one = model.of_row(0, 1)
    joints, names = one.links.joint, one.links.names
    ends = [(name, own.last(joints[names.index(own.link)].nv)) for name, own in one.description.motions.items()]
    return [(name, last) for name, last in ends if isfinite(last)]


def open_loops(model: Model, q: np.ndarray) -> np.ndarray:
    """Whether configurations (n, nq) leave a loop open, shape (n,)."""
    return np.abs(loop_residual(model, q)).max(axis=1, initial=0.0) > _OPEN_RESIDUAL


def closed_start(model: Model, q: np.ndarray, fixed: Iterable[int] = ()) -> np.ndarray:
    """Configurations (n, nq); those with an open loop are closed. Prescribed coordinates do not move, nor do those with
    indices `fixed` in v."""
    if not model.n_rows or not len(q):
        return q
    free = np.ones(model.nv, dtype=bool)
    free[list(fixed)] = False
    return np.array([_close_loops(model, row, free) if far else row for row, far in zip(q, open_loops(model, q))])


def _fixed_coordinates(model: Model, fixed: Iterable[str | int]) -> list[int]:
    """Indices of the velocity coordinates that `fixed` names."""
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
    """W⁻½ of (1), the mobility of each coordinate, shape (nv,); zero for coordinates that do not move."""
    stiffness = model.elasticity.stiffness_diagonal * model.dofs.scale**2
    soft = stiffness[stiffness > 0.0].min(initial=np.inf)
    weights = model.dofs.scale / np.sqrt(1.0 + stiffness / soft)
    weights[~free] = 0.0
    weights[model.prescribed.dof] = 0.0
    return weights


def _close_loops(model: Model, q: np.ndarray, free: np.ndarray) -> np.ndarray:
    """A closed configuration (nq,) near q, by Marquardt's iteration on the coordinates `free` (nv,).

    If the iteration stops at an open loop, as at bars in one line, it begins again at perturbed starts.

    Raises:
        ConvergenceError: the loop that stays open and its residual; carries the best configuration.
    """
    if not model.n_rows:
        return q
    weights, rng = closing_weights(model, free), np.random.default_rng(0)
    ends = [_minimise_residuals(model, q, weights)]
    for size in _PERTURBATIONS:
        if np.abs(ends[-1][1]).max() <= _ACCEPTED_RESIDUAL:
            return ends[-1][0]
        perturbed = integrate(model, q, size * weights * rng.uniform(-1.0, 1.0, model.nv))
        if _trial_residual(model, perturbed) is not None:
            ends.append(_minimise_residuals(model, perturbed, weights))
    best, e = min(ends, key=lambda end: float(np.abs(end[1]).max()))
    if np.abs(e).max() <= _ACCEPTED_RESIDUAL:
        return best
    cure = joined_too_often(model, best) if np.abs(e).max() < _ALMOST_CLOSED else ""
    cure = cure or "; move q0 nearer, free more coordinates, or check the placements of the loop"
    raise ConvergenceError(f"assemble: {describe_gap(model, e)}{cure}", best)


def _minimise_residuals(model: Model, q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last configuration (nq,) of the iteration (1), and its residual (n_rows,)."""
    units, step_from = (_steps_by_blocks if solves_closed(model) else _steps_by_rows)(model, q, weights)
    e, damping = _residual(model, q), 1e-6
    for _ in range(_MAX_STEPS):
        if np.abs(e).max() <= _CLOSED_RESIDUAL:
            break
        step = step_from(q, e, damping)
        step *= min(1.0, _MAX_STEP / max(float(np.max(np.abs(step) / model.dofs.scale)), 1e-300))
        trial = integrate(model, q, step)
        e_trial = _trial_residual(model, trial)
        if e_trial is not None and np.linalg.norm(e_trial / units) < np.linalg.norm(e / units):
            q, e, damping = trial, e_trial, max(0.1 * damping, 1e-24)
        elif np.abs(e).max() <= _ACCEPTED_RESIDUAL:
            break
        else:
            damping = max(10.0 * damping, 1e-12)
            if damping > _MAX_DAMPING:
                break
    return q, e


def _steps_by_rows(model: Model, q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Step]:
    """Units of the rows (n_rows,) at q, and a function that gives steps δ of (1) by a singular value decomposition.

    The damping that it takes is μ relative to the square of the largest singular value.
    """
    units = _row_units(model, np.abs(_rows(model, q) * model.dofs.scale).max(axis=1, initial=0.0))

    def step(q: np.ndarray, e: np.ndarray, damping: float) -> np.ndarray:
        U, size, V = np.linalg.svd(_rows(model, q) * weights / units[:, None], full_matrices=False)
        along = size / (size**2 + damping * max(size[0], 1e-150) ** 2)  # its square is no zero
        return -weights * (V.T @ (along * (U.T @ (e / units))))

    return units, step


def _steps_by_blocks(model: Model, q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Step]:
    """As `_steps_by_rows`, by elimination of blocks.

    The damping is relative to the square of the largest row. It has a lower bound, since rows may depend on each other.
    """
    sizes = run_closing(model, STEP_POSITIONS, q[None], weights=weights).host["size"][0].copy()
    units = _row_units(model, np.sqrt(sizes))
    largest = max(float((sizes / units**2).max()), 1e-300) * units**2

    def step(q: np.ndarray, e: np.ndarray, damping: float) -> np.ndarray:
        w = run_closing(model, STEP_POSITIONS, q[None], weights=weights, damping=max(damping, _MIN_DAMPING) * largest)
        return _steps_by_rows(model, q, weights)[1](q, e, damping) if w.status.any() else w.host["move"][0].copy()

    return units, step


def _residual(model: Model, q: np.ndarray) -> np.ndarray:
    """Residuals of the loops at q (nq,), shape (n_rows,)."""
    return run_residuals(model, q)[0].host["gap"][0].copy()


def _trial_residual(model: Model, q: np.ndarray) -> np.ndarray | None:
    """`_residual`; None for a trial q that the robot cannot have, such as one in which a rod interval turns by 2π."""
    try:
        return _residual(model, q)
    except ShapeError:
        return None


def _rows(model: Model, q: np.ndarray) -> np.ndarray:
    """Jacobian A_q of the residuals at q (nq,), shape (n_rows, nv)."""
    return row_results(model, run_constraints(model, q)[0], "A_q")


def _row_units(model: Model, sizes: np.ndarray) -> np.ndarray:
    """Units of the rows (n_rows,): 1 for rotations, functions and couplings; for displacements the largest `sizes`
    (n_rows,) among them."""
    turns = np.abs(model.loops.row_direction[:, :3]).max(axis=1, initial=0.0) > 0.0
    turns |= np.isin(model.loops.row_kind, (RowKind.HINGE, RowKind.FUNCTION, RowKind.RATE_FUNCTION))
    turns = np.append(turns, np.ones(len(model.joint_couplings.names), dtype=bool))
    size = float(sizes[~turns].max(initial=0.0)) or 1.0
    return np.where(turns, 1.0, size)


def describe_gap(model: Model, e: np.ndarray) -> str:
    """Text with the name of the loop, constraint or coupling of the largest residual in e (n_rows,), and this
    residual."""
    row = int(np.abs(e).argmax())
    worst = int(np.searchsorted(model.loops.row_start, row, side="right")) - 1
    if worst == len(model.loops.names):
        return f"{row_owner(model, row)} is off by {abs(e[row]):.3g} rad or m"
    if model.loops.function[worst] >= 0:
        return f"the function of {row_owner(model, row)} is {e[row]:.3g} in place of zero"
    rows = slice(*model.loops.row_start[worst : worst + 2])
    turns = (model.loops.row_direction[rows, 3:] == 0.0).all(axis=1)
    texts = []
    for chosen, unit in ((~turns, "m"), (turns, "rad")):
        if chosen.any():
            texts.append(f"{np.linalg.norm(e[rows][chosen]):.3g} {unit}")
    return f"{row_owner(model, row)} stays open by {' and '.join(texts)}"


def row_owner(model: Model, row: int) -> str:
    """Text with the name of the loop, skate, rolling contact, constraint or coupling that a row belongs to."""
    loops = model.loops
    if row >= loops.row_start[-1]:
        return f"coupling {model.joint_couplings.names[row - loops.row_start[-1]]!r}"
    k = int(np.searchsorted(loops.row_start, row, side="right")) - 1
    return f"{PARTS[loops.kinds[k]].word} {loops.names[k]!r}"


def flat_disc(model: Model, q: np.ndarray, angle: float) -> str:
    """A text that names the first disc at q (nq,) that rolls and is inclined to its plane by less than an angle [rad];
    empty if there is none."""
    loops = model.loops
    discs = np.flatnonzero((loops.radius > 0.0) & loops.hinge[:, 1].any(axis=1))
    if not len(discs):
        return ""
    turns = np.concatenate([forward_kinematics(model, q)[:, :3, :3], np.eye(3)[None]])  # the last one is the world
    for k in discs:
        wheel, plane = turns[loops.node[k]] @ loops.placement[k, :, :3, :3]
        tilt = float(np.linalg.norm(np.cross(wheel @ loops.hinge[k, 1], plane @ loops.hinge[k, 0])))
        if tilt < np.sin(angle):
            far = float(np.degrees(np.arcsin(tilt)))
            which = f"the disc of rolling contact {loops.names[k]!r}"
            return f"{which} is {far:.2g} degrees from lying flat on its plane, where it touches at no single point"
    return ""


@over_models("q", "v0")
def assemble_velocities(
    model: Model, q: ArrayLike, v0: ArrayLike | None = None, *, start: str = "impulse", t: float = 0.0
) -> np.ndarray:
    """Velocities that satisfy loops, couplings, constraints, skates, rolling contacts and prescribed motions, as at the
    start of a motion.

    The robot moves with v0. Then the drives of joints that lie on a loop, the loops and the couplings act like an
    impulse, so that the change of velocity has the least kinetic energy. For a robot at rest these are the velocities
    of least kinetic energy under the prescribed ones. A drive on no loop carries its links along.

    Args:
        q: configuration with closed loops, shape (nq,) [rad, m, or strain units]. Prescribed coordinates have their
            values at time t.
        v0: velocities before, shape (nv,) [unit of q per s]; None is rest. If they satisfy the loops once prescribed
            coordinates have their velocities, they stay as they are.
        start: "impulse", or "running" for the start of a machine that runs already: rods and bodies change their shape
            as little as the loops allow, which is not at all if rigid bodies could move so. Rates of strain are
            measured by the stiffness of rods. Among such velocities the kinetic energy is the least.
        t: time of prescribed motions [s].
    Returns:
        v, shape (nv,). They do not depend on the joint at which a loop is cut.
    Raises:
        ModelError: q leaves a loop open, or a coordinate moves no mass and no loop determines its velocity.
        ShapeError: the argument, the expected and the received shape.
    Accuracy: A v = 0 to 1e-12 of v. Cost: that of a mass matrix and a linear system of all coordinates.
    Source: Kelvin's theorem; Thomson and Tait 1867 §317.
    """
    checks.require(checks.among(start, _STARTS), "start", f"must be one of {_STARTS}", start)
    checks.number(t, "t")
    q = single_configuration(model, q, "q")
    v = np.zeros(model.nv) if v0 is None else stack("v0", v0, model.nv)
    if v.shape != (model.nv,) or not np.isfinite(v).all():
        raise ShapeError(f"v0: expected finite values of shape ({model.nv},), got {v0!r}")
    return consistent_start(model, t, q, v, start=start)[1]


def consistent_start(
    model: Model, t: float, q: np.ndarray, v: np.ndarray, *, start: str = "impulse"
) -> tuple[np.ndarray, np.ndarray]:
    """A start (nq,), (nv,) at time t that satisfies the loops and prescribed motions: q is closed to rounding, and v is
    that of `assemble_velocities`.

    Raises:
        ModelError: the loop that q leaves open.
    """
    q, moved = prescribed_state(model, t, q, v)
    if not model.n_rows:
        return q, moved
    warn_of_redundancy(model, q)
    e = _residual(model, q)
    if np.abs(e).max() > _OPEN_RESIDUAL:
        raise ModelError(f"q0: {describe_gap(model, e)}; close it by assemble or solve_statics")
    if np.abs(e).max() > _CLOSED_RESIDUAL:
        q = _close_loops(model, q, np.ones(model.nv, dtype=bool))
    before = velocity_before(model, q, moved, v)
    if start == "running":
        return q, _running_velocity(model, q, moved, before)
    found = consistent_velocity(model, q, moved, before)
    _warn_of_energy(model, q, found, moved, before)
    return q, found


def drives_on_loops(model: Model) -> np.ndarray:
    """Indices in v of the prescribed coordinates of joints that lie on a loop, or in a constraint or coupling."""

    def found() -> np.ndarray:
        on_loops, nodes = np.zeros(model.nv, dtype=bool), model.nodes
        on_loops[model.joint_couplings.v] = True
        on_loops[model.constraint_functions.v] = True
        for ends in model.loops.node.tolist():
            paths = [set(_path(nodes.parent, end)) for end in ends]
            for k in paths[0] ^ paths[1]:  # up to the node that both ends hang on
                on_loops[nodes.v_start[k] : nodes.v_stop[k]] = True
        return np.array([k for k in model.prescribed.dof.tolist() if on_loops[k]], dtype=int)

    return model.cached(("drives on loops", tuple(model.prescribed.dof.tolist())), found)


def _path(parent: np.ndarray, node: int) -> list[int]:
    """The nodes from a node to the base."""
    path = []
    while node >= 0:
        path.append(node)
        node = int(parent[node])
    return path


def velocity_before(model: Model, q: np.ndarray, moved: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v₀ of (2), shape (nv,), for given velocities v, with `moved` those with prescribed velocities in their places.

    Drives on loops stand before the impulse if no other velocity is given. Given velocities that satisfy the loops as
    `moved` are kept: v₀ is `moved` then.
    """
    drives = drives_on_loops(model)
    if not len(drives):
        return moved
    is_given = is_moving(model, v)
    if is_given and _satisfies_loops(model, q, moved):
        return moved
    before = moved.copy()
    before[drives] = v[drives] if is_given else 0.0
    return before


def is_moving(model: Model, v: np.ndarray) -> bool:
    """Whether a coordinate without a prescribed motion has a velocity in v (nv,)."""
    return bool(np.delete(v, model.prescribed.dof).any())


def _satisfies_loops(model: Model, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether A v = 0 to _KEPT_RATE."""
    w, _ = run_constraints(model, q, v)
    size = np.abs(row_results(model, w, "A")) @ np.abs(v)
    return bool((np.abs(w.host["rate"][0]) <= _KEPT_RATE * size.max(initial=0.0)).all())


def consistent_velocity(model: Model, q: np.ndarray, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
    """The velocities (2), shape (nv,).

        [M, −Aᵀ; A, 0] (δ; λ) = (−M j; −A v) with independent rows,   j = v − v₀                          (4)

    Args:
        v: velocities (nv,) whose prescribed entries are those wanted. before: v₀, which has other velocities of drives;
            None is v.
    Raises:
        ModelError: a coordinate moves no mass, and no loop determines its velocity.
    """
    jump = np.zeros(model.nv) if before is None else v - before
    if not jump.any():
        if not run_residuals(model, q, v)[0].host["rate"][0].any():
            return v  # it satisfies the loops already, for example at rest
        if solves_closed(model):
            w = run_closing(model, STEP_BY_KINETIC_ENERGY, q[None], v[None])
            if not w.status.any():
                return v + w.host["move"][0]
    w, _ = run_constraints(model, q, v, find_independent=True)
    A, rate, kept = row_results(model, w, "A"), w.host["rate"][0].copy(), independent_rows(w)
    M = mass_matrix(model, q)
    given, push = model.prescribed.dof, -M @ jump
    push[given] = 0.0
    A[:, given] = M[given] = M[:, given] = 0.0
    M[given, given] = 1.0
    try:
        return v + solve_with_mass(model, M, A[kept], push[:, None], -rate[kept, None])[:, 0]
    except np.linalg.LinAlgError:
        forward_dynamics(model, q, v)  # its error names the coordinate
        rule = "each coordinate must move some mass, or be moved by a loop"
        raise ModelError(f"robot {model.name!r}: {rule} (got a singular mass matrix)") from None


def _running_velocity(model: Model, q: np.ndarray, v: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The velocities (3), shape (nv,). Arguments as for `consistent_velocity`."""
    w, _ = run_constraints(model, q, v, find_independent=True)
    A, rate, kept = row_results(model, w, "A"), w.host["rate"][0].copy(), independent_rows(w)
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    units = model.dofs.scale[free]
    rows = A[np.ix_(kept, free)] * units
    delta = np.zeros(model.nv)
    delta[free] = -units * np.linalg.lstsq(rows, rate[kept], rcond=None)[0]
    N = np.zeros((model.nv, len(free) - len(kept)))  # the motions that the loops allow
    N[free] = units[:, None] * np.linalg.svd(rows)[2][len(kept) :].T
    strains = _root_of_stiffness(model)
    for measure in (strains, scipy.linalg.cholesky(_regular(mass_matrix(model, q)))):
        delta += N @ np.linalg.lstsq(measure @ N, -measure @ (delta + (v - before)), rcond=None)[0]
        N = N @ scipy.linalg.null_space(measure @ N, rcond=1e-9)
    return v + delta


def _root_of_stiffness(model: Model) -> np.ndarray:
    """A matrix R (n, nv) with |R δ|² = δᵀ K δ of the strains of rods, and |δ|² of the coordinates of other bodies."""
    n, joint_dofs = model.nv, np.zeros(model.nv, dtype=bool)
    for first, joint in zip(model.links.v_start.tolist(), model.links.joint):
        joint_dofs[first : first + joint.nv] = True
    soft = np.flatnonzero(~joint_dofs)
    K = model.elasticity.stiffness[np.ix_(soft, soft)]
    loose = ~K.any(axis=1)
    K[loose, loose] = 1.0 / model.dofs.scale[soft[loose]] ** 2
    root = np.zeros((len(soft), n))
    root[:, soft] = scipy.linalg.cholesky(_regular(K)) if len(soft) else 0.0
    return root


def _regular(K: np.ndarray) -> np.ndarray:
    """A positive semidefinite matrix with a diagonal that is larger by rounding, so that it has a Cholesky factor."""
    return K + np.diag(1e-14 * np.maximum(np.diag(K), np.finfo(float).tiny))


def _warn_of_energy(model: Model, q: np.ndarray, v: np.ndarray, moved: np.ndarray, before: np.ndarray) -> None:
    """Warn once for a model if given velocities, which the loops change, leave far more kinetic energy than the drives
    need."""
    drives = drives_on_loops(model)
    if not moved[drives].any() or not is_moving(model, before) or "far start" in model.cache:
        return
    if _satisfies_loops(model, q, moved):
        return
    rest = np.zeros(model.nv)
    rest[model.prescribed.dof] = moved[model.prescribed.dof]
    needed = consistent_velocity(model, q, rest, velocity_before(model, q, rest, rest))
    M = mass_matrix(model, q)
    energy, least = (float(0.5 * x @ M @ x) for x in (v, needed))
    if energy > _FAR * least:
        model.cache["far start"] = True
        text = (
            f"robot {model.name!r}: v0 does not satisfy the loops; projected onto them it holds {energy:.4g} J, while "
            f"the prescribed motions need {least:.4g} J; leave v0 out, or take ls.assemble_velocities(model, q0)"
        )
        warnings.warn(text, PlausibilityWarning, stacklevel=4)


def project_onto_loops(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States of one motion (n, nq), (n, nv) or of many (m, n, ...), projected onto the loops by steps (1) with μ = 0.

    The states satisfy the loops within the tolerance of an integrator, so that few steps are needed.
    """
    if not model.n_rows:
        return q, v
    if q.ndim == 2:
        q, v = project_onto_loops(model, q[None], v[None])
        return q[0], v[0]
    if model.models:
        return _project_models(model, q, v)
    q, v = q.copy(), v.copy()
    for part in row_slices(q.shape[1]):
        size = max(1, states_per_launch() // (part.stop - part.start))
        for group in (slice(first, first + size) for first in range(0, len(q), size)):
            q[group, part], v[group, part] = _project_states(model, q[group, part], v[group, part])
    return q, v


def _project_models(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `project_onto_loops` for a batch of models, one model after the other."""
    moved = []
    for one, x, y in zip(model.of_rows(len(q)), q, v):
        with one.temporary_buffers():
            moved.append(project_onto_loops(one, x, y))
    q_moved, v_moved = zip(*moved)
    return np.array(q_moved), np.array(v_moved)


def _project_states(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `project_onto_loops` for states (m, n, ...) of one launch. Each state has its own steps; most need none."""
    (m, n), weights = q.shape[:2], closing_weights(model, np.ones(model.nv, dtype=bool))
    least = (
        _smallest_step_by_blocks(model, weights) if solves_closed(model) else _smallest_step_by_rows(model, q, weights)
    )
    q, v = q.reshape(m * n, -1).copy(), v.reshape(m * n, -1).copy()
    left = np.arange(m * n)
    for steps in reversed(range(_OUTPUT_STEPS + 1)):
        w, _ = run_residuals(model, *_padded(q[left], v[left]))
        gap, rate = (w.host[name][: len(left)].copy() for name in ("gap", "rate"))
        is_open = (np.abs(gap).max(axis=1) > _OUTPUT_RESIDUAL) & (steps > 0)
        moves = ~is_open & (np.abs(rate).max(axis=1) > _OUTPUT_RATE)
        still, shut = left[moves], left[is_open]
        if len(still):
            v[still] += least(STEP_VELOCITIES, still, q[still], v[still])
        if len(shut):
            q[shut] = integrate(model, q[shut], least(STEP_POSITIONS, shut, q[shut], v[shut]))
        left = shut
        if not len(left):
            break
    return q.reshape(m, n, -1), v.reshape(m, n, -1)


def _smallest_step_by_rows(model: Model, begin: np.ndarray, weights: np.ndarray) -> SmallestStep:
    """A function for the smallest steps onto the loops, from the rows that are independent at the start of each motion.

    Args:
        begin: configurations of m motions, (m, n, nq). weights: mobilities of the coordinates, (nv,).
    Returns:
        least(task, which, q, v): steps (k, nv) of the task STEP_POSITIONS or STEP_VELOCITIES of `run_closing`, for
        states (k, ...) whose indices among all m · n states are `which`.
    """
    m, n = begin.shape[:2]
    w, _ = run_constraints(model, begin[:, 0], find_independent=True)
    chosen = [tuple(independent_rows(w, k)) for k in range(m)]
    kinds = list(dict.fromkeys(chosen))  # motions with the same independent rows share a solve
    kind = np.repeat([kinds.index(rows) for rows in chosen], n)

    def least(task: int, which: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        w, _ = run_constraints(model, *_padded(q, v))
        A, missing = (w.host[name] for name in (("A_q", "gap") if task == STEP_POSITIONS else ("A", "rate")))
        if task == STEP_POSITIONS and model.rate_rows.any():  # a step onto the loops rolls without slip
            shape = w.batch, model.n_rows, -1
            A = np.where(model.rate_rows[:, None], w.host["A"].reshape(shape), A.reshape(shape))
        move = np.zeros((len(q), model.nv))
        for k, kept in enumerate(kinds):
            states = np.flatnonzero(kind[which] == k)
            rows = A.reshape(w.batch, model.n_rows, -1)[states][:, kept, : model.nv] * weights
            across = np.swapaxes(rows, -1, -2)
            move[states] = -weights * (across @ np.linalg.solve(rows @ across, missing[states][:, kept, None]))[..., 0]
        return move

    return least


def _smallest_step_by_blocks(model: Model, weights: np.ndarray) -> SmallestStep:
    """As `_smallest_step_by_rows`, by elimination of blocks with the rows that are independent in each state; by rows
    if a block is singular."""

    def least(task: int, _: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        w = run_closing(model, task, *_padded(q, v), weights=weights)
        if w.status.any():
            return _smallest_step_by_rows(model, q[:, None], weights)(task, np.arange(len(q)), q, v)
        return w.host["move"][: len(q)].copy()

    return least


def _padded(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (n, nq), (n, nv), with the first ones repeated up to a power of two, so that few workspaces are needed."""
    rows = np.arange(2 ** int(np.ceil(np.log2(len(q))))) % len(q)
    return q[rows], v[rows]
