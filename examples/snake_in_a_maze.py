"""A snake of three flexible rods, with hinges between them, is pushed through a maze of walls.

Its tail moves along a straight corridor, by a given motion. The head slides along the walls and finds its way through
the bends; the rods bend and rub on the corners. Two checks are made. The energy that the rods have, less the work of
the push, never rises: friction and damping only take. And no point of the snake is nearer to the middle of a wall than
the radius of the rods and half the thickness of the wall allow, but for the depth that the law of contact gives.
Distances are computed from the walls' corners alone.

    python examples/snake_in_a_maze.py out/snake_in_a_maze
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

RODS, LENGTH, RADIUS = 3, 0.16, 0.008  # [m]
RUBBER = ls.Material(young=2e7, poisson=0.45, density=1100, viscosity=2e4, friction=0.1)
ROUTE = np.array([[-0.46, 0.0], [0.08, 0.0], [0.2, 0.08], [0.34, -0.02], [0.46, 0.06], [0.62, 0.06]])  # middle [m]
WIDE, THICK, HIGH = 0.036, 0.012, 0.03  # width of the corridor, thickness and height of its walls [m]
ADVANCE, END = 0.5, 2.0  # of the tail [m], time that it takes [s]
STEP = 2e-3  # [s]
VIEW = (40.0, -40.0)  # elevation and azimuth of the eye [deg]


def smooth(x: Any) -> Any:
    """From 0 at 0 to 1 at 1, with two smooth derivatives."""
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x * x)


def wall(side: float) -> np.ndarray:
    """Corners of the middle line of the wall on one side (1 or −1) of the corridor, shape (6, 2) [m]."""
    along = np.diff(ROUTE, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    across = np.column_stack([-along[:, 1], along[:, 0]])
    both = across[np.r_[0, : len(along)]] + across[np.r_[: len(along), -1]]
    return ROUTE + side * (WIDE + THICK) * both / (both**2).sum(axis=1)[:, None]


def placed(x: float, y: float, turn: float = 0.0) -> np.ndarray:
    """Pose (4, 4) in the plane."""
    g = np.eye(4)
    g[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    g[:2, 3] = x, y
    return g


def robot() -> ls.Robot:
    """The snake, whose tail slides along x, and the walls: a box for each straight part and a round post for each
    corner."""
    made = ls.Robot("snake in a maze", gravity=(0, 0, 0))
    rod = ls.Rod(LENGTH, ls.SectionCircle(RADIUS), ls.BasisLegendre(bending_z=3), RUBBER)
    names = [f"rod {k}" for k in range(RODS)]
    made.add_link(names[0], rod, ls.JointPrismatic((1, 0, 0)), placement=placed(0.05 - RODS * LENGTH, 0.0))
    made.add_joint_motion("push", names[0], position=lambda t: ADVANCE * smooth(t / END))
    for before, name in pairwise(names):
        made.add_link(name, rod, ls.JointRevolute((0, 0, 1), stiffness=0.02, damping=1e-3), parent=before)
    for side, word in ((1.0, "left"), (-1.0, "right")):
        corners = wall(side)
        for k, (a, b) in enumerate(pairwise(corners)):
            middle, way = 0.5 * (a + b), b - a
            box = ls.ShapeBox(float(np.hypot(*way)), THICK, HIGH)
            g = placed(middle[0], middle[1], float(np.arctan2(way[1], way[0])))
            made.add_contact(f"{word} wall {k}", names, box, placement=g, per_interval=4)
        for k, corner in enumerate(corners[1:-1]):
            post = ls.ShapeCylinder(0.5 * THICK, HIGH, (0, 0, 1))
            made.add_contact(f"{word} corner {k}", names, post, placement=placed(corner[0], corner[1]), per_interval=4)
    return made


def middle_lines(model: ls.Model, q: np.ndarray, count: int = 25) -> np.ndarray:
    """Points along the snake from tail to head in all configurations, shape (n, 3 count, 2) [m]."""
    points = [ls.frame_pose(model, q, f"rod {k}", s)[:, :2, 3] for k in range(RODS) for s in np.linspace(0, 1, count)]
    return np.stack(points, axis=1)


def depth(points: np.ndarray) -> float:
    """How deep the snake with middle lines at points (..., 2) is in the walls at most [m]; negative if it is apart."""
    found = -np.inf
    for side in (1.0, -1.0):
        corners = wall(side)
        for a, b in pairwise(corners):
            part = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
            away = np.linalg.norm(points - a - part[..., None] * (b - a), axis=-1)
            found = max(found, float((RADIUS + 0.5 * THICK - away).max()))
    return found


def pushed(model: ls.Model, dt: float | None) -> tuple[ls.Trajectory, dict[str, float]]:
    """The motion, and its numbers."""
    motion = ls.simulate(model, END, dt=dt, rtol=1e-4)
    balance = ls.energy_balance(model, motion)
    kept = balance.kinetic + balance.elastic + balance.contact - balance.work  # which friction can only lower
    head = ls.frame_pose(model, motion.q[-1], f"rod {RODS - 1}")[:3, 3]
    shown = motion.q[:: max(len(motion.t) // 200, 1)]
    touching = ls.contact_forces(model, shown)
    return motion, {
        "head beyond the last bend [m]": float(head[0] - ROUTE[-2, 0]),
        "head off the middle of the last corridor [m]": float(abs(head[1] - ROUTE[-1, 1])),
        "walls touched": float(len({name for one in touching for name in one.contact})),
        "deepest in a wall [m]": depth(middle_lines(model, shown)),
        "deepest contact [m]": max(float(one.depth.max(initial=0.0)) for one in touching),
        "work of the push [J]": float(balance.work[-1]),
        "stored by the rods [J]": float(balance.elastic[-1] - balance.elastic[0]),
        "energy made, of the work [-]": float((kept - np.minimum.accumulate(kept)).max() / balance.work[-1]),
        "energy balance residual": balance.residual,
        "steps": float(motion.statistics.steps),
    }


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers by fixed and by adaptive steps; a picture goes to the folder `out`."""
    model = robot().build()
    motion, fixed = pushed(model, STEP)
    adaptive, exact = pushed(model, None)
    apart = middle_lines(model, motion.q[-1:]) - middle_lines(model, adaptive.q[-1:])
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        ls.render(model, motion, Path(out) / "snake_in_a_maze.png", shapes=4, view=VIEW)
    return {
        "steps of 2 ms": fixed,
        "adaptive steps": exact,
        "end by fixed off that by adaptive steps [m]": float(np.linalg.norm(apart, axis=2).max()),
    }


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value}")
