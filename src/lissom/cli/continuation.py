"""Branches of static equilibria."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.cli.command import Command
from lissom.cli.common import (
    can_draw,
    count,
    keep_results,
    loaded,
    out_argument,
    positive,
    robot_argument,
    save_arrays,
    tips,
)
from lissom.cli.states import input_arguments, input_values

if TYPE_CHECKING:
    from lissom.model.model import Model


def _arguments(parser: argparse.ArgumentParser) -> None:
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
            _write(model, partial, arguments.out)
        raise
    print(f"{model.name}: {len(branch.factor)} equilibria, factor {branch.factor[0]:g} to {branch.factor[-1]:g}")
    for event in branch.events:
        print(f"{event.kind} at factor {event.factor:.8g}, {event.count} motion(s) change")
    print(f"{int(branch.stable.sum())} of them stable; ended by {branch.ended.replace('_', ' ')}")
    _write(model, branch, arguments.out)
    return 0


def _write(model: Model, branch: Any, out: Path) -> None:
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
    _arguments,
    _continuation,
)
