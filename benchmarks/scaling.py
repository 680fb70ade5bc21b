"""How cost grows: inverse dynamics, its derivatives, forward dynamics and steps, on chains of rods and of rigid links.

    PINOCCHIO=python-of-another-environment python benchmarks/scaling.py [OUT.png]

Each rod has 6 coordinates and 5 nodes. Inverse and forward dynamics and implicit steps must grow with the number of
links, to 500 rods of 3000 coordinates and to 2000 rigid links; derivatives at most with the square of the degrees of
freedom. Beside the links stands Pinocchio, beyond 300 an old one that PINOCCHIO names (requirements-pinocchio.txt),
since the memory of new ones grows with the cube. Times are of one instance inside a kernel, on one core; of Pinocchio,
of a call from Python. A step of generalised-α computes and factors its matrix and takes two or three iterations.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from run import smallest, state

import lissom as ls
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.launch import buffers
from lissom.stepping.stepper import Stepper

COUNTS = (1, 2, 4, 8, 16, 32)
MANY_RODS = (30, 100, 300, 500)
MANY_LINKS = (100, 300, 1000, 2000)
STEP = 1e-4  # size of steps [s]
MOST_OF_NEW, MOST_OF_OLD = 300, 1000  # links in Pinocchio: 300 take 1.2 GB in a new one, 1000 take 0.6 GB in an old one


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
    three, _ = derivative_workspace(model, q, v, a, np.zeros(model.nu))
    run_residual_derivatives(model, three, 0.0)
    forward = run_forward_dynamics(model, q, v, np.zeros(model.nu), 0.0)
    return smallest(one.run), smallest(three.run), smallest(forward.run)


def links(count: int) -> ls.Model:
    """Rigid links in a row, with hinges about z and y in turn."""
    robot = ls.Robot(f"chain of {count} links")
    body = ls.RigidBody(1.0, (0.02, 0.01, 0.1), np.diag([0.03, 0.025, 0.01]))
    end = np.eye(4)
    end[2, 3] = 0.2
    for k in range(count):
        joint = ls.JointRevolute((0, 0, 1) if k % 2 == 0 else (0, 1, 0))
        parent = f"link{k - 1}" if k else None
        robot.add_link(f"link{k}", body, joint, parent=parent, placement=end if k else None)
    return robot.build()


def sweeps(model: ls.Model) -> tuple[float, float, float, float]:
    """Inverse and forward dynamics and a step [µs], and the size of the buffers of forward dynamics [MB]."""
    q, v, a = (0.1 * x for x in state(model))
    one, _ = run_inverse_dynamics(model, q, v, a, True, True, True, 0.0)
    forward = run_forward_dynamics(model, q, v, np.zeros(model.nu), 0.0)
    return smallest(one.run), smallest(forward.run), step(model), forward.buffers.nbytes / 1e6


def step(model: ls.Model) -> float:
    """A step of generalised-α whose matrix is new [µs]: steps of two sizes in turn keep none."""
    stepper, least = Stepper(model, STEP, scheme=ls.generalized_alpha()), np.inf
    sizes = STEP * np.tile([1.0, 1.01], 10)
    for _ in range(5):
        before = stepper.matrices
        began = time.perf_counter()
        for size in sizes:
            stepper.dt = size
            stepper.step()
        least = min(least, (time.perf_counter() - began) / len(sizes))
        assert len(sizes) <= stepper.matrices - before
    return least * 1e6


def in_pinocchio(count: int, ours: ls.Model) -> tuple[float, float, str] | None:
    """Inverse and forward dynamics of the same links in Pinocchio [µs], whose results must be ours, and its version;
    None where none is there that holds so many."""
    python = sys.executable if count <= MOST_OF_NEW else os.environ.get("PINOCCHIO", "")
    if count > MOST_OF_OLD or not Path(python).is_file():
        return None
    q, v, a = (0.1 * x for x in state(ours))
    with TemporaryDirectory() as folder:
        given, forces = Path(folder, "state.npz"), Path(folder, "forces.npy")
        np.savez(given, q=q, v=v, a=a)
        program = Path(__file__).with_name("pinocchio_links.py")
        said = subprocess.run([python, program, given, forces], check=True, capture_output=True, text=True).stdout
        tau = np.load(forces)
    assert np.allclose(tau, ls.inverse_dynamics(ours, q, v, a), rtol=0.0, atol=1e-9 * np.abs(tau).max())
    inverse, forward, version = said.split()
    return float(inverse), float(forward), version


def powers(table: np.ndarray, columns: dict[str, int], what: str) -> None:
    """Say to which power of the first column others grow."""
    for name, k in columns.items():
        slopes = np.diff(np.log(table[:, k])) / np.diff(np.log(table[:, 0]))
        print(f"{name}: grows with {what} to the power {slopes[-1]:.2f} at the end, {slopes.mean():.2f} on average")


def large() -> None:
    """Print how inverse and forward dynamics and steps of many links grow."""
    print(f"\n{'rods':>6s}{'dof':>6s}{'ID':>11s}{'FD':>11s}{'step':>11s}   [µs]{'FD buffers':>13s} [MB]")
    rows = []
    for count in MANY_RODS:
        model = chain(count)
        rows.append((count, *sweeps(model)))
        mine = "".join(f"{x:11.1f}" for x in rows[-1][1:4])
        print(f"{count:6d}{model.nv:6d}{mine}{'':7s}{rows[-1][4]:13.1f}")
    powers(np.array(rows), {"inverse dynamics": 1, "forward dynamics": 2, "a step": 3, "memory": 4}, "rods")
    heads = f"{'links':>6s}{'ID':>11s}{'FD':>11s}{'step':>11s}{'Pinocchio ID':>15s}{'FD':>11s}"
    print(f"\n{heads}   [µs]{'ID / its':>11s}{'FD / its':>11s}")
    rows = []
    for count in MANY_LINKS:
        model = links(count)
        mine = sweeps(model)[:3]
        rows.append((count, *mine))
        print(f"{count:6d}" + "".join(f"{x:11.1f}" for x in mine), end="")
        theirs = in_pinocchio(count, model)
        if theirs is None:
            print(f"{'-':>15s}{'-':>11s}")
            continue
        ratios = "".join(f"{x / y:11.2f}" for x, y in zip(mine, theirs[:2]))
        print(f"{theirs[0]:15.1f}{theirs[1]:11.1f}{'':7s}{ratios}   Pinocchio {theirs[2]}")
    powers(np.array(rows), {"inverse dynamics": 1, "forward dynamics": 2, "a step": 3}, "links")


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
    """Print the tables, and draw the first one where a path is given."""
    buffers.MIN_INSTANCES_PER_THREAD = 10**9  # one launch, so one core
    print(f"{'rods':>6s}{'dof':>6s}{'nodes':>7s}{'ID':>11s}{'derivatives':>13s}{'FD':>11s}   [µs]")
    rows = []
    for count in COUNTS:
        model = chain(count)
        row = (model.nv, model.n_dynamic, *times(model))
        rows.append(row)
        print(f"{count:6d}{row[0]:6d}{row[1]:7d}{row[2]:11.2f}{row[3]:13.2f}{row[4]:11.2f}")
    table = np.array(rows)
    powers(table, {"inverse dynamics": 2, "derivatives": 3, "forward dynamics": 4}, "dof")
    large()
    if sys.argv[1:]:
        draw(table, sys.argv[1])


if __name__ == "__main__":
    main()
