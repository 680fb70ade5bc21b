"""How cost grows: inverse dynamics, its derivatives and forward dynamics on chains of 1 to 32 rods, in one run.

    python benchmarks/scaling.py [OUT.png]

Each rod has 6 coordinates and 5 nodes. Inverse dynamics must grow with the number of nodes, its derivatives at most
with the square of the degrees of freedom. Times are of one instance inside a kernel, on one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys

import numpy as np
from run import smallest, state

import lissom as ls
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.launch import workspace

COUNTS = (1, 2, 4, 8, 16, 32)


def chain(rods: int) -> ls.Model:
    """Rods in a row, each with two coordinates of torsion and of both bendings."""
    robot = ls.Robot(f"chain of {rods}")
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    basis = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1)
    for k in range(rods):
        rod = ls.Rod(0.2, ls.SectionCircle(0.02), basis, material, gauss_points=4)
        robot.add_link(f"rod{k}", rod, parent=f"rod{k - 1}" if k else None)
    return robot.build()


def times(model: ls.Model) -> tuple[float, float, float]:
    """Inverse dynamics, its three derivatives, and forward dynamics [µs]."""
    q, v, a = state(model)
    one, _ = run_inverse_dynamics(model, q, v, a, True, True, True, 0.0)
    three, _ = derivative_workspace(model, q=q, v=v, a=a, u=np.zeros(model.nu))
    run_residual_derivatives(model, three, 0.0)
    forward = run_forward_dynamics(model, q, v, np.zeros(model.nu), 0.0)
    return smallest(one.run), smallest(three.run), smallest(forward.run)


def draw(rows: np.ndarray, path: str) -> None:
    """Times over degrees of freedom on logarithmic axes, with slopes 1 and 2 beside them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    labels = ("inverse dynamics", "with its three derivatives", "forward dynamics")
    for k, label in enumerate(labels):
        axes.loglog(rows[:, 0], rows[:, k + 2], "o-", label=label)
    n = rows[:, 0]
    axes.loglog(n, 0.7 * rows[0, 2] * n / n[0], "k:", lw=1, label="slope 1")
    axes.loglog(n, 1.4 * rows[0, 3] * (n / n[0]) ** 2, "k--", lw=1, label="slope 2")
    axes.set_xlabel("degrees of freedom [-]")
    axes.set_ylabel("time of one call in a kernel [µs]")
    axes.set_xticks(n, [f"{x:.0f}" for x in n])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    fig.savefig(path, dpi=160)


def main() -> None:
    """Print one table, and draw it where a path is given."""
    workspace._LEAST_PER_THREAD = 10**9  # one launch, so one core
    print(f"{'rods':>6s}{'dof':>6s}{'nodes':>7s}{'ID':>11s}{'derivatives':>13s}{'FD':>11s}   [µs]")
    rows = []
    for count in COUNTS:
        model = chain(count)
        row = (model.nv, model.n_dynamic, *times(model))
        rows.append(row)
        print(f"{count:6d}{row[0]:6d}{row[1]:7d}{row[2]:11.2f}{row[3]:13.2f}{row[4]:11.2f}")
    table = np.array(rows)
    for k, what in ((2, "inverse dynamics"), (3, "derivatives"), (4, "forward dynamics")):
        slopes = np.diff(np.log(table[:, k])) / np.diff(np.log(table[:, 0]))
        print(f"{what}: grows with dof to the power {slopes[-1]:.2f} at the end, {slopes.mean():.2f} on average")
    if sys.argv[1:]:
        draw(table, sys.argv[1])


if __name__ == "__main__":
    main()
