"""Robots on wheels: a snakeboard, and a car that carries a soft arm round a circle.

The rider of a snakeboard turns a rotor and steers both trucks; nothing drives the wheels. Their wheels do not slip
sideways (`Robot.add_skate`), so that the board gains speed. It is compared with its own equations: with the position
(x, y) and heading θ, steering angles φ at ±L, and the moments of inertia of board, rotor and trucks,

    M ẍ = Σ λ d_x,   M ÿ = Σ λ d_y,   I θ̈ + I_r ψ̈ + I_t Σ φ̈ = Σ λ (± L cos φ),
    d·ẋ ± L cos φ θ̇ = 0,   d = (−sin(θ + φ), cos(θ + φ))                                                  (1)

The car has two wheels (`Robot.add_rolling`) on motors of constant speed, and a ball caster. It drives a circle of
radius v/ω. The arm bends outwards, like an arm on a turntable at the same distance from its centre.

    python examples/wheels.py out/wheels
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import lissom as ls

MASS, BOARD, ROTOR, TRUCK, TRUCKS = 4.0, 0.3, 0.2, 0.02, 0.3  # [kg], moments of inertia [kg·m²], of one truck [kg]
HALF = 0.25  # L, from the middle of the board to a truck [m]
STEER, SWING, PACE = 0.6, 1.2, 4.0  # amplitudes of φ and ψ [rad], angular frequency [rad/s]
WHEEL, TRACK, CASTER = 0.08, 0.15, 0.03  # radii, half of the track [m]
LEFT, RIGHT = 8.0, 12.0  # speeds of the wheels [rad/s]
END, DRIVE = 6.0, 8.0  # [s]


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """A placement without rotation."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def snakeboard() -> ls.Robot:
    """The board with its rotor and trucks, which move as the rider wants."""
    made = ls.Robot("snakeboard", gravity=(0, 0, 0))
    flat = {"outline": (HALF, 0.05, 0.01)}
    made.add_link("board", ls.RigidBody(MASS, inertia=(BOARD, BOARD, BOARD), **flat), ls.JointPlanar())
    rider = ls.RigidBody(0.0, inertia=(ROTOR, ROTOR, ROTOR), outline=(0.03, 0.2, 0.02))
    made.add_link("rotor", rider, ls.JointRevolute(), "board", placement=at(z=0.05))
    made.add_joint_motion("rotor", "rotor", position=ls.Expression(f"{SWING}*sin({PACE}*t)", "t"))
    for name, side in (("front", 1.0), ("rear", -1.0)):
        truck = ls.RigidBody(TRUCKS, inertia=(TRUCK, TRUCK, TRUCK), outline=(0.02, 0.08, 0.02))
        made.add_link(name, truck, ls.JointRevolute(), "board", placement=at(side * HALF, z=-0.03))
        made.add_joint_motion(name, name, position=ls.Expression(f"{side * STEER}*sin({PACE}*t)", "t"))
        made.add_skate(name, name, (0, 1, 0))
    return made


def ridden(t: np.ndarray) -> np.ndarray:
    """(x, y, θ) of the board (n, 3) by (1), at times t."""
    sides = np.array([1.0, -1.0])
    mass = MASS + 2.0 * TRUCKS
    inertia = np.diag([mass, mass, BOARD + ROTOR + 2.0 * (TRUCK + TRUCKS * HALF**2)])

    def rates(now: float, y: np.ndarray) -> np.ndarray:
        s, c = np.sin(PACE * now), np.cos(PACE * now)
        steer, steer_rate = sides * STEER * s, sides * STEER * PACE * c
        turn = y[2] + steer
        rows = np.column_stack([-np.sin(turn), np.cos(turn), sides * HALF * np.cos(steer)])
        turn_rate = y[5] + steer_rate
        change = np.column_stack(
            [-np.cos(turn) * turn_rate, -np.sin(turn) * turn_rate, -sides * HALF * np.sin(steer) * steer_rate]
        )
        right = np.zeros(3)  # the rotor turns the board; the trucks turn against each other
        right[2] = ROTOR * SWING * PACE**2 * s
        matrix = np.block([[inertia, -rows.T], [rows, np.zeros((2, 2))]])
        return np.append(y[3:], np.linalg.solve(matrix, np.append(right, -change @ y[3:]))[:3])

    # the rotor begins with a jump of its speed, which the wheels, straight ahead, let turn the board
    start = np.zeros(6)
    rows = np.column_stack([np.zeros(2), np.ones(2), sides * HALF])
    push = np.array([0.0, 0.0, -ROTOR * SWING * PACE])
    matrix = np.block([[inertia, -rows.T], [rows, np.zeros((2, 2))]])
    start[3:] = np.linalg.solve(matrix, np.append(push, np.zeros(2)))[:3]
    return solve_ivp(rates, (0.0, t[-1]), start, "DOP853", t, rtol=1e-11, atol=1e-12).y[:3].T


def ride() -> tuple[ls.Model, ls.Trajectory, dict[str, float]]:
    """The motion of the snakeboard, beside that of its equations."""
    model, t = snakeboard().build(), np.linspace(0.0, END, 241)
    motion = ls.simulate(model, END, t_eval=t, rtol=1e-9, atol=1e-11)
    rows = ls.constraint_jacobian(model, motion.q)[:, model.n_motions :]
    slip = np.einsum("nij,nj->ni", rows, motion.v)
    way = motion.q[:, :2]
    return (
        model,
        motion,
        {
            "way [m]": float(np.linalg.norm(way[-1] - way[0])),
            "speed at the end [m/s]": float(np.linalg.norm(motion.v[-1, :2])),
            "off its own equations [m]": float(np.abs(way - ridden(t)[:, :2]).max()),
            "slip of the wheels [m/s]": float(np.abs(slip).max()),
        },
    )


def arm() -> ls.Rod:
    """A soft arm that stands upright."""
    rubber = ls.Material(young=5e6, poisson=0.45, density=1100.0, damping_time=0.05)
    return ls.Rod(0.3, ls.SectionCircle(0.008), ls.BasisLegendre(bending_y=2, bending_z=2), rubber)


UPRIGHT = np.array([[0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def car() -> ls.Robot:
    """A free base on two driven wheels and a ball caster, with the arm."""
    made = ls.Robot("car")
    base = ls.RigidBody(3.0, com=(0.05, 0, 0), inertia=(0.03, 0.03, 0.05), outline=(0.14, 0.1, 0.03))
    made.add_link("base", base, ls.JointFree())
    tyre = ls.Mesh.of_shape(ls.ShapeCylinder(WHEEL, 0.02, (0, 1, 0)))
    for name, side, speed in (("left", 1.0, LEFT), ("right", -1.0, RIGHT)):
        wheel = ls.RigidBody(0.3, inertia=(5e-4, 9e-4, 5e-4), meshes=(tyre,))
        made.add_link(name, wheel, ls.JointRevolute((0, 1, 0)), "base", placement=at(y=side * TRACK))
        made.add_joint_motion(name, name, position=ls.Expression(f"{speed}*t", "t"))
        made.add_rolling(name, name, WHEEL, axis=(0, 1, 0))
    ball = ls.RigidBody.sphere(CASTER, density=1000.0)
    made.add_link("caster", ball, ls.JointSpherical(), "base", placement=at(0.12, 0.0, CASTER - WHEEL))
    made.add_rolling("caster", "caster", CASTER)
    made.add_link("arm", arm(), parent="base", placement=at(z=0.05) @ UPRIGHT)
    return made


def on_turntable(radius: float, turn: float) -> np.ndarray:
    """Coordinates of the arm at rest on a base that turns with `turn` [rad/s] at a radius [m]."""
    made = ls.Robot("turntable")
    made.add_link("disc", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0)), ls.JointRevolute())
    made.add_link("arm", arm(), parent="disc", placement=at(y=-radius, z=0.05) @ UPRIGHT)
    model = made.build()
    return ls.solve_statics(model, v=[turn, *np.zeros(model.nv - 1)]).q[1:]


def drive() -> tuple[ls.Model, ls.Trajectory, dict[str, float]]:
    """The motion of the car, beside its circle and the arm on a turntable."""
    model = car().build()
    q0 = model.neutral()
    q0[6] = WHEEL  # the base of a free joint: quaternion, then x, y and z
    speed, turn = WHEEL * (LEFT + RIGHT) / 2.0, WHEEL * (RIGHT - LEFT) / (2.0 * TRACK)
    radius, t = speed / turn, np.linspace(0.0, DRIVE, 161)
    with warnings.catch_warnings():  # both wheels hold the same sideways motion
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        v0 = ls.assemble_velocities(model, q0, start="running")
        motion = ls.simulate(model, DRIVE, q0, v0, t_eval=t, rtol=1e-7, atol=1e-9)
    place = ls.frame_pose(model, motion.q, "base")[:, :2, 3]
    circle = radius * np.column_stack([np.sin(turn * t), 1.0 - np.cos(turn * t)])
    still = on_turntable(radius, turn)
    bent = motion.q[-1, -len(still) :]
    heights = model.n_motions + np.flatnonzero(~model.rate_rows)
    return (
        model,
        motion,
        {
            "radius of the circle [m]": radius,
            "off the circle [m]": float(np.abs(place - circle).max()),
            "arm off that on a turntable [-]": float(np.abs(bent - still).max() / np.abs(still).max()),
            "least load of a wheel or the caster [N]": float(motion.multipliers[:, heights].min()),
        },
    )


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers of both robots; pictures go to the folder `out`."""
    board, ridden_motion, of_board = ride()
    model, driven_motion, of_car = drive()
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        ls.render(board, ridden_motion, Path(out) / "snakeboard.png", shapes=6, trail="board", view=(70.0, -90.0))
        ls.render(model, driven_motion, Path(out) / "car.png", shapes=5, trail="arm", view=(35.0, -60.0))
    return {"snakeboard": of_board, "car": of_car}


if __name__ == "__main__":
    for robot, found in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        for name, value in found.items():
            print(f"{robot}, {name}: {value:.4g}")
