"""The robots of the gallery, by name, for exports of all of them."""

from copy import deepcopy
from dataclasses import replace
from types import FunctionType

import numpy as np
from exporting.built import finger, machine
from exporting.functions_of_users import robot_of_functions
from gallery.examples import EXAMPLES, example

import lissom as ls


def _piled(robot: ls.Robot, q: np.ndarray) -> ls.Robot:
    """Free bricks that begin at places, and not all in one."""
    return robot.with_({f"{name}.joint.start": row.tolist() for name, row in zip(robot.links, q.reshape(-1, 7))})


_CALLS = {  # the example, how its module makes the robot or the model
    "brick_tower": lambda m: _piled(m.tower().description, m.piled(0.0)),
    "cdm_contact": lambda m: m.robot(),
    "chain": lambda m: m.robot(),
    "continuum_parallel_robot": lambda m: m.planar(m.CASES[0]),
    "custom_cable": lambda m: m.rod(3),
    "designed_arm": lambda m: m.build(),
    "designed_finger": lambda m: m.build(),
    "drones": lambda m: m.robot(),
    "fin_ray_finger": lambda m: m.robot(),
    "flagellum_propeller": lambda m: m.propeller(),
    "follower_beam": lambda m: m.beam(3),
    "free_arms": lambda m: m.build(next(iter(m.ARMS)), native=True),
    "free_fall": lambda m: m.rod(1e4),
    "hybrid_arm": lambda m: m.build(),
    "hybrid_hand": lambda m: m.robot(),
    "inflated_arm": lambda m: m.build(),
    "learned_map": lambda m: m.finger(*m.elements()).model,  # the elements; JAX evaluates what learns from them
    "many_bodies": lambda m: m.chain(20),
    "mechanisms": lambda m: m.four_bar(),
    "mug": lambda m: m.robot(),
    "obstacle_path": lambda m: m.robot(),
    "painleve_rod": lambda m: m.robot(0.3),
    "parallel_robot": lambda m: m.build(),
    "peg_in_hole": lambda m: m.robot(0.3),
    "rattleback": lambda m: m.robot(),
    "reach_behind": lambda m: m.build(),
    "resoft_fingers": lambda m: m.robot(),
    "resoft_gripper": lambda m: m.robot(),
    "shape_regulation": lambda m: m.build(native=True),
    "single_rods": lambda m: m.flying_rod(next(iter(m.FLIGHT))),
    "snake_in_a_maze": lambda m: m.robot(),
    "soft_tipped_arm": lambda m: m.build(native=True),
    "sorosim_manual": lambda m: m.robot(),
    "swing_up": lambda m: m.build(),
    "tendon_swimmer": lambda m: m.swimmer(),
    "trimmed_helicoid": lambda m: m.build(),
    "underactuated_linkage": lambda m: m.robot(),
    "underwater_vehicle": lambda m: m.vehicle(),
    "wheels": lambda m: m.snakeboard(),
}
FILES = sorted(f"robots/{path.name}" for path in (EXAMPLES / "robots").glob("*.yaml"))
OWN = {"finger": finger, "machine": machine, "users": robot_of_functions}
GALLERY = (*_CALLS, *FILES)


def _expression(value):
    """In place of a Python function of time, which exports refuse: an expression that begins with the same value."""
    if not isinstance(value, FunctionType):
        return value
    start = np.asarray(value(0.0), dtype=float)
    texts = [f"{float(x)!r} + 0.05*(1 - cos(5*t))" for x in start.ravel()]
    return ls.Expression(texts if start.ndim else texts[0], "t")


def by_expressions(robot: ls.Robot) -> ls.Robot:
    """A copy of a robot with expressions in place of Python functions of time."""
    robot = deepcopy(robot)
    for name, one in robot.motions.items():
        if isinstance(one.position, FunctionType):
            robot.motions[name] = replace(one, position=_expression(one.position), velocity=None, acceleration=None)
    for name, one in robot.loads.items():
        robot.loads[name] = replace(one, force=_expression(one.force), moment=_expression(one.moment))
    return robot


def model_of(name: str) -> ls.Model:
    """The model of a robot of the gallery, whose functions of time are expressions, or of the tests of exports."""
    if name in OWN:
        return OWN[name]().build()
    if name in FILES:
        return ls.load_robot(EXAMPLES / name).build()
    made = _CALLS[name](example(name))
    robot = made if isinstance(made, ls.Robot) else made.description
    values = [one for x in (*robot.motions.values(), *robot.loads.values()) for one in vars(x).values()]
    if any(isinstance(one, FunctionType) for one in values):
        return by_expressions(robot).build()
    return made.build() if isinstance(made, ls.Robot) else made
