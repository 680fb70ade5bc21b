"""The tip of a soft manipulator led round a circle by model predictive control, PD and feedback linearisation.

The robot is the cable-driven manipulator of Mathew 2025 §4.5, `robots/cdm.yaml`: 24 coordinates, five tendons, each of
which pulls with 0 to 50 N. All three laws sample every 10 ms and have their tensions cut off at the limits. The tip
goes from where it hangs onto a circle across the arm. PD with compensation follows the path of tendon lengths of
equilibria that have the tip on the circle, by least tensions within the limits; partial feedback linearisation would
make these lengths follow it exactly, but for samples and limits. Model predictive control is given the circle itself;
one iteration each 10 ms looks 20 steps of 20 ms ahead.

    python examples/cdm_tracking.py out/cdm_tracking
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

FILE = Path(__file__).parent / "robots" / "cdm.yaml"
RADIUS, ROUND, ONTO = 0.06, 2.0, 0.5  # of the circle [m], time of one round and of the way onto it [s]
LOW, HIGH, PERIOD = 0.0, 50.0, 0.01  # tensions [N], time between samples [s]
PROPORTIONAL, DERIVATIVE = 2000.0, 20.0  # of PD, [N/m] and [N s/m]
RATE = 20.0  # of the error under feedback linearisation [1/s]
LAWS = "predictive", "pd", "linearising"


def circle(start: np.ndarray) -> Callable[[float], list[np.ndarray]]:
    """The path of the tip, from where it hangs."""

    def path(t: float) -> list[np.ndarray]:
        s = min(t / ONTO, 1.0)
        angle, size = 2.0 * np.pi * t / ROUND, RADIUS * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        return [start + size * np.array([0.0, np.sin(angle), 1.0 - np.cos(angle)])]

    return path


def predictive(model: ls.Model, path: Callable[[float], list[np.ndarray]]) -> ls.Controller:
    """Model predictive control of the tip."""
    cost = ls.TrackingCost(model, inputs=1e-4, points={"arm": 1e3}, point_reference=path, end=0.1)
    control = ls.ModelPredictiveControl(model, cost, dt=0.02, steps=20, limits=(LOW, HIGH))
    return control.controller(PERIOD)


def cut_off(law: Callable[..., Any]) -> ls.Controller:
    """A law within the limits."""
    return ls.Controller(lambda t, q, v, z: np.clip(law(t, q, v, z), LOW, HIGH))


def laws(model: ls.Model, q: np.ndarray, duration: float) -> dict[str, ls.Controller]:
    """The three laws, by their names."""
    path = circle(ls.frame_pose(model, q, "arm")[:3, 3])
    times = np.linspace(0.0, duration + 0.1, int(20 * duration) + 3)
    goals = {"arm": np.array([path(t)[0] for t in times])}
    rest = ls.inverse_kinematics(model, goals, by="statics", limits=(LOW, HIGH), q0=q, tolerance=1e-3)
    assert rest.converged.all()
    held = ls.Tabulated(times, rest.u)
    pulled = ls.Tabulated(times, ls.actuation_coordinates(model, rest.q))

    def pd(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        away = np.asarray(pulled(t)) - ls.actuation_coordinates(model, q)
        return np.asarray(held(t)) + PROPORTIONAL * away - DERIVATIVE * ls.actuation_matrix(model, q).T @ v

    exact = ls.partial_feedback_linearization(model, pulled, proportional=RATE**2, derivative=2.0 * RATE)
    return {"predictive": predictive(model, path), "pd": cut_off(pd), "linearising": cut_off(exact.output)}


def timed(law: ls.Controller, taken: list[float]) -> ls.Controller:
    """A law that notes how long it takes [s]."""

    def output(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        u = law.output(t, q, v, z)
        taken.append(time.perf_counter() - begin)
        return u

    return ls.Controller(output, law.rate, law.start if law.rate is not None else None)


def main(out: str | Path | None = None, duration: float = 2.5) -> dict[str, float]:
    """Errors of the tip under each law, and how long a sample takes; a picture in `out`."""
    model = ls.load_robot(FILE).build()
    rest = ls.solve_statics(model).q
    path = circle(ls.frame_pose(model, rest, "arm")[:3, 3])
    found, tips, motions, times = {}, {}, {}, np.arange(0.0, duration + 0.005, 0.01)
    wanted = np.array([path(t)[0] for t in times])
    for name, law in laws(model, rest, duration).items():
        taken: list[float] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ls.AccuracyWarning)
            motion = ls.simulate(model, duration, rest, controller=timed(law, taken), period=PERIOD, t_eval=times)
        tips[name], motions[name] = ls.frame_pose(model, motion.q, "arm")[:, :3, 3], motion
        error = np.linalg.norm(tips[name] - wanted, axis=1)
        found[f"{name}: mean error [m]"] = float(np.sqrt(np.mean(error**2)))
        found[f"{name}: largest error [m]"] = float(error.max())
        found[f"{name}: least tension [N]"] = float(motion.u.min())
        found[f"{name}: largest tension [N]"] = float(motion.u.max())
        found[f"{name}: median time of a sample [ms]"] = 1e3 * float(np.median(taken[2:]))
        found[f"{name}: longest time of a sample [ms]"] = 1e3 * float(max(taken[2:]))
    if out is not None:
        _plot(wanted, tips, motions, Path(out))
    return found


def _plot(wanted: np.ndarray, tips: dict[str, np.ndarray], motions: dict[str, ls.Trajectory], folder: Path) -> None:
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    plane, pull = figure.subplots(1, 2)
    plane.plot(1e3 * wanted[:, 1], 1e3 * wanted[:, 2], "k--", linewidth=1, label="wanted")
    for name, tip in tips.items():
        plane.plot(1e3 * tip[:, 1], 1e3 * tip[:, 2], label=name)
    plane.set(xlabel="y [mm]", ylabel="z [mm]", aspect="equal", title="the tip")
    plane.legend(frameon=False)
    motion = motions["predictive"]
    pull.plot(motion.t, motion.u)
    pull.set(xlabel="t [s]", ylabel="tension [N]", title="tensions, predictive")
    figure.savefig(folder / "cdm_tracking.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
