"""Material points of deformable bodies as places for tendons, loads, springs, loops, contacts and frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls

LENGTH = 0.3
LAW = ls.HyperelasticLinear(young=1e5, poisson=0.4)
DOMAIN = ls.DomainCylinder(LENGTH, 0.03, degree=4)
SIDE, BELOW, BETWEEN = np.array([0.18, 0.03, 0.0]), np.array([0.27, 0.0, -0.03]), np.array([0.1, 0.01, 0.02])
ANCHOR, PULLEY = np.array([0.2, 0.3, 0.1]), np.array([-0.05, 0.1, 0.05])
STEPS = {"method": "generalized_alpha", "dt": 1e-3, "u": [2.0], "t_eval": np.linspace(0.0, 0.02, 5)}
STATE, SPEED = np.array([0.1, 0.02, 0.03, -0.2]), np.array([0.3, -0.5, 0.2, 0.4])


def shapes(x):
    """Bending about z and about y, and stretching with a bulge."""
    X = x[0] / LENGTH
    bending = [jnp.array([-2.0 * x[1] * X / LENGTH, X**2, 0.0]), jnp.array([-2.0 * x[2] * X / LENGTH, 0.0, X**2])]
    return jnp.stack([*bending, jnp.array([X**2 / 2, x[1] * X, 0.0])], axis=1)


def moved(x, theta):
    """The same motion, as a function that is not known to be linear, with a loop that cannot be compiled."""
    theta, _ = jax.lax.while_loop(lambda s: s[1] < 1, lambda s: (s[0], s[1] + 1), (theta, 0))
    return x + shapes(x) @ theta


BALLS = [[0.27, 0.0, -0.02, 0.01], [0.15, 0.0, -0.02, 0.01], [0.03, 0.0, 0.02, 0.01]]
SOFT = ls.DeformableBody(ls.KinematicsRitz(shapes, 3), DOMAIN, LAW, 1e3, balls=BALLS)
ANY = ls.DeformableBody(moved, DOMAIN, LAW, 1e3, n=3, balls=BALLS)


def described(body):
    """A soft leg on a hinge with a tendon, a spring, a load and a plane that it presses, all at material points."""
    robot = ls.Robot("leg")
    robot.add_link("soft", body, ls.JointRevolute((0, 1, 0), stiffness=5.0))
    path = [ls.PathPoint(None, PULLEY), ls.PathPoint("soft", s=BETWEEN), ls.PathPoint("soft", s=SIDE.tolist())]
    robot.add_tendon("tendon", path=path)
    robot.add_spring("spring", ls.PathPoint("soft", s="tip_y"), ls.PathPoint(None, ANCHOR), stiffness=40.0, rest=0.2)
    robot.add_point_load("tug", "soft", s="tip", force=(0.3, 0.5, 0.2))
    down = np.eye(4)
    down[2, 3] = -0.1
    robot.add_contact("floor", "soft", ls.ShapePlane(), placement=down, stiffness=2e4, exponent=2.0)
    return robot


@pytest.fixture(scope="module")
def model():
    """Of the body whose motion is linear."""
    return described(SOFT).build()


@pytest.fixture(scope="module")
def through_jax():
    """Of the other."""
    return described(ANY).build()


def place(q, x):
    """Where a material point is in the world, from the map and the hinge alone."""
    c, s = np.cos(q[0]), np.sin(q[0])
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) @ SOFT.moved(np.array([x]), q[1:])[0]


def slope(function, q):
    """By central differences of fourth order."""
    h, rows = 1e-4, []
    for e in np.eye(len(q)):
        one, two = ((function(q + k * h * e) - function(q - k * h * e)) / (2 * k * h) for k in (1, 2))
        rows.append((4 * one - two) / 3)
    return np.array(rows)


def test_linear_points_need_no_python(model, through_jax):
    """Kernels follow them, so that steps are fused; a map that only JAX knows does need it."""
    assert not model.calls_python and through_jax.calls_python


def test_tendons_pull_along_the_gradient_of_their_length(model):
    """The length is that of straight pieces between the points, and B = −(∂L/∂q)ᵀ."""

    def length(q):
        a, b = place(q, BETWEEN), place(q, SIDE)
        return np.linalg.norm(a - PULLEY) + np.linalg.norm(b - a)

    assert ls.path_lengths(model, STATE)[0] == pytest.approx(length(STATE), rel=1e-14)
    B = ls.actuation_matrix(model, STATE)[:, 0]
    assert np.allclose(B, -slope(length, STATE), rtol=0, atol=1e-11)


def test_springs_and_loads_do_the_work_of_their_points(model):
    """Forces beside gravity, elasticity and contact are gradients of the energy and work at the points."""

    def work(q):
        stretched = np.linalg.norm(place(q, DOMAIN.places["tip_y"]) - ANCHOR) - 0.2
        return 20.0 * stretched**2 - place(q, DOMAIN.places["tip"]) @ [0.3, 0.5, 0.2]

    bare = described(SOFT)
    bare.loads.clear()
    bare.springs.clear()
    zero = np.zeros(4)
    force = ls.inverse_dynamics(model, STATE, zero, zero) - ls.inverse_dynamics(bare.build(), STATE, zero, zero)
    assert np.allclose(force, slope(work, STATE), rtol=0, atol=1e-9)


def touching(model):
    """A state in which balls press the plane."""
    q = np.array([0.28, 0.01, -0.02, 0.1])
    found = ls.contact_forces(model, q)
    assert len(found.depth) > 0 and found.depth.min() > 1e-4
    return q, found


def test_balls_stand_on_material_points(model):
    """Depths are of balls about the points; abscissae are those of the nearest places on the axis."""
    q, found = touching(model)
    pressed = [row for row in BALLS if place(q, row[:3])[2] - 0.01 < -0.1]
    assert np.allclose(sorted(found.depth), sorted(-0.1 - place(q, row[:3])[2] + 0.01 for row in pressed), atol=1e-13)
    assert np.allclose(sorted(found.s), sorted(row[0] / LENGTH for row in pressed), atol=1e-14)


def test_derivatives_are_exact(model):
    """Of accelerations, with tendon, spring, load and contact at material points, below 1e-8 of the largest."""
    q, _ = touching(model)
    u = np.array([2.0])
    found = ls.forward_dynamics_derivatives(model, q, SPEED, u)
    by_q = slope(lambda q: ls.forward_dynamics(model, q, SPEED, u), q).T
    by_v = slope(lambda v: ls.forward_dynamics(model, q, v, u), SPEED).T
    assert np.abs(found[0] - by_q).max() < 1e-8 * np.abs(by_q).max()
    assert np.abs(found[1] - by_v).max() < 1e-8 * np.abs(by_v).max()


def test_energy_changes_by_the_work_of_the_load(model):
    """Nothing else takes or gives any, in contact too: dE/dt along the motion is the load's power."""
    q, _ = touching(model)
    a = ls.forward_dynamics(model, q, SPEED, np.zeros(1))

    def total(t):
        here = q + t * SPEED + 0.5 * t * t * a
        depth = np.array([-0.1 - place(here, row[:3])[2] + 0.01 for row in BALLS])
        return ls.energy(model, here, SPEED + t * a).total + 2e4 / 3.0 * (np.maximum(depth, 0.0) ** 3).sum()

    def place_of_load(t):
        return place(q + t * SPEED, DOMAIN.places["tip"])

    h = 1e-4
    power = [0.3, 0.5, 0.2] @ (place_of_load(h) - place_of_load(-h)) / (2 * h)
    change = 4 / 3 * (total(h) - total(-h)) / (2 * h) - 1 / 3 * (total(2 * h) - total(-2 * h)) / (4 * h)
    assert change == pytest.approx(power, abs=1e-6 * abs(power))


def test_any_map_gives_the_same(model, through_jax):
    """Points that JAX evaluates, all of a body by one function, move as those in kernels; so does the robot."""
    q, _ = touching(model)
    pairs = zip(*(ls.forward_dynamics_derivatives(m, q, SPEED, np.array([2.0])) for m in (model, through_jax)))
    assert all(np.allclose(x, y, rtol=0, atol=1e-11 * np.abs(x).max()) for x, y in pairs)
    one, two = (ls.simulate(m, 0.02, q0=STATE, **STEPS) for m in (model, through_jax))
    assert np.abs(one.q - two.q).max() < 1e-9 and np.abs(one.v - two.v).max() < 1e-7
    assert np.abs(one.q[-1] - STATE).max() > 0.1


def test_where_points_are_needs_no_integrals(model, through_jax, monkeypatch):
    """Places, their Jacobians and what inputs do are found without a look at inertia and elasticity."""

    def refused(*_):
        raise AssertionError("integrals over the body")

    monkeypatch.setattr(type(ANY.integrals), "values", refused)
    q = np.linspace(0.02, 0.03, model.nq)
    for find in (ls.frame_pose, ls.frame_jacobian):
        np.testing.assert_allclose(find(through_jax, q, "soft"), find(model, q, "soft"), atol=1e-12)
    np.testing.assert_allclose(ls.actuation_matrix(through_jax, q), ls.actuation_matrix(model, q), atol=1e-12)
    with pytest.raises(AssertionError, match="integrals"):
        ls.mass_matrix(through_jax, q)


def test_batches_are_as_single_motions(model):
    """To the last bit, in fused steps."""
    starts = np.array([STATE, 0.5 * STATE, [0.28, 0.0, 0.0, 0.0]])
    many = ls.simulate(model, 0.02, q0=starts, **STEPS)
    for k, start in enumerate(starts):
        alone = ls.simulate(model, 0.02, q0=start, **STEPS)
        assert np.array_equal(many.q[k], alone.q)


def test_columns_of_frames_are_derivatives():
    """Of a stack of points that one function gives, with and without the area's turn: S of the pose, and so on."""

    def swaying(x, q):
        return x + jnp.array([0.0, jnp.sin(q[0] * x[0]) * x[0], q[0] * q[1] * x[1]])

    body = ls.DeformableBody(swaying, DOMAIN, LAW, 1e3, n=2)
    theta, frames = np.array([0.4, -0.3]), [body.frames.at(SIDE, turns=True), body.frames.at(BELOW, turns=False)]

    def at(theta):
        return [part[0] for part in body.frames.derivatives(frames, theta[None])]

    g, S, S_q, S_qq = at(theta)
    change = np.linalg.inv(g) @ slope(lambda q: at(q)[0], theta)
    rate = [change[..., 2, 1], change[..., 0, 2], change[..., 1, 0], *np.moveaxis(change[..., :3, 3], -1, 0)]
    assert np.allclose(g[:, :3, 3], body.moved(np.array([SIDE, BELOW]), theta), rtol=0, atol=1e-15)
    assert np.allclose(S, np.moveaxis(np.array(rate), (0, 1), (2, 1)), rtol=0, atol=1e-10)
    assert np.allclose(S_q, np.moveaxis(slope(lambda q: at(q)[1], theta), 0, 2), rtol=0, atol=1e-10)
    assert np.allclose(S_qq, np.moveaxis(slope(lambda q: at(q)[2], theta), 0, 3), rtol=0, atol=1e-10)
    assert np.abs(S[0, :, :3]).max() > 0.1 and not S[1, :, :3].any()


def closed(body):
    """A soft leg whose side a stay of two links holds by a ball joint."""
    robot = ls.Robot("stayed")
    robot.add_link("soft", body)
    lift = np.eye(4)
    lift[:3, 3] = ANCHOR
    bar = ls.RigidBody.box(0.02, 0.02, 0.3, density=500.0)
    robot.add_link("stay", bar, ls.JointUniversal(), placement=lift)
    end = np.eye(4)
    end[:3, 3] = SIDE - ANCHOR
    robot.add_loop("pin", "stay", "soft", s_b=SIDE, placement_a=end, joint=ls.JointSpherical())
    return robot.build()


def test_loops_close_at_material_points():
    """A ball joint needs no axes, so that kernels do it; at rest the point is where the stay ends."""
    stayed = closed(SOFT)
    assert not stayed.calls_python
    rest = ls.solve_statics(stayed)
    x = SOFT.moved(SIDE[None], rest.q[:3])[0]
    g = ls.frame_pose(stayed, rest.q, "stay")
    assert np.allclose(x, g[:3, :3] @ (SIDE - ANCHOR) + g[:3, 3], rtol=0, atol=1e-10)
    assert np.abs(x - SIDE).max() > 1e-5
    turned = ls.constraint_jacobian(stayed, rest.q)[:, :3]
    J = slope(lambda theta: SOFT.moved(SIDE[None], theta)[0], rest.q[:3]).T
    assert np.allclose(turned.T @ turned, J.T @ J, rtol=0, atol=1e-9)


def test_frames_at_material_points_are_found_by_place():
    """By name, by a row, or by the frame's own name; a flat list is one of abscissae, and a point without a frame
    raises an error."""
    robot = ls.Robot("leg")
    robot.add_link("soft", SOFT)
    robot.add_frame("amid", "soft", s=SIDE)
    robot.add_frame("rim", "soft", s="tip_y")
    leg = robot.build()
    q = STATE[1:]
    rows = ls.frame_pose(leg, q, "soft", s=[SIDE, DOMAIN.places["tip_y"]])
    assert np.array_equal(rows[0], ls.frame_pose(leg, q, "amid")) and rows.shape == (2, 4, 4)
    assert np.array_equal(rows[1], ls.frame_pose(leg, q, "soft", s="tip_y"))
    assert np.allclose(rows[:, :3, 3], SOFT.moved(np.array([SIDE, DOMAIN.places["tip_y"]]), q), rtol=0, atol=1e-14)
    with pytest.raises(ls.ModelError, match=r"there is no frame at this material point of 'soft'; name the place"):
        ls.frame_pose(leg, q, "soft", s=[BELOW])
    with pytest.raises(ls.ModelError, match=r"a material point is a row, s=\[\(x, y, z\)\]"):
        ls.frame_pose(leg, q, "soft", s=SIDE)


REFUSED = {
    "name": ("soft", "elbow", r"load 'l': s: must name one of the places \['base', 'center', 'tip', .*got 'elbow'"),
    "far": ("soft", (180.0, 0, 0), r"load 'l': s: a material point must lie within 0.3 m, the body's size"),
    "shape": ("soft", (0.1, 0.2), r"load 'l': s: must be an abscissa in \[0, 1\], or a material point"),
    "rigid": (
        "ball",
        "tip",
        r"load 'l': s: must be an abscissa in \[0, 1\]; material points and places are those of a D",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_places_that_are_none_are_refused(case):
    """Named by entity, rule and value."""
    link, s, words = REFUSED[case]
    robot = ls.Robot("leg")
    robot.add_link("soft", SOFT)
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=1e3))
    robot.add_point_load("l", link, s=s, force=(1, 0, 0))
    with pytest.raises(ls.ModelError, match=words):
        robot.build()
