"""Derivatives of motions whose contacts stick: anchors go along from step to step."""

from functools import lru_cache

import numpy as np
import pytest
from gradients.moving_robots import changes, differenced, mismatch

import lissom as ls
from lissom.dynamics.contacts import put_anchors

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
        put_anchors(motion.anchored, motion.anchors[k])
        found = ls.contact_forces(motion.anchored, motion.q[k + 1], motion.v[k + 1])
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


def test_what_has_no_place_for_anchors_is_told():
    """Batches, states kept now and then, design values and matrices of steps."""
    own = model(3.0)
    motion = ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=2)
    rule = "contact 'dome': stick_stiffness must be 0 but for derivatives of single motions by q0, v0 and u"
    with pytest.raises(ls.ModelError, match=rule):
        motion.step_matrices()
    with pytest.raises(ls.ModelError, match=rule):
        motion.backward(motion.v, parameters=["dome.friction"])
    with pytest.raises(ls.ModelError, match="every must be 1 where contacts stick"):
        ls.rollout(own, u=[4.0, 2.0], dt=2e-3, steps=2, every=2)
    with pytest.raises(ls.ModelError, match="where contacts stick a rollout is of a single motion"):
        ls.rollout(own, np.array([own.neutral()] * 2), u=[4.0, 2.0], dt=2e-3, steps=2)
