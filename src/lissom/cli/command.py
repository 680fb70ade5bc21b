"""A command of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Command:
    """One word after `lissom`.

    Args:
        name: the word. help: one line. example: a command that works, shown by --help.
        arguments: adds the arguments of the command to its parser.
        run: runs the command and returns the status of the process.
    """

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
