"""A hanging arm of three soft bodies brought to three shapes in turn (Pustina 2025, simulation 10).

Each body is a cylinder of 20 cm that bends with constant curvature and stretches: nine coordinates, each driven. The
law is the paper's PD with compensation of gravity and elasticity at the reference, K_P = 0.2 and K_D = 0.1 in its
coordinates, curvature times length [rad] and elongation [m]; references change every five seconds. From the text only
the third reference is left; the first two are chosen here, alike in size: a bow to one side, and an S.

The paper prints C = 5.55 GPa. With these the arm's slowest vibration would be damped 18 times beyond critical, and
creep to its references, but the robot "oscillates during transients": MPa are taken, with which it does, at 56 % of
critical, and settles within 0.4 s. `examples/free_arms.py` describes its material.

    python examples/shape_regulation.py out/shape_regulation
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

SOFT = runpy.run_path(str(Path(__file__).parent / "free_arms.py"))
LENGTH, RADIUS, C, ETA = 0.2, 0.02, 5.55e6, 0.066
PROPORTIONAL, DERIVATIVE, PERIOD = 0.2, 0.1, 5.0
REFERENCES = np.array([
    [0.5, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.0],
    [-0.5, 0.5, 0.0, 0.5, -0.5, 0.0, 1.0, 0.5, 0.0],
    [0.5, 0.5, 0.0, -0.3, 0.3, 0.0, -1.0, 1.0, 0.0],  # the one that the text has
])  # bending about two axes, elongation, of each body, times its length [rad, m]  # fmt: skip
DOWN = ((0, 1, 0, 0), (0, 0, -1, 0), (-1, 0, 0, 0), (0, 0, 0, 1))  # x down
ROWS = 751


def build(C: float = C, *, native: bool = False, reading: Any = SOFT["SLENDER"]) -> ls.Model:
    """The arm, each coordinate with an input of its own that works on it times the length; of rods where native."""
    motion = ls.KinematicsStrain.constant_curvature(LENGTH, elongation=True)
    body = SOFT["slender"](motion, (RADIUS, RADIUS), C, ETA, native=native, reading=reading)
    robot = ls.Robot("arm of three bodies")
    for k in range(3):
        robot.add_link(f"body {k}", body, parent=f"body {k - 1}" if k else None, placement=np.eye(4) if k else DOWN)
    robot.add_custom_actuator("drive", lambda q: LENGTH * np.eye(9), size=9)
    return robot.build()


def shapes(q: np.ndarray) -> np.ndarray:
    """The paper's coordinates."""
    return LENGTH * q


def laws(model: ls.Model) -> list[ls.Controller]:
    """One for each reference."""
    return [
        ls.pd_compensation(model, goal / LENGTH, proportional=PROPORTIONAL, derivative=DERIVATIVE, coordinates=shapes)
        for goal in REFERENCES
    ]


def regulate(model: ls.Model, period: float = PERIOD, **options: Any) -> ls.Trajectory:
    """The motion from the straight shape at rest through all references."""
    each = laws(model)
    switch = ls.Controller(lambda t, q, v, z: each[min(int(t / period), 2)].output(t, q, v, z))
    times = np.linspace(0.0, 3 * period, ROWS)
    return ls.simulate(model, 3 * period, controller=switch, t_eval=times, dt=0.05, **options)


def overshoot(motion: ls.Trajectory, period: float = PERIOD) -> list[float]:
    """How far the slowest shapes swing beyond their references, over the steps that these make."""
    found, before = [], np.zeros(9)
    for k, goal in enumerate(REFERENCES):
        some = (motion.t >= k * period) & (motion.t < (k + 1) * period)
        step = goal - before
        steps = np.abs(step) > 0.1
        beyond = ((shapes(motion.q[some]) - goal) / np.where(steps, step, 1.0))[:, steps]
        found.append(float(beyond.max()))
        before = goal
    return found


def settling_times(motion: ls.Trajectory, period: float = PERIOD) -> list[float]:
    """How long after each change of the reference all shapes are within 0.02 rad (or m) of it for good [s]."""
    found = []
    for k, goal in enumerate(REFERENCES):
        some = (motion.t >= k * period) & (motion.t < (k + 1) * period)
        outside = np.abs(shapes(motion.q[some]) - goal).max(axis=1) > 0.02
        found.append(float(motion.t[some][outside].max(initial=k * period) - k * period))
    return found


def compare() -> dict[str, list[float]]:
    """How far the arm, made of rods, swings beyond each of its references, by each way to read C and η."""
    readings = SOFT["READINGS"].items()
    return {text: overshoot(regulate(build(native=True, reading=reading))) for text, reading in readings}


def damping_ratio(model: ls.Model) -> float:
    """Of the arm's slowest vibration about the hanging shape, relative to critical damping."""
    zero = np.zeros(model.nv)
    M, K = ls.mass_matrix(model, zero), ls.inverse_dynamics_derivatives(model, zero, zero, zero)[0]
    D = ls.inverse_dynamics_derivatives(model, zero, zero, zero)[1]
    square, modes = np.linalg.eig(np.linalg.solve(M, K))
    slowest = np.argmin(square.real)
    mode = modes[:, slowest].real
    return float(mode @ D @ mode / (2 * np.sqrt(square[slowest].real) * (mode @ M @ mode)))


def main(out: str | Path | None = None, period: float = PERIOD, *, native: bool = False) -> dict[str, float]:
    """How near the arm comes to each reference, and how it swings there; pictures in `out`."""
    model = build(native=native)
    motion = regulate(model, period)
    stiff = build(1e3 * C, native=True)
    found = {"damping ratio": damping_ratio(model), "damping ratio with GPa": damping_ratio(stiff)}
    ends = [np.searchsorted(motion.t, (k + 1) * period - 1e-9) - (k < 2) for k in range(3)]
    swings = zip(ends, REFERENCES, overshoot(motion, period), settling_times(motion, period))
    for k, (row, goal, beyond, settled) in enumerate(swings):
        found[f"reference {k + 1}: error at its end"] = float(np.abs(shapes(motion.q[row]) - goal).max())
        found[f"reference {k + 1}: overshoot"] = beyond
        found[f"reference {k + 1}: settled after [s]"] = settled
    found["largest moment of a drive [N·m]"] = float(np.abs(motion.u[:, [0, 1, 3, 4, 6, 7]]).max())
    found["largest force of a drive [N]"] = float(np.abs(motion.u[:, 2::3]).max())
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _plot(model, motion, ends, Path(out))
    return found


def _plot(model: ls.Model, motion: ls.Trajectory, ends: list[int], folder: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    tip = ls.frame_pose(model, motion.q, "body 2")[:, :3, 3]
    for k, (axes, end) in enumerate(zip(top.subplots(1, 3), ends)):
        first = ends[k - 1] + 1 if k else 0
        shown = [first, *(first + int(x / 15.0 * ROWS) for x in (0.1, 0.25)), end]
        ls.plot_shapes(model, motion.q[shown], trail=tip[first : end + 1], axes=axes, view=(12, -60),
                       title=f"to reference {k + 1}")  # fmt: skip
    angle, moment = bottom.subplots(1, 2)
    for body, color in enumerate(("C0", "C1", "C2")):
        for axis, line in ((0, "-"), (1, "--")):
            column = 3 * body + axis
            name = f"body {body + 1}, about {'yz'[axis]}"
            angle.plot(motion.t, shapes(motion.q)[:, column], color=color, linestyle=line, label=name)
            moment.plot(motion.t, motion.u[:, column], color=color, linestyle=line)
            steps, times = np.repeat(REFERENCES[:, column], 2), motion.t[-1] / 3 * np.repeat(range(4), 2)[1:-1]
            angle.plot(times, steps, color=color, linestyle=":", linewidth=0.8)
    bottom.legend(*angle.get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=9, ncols=6)
    words = "curvature times length [rad], references dotted", "moments of the drives [N·m]"
    for axes, title in zip((angle, moment), words):
        axes.set_title(title, loc="left", fontsize=10)
        axes.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
        axes.grid(alpha=0.3)
    figure.savefig(folder / "shape_regulation.png", dpi=120)
    ls.plot_trajectory(model, motion, coordinates="all", path=folder / "coordinates.png")


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
    for key, parts in compare().items():
        print(f"{key}: overshoot of", ", ".join(f"{part:.0%}" for part in parts))
