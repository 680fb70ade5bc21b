"""The linkage of SoRoSim's manual: a soft link of two divisions and a rigid link on a driven joint (SoRoSim 2022, §4).

Figures 4 to 9 of the paper describe it by dialogs; here it takes fifteen lines. A soft link is clamped against gravity
along −y. Its first division (0.3 m) has torsion and both bendings of order 1 and is bent in its reference shape, its
second (0.2 m) has constant ones and a reference curvature that grows along it. A force of 5 N along the y-axis of the
section pushes where they meet, and a cable winds around the axis through both. A rigid link hangs from the tip on a
joint about y, whose angle is given. Sizes that the figures do not show are ours: radii of 30 to 20 mm, a silicone of
1 MPa, a helix of radius 20 mm and pitch 0.25 m, a box of 0.2 m.

Statics (figure 10): the angle is −π/2 and the tension 200 N. Dynamics (figure 11): the angle is (π/2) sin 2πt, and the
tension grows to 200 N within a second.

References: the reaction of the clamp is what weight and load leave; the hinge holds the moment of the box about its
axis; the energy balance of the motion closes.

    python examples/sorosim_manual.py sorosim_manual.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import lissom as ls

TENSION, PUSH, GRAVITY = 200.0, 5.0, 9.81
SILICONE = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
BOX = ls.RigidBody.box(0.2, 0.04, 0.04, density=1000)
LENGTHS = 0.3, 0.2  # of the divisions [m]


def helix(x: float) -> tuple[float, float]:
    """(y, z) of the cable at the arc length x of the soft link [m]."""
    return 0.02 * np.cos(2 * np.pi * x / 0.25), 0.02 * np.sin(2 * np.pi * x / 0.25)


def robot(angle: Any = -np.pi / 2) -> ls.Robot:
    """The linkage, with the angle of its joint: a number or a function of time [rad]."""
    made = ls.Robot("manual linkage", gravity=(0, -GRAVITY, 0))
    linear, constant = (ls.BasisMonomial(torsion=n, bending_y=n, bending_z=n) for n in (1, 0))
    bent, growing = (0, 0, 1.0, 1, 0, 0), lambda s: (0, 0.5 * s, 0, 1, 0, 0)
    section = ls.SectionCircle(0.03)
    made.add_link("division 1", ls.Rod(LENGTHS[0], section, linear, SILICONE, reference_strain=bent))
    tapered = ls.SectionCircle((0.03, 0.02))
    second = ls.Rod(LENGTHS[1], tapered, constant, SILICONE, reference_strain=growing)
    made.add_link("division 2", second, parent="division 1")
    made.add_link("link 2", BOX, ls.JointRevolute((0, 1, 0)), parent="division 2")
    made.add_point_load("push", "division 1", force=(0, PUSH, 0), frame="body")
    paths = [
        ls.PathRod("division 1", lambda s: helix(LENGTHS[0] * s)),
        ls.PathRod("division 2", lambda s: helix(LENGTHS[0] + LENGTHS[1] * s)),
    ]
    made.add_tendon("cable", path=paths)
    made.add_joint_motion("hinge", "link 2", position=angle)
    return made


def main(out: str | None = None) -> dict[str, Any]:
    """Equilibrium and motion; returns the angle at rest, what the reactions miss, and the residual of the energies."""
    model = robot().build()
    rest = ls.solve_statics(model, [TENSION])
    g = ls.frame_pose(model, rest.q, "division 1")
    W = ls.joint_wrench(model, rest.q, None, None, rest.u, "division 1", multipliers=rest.multipliers)
    weight = GRAVITY * float(model.links.mass.sum())
    left = W[3:] - (PUSH * g[:3, 1] - weight * np.array([0.0, 1.0, 0.0]))  # the clamp's frame is that of the world
    hinge = ls.frame_pose(model, rest.q, "link 2")
    moment = np.cross(BOX.com, hinge[:3, :3].T @ np.array([0.0, -BOX.mass * GRAVITY, 0.0]))[1]
    moving = robot(ls.Expression("0.5*pi*sin(2*pi*t)", "t")).build()
    ramp = ls.Samples([0.0, 1.0, 2.0], [[0.0], [TENSION], [TENSION]])
    motion = ls.simulate(moving, 2.0, u=ramp)
    if out:
        ls.render(moving, motion, out, trail="link 2", shapes=5)
    return {
        "angle [rad]": float(rest.q[-1]),
        "degrees of freedom": model.nv,
        "missing of the weight": float(np.linalg.norm(left)) / weight,
        "missing in the hinge [N·m]": float(abs(rest.multipliers[0] + moment)),
        "energy balance residual": float(ls.energy_balance(moving, motion).residual),
    }


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else None))
