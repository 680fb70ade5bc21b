"""What a command of the command line is."""

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
        arguments: adds what the command takes to its parser.
        run: does it, and returns the status of the process.
    """

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
