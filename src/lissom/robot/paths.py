"""Paths to the values of a description, such as `arm.material.young`, to read and replace them.

| form | example | meaning |
|---|---|---|
| word of the robot | `gravity`, `fluid.density` | a value of the robot itself |
| name of a part, then fields | `arm.material.young`, `t1.offset` | a value of a link, an actuator, ... |
| index in brackets | `gravity[2]` | an entry of a list |
| `*` | `*.material.young` | the value of every part that has such a value |
| name with `*` or `?` | `rod*.section.radius` | the value of every part whose name fits; all must have such a value |
| kind, then name | `loops.arm.s_a` | needed if parts of two kinds have the same name |
| words of a function | `arm.section.radius.values[2]` | a number of a function, see below |

The numbers of functions are `values` and `points` of a `Tabulated`, the constants of an `Expression` by name, and the
control points `c` of a B-spline of SciPy. A path with `*` or `?` stands for one value, which all places get. It has
derivatives only if they all have this value.
Four words may be left out: `body` of a link, `path` of a chamber, `path[0]` of a tendon with a single path item, and
`constants` of an expression.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.actuators import Chamber, Tendon
from lissom.robot.bodies import Body
from lissom.robot.functions import Expression, Tabulated
from lissom.robot.robot import PARTS, Link, Robot

_OWN = ("gravity", "near_pairs", "fluid")
_EVERY = "*"
_SHOWN = 12  # words that an error lists
_ROUNDED = 1e-12  # numbers below it, over the largest of their array, count as zero
_NOTHING = 1e-30  # numbers below it count as zero in any unit

Steps = tuple[Any, ...]  # attributes by their names, entries by [key]


def described_values(robot: Robot) -> dict[str, Any]:
    """The values of a description by path, in the order of its parts. Names of parts are not included."""
    out: dict[str, Any] = {}
    for word, steps in _words(robot).items():
        if word not in PARTS:
            out |= dict(_leaves(word, _read(robot, steps)))
    return out


def with_values(robot: Robot, values: Mapping[str, Any], more: Mapping[str, Any]) -> Robot:
    """A copy of a description with some values replaced, one after another.

    Raises:
        ModelError: a word of a path is unknown; the message gives the nearest known word.
    """
    checks.require(isinstance(values, Mapping), _title(robot), "values must be given by path", values)
    out = copy(robot)
    for path, value in {**values, **more}.items():
        for steps in _found(out, path):
            _check_kind(out, path, steps, value)
            _put(out, steps, value)
    return out


def with_each(robot: Robot, path: str, values: Iterable[Any]) -> list[Robot]:
    """Copies of a description, each with one of some values at a path. As `with_values`, but the path is read once.

    Raises:
        ModelError: as `with_values`.
    """
    places, out = _found(robot, path), []
    for value in values:
        out.append(copy(robot))
        for steps in places:
            _check_kind(robot, path, steps, value)
            _put(out[-1], steps, value)
    return out


def _check_kind(robot: Robot, path: str, steps: Steps, value: Any) -> None:
    """Raise ModelError if a plain value, such as a number, would replace a whole part, such as a tendon."""
    old = _read(robot, steps)
    is_entry = len(steps) > 1 and isinstance(steps[-1], list)
    if _has_parts(old) and not _has_parts(value) and (value is not None or is_entry):
        rule = f"is a {type(old).__name__}, which another part may replace"
        words = [word for word in _words(old) if word not in PARTS]
        rule += f"; a value of it may be meant, such as {path}.{words[0]}" if words else ""
        raise checks.fail(f"{_title(robot)} > {path}", rule, value)


def is_value(robot: Robot, path: str) -> bool:
    """Whether the value at a path may be a number. Parts, names and choices may not.

    Raises:
        ModelError: a word of the path is unknown; the message gives the nearest known word.
    """
    found = value_at(robot, path)
    several = found if isinstance(found, list | tuple) else [found]
    return not any(isinstance(one, str | bool | Mapping) or _has_parts(one) for one in several)


def value_at(robot: Robot, path: str) -> Any:
    """The value at a path; with `*` the value of the first matching part.

    Raises:
        ModelError: a word of the path is unknown; the message gives the nearest known word.
    """
    return _read(robot, _found(robot, path)[0])


def number_at(robot: Robot, path: str) -> Any:
    """The value at a path as a starting point for changes. None for a pose is the identity (4, 4).

    Raises:
        ModelError: a word of the path is unknown; or a path with `*` or `?` leads to different values, which are given.
    """
    places = _found(robot, path)
    values = [_read(robot, steps) for steps in places]
    values = [np.eye(4) if value is None and _holds_pose(steps) else value for value, steps in zip(values, places)]
    if any(not same(value, values[0]) for value in values):
        listed = {_written(steps): value for value, steps in zip(values, places)}
        raise checks.fail(f"{_title(robot)} > {path}", "must lead to equal values, since it stands for one", listed)
    return values[0]


def is_pose(array: np.ndarray) -> bool:
    """Whether an array is a pose (4, 4)."""
    return array.shape == (4, 4) and bool(np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)))


def size_of(array: np.ndarray, index: int | tuple[int, ...] | None = None, *, default: float) -> float:
    """Size of a number of an array, for steps of differences; of the largest number if no index is given. A number that
    is zero but for rounding, such as r cos(π/2), has the size of the largest one. An array of zeros has the size
    `default`."""
    largest = float(np.abs(array).max(initial=0.0))
    if largest < _NOTHING:
        return default
    own = 0.0 if index is None else float(abs(array[index]))
    return own if own > _ROUNDED * largest else largest


def same(a: Any, b: Any) -> bool:
    """Whether two values of a description are equal."""
    if a is b:
        return True
    if callable(a) or callable(b):
        return type(a) is type(b) and is_dataclass(a) and same(vars(a), vars(b))
    try:
        return bool(np.array_equal(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)))
    except (TypeError, ValueError):
        return bool(a == b)


def sharing(robot: Robot, before: Robot) -> Robot:
    """A copy of a description in which each part and value that equals that of an earlier one is the same object.

    Models of changed descriptions compute only what depends on other objects (`model/redesign`). A description that is
    read again from its file has new objects only.
    """
    out = copy(robot)
    for name, value in vars(robot).items():
        setattr(out, name, _shared(value, getattr(before, name)))
    return out


def _shared(value: Any, before: Any) -> Any:
    """A value, or the earlier one if they are equal; a value with parts holds the earlier ones of them that are."""
    if value is before or type(value) is not type(before):
        return value
    if isinstance(value, dict):
        inner = {key: _shared(item, before[key]) if key in before else item for key, item in value.items()}
        whole = list(value) == list(before) and all(inner[key] is before[key] for key in inner)
        return before if whole else inner
    if isinstance(value, list | tuple):
        items = [_shared(*pair) for pair in zip(value, before)] + [*value[len(before) :]]
        whole = len(value) == len(before) and all(a is b for a, b in zip(items, before))
        return before if whole else type(value)(items)
    if not _has_parts(value):
        return before if same(value, before) else value
    inner = {field.name: _shared(getattr(value, field.name), getattr(before, field.name)) for field in fields(value)}
    if all(item is getattr(before, name) for name, item in inner.items()):
        return before
    made = copy(value)
    made.__dict__.update(inner)
    return made


def _holds_pose(steps: Steps) -> bool:
    """Whether a place is a field with a pose, where None is the identity."""
    return isinstance(steps[-1], str) and steps[-1].split("_")[0] == "placement"


def _written(steps: Steps) -> str:
    """A place as a path, without the kind of the part."""
    words = [f"[{step[0]}]" if isinstance(step, list) else f".{step}" for step in steps[2:]]
    return str(steps[1][0]) + "".join(words)


def _title(robot: Robot) -> str:
    return f"robot {robot.name!r}"


def _found(robot: Robot, path: Any) -> list[Steps]:
    """Where a robot holds the value that a path names, as steps through its description. A path with `*` or `?` may
    name a value of several parts; each of them gives an entry."""
    checks.require(isinstance(path, str) and path != "", _title(robot), "a path must be a text", path)
    if not path.startswith(_EVERY + "."):
        return _fitting(robot, path) or [_steps(robot, path)]
    found = []
    for name in _words(robot):
        try:
            found += [_steps(robot, name + path[1:])] if name not in (*PARTS, *_OWN) else []
        except ModelError:
            continue  # this part has no such value
    rest = path[2:]
    rule = f"a path after {_EVERY} must name a value of some part{_nearest(rest, _after_every(robot))}"
    checks.require(bool(found), _title(robot), rule, rest)
    return found


def _fitting(robot: Robot, path: str) -> list[Steps]:
    """The places of a path that begins with a name with `*` or `?`, at most one dot after another; none for others."""
    names = [word for word in _words(robot) if word not in (*PARTS, *_OWN)]
    if not re.search(r"[*?]", path.split("[")[0]) or any(path == name or path.startswith(name + ".") for name in names):
        return []
    words = path.split(".")
    for count in range(1, len(words)):  # names may contain dots
        pattern, rest = ".".join(words[:count]), ".".join(words[count:])
        fitting = [name for name in names if fnmatchcase(name, pattern.replace("[", "[[]"))]
        if fitting:
            try:
                return [_steps(robot, f"{name}.{rest}") for name in fitting]
            except ModelError as error:
                raise ModelError(f"{error}; {pattern!r} fits {', '.join(fitting)}") from None
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise checks.fail(_title(robot), f"a name with * or ? must fit a part, such as {shown}", words[0])


def _after_every(robot: Robot) -> list[str]:
    """The paths that may follow `*.`."""
    parts = [word for word in _words(robot) if word not in (*PARTS, *_OWN)]
    return [path[len(word) + 1 :] for word in parts for path in described_values(robot) if path.startswith(word + ".")]


def _steps(robot: Robot, path: str) -> Steps:
    """The place of a path."""
    steps: Steps = ()
    here: Any = robot
    rest, where = path, _title(robot)
    while rest:
        if rest.startswith("["):
            key, rest = _entry(here, rest, where)
            steps, here, where = (*steps, [key]), here[key], f"{where}[{key}]"
        else:
            words = _words(here)
            word = _first(rest, words, where, robot)
            steps, rest = (*steps, *words[word]), rest[len(word) :]
            here, where = _read(here, words[word]), f"{where} > {word}"
        if rest.startswith("."):
            rest = rest[1:]
            checks.require(rest != "" and not rest.startswith("["), where, "a dot must be followed by a word", path)
        elif rest and not rest.startswith("["):
            raise checks.fail(where, "must be followed by a dot or by an entry in brackets", rest)
    return steps


def _first(rest: str, words: Mapping[str, Steps], where: str, robot: Robot) -> str:
    """The longest word in `words` with which the rest of a path begins. Names may contain dots."""
    fitting = [word for word in words if rest == word or rest.startswith((word + ".", word + "["))]
    if fitting:
        return max(fitting, key=len)
    asked = rest.split(".")[0].split("[")[0]
    kinds = [kind for kind in PARTS if asked in getattr(robot, kind)] if where == _title(robot) else []
    if len(kinds) > 1:
        both = " or ".join(f"{kind}.{asked}" for kind in kinds)
        raise checks.fail(where, f"parts of several kinds have this name; write {both}", asked)
    if not words:
        raise checks.fail(where, "is a value and has no words of its own", asked)
    shown = list(words)[:_SHOWN]
    listed = f"must be one of {', '.join(shown)}" + (", ..." if len(words) > len(shown) else "")
    raise checks.fail(
        where, listed + (_below(asked, robot) if where == _title(robot) else "") + _nearest(asked, words), asked
    )


def _below(word: str, robot: Robot) -> str:
    """The first path that ends with a word, as the end of an error message; empty if there is none."""
    path = next((path for path in described_values(robot) if path.endswith("." + word)), None)
    return f"; there is {path!r}" if path else ""


def _nearest(word: str, known: Any) -> str:
    near = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; the nearest is {near[0]!r}" if near else ""


def _entry(here: Any, rest: str, where: str) -> tuple[Any, str]:
    """The index in brackets at the start of the rest of a path, and the remaining text."""
    text, closed, rest = rest[1:].partition("]")
    is_list = isinstance(here, list | tuple) or (isinstance(here, np.ndarray) and here.ndim > 0)
    checks.require(is_list, where, "has no entries in brackets", f"[{text}]")
    good = closed == "]" and text.isdecimal() and int(text) < len(here)
    checks.require(good, where, f"an entry must be one of [0] to [{len(here) - 1}]", f"[{text}{closed}")
    return int(text), rest


def _words(here: Any) -> dict[str, Steps]:
    """The words that may come next in a path, and the place of each."""
    if isinstance(here, Robot):
        kinds = {kind: getattr(here, kind) for kind in PARTS}
        count = Counter(name for parts in kinds.values() for name in parts)
        of_kinds = [(kind, name) for kind, parts in kinds.items() for name in parts]
        parts = {name if count[name] == 1 else f"{kind}.{name}": (kind, [name]) for kind, name in of_kinds}
        return parts | {word: (word,) for word in (*_OWN, *kinds)}
    if isinstance(here, Mapping):
        return {str(key): ([key],) for key in here}
    if isinstance(here, Tabulated):
        return {"points": ("points",), "values": ("values",)}
    if isinstance(here, Expression):
        return {name: ("constants", [name]) for name in here.constants} | {"constants": ("constants",)}
    if _is_spline(here):
        return {"c": ("c",)}
    if not _has_parts(here):
        return {}
    own = {item.name: (item.name,) for item in fields(here) if item.init and item.name != "name"}
    steps = _through(here)
    inner = {} if steps is None else {word: (*steps, *more) for word, more in _words(_read(here, steps)).items()}
    return inner | own


def _through(here: Any) -> Steps | None:
    """The place of the inner part whose name a path may leave out; None if there is no such part."""
    if isinstance(here, Link):
        return ("body",)
    if isinstance(here, Chamber):
        return ("path",)
    return ("path", [0]) if isinstance(here, Tendon) and len(here.path) == 1 else None


def _has_parts(value: Any) -> bool:
    """Whether a value is a dataclass with fields of its own. A function is not, even if it is a dataclass."""
    return is_dataclass(value) and not isinstance(value, type) and not callable(value)


def _is_spline(value: Any) -> bool:
    """Whether a value is a B-spline of SciPy."""
    return type(value).__name__ == "BSpline" and type(value).__module__.startswith("scipy.interpolate")


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values below a path, with their paths."""
    if isinstance(value, list | tuple) and any(map(_has_parts, value)):
        for k, item in enumerate(value):
            yield from _leaves(f"{path}[{k}]", item)
    elif (isinstance(value, Mapping) and value) or _has_parts(value):
        steps = None if isinstance(value, Mapping) else _through(value)
        for word, more in _words(value).items():
            if steps is None or word != steps[0] or _read(value, steps) is None:
                yield from _leaves(f"{path}.{word}", _read(value, more))
    else:
        yield path, value
        if isinstance(value, Expression):
            yield from ((f"{path}.{name}", number) for name, number in value.constants.items())
        elif isinstance(value, Tabulated) or _is_spline(value):
            word = "values" if isinstance(value, Tabulated) else "c"
            yield f"{path}.{word}", getattr(value, word)


def _read(here: Any, steps: Steps) -> Any:
    for step in steps:
        here = here[step[0]] if isinstance(step, list) else getattr(here, step)
    return here


def _put(robot: Robot, steps: Steps, value: Any) -> None:
    """Replace the value at a place of a description in place. The description must be a copy."""
    name, *rest = steps
    setattr(robot, name, _replaced(getattr(robot, name), tuple(rest), value))


def _replaced(here: Any, steps: Steps, value: Any) -> Any:
    """A copy of `here` with the value at a place in it replaced."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if not isinstance(step, list) and _is_spline(here):
        points = np.asarray(_replaced(here.c, rest, value), dtype=np.float64)
        return type(here)(here.t, points, here.k, here.extrapolate)
    if not isinstance(step, list):
        new = _replaced(getattr(here, step), rest, value)
        return here.with_field(step, new) if isinstance(here, Body) else replace(here, **{step: new})
    key = step[0]
    new = _replaced(here[key], rest, value)
    if isinstance(here, Mapping):
        return {**here, key: new}
    if isinstance(here, np.ndarray):
        out = here.astype(np.result_type(here, np.asarray(new)))
        out[key] = new
        return out
    return type(here)([*here[:key], new, *here[key + 1 :]])


def unit_of(robot: Robot, path: str) -> str:
    """The unit of the value at a path, read from the docstring of its class; empty if the docstring gives none."""
    steps = _found(robot, path)[0]
    last = max(k for k, step in enumerate(steps) if isinstance(step, str))
    holder, name = _read(robot, steps[:last]), str(steps[last])
    for kind in type(holder).__mro__:
        entry = re.search(rf"\b{name}\b[^:\[\]\n]*:(.*?)(?=\n *\w+(?:, \w+)*:|\Z)", kind.__doc__ or "", re.DOTALL)
        found = re.search(r"\[([^\]\[]+)\]", entry[1]) if entry else None
        if found:
            return found[1]
    return ""
