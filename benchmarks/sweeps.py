"""A sweep of a thousand samples by one worker and by two, in one run.

    python benchmarks/sweeps.py [how many]

Each sample is the cable-driven manipulator of another stiffness, let go under other tensions for 1 s in steps of 10 ms.
On a machine that others use, wall times say little. Beside them stands the time that each process has had a processor
for; that of workers from their beginning on, imports included. On two free cores the sweep takes as long as the busiest
one, or half of their sum, where neither is held up by others and both compute as many samples.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

ROBOT = Path(__file__).parents[1] / "examples" / "robots" / "cdm.yaml"
PARAMETERS = {"arm.material.young": ls.Span(0.5e6, 2e6, scale="log"), "u.t1": ls.Span(0, 10), "u.t4": ls.Span(0, 5)}


def motion(trial: ls.Trial) -> dict[str, Any]:
    """Where the tip is in the end, and for how long this process has had a processor [s]."""
    found = ls.simulate(trial.model, 1.0, u=trial.u, method="generalized_alpha", dt=0.01, t_eval=[1.0])
    tip = ls.frame_pose(trial.model, found.q[-1], "arm")[:3, 3]
    return {"tip": tip, "process": os.getpid(), "busy": time.process_time()}


def swept(count: int, workers: int, out: Path) -> tuple[float, float, float, np.ndarray]:
    """Wall time, time of the busiest process, mean time of those that compute, and the results."""
    began, busy = time.perf_counter(), time.process_time()
    found = ls.sweep(motion, PARAMETERS, robot=ROBOT, out=out, samples="sobol", count=count, workers=workers)
    wall, own = time.perf_counter() - began, time.process_time() - busy
    ids = found["process"]
    others = [found["busy"][ids == one].max() for one in np.unique(ids) if one != os.getpid()]
    if others:
        shares = [f"{busy:.1f} s for {np.sum(ids == one)}" for busy, one in zip(others, np.unique(ids))]
        print(f"client {own:.1f} s, workers {' and '.join(shares)} samples")
    return wall, max([own, *others]), float(np.mean(others or [own])), found["tip"]


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        swept(2, 1, Path(folder) / "warm")
        one, two = (swept(count, workers, Path(folder) / str(workers)) for workers in (1, 2))
    assert np.array_equal(one[3], two[3])
    print(f"{count} samples, to the last bit the same")
    print(f"one worker   {one[0]:6.1f} s, processor {one[1]:6.1f} s")
    print(f"two workers  {two[0]:6.1f} s, busiest process {two[1]:6.1f} s, mean {two[2]:.1f} s")
    ratios = f"{one[1] / two[1]:.2f} by the busiest process, {one[1] / two[2]:.2f} by the mean"
    print(f"two over one {one[0] / two[0]:6.2f} by the clock, {ratios}")


if __name__ == "__main__":
    main()
