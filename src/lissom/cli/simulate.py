"""Commands about motion in time: simulate a robot, and a demonstration of robot file, equilibrium and motion."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.cli.common import (
    Command,
    Say,
    State,
    can_draw,
    count,
    force_argument,
    initial_velocity,
    keep_results,
    loaded,
    out_argument,
    positive,
    say_tips,
    start_arguments,
    start_at_rest,
    start_of,
    tips,
    velocity_argument,
)
from lissom.cli.files import default_text

if TYPE_CHECKING:
    import numpy as np

    from lissom.model.model import Model
    from lissom.simulation.trajectory import Trajectory

_STREAM = "motion"  # the folder within DIR to which motions stream
_LARGE = 1e-3  # residual of an energy balance above which a line says where it comes from
_SHAPES = 8  # drawn shapes of a motion
_DEMO_TENSION = 4.0  # of the first tendon of the demonstration [N]


# -- simulate ---------------------------------------------------------------------------------------------------------


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, nargs="?", help="robot file (YAML, URDF or MJCF)")
    parser.add_argument("--duration", type=positive, help="[s]; by default the last time of --inputs")
    start_arguments(parser)
    velocity_argument(parser)
    parser.add_argument(
        "--start",
        choices=("impulse", "running"),
        default="impulse",
        dest="begin",
        help="velocities of a driven closed chain: after an impulse of the drives, or running already",
    )
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
    begin = start_of(arguments, model, say)
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
        say(f"no --inputs: they stay as in {arguments.start or arguments.state}")
    elif model.nu:
        say(f"no --inputs: all {model.nu} inputs are zero")
    if not duration or duration <= 0.0:
        raise ls.ModelError("--duration is needed unless --inputs has a last time after 0")
    if not arguments.stream:
        keep_results(arguments, *results_in(arguments.out))
    arguments.out.mkdir(parents=True, exist_ok=True)
    q0, v0 = _start(arguments, model, begin, say)
    if arguments.begin == "running":
        q0 = ls.start_configuration(model) if q0 is None else q0
        v0 = ls.assemble_velocities(model, q0, v0, start=arguments.begin)
    _compile_kernels(model, (q0, v0, u), arguments.method, arguments.dt)
    wanted = None if arguments.samples is None else np.linspace(0.0, duration, arguments.samples)
    try:
        trajectory = ls.simulate(
            model, duration, q0, v0, u, method=arguments.method, dt=arguments.dt, rtol=arguments.rtol,
            atol=arguments.atol, t_eval=_times(arguments, wanted, duration), progress=not arguments.quiet,
            out=arguments.out / _STREAM if arguments.stream else None,
        )  # fmt: skip
    except ls.ConvergenceError as error:
        if error.partial is not None and len(error.partial.t) and not arguments.stream:
            write_trajectory(model, sampled(model, error.partial, u, wanted), arguments.out, print)
        raise
    except KeyboardInterrupt as stop:
        partial = getattr(stop, "partial", None)
        if partial is not None and not arguments.stream:
            print(f"stopped at t = {partial.t[-1]:g} s")
            write_trajectory(model, sampled(model, partial, u, wanted), arguments.out, print)
        raise
    if arguments.stream:
        return _say_streamed(trajectory, arguments.out, say)
    summarise(model, trajectory, duration, say)
    write_trajectory(model, sampled(model, trajectory, u, wanted), arguments.out, say)
    return 0


def _start(
    arguments: argparse.Namespace, model: Model, begin: State | None, say: Say
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The initial configuration (nq,) and velocity (nv,); None for those of `simulate`."""
    if begin is None:
        if not model.n_rows and arguments.velocity is None:
            return None, None
        begin = start_at_rest(model, say)
    if arguments.velocity is None:
        return begin.q, begin.v
    return begin.q, initial_velocity(arguments, model, begin.q, begin.v)


def _times(arguments: argparse.Namespace, wanted: np.ndarray | None, duration: float) -> np.ndarray | None:
    """The times at which the motion is needed: all steps, on which the energy balance rests. A stream has the wanted
    times only. Fixed steps end on the wanted times, too."""
    import numpy as np

    from lissom.simulation.implicit_methods import StepSchedule, integrate_implicit
    from lissom.simulation.simulate import chosen_method

    if wanted is None or arguments.stream:
        return wanted
    run = chosen_method(arguments.method, dt=arguments.dt)[0]
    if arguments.dt is None or getattr(run, "func", None) is not integrate_implicit:
        return None
    steps = StepSchedule(wanted, duration, np.inf, arguments.dt)
    return np.append(0.0, steps.ends(0, len(steps)))


def sampled(model: Model, motion: Trajectory, u: Any, wanted: np.ndarray | None) -> Trajectory:
    """A motion given at all steps, at the wanted times as far as it goes. Between steps it is interpolated as in
    `simulate`.

    Args:
        u: the inputs, as for `simulate`.
    """
    import numpy as np

    from lissom.simulation.implicit_methods import between
    from lissom.simulation.inputs import InputRows
    from lissom.simulation.trajectory import motion_arrays

    if wanted is None or len(motion.t) < 2:
        return motion
    wanted = wanted[wanted <= motion.t[-1]]
    at = np.searchsorted(motion.t, wanted)
    if (motion.t[at] == wanted).all():
        rows = {name: getattr(motion, name)[at] for name in ("q", "v", "a", "u", "multipliers", "z")}
        return replace(motion, t=wanted, **rows)
    given = InputRows(model, u)
    inputs = np.array([given.row(0, t) for t in wanted.tolist()]).reshape(len(wanted), model.nu)
    state = between(model, motion.t, motion.q, motion.v, motion.a, wanted)
    loops = motion.multipliers[:, model.n_motions :]
    force = np.array([np.interp(wanted, motion.t, row) for row in loops.T]).reshape(-1, len(wanted)).T
    rows = motion_arrays(model, wanted, np.hstack([*state, force])[None], inputs[None])
    return replace(motion, t=wanted, **{name: x[0] for name, x in rows.items()})


def _resume(arguments: argparse.Namespace) -> int:
    import lissom as ls

    motion = ls.resume(arguments.resume / _STREAM, progress=not arguments.quiet)
    return _say_streamed(motion, arguments.resume, (lambda *_: None) if arguments.quiet else print)


def _say_streamed(motion: Any, out: Path, say: Say) -> int:
    """Print a summary of a motion that was streamed to a folder."""
    say(f"{motion.t[-1] if len(motion.t) else 0.0:g} s in {motion.statistics.steps} steps, {len(motion.t)} rows")
    say(f"wrote {out / _STREAM / 'run.json'}")
    return 0


def _compile_kernels(model: Model, start: tuple[Any, Any, Any], method: str, dt: float | None) -> None:
    """Run a very short motion from a start (q0, v0, u), so that the kernels are compiled and the printed time is that
    of the simulation alone."""
    import lissom as ls

    with suppress(ls.ConvergenceError):  # the simulation itself raises it
        ls.simulate(model, 1e-6, *start, method=method, dt=None if dt is None else min(dt, 1e-6))


def summarise(model: Model, trajectory: Any, duration: float, say: Say) -> None:
    """Print the computing effort and the final state of a simulation."""
    import lissom as ls

    done = trajectory.statistics
    say(f"{model.name}: {model.nv} degrees of freedom, {duration:g} s in {done.steps} steps")
    say(f"wall time {done.wall_time:.3g} s, {duration / done.wall_time:.3g} times real time")
    say_tips(model, trajectory.q[-1], say)
    balance = ls.energy_balance(model, trajectory)
    found = f"residual {balance.residual:.2e} of the energy exchanged"
    if balance.residual > _LARGE and balance.quadrature > 0.1 * balance.residual:
        found += ", as far as its steps resolve powers; smaller steps tell more"
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
