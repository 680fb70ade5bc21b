"""Skates and rolling wheels: against equations of their own, integrated by SciPy, and closed forms."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from touching_robots import moved

import lissom as ls
from lissom.robot.constraints import RowKind

G = 9.81
UP = np.array([0.0, 0.0, 1.0])
EXACT = {"method": "dop853", "rtol": 1e-11, "atol": 1e-12}


def integrated(rates, end, start):
    """The state at the end of y' = rates(t, y)."""
    return solve_ivp(rates, (0.0, end), start, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def skew(x):
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def slip(model, motion):
    """The largest rate of a constraint of a motion."""
    rows = ls.constraint_jacobian(model, motion.q)[:, model.n_motions :]
    return np.abs(np.einsum("nij,nj->ni", rows, motion.v)).max()


# ---- the sleigh of Chaplygin: a blade, and a centre of mass at a distance A before it

MASS, ABOUT, A, END = 2.0, 0.1, 0.3, 2.0


@lru_cache
def sleigh():
    robot = ls.Robot("sleigh", gravity=(0, 0, 0))
    body = ls.RigidBody(MASS, com=(A, 0, 0), inertia=(0.06, 0.05, ABOUT))
    robot.add_link("body", body, ls.JointPlanar())
    robot.add_skate("blade", "body", (0, 2, 0))
    return robot.build()


def test_sleigh():
    """m (u̇ − a ω²) = 0 and (J + m a²) ω̇ = −m a u ω; the blade pushes with m (u ω + a ω̇) to the left."""

    def rates(_, y):
        angle, u, w = y[2:]
        return [u * np.cos(angle), u * np.sin(angle), w, A * w**2, -MASS * A * u * w / (ABOUT + MASS * A**2)]

    q0, u0, w0 = np.array([0.3, 0.2, -0.1]), 1.0, 0.7
    v0 = [u0 * np.cos(q0[2]), u0 * np.sin(q0[2]), w0]
    *q, u, w = integrated(rates, END, [*q0, u0, w0])
    push = MASS * (u * w + A * rates(0.0, [*q, u, w])[4])
    for options, error in ((EXACT, 1e-11), ({"rtol": 1e-10, "atol": 1e-12}, 1e-8)):
        motion = ls.simulate(sleigh(), END, q0, v0, **options)
        np.testing.assert_allclose(motion.q[-1], q, atol=error)
        assert motion.multipliers[-1, 0] == pytest.approx(push, abs=error)
        assert slip(sleigh(), motion) < 1e-9
        energy = ls.energy(sleigh(), motion.q, motion.v).kinetic
        assert np.ptp(energy) < error


@pytest.mark.parametrize("method", ["generalized_alpha", "newmark", "bathe", "sdirk", "esdirk"])
@pytest.mark.parametrize("project", [True, False])
def test_fixed_steps_keep_their_order(method, project):
    """Half of the step size has a quarter of the error, and the blade does not slip at the ends of steps."""
    q0, v0 = np.zeros(3), [1.0, 0.0, 0.7]
    reference = ls.simulate(sleigh(), END, q0, v0, **EXACT).q[-1]
    errors = []
    for dt in (0.04, 0.02):
        motion = ls.simulate(sleigh(), END, q0, v0, method=method, dt=dt, project_velocity=project)
        errors.append(np.abs(motion.q[-1] - reference).max())
        assert slip(sleigh(), motion) < 1e-9
    assert errors[0] > 3.0 * errors[1]
    assert errors[1] < 5e-4


# ---- a coin that rolls on a plane

COIN, ACROSS, AXIAL, RADIUS = 1.3, 0.013, 0.024, 0.2


@lru_cache
def coin(tilt=(0.0, 0.0, 0.0)):
    """The coin on a plane that is turned by `tilt`; gravity is normal to the plane."""
    turn = Rotation.from_rotvec(tilt)
    robot = ls.Robot("coin", gravity=turn.apply(-G * UP))
    robot.add_link("coin", ls.RigidBody(COIN, inertia=(ACROSS, ACROSS, AXIAL)), ls.JointFree())
    robot.add_rolling("rim", "coin", RADIUS, axis=UP, placement=moved(0.2, -0.1, 0.3, tilt))
    return robot.build()


def lever(b, w):
    """From the centre of the coin with the axis b to its lowest point, and its rate with the angular velocity w."""
    z = b[2]
    s = np.sqrt(1.0 - z**2)
    b_rate = np.cross(w, b)
    m_rate = (-b_rate[2] * b - z * b_rate) / s + (UP - z * b) * z * b_rate[2] / s**3
    return -RADIUS * (UP - z * b) / s, -RADIUS * m_rate


def coin_rates(_, y):
    """Rates of the rotation R, ω and the position of the centre x, all in axes of the plane: with the lever ρ and the
    inertia I, d(I ω)/dt = ρ × m (d(ρ × ω)/dt + g n), since the plane acts at ρ alone."""
    R, w = y[:9].reshape(3, 3), y[9:12]
    b = R[:, 2]
    rho, rho_rate = lever(b, w)
    inertia = ACROSS * np.eye(3) + (AXIAL - ACROSS) * np.outer(b, b)
    known = COIN * np.cross(rho, np.cross(rho_rate, w) + G * UP) - np.cross(w, inertia @ w)
    w_rate = np.linalg.solve(inertia - COIN * skew(rho) @ skew(rho), known)
    return np.concatenate([(skew(w) @ R).ravel(), w_rate, np.cross(rho, w)])


def coin_start():
    """A state of `coin_rates`: the coin is inclined, spins and precesses."""
    R = Rotation.from_euler("zx", [0.4, 1.2]).as_matrix()
    w = R @ [0.5, 0.8, 9.0]
    return np.concatenate([R.ravel(), w, np.array([0.3, -0.2, 0.0]) - lever(R[:, 2], w)[0]])


def coin_state(y, tilt):
    """q and v of the model in a state of `coin_rates`."""
    plane = moved(0.2, -0.1, 0.3, tilt)
    R, w, x = y[:9].reshape(3, 3), y[9:12], plane[:3, :3] @ y[12:] + plane[:3, 3]
    speed = np.cross(lever(R[:, 2], w)[0], w)
    quaternion = Rotation.from_matrix(plane[:3, :3] @ R).as_quat()[[3, 0, 1, 2]]
    return np.concatenate([quaternion, x]), np.concatenate([R.T @ w, R.T @ speed])


@pytest.mark.parametrize("tilt", [(0.0, 0.0, 0.0), (0.5, -0.7, 0.2)])
def test_coin(tilt):
    """The motion is that of the equations of the coin; energy and the height of its rim stay."""
    model, y = coin(tilt), coin_start()
    q, v = coin_state(y, tilt)
    assert np.abs(ls.constraint_jacobian(model, q) @ v).max() < 1e-14
    np.testing.assert_allclose(ls.forward_dynamics(model, q, v)[:3], y[:9].reshape(3, 3).T @ coin_rates(0, y)[9:12],
                               rtol=1e-11, atol=1e-12)  # fmt: skip
    end, _ = coin_state(integrated(coin_rates, 1.0, y), tilt)
    for options, error in ((EXACT, 1e-10), ({"rtol": 1e-9, "atol": 1e-11}, 1e-7)):
        motion = ls.simulate(model, 1.0, q, v, **options)
        np.testing.assert_allclose(np.abs(ls.difference(model, end, motion.q[-1])).max(), 0.0, atol=error)
        assert slip(model, motion) < 1e-9
        assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-11
        total = ls.energy(model, motion.q, motion.v).total
        assert np.ptp(total) < 3.0 * error * total[0]


@pytest.mark.parametrize(("method", "project"), [("generalized_alpha", True), ("generalized_alpha", False),
                                                 ("bathe", True), ("sdirk", True), ("esdirk", True)])  # fmt: skip
def test_coin_in_fixed_steps(method, project):
    """Half of the step size has a quarter of the error."""
    y, flat = coin_start(), (0.0, 0.0, 0.0)
    end, _ = coin_state(integrated(coin_rates, 0.5, y), flat)
    errors = []
    for dt in (4e-3, 2e-3):
        motion = ls.simulate(coin(), 0.5, *coin_state(y, flat), method=method, dt=dt, project_velocity=project)
        errors.append(np.abs(ls.difference(coin(), end, motion.q[-1])).max())
        assert np.abs(ls.loop_residual(coin(), motion.q)).max() < 1e-10
    assert errors[0] > 3.0 * errors[1]


# ---- balls


def test_ball_on_a_slope():
    """A solid ball rolls down a slope of angle α with 5/7 g sin α; the plane pushes with 2/7 m g sin α up the slope and
    with m g cos α along its normal."""
    slope, r, m = 0.3, 0.1, 0.7
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody(m, inertia=(0.4 * m * r**2,) * 3), ls.JointFree())
    robot.add_rolling("slope", "ball", r, placement=moved(turn=(0.0, slope, 0.0)))
    model = robot.build()
    q = ls.assemble(model, model.neutral())
    motion = ls.simulate(model, 1.0, q, **EXACT)
    way = (motion.q[-1] - q)[4:]
    down = np.array([np.cos(slope), 0.0, -np.sin(slope)])
    np.testing.assert_allclose(way, 0.5 * 5.0 / 7.0 * G * np.sin(slope) * down, atol=1e-10)
    wanted = m * G * np.array([-2.0 / 7.0 * np.sin(slope), 0.0, np.cos(slope)])
    np.testing.assert_allclose(motion.multipliers, np.tile(wanted, (len(motion.t), 1)), atol=1e-9)
    W = ls.loop_wrenches(model, motion.q[-1], motion.multipliers[-1])[0]  # in the axes of the plane, about its origin
    rotation = ls.frame_pose(model, q, "ball")[:3, 3] - r * np.array([np.sin(slope), 0.0, np.cos(slope)])
    touched = np.array([np.linalg.norm(rotation + way), 0.0, 0.0]) * np.sign((rotation + way) @ down)
    np.testing.assert_allclose(W, np.concatenate([np.cross(touched, wanted), wanted]), atol=1e-8)


def test_ball_on_a_turntable():
    """A solid ball on a plane that turns with Ω about the vertical goes round a circle with 2/7 Ω."""
    r, m, speed = 0.1, 0.7, 1.5
    robot = ls.Robot("table")
    robot.add_link("table", ls.RigidBody(5.0, inertia=(1.0, 1.0, 2.0)), ls.JointRevolute(UP), placement=moved(z=0.4))
    robot.add_joint_motion("drive", "table", position=ls.Expression(f"{speed}*t", "t"))
    robot.add_link("ball", ls.RigidBody(m, inertia=(0.4 * m * r**2,) * 3), ls.JointFree())
    robot.add_rolling("plane", "ball", r, ground="table")
    model = robot.build()
    q = model.neutral()
    q[-3:] = 0.5, 0.2, 0.4 + r
    v = ls.assemble_velocities(model, q, [speed, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0])
    turned = 2.0 / 7.0 * speed
    centre = q[-3:-1] + np.array([-v[-2], v[-3]]) / turned  # of the circle: v = turned · UP × (x − centre)
    motion = ls.simulate(model, 2.0, q, v, **EXACT)
    c, s = np.cos(turned * 2.0), np.sin(turned * 2.0)
    wanted = centre + np.array([[c, -s], [s, c]]) @ (q[-3:-1] - centre)
    np.testing.assert_allclose(motion.q[-1, -3:-1], wanted, atol=1e-9)
    np.testing.assert_allclose(motion.q[:, -1], 0.4 + r, atol=1e-11)


# ---- a snake of three links with passive wheels: its joints determine its motion

LENGTH = 0.4


def test_snake_of_three_links():
    """With a skate at the middle of each link, v = −A_b⁻¹ A_s α̇ of its own rows A."""
    robot = ls.Robot("snake", gravity=(0, 0, 0))
    body = ls.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
    bent = "0.4 + 0.5*sin(2*t)", "-0.5 + 0.4*cos(2*t)"
    robot.add_link("middle", body, ls.JointPlanar())
    for name, side in (("front", 1.0), ("rear", -1.0)):
        robot.add_link(f"{name}_turn", None, ls.JointRevolute(UP), "middle", placement=moved(side * LENGTH / 2))
        robot.add_link(name, body, parent=f"{name}_turn", placement=moved(side * LENGTH / 2))
        robot.add_joint_motion(name, f"{name}_turn", position=ls.Expression(bent[name == "rear"], "t"))
    for name in ("middle", "front", "rear"):
        robot.add_skate(name, name, (0, 1, 0))
    model = robot.build()

    def rates(t, y):
        bends = 0.4 + 0.5 * np.sin(2 * t), -0.5 + 0.4 * np.cos(2 * t)
        bend_rates = np.cos(2 * t), -0.8 * np.sin(2 * t)
        rows, right = [[-np.sin(y[2]), np.cos(y[2]), 0.0]], [0.0]
        for side, bend, rate in zip((1.0, -1.0), bends, bend_rates):
            # the sideways velocity of the wheel, at side L/2 (cos θ, sin θ) + side L/2 (cos φ, sin φ), φ = θ + bend
            half, across = side * LENGTH / 2, np.array([-np.sin(y[2] + bend), np.cos(y[2] + bend)])
            hinge = half * np.array([-np.sin(y[2]), np.cos(y[2])])
            rows.append([*across, across @ hinge + half])
            right.append(-half * rate)
        return np.linalg.solve(rows, right)

    end = integrated(rates, 1.0, np.zeros(3))
    for options, error in ((EXACT, 1e-9), ({"rtol": 1e-10, "atol": 1e-12}, 1e-7)):
        motion = ls.simulate(model, 1.0, [0.0, 0.0, 0.0, 0.0, 0.0], **options)
        np.testing.assert_allclose(motion.q[-1, :3], end, atol=error)
        assert slip(model, motion) < 1e-9
    assert np.abs(end[:2]).max() > 0.05


# ---- a car of two driven wheels and a ball caster

TRACK, WHEEL, CASTER = 0.15, 0.08, 0.03  # half of the track, radii [m]


def car(is_free, arm=False):
    """A base with two driven wheels: free, on three contacts, or on a planar joint without heights."""
    robot = ls.Robot("car")
    joint, height = (ls.JointFree(), 0.0) if is_free else (ls.JointPlanar(), WHEEL)
    base = ls.RigidBody(3.0, com=(0.05, 0, 0), inertia=(0.03, 0.03, 0.05))
    robot.add_link("base", base, joint, placement=moved(z=height))
    for name, side in (("left", 1.0), ("right", -1.0)):
        robot.add_link(name, ls.RigidBody(0.3, inertia=(5e-4, 9e-4, 5e-4)), ls.JointRevolute((0, 1, 0)), "base",
                       placement=moved(y=side * TRACK))  # fmt: skip
        robot.add_joint_actuator(name, name)
        robot.add_rolling(name, name, WHEEL, axis=(0, 1, 0), height=is_free)
    ball = ls.RigidBody(0.1, inertia=(0.4 * 0.1 * CASTER**2,) * 3)
    robot.add_link("caster", ball, ls.JointSpherical(), "base", placement=moved(0.12, 0.0, CASTER - WHEEL))
    robot.add_rolling("caster", "caster", CASTER, height=is_free)
    if arm:
        rubber = ls.Material(young=5e6, poisson=0.45, density=1100.0, damping_time=0.05)
        rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, bending_z=1), rubber)
        robot.add_link("arm", rod, parent="base", placement=moved(z=0.05, turn=(0.0, -np.pi / 2, 0.0)))
    return robot


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_a_free_car_moves_like_one_on_a_planar_joint():
    """The heights of three contacts hold what the planar joint holds. Two of the sideways rows are one."""
    free, flat = car(True).build(), car(False).build()
    u = ls.Expression(["0.1*sin(3*t)", "0.08*cos(2*t)"], "t")
    on_floor = free.neutral()
    on_floor[6] = WHEEL
    options = {"rtol": 1e-9, "atol": 1e-11}
    one = ls.simulate(free, 2.0, on_floor, u=u, **options)
    two = ls.simulate(flat, 2.0, u=u, **options)
    a, b = (ls.frame_pose(model, motion.q[-1], "base") for model, motion in ((free, one), (flat, two)))
    np.testing.assert_allclose(a, b, atol=1e-7)
    assert np.abs(a[:2, 3]).max() > 0.05
    weight = (3.0 + 0.6 + 0.1) * G
    heights = [free.loops.row_kind.tolist().index(RowKind.HEIGHT, 3 * k) for k in range(3)]
    assert one.multipliers[0][heights].sum() == pytest.approx(weight, rel=1e-9)
    assert (one.multipliers[:, heights] > 0.0).all()


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_a_car_with_a_soft_arm_drives_a_circle():
    """Wheels of constant speed drive a circle of radius v/ω. The arm comes to rest relative to the base, bent outwards
    like the arm on a base that turns about the centre of the circle."""
    left, right = 4.0, 6.0
    robot = car(False, arm=True)
    speed, turn = WHEEL * (left + right) / 2, WHEEL * (right - left) / (2 * TRACK)
    for name, rate in (("left", left), ("right", right)):
        robot.actuators.pop(name)
        robot.add_joint_motion(name, name, position=ls.Expression(f"{rate}*t", "t"))
    model = robot.build()
    motion = ls.simulate(model, 6.0, dt=0.01)
    t = motion.t
    np.testing.assert_allclose(motion.q[:, 2], turn * t, atol=2e-5)
    np.testing.assert_allclose(motion.q[:, 0], speed / turn * np.sin(turn * t), atol=2e-4)
    np.testing.assert_allclose(motion.q[:, 1], speed / turn * (1 - np.cos(turn * t)), atol=2e-4)
    table = ls.Robot("table")
    table.add_link("disc", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0)), ls.JointRevolute(UP))
    table.links["arm"] = ls.Link("arm", robot.links["arm"].body, parent="disc",
                                 placement=moved(y=-speed / turn, z=0.05, turn=(0.0, -np.pi / 2, 0.0)))  # fmt: skip
    steady = table.build()
    rest = ls.solve_statics(steady, v=[turn, *np.zeros(steady.nv - 1)])
    bent = rest.q[1:]
    np.testing.assert_allclose(motion.q[-1, -len(bent) :], bent, atol=1e-3 * np.abs(bent).max())
