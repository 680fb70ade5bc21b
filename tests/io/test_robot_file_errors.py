"""Wrong robot files: each error is a ModelError that names the file, the line, the entity, the rule and the value."""

from __future__ import annotations

import sys

import pytest

import lissom as ls

GOOD = """\
format: 1
name: arm
gravity: [0, 0, -9.81]
links:
  - name: base
    body: {type: RigidBody, shape: box, size: [0.1, 0.1, 0.1], density: 1000}
  - name: arm
    parent: base
    at: 1.0
    placement: {position: [0, 0, 0.1], rotation: {axis: [0, 0, 1], degrees: 90}}
    joint:
      type: JointRevolute
      axis: [0, 1, 0]
    body:
      type: Rod
      length: 0.5
      section: {type: SectionCircle, radius: [0.03, 0.015]}
      material: {young: 1.0e6, density: 1000}
      basis: {type: BasisLegendre, bending_y: 2}
frames:
  - {name: tip, link: arm, s: 1.0}
actuators:
  - {type: Tendon, name: t1, link: arm, offset: [0, 0.01]}
  - {type: Tendon, name: t2, path: [{type: PathRod, link: arm, offset: [0, -0.01]}]}
  - {type: Chamber, name: c1, link: arm, area: 1e-4}
  - {type: JointActuator, name: m1, link: arm}
couplings:
  - {name: pair, gains: {t1: 1, t2: -1}}
loads:
  - {name: weight, link: arm, force: [0, 0, -1]}
contacts:
  - {name: floor, links: [arm, base], shape: {type: ShapePlane}, friction: 0.5}
  - name: self
    links: arm
    others: arm
fluid:
  density: 998
  default: {lift: 0.5}
  links:
    arm: {drag_normal: 1.2}
    base: null
"""

# name: (what stands in GOOD, what replaces it, the line of the error, parts of the message)
WRONG = {
    # the schema: keys and kinds
    "unknown key of a class": (
        "bending_y: 2}",
        "bending_y: 2, bend_z: 1}",
        19,
        ["link 'arm' > body > basis: bend_z", "is not a known key", "bending_z", "(got 'bend_z')"],
    ),
    "unknown key of a link": ("parent: base", "parnet: base", 8, ["link 'arm': parnet", "known key", "parent"]),
    "unknown key at the top": ("couplings:", "coupling:", 27, ["robot file > coupling", "known key"]),
    "missing key": ("      length: 0.5\n", "", 14, ["link 'arm' > body", "'length' is required"]),
    "missing name": ("- {name: weight, ", "- {", 30, ["loads[0]", "'name' is required"]),
    "unknown type": ("JointRevolute", "JointHinge", 11, ["link 'arm' > joint", "JointHelical", "(got 'JointHinge')"]),
    "no type": ("type: BasisLegendre, ", "", 19, ["link 'arm' > body > basis", "BasisFourier", "(got None)"]),
    "type that is a list": ("type: JointRevolute", "type: [1]", 11, ["link 'arm' > joint", "(got [1])"]),
    "unknown shape": ("shape: box", "shape: cone", 6, ["link 'base' > body", "cylinder"]),
    "keys of another shape": ("shape: box", "shape: sphere", 6, ["link 'base' > body: size", "known key", "radius"]),
    "text for a number": ("length: 0.5", "length: half", 16, ["> body: length", "valid number", "(got 'half')"]),
    "number in quotes": ("length: 0.5", "length: '0.5'", 16, ["> body: length", "valid number", "(got '0.5')"]),
    "truth value for a number": ("length: 0.5", "length: true", 16, ["> body: length", "valid number", "(got True)"]),
    "truth value in a vector": ("[0, 1, 0]", "[0, true, 0]", 13, ["> joint: axis", "number", "True"]),
    "float for an order": ("bending_y: 2}", "bending_y: 2.5}", 19, ["basis: bending_y", "integer", "(got 2.5)"]),
    "number for a name": ("link: arm, s: 1.0", "link: 3, s: 1.0", 21, ["frame 'tip': link", "string", "(got 3)"]),
    "null for a joint": (
        "    joint:\n      type: JointRevolute\n      axis: [0, 1, 0]",
        "    joint:",
        11,
        ["link 'arm': joint"],
    ),
    "mapping for a list": ("frames:\n  - {", "frames: {", 20, ["robot file > frames", "list"]),
    "future format": ("format: 1", "format: 2", 1, ["robot file > format", "1", "(got 2)"]),
    "number beyond float64": (
        ", density: 1000}\n  -",
        f", density: 1{'0' * 400}}}\n  -",
        6,
        ["link 'base' > body: density"],
    ),
    # values
    "negative length": ("length: 0.5", "length: -0.5", 16, ["link 'arm' > body: length: must be > 0 (got -0.5)"]),
    "not a number": ("length: 0.5", "length: .nan", 16, ["link 'arm' > body: length", "(got nan)"]),
    "negative radius": ("[0.03, 0.015]", "[0.03, -0.1]", 17, ["> section: radius: must be >= 0 (got -0.1)"]),
    "three radii": ("[0.03, 0.015]", "[1, 2, 3]", 17, ["section: radius", "(base, tip)", "[1, 2, 3]"]),
    "poisson out of range": (
        "young: 1.0e6",
        "young: 1e6, poisson: 0.7",
        18,
        ["poisson: must lie in (-1, 0.5] (got 0.7)"],
    ),
    "negative order": ("bending_y: 2}", "bending_y: -1}", 19, ["bending_y order: must be an integer >= 0 (got -1)"]),
    "zero axis": ("[0, 1, 0]", "[0, 0, 0]", 13, ["link 'arm' > joint: axis: must not be zero (got [0, 0, 0])"]),
    "abscissa": ("at: 1.0", "at: 1.5", 9, ["link 'arm': at: must lie in [0, 1] (got 1.5)"]),
    "box with two sides": ("size: [0.1, 0.1, 0.1]", "size: [0.1, 0.1]", 6, ["link 'base' > body", "size: must be 3"]),
    "box with a negative side": (
        "size: [0.1,",
        "size: [-0.1,",
        6,
        ["link 'base' > body", "size_x: must be > 0 (got -0.1)"],
    ),
    "gravity": ("[0, 0, -9.81]", "[0, 0]", 3, ["gravity: must be a finite 3-vector (got [0, 0])"]),
    "tendon offset": ("[0, 0.01]", "[0, 0.01, 0]", 23, ["actuator 't1' > path[0]: offset", "[0, 0.01, 0]"]),
    "path item offset": ("[0, -0.01]", "[0]", 24, ["actuator 't2' > path[0]: offset", "(got [0])"]),
    "chamber area": ("1e-4", "-1e-4", 25, ["actuator 'c1': area: must be > 0 (got -0.0001)"]),
    "load": ("force: [0, 0, -1]", "force: [0, -1]", 30, ["load 'weight': force: must be a finite 3-vector"]),
    "near pairs": ("name: arm\ngravity", "name: arm\nnear_pairs: 0\ngravity", 3, ["near_pairs: must be", "(got 0)"]),
    # effects of the world
    "unknown shape type": ("ShapePlane}", "ShapeDisc}", 32, ["contact 'floor' > shape", "ShapeSphere", "'ShapeDisc'"]),
    "key of another shape": (
        "ShapePlane}",
        "ShapePlane, radius: 1}",
        32,
        ["contact 'floor' > shape: radius", "normal"],
    ),
    "radius of a shape": (
        "{type: ShapePlane}",
        "{type: ShapeSphere, radius: -1}",
        32,
        ["contact 'floor' > shape: radius: must be > 0 (got -1.0)"],
    ),
    "long hole": (
        "{type: ShapePlane}",
        "{type: ShapeCylinder, radius: 1, length: 2, inside: true}",
        32,
        ["contact 'floor' > shape: length: must be None for a hole (got 2.0)"],
    ),
    "number for links": (
        "links: arm",
        "links: 3",
        34,
        ["contact 'self': links", "name of a link or a list", "(got 3)"],
    ),
    "no links": ("links: arm", "links: []", 34, ["contact 'self': links: must name at least one link (got [])"]),
    "unknown link of a contact": (
        "links: arm",
        "links: [arm, amr]",
        34,
        ["'self': links: must be one of", "(got 'amr')"],
    ),
    "shape and others": ("others: arm", "others: arm\n    shape: {type: ShapePlane}", 33, ["'self': needs a shape or"]),
    "friction": ("friction: 0.5", "friction: -0.5", 32, ["contact 'floor': friction: must be >= 0 (got -0.5)"]),
    "radius of balls": (
        "others: arm",
        "others: arm\n    radius: [1, -1]",
        36,
        ["'self': radius: must be > 0 (got -1.0)"],
    ),
    "contact named twice": ("name: self", "name: floor", 33, ["contact 'floor'", "must not be taken already"]),
    "fluid that is no mapping": (
        "fluid:\n  density: 998\n  default: {lift: 0.5}\n  links:\n    arm: {drag_normal: 1.2}\n    base: null",
        "fluid: water",
        36,
        ["robot file > fluid", "(got 'water')"],
    ),
    "no density": ("  density: 998\n", "", 36, ["robot file > fluid", "'density' is required"]),
    "density of a fluid": ("density: 998", "density: 0", 37, ["fluid: density: must be > 0 (got 0.0)"]),
    "current": ("density: 998", "density: 998\n  current: [1, 0]", 38, ["fluid: current: must be a finite 3-vector"]),
    "unknown key of a fluid": ("density: 998", "density: 998\n  flow: 1", 38, ["fluid: flow", "known key", "current"]),
    "coefficient of all links": ("lift: 0.5", "drag_normal: -1", 38, ["fluid > default: drag_normal: must be >= 0"]),
    "coefficient of a link": (
        "drag_normal: 1.2",
        "drag_normal: -1",
        40,
        ["fluid > link 'arm': drag_normal: must be >="],
    ),
    "kind of a coefficient": ("drag_normal: 1.2", "tail: 1", 40, ["fluid > link 'arm': tail", "boolean", "(got 1)"]),
    "unknown coefficient": (
        "drag_normal: 1.2",
        "drag: 1",
        40,
        ["fluid > link 'arm': drag", "known key", "drag_normal"],
    ),
    "matrix of a fluid": (
        "drag_normal: 1.2",
        "drag_matrix: [1, 2]",
        40,
        ["fluid > link 'arm': drag_matrix: must be a"],
    ),
    "unknown link in a fluid": ("base: null", "bse: null", 41, ["fluid > link 'bse': must be one of the links"]),
    # placements
    "sheared rotation": (
        "{axis: [0, 0, 1], degrees: 90}",
        "{matrix: [[1, 1, 0], [0, 1, 0], [0, 0, 1]]}",
        10,
        ["link 'arm': placement: its rotation must be orthonormal"],
    ),
    "long quaternion": (
        "{axis: [0, 0, 1], degrees: 90}",
        "{quaternion: [1, 1, 0, 0]}",
        10,
        ["link 'arm' > placement", "quaternion: must have unit length (got [1, 1, 0, 0])"],
    ),
    "two rotations": ("degrees: 90}", "degrees: 90, angle: 1}", 10, ["rotation: must hold an axis with an angle"]),
    "rotation of no kind": ("{axis: [0, 0, 1], degrees: 90}", "{}", 10, ["rotation: must hold", "(got [])"]),
    "3x3 placement": (
        "placement: {position: [0, 0, 0.1], rotation: {axis: [0, 0, 1], degrees: 90}}",
        "placement: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]",
        10,
        ["link 'arm': placement: must be a finite 4x4 matrix"],
    ),
    # names
    "unknown parent": (
        "parent: base",
        "parent: bse",
        8,
        ["link 'arm': parent: must be one of the links", "(got 'bse')"],
    ),
    "cycle": (
        "- name: base\n",
        "- name: base\n    parent: arm\n",
        6,
        ["must not close a cycle", "base -> arm -> base"],
    ),
    "unknown link of a tendon": ("t1, link: arm", "t1, link: amr", 23, ["'t1' > path[0]: link", "(got 'amr')"]),
    "tendon over a rigid body": ("t1, link: arm", "t1, link: base", 23, ["'t1' > path[0]: link: must carry a Rod"]),
    "motor on a fixed joint": ("m1, link: arm", "m1, link: base", 26, ["'m1': link: its joint must move (got 'base')"]),
    "unknown actuator": ("{t1: 1,", "{t3: 1,", 28, ["input 'pair' > actuator: must be one of", "(got 't3')"]),
    "link named twice": ("- name: arm", "- name: base", 7, ["link 'base'", "must not be taken already (got 'base')"]),
    "frame named as a link": ("name: tip", "name: arm", 21, ["frame 'arm'", "must not be taken already"]),
    "empty name": ("name: t1", "name: ''", 23, ["must be a text that is not empty (got '')"]),
    "link and path": ("t2, path", "t2, link: arm, path", 24, ["actuator 't2'", "or a path, not both"]),
    "tendon without a way": (", link: arm, offset: [0, 0.01]}", "}", 23, ["actuator 't1'", "link and offset"]),
    # expressions and tables
    "import": (
        "[0.03, 0.015]",
        "{expression: \"__import__('os').system('touch hacked')\"}",
        17,
        ["link 'arm' > body > section > radius", "only numbers", "__import__('os')"],
    ),
    "attribute": ("[0.03, 0.015]", "{expression: s.__class__}", 17, ["only numbers", "(got 's.__class__')"]),
    "variable of time along a rod": ("[0.03, 0.015]", "{expression: 0.01*t}", 17, ["only numbers, 's'", "(got 't')"]),
    "syntax": ("[0.03, 0.015]", "{expression: 0.01*}", 17, ["radius", "is not a valid expression (got '0.01*')"]),
    "huge expression": (
        "[0.03, 0.015]",
        "{expression: '" + "+".join(["s"] * 600) + "'}",
        17,
        ["radius", "at most 1000 characters"],
    ),
    "deep expression": ("[0.03, 0.015]", "{expression: '" + "-" * 990 + "1'}", 17, ["radius", "nested too deeply"]),
    "astronomic expression": ("[0.03, 0.015]", "{expression: 9**9**9**9**9}", 17, ["radius", "finite", "inf"]),
    "table that falls": (
        "[0.03, 0.015]",
        "{points: [0, 1, 0.5], values: [1, 1, 1], interpolation: linear}",
        17,
        ["link 'arm' > body > section > radius", "must be strictly increasing"],
    ),
    "table of too few": ("[0.03, 0.015]", "{points: [0, 1], values: [1, 1]}", 17, ["needs at least 4 points (got 2)"]),
    "interpolation": (
        "[0.03, 0.015]",
        "{points: [0, 1], values: [1, 1], interpolation: magic}",
        17,
        ["table > interpolation: must be one of", "(got 'magic')"],
    ),
    "neither table nor expression": ("[0.03, 0.015]", "{value: 3}", 17, ["section > radius: value", "known key"]),
    # YAML itself
    "key given twice": ("length: 0.5", "length: 0.5\n      length: 0.6", 17, ["the key 'length' is given twice"]),
    "name given twice in gains": ("{t1: 1, t2", "{t1: 1, t1", 28, ["the key 't1' is given twice"]),
    "key that is a number": ("length: 0.5", "5: 0.5", 16, ["a key must be a text (got 5)"]),
    "open bracket": ("[0, 1, 0]", "[0, 1, 0", 14, ["the YAML is broken or cut off"]),
    "tab": ("      length: 0.5", "\tlength: 0.5", 16, ["the YAML is broken"]),
    "unknown alias": ("length: 0.5", "length: *half", 16, ["the YAML is broken", "half"]),
    "python object": (
        "length: 0.5",
        "length: !!python/object/apply:os.system ['touch hacked']",
        16,
        ["the tag '!!python/object/apply:os.system' is not allowed"],
    ),
    "python name": ("length: 0.5", "length: !!python/name:os.system", 16, ["!!python/name:os.system", "not allowed"]),
    "own tag": ("length: 0.5", "length: !half 0.5", 16, ["the tag '!half' is not allowed"]),
    "number tag on a text": ("length: 0.5", "length: !!float abc", 16, ["not of that kind (got 'abc')"]),
    "merge key": ("length: 0.5", "<<: {length: 0.5}", 16, ["<<", "known key"]),
    "second document": ("loads:", "---\nloads:", 29, ["the YAML is broken", "document"]),
    "control character": ("length: 0.5", "length: \x07", 16, ["is not allowed in YAML"]),
    "recursive alias": ("[0, 1, 0]", "&loop [*loop]", 13, ["levels", "aliases"]),
}


def load(tmp_path, text):
    """The robot in a text."""
    (tmp_path / "robot.yaml").write_text(text, encoding="utf-8")
    return ls.load_robot(tmp_path / "robot.yaml")


def test_the_good_file_is_good(tmp_path):
    """Purpose: the file all wrong ones are made from is right, so that each has one fault."""
    robot = load(tmp_path, GOOD)
    assert list(robot.links) == ["base", "arm"] and list(robot.actuators) == ["t1", "t2", "c1", "m1"]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_named_with_its_line(case, tmp_path, monkeypatch):
    """Purpose: file, line, entity, rule and value stand in the message; nothing in the file is executed."""
    monkeypatch.chdir(tmp_path)
    old, new, line, parts = WRONG[case]
    assert GOOD.count(old) == 1, "the replacement must be unambiguous"
    with pytest.raises(ls.ModelError) as caught:
        load(tmp_path, GOOD.replace(old, new))
    message = str(caught.value)
    for part in [f"robot.yaml, line {line}: ", *parts]:
        assert part in message, message
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("cut", range(1, GOOD.count("\n"), 3))
def test_a_file_cut_off_at_any_line_is_a_model_error_or_a_smaller_robot(cut, tmp_path):
    """Purpose: truncation never escapes as another kind of error."""
    text = "\n".join(GOOD.split("\n")[:cut])[:-3]
    try:
        assert isinstance(load(tmp_path, text), ls.Robot)
    except ls.ModelError as error:
        assert "robot.yaml, line " in str(error)


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (b"", "line 1: the file is empty"),
        (b"# nothing\n", "line 1: the file is empty"),
        (b"- a\n- b\n", "line 1: a robot file is a mapping of keys (got list)"),
        (b"just text", "line 1: a robot file is a mapping of keys (got str)"),
        (b"name: arm\nlinks: \xff\xfe\n", "line 2: the file is not UTF-8 text"),
        (b"[" * 3000, "line 1: "),
        (b"name: arm\n", "the key 'links' is required"),
        (b"name: arm\nlinkss: []\nlinks_: 1\n", "did you mean 'links'?"),
        (b"name: arm\nlinks: []\n", "line 2: robot 'arm': needs at least one link"),
    ],
)
def test_a_file_that_is_no_robot_is_refused(raw, part, tmp_path):
    """Purpose: empty, binary, list-like and absurdly nested files end in one clear error."""
    (tmp_path / "robot.yaml").write_bytes(raw)
    with pytest.raises(ls.ModelError) as caught:
        ls.load_robot(tmp_path / "robot.yaml")
    assert part in str(caught.value)


def test_aliases_that_multiply_are_refused_quickly(tmp_path):
    """Purpose: the billion-laughs document is stopped by its size, not by the machine's memory."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 12)]
    with pytest.raises(ls.ModelError, match="more than 500000 values"):
        load(tmp_path, "\n".join(lines))


def test_all_problems_of_a_file_are_listed_in_order(tmp_path):
    """Purpose: one run shows every fault the schema can see, each with its line."""
    text = GOOD.replace("length: 0.5", "length: long").replace("[0, 1, 0]", "up").replace("s: 1.0", "s: [1, end]")
    with pytest.raises(ls.ModelError) as caught:
        load(tmp_path, text)
    lines = str(caught.value).split("\n")
    assert [line.split("line ")[1].split(":")[0] for line in lines] == ["13", "16", "21"]


def test_a_missing_file_is_an_os_error(tmp_path):
    """Purpose: a wrong path is the operating system's error, with its name."""
    with pytest.raises(FileNotFoundError, match=r"none\.yaml"):
        ls.load_robot(tmp_path / "none.yaml")


def test_loading_a_file_imports_nothing_it_names(tmp_path):
    """Purpose: a module named in a file stays unimported."""
    sys.modules.pop("antigravity", None)
    with pytest.raises(ls.ModelError):
        load(tmp_path, GOOD.replace("length: 0.5", "length: !!python/module:antigravity"))
    assert "antigravity" not in sys.modules


def test_all_wrong_values_are_reported(tmp_path):
    """Each part of a description is looked at, whatever is wrong with the others: six values, six lines, in order."""
    text = GOOD
    for old, new in (("at: 1.0", "at: 1.5"), ("length: 0.5", "length: -0.5"), ("young: 1.0e6", "young: 0"),
                     ("bending_y: 2", "bending_y: -1"), ("name: tip, link: arm", "name: tip, link: leg"),
                     ("friction: 0.5", "friction: -1")):  # fmt: skip
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "wrong.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ls.ModelError) as caught:
        ls.load_robot(path)
    lines = str(caught.value).split("\n")
    told = ["at: must lie in [0, 1] (got 1.5)", "length: must be > 0 (got -0.5)", "young: must be > 0 (got 0.0)",
            "bending_y order: must be an integer >= 0 (got -1)", "frame 'tip': link: must be one of the links",
            "friction: must be >= 0 (got -1.0)"]  # fmt: skip
    assert len(lines) == len(told), lines
    for line, part in zip(lines, told):
        assert part in line
    numbers = [int(line.split(", line ")[1].split(":")[0]) for line in lines]
    assert numbers == sorted(numbers) and len(set(numbers)) == 6
