"""A UR10e, a soft arm that tendons pull and a soft gripper in one tree, in three tasks (Pustina 2025, simulation 2).

The eight bodies are the six links of the UR10e (`examples/robots/ur10e.yaml`), a native rod of constant curvature with
elongation, and a hollow gripper that keeps the volume of every part: it stretches and widens towards its end, with the
modes of the paper's Table 5. First, until 3 s, the joints of the robot go from rest to rest along cubics by partial
feedback linearisation, while nothing drives the soft bodies. Then, until 5 s, a PD regulator that cancels gravity and
elasticity brings the arm to its shape by its tendons. Last, 2 MPa widen the gripper, without feedback. A law that
includes the forces of the tendons and of the pressure controls the joints all the time.

Choices that the paper leaves open: a gripper 10 cm long with radii of 2 and 3 cm, whose chamber fills it but for
the 1 cm next to the arm; the reference of the arm being bends about y and z and an elongation; gains of its regulator,
in these coordinates, of 1.5 N·m and 0.25 N·m·s for bends and of 3 kN/m and 12 N·s/m for the elongation.

The printed C of the arm, 0.17857 MPa, is E/(4 (1 + ν)) of E = 1 MPa and ν = 0.4. These are taken, with η as damping
time; `examples/free_arms.py` has the reasons. The kinematics of the gripper keeps its volume, so that C is half of its
shear modulus. Its η is twice a damping time, by the paper's equations of such bodies.

    python examples/hybrid_arm.py out/hybrid_arm
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

FILE = Path(__file__).parent / "robots" / "ur10e.yaml"
SOFT = runpy.run_path(str(Path(__file__).parent / "free_arms.py"))
SILICONE = SOFT["Reading"](2.0, 0.4, 1.0)
LENGTH, RADIUS, C, ETA, OFFSET = 0.3, 0.02, 0.17857e6, 0.1, 0.015
GRIPPER, OUTER, INNER, FLOOR = 0.1, 0.03, 0.02, 0.01  # length, radii, and where the chamber begins [m]
GRIPPER_C, GRIPPER_ETA, GRIPPER_DENSITY, PRESSURE = 22.2e6, 0.05, 960.0, 2e6
GOAL = np.array([np.pi / 2, -np.pi / 4, -np.pi / 4, -np.pi / 5, np.pi / 8, -np.pi / 2])
SHAPE = np.array([-np.pi / 2, np.pi / 4, -0.02])  # bends of the arm about y and z [rad], elongation [m]
JOINT_GAINS = 100.0, 10.0  # [1/s²] and [1/s]
SHAPE_GAINS = np.array([1.5, 1.5, 3000.0]), np.array([0.25, 0.25, 12.0])
ENDS = 3.0, 5.0, 6.0  # of the tasks [s]
OUTWARDS = np.array(((0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 1)))  # x along the axis of the flange
JOINTS, ARM, HAND = slice(0, 6), slice(6, 9), slice(9, 11)  # coordinates
Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


def gripper() -> ls.DeformableBody:
    """The hollow body with the modes of Table 5."""
    primitives = [ls.PrimitiveStretch([[0.0, 0.0, 1.0]]), ls.PrimitiveSource([[0.0, 0.0, 1.0]])]
    motion = ls.KinematicsVolumePreserving(GRIPPER, primitives)
    material = ls.HyperelasticNeoHookean(GRIPPER_C, damping_time=0.5 * GRIPPER_ETA)
    return ls.DeformableBody(motion, ls.DomainAnnulus(GRIPPER, OUTER, INNER), material, GRIPPER_DENSITY)


def with_gripper(robot: ls.Robot, parent: str | None, placement: np.ndarray) -> ls.Robot:
    """A robot with the gripper and its chamber, whose floor does not move and so does not count."""
    robot.add_link("gripper", gripper(), parent=parent, placement=placement)
    robot.add_body_chamber("air", "gripper", surface=ls.cylinder_surface(FLOOR, GRIPPER, INNER, along=17))
    return robot


def rod(reading: Any = SILICONE) -> ls.Rod:
    """The arm, bending about y and z and stretching, by one way to read C and η."""
    motion = ls.KinematicsStrain.constant_curvature(LENGTH, elongation=True)
    return SOFT["slender"](motion, (RADIUS, RADIUS), C, ETA, native=True, reading=reading)


def with_tendons(robot: ls.Robot) -> ls.Robot:
    """A robot whose link `arm` gets its three tendons."""
    for k in range(3):
        angle = 2.0 * np.pi * k / 3.0
        robot.add_tendon(f"tendon {k + 1}", "arm", (OFFSET * np.cos(angle), OFFSET * np.sin(angle)))
    return robot


def build(*, driven: bool = True) -> ls.Model:
    """The robot; not `driven`, with its motors alone."""
    robot = ls.load_robot(FILE)
    robot.add_link("arm", rod(), parent="wrist_3", placement=robot.frames["flange"].placement @ OUTWARDS)
    if not driven:
        robot.add_link("gripper", gripper(), parent="arm")
        return robot.build()
    return with_gripper(with_tendons(robot), "arm", np.eye(4)).build()


def path(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cubic of the joints from rest to rest, its velocity and acceleration."""
    s, T = min(t / ENDS[0], 1.0), ENDS[0]
    moving = float(t < T)
    return GOAL * s**2 * (3 - 2 * s), GOAL * 6 * s * (1 - s) / T, moving * GOAL * 6 * (1 - 2 * s) / T**2


def shape(q: np.ndarray) -> np.ndarray:
    """Bends of the arm [rad] and its elongation [m]."""
    return LENGTH * q[..., ARM]


def tensions(model: ls.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u = A⁻¹ (K_P (q_f − q) − K_D q̇ + g + s), in coordinates of the model: forces there are L times as large."""
    A = ls.actuation_matrix(model, q)[ARM, 6:9]
    zero = np.zeros(model.nv)
    held = ls.inverse_dynamics(model, q, zero, zero)[ARM]
    driven = SHAPE_GAINS[0] * (SHAPE - shape(q)) - SHAPE_GAINS[1] * LENGTH * v[ARM]
    return np.linalg.solve(A, LENGTH * driven + held)


def torques(model: ls.Model, t: float, q: np.ndarray, v: np.ndarray, soft: np.ndarray) -> np.ndarray:
    """Those of the joints that make their errors obey ë + K_D ė + K_P e = 0, with what tendons and air do, (4,)."""
    own, B = ls.mass_inverse_dynamics(model, q, v), ls.actuation_matrix(model, q)
    wanted, rate, acceleration = path(t)
    w = acceleration + JOINT_GAINS[1] * (rate - v[JOINTS]) + JOINT_GAINS[0] * (wanted - q[JOINTS])
    answers = np.linalg.solve(own.mass, np.column_stack([B[:, 6:] @ soft - own.bias, B[:, :6]]))[JOINTS]
    return np.linalg.solve(answers[:, 1:], w - answers[:, 0])


def laws(model: ls.Model) -> list[Law]:
    """Of the three tasks."""

    def law(is_pulled: bool, pressure: float) -> Law:
        def output(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            soft = np.array([*(tensions(model, q, v) if is_pulled else np.zeros(3)), pressure])
            return np.concatenate([torques(model, t, q, v, soft), soft])

        return output

    return [law(False, 0.0), law(True, 0.0), law(True, PRESSURE)]


def perform(model: ls.Model, q0: np.ndarray | None = None) -> list[ls.Trajectory]:
    """The motions of the three tasks, each from the end of the one before and with times from its own start."""
    motions, start = [], 0.0
    q, v = (model.neutral() if q0 is None else q0), np.zeros(model.nv)
    for law, end in zip(laws(model), ENDS):

        def later(t: float, q: np.ndarray, v: np.ndarray, law: Law = law, start: float = start) -> np.ndarray:
            return law(start + t, q, v)

        times = np.linspace(0.0, end - start, round(50 * (end - start)) + 1)
        motion = ls.simulate(model, end - start, q, v, controller=later, t_eval=times, rtol=1e-6, atol=1e-8)
        motions.append(motion)
        q, v, start = motion.q[-1], motion.v[-1], end
    return motions


def compare() -> dict[str, float]:
    """The largest tension that holds the shape of the arm against its elasticity alone [N], by each way to read C and
    η."""
    found, still = {}, np.zeros(3)
    for text, reading in {"E = 5.6 C, η": SILICONE, **SOFT["READINGS"]}.items():
        robot = ls.Robot("arm", gravity=(0.0, 0.0, 0.0))
        robot.add_link("arm", rod(reading))
        model, q = with_tendons(robot).build(), SHAPE / LENGTH
        force = ls.inverse_dynamics(model, q, still, still)
        found[text] = float(np.linalg.solve(ls.actuation_matrix(model, q), force).max())
    return found


def inflated(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """The coordinates of the gripper under the pressure, by statics, held where the tip of the arm is in q."""
    alone = with_gripper(ls.Robot("gripper"), None, ls.frame_pose(model, q, "arm")).build()
    return ls.solve_statics(alone, [PRESSURE]).q


def main(out: str | Path | None = None) -> dict[str, float]:
    """Errors of each task; pictures in `out`."""
    model = build()
    motions = perform(model)
    q = [motion.q[-1] for motion in motions]
    rest = inflated(model, q[2])
    missed = shape(q[1]) - SHAPE
    found = {
        "joints at the end of (i), largest error [rad]": float(np.abs(q[0][JOINTS] - GOAL).max()),
        "arm at the end of (ii), largest error of a bend [rad]": float(np.abs(missed[:2]).max()),
        "of the elongation [mm]": 1e3 * float(abs(missed[2])),
        "joints at the end of (iii), largest error [rad]": float(np.abs(q[2][JOINTS] - GOAL).max()),
        "gripper at the end of (iii), stretch at its end": float(q[2][9]),
        "by statics": float(rest[0]),
        "growth of its squared radii at its end [mm²]": 1e6 * float(q[2][10]),
        "by statics [mm²]": 1e6 * float(rest[1]),
        "largest bend of the arm in (i) [rad]": float(np.abs(shape(motions[0].q)[:, :2]).max()),
        "least tension in (ii) and (iii) [N]": float(min(motion.u[:, 6:9].min() for motion in motions[1:])),
        "largest tension [N]": float(max(motion.u[:, 6:9].max() for motion in motions)),
        "largest torque [N·m]": float(max(np.abs(motion.u[:, JOINTS]).max() for motion in motions)),
    }
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _plot(model, motions, Path(out))
    return found


def _plot(model: ls.Model, motions: list[ls.Trajectory], folder: Path) -> None:
    from matplotlib.figure import Figure

    starts = (0.0, *ENDS[:2])
    t = np.concatenate([start + motion.t for start, motion in zip(starts, motions)])
    q, u = (np.concatenate([getattr(motion, name) for motion in motions]) for name in ("q", "u"))
    shown = np.searchsorted(t, (0.0, 1.5, 3.0, 3.4, 5.0))
    curves = [ls.frame_pose(model, q, name)[:, :3, 3] for name in ("wrist_3", "arm", "gripper")]  # figure 10
    ls.plot_shapes(model, q[shown], trail=curves, values=t[shown], value_label="time [s]", view=(18, -50),
                   title="hybrid arm", path=folder / "shapes.png")  # fmt: skip
    figure = Figure(figsize=(9, 9), layout="constrained")
    rows = figure.subplots(3, 2, sharex=True)
    goals = np.array([path(time)[0] for time in t])
    soft = shape(q) * (1.0, 1.0, 10.0), q[:, HAND] * (1.0, 1e4)
    parts = (q[:, JOINTS], *soft, u[:, JOINTS], u[:, 6:9], 1e-6 * u[:, 9:])
    words = ("joints [rad]", "arm: bends [rad], elongation [dm]", "gripper: stretch, growth of squared radii [cm²]",
             "torques [N·m]", "tensions [N]", "pressure [MPa]")  # fmt: skip
    for axes, part, title in zip(rows.T.ravel(), parts, words):
        axes.plot(t, part)
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(alpha=0.3)
    rows[0, 0].plot(t, goals, "k:", linewidth=0.8)
    for goal in SHAPE * (1.0, 1.0, 10.0):
        rows[1, 0].plot(ENDS[:2], (goal, goal), "k:", linewidth=0.8)
    for axes in rows[-1]:
        axes.set(xlabel="t [s]", xlim=(0, t[-1]))
    figure.savefig(folder / "motion.png", dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
    for key, number in compare().items():
        print(f"{key}: the shape takes {number:.4g} N")
