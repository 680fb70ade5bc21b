"""Times of the two closed-chain robots of the gallery, beside a calibration kernel, in one run on one core.

    python benchmarks/closed_chains.py

Numerical derivatives are forward differences of forward_dynamics, as cheap as they can be: all perturbed states in one
batch. The paper's times (Mathew 2025, §5.2, §6.1 and Table 3, MATLAB on another machine) are printed for context.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from robots import rod_chain
from run import in_kernel, smallest

import lissom as ls

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
PAPER = {
    "fin-ray finger": {"ratio": 20.0, "adaptive": 994.0, "fixed": 69.0},
    "parallel robot": {"ratio": 16.0, "adaptive": 2.46, "fixed": 17.6},
}
RUNS = {
    "Radau, rtol 1e-4": {"method": "radau", "rtol": 1e-4, "atol": 1e-6},
    "bdf, rtol 1e-3": {"method": "bdf", "rtol": 1e-3, "atol": 1e-5},
    "bdf, rtol 1e-6": {"method": "bdf"},
    "generalised-α, 10 ms": {"method": "generalized_alpha", "dt": 0.01},
}


def robots() -> dict[str, tuple[ls.Model, np.ndarray]]:
    """The robots and their starts."""
    import fin_ray_finger
    import parallel_robot

    finger, platform = fin_ray_finger.robot().build(), parallel_robot.build()
    return {
        "fin-ray finger": (finger, ls.assemble(finger)),
        "parallel robot": (platform, ls.solve_statics(platform).q),
    }


def numerical(model: ls.Model, q: np.ndarray, v: np.ndarray) -> Callable[[], Any]:
    """∂FD/∂(q, v) by forward differences in one batch."""
    n, h = model.nv, 1e-7 * model.dofs.scale
    steps = np.vstack([np.zeros(n), np.diag(h), np.zeros((n, n))])
    rows = ls.integrate(model, q, steps), v + np.vstack([np.zeros((n + 1, n)), np.diag(h)])

    def jacobian() -> np.ndarray:
        a = ls.forward_dynamics(model, *rows)
        return (a[1:] - a[0]).T / np.tile(h, 2)

    return jacobian


def random_equilibria(count: int = 100) -> tuple[float, float]:
    """Mean time of an equilibrium of the parallel robot under a random wrench [ms], and the share that converged."""
    import parallel_robot

    rng, found, spent = np.random.default_rng(1), 0, 0.0
    start = ls.solve_statics(parallel_robot.build(force=np.zeros(3), moment=np.zeros(3))).q
    for _ in range(count):
        model = parallel_robot.build(force=rng.uniform(-0.5, 0.5, 3), moment=rng.uniform(-0.05, 0.05, 3))
        try:
            ls.solve_statics(model, q0=start)  # makes the buffers of this model
            spent += smallest(lambda model=model: ls.solve_statics(model, q0=start), 0.03, inner=1)
            found += 1
        except ls.ConvergenceError:
            continue
    return 1e-3 * spent / max(found, 1), found / count


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", ls.RedundancyWarning)
    calibration = in_kernel(rod_chain())
    print(f"calibration: inverse dynamics of the chain of 4 rods {calibration:.1f} µs\n")
    for name, (model, q0) in robots().items():
        paper = PAPER[name]
        v0 = np.zeros(model.nv)
        exact = smallest(partial(ls.forward_dynamics_derivatives, model, q0, v0), 1.0, inner=5)
        differences = smallest(numerical(model, q0, v0), 1.0, inner=2)
        print(f"{name}: {model.nv} coordinates, {model.n_rows} constraint rows")
        print(f"  derivatives of forward dynamics {exact / 1e3:.2f} ms, by differences {differences / 1e3:.2f} ms: "
              f"ratio {differences / exact:.1f} (paper {paper['ratio']:.0f})")  # fmt: skip
        for label, options in RUNS.items():
            if options["method"] == ("bdf" if name == "fin-ray finger" else "radau"):
                continue  # the finger's rates, up to 1e10 1/s, are for Radau's method
            spent = [ls.simulate(model, 10.0, q0, **options).statistics for _ in range(2)]
            context = paper["fixed" if "dt" in options else "adaptive"]
            best = min(spent, key=lambda s: s.wall_time)
            print(f"  10 s by {label}: {best.wall_time:.2f} s, {best.steps} steps (paper {context:g} s)")
    spent, share = random_equilibria()
    print(
        f"parallel robot, random wrenches: {spent:.2f} ms for an equilibrium, {100 * share:.0f} % found (paper 8.97 ms)"
    )


if __name__ == "__main__":
    main()
