"""A UR10 that carries a passive soft cylinder, its joints led along a path (Pustina 2025, simulation 9).

The joints of the robot, whose file is `examples/robots/ur10.yaml`, shall follow cos t, from 0. The silicone cylinder at
its flange, 80 cm long, bends with constant curvature; nothing drives it. Partial feedback linearisation that knows the
cylinder makes the errors obey ë + 50 ė + 100 e = 0, so that they decay as exp(−2.09 t), whatever the cylinder does. Two
simpler laws are compared: one has the mass of the cylinder but not the effect of its own accelerations on the joints;
the other, which the paper calls incomplete, is for the robot without cylinder. Neither brings the errors to zero. The
wrist, which has the least inertia of its own, is off most. Under each of them the cylinder's motion stays bounded.

The paper prints C = 8 GPa, with which the cylinder sags by less than a tenth of a millimetre. As in its other
simulations of arms of silicone MPa are taken, with which it sways. `examples/free_arms.py` describes its material.

    python examples/soft_tipped_arm.py out/soft_tipped_arm
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

FILE = Path(__file__).parent / "robots" / "ur10.yaml"
SOFT = runpy.run_path(str(Path(__file__).parent / "free_arms.py"))
LENGTH, RADIUS, C, ETA = 0.8, 0.02, 8e6, 0.054
PROPORTIONAL, DERIVATIVE = 100.0, 50.0  # [1/s²] and [1/s]
DURATION, ROWS = 6.0, 601  # [s]
START = np.array([0.0] * 6 + [np.pi / 4, -np.pi / 4, 0.0])  # angles [rad], curvatures times the length [rad], [m]
OUTWARDS = ((0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 1))  # x along the axis of the flange
LAWS = "complete", "without passive accelerations", "for the robot alone"


def build(soft: bool = True, *, native: bool = False) -> ls.Model:
    """The robot with its soft tip, bending about y and z and stretching, a deformable body or a rod; or alone."""
    robot = ls.load_robot(FILE)
    if soft:
        motion = ls.KinematicsStrain.constant_curvature(LENGTH, elongation=True)
        cylinder = SOFT["slender"](motion, (RADIUS, RADIUS), C, ETA, native=native)
        place = robot.frames["flange"].placement @ np.array(OUTWARDS)
        robot.add_link("cylinder", cylinder, parent="wrist_3", placement=place)
    return robot.build()


def wanted(t: float) -> np.ndarray:
    """The path of the joints [rad]."""
    return np.full(6, np.cos(t))


def controller(name: str, model: ls.Model, alone: ls.Model) -> ls.Controller:
    """One of the laws, by its name."""
    gains: dict[str, Any] = {"proportional": PROPORTIONAL, "derivative": DERIVATIVE}
    gains |= {"velocity": lambda t: np.full(6, -np.sin(t)), "acceleration": lambda t: np.full(6, -np.cos(t))}
    if name == LAWS[2]:
        law = ls.partial_feedback_linearization(alone, wanted, **gains)
        return ls.Controller(lambda t, q, v, z: law.output(t, q[:6], v[:6], z))
    return ls.partial_feedback_linearization(model, wanted, complete=name == LAWS[0], **gains)


def follow(name: str, model: ls.Model, alone: ls.Model, duration: float = DURATION) -> ls.Trajectory:
    """The motion under a law."""
    start = START / np.array([1.0] * 6 + [LENGTH] * 3)
    times = np.linspace(0.0, duration, round(duration / DURATION * (ROWS - 1)) + 1)
    law = controller(name, model, alone)
    return ls.simulate(model, duration, start, controller=law, t_eval=times, rtol=1e-7, atol=1e-9)


def errors(motion: ls.Trajectory) -> np.ndarray:
    """How far the joints are from their path, shape (n, 6) [rad]."""
    return np.cos(motion.t)[:, None] - motion.q[:, :6]


def rate(motion: ls.Trajectory) -> float:
    """At which the errors of all joints together decay, once the fast root has died out [1/s]."""
    size = np.linalg.norm(errors(motion), axis=1)
    some = (motion.t > 0.3) & (motion.t < 4.0)
    return float(-np.polyfit(motion.t[some], np.log(size[some]), 1)[0])


def main(out: str | Path | None = None, duration: float = DURATION, *, native: bool = False) -> dict[str, float]:
    """Errors at the end, the rate of decay, and how far the cylinder bends; pictures in `out`."""
    model, alone = build(native=native), build(soft=False)
    motions = {name: follow(name, model, alone, duration) for name in LAWS}
    roots = np.roots([1.0, DERIVATIVE, PROPORTIONAL])
    found = {"slow root of the law [1/s]": float(-roots.max()), "rate of decay [1/s]": rate(motions[LAWS[0]])}
    last = motions[LAWS[0]].t > duration - 1.0
    for name, motion in motions.items():
        late = np.abs(errors(motion)[last]).max(axis=0)
        found[f"{name}: largest error of an arm joint in the last second [rad]"] = float(late[:3].max())
        found[f"{name}: of a wrist joint [rad]"] = float(late[3:].max())
        bend = LENGTH * np.hypot(motion.q[:, 6], motion.q[:, 7])
        found[f"{name}: largest bend [rad]"] = float(bend.max())
        found[f"{name}: largest torque [N·m]"] = float(np.abs(motion.u).max())
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _plot(model, motions, Path(out))
    return found


def _plot(model: ls.Model, motions: dict[str, ls.Trajectory], folder: Path) -> None:
    from matplotlib.figure import Figure

    best = motions[LAWS[0]]
    tip = ls.frame_pose(model, best.q, "cylinder")[:, :3, 3]
    shown = np.searchsorted(best.t, np.linspace(0.0, min(3.1, best.t[-1]), 5))
    ls.plot_shapes(model, best.q[shown], trail=tip, values=best.t[shown], value_label="time [s]", view=(18, -65),
                   title="UR10 with a soft tip, and the tip's path", path=folder / "shapes.png")  # fmt: skip
    figure = Figure(figsize=(7.5, 8), layout="constrained")
    worst, bending, torque = figure.subplots(3, 1, sharex=True)
    for name, motion in motions.items():
        worst.semilogy(motion.t, np.abs(errors(motion)).max(axis=1), label=name)
        bending.plot(motion.t, LENGTH * np.hypot(motion.q[:, 6], motion.q[:, 7]), label=name)
        torque.plot(motion.t, np.abs(motion.u).max(axis=1))
    worst.plot(best.t, np.exp(np.roots([1.0, DERIVATIVE, PROPORTIONAL]).max() * best.t), "k:", label="exp(−2.09 t)")
    worst.legend(frameon=False, fontsize=9)
    torque.set_yscale("log")
    words = "largest error of the joints [rad]", "bend of the cylinder [rad]", "largest torque [N·m]"
    for axes, title in zip((worst, bending, torque), words):
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(alpha=0.3)
    torque.set(xlabel="t [s]", xlim=(0, best.t[-1]))
    figure.savefig(folder / "motion.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
