"""A square peg in a hole with a play of 0.3 mm: it falls in when it is straight, and with a load on an arm it jams.

A load beside the peg tilts it until it touches the hole at two places: with the lower edge of one side, and at the
mouth of the hole on the other side. With the width d of the peg, the width D of the hole and the length l along the
peg between the two places, the angle θ of the tilt follows from

    d cos θ + l sin θ = D                                                                                  (1)

Friction on both places carries the load if its coefficient is large enough: the peg jams, as a drawer that is pulled on
one side (Whitney 1982). The least coefficient follows from the equilibrium of a rigid body: forces and moments of the
two places, each in its cone of friction, and of the weight. It is found here by linear programming, and lies near the
closed form of small angles,

    μ = l / (2x)                                                                                           (2)

for a load at the distance x from the middle of the hole.

    python examples/peg_in_hole.py out/peg_in_hole
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, linprog

import lissom as ls

WIDTH, LENGTH = 0.02, 0.08  # of the peg [m]
HOLE, DEPTH, WALL = 0.0203, 0.04, 0.015  # width and depth of the hole, thickness of its walls [m]
INSERTED = 0.02  # l at the start [m]
ARM, BALL = 0.07, 0.012  # distance of the load from the axis of the peg, its radius [m]
PLASTIC = ls.Material(young=3e9, poisson=0.35, density=1200)
STEEL = ls.Material(young=2e11, poisson=0.3, density=7850)
ABOVE = 0.05  # height of the lower end over the mouth, of the straight peg [m]
STEP = 2e-3  # [s]
FRONT, RED = 2, (0.78, 0.3, 0.24)  # the wall that is left out of pictures, colour of the peg
VIEW = (14.0, -75.0)  # elevation and azimuth of the eye [deg]
G = 9.81


def moved(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """Pose (4, 4) of a displacement."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def robot(friction: float, *, loaded: bool = True) -> ls.Robot:
    """Peg, hole with its mouth at z = 0, and the load on its arm."""
    made = ls.Robot("peg in a hole")
    aside, wide = 0.5 * (HOLE + WALL), HOLE + 2.0 * WALL
    walls = [
        ls.PlacedShape(shape, moved(sign * x, sign * y, -0.5 * DEPTH))
        for shape, x, y in (
            (ls.ShapeBox(WALL, wide, DEPTH), aside, 0.0),
            (ls.ShapeBox(HOLE, WALL, DEPTH), 0.0, aside),
        )
        for sign in (-1.0, 1.0)
    ]
    drawn = [ls.Mesh.of_shape(one.shape, placement=one.placement) for k, one in enumerate(walls) if k != FRONT]
    block = ls.RigidBody(1.0, inertia=(1e-3,) * 3, shapes=tuple(walls), meshes=tuple(drawn), material=PLASTIC)
    made.add_link("block", block)
    peg = ls.RigidBody.box(WIDTH, WIDTH, LENGTH, material=PLASTIC)
    red = ls.Mesh.of_shape(ls.ShapeBox(WIDTH, WIDTH, LENGTH), color=RED)
    made.add_link("peg", replace(peg, meshes=(red,)), ls.JointFree())
    if loaded:
        end = 0.5 * LENGTH - 0.005
        bar = ls.RigidBody.box(ARM, 0.004, 0.004, material=PLASTIC)
        made.add_link("arm", bar, parent="peg", placement=moved(0.5 * ARM, 0.0, end))
        made.add_link("load", ls.RigidBody.sphere(BALL, material=STEEL), parent="arm", placement=moved(0.5 * ARM))
    made.add_contact("hole", "peg", others="block", friction=friction)
    made.add_contact("bottom", "peg", ls.ShapePlane(), placement=moved(z=-DEPTH), material=PLASTIC)
    return made


class Place(NamedTuple):
    """The tilted peg in the plane (x, z): its angle, its centre, its axes along and across, the places of contact at
    its lower edge and at the mouth, and the centre of mass with the load."""

    tilt: float
    centre: np.ndarray
    along: np.ndarray
    across: np.ndarray
    low: np.ndarray
    mouth: np.ndarray
    mass_centre: np.ndarray


def leaning(inserted: float) -> Place:
    """The peg that touches at two places, by (1)."""
    most = np.arctan2(inserted, WIDTH)
    tilt = float(brentq(lambda a: WIDTH * np.cos(a) + inserted * np.sin(a) - HOLE, 1e-12, most))  # type: ignore[arg-type]
    along, across = np.array([np.sin(tilt), np.cos(tilt)]), np.array([np.cos(tilt), -np.sin(tilt)])
    mouth = np.array([0.5 * HOLE, 0.0])
    low = mouth - inserted * along - WIDTH * across
    centre = low + 0.5 * WIDTH * across + 0.5 * LENGTH * along
    peg, bar = WIDTH**2 * LENGTH * PLASTIC.density, ARM * 0.004**2 * PLASTIC.density
    ball = 4.0 / 3.0 * np.pi * BALL**3 * STEEL.density
    aside = (0.5 * bar + ball) * ARM / (peg + bar + ball)
    high = (bar + ball) * (0.5 * LENGTH - 0.005) / (peg + bar + ball)
    return Place(tilt, centre, along, across, low, mouth, centre + aside * across + high * along)


def least_friction(place: Place) -> float:
    """The least coefficient of friction with which a rigid peg can be at rest under its weight."""

    def rests(friction: float) -> bool:
        """Whether forces N₁, T₁ at the lower edge and N₂, T₂ at the mouth in their cones balance the weight 1."""
        forces = (place.low, np.array([1.0, 0.0])), (place.low, np.array([0.0, 1.0]))
        forces += (place.mouth, -place.across), (place.mouth, place.along)
        A = np.array([[*f, (r[0] * f[1] - r[1] * f[0]) / HOLE] for r, f in forces]).T
        b = np.array([0.0, 1.0, place.mass_centre[0] / HOLE])
        cones = np.kron(np.eye(2), [[-friction, 1.0], [-friction, -1.0]])
        bounds = [(0.0, None), (None, None)] * 2
        return linprog(np.zeros(4), A_ub=cones, b_ub=np.zeros(4), A_eq=A, b_eq=b, bounds=bounds).status == 0

    low, high = 0.0, 2.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rests(middle) else (middle, high)
    return high


def loaded(friction: float, dt: float | None, end: float = 1.0) -> tuple[ls.Model, ls.Trajectory]:
    """The peg with its load, let go where it touches at two places."""
    model = robot(friction).build()
    place = leaning(INSERTED)
    q = model.neutral()
    q[:4], q[4:] = (
        [np.cos(0.5 * place.tilt), 0.0, np.sin(0.5 * place.tilt), 0.0],
        [place.centre[0], 0.0, place.centre[1]],
    )
    return model, ls.simulate(model, end, q, dt=dt, t_eval=np.linspace(0.0, end, 101))


def numbers_of(model: ls.Model, motion: ls.Trajectory) -> dict[str, float]:
    """How far the peg sinks, its tilt and its last motion."""
    pose = ls.frame_pose(model, motion.q, "peg")
    return {
        "sunk [m]": float(pose[0, 2, 3] - pose[-1, 2, 3]),
        "moved in the last half [m]": float(np.linalg.norm(pose[50:, :3, 3] - pose[-1, :3, 3], axis=1).max()),
        "tilt [deg]": float(np.degrees(np.arctan2(pose[-1, 0, 2], pose[-1, 2, 2]))),
    }


def straight(dt: float | None) -> dict[str, float]:
    """The peg without a load falls into the hole: until it lands nothing touches it."""
    model = robot(0.5, loaded=False).build()
    height = ABOVE + DEPTH
    landing = float(np.sqrt(2.0 * height / G))
    q = model.neutral()
    q[6] = ABOVE + 0.5 * LENGTH
    motion = ls.simulate(model, 0.6, q, dt=dt, t_eval=np.linspace(0.0, 0.6, 121))
    z = ls.frame_pose(model, motion.q, "peg")[:, 2, 3]
    falls = motion.t < landing - 0.003
    touching = ls.contact_forces(model, motion.q[falls], motion.v[falls])
    return {
        "off a free fall [m]": float(np.abs(z[0] - z - 0.5 * G * motion.t**2)[falls].max()),
        "touches while it falls": float(sum(len(one.depth) for one in touching)),
        "above the bottom at the end [m]": float(z[-1] - 0.5 * LENGTH + DEPTH),
    }


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers of the straight peg, of the one that jams and of the one that slides in; a picture goes to `out`."""
    place = leaning(INSERTED)
    least = least_friction(place)
    found: dict[str, Any] = {
        "least friction, rigid": least,
        "least friction, small angles": INSERTED / (2.0 * place.mass_centre[0]),
        "tilt of two contacts [deg]": float(np.degrees(place.tilt)),
        "tilt of two contacts at the bottom [deg]": float(np.degrees(leaning(DEPTH).tilt)),
    }
    for name, dt in (("steps of 2 ms", STEP), ("adaptive steps", None)):
        for share in (1.03, 0.97):
            model, motion = loaded(share * least, dt)
            found[f"{share:g} of the least friction, {name}"] = numbers_of(model, motion)
            if out is not None and dt and share > 1.0:
                Path(out).mkdir(parents=True, exist_ok=True)
                ls.render(model, motion.q[-1], Path(out) / "peg_in_hole.png", view=VIEW, obstacles=False)
        found[f"straight, {name}"] = straight(dt)
    return found


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value}")
