"""An underwater vehicle that two turning shafts with three soft flagella each drive (Mathew 2025 §6.3, figures 16, 17).

A rigid body that is free to move carries a shaft in front and one behind, on revolute joints; hooks join three flagella
to each, 35 cm long in front and 50 cm behind. Flagella are Kirchhoff rods with cubic torsion and bendings, 12
coordinates each: 80 in all. Their material is that of the paper's manipulator, neutrally buoyant like everything else.
The shafts are driven by +0.25 and −0.25 N·m for ten seconds, so that the body does not roll.

Chosen here, as the paper does not print it: body and shafts are cylinders of 30 x 16 cm and 4 x 8 cm; the hooks are
rigid, 5 cm long and at right angles to the shafts, and their flagella lean from them by 60° towards the axis; drag
coefficients 1.1 across and 0.01 along, no lift. The printed base radius of the flagella, 12.5 cm, cannot be meant, as
it is a third of their length: 12.5 mm. They end in tips of half a millimetre, as a section must have a width.

    python examples/underwater_vehicle.py out/underwater_vehicle
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import lissom as ls

WATER = 1000.0  # [kg/m³], and of everything in it
BODY, BODY_RADIUS, SHAFT, SHAFT_RADIUS = 0.3, 0.08, 0.04, 0.04  # lengths and radii [m]
FRONT, REAR, RADIUS, TIP = 0.35, 0.5, 0.0125, 0.0005  # lengths and radii of the flagella [m]
HOOK, BEND = 0.05, pi / 3  # length of a hook [m], and how far its flagellum leans towards the axis [rad]
TORQUES = np.array([0.25, -0.25])  # of the shafts in front and behind [N·m]
SOFT = ls.Material(young=1e6, poisson=0.5, density=WATER, viscosity=1e4)
SIDES = "front", "rear"
DURATION, DT, STEP = 10.0, 0.01, 1e-5  # of the motion [s], of generalized_alpha [s], of differences
REPEATS = 20  # of each timing, both ways in turn
FLAGELLA = tuple(f"{side} {k}" for side in SIDES for k in range(3))


def pose(turn: tuple[float, ...], *x: float) -> np.ndarray:
    """The pose that turns by a rotation vector and shifts, 4x4."""
    g = np.eye(4)
    g[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    g[:3, 3] = x
    return g


def vehicle(front: float = FRONT, rear: float = REAR) -> ls.Robot:
    """The vehicle, with its flagella of these lengths [m]; the rear is the front turned around z by half a turn."""
    robot = ls.Robot("underwater vehicle")
    robot.add_link("body", ls.RigidBody.cylinder(BODY, BODY_RADIUS, density=WATER), ls.JointFree())
    hook = ls.RigidBody.cylinder(HOOK, RADIUS, density=WATER)
    for side, length, turn in zip(SIDES, (front, rear), (0.0, pi)):
        end, axis = np.cos(turn) * (BODY + SHAFT) / 2, (np.cos(turn), 0, 0)  # both axes are the body's x
        shaft = ls.RigidBody.cylinder(SHAFT, SHAFT_RADIUS, density=WATER)
        place = pose((0, 0, turn), end, 0, 0)
        robot.add_link(f"{side} shaft", shaft, ls.JointRevolute(axis), "body", placement=place)
        basis = ls.BasisLegendre(torsion=3, bending_y=3, bending_z=3)
        flagellum = ls.Rod(length, ls.SectionCircle((RADIUS, TIP)), basis, SOFT)
        for k in range(3):
            outwards = pose((2 * pi / 3 * k, 0, 0), 0, 0, 0) @ pose((0, 0, pi / 2), 0, SHAFT_RADIUS + HOOK / 2, 0)
            robot.add_link(f"{side} hook {k}", hook, parent=f"{side} shaft", placement=outwards)
            lean = pose((0, 0, -BEND), HOOK / 2, 0, 0)
            robot.add_link(f"{side} {k}", flagellum, parent=f"{side} hook {k}", placement=lean)
        robot.add_joint_actuator(f"{side} motor", f"{side} shaft")
    robot.set_fluid(WATER, default=ls.Hydrodynamics(drag_normal=1.1, drag_tangent=0.01))
    return robot


def swim(model: ls.Model, torques: np.ndarray = TORQUES, duration: float = DURATION, **options: Any) -> ls.Trajectory:
    """The motion from rest, with rows every `DT`."""
    times = np.linspace(0.0, duration, round(duration / DT) + 1)
    return ls.simulate(model, duration, u=torques, t_eval=times, **options)


def tips(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """Where the six tips are, shape (6, n, 3) [m]."""
    return np.array([ls.frame_pose(model, motion.q, name)[:, :3, 3] for name in FLAGELLA])


def roll(model: ls.Model, motion: ls.Trajectory) -> float:
    """The largest angle by which the body turned [rad]."""
    turns = Rotation.from_matrix(ls.frame_pose(model, motion.q, "body")[:, :3, :3])
    return float(turns.magnitude().max())


def advance(model: ls.Model, motion: ls.Trajectory) -> float:
    """How far the body went along its axis [m]."""
    return float(ls.frame_pose(model, motion.q[-1], "body")[0, 3])


def differences(model: ls.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Derivatives of the acceleration by q and v, from central differences in one batch, shape (nv, 2 nv)."""
    h, n = STEP * model.dofs.scale, model.nv
    moves = np.concatenate([np.diag(h), -np.diag(h)])
    still, same = np.zeros_like(moves), np.broadcast_to(u, (4 * n, model.nu))
    at, speeds = np.concatenate([moves, still]), v + np.concatenate([still, moves])
    a = ls.forward_dynamics(model, ls.integrate(model, np.broadcast_to(q, (4 * n, model.nq)), at), speeds, same)
    pairs = a.reshape(2, 2, n, n)
    return np.concatenate((pairs[:, 0] - pairs[:, 1]) / (2 * h[:, None])).T


def derivative_study(model: ls.Model, motion: ls.Trajectory) -> dict[str, float]:
    """Exact derivatives of the acceleration against central differences, half-way through a motion."""
    q, v, u = (rows[len(motion.t) // 2] for rows in (motion.q, motion.v, motion.u))
    exact = np.hstack(ls.forward_dynamics_derivatives(model, q, v, u)[:2])
    scale = np.tile(model.dofs.scale, 2) / model.dofs.scale[:, None]
    wrong = np.abs((exact - differences(model, q, v, u)) * scale).max() / np.abs(exact * scale).max()
    ways = (lambda: differences(model, q, v, u), lambda: ls.forward_dynamics_derivatives(model, q, v, u))
    slow, fast = np.min([[_time(way) for way in ways] for _ in range(REPEATS)], axis=0)
    return {
        "mismatch of the derivatives": float(wrong),
        "exact derivatives [ms]": 1e3 * float(fast),
        "differences over exact derivatives, time": float(slow / fast),
    }


def _time(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """The numbers of the vehicle, of its symmetric sister and of one with a single motor at work; pictures in `out`."""
    model, even = vehicle().build(), vehicle(FRONT, FRONT).build()
    motion = swim(model, duration=duration)
    exact = swim(model, duration=duration, method="bdf", rtol=1e-8, atol=1e-10)
    stepped = swim(model, duration=duration, method="generalized_alpha", dt=DT)
    finer = swim(model, duration=duration, method="generalized_alpha", dt=DT / 2)
    symmetric = swim(even, duration=duration)
    single = swim(model, np.array([TORQUES[0], 0.0]), min(duration, 1.0))
    apart = {
        name: np.linalg.norm(tips(model, x) - tips(model, exact), axis=2)
        for name, x in (("esdirk", motion), ("generalized_alpha", stepped), ("generalized_alpha, half the step", finer))
    }
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot(model, motion, {key: apart[key].mean(axis=0) for key in apart}, folder)
    return {
        "coordinates": model.nv,
        "advance [m]": advance(model, motion),
        "roll [rad]": roll(model, motion),
        "advance of the symmetric vehicle [m]": advance(even, symmetric),
        "roll of the symmetric vehicle [rad]": roll(even, symmetric),
        "roll with one motor [rad]": roll(model, single),
        **{f"tips, {name} [m]": float(far.max()) for name, far in apart.items()},
        "energy balance residual": ls.energy_balance(model, exact).residual,
        **derivative_study(model, motion),
    }


def _plot(model: ls.Model, motion: ls.Trajectory, apart: dict[str, np.ndarray], folder: Path) -> None:
    from matplotlib.figure import Figure

    shown = np.linspace(0, len(motion.t) - 1, 3).astype(int)
    ends = dict(zip(FLAGELLA, tips(model, motion)))
    ls.plot_shapes(model, motion.q[shown], trail=[ends["front 0"], ends["rear 0"]], values=motion.t[shown],
                   value_label="time [s]", title="the vehicle, and the paths of a tip in front and of one behind",
                   view=(22, -62), path=folder / "shapes.png")  # fmt: skip
    figure = Figure(figsize=(7, 7.5), layout="constrained")
    spin, speed, error = figure.subplots(3, 1, sharex=True)
    twist = ls.frame_twist(model, motion.q, motion.v, "body")
    for side, color in zip(SIDES, ("C0", "C1")):
        turning = ls.frame_twist(model, motion.q, motion.v, f"{side} shaft")[:, 0] * (1 if side == "front" else -1)
        spin.plot(motion.t, turning, color=color, label=side)
    spin.legend(frameon=False, fontsize=9)
    speed.plot(motion.t, 100 * twist[:, 3], color="C2")
    for name, far in apart.items():
        error.semilogy(motion.t[1:], far[1:], label=name, linewidth=1.0)
    error.legend(frameon=False, fontsize=9)
    words = "spin of the shafts [rad/s]", "speed of the body [cm/s]", "tips from those of bdf at 1e-8, mean [m]"
    for axes, title in zip((spin, speed, error), words):
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(alpha=0.3)
    error.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    figure.savefig(folder / "motion.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
