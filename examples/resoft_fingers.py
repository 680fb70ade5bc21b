"""The three shapes of the ReSoft gripper under one tension (SoRoSim 2022, §6 and figure 18).

The middle finger is fixed to the palm. The other two stand on revolute joints about the axis of the palm that turn by
one angle in opposite directions: at 0° all fingers lie on each other, at 120° they are a tripod, at 180° two of them
face the third. One motor pulls the tendons of all three with 2.5 N. The paper gives no sizes; those of the fingers are
those of `resoft_gripper.py`.

Reference: gravity is along the axis of the palm, so that each finger is the middle one turned about this axis.

    python examples/resoft_fingers.py resoft_fingers.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import lissom as ls

ANGLES, TENSION, PALM = (0.0, 120.0, 180.0), 2.5, 0.04  # [deg], [N], radius of the palm [m]
FINGERS = "middle", "left", "right"
SILICONE = ls.Material(young=1e6, poisson=0.5, density=1100, viscosity=3e3)


def about_z(angle: float) -> np.ndarray:
    """4x4 of a turn about the axis of the palm."""
    g = np.eye(4)
    g[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return g


def robot() -> ls.Robot:
    """Palm, carriers and fingers; the time of the motions is the angle of the carriers [rad]."""
    made = ls.Robot("ReSoft fingers")
    upright = np.eye(4)
    upright[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    upright[2, 3] = 0.006
    made.add_link("palm", ls.RigidBody.cylinder(0.012, PALM + 0.012, density=1200), placement=upright)
    base = np.eye(4)  # of a finger: x down along it, y inwards
    base[:3] = np.array([[0, -1, 0, PALM], [0, 0, 1, 0], [-1, 0, 0, 0]])
    basis = ls.BasisLegendre(bending_z=4)
    finger = ls.Rod(0.11, ls.SectionCircle((0.009, 0.006)), basis, SILICONE)
    for name, turn in zip(FINGERS, (0, 1, -1)):
        if turn:
            carrier = ls.RigidBody.box(0.01, 0.01, 0.01, density=1000)
            made.add_link(f"{name} carrier", carrier, ls.JointRevolute((0, 0, turn)))
            made.add_joint_motion(f"{name} turn", f"{name} carrier", position=lambda t: t)
        made.add_link(name, finger, parent=f"{name} carrier" if turn else None, placement=base)
        made.add_tendon(f"{name} tendon", name, offset=lambda s: (0.8 * (0.009 - 0.003 * s), 0.0))
    made.couple_inputs("motor", {f"{name} tendon": 1.0 for name in FINGERS})
    return made


def main(out: str | None = None) -> dict[str, Any]:
    """Equilibria at the three angles; returns the tip of the middle finger and how far others are from turned ones."""
    model = robot().build()
    rows, apart = [], 0.0
    for angle in np.radians(ANGLES):
        rest = ls.solve_statics(model, [TENSION], v=np.zeros(model.nv), t=float(angle))
        tips = {name: ls.frame_pose(model, rest.q, name)[:3, 3] for name in FINGERS}
        for name, turn in zip(FINGERS, (0, 1, -1)):
            expected = about_z(turn * angle)[:3, :3] @ tips["middle"]
            apart = max(apart, float(np.linalg.norm(tips[name] - expected)))
        assert bool(rest.is_stable)
        rows.append(rest.q)
    x, _, z = tips["middle"]
    if out:
        ls.render(model, rows[1], out)
    return {"tip from the axis [m]": float(x), "tip below the palm [m]": float(-z), "tips off by [m]": apart}


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else None))
