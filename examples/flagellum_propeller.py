"""A propeller of one soft flagellum (SoRoSim 2022 §6, figure 16).

The body slides along x on a passive prismatic joint. Its shaft turns by the prescribed angle 5.1 t and carries a hook,
a soft cylinder that is curved without stress, and the hook a soft, conical filament; drag and lift of still water do
the rest, for ten seconds. The motion of the shaft is a joint motion; its multiplier is the torque of the motor.

A straight filament of this kind pushes the body away from itself whichever way the shaft turns, for it bends back
against the motion. Lift, which is across filament and velocity, tells the spins apart: it adds to the thrust of one
and takes from that of the other. A mirror changes spin and lift together and leaves the speed. The hook and the
filament turn as a rigid shape in the end, so that the force of the water on them, integrated here once more along
them, must be the drag of the body, and its moment the torque of the motor.

The paper takes its sizes from work that prints elsewhere, so they are chosen: a body of 15 cm by 8 cm, a hook of 4 cm
that bends by 60°, a filament of 20 cm whose radius falls from 10 to 2 mm, silicone of 1 MPa, everything neutrally
buoyant; drag coefficients 1.1 across and 0.01 along, and a lift of 0.1 with the sign that helps.

    python examples/flagellum_propeller.py out/flagellum_propeller
"""

from __future__ import annotations

import sys
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import lissom as ls

WATER, SPEED, DURATION = 1000.0, 5.1, 10.0  # [kg/m³, rad/s, s]
BODY, BODY_RADIUS, SHAFT, SHAFT_RADIUS = 0.15, 0.04, 0.02, 0.012  # lengths and radii [m]
HOOK, BEND, FILAMENT, RADIUS, TIP = 0.04, pi / 3, 0.2, 0.01, 0.002  # [m, rad, m, m, m]
DRAG, ALONG, LIFT = 1.1, 0.01, 0.1
SOFT = ls.Material(young=1e6, poisson=0.5, density=WATER, viscosity=1e4)


def pose(turn: tuple[float, ...], *x: float) -> np.ndarray:
    """The pose that turns by a rotation vector and shifts, 4x4."""
    g = np.eye(4)
    g[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    g[:3, 3] = x
    return g


def propeller(spin: float = SPEED, lift: float = LIFT, ahead: bool = False) -> ls.Model:
    """The robot; `spin` [rad/s] is about the shaft's way out of the body, to −x, or to x for a filament ahead of it."""
    robot = ls.Robot("flagellum propeller")
    body = ls.RigidBody.cylinder(BODY, BODY_RADIUS, density=WATER)
    robot.add_link("body", body, ls.JointPrismatic((1, 0, 0)))
    end = (BODY + SHAFT) / 2 * (1 if ahead else -1)
    shaft = ls.RigidBody.cylinder(SHAFT, SHAFT_RADIUS, density=WATER)
    place = pose((0, 0, 0 if ahead else pi), end, 0, 0)
    robot.add_link("shaft", shaft, ls.JointRevolute((1, 0, 0)), "body", placement=place)
    robot.add_joint_motion("motor", "shaft", position=lambda t: spin * t, velocity=lambda t: spin,
                           acceleration=lambda t: 0.0)  # fmt: skip
    bends = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1), ls.BasisLegendre(torsion=3, bending_y=3, bending_z=3)
    hook = ls.Rod(HOOK, ls.SectionCircle(RADIUS), bends[0], SOFT, reference_strain=(0, 0, BEND / HOOK, 1, 0, 0))
    robot.add_link("hook", hook, parent="shaft", placement=pose((0, 0, 0), SHAFT / 2, 0, 0))
    robot.add_link("filament", ls.Rod(FILAMENT, ls.SectionCircle((RADIUS, TIP)), bends[1], SOFT), parent="hook")
    felt = ls.Hydrodynamics(drag_normal=DRAG, drag_tangent=ALONG, lift=lift)
    robot.set_fluid(WATER, default=ls.Hydrodynamics(drag_normal=DRAG), links={"hook": felt, "filament": felt})
    return robot.build()


def swim(model: ls.Model, duration: float = DURATION) -> ls.Trajectory:
    """The motion from rest, with rows every 10 ms."""
    return ls.simulate(model, duration, t_eval=np.linspace(0.0, duration, round(100 * duration) + 1), rtol=1e-7)


def mean_speed(motion: ls.Trajectory, turns: int = 1) -> float:
    """Over the last turns but `turns` − 1 of the shaft [m/s]."""
    period = 2 * pi / SPEED
    start, stop = (np.interp(motion.t[-1] - k * period, motion.t, motion.q[:, 0]) for k in (turns, turns - 1))
    return float((stop - start) / period)


def thrust_and_moment(model: ls.Model, q: np.ndarray, v: np.ndarray, lift: float = LIFT) -> np.ndarray:
    """Force along x and moment about it of drag and lift on hook and filament, integrated here, shape (2,)."""
    x, weights = np.polynomial.legendre.leggauss(40)
    s, total = (x + 1) / 2, np.zeros(2)
    for name, length, radius in (("hook", HOOK, 0 * s + RADIUS), ("filament", FILAMENT, RADIUS + (TIP - RADIUS) * s)):
        velocity = ls.frame_twist(model, q, v, name, s=s)[:, 3:]
        across = np.column_stack([0 * s, -velocity[:, 2], velocity[:, 1]])
        wet = np.column_stack([ALONG * pi * radius, DRAG * radius, DRAG * radius])
        force = -WATER * np.linalg.norm(velocity, axis=1)[:, None] * (wet * velocity + lift * radius[:, None] * across)
        g = ls.frame_pose(model, q, name, s=s)
        push = np.einsum("kij,kj->ki", g[:, :3, :3], force)
        moment = np.cross(g[:, :3, 3], push)
        total += length / 2 * weights @ np.column_stack([push[:, 0], moment[:, 0]])
    return total


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """Speeds of the propeller, of its mirror image and of others; the picture goes to the folder `out`."""
    models = {
        "swimming": propeller(),
        "mirrored": propeller(-SPEED, -LIFT),
        "filament ahead": propeller(ahead=True),
        "other spin": propeller(-SPEED),
        "no lift": propeller(lift=0.0),
        "no lift, other spin": propeller(-SPEED, 0.0),
        "shaft at rest": propeller(0.0),
    }
    motions = {name: swim(model, duration) for name, model in models.items()}
    model, motion = models["swimming"], motions["swimming"]
    mirror = ls.frame_pose(models["mirrored"], motions["mirrored"].q, "filament")[:, :3, 3] * (1, 1, -1)
    tip = ls.frame_pose(model, motion.q, "filament")[:, :3, 3]
    push = thrust_and_moment(model, motion.q[-1], motion.v[-1])
    shadow = pi * (BODY_RADIUS**2 + SHAFT_RADIUS**2)  # of body and shaft
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot(model, motions, tip, folder)
    return {
        **{f"speed, {name} [m/s]": mean_speed(each) for name, each in motions.items()},
        "speed a turn earlier [m/s]": mean_speed(motion, 2),
        "path of the tip from that in the mirror [m]": float(np.abs(tip - mirror).max()),
        "thrust [N]": float(push[0]),
        "drag of the body [N]": float(0.5 * WATER * DRAG * shadow * motion.v[-1, 0] ** 2),
        "moment of the water [N·m]": float(push[1]),
        "torque of the motor [N·m]": float(motion.multipliers[-1, 0]),
    }


def _plot(model: ls.Model, motions: dict[str, ls.Trajectory], tip: np.ndarray, folder: Path) -> None:
    from matplotlib.figure import Figure

    motion = motions["swimming"]
    stop = int(np.searchsorted(motion.t, 3.5))
    shown = np.linspace(0, stop, 5).astype(int)
    ls.plot_shapes(model, motion.q[shown], trail=tip[: stop + 1], values=motion.t[shown], value_label="time [s]",
                   title="the propeller, and the path of its tip", view=(22, -62),
                   path=folder / "shapes.png")  # fmt: skip
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes: Any = figure.subplots()
    for name, each in motions.items():
        style = "--" if name in ("mirrored", "no lift, other spin") else "-"
        axes.plot(each.t, 100 * each.v[:, 0], style, label=name, linewidth=1.4)
    axes.set_title("speed of the body along x [cm/s]", loc="left", fontsize=10)
    axes.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(alpha=0.3)
    figure.savefig(folder / "speed.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.6g}")
