"""Measured speed of the algorithms on this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lissom.cli.command import Command
from lissom.cli.common import positive
from lissom.cli.new import default_text

if TYPE_CHECKING:
    from lissom.model.model import Model

_LEAST = 0.2  # least time for which each function is measured [s]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, nargs="?", help="robot file (YAML); without, a rod with three tendons")
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
        model = ls.load_robot(arguments.robot).build()
    print(f"{model!r}, one core, kernels compiled before")
    for name, call in _calls(model).items():
        print(f"{name:<32} {_median(call) * 1e6:10.1f} µs")
    motion = ls.simulate(model, arguments.duration)
    motion = ls.simulate(model, arguments.duration)
    wall = motion.statistics.wall_time
    pace = f"{arguments.duration / wall:10.3g} times real time, {motion.statistics.steps} steps"
    print(f"{'simulate, released under gravity':<32} {pace}")
    return 0


def _calls(model: Model) -> dict[str, Callable[[], Any]]:
    """The measured functions, by name."""
    import numpy as np

    import lissom as ls

    q, v, u = model.neutral(), np.zeros(model.nv), np.zeros(model.nu)
    return {
        "inverse dynamics": lambda: ls.inverse_dynamics(model, q, v, v),
        "its derivatives": lambda: ls.inverse_dynamics_derivatives(model, q, v, v),
        "mass matrix": lambda: ls.mass_matrix(model, q),
        "forward dynamics": lambda: ls.forward_dynamics(model, q, v, u),
        "statics from the neutral shape": lambda: ls.solve_statics(model, u),
    }


def _median(call: Callable[[], Any]) -> float:
    """Median time of calls over at least _LEAST seconds, after a first one [s]."""
    call()
    times: list[float] = []
    while sum(times) < _LEAST or len(times) < 5:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


BENCH = Command(
    "bench",
    "measure the algorithms on this machine",
    "lissom bench examples/robots/cdm.yaml",
    _arguments,
    _bench,
)
