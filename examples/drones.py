"""Two drones that carry a cuboid on two soft rods (Boyer 2023, example 1, equations (68) and (69), figures 8 and 9).

Drone 0 flies freely; a rod, the payload, the other rod and drone 6 hang from it one after the other, in a straight line
along x. Both rods are Kirchhoff, with three Chebyshev polynomials for each curvature and the torsion. Each drone j is
driven by a wrench on its body, a PI law of the error of its twist in body axes:

    F_j = k_P e_j + k_I ∫ e_j dt,   e_j = (0, R_jᵀ V_j^d) − η_j                                           (1)

V_0^d = (0, 0, sin πt) and V_6^d = (0, 0, sin πt/2) are given in the world, whence the rotation; the desired pose never
turns. The integrals are the state z of an `ls.Controller`. There is no gravity and no damping but that of the law.

As printed: rods of 1 m, 950 kg/m³, diameter 0.07 m, E = 0.25 MPa; k_P = 20 and k_I = 2.5 in SI units for all six
components; 10 s in steps of 10 ms, by Newmark's scheme. Not printed, and chosen here: drones that are boxes of 2 kg
with the rods clamped to their centres, a payload of 1 kg with the rods clamped to two faces, Poisson's ratio ½ (nothing
turns about x, so that torsion stays zero), the start at rest. The rods weigh 3.7 kg each and so are most of what flies.

Everything then moves in the plane of x and z. Two checks: the rate of the momentum of the whole must be the sum of the
wrenches of both drones, since nothing else changes it; and the same motion by CVODE shows the error of the step of
10 ms.

    python examples/drones.py out/drones
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import cumulative_simpson

import lissom as ls

LENGTH, DENSITY, RADIUS, YOUNG = 1.0, 950.0, 0.035, 0.25e6  # of a rod, as printed [m, kg/m³, m, Pa]
PROPORTIONAL, INTEGRAL = 20.0, 2.5  # k_P and k_I
DURATION, DT = 10.0, 0.01  # [s]
DRONE, DRONE_MASS = (0.4, 0.4, 0.12), 2.0  # [m, kg]
PAYLOAD, PAYLOAD_MASS = (0.2, 0.2, 0.2), 1.0
DRONES = "drone 0", "drone 6"
RODS = "rod 2", "rod 5"
BODIES = DRONES[0], "payload", DRONES[1]
COLORS = "C0", "C2", "C1"
RATES = np.array([np.pi, np.pi / 2])  # of the desired velocities [1/s]
SNAPSHOTS = 0.0, 1.68, 4.22, 9.44  # those of figure 8 [s]


def box(size: tuple[float, float, float], mass: float) -> ls.RigidBody:
    """A homogeneous box."""
    return ls.RigidBody.box(*size, density=mass / float(np.prod(size)))


def moved(x: float) -> np.ndarray:
    """A placement further along x."""
    g = np.eye(4)
    g[0, 3] = x
    return g


def robot() -> ls.Robot:
    """The drones, the rods and the payload; u is the wrench on drone 0, then that on drone 6, in their axes."""
    material = ls.Material(young=YOUNG, poisson=0.5, density=DENSITY)
    basis = ls.BasisChebyshev(torsion=2, bending_y=2, bending_z=2)
    rod = ls.Rod(LENGTH, ls.SectionCircle(RADIUS), basis, material)
    description = ls.Robot("two drones and a payload", gravity=(0, 0, 0))
    description.add_link(DRONES[0], box(DRONE, DRONE_MASS), ls.JointFree())
    description.add_link(RODS[0], rod, parent=DRONES[0])
    description.add_link("payload", box(PAYLOAD, PAYLOAD_MASS), parent=RODS[0], placement=moved(PAYLOAD[0] / 2))
    description.add_link(RODS[1], rod, parent="payload", placement=moved(PAYLOAD[0] / 2))
    description.add_link(DRONES[1], box(DRONE, DRONE_MASS), parent=RODS[1])
    for name in DRONES:
        description.add_wrench_input(f"rotors of {name}", name)
    return description


def desired(t: float) -> np.ndarray:
    """Desired velocities of both drones in the world, shape (2, 3) [m/s]."""
    return np.outer(np.sin(RATES * t), (0.0, 0.0, 1.0))


def controller(model: ls.Model) -> ls.Controller:
    """(1): the errors of both drones are integrated in z. Output and rate ask for the same error in turn: the last one
    is kept."""
    last: dict[Any, np.ndarray] = {}

    def error(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        key = t, q.tobytes(), v.tobytes()
        if key not in last:
            out = np.zeros((2, 6))
            for name, e, goal in zip(DRONES, out, desired(t)):
                e[3:] = ls.frame_pose(model, q, name)[:3, :3].T @ goal
                e -= ls.frame_twist(model, q, v, name)
            last.clear()
            last[key] = out.ravel()
        return last[key]

    def wrenches(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        return PROPORTIONAL * error(t, q, v, z) + INTEGRAL * z

    return ls.Controller(wrenches, error, np.zeros(12))


def fly(model: ls.Model, duration: float = DURATION, **options: Any) -> ls.Trajectory:
    """The motion from rest; by the scheme of the paper unless told otherwise."""
    return ls.simulate(model, duration, controller=controller(model), **({"method": "newmark", "dt": DT} | options))


def momentum(model: ls.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Angular momentum about the origin and linear momentum of everything, in the world, shape (n, 6).

    The first rows of the mass matrix give both in the axes of the free joint.
    """
    h = np.einsum("tij,tj->ti", ls.mass_matrix(model, q)[:, :6], v)
    return in_world(model, q, DRONES[0], h)


def in_world(model: ls.Model, q: np.ndarray, name: str, wrench: np.ndarray) -> np.ndarray:
    """A wrench, or a momentum, of a body as one about the origin in the axes of the world, shape (n, 6)."""
    g = ls.frame_pose(model, q, name)
    moment, force = (np.einsum("tij,tj->ti", g[:, :3, :3], part) for part in (wrench[:, :3], wrench[:, 3:]))
    return np.hstack([moment + np.cross(g[:, :3, 3], force), force])


def impulse(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """Impulse of the wrenches of both drones until each time, about the world's origin, shape (n, 6) [N·m·s, N·s]."""
    wrench = sum(in_world(model, motion.q, name, motion.u[:, 6 * k : 6 * k + 6]) for k, name in enumerate(DRONES))
    return cumulative_simpson(wrench, x=motion.t, axis=0, initial=0.0)


def momentum_error(model: ls.Model, motion: ls.Trajectory) -> float:
    """By how much the momentum differs from the impulse, over the largest of its components [-]."""
    gained = momentum(model, motion.q, motion.v)
    return float(np.abs(gained - impulse(model, motion)).max() / np.abs(gained).max())


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """Numbers of the flight; the pictures go to the folder `out`."""
    model = robot().build()
    motion, finer = fly(model, duration), fly(model, duration, dt=DT / 2)
    exact = fly(model, duration, method="bdf", rtol=1e-8, atol=1e-9, t_eval=motion.t)
    places = {name: ls.frame_pose(model, motion.q, name)[:, :3, 3] for name in BODIES}
    off = {key: np.max([np.abs(ls.frame_pose(model, found.q[::step], name)[:, :3, 3]
                               - ls.frame_pose(model, exact.q, name)[:, :3, 3]) for name in BODIES])
           for key, found, step in (("coarse", motion, 1), ("fine", finer, 2))}  # fmt: skip
    steps = motion.statistics.steps
    numbers = {
        "Newton iterations per step": motion.statistics.evaluations / steps,
        "new matrices per step": motion.statistics.jacobians / steps,
        "wall time over duration [-]": motion.statistics.wall_time / duration,
        "momentum against impulse, CVODE [-]": momentum_error(model, exact),
        "momentum against impulse, Newmark [-]": momentum_error(model, motion),
        "error of the step of 10 ms [m]": float(off["coarse"]),
        "error of the step of 5 ms [m]": float(off["fine"]),
        "integral of the errors, CVODE against rows [-]": integral_error(model, exact),
        "out of the plane [m]": float(max(np.abs(x[:, 1]).max() for x in places.values())),
        "largest velocity error of drone 0 [m/s]": velocity_error(model, exact, 0),
        "largest velocity error of drone 6 [m/s]": velocity_error(model, exact, 1),
        **{f"{name} goes along {axis} [m]": float(np.ptp(x[:, k])) for name, x in places.items()
           for k, axis in ((0, "x"), (2, "z"))},
    }  # fmt: skip
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot(model, motion, folder / "drones.png")
    return numbers


def integral_error(model: ls.Model, motion: ls.Trajectory) -> float:
    """By how much z differs from the integral over the rows of the errors that u and z say, over the largest z [-]."""
    errors = (motion.u - INTEGRAL * motion.z) / PROPORTIONAL
    integral = cumulative_simpson(errors, x=motion.t, axis=0, initial=0.0)
    return float(np.abs(integral - motion.z).max() / np.abs(motion.z).max())


def velocity(model: ls.Model, motion: ls.Trajectory, drone: int) -> np.ndarray:
    """Velocity of a drone in the world, shape (n, 3) [m/s]."""
    R = ls.frame_pose(model, motion.q, DRONES[drone])[:, :3, :3]
    return np.einsum("tij,tj->ti", R, ls.frame_twist(model, motion.q, motion.v, DRONES[drone])[:, 3:])


def velocity_error(model: ls.Model, motion: ls.Trajectory, drone: int) -> float:
    """Largest difference between the velocity of a drone and its desired velocity [m/s]."""
    goal = np.array([desired(t)[drone] for t in motion.t])
    return float(np.linalg.norm(velocity(model, motion, drone) - goal, axis=1).max())


def _plot(model: ls.Model, motion: ls.Trajectory, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14, 10.5), layout="constrained")
    times = [t for t in SNAPSHOTS if t <= motion.t[-1]]
    parts: Any = figure.subfigures(2, 1, height_ratios=(0.72, 1.45))
    top, bottom = parts
    shapes = top.subplots(1, len(times), sharey=True, squeeze=False)[0]
    for axes, time in zip(shapes, times):
        _plot_snapshot(axes, model, motion, int(np.argmin(np.abs(motion.t - time))))
    shapes[0].set_ylabel("z [m]")
    shapes[0].legend(loc="upper left", fontsize=8, frameon=False)
    top.suptitle("the robot and the ways its bodies went so far (after figure 8)", fontweight="bold")
    _plot_time(bottom.subplots(2, 2, sharex=True), model, motion)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _plot_snapshot(axes: Any, model: ls.Model, motion: ls.Trajectory, k: int) -> None:
    """The robot at row k in the plane of x and z, and the ways of the three bodies so far."""
    for name, color in zip(BODIES, COLORS):
        way = ls.frame_pose(model, motion.q[: k + 1], name)
        axes.plot(way[:, 0, 3], way[:, 2, 3], color=color, linewidth=1.0, alpha=0.8, label=name)
        half = np.array(PAYLOAD if name == "payload" else DRONE) / 2
        corners = np.array([(x, 0, z, 1) for x, z in ((-1, -1), (1, -1), (1, 1), (-1, 1))]) * [half[0], 1, half[2], 1]
        outline = corners @ way[-1].T
        axes.fill(outline[:, 0], outline[:, 2], facecolor=color, edgecolor="black", linewidth=0.8, alpha=0.55, zorder=3)
    for name in RODS:
        x, _, z = ls.frame_pose(model, motion.q[k], name, s=np.linspace(0, 1, 40))[:, :3, 3].T
        axes.plot(x, z, color="0.25", linewidth=4.0, solid_capstyle="butt", zorder=2)
    axes.set_title(f"t = {motion.t[k]:.2f} s", loc="left", fontsize=10)
    axes.set(xlabel="x [m]", aspect="equal", xlim=(-0.45, 2.6), ylim=(-0.4, 1.5))
    axes.grid(alpha=0.3)


def _plot_time(panels: Any, model: ls.Model, motion: ls.Trajectory) -> None:
    """Displacements, velocities beside the desired ones, and the momentum beside the impulse of the rotors."""
    t = motion.t
    goals = np.array([desired(time) for time in t])
    for name, color in zip(BODIES, COLORS):
        x = ls.frame_pose(model, motion.q, name)[:, :3, 3]
        for axes, k in ((panels[0, 0], 0), (panels[0, 1], 2)):
            axes.plot(t, x[:, k] - x[0, k], color=color, linewidth=1.2, label=name)
    for k, (name, color) in enumerate(zip(DRONES, COLORS[::2])):
        panels[1, 0].plot(t, velocity(model, motion, k)[:, 2], color=color, linewidth=1.2, label=name)
        panels[1, 0].plot(t, goals[:, k, 2], "--", color=color, linewidth=1.0, label="desired")
    gained, given = momentum(model, motion.q, motion.v), impulse(model, motion)
    for k, word, color in ((4, "about y [N·m·s]", "C3"), (3, "x [N·s]", "C4"), (5, "z [N·s]", "C5")):
        column = 1 if k == 4 else k
        panels[1, 1].plot(t, gained[:, column], color=color, linewidth=1.2, label=word)
        panels[1, 1].plot(t[::25], given[::25, column], "o", color=color, markersize=3)
    words = ("displacement along x [m]", "displacement along z [m]", "velocity along z [m/s]",
             "momentum of everything; impulse as dots")  # fmt: skip
    for axes, word in zip(panels.ravel(), words):
        axes.set_title(word, loc="left", fontsize=10)
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=8, frameon=False)
        axes.grid(alpha=0.3)
        axes.set_xlim(0, t[-1])
    for axes in panels[1]:
        axes.set_xlabel("t [s]")


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
