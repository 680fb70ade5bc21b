"""Derivatives with contact, a fluid and forces of users against central differences, at random poses and speeds."""

import families
import numpy as np
import pytest
import warp as wp
from forces.exact_distances import some_place
from sampling import halved
from touching_robots import (
    BASES,
    LAW,
    RADIUS,
    differences,
    gaps,
    hybrid,
    mismatch,
    rod,
    state,
    touching_shape,
)

import lissom as ls
from lissom.lie.types import vec6
from lissom.robot.shapes import Shape

TIME, STEP = 0.3, 1e-5
TOLERANCE = 1e-7  # differences leave 1e-9 of inverse dynamics, some 1e-8 of the forward one, by rounding
CLEAR = 3e-4  # what touches, and what does not, is farther from switching than the differences go [m]
BOX, END, CONE = ls.ShapeBox(0.2, 0.3, 0.2), ls.ShapeCylinder(0.1, 0.2), ls.ShapeCone(0.1, 0.2)
SHAPES = {  # a shape, and the centre of a ball of radius 0.04 in its frame
    "plane": (ls.ShapePlane(normal=(1, 2, 2)), 0.03 / 3 * np.array([1, 2, 2])),
    "sphere": (ls.ShapeSphere(0.1), (0.1, 0.08, 0.01)),
    "face of a box": (BOX, (0.13, 0.03, 0.02)),
    "edge of a box": (BOX, (0.118, 0.174, 0.05)),
    "corner of a box": (BOX, (0.11, 0.17, 0.12)),
    "inside a box": (BOX, (0.092, 0.03, 0.02)),
    "side of a cylinder": (END, (0.02, 0.12, 0.05)),
    "rim of a cylinder": (END, (0.118, 0.09, 0.08)),
    "end of a cylinder": (END, (0.13, 0.03, 0.02)),
    "endless cylinder": (ls.ShapeCylinder(0.1, axis=(1, 1, 0)), (0.09, -0.05, 0.07)),
    "hole": (ls.ShapeCylinder(0.2, axis=(1, 1, 0), inside=True), (0.0, 0.0, 0.17)),
    "side of a capsule": (ls.ShapeCapsule(0.1, 0.2), (0.05, 0.12, 0.05)),
    "end of a capsule": (ls.ShapeCapsule(0.1, 0.2), (0.2, 0.05, 0.06)),
    "side of a cone": (CONE, (0.02, 0.045, 0.065)),
    "rim of a cone": (CONE, (-0.12, 0.11, 0.05)),
    "tip of a cone": (CONE, (0.13, 0.01, 0.005)),
    "base of a cone": (CONE, (-0.13, 0.03, 0.02)),
}


def check(model, q, v, a, step=STEP):
    """Assert it for inverse dynamics, its directional derivative and forward dynamics; ∂τ/∂a is the mass matrix."""
    dq, dv, da = ls.inverse_dynamics_derivatives(model, q, v, a, t=TIME)

    def tau(q, v, a):
        return ls.inverse_dynamics(model, q, v, a, t=TIME)

    assert mismatch(model, dq, differences(model, lambda d: tau(ls.integrate(model, q, d), v, a), step)) < TOLERANCE
    assert mismatch(model, dv, differences(model, lambda d: tau(q, v + d, a), step)) < TOLERANCE
    assert mismatch(model, da, ls.mass_matrix(model, q)) < 1e-12
    ways = np.random.default_rng(1).normal(size=(3, model.nv)) * model.dofs.scale
    along = ls.inverse_dynamics_tangent(model, q, v, a, *ways, t=TIME)
    whole = dq @ ways[0] + dv @ ways[1] + da @ ways[2]
    np.testing.assert_allclose(along, whole, rtol=0, atol=1e-9 * np.abs(whole).max())
    check_forward(model, q, v, step)


def check_forward(model, q, v, step=STEP):
    """∂a/∂q and ∂a/∂v solve M ∂a = −∂τ at the acceleration found, which leaves no force."""
    u = np.zeros(model.nu)
    a = ls.forward_dynamics(model, q, v, u, t=TIME)
    asked = np.abs(ls.inverse_dynamics(model, q, v, 0 * a, t=TIME)).max()
    assert np.abs(ls.inverse_dynamics(model, q, v, a, t=TIME)).max() < 1e-9 * asked
    da_dq, da_dv, _ = ls.forward_dynamics_derivatives(model, q, v, u, t=TIME)
    dq, dv, M = ls.inverse_dynamics_derivatives(model, q, v, a, t=TIME)
    assert mismatch(model, M @ da_dq, -dq) < TOLERANCE and mismatch(model, M @ da_dv, -dv) < TOLERANCE
    rates = differences(model, lambda d: ls.forward_dynamics(model, ls.integrate(model, q, d), v, u, t=TIME), step)
    assert mismatch(model, M @ da_dq, M @ rates) < TOLERANCE
    rates = differences(model, lambda d: ls.forward_dynamics(model, q, v + d, u, t=TIME), step)
    assert mismatch(model, M @ da_dv, M @ rates) < TOLERANCE


def check_touching(model, shape, q, v):
    """Some ball touches, none is about to switch, none is torn off so fast that the damping pulls."""
    gap, features = gaps(model, q, shape)
    assert gap.min() < -CLEAR and np.abs(gap).min() > CLEAR
    ahead, behind = (gaps(model, ls.integrate(model, q, s * v), shape) for s in (CLEAR, -CLEAR))
    closing = (behind[0] - ahead[0]) / (2 * CLEAR)
    touching = gap < 0
    assert (1.0 + LAW["damping"] * closing[touching]).min() > 0.2
    assert all(features[k] == ahead[1][k] == behind[1][k] for k in np.flatnonzero(touching))


def touches_clearly(model, shape, q, v):
    """Whether `check_touching` says so."""
    try:
        check_touching(model, shape, q, v)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(("name", "moves"), halved(SHAPES, (False, True)))
def test_shapes(name, moves):
    """Purpose: every shape, at its faces, edges and corners, in the world and on a moving link, on every base."""
    shape, centre = SHAPES[name]
    seed = list(SHAPES).index(name)
    base = list(BASES)[(seed + moves) % 3]
    model, shape, (q, v, a) = touching_shape(base, shape, centre, seed, moves=moves)
    check_touching(model, shape, q, v)
    check(model, q, v, a)


@pytest.mark.parametrize("form", families.forms(Shape), ids=families.name_of)
def test_some_place_of_every_shape(form):
    """Purpose: a random one of every class, wherever it is touched clear of edges, in the world and on a link."""
    for moves in (False, True):
        for seed in range(50):
            shape = families.made(form, seed)
            centre = some_place(shape, np.random.default_rng(seed), RADIUS - 0.01)
            model, _, (q, v, a) = touching_shape(list(BASES)[seed % 3], shape, centre, seed, moves=moves)
            if touches_clearly(model, shape, q, v):
                break
        check_touching(model, shape, q, v)
        check(model, q, v, a)


@pytest.mark.parametrize("base", BASES)
def test_balls_of_other_links(base):
    """Purpose: balls of one rod against those of another, and of a body, with friction and damping."""
    bare = hybrid(base).build()
    q, v, a = state(bare, 5)
    g = ls.frame_pose(bare, q, "base")
    there, here = (ls.frame_pose(bare, q, *at)[:3, 3] for at in (("a", 0.5), ("b", 0.5)))
    foot = np.array([0.0, -0.05, 0.0]) + g[:3, :3].T @ (there - here + 1.4 * RADIUS * g[:3, 0])
    robot = hybrid(base, tuple(foot.tolist()))
    robot.add_contact("touch", ["a", "ball"], others="b", radius=RADIUS, **LAW)
    model = robot.build()
    check_touching(model, None, q, v)
    check(model, q, v, a)


@pytest.mark.parametrize("base", BASES)
def test_self_contact(base):
    """Purpose: a rod curled up until its tip lies at its foot touches itself; neighbours along it do not."""
    robot = hybrid(base)
    robot.add_contact("touch", ["a", "b"], others=["a", "b"], radius=RADIUS, **LAW)
    model = robot.build()
    q, v, a = state(model, 8, 0.02)
    first = model.nq - 21 - 4  # of rod a, in front of rod b on its joint and the hinge
    q = q.copy()
    q[first + 5] += 1.8 * np.pi / rod().length
    check_touching(model, None, q, v)
    check(model, q, v, a)


@wp.func
def pull(R: wp.mat33d, p: wp.vec3d, eta: vec6, s: wp.float64, t: wp.float64) -> vec6:
    """A force that follows place, time and speed."""
    f = wp.transpose(R) * wp.vec3d(wp.sin(wp.float64(3.0) * p[1]), p[2] * p[0], t)
    v = wp.vec3d(eta[3], eta[4], eta[5])
    f -= s * wp.length(wp.vec3d(eta[0], eta[1], eta[2])) * v
    return vec6(wp.float64(0.1) * eta[0], p[0], wp.float64(0.0), f[0], f[1], f[2])


@wp.func
def stream(x: wp.vec3d, t: wp.float64) -> vec6:
    """A current that turns and grows."""
    c = wp.cos(x[1] + t)
    return vec6(wp.sin(x[1] + t), x[2] * x[0], wp.float64(0.3), c, wp.float64(0.1), x[0])


def push(t, g, eta):
    """The same kind of force in Python."""
    f = g[:3, :3].T @ np.array([np.sin(3 * g[1, 3]), g[2, 3] * g[0, 3], t]) - 0.5 * np.linalg.norm(eta[:3]) * eta[3:]
    return np.concatenate([[0.1 * eta[0], g[0, 3], 0.0], f])


TAIL = {"a": ls.Hydrodynamics(tail=True, lift=0.3)}
FLUIDS = {
    "still": {},
    "steady current": {"current": (0.4, -0.2, 0.3)},
    "varying current": {"current": lambda t: (np.sin(t), 0.4, t)},
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", FLUIDS)
def test_fluid(name, base):
    """Purpose: drag, lift, added mass, buoyancy and the wake of a tail, in still water and in moving water."""
    robot = hybrid(base)
    robot.set_fluid(1000.0, links=TAIL, **FLUIDS[name])
    model = robot.build()
    check(model, *state(model, 4))


def with_forces(base, function):
    """The robot with a force along a rod, at a point of the other one, and on a body."""
    robot = hybrid(base)
    robot.add_force("along", "a", function)
    robot.add_force("at", "b", function, s=0.37)
    robot.add_force("on", "ball", function)
    return robot


@pytest.mark.parametrize("base", BASES)
def test_python_forces_of_users(base):
    """Purpose: forces in Python on rods and bodies that follow pose, speed and time."""
    model = with_forces(base, push).build()
    check(model, *state(model, 6))


@pytest.mark.parametrize("base", BASES)
def test_compiled_forces_and_currents_of_users(base):
    """Purpose: the same as Warp functions, in a current that is one, too; the forces are those of Python."""
    robot = with_forces(base, pull)
    robot.set_fluid(1000.0, current=stream, links=TAIL)
    model = robot.build()
    q, v, a = state(model, 6)
    check(model, q, v, a)
