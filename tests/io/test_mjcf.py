"""MJCF files: against MuJoCo, which runs the same files, known mistakes of importers, and elements that are refused or
left out."""

import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import lissom as ls

mujoco = pytest.importorskip("mujoco")
ARM = Path(__file__).parent / "robots" / "ur10e.xml"
# a branch, joints away from the origins of their bodies, several in one body, references that are not zero
TREE = """<mujoco model="tree"><compiler angle="radian"/><option gravity="0.3 -0.2 -9.7"/><worldbody>
  <body name="trunk" pos="0.1 0.2 0.3" quat="0.9 0.1 -0.2 0.3">
    <joint name="x" type="slide" axis="1 0 0"/>
    <joint name="yaw" type="hinge" axis="0 0.6 0.8" pos="0.05 -0.1 0.02" ref="0.4"/>
    <inertial pos="0.1 0 0.05" quat="0.8 0.1 0.5 0.2" mass="3" diaginertia="0.03 0.04 0.05"/>
    <body name="arm" pos="0.3 0 0.1" euler="0.3 -0.4 0.5">
      <joint name="shoulder" type="hinge" axis="0 1 0" pos="0.02 0 0" ref="-0.2"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.2 0.1 0.3" density="700"/>
      <geom type="box" size="0.05 0.02 0.03" pos="0 0 0.3" euler="1 0 0" mass="0.4"/>
      <body name="hand" pos="0.2 0.1 0.3"><joint name="wrist" type="ball" pos="0 0.01 0"/>
        <geom type="ellipsoid" size="0.05 0.03 0.08" density="900"/></body>
    </body>
    <body name="tail" pos="-0.2 0 0"><geom type="cylinder" size="0.02 0.1" mass="0.3"/>
      <body name="tip" pos="0 0 -0.2" axisangle="0 1 0 0.7"><joint name="lift" type="slide" axis="0 0 1" ref="0.1"/>
        <geom type="sphere" size="0.03" mass="0.2"/></body></body>
  </body></worldbody></mujoco>"""


def one(joint="", body='<geom type="sphere" size="0.1" mass="2" pos="0.3 0 0"/>', head="", more=""):
    """A file of one body on one hinge, whose attributes and inside are given."""
    hinge = f'<joint name="j" type="hinge" axis="0 1 0" {joint}/>'
    inside = f'<worldbody>\n<body name="b">{hinge}{body}</body></worldbody>'
    return f'<mujoco model="one">{head}{inside}{more}</mujoco>'


def written(tmp_path, text, **options):
    """The robot of a text, and MuJoCo's model of it; other tests check the warnings."""
    path = tmp_path / "robot.xml"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        warnings.simplefilter("ignore", ls.AccuracyWarning)
        return ls.load_mjcf(path, **options), mujoco.MjModel.from_xml_path(str(path))


def theirs(model, q, v):
    """M and the bias of MuJoCo, which has springs and dampers apart."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    M, column = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    for k, unit in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, column, unit)
        M[k] = column
    return M, data.qfrc_bias - data.qfrc_passive, data


def agrees(robot, compiled, q, v):
    """M and bias are those of MuJoCo, to 1e-10 of the largest entry."""
    model = robot.build()
    M, bias, _ = theirs(compiled, q, v)
    np.testing.assert_allclose(ls.mass_matrix(model, q), M, atol=1e-10 * np.abs(M).max())
    both = ls.mass_inverse_dynamics(model, q, v)
    np.testing.assert_allclose(both.bias, bias, atol=1e-10 * np.abs(bias).max())


def states(robot, seed, low=-0.9, high=0.9):
    """Random states of a robot; quaternions are of unit length."""
    model, rng = robot.build(), np.random.default_rng(seed)
    for _ in range(5):
        dv = rng.uniform(low, high, model.nv)
        yield ls.integrate(model, model.neutral(), dv), rng.uniform(-2.0, 2.0, model.nv)


@pytest.fixture(scope="module")
def arm():
    """The arm as it is read, without a warning, its model, and MuJoCo's."""
    robot = ls.load_mjcf(ARM)
    return robot, robot.build(), mujoco.MjModel.from_xml_path(str(ARM))


def test_six_axis_arm_is_that_of_mujoco(arm):
    """Purpose: mass matrix, bias with the damping of both classes, and flange are those of MuJoCo."""
    robot, model, compiled = arm
    assert np.diag(ls.damping_matrix(model)) == pytest.approx([2, 2, 2, 0.5, 0.5, 0.5])
    for q, v in states(robot, 1):
        agrees(robot, compiled, q, v)
        _, _, data = theirs(compiled, q, v)
        assert ls.frame_pose(model, q, "flange")[:3, 3] == pytest.approx(data.site_xpos[0], abs=1e-12)


def test_arm_carries_a_rod(arm):
    """Purpose: a rod with a tendon is hung on a site by two lines; pulled, it bends towards the tendon."""
    robot = ls.load_mjcf(ARM)
    rod = ls.Rod(0.2, ls.SectionCircle(0.008), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    robot.add_link("finger", rod, parent="wrist_3", placement=robot.frames["flange"].placement)
    robot.add_tendon("pull", "finger", offset=(0.0, 0.006))
    model = robot.build()
    assert model.nv == 8 and model.inputs.names[-1] == "pull"
    assert ls.actuation_matrix(model, model.neutral())[6, -1] == pytest.approx(-0.2 * 0.006)


def test_tree_is_that_of_mujoco(tmp_path):
    """Purpose: branches, anchors, several joints in a body, references, balls and inertia from geometry."""
    robot, compiled = written(tmp_path, TREE)
    assert list(robot.links) == ["x", "yaw", "trunk", "shoulder", "arm", "wrist", "hand", "tail", "tip"]
    for q, v in states(robot, 2):
        agrees(robot, compiled, q, v)
        model, (_, _, data) = robot.build(), theirs(compiled, q, v)
        for b in range(1, compiled.nbody):
            pose = ls.frame_pose(model, q, compiled.body(b).name)
            assert pose[:3, 3] == pytest.approx(data.xpos[b], abs=1e-12)
            assert pose[:3, :3].ravel() == pytest.approx(data.xmat[b], abs=1e-12)


def test_free_joint_starts_at_the_pose_of_the_file(tmp_path):
    """Purpose: a free body is where the file has it at the neutral configuration, and has its mass and weight."""
    body = '<freejoint/><geom type="box" size="0.1 0.2 0.3" mass="2"/>'
    text = f'<mujoco><worldbody><body name="b" pos="1 2 3" euler="30 0 0">{body}</body></worldbody></mujoco>'
    robot, compiled = written(tmp_path, text)
    model = robot.build()
    assert ls.frame_pose(model, model.neutral(), "b")[:3, 3] == pytest.approx([1, 2, 3])
    M, _, _ = theirs(compiled, compiled.qpos0, np.zeros(6))
    np.testing.assert_allclose(np.diag(ls.mass_matrix(model, model.neutral())), np.diag(M)[[3, 4, 5, 0, 1, 2]])


BALL = '<geom size="0.1" pos="0.3 0 0"/>'
TURNED = '<geom type="box" size=".1 .2 .3" euler="20 50 70" pos=".1 0 0"/>'
GIVEN = '<inertial pos="0 0 1" mass="9" diaginertia="1 2 2"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/>'
GROUPS = '<geom size="0.1" pos="0.3 0 0" group="1"/><geom size="0.2" group="3"/>'
CLASSES = """<default><geom density="300"/><joint damping="0.7" stiffness="3" springref="20"/>
  <default class="c"><joint damping="0.1"/></default></default>"""
CHANGES = {  # compiler options and defaults that change the body on its joint
    "degrees": ('<compiler angle="degree"/>', 'stiffness="3" ref="20" springref="30"', BALL),
    "radians": ('<compiler angle="radian"/>', 'stiffness="3" ref="0.3" springref="0.5"', BALL),
    "eulerseq": ('<compiler eulerseq="ZYX"/>', "", TURNED),
    "inertia of geoms": ('<compiler inertiafromgeom="true"/>', "", GIVEN),
    "group of inertia": ('<compiler inertiagrouprange="1 2"/>', "", GROUPS),
    "total mass": ('<compiler settotalmass="5"/>', "", BALL),
    "least inertia": ('<compiler boundmass="3" boundinertia="0.2"/>', "", '<geom size="0.01" pos="0.3 0 0" mass="1"/>'),
    "defaults": (CLASSES, "", BALL),
    "class": (CLASSES, 'class="c"', BALL),
}
KEPT = {  # those that are what MuJoCo does without
    "eulerseq": ('<compiler eulerseq="xyz"/>', "", TURNED),
    "inertia as given": ('<compiler inertiafromgeom="false"/>', "", GIVEN),
    "inertia of either": ('<compiler inertiafromgeom="auto"/>', "", GIVEN),
}


@pytest.mark.parametrize("name, kept", [*((name, False) for name in CHANGES), *((name, True) for name in KEPT)])
def test_options_and_defaults_are_those_of_mujoco(tmp_path, name, kept):
    """Purpose: units, sequences of angles, inertia from geometry and classes have the meaning of MuJoCo, and it
    would be seen if they were not read."""
    head, joint, body = (KEPT if kept else CHANGES)[name]
    robot, compiled = written(tmp_path, one(joint, body, head), balls=0)
    q, v = np.array([0.2]), np.array([0.7])
    agrees(robot, compiled, q, v)
    plain = written(tmp_path, one("", body), balls=0)[0].build()
    ours, other = (ls.mass_inverse_dynamics(model, q, v) for model in (robot.build(), plain))
    assert (np.allclose(ours.mass, other.mass) and np.allclose(ours.bias, other.bias)) == kept


def test_classes_by_numbers(tmp_path):
    """Purpose: a joint has what its class says, and what that leaves out from the class above."""
    joint = written(tmp_path, one('class="c"', BALL, CLASSES))[0].links["b"].joint
    assert (joint.damping, joint.stiffness, joint.rest[0]) == (0.1, 3.0, pytest.approx(np.deg2rad(20)))


@pytest.mark.parametrize(
    "head, joint, limits",
    [
        ("", 'range="-30 60"', (-np.pi / 6, np.pi / 3)),
        ('<compiler angle="radian"/>', 'range="-0.5 1"', (-0.5, 1.0)),
        ('<compiler autolimits="false"/>', 'range="-30 60" limited="true"', (-np.pi / 6, np.pi / 3)),
        ("", 'range="-30 60" limited="false"', None),
    ],
)
def test_limits_are_stops(tmp_path, head, joint, limits):
    """Purpose: a range limits as the compiler's option says, and the stops have the stiffness that was asked for."""
    made = written(tmp_path, one(joint, head=head), limit_stiffness=7.0, limit_damping=2.0)[0].links["b"].joint
    assert made.limits == (None if limits is None else pytest.approx(limits))
    assert (made.limit_stiffness, made.limit_damping) == ((0.0, 0.0) if limits is None else (7.0, 2.0))


def test_inputs(tmp_path):
    """Purpose: forces of inputs are MuJoCo's, with gears and gains; a servo's spring is that of its joint."""
    more = """<actuator><motor name="m" joint="j" gear="50"/><general name="g" joint="j" gainprm="3" gear="2"/>
      <position name="p" joint="j" kp="7" gear="4"/><motor name="s" site="end" gear="1 2 3 0.1 0.2 0.3"/></actuator>"""
    body = '<geom size="0.1" pos="0.3 0 0"/><site name="end" pos="0.2 0.1 0" euler="10 20 30"/>'
    robot, compiled = written(tmp_path, one(body=body, more=more))
    model, (_, _, data) = robot.build(), theirs(compiled, [0.4], [0.0])
    assert model.inputs.names == ("m", "g", "p", "s")
    without = 7 * 4 * (0.0 - 4 * 0.4)  # which the servo does
    for k in range(4):
        data.ctrl[:] = np.eye(4)[k]
        mujoco.mj_forward(compiled, data)
        assert ls.actuation_matrix(model, [0.4])[0, k] == pytest.approx(data.qfrc_actuator[0] - without)
    assert -ls.stiffness_matrix(model)[0, 0] * 0.4 == pytest.approx(without)


def test_geoms_are_drawn_and_touch(tmp_path):
    """Purpose: visual shapes are drawn in place of others; shapes touch as themselves, meshes as their hulls."""
    head = '<asset><material name="red" rgba="1 0 0 1"/><mesh name="k" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    body = """<geom type="sphere" size="0.1" pos="1 0 0"/><geom type="capsule" size="0.1" fromto="0 0 0 0 0 1"/>
      <geom type="box" size="0.1 0.2 0.3" pos="2 0 0"/><geom type="cylinder" size="0.1 0.5" euler="90 0 0"/>"""
    robot, _ = written(tmp_path, one(body=body))
    shapes = robot.links["b"].body.shapes
    assert len(robot.links["b"].body.meshes) == 4
    assert [placed.shape for placed in shapes] == [ls.ShapeSphere(0.1), ls.ShapeCapsule(0.1, 1.0, (0.0, 0.0, 1.0)),
            ls.ShapeBox(0.2, 0.4, 0.6), ls.ShapeCylinder(0.1, 1.0, (0.0, 0.0, 1.0))]  # fmt: skip
    np.testing.assert_allclose([placed.pose[:3, 3] for placed in shapes], [[1, 0, 0], [0, 0, 0.5], [2, 0, 0], [0] * 3])
    assert np.abs(shapes[3].pose[:3, 2]) == pytest.approx([0, 1, 0])  # turned by 90 degrees about x
    seen = body + '<geom type="mesh" mesh="k" material="red" contype="0" conaffinity="0" pos="0 0 5"/>'
    (mesh,) = written(tmp_path, one(body=seen, head=head))[0].links["b"].body.meshes
    assert mesh.color == (1, 0, 0, 1)
    assert mesh.surface()[0].min(axis=0) == pytest.approx([0, 0, 5], abs=1e-6) and len(mesh.surface()[1]) == 4
    path = tmp_path / "mesh.xml"
    path.write_text(one(body='<geom type="mesh" mesh="k"/>', head=head), encoding="utf-8")
    robot = ls.load_mjcf(path, balls=6)
    robot.add_contact("ground", "b", ls.ShapePlane(), stiffness=1e3)
    assert robot.links["b"].body.balls == 6 and len(robot.links["b"].body.shapes[0].shape.points) == 4
    contacts = robot.build().contacts
    balls = np.column_stack([contacts.ball_position, contacts.ball_radius])[np.unique(contacts.pair[:, 0])]
    assert len(balls) == 10 and (balls[:, :3].sum(axis=1) + np.sqrt(3) * balls[:, 3] < 1 + 1e-6).all()
    corners = balls[balls[:, 3] == 0.0, :3]
    np.testing.assert_allclose(corners[np.argsort(corners @ [1, 2, 3])], [[0] * 3, *np.eye(3)], atol=1e-6)


def test_what_is_left_out_is_listed(tmp_path):
    """Purpose: nothing goes unsaid, each by its name."""
    more = """<actuator><position name="servo" joint="j" ctrlrange="0 1"/><position name="filter" joint="j"
      timeconst="0.1"/></actuator><sensor><jointpos name="angle"
      joint="j"/></sensor><tendon><spatial name="cord"><site site="e"/><site site="w"/></spatial></tendon>
      <keyframe><key name="home" qpos="1"/></keyframe>"""
    body = """<geom size="0.1"/><site name="e"/><camera name="eye"/></body>
      <geom name="floor" type="plane" size="1 1 1"/><site name="w"/>
      <body name="hand" mocap="true"><geom size="0.1"/></body>
      <body name="light" gravcomp="1"><joint name="f" type="free" armature="0.2" frictionloss="0.1"/>
      <geom size="0.1"/>"""
    head = '<option density="1.2" wind="1 0 0"/>'
    path = tmp_path / "robot.xml"
    path.write_text(one("", body, head, more), encoding="utf-8")
    with pytest.warns(ls.LeftOutWarning) as told:
        robot = ls.load_mjcf(path)
    text = str(told[0].message)
    assert text.startswith(f"{path}: left out: ") and len(told) == 1
    assert robot.build().input_limits[1].tolist() == [1.0, np.inf] and robot.links["w"].parent is None
    listed = [
        "dry friction (frictionloss) of a joint that turns freely of joint 'f'",
        "armature of a joint that moves freely of joint 'f'",
        "<sensor> of 'angle'",
        "<tendon> of 'cord'",
        "<camera> of 'eye'",
        "law (its input is the force before its gear) of actuator 'filter'",
        "static shape of geom 'floor'",
        "prescribed motion (mocap) of body 'hand'",
        "compensation of gravity of body 'light'",
        "density of <option>",
        "wind of <option>",
    ]
    for part in listed:
        assert part in text, part


def test_dry_friction_of_joints(tmp_path):
    """Purpose: frictionloss of hinges and slides, given or by a class, is the friction of their joints, also after the
    robot is saved; that of a tendon is named."""
    classes = '<default><joint frictionloss="0.4"/><default class="c"><joint frictionloss="0"/></default></default>'
    more = """<body name="cart"><joint name="x" type="slide" frictionloss="3"/><geom size="0.1"/>
      <body name="free"><joint name="k" class="c" type="hinge"/><geom size="0.1"/></body></body>"""
    cord = '<tendon><fixed name="cord" frictionloss="0.1"><joint joint="j" coef="1"/></fixed></tendon>'
    path = tmp_path / "robot.xml"
    path.write_text(one("", BALL + "</body>" + more + '<body name="end">' + BALL, classes, cord), encoding="utf-8")
    with pytest.warns(ls.LeftOutWarning, match="dry friction of tendon 'cord'") as told:
        robot = ls.load_mjcf(path)
    assert "frictionloss" not in str(told[0].message)
    ls.save_robot(robot, tmp_path / "again.yaml")
    for each in (robot, ls.load_robot(tmp_path / "again.yaml")):
        assert [each.links[name].joint.friction for name in ("b", "cart", "free")] == [0.4, 3.0, 0.0]


def test_a_hinge_stops_as_in_mujoco(tmp_path):
    """Purpose: a wheel on a dry hinge loses F/I of speed in each second, as in MuJoCo. MuJoCo's friction is a soft
    constraint: below v₁ = F/(I b), with b = 2/(0.95 · 0.02 s) by the default solref and solimp, it falls with the
    speed; here below slip_speed. The times until a third, a tenth and 2 v₁ of the first speed are the same within the
    step of MuJoCo, and both wheels have stopped by 10/b later."""
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="0.02 0.02 0.02"/>'
    head = '<option gravity="0 0 0" timestep="0.0002"/>'
    robot, compiled = written(tmp_path, one('frictionloss="0.05"', inertial, head))
    F, size, start, b = 0.05, 0.02, 2.0, 2.0 / (0.95 * 0.02)
    v_1, step = F / size / b, compiled.opt.timestep
    data = mujoco.MjData(compiled)
    data.qvel[:] = start
    speed = [start]
    for _ in range(5000):
        mujoco.mj_step(compiled, data)
        speed.append(float(data.qvel[0]))
    times = np.linspace(0.0, 1.0, 5001)
    motion = ls.simulate(robot.build(), 1.0, v0=[start], t_eval=times, rtol=1e-8, atol=1e-10)
    assert v_1 < 0.05 < start
    for level in (start / 3, start / 10, 2 * v_1):
        ours, other = (times[np.argmax(np.asarray(v) < level)] for v in (motion.v[:, 0], speed))
        assert abs(ours - other) < 1.01 * step
        assert ours == pytest.approx((start - level) * size / F, abs=1.01 * step)
    after = times > start * size / F + 10.0 / b
    assert np.abs(motion.v[after]).max() < 1e-4 * start and np.abs(np.array(speed)[after]).max() < 1e-4 * start


IGNORED = {
    "limits of force of joint 'j'": one('actuatorfrcrange="-1 1"'),
    "friction of contacts of geom 'g'": one(body='<geom name="g" size="0.1" friction="0.5"/>'),
    "softness (solref, solimp, margin, gap) of contacts of geom 'g'": one(
        body='<geom name="g" size="0.1" margin="1"/>'
    ),
    "softness (solref, solimp) of equality 'e'": one(
        more='<equality><joint name="e" joint1="j" solref="0.1 1"/></equality>'
    ),
    "<numeric> of 'n'": one(more='<custom><numeric name="n" data="1"/></custom>'),
    "<text> of 't'": one(more='<custom><text name="t" data="x"/></custom>'),
    "group that is switched off (disableactuator) of actuator 'a'": one(
        head='<option actuatorgroupdisable="2"/>', more='<actuator><motor name="a" joint="j" group="2"/></actuator>'
    ),
}


@pytest.mark.parametrize("part", IGNORED)
def test_physics_that_is_ignored_is_named(tmp_path, part):
    """Purpose: each number of the file that MuJoCo uses and the robot does not have is in the one warning."""
    path = tmp_path / "robot.xml"
    path.write_text(IGNORED[part], encoding="utf-8")
    with pytest.warns(ls.LeftOutWarning) as told:
        ls.load_mjcf(path)
    assert len(told) == 1 and part in told[0].message.report.splitlines()


def test_limits_of_inputs(tmp_path):
    """Limits of the control, and those of the force over the gain, are those of the input; others are left out."""
    limits = 'ctrllimited="true" ctrlrange="-2 3" forcelimited="true" forcerange="-4 8"'
    actuators = {
        "both": f'<general name="both" joint="j" gainprm="4" {limits}/>',
        "turned": '<general name="turned" joint="j" gainprm="-2" forcelimited="true" forcerange="-4 8"/>',
        "servo": f'<position name="servo" joint="j" kp="5" {limits}/>',
        "free": '<motor name="free" joint="j"/>',
    }
    path = tmp_path / "robot.xml"
    path.write_text(one(more=f"<actuator>{''.join(actuators.values())}</actuator>"), encoding="utf-8")
    with pytest.warns(ls.LeftOutWarning, match="limits of force of actuator 'servo'"):
        model = ls.load_mjcf(path).build()
    assert model.inputs.names == tuple(actuators)
    low, high = model.input_limits
    assert low.tolist() == [-1.0, -4.0, -2.0, -np.inf] and high.tolist() == [2.0, 2.0, 3.0, np.inf]


def test_bodies_that_do_not_touch(tmp_path):
    """Pairs of <exclude>, and those that contype and conaffinity keep apart, are left out of mutual contacts."""
    masks = {"a": (1, 1), "b": (1, 1), "c": (2, 2), "d": (0, 3), "e": (0, 3)}
    bodies = "".join(
        f'<body name="{name}" pos="{k} 0 0"><freejoint/><geom size="0.1" contype="{one}" conaffinity="{two}"/></body>'
        for k, (name, (one, two)) in enumerate(masks.items())
    )
    text = f'<mujoco><worldbody>{bodies}</worldbody><contact><exclude body1="a" body2="d"/></contact></mujoco>'
    robot, compiled = written(tmp_path, text)
    contacts = robot.add_mutual_contacts(stiffness=1e3).contacts
    pairs = {frozenset((contact.others, link)) for contact in contacts for link in contact.links}
    expected = {frozenset(p) for p in combinations(masks, 2)
                if masks[p[0]][0] & masks[p[1]][1] or masks[p[1]][0] & masks[p[0]][1]} - {frozenset("ad")}  # fmt: skip
    assert {pair for pair in pairs if len(pair) == 2} == expected and len(expected) == 6
    data = mujoco.MjData(compiled)
    data.qpos.reshape(5, 7)[:, 0] = 0.0
    mujoco.mj_forward(compiled, data)
    names = [compiled.body(int(compiled.geom_bodyid[g])).name for g in data.contact.geom.ravel()]
    assert {frozenset(pair) for pair in zip(names[::2], names[1::2])} == expected
    with pytest.raises(ls.ModelError, match=r"contact exclusion 'x': links: must be one of the links .*got 'f'"):
        robot.exclude_contacts("x", ["a", "f"])
        robot.build()


PAIRED = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 1"><freejoint/><geom name="ga" size="0.1"/>
    <body name="child" pos="0.15 0 0"><joint axis="0 1 0"/><geom name="gc" size="0.1" contype="0" conaffinity="0"/>
    </body></body>
  <body name="b" pos="1 0 1"><freejoint/><geom name="gb" size="0.1"/></body>
  <body name="c" pos="2 0 1"><freejoint/><geom name="gq" size="0.1" contype="0" conaffinity="0"/></body>
  </worldbody><contact><exclude body1="a" body2="b"/>
  <pair name="excluded" geom1="ga" geom2="gb" friction="0.4 0.4 0.01 0.001 0.001"/>
  <pair name="kept apart" geom1="gb" geom2="gq" friction="0.3 0.2 0.01 0.001 0.001" condim="4" solref="0.01 1"/>
  <pair name="smooth" geom1="gc" geom2="gq" condim="1"/><pair name="ground" geom1="floor" geom2="gq"/>
  </contact></mujoco>"""


def test_pairs_of_geoms(tmp_path):
    """Mutual contacts are the pairs of <pair>, with their friction, also those that filters keep apart."""
    path = tmp_path / "pairs.xml"
    path.write_text(PAIRED, encoding="utf-8")
    with pytest.warns(ls.LeftOutWarning) as told:
        robot = ls.load_mjcf(path)
    for part in (
        "contact with a static shape of pair 'ground'",
        "friction that depends on the direction of pair 'kept apart'",
        "torsional and rolling friction of pair 'kept apart'",
        "softness (solref, solimp, margin, gap) of pair 'kept apart'",
    ):
        assert part in told[0].message.report
    compiled, expected = mujoco.MjModel.from_xml_path(str(path)), {}
    data = mujoco.MjData(compiled)
    data.qpos[compiled.jnt_qposadr[compiled.jnt_type == 0]] = 0.0
    mujoco.mj_forward(compiled, data)
    for touch in data.contact:
        names = [compiled.body(int(compiled.geom_bodyid[g])).name for g in touch.geom]
        expected[frozenset(names)] = float(touch.friction[0]) if touch.dim > 1 else 0.0
    contacts = robot.add_mutual_contacts(stiffness=1e3, friction=0.9).contacts
    found = {frozenset((contact.others, link)): contact.friction for contact in contacts for link in contact.links}
    expected.pop(frozenset(("world", "c")), None)
    assert {frozenset(("a", "b")): 0.4, frozenset(("b", "c")): 0.3, frozenset(("child", "c")): 0.0} == expected
    found = {pair: friction for pair, friction in found.items() if len(pair) == 2}
    assert found == expected
    ls.save_robot(robot, tmp_path / "pairs.yaml")
    assert ls.load_robot(tmp_path / "pairs.yaml").contact_pairs == robot.contact_pairs
    robot.pair_contacts("wrong", ["a"], ["b"], friction=-1.0)
    with pytest.raises(ls.ModelError, match=r"contact pair 'wrong': friction: must be >= 0 \(got -1.0\)"):
        robot.check()


SOFT = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"/>'
WRONG = {
    "soft": (one(more=f"<worldbody>{SOFT}</worldbody>"), "flex 'cloth': is not rigid and cannot be left out"),
    "keyword": (one('stiffness="a"'), "Element 'joint'.*line 2"),
    "mass": (one(body=""), "mass and inertia of moving bodies"),
    "syntax": ("<mujoco>", "XML"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_name_file_and_element(tmp_path, name):
    """Purpose: what MuJoCo refuses, and what would be another mechanism when it is left out, names file and element."""
    text, rule = WRONG[name]
    with pytest.raises(ls.ModelError, match=rule) as raised:
        written(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path / 'robot.xml'}: ")
    with pytest.raises(FileNotFoundError):
        ls.load_mjcf(tmp_path / "none.xml")


def test_rotors(tmp_path):
    """Purpose: armature of hinges, slides and balls, and of motors behind gears, is felt as in MuJoCo."""
    text = TREE.replace('type="ball"', 'type="ball" armature="0.02"').replace(
        'axis="1 0 0"', 'axis="1 0 0" armature="3"'
    )
    text = text.replace('name="shoulder"', 'name="shoulder" armature="0.4"')
    plain = written(tmp_path, TREE)[0].build()
    robot, compiled = written(tmp_path, text)
    for q, v in states(robot, 4):
        agrees(robot, compiled, q, v)
    apart = ls.mass_matrix(robot.build(), q) - ls.mass_matrix(plain, q)
    np.testing.assert_allclose(np.diag(apart), [3, 0, 0.4, 0.02, 0.02, 0.02, 0], atol=1e-12)
    if hasattr(compiled, "actuator_armature"):
        more = '<actuator><motor name="m" joint="j" gear="50" armature="1e-3"/></actuator>'
        agrees(*written(tmp_path, one('armature="0.3"', more=more)), [0.4], [0.1])


def test_what_mujoco_warns_of_is_reported_and_no_file(tmp_path, monkeypatch, caplog):
    """The log says it. MuJoCo's own way is a file MUJOCO_LOG.TXT in the current folder; a handler of the user's is
    kept."""
    monkeypatch.chdir(tmp_path)
    text = '<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1"/></body></worldbody>'
    text += '<keyframe><key qpos="0 0 0 1 0 0 nan"/></keyframe></mujoco>'
    Path("robot.xml").write_text(text, encoding="utf-8")
    load("robot.xml")
    assert [text.split(". ")[0] for text in caplog.messages] == ["robot.xml: MuJoCo warns: XML contains a 'NaN'"]
    assert [path.name for path in tmp_path.iterdir()] == ["robot.xml"]
    assert mujoco.get_mju_user_warning() is None
    heard = []
    mujoco.set_mju_user_warning(heard.append)
    try:
        load("robot.xml")
    finally:
        mujoco.set_mju_user_warning(None)
    assert len(heard) == 1 and "NaN" in heard[0]


def load(path):
    """Read a file, whatever it leaves out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        return ls.load_mjcf(path)


def test_a_mesh_that_no_balls_fit_is_named(tmp_path):
    """By the file, the geom, and what to do."""
    flat = '<mesh name="m" inertia="shell" vertex="0 0 0 1 0 0 0 1 0 1 1 0" face="0 1 2 1 3 2"/>'
    text = f'<mujoco><asset>{flat}</asset><worldbody><body name="b"><freejoint/><geom name="g" type="mesh" mesh="m" '
    (tmp_path / "r.xml").write_text(text + 'mass="1"/></body></worldbody></mujoco>', encoding="utf-8")
    with pytest.raises(ls.ModelError, match=r"r\.xml"):
        load(tmp_path / "r.xml")


def test_names_that_are_no_text_are_refused(tmp_path):
    """MuJoCo takes any bytes; the error names the file and shows them."""
    text = b'<mujoco><worldbody><body name="fore\xff\xfearm"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    (tmp_path / "r.xml").write_bytes(text)
    with pytest.raises(ls.ModelError, match=r"r\.xml: names must be UTF-8 text \(got b'fore\\xff\\xfearm'\)"):
        load(tmp_path / "r.xml")
