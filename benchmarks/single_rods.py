"""The cantilevers of Boyer 2023, section X.A: what stiffness costs, and PyElastica on the same rods, in one run.

    python benchmarks/single_rods.py

lissom runs 10 s of the soft and of the stiff cantilever of examples/single_rods.py in steps of 10 ms, with Young's
modulus times 0.01 to 100; the pull before the start stays, and so the start is bent more where the rod is softer. Each
time is the least of many rounds through all rods. An explicit method has to shorten its steps with the square root of
the stiffness. The implicit one takes the same steps; only its number of Newton iterations changes.

PyElastica runs the rods of the paper (50 elements) from the same start, undamped, with the longest of a ladder of steps
5 % apart with which no element has changed its length by a tenth after 40 000 steps. It is timed over half as many and
scaled to the duration. Compilation by Numba is outside the times. As in the paper, three modes in a plane
stand against 50 elements in space: cantilever_drop.py compares at equal accuracy. The paper's own ratios are printed
for context.

The other columns of the paper's Table I are methods of planar_rod.py, in NumPy: Algorithm 1 of the paper in steps of
10 ms, strain modes by Dormand and Prince's method at a tolerance of 1e-6, and shooting in steps of 10 ms. Where a
method stops, the time is printed. The stiff rod is shot from a pull of 0.01 N too, since the error of a shot at rest
grows by exp(l √(f / EI)) = e³² along it under the 10 N of the paper.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import io
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import single_rods as rods

sys.path.insert(0, str(Path(__file__).parent))
from planar_rod import PlanarRod, Stopped

STIFFER = (0.01, 0.1, 1.0, 10.0, 100.0)
ROUNDS = 15
ELEMENTS, TRIED, TIMED = 50, 40_000, 20_000
PAPER = {  # simulation time over real time, Table I: [11], PyElastica, [26], [27], the paper's method
    "stiff": ("71.9", "336", "6173", "4.5", "7.1"),
    "soft": ("fails", "133", "1675", "1.9", "9.1"),
}


def lissom_times(name: str) -> list[tuple[float, ls.Statistics]]:
    """Least wall time [s] of the rod with each stiffness, and the statistics of its last run."""
    starts = [rods.cantilever(name, factor) for factor in STIFFER]
    least: list[Any] = [np.inf] * len(STIFFER)
    last: list[Any] = [None] * len(STIFFER)
    for _ in range(ROUNDS):  # round by round, so that what else the machine does meets all alike
        for k, (model, q0) in enumerate(starts):
            last[k] = ls.simulate(model, rods.DURATION, q0, method="generalized_alpha", dt=rods.DT).statistics
            least[k] = min(least[k], last[k].wall_time)
    return list(zip(least, last))


def elastica_rod(name: str) -> Any:
    """PyElastica's rod on the shape from which lissom starts: the system and the rod in it."""
    import elastica as ea

    class System(ea.BaseSystemCollection, ea.Constraints, ea.Forcing):
        """The system of PyElastica, with the features that the run needs."""

    data = rods.CANTILEVERS[name]
    model, q0 = rods.cantilever(name)
    points = ls.frame_pose(model, q0, "rod", s=np.linspace(0.0, 1.0, ELEMENTS + 1))
    middle = ls.frame_pose(model, q0, "rod", s=np.r_[0.0, (np.arange(1, ELEMENTS) + 0.5) / ELEMENTS])[:, :3, :3]
    system = System()
    rod = ea.CosseratRod.straight_rod(
        ELEMENTS, np.zeros(3), np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]), data["length"], data["radius"],
        data["density"], youngs_modulus=data["young"], shear_modulus=data["young"] / 3.0,
    )  # fmt: skip
    rod.position_collection[:] = points[:, :3, 3].T
    # rows of its directors: two across, then the tangent, which is the first axis here
    rod.director_collection[:] = np.transpose(middle[:, :, [2, 1, 0]] * (1, -1, 1), (2, 1, 0))
    system.append(rod)
    system.constrain(rod).using(ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,))
    system.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array([0.0, 0.0, -9.81]))
    system.finalize()
    return system, rod


def elastica_run(name: str, dt: float, steps: int) -> tuple[float, bool]:
    """Wall time of some steps [s], and whether the rod stays in one piece."""
    import elastica as ea

    system, rod = elastica_rod(name)
    began = time.perf_counter()
    with redirect_stdout(io.StringIO()):
        ea.integrate(ea.PositionVerlet(), system, steps * dt, steps, progress_bar=False)
    spent = time.perf_counter() - began
    lengths = np.linalg.norm(np.diff(rod.position_collection, axis=1), axis=0) * ELEMENTS
    stretch = np.abs(lengths / rods.CANTILEVERS[name]["length"] - 1.0).max()
    return spent, bool(stretch < 0.1)  # NaN is not


def elastica_time(name: str) -> tuple[float, float]:
    """Its longest stable step [s], and its wall time for the duration, scaled [s]."""
    data = rods.CANTILEVERS[name]
    wave = np.sqrt(data["young"] / data["density"])
    dt = 2.0 * data["radius"] / wave  # above the limit of rotations against shear, r / sqrt(G / ρ)
    with np.errstate(all="ignore"):
        while not elastica_run(name, dt, TRIED)[1]:
            dt *= 0.95
    spent = min(elastica_run(name, dt, TIMED)[0] for _ in range(3))
    return dt, spent / TIMED * rods.DURATION / dt


def references(name: str) -> dict[str, str]:
    """Simulation time over real time of the methods of planar_rod.py, or the time at which they stop."""
    data = {key: value for key, value in rods.CANTILEVERS[name].items() if key != "force"}
    rod, force = PlanarRod(**data), rods.CANTILEVERS[name]["force"]
    start = rod.rest(force)
    runs: dict[str, Any] = {
        "Algorithm 1": lambda: rod.newmark(start, rods.DT, rods.DURATION),
        "explicit, modes": lambda: rod.explicit(start, rods.DURATION),
        "shooting": lambda: rod.shooting(force, rods.DT, 0.5),
        "shooting, 0.01 N": lambda: rod.shooting(0.01, rods.DT, 0.5),
    }
    found = {}
    for title, run in runs.items():
        try:
            motion = run()
            found[title] = f"{motion.seconds / motion.t[-1]:.3g}"
        except Stopped as end:
            found[title] = f"stops at {end} s"
    return found


def main() -> None:
    """Print the table."""
    times = {name: lissom_times(name) for name in rods.CANTILEVERS}
    print(f"lissom, {rods.DURATION:g} s in steps of {1e3 * rods.DT:g} ms (generalised-α): wall time [ms], and for each "
          "step residuals and matrices of Newton's iteration")  # fmt: skip
    for name, rows in times.items():
        for factor, (spent, s) in zip(STIFFER, rows):
            print(f"  {name:6s} E x {factor:<5g} {1e3 * spent:8.1f} ms   {s.evaluations / s.steps:4.1f} residuals, "
                  f"{s.jacobians / s.steps:4.2f} matrices, {s.steps} steps")  # fmt: skip
        slowest, explicit = max(rows)[0] / min(rows)[0], (STIFFER[-1] / STIFFER[0]) ** 0.5
        print(
            f"  {name:6s} slowest over fastest {slowest:.2f}; steps of an explicit method: {explicit:.0f} times as many"
        )
    print(f"\nPyElastica, {ELEMENTS} elements, E x 1, timed over {TIMED} steps and scaled to {rods.DURATION:g} s (an "
          "estimate: it has not run that long)")  # fmt: skip
    for name, rows in times.items():
        dt, spent = elastica_time(name)
        own = rows[STIFFER.index(1.0)][0]
        print(f"  {name:6s} step {dt:.1e} s  {spent:9.1f} s  {spent / own:10.0f} x lissom   simulation over real time: "
              f"PyElastica {spent / rods.DURATION:.1f}, lissom {own / rods.DURATION:.4f}")  # fmt: skip
    print("\nmethods of planar_rod.py, simulation over real time (processor time)")
    for name in rods.CANTILEVERS:
        print(f"  {name:6s} " + ", ".join(f"{title} {value}" for title, value in references(name).items()))
    print("\nthe paper (Table I, its machine, MATLAB but for PyElastica), simulation over real time:")
    print(f"  {'':6s}{'[10], [11]':>12s}{'PyElastica':>12s}{'[26]':>8s}{'[27]':>8s}{'the paper':>12s}")
    for name, row in PAPER.items():
        print(f"  {name:6s}{row[0]:>12s}{row[1]:>12s}{row[2]:>8s}{row[3]:>8s}{row[4]:>12s}")


if __name__ == "__main__":
    main()
