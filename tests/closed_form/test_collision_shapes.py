"""Bodies of files and of Python touch by their collision shapes: all pairs rest on each other, from both sides."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

SOFT = ls.Material(young=1e7, poisson=0.3, density=1000.0)
DEEP = 1e-3  # within which pairs of files touch [m]
INERTIA = '<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>'
ON_TOP = {  # of URDF, of MJCF, and half its height
    "sphere": ('<sphere radius=".1"/>', 'type="sphere" size=".1"', 0.1),
    "cylinder": ('<cylinder radius=".1" length=".2"/>', 'type="cylinder" size=".1 .1"', 0.1),
    "capsule": ('<capsule radius=".1" length=".2"/>', 'type="capsule" size=".1 .1"', 0.2),
    "box": ('<box size=".2 .2 .2"/>', 'type="box" size=".1 .1 .1"', 0.1),
    "mesh": ('<mesh filename="ball.stl"/>', 'type="mesh" mesh="ball"', 0.1),
}
TABLES = {
    "box": ('<box size="1 1 .2"/>', 'type="box" size=".5 .5 .1"'),
    "mesh": ('<mesh filename="table.stl"/>', 'type="mesh" mesh="table"'),
    "cylinder": ('<cylinder radius=".5" length=".2"/>', 'type="cylinder" size=".5 .1"'),
}


def moved(p, *turns):
    """A pose at p, turned one after another about axes (0 to 2) by angles."""
    g = np.eye(4)
    for axis, angle in turns:
        twist = np.zeros(6)
        twist[axis] = angle
        g = g @ ls.lie.se3_exp(twist)
    g[:3, 3] = p
    return g


def urdf(folder, name, geometry, base=None, visual=None):
    """A URDF file of one link with a collision geometry."""
    drawn = f"<visual><geometry>{visual}</geometry></visual>" if visual else ""
    touched = f"<collision><geometry>{geometry}</geometry></collision>" if geometry else ""
    path = folder / f"{name}.urdf"
    path.write_text(f'<robot name="{name}"><link name="{name}">{INERTIA}{drawn}{touched}</link></robot>')
    return ls.load_urdf(path, base=base)


def mjcf(folder, bodies, more=""):
    """An MJCF file."""
    meshes = "".join(f'<mesh name="{name}" file="{name}.stl"/>' for name in ("ball", "table") if name in bodies)
    path = folder / "robot.xml"
    path.write_text(f"<mujoco><asset>{meshes}</asset><worldbody>{bodies}</worldbody>{more}</mujoco>")
    return ls.load_mjcf(path)


def two_links(folder, kind, table, top):
    """A table of a file, and a free body "b" of a file, whose position is the last part of q."""
    (of_urdf, of_mjcf), (b_urdf, b_mjcf, _) = TABLES[table], ON_TOP[top]
    if kind == "MJCF":
        return mjcf(folder, f'<body name="a"><geom {of_mjcf} mass="1"/></body>'
                            f'<body name="b"><freejoint/><geom {b_mjcf} mass="1"/></body>')  # fmt: skip
    robot = urdf(folder, "a", of_urdf)
    robot.attach(urdf(folder, "b", b_urdf, ls.JointFree()), None)
    return robot


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Meshes of a ball and of a table."""
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path_factory.mktemp("files")
    trimesh.creation.icosphere(3, 0.1).export(path / "ball.stl")
    trimesh.creation.box((1, 1, 0.2)).export(path / "table.stl")
    return path


@pytest.mark.parametrize("kind", ["URDF", "MJCF"])
@pytest.mark.parametrize("table", TABLES)
def test_bodies_of_files_rest_on_tables_of_files(folder, kind, table):
    """Sphere, cylinder, capsule, box and mesh touch a table between 1 mm above and 1 mm below its top, and are pushed
    up."""
    for top, (_, _, half) in ON_TOP.items():
        robot = two_links(folder, kind, table, top)
        assert robot.add_mutual_contacts(friction=0.0).pairs == (("a", "b"),)
        model = robot.build()
        q = model.neutral()
        q[-3:] = 0.03, 0.02, 0.1 + half + DEEP
        assert not len(ls.contact_forces(model, q).depth)
        q[-1] = 0.1 + half - DEEP
        found = ls.contact_forces(model, q)
        up = np.where(np.array(found.link) == "b", 1.0, -1.0) @ found.force
        assert up[2] > 10.0 and np.abs(up[:2]).max() < 0.05 * up[2], (top, up)


@pytest.mark.parametrize("kind", ["URDF", "MJCF", "Python"])
def test_a_cube_rests_on_an_equal_cube(tmp_path, kind):
    """A cube of half a metre that falls exactly onto another one comes to rest half a metre above it, wherever it is
    from."""
    if kind == "URDF":
        robot = urdf(tmp_path, "a", '<box size=".5 .5 .5"/>')
        robot.attach(urdf(tmp_path, "b", '<box size=".5 .5 .5"/>', ls.JointFree()), None)
    elif kind == "MJCF":
        geom = '<geom type="box" size=".25 .25 .25" mass="1"/>'
        robot = mjcf(tmp_path, f'<body name="a">{geom}</body><body name="b"><freejoint/>{geom}</body>')
    else:
        robot = ls.Robot("cubes")
        for name, joint in (("a", None), ("b", ls.JointFree())):
            robot.add_link(name, ls.RigidBody.box(0.5, 0.5, 0.5, density=8.0), joint)
    robot.add_mutual_contacts()
    model = robot.build()
    q = model.neutral()
    q[-3:] = 0.0, 0.0, 0.505
    motion = ls.simulate(model, 0.3, q)
    assert ls.frame_pose(model, motion.q[-1], "b")[2, 3] == pytest.approx(0.5, abs=1e-5)
    assert np.abs(motion.v[-1]).max() < 1e-3


def body(shape):
    """A rigid body of one shape."""
    return ls.RigidBody(1.0, inertia=(1e-2,) * 3, shapes=(ls.PlacedShape(shape),), material=SOFT)


def pressed(a, b, g_b, g_a=None, **contact):
    """The force on a free body b at a pose, from a body a that is fixed, and the contacts."""
    robot = ls.Robot("two", gravity=(0, 0, 0))
    robot.add_link("a", a, placement=g_a)
    robot.add_link("b", b, ls.JointFree(), placement=g_b)
    robot.add_contact("touch", "b", others="a", friction=0.0, **contact)
    model = robot.build()
    found = ls.contact_forces(model, model.neutral())
    on_b = np.where(np.array(found.link) == "b", 1.0, -1.0)
    return (on_b @ found.force if len(on_b) else np.zeros(3)), found


BOX, BAR = ls.RigidBody.box(0.2, 0.2, 0.2, material=SOFT), ls.RigidBody.box(0.2, 0.02, 0.02, material=SOFT)
SLAT = ls.RigidBody.box(1.0, 0.02, 0.02, material=SOFT)
TURN = (2, np.pi / 4)
D = 1e-4  # depth of the pairs [m]
FLAT = {
    "equal boxes": (BOX, BOX, moved((0, 0, 0.2 - D))),
    "turned by 45 degrees": (BOX, BOX, moved((0, 0, 0.2 - D), TURN)),
    "bars that cross": (BAR, BAR, moved((0.003, 0.002, 0.02 - D), (2, np.pi / 2))),
    "long slats that cross": (SLAT, SLAT, moved((0.313, 0.202, 0.02 - D), (2, 1.2))),
    "box on a narrow post": (ls.RigidBody.box(0.03, 0.03, 0.3, material=SOFT), BOX, moved((0.02, 0.01, 0.25 - D))),
    "corner": (BOX, BOX, moved((0.01, 0.01, 0.1 + 0.1 * np.sqrt(3) - D), (1, np.arctan(np.sqrt(0.5))), (0, np.pi / 4))),
    "box on a sphere": (body(ls.ShapeSphere(0.05)), BOX, moved((0.02, 0, 0.15 - D))),
    "box on a cylinder": (body(ls.ShapeCylinder(0.05, 0.3)), BOX, moved((0.02, 0, 0.15 - D))),
    "box on an infinite cylinder": (body(ls.ShapeCylinder(0.05)), BOX, moved((0.02, 0, 0.15 - D))),
    "box on the tip of a cone": (body(ls.ShapeCone(0.05, 0.1, (0, 0, 1))), BOX, moved((0.02, 0, 0.15 - D))),
    "box on an ellipsoid": (body(ls.ShapeEllipsoid(0.05, 0.06, 0.03)), BOX, moved((0, 0, 0.13 - D))),
    "box on a torus": (body(ls.ShapeTorus(0.05, 0.02, (0, 0, 1))), BOX, moved((0.02, 0, 0.12 - D))),
    "cone on its side": (BOX, body(ls.ShapeCone(0.02, 0.1)), moved((0, 0, 0.1 + 0.01 * np.cos(np.arctan(0.2)) - D),
                                                                 (1, np.arctan(0.2)))),
    "coin on a coin": (body(ls.ShapeCylinder(0.02, 0.003, (0, 0, 1))), body(ls.ShapeCylinder(0.02, 0.003, (0, 0, 1))),
                       moved((0, 0, 0.003 - D))),
    "coin on its edge": (BOX, body(ls.ShapeCylinder(0.02, 0.003)), moved((0, 0, 0.12 - D))),
    "hull on a mesh": (body(ls.ShapeMesh(ls.Mesh.of_shape(ls.ShapeBox(0.2, 0.2, 0.2)), 32)),
                       body(ls.ShapeHull(0.1 * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T, 32)),
                       moved((0, 0, 0.2 - 10 * D), TURN)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAT)
def test_faces_corners_and_rims_touch(name):
    """Each pair pushes up where it overlaps by 0.1 mm, and not 0.1 mm above."""
    a, b, g = FLAT[name]
    force, _ = pressed(a, b, g)
    straight = 1e-5 if name == "hull on a mesh" else 1e-9  # the grid of the mesh has the precision of float32
    assert force[2] > 1.0 and np.abs(force[:2]).max() < straight * force[2]
    above = g.copy()
    above[2, 3] += 20 * D
    assert not len(pressed(a, b, above)[1].depth)


def test_a_body_in_the_hole_of_a_mesh_is_not_touched():
    """A square frame with a hole of 8 cm around a post of 7.6 cm, whichever side of the pair the frame is: the flat
    sides of its convex hull span the hole, where nothing is."""
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    x = np.concatenate([np.insert(size * square, 2, z, axis=1) for z in (-0.01, 0.01) for size in (0.05, 0.04)])
    low, inner, high, top = np.arange(16).reshape(4, 4)
    sides = (inner, low), (high, top), (low, high), (top, inner)
    faces = [np.stack([a, np.roll(a, -1), np.roll(b, -1), b], axis=1) for a, b in sides]
    triangles = np.concatenate([face[:, k] for face in faces for k in ([0, 1, 2], [0, 2, 3])])
    frame = body(ls.ShapeMesh(ls.Mesh(vertices=x, triangles=triangles)))
    post = ls.RigidBody.box(0.076, 0.076, 0.2, material=SOFT)
    for a, b in ((frame, post), (post, frame)):
        assert not len(pressed(a, b, moved((0, 0, 0)))[1].depth)


@pytest.mark.parametrize("kind", ["capsule", "cylinder"])
def test_round_bars_cross(kind):
    """Crossed capsules and cylinders touch less than a hundredth of their radius deeper than at first touch."""
    shape = {"capsule": ls.ShapeCapsule(0.02, 0.3), "cylinder": ls.ShapeCylinder(0.02, 0.3)}[kind]
    for offset in np.linspace(0.0, 0.01, 7):
        g = moved((offset, 0.3 * offset, 0.04 - 2e-4), (2, np.pi / 2))
        force, _ = pressed(body(shape), body(shape), g)
        assert force[2] > 0.0


def test_edges_that_cross_carry_weight():
    """Two bars that stand on their edges touch where a point of an edge is inside the other bar: no deeper than half
    the distance of the points, which `per_interval` makes smaller."""
    for per_interval in (1, 4):
        spacing = 0.2 / (13 * per_interval)
        for offset in np.linspace(0.0, spacing, 5):
            g = moved((0.3 * offset, offset, 0.02 * np.sqrt(2.0) - 0.51 * spacing), (2, np.pi / 2), (0, np.pi / 4))
            force, found = pressed(BAR, BAR, g, moved((0, 0, 0), (0, np.pi / 4)), per_interval=per_interval)
            assert force[2] > 0.0 and len(found.depth)


def test_parallel_cylinders_press_once():
    """Only one of two bodies touches by its balls, so that the law of a line is not counted twice."""
    shape, other = ls.ShapeCylinder(0.02, 0.3), ls.ShapeCapsule(0.02, 0.5)
    for a, b in ((shape, other), (other, shape), (shape, ls.ShapeCylinder(0.03, 0.3))):
        height = 0.02 + b.radius - D
        force, _ = pressed(body(b), body(a), moved((0, 0, height)))
        modulus = SOFT.young / (1.0 - SOFT.poisson**2) / 2.0
        assert force[2] == pytest.approx(0.25 * np.pi * modulus * 0.3 * D, rel=0.12)  # ends of balls add or are missing


def test_the_shape_of_a_contact_touches_with_its_own_points():
    """A post in the world that is narrower than the face of a box carries it; the contact names the box as its link."""
    robot = ls.Robot("post", gravity=(0, 0, 0))
    robot.add_link("box", BOX, ls.JointFree(), placement=moved((0.03, 0.02, 0.25 - D)))
    robot.add_contact("post", "box", ls.ShapeBox(0.03, 0.03, 0.3), friction=0.0)
    found = ls.contact_forces(robot.build(), robot.build().neutral())
    assert set(found.link) == {"box"} and set(found.other) == {None}
    assert found.force[:, 2].min() > 0.0 and (found.normal[:, 2] == 1.0).all()


SURFACES = {"box": (ON_TOP["box"], 0.04), "cylinder": (ON_TOP["cylinder"], np.pi * 0.01)}


@pytest.mark.parametrize("visual", [None, '<sphere radius="0.5"/>'])
@pytest.mark.parametrize("kind", ["URDF", "MJCF"])
@pytest.mark.parametrize("name", SURFACES)
def test_surfaces_of_files_carry_area_times_pressure(tmp_path, name, kind, visual):
    """A box and an upright cylinder of a file, 1 mm deep in a layer of 1e5 N/m³, whatever is drawn."""
    (of_urdf, of_mjcf, half), area = SURFACES[name]
    if kind == "URDF":
        robot = urdf(tmp_path, "b", of_urdf, ls.JointFree(), visual)
    else:
        seen = '<geom type="sphere" size=".5" contype="0" conaffinity="0"/>' if visual else ""
        robot = mjcf(tmp_path, f'<body name="b"><freejoint/>{seen}<geom {of_mjcf} mass="1"/></body>')
    robot.add_contact("floor", "b", ls.ShapePlane(), surface=True, stiffness=1e5, friction=0.0)
    model = robot.build()
    q = model.neutral()
    q[-1] = half - 1e-3
    force = ls.contact_forces(model, q).force.sum(axis=0)
    assert force[2] == pytest.approx(area * 1e5 * 1e-3, rel=1e-2)


def test_drawings_are_not_touched(tmp_path):
    """A body with a drawing only is refused by name; beside a smaller collision shape the drawing does not touch."""
    robot = urdf(tmp_path, "b", '<sphere radius="0.1"/>', ls.JointFree(), '<box size="1 1 1"/>')
    robot.add_contact("floor", "b", ls.ShapePlane())
    model = robot.build()
    assert not len(ls.contact_forces(model, [1, 0, 0, 0, 0, 0, 0.11]).depth)
    robot = urdf(tmp_path, "c", None, ls.JointFree(), '<box size="1 1 1"/>')
    robot.add_contact("floor", "c", ls.ShapePlane())
    with pytest.raises(ls.ModelError, match=r"'floor': links: .* nothing touches drawings; .* shapes= .*'c'"):
        robot.build()


def gripper(folder):
    """A palm with two fingers on slides, and a box between them, of one file."""
    finger = '<body name="{0}" pos="{1} 0 -.06"><joint name="{0}" type="slide" axis="{2} 0 0"/>'
    finger += '<geom type="box" size=".01 .02 .05" mass=".1"/></body>'
    fingers = finger.format("left", "-.045", 1) + finger.format("right", ".045", -1)
    palm = f'<body name="palm"><geom type="box" size=".1 .02 .005" mass="1"/>{fingers}</body>'
    thing = '<body name="thing" pos="0 0 -.08"><freejoint/><geom type="box" size=".03 .03 .03" mass=".2"/></body>'
    motors = '<actuator><motor name="l" joint="left"/><motor name="r" joint="right"/></actuator>'
    return mjcf(folder, palm + thing, motors)


def test_a_gripper_of_a_file_holds_a_box_of_a_file(tmp_path):
    """The fingers close on the box and stop at its sides; friction holds it."""
    robot = gripper(tmp_path)
    robot.add_mutual_contacts(friction=0.8)
    model = robot.build()
    motion = ls.simulate(model, 0.6, u=[10.0, 10.0])
    left, right, thing = (ls.frame_pose(model, motion.q[-1], name) for name in ("left", "right", "thing"))
    assert right[0, 3] - left[0, 3] == pytest.approx(0.08, abs=1e-4)  # width of the box, and half that of both fingers
    assert -0.085 < thing[2, 3] < -0.079 and np.abs(motion.v[-1]).max() < 1e-3


@pytest.mark.parametrize("kind", ["URDF", "Python"])
def test_an_upright_cylinder_tips_at_its_angle(tmp_path, kind):
    """A can on its rim falls back below the angle at which its centre is above the rim, and falls over beyond."""
    radius, half = 0.03, 0.05
    if kind == "URDF":
        robot = urdf(tmp_path, "b", f'<cylinder radius="{radius}" length="{2 * half}"/>', ls.JointFree())
        turn = np.eye(4)
    else:
        robot, turn = ls.Robot("can"), moved((0, 0, 0), (1, -np.pi / 2))  # its axis x upwards
        robot.add_link("b", ls.RigidBody.cylinder(2 * half, radius, density=1000.0), ls.JointFree())
    robot.add_contact("floor", "b", ls.ShapePlane())
    model, tipping = robot.build(), np.arctan(radius / half)
    for angle, falls in ((0.9 * tipping, False), (1.1 * tipping, True)):
        g = moved((0, 0, half * np.cos(angle) + radius * np.sin(angle)), (1, angle)) @ turn
        x, y, z, w = Rotation.from_matrix(g[:3, :3]).as_quat()
        q = [w, x, y, z, *g[:3, 3]]
        motion = ls.simulate(model, 0.5, q)
        axis = ls.frame_pose(model, motion.q[-1], "b")[2, 2 if kind == "URDF" else 0]
        assert (np.arccos(min(abs(axis), 1.0)) > 1.2 * tipping) == falls


def test_everything_touches_the_floor(tmp_path):
    """One call for all links that have mass and can touch; links without are left out, with a reason."""
    robot = ls.Robot("all")
    robot.add_link("base", ls.RigidBody.box(0.2, 0.2, 0.2, density=1000), ls.JointFree())
    robot.add_link("mast", None, parent="base")
    robot.add_link("rod", ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), SOFT), parent="base")
    robot.add_link("pad", body(ls.ShapeSphere(0.05)), parent="base")
    robot.add_link("bare", ls.RigidBody(1.0, inertia=(1e-3,) * 3), parent="base")
    ghost = ls.RigidBody(0.0, shapes=(ls.PlacedShape(ls.ShapeSphere(0.05)),))
    robot.add_link("sole", ghost, parent="base")
    robot.add_link("ghost", ghost, ls.JointRevolute((0, 1, 0)), parent="base")
    drawn = ls.RigidBody(1.0, inertia=(1e-3,) * 3, meshes=(ls.Mesh.of_shape(ls.ShapeSphere(0.1)),))
    robot.add_link("drawn", drawn, parent="base")
    robot.add_contact("floor", ls.EVERYTHING, ls.ShapePlane())
    with pytest.warns(ls.LeftOutWarning, match="contact 'floor': left out: links 'drawn': drawings only"):
        model = robot.build()
    assert set(model.contacts.ball_link) == {"base", "rod", "pad", "sole"}
    with pytest.warns(ls.LeftOutWarning, match="mutual contacts 'mutual': left out: links 'drawn'"):
        found = robot.add_mutual_contacts()
    reasons = dict(found.left_out)
    assert reasons.pop("drawn").startswith("drawings only")
    assert reasons == {"mast": "no body", "bare": "no shape", "ghost": "no mass"}
    ls.save_robot(robot, tmp_path / "all.yaml")
    assert ls.load_robot(tmp_path / "all.yaml").contacts["floor"].links == ls.EVERYTHING
    other = ls.Robot("other")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.attach(robot, None, prefix="x ")
    assert other.contacts["x floor"].links == ("x base", "x rod", "x pad", "x sole")


def test_pairs_that_cannot_touch_are_refused():
    """Two unbounded shapes have no points: the error names both links; a robot without shapes is refused, too."""
    robot = ls.Robot("walls")
    robot.add_link("wall", body(ls.ShapePlane()), ls.JointFree())
    robot.add_link("pipe", body(ls.ShapeCylinder(0.1)), ls.JointFree())
    robot.add_contact("touch", "wall", others="pipe")
    rule = r"'touch': link 'wall' \(ShapePlane\) and link 'pipe' \(ShapeCylinder\) cannot touch, .* bounded shape"
    with pytest.raises(ls.ModelError, match=rule):
        robot.build()
    bare = ls.Robot("bare")
    bare.add_link("body", ls.RigidBody(1.0), ls.JointFree())
    bare.add_contact("floor", ls.EVERYTHING, ls.ShapePlane())
    with pytest.raises(ls.ModelError, match=r"'floor': links: must find a link that has mass, and collision shapes"):
        bare.build()
    joined = ls.Robot("joined")
    joined.add_link("a", BOX, ls.JointFree())
    joined.add_contact("own", "a", others="a")
    with pytest.raises(ls.ModelError, match="'own': needs two bodies that can move relative to each other"):
        joined.build()


def test_a_wheel_rolls_on_a_circle():
    """A wheel that is thinner than its radius presses alike wherever it has rolled to, by its length."""
    robot = ls.Robot("wheel", gravity=(0, 0, 0))
    robot.add_link("wheel", body(ls.ShapeCylinder(0.1, 0.03, (0.0, 1.0, 0.0))), ls.JointFree())
    robot.add_contact("floor", "wheel", ls.ShapePlane(), friction=0.0)
    model = robot.build()
    expected = 0.25 * np.pi * SOFT.young / (1.0 - SOFT.poisson**2) * 0.03 * 1e-5
    for angle in np.linspace(0.0, 0.5, 9):
        found = ls.contact_forces(model, [np.cos(angle / 2), 0, np.sin(angle / 2), 0, 0, 0, 0.1 - 1e-5])
        np.testing.assert_allclose(found.force.sum(axis=0), [0, 0, expected], rtol=1e-9, atol=1e-9)


def test_a_tower_stands():
    """Five equal boxes, exactly above each other, rest at their heights less the depths that carry them."""
    robot, names = ls.Robot("tower"), [f"brick {k}" for k in range(5)]
    for name in names:
        robot.add_link(name, ls.RigidBody.box(0.1, 0.1, 0.05, material=SOFT), ls.JointFree())
    robot.add_contact("floor", names, ls.ShapePlane())
    robot.add_mutual_contacts()
    model, q = robot.build(), np.zeros((5, 7))
    q[:, 0], q[:, 6] = 1.0, 0.025 + (0.05 - 1e-6) * np.arange(5)
    rest = ls.solve_statics(model, q0=q.ravel()).q.reshape(5, 7)
    assert np.abs(rest[:, 4:6]).max() < 1e-6 and np.abs(rest[:, 1:4]).max() < 1e-6
    weight, found = 9.81 * 0.5, ls.contact_forces(model, rest.ravel())
    floor = np.array([name == "floor" for name in found.contact])
    assert found.force[floor, 2].sum() == pytest.approx(5 * weight, rel=1e-6)
    assert (np.diff(rest[:, 6]) > 0.0499).all()
