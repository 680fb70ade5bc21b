"""Rigid bodies that touch a floor, beside MuJoCo in the same run on one core, at equal penetration at rest.

    python benchmarks/contacts.py

A ball that drops and comes to rest, a ball that rolls, and a box that slides to rest, two seconds each. The stiffness
of lissom is that of the materials of the bodies. MuJoCo gets the stiffness of its own law that lets the same body rest
at the same depth. lissom takes adaptive steps with two tolerances, MuJoCo steps of 2 ms (its default) and of 0.2 ms.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LISSOM_CORES", "1")

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import lissom as ls

DURATION, G, FRICTION, IMPEDANCE = 2.0, 9.81, 0.5, 0.9
SOFT = ls.Material(young=2e6, poisson=0.45, density=1000.0, friction=FRICTION, restitution=0.3)
RADIUS, SIDES = 0.05, (0.2, 0.1, 0.06)


class Case(NamedTuple):
    """A body on a floor: its geometry in MJCF, half its height [m], and its first height above the floor and velocity
    along x [m, m/s]."""

    name: str
    body: Any
    geom: str
    half: float
    height: float
    speed: float


BALL = ls.RigidBody.sphere(RADIUS, material=SOFT), f'type="sphere" size="{RADIUS}"', RADIUS
BOX = ls.RigidBody.box(*SIDES, material=SOFT), f'type="box" size="{" ".join(str(0.5 * x) for x in SIDES)}"'
CASES = (
    Case("ball that drops", *BALL, 0.05, 0.0),
    Case("ball that rolls", *BALL, 0.0, 1.0),
    Case("box that slides", *BOX, 0.5 * SIDES[2], 0.0, 1.0),
)
MJCF = """<mujoco><option timestep="{step}" gravity="0 0 -{g}" cone="elliptic"/><worldbody>
<geom type="plane" size="5 5 1" solref="{stiffness} {damping}" solimp="{d} {d} 1e-6" friction="{friction} 0 0"/>
<body pos="0 0 {z}"><freejoint/><geom {geom} density="1000" solref="{stiffness} {damping}" solimp="{d} {d} 1e-6"
friction="{friction} 0 0"/></body></worldbody></mujoco>"""


def smallest(run: Callable[[], Any], count: int = 5) -> float:
    """The smallest time of `count` runs [s]."""
    times = []
    for _ in range(count):
        began = perf_counter()
        run()
        times.append(perf_counter() - began)
    return min(times)


def of_lissom(case: Case, rtol: float) -> tuple[float, float, float]:
    """Time per simulated second [s], depth at the end [m], and the distance along x [m]."""
    robot = ls.Robot("body", gravity=(0, 0, -G))
    robot.add_link("body", case.body, ls.JointFree())
    robot.add_contact("floor", "body", ls.ShapePlane())
    model = robot.build()
    q, v = model.neutral(), np.zeros(model.nv)
    q[6], v[3] = case.half + case.height, case.speed
    motion = ls.simulate(model, DURATION, q, v, rtol=rtol)
    time = smallest(lambda: ls.simulate(model, DURATION, q, v, rtol=rtol)) / DURATION
    return time, case.half - motion.q[-1, 6], motion.q[-1, 4]


def of_mujoco(case: Case, depth: float, step: float) -> tuple[float, float, float]:
    """As `of_lissom`, for the stiffness with which the body rests at a depth."""
    stiffness = (1.0 - IMPEDANCE) * G / (IMPEDANCE * depth)
    for _ in range(4):  # a depth is nearly as the inverse of the stiffness
        stiffness *= _moved(case, stiffness, step)[1] / depth
    return _moved(case, stiffness, step)


def _moved(case: Case, stiffness: float, step: float) -> tuple[float, float, float]:
    import mujoco

    text = MJCF.format(step=step, g=G, z=case.half + case.height, geom=case.geom, friction=FRICTION, d=IMPEDANCE,
                       stiffness=-stiffness, damping=-2.0 * np.sqrt(stiffness))  # fmt: skip
    model: Any = mujoco.MjModel.from_xml_string(text)  # type: ignore[attr-defined]
    data: Any = mujoco.MjData(model)  # type: ignore[attr-defined]

    def run() -> None:
        mujoco.mj_resetData(model, data)  # type: ignore[attr-defined]
        data.qvel[0] = case.speed
        mujoco.mj_step(model, data, round(DURATION / step))  # type: ignore[attr-defined]

    time = smallest(run) / DURATION
    return time, case.half - data.qpos[2], data.qpos[0]


def main() -> None:
    """Print a row for each body and program."""
    print(f"{'body':18s} {'program':20s} {'ms per second':>14s} {'depth [mm]':>11s} {'distance [m]':>13s}")
    for case in CASES:
        depth = 0.0
        for rtol in (1e-6, 1e-3):
            time, depth, way = of_lissom(case, rtol)
            label = f"lissom, rtol {rtol:g}"
            print(f"{case.name:18s} {label:20s} {1e3 * time:14.2f} {1e3 * depth:11.4f} {way:13.4f}")
        for step in (2e-3, 2e-4):
            time, found, way = of_mujoco(case, depth, step)
            label = f"MuJoCo, {1e3 * step:g} ms"
            print(f"{case.name:18s} {label:20s} {1e3 * time:14.2f} {1e3 * found:11.4f} {way:13.4f}")


if __name__ == "__main__":
    main()
