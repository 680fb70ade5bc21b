"""A continuum parallel robot: two steel legs that meet in a pin (Boyer 2023, example 2, table II, figures 10 to 13).

Two Kirchhoff rods of 1 m stand on motors, and a passive revolute joint closes the loop at their ends: at rest they are
the sides of a triangle with a horizontal axis of symmetry. From both legs along x, an open robot, statics closes the
loop and finds the triangle free of stress. There is no gravity; only the bending in the plane moves, by five Chebyshev
polynomials on each leg, with Kelvin-Voigt damping. Not in the paper are the distance of the motors, here 1 m, and
which leg is the first, here the upper one, for only then does the robot tilt upwards as the paper says.

Reading of table II. The torques start with zero at t = 1 s, and τ_hold is the value of the ramp at 2 s. So the ramp is
k (t − 1), and τ_hold = k · 1 s = 0.5 N·m; k t would jump to 0.5 N·m at 1 s. In [4, 7] s the first motor adds
k_s (1 − cos 2πc (t − 4)/3), c = 3, which starts and ends with zero. The second motor pulls the other way.

The printed section is a bar, EI = 3299 N·m²: τ_hold brings its tip nearer by less than a nanometre, and all torques
together move it by a quarter of a micrometre. The printed area is that of a wire of 1 mm radius, whose own EI is
E πr⁴/4 = 0.165 N·m²; under τ_hold its tip comes nearer by a tenth of its distance, which a picture like the paper's
shows. That wire is our soft robot. The printed k_s, 28 times τ_hold in its swing, would wind it up; 7 N·cm, a hundredth
of it, tilt the robot by another tenth. All the rest is as printed, the scheme and its step of 10 ms too. The tip goes
up with each of the three cycles of the torque; the paper sees two: its robot must have been slower still.

A third reading, `TORQUES`, keeps all torques as printed and takes a thousandth of the printed I, 1.5708e-11 m⁴: the
ramp brings its tip nearer by 0.3 mm, which no picture shows, and each of the three cycles tilts it by 0.32 m. So no
reading of I gives both the visible ramp of the paper and its k_s; the printed area and k_s contradict each other too.

    python examples/continuum_parallel_robot.py out/continuum_parallel_robot
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_bvp

import lissom as ls

LENGTH, BASE = 1.0, 1.0  # of a leg, and between the motors [m]
AREA, MOMENT, YOUNG, DENSITY = 3.1416e-6, 1.5708e-8, 2.1e11, 7800.0  # as printed
DAMPING_TIME = 1e-4  # [s]
RAMP, SWING, CYCLES = 0.5, 7.0, 3  # k [N·m/s], k_s [N·m], c
START, HELD, SWINGS, STILL, END = 1.0, 2.0, 4.0, 7.0, 10.0  # where the torques change their law [s]
SOFT_SWING = 0.07  # [N·m]
DT, POINTS = 0.01, 20  # time step [s], Gauss points of a leg
LEGS = "leg 1", "leg 2"


@dataclass(frozen=True)
class Case:
    """A robot with its torques: second moment of area [m⁴] and k_s [N·m]."""

    name: str
    moment: float
    swing: float

    def torques(self, t: float) -> np.ndarray:
        """Torques of both motors at t seconds after the start of the ramp, shape (2,) [N·m]."""
        clock = START + t
        hold = RAMP * (min(clock, HELD) - START)
        turn = 2 * np.pi * CYCLES * (np.clip(clock, SWINGS, STILL) - SWINGS) / (STILL - SWINGS)
        return np.array([hold + self.swing * (1.0 - np.cos(turn)), -hold])


PRINTED = Case("as printed", MOMENT, SWING)
SOFT = Case("wire", AREA**2 / (4 * np.pi), SOFT_SWING)
TORQUES = Case("printed torques", MOMENT / 1000, SWING)
CASES = PRINTED, SOFT


def robot(case: Case, order: int = 4) -> ls.Robot:
    """The robot; its neutral configuration is open, with both legs along x."""
    stiffness = YOUNG * np.array([2 * case.moment, case.moment, case.moment, AREA, AREA, AREA])
    inertia = DENSITY * np.array([2 * case.moment, case.moment, case.moment, AREA, AREA, AREA])
    section = ls.SectionGeneral(stiffness, inertia, damping=DAMPING_TIME * stiffness)
    leg = ls.Rod(LENGTH, section, ls.BasisChebyshev(bending_z=order), gauss_points=POINTS)
    description = ls.Robot(f"continuum parallel robot, {case.name}", gravity=(0, 0, 0))
    for name, side in zip(LEGS, (1, -1)):
        foot = np.eye(4)
        foot[1, 3] = side * BASE / 2
        description.add_link(name, leg, ls.JointRevolute(), placement=foot)
        description.add_joint_actuator(f"motor of {name}", name)
    description.add_loop("pin", *LEGS, joint=ls.JointRevolute())
    return description


def mounted(model: ls.Model) -> np.ndarray:
    """The closed robot at rest, from the open one with its motors turned half-way."""
    q = model.neutral()
    q[[0, model.nq // 2]] = -0.5, 0.5
    return ls.solve_statics(model, np.zeros(2), q).q


def planar(case: Case, order: int = 4) -> ls.Model:
    """The model. The loop of a planar robot fixes three directions that its legs fix already; that is meant."""
    return robot(case, order).build()


@dataclass(frozen=True)
class Motion:
    """What figures 11 to 13 show: time on the paper's clock, torques, angles, force of the pin on leg 1, tip."""

    t: np.ndarray
    torques: np.ndarray
    angles: np.ndarray
    force: np.ndarray
    tip: np.ndarray
    trajectory: ls.Trajectory


def pin_force(model: ls.Model, q: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """Force of the pin on leg 1 in the world, shape (n, 2) [N]."""
    force = ls.loop_wrenches(model, q, multipliers)[..., 0, 3:]
    R = ls.frame_pose(model, q, LEGS[1])[..., :3, :3]
    return np.einsum("...ij,...j->...i", R, force)[..., :2]


def move(model: ls.Model, case: Case, duration: float, dt: float = DT) -> Motion:
    """The motion from rest, for `duration` seconds after the start of the ramp, by the paper's scheme."""
    motion = ls.simulate(model, duration, mounted(model), u=case.torques, method="newmark", dt=dt)
    tip = ls.frame_pose(model, motion.q, LEGS[0])[:, :2, 3]
    angles = motion.q[:, [0, model.nq // 2]]
    force = pin_force(model, motion.q, motion.multipliers)
    return Motion(START + motion.t, motion.u, angles, force, tip, motion)


def elastica_tip(case: Case, torque: float) -> float:
    """x of the tip at rest under the torques ±torque, from the elastica of leg 1 [m].

    By symmetry the force of the pin is across the axis: EI θ'' = −F cos θ, with EI θ' = −torque at the foot and 0 at
    the tip, which stays on the axis.
    """
    EI = YOUNG * case.moment

    def rate(s: np.ndarray, y: np.ndarray, F: np.ndarray) -> np.ndarray:
        return np.stack([y[1], -F[0] / EI * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])])

    def ends(foot: np.ndarray, tip: np.ndarray, F: np.ndarray) -> np.ndarray:
        return np.array([EI * foot[1] + torque, tip[1], foot[2], foot[3] - BASE / 2, tip[3]])

    s = np.linspace(0.0, LENGTH, 101)
    angle = -np.arcsin(BASE / 2 / LENGTH)
    straight = np.stack([0 * s + angle, 0 * s, s * np.cos(angle), s * np.sin(angle) + BASE / 2])
    found = solve_bvp(rate, ends, s, straight, np.zeros(1), tol=1e-10, max_nodes=20_000)
    return float(found.y[2, -1])


def study(case: Case, duration: float = END - START) -> tuple[dict[str, float], ls.Model, Motion]:
    """Numbers of one case, its model and its motion."""
    model = planar(case)
    start = mounted(model)
    held = ls.solve_statics(model, case.torques(HELD - START), start)
    motion, finer = move(model, case, duration), move(model, case, duration, DT / 4)
    rest = ls.frame_pose(model, start, LEGS[0])[:2, 3]
    symmetric = motion.t <= SWINGS
    nearer = rest[0] - motion.tip[:, 0]
    numbers = {
        "tip at rest [m]": float(rest[0]),
        "strain at rest [1/m]": float(np.abs(np.delete(start, [0, model.nq // 2])).max()),
        "tip nearer under constant torques [m]": float(rest[0] - ls.frame_pose(model, held.q, LEGS[0])[0, 3]),
        "the same by the elastica [m]": float(rest[0] - elastica_tip(case, RAMP * (HELD - START))),
        "tip nearer in the symmetric part [m]": float(nearer[symmetric].max()),
        "asymmetry of the symmetric part [m]": float(np.abs(motion.tip[symmetric, 1]).max()),
        "largest tilt [m]": float(np.abs(motion.tip[:, 1]).max()),
        "tip moved by a quarter of the step [m]": float(np.abs(motion.tip - finer.tip[::4]).max()),
        "largest force of the pin [N]": float(np.linalg.norm(motion.force, axis=1).max()),
        "loop residual": float(np.abs(ls.loop_residual(model, motion.trajectory.q)).max()),
    }
    return numbers, model, motion


def main(out: str | Path | None = None, duration: float = END - START) -> dict[str, dict[str, float]]:
    """The numbers of both robots; the figure goes to the folder `out`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        studies = {case.name: study(case, duration) for case in CASES}
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot({name: found[1:] for name, found in studies.items()}, folder / "continuum_parallel_robot.png")
    return {name: found[0] for name, found in studies.items()}


def _plot(studies: dict[str, tuple[ls.Model, Motion]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14, 13), layout="constrained")
    grid: Any = figure.subfigures(1, len(CASES))
    for part, case in zip(grid, CASES):
        model, motion = studies[case.name]
        rows = [["torque"] * 2, ["turn"] * 2, ["force"] * 2, ["tip"] * 2, ["ramp", "swing"]]
        panels = part.subplot_mosaic(rows, height_ratios=(1, 1, 1, 1, 2.2))
        part.suptitle(f"{case.name}: EI = {YOUNG * case.moment:.4g} N·m², k_s = {case.swing:g} N·m", fontweight="bold")
        _plot_time(list(panels.values())[:4], motion)
        for name, start, stop in (("ramp", START, HELD), ("swing", SWINGS, STILL)):
            times = np.arange(start, min(stop, motion.t[-1]) + 1e-9, 0.5)
            _plot_shapes(panels[name], model, motion, times, f"shapes every 0.5 s, {start:.0f} to {stop:.0f} s")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _plot_time(panels: Any, motion: Motion) -> None:
    words = "torques [N·m]", "turn of the motors [rad]", "force of the pin on leg 1 [N]", "tip from its rest [m]"
    columns = motion.torques, motion.angles - motion.angles[0], motion.force, motion.tip - motion.tip[0]
    legs = "leg 1, upper", "leg 2, lower"
    names = legs, legs, ("x", "y"), ("x", "y")
    for axes, word, rows, labels in zip(panels, words, columns, names):
        for column, label, color in zip(rows.T, labels, ("C0", "C1")):
            axes.plot(motion.t, column, color=color, label=label, linewidth=1.1)
        axes.set_title(word, loc="left", fontsize=10)
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, fontsize=8, frameon=False)
        axes.grid(alpha=0.3)
        axes.set_xlim(START, motion.t[-1])
        axes.ticklabel_format(axis="y", scilimits=(-2, 3))
    panels[-1].set_xlabel("t [s]")


def _plot_shapes(axes: Any, model: ls.Model, motion: Motion, times: np.ndarray, title: str) -> None:
    import matplotlib.pyplot as plt

    s = np.linspace(0, 1, 50)
    for k, time in enumerate(times):
        q = motion.trajectory.q[int(np.argmin(np.abs(motion.t - time)))]
        color = plt.get_cmap("viridis")(0.9 - 0.8 * k / max(len(times) - 1, 1))
        for leg in LEGS:
            x, y = ls.frame_pose(model, q, leg, s=s)[:, :2, 3].T
            axes.plot(x, y, color=color, linewidth=1.4, label=f"{time:.1f}" if leg == LEGS[0] else None)
        axes.plot(x[-1], y[-1], "o", color=color, markersize=4)
    axes.plot([0, 0], [-BASE / 2, BASE / 2], "k^", markersize=7)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    axes.legend(loc="center", fontsize=8, frameon=False, bbox_to_anchor=(0.22, 0.5), title="t [s]")
    axes.set_ylim(-0.75, 0.75)
    axes.set_xlim(-0.08, 1.0)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    for case, numbers in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(case)
        for key, number in numbers.items():
            print(f"    {key}: {number:.4g}")
