"""The robots that the benchmarks time, for lissom and for Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np

import lissom as ls


def seven_revolute_arm() -> ls.Model:
    """A 7R arm with alternating axes, 0.2 m links of 1 to 4 kg."""
    robot = ls.Robot("7R arm")
    for k in range(7):
        robot.add_link(
            f"link{k}",
            ls.RigidBody(4.0 - 0.4 * k, com=(0.02, 0.01, 0.1), inertia=(0.03, 0.025, 0.01)),
            ls.JointRevolute(axis=(0, 0, 1) if k % 2 == 0 else (0, 1, 0)),
            parent=f"link{k - 1}" if k else None,
            placement=_shift(0.2 if k else 0.0),
        )
    return robot.build()


def rod_chain() -> ls.Model:
    """Four rods in a row, 12 coordinates and 8 intervals each: 48 degrees of freedom, 32 nodes."""
    robot = ls.Robot("chain of 4 rods")
    for k in range(4):
        robot.add_link(
            f"rod{k}",
            ls.Rod(
                length=0.5,
                section=ls.SectionCircle(radius=0.02),
                material=ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4),
                basis=ls.BasisLegendre(*[1] * 6),
                gauss_points=7,
            ),
            parent=f"rod{k - 1}" if k else None,
        )
    return robot.build()


def _shift(z: float) -> np.ndarray:
    g = np.eye(4)
    g[2, 3] = z
    return g


def pinocchio_arm() -> Any:
    """The 7R arm in Pinocchio."""
    import pinocchio as pin

    model = pin.Model()
    parent = 0
    for k in range(7):
        joint = pin.JointModelRZ() if k % 2 == 0 else pin.JointModelRY()
        placement = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.2 if k else 0.0]))
        parent = model.addJoint(parent, joint, placement, f"joint{k}")
        body = pin.Inertia(4.0 - 0.4 * k, np.array([0.02, 0.01, 0.1]), np.diag([0.03, 0.025, 0.01]))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    return model
