"""Dry friction of joints: its law and derivatives, motions against closed forms, SciPy and MuJoCo, and its energy."""

import warnings

import numpy as np
import pytest
from robot_descriptions import assert_same, round_trip
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import lissom as ls
from lissom.forces.terms import acting_on

BAR = ls.RigidBody(0.3, (0.15, 0.0, 0.0), np.diag([1e-4, 2.3e-3, 2.3e-3]))
POINT = ls.RigidBody(2.0, (0.0, 0.0, 0.0), np.diag([1e-3, 1e-3, 1e-3]))
STRIBECK = {"friction": 0.8, "static_friction": 1.5, "stribeck_speed": 0.3, "slip_speed": 0.05}
G = 9.81


def law(v, friction, static_friction=None, stribeck_speed=1.0, slip_speed=1e-3):
    """The force that friction needs to be overcome at the rate v, written down directly."""
    F = np.asarray(friction, dtype=float)
    F_s = F if static_friction is None else np.asarray(static_friction)
    return (F + (F_s - F) * np.exp(-((v / stribeck_speed) ** 2))) * v / np.sqrt(v**2 + np.square(slip_speed))


def chain(*joints, gravity=(0.0, 0.0, -G)):
    """Bars one on another."""
    robot, parent, place = ls.Robot("chain", gravity=gravity), None, np.eye(4)
    for k, joint in enumerate(joints):
        robot.add_link(f"link{k}", BAR, joint, parent=parent, placement=None if parent is None else place)
        parent, place = f"link{k}", np.eye(4)
        place[0, 3] = 0.3
    return robot


def block(joint=None, **fields):
    """A mass of 2 kg on a level rail, with a motor."""
    robot = ls.Robot("block", gravity=(0, 0, -G))
    robot.add_link("block", POINT, joint or ls.JointPrismatic((1, 0, 0), **fields))
    robot.add_joint_actuator("push", "block")
    return robot


def pendulum(length=0.5, **fields):
    """A point mass of 2 kg that hangs on a hinge: down is q = 0."""
    robot = ls.Robot("pendulum", gravity=(0, 0, -G))
    body = ls.RigidBody(2.0, (0.0, 0.0, -length), np.zeros((3, 3)))
    robot.add_link("bob", body, ls.JointRevolute((0, 1, 0), **fields))
    return robot


def all_kinds():
    """A tree with friction on joints of one, two and three coordinates, and joints without."""
    each = {"friction": (0.4, 0.0, 0.2), "slip_speed": (0.3, 0.2, 0.1)}
    return chain(
        ls.JointRevolute((0, 1, 0), **STRIBECK, damping=0.1),
        ls.JointPlanar(**each, static_friction=(0.4, 0.3, 0.5), stribeck_speed=0.5),
        ls.JointUniversal(friction=0.3, slip_speed=0.2),
        ls.JointPrismatic((0, 0, 1)),
        ls.JointHelical((1, 0, 0), 0.02, friction=0.6, slip_speed=0.1, limits=(-0.2, 0.3), limit_stiffness=20.0),
    )


def states(model, n=5):
    """Random states."""
    rng = np.random.default_rng(3)
    return rng.uniform(-0.7, 0.7, (n, model.nq)), rng.uniform(-1, 1, (n, model.nv)), rng.uniform(-1, 1, (n, model.nv))


def assert_near(found, want, tolerance):
    np.testing.assert_allclose(found, want, rtol=0, atol=tolerance * np.abs(want).max())


def test_law():
    """The force of friction on each coordinate against its formula; the rest of the robot is unchanged."""
    robot = all_kinds()
    model = robot.build()
    q, v, a = states(model)
    plain = robot.with_({f"link{k}.joint.{name}": value for k in (0, 1, 2, 4) for name, value in
                         (("friction", 0.0), ("static_friction", None), ("stribeck_speed", None))})  # fmt: skip
    found = ls.inverse_dynamics(model, q, v, a) - ls.inverse_dynamics(plain.build(), q, v, a)
    want = np.zeros_like(v)
    want[:, 0] = law(v[:, 0], 0.8, 1.5, 0.3, 0.05)
    want[:, 1:4] = law(v[:, 1:4], (0.4, 0.0, 0.2), (0.4, 0.3, 0.5), 0.5, (0.3, 0.2, 0.1))
    want[:, 4:6] = law(v[:, 4:6], 0.3, slip_speed=0.2)
    want[:, 7] = law(v[:, 7], 0.6, slip_speed=0.1)
    assert_near(found, want, 1e-13)
    without = ls.inverse_dynamics(model, q, v, a, elastic=False)
    assert_same(without, ls.inverse_dynamics(plain.build(), q, v, a, elastic=False), "friction counts with dampers")


def test_derivatives():
    """∂τ/∂v against central differences, the tangent against both, and ∂a/∂v as M times it."""
    model = all_kinds().build()
    rng, h = np.random.default_rng(5), 1e-6
    for q, v, a in zip(*states(model)):
        by_q, by_v, by_a = ls.inverse_dynamics_derivatives(model, q, v, a)
        ends = h * np.eye(model.nv)
        ahead, behind = (ls.inverse_dynamics(model, q, v + s * ends, a) for s in (1, -1))
        assert_near(by_v, (ahead - behind).T / (2 * h), 1e-7)
        dq, dv, da = rng.uniform(-1, 1, (3, model.nv))
        tangent = ls.inverse_dynamics_tangent(model, q, v, a, dq, dv, da)
        assert_near(tangent, by_q @ dq + by_v @ dv + by_a @ da, 1e-12)
        q_dd = ls.forward_dynamics(model, q, v)
        assert_near(ls.inverse_dynamics(model, q, v, q_dd) + 1.0, np.ones(model.nv), 1e-10)
        da_dv = ls.forward_dynamics_derivatives(model, q, v)[1]
        ahead, behind = (ls.forward_dynamics(model, q, v + s * ends) for s in (1, -1))
        assert_near(da_dv, (ahead - behind).T / (2 * h), 1e-6)


def test_a_block_slides_and_stops():
    """A block that slides loses F/m of speed in each second. Exactly, s = √(v² + v_s²) follows
    s − v_s artanh(v_s/s) = constant − F t/m, also where it creeps."""
    F, m, v_s = 3.0, 2.0, 1e-3
    model = block(friction=F, slip_speed=v_s).build()
    times = np.linspace(0.0, 0.7, 141)
    motion = ls.simulate(model, 0.7, v0=[1.0], t_eval=times, rtol=1e-10, atol=1e-13)
    v = motion.v[:, 0]
    sliding = times < 0.6  # there v > 0.1, and friction is within v_s²/(2 v²) of F
    np.testing.assert_allclose(v[sliding], 1.0 - F / m * times[sliding], rtol=0, atol=1e-5)

    def clock(speed):  # increases with the speed from −∞ to ∞
        s = np.hypot(speed, v_s)
        return s - v_s * 0.5 * np.log((s + v_s) ** 2 / speed**2)

    want = [np.exp(brentq(lambda x, t=t: clock(np.exp(x)) - clock(1.0) + F / m * t, -90.0, 1.0, xtol=1e-14))
            for t in times]  # fmt: skip
    np.testing.assert_allclose(v, want, rtol=0, atol=1e-8)
    assert 0.0 < v[-1] < 1e-12


def test_a_pendulum_loses_amplitude():
    """From one turning point to the next, the weight gives what friction takes: m g l (cos θ' − cos θ) = F (θ + θ').
    For small angles each half swing loses 2 F/(m g l)."""
    F, weight = 2e-3, 2.0 * G * 0.5
    model = pendulum(friction=F, slip_speed=1e-5).build()
    motion = ls.simulate(model, 6.0, q0=[0.05], rtol=1e-10, atol=1e-13)
    turns = np.flatnonzero(np.diff(np.sign(motion.v[1:, 0])) != 0) + 1
    angles = [0.05]
    for k in turns:  # the parabola through the turning point
        here, ahead = (0.5 * (motion.v[n, 0] ** 2) / abs(motion.a[n, 0]) for n in (k, k + 1))
        angles.append(min(abs(motion.q[k, 0]) + here, abs(motion.q[k + 1, 0]) + ahead))
    angles = np.array(angles[:7])
    assert len(angles) == 7
    lost = -np.diff(angles)
    np.testing.assert_allclose(lost, 2 * F / weight, rtol=3e-3)
    work = weight * np.diff(np.cos(angles))
    np.testing.assert_allclose(work, F * (angles[1:] + angles[:-1]), rtol=3e-3)


def test_stribeck_against_scipy():
    """A mass on a spring, with friction that falls with speed and a viscous damper, until it nearly rests: SciPy
    integrates the same equation."""
    k, c, m = 40.0, 0.3, 2.0
    model = block(stiffness=k, damping=c, **STRIBECK).build()
    times = np.linspace(0.0, 8.0, 161)
    motion = ls.simulate(model, 8.0, q0=[0.4], t_eval=times, rtol=1e-11, atol=1e-13)

    def rate(t, y):
        return [y[1], -(k * y[0] + c * y[1] + law(y[1], *STRIBECK.values())) / m]

    want = solve_ivp(rate, (0.0, 8.0), [0.4, 0.0], "DOP853", times, rtol=1e-13, atol=1e-14).y
    np.testing.assert_allclose([motion.q[:, 0], motion.v[:, 0]], want, rtol=0, atol=1e-8)
    assert np.abs(want[1, -5:]).max() < 0.02 < np.abs(want[1]).max()


@pytest.mark.parametrize("more", [{}, {"static_friction": 6.0, "stribeck_speed": 0.1}], ids=["coulomb", "stribeck"])
def test_a_motor_below_the_friction_creeps(more):
    """Under a force f below the friction F_s a joint creeps with v_s f/√(F_s² − f²); above F it slides."""
    model = block(friction=4.0, **more).build()
    F_s, v_s, f = more.get("static_friction", 4.0), 1e-3, 3.0
    motion = ls.simulate(model, 1.0, u=[f], dt=2e-3)
    want = v_s * f / np.sqrt(F_s**2 - f**2)
    if more:  # the fall of friction over v_f, at speeds far below it
        want = brentq(lambda v: law(v, 4.0, F_s, 0.1) - f, 0.0, 2e-3, xtol=1e-18)
    assert motion.v[-1, 0] == pytest.approx(want, rel=1e-9)
    assert motion.q[-1, 0] < 1.2e-3
    sliding = ls.simulate(model, 1.0, u=[F_s + 2.0], dt=2e-3)
    assert sliding.v[-1, 0] == pytest.approx((F_s + 2.0 - 4.0) / 2.0, rel=0.1)


@pytest.mark.parametrize("method", ["auto", "esdirk", "bdf", "dop853"])
def test_energy_balance(method):
    """Friction takes the energy that a swinging arm loses."""
    small = STRIBECK | {"friction": 0.02, "static_friction": 0.03}
    hinges = ls.JointRevolute((0, 1, 0), friction=0.05, slip_speed=1e-2), ls.JointRevolute((0, 1, 0), **small)
    model = chain(*hinges).build()
    motion = ls.simulate(model, 1.5, method=method, rtol=1e-8, atol=1e-10, t_eval=np.linspace(0.0, 1.5, 3001))
    balance = ls.energy_balance(model, motion)
    assert balance.dissipated[-1] > 0.1 and balance.residual < 1e-6
    assert (np.diff(balance.dissipated) >= -1e-12).all()


@pytest.mark.parametrize("method", ["generalized_alpha", "bathe", "sdirk", "newmark"])
@pytest.mark.parametrize("friction", [5.0, 500.0])
def test_long_steps_are_stable(method, friction):
    """An arm that moves fast is stopped by large friction within one or a few steps of 2 ms. No step makes energy, and
    the arm stands under its weight afterwards."""
    model = chain(*[ls.JointRevolute((0, 1, 0), friction=friction)] * 2).build()
    motion = ls.simulate(model, 0.4, q0=[0.3, 0.2], v0=[3.0, -5.0], method=method, dt=2e-3)
    E = ls.energy(model, motion.q, motion.v)
    assert motion.energy_made < 1e-9 * E.kinetic[0]
    assert (np.diff(E.total) < 1e-9 * E.kinetic[0]).all()
    assert np.abs(motion.v[-1]).max() < 1e-3
    weight = ls.inverse_dynamics(model, motion.q[-1], [0.0, 0.0], [0.0, 0.0])
    creep = -1e-3 * weight / np.sqrt(friction**2 - weight**2)
    if method != "newmark":  # it damps no vibration that it does not resolve
        np.testing.assert_allclose(motion.v[-1], creep, rtol=0, atol=1e-3 * np.abs(creep).max())


@pytest.mark.parametrize("method", ["generalized_alpha", "sdirk", "newmark"])
@pytest.mark.parametrize("static_friction", [None, 3.0])
def test_nearly_a_jump(method, static_friction):
    """An arm that sticks and slides with a slip speed of 1e-5 takes steps of 2 ms: Newton's iteration goes back where a
    change passes the jump, in place of dividing the step until it resolves it, and finds no root far away."""
    law = {"friction": 1.0, "slip_speed": 1e-5}
    law |= {} if static_friction is None else {"static_friction": static_friction, "stribeck_speed": 0.1}
    model = chain(*[ls.JointRevolute((0, 1, 0), **law)] * 3).build()
    motion = ls.simulate(model, 0.2, q0=[0.3, 0.2, -0.4], v0=[3.0, -5.0, 2.0], method=method, dt=2e-3)
    E = ls.energy(model, motion.q, motion.v)
    assert motion.energy_made < 1e-9 * E.kinetic[0] and E.total[-1] < E.total[0]
    if method == "sdirk":
        assert motion.statistics.parts < 100


def test_gradient_of_a_rollout():
    """Derivatives of a motion by F, F_s, v_f and v_s against differences of the motion, and of the inputs; that of the
    final speed of a sliding block by F is −T/m."""
    robot = block(**STRIBECK)
    paths = [f"block.joint.{name}" for name in STRIBECK]
    inputs = np.linspace(2.0, 1.2, 50)[:, None]

    def motion(values, u=inputs):
        return ls.rollout(robot.with_(dict(zip(paths, values))).build(), [0.0], [0.1], u=u, dt=0.01)

    start, weights = np.array(list(STRIBECK.values())), (np.zeros((51, 1)), np.zeros((51, 1)))
    weights[0][-1], weights[1][25] = 1.0, 0.5

    def cost(values, u=inputs):
        x = motion(values, u)
        return x.q[-1, 0] + 0.5 * x.v[25, 0]

    found = motion(start).backward(*weights, parameters=paths)
    for k, path in enumerate(paths):
        h = 1e-5 * np.eye(4)[k]
        want = (cost(start + h) - cost(start - h)) / 2e-5
        assert found.parameters[path] == pytest.approx(want, rel=1e-6, abs=1e-9), path
    h = np.zeros_like(inputs)
    h[10] = 1e-5
    assert found.u[10, 0] == pytest.approx((cost(start, inputs + h) - cost(start, inputs - h)) / 2e-5, rel=1e-6)
    slides = ls.rollout(block(friction=3.0).build(), [0.0], [1.0], u=np.zeros((20, 1)), dt=0.01)
    last = np.zeros((21, 1))
    last[-1] = 1.0
    by_F = slides.backward(0.0 * last, last, parameters=["block.joint.friction"]).parameters["block.joint.friction"]
    assert by_F == pytest.approx(-0.2 / 2.0, rel=1e-5)


def test_design_derivatives():
    """The derivative of the force by F is v/√(v² + v_s²), also at F = 0, where the model has no friction."""
    v = np.array([0.002])
    for friction in (1.0, 0.0):
        model = block(friction=friction).build()
        found = ls.design_derivatives(
            lambda m: ls.inverse_dynamics(m, [0.0], v, [0.0]), model, parameters=["block.joint.friction"]
        )["block.joint.friction"]
        assert np.ravel(found)[0] == pytest.approx(0.002 / np.hypot(0.002, 1e-3), rel=1e-9)


def test_batch_of_frictions():
    """Models of a batch have friction of their own, or none."""
    frictions = [0.0, 1.0, 2.0]
    models = block().build().batch("block.joint.friction", frictions)
    found = ls.inverse_dynamics(models, [0.0], [0.3], [0.0])[:, 0]
    np.testing.assert_allclose(found, [law(0.3, F) for F in frictions], rtol=1e-13)
    ends = ls.simulate(models, 0.2, v0=[1.0], dt=1e-3, t_eval=[0.0, 0.2]).v[:, -1, 0]
    np.testing.assert_allclose(ends, 1.0 - np.multiply(frictions, 0.1), rtol=1e-5)


def test_small_motions():
    """Near rest friction is a damper F/v_s: the slow exponent of a mass on a spring is that of this damper. Modes
    without dissipation do not have it."""
    k, F, v_s, m = 50.0, 0.4, 0.1, 2.0
    model = block(stiffness=k, friction=F, slip_speed=v_s).build()
    want = np.roots([m, F / v_s, k])
    damped = ls.modes(model, [0.0], damped=True)
    np.testing.assert_allclose(np.sort_complex(damped.exponents)[-1], np.sort_complex(want)[-1], rtol=1e-12)
    A = ls.linearize(model, [0.0]).A
    assert A[1, 1] == pytest.approx(-F / v_s / m, rel=1e-13)
    assert ls.modes(model, [0.0]).frequencies[0] == pytest.approx(np.sqrt(k / m), rel=1e-13)


def test_statics_says_that_it_leaves_friction_out():
    """The equilibrium is that without friction, with a warning that names the joint; a held joint needs none."""
    robot = pendulum(friction=0.5, stiffness=1.0, rest=0.3)
    with pytest.warns(ls.AccuracyWarning, match="joint of 'bob': its friction is a law of speed") as told:
        found = ls.solve_statics(robot.build())
    assert len(told) == 1
    np.testing.assert_array_equal(found.q, ls.solve_statics(robot.with_({"bob.joint.friction": 0.0}).build()).q)
    robot.add_joint_motion("hold", "bob", position=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ls.solve_statics(robot.build())


def test_robots_without_friction_have_no_term():
    """Kernels of robots without friction do not have it; friction of zero is none."""
    plain, zero, rubs = (block(friction=F).build() for F in (0.0, (0.0,), 1.0))
    assert acting_on(plain) is acting_on(zero)
    assert acting_on(plain) is not acting_on(rubs)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_loop():
    """A four-bar linkage on a dry crank: what it loses is the work of friction, and ∂a/∂v follows differences."""
    robot = chain(ls.JointRevolute((0, 1, 0), friction=0.05, slip_speed=1e-2),
                  *[ls.JointRevolute((0, 1, 0))] * 2)  # fmt: skip
    end, ground = np.eye(4), np.eye(4)
    end[0, 3], ground[0, 3] = 0.3, 0.35
    robot.add_loop("close", "link2", None, placement_a=end, placement_b=ground, joint=ls.JointRevolute((0, 1, 0)))
    model = robot.build()
    q0 = ls.assemble(model, [1.0, 0.5, 1.6], fixed=["link0"])
    motion = ls.simulate(model, 0.6, q0=q0, rtol=1e-9, atol=1e-11, t_eval=np.linspace(0.0, 0.6, 1201))
    balance = ls.energy_balance(model, motion)
    power = law(motion.v[:, 0], 0.05, slip_speed=1e-2) * motion.v[:, 0]
    assert balance.dissipated[-1] == pytest.approx(np.trapezoid(power, motion.t), rel=1e-5)
    assert balance.residual < 1e-6
    q, v = motion.q[600], motion.v[600]
    h = 1e-6 * v / np.linalg.norm(v)
    found = ls.forward_dynamics_derivatives(model, q, v)[1] @ h
    ahead, behind = (ls.forward_dynamics(model, q, v + s * h) for s in (1, -1))
    assert_near(found, (ahead - behind) / 2, 1e-6)


def test_robot_file(tmp_path):
    """Friction is read as it was written."""
    robot = all_kinds()
    again = round_trip(robot, tmp_path)
    q, v, a = states(robot.build(), 3)
    for k in range(5):
        for name in ("friction", "static_friction", "stribeck_speed", "slip_speed"):
            ours, theirs = (getattr(x.links[f"link{k}"].joint, name) for x in (robot, again))
            assert ours is theirs is None or np.array_equal(ours, theirs)
    assert_same(ls.inverse_dynamics(robot.build(), q, v, a), ls.inverse_dynamics(again.build(), q, v, a), "force")


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (ls.JointRevolute(friction=-0.1), "friction: must be >= 0, a number or one for each coordinate (got -0.1)"),
        (ls.JointRevolute(friction=np.nan), "friction: must be >= 0"),
        (ls.JointRevolute(friction=None), "friction: must be >= 0"),
        (ls.JointRevolute(friction="much"), "friction: must be >= 0"),
        (ls.JointUniversal(friction=(1, 2, 3)), "friction: must be >= 0, a number or one for each coordinate"),
        (ls.JointRevolute(friction=1.0, slip_speed=0.0), "slip_speed: must be > 0"),
        (ls.JointRevolute(friction=1.0, static_friction=0.5), "static_friction: must be >= friction"),
        (ls.JointRevolute(friction=1.0, static_friction=2.0), "stribeck_speed: must be > slip_speed"),
        (ls.JointRevolute(friction=1.0, static_friction=2.0, stribeck_speed=1e-4), "stribeck_speed: must be > slip"),
        (ls.JointRevolute(friction=1.0, stribeck_speed=0.1), "stribeck_speed: must be left out where there is no"),
        (ls.JointRevolute(stribeck_speed=0.1), "stribeck_speed: must be left out where there is no static_friction"),
        (ls.JointSpherical(friction=0.1), "friction: must be left out on a joint without coordinates, a spherical"),
        (ls.JointFree(friction=0.1), "friction: must be left out on a joint without coordinates, a spherical"),
        (ls.JointFixed(friction=0.1), "friction: must be left out on a joint without coordinates, a spherical"),
        (ls.JointSpherical(static_friction=0.1, stribeck_speed=1.0), "static_friction: must be left out on a joint"),
    ],
)
def test_bad_descriptions(joint, words):
    """Each wrong value is named with the rule it breaks."""
    with pytest.raises(ls.ModelError) as error:
        chain(joint).build()
    assert f"link 'link0' > joint: {words}" in str(error.value)


def test_loop_joints_have_no_friction():
    """The joint that closes a loop takes none."""
    robot = chain(ls.JointRevolute((0, 1, 0)), ls.JointRevolute((0, 1, 0)))
    with pytest.raises(ls.ModelError, match=r"loop 'l' > joint: friction: must be zero"):
        robot.add_loop("l", "link1", None, joint=ls.JointRevolute((0, 1, 0), friction=0.1))
        robot.build()
