"""Forms of every described class: made from the schema alone, each field can be set, wrong values tell the message."""

import copy
import dataclasses

import pytest
from robot_descriptions import everything

from lissom.io.reading import read
from lissom.io.robot_file import document as plain
from lissom.io.schema import DEFORMABLE, IN_PYTHON, TYPES
from lissom.io.text_edits import put
from lissom.io.text_files import dump
from lissom.robot import fields as kinds
from lissom.robot.robot import PARTS
from lissom.studio.forms import (
    BY_NAME,
    ONE_OF,
    TEXT,
    Kind,
    document_form,
    form_of,
    part_kind,
    sections,
    steps_into,
)
from lissom.studio.values import blank, changed_class, components, graph, text_of, value_of

NAMES = {"links": ["ball", "rod"], "actuators": ["motor"], "joints": ["ball"]}
BASE = {
    "name": "test",
    "links": [
        {"name": "rod", "body": {
            "type": "Rod", "length": 0.3, "section": {"type": "SectionCircle", "radius": 0.01},
            "material": {"young": 1e6, "density": 1000}, "basis": {"type": "BasisLegendre", "bending_y": 2}}},
        {"name": "ball", "parent": "rod", "joint": {"type": "JointRevolute"},
         "body": {"type": "RigidBody", "shape": "sphere", "radius": 0.02, "density": 1000}},
    ],
    "actuators": [{"type": "JointActuator", "name": "motor", "link": "ball"}],
}  # fmt: skip


def all_forms(kind, seen):
    """The forms of a kind and all forms in them, by title and number of fields."""
    for form in kind.forms.values():
        if (form.title, len(form.fields)) not in seen:
            seen[form.title, len(form.fields)] = form
            for one in form.fields:
                all_forms(one.kind, seen)
    for inner in (*kind.either, *(each for each in (kind.item, kind.key) if each is not None)):
        all_forms(inner, seen)
    return seen


FORMS = list(all_forms(Kind(ONE_OF, forms={"robot": document_form()}), {}).values())


def test_every_described_class_has_a_form():
    """The classes of all families, of parts and of fields of a robot file appear, each with all its fields."""
    titles = {form.title.split()[0]: form for form in FORMS}
    classes = {cls for cls in TYPES | DEFORMABLE if cls not in IN_PYTHON}
    classes |= {part.cls for kind, part in PARTS.items() if part.is_saved and kind != "actuators"}
    missing = [cls.__name__ for cls in classes if cls.__name__ not in titles]
    assert not missing
    for cls in classes:
        own = {field.name for field in dataclasses.fields(cls) if field.init}
        shown = {one.name for form in FORMS if form.title.split()[0] == cls.__name__ for one in form.fields}
        assert own <= shown | {"type"}, cls.__name__


def test_fields_tell_what_docstrings_tell():
    """Help, units and defaults come from the classes: numbers with units have them, and nearly all fields have help."""
    rod = part_kind("links").forms["Link"].field("body").kind.forms["Rod"]
    length = rod.field("length")
    assert (length.unit, length.is_required, length.help) == ("m", True, "length of the rod [m].")
    assert rod.field("material").kind.forms["Material"].field("poisson").default == 0.5
    force = part_kind("actuators").forms["Chamber"].field("force")
    assert force.words == ("tangent", "volume") and force.default == "tangent"
    wanted = [(form.title, one) for form in FORMS if form.title != "robot" for one in form.fields]
    silent = [(title, one.name) for title, one in wanted if not one.help]
    assert len(silent) < 0.05 * len(wanted), silent


@pytest.mark.parametrize("section", sections())
def test_new_parts_have_values_that_hold(section):
    """A new part of each class begins with values without a mistake, in a robot with a rod and a ball; the joints that
    close no loop are told."""
    for title, form in part_kind(section).forms.items():
        data = copy.deepcopy(BASE)
        names = NAMES | {"links": NAMES["links"][::-1]} if form.field("link") is None else NAMES
        part = {"name": "new", **blank(form, names)} if section != "input_limits" else blank(form, names)
        data.setdefault(section, []).append(part)
        if form.field("surface") is None and "vertices" not in part:
            assert not read(dump(data), "test")[1], title


def places(kind, data, keys=()):
    """All places of a value, with their kinds."""
    for key, inner, value in steps_into(kind, data):
        yield [*keys, key], inner
        yield from places(inner, value, (*keys, key))


def test_every_field_of_every_part_can_be_set_and_its_mistake_is_at_its_place():
    """Through the robot that has each field somewhere: a value that no field takes is told with the rule, at the very
    place that was edited, or at the part around it if the whole part does not fit then."""
    data = plain(everything())
    text = dump(data)
    whole = Kind(ONE_OF, forms={"robot": document_form()})
    assert not read(text, "test")[1]
    tried = 0
    for keys, kind in places(whole, data):
        if kind.word == TEXT or keys[-1] == "format":
            continue
        wrong = {"wrong": 1} if kind.word in (ONE_OF, BY_NAME) or not kind.variable else {"expression": "1 +"}
        faults = read(put(text, keys, wrong), "test")[1]
        assert faults, keys
        shorter = [min(len(keys), len(fault.keys)) for fault in faults]
        near = [n for n, fault in zip(shorter, faults) if fault.keys[:n] == tuple(keys[:n])]
        assert max(near, default=0) >= min(len(keys) - 1, 3), (keys, faults)
        tried += 1
    assert tried > 150


def test_a_text_is_the_value_that_it_says():
    """What is typed becomes the value: numbers, lists without brackets, texts with mistakes as they are."""
    numbers = Kind(kinds.NUMBERS)
    for text, value in (("0.3", 0.3), ("0, 0, -9.81", [0, 0, -9.81]), ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
                        ("1e6", 1e6), (".inf", float("inf")), ("30 cm", "30 cm"), ("true", True), ("[1, 2", "[1, 2"),
                        ("{expression: s}", {"expression": "s"})):  # fmt: skip
        assert value_of(numbers, text) == value
    assert value_of(Kind(TEXT), "1, 2") == "1, 2" and value_of(Kind(kinds.LINK), "1") == "1"
    for value in (0.3, 1e6, 1.5e7, 1e-3, 12, -9.81, 1234.0, 1e300, [0.03, 0.01], [[1, 2]], {"a": 1}):
        assert value_of(numbers, text_of(value)) == value
    assert [text_of(x) for x in (1000000.0, 0.001, 1000.0, None, True)] == ["1e6", "0.001", "1000", "", "true"]


def test_graphs_show_the_function_that_the_library_reads():
    """Expressions, tables and (base, tip) have graphs of their values; mistakes and code have none."""
    s, y = graph({"expression": ["0", "0.03 - 0.015*s"]}, "s")
    assert y.shape == (len(s), 2) and y[-1] == pytest.approx([0.0, 0.015])
    assert graph([0.03, 0.01], "s", tapers=True)[1][-1] == pytest.approx([0.01])
    assert graph([0.03, 0.01], "s") is None  # such as a pair (y, z)
    assert graph({"points": [0, 0.3, 0.6, 2], "values": [1, 2, 3, 4]}, "t")[1][-1] == pytest.approx([4.0])
    for wrong in ("s", 0.3, {"expression": "s +"}, {"expression": "__import__('os')"}, {"points": [0], "values": [1]}):
        assert graph(wrong, "s") is None
    assert components({"expression": "s"}) == ["s"] and components({"expression": [["0"], ["1"]]}) == []


def test_another_class_keeps_the_values_that_it_has_too():
    """A rod's section of another class keeps what both have; a body keeps its material."""
    body = part_kind("links").forms["Link"].field("body").kind
    rod = BASE["links"][0]["body"]
    other = changed_class(body.forms["RigidBody box"], rod, NAMES)
    assert other["shape"] == "box" and other["material"] == rod["material"] and "length" not in other
    assert form_of(body, other).title == "RigidBody box"


def test_a_new_class_appears_without_a_line():
    """Forms are made from the model of the schema: a mapping that the schema did not have appears with its fields."""
    from pydantic import create_model

    from lissom.io.schema import SOURCES, Constant, Schema
    from lissom.studio.forms import _form

    @dataclasses.dataclass
    class SectionStar:
        """A star.

        Args:
            points: number of its points.
            radius: radius of its points [m].
        """

        points: int = 5
        radius: float = 0.01

    made = create_model("SectionStar", __base__=Schema, points=(int, 5), radius=(Constant, ...))
    SOURCES[made] = (SectionStar,)
    try:
        form = _form(made, "SectionStar")
    finally:
        del SOURCES[made]
    points, radius = form.fields
    assert (points.kind.word, points.default, points.help) == ("integer", 5, "number of its points.")
    assert (radius.unit, radius.is_required, form.help) == ("m", True, "A star.")


def test_fields_of_a_class_stand_before_those_of_its_family():
    """The axis of a hinge is its first field, before the springs and limits that all joints have; names stay first."""
    joints = part_kind("links").forms["Link"].field("joint").kind.forms
    assert joints["JointRevolute"].fields[0].name == "axis"
    assert {one.name for one in joints["JointRevolute"].fields} >= {"stiffness", "damping", "limits"}
    for form in part_kind("actuators").forms.values():
        assert form.fields[0].name == "name"
