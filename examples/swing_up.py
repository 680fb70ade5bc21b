"""A soft arm on a weak motor swings itself up and stands.

The arm, a rod of rubber that bends, hangs from a hinge whose motor gives half the torque that would hold it out
horizontally: it must swing, and its bending with it. Model predictive control looks one second ahead at a cost of the
tip's distance from upright, knows the limits of the motor, and after the swing keeps the arm standing, which it does
not do by itself.

    python examples/swing_up.py out/swing_up
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import lissom as ls

LENGTH, RADIUS, DENSITY = 0.5, 0.01, 1000.0
PERIOD, AHEAD = 0.02, 50  # [s], steps


def build() -> ls.Model:
    """The arm; x points down."""
    rubber = ls.Material(young=2e7, poisson=0.5, density=DENSITY, viscosity=1e5)
    robot = ls.Robot("soft pendulum", gravity=(9.81, 0.0, 0.0))
    rod = ls.Rod(LENGTH, ls.SectionCircle(RADIUS), ls.BasisLegendre(bending_z=2), rubber)
    robot.add_link("arm", rod, ls.JointRevolute((0, 0, 1), damping=1e-3))
    robot.add_joint_actuator("motor", "arm")
    return robot.build()


def weakest() -> float:
    """The torque that holds the straight arm out horizontally [N·m]."""
    return DENSITY * np.pi * RADIUS**2 * LENGTH * 9.81 * 0.5 * LENGTH


def swing(model: ls.Model, duration: float = 4.0) -> ls.Trajectory:
    """The motion from hanging at rest."""
    speeds = np.zeros(2 * model.nv)
    speeds[model.nv] = 0.02
    limit = 0.5 * weakest()
    cost = ls.TrackingCost(
        model, inputs=0.5, state=speeds, points={"arm": 10.0}, point_reference=[[-LENGTH, 0.0, 0.0]], end=0.5
    )
    control = ls.ModelPredictiveControl(model, cost, dt=0.02, steps=AHEAD, limits=(-limit, limit), iterations=5)
    law = control.controller(PERIOD, u0=[0.5 * limit])
    return ls.simulate(model, duration, controller=law, period=PERIOD, t_eval=np.arange(0.0, duration + 0.01, 0.02))


def main(out: str | Path | None = None) -> dict[str, float]:
    """The end of the tip, the torque of the motor, the angle of the first swing back; a picture in `out`."""
    model = build()
    motion = swing(model)
    tip = ls.frame_pose(model, motion.q, "arm")[:, :3, 3]
    away = np.linalg.norm(tip + np.array([LENGTH, 0.0, 0.0]), axis=1)
    if out is not None:
        _plot(model, motion, tip, Path(out))
    return {
        "distance from upright at the end [m]": float(away[-1]),
        "largest torque, of what holds it out [-]": float(np.abs(motion.u).max() / weakest()),
        "largest swing back [rad]": float(min(motion.q[:, 0].max(), -motion.q[:, 0].min())),
        "largest bend [rad]": float(np.abs(LENGTH * motion.q[:, 1]).max()),
        "upright after [s]": float(motion.t[np.flatnonzero(away > 0.05)[-1]]),
    }


def _plot(model: ls.Model, motion: ls.Trajectory, tip: np.ndarray, folder: Path) -> None:
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    plane, torque = figure.subplots(1, 2)
    for row in motion.q[::6]:
        line = ls.frame_pose(model, row, "arm", np.linspace(0.0, 1.0, 15))[:, :3, 3]
        plane.plot(line[:, 1], -line[:, 0], color="C0", alpha=0.4)
    plane.plot(tip[:, 1], -tip[:, 0], color="C1", linewidth=1)
    plane.set(aspect="equal", xlabel="y [m]", ylabel="up [m]")
    torque.plot(motion.t, motion.u[:, 0] / weakest())
    torque.set(xlabel="t [s]", ylabel="torque, of what holds it out")
    figure.savefig(folder / "swing_up.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
