"""An underactuated linkage: a driven rigid arm with a soft link that swings from a ball (SoRoSim 2022, figure 17).

A motor turns the arm at π rad/s for 1.5 s. The soft link hangs from the arm's end by a spherical joint that nothing
drives, and has 4 modes: linear bending about both axes of its section.

The paper gives the rate, the time, the joints and the number of modes; the rest is ours. The arm is a square bar of
25 cm, 2 cm thick, of 0.2 kg; the soft link is 50 cm long, 1 cm in radius, of silicone with E = 0.1 MPa, ν = 0.5,
1000 kg/m³ and a viscosity of 1 kPa·s. The axis of the motor leans by 30° from the vertical, so that the motor lifts
and lowers the linkage and swings it sideways too. It starts with the soft link straight down, the whole turning about
the axis as one body, for the joint coordinates other than the angle are at rest.

Four checks. The work of the motor equals the gain of the energies plus the work lost to damping. The impulse of the
motor plus that of gravity equals the gain of the angular momentum about the axis; both are integrals over time. At
every instant inverse dynamics of the soft link alone, with the same motion, gives the wrench at its end: a force
without a moment, for the ball carries none. If the two links were welded, there would be a moment, which is printed
beside it. That force and the weight of the arm give the torque of the motor.

    python examples/underactuated_linkage.py out/underactuated_linkage
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.spatial.transform import Rotation

import lissom as ls

RATE, DURATION = np.pi, 1.5  # of the motor [rad/s], of the motion [s]
ARM, WIDTH, MASS = 0.25, 0.02, 0.2  # length and thickness [m], mass [kg]
LEAN = np.radians(30.0)  # of the axis, from the vertical
GRAVITY = np.array([0.0, 0.0, -9.81])
SAMPLES = 1501  # times at which the motion is looked at
MODES = 4  # of the soft link, the last coordinates
SOFT = ls.Rod(
    0.5,
    ls.SectionCircle(0.01),
    ls.BasisLegendre(bending_y=1, bending_z=1),
    ls.Material(young=1e5, poisson=0.5, density=1000.0, viscosity=1e3),
)


def turned(columns: Any, position: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    """4x4 from the axes of a frame and its origin."""
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = np.transpose(columns), position
    return g


BASE = turned([(np.cos(LEAN), 0.0, -np.sin(LEAN)), (0.0, 1.0, 0.0), (np.sin(LEAN), 0.0, np.cos(LEAN))])
DOWN = turned([(0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)])


def robot(joint: ls.JointSpherical | ls.JointFixed | None = None) -> ls.Robot:
    """The linkage; its neutral configuration is the start."""
    made = ls.Robot("underactuated linkage", gravity=tuple(GRAVITY))
    moments = MASS / 12 * np.array([2 * WIDTH**2, ARM**2 + WIDTH**2, ARM**2 + WIDTH**2])
    bar = ls.RigidBody(MASS, (ARM / 2, 0.0, 0.0), moments, outline=(ARM / 2, WIDTH / 2, WIDTH / 2))
    made.add_link("arm", bar, ls.JointRevolute(axis=(0, 0, 1)), placement=BASE)
    hung = turned((BASE[:3, :3].T @ DOWN[:3, :3]).T, (ARM, 0.0, 0.0))
    made.add_link("soft link", SOFT, ls.JointSpherical() if joint is None else joint, "arm", placement=hung)
    made.add_joint_motion(
        "motor", "arm", position=lambda t: RATE * t, velocity=lambda t: RATE, acceleration=lambda t: 0.0
    )
    return made


def move(model: ls.Model, every: int = 1, **options: Any) -> ls.Trajectory:
    """The motion, at every so many of the common times."""
    return ls.simulate(model, DURATION, t_eval=np.linspace(0.0, DURATION, SAMPLES)[::every], **options)


def tip(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """Path of the soft link's end, shape (n, 3) [m]."""
    return ls.frame_pose(model, motion.q, "soft link")[:, :3, 3]


def impulse_mismatch(model: ls.Model, motion: ls.Trajectory) -> float:
    """What ∫ (τ − ∂V/∂θ) dt misses of the gain of angular momentum about the axis, (M v)_θ, over its range."""
    still = np.zeros_like(motion.v)
    momentum = np.einsum("tj,tj->t", ls.mass_matrix(model, motion.q)[:, 0], motion.v)
    weight = ls.inverse_dynamics(model, motion.q, still, still)[:, 0]
    impulse = cumulative_simpson(motion.multipliers[:, 0] - weight, x=motion.t, initial=0.0)
    return float(np.abs(momentum - momentum[0] - impulse).max() / np.ptp(momentum))


def held_wrench(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """Wrench on the soft link's base in its own axes, shape (n, 6), from the link alone, moved as in the linkage."""
    alone = ls.Robot("soft link alone", gravity=tuple(GRAVITY))
    alone.add_link("soft link", SOFT, ls.JointFree())
    cut, q, v, a = alone.build(), motion.q, motion.v, motion.a
    g = ls.frame_pose(model, q, "soft link", s=0.0)
    quaternion = np.roll(Rotation.from_matrix(g[:, :3, :3]).as_quat(), 1, axis=1)  # w first
    start = np.hstack([quaternion, g[:, :3, 3], q[:, -MODES:]])
    speed = np.hstack([ls.frame_twist(model, q, v, "soft link", s=0.0), v[:, -MODES:]])
    rate = np.hstack([ls.frame_acceleration(model, q, v, a, "soft link", s=0.0), a[:, -MODES:]])
    return ls.inverse_dynamics(cut, start, speed, rate)[:, :6]


def motor_torque(model: ls.Model, motion: ls.Trajectory, wrench: np.ndarray) -> np.ndarray:
    """Torque about the axis that the arm needs, at a constant rate, to carry a wrench at its end and its own weight."""
    g = ls.frame_pose(model, motion.q, "soft link", s=0.0)
    R, end = g[:, :3, :3], g[:, :3, 3]
    moment, force = (np.einsum("tij,tj->ti", R, x) for x in (wrench[:, :3], wrench[:, 3:]))
    return (moment + np.cross(end, force) - np.cross(end / 2, MASS * GRAVITY)) @ BASE[:3, 2]


def largest(rows: np.ndarray) -> float:
    """Of the lengths of rows."""
    return float(np.linalg.norm(rows, axis=-1).max())


def study() -> tuple[dict[str, float], ls.Model, ls.Trajectory]:
    """Numbers of the motion and of its checks, the model and the motion."""
    model, welded = robot().build(), robot(ls.JointFixed()).build()
    motion = move(model, rtol=1e-8, atol=1e-10)
    wrench, balance = held_wrench(model, motion), ls.energy_balance(model, motion)
    weld = held_wrench(welded, move(welded, rtol=1e-8, atol=1e-10))
    tangents = ls.frame_pose(model, motion.q, "soft link", s=np.array([0.0, 1.0]))[..., :3, 0]
    cosine = np.einsum("ti,ti->t", tangents[:, 0], tangents[:, 1])
    force = ls.inverse_dynamics(model, motion.q, motion.v, motion.a)[:, 1:4]
    torque = motion.multipliers[:, 0]
    numbers = {
        "modes of the soft link": model.nv - 4,
        "largest bend of the soft link [deg]": float(np.degrees(np.arccos(cosine.min()))),
        "work of the motor [J]": float(balance.work[-1]),
        "dissipated [J]": float(balance.dissipated[-1]),
        "least torque [N·m]": float(torque.min()),
        "largest torque [N·m]": float(torque.max()),
        "largest force in the ball [N]": largest(wrench[:, 3:]),
        "largest moment in the ball [N·m]": largest(wrench[:, :3]),
        "largest force along its coordinates [N·m]": largest(force),
        "largest moment in a weld [N·m]": largest(weld[:, :3]),
        "torque against the cut [N·m]": float(np.abs(motor_torque(model, motion, wrench) - torque).max()),
        "angular impulse mismatch": impulse_mismatch(model, motion),
    }
    return numbers, model, motion


def accuracy(model: ls.Model, motion: ls.Trajectory) -> dict[str, float]:
    """Errors of the energy balance for each tolerance, and errors of generalised-α for each step."""
    numbers = {}
    for digits in (4, 6, 8):
        found = move(model, rtol=10.0**-digits, atol=10.0 ** (-digits - 2))
        numbers[f"energy balance at rtol 1e-{digits}"] = ls.energy_balance(model, found).residual
    for steps in (300, 600, 1200):
        found = move(model, 5, method="generalized_alpha", dt=DURATION / steps)
        numbers[f"tips apart, {steps} steps [m]"] = largest(tip(model, found) - tip(model, motion)[::5])
    return numbers


def main(out: str | Path | None = None) -> dict[str, float]:
    """The numbers of the motion and of its checks; the figure goes to the folder `out`."""
    numbers, model, motion = study()
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _plot(model, motion, folder / "underactuated_linkage.png")
    return numbers | accuracy(model, motion)


def _plot(model: ls.Model, motion: ls.Trajectory, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14, 7.5), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1))
    axes = parts[0].add_subplot()
    shown = np.linspace(0, SAMPLES - 1, 11).astype(int)
    ls.plot_shapes(model, motion.q[shown], trail=tip(model, motion), values=motion.t[shown], value_label="time [s]",
                   title="every 0.15 s, and the path of the tip", axes=axes)  # fmt: skip
    balance = ls.energy_balance(model, motion)
    gained = {word: value - value[0] for word, value in vars(balance).items() if np.ndim(value)}
    panels = parts[1].subplots(3, 1, sharex=True)
    panels[0].plot(motion.t, motion.multipliers[:, 0], "C3")
    panels[0].set(title="torque of the motor", ylabel="[N·m]")
    for panel, words, scale in ((panels[1], ("work", "kinetic", "gravitational"), 1.0),
                                (panels[2], ("elastic", "dissipated"), 1e3)):  # fmt: skip
        for word in words:
            panel.plot(motion.t, scale * gained[word], label=word)
        panel.legend(fontsize=8, loc="upper left")
    panels[1].set(title="work and energies since the start", ylabel="[J]")
    panels[2].set(title="the small ones", ylabel="[mJ]", xlabel="t [s]")
    for panel in panels:
        panel.grid(alpha=0.3)
        panel.set_xlim(0.0, DURATION)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    for name, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {number:.4g}")
