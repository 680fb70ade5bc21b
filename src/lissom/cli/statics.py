"""Commands about equilibria: find one, its natural frequencies, and the branch that it belongs to."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.cli.common import (
    Command,
    can_draw,
    count,
    from_argument,
    input_arguments,
    input_values,
    keep_results,
    loaded,
    out_argument,
    positive,
    robot_argument,
    save_arrays,
    say_tips,
    state_of,
    tips,
)

if TYPE_CHECKING:
    from lissom.model.model import Model


# -- statics ----------------------------------------------------------------------------------------------------------


def _statics_arguments(parser: argparse.ArgumentParser) -> None:
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
    _statics_arguments,
    _statics,
)


# -- modes ------------------------------------------------------------------------------------------------------------


def _modes_arguments(parser: argparse.ArgumentParser) -> None:
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
        print("negative: these modes are unstable, and so is the equilibrium")
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        rest = {name: getattr(found, name) for name in ("frequencies", "shapes", "exponents")}
        save_arrays(arguments.out / "modes.npz", q=q, u=u, **rest)
    return 0


MODES = Command(
    "modes",
    "natural frequencies about an equilibrium",
    "lissom modes examples/robots/cdm.yaml --count 5",
    _modes_arguments,
    _modes,
)


# -- continuation -----------------------------------------------------------------------------------------------------


def _continuation_arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    input_arguments(parser)
    parser.add_argument("--range", type=float, nargs=2, default=(0.0, 1.0), metavar=("LOW", "HIGH"),
                        help="of the factor of gravity, loads and inputs (0 1)")  # fmt: skip
    parser.add_argument("--step", type=positive, default=0.1, help="longest step (0.1)")
    parser.add_argument("--points", type=count, default=500, metavar="N", help="at most, on the branch (500)")
    out_argument(parser, "folder for the results")


def _continuation(arguments: argparse.Namespace) -> int:
    import lissom as ls

    keep_results(arguments, arguments.out / "branch.npz", arguments.out / "branch.png")
    _, model = loaded(arguments.robot)
    u, limits = input_values(arguments, model.inputs.names), tuple(arguments.range)
    arguments.out.mkdir(parents=True, exist_ok=True)
    given = {"u": u, "factor_range": limits, "step": arguments.step, "max_points": arguments.points}
    try:
        branch = ls.continuation(model, **given, progress=True)
    except (ls.ConvergenceError, KeyboardInterrupt) as stop:
        if (partial := getattr(stop, "partial", None)) is not None and len(partial.factor):
            print(f"{model.name}: stopped at factor {partial.factor[-1]:g}, {len(partial.factor)} equilibria so far")
            _write_branch(model, partial, arguments.out)
        raise
    print(f"{model.name}: {len(branch.factor)} equilibria, factor {branch.factor[0]:g} to {branch.factor[-1]:g}")
    for event in branch.events:
        print(f"{event.kind} at factor {event.factor:.8g}, {event.count} motion(s) change")
    print(f"{int(branch.stable.sum())} of them stable; ended by {branch.ended.replace('_', ' ')}")
    _write_branch(model, branch, arguments.out)
    return 0


def _write_branch(model: Model, branch: Any, out: Path) -> None:
    """Write the branch as arrays, and a picture of the tips along it."""
    import lissom as ls

    save_arrays(out / "branch.npz", q=branch.q, factor=branch.factor, stable=branch.stable)
    if can_draw("matplotlib", "view", print):
        from matplotlib.figure import Figure

        from lissom.portable import write_whole

        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        axes = figure.subplots()
        for name in tips(model):
            places = ls.frame_pose(model, branch.q, name)[:, :3, 3]
            for k, axis in enumerate("xyz"):
                axes.plot(branch.factor, places[:, k], label=f"{axis} of {name}")
        axes.set(xlabel="load factor [-]", ylabel="tip [m]")
        axes.legend()
        write_whole(out / "branch.png", lambda file: figure.savefig(file, format="png", dpi=150))
        print(f"wrote {out / 'branch.png'}")


CONTINUATION = Command(
    "continuation",
    "follow equilibria while gravity, loads and inputs grow, through limit points and bifurcations",
    "lissom continuation examples/robots/cdm.yaml --inputs t1=20 --out results",
    _continuation_arguments,
    _continuation,
)
