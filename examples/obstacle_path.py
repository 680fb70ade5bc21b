"""Three tendons guide the tip of a soft rod into a box past an obstacle (SoRoSim 2022, section 6 and figure 15).

The paper draws a rod, an obstacle and a goal and gives no numbers; all of them are ours. A rod of 40 cm hangs from its
clamp: radius 1 cm, E = 5 MPa, ν = 0.5, 1000 kg/m³, viscosity 0.1 MPa·s. Its halves are two links, for one of the
tendons, which run 8 mm from the axis at 120° to each other, ends half-way, at their seam: with it the rod bends into
an S. Each half bends cubically about both axes and stretches linearly. A wall stands between the rod and the goal.

Plan. For a place of the tip the tensions are those whose equilibrium puts it there, by `minimize` of the squared
distance under u ≥ 0 with the exact sensitivity: a change of tensions moves the equilibrium by K_t dq = B du, hence the
tip by

    dp/du = R J_v K_t⁻¹ B                                                                                        (1)

with R and J_v of the tip, K_t the tangent stiffness and B the actuation matrix. Raised together, the tensions of the
goal drive the rod into the wall. Two places beside the wall, chosen by hand, lead around it: the tensions pass through
those of the places and of the goal on smooth cubics that never overshoot, so that they stay ≥ 0 in between.

Check. Both motions are computed with their inertia. A point of the rod's skin is within its radius of the centreline,
so the clearance is at least the least distance of the centreline from the box, less the radius; a negative distance
is the depth inside. Less half the steps between the points and times that were looked at, it is certain.

    python examples/obstacle_path.py out/obstacle_path
"""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

LENGTH, RADIUS, OFFSET = 0.4, 0.01, 0.008  # of the rod and of the tendons from its axis [m]
SILICONE = ls.Material(young=5e6, poisson=0.5, density=1000.0, viscosity=1e5)
HALVES = "upper half", "lower half"
TENDONS = {"t1": (120.0, HALVES), "t2": (-120.0, HALVES), "t3": (0.0, HALVES[:1])}  # from x towards y [deg], where
STRONGEST = 120.0  # tension [N]


@dataclass(frozen=True)
class Box:
    """A box along the axes of the world: two corners [m]."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Of points (..., 3) from the surface, shape (...) [m]; negative inside."""
        outside = np.maximum(np.subtract(self.low, points), np.subtract(points, self.high))
        return np.linalg.norm(np.maximum(outside, 0.0), axis=-1) + np.minimum(outside.max(axis=-1), 0.0)

    @property
    def centre(self) -> np.ndarray:
        """Shape (3,) [m]."""
        return 0.5 * np.add(self.low, self.high)


WALL = Box((0.03, -0.06, -0.43), (0.08, 0.06, -0.28))
GOAL = Box((0.105, -0.015, -0.355), (0.135, 0.015, -0.325))
BESIDE = (-0.01, 0.15, -0.33), (0.13, 0.13, -0.30)  # places of the tip on the way [m]
MOVING = 0.25, 3.75  # while the tensions change [s]
DURATION, SAMPLES, POINTS = 6.0, 1201, 101  # [s], times and points of each half looked at
COLORS = "C0", "C1"


def robot() -> ls.Robot:
    """The rod; section axes y and z are the world's y and x."""
    made = ls.Robot("guided rod")
    down = np.eye(4)
    down[:3, :3] = np.transpose([(0, 0, -1), (0, 1, 0), (1, 0, 0)])
    basis = ls.BasisLegendre(bending_y=3, bending_z=3, elongation=1)
    half = ls.Rod(LENGTH / 2, ls.SectionCircle(RADIUS), basis, SILICONE)
    made.add_link(HALVES[0], half, placement=down)
    made.add_link(HALVES[1], half, parent=HALVES[0])
    for name, (angle, along) in TENDONS.items():
        across = OFFSET * np.sin(np.radians(angle)), OFFSET * np.cos(np.radians(angle))
        made.add_tendon(name, path=[ls.PathRod(half_of, across) for half_of in along])
    return made


def centreline(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """Points from the clamp to the tip, shape (..., 2 POINTS, 3) [m]."""
    s = np.linspace(0.0, 1.0, POINTS)
    return np.concatenate([ls.frame_pose(model, q, name, s=s)[..., :3, 3] for name in HALVES], axis=-2)


def tip(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """Place of the tip, shape (..., 3) [m]."""
    return ls.frame_pose(model, q, HALVES[1])[..., :3, 3]


def sensitivity(model: ls.Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """dp/du of the tip at an equilibrium by (1), shape (3, 3) [m/N]."""
    dq_du = np.linalg.solve(ls.tangent_stiffness(model, q, u), ls.actuation_matrix(model, q))
    return ls.frame_pose(model, q, HALVES[1])[:3, :3] @ ls.frame_jacobian(model, q, HALVES[1])[3:] @ dq_du


def tensions(model: ls.Model, place: Any, start: np.ndarray) -> tuple[np.ndarray, int]:
    """Tensions within [0, STRONGEST] that bring the tip nearest to a place, shape (3,) [N], and equilibria needed."""
    q = ls.solve_statics(model, start).q

    def distance(values: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        nonlocal q
        q = ls.solve_statics(model, values["u"], q).q
        gap = tip(model, q) - place
        return 0.5 * gap @ gap, {"u": sensitivity(model, q, values["u"]).T @ gap}

    found = ls.minimize(distance, start={"u": start}, bounds={"u": (0.0, STRONGEST)}, tolerance=1e-12)
    return found.values["u"], found.calls


def plan(model: ls.Model) -> tuple[np.ndarray, int]:
    """Tensions for the places on the way and the goal, one row each [N], and the equilibria needed."""
    rows, total, u = [], 0, np.full(3, 10.0)
    for place in (*BESIDE, GOAL.centre):
        u, count = tensions(model, place, np.maximum(u, 1.0))
        rows.append(u)
        total += count
    return np.array(rows), total


def inputs(*rows: np.ndarray) -> ls.Samples:
    """Tensions from zero through rows to the last, evenly spread in time, which then stays."""
    times = np.linspace(MOVING[0], MOVING[1], len(rows) + 1)
    return ls.Samples([0.0, *times, DURATION], np.vstack([np.zeros((2, 3)), *rows, rows[-1]]), smooth=True)


@dataclass(frozen=True)
class Motion:
    """A motion with its centreline (n, 2 POINTS, 3) and the clearance of the skin from the wall (n,) [m]."""

    trajectory: ls.Trajectory
    line: np.ndarray
    clearance: np.ndarray

    @property
    def least(self) -> float:
        """Clearance that is certain between the points and the times looked at, too, to their first order [m]."""
        along = np.linalg.norm(np.diff(self.line, axis=1), axis=-1).max()
        between = np.linalg.norm(np.diff(self.line, axis=0), axis=-1).max()
        return float(self.clearance.min() - 0.5 * (along + between))


def move(model: ls.Model, u: ls.Samples) -> Motion:
    """The motion from rest under tensions."""
    times = np.linspace(0.0, DURATION, SAMPLES)
    found = ls.simulate(model, DURATION, ls.solve_statics(model).q, u=u, t_eval=times, rtol=1e-7, atol=1e-9)
    line = centreline(model, found.q)
    return Motion(found, line, WALL.distance(line).min(axis=1) - RADIUS)


def sensitivity_mismatch(model: ls.Model, u: np.ndarray, step: float = 1e-3) -> float:
    """(1) against central differences of equilibria over ± step [N], relative to the largest entry."""
    exact = sensitivity(model, ls.solve_statics(model, u).q, u)
    ends = ls.solve_statics(model, u + step * np.array([1.0, -1.0])[:, None, None] * np.eye(3)).q
    numerical = np.subtract(*tip(model, ends)).T / (2 * step)
    return float(np.abs(exact - numerical).max() / np.abs(exact).max())


def study() -> tuple[dict[str, Any], ls.Model, dict[str, Motion]]:
    """The numbers, the model and both motions."""
    model = robot().build()
    rows, count = plan(model)
    motions = {"around": move(model, inputs(*rows)), "straight": move(model, inputs(rows[-1]))}
    found = motions["around"].trajectory
    end, rest = tip(model, found.q[-1]), ls.solve_statics(model, rows[-1]).q
    still = found.t >= DURATION - 0.5
    numbers = {
        "tensions beside the wall, first [N]": rows[0],
        "tensions beside the wall, then [N]": rows[1],
        "tensions of the goal [N]": rows[-1],
        "equilibria for the plan": count,
        "mismatch of the sensitivity": sensitivity_mismatch(model, rows[-1]),
        "planned tip to the goal's centre [m]": float(np.linalg.norm(tip(model, rest) - GOAL.centre)),
        "end of the tip [m]": end,
        "its distance from the goal's box [m]": float(GOAL.distance(end)),
        "its distance from the equilibrium [m]": float(np.linalg.norm(end - tip(model, rest))),
        "largest speed of the tip [m/s]": _speed(model, found),
        "its speed in the last half second [m/s]": _speed(model, found, still),
        "least tension [N]": float(min(motion.trajectory.u.min() for motion in motions.values())),
        "clearance around the wall [m]": float(motions["around"].clearance.min()),
        "of it certain [m]": motions["around"].least,
        "clearance on the straight ramp [m]": float(motions["straight"].clearance.min()),
        "energy balance": ls.energy_balance(model, found).residual,
    }
    return numbers, model, motions


def _speed(model: ls.Model, motion: ls.Trajectory, at: Any = slice(None)) -> float:
    twist = ls.frame_twist(model, motion.q[at], motion.v[at], HALVES[1])
    return float(np.linalg.norm(twist[:, 3:], axis=1).max())


def main(out: str | Path | None = None) -> dict[str, Any]:
    """The numbers of the plan and of both motions; the figure goes to the folder `out`."""
    numbers, model, motions = study()
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot(model, motions, folder / "obstacle_path.png")
    return numbers


def _plot(model: ls.Model, motions: dict[str, Motion], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14, 8.5), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1))
    _plot_space(parts[0].add_subplot(), model, motions)
    above, clear, pull = parts[1].subplots(3, 1, height_ratios=(1.7, 1, 1))
    _plot_above(above, motions)
    for (word, motion), color in zip(motions.items(), COLORS):
        clear.plot(motion.trajectory.t, 1e3 * motion.clearance, color=color, label=word)
    clear.axhline(0.0, color="k", linewidth=0.8)
    clear.set(title="clearance from the wall [mm]")
    for column, name in zip(motions["around"].trajectory.u.T, TENDONS):
        pull.plot(motions["around"].trajectory.t, column, label=name)
    pull.set(title="tensions around the wall [N]", xlabel="t [s]")
    for panel in (clear, pull):
        panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        panel.grid(alpha=0.3)
        panel.set_xlim(0.0, DURATION)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def with_boxes(model: ls.Model) -> ls.Model:
    """The same robot with the wall and the goal as contact shapes, for pictures."""
    drawn = copy(model.description)
    drawn.contacts = {}
    for name, box in (("wall", WALL), ("goal", GOAL)):
        place = np.eye(4)
        place[:3, 3] = box.centre
        shape = ls.ShapeBox(*np.subtract(box.high, box.low))
        drawn.add_contact(name, HALVES, shape, placement=place, stiffness=1.0)
    return drawn.build()


def _plot_space(axes: Any, model: ls.Model, motions: dict[str, Motion]) -> None:
    around = motions["around"]
    t = around.trajectory.t
    shown = [int(np.argmin(np.abs(t - x))) for x in np.linspace(*MOVING, 9)]
    ls.plot_shapes(with_boxes(model), around.trajectory.q[shown], values=t[shown], value_label="time [s]",
                   view=(22.0, -62.0), trail=around.line[:, -1], title="around the wall to the goal",
                   axes=axes)  # fmt: skip


def _plot_above(axes: Any, motions: dict[str, Motion]) -> None:
    from matplotlib.patches import Rectangle

    for box, color, word in ((WALL, "C3", "wall"), (GOAL, "C2", "goal")):
        size = np.subtract(box.high, box.low)
        axes.add_patch(Rectangle(box.low[:2], size[0], size[1], color=color, alpha=0.35, label=word))
    for (word, motion), color in zip(motions.items(), COLORS):
        axes.plot(*motion.line[:, -1, :2].T, "--", color=color, label=f"tip, {word}")
    axes.set(title="seen from above", xlabel="x [m]", ylabel="y [m]", aspect="equal")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    for name, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {np.array2string(np.asarray(number), precision=4)}")
