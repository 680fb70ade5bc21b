"""The command line: it parses arguments, calls the public API and prints results."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from lissom.cli.common import shown
from lissom.cli.computing import BENCH, KERNELS, SWEEP
from lissom.cli.files import CHECK, CONVERT, EXPORT, INFO, NEW
from lissom.cli.pictures import ANIMATE, RENDER, STUDIO, VIEW
from lissom.cli.simulate import DEMO, SIMULATE
from lissom.cli.statics import CONTINUATION, MODES, STATICS

# in the order of --help
COMMANDS = (
    NEW,
    CHECK,
    INFO,
    VIEW,
    STUDIO,
    SIMULATE,
    STATICS,
    MODES,
    CONTINUATION,
    RENDER,
    ANIMATE,
    SWEEP,
    EXPORT,
    CONVERT,
    DEMO,
    BENCH,
    KERNELS,
)

USAGE_ERROR = 2
NOT_CONVERGED = 3
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments after the program's name; None takes those of the process.
    Returns:
        0; 2 for a wrong argument or file; 3 if an iteration stopped before its tolerance; 130 on Ctrl-C.
    """
    from lissom.errors import AccuracyWarning, ConvergenceError, ModelError, PlausibilityWarning, ShapeError

    arguments = parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        warnings.simplefilter("always", PlausibilityWarning)
        warnings.showwarning = _show_warning
        try:
            return arguments.command(arguments)
        except ConvergenceError as error:
            print(f"error: {shown(error)}", file=sys.stderr)
            return NOT_CONVERGED
        except (ModelError, ShapeError, OSError) as error:
            print(f"error: {shown(error)}", file=sys.stderr)
            return USAGE_ERROR
        except MemoryError as error:
            print(f"error: there is not enough memory ({shown(error)})", file=sys.stderr)
            return USAGE_ERROR
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The parser of the arguments of all commands."""
    from lissom import __version__

    whole = argparse.ArgumentParser(
        prog="lissom", description="Mechanics of robots that are partly rigid and partly soft."
    )
    whole.add_argument("--version", action="version", version=f"lissom {__version__}")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        shown = {"epilog": f"example:\n  {command.example}", "formatter_class": argparse.RawDescriptionHelpFormatter}
        own = commands.add_parser(command.name, help=command.help, description=_sentence(command.help), **shown)
        command.arguments(own)
        own.set_defaults(command=command.run)
    return whole


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."


def _show_warning(message: Any, *_: Any) -> None:
    print(f"warning: {shown(message)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
