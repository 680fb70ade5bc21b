"""Newton's method for equilibria is the same whether its parts run in one kernel or pause for Python between them."""

import numpy as np
import pytest
from dynamics.small_robots import describe_rod, rod
from simulation.test_loops import driven
from statics.soft_robots import arm

import lissom as ls
from lissom.statics import newton_kernel as stages
from lissom.statics.newton import newton_in_python
from lissom.statics.newton_kernel import Sought, newton_in_kernel, results

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")


def ends(model, start, u, limit=100, opened=None, hold=0.0, tolerance=1e-11):
    """(q, constraint forces, iterations, how it ended) of plain iterations in the kernel, then with pauses."""
    u, force = np.asarray(u, dtype=float), np.zeros(model.n_rows)
    opened = np.zeros(model.n_rows) if opened is None else opened
    sought = Sought(u[None], 0.0, 1.0, opened, tolerance, limit, hold)
    inside = [x[0] for x in results(newton_in_kernel(model, start[None], force[None], sought))]
    paused, why = newton_in_python(model, start, force, sought, shortest=False)
    assert paused.host["pause"][0, 1] == why
    return inside, [x[0] for x in results(paused)]


def assert_same(inside, outside):
    """The same to the last bit."""
    for one, other in zip(inside, outside):
        assert np.array_equal(one, other), (inside, outside)


def spherical():
    """A ball joint with springs, a rod on it and a tendon."""
    robot = describe_rod()
    ball = ls.JointSpherical(stiffness=0.5)
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=2e3), ball, parent="rod")
    return robot.build()


@pytest.mark.parametrize("make", [rod, spherical])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_trees(make, limit):
    """Rods and spherical joints, from starts whose first steps are cut; and after so many iterations as are allowed."""
    model = make()
    for size in (0.0, 0.5, 3.0):
        start = ls.integrate(model, model.neutral(), size * model.dofs.scale * np.cos(np.arange(model.nv)))
        inside, outside = ends(model, start, [2.0], limit)
        assert_same(inside, outside)
        assert inside[2] <= limit and (inside[3] == stages.CONVERGED or limit < 100)


def test_loops_and_prescribed_motions():
    """A closed chain that a joint drives, under a force that holds it; then with its loop parted as far as is asked."""
    model = driven().build()
    hold, gap = 1e-3 * np.ones(model.nv), 1e-4 * np.ones(model.n_rows)
    first, outside = ends(model, ls.assemble(model), [3.0], hold=hold)
    assert_same(first, outside)
    inside, outside = ends(model, first[0], [3.0], opened=gap, hold=hold)
    assert_same(inside, outside)
    assert first[3] == inside[3] == stages.CONVERGED
    np.testing.assert_allclose(ls.loop_residual(model, first[0]), 0.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ls.loop_residual(model, inside[0]), gap, rtol=0, atol=1e-10)


def test_how_iterations_end():
    """Errors of all ends have one form: too few iterations, a start that turns too far, a body that nothing holds."""
    model = rod()
    assert [end[3] for end in ends(model, model.neutral(), [2.0], 1)] == [stages.TOO_MANY] * 2
    assert [end[3] for end in ends(model, np.array([400.0, 0.0, 0.0]), [1.0])] == [stages.WOUND_UP] * 2
    loose = ls.Robot("loose")
    loose.add_link("body", ls.RigidBody.sphere(0.1, density=1e3), ls.JointFree())
    made = loose.build()
    assert [end[3] for end in ends(made, made.neutral(), [])] == [stages.SINGULAR] * 2


def test_shortest_steps_where_nothing_is_neutral():
    """They are those of the plain iteration, which ends in the same place; iterations count alike."""
    model = arm(True, basis=ls.BasisLegendre(torsion=0, bending_y=3, bending_z=2))
    start = 0.1 * model.dofs.scale * np.cos(np.arange(model.nv))
    given = np.zeros(0), Sought(np.zeros((1, model.nu)), 0.0, 1.0, np.zeros(0), 1e-11, 100)
    (plain, why), (shortest, why_shortest) = (newton_in_python(model, start, *given, shortest=x) for x in (False, True))
    assert why == why_shortest == stages.CONVERGED
    ends = [results(w)[0][0] / model.dofs.scale for w in (shortest, plain)]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-10)


@pytest.mark.parametrize("as_actuator", [True, False])
def test_forces_that_call_python(as_actuator):
    """A spring, once among the world's forces and once as an actuator, both in Python, as one that kernels know."""

    def described(stiffness):
        made, joint = ls.Robot("sprung"), ls.JointRevolute((0, 1, 0), stiffness=stiffness)
        made.add_link("bar", ls.RigidBody(1.0, com=(0.2, 0.0, 0.0), inertia=(0.01, 0.01, 0.01)), joint)
        return made

    def spring(t, g, eta):
        return np.array([0.0, -2.0 * np.arctan2(-g[2, 0], g[0, 0]), 0.0, 0.0, 0.0, 0.0])

    known, called = described(3.0), described(1.0)
    if as_actuator:
        called.add_custom_actuator("spring", lambda q: -2.0 * q[:, None])
    else:
        called.add_force("spring", "bar", spring)
    found = ls.solve_statics(called.build(), [1.0] if as_actuator else None)
    sought = ls.solve_statics(known.build())
    np.testing.assert_allclose(found.q, sought.q, rtol=0, atol=1e-10)
    assert found.is_stable and found.iterations <= sought.iterations + 3
