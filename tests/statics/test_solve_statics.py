"""Static equilibria: closed forms, batches, bad starts, load steps, robots without an equilibrium, and bad arguments.

Newton's method stops when its step is below 1e-11 in rad and strain; the residual that leaves is 1e-11 times the
stiffness, and 1e-9 of the largest force is asked of it.
"""

from pathlib import Path

import numpy as np
import pytest
from dynamics.small_robots import MATERIAL, describe_pendulum, describe_rod, mixed, rod
from statics.soft_robots import arm, pair

import lissom as ls
from lissom.statics.newton import difference_stiffness
from lissom.statics.residual import residual_jacobian

EXAMPLES = Path(__file__).parents[2] / "examples"


def residual(model, e, t=0.0):
    """ID(q, 0, 0) − B u."""
    zero = np.zeros(model.nv)
    return ls.inverse_dynamics(model, e.q, zero, zero, t=t) - ls.actuation_matrix(model, e.q) @ e.u


def force_scale(model, e):
    """The largest force that the equilibrium balances."""
    zero = np.zeros(model.nv)
    parts = (ls.external_force(model, e.q), ls.inverse_dynamics(model, e.q, zero, zero, gravity=False, loads=False))
    return max(np.abs(part).max() for part in parts)


def test_equilibrium_of_a_rod():
    """The result has no residual, reports it, and repeats the inputs."""
    model = rod()
    e = ls.solve_statics(model, [2.0])
    assert np.abs(residual(model, e)).max() <= 1e-9 * force_scale(model, e)
    assert e.residual == pytest.approx(np.abs(residual(model, e)).max(), abs=1e-12)
    assert (e.q.shape, e.u.tolist(), e.multipliers.shape, e.residual.shape) == ((model.nq,), [2.0], (0,), ())
    assert 1 <= e.iterations <= 15


def test_pure_bending_in_closed_form():
    """A tendon of offset d along a weightless rod: κ = −F d / (E J) · (1 + ε), EA ε = −F: constant, exactly."""
    robot = ls.Robot("bent", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1, elongation=0), MATERIAL))
    robot.add_tendon("tendon", "rod", (0.0, 0.01))
    e = ls.solve_statics(robot.build(), [3.0])
    area, second = np.pi * 0.02**2, np.pi * 0.02**4 / 4
    np.testing.assert_allclose(e.q, [-3.0 * 0.01 / (1e6 * second), 0.0, -3.0 / (1e6 * area)], atol=1e-12)


def test_least_stiffness_in_closed_form():
    """A rod that bends by one rad from end to end takes EI/L, and the softer way counts."""
    robot, length = ls.Robot("rod", gravity=(0, 0, 0)), 0.4
    section = ls.SectionRectangle(0.02, 0.01)
    material = ls.Material(young=1e6, poisson=0.5, density=1000)
    robot.add_link("rod", ls.Rod(length, section, ls.BasisLegendre(bending_y=0, bending_z=0), material))
    softer = 1e6 * 0.02 * 0.01**3 / 12.0
    assert ls.solve_statics(robot.build()).least_stiffness == pytest.approx(softer / length, rel=1e-9)


def test_pendulum_holds_a_torque():
    """A motor torque is balanced by weight: sin q = τ / (m g L / 2)."""
    model = describe_pendulum().build()
    e = ls.solve_statics(model, [4.0])
    assert e.q[0] == pytest.approx(np.arcsin(4.0 / 9.81), abs=1e-12)


def test_a_robot_without_inputs():
    """A robot without actuators hangs under its weight."""
    robot = describe_rod()
    robot.actuators.clear()
    model = robot.build()
    e = ls.solve_statics(model)
    assert e.u.shape == (0,)
    np.testing.assert_allclose(e.q, ls.solve_statics(rod()).q, atol=1e-11)
    assert ls.tangent_stiffness(model, e.q).shape == (model.nv, model.nv)


def test_time_of_the_loads():
    """Loads of time are taken at t."""
    robot = describe_rod()
    robot.add_point_load("load", "rod", force=lambda t: (0.0, 0.0, t))
    model = robot.build()
    np.testing.assert_allclose(ls.solve_statics(model, t=0.0).q, ls.solve_statics(rod()).q, atol=1e-11)
    e = ls.solve_statics(model, t=2.0)
    assert np.abs(residual(model, e, t=2.0)).max() < 1e-9
    assert np.abs(e.q - ls.solve_statics(model).q).max() > 1e-2


@pytest.mark.parametrize("lead", [(1,), (2, 3)])
def test_batches_of_inputs_and_starts(lead):
    """Leading axes of u and q0 broadcast; each solution is the single one."""
    model = rod()
    u = np.linspace(0.0, 4.0, int(np.prod(lead))).reshape(*lead, 1)
    e = ls.solve_statics(model, u)
    assert (e.q.shape, e.u.shape, e.residual.shape) == ((*lead, model.nq), (*lead, 1), lead)
    assert (e.iterations.shape, e.multipliers.shape) == (lead, (*lead, 0))
    for at in np.ndindex(*lead):
        np.testing.assert_allclose(e.q[at], ls.solve_statics(model, u[at]).q, atol=1e-10)
    many = ls.solve_statics(model, [1.0], q0=np.zeros((*lead, model.nq)))
    assert many.q.shape == (*lead, model.nq)
    assert many.u.shape == (*lead, 1)
    grid = ls.solve_statics(model, np.ones((2, 1, 1)), q0=np.zeros((3, model.nq)))
    assert grid.q.shape == (2, 3, model.nq)


def test_empty_batches():
    """No inputs to solve for give no equilibria."""
    model = rod()
    e = ls.solve_statics(model, np.zeros((0, 1)))
    assert (e.q.shape, e.u.shape, e.residual.shape, e.iterations.shape) == ((0, model.nq), (0, 1), (0,), (0,))


def test_a_start_at_the_solution_stays():
    """Newton from the solution needs a step or two and does not move."""
    model = rod()
    e = ls.solve_statics(model, [2.0])
    again = ls.solve_statics(model, [2.0], q0=e.q)
    assert again.iterations <= 2
    np.testing.assert_allclose(again.q, e.q, atol=1e-11)


@pytest.mark.parametrize("q0", [[60.0, -80.0, 0.5], [-90.0, 60.0, -0.7], [0.0, 120.0, 2.0]])
def test_bad_starts(q0):
    """From far away, several turns of bending and strong stretch, some equilibrium is found, perhaps in load steps."""
    model = rod()
    e = ls.solve_statics(model, [1.0], q0=q0)
    assert np.abs(residual(model, e)).max() <= 1e-9 * max(force_scale(model, e), 1.0)


def test_a_start_that_turns_too_far_is_replaced():
    """From a start that turns an interval by 2π, load steps from the reference take over."""
    model = rod()
    e = ls.solve_statics(model, [1.0], q0=[400.0, 0.0, 0.0])
    np.testing.assert_allclose(e.q, ls.solve_statics(model, [1.0]).q, atol=1e-10)


def test_load_steps():
    """With few iterations a solve, a strong load is reached in steps, which count."""
    model = rod()
    full = ls.solve_statics(model, [10.0])
    stepped = ls.solve_statics(model, [10.0], max_iterations=max(3, int(full.iterations) - 2))
    np.testing.assert_allclose(stepped.q, full.q, atol=1e-10)
    assert stepped.iterations > full.iterations


def test_a_floating_robot_has_no_equilibrium():
    """A free body falls: the error says what to do and carries the last iterate."""
    robot = ls.Robot("floating")
    robot.add_link("body", ls.RigidBody.box(0.1, 0.1, 0.1, density=100.0), ls.JointFree())
    robot.add_joint_actuator("thrusters", "body")
    model = robot.build()
    with pytest.raises(ls.ConvergenceError, match="singular: link 'body' floats freely; hold it") as caught:
        ls.solve_statics(model)
    partial = caught.value.partial
    assert isinstance(partial, ls.Equilibrium)
    assert partial.q.shape == (7,)
    assert partial.residual == pytest.approx(0.1**3 * 100 * 9.81)
    assert partial.u.shape == (6,)


def test_a_load_beyond_the_limit_point():
    """q = u (1 + q²) can be solved up to u = 1/2: at u = 0.6 the error says 5/6 of the load, and carries q near 1."""
    robot = ls.Robot("limit", gravity=(0, 0, 0))
    robot.add_link("arm", ls.RigidBody(1.0, (0.1, 0, 0)), ls.JointRevolute((0, 1, 0), stiffness=1.0))
    robot.add_custom_actuator("grip", lambda q: [1 + q[0] ** 2])
    model = robot.build()
    assert ls.solve_statics(model, [0.49]).q[0] == pytest.approx((1 - np.sqrt(1 - 4 * 0.49**2)) / (2 * 0.49), rel=1e-10)
    with pytest.raises(
        ls.ConvergenceError, match=r"statics: stopped at 0\.8\d+ of the load .* start from another q0"
    ) as caught:
        ls.solve_statics(model, [0.6])
    partial = caught.value.partial
    assert isinstance(partial, ls.Equilibrium)
    assert partial.q[0] == pytest.approx(1.0, abs=0.1)


def test_more_torque_than_the_weight_can_hold():
    """A pendulum cannot hold more than m g L / 2 anywhere on the way: an error, and no warning of SciPy's."""
    with pytest.raises(ls.ConvergenceError, match="statics: ") as caught:
        ls.solve_statics(describe_pendulum().build(), [12.0])
    assert isinstance(caught.value.partial, ls.Equilibrium)
    assert np.isfinite(caught.value.partial.q).all()


def test_too_few_iterations():
    """The remedy of too few iterations is more of them."""
    with pytest.raises(ls.ConvergenceError, match="raise max_iterations") as caught:
        ls.solve_statics(rod(), [5.0], max_iterations=1)
    assert isinstance(caught.value.partial, ls.Equilibrium)


def test_one_of_a_batch_fails():
    """One instance without equilibrium fails the batch with an error that says which one it was."""
    model = describe_pendulum().build()
    with pytest.raises(ls.ConvergenceError, match="instance 1 of 2"):
        ls.solve_statics(model, [[1.0], [12.0]])


def test_spherical_and_free_joints():
    """Newton moves on the manifold: springs on a free and a spherical joint settle, quaternions stay of unit length."""
    robot = ls.Robot("sprung")
    robot.add_link("body", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (2e-3, 3e-3, 4e-3)), ls.JointFree(stiffness=20.0))
    robot.add_link("head", ls.RigidBody(0.5, (0.0, 0.2, 0.0), (2e-3, 1e-3, 2e-3)), ls.JointSpherical(stiffness=4.0),
                   parent="body")  # fmt: skip
    model = robot.build()
    e = ls.solve_statics(model, q0=ls.integrate(model, model.neutral(), 0.3 * np.ones(model.nv)))
    zero = np.zeros(model.nv)
    assert np.abs(ls.inverse_dynamics(model, e.q, zero, zero)).max() < 1e-9
    for at in (0, 7):
        assert np.linalg.norm(e.q[at : at + 4]) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name, value", [("u", [np.nan]), ("u", [1.0, 2.0]), ("u", "x"), ("u", 1.0), ("u", [np.inf]),
                                         ("q0", [np.nan] * 3), ("q0", [0.0]), ("q0", "x")])  # fmt: skip
def test_wrong_arrays(name, value):
    """A wrong u or q0 is a ShapeError that names it."""
    with pytest.raises(ls.ShapeError, match=f"^{name}: "):
        ls.solve_statics(rod(), **{name: value})


def test_other_wrong_arguments():
    """Axes that do not fit, a quaternion off unit length, a tolerance or a count that is none."""
    model = rod()
    with pytest.raises(ls.ShapeError, match=r"leading axes do not broadcast"):
        ls.solve_statics(model, np.zeros((2, 1)), q0=np.zeros((3, 3)))
    bent = mixed().neutral()
    bent[0] = 1.1
    with pytest.raises(ls.ShapeError, match=r"^q0: a quaternion must have unit length"):
        ls.solve_statics(mixed(), q0=bent)
    for bad in ({"tolerance": -1.0}, {"tolerance": np.nan}, {"max_iterations": 0}):
        with pytest.raises(ls.ModelError, match=f"^{next(iter(bad))}: must be"):
            ls.solve_statics(model, **bad)


def test_inputs_are_never_modified_and_results_are_fresh():
    """u and q0 keep their values; the result shares no memory with them."""
    model, u, q0 = rod(), np.array([1.0]), np.array([1.0, 0.5, 0.0])
    e = ls.solve_statics(model, u, q0)
    assert (u.tolist(), q0.tolist()) == ([1.0], [1.0, 0.5, 0.0])
    assert not np.shares_memory(e.u, u) and not np.shares_memory(e.q, q0)
    e.q[:], e.u[:] = 0.0, 0.0
    np.testing.assert_array_equal(ls.solve_statics(model, u, q0).u, u)


def test_tangent_stiffness():
    """The derivative of the static residual: symmetric at an equilibrium without tendons, by differences with them."""
    robot = describe_rod()
    robot.actuators.clear()
    model = robot.build()
    K = ls.tangent_stiffness(model, ls.solve_statics(model).q)
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert np.abs((K - K.T) / scale).max() < 1e-8
    assert np.linalg.eigvalsh(K / scale).min() > 0
    model = rod()
    q, u, zero, h = np.array([2.0, -1.0, 0.05]), np.array([2.0]), np.zeros(3), 1e-4

    def r(x):
        return ls.inverse_dynamics(model, x, zero, zero) - ls.actuation_matrix(model, x) @ u

    columns = [(8 * (r(q + h * d) - r(q - h * d)) - r(q + 2 * h * d) + r(q - 2 * h * d)) / (12 * h) for d in np.eye(3)]
    np.testing.assert_allclose(
        ls.tangent_stiffness(model, q, u), np.array(columns).T, atol=1e-8 * np.abs(columns).max()
    )


@pytest.mark.parametrize("name, value", [("u", [np.nan]), ("u", [1.0, 2.0]), ("q", [np.nan] * 3), ("q", np.zeros(4))])
def test_wrong_arguments_of_tangent_stiffness(name, value):
    """A wrong or not finite argument is refused by name, never computed."""
    with pytest.raises(ls.ShapeError, match=f"^{name}: "):
        ls.tangent_stiffness(rod(), **({"q": np.zeros(3)} | {name: value}))


@pytest.mark.parametrize("lead", [(2,), (6,), (2, 1), (0,)])
def test_batches_of_tangent_stiffness(lead):
    """Leading axes of q and u give the matrix of each instance, for any number of them."""
    model = rod()
    q = np.random.default_rng(0).uniform(-1, 1, (*lead, 3))
    for u in (None, np.ones((*lead, 1))):
        K = ls.tangent_stiffness(model, q, u)
        assert K.shape == (*lead, 3, 3)
        for at in np.ndindex(*lead):
            np.testing.assert_allclose(K[at], ls.tangent_stiffness(model, q[at], u if u is None else u[at]), atol=1e-12)


SHAPES = {
    "plane": (ls.ShapePlane(), 0.0, 0.0),
    "sphere": (ls.ShapeSphere(0.02), 0.02, 1 / 0.02),
    "box": (ls.ShapeBox(0.04, 0.04, 0.04), 0.02, 0.0),
    "capsule": (ls.ShapeCapsule(0.02, 0.2, (1, 0, 0)), 0.02, None),
    "cylinder": (ls.ShapeCylinder(0.02, 0.2, (1, 0, 0)), 0.02, None),
}


@pytest.mark.parametrize("gap", [1e-3, 0.0, 1e-16, -1e-4])
@pytest.mark.parametrize("name", SHAPES)
def test_a_ball_that_begins_at_a_shape(name, gap):
    """A ball that begins above a shape, touches it or is pressed in finds the equilibrium on its surface, by Hertz's
    law, although the neutral configuration has it in the middle of the shape."""
    shape, reach, curvature = SHAPES[name]
    robot, size, soft = ls.Robot("ball"), 0.05, ls.Material(young=1e6, poisson=0.45, density=1200.0)
    robot.add_link("ball", ls.RigidBody.sphere(size, material=soft), ls.JointPrismatic((0, 0, 1)))
    robot.add_contact("touch", "ball", shape)
    model, touch = robot.build(), size + reach
    found = ls.solve_statics(model, q0=[touch + gap])
    assert found.is_stable and found.residual < 1e-9
    depth = touch - found.q[0]
    assert 5e-4 < depth < 2e-3
    if curvature is not None:
        stiffness = 4.0 / 3.0 * 1e6 / (1.0 - 0.45**2) / np.sqrt(1.0 / size + curvature)
        assert depth == pytest.approx((9.81 * model.links.mass[0] / stiffness) ** (2.0 / 3.0), rel=1e-9)


@pytest.mark.parametrize("surface", [False, True])
@pytest.mark.parametrize("angle", [0.0, 0.2])
def test_a_block_that_is_laid_on_a_slope(angle, surface):
    """A free block whose corners or cells begin exactly on a plane sinks to its equilibrium, and its friction holds it
    on a slope."""
    robot = ls.Robot("block", gravity=(9.81 * np.sin(angle), 0, -9.81 * np.cos(angle)))
    soft = ls.Material(young=1e6, poisson=0.45, density=1200.0)
    robot.add_link("block", ls.RigidBody.box(0.1, 0.1, 0.05, material=soft), ls.JointFree())
    robot.add_contact("floor", "block", ls.ShapePlane(), surface=surface)
    model = robot.build()
    found = ls.solve_statics(model, q0=[1, 0, 0, 0, 0, 0, 0.025])
    force = ls.contact_forces(model.anchored(found.anchors), found.q).force.sum(axis=0)
    weight = 9.81 * model.links.mass[0]
    assert found.is_stable and force == pytest.approx([-weight * np.sin(angle), 0.0, weight * np.cos(angle)], abs=1e-9)


def test_a_ball_above_a_trough_rolls_to_its_bottom():
    """A free ball that begins above the side of a trough falls onto it and rolls to the bottom, without friction."""
    robot, soft = ls.Robot("ball"), ls.Material(young=1e6, poisson=0.45, density=1200.0)
    robot.add_link("ball", ls.RigidBody.sphere(0.02, material=soft), ls.JointFree())
    robot.add_contact("trough", "ball", ls.ShapeCylinder(0.1, axis=(1, 0, 0), inside=True))
    model = robot.build()
    found = ls.solve_statics(model, q0=[1, 0, 0, 0, 0, 0.02, -0.075])
    force = ls.contact_forces(model.anchored(found.anchors), found.q).force.sum(axis=0)
    assert found.is_stable and abs(found.q[5]) < 1e-9
    assert force == pytest.approx([0.0, 0.0, 9.81 * model.links.mass[0]], abs=1e-9)


@pytest.mark.parametrize("name", ["tree", "loop", "prescribed"])
def test_jacobians_of_differences(name):
    """Newton's method by differences ends in the same equilibrium, of a batch too; its stiffness is the exact one to
    the square root of rounding, where constraint forces and prescribed coordinates take part."""
    if name == "prescribed":
        model, u = ls.load_robot(EXAMPLES / "robots" / "serial_robot.yaml").build(), np.zeros((2, 0))
    else:
        model = arm(upwards=False) if name == "tree" else pair(upwards=False, spatial=True)
        u = np.zeros((2, model.nu))
        u[:, 0] = 0.5, 0.7
    exact = ls.solve_statics(model, u, t=0.3, q0=np.tile(ls.start_configuration(model), (2, 1)))
    other = ls.solve_statics(model, u, t=0.3, q0=np.tile(ls.start_configuration(model), (2, 1)), jacobian="differences")
    apart = ls.difference(model, exact.q, other.q) / model.dofs.scale
    assert np.abs(apart).max() < 1e-9
    assert 1 < other.iterations.max() <= 2 * exact.iterations.max()
    force = exact.multipliers[0, len(model.prescribed.dof) :] if name == "loop" else np.zeros(0)
    K = residual_jacobian(model, exact.q[0], u[0], 0.3, 1.0, force)[0]
    found = difference_stiffness(model, exact.q[0], u[:1], 0.3, 1.0, force)
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    size = np.outer(model.dofs.scale, model.dofs.scale)
    apart = ((K - found) * size)[np.ix_(free, free)]
    assert np.abs(apart).max() < 1e-6 * np.abs((K * size)[np.ix_(free, free)]).max()


def test_jacobians_of_other_kinds_are_refused():
    """The rule and the value."""
    with pytest.raises(ls.ModelError, match="jacobian: must be 'exact' or 'differences'"):
        ls.solve_statics(rod(), [1.0], jacobian="numerical")


def test_forces_in_loops_where_the_configuration_does_not_change():
    """A rigid four-bar hangs alike at every part of its weight. If load steps find it, the forces in its loop are still
    those of the whole weight, by the balances of rocker and coupler about their pivots."""
    robot = ls.Robot("four-bar", gravity=(0, -9.81, 0))
    for name, parent, x, mass, centre in (
        ("crank", None, 0.0, 0.4, 0.1), ("coupler", "crank", 0.2, 1.0, 0.25), ("rocker", None, 0.5, 0.8, 0.2)
    ):  # fmt: skip
        body, place = ls.RigidBody(mass, (centre, 0, 0), np.diag([1e-4, 1e-2, 1e-2])), np.eye(4)
        place[0, 3] = x
        robot.add_link(name, body, ls.JointRevolute(), parent=parent, placement=place)
    ends = [np.eye(4), np.eye(4)]
    ends[0][0, 3], ends[1][0, 3] = 0.5, 0.4
    robot.add_loop("pin", "coupler", "rocker", placement_a=ends[0], placement_b=ends[1], joint=ls.JointRevolute())
    model = robot.build()
    with pytest.warns(ls.RedundancyWarning):
        e = ls.solve_statics(model)
    assert e.residual < 1e-9
    turn, beta = e.q[2], e.q[0] + e.q[1]
    fx, fy = (
        np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        @ ls.loop_wrenches(model, e.q, e.multipliers)[0, 3:5]
    )
    rocker = -0.8 * 9.81 * 0.2 * np.cos(turn) - 0.4 * (np.cos(turn) * fy - np.sin(turn) * fx)
    coupler = -1.0 * 9.81 * 0.25 * np.cos(beta) + 0.5 * (np.cos(beta) * fy - np.sin(beta) * fx)
    np.testing.assert_allclose([rocker, coupler], 0.0, atol=1e-9)


def test_a_rod_that_is_wound_up_is_named():
    """Purpose: a moment that rolls a rod up until one interval turns by 2π. The error names the rod and the cure, where
    it spoke of a limit point; with more Gauss points the rod is the arc of the curvature M/EI."""

    def rolled(points):
        robot = ls.Robot("roll", gravity=(0, 0, 0))
        soft = ls.Material(young=1e6, poisson=0.3, density=1000)
        rod = ls.Rod(1.0, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=0), soft, gauss_points=points)
        robot.add_link("rod", rod)
        robot.add_wrench_input("moment", "rod", directions=(0, 1, 0, 0, 0, 0))
        return robot.build()

    curvature, stiffness = 24.0 * np.pi, 1e6 * np.pi * 0.01**4 / 4
    rule = r"stopped at 0\.\d+ of the load .*: an interval of the rod 'rod' turns by nearly 2π, .* more gauss_points"
    with pytest.raises(ls.ConvergenceError, match=rule):
        ls.solve_statics(rolled(4), [curvature * stiffness])
    found = ls.solve_statics(rolled(24), [curvature * stiffness])
    assert found.q[0] == pytest.approx(curvature, rel=1e-9)
