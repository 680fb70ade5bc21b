"""The robot file that the studio edits: its text, its edits, undo and redo, and the file on the disk, without a page.

The text is the truth. An edit changes the text where it must, and comments stay (`io/text_edits`). Undo brings the
text back bit for bit. An editor that changes the file on the disk makes one more edit here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, final

from lissom.errors import ModelError
from lissom.io.any_file import XML, load_any
from lissom.io.reading import read
from lissom.io.robot_file import document
from lissom.io.text_edits import copied, insert, moved, put, remove, rename_key
from lissom.io.text_files import bytes_of, parse
from lissom.portable import write_whole
from lissom.robot.robot import PARTS, SHARED_NAMES, Robot
from lissom.studio.forms import references, sections

Keys = Sequence[str | int]
TEMPLATES = Path(__file__).parent / "templates"
EMPTY = "# A robot for lissom. Units are SI: m, kg, s, N, Pa, rad.\nname: robot\ngravity: [0, 0, -9.81]\nlinks: []\n"
_MAY_BE_EMPTY = ("fluid", "states")  # parts whose mappings by name may lose all entries
_MARK = "\ufeff"  # at the start of a file, written by some editors


@final
@dataclass(frozen=True)
class Edit:
    """One change of a text: what was done, and the characters that it exchanged at an index."""

    what: str
    index: int
    before: str
    after: str


def difference(what: str, old: str, new: str) -> Edit:
    """The change from a text to another."""
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    return Edit(what, start, old[start : len(old) - end], new[start : len(new) - end])


def _alike(a: str, b: str) -> int:
    """Number of characters that two texts have in common at their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


@final
class RobotDocument:
    """A robot file and its edits.

    Methods may be called from any thread.

    Args:
        path: the file; None for a robot that is not stored. A file that does not exist is written by the first edit.
    Fields:
        text: the text of the file.
        version: number of changes of the text so far.
        unsaved: why the last text is not on the disk; empty if it is.
        listeners: functions that are called after each change.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.lock = RLock()
        self.text, self.version, self.unsaved = EMPTY, 0, ""
        self.listeners: list[Callable[[], Any]] = []
        self._ends, self._mark = "\n", ""
        self._done: list[Edit] = []
        self._undone: list[Edit] = []
        self._stamp: tuple[int, int] | None = None
        self._read: tuple[str, Any] | None = None
        if self.path is not None and self.path.exists():
            self.text = self._loaded()

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return "robot" if self.path is None else os.fspath(self.path)

    @property
    def folder(self) -> Path:
        """Folder below which files may be read and written."""
        return Path.cwd() if self.path is None else self.path.absolute().parent

    @property
    def data(self) -> Any:
        """The text as dictionaries, lists, texts and numbers.

        Raises:
            ModelError: the text is not YAML.
        """
        text, known = self.text, self._read  # without the lock, which an edit holds until its file is on the disk
        if known is None or known[0] != text:
            found = parse(text, self.name).data([])
            self._read = known = text, found if isinstance(found, dict) else {}
        return known[1]

    @property
    def is_readable(self) -> bool:
        """Whether the text is YAML."""
        try:
            return isinstance(self.data, dict)
        except ModelError:
            return False

    def value(self, keys: Keys) -> Any:
        """The value at a place; None if there is none."""
        here = self.data
        for key in keys:
            if isinstance(here, dict):
                here = here.get(key)
            else:
                here = here[key] if isinstance(here, list) and isinstance(key, int) and key < len(here) else None
        return here

    def names(self, section: str) -> list[str]:
        """Names of the parts of a list, such as "links"."""
        items = self.data.get(section)
        found = [item.get("name") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        return [name for name in found if isinstance(name, str)]

    def known_names(self, here: str | None = None) -> dict[str, list[str]]:
        """The names that fields of other parts may hold: "links", the links whose joints move as "joints", and
        "actuators", with common inputs. The link `here` stands last."""
        links = self.data.get("links")
        given = [item for item in links if isinstance(item, dict)] if isinstance(links, list) else []
        moving = [str(item.get("name")) for item in given
                  if isinstance(joint := item.get("joint"), dict) and joint.get("type") != "JointFixed"]  # fmt: skip
        found = {"links": self.names("links"), "joints": moving,
                 "actuators": [*self.names("actuators"), *self.names("couplings")]}  # fmt: skip
        return {kind: sorted(names, key=lambda name: name == here) for kind, names in found.items()}

    def free_name(self, section: str, wanted: str) -> str:
        """A name that no part of a list has yet, with a number behind it where it is needed."""
        taken = {*self.names(section), *self.names(SHARED_NAMES.get(section, section))}
        stem = re.sub(r"[ _]?\d+$", "", wanted) or wanted
        found, k = wanted, 2
        while found in taken:
            found, k = f"{stem} {k}", k + 1
        return found

    # -- edits --------------------------------------------------------------------------------------------------------

    def change(self, text: str, what: str) -> None:
        """Replace the whole text. `what` is shown at undo."""
        with self._editing():
            if text != self.text:
                self._done.append(difference(what, self.text, text))
                self._undone.clear()
                self._take(text)
                self.save()

    @contextmanager
    def _editing(self) -> Iterator[None]:
        """Hold the text for an edit, which counts from the text on the disk if another program has just changed it."""
        with self.lock:
            self.refresh()
            yield

    def _take(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        for listener in self.listeners:
            listener()

    def put(self, keys: Keys, value: Any) -> None:
        """Set the value at a place. Mappings and lists that are missing on the way are made."""
        with self._editing():
            keys, value = self._from_there(list(keys), value)
            self.change(put(self.text, keys, value, self.name), f"set {_shown(keys)}")

    def _from_there(self, keys: list[str | int], value: Any) -> tuple[list[str | int], Any]:
        """The first of the keys that exist, and one new key with the value inside mappings for the others."""
        here = self.data
        for count, key in enumerate(keys[:-1]):
            if isinstance(here, dict) and here.get(key) is None:
                for inner in reversed(keys[count + 1 :]):
                    value = [value] if inner == 0 else {inner: value}
                return keys[: count + 1], value
            here = here[key]
        return keys, value

    def clear(self, keys: Keys) -> None:
        """Remove the value at a place, if there is one; its default holds then."""
        with self._editing():
            if self._is_there(keys):
                self.change(remove(self.text, keys, self.name), f"clear {_shown(keys)}")

    def _is_there(self, keys: Keys) -> bool:
        holder, key = self.value(keys[:-1]), keys[-1]
        if isinstance(holder, dict):
            return key in holder
        return isinstance(holder, list) and isinstance(key, int) and key < len(holder)

    def rename_key(self, keys: Keys, new: str) -> None:
        """Give another name to a key of a mapping, such as an actuator in gains."""
        with self._editing():
            self.change(rename_key(self.text, keys, new, self.name), f"rename {keys[-1]}")

    def add(self, section: str, value: dict[str, Any]) -> int:
        """Add a part to the end of a list; its name becomes a free one. Returns its index."""
        with self._editing():
            items = self.data.get(section)
            given = dict(value)
            if section != "input_limits" and "name" in given:
                given["name"] = self.free_name(section, str(given["name"]))
            count = len(items) if isinstance(items, list) else 0
            what = f"add {sections().get(section, section)} {given.get('name', '')}"
            self.change(self._with_entry(self.text, [section, count], given), what)
            return count

    def _with_entry(self, text: str, keys: Keys, value: Any) -> str:
        """A text with a new entry of a list, which is made if there is none."""
        if self._count(text, keys[:-1]):
            return insert(text, keys, value, self.name)
        return put(text, keys[:-1], [value], self.name)

    def _count(self, text: str, keys: Keys) -> int:
        here = parse(text, self.name).data([])
        for key in keys:
            here = (here.get(key) if isinstance(here, dict) else here[key]) or {}
        return len(here)

    def add_entry(self, keys: Keys, value: Any) -> None:
        """Add a value to the end of the list at a place, such as an item of a path."""
        with self._editing():
            found = self.value(keys)
            if isinstance(found, list) and found:
                text = insert(self.text, [*keys, len(found)], value, self.name)
                self.change(text, f"add to {_shown(keys)}")
            else:
                self.put(keys, [value])

    def duplicate(self, section: str, k: int) -> int:
        """Put a copy of a part, with a free name, behind it. Returns the index of the copy."""
        with self._editing():
            part = self.value([section, k])
            name = self.free_name(section, str(part.get("name", section)))
            text = copied(self.text, [section, k], self.name)
            text = insert(self.text, [section, k + 1], deepcopy(part), self.name) if text is None else text
            self.change(put(text, [section, k + 1, "name"], name, self.name), f"duplicate {part.get('name', '')}")
            return k + 1

    def move(self, section: str, k: int, to: int) -> None:
        """Move a part to another index of its list. The order of links is that of q, and of actuators that of u."""
        with self._editing():
            part = deepcopy(self.value([section, k]))
            text = moved(self.text, [section, k], to, self.name)
            if text is None:
                text = remove(self.text, [section, k], self.name)
                text = self._with_entry(text, [section, to], part)
            self.change(text, f"move {part.get('name', '')}")

    def rename(self, section: str, k: int, new: str) -> None:
        """Give a part another name, and change it in all parts that name it."""
        with self._editing():
            old = self.value([section, k, "name"])
            text = put(self.text, [section, k, "name"], new, self.name)
            family = {"couplings": "actuators"}.get(section, section)
            named = [keys for keys, kind, name in references(self.data) if kind == family and name == old]
            for keys in sorted(named, key=len, reverse=True):
                is_key = len(keys) > 1 and keys[-1] == keys[-2] == old
                text = rename_key(text, keys[:-1], new, self.name) if is_key else put(text, keys, new, self.name)
            self.change(text, f"rename {old} to {new}")

    def remove(self, section: str, k: int) -> list[str]:
        """Remove a part and the parts that need it, such as the links on a link. Lists and mappings with its name lose
        this entry and stay if they have others. Returns what was removed, such as "link 'arm'"."""
        with self._editing():
            gone, lost = self._needing(section, k)
            told = [f"{sections()[kind]} {self.value([kind, j, 'name'])!r}" for kind, j in sorted(gone, key=_by_part)]
            text = self.text
            for keys in sorted(lost, key=_order, reverse=True):
                text = remove(text, keys[:-1] if keys[-1] == keys[-2] else keys, self.name)
            for kind, j in sorted(gone, key=lambda one: one[1], reverse=True):
                last = self._count(text, [kind]) == 1 and kind != "links"
                text = remove(text, [kind] if last else [kind, j], self.name)
            self.change(text, f"remove {told[0]}")
            return told

    def _needing(self, section: str, k: int) -> tuple[set[tuple[str, int]], list[list[str | int]]]:
        """A part and all parts that cannot do without it, and the places of names that other parts lose."""
        gone, found = {(section, k)}, list(references(self.data))
        while True:
            names = {
                ({"couplings": "actuators"}.get(kind, kind), str(self.value([kind, j, "name"]))) for kind, j in gone
            }
            lost = [keys for keys, kind, name in found if (kind, name) in names and (keys[0], keys[1]) not in gone]
            more = {(str(keys[0]), int(keys[1])) for keys in lost if not self._drops(keys, lost)}
            if not more:
                return gone, lost
            gone |= more

    def _drops(self, keys: list[str | int], lost: list[list[str | int]]) -> bool:
        """Whether a name that is lost can be left out alone: it is one of several in a list, or a key of a mapping that
        keeps others or may be empty."""
        is_key = keys[-1] == keys[-2]
        place = keys[:-2] if is_key else keys[:-1]
        if not (is_key or isinstance(keys[-1], int)):
            return False
        same = [other for other in lost if (other[:-2] if is_key else other[:-1]) == place]
        return keys[0] in _MAY_BE_EMPTY or len(self.value(place)) > len(same)

    def attach(self, path: str | os.PathLike[str], parent: str | None, prefix: str = "", at: Any = 1.0) -> list[str]:
        """Add all parts of another robot's file (YAML, URDF, MJCF) on a link, or on the world, as `Robot.attach` does.
        Returns what was added.

        Raises:
            ModelError: a file has mistakes, or a name is taken already.
        """
        with self._editing():
            other = robot_of_file(within(self.folder, path))
            robot, faults = read(self.text, self.name)
            if robot is None or faults:
                first = f"line {faults[0].line}: {faults[0].text}" if faults else "no robot"
                raise ModelError(f"{self.name}: its mistakes must be mended before a file is attached ({first})")
            before = document(robot, self.folder)
            robot.attach(other, parent, prefix=prefix, at=at)
            after, text, told = document(robot, self.folder), self.text, []
            for kind, word in sections().items():
                items = after.get(kind, [])
                for item in items[len(before.get(kind, [])) :]:
                    text = self._with_entry(text, [kind, self._count(text, [kind])], item)
                    told.append(f"{word} {item['name']!r}")
            self.change(text, f"attach {Path(path).name}")
            return told

    # -- undo and redo ------------------------------------------------------------------------------------------------

    @property
    def undo_name(self) -> str:
        """What undo would take back; empty if there is nothing."""
        return self._done[-1].what if self._done else ""

    @property
    def redo_name(self) -> str:
        """What redo would do again; empty if there is nothing."""
        return self._undone[-1].what if self._undone else ""

    def undo(self) -> None:
        """Take the last edit back."""
        with self._editing():
            if self._done:
                edit = self._done.pop()
                self._undone.append(edit)
                self._exchange(edit.index, edit.after, edit.before)

    def redo(self) -> None:
        """Make the last edit that was taken back again."""
        with self._editing():
            if self._undone:
                edit = self._undone.pop()
                self._done.append(edit)
                self._exchange(edit.index, edit.before, edit.after)

    def _exchange(self, index: int, old: str, new: str) -> None:
        self._take(self.text[:index] + new + self.text[index + len(old) :])
        self.save()

    # -- the file -----------------------------------------------------------------------------------------------------

    def _loaded(self) -> str:
        """The text of the file. Line ends of Windows are kept for writing."""
        assert self.path is not None
        raw = bytes_of(self.path)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = raw.count(bytes([10]), 0, error.start) + 1
            raise ModelError(f"{self.name}, line {line}: the file is not UTF-8 text; save it as UTF-8") from None
        self._stamp = _stamp(self.path)
        self._mark = _MARK if text.startswith(_MARK) else ""
        text = text.removeprefix(_MARK)
        self._ends = "\r\n" if "\r\n" in text and "\n" not in text.replace("\r\n", "") else "\n"
        return text.replace("\r\n", "\n") if self._ends == "\r\n" else text

    def save(self) -> bool:
        """Write the text to the file, whole or not at all. Returns whether it is there; `unsaved` says why not."""
        with self.lock:
            if self.path is None:
                return False
            content = (self._mark + self.text.replace("\n", self._ends)).encode("utf-8")
            try:
                if self.path.exists() and not self.path.stat().st_mode & stat.S_IWUSR:
                    raise OSError("the file is read-only")
                write_whole(self.path, lambda file: file.write(content))
                self._stamp, self.unsaved = _stamp(self.path), ""
            except OSError as error:
                self.unsaved = f"{self.name} is not saved: {error.strerror or error}"
            return not self.unsaved

    def refresh(self) -> bool:
        """Take the text of the file if another program has changed it, as one edit. Returns whether it has.

        Raises:
            ModelError: the file is not UTF-8 text.
        """
        with self.lock:
            if self.path is None or not self.path.exists() or _stamp(self.path) == self._stamp:
                return False
            text = self._loaded()
            if text == self.text:
                return False
            self._done.append(difference("change on the disk", self.text, text))
            self._undone.clear()
            self._take(text)
            self.unsaved = ""
            return True


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _order(keys: Keys) -> list[tuple[int, Any]]:
    return [(0, key) if isinstance(key, int) else (1, key) for key in keys]


def _by_part(one: tuple[str, int]) -> tuple[int, int]:
    return list(PARTS).index(one[0]), one[1]


def _shown(keys: Keys) -> str:
    return " > ".join(str(key) for key in keys if not isinstance(key, int)) or "entry"


def within(folder: Path, path: str | os.PathLike[str]) -> Path:
    """A path below a folder, against which a relative one counts.

    Raises:
        ModelError: it leads elsewhere, also by a link.
    """
    found = Path(os.path.realpath(folder / path))
    root = Path(os.path.realpath(folder))
    if not found.is_relative_to(root):
        raise ModelError(f"file: must lie below the folder {root} (got {os.fspath(path)!r})")
    return found


_YAML = (".yaml", ".yml")


def robot_of_file(path: Path) -> Robot:
    """The robot of a YAML, URDF or MJCF file.

    Raises:
        ModelError: the file has mistakes, or is of another kind.
    """
    if path.suffix in _YAML:
        robot, faults = read(_text_of(path), os.fspath(path))
        if faults or robot is None:
            raise ModelError(
                f"{path.name}, line {faults[0].line}: {faults[0].text}" if faults else f"{path.name}: empty"
            )
        return robot
    if path.suffix.lower() not in XML:
        kinds = ", ".join((*_YAML, *XML))
        raise ModelError(f"file: must be a robot file, which ends in one of {kinds} (got {path.name!r})")
    return load_any(path)


def _text_of(path: Path) -> str:
    return bytes_of(path).decode("utf-8-sig")


def robot_files(folder: Path) -> Iterator[str]:
    """Robot files below a folder, relative to it."""
    for ending in ("yaml", "yml", "urdf", "xml"):
        for path in sorted(folder.rglob(f"*.{ending}")):
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):
                yield path.relative_to(folder).as_posix()


def templates() -> dict[str, str]:
    """The texts of the templates by their names."""
    return {path.stem.replace("_", " "): path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.yaml"))}


def files_outside(data: Any, folder: Path, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[list[str | int], str]]:
    """The places of files that a robot names outside a folder, each with its error."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key == "file" and isinstance(value, str):
            try:
                within(folder, value)
            except ModelError as error:
                yield [*keys, key], str(error)
        yield from files_outside(value, folder, (*keys, key))
