"""Readers of robot files use a part or name it: attributes, quaternions, colors, controls, products of inertia."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1.2" iyz="0" izz="1.4"/>'
BALL = '<{}><origin/><geometry><sphere radius="0.1"/></geometry></{}>'


def read(load, path, text, **options):
    """The robot of a text, and all that its warnings report."""
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = load(path, **options)
    return robot, "\n".join(getattr(w.message, "report", str(w.message)) for w in told)


# -- URDF -------------------------------------------------------------------------------------------------------------


def urdf(origin="", inertia=INERTIA, visual="", joint="", head="", more=""):
    """A file of one joint that turns, with given parts."""
    return f"""<robot name="r"{head}>
<link name="w"/>
<link name="b"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>{inertia}</inertial>{visual}</link>
<joint name="j" type="continuous"{joint}><origin xyz="0.5 0 0"{origin}/><parent link="w"/><child link="b"/></joint>
{more}</robot>"""


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_quaternions_of_origins(tmp_path, version):
    """Purpose: quat_xyzw turns joints, inertias and shapes, also where it is not of unit length; frames were off."""
    rng, head = np.random.default_rng(4), f' version="{version}"'
    for scale in (1.0, 3.0, 1e-200):
        q = scale * rng.normal(size=4)
        quat = ' quat_xyzw="{!r} {!r} {!r} {!r}"'.format(*q.tolist())
        inertia, ball = INERTIA, BALL.format("visual", "visual").replace("<origin", f"<origin{quat}")
        text = urdf(quat, inertia, ball, head=head).replace('xyz="0.1 0 0"', f'xyz="0.1 0 0"{quat}')
        robot, said = read(ls.load_urdf, tmp_path / "r.urdf", text)
        assert not said
        R = Rotation.from_quat(q / np.abs(q).max()).as_matrix()
        body, joint = robot.links["b"].body, np.asarray(robot.links["b"].placement)
        np.testing.assert_allclose(joint[:3, :3], R, atol=1e-14)
        np.testing.assert_allclose(body.inertia, R @ np.diag([1, 1.2, 1.4]) @ R.T, atol=1e-14)
        np.testing.assert_allclose(np.asarray(body.meshes[0].placement)[:3, :3], R, atol=1e-14)


@pytest.mark.parametrize(
    ("turn", "rule"),
    [(' rpy="0 0 0" quat_xyzw="0 0 0 1"', "must have one of the attributes 'rpy' and 'quat_xyzw'"),
     (' quat_xyzw="0 0 0 0"', "'quat_xyzw' must not be zero"),
     (' quat_xyzw="0 0 1"', "'quat_xyzw' must be 4 finite numbers")],
)  # fmt: skip
def test_wrong_quaternions(tmp_path, turn, rule):
    """Purpose: an origin that turns twice, or by no rotation, is refused with its line."""
    with pytest.raises(ls.ModelError, match=rf"line 4: origin: .*{rule}"):
        read(ls.load_urdf, tmp_path / "r.urdf", urdf(turn))


UNKNOWN = {  # an attribute that URDF does not have, or that lissom does not use, and its name in the warning
    "attribute 'axis' of joint 'j' (line 4)": urdf(joint=' axis="0 0 1"'),
    "attribute 'quat' of <origin> of joint 'j' (line 4)": urdf(' quat="1 0 0 0"'),
    "attribute 'iyx' of <inertia> of link 'b' (line 3)": urdf(inertia=INERTIA.replace("/>", ' iyx="0"/>')),
    "attribute 'model' of robot 'r' (line 1)": urdf(head=' model="x"'),
    "attribute 'type' of transmission 't' (line 5)": urdf(
        more='<transmission name="t" type="x"><joint name="j"/><actuator name="m"/></transmission>'
    ),
    "attribute 'acceleration' of <limit> of joint 'j' (line 5)": urdf().replace(
        "</joint>", '\n<limit effort="0" velocity="0" acceleration="3"/></joint>'
    ),
    "attribute 'diameter' of <sphere> of link 'b' (line 3)": urdf(
        visual=BALL.format("visual", "visual").replace("0.1", '0.1" diameter="1')
    ),
}


@pytest.mark.parametrize("part", UNKNOWN)
def test_attributes_that_are_not_read(tmp_path, part):
    """Purpose: an attribute that is not used is named with its element; the rest of the file is read."""
    robot, said = read(ls.load_urdf, tmp_path / "r.urdf", UNKNOWN[part])
    assert said.splitlines() == [part] and robot.build().nv == 1


def test_namespaces_are_no_attributes(tmp_path):
    """Purpose: declarations of xacro, which stay in files, are not reported."""
    _, said = read(ls.load_urdf, tmp_path / "r.urdf", urdf(head=' xmlns:xacro="http://www.ros.org/wiki/xacro"'))
    assert not said


def test_inertia_without_products(tmp_path):
    """Purpose: products of inertia that a file leaves out are zero, which a line says; moments are required."""
    text = urdf(inertia='<inertia ixx="1" ixy="0.1" iyy="1.2" izz="1.4"/>')
    robot, said = read(ls.load_urdf, tmp_path / "r.urdf", text)
    assert said == "<inertia> without products of link 'b' (line 3)"
    np.testing.assert_array_equal(robot.links["b"].body.inertia, [[1, 0.1, 0], [0.1, 1.2, 0], [0, 0, 1.4]])
    with pytest.raises(ls.ModelError, match="line 3: inertia: the attribute 'ixz' is required"):
        read(ls.load_urdf, tmp_path / "r.urdf", text, strict=True)
    with pytest.raises(ls.ModelError, match="line 3: inertia: the attribute 'iyy' is required"):
        read(ls.load_urdf, tmp_path / "r.urdf", urdf(inertia='<inertia ixx="1" izz="1"/>'))


def colored(rgba):
    """A visual with a color."""
    return BALL.format("visual", "visual").replace("</v", f'<material name="m"><color rgba="{rgba}"/></material></v')


COLORS = {  # as a file of URDF has it, and as it is drawn
    "1.2 0.7 0.5 1": (1, 0.7, 0.5, 1),
    "-0.1 0.7 0.5 1": (0, 0.7, 0.5, 1),
    "255 128 0 255": (1, 128 / 255, 0, 1),
    "255 128 0 1": (1, 128 / 255, 0, 1),
    "2 0 0 1": (1, 0, 0, 1),
    "300 0 0 255": (1, 0, 0, 1),
}


@pytest.mark.parametrize("rgba", COLORS)
def test_colors_out_of_range(tmp_path, rgba):
    """Purpose: a color beyond 0 to 1, or with numbers to 255, is drawn as it was meant, which a line says."""
    robot, said = read(ls.load_urdf, tmp_path / "r.urdf", urdf(visual=colored(rgba)))
    assert robot.links["b"].body.meshes[0].color == pytest.approx(COLORS[rgba])
    assert said.startswith(f"color of material 'm' (line 3) from ({rgba.replace(' ', ', ')}) to (") and "\n" not in said
    robot, _ = read(ls.load_urdf, tmp_path / "r.urdf", urdf(visual=colored(rgba)), balls=0)
    robot.build()
    with pytest.warns(ls.RepairWarning, match="repaired numbers that no part can have: color of"):
        ls.load_urdf(tmp_path / "r.urdf")


def test_materials_of_other_links(tmp_path):
    """Purpose: a material that another visual has defined gives its color; one that nothing defines is named."""
    other = '<link name="c">{}</link><joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>'
    named = BALL.format("visual", "visual").replace("</v", '<material name="{}"/></v')
    text = urdf(visual=colored("0 1 0 1"), more=other.format(named.format("m")))
    robot, said = read(ls.load_urdf, tmp_path / "r.urdf", text)
    assert not said and robot.links["c"].body.meshes[0].color == (0, 1, 0, 1)
    robot, said = read(ls.load_urdf, tmp_path / "r.urdf", urdf(visual=named.format("n")))
    assert said == "unknown material of material 'n' (line 3)" and robot.links["b"].body.meshes[0].color is None


# -- MJCF -------------------------------------------------------------------------------------------------------------

mujoco = pytest.importorskip("mujoco")


def mjcf(actuators="", geom="", more="", bodies=""):
    """A file of two bodies, one on a ball and one on a hinge, with given actuators."""
    return f"""<mujoco><worldbody>{bodies}<body name="a"><joint name="j" type="ball"/><geom name="g" size=".1"{geom}/>
<body name="b" pos=".2 0 0"><joint name="h" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></body></worldbody>
<actuator>{actuators}</actuator>{more}</mujoco>"""


SEVERAL = {  # an actuator before a motor, and the inputs of the robot
    '<orientation name="o" joint="j" kp="5"/>': ("m",),
    '<orientation name="o" joint="j" kp="5" input="quat"/>': ("m",),
    '<dcmotor name="o" joint="h" motorconst="0.05" resistance="2" input="none"/>': ("m",),
    '<dcmotor name="o" joint="h" motorconst="0.05" resistance="2"/>': ("o", "m"),
    '<pid name="o" joint="h" kp="5" kv="1" input="pos vel ff" ctrlrange="-1 1"/>': ("o", "m"),
}


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "nactuator"), reason="MuJoCo before 4 has one control an actuator")
@pytest.mark.parametrize("actuator", SEVERAL)
def test_actuators_with_no_control_or_several(tmp_path, actuator):
    """Purpose: motors behind such an actuator keep their place, their gear and their limits; it is named itself."""
    motor = '<motor name="m" joint="h" gear="3" ctrlrange="-2 2"/>'
    text = mjcf(actuator + motor, more="<keyframe><key name='k' ctrl='{}'/></keyframe>")
    controls = int(mujoco.MjModel.from_xml_string(text.format("")).nu)
    text = text.format(" ".join(["0.5"] * (controls - 1) + ["1.5"]))
    robot, said = read(ls.load_mjcf, tmp_path / "m.xml", text)
    model = robot.build()
    assert model.inputs.names == SEVERAL[actuator]
    np.testing.assert_allclose(ls.actuation_matrix(model, model.neutral())[:, -1], [0, 0, 0, 3])
    assert model.input_limits[0][-1] == -2.0 and model.input_limits[1][-1] == 2.0
    assert model.state("k")[2][-1] == 1.5 and not model.state("k")[2][:-1].any()
    assert "actuator 'o'" in said and "actuator 'm'" not in said
    assert ("of actuator 'o', whose law is left out, of key 'k'" in said) == (controls > 1)


def test_colors_beyond_one(tmp_path):
    """Purpose: colors beyond 1 are drawn as MuJoCo draws them, which a line says."""
    robot, said = read(ls.load_mjcf, tmp_path / "m.xml", mjcf(geom=' rgba="1.2 -0.5 0.7 1"'))
    assert robot.links["a"].body.meshes[0].color == pytest.approx((1, 0, 0.7, 1))
    assert said == "color of geom 'g' from (1.2, -0.5, 0.7, 1) to (1, 0, 0.7, 1)"
    robot.build()


DROPPED = {  # what MuJoCo uses and the robot does not have
    "margin of its limits of joint 'e'": '<joint name="e" range="0 1" margin="0.1"/>',
    "weights (priority, solmix) of contacts of geom 'f'": '<geom name="f" size="1" priority="2"/>',
    "contacts of the hfield of a body of geom 'f'": '<geom name="f" type="hfield" hfield="d"/>',
}


@pytest.mark.parametrize("part", DROPPED)
def test_numbers_of_bodies_that_are_not_used(tmp_path, part):
    """Purpose: numbers of joints and geoms that MuJoCo uses are named."""
    asset = '<asset><hfield name="d" nrow="2" ncol="2" size="1 1 1 1"/></asset>'
    body = f'<body name="c">{DROPPED[part]}<geom name="z" size="0.1"/></body>'
    _, said = read(ls.load_mjcf, tmp_path / "m.xml", mjcf(bodies=body, more=asset))
    assert part in said.splitlines()


MORE = {
    "time of key 'k'": "<keyframe><key name='k' time='1'/></keyframe>",
    "numbers of all contacts (o_margin, o_solref, o_solimp, o_friction) of <option>": (
        "<option o_friction='2 2 0 0 0'><flag override='enable'/></option>"
    ),
    "margin of its limits of tendon 't'": (
        "<tendon><fixed name='t' range='0 1' margin='0.1'><joint joint='h' coef='1'/></fixed></tendon>"
    ),
}


@pytest.mark.parametrize("part", MORE)
def test_numbers_of_other_parts_that_are_not_used(tmp_path, part):
    """Purpose: numbers of keyframes, options and tendons that MuJoCo uses are named."""
    _, said = read(ls.load_mjcf, tmp_path / "m.xml", mjcf(more=MORE[part]))
    assert part in said.splitlines()
