"""Natural frequencies."""

from __future__ import annotations

import argparse

from lissom.cli.command import Command
from lissom.cli.common import count, keep_results, loaded, out_argument, robot_argument, save_arrays
from lissom.cli.states import from_argument, input_arguments, input_values, state_of


def _arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    input_arguments(parser)
    from_argument(parser)
    parser.add_argument("--count", type=count, metavar="N", default=10, help="modes to show (10)")
    parser.add_argument("--damped", action="store_true", help="include dissipation, and show damping ratios")
    out_argument(parser, "folder for modes.npz, of all modes with their shapes", required=False)


def _modes(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls

    if arguments.out is not None:
        keep_results(arguments, arguments.out / "modes.npz")
    _, model = loaded(arguments.robot)
    if arguments.start is not None:
        state = state_of(arguments.start, model)
        q, u = state.q, state.u
    else:
        u = input_values(arguments, model.inputs.names)
        found = ls.solve_statics(model, u=u, progress=True)
        q = found.q
        print(f"about the equilibrium of statics: {'stable' if found.is_stable else 'unstable'}")
    found = ls.modes(model, q, u, damped=arguments.damped)
    print(f"{'mode':>4} {'[Hz]':>12} {'[rad/s]':>12}" + ("      damping [-]" if arguments.damped else ""))
    for k, frequency in enumerate(found.frequencies[: arguments.count]):
        ratio = f" {found.damping_ratios[k]:16.4g}" if arguments.damped else ""
        print(f"{k + 1:4d} {frequency / (2 * np.pi):12.6g} {frequency:12.6g}{ratio}")
    if len(found.frequencies) > arguments.count:
        print(f"and {len(found.frequencies) - arguments.count} more")
    if found.frequencies.min(initial=0.0) < 0.0:
        print("negative: the equilibrium is unstable, and these motions grow")
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        rest = {name: getattr(found, name) for name in ("frequencies", "shapes", "exponents")}
        save_arrays(arguments.out / "modes.npz", q=q, u=u, **rest)
    return 0


MODES = Command(
    "modes",
    "natural frequencies about an equilibrium",
    "lissom modes examples/robots/cdm.yaml --count 5",
    _arguments,
    _modes,
)
