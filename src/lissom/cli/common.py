"""A command, and what commands share: kinds of arguments, loading of robots, inputs and states, results."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

from lissom.errors import ModelError

if TYPE_CHECKING:
    import numpy as np

    from lissom.model.model import Model
    from lissom.robot.robot import Robot


@final
@dataclass(frozen=True)
class Command:
    """One command of `lissom`.

    Args:
        name: the word after `lissom`.
        help: one line of text.
        example: a command line that works, shown by --help.
        arguments: function that adds the arguments of the command to its parser.
        run: function that runs the command and returns the exit status of the process.
    """

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


_MOST = 10_000_000  # largest count that an argument may have
Say = Callable[[str], None]  # prints a line, or with --quiet does not


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
    """An integer from 2 to the largest number that fits into memory."""
    value = int(text)
    if not 2 <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"must be from 2 to {_MOST:,} (got {text[:40]})")
    return value


def shown(text: Any) -> str:
    """A text with its control characters escaped, so that the text of a file cannot control the terminal. Line breaks
    are kept."""
    lines = str(text).split("\n")
    return "\n".join("".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line) for line in lines)


def out_argument(parser: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    """Add the arguments --out for results and --force to replace existing ones."""
    parser.add_argument("--out", type=Path, required=required, metavar="DIR", help=what)
    force_argument(parser)


def force_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that allows existing files to be replaced."""
    parser.add_argument("--force", action="store_true", help="overwrite existing results")


def keep_results(arguments: argparse.Namespace, *paths: Path) -> None:
    """Raise a ModelError, before anything is computed, if a file of results would be overwritten."""
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
    """Whether a plotting package is installed, for PyVista also OpenGL. If it is missing, print what to install."""
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


class State(NamedTuple):
    """The last state in a file of results: q (nq,), v (nv,), u (nu,)."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray


def input_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for values of the inputs."""
    values = parser.add_mutually_exclusive_group()
    values.add_argument("--inputs-values", metavar="A,B,C", help="all inputs in their order")
    values.add_argument("--inputs", nargs="+", metavar="NAME=VALUE", help="some inputs by name; the others are zero")


def from_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a file with the initial state."""
    parser.add_argument("--from", type=Path, metavar="NPZ", dest="start",
                        help="begin at an equilibrium.npz of statics, or at the end of a trajectory.npz")  # fmt: skip


def state_of(path: Path, model: Model) -> State:
    """The state in a file of results.

    Raises:
        ModelError: the file holds no state, or the sizes of its state are not those of the robot.
    """
    import numpy as np

    path.open("rb").close()  # raises the errors of the file itself
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: np.asarray(file[name]) for name in ("t", "q", "v", "u") if name in file}
    except Exception as error:  # NumPy and zipfile raise errors of many kinds for a damaged file
        raise ModelError(f"{path}: is no file of results ({type(error).__name__}: {error})") from error
    if "q" not in found or "u" not in found:
        raise ModelError(f"{path}: must hold q and u, as equilibrium.npz and trajectory.npz do (got {sorted(found)})")
    if "t" in found:
        rows = [len(x) if x.ndim else 0 for x in found.values()]
        if min(rows) < 1:
            raise ModelError(f"{path}: must hold a state (got {dict(zip(found, rows))} of them)")
        found = {name: found[name][-1] for name in ("q", "v", "u")}
    state = State(found["q"], found.get("v", np.zeros(model.nv)), found["u"])
    for name, size in (("q", model.nq), ("v", model.nv), ("u", model.nu)):
        if getattr(state, name).dtype.kind not in "fiu" or not np.isfinite(getattr(state, name)).all():
            raise ModelError(f"{path}: {name} must hold finite numbers (got {getattr(state, name)})")
        if getattr(state, name).shape != (size,):
            shape = getattr(state, name).shape
            raise ModelError(f"{path}: {name} must have shape ({size},), as of robot {model.name!r} (got {shape})")
    return state


def input_values(arguments: argparse.Namespace, names: Sequence[str]) -> np.ndarray:
    """u (nu,) from --inputs-values or --inputs; zero by default."""
    import numpy as np

    from lissom.robot.checks import nearest

    u = np.zeros(len(names))
    if arguments.inputs_values is not None:
        cells = [cell.strip() for cell in arguments.inputs_values.split(",")]
        if len(cells) != len(names):
            raise ModelError(f"--inputs-values: must hold {len(names)} numbers ({', '.join(names)}) (got {len(cells)})")
        pairs = list(zip(names, cells, strict=True))
    else:
        pairs = [tuple(item.rpartition("=")[::2]) for item in arguments.inputs or []]
    for name, cell in pairs:
        if name not in names:
            rule = f"--inputs: must be name=value with one of the inputs {', '.join(names)} (got {name!r})"
            raise ModelError(rule + nearest(name, names))
        try:
            u[names.index(name)] = float(cell)
        except ValueError:
            raise ModelError(f"input {name!r}: must be a number (got {cell!r})") from None
        if not np.isfinite(u[names.index(name)]):
            raise ModelError(f"input {name!r}: must be finite (got {cell!r})")
    return u
