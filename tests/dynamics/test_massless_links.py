"""A link without mass that a loop holds: the mass matrix alone is singular, the motion is not; nothing turns to NaN."""

import numpy as np
import pytest

import lissom as ls

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # a planar four-bar has rows to spare
HINGE = ls.JointRevolute((0, 1, 0))
U = np.array([0.5])


def along_x(x):
    """Placement at x."""
    g = np.eye(4)
    g[0, 3] = x
    return g


def bar(length, mass=1.0):
    """A bar along x."""
    return ls.RigidBody(mass, (length / 2, 0, 0), (0.0, mass * length**2 / 12, mass * length**2 / 12))


def four_bar(coupler=None, *, flag=False):
    """A four-bar in the plane whose coupler carries a body or none, with a flag without mass on its crank or not."""
    robot = ls.Robot("four-bar")
    robot.add_link("crank", bar(0.2), HINGE)
    robot.add_link("coupler", coupler, HINGE, parent="crank", placement=along_x(0.2))
    robot.add_link("rocker", bar(0.4), HINGE, placement=along_x(0.5))
    robot.add_loop("pin", "coupler", "rocker", placement_a=along_x(0.5), placement_b=along_x(0.4), joint=HINGE)
    if flag:
        robot.add_link("flag", None, HINGE, parent="crank")
    robot.add_joint_actuator("motor", "crank")
    return robot.build()


def moving(model):
    """A closed configuration and a velocity that keeps it closed."""
    q = ls.assemble(model, [-1.0, 0.8, -1.2])
    v = np.linalg.svd(ls.constraint_jacobian(model, q))[2][-1]
    return q, 2.0 * v / v[0]


def slope(function, size=1e-4):
    """Derivative at 0 by a central difference of the fourth order."""
    rows = [function(k * size) for k in (-2, -1, 1, 2)]
    return (rows[0] - 8 * rows[1] + 8 * rows[2] - rows[3]) / (12 * size)


def test_derivatives_and_state_matrices_are_those_of_forward_dynamics():
    """Along the directions that the loop allows, in v and in u, they equal differences of the acceleration, and no
    NumPy warns."""
    model = four_bar()
    q, v = moving(model)
    da_dq, da_dv, da_du = ls.forward_dynamics_derivatives(model, q, v, U)
    N = v / np.linalg.norm(v)
    by_q = slope(lambda x: ls.forward_dynamics(model, q + x * N, v, U))
    np.testing.assert_allclose(da_dq @ N, by_q, atol=1e-7 * np.abs(by_q).max())
    for k in range(3):
        by_v = slope(lambda x, k=k: ls.forward_dynamics(model, q, v + x * np.eye(3)[k], U))
        np.testing.assert_allclose(da_dv[:, k], by_v, atol=1e-8 * np.abs(da_dv).max())
    by_u = slope(lambda x: ls.forward_dynamics(model, q, v, U + x))
    np.testing.assert_allclose(da_du[:, 0], by_u, atol=1e-8 * np.abs(da_du).max())
    np.testing.assert_array_equal(ls.linearize(model, q, U, v=v).A[3:], np.hstack([da_dq, da_dv]))
    assert np.isfinite(ls.linearize(model, q, U).A).all()
    assert np.isfinite(ls.modes(model, q, U).exponents).all()


@pytest.mark.parametrize("method", ["bdf", "radau", "generalized_alpha"])
def test_motions_are_the_limit_of_light_couplers(method):
    """The motion is that of a coupler of next to no mass, from a velocity that is moved onto the loop."""
    options = {"method": method, "dt": 2e-3 if method == "generalized_alpha" else None, "rtol": 1e-8, "atol": 1e-10}
    ends = []
    for coupler in (None, bar(0.5, 1e-8)):
        model = four_bar(coupler)
        q, v = moving(model)
        motion = ls.simulate(model, 0.3, q, v, U, t_eval=[0.3], **options)
        assert np.isfinite(motion.multipliers).all()
        ends.append(motion.q[-1])
    np.testing.assert_allclose(*ends, atol=1e-6)
    assert np.ptp(ends[0] - q) > 0.1


@pytest.mark.parametrize("call", [
    lambda m, q, v: ls.forward_dynamics(m, q, v, U), lambda m, q, v: ls.forward_dynamics_derivatives(m, q, v, U),
    lambda m, q, v: ls.linearize(m, q, U), lambda m, q, v: ls.simulate(m, 0.1, q, v, U),
    lambda m, q, v: ls.simulate(m, 0.1, q, v, U, method="newmark", dt=0.01),
])  # fmt: skip
def test_what_no_loop_holds_is_named(call):
    """A massless link beside the loop, which does not hold it, is named by each door."""
    model = four_bar(flag=True)
    q = ls.assemble(model, [-1.0, 0.8, -1.2, 0.3])
    with pytest.raises(ls.ModelError, match="link 'flag': its velocity coordinate 0 must move some mass"):
        call(model, q, np.zeros(4))
