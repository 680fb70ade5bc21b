"""Loads at given times and states: tables of numbers, polynomials of time, and forces of Python functions.

Kernels read a table of wrenches of point loads and of Python forces, then the current and the time (`load_rows`). A
kernel that makes many time steps evaluates functions of time itself, here called laws (`laws_of_time`): piecewise
polynomials, and programs that evaluate expressions. The order of their values is: six numbers of each row of `load`,
then positions, velocities and accelerations of the prescribed coordinates, then inputs. A value that a program gives
has a polynomial of zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.actuation import custom_actuation
from lissom.dynamics.configuration import integrate, unit_quaternions
from lissom.dynamics.kinematics import node_motion
from lissom.errors import ShapeError, check_kept
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.robot.expression_programs import Operation, Steps, programs_of
from lissom.robot.functions import constant, is_compiled, polynomial_of, stacked_polynomials
from lissom.robot.loads import asked_of

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

Times = float | np.ndarray  # one time for all instances, or one for each [s]
_DIFFERENCE_STEP = 6e-6


def load_rows(model: Model, t: float, factor: float = 1.0) -> np.ndarray:
    """The load table of kernels at time t, with forces times `factor`, shape (n_load_rows, 6) [N·m, N]. Rows of Python
    forces are zero."""
    return load_table(model, [t], factor)[0]


def load_table(model: Model, times: list[float], factor: float = 1.0) -> np.ndarray:
    """As `load_rows` for many times, shape (n_times, n_load_rows, 6)."""
    rows = np.zeros((len(times), model.n_load_rows, 6))
    for k, wrench in enumerate(model.loads.wrench):
        rows[:, k] = wrench.over(np.array(times)) if len(times) > 1 else [wrench(t) for t in times]
    rows *= factor
    if model.has_surroundings:
        rows[:, -2:] = [model.fluid.rows(t) for t in times]
    return rows


def rows_of_times(model: Model, times: list[float], factor: float = 1.0) -> np.ndarray:
    """As `load_table`; functions are called once for each different time."""
    distinct = {t: k for k, t in enumerate(dict.fromkeys(times))}
    table = load_table(model, list(distinct), factor)
    return table if len(distinct) == len(times) else table[[distinct[t] for t in times]]


def steady_loads(model: Model) -> np.ndarray:
    """`load_table` of loads that do not depend on time, (1, n_load_rows, 6)."""
    return model.cached(("steady loads",), lambda: load_table(model, [0.0]))


def put_loads(model: Model, w: Workspace, t: Times, factor: float = 1.0) -> None:
    """Fill the `load` buffer (batch, n_load_rows, 6) of a workspace for time t, or a time for each instance [s].

    Python forces are called with the states in the buffers `q` and `v` of the workspace.
    """
    if not model.n_load_rows:
        return
    if model.models:
        _put_loads_of_models(model, w, t, factor)
        return
    if model.loads.varies:
        w.host["load"][:] = rows_of_times(model, np.atleast_1d(t).tolist(), factor)
    elif factor == 1.0:
        w.host["load"][:] = steady_loads(model)
    else:
        w.host["load"][:] = load_table(model, [0.0], factor)
    if model.forces.called:
        v = w.host["v"] if "v" in w.host else np.zeros((w.batch, model.nv))
        first, wrenches = len(model.loads.wrench), called_wrenches(model, w.host["q"], v, t)
        w.host["load"][:, first : first + len(model.forces.called)] = factor * wrenches


def _put_loads_of_models(model: Model, w: Workspace, t: Times, factor: float) -> None:
    """As `put_loads` for a batch of models, none of which has Python forces."""
    own = w.batch // len(model.models)
    times = np.broadcast_to(t, w.batch).reshape(len(model.models), own)
    for k, one in enumerate(model.models):
        times_of_model = times[k].tolist() if one.loads.varies else [0.0]
        w.host["load"][k * own : (k + 1) * own] = rows_of_times(one, times_of_model, factor)


def called_wrenches(model: Model, q: np.ndarray, v: np.ndarray, t: Times) -> np.ndarray:
    """Wrenches of the users' Python forces in the body's axes at states (n, ...), shape (n, n_called, 6).

    Raises:
        ShapeError: the force, the expected and the received shape.
    """
    called, q = model.forces.called, unit_quaternions(model, q)  # solvers of other libraries let their lengths drift
    poses, twists = node_motion(model, q, v)
    times = np.broadcast_to(np.asarray(t, dtype=np.float64), len(q)).tolist()
    out = np.zeros((len(q), len(called), 6))
    for k, (name, function, node, G, weight) in enumerate(called):
        asked = asked_of(function)
        for n, time in enumerate(times):
            more = _more_of_state(model, asked, q[n], v[n], node, G) if asked else {}
            given = function(time, poses[n, node] @ G, _twist_in_frame(G, twists[n, node]), **more)
            check_kept(f"force {name!r} at t={time:g}", given)
            value = np.asarray(given, dtype=np.float64)
            if value.shape != (6,) or not np.isfinite(value).all():
                raise ShapeError(f"force {name!r} at t={time:g}: expected a finite wrench of shape (6,), got {value!r}")
            out[n, k] = weight * value
    return out


def _more_of_state(
    model: Model, asked: tuple[str, ...], q: np.ndarray, v: np.ndarray, node: int, G: np.ndarray
) -> dict[str, np.ndarray]:
    """What a force asks for besides t, g and eta at one state: q, v, the body Jacobian J (6, nv) of its frame G on a
    node, and the rate J̇ of J along v, by central differences."""
    out = {"q": q, "v": v}

    def jacobian(at: np.ndarray) -> np.ndarray:
        _, columns = node_motion(model, np.broadcast_to(at, (model.nv, model.nq)), np.eye(model.nv))
        return np.array([_twist_in_frame(G, column[node]) for column in columns]).reshape(-1, 6).T

    if "J" in asked:
        out["J"] = jacobian(q)
    if "J_dot" in asked:
        size = float(np.max(np.abs(v) / model.dofs.scale, initial=0.0))
        step = _DIFFERENCE_STEP / max(size, 1e-300) if size > 0.0 else 0.0
        ahead, behind = (jacobian(integrate(model, q, sign * step * v)) for sign in (1.0, -1.0))
        out["J_dot"] = (ahead - behind) / (2.0 * step) if step else np.zeros((6, model.nv))
    return {name: out[name] for name in asked}


def _twist_in_frame(G: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """A body twist (6,) in the frame G (4, 4) of the body."""
    w = twist[:3]
    return np.concatenate([G[:3, :3].T @ w, G[:3, :3].T @ (twist[3:] + np.cross(w, G[:3, 3]))])


def called_response(model: Model, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of Python forces as parts of those of inverse dynamics at one state, by central differences.

    Returns:
        −Σ Jᵀ ∂F/∂q in the tangent space, and −Σ Jᵀ ∂F/∂v, each (nv, nv).
    """
    n, q = model.nv, unit_quaternions(model, q)
    moves, rest = _DIFFERENCE_STEP * np.diag(model.dofs.scale), np.zeros((2 * n, n))
    ends = np.vstack([moves, -moves])
    by_pose = called_wrenches(model, integrate(model, q, np.vstack([ends, rest])), v + np.vstack([rest, ends]), t)
    slopes = by_pose.reshape(2, 2, n, -1, 6)[:, 0] - by_pose.reshape(2, 2, n, -1, 6)[:, 1]
    slopes /= 2.0 * np.diag(moves)[:, None, None]
    _, twists = node_motion(model, np.broadcast_to(q, (n, model.nq)), np.eye(n))  # linear in v: the columns of J
    J = np.array([[_twist_in_frame(G, row[node]) for _, _, node, G, _ in model.forces.called] for row in twists])
    by_q, by_v = -np.einsum("ikc,xjkc->xij", J, slopes)
    return by_q, by_v


Laws = tuple[np.ndarray, np.ndarray]  # breakpoints and coefficients, as `stacked_polynomials` returns them
_PUTS = (Operation.PUT_VALUE, Operation.PUT_RATE, Operation.PUT_CHANGE)


class _TimeValues(NamedTuple):
    """`size` values as functions of time: a polynomial, or the derivative of order `order` of expressions; without both
    they are other functions."""

    size: int
    polynomial: PPoly | None
    programs: list[Steps] | None = None
    order: int = 0


def laws_of_time(model: Model) -> Laws | None:
    """The polynomials for kernels; None if a value is neither a polynomial of time nor an expression, or depends on the
    state by a Python function."""
    return model.cached(("laws of time",), lambda: _laws(model))[0]


def steps_of_laws(model: Model) -> Steps:
    """The programs of expressions that belong to `laws_of_time`, joined; empty if these are None."""
    return model.cached(("laws of time",), lambda: _laws(model))[1]


def zero_laws(model: Model) -> Laws:
    """Polynomials of zeros, for values that are given in another way."""
    return stacked_polynomials([constant(np.zeros(n_laws(model)))])


def n_laws(model: Model) -> int:
    """Number of values of loads and motions that kernels read."""
    return 6 * model.n_load_rows + 3 * model.n_motions


@final
class _ProgramOutputs:
    """Programs and the indices of the values that they give; equal programs are evaluated once."""

    def __init__(self) -> None:
        self.places: dict[tuple[Any, ...], Steps] = {}

    def add(self, programs: list[Steps], first: int, order: int = 0) -> None:
        """Assign results of programs, or their derivatives of order `order`, to the values from `first` on."""
        for k, steps in enumerate(programs):
            self.places.setdefault(tuple(steps), []).append((_PUTS[order], first + k))

    @property
    def steps(self) -> Steps:
        """All programs as one program."""
        clear = (Operation.CLEAR, 0.0)
        return [step for steps, places in self.places.items() for step in (*steps, *places, clear)]


def steps_of_inputs(model: Model, programs: list[Steps]) -> Steps:
    """The program that evaluates expressions of the inputs."""
    puts = _ProgramOutputs()
    puts.add(programs, n_laws(model))
    return puts.steps


def _laws(model: Model) -> tuple[Laws | None, Steps]:
    """`laws_of_time` and `steps_of_laws`."""
    if model.calls_python or model.prescribed.n_locked:
        return None, []
    parts = [*_loads_over_time(model), *_current_and_time(model), *_motions(model)]
    if any(part.polynomial is None and part.programs is None for part in parts):
        return None, []
    known, puts, first = [], _ProgramOutputs(), 0
    for part in parts:
        known.append(constant(np.zeros(part.size)) if part.polynomial is None else part.polynomial)
        if part.polynomial is None:
            puts.add(part.programs or [], first, part.order)
        first += part.size
    return stacked_polynomials(known), puts.steps


def _loads_over_time(model: Model) -> Iterator[_TimeValues]:
    """Moment and force of each point load."""
    for load in model.description.loads.values():
        for value in (load.moment, load.force):
            yield _TimeValues(3, polynomial_of(value, 3), programs_of(value, 3))


def _current_and_time(model: Model) -> Iterator[_TimeValues]:
    """The current with its rate, and the time, if kernels read them."""
    if not model.has_surroundings:
        return
    from scipy.interpolate import PPoly

    fluid = model.description.fluid
    current: Any = None if fluid is None or is_compiled(model.fluid.current) else fluid.current
    flow, programs = polynomial_of(current, 3), programs_of(current, 3)
    yield _TimeValues(3, flow, programs)
    yield _TimeValues(3, None if flow is None else flow.derivative(), programs, 1)
    yield _TimeValues(1, PPoly.construct_fast(np.array([[[1.0]], [[0.0]]]), np.array([0.0, 1.0])))
    yield _TimeValues(5, constant(np.zeros(5)))


def _motions(model: Model) -> Iterator[_TimeValues]:
    """Positions, velocities and accelerations of prescribed coordinates."""
    links, joints = model.links.names, model.of_row(0, 1).links.joint
    made: list[tuple[_TimeValues, ...]] = []
    for motion in model.description.motions.values():
        size = joints[links.index(motion.link)].nv
        pairs = zip(motion.polynomials(size), motion.programs(size))
        made.append(tuple(_TimeValues(size, polynomial, *(programs or (None, 0))) for polynomial, programs in pairs))
    for order in range(3):
        yield from (motion[order] for motion in made)


def put_python_forces(
    model: Model,
    extra: np.ndarray,
    load: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float = 1.0,
    added: Any = 0.0,
) -> None:
    """Fill in the forces of Python functions that kernels read.

    Args:
        extra: gets the generalised force of custom actuators under inputs u, plus `added`, (nv,).
        load: its rows of Python forces get wrenches times `factor`, (n_load_rows, 6).
    """
    if model.inputs.custom:
        extra[:] = added + custom_actuation(model, q) @ u
    called = model.forces.called
    if called:
        first = len(model.loads.wrench)
        load[first : first + len(called)] = factor * called_wrenches(model, q[None], v[None], t)[0]


def python_response(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of Python forces and custom actuators as parts of those of the residual, by central differences.

    Returns:
        The derivatives with respect to q, in the tangent space, and v, each (nv, nv).
    """
    by_q, by_v = np.zeros((2, model.nv, model.nv))
    if model.forces.called:
        by_q, by_v = (factor * response for response in called_response(model, q, v, t))
    if model.inputs.custom:
        by_q = by_q - _custom_actuation_derivative(model, q, u)
    return by_q, by_v


def python_responses(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times, factor: float = 1.0
) -> np.ndarray:
    """As `python_response` at states (n, ...), at one time or a time for each: the derivatives with respect to q and v,
    (2, n, nv, nv)."""
    times = np.broadcast_to(np.asarray(t, dtype=np.float64), len(q)).tolist()
    rows = [python_response(model, *state, factor) for state in zip(q, v, u, times)]
    return np.swapaxes(np.array(rows), 0, 1)


def _custom_actuation_derivative(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """∂(B(q) u)/∂q of the users' own actuators, by central differences in the tangent space; shape (nv, nv)."""
    moves = _DIFFERENCE_STEP * np.diag(model.dofs.scale)
    ahead, behind = (
        np.array([custom_actuation(model, row) @ u for row in integrate(model, q, sign * moves)]) for sign in (1, -1)
    )
    return ((ahead - behind) / (2.0 * np.diag(moves)[:, None])).T
