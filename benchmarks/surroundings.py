"""Times of the two robots of the gallery that the world acts on, beside a calibration kernel, in one run on one core.

    python benchmarks/surroundings.py

The arm in the pipe (examples/cdm_contact.py) and the vehicle with six flagella (examples/underwater_vehicle.py), ten
seconds by every method, and the exact derivatives of forward dynamics beside numerical ones: forward differences, one
state after the other as the paper does, and all states in one batch. bdf takes 1e-3 relative to both q and v, 1e-6 of q
and 1e-4 of v. The paper's times (Mathew 2025, §6.2, §6.3 and Table 3, MATLAB on another machine) are for context.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from closed_chains import numerical
from robots import rod_chain
from run import in_kernel, smallest

import lissom as ls

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
PAPER = {
    "arm in a pipe": {"ratio": 10, "bdf": 7.8, "generalized_alpha": 46.64},
    "vehicle in water": {"ratio": 18, "bdf": 1.17, "generalized_alpha": 69.0},
}
FASTEST = {"bdf": "bdf, rtol 1e-3", "generalized_alpha": "generalised-α, 10 ms"}
AIMS = {"arm in a pipe": {"bdf": 0.2}, "vehicle in water": {"bdf": 0.5, "generalized_alpha": 1.5}}
RUNS: dict[str, dict[str, Any]] = {
    "bdf, rtol 1e-3": {"method": "bdf", "rtol": 1e-3, "atol": (1e-6, 1e-4)},
    "bdf, rtol 1e-6": {"method": "bdf"},
    "generalised-α, 10 ms": {"method": "generalized_alpha", "dt": 0.01},
    "generalised-α, 2 ms": {"method": "generalized_alpha", "dt": 0.002},
}


def robots() -> dict[str, tuple[ls.Model, Any]]:
    """The robots and their inputs."""
    import cdm
    import cdm_contact
    import underwater_vehicle

    vehicle = underwater_vehicle.vehicle().build()
    return {
        "arm in a pipe": (cdm_contact.robot().build(), cdm.tensions),
        "vehicle in water": (vehicle, np.array(underwater_vehicle.TORQUES)),
    }


def one_by_one(model: ls.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """∂FD/∂(q, v) by forward differences, state after state."""
    n, h = model.nv, 1e-7 * model.dofs.scale
    a = ls.forward_dynamics(model, q, v, u)
    moved = [ls.forward_dynamics(model, ls.integrate(model, q, row), v, u) for row in np.diag(h)]
    faster = [ls.forward_dynamics(model, q, v + row, u) for row in np.diag(h)]
    return (np.array(moved + faster) - a).T / np.tile(h, 2) if n else np.zeros((0, 0))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", ls.AccuracyWarning)
    calibration = in_kernel(rod_chain())
    print(f"calibration: inverse dynamics of the chain of 4 rods {calibration:.1f} µs\n")
    for name, (model, u) in robots().items():
        motion = ls.simulate(model, 2.0, u=u)
        q, v, now = motion.q[-1], motion.v[-1], motion.u[-1]
        exact = smallest(partial(ls.forward_dynamics_derivatives, model, q, v, now), 1.0, inner=5)
        batch = smallest(numerical(model, q, v), 1.0, inner=2)
        alone = smallest(partial(one_by_one, model, q, v, now), 2.0, inner=1)
        print(f"{name}: {model.nv} coordinates, {model.n_nodes} nodes")
        print(f"  derivatives of forward dynamics {exact / 1e3:.2f} ms; by differences {alone / 1e3:.2f} ms, ratio "
              f"{alone / exact:.0f} (paper {PAPER[name]['ratio']}); in one batch {batch / 1e3:.2f} ms, ratio "
              f"{batch / exact:.1f}")  # fmt: skip
        for label, options in RUNS.items():
            best = min((ls.simulate(model, 10.0, u=u, **options).statistics for _ in range(5)), key=_wall)
            method = options["method"]
            aim = AIMS[name].get(method) if label == FASTEST[method] else None
            print(f"  10 s by {label:22s} {best.wall_time:6.3f} s, {1e6 * best.wall_time / calibration:9.0f} "
                  f"calibrations, {best.steps} steps (paper {PAPER[name][method]:g} s"
                  f"{'' if aim is None else f', aim {aim:g} s'})")  # fmt: skip


def _wall(cost: ls.Statistics) -> float:
    return cost.wall_time


if __name__ == "__main__":
    main()
