"""What sections and joints carry: each thing beyond counted once, joints against inverse dynamics, arguments."""

from functools import lru_cache

import numpy as np
import pytest
import warp as wp
from robots import build, random_state, random_tree
from touching_robots import LAW, RADIUS, hybrid, moved, state

import lissom as ls
from lissom.launch import workspace as workspace_module

MATERIAL = ls.Material(young=1e6, density=1000.0, viscosity=3e3)
WEIGHTLESS = (0.0, 0.0, 0.0)


def seen_in(g, force, point, moment=(0.0, 0.0, 0.0)):
    """A force at a point of the world, and a moment, as a wrench at the frame g in its axes."""
    m = np.asarray(moment) + np.cross(np.asarray(point) - g[:3, 3], force)
    return np.concatenate([g[:3, :3].T @ m, g[:3, :3].T @ np.asarray(force)])


def transport(W, g, point=(0.0, 0.0, 0.0)):
    """A wrench at the frame g in its axes as moment about a point of the world and force, in the world's axes."""
    force = g[:3, :3] @ W[3:]
    return np.concatenate([g[:3, :3] @ W[:3] + np.cross(g[:3, 3] - point, force), force])


# -- joints of random trees -------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def tree(seed):
    """A random tree, its model and a state."""
    robot = random_tree(seed)
    return robot, build(robot), *random_state(robot, seed)


def is_world(robot, name):
    """Whether a link is but a frame that stands in the world."""
    link = robot.links[name]
    fixed = link.body is None and link.joint.nv == 0
    return fixed and (link.parent is None or is_world(robot, link.parent))


def base_frame(model, q, link):
    """Pose of the frame behind the joint of a link, and its body Jacobian."""
    s = 0.0 if link in model.rods else 1.0
    return ls.frame_pose(model, q, link, s), ls.frame_jacobian(model, q, link, s)


@pytest.mark.parametrize("seed", range(2, 50, 6))
def test_along_the_joints_stands_inverse_dynamics(seed):
    """Along its own coordinates the reaction of a joint is minus what inverse dynamics asks for, less what tendons do
    from outside; S has the joint's columns in its frame."""
    robot, model, q, v, a, u = tree(seed)
    t = 0.3
    custom = np.zeros(model.nv)
    for actuator, gain in model.inputs.custom:
        custom += np.asarray(actuator.function(q)).reshape(model.nv, -1) @ gain @ u
    pulled = ls.actuation_matrix(model, q) @ u - model.inputs.joint_gain @ u - custom
    asked = ls.inverse_dynamics(model, q, v, a, elastic=False, t=t) - pulled
    for name, joint, start in zip(model.links.names, model.links.joint, model.links.v_start):
        own = slice(start, start + joint.nv)
        W = ls.joint_wrench(model, q, v, a, u, name, t=t)
        _, J = base_frame(model, q, name)
        scale = max(1.0, np.abs(W).max())
        np.testing.assert_allclose(
            -J[:, own].T @ W, asked[own], rtol=0, atol=1e-11 * scale, err_msg=f"{robot.name} {name}"
        )


@pytest.mark.parametrize("seed", range(2, 50, 6))
def test_the_roots_carry_everything(seed):
    """The reactions of all links on the world, with weight, loads and what tendons pull from the world, make the rate
    of momentum, by differences."""
    robot, model, q, v, a, u = tree(seed)
    t, W = 0.3, np.zeros(6)
    for name, parent in zip(model.links.names, model.links.parent):
        if parent < 0:
            W -= transport(ls.joint_wrench(model, q, v, a, u, name, t=t), base_frame(model, q, name)[0])
    weight = model.links.mass.sum() * model.gravity
    W += np.concatenate([np.cross(ls.center_of_mass(model, q), weight), weight])
    on_robot = [load for load in robot.loads.values() if not is_world(robot, load.link)]
    for load, wrench in zip(on_robot, model.loads.wrench, strict=True):
        g = ls.frame_pose(model, q, load.link, load.s)
        m, f = np.split(wrench(t), 2)
        if load.frame == "body":
            m, f = g[:3, :3] @ m, g[:3, :3] @ f
        W += np.concatenate([m + np.cross(g[:3, 3] + g[:3, :3] @ load.position, f), f])
    poses, size = ls.forward_kinematics(model, q), model.channels.gain @ u
    for channel, nodes, points in zip(model.segments.channel, model.segments.node, model.segments.position):
        if -1 in nodes:
            a_, b_ = (x if k < 0 else poses[k, :3, 3] + poses[k, :3, :3] @ x for k, x in zip(nodes, points))
            f = size[channel] * (b_ - a_) / np.linalg.norm(b_ - a_) * (1 if nodes[1] < 0 else -1)
            W += np.concatenate([np.cross(a_ if nodes[1] < 0 else b_, f), f])

    def momentum(h):
        return ls.momentum(model, ls.integrate(model, q, h * v + 0.5 * h * h * a), v + h * a)

    near, far = ((momentum(h) - momentum(-h)) / (2 * h) for h in (1e-4, 2e-4))
    rate = (4 * near - far) / 3
    np.testing.assert_allclose(W, rate, rtol=0, atol=1e-7 * max(1.0, np.abs(rate).max()))


# -- everything beyond, once ------------------------------------------------------------------------------------------


def crowded():
    """Rods that touch each other and a floor, one of them tied to a hand, with loads and inputs of all kinds."""
    robot = hybrid("fixed", foot=(0.0, -0.01, 0.0))
    robot.add_contact("rods", "a", others="b", radius=RADIUS, **LAW)
    robot.add_contact("floor", ["a", "b", "base"], ls.ShapePlane(), placement=moved(0.0, 0.0, -0.05), **LAW)
    robot.add_link("hand", ls.RigidBody.sphere(0.03, density=500), ls.JointSpherical(), "b", at=0.37)
    robot.add_loop("tie", "hand", "a", s_b=0.55, joint=ls.JointSpherical())
    robot.add_tendon("through", "a", (0.0, 0.02))
    robot.add_tendon("strut", path=[ls.PathPoint("b", s=0.7), ls.PathPoint("a", (0.0, 0.0, 0.02), s=0.81)])
    robot.add_wrench_input("thruster", "a", s=0.33, position=(0.0, 0.01, 0.0))
    ends = ls.PathPoint("a", (0.0, 0.01, 0.0), s=0.62), ls.PathPoint(None, (0.3, 0.2, 0.5))
    robot.add_spring("spring", *ends, stiffness=5.0, rest=0.1)
    robot.add_point_load("load", "a", s=0.12, force=(0.5, 0.2, -0.3), moment=(0.01, 0.02, 0.03))
    robot.add_force("own", "a", lambda t, g, eta: np.array([0.01, 0.0, 0.02 * t, 0.3, 0.1, -0.2]), s=0.24)
    return robot.build()


@pytest.mark.filterwarnings("ignore::lissom.AccuracyWarning")
def test_what_acts_at_a_point_is_a_jump_there():
    """Just behind each point something has gone: a load, an input, a force of one's own, the end of a loop, of a
    spring and of a straight tendon, a branch with its joint, a contact with the floor and with another rod."""
    model, met = crowded(), set()
    u, t = np.array([2.0, 3.0, 0.01, 0.02, 0.03, 0.4, 0.5, 0.6]), 0.7
    for seed in range(3):
        q, v, a = state(model, seed)
        multipliers = np.array([0.2, 0.3, -0.4])

        def pose(s, link="a", q=q):
            return ls.frame_pose(model, q, link, s)

        found = ls.contact_forces(model, q, v)
        R = pose(0.24)[:3, :3], pose(0.33)[:3, :3]
        lever, strut = pose(0.33) @ [0.0, 0.01, 0.0, 1.0], pose(0.81) @ [0.0, 0.0, 0.02, 1.0]
        pull = pose(0.7, "b")[:3, 3] - strut[:3]
        tie = pose(0.55)[:3, :3] @ ls.loop_wrenches(model, q, multipliers)[0].reshape(2, 3).T
        hook = (pose(0.62) @ [0.0, 0.01, 0.0, 1.0])[:3]
        spring = np.array([0.3, 0.2, 0.5]) - hook
        hung = ls.frame_pose(model, q, "ball")
        branch = ls.joint_wrench(model, q, v, a, u, "ball", t=t, multipliers=multipliers)
        branch = transport(branch, hung, hung[:3, 3])
        events = [
            (0.12, (0.5, 0.2, -0.3), pose(0.12)[:3, 3], (0.01, 0.02, 0.03)),
            (0.24, R[0] @ [0.3, 0.1, -0.2], pose(0.24)[:3, 3], R[0] @ [0.01, 0.0, 0.014]),
            (0.33, R[1] @ u[5:], lever[:3], R[1] @ u[2:5]),
            (0.55, -tie[:, 1], pose(0.55)[:3, 3], -tie[:, 0]),
            (0.62, 5.0 * (np.linalg.norm(spring) - 0.1) * spring / np.linalg.norm(spring), hook, np.zeros(3)),
            (0.81, 3.0 * pull / np.linalg.norm(pull), strut[:3], np.zeros(3)),
            (1.0, branch[3:], hung[:3, 3], branch[:3]),
        ]
        sides = zip(found.link, found.s, found.other, found.other_s, found.point, found.force)
        for link, s, other, other_s, point, force in sides:
            met |= {"floor" if other is None else "rods"}
            events += [(s, force, point, np.zeros(3))] * (link == "a")
            events += [(other_s, -force, point, np.zeros(3))] * (other == "a")
        for s in {event[0] for event in events} - {0.0, 1.0}:
            here = [seen_in(pose(s), *event[1:]) for event in events if abs(event[0] - s) < 1e-12]
            behind = ls.internal_wrench(model, q, v, a, u, "a", [s, s + 1e-9], t=t, multipliers=multipliers).total
            jump = behind[0] - behind[1]
            np.testing.assert_allclose(jump, sum(here), rtol=0, atol=1e-6 * max(1.0, np.abs(behind).max()))
        tip = ls.internal_wrench(model, q, v, a, u, "a", 1.0, t=t, multipliers=multipliers).total
        here = sum(seen_in(pose(1.0), *event[1:]) for event in events if event[0] == 1.0)
        np.testing.assert_allclose(tip, here, rtol=0, atol=1e-11 * max(1.0, np.abs(here).max()))
    assert met == {"floor", "rods"}


def test_the_base_of_a_robot_in_contact_carries_everything():
    """The reaction at the root, weight and contact with the world make the rate of momentum; contacts and tendons
    between links are internal."""
    robot = hybrid("fixed", foot=(0.0, -0.01, 0.0))
    robot.add_contact("rods", "a", others="b", radius=RADIUS, **LAW)
    robot.add_contact("floor", ["a", "b", "base"], ls.ShapePlane(), placement=moved(0.0, 0.0, -0.05), **LAW)
    robot.add_tendon("strut", path=[ls.PathPoint("b", s=0.7), ls.PathPoint("a", s=0.81)])
    model = robot.build()
    for seed in range(3):
        q, v, a = state(model, seed)
        W = -transport(ls.joint_wrench(model, q, v, a, [2.0], "base"), ls.frame_pose(model, q, "base"))
        found = ls.contact_forces(model, q, v)
        weight = model.links.mass.sum() * model.gravity
        pushes = [(x, f) for x, f, other in zip(found.point, found.force, found.other) if other is None]
        for x, f in [(ls.center_of_mass(model, q), weight), *pushes]:
            W += np.concatenate([np.cross(x, f), f])
        near, far = (
            (ls.momentum(model, *ahead) - ls.momentum(model, *behind)) / (2 * h)
            for h in (1e-4, 2e-4)
            for ahead, behind in [
                [(ls.integrate(model, q, k * v + 0.5 * k * k * a), v + k * a) for k in (h, -h)],
            ]
        )
        rate = (4 * near - far) / 3
        np.testing.assert_allclose(W, rate, rtol=0, atol=1e-7 * max(1.0, np.abs(rate).max()))


def cantilever(joint=None, gravity=WEIGHTLESS):
    """A straight uniform rod of 0.4 m along x."""
    robot = ls.Robot("cantilever", gravity=gravity)
    basis = ls.BasisLegendre(torsion=0, bending_y=2, bending_z=1)
    robot.add_link("arm", ls.Rod(0.4, ls.SectionCircle(0.02), basis, MATERIAL), joint)
    return robot


def per_metre(t, g, eta):
    """A follower force and moment per metre of a rod."""
    return np.array([0.03, 0.0, 0.0, 0.0, 0.0, 2.0 + t])


@wp.func
def compiled_per_metre(R: wp.mat33d, p: wp.vec3d, eta: wp.spatial_vectord, s: wp.float64, t: wp.float64):
    return wp.spatial_vectord(
        wp.float64(0.03),
        wp.float64(0.0),
        wp.float64(0.0),
        wp.float64(0.0),
        wp.float64(0.0),
        wp.float64(2.0) + t,
    )


@pytest.mark.parametrize("function", [per_metre, pytest.param(compiled_per_metre, marks=pytest.mark.slow)])
def test_a_force_per_metre_makes_a_parabola(function):
    """A force of one's own all along a rod is spread, also between the Gauss points; the one at a point is not."""
    robot = cantilever()
    robot.add_force("all along", "arm", function)
    robot.add_force("at a point", "arm", function, s=0.5)
    model, s = robot.build(), np.linspace(0, 1, 15)
    W = ls.internal_wrench(model, model.neutral(), None, None, None, "arm", s, t=0.5).total
    x, beyond = 0.4 * (1 - s), (s <= 0.5).astype(float)
    np.testing.assert_allclose(W[:, 5], 2.5 * (x + beyond), rtol=0, atol=1e-13)
    np.testing.assert_allclose(W[:, 1], -2.5 * (x**2 / 2 + beyond * (0.2 - 0.4 * s)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(W[:, 0], 0.03 * (x + beyond), rtol=0, atol=1e-13)


def test_a_tendon_that_comes_from_the_world():
    """It pulls at the place where it enters the rod, as a load; behind, it is part of the rod, which it presses."""
    robot = cantilever()
    outside = ls.PathPoint(None, (-0.1, 0.02, 0.05))
    robot.add_tendon("cable", path=[outside, ls.PathRod("arm", (0.0, 0.01), 0.5, 0.9)])
    model = robot.build()
    W = ls.internal_wrench(model, model.neutral(), None, None, [3.0], "arm", [0.2, 0.5, 0.7, 0.9, 0.95])
    enters = np.array([0.2, 0.0, 0.01])
    pull = 3.0 * (np.array(outside.position) - enters) / np.linalg.norm(np.array(outside.position) - enters)
    for k, x in enumerate((0.08, 0.2)):
        np.testing.assert_allclose(W.total[k], seen_in(moved(x, 0, 0), pull, enters), rtol=0, atol=1e-14)
    np.testing.assert_allclose(W.total[2:], 0.0, rtol=0, atol=1e-14)
    inside = [0.0, 0.03, 0.0, 3.0, 0.0, 0.0]
    np.testing.assert_allclose(W.actuators, [[0] * 6, [0] * 6, inside, inside, [0] * 6], rtol=0, atol=1e-14)
    np.testing.assert_allclose(W.material, W.total - W.actuators)


def test_a_chamber_stretches_the_material():
    """A pressure p on an area A pushes with p A, which the material holds by its strain; in front of the place where
    the chamber and the element of a piecewise strain end."""
    robot = ls.Robot("bellows", gravity=WEIGHTLESS)
    basis = ls.BasisPiecewiseConstant(bending_y=2, elongation=2)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.02), basis, MATERIAL))
    robot.add_chamber("air", "arm", offset=(0.0, 0.01), area=1e-4, force="volume", stop=0.5)
    model = robot.build()
    q = ls.solve_statics(model, [1e4]).q
    W = ls.internal_wrench(model, q, None, None, [1e4], "arm", [0.0, 0.3, 0.5, 0.6])
    np.testing.assert_allclose(W.total, 0.0, rtol=0, atol=1e-14)
    stiffness = 1e6 * np.pi * 0.02**2 * np.array([0.01**2, 1.0])
    for row, strains in enumerate((q[[0, 2]], q[[0, 2]], q[[0, 2]], q[[1, 3]])):
        np.testing.assert_allclose(W.material[row, [1, 3]], stiffness * strains, rtol=0, atol=1e-12)
    np.testing.assert_allclose(W.material[:3], [[0.0, 0.01, 0.0, 1.0, 0.0, 0.0]] * 3, rtol=0, atol=1e-14)


def test_a_prescribed_motion_shows_its_multiplier():
    """About the axis of a joint that is moved the reaction is minus the force of its motion."""
    robot = cantilever(ls.JointRevolute((0, 1, 0)), (0, 0, -9.81))
    robot.add_joint_motion("turn", "arm", position=lambda t: 0.5 * t**2)
    model = robot.build()
    motion = ls.simulate(model, 0.2, dt=1e-2, method="generalized_alpha")
    W = ls.joint_wrench(model, motion.q, motion.v, motion.a, motion.u, "arm", t=motion.t)
    np.testing.assert_allclose(W[:, 1], -motion.multipliers[:, 0], rtol=0, atol=1e-10)


# -- far away, batches, arguments -------------------------------------------------------------------------------------


def test_where_a_robot_stands_does_not_matter():
    """Two robots in one, 10 km away and 3 km from each other, carry the same wrenches as at the origin."""
    found = []
    for far in (0.0, 1.0):
        robot = ls.Robot("two")
        for name, x in (("near", 1e4), ("far", 1.3e4)):
            basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2)
            rod = ls.Rod(0.4, ls.SectionCircle((0.02, 0.015)), basis, MATERIAL)
            robot.add_link(name, rod, placement=moved(far * x, -far * x, 0.5 * far * x))
            robot.add_link(f"{name} bob", ls.RigidBody(0.2, (0.01, 0, 0.02), (1e-4,) * 3), None, name, at=0.7)
            robot.add_tendon(f"{name} tendon", name, (0.0, 0.01))
        model = robot.build()
        q, v, a = state(model, 7, bend=1.0)
        u, places = [2.0, 3.0], [0.0, 0.33, 0.9]
        found.append([ls.internal_wrench(model, q, v, a, u, name, places).total for name in ("near", "far")])
        found[-1] += [ls.joint_wrench(model, q, v, a, u, name) for name in ("near", "far bob")]
    for home, away in zip(*found):
        np.testing.assert_allclose(away, home, rtol=0, atol=1e-10 * np.abs(home).max())


@pytest.mark.parametrize("columns", [None, 1], ids=["usual blocks", "small blocks"])
def test_batches_are_their_rows(columns, monkeypatch):
    """Leading axes of q, v, a, u and t broadcast, through more rows than are computed at once; None is zero. Blocks of
    a large robot hold few rows."""
    if columns is not None:
        monkeypatch.setattr(workspace_module, "_COLUMNS_PER_CORE", columns)
    robot = hybrid()
    robot.add_tendon("tendon", "a", (0.0, 0.02))
    robot.add_point_load("pull", "ball", force=lambda t: (0.0, t, 1.0))
    model = robot.build()
    rng, s = np.random.default_rng(3), np.array([0.0, 0.4])
    q = np.array([[state(model, 3 * k + j)[0] for j in range(3)] for k in range(30)])
    v, a = rng.normal(size=(2, 3, model.nv))
    t, u = rng.uniform(size=(30, 1)), np.array([2.0])
    many = ls.internal_wrench(model, q, v, a, u, "a", s, t=t)
    joints = ls.joint_wrench(model, q, v, a, u, "b", t=t)
    assert many.total.shape == many.actuators.shape == (30, 3, 2, 6) and joints.shape == (30, 3, 6)
    for k, j in ((0, 0), (17, 2), (29, 1)):
        one = q[k, j], v[j], a[j], u
        for row, place in enumerate(s):
            W = ls.internal_wrench(model, *one, "a", place, t=float(t[k, 0]))
            np.testing.assert_allclose(many.total[k, j, row], W.total, rtol=0, atol=1e-12)
            np.testing.assert_allclose(many.actuators[k, j, row], W.actuators, rtol=0, atol=1e-15)
        np.testing.assert_allclose(joints[k, j], ls.joint_wrench(model, *one, "b", t=t[k, 0]), rtol=0, atol=1e-12)
    still = np.zeros(model.nv)
    np.testing.assert_array_equal(
        ls.joint_wrench(model, q[0, 0], None, None, None, "a"),
        ls.joint_wrench(model, q[0, 0], still, still, [0.0], "a"),
    )
    assert ls.internal_wrench(model, q[:0], v, a, u, "a", s).total.shape == (0, 3, 2, 6)


@pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")  # its rods overlap at the start
def test_forces_of_loops_are_found():
    """Without multipliers those of forward dynamics count, which are those of a trajectory and of an equilibrium."""
    model = crowded()
    rest = ls.assemble(model, model.neutral())
    motion = ls.simulate(model, 0.01, rest, dt=5e-3, method="generalized_alpha")
    rows = motion.q, motion.v, ls.forward_dynamics(model, motion.q, motion.v, motion.u, 0.0), motion.u
    found = ls.internal_wrench(model, *rows, "a", [0.1, 0.6])
    again = [ls.internal_wrench(model, *x, "a", [0.1, 0.6]).total for x in zip(*rows)]
    np.testing.assert_allclose(found.total, again, rtol=0, atol=1e-9)
    none = ls.internal_wrench(model, *rows, "a", [0.1, 0.6], multipliers=np.zeros(model.n_multipliers))
    assert np.abs(found.total[:, 0] - none.total[:, 0]).max() > 1e-3
    np.testing.assert_allclose(found.total[:, 1], none.total[:, 1], rtol=0, atol=1e-9)


def test_a_robot_without_mass_and_loads_carries_nothing():
    """A rod of no density has no node that carries anything."""
    robot = ls.Robot("nothing")
    light = ls.SectionGeneral(stiffness=(1, 1, 1, 1e3, 1e3, 1e3), inertia=(0,) * 6)
    robot.add_link("arm", ls.Rod(0.4, light, ls.BasisLegendre(bending_y=0)))
    model = robot.build()
    assert not ls.internal_wrench(model, [0.3], None, None, None, "arm", 0.2).total.any()
    assert not ls.joint_wrench(model, [0.3], None, None, None, "arm").any()


def test_wrong_arguments_are_named():
    """Links, abscissae, shapes and numbers that are not finite."""
    model = crowded()
    q, v, a = state(model, 0)
    for link in ("ball", "leg", 3):
        with pytest.raises(ls.ModelError, match="link: must be one whose body is a rod"):
            ls.internal_wrench(model, q, v, a, None, link, 0.5)
    with pytest.raises(ls.ModelError, match="link: must be one of"):
        ls.joint_wrench(model, q, v, a, None, "leg")
    with pytest.raises(ls.ModelError, match=r"s: must lie in \[0, 1\]"):
        ls.internal_wrench(model, q, v, a, None, "a", 1.5)
    for name, wrong in {"q": q[:-1], "v": v[:-1], "a": a[:-1], "u": [1.0], "multipliers": [1.0]}.items():
        given = {"q": q, "v": v, "a": a, "u": None, "t": 0.0, "multipliers": None} | {name: wrong}
        states = [given.pop(x) for x in "qvau"]
        with pytest.raises(ls.ShapeError, match=f"{name}: expected"):
            ls.joint_wrench(model, *states, "a", **given)
    with pytest.raises(ls.ModelError, match=r"t: must be finite times \(got 'soon'\)"):
        ls.joint_wrench(model, q, v, a, None, "a", t="soon")
    with pytest.raises(ls.ShapeError, match="u: must be finite"):
        ls.joint_wrench(model, q, v, a, np.full(model.nu, np.nan), "a")
    with pytest.raises(ls.ShapeError, match="too large"):
        ls.joint_wrench(model, q, 1e200 * v, a, None, "a", multipliers=np.zeros(model.n_multipliers))
