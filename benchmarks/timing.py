"""Times of the derivatives and of what lives on them, beside a calibration kernel, in one run on one core.

    python benchmarks/timing.py

The calibration is the inverse dynamics of a chain of four rods (48 degrees of freedom, 32 nodes) inside a kernel:
divide by it to compare machines. "in kernel" is one instance of a batch. The paper's times (Mathew 2025, Table 3,
MATLAB on another machine) are printed for context.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from robots import rod_chain, seven_revolute_arm
from run import in_kernel, smallest, state

import lissom as ls
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.launch import buffers
from lissom.simulation.inputs import control_law
from lissom.stepping.driver import Motions
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.state import StateDerivative
from lissom.stepping.step_kernel import LONGEST_RUN, room_for, workspace_with_room
from lissom.stepping.step_rows import scheme_numbers

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
SMALL_BATCH = 8  # so many instances still fit in the cache
PAPER = {"CDM": {"bdf": 1.25, "newmark": 24.43}, "serial robot": {"bdf": 2.49, "newmark": 231.0}}


def load(name: str) -> ls.Model:
    """A robot of the gallery."""
    return ls.load_robot(EXAMPLES / "robots" / f"{name}.yaml").build()


def derivatives_in_kernel(model: ls.Model) -> float:
    """Inverse dynamics with its three derivatives, of one instance inside a kernel [µs]."""
    q, v, a = (np.tile(x, (SMALL_BATCH, 1)) for x in state(model))
    w, _ = derivative_workspace(model, q, v, a, np.zeros((SMALL_BATCH, model.nu)))
    run_residual_derivatives(model, w, 0.0)
    return smallest(w.run) / SMALL_BATCH


def numerical_jacobian(model: ls.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Callable[[], Any]:
    """∂ID/∂(q, v, a) by forward differences, all perturbed states in one batch."""
    n, h = model.nv, 1e-7
    zero = np.zeros((n, n))
    rows = [ls.integrate(model, q, np.vstack([np.zeros(n), h * np.eye(n), zero, zero])),
            v + np.vstack([np.zeros(n), zero, h * np.eye(n), zero]),
            a + np.vstack([np.zeros(n), zero, zero, h * np.eye(n)])]  # fmt: skip

    def jacobian() -> np.ndarray:
        tau = ls.inverse_dynamics(model, *rows)
        return (tau[1:] - tau[0]).T / h

    return jacobian


def newton_iteration(model: ls.Model, u: np.ndarray) -> tuple[float, float, float]:
    """Inside the time loop [µs]: a step with a new matrix, a step with a kept one, and a full Newton iteration."""
    f = StateDerivative(model, control_law(model, u, None, None))
    scheme = ls.generalized_alpha()
    rest, nothing = (model.neutral(), np.zeros(model.nv)), np.zeros(0)
    start = ImplicitSteps(model, f, scheme, 1e-6, (1e-8, 1e-8), True).start(*rest, nothing, None)
    w, numbers = (
        workspace_with_room(model, 1, *room_for(model)),
        scheme_numbers(scheme, 1e-6, (1e-8, 1e-8), False, 1e-4),
    )
    motions = Motions(model, 1, scheme, 1e-12, w=w, numbers=numbers)
    motions.put_state(start)
    motions.advance(0.002 * np.arange(101), lambda _, times: f.shown_over(times)[None])
    ends = 0.2 + 0.002 * np.arange(LONGEST_RUN + 1)
    motions.advance(ends, lambda _, times: f.shown_over(times)[None])
    here = motions.state(0.0)
    kept = {name: getattr(here, name).copy() for name in ("q", "v", "a", "ahead")}
    size = w.host["h"].copy()

    def measure(new_matrix_each_step: bool) -> tuple[float, np.ndarray]:
        w.host["h"][:] = size
        if new_matrix_each_step:
            w.host["h"][0, ::2] *= 1.0 + 1e-4  # a changed step asks for a new matrix

        def run() -> None:
            for name, value in kept.items():
                w.host[name][0] = value
            w.host["counts"][:] = 0
            w.run()

        least = smallest(run, inner=1)
        return least / LONGEST_RUN, w.host["counts"][0, 1:3] / LONGEST_RUN

    fresh, count_fresh = measure(True)
    old, count_old = measure(False)
    # fresh = e₁ r + m₁ k and old = e₂ r + m₂ k, r the residual with its solve and k the matrix with its factors
    residual, matrix = np.linalg.solve([count_fresh, count_old], [fresh, old])
    return fresh, old, float(residual + matrix)


def best_of(call: Callable[[], Any], times: int = 5) -> tuple[float, Any]:
    """Least time [s] and the last result."""
    import time

    least, result = np.inf, None
    for _ in range(times):
        began = time.perf_counter()
        result = call()
        least = min(least, time.perf_counter() - began)
    return least, result


def simulations(name: str, model: ls.Model, u: Any, calibration: float) -> None:
    """10 s of a robot by several methods, beside the paper's times."""
    cases = [("bdf, rtol 1e-3, atol 1e-6", "bdf", {"method": "bdf"}),
             ("generalised-α, 10 ms", "", {"method": "generalized_alpha", "dt": 0.01}),
             ("generalised-α, 2 ms", "newmark", {"method": "generalized_alpha", "dt": 0.002})]  # fmt: skip
    exact = ls.simulate(model, 10.0, u=u, rtol=1e-8, atol=1e-10, t_eval=np.linspace(0, 10, 101))
    link = model.links.names[-1]
    tip = ls.frame_pose(model, exact.q, link)[:, :3, 3]
    for label, paper, options in cases:
        if name == "serial robot" and options.get("dt") == 0.002:
            label, options = "generalised-α, 1 ms", options | {"dt": 0.001}  # the paper's step
        seconds, motion = best_of(
            lambda options=options: ls.simulate(model, 10.0, u=u, rtol=1e-3, atol=1e-6, **options)
        )
        at = ls.simulate(model, 10.0, u=u, rtol=1e-3, atol=1e-6, t_eval=exact.t, **options)
        error = np.abs(ls.frame_pose(model, at.q, link)[:, :3, 3] - tip).max()
        context = f"   the paper: {PAPER[name][paper]:.2f} s" if paper in PAPER[name] else ""
        print(f"{f'10 s of the {name}, {label}':48s}{seconds:9.3f} s {seconds / calibration * 1e6:12.0f}   "
              f"{motion.statistics.steps} steps, tip to {error:.1e} m{context}")  # fmt: skip


def short_calls(model: ls.Model, dt: float = 2e-3) -> list[tuple[str, float]]:
    """A step of a stepper, and calls that take one step [µs]."""
    q, v, u = model.neutral(), np.zeros(model.nv), np.zeros(model.nu)
    stepper = ls.Stepper(model, dt)
    return [("Stepper.step", smallest(lambda: stepper.step(u))),
            ("simulate of one step", smallest(lambda: ls.simulate(model, dt, q, v, u, dt=dt))),
            ("rollout of one step", smallest(lambda: ls.rollout(model, q, v, u[None], dt=dt)))]  # fmt: skip


def main() -> None:
    """Print one table."""
    buffers.MIN_INSTANCES_PER_THREAD = 10**9  # one launch, so one core
    chain = rod_chain()
    calibration = in_kernel(chain)
    print(f"{'':48s}{'µs':>9s}{'/ calibration':>15s}")
    print(f"{'calibration: ID of the chain, in kernel':48s}{calibration:9.2f}{1.0:15.2f}")
    cdm = load("cdm")
    for name, model in (("CDM", cdm), ("chain", chain)):
        rows = [(f"ID of the {name}, in kernel", in_kernel(model)),
                (f"ID with three derivatives of the {name}, in kernel", derivatives_in_kernel(model))]  # fmt: skip
        q, v, a = state(model)
        exact = smallest(lambda q=q, v=v, a=a, model=model: ls.inverse_dynamics_derivatives(model, q, v, a))
        numeric = smallest(numerical_jacobian(model, q, v, a))
        rows += [(f"derivatives of the {name}, from Python", exact), (f"by differences of the {name}", numeric)]
        for label, micro in rows:
            print(f"{label:48s}{micro:9.2f}{micro / calibration:15.2f}")
        print(f"numerical / analytical Jacobian of the {name}: {numeric / exact:.1f} (the paper: 8 and 13)")
    fresh, old, iteration = newton_iteration(cdm, 20.0 * np.sin(np.arange(cdm.nu)) ** 2)
    for label, micro in (("step of the CDM with a new matrix", fresh), ("step of the CDM with a kept matrix", old),
                         ("full Newton iteration of the CDM", iteration)):  # fmt: skip
        print(f"{label:48s}{micro:9.2f}{micro / calibration:15.2f}")
    for name, model in (("7R arm", seven_revolute_arm()), ("chain", chain)):
        rows = short_calls(model)
        for label, micro in rows:
            more = f"   {micro / rows[0][1]:.1f} steps" if label != rows[0][0] else ""
            print(f"{f'{label}, {name}':48s}{micro:9.2f}{micro / calibration:15.2f}{more}")
    tensions = np.random.default_rng(0).uniform(0.0, 100.0, (1000, cdm.nu))
    seconds, found = best_of(lambda: ls.solve_statics(cdm, tensions))
    print(f"{'mean of 1000 random statics of the CDM':48s}{1e3 * seconds:9.2f}{1e3 * seconds / calibration:15.2f}   "
          f"{found.iterations.mean():.1f} iterations, residual {found.residual.max():.0e}")  # fmt: skip
    from cdm import tensions as pull

    t = np.linspace(0.0, 10.0, 101)
    simulations("CDM", cdm, ls.Samples(t, np.array([pull(x) for x in t]), smooth=True), calibration)
    simulations("serial robot", load("serial_robot"), None, calibration)


if __name__ == "__main__":
    main()
