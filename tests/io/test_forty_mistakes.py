"""Forty mistakes of beginners: each message alone suffices to mend the file."""

from __future__ import annotations

import pytest

import lissom as ls
from lissom.io.robot_file import faults_of

GOOD = """\
name: arm
gravity: [0, 0, -9.81]
links:
  - name: base
    body: {type: RigidBody, shape: box, size: [0.1, 0.1, 0.1], density: 1000}
  - name: arm
    parent: base
    joint: {type: JointRevolute, axis: [0, 1, 0]}
    body:
      type: Rod
      length: 0.5
      section: {type: SectionCircle, radius: 0.02}
      material: {young: 1e6, density: 1000}
      basis: {type: BasisLegendre, bending_y: 2}
actuators:
  - {type: Tendon, name: t1, link: arm, offset: [0, 0.01]}
  - {type: JointActuator, name: motor, link: arm}
couplings:
  - {name: pair, gains: {t1: 1}}
loads:
  - {name: weight, link: arm, force: [0, 0, -1]}
contacts:
  - {name: floor, links: arm, shape: {type: ShapePlane}}
fluid: {density: 1000, links: {base: null}}
"""
# (the text in GOOD, the text of a beginner, line, words of the message)
MISTAKES = {
    "number in quotes": ("length: 0.5", "length: '0.5'", 11, ["body: length", "'0.5'", "remove the quotes"]),
    "number in a list in quotes": ("[0, 0.01]", "[0, '0.01']", 16, ["'t1': offset", "remove the quotes"]),
    "number with a unit": (
        "length: 0.5",
        "length: 500 mm",
        11,
        ["(got '500 mm'); write the number alone", "units: 0.5"],
    ),
    "megapascals": ("young: 1e6", "young: 1 MPa", 13, ["young", "write the number alone, in SI units: 1e+06"]),
    "decimal comma": ("length: 0.5", "length: 0,5", 11, ["write a point for the comma: 0.5"]),
    "arithmetic": ("length: 0.5", "length: 1/2", 11, ["length", "compute it and write the number"]),
    "formula without its key": ("radius: 0.02", "radius: 0.02 - 0.01*s", 12, ["{expression: '0.02 - 0.01*s'}"]),
    "value forgotten": ("length: 0.5", "length:", 11, ["length", "write a number behind the colon"]),
    "order with decimals": ("bending_y: 2", "bending_y: 2.0", 14, ["bending_y", "write it without decimals: 2"]),
    "number as a name": ("name: arm\ng", "name: 7\ng", 1, ["name", "(got 7)", 'put it in quotes: "7"']),
    "misspelt key": ("density: 1000}\n      b", "densty: 1000}\n      b", 13, ["densty", "did you mean 'density'?"]),
    "symbol for a key": ("young: 1e6", "E: 1e6", 13, ["'E'", "did you mean 'young'?"]),
    "greek letter for a key": (
        "{young: 1e6, density: 1000}",
        "{young: 1e6, rho: 1000}",
        13,
        ["did you mean 'density'?"],
    ),
    "diameter": ("radius: 0.02", "diameter: 0.04", 12, ["did you mean 'radius', which is half of it?"]),
    "misspelt section": ("loads:", "load:", 20, ["robot file > load", "did you mean 'loads'?"]),
    "another word for a section": ("actuators:\n", "tendons:\n", 15, ["did you mean 'actuators'?"]),
    "capital letter": ("gravity:", "Gravity:", 2, ["did you mean 'gravity'?"]),
    "key forgotten": ("      length: 0.5\n", "", 9, ["link 'arm' > body: the key 'length' is required", "add length:"]),
    "type forgotten": ("type: SectionCircle, ", "", 12, ["section", "type is one of", "add a type to it"]),
    "class without its family": ("JointRevolute", "Revolute", 8, ["'Revolute'", "did you mean 'JointRevolute'?"]),
    "class in small letters": ("type: Rod", "type: rod", 9, ["'rod'", "did you mean 'Rod'?"]),
    "class of textbooks": ("JointRevolute", "hinge", 8, ["'hinge'", "did you mean 'JointRevolute'?"]),
    "class without braces": ("{type: ShapePlane}", "ShapePlane", 23, ["'ShapePlane'", "write {type: ShapePlane, ...}"]),
    "list for a mapping": (
        "{type: ShapePlane}",
        "[{type: ShapePlane}]",
        23,
        ["shape", "remove the dash or the brackets"],
    ),
    "mapping for a list": ("loads:\n  - {", "loads:\n    {", 20, ["loads", "begin each entry with a dash"]),
    "misspelt shape": (
        "shape: box",
        "shape: boks",
        5,
        ["body", "(got 'RigidBody boks'); write shape: box, shape: cylinder, shape: sphere or shape: mesh"],
    ),
    "misspelt parent": (
        "parent: base",
        "parent: bse",
        7,
        ["parent", "['base'] (got 'bse'); did you mean 'base'?"],
    ),
    "misspelt link of a tendon": ("link: arm, offset", "link: amr, offset", 16, ["'t1'", "did you mean 'arm'?"]),
    "misspelt actuator": ("gains: {t1: 1}", "gains: {t2: 1}", 19, ["actuators ['motor', 't1']", "did you mean 't1'?"]),
    "misspelt link in a fluid": ("links: {base: null}", "links: {bas: null}", 24, ["did you mean 'base'?"]),
    "name given twice": ("name: motor", "name: t1", 17, ["actuator 't1'", "must not be taken already"]),
    "parent of itself": (
        "- name: base\n",
        "- name: base\n    parent: base\n",
        5,
        ["must not close a cycle", "base -> base"],
    ),
    "key given twice": ("length: 0.5", "length: 0.5\n      length: 0.6", 12, ["'length' is given twice", "remove one"]),
    "motor on a fixed joint": (
        "name: motor, link: arm",
        "name: motor, link: base",
        17,
        ["its joint must move (got 'base'); give that link a joint that moves"],
    ),
    "tendon along a rigid body": (
        "link: arm, offset",
        "link: base, offset",
        16,
        ["must carry a Rod (got 'base'); name a link whose body is a Rod"],
    ),
    "negative length": ("length: 0.5", "length: -0.5", 11, ["link 'arm' > body: length: must be > 0 (got -0.5)"]),
    "two numbers for three": (
        "force: [0, 0, -1]",
        "force: [0, -1]",
        21,
        ["force: must be a finite 3-vector", "[0, -1]"],
    ),
    "axis of zeros": ("axis: [0, 1, 0]", "axis: [0, 0, 0]", 8, ["joint: axis: must not be zero (got [0, 0, 0])"]),
    "tabs": ("      length: 0.5", "\tlength: 0.5", 11, ["indent with spaces, not with tabs"]),
    "space behind the colon forgotten": ("      length: 0.5", "      length:0.5", 11, ["a colon and a space"]),
    "bracket not closed": ("axis: [0, 1, 0]", "axis: [0, 1, 0", 8, ["close the list with ]"]),
    "quotes not closed": ("name: arm\ng", "name: 'arm\ng", 1, ["close the quotes"]),
}


def told(tmp_path, text):
    """Lines and words of all that is wrong with a text, each once."""
    path = tmp_path / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        return [(fault.line, fault.text) for fault in faults_of(path)[1]]
    except ls.ModelError as error:
        return [(None, str(error))]


def test_the_file_without_mistakes_is_right(tmp_path):
    """The file from which the others are made has no fault, so that each of them has one."""
    assert told(tmp_path, GOOD) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_alone_with_its_line_and_its_cure(name, tmp_path):
    """One message, at the line of the mistake, with the mistake and the remedy; no errors that follow from it."""
    old, new, line, words = MISTAKES[name]
    assert GOOD.count(old) == 1
    found = told(tmp_path, GOOD.replace(old, new))
    assert len(found) == 1, found
    number, message = found[0]
    assert number == line or (number is None and f"line {line}: " in message), found
    for word in words:
        assert word in message, message


def test_mistakes_of_all_kinds_are_reported_in_one_go(tmp_path):
    """Of spelling, of kind, of value and of names, in different parts and in one: all are reported, and nothing
    else."""
    text = GOOD
    for old, new in (("length: 0.5", "length: '0.5'"), ("young: 1e6", "young: -1"), ("JointRevolute", "hinge"),
                     ("force: [0, 0, -1]", "froce: [0, 0, -1]"), ("parent: base", "parent: bse"),
                     ("link: arm, offset", "link: amr, offset"), ("[0, 0, -9.81]", "down")):  # fmt: skip
        assert text.count(old) == 1
        text = text.replace(old, new)
    found = told(tmp_path, text)
    assert [line for line, _ in found] == [2, 7, 8, 11, 13, 16, 21], found


def test_slips_of_units_are_reported_with_their_line(tmp_path):
    """A file without mistakes whose numbers no material has."""
    path = tmp_path / "robot.yaml"
    path.write_text(GOOD.replace("young: 1e6", "young: 1"), encoding="utf-8")
    _, faults, doubts = faults_of(path)
    assert not faults and [doubt.line for doubt in doubts] == [13] and "1 MPa is 1e6" in doubts[0].text
