"""Small robots at the edges of the tables, against the slow model: clamped bases, empty links, gaps in a basis."""

import numpy as np
import pytest
from reference.reference_model import ReferenceModel
from robots import build, random_placement, random_state

import lissom as ls

TOLERANCE = 1e-10  # both sides lose about 1e-13 to rounding
MATERIAL = ls.Material(young=1e6, density=1e3, viscosity=1e3)


def rod(basis=None, reference_strain=None, gauss_points=4):
    """A rod of 0.4 m, bending about y unless told otherwise."""
    basis = ls.BasisLegendre(bending_y=1) if basis is None else basis
    return ls.Rod(0.4, ls.SectionCircle(0.02), basis, MATERIAL, reference_strain, gauss_points)


def loads_at_clamped_base():
    """A load where nothing can move does nothing, next to one at the tip that does."""
    robot = ls.Robot("clamped base")
    robot.add_link("rod", rod())
    robot.add_point_load("tip", "rod", force=(1, 0, 0))
    robot.add_point_load("base", "rod", s=0.0, force=(1, 2, 3))
    return robot


def body_loads_on_placed_frames():
    """Follower loads on frames that are turned against the node that carries them."""
    rng = np.random.default_rng(1)
    robot = ls.Robot("placed frames")
    robot.add_link(
        "arm", ls.RigidBody.box(0.1, 0.2, 0.1, density=500), ls.JointUniversal(), placement=random_placement(rng)
    )
    robot.add_link("frame", None, parent="arm", placement=random_placement(rng))
    robot.add_link("rod", rod(), parent="frame", placement=random_placement(rng))
    robot.add_point_load("on frame", "frame", force=(1, 2, 3), moment=(0.1, 0, 0.2), frame="body", position=(0, 0.1, 0))
    robot.add_point_load("on base", "rod", s=0.0, force=(-1, 2, 3), frame="body")
    return robot


def basis_with_gaps():
    """Columns that couple strains, so that the modes of a strain are not neighbours."""
    robot = ls.Robot("gaps")
    columns = [[1, 0, 0, 0, 0, 0.1], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0.1, 0, 0], [2, 0, 0, 0, 0.1, 0]]
    basis = ls.BasisCustom(lambda s: np.array(columns).T * [1, s, 1 - s, s * s], order=2)
    robot.add_link("rod", rod(basis), ls.JointSpherical())
    robot.add_tendon("tendon", "rod", (0.01, 0.02))
    return robot


def paths_from_the_world():
    """A tendon that starts at a point of the world and at a clamped base, and ends on a rigid body."""
    robot = ls.Robot("world paths")
    robot.add_link("rod", rod())
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=800), parent="rod", at=0.6)
    points = [ls.PathPoint(None, (0.1, 0.2, 0.3)), ls.PathPoint("rod", (0, 0.05, 0), 0.0)]
    robot.add_tendon("outside", path=[*points, ls.PathPoint("ball", (0, 0, 0.03))])
    robot.add_tendon("inside", path=[points[0], ls.PathRod("rod", (0.0, 0.01), 0.2, 0.9), points[1]])
    return robot


def mass_at_rest():
    """Links clamped to the world, and mass on one of them, beside a joint that moves."""
    robot = ls.Robot("mass at rest", gravity=(1, 2, -9))
    robot.add_link("post", ls.RigidBody(3.0, (0, 0, 0.1), (0.1, 0.1, 0.1)))
    robot.add_link("slide", ls.RigidBody(1.0, (0.1, 0, 0)), ls.JointPrismatic((1, 1, 0)), parent="post")
    robot.add_point_load("on post", "post", force=(5, 5, 5), moment=(1, 0, 0), frame="body")
    return robot


def wrenches_everywhere():
    """Controlled wrenches on turned frames, inside a rod, at a clamped base, on a body: some all six, some coupled."""
    rng = np.random.default_rng(3)
    robot = body_loads_on_placed_frames()
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=500), ls.JointSpherical(), parent="rod", at=0.6)
    robot.add_link("post", rod())
    robot.add_wrench_input("six", "frame", position=(0.1, 0, 0.2))
    robot.add_wrench_input("two", "rod", s=0.37, frame="world", directions=rng.normal(size=(6, 2)))
    robot.add_wrench_input("none", "post", s=0.0, frame="world")
    robot.add_wrench_input("in the post", "post", s=0.5, directions=rng.normal(size=6), position=(0, 0.1, 0))
    robot.add_wrench_input("one", "ball", frame="world", directions=rng.normal(size=6), position=(0.1, 0.2, 0.3))
    robot.couple_inputs("pair", {"one": 0.5, "in the post": -2.0})
    return robot


def bodies_at_one_frame():
    """A link without a joint on another without one: bodies that share a moving node."""
    robot = ls.Robot("shared")
    robot.add_link("free", ls.RigidBody(1.0, (0, 0, 0.1), (0.1, 0.1, 0.1)), ls.JointFree(stiffness=2.0))
    robot.add_link("one", ls.RigidBody(0.5, (0.2, 0, 0)), parent="free")
    robot.add_link(
        "two", ls.RigidBody(0.4, (0, 0.2, 0)), parent="one", placement=random_placement(np.random.default_rng(2))
    )
    return robot


ROBOTS = (
    loads_at_clamped_base,
    body_loads_on_placed_frames,
    basis_with_gaps,
    paths_from_the_world,
    mass_at_rest,
    wrenches_everywhere,
    bodies_at_one_frame,
)


def close(value, expected):
    """Agreement relative to the largest entry."""
    return np.abs(value - expected).max(initial=0.0) <= TOLERANCE * max(np.abs(expected).max(initial=0.0), 1e-3)


@pytest.mark.parametrize("make", ROBOTS)
def test_special_robot(make):
    """Forces, matrices, energies and paths agree."""
    robot = make()
    model, reference, (q, v, a, _) = build(robot), ReferenceModel(robot), random_state(robot, 5)
    assert close(ls.inverse_dynamics(model, q, v, a), reference.inverse_dynamics(q, v, a))
    assert close(ls.external_force(model, q, v), reference.external_force(q, v))
    assert close(ls.mass_matrix(model, q), reference.mass_matrix(q))
    assert close(ls.coriolis_matrix(model, q, v), reference.coriolis_matrix(q, v))
    assert close(ls.actuation_matrix(model, q), reference.actuation_matrix(q))
    assert close(ls.path_lengths(model, q), reference.path_lengths(q))
    assert close(ls.energy(model, q, v).total, reference.energy(q, v).total)
    for name in robot.links:
        for s in (0.0, 1.0):
            assert close(ls.frame_pose(model, q, name, s=s), reference.frame_pose(q, name, s))
            assert close(ls.frame_jacobian(model, q, name, s=s), reference.frame_jacobian(q, name, s))


def test_free_base_far_away():
    """A free base a million metres away feels no more than the rounding of its position, and has the same dynamics."""
    robot = bodies_at_one_frame()
    robot.links["free"] = ls.Link("free", robot.links["free"].body, ls.JointFree())
    model, (q, v, a, _) = build(robot), random_state(robot, 5)
    far = q.copy()
    far[4:7] += 1e6
    assert close(ls.inverse_dynamics(model, far, v, a), ls.inverse_dynamics(model, q, v, a))
    assert close(ls.mass_matrix(model, far), ls.mass_matrix(model, q))
