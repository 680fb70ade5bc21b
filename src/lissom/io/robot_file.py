"""Robot files: a description as YAML, checked on the way in and bit for bit the same on the way out."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from lissom.errors import AccuracyWarning, ModelError, PlausibilityWarning
from lissom.io.document import document
from lissom.io.file_contents import text_of
from lissom.io.reading import Fault, keys_of, read
from lissom.io.yaml_text import dump, parse
from lissom.portable import write_whole
from lissom.robot.checks import require
from lissom.robot.robot import Robot

_SHOWN = 10  # errors listed for one file


def load_robot(path: str | os.PathLike[str]) -> Robot:
    """Robot described by a YAML file. Nothing in the file is executed.

    Args:
        path: of the file.
    Raises:
        ModelError: for each problem the file, the line, the entity, the rule and the value.
        OSError: the file cannot be read.
    """
    return _read(text_of(path), os.fspath(path))


def save_robot(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write a robot description as YAML, which `load_robot` reads as the same robot.

    Numbers, expressions and tables are written exactly. Any other Python function of s becomes a table at Chebyshev
    points that reproduces it within 1e-13 of its largest value. The file appears whole or not at all.

    Args:
        robot: the description. path: file to write.
    Raises:
        ModelError: the description breaks a rule, or holds a Python function that a file cannot hold, with the remedy.
        OSError: the file cannot be written.
    """
    require(isinstance(robot, Robot), "save_robot", "expected a Robot, the description and not its Model", robot)
    robot.check()
    text = "# Robot description for lissom; SI units.\n" + dump(document(robot, Path(path).parent))
    _read(text, os.fspath(path))  # what cannot be read is not written
    write_whole(Path(path), lambda file: file.write(text.encode("utf-8")))


def _read(text: str, name: str) -> Robot:
    robot, faults = read(text, name)
    if faults or robot is None:
        texts = [f"{name}, line {fault.line}: {fault.text}" for fault in faults[:_SHOWN]]
        more = [f"and {len(faults) - _SHOWN} more; lissom check shows them all"] if len(faults) > _SHOWN else []
        raise ModelError("\n".join([*texts, *more]))
    return robot


def faults_of(path: str | os.PathLike[str]) -> tuple[Robot | None, list[Fault], list[Fault]]:
    """A robot file as far as it can be understood, all that is wrong with it, and what looks like a slip.

    Args:
        path: of the file.
    Raises:
        ModelError: the file is no YAML, and why. OSError: it cannot be read.
    """
    name, text = os.fspath(path), text_of(path)
    robot, faults = read(text, name)
    if robot is None or faults:
        return robot, faults, []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            robot.build()
        except ModelError as error:
            faults = [_fault(str(error), text, name)]
    doubts = (AccuracyWarning, PlausibilityWarning)
    return robot, faults, [_fault(str(w.message), text, name) for w in told if issubclass(w.category, doubts)]


def _fault(message: str, text: str, name: str) -> Fault:
    source = parse(text, name)
    keys = keys_of(message, source, source.data([]))
    return Fault(source.locate(keys)[0], message)
