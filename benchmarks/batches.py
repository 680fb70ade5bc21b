"""A thousand different motions of a robot: in one call, on one core and on all, beside as many calls, in one run.

    python benchmarks/batches.py [how many] [part of the name of a robot]

Each motion has inputs and a start of its own and lasts 1 s, in steps of 10 ms by generalised-α. The calls take turns in
rounds, and the best round of each counts. On a machine that others use, wall times say little. Beside them stand the
ratio in time of the processor, and how many cores the call on all of them got.

    python benchmarks/batches.py [how many] designs
    python benchmarks/batches.py [how many] steps

The first compares a batch of models, the CDM with as many Young's moduli, with simulations of each, and takes
one inverse dynamics of each besides. The second lets so many CDMs of one model go at once and counts steps per second.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import copy
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls
from lissom.launch.cores import cores

ALL = cores()
EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
ROUNDS, LONGEST = 3, 60.0  # and seconds, after which none begins
WARM = 100  # motions, up to which the single calls are warmed up whole
OPTIONS: dict[str, Any] = {"method": "generalized_alpha", "dt": 0.01, "t_eval": np.arange(101) * 0.01}


def cdm(count: int, rng: np.random.Generator) -> tuple[ls.Model, np.ndarray, np.ndarray]:
    """The cable-driven manipulator, let go under some tensions, with others."""
    return _pulled(ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build(), count, rng)


def arm_in_a_pipe(count: int, rng: np.random.Generator) -> tuple[ls.Model, np.ndarray, np.ndarray]:
    """The same in a pipe that it touches."""
    import cdm_contact

    return _pulled(cdm_contact.robot().build(), count, rng)


def parallel_robot(count: int, rng: np.random.Generator) -> tuple[ls.Model, np.ndarray, np.ndarray]:
    """A robot with loops, let go near its equilibrium."""
    import parallel_robot

    model = parallel_robot.build()
    moves = 0.02 * rng.normal(size=(count, model.nv)) * model.dofs.scale
    moved = ls.integrate(model, ls.solve_statics(model).q, moves)
    return model, np.array([ls.assemble(model, q) for q in moved]), np.zeros((count, model.nu))


def _pulled(model: ls.Model, count: int, rng: np.random.Generator) -> tuple[ls.Model, np.ndarray, np.ndarray]:
    start = ls.solve_statics(model, rng.uniform(0.0, 8.0, (count, model.nu))).q
    return model, start, rng.uniform(0.0, 8.0, (count, model.nu))


ROBOTS = {"CDM": cdm, "parallel robot (loops)": parallel_robot, "arm in a pipe (contact)": arm_in_a_pipe}


def measured(call: Callable[[], Any]) -> np.ndarray:
    """Wall time and time of the processor [s]."""
    clocks = (time.perf_counter, time.process_time)
    began = np.array([clock() for clock in clocks])
    call()
    return np.array([clock() for clock in clocks]) - began


def on_cores(count: int, call: Callable[[], Any]) -> np.ndarray:
    """Wall time and processor time of a call on `count` cores [s]."""
    kept = os.environ.get("LISSOM_CORES")
    os.environ["LISSOM_CORES"] = str(count)
    try:
        return measured(call)
    finally:
        os.environ.pop("LISSOM_CORES")
        os.environ.update({} if kept is None else {"LISSOM_CORES": kept})


def compare(name: str, model: ls.Model, q: np.ndarray, u: np.ndarray) -> None:
    """Print one row."""
    one, many = copy.copy(model), copy.copy(model)

    ends: dict[str, np.ndarray] = {}

    def single() -> None:
        ends["single"] = np.array([ls.simulate(one, 1.0, x, u=y, **OPTIONS).q for x, y in zip(q, u)])

    def together(label: str, robot: ls.Model) -> None:
        ends[label] = ls.simulate(robot, 1.0, q, u=u, **OPTIONS).q

    calls = {
        "single": lambda: on_cores(1, single),
        "one core": lambda: on_cores(1, lambda: together("one core", one)),
        "all cores": lambda: on_cores(ALL, lambda: together("all cores", many)),
    }
    for call in calls.values() if len(q) <= WARM else (calls["one core"], calls["all cores"]):
        call()
    found: dict[str, list[np.ndarray]] = {label: [] for label in calls}
    began = time.perf_counter()
    while len(found["single"]) < ROUNDS and time.perf_counter() - began < LONGEST:
        for label, call in calls.items():
            found[label].append(call())
    assert all(np.array_equal(q, ends["single"]) for q in ends.values()), f"{name}: not the same to the last bit"
    wall, cpu = ({label: min(x[k] for x in rows) for label, rows in found.items()} for k in (0, 1))
    got = max(x[1] / x[0] for x in found["all cores"])
    print(f"{name:26s}{wall['single']:9.2f}{wall['one core']:9.2f}{wall['all cores']:9.2f}"
          f"{wall['one core'] / wall['single']:9.2f}{cpu['one core'] / cpu['single']:9.2f}"
          f"{wall['one core'] / wall['all cores']:9.2f}{got:9.2f}")  # fmt: skip


def compare_designs(count: int) -> None:
    """A batch of models with as many Young's moduli, beside as many single ones."""
    model = ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build()
    young = np.geomspace(0.5, 2.0, count) * model.description.described_values()["arm.material.young"]
    began = time.perf_counter()
    models = model.batch("arm.material.young", young)
    print(f"{count} designs of the CDM: built in {time.perf_counter() - began:.1f} s")
    q, u = np.zeros((count, model.nq)), np.random.default_rng(0).uniform(0.0, 8.0, (count, model.nu))
    found: dict[str, Any] = {}

    def together() -> None:
        found["together"] = ls.simulate(models, 1.0, q, u=u, **OPTIONS).q

    def single() -> None:
        found["single"] = np.array([ls.simulate(one, 1.0, x, u=y, **OPTIONS).q for one, x, y in zip(models, q, u)])

    print("motions of 1 s [s]: wall time, time of the processor")
    for name, call in (("single, first", single), ("together, first", together)):
        wall, cpu = measured(call)
        print(f"{name:26s}{wall:9.2f}{cpu:9.2f}")
    for name, call in (("single", single), ("together", together)):
        rounds = [measured(call) for _ in range(ROUNDS)]
        print(f"{name:26s}{min(x[0] for x in rounds):9.2f}{min(x[1] for x in rounds):9.2f}")
    assert np.array_equal(found["together"], found["single"]), "not the same to the last bit"
    print(f"the same to the last bit, and {len(np.unique(found['single'][:, -1, 0]))} different ones")
    print("inverse dynamics of each [µs]")
    for name, robots in (("of one model", model), ("of each", models)):
        wall = min(measured(lambda robots=robots: ls.inverse_dynamics(robots, q, q, q))[0] for _ in range(20))
        print(f"{name:26s}{1e6 * wall / count:9.2f}")


def count_steps(count: int) -> None:
    """So many CDMs of one model at once, and their steps per second."""
    model = ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build()
    u = np.random.default_rng(0).uniform(0.0, 8.0, (count, model.nu))
    rounds = [measured(lambda: ls.simulate(model, 1.0, u=u, **OPTIONS)) for _ in range(ROUNDS)]
    wall, cpu = (min(x[k] for x in rounds) for k in (0, 1))
    print(f"{count} CDMs for 1 s in steps of 10 ms: {wall:.2f} s, {100 * count / wall:.0f} steps per second "
          f"({100 * count / cpu:.0f} per second of the processor)")  # fmt: skip


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if sys.argv[2:] in (["designs"], ["steps"]):
        (compare_designs if sys.argv[2] == "designs" else count_steps)(count)
        return
    print(f"{count} motions of 1 s [s]; aims: at most 1.15 times the single calls on one core, 1.8 times faster on two")
    heads = ("single", "1 core", "all", "1/single", "by CPU", "faster", "cores")
    print(" " * 26 + "".join(f"{head:>9s}" for head in heads))
    for name, make in ROBOTS.items():
        if len(sys.argv) < 3 or sys.argv[2] in name:
            compare(name, *make(count, np.random.default_rng(0)))


if __name__ == "__main__":
    main()
