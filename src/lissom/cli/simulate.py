"""Commands about motion in time: simulate a robot, and a demonstration of robot file, equilibrium and motion."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.cli.common import (
    Command,
    Say,
    can_draw,
    count,
    force_argument,
    from_argument,
    keep_results,
    loaded,
    out_argument,
    positive,
    say_tips,
    state_of,
    tips,
)
from lissom.cli.files import default_text

if TYPE_CHECKING:
    from lissom.model.model import Model

_STREAM = "motion"  # the folder within DIR to which motions stream
_SHAPES = 8  # drawn shapes of a motion
_DEMO_TENSION = 4.0  # of the first tendon of the demonstration [N]


# -- simulate ---------------------------------------------------------------------------------------------------------


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, nargs="?", help="robot file (YAML)")
    parser.add_argument("--duration", type=positive, help="[s]; by default the last time of --inputs")
    from_argument(parser)
    parser.add_argument("--inputs", type=Path, metavar="CSV", help="columns t,<input>,...; missing inputs are zero")
    parser.add_argument("--smooth", action="store_true", help="join the inputs by smooth curves, not straight lines")
    out_argument(parser, "folder for the results", required=False)
    parser.add_argument("--stream", action="store_true", help="stream a long motion to the disk, to DIR/motion only")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="continue a motion of --stream; no other arguments")
    parser.add_argument("--method", default="auto", help="of integration (auto)")
    parser.add_argument("--dt", type=positive, help="time step [s] of the methods that have a fixed one")
    parser.add_argument("--rtol", type=positive, default=1e-6, help="relative tolerance (1e-6)")
    parser.add_argument("--atol", type=positive, default=1e-8, help="absolute tolerance (1e-8)")
    parser.add_argument("--samples", type=count, metavar="N", help="results at N equidistant times (at every step)")
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    parser.set_defaults(refuse=parser.error)


def _simulate(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls
    from lissom.io.text_files import read_inputs
    from lissom.launch.compiling import QUIET
    from lissom.simulation.simulate import chosen_method

    if arguments.quiet:
        os.environ.setdefault(QUIET, "1")
    if arguments.resume is not None:
        return _resume(arguments)
    if arguments.robot is None or arguments.out is None:
        return arguments.refuse("needs a robot file and --out, or --resume")
    chosen_method(arguments.method)  # raises its errors before anything is computed
    model = loaded(arguments.robot)[1]
    say = (lambda *_: None) if arguments.quiet else print
    begin = None if arguments.start is None else state_of(arguments.start, model)
    duration, u = arguments.duration, None if begin is None else begin.u
    if arguments.inputs is not None:
        history = read_inputs(arguments.inputs, model.inputs.names)
        u = ls.Samples(history.t, history.u, smooth=arguments.smooth)
        duration = duration or float(history.t[-1])
        if history.missing:
            say(f"not in {arguments.inputs} and therefore zero: {', '.join(history.missing)}")
        if history.t[0] > 0.0 or history.t[-1] < duration:
            coverage = f"{arguments.inputs} covers t = {history.t[0]:g} to {history.t[-1]:g} s of 0 to {duration:g} s"
            say(f"{coverage}: inputs are constant before the first row and after the last")
    elif begin is not None and model.nu:
        say(f"no --inputs: they stay as in {arguments.start}")
    elif model.nu:
        say(f"no --inputs: all {model.nu} inputs are zero")
    if not duration or duration <= 0.0:
        raise ls.ModelError("--duration is needed unless --inputs has a last time after 0")
    if not arguments.stream:
        keep_results(arguments, *results_in(arguments.out))
    arguments.out.mkdir(parents=True, exist_ok=True)
    _compile_kernels(model, u, arguments.method)
    t_eval = None if arguments.samples is None else np.linspace(0.0, duration, arguments.samples)
    q0, v0 = (None, None) if begin is None else (begin.q, begin.v)
    try:
        trajectory = ls.simulate(
            model, duration, q0, v0, u, method=arguments.method, dt=arguments.dt, rtol=arguments.rtol,
            atol=arguments.atol, t_eval=t_eval, progress=not arguments.quiet,
            out=arguments.out / _STREAM if arguments.stream else None,
        )  # fmt: skip
    except ls.ConvergenceError as error:
        if error.partial is not None and len(error.partial.t) and not arguments.stream:
            write_trajectory(model, error.partial, arguments.out, print)
        raise
    except KeyboardInterrupt as stop:
        partial = getattr(stop, "partial", None)
        if partial is not None and not arguments.stream:
            print(f"stopped at t = {partial.t[-1]:g} s")
            write_trajectory(model, partial, arguments.out, print)
        raise
    if arguments.stream:
        return _say_streamed(trajectory, arguments.out, say)
    summarise(model, trajectory, duration, say)
    write_trajectory(model, trajectory, arguments.out, say)
    return 0


def _resume(arguments: argparse.Namespace) -> int:
    import lissom as ls

    motion = ls.resume(arguments.resume / _STREAM, progress=not arguments.quiet)
    return _say_streamed(motion, arguments.resume, (lambda *_: None) if arguments.quiet else print)


def _say_streamed(motion: Any, out: Path, say: Say) -> int:
    """Print a summary of a motion that was streamed to a folder."""
    say(f"{motion.t[-1] if len(motion.t) else 0.0:g} s in {motion.statistics.steps} steps, {len(motion.t)} rows")
    say(f"wrote {out / _STREAM / 'run.json'}")
    return 0


def _compile_kernels(model: Model, u: Any, method: str) -> None:
    """Run a very short motion, so that the kernels are compiled and the printed time is that of the simulation
    alone."""
    import lissom as ls

    with suppress(ls.ConvergenceError):  # the simulation itself raises it
        ls.simulate(model, 1e-6, u=u, method=method)


def summarise(model: Model, trajectory: Any, duration: float, say: Say) -> None:
    """Print the computing effort and the final state of a simulation."""
    import lissom as ls

    done = trajectory.statistics
    say(f"{model.name}: {model.nv} degrees of freedom, {duration:g} s in {done.steps} steps")
    say(f"wall time {done.wall_time:.3g} s, {duration / done.wall_time:.3g} times real time")
    say_tips(model, trajectory.q[-1], say)
    balance = ls.energy_balance(model, trajectory)
    found = f"residual {balance.residual:.2e} of the energy exchanged"
    say(f"energy balance {'without a residual: the robot is at rest' if balance.is_at_rest else found}")


def results_in(out: Path) -> list[Path]:
    """The files of the results of a motion."""
    return [out / name for name in ("trajectory.npz", "trajectory.csv", "trajectory.png", "shapes.png")]


def write_trajectory(model: Model, trajectory: Any, out: Path, say: Say) -> None:
    """Write a motion as arrays, as a table and as pictures."""
    import numpy as np

    import lissom as ls

    for suffix in ("npz", "csv"):
        trajectory.save(out / f"trajectory.{suffix}")
        say(f"wrote {out / f'trajectory.{suffix}'}")
    if can_draw("matplotlib", "view", say):
        ls.plot_trajectory(model, trajectory, path=out / "trajectory.png")
        say(f"wrote {out / 'trajectory.png'}")
    if can_draw("pyvista", "render", say):
        times = np.linspace(0.0, trajectory.t[-1], _SHAPES)
        shown = np.unique([np.argmin(np.abs(trajectory.t - time)) for time in times])
        paths = [ls.frame_pose(model, trajectory.q, name)[:, :3, 3] for name in tips(model)]
        ls.render(model, trajectory.q[shown], out / "shapes.png", trail=paths, values=trajectory.t[shown],
                  value_label="time [s]")  # fmt: skip
        say(f"wrote {out / 'shapes.png'}")


SIMULATE = Command(
    "simulate",
    "follow a robot in time, from rest at its start configuration or from a state of a file",
    "lissom simulate examples/robots/cdm.yaml --duration 1 --out results",
    _simulate_arguments,
    _simulate,
)


# -- demo -------------------------------------------------------------------------------------------------------------


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("lissom-demo"), metavar="DIR", help="folder (lissom-demo)")
    force_argument(parser)
    parser.add_argument("--duration", type=positive, default=2.0, help="of the motion [s] (2)")


def _demo(arguments: argparse.Namespace) -> int:
    import numpy as np

    import lissom as ls
    from lissom.portable import write_whole

    path = arguments.out / "robot.yaml"
    keep_results(arguments, path, *results_in(arguments.out))
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(default_text().encode("utf-8")))
    print(f"wrote {path}: a soft rod with three tendons")
    model = loaded(path)[1]
    rest = ls.solve_statics(model)
    tensions = np.zeros((3, model.nu))
    tensions[1, 0] = _DEMO_TENSION
    pull = ls.Samples(np.linspace(0.0, arguments.duration, 3), tensions)
    span = f"within {arguments.duration:g} s"
    print(f"from equilibrium its first tendon is pulled by {_DEMO_TENSION:g} N and released {span}")
    t_eval = np.linspace(0.0, arguments.duration, 101)
    motion = ls.simulate(model, arguments.duration, q0=rest.q, u=pull, t_eval=t_eval, progress=True)
    summarise(model, motion, arguments.duration, print)
    write_trajectory(model, motion, arguments.out, print)
    print(f"edit {path} and continue with: lissom check {path}; lissom info {path}; lissom simulate --help")
    return 0


DEMO = Command(
    "demo",
    "write a small robot and follow its motion, with pictures",
    "lissom demo --out lissom-demo",
    _demo_arguments,
    _demo,
)
