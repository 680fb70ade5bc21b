"""A soft finger whose shape, tendons and tensions are found together, so that its tip reaches a point and stays there.

A finger of silicone, 12 cm long, hangs down and has two tendons, one on each side. Its radius is a cubic spline with 20
control points along the finger. The tendons run at distances from the axis that change linearly. Both tensions are
straight lines between 13 times. All 50 numbers are searched together: from rest, the tip must come to a point beside
the finger in 0.3 s, and stay there for 0.3 s. The loss is the mean square distance in the second half, with small
weights on the work of the tendons and on waves of the outline. Its gradient comes from `Rollout.backward`, one pass
for all numbers, and `minimize` takes the steps.

The design is then simulated with adaptive steps of another method, which shows the distance that a real controller of
tensions would see.

    python examples/designed_finger.py out/designed_finger
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

import lissom as ls

LENGTH, RADIUS, OFFSET = 0.12, 0.008, 0.005  # of the finger to begin with, and of the tendons from the axis [m]
POINTS, KNOTS = 20, 13  # control points of the outline, and times of the tensions
DURATION, STEPS = 0.6, 60  # [s]
TARGET = np.array([0.07, 0.0, -0.075])  # [m]
THINNEST, THICKEST, INSIDE = 0.004, 0.012, 0.8  # radii [m], and the largest distance of a tendon as a share of them
STRONGEST = 12.0  # tension [N]
EFFORT, WAVES = 1e-7, 3e-2  # weights of the squared tensions [1/N²], and of second differences of the radii [-]
SHAPE = "finger.section.radius.c"
ROUTES = ("pull.offset.values[{}][1]", "back.offset.values[{}][1]")


def build() -> ls.Model:
    """The uniform finger."""
    robot = ls.Robot("designed finger")
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, POINTS - 2), np.ones(3)])
    section = ls.SectionCircle(BSpline(knots, np.full(POINTS, RADIUS), 3))
    silicone = ls.Material(young=4e5, poisson=0.45, density=1070.0, damping_time=0.01)
    down = np.eye(4)
    down[:3, :3] = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    rod = ls.Rod(LENGTH, section, ls.BasisLegendre(bending_y=4, elongation=1), silicone, gauss_points=16)
    robot.add_link("finger", rod, placement=down)
    for name, side in (("pull", 1.0), ("back", -1.0)):
        route = ls.Tabulated(np.linspace(0.0, 1.0, 4), np.full((4, 2), (0.0, side * OFFSET)))
        robot.add_tendon(name, "finger", route)
    return robot.build()


def lines() -> np.ndarray:
    """Weights (STEPS, KNOTS) of the tensions at the knots in those at the ends of the steps."""
    times, knots = DURATION * np.arange(1, STEPS + 1) / STEPS, np.linspace(0.0, DURATION, KNOTS)
    return np.maximum(0.0, 1.0 - np.abs(times[:, None] - knots) / knots[1])


def design(x: dict[str, Any]) -> dict[str, Any]:
    """Design values by their paths: the outline, and the distances of both tendons from the axis at four places."""
    sides = zip(ROUTES, x["routes"].T)
    return {SHAPE: x["radii"]} | {path.format(k): side[k] for path, side in sides for k in range(len(side))}


def start() -> dict[str, np.ndarray]:
    """Values at the start of the search: the uniform finger, whose first tendon pulls with 4 N."""
    routes = np.tile((OFFSET, -OFFSET), (4, 1))
    tensions = np.column_stack([np.minimum(4.0, 2.0 * np.arange(KNOTS)), np.zeros(KNOTS)])
    return {"radii": np.full(POINTS, RADIUS), "routes": routes, "tensions": tensions}


def loss(model: ls.Model, x: dict[str, Any]) -> tuple[float, dict[str, np.ndarray]]:
    """The loss of a design and its tensions, and its derivatives."""
    values, weights = design(x), lines()
    own = model.with_(values)
    motion = ls.rollout(own, u=weights @ x["tensions"], dt=DURATION / STEPS)
    pose = ls.frame_pose(own, motion.q, "finger")
    away, late = pose[:, :3, 3] - TARGET, np.arange(STEPS + 1) > STEPS // 2
    share = late[:, None] / late.sum() / LENGTH**2
    total = 0.5 * (share * away * away).sum()
    rows = np.einsum("ni,nij->nj", share * away, pose[:, :3, :3])
    dL_dq = np.einsum("nj,njk->nk", rows, ls.frame_jacobian(own, motion.q, "finger")[:, 3:])
    found = motion.backward(dL_dq, parameters=list(values))
    routes = np.array([found.parameters[path.format(k)] for path in ROUTES for k in range(4)]).reshape(2, 4).T
    effort, waves = EFFORT * x["tensions"], WAVES * np.diff(x["radii"] / RADIUS, 2)
    total += 0.5 * (EFFORT * x["tensions"] ** 2).sum() + 0.5 * (waves * np.diff(x["radii"] / RADIUS, 2)).sum()
    bends = np.convolve(waves, (1.0, -2.0, 1.0)) / RADIUS
    return float(total), {
        "radii": found.parameters[SHAPE] + bends,
        "routes": routes,
        "tensions": weights.T @ found.u + effort,
    }


def designed(model: ls.Model, iterations: int = 150) -> ls.Minimum:
    """The design and the tensions found."""

    def inside(x: dict[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Share of the radius at the places of both tendons less their distances from the axis [m], (2, 4)."""
        at = np.array(
            [np.interp(np.linspace(0.0, 1.0, 4), np.linspace(0.0, 1.0, POINTS), row) for row in np.eye(POINTS)]
        )
        sides, apart = np.array([1.0, -1.0]), np.zeros((2, 4, 4, 2))
        for side, sign in enumerate(sides):
            apart[side, range(4), range(4), side] = -sign
        by_radii = np.broadcast_to(INSIDE * at.T, (2, 4, POINTS))
        return (INSIDE * x["radii"] @ at - sides[:, None] * x["routes"].T), {
            "radii": by_radii,
            "routes": apart,
            "tensions": np.zeros((2, 4, KNOTS, 2)),
        }

    least = np.tile((0.002, -INSIDE * THICKEST), (4, 1))
    bounds = {"radii": (THINNEST, THICKEST), "routes": (least, -least[:, ::-1]), "tensions": (0.0, STRONGEST)}
    limits = [(inside, 0.0, None)]
    options = {"bounds": bounds, "constraints": limits, "iterations": iterations, "tolerance": 1e-5}
    return ls.minimize(lambda x: loss(model, x), start=start(), **options)


def simulated(model: ls.Model, x: dict[str, Any], **options: Any) -> ls.Trajectory:
    """The motion of a design by `simulate`."""
    tensions = ls.Tabulated(np.linspace(0.0, DURATION, KNOTS), x["tensions"], interpolation="linear")
    times = np.linspace(0.0, DURATION, STEPS + 1)
    return ls.simulate(model.with_(design(x)), DURATION, u=tensions, t_eval=times, **options)


def distances(motion: ls.Trajectory) -> np.ndarray:
    """Distances of the tip from its target at all times [m]."""
    return np.linalg.norm(ls.frame_pose(motion.model, motion.q, "finger")[:, :3, 3] - TARGET, axis=1)


def main(folder: str | Path | None = None, iterations: int = 150) -> dict[str, float]:
    """Find the finger; the numbers, pictures of it and a film of its motion."""
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    model = build()
    found = designed(model, iterations)
    numbers = {"gradients": float(found.calls), "time of the search [s]": found.seconds}
    late = np.arange(STEPS + 1) > STEPS // 2
    for name, x in (("before", start()), ("after", found.values)):
        motion = simulated(model, x, rtol=1e-8, atol=1e-10)
        numbers[f"distance from the point, {name} [mm]"] = 1e3 * float(np.sqrt(np.mean(distances(motion)[late] ** 2)))
        if folder is not None:
            shown = motion.q[[0, STEPS // 4, STEPS // 2, STEPS]]
            ls.render(motion.model, shown, Path(folder) / f"{name}.png", title=name)
            motion.animate(Path(folder) / f"{name}.mp4", trail="finger")
    if folder is not None:
        print(found.report)
    return numbers


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:]).items():
        print(f"{name:44s}{value:12.4f}")
