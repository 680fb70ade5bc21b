"""A soft arm reaches behind a post by leaning on it, under model predictive control that knows the post.

The arm hangs, a tapered rod of silicone with three tendons of 0 to 40 N. Its tip is to come to a place behind a post,
where the arm alone cannot bring it: pulled in by its tendons it curls up too high. Leaning on the post, as on a finger,
it bends lower. The post pushes back by a penalty on depth, without friction, on each point of the rod that carries a
ball.

Model predictive control looks 20 steps of 20 ms ahead and samples as often. The same law with a model of the arm
without the post serves as comparison: it knows nothing of what bends the arm, and stays away from the goal. The steps
are long for an arm that meets a post: where Newton's method jumps from side to side of the post's surface, damping
finds the step, and its derivatives are exact.

    python examples/reach_behind.py out/reach_behind
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import lissom as ls

LENGTH, RADII, OFFSETS = 0.4, (0.015, 0.008), (0.012, 0.006)  # of the arm and its tendons, base and tip [m]
SILICONE = ls.Material(young=1e6, poisson=0.5, density=1000.0, viscosity=2e4)
POST, RADIUS, STIFFNESS = (0.07, 0.0, -0.2), 0.025, 3e4  # where it stands [m], its radius [m] and law [N/m^1.5]
GOAL = np.array([0.1, 0.06, -0.16])  # [m]
LOW, HIGH = 0.0, 40.0  # tensions [N]
PERIOD, AHEAD = 0.02, 20  # [s], steps
LAWS = "knows the post", "does not"


def build(post: bool = True) -> ls.Model:
    """The hanging arm, beside the post or alone; section axes y and z are the world's y and x."""
    robot = ls.Robot("leaning arm")
    down, place = np.eye(4), np.eye(4)
    down[:3, :3] = np.transpose([(0, 0, -1), (0, 1, 0), (1, 0, 0)])
    basis = ls.BasisLegendre(bending_y=3, bending_z=3)
    arm = ls.Rod(LENGTH, ls.SectionCircle(RADII), basis, SILICONE, gauss_points=10)
    robot.add_link("arm", arm, placement=down)
    for k, angle in enumerate(np.radians((0.0, 120.0, 240.0))):
        side = np.array([np.sin(angle), np.cos(angle)])
        robot.add_tendon(
            f"tendon {k}", "arm", lambda s, side=side: tuple(side * (OFFSETS[0] * (1 - s) + OFFSETS[1] * s))
        )
    if post:
        place[:3, 3] = POST
        shape = ls.ShapeCylinder(RADIUS, axis=(0, 1, 0))
        robot.add_contact("post", "arm", shape, placement=place, stiffness=STIFFNESS, damping=1.0)
    return robot.build()


def law(model: ls.Model) -> ls.ModelPredictiveControl:
    """Model predictive control of the tip, by a model of the arm."""
    cost = ls.TrackingCost(model, inputs=1e-4, state=1e-4, points={"arm": 1e4}, point_reference=[GOAL], end=0.1)
    return ls.ModelPredictiveControl(model, cost, dt=PERIOD, steps=AHEAD, limits=(LOW, HIGH), iterations=2)


def alone(model: ls.Model) -> float:
    """Least distance from the goal that equilibria of an arm have, tensions within their limits [m]."""
    nearest = ls.inverse_kinematics(model, {"arm": GOAL}, by="statics", limits=(LOW, HIGH))
    return float(np.linalg.norm(ls.frame_pose(model, nearest.q, "arm")[:3, 3] - GOAL))


def main(out: str | Path | None = None, duration: float = 1.2) -> dict[str, float]:
    """The end of the tip under each law, and the force on the post; a picture in `out`."""
    models = dict(zip(LAWS, (build(), build(post=False))))
    model = models[LAWS[0]]
    found, motions = {"nearest to the goal without the post [m]": alone(models[LAWS[1]])}, {}
    rest, times = ls.solve_statics(model).q, np.linspace(0.0, duration, round(4 * duration / PERIOD) + 1)
    for name, known in models.items():
        control, begin = law(known).controller(PERIOD), time.perf_counter()
        motion = ls.simulate(model, duration, rest, controller=control, period=PERIOD, t_eval=times)
        taken = time.perf_counter() - begin
        away = np.linalg.norm(ls.frame_pose(model, motion.q, "arm")[:, :3, 3] - GOAL, axis=1)
        touch = [ls.contact_forces(model, q) for q in motion.q]
        found |= {
            f"{name}: distance at the end [m]": float(away[-1]),
            f"{name}: largest distance of the last 0.6 s [m]": float(away[times > duration - 0.6].max()),
            f"{name}: push of the post at the end [N]": float(np.linalg.norm(touch[-1].force.sum(axis=0))),
            f"{name}: part of the time in contact [-]": float(np.mean([len(one.contact) > 0 for one in touch])),
            f"{name}: least tension [N]": float(motion.u.min()),
            f"{name}: largest tension [N]": float(motion.u.max()),
            f"{name}: time of the motion [s]": taken,
        }
        motions[name] = (motion, away)
    if out is not None:
        _plot(model, motions, Path(out))
    return found


def _plot(model: ls.Model, motions: dict[str, tuple[ls.Trajectory, np.ndarray]], folder: Path) -> None:
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    plane, error, pull = figure.subplots(1, 3)
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    plane.fill(POST[0] + RADIUS * np.cos(angle), POST[2] + RADIUS * np.sin(angle), color="0.8")
    plane.plot(GOAL[0], GOAL[2], "k+")
    for (name, (motion, away)), color in zip(motions.items(), ("C0", "C1")):
        line = ls.frame_pose(model, motion.q[-1], "arm", np.linspace(0.0, 1.0, 60))[:, :3, 3]
        plane.plot(line[:, 0], line[:, 2], color=color, label=name)
        error.semilogy(motion.t, 1e3 * away, color=color)
    plane.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="at the end")
    plane.legend(frameon=False)
    error.set(xlabel="t [s]", ylabel="distance of the tip from its goal [mm]")
    motion = motions[LAWS[0]][0]
    pull.plot(motion.t, motion.u)
    pull.set(xlabel="t [s]", ylabel="tension [N]", title=LAWS[0])
    figure.savefig(folder / "reach_behind.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
