"""Commands about computing: sweeps over many samples, speed on this machine, compiled kernels."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.cli.common import Command, loaded, positive, shown, start_at_rest
from lissom.cli.files import default_text

if TYPE_CHECKING:
    from lissom.model.model import Model

_MOST_CELLS = 5_000_000  # of the table of a sweep
_SHOWN_FAILURES = 10  # printed failures of a sweep
_LEAST_TIME = 0.2  # least time for which each function is measured [s]
_STATES = 256  # random states of the robot that functions are measured at


# -- sweep ------------------------------------------------------------------------------------------------------------


def _sweep_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", type=Path, help="study file (YAML)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results, or to continue")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (one for each core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="of the scheduler of a Dask cluster, instead of --workers")
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")


def _sweep(arguments: argparse.Namespace) -> int:
    import lissom as ls
    from lissom.sweeps.sweep import load_study

    given = load_study(arguments.study)
    where = {"workers": arguments.workers, "cluster": arguments.cluster}
    found = ls.sweep(given.pop("task"), given.pop("parameters"), **given, **where, out=arguments.out,
                     progress=not arguments.quiet)  # fmt: skip
    if not arguments.quiet:
        print(f"{len(found.numbers)} of {found.count} samples, {len(found.failures)} failed")
        for number, why in list(found.failures.items())[:_SHOWN_FAILURES]:
            print(f"sample {number}: {shown(why)}")
        print(f"wrote {arguments.out / 'sweep.json'}")
    cells = len(found.numbers) * sum(math.prod(shape) for shape in found.shapes.values())
    if cells <= _MOST_CELLS:
        found.to_csv(arguments.out / "sweep.csv")
    if not arguments.quiet:
        path = arguments.out / "sweep.csv"
        many = f"no {path}: it would have {cells:,} cells; read parts of the results by lissom.SweepResults"
        print(f"wrote {path}" if cells <= _MOST_CELLS else many)
    return 0


SWEEP = Command(
    "sweep",
    "compute many samples of a robot's values, inputs and starts",
    "lissom sweep study.yaml --out results",
    _sweep_arguments,
    _sweep,
)


# -- bench ------------------------------------------------------------------------------------------------------------


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot", type=Path, nargs="?", help="robot file (YAML, URDF or MJCF); without, a rod with three tendons"
    )
    parser.add_argument("--duration", type=positive, default=1.0, help="of the simulated motion [s] (1)")


def _bench(arguments: argparse.Namespace) -> int:
    import tempfile

    import lissom as ls

    if arguments.robot is None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.yaml"
            path.write_text(default_text(), encoding="utf-8")
            model = ls.load_robot(path).build()
    else:
        model = loaded(arguments.robot)[1]
    print(f"{model!r}, one core, kernels compiled before")
    for name, call in _measured_calls(model).items():
        print(f"{name:<32} {_median_time(call) * 1e6:10.1f} µs")
    q0 = start_at_rest(model, print).q
    ls.simulate(model, arguments.duration, q0)
    motion = ls.simulate(model, arguments.duration, q0)
    wall = motion.statistics.wall_time
    pace = f"{arguments.duration / wall:10.3g} times real time, {motion.statistics.steps} steps"
    print(f"{'simulate, released under gravity':<32} {pace}")
    return 0


def _measured_calls(model: Model) -> dict[str, Callable[[], Any]]:
    """The measured functions, by name."""
    import numpy as np

    import lissom as ls

    rng, u = np.random.default_rng(0), np.zeros(model.nu)
    steps = 0.1 * model.dofs.scale * rng.normal(size=(_STATES, 3, model.nv))
    q = ls.integrate(model, np.tile(model.neutral(), (_STATES, 1)), steps[:, 0])
    states = cycle(zip(q, steps[:, 1], steps[:, 2]))  # a new one for each call: poses of the last state are cached

    def at_new_state(function: Callable[..., Any], size: int) -> Callable[[], Any]:
        return lambda: function(model, *next(states)[:size])

    return {
        "inverse dynamics": at_new_state(ls.inverse_dynamics, 3),
        "its derivatives": at_new_state(ls.inverse_dynamics_derivatives, 3),
        "mass matrix": at_new_state(ls.mass_matrix, 1),
        "forward dynamics": at_new_state(lambda model, q, v: ls.forward_dynamics(model, q, v, u), 2),
        "statics from the neutral shape": lambda: ls.solve_statics(model, u),
    }


def _median_time(call: Callable[[], Any]) -> float:
    """Median time of repeated calls over at least _LEAST_TIME seconds, after a first call [s]."""
    call()
    times: list[float] = []
    while sum(times) < _LEAST_TIME or len(times) < 5:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


BENCH = Command(
    "bench",
    "measure the algorithms on this machine",
    "lissom bench examples/robots/cdm.yaml",
    _bench_arguments,
    _bench,
)


# -- kernels ----------------------------------------------------------------------------------------------------------


def _kernels_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("build", "info"))
    parser.add_argument("--target", help="with build: any processor of this kind: x86-64-v3, x86-64-v4, aarch64")
    parser.add_argument("--out", type=Path, help="with --target: folder, which LISSOM_KERNELS then names")
    parser.add_argument("robots", type=Path, nargs="*", metavar="ROBOT", help="robot files; without, plain robots")


def _kernels(arguments: argparse.Namespace) -> int:
    import lissom as ls

    models = [loaded(path)[1] for path in arguments.robots]
    if arguments.what == "build":
        ls.build_kernels(*models, target=arguments.target, out=arguments.out)
    if arguments.out is not None:
        return 0
    cache = ls.kernel_cache(*models)
    print(f"{cache.folder}: {cache.bytes / 1e6:.1f} MB of everything compiled by Warp")
    if cache.compiled is not None:
        whose = ", ".join(str(path) for path in arguments.robots) or "plain robots"
        print(f"{cache.compiled} of {cache.count} modules of {whose} are compiled")
    if cache.ready:
        print(f"{cache.ready} more were installed ready-compiled for processors like this one")
    return 0


KERNELS = Command(
    "kernels",
    "compile kernels ahead of use, or show the compiled kernels of this machine",
    "lissom kernels build robot.yaml",
    _kernels_arguments,
    _kernels,
)
