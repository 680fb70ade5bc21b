"""Actuation by lengths of tendons, angles of motors and volumes of chambers, in statics and in motion."""

import copy

import numpy as np
import pytest
from control.controlled_robots import describe_routed, every_kind, routed, some_state, tipped
from dynamics.small_robots import looped

import lissom as ls
from lissom.dynamics.constraints import joined_too_often

NAMES = ("tendon 0", "tendon 1", "tendon 2")


def taut():
    """Lengths pulled in that take tensions of 2 N to 4 N."""
    y = ls.actuation_coordinates(routed(), ls.solve_statics(routed(), u=[3.0, 2.0, 4.0]).q)
    return dict(zip(NAMES, y.tolist()))


def test_lengths_agree_with_tensions():
    """Purpose: an equilibrium under tensions is found again from the lengths of its tendons, with these tensions as
    multipliers, to 1e-10; all of them prescribed, or one by its length and two by their tensions."""
    model = routed()
    u = np.random.default_rng(0).uniform(0.5, 5.0, (4, 3))
    rest = ls.solve_statics(model, u=u)
    y = ls.actuation_coordinates(model, rest.q)
    every = ls.prescribed_equilibrium(model, dict(zip(NAMES, y.T)))
    one = ls.prescribed_equilibrium(model, {"tendon 1": y[:, 1]}, u=u * [1, 0, 1])
    for found in (every, one):
        np.testing.assert_allclose(found.u, u, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.q, rest.q, rtol=0, atol=1e-10)
        assert found.is_stable.all() and not found.slack.any() and found.residual.max() < 1e-10
    np.testing.assert_allclose(every.y, y, atol=1e-13)
    lengths = ls.path_lengths(model, every.q) - ls.path_lengths(model, model.neutral())
    np.testing.assert_allclose(lengths, -y, atol=1e-13)


def test_every_kind_of_coordinate():
    """Purpose: a motor, tendons and chambers of both kinds, prescribed at once, give back their inputs."""
    model = every_kind()
    q, _ = some_state(model, 4, 0.1)
    names = [name for name in model.inputs.names if name != "bend"]
    held = [model.inputs.names.index(name) for name in names]
    u = np.zeros(model.nu)
    u[held] = [1.0, 2.0, 300.0, 200.0]
    u[0] = 0.0  # nothing holds the slide
    rest = ls.solve_statics(model, u=u, q0=q)
    y = ls.actuation_coordinates(model, rest.q)
    found = ls.prescribed_equilibrium(model, {name: y[k] for name, k in zip(names, held)})
    np.testing.assert_allclose(found.q, rest.q, atol=1e-10)
    np.testing.assert_allclose(found.u, u, rtol=1e-9, atol=1e-9)


def test_with_closed_loops():
    """Purpose: the same where loops are closed, whose forces are found as well."""
    model = looped()
    rest = ls.solve_statics(model, u=[3.0])
    y = ls.actuation_coordinates(model, rest.q)
    found = ls.prescribed_equilibrium(model, {"tendon": y[0]}, q0=rest.q)
    np.testing.assert_allclose(found.u, [3.0], atol=1e-9)
    np.testing.assert_allclose(found.q, rest.q, atol=1e-9)
    np.testing.assert_allclose(
        ls.constraint_jacobian(model, found.q).T @ found.multipliers,
        ls.constraint_jacobian(model, rest.q).T @ rest.multipliers,
        atol=1e-8,
    )


def test_a_tendon_that_would_push():
    """Purpose: it is reported; with slack=True it carries nothing, the others have their lengths, and its path is
    shorter than its free length."""
    model, y = routed(), {"tendon 0": 0.01, "tendon 1": 0.006, "tendon 2": 0.004}
    with pytest.warns(ls.AccuracyWarning, match="tendon 'tendon 2': would have to push"):
        pushed = ls.prescribed_equilibrium(model, y)
    assert pushed.u[2] < -1.0
    found = ls.prescribed_equilibrium(model, y, slack=True)
    assert found.slack.tolist() == [False, False, True]
    assert found.u[2] == 0.0 and (found.u >= 0.0).all()
    np.testing.assert_allclose(found.y[:2], [0.01, 0.006], atol=1e-12)
    assert found.y[2] > 0.004
    np.testing.assert_allclose(ls.solve_statics(model, u=found.u, q0=found.q).q, found.q, atol=1e-9)


def test_lengths_hold_what_tensions_do_not():
    """Purpose: an upright pendulum falls under a torque, and stands at a given angle."""
    robot = ls.Robot("pendulum")
    robot.add_link("bob", ls.RigidBody(2.0, (0.0, 0.0, -0.5), (2 / 12, 2 / 12, 0.0)), ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "bob")
    found = ls.prescribed_equilibrium(robot.build(), {"motor": [0.5, 2.5]})
    np.testing.assert_allclose(found.u[:, 0], 2.0 * 9.81 * 0.5 * np.sin([0.5, 2.5]), rtol=1e-12)
    assert found.is_stable.all()


def slide(more=False):
    """A car of 2 kg on a vertical slide with a motor; a second one on a slide that nothing holds."""
    robot = ls.Robot("lift")
    box = ls.RigidBody.box(0.1, 0.1, 0.1, density=2000.0)
    robot.add_link("car", box, ls.JointPrismatic((0, 0, 1)))
    robot.add_joint_actuator("motor", "car")
    if more:
        robot.add_link("sled", box, ls.JointPrismatic((0, 0, 1)), parent="car")
    return robot.build()


def test_a_motor_holds_from_the_first_iteration():
    """Purpose: a car that nothing but its motor holds is where the motor puts it, and the motor carries its weight."""
    found = ls.prescribed_equilibrium(slide(), {"motor": [0.5, -3.0]}, q0=[0.1])
    np.testing.assert_allclose(found.q[:, 0], [0.5, -3.0], atol=1e-14)
    np.testing.assert_allclose(found.u[:, 0], 2.0 * 9.81, rtol=1e-12)
    assert found.is_stable.all()


def test_what_floats_is_named():
    """Purpose: coordinates without a motor are named, where motors are prescribed and where they are not."""
    with pytest.raises(ls.ConvergenceError, match=r"y of 'motor': .*: link 'sled' floats freely"):
        ls.prescribed_equilibrium(slide(True), {"motor": 0.5})
    with pytest.raises(ls.ConvergenceError, match="singular: link 'car' floats freely; hold it"):
        ls.solve_statics(slide())
    robot = ls.Robot("two")
    box = ls.RigidBody.box(0.1, 0.1, 0.1, density=2000.0)
    robot.add_link("sprung", box, ls.JointPrismatic((0, 0, 1), stiffness=1e4))
    robot.add_link("loose", box, ls.JointPrismatic((0, 0, 1)), parent="sprung")
    with pytest.raises(ls.ConvergenceError, match="singular: link 'loose' floats freely; hold it"):
        ls.solve_statics(robot.build())
    with pytest.raises(ls.ConvergenceError, match=r"continuation: .*: link 'loose' floats freely; "):
        ls.continuation(robot.build())


def moved(t):
    """Angles of a shoulder and an elbow."""
    return 0.3 * np.sin(2 * t), 0.2 * np.cos(2 * t) - 0.2


@pytest.mark.parametrize("method", ["bdf", "esdirk"])
def test_motors_by_angle_are_prescribed_joints(method):
    """Purpose: in motion, angles as constraints on inputs and prescribed motions of joints, whose forces are other
    multipliers, are one robot: the passive coordinates and the torques agree."""
    model = tipped()
    law = ls.prescribed_actuation(model, {"shoulder": lambda t: moved(t)[0], "elbow": lambda t: moved(t)[1]})
    v = np.zeros(model.nv)
    v[0] = 0.6
    options = {"v0": v, "method": method, "rtol": 1e-8, "atol": 1e-10, "t_eval": np.linspace(0.0, 0.2, 6)}
    found = ls.simulate(model, 0.2, controller=law, **options)
    robot = copy.deepcopy(model.description)
    robot.add_joint_motion("s", "upper", position=lambda t: moved(t)[0])
    robot.add_joint_motion("e", "lower", position=lambda t: moved(t)[1])
    other = ls.simulate(robot.build(), 0.2, **options)
    np.testing.assert_allclose(found.q, other.q, atol=3e-8)
    np.testing.assert_allclose(found.u, other.multipliers, atol=3e-6)
    np.testing.assert_allclose(ls.actuation_coordinates(model, found.q), np.transpose(moved(found.t)), atol=1e-9)


def test_tensions_of_lengths_make_the_same_motion():
    """Purpose: the tensions that lengths took move the robot the same way when they are the inputs."""
    model = routed()
    y = taut()
    rest = ls.prescribed_equilibrium(model, y)

    def pulled(t):
        return y["tendon 0"] + 0.001 * np.sin(6.0 * t) ** 2

    law = ls.prescribed_actuation(model, y | {"tendon 0": pulled})
    options = {"method": "bdf", "rtol": 1e-9, "atol": 1e-11}
    times = np.linspace(0.0, 0.4, 401)
    found = ls.simulate(model, 0.4, rest.q, controller=law, t_eval=times, **options)
    np.testing.assert_allclose(ls.actuation_coordinates(model, found.q)[:, 0], pulled(times), atol=1e-9)
    again = ls.simulate(model, 0.4, rest.q, u=ls.Samples(times, found.u, "cubic"), t_eval=times, **options)
    np.testing.assert_allclose(again.q, found.q, atol=1e-5 * np.abs(found.q).max())


def test_with_closed_loops_in_motion():
    """Purpose: loops stay closed while the length follows its function, and the start stays where that stands."""
    model = looped()
    rest = ls.solve_statics(model, u=[3.0])
    first = float(ls.actuation_coordinates(model, rest.q)[0])
    law = ls.prescribed_actuation(model, {"tendon": lambda t: first + 5e-4 * np.sin(10 * t) ** 2})
    found = ls.simulate(model, 0.05, rest.q, controller=law, method="bdf", rtol=1e-7, atol=1e-9)
    y = ls.actuation_coordinates(model, found.q)[:, 0]
    np.testing.assert_allclose(y, first + 5e-4 * np.sin(10 * found.t) ** 2, atol=1e-9)
    assert np.abs(ls.loop_residual(model, found.q)).max() < 1e-9
    assert abs(found.u[0, 0] - 3.0) < 0.1


def test_beside_an_elastic_tendon():
    """Purpose: an elastic tendon pulls by its own input while the length of another is held; its own cannot be."""
    robot = describe_routed()
    holes = [ls.PathPoint(None, (0, 0.02, -0.02)), ls.PathPoint("rod 1", (0, 0.02, -0.02))]
    robot.add_tendon("soft", path=holes, stiffness=500.0)
    model, u = robot.build(), [0.0, 1.0, 1.0, 0.03]
    rest = ls.prescribed_equilibrium(model, {"tendon 0": 0.006}, u=u)
    np.testing.assert_allclose(ls.solve_statics(model, u=rest.u).q, rest.q, atol=1e-9)
    assert rest.u[0] > 0.5 and ls.tendon_tensions(model, rest.q, rest.u)[3] > 0.5
    law = ls.prescribed_actuation(model, {"tendon 0": 0.006}, u=u)
    found = ls.simulate(model, 0.05, rest.q, controller=law, method="bdf")
    np.testing.assert_allclose(found.q[-1], rest.q, atol=1e-6)
    np.testing.assert_allclose(found.u[-1], rest.u, atol=1e-5)
    with pytest.raises(ls.ModelError, match="tendon 'soft': is elastic"):
        ls.prescribed_equilibrium(model, {"soft": 0.01})


def test_servo_from_elsewhere():
    """Purpose: where the start does not hold the length, or a correction moves it, it is approached with p, critically
    damped: e = (1 + p t) exp(−p t) of the first distance."""
    model = routed()
    y = taut()
    rest = ls.prescribed_equilibrium(model, y)
    aim = ls.prescribed_actuation(model, y, correction=lambda t, q, v: [1e-3, 0.0, 0.0], rate=40.0)
    found = ls.simulate(model, 0.1, rest.q, controller=aim, method="bdf", rtol=1e-8, atol=1e-10)
    e = y["tendon 0"] + 1e-3 - ls.actuation_coordinates(model, found.q)[:, 0]
    np.testing.assert_allclose(e, 1e-3 * (1 + 40 * found.t) * np.exp(-40 * found.t), atol=1e-8)


def test_slack_in_motion():
    """Purpose: a tendon that is let out fast carries nothing while it is slack, and never pushes; it is then shorter
    the free length."""
    model = describe_routed(gravity=(0, 0, 0)).build()
    rest = ls.prescribed_equilibrium(model, {"tendon 0": 0.006}, u=[0.0, 1.0, 1.0])
    out = ls.prescribed_actuation(
        model, {"tendon 0": lambda t: 0.006 - 0.02 * np.minimum(t / 0.02, 1.0) ** 2}, u=[0.0, 1.0, 1.0], slack=True
    )
    found = ls.simulate(model, 0.1, rest.q, controller=out, method="bdf")
    y = ls.actuation_coordinates(model, found.q)[:, 0]
    slack = found.u[:, 0] == 0.0
    assert (found.u[:, 0] >= 0.0).all() and 0.2 < slack.mean() < 1.0
    assert y[-1] > -0.014 + 1e-3


def test_wrong_arguments():
    """Purpose: a wrong argument is named, with the rule and the value."""
    model = routed()
    for call in (ls.prescribed_equilibrium, ls.prescribed_actuation):
        with pytest.raises(ls.ModelError, match=r"y: must be by names of inputs, which are \[.*\] \(got 'tendon 9'\)"):
            call(model, {"tendon 9": 0.0})
        with pytest.raises(ls.ModelError, match="y: must be a dictionary"):
            call(model, [0.0])
    with pytest.raises(ls.ShapeError, match=r"y\['tendon 0'\]: must be finite"):
        ls.prescribed_equilibrium(model, {"tendon 0": np.nan})
    with pytest.raises(ls.ConvergenceError, match="y of 'tendon 0': no equilibrium was reached"):
        ls.prescribed_equilibrium(model, {"tendon 0": 5.0})
    with pytest.raises(ls.ModelError, match="rate"):
        ls.prescribed_actuation(model, taut(), rate=-1.0)
    with pytest.raises(ls.ModelError, match="correction: must be a function"):
        ls.prescribed_actuation(model, taut(), correction=1.0)


def tubes(loops, order):
    """Two curved tubes, one in the other, that loops join at some places; the inner one is turned at its base."""
    robot, metal = ls.Robot("tubes", gravity=(0, 0, 0)), ls.Material(young=6e10, poisson=0.3, density=6450)
    basis, joints = ls.BasisLegendre(order, order, order), (ls.JointFixed(), ls.JointRevolute((1, 0, 0)))
    for name, radius, curvature, joint in zip(("outer", "inner"), (1.2e-3, 0.9e-3), (10.0, 12.0), joints):
        section = ls.SectionAnnulus(radius, radius - 2e-4)
        body = ls.Rod(0.1, section, basis, metal, reference_strain=(0, 0, curvature, 1, 0, 0))
        robot.add_link(name, body, joint)
    robot.add_joint_actuator("turn", "inner")
    for s in np.arange(1, loops + 1) / loops:
        joint = ls.JointCylindrical((1, 0, 0))
        robot.add_loop(f"at {s:g}", "outer", "inner", s_a=s, s_b=s, joint=joint)
    return robot.build()


def test_tubes_that_are_joined_too_often():
    """Where loops hold more shapes than the modes have, the error says so and what to change; with fewer loops, and
    where the number of rows is not the reason, it does not."""
    turn = {"turn": np.radians(120.0)}
    rule = r"\d+ of the 20 rows of its loops almost follow from the others: .*use fewer loops, or higher orders"
    with pytest.raises(ls.ConvergenceError, match=rule) as error:
        ls.prescribed_equilibrium(tubes(5, 6), turn)
    assert "no equilibrium was reached beyond" in str(error.value)
    with pytest.raises(ls.ConvergenceError, match=rule):
        ls.assemble(tubes(5, 3))
    with pytest.raises(ls.ConvergenceError, match=rule):
        ls.continuation(tubes(5, 6), u=[0.01], max_points=3)
    assert ls.prescribed_equilibrium(tubes(2, 6), turn).residual < 1e-12
    flat = ls.Robot("flat")  # a four-bar linkage in a plane, whose loop has rows that follow from others exactly
    for k, (parent, x) in enumerate(((None, 0.0), ("0", 0.3), ("1", 0.3))):
        place = np.eye(4)
        place[0, 3] = x
        bar = ls.RigidBody.box(0.3, 0.02, 0.02, density=500)
        flat.add_link(str(k), bar, ls.JointRevolute((0, 1, 0)), parent, placement=place)
    flat.add_joint_actuator("crank", "0")
    end = np.eye(4)
    end[0, 3] = 0.5
    flat.add_loop("end", "2", None, placement_a=np.eye(4) + 0.3 * np.eye(4, k=3), placement_b=end,
                  joint=ls.JointRevolute((0, 1, 0)))  # fmt: skip
    model = flat.build()
    with pytest.warns(ls.RedundancyWarning):
        closed = ls.assemble(model, [0.5, -1.0, 1.0])
    assert joined_too_often(model, closed) == ""
