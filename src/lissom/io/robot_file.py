"""Robot files: a description as YAML, checked on the way in and bit for bit the same on the way out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lissom.errors import ModelError
from lissom.io.document import document
from lissom.io.schema import Document
from lissom.io.yaml_text import Source, dump, parse
from lissom.robot.actuators import Actuator, Chamber, CustomActuator, JointActuator, Tendon, WrenchInput
from lissom.robot.body_actuators import BodyChamber, SurfacePressure
from lissom.robot.checks import fail, gathered, part, require
from lissom.robot.robot import Robot

_ENTITIES = {
    "links": "link",
    "frames": "frame",
    "actuators": "actuator",
    "couplings": "input",
    "loads": "load",
    "loops": "loop",
    "motions": "motion",
    "springs": "spring",
    "contacts": "contact",
}
_SHOWN = 10  # errors listed for one file


def load_robot(path: str | os.PathLike[str]) -> Robot:
    """Robot described by a YAML file. Nothing in the file is executed.

    Args:
        path: of the file.
    Raises:
        ModelError: for each problem the file, the line, the entity, the rule and the value.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    raw = Path(path).read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{name}, line {line}: the file is not UTF-8 text") from None
    return _read(text, name)


def save_robot(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write a robot description as YAML, which `load_robot` reads as the same robot.

    Numbers, expressions and tables are written exactly. Any other Python function of s becomes a table at Chebyshev
    points that reproduces it within 1e-13 of its largest value. The file appears whole or not at all.

    Args:
        robot: the description. path: file to write.
    Raises:
        ModelError: the description breaks a rule, or holds a Python function that a file cannot hold, with the remedy.
        OSError: the file cannot be written.
    """
    require(isinstance(robot, Robot), "save_robot", "expected a Robot, the description and not its Model", robot)
    robot.check()
    text = "# Robot description for lissom; SI units.\n" + dump(document(robot, Path(path).parent))
    _read(text, os.fspath(path))  # what cannot be read is not written
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _read(text: str, name: str) -> Robot:
    source = parse(text, name)
    data = source.data()
    if not isinstance(data, dict):
        raise source.error(1, f"a robot file is a mapping of keys (got {type(data).__name__})")
    try:
        content = Document.model_validate(data, context={"folder": Path(name).parent})
    except ValidationError as error:
        raise _schema_error(error, source, data) from None
    robot = _assemble(content, source, data)
    with gathered() as found, part("robot"):
        robot.check()
    if found:
        raise _listed([(_line_of(str(error), source, data), str(error)) for error in found], source)
    return robot


def _assemble(content: Any, source: Source, data: dict[str, Any]) -> Robot:
    """The robot with everything the file lists, added in the order of the file."""
    robot = Robot(content.name, gravity=content.gravity, near_pairs=content.near_pairs)

    def each(section: str, add: Callable[[Any], Any]) -> None:
        for index, item in enumerate(getattr(content, section)):
            try:
                add(item)
            except ModelError as error:
                line, _ = source.locate([section, index, "name"])
                raise source.error(line, f"{_entity([section, index], data)}: {error}") from None

    each("links", lambda k: robot.add_link(k.name, k.body, k.joint, k.parent, k.at, k.placement))
    each("frames", lambda k: robot.add_frame(k.name, k.link, s=k.s, placement=k.placement))
    each("actuators", lambda k: _add_actuator(robot, k))
    each("couplings", lambda k: robot.couple_inputs(k.name, k.gains))
    each("loads", lambda k: robot.add_point_load(
        k.name, k.link, s=k.s, force=k.force, moment=k.moment, frame=k.frame, position=k.position))  # fmt: skip
    each("loops", lambda k: robot.add_loop(
        k.name, k.link_a, k.link_b, s_a=k.s_a, s_b=k.s_b, placement_a=k.placement_a, placement_b=k.placement_b,
        joint=k.joint))  # fmt: skip
    each("motions", lambda k: robot.add_joint_motion(
        k.name, k.link, position=k.position, velocity=k.velocity, acceleration=k.acceleration))  # fmt: skip
    each("springs", lambda k: robot.add_spring(**{field.name: getattr(k, field.name) for field in fields(k)}))
    each("contacts", lambda k: robot.add_contact(**{field.name: getattr(k, field.name) for field in fields(k)}))
    robot.fluid = content.fluid
    return robot


def _add_actuator(robot: Robot, item: Actuator) -> None:
    if isinstance(item, Tendon):
        robot.add_tendon(item.name, path=item.path, stiffness=item.stiffness, slack_length=item.slack_length)
    elif isinstance(item, Chamber):
        rod = item.path
        robot.add_chamber(item.name, rod.link, offset=rod.offset, area=item.area, start=rod.start, stop=rod.stop,
                          force=item.force)  # fmt: skip
    elif isinstance(item, JointActuator):
        robot.add_joint_actuator(item.name, item.link)
    elif isinstance(item, WrenchInput):
        robot.add_wrench_input(item.name, item.link, s=item.s, directions=item.directions, frame=item.frame,
                               position=item.position)  # fmt: skip
    elif isinstance(item, BodyChamber):
        robot.add_body_chamber(item.name, item.link, surface=item.surface)
    elif isinstance(item, SurfacePressure):
        robot.add_surface_pressure(item.name, item.link, item.surface)
    elif isinstance(item, CustomActuator):
        robot.add_custom_actuator(item.name, item.function, size=item.size)


def _schema_error(error: ValidationError, source: Source, data: dict[str, Any]) -> ModelError:
    """One error that lists, in the order of their lines, what the schema found."""
    problems = []
    for item in error.errors(include_url=False):
        keys, kind, context = list(item["loc"]), item["type"], item.get("ctx", {})
        if kind == "unknown_key":
            keys.append(context["key"])
        line, found = source.locate(keys)
        rule, value = item["msg"], item["input"]
        if kind == "missing":
            rule, value = f"the key {keys[-1]!r} is required", sorted(map(str, value))
        elif kind == "unknown_key":
            value = context["key"]
        elif kind == "type" and isinstance(value, dict):
            value = value.get("type")
        elif kind == "value_error":
            problems.append((line, f"{_entity(found, data)}: {context['error']}"))
            continue
        rule = rule.replace("Input should be", "must be")
        problems.append((line, str(fail(_entity(found, data), rule, value))))
    return _listed(problems, source)


def _listed(problems: list[tuple[int, str]], source: Source) -> ModelError:
    """One error of all problems, in the order of their lines."""
    problems.sort(key=lambda problem: problem[0])
    texts = [str(source.error(line, message)) for line, message in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        texts.append(f"and {len(problems) - _SHOWN} more")
    return ModelError("\n".join(texts))


def _entity(keys: list[str | int], data: dict[str, Any]) -> str:
    """Path of an entity in words: links, 0, body, length becomes "link 'arm' > body: length"."""
    if len(keys) < 2 or keys[0] not in (*_ENTITIES, "fluid"):
        return " > ".join(["robot file", *map(str, keys)])
    if keys[0] == "fluid":
        of_link = keys[1] == "links" and len(keys) > 2
        words, deeper = (["fluid", f"link {keys[2]!r}"], 3) if of_link else (["fluid"], 1)
    else:
        item = data[str(keys[0])][keys[1]]
        name = item.get("name") if isinstance(item, dict) else None
        words = [f"{_ENTITIES[str(keys[0])]} {name!r}" if name is not None else f"{keys[0]}[{keys[1]}]"]
        deeper = 2
    value: Any = data
    for key in keys[:deeper]:
        value = value[key]
    for key in keys[deeper:]:
        value = value[key]
        words = [*words[:-1], f"{words[-1]}[{key}]"] if isinstance(key, int) else [*words, key]
    joint = " > " if isinstance(value, dict) or len(words) < 2 else ": "
    return joint.join([" > ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _line_of(message: str, source: Source, data: dict[str, Any]) -> int:
    """Line of the entity that a message of `Robot.check` names, as deep as the file tells."""
    if message.startswith("robot "):
        found = [key for key in ("gravity", "near_pairs") if f": {key}" in message]
        return source.locate(found or ["links"])[0]
    places = [
        (["fluid", "links", name], f"fluid > link {name!r}") for name in (data.get("fluid") or {}).get("links", [])
    ]
    places += [([section, number], f"{kind} {item['name']!r}") for section, kind in _ENTITIES.items()
               for number, item in enumerate(data.get(section, []))]  # fmt: skip
    for place, start in [*places, (["fluid"], "fluid")]:
        if message.startswith((f"{start} > ", f"{start}: ")):
            steps = re.findall(r"(?: > |: )(\w+)(?:\[(\d+)\])?[^:>(]*(?= > |: )", message[len(start) :])
            keys = [key for word, index in steps for key in ((word, int(index)) if index else (word,))]
            return source.locate([*place, *keys])[0]
    return 1
