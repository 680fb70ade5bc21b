"""An arm whose taper and tendon are designed by gradients, so that it lifts a load highest.

Three tapered parts of polyurethane, 39 cm together, stick out of a wall and carry 100 g at the tip. One tendon runs
through them above their axis and pulls with 100 N. Four radii and the distance of the tendon from the axis in each part
are free, with no more material than in the uniform arm to begin with, and the tendon inside it. Looked for is the
design whose tip rests highest; the height and its derivatives are those of the equilibrium, by
`equilibrium_derivatives`, and `minimize` does the rest. It finds an arm with less than half of the material that is
thin at the wall, where the tendon turns it upright, and nearly straight towards the tip: above 300 mm high in place of
28 mm. There may be better ones: a gradient leads to the top of the hill that one stands on.

    python examples/designed_arm.py out/designed_arm
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

PART, PARTS, LOAD, TENSION = 0.13, 3, 0.1, 100.0  # length [m], number, mass [kg], [N]
RADIUS, OFFSET = 0.02, 0.01  # to begin with [m]
THINNEST, THICKEST, INSIDE = 0.008, 0.04, 0.75  # radii [m], and the tendon's distance from the axis as a share of them
START = {"radii": np.full(PARTS + 1, RADIUS), "offsets": np.full(PARTS, OFFSET)}
PATHS = [f"part {k}.section.radius" for k in range(PARTS)] + [f"lift.path[{k}].offset[1]" for k in range(PARTS)]


def build() -> ls.Model:
    """The uniform arm."""
    robot = ls.Robot("designed arm")
    material = ls.Material(young=5e6, density=1100.0)
    basis = ls.BasisLegendre(bending_y=1)
    names = [f"part {k}" for k in range(PARTS)]
    for k, name in enumerate(names):
        body = ls.Rod(PART, ls.SectionCircle((RADIUS, RADIUS)), basis, material)
        robot.add_link(name, body, parent=names[k - 1] if k else None)
    robot.add_tendon("lift", path=[ls.PathRod(name, (0.0, OFFSET)) for name in names])
    robot.add_point_load("load", names[-1], force=(0.0, 0.0, -9.81 * LOAD))
    return robot.build()


def values(radii: np.ndarray, offsets: np.ndarray) -> dict[str, Any]:
    """Design values by their paths: neighbouring parts share a radius."""
    return dict(zip(PATHS, [*pairwise(radii.tolist()), *offsets.tolist()]))


def height(model: ls.Model, x: dict[str, Any]) -> tuple[float, dict[str, np.ndarray]]:
    """Height of the tip at rest [m], and its derivatives with respect to the design."""
    own, tip = model.with_(values(**x)), f"part {PARTS - 1}"
    rest = ls.solve_statics(own, [TENSION])
    pose = ls.frame_pose(own, rest.q, tip)
    rises = pose[2, :3] @ ls.frame_jacobian(own, rest.q, tip)[3:]
    slopes = ls.equilibrium_derivatives(rest, rises, parameters=PATHS).parameters
    radii = np.zeros(PARTS + 1)
    for k in range(PARTS):
        radii[k : k + 2] += slopes[PATHS[k]]
    return float(pose[2, 3]), {"radii": radii, "offsets": np.array([slopes[path] for path in PATHS[PARTS:]])}


def volume(x: dict[str, Any]) -> tuple[float, dict[str, np.ndarray]]:
    """Of all parts, cut cones [m³], and its derivatives."""
    a, b, slopes = x["radii"][:-1], x["radii"][1:], np.zeros(PARTS + 1)
    slopes[:-1] += np.pi * PART / 3.0 * (2.0 * a + b)
    slopes[1:] += np.pi * PART / 3.0 * (a + 2.0 * b)
    return float(np.pi * PART / 3.0 * np.sum(a * a + a * b + b * b)), {"radii": slopes, "offsets": np.zeros(PARTS)}


def inside(x: dict[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Share of either radius of each part less the distance of the tendon [m], (2, PARTS), and its derivatives."""
    by_radii = np.zeros((2, PARTS, PARTS + 1))
    for end in range(2):
        by_radii[end, range(PARTS), np.arange(PARTS) + end] = INSIDE
    return by_radii @ x["radii"] - x["offsets"], {"radii": by_radii, "offsets": -np.eye(PARTS) * np.ones((2, 1, 1))}


def designed(model: ls.Model, iterations: int = 25) -> ls.Minimum:
    """The design found."""

    def falls(x: dict[str, Any]) -> tuple[float, dict[str, np.ndarray]]:
        found, slopes = height(model, x)
        return -found, {name: -slope for name, slope in slopes.items()}

    bounds = {"radii": (THINNEST, THICKEST), "offsets": (0.0, INSIDE * THICKEST)}
    limits = [(volume, None, volume(START)[0]), (inside, 0.0, None)]
    return ls.minimize(falls, start=START, bounds=bounds, constraints=limits, iterations=iterations, tolerance=1e-4)


def main(folder: str | Path | None = None, iterations: int = 25) -> dict[str, float]:
    """Design the arm; the numbers, and pictures of it before and after."""
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    model = build()
    found = designed(model, iterations)
    x = found.values
    if folder is not None:
        print(found.report)
        for name, design in (("before", START), ("after", x)):
            own = model.with_(values(**design))
            bent = [ls.solve_statics(own, [tension]).q for tension in (0.0, 0.5 * TENSION, TENSION)]
            ls.render(own, np.array(bent), Path(folder) / f"{name}.png", title=name)
    numbers = {f"radius {k} [mm]": 1e3 * value for k, value in enumerate(x["radii"])}
    numbers |= {f"distance of the tendon in part {k} [mm]": 1e3 * value for k, value in enumerate(x["offsets"])}
    numbers["volume after/before"] = volume(x)[0] / volume(START)[0]
    for name, design in (("before", START), ("after", x)):
        numbers[f"height {name} [mm]"] = 1e3 * height(model, design)[0]
    return numbers


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:]).items():
        print(f"{name:36s}{value:10.3f}")
