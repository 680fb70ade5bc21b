"""Elasticity of linear kinematics by native code, for any law: against JAX's integrals, differences and scikit-fem."""

import numpy as np
import pytest

import lissom as ls
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.meshes import box_mesh

jnp = pytest.importorskip("jax.numpy")
YOUNG, POISSON, DENSITY, DAMPING = 1e5, 0.3, 1100.0, 0.02


def stiffening(F):
    """A law with a logarithm, a power and a choice, whose fibres along x resist stretch alone."""
    J, first, along = jnp.linalg.det(F), (F * F).sum(), (F[:, 0] * F[:, 0]).sum()
    fibre = jnp.where(along > 1.0, (along - 1.0) ** 3, 0.0)
    return 2e4 * (first - 3.0 - 2.0 * jnp.log(J)) + 3e4 * jnp.log(J) ** 2 + 1e4 * fibre


LAWS = {
    "neo-Hookean": ls.HyperelasticCompressibleNeoHookean(YOUNG, POISSON, DAMPING),
    "undamped": ls.HyperelasticCompressibleNeoHookean(YOUNG, POISSON),
    "Saint Venant": ls.HyperelasticSaintVenantKirchhoff(YOUNG, POISSON, DAMPING),
    "function": ls.HyperelasticFunction(stiffening, DAMPING),
}


def block(degree, law, modes=None):
    """Kinematics and mesh of a block of finite elements of more coordinates than kernels have Green strains for, or of
    some modes of it."""
    mesh = ls.DomainTetrahedra(*box_mesh((0.6, 0.2, 0.2), (3, 1, 1)), degree=2 * degree)
    elements = ls.KinematicsFiniteElements(mesh, degree)
    return (elements if modes is None else elements.reduced(law, DENSITY, modes=modes)), mesh


def robot(kinematics, mesh, law, gravity=(0.0, 0.0, 0.0)):
    """The body on a wall."""
    found = ls.Robot("block", gravity=gravity)
    found.add_link("block", ls.DeformableBody(kinematics, mesh, law, DENSITY), ls.JointFixed())
    return found


def moving(model):
    """A deformed shape and its rate."""
    rng = np.random.default_rng(3)
    scale = 3e-3 if model.nv > 12 else 0.05
    return scale * rng.normal(size=model.nv), 0.5 * rng.normal(size=model.nv)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("degree, modes", [(1, None), (2, None), (2, 6)], ids=["linear", "quadratic", "modes"])
def test_forces_and_derivatives_are_those_of_jax(degree, modes, law):
    """Forces, energy, stiffness and damping equal those that JAX differentiates from the energy, although native code
    sums once for all points of a cell that have the same strain."""
    model = robot(*block(degree, law, modes), law).build()
    assert not model.calls_python
    assert (model.deforming.pointwise[0] is None) == (law.is_quadratic and modes is not None)
    q, v = moving(model)
    integrals = model.deforming.integrals[0]
    values, slopes = integrals.values(q, v), integrals.derivatives(q, v, np.zeros(model.nv))
    size = np.abs(values.g).max()
    np.testing.assert_allclose(
        ls.inverse_dynamics(model, q, v, 0.0 * v), values.g + values.d, rtol=0, atol=1e-12 * size
    )
    by_q, by_v, _ = ls.inverse_dynamics_derivatives(model, q, v, np.zeros(model.nv))
    for own, known in ((by_q, slopes.K + slopes.d_q), (by_v, values.d_v)):
        np.testing.assert_allclose(own, known, rtol=0, atol=1e-12 * np.abs(slopes.K).max())
    assert ls.energy(model, q, 0.0 * v).elastic == pytest.approx(float(values.U), rel=1e-12)


def test_changes_along_a_direction():
    """The change of inverse dynamics along a direction is the product with its derivatives."""
    model = robot(*block(1, None), LAWS["function"]).build()
    q, v = moving(model)
    a, dq, dv, da = np.random.default_rng(5).normal(size=(4, model.nv))
    by_q, by_v, M = ls.inverse_dynamics_derivatives(model, q, v, a)
    change = ls.inverse_dynamics_tangent(model, q, v, a, dq, dv, da)
    known = by_q @ dq + by_v @ dv + M @ da
    np.testing.assert_allclose(change, known, rtol=0, atol=1e-11 * np.abs(known).max())


def test_cells_of_linear_elements_are_one_point():
    """The points of a cell in which the strain is constant are one in the table."""
    law = LAWS["neo-Hookean"]
    counts = []
    for degree in (2, 4):
        mesh = ls.DomainTetrahedra(*box_mesh((0.6, 0.2, 0.2), (3, 1, 1)), degree=degree)
        counts.append(int(ShapeIntegrals(ls.KinematicsFiniteElements(mesh, 1), mesh, law, DENSITY).pointwise.table[0]))
    assert counts[0] == counts[1] <= len(mesh.cells)  # cells that do not move are one point, too


def test_a_motion_loses_what_the_material_damps():
    """A block that falls under its weight keeps the sum of its energies and of what its damping took."""
    law = LAWS["neo-Hookean"]
    model = robot(*block(1, law), law, gravity=(0.0, 0.0, -9.81)).build()
    motion = ls.simulate(model, 0.2, rtol=1e-7)
    balance = ls.energy_balance(model, motion)
    assert np.abs(balance.residual).max() < 1e-5 * np.ptp(balance.elastic)


def test_derivatives_by_constants_of_the_law():
    """The tip of a sagging block moves by Young's modulus as differences say; other numbers take the same code."""
    law = LAWS["neo-Hookean"]
    given = robot(*block(1, law), law, gravity=(0.0, 0.0, -9.81))
    model = given.build()
    sagging = ls.solve_statics(model)
    path = "block.material.young"
    slope = ls.equilibrium_derivatives(sagging, parameters=[path]).parameters[path]
    step = 1e-4 * YOUNG
    ends = [given.with_({path: YOUNG + sign * step}).build() for sign in (1.0, -1.0)]
    assert all(one.deforming.pointwise[0].functions is model.deforming.pointwise[0].functions for one in ends)
    plus, minus = (ls.solve_statics(one).q for one in ends)
    np.testing.assert_allclose(slope, (plus - minus) / (2.0 * step), rtol=0, atol=1e-6 * np.abs(slope).max())


def test_a_law_without_native_code_is_evaluated_in_python():
    """A law that needs eigenvalues stays a function of Python, with its reason, and its motion is right."""

    def by_eigenvalues(F):
        stretch = jnp.sqrt(jnp.linalg.eigvalsh(F.T @ F + jnp.diag(jnp.array([0.0, 1e-9, 2e-9]))))
        return 1e4 * ((stretch - 1.0) ** 2).sum()

    law = ls.HyperelasticFunction(by_eigenvalues)
    kinematics, mesh = block(1, law)
    integrals = ShapeIntegrals(kinematics, mesh, law, DENSITY)
    assert integrals.pointwise is None and "eigh" in integrals.why_python
