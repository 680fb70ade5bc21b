"""Everything that is wrong with robot files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lissom.cli.command import Command
from lissom.cli.common import shown


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robots", type=Path, nargs="+", metavar="ROBOT", help="robot files (YAML)")
    parser.add_argument("--strict", action="store_true", help="return 2 where there are warnings too")


def _check(arguments: argparse.Namespace) -> int:
    from lissom.io.robot_file import faults_of

    wrong = 0
    for path in arguments.robots:
        robot, faults, doubts = faults_of(path)
        for fault in faults:
            print(f"{path}, line {fault.line}: {shown(fault.text)}", file=sys.stderr)
        for doubt in doubts:
            print(f"{path}, line {doubt.line}: warning: {shown(doubt.text)}", file=sys.stderr)
        wrong += bool(faults) or (arguments.strict and bool(doubts))
        if robot is not None and not faults:
            print(f"{path}: right{', but see the warnings' if doubts else ''}; {robot!r}")
        else:
            print(f"{path}: {len(faults)} to mend")
    return 2 if wrong else 0


CHECK = Command(
    "check",
    "say all that is wrong with robot files, and what mends it",
    "lissom check examples/robots/cdm.yaml",
    _arguments,
    _check,
)
