"""A slender rod that slides on its tip: below Painlevé's critical friction it slides, above it jams and leaps.

The lower end of a uniform rod slides towards the side to which the rod does not lean, as a piece of chalk that is
pushed. Friction presses the tip into the floor. Let n be the normal and t the direction of friction. A force N with its
friction μ N changes the velocities of the tip by

    v̇_n = (W_nn + μ W_tn) N − b,    v̇_t = (W_nt + μ W_tt) N,    W = 1/m + (c × ·)²/I          (1)

with the lever arm c from the centre of mass. Below the critical friction p = W_nn + μ W_tn > 0, and N = b/p carries the
rod. Above it p < 0: every force drives the tip deeper, and with a rigid rod on a rigid floor no N exists (Painlevé
1895). The critical friction is lowest, 4/3, where the rod leans by tan α = 2. An elastic contact always has a motion.
Its force grows until the tip stops; then the rod is thrown off. This is an impact without collision. In the limit of a
stiff contact it takes no time, and follows from the impulse P = ∫N dt alone: (1) with P in place of t while the tip
slides, then sticking with F = s N, s = −W_tn/W_tt, until the work done while the rod parts is e² of that done before
(Stronge).

    python examples/painleve_rod.py out/painleve_rod
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import lissom as ls

HALF, RADIUS, MASS = 0.2, 0.003, 0.1  # half the length [m], radius [m], mass [kg]
INERTIA = MASS * HALF**2 / 3.0
RESTITUTION = 0.5
PLASTIC = ls.Material(young=3e9, poisson=0.35, density=1200, restitution=RESTITUTION)
LEAN = np.arctan(2.0)  # of the rod over the floor at the start [rad]
SLIDES, JAMS = 1.0, 1.6  # coefficients of friction
SLOW, FAST = 1.0, 3.0  # speeds of the tip at the start [m/s]
STEP = 2e-3  # [s]
LEAP = 0.4  # duration of the whole motion [s]
SMOOTH = 1e-3  # sliding speed of smooth friction [m/s]
G = 9.81


def robot(friction: float, **law: Any) -> ls.Robot:
    """The rod on a floor, in a plane; `law` are arguments of `add_contact`."""
    made = ls.Robot("Painlevé's rod")
    shape = ls.PlacedShape(ls.ShapeCapsule(RADIUS, 2.0 * HALF))
    body = ls.RigidBody(MASS, inertia=(1e-6, INERTIA, INERTIA), shapes=(shape,), material=PLASTIC)
    made.add_link("rod", body, ls.JointPlanar((0, 1, 0)))  # q = (z, x, angle about y)
    made.add_contact("floor", "rod", ls.ShapePlane(), friction=friction, **law)
    return made


def start(speed: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v of a rod whose tip touches the floor and slides with this speed in the direction −x."""
    return np.array([HALF * np.sin(LEAN) + RADIUS, 0.0, -LEAN]), np.array([0.0, -speed, 0.0])


def arm(lean: Any) -> tuple[Any, Any]:
    """c: from the centre of mass to the lowest point of the lower end (x, z) [m]."""
    return -HALF * np.cos(lean), -HALF * np.sin(lean) - RADIUS


def responses(lean: float) -> tuple[float, float, float]:
    """W_tt, W_tn, W_nn of (1) [1/kg]."""
    x, z = arm(lean)
    return 1.0 / MASS + z * z / INERTIA, -x * z / INERTIA, 1.0 / MASS + x * x / INERTIA


def critical(lean: float) -> float:
    """The friction at which p vanishes."""
    _, across, normal = responses(lean)
    return -normal / across


class Sliding(NamedTuple):
    """A rigid rod that slides on a rigid floor until its tip stops or leaves: `at` (t) gives x [m], its rate, the lean
    [rad] and its rate."""

    end: float
    at: Any


def rigid(friction: float, speed: float) -> Sliding:
    """The motion by Newton's equations with N = b/p."""

    def rates(_: float, y: np.ndarray) -> list[float]:
        x, z = arm(y[2])
        _, across, normal = responses(y[2])
        force = (G - HALF * np.sin(y[2]) * y[3] ** 2) / (normal + friction * across)
        return [y[1], friction * force / MASS, y[3], force * (x - friction * z) / INERTIA]

    def stops(_: float, y: np.ndarray) -> float:
        return y[1] - y[3] * arm(y[2])[1]

    def leaves(_: float, y: np.ndarray) -> float:
        return G - HALF * np.sin(y[2]) * y[3] ** 2

    stops.terminal = leaves.terminal = True  # type: ignore[attr-defined]
    first = [0.0, -speed, LEAN, 0.0]
    found = solve_ivp(rates, (0, 10), first, rtol=1e-10, atol=1e-12, events=[stops, leaves], dense_output=True)
    return Sliding(found.t[-1], found.sol)


def impact(friction: float, speed: float) -> tuple[float, float]:
    """Normal speed of the tip [m/s] and rate of the lean [rad/s] after an impact without collision."""
    tangent, across, normal = responses(LEAN)
    p = normal + friction * across
    slid = speed / (across + friction * tangent)  # impulse until the tip stops
    stick = -across / tangent
    after = normal + stick * across
    closed = slid - p * slid / after  # ... until it sinks no deeper
    work = 0.5 * p * slid**2 - 0.5 * (p * slid) ** 2 / after
    parting = np.sqrt(2.0 * RESTITUTION**2 * abs(work) / after)  # impulse of the way back
    x, z = arm(LEAN)
    friction_impulse = friction * slid + stick * (closed + parting - slid)
    return after * parting, (x * (closed + parting) - z * friction_impulse) / INERTIA


def tip(motion: ls.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Height of the tip above the floor [m], and its velocity along x and z [m/s], at all times."""
    lean, turn = -motion.q[:, 2], -motion.v[:, 2]
    x, z = arm(lean)
    return motion.q[:, 0] + z, motion.v[:, 1] - turn * z, motion.v[:, 0] + turn * x


def gained(model: ls.Model, motion: ls.Trajectory) -> float:
    """Largest rise of the energy above that of the start, relative to this above the energy of a rod that lies."""
    found = ls.energy(model, motion.q, motion.v)
    total = found.kinetic + found.gravitational - MASS * G * RADIUS
    return float(total.max() / total[0] - 1.0)


def slide(dt: float | None) -> dict[str, float]:
    """A rod below the critical friction, beside a rigid one until its tip stops."""
    expected = rigid(SLIDES, SLOW)
    model = robot(SLIDES).build()
    motion = ls.simulate(model, 0.95 * expected.end, *start(SLOW), dt=dt)
    x, _, lean, turn = expected.at(motion.t)
    return {
        "off the rigid rod [m]": float(np.abs(motion.q[:, 1] - x).max()),
        "lean off the rigid rod [deg]": float(np.degrees(np.abs(-motion.q[:, 2] - lean).max())),
        "rate off the rigid rod [-]": float(abs(-motion.v[-1, 2] / turn[-1] - 1.0)),
        "energy gained [-]": gained(model, motion),
    }


def jam(times_stiffer: float) -> dict[str, float]:
    """The rod above the critical friction at the instant when it is thrown off, beside the impulse of a stiff one."""
    stiffness = 4.0 / 3.0 * PLASTIC.young / (1.0 - PLASTIC.poisson**2) * np.sqrt(RADIUS) * times_stiffer  # Hertz
    law = {"stiffness": stiffness, "exponent": 1.5, "restitution": RESTITUTION, "slip_speed": SMOOTH}
    model = robot(JAMS, **law).build()
    motion = ls.simulate(model, 0.02, *start(FAST), rtol=1e-8)
    height, _, upwards = tip(motion)
    deepest = int(np.argmin(height))
    off = deepest + int(np.argmax(height[deepest:] > 0.0))
    parting, turn = impact(JAMS, FAST)
    return {
        "deepest [m]": float(-height.min()),
        "thrown off after [s]": float(motion.t[off]),
        "speed after the jam off a stiff rod [-]": float(abs(upwards[off] / parting - 1.0)),
        "rate after the jam off a stiff rod [-]": float(abs(-motion.v[off, 2] / turn - 1.0)),
        "energy gained [-]": gained(model, motion),
    }


def leap(dt: float | None) -> tuple[ls.Model, ls.Trajectory]:
    """The whole motion above the critical friction, with the law that follows from the material."""
    model = robot(JAMS).build()
    return model, ls.simulate(model, LEAP, *start(FAST), dt=dt, t_eval=None if dt else np.linspace(0.0, LEAP, 2001))


def main(out: str | Path | None = None) -> dict[str, Any]:
    """Numbers of the rod that slides, of the one that jams, and of its leap; a picture goes to the folder `out`."""
    found: dict[str, Any] = {"critical friction": critical(LEAN)}
    for name, dt in (("adaptive steps", None), ("steps of 2 ms", STEP)):
        model, motion = leap(dt)
        height = tip(motion)[0]
        found[name] = slide(dt) | {
            "leap [m]": float(height.max()),
            "deepest of the leap [m]": float(-height.min()),
            "energy gained in the leap [-]": gained(model, motion),
        }
        if out is not None and dt is None:
            Path(out).mkdir(parents=True, exist_ok=True)
            ls.render(model, motion, Path(out) / "painleve_rod.png", shapes=6, trail="rod")
    for times in (1, 100, 10_000):
        found[f"jam, {times} times the stiffness"] = jam(times)
    return found


if __name__ == "__main__":
    for name, value in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{name}: {value}")
