"""All kernels of the library: compilation ahead of use, and the contents of the cache of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import warp as wp

from lissom.dynamics.actuation import actuation_kernel
from lissom.dynamics.constraints import closing_kernel, constraint_kernel
from lissom.dynamics.contacts import contacts_kernel
from lissom.dynamics.energy import energy_kernel
from lissom.dynamics.forward_dynamics import (
    accelerations_kernel,
    articulated_kernel,
    closed_kernel,
    forward_dynamics_kernel,
    residual_kernel,
)
from lissom.dynamics.forward_dynamics_derivatives import mass_response_kernel
from lissom.dynamics.input_dynamics import input_dynamics_kernel
from lissom.dynamics.inverse_dynamics import inverse_dynamics_kernel
from lissom.dynamics.inverse_dynamics_derivatives import inverse_dynamics_tangent_kernel, residual_derivatives_kernel
from lissom.dynamics.kinematics import frames_kernel, jacobian_kernel, motion_kernel
from lissom.dynamics.kinematics_derivatives import kinematics_derivatives_kernel
from lissom.dynamics.mass_matrix import (
    coriolis_kernel,
    mass_inverse_dynamics_kernel,
    mass_matrix_kernel,
    rigid_mass_matrix_kernel,
)
from lissom.errors import ModelError
from lissom.gradients.recursion import recursion_kernel
from lissom.launch.compiling import begin_headers, build, check_target, find_precompiled, kernel_for, load
from lissom.launch.cores import build_lock
from lissom.lie import arrays
from lissom.lie.warp_private import is_compiled
from lissom.model.model import Model, check_device
from lissom.robot import formatting
from lissom.robot.bodies import RigidBody
from lissom.robot.joints import JointFree, JointRevolute
from lissom.robot.robot import Robot
from lissom.robot.shapes import ShapePlane
from lissom.statics.newton_kernel import equilibrium_kernel
from lissom.stepping.contact_search import contact_search_kernel
from lissom.stepping.step_kernel import block_steps_kernel, implicit_steps_kernel, steps_kernel

# One of each module but that of the Lie group's functions, those that take longest first.
KERNELS: tuple[Any, ...] = (
    implicit_steps_kernel,
    block_steps_kernel,
    equilibrium_kernel,
    residual_derivatives_kernel,
    forward_dynamics_kernel,
    articulated_kernel,
    closed_kernel,
    closing_kernel,
    residual_kernel,
    inverse_dynamics_tangent_kernel,
    kinematics_derivatives_kernel,
    coriolis_kernel,
    constraint_kernel,
    actuation_kernel,
    mass_inverse_dynamics_kernel,
    inverse_dynamics_kernel,
    jacobian_kernel,
    frames_kernel,
    motion_kernel,
    contacts_kernel,
    input_dynamics_kernel,
    contact_search_kernel,
    recursion_kernel,
    energy_kernel,
    rigid_mass_matrix_kernel,
    mass_matrix_kernel,
    mass_response_kernel,
)


# Kernels of steps, one of which `steps_kernel` chooses.
STEPS = implicit_steps_kernel, block_steps_kernel


@final
@formatting.in_one_line
@dataclass(frozen=True)
class KernelCache:
    """Compiled kernels on a machine.

    Fields:
        folder: folder of the cache.
        bytes: size of all files of Warp in it [B].
        compiled: number of modules of the given robots in the cache; None if this version of Warp does not report it.
        count: number of modules of these robots.
        ready: number of modules outside the cache that need no compiler, since the package contains them compiled for
            processors like this one.
    """

    folder: Path
    bytes: int
    compiled: int | None
    count: int
    ready: int = 0


def build_kernels(
    *models: Model, device: str = "cpu", target: str | None = None, out: str | Path | None = None
) -> None:
    """Compile all kernels ahead, on all cores, so that no call has to wait for them.

    Args:
        models: robots whose kernels are compiled. Kernels depend on the kinds of joints, bodies and forces of a robot.
            None: a robot of links and rods with tendons along them and no other forces. With a `target`: also robots
            with loops, spherical and free joints, straight and elastic tendons, and contacts.
        device: a Warp device.
        target, out: compile for all processors of a kind, `"x86-64-v3"` (AVX2), `"x86-64-v4"` (AVX-512) or `"aarch64"`,
            into a folder that other machines can use: the environment variable LISSOM_KERNELS names it to them.
    Raises:
        ModelError: there is no such device, or it cannot compile for the target. OSError: the results cannot be
            written; the message names the setting that helps.
    """
    check_device(device)
    if (target is None) != (out is None):
        raise ModelError(f"target, out: must be given together (got {target!r}, {out!r})")
    if target is not None:
        check_target(target)
    with build_lock():
        if target is None or out is None:
            begin_headers(wp.get_module(arrays.__name__), device, recompile=True)
            load(_modules(models or (_plain(),)), device, recompile=True)
        else:
            plain = _plain(), _plain(is_prescribed=True), _with_contact(is_rigid=True), _with_contact(is_rigid=False)
            build(_modules(models or plain), target, Path(out))


def kernel_cache(*models: Model, device: str = "cpu") -> KernelCache:
    """Contents of the cache of this machine: kernels of robots.

    Args:
        models, device: as of `build_kernels`.
    Returns:
        KernelCache.
    Raises:
        ModelError: there is no such device.
    """
    check_device(device)
    here = Path(str(wp.config.kernel_cache_dir))
    with build_lock():
        modules = _modules(models or (_plain(),))
        known = [is_compiled(module, device) for module in modules]
        ready = sum(find_precompiled(module, device) is not None for module, there in zip(modules, known) if not there)
    size = sum(_size(os.path.join(folder, name)) for folder, _, names in os.walk(here) for name in names)
    return KernelCache(here, size, None if None in known else sum(map(bool, known)), len(modules), ready)


def _size(file: str) -> int:
    """Size of a file [B]; 0 if another process, which compiles, has moved it meanwhile."""
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return 0


def _of(kernel: Any, model: Model) -> Any:
    """The kernel that a model uses in place of `kernel`: another one for accelerations of robots with loops, and a
    composed one for steps."""
    if kernel is forward_dynamics_kernel and model.n_rows:
        return accelerations_kernel(model)
    return steps_kernel(model) if kernel in STEPS else kernel


def _modules(models: tuple[Model, ...]) -> list[Any]:
    """The modules of all robots' kernels; those that serve several come once."""
    made = [
        kernel_for(_of(kernel, model), model).module for kernel in KERNELS for model in models if _needs(model, kernel)
    ]
    return list(dict.fromkeys([*made, wp.get_module(arrays.__name__)]))


def _needs(model: Model, kernel: Any) -> bool:
    """Whether a model needs a kernel: of loops if it has loops, of contacts if it has contacts."""
    if kernel in (closed_kernel, constraint_kernel):
        return model.n_rows > 0
    return model.has_surroundings or kernel not in (contacts_kernel, contact_search_kernel)


def _plain(is_prescribed: bool = False) -> Model:
    """A plain robot; with `is_prescribed` it has a loop, so that it needs the general kernels."""
    robot = Robot("plain")
    robot.add_link("body", body=RigidBody.sphere(0.1, density=1e3), joint=JointRevolute())
    if is_prescribed:
        robot.add_loop("loop", "body", None, joint=JointRevolute())
    return robot.build()


def _with_contact(is_rigid: bool) -> Model:
    """A robot with a contact and no loops, whose kernels serve rigid robots only or all robots."""
    robot = Robot("with contact")
    robot.add_link("body", body=RigidBody.sphere(0.1, density=1e3), joint=JointFree())
    robot.add_contact("ground", "body", ShapePlane())
    if not is_rigid:
        robot.add_point_load("load", "body", force=(0.0, 0.0, 1.0))
    return robot.build()
