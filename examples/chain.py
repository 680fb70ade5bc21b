"""A chain of links of meshes: it hangs from its first link, held by contact alone, and swings.

Each link is a bar of round section along a stadium, as a closed mesh; every second link is turned by a right angle. No
joint connects them. At rest the force between two links is the weight of the links below, and the distance of their
centres that of bars that touch. While the chain swings no bar passes through another one: the middle lines of
neighbours stay linked, which the integral of Gauss tells,

    n = 1/(4π) ∮∮ (x − y) · (dx × dy)/|x − y|³ = ±1                                                          (1)

    python examples/chain.py out/chain
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

COUNT = 6
BAR, BEND, STRAIGHT = 0.003, 0.009, 0.016  # radius of the bar, of the bends of its middle line, length of its sides [m]
AROUND, ALONG = 16, 72  # vertices of a ring, rings along the bar
BALLS = 72  # contact spheres that fill a link
FRICTION = 0.2
BRASS = ls.Material(young=1e11, poisson=0.35, density=8500)
PITCH = STRAIGHT + 2.0 * BEND - 2.0 * BAR  # distance of neighbours that just touch [m]
STEP = 2e-3  # [s]
LEAN, SWING = np.radians(50.0), 0.48  # of the chain at the start of its swing [rad], duration [s]
VIEW = (10.0, 10.0)  # elevation and azimuth of the eye [deg]
COLORS = (0.83, 0.66, 0.3), (0.7, 0.72, 0.76)
G = 9.81


def middle_line(count: int) -> np.ndarray:
    """Points of the middle line of a link in its plane (x, z), along z, equally apart, shape (count, 3) [m]."""
    whole = 2.0 * STRAIGHT + 2.0 * np.pi * BEND
    s = whole * np.arange(count) / count
    out = np.zeros((count, 3))
    for k, at in enumerate(s):
        half, rest = divmod(at, 0.5 * whole)
        if rest < STRAIGHT:
            x, z = BEND, rest - 0.5 * STRAIGHT
        else:
            angle = (rest - STRAIGHT) / BEND
            x, z = BEND * np.cos(angle), 0.5 * STRAIGHT + BEND * np.sin(angle)
        out[k, [0, 2]] = (x, z) if half == 0 else (-x, -z)
    return out


def link_mesh() -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m] and triangles of a link."""
    middle = middle_line(ALONG)
    tangent = np.roll(middle, -1, axis=0) - np.roll(middle, 1, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    y = np.array([0.0, 1.0, 0.0])
    outwards = np.cross(y, tangent)
    turn = 2.0 * np.pi * np.arange(AROUND) / AROUND
    vertices = middle[:, None] + BAR * (np.cos(turn)[:, None] * outwards[:, None] + np.sin(turn)[:, None] * y)
    a = np.arange(ALONG * AROUND).reshape(ALONG, AROUND)
    b, c, d = np.roll(a, -1, axis=0), np.roll(a, (-1, -1), axis=(0, 1)), np.roll(a, -1, axis=1)
    triangles = np.concatenate([np.stack(x, axis=-1).reshape(-1, 3) for x in ((a, c, b), (a, d, c))])
    return vertices.reshape(-1, 3), triangles


def link_body(color: Any) -> ls.RigidBody:
    """A link with the mass and the inertia of its mesh."""
    import trimesh

    shape = trimesh.Trimesh(*link_mesh())
    shape.density = BRASS.density
    surface = ls.Mesh(vertices=shape.vertices, triangles=shape.faces, color=color)
    return ls.RigidBody(
        shape.mass,
        inertia=shape.moment_inertia.tolist(),
        shapes=(ls.PlacedShape(ls.ShapeMesh(surface)),),
        balls=BALLS,
        meshes=(surface,),
        material=BRASS,
    )


def robot(lean: float = 0.0) -> ls.Robot:
    """The chain below its first link, which is fixed; straight, at an angle from the vertical in the plane (y, z)."""
    made = ls.Robot("chain")
    tilt = ls.lie.se3_exp(np.array([lean, 0.0, 0.0, 0.0, 0.0, 0.0]))
    for k in range(COUNT):
        g = np.eye(4)
        g[2, 3] = -k * PITCH
        if k % 2:
            g[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
        if k:
            pivot = np.eye(4)
            pivot[2, 3] = -(0.5 * STRAIGHT + BEND)
            g = pivot @ tilt @ np.linalg.inv(pivot) @ g
        made.add_link(f"link {k}", link_body(COLORS[k % 2]), ls.JointFree() if k else None, placement=g)
    made.add_mutual_contacts(friction=FRICTION)
    return made


def poses(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """Poses of all links at all times, shape (n, 6, 4, 4)."""
    return np.stack([ls.frame_pose(model, q, f"link {k}") for k in range(COUNT)], axis=-3)


def linked(a: np.ndarray, b: np.ndarray, count: int = 120) -> float:
    """The integral (1) of the middle lines of links with poses a and b."""
    x, y = (middle_line(count) @ g[:3, :3].T + g[:3, 3] for g in (a, b))
    dx, dy = (0.5 * (np.roll(z, -1, axis=0) - np.roll(z, 1, axis=0)) for z in (x, y))
    apart = x[:, None] - y[None]
    triple = np.einsum("ijk,ijk->ij", apart, np.cross(dx[:, None], dy[None]))
    return float((triple / np.linalg.norm(apart, axis=2) ** 3).sum() / (4.0 * np.pi))


def nearest(a: np.ndarray, b: np.ndarray, count: int = 240) -> float:
    """Least distance of the middle lines of two links [m]."""
    x, y = (middle_line(count) @ g[:3, :3].T + g[:3, 3] for g in (a, b))
    return float(np.linalg.norm(x[:, None] - y[None], axis=2).min())


def hang() -> dict[str, float]:
    """The chain that is let go straight, and comes to rest."""
    model = robot().build()
    motion = ls.simulate(model, 1.0, dt=STEP)
    touching = ls.contact_forces(model.anchored(motion.anchors), motion.q[-1], motion.v[-1])
    tension = np.zeros(COUNT - 1)
    for link, other, push in zip(touching.link, touching.other, touching.force):
        first, second = (int(str(name).split()[1]) for name in (link, other))
        tension[min(first, second)] += abs(push[2])
    weight = link_body(None).mass * G
    height = poses(model, motion.q[-1])[:, 2, 3]
    return {
        "tension off the weight below [-]": float(np.abs(tension / (weight * np.arange(COUNT - 1, 0, -1)) - 1).max()),
        "distance of neighbours off bars that touch [-]": float(np.abs(-np.diff(height) / PITCH - 1.0).max()),
        "deepest [m]": float(touching.depth.max()),
    }


def swing(dt: float | None) -> tuple[ls.Model, ls.Trajectory, dict[str, float]]:
    """The chain that is let go at an angle, until it comes back to the middle."""
    model = robot(LEAN).build()
    motion = ls.simulate(model, SWING, dt=dt, rtol=1e-4, t_eval=np.linspace(0.0, SWING, 101))
    found = poses(model, motion.q)
    neighbours = [(g[k], g[k + 1]) for g in found[::5] for k in range(COUNT - 1)]
    energy = ls.energy(model, motion.q, motion.v)
    total, fall = energy.kinetic + energy.gravitational, np.ptp(energy.gravitational)
    turns = [abs(linked(a, b)) for a, b in neighbours]
    return (
        model,
        motion,
        {
            "least integral of Gauss": min(turns),
            "largest integral of Gauss": max(turns),
            "nearest middle lines, of two radii [-]": min(nearest(a, b) for a, b in neighbours) / (2.0 * BAR),
            "energy gained, of the fall [-]": float((total.max() - total[0]) / fall),
            "energy lost, of the fall [-]": float((total[0] - total[-1]) / fall),
            "swing of the last link [m]": float(np.ptp(found[:, -1, 1, 3])),
            "steps": float(motion.statistics.steps),
        },
    )


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers of the chain that hangs and that swings; a picture goes to the folder `out`."""
    model, motion, fixed = swing(STEP)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        ls.render(model, motion, Path(out) / "chain.png", shapes=5, view=VIEW)
    return {"hangs": hang(), "swings, steps of 2 ms": fixed, "swings, adaptive steps": swing(None)[2]}


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value}")
