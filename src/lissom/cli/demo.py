"""A demonstration: a robot file, its equilibrium and its motion."""

from __future__ import annotations

import argparse
from pathlib import Path

from lissom.cli.command import Command
from lissom.cli.common import force_argument, keep_results, loaded, positive
from lissom.cli.new import default_text
from lissom.cli.simulate import results_in, summarise, write_trajectory

_TENSION = 4.0  # [N]


def _arguments(parser: argparse.ArgumentParser) -> None:
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
    tensions[1, 0] = _TENSION
    pull = ls.Samples(np.linspace(0.0, arguments.duration, 3), tensions)
    print(f"from equilibrium its first tendon is pulled by {_TENSION:g} N and released within {arguments.duration:g} s")
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
    _arguments,
    _demo,
)
