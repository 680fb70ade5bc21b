"""Contacts of all links with each other: which pairs there are, and that they touch where they meet."""

import numpy as np
import pytest

import lissom as ls

STUFF = ls.Material(young=1e6, poisson=0.4, density=1000.0)


def moved(*x):
    """A pose that is moved by x."""
    g = np.eye(4)
    g[:3, 3] = x
    return g


def chain():
    """Four boxes on hinges, the last with a fixed plate, a massless link between the second and the third; a ball."""
    robot = ls.Robot("chain")
    for k in range(4):
        parent = None if k == 0 else "between" if k == 2 else f"box {k - 1}"
        if k == 2:
            robot.add_link("between", None, ls.JointRevolute((0, 0, 1)), "box 1", placement=moved(0.1, 0, 0))
        place = None if k in (0, 2) else moved(0.1, 0, 0)
        body = ls.RigidBody.box(0.06, 0.04, 0.04, material=STUFF)
        robot.add_link(f"box {k}", body, ls.JointRevolute((0, 1, 0)), parent, placement=place)
    robot.add_link(
        "plate", ls.RigidBody.box(0.02, 0.06, 0.06, material=STUFF), parent="box 3", placement=moved(0.05, 0, 0)
    )
    robot.add_link("ball", ls.RigidBody.sphere(0.03, material=STUFF), ls.JointFree())
    return robot


def touched_by(found):
    """The later links that touch each link."""
    return {contact.others: set(contact.links) for contact in found.contacts}


def test_neighbours_are_left_out():
    """Links on both sides of one joint, of fixed ones and of massless links do not touch; a free body touches all."""
    robot = chain()
    found = robot.add_mutual_contacts()
    pairs = {frozenset(pair) for pair in found.neighbours}
    near = [("box 0", "box 1"), ("box 1", "box 2"), ("box 2", "box 3"), ("box 3", "plate"), ("box 2", "plate")]
    assert pairs == {frozenset(pair) for pair in near} and found.overlapping == ()
    assert touched_by(found) == {
        "box 0": {"box 2", "box 3", "plate", "ball"},
        "box 1": {"box 3", "plate", "ball"},
        "box 2": {"ball"},
        "box 3": {"ball"},
        "plate": {"ball"},
    }
    assert list(robot.contacts) == [f"mutual {link}" for link in touched_by(found)]
    assert len(found.pairs) == 10 and found.left_out == (("between", "no body"),)


def test_links_that_overlap_are_left_out():
    """Boxes that overlap at the neutral configuration do not touch, unless a free joint parts them."""
    robot = ls.Robot("stack")
    for k in range(3):
        joint = ls.JointRevolute((0, 1, 0))
        parent = None if k == 0 else f"box {k - 1}"
        robot.add_link(f"box {k}", ls.RigidBody.box(0.1, *2 * [0.04 - 0.01 * (k == 2)], material=STUFF), joint, parent,
                       placement=moved(0.03, 0, 0.001))  # fmt: skip
    found = robot.add_mutual_contacts("own", ["box 0", "box 2"])
    assert found.overlapping == (("box 0", "box 2"),) and found.contacts == () == tuple(robot.contacts)
    apart = ls.Robot("loose")
    for k in range(2):
        apart.add_link(f"ball {k}", ls.RigidBody.sphere(0.1, material=STUFF), ls.JointFree())
    found = apart.add_mutual_contacts()
    assert found.overlapping == () and touched_by(found) == {"ball 0": {"ball 1"}}


def test_rods_touch_shapes_rods_and_themselves():
    """Bodies without shapes are touched by their balls, once for each pair, and rods touch themselves."""
    robot = ls.Robot("soft")
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), STUFF)
    for k in range(2):
        robot.add_link(f"rod {k}", rod, placement=moved(0, 0.1 * k, 0))
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, material=STUFF), ls.JointFree())
    robot.add_link("tip", ls.RigidBody.sphere(0.01, material=STUFF), parent="rod 0")
    found = robot.add_mutual_contacts(friction=0.3)
    assert {k: sorted(v) for k, v in touched_by(found).items()} == {
        "rod 0": ["box", "rod 0", "rod 1"], "rod 1": ["box", "rod 1", "tip"], "box": ["tip"],
    }  # fmt: skip
    assert all(contact.friction == 0.3 for contact in found.contacts)


def test_a_shape_that_comes_is_seen():
    """A box that moves towards a ball at rest pushes it away: lists of near pairs follow shapes that move. Fixed steps
    keep the momentum; in the two at the ends of a contact, they may lose 1 % of the kinetic energy."""
    robot = ls.Robot("hit", gravity=(0, 0, 0))
    robot.add_link("box", ls.RigidBody.box(0.2, 0.2, 0.2, density=1000), ls.JointPrismatic((1, 0, 0)))
    robot.add_link(
        "ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointPrismatic((1, 0, 0)), placement=moved(1, 0, 0)
    )
    robot.add_mutual_contacts(stiffness=1e6)
    model = robot.build()
    assert not model.contacts.obstacle_roams.any()
    mass = np.array([8.0, 4 / 3 * np.pi * 0.05**3 * 1000])
    expected = np.array([mass[0] - mass[1], 2 * mass[0]]) / mass.sum()
    motion = ls.simulate(model, 1.5, v0=[1.0, 0.0])
    np.testing.assert_allclose(motion.v[-1], expected, rtol=2e-3)
    v = ls.simulate(model, 1.5, v0=[1.0, 0.0], method="generalized_alpha", dt=2e-3).v[-1]
    assert mass @ v == pytest.approx(8.0, rel=1e-9) and v[1] - v[0] > 0.8
    assert 0.0 <= 1.0 - mass @ v**2 / 8.0 < 0.02


def test_a_mesh_or_a_function_that_comes_is_seen():
    """Shapes on grids that move are listed where balls are near them, wherever their frame is, and collide with
    them."""
    mesh, low, high = ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.1, 0.1)), [0.15, -0.15, -0.15], [0.45, 0.15, 0.15]
    vertices = np.asarray(mesh.vertices) + np.array([0.3, 0.0, 0.0])
    shapes = {
        "mesh": ls.ShapeMesh(ls.Mesh(vertices=vertices, triangles=mesh.triangles), 12),
        "function": ls.ShapeFunction("sqrt((x - 0.3)**2 + y**2 + z**2) - 0.1", low, high),
    }
    for shape in shapes.values():
        robot = ls.Robot("hit", gravity=(0, 0, 0))
        robot.add_link("box", ls.RigidBody.box(0.2, 0.2, 0.2, density=1000), ls.JointPrismatic((1, 0, 0)))
        body = ls.RigidBody.sphere(0.05, density=1000)
        robot.add_link("ball", body, ls.JointPrismatic((1, 0, 0)), placement=moved(1, 0, 0))
        robot.add_contact("hit", "ball", shape, on="box", stiffness=1e6)
        model = robot.build()
        assert not model.contacts.obstacle_roams.any()
        motion = ls.simulate(model, 1.0, v0=[1.0, 0.0])
        box, ball = 8.0, 4 / 3 * np.pi * 0.05**3 * 1000
        np.testing.assert_allclose(motion.v[-1], [(box - ball) / (box + ball), 2 * box / (box + ball)], rtol=2e-3)


WRONG = {
    "name": ({"links": ["box 0", "bux 2"]}, "mutual contacts 'mutual': links: must be one of the links"),
    "twice": ({"links": ["box 0", "box 0"]}, "links: must be a list of names of different links"),
    "text": ({"links": "box 0"}, "links: must be a list of names of different links (got 'box 0')"),
    "units": ({"surface": True, "stiffness": 1e7}, "mutual contacts 'mutual': stiffness: must be None with a surface"),
    "bare": ({"links": ["box 0", "between"]}, "must carry a body with collision shapes or balls (got 'between')"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_links(name):
    """Links that cannot touch are refused by name."""
    given, message = WRONG[name]
    with pytest.raises(ls.ModelError) as caught:
        chain().add_mutual_contacts(**given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "body", [ls.RigidBody.sphere(0.05, density=1000.0), ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3)]
)
def test_one_law_for_links_that_are_alike(body, monkeypatch):
    """A law is chosen once for a contact with links that are alike, not for each pair of links, and free bodies need no
    model to find those that overlap."""
    from lissom.model import surroundings

    chosen, built, choose, build = [], [], surroundings.chosen_law, ls.Robot.build
    monkeypatch.setattr(surroundings, "chosen_law", lambda *given: chosen.append(1) or choose(*given))
    monkeypatch.setattr(ls.Robot, "build", lambda robot: built.append(1) or build(robot))
    robot = ls.Robot("heap")
    for k in range(12):
        place = np.eye(4)
        place[0, 3] = 0.2 * k
        robot.add_link(f"b{k}", body, ls.JointFree(), placement=place)
    contacts = robot.add_mutual_contacts().contacts
    assert not built
    model = robot.build()
    assert len(chosen) == len(contacts)
    assert len(model.contacts.law) == len(contacts)
    np.testing.assert_array_equal(model.contacts.law, model.contacts.law[:1].repeat(len(model.contacts.law), axis=0))
