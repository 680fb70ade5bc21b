"""Cures of mistakes in robot files: the part of an error message behind the rule and the value."""

from __future__ import annotations

import re
from typing import Any

from lissom.robot.checks import nearest

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_UNITS = {  # units in SI units
    "mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3, "g": 1e-3, "kg": 1.0, "pa": 1.0, "kpa": 1e3, "mpa": 1e6, "gpa": 1e9,
    "n": 1.0, "kn": 1e3, "mn": 1e-3, "s": 1.0, "ms": 1e-3, "bar": 1e5, "n/m": 1.0, "n/mm": 1e3, "g/cm3": 1e3,
    "g/cm^3": 1e3, "kg/m3": 1.0, "kg/m^3": 1.0, "pa*s": 1.0, "pa.s": 1.0, "rad": 1.0,
}  # fmt: skip
_OTHER_WORDS = {  # words of textbooks and other programs for keys and types
    "e": "young", "youngs_modulus": "young", "young_modulus": "young", "modulus": "young", "stiffness": "young",
    "nu": "poisson", "poisson_ratio": "poisson", "rho": "density", "eta": "viscosity", "damping": "viscosity",
    "diameter": "radius", "thickness": "width_z", "height": "width_z", "width": "width_y", "l": "length",
    "size": "length",
    "tendons": "actuators", "chambers": "actuators", "motors": "actuators", "inputs": "actuators",
    "bodies": "links", "rods": "links", "joints": "links", "forces": "loads", "constraints": "loops",
    "cross_section": "section", "profile": "section", "position": "placement", "origin": "placement",
    "pose": "placement",
    "hinge": "JointRevolute", "pin": "JointRevolute", "slider": "JointPrismatic", "ball": "JointSpherical",
    "floating": "JointFree", "weld": "JointFixed", "cable": "Tendon", "wire": "Tendon", "motor": "JointActuator",
    "beam": "Rod", "rigid": "RigidBody", "tube": "SectionAnnulus", "square": "SectionRectangle", "floor": "ShapePlane",
}  # fmt: skip
OF_SOLIDS = "; write shape: box, shape: cylinder or shape: sphere"
_SYNTAX = (  # parts of messages of PyYAML, and the cures
    ("'\\t'", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "a text with a colon needs quotes, and keys of one mapping one indentation"),
    ("could not find expected ':'", "write a colon and a space after each key, as in length: 0.3"),
    ("expected ',' or ']'", "close the list with ], and separate its entries by commas"),
    ("expected ',' or '}'", "close the mapping with }, and separate its entries by commas"),
    ("expected <block end>", "entries of one list, and keys of one mapping, must be indented alike"),
    ("quoted scalar", "close the quotes"),
    ("undefined alias", "a text that begins with * needs quotes"),
    ("single document", "a file holds one robot: remove the line ---"),
    ("cannot start any token", "a text that begins with this character needs quotes"),
)  # fmt: skip


def of_syntax(why: str) -> str:
    """The cure of a syntax error of PyYAML; empty if none is known."""
    return next((f"; {cure}" for sign, cure in _SYNTAX if sign in why), "")


def of_word(word: Any, known: list[str]) -> str:
    """The known word that was meant: the nearest one, or the one with another name in other programs."""
    if not isinstance(word, str):
        return ""
    other = _OTHER_WORDS.get(word.lower())
    if other in known:
        half = ", which is half of it" if word.lower() == "diameter" else ""
        return f"; did you mean {other!r}{half}?"
    return nearest(word, known)


def of_type(value: Any, known: list[str]) -> str:
    """The cure of a wrong value whose `type` chooses a class."""
    if value is None:
        return "; write a value behind the colon, such as {type: " + known[0] + ", ...}"
    if isinstance(value, list):
        return "; remove the dash or the brackets: it must be one mapping"
    if isinstance(value, str):
        meant = of_word(value, known)
        name = meant.split("'")[1] if meant else known[0]
        return f"; write {{type: {name}, ...}}"
    if not isinstance(value, dict):
        return "; write {type: " + known[0] + ", ...}"
    return of_word(value["type"], known) if value.get("type") is not None else "; add a type to it"


def of_value(kind: str, value: Any, *, may_vary: bool = False) -> str:
    """The cure of a value of the wrong kind. kind: the right one, as named by pydantic or `values`."""
    if kind in ("float_type", "int_type", "numbers", "finite_number", "place", "int_from_float"):
        return of_number(value, kind, may_vary)
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


def of_number(value: Any, kind: str, may_vary: bool) -> str:
    """The cure of a wrong value in place of a number."""
    if value is None:
        return "; write a number behind the colon"
    if isinstance(value, bool):
        return "; write a number"
    if kind == "int_from_float" or (kind == "int_type" and isinstance(value, float)):
        return f"; write it without decimals: {round(value)}" if abs(value) < 1e15 else ""
    texts = [value] if isinstance(value, str) else [item for item in _flat(value) if isinstance(item, str)]
    if not texts:
        return "; write one number, without brackets" if isinstance(value, list) and kind != "numbers" else ""
    return _of_text(texts[0].strip(), may_vary)


def mended(value: Any) -> Any:
    """The number in a text in quotes or with a unit behind it; None if there is none."""
    if isinstance(value, list) and value:
        parts = [item if isinstance(item, int | float) and not isinstance(item, bool) else mended(item)
                 for item in value]  # fmt: skip
        return None if any(part is None for part in parts) else parts
    if not isinstance(value, str):
        return None
    text = value.strip().replace(",", ".")
    if _NUMBER.fullmatch(text):
        return float(text)
    with_unit = _with_unit(text)
    return None if with_unit is None else with_unit[0]


def _of_text(text: str, may_vary: bool) -> str:
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
    """The SI value of a number with a unit behind it, and the unit."""
    found = re.fullmatch(rf"({_NUMBER.pattern})\s*([a-zA-Z][a-zA-Z0-9/^*.]*)", text)
    if found is None or found[2].lower() not in _UNITS:
        return None
    factor = 1e6 if found[2] == "MPa" else _UNITS[found[2].lower()]
    return float(f"{float(found[1]) * factor:.12g}"), found[2]


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, list) else [value]
