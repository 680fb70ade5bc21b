"""Export of a robot as an FMU by FMI 3.0 or 2.0: a compiled library with a description of its variables."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lissom.dynamics.configuration import quaternion_joints
from lissom.errors import ModelError
from lissom.exporting import sources
from lissom.exporting.building import build_library, find_compiler, machine, suffix, system
from lissom.exporting.export import write_sources
from lissom.exporting.fmu_description import (
    GROUP,
    KINDS,
    VERSIONS,
    Fmu,
    build_description,
    model_description,
)
from lissom.exporting.parameters import Parameter, parameters_of
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks

EXCHANGE, SIMULATION = "model_exchange", "co_simulation"
_DIRECTIONS = ("forward_dynamics_derivatives", "jacobians")  # functions of directional derivatives


def export_fmu(
    model: Model,
    out: str | Path,
    *,
    dt: float = 1e-3,
    name: str | None = None,
    version: str = "3.0",
    kinds: Sequence[str] | None = None,
    parameters: Sequence[str] | Mapping[str, str] = (),
) -> Path:
    """Write a robot as an FMU by FMI 3.0 or 2.0, for Simulink, Modelica tools and others.

    Inputs are those of the robot. Outputs are coordinates, velocities, accelerations and the positions of links and
    frames; the start of coordinates and velocities can be set. A compiler of this machine builds the library: the one
    that the environment variable CXX names, or clang++ or g++. The FMU also contains the sources.

    Args:
        out: file to write, such as `arm.fmu`.
        dt: size of a step of co-simulation [s], the start of the parameter `step_size`. Communication steps are divided
            into steps of this size.
        name: model identifier and prefix of the functions; None: the name of the robot, in lower case.
        version: of the standard, "3.0" or "2.0".
        kinds: "co_simulation", by implicit steps of the robot, and "model_exchange", whose states q and v the tool
            integrates, with directional derivatives; quaternions may have any length there. None: both if the robot
            has both.
        parameters: as of `export`; they are tunable parameters of the FMU.
    Returns:
        Path of the file.
    Raises:
        ModelError: as of `export`, or there is no compiler, or the robot has no model exchange: loops and other
            constraints, prescribed motions, and contacts that stick, by name. OSError: the compiler fails, or a file
            cannot be written.
    """
    checks.number(dt, "dt", above=0.0)
    checks.require(version in VERSIONS, "version", f"must be one of {', '.join(VERSIONS)}", version)
    chosen = _checked_kinds(model, kinds)
    compiler = find_compiler("export_fmu")
    directions = _DIRECTIONS if EXCHANGE in chosen else ()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sources"
        made = write_sources(model, folder, ("forward_dynamics", "frames", "step", *directions), name, parameters)
        texts = {path: (folder / path).read_bytes() for path in made.files}
        token = f"{{{hashlib.sha256(b''.join(texts[path] for path in sorted(texts))).hexdigest()[:32]}}}"
        listed = parameters_of(model, parameters)
        fmu = Fmu(model, made.name, token, dt, version, EXCHANGE in chosen, SIMULATION in chosen, listed)
        for path, text in fmu_sources(fmu).items():
            (folder / path).write_text(text, encoding="utf-8")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        library = Path(place) / f"{made.name}{suffix()}"
        compiled = [path for path in files if path.suffix == ".cpp"]
        build_library("export_fmu", compiler, folder, compiled, library, portable=True)

        def write(stream: Any) -> None:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("modelDescription.xml", model_description(fmu))
                archive.write(library, f"binaries/{_platform(version)}/{library.name}")
                if version == "3.0":
                    archive.writestr("sources/buildDescription.xml", build_description(made.name, folder, files))
                for path in files:
                    archive.write(path, f"sources/{path.relative_to(folder)}")

        write_whole(Path(out), write)
    return Path(out)


def _checked_kinds(model: Model, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """The kinds of an FMU, of which the robot has all."""
    why = _no_exchange(model)
    if kinds is None:
        return (SIMULATION,) if why else (SIMULATION, EXCHANGE)
    listed = tuple(dict.fromkeys([kinds] if isinstance(kinds, str) else kinds))
    known = bool(listed) and set(listed) <= {SIMULATION, EXCHANGE}
    checks.require(known, "kinds", f"must be of {SIMULATION}, {EXCHANGE}", kinds)
    if EXCHANGE in listed and why:
        raise ModelError(
            f"robot {model.name!r}: export_fmu: model exchange needs a state of free coordinates and velocities (got "
            f"{why}); choose co_simulation, whose steps hold them"
        )
    return listed


def _no_exchange(model: Model) -> str:
    """The part of a robot whose state is not a free choice of q and v; empty if there is none. Quaternions of spherical
    and free joints may have any length there (native/coordinates.h)."""
    if model.n_motions:
        return f"prescribed motion {model.prescribed.names[0]!r}"
    if model.n_rows:
        return "loops or other constraints"
    if model.contacts.sticks:
        return "contacts that stick, whose anchors are states"
    return ""


def _platform(version: str) -> str:
    """Name of the platform in an FMU."""
    if version == "3.0":
        return f"{machine()}-{system()}"
    bits = "64" if machine() in ("x86_64", "aarch64") else "32"
    return {"linux": "linux", "darwin": "darwin", "windows": "win"}[system()] + bits


def fmu_sources(fmu: Fmu) -> dict[str, str]:
    """Texts of the sources that an FMU has besides those of the robot, by path."""
    main = f"fmi{fmu.version[0]}.cpp"
    own = {path: sources.prefixed(sources.native(path), fmu.name) for path in ("coordinates.h", "component.h", main)}
    return {"fmu.h": _header(fmu)} | own


def _header(fmu: Fmu) -> str:
    def numbers(values: Sequence[float]) -> str:
        return "{" + ", ".join(map(repr, [*map(float, values), 0.0])) + "}"

    parameters: tuple[Parameter, ...] = fmu.parameters
    lines = ["// Constants of the FMU.", "#pragma once", "", f'#define TOKEN "{fmu.token}"',
             f"#define STEP_SIZE {fmu.dt!r}", f"#define GROUP {GROUP}u", f"#define N_P {len(parameters)}",
             f"#define HAS_MODEL_EXCHANGE {int(fmu.has_exchange)}"]  # fmt: skip
    lines += [f"enum group {{ {', '.join(f'OF_{kind}' for kind in KINDS)} }};"]
    lines += [f"constexpr double PARAMETERS[] = {numbers([one.value for one in parameters])};"]
    model, joints = fmu.model, quaternion_joints(fmu.model)
    lines += [f"#define N_QUATERNIONS {len(joints)}"]
    lines += ["// A spherical or free joint: its first index in q and in v."]
    lines += ["struct quaternion {", "    int q, v;", "    bool is_free;", "};"]
    listed = ", ".join(f"{{{at}, {j}, {str(is_free).lower()}}}" for at, j, is_free in [*joints, (0, 0, False)])
    lines += [f"[[maybe_unused]] constexpr quaternion QUATERNIONS[] = {{{listed}}};"]
    places = ", ".join(map(str, [*np.asarray(model.dofs.q).tolist(), -1]))
    lines += ["// Index in q of each velocity; -1 for those of spherical and free joints."]
    lines += [f"[[maybe_unused]] constexpr int Q_OF_V[] = {{{places}}};"]
    lines += [f"[[maybe_unused]] constexpr double NOMINALS[] = {numbers(_nominals(model))};", ""]
    return "\n".join(lines)


def _nominals(model: Model) -> list[float]:
    """Usual sizes of the states q and v."""
    q, scale = np.ones(model.nq), np.asarray(model.dofs.scale)
    for j, at in enumerate(np.asarray(model.dofs.q).tolist()):
        if at >= 0:
            q[at] = scale[j]
    for at, j, is_free in quaternion_joints(model):
        if is_free:
            q[at + 4 : at + 7] = scale[j + 3 : j + 6]
    return [*q.tolist(), *scale.tolist()]
