"""Export of a robot as an FMU for co-simulation by FMI 3.0: a compiled library with a description of its variables."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as Xml

from lissom.dynamics.start import start_configuration
from lissom.exporting import sources
from lissom.exporting.building import build_library, find_compiler, machine, suffix, system
from lissom.exporting.export import coordinate_names, export, unit_of_input
from lissom.exporting.functions import frame_names
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks

_GROUP = 100_000  # value references of a kind of variables
_KINDS = ("SELF", "U", "Q", "V", "A", "FRAMES")
# Exponents of SI units in the units of inputs
_UNITS = {
    "s": {"s": 1},
    "m": {"m": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "Pa": {"kg": 1, "m": -1, "s": -2},
    "N·m": {"kg": 1, "m": 2, "s": -2},
}


class Variable(NamedTuple):
    """A variable of the FMU: name, value reference, causality, variability, `initial` and start or None, and unit."""

    name: str
    reference: int
    causality: str
    variability: str
    initial: str
    start: float | None
    unit: str


def export_fmu(model: Model, out: str | Path, *, dt: float = 1e-3, name: str | None = None) -> Path:
    """Write a robot as an FMU for co-simulation by FMI 3.0, for Simulink, Modelica tools and others.

    Inputs are those of the robot. Outputs are coordinates, velocities, accelerations and the positions of links and
    frames; the start of coordinates and velocities can be set. A compiler of this machine builds the library: the one
    that the environment variable CXX names, or clang++ or g++. The FMU also contains the sources.

    Args:
        out: file to write, such as `arm.fmu`.
        dt: size of a step [s], the start of the parameter `step_size`. Communication steps are divided into steps of
            this size.
        name: model identifier and prefix of the functions; None: the name of the robot, in lower case.
    Returns:
        Path of the file.
    Raises:
        ModelError: as of `export`, or there is no compiler. OSError: the compiler fails, or a file cannot be written.
    """
    checks.number(dt, "dt", above=0.0)
    compiler = find_compiler("export_fmu")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sources"
        made = export(model, folder, ("forward_dynamics", "frames", "step"), name=name)
        texts = {path: (folder / path).read_bytes() for path in made.files}
        token = f"{{{hashlib.sha256(b''.join(texts[path] for path in sorted(texts))).hexdigest()[:32]}}}"
        (folder / "fmu.h").write_text(_header(token, dt), encoding="utf-8")
        text = sources.prefixed(sources.native("fmi3.cpp"), made.name)
        (folder / "fmi3.cpp").write_text(text, encoding="utf-8")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        library = Path(place) / f"{made.name}{suffix()}"
        compiled = [path for path in files if path.suffix == ".cpp"]
        build_library("export_fmu", compiler, folder, compiled, library, portable=True)
        description = _description(model, made.name, token, dt)

        def write(stream: Any) -> None:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("modelDescription.xml", description)
                archive.write(library, f"binaries/{machine()}-{system()}/{library.name}")
                archive.writestr("sources/buildDescription.xml", _build(made.name, folder, files))
                for path in files:
                    archive.write(path, f"sources/{path.relative_to(folder)}")

        write_whole(Path(out), write)
    return Path(out)


def _header(token: str, dt: float) -> str:
    lines = ["// Constants of the FMU.", "#pragma once", "", f'#define TOKEN "{token}"', f"#define STEP_SIZE {dt!r}",
             f"#define GROUP {_GROUP}u"]  # fmt: skip
    lines += [f"enum group {{ {', '.join(f'OF_{kind}' for kind in _KINDS)} }};", ""]
    return "\n".join(lines)


def _variables(model: Model, dt: float) -> Iterator[Variable]:
    """All variables; their references are those of fmi3.cpp."""

    def reference(kind: str, k: int) -> int:
        return _GROUP * _KINDS.index(kind) + k

    yield Variable("time", 0, "independent", "continuous", "", None, "s")
    yield Variable("step_size", 1, "parameter", "tunable", "exact", dt, "s")
    for k, name in enumerate(model.inputs.names):
        yield Variable(f"u.{name}", reference("U", k), "input", "continuous", "", 0.0, unit_of_input(model, k))
    q, names = start_configuration(model), coordinate_names(model)
    for kind, group, starts in (("Q", names[0], q), ("V", names[1], [0.0] * model.nv)):
        for k, (name, start) in enumerate(zip(group, starts)):
            exact = reference(kind, k), "output", "continuous", "exact"
            yield Variable(f"{kind.lower()}.{name}", *exact, float(start), "")
    for k, name in enumerate(names[1]):
        yield Variable(f"a.{name}", reference("A", k), "output", "continuous", "calculated", None, "")
    for f, frame in enumerate(frame_names(model)):
        for c, axis in enumerate("xyz"):
            at = reference("FRAMES", 3 * f + c)
            yield Variable(f"position.{frame}.{axis}", at, "output", "continuous", "calculated", None, "m")


def _description(model: Model, name: str, token: str, dt: float) -> bytes:
    """The file modelDescription.xml."""
    root = Xml.Element("fmiModelDescription", fmiVersion="3.0", modelName=model.name, instantiationToken=token,
                       generationTool=f"lissom {version('lissom')}", variableNamingConvention="flat")  # fmt: skip
    Xml.SubElement(root, "CoSimulation", modelIdentifier=name, canHandleVariableCommunicationStepSize="true",
                   canGetAndSetFMUState="true")  # fmt: skip
    variables = list(_variables(model, dt))
    units = Xml.SubElement(root, "UnitDefinitions")
    for unit in dict.fromkeys(variable.unit for variable in variables if variable.unit in _UNITS):
        powers = {key: str(power) for key, power in _UNITS[unit].items()}
        Xml.SubElement(Xml.SubElement(units, "Unit", {"name": unit}), "BaseUnit", powers)
    Xml.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1", stepSize=repr(dt))
    listed, structure = Xml.SubElement(root, "ModelVariables"), Xml.SubElement(root, "ModelStructure")
    for one in variables:
        given = {"name": one.name, "valueReference": str(one.reference), "causality": one.causality}
        given |= {"variability": one.variability} | ({"initial": one.initial} if one.initial else {})
        given |= {} if one.start is None else {"start": repr(one.start)}
        given |= {"unit": one.unit} if one.unit in _UNITS else {}
        Xml.SubElement(listed, "Float64", given)
        if one.causality == "output":
            Xml.SubElement(structure, "Output", valueReference=str(one.reference))
    for one in variables:
        if one.initial == "calculated":
            Xml.SubElement(structure, "InitialUnknown", valueReference=str(one.reference))
    Xml.indent(root)
    return Xml.tostring(root, encoding="utf-8", xml_declaration=True)


def _build(name: str, folder: Path, files: Sequence[Path]) -> bytes:
    """The file buildDescription.xml, by which other tools compile the sources."""
    root = Xml.Element("fmiBuildDescription", fmiVersion="3.0")
    one = Xml.SubElement(root, "BuildConfiguration", modelIdentifier=name)
    group = Xml.SubElement(one, "SourceFileSet", language="C++17")
    for path in files:
        if path.suffix == ".cpp":
            Xml.SubElement(group, "SourceFile", name=str(path.relative_to(folder)))
    for include in (".", "warp"):
        Xml.SubElement(group, "IncludeDirectory", name=include)
    Xml.indent(root)
    return Xml.tostring(root, encoding="utf-8", xml_declaration=True)
