"""Pull a soft manipulator up, to both sides and down with its five tendons.

The robot is the cable-driven manipulator of Mathew 2025 §4.5, read from `robots/cdm.yaml`. It starts straight and at
rest, sags under its weight and is then pulled around for ten seconds. `make demo` runs the same motion through the
command line, with these tensions every quarter of a second from `robots/cdm_tensions.csv`.

    python examples/cdm.py out/cdm
"""

from __future__ import annotations

import sys
from math import pi, sin
from pathlib import Path

import numpy as np

import lissom as ls

ROBOTS = Path(__file__).parent / "robots"
DURATION = 10.0


def pull(t: float, start: float, stop: float) -> float:
    """A smooth pull from 0 to 1 and back, zero before `start` and after `stop` [s]."""
    return sin(pi * (t - start) / (stop - start)) ** 2 if start < t < stop else 0.0


def tensions(t: float) -> np.ndarray:
    """Tensions of t1 to t5 [N]: up, to +y, to -y, down; the two winding tendons twist the arm on its way."""
    left, right, down = pull(t, 2.5, 6.0), pull(t, 5.0, 8.0), pull(t, 7.5, 10.5)
    t1 = 45.0 * pull(t, 0.0, 4.0) + 20.0 * left + 20.0 * right
    return np.array([t1, 30.0 * right + 20.0 * down, 30.0 * left + 20.0 * down, 12.0 * pull(t, 3.0, 7.0),
                     12.0 * pull(t, 6.0, 9.5)])  # fmt: skip


def save_tensions(path: Path) -> None:
    """Write the tensions every 0.25 s as the CSV that `lissom simulate --inputs` reads."""
    t = np.linspace(0.0, DURATION, 41)
    rows = np.column_stack([t, [tensions(x) for x in t]])
    np.savetxt(path, rows, delimiter=",", header="t,t1,t2,t3,t4,t5", comments="", fmt=["%.2f"] + 5 * ["%.4f"])


def main(out: str | Path | None = None) -> dict[str, float]:
    """The motion: how far the tip went [m], and what its energy balance misses. Pictures go to the folder `out`."""
    model = ls.load_robot(ROBOTS / "cdm.yaml").build()
    trajectory = ls.simulate(model, DURATION, u=tensions)
    tip = ls.frame_pose(model, trajectory.q, "arm")[:, :3, 3]
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        shown = [int(np.argmin(np.abs(trajectory.t - t))) for t in np.linspace(0.0, DURATION, 16)]
        ls.plot_trajectory(model, trajectory, path=folder / "trajectory.png")
        ls.plot_shapes(model, trajectory.q[shown], trail=tip, values=trajectory.t[shown], value_label="time [s]",
                       path=folder / "shapes.png")  # fmt: skip
    return {
        "least y": tip[:, 1].min(),
        "largest y": tip[:, 1].max(),
        "least z": tip[:, 2].min(),
        "largest z": tip[:, 2].max(),
        "energy balance residual": ls.energy_balance(model, trajectory).residual,
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["--save-tensions"]:
        save_tensions(ROBOTS / "cdm_tensions.csv")
    else:
        for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
            print(f"{name}: {value:.3g}")
