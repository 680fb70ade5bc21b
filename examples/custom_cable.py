"""A soft rod pulled into shape by one cable on a path of its own, 250 N (SoRoSim 2022, section 6 and figure 14).

The paper draws the path and gives no numbers, so those here are ours: a silicone rod 0.5 m long, 3 cm in radius,
E = 1 MPa, ν = 0.5, all six strains; the cable starts above the axis, winds once across the section and ends below,
(y, z) = (20 sin 2πs, 20 cos πs) mm. No gravity, so that the tension alone shapes the rod.

Reference: cut at s, the end of rod and cable together feels nothing, so the section's wrench is that of the cable
alone, Σ (ξ − ξ*) = −T (d × t, t) with t the unit vector along ε + κ × d + d'. These are six equations for ξ at every
s, solved point by point, and the shape follows from ξ.

    python examples/custom_cable.py custom_cable.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import lissom as ls

LENGTH, TENSION = 0.5, 250.0
SECTION, MATERIAL = ls.SectionCircle(0.03), ls.Material(young=1e6, poisson=0.5, density=1000)
STRAIGHT = np.array([0.0, 0, 0, 1, 0, 0])


def path(s: float) -> tuple[float, float]:
    """(y, z) of the cable in the section [m]."""
    return 0.02 * np.sin(2 * np.pi * s), 0.02 * np.cos(np.pi * s)


def rod(order: int) -> ls.Model:
    """The rod with its cable, every strain of one order."""
    robot = ls.Robot("custom cable", gravity=(0, 0, 0))
    basis = ls.BasisLegendre(order, order, order, order, order, order)
    robot.add_link("rod", ls.Rod(LENGTH, SECTION, basis, MATERIAL, gauss_points=2 * order + 12))
    robot.add_tendon("cable", "rod", path)
    return robot.build()


def cut_strain(s: float, guess: np.ndarray) -> np.ndarray:
    """ξ at s from the balance of the cut, shape (6,)."""
    stiffness = np.diag(SECTION.constitution(s, MATERIAL, "rod").stiffness)
    d = np.array([0.0, *path(s)])
    slope = 0.02 * np.array([0.0, 2 * np.pi * np.cos(2 * np.pi * s), -np.pi * np.sin(np.pi * s)]) / LENGTH

    def balance(strain: np.ndarray) -> np.ndarray:
        along = strain[3:] + np.cross(strain[:3], d) + slope
        t = along / np.linalg.norm(along)
        return (strain - STRAIGHT) + TENSION * np.concatenate([np.cross(d, t), t]) / stiffness

    return fsolve(balance, guess, xtol=1e-13)


def exact_tip() -> np.ndarray:
    """Pose of the tip, 4x4, from g' = g ξ^ with ξ by the cut."""
    last = STRAIGHT

    def rate(s: float, g: np.ndarray) -> np.ndarray:
        nonlocal last
        last = cut_strain(s, last)
        w, e = last[:3], last[3:]
        R = g[:9].reshape(3, 3)
        turn = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return LENGTH * np.concatenate([(R @ turn).ravel(), R @ e])

    end = solve_ivp(rate, (0, 1), np.concatenate([np.eye(3).ravel(), np.zeros(3)]), "DOP853", rtol=1e-11, atol=1e-11)
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = end.y[:9, -1].reshape(3, 3), end.y[9:, -1]
    return g


def main(show: bool = False, out: str | None = None, order: int = 6) -> dict[str, Any]:
    """Equilibrium at 250 N; returns the tip, its distance from the reference, and the cable that was taken in."""
    model = rod(order)
    found = ls.solve_statics(model, u=[TENSION])
    g = ls.frame_pose(model, found.q, "rod")
    if show or out:
        _plot(model, found.q, show, out)
    taken_in = ls.path_lengths(model, model.neutral()) - ls.path_lengths(model, found.q)
    return {
        "tip": g[:3, 3],
        "tip error": float(np.linalg.norm(g[:3, 3] - exact_tip()[:3, 3])) / LENGTH,
        "cable taken in": float(taken_in[0]),
        "residual": float(found.residual),
        "iterations": int(found.iterations),
    }


def _plot(model: ls.Model, q: np.ndarray, show: bool, out: str | None) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 5.5), layout="constrained")
    shapes = {"no tension": model.neutral(), f"{TENSION:g} N": q}
    for axes, (title, shape) in zip(figure.subplots(1, 2), shapes.items()):
        ls.plot_shapes(model, shape, axes=axes, title=title)
    if out:
        figure.savefig(out, dpi=130)
    if show:
        plt.show()
    plt.close(figure)


if __name__ == "__main__":
    print(main(show=len(sys.argv) < 2, out=sys.argv[1] if len(sys.argv) > 1 else None))
