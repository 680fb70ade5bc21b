"""Equality constraints and servos of MJCF files, against MuJoCo's mass matrix and Jacobians."""

import re
import warnings

import numpy as np
import pytest
from scipy.linalg import null_space

import lissom as ls

mujoco = pytest.importorskip("mujoco")

ARMS = """<body name="left" pos="0 0 1"><joint name="l1" axis="0 1 0" ref="20"/>
    <joint name="l0" axis="1 0 0" pos="0 0.1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0.1" mass="1"/>
    <body name="left tip" pos="0.3 0 0.1"><joint name="l2" axis="0.6 0.8 0"/>
      <joint name="l3" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.1 0.02 0.03" pos="0.1 0 0" euler="10 20 30" mass="0.7"/><site name="ls" pos="0.2 0 0"
      euler="0 30 0"/></body></body>
  <body name="right" pos="0.8 0.1 1" euler="0 0 170"><joint name="r1" axis="0 1 0"/><joint name="r0" axis="0 0 1"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0.1" mass="2"/>
    <body name="right tip" pos="0.3 0 0.1" euler="40 0 0"><joint name="r2" axis="0 1 0"/><joint name="r3" axis="1 0 0"/>
      <joint name="r4" axis="0 0 1"/>
      <geom type="box" size="0.1 0.02 0.03" pos="0.1 0 0" mass="0.3"/><site name="rs" pos="0.1 0 0.1"/></body></body>"""
TENDONS = """<tendon><fixed name="one"><joint joint="l1" coef="0.5"/><joint joint="l2" coef="-2"/></fixed>
  <fixed name="two"><joint joint="r1" coef="1.5"/><joint joint="l1" coef="0.1"/></fixed>
  <fixed name="three"><joint joint="r1" coef="1.5"/></fixed></tendon>"""
HELD = {
    "connect": '<connect name="c" body1="left tip" body2="right tip" anchor="0.2 0 0.05"/>',
    "connect to the world": '<connect name="c" body1="left tip" anchor="0.2 0 0.05"/>',
    "connect from the world": '<connect name="c" body1="world" body2="right tip" anchor="0.6 0 1"/>',
    "connect of sites": '<connect name="c" site1="ls" site2="rs"/>',
    "weld": '<weld name="c" body1="left tip" body2="right tip" anchor="0.1 0.2 0.3"/>',
    "weld to the world": '<weld name="c" body1="right tip"/>',
    "weld by a pose": '<weld name="c" body1="left tip" body2="right tip" relpose="0.2 0.1 0 0.9 0.1 0.2 0.3"/>',
    "weld of sites": '<weld name="c" site1="ls" site2="rs"/>',
    "joint": '<joint name="c" joint1="l1" joint2="r1" polycoef="0.1 -1.5 0 0 0"/>',
    "joint at a value": '<joint name="c" joint1="l1" polycoef="0.3 0 0 0 0"/>',
    "joint by a polynomial": '<joint name="c" joint1="l2" joint2="l1" polycoef="0.1 0.5 -0.3 0.2 0.4"/>',
    "tendons": '<tendon name="c" tendon1="one" tendon2="two" polycoef="0.05 2 0 0 0"/>',
    "tendon at a length": '<tendon name="c" tendon1="one" polycoef="0.2 0 0 0 0"/>',
    "tendon by a polynomial": '<tendon name="c" tendon1="one" tendon2="three" polycoef="0.05 1 0.5 0 0.1"/>',
    "two": '<joint joint1="l1" joint2="r1"/><connect body1="left tip" body2="right tip" anchor="0.2 0 0.05"/>',
}


def file(tmp_path, held="", more="", bodies=ARMS):
    """The path of a file of two arms with constraints."""
    path = tmp_path / "arms.xml"
    flag = '<option gravity="0.5 0.2 -9.81"><flag contact="disable"/></option>'
    inside = f"<worldbody>{bodies}</worldbody>{TENDONS}<equality>{held}</equality>{more}"
    path.write_text(f'<mujoco model="arms">{flag}{inside}</mujoco>', encoding="utf-8")
    return path


def load(path, **options):
    """The robot of a file, without warnings of parts left out, and MuJoCo's model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        return ls.load_mjcf(path, **options), mujoco.MjModel.from_xml_path(str(path))


def jacobian(compiled, q, v=None):
    """Data of MuJoCo at a state, the Jacobian of its equality constraints and their residual."""
    data = mujoco.MjData(compiled)
    data.qpos[:] = q
    data.qvel[:] = 0.0 if v is None else v
    mujoco.mj_forward(compiled, data)
    kept = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    return data, data.efc_J.reshape(-1, compiled.nv)[kept], data.efc_pos[kept]


def accelerations(compiled, q, v, step=1e-6):
    """Accelerations by a dense solution with MuJoCo's mass matrix, forces and Jacobian; its rate by differences."""
    data, J, _ = jacobian(compiled, q, v)
    M = np.zeros((compiled.nv, compiled.nv))
    mujoco.mj_fullM(compiled, M, data.qM) if hasattr(data, "qM") else None
    if not M.any():
        for k, unit in enumerate(np.eye(compiled.nv)):
            mujoco.mj_mulM(compiled, data, M[k], unit)
    ahead, behind = (jacobian(compiled, q + side * step * v)[1] for side in (1, -1))
    bias = (ahead - behind) @ v / (2 * step)
    K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    force = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias
    return np.linalg.lstsq(K, np.concatenate([force, -bias]), rcond=1e-12)[0][: compiled.nv]


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
@pytest.mark.parametrize("name", HELD)
def test_constraints_are_those_of_mujoco(tmp_path, name):
    """Assembled states have no residual in MuJoCo, rates of one are those of the other, and so are accelerations."""
    robot, compiled = load(file(tmp_path, HELD[name]))
    model = robot.build()
    start = 0.2 * np.random.default_rng(3).normal(size=model.nq)
    q = ls.assemble(model, start)
    _, J, residual = jacobian(compiled, q)
    assert np.abs(residual).max() < 1e-9
    ours = ls.constraint_jacobian(model, q)
    free = null_space(J, rcond=1e-9)
    assert len(ours) == len(J)
    assert free.shape[1] == model.nv - np.linalg.matrix_rank(ours, tol=1e-9)
    assert np.abs(ours @ free).max() < 1e-9
    for v, tolerance in (
        (np.zeros(model.nv), 1e-9),
        (free @ np.random.default_rng(4).normal(size=free.shape[1]), 1e-6),
    ):
        expected = accelerations(compiled, q, v)
        found = ls.forward_dynamics(model, q, v)
        np.testing.assert_allclose(found, expected, atol=tolerance * max(np.abs(expected).max(), 1.0))


def test_constraints_of_the_robot_are_saved(tmp_path):
    """A robot file holds them, bit for bit."""
    robot, _ = load(file(tmp_path, HELD["joint by a polynomial"] + HELD["connect"].replace('"c"', '"d"')))
    ls.save_robot(robot, tmp_path / "arms.yaml")
    read = ls.load_robot(tmp_path / "arms.yaml")
    q, v = np.full(9, 0.1), np.full(9, 0.3)
    a, b = robot.build(), read.build()
    np.testing.assert_array_equal(ls.constraint_jacobian(a, q), ls.constraint_jacobian(b, q))
    np.testing.assert_array_equal(ls.inverse_dynamics(a, q, v, v), ls.inverse_dynamics(b, q, v, v))


def test_inactive_constraints_hold_nothing(tmp_path):
    """They are listed; flags that switch constraints off do the same for all."""
    held = HELD["joint"].replace("<joint", '<joint active="false"')
    with pytest.warns(ls.LeftOutWarning, match="inactive constraint of equality 'c'"):
        robot = ls.load_mjcf(file(tmp_path, held))
    assert not robot.loops and not robot.joint_couplings
    path = file(tmp_path, HELD["weld"])
    path.write_text(path.read_text().replace('contact="disable"', 'equality="disable"'))
    robot, _ = load(path)
    assert not robot.loops


LOW = '<site name="low" pos="0.2 0.3 0.1"/>'
SPATIAL = """<tendon><spatial name="cord"><site site="ls"/><site site="rs"/></spatial>
    <spatial name="rope"><site site="rs"/><site site="ls"/><pulley divisor="2"/><site site="ls"/><site site="low"/>
    </spatial></tendon>"""


@pytest.mark.parametrize("held", ['tendon1="cord"', 'tendon1="cord" tendon2="rope" polycoef="0.1 -0.7 0 0 0"'])
def test_equalities_of_spatial_tendons_are_springs(tmp_path, held):
    """A spring pulls the residual of the equality to zero; the warning says so."""
    bodies = ARMS + LOW
    path = file(tmp_path, f'<tendon name="c" {held}/>', SPATIAL, bodies)
    with pytest.warns(ls.LeftOutWarning, match="rigidity .a spring of limit_stiffness holds the tendon. of equality"):
        robot = ls.load_mjcf(path, limit_stiffness=700.0)
    compiled, sprung = load(path)[1], robot.build()
    free = load(file(tmp_path, "", SPATIAL, bodies))[0].build()
    for seed in range(4):
        q, v = np.random.default_rng(seed).normal(size=(2, sprung.nv))
        _, J, residual = jacobian(compiled, q)
        pull = ls.inverse_dynamics(sprung, q, v, 0 * v) - ls.inverse_dynamics(free, q, v, 0 * v)
        np.testing.assert_allclose(pull, 700.0 * J.T @ residual, rtol=0, atol=1e-9)
        assert np.abs(pull).max() > 1.0


WRONG = {
    "spatial": (
        '<tendon name="c" tendon1="cord" tendon2="three"/>',
        "equality 'c': must be linear in tendons that are all fixed or all spatial",
        {},
    ),
    "several joints": (
        '<tendon name="c" tendon1="three" tendon2="one" polycoef="0 1 1 0 0"/>',
        "equality 'c': must be linear in a tendon of several joints",
        {},
    ),
    "two roots": (
        HELD["joint"],
        "needs one body in the world for base= (got ['left', 'right'])",
        {"base": ls.JointFixed()},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_constraints_that_cannot_be_held_are_named(tmp_path, name):
    """By the file, the element and the rule."""
    held, rule, options = WRONG[name]
    path = file(tmp_path, held, SPATIAL, ARMS + LOW)
    with pytest.raises(ls.ModelError, match=re.escape(rule)) as error:
        load(path, **options)
    assert str(error.value).startswith(f"{path}: ")


SERVOS = """<actuator><position name="p" joint="l1" kp="30" kv="2" gear="3"/><velocity name="v" joint="r1" kv="5"/>
  <motor name="m" joint="l3" gear="4"/><general name="g" joint="r2" gainprm="3" gear="2" biastype="affine"
  biasprm="0.7 -5 -0.2"/><motor name="t" tendon="one" gear="2"/><position name="pt" tendon="three" kp="8" gear="0.5"/>
  <general name="both" tendon="one" gear="-2" gainprm="5" biastype="affine" biasprm="0.4 -7 -0.3"/>
  <general name="two laws" joint="l1" gainprm="1.5" biastype="affine" biasprm="0.3 -2 0"/></actuator>"""


def test_servos_are_those_of_mujoco(tmp_path):
    """Positions, velocities and affine laws give the accelerations of MuJoCo under their inputs, behind gears and fixed
    tendons, with the springs of the joints."""
    bodies = ARMS.replace('name="l1"', 'name="l1" stiffness="4" springref="50" damping="0.3"')
    robot, compiled = load(file(tmp_path, "", SERVOS, bodies))
    model, rng = robot.build(), np.random.default_rng(5)
    assert model.inputs.names == tuple(compiled.actuator(k).name for k in range(compiled.nu))
    for _ in range(5):
        q, v, u = rng.uniform(-1, 1, model.nq), rng.uniform(-1, 1, model.nv), rng.uniform(-2, 2, model.nu)
        data = mujoco.MjData(compiled)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(compiled, data)
        expected = data.qacc_smooth
        np.testing.assert_allclose(ls.forward_dynamics(model, q, v, u), expected, atol=1e-9 * np.abs(expected).max())


def test_laws_that_are_no_springs_are_listed(tmp_path):
    """A constant force over two joints, a servo that pushes away, one with a state; the input is a force before the
    gear."""
    more = """<actuator><general name="two" tendon="one" gear="2" biastype="affine"
      biasprm="3 0 0"/><general name="away" joint="r1" gear="4"
      biastype="affine" biasprm="0 5 0"/><intvelocity name="state" joint="l1" actrange="-1 1"/>
      <general name="push" joint="r2" biastype="affine" biasprm="3 0 0"/></actuator>"""
    with pytest.warns(ls.LeftOutWarning) as told:
        model = ls.load_mjcf(file(tmp_path, "", more)).build()
    for name in ("two", "away", "state", "push"):
        assert f"law (its input is the force before its gear) of actuator {name!r}" in told[0].message.report
    B = ls.actuation_matrix(model, model.neutral())
    np.testing.assert_allclose(B[[0, 2], 0], [1.0, -4.0])
    assert B[4, 1] == 4.0


def test_base_and_motors(tmp_path):
    """`base` replaces the joints of the root body, and `motors` drive all joints that nothing drives."""
    bodies = ARMS[: ARMS.index('<body name="right"')]
    path = tmp_path / "one.xml"
    more = '<actuator><motor name="m" joint="l1"/><motor name="n" joint="l2"/></actuator>'
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody>{more}</mujoco>", encoding="utf-8")
    robot, _ = load(path, motors=True)
    assert robot.build().inputs.names == ("m", "n", "l0", "l3")
    with pytest.warns(ls.LeftOutWarning, match="transmission of its kind of actuator 'm'"):
        robot = ls.load_mjcf(path, base=ls.JointFree(), motors=True)
    assert isinstance(robot.links["left"].joint, ls.JointFree)
    model = robot.build()
    assert model.nv == 8 and model.inputs.names == ("n", "l3")
    assert ls.frame_pose(model, model.neutral(), "left")[:3, 3] == pytest.approx([0, 0, 1])


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_packages(tmp_path):
    """Meshes of `package://` are found in the folders that are given."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "m.obj").write_text(TETRAHEDRON)
    text = '<asset><mesh name="m" file="package://parts/m.obj"/></asset><worldbody><body name="b"><freejoint/>'
    path = tmp_path / "mesh.xml"
    path.write_text(f'<mujoco>{text}<geom type="mesh" mesh="m"/></body></worldbody></mujoco>', encoding="utf-8")
    robot = ls.load_mjcf(path, packages={"parts": tmp_path / "there"}, balls=0)
    assert robot.links["b"].body.mass == pytest.approx(1000 / 6)
    with pytest.raises(ls.ModelError, match=r"m\.obj"):
        ls.load_mjcf(path)


def test_dampers_of_actuators(tmp_path):
    """They act on joints and on tendons of several joints, beside the law of the actuator."""
    more = """<actuator><general name="one" joint="l1" gear="2" damping="3"/>
      <position name="several" tendon="one" kp="2" damping="0.7"/></actuator>"""
    robot, compiled = load(file(tmp_path, "", more))
    model, rng = robot.build(), np.random.default_rng(6)
    for _ in range(3):
        q, v, u = rng.uniform(-1, 1, model.nq), rng.uniform(-1, 1, model.nv), rng.uniform(-2, 2, model.nu)
        data = mujoco.MjData(compiled)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(compiled, data)
        found, expected = ls.forward_dynamics(model, q, v, u), data.qacc_smooth
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_names_of_tendons_may_be_those_of_equalities(tmp_path):
    """The spring of a tendon and the constraint that holds it both stay, under different names."""
    held = '<tendon name="one" tendon1="one" tendon2="two"/><joint name="two" joint1="l1" joint2="r1"/>'
    path = file(tmp_path, held)
    text = path.read_text().replace('<fixed name="one">', '<fixed name="one" stiffness="3">')
    path.write_text(text.replace('<fixed name="two">', '<fixed name="two" damping="2">'), encoding="utf-8")
    couplings = load(path)[0].joint_couplings
    assert [x.is_elastic for x in couplings.values()] == [True, True, False, False]
    assert list(couplings) == ["one", "two", "one of its equality", "two of its equality"]
