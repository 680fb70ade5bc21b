"""What derivatives of motions cost beside the motions, and how exact they are, in one run.

    python benchmarks/gradients.py

Each robot moves by 500 steps of SDIRK, the default of `rollout`, on one core. Beside its rollout stand the pass
backwards for the derivatives of one function by the start and by every input, the same with design values, whose number
stands in brackets, and the pass forwards along one direction. `simulate` by generalised-α, with its default tolerance
and half as many stages, stands there too. The last columns: how far the derivative along a direction of start and
inputs is from differences of the motion, and products forwards and backwards from each other.
"""

from __future__ import annotations

import dataclasses
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("LISSOM_CORES", "1")

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
STEPS, ROUNDS = 500, 5
Case = tuple[ls.Model, np.ndarray, Any, float, list[str]]  # model, start, inputs, size of steps, design values


def cdm() -> Case:
    """The cable-driven manipulator."""
    return ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build(), np.zeros(24), 0.0, 0.01, ["arm.material.young"]


def arm_in_a_pipe() -> Case:
    """The same in a pipe that it touches."""
    import cdm_contact

    model = cdm_contact.robot().build()
    return model, model.neutral(), 0.0, 2e-3, ["arm.material.young"]


def arm_that_sticks() -> Case:
    """The same, pressed against the wall, which friction holds it at."""
    import cdm_contact

    robot = cdm_contact.robot()
    friction = {"friction": 0.8, "stick_stiffness": 1e3, "stick_damping": 5e-3}
    robot.contacts["pipe"] = dataclasses.replace(robot.contacts["pipe"], **friction)
    model = robot.build()
    return model, ls.solve_statics(model, cdm_contact.HELD).q, cdm_contact.HELD, 2e-3, ["arm.material.young"]


def parallel_robot() -> Case:
    """A robot with loops, from its equilibrium."""
    import parallel_robot

    model = parallel_robot.build()
    return model, ls.solve_statics(model).q, 0.0, 2e-3, ["gravity[2]"]


def industrial_arm() -> Case:
    """A rigid arm with six motors."""
    return ls.load_robot(EXAMPLES / "robots" / "ur10.yaml").build(), np.zeros(6), 0.0, 2e-3, ["gravity[2]"]


def pressed_finger() -> Case:
    """A soft finger that a tendon presses onto a plane, on which it slides and sticks."""
    robot, below = ls.Robot("finger"), np.eye(4)
    soft = ls.Material(young=5e5, poisson=0.45, density=1100, viscosity=2e3)
    basis = ls.BasisLegendre(bending_y=3, elongation=1)
    robot.add_link("finger", ls.Rod(0.2, ls.SectionCircle((0.012, 0.008)), basis, soft))
    robot.add_tendon("flexor", "finger", lambda s: (0.0, -0.008))
    below[2, 3] = -0.03
    law: dict[str, Any] = {"stiffness": 1e4, "friction": 0.6, "stick_stiffness": 1e4}
    robot.add_contact("table", "finger", ls.ShapePlane(), placement=below, **law)
    model = robot.build()
    values = ["finger.length", "finger.material.young", "table.stiffness", "table.placement", "table.friction"]
    return model, model.neutral(), 4.0, 2e-3, values


def least(call: Callable[[], Any]) -> float:
    """Processor time of a step in the best of some rounds [µs]."""
    call()
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return 1e6 * min(times) / STEPS


def measured(model: ls.Model, q0: np.ndarray, held: Any, dt: float, paths: list[str]) -> list[float]:
    """The numbers of a row."""
    rng = np.random.default_rng(1)
    u = held + 0.2 * rng.uniform(0.0, 1.0, (STEPS, model.nu))
    v0 = 0.002 * rng.normal(size=model.nv) * model.dofs.scale
    v0 = ls.rollout(model, q0, v0, dt=dt, steps=1).v[0]  # as loops allow
    options: dict[str, Any] = {"method": "generalized_alpha", "dt": dt}
    motion = ls.rollout(model, q0, v0, u, dt=dt)
    weights = rng.normal(size=motion.v.shape)  # dL/dq
    dv0, du = 0.01 * rng.normal(size=model.nv) * model.dofs.scale, 0.01 * rng.normal(size=u.shape)
    alone = least(lambda: ls.rollout(model, q0, v0, u, dt=dt))
    simulated = least(lambda: ls.simulate(model, STEPS * dt, q0, v0, u[0], **options))
    back = least(lambda: motion.backward(weights))
    design = least(lambda: motion.backward(weights, parameters=paths))
    ahead = least(lambda: motion.forward(dv0=dv0, du=du))
    exact = motion.forward(dv0=dv0, du=du).q
    apart = []
    for h in (1e-1, 1e-2, 1e-3):
        rows = [ls.rollout(model, q0, v0 + c * h * dv0, u + c * h * du, dt=dt).q for c in (-2.0, -1.0, 1.0, 2.0)]
        rows = [ls.difference(model, motion.q, x) for x in rows]
        found = (rows[0] - 8.0 * rows[1] + 8.0 * rows[2] - rows[3]) / (12.0 * h)
        apart.append(np.abs(found - exact).max() / max(np.abs(exact).max(), 1e-300))
    gradient, forwards = motion.backward(weights), np.sum(exact * weights)
    product = np.sum(gradient.u * du) + gradient.v0 @ dv0
    same = abs(forwards - product) / max(abs(forwards), 1e-300)
    return [alone, simulated, back, design, ahead, min(apart), same]


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{'':20s}{'rollout':>9s}{'simulate':>9s}{'back':>7s}{'design':>8s}{'forward':>8s} [µs a step]"
          f"{'back/rollout':>14s}{'both/rollout':>13s}{'differences':>12s}{'products':>9s}")  # fmt: skip
    for make in (cdm, arm_in_a_pipe, arm_that_sticks, pressed_finger, parallel_robot, industrial_arm):
        case = make()
        alone, simulated, back, design, ahead, apart, same = measured(*case)
        name = f"{make.__name__.replace('_', ' ')} ({len(case[-1])})"
        print(f"{name:20s}{alone:9.1f}{simulated:9.1f}{back:7.1f}{design:8.1f}{ahead:8.1f}"
              f"{'':12s}{back / alone:14.2f}{1 + back / alone:13.2f}{apart:12.1e}{same:9.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
