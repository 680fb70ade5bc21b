"""The law of contact: its values, where it is smooth, and its independence of the list of near pairs."""

import numpy as np
import pytest

import lissom as ls

RADIUS, TURN = 0.05, ls.lie.so3_exp([0.4, -0.3, 0.8])
LAW = {"stiffness": 3e4, "exponent": 1.5, "damping": 0.4, "friction": 0.6, "slip_speed": 0.05}


def free_ball(**law):
    """A ball without weight, free over a plane that leans."""
    lean = np.eye(4)
    lean[:3, :3] = TURN
    robot = ls.Robot("ball", gravity=(0, 0, 0))
    robot.add_link("ball", ls.RigidBody.sphere(RADIUS, density=1000), ls.JointFree())
    robot.add_contact("plane", "ball", ls.ShapePlane(), placement=lean, **{**LAW, **law})
    return robot.build()


def wrench(model, depth, spin=(0, 0, 0), velocity=(0, 0, 0)):
    """Moment and force on the ball in the axes of the plane, for motions in these axes."""
    q = np.concatenate([[1.0, 0, 0, 0], TURN @ [0, 0, RADIUS - depth]])
    v = np.concatenate([TURN @ np.asarray(spin, float), TURN @ np.asarray(velocity, float)])
    bare, whole = (ls.inverse_dynamics(model, q, v, np.zeros(6), loads=loads) for loads in (False, True))
    found = bare - whole
    return np.concatenate([TURN.T @ found[:3], TURN.T @ found[3:]])


def slope(model, depth, velocity=(0, 0, 0)):
    """Stiffness along the normal and viscosity along the plane."""
    q = np.concatenate([[1.0, 0, 0, 0], TURN @ [0, 0, RADIUS - depth]])
    v = np.concatenate([np.zeros(3), TURN @ np.asarray(velocity, float)])
    dq, dv, _ = ls.inverse_dynamics_derivatives(model, q, v, np.zeros(6))
    return (TURN.T @ dq[3:, 3:] @ TURN)[2, 2], (TURN.T @ dv[3:, 3:] @ TURN)[:2, :2]


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.2])
def test_values(exponent):
    """Purpose: force and moment are those of the law, for random depths, speeds and spins."""
    model = free_ball(exponent=exponent)
    rng = np.random.default_rng(2)
    for _ in range(20):
        depth, spin, velocity = rng.uniform(1e-4, 0.02), rng.normal(size=3), 0.5 * rng.normal(size=3)
        N = 3e4 * depth**exponent * (1 - 0.4 * velocity[2])
        slip = velocity[:2] + RADIUS * np.array([-spin[1], spin[0]])
        friction = -0.6 * N * slip / np.sqrt(slip @ slip + 0.05**2)
        expected = [RADIUS * friction[1], -RADIUS * friction[0], 0.0, *friction, N]
        np.testing.assert_allclose(wrench(model, depth, spin, velocity), expected, rtol=1e-9, atol=1e-9)


def test_never_pulls():
    """Purpose: a ball that leaves faster than 1/c is let go, and one out of reach feels nothing."""
    model = free_ball(damping=2.0)
    assert wrench(model, 0.01, velocity=(0, 0, 0.4))[5] > 0.0
    assert not wrench(model, 0.01, velocity=(0.3, 0, 0.6)).any()
    assert not wrench(model, -1e-9, velocity=(0.3, 0, -0.6)).any()


@pytest.mark.parametrize("exponent", [1.0, 1.2, 1.5, 2.0])
def test_smooth_at_touch(exponent):
    """Purpose: the force begins as k δ^p and is continuous for every p; the stiffness begins as p k δ^(p−1): for p > 1
    it is continuous, too, for p = 1 it jumps by k."""
    model = free_ball(exponent=exponent, friction=0.0, damping=0.0)
    depths = np.array([1e-12, 1e-9, 1e-6])
    found = [wrench(model, d)[5] for d in depths]
    slopes = [slope(model, d)[0] for d in depths]
    sizes = [RADIUS - (RADIUS - d) for d in depths]  # as rounded
    np.testing.assert_allclose(found, 3e4 * np.array(sizes) ** exponent, rtol=1e-3)
    np.testing.assert_allclose(slopes, exponent * 3e4 * np.array(sizes) ** (exponent - 1), rtol=1e-3)
    assert wrench(model, -1e-12)[5] == slope(model, -1e-12)[0] == 0.0
    assert slopes[0] == pytest.approx(3e4) if exponent == 1.0 else slopes[0] < slopes[1] < slopes[2]


def test_friction_is_smooth_through_rest():
    """Purpose: through zero slip friction is odd, its slope −μ N/v_s is the same on both sides and the exact one; far
    from rest it is μ N."""
    model, depth = free_ball(), 0.01
    N = wrench(model, depth)[5]
    for way in np.eye(2):
        ahead, behind = (wrench(model, depth, velocity=(*(s * way), 0.0))[3:5] for s in (1e-7, -1e-7))
        np.testing.assert_allclose(ahead, -behind, atol=1e-15 * N)
        np.testing.assert_allclose(ahead, -0.6 * N / 0.05 * 1e-7 * way, rtol=1e-9, atol=1e-15 * N)
        np.testing.assert_allclose(wrench(model, depth, velocity=(*(50.0 * way), 0.0))[3:5], -0.6 * N * way, rtol=1e-6,
                                   atol=1e-9 * N)  # fmt: skip
    for speed in (1e-12, 0.0, -1e-12):
        np.testing.assert_allclose(slope(model, depth, (speed, 0, 0))[1], 0.6 * N / 0.05 * np.eye(2), rtol=1e-9,
                                   atol=1e-9 * N)  # fmt: skip


def chain(*, wide=False):
    """Two free rods that touch each other, a floor and a post; with `wide` a ball far away makes every pair near."""
    robot = ls.Robot("pile", gravity=(0, 0, 0))
    basis = ls.BasisLegendre(bending_y=2, bending_z=2)
    material = ls.Material(young=1e6, poisson=0.5, density=1000)
    for name in ("a", "b"):
        robot.add_link(name, ls.Rod(0.5, ls.SectionCircle(0.03), basis, material), ls.JointFree())
    law = {"stiffness": 1e4, "friction": 0.3}
    robot.add_contact("each other", "a", others=["a", "b"], **law)
    robot.add_contact("post", ["a", "b"], ls.ShapeCapsule(0.05, 0.3), **law)
    robot.add_contact("floor", ["a", "b"], ls.ShapePlane(), placement=None, **law)
    if wide:
        high = np.eye(4)
        high[2, 3] = 1e6
        far = ls.RigidBody(1.0, balls=[(0.0, 0.0, 0.0, 1e5)])
        robot.add_link("far", far, placement=high)
        robot.add_contact("far", "far", ls.ShapePlane(), **law)
    return robot.build()


def test_the_past_leaves_no_trace():
    """Purpose: on a walk of small steps and long jumps the forces and derivatives are exactly those of a new model and
    those of a search over every pair: pairs that were near before do not matter."""
    model, every = chain(), chain(wide=True)
    assert every.contacts.margin > 1e5 > model.contacts.margin
    rng = np.random.default_rng(9)
    q, touching = model.neutral(), 0
    v, a = rng.normal(size=(2, model.nv))
    for k in range(60):
        jump = 0.3 if k % 10 == 0 else 0.02
        q = ls.integrate(model, q, jump * rng.normal(size=model.nv))
        q[[6, 17]] *= 0.8  # both stay around the post
        found = [ls.inverse_dynamics(model, q, v, a), *ls.inverse_dynamics_derivatives(model, q, v, a)]
        fresh = [ls.inverse_dynamics(chain(), q, v, a)] if k % 20 == 0 else []
        other = [ls.inverse_dynamics(every, q, v, a), *ls.inverse_dynamics_derivatives(every, q, v, a)]
        assert all(np.array_equal(x, y) for x, y in zip(found, other))
        assert all(np.array_equal(found[0], y) for y in fresh)
        touching += not np.array_equal(found[0], ls.inverse_dynamics(model, q, v, a, loads=False))
    assert touching > 20
