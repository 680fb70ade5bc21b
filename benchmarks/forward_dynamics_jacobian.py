"""The Jacobian of forward dynamics of soft chains of 20 and 40 degrees of freedom: lissom beside soromox, in one run.

    python benchmarks/forward_dynamics_jacobian.py

Both take chains of rods of constant strain (twist, two bendings, elongation), 5 and 10 of them. soromox differentiates
its forward dynamics forwards and compiles that; lissom has exact derivatives. The first call counts compiling.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

LENGTH, RADIUS, YOUNG, DENSITY, VISCOSITY = 0.1, 0.02, 1e6, 1000.0, 1e4
GAUSS_POINTS = 5
Jacobian = Callable[[np.ndarray, np.ndarray], np.ndarray]


def lissom_jacobian(rods: int) -> Jacobian:
    """∂a/∂(q, v) of a chain, shape (n, 2n)."""
    import lissom as ls

    robot = ls.Robot("chain", gravity=(0.0, 0.0, -9.81))
    material = ls.Material(young=YOUNG, poisson=0.5, density=DENSITY, viscosity=VISCOSITY)
    basis = ls.BasisLegendre(torsion=0, bending_y=0, bending_z=0, elongation=0)
    for k in range(rods):
        rod = ls.Rod(LENGTH, ls.SectionCircle(RADIUS), basis, material, gauss_points=GAUSS_POINTS)
        robot.add_link(f"rod{k}", rod, parent=f"rod{k - 1}" if k else None)
    model = robot.build()

    def jacobian(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        dq, dv, _ = ls.forward_dynamics_derivatives(model, q, v)
        return np.hstack([dq, dv])

    return jacobian


def soromox_jacobian(rods: int) -> Jacobian:
    """The same by soromox."""
    import jax
    import jax.numpy as jnp
    from soromox.systems.components.links import LinkSpec
    from soromox.systems.pcs.pcs import PCS
    from soromox.systems.pcs.structures import PCSStructure

    straight = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]  # soromox runs along z
    link = LinkSpec.circular(length=LENGTH, density=DENSITY, reference_strain=straight, radius=RADIUS,
                             young_modulus=YOUNG, shear_modulus=YOUNG / 3.0,
                             material_damping_coefficient=VISCOSITY)  # fmt: skip
    active = [True, True, True, False, False, True] * rods
    structure = PCSStructure(num_gauss_points=GAUSS_POINTS, strain_selector=active)
    system: Any = PCS.from_links([link] * rods, structure=structure, gravity=jnp.array([0.0, 0.0, -9.81]))
    compiled = jax.jit(jax.jacfwd(lambda y: system.forward_dynamics(0.0, y)))

    def jacobian(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(compiled(jnp.concatenate([q, v])).block_until_ready())[len(q) :]

    return jacobian


def smallest(call: Callable[[], object], seconds: float = 2.0) -> float:
    """Least time of one call [µs]."""
    least, stop = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < stop:
        began = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - began)
    return least * 1e6


def main() -> None:
    """Print one table."""
    print(f"{'':12s}{'dof':>5s}{'first call':>14s}{'each':>14s}")
    for rods in (5, 10):
        rng = np.random.default_rng(0)
        q, v = 0.1 * rng.normal(size=4 * rods), 0.1 * rng.normal(size=4 * rods)
        each = {}
        for name, make in (("lissom", lissom_jacobian), ("soromox", soromox_jacobian)):
            began = time.perf_counter()
            jacobian = make(rods)
            jacobian(q, v)
            first = time.perf_counter() - began
            each[name] = smallest(partial(jacobian, q, v))
            print(f"{name:12s}{4 * rods:5d}{first:12.2f} s{each[name]:11.0f} µs")
        print(f"soromox / lissom: {each['soromox'] / each['lissom']:.1f}")


if __name__ == "__main__":
    main()
