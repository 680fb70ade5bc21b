"""The search for near balls passes over blocks of pairs: its list must equal that of a search over every pair."""

import numpy as np
import pytest

import lissom as ls
from lissom.dynamics.contacts import ball_gaps
from lissom.model.surroundings import in_blocks

RADIUS = 0.004


def rope(links=4, room=10_000, **contact):
    """A chain of rods with many balls, that meet each other, a wall and the ground."""
    robot = ls.Robot("rope", near_pairs=room)
    basis, steel = ls.BasisLegendre(bending_y=1, bending_z=1), ls.Material(young=1e7, density=1000)
    parent = None
    for k in range(links):
        robot.add_link(f"r{k}", ls.Rod(0.2, ls.SectionCircle(RADIUS), basis, steel), parent=parent)
        parent = f"r{k}"
    every = list(robot.links)
    robot.add_contact("self", every, others=every, stiffness=1e4, per_interval=12, **contact)
    robot.add_contact("ground", every, ls.ShapePlane(), placement=lowered(0.12), stiffness=1e4, per_interval=12)
    robot.add_contact("wall", every[1:], ls.ShapeBox(0.1, 0.1, 0.1), placement=lowered(-0.1), stiffness=1e4)
    return robot


def lowered(depth):
    """A pose that far down."""
    g = np.eye(4)
    g[2, 3] = -depth
    return g


def every_gap(model, q):
    """Distance of each ball from its nearest possible contact, at most the margin, by a search over all pairs."""
    world, g = model.contacts, ls.forward_kinematics(model, q)
    g = np.concatenate([g, np.eye(4)[None]])
    centre = np.einsum("kij,kj->ki", g[world.ball_node][:, :3, :3], world.ball_position) + g[world.ball_node][:, :3, 3]
    gap = np.full(len(centre), world.margin)
    ball, obstacle = world.pair[:, 0], world.pair[:, 1]
    frame, size = (g[world.obstacle_node] @ world.obstacle_placement)[obstacle], world.obstacle_size[obstacle]
    y = np.einsum("kji,kj->ki", frame[:, :3, :3], centre[ball] - frame[:, :3, 3])
    out = np.abs(y) - size
    d = np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)
    shapes = [world.obstacle_shape[k] for k in obstacle]
    is_ball, is_plane = np.array([(x is None, isinstance(x, ls.ShapePlane)) for x in shapes]).T
    d = np.where(is_ball, np.linalg.norm(y, axis=1) - size[:, 0], np.where(is_plane, y[:, 2], d))
    np.minimum.at(gap, ball, d - world.ball_radius[ball])
    return gap


@pytest.fixture(scope="module")
def model():
    """The rope of four rods."""
    return rope().build()


def test_what_is_listed_is_what_is_near(model):
    """In tangled shapes each ball's smallest gap is that of all pairs, whatever shape was looked at before."""
    rng, touched = np.random.default_rng(3), 0
    for _ in range(8):
        q = rng.normal(scale=9.0, size=model.nq)
        expected = every_gap(model, q)
        assert np.abs(ball_gaps(model, q) - expected).max() < 1e-12
        touched += np.count_nonzero(expected < 0.0)
    assert touched > 20


def test_gaps_need_room_for_what_is_near():
    """Where more is near than there is room for, gaps are refused, not taken from the pairs that were listed."""
    with pytest.raises(ls.ModelError, match="near_pairs must hold the pairs that are near each other at once"):
        ball_gaps(rope(room=100).build(), np.zeros(16))


def test_every_pair_is_in_one_block(model):
    """Blocks follow each other, hold all pairs, and each its own clusters and law only."""
    world = model.contacts
    cluster = np.searchsorted(world.cluster_start, np.arange(len(world.ball_node)), side="right") - 1
    assert world.block[0, 2] == 0 and world.block[-1, 3] == len(world.pair)
    assert (world.block[1:, 2] == world.block[:-1, 3]).all() and (world.block[:, 2] < world.block[:, 3]).all()
    for mine, other, first, end in world.block:
        rows = world.pair[first:end]
        assert (cluster[rows[:, 0]] == mine).all() and len(np.unique(rows[:, 2])) == 1
        assert other >= 0 or len(np.unique(rows[:, 1])) == 1
    links = np.array(world.ball_link)
    assert all(len(np.unique(links[cluster == c])) == 1 for c in range(cluster.max() + 1))
    assert np.bincount(cluster).max() == 16


def test_neighbours_never_meet(model):
    """Balls closer along a link and its parent than 1.2 times their radii do not meet; others do, once."""
    world = model.contacts
    along = {name: k * 0.2 for k, name in enumerate(model.links.names)}
    at = np.array([along[link] + 0.2 * s for link, s in zip(world.ball_link, world.ball_s)])
    ours = world.pair[world.pair[:, 2] == 0]
    mates = np.array([along[world.obstacle_link[o]] + 0.2 * world.obstacle_s[o] for o in ours[:, 1]])
    radii = world.ball_radius[ours[:, 0]] + world.obstacle_size[ours[:, 1], 0]
    assert (np.abs(at[ours[:, 0]] - mates) > radii).all() and (at[ours[:, 0]] < mates).all()
    ours_at, mates_at = np.unique(at.round(9)), np.unique(mates.round(9))
    found = set(zip(at[ours[:, 0]].round(9), mates.round(9)))
    wanted = {(a, b) for a in ours_at for b in mates_at if b - a > 1.3 * 2.0 * RADIUS}
    assert wanted <= found and len(wanted) > 1000


def test_no_pairs_make_no_blocks():
    """Where nothing meets there is no block."""
    pairs, blocks, _ = in_blocks(np.zeros((0, 3), np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert pairs.shape == (0, 3) and blocks.shape == (0, 4)


def test_bodies_on_grids_are_near_only_where_they_are():
    """A hull on a moving link is listed where balls are near it: with room for one pair, one pair is listed, and none
    after the hull has moved away."""
    robot = ls.Robot("two", gravity=(0, 0, 0), near_pairs=1)
    robot.add_link("hull", ls.RigidBody.sphere(0.1, density=1000), ls.JointFree())
    spots = [(0.0, 0.0, z, 0.01) for z in (0.0, 1.0, 2.0)]
    robot.add_link("balls", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0), balls=spots), ls.JointFree())
    corners = 0.05 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])
    robot.add_contact("touch", "balls", ls.ShapeHull(corners, 16), on="hull", stiffness=1e4)
    model = robot.build()
    assert not model.contacts.obstacle_roams.any()
    q = model.neutral()
    for x, count in ((0.0, 1), (0.08, 0), (0.5, 0), (0.0, 1)):
        q[4], q[6] = x, 1.0
        assert len(ls.contact_forces(model, q).depth) == count
