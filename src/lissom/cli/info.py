"""The contents of a robot file."""

from __future__ import annotations

import argparse

from lissom.cli.command import Command
from lissom.cli.common import loaded, robot_argument


def _arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)


def _info(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from lissom.cli.descriptions import bodies, deformable_bodies, driven_by, place, surroundings, unit_of_input

    robot, model = loaded(arguments.robot)
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
    inputs = Table("u", "input", "actuator", "unit")
    for k, name in enumerate(model.inputs.names):
        inputs.add_row(str(k), name, driven_by(robot, name), unit_of_input(robot, name))
    console = Console(markup=False, emoji=False)
    console.print(links)
    console.print(inputs if model.nu else "no inputs")
    for line in bodies(robot):
        console.print(line, highlight=False, soft_wrap=True)
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


INFO = Command(
    "info",
    "show the contents of a robot file",
    "lissom info examples/robots/hybrid_arm.yaml",
    _arguments,
    _info,
)
