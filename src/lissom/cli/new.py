"""A new robot file from a few questions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lissom.cli.command import Command
from lissom.cli.common import positive

_JOINTS = {"fixed": "JointFixed", "hinge": "JointRevolute", "free": "JointFree"}


class _Question(NamedTuple):
    """A question for a value: name of the value, text of the question, default, and function that reads the answer."""

    name: str
    text: str
    default: str
    read: Callable[[str], Any]


def _name(text: str) -> str:
    if not text.replace(" ", "").replace("_", "").isalnum():
        raise argparse.ArgumentTypeError(f"must be of letters and digits (got {text})")
    return text


def _joint(text: str) -> str:
    if text not in _JOINTS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(_JOINTS)} (got {text})")
    return text


def _tendons(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 12:
        raise argparse.ArgumentTypeError(f"must be 0 to 12 (got {text})")
    return value


def _mass(text: str) -> float:
    return 0.0 if float(text) == 0.0 else positive(text)


_QUESTIONS = (
    _Question("name", "name of the robot", "arm", _name),
    _Question("length", "length of the soft rod [m]", "0.3", positive),
    _Question("base", "radius at its base [m]", "0.012", positive),
    _Question("tip", "radius at its tip [m]", "0.008", positive),
    _Question("young", "Young's modulus [Pa]: soft silicone 1e5, firm 1e6, rubber 1e7, steel 2e11", "5e5", positive),
    _Question("density", "density [kg/m³]: silicone 1070, steel 7850", "1070", positive),
    _Question("joint", "joint at its base: fixed, hinge (with a motor) or free", "fixed", _joint),
    _Question("tendons", "number of tendons around it", "3", _tendons),
    _Question("mass", "mass at its tip [kg]; 0 for none", "0", _mass),
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, nargs="?", default=Path("robot.yaml"), help="file to write (robot.yaml)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument("--defaults", action="store_true", help="ask nothing")


def _new(arguments: argparse.Namespace) -> int:
    from lissom.errors import ModelError
    from lissom.io.robot_file import load_robot
    from lissom.portable import write_whole

    path = arguments.robot
    if path.exists() and not arguments.force:
        raise ModelError(f"{path}: exists already; give another file, or overwrite it with --force")
    answers = {question.name: question.read(question.default) for question in _QUESTIONS}
    if not arguments.defaults:
        print("A soft rod with tendons, in SI units. An empty answer takes the value in brackets.")
        answers = {question.name: _asked(question) for question in _QUESTIONS}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(robot_text(answers).encode("utf-8")))
    load_robot(path)
    print(f"wrote {path}; open it in an editor, then try")
    for words in ("check {}", "info {}", "simulate {} --duration 2 --out results"):
        print(f"  lissom {words.format(path)}")
    return 0


def _asked(question: _Question) -> Any:
    """The answer to a question, which is repeated until the answer is valid; the default if the input ends."""
    while True:
        print(f"{question.text} [{question.default}]: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
        try:
            return question.read(line.strip() or question.default)
        except (argparse.ArgumentTypeError, ValueError) as error:
            print(f"  {error}" if isinstance(error, argparse.ArgumentTypeError) else "  must be a number")


def robot_text(answers: dict[str, Any]) -> str:
    """The robot file of the answers, with comments."""
    tip = _TIP.format(**answers) if answers["mass"] else ""
    drives = "".join(_tendon(k, answers) for k in range(answers["tendons"]))
    drives += _MOTOR if answers["joint"] == "hinge" else ""
    actuators = f"\nactuators:  # what drives it; each has one input, in this order\n{drives}" if drives else ""
    joint = f"{{type: {_JOINTS[answers['joint']]}{', axis: [0, 1, 0]' if answers['joint'] == 'hinge' else ''}}}"
    return _FILE.format(**answers | {"joint": joint, "tip_link": tip, "actuators": actuators})


def default_text() -> str:
    """The robot file of the default answers."""
    return robot_text({question.name: question.read(question.default) for question in _QUESTIONS})


def _tendon(k: int, answers: dict[str, Any]) -> str:
    from math import cos, pi, sin

    angle = 2 * pi * k / answers["tendons"]
    ends = [[0.8 * answers[end] * part(angle) for end in ("base", "tip")] for part in (sin, cos)]
    y, z = (f"{near:.6g} + {far - near:.6g}*s".replace("+ -", "- ") for near, far in ends)
    return f'  - {{type: Tendon, name: t{k + 1}, link: rod, offset: {{expression: ["{y}", "{z}"]}}}}\n'


_FILE = """\
# A robot for lissom. Units are SI: m, kg, s, N, Pa, rad. Check it with `lissom check`.
name: {name}
gravity: [0, 0, -9.81]  # in the world [m/s²]

links:  # each is a joint and the body on it
  - name: rod
    # parent: another link; without it the parent is the world
    joint: {joint}
    body:
      type: Rod  # its axis is x; y and z lie in the cross-section
      length: {length:g}  # [m]
      section: {{type: SectionCircle, radius: [{base:g}, {tip:g}]}}  # at the base and at the tip [m]
      material: {{young: {young:g}, poisson: 0.5, density: {density:g}, damping_time: 0.02}}  # [Pa], [-], [kg/m³], [s]
      basis: {{type: BasisLegendre, torsion: 1, bending_y: 3, bending_z: 3, elongation: 0}}  # orders of the strains
{tip_link}{actuators}
frames:  # places whose poses are of interest; s runs from 0 (base) to 1 (tip)
  - {{name: tip, link: rod, s: 1}}
"""
_TIP = """\
  - name: load  # held by the tip of the rod
    parent: rod
    body: {{type: RigidBody, mass: {mass:g}}}  # [kg]
"""
_MOTOR = "  - {type: JointActuator, name: motor, link: rod}  # torque [N·m]\n"

NEW = Command(
    "new",
    "ask a few questions and write a robot file with comments",
    "lissom new arm.yaml",
    _arguments,
    _new,
)
