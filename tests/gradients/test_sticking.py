"""Derivatives of motions whose contacts stick: anchors go along from step to step."""

from functools import lru_cache

import numpy as np
import pytest
from gradients.moving_robots import changes, differenced, mismatch, redesigned, size_of

import lissom as ls

STEPS = 40


@lru_cache
def model(friction):
    """An arm on a hinge whose ball lies on a dome, and is pulled along it."""
    robot = ls.Robot("arm")
    material = ls.Material(young=2e6, poisson=0.5, density=1000, viscosity=2e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.012), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1), material)
    robot.add_link("arm", rod, ls.JointUniversal((0, 1, 0), (0, 0, 1), stiffness=0.5, damping=0.01))
    for k, side in enumerate(((0.01, 0.0), (0.0, 0.01))):
        robot.add_tendon(f"tendon {k}", "arm", side)
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), parent="arm")
    place = ls.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    place[:3, 3] = 0.29, 0.01, -0.125
    law = {"damping": 0.5, "friction": friction, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("dome", "ball", ls.ShapeSphere(0.1), placement=place, stiffness=1e4, **law)
    return robot.build()


def moved(own, u, start, way, x, scheme):
    q0, v0 = start
    dq0, dv0, du = way
    return ls.rollout(own, ls.integrate(own, q0, x * dq0), v0 + x * dv0, u + x * du, dt=2e-3, scheme=scheme)


def shares(motion, friction):
    """Friction over the most there can be, at the ends of steps."""
    for k in range(STEPS):
        held = motion.model.anchored(motion.anchors[k])
        found = ls.contact_forces(held, motion.q[k + 1], motion.v[k + 1])
        N = found.force[0] @ found.normal[0]
        yield np.linalg.norm(found.force[0] - N * found.normal[0]) / (friction * N)


@pytest.mark.parametrize("scheme", [ls.implicit_euler(), ls.generalized_alpha(0.8), ls.bathe()], ids=lambda x: x.name)
@pytest.mark.parametrize(("friction", "slides"), [(3.0, False), (0.1, True)])
def test_sticking_and_sliding(friction, slides, scheme):
    """By the start and inputs they are those of differences, and backwards those forwards, while a tip sticks, and
    while it takes its anchor along."""
    own, rng = model(friction), np.random.default_rng(3)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, scheme="implicit_euler")
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
    """By constants of the contact, the place of the obstacle and the material they are those of differences, forwards
    and backwards, from a start that touches."""
    own, rng = model(friction), np.random.default_rng(4)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, scheme="implicit_euler")
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
            differenced(other, 1e-5 if path.endswith("placement") else 1e-4),
            np.array([exact.q, exact.v, exact.a]),
        )
        if np.abs(found).max() > 0.0:
            seen.add(path)
            assert mismatch(own, one, found) < 1e-7, path
        else:
            assert np.abs(one).max() < 1e-9 * np.abs(motion.a).max()
        assert np.sum(gradient[path] * way) == pytest.approx(np.sum(weights * one), rel=1e-11, abs=1e-9)
    assert seen >= set(PATHS) - {"dome.friction" if not slides else "dome.stick_stiffness"}


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
    place = ls.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    place[:3, 3] = 0.29, 0.05, -0.2
    block = ls.RigidBody.box(0.05, 0.04, 0.03, density=2000)
    robot.add_link("block", block, ls.JointSpherical(stiffness=0.5, damping=0.01), placement=place)
    turned = ls.se3_exp([-0.1, 0.1, 0.2, 0.01, -0.03, 0.07])
    law = {"damping": 0.5, "friction": 1.0, "stick_stiffness": 500.0, "stick_damping": 0.01}
    robot.add_contact("dome", "ball", ls.ShapeSphere(0.1), on="block", placement=turned, stiffness=1e4, **law)
    return robot.build()


def test_an_obstacle_that_moves():
    """Where a ball lies on a dome that turns with it they are those of differences, and backwards those forwards."""
    own, rng = carried(), np.random.default_rng(3)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, scheme="implicit_euler")
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


@pytest.mark.parametrize("of_models", [False, True])
def test_motions_together(of_models):
    """Motions of a batch, or of a batch of models, and their derivatives are those of each alone."""
    own, rng = model(1.0), np.random.default_rng(5)
    start = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=100, scheme="implicit_euler")
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


def test_what_has_no_place_for_anchors_is_told():
    """States kept now and then, and matrices of steps."""
    own = model(3.0)
    motion = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=2)
    with pytest.raises(ls.ModelError, match="contact 'dome': stick_stiffness must be 0 for matrices of steps and feed"):
        motion.step_matrices()
    with pytest.raises(ls.ModelError, match="every must be 1 where contacts stick"):
        ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=2, every=2)
