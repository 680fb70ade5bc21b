"""Robot files: a robot description as YAML, checked when it is read. A written description is read back bit for bit."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.errors import AccuracyWarning, ModelError, PlausibilityWarning
from lissom.io.reading import Fault, keys_of, read
from lissom.io.schema import DEFORMABLE, FORMAT, IN_PYTHON, TYPES, ConstantMatrix, tabulate
from lissom.io.text_files import dump, parse, text_of
from lissom.portable import write_whole
from lissom.robot.actuators import (
    Actuator,
    BodyChamber,
    Chamber,
    CustomActuator,
    PathBody,
    PathRod,
    SurfacePressure,
    Tendon,
)
from lissom.robot.bodies import RigidBody
from lissom.robot.checks import require
from lissom.robot.constraints import Loop
from lissom.robot.contacts import Contact
from lissom.robot.fluid import Fluid
from lissom.robot.functions import Expression, Tabulated, is_compiled
from lissom.robot.materials import Material
from lissom.robot.meshes import Mesh
from lissom.robot.robot import PARTS, Link, Robot
from lissom.robot.sampled_shapes import ShapeFunction, ShapeMesh
from lissom.robot.shapes import PlacedShape
from lissom.robot.traced_functions import TracedFunction

_SOLID = ("mass", "com", "inertia", "outline", "shapes", "balls")
_AGAIN = "add it again after loading the rest"
_SHOWN = 10  # largest number of errors that are listed for one file


def document(robot: Robot, folder: Path | None = None) -> dict[str, Any]:
    """The keys and values of the file of a robot, without defaults.

    Args:
        folder: folder of the file. Paths of meshes are relative to it; None keeps the paths.
    Raises:
        ModelError: a file cannot contain an entity of the robot.
    """
    out: dict[str, Any] = {"format": FORMAT, "name": robot.name, "gravity": _plain(robot.gravity, "robot: gravity")}
    if robot.near_pairs != Robot().near_pairs:
        out["near_pairs"] = robot.near_pairs
    for kind, part in PARTS.items():
        items = getattr(robot, kind)
        if items and not part.is_saved:
            raise _unsaved(f"{part.word} {next(iter(items))!r}: function", "of the pose and the twist", _AGAIN)
        out[kind] = [_part(item, f"{part.word} {name!r}", part.variable, folder) for name, item in items.items()]
    if robot.fluid is not None:
        out["fluid"] = _fluid(robot.fluid)
    return {key: value for key, value in out.items() if value != []}


def _part(item: Any, where: str, variable: str, folder: Path | None) -> dict[str, Any]:
    if isinstance(item, Link):
        return _link(item, folder)
    if isinstance(item, Actuator):
        return _actuator(item, where)
    if isinstance(item, Loop):
        return _loop(item)
    fields = _fields(item, where, variable=variable)
    if isinstance(item, Contact) and isinstance(item.shape, ShapeMesh):
        _put_beside(fields["shape"]["mesh"], folder)
    return fields


def _fluid(fluid: Fluid) -> dict[str, Any]:
    out: dict[str, Any] = {"density": _plain(fluid.density, "fluid: density")}
    if fluid.current is not None:
        out["current"] = _plain(fluid.current, "fluid: current", "t")
    feels = {"default": fluid.default} | {f"link {name!r}": felt for name, felt in fluid.links.items()}
    written = [None if felt is None else _fields(felt, f"fluid > {where}") for where, felt in feels.items()]
    if written[0] != {}:
        out["default"] = written[0]
    return out | ({"links": dict(zip(fluid.links, written[1:], strict=True))} if fluid.links else {})


def _link(link: Link, folder: Path | None) -> dict[str, Any]:
    fields = _fields(link, f"link {link.name!r}")
    body = fields.get("body", {})
    touched = [placed["shape"]["mesh"] for placed in body.get("shapes", ()) if "mesh" in placed["shape"]]
    for mesh in (*body.get("meshes", ()), *touched):
        _put_beside(mesh, folder)
    order = ("name", "parent", "at", "placement", "joint", "body")
    fixed = fields.get("joint") == {"type": "JointFixed"}
    return {key: fields[key] for key in order if key in fields and not (key == "joint" and fixed)}


def _put_beside(mesh: dict[str, Any], folder: Path | None) -> None:
    """Make the path of the file of a mesh relative to the folder."""
    if "file" in mesh and folder is not None:
        mesh["file"] = Path(os.path.relpath(mesh["file"], folder)).as_posix()


def _loop(loop: Loop) -> dict[str, Any]:
    fields = _fields(loop, f"loop {loop.name!r}")
    return {key: value for key, value in fields.items() if value != {"type": "JointFixed"}}


def _actuator(actuator: Actuator, where: str) -> dict[str, Any]:
    head = {"type": type(actuator).__name__, "name": actuator.name}
    if isinstance(actuator, Tendon):
        law = {"stiffness": actuator.stiffness, "slack_length": actuator.slack_length}
        law = {key: _plain(value, f"{where}: {key}") for key, value in law.items() if value is not None}
        if len(actuator.path) == 1 and isinstance(actuator.path[0], PathRod):
            return head | _fields(actuator.path[0], where) | law
        return head | {"path": [_plain(item, f"{where} > path[{k}]") for k, item in enumerate(actuator.path)]} | law
    if isinstance(actuator, Chamber):
        fields = _fields(actuator, where)
        return head | _fields(actuator.path, where) | {k: v for k, v in fields.items() if k in ("area", "force")}
    if isinstance(actuator, BodyChamber | SurfacePressure):
        if callable(actuator.surface) or actuator.surface is None:
            raise _unsaved(f"{where}: surface", "of a point or of θ", "give it as vertices and triangles")
        vertices, triangles = (_plain(np.asarray(part), where) for part in actuator.surface)
        return head | {"link": actuator.link, "vertices": vertices, "triangles": triangles}
    if isinstance(actuator, CustomActuator):
        if not isinstance(actuator.function, ConstantMatrix):
            raise _unsaved(f"{where}: function", "of q", _AGAIN)
        return head | {"matrix": _plain(actuator.function.matrix, where)}
    return head | _fields(actuator, where)


def _fields(item: Any, where: str, *, variable: str = "s") -> dict[str, Any]:
    """The fields of a description object that differ from their defaults."""
    out = {}
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if type(item) in DEFORMABLE and (callable(value) or type(value) in IN_PYTHON):
            raise _unsaved(f"{where}: {field.name}", "made of jax.numpy", "give it as one of the library's classes")
        if isinstance(item, ShapeFunction) and callable(value):
            raise _unsaved(f"{where}: distance", "of a point", "give it as an expression of x, y and z")
        if isinstance(item, PathBody) and callable(value):
            raise _unsaved(f"{where}: points", "of a number", "give it as rows of points")
        if isinstance(item, DeformableBody) and field.name == "domain" and value is _mesh(item.kinematics):
            continue
        if field.name.startswith("placement") and value is not None:
            out[field.name] = _placement(value)
        elif field.name == "pose" and callable(value):
            raise _unsaved(f"{where}: pose", "of the coordinates", "give it as ls.PoseSpline")
        elif not is_default(value, field.default):
            separator = " > " if dataclasses.is_dataclass(value) else ": "
            out[field.name] = _plain(value, f"{where}{separator}{field.name}", variable)
    return out


def _mesh(kinematics: Any) -> Any:
    """The mesh of finite elements."""
    return getattr(getattr(kinematics, "whole", kinematics), "mesh", None)


def _placement(value: Any) -> Any:
    g = np.asarray(value, dtype=np.float64)
    shifted = np.array_equal(g[:3, :3], np.eye(3)) and np.array_equal(g[3], (0.0, 0.0, 0.0, 1.0))
    return {"position": g[:3, 3].tolist()} if shifted else g.tolist()


def is_default(value: Any, default: Any) -> bool:
    """Whether the value of a field is its default."""
    simple = value is None or isinstance(value, bool | int | float | str | tuple)
    return simple and type(value) is type(default) and repr(value) == repr(default)


def _plain(value: Any, where: str, variable: str = "s") -> Any:
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, where, variable) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item, where, variable) for key, item in value.items()}
    if isinstance(value, Expression):
        other: dict[str, Any] = {} if value.variable == variable else {"variable": value.variable}
        other |= {"constants": _plain(dict(value.constants), where)} if value.constants else {}
        return {"expression": _plain(value.source, where)} | other
    if isinstance(value, Tabulated):
        table = {"points": _plain(value.points, where), "values": _plain(value.values, where)}
        return table | {"interpolation": value.interpolation}
    if isinstance(value, RigidBody) and (solid := made_as(value)):
        drawn = {"meshes": _plain(value.meshes, f"{where} > meshes")} if value.meshes else {}
        return {"type": "RigidBody"} | solid | drawn
    if type(value) in TYPES | DEFORMABLE:
        kind = {} if isinstance(value, Material | Mesh | PlacedShape) else {"type": type(value).__name__}
        return kind | _fields(value, where, variable=variable)
    if is_compiled(value) or isinstance(value, TracedFunction):
        kind = "Warp" if is_compiled(value) else "traced"
        raise ModelError(f"{where}: a {kind} function cannot be saved in a robot file; {_AGAIN}")
    if not callable(value):
        raise ModelError(f"{where}: a {type(value).__name__} cannot be saved in a robot file")
    if variable != "s":
        raise _unsaved(where, f"of {variable}", f"give it as ls.Expression(..., {variable!r}) or ls.Tabulated")
    return _plain(tabulate(value, where), where)


def made_as(body: RigidBody) -> dict[str, Any] | None:
    """The arguments of `RigidBody.box`, `.cylinder` or `.sphere` that give exactly this body; None for other bodies."""
    if body.form is None:
        return None
    x, y, z = (2.0 * float(half) for half in np.asarray(body.outline, dtype=np.float64))
    sizes: dict[str, Any] = {"box": {"size": [x, y, z]}, "cylinder": {"length": x, "radius": z / 2},
                             "sphere": {"radius": z / 2}}[body.form]  # fmt: skip
    given = sizes.get("size", list(sizes.values()))
    density = body.mass / (body.volume or 1.0)
    near = [float(f"{density:.{digits}g}") for digits in (6, 9, 12, 15, 16, 17)]
    for one in [*near, *np.nextafter(density, (0.0, np.inf)).tolist()]:
        made = getattr(RigidBody, body.form)(*given, density=one)
        if all(_same(getattr(made, name), getattr(body, name)) for name in _SOLID):
            return {"shape": body.form} | sizes | {"density": one}
    return None


def _same(a: Any, b: Any) -> bool:
    """Whether two fields of a body are equal; shapes on grids only if they are one."""
    return a == b if isinstance(a, tuple) and a and isinstance(a[0], PlacedShape) else np.array_equal(a, b)


def _unsaved(where: str, of: str, remedy: str) -> ModelError:
    return ModelError(f"{where}: a Python function {of} cannot be saved in a robot file; {remedy}")


def load_robot(path: str | os.PathLike[str]) -> Robot:
    """Read a Robot from a YAML file. Nothing in the file is executed.

    Args:
        path: path of the file.
    Raises:
        ModelError: the file has mistakes; for each one, the message gives file, line, entity, rule and value.
        OSError: the file cannot be read.
    """
    return _read(text_of(path), os.fspath(path))


def save_robot(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write a robot description as YAML. `load_robot` reads it as the same robot.

    Numbers, expressions and tables are written exactly. Any other Python function of s becomes a table at Chebyshev
    points, which reproduces it to 1e-13 of its largest value. The file is written completely or not at all.

    Args:
        robot: the description.
        path: path of the file.
    Raises:
        ModelError: the description is invalid, or has a Python function that a file cannot contain; the message gives
            a remedy.
        OSError: the file cannot be written.
    """
    require(isinstance(robot, Robot), "save_robot", "expected a Robot, the description and not its Model", robot)
    robot.check()
    text = "# Robot description for lissom; SI units.\n" + dump(document(robot, Path(path).parent))
    _read(text, os.fspath(path))  # raises an error if the file could not be read
    write_whole(Path(path), lambda file: file.write(text.encode("utf-8")))


def _read(text: str, name: str) -> Robot:
    robot, faults = read(text, name)
    if faults or robot is None:
        texts = [f"{name}, line {fault.line}: {fault.text}" for fault in faults[:_SHOWN]]
        more = [f"and {len(faults) - _SHOWN} more; lissom check shows them all"] if len(faults) > _SHOWN else []
        raise ModelError("\n".join([*texts, *more]))
    return robot


def faults_of(path: str | os.PathLike[str]) -> tuple[Robot | None, list[Fault], list[Fault]]:
    """The robot of a file without its wrong parts, all mistakes, and warnings about probable mistakes.

    Args:
        path: path of the file.
    Raises:
        ModelError: the file is not YAML.
        OSError: the file cannot be read.
    """
    name, text = os.fspath(path), text_of(path)
    robot, faults = read(text, name)
    if robot is None or faults:
        return robot, faults, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            robot.build()
        except ModelError as error:
            faults = [fault_of(str(error), text, name)]
    doubts = (AccuracyWarning, PlausibilityWarning)
    return robot, faults, [fault_of(str(w.message), text, name) for w in caught if issubclass(w.category, doubts)]


def fault_of(message: str, text: str, name: str) -> Fault:
    """The place of an error or a warning of `build` in the text of a robot file."""
    source = parse(text, name)
    keys = keys_of(message, source, source.data([]))
    return Fault(source.locate(keys)[0], message, tuple(keys))
