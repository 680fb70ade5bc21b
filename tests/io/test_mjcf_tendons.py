"""Spatial tendons of MJCF files, their springs and their actuators, against MuJoCo."""

import warnings

import numpy as np
import pytest

import lissom as ls

mujoco = pytest.importorskip("mujoco")

LIMB = """<body name="low" pos="0 0 1"><joint name="a" axis="0 1 0.1"/><geom name="bone" type="capsule" size="0.03"
      fromto="0 0 0 0.3 0 0" mass="1"/><site name="s1" pos="0.1 0.03 0.06"/>
    <geom name="pin" type="cylinder" size="0.04" fromto="0.3 -0.1 0.02 0.3 0.1 0.02" mass="0.1"/>
    <geom name="knob" type="sphere" size="0.05" pos="0.15 0.02 0.01" mass="0.1"/>
    <site name="above" pos="0.3 0 0.2"/><site name="under" pos="0.3 0.02 -0.2"/>
    <body name="high" pos="0.3 0 0"><joint name="b" axis="0 1 0" ref="10"/><joint name="c" axis="0 0 1" pos="0 0.05 0"/>
      <geom type="box" size="0.1 0.02 0.03" pos="0.1 0 0" euler="10 20 30" mass="0.7"/>
      <site name="s2" pos="0.1 0.01 0.05"/><site name="s3" pos="0.15 -0.03 -0.04"/>
      <body name="tip" pos="0.2 0 0"><joint name="d" type="ball"/><geom size="0.03" mass="0.2" pos="0.05 0 0.02"/>
        <site name="s4" pos="0.05 0 0.03"/></body></body></body>"""
WORLD = """<site name="hook" pos="0.1 0.2 1.5"/>
    <geom name="peg" type="cylinder" size="0.05 0.1" pos="0.3 0.1 1.3" euler="90 0 0"/>"""
PATHS = {
    "straight": '<site site="s1"/><site site="s2"/>',
    "of three sites": '<site site="s1"/><site site="s2"/><site site="s4"/>',
    "from the world": '<site site="hook"/><site site="s3"/>',
    "round a cylinder": '<site site="s1"/><geom geom="pin"/><site site="s2"/>',
    "over a cylinder": '<site site="s1"/><geom geom="pin" sidesite="above"/><site site="s2"/>',
    "under a cylinder": '<site site="s1"/><geom geom="pin" sidesite="under"/><site site="s3"/>',
    "round a sphere": '<site site="s1"/><geom geom="knob"/><site site="s3"/><site site="s4"/>',
    "round a peg": '<site site="hook"/><geom geom="peg"/><site site="s4"/>',
    "with pulleys": '<site site="s1"/><geom geom="pin" sidesite="above"/><site site="s2"/><pulley divisor="2"/>'
    '<site site="s2"/><site site="s4"/><pulley divisor="3"/><site site="hook"/><site site="s3"/>',
}
MOTOR = '<motor name="m" tendon="t" gear="-1.7"/>'


def load(tmp_path, path, actuators=MOTOR, more=""):
    """The robot of a file with one tendon and its actuators, and MuJoCo's model; without stops and constraints."""
    file, flag = tmp_path / "limb.xml", '<flag constraint="disable"/>'
    file.write_text(
        f"<mujoco><option gravity='0.3 0.2 -9.81'>{flag}</option><worldbody>{WORLD}{LIMB}</worldbody><tendon>"
        f'<spatial name="t" {more}>{path}</spatial></tendon><actuator>{actuators}</actuator></mujoco>',
        encoding="utf-8",
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = ls.load_mjcf(file)
    return robot, mujoco.MjModel.from_xml_path(str(file)), " ".join(str(w.message) for w in told)


def states(model, count=6):
    """Random q, v and u."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        yield ls.integrate(model, model.neutral(), rng.uniform(-0.9, 0.9, model.nv)), *rng.normal(size=(2, model.nv))


def forces(compiled, q, v, u):
    """Passive and actuator forces of MuJoCo, and its data."""
    data = mujoco.MjData(compiled)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    mujoco.mj_forward(compiled, data)
    return data.qfrc_passive + data.qfrc_actuator, data


@pytest.mark.parametrize("name", PATHS)
def test_lengths_and_forces_are_those_of_mujoco(tmp_path, name):
    """Lengths of all branches, forces of the actuator and accelerations at random states."""
    robot, compiled, told = load(tmp_path, PATHS[name])
    assert "'t'" not in told
    model = robot.build()
    assert model.inputs.names == ("m",)
    divisors = {name: 1.7 / gain for name, gain in robot.couplings["m"].gains.items()}
    for q, v, _ in states(model):
        u = np.array([0.7])
        _, data = forces(compiled, q, v, u)
        np.testing.assert_allclose(ls.actuation_matrix(model, q) @ u, data.qfrc_actuator, atol=1e-10)
        np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, 0 * v), data.qfrc_bias, atol=1e-10)
        np.testing.assert_allclose(ls.forward_dynamics(model, q, v, u), data.qacc, atol=1e-8 * np.abs(data.qacc).max())
        lengths = ls.path_lengths(model, q)
        assert abs(sum(lengths[k] / d for k, d in enumerate(divisors.values())) - data.ten_length[0]) < 1e-10


SERVOS = {
    "position": '<position name="m" tendon="t" kp="30" kv="2" gear="1.5"/>',
    "velocity": '<velocity name="m" tendon="t" kv="3"/>',
    "general": '<general name="m" tendon="t" gear="-2" gainprm="5" biastype="affine" biasprm="0.4 -7 -0.3"/>',
}


@pytest.mark.parametrize("name", SERVOS)
@pytest.mark.parametrize("path", PATHS)
def test_servos_on_spatial_tendons_are_those_of_mujoco(tmp_path, path, name):
    """The force of the servo, of the spring and the damper of the tendon at random states and inputs."""
    more = 'stiffness="11" damping="0.6" springlength="0.2"'
    robot, compiled, told = load(tmp_path, PATHS[path], SERVOS[name], more)
    assert "'t'" not in told and "'m'" not in told
    model = robot.build()
    for q, v, u in states(model):
        force, data = forces(compiled, q, v, u[:1])
        expected = data.qfrc_bias - force
        found = ls.inverse_dynamics(model, q, v, 0 * v) - ls.actuation_matrix(model, q) @ u[:1]
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("lengths", ["0.2 0.5", "0 0.3", "0.9 1.2"])
@pytest.mark.parametrize("name", ["straight", "with pulleys"])
def test_springs_that_are_slack_in_a_range_of_lengths(tmp_path, name, lengths):
    """The spring of a tendon has no force between two lengths."""
    robot, compiled, told = load(tmp_path, PATHS[name], "", f'stiffness="11" springlength="{lengths}"')
    assert "'t'" not in told
    model = robot.build()
    for q, v, _ in states(model):
        force, data = forces(compiled, q, v, [])
        np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, 0 * v), data.qfrc_bias - force, atol=1e-10)


def test_a_path_that_begins_with_a_pulley(tmp_path):
    """The first factor is not one: the law is rescaled, with the same power."""
    laws = ('stiffness="11" damping="0.6" springlength="0.2"', 'stiffness="11" springlength="0.1 0.3"',
            'limited="true" range="0 0.1"')  # fmt: skip
    for path in ("of three sites", "with pulleys"):
        for law in laws:
            pulley = f'<pulley divisor="3"/>{PATHS[path]}'
            robot, compiled, told = load(tmp_path, pulley, SERVOS["position"], law)
            assert "'t'" not in told and "'m'" not in told
            model = robot.build()
            for q, v, u in states(model):
                force, data = forces(compiled, q, v, u[:1])
                length = float(data.ten_length[0])
                np.testing.assert_allclose(ls.spring_lengths(model, q)[0] / 3.0, length, rtol=0, atol=1e-12)
                over = 1e4 * (length - 0.1) if "limited" in law else 0.0
                J = data.ten_J.reshape(model.nv)
                found = ls.inverse_dynamics(model, q, v, 0 * v) - ls.actuation_matrix(model, q) @ u[:1]
                np.testing.assert_allclose(found, data.qfrc_bias - force + J * over, atol=1e-9)


def test_parts_of_tendons_that_are_left_out(tmp_path):
    """A path inside a shape, and a servo and a spring that push away, are named in the warning."""
    inside = '<site site="s1"/><geom geom="pin" sidesite="inside"/><site site="s2"/>'
    robot, _, told = load(tmp_path, inside.replace("inside", "s1"))
    assert "side that moves" not in told  # on the same body
    robot, _, told = load(tmp_path, inside.replace("inside", "s4"))
    assert "path inside a shape, or on a side that moves against it of tendon 't'" in told
    assert "transmission of its kind of actuator 'm'" in told and not robot.actuators
    push = '<general name="m" tendon="t" biastype="affine" gainprm="1" biasprm="0 3 0"/>'
    robot, _, told = load(tmp_path, PATHS["of three sites"], push, 'stiffness="-2"')
    assert "law (its input is the force before its gear) of actuator 'm'" in told
    assert "stiffness of tendon 't'" in told and not robot.springs


def test_tendons_of_files_are_saved(tmp_path):
    """A robot file holds them, bit for bit."""
    robot, _, _ = load(tmp_path, PATHS["with pulleys"])
    ls.save_robot(robot, tmp_path / "limb.yaml")
    a, b = robot.build(), ls.load_robot(tmp_path / "limb.yaml").build()
    q = next(states(a))[0]
    np.testing.assert_array_equal(ls.actuation_matrix(a, q), ls.actuation_matrix(b, q))


FIXED = {
    "spring": 'stiffness="11" springlength="0.2"',
    "spring at the first length": 'stiffness="11"',
    "spring that is slack": 'stiffness="11" springlength="-0.3 0.4"',
    "damper": 'damping="0.7"',
    "both": 'stiffness="3" damping="0.7" springlength="-0.1"',
}


def fixed(tmp_path, law, actuators=""):
    """As `load`, with a fixed tendon of three joints, one of them behind an offset."""
    file = tmp_path / "limb.xml"
    joints = '<joint joint="a" coef="0.7"/><joint joint="b" coef="-1.3"/><joint joint="c" coef="0.4"/>'
    file.write_text(
        f'<mujoco><option><flag constraint="disable"/></option><worldbody>{WORLD}{LIMB}</worldbody><tendon>'
        f'<fixed name="t" {law}>{joints}</fixed></tendon><actuator>{actuators}</actuator></mujoco>',
        encoding="utf-8",
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = ls.load_mjcf(file, limit_stiffness=300.0, limit_damping=2.0)
    return robot, mujoco.MjModel.from_xml_path(str(file)), " ".join(str(w.message) for w in told)


@pytest.mark.parametrize("name", FIXED)
def test_springs_and_dampers_of_fixed_tendons_are_those_of_mujoco(tmp_path, name):
    """Their forces and the accelerations at random states, and under a servo of the same tendon."""
    servo = SERVOS["general"]
    robot, compiled, told = fixed(tmp_path, FIXED[name], servo)
    assert "'t'" not in told and "'m'" not in told
    model = robot.build()
    for q, v, u in states(model):
        force, data = forces(compiled, q, v, u[:1])
        found = ls.inverse_dynamics(model, q, v, 0 * v) - ls.actuation_matrix(model, q) @ u[:1]
        np.testing.assert_allclose(found, data.qfrc_bias - force, rtol=0, atol=1e-10)
        expected = data.qacc_smooth
        found = ls.forward_dynamics(model, q, v, u[:1])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))


def test_limits_of_fixed_tendons_are_stops(tmp_path):
    """Between the limits there is no force; beyond, the stop pushes the joints back by their coefficients."""
    robot, compiled, told = fixed(tmp_path, 'limited="true" range="-0.5 0.6"')
    assert "'t'" not in told
    coupling = robot.joint_couplings["t"]
    assert coupling.limits == (-0.5, 0.6) and coupling.limit_stiffness == 300.0
    model, seen = robot.build(), set()
    for q, v, _ in states(model, 20):
        force, data = forces(compiled, q, 0 * v, [])
        gap = ls.inverse_dynamics(model, q, 0 * v, 0 * v) - (data.qfrc_bias - force)
        length = float(data.ten_length[0])
        over = max(length - 0.6, 0.0) - max(-0.5 - length, 0.0)
        expected = 300.0 * (abs(over) - 5e-4) * np.sign(over) if abs(over) > 1e-3 else 0.0
        if not 0.0 < abs(over) < 1e-3:
            seen.add(np.sign(over))
            J = np.zeros(6)
            J[:3] = 0.7, -1.3, 0.4
            np.testing.assert_allclose(gap, J * expected, rtol=0, atol=1e-10)
    assert seen == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("limits", ["0 0.7", "0.4 0.7", "0 0.1"])
@pytest.mark.parametrize("name", ["from the world", "round a peg", "with pulleys"])
def test_limits_of_spatial_tendons_are_springs(tmp_path, name, limits):
    """A spatial tendon is pulled back beyond its range, and pushed below it."""
    robot, compiled, told = load(tmp_path, PATHS[name], "", f'limited="true" range="{limits}"')
    assert "'t'" not in told
    low, high = map(float, limits.split())
    model = robot.build()
    for q, v, _ in states(model):
        force, data = forces(compiled, q, 0 * v, [])
        length, J = float(data.ten_length[0]), np.zeros((1, model.nv))
        h = 1e-6
        for k, unit in enumerate(np.eye(model.nv)):
            ends = [forces(compiled, ls.integrate(model, q, x * unit), 0 * v, [])[1].ten_length[0] for x in (h, -h)]
            J[0, k] = (ends[0] - ends[1]) / (2 * h)
        tension = 1e4 * (max(length - high, 0.0) - max(low - length, 0.0))
        gap = ls.inverse_dynamics(model, q, 0 * v, 0 * v) - (data.qfrc_bias - force)
        np.testing.assert_allclose(gap, J[0] * tension, rtol=0, atol=1e-8 * max(abs(tension), 1.0))


def test_armature_of_a_fixed_tendon(tmp_path):
    """That of one joint is the armature of the joint; that of several is named in the warning."""
    file, one = tmp_path / "limb.xml", '<fixed name="t" armature="0.3"><joint joint="a" coef="0.7"/></fixed>'
    for tendon, is_named in ((one, False), (one.replace("/></", '/><joint joint="b" coef="1"/></'), True)):
        inside = f"<worldbody>{WORLD}{LIMB}</worldbody><tendon>{tendon}</tendon>"
        file.write_text(f"<mujoco>{inside}</mujoco>", encoding="utf-8")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = ls.load_mjcf(file).build()
        assert ("armature of tendon 't'" in " ".join(str(w.message) for w in told)) == is_named
        compiled = mujoco.MjModel.from_xml_path(str(file))
        data, M = mujoco.MjData(compiled), np.zeros((compiled.nv, compiled.nv))
        data.qpos[:] = q = next(states(model))[0]
        mujoco.mj_forward(compiled, data)
        for k, unit in enumerate(np.eye(compiled.nv)):
            mujoco.mj_mulM(compiled, data, M[k], unit)
        found = ls.mass_matrix(model, q)
        assert is_named or np.abs(found - M).max() < 1e-10
