"""Stops and nonlinear springs of joints: their laws, derivatives and energy, in trees, loops, statics and steps."""

import numpy as np
import pytest
import warp as wp
from robot_descriptions import assert_same, round_trip
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import lissom as ls

ROWS = [(-1.0, -2.0), (-0.3, -0.1), (0.2, 0.05), (0.9, 1.5), (1.2, 4.0)]
STOPS = {"limits": (-0.4, 0.5), "limit_stiffness": 30.0, "limit_damping": 0.2, "limit_width": 0.2}


@wp.func
def hardening(x: wp.float64) -> wp.float64:
    """A law of the user's own."""
    return wp.float64(0.7) * x + wp.float64(2.0) * x * x * x


BAR = ls.RigidBody(0.3, (0.15, 0.0, 0.0), np.diag([1e-4, 2.3e-3, 2.3e-3]))


def arm(*joints, gravity=(0.0, 0.0, -9.81)):
    """Bars one on another."""
    robot, parent = ls.Robot("arm", gravity=gravity), None
    for k, joint in enumerate(joints):
        robot.add_link(f"link{k}", BAR, joint, parent=parent, placement=None if parent is None else OFFSET)
        parent = f"link{k}"
    return robot


OFFSET = np.eye(4)
OFFSET[0, 3] = 0.3


def all_laws(law=ROWS):
    """A tree whose joints have stops and springs of all kinds, and one coordinate with neither."""
    each = {"limits": ((-0.4, -np.inf, -0.3), (0.5, 0.2, np.inf)), "limit_stiffness": (30.0, 20.0, 10.0)}
    return arm(
        ls.JointRevolute((0, 1, 0), **STOPS),
        ls.JointPlanar(**each, limit_damping=0.3, limit_width=0.1),
        ls.JointUniversal(spring=[ls.Tabulated([-1.0, 0.1, 1.0], [-1.0, 0.3, 4.0], "linear"), None], stiffness=0.0),
        ls.JointHelical((1, 0, 0), 0.02, spring=law, rest=0.1, **STOPS),
        ls.JointSpherical(stiffness=0.3),
        ls.JointPrismatic((0, 0, 1)),
    )


def states(model, n=6, size=0.7):
    """Random states, some behind the stops."""
    rng = np.random.default_rng(3)
    q = ls.integrate(model, np.tile(model.neutral(), (n, 1)), rng.uniform(-size, size, (n, model.nv)))
    return q, rng.uniform(-1, 1, (n, model.nv)), rng.uniform(-1, 1, (n, model.nv))


def test_law():
    """The force of stops and of the spline against their formulas, on both sides and within the width."""
    model = arm(ls.JointRevolute(spring=ROWS, rest=0.1, **STOPS), gravity=(0, 0, 0)).build()
    x, rate = np.array([-1.5, -0.7, -0.5, 0.0, 0.55, 0.6, 0.9, 1.4]), np.linspace(-3.0, 3.0, 8)
    found = ls.inverse_dynamics(model, x[:, None], rate[:, None], np.zeros((8, 1)))[:, 0]
    w, k, c = 0.2, 30.0, 0.2

    def push(d, speed):
        z = np.clip(d / w, 0.0, 1.0)
        R = np.where(d < w, w * (z**3 - z**4 / 2), d - w / 2)
        return np.maximum(0.0, k * R + c * z**2 * (3 - 2 * z) * speed)

    points, values = np.array(ROWS).T
    spline, y = CubicSpline(points, values), x - 0.1
    inside = spline(np.clip(y, points[0], points[-1]))
    beyond = spline(points[0], 1) * np.minimum(y - points[0], 0) + spline(points[-1], 1) * np.maximum(y - points[-1], 0)
    want = push(x - 0.5, rate) - push(-0.4 - x, -rate) + inside + beyond
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("law", [ROWS, hardening], ids=["table", "compiled"])
def test_derivatives(law):
    """∂τ/∂q and ∂τ/∂v against central differences, and the tangent against both."""
    model = all_laws(law).build()
    rng, h = np.random.default_rng(5), 1e-6
    for q, v, a in zip(*states(model)):
        by_q, by_v, by_a = ls.inverse_dynamics_derivatives(model, q, v, a)
        ends = h * np.eye(model.nv)
        ahead, behind = (ls.inverse_dynamics(model, ls.integrate(model, q, s * ends), v, a) for s in (1, -1))
        assert_near(by_q, (ahead - behind).T / (2 * h))
        ahead, behind = (ls.inverse_dynamics(model, q, v + s * ends, a) for s in (1, -1))
        assert_near(by_v, (ahead - behind).T / (2 * h))
        dq, dv, da = rng.uniform(-1, 1, (3, model.nv))
        tangent = ls.inverse_dynamics_tangent(model, q, v, a, dq, dv, da)
        assert_near(tangent, by_q @ dq + by_v @ dv + by_a @ da, 1e-12)
    without = ls.inverse_dynamics_derivatives(model, q, v, a, elastic=False)
    assert np.abs(without[0] - by_q).max() > 0.1, "the laws are elastic"


def assert_near(found, want, tolerance=1e-7):
    np.testing.assert_allclose(found, want, rtol=0, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("law", [ROWS, hardening], ids=["table", "compiled"])
def test_force_is_the_gradient_of_energy(law):
    """At rest the elastic forces are the gradient of the elastic energy, which is zero at rest."""
    model, h = all_laws(law).build(), 1e-5
    q = states(model)[0]
    still = np.zeros_like(q[:, : model.nv])
    force = ls.inverse_dynamics(model, q, still, still, gravity=False)
    for row, want in zip(q, force):
        ends = [ls.integrate(model, row, s * h * np.eye(model.nv)) for s in (1, -1)]
        ahead, behind = (ls.energy(model, end, 0 * still[:1]).elastic for end in ends)
        assert_near((ahead - behind) / (2 * h), want, 1e-7)
    rest = model.neutral()
    rest[model.links.q_start[3]] = 0.1
    assert ls.energy(model, rest, still[0]).elastic == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("method", ["bdf", "generalized_alpha", "newmark", "dop853"])
def test_bouncing_pendulum(method):
    """A pendulum that swings from stop to stop keeps its energy without damping."""
    joint = ls.JointRevolute((0, 1, 0), limits=(1.0, 2.0), limit_stiffness=40.0, limit_width=0.05)
    model = arm(joint).build()
    fixed = {"dt": 5e-4} if method in ("generalized_alpha", "newmark") else {"rtol": 1e-9, "atol": 1e-11}
    motion = ls.simulate(model, 1.0, q0=[1.5], v0=[6.0], method=method, **fixed)
    E = ls.energy(model, motion.q, motion.v)
    exchanged = np.ptp(E.elastic)
    turns = np.sum(np.diff(np.sign(motion.v[:, 0])) != 0)
    assert turns >= 3 and exchanged > 0.1
    tolerance = 2e-2 if method == "generalized_alpha" else 2e-3 if method == "newmark" else 1e-6
    assert np.abs(E.total - E.total[0]).max() < tolerance * exchanged


def test_damping_of_stops():
    """The work of the stops' dampers closes the energy balance; the pendulum comes to rest on its stop."""
    joint = ls.JointRevolute((0, 1, 0), limits=(-0.5, 0.4), limit_stiffness=40.0, limit_damping=0.5, limit_width=0.05)
    model = arm(joint).build()
    motion = ls.simulate(model, 1.5, rtol=1e-9, atol=1e-11, t_eval=np.linspace(0.0, 1.5, 6001))
    balance = ls.energy_balance(model, motion)
    assert balance.dissipated[-1] > 0.1 and balance.residual < 1e-5
    rest = ls.solve_statics(model, q0=motion.q[-1]).q
    assert abs(motion.q[-1, 0] - rest[0]) < 1e-3


def test_statics_on_a_stop():
    """A slider sinks into its stop by m g/k + w/2; a turning bar to where the stop bears its weight."""
    slider = arm(ls.JointPrismatic((0, 0, 1), limits=(-0.1, np.inf), limit_stiffness=2e3, limit_width=1e-3)).build()
    weight = 9.81 * slider.links.mass[0]
    q = ls.solve_statics(slider).q
    assert q[0] == pytest.approx(-0.1 - weight / 2e3 - 5e-4, abs=1e-13)
    bar = ls.RigidBody.box(0.3, 0.05, 0.04, density=500.0)
    robot = ls.Robot("bar")
    robot.add_link("hub", bar, ls.JointRevolute((0, 1, 0), spring=ROWS, limits=(-1, 0.2), limit_stiffness=50.0))
    robot.add_link("end", bar, ls.JointFixed(), parent="hub", placement=OFFSET)
    model = robot.build()
    arm_of_weight = 9.81 * model.links.mass[1] * 0.3
    spline = CubicSpline(*np.array(ROWS).T)
    want = brentq(lambda x: 50.0 * (x - 0.2 - 5e-4) + spline(x) - arm_of_weight * np.cos(x), 0.21, 1.0, xtol=1e-15)
    assert ls.solve_statics(model).q[0] == pytest.approx(want, abs=1e-12)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_loop():
    """A four-bar linkage between stops: energy is kept while it swings, and ∂a/∂q follows differences."""
    robot = arm(ls.JointRevolute((0, 1, 0), limits=(0.9, 1.9), limit_stiffness=30.0, limit_width=0.05),
                ls.JointRevolute((0, 1, 0)), ls.JointRevolute((0, 1, 0), spring=ROWS, rest=1.5))  # fmt: skip
    ground = np.eye(4)
    ground[0, 3] = 0.35
    robot.add_loop("close", "link2", None, placement_a=OFFSET, placement_b=ground, joint=ls.JointRevolute((0, 1, 0)))
    model = robot.build()
    q0 = ls.assemble(model, [1.0, 0.5, 1.6], fixed=["link0"])
    motion = ls.simulate(model, 0.6, q0=q0, rtol=1e-9, atol=1e-11)
    E = ls.energy(model, motion.q, motion.v)
    assert np.ptp(motion.q[:, 0]) > 0.2 and np.ptp(E.elastic) > 0.05
    assert np.abs(E.total - E.total[0]).max() < 1e-6 * np.ptp(E.elastic)


def test_fused_and_separate_steps():
    """A Python actuator of no force makes the steps go through Python: the same numbers."""
    ends = []
    for separate in (False, True):
        robot = all_laws()
        if separate:
            robot.add_custom_actuator("nothing", lambda q: np.zeros(11))
        model = robot.build()
        motion = ls.simulate(model, 0.1, u=np.zeros(model.nu), method="generalized_alpha", dt=5e-3)
        ends.append((motion.q[-1], motion.v[-1]))
    for one, other in zip(*ends):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * np.abs(one).max())


def test_robot_file(tmp_path):
    """Stops and springs are read as they were written."""
    robot = all_laws()
    again = round_trip(robot, tmp_path)
    a, b = robot.build(), again.build()
    q, v, a_dot = states(a, 3)
    assert_same(ls.inverse_dynamics(a, q, v, a_dot), ls.inverse_dynamics(b, q, v, a_dot), "force")


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (ls.JointRevolute(limits=(0.5, -0.5), limit_stiffness=1.0), "limits: must be (low, high), low < high"),
        (ls.JointRevolute(limits=0.5, limit_stiffness=1.0), "limits: must be (low, high), low < high"),
        (ls.JointRevolute(limits=(0.0, np.nan), limit_stiffness=1.0), "limits: must be (low, high), low < high"),
        (ls.JointRevolute(limits=(-1.0, 1.0)), "limit_stiffness: must be > 0"),
        (ls.JointRevolute(limits=(-1, 1), limit_stiffness=1, limit_damping=-1), "limit_damping: must be >= 0"),
        (ls.JointRevolute(limits=(-1, 1), limit_stiffness=1, limit_width=0.0), "limit_width: must be > 0"),
        (ls.JointRevolute(limit_stiffness=1.0), "limit_stiffness: must be left out where there are no limits"),
        (ls.JointSpherical(limits=(-1, 1), limit_stiffness=1.0), "limits: must be left out on a joint without"),
        (ls.JointFixed(spring=ROWS), "spring: must be left out on a joint without"),
        (ls.JointRevolute(spring=ROWS, stiffness=1.0), "stiffness: must be left out where there is a spring"),
        (ls.JointRevolute(spring=ROWS[::-1]), "spring: needs at least two rising coordinates"),
        (ls.JointRevolute(spring=lambda x: x), "spring: must be rows (x, force)"),
        (ls.JointUniversal(spring=[ROWS]), "spring: must be a list with one for each of the 2 coordinates"),
    ],
)
def test_bad_descriptions(joint, words):
    """Each wrong value is named with the rule it breaks."""
    with pytest.raises(ls.ModelError) as error:
        arm(joint).build()
    assert f"link 'link0' > joint: {words}" in str(error.value)
    assert ls.JointRevolute().limits is None


def test_loop_joints_have_no_stops():
    """The joint that closes a loop takes none."""
    robot = arm(ls.JointRevolute((0, 1, 0)), ls.JointRevolute((0, 1, 0)))
    joint = ls.JointRevolute((0, 1, 0), limits=(-1, 1), limit_stiffness=1.0)
    with pytest.raises(ls.ModelError, match=r"loop 'l' > joint: limits: must be zero"):
        robot.add_loop("l", "link1", None, joint=joint)
        robot.build()
