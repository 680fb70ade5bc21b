"""The descriptions in an FMU: its variables with units, capabilities and structure, by FMI 3.0 and 2.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

from lissom.dynamics.configuration import quaternion_joints
from lissom.dynamics.start import start_configuration
from lissom.exporting.export import coordinate_names
from lissom.exporting.functions import frame_names
from lissom.exporting.parameters import Parameter
from lissom.exporting.units import coordinate_units, exponents, unit_of_input
from lissom.model.model import Model

VERSIONS = ("3.0", "2.0")
GROUP = 100_000  # value references of a kind of variables
_LEAST = float(np.finfo(np.float64).tiny)  # smaller numbers are out of range for some readers of XML
KINDS = ("SELF", "U", "Q", "V", "A", "FRAMES", "P", "RATES")


class Fmu(NamedTuple):
    """An FMU: robot, identifier, token, step size [s], version of FMI, its kinds and parameters."""

    model: Model
    name: str
    token: str
    dt: float
    version: str
    has_exchange: bool
    has_simulation: bool
    parameters: tuple[Parameter, ...]


class Variable(NamedTuple):
    """A variable of the FMU: name, value reference, causality, variability, `initial`, start or None, unit, the
    reference of the state of which it is the derivative, or None, and the range of a parameter."""

    name: str
    reference: int
    causality: str
    variability: str
    initial: str
    start: float | None
    unit: str
    derivative: int | None = None
    least: float = -np.inf
    most: float = np.inf


def variables(fmu: Fmu) -> Iterator[Variable]:
    """All variables; their references are those of component.h."""
    model = fmu.model

    def reference(kind: str, k: int) -> int:
        return GROUP * KINDS.index(kind) + k

    yield Variable("time", 0, "independent", "continuous", "", None, "s")
    if fmu.has_simulation:
        yield Variable("step_size", 1, "parameter", "tunable", "exact", fmu.dt, "s", None, 5e-324)
    for k, one in enumerate(fmu.parameters):
        yield Variable(one.name, reference("P", k), "parameter", "tunable", "exact", one.value, one.unit, None,
                       one.least, one.most)  # fmt: skip
    for k, name in enumerate(model.inputs.names):
        yield Variable(f"u.{name}", reference("U", k), "input", "continuous", "", 0.0, unit_of_input(model, k))
    q, names, units = start_configuration(model), coordinate_names(model), coordinate_units(model)
    for k, name in enumerate(names[0]):
        at = reference("Q", k), "output", "continuous", "exact"
        yield Variable(f"q.{name}", *at, float(q[k]), units[0][k])
    turns = fmu.has_exchange and len(quaternion_joints(model)) > 0  # then the rates of q are not v
    for k, name in enumerate(names[0] if turns else ()):
        at = reference("RATES", k), "local", "continuous", "calculated"
        unit = f"{units[0][k]}/s" if units[0][k] in ("1", "m", "rad") else "1/(m·s)" if units[0][k] == "1/m" else ""
        yield Variable(f"der(q.{name})", *at, None, unit, reference("Q", k))
    for k, name in enumerate(names[1]):
        of_state = reference("Q", k) if fmu.has_exchange and not turns else None
        at = reference("V", k), "output", "continuous", "exact"
        yield Variable(f"v.{name}", *at, 0.0, units[1][k], of_state)
    for k, name in enumerate(names[1]):
        of_state = reference("V", k) if fmu.has_exchange else None
        yield Variable(
            f"a.{name}", reference("A", k), "output", "continuous", "calculated", None, units[2][k], of_state
        )
    for f, frame in enumerate(frame_names(model)):
        for c, axis in enumerate("xyz"):
            at = reference("FRAMES", 3 * f + c)
            yield Variable(f"position.{frame}.{axis}", at, "output", "continuous", "calculated", None, "m")


def model_description(fmu: Fmu) -> bytes:
    """The file modelDescription.xml."""
    is_two = fmu.version == "2.0"
    root = Xml.Element("fmiModelDescription", fmiVersion=fmu.version, modelName=fmu.model.name)
    root.set("guid" if is_two else "instantiationToken", fmu.token)
    root.set("generationTool", f"lissom {version('lissom')}")
    root.set("variableNamingConvention", "flat")
    if is_two:
        root.set("numberOfEventIndicators", "0")
    state = "FMUstate" if is_two else "FMUState"
    own = {"modelIdentifier": fmu.name, f"canGetAndSet{state}": "true", f"canSerialize{state}": "true"}
    if fmu.has_exchange:
        by_direction = "providesDirectionalDerivative" if is_two else "providesDirectionalDerivatives"
        Xml.SubElement(root, "ModelExchange", own | {by_direction: "true"})
    if fmu.has_simulation:
        Xml.SubElement(root, "CoSimulation", own | {"canHandleVariableCommunicationStepSize": "true"})
    listed = list(variables(fmu))
    _put_units(root, listed)
    Xml.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1", stepSize=repr(fmu.dt))
    if is_two:
        _put_two(root, listed)
    else:
        _put_three(root, listed)
    Xml.indent(root)
    return Xml.tostring(root, encoding="utf-8", xml_declaration=True)


def _put_units(root: Xml.Element, listed: Sequence[Variable]) -> None:
    """Definitions of the units that variables have."""
    units = Xml.SubElement(root, "UnitDefinitions")
    for unit in dict.fromkeys(one.unit for one in listed):
        powers = exponents(unit)
        if powers is not None:
            base = {key: str(power) for key, power in powers.items()}
            Xml.SubElement(Xml.SubElement(units, "Unit", {"name": unit}), "BaseUnit", base)


def _numbers_of(one: Variable) -> dict[str, str]:
    """Attributes of a variable that both versions have at its type."""
    given = {} if exponents(one.unit) is None else {"unit": one.unit}
    least = max(one.least, _LEAST) if one.least > 0.0 else one.least
    given |= {"min": repr(least)} if np.isfinite(least) else {}
    given |= {"max": repr(one.most)} if np.isfinite(one.most) else {}
    return given | ({} if one.start is None else {"start": repr(one.start)})


def _put_three(root: Xml.Element, listed: Sequence[Variable]) -> None:
    """Variables and structure by FMI 3.0."""
    variables, structure = Xml.SubElement(root, "ModelVariables"), Xml.SubElement(root, "ModelStructure")
    for one in listed:
        given = {"name": one.name, "valueReference": str(one.reference), "causality": one.causality}
        given |= {"variability": one.variability} | ({"initial": one.initial} if one.initial else {})
        given |= {} if one.derivative is None else {"derivative": str(one.derivative)}
        Xml.SubElement(variables, "Float64", given | _numbers_of(one))
    for word, members in (
        ("Output", [one for one in listed if one.causality == "output"]),
        ("ContinuousStateDerivative", [one for one in listed if one.derivative is not None]),
        ("InitialUnknown", [one for one in listed if one.initial == "calculated"]),
    ):
        for one in members:
            Xml.SubElement(structure, word, valueReference=str(one.reference))


def _put_two(root: Xml.Element, listed: Sequence[Variable]) -> None:
    """Variables and structure by FMI 2.0, which counts variables from 1."""
    variables, structure = Xml.SubElement(root, "ModelVariables"), Xml.SubElement(root, "ModelStructure")
    index = {one.reference: str(k) for k, one in enumerate(listed, 1)}
    for one in listed:
        given = {"name": one.name, "valueReference": str(one.reference), "causality": one.causality}
        given |= {"variability": one.variability} | ({"initial": one.initial} if one.initial else {})
        of_state = {} if one.derivative is None else {"derivative": index[one.derivative]}
        Xml.SubElement(Xml.SubElement(variables, "ScalarVariable", given), "Real", _numbers_of(one) | of_state)
    for word, members in (
        ("Outputs", [one for one in listed if one.causality == "output"]),
        ("Derivatives", [one for one in listed if one.derivative is not None]),
        ("InitialUnknowns", [one for one in listed if one.initial == "calculated"]),
    ):
        if members:
            group = Xml.SubElement(structure, word)
            for one in members:
                Xml.SubElement(group, "Unknown", index=index[one.reference])


def build_description(name: str, folder: Path, files: Sequence[Path]) -> bytes:
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
