"""The cable-driven manipulator inside a hollow cylinder (Mathew 2025 §6.2, figure 15).

The arm of `cdm.py` hangs down in a pipe of 15 cm radius along the world's z and is pulled against its wall by the same
tensions for ten seconds. As in the paper the rod has ten Gauss points, twelve points with its ends, at each of which a
ball of the arm's own radius may touch the wall; the wall pushes back with k δ^p, k = 1e5 N/m^1.5, p = 1.5, without
friction. That the arm hangs, and with it the direction of gravity in its frame, is our choice, and so are the tensions.

The motion is computed by BDF and by generalised-α with steps of 2 ms and 1 ms; along it exact derivatives of forward
dynamics are compared with central differences, which are the less exact the less deep a ball is. The two methods are
less than 100 µm apart, and less with half the step: those in which the tip hits the wall are of first order. With the
arm held against the wall by a constant tension, and along the motion, the depth falls as k^(−1/p). The paper's
numerical derivatives take ten times as long as its exact ones; ours thirty times where forward dynamics is called for
one state after the other, and some five times where one call evaluates all of them.

    python examples/cdm_contact.py out/cdm_contact
"""

from __future__ import annotations

import dataclasses
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

HERE = Path(__file__).parent
CDM, METHODS_STUDY = (runpy.run_path(str(HERE / f"{name}.py")) for name in ("cdm", "implicit_methods"))
RADIUS, STIFFNESS, EXPONENT = 0.15, 1e5, 1.5  # of the wall [m, N/m^p]
DURATION, RATE = 10.0, 100.0  # [s], and points compared a second
METHODS: dict[str, dict[str, Any]] = {
    "bdf": {"method": "bdf", "rtol": 1e-6, "atol": 1e-8},
    "generalized_alpha 2 ms": {"method": "generalized_alpha", "dt": 2e-3},
    "generalized_alpha 1 ms": {"method": "generalized_alpha", "dt": 1e-3},
}
HELD = np.array([40.0, 0.0, 0.0, 0.0, 0.0])  # tensions that hold the arm against the wall [N]
WALLS = np.geomspace(1e5, 1e8, 7)  # stiffness of walls for a held arm
SOFTER = (2.5e4, 1e5, 4e5, 1.6e6)  # and for the moving one


def robot(stiffness: float | None = STIFFNESS) -> ls.Robot:
    """The arm of the robot file with ten Gauss points, hanging; None leaves the wall out."""
    description = ls.load_robot(HERE / "robots" / "cdm.yaml")
    arm = description.links["arm"]
    down = np.eye(4)
    down[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    body = dataclasses.replace(arm.body, gauss_points=10)
    description.links["arm"] = dataclasses.replace(arm, body=body, placement=down)
    if stiffness is not None:
        pipe = ls.ShapeCylinder(RADIUS, axis=(0, 0, 1), inside=True)
        description.add_contact("pipe", "arm", pipe, stiffness=stiffness, exponent=EXPONENT)
    return description


def balls(model: ls.Model) -> tuple[np.ndarray, np.ndarray]:
    """Abscissas of the twelve points and the arm's radius there [m]."""
    rod = robot().links["arm"].body
    s = model.contacts.ball_s
    return s, np.array([rod.section.inner_radius(x) for x in s])


def depths(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """How deep each ball is in the wall, shape (..., 12) [m]; negative away from it."""
    s, radius = balls(model)
    at = ls.frame_pose(model, q, "arm", s)[..., :3, 3]
    return np.hypot(at[..., 0], at[..., 1]) + radius - RADIUS


def motions(model: ls.Model, duration: float) -> tuple[np.ndarray, list[ls.Trajectory]]:
    """Common times, and the motion by every method."""
    times = np.linspace(0.0, duration, round(RATE * duration) + 1)
    return times, [
        ls.simulate(model, duration, u=CDM["tensions"], t_eval=times, **options) for options in METHODS.values()
    ]


def held(walls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest depths [m], and sums of the forces [N] of ever stiffer walls, on the arm in equilibrium under HELD."""
    q, depth, force = start_of_statics(), np.zeros(len(walls)), np.zeros(len(walls))
    for k, stiffness in enumerate(walls):
        model = robot(stiffness).build()
        q = ls.solve_statics(model, HELD, q).q
        d = np.maximum(depths(model, q), 0.0)
        depth[k], force[k] = d.max(), (stiffness * d**EXPONENT).sum()
    return depth, force


def start_of_statics() -> np.ndarray:
    """The arm bent against a soft wall, from which that of a stiffer one follows."""
    softest = ls.solve_statics(robot(1e3).build(), HELD)
    return ls.solve_statics(robot(1e4).build(), HELD, softest.q).q


def slope(stiffness: Any, depth: Any) -> float:
    """Exponent of a power law through the points."""
    return float(np.polyfit(np.log(stiffness), np.log(depth), 1)[0])


def main(out: str | Path | None = None, duration: float = DURATION, states: int = 201) -> dict[str, float]:
    """The numbers of the study; its two pictures go to the folder `out`."""
    model = robot().build()
    times, found = motions(model, duration)
    tips = np.array([ls.frame_pose(model, motion.q, "arm")[:, :3, 3] for motion in found])
    apart = np.linalg.norm(tips[1:] - tips[0], axis=-1)
    shown = np.unique(np.linspace(0, len(times) - 1, states).round().astype(int))
    part = dataclasses.replace(found[0], **{name: getattr(found[0], name)[shown] for name in ("t", "q", "v", "a", "u")})
    METHODS_STUDY["derivatives_along"](model, dataclasses.replace(part, t=part.t[:1]))  # loads the kernels
    derivative, cost = METHODS_STUDY["derivatives_along"](model, part)
    single = one_by_one(model, part)
    static, force = held(WALLS)
    moving = [depths(model, softer(k, duration, times)).max() for k in SOFTER]
    depth = depths(model, found[0].q)
    clear = np.abs(depth[shown]).min(axis=1) > 1e-4
    numbers = {
        "deepest": float(depth.max()),
        "part of the time in contact": float((depth > 0).any(axis=1).mean()),
        "most balls in contact": int((depth > 0).sum(axis=1).max()),
        **{f"tip distance {name}": float(x.max()) for name, x in zip(list(METHODS)[1:], apart)},
        **{f"wall time {name}": motion.statistics.wall_time for name, motion in zip(METHODS, found)},
        "exponent at rest": slope(WALLS, static),
        "exponent of the motion": slope(SOFTER, moving),
        "force at rest": float(force[-1]),
        "mismatch of d/dq": float(derivative[0].max()),
        "mismatch of d/dq away from touch": float(derivative[0][clear].max()),
        "mismatch of d/dv": float(derivative[1].max()),
        **cost,
        "one by one [ms]": single,
        "numerical over exact": cost["numerical derivatives [ms]"] / cost["exact derivatives [ms]"],
        "one by one over exact": single / cost["exact derivatives [ms]"],
    }
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _draw_motion(model, times, found[0].q, tips[0], folder / "motion.png")
        _draw_numbers(times, apart, depth, part.t, derivative, (static, moving), folder / "numbers.png")
    return numbers


def one_by_one(model: ls.Model, motion: ls.Trajectory, count: int = 10) -> float:
    """Time of central differences of forward dynamics by q and v, one state after the other [ms]."""
    began = time.perf_counter()
    steps = 1e-5 * np.diag(model.dofs.scale)
    for t, q, v, u in list(zip(motion.t, motion.q, motion.v, motion.u))[:: max(1, len(motion.t) // count)][:count]:
        for d in (*steps, *-steps):
            ls.forward_dynamics(model, ls.integrate(model, q, d), v, u, t)
            ls.forward_dynamics(model, q, v + d, u, t)
    return 1e3 * (time.perf_counter() - began) / min(count, len(motion.t))


def softer(stiffness: float, duration: float, times: np.ndarray) -> np.ndarray:
    """Configurations of the motion with another wall."""
    model = robot(stiffness).build()
    return ls.simulate(model, duration, u=CDM["tensions"], t_eval=times, **METHODS["bdf"]).q


def _draw_motion(model: ls.Model, times: np.ndarray, q: np.ndarray, tip: np.ndarray, path: Path) -> None:
    """Snapshots in the pipe, and the tip's path seen from above."""
    import matplotlib.pyplot as plt

    shown = [int(np.argmin(np.abs(times - t))) for t in np.linspace(0.0, times[-1], 11)]
    turn = np.linspace(0.0, 2 * np.pi, 97)
    ring = RADIUS * np.array([np.cos(turn), np.sin(turn)])
    figure = plt.figure(figsize=(11, 7.0))
    space: Any = figure.add_axes((0.0, 0.0, 0.66, 0.92))
    ls.plot_shapes(model, q[shown], trail=tip, values=times[shown], value_label="time [s]", axes=space, title="",
                   view=(18.0, -55.0))  # fmt: skip
    top = figure.add_axes((0.715, 0.27, 0.275, 0.5))
    top.fill(*ring, facecolor="#eef2f5", edgecolor="#5a6b7a", linewidth=1.5)
    reach = RADIUS - balls(model)[1][-1]
    top.plot(*(reach / RADIUS * ring), "--", color="#5a6b7a", linewidth=0.8, label="tip's ball touches")
    top.plot(*tip[:, :2].T, color="#2456a6", linewidth=1.0, label="path of the tip")
    top.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title="seen from above")
    top.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, frameon=False, ncols=2)
    figure.suptitle("Soft manipulator pulled against the wall of a pipe", y=0.96)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_numbers(
    times: np.ndarray,
    apart: np.ndarray,
    depth: np.ndarray,
    states: np.ndarray,
    derivative: np.ndarray,
    laws: tuple[np.ndarray, list[float]],
    path: Path,
) -> None:
    """Distances of the tips, forces of the wall, mismatch of the derivatives, depth against stiffness."""
    import matplotlib.pyplot as plt

    figure, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    for name, x, color in zip(list(METHODS)[1:], apart, ("C1", "C4")):
        a.semilogy(times[1:], 1e6 * np.maximum(x[1:], 1e-12), color=color, label=f"{name.replace('_', '-')} and bdf")
    a.set(xlabel="t [s]", ylabel="distance [µm]", title="(a) distance of the tips")
    force = STIFFNESS * np.maximum(depth, 0.0) ** EXPONENT
    for k in np.flatnonzero(force.max(axis=0)):
        b.plot(times, force[:, k], linewidth=1.0, label=f"ball {k + 1} of {force.shape[1]}")
    b.set(xlabel="t [s]", ylabel="force [N]", title="(b) force of the wall on each ball")
    for x, word, color in zip(derivative, ("q", "v"), ("C0", "C5")):
        c.semilogy(states, np.maximum(x, 1e-18), color=color, label=f"with respect to {word}")
    c.set(xlabel="t [s]", ylabel="mismatch [-]", title="(c) exact and numerical derivatives of the acceleration")
    static, moving = laws
    d.loglog(WALLS, 1e3 * static, "o-", label="held at rest")
    d.loglog(SOFTER, 1e3 * np.array(moving), "s-", label="largest of the motion")
    law = 1e3 * static[0] * (WALLS / WALLS[0]) ** (-1 / EXPONENT)
    d.loglog(WALLS, law, "k:", label="slope −1/p")
    d.set(xlabel="stiffness k [N/m$^{1.5}$]", ylabel="depth [mm]", title="(d) depth in walls of all kinds")
    for axes in (a, b, c, d):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value:.3g}")
