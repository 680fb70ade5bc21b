"""Robots of the tasks that come along."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lissom.model.model import Model
from lissom.robot.bases import BasisLegendre
from lissom.robot.bodies import Rod
from lissom.robot.materials import Material
from lissom.robot.robot import Robot
from lissom.robot.sections import SectionCircle


def manipulator() -> Model:
    """The cable-driven manipulator of Mathew 2025 §4.5: a tapered silicone arm that hangs out from a wall, with three
    straight tendons near its surface and two that wind round it twice."""
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
    """Path of a tendon that winds round the arm twice, (y, z) [m]."""
    return lambda s: (0.015 * np.sin(4.0 * np.pi * s), sign * 0.015 * np.cos(4.0 * np.pi * s))
