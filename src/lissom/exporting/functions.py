"""The functions that can be exported: their launches, and the sizes of their arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lissom.dynamics.actuation import actuation_buffers
from lissom.dynamics.contacts import contacts_buffers
from lissom.dynamics.energy import mass_sums
from lissom.dynamics.forward_dynamics import forward_dynamics_buffers
from lissom.dynamics.forward_dynamics_derivatives import mass_response_buffers
from lissom.dynamics.inverse_dynamics import inverse_dynamics_buffers
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives_buffers
from lissom.dynamics.kinematics import frames_buffers, jacobian_buffers, motion_buffers
from lissom.dynamics.mass_matrix import mass_matrix_buffers
from lissom.exporting.input_columns import has_input_columns, input_columns_buffers
from lissom.launch.buffers import Buffers
from lissom.launch.points import frame_capacity, put_places
from lissom.launch.workspace import Pool, Workspace
from lissom.model.model import Model
from lissom.model.points import Places, places_of
from lissom.passes.columns import column_width
from lissom.passes.scratch import acting_flags
from lissom.statics.newton_kernel import equilibrium_buffers
from lissom.stepping.schemes import ORDER_SHARE, sdirk
from lissom.stepping.step_kernel import private_workspace, put_times
from lissom.stepping.step_rows import scheme_numbers
from lissom.stepping.stepper import RTOL


class Argument(NamedTuple):
    """An argument or a result of a function: its name, and its number of entries for a model as a text of sizes."""

    name: str
    size: str


class Function(NamedTuple):
    """A function that can be exported: its arguments, results, and the launches that it needs."""

    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    launches: tuple[str, ...]


def _arguments(*names: str) -> tuple[Argument, ...]:
    sizes = {"t": "1", "q": "ROBOT_NQ", "u": "ROBOT_NU"}
    return tuple(Argument(name, sizes.get(name, "ROBOT_NV")) for name in names)


_SQUARE = "ROBOT_NV * ROBOT_NV"
FUNCTIONS: dict[str, Function] = {
    "forward_dynamics": Function(_arguments("t", "q", "v", "u"), _arguments("a"), ("forward_dynamics",)),
    "inverse_dynamics": Function(_arguments("t", "q", "v", "a"), _arguments("tau"), ("inverse_dynamics",)),
    "mass_matrix": Function(_arguments("q"), (Argument("M", _SQUARE),), ("mass_matrix",)),
    "energy": Function(_arguments("q", "v"), (Argument("energies", "3"),), ("energy",)),
    "frames": Function(
        _arguments("q", "v", "a"),
        (
            Argument("poses", "16 * ROBOT_N_FRAMES"),
            Argument("twists", "6 * ROBOT_N_FRAMES"),
            Argument("rates", "6 * ROBOT_N_FRAMES"),
        ),
        ("frames",),
    ),
    "jacobians": Function(_arguments("q"), (Argument("J", "6 * ROBOT_NV * ROBOT_N_FRAMES"),), ("jacobians",)),
    "inverse_dynamics_derivatives": Function(
        _arguments("t", "q", "v", "a"),
        (Argument("dtau_dq", _SQUARE), Argument("dtau_dv", _SQUARE), Argument("dtau_da", _SQUARE)),
        ("derivatives",),
    ),
    "forward_dynamics_derivatives": Function(
        _arguments("t", "q", "v", "u"),
        (Argument("da_dq", _SQUARE), Argument("da_dv", _SQUARE), Argument("da_du", "ROBOT_NV * ROBOT_NU")),
        ("forward_dynamics", "derivatives", "actuation", "mass_response"),
    ),
    "equilibrium": Function((), (), ("equilibrium",)),
    "step": Function((), (), ("forward_dynamics", "step")),
    "forward_kinematics": Function(_arguments("q"), (Argument("poses", "16 * ROBOT_N_NODES"),), ("poses",)),
}


def direct_results(model: Model, launch: str) -> tuple[str, ...]:
    """Results that a kernel writes to memory of the caller, or of another launch: matrices, of which a copy takes a
    part of its time that one notices. The rows of derivatives are longer than nv, unless it is a multiple of 8."""
    known = {"mass_matrix": ("M",), "jacobians": ("J",), "mass_response": ("dq", "dv", "da")}
    if column_width(model) == model.nv:
        known["derivatives"] = ("dq", "dv", "da")
    return known.get(launch, ())


def frame_names(model: Model) -> list[str]:
    """Links, whose frames are at their tips, then the frames of the robot."""
    return [*model.links.names, *(name for name in model.frames if name not in model.links.names)]


def _places(model: Model) -> Places:
    """The places of all frames. They are on nodes, so that they need no further points."""
    found = [places_of(model, name, 1.0) for name in frame_names(model)]
    return replace(
        found[0],
        node=np.concatenate([one.node for one in found]),
        placement=np.concatenate([one.placement for one in found]),
        single=False,
    )


def _at_frames(make: Callable[..., Buffers]) -> Callable[[Model], Buffers]:
    def made(model: Model) -> Buffers:
        places = _places(model)
        w = make(model, 1, frame_capacity(places))
        put_places(Workspace(w, Pool()), model, places)
        return w

    return made


def _inverse_dynamics(model: Model) -> Buffers:
    w = inverse_dynamics_buffers(model, 1)
    w.host["terms"][0] = acting_flags(True, True)
    return w


def _step(model: Model) -> Buffers:
    """Buffers of a step by the scheme and the tolerances of `Stepper`."""
    w = private_workspace(model, 1, 1)
    atol = 0.01 * RTOL
    w.host["numbers"][:] = scheme_numbers(sdirk(), RTOL, (atol, atol), model.n_rows > 0, ORDER_SHARE)
    if not model.loads.varies and not model.n_motions:
        put_times(model, w, [0.0] * len(w.host["load"]))
    return w.buffers


LAUNCHES: dict[str, Callable[[Model], Buffers]] = {
    "forward_dynamics": lambda model: forward_dynamics_buffers(model, 1),
    "inverse_dynamics": _inverse_dynamics,
    "mass_matrix": lambda model: mass_matrix_buffers(model, 1),
    "energy": lambda model: mass_sums(model, 1),
    "frames": _at_frames(frames_buffers),
    "jacobians": _at_frames(lambda model, batch, room: jacobian_buffers(model, batch, room, rates=False)),
    "derivatives": lambda model: residual_derivatives_buffers(model, 1),
    "mass_response": lambda model: mass_response_buffers(model, 1),
    "actuation": lambda model: actuation_buffers(model, 1),
    "input_columns": input_columns_buffers,
    "equilibrium": lambda model: equilibrium_buffers(model, 1),
    "contacts": lambda model: contacts_buffers(model, 1),
    "poses": lambda model: motion_buffers(model, 1),
    "step": _step,
}


def launches_of(model: Model, functions: Iterable[str]) -> list[str]:
    """The launches that functions of a model need. Steps with contacts that stick begin with their anchors; derivatives
    by inputs of users' actuators and forces are a launch of their own. With loops no kernel has the system of
    accelerations."""
    needed = {launch for function in functions for launch in FUNCTIONS[function].launches}
    if model.n_rows:
        needed.discard("mass_response")
    if "step" in needed and model.contacts.sticks:
        needed.add("contacts")
    if "actuation" in needed and has_input_columns(model):
        needed.add("input_columns")
    return [launch for launch in LAUNCHES if launch in needed]


def size_of(model: Model, argument: Argument) -> int:
    """Number of entries of an argument or result."""
    sizes: dict[str, Any] = {"NQ": model.nq, "NV": model.nv, "NU": model.nu, "N_FRAMES": len(frame_names(model))}
    sizes["N_NODES"] = model.n_nodes
    total = 1
    for part in argument.size.split(" * "):
        total *= sizes[part.removeprefix("ROBOT_")] if part.startswith("ROBOT_") else int(part)
    return total
