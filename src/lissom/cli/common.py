"""Common parts of several commands: types of arguments, loading, the output of tips, tests for plotting packages."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.errors import ModelError

if TYPE_CHECKING:
    import numpy as np

    from lissom.model.model import Model
    from lissom.robot.robot import Robot

_MOST = 10_000_000
Say = Callable[[str], None]


def robot_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument of the robot file."""
    parser.add_argument("robot", type=Path, help="robot file (YAML)")


def positive(text: str) -> float:
    """A finite number > 0."""
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be > 0 (got {text})")
    return value


def count(text: str) -> int:
    """An integer > 1, up to a number that fits into memory."""
    value = int(text)
    if not 2 <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"must be from 2 to {_MOST:,} (got {text[:40]})")
    return value


def shown(text: Any) -> str:
    """A text with escaped control characters, so that a file cannot control a terminal. Line breaks are kept."""
    lines = str(text).split("\n")
    return "\n".join("".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line) for line in lines)


def out_argument(parser: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    """Add the arguments --out for results and --force to replace existing ones."""
    parser.add_argument("--out", type=Path, required=required, metavar="DIR", help=what)
    force_argument(parser)


def force_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that allows to replace files."""
    parser.add_argument("--force", action="store_true", help="overwrite existing results")


def keep_results(arguments: argparse.Namespace, *paths: Path) -> None:
    """Raise ModelError, before anything is computed, if a file of results would be overwritten."""
    from lissom.errors import ModelError

    for path in paths:
        if path.exists() and not arguments.force:
            raise ModelError(f"{path}: exists already; give another --out, or overwrite it with --force")


def save_arrays(path: Path, **arrays: Any) -> None:
    """Write an .npz file completely or not at all, and print its name."""
    import numpy as np

    from lissom.portable import write_whole

    write_whole(path, lambda file: np.savez(file, **arrays))
    print(f"wrote {path}")


def loaded(path: Path) -> tuple[Robot, Model]:
    """The robot of a file and its model."""
    import lissom as ls

    robot = ls.load_robot(path)
    return robot, robot.build()


def tips(model: Model) -> list[str]:
    """Names of the links that carry no other link."""
    carriers = set(model.links.parent.tolist())
    return [name for k, name in enumerate(model.links.names) if k not in carriers]


def say_tips(model: Model, q: np.ndarray, say: Say) -> None:
    """Print the positions of the tips."""
    import lissom as ls

    for name in tips(model):
        x, y, z = ls.frame_pose(model, q, name, s=1.0)[:3, 3]
        say(f"tip of {name}: {x:.6g}, {y:.6g}, {z:.6g} m")


def can_draw(package: str, extra: str, say: Say) -> bool:
    """Whether a plotting package is installed, for PyVista with OpenGL; otherwise print what to install."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        say(f"not everything is drawn: {package} is not installed (pip install 'lissom[{extra}]')")
        return False
    if package == "pyvista":
        from lissom.viewing.canvas import check_graphics

        try:
            check_graphics()
        except ModelError as error:
            say(f"not everything is drawn: {error}")
            return False
    return True
