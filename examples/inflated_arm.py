"""A hanging arm of three bodies with pairs of chambers that bend it and bulge (Pustina 2025, simulation 4).

Each body bends in the plane with constant curvature, stretches, and grows by two bumps on its sides where its
chambers are: four coordinates. A chamber is half a cylinder, 4 mm from the surface and the ends of the body, and 2 mm
from the middle plane; its pressure acts by virtual work, through the gradient of the volume that it encloses as it
moves. The paper counts the bodies as solid, and so does this script.

The paper prints pressures of 2, 0, 0, 2, 1 and 0.4 MPa. Its material, W = C (I_1 − 3), keeps its volume, but its bodies
change theirs: taken is the compressible neo-Hookean law with the same shear modulus 2 C and the Poisson's ratio of a
rubber, 0.45. All of the pressures are then borne in stable equilibrium, and the motion under them is shown. `compare`
follows equilibria with other laws of this shear modulus: a neo-Hookean law without lateral stiffness, with Poisson's
ratio 0, softens as chambers grow, and bears half of the pressures. The bump along the body is the printed one, with
lengths in metres, made 1 in the middle, where the coordinate is then the relative growth.

    python examples/inflated_arm.py out/inflated_arm
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

LENGTH, RADIUS, DENSITY, C, ETA, WALL = 0.2, 0.02, 1062.0, 0.501e6, 0.1, 0.004
PRESSURES = np.array([2.0, 0.0, 0.0, 2.0, 1.0, 0.4]) * 1e6  # [Pa], on +y and −y of each body
POISSON = 0.45
SHARES = tuple(0.1 * k for k in range(1, 11))  # of the pressures, one after the other
DOWN = ((0, 1, 0, 0), (0, 0, -1, 0), (-1, 0, 0, 0), (0, 0, 0, 1))  # x down
BODIES = tuple(f"body {k}" for k in (1, 2, 3))
DURATION, ROWS = 3.0, 301  # [s]


def chamber(side: int, stations: int = 17, corners: int = 13) -> tuple[np.ndarray, np.ndarray]:
    """The wall of the chamber on +y or −y, vertices (m, 3) [m] and triangles (k, 3) seen from outside."""
    radius, middle = RADIUS - WALL, 0.5 * WALL
    angles = np.linspace(-1.0, 1.0, corners) * np.arccos(middle / radius)
    outline = side * radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    x = np.linspace(WALL, LENGTH - WALL, stations)
    vertices = np.concatenate([np.column_stack([np.full(corners, place), outline]) for place in x])
    here = np.arange(stations - 1)[:, None] * corners + np.arange(corners)
    ahead = np.arange(stations - 1)[:, None] * corners + (np.arange(corners) + 1) % corners
    a, b = here.ravel(), ahead.ravel()
    fan = np.stack([np.zeros(corners - 2, int), np.arange(1, corners - 1), np.arange(2, corners)], axis=1)
    walls = [np.stack([a, b, b + corners], axis=1), np.stack([a, b + corners, a + corners], axis=1)]
    return vertices, np.concatenate([*walls, fan[:, ::-1], fan + (stations - 1) * corners])


def law(poisson: float = POISSON) -> ls.HyperelasticCompressibleNeoHookean:
    """The compressible neo-Hookean law of shear modulus 2 C."""
    return ls.HyperelasticCompressibleNeoHookean(young=4 * C * (1 + poisson), poisson=poisson, damping_time=ETA / 2)


LAWS = {
    "neo-Hookean, ν = 0.45": law(),
    "neo-Hookean, ν = 0.3": law(0.3),
    "neo-Hookean, ν = 0": law(0.0),
    "Saint Venant-Kirchhoff, ν = 0": ls.HyperelasticSaintVenantKirchhoff(4 * C, 0.0, damping_time=ETA / 2),
}


def build(material: Any = None) -> ls.Model:
    """The arm with its six chambers."""
    bumps = ls.InflationBumps(angles=(0.0, np.pi), sharpness_along=4.0 / LENGTH)
    motion = ls.KinematicsStrain.constant_curvature(LENGTH, planar=True, elongation=True, inflation=bumps)
    domain = ls.DomainCylinder(LENGTH, RADIUS)  # its points are chosen for the bumps
    body = ls.DeformableBody(motion, domain, material or law(), DENSITY, tip="tip")
    robot, parent = ls.Robot("inflated arm"), None
    for name in BODIES:
        robot.add_link(name, body, parent=parent, placement=np.eye(4) if parent else DOWN)
        parent = name
    for name in BODIES:
        for side in (1, -1):
            robot.add_body_chamber(f"{name}, {'+' if side > 0 else '-'}y", name, surface=chamber(side))
    return robot.build()


def held(model: ls.Model, shares: tuple[float, ...] = SHARES) -> dict[float, ls.Equilibrium]:
    """Equilibria under rising shares of the printed pressures, each from the one before, as far as there are any."""
    found: dict[float, ls.Equilibrium] = {}
    q = model.neutral()
    for share in shares:
        try:
            rest = ls.solve_statics(model, share * PRESSURES, q)
        except ls.ConvergenceError:
            break
        found[share], q = rest, rest.q
    return found


def compare() -> dict[str, dict[str, Any]]:
    """By each law the largest share of the pressures that is borne; there, bends [rad] and the largest growth [%]."""
    found: dict[str, dict[str, Any]] = {}
    for text, material in LAWS.items():
        rests = held(build(material))
        q = rests[max(rests)].q.reshape(3, 4)
        found[text] = {"share": max(rests), "bends": LENGTH * q[:, 0], "growth": 100 * float(q[:, 2:].max())}
    return found


def inflate(model: ls.Model, duration: float = DURATION) -> ls.Trajectory:
    """The motion from rest, hanging straight, under the constant pressures."""
    times = np.linspace(0.0, duration, ROWS)
    return ls.simulate(model, duration, u=PRESSURES, t_eval=times, rtol=1e-4, atol=1e-6)


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """Growth of the arm under the pressures, and whether its motion ends in equilibrium; pictures in `out`."""
    model = build()
    rests = held(model)
    motion = inflate(model, duration=duration)
    q, rest = motion.q[-1].reshape(3, 4), rests[max(rests)].q.reshape(3, 4)
    found = {"largest share borne": max(rests), "stable": float(all(rest.is_stable for rest in rests.values()))}
    for name, row in zip(BODIES, rest):
        found[f"{name}: bend [rad]"] = LENGTH * row[0]
        found[f"{name}: elongation [mm]"] = 1e3 * LENGTH * row[1]
        found |= {f"{name}: growth on {side}y [%]": 100 * part for side, part in zip("+-", row[2:])}
    apart = np.abs((q - rest) * (LENGTH, 1.0, 1.0, 1.0)).max()
    found["end of the motion from equilibrium"] = float(apart)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _plot(model, motion, rests, Path(out) / "inflated_arm.png")
        ls.plot_trajectory(model, motion, coordinates="all", path=Path(out) / "coordinates.png")
    return found


def _plot(model: ls.Model, motion: ls.Trajectory, rests: dict[float, ls.Equilibrium], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1))
    left.suptitle("let go under the printed pressures, from pale to solid", fontsize=11)
    tip = ls.frame_pose(model, motion.q, BODIES[-1])[:, :3, 3]
    shown = np.searchsorted(motion.t, (0.0, 0.06, 0.12, motion.t[-1]))
    ls.plot_shapes(model, motion.q[shown], trail=tip, axes=left.add_subplot(), view=(10, -75), title="")
    bend, growth = right.subplots(2, 1, sharex=True)
    for k, name in enumerate(BODIES):
        bend.plot(motion.t, LENGTH * motion.q[:, 4 * k], color=f"C{k}", label=name)
        bend.axhline(LENGTH * rests[max(rests)].q[4 * k], color=f"C{k}", linestyle=":", linewidth=1)
        for part, line in ((2, "-"), (3, "--")):
            growth.plot(motion.t, 100 * motion.q[:, 4 * k + part], color=f"C{k}", linestyle=line)
    bend.legend(frameon=False, fontsize=9)
    bend.set_title("bend of each body [rad], in equilibrium dotted", loc="left", fontsize=10)
    growth.set_title("growth of the radius at +y, at −y dashed [%]", loc="left", fontsize=10)
    growth.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    for axes in (bend, growth):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
    for text, numbers in compare().items():
        bends = ", ".join(f"{bend:.2f}" for bend in numbers["bends"])
        print(f"{text}: {numbers['share']:.0%} of the pressures, bends {bends} rad, growth {numbers['growth']:.1f} %")
