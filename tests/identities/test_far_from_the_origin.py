"""Where a robot stands changes nothing: every algorithm keeps its digits ten kilometres from the world's origin."""

from dataclasses import replace

import numpy as np
import pytest
from robots import build, random_state, random_tree, seven_revolute_arm
from touching_robots import hybrid, rod, state

import lissom as ls

FAR = np.array([6000.0, -8000.0, 500.0])  # [m]
TOLERANCE = 1e-10


def moved_by(placement, offset):
    """A placement in the world, or None, moved by an offset."""
    g = np.eye(4) if placement is None else np.array(placement, dtype=float)
    g[:3, 3] += offset
    return g


def elsewhere(robot, offset=FAR):
    """The same robot with everything that is placed in the world moved by an offset."""
    for name, link in robot.links.items():
        if link.parent is None:
            robot.links[name] = replace(link, placement=moved_by(link.placement, offset))
    for name, loop in robot.loops.items():
        if loop.link_b is None:
            robot.loops[name] = replace(loop, placement_b=moved_by(loop.placement_b, offset))
    for name, contact in robot.contacts.items():
        if contact.shape is not None and contact.on is None:
            robot.contacts[name] = replace(contact, placement=moved_by(contact.placement, offset))
    for name, tendon in robot.actuators.items():
        if isinstance(path := getattr(tendon, "path", None), tuple):
            robot.actuators[name] = replace(tendon, path=tuple(_moved_item(item, offset) for item in path))
    return robot


def _moved_item(item, offset):
    held = isinstance(item, ls.PathPoint) and item.link is None
    return replace(item, position=np.asarray(item.position) + offset) if held else item


def answers(model, q, v, a, u):
    """Results of the algorithms at one state, by name."""
    names = ("dtau_dq", "dtau_dv", "dtau_da", "da_dq", "da_dv", "da_du")
    matrices = (*ls.inverse_dynamics_derivatives(model, q, v, a), *ls.forward_dynamics_derivatives(model, q, v, u))
    return dict(zip(names, matrices)) | {
        "tau": ls.inverse_dynamics(model, q, v, a),
        "a": ls.forward_dynamics(model, q, v, u),
        "M": ls.mass_matrix(model, q),
        "C": ls.coriolis_matrix(model, q, v),
        "B": ls.actuation_matrix(model, q),
        "kinetic": ls.energy(model, q, v).kinetic,
        "twist": ls.frame_twist(model, q, v, model.links.names[-1]),
        "J": ls.frame_jacobian(model, q, model.links.names[-1]),
        "J inside": ls.frame_jacobian(model, q, model.links.names[-1], s=0.03),
        "gap": ls.loop_residual(model, q),
    }


def loss(near, far, x):
    """Largest relative difference of what two models say of one state."""
    here, there = answers(near, *x), answers(far, *x)
    errors = {}
    for name, value in here.items():
        size = np.abs(value).max(initial=1e-300) if name != "gap" else 1.0
        errors[name] = float(np.abs(there[name] - value).max(initial=0.0) / size)
    return errors


def hinged(joint):
    """A rod and a hinged box on a joint at the root."""
    robot = ls.Robot("hinged")
    robot.add_link("foot", ls.RigidBody.box(0.1, 0.05, 0.04, density=900), joint)
    robot.add_link("rod", rod(), parent="foot")
    robot.add_link("tip", ls.RigidBody.box(0.03, 0.02, 0.01, density=900), ls.JointRevolute((0, 1, 0)), parent="rod")
    robot.add_tendon("guy", path=[ls.PathPoint(None, position=(0.1, 0.1, -0.2)), ls.PathPoint("tip")])
    return robot


ROOTS = {
    "fixed": ls.JointFixed(),
    "revolute": ls.JointRevolute((0, 1, 1)),
    "universal": ls.JointUniversal((0, 1, 0), (0, 0, 1)),
    "prismatic": ls.JointPrismatic((1, 0, 0)),
    "helical": ls.JointHelical((0, 0, 1), 0.2),
    "planar": ls.JointPlanar((0, 0, 1)),
    "spherical": ls.JointSpherical(),
    "free": ls.JointFree(),
}


@pytest.mark.parametrize("root", ROOTS)
def test_every_joint_at_the_root(root):
    """A robot on any joint, a tendon tied to the ground beside it."""
    near, far = (make(hinged(ROOTS[root])).build() for make in (lambda r: r, elsewhere))
    errors = loss(near, far, (*state(near, 3), np.ones(1)))
    assert max(errors.values()) < TOLERANCE, errors


@pytest.mark.parametrize("root", ["revolute", "planar", "free"])
def test_loops_and_steps(root):
    """Forward dynamics and implicit steps of a robot whose tip a loop holds to the ground."""
    ends = []
    for make in (lambda r: r, elsewhere):
        robot = hinged(ROOTS[root])
        hold = ls.frame_pose(robot.build(), robot.build().neutral(), "tip")
        robot.add_loop("hold", "tip", placement_b=hold, joint=ls.JointSpherical())
        model = make(robot).build()
        motion = ls.simulate(model, 0.02, u=[2.0], method="generalized_alpha", dt=2e-3)
        ends += [motion.q[-1], motion.a[-1]]
    for near, far in zip(ends[:2], ends[2:]):
        assert np.abs(far - near).max() < 1e-9 * np.abs(near).max()


@pytest.mark.parametrize("root", ["planar", "prismatic", "free"])
def test_a_root_that_has_slid_far(root):
    """A robot that its own joint has carried away from where it is placed."""
    model = hinged(ROOTS[root])
    del model.actuators["guy"]
    model = model.build()
    q, v, a = state(model, 4)
    away = q.copy()
    away[{"planar": slice(0, 2), "prismatic": slice(0, 1), "free": slice(4, 7)}[root]] += 1e4
    for name, value in answers(model, q, v, a, np.zeros(0)).items():
        there = answers(model, away, v, a, np.zeros(0))[name]
        assert np.abs(there - value).max(initial=0.0) <= TOLERANCE * np.abs(value).max(initial=1.0), name


@pytest.mark.parametrize("seed", [1, 7, 23, 38])
def test_random_trees(seed):
    """Random hybrid trees with tendons, chambers, springs and loads."""
    near, far = build(random_tree(seed)), build(elsewhere(random_tree(seed)))
    errors = loss(near, far, random_state(random_tree(seed), seed))
    assert max(errors.values()) < TOLERANCE, errors


def test_seven_revolute_joints():
    """The mass matrix of a 7R arm."""
    near, far = seven_revolute_arm().build(), elsewhere(seven_revolute_arm()).build()
    q = np.linspace(-2.0, 2.0, 7)
    assert np.abs(ls.mass_matrix(far, q) / ls.mass_matrix(near, q) - 1.0).max() < TOLERANCE


def wet_and_touching():
    """The hybrid robot in a current, its rod pressed into a wall, its other rod held by a loop to the ground."""
    robot = hybrid("fixed")
    robot.set_fluid(1000.0, current=(0.3, -0.2, 0.1))
    wall = np.eye(4)
    wall[2, 3] = -0.03
    robot.add_contact("wall", ["a", "ball"], ls.ShapePlane(), placement=wall, stiffness=1e3, friction=0.4, radius=0.04)
    hold = np.eye(4)
    hold[:3, 3] = 0.45, -0.05, 0.02
    robot.add_loop("hold", "b", placement_b=hold, joint=ls.JointSpherical())
    return robot


def test_water_contacts_and_loops():
    """A fluid with a current, a wall and a loop to the ground."""
    near, far = wet_and_touching().build(), elsewhere(wet_and_touching()).build()
    x = *state(near, 5, bend=0.1), np.zeros(0)
    assert len(ls.contact_forces(near, x[0]).depth) > 0
    errors = loss(near, far, x)
    assert max(errors.values()) < TOLERANCE, errors


def test_two_robots_far_from_each_other():
    """Robots that nothing joins: each keeps its own digits wherever the other is."""

    def pair(offset):
        robot = ls.Robot("two")
        robot.add_link("one", rod(), ls.JointRevolute((0, 1, 0)))
        robot.add_link("two", rod(), ls.JointFree(), placement=moved_by(None, offset))
        return robot.build()

    near, far = pair(np.array([1.0, 0.0, 0.0])), pair(FAR)
    errors = loss(near, far, (*state(near, 6), np.zeros(0)))
    assert max(errors.values()) < TOLERANCE, errors
