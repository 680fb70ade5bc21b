"""Which tensions put the tip of the cable-driven manipulator there: random tips that it can reach.

    python benchmarks/inverse_kinematics.py

Tensions are drawn up to a limit, the tips of their equilibria computed, and inverse kinematics by statics is asked for
these tips within the same limit, from the arm without tension.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import lissom as ls

ROBOT = Path(__file__).parents[1] / "examples" / "robots" / "cdm.yaml"


def study(
    model: ls.Model, most: float, tips: int = 1000, seed: int = 1, starts: int = 1
) -> tuple[ls.InverseKinematics, float]:
    """What is found of random tips, and the mean time of one [s]."""
    drawn = np.random.default_rng(seed).uniform(0.0, most, (tips, model.nu))
    places = ls.frame_pose(model, ls.solve_statics(model, u=drawn).q, "arm")[:, :3, 3]
    began = time.perf_counter()
    found = ls.inverse_kinematics(model, {"arm": places}, by="statics", limits=(0.0, most), starts=starts)
    return found, (time.perf_counter() - began) / tips


def main() -> None:
    model = ls.load_robot(ROBOT).build()
    study(model, 10.0, 2)  # compiles
    for most, seed, starts in ((20.0, 1, 1), (40.0, 1, 1), (40.0, 2, 1), (40.0, 2, 4)):
        found, seconds = study(model, most, seed=seed, starts=starts)
        error = np.abs(found.residual).max(axis=1)
        print(
            f"tensions up to {most:g} N, draw {seed}, at most {starts} starts: {int(found.converged.sum())} of "
            f"{len(error)} found, largest error {error.max():.1e} m, tensions {found.u.min():.3g} to "
            f"{found.u.max():.3g} N, all stable: {bool(found.is_stable.all())}, {1e3 * seconds:.1f} ms each"
        )


if __name__ == "__main__":
    main()
