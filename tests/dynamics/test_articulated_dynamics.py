"""Forward dynamics block by block against the mass matrix, on trees of every kind and on large robots."""

from copy import copy

import numpy as np
import pytest
from dynamics.small_robots import describe_mixed
from robots import SEEDS, build, random_state, random_tree

import lissom as ls
from lissom.bodies.body import DeformableBody
from lissom.bodies.finite_elements import KinematicsFiniteElements, KinematicsReduced
from lissom.bodies.materials import HyperelasticLinear
from lissom.bodies.meshes import DomainTetrahedra, box_mesh
from lissom.dynamics import forward_dynamics
from lissom.dynamics.forward_dynamics import solves_by_blocks

HINGE = ls.JointRevolute((0, 1, 0))


@pytest.fixture
def by_blocks(monkeypatch):
    """Every robot that can is solved by blocks."""
    monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_OPEN", 0)


def accelerations(monkeypatch, model, *state):
    """Forward dynamics by the mass matrix, and by blocks whatever their sizes."""
    monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_OPEN", model.nv + 1)
    dense = ls.forward_dynamics(copy(model), *state)
    monkeypatch.setattr(forward_dynamics, "solves_by_blocks", lambda model: True)
    return dense, ls.forward_dynamics(copy(model), *state)


@pytest.mark.parametrize("seed", SEEDS[::7])
def test_blocks_give_the_accelerations_of_the_mass_matrix(monkeypatch, seed):
    """On random trees of all joints and bases, to 1e-10 of the largest in the units that make M one on its diagonal."""
    robot = random_tree(seed)
    model = build(robot)
    q, v, _, u = random_state(robot, seed)
    dense, blocks = accelerations(monkeypatch, model, q, v, u, 0.3)
    unit = np.sqrt(np.diag(ls.mass_matrix(model, q)))
    np.testing.assert_allclose(unit * blocks, unit * dense, rtol=0.0, atol=1e-10 * np.abs(unit * dense).max())
    left = ls.inverse_dynamics(model, q, v, blocks, t=0.3) - ls.actuation_matrix(model, q) @ u
    at_rest = ls.inverse_dynamics(model, q, v, 0.0 * blocks, t=0.3)
    assert np.abs(left / unit).max() < 1e-11 * np.abs(at_rest / unit).max()


def test_prescribed_coordinates_keep_their_motions(monkeypatch):
    """A hinge and a slide that follow given motions, at a free base, on a rod and with a rod behind."""
    robot = describe_mixed()
    robot.add_link("turn", ls.RigidBody.sphere(0.05, density=900.0), HINGE, parent="arm", at=0.5)
    robot.add_link("slide", ls.RigidBody.box(0.1, 0.1, 0.1, density=500.0), ls.JointPrismatic((1, 0, 0)), parent="turn")
    rod = ls.Rod(
        0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, torsion=0), robot.links["arm"].body.material
    )
    robot.add_link("tail", rod, parent="slide")
    robot.add_joint_motion("turning", "turn", position=lambda t: 0.3 * np.sin(2.0 * t))
    robot.add_joint_motion("sliding", "slide", position=lambda t: 0.1 * t**2)
    model = robot.build()
    rng = np.random.default_rng(0)
    q, v = ls.integrate(model, model.neutral(), 0.2 * rng.normal(size=model.nv)), rng.normal(size=model.nv)
    dense, blocks = accelerations(monkeypatch, model, q, v, rng.uniform(size=model.nu), 0.7)
    np.testing.assert_allclose(blocks, dense, rtol=1e-10, atol=1e-10 * np.abs(dense).max())
    np.testing.assert_array_equal(blocks[model.prescribed.dof], model.motions(0.7)[2])


def test_deformable_bodies_and_custom_joints(monkeypatch):
    """Blocks of a body in reduced elements with a hinge at its tip, and of a joint given by a table."""
    pytest.importorskip("jax")
    mesh = DomainTetrahedra(*box_mesh((0.3, 0.1, 0.06), (2, 1, 1)))
    elements, law = KinematicsFiniteElements(mesh, 1), HyperelasticLinear(1e6, 0.3, damping_time=0.01)
    modes = elements.vibration_modes(law, 800.0, 3)[1]
    robot = ls.Robot("flesh")
    points = np.linspace(-2.0, 2.0, 7)[:, None]
    screw = ls.PoseSpline(points[:, 0], points * [0.0, 0.6, 0.8], points * [0.1, 0.02, 0.0])
    robot.add_link("base", ls.RigidBody.box(0.2, 0.1, 0.1, density=300.0), ls.JointCustom(screw))
    body = DeformableBody(KinematicsReduced(elements, modes), mesh, law, 800.0)
    robot.add_link("body", body, ls.JointUniversal((0, 1, 0), (0, 0, 1)), parent="base")
    robot.add_link("tip", ls.RigidBody.sphere(0.05, density=900.0), HINGE, parent="body")
    model = robot.build()
    rng = np.random.default_rng(4)
    q, v = 0.3 * rng.normal(size=model.nq), rng.normal(size=model.nv)
    dense, blocks = accelerations(monkeypatch, model, q, v)
    unit = np.sqrt(np.diag(ls.mass_matrix(model, q)))
    np.testing.assert_allclose(unit * blocks, unit * dense, rtol=0.0, atol=1e-11 * np.abs(unit * dense).max())


def chain(count, *, tree=False):
    """Rods and rigid bodies in turn, in a row or each with two of its kind behind."""
    robot = ls.Robot("large")
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    rod = ls.Rod(0.2, ls.SectionCircle(0.02), ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1), material)
    body = ls.RigidBody(0.3, (0.1, 0.0, 0.0), (1e-4, 1e-3, 1e-3))
    for k in range(count):
        parent = None if k == 0 else f"link{(k - 1) // 2 if tree else k - 1}"
        if k % 2:
            robot.add_link(f"link{k}", body, ls.JointUniversal((0, 1, 0), (0, 0, 1)), parent=parent)
        else:
            robot.add_link(f"link{k}", rod, parent=parent)
    return robot.build()


@pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])
def test_inverse_dynamics_of_large_robots_gives_back_the_forces(tree):
    """ID(q, v, FD(q, v)) = 0 with 400 coordinates; blocks are chosen, and take memory in proportion to their number."""
    models = [chain(count, tree=tree) for count in (50, 100)]
    taken = []
    for model in models:
        rng = np.random.default_rng(1)
        q, v = 0.2 * rng.normal(size=model.nq), rng.normal(size=model.nv)
        assert solves_by_blocks(model)
        a = ls.forward_dynamics(model, q, v)
        rest = ls.inverse_dynamics(model, q, v, a)
        assert np.abs(rest).max() < 1e-11 * np.abs(ls.inverse_dynamics(model, q, v, 0.0 * a)).max()
        taken.append(model.cache[next(key for key in model.cache if key[0] == "forward_dynamics")].nbytes)
    assert taken[1] < 2.1 * taken[0]


def test_a_batch_is_its_states(by_blocks):
    """A batch by blocks gives what single states give, to the last bit."""
    model = describe_mixed().build()
    rng = np.random.default_rng(2)
    q = ls.integrate(model, model.neutral(), 0.3 * rng.normal(size=(5, model.nv)))
    v, u = rng.normal(size=(5, model.nv)), rng.uniform(size=(5, model.nu))
    assert solves_by_blocks(model)
    batch = ls.forward_dynamics(model, q, v, u)
    np.testing.assert_array_equal(batch, [ls.forward_dynamics(model, *state) for state in zip(q, v, u)])


def test_designs_are_single_models(by_blocks):
    """A batch of models by blocks gives the results of each model, to the last bit."""
    designs = (
        describe_mixed().build().batch("arm.material.density", [900.0, 1000.0, 1100.0], "arm.length", [0.2, 0.3, 0.4])
    )
    rng = np.random.default_rng(3)
    q = ls.integrate(designs, designs[0].neutral(), 0.3 * rng.normal(size=(3, 2, designs[0].nv)))
    v = rng.normal(size=(3, 2, designs[0].nv))
    batch = ls.forward_dynamics(designs, q, v)
    for k in range(3):
        np.testing.assert_array_equal(batch[k], ls.forward_dynamics(designs[k], q[k], v[k]))


@pytest.mark.parametrize("method", ["dop853", "bdf"])
def test_motions_are_those_of_the_mass_matrix(monkeypatch, method):
    """Methods that ask for accelerations, also again in the same buffers, go the same way."""
    model = describe_mixed().build()
    options = {"method": method, "rtol": 1e-9, "u": np.full(model.nu, 0.2), "t_eval": [0.0, 0.01]}
    dense = ls.simulate(copy(model), 0.01, **options)
    monkeypatch.setattr(forward_dynamics, "_LEAST_COORDINATES_OPEN", 0)
    model = copy(model)
    blocks = ls.simulate(model, 0.01, **options)
    assert solves_by_blocks(model)
    np.testing.assert_allclose(blocks.q[-1], dense.q[-1], atol=1e-9)
    np.testing.assert_allclose(blocks.v[-1], dense.v[-1], atol=1e-7)


def light(tip):
    """Two hinges about one axis on a body that turns about two, with the body `tip` at the end."""
    robot = ls.Robot("light")
    robot.add_link("base", ls.RigidBody(1.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0)), ls.JointUniversal((1, 0, 0), (0, 0, 1)))
    robot.add_link("wrist", None, HINGE, parent="base")
    robot.add_link("tip", tip, HINGE, parent="wrist")
    return robot.build()


def test_coordinates_without_mass_are_named(by_blocks):
    """Links without mass, and two hinges about one axis of which the outer takes all mass, are errors of one link."""
    model = light(ls.RigidBody(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    empty = light(None)
    assert [solves_by_blocks(m) for m in (model, empty)] == [True, False]
    for m in (model, empty):
        with pytest.raises(ls.ModelError, match="link 'wrist': its velocity coordinate 0 must move some mass"):
            ls.forward_dynamics(m, m.neutral(), np.zeros(m.nv))
