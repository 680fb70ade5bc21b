"""An arm whose taper and tendon are designed by gradients, so that it lifts a load highest.

Three tapered parts of polyurethane, 39 cm together, stick out of a wall and carry 100 g at the tip. One tendon runs
through them above their axis and pulls with 100 N. Four radii and the distance of the tendon from the axis in each part
are free, with no more material than in the uniform arm to begin with, and the tendon inside it. Looked for is the
design whose tip rests highest; the height and its derivatives are those of the equilibrium, by
`equilibrium_derivatives`, and SciPy's SLSQP does the rest. It finds an arm with less than half of the material that is
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
from scipy.optimize import minimize

import lissom as ls

PART, PARTS, LOAD, TENSION = 0.13, 3, 0.1, 100.0  # length [m], number, mass [kg], [N]
RADIUS, OFFSET = 0.02, 0.01  # to begin with [m]
THINNEST, THICKEST, INSIDE = 0.008, 0.04, 0.75  # radii [m], and the tendon's distance from the axis as a share of them
START = np.array([RADIUS] * (PARTS + 1) + [OFFSET] * PARTS)
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


def values(x: np.ndarray) -> dict[str, Any]:
    """Design values by their paths: neighbouring parts share a radius."""
    radii, offsets = x[: PARTS + 1].tolist(), x[PARTS + 1 :].tolist()
    return dict(zip(PATHS, [*pairwise(radii), *offsets]))


def height(model: ls.Model, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Height of the tip at rest [m], and its derivatives by the design."""
    own, tip = model.with_(values(x)), f"part {PARTS - 1}"
    rest = ls.solve_statics(own, [TENSION])
    pose = ls.frame_pose(own, rest.q, tip)
    rises = pose[2, :3] @ ls.frame_jacobian(own, rest.q, tip)[3:]
    slopes = ls.equilibrium_derivatives(rest, rises, parameters=PATHS).parameters
    gradient = np.zeros(len(x))
    for k in range(PARTS):
        gradient[k : k + 2] += slopes[PATHS[k]]
        gradient[PARTS + 1 + k] = slopes[PATHS[PARTS + k]]
    return float(pose[2, 3]), gradient


def volume(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Of all parts, cut cones [m³], and its derivatives."""
    radii, gradient = x[: PARTS + 1], np.zeros(len(x))
    a, b = radii[:-1], radii[1:]
    gradient[:PARTS] += np.pi * PART / 3.0 * (2.0 * a + b)
    gradient[1 : PARTS + 1] += np.pi * PART / 3.0 * (a + 2.0 * b)
    return float(np.pi * PART / 3.0 * np.sum(a * a + a * b + b * b)), gradient


def designed(model: ls.Model, iterations: int = 25) -> np.ndarray:
    """The design found."""
    unit, whole = np.array([RADIUS] * (PARTS + 1) + [OFFSET] * PARTS), volume(START)[0]
    inside = np.zeros((2 * PARTS, len(unit)))  # share of either radius of a part less the distance
    for k in range(PARTS):
        for end in range(2):
            inside[2 * k + end, k + end], inside[2 * k + end, PARTS + 1 + k] = INSIDE, -1.0

    def falls(y: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = height(model, y * unit)
        return -found / PART, -gradient * unit / PART

    constraints = [
        {"type": "ineq", "fun": lambda y: 1.0 - volume(y * unit)[0] / whole,
         "jac": lambda y: -volume(y * unit)[1] * unit / whole},
        {"type": "ineq", "fun": lambda y: inside @ (y * unit) / OFFSET, "jac": lambda y: inside * unit / OFFSET},
    ]  # fmt: skip
    bounds = [(THINNEST / RADIUS, THICKEST / RADIUS)] * (PARTS + 1) + [(0.0, INSIDE * THICKEST / OFFSET)] * PARTS
    options = {"maxiter": iterations, "ftol": 1e-6}
    return minimize(falls, START / unit, jac=True, method="SLSQP", bounds=bounds, constraints=constraints,
                    options=options).x * unit  # fmt: skip


def main(folder: str | Path | None = None, iterations: int = 25) -> dict[str, float]:
    """Design the arm; the numbers, and pictures of it before and after."""
    model = build()
    x = designed(model, iterations)
    if folder is not None:
        for name, design in (("before", START), ("after", x)):
            own = model.with_(values(design))
            bent = [ls.solve_statics(own, [tension]).q for tension in (0.0, 0.5 * TENSION, TENSION)]
            ls.render(own, np.array(bent), Path(folder) / f"{name}.png", title=name)
    numbers = {f"radius {k} [mm]": 1e3 * value for k, value in enumerate(x[: PARTS + 1])}
    numbers |= {f"distance of the tendon in part {k} [mm]": 1e3 * value for k, value in enumerate(x[PARTS + 1 :])}
    numbers["volume after/before"] = volume(x)[0] / volume(START)[0]
    for name, design in (("before", START), ("after", x)):
        numbers[f"height {name} [mm]"] = 1e3 * height(model, design)[0]
    return numbers


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:]).items():
        print(f"{name:36s}{value:10.3f}")
