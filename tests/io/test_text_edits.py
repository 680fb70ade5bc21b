"""Edits of YAML texts: the value changes as asked, everything else stays character for character."""

import copy
import difflib
import random
import re
from pathlib import Path

import pytest

import lissom as ls
from lissom.io.text_edits import copied, insert, moved, put, remove, rename_key
from lissom.io.text_files import parse

ROOT = Path(__file__).parents[2]
HYBRID = (ROOT / "examples/robots/hybrid_arm.yaml").read_text(encoding="utf-8")
TEXTS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples/robots").glob("*.yaml"))]
TEXTS += [block for page in sorted((ROOT / "docs").glob("*.md"))
          for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)]  # fmt: skip
VALUES = [
    0.5, 7, "a b", "x: y", None, True, "", [], {}, "ü→𝄞", "yes", "1e6", "x" * 130, "two\nlines", [1, 2.0, 3],
    {"a": 1, "b": [1, 2]}, [[1, 2, 3], [4, 5, 6]], [{"a": 1}, {"b": {"c": [1]}}],
    {"type": "Rod", "length": 0.3, "section": {"type": "SectionCircle", "radius": [0.03, 0.01]}},
]  # fmt: skip


def data(text):
    """The document of a text."""
    return parse(text, "text").data([])


def at(value, keys):
    """The value at a place."""
    for key in keys:
        value = value[key]
    return value


def places(value, keys=()):
    """All places of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield [*keys, key]
        yield from places(item, (*keys, key))


def random_edit(rng, text):
    """(edited text, expected document, what was done) of a random edit; None if this kind does not apply."""
    known = data(text)
    every, expected = list(places(known)), copy.deepcopy(known)
    kind, value = rng.choice(("put", "put", "put", "new", "remove", "insert", "copy", "rename")), rng.choice(VALUES)
    fitting = {
        "new": [[]] + [keys for keys in every if isinstance(at(known, keys), dict)],
        "insert": [keys for keys in every if isinstance(at(known, keys), list)],
        "copy": [keys for keys in every if isinstance(keys[-1], int)],
        "rename": [keys for keys in every if isinstance(keys[-1], str)],
    }.get(kind, every)
    if not fitting:
        return None
    keys = rng.choice(fitting)
    if kind == "put":
        at(expected, keys[:-1])[keys[-1]] = value
        made = put(text, keys, value)
    elif kind == "new":
        at(expected, keys)["new"] = value
        made = put(text, [*keys, "new"], value)
    elif kind == "remove":
        del at(expected, keys[:-1])[keys[-1]]
        made = remove(text, keys)
    elif kind == "insert":
        index = rng.randint(0, len(at(known, keys)))
        at(expected, keys).insert(index, value)
        made = insert(text, [*keys, index], value)
    elif kind == "copy":
        at(expected, keys[:-1]).insert(keys[-1] + 1, at(known, keys))
        made = copied(text, keys)
    else:
        holder = at(expected, keys[:-1])
        items = [("other" if key == keys[-1] else key, item) for key, item in holder.items() if key != "other"]
        if "other" in holder:
            return None
        holder.clear()
        holder.update(items)
        made = rename_key(text, keys, "other")
    return None if made is None else (made, expected, (kind, keys, value))


@pytest.mark.parametrize("seed", range(60))
def test_random_edits_give_the_document_of_the_edited_data(seed):
    """Thirty random edits in a row, with awkward values: each text is read as the document that was edited, and lines
    away from the edit stay. Texts with names of values are left to the test below, since an edit changes their uses."""
    rng = random.Random(seed)
    text = rng.choice([text for text in TEXTS if "&" not in text])
    made = 0
    for _ in range(30):
        found = random_edit(rng, text)
        if found is None:
            continue
        text, expected, what = found
        assert data(text) == expected, what
        made += 1
        if not isinstance(expected, dict) or not expected:
            break
    assert made


def changed_lines(before, after):
    """Lines that an edit takes out and puts in."""
    rows = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [row[2:] for row in rows if row[0] == "-"], [row[2:] for row in rows if row[0] == "+"]


def test_one_line_changes_with_one_number():
    """A number in brackets, and one on a line with a comment, change alone; the comment stays."""
    assert changed_lines(HYBRID, put(HYBRID, ["links", 0, "body", "size", 1], 0.5)) == (
        ["    body: {type: RigidBody, shape: box, size: [0.12, 0.12, 0.10], density: 2700}"],
        ["    body: {type: RigidBody, shape: box, size: [0.12, 0.5, 0.10], density: 2700}"],
    )
    _, new = changed_lines(HYBRID, put(HYBRID, ["links", 1, "joint", "stiffness"], 3.5))
    assert new == ["      stiffness: 3.5                      # N m/rad on both angles"]


def test_comments_stay_where_a_value_changes_its_form():
    """A mapping on several lines becomes one line, and one line becomes several; comments at the key stay."""
    flat = put(HYBRID, ["links", 2, "body", "section"], {"type": "SectionCircle", "radius": 0.3})
    assert "      section: {type: SectionCircle, radius: 0.3}  # a tube whose wall thins towards the tip\n" in flat
    rows = [[0.1 * k, 0.0, 0.01] for k in range(9)]
    tall = put(HYBRID, ["actuators", 2, "offset"], rows)
    assert data(tall)["actuators"][2]["offset"] == rows
    assert max(map(len, tall.splitlines())) <= max(map(len, HYBRID.splitlines()))
    for text in (flat, tall):
        assert re.findall("#.*", text) == re.findall("#.*", HYBRID)


def test_a_value_with_a_name_is_edited_for_all_its_uses():
    """`&silicone` is written once: its modulus changes for both rods; through `*silicone` only one of them changes."""
    both = data(put(HYBRID, ["links", 2, "body", "material", "young"], 2e6))["links"]
    assert [both[k]["body"]["material"]["young"] for k in (2, 3)] == [2e6, 2e6]
    one = data(put(HYBRID, ["links", 3, "body", "material", "young"], 2e6))["links"]
    assert [one[k]["body"]["material"]["young"] for k in (2, 3)] == [1e6, 2e6]
    left = data(remove(HYBRID, ["links", 2]))["links"]
    assert left[2]["name"] == "finger" and left[2]["body"]["material"]["density"] == 1100


def test_entries_are_put_where_their_list_stands():
    """A new entry has the indentation of its list; a removed one takes the comments above it along."""
    text = insert(HYBRID, ["frames", 0], {"name": "root", "link": "base"})
    assert "frames:\n  - {name: root, link: base}\n  - {name: fingertip" in text
    told = "a:\n  # of one\n  - 1\n  # of two\n  - 2\n"
    assert remove(told, ["a", 1]) == "a:\n  # of one\n  - 1\n"
    assert insert(told, ["a", 1], 5) == "a:\n  # of one\n  - 1\n  - 5\n  # of two\n  - 2\n"
    assert remove("a:\n- 1\nb: 2\n", ["a", 0]) == "a:\n []\nb: 2\n"


def test_windows_line_ends_and_no_last_line_break():
    """An edited text with other line ends is still read as meant."""
    text = "a: 1\r\nb:\r\n  - x\r\n  - y"
    for made, expected in (
        (put(text, ["a"], 2), {"a": 2, "b": ["x", "y"]}),
        (remove(text, ["b", 0]), {"a": 1, "b": ["y"]}),
        (insert(text, ["b", 2], "z"), {"a": 1, "b": ["x", "y", "z"]}),
        (put(text, ["c"], 3), {"a": 1, "b": ["x", "y"], "c": 3}),
    ):
        assert data(made) == expected


@pytest.mark.parametrize("keys", [["links", 9], ["links", "name"], ["name", "first"], ["nothing", "here"]])
def test_a_place_that_is_not_there(keys):
    """The error names the place."""
    with pytest.raises(ls.ModelError, match=re.escape(f"must have this place (got {keys})")):
        put(HYBRID, keys, 1)
    with pytest.raises(ls.ModelError, match=re.escape(str(keys))):
        remove(HYBRID, keys)


def test_texts_on_lines_of_their_own_end_before_the_next_entry():
    """Edits of texts in the styles | and > leave the lines behind them."""
    text = "a:\n  - name: x\n    note: |\n      two\n      lines\n\n  - name: y\n    note: >-\n      one\n  - {b: z}\n"
    one, two, three = data(text)["a"]
    assert data(put(text, ["a", 0, "note"], "short"))["a"] == [one | {"note": "short"}, two, three]
    assert data(put(text, ["a", 1, "more"], 1))["a"] == [one, two | {"more": 1}, three]
    for k, left in enumerate(([two, three], [one, three], [one, two])):
        assert data(remove(text, ["a", k]))["a"] == left
    assert data(insert(text, ["a", 1], {"name": "w"}))["a"] == [one, {"name": "w"}, two, three]
    assert data(copied(text, ["a", 1]))["a"] == [one, two, two, three]
    assert data(moved(text, ["a", 0], 2))["a"] == [two, three, one]
    assert moved(moved(text, ["a", 0], 2), ["a", 2], 0) == text


def test_an_entry_moves_with_its_comments():
    """Entries change places with the comments in them and above them. A use of a name that comes before its value then
    is a value of its own; entries that share a line are left."""
    told = "a:\n  # of all\n  - 1  # one\n\n  # of two\n  - &b 2\n  - *b\n"
    up = moved(told, ["a", 1], 0)
    assert up == "a:\n  # of all\n  # of two\n  - &b 2\n\n  - 1  # one\n  - *b\n"
    assert moved(told, ["a", 2], 1) == "a:\n  # of all\n  - 1  # one\n\n  - 2\n  # of two\n  - &b 2\n"
    for text, keys, to in (("[1, 2]", [0], 1), ("- 1\n- 2\n", [0], 2), ("- - 1\n  - 2\n", [0, 0], 1)):
        assert moved(text, keys, to) is None
