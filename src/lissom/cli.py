"""The command line: parses, calls the public API, prints."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from lissom.model.model import Model
    from lissom.robot.robot import Robot

USAGE_ERROR = 2
NOT_CONVERGED = 3
INTERRUPTED = 130
_STREAM = "motion"  # the folder within DIR to which motions stream
_SHAPES = 16  # shown of a motion
_FAILURES = 10  # shown of a sweep
_PATIENCE = 5.0  # [s] without a word: kernels that are cached load sooner


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments after the program's name; None takes those of the process.
    Returns:
        0; 2 where an argument or a file is wrong; 3 where an iteration stopped before its tolerance; 130 on Ctrl-C.
    """
    from lissom.errors import AccuracyWarning, ConvergenceError, ModelError, PlausibilityWarning, ShapeError

    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        warnings.simplefilter("always", PlausibilityWarning)
        warnings.showwarning = _show_warning
        try:
            return arguments.command(arguments)
        except ConvergenceError as error:
            print(f"error: {error}", file=sys.stderr)
            return NOT_CONVERGED
        except (ModelError, ShapeError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE_ERROR
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    from lissom import __version__

    parser = argparse.ArgumentParser(
        prog="lissom", description="Mechanics of robots that are partly rigid and partly soft."
    )
    parser.add_argument("--version", action="version", version=f"lissom {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    info = commands.add_parser("info", help="say what a robot file holds")
    info.add_argument("robot", type=Path, help="robot file (YAML)")
    info.set_defaults(command=_info)

    simulate = commands.add_parser("simulate", help="follow a robot in time from rest at its neutral configuration")
    simulate.add_argument("robot", type=Path, nargs="?", help="robot file (YAML)")
    simulate.add_argument("--duration", type=_positive, help="[s]; the last time of --inputs where left out")
    simulate.add_argument("--inputs", type=Path, metavar="CSV", help="columns t,<input>,...; what is left out is zero")
    simulate.add_argument("--smooth", action="store_true", help="join the inputs by smooth curves, not straight lines")
    simulate.add_argument("--out", type=Path, metavar="DIR", help="folder for the results")
    simulate.add_argument("--stream", action="store_true", help="keep long motions on the disk, in DIR/motion alone")
    simulate.add_argument("--resume", type=Path, metavar="DIR", help="go on with a motion of --stream; nothing else")
    simulate.add_argument("--method", default="auto", help="of integration (auto)")
    simulate.add_argument("--dt", type=_positive, help="time step [s] of the methods that have a fixed one")
    simulate.add_argument("--rtol", type=_positive, default=1e-6, help="relative tolerance (1e-6)")
    simulate.add_argument("--atol", type=_positive, default=1e-8, help="absolute tolerance (1e-8)")
    simulate.add_argument("--samples", type=_count, metavar="N", help="results at N equidistant times (at every step)")
    simulate.add_argument("--quiet", action="store_true", help="no progress and no summary")
    simulate.set_defaults(command=_simulate, refuse=simulate.error)

    sweep = commands.add_parser("sweep", help="compute many samples of a robot's values, inputs and starts")
    sweep.add_argument("study", type=Path, help="study file (YAML)")
    sweep.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results; goes on there")
    sweep.add_argument("--workers", type=int, metavar="N", help="processes (one for each core)")
    sweep.add_argument("--cluster", metavar="ADDRESS", help="of the scheduler of a Dask cluster, instead of --workers")
    sweep.add_argument("--quiet", action="store_true", help="no progress and no summary")
    sweep.set_defaults(command=_sweep)

    statics = commands.add_parser("statics", help="find a static equilibrium")
    statics.add_argument("robot", type=Path, help="robot file (YAML)")
    values = statics.add_mutually_exclusive_group()
    values.add_argument("--inputs-values", metavar="A,B,C", help="all inputs in their order")
    values.add_argument("--inputs", nargs="+", metavar="NAME=VALUE", help="some inputs by name; the others are zero")
    statics.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results")
    statics.set_defaults(command=_statics)

    kernels = commands.add_parser("kernels", help="compile kernels ahead, or say what this machine has of them")
    kernels.add_argument("what", choices=("build", "info"))
    kernels.add_argument("robots", type=Path, nargs="*", metavar="ROBOT", help="robot files; without, plain robots")
    kernels.set_defaults(command=_kernels)
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be > 0 (got {text})")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"must be >= 2 (got {text})")
    return value


def _show_warning(message: Any, *_: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _kernels(arguments: argparse.Namespace) -> int:
    import lissom as ls

    models = [_load(path)[1] for path in arguments.robots]
    if arguments.what == "build":
        ls.build_kernels(*models)
    cache = ls.kernel_cache(*models)
    print(f"{cache.folder}: {cache.bytes / 1e6:.1f} MB of everything compiled by Warp")
    if cache.compiled is not None:
        whose = ", ".join(str(path) for path in arguments.robots) or "plain robots"
        print(f"{cache.compiled} of {cache.count} modules of {whose} are compiled")
    return 0


def _load(path: Path) -> tuple[Robot, Model]:
    import lissom as ls

    robot = ls.load_robot(path)
    return robot, robot.build()


# -- info -------------------------------------------------------------------------------------------------------------


def _info(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from lissom.view.words import deformable_bodies, driven_by, place, surroundings

    robot, model = _load(arguments.robot)
    links = Table("link", "parent", "joint", "body", title=robot.name, title_justify="left")
    for heading in ("dof", "mass [kg]"):
        links.add_column(heading, justify="right")
    ends = [*model.links.v_start[1:], model.nv]
    for k, link in enumerate(robot.links.values()):
        parent = link.parent or "world"
        carrier = robot.links[link.parent].body if link.parent else None
        at = f" at s={place(link.at)}" if carrier is not None and carrier.is_slender else ""
        dof = int(ends[k] - model.links.v_start[k])
        joint, body = type(link.joint).__name__, type(link.body).__name__ if link.body else "none"
        links.add_row(link.name, parent + at, joint, body, str(dof), f"{model.links.mass[k]:.4g}")
    inputs = Table("u", "input", "actuator")
    for k, name in enumerate(model.inputs.names):
        inputs.add_row(str(k), name, driven_by(robot, name))
    console = Console(markup=False, emoji=False)
    console.print(links)
    console.print(inputs if model.nu else "no inputs")
    for name, frame in robot.frames.items():
        console.print(f"frame {name!r} on {frame.link!r} at s={place(frame.s)}", highlight=False)
    for name, load in robot.loads.items():
        console.print(f"load {name!r} on {load.link!r} at s={place(load.s)}", highlight=False)
    for line in [*deformable_bodies(robot), *surroundings(robot)]:
        console.print(line, highlight=False, soft_wrap=True)
    console.print(
        f"nq {model.nq}, nv {model.nv}, nu {model.nu}, nodes {model.n_nodes}, mass {sum(model.links.mass):.6g} kg",
        highlight=False,
    )
    return 0


# -- simulate ---------------------------------------------------------------------------------------------------------


def _simulate(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls
    from lissom.integration.simulate import chosen_method
    from lissom.io.inputs_file import read_inputs

    if arguments.resume is not None:
        return _resume(arguments)
    if arguments.robot is None or arguments.out is None:
        return arguments.refuse("needs a robot file and --out, or --resume")
    chosen_method(arguments.method)  # before anything takes its time
    robot, model = _load(arguments.robot)
    say = (lambda *_: None) if arguments.quiet else print
    duration, u = arguments.duration, None
    if arguments.inputs is not None:
        history = read_inputs(arguments.inputs, model.inputs.names)
        u = ls.Samples(history.t, history.u, smooth=arguments.smooth)
        duration = duration or float(history.t[-1])
        if history.missing:
            say(f"not in {arguments.inputs} and therefore zero: {', '.join(history.missing)}")
        if history.t[0] > 0.0 or history.t[-1] < duration:
            held = f"{arguments.inputs} covers t = {history.t[0]:g} to {history.t[-1]:g} s of 0 to {duration:g} s"
            raise ls.ModelError(f"{held}: the inputs must cover the whole duration")
    elif model.nu:
        say(f"no --inputs: all {model.nu} inputs are zero")
    if not duration or duration <= 0.0:
        raise ls.ModelError("--duration is needed where no --inputs give a last time after 0")
    arguments.out.mkdir(parents=True, exist_ok=True)
    _compile(model, u, arguments.method, say)
    t_eval = None if arguments.samples is None else np.linspace(0.0, duration, arguments.samples)
    try:
        trajectory = ls.simulate(
            model, duration, u=u, method=arguments.method, dt=arguments.dt, rtol=arguments.rtol, atol=arguments.atol,
            t_eval=t_eval, progress=not arguments.quiet, out=arguments.out / _STREAM if arguments.stream else None,
        )  # fmt: skip
    except ls.ConvergenceError as error:
        if error.partial is not None and len(error.partial.t) and not arguments.stream:
            _write_trajectory(robot, model, error.partial, arguments.out, print)
        raise
    if arguments.stream:
        return _said(trajectory, arguments.out, say)
    _summarise(model, trajectory, duration, say)
    _write_trajectory(robot, model, trajectory, arguments.out, say)
    return 0


def _resume(arguments: argparse.Namespace) -> int:
    import lissom as ls

    motion = ls.resume(arguments.resume / _STREAM, progress=not arguments.quiet)
    return _said(motion, arguments.resume, (lambda *_: None) if arguments.quiet else print)


def _said(motion: Any, out: Path, say: Any) -> int:
    """Say what has streamed to a folder."""
    say(f"{motion.t[-1] if len(motion.t) else 0.0:g} s in {motion.statistics.steps} steps, {len(motion.t)} rows")
    say(f"wrote {out / _STREAM / 'run.json'}")
    return 0


def _compile(model: Model, u: Any, method: str, say: Any) -> None:
    """Run for an instant, so that the times reported later are those of the simulation and not of the compiler."""
    import lissom as ls

    text = "still loading kernels; the first time on a machine they are compiled, which takes about half a minute"
    waiting = Timer(_PATIENCE, say, [text])
    waiting.daemon = True
    if not sys.stderr.isatty():  # where no bar says so
        waiting.start()
    try:
        with suppress(ls.ConvergenceError):  # the run itself will say so
            ls.simulate(model, 1e-6, u=u, method=method)
    finally:
        waiting.cancel()


def _summarise(model: Model, trajectory: Any, duration: float, say: Any) -> None:
    import lissom as ls

    done = trajectory.statistics
    say(f"{model.name}: {model.nv} degrees of freedom, {duration:g} s in {done.steps} steps")
    say(f"wall time {done.wall_time:.3g} s, {duration / done.wall_time:.3g} times real time")
    _say_tips(model, trajectory.q[-1], say)
    say(f"energy balance residual {ls.energy_balance(model, trajectory).residual:.2e} of the energy exchanged")


def _write_trajectory(robot: Robot, model: Model, trajectory: Any, out: Path, say: Any) -> None:
    import numpy as np

    for suffix in ("npz", "csv"):
        trajectory.save(out / f"trajectory.{suffix}")
        say(f"wrote {out / f'trajectory.{suffix}'}")
    if _can_plot(say):
        import lissom as ls

        ls.plot_trajectory(model, trajectory, path=out / "trajectory.png")
        say(f"wrote {out / 'trajectory.png'}")
        times = np.linspace(0.0, trajectory.t[-1], _SHAPES)
        shown = np.unique([np.argmin(np.abs(trajectory.t - time)) for time in times])
        paths = [ls.frame_pose(model, trajectory.q, name)[:, :3, 3] for name in _tips(model)]
        ls.plot_shapes(model, trajectory.q[shown], robot=robot, trace=paths, values=trajectory.t[shown],
                       value_label="time [s]", path=out / "shapes.png")  # fmt: skip
        say(f"wrote {out / 'shapes.png'}")


def _tips(model: Model) -> list[str]:
    """Names of the links that carry no other."""
    carriers = set(model.links.parent.tolist())
    return [name for k, name in enumerate(model.links.names) if k not in carriers]


def _say_tips(model: Model, q: np.ndarray, say: Any) -> None:
    import lissom as ls

    for name in _tips(model):
        x, y, z = ls.frame_pose(model, q, name, s=1.0)[:3, 3]
        say(f"tip of {name}: {x:.6g}, {y:.6g}, {z:.6g} m")


def _can_plot(say: Any) -> bool:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        say("no plots: matplotlib is not installed (pip install 'lissom[view]')")
        return False
    return True


# -- statics ----------------------------------------------------------------------------------------------------------


def _statics(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls

    robot, model = _load(arguments.robot)
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
    _say_tips(model, found.q, print)
    path = arguments.out / "equilibrium.npz"
    np.savez(path, q=found.q, u=found.u, multipliers=found.multipliers, residual=found.residual)
    print(f"wrote {path}")
    if _can_plot(print):
        ls.plot_shapes(model, found.q, robot=robot, path=arguments.out / "shapes.png")
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


# -- sweep ------------------------------------------------------------------------------------------------------------


def _sweep(arguments: argparse.Namespace) -> int:
    import lissom as ls
    from lissom.studies.study_file import load_study

    given = load_study(arguments.study)
    where = {"workers": arguments.workers, "cluster": arguments.cluster}
    found = ls.sweep(given.pop("task"), given.pop("parameters"), **given, **where, out=arguments.out,
                     progress=not arguments.quiet)  # fmt: skip
    if not arguments.quiet:
        print(f"{len(found.numbers)} of {found.count} samples, {len(found.failures)} failed")
        for number, why in list(found.failures.items())[:_FAILURES]:
            print(f"sample {number}: {why}")
        print(f"wrote {arguments.out / 'sweep.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
