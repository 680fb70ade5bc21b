"""URDF files: against Pinocchio, which reads the same files, element by element, and elements that are refused or left
out."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import lissom as ls

pin = pytest.importorskip("pinocchio")
ARM = Path(__file__).parent / "robots" / "ur10e.urdf"
TREE = """<robot name="tree">
  <link name="cart"><inertial><origin xyz="0.1 0 0.2" rpy="0.3 -0.2 1.1"/><mass value="3"/>
    <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" izz="0.05"/></inertial></link>
  <link name="rail"/>
  <link name="left"><inertial><mass value="1.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <link name="bracket"><inertial><origin xyz="0 0.05 0"/><mass value="0.4"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.002"/></inertial></link>
  <link name="right"><inertial><origin xyz="0 0 -0.1" rpy="0 0 0.5"/><mass value="0.7"/>
    <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.003" iyz="0" izz="0.002"/></inertial></link>
  <joint name="swing" type="revolute"><parent link="bracket"/><child link="right"/>
    <origin xyz="0.02 0.1 0" rpy="0.4 0.5 -0.6"/><axis xyz="0 1 1"/>
    <limit lower="-2" upper="1.5" effort="0" velocity="0"/><dynamics damping="0.3"/></joint>
  <joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/>
    <origin xyz="0 0 1" rpy="0.1 0.2 0.3"/><axis xyz="1 2 0"/>
    <limit lower="-1" upper="1" effort="0" velocity="0"/><dynamics damping="2"/></joint>
  <joint name="turn" type="revolute"><parent link="cart"/><child link="left"/>
    <origin xyz="0 0.3 0" rpy="-1 0.2 2"/><limit lower="-3" upper="3" effort="0" velocity="0"/></joint>
  <joint name="weld" type="fixed"><parent link="cart"/><child link="bracket"/>
    <origin xyz="0 -0.3 0" rpy="0 1.2 0"/></joint>
</robot>"""
LINK = """<link name="{}"><inertial><mass value="1"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{}</link>"""


def quiet(path, **options):
    """The robot of a file whose warnings another test reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        return ls.load_urdf(path, **options)


def written(tmp_path, text, **options):
    """The robot of a text."""
    path = tmp_path / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    return ls.load_urdf(path, **options)


def two(joint, body="", more=""):
    """A file of two links and one joint, whose inside and attributes are given."""
    kind, inside = joint
    ends = '<parent link="a"/><child link="b"/>'
    links = LINK.format("a", "") + LINK.format("b", body)
    return f'<robot name="two">{links}\n<joint name="j" type="{kind}">{ends}{inside}</joint>{more}</robot>'


LIMIT = '<limit lower="-1" upper="2" effort="0" velocity="0"/>'


@pytest.fixture(scope="module")
def arm():
    """The arm as it is read, and its model."""
    robot = quiet(ARM)
    return robot, robot.build()


def agrees(robot, model, theirs, seed, joints):
    """ID and M are those of Pinocchio, to 1e-11 of the largest entry, at random states within the limits."""
    rng, data = np.random.default_rng(seed), theirs.createData()
    at = np.array([theirs.joints[theirs.getJointId(name)].idx_v for name in joints])
    for _ in range(5):
        q, v, a = rng.uniform(-0.9, 0.9, model.nv), *rng.uniform(-3.0, 3.0, (2, model.nv))
        q_pin, v_pin, a_pin = np.zeros((3, model.nv))
        q_pin[at], v_pin[at], a_pin[at] = q, v, a
        damping = np.diag(ls.damping_matrix(model)) * v
        expected = pin.rnea(theirs, data, q_pin, v_pin, a_pin)[at] + damping
        np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, a), expected, atol=1e-11 * np.abs(expected).max())
        M = pin.crba(theirs, data, q_pin)
        M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(at, at)]
        np.testing.assert_allclose(ls.mass_matrix(model, q), M, atol=1e-11 * np.abs(M).max())


def test_six_axis_arm_is_that_of_pinocchio(arm):
    """Purpose: a maker's arm has the torques, the mass matrix and the flange that Pinocchio reads from this file."""
    robot, model = arm
    theirs = pin.buildModelFromUrdf(str(ARM))
    agrees(robot, model, theirs, 1, list(theirs.names)[1:])
    q, data = np.array([0.3, -1.1, 0.8, -0.2, 1.7, 0.5]), theirs.createData()
    pin.framesForwardKinematics(theirs, data, q)
    flange = data.oMf[theirs.getFrameId("flange")].homogeneous
    np.testing.assert_allclose(ls.frame_pose(model, q, "flange"), flange, atol=1e-12)


def test_tree_is_that_of_pinocchio(tmp_path):
    """Purpose: branches, slides, axes that are no unit vectors, turned inertias and links that are welded on."""
    robot = written(tmp_path, TREE)
    assert list(robot.links) == ["rail", "cart", "left", "bracket", "right"]
    agrees(robot, robot.build(), pin.buildModelFromXML(TREE), 2, ["slide", "turn", "swing"])


def test_arm_carries_a_rod_with_a_tendon(arm):
    """Purpose: a rod is hung on a link by one line and its tendon by another; the arm then feels the rod's inertia, and
    the tendon pulls by the length it gains."""
    robot = quiet(ARM)
    steel = ls.Material(young=200e9, poisson=0.3, density=7800)
    rod = ls.Rod(0.3, ls.SectionCircle(0.004), ls.BasisLegendre(bending_y=1, bending_z=1), steel)
    robot.add_link("finger", rod, parent="flange")
    robot.add_tendon("pull", "finger", offset=(0.0, 0.01))
    model, theirs = robot.build(), pin.buildModelFromUrdf(str(ARM))
    assert model.nv == 10 and model.inputs.names[-1] == "pull"
    mass, moment = 7800 * np.pi * 0.004**2 * 0.3, 7800 * np.pi * 0.004**4 / 4 * 0.3
    inertia = np.diag([2 * moment, mass * 0.3**2 / 12 + moment, mass * 0.3**2 / 12 + moment])
    flange = theirs.frames[theirs.getFrameId("flange")].placement
    theirs.appendBodyToJoint(6, pin.Inertia(mass, np.array([0.15, 0, 0]), inertia), flange)
    q = np.append([0.3, -1.1, 0.8, -0.2, 1.7, 0.5], np.zeros(4))
    M = pin.crba(theirs, theirs.createData(), q[:6])
    np.testing.assert_allclose(np.triu(ls.mass_matrix(model, q)[:6, :6]), np.triu(M), atol=1e-11 * np.abs(M).max())
    B = ls.actuation_matrix(model, q)[:, -1]
    assert B[6] == pytest.approx(0.3 * 0.01) or B[6] == pytest.approx(-0.3 * 0.01)  # L = ∫ 1 ± κ d ds
    assert np.abs(np.delete(B, 6)).max() < 1e-15


def test_transmissions_are_inputs(arm):
    """Purpose: inputs are motors by their names, in the file's order; a joint behind a gear gets its ratio."""
    _, model = arm
    names = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
    assert model.inputs.names == tuple(f"{name}_motor" for name in names)
    np.testing.assert_array_equal(ls.actuation_matrix(model, np.zeros(6)), np.diag([100, 100, 100, 1, 1, 1]))


def test_motors_where_the_file_has_none(tmp_path):
    """Purpose: on request every joint that moves gets an input of its name."""
    assert written(tmp_path, TREE).build().nu == 0
    robot = written(tmp_path, TREE, motors=True)
    assert [(name, a.link) for name, a in robot.actuators.items()] == [
        ("swing", "right"), ("slide", "cart"), ("turn", "left")]  # fmt: skip


def test_limits_are_stops(tmp_path):
    """Purpose: beyond its limits a joint is pushed back by the stiffness that was asked for, within not at all."""
    text = two(("revolute", LIMIT + '<dynamics damping="0.5"/>'))
    robot = written(tmp_path, text, limit_stiffness=100.0, limit_damping=2.0)
    joint = robot.links["b"].joint
    assert joint.limits == (-1.0, 2.0) and joint.damping == 0.5 and joint.limit_damping == 2.0
    robot.gravity = (0, 0, 0)
    model = robot.build()
    push = [ls.inverse_dynamics(model, [q], [0.0], [0.0])[0] for q in (-1.1, 0.0, 2.1)]
    assert push == pytest.approx([-100 * (0.1 - 0.0005), 0.0, 100 * (0.1 - 0.0005)])


@pytest.mark.parametrize(
    "kind, inside, joint",
    [
        ("continuous", "", ls.JointRevolute),
        ("floating", "", ls.JointFree),
        ("planar", '<axis xyz="0 0 2"/>', ls.JointPlanar),
        ("fixed", "", ls.JointFixed),
    ],
)
def test_every_kind_of_joint(tmp_path, kind, inside, joint):
    """Purpose: joints of all kinds of URDF are those of the library, without limits."""
    made = written(tmp_path, two((kind, inside))).links["b"].joint
    assert type(made) is joint and made.limits is None
    if kind == "continuous":
        assert made.axis == (1.0, 0.0, 0.0)  # as URDF has it where none is given


def test_base(tmp_path):
    """Purpose: the root stands still, or hangs on the world by a joint that is asked for."""
    assert written(tmp_path, TREE, base=ls.JointFree()).build().nv == 9


def test_pictures(tmp_path):
    """Purpose: visuals are meshes at their origins in their colours; materials are looked up by name."""
    looks = """
      <visual><origin xyz="0 0 0.5" rpy="0 1.5707963267948966 0"/>
        <geometry><cylinder radius="0.1" length="2"/></geometry><material name="red"/></visual>
      <visual><geometry><box size="1 2 3"/></geometry>
        <material name="own"><color rgba="0 0 1 0.5"/></material></visual>"""
    robot = written(tmp_path, two(("fixed", ""), looks, '<material name="red"><color rgba="1 0 0 1"/></material>'))
    rod, box = robot.links["b"].body.drawn_meshes()
    assert rod.color == (1, 0, 0, 1) and box.color == (0, 0, 1, 0.5)
    assert np.ptp(rod.surface()[0], axis=0) == pytest.approx([2, 0.2, 0.2])
    assert rod.surface()[0].mean(axis=0) == pytest.approx([0, 0, 0.5])
    assert np.ptp(box.surface()[0], axis=0) == pytest.approx([1, 2, 3])


def cube(path, side):
    """Write an OBJ file of a cube around the origin."""
    vertices, triangles = ls.Mesh.of_shape(ls.ShapeBox(side, side, side)).surface()
    rows = ["v {} {} {}".format(*v) for v in vertices] + ["f {} {} {}".format(*(t + 1)) for t in triangles]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def test_files_of_meshes(tmp_path):
    """Purpose: a visual names its file, found beside the robot, in packages above it or where it is said; a collision
    is a shape, whose file is read once a contact names its link."""
    cube(tmp_path / "robots" / "mine" / "a.obj", 200.0)
    cube(tmp_path / "elsewhere" / "b.obj", 0.1)
    mesh = '<{0}><origin xyz="0 0 1"/><geometry><mesh filename="{1}" scale="{2}"/></geometry></{0}>'
    small, names = "0.001 0.001 0.001", ("a.obj", "package://mine/a.obj", "package://other/b.obj", "none.stl")
    parts = [mesh.format("visual", name, small) for name in names]
    text = two(("fixed", ""), "".join(parts) + mesh.format("collision", "a.obj", small))
    path = tmp_path / "robots" / "mine" / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    with pytest.warns() as told:
        robot = ls.load_urdf(path, balls=10, packages={"other": tmp_path / "elsewhere"})
        robot.build()
        robot.add_contact("ground", "b", ls.ShapePlane(), stiffness=1e3)
        contacts = robot.build().contacts
    assert [w.category for w in told] == [ls.LeftOutWarning]
    assert "left out: missing mesh file of 'none.stl' (line 3)" in str(told[0].message)
    body = robot.links["b"].body
    assert [Path(m.file).name for m in body.meshes] == ["a.obj", "a.obj", "b.obj"]
    balls = np.column_stack([contacts.ball_position, contacts.ball_radius])[np.unique(contacts.pair[:, 0])]
    assert (np.abs(balls[:, :3] - [0, 0, 1]).max(axis=1) + balls[:, 3] < 0.1 + 1e-12).all()
    assert (balls[:, 3] > 0.0).sum() == 10 and (balls[:, 3] == 0.0).sum() == 8  # and the corners of the cube
    assert quiet(path, balls=0, packages={"other": tmp_path / "elsewhere"}).links["b"].body.shapes == ()


def test_simple_shapes_touch_as_themselves(tmp_path):
    """Purpose: spheres, boxes and cylinders along z are shapes at their origins."""
    shapes = ('<sphere radius="0.2"/>', '<box size="0.2 0.4 0.6"/>', '<cylinder radius="0.1" length="1"/>')
    origin = '<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>'
    found = []
    for shape in shapes:
        body = f"<collision>{origin}<geometry>{shape}</geometry></collision>"
        (placed,) = written(tmp_path, two(("fixed", ""), body)).links["b"].body.shapes
        assert placed.pose == pytest.approx(np.array([[0, -1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
        found.append(placed.shape)
    assert found == [ls.ShapeSphere(0.2), ls.ShapeBox(0.2, 0.4, 0.6), ls.ShapeCylinder(0.1, 1.0, (0.0, 0.0, 1.0))]


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar"])
def test_dry_friction(tmp_path, kind):
    """Purpose: friction of `dynamics` is that of the joint, beside its damping, and a saved robot file keeps it."""
    limit = LIMIT if kind in ("revolute", "prismatic") else ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        robot = written(tmp_path, two((kind, limit + '<dynamics damping="0.5" friction="0.3"/>')))
    joint = robot.links["b"].joint
    assert (joint.damping, joint.friction, joint.static_friction) == (0.5, 0.3, None)
    ls.save_robot(robot, tmp_path / "two.yaml")
    for one in (robot, ls.load_robot(tmp_path / "two.yaml")):
        model = one.build()
        v = np.linspace(-0.4, 0.7, model.nv + 1)[1:]
        still = np.zeros(model.nv)
        plain = one.with_({"b.joint.friction": 0.0}).build()
        more = ls.inverse_dynamics(model, still, v, still) - ls.inverse_dynamics(plain, still, v, still)
        np.testing.assert_allclose(more, 0.3 * v / np.hypot(v, 1e-3), rtol=1e-12)


def test_dry_friction_that_no_joint_has_is_named(tmp_path):
    """Purpose: a joint with a quaternion has no dry friction, and no joint has a negative one; warnings say so."""
    with pytest.warns(ls.LeftOutWarning, match="negative friction of joint 'j' .line 4"):
        robot = written(tmp_path, two(("continuous", '<dynamics damping="0.2" friction="-0.3"/>')))
    assert (robot.links["b"].joint.damping, robot.links["b"].joint.friction) == (0.2, 0.0)
    with pytest.warns(ls.LeftOutWarning, match="dry friction of a floating joint of joint 'j' .line 4") as told:
        robot = written(tmp_path, two(("floating", '<dynamics friction="0.3"/>')))
    assert len(told) == 1 and robot.links["b"].joint == ls.JointFree()


def test_what_is_left_out_is_listed(tmp_path):
    """Purpose: nothing goes unsaid: limits of effort, elements of other tools, transmissions of many."""
    more = """<gazebo reference="b"/>
      <transmission name="both"><joint name="j"/><joint name="k"/><actuator name="m"/></transmission>"""
    joint = '<limit lower="-1" upper="1" effort="5" velocity="2"/><safety_controller/>'
    with pytest.warns(ls.LeftOutWarning) as told:
        written(tmp_path, two(("revolute", joint), "<sensor/>", more))
    text = str(told[0].message)
    assert text.startswith(f"{tmp_path / 'robot.urdf'}: left out: ") and len(told) == 1
    for part in ("<gazebo> of robot 'two' (line 4)", "limits of effort of joint 'j'", "limits of velocity of joint 'j'",
                 "<safety_controller> of joint 'j'", "<sensor> of link 'b'",
                 "transmission of 2 joints and 1 actuators of transmission 'both' (line 5)"):  # fmt: skip
        assert part in text, part


FIXED = two(("fixed", ""))
OTHER = '<link name="c"/><joint name="k" type="fixed"><parent link="c"/><child link="b"/></joint>'
MOTOR = '<transmission name="t"><joint name="j"/><actuator name="m"/></transmission>'
SPHERE = '<visual><geometry><sphere radius="-1"/></geometry></visual>'
CONE = "<collision><geometry><cone/></geometry></collision>"
WRONG = {
    "mimic": (
        two(("continuous", '\n<mimic joint="k"/>')),
        r"line 5: mimic: joint 'j': must mimic one of .*\(got 'k'\)",
    ),
    "type": (two(("screw", "")), r"line 4: joint 'j': the type must be one of revolute, .* \(got 'screw'\)"),
    "no limit": (two(("revolute", "")), "joint 'j': a revolute joint must hold <limit>"),
    "empty range": (two(("revolute", '<limit lower="1" upper="1"/>')), "limit: joint 'j': lower must be < upper"),
    "axis": (two(("continuous", '<axis xyz="0 0 0"/>')), "axis: the attribute 'xyz' must not be zero"),
    "numbers": (two(("fixed", '<origin xyz="0 0"/>')), "'xyz' must be 3 finite numbers .got '0 0'."),
    "not a number": (two(("fixed", '<origin rpy="0 a 0"/>')), "'rpy' must be 3 finite numbers .got '0 a 0'."),
    "infinite": (two(("fixed", '<origin xyz="0 0 nan"/>')), "'xyz' must be 3 finite numbers"),
    "twice": (two(("fixed", "<origin/><origin/>")), "origin: occurs twice in joint 'j'"),
    "link": (FIXED.replace('child link="b"', 'child link="c"'), "child: must be one of the links .got 'c'."),
    "two roots": (two(("fixed", ""), more='<link name="c"/>'), r"must have one link .*\(got \['a', 'c'\]\)"),
    "same name": (two(("fixed", ""), more='<link name="b"/>'), "link 'b': has the name of the link in line"),
    "closed": (two(("fixed", ""), more=OTHER), "joint 'k': link 'b' hangs on joint 'j' already; chains must not close"),
    "no mass": (FIXED.replace('<mass value="1"/>', ""), "line 1: inertial: must hold <mass>"),
    "no inertia": (FIXED.replace('ixy="0" ', ""), "inertia: the attribute 'ixy' is required"),
    "no body": (FIXED.replace('ixx="1"', 'ixx="9"'), "inertial: link 'a': body: inertia: its largest"),
    "shape": (two(("fixed", ""), CONE), "geometry: must hold one of box, capsule, cylinder, mesh, sphere"),
    "radius": (two(("fixed", ""), SPHERE), "sphere: sphere: radius: must be > 0"),
    "transmission": (two(("fixed", ""), more=MOTOR), "joint 'j': must be a joint that moves"),
    "root": ("<mujoco/>", "a URDF file begins with <robot>"),
    "syntax": ("<robot name='a'>\n<link", "line 2: the XML is broken or cut off"),
    "empty": ("", "line 1: the XML is broken or cut off"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_name_file_line_and_element(tmp_path, name):
    """Purpose: a file that cannot be read as it stands says where and why."""
    text, rule = WRONG[name]
    with pytest.raises(ls.ModelError, match=rule) as raised:
        written(tmp_path, text, strict=True)
    assert str(raised.value).startswith(f"{tmp_path / 'robot.urdf'}, line ")


def test_saved_as_a_robot_file(arm, tmp_path):
    """Purpose: an imported robot stays the same when it is saved as a robot file and loaded again."""
    robot, model = arm
    ls.save_robot(robot, tmp_path / "arm.yaml")
    again = ls.load_robot(tmp_path / "arm.yaml").build()
    q = np.linspace(-1, 1, 6)
    np.testing.assert_array_equal(ls.mass_matrix(again, q), ls.mass_matrix(model, q))
    assert again.inputs.names == model.inputs.names
