"""Pictures and numbers of each example in the gallery: which motions or equilibria, which view, which numbers.

A scene takes the calls of `simulate`, `solve_statics` and others that the example makes, so that the picture
and the numbers come from the same motions.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import lissom as ls


class Call(NamedTuple):
    """A function that was called with a model, and its result."""

    function: str
    model: ls.Model
    result: Any


class Shot(NamedTuple):
    """A picture: configurations (n, nq), the last one solid, and options of `ls.render`."""

    model: ls.Model
    rows: np.ndarray
    options: dict[str, Any]


class Scene(NamedTuple):
    """The picture of an example, and the keys of the numbers shown with it; keys of nested tables joined by " > ".

    An example that takes minutes runs in part, by arguments of its `main`.
    """

    shot: Callable[[list[Call]], Shot]
    numbers: tuple[str, ...]
    arguments: Mapping[str, Any] = MappingProxyType({})


class Film(NamedTuple):
    """A film of an example: the number of the motion, the part of it from the start, the size [pixels], options of
    `animate`."""

    at: int = 0
    part: float = 1.0
    size: tuple[int, int] = (400, 400)
    options: Mapping[str, Any] = MappingProxyType({})


def motions(calls: list[Call]) -> list[Call]:
    """The calls that simulate one motion."""
    return [one for one in calls if one.function == "simulate" and np.ndim(one.result.q) == 2]


def without_actuators(model: ls.Model) -> ls.Model:
    """The same robot without what drives it, such as tendons that come from afar."""
    robot = copy(model.description)
    robot.actuators = {}
    return robot.build()


def motion(
    at: int = 0,
    shapes: int = 5,
    trail: str | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    bare: bool = False,
    **options: Any,
) -> Callable[[list[Call]], Shot]:
    """Instants of one of the motions, equally apart in a part of it, with the path of a frame; bare of actuators."""

    def shot(calls: list[Call]) -> Shot:
        call = motions(calls)[at]
        t, q = call.result.t, call.result.q
        begin, end = (t[0] + part * (t[-1] - t[0]) for part in span)
        shown = [int(np.argmin(np.abs(t - x))) for x in np.linspace(begin, end, shapes)]
        more = {}
        if trail is not None:
            within = q[(t >= begin) & (t <= end)]
            more["trail"] = ls.frame_pose(call.model, within, trail)[:, :3, 3]
        return Shot(without_actuators(call.model) if bare else call.model, q[shown], options | more)

    return shot


def past_a_wall(calls: list[Call]) -> Shot:
    """The motion around the wall to the goal, both drawn, which the example keeps beside its robot."""
    shot = motion(shapes=5)(calls)
    example = runpy.run_path("examples/obstacle_path.py")
    return shot._replace(model=example["with_boxes"](shot.model))


def rests(at: int | None = None, **options: Any) -> Callable[[list[Call]], Shot]:
    """One of the equilibria, of a batch the last one; without a number that with the largest coordinates."""

    def shot(calls: list[Call]) -> Shot:
        found = [one for one in calls if one.function == "solve_statics"]
        call = max(found, key=lambda one: np.abs(one.result.q).max()) if at is None else found[at]
        return Shot(call.model, np.atleast_2d(call.result.q)[-1:], options)

    return shot


def branch(shapes: int = 6, **options: Any) -> Callable[[list[Call]], Shot]:
    """The equilibria that follow each other, of the last model."""

    def shot(calls: list[Call]) -> Shot:
        model = calls[-1].model
        rows = np.array([one.result.q for one in calls if one.model is model])
        return Shot(model, rows[np.linspace(0, len(rows) - 1, shapes).round().astype(int)], options)

    return shot


def in_a_row(calls: list[Call]) -> Shot:
    """The largest chain of the example that compares equations, which moves nothing, in a shape of its range."""
    model = max((call.model for call in calls), key=lambda model: model.nq)
    return Shot(model, 6.0 * np.sin(0.9 * np.arange(model.nq))[None], {})


def described(file: str, u: Sequence[float] | None = None, q: Sequence[float] | None = None, **options: Any) -> Shot:
    """The robot of a file at rest, or in a posture."""
    model = ls.load_robot(file).build()
    return Shot(model, np.atleast_2d(ls.solve_statics(model, u).q if q is None else q), options)


POSTURE = (0.4, -1.1, 1.5, -2.0, -1.57, 0.0)  # of the industrial arms [rad]

MUG = {"links": ("palm", "mug", "in the handle", "low", "high"), "view": (25.0, 35.0), "obstacles": False}

SCENES = {
    "brick_tower": Scene(
        motion(0, shapes=4, span=(0.0, 0.75), view=(8.0, -65.0)),
        (
            "0.97 of the overhangs > overhang in lengths [-]",
            "0.97 of the overhangs > drift of a brick in three seconds [m]",
            "0.97 of the overhangs > pressure off the centre of mass above [m]",
            "1.03 of the overhangs, top sunk after 0.8 s [m]",
            "careless, steps of 2 ms > drift of a brick in three seconds [m]",
        ),
    ),
    "cdm": Scene(motion(span=(0.0, 0.45), trail="arm"), ("largest z", "least z", "energy balance residual")),
    "cdm_contact": Scene(motion(shapes=4, span=(0.0, 0.4), trail="arm"), ("deepest", "exponent at rest")),
    "cdm_tracking": Scene(
        motion(shapes=5, trail="arm", span=(0.2, 1.0)),
        ("predictive: mean error [m]", "predictive: largest error [m]"),
    ),
    "chain": Scene(
        motion(0, shapes=5, view=(10.0, 10.0)),
        (
            "hangs > tension off the weight below [-]",
            "swings, steps of 2 ms > least integral of Gauss",
            "swings, steps of 2 ms > nearest middle lines, of two radii [-]",
            "swings, steps of 2 ms > energy gained, of the fall [-]",
        ),
    ),
    "continuum_parallel_robot": Scene(
        motion(-1, shapes=4), ("wire > the same by the elastica [m]", "wire > tip nearer under constant torques [m]")
    ),
    "custom_cable": Scene(rests(0), ("tip error", "cable taken in")),
    "designed_arm": Scene(rests(-1), ("height before [mm]", "height after [mm]")),
    "designed_finger": Scene(
        motion(-1, shapes=5, trail="finger"),
        ("distance from the point, before [mm]", "distance from the point, after [mm]"),
    ),
    "drones": Scene(motion(shapes=4), ("momentum against impulse, CVODE [-]", "out of the plane [m]")),
    "fin_ray_finger": Scene(motion(shapes=4, span=(0.0, 0.25)), ("drive > tip travel", "dynamics > mismatch of d/dq")),
    "flagellum_propeller": Scene(motion(shapes=3), ("speed, swimming [m/s]", "thrust [N]", "drag of the body [N]")),
    "follower_beam": Scene(branch(), ("largest > 8", "largest > 10")),
    "free_arms": Scene(
        motion(shapes=5, span=(0.0, 0.2)),
        ("PGC > height of the tip at rest [m]", "PGC > end from equilibrium [m]"),
        {"names": ("PGC",)},
    ),
    "free_fall": Scene(motion(shapes=5, span=(0.0, 0.1)), ("undamped > balance", "damped > final energy")),
    "hybrid_arm": Scene(motion(-1, shapes=3), ("growth of its squared radii at its end [mm²]", "by statics [mm²]")),
    "hybrid_hand": Scene(motion(shapes=2), ("loop open by [m]", "error of derivatives", "ball taken along [mm]")),
    "implicit_methods": Scene(
        motion(-1, shapes=4),
        ("cdm dynamics > largest tip distance", "serial_robot dynamics > largest tip distance"),
        {"n": 6, "duration": 2.0},
    ),
    "inflated_arm": Scene(motion(shapes=3), ("largest share borne", "end of the motion from equilibrium")),
    "learned_map": Scene(
        motion(-1, shapes=4, span=(0.0, 0.3), bare=True),
        ("tip off the finite elements, worst [%]", "lowest frequency off [%]"),
    ),
    "many_bodies": Scene(
        in_a_row,
        ("difference, 2 bodies", "difference, 3 bodies"),
        {"symbolic_counts": (1, 2, 3), "states": 20},
    ),
    "mechanisms": Scene(
        motion(-1, shapes=3), ("Stewart platform > position error [m]", "four-bar > torque error [N·m]")
    ),
    "mug": Scene(
        motion(shapes=1, span=(1.0, 1.0), **MUG),
        ("rise [m]", "drift while it is held [m]", "deepest touch [m]", "rise without friction [m]"),
    ),
    "obstacle_path": Scene(
        past_a_wall,
        ("mismatch of the sensitivity", "clearance around the wall [m]", "planned tip to the goal's centre [m]"),
    ),
    "painleve_rod": Scene(
        motion(0, shapes=6, trail="rod"),
        (
            "adaptive steps > lean off the rigid rod [deg]",
            "jam, 10000 times the stiffness > speed after the jam off a stiff rod [-]",
            "adaptive steps > leap [m]",
            "steps of 2 ms > energy gained in the leap [-]",
        ),
    ),
    "parallel_robot": Scene(
        motion(shapes=3),
        ("statics > largest residual", "dynamics > mismatch of d/dq"),
        {"n": 20, "duration": 2.0},
    ),
    "peg_in_hole": Scene(
        motion(0, shapes=1, span=(1.0, 1.0), view=(14.0, -75.0), obstacles=False),
        (
            "least friction, rigid",
            "1.03 of the least friction, steps of 2 ms > sunk [m]",
            "0.97 of the least friction, steps of 2 ms > sunk [m]",
            "0.97 of the least friction, steps of 2 ms > tilt [deg]",
            "tilt of two contacts at the bottom [deg]",
        ),
    ),
    "rattleback": Scene(
        motion(0, shapes=4, trail="nose", span=(0.0, 0.385), view=(25.0, -75.0), obstacles=False),
        (
            "adaptive steps, turns back > turns back at [s]",
            "adaptive steps, turns back > the same of the rigid stone [s]",
            "smooth friction, turns back > spin off the rigid stone [rad/s]",
            "smooth friction, spins on > spin off the rigid stone [rad/s]",
        ),
    ),
    "reach_behind": Scene(
        motion(0, shapes=5, trail="arm", span=(0.0, 0.3)),
        (
            "nearest to the goal without the post [m]",
            "knows the post: distance at the end [m]",
            "does not: distance at the end [m]",
        ),
    ),
    "resoft_fingers": Scene(rests(1), ("tip from the axis [m]", "tip below the palm [m]")),
    "resoft_gripper": Scene(motion(shapes=1, span=(0.16, 0.16)), ("missing of the weight", "creep of a firm grasp")),
    "shape_regulation": Scene(motion(shapes=4), ("damping ratio",)),
    "single_rods": Scene(motion(-1, shapes=6), ("soft cantilever > largest rise of energy",)),
    "snake_in_a_maze": Scene(
        motion(0, shapes=3, view=(40.0, -40.0)),
        (
            "steps of 2 ms > head beyond the last bend [m]",
            "steps of 2 ms > deepest in a wall [m]",
            "steps of 2 ms > energy made, of the work [-]",
            "adaptive steps > energy made, of the work [-]",
        ),
    ),
    "soft_tipped_arm": Scene(motion(shapes=4), ("rate of decay [1/s]", "slow root of the law [1/s]")),
    "sorosim_manual": Scene(
        motion(shapes=5, trail="link 2"), ("degrees of freedom", "missing of the weight", "energy balance residual")
    ),
    "swing_up": Scene(
        motion(shapes=9, trail="arm", span=(0.0, 0.4)),
        (
            "distance from upright at the end [m]",
            "largest torque, of what holds it out [-]",
            "largest swing back [rad]",
        ),
    ),
    "tendon_swimmer": Scene(
        motion(shapes=3, span=(0.35, 1.0), view=(60, -80)), ("velocity [m/s]", "the same by bdf [m/s]")
    ),
    "trimmed_helicoid": Scene(motion(shapes=2), ("rate of decay [1/s]",)),
    "underactuated_linkage": Scene(motion(shapes=5), ("angular impulse mismatch", "largest moment in the ball [N·m]")),
    "underwater_vehicle": Scene(motion(shapes=3), ("advance [m]", "mismatch of the derivatives")),
    "wheels": Scene(
        motion(1, shapes=4, trail="arm", span=(0.0, 0.65), view=(35.0, -60.0)),
        (
            "snakeboard > way [m]",
            "snakeboard > off its own equations [m]",
            "car > radius of the circle [m]",
            "car > arm off that on a turntable [-]",
            "car > least load of a wheel or the caster [N]",
        ),
    ),
}

FILMS = {
    "cdm": Film(part=0.6, options={"trail": "arm"}),
    "cdm_contact": Film(part=0.5, options={"trail": "arm"}),
    "cdm_tracking": Film(options={"trail": "arm", "speed": 0.5}),
    "drones": Film(options={"speed": 0.5}),
    "fin_ray_finger": Film(part=0.5, options={"trail": "clamped 6"}),
    "implicit_methods": Film(at=3, options={"trail": "arm", "speed": 0.5}),
    "mug": Film(options=MUG),
    "parallel_robot": Film(options={"speed": 0.5}),
    "swing_up": Film(options={"trail": "arm"}),
    "tendon_swimmer": Film(part=0.6, size=(640, 200), options={"trail": "passive", "speed": 0.5}),
    "underwater_vehicle": Film(part=0.5, size=(480, 300)),
}

ROBOTS: dict[str, Callable[[], Shot]] = {
    "robots/cdm": lambda: described("examples/robots/cdm.yaml", [0, 0, 8.0, 0, 6.0]),
    "robots/hybrid_arm": lambda: described("examples/robots/hybrid_arm.yaml"),
    "robots/serial_robot": lambda: described("examples/robots/serial_robot.yaml"),
    "robots/ur10": lambda: described("examples/robots/ur10.yaml", q=POSTURE),
    "robots/ur10e": lambda: described("examples/robots/ur10e.yaml", q=POSTURE),
}
