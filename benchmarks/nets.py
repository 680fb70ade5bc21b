"""Square nets of rods closed by loops: forward dynamics and implicit steps block by block, beside the whole matrix.

    python benchmarks/nets.py [SIDE ...]

A net of n by n squares has rods of six strains along its edges; the lowest row is a tree with all uprights, and each
rod of the rows above leads from an upright to the next one, to which a loop welds it. Steps are of generalised-α at 1
ms, from a net that is let go. Their time is the difference between motions of twelve and of four steps, without the
time of the start and the end of a motion, which has a column of its own. A front of a square net has as many unknowns
as a side has rods, so that no order of elimination costs less than the power 1.5 of the number of rods. The whole
matrix is shown as far as it takes less than a minute. Times are the least of several, on one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import lissom as ls
from lissom.dynamics import forward_dynamics
from lissom.systems import newton_blocks

SIDES = (2, 3, 5, 7, 11, 15)
LENGTH, RADIUS, DT, FEW, MANY = 0.2, 0.01, 1e-3, 4, 12
LARGEST_WHOLE = 6  # squares a side
MATERIAL = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
BASIS = ls.BasisLegendre(torsion=0, bending_y=0, bending_z=0, elongation=0, shear_y=0, shear_z=0)


def turned(angle: float) -> np.ndarray:
    """A pose turned about z."""
    g = np.eye(4)
    g[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return g


def net(side: int) -> ls.Model:
    """The net of side by side squares, clamped at one corner."""
    robot, rod = ls.Robot(f"net of {side} by {side}"), ls.Rod(LENGTH, ls.SectionCircle(RADIUS), BASIS, MATERIAL)
    up = turned(0.5 * np.pi)
    for j in range(side):
        robot.add_link(f"h0_{j}", rod, parent=f"h0_{j - 1}" if j else None)
    for j in range(side + 1):
        foot = f"h0_{j - 1}" if j else None
        for i in range(side):
            robot.add_link(f"v{i}_{j}", rod, parent=f"v{i - 1}_{j}" if i else foot, placement=None if i else up)
    for i in range(1, side + 1):
        for j in range(side):
            robot.add_link(f"h{i}_{j}", rod, parent=f"v{i - 1}_{j}", placement=up.T)
            robot.add_loop(f"l{i}_{j}", f"h{i}_{j}", f"v{i - 1}_{j + 1}", placement_b=up.T)
    return robot.build()


def least(work: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest time of some calls [s], after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def row(model: ls.Model) -> tuple[float, float, float]:
    """Times of forward dynamics, of a step, and of the start and the end of a motion [s]."""
    q = model.neutral()
    v = 0.1 * np.random.default_rng(0).normal(size=model.nv)

    def motion(steps: int) -> Callable[[], Any]:
        options = {"method": "generalized_alpha", "dt": DT, "rtol": 1e-6, "atol": 1e-8}
        return lambda: ls.simulate(model, steps * DT, q, **options)

    few, many = (least(motion(steps), 3) for steps in (FEW, MANY))
    step = (many - few) / (MANY - FEW)
    return least(lambda: ls.forward_dynamics(model, q, v)), step, few - FEW * step


def whole_matrix(side: int) -> tuple[float, float, float]:
    """The same of a new model that solves for all coordinates together."""
    with (
        patch.object(forward_dynamics, "_LEAST_COORDINATES_CLOSED", sys.maxsize),
        patch.object(newton_blocks, "_LEAST_COORDINATES", sys.maxsize),
    ):
        return row(net(side))


def main() -> None:
    """Print the table, and to which power of the number of rods the times grow at the end."""
    sides = tuple(map(int, sys.argv[1:])) or SIDES
    print(f"{'':24s}{'by blocks [ms]':>26s}{'whole matrix [ms]':>31s}")
    names = ("dynamics", "step", "ends")
    print(f"{'rods':>6s}{'loops':>6s}{'unknowns':>10s}" + "".join(f"{name:>10s}" for name in 2 * names))
    rods, times = [], []
    for side in sides:
        model = net(side)
        found = row(model)
        rods.append(len(model.links.names))
        times.append(found)
        more = whole_matrix(side) if side <= LARGEST_WHOLE else ()
        text = "".join(f"{1e3 * x:10.3g}" for x in (*found, *more))
        print(f"{rods[-1]:6d}{side * side:6d}{model.nv + model.n_rows:10d}{text}", flush=True)
    if len(sides) > 1:
        powers = np.log(np.divide(times[-1][:2], times[-2][:2])) / np.log(rods[-1] / rods[-2])
        text = ", ".join(f"{x:.2f} ({name})" for x, name in zip(powers, names))
        print(f"grows with rods to the power {text} at the end")


if __name__ == "__main__":
    main()
