"""Three soft fingers lift a mug, one of them through its handle.

The fingers of a hand lie side by side and reach around the mug from behind: one between the wall and the handle, two
along the other side. A tendon in each bends it towards the mug, and one motor pulls all three. The hand moves forward,
closes, and rises by 12 cm. Friction holds the mug; without friction it slips out of the hand.

The mug is a mesh: trimesh revolves the profile of the cup and the circle of the handle. The two parts overlap where the
handle meets the wall. Sizes and materials are ours. All contact laws follow from the materials: silicone rubber on the
fingers, melamine of the mug. Balls along the fingers touch the signed distance of the mesh on a grid, and balls at the
rims of the mug touch the table and the palm.

    python examples/mug.py out/mug
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

FINGERS = "in the handle", "low", "high"
LENGTH, THICK = 0.115, (0.008, 0.006)  # of a finger: length, radius at base and tip [m]
HIGH, RADIUS, WALL = 0.09, 0.04, 0.004  # of the cup: height, outer radius, thickness [m]
GRIP, BAR = (0.036, 0.027), 0.005  # of the handle: half-axes of its middle line along x and z, radius [m]
RUBBER = ls.Material(young=5e6, poisson=0.49, density=1100, viscosity=2e4, friction=0.8, restitution=0.2)
MELAMINE = ls.Material(young=8e9, poisson=0.35, density=1500, friction=0.8)
HEIGHTS, ASIDE = (
    (0.054, 0.034, 0.074),
    (0.0555, -0.054, -0.054),
)  # of the fingers above the table and from the middle [m]
FAR, NEAR, LIFT = -0.2, -0.053, 0.12  # places of the palm along y, and its way up [m]
STEP = 2e-3  # [s]
PALM = 0.14, 0.016, 0.09  # sizes [m]
FRICTION = 0.8  # coefficient of the hand on the mug
TENSION = 30.0  # of each tendon [N]
REACHED, CLOSED, LIFTED, END = 1.0, 2.0, 3.2, 4.2  # [s]
AROUND = 48  # vertices of a ring
VIEW = 25.0, 35.0  # elevation and azimuth of the eye [deg]


def smooth(t: float, start: float, stop: float) -> float:
    """From 0 at `start` to 1 at `stop`, with two smooth derivatives."""
    x = min(max((t - start) / (stop - start), 0.0), 1.0)
    return x * x * x * (10.0 - 15.0 * x + 6.0 * x * x)


def mug_mesh() -> Any:
    """The mug as a trimesh [m]; its frame is at the middle of its bottom, the handle along x."""
    import trimesh

    r, turn = RADIUS, np.linspace(-0.5 * np.pi, 0.0, 7)
    foot = np.column_stack([r - 0.008 + 0.008 * np.cos(turn), 0.008 + 0.008 * np.sin(turn)])
    inner = np.column_stack([r - WALL - 0.006 + 0.006 * np.cos(turn), WALL + 0.006 + 0.006 * np.sin(turn)])
    lip = 0.5 * WALL * np.exp(1j * np.linspace(0.0, np.pi, 7)[1:-1])
    rim = np.column_stack([r - 0.5 * WALL + lip.real, HIGH - 0.5 * WALL + lip.imag])
    walls = [[r, HIGH - 0.5 * WALL]], rim, [[r - WALL, HIGH - 0.5 * WALL]]
    profile = np.concatenate([[[0.0, 0.0]], foot, *walls, inner[::-1], [[0.0, WALL]]])
    cup = trimesh.creation.revolve(profile, sections=2 * AROUND)
    return trimesh.util.concatenate([cup, trimesh.Trimesh(*handle_mesh())])


def handle_mesh() -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m] and triangles of a bent bar, whose flat ends lie in the wall of the cup."""
    t, turn = np.linspace(0.0, np.pi, AROUND), np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    o, y = np.zeros(AROUND), np.array([0.0, 1.0, 0.0])
    middle = np.stack([RADIUS - 0.5 * WALL + GRIP[0] * np.sin(t), o, 0.5 * HIGH + GRIP[1] * np.cos(t)], axis=1)
    outwards = np.stack([np.sin(t) / GRIP[0], o, np.cos(t) / GRIP[1]], axis=1)
    outwards /= np.linalg.norm(outwards, axis=1)[:, None]
    ring = np.cos(turn)[:, None] * outwards[:, None] + np.sin(turn)[:, None] * y
    vertices = np.concatenate([(middle[:, None] + BAR * ring).reshape(-1, 3), middle[[0, -1]]])
    index = np.arange(len(t) * len(turn)).reshape(len(t), len(turn))
    a, b = index[:-1], index[1:]
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    first, last = np.full(len(turn), index.size), np.full(len(turn), index.size + 1)
    parts = [(a, b, c), (a, c, d), (first, index[0], np.roll(index[0], -1)), (last, np.roll(index[-1], -1), index[-1])]
    return vertices, np.concatenate([np.stack(part, axis=-1).reshape(-1, 3) for part in parts])


def finger_frame(k: int) -> np.ndarray:
    """Pose of the base of finger k in the palm: x forwards along the finger, y towards the mug."""
    inwards, forwards = np.array([-np.sign(ASIDE[k]), 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    g = np.eye(4)
    g[:3, :4] = np.column_stack([forwards, inwards, np.cross(forwards, inwards), [ASIDE[k], 0.0, HEIGHTS[k]]])
    return g


def moved(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """Pose (4, 4) of a displacement."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def robot(friction: float = FRICTION) -> ls.Robot:
    """Hand, mug and table; one input, the tension of all tendons. `friction` is that of the hand on the mug."""
    made = ls.Robot("mug")
    made.add_link("lift", None, ls.JointPrismatic((0, 0, 1)))
    made.add_joint_motion("lift", "lift", position=lambda t: LIFT * smooth(t, CLOSED, LIFTED))
    palm = ls.RigidBody.box(*PALM, density=1100)
    made.add_link("palm", palm, ls.JointPrismatic((0, 1, 0)), parent="lift", placement=moved(z=0.05))
    made.add_joint_motion("reach", "palm", position=lambda t: FAR + (NEAR - FAR) * smooth(t, 0.0, REACHED))
    basis = ls.BasisLegendre(torsion=1, bending_y=3, bending_z=4)
    finger = ls.Rod(LENGTH, ls.SectionCircle(THICK), basis, RUBBER)
    for k, name in enumerate(FINGERS):
        made.add_link(name, finger, parent="palm", placement=moved(y=0.008, z=-0.05) @ finger_frame(k))
        made.add_tendon(f"tendon {k}", name, offset=lambda s: (0.8 * (THICK[0] + s * (THICK[1] - THICK[0])), 0.0))
    made.couple_inputs("motor", {f"tendon {k}": 1.0 for k in range(3)})
    shape = mug_mesh()
    shape.density = MELAMINE.density
    surface = ls.Mesh(vertices=shape.vertices, triangles=shape.faces, color=(0.86, 0.35, 0.25))
    turn = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    rings = (RADIUS - 0.007, 0.002), (RADIUS - 0.002, 0.01), (RADIUS - 0.002, HIGH - 0.002)
    rims = [(r * np.cos(a), r * np.sin(a), z, 0.002) for r, z in rings for a in turn]
    mug = ls.RigidBody(
        shape.mass, tuple(shape.center_mass), shape.moment_inertia, balls=rims, meshes=(surface,), material=MELAMINE
    )
    made.add_link("mug", mug, ls.JointFree())
    made.add_contact("table", "mug", ls.ShapePlane(), material=RUBBER)
    made.add_contact("palm", "mug", ls.ShapeBox(*PALM), on="palm", friction=friction, material=RUBBER)
    made.add_contact("grasp", FINGERS, ls.ShapeMesh(surface, 96), on="mug", friction=friction, per_interval=2)
    return made


def lift(model: ls.Model, end: float = END) -> ls.Trajectory:
    """Reach, close, rise and hold."""

    def pulled(t: float) -> np.ndarray:
        return np.array([TENSION * smooth(t, REACHED, CLOSED)])

    times = np.linspace(0.0, end, round(50 * end) + 1)
    return ls.simulate(model, end, u=pulled, t_eval=times, method="generalized_alpha", dt=STEP)


def numbers_of(model: ls.Model, motion: ls.Trajectory) -> dict[str, float]:
    """How the mug is lifted and held."""
    mug, palm = (ls.frame_pose(model, motion.q, link) for link in ("mug", "palm"))
    place = mug[:, :3, 3] - palm[:, :3, 3]
    still = motion.t >= LIFTED
    touching = ls.contact_forces(model, motion.q, motion.v)
    return {
        "rise [m]": float(mug[-1, 2, 3] - mug[0, 2, 3]),
        "slip in the hand while it rises [m]": float(np.linalg.norm(place[still][0] - place[motion.t >= CLOSED][0])),
        "drift while it is held [m]": float(np.linalg.norm(place[still] - place[still][0], axis=1).max()),
        "tilt [deg]": float(np.degrees(np.arccos(mug[-1, 2, 2]))),
        "deepest touch [m]": max(float(found.depth.max(initial=0.0)) for found in touching),
        "fingers that touch": float(len({name for name in touching[-1].link if name in FINGERS})),
        "wall time [s]": motion.statistics.wall_time,
    }


def main(out: str | Path | None = None) -> dict[str, float]:
    """The numbers of a mug that is lifted, and the rise of one without friction; a picture goes to the folder `out`."""
    model = robot().build()
    motion = lift(model)
    slippery = robot(0.0).build()
    lost = ls.frame_pose(slippery, lift(slippery).q, "mug")[:, 2, 3]
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        ls.render(
            model, motion.q[-1], Path(out) / "mug.png", links=["palm", "mug", *FINGERS], view=VIEW, obstacles=False
        )
    return numbers_of(model, motion) | {"rise without friction [m]": float(lost[-1])}


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value:.3g}")
