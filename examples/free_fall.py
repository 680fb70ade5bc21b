"""A tapered rod released under gravity, with and without damping (SoRoSim 2022, section 5 and figure 13).

The rod is 0.5 m long, its radius falls from 2 cm to 1 cm, E = 1 MPa, ν = 0.5, ρ = 1000 kg/m³; torsion and both
bendings are cubic. It is clamped level and released with 1 rad/m of bending about y. The paper does not state three
things, chosen here: gravity points along −y, across the initial bend, so that the motion is three-dimensional and all
three strains take part (its energy is measured along y as well); the viscosity of the damped rod is 1e4 Pa·s; the
clamp is at the origin, where the gravitational energy is zero.

    python examples/free_fall.py free_fall.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import lissom as ls

DURATION, SHOWN = 5.0, 0.75
VISCOSITY = {"damped": 1e4, "undamped": 0.0}


def rod(viscosity: float) -> ls.Model:
    """The rod of the paper."""
    robot = ls.Robot("free fall", gravity=(0, -9.81, 0))
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=viscosity)
    basis = ls.BasisMonomial(torsion=3, bending_y=3, bending_z=3)
    robot.add_link("rod", ls.Rod(0.5, ls.SectionCircle((0.02, 0.01)), basis, material))
    return robot.build()


def release(viscosity: float, duration: float, rtol: float) -> tuple[ls.Model, ls.Trajectory]:
    """Its motion from rest, bent 1 rad/m about y all along."""
    model = rod(viscosity)
    q0 = model.neutral()
    q0[4] = 1.0  # after four modes of torsion, the constant one of bending about y
    return model, ls.simulate(model, duration, q0, rtol=rtol, atol=0.1 * rtol)


def main(show: bool = False, out: str | None = None, duration: float = DURATION, rtol: float = 1e-7) -> dict[str, Any]:
    """Release both rods; returns energies over their exchange, and where the tips are."""
    numbers: dict[str, Any] = {}
    motions = {name: release(viscosity, duration, rtol) for name, viscosity in VISCOSITY.items()}
    for name, (model, motion) in motions.items():
        E = ls.energy(model, motion.q, motion.v)
        exchanged = np.ptp(E.kinetic) + np.ptp(E.gravitational) + np.ptp(E.elastic)
        start = ls.energy(model, motion.q[0], motion.v[0])
        numbers[name] = {
            "initial energy": float(start.total),
            "initial elastic energy": float(start.elastic),
            "final energy": float(E.total[-1]),
            "largest drift": float(np.abs(E.total - E.total[0]).max() / exchanged),
            "largest rise": float((E.total - np.minimum.accumulate(E.total)).max() / exchanged),
            "balance": ls.energy_balance(model, motion).residual,
            "largest torsion": float(np.abs(motion.q[:, :4].sum(axis=1)).max()),
            "tip": ls.frame_pose(model, motion.q[-1], "rod")[:3, 3],
            "steps": motion.statistics.steps,
        }
    if show or out:
        _plot(motions, show, out)
    return numbers


def _plot(motions: dict[str, tuple[ls.Model, ls.Trajectory]], show: bool, out: str | None) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 7.5), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 1))
    for column, (name, (model, motion)) in enumerate(motions.items()):
        dense = np.linspace(0, SHOWN, 301)
        q = np.array([np.interp(dense, motion.t, row) for row in motion.q.T]).T
        ls.plot_shapes(model, q[::30], trail=ls.frame_pose(model, q, "rod")[:, :3, 3], values=dense[::30],
                       value_label="time [s]", view=(65.0, -110.0), title=f"{name}, 0 to {SHOWN} s",
                       axes=figure.add_subplot(grid[0, column]))  # fmt: skip
    axes = figure.add_subplot(grid[1, :])
    for name, (model, motion) in motions.items():
        E = ls.energy(model, motion.q, motion.v)
        parts = {"kinetic": E.kinetic, "gravitational": E.gravitational, "elastic": E.elastic, "total": E.total}
        for colour, (part, value) in enumerate(parts.items()):
            style = {"color": f"C{colour}", "linestyle": "-" if name == "damped" else "--", "linewidth": 0.9}
            axes.plot(motion.t, value, label=f"{part}, {name}", **style)
    axes.set(xlabel="t [s]", ylabel="energy [J]", xlim=(0, min(2.0, motion.t[-1])))
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    if out:
        figure.savefig(out, dpi=130)
    if show:
        plt.show()
    plt.close(figure)


if __name__ == "__main__":
    for key, value in main(show=len(sys.argv) < 2, out=sys.argv[1] if len(sys.argv) > 1 else None).items():
        print(key, value)
