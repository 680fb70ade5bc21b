"""The Python script that makes a robot: calls of the library with the fields that differ from their defaults."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lissom.errors import ModelError
from lissom.io.robot_file import is_default, made_as
from lissom.io.schema import ConstantMatrix
from lissom.robot.actuators import Actuator, BodyChamber, Chamber, CustomActuator, SurfacePressure, Tendon, WrenchInput
from lissom.robot.bodies import RigidBody
from lissom.robot.functions import Expression, Tabulated
from lissom.robot.joints import JointFixed
from lissom.robot.robot import PARTS, Robot

_WIDE = 110  # of a line [characters]


def python_of(robot: Robot) -> str:
    """The script that makes a robot, called `robot` there.

    Raises:
        ModelError: a part has a Python function, which cannot be written.
    """
    given = {} if list(robot.gravity) == [0.0, 0.0, -9.81] else {"gravity": _code(tuple(robot.gravity), 4, "robot")}
    if robot.near_pairs != Robot().near_pairs:
        given["near_pairs"] = str(robot.near_pairs)
    rows = [f"robot = {_call('ls.Robot', [_code(robot.name, 0, 'robot')], given, 0)}"]
    for kind, part in PARTS.items():
        items = getattr(robot, kind)
        rows += [""] if items else []
        for name, item in items.items():
            where = f"{part.word} {name!r}"
            if not part.is_saved:
                raise _unwritten(where)
            rows.append(_added(item, part.add, where))
    if robot.fluid is not None:
        given = _given(robot.fluid, "fluid")
        rows += ["", _call("robot.set_fluid", [given.pop("density")], given, 0)]
    text = "\n".join(rows) + "\n"
    imports = "from dataclasses import replace\n\n" if "replace(" in text else ""
    return f"{imports}import lissom as ls\n\n{text}"


def _unwritten(where: str) -> ModelError:
    return ModelError(f"{where}: a Python function cannot be written as a script; keep the script that has it")


def _added(item: Any, add: str, where: str) -> str:
    """The call that adds a part."""
    if isinstance(item, Actuator):
        return _added_actuator(item, where)
    given = _given(item, where)
    if given.get("joint") == "ls.JointFixed()" or isinstance(getattr(item, "joint", None), JointFixed):
        given.pop("joint", None)
    name = given.pop("name")
    return _call(f"robot.{add}", [name], given, 0)


def _added_actuator(item: Actuator, where: str) -> str:
    given = _given(item, where)
    name = [given.pop("name")]
    if isinstance(item, Tendon):
        if len(item.path) == 1 and type(item.path[0]).__name__ == "PathRod":
            given = _given(item.path[0], where) | {key: x for key, x in given.items() if key != "path"}
        return _call("robot.add_tendon", name, given, 0)
    if isinstance(item, Chamber):
        given = _given(item.path, where) | {key: x for key, x in given.items() if key != "path"}
        return _call("robot.add_chamber", name, given, 0)
    if isinstance(item, CustomActuator):
        if not isinstance(item.function, ConstantMatrix):
            raise _unwritten(where)
        given = {"size": str(item.size)}
        return _call(
            "robot.add_custom_actuator", [*name, f"lambda q: {_code(item.function.matrix, 4, where)}"], given, 0
        )
    adds = {WrenchInput: "add_wrench_input", BodyChamber: "add_body_chamber", SurfacePressure: "add_surface_pressure"}
    return _call(f"robot.{adds.get(type(item), 'add_joint_actuator')}", name, given, 0)


def _given(item: Any, where: str) -> dict[str, str]:
    """The fields of a part that differ from their defaults, as code."""
    out = {}
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if not is_default(value, field.default) and not (isinstance(value, dict) and not value):
            out[field.name] = _code(value, 4, f"{where}: {field.name}")
    return out


def _code(value: Any, indent: int, where: str) -> str:
    """A value as code."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if np.isfinite(value) else f'float("{value!r}")'
    if isinstance(value, np.ndarray | np.generic):
        return _code(value.tolist(), indent, where)
    if isinstance(value, os.PathLike):
        return _code(os.fspath(value), indent, where)
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{_code(key, 0, where)}: {_code(item, indent + 4, where)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return _listed(value, indent, where)
    if isinstance(value, Expression):
        more = {"constants": _code(dict(value.constants), indent, where)} if value.constants else {}
        return _call(
            "ls.Expression", [_code(value.source, indent + 4, where), _code(value.variable, 0, where)], more, indent
        )
    if isinstance(value, Tabulated) or (dataclasses.is_dataclass(value) and not callable(value)):
        return _made(value, indent, where)
    raise _unwritten(where)


def _listed(value: Any, indent: int, where: str) -> str:
    parts = [_code(item, indent + 4, where) for item in value]
    left, right = "[]" if isinstance(value, list) else "()"
    comma = "," if len(parts) == 1 and isinstance(value, tuple) else ""
    line = left + ", ".join(parts) + comma + right
    if len(line) + indent <= _WIDE and "\n" not in line:
        return line
    gap = "\n" + " " * (indent + 4)
    return left + "".join(f"{gap}{part}," for part in parts) + "\n" + " " * indent + right


def _made(value: Any, indent: int, where: str) -> str:
    """The call of the class of a part."""
    name = type(value).__name__
    if isinstance(value, RigidBody) and (solid := made_as(value)):
        shape = solid.pop("shape")
        sizes = [_code(x, 0, where) for x in solid.pop("size", ())]
        given = {key: _code(x, 0, where) for key, x in solid.items()}
        if value.meshes:
            plain = _call(f"ls.RigidBody.{shape}", sizes, given, indent + 4)
            return _call("replace", [plain], {"meshes": _code(value.meshes, indent + 4, where)}, indent)
        return _call(f"ls.RigidBody.{shape}", sizes, given, indent)
    given = {key: text for key, text in _given_at(value, indent + 4, where).items()}
    return _call(f"ls.{name}", [], given, indent)


def _given_at(value: Any, indent: int, where: str) -> dict[str, str]:
    out = {}
    for field in dataclasses.fields(value):
        if field.init:
            own = getattr(value, field.name)
            plain = isinstance(own, np.ndarray | list | dict)
            if plain or not is_default(own, field.default):
                out[field.name] = _code(own, indent, f"{where} > {field.name}")
    return out


def _call(name: str, first: list[str], given: dict[str, str], indent: int) -> str:
    """A call with arguments, on one line or on several."""
    parts = [*first, *(f"{key}={text}" for key, text in given.items())]
    line = f"{name}({', '.join(parts)})"
    if len(line) + indent <= _WIDE and "\n" not in line:
        return line
    gap = "\n" + " " * (indent + 4)
    return f"{name}(" + "".join(f"{gap}{part}," for part in parts) + "\n" + " " * indent + ")"
