"""Commands about robot files: write a new one, list the errors in files, show the contents of one, write C++ and files
for other tools."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lissom.cli.common import (
    Command,
    force_argument,
    keep_results,
    loaded,
    out_argument,
    positive,
    robot_argument,
    shown,
)

# -- new --------------------------------------------------------------------------------------------------------------

_JOINTS = {"fixed": "JointFixed", "hinge": "JointRevolute", "free": "JointFree"}


class _Question(NamedTuple):
    """A question for a value: name of the value, text of the question, default, and function that reads the answer."""

    name: str
    text: str
    default: str
    read: Callable[[str], Any]


def _name(text: str) -> str:
    if not text.replace(" ", "").replace("_", "").isalnum():
        raise argparse.ArgumentTypeError(f"must be of letters and digits (got {text})")
    return text


def _joint(text: str) -> str:
    if text not in _JOINTS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(_JOINTS)} (got {text})")
    return text


def _tendons(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 12:
        raise argparse.ArgumentTypeError(f"must be 0 to 12 (got {text})")
    return value


def _mass(text: str) -> float:
    return 0.0 if float(text) == 0.0 else positive(text)


_QUESTIONS = (
    _Question("name", "name of the robot", "arm", _name),
    _Question("length", "length of the soft rod [m]", "0.3", positive),
    _Question("base", "radius at its base [m]", "0.012", positive),
    _Question("tip", "radius at its tip [m]", "0.008", positive),
    _Question("young", "Young's modulus [Pa]: soft silicone 1e5, firm 1e6, rubber 1e7, steel 2e11", "5e5", positive),
    _Question("density", "density [kg/m³]: silicone 1070, steel 7850", "1070", positive),
    _Question("joint", "joint at its base: fixed, hinge (with a motor) or free", "fixed", _joint),
    _Question("tendons", "number of tendons around it", "3", _tendons),
    _Question("mass", "mass at its tip [kg]; 0 for none", "0", _mass),
)


def _new_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", type=Path, nargs="?", default=Path("robot.yaml"), help="file to write (robot.yaml)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument("--defaults", action="store_true", help="ask nothing")


def _new(arguments: argparse.Namespace) -> int:
    from lissom.errors import ModelError
    from lissom.io.robot_file import load_robot
    from lissom.portable import write_whole

    path = arguments.robot
    if path.exists() and not arguments.force:
        raise ModelError(f"{path}: exists already; give another file, or overwrite it with --force")
    choices = {question.name: question.read(question.default) for question in _QUESTIONS}
    if not arguments.defaults:
        print("A soft rod with tendons, in SI units. An empty answer takes the value in brackets.")
        choices = {question.name: _asked(question) for question in _QUESTIONS}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(robot_text(choices).encode("utf-8")))
    load_robot(path)
    print(f"wrote {path}; open it in an editor, then try")
    for words in ("check {}", "info {}", "simulate {} --duration 2 --out results"):
        print(f"  lissom {words.format(path)}")
    return 0


def _asked(question: _Question) -> Any:
    """The answer to a question, which is repeated until the answer is valid; the default if the input ends."""
    while True:
        print(f"{question.text} [{question.default}]: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
        try:
            return question.read(line.strip() or question.default)
        except (argparse.ArgumentTypeError, ValueError) as error:
            print(f"  {error}" if isinstance(error, argparse.ArgumentTypeError) else "  must be a number")


def robot_text(choices: dict[str, Any]) -> str:
    """The text of the robot file for given choices, with comments."""
    tip = _TIP.format(**choices) if choices["mass"] else ""
    drives = "".join(_tendon(k, choices) for k in range(choices["tendons"]))
    drives += _MOTOR if choices["joint"] == "hinge" else ""
    actuators = f"\nactuators:  # what drives it; each has one input, in this order\n{drives}" if drives else ""
    joint = f"{{type: {_JOINTS[choices['joint']]}{', axis: [0, 1, 0]' if choices['joint'] == 'hinge' else ''}}}"
    return _FILE.format(**choices | {"joint": joint, "tip_link": tip, "actuators": actuators})


def default_text() -> str:
    """The text of the robot file for the default choices."""
    return robot_text({question.name: question.read(question.default) for question in _QUESTIONS})


def _tendon(k: int, choices: dict[str, Any]) -> str:
    from math import cos, pi, sin

    angle = 2 * pi * k / choices["tendons"]
    ends = [[0.8 * choices[end] * part(angle) for end in ("base", "tip")] for part in (sin, cos)]
    y, z = (f"{near:.6g} + {far - near:.6g}*s".replace("+ -", "- ") for near, far in ends)
    return f'  - {{type: Tendon, name: t{k + 1}, link: rod, offset: {{expression: ["{y}", "{z}"]}}}}\n'


_FILE = """\
# A robot for lissom. Units are SI: m, kg, s, N, Pa, rad. Check it with `lissom check`.
name: {name}
gravity: [0, 0, -9.81]  # in the world [m/s²]

links:  # each is a joint and the body on it
  - name: rod
    # parent: another link; without it the parent is the world
    joint: {joint}
    body:
      type: Rod  # its axis is x; y and z lie in the cross-section
      length: {length:g}  # [m]
      section: {{type: SectionCircle, radius: [{base:g}, {tip:g}]}}  # at the base and at the tip [m]
      material: {{young: {young:g}, poisson: 0.5, density: {density:g}, damping_time: 0.02}}  # [Pa], [-], [kg/m³], [s]
      basis: {{type: BasisLegendre, torsion: 1, bending_y: 3, bending_z: 3, elongation: 0}}  # orders of the strains
{tip_link}{actuators}
frames:  # places whose poses are of interest; s runs from 0 (base) to 1 (tip)
  - {{name: tip, link: rod, s: 1}}
"""
_TIP = """\
  - name: load  # held by the tip of the rod
    parent: rod
    body: {{type: RigidBody, mass: {mass:g}}}  # [kg]
"""
_MOTOR = "  - {type: JointActuator, name: motor, link: rod}  # torque [N·m]\n"

NEW = Command(
    "new",
    "ask a few questions and write a robot file with comments",
    "lissom new arm.yaml",
    _new_arguments,
    _new,
)


# -- check ------------------------------------------------------------------------------------------------------------


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robots", type=Path, nargs="+", metavar="ROBOT", help="robot files (YAML)")
    parser.add_argument("--strict", action="store_true", help="return 2 for warnings too")
    parser.add_argument(
        "--accuracy", action="store_true", help="also find the equilibrium without inputs, and its accuracy"
    )


def _check(arguments: argparse.Namespace) -> int:
    from lissom.io.robot_file import faults_of

    wrong = 0
    for path in arguments.robots:
        robot, faults, doubts = faults_of(path)
        for fault in faults:
            print(f"{shown(path)}, line {fault.line}: {shown(fault.text)}", file=sys.stderr)
        for doubt in doubts:
            print(f"{shown(path)}, line {doubt.line}: warning: {shown(doubt.text)}", file=sys.stderr)
        wrong += bool(faults) or (arguments.strict and bool(doubts))
        if robot is not None and not faults:
            warnings = f", {_counted(len(doubts), 'warning')}" if doubts else ""
            print(f"{shown(path)}: OK{warnings}; {robot!r}")
            if arguments.accuracy:
                _show_accuracy(robot)
        else:
            print(f"{shown(path)}: {_counted(len(faults), 'error')}")
    return 2 if wrong else 0


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _show_accuracy(robot: Any) -> None:
    """Print, for the equilibrium without inputs, the errors from points and from bases, one line for each link, and how
    to reduce them."""
    from lissom.statics.equilibrium import solve_statics

    found = solve_statics(robot.build()).accuracy
    for name, points, basis in zip(found.links, found.points, found.basis):
        by_basis = "not estimated" if name in found.not_estimated else f"{basis:.1e} m"
        print(f"  {name}: at rest off by {points:.1e} m by its points, {by_basis} by its basis")
    if found.cure:
        print(f"  more exact: {found.cure}")


CHECK = Command(
    "check",
    "list all errors of robot files, with cures",
    "lissom check examples/robots/cdm.yaml",
    _check_arguments,
    _check,
)


# -- info -------------------------------------------------------------------------------------------------------------


def _info(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from lissom.cli.descriptions import (
        bodies,
        constraints,
        deformable_bodies,
        driven_by,
        place,
        python_functions,
        surroundings,
        unit_of_input,
    )

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
    for name, apart in robot.contact_exclusions.items():
        console.print(f"contact exclusion {name!r} of {len(apart.pairs())} pairs of links", highlight=False)
    for name, paired in robot.contact_pairs.items():
        friction = "" if paired.friction is None else f", friction {paired.friction:g}"
        console.print(f"contact pair {name!r} of {len(paired.pairs())} pairs of links{friction}", highlight=False)
    for name, coupling in robot.joint_couplings.items():
        kind = "elastic coupling" if coupling.is_elastic else "coupling"
        spans = [] if coupling.is_elastic else model.joint_couplings.spans(name)
        known = "".join(f"; function of {link!r} from {low:.4g} to {high:.4g}" for link, low, high in spans)
        console.print(f"{kind} {name!r} of joints {', '.join(coupling.joints)}{known}", highlight=False, soft_wrap=True)
    for line in constraints(robot):
        console.print(line, highlight=False, soft_wrap=True)
    for name, limits in robot.input_limits.items():
        console.print(f"limits of input {name!r}: low {limits.low}, high {limits.high}", highlight=False)
    for name, load in robot.loads.items():
        console.print(f"load {name!r} on {load.link!r} at s={place(load.s)}", highlight=False)
    for name, state in robot.states.items():
        numbers = f"{len(state.positions)} positions, {len(state.velocities)} velocities, {len(state.inputs)} inputs"
        console.print(f"state {name!r} of {numbers}", highlight=False)
    for line in [*deformable_bodies(robot), *python_functions(model), *surroundings(model)]:
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
    robot_argument,
    _info,
)


# -- export -----------------------------------------------------------------------------------------------------------


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    parser.add_argument("--functions", help="names, separated by commas; without, the ones most used")
    parser.add_argument("--name", help="prefix of the C functions; without, the name of the robot")
    parser.add_argument(
        "--parameters", help="paths of values that may change after the export, separated by commas: arm.material.young"
    )
    parser.add_argument("--build", action="store_true", help="compile a shared library for this machine")
    parser.add_argument(
        "--fmu", action="store_true", help="write an FMU for co-simulation and model exchange in place of sources"
    )
    parser.add_argument("--web", action="store_true", help="write a web page that simulates the robot in a browser")
    parser.add_argument("--fmi", choices=("3.0", "2.0"), default="3.0", help="with --fmu: version of FMI (3.0)")
    parser.add_argument("--dt", type=positive, help="size of a step [s]: with --fmu 0.001, with --web 0.002")
    out_argument(parser, "folder of the sources, or file of the FMU or of the web page")


def _export(arguments: argparse.Namespace) -> int:
    import lissom as ls

    keep_results(arguments, arguments.out)
    _, model = loaded(arguments.robot)
    parameters = arguments.parameters.split(",") if arguments.parameters else ()
    if arguments.fmu:
        options = {"name": arguments.name, "version": arguments.fmi, "parameters": parameters}
        options |= {"dt": arguments.dt} if arguments.dt else {}
        print(f"wrote {ls.export_fmu(model, arguments.out, **options)}")
        return 0
    if arguments.web:
        print(f"wrote {ls.export_web(model, arguments.out, dt=arguments.dt or 2e-3, name=arguments.name)}")
        return 0
    chosen = {"functions": arguments.functions.split(",")} if arguments.functions else {}
    made = ls.export(model, arguments.out, name=arguments.name, parameters=parameters, build=arguments.build, **chosen)
    print(f"wrote {arguments.out}: {', '.join(made.functions)}; {made.name}.h describes the functions")
    if made.library is not None:
        print(f"built {made.library}")
    return 0


EXPORT = Command(
    "export",
    "write a robot as C++ sources with a C interface",
    "lissom export examples/robots/cdm.yaml --functions mass_matrix,step --out cdm_sources",
    _export_arguments,
    _export,
)


# -- convert ----------------------------------------------------------------------------------------------------------

_ENDINGS = {".urdf": "save_urdf", ".xml": "save_mjcf", ".mjcf": "save_mjcf"}
_USD = (".usd", ".usda", ".usdc")


def _convert_arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    parser.add_argument(
        "--tolerance", type=positive, default=0.01, help="largest error of the tips of rods, which become chains (0.01)"
    )
    parser.add_argument("--joints", type=int, help="number of elements of each rod, in place of --tolerance")
    parser.add_argument("--package", help="of URDF: name of the ROS package that holds the meshes")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="file to write: .urdf, .xml (MJCF), .usd"
    )
    force_argument(parser)


def _convert(arguments: argparse.Namespace) -> int:
    import lissom as ls
    from lissom.io.any_file import load_any

    keep_results(arguments, arguments.out)
    ending = arguments.out.suffix.lower()
    if ending not in (*_ENDINGS, *_USD):
        raise ls.ModelError(f"--out: must end in one of {', '.join((*_ENDINGS, *_USD))} (got {str(arguments.out)!r})")
    given = {"tolerance": arguments.tolerance, "joints": arguments.joints}
    given |= {"package": arguments.package} if ending == ".urdf" else {}
    robot = load_any(arguments.robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)  # the report says the same
        if ending in _USD:
            made = ls.rigid_chains(robot, **given)
            print(*made.errors, ls.save_usd(made.robot.build(), arguments.out), sep="\n")
        else:
            print(getattr(ls, _ENDINGS[ending])(robot, arguments.out, **given))
    return 0


CONVERT = Command(
    "convert",
    "write a robot as URDF, MJCF or OpenUSD, with rods as chains of rigid links",
    "lissom convert examples/robots/cdm.yaml --out cdm.xml",
    _convert_arguments,
    _convert,
)
