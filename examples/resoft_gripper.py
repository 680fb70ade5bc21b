"""A gripper of three soft fingers that picks a ball up (after the ReSoft gripper, SoRoSim 2022 §6, figure 18).

Three tapered silicone fingers hang from a palm, 120° apart. A tendon on the inner side of each bends it inwards, and
one motor pulls all three alike. They close around a ball that stands on a table, a little away from the middle; then
the table is lowered. Pulled with 2.5 N, the tension of the paper's figure, the ball stays; with 1.5 N it follows the
table down.

The paper shows equilibria of a gripper that holds nothing and gives no sizes; the sizes, the silicone, the ball and its
contacts are ours. A finger's balls stand at its Gauss points, at its ends and once in between, as thick as the finger,
and touch a sphere fixed to the ball. Stiffness 1e4 N/m^1.5 lets what carries 0.1 N sink in by 0.5 mm, as soft fingers
do; the damping c = 10 s/m takes 0.4 of the speed from a touch at 0.1 m/s. What friction holds creeps at a part of
the slip speed: 1e-4 m/s for five seconds would be half a millimetre, and as the ball asks for less than 0.7 of the
friction there is, it creeps by less.

    python examples/resoft_gripper.py out/resoft_gripper
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import lissom as ls

FINGERS = "finger 1", "finger 2", "finger 3"
LENGTH, THICK = 0.11, (0.009, 0.006)  # of a finger: length, radius at base and tip [m]
PALM, BALL = 0.04, 0.03  # radii: of the circle that the fingers stand on, of the ball [m]
DEPTH, ASIDE = 0.087, (0.004, 0.002)  # of the ball's centre below the palm and from the middle [m]
SILICONE = ls.Material(young=1e6, poisson=0.5, density=1100, viscosity=3e3)
DENSITY = 300.0  # of the ball [kg/m³]
GRAVITY = 9.81
CONTACT = {"stiffness": 1e4, "exponent": 1.5, "damping": 10.0, "friction": 0.8, "slip_speed": 1e-4}
CLOSED, LOWER, LOWERED, SETTLED, END = 1.0, 1.2, 1.8, 2.0, 7.0  # [s]
DROP = 0.2  # how far the table goes down [m]
FIRM, LOOSE = 2.5, 1.5  # tensions [N]
SHOWN, LOST = (0.0, 1.1, 7.0), 1.5  # moments drawn, of the firm and of the loose grasp [s]


def smooth(t: float, start: float, stop: float) -> float:
    """From 0 at `start` to 1 at `stop`, with two smooth derivatives."""
    x = min(max((t - start) / (stop - start), 0.0), 1.0)
    return x * x * x * (10.0 - 15.0 * x + 6.0 * x * x)


def table_height(t: float) -> float:
    """Displacement of the table [m]."""
    return -DROP * smooth(t, LOWER, LOWERED)


def finger_frame(k: int) -> np.ndarray:
    """Pose of the base of finger k: x down along the finger, y inwards."""
    angle = 2 * np.pi * k / 3
    inwards = -np.array([np.cos(angle), np.sin(angle), 0.0])
    down = np.array([0.0, 0.0, -1.0])
    g = np.eye(4)
    g[:3, :4] = np.column_stack([down, inwards, np.cross(down, inwards), -PALM * inwards])
    return g


def at_height(z: float) -> np.ndarray:
    """4x4 of a displacement upwards."""
    g = np.eye(4)
    g[2, 3] = z
    return g


def robot() -> ls.Robot:
    """Palm, fingers, ball and table; one input."""
    made = ls.Robot("ReSoft gripper", gravity=(0, 0, -GRAVITY))
    upright = np.eye(4)
    upright[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    upright[2, 3] = 0.006
    made.add_link("palm", ls.RigidBody.cylinder(0.012, PALM + 0.012, density=1200), placement=upright)
    basis = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=4)
    finger = ls.Rod(LENGTH, ls.SectionCircle(THICK), basis, SILICONE, gauss_points=7)
    for k, name in enumerate(FINGERS):
        made.add_link(name, finger, parent="palm", placement=np.linalg.inv(upright) @ finger_frame(k))
        made.add_tendon(f"tendon {k + 1}", name, offset=lambda s: (0.8 * (THICK[0] + s * (THICK[1] - THICK[0])), 0.0))
    made.couple_inputs("motor", {f"tendon {k}": 1.0 for k in (1, 2, 3)})
    made.add_link("ball", ls.RigidBody.sphere(BALL, density=DENSITY), ls.JointFree())
    board = ls.RigidBody.box(0.12, 0.12, 0.006, density=500)
    made.add_link("table", board, ls.JointPrismatic((0, 0, 1)), placement=at_height(-DEPTH - BALL - 0.003))
    made.add_joint_motion("lift", "table", position=table_height)
    made.add_contact("grasp", FINGERS, ls.ShapeSphere(BALL), on="ball", per_interval=2, **CONTACT)
    made.add_contact(
        "ceiling", "ball", ls.ShapePlane((0, 0, -1)), on="palm", placement=np.linalg.inv(upright), **CONTACT
    )
    made.add_contact("stand", "ball", ls.ShapePlane(), on="table", placement=at_height(0.003), **CONTACT)
    return made


def start(model: ls.Model) -> np.ndarray:
    """Straight fingers, the ball on the table as deep as its weight presses it."""
    q, at = model.neutral(), ball_rows(model)[0]
    depth = (weight() / CONTACT["stiffness"]) ** (1 / CONTACT["exponent"])
    q[at + 4 : at + 7] = *ASIDE, -DEPTH - depth
    return q


def ball_rows(model: ls.Model) -> tuple[int, int]:
    """Where the ball's coordinates begin in q and in v."""
    return model.nq - 8, model.nv - 7


def weight() -> float:
    """Of the ball [N]."""
    return DENSITY * 4 / 3 * np.pi * BALL**3 * GRAVITY


@dataclass(frozen=True)
class Grasp:
    """A motion: its times, tension [N], place of the ball (n, 3) [m], force of all contacts on it (n, 3) [N]."""

    tension: float
    motion: ls.Trajectory
    place: np.ndarray
    force: np.ndarray

    @property
    def fall(self) -> float:
        """How far the ball goes down [m]."""
        return float(self.place[0, 2] - self.place[:, 2].min())

    @property
    def still(self) -> np.ndarray:
        """Which times are those of a settled grasp, shape (n,)."""
        return self.motion.t >= SETTLED

    @property
    def creep(self) -> float:
        """How far the ball moves from where it has settled [m]."""
        return float(np.linalg.norm(self.place[self.still] - self.place[self.still][0], axis=1).max())

    @property
    def carried(self) -> np.ndarray:
        """Force over weight once settled, shape (m, 3)."""
        return self.force[self.still] / weight()


def contact_force(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """Force of all contacts on the ball in the world (n, 3) [N], what loads do in the rows of its joint."""
    at = ball_rows(model)[1]
    rows = []
    for t, q, v, a in zip(motion.t, motion.q, motion.v, motion.a):
        bare, loaded = (ls.inverse_dynamics(model, q, v, a, loads=loads, t=t) for loads in (False, True))
        rows.append(bare[at + 3 : at + 6] - loaded[at + 3 : at + 6])
    R = ls.frame_pose(model, motion.q, "ball")[:, :3, :3]
    return np.einsum("tij,tj->ti", R, np.array(rows))


def grasp(model: ls.Model, tension: float, end: float = END, rate: float = 50.0) -> Grasp:
    """Close with a tension, lower the table, wait."""
    times = np.linspace(0.0, end, round(rate * end) + 1)

    def pulled(t: float) -> np.ndarray:
        return np.array([tension * smooth(t, 0.0, CLOSED)])

    motion = ls.simulate(model, end, start(model), u=pulled, t_eval=times, rtol=1e-5, atol=1e-8)
    place = ls.frame_pose(model, motion.q, "ball")[:, :3, 3]
    return Grasp(tension, motion, place, contact_force(model, motion))


def main(out: str | Path | None = None) -> dict[str, float]:
    """The numbers of both grasps; two pictures go to the folder `out`."""
    model = robot().build()
    firm, loose = (grasp(model, tension) for tension in (FIRM, LOOSE))
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _draw_shapes(model, firm, loose, folder / "grasp.png")
        _draw_numbers((firm, loose), folder / "numbers.png")
    return {
        "creep of a firm grasp": firm.creep,
        "fall from a firm grasp": firm.fall,
        "missing of the weight": float(np.abs(firm.carried - [0.0, 0.0, 1.0]).max()),
        "fall from a loose grasp": loose.fall,
        "diameter": 2 * BALL,
        "wall time firm": firm.motion.statistics.wall_time,
        "wall time loose": loose.motion.statistics.wall_time,
    }


def _draw_shapes(model: ls.Model, firm: Grasp, loose: Grasp, path: Path) -> None:
    """The firm grasp at three moments, and the loose one while it loses the ball."""
    import matplotlib.pyplot as plt

    lowest = np.tile([0.0, 0.0, -0.14], (2, 1))
    titles = "open", "closed", f"held by {FIRM:g} N", f"lost by {LOOSE:g} N"
    rows = [(firm, t) for t in SHOWN] + [(loose, LOST)]
    figure = plt.figure(figsize=(14, 4.8))
    for k, ((found, t), title) in enumerate(zip(rows, titles)):
        axes = figure.add_axes((0.25 * k, 0.0, 0.25, 0.88))
        q = found.motion.q[np.argmin(np.abs(found.motion.t - t))]
        links = ["palm", *FINGERS, "ball"] + (["table"] if t < LOWER else [])
        ls.plot_shapes(model, q, links=links, trail=lowest, axes=axes, title="", view=(8.0, -75.0), obstacles=False)
        figure.text(0.25 * k + 0.125, 0.9, f"{title}, t = {t:g} s", ha="center", fontsize=12)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_numbers(grasps: tuple[Grasp, Grasp], path: Path) -> None:
    """Height of the ball, force on it, and how it creeps."""
    import matplotlib.pyplot as plt

    figure, (a, b, c) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    for found, color in zip(grasps, ("C0", "C3")):
        t, name = found.motion.t, f"{found.tension:g} N"
        a.plot(t, 1e3 * found.place[:, 2], color=color, label=f"ball, {name}")
        b.plot(t, found.force[:, 2] / weight(), color=color, label=name)
    firm = grasps[0]
    a.plot(firm.motion.t, [1e3 * (table_height(t) - DEPTH) for t in firm.motion.t], "k:", label="ball on the table")
    a.set(ylabel="height of its centre [mm]", title="(a) the ball")
    b.set(ylabel="force over weight [-]", title="(b) upward force of all contacts on the ball")
    way = firm.place[firm.still] - firm.place[firm.still][0]
    for k, color in enumerate(("C3", "C2", "C0")):
        c.plot(firm.motion.t[firm.still], 1e3 * way[:, k], color=color, label="xyz"[k])
    c.set(ylabel="displacement [mm]", title=f"(c) creep of the settled ball, {firm.tension:g} N")
    for axes in (a, b, c):
        axes.set_xlabel("t [s]")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value:.3g}")
