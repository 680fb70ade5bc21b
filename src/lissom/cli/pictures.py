"""Commands that show a robot: pictures, films, and the interactive viewer."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from lissom.cli.common import (
    Command,
    force_argument,
    input_arguments,
    input_values,
    keep_results,
    loaded,
    positive,
    robot_argument,
    start_arguments,
    start_of,
)

# -- render -----------------------------------------------------------------------------------------------------------


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    input_arguments(parser)
    start_arguments(parser)
    parser.add_argument("--out", type=Path, default=Path("robot.png"), metavar="PNG", help="file (robot.png)")
    force_argument(parser)


def _render(arguments: argparse.Namespace) -> int:
    import lissom as ls

    keep_results(arguments, arguments.out)
    model = loaded(arguments.robot)[1]
    start = start_of(arguments, model, print)
    if start is not None:
        q = start.q
    else:
        q = ls.solve_statics(model, input_values(arguments, model.inputs.names), progress=True).q
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    ls.render(model, q, arguments.out)
    print(f"wrote {arguments.out}")
    return 0


RENDER = Command(
    "render",
    "draw a robot at rest under its inputs, or in a state of a file",
    "lissom render examples/robots/cdm.yaml --inputs t1=5 --out robot.png",
    _render_arguments,
    _render,
)


# -- animate ----------------------------------------------------------------------------------------------------------


def _animate_arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    parser.add_argument("trajectory", type=Path, help="its motion: .npz, .csv or the folder of --stream")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("motion.mp4"),
        metavar="FILE",
        help=".mp4, .gif, or .usd, .usda, .usdc (motion.mp4)",
    )
    force_argument(parser)
    parser.add_argument("--speed", type=positive, help="seconds of the motion in one of the film (1, short ones less)")
    parser.add_argument("--fps", type=positive, default=25.0, help="frames per second of the film (25)")
    parser.add_argument("--trail", metavar="NAME", help="link or frame whose path grows behind it")
    parser.add_argument("--follow", metavar="NAME", help="link or frame that the camera moves along with")


def _animate(arguments: argparse.Namespace) -> int:
    import lissom as ls

    model = loaded(arguments.robot)[1]
    motion = ls.Trajectory.load(arguments.trajectory)
    if motion.q.shape[-1] != model.nq:
        rule = f"must hold {model.nq} coordinates, as robot {model.name!r} has"
        raise ls.ModelError(f"{arguments.trajectory}: {rule} (got {motion.q.shape[-1]})")
    keep_results(arguments, arguments.out)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    if arguments.out.suffix.lower() in (".usd", ".usda", ".usdc"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ls.LeftOutWarning)  # the report says the same
            print(ls.save_usd(model, arguments.out, motion, fps=arguments.fps))
        return 0
    given = {name: getattr(arguments, name) for name in ("speed", "fps", "trail", "follow")}
    print(f"wrote {motion.animate(arguments.out, model=model, progress=True, **given)}")
    return 0


ANIMATE = Command(
    "animate",
    "film a motion, or write it as OpenUSD",
    "lissom animate examples/robots/cdm.yaml out/cdm/trajectory.npz --out motion.mp4 --trail arm",
    _animate_arguments,
    _animate,
)


# -- view -------------------------------------------------------------------------------------------------------------


def _view_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, help="robot file (YAML, URDF or MJCF)")
    input_arguments(parser)
    parser.add_argument("--trajectory", type=Path, metavar="FILE", help="a motion to look at: .npz, .csv or a folder")
    parser.add_argument(
        "--mode",
        choices=("pose", "equilibrium", "simulate", "replay"),
        help="(pose; replay of a trajectory, equilibrium under inputs)",
    )
    _server_arguments(parser, 8080)


def _server_arguments(parser: argparse.ArgumentParser, port: int) -> None:
    """Arguments about the address of a page."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (this machine only)")
    parser.add_argument("--port", type=int, default=port, help=f"at that address; 0 takes a free one ({port})")
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
    _view_arguments,
    _view,
)


# -- studio -----------------------------------------------------------------------------------------------------------


def _studio_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot",
        type=Path,
        nargs="?",
        default=Path("robot.yaml"),
        help="robot file (YAML) to edit or begin (robot.yaml)",
    )
    _server_arguments(parser, 8090)


def _studio(arguments: argparse.Namespace) -> int:
    from lissom.studio.serving import studio

    where = {"host": arguments.host, "port": arguments.port, "hosts": arguments.hosts}
    studio(arguments.robot, **where, browser=not arguments.no_browser)
    return 0


STUDIO = Command(
    "studio",
    "build a robot in the browser and see it: parts, forms, statics and motions, without code",
    "lissom studio arm.yaml",
    _studio_arguments,
    _studio,
)
