"""What ls.contact_forces tells, room for near pairs, and what bdf does where contact begins."""

import numpy as np
import pytest
from touching_robots import BASES, LAW, RADIUS, hybrid, moved, state

import lissom as ls


def grasped(base):
    """Rods that touch each other and the ball of rod a, in a box on rod b."""
    robot = hybrid(base, foot=(0.0, -0.01, 0.0))
    robot.add_contact("rods", "a", others="b", radius=RADIUS, **LAW)
    robot.add_contact("box", ["a", "ball"], ls.ShapeBox(0.3, 0.3, 0.3), on="b", s=0.6, radius=RADIUS, **LAW)
    robot.add_contact("floor", ["a", "b", "base"], ls.ShapePlane(), placement=moved(0.0, 0.0, -0.05), **LAW)
    return robot.build()


def jacobian_at(model, q, link, s, point):
    """Jacobian of the velocity of a point fixed to a link, in world axes."""
    g, J = ls.frame_pose(model, q, link, s), ls.frame_jacobian(model, q, link, s)
    r = g[:3, :3].T @ (point - g[:3, 3])
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return g[:3, :3] @ (J[3:] - cross @ J[:3])


@pytest.mark.parametrize("base", BASES)
def test_forces_at_their_points_are_what_contact_does(base):
    """Σ Jᵀ f over the pairs returned, both sides of each, is the generalised force of contact."""
    model, touched = grasped(base), set()
    for seed in range(6):
        q, v, a = state(model, seed)
        found = ls.contact_forces(model, q, v)
        expected = ls.inverse_dynamics(model, q, v, a, loads=False) - ls.inverse_dynamics(model, q, v, a)
        force = np.zeros(model.nv)
        sides = zip(found.link, found.s, found.other, found.other_s, found.point, found.force)
        for link, s, other, other_s, point, f in sides:
            force += jacobian_at(model, q, link, s, point).T @ f
            if other is not None:
                force -= jacobian_at(model, q, other, other_s, point).T @ f
        scale = np.abs(expected).max()
        assert np.all(found.depth > 0.0)
        assert np.allclose(np.linalg.norm(found.normal, axis=1), 1.0)
        touched |= set(found.contact)
        np.testing.assert_allclose(force, expected, atol=1e-9 * scale)
    assert touched == {"rods", "box", "floor"}


def test_nothing_touches():
    """A robot without contacts, and one away from everything, have no pairs, one by one or in batches."""
    free = hybrid().build()
    assert ls.contact_forces(free, free.neutral()).link == ()
    model = heap().build()
    apart = ls.contact_forces(model, model.neutral())
    assert apart.force.shape == (0, 3)
    for still in (free, model):
        both = ls.contact_forces(still, np.tile(still.neutral(), (2, 1)))
        assert [found.force.shape for found in both] == [(0, 3), (0, 3)]
        assert ls.contact_forces(still, np.zeros((0, still.nq))) == ()


def test_pairs_of_many_states():
    """Leading axes of q and v, such as those of a trajectory, give tuples of the results of each state alone."""
    model = grasped("fixed")
    states = [state(model, seed)[:2] for seed in range(70)]  # more than go through at once
    q, v = (np.array(x) for x in zip(*states))
    many = ls.contact_forces(model, q, v)
    assert len(many) == 70 and len({found.link for found in many}) > 1
    grid = ls.contact_forces(model, q[:6].reshape(3, 2, -1), v[:6].reshape(3, 2, -1))
    assert grid[2][1].contact == many[5].contact
    for k in (0, 5, 63, 64, 69):
        one = ls.contact_forces(model, *states[k])
        assert (one.contact, one.link, one.other) == (many[k].contact, many[k].link, many[k].other)
        np.testing.assert_allclose(many[k].force, one.force, rtol=1e-9, atol=1e-12)
    at_rest = ls.contact_forces(model, q[:2])
    np.testing.assert_allclose(at_rest[1].force, ls.contact_forces(model, q[1]).force, rtol=1e-9, atol=1e-12)


def heap(**options):
    """Four balls in a row above a floor, near each other and it."""
    robot, names = ls.Robot("heap", **options), [f"b{k}" for k in range(4)]
    for k, name in enumerate(names):
        place = moved(0.25 * k, 0.0, 0.15)
        robot.add_link(name, ls.RigidBody.sphere(0.1, density=500), ls.JointFree(), placement=place)
    robot.add_contact("mutual", names, others=names)
    robot.add_contact("floor", names, ls.ShapePlane())
    return robot


CALLS = {
    "inverse_dynamics": lambda m, q, v: ls.inverse_dynamics(m, q, v, v),
    "forward_dynamics": lambda m, q, v: ls.forward_dynamics(m, q, v),
    "derivatives": lambda m, q, v: ls.inverse_dynamics_derivatives(m, q, v, v),
    "contact_forces": lambda m, q, v: ls.contact_forces(m, q, v),
    "statics": lambda m, q, v: ls.solve_statics(m),
    "bdf": lambda m, q, v: ls.simulate(m, 0.1),
    "newmark": lambda m, q, v: ls.simulate(m, 0.1, method="newmark", dt=0.01),
}


@pytest.mark.parametrize("name", CALLS)
def test_too_many_near_pairs_are_reported(name):
    """Where more pairs are near than there is room for, every function says so instead of leaving some out."""
    model = heap(near_pairs=3).build()
    with pytest.raises(ls.ModelError) as caught:
        CALLS[name](model, model.neutral(), np.zeros(model.nv))
    text = (
        "robot 'heap': near_pairs must hold the pairs that are near each other at once, and more of its 10 are (got 3)"
    )
    assert str(caught.value) == text


def test_bodies_that_move_into_each_other_on_the_way_to_rest():
    """A stack whose upper box leans over its edge has no equilibrium. The search, in which boxes come to lie in each
    other, says so, not that the buffers are too small for these trial states."""
    robot = ls.Robot("stack", near_pairs=64)
    for name in ("lower", "upper"):
        robot.add_link(name, ls.RigidBody.box(0.1, 0.1, 0.05, density=1000), ls.JointFree())
    robot.add_contact("floor", ls.EVERYTHING, ls.ShapePlane())
    robot.add_mutual_contacts()
    model = robot.build()
    q = model.neutral().reshape(2, 7)
    with pytest.raises(ls.ModelError, match="near_pairs must hold the pairs"):  # both boxes at one place
        ls.solve_statics(model, q0=q.ravel())
    q[:, 6], q[1, 4] = (0.025 - 1e-6, 0.075 - 2e-6), 0.06
    with pytest.raises(ls.ConvergenceError, match=r"no step .* reduces the error; start nearer an equilibrium"):
        ls.solve_statics(model, q0=q.ravel())


def drop(exponent):
    """A ball 0.2 m above a floor without damping."""
    robot = ls.Robot("drop")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointPrismatic((0, 0, 1)))
    robot.add_contact("floor", "ball", ls.ShapePlane(), stiffness=1e6, exponent=exponent)
    return robot.build()


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_bdf_stops_where_contact_begins(exponent):
    """A step ends at each touch, at the time of free fall and with the ball on the floor, however long steps are."""
    model = drop(exponent)
    motion = ls.simulate(model, 0.6, [0.25], method="bdf", rtol=1e-8, atol=1e-10)
    first = np.sqrt(2 * 0.2 / 9.81)
    k = int(np.argmin(np.abs(motion.t - first)))
    assert abs(motion.t[k] - first) < 1e-7
    assert abs(motion.q[k, 0] - 0.05) < 1e-9
    later = motion.t > first
    assert np.abs(np.diff(motion.t[k : k + 2])) < 1e-3  # and the motion goes on with small steps
    energy = 0.5 * motion.v[later, 0] ** 2 + 9.81 * (motion.q[later, 0] - 0.25)
    aloft = motion.q[later, 0] > 0.05
    assert np.abs(energy[aloft]).max() < 1e-5


WRONG = {
    "no such link": (dict(links="nobody", shape=ls.ShapePlane()), "contact 'c': links: must be one of the links"),
    "no links": (dict(links=[], shape=ls.ShapePlane()), "contact 'c': links: must name at least one link (got [])"),
    "no balls": (
        dict(links="bare", shape=ls.ShapePlane()),
        "must carry a Rod, a DeformableBody, or a RigidBody with collision shapes or balls (got 'bare')",
    ),
    "shape and others": (dict(links="ball", shape=ls.ShapePlane(), others="ball"), "needs a shape or other links"),
    "neither": (dict(links="ball"), "contact 'c': needs a shape or other links, and not both"),
    "no shape": (dict(links="ball", shape="plane"), "contact 'c': shape: must be a Shape (got 'plane')"),
    "soft": (dict(links="ball", shape=ls.ShapePlane(), stiffness=0.0), "contact 'c': stiffness: must be > 0 (got 0.0)"),
    "exponent": (dict(links="ball", shape=ls.ShapePlane(), exponent=0.5), "exponent: must be >= 1 (got 0.5)"),
    "slip": (dict(links="ball", shape=ls.ShapePlane(), slip_speed=0.0), "slip_speed: must be > 0 (got 0.0)"),
    "stick": (dict(links="ball", shape=ls.ShapePlane(), stick_stiffness=0.0), "stick_stiffness: must be > 0 (got 0.0)"),
    "numb": (dict(links="ball", shape=ls.ShapePlane(), stick_damping=-1.0), "stick_damping: must be >= 0 (got -1.0)"),
    "thin": (dict(links="ball", shape=ls.ShapeSphere(0.0)), "contact 'c' > shape: radius: must be > 0 (got 0.0)"),
    "long hole": (
        dict(links="ball", shape=ls.ShapeCylinder(1.0, 2.0, inside=True)),
        "must be None for a hole",
    ),
    "no place": (dict(links="ball", shape=ls.ShapePlane(), on="nobody"), "contact 'c': on: must be one of the links"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contacts(name):
    """A contact that makes no sense is refused with the entity, the rule and the value."""
    arguments, message = WRONG[name]
    robot = ls.Robot("r")
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=500), ls.JointFree())
    robot.add_link("bare", ls.RigidBody(1.0), ls.JointFree())
    robot.add_contact("c", **arguments)
    with pytest.raises(ls.ModelError) as caught:
        robot.build()
    assert message in str(caught.value)


def wrong_force(**arguments):
    """A ball with a force of the user's own."""
    robot = ls.Robot("r")
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=500), ls.JointFree())
    robot.add_force("f", "ball", **arguments)
    return robot


def test_wrong_forces():
    """A force that is no function is refused by build; one that returns no wrench, when it is called."""
    with pytest.raises(ls.ModelError, match=r"force 'f': function: must be a function \(got 3\)"):
        wrong_force(function=3).build()
    model = wrong_force(function=lambda t, g, eta: [1.0, 2.0]).build()
    with pytest.raises(ls.ShapeError, match=r"force 'f' at t=0: expected a finite wrench of shape \(6,\)"):
        ls.forward_dynamics(model, model.neutral(), np.zeros(6))


def test_wrong_fluids():
    """A fluid that makes no sense is refused with the rule and the value."""
    cases = {
        "fluid: density: must be > 0": {"density": 0.0},
        "fluid > default: drag_normal: must be >= 0": {"density": 1.0, "default": ls.Hydrodynamics(drag_normal=-1.0)},
        "fluid > link 'nobody': must be one of the links": {"density": 1.0, "links": {"nobody": None}},
        "fluid: current: must be a finite 3-vector": {"density": 1.0, "current": (1.0, 2.0)},
        "fluid > link 'odd': tail: needs a Rod": {"density": 1.0, "links": {"odd": ls.Hydrodynamics(tail=True)}},
        "fluid > link 'odd': volume: is needed for a body": {"density": 1.0, "links": {"odd": ls.Hydrodynamics()}},
    }
    for message, arguments in cases.items():
        robot = ls.Robot("r")
        robot.add_link("odd", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointFree())
        robot.set_fluid(**arguments)
        with pytest.raises(ls.ModelError) as caught:
            robot.build()
        assert message in str(caught.value)
