"""Cost of accuracy: ten seconds of six robots by every method, from loose tolerances to tight ones, in one run.

    python benchmarks/work_precision.py [OUT.png] [TABLE.csv] [part of the name of a robot]

The robots are those of Mathew 2025. The error is the largest distance of any link's frame from where a reference has
it, at 51 times, over the size of the robot; the reference is bdf at 1e-10, for the finger, which bdf does not get
through and for which radau takes hours, esdirk in steps of 2.5 ms. Times are those of runs on one core that hand out
every step, as the default does, of short ones the least of five, whose rounds go through all methods; they stand in
units of the calibration kernel, inverse dynamics of the chain of four rods. The ladder of a method ends where a run
takes longer than LONGEST or stops. Below each table stands by how much the default is slower, at worst, than the
fastest method at an equal error, and its cost at an error not above that of bdf at rtol = 1e-3. If the file of the
table exists, its numbers are drawn without a new measurement. docs/how_to/accuracy.csv is the table of the manual.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import csv
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import closed_chains
import numpy as np
import surroundings
import timing
from robots import rod_chain
from run import in_kernel

import lissom as ls
from lissom.launch import buffers

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
DURATION, LONGEST, SHORT = 10.0, 4.0, 0.2  # [s]
ROUNDS = 4  # more, of runs that are short
SHARE = 0.01  # of a motion, by which its time is guessed
TIMES = np.linspace(0.0, DURATION, 51)
TOLERANCES = 10.0 ** np.arange(-1.0, -9.5, -0.5)
STEPS = 0.04 * 0.5 ** np.arange(8)  # [s]
LEVELS = np.logspace(-2, -9, 29)
DEFAULT = "auto"
METHODS: dict[str, dict[str, Any]] = {
    "auto": {"method": "auto"},
    "bdf": {"method": "bdf"},
    "radau": {"method": "radau"},
    "dop853": {"method": "dop853"},
    "generalized_alpha": {"method": "generalized_alpha"},
    "bathe": {"method": "bathe"},
    "generalized_alpha, dt": {"method": "generalized_alpha"},
    "esdirk, dt": {"method": "esdirk"},
}


class Case(NamedTuple):
    """A robot, its start and its inputs."""

    model: ls.Model
    q0: np.ndarray
    u: Any


class Run(NamedTuple):
    """The tolerance or step of a run, its number of steps, its time [calibrations] and its error [-]."""

    asked: float
    steps: int
    cost: float
    error: float


def cases() -> dict[str, Case]:
    """The six robots."""
    from cdm import tensions

    t = np.linspace(0.0, DURATION, 101)
    pull = ls.Samples(t, np.array([tensions(x) for x in t]), smooth=True)
    arm, serial = timing.load("cdm"), timing.load("serial_robot")
    found = {"CDM": Case(arm, arm.neutral(), pull), "serial robot": Case(serial, serial.neutral(), None)}
    found |= {name: Case(model, q0, None) for name, (model, q0) in closed_chains.robots().items()}
    for name, (model, u) in surroundings.robots().items():
        found[name] = Case(model, model.neutral(), pull if callable(u) else u)
    return found


def places(case: Case, **options: Any) -> np.ndarray:
    """Where the frames of all links are at TIMES, (n, n_links, 3) [m]."""
    motion = ls.simulate(case.model, DURATION, case.q0, u=case.u, t_eval=TIMES, **options)
    return ls.forward_kinematics(case.model, motion.q)[..., :3, 3]


def timed(case: Case, **options: Any) -> tuple[float, int]:
    """The time of a run [s], and its number of steps."""
    began = time.perf_counter()
    motion = ls.simulate(case.model, DURATION, case.q0, u=case.u, **options)
    return time.perf_counter() - began, motion.statistics.steps


def run(case: Case, exact: np.ndarray, calibration: float, asked: float, options: dict[str, Any]) -> Run | None:
    """One run; None where it stops before its end."""
    try:
        took, steps = timed(case, **options)
        away = np.linalg.norm(places(case, **options) - exact, axis=-1).max()
    except ls.ConvergenceError:
        return None
    size = np.ptp(exact.reshape(-1, 3), axis=0).max()
    return Run(asked, steps, 1e6 * took / calibration, away / size)


def tolerances(name: str, asked: float) -> dict[str, Any]:
    """The arguments of a method for a tolerance or step."""
    return METHODS[name] | ({"dt": asked} if name.endswith("dt") else {"rtol": asked, "atol": 1e-3 * asked})


def timed_again(case: Case, table: dict[str, list[Run]], calibration: float) -> None:
    """Short runs of all methods in turn, round after round, since others use the machine too; the least time counts."""
    for _ in range(ROUNDS):
        for name, runs in table.items():
            for k, one in enumerate(runs):
                if one.cost * calibration < 1e6 * SHORT:
                    took = 1e6 * timed(case, **tolerances(name, one.asked))[0] / calibration
                    runs[k] = one._replace(cost=min(one.cost, took))


def is_hopeless(case: Case, name: str) -> bool:
    """Whether all of the motion would take a method more than a minute; compiles its kernels."""
    how = tolerances(name, STEPS[0] if name.endswith("dt") else TOLERANCES[0])
    for _ in range(2):  # the first compiles
        began = time.perf_counter()
        try:
            ls.simulate(case.model, SHARE * DURATION, case.q0, u=case.u, **how)
        except ls.ConvergenceError:
            return False  # tighter tolerances may go
    return (time.perf_counter() - began) / SHARE > 60.0


def ladder(name: str, case: Case, exact: np.ndarray, calibration: float) -> list[Run]:
    """The runs of a method, from the loosest on; none where it would take a minute."""
    found = []
    if is_hopeless(case, name):
        print(f"  {name:22s} would take more than a minute", flush=True)
        return found
    for asked in STEPS if name.endswith("dt") else TOLERANCES:
        one = run(case, exact, calibration, float(asked), tolerances(name, float(asked)))
        if one is None:
            continue
        found.append(one)
        if one.cost * calibration > 1e6 * LONGEST or one.error < LEVELS[-1]:
            break
    return found


def show(table: dict[str, list[Run]]) -> None:
    """Print all runs."""
    for name, runs in table.items():
        for x in runs:
            line = f"  {name:22s}{x.asked:9.1e}{x.steps:8d} steps{x.cost:10.0f} calibrations   error {x.error:.1e}"
            print(line, flush=True)


def cost_at(runs: list[Run], level: float) -> float:
    """The least cost of an error not above a level, between two runs as by a power; infinite where none gets there."""
    best = np.inf
    for one in runs:
        if one.error <= level:
            best = min(best, one.cost)
    for loose, tight in pairwise(runs):
        if tight.error < level < loose.error:
            part = np.log(loose.error / level) / np.log(loose.error / tight.error)
            best = min(best, loose.cost * (tight.cost / loose.cost) ** part)
    return float(best)


def judge(found: dict[str, list[Run]]) -> None:
    """Say how the default stands among the others."""
    worst, where, against = 0.0, np.nan, ""
    for level in LEVELS:
        own = cost_at(found[DEFAULT], level)
        for name, runs in found.items():
            ratio = own / cost_at(runs, level) if np.isfinite(own) else 0.0
            if ratio > worst:
                worst, where, against = ratio, level, name
    print(f"  {DEFAULT} takes at most {worst:.2f} times the fastest (at an error of {where:.0e}, {against})")
    usual = next((one for one in found.get("bdf", []) if abs(np.log10(one.asked) + 3.0) < 0.1), None)
    if usual is not None:
        print(f"  at the error of bdf at rtol 1e-3, {usual.error:.1e}: bdf {usual.cost:.0f}, {DEFAULT} "
              f"{cost_at(found[DEFAULT], usual.error):.0f} calibrations")  # fmt: skip


def draw(table: dict[str, dict[str, list[Run]]], path: str) -> None:
    """Error against cost, a panel for each robot."""
    from matplotlib.figure import Figure

    from lissom.viewing.colors import GRID, INK, SERIES

    columns = min(3, len(table))
    rows = -(-len(table) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.6 * rows + 0.6), layout="constrained")
    drawn = {name for found in table.values() for name in found}
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for panel, (robot, found) in zip(axes, table.items()):
        for k, name in enumerate(METHODS):
            if name not in drawn:
                continue
            runs = found.get(name, [])
            is_own = name == DEFAULT
            panel.loglog([one.cost for one in runs], [one.error for one in runs], "o-", color=SERIES[k], label=name,
                         lw=2.4 if is_own else 1.2, ms=5 if is_own else 3, zorder=3 if is_own else 2)  # fmt: skip
        panel.set_title(robot, color=INK, fontsize=11)
        panel.grid(color=GRID)
        panel.set_axisbelow(True)
        panel.set_ylim(1e-10, 1.0)
    for panel in axes[len(table) :]:
        panel.set_visible(False)
    for panel in axes[max(len(table) - columns, 0) : len(table)]:
        panel.set_xlabel("time of 10 s [calibrations]", color=INK)
    figure.supylabel("largest error over the size of the robot [-]", color=INK)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)


def read(path: Path) -> dict[str, dict[str, list[Run]]]:
    """A table from a file."""
    table: dict[str, dict[str, list[Run]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for robot, method, *numbers in list(csv.reader(file))[1:]:
            one = Run(*(kind(x) for kind, x in zip((float, int, float, float), numbers)))
            table.setdefault(robot, {}).setdefault(method, []).append(one)
    return table


def write(table: dict[str, dict[str, list[Run]]], path: Path) -> None:
    """Write a table into a file, a row for each run."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("robot", "method", "asked", "steps", "calibrations", "error"))
        for robot, found in table.items():
            for method, runs in found.items():
                for x in runs:
                    rows.writerow((robot, method, f"{x.asked:.1e}", x.steps, f"{x.cost:.0f}", f"{x.error:.1e}"))


def main() -> None:
    """Print a table for each robot, and draw them where a path is given."""
    warnings.simplefilter("ignore")
    path = next((x for x in sys.argv[1:] if x.endswith((".png", ".pdf", ".svg"))), None)
    kept = next((Path(x) for x in sys.argv[1:] if x.endswith(".csv")), None)
    if kept is not None and kept.exists():
        draw(read(kept), path or "work_precision.png")
        return
    buffers.MIN_INSTANCES_PER_THREAD = 10**9  # one launch, so one core
    calibration = in_kernel(rod_chain())
    wanted = [x for x in sys.argv[1:] if x not in (path, str(kept))]
    print(f"calibration: inverse dynamics of the chain of 4 rods {calibration:.1f} µs")
    table: dict[str, dict[str, list[Run]]] = {}
    for robot, case in cases().items():
        if wanted and not any(x.lower() in robot.lower() for x in wanted):
            continue
        print(robot, flush=True)
        stiff = robot == "fin-ray finger"
        best: dict[str, Any] = {"method": "bdf", "rtol": 1e-10, "atol": 1e-13}
        if stiff:
            best = {"method": "esdirk", "dt": 2.5e-3, "rtol": 1e-8, "atol": 1e-11}
        exact = places(case, **best)
        skipped = (
            ("bdf", "dop853") if stiff else ()
        )  # the finger's rates, up to 1e10 1/s, are for methods that damp them
        table[robot] = {name: ladder(name, case, exact, calibration) for name in METHODS if name not in skipped}
        timed_again(case, table[robot], calibration)
        show(table[robot])
        judge(table[robot])
    if kept is not None:
        write(table, kept)
    if path is not None:
        draw(table, path)


if __name__ == "__main__":
    main()
