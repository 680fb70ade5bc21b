"""Time lissom's inverse dynamics and mass matrix beside Pinocchio's, in one run on one core.

    python benchmarks/run.py

Times are the smallest of many repetitions. "in kernel" is one instance of a batch, without Python; "from Python" is
one call of the public function. Ratios compare like with like: Pinocchio's times are calls from Python too.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from robots import pinocchio_arm, rod_chain, seven_revolute_arm

import lissom as ls
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.launch import buffers

BATCH = 64
Row = tuple[str, float, str]


def smallest(call: Callable[[], object], seconds: float = 1.0, inner: int = 20) -> float:
    """Least time of one call [µs], over `seconds` of repetitions of `inner` calls."""
    least, stop = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < stop:
        began = time.perf_counter()
        for _ in range(inner):
            call()
        least = min(least, (time.perf_counter() - began) / inner)
    return least * 1e6


def state(model: ls.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A fixed random state."""
    rng = np.random.default_rng(0)
    return 0.3 * rng.normal(size=model.nq), rng.normal(size=model.nv), rng.normal(size=model.nv)


def in_kernel(model: ls.Model) -> float:
    """Inverse dynamics of one instance inside a kernel [µs], one core."""
    buffers.MIN_INSTANCES_PER_THREAD = 10**9  # one launch, so one core
    q, v, a = (np.tile(x, (BATCH, 1)) for x in state(model))
    w, _ = run_inverse_dynamics(model, q, v, a, True, True, True, 0.0)
    return smallest(w.run) / BATCH


def lissom_rows(model: ls.Model) -> list[Row]:
    """Times of one robot in lissom."""
    q, v, a = state(model)
    ls.inverse_dynamics(model, q, v, a)
    ls.mass_matrix(model, q)
    return [
        (f"ID of {model.name}, in kernel", in_kernel(model), ""),
        (f"ID of {model.name}, from Python", smallest(lambda: ls.inverse_dynamics(model, q, v, a)), ""),
        (f"M of {model.name}, from Python", smallest(lambda: ls.mass_matrix(model, q)), ""),
    ]


def pinocchio_rows() -> list[Row]:
    """Times of the 7R arm in Pinocchio."""
    import pinocchio as pin

    model = pinocchio_arm()
    data = model.createData()
    q, v, a = state(seven_revolute_arm())
    return [
        ("ID of 7R arm, Pinocchio from Python", smallest(lambda: pin.rnea(model, data, q, v, a)), ""),
        ("M of 7R arm, Pinocchio from Python", smallest(lambda: pin.crba(model, data, q)), ""),
    ]


def first_calls() -> list[tuple[str, float]]:
    """Time from after the import to the first result [s], with an empty and with a filled kernel cache."""
    import tempfile

    script = (
        "import time, numpy as np, lissom as ls\n"
        "from robots import rod_chain\n"
        "model = rod_chain(); z = np.zeros(48); began = time.perf_counter()\n"
        "ls.inverse_dynamics(model, z, z, z); print(time.perf_counter() - began)\n"
    )
    out = []
    with tempfile.TemporaryDirectory() as cache:
        for label in ("cold", "warm cache"):
            environment = os.environ | {"WARP_CACHE_PATH": cache}
            done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=Path(__file__).parent,
                                  capture_output=True, text=True, check=True)  # fmt: skip
            out.append((label, float(done.stdout)))
    return out


def main() -> None:
    """Print one table."""
    arm, chain = seven_revolute_arm(), rod_chain()
    rows = [*lissom_rows(arm), *pinocchio_rows(), *lissom_rows(chain)]
    times = {name: micro for name, micro, _ in rows}
    calibration = times["ID of chain of 4 rods, in kernel"]
    print(f"{platform.processor() or platform.machine()}, {_processor()}, Python {platform.python_version()}")
    print(", ".join(f"{name} {version(name)}" for name in ("lissom", "warp-lang", "numpy", "pin")))
    print(f"\n{'':48s}{'µs':>9s}{'/ chain ID in kernel':>24s}")
    for name, micro, _ in rows:
        print(f"{name:48s}{micro:9.2f}{micro / calibration:24.2f}")
    print()
    for what in ("ID", "M"):
        mine, theirs = times[f"{what} of 7R arm, from Python"], times[f"{what} of 7R arm, Pinocchio from Python"]
        print(f"{what} of the 7R arm from Python, lissom / Pinocchio: {mine / theirs:.2f}")
    for robot in ("7R arm", "chain of 4 rods"):
        extra = times[f"ID of {robot}, from Python"] - times[f"ID of {robot}, in kernel"]
        print(f"Python adds {extra:.2f} µs to ID of the {robot}")
    for label, seconds in first_calls():
        print(f"first inverse dynamics after import, {label}: {seconds:.2f} s")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "processor unknown"
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "processor unknown")


if __name__ == "__main__":
    main()
