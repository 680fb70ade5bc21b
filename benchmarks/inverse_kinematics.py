"""Which tensions put the tip of the cable-driven manipulator there: random tips that it can reach.

    python benchmarks/inverse_kinematics.py

Tensions are drawn up to a limit, the tips of their equilibria computed, and inverse kinematics by statics is asked for
these tips within the same limit, from the arm without tension. Then the lengths by which the tendons of such equilibria
are pulled in are prescribed, and the tensions, now multipliers, must come back.
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
    """Inverse kinematics of random tips, and the mean time of one [s]."""
    drawn = np.random.default_rng(seed).uniform(0.0, most, (tips, model.nu))
    places = ls.frame_pose(model, ls.solve_statics(model, u=drawn).q, "arm")[:, :3, 3]
    began = time.perf_counter()
    found = ls.inverse_kinematics(model, {"arm": places}, by="statics", limits=(0.0, most), starts=starts)
    return found, (time.perf_counter() - began) / tips


def by_lengths(model: ls.Model, most: float, count: int = 200, seed: int = 3) -> tuple[float, float, float]:
    """How far equilibria with prescribed tendon lengths are from those under the tensions drawn: configurations, in
    units of a rod's end rotation [rad] and stretch [-], and tensions [N]; and the mean time of one [s]."""
    drawn = np.random.default_rng(seed).uniform(0.0, most, (count, model.nu))
    rest = ls.solve_statics(model, u=drawn)
    lengths = ls.actuation_coordinates(model, rest.q)
    began = time.perf_counter()
    found = ls.prescribed_equilibrium(model, dict(zip(model.inputs.names, lengths.T)))
    seconds = (time.perf_counter() - began) / count
    apart = np.abs(ls.difference(model, rest.q, found.q) / model.dofs.scale).max()
    return float(apart), float(np.abs(found.u - drawn).max()), seconds


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
    for most in (5.0, 20.0):
        apart, tension, seconds = by_lengths(model, most)
        print(
            f"200 equilibria under tensions up to {most:g} N found by tendon lengths: configurations agree to "
            f"{apart:.1e}, tensions to {tension:.1e} N, {1e3 * seconds:.1f} ms each"
        )


if __name__ == "__main__":
    main()
