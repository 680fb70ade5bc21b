"""All errors and warnings of robot files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from lissom.cli.command import Command
from lissom.cli.common import shown


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robots", type=Path, nargs="+", metavar="ROBOT", help="robot files (YAML)")
    parser.add_argument("--strict", action="store_true", help="return 2 for warnings too")
    parser.add_argument(
        "--accuracy", action="store_true", help="also find the equilibrium without inputs, and its accuracy"
    )


def _check(arguments: argparse.Namespace) -> int:
    from lissom.io.robot_file import faults_of

    wrong = 0
    for path in arguments.robots:
        robot, faults, doubts = faults_of(path)
        for fault in faults:
            print(f"{shown(path)}, line {fault.line}: {shown(fault.text)}", file=sys.stderr)
        for doubt in doubts:
            print(f"{shown(path)}, line {doubt.line}: warning: {shown(doubt.text)}", file=sys.stderr)
        wrong += bool(faults) or (arguments.strict and bool(doubts))
        if robot is not None and not faults:
            warnings = f", {_counted(len(doubts), 'warning')}" if doubts else ""
            print(f"{shown(path)}: OK{warnings}; {robot!r}")
            if arguments.accuracy:
                _show_accuracy(robot)
        else:
            print(f"{shown(path)}: {_counted(len(faults), 'error')}")
    return 2 if wrong else 0


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _show_accuracy(robot: Any) -> None:
    """Errors by points and bases of the equilibrium without inputs, a line for each link, and the cure."""
    from lissom.statics.equilibrium import solve_statics

    found = solve_statics(robot.build()).accuracy
    for name, points, basis in zip(found.links, found.points, found.basis):
        by_basis = "not estimated" if name in found.not_estimated else f"{basis:.1e} m"
        print(f"  {name}: at rest off by {points:.1e} m by its points, {by_basis} by its basis")
    if found.cure:
        print(f"  more exact: {found.cure}")


CHECK = Command(
    "check",
    "list all errors of robot files, with cures",
    "lissom check examples/robots/cdm.yaml",
    _arguments,
    _check,
)
