"""What deformable bodies cost: inverse dynamics, mass matrix and derivatives by kind and size, in one run on one core.

    python benchmarks/deformable_bodies.py
    python benchmarks/deformable_bodies.py pustina    # only the ten simulations of Pustina 2025

All in units of the calibration, the inverse dynamics of a chain of four rods (48 degrees of freedom) inside a kernel.
"ID" is inverse dynamics, "M" the mass matrix, "ID'" inverse dynamics with its three derivatives; each of one launch for
one state ("single"), and per state of a launch for eight ("batch"). Neither counts the few µs of the public function.
Bodies whose points move linearly stand beside the rod with as many coordinates, and the integrals of others, which are
native code in kernels or come from JAX before each launch, beside the native rod that moves as they do, where there is
one. The first call is of ID, JAX's compiling included, with the kernels compiled before.

The peers are timed in the same run. scikit-fem and felupe assemble internal forces and tangent of the same finite
elements with the same law, undamped, at the same displacements, and their virtual work is compared. soromox does
forward dynamics of the same segments of constant strain. lissom's ID' has the inertia and its derivatives besides.

The simulations of Pustina 2025 are those of `examples/`, without their pictures and statics: processor time of each in
seconds for a second of motion, the second time that it runs, so that building and compiling do not count.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from robots import rod_chain
from run import in_kernel, smallest

import lissom as ls
from lissom.dynamics import mass_matrix
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import derivative_workspace, run_residual_derivatives
from lissom.launch import buffers, workspace

LENGTH, RADIUS, DENSITY = 0.2, 0.01, 1070.0  # [m], [kg/m³]
ELASTIC = {"young": 3e5, "poisson": 0.4, "damping_time": 0.01}
LINEAR, GREEN = ls.HyperelasticLinear(**ELASTIC), ls.HyperelasticSaintVenantKirchhoff(**ELASTIC)
RUBBER = ls.HyperelasticCompressibleNeoHookean(**ELASTIC)
SLENDER = ls.HyperelasticUniaxial(**ELASTIC)  # of sections that stay rigid
KEPT = ls.HyperelasticNeoHookean(5e4, damping_time=0.01)
TOGETHER = 8  # instances of a batch
SECONDS = 0.4  # of repetitions for each number
MODES = (5, 20)
WIDTH = 52  # of names
HEAD = f"{'':{WIDTH}s}{'n':>4s}" + "".join(f"{name:>9s}" for name in ("ID", "M", "ID'") * 2)


class Case(NamedTuple):
    """A robot of one body, the size of θ that moves its tip by about a tenth of its length, and what stands beside."""

    name: str
    model: ls.Model
    size: float
    beside: str = ""


def robot(body: Any) -> ls.Model:
    """One body, clamped."""
    made = ls.Robot("body")
    made.add_link("body", body)
    return made.build()


def rod(n: int, basis: Any = None) -> ls.Model:
    """A native rod of n coordinates, shared out among its strains, or of a basis."""
    counts = [n // 6 + (k < n % 6) for k in (3, 0, 1, 2, 4, 5)]  # bending first, then elongation, torsion, shear
    basis = basis or ls.BasisLegendre(*(count - 1 if count else None for count in counts))
    material = ls.Material(density=DENSITY, **ELASTIC)
    return robot(ls.Rod(LENGTH, ls.SectionCircle(RADIUS), basis, material))


def affine(x: Any) -> Any:
    """φ of affine motions of six independent strains: stretches along the axes, and shears."""
    import jax.numpy as jnp

    none = 0.0 * x[0]
    columns = [(x[0], none, none), (none, x[1], none), (none, none, x[2]), (none, x[0], none), (none, none, x[0]),
               (none, none, x[1])]  # fmt: skip
    return jnp.array(columns).T / LENGTH


def polynomials(x: Any) -> Any:
    """φ of displacements along x, y and z that are polynomials of x with a part that turns sections."""
    import jax.numpy as jnp

    s = x[0] / LENGTH
    columns = []
    for k in (2, 3, 4):
        slope = k * s ** (k - 1) / LENGTH
        columns += [jnp.array([-x[1] * slope, s**k, 0.0]), jnp.array([-x[2] * slope, 0.0, s**k])]
    return jnp.stack([*columns, jnp.array([s, 0.0, 0.0]), jnp.array([0.0, -x[2] * s, x[1] * s])], axis=1)


def elements(divisions: tuple[int, int], degree: int) -> tuple[ls.KinematicsFiniteElements, ls.DomainTetrahedra]:
    """Finite elements of a cylinder, and their mesh."""
    mesh = ls.DomainTetrahedra(*ls.cylinder_mesh(LENGTH, RADIUS, divisions), degree=2 * degree)
    return ls.KinematicsFiniteElements(mesh, degree), mesh


def in_kernels() -> Iterator[Case]:
    """Bodies whose points move linearly, each after the rod beside which it stands."""
    cylinder = ls.DomainCylinder(LENGTH, RADIUS)
    yield Case("rigid body on a hinge", _hinged(), 1.0)
    yield from _beside_rods("affine motion", affine, 6, cylinder)
    yield from _beside_rods("Ritz, polynomials of x", polynomials, 8, cylinder)
    whole, mesh = elements((12, 2), 2)
    for n in MODES:
        yield Case(f"rod of {n}", rod(n), 1.0)
        for name, law in (("linear", LINEAR), ("Saint Venant-Kirchhoff", GREEN), ("neo-Hookean", RUBBER)):
            body = ls.DeformableBody(whole.reduced(law, DENSITY, modes=n), mesh, law, DENSITY)
            yield Case(f"finite elements in {n} modes, {name}", robot(body), 1e-3, f"rod of {n}")
    small, mesh = elements((4, 1), 1)
    yield Case(f"rod of {small.n}", rod(small.n), 1.0)
    for name, law in (("linear", LINEAR), ("Saint Venant-Kirchhoff", GREEN), ("neo-Hookean", RUBBER)):
        body = ls.DeformableBody(small, mesh, law, DENSITY)
        yield Case(f"finite elements, whole, {name}", robot(body), 1e-3, f"rod of {small.n}")


def _hinged() -> ls.Model:
    made = ls.Robot("rigid")
    made.add_link("body", ls.RigidBody.cylinder(LENGTH, RADIUS, density=DENSITY), ls.JointRevolute((0, 1, 0)))
    return made.build()


def _beside_rods(name: str, function: Any, n: int, domain: Any) -> Iterator[Case]:
    yield Case(f"rod of {n}", rod(n), 1.0)
    body = ls.DeformableBody(ls.KinematicsRitz(function, n), domain, LINEAR, DENSITY)
    yield Case(f"{name}, linear", robot(body), 1e-2, f"rod of {n}")


def other_motions() -> Iterator[Case]:
    """Bodies whose integrals are native code or come from JAX, each after the native rod that moves as they do."""
    cylinder = ls.DomainCylinder(LENGTH, RADIUS)
    strains: list[tuple[str, Any, Any]] = [
        ("constant curvature, planar", ls.KinematicsStrain.constant_curvature(LENGTH, planar=True),
         ls.BasisMonomial(bending_z=0)),
        ("constant curvature and elongation", ls.KinematicsStrain.constant_curvature(LENGTH, elongation=True),
         ls.BasisMonomial(bending_y=0, bending_z=0, elongation=0)),
        ("polynomial curvature of order 2", ls.KinematicsStrain.polynomial_curvature(LENGTH, 2),
         ls.BasisMonomial(bending_y=2, bending_z=2)),
        ("constant strain, 2 pieces", ls.KinematicsStrain.constant_strain(LENGTH, 2),
         ls.BasisPiecewiseConstant(*[2] * 6)),
    ]  # fmt: skip
    for name, motion, basis in strains:
        native = f"the rod, {name}"
        yield Case(native, rod(0, basis), 1.0)
        yield Case(name, robot(ls.DeformableBody(motion, cylinder, SLENDER, DENSITY)), 1.0, native)
    bending = [ls.PrimitiveBending([[1.0]], axis) for axis in "yz"]
    few = [ls.PrimitiveStretch([[1.0]]), *bending]
    many = [ls.PrimitiveStretch([[1.0], [0.0, 1.0]]), ls.PrimitiveTwist([[0.0, 1.0], [0.0, 0.0, 1.0]]),
            *(ls.PrimitiveBending([[1.0], [0.0, 1.0]], axis) for axis in "yz")]  # fmt: skip
    for primitives in (few, many):
        motion = ls.KinematicsVolumePreserving(LENGTH, primitives)
        yield Case(f"volume kept, {motion.n} modes", robot(ls.DeformableBody(motion, cylinder, KEPT, DENSITY)), 0.3)
    function = ls.KinematicsFunction(lambda x, q: x + affine(x) @ q, 6)
    yield Case("affine motion as any function", robot(ls.DeformableBody(function, cylinder, GREEN, DENSITY)), 1e-2)


def state(case: Case, count: int) -> list[np.ndarray]:
    """The same random q, v and a for each of some instances."""
    rng = np.random.default_rng(0)
    rows = case.size * rng.uniform(-1.0, 1.0, (3, case.model.nv))
    return [np.tile(row, (count, 1)) for row in rows]


def launches(case: Case, count: int) -> list[Callable[[], object]]:
    """What computes ID, M and ID' of some instances, with the states in place; integrals that Python gives are kept for
    the last few states, so that each call has a new one there."""
    model, (q, v, a) = case.model, state(case, count)
    forces, _ = run_inverse_dynamics(model, q, v, a, True, True, True, 0.0)
    masses, _ = workspace.filled_workspace(model, "mass_matrix", mass_matrix.mass_matrix_buffers, ("q",), q)
    slopes, _ = derivative_workspace(model, q, v, a, np.zeros((count, model.nu)))
    run_residual_derivatives(model, slopes, 0.0)
    masses.run()
    if not model.calls_python:
        return [forces.run, masses.run, slopes.run]
    return [partial(_run_anew, launch, q, itertools.count(1)) for launch in (forces, masses, slopes)]


def _run_anew(launch: Any, q: np.ndarray, calls: Iterator[int]) -> None:
    launch.host["q"][: len(q)] = q * (1.0 + 1e-7 * next(calls))
    launch.run()


def times(case: Case) -> np.ndarray:
    """ID, M and ID' of one launch for one state, and per state of one for some [µs], shape (2, 3)."""
    return np.array([[smallest(call, SECONDS, inner=5) / count for call in launches(case, count)]
                     for count in (1, TOGETHER)])  # fmt: skip


def table(cases: Iterator[Case], calibration: float, first: bool) -> dict[str, np.ndarray]:
    """Print the rows, with ratios to those beside which they stand."""
    found: dict[str, np.ndarray] = {}
    for case in cases:
        began = time.perf_counter()
        ls.inverse_dynamics(case.model, *(row[0] for row in state(case, 1)))
        spent = time.perf_counter() - began
        own = found[case.name] = times(case) / calibration
        called = f"   first call {spent:.1f} s" if first and case.model.calls_python else ""
        print(f"{case.name:{WIDTH}s}{case.model.nv:4d}" + "".join(f"{x:9.2f}" for x in own.ravel()) + called)
        if case.beside:
            ratio = own / found[case.beside]
            print(f"{f'    over {case.beside}':{WIDTH + 4}s}" + "".join(f"{x:9.2f}" for x in ratio.ravel()))
    return found


def moved(x: np.ndarray) -> np.ndarray:
    """Displacements (m, 3) of points (m, 3), of a body that bends and stretches [m]."""
    s = x[:, 0] / LENGTH
    return 0.02 * LENGTH * np.stack([s - x[:, 2] / RADIUS * s, s**2 + 0.1 * s, s**3], axis=1)


def felupe(mesh: Any, degree: int) -> tuple[Callable[[], object], Callable[[], object], float]:
    """Calls that assemble internal forces with their tangent, and forces alone, by felupe, and the work of the forces
    along `moved` [J].

    Raises:
        ImportError: felupe is not installed.
    """
    import felupe as fem

    first, shear = 3e5 * 0.4 / (1.4 * 0.2), 3e5 / 2.8  # Lamé's constants of ELASTIC
    own = fem.Mesh(np.array(mesh.vertices), np.array(mesh.cells), "tetra")
    if degree == 2:
        own = own.add_midpoints_edges()
    region = fem.RegionTetra(own) if degree == 1 else fem.RegionQuadraticTetra(own)
    field = fem.FieldContainer([fem.Field(region, dim=3)])
    u = moved(own.points)
    field[0].values[:] = u
    law = fem.Hyperelastic(fem.saint_venant_kirchhoff, mu=shear, lmbda=first, k=2)
    body: Any = fem.SolidBody(law, field)
    work = float(body.assemble.vector(field).toarray()[:, 0] @ u.ravel())
    return lambda: (body.assemble.vector(field), body.assemble.matrix(field)), lambda: body.assemble.vector(field), work


def finite_element_peers(calibration: float) -> None:
    """Internal forces and tangent of the same finite elements, whole and in 20 modes, beside scikit-fem and felupe."""
    try:
        import skfem
        from skfem.helpers import ddot, grad
    except ImportError:
        print("scikit-fem: not installed")
        return
    first, shear = 3e5 * 0.4 / (1.4 * 0.2), 3e5 / 2.8  # Lamé's constants of ELASTIC
    one = np.eye(3)[:, :, None, None]

    def strain(F: Any, slope: Any) -> Any:
        return 0.5 * (np.einsum("ca...,cb...->ab...", F, slope) + np.einsum("ca...,cb...->ab...", slope, F))

    def stress(E: Any) -> Any:
        return first * np.einsum("aa...", E) * one + 2.0 * shear * E

    @skfem.LinearForm
    def force(v: Any, w: Any) -> Any:
        F = one + grad(w["u"])
        return ddot(stress(0.5 * (np.einsum("ca...,cb...->ab...", F, F) - one)), strain(F, grad(v)))

    @skfem.BilinearForm
    def tangent(du: Any, v: Any, w: Any) -> Any:
        F = one + grad(w["u"])
        S = stress(0.5 * (np.einsum("ca...,cb...->ab...", F, F) - one))
        along = np.einsum("ab...,bc...->ac...", grad(du), S)
        return ddot(stress(strain(F, grad(du))), strain(F, grad(v))) + ddot(along, grad(v))

    print(f"\n{'finite elements, Saint Venant-Kirchhoff':{WIDTH}s}{'n':>4s}{'forces and tangent [calibrations]':>40s}")
    for name, divisions, degree in (("small", (4, 1), 1), ("fine", (12, 2), 2)):
        whole, mesh = elements(divisions, degree)
        kind = skfem.ElementTetP1() if degree == 1 else skfem.ElementTetP2()
        corners = skfem.MeshTet(mesh.vertices.T.copy(), np.asarray(mesh.cells).T.copy())
        basis = skfem.Basis(corners, skfem.ElementVector(kind), intorder=2 * degree)
        u = np.zeros(basis.N)
        for k in range(3):
            rows = basis.get_dofs(elements=np.arange(corners.nelements)).all([f"u^{k + 1}"])
            u[rows] = moved(basis.doflocs[:, rows].T)[:, k]

        def assemble(basis: Any = basis, u: np.ndarray = u) -> tuple[Any, Any]:
            here = basis.interpolate(u)
            return force.assemble(basis, u=here), tangent.assemble(basis, u=here)

        theirs = smallest(assemble, 2.0, inner=1) / calibration
        print(f"{f'scikit-fem, {name} mesh':{WIDTH}s}{whole.n:4d}{theirs:40.0f}")
        try:
            call, force_alone, work = felupe(mesh, degree)
            same = float(assemble()[0] @ u)
            theirs = smallest(call, 2.0, inner=1) / calibration
            alone = smallest(force_alone, 2.0, inner=1) / calibration
            print(f"{f'felupe, {name} mesh':{WIDTH}s}{whole.n:4d}{theirs:40.0f}   forces alone {alone:.0f}; their work "
                  f"{work:.12g} J, by scikit-fem {same:.12g} J")  # fmt: skip
        except ImportError:
            print("felupe: not installed")
        law = ls.HyperelasticSaintVenantKirchhoff(young=3e5, poisson=0.4)
        motion = whole if degree == 1 else whole.reduced(law, DENSITY, modes=MODES[-1])
        model = robot(ls.DeformableBody(motion, mesh, law, DENSITY))
        each = times(Case("", model, 1e-3))[0] / calibration
        own = each[2]
        label = f"lissom, {name} mesh {'whole, by JAX' if degree == 1 else 'reduced, in kernels'}, ID'"
        line = f"{label:{WIDTH}s}{motion.n:4d}{own:40.1f}"
        print(f"{line}{theirs / own:13.3g} times less than felupe; ID {each[0]:.1f}")


def soromox(calibration: float) -> None:
    """Forward dynamics of equal segments of constant strain from Python, beside soromox."""
    print(f"\n{'segments of constant strain':{WIDTH}s}{'n':>4s}{'forward dynamics [calibrations]':>40s}")
    for pieces in (1, 2, 4):
        n, rng = 6 * pieces, np.random.default_rng(0)
        q, v = 0.1 * rng.normal(size=n), 0.1 * rng.normal(size=n)
        calls = {"lissom, native rod": _lissom_dynamics(rod(0, ls.BasisPiecewiseConstant(*[pieces] * 6)))}
        if pieces < 4:
            motion = ls.KinematicsStrain.constant_strain(LENGTH, pieces)
            body = ls.DeformableBody(motion, ls.DomainCylinder(LENGTH, RADIUS), SLENDER, DENSITY)
            calls["lissom, deformable body"] = _lissom_dynamics(robot(body))
        try:
            calls["soromox"] = _soromox_dynamics(pieces)
        except ImportError:
            print("soromox: not installed")
        for name, call in calls.items():
            call(q, v)
            calls = itertools.count(1)

            def new_state(call: Any = call, q: np.ndarray = q, v: np.ndarray = v, calls: Any = calls) -> object:
                return call(q * (1.0 + 1e-7 * next(calls)), v)  # integrals of the last few states are kept

            each = smallest(new_state, 1.0, inner=1) / calibration
            print(f"{f'{name}, {pieces} pieces':{WIDTH}s}{n:4d}{each:40.2f}")


def _lissom_dynamics(model: ls.Model) -> Callable[[np.ndarray, np.ndarray], object]:
    return lambda q, v: ls.forward_dynamics(model, q, v, np.zeros(0))


def _soromox_dynamics(pieces: int) -> Callable[[np.ndarray, np.ndarray], object]:
    import jax
    import jax.numpy as jnp
    from soromox.systems.components.links import LinkSpec
    from soromox.systems.pcs.pcs import PCS
    from soromox.systems.pcs.structures import PCSStructure

    jax.config.update("jax_enable_x64", True)
    straight = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]  # soromox runs along z
    link = LinkSpec.circular(length=LENGTH / pieces, density=DENSITY, reference_strain=straight, radius=RADIUS,
                             young_modulus=3e5, shear_modulus=3e5 / 2.8, material_damping_coefficient=3e3)  # fmt: skip
    structure = PCSStructure(num_gauss_points=5, strain_selector=[True] * (6 * pieces))
    system: Any = PCS.from_links([link] * pieces, structure=structure, gravity=jnp.array([0.0, 0.0, -9.81]))
    compiled = jax.jit(lambda y: system.forward_dynamics(0.0, y))
    return lambda q, v: compiled(jnp.concatenate([q, v])).block_until_ready()


def simulations() -> Iterator[tuple[str, float, Callable[[], object]]]:
    """Name, duration [s] and motion of the simulations of Pustina 2025, except the third, which is no motion."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import free_arms
    import hybrid_arm
    import inflated_arm
    import shape_regulation
    import soft_tipped_arm
    import trimmed_helicoid

    arm = trimmed_helicoid.build()
    q, u = trimmed_helicoid.start(arm)
    path = trimmed_helicoid.reference(arm, q, u, 1.0).path
    yield "1 trimmed helicoid, closed loop", 1.0, partial(trimmed_helicoid.follow, arm, path, q, 1.0)
    yield "2 hybrid arm, closed loop", hybrid_arm.ENDS[-1], partial(hybrid_arm.perform, hybrid_arm.build())
    yield "4 inflated arm, pressures", 1.0, partial(inflated_arm.inflate, inflated_arm.build(), duration=1.0)
    for number, name in enumerate(free_arms.ARMS, 5):
        yield f"{number} free arm, {name}", 10.0, partial(free_arms.let_go, name, free_arms.build(name))
    follow, law = soft_tipped_arm.follow, soft_tipped_arm.LAWS[0]
    robots = soft_tipped_arm.build(), soft_tipped_arm.build(soft=False)
    yield "9 UR10 with a soft tip, closed loop", 2.0, partial(follow, law, *robots, 2.0)
    yield "10 regulation, closed loop", 15.0, partial(shape_regulation.regulate, shape_regulation.build())


def mixed_tree() -> tuple[ls.Model, np.ndarray, np.ndarray]:
    """A free rigid body that carries a paddle on a hinge and a rod with a deformable block at its end, all undamped;
    and a moving state."""
    import jax.numpy as jnp

    def bent(x: Any, q: Any) -> Any:
        s = x[0] / 0.1
        bend = jnp.stack([-x[2] * s, 0.0 * s, 0.05 * s**2]) * q[0]
        return x + bend + jnp.stack([q[1] * x[0], -0.3 * q[1] * s * x[1], 0.2 * q[1] * s * x[2]])

    robot, material = ls.Robot("mixed", gravity=(0, 0, 0)), ls.Material(young=1e5, poisson=0.5, density=1000)
    rod = ls.Rod(0.3, ls.SectionCircle(0.015), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1), material)
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3)
    block = ls.DeformableBody(ls.KinematicsFunction(bent, 2), ls.DomainBox(0.1, 0.03, 0.02), law, 1000.0)
    robot.add_link("body", ls.RigidBody.box(0.2, 0.12, 0.08, density=200), ls.JointFree())
    robot.add_link("arm", rod, parent="body")
    robot.add_link("block", block, parent="arm")
    robot.add_link("paddle", ls.RigidBody.box(0.2, 0.05, 0.02, density=500), ls.JointRevolute((0, 0, 1)), parent="body")
    model, rng = robot.build(), np.random.default_rng(0)
    turn, rates = 0.3 * rng.normal(size=model.nv), 0.5 * rng.normal(size=model.nv)
    rates[:6] = 4.0, -2.0, 6.0, 0.3, -0.2, 0.1
    return model, ls.integrate(model, model.neutral(), turn * model.dofs.scale), rates * model.dofs.scale


def energy_of_mixed_tree() -> None:
    """Print how long 0.2 s of the mixed tree take, and how well its energy stays."""
    model, q, v = mixed_tree()
    for rtol in (1e-6, 1e-7, 1e-8):
        move = partial(ls.simulate, model, 0.2, q0=q, v0=v, rtol=rtol, atol=1e-2 * rtol)
        move()
        began = time.process_time()
        motion = move()
        spent = time.process_time() - began
        total = np.array([ls.energy(model, *state).total for state in zip(motion.q[::20], motion.v[::20])])
        drift = np.abs(total / total[0] - 1.0).max()
        print(f"{f'free mixed tree, 0.2 s, rtol {rtol:.0e}':{WIDTH}s}{spent:28.2f} s, energy kept to {drift:.0e}")


def pustina() -> None:
    """Print how long the ten simulations of Pustina 2025 take, and a tree of all kinds of bodies."""
    print(f"{'simulations of Pustina 2025':{WIDTH}s}{'of motion':>10s}{'time for a second':>20s}")
    for name, duration, move in simulations():
        move()
        began = time.process_time()
        move()
        print(f"{name:{WIDTH}s}{duration:8.0f} s{(time.process_time() - began) / duration:18.3f} s", flush=True)
    import many_bodies

    spent = many_bodies.recursive_times((20,)).min(axis=0)[0, 1:].max()
    print(f"{'3 inverse dynamics of 20 bodies, one call':{WIDTH}s}{1e6 * float(spent):28.0f} µs")
    energy_of_mixed_tree()


def main() -> None:
    """Print the tables."""
    if "pustina" in sys.argv[1:]:
        pustina()
        return
    buffers.MIN_INSTANCES_PER_THREAD = 10**9  # one launch, so one core
    calibration = in_kernel(rod_chain())
    print(
        f"calibration: inverse dynamics of the chain of 4 rods, in kernel, {calibration:.2f} µs; all in units of it\n"
    )
    ends = f"{'single':>37s}{'batch':>27s}"
    print(f"{'linear motions, in kernels':40s}{ends}\n{HEAD}")
    found = table(in_kernels(), calibration, first=False)
    print("\nfinite elements in 20 modes over a rod of 20 coordinates (asked: at most 2), worst of single and batch:")
    for name in ("linear", "Saint Venant-Kirchhoff"):
        ratio = (found[f"finite elements in 20 modes, {name}"] / found["rod of 20"]).max(axis=0)
        print(f"  {name:24s}ID {ratio[0]:.2f}, M {ratio[1]:.2f}, ID with derivatives {ratio[2]:.2f}")
    print(f"\n{'other motions, by native code or JAX':{WIDTH}s}{ends}\n{HEAD}")
    table(other_motions(), calibration, first=True)
    finite_element_peers(calibration)
    soromox(calibration)
    pustina()
    again = in_kernel(rod_chain())
    print(f"\ncalibration once more: {again:.2f} µs, {again / calibration:.2f} of what everything is in units of")


if __name__ == "__main__":
    main()
