"""Four single rods: a soft and a stiff one clamped, a soft and a stiff one in free flight (Boyer 2023, section X.A).

All are of Kirchhoff's kind (no shear, no elongation) and undamped, and are followed for 10 s in steps of 10 ms.

The cantilevers bend in a plane by three modes. They start from the equilibrium under a horizontal force at the tip,
50 N and 10 N, and are let go in gravity. They hang from the clamp, as in the paper's appendix 2. The stiff rod is
pulled into a hook (f l² / EI = 1000) and swings with vibrations that steps of 10 ms do not resolve.

The flying rods bend both ways and twist by three modes each, without gravity. They lean in the plane of x and z, the
loaded end at (0.6 l, 0, 0), the other at (0, 0, 0.8 l). The paper does not print the loads of its figure 6. For the
soft rod they are those of Simo and Vu-Quoc (Comput. Methods Appl. Mech. Eng. 66, 1988): the force (T/10, 0, 0) and the
moment (0, T, T/2), T rising to 200 N·m at 2.5 s and falling to zero at 5 s. The moment would spin the thin rod about
its own axis; the stiff one is thrown by a force alone, (2, 1, 0) N at 2.5 s. Poisson's ratio is 0.5 for both.

After 5 s nothing acts: momenta and energy stay, the centre of mass goes straight on. Newmark's scheme keeps energy and
the angular momentum about the centre of mass within bounds that fall with the square of the step; the linear momentum
of a rod that turns at ω turns with about (ω h)² ω / 12 (or half of that where the free joint's velocity is kept in the
world's axes), which falls in the same way. bdf keeps all to its tolerance.

    python examples/single_rods.py single_rods.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import lissom as ls

PEAK, DURATION, DT = 2.5, 10.0, 0.01  # when the loads of flight are largest; length of all runs; steps [s]
CANTILEVERS: dict[str, dict[str, float]] = {
    "soft": {"length": 10.0, "density": 7800.0, "young": 1e11, "radius": 0.005, "force": 50.0},
    "stiff": {"length": 0.4, "density": 8000.0, "young": 2e9, "radius": 0.001, "force": 10.0},
}
FLIGHT = {
    "soft": {"length": 10.0, "force": (20.0, 0.0, 0.0), "moment": (0.0, 200.0, 100.0)},
    "stiff": {"length": 1.0, "force": (2.0, 1.0, 0.0), "moment": (0.0, 0.0, 0.0)},
}
SECTIONS: dict[str, tuple[Any, ls.Material | None]] = {
    "soft": (ls.SectionGeneral(stiffness=(500, 500, 500, 1e4, 1e4, 1e4), inertia=(10, 10, 10, 1, 1, 1)), None),
    "stiff": (ls.SectionCircle(0.05), ls.Material(young=1e6, poisson=0.5, density=1000)),
}
PAPER = {"soft cantilever": 9.1, "stiff cantilever": 7.1, "soft flying rod": 7.9, "stiff flying rod": 8.5}


def leaning(down: float, aside: float) -> np.ndarray:
    """A frame whose x axis points down and aside, in the plane of x and z."""
    g = np.eye(4)
    g[[0, 2], 0], g[[0, 2], 2] = (aside, -down), (down, aside)
    return g


def cantilever(
    name: str, stiffer: float = 1.0, force: float | None = None, *, held: bool = False, points: int = 10
) -> tuple[ls.Model, np.ndarray]:
    """A clamped rod that hangs, and its equilibrium under a horizontal force at the tip; None is that of the paper.
    With `held` the force acts until t = 0, so that the rod starts without acceleration, as in the paper's Algorithm 1.
    """
    c = CANTILEVERS[name]
    force = c["force"] if force is None else force
    robot = ls.Robot(f"{name} cantilever")
    material = ls.Material(young=stiffer * c["young"], poisson=0.5, density=c["density"])
    rod = ls.Rod(
        c["length"], ls.SectionCircle(c["radius"]), ls.BasisChebyshev(bending_y=2), material, gauss_points=points
    )
    robot.add_link("rod", rod, placement=leaning(1.0, 0.0))
    free = robot.build()
    robot.add_point_load("pull", "rod", force=lambda t: (force if t <= 0.0 else 0.0, 0.0, 0.0))
    pulled = robot.build()
    return pulled if held else free, ls.solve_statics(pulled).q


def pulse(t: float) -> float:
    """Rises from zero to one at PEAK and falls to zero again in the same time."""
    return max(0.0, 1.0 - abs(t / PEAK - 1.0))


def flying_rod(name: str) -> ls.Model:
    """A free rod with its loads."""
    length, force, moment = (np.array(FLIGHT[name][key]) for key in ("length", "force", "moment"))
    section, material = SECTIONS[name]
    basis = ls.BasisChebyshev(torsion=2, bending_y=2, bending_z=2)
    start = leaning(0.8, 0.6)
    start[2, 3] = 0.8 * length
    robot = ls.Robot(f"{name} flying rod", gravity=(0, 0, 0))
    rod = ls.Rod(float(length), section, basis, material, gauss_points=10)
    robot.add_link("rod", rod, ls.JointFree(), placement=start)
    robot.add_point_load("throw", "rod", force=lambda t: pulse(t) * force, moment=lambda t: pulse(t) * moment)
    return robot.build()


def swing(name: str, dt: float = DT, duration: float = DURATION) -> tuple[dict[str, Any], ls.Model, ls.Trajectory]:
    """Let a cantilever go: its numbers, model and motion. Energies are in what there is to swing with."""
    model, q0 = cantilever(name)
    motion = ls.simulate(model, duration, q0, method="generalized_alpha", dt=dt)
    E, hanging = ls.energy(model, motion.q, motion.v), ls.energy(model, model.neutral(), np.zeros(model.nv)).total
    swung = (E.total - hanging) / (E.total[0] - hanging)
    numbers = {
        "start": ls.frame_pose(model, q0, "rod")[[0, 2], 3],
        "largest rise of energy": float(swung.max() - 1.0),
        "energy at the end": float(swung[-1]),
        "wall time over duration": motion.statistics.wall_time / duration,
    }
    return numbers, model, motion


def fly(
    name: str, dt: float | None = DT, duration: float = DURATION, **options: Any
) -> tuple[dict[str, Any], ls.Model, ls.Trajectory]:
    """Throw a rod: numbers of its flight once the loads have ended, its model and motion. `options` go to simulate."""
    model = flying_rod(name)
    motion = ls.simulate(model, duration, dt=dt, **({"method": "newmark"} | options))
    mass, impulse = model.links.mass.sum(), PEAK * np.array(FLIGHT[name]["force"])
    free = motion.t >= 2.0 * PEAK - 1e-9
    t, q, v = motion.t[free], motion.q[free], motion.v[free]
    h, E, center = ls.momentum(model, q, v), ls.energy(model, q, v).total, ls.center_of_mass(model, q)
    linear, angular = h[:, 3:], h[:, :3] - np.cross(center, h[:, 3:])
    straight = ls.center_of_mass(model, motion.q[0]) + np.outer(t - PEAK, impulse / mass)
    trend = np.polyfit(t, E, 1)[0] * (t[-1] - t[0])
    numbers = {
        "linear momentum off the impulse": _largest(linear - impulse) / np.linalg.norm(impulse),
        "change of angular momentum": _largest(angular - angular[0]) / np.linalg.norm(angular[0]),
        "energy": float(E.mean()),
        "spread of energy": float(np.ptp(E) / E.mean()),
        "trend of energy": float(trend / E.mean()),
        "centre off its line": _largest(center - straight) / FLIGHT[name]["length"],
        "wall time over duration": motion.statistics.wall_time / duration,
    }
    return numbers, model, motion


def _largest(x: np.ndarray) -> float:
    """Length of the longest of the vectors x (n, 3)."""
    return float(np.linalg.norm(x, axis=1).max())


def main(show: bool = False, out: str | None = None, dt: float = DT) -> dict[str, dict[str, Any]]:
    """All four rods: numbers by name, those of the paper's Table I beside the times."""
    runs = {f"{name} cantilever": swing(name, dt) for name in CANTILEVERS}
    runs |= {f"{name} flying rod": fly(name, dt) for name in FLIGHT}
    if show or out:
        _plot(runs, show, out)
    return {name: numbers | {"the paper's": PAPER[name]} for name, (numbers, *_) in runs.items()}


def _plot(runs: dict[str, tuple[dict[str, Any], ls.Model, ls.Trajectory]], show: bool, out: str | None) -> None:
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 3, figsize=(14, 8), layout="constrained", width_ratios=(1, 1.6, 1))
    for row, (name, every, last) in zip(grid, (("soft", 0.5, 10.0), ("stiff", 0.05, 1.0))):
        title = f"{name} cantilever, every {every:g} s to {last:g} s"
        _snapshots(row[0], *runs[f"{name} cantilever"][1:], np.arange(0.0, last + 1e-9, every), (0, 2), title)
        times = np.arange(0.0, 10.1, 0.5)
        for axes, plane in ((row[1], (0, 2)), (row[2], (1, 2))):
            _snapshots(axes, *runs[f"{name} flying rod"][1:], times, plane, f"{name} flying rod, every 0.5 s to 10 s")
    if out:
        figure.savefig(out, dpi=130)
    if show:
        plt.show()
    plt.close(figure)


def _snapshots(
    axes: Any, model: ls.Model, motion: ls.Trajectory, times: np.ndarray, plane: tuple[int, int], title: str
) -> None:
    """Shapes at some times, early ones dark, in one plane of the world, and the path of the centre of mass."""
    import matplotlib.pyplot as plt

    kept = np.searchsorted(motion.t, times - 1e-9)
    points = ls.frame_pose(model, motion.q[kept], "rod", s=np.linspace(0.0, 1.0, 61))[..., :3, 3]
    for k, line in enumerate(points):
        axes.plot(*line[:, plane].T, color=plt.get_cmap("viridis")(k / len(points)), linewidth=1.4)
    if model.gravity.any():
        axes.plot(
            *points[
                0,
                0,
                plane,
            ],
            "ks",
            markersize=6,
        )
    else:
        center = ls.center_of_mass(model, motion.q[motion.t <= times[-1] + 1e-9])
        axes.plot(*center[:, plane].T, "k--", linewidth=0.9)
    axes.set(xlabel=f"{'xyz'[plane[0]]} [m]", ylabel=f"{'xyz'[plane[1]]} [m]", title=title)
    axes.title.set_fontsize(10)
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    for rod, values in main(show=len(sys.argv) < 2, out=sys.argv[1] if len(sys.argv) > 1 else None).items():
        print(rod, *(f"  {key}: {value}" for key, value in values.items()), sep="\n")
