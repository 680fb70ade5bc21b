"""Awkward URDF files, as public robots have them: they load, move as in Pinocchio, and the warnings name the repairs.

Each file below stands for files of packages on PyPI, which benchmarks/public_robots.py reads.
"""

import cProfile
import pstats
import warnings

import numpy as np
import pytest

import lissom as ls
from lissom.io.imports import nearest_inertia

pin = pytest.importorskip("pinocchio")
INERTIA = '<inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.025"/>'
WHOLE = f'<inertial><origin xyz="0.1 0 0.2" rpy="0.3 0 0.1"/><mass value="2"/>{INERTIA}</inertial>'
TURN = '<axis xyz="0 0.6 0.8"/>'


def inertial(moments, mass=2.0):
    """An inertial with three moments about its own axes."""
    xx, yy, zz = moments
    inertia = f'<inertia ixx="{xx!r}" ixy="0" ixz="0" iyy="{yy!r}" iyz="0" izz="{zz!r}"/>'
    return f'<inertial><origin xyz="0.1 0 0.2" rpy="0.3 0 0.1"/><mass value="{mass}"/>{inertia}</inertial>'


def arm(wrist=WHOLE, joint=TURN, kind="continuous", more="", head='<robot name="arm">'):
    """A file of an arm with two joints. The parts of its second link and of its second joint are given."""
    return f"""{head}
  <link name="world"/>
  <link name="upper">{WHOLE}</link>
  <link name="lower">{wrist}</link>
  <joint name="shoulder" type="continuous"><parent link="world"/><child link="upper"/><axis xyz="0 1 0"/></joint>
  <joint name="elbow" type="{kind}"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.3 0.1 0" rpy="0.2 0.1 0.4"/>{joint}</joint>{more}
</robot>"""


def read(tmp_path, text, **options):
    """The robot of a text, and its warnings by class."""
    path = tmp_path / "arm.urdf"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = ls.load_urdf(path, **options)
    assert len({w.category for w in told}) == len(told), "one warning of each class"
    return robot, {w.category: w.message for w in told}


def beside_pinocchio(robot, text, tolerance=1e-12):
    """M, inverse dynamics and gravity are those of Pinocchio, relative to the largest entry."""
    theirs, model = pin.buildModelFromXML(text), robot.build()
    data, rng = theirs.createData(), np.random.default_rng(3)
    for _ in range(3):
        q, v, a = rng.uniform(-1.0, 1.0, (3, model.nv))
        q_pin = np.concatenate([[np.cos(x), np.sin(x)] if j.nq == 2 else [x] for x, j in zip(q, theirs.joints[1:])])
        M = pin.crba(theirs, data, q_pin)
        forces = pin.rnea(theirs, data, q_pin, v, a), pin.computeGeneralizedGravity(theirs, data, q_pin)
        still = np.zeros(model.nv)
        ours = ls.inverse_dynamics(model, q, v, a), ls.inverse_dynamics(model, q, still, still)
        np.testing.assert_allclose(np.triu(ls.mass_matrix(model, q)), np.triu(M), atol=tolerance * np.abs(M).max())
        for x, y in zip(ours, forces):
            np.testing.assert_allclose(x, y, atol=tolerance * np.abs(y).max())


SHAPE = "<{0}><geometry>{1}</geometry></{0}>"
MOTOR = '<transmission name="t"><joint name="{}"/><actuator name="m"/></transmission>'
AWKWARD = {  # a file, and the parts of it that the warning names
    "no mass": (arm(f"<inertial>{INERTIA}</inertial>"), "<inertial> without <mass> of link 'lower' (line 4)"),
    "no inertia": (
        arm('<inertial><origin xyz="0.1 0 0"/><mass value="2"/></inertial>'),
        "<inertial> without <inertia> of link 'lower'",
    ),
    "empty inertial": (arm("<inertial/>"), "<inertial> without <mass> of link 'lower'"),
    "two inertials": (arm(WHOLE + inertial((1, 1, 1))), "second <inertial> of link 'lower'"),
    "two axes": (arm(joint=TURN + '<axis xyz="1 0 0"/>'), "second <axis> of joint 'elbow'"),
    "no range": (
        arm(joint='<limit effort="1" velocity="1"/>', kind="revolute"),
        "limits without a range of joint 'elbow' (line 7)",
    ),
    "range backwards": (
        arm(joint='<limit lower="1" upper="-1" effort="1" velocity="1"/>', kind="prismatic"),
        "limits without a range of joint 'elbow'",
    ),
    "no name": (arm(head="<robot>"), "name of <robot>"),
    "empty name": (arm(head='<robot name="">'), "name of <robot>"),
    "motor of a fixed joint": (arm(kind="fixed", more=MOTOR.format("elbow")), "wrong <transmission> of line 7"),
    "motor of no joint": (arm(more=MOTOR.format("wrist")), "wrong <transmission> of line 7"),
    "flat sphere": (arm(WHOLE + SHAPE.format("visual", '<sphere radius="0"/>')), "wrong <visual> of line 4"),
    "unknown shape": (arm(WHOLE + SHAPE.format("collision", "<cone/>")), "wrong <collision> of line 4"),
    "mesh without a file": (arm(WHOLE + SHAPE.format("visual", "<mesh/>")), "wrong <visual> of line 4"),
    "scale of one number": (
        arm(WHOLE + SHAPE.format("visual", '<mesh filename="a.stl" scale="2"/>')),
        "missing mesh file of 'a.stl'",
    ),
    "negative damping": (arm(joint=TURN + '<dynamics damping="-1"/>'), "negative damping of joint 'elbow' (line 7)"),
    "line before the head": (
        '\n <?xml version="1.0"?>\n' + arm(WHOLE + "<sensor/>"),
        "<sensor> of link 'lower' (line 6)",
    ),
    "capsule": (arm(WHOLE + SHAPE.format("collision", '<capsule radius="0.1" length="1"/>')), None),
    "unbound prefix": (arm(more="<gazebo:x/>"), "<gazebo:x> of robot 'arm'"),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_file_is_the_robot_of_pinocchio(tmp_path, name):
    """Purpose: the file loads, has the dynamics that Pinocchio reads, and one warning names the part and its place."""
    text, part = AWKWARD[name]
    robot, told = read(tmp_path, text)
    assert set(told) == ({ls.LeftOutWarning} if part else set())
    if part:
        assert part in str(told[ls.LeftOutWarning]) and part in told[ls.LeftOutWarning].report
    assert robot.name == "arm"
    beside_pinocchio(robot, text.replace("<robot>", '<robot name="arm">'))  # which Pinocchio needs
    kept = name in ("line before the head", "unbound prefix", "scale of one number") or not part
    if not kept:
        with pytest.raises(ls.ModelError, match=r"arm\.urdf, line \d+: "):
            read(tmp_path, text, strict=True)


def test_joint_without_a_range_moves_freely(tmp_path):
    """Purpose: equal limits, which Pinocchio keeps apart from the motion, make no stop."""
    robot, _ = read(tmp_path, arm(joint='<limit lower="0.2" upper="0.2" effort="1" velocity="1"/>', kind="revolute"))
    assert robot.links["lower"].joint.limits is None


# -- inertias that no body has ----------------------------------------------------------------------------------------

UNPHYSICAL = {  # moments as files have them, and the least change
    "triangle": (0.02, 0.03, 0.0555),
    "indefinite": (-0.01, 0.03, 0.03),
    "all negative": (-0.01, -0.02, -0.03),
    "one moment": (0.0, 0.0, 0.3),
}


def is_body(inertia):
    """Whether the second moments of a body with this inertia are not negative, but for rounding."""
    return np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia).min() >= -1e-14 * np.abs(inertia).max()


@pytest.mark.parametrize("name", UNPHYSICAL)
def test_nearest_inertia(name):
    """Purpose: the repaired matrix is that of a body; no body of a random sample is nearer, and none on the way."""
    rng = np.random.default_rng(5)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    given = turn @ np.diag(UNPHYSICAL[name]) @ turn.T
    given = 0.5 * (given + given.T)
    found, gap = nearest_inertia(given)
    assert is_body(found) and gap == pytest.approx(np.linalg.norm(found - given), rel=1e-12)
    assert not is_body(given) and not is_body(given + 0.999 * (found - given))
    for size in np.geomspace(1e-5, 1.0, 3000):
        root = turn @ np.diag(np.sqrt(np.maximum(np.linalg.eigvalsh(0.5 * np.trace(found) * np.eye(3) - found), 0.0)))
        root = root + size * 0.1 * rng.normal(size=(3, 3))
        second = root @ root.T  # ∫ ρ x xᵀ dV of some body
        other = np.trace(second) * np.eye(3) - second
        assert np.linalg.norm(other - given) >= gap * (1.0 - 1e-12)


def test_nearest_inertia_by_hand():
    """Purpose: a plate whose moment about its normal is 0.3 too large changes by 0.1 in each; a body keeps its own."""
    found, gap = nearest_inertia(np.diag([1.0, 1.0, 2.3]))
    np.testing.assert_allclose(found, np.diag([1.1, 1.1, 2.2]), atol=1e-15)
    assert gap == pytest.approx(np.sqrt(3) * 0.1)
    body = np.diag([1.0, 1.0, 2.0])
    assert nearest_inertia(body)[0] is body


def test_repairs_are_listed_once_with_their_sizes(tmp_path):
    """Purpose: one warning names each change and its size; the motion differs by it and not more; strict refuses."""
    text = arm(inertial((0.02, 0.03, 0.053)))
    robot, told = read(tmp_path, text)
    size = 0.003 / np.sqrt(3)
    assert set(told) == {ls.RepairWarning}
    change = f"inertia of 'lower' by {size:.2g} kg·m² ({100 * size / 0.053:.2g} %)"
    assert f"repaired numbers that no part can have: {change}; strict=True refuses them" in str(told[ls.RepairWarning])
    assert told[ls.RepairWarning].report == change
    beside_pinocchio(robot, text, 0.02)
    with pytest.raises(AssertionError):
        beside_pinocchio(robot, text, 1e-4)
    with pytest.raises(ls.ModelError, match="line 4: inertial: link 'lower': body: inertia: its largest principal"):
        read(tmp_path, text, strict=True)


def test_negative_mass_becomes_none(tmp_path):
    """Purpose: a link with a negative mass has none, which the warning says."""
    robot, told = read(tmp_path, arm(inertial((0.02, 0.03, 0.04), mass=-0.5)))
    assert robot.links["lower"].body.mass == 0.0 and told[ls.RepairWarning].report == "mass of 'lower' by 0.5 kg"


@pytest.mark.parametrize(
    "moments", [(0.02, 0.03, 0.05 + 1e-12), (-1e-20, 0.0, 0.0), (0.0, 2e-35, -3e-35), (1e-16, 1e-16, 1e-14)]
)
def test_rounding_is_no_finding(tmp_path, moments):
    """Purpose: -1e-20 for 0, or a triangle missed by the last digits, is repaired silently, in a strict reader too."""
    for strict in (False, True):
        robot, told = read(tmp_path, arm(inertial(moments)), strict=strict)
        assert not told
        light, told = read(tmp_path, arm(inertial((0.0, 0.0, 0.0), mass=-1e-20)), strict=strict)
        assert not told and light.links["lower"].body.mass == 0.0
    beside_pinocchio(robot, arm(inertial(moments)), 1e-10)


def test_long_lists_are_short_in_the_message(tmp_path):
    """Purpose: a warning is one line that names the first parts; its report has one line for each."""
    links = "".join(f'<link name="x{k}"><sensor/>{inertial((0.02, 0.03, 0.06))}</link>' for k in range(12))
    joints = "".join(
        f'<joint name="k{k}" type="fixed"><parent link="upper"/><child link="x{k}"/></joint>' for k in range(12)
    )
    _, told = read(tmp_path, arm(more=links + joints))
    for kind, shown, more in ((ls.LeftOutWarning, 3, "and 9 more"), (ls.RepairWarning, 8, "and 4 more")):
        text = str(told[kind])
        assert "\n" not in text and more in text and len(told[kind].report.splitlines()) == 12
        assert f"'x{shown - 1}'" in text and f"'x{shown}'" not in text


# -- joints that mimic others -----------------------------------------------------------------------------------------

LIMIT = '<limit lower="-30" upper="30" effort="0" velocity="0"/>'


def gripper(second="", third="", kinds=("revolute", "revolute", "prismatic"), more=""):
    """A file of three joints on one another. Parts of the second and the third are given."""
    links = "".join(f'<link name="l{k}">{WHOLE}</link>' for k in range(4))
    joints = "".join(
        f'''<joint name="j{k + 1}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>
           <origin xyz="0.3 0.1 0" rpy="0.2 0.1 {0.4 + k}"/><axis xyz="0 0.6 0.8"/>{LIMIT}{part}</joint>'''
        for k, (kind, part) in enumerate(zip(kinds, ("", second, third)))
    )
    return f'<robot name="gripper">{links}{joints}{more}</robot>'


def mimic(leader, multiplier=1.0, offset=0.0):
    """The element of a joint that mimics another."""
    return f'<mimic joint="{leader}" multiplier="{multiplier}" offset="{offset}"/>'


COUPLED = {  # parts of the joints 2 and 3; q = G q_independent + q_0
    "one": (mimic("j1", 2.0, 0.3), "", [[1, 0], [2, 0], [0, 1]], [0, 0.3, 0]),
    "plain": ('<mimic joint="j1"/>', "", [[1, 0], [1, 0], [0, 1]], [0, 0, 0]),
    "leader below": (mimic("j3", -0.5, 0.1), "", [[1, 0], [0, -0.5], [0, 1]], [0, 0.1, 0]),
    "two of one": (mimic("j1", 2.0), mimic("j1", -1.0, 0.2), [[1], [2], [-1]], [0, 0, 0.2]),
    "chain": (mimic("j1", 2.0, 0.3), mimic("j2", -1.5, 0.1), [[1], [2], [-3]], [0, 0.3, -0.35]),
    "multiplier 0": (mimic("j1", 0.0, 0.3), "", [[1, 0], [0, 0], [0, 1]], [0, 0.3, 0]),
}


@pytest.mark.parametrize("name", COUPLED)
def test_mimic_joints_move_as_in_pinocchio(tmp_path, name):
    """Purpose: with multiplier, offset and leaders that mimic others, accelerations are those of Pinocchio's tree
    whose coordinates are q = G q_independent + q_0."""
    second, third, G, start = COUPLED[name]
    G, start = np.array(G, dtype=float), np.array(start, dtype=float)
    text = gripper(second, third)
    robot, told = read(tmp_path, text)
    assert not told
    model, theirs = robot.build(), pin.buildModelFromXML(text)
    data, rng = theirs.createData(), np.random.default_rng(4)
    for _ in range(3):
        x, x_dot = rng.uniform(-0.8, 0.8, (2, G.shape[1]))
        q, v = G @ x + start, G @ x_dot
        M = pin.crba(theirs, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        expected = G @ np.linalg.solve(G.T @ M @ G, -G.T @ pin.nonLinearEffects(theirs, data, q, v))
        np.testing.assert_allclose(ls.forward_dynamics(model, q, v), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", COUPLED)
def test_mimic_joints_move_as_in_mujoco(tmp_path, name):
    """Purpose: accelerations are those of MuJoCo's reader of URDF, whose equality constraints hold exactly."""
    mujoco = pytest.importorskip("mujoco")
    second, third, G, start = COUPLED[name]
    text = gripper(second, third)
    model = read(tmp_path, text)[0].build()
    end = '<mujoco><compiler fusestatic="false"/></mujoco></robot>'
    theirs = mujoco.MjModel.from_xml_string(text.replace("</robot>", end))
    theirs.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    data, rng, M = mujoco.MjData(theirs), np.random.default_rng(4), np.zeros((3, 3))
    for _ in range(3):
        x, x_dot = rng.uniform(-0.8, 0.8, (2, np.shape(G)[1]))
        q, v = np.array(G) @ x + start, np.array(G) @ x_dot
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        for k, unit in enumerate(np.eye(3)):
            mujoco.mj_mulM(theirs, data, M[k], unit)
        J = data.efc_J.reshape(-1, 3)
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        expected = np.linalg.solve(K, np.append(-data.qfrc_bias, np.zeros(len(J))))[:3]
        np.testing.assert_allclose(ls.forward_dynamics(model, q, v), expected, atol=1e-10 * np.abs(expected).max())


def test_mimic_joint_is_that_of_pinocchio(tmp_path):
    """Purpose: Pinocchio, asked for mimic joints, has the same multiplier and offset, and the same reduced dynamics."""
    text = gripper(mimic("j1", 2.0, 0.3), mimic("j1", -1.0, 0.2))
    robot, _ = read(tmp_path, text)
    model, theirs = robot.build(), pin.buildModelFromXML(text, mimic=True)
    data, G = theirs.createData(), np.array([1.0, 2.0, -1.0])
    M = pin.crba(theirs, data, np.array([0.4]))[0, 0]
    force = pin.nonLinearEffects(theirs, data, np.array([0.4]), np.array([0.7]))[0]
    ours = ls.forward_dynamics(model, 0.4 * G + [0.0, 0.3, 0.2], 0.7 * G)
    np.testing.assert_allclose(ours, -force / M * G, rtol=1e-9)


def test_mimic_of_a_fixed_joint_stands_still(tmp_path):
    """Purpose: the position of a fixed joint is 0, so that the follower stays at its offset."""
    robot, told = read(tmp_path, gripper(mimic("j1", 2.0, 0.3), kinds=("fixed", "revolute", "prismatic")))
    (coupling,) = robot.joint_couplings.values()
    assert not told and (coupling.joints, coupling.ratios, coupling.offset) == (("l2",), (1.0,), 0.3)


def test_motors_drive_no_mimic_joint(tmp_path):
    """Purpose: the motors on request are those of the joints that move by themselves."""
    robot, _ = read(tmp_path, gripper(mimic("j1")), motors=True)
    assert list(robot.actuators) == ["j1", "j3"] and list(robot.joint_couplings) == ["j2"]


@pytest.mark.parametrize(
    "text, rule",
    [
        (gripper(mimic("none")), r"joint 'j2': must mimic one of the joints of the file \(got 'none'\)"),
        (gripper('<mimic multiplier="2"/>'), "the attribute 'joint' is required"),
        (gripper(mimic("j1", "two")), "'multiplier' must be a finite number"),
        (gripper(mimic("j1"), kinds=("planar", "revolute", "prismatic")), "joint 'j1' must have one coordinate"),
        (gripper(mimic("j1"), kinds=("revolute", "floating", "prismatic")), "joint 'j2' must have one coordinate"),
        (gripper(mimic("j1"), kinds=("revolute", "fixed", "prismatic")), "joint 'j2': must be a joint that moves"),
    ],
)
def test_wrong_mimic_elements_are_left_out(tmp_path, text, rule):
    """Purpose: a joint that cannot follow moves by itself, which one warning says; a strict reader refuses it."""
    robot, told = read(tmp_path, text)
    assert not robot.joint_couplings and "wrong <mimic> of line" in str(told[ls.LeftOutWarning])
    with pytest.raises(ls.ModelError, match=rule):
        read(tmp_path, text, strict=True)


@pytest.mark.parametrize(
    "text, way",
    [
        (gripper(mimic("j2")), "joint 'j2' must not mimic itself .'j2' > 'j2'."),
        (gripper(mimic("j3"), mimic("j2")), "joint 'j2' must not mimic itself .'j2' > 'j3' > 'j2'."),
    ],
)
def test_cyclic_mimics_are_refused(tmp_path, text, way):
    """Purpose: joints that mimic one another in a circle are one clear error."""
    with pytest.raises(ls.ModelError, match=f"arm.urdf, line . *: mimic: {way}".replace(" *", "*")):
        read(tmp_path, text)


# -- collision shapes -------------------------------------------------------------------------------------------------


def test_collision_meshes_are_read_when_a_contact_names_their_link(tmp_path):
    """Purpose: reading and building touch no mesh until a contact needs it; robot files keep the meshes."""
    vertices, triangles = ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.1, 0.1)).surface()
    rows = ["v {} {} {}".format(*v) for v in vertices] + ["f {} {} {}".format(*(t + 1)) for t in triangles]
    (tmp_path / "cube.obj").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "broken.stl").write_text("no mesh", encoding="utf-8")
    shapes = [f'<mesh filename="{tmp_path / "cube.obj"}"/>', '<sphere radius="0.02"/>']
    upper = WHOLE + "".join(SHAPE.format("collision", shape) for shape in shapes)
    lower = WHOLE + SHAPE.format("collision", f'<mesh filename="{tmp_path / "broken.stl"}"/>')
    text = arm(lower).replace(f'<link name="upper">{WHOLE}', f'<link name="upper">{upper}')
    robot, told = read(tmp_path, text, balls=5)
    assert not told and not len(robot.build().contacts.ball_radius)
    ls.save_robot(robot, tmp_path / "arm.yaml")
    assert "file: cube.obj" in (tmp_path / "arm.yaml").read_text(encoding="utf-8")
    found = []
    for one in (robot, ls.load_robot(tmp_path / "arm.yaml")):
        one.add_contact("ground", "upper", ls.ShapePlane(), stiffness=1e3)
        contacts = one.build().contacts
        balls = np.column_stack([contacts.ball_position, contacts.ball_radius])
        found.append(balls[np.unique(contacts.pair[:, 0])])
    np.testing.assert_array_equal(*found)
    radius = found[0][:, 3]
    assert (radius > 0.0).sum() == 6 and (radius == 0.02).sum() == 1 and (radius == 0.0).sum() == 8
    robot.add_contact("wall", "lower", ls.ShapePlane(), stiffness=1e3)
    with pytest.raises(ls.ModelError, match=r"link 'lower' > body > shapes\[0\]: .*broken\.stl"):
        robot.build()


@pytest.mark.parametrize(
    "given, rule",
    [
        ({"shapes": (ls.ShapeSphere(0.1),)}, r"body > shapes\[0\]: must be a PlacedShape"),
        ({"shapes": "sphere"}, "body: shapes: must be a list of PlacedShape"),
        ({"shapes": (ls.PlacedShape(ls.ShapeSphere(-1.0)),)}, r"body > shapes\[0\] > shape: radius: must be > 0"),
        ({"shapes": (ls.PlacedShape(ls.ShapeSphere(1.0), np.zeros((4, 4))),)}, r"shapes\[0\]: placement: its rotation"),
        ({"shapes": (ls.PlacedShape("box"),)}, r"shapes\[0\]: shape: must be a Shape"),
        ({"balls": 0}, "body: balls: must be an integer >= 1"),
        ({"balls": [(0, 0, 0, -1)]}, "body: balls: must have radii >= 0"),
    ],
)
def test_wrong_shapes_and_balls(given, rule):
    """Purpose: a wrong description of what touches is refused when the robot is built, by its place."""
    with pytest.raises(ls.ModelError, match=rule):
        ls.RigidBody(1.0, **given).check("body")


# -- many links -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_chain", [True, False])
def test_reading_is_linear_in_links(tmp_path, is_chain):
    """Purpose: four times as many links, in a row or on one link, take four times as many calls."""
    calls = []
    for count in (100, 400):
        links = "".join(f'<link name="l{k}">{WHOLE}</link>' for k in range(count))
        joints = "".join(
            f'<joint name="j{k}" type="revolute"><parent link="l{k - 1 if is_chain else 0}"/><child link="l{k}"/>'
            f"{LIMIT}{mimic(f'j{k - 1}') if 1 < k < 9 else ''}</joint>"
            for k in range(1, count)
        )
        path = tmp_path / "many.urdf"
        path.write_text(f'<robot name="many">{links}{joints}</robot>', encoding="utf-8")
        with cProfile.Profile() as profile:
            ls.load_urdf(path)
        calls.append(pstats.Stats(profile).total_calls)
    assert calls[1] < 4.4 * calls[0]
