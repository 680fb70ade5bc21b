"""Commands about equilibria: find one, its natural frequencies, and the branch that it belongs to."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lissom.cli.common import (
    Command,
    can_draw,
    count,
    input_arguments,
    input_values,
    keep_results,
    loaded,
    out_argument,
    positive,
    robot_argument,
    save_arrays,
    say_tips,
    start_arguments,
    start_of,
    tips,
)

if TYPE_CHECKING:
    import numpy as np

    from lissom.model.model import Model
    from lissom.statics.equilibrium import Equilibrium

_DECIMALS = 12  # of printed reactions [N, N·m, m]
_REACTION = {"point": "m", "force": "N", "moment": "N·m"}  # columns of reactions.csv, with units


# -- statics ----------------------------------------------------------------------------------------------------------


def _statics_arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    input_arguments(parser)
    start_arguments(parser)
    out_argument(parser, "folder for the results")


def _statics(arguments: argparse.Namespace) -> int:
    import lissom as ls

    results = ("equilibrium.npz", "reactions.csv", "shapes.png")
    keep_results(arguments, *(arguments.out / name for name in results))
    model = loaded(arguments.robot)[1]
    start = start_of(arguments, model, print)
    u = input_values(arguments, model.inputs.names, start)
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = ls.solve_statics(model, u, None if start is None else start.q, progress=True)
    print(f"{model.name}: {model.nv} degrees of freedom, {found.iterations} iterations, residual {found.residual:.2e}")
    if found.v.any():
        print("relative to the steady motion that its prescribed joints have at t = 0")
    kind = "stable" if found.is_stable else f"unstable, {found.unstable_count} motion(s) grow"
    print(f"{kind}, least stiffness {found.least_stiffness:.3g} J")
    for name, value in zip(model.inputs.names, u):
        print(f"{name} = {value:g}")
    say_tips(model, found.q, print)
    say_reactions(model, found)
    rest = {"multipliers": found.multipliers, "residual": found.residual}
    save_arrays(arguments.out / "equilibrium.npz", q=found.q, v=found.v, u=found.u, **rest)
    write_reactions(arguments.out / "reactions.csv", reactions(model, found))
    if can_draw("pyvista", "render", print):
        ls.render(model, found.q, arguments.out / "shapes.png")
        print(f"wrote {arguments.out / 'shapes.png'}")
    return 0


class Reaction(NamedTuple):
    """What a joint or a loop transmits, in world axes.

    Fields:
        kind: "joint" or "loop". name: of the link of the joint, or of the loop. on, by: names of the link on which the
        wrench acts and of the one that exerts it; empty for the world.
        point, force, moment: the place (3,) [m], and the force (3,) [N] and the moment about this place (3,) [N·m].
    """

    kind: str
    name: str
    on: str
    by: str
    point: np.ndarray
    force: np.ndarray
    moment: np.ndarray


def reactions(model: Model, found: Equilibrium) -> list[Reaction]:
    """The wrench on each link by the joint that carries it, at the joint's frame, then that on link a of each loop and
    constraint, at its frame on link b."""
    import numpy as np

    import lissom as ls
    from lissom.robot.robot import PARTS

    out, names = [], model.links.names
    for name, parent in zip(names, model.links.parent.tolist()):
        g = ls.frame_pose(model, found.q, name, s=0.0)
        W = ls.joint_wrench(model, found.q, found.v, None, found.u, name, multipliers=found.multipliers)
        carrier = names[parent] if parent >= 0 else ""
        out.append(Reaction("joint", name, name, carrier, g[:3, 3], -g[:3, :3] @ W[3:], -g[:3, :3] @ W[:3]))
    poses = np.concatenate([ls.forward_kinematics(model, found.q), np.eye(4)[None]])  # node −1 is the world
    owners = [*(names[k] for k in model.nodes.link), ""]
    for k, W in enumerate(ls.loop_wrenches(model, found.q, found.multipliers) if model.loops.names else ()):
        a, b = model.loops.node[k].tolist()
        g = poses[b] @ model.loops.placement[k, 1]
        ends = owners[a], owners[b]
        kind = PARTS[model.loops.kinds[k]].word
        out.append(Reaction(kind, model.loops.names[k], *ends, g[:3, 3], g[:3, :3] @ W[3:], g[:3, :3] @ W[:3]))
    return out


def say_reactions(model: Model, found: Equilibrium) -> None:
    """Print the reactions of the world, those in loops, and the forces that hold prescribed joints."""
    for one in reactions(model, found):
        if one.kind == "joint" and one.by:
            continue
        where = f"{one.by or 'the world'} on {one.on or 'the world'}"
        what = f"reaction of {where}" if one.kind == "joint" else f"{one.kind} {one.name}: {where}"
        point, force, moment = map(_three, (one.point, one.force, one.moment))
        print(f"{what}: force {force} N, moment {moment} N·m, at {point} m")
    for name, force in zip(model.prescribed.names, found.multipliers):
        print(f"motion {name}: {force:.6g} N·m or N")


def _three(v: np.ndarray) -> str:
    """Text of a vector (3,); rounding errors of the force of a robot become zero."""
    return ", ".join(f"{x:.6g}" for x in v.round(_DECIMALS) + 0.0)


def write_reactions(path: Path, rows: Sequence[Reaction]) -> None:
    """Write the reactions of all joints and loops as a table, in world axes."""
    from lissom.portable import write_whole

    axes = [f"{name}.{axis} [{unit}]" for name, unit in _REACTION.items() for axis in "xyz"]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["kind", "name", "on", "by", *axes])
    for row in rows:
        numbers = [f"{x:.17g}" for part in row[4:] for x in part]
        writer.writerow([row.kind, row.name, row.on or "world", row.by or "world", *numbers])
    write_whole(path, lambda file: file.write(table.getvalue().encode()))
    print(f"wrote {path}")


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
    start_arguments(parser)
    parser.add_argument("--count", type=count, metavar="N", default=10, help="modes to show (10)")
    parser.add_argument("--damped", action="store_true", help="include dissipation, and show damping ratios")
    out_argument(parser, "folder for modes.npz, of all modes with their shapes", required=False)


def _modes(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls

    if arguments.out is not None:
        keep_results(arguments, arguments.out / "modes.npz")
    _, model = loaded(arguments.robot)
    start = start_of(arguments, model, print)
    if start is not None and arguments.state is None:
        q, u = start.q, start.u
    else:
        u = input_values(arguments, model.inputs.names, start)
        found = ls.solve_statics(model, u, None if start is None else start.q, progress=True)
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
