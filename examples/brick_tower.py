"""Towers of ten bricks: one that is piled carelessly, and harmonic stacks that overhang by more than their length.

A stack of equal bricks of length L can overhang most if the centre of mass of all bricks above a level lies over the
edge of the brick below: the k-th brick from the top then juts out by L/(2k) beyond the one below it, and ten bricks by
L/2 (1 + 1/2 + ... + 1/9) = 1.41 L. Stacks with a share of these overhangs stand below a share of 1 and fall above. The
centre of pressure on every level is then at (1 − share) L/2 from the edge, and the force is the weight above.

    python examples/brick_tower.py out/brick_tower
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

COUNT = 10
LENGTH, WIDTH, HEIGHT = 0.2, 0.1, 0.06  # [m]
CLAY = ls.Material(young=2e9, poisson=0.2, density=1800, friction=0.6)
WEIGHT = CLAY.density * LENGTH * WIDTH * HEIGHT * 9.81
STANDS, FALLS = 0.97, 1.03  # shares of the largest overhangs
STEP = 2e-3  # [s]
SETTLED = 1.0  # [s]
COLORS = (0.72, 0.33, 0.22), (0.83, 0.47, 0.33)  # of bricks in turn
VIEW = (8.0, -65.0)  # elevation and azimuth of the eye [deg]


def tower() -> ls.Model:
    """Ten loose bricks and a floor; a brick has the coordinates of its quaternion and its place."""
    robot = ls.Robot("tower")
    brick = ls.RigidBody.box(LENGTH, WIDTH, HEIGHT, material=CLAY)
    for k in range(COUNT):
        drawn = ls.Mesh.of_shape(ls.ShapeBox(LENGTH, WIDTH, HEIGHT), color=COLORS[k % 2])
        robot.add_link(f"brick {k}", replace(brick, meshes=(drawn,)), ls.JointFree())
    robot.add_contact("floor", ls.EVERYTHING, ls.ShapePlane(), material=CLAY)
    robot.add_mutual_contacts()
    return robot.build()


def piled(x: Any, y: Any = 0.0, turn: Any = 0.0) -> np.ndarray:
    """q of bricks on each other, from the lowest, with places x and y [m] and angles about the vertical [rad]."""
    q = np.zeros((COUNT, 7))
    q[:, 0], q[:, 3] = np.cos(0.5 * np.asarray(turn)), np.sin(0.5 * np.asarray(turn))
    q[:, 4], q[:, 5], q[:, 6] = x, y, HEIGHT * (np.arange(COUNT) + 0.5)
    return q.ravel()


def careless() -> np.ndarray:
    """q of bricks that are piled by hand: off by some millimetres and degrees."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-0.008, 0.008, (2, COUNT))
    return piled(x, y, rng.uniform(-0.2, 0.2, COUNT))


def harmonic(share: float) -> np.ndarray:
    """q of a stack with this share of the largest overhangs."""
    juts = 0.5 * LENGTH * share / np.arange(COUNT - 1, 0, -1)  # from the lowest level
    return piled(np.append(0.0, np.cumsum(juts)))


def places(q: np.ndarray) -> np.ndarray:
    """Places of the centres of the bricks, shape (..., 10, 3) [m]."""
    return q.reshape(*q.shape[:-1], COUNT, 7)[..., 4:]


def levels(model: ls.Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upward force [N] and place of its line of action along x [m] on the bricks above each level, shape (10,)."""
    found = ls.contact_forces(model, q)
    force, moment = np.zeros(COUNT), np.zeros(COUNT)
    for link, other, point, push in zip(found.link, found.other, found.point, found.force):
        pair = [-1 if name is None else int(name.split()[1]) for name in (link, other)]
        upwards = push[2] if pair[0] > pair[1] else -push[2]
        force[max(pair)] += upwards
        moment[max(pair)] += upwards * point[0]
    return force, moment / force


def stands(model: ls.Model, q: np.ndarray, dt: float | None) -> dict[str, float]:
    """A pile that is let go, and is watched for three seconds after the first."""
    motion = ls.simulate(model, SETTLED + 3.0, q, dt=dt, t_eval=np.linspace(0.0, SETTLED + 3.0, 41))
    place = places(motion.q)
    still = place[motion.t >= SETTLED]
    force, _ = levels(model.anchored(motion.anchors), motion.q[-1])
    return {
        "drift of a brick in three seconds [m]": float(np.linalg.norm(still - still[0], axis=2).max()),
        "moved since it was let go [m]": float(np.linalg.norm(place[-1] - place[0], axis=1).max()),
        "force on a level off the weight above [-]": float(
            np.abs(force / (WEIGHT * np.arange(COUNT, 0, -1)) - 1).max()
        ),
    }


def overhangs(model: ls.Model) -> dict[str, float]:
    """The stack that stands: its equilibrium, its centres of pressure, and its motion from there."""
    q = harmonic(STANDS)
    places(q)[:, 2] -= 1e-6 * np.arange(1, COUNT + 1)  # so that all levels touch
    rest = ls.solve_statics(model, q0=q)
    force, at = levels(model.anchored(rest.anchors), rest.q)
    x = places(rest.q)[:, 0]
    above = np.cumsum(x[::-1])[::-1] / np.arange(COUNT, 0, -1)  # centre of mass of the bricks above each level
    motion = ls.simulate(model.anchored(rest.anchors), 3.0, rest.q, dt=STEP)
    return {
        "overhang in lengths [-]": float(np.ptp(x) / LENGTH),
        "force on a level off the weight above [-]": float(
            np.abs(force / (WEIGHT * np.arange(COUNT, 0, -1)) - 1).max()
        ),
        "pressure off the centre of mass above [m]": float(np.abs(at - above).max()),
        "pressure inside the edge [m]": float((x[:-1] + 0.5 * LENGTH - at[1:]).min()),
        "drift of a brick in three seconds [m]": float(np.abs(places(motion.q) - places(rest.q)).max()),
    }


def let_go(model: ls.Model, share: float, dt: float | None, end: float) -> tuple[ls.Trajectory, float]:
    """A stack that is let go as it is piled, and by how much its top has sunk in the end [m]."""
    motion = ls.simulate(model, end, harmonic(share), dt=dt, t_eval=np.linspace(0.0, end, 81))
    top = places(motion.q)[:, -1, 2]
    return motion, float(top[0] - top[-1])


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers of all towers; a picture goes to the folder `out`."""
    model = tower()
    falling, sunk = let_go(model, FALLS, STEP, 0.8)
    found: dict[str, Any] = {
        "largest overhang in lengths [-]": 0.5 * float((1.0 / np.arange(1, COUNT)).sum()),
        "careless, steps of 2 ms": stands(model, careless(), STEP),
        "careless, adaptive steps": stands(model, careless(), None),
        "0.97 of the overhangs": overhangs(model),
        "0.97 of the overhangs, top sunk after 4 s [m]": let_go(model, STANDS, STEP, 4.0)[1],
        "1.03 of the overhangs, top sunk after 0.8 s [m]": sunk,
    }
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        ls.render(model, falling, Path(out) / "brick_tower.png", shapes=4, view=VIEW)
    return found


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value}")
