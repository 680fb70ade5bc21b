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
    parser.add_argument("robot", type=Path, help="robot file (YAML, URDF or MJCF)")


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
    """The robot of a YAML, URDF or MJCF file and its model."""
    from lissom.io.any_file import load_any

    robot = load_any(path)
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


def start_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the initial state: a file with it, or its name in the robot file."""
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from", type=Path, metavar="NPZ", dest="start",
                       help="begin at an equilibrium.npz of statics, or at the end of a trajectory.npz")  # fmt: skip
    start.add_argument("--state", metavar="NAME", help="begin at a state that the robot file names")


def start_of(arguments: argparse.Namespace, model: Model, say: Say) -> State | None:
    """The initial state that --from or --state gives, with closed loops; None without them."""
    if arguments.state is not None:
        return closed_state(model, State(*model.state(arguments.state)), say)
    return None if arguments.start is None else closed_state(model, state_of(arguments.start, model), say)


def start_at_rest(model: Model, say: Say) -> State:
    """`start_configuration` at rest without inputs, with closed loops."""
    import numpy as np

    import lissom as ls

    return closed_state(model, State(ls.start_configuration(model), np.zeros(model.nv), np.zeros(model.nu)), say)


def closed_state(model: Model, state: State, say: Say) -> State:
    """A state with closed loops. If a loop is open, `assemble` closes it, and a line says how far coordinates moved."""
    import numpy as np

    import lissom as ls
    from lissom.dynamics.assembly import open_loops

    if not model.n_rows or not open_loops(model, state.q[None])[0]:
        return state
    q = ls.assemble(model, state.q)
    moved = np.abs(ls.difference(model, state.q, q))
    k = int((moved / model.dofs.scale).argmax())
    link = model.links.names[int(np.searchsorted(model.links.v_start, k, side="right")) - 1]
    say(f"loops were open at the start and are closed now: a coordinate of {link!r} moved by {moved[k]:.4g}, the most")
    return state._replace(q=q)


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


def input_values(arguments: argparse.Namespace, names: Sequence[str], start: State | None = None) -> np.ndarray:
    """u (nu,) from --inputs-values or --inputs; by default those of the start, or zero."""
    import numpy as np

    if start is not None and arguments.inputs_values is None and not arguments.inputs:
        return start.u
    u = np.zeros(len(names))
    if arguments.inputs_values is not None:
        cells = [cell.strip() for cell in arguments.inputs_values.split(",")]
        if len(cells) != len(names):
            raise ModelError(f"--inputs-values: must hold {len(names)} numbers ({', '.join(names)}) (got {len(cells)})")
        pairs = list(zip(names, cells, strict=True))
    else:
        pairs = [tuple(item.rpartition("=")[::2]) for item in arguments.inputs or []]
    for k, value in named_values(pairs, names, "--inputs", ("input", "inputs")).items():
        u[k] = value
    return u


def named_values(pairs: Sequence[Any], names: Sequence[str], option: str, what: tuple[str, str]) -> dict[int, float]:
    """Numbers from pairs (name, text), by the index of the name.

    Args:
        option: the option that gives them. what: the words of messages for a number, and for what names
            stand for.
    """
    import numpy as np

    from lissom.robot.checks import nearest

    out: dict[int, float] = {}
    for name, cell in pairs:
        if name not in names:
            rule = f"{option}: must be name=value with one of the {what[1]} {', '.join(names)} (got {name!r})"
            raise ModelError(rule + nearest(name, names))
        try:
            out[names.index(name)] = float(cell)
        except ValueError:
            raise ModelError(f"{what[0]} {name!r}: must be a number (got {cell!r})") from None
        if not np.isfinite(out[names.index(name)]):
            raise ModelError(f"{what[0]} {name!r}: must be finite (got {cell!r})")
    return out


def velocity_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for initial velocities of joints."""
    parser.add_argument("--velocity", nargs="+", metavar="LINK=VALUE",
                        help="initial velocities of joints [rad/s, m/s]; LINK[k] for joints of several")  # fmt: skip


def initial_velocity(arguments: argparse.Namespace, model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v (nv,) with the velocities of --velocity. Loops move the other coordinates along, with the least kinetic energy
    of the change.

    Raises:
        ModelError: a name or a value is wrong, or loops or prescribed motions do not allow the velocities.
    """
    import numpy as np

    import lissom as ls
    from lissom.dynamics.assembly import prescribed_state

    links = zip(model.links.names, model.links.joint, model.links.v_start.tolist())
    sizes = [(name, first, joint.nv) for name, joint, first in links if joint.nv]
    at = {name if n == 1 else f"{name}[{k}]": first + k for name, first, n in sizes for k in range(n)}
    names, pairs = list(at), [tuple(item.rpartition("=")[::2]) for item in arguments.velocity]
    given = {at[names[k]]: x for k, x in named_values(pairs, names, "--velocity", ("velocity", "joints")).items()}
    v = prescribed_state(model, 0.0, q, v)[1].copy()
    for k, x in given.items():
        if k in model.prescribed.dof:
            name = names[list(at.values()).index(k)]
            raise ModelError(f"velocity {name!r}: must be left out, since the joint has a prescribed motion")
        v[k] = x
    if not model.n_rows:
        return v
    free = np.setdiff1d(np.arange(model.nv), [*given, *model.prescribed.dof.tolist()])
    A, M = ls.constraint_jacobian(model, q), ls.mass_matrix(model, q)[np.ix_(free, free)]
    size, V = np.linalg.eigh(M)  # a coordinate without mass moves as little as the loops allow
    lighter = V / np.sqrt(np.maximum(size, 1e-12 * max(float(size.max(initial=0.0)), 1e-300)))
    v[free] -= lighter @ np.linalg.lstsq(A[:, free] @ lighter, A @ v, rcond=1e-9)[0]
    if np.abs(A @ v).max() > 1e-8 * np.abs(A * v).max():
        raise ModelError(f"--velocity: must be velocities that the loops allow (got {' '.join(arguments.velocity)})")
    return v
