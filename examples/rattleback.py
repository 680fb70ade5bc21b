"""A rattleback: a stone that spins well in one sense, and in the other begins to rattle, stops and turns back.

The stone is an ellipsoid whose axes of inertia are turned by three degrees against those of its surface. Rocking about
one of its axes and spinning are coupled by this angle. In one sense of the spin small rocking grows and takes up the
energy of the spin until the stone turns back. Its motion is compared with that of a rigid ellipsoid that rolls on a
plane without slipping. With γ, the upward direction in its axes, and A, the diagonal matrix of its half-axes, the point
of contact is at r from its centre, and

    r = −A²γ/|Aγ|,   γ̇ = γ × ω,   v = r × ω,
    J ω̇ + ω × Jω = m r × (ṙ × ω + r × ω̇ + ω × (r × ω) + g γ)                                              (1)

(Walker 1896; Garcia and Hubbard 1988). An ellipsoid touches a plane by its exact lowest point, r.

    python examples/rattleback.py out/rattleback
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import lissom as ls

AXES = np.array([0.1, 0.02, 0.015])  # half-axes of the stone [m]
DENSITY, YAW = 1200.0, np.radians(3.0)  # [kg/m³], of the axes of inertia about the vertical [rad]
MASS = DENSITY * 4.0 / 3.0 * np.pi * AXES.prod()
PLASTIC = ls.Material(young=3e9, poisson=0.35, density=DENSITY)
SPIN, TILT = 5.0, np.radians(0.5)  # at the start [rad/s], of the long axis against the floor [rad]
END, ROWS = 3.0, 601  # [s], times of the results
STEP, LONG_STEP = 5e-4, 2e-3  # [s]
G = 9.81


def inertia() -> np.ndarray:
    """J about the centre in the axes of the surface, shape (3, 3) [kg·m²]."""
    a, b, c = AXES**2
    turn = Rotation.from_euler("z", YAW).as_matrix()
    return turn @ np.diag(MASS / 5.0 * np.array([b + c, a + c, a + b])) @ turn.T


def robot(**law: Any) -> ls.Robot:
    """The stone on its floor; `law` are arguments of `add_contact`."""
    made = ls.Robot("rattleback")
    shape = ls.ShapeEllipsoid(*AXES)
    body = ls.RigidBody(
        MASS,
        inertia=inertia().tolist(),
        shapes=(ls.PlacedShape(shape),),
        meshes=(ls.Mesh.of_shape(shape),),
        material=PLASTIC,
    )
    made.add_link("stone", body, ls.JointFree())
    nose = np.eye(4)
    nose[0, 3] = AXES[0]
    made.add_frame("nose", "stone", placement=nose)
    made.add_contact("floor", "stone", ls.ShapePlane(), friction=1.0, **law)
    return made


def upward(tilt: float) -> np.ndarray:
    """γ of a stone whose long axis is tilted against the floor."""
    return np.array([np.sin(tilt), 0.0, np.cos(tilt)])


def start(spin: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the stone that touches the floor and spins about the vertical."""
    up = upward(TILT)
    x, y, z, w = Rotation.from_euler("y", -TILT).as_quat()
    lowest = -(AXES**2) * up / np.linalg.norm(AXES * up)
    turn = spin * up
    return np.array([w, x, y, z, 0.0, 0.0, np.linalg.norm(AXES * up)]), np.append(turn, np.cross(lowest, turn))


def rolling(spin: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spin γ·ω [rad/s] and upward direction γ (n, 3) of the rigid stone by (1), at times t."""
    J = inertia()

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        up, turn = y[:3], y[3:]
        size = np.linalg.norm(AXES * up)
        r, up_rate = -(AXES**2) * up / size, np.cross(up, turn)
        r_rate = -(AXES**2) * (up_rate - up * (up @ (AXES**2 * up_rate)) / size**2) / size
        known = np.cross(r_rate, turn) + np.cross(turn, np.cross(r, turn)) + G * up
        about_contact = J + MASS * ((r @ r) * np.eye(3) - np.outer(r, r))
        return np.append(up_rate, np.linalg.solve(about_contact, MASS * np.cross(r, known) - np.cross(turn, J @ turn)))

    first = np.append(upward(TILT), spin * upward(TILT))
    found = solve_ivp(rates, (0.0, t[-1]), first, "DOP853", t, rtol=1e-9, atol=1e-11).y.T
    return (found[:, :3] * found[:, 3:]).sum(axis=1), found[:, :3]


def spins(model: ls.Model, spin: float, **steps: Any) -> dict[str, float]:
    """The stone that begins with a spin, beside the rigid one."""
    t = np.linspace(0.0, END, ROWS)
    motion = ls.simulate(model, END, *start(spin), t_eval=t, **steps)
    up = ls.frame_pose(model, motion.q, "stone")[:, 2, :3]
    found, (expected, expected_up) = (up * motion.v[:, :3]).sum(axis=1), rolling(spin, t)
    energy = ls.energy(model, motion.q, motion.v)
    change = energy.kinetic - energy.kinetic[0] + energy.gravitational - energy.gravitational[0]

    def turns_back(values: np.ndarray) -> float:
        """When the sense changes [s]; infinite if it does not."""
        turned = values * spin < 0.0
        return float(t[np.argmax(turned)]) if turned.any() else np.inf

    return {
        "spin at the end [rad/s]": float(found[-1]),
        "the same of the rigid stone [rad/s]": float(expected[-1]),
        "spin off the rigid stone [rad/s]": float(np.abs(found - expected).max()),
        "turns back at [s]": turns_back(found),
        "the same of the rigid stone [s]": turns_back(expected),
        "largest tilt of the long axis [deg]": float(np.degrees(np.arcsin(np.abs(up[:, 0]).max()))),
        "the same of the rigid stone [deg]": float(np.degrees(np.arcsin(np.abs(expected_up[:, 0]).max()))),
        "energy gained [-]": float(change.max() / energy.kinetic[0]),
        "energy lost [-]": float(-change[-1] / energy.kinetic[0]),
        "steps": float(motion.statistics.steps),
        "plastic": float(motion.statistics.plastic),
    }


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers of both senses of spin, by adaptive and by fixed steps; a picture goes to the folder `out`."""
    sticking = robot().build()
    smooth = robot(slip_speed=1e-4).build()
    ways = {
        "adaptive steps": (sticking, {"rtol": 3e-5}),
        "steps of 0.5 ms": (sticking, {"dt": STEP}),
        "steps of 2 ms": (sticking, {"dt": LONG_STEP}),
        "smooth friction": (smooth, {"rtol": 1e-5}),
    }
    found = {
        f"{name}, {sense}": spins(model, spin, **steps)
        for name, (model, steps) in ways.items()
        for sense, spin in (("turns back", -SPIN), ("spins on", SPIN))
    }
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        motion = ls.simulate(smooth, END, *start(-SPIN), rtol=1e-5, t_eval=np.linspace(0.0, END, ROWS))
        ls.render(
            smooth, motion, Path(out) / "rattleback.png", shapes=4, trail="nose", obstacles=False, view=(30.0, -60.0)
        )
    return found


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value}")
