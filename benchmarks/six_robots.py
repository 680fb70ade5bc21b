"""The six robots of Mathew 2025 as in its Table 3: motions without and with exact Jacobian, by Newmark's method and by
the default, derivatives of forward dynamics, and statics, with exact derivatives and with differences.

    python benchmarks/six_robots.py [part of the name of a robot]

Without a name the tables are written into docs/six_robots.md. Tolerances are those of the paper, 1e-3 and 1e-6. Times
are processor times on one core, of short runs the least of several; the paper's are of MATLAB on another machine. bdf
(CVODE) takes the place of ode15s; for the finger Radau's method does, since bdf stops there after half of the motion.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from surroundings import one_by_one
from work_precision import Case, cases

import lissom as ls

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
PAGE = ROOT / "docs" / "six_robots.md"
DURATION, LONG = 10.0, 60.0  # of the motions; after which a run is stopped [s]
ENOUGH = 2.0  # of repetitions [s]
TOLERANCES = {"rtol": 1e-3, "atol": 1e-6}


class Paper(NamedTuple):
    """A row of Table 3, times in s, and from the text the times of derivatives [ms]: by differences, exact."""

    name: str
    bodies: int
    points: int
    differences: float | None
    solver: str
    exact: float
    step: float
    newmark: float
    derivatives: tuple[float, float]


PAPER = {
    "CDM": Paper("cable-driven manipulator", 1, 7, 5.4, "ode15s", 1.25, 2e-3, 24.43, (10.5, 1.3)),
    "serial robot": Paper("serial robot", 8, 22, 7.08, "ode15s", 2.49, 1e-3, 231.0, (32.1, 2.5)),
    "fin-ray finger": Paper("fin-ray finger", 23, 136, None, "", 994.0, 1e-2, 69.0, (498.0, 23.74)),
    "parallel robot": Paper("parallel robot", 6, 26, 4500.0, "ode113", 2.46, 1e-2, 17.62, (82.9, 5.1)),
    "arm in a pipe": Paper("manipulator in a pipe", 1, 12, 30.61, "ode15s", 7.8, 2e-3, 46.64, (23.7, 2.3)),
    "vehicle in water": Paper("vehicle in water", 19, 80, 496.0, "ode113", 1.17, 1e-2, 69.0, (216.4, 11.9)),
}
STATICS = {"CDM": (28.2, 3.3), "serial robot": (49.9, 6.3), "parallel robot": (166.39, 8.97)}  # [ms]
Row = list[str]


def least(call: Callable[[], object]) -> float:
    """Least processor time of a call, among as many as fit [s]."""
    best, spent = np.inf, 0.0
    while spent < ENOUGH:
        began = time.process_time()
        call()
        took = time.process_time() - began
        best, spent = min(best, took), spent + max(took, 1e-6)
    return best


class TooLong(KeyboardInterrupt):
    """A run takes longer than LONG. It stops a run as Ctrl-C does; integrators repeat steps for other errors."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooLong after LONG, and each second after that, since callbacks of native code may drop it."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONG, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def timed(case: Case, **options: Any) -> float | None:
    """Time of a motion [s]; infinite where it takes longer than LONG; None where it stops."""
    run = partial(ls.simulate, case.model, q0=case.q0, u=case.u, **(TOLERANCES | options))
    try:
        with limited():
            run(1e-3 * DURATION)  # compiles
        with limited():
            return least(lambda: run(DURATION))
    except TooLong:
        return np.inf
    except ls.ConvergenceError:
        return None


def words(seconds: float | None) -> str:
    """A time with its unit."""
    if seconds is None:
        return "stops"
    if np.isinf(seconds):
        return f"over {LONG:.0f} s"
    if seconds >= 300.0:
        return f"{seconds / 60:.3g} min"
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def ratio(slow: float | None, fast: float | None) -> str:
    """How many times as long; where the slow one was stopped, at least."""
    if slow is None or fast is None or np.isinf(fast):
        return ""
    times, least_of_them = (LONG / fast, "over ") if np.isinf(slow) else (slow / fast, "")
    return least_of_them + (f"{times:.3g}" if times < 100.0 else f"{times:.0f}")


def points(model: ls.Model) -> str:
    """Gauss points of the rods."""
    counts = {int(np.count_nonzero(rod.weight)) for rod in model.rods.values()}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)}–{max(counts)}"


def motion_rows(name: str, case: Case) -> list[Row]:
    """The paper's row and ours of Table 3."""
    paper, method = PAPER[name], "radau" if name == "fin-ray finger" else "bdf"
    exact = timed(case, method=method)
    slow = timed(case, method=method, jacobian="differences")
    newmark, default = timed(case, method="newmark", dt=paper.step), timed(case)
    step = f"{1e3 * paper.step:g} ms"
    slow_words = "very slow" if paper.differences is None else f"{words(paper.differences)}, {paper.solver}"
    gauss = "10" if name == "arm in a pipe" else "5"
    theirs = [paper.name, "paper", str(paper.bodies), gauss, slow_words, words(paper.exact),
              ratio(paper.differences, paper.exact), step, words(paper.newmark), ""]  # fmt: skip
    ours = ["", "lissom", str(len(case.model.links.names)), points(case.model), f"{words(slow)}, {method}",
            words(exact), ratio(slow, exact), step, words(newmark), words(default)]  # fmt: skip
    return [theirs, ours]


def derivative_row(name: str, case: Case) -> Row:
    """Derivatives of forward dynamics by differences, state after state, and exact, in the middle of the motion."""
    motion = ls.simulate(case.model, 2.0, case.q0, u=case.u)
    state = motion.q[-1], motion.v[-1], motion.u[-1]
    slow = least(lambda: one_by_one(case.model, *state))
    many = 20
    fast = least(lambda: [ls.forward_dynamics_derivatives(case.model, *state) for _ in range(many)]) / many
    theirs = PAPER[name].derivatives
    return [PAPER[name].name, f"{theirs[0]:g} ms, {theirs[1]:g} ms", ratio(*theirs),
            f"{1e3 * slow:.3g} ms, {1e3 * fast:.2g} ms", ratio(slow, fast)]  # fmt: skip


def random_platforms(count: int) -> list[tuple[ls.Model, Any, np.ndarray, float]]:
    """The parallel robot under random wrenches, each to be solved from the robot under its weight alone."""
    import parallel_robot

    rng = np.random.default_rng(1)
    start = ls.solve_statics(parallel_robot.build(force=np.zeros(3), moment=np.zeros(3))).q
    wrenches = [(rng.uniform(-0.5, 0.5, 3), rng.uniform(-0.05, 0.05, 3)) for _ in range(count)]
    return [(parallel_robot.build(force=F, moment=M), None, start, 0.0) for F, M in wrenches]


def random_equilibria(name: str, count: int) -> list[tuple[ls.Model, Any, np.ndarray, float]]:
    """Models, inputs, starts and times of statics."""
    import implicit_methods

    if name == "parallel robot":
        return random_platforms(count)
    model, inputs = (implicit_methods.random_cdm if name == "CDM" else implicit_methods.random_serial)(count)
    return [(model, u, implicit_methods.equation(model, u, float(k))[1], float(k)) for k, u in enumerate(inputs)]


def statics_row(name: str, count: int = 50) -> Row:
    """Mean time of an equilibrium by differences and by the exact Jacobian."""
    spent, found = np.zeros(2), 0
    for model, u, start, t in random_equilibria(name, count):
        try:
            pair = []
            for jacobian in ("differences", "exact"):
                solve = partial(ls.solve_statics, model, u, start, t=t, stable=False, jacobian=jacobian)
                solve()  # makes the buffers
                began = time.process_time()
                solve()
                pair.append(time.process_time() - began)
        except ls.ConvergenceError:
            continue
        spent, found = spent + pair, found + 1
    slow, fast = spent / max(found, 1)
    theirs = STATICS[name]
    return [PAPER[name].name, f"{theirs[0]:g} ms, {theirs[1]:g} ms", ratio(*theirs),
            f"{1e3 * slow:.3g} ms, {1e3 * fast:.2g} ms", ratio(slow, fast), f"{found} of {count}"]  # fmt: skip


HEADS = {
    "motions": ["robot", "", "bodies", "Gauss points of a rod", "without exact Jacobian", "with", "ratio", "step",
                "Newmark", "default"],
    "derivatives": ["robot", "paper: differences, exact", "ratio", "lissom: differences, exact", "ratio"],
    "statics": ["robot", "paper: differences, exact", "ratio", "lissom: differences, exact", "ratio", "found"],
}  # fmt: skip


def table(name: str, rows: list[Row]) -> str:
    """In Markdown."""
    lines = [HEADS[name], ["---"] * len(HEADS[name]), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def put(tables: dict[str, str]) -> None:
    """The tables into the manual, between their marks."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in tables.items():
        place = re.compile(rf"<!-- {name} -->\n(?:(?!<!--).)*<!-- end -->", re.DOTALL)
        page, count = place.subn(f"<!-- {name} -->\n\n{text}\n\n<!-- end -->", page)
        assert count == 1, f"{PAGE.name} has no place for the table of {name}"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Print the tables, and write them into the manual."""
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:]
    rows: dict[str, list[Row]] = {name: [] for name in HEADS}
    for name, case in cases().items():
        if wanted and not any(x.lower() in name.lower() for x in wanted):
            continue
        rows["motions"] += motion_rows(name, case)
        rows["derivatives"].append(derivative_row(name, case))
        if name in STATICS:
            rows["statics"].append(statics_row(name))
        for kind in rows:
            print(table(kind, rows[kind][-2:] if kind == "motions" else rows[kind][-1:]), flush=True)
    tables = {name: table(name, rows[name]) for name in HEADS}
    print(*tables.values(), sep="\n\n")
    if not wanted:
        put(tables)


if __name__ == "__main__":
    main()
