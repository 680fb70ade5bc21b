"""Robot files spoilt at random: each is read and built, or refused by a ModelError, and nothing else comes out."""

from __future__ import annotations

import copy
import random
import warnings
from pathlib import Path

import pytest
import yaml

import lissom as ls

FILES = sorted((Path(__file__).parents[2] / "examples" / "robots").glob("*.yaml"))
NUMBERS = (0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e300, -1e300, 5e-324, 1e16, 2**53, 2**63, 10**400, 10**4200, -(10**30),
           float("nan"), float("inf"), float("-inf"), True, False)  # fmt: skip
TEXTS = ("", " ", "0", "1e3", "nan", "s", "é", "名", "\u202e", "\x85", "a" * 3000, "null", "__class__", "../..", "x\ny")
EXPRESSIONS = ("1" * 400, "s**s**s", "1/s", "log(s)", "(" * 200 + "s" + ")" * 200, "10**400", "1e999", "s.real", "t",
               "exp(1e9)", "s if s else 1", "lambda: 0", "sqrt(-1)", "1j", "minimum(s)", "0x" + "f" * 400)  # fmt: skip
SHAPES = (None, [], {}, [[]], [None], [0], [1, 2], [1, 2, 3], [[1, 0], [0, 1]], [1] * 7, {"type": "Rod"}, {"a": {}},
          [["x"]], [[1, 2], [3]], {"expression": []})  # fmt: skip


def places(tree, path=()):
    """The paths to all values of a document."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path] + [found for key, child in children for found in places(child, (*path, key))]


def value_at(tree, path):
    """What stands at a path."""
    for key in path:
        tree = tree[key]
    return tree


def another(chance, tree):
    """Something to put into a place."""
    kind = chance.randrange(6)
    if kind == 0:
        return copy.deepcopy(value_at(tree, chance.choice(places(tree))))
    if kind == 1:
        return {"expression": chance.choice(EXPRESSIONS)}
    if kind == 2:
        points = chance.choice(([0, 1], [0, 0.5, 1], [1, 0], [0], [0, 1e300]))
        return {"points": points, "values": [chance.choice(NUMBERS) for _ in points], "interpolation": "linear"}
    return copy.deepcopy(chance.choice((NUMBERS, TEXTS, SHAPES)[kind - 3]))


def spoil(chance, tree):
    """Change one thing in a document."""
    path = chance.choice([path for path in places(tree) if path])
    holder, key = value_at(tree, path[:-1]), path[-1]
    kind = chance.randrange(7)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = [holder[key]] if chance.random() < 0.5 else {"value": holder[key]}
    elif kind == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == 2:
        holder[chance.choice((str(key) + "s", "é" + str(key), str(key).upper()))] = holder.pop(key)
    elif kind == 3 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * chance.choice((-1, 0, 1e-12, 1e12, 1000, 2**40)) if abs(holder[key]) < 1e300 else 1
    else:
        holder[key] = another(chance, tree)


def spoilt(chance):
    """The text of a spoilt file."""
    text = chance.choice(TEXT)
    if chance.random() < 0.1:  # as a broken copy
        at = sorted(chance.randrange(len(text)) for _ in range(2))
        return text[: at[0]] + chance.choice(("", *TEXTS, "\t", "{", "&a", "*a", "!!python/none")) + text[at[1] :]
    tree = copy.deepcopy(chance.choice(TREES))
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        spoil(chance, tree)
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)


SPRUNG = """format: 1
links:
  - name: arm
    body: {type: Rod, length: 0.5, section: {type: SectionCircle, radius: 0.02}, material: {young: 1e6, density: 1000},
           basis: {type: BasisLegendre, bending_y: 1}}
actuators:
  - {type: Tendon, name: pull, link: arm, offset: [0, 0.01], stiffness: 1e4, slack_length: 0.49}
springs:
  - {name: stay, a: arm, b: {link: null, position: [0.1, 0, 0.4]}, stiffness: 10, damping: 0.1, rest: 0.2, slack: true}
  - {name: band, a: arm, b: {link: null}, law: [[0.1, 0], [0.2, 1.5], [0.3, 2]]}
contacts:
  - {name: floor, links: arm, shape: {type: ShapePlane}, friction: 0.5, stick_stiffness: 1e5, stick_damping: 1e-3}
"""
SOFT = """format: 1
links:
  - name: finger
    body: {type: DeformableBody, density: 1e3, tip: tip, material: {type: HyperelasticLinear, young: 1e5, poisson: 0.3},
           kinematics: {type: KinematicsFiniteElements, mesh: {type: DomainTetrahedra, cells: [[0, 1, 2, 3]],
             vertices: [[0, 0, 0], [0, 0.1, 0], [0, 0, 0.1], [0.1, 0, 0]], marks: {side: [0, 0.1, 0]}}}}
  - name: hand
    parent: finger
    body: {type: DeformableBody, density: 900, material: {type: HyperelasticNeoHookean, C: 1e5, damping_time: 0.1},
           domain: {type: DomainCylinder, length: 0.1, radius: 0.01, degree: 1}, tip: [tip, tip_y, tip_z],
           kinematics: {type: KinematicsVolumePreserving, length: 0.1, primitives: [
             {type: PrimitiveTwist, modes: [[0, 1]]}, {type: PrimitiveShear, modes: [[0, 0, 0.1]], axis: z}]}}
"""
TEXT = [*(path.read_text(encoding="utf-8") for path in FILES), SPRUNG, SPRUNG, SOFT]
TREES = [yaml.safe_load(text) for text in TEXT]


def read_and_build(seed, count, folder):
    """What came out of `count` spoilt files besides models and ModelErrors: their numbers and errors."""
    wrong, chance = [], random.Random(seed)
    for k in range(count):
        path = folder / "spoilt.yaml"
        path.write_text(spoilt(chance), encoding="utf-8")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", ls.AccuracyWarning)
                warnings.simplefilter("ignore", ls.PlausibilityWarning)
                ls.load_robot(path).build()
        except ls.ModelError as error:
            assert str(error)
        except Exception as error:
            wrong.append((seed, k, repr(error)[:200]))
    return wrong


def test_spoilt_files(tmp_path):
    """A sample of the cases of the slow test."""
    assert not read_and_build(0, 60, tmp_path)


def changed(text, path, value):
    """A document with another value at a path, and a wheel on a joint."""
    tree = yaml.safe_load(text)
    joint, body = {"type": "JointRevolute", "axis": [0, 1, 0]}, {"type": "RigidBody", "mass": 1, "inertia": [1, 1, 1]}
    tree["links"].append({"name": "wheel", "body": body, "joint": joint})
    value_at(tree, path[:-1])[path[-1]] = value
    return tree


FOUND = {
    "a tip of lists of different lengths": (changed(SOFT, ("links", 0, "body", "tip"), [[["x"]], [0, 1]]), "body: tip"),
    "a law of lengths 0.1 and 1e16 m": (
        changed(SPRUNG, ("springs", 1, "law"), [[0.1, 0], [0.2, 1.5], [1e16, 2]]),
        "gaps",
    ),
    "an infinite number in an expression": (
        changed(SPRUNG, ("loads",), [{"name": "up", "link": "arm", "force": {"expression": [0, float("-inf"), 0]}}]),
        "finite numbers",
    ),
    "a motion of lists of different lengths": (
        changed(SPRUNG, ("motions",), [{"name": "spin", "link": "wheel", "position": [[1], [1, 2]]}]),
        "position",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_spoilt_files_have_found(name, tmp_path):
    """Values that once gave errors of NumPy and SciPy."""
    tree, words = FOUND[name]
    path = tmp_path / "spoilt.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    with pytest.raises(ls.ModelError, match=words):
        ls.load_robot(path).build()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 25))
def test_many_spoilt_files(seed, tmp_path):
    """12,000 files in all, each numbered by its seed and place."""
    assert not read_and_build(seed, 500, tmp_path)
