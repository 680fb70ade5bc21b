"""A swimmer of one metre that one pair of tendons bends (Boyer 2023, example 3, figures 14 to 16).

A stiff head, a rod that two tendons bend, and a passive rod a hundred times softer, with elliptic sections, neutrally
buoyant, swim in the plane. The tendons, 5 cm to both sides, pull with T₀ ± T₁ cos ωt: their torque on the second
body is a wave's source, the soft body carries the wave to the tail. Water acts by Lighthill's large-amplitude theory of
elongated bodies: added mass all along, and the force of the wake at the edge of the tail. Bendings are five Chebyshev
polynomials on each rod, steps 10 ms as in the paper. The head is a rod, too, which its sections make heavy and wet; its
only strain is a torsion that nothing in the plane excites.

Chosen here, as the outline belongs to another work: a head of 20 cm and rods of 40 cm; the width is that of a NACA 0010
aerofoil, 10 cm at most, the height 1.4 times as much, with a caudal edge that is 10 cm high. That theory has no
friction, and without any a straight body soon turns across its path, by the moment of Munk: so there is drag, with
coefficients 1 across and 0.02 along. Internal damping of 1 ms lets the kick of the first tension die away.

The momentum along x of body and water changes by the forces of wake and drag alone, which are integrated here once
more. To swim backwards the wave must run to the head: tendons in both rods, equally stiff, with a quarter of a period
between them, and a wave below the first natural frequency, which runs as the tendons say. With a closed tail its
direction is that of the swimmer, for both ways.

    python examples/tendon_swimmer.py out/tendon_swimmer
"""

from __future__ import annotations

import sys
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.integrate import trapezoid
from scipy.special import ellipe

import lissom as ls

WATER, LENGTH, NECK, MIDDLE = 1000.0, 1.0, 0.2, 0.6  # [kg/m³, m], and where the head and the second body end
ACTIVE, PASSIVE, DAMPING_TIME = 4.9, 4.9e-2, 1e-3  # bending stiffness [N·m²], internal damping [s]
OFFSET, HELD, SWING, OMEGA = 0.05, 20.0, 20.0, 5 * pi  # of the tendons [m], T₀ and T₁ [N], ω [rad/s]
ACROSS, ALONG = 1.0, 0.02  # drag coefficients
DURATION, DT, SHOWN = 10.0, 0.01, 1.65  # [s], and between the snapshots
PERIOD = 2 * pi / OMEGA
SLOW = 6.0  # ω of the waves that go both ways [rad/s]
BEND = ls.BasisChebyshev(bending_z=4)
PARTS = {"head": (0.0, NECK), "active": (NECK, MIDDLE), "passive": (MIDDLE, LENGTH)}


def half_width(x: Any) -> Any:
    """Half of the width at x from the nose, which is round [m]."""
    x = np.maximum(x, 1e-4)
    return 0.5 * (0.2969 * np.sqrt(x) - 0.1260 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1015 * x**4)


def half_height(x: Any) -> Any:
    """Half of the height at x from the nose [m]."""
    return 1.4 * half_width(x) + (0.05 - 1.4 * half_width(LENGTH)) * x**12


def body(start: float, stop: float, stiffness: float, basis: Any = BEND) -> ls.Rod:
    """The part of the swimmer between two distances from the nose."""

    def at(s: float) -> float:
        return start + s * (stop - start)

    shape = ls.SectionEllipse(lambda s: half_width(at(s)), lambda s: half_height(at(s)))
    matrix = stiffness * np.array([1.0, 1, 1, 1, 1, 1])
    section = ls.SectionGeneral(matrix, damping=DAMPING_TIME * matrix, shape=shape)
    return ls.Rod(stop - start, section, basis, ls.Material(young=1e6, density=WATER), gauss_points=10)


def swimmer(pairs: int = 1, wake: bool = True) -> ls.Model:
    """The swimmer, its nose at the origin and its tail towards x; with two pairs of tendons, the tail is stiff, too."""
    robot = ls.Robot("tendon swimmer", gravity=(0, 0, 0))
    robot.add_link("head", body(0.0, NECK, ACTIVE, ls.BasisChebyshev(torsion=0)), ls.JointPlanar())
    robot.add_link("active", body(NECK, MIDDLE, ACTIVE), parent="head")
    robot.add_link("passive", body(MIDDLE, LENGTH, PASSIVE if pairs == 1 else ACTIVE), parent="active")
    for link in ("active", "passive")[:pairs]:
        robot.add_tendon(f"left of {link}", link, (OFFSET, 0.0))
        robot.add_tendon(f"right of {link}", link, (-OFFSET, 0.0))
    drag = {"drag_normal": ACROSS, "drag_tangent": ALONG}
    end = ls.Hydrodynamics(**drag, tail=wake)
    robot.set_fluid(WATER, default=ls.Hydrodynamics(**drag), links={"passive": end})
    return robot.build()


def tensions(t: float) -> np.ndarray:
    """T± = T₀ + T₁ sin(ωt ± π/2), shape (2,) [N]."""
    return HELD + SWING * np.sin(OMEGA * t + np.array([0.5, -0.5]) * pi)


def waves(t: float, lag: float) -> np.ndarray:
    """Slow tensions of both pairs, the second one later by the phase `lag`; they swell in 2 s, shape (4,) [N]."""
    phases = SLOW * t - np.array([0.0, 0.0, lag, lag]) + np.array([0.5, -0.5, 0.5, -0.5]) * pi
    return HELD + SWING * min(t / 2, 1.0) * np.sin(phases)


def mean_speed(motion: ls.Trajectory, period: float, before: int = 0) -> float:
    """Mean velocity of the nose along x over the last period, or one before it [m/s]."""
    ends = [motion.t[-1] - k * period for k in (before + 1, before)]
    start, stop = np.interp(ends, motion.t, motion.q[:, 0])
    return float((stop - start) / period)


def elastic_torque(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """EI κ at the root of the third body, shape (n,) [N·m]."""
    return PASSIVE * motion.q[:, -BEND.size :] @ BEND.evaluate(0.0)[2]


def forces(model: ls.Model, motion: ls.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Forces of the wake and of the drag along x, integrated here, each (n,) [N]."""
    nodes, weights = leggauss(24)
    s, drag = (nodes + 1) / 2, np.zeros(len(motion.t))
    for link, (start, stop) in PARTS.items():
        y, z = half_width(start + s * (stop - start)), half_height(start + s * (stop - start))
        perimeter = 4 * z * ellipe(1 - (y / z) ** 2)
        u = ls.frame_twist(model, motion.q, motion.v, link, s=s)[..., 3:]
        x = ls.frame_pose(model, motion.q, link, s=s)[..., 0, :3]  # the world's x in the section
        push = np.stack([ALONG * perimeter * u[..., 0], 2 * ACROSS * z * u[..., 1]], axis=-1)
        along = np.einsum("tki,tki->tk", push, x[..., :2])
        drag -= 0.5 * WATER * (stop - start) / 2 * (np.linalg.norm(u, axis=-1) * along) @ weights
    V = ls.frame_twist(model, motion.q, motion.v, "passive")[:, 3:]
    x = ls.frame_pose(model, motion.q, "passive")[:, 0, :3]
    mass = WATER * pi * half_height(LENGTH) ** 2
    return mass * (V[:, 0] * V[:, 1] * x[:, 1] - 0.5 * V[:, 1] ** 2 * x[:, 0]), drag


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """The numbers of the swimmer, and of the waves that go both ways; pictures go to the folder `out`."""
    model = swimmer()
    motion = ls.simulate(model, duration, u=tensions, method="generalized_alpha", dt=DT)
    times = np.linspace(0, duration, round(1000 * duration) + 1)
    exact = ls.simulate(model, duration, u=tensions, method="bdf", t_eval=times)
    wake, drag = forces(model, exact)
    P = ls.momentum(model, exact.q, exact.v)[:, 3]  # of body and water
    speeds = {}
    for name, lag in (("tail", pi / 2), ("head", -pi / 2)):
        slow = ls.simulate(swimmer(2, wake=False), 20 * 2 * pi / SLOW, u=lambda t, lag=lag: waves(t, lag),
                           method="generalized_alpha", dt=DT)  # fmt: skip
        speeds[f"velocity with waves to the {name} [m/s]"] = mean_speed(slow, 2 * pi / SLOW)
    last = exact.t > duration - PERIOD
    tail = ls.frame_pose(model, exact.q[last], "passive")[:, 1, 3]
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot_swim(model, motion, folder / "swim.png")
        _plot_torques(model, motion, folder / "torques.png")
    return {
        "velocity [m/s]": mean_speed(motion, PERIOD),
        "a period before [m/s]": mean_speed(motion, PERIOD, 1),
        "the same by bdf [m/s]": mean_speed(exact, PERIOD),
        "sideways over way": float(np.abs(motion.q[-1, 1] / motion.q[-1, 0])),
        "torsion of the head [1/m]": float(np.abs(motion.q[:, 3]).max()),
        "tail, peak to peak [m]": float(np.ptp(tail)),
        "control torque [N·m]": float(OFFSET * np.abs(motion.u[:, 0] - motion.u[:, 1]).max()),
        "elastic torque at the third root [N·m]": float(np.abs(elastic_torque(model, motion)).max()),
        "thrust of the wake [N]": -float(wake[last].mean()),
        "drag [N]": float(drag[last].mean()),
        "momentum gained [kg·m/s]": float(P[-1] - P[0]),
        "impulse of wake and drag [N·s]": float(trapezoid(wake + drag, exact.t)),
        **speeds,
    }


def _plot_swim(model: ls.Model, motion: ls.Trajectory, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 9), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(2, 1))
    colors = {"head": "0.45", "active": "C1", "passive": "C0"}
    for row, time in enumerate(np.arange(0.0, motion.t[-1] + 1e-9, SHOWN)):
        k, down = int(np.argmin(np.abs(motion.t - time))), np.array([0.0, -0.22 * row])
        for link, (start, stop) in PARTS.items():
            s = np.linspace(0, 1, 40)
            g = ls.frame_pose(model, motion.q[k], link, s=s)
            side = half_width(start + s * (stop - start))[:, None] * g[:, :2, 1]
            edge = np.concatenate([g[:, :2, 3] + side, (g[:, :2, 3] - side)[::-1]]) + down
            above.fill(*edge.T, color=colors[link], linewidth=0, label=link if row == 0 else None)
        path = ls.frame_pose(model, motion.q[: k + 1], "passive")[:, :2, 3] + down
        above.plot(*path.T, color="C3", linewidth=0.7)
        above.text(1.08, down[1], f"{time:.2f} s", va="center", fontsize=9)
    above.set_title(f"every {SHOWN} s, one below the other; path of the tail", loc="left", fontsize=10)
    above.set(xlabel="x [m]", yticks=[], aspect="equal")
    above.set_xlim(right=1.35)
    above.legend(frameon=False, fontsize=9, loc="upper left")
    steps = round(PERIOD / DT)
    mean = (motion.q[steps:, 0] - motion.q[:-steps, 0]) / PERIOD
    below.plot(motion.t, -motion.v[:, 0], linewidth=0.6, label="nose")
    below.plot(motion.t[steps:], -mean, linewidth=1.8, label="mean over a period")
    below.set_title("speed [m/s]", loc="left", fontsize=10)
    below.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    below.legend(frameon=False, fontsize=9)
    below.grid(alpha=0.3)
    figure.savefig(file, dpi=120)


def _plot_torques(model: ls.Model, motion: ls.Trajectory, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(motion.t, OFFSET * (motion.u[:, 0] - motion.u[:, 1]), color="C1")
    below.plot(motion.t, elastic_torque(model, motion), color="C0")
    for axes, title in ((above, "torque of the tendons, D (T₊ − T₋) [N·m]"),
                        (below, "elastic torque at the root of the third body, EI κ [N·m]")):  # fmt: skip
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(alpha=0.3)
    below.set(xlabel="t [s]", xlim=(0, min(3.0, motion.t[-1])))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.5g}")
