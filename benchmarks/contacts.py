"""Rigid bodies that touch a floor, beside MuJoCo in the same run on one core, at equal penetration at rest.

    python benchmarks/contacts.py

A ball that drops and comes to rest, a ball that rolls, and a box that slides to rest, two seconds each, then 50 balls
and 20 boxes that fall into a pit, and the same heaps at rest, one second each. The stiffness of lissom is that of the
materials of the bodies. MuJoCo gets the stiffness of its own law that lets the same body rest at the same depth. lissom
takes adaptive steps with two tolerances and steps of 2 ms, MuJoCo steps of 2 ms (its default) and of 0.2 ms. Columns:
time per simulated second, depth at the end, distance along x, and the largest energy over that of the start.
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
PIT = 0.25  # half the width of a pit [m]


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


def of_lissom(case: Case, **steps: float) -> tuple[float, float, float, float]:
    """Time per simulated second [s], depth at the end [m], the distance along x [m], and the largest energy over that
    of the start."""
    robot = ls.Robot("body", gravity=(0, 0, -G))
    robot.add_link("body", case.body, ls.JointFree())
    robot.add_contact("floor", "body", ls.ShapePlane())
    model = robot.build()
    q, v = model.neutral(), np.zeros(model.nv)
    q[6], v[3] = case.half + case.height, case.speed
    motion = ls.simulate(model, DURATION, q, v, **steps)
    time = smallest(lambda: ls.simulate(model, DURATION, q, v, **steps)) / DURATION
    found = ls.energy(model, motion.q, motion.v)
    energy = found.kinetic + found.gravitational
    return time, case.half - motion.q[-1, 6], motion.q[-1, 4], float(energy.max() / energy[0])


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


WALLS = (((0, 0, 1), (0, 0, 0)), ((-1, 0, 0), (PIT, 0, 0)), ((1, 0, 0), (-PIT, 0, 0)), ((0, -1, 0), (0, PIT, 0)),
         ((0, 1, 0), (0, -PIT, 0)))  # fmt: skip


def _starts(count: int) -> np.ndarray:
    """Places of the bodies of a heap above a pit, (count, 3) [m]."""
    rng, places = np.random.default_rng(0), []
    for k in range(count):
        layer, rest = divmod(k, 9)
        i, j = divmod(rest, 3)
        shift = 0.2 * RADIUS * rng.normal(size=2)
        places.append(
            [(i - 1) * 2.6 * RADIUS + shift[0], (j - 1) * 2.6 * RADIUS + shift[1], (1.2 + 2.5 * layer) * RADIUS]
        )
    return np.array(places)


def heap_of_lissom(shape: str, count: int) -> tuple[float, float]:
    """Time per simulated second of a heap that falls, and of the heap at rest [s]."""
    side = 1.6 * RADIUS
    body = (
        ls.RigidBody.sphere(RADIUS, material=SOFT) if shape == "balls" else ls.RigidBody.box(*[side] * 3, material=SOFT)
    )
    robot = ls.Robot("heap", gravity=(0, 0, -G))
    for k in range(count):
        robot.add_link(f"{k}", body, ls.JointFree())
    for k, (normal, place) in enumerate(WALLS):
        g = np.eye(4)
        g[:3, 3] = place
        robot.add_contact(f"wall {k}", ls.EVERYTHING, ls.ShapePlane(normal), placement=g)
    robot.add_mutual_contacts()
    model = robot.build()
    q = model.neutral().reshape(count, 7)
    q[:, 4:] = _starts(count)
    times, start, v, held = [], q.ravel(), np.zeros(model.nv), model
    for duration in (1.0, 2.0, 1.0):
        run = lambda: ls.simulate(held, duration, start, v, dt=2e-3, t_eval=[duration])  # noqa: B023, E731
        motion = run()
        if duration == 1.0:
            times.append(smallest(run, 3))
        start, v, held = motion.q[-1], motion.v[-1], model.anchored(motion.anchors)
    return times[0], times[1]


def heap_of_mujoco(shape: str, count: int) -> tuple[float, float]:
    """As `heap_of_lissom`, with a stiffness at which the lowest bodies rest at about the same depth."""
    import mujoco

    size = (
        f'type="sphere" size="{RADIUS}"'
        if shape == "balls"
        else f'type="box" size="{" ".join(["%g" % (0.8 * RADIUS)] * 3)}"'
    )
    law = 'solref="-2000 -54" solimp="0.9 0.9 1e-6" friction="0.5 0 0" condim="3"'
    walls = "".join(
        f'<geom type="plane" size="2 2 .1" pos="{" ".join(map(str, p))}" zaxis="{" ".join(map(str, n))}" {law}/>'
        for n, p in WALLS
    )
    bodies = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom {size} density="1000" {law}/></body>' for x, y, z in _starts(count)
    )
    options = '<option timestep="0.002" cone="elliptic"/><size memory="200M"/>'
    text = f"<mujoco>{options}<worldbody>{walls}{bodies}</worldbody></mujoco>"
    model: Any = mujoco.MjModel.from_xml_string(text)  # type: ignore[attr-defined]
    data: Any = mujoco.MjData(model)  # type: ignore[attr-defined]

    def falls() -> None:
        mujoco.mj_resetData(model, data)  # type: ignore[attr-defined]
        mujoco.mj_step(model, data, 500)  # type: ignore[attr-defined]

    falling = smallest(falls, 3)
    mujoco.mj_step(model, data, 1000)  # type: ignore[attr-defined]
    return falling, smallest(lambda: mujoco.mj_step(model, data, 500), 3)  # type: ignore[attr-defined]


def main() -> None:
    """Print a row for each body and program."""
    print(
        f"{'body':18s} {'program':20s} {'ms per second':>14s} {'depth [mm]':>11s} {'distance [m]':>13s} {'energy':>7s}"
    )
    for case in CASES:
        depth = 0.0
        for steps in ({"rtol": 1e-6}, {"rtol": 1e-3}, {"dt": 2e-3}):
            time, found, way, energy = of_lissom(case, **steps)
            depth = depth or found
            label = "lissom, " + "".join(f"{name} {value:g}" for name, value in steps.items())
            print(f"{case.name:18s} {label:20s} {1e3 * time:14.2f} {1e3 * found:11.4f} {way:13.4f} {energy:7.3f}")
        for step in (2e-3, 2e-4):
            time, found, way = of_mujoco(case, depth, step)
            label = f"MuJoCo, {1e3 * step:g} ms"
            print(f"{case.name:18s} {label:20s} {1e3 * time:14.2f} {1e3 * found:11.4f} {way:13.4f}")
    print(f"\n{'heap':12s} {'program':14s} {'falling':>10s} {'at rest':>10s}   [ms per second], steps of 2 ms")
    for shape, count in (("balls", 50), ("boxes", 20)):
        rows = {"lissom": heap_of_lissom(shape, count), "MuJoCo": heap_of_mujoco(shape, count)}
        for program, times in rows.items():
            print(f"{count} {shape:9s} {program:14s} {1e3 * times[0]:10.1f} {1e3 * times[1]:10.1f}")
        ratios = [a / b for a, b in zip(*rows.values())]
        print(f"{count} {shape:9s} {'ratio':14s} {ratios[0]:10.2f} {ratios[1]:10.2f}")


if __name__ == "__main__":
    main()
