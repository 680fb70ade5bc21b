"""Three closed mechanisms of rigid bodies: a four-bar, a slider-crank and a Stewart platform.

The crank of the four-bar turns at a prescribed speed; the multiplier of the prescribed motion is the torque it needs,
compared with the rate of energy of the closed-form motion. The slider-crank is driven by a torque against friction; its
crank obeys one equation, I(θ) θ̈ + ½ I'(θ) θ̇² + V'(θ) = torque, solved by SciPy. The legs of the Stewart platform
follow lengths from its inverse kinematics, |p + R a − b|; the platform then follows the motion they were made for,
and at rest the legs carry its weight.

Each mechanism is assembled from a start that is open, with its pin or its balls apart. A planar chain closed by a hinge
in space is redundant, which is meant: the forces in its loop are those of least norm.

    python examples/mechanisms.py out/mechanisms
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import lissom as ls

G = 9.81
ACCURATE: dict[str, Any] = {"method": "bdf", "rtol": 1e-9, "atol": 1e-11}

# Four-bar: lengths of crank, coupler, rocker, and distance of the pivots [m]; masses [kg]; speed [rad/s]
CRANK, COUPLER, ROCKER, GROUND = 0.1, 0.25, 0.2, 0.25
BAR_MASSES = 0.2, 0.5, 0.4
SPEED = 2 * np.pi

# Slider-crank: crank and rod [m], masses of crank, rod and slider [kg], torque [N·m], friction at the crank [N·m·s]
ARM, ROD = 0.1, 0.3
ARM_MASS, ROD_MASS, SLIDER_MASS = 0.5, 0.3, 0.4
TORQUE, FRICTION = 1.0, 0.05

# Stewart platform: radii and half-angles of the pairs of joints, height and half-lengths of the legs' parts [m, rad]
BASE_RADIUS, TOP_RADIUS, HEIGHT = 0.5, 0.3, 0.6
BASE_HALF, TOP_HALF = np.radians(12.0), np.radians(48.0)
PART, PART_MASS, TOP_MASS, THICKNESS = 0.45, 0.4, 8.0, 0.04
LEGS = range(6)


def shift(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """A pose that only shifts."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def bar(length: float, mass: float, start: float = 0.0, width: float = 0.005) -> ls.RigidBody:
    """A slender square bar along x, from `start`; `width` is half of its own."""
    moment = mass * (length**2 + 4 * width**2) / 12
    size = (length / 2, width, width)
    inertia = (mass * 2 * width**2 / 3, moment, moment)
    return ls.RigidBody(mass, com=(start + length / 2, 0, 0), inertia=inertia, outline=size)


def four_bar() -> ls.Robot:
    """Crank and coupler from the origin, the rocker on its own pivot; the loop joins coupler and rocker."""
    robot = ls.Robot("four-bar", gravity=(0, -G, 0))
    robot.add_link("crank", bar(CRANK, BAR_MASSES[0]), ls.JointRevolute())
    robot.add_link("coupler", bar(COUPLER, BAR_MASSES[1]), ls.JointRevolute(), "crank", placement=shift(CRANK))
    robot.add_link("rocker", bar(ROCKER, BAR_MASSES[2]), ls.JointRevolute(), placement=shift(GROUND))
    robot.add_loop("pin", "coupler", "rocker", placement_a=shift(COUPLER), placement_b=shift(ROCKER),
                   joint=ls.JointRevolute())  # fmt: skip
    robot.add_joint_motion("speed", "crank", position=lambda t: SPEED * t, velocity=lambda t: SPEED,
                           acceleration=lambda t: 0.0)  # fmt: skip
    return robot


def four_bar_angles(theta: Any) -> tuple[np.ndarray, np.ndarray]:
    """Angles of coupler and rocker from the x axis where the crank has the angle θ; the pin is the upper one."""
    elbow = CRANK * np.exp(1j * np.asarray(theta))
    across = GROUND - elbow
    d = np.abs(across)
    inside = np.arccos((COUPLER**2 + d**2 - ROCKER**2) / (2 * COUPLER * d))
    coupler = np.angle(across) + inside
    return coupler, np.angle(elbow + COUPLER * np.exp(1j * coupler) - GROUND)


def four_bar_torque(theta: np.ndarray) -> np.ndarray:
    """Torque that keeps the speed of the crank: d(T + V)/dθ, from closed-form angles [N·m].

    T = ½ Σ (m |c'|² + J φ'²) SPEED² and V = Σ m g Im c; derivatives with respect to θ are those of Fourier
    series over one turn.
    """
    n = 512
    turn = 2 * np.pi * np.arange(n) / n
    coupler, rocker = four_bar_angles(turn)
    elbow = CRANK * np.exp(1j * turn)
    centres = [elbow / 2, elbow + COUPLER / 2 * np.exp(1j * coupler), GROUND + ROCKER / 2 * np.exp(1j * rocker)]
    energy = np.zeros(n)
    for length, mass, c, phi in zip((CRANK, COUPLER, ROCKER), BAR_MASSES, centres, (turn, coupler, rocker)):
        swing = np.ones(n) if phi is turn else _by_angle(np.unwrap(phi))
        moment = np.asarray(bar(length, mass).inertia)[2]
        energy += 0.5 * SPEED**2 * (mass * np.abs(_by_angle(c)) ** 2 + moment * swing**2) + mass * G * c.imag
    waves = np.fft.fftfreq(n, 1 / n)
    return (np.exp(1j * np.multiply.outer(theta, waves)) @ (1j * waves * np.fft.fft(energy) / n)).real


def _by_angle(x: np.ndarray) -> np.ndarray:
    """Derivative of a periodic function given over one turn."""
    n = len(x)
    found = np.fft.ifft(1j * np.fft.fftfreq(n, 1 / n) * np.fft.fft(x))
    return found if np.iscomplexobj(x) else found.real


def slider_crank() -> ls.Robot:
    """Crank and rod from the origin, the slider along x; the loop joins rod and slider. The motor turns the crank."""
    robot = ls.Robot("slider-crank", gravity=(0, -G, 0))
    robot.add_link("crank", bar(ARM, ARM_MASS), ls.JointRevolute(damping=FRICTION))
    robot.add_link("rod", bar(ROD, ROD_MASS), ls.JointRevolute(), "crank", placement=shift(ARM))
    slider = ls.RigidBody.box(0.06, 0.04, 0.04, density=SLIDER_MASS / (0.06 * 0.04 * 0.04))
    robot.add_link("slider", slider, ls.JointPrismatic())
    robot.add_loop("pin", "rod", "slider", placement_a=shift(ROD), joint=ls.JointRevolute())
    robot.add_joint_actuator("motor", "crank")
    return robot


def slider_crank_rate(t: float, state: np.ndarray) -> list[float]:
    """(θ̇, θ̈) of the crank from its one equation of motion, sin φ = −(ARM/ROD) sin θ."""
    theta, speed = state
    sine, cosine = np.sin(theta), np.cos(theta)
    tilt = -ARM / ROD * sine
    c = np.sqrt(1 - tilt**2)
    phi1 = -ARM / ROD * cosine / c  # dφ/dθ and d²φ/dθ²
    phi2 = (ARM / ROD * sine + tilt * phi1**2) / c
    e, f = np.exp(1j * theta), c + 1j * tilt
    pin1, pin2 = 1j * ARM * e, -ARM * e
    rod1, rod2 = 1j * ROD * phi1 * f, ROD * (1j * phi2 - phi1**2) * f
    arm, rod = (float(np.asarray(bar(*x).inertia)[2]) for x in ((ARM, ARM_MASS), (ROD, ROD_MASS)))
    middle1, middle2 = pin1 + rod1 / 2, pin2 + rod2 / 2
    end1, end2 = (pin1 + rod1).real, (pin2 + rod2).real
    inertia = arm + ARM_MASS * ARM**2 / 4 + ROD_MASS * abs(middle1) ** 2 + rod * phi1**2 + SLIDER_MASS * end1**2
    half = ROD_MASS * (middle1.conjugate() * middle2).real + rod * phi1 * phi2 + SLIDER_MASS * end1 * end2
    weight = G * (ARM_MASS * ARM / 2 * cosine + ROD_MASS * middle1.imag)
    return [speed, (TORQUE - FRICTION * speed - half * speed**2 - weight) / inertia]


def corners(radius: float, half: float) -> np.ndarray:
    """Six points on a circle in pairs 120° apart, each pair `half` to both sides of its middle, shape (6, 3)."""
    middles = np.repeat(2 * np.pi / 3 * np.arange(3), 2)
    angles = middles + np.tile([-half, half], 3)
    return radius * np.column_stack([np.cos(angles), np.sin(angles), np.zeros(6)])


BASE, TOP = corners(BASE_RADIUS, BASE_HALF), corners(TOP_RADIUS, TOP_HALF)


def still(t: float) -> np.ndarray:
    """The platform at rest, 4x4."""
    return shift(0.0, 0.0, HEIGHT)


def dance(t: float) -> np.ndarray:
    """A motion of the platform in all six directions, 4x4: from rest, it swells in one second."""
    grown = 1.0 - np.exp(-((2.0 * t) ** 4))
    turn = grown * np.array([0.15 * np.sin(3 * t), 0.12 * np.sin(4 * t + 1), 0.3 * np.sin(2 * t + 2)])
    g = np.eye(4)
    g[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    g[:3, 3] = np.array([0, 0, HEIGHT]) + 0.05 * grown * np.array([np.cos(3 * t), np.sin(5 * t), np.sin(4 * t)])
    return g


def leg_lengths(g: np.ndarray) -> np.ndarray:
    """Inverse kinematics: distances of the joints for poses (..., 4, 4) of the platform, shape (..., 6) [m]."""
    tops = np.einsum("...ij,kj->...ki", g[..., :3, :3], TOP) + g[..., None, :3, 3]
    return np.linalg.norm(tops - BASE, axis=-1)


def stewart(pose: Callable[[float], np.ndarray] = dance) -> ls.Robot:
    """Six legs from universal joints, each of two parts; spherical loops join them to the platform, which is free.

    A leg at zero stands upright with its top HEIGHT above its foot.
    """
    robot = ls.Robot("Stewart platform")
    lengths = lru_cache(maxsize=64)(lambda t: leg_lengths(pose(t)))  # six legs ask for the same times
    upright = np.array([[0.0, 0, -1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    plate = ls.RigidBody.cylinder(THICKNESS, TOP_RADIUS, density=TOP_MASS / (np.pi * TOP_RADIUS**2 * THICKNESS))
    robot.add_link("platform", None, ls.JointFree())
    robot.add_link("plate", plate, parent="platform", placement=upright)
    for k in LEGS:
        foot = shift(*BASE[k]) @ upright
        robot.add_link(f"lower {k}", bar(PART, PART_MASS, 0.0, 0.014), ls.JointUniversal(), placement=foot)
        robot.add_link(f"upper {k}", bar(PART, PART_MASS, -PART, 0.008), ls.JointPrismatic(), f"lower {k}",
                       placement=shift(HEIGHT))  # fmt: skip
        robot.add_loop(f"ball {k}", f"upper {k}", "platform", placement_b=shift(*TOP[k]), joint=ls.JointSpherical())
        robot.add_joint_motion(f"leg {k}", f"upper {k}", position=lambda t, k=k: float(lengths(t)[k] - HEIGHT))
    return robot


def potential(g: np.ndarray) -> float:
    """Potential energy of platform and legs for a pose of the platform [J]."""
    rise = g[2, :3] @ TOP.T + g[2, 3]
    length = leg_lengths(g)
    along = PART / 2 / length  # from foot and top to the middle of the part
    return float(G * (TOP_MASS * g[2, 3] + PART_MASS * np.sum(along * rise + (1 - along) * rise)))


def statical_forces(g: np.ndarray) -> np.ndarray:
    """Forces of the legs at rest: ∂V/∂l, by central differences of lengths and V in the pose, shape (6,) [N]."""
    h, by_pose = 1e-4, []
    for d in np.eye(6):
        there = [g @ ls.lie.se3_exp(s * h * d) for s in (1, -1)]
        by_pose.append([(a - b) / (2 * h) for a, b in (map(leg_lengths, there), map(potential, there))])
    lengths, energy = (np.array([row[i] for row in by_pose]) for i in (0, 1))
    return np.linalg.solve(lengths, energy)


def four_bar_study(turns: float = 2.0, out: Path | None = None) -> dict[str, float]:
    """The needed torque and the angles, against the closed form. One turn takes a second."""
    model = four_bar().build()
    q0 = ls.assemble(model, [0.0, 0.5, 1.2], fixed=("crank",))
    times = np.linspace(0.0, turns, round(180 * turns) + 1)
    motion = ls.simulate(model, turns, q0, t_eval=times, **ACCURATE)
    theta, coupler, rocker = motion.q[:, 0], motion.q[:, 0] + motion.q[:, 1], motion.q[:, 2]
    torque, expected = motion.multipliers[:, 0], four_bar_torque(motion.q[:, 0])
    angles = four_bar_angles(theta)
    if out is not None:
        _plot_four_bar(motion, torque, expected, out)
    return {
        "largest torque [N·m]": float(np.abs(torque).max()),
        "torque error [N·m]": float(np.abs(torque - expected).max()),
        "angle error [rad]": _largest_turn(coupler - angles[0], rocker - angles[1]),
        "loop residual": float(np.abs(ls.loop_residual(model, motion.q)).max()),
    }


def _largest_turn(*differences: np.ndarray) -> float:
    return float(max(np.abs(np.angle(np.exp(1j * x))).max() for x in differences))


def slider_crank_study(duration: float = 3.0, out: Path | None = None) -> dict[str, float]:
    """The motion from rest, against the crank's own equation."""
    model = slider_crank().build()
    q0 = ls.assemble(model, [0.5, 0.0, 0.5], fixed=("crank",))
    times = np.linspace(0.0, duration, round(200 * duration) + 1)
    motion = ls.simulate(model, duration, q0, u=[TORQUE], t_eval=times, **ACCURATE)
    exact = solve_ivp(slider_crank_rate, (0.0, duration), [0.5, 0.0], "DOP853", times, rtol=1e-11, atol=1e-12).y
    sine = ARM / ROD * np.sin(exact[0])
    slider = ARM * np.cos(exact[0]) + ROD * np.sqrt(1 - sine**2)
    if out is not None:
        _plot_slider_crank(motion, exact, slider, out)
    return {
        "final speed [rad/s]": float(motion.v[-1, 0]),
        "turns": float((motion.q[-1, 0] - motion.q[0, 0]) / (2 * np.pi)),
        "angle error [rad]": float(np.abs(motion.q[:, 0] - exact[0]).max()),
        "speed error [rad/s]": float(np.abs(motion.v[:, 0] - exact[1]).max()),
        "slider error [m]": float(np.abs(motion.q[:, 2] - slider).max()),
        "loop residual": float(np.abs(ls.loop_residual(model, motion.q)).max()),
    }


def assembled_stewart(model: ls.Model, t: float = 0.0) -> np.ndarray:
    """The closed platform from a start that is open: legs upright, the platform turned and shifted."""
    q = model.neutral()
    q[:7] = np.cos(0.1), 0.0, 0.0, np.sin(0.1), 0.03, -0.04, HEIGHT + 0.05
    return ls.assemble(model, q, t=t)


def platform_balance(model: ls.Model, q: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """Sum of moments and forces of the legs and the weight on the resting platform, at its centre, shape (6,)."""
    R = ls.frame_pose(model, q, "platform")[:3, :3]
    left = np.concatenate([np.zeros(3), -TOP_MASS * G * R[2]])
    for corner, wrench in zip(TOP, ls.loop_wrenches(model, q, multipliers)):  # on the legs, in axes of the platform
        left[:3] -= wrench[:3] + np.cross(corner, wrench[3:])
        left[3:] -= wrench[3:]
    return left


def stewart_study(duration: float = 4.0, out: Path | None = None) -> dict[str, float]:
    """The platform against the motion its legs were made for, and the forces of the legs at rest."""
    model = stewart().build()
    q0 = assembled_stewart(model)
    rest = ls.solve_statics(model, q0=q0, v=np.zeros(model.nv))
    forces = rest.multipliers[: len(LEGS)]
    times = np.linspace(0.0, duration, round(50 * duration) + 1)
    motion = ls.simulate(model, duration, q0, t_eval=times, **ACCURATE)
    found = ls.frame_pose(model, motion.q, "platform")
    wanted = np.array([dance(t) for t in times])
    apart = np.linalg.norm(found[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turned = np.linalg.norm(ls.lie.so3_log(np.swapaxes(wanted[:, :3, :3], 1, 2) @ found[:, :3, :3]), axis=1)
    if out is not None:
        _plot_stewart(model, motion, found, (apart, turned), out)
    return {
        "position error [m]": float(apart.max()),
        "turn error [rad]": float(turned.max()),
        "travel [m]": float(np.linalg.norm(np.ptp(wanted[:, :3, 3], axis=0))),
        "leg force at rest [N]": float(forces.mean()),
        "leg force error [N]": float(np.abs(forces - statical_forces(still(0.0))).max()),
        "balance of the platform [N, N·m]": float(np.abs(platform_balance(model, rest.q, rest.multipliers)).max()),
        "loop residual": float(np.abs(ls.loop_residual(model, motion.q)).max()),
    }


def main(out: str | Path | None = None, part: float = 1.0) -> dict[str, dict[str, float]]:
    """The numbers of the three studies, over a part of their durations; their figures go to the folder `out`."""
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    picture = {name: folder / f"{name}.png" if folder else None for name in ("four_bar", "slider_crank", "stewart")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        return {
            "four-bar": four_bar_study(2.0 * part, picture["four_bar"]),
            "slider-crank": slider_crank_study(3.0 * part, picture["slider_crank"]),
            "Stewart platform": stewart_study(4.0 * part, picture["stewart"]),
        }


def _lines(axes: Any, points: np.ndarray, levels: np.ndarray, **style: Any) -> None:
    """Polylines (n, points) of complex numbers, from pale to dark."""
    import matplotlib.pyplot as plt

    for line, level in zip(points, levels):
        axes.plot(line.real, line.imag, "o-", color=plt.get_cmap("viridis")(0.95 - 0.9 * level), markersize=3, **style)


def _plot_four_bar(motion: ls.Trajectory, torque: np.ndarray, expected: np.ndarray, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
    shown = np.arange(0, min(len(motion.t), 180), 15)
    theta, tilt = motion.q[:, 0], motion.q[:, 0] + motion.q[:, 1]
    elbow = CRANK * np.exp(1j * theta)
    pin = elbow + COUPLER * np.exp(1j * tilt)
    bars = np.stack([0 * elbow, elbow, pin, GROUND + 0 * elbow], axis=1)
    _lines(a, bars[shown], shown / max(shown[-1], 1), linewidth=1.4)
    a.set(xlabel="x [m]", ylabel="y [m]", title="twelve positions in a turn, from pale to dark", aspect="equal")
    order = np.argsort(np.mod(theta, 2 * np.pi))
    angle = np.degrees(np.mod(theta, 2 * np.pi))[order]
    b.plot(angle, expected[order], color="C1", linewidth=4, alpha=0.5, label="closed form, d(T + V)/dθ")
    b.plot(angle, torque[order], color="C0", linewidth=1.2, label="multiplier of the prescribed motion")
    b.set(xlabel="crank angle [°]", ylabel="torque [N·m]", title="torque that keeps the speed of one turn a second")
    b.set_xticks(range(0, 361, 60))
    b.legend()
    b.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_slider_crank(motion: ls.Trajectory, exact: np.ndarray, slider: np.ndarray, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (a, b, c) = plt.subplots(1, 3, figsize=(15, 4.2), layout="constrained")
    shown = np.searchsorted(motion.q[:, 0], motion.q[0, 0] + 2 * np.pi * np.arange(12) / 12)
    shown = shown[shown < len(motion.t)]
    pin = ARM * np.exp(1j * motion.q[shown, 0])
    bars = np.stack([0 * pin, pin, motion.q[shown, 2] + 0 * pin], axis=1)
    _lines(a, bars, np.linspace(0, 1, len(shown)), linewidth=1.4)
    a.set(xlabel="x [m]", ylabel="y [m]", title="the first turn, from pale to dark", aspect="equal")
    for axes, found, wanted, label in ((b, motion.v[:, 0], exact[1], "crank speed [rad/s]"),
                                       (c, motion.q[:, 2], slider, "slider position [m]")):  # fmt: skip
        axes.plot(motion.t, wanted, color="C1", linewidth=4, alpha=0.5, label="equation of the crank, SciPy")
        axes.plot(motion.t, found, color="C0", linewidth=1.2, label="closed chain")
        axes.set(xlabel="t [s]", ylabel=label)
        axes.grid(alpha=0.3)
    b.legend(loc="lower right")
    b.set_title("the crank, from rest until friction takes the torque")
    c.set_title("the slider")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_stewart(model: ls.Model, motion: ls.Trajectory, found: np.ndarray, errors: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14, 7.6), layout="constrained")
    grid: Any = figure.subfigures(1, 2, width_ratios=(1, 1.2))
    space = grid[0].add_subplot()
    ls.plot_shapes(model, motion.q[len(motion.t) // 2], trail=found[:, :3, 3], axes=space)
    a, b, c = grid[1].subplots(3, 1, sharex=True)
    for k, length in enumerate(leg_lengths(found).T):
        a.plot(motion.t, length, label=f"leg {k + 1}")
        b.plot(motion.t, motion.multipliers[:, k])
    a.set(ylabel="length [m]", title="lengths of the legs, prescribed from the inverse kinematics")
    a.legend(ncols=6, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, -0.03), columnspacing=0.8, frameon=False)
    a.set_ylim(bottom=0.54)
    b.set(ylabel="force [N]", title="forces of the legs, positive where they push")
    for error, label in zip(errors, ("position [m]", "turn [rad]")):
        c.semilogy(motion.t, np.maximum(error, 1e-18), label=label)
    c.set(xlabel="t [s]", ylabel="error", title="platform against the motion that the lengths were made for")
    c.legend()
    for axes in (a, b, c):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    for study, numbers in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(study)
        for key, number in numbers.items():
            print(f"    {key}: {number:.3g}")
