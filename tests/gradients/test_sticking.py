"""Derivatives of motions whose contacts stick, with anchors that are propagated from step to step."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from gradients.moving_robots import changes, differenced, floating, mismatch, redesigned, size_of, start
from sampling import halved
from simulation.test_loops import driven

import lissom as ls
from lissom.dynamics.kinematics import jacobian_rates_at
from lissom.gradients.anchors import _twist_derivatives
from lissom.model.points import on_node

STEPS = 40


@lru_cache
def model(friction):
    """An arm on a hinge with a ball on a dome, pulled along it."""
    robot = ls.Robot("arm")
    material = ls.Material(young=2e6, poisson=0.5, density=1000, viscosity=2e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.012), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1), material)
    robot.add_link("arm", rod, ls.JointUniversal((0, 1, 0), (0, 0, 1), stiffness=0.5, damping=0.01))
    for k, side in enumerate(((0.01, 0.0), (0.0, 0.01))):
        robot.add_tendon(f"tendon {k}", "arm", side)
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), parent="arm")
    place = ls.lie.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    place[:3, 3] = 0.29, 0.01, -0.125
    law = {"damping": 0.5, "friction": friction, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("dome", "ball", ls.ShapeSphere(0.1), placement=place, stiffness=1e4, **law)
    return robot.build()


def moved(own, u, start, way, x, scheme):
    q0, v0 = start
    dq0, dv0, du = way
    return ls.rollout(own, ls.integrate(own, q0, x * dq0), v0 + x * dv0, u + x * du, dt=2e-3, method=scheme)


def shares(motion, friction):
    """Friction force over its limit, at the ends of steps."""
    for k in range(STEPS):
        held = motion.model.anchored(motion.anchors[k])
        found = ls.contact_forces(held, motion.q[k + 1], motion.v[k + 1])
        N = found.force[0] @ found.normal[0]
        yield np.linalg.norm(found.force[0] - N * found.normal[0]) / (friction * N)


@pytest.mark.parametrize("scheme", [ls.implicit_euler(), ls.generalized_alpha(0.8), ls.bathe()], ids=lambda x: x.name)
@pytest.mark.parametrize(("friction", "slides"), [(3.0, False), (0.1, True)])
def test_sticking_and_sliding(friction, slides, scheme):
    """Derivatives by the initial state and inputs equal differences, and backward ones equal forward ones, while the
    tip sticks and while it slides with its anchor."""
    own, rng = model(friction), np.random.default_rng(3)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, method="implicit_euler")
    start = start.q[-1], start.v[-1]
    u = np.column_stack([4.0 + 3.0 * np.sin(0.1 * np.arange(STEPS)), np.full(STEPS, 2.0)])
    still = np.zeros(own.nv), np.zeros(own.nv), np.zeros(u.shape)
    motion = moved(own, u, start, still, 0.0, scheme)
    assert np.isfinite(motion.anchors[1:]).any(axis=(1, 2)).all()  # it touches all the time
    held = np.array(list(shares(motion, friction))) < 0.999
    assert held.all() if not slides else not held[10:].any()
    way = 0.1 * rng.normal(size=own.nv) * own.dofs.scale, 0.1 * rng.normal(size=own.nv), rng.normal(size=u.shape)
    for k in range(3):
        one = tuple(x if j == k else 0.0 * x for j, x in enumerate(way))
        change = motion.forward(*one)
        exact = change.q, change.v, change.a
        found = differenced(lambda x, one=one: changes(own, motion, moved(own, u, start, one, x, scheme)), 1e-4)
        assert mismatch(own, exact, found) < 1e-7, k
    weights = rng.normal(size=(3, STEPS + 1, own.nv))
    gradient, change = motion.backward(*weights), motion.forward(*way)
    forwards = sum(np.sum(w * x) for w, x in zip(weights, (change.q, change.v, change.a)))
    back = gradient.q0 @ way[0] + gradient.v0 @ way[1] + np.sum(gradient.u * way[2])
    assert back == pytest.approx(forwards, rel=1e-11)


PATHS = ("dome.friction", "dome.stick_stiffness", "dome.stiffness", "dome.placement", "arm.body.material.young")


@pytest.mark.parametrize(("friction", "slides"), [(3.0, False), (0.1, True)])
def test_design_values(friction, slides):
    """Derivatives by constants of the contact, the place of the obstacle and the material equal differences, forward
    and backward, from a start in contact."""
    own, rng = model(friction), np.random.default_rng(4)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, method="implicit_euler")
    q0, v0, options = start.q[-1], start.v[-1], {"dt": 2e-3, "steps": STEPS, "tolerance": 1e-13}
    motion = ls.rollout(own, q0, v0, [5.0, 2.0], **options)
    weights = rng.normal(size=(3, STEPS + 1, own.nv))
    gradient = motion.backward(*weights, parameters=PATHS).parameters
    seen = set()
    for path in PATHS:
        way = rng.normal(size=np.shape(gradient[path])) * (1.0 if path.endswith("placement") else size_of(own, path))
        exact = motion.forward(parameters={path: way})

        def other(x, path=path, way=way):
            return changes(own, motion, ls.rollout(redesigned(own, path, x * way), q0, v0, [5.0, 2.0], **options))

        found, one = (
            differenced(other, 1e-5 if path.endswith("placement") else 1e-3),
            np.array([exact.q, exact.v, exact.a]),
        )
        if np.abs(found).max() > 0.0:
            seen.add(path)
            assert mismatch(own, one, found) < 1e-7, path
        else:
            assert np.abs(one).max() < 1e-9 * np.abs(motion.a).max()
        assert np.sum(gradient[path] * way) == pytest.approx(np.sum(weights * one), rel=1e-11, abs=1e-9)
    assert seen >= set(PATHS) - {"dome.friction" if not slides else "dome.stick_stiffness"}


def light():
    """A rigid arm of 20 g on a hinge, whose ball lies on a stiff dome, 4 µm deep."""
    robot, mass, place = ls.Robot("arm"), 0.02, ls.lie.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    hinge = ls.JointUniversal((0, 1, 0), (0, 0, 1), damping=1e-3 * mass, stiffness=0.01 * mass)
    robot.add_link("arm", ls.RigidBody(mass, (0.1, 0.0, 0.0), (mass * 1e-3,) * 3), hinge)
    end = np.eye(4)
    end[0, 3] = 0.3
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=mass / 3.35e-5), parent="arm", placement=end)
    robot.add_joint_actuator("motors", "arm")
    place[:3, 3] = 0.28, 0.02, -0.11661
    law = {"damping": 0.5, "friction": 0.2, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("dome", "ball", ls.ShapeSphere(0.1), placement=place, stiffness=3e7, **law)
    return robot.build()


def test_numbers_that_end_a_contact_leave_others_alone():
    """If the difference step of the dome ends the contact, derivatives by other numbers are not affected, and the
    derivative by a rotation of the ball about its centre is zero."""
    own, rng = light(), np.random.default_rng(0)
    rest = ls.rollout(own, u=[0.0, 0.0], dt=2e-3, steps=400, method="implicit_euler")
    u = np.column_stack([np.full(40, 4e-4), np.linspace(0.0, 0.08, 40)])
    motion = ls.rollout(own, rest.q[-1], np.zeros(own.nv), u, dt=2e-3, tolerance=1e-13)
    assert 0.0 < max(ls.contact_forces(own, q).depth.max(initial=0.0) for q in motion.q[:20]) < 6e-6
    weights = rng.normal(size=(2, *motion.v.shape))
    whole = motion.backward(*weights, parameters=["dome.friction", "dome.stick_stiffness", "dome.placement"]).parameters
    for path in ("dome.friction", "dome.stick_stiffness"):
        alone = motion.backward(*weights, parameters=[path]).parameters[path]
        assert whole[path] == pytest.approx(alone, rel=1e-9), path
    assert np.abs(whole["dome.placement"][:3]).max() < 1e-6 * np.abs(whole["dome.placement"][3:]).max()


@lru_cache
def carried():
    """An arm whose ball lies on a plate that hangs on springs and moves with it."""
    robot = ls.Robot("arm on a plate")
    material = ls.Material(young=2e6, poisson=0.5, density=1000, viscosity=2e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.012), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1), material)
    robot.add_link("arm", rod, ls.JointUniversal((0, 1, 0), (0, 0, 1), stiffness=0.5, damping=0.01))
    for k, side in enumerate(((0.01, 0.0), (0.0, 0.01))):
        robot.add_tendon(f"tendon {k}", "arm", side)
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), parent="arm")
    place = ls.lie.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    place[:3, 3] = 0.29, 0.05, -0.2
    block = ls.RigidBody.box(0.05, 0.04, 0.03, density=2000)
    robot.add_link("block", block, ls.JointSpherical(stiffness=0.5, damping=0.01), placement=place)
    turned = ls.lie.se3_exp([-0.1, 0.1, 0.2, 0.01, -0.03, 0.07])
    law = {"damping": 0.5, "friction": 1.0, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("dome", "ball", ls.ShapeSphere(0.1), on="block", placement=turned, stiffness=1e4, **law)
    return robot.build()


def test_an_obstacle_that_moves():
    """For a ball on a dome that turns with it, derivatives equal differences, and backward ones equal forward ones."""
    own, rng = carried(), np.random.default_rng(3)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, method="implicit_euler")
    start = start.q[-1], start.v[-1]
    u = np.column_stack([4.0 + 3.0 * np.sin(0.1 * np.arange(STEPS)), np.full(STEPS, 2.0)])
    motion = moved(own, u, start, (np.zeros(own.nv), np.zeros(own.nv), np.zeros(u.shape)), 0.0, "generalized_alpha")
    assert np.isfinite(motion.anchors[1:]).any(axis=(1, 2)).all()
    assert np.abs(motion.v[:, -3:]).max() > 0.01
    way = 0.1 * rng.normal(size=own.nv) * own.dofs.scale, 0.1 * rng.normal(size=own.nv), rng.normal(size=u.shape)
    change = motion.forward(*way)
    exact = change.q, change.v, change.a
    found = differenced(lambda x: changes(own, motion, moved(own, u, start, way, x, "generalized_alpha")), 1e-4)
    assert mismatch(own, exact, found) < 1e-7
    weights = rng.normal(size=(3, STEPS + 1, own.nv))
    gradient = motion.backward(*weights)
    back = gradient.q0 @ way[0] + gradient.v0 @ way[1] + np.sum(gradient.u * way[2])
    assert back == pytest.approx(sum(np.sum(w * x) for w, x in zip(weights, exact)), rel=1e-11)


def test_velocities_answer_to_coordinates():
    """∂(J v)/∂q from J and its rate equals the rate of J v along each coordinate, with free and spherical joints."""
    own = floating().build()
    q, v = start(own, size=0.3)
    nodes = np.arange(-1, own.n_nodes, dtype=np.int32)
    places = replace(on_node(-1, np.eye(4), len(nodes), False), node=nodes)
    _, J, J_dot = jacobian_rates_at(own, q[None], v[None], places)
    each = jacobian_rates_at(own, np.tile(q, (own.nv, 1)), np.eye(own.nv), places)[2] @ v
    wanted = np.moveaxis(each, 0, -1)
    assert np.abs(_twist_derivatives(own, J, J_dot, v[None])[0] - wanted).max() < 1e-13 * np.abs(wanted).max()


@pytest.mark.parametrize("of_models", [False, True])
def test_motions_together(of_models):
    """Motions of a batch, or of a batch of models, and their derivatives equal single ones."""
    own, rng = model(1.0), np.random.default_rng(5)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, method="implicit_euler")
    q0, v0 = start.q[-1], start.v[-1]
    batch = own.batch("dome.friction", [0.1, 1.0, 3.0]) if of_models else own
    u = rng.uniform(1.0, 5.0, (3, STEPS, 2))
    motion = ls.rollout(batch, q0, v0, u, dt=2e-3)
    weights, du = rng.normal(size=(2, 3, STEPS + 1, own.nv)), rng.normal(size=u.shape)
    paths = ["dome.stick_stiffness"]
    gradient = motion.backward(*weights, parameters=paths)
    change = motion.forward(dv0=0.1 * v0, du=du, parameters={paths[0]: 1.0})
    for k in range(3):
        one = ls.rollout(batch.models[k] if of_models else own, q0, v0, u[k], dt=2e-3)
        np.testing.assert_allclose(motion.q[k], one.q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(motion.anchors[k], one.anchors, rtol=0, atol=1e-11)
        alone = one.backward(*weights[:, k], parameters=paths)
        answer = one.forward(0.0 * v0, 0.1 * v0, du[k], parameters={paths[0]: 1.0})
        for name in ("q0", "v0", "u"):
            one, other = getattr(gradient, name)[k], getattr(alone, name)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(other).max())
        assert gradient.parameters[paths[0]][k] == pytest.approx(alone.parameters[paths[0]], rel=1e-7)
        np.testing.assert_allclose(change.q[k], answer.q, rtol=0, atol=1e-8 * np.abs(answer.q).max())


def begun(friction, scheme="generalized_alpha", steps=STEPS, lead=(), **options):
    """The arm at rest on the dome, and a motion from there under changing inputs."""
    own, rng = model(friction), np.random.default_rng(6)
    before = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, method="implicit_euler")
    u = np.array([4.0, 2.0]) + rng.uniform(-1.0, 2.0, (*lead, steps, 2))
    return own, ls.rollout(own, before.q[-1], before.v[-1], u, dt=2e-3, method=scheme, tolerance=1e-13, **options)


@pytest.mark.parametrize(("friction", "lead"), halved((3.0, 0.1), ((), (2,))))
def test_states_kept_now_and_then(friction, lead):
    """With every > 1 the other states and anchors are computed once more, and derivatives are the same. Backward ones
    equal forward ones."""
    (own, whole), (_, some) = (begun(friction, lead=lead, every=every) for every in (1, 8))
    np.testing.assert_allclose(some.q, whole.q[..., ::8, :], rtol=0, atol=1e-12)
    np.testing.assert_allclose(some.anchors, whole.anchors[..., ::8, :, :], rtol=0, atol=1e-12)
    rng, paths = np.random.default_rng(7), ["dome.stick_stiffness", "dome.friction"]
    seeds = np.zeros((3, *whole.q.shape))
    seeds[..., ::8, :] = rng.normal(size=seeds[..., ::8, :].shape)
    dense, sparse = (x.backward(*s, parameters=paths) for x, s in ((whole, seeds), (some, seeds[..., ::8, :])))
    for name in ("q0", "v0", "u"):
        one, other = getattr(sparse, name), getattr(dense, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(other).max())
    for path in paths:
        one, other = sparse.parameters[path], dense.parameters[path]
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * np.abs(dense.u).max())
    dv0, du = 0.1 * rng.normal(size=own.nv), rng.normal(size=whole.u.shape)
    change, wanted = (x.forward(dv0=dv0, du=du, parameters={paths[0]: 3.0}) for x in (some, whole))
    np.testing.assert_allclose(change.q, wanted.q[..., ::8, :], rtol=0, atol=1e-8 * np.abs(wanted.q).max())
    forwards = np.sum(seeds[..., ::8, :] * [change.q, change.v, change.a])
    back = np.sum(sparse.v0 * dv0) + np.sum(sparse.u * du) + 3.0 * np.sum(sparse.parameters[paths[0]])
    assert back == pytest.approx(forwards, rel=1e-11)


@pytest.mark.parametrize("scheme", [ls.generalized_alpha(0.8), ls.bathe()], ids=lambda x: x.name)
@pytest.mark.parametrize("friction", [3.0, 0.1])
def test_steps_by_themselves(friction, scheme):
    """Matrices of a step with changes of anchors equal differences. Their products are the derivatives of the
    motion."""
    own, motion = begun(friction, scheme)
    A, B = motion.step_matrices()
    n, k, rng = own.nv, 20, np.random.default_rng(8)
    assert A.shape == (STEPS, 4 * n + motion.anchors[0].size, 4 * n + motion.anchors[0].size)
    du = rng.normal(size=motion.u.shape)
    x = B[3] @ du[3]
    for one, other, by in zip(A[4:], B[4:], du[4:]):
        x = one @ x + other @ by
    du[:3] = 0.0
    change = motion.forward(du=du)
    np.testing.assert_allclose(x[:n], change.q[-1], rtol=0, atol=1e-11 * np.abs(change.q).max())
    np.testing.assert_allclose(x[n : 2 * n], change.v[-1], rtol=0, atol=1e-11 * np.abs(change.v).max())
    path, names = motion.path, ("q", "v", "a", "ahead", "anchors")
    size = np.repeat([0.01, 0.1, 10.0, 1e-3], [n, n, 2 * n, motion.anchors[k].size])
    for part in (slice(0, 4 * n), slice(4 * n, None)):
        way, by = np.zeros(len(size)), rng.normal(size=own.nu)
        way[part] = (size * rng.normal(size=len(size)))[part]

        def stepped(x, way=way, by=by):
            begin = path.state(k)
            for name, some in zip(names, np.split(way, n * np.arange(1, 5))):
                begin[name] = begin[name] + x * some.reshape(begin[name].shape)
            end = motion.stepping.run(own, begin, path.u[:, k : k + 1] + x * by, k).state(1)
            return np.concatenate([end[name][0].ravel() for name in names])

        found, exact = differenced(stepped, 1e-3), A[k] @ way + B[k] @ by
        for rows in (*(slice(n * j, n * j + n) for j in range(4)), slice(4 * n, None)):
            assert np.abs(found - exact)[rows].max() < 1e-7 * np.abs(found[rows]).max(), (part, rows)
    options = {"dt": 2e-3, "method": scheme, "tolerance": 1e-13}
    many = ls.rollout(own, motion.q[0], motion.v[0], np.stack([0.9 * motion.u, motion.u]), **options).step_matrices()
    for one, other in zip(many, (A, B)):
        np.testing.assert_allclose(one[1], other, rtol=0, atol=1e-8 * np.abs(other).max())


def test_a_ball_that_comes_and_goes():
    """When contact begins and ends, backward derivatives, forward ones and products of matrices of steps agree."""
    own, rng, motion = model(1.0), np.random.default_rng(10), None
    u = np.repeat([[4.0, 2.0], [0.0, 40.0]], 60, axis=0)
    for every in (1, 20):
        motion = ls.rollout(own, u=u, dt=2e-3, every=every)
        dv0, du, weights = rng.normal(size=own.nv), rng.normal(size=u.shape), rng.normal(size=(3, *motion.v.shape))
        change, gradient = motion.forward(dv0=dv0, du=du), motion.backward(*weights)
        forwards = np.sum(weights * [change.q, change.v, change.a])
        assert gradient.v0 @ dv0 + np.sum(gradient.u * du) == pytest.approx(forwards, rel=1e-11)
        if every == 1:
            touches = np.isfinite(motion.anchors).any(axis=(1, 2))
            A, B = motion.step_matrices()
            x = B[1] @ du[1]
            for one, other, by in zip(A[2:], B[2:], du[2:]):
                x = one @ x + other @ by
            du[0] = 0.0
            change = motion.forward(du=du)
            np.testing.assert_allclose(x[: own.nv], change.q[-1], rtol=0, atol=1e-11 * np.abs(change.q).max())
    assert touches.any() and not touches[0] and not touches[-1]


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
@pytest.mark.parametrize("scheme", [ls.generalized_alpha(0.8), ls.bathe()], ids=lambda x: x.name)
def test_a_closed_chain(scheme):
    """For a leg of a closed chain on a ball, derivatives equal differences, and backward ones equal forward ones."""
    robot, place = driven(), np.eye(4)
    q = start(robot.build())[0]
    middle = ls.frame_pose(robot.build(), q, "soft leg", 0.5)[:3, 3]
    place[:3, 3] = middle + 0.11 * np.array([0.3, 0.9, -0.3]) / np.linalg.norm([0.3, 0.9, -0.3])
    law = {"damping": 0.5, "friction": 0.5, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("ball", "soft leg", ls.ShapeSphere(0.1), placement=place, stiffness=1e4, **law)
    own, rng, options = robot.build(), np.random.default_rng(11), {"dt": 1e-3, "method": scheme, "tolerance": 1e-13}
    still = np.zeros(own.nv)
    motion = ls.rollout(own, q, still, [1.5], steps=30, **options)
    assert np.isfinite(motion.anchors[1:]).any(axis=(1, 2)).all()
    du, weights = rng.normal(size=motion.u.shape), rng.normal(size=(3, *motion.v.shape))
    change = motion.forward(du=du)
    exact = change.q, change.v, change.a
    found = differenced(lambda x: changes(own, motion, ls.rollout(own, q, still, motion.u + x * du, **options)), 1e-2)
    assert mismatch(own, exact, found) < 1e-7
    back = np.sum(motion.backward(*weights).u * du)
    assert back == pytest.approx(np.sum(weights * np.array(exact)), rel=1e-11)


@pytest.mark.parametrize("friction", [3.0, 0.1])
def test_gains_of_feedback(friction):
    """Derivatives by gains, q0 and v0 equal differences of motions in closed loop, with contacts that stick."""
    own, motion = begun(friction)
    rng, q0, v0, gains = np.random.default_rng(9), motion.q[0], motion.v[0], np.array([0.3, 0.02])
    P, D = rng.normal(size=(2, 2, own.nv))

    def law(t, q, v, gains):
        return np.array([4.0 + 100.0 * t, 2.0]) + np.sin(gains[0] * (P @ q)) + gains[1] * (D @ v)

    def derivatives(t, q, v, gains):
        e = P @ q
        bend = np.cos(gains[0] * e)
        return gains[0] * bend[:, None] * P, gains[1] * D, np.stack([e * bend, D @ v], axis=1)

    def run(gains, q0, v0):
        return ls.feedback_rollout(own, law, gains, q0, v0, dt=2e-3, steps=STEPS, tolerance=1e-13)

    motion = run(gains, q0, v0)
    np.testing.assert_allclose(motion.u[5], law(motion.t[5], motion.q[5], motion.v[5], gains), rtol=1e-9)
    by_q, by_v = rng.normal(size=(2, STEPS + 1, own.nv))
    by_u = rng.normal(size=motion.u.shape)
    found = ls.feedback_gradient(motion, gains, derivatives, by_q, by_v, by_u)

    def loss(x):
        moved = ls.difference(own, motion.q, x.q)
        return np.sum(by_q * moved) + np.sum(by_v * (x.v - motion.v)) + np.sum(by_u * (x.u - motion.u))

    dq, dv, dg = 0.1 * rng.normal(size=own.nv), 0.1 * rng.normal(size=own.nv), gains * rng.normal(size=2)
    ways = {
        "gains": (found.gains @ dg, lambda x: (gains + x * dg, q0, v0)),
        "q0": (found.q0 @ dq, lambda x: (gains, ls.integrate(own, q0, x * dq), v0)),
        "v0": (found.v0 @ dv, lambda x: (gains, q0, v0 + x * dv)),
    }
    for what, (exact, moved) in ways.items():
        slope = differenced(lambda x, moved=moved: loss(run(*moved(x))), 1e-4)
        assert exact == pytest.approx(slope, rel=1e-7), what
    none = ls.feedback_gradient(motion, gains, lambda *x: tuple(0.0 * y for y in derivatives(*x)), by_q, by_v)
    gradient = motion.backward(by_q, by_v)
    np.testing.assert_allclose(none.q0, gradient.q0, rtol=0, atol=1e-11 * np.abs(gradient.q0).max())
    np.testing.assert_allclose(none.v0, gradient.v0, rtol=0, atol=1e-11 * np.abs(gradient.v0).max())


def test_a_derivative_of_zero_is_no_error():
    """The derivative by friction is zero for a ball that sticks all the time, and the check finds a small error."""
    motion = begun(3.0, steps=10)[1]
    weights = np.random.default_rng(13).normal(size=motion.v.shape)
    gradient = motion.backward(dL_dv=weights, parameters=["dome.friction"])
    found = ls.check_gradient(motion, lambda x: float(np.sum(weights * x.v)), gradient)
    assert abs(gradient.parameters["dome.friction"]) < 1e-6 * np.linalg.norm(gradient.u)
    assert found.worst < 1e-6


def test_what_has_no_place_for_anchors_is_reported():
    """Functions of steps from (q, v) alone refuse contacts that stick."""
    own = model(3.0)
    with pytest.raises(ls.ModelError, match="contact 'dome': stick_stiffness must be 0 for steps from"):
        ls.step_derivatives(own, own.neutral(), np.zeros(own.nv), [4.0, 2.0], dt=2e-3)
