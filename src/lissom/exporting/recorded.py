"""Results of the library at some states, with which the test program of an exported robot compares its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lissom.dynamics.assembly import closed_start
from lissom.dynamics.configuration import integrate
from lissom.dynamics.energy import energy
from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from lissom.dynamics.kinematics import (
    forward_kinematics,
    frame_acceleration,
    frame_jacobian,
    frame_pose,
    frame_twist,
)
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.dynamics.start import start_configuration
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.exporting.functions import FUNCTIONS, frame_names
from lissom.model.model import Model
from lissom.model.plausibility import is_folded
from lissom.statics.equilibrium import solve_statics
from lissom.stepping.stepper import Stepper

_STATES = 3
_SIZE = 0.1  # of random coordinates, velocities and accelerations, in units of dofs.scale
STEPS, STEP = 20, 1e-3  # number and size [s] of the recorded steps


def _energies(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    found = energy(model, q, v)
    return np.array([found.kinetic, found.gravitational, found.elastic])


def _frames(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    names = frame_names(model)
    poses = [frame_pose(model, q, name) for name in names]
    twists = [frame_twist(model, q, v, name) for name in names]
    return [np.array(poses), np.array(twists), np.array([frame_acceleration(model, q, v, a, name) for name in names])]


EVALUATE: dict[str, Callable[..., Any]] = {
    "forward_dynamics": lambda model, t, q, v, u: [forward_dynamics(model, q, v, u, t)],
    "inverse_dynamics": lambda model, t, q, v, a: [inverse_dynamics(model, q, v, a, t=t)],
    "mass_matrix": lambda model, q: [mass_matrix(model, q)],
    "energy": lambda model, q, v: [_energies(model, q, v)],
    "frames": _frames,
    "jacobians": lambda model, q: [np.array([frame_jacobian(model, q, name) for name in frame_names(model)])],
    "inverse_dynamics_derivatives": lambda model, t, q, v, a: inverse_dynamics_derivatives(model, q, v, a, t=t),
    "forward_dynamics_derivatives": lambda model, t, q, v, u: forward_dynamics_derivatives(model, q, v, u, t),
    "forward_kinematics": lambda model, q: [forward_kinematics(model, q)],
}


def _has_shape(model: Model, q: np.ndarray) -> bool:
    """Whether no deformable body is turned inside out or moved to where its kinematics has no values."""
    if is_folded(model, q):
        return False
    if not len(model.deforming.node):
        return True
    try:
        energy(model, q, np.zeros(model.nv))
    except ShapeError:  # the energy is not finite
        return False
    return True


def states_of(model: Model, count: int = _STATES) -> list[dict[str, Any]]:
    """States near the start: t [s], q, v, a and u. No deformable body is turned inside out or without a shape."""
    rng, found, start = np.random.default_rng(0), [], start_configuration(model)
    for k in range(count):
        moves = _SIZE * model.dofs.scale * rng.normal(size=(3, model.nv))
        while not _has_shape(model, q := integrate(model, start, moves[0])):
            moves *= 0.5
        found.append({"t": 0.1 * k, "q": q, "v": moves[1], "a": moves[2], "u": rng.uniform(0.0, 1.0, size=model.nu)})
    return found


def evaluated(model: Model, function: str, state: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """All arguments of a function at a state in one array, and all its results in another."""
    given = {argument.name: state[argument.name] for argument in FUNCTIONS[function].arguments}
    found = EVALUATE[function](model, **given)
    flat = [np.concatenate([np.ravel(x) for x in parts]) for parts in (given.values(), found)]
    return flat[0], flat[1]


def _array(name: str, values: np.ndarray) -> str:
    rows = ",\n    ".join(repr(float(x)) for x in [*values.ravel(), 0.0])
    return f"static const double {name}[] = {{\n    {rows}}};\n"


def recorded(model: Model, functions: Iterable[str], name: str) -> tuple[str, tuple[str, ...]]:
    """The header of the test program: arguments and results of the functions; and the functions that have some.

    A robot whose loops are open at its start has no steps from there, and one that nothing holds no equilibrium.
    """
    functions = list(functions)
    lines = ["/* Arguments and results of the functions, computed by lissom. */", ""]
    names = [function for function in functions if FUNCTIONS[function].results]
    states, records = states_of(model), []
    for function in names:
        given, found = map(np.array, zip(*(evaluated(model, function, state) for state in states)))
        lines += [_array(f"{function}_in", given), _array(f"{function}_out", found)]
        records.append(f'    {{{name.upper()}_{function.upper()}, "{function}", {function}_in, {function}_out}},')
    lines += ["static const struct record RECORDS[] = {", *records, '    {-1, "", NULL, NULL}};', ""]
    lines += [f"enum {{ N_STATES = {_STATES}, N_RECORDS = {len(names)}, N_STEPS = {STEPS} }};"]
    for function, record in (("equilibrium", _equilibrium), ("step", _steps)):
        if function in functions:
            try:
                lines += record(model)
            except (ModelError, ConvergenceError):
                continue
            names.append(function)
    return "\n".join(lines), tuple(names)


def _equilibrium(model: Model) -> list[str]:
    return [_array("EQUILIBRIUM", solve_statics(model, stable=False).q)]


def _steps(model: Model) -> list[str]:
    stepper = Stepper(model, STEP, q0=closed_start(model, start_configuration(model)[None])[0])
    lines = [f"static const double STEP_SIZE = {STEP!r};"]
    lines += [_array("BEFORE_Q", stepper.state.q), _array("BEFORE_V", stepper.state.v)]
    stepper.step(steps=STEPS)
    return [*lines, _array("AFTER_Q", stepper.state.q), _array("AFTER_V", stepper.state.v)]
