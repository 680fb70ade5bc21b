"""Constraints by functions of poses and velocities against closed forms, other solvers and other robots."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, root

import lissom as ls

G, MASS = 9.81, 1.3
POINT = ls.RigidBody(MASS, (0, 0, 0), 1e-3 * np.eye(3))
TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-14}


def free(*functions, body=POINT, gravity=(0, 0, -G), **options):
    """A free body with constraints against the world."""
    robot = ls.Robot("free", gravity=gravity)
    robot.add_link("body", body, ls.JointFree())
    for k, function in enumerate(functions):
        robot.add_constraint(f"c{k}", "body", function=function, **options)
    return robot


def at(model, place, v=(0, 0, 0), w=(0, 0, 0)):
    """The state of a free body without a turn at a place, with the velocity v and the angular velocity w."""
    q = model.neutral()
    q[4:] = place
    return q, np.array([*w, *v], dtype=float)


@pytest.mark.parametrize("method", ["auto", "esdirk", "dop853"])
def test_a_bead_on_a_parabolic_wire(method):
    """z = x² in the plane y = 0: (1 + 4 x²) ẍ + 4 x ẋ² + 2 g x = 0, by another solver; the energy stays."""
    model = free(ls.Expression("z - x**2", "x, z"), ls.Expression("y", "y")).build()
    q, v = at(model, (0.8, 0.0, 0.64), (0.5, 0.0, 0.8))
    motion = ls.simulate(model, 1.5, q, v, **TIGHT | {"method": method})

    def wire(t, y):
        return [y[1], -(4 * y[0] * y[1] ** 2 + 2 * G * y[0]) / (1 + 4 * y[0] ** 2)]

    x, speed = solve_ivp(wire, (0, 1.5), [0.8, 0.5], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(motion.q[-1, 4:], [x, 0.0, x * x], rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.v[-1, 3:], [speed, 0.0, 2 * x * speed], rtol=0, atol=1e-7)
    energy = ls.energy(model, motion.q, motion.v).total
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-7)


def test_the_force_of_a_wire():
    """The multipliers are the forces on the bead: against the gradient (−2x, 0, 1) with m (g + 2 ẋ²)/(1 + 4 x²)."""
    model = free(ls.Expression("z - x**2", "x, z"), ls.Expression("y", "y")).build()
    q, v = at(model, (0.8, 0.0, 0.64), (0.5, 0.0, 0.8))
    force = ls.simulate(model, 1e-3, q, v, dt=1e-3).multipliers[0]
    wanted = MASS * (G + 2 * 0.5**2) / (1 + 4 * 0.8**2)
    np.testing.assert_allclose(force, [wanted, 0.0], rtol=1e-9, atol=1e-10)
    W = ls.loop_wrenches(model, q, force)
    np.testing.assert_allclose(W[0], [0, -0.64 * 1.6 * wanted - 0.8 * wanted, 0, -1.6 * wanted, 0, wanted], rtol=1e-9)


@pytest.mark.parametrize(("method", "error"), [("auto", 1e-8), ("dop853", 1e-9)])
def test_a_rod_of_constant_length_is_a_pendulum(method, error):
    """A body whose point is held at a distance from a point of the world, without turns, and a pendulum on a revolute
    joint of the same inertia. The steps of the default method are of second order."""
    length, body = 0.5, ls.RigidBody(MASS, (0, 0, 0), np.zeros((3, 3)))
    robot = ls.Robot("distance", gravity=(0, 0, -G))
    robot.add_link("x", ls.RigidBody(0.0, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic((1, 0, 0)))
    robot.add_link("bob", body, ls.JointPrismatic((0, 0, 1)), "x")
    robot.add_constraint("rod", "bob", function=ls.Expression("sqrt(x*x + y*y + z*z) - L", "x, y, z", {"L": length}))
    model = robot.build()
    other = ls.Robot("pendulum", gravity=(0, 0, -G))
    other.add_link("bob", ls.RigidBody(MASS, (0, 0, -length), np.zeros((3, 3))), ls.JointRevolute((0, -1, 0)))
    swung = ls.simulate(other.build(), 1.5, [2.0], [1.0], **TIGHT)

    def place(angle, rate):
        return (length * np.array([np.sin(angle), -np.cos(angle)]),
                length * rate * np.array([np.cos(angle), np.sin(angle)]))  # fmt: skip

    motion = ls.simulate(model, 1.5, *place(2.0, 1.0), **TIGHT | {"method": method})
    q, v = place(swung.q[-1, 0], swung.v[-1, 0])
    np.testing.assert_allclose(motion.q[-1], q, rtol=0, atol=error)
    np.testing.assert_allclose(motion.v[-1], v, rtol=0, atol=10 * error)


def test_great_circles_and_energy_of_a_torus():
    """Without gravity a particle on a sphere moves on a great circle; on a torus its energy and its angular momentum
    about the axis stay."""
    model = free(ls.Expression("x*x + y*y + z*z - 0.25", "x, y, z"), gravity=(0, 0, 0)).build()
    q, v = at(model, (0.5, 0, 0), (0, 0.6, 0.8))
    motion = ls.simulate(model, 2.0, q, v, **TIGHT)
    angle = motion.t / 0.5
    wanted = 0.5 * (np.outer(np.cos(angle), [1, 0, 0]) + np.outer(np.sin(angle), [0, 0.6, 0.8]))
    np.testing.assert_allclose(motion.q[:, 4:], wanted, rtol=0, atol=1e-8)
    torus = ls.Expression("(sqrt(x*x + y*y) - 0.5)**2 + z*z - 0.04", "x, y, z")
    model = free(torus).build()
    q, v = at(model, (0.7, 0, 0), (0, 0.6, 0.8))
    motion = ls.simulate(model, 2.0, q, v, **TIGHT)
    p = motion.q[:, 4:]
    assert np.abs([torus(x) for x in p]).max() < 1e-11
    energy = ls.energy(model, motion.q, motion.v).total
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-7)
    spin = np.cross(p, motion.v[:, 3:])[:, 2]
    np.testing.assert_allclose(spin, spin[0], rtol=0, atol=1e-8)


def test_a_rope_that_is_hauled_in():
    """A particle on a frictionless table at the end of a rope whose length is the coordinate of a driven joint keeps
    its angular momentum: a function of time by a joint."""
    model = free(ls.Expression("sqrt(x*x + y*y) - L", "x, y, L"), gravity=(0, 0, 0), joints=["winch"])
    model.add_link("winch", ls.RigidBody(0.0, (0, 0, 0), np.zeros((3, 3))), ls.JointPrismatic((0, 1, 0)))
    model.add_joint_motion("pull", "winch", position=ls.Expression("0.5 - 0.1*t - 0.05*t*t", "t"))
    model = model.build()
    motion = ls.simulate(model, 1.5, [1, 0, 0, 0, 0.5, 0, 0, 0.5], [0, 0, 0, -0.1, 0.8, 0, -0.1], **TIGHT)
    length = 0.5 - 0.1 * motion.t - 0.05 * motion.t**2
    np.testing.assert_allclose(np.hypot(*motion.q[:, 4:6].T), length, rtol=0, atol=1e-10)
    R = motion.q[:, 4:7]
    np.testing.assert_allclose(np.cross(R, motion.v[:, 3:6])[:, 2], 0.4, rtol=0, atol=1e-7)
    tension = MASS * (0.4**2 / length**3 + 0.1)  # m (r φ̇² − r̈), r̈ = −0.1
    np.testing.assert_allclose(motion.multipliers, -np.stack([tension, tension], axis=1), rtol=1e-9)


def test_an_angle_between_axes():
    """A body on a spherical joint whose axis stays at 60 degrees to the vertical precesses like a top on a universal
    mount: against the same body on two hinges, the second one tilted."""
    angle = np.pi / 3
    inertia = (0.02, 0.02, 0.03)
    robot = ls.Robot("top", gravity=(0, 0, 0))
    body = ls.RigidBody(1.0, (0, 0, 0), inertia)
    robot.add_link("top", body, ls.JointSpherical())
    robot.add_constraint("tilt", "top", function=ls.Expression("R33 - c", "R33", {"c": np.cos(angle)}))
    model = robot.build()
    other = ls.Robot("hinges", gravity=(0, 0, 0))
    tilted = np.eye(4)
    tilted[:3, :3] = [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    other.add_link("yoke", None, ls.JointRevolute((0, 0, 1)))
    other.add_link("top", body, ls.JointRevolute((0, 0, 1)), "yoke", placement=tilted)
    other = other.build()
    turn = ls.frame_pose(other, [0.0, 0.0], "top")[:3, :3]
    q = np.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0])
    w = turn.T @ (np.array([0, 0, 2.0]) + turn[:, 2] * 5.0)
    motion = ls.simulate(model, 1.0, q, w, **TIGHT)
    wanted = ls.simulate(other, 1.0, [0, 0], [2.0, 5.0], **TIGHT)
    np.testing.assert_allclose(ls.frame_pose(model, motion.q[-1], "top"), ls.frame_pose(other, wanted.q[-1], "top"),
                               rtol=0, atol=1e-8)  # fmt: skip
    moment = ls.loop_wrenches(model, motion.q[-1], motion.multipliers[-1])[0, :3]
    axis = ls.frame_pose(model, motion.q[-1], "top")[:3, 2]
    swept = np.cross([0, 0, 2.0], axis)  # L̇ of the steady precession, along the nodal line
    L = 0.02 * (np.array([0, 0, 2.0]) - axis * axis[2] * 2.0) + 0.03 * axis * (5.0 + axis[2] * 2.0)
    np.testing.assert_allclose(moment, np.cross([0, 0, 2.0], L), rtol=0, atol=1e-7)
    assert abs(moment @ np.array([0, 0, 1.0])) < 1e-9 and np.linalg.norm(swept) > 0.1


def test_a_tip_in_a_curved_slot():
    """A light elastic strip, clamped at one end, whose tip lies in a curved slot: the gradient of its total energy, by
    differences, is the force of the slot times the gradient of the slot, found by SciPy from another start."""
    rubber = ls.Material(young=2e6, poisson=0.5, density=1000.0, damping_time=0.01)
    robot = ls.Robot("strip", gravity=(0, 0, 0))
    robot.add_link("strip", ls.Rod(0.4, ls.SectionCircle(0.005), ls.BasisLegendre(bending_z=4), rubber))
    robot.add_point_load("push", "strip", force=(0.0, 0.05, 0.0))
    robot.add_constraint("slot", "strip", function=ls.Expression("x - d + c*y*y", "x, y", {"c": 2.0, "d": 0.38}))
    model = robot.build()
    rest = ls.solve_statics(model, q0=ls.assemble(model, np.full(model.nv, 1.0)))

    def energy_and_gap(q):
        x, y = ls.frame_pose(model, q, "strip")[:2, 3]
        return np.array([ls.energy(model, q, np.zeros(model.nv)).elastic - 0.05 * y, x - 0.38 + 2.0 * y * y])

    def stationary(z):
        q, h = z[:-1], 1e-3
        steps = [energy_and_gap(q + n * h * e) for e in np.eye(len(q)) for n in (-2, -1, 1, 2)]
        slopes = np.reshape(steps, (len(q), 4, 2)).swapaxes(1, 2) @ np.array([1, -8, 8, -1]) / (12 * h)
        return np.append(1e3 * (slopes[:, 0] - z[-1] * slopes[:, 1]), energy_and_gap(q)[1])

    found = root(stationary, np.append(rest.q + 0.3, 0.0), tol=1e-13).x
    np.testing.assert_allclose(rest.q, found[:-1], rtol=0, atol=1e-8)
    assert rest.multipliers[0] == pytest.approx(found[-1], rel=1e-7)
    p = ls.frame_pose(model, rest.q, "strip")[:3, 3]
    W = ls.loop_wrenches(model, rest.q, rest.multipliers)[0]
    np.testing.assert_allclose(np.cross(W[3:], [1.0, 4.0 * p[1], 0.0]), 0.0, atol=1e-10)
    assert rest.is_stable


def test_a_heavy_ring_on_a_parabola_rests_where_the_slope_balances_its_spring():
    """A bead on z = x² with a spring of no length to (1, 0, 0) rests where the gradient of the potential along the wire
    vanishes, and swings there with the second derivative over the mass m (1 + 4 x²)."""
    robot = free(ls.Expression("z - x**2", "x, z"), ls.Expression("y", "y"), ls.Expression("R21", "R21"),
                 ls.Expression("R31", "R31"), ls.Expression("R32", "R32"))  # fmt: skip
    robot.add_spring("spring", ls.PathPoint("body"), ls.PathPoint(None, (1.0, 0.0, 0.0)), stiffness=30.0, rest=0.0)
    model = robot.build()
    rest = ls.solve_statics(model, q0=at(model, (0.6, 0, 0.36))[0])
    x = brentq(lambda x: 2 * MASS * G * x + 30.0 * (x - 1.0) + 30.0 * 2 * x**3, 0.0, 1.0, xtol=1e-14)
    np.testing.assert_allclose(rest.q, [1, 0, 0, 0, x, 0, x * x], rtol=0, atol=1e-9)
    frequency = ls.modes(model, rest.q).frequencies[0]
    stiffness = 2 * MASS * G + 30.0 + 180.0 * x * x
    assert frequency == pytest.approx(np.sqrt(stiffness / (MASS * (1 + 4 * x * x))), rel=1e-7)


def bowl(radius, ball):
    """A ball that rolls inside a sphere: its distance from the centre, and two velocities of the point of contact."""
    names = "x, y, z, vx, vy, vz, wx, wy, wz"
    slips = ["vx + a*(wy*z - wz*y)/sqrt(x*x + y*y + z*z)", "vy + a*(wz*x - wx*z)/sqrt(x*x + y*y + z*z)"]
    robot = ls.Robot("bowl", gravity=(0, 0, -G))
    robot.add_link("ball", ls.RigidBody(MASS, (0, 0, 0), 0.4 * MASS * ball**2 * np.eye(3)), ls.JointFree())
    for k, text in enumerate(slips):
        robot.add_constraint(f"slip {k}", "ball", function=ls.Expression(text, names, {"a": ball}), velocity=True)
    far = ls.Expression("sqrt(x*x + y*y + z*z) - d", "x, y, z", {"d": radius - ball})
    robot.add_constraint("bowl", "ball", function=far)
    return robot.build()


def test_a_ball_in_a_bowl():
    """Rolling in a sphere in a plane: (7/5) φ̈ = −g sin φ/(R − r); small swings have the period 2π √(7(R − r)/(5g))."""
    radius, ball = 0.5, 0.1
    model, far = bowl(radius, ball), radius - ball
    start = 0.3
    q, v = at(model, (far * np.sin(start), 0.0, -far * np.cos(start)))
    motion = ls.simulate(model, 1.2, q, v, **TIGHT)
    wanted = solve_ivp(lambda t, y: [y[1], -G * np.sin(y[0]) / (1.4 * far)], (0, 1.2), [start, 0.0], method="DOP853",
                       rtol=1e-12, atol=1e-13).y[:, -1]  # fmt: skip
    np.testing.assert_allclose(motion.q[-1, [4, 6]], far * np.array([np.sin(wanted[0]), -np.cos(wanted[0])]),
                               rtol=0, atol=1e-8)  # fmt: skip
    q, v = at(model, (far * np.sin(1e-4), 0.0, -far * np.cos(1e-4)))
    period = 2 * np.pi * np.sqrt(7 * far / (5 * G))
    end = ls.simulate(model, period, q, v, **TIGHT)
    np.testing.assert_allclose(end.q[-1, 4], far * np.sin(1e-4), rtol=1e-6)


def test_a_ball_in_a_vertical_cylinder():
    """A golf ball in a hole: it circles at the rate Ω and bobs up and down with √(2/7) Ω."""
    radius, ball, rate = 0.5, 0.1, 4.0
    far = radius - ball
    robot = ls.Robot("hole", gravity=(0, 0, -G))
    robot.add_link("ball", ls.RigidBody(MASS, (0, 0, 0), 0.4 * MASS * ball**2 * np.eye(3)), ls.JointFree())
    arm = {"a": ball / far}
    robot.add_constraint("rise", "ball", function=ls.Expression("vz + a*(wx*y - wy*x)", "x, y, wx, wy, vz", arm),
                         velocity=True)  # fmt: skip
    robot.add_constraint("turn", "ball", function=ls.Expression("x*vy - y*vx + a*wz*(x*x + y*y)",
                                                                "x, y, vx, vy, wz", arm), velocity=True)  # fmt: skip
    robot.add_constraint("wall", "ball", function=ls.Expression("sqrt(x*x + y*y) - d", "x, y", {"d": far}))
    model = robot.build()
    q, v = at(model, (far, 0, 0), (0, rate * far, 0), (0.0, 0.0, -rate * far / ball))
    motion = ls.simulate(model, 6.0, q, v, **TIGHT)
    place = motion.q[:, 4:]
    turn = rate * motion.t
    np.testing.assert_allclose(place[:, :2], far * np.stack([np.cos(turn), np.sin(turn)], 1), rtol=0, atol=1e-7)
    bob = np.sqrt(2 / 7) * rate
    depth = 5 * G / (7 * bob**2)
    np.testing.assert_allclose(place[:, 2], depth * (np.cos(bob * motion.t) - 1), rtol=0, atol=1e-7)


def test_a_skate_on_a_paraboloid():
    """An edge that stays on z = (x² + y²)/2 under no gravity moves like a skate on the surface: the energy stays, the
    edge does not slip, and the rates of its functions vanish."""
    edge = ls.Expression("R12*vx + R22*vy + R32*vz", "R12, R22, R32, vx, vy, vz")
    surface, body = ls.Expression("z - (x*x + y*y)/2", "x, y, z"), ls.RigidBody(MASS, (0.05, 0, 0), (0.02, 0.02, 0.03))
    robot, skate = (free(surface, body=body, gravity=(0, 0, 0)) for _ in range(2))
    robot.add_constraint("edge", "body", function=edge, velocity=True)
    skate.add_skate("edge", "body", (0, 1, 0))
    model, other = robot.build(), skate.build()
    q, v = at(model, (0.3, 0.1, 0.05), (0.5, 0.0, 0.15), (0.2, 0.3, 1.0))
    motion, wanted = (ls.simulate(m, 1.0, q, v, **TIGHT) for m in (model, other))
    np.testing.assert_allclose(motion.q[-1], wanted.q[-1], rtol=0, atol=1e-8)
    energy = ls.energy(model, motion.q, motion.v).total
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-8)


def test_reactions_add_up():
    """The base of a strip that lies on a shelf, and of one that hangs on a rope to a winch, carries the weight less the
    force of the constraint, with its moment; the winch is pushed by the tension."""
    rubber = ls.Material(young=2e6, poisson=0.5, density=1000.0, damping_time=0.01)
    robot = ls.Robot("strip")
    rod = ls.Rod(0.4, ls.SectionCircle(0.008), ls.BasisLegendre(bending_y=3, bending_z=3), rubber)
    robot.add_link("strip", rod)
    robot.add_link("winch", ls.RigidBody(0.2), ls.JointPrismatic((0, 0, 1), stiffness=40.0))
    rope = ls.Expression("sqrt(x*x + y*y + z*z) - 0.3 - l", "x, y, z, l")
    top = np.eye(4)
    top[:3, 3] = 0.3, 0.1, 0.2
    robot.add_constraint("rope", "strip", function=rope, joints=["winch"], s_a=0.8, placement_b=top)
    model = robot.build()
    rest = ls.solve_statics(model, q0=ls.assemble(model))
    W = ls.loop_wrenches(model, rest.q, rest.multipliers)[0]
    force = top[:3, :3] @ W[3:]
    p = ls.frame_pose(model, rest.q, "strip", s=0.8)[:3, 3]
    tension = np.linalg.norm(force)
    np.testing.assert_allclose(force, tension * (top[:3, 3] - p) / np.linalg.norm(top[:3, 3] - p), rtol=1e-9)
    base = ls.joint_wrench(model, rest.q, rest.v, None, rest.u, "strip", multipliers=rest.multipliers)
    weight = model.links.mass[0] * G
    np.testing.assert_allclose(base[3:], force - [0, 0, weight], atol=1e-10)
    slide = rest.q[-1]
    assert 40.0 * slide + 0.2 * G == pytest.approx(tension, rel=1e-9)
