"""The document of the studio: edits of a robot file, undo and redo, the file on the disk."""

import os
import random
import stat
import time
from pathlib import Path

import pytest

import lissom as ls
from lissom.io.reading import read
from lissom.studio.document import EMPTY, RobotDocument, files_outside, robot_files, templates, within
from lissom.studio.forms import kind_of, part_kind, references, sections
from lissom.studio.segmented_arm import MOST, arm_text
from lissom.studio.values import blank

ROBOTS = Path(__file__).parents[2] / "examples" / "robots"
HYBRID = (ROBOTS / "hybrid_arm.yaml").read_text(encoding="utf-8")


@pytest.fixture
def document(tmp_path):
    """The showcase of robot files, in a file of its own."""
    path = tmp_path / "robot.yaml"
    path.write_text(HYBRID, encoding="utf-8")
    return RobotDocument(path)


def faults(document):
    """The mistakes in the text of a document."""
    return read(document.text, document.name)[1]


def test_a_new_file_is_written_by_the_first_edit(tmp_path):
    """A file that does not exist begins empty; nothing is written before there is an edit."""
    document = RobotDocument(tmp_path / "new.yaml")
    assert document.text == EMPTY and not document.path.exists()
    document.add("links", {"name": "arm"})
    assert document.path.read_text(encoding="utf-8") == document.text
    assert document.names("links") == ["arm"]


def random_edit(rng, document):
    """One edit as a page makes it."""
    lists = [section for section in sections() if document.names(section)]
    kind = rng.choice(("add", "duplicate", "remove", "rename", "move", "put", "put", "clear", "text"))
    if kind == "add" or not lists:
        section = rng.choice(list(sections()))
        form = rng.choice(list(part_kind(section).forms.values()))
        names = {"links": document.names("links"), "actuators": document.names("actuators")}
        document.add(section, {"name": "new", **blank(form, names)})
        return
    section = rng.choice(lists)
    k = rng.randrange(len(document.names(section)))
    if kind == "duplicate":
        document.duplicate(section, k)
    elif kind == "remove":
        document.remove(section, k)
    elif kind == "rename":
        document.rename(section, k, f"other {rng.randrange(1000)}")
    elif kind == "move":
        document.move(section, k, rng.randrange(len(document.names(section))))
    elif kind == "text":
        document.change(document.text + f"# {rng.random()}\n", "write a comment")
    else:
        part = document.value([section, k])
        if not part:
            return
        key = rng.choice(list(part))
        if kind == "clear":
            document.clear([section, k, key])
        else:
            document.put([section, k, key], rng.choice((0.5, "arm", [0, 1.5, 2], None, {"expression": "s"}, "30 cm")))


@pytest.mark.parametrize("seed", range(4))
def test_undo_of_200_random_edits_gives_the_file_bit_for_bit(document, seed):
    """After 200 edits, of which some leave a robot with mistakes, undo leads back to the first bytes and redo to the
    last; the file follows."""
    rng, before = random.Random(seed), document.path.read_bytes()
    count = 0
    while count < 200:
        version = document.version
        random_edit(rng, document)
        count += document.version > version
        if not document.is_readable or len(document.text) > 60_000:
            document.undo()
    last = document.text
    while document.undo_name:
        document.undo()
    assert document.path.read_bytes() == before
    while document.redo_name:
        document.redo()
    assert document.text == last and document.path.read_bytes() == last.encode()


def test_a_renamed_part_keeps_its_places(document):
    """A new name of a link and of an actuator appears in all parts that name them, and the file has no mistake."""
    document.rename("links", 2, "limb")
    document.rename("actuators", 2, "puller")
    assert not faults(document)
    named = [name for _, _, name in references(document.data)]
    assert "limb" in named and "puller" in named and not {"arm", "finger_left"} & set(named)
    assert document.value(["couplings", 0, "gains"]) == {"puller": 1.0, "finger_right": 0.333}
    assert "# branches off at mid-rod" in document.text


def test_a_removed_part_takes_along_what_needs_it(document):
    """A link goes with the links on it, its frames, loads and tendons, and a coupling that keeps no tendon; a list
    that keeps some loses only the name. What is left has no mistake."""
    assert document.remove("actuators", 2) == ["actuator 'finger_left'"]
    assert document.value(["couplings", 0, "gains"]) == {"finger_right": 0.333}
    gone = document.remove("links", 2)
    assert gone[:3] == ["link 'arm'", "link 'finger'", "link 'gripper'"] and "input 'finger'" in gone
    assert document.names("links") == ["base", "shoulder"] and document.names("actuators") == ["motor"]
    assert not faults(document)


def test_a_copy_stands_behind_its_part(document):
    """A duplicated link has a free name, the same values and the same writing, and the file has no mistake."""
    assert document.duplicate("links", 4) == 5
    assert document.names("links")[4:] == ["gripper", "gripper 2"]
    first, second = (document.value(["links", k]) for k in (4, 5))
    assert first | {"name": ""} == second | {"name": ""}
    assert not faults(document)
    document.move("links", 5, 0)
    assert document.names("links")[0] == "gripper 2"


def test_a_part_that_moves_keeps_its_comments(document):
    """A link goes up and down in its list with the comments in it and above it; back at its place the file is the same,
    bit for bit."""
    document.change(document.text.replace("  - name: arm\n", "  # the long one\n  - name: arm\n"), "write a comment")
    before, names = document.text, document.names("links")
    for k, to in ((4, 3), (3, 4), (1, 0), (1, 2)):
        document.move("links", k, to)
        names.insert(to, names.pop(k))
        assert document.names("links") == names
        assert sorted(document.text.splitlines()) == sorted(before.splitlines())
        document.move("links", to, k)
        names.insert(k, names.pop(to))
        assert document.text == before
    document.change(before, "begin again")
    document.move("links", 3, 2)
    assert "# branches off at mid-rod" in document.text and "# the long one" in document.text


def test_missing_mappings_are_made_on_the_way(document):
    """A value deep in a part that has none yet makes the mappings around it."""
    document.put(["links", 4, "joint"], {"type": "JointRevolute"})
    document.put(["links", 0, "placement", "rotation", "degrees"], 90)
    assert document.value(["links", 0, "placement", "rotation"]) == {"degrees": 90}
    document.put(["fluid", "default", "lift"], 0.5)
    assert document.value(["fluid"]) == {"default": {"lift": 0.5}}


def test_another_robot_is_attached(document):
    """The parts of a file beside it come with a prefix, as `Robot.attach` puts them; the text before stays."""
    text = document.text
    (document.folder / "cdm.yaml").write_text((ROBOTS / "cdm.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    assert list(robot_files(document.folder)) == ["cdm.yaml", "robot.yaml"]
    added = document.attach("cdm.yaml", "gripper", "tip ")
    assert added[:2] == ["link 'tip arm'", "actuator 'tip t1'"]
    robot = ls.load_robot(ROBOTS / "hybrid_arm.yaml")
    robot.attach(ls.load_robot(ROBOTS / "cdm.yaml"), "gripper", prefix="tip ")
    made, mistakes = read(document.text, document.name)
    assert not mistakes and list(made.links) == list(robot.links) and list(made.actuators) == list(robot.actuators)
    assert all(line in document.text for line in text.splitlines())
    with pytest.raises(ls.ModelError, match="must not be taken already"):
        document.attach("cdm.yaml", None, "tip ")


def test_files_outside_the_folder_are_refused(document, tmp_path):
    """Neither a path upwards, nor an absolute one, nor a link leads out of the folder of the robot."""
    outside = tmp_path.parent / "elsewhere.yaml"
    outside.write_text(HYBRID, encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to(outside)
    for path in ("../elsewhere.yaml", str(outside), "link.yaml"):
        with pytest.raises(ls.ModelError, match="must lie below the folder"):
            document.attach(path, None)
    assert within(tmp_path, "robot.yaml") == Path(os.path.realpath(tmp_path)) / "robot.yaml"
    found = list(files_outside({"links": [{"body": {"mesh": {"file": "../a.obj"}}}, {"file": "b.obj"}]}, tmp_path))
    assert [keys for keys, _ in found] == [["links", 0, "body", "mesh", "file"]]


def test_a_change_on_the_disk_is_an_edit(document):
    """An editor that writes the file changes the document, and undo takes it back."""
    text = document.text
    assert not document.refresh()
    time.sleep(0.01)
    document.path.write_text(text.replace("0.4\n", "0.5\n"), encoding="utf-8")
    assert document.refresh() and document.value(["links", 2, "body", "length"]) == 0.5
    document.undo()
    assert document.text == text == document.path.read_text(encoding="utf-8")
    assert not document.refresh()


def test_an_edit_and_a_change_on_the_disk_at_once_lose_nothing(document):
    """Another program writes the file just before an edit of the page, which has not seen it yet: both count, and undo
    takes back the one, then the other. Nor does undo at that moment lose the change."""
    text = document.text
    other = text.replace("0.4\n", "0.5\n")
    document.path.write_text(other, encoding="utf-8")
    document.put(["name"], "mine")
    assert document.value(["name"]) == "mine" and document.value(["links", 2, "body", "length"]) == 0.5
    document.undo()
    assert document.text == other == document.path.read_text(encoding="utf-8")
    document.undo()
    assert document.text == text == document.path.read_text(encoding="utf-8")
    document.path.write_text(text + "# a word\n", encoding="utf-8")
    document.undo()
    document.redo()
    assert document.text == text + "# a word\n" == document.path.read_text(encoding="utf-8")


def test_a_read_only_file_keeps_its_text(document):
    """The edit counts, the file stays, and the document says that it is not saved until it can be."""
    before = document.path.read_bytes()
    document.path.chmod(0o444)
    document.put(["name"], "other")
    assert "is not saved: the file is read-only" in document.unsaved and document.path.read_bytes() == before
    assert document.value(["name"]) == "other"
    document.path.chmod(0o444 | stat.S_IWUSR)
    assert document.save() and not document.unsaved and b"name: other" in document.path.read_bytes()


def test_a_full_disk_is_told_and_leaves_the_file(document, monkeypatch):
    """A write that fails leaves the old file, and the edit."""

    def full(path, write):
        raise OSError(28, "No space left on device")

    before = document.path.read_bytes()
    monkeypatch.setattr("lissom.studio.document.write_whole", full)
    document.put(["name"], "other")
    assert "No space left on device" in document.unsaved and document.path.read_bytes() == before


def test_line_ends_and_marks_of_windows_stay(tmp_path):
    """A file with a byte order mark and line ends of Windows keeps both through an edit and its undo."""
    path = tmp_path / "robot.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HYBRID.replace("\n", "\r\n").encode())
    before = path.read_bytes()
    document = RobotDocument(path)
    document.put(["name"], "other")
    after = path.read_bytes()
    assert after == before.replace(b"name: hybrid arm", b"name: other")
    document.undo()
    assert path.read_bytes() == before


def test_a_file_that_is_no_yaml_can_be_mended(tmp_path):
    """The document has the text of a broken file, but no data, until the text is whole again."""
    path = tmp_path / "robot.yaml"
    path.write_text("links: [\n", encoding="utf-8")
    document = RobotDocument(path)
    assert not document.is_readable
    with pytest.raises(ls.ModelError, match=r"line \d: the YAML is broken"):
        _ = document.data
    document.change("links: []\n", "edit the text")
    assert document.is_readable and document.data == {"links": []}


@pytest.mark.parametrize("name", templates())
def test_templates_have_no_mistakes(name):
    """Each template is a robot that builds, with comments."""
    text = templates()[name]
    robot, mistakes = read(text, name)
    assert not mistakes and robot.build().nv > 0 and text.startswith("# ")


@pytest.mark.parametrize("n", [1, 3, MOST])
def test_an_arm_has_as_many_segments_as_asked_for(n):
    """The template with a choice: n segments one behind the other, and 3 n tendons, which end at their segments."""
    robot, mistakes = read(arm_text(n), "arm")
    assert not mistakes and [link.parent for link in robot.links.values()] == [None, *list(robot.links)[:-1]]
    assert len(robot.links) == n and len(robot.actuators) == 3 * n
    assert [len(tendon.path) for tendon in robot.actuators.values()] == [k + 1 for k in range(n) for _ in "abc"]


def test_every_kind_of_part_has_a_kind():
    """The lists of the library's parts are those of the forms."""
    assert all(kind_of(part_kind(section), {}).forms for section in sections())
