"""Inputs and states as arguments of commands: by name, by order, from files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from lissom.model.model import Model


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
        ModelError: the file holds no state, or that of a robot of other sizes.
    """
    import numpy as np

    from lissom.errors import ModelError

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

    from lissom.errors import ModelError
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
