"""Static equilibria."""

from __future__ import annotations

import argparse

from lissom.cli.command import Command
from lissom.cli.common import can_draw, keep_results, loaded, out_argument, robot_argument, save_arrays, say_tips
from lissom.cli.states import input_arguments, input_values


def _arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    input_arguments(parser)
    out_argument(parser, "folder for the results")


def _statics(arguments: argparse.Namespace) -> int:
    import lissom as ls

    keep_results(arguments, arguments.out / "equilibrium.npz", arguments.out / "shapes.png")
    model = loaded(arguments.robot)[1]
    u = input_values(arguments, model.inputs.names)
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = ls.solve_statics(model, u=u, progress=True)
    print(f"{model.name}: {model.nv} degrees of freedom, {found.iterations} iterations, residual {found.residual:.2e}")
    if found.v.any():
        print("relative to the steady motion that its prescribed joints have at t = 0")
    kind = "stable" if found.is_stable else f"unstable, {found.unstable_count} motion(s) grow"
    print(f"{kind}, least stiffness {found.least_stiffness:.3g} J")
    for name, value in zip(model.inputs.names, u):
        print(f"{name} = {value:g}")
    say_tips(model, found.q, print)
    rest = {"multipliers": found.multipliers, "residual": found.residual}
    save_arrays(arguments.out / "equilibrium.npz", q=found.q, v=found.v, u=found.u, **rest)
    if can_draw("pyvista", "render", print):
        ls.render(model, found.q, arguments.out / "shapes.png")
        print(f"wrote {arguments.out / 'shapes.png'}")
    return 0


STATICS = Command(
    "statics",
    "find a static equilibrium",
    "lissom statics examples/robots/cdm.yaml --inputs t1=5 --out results",
    _arguments,
    _statics,
)
