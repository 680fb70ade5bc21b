"""Rows of skates and rolling contacts: against the motion of points, and differences. Starts, errors and refusals."""

from functools import lru_cache

import numpy as np
import pytest
from dynamics.constraint_checks import check_derivatives, check_derivatives_of_forward_dynamics, check_wrenches, state
from touching_robots import moved

import lissom as ls
from lissom.dynamics.constraints import run_constraints
from lissom.launch.workspace import independent_rows

UP = (0.0, 0.0, 1.0)


PLANE = moved(1.0, 0.2, -0.1, (0.2, -0.1, 0.3))


def disc():
    """A free disc on an inclined plane of the world."""
    robot = ls.Robot("disc")
    robot.add_link("disc", ls.RigidBody(1.3, inertia=(0.02, 0.02, 0.03)), ls.JointFree())
    robot.add_rolling("rim", "disc", 0.3, axis=(0.1, 0.2, 1.0), centre=(0.05, -0.02, 0.03), placement=PLANE)
    return robot


def plate():
    """A ball with a wheel and a skate on a moving plate."""
    robot = ls.Robot("plate")
    robot.add_link("plate", ls.RigidBody(2.0, inertia=(0.1, 0.1, 0.1)), ls.JointFree())
    robot.add_link("ball", ls.RigidBody(1.0, inertia=(0.02, 0.02, 0.02), com=(0.02, 0, 0)), ls.JointFree())
    own = {"ground": "plate", "placement": PLANE}
    robot.add_rolling("roll", "ball", 0.2, centre=(0.01, 0.02, 0.0), **own)
    robot.add_rolling("wheel", "ball", 0.2, axis=(1.0, 0.0, 0.3), centre=(0.3, 0.02, 0.0), height=False, **own)
    robot.add_skate("blade", "ball", (0.2, 1.0, 0.5), point=(0.1, 0.2, 0.3), ground="plate")
    return robot


def arm():
    """A soft arm with a wheel at its tip, a skate on it in the world and one against its base, and a gear."""
    robot = ls.Robot("arm")
    robot.add_link("base", ls.RigidBody(2.0, inertia=(0.1, 0.1, 0.1)), ls.JointFree())
    robot.add_link("hip", ls.RigidBody(0.2, inertia=(0.01, 0.01, 0.01)), ls.JointSpherical(), "base")
    rubber = ls.Material(young=1e5, poisson=0.5, density=1000.0, damping_time=0.02)
    rod = ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1, bending_z=1), rubber)
    robot.add_link("arm", rod, parent="hip")
    robot.add_link("wheel", ls.RigidBody(0.3, inertia=(0.01, 0.01, 0.02)), ls.JointRevolute(UP), "arm")
    robot.add_link("gear", ls.RigidBody(0.3, inertia=(0.01, 0.01, 0.02)), ls.JointRevolute(UP), "base")
    robot.add_skate("own", "arm", (0.0, 1.0, 0.2), point=(0.0, 0.01, 0.0), s=0.6, ground="base")
    robot.add_skate("world", "arm", (0.0, 1.0, 0.2), s=0.4)
    robot.add_rolling("roll", "wheel", 0.1, axis=UP, placement=PLANE)
    robot.add_coupling("ratio", ["wheel", "gear"], [1.0, -2.0])
    return robot


ROBOTS = {make.__name__: make for make in (disc, plate, arm)}


@lru_cache
def model_of(name):
    return ROBOTS[name]().build()


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives(name):
    """Of residuals, rows, rates and forces, against differences."""
    check_derivatives(model_of(name))


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_of_forward_dynamics(name):
    """By q and v, against differences."""
    check_derivatives_of_forward_dynamics(model_of(name))


def test_rows_are_velocities_of_points():
    """A v is the velocity of the touching material points relative to the plate, and of the point of the skate, from
    the poses of the links a moment before and after. The height is that of the lowest point of a sampled rim."""
    model = model_of("plate")
    q, v, *_ = state(model)
    h = 1e-6
    moved = [ls.integrate(model, q, k * h * v) for k in (-1, 0, 1)]
    before, here, after = ([ls.frame_pose(model, x, link) for link in ("plate", "ball")] for x in moved)

    def velocity(local, axes):
        """Of a point of the ball, relative to the material of the plate there, along axes of the plate or ball."""
        place = here[1] @ np.append(local, 1.0)
        on_plate = np.linalg.solve(here[0], place)
        own, carried = (((y[k] - x[k]) @ w / (2 * h))[:3] for x, y, k, w in
                        ((before, after, 1, np.append(local, 1.0)), (before, after, 0, on_plate)))  # fmt: skip
        return axes.T @ (own - carried)

    rates = ls.constraint_jacobian(model, q) @ v
    plane = here[0] @ PLANE
    tangents, n = plane[:3, :2], plane[:3, 2]
    R = here[1][:3, :3]
    lowest = np.array([0.01, 0.02, 0.0]) - 0.2 * R.T @ n
    d = np.array([0.2, 1.0, 0.5]) / np.linalg.norm([0.2, 1.0, 0.5])
    axis = np.array([1.0, 0.0, 0.3]) / np.linalg.norm([1.0, 0.0, 0.3])
    down = -(R.T @ n - (R.T @ n @ axis) * axis)
    touching = np.array([0.3, 0.02, 0.0]) + 0.2 * down / np.linalg.norm(down)
    wanted = [velocity(np.array([0.1, 0.2, 0.3]), (R @ d)[:, None]), velocity(lowest, plane[:3, :3]),
              velocity(touching, tangents)]  # fmt: skip
    np.testing.assert_allclose(rates, np.concatenate(wanted), atol=1e-8)
    turns = np.linspace(0.0, 2 * np.pi, 100001)
    e = np.linalg.svd(axis[None])[2][1:]
    rim = np.array([0.3, 0.02, 0.0]) + 0.2 * (np.cos(turns)[:, None] * e[0] + np.sin(turns)[:, None] * e[1])
    heights = (rim @ R.T + here[1][:3, 3] - plane[:3, 3]) @ n
    other = plate()
    other.rolling["wheel"] = ls.Robot("x").add_rolling("wheel", "ball", 0.2, axis=(1.0, 0.0, 0.3),
                                                       centre=(0.3, 0.02, 0.0), ground="plate",
                                                       placement=PLANE)  # fmt: skip
    e = ls.loop_residual(other.build(), q)
    assert e[-1] == pytest.approx(heights.min(), abs=1e-8)
    np.testing.assert_array_equal(e[[0, 1, 2, 4, 5]], 0.0)


def test_wrenches_are_the_forces():
    """Aᵀ λ is the effect of loop_wrenches at their frames."""
    check_wrenches(model_of("plate"))


def test_start_velocities():
    """A start that slips gets the change of velocity of least kinetic energy, M Δv in the range of Aᵀ; one that does
    not slip stays."""
    model = model_of("arm")
    q, v, *_ = state(model, 2)
    q = ls.assemble(model, q)
    found = ls.assemble_velocities(model, q, v)
    A = ls.constraint_jacobian(model, q)
    assert np.abs(A @ found).max() < 1e-12
    impulse = ls.mass_matrix(model, q) @ (found - v)
    left = impulse - A.T @ np.linalg.lstsq(A.T, impulse, rcond=None)[0]
    assert np.abs(left).max() < 1e-11 * np.abs(impulse).max()
    np.testing.assert_allclose(ls.assemble_velocities(model, q, found), found, atol=1e-12)
    np.testing.assert_allclose(ls.simulate(model, 1e-3, q, v, dt=1e-3).v[0], found, atol=1e-12)


def test_assemble_closes_heights_only():
    """A wheel in the air is put onto its plane; where it stands there is not held."""
    model = model_of("disc")
    q = ls.assemble(model, state(model)[0])
    assert np.abs(ls.loop_residual(model, q)).max() < 1e-12
    with pytest.raises(ls.ModelError, match=r"q0: rolling contact 'rim' stays open by"):
        ls.simulate(model, 0.1, state(model)[0])


def test_rows_of_positions_come_before_rows_of_velocities():
    """A slide along x holds all that a blade far out holds, whose row is larger: the rows of the loop are kept, and it
    stays closed."""
    robot = ls.Robot("slide", gravity=(0, 0, 0))
    robot.add_link("body", ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1)), ls.JointPlanar())
    robot.add_loop("slide", "body", joint=ls.JointPrismatic((1, 0, 0)))
    robot.add_skate("blade", "body", (0, 1, 0), point=(30.0, 0.0, 0.0))
    model = robot.build()
    w, _ = run_constraints(model, np.zeros(3), find_independent=True)
    assert not model.rate_rows[independent_rows(w)].any() and model.rate_rows.any()
    with pytest.warns(ls.RedundancyWarning, match="rows of its constraints 2 are independent"):
        motion = ls.simulate(model, 1.0, v0=[1.0, 0.0, 0.0], dt=0.01)
    np.testing.assert_allclose(motion.q[-1], [1.0, 0.0, 0.0], atol=1e-12)


def test_a_stepper_and_batches_take_the_same_steps():
    """`Stepper`, a batch and `simulate` agree."""
    model = model_of("arm")
    q, v, *_ = state(model, 2)
    q = ls.assemble(model, q)
    v = ls.assemble_velocities(model, q, 0.3 * v)
    wanted = ls.simulate(model, 0.05, q, v, dt=5e-3, method="sdirk")
    stepper = ls.Stepper(model, 5e-3, q0=q, v0=v)
    stepper.step(steps=10)
    np.testing.assert_allclose(stepper.state.q, wanted.q[-1], atol=1e-8)
    states = np.stack([q, q]), np.stack([v, 0 * v])
    both = ls.simulate(model, 0.05, *states, dt=5e-3, method="sdirk", t_eval=[0.0, 0.05])
    np.testing.assert_allclose(both.q[0, -1], wanted.q[-1], atol=1e-12)
    rates = ls.constraint_jacobian(model, wanted.q) @ wanted.v[..., None]
    assert np.abs(rates).max() < 1e-9


def test_batches_of_models():
    """Two discs of different radius move as each alone does; a force in Python acts on both the same."""
    one, other = disc(), disc().with_({"rim.radius": 0.25})
    models = [one.build(), other.build()]
    q = np.stack([ls.assemble(model, state(model)[0]) for model in models])
    v = np.stack([ls.assemble_velocities(model, x, state(model)[1]) for model, x in zip(models, q)])
    both = ls.simulate(ls.ModelBatch(models), 0.05, q, v, dt=5e-3, t_eval=[0.0, 0.05])
    for k, model in enumerate(models):
        alone = ls.simulate(model, 0.05, q[k], v[k], dt=5e-3, t_eval=[0.0, 0.05])
        np.testing.assert_allclose(both.q[k], alone.q, atol=1e-12)
    one.add_force("none", "disc", lambda t, pose, twist: 0.0 * np.asarray(twist))
    called = ls.simulate(one.build(), 0.05, q[0], v[0], dt=5e-3, t_eval=[0.0, 0.05])
    np.testing.assert_allclose(called.q, both.q[0], atol=1e-9)


def test_a_flat_disc_is_refused():
    """Its point of contact is not defined."""
    robot = ls.Robot("coin")
    robot.add_link("coin", ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1)), ls.JointFree())
    robot.add_rolling("rim", "coin", 0.1, axis=UP)
    model = robot.build()
    for function in (lambda q: ls.loop_residual(model, q), lambda q: ls.forward_dynamics(model, q, np.zeros(6))):
        with pytest.raises(ls.ShapeError, match="q: a disc that rolls lies flat on its plane"):
            function(model.neutral())


@pytest.mark.parametrize("steps", [{}, {"dt": 1e-3}])
def test_a_disc_that_falls_flat_ends_the_motion(steps):
    """The error names it, and has the motion so far."""
    robot = ls.Robot("coin")
    robot.add_link("coin", ls.RigidBody(1.0, inertia=(0.01, 0.01, 0.02)), ls.JointFree())
    robot.add_rolling("rim", "coin", 0.2, axis=UP)
    model = robot.build()
    q = ls.assemble(model, ls.integrate(model, model.neutral(), [1.2, 0.0, 0.0, 0.0, 0.0, 0.1]))
    with pytest.raises(ls.ConvergenceError, match=r"the disc of rolling contact 'rim' is .* from lying flat") as error:
        ls.simulate(model, 1.0, q, **steps)
    assert 0.2 < error.value.partial.t[-1] < 0.5
    with pytest.raises(ls.ConvergenceError, match=r"the disc of rolling contact 'rim' is .* from lying flat"):
        ls.rollout(model, q, np.zeros(6), dt=1e-3, steps=500)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("solve_statics", lambda m, q: ls.solve_statics(m, q0=q)),
        ("continuation", lambda m, q: ls.continuation(m, u=np.zeros(m.nu), q0=q)),
        ("branches", lambda m, q: ls.branches(m, u=np.zeros((1, m.nu)), q0=q[None])),
        ("modes", lambda m, q: ls.modes(m, q)),
        ("lqr", lambda m, q: ls.lqr(m, q, state=np.eye(2 * m.nv), inputs=np.eye(m.nu))),
        ("inverse_kinematics", lambda m, q: ls.inverse_kinematics(m, {"base": np.eye(4)})),
        ("prescribed_equilibrium", lambda m, q: ls.prescribed_equilibrium(m, {"motor": 0.1})),
        ("prescribed_actuation", lambda m, q: ls.prescribed_actuation(m, {"motor": 0.1})),
    ],
)
def test_functions_of_equilibria_refuse(name, call):
    """Functions of positions alone name themselves, the skates and the wheels."""
    robot = arm()
    robot.add_joint_actuator("motor", "gear")
    model = robot.build()
    rule = rf"robot 'arm': {name}: must have no constraints on velocities.*skate 'own', skate 'world', rolling contact"
    with pytest.raises(ls.ModelError, match=rule):
        call(model, model.neutral())


def hoop(pull):
    """A hoop that rolls on the floor, under a vertical force at its centre [N] that grows with time."""
    robot = ls.Robot("hoop")
    robot.add_link("hoop", ls.RigidBody(1.0, inertia=(0.05, 0.1, 0.05)), ls.JointFree())
    robot.add_rolling("rim", "hoop", 0.3, axis=(0, 1, 0))
    robot.add_point_load("pull", "hoop", force=lambda t: (0.0, 0.0, pull * t))
    return robot.build()


@pytest.mark.parametrize("method", ["generalized_alpha", "dop853"])
def test_a_wheel_that_would_lift_off_is_told_once(method):
    """The plane carries the weight without a word; a pull that exceeds it is told with its size and time, once."""
    start = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3]
    options = {"q0": start, "method": method, "dt": 0.01}
    light, heavy = hoop(9.0), hoop(20.0)
    motion = ls.simulate(light, 1.0, **options)
    assert motion.multipliers[:, -1].min() > 0.5
    with pytest.warns(ls.PlausibilityWarning, match=r"rolling contact 'rim': the plane pulls with 10.2 N at t = 1 s"):
        ls.simulate(heavy, 1.0, **options)
    ls.simulate(heavy, 1.0, **options)


def test_a_wheel_of_a_batch_that_would_lift_off_is_told():
    """Also in a batch of motions, of which one lifts off."""
    start = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3], (2, 1))
    with pytest.warns(ls.PlausibilityWarning, match="rolling contact 'rim': the plane pulls"):
        ls.simulate(hoop(20.0), 1.0, start, dt=0.01, t_eval=[0.5, 1.0])
