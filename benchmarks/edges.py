"""Short calls, derivatives, loops, elements and first results, beside peers, in one run on one core.

    python benchmarks/edges.py

Times are processor times, the least of many repetitions, with a new state at each call; ratios compare what one call of
a public function costs in both libraries, or one way of lissom with another. Pinocchio's robots are those of the same
files. Rows of growth give the exponent of the time over the number of links.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LISSOM_CORES", "1")

import itertools
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from robots import pinocchio_arm, rod_chain, seven_revolute_arm
from run import in_kernel
from timing import derivatives_in_kernel

import lissom as ls

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
SECONDS, ROWS = 0.6, 256
LINKS = (10, 20, 40, 80)  # of chains
FIRST = """
import re, time
{code}
peak = re.search("VmHWM: *([0-9]+)", open("/proc/self/status").read().replace("\\t", " "))
print(time.process_time(), float(peak[1]) / 1024)
"""
FIRST_OF = {
    "lissom": "import lissom as ls\nmodel = ls.load_urdf({path!r}).build()\n"
    "ls.forward_dynamics(model, model.neutral(), [0.0] * model.nv)",
    "Pinocchio": "import pinocchio as pin, numpy as np\nmodel = pin.buildModelFromUrdf({path!r})\n"
    "pin.aba(model, model.createData(), pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv))",
    "MuJoCo": "import mujoco\nmodel = mujoco.MjModel.from_xml_path({path!r})\nmujoco.mj_forward(model, "
    "mujoco.MjData(model))",
}


def least(call: Callable[[int], object], seconds: float = SECONDS, inner: int = 5) -> float:
    """Least processor time of a call with the number of the call [µs]."""
    call(0)
    found, stop, number = np.inf, time.perf_counter() + seconds, itertools.count()
    while time.perf_counter() < stop:
        some = [next(number) for _ in range(inner)]
        began = time.process_time_ns()
        for k in some:
            call(k)
        found = min(found, (time.process_time_ns() - began) / inner)
    return 1e-3 * found


def states(model: ls.Model, count: int = 64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, v and a, of which calls take one after the other."""
    rng = np.random.default_rng(0)
    q = ls.integrate(model, np.tile(model.neutral(), (count, 1)), 0.3 * rng.normal(size=(count, model.nv)))
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def row(what: str, mine: float, other: float, aim: str, unit: str = "µs") -> None:
    """Print one row."""
    print(f"{what:66s}{mine:12.4g}{other:12.4g} {unit:3s}{mine / other:8.2f}{aim:>7s}", flush=True)


def humanoid() -> tuple[ls.Model, Any]:
    """A humanoid robot of a public file on a free base, in lissom and in Pinocchio."""
    import example_robot_data
    import pinocchio as pin

    path = example_robot_data.load("icub").urdf
    return ls.load_urdf(path, base=ls.JointFree()).build(), pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())


def derivatives() -> None:
    """Dynamics and their derivatives from Python, beside Pinocchio, of an arm and of a humanoid robot."""
    beside_pinocchio("7R arm", seven_revolute_arm(), pinocchio_arm(), ("3", "2", "1.3", "1.3"))
    beside_pinocchio("humanoid", *humanoid(), ("2", "1.5", "-", "-"))


def beside_pinocchio(name: str, model: ls.Model, other: Any, aims: tuple[str, ...]) -> None:
    """The rows of one robot."""
    import pinocchio as pin

    q, v, a = states(model)
    data, mass = other.createData(), np.zeros(other.nv)
    theirs = [pin.randomConfiguration(other, -np.ones(other.nq), np.ones(other.nq)) for _ in q]
    calls: tuple[tuple[str, Callable[[int], Any], Callable[[int], Any]], ...] = (
        ("derivatives of forward dynamics",
         lambda k: ls.forward_dynamics_derivatives(model, q[k % 64], v[k % 64]),
         lambda k: pin.computeABADerivatives(other, data, theirs[k % 64], v[k % 64], mass)),
        ("derivatives of inverse dynamics",
         lambda k: ls.inverse_dynamics_derivatives(model, q[k % 64], v[k % 64], a[k % 64]),
         lambda k: pin.computeRNEADerivatives(other, data, theirs[k % 64], v[k % 64], a[k % 64])),
        ("mass matrix",
         lambda k: ls.mass_matrix(model, q[k % 64]),
         lambda k: pin.crba(other, data, theirs[k % 64])),
        ("forward dynamics",
         lambda k: ls.forward_dynamics(model, q[k % 64], v[k % 64]),
         lambda k: pin.aba(other, data, theirs[k % 64], v[k % 64], mass)),
    )  # fmt: skip
    for (what, mine, peer), aim in zip(calls, aims):
        row(f"{what}, {name}, / Pinocchio", least(mine), least(peer), aim)
    many = states(model, ROWS)
    for what, (call, *given) in {
        "mass matrix": (ls.mass_matrix, many[0]), "forward dynamics": (ls.forward_dynamics, *many[:2])
    }.items():  # fmt: skip
        batch = least(partial(_all, call, model, given), inner=1) / ROWS
        row(
            f"{what}, {name}: a state of a batch of {ROWS} / alone",
            batch,
            least(partial(_one, call, model, given)),
            "0.6",
        )


def _all(call: Callable[..., Any], model: ls.Model, given: list[np.ndarray], _: int) -> Any:
    return call(model, *given)


def _one(call: Callable[..., Any], model: ls.Model, given: list[np.ndarray], k: int) -> Any:
    return call(model, *(x[k % len(x)] for x in given))


def growth() -> None:
    """Exponents of derivatives over the number of links of a chain."""
    found: dict[str, list[float]] = {"forward": [], "inverse": []}
    for count in LINKS:
        robot = ls.Robot("chain")
        for k in range(count):
            joint = ls.JointRevolute((0, 1, 0) if k % 2 else (0, 0, 1))
            place = np.eye(4)
            place[0, 3] = 0.1 if k else 0.0
            body = ls.RigidBody(0.1, com=(0.05, 0, 0), inertia=(1e-4, 1e-4, 1e-4))
            robot.add_link(f"link{k}", body, joint, parent=f"link{k - 1}" if k else None, placement=place)
        model = robot.build()
        given = [*states(model)]
        found["forward"].append(least(partial(_one, ls.forward_dynamics_derivatives, model, given[:2])))
        found["inverse"].append(least(partial(_one, ls.inverse_dynamics_derivatives, model, given)))
    slopes = [np.polyfit(np.log(LINKS), np.log(times), 1)[0] for times in found.values()]
    row(f"exponents over {LINKS[0]} to {LINKS[-1]} links: derivatives of FD / of ID", *slopes, "1", "-")


def short_calls() -> None:
    """One step of `simulate`, of a rollout and of an environment over one of a Stepper."""
    description = seven_revolute_arm().description.with_({f"link{k}.joint.damping": 2.0 for k in range(7)})
    for k in range(7):
        description.add_joint_actuator(f"motor {k}", f"link{k}")
    model = description.build()
    rng, none = np.random.default_rng(0), np.zeros(7)
    u, q, v = rng.uniform(-5.0, 5.0, (64, 7)), 0.1 * rng.normal(size=7), 0.1 * rng.normal(size=7)
    stepper = ls.Stepper(model, dt=0.01)
    step = least(lambda k: stepper.step(u[k % 64]), inner=20)
    row("simulate, one step / step of a Stepper, 7R arm",
        least(lambda k: ls.simulate(model, 0.01, q, v, u[k % 64], dt=0.01)), step, "10")  # fmt: skip
    row("rollout, one step / step of a Stepper, 7R arm",
        least(lambda k: ls.rollout(model, q, v, u[k % 64][None], dt=0.01)), step, "4")  # fmt: skip

    @dataclass(frozen=True, eq=False)
    class Hold(ls.gym.Task):
        """Hold the arm upright."""

        model: Any = field(default_factory=lambda: model)
        most: Any = 5.0
        period: float = 0.01
        steps: int = 1
        limit: int = 10**6

        def start(self, random: np.random.Generator) -> Any:
            """At rest."""
            return ls.gym.TaskStart(q=none)

        def observe(self, state: Any) -> np.ndarray:
            """All coordinates and velocities."""
            return np.concatenate([state.q, state.v], axis=1)

        def reward(self, state: Any) -> np.ndarray:
            """The negative square of the coordinates."""
            return -(state.q**2).sum(axis=1)

    environment = ls.gym.environment(Hold())
    environment.reset(seed=0)
    row("one environment, one step / step of a Stepper, 7R arm",
        least(lambda k: environment.step(0.2 * u[k % 64]), inner=20), step, "1.5")  # fmt: skip


def elements() -> None:
    """Steps of finite elements by a nonlinear law, over those by the linear one."""
    from deformable_bodies import LINEAR, RUBBER, elements, robot

    whole, mesh = elements((4, 1), 1)
    times = []
    for law in (RUBBER, LINEAR):
        model = robot(ls.DeformableBody(whole, mesh, law, 1070.0))
        times.append(least(partial(_motion, model), inner=1) / 20)
    row(f"finite elements, {len(mesh.cells)} cells, a step: neo-Hookean / linear law", *times, "5")


def _motion(model: ls.Model, _: int) -> Any:
    return ls.simulate(model, 0.1, dt=5e-3)


def loops_and_derivatives() -> None:
    """Derivatives of equilibria and of rollouts over what they are derivatives of, and of the chain of rods."""
    import fin_ray_finger
    import parallel_robot

    model = parallel_robot.build()
    rest = ls.solve_statics(model)
    times = (least(lambda k: ls.equilibrium_derivatives(rest), inner=1),
             least(lambda k: ls.solve_statics(model), inner=1))  # fmt: skip
    row("derivatives of an equilibrium / equilibrium, parallel robot", *times, "3")
    arm = ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build()
    rest = ls.solve_statics(arm, [10.0, 0, 0, 0, 0])
    times = (least(lambda k: ls.equilibrium_derivatives(rest), inner=1),
             least(lambda k: ls.solve_statics(arm, [10.0 + 1e-3 * (k % 7), 0, 0, 0, 0]), inner=1))  # fmt: skip
    row("derivatives of an equilibrium / equilibrium, soft arm", *times, "3")
    rolled = ls.rollout(arm, u=[10.0, 0, 0, 0, 0], dt=0.01, steps=100)
    paths = [f"arm.{name}" for name in ("material.young", "material.density", "material.viscosity", "length")]
    ones = np.ones((101, arm.nq))
    times = (least(lambda k: rolled.backward(ones, parameters=paths), inner=1),
             least(lambda k: rolled.backward(ones), inner=1))  # fmt: skip
    row("backward with 4 design values / without, soft arm", *times, "3")
    chain = rod_chain()
    row("ID with its derivatives / ID in kernels, chain of 4 rods", derivatives_in_kernel(chain), in_kernel(chain), "6")
    for name, one in (("fin-ray finger", fin_ray_finger.robot().build()), ("parallel robot", model)):
        given = [np.tile(ls.assemble(one), (64, 1)), np.zeros((64, one.nv))]
        row(f"derivatives of forward dynamics / forward dynamics, {name}",
            least(partial(_one, ls.forward_dynamics_derivatives, one, given), inner=1),
            least(partial(_one, ls.forward_dynamics, one, given), inner=1), "-")  # fmt: skip


def first_results() -> None:
    """Processor time and memory of a process that imports a library, reads the 7R arm and computes once. Linux only."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        urdf, mjcf = Path(folder) / "arm.urdf", Path(folder) / "arm.xml"
        robot = seven_revolute_arm().description
        ls.save_urdf(robot, urdf)
        ls.save_mjcf(robot, mjcf)
        found = {}
        for name, code in FIRST_OF.items():
            path = str(mjcf if name == "MuJoCo" else urdf)
            script, runs = FIRST.format(code=code.format(path=path)), []
            for _ in range(3):
                done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
                runs.append([float(x) for x in done.stdout.split()[-2:]])
            found[name] = np.min(runs, axis=0)
    for name in ("Pinocchio", "MuJoCo"):
        row(f"import, file and first result / {name}: time", found["lissom"][0], found[name][0], "-", "s")
        row(f"import, file and first result / {name}: memory", found["lissom"][1], found[name][1], "-", "MB")


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(", ".join(f"{name} {version(name)}" for name in ("lissom", "warp-lang", "numpy", "pin", "mujoco")))
    print(f"{'':66s}{'lissom':>12s}{'other':>12s}{'':4s}{'ratio':>8s}{'aim':>7s}")
    for part in (derivatives, growth, short_calls, elements, loops_and_derivatives, first_results):
        part()


if __name__ == "__main__":
    main()
