"""The robots of the tasks of this library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.bases import BasisLegendre
from lissom.robot.bodies import RigidBody, Rod
from lissom.robot.fluid import Hydrodynamics
from lissom.robot.joints import JointFree, JointPlanar, JointPrismatic
from lissom.robot.materials import Material
from lissom.robot.robot import Robot
from lissom.robot.sections import SectionCircle, SectionEllipse
from lissom.robot.shapes import ShapePlane, ShapeSphere

FINGERS = ("finger 1", "finger 2", "finger 3")
_BALL, _DEPTH, _PALM = 0.03, 0.087, 0.04  # ball radius, depth of its centre below the palm, distance of the fingers [m]


def manipulator() -> Model:
    """The cable-driven manipulator of Mathew 2025 §4.5: a tapered silicone arm, horizontal from a wall. Three straight
    tendons run near its surface, and two tendons wind around it twice."""
    robot = Robot("cable-driven manipulator", gravity=(0.0, 0.0, -9.81))
    basis = BasisLegendre(torsion=4, bending_y=4, bending_z=4, elongation=2, shear_y=2, shear_z=2)
    material = Material(young=1e6, poisson=0.5, density=1000.0, viscosity=1e4)
    rod = Rod(0.5, SectionCircle((0.03, 0.015)), basis, material, gauss_points=5, interval_points=2)
    robot.add_link("arm", rod)
    for k, angle in enumerate(np.deg2rad([90.0, 210.0, 330.0])):
        side = np.array([np.cos(angle), np.sin(angle)])
        robot.add_tendon(f"t{k + 1}", "arm", [[s, *((0.03 - 0.015 * s) * side)] for s in (0.0, 1.0)])
    for k, sign in enumerate((1.0, -1.0)):
        robot.add_tendon(f"t{k + 4}", "arm", _winding(sign))
    return robot.build()


def _winding(sign: float) -> Callable[[float], tuple[float, float]]:
    """Path (y, z) [m] of a tendon that winds around the arm twice."""
    return lambda s: (0.015 * np.sin(4.0 * np.pi * s), sign * 0.015 * np.cos(4.0 * np.pi * s))


def pendulum() -> Model:
    """A soft inverted pendulum. A force drives a cart of 0.3 kg between stops at 0.5 m on both sides. On the cart
    stands a silicone rod of 0.5 m, 1.5 times the length up to which it would stand by itself."""
    robot = Robot("soft inverted pendulum")
    rails = JointPrismatic((1.0, 0.0, 0.0), limits=(-0.5, 0.5), limit_stiffness=2e3, limit_damping=20.0)
    robot.add_link("cart", RigidBody.box(0.1, 0.06, 0.05, density=1000.0), rails)
    robot.add_joint_actuator("motor", "cart")
    upright = np.eye(4)
    upright[:3, :3] = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    material = Material(young=1.6e6, poisson=0.5, density=1000.0, viscosity=5e3)
    rod = Rod(0.5, SectionCircle(0.01), BasisLegendre(bending_y=2), material)
    robot.add_link("rod", rod, parent="cart", placement=upright)
    return robot.build()


def swimmer() -> Model:
    """A soft fish of half a metre that moves in a plane, in still water of its own density. Each half has a pair of
    tendons. The nose is at the origin, the tail in the direction of x."""
    robot = Robot("swimmer", gravity=(0.0, 0.0, 0.0))
    section = SectionEllipse(lambda s: 0.03 - 0.022 * s, lambda s: 0.05 - 0.02 * s)  # half-widths
    material = Material(young=1e5, poisson=0.5, density=1000.0, damping_time=0.02)
    robot.add_link("body", Rod(0.5, section, BasisLegendre(bending_z=4), material), JointPlanar())
    for half, start, stop in (("front", 0.0, 0.5), ("rear", 0.5, 1.0)):
        for side, sign in (("left", 1.0), ("right", -1.0)):
            path = [[s, sign * (0.024 - 0.018 * s), 0.0] for s in (0.0, 1.0)]
            robot.add_tendon(f"{side} of {half}", "body", path, start=start, stop=stop)
    robot.add_frame("nose", "body", s=0.0)
    robot.add_frame("middle", "body", s=0.5)
    robot.set_fluid(1000.0, default=Hydrodynamics(drag_normal=1.0, drag_tangent=0.02))
    return robot.build()


def gripper() -> Model:
    """Three soft fingers that hang from a palm, and a ball between them on a table. One motor pulls the tendons of all
    fingers. A damper lets the table sink slowly."""
    robot = Robot("gripper")
    contact: dict[str, Any] = {"stiffness": 1e4, "exponent": 1.5, "damping": 10.0, "friction": 0.8, "slip_speed": 1e-3}
    robot.add_link("palm", RigidBody.box(0.09, 0.09, 0.01, density=1000.0))
    silicone = Material(young=1e6, poisson=0.5, density=1100.0, viscosity=3e3)
    basis = BasisLegendre(torsion=0, bending_y=1, bending_z=4)
    rod = Rod(0.11, SectionCircle((0.009, 0.006)), basis, silicone, gauss_points=7)
    for k, name in enumerate(FINGERS):
        robot.add_link(name, rod, parent="palm", placement=_finger_frame(2.0 * np.pi * k / 3.0))
        robot.add_tendon(f"tendon {k + 1}", name, [[s, 0.8 * (0.009 - 0.003 * s), 0.0] for s in (0.0, 1.0)])
    robot.couple_inputs("motor", {f"tendon {k}": 1.0 for k in (1, 2, 3)})
    robot.add_link("ball", RigidBody.sphere(_BALL, density=300.0), JointFree())
    below = np.eye(4)
    below[2, 3] = -_DEPTH - _BALL - 0.003
    table = RigidBody.box(0.12, 0.12, 0.006, density=500.0)
    robot.add_link("table", table, JointPrismatic((0.0, 0.0, 1.0), damping=18.0), placement=below)
    robot.add_contact("grasp", FINGERS, ShapeSphere(_BALL), on="ball", per_interval=2, **contact)
    top = np.eye(4)
    top[2, 3] = 0.003
    robot.add_contact("stand", "ball", ShapePlane(), on="table", placement=top, **contact)
    return robot.build()


def ball_start(model: Model | ModelBatch) -> tuple[np.ndarray, int]:
    """The start q (nq,) of the gripper, with the ball in equilibrium on the table, and the index of the ball's position
    in q."""
    q, at = model.neutral(), model.nq - 4
    weight = 300.0 * 4.0 / 3.0 * np.pi * _BALL**3 * 9.81
    q[at + 2] = -_DEPTH - (weight / 1e4) ** (2.0 / 3.0)
    return q, at


def _finger_frame(angle: float) -> np.ndarray:
    """Pose of the base of a finger: x points down along the finger, y inwards."""
    inwards, down = -np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, -1.0])
    g = np.eye(4)
    g[:3, :4] = np.column_stack([down, inwards, np.cross(down, inwards), -_PALM * inwards])
    return g
