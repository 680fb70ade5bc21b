"""Cost of the pose along a rod: error of the tip against the cost of inverse dynamics with derivatives, in one run.

    python benchmarks/points_along_rods.py [OUT.png]

Rods of three strains (torsion and both bendings) of one order, with coordinates drawn at random and scaled so that the
rod turns by one turn in all. The error is the largest of four such rods, of the tip's position over the length; the
reference takes the sixth-order expansion on 100 intervals. The ways to place the nodes are

    one exponential     (2) of model/nodes in each interval, of more and more Gauss points
    two exponentials    (3) of model/nodes, massless frames in between; this is the default, with two points more
    halves              the same nodes, each half an interval with its own fourth-order expansion
    sixth order         one exponential of the sixth-order expansion in three moments, which no kernel has

Costs of the first two are measured inside the kernel, on one core, over that of one exponential
with degree + 3 points, all rules in turn, the least of all rounds. "halves" costs what two exponentials do. The cost of
sixth order is counted: three blocks of columns instead of two make an interval cost 1.5 times as much.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from run import smallest, state

import lissom as ls
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.launch import buffers
from lissom.lie.arrays import se3_ad, se3_exp
from lissom.model import quadrature
from lissom.model.nodes import interval_ends, pair_ends

STRAINS = ("torsion", "bending_y", "bending_z")
ORDERS = (3, 6, 10)
MORE_POINTS = (0, 1, 2, 4, 8, 14, 22)  # of one exponential
MORE_OF_TWO = (0, 1, 2, 4, 8)
RODS, ROUNDS, TURN = 4, 10, 2.0 * np.pi
SIXTH_ORDER = 1.5  # counted
Strain = Callable[[float], np.ndarray]


def model(order: int, points: int | None, more: int = 0) -> ls.Model:
    """A clamped rod: with so many points and one exponential an interval, or with `more` than degree + 3 and two."""
    basis = ls.BasisLegendre(**dict.fromkeys(STRAINS, order))
    material = ls.Material(young=1e6, density=1e3)
    robot = ls.Robot("rod")
    robot.add_link("rod", ls.Rod(1.0, ls.SectionCircle(0.02), basis, material, gauss_points=points))
    usual, quadrature.BEND = quadrature.BEND, more
    try:
        return robot.build()
    finally:
        quadrature.BEND = usual


def states(order: int) -> np.ndarray:
    """Coordinates of random rods that turn by TURN, shape (RODS, 3 (order + 1))."""
    q = np.random.default_rng(order).normal(size=(RODS, 3, order + 1)) / (1.0 + np.arange(order + 1))
    s = np.polynomial.legendre.legvander(np.linspace(-1, 1, 200), order)
    turned = np.linalg.norm(np.einsum("rck,sk->rsc", q, s), axis=2).mean(axis=1)
    return (q * (TURN / turned)[:, None, None]).reshape(RODS, -1)


def one(strain: Strain, a: float, b: float) -> list[np.ndarray]:
    """(2) of model/nodes."""
    return [_exponent(*interval_ends(strain, a, b, 8), b - a)]


def two(strain: Strain, a: float, b: float) -> list[np.ndarray]:
    """(3) of model/nodes."""
    xi = pair_ends(strain, a, b, 8)
    return [_exponent(*xi[:2], (b - a) / 2), _exponent(*xi[2:], (b - a) / 2)]


def halves(strain: Strain, a: float, b: float) -> list[np.ndarray]:
    """(2) in both halves."""
    return one(strain, a, (a + b) / 2) + one(strain, (a + b) / 2, b)


def sixth(strain: Strain, a: float, b: float) -> list[np.ndarray]:
    """Blanes and others 2009, eq. (251), with the frame on the left: all commutators turn round."""
    x, w = np.polynomial.legendre.leggauss(8)
    values, h = np.array([strain(a + (b - a) * (y + 1) / 2) for y in x]), b - a
    c, d, e = (w / 2 @ values, 3 / 2 * (w * x) @ values, 5 / 4 * (w * (3 * x**2 - 1)) @ values)
    a1, a2, a3 = h * (c - e / 2), 2 * h * d, 6 * h * e
    c1 = -se3_ad(a1) @ a2
    c2 = se3_ad(a1) @ (2 * a3 + c1) / 60
    return [a1 + a3 / 12 - se3_ad(-20 * a1 - a3 + c1) @ (a2 + c2) / 240]


def tip(strain: Strain, edges: np.ndarray, way: Callable[..., list[np.ndarray]]) -> np.ndarray:
    """Position of the tip."""
    g = np.eye(4)
    for a, b in pairwise(edges):
        for Omega in way(strain, float(a), float(b)):
            g = g @ se3_exp(Omega)
    return g[:3, 3]


def error(order: int, points: int, way: Callable[..., list[np.ndarray]]) -> float:
    """The largest error of all rods in so many Gauss points."""
    edges = np.concatenate([[0.0], (np.polynomial.legendre.leggauss(points)[0] + 1) / 2, [1.0]])
    return max(float(np.linalg.norm(tip(strain, edges, way) - exact)) for strain, exact in rods(order))


def rods(order: int) -> list[tuple[Strain, np.ndarray]]:
    """Strains of all rods, and where their tips are; made once."""
    if order not in _RODS:
        basis, straight = ls.BasisLegendre(**dict.fromkeys(STRAINS, order)), np.array([0, 0, 0, 1.0, 0, 0])
        strains = [lambda s, q=q: basis.evaluate(s) @ q + straight for q in states(order)]
        _RODS[order] = [(strain, tip(strain, np.linspace(0, 1, 101), sixth)) for strain in strains]
    return _RODS[order]


_RODS: dict[int, list[tuple[Strain, np.ndarray]]] = {}


def prepared(model: ls.Model) -> Callable[[], None]:
    """Inverse dynamics with its derivatives of one state, ready to run."""
    w, _ = derivative_workspace(model, *state(model), np.zeros(model.nu))
    run_residual_derivatives(model, w, 0.0)
    return w.run


def costs(order: int) -> tuple[list[float], list[float]]:
    """Of one exponential with MORE_POINTS and of two with MORE_OF_TWO, over the first [-]."""
    models = [model(order, order + 3 + k) for k in MORE_POINTS] + [model(order, None, k) for k in MORE_OF_TWO]
    runs = [prepared(m) for m in models]
    rounds = np.array([[smallest(run, 0.1, 1) for run in runs] for _ in range(ROUNDS)]).min(axis=0)
    over = (rounds / rounds[0]).tolist()
    return over[: len(MORE_POINTS)], over[len(MORE_POINTS) :]


def table(order: int) -> dict[str, list[tuple[int, float, float]]]:
    """By way: points more than degree + 3, cost and error."""
    single, double = costs(order)
    found = {"one exponential": [(k, cost, error(order, order + 3 + k, one)) for k, cost in zip(MORE_POINTS, single)]}
    for name, way in (("two exponentials", two), ("halves", halves)):
        found[name] = [(k, cost, error(order, order + 3 + k, way)) for k, cost in zip(MORE_OF_TWO, double)]
    found["sixth order"] = [
        (k, SIXTH_ORDER * cost, error(order, order + 3 + k, sixth)) for k, cost in zip(MORE_POINTS, single)
    ]
    return found


def _exponent(xi1: np.ndarray, xi2: np.ndarray, h: float) -> np.ndarray:
    return h / 2 * (xi1 + xi2) + np.sqrt(3.0) * h**2 / 12 * se3_ad(xi1) @ xi2


def draw(found: dict[int, dict[str, Any]], path: str) -> None:
    """Error against cost, a panel for each order."""
    from matplotlib.figure import Figure

    from lissom.viewing.colors import GRID, INK, SERIES

    figure = Figure(figsize=(4.2 * len(found), 4.2), layout="constrained")
    for panel, (order, ways) in zip(figure.subplots(1, len(found), sharey=True), found.items()):
        for k, (name, rows) in enumerate(ways.items()):
            style = "--" if name == "sixth order" else "-"
            panel.loglog([x[1] for x in rows], [x[2] for x in rows], "o" + style, color=SERIES[k], label=name, ms=4)
        chosen = next(x for x in ways["two exponentials"] if x[0] == quadrature.BEND)
        panel.plot(chosen[1], chosen[2], "o", ms=11, mfc="none", color=INK, label="default")
        panel.set_title(f"order {order}, one turn", color=INK, fontsize=11)
        panel.set_xlabel("cost over that of degree + 3 points [-]", color=INK)
        panel.grid(color=GRID)
        panel.set_axisbelow(True)
    figure.supylabel("error of the tip over the length [-]", color=INK)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print a table for each order, and draw them where a path is given."""
    buffers.MIN_INSTANCES_PER_THREAD = 10**9  # one launch, so one core
    found = {order: table(order) for order in ORDERS}
    for order, ways in found.items():
        for name, rows in ways.items():
            line = "  ".join(f"+{k}: {cost:.2f}, {miss:.0e}" for k, cost, miss in rows)
            print(f"order {order:2d}  {name:17s} {line}", flush=True)
    if len(sys.argv) > 1:
        draw(found, sys.argv[1])


if __name__ == "__main__":
    main()
