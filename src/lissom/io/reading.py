"""Reads the text of a robot file and reports all its mistakes together.

Consequences of a mistake are not reported. A value of a wrong type is corrected if the correction is certain. Otherwise
the value, or its whole entity, is left out. Then the rest is checked again, and errors that follow from these changes
are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, final

from pydantic import ValidationError

from lissom.errors import ModelError
from lissom.io.schema import Document
from lissom.io.text_files import Source, collection_paused, parse
from lissom.robot.actuators import (
    Actuator,
    BodyChamber,
    Chamber,
    CustomActuator,
    JointActuator,
    SurfacePressure,
    Tendon,
    WrenchInput,
)
from lissom.robot.checks import fail, gathered, nearest, part
from lissom.robot.robot import PARTS, Link, Robot

ENTITIES = {kind: part.word for kind, part in PARTS.items() if part.is_saved}
_ROUNDS = 12  # largest number of rounds in which wrong parts are left out

Keys = list[Any]


@final
@dataclass(frozen=True)
class Fault:
    """A mistake in a file: its line, its text, and the keys that lead to the wrong or missing value."""

    line: int
    text: str
    keys: tuple[str | int, ...] = field(default=(), compare=False)


@final
@dataclass
class Reading:
    """The state while a robot file is read.

    Args:
        source: the YAML nodes of the text.
        data: their contents.
        folder: folder of the file.
        faults: mistakes.
        mended, left_out: keys of values that were corrected or left out.
        hidden: names of entities that differ from the names in the file.
    """

    source: Source
    data: dict[str, Any]
    folder: Path
    faults: list[Fault]
    mended: list[Keys] = field(default_factory=list)
    left_out: list[Keys] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)

    def add(self, line: int, text: str, keys: Sequence[str | int] = ()) -> None:
        """Add a mistake, unless it is already in the list."""
        if Fault(line, text) not in self.faults:
            self.faults.append(Fault(line, text, tuple(keys)))


def read(text: str, name: str) -> tuple[Robot | None, list[Fault]]:
    """The robot of a text and the mistakes of the text, ordered by line. The robot is None if too much is wrong.

    Raises:
        ModelError: the text is not YAML.
    """
    with collection_paused():
        return _read(text, name)


def _read(text: str, name: str) -> tuple[Robot | None, list[Fault]]:
    source = parse(text, name)
    found: list[tuple[int, str]] = []
    data = source.data(found)
    faults = [Fault(*one) for one in found]
    if not isinstance(data, dict):
        return None, [Fault(1, f"a robot file is a mapping of keys (got {type(data).__name__})")]
    reading = Reading(source, data, Path(name).parent, faults)
    content = _content(reading)
    robot = None if content is None else _assembled(content, reading)
    if robot is not None:
        _check(robot, reading)
    return robot, sorted(reading.faults, key=lambda fault: fault.line)


# -- checks of the schema ---------------------------------------------------------------------------------------------


def _content(reading: Reading) -> Any:
    """The document without its wrong parts; None if too little is left."""
    data, dropped = reading.data, set()
    for _ in range(_ROUNDS):
        lists = {key: [k for k in range(len(items)) if (key, k) not in dropped] for key, items in data.items()
                 if key in ENTITIES and isinstance(items, list)}  # fmt: skip
        left = data | {key: [data[key][k] for k in kept] for key, kept in lists.items()}
        unknown: dict[Any, Any] = {}
        try:
            content = Document.model_validate(left, context={"folder": reading.folder, "unknown": unknown})
            errors = []
        except ValidationError as error:
            content, errors = None, error.errors(include_url=False)
        if data is reading.data and (errors or unknown):
            data = deepcopy(data)
        renamed = _add_unknown(reading, data, left, lists, unknown)
        if not errors and not renamed:
            return content
        for item in errors:
            keys = list(item["loc"])
            if keys[0] in lists and len(keys) > 1 and isinstance(keys[1], int):
                keys[1] = lists[keys[0]][keys[1]]
            _add_error(reading, keys, item)
            if not _leave_out(reading, data, dropped, keys, item):
                return None
    return None


def _add_unknown(reading: Reading, data: Any, left: Any, lists: dict[str, list[int]], unknown: dict[Any, Any]) -> bool:
    """Add unknown keys of mappings to the mistakes. Returns whether some of them were renamed to the keys that were
    probably meant."""
    places, renamed = _places(left, ()) if unknown else {}, False
    for (mapping, key), known in unknown.items():
        if mapping not in places:
            continue
        keys: Keys = [*places[mapping], key]
        if len(keys) > 1 and keys[0] in lists and isinstance(keys[1], int):
            keys[1] = lists[keys[0]][keys[1]]
        line, found = reading.source.locate(keys)
        rule = f"is not a known key; the keys here are {', '.join(known)}"
        meant = _cure_of_word(key, [*known])
        reading.add(line, str(fail(entity(found, reading.data), rule, key)) + meant, keys)
        holder, name = _holder(data, keys), meant.split("'")[1] if meant else ""
        if name and isinstance(holder, dict) and key in holder and name not in holder:
            holder[name], renamed = holder.pop(key), True
            reading.mended.append([*keys[:-1], name])
    return renamed


def _holder(data: Any, keys: Keys) -> Any:
    """The mapping or list that contains the value at `keys`; None if it was left out."""
    for key in keys[:-1]:
        there = key in data if isinstance(data, dict) else isinstance(data, list)
        data = data[key] if there else {}
    return data


def _places(value: Any, keys: tuple[Any, ...]) -> dict[int, tuple[Any, ...]]:
    """For each mapping of a document, by its id, the keys that lead to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    out = {id(value): keys} if isinstance(value, dict) else {}
    for key, item in items:
        out |= _places(item, (*keys, key))
    return out


def _add_error(reading: Reading, keys: Keys, item: Any) -> None:
    """Add an error of the schema to the mistakes, unless it follows from parts that were left out."""
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
    line, found = reading.source.locate(keys)
    whole = [*found, keys[-1]] if kind == "missing" else found
    if not whole or any(
        whole == gone[: len(whole)] or gone == whole[: len(gone)] for gone in [*reading.left_out, *reading.mended]
    ):
        return
    where, rule, cure = entity(found, reading.data), item["msg"].replace("Input should be", "must be"), ""
    if kind == "value_error":
        reading.add(line, f"{where}: {context['error']}", found)
        return
    if kind == "missing":
        rule, value = f"the key {keys[-1]!r} is required", sorted(map(str, value))
        cure = f"; add {keys[-1]}: with its value"
    elif kind == "type":
        cure = _cure_of_type(value, rule.rpartition("one of ")[2].split(", "))
        if isinstance(value, dict):
            solid = value.get("type") == "RigidBody" and "shape" in value
            value = f"RigidBody {value['shape']}" if solid else value.get("type")
            cure = _CURE_OF_SOLIDS if solid else _cure_of_word(value, rule.rpartition("one of ")[2].split(", ")) or cure
    elif kind == "literal_error":
        cure = _cure_of_word(value, re.findall(r"'([^']*)'", rule))
    else:
        cure = _cure_of_value(kind, value, may_vary="a constant" in map(str, keys))
    reading.add(line, str(fail(where, rule, value)) + cure, whole)


def _leave_out(reading: Reading, data: Any, dropped: set[tuple[str, int]], keys: Keys, item: Any) -> bool:
    """Correct the wrong value of an error, leave it out, or leave out its owner. Returns False if nothing would
    remain."""
    found: Keys = reading.source.locate(keys)[1]
    if item["type"] == "missing" and [*found, keys[-1]] in reading.mended:
        return True
    if not found or found == ["links"]:
        return False
    holder, value = _holder(data, found), item["input"]
    good = _corrected(value) if item["type"] in ("float_type", "numbers") else None
    if item["type"] == "string_type" and isinstance(value, int | float):
        good = str(value)
    if good is not None and isinstance(holder, dict | list) and found not in reading.mended:
        holder[found[-1]] = good
        reading.mended.append([*found])
        return True
    is_entity = found[0] in ENTITIES and len(found) > 1
    if is_entity and (name := _name(reading.data, found)) is not None:
        reading.hidden.add(name)
    whole = [*found, keys[-1]] if item["type"] == "missing" else found
    again = item["type"] == "missing" or whole in reading.left_out
    reading.left_out.append([*whole])
    can_go = isinstance(holder, dict) and found[-1] in holder and not again
    if (len(found) > 2 or not is_entity) and can_go:
        del holder[found[-1]]
    elif is_entity:
        dropped.add((found[0], found[1]))
    else:
        data.pop(found[0], None)
    return True


def _name(data: dict[str, Any], keys: Keys) -> str | None:
    item = data[keys[0]][keys[1]]
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


# -- checks of the description ----------------------------------------------------------------------------------------


def _assembled(content: Any, reading: Reading) -> Robot:
    """The robot with all entities of the file, added in the order of the file."""
    robot = Robot(content.name, gravity=content.gravity, near_pairs=content.near_pairs)

    def add_all(section: str) -> None:
        for item in getattr(content, section):
            try:
                if isinstance(item, Actuator):
                    _add_actuator(robot, item)
                else:
                    given = {field.name: getattr(item, field.name) for field in fields(item)}
                    getattr(robot, PARTS[section].add)(**given)
            except ModelError as error:
                items = reading.data.get(section, [])
                same = [
                    k for k, other in enumerate(items) if isinstance(other, dict) and other.get("name") == item.name
                ]
                line, there = reading.source.locate([section, same[-1], "name"] if same else [section])
                where = entity([section, same[-1]], reading.data) if same else section
                reading.add(line, f"{where}: {error}", there)

    add_all("links")
    listed = reading.data.get("links")
    for item in listed if isinstance(listed, list) else ():  # others may still name links that were left out
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and name in reading.hidden and name not in robot.links:
            robot.links[name] = Link(name)
    for section in ENTITIES:
        if section != "links":
            add_all(section)
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


def _check(robot: Robot, reading: Reading) -> None:
    """Add the errors of the description, except those that follow from parts that were left out."""
    with gathered() as found, part("robot"):
        robot.check()
    named = [(keys_of(str(error), reading.source, reading.data), str(error)) for error in found]
    for keys, text in sorted(named, key=lambda one: not one[0]):
        line, there = reading.source.locate(keys)
        follows = any(f"(got {name!r})" in text for name in reading.hidden)
        same = [gone for gone in reading.left_out if gone[:2] == there[:2]]
        follows |= not keys and bool(reading.faults)  # an error without an entity, after other mistakes
        if not follows and not any(there == gone[: len(there)] or str(gone[-1]) in text for gone in same):
            reading.add(line, text, there)


# -- places in words --------------------------------------------------------------------------------------------------


def entity(keys: Sequence[str | int], data: dict[str, Any]) -> str:
    """Name of an entity from its keys: links, 0, body, length becomes "link 'arm' > body: length"."""
    if len(keys) < 2 or keys[0] not in (*ENTITIES, "fluid"):
        return " > ".join(["robot file", *map(str, keys)])
    if keys[0] == "fluid":
        of_link = keys[1] == "links" and len(keys) > 2
        words, deeper = (["fluid", f"link {keys[2]!r}"], 3) if of_link else (["fluid"], 1)
    else:
        item = data[str(keys[0])][keys[1]]
        name = item.get("name") if isinstance(item, dict) else None
        words = [f"{ENTITIES[str(keys[0])]} {name!r}" if name is not None else f"{keys[0]}[{keys[1]}]"]
        deeper = 2
    value: Any = data
    for key in keys[:deeper]:
        value = value[key]
    for key in keys[deeper:]:
        value = value[key]
        words = [*words[:-1], f"{words[-1]}[{key}]"] if isinstance(key, int) else [*words, key]
    joint = " > " if isinstance(value, dict) or len(words) < 2 else ": "
    return joint.join([" > ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def keys_of(message: str, source: Source, data: dict[str, Any]) -> Keys:
    """Keys of the entity that a message of `Robot.check` names, as far as the file has them."""
    if message.startswith("robot "):
        return [key for key in ("gravity", "near_pairs") if f": {key}" in message] or ["links"]
    fluid = data.get("fluid")
    of_links = fluid.get("links") if isinstance(fluid, dict) else None
    of_links = of_links if isinstance(of_links, dict) else {}
    places: list[tuple[Keys, str]] = [(["fluid", "links", name], f"fluid > link {name!r}") for name in of_links]
    for section, kind in ENTITIES.items():
        items: Any = data.get(section) if isinstance(data.get(section), list) else []
        named = [(k, item["name"]) for k, item in enumerate(items) if isinstance(item, dict) and "name" in item]
        places += [([section, k], f"{kind} {name!r}") for k, name in named]
    for place, start in [*places, (["fluid"], "fluid")]:
        if message.startswith((f"{start} > ", f"{start}: ")):
            steps = re.findall(r"(?: > |: )(\w+)(?:\[(\d+)\])?[^:>(]*(?= > |: )", message[len(start) :])
            keys = [key for word, index in steps for key in ((word, int(index)) if index else (word,))]
            return source.locate([*place, *keys])[1]
    return []


# -- cures of mistakes: the end of an error message, after the rule and the value -------------------------------------

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_UNITS = {  # units in SI units
    "mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3, "g": 1e-3, "kg": 1.0, "pa": 1.0, "kpa": 1e3, "mpa": 1e6, "gpa": 1e9,
    "n": 1.0, "kn": 1e3, "mn": 1e-3, "s": 1.0, "ms": 1e-3, "bar": 1e5, "n/m": 1.0, "n/mm": 1e3, "g/cm3": 1e3,
    "g/cm^3": 1e3, "kg/m3": 1.0, "kg/m^3": 1.0, "pa*s": 1.0, "pa.s": 1.0, "rad": 1.0,
}  # fmt: skip
_OTHER_WORDS = {  # words that textbooks and other programs use for keys and types
    "e": "young", "youngs_modulus": "young", "young_modulus": "young", "modulus": "young", "stiffness": "young",
    "nu": "poisson", "poisson_ratio": "poisson", "rho": "density", "eta": "viscosity", "damping": "viscosity",
    "diameter": "radius", "thickness": "width_z", "height": "width_z", "width": "width_y", "l": "length",
    "size": "length",
    "tendons": "actuators", "chambers": "actuators", "motors": "actuators", "inputs": "actuators",
    "bodies": "links", "rods": "links", "joints": "links", "forces": "loads",
    "cross_section": "section", "profile": "section", "position": "placement", "origin": "placement",
    "pose": "placement",
    "hinge": "JointRevolute", "pin": "JointRevolute", "slider": "JointPrismatic", "ball": "JointSpherical",
    "floating": "JointFree", "weld": "JointFixed", "cable": "Tendon", "wire": "Tendon", "motor": "JointActuator",
    "beam": "Rod", "rigid": "RigidBody", "tube": "SectionAnnulus", "square": "SectionRectangle", "floor": "ShapePlane",
}  # fmt: skip
_CURE_OF_SOLIDS = "; write shape: box, shape: cylinder, shape: sphere or shape: mesh"


def _cure_of_word(word: Any, known: list[str]) -> str:
    """The known word that was probably meant: a similar word, or the word for the same thing in other programs."""
    if not isinstance(word, str):
        return ""
    other = _OTHER_WORDS.get(word.lower())
    if other in known:
        half = ", which is half of it" if word.lower() == "diameter" else ""
        return f"; did you mean {other!r}{half}?"
    return nearest(word, known)


def _cure_of_type(value: Any, known: list[str]) -> str:
    """The cure of a wrong value in place of a mapping with `type`."""
    if value is None:
        return "; write a value behind the colon, such as {type: " + known[0] + ", ...}"
    if isinstance(value, list):
        return "; remove the dash or the brackets: it must be one mapping"
    if isinstance(value, str):
        meant = _cure_of_word(value, known)
        name = meant.split("'")[1] if meant else known[0]
        return f"; write {{type: {name}, ...}}"
    if not isinstance(value, dict):
        return "; write {type: " + known[0] + ", ...}"
    return _cure_of_word(value["type"], known) if value.get("type") is not None else "; add a type to it"


def _cure_of_value(kind: str, value: Any, *, may_vary: bool = False) -> str:
    """The cure of a value of a wrong type. `kind` is the right type, as named by pydantic or by `values`."""
    if kind in ("float_type", "int_type", "numbers", "finite_number", "place", "int_from_float"):
        return _cure_of_number(value, kind, may_vary)
    if kind == "string_type":
        if value is None:
            return "; write a text behind the colon"
        return f'; put it in quotes: "{value}"' if isinstance(value, int | float) else "; write one text"
    if kind == "bool_type":
        return "; write true or false, without quotes"
    if kind == "list_type":
        return "; begin each entry with a dash: - ..., or write [..., ...]"
    if kind in ("dict_type", "model_type", "model_attributes_type"):
        return "; write keys with their values: {key: value, ...}"
    return "; write the name of a link, or [one, another]" if kind == "names" else ""


def _cure_of_number(value: Any, kind: str, may_vary: bool) -> str:
    """The cure of a wrong value where a number is expected."""
    if value is None:
        return "; write a number behind the colon"
    if isinstance(value, bool):
        return "; write a number"
    if kind == "int_from_float" or (kind == "int_type" and isinstance(value, float)):
        return f"; write it without decimals: {round(value)}" if abs(value) < 1e15 else ""
    texts = [value] if isinstance(value, str) else [item for item in _flat(value) if isinstance(item, str)]
    if not texts:
        return "; write one number, without brackets" if isinstance(value, list) and kind != "numbers" else ""
    return _cure_of_text(texts[0].strip(), may_vary)


def _corrected(value: Any) -> Any:
    """The number in a quoted text, or in a text with a unit; None if there is none."""
    if isinstance(value, list) and value:
        parts = [item if isinstance(item, int | float) and not isinstance(item, bool) else _corrected(item)
                 for item in value]  # fmt: skip
        return None if any(part is None for part in parts) else parts
    if not isinstance(value, str):
        return None
    text = value.strip().replace(",", ".")
    if _NUMBER.fullmatch(text):
        return float(text)
    with_unit = _with_unit(text)
    return None if with_unit is None else with_unit[0]


def _cure_of_text(text: str, may_vary: bool) -> str:
    if _NUMBER.fullmatch(text):
        return "; remove the quotes"
    if _NUMBER.fullmatch(text.replace(",", ".")):
        return f"; write a point for the comma: {text.replace(',', '.')}"
    found = _with_unit(text)
    if found is not None:
        return f"; write the number alone, in SI units: {found[0]:g}"
    if re.search(r"[-+*/()]", text) and may_vary:
        return f"; a formula is written {{expression: {text!r}}}"
    return "; compute it and write the number" if re.fullmatch(r"[-+*/() .0-9eEpi]+", text) else "; write a number"


def _with_unit(text: str) -> tuple[float, str] | None:
    """The value in SI units of a number with a unit, and the unit."""
    found = re.fullmatch(rf"({_NUMBER.pattern})\s*([a-zA-Z][a-zA-Z0-9/^*.]*)", text)
    if found is None or found[2].lower() not in _UNITS:
        return None
    factor = 1e6 if found[2] == "MPa" else _UNITS[found[2].lower()]
    return float(f"{float(found[1]) * factor:.12g}"), found[2]


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]
