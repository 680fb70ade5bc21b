"""Steps per second of many copies of the cable-driven manipulator, beside PyElastica and soromox, in one run.

    python benchmarks/environments.py [steps of a long run]

lissom: `vector_environment` of TaskReach with 1, 64 and 1024 copies and steps of 10 ms, each its own action, under
random actions, with observations, rewards and restarts of episodes. Beside it the steps alone, without the task.

PyElastica: a Python loop, as its users write it, of the same tapered rod under its weight, 50 elements, no tendons.
Twice: with the rod's viscosity, by forces of ours that Numba compiles, whose stable step is that of diffusion; and
without any, which is not the same rod. soromox: its constant strains, four segments of six, so as many coordinates,
each of its mean radius, with viscosity and without tendons, classical Runge-Kutta steps, 16 copies by vmap and jit.
The steps of both are the longest of a ladder by halves with which nothing blows up in 0.1 s and 10 ms.

A number takes so many steps, of all 64 copies together, in a long run and prints how the memory of the process went.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lissom as ls
from lissom.launch.cores import cores
from lissom.stepping.stepper import Copies

PERIOD, ELEMENTS = 0.01, 50
LENGTH, BASE, TIP, YOUNG, DENSITY, VISCOSITY = 0.5, 0.03, 0.015, 1e6, 1000.0, 1e4
MANY = (1, 64, 1024)


def rate(call: Callable[[], Any], count: int, seconds: float = 3.0) -> float:
    """Most of `count` things per second that calls have done in one of three rounds."""
    best = 0.0
    for _ in range(3):
        began, done = time.perf_counter(), 0
        while (spent := time.perf_counter() - began) < seconds / 3 or done == 0:
            call()
            done += count
        best = max(best, done / spent)
    return best


def lissom_rates(copies: int) -> tuple[float, float]:
    """Steps per second with the task around them, and alone."""
    task = ls.gym.TaskReach(period=PERIOD, steps=1, limit=200)
    env = ls.gym.vector_environment(task, copies, autoreset="same_step")
    env.reset(seed=0)
    env.action_space.seed(0)
    random = np.random.default_rng(0)
    actions = [random.uniform(-1.0, 1.0, (copies, task.n_actions)) for _ in range(16)]
    turn = iter(range(10**9))
    whole = rate(lambda: env.step(actions[next(turn) % 16]), copies)
    bare = Copies(task.model, copies, dt=PERIOD)
    bare.place(range(copies), *(np.zeros((copies, n)) for n in (task.model.nq, task.model.nv, task.model.nu)))
    inputs = [task.inputs(x) for x in actions]
    return whole, rate(lambda: bare.advance(inputs[next(turn) % 16]), copies)


def elastica_system(is_viscous: bool) -> tuple[Any, Any]:
    """PyElastica's rod under its weight."""
    import elastica as ea

    class System(ea.BaseSystemCollection, ea.Constraints, ea.Forcing):
        """The system of PyElastica, with the features that the run needs."""

    class Viscosity(ea.NoForces):
        """Internal forces and couples 3η A, η A and 3η J, η Jₓ times rates of strain, as the library's."""

        def apply_forces(self, system: Any, time: float = 0.0) -> None:
            add_viscosity(
                system.velocity_collection, system.omega_collection, system.director_collection, system.tangents,
                system.lengths, system.radius, system.external_forces, system.external_torques,
            )  # fmt: skip

    middle = (np.arange(ELEMENTS) + 0.5) / ELEMENTS
    add_viscosity = viscosity()
    system = System()
    rod = ea.CosseratRod.straight_rod(
        ELEMENTS, np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), LENGTH,
        BASE + middle * (TIP - BASE), DENSITY, youngs_modulus=YOUNG, shear_modulus=YOUNG / 3.0,
    )  # fmt: skip
    system.append(rod)
    system.constrain(rod).using(ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,))
    system.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array([0.0, 0.0, -9.81]))
    if is_viscous:
        system.add_forcing_to(rod).using(Viscosity)
    system.finalize()
    return system, rod


def viscosity() -> Any:
    """The compiled loop over elements."""
    from numba import njit

    @njit(cache=False)
    def add(v: Any, w: Any, Q: Any, t: Any, length: Any, r: Any, force: Any, torque: Any) -> None:
        turning = np.zeros((3, length.shape[0]))  # in the world; rows of Q are the directors
        for k in range(length.shape[0]):
            for i in range(3):
                turning[i, k] = Q[0, i, k] * w[0, k] + Q[1, i, k] * w[1, k] + Q[2, i, k] * w[2, k]
        for k in range(length.shape[0]):
            area = VISCOSITY * np.pi * r[k] ** 2
            e = (v[:, k + 1] - v[:, k]) / length[k]
            x, y = turning[:, k], t[:, k]
            e[0] -= x[1] * y[2] - x[2] * y[1]
            e[1] -= x[2] * y[0] - x[0] * y[2]
            e[2] -= x[0] * y[1] - x[1] * y[0]
            along = e[0] * y[0] + e[1] * y[1] + e[2] * y[2]
            pull = area * (e + 2.0 * along * y)
            couple = np.array([y[1] * pull[2] - y[2] * pull[1], y[2] * pull[0] - y[0] * pull[2],
                               y[0] * pull[1] - y[1] * pull[0]]) * length[k]  # fmt: skip
            for i in range(3):
                force[i, k] += pull[i]
                force[i, k + 1] -= pull[i]
                for j in range(3):
                    torque[i, k] += Q[i, j, k] * couple[j]
        for k in range(length.shape[0] - 1):
            inertia = VISCOSITY * np.pi * (0.5 * (r[k] + r[k + 1])) ** 4 / 4.0
            bend = (turning[:, k + 1] - turning[:, k]) / (0.5 * (length[k] + length[k + 1]))
            y = t[:, k]
            along = bend[0] * y[0] + bend[1] * y[1] + bend[2] * y[2]
            couple = inertia * (3.0 * bend - along * y)
            for i in range(3):
                for j in range(3):
                    torque[i, k] += Q[i, j, k] * couple[j]
                    torque[i, k + 1] -= Q[i, j, k + 1] * couple[j]

    return add


def elastica_rate(is_viscous: bool) -> tuple[float, float, float]:
    """Its longest stable step [s], steps of 10 ms per second, and how far its tip has sunk in 0.1 s [m]."""
    import elastica as ea

    def run(dt: float, duration: float) -> tuple[float, Any]:
        system, rod = elastica_system(is_viscous)
        step = ea.PositionVerlet().step
        t, count = np.float64(0.0), round(duration / dt)
        began = time.perf_counter()
        for _ in range(count):
            t = step(system, t, np.float64(dt))
        return (time.perf_counter() - began) / count, rod.position_collection.copy()

    dt = 4e-4
    with np.errstate(all="ignore"):
        while True:
            run(dt, 2 * dt)  # compile
            spent, places = run(dt, 0.1)
            stretch = np.linalg.norm(np.diff(places, axis=1), axis=0) * ELEMENTS / LENGTH - 1.0
            if np.abs(stretch).max() < 0.1:  # NaN is not
                return dt, dt / PERIOD / spent, float(places[2, -1])
            dt *= 0.5


def soromox_rate(copies: int) -> tuple[float, float]:
    """Its longest stable step [s], and steps of 10 ms per second."""
    import jax
    import jax.numpy as jnp
    from soromox.systems.components.links import LinkSpec
    from soromox.systems.pcs.pcs import PCS
    from soromox.systems.pcs.structures import PCSStructure

    moduli = {"young_modulus": YOUNG, "shear_modulus": YOUNG / 3.0, "material_damping_coefficient": VISCOSITY}
    common = {"length": LENGTH / 4, "density": DENSITY, "reference_strain": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], **moduli}
    links = [LinkSpec.circular(radius=BASE + (k + 0.5) / 4 * (TIP - BASE), **common) for k in range(4)]
    structure = PCSStructure(num_gauss_points=5, strain_selector=[True] * 24)
    system: Any = PCS.from_links(links, structure=structure, gravity=jnp.array([0.0, 0.0, -9.81]))

    def step(y: Any, dt: Any) -> Any:
        a = system.forward_dynamics(0.0, y)
        b = system.forward_dynamics(0.0, y + 0.5 * dt * a)
        c = system.forward_dynamics(0.0, y + 0.5 * dt * b)
        d = system.forward_dynamics(0.0, y + dt * c)
        return y + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)

    def several(y: Any, dt: Any, count: Any) -> Any:
        return jax.lax.fori_loop(0, count, lambda _, x: step(x, dt), y)

    run = jax.jit(jax.vmap(several, in_axes=(0, None, None)))
    y = jnp.asarray(0.01 * np.random.default_rng(0).normal(size=(copies, 48)))
    dt = 2.5e-5
    while True:
        end = np.asarray(run(y, dt, round(PERIOD / dt)))
        if np.isfinite(end).all() and np.abs(end).max() < 1e3:
            break
        dt *= 0.5
    count = max(1, round(PERIOD / dt))
    return dt, rate(lambda: run(y, dt, count).block_until_ready(), copies)


def long_run(steps: int) -> None:
    """So many steps of 64 copies together, and the memory of the process on the way."""
    env = ls.gym.vector_environment(ls.gym.TaskReach(period=PERIOD, steps=1, limit=200), 64)
    env.reset(seed=0)
    random, shown = np.random.default_rng(0), max(1, steps // 64 // 10)
    for k in range(steps // 64):
        env.step(random.uniform(-1.0, 1.0, (64, 5)))
        if k % shown == shown - 1:
            print(f"{64 * (k + 1):10d} steps of all copies: {memory():8.2f} MB", flush=True)


def memory() -> float:
    """Memory of the process [MB]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Print the table, or the memory."""
    if sys.argv[1:]:
        long_run(int(sys.argv[1]))
        return
    print(f"steps of 10 ms per second, lissom on {cores()} cores")
    found = {}
    for copies in MANY:
        whole, bare = lissom_rates(copies)
        found[copies] = whole
        print(f"lissom, {copies:5d} copies{whole:12.0f}   without the task{bare:12.0f}", flush=True)
    most = max(found.values())
    model = ls.gym.TaskReach().model
    fall = ls.simulate(model, 0.1, rtol=1e-8, atol=1e-10, t_eval=[0.1]).q[-1]
    print(f"its tip after 0.1 s without tension at {1e3 * ls.frame_pose(model, fall, 'arm')[2, 3]:.1f} mm")
    for name, is_viscous in (("with viscosity", True), ("without", False)):
        dt, each, tip = elastica_rate(is_viscous)
        print(f"PyElastica {name:15s}{each:11.2f}   in steps of {dt:.1e} s, tip at {1e3 * tip:.1f} mm; "
              f"lissom / this: {most / each:.0f}", flush=True)  # fmt: skip
    dt, each = soromox_rate(16)
    print(f"soromox, 16 copies       {each:12.1f}   in steps of {dt:.1e} s; lissom / this: {most / each:.0f}")


if __name__ == "__main__":
    main()
