"""Static equilibria."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lissom.cli.command import Command
from lissom.cli.common import can_draw, loaded, say_tips

if TYPE_CHECKING:
    import numpy as np


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, help="robot file (YAML)")
    values = parser.add_mutually_exclusive_group()
    values.add_argument("--inputs-values", metavar="A,B,C", help="all inputs in their order")
    values.add_argument("--inputs", nargs="+", metavar="NAME=VALUE", help="some inputs by name; the others are zero")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results")


def _statics(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls

    model = loaded(arguments.robot)[1]
    u = _input_values(arguments, model.inputs.names)
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = ls.solve_statics(model, u=u)
    print(f"{model.name}: {model.nv} degrees of freedom, {found.iterations} iterations, residual {found.residual:.2e}")
    if found.v.any():
        print("relative to the steady motion that its prescribed joints have at t = 0")
    kind = "stable" if found.is_stable else f"unstable, {found.unstable_count} motion(s) grow"
    print(f"{kind}, least stiffness {found.least_stiffness:.3g} J")
    for name, value in zip(model.inputs.names, u):
        print(f"{name} = {value:g}")
    say_tips(model, found.q, print)
    path = arguments.out / "equilibrium.npz"
    np.savez(path, q=found.q, u=found.u, multipliers=found.multipliers, residual=found.residual)
    print(f"wrote {path}")
    if can_draw("pyvista", "render", print):
        ls.render(model, found.q, arguments.out / "shapes.png")
        print(f"wrote {arguments.out / 'shapes.png'}")
    return 0


def _input_values(arguments: argparse.Namespace, names: Sequence[str]) -> np.ndarray:
    """u from --inputs-values or --inputs; zero where neither says anything."""
    import numpy as np

    from lissom.errors import ModelError

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
            raise ModelError(f"--inputs: must be name=value with one of the inputs {', '.join(names)} (got {name!r})")
        try:
            u[names.index(name)] = float(cell)
        except ValueError:
            raise ModelError(f"input {name!r}: must be a number (got {cell!r})") from None
        if not np.isfinite(u[names.index(name)]):
            raise ModelError(f"input {name!r}: must be finite (got {cell!r})")
    return u


STATICS = Command(
    "statics",
    "find a static equilibrium",
    "lissom statics examples/robots/cdm.yaml --inputs t1=5 --out results",
    _arguments,
    _statics,
)
