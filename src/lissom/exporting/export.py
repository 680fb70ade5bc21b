"""Export of a robot as C++ that any compiler builds, with a C interface: without Python, Warp and downloads.

The kernels are those of the library: Warp writes them as C++, and the export binds their arguments to constants and to
a block of working memory (launches). `native/robot.cpp` does what Python does around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import quaternion_joints
from lissom.dynamics.contacts import NUMBERS_PER_PAIR
from lissom.dynamics.forward_dynamics_derivatives import input_width
from lissom.dynamics.loads import laws_of_time
from lissom.errors import ModelError
from lissom.exporting import sources
from lissom.exporting.adjusting import Adjustment, adjustment_of, tables_of_parameters
from lissom.exporting.building import build_library, find_compiler, suffix
from lissom.exporting.functions import FUNCTIONS, direct_results, frame_names
from lissom.exporting.launches import Place, Program
from lissom.exporting.recorded import recorded
from lissom.exporting.snapshots import buffers_of_launches, own_numbers
from lissom.exporting.units import unit_of_input
from lissom.forces.tendons import SLACK_TOLERANCE
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.passes.columns import column_width
from lissom.passes.scratch import ALL_TERMS, acting_flags
from lissom.portable import write_whole
from lissom.robot import checks, formatting
from lissom.stepping.schemes import sdirk
from lissom.stepping.step_rows import COUNTS, DONE, HAS_MATRIX, STEADY
from lissom.stepping.step_sizes import LEAST, NEXT
from lissom.stepping.stepper import LEAST_PART


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ExportedRobot:
    """An exported robot.

    Fields:
        folder: folder of the sources. name: prefix of all functions.
        functions: names of the exported functions.
        files: paths of the files, below the folder.
        parameters: names of the numbers that may change.
        library: the compiled shared library; None if none was asked for.
    """

    folder: Path
    name: str
    functions: tuple[str, ...]
    files: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    library: Path | None = None


def export(
    model: Model,
    out: str | Path,
    functions: Sequence[str] = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "energy", "frames", "step"),
    *,
    name: str | None = None,
    parameters: Sequence[str] | Mapping[str, str] = (),
    build: bool = False,
) -> ExportedRobot:
    """Write a robot as C++ sources with a C interface, which need neither Python nor Warp.

    The folder has a header, the kernels, the numbers of the robot as constants, what the kernels need of Warp's headers
    with their licence, a CMakeLists.txt, and a program that compares results to recorded ones. Units are SI, angles
    are in [rad].

    Args:
        out: folder, which is made if it does not exist.
        functions: what is exported: forward_dynamics, inverse_dynamics, mass_matrix, energy, frames, jacobians,
            inverse_dynamics_derivatives, forward_dynamics_derivatives, equilibrium, step, forward_kinematics.
        name: prefix of all functions and name of the header; None: the name of the robot, in lower case.
        parameters: paths of values that may change after the export, as for `Model.with_`, or paths by own names:
            numbers, arrays of numbers and placements on which the tables of the robot depend by polynomials. They keep
            their units.
        build: whether to compile a shared library for this machine, by the compiler that the environment variable CXX
            names, or by clang++ or g++ of the PATH.
    Returns:
        ExportedRobot.
    Raises:
        ModelError: there is no such function, or the robot has a part that kernels cannot evaluate, or a parameter
            changes more than numbers, or by no polynomial; by its name and with the cure. There is no compiler.
            OSError: a file cannot be written, or the compiler fails.
    """
    compiler = find_compiler("export: build") if build else ""
    made = write_sources(model, out, functions, name, parameters, with_test=True)
    if not build:
        return made
    library = made.folder / f"lib{made.name}{suffix()}"
    sources_to_build = [made.folder / path for path in made.files if path.endswith(".cpp")]
    build_library("export: build", compiler, made.folder, sources_to_build, library)
    return replace(made, library=library)


def write_sources(
    model: Model,
    out: str | Path,
    functions: Sequence[str],
    name: str | None = None,
    parameters: Sequence[str] | Mapping[str, str] = (),
    *,
    with_test: bool = False,
) -> ExportedRobot:
    """Write the sources of a robot; arguments as of `export`. The library computes the results of `with_test`."""
    chosen = _checked_functions(functions)
    require_exportable(model, chosen)
    prefix = _checked_name(model, name)
    varies = _varies(model)
    adjustment = adjustment_of(model, chosen, varies, parameters)
    program = Program(adjusted=adjustment.arrays)
    for launch, w in buffers_of_launches(model, chosen, varies).items():
        program.add(launch, w, direct_results(model, launch))
    files = _files(model, program, chosen, prefix, varies, adjustment)
    if with_test:
        folders = "kernels/*.cpp functions/*.cpp" if program.functions else "kernels/*.cpp"
        files |= _test_files(model, chosen, prefix, folders)
    folder = Path(out)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / path, lambda stream, text=text: stream.write(text.encode("utf-8")))
    names = tuple(one.name for one in adjustment.parameters)
    return ExportedRobot(folder, prefix, chosen, tuple(files), names)


def _checked_functions(functions: Sequence[str]) -> tuple[str, ...]:
    names = [functions] if isinstance(functions, str) else list(functions)
    wrong = [name for name in names if name not in FUNCTIONS]
    checks.require(bool(names) and not wrong, "functions", f"must be of {', '.join(FUNCTIONS)}", wrong or names)
    return tuple(name for name in FUNCTIONS if name in names)


_RESERVED = ("robot", "wp", "traced", "std", "lissom")


def _checked_name(model: Model, name: str | None) -> str:
    """A prefix of C functions."""
    plain = re.sub(r"\W+", "_", (model.name if name is None else name).lower()).strip("_")
    if name is None and (not re.fullmatch(r"[a-z][a-z0-9_]*", plain) or plain in _RESERVED):
        plain = f"r_{plain}"
    good = (
        bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", plain))
        and plain not in _RESERVED
        and (name is None or plain == name)
    )
    checks.require(good, "name", "must be lower case letters, digits and underscores, and begin with a letter", name)
    return plain


def _varies(model: Model) -> bool:
    return model.loads.varies or model.n_motions > 0


def require_exportable(model: Model, functions: Iterable[str]) -> None:
    """Raise a ModelError that names a part of the robot which exported code cannot evaluate, and the cure."""
    if isinstance(model, ModelBatch) or model.models:
        raise ModelError("export: must be given one model (got a ModelBatch); export its models one by one")
    where = f"robot {model.name!r}: export"
    if model.device != "cpu":
        raise ModelError(f"{where} needs kernels for the CPU (got {model.device!r}); build it without a device")
    cure = "write it as TracedFunction or as Warp function"
    for force, *_ in model.forces.called:
        raise ModelError(f"{where} cannot hold force {force!r}, a function in Python; {cure}")
    for actuator, *_ in model.inputs.custom:
        raise ModelError(f"{where} cannot hold actuator {actuator.name!r}, a function in Python; {cure}")
    links = model.links.names
    for m, pose in model.maps.functions():
        link = links[model.nodes.link[model.maps.node[m]]]
        raise ModelError(
            f"{where} cannot hold the joint of link {link!r}, which Python evaluates: it {pose.why_python}"
        )
    if model.maps.calls_python or model.deforming.calls_python or model.pulls.calls_python:
        names = sorted({links[model.nodes.link[k]] for k in (*model.deforming.node, *model.maps.node)})
        raise ModelError(f"{where} cannot hold deformable bodies that Python evaluates: {', '.join(names)}; "
                         "`lissom info` gives the reasons")  # fmt: skip
    if model.prescribed.n_locked or model.prescribed.steady is not None:
        raise ModelError(f"{where} cannot hold a model in steady motion; export the model of the robot")
    if _varies(model) and laws_of_time(model) is None:
        names = ", ".join([*model.description.loads, *model.description.motions]) or "the current"
        rule = "needs loads and motions that are expressions, samples or polynomials of time"
        raise ModelError(f"{where} {rule}, and one of {names} is a function in Python; write it as an expression")
    if {"step", "equilibrium"} & set(functions):
        for k, j in enumerate(model.prescribed.dof.tolist()):
            if model.dofs.q[j] < 0:
                named = f"motion {model.prescribed.names[k]!r} of a spherical or free joint"
                raise ModelError(f"{where} of step and equilibrium cannot hold {named}; leave these two out")


def coordinate_names(model: Model) -> tuple[list[str], list[str]]:
    """Names of coordinates and of velocities: the link, and the number on it."""

    def names(starts: np.ndarray, total: int) -> list[str]:
        spans = zip(model.links.names, starts.tolist(), [*starts.tolist()[1:], total])
        return [f"{name}[{k}]" for name, first, stop in spans for k in range(stop - first)]

    return names(model.links.q_start, model.nq), names(model.links.v_start, model.nv)


def _files(
    model: Model, program: Program, functions: tuple[str, ...], name: str, varies: bool, adjustment: Adjustment
) -> dict[str, str]:
    """Texts of all files, by path."""
    has, nq, nv, nu, rows = set(functions), model.nq, model.nv, model.nu, model.n_rows
    more: dict[str, Place] = {}
    starts = [at for at, _, _ in quaternion_joints(model)]
    tables, adjusted = {}, {}
    for key, values in own_numbers(model, varies).items():
        change = adjustment.arrays.get(f"own:{key}")
        if change is None:
            tables[key] = program.table(key, values)
        else:
            adjusted[key] = program.adjusted_table(key, values, change)
    of_launches = program.size
    if "forward_dynamics_derivatives" in has and rows:
        n, m = nv + rows, 2 * nv + nu
        for key, count in (("matrix", n * n), ("right", n * m), ("units", n)):
            more[f"solve_{key}"] = program.reserve("double", count)
    if "equilibrium" in has:
        more["equilibrium_kept"] = program.reserve("double", nq + rows)
    if "step" in has:
        more["step_kept"] = program.reserve("double", nq + 4 * nv + 2 * rows + 6 * len(model.contacts.pair))
    for launch in program.launches:
        if f"{launch}_load" not in more and "load" not in program.launches[launch].places:
            more[f"{launch}_load"] = program.reserve("double", 0)
    n_loads = 6 * model.n_load_rows
    numbers: dict[str, Any] = {f"HAS_{function.upper()}": int(function in has) for function in FUNCTIONS}
    numbers["HAS_FORWARD_DYNAMICS"] = int("forward_dynamics" in program.launches)
    numbers |= {"HAS_LAWS": int(varies), "WIDTH": column_width(model), "INPUT_WIDTH": input_width(model)}
    numbers |= {"N_LOADS": n_loads}
    numbers |= {"N_FORCES": n_loads - 12 * model.has_surroundings, "N_MOTIONS": model.n_motions}
    numbers |= {"N_CHANNELS": len(model.channels.names), "N_SPOOLS": len(model.spools.channel)}
    numbers["HAS_INPUT_COLUMNS"] = int("input_columns" in program.launches)
    numbers |= {"SLACK_TOLERANCE": SLACK_TOLERANCE, "N_QUATERNIONS": len(starts)}
    numbers |= {"LOADS_AND_SPRINGS": acting_flags(True, True), "ALL_TERMS": int(ALL_TERMS)}
    numbers |= {"N_STAGES": len(sdirk().stages), "LEAST_PART": repr(LEAST_PART)}
    numbers |= {"DONE": DONE, "HAS_MATRIX": HAS_MATRIX, "STEADY": STEADY, "N_COUNTS": COUNTS}
    numbers |= {"LEAST": LEAST, "NEXT": NEXT}
    sticks = bool(model.contacts.sticks)
    numbers |= {"STICKS": int(sticks), "NUMBERS_PER_PAIR": int(NUMBERS_PER_PAIR)}
    numbers["STATE_OF_ROWS"] = ", step_force, step_force_before" * (rows > 0) + ", step_anchor" * sticks
    arrays = {
        "int MOTION_V[]": sources.integers(model.prescribed.dof),
        "int MOTION_Q[]": sources.integers(model.dofs.q[model.prescribed.dof]),
        "int SPOOL_CHANNEL[]": sources.integers(model.spools.channel),
        "int QUATERNION_AT[]": sources.integers(starts),
        "const char* COORDINATE_NAMES[]": sources.strings(coordinate_names(model)[0]),
        "const char* VELOCITY_NAMES[]": sources.strings(coordinate_names(model)[1]),
        "const char* INPUT_NAMES[]": sources.strings(list(model.inputs.names)),
        "const char* INPUT_UNITS[]": sources.strings([unit_of_input(model, k) for k in range(nu)]),
        "const char* FRAME_NAMES[]": sources.strings(frame_names(model)),
    }
    parts = functions
    if adjustment.parameters:
        tables_of_parameters(program, adjustment)
        parts, listed = (*functions, "parameters"), adjustment.parameters
        more["parameters"] = program.reserve("double", len(listed))
        more["monomials"] = program.reserve("double", 2 * len(adjustment.monomials))
        poses = sorted({one.pose for one in listed if one.pose >= 0})
        numbers |= {"N_MONOMIALS": len(adjustment.monomials), "N_POSES": len(poses), "OF_LAUNCHES": of_launches}
        numbers["N_ADJUSTED"] = sum(len(change.entries) for change in program.updates.values())
        arrays |= {
            "int POSE_AT[]": sources.integers(poses),
            "const char* PARAMETER_NAMES[]": sources.strings([one.name for one in listed]),
            "const char* PARAMETER_UNITS[]": sources.strings([one.unit for one in listed]),
        }
    cells = {cell: k for k, cell in enumerate(program.functions)}
    renamed = {key: table.name for key, table in tables.items() if table.name != key}
    texts = {f"kernels/{launch}.cpp": sources.kernel_source(code) for launch, code in program.launches.items()}
    texts |= {f"functions/{k}.cpp": sources.function_source(k, program.functions[c]) for c, k in cells.items()}
    whole = sources.native("robot.cpp").replace("@SIZES@", _sizes(functions)).replace("@CALLS@", _calls(functions))
    for key, place in adjusted.items():
        whole = whole.replace(f"ROBOT({key})", f"adjusted(w, {place.offset})")
    for key, other in renamed.items():
        whole = whole.replace(f"ROBOT({key})", f"ROBOT({other})")
    texts[f"{name}.cpp"] = sources.prefixed(sources.chosen(whole, parts), name)
    header = _header(model, functions, len(adjustment.parameters))
    texts[f"{name}.h"] = sources.prefixed(sources.chosen(header, parts), name)
    texts["layout.h"] = sources.layout(program, numbers, arrays, more)
    texts["tables.h"] = sources.tables_header(name, program, cells)
    texts["tables.cpp"] = sources.tables_source(program, cells)
    texts["bind.h"] = sources.native("bind.h")
    texts |= sources.headers()
    return texts


def _test_files(model: Model, functions: tuple[str, ...], name: str, folders: str) -> dict[str, str]:
    """A test with results of the library, what builds it, and the description of the folder with its `folders` of
    sources; by path."""
    texts: dict[str, str] = {}
    texts["recorded.h"], known = recorded(model, functions, name)
    shown = {"CMakeLists.txt": functions, "README.md": functions, "test.c": known}
    for file, parts in shown.items():
        text = sources.native(file).replace("@FOLDERS@", folders)
        texts[file] = sources.prefixed(_filled(text, model, parts, name), name)
    return texts


def _filled(text: str, model: Model, functions: tuple[str, ...], name: str) -> str:
    for key, value in {
        "TITLE": model.name, "NAME": name, "FUNCTIONS": ", ".join(functions), "VERSION": version("lissom")
    }.items():  # fmt: skip
        text = text.replace(f"@{key}@", value)
    return sources.chosen(text, functions)


def _header(model: Model, functions: tuple[str, ...], n_parameters: int) -> str:
    title = f"{model.name}, exported by lissom {version('lissom')}."
    values = {"TITLE": title, "NQ": model.nq, "NV": model.nv, "NU": model.nu, "N_ROWS": model.n_rows}
    values |= {"N_FRAMES": len(frame_names(model)), "N_NODES": model.n_nodes, "ENUMS": _enums(functions)}
    values["N_PARAMETERS"] = n_parameters
    text = sources.native("robot.h")
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def _evaluated(functions: Iterable[str]) -> list[str]:
    return [function for function in functions if FUNCTIONS[function].results]


def _enums(functions: Iterable[str]) -> str:
    """Numbers of the functions of states, which do not depend on what else is exported."""
    known = list(FUNCTIONS)
    lines = [f"    ROBOT_{name.upper()} = {known.index(name)}," for name in _evaluated(functions)]
    return "\n".join(
        ["/* Numbers of functions for robot_evaluate(). */", "enum {", *lines, "    ROBOT_LAST = 63", "};", ""]
    )


def _sizes(functions: Iterable[str]) -> str:
    """The branches of robot_sizes()."""
    lines = []
    for name in _evaluated(functions):
        takes, gives = (" + ".join(part.size for part in parts) for parts in FUNCTIONS[name][:2])
        lines += [f"        case ROBOT_{name.upper()}:", f"            *n_in = {takes};"]
        lines += [f"            *n_out = {gives};", "            return ROBOT_OK;"]
    return "\n".join(lines)


def _calls(functions: Iterable[str]) -> str:
    """The branches of robot_evaluate()."""
    lines = []
    for name in _evaluated(functions):
        given, parts = ["w"], FUNCTIONS[name]
        for array, arguments in (("in", parts.arguments), ("out", parts.results)):
            before: list[str] = []
            for argument in arguments:
                at = " + ".join([array, *before])
                given.append("in[0]" if argument.name == "t" else at)
                before.append(argument.size)
        lines += [f"        case ROBOT_{name.upper()}:", f"            return robot_{name}({', '.join(given)});"]
    return "\n".join(lines)
