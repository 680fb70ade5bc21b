"""The interactive viewer."""

from __future__ import annotations

import argparse
from pathlib import Path

from lissom.cli.command import Command
from lissom.cli.common import loaded
from lissom.cli.states import input_arguments, input_values


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, help="robot file (YAML)")
    input_arguments(parser)
    parser.add_argument("--trajectory", type=Path, metavar="FILE", help="a motion to look at: .npz, .csv or a folder")
    parser.add_argument(
        "--mode",
        choices=("pose", "equilibrium", "simulate", "replay"),
        help="(pose; replay of a trajectory, equilibrium under inputs)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (this machine only)")
    parser.add_argument("--port", type=int, default=8080, help="at that address; 0 takes a free one (8080)")
    parser.add_argument("--hosts", nargs="+", default=[], metavar="NAME", help="names of a proxy that leads to it")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open no browser")


def _view(arguments: argparse.Namespace) -> int:
    import lissom as ls

    model = loaded(arguments.robot)[1]
    motion = None if arguments.trajectory is None else ls.Trajectory.load(arguments.trajectory)
    where = {"host": arguments.host, "port": arguments.port, "hosts": arguments.hosts}
    begins = arguments.inputs is not None or arguments.inputs_values is not None
    u = input_values(arguments, model.inputs.names) if begins else None
    ls.view(model, u=u, trajectory=motion, mode=arguments.mode, **where, browser=not arguments.no_browser)
    return 0


VIEW = Command(
    "view",
    "view a robot in the browser: pose it, pull it, watch it move",
    "lissom view robot.yaml --mode equilibrium",
    _arguments,
    _view,
)
