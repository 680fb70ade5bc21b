"""Motions begin within the stops by default, and a start whose violated stops or contacts throw the robot is told."""

import warnings
from functools import partial

import numpy as np
import pytest

import lissom as ls
from lissom.stepping.stepper import Copies

URDF = """
<robot name="leg">
  <link name="base"/>
  <link name="shank"><inertial><origin xyz="0 0 -0.2"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link>
  <joint name="knee" type="revolute"><parent link="base"/><child link="shank"/><axis xyz="0 1 0"/>
    <limit lower="0.5" upper="1.5" effort="0" velocity="0"/></joint>
</robot>
"""


def warned(call):
    """The PlausibilityWarnings of a call, as texts."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found if one.category is ls.PlausibilityWarning]


def leg(tmp_path):
    """A leg of a file whose knee cannot be straight."""
    (tmp_path / "leg.urdf").write_text(URDF)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        return ls.load_urdf(tmp_path / "leg.urdf")


def test_limits_that_exclude_zero(tmp_path):
    """A joint whose limits exclude zero begins at the nearer one, where its stop stores nothing; neutral is zero."""
    model = leg(tmp_path).build()
    q = ls.start_configuration(model)
    assert q.tolist() == [0.5]
    assert model.neutral().tolist() == [0.0]
    assert ls.energy(model, q, np.zeros(1)).elastic == 0.0
    motion = ls.simulate(model, 0.02, dt=1e-3)
    assert motion.q[0].tolist() == [0.5]
    assert ls.Stepper(model, 1e-3).state.q.tolist() == [0.5]
    assert ls.rollout(model, dt=1e-3, steps=2).q[0].tolist() == [0.5]


def test_thrown_by_stops(tmp_path):
    """A start beyond a stop is told once with joint, depth and energy: U = k ((d − w/2)²/2 + w²/40)."""
    model = leg(tmp_path).build()
    d, w, k = 0.5, 1e-3, 1e4
    energy = k * (0.5 * (d - 0.5 * w) ** 2 + w**2 / 40.0)
    (text,) = warned(lambda: ls.simulate(model, 0.002, model.neutral(), dt=1e-3))
    assert "joint of 'shank' is 0.5 rad beyond its limit 0.5" in text
    assert f"{energy:.4g} J" in text
    assert "start_configuration" in text
    assert warned(lambda: ls.simulate(model, 0.002, model.neutral(), dt=1e-3)) == []
    others = (
        lambda m: ls.Stepper(m, 1e-3, q0=m.neutral()),
        lambda m: ls.rollout(m, m.neutral(), dt=1e-3, steps=1),
        lambda m: Copies(m, 2, dt=1e-3).place([0, 1], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 0))),
    )
    for other in others:
        again = leg(tmp_path).build()
        assert len(warned(partial(other, again))) == 1


def test_batch_of_starts(tmp_path):
    """In a batch one start beyond a stop is told; starts within stops say nothing."""
    model = leg(tmp_path).build()
    inside = np.array([[0.6], [0.7], [0.8]])
    times = [0.0, 0.002]
    assert warned(lambda: ls.simulate(model, 0.002, inside, dt=1e-3, t_eval=times)) == []
    inside[1] = 0.1
    assert len(warned(lambda: ls.simulate(model, 0.002, inside, dt=1e-3, t_eval=times))) == 1


def test_rest_on_a_stop_says_nothing(tmp_path):
    """A leg that its weight and its motor press against a soft stop, 0.1 rad deep, is at rest and not thrown."""
    robot = leg(tmp_path).with_({"shank.joint.limit_stiffness": 200.0})
    robot.add_joint_actuator("motor", "shank")
    model = robot.build()
    still = ls.solve_statics(model, [-20.0])
    assert still.q[0] < 0.5 - 0.05
    assert warned(lambda: ls.simulate(model, 0.002, still.q, u=[-20.0], dt=1e-3)) == []


def sliders(offset=0.0, **law):
    """Two sliding masses with stops that exclude zero, joined by a coupling q_1 + q_2 = offset."""
    robot = ls.Robot("sliders", gravity=(0, 0, 0))
    block = ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1))
    stop = {"limit_stiffness": 1e4}
    robot.add_link("a", block, ls.JointPrismatic(limits=(0.2, 1.0), **stop))
    robot.add_link("b", block, ls.JointPrismatic(limits=(-1.0, 1.0), **stop))
    robot.add_coupling("both", ["a", "b"], [1.0, 1.0], offset, **law)
    return robot


def test_coupled_joints_stay_coupled():
    """A joint that moves to its stop takes the joint with it to which a coupling ties it."""
    model = sliders().build()
    q = ls.start_configuration(model)
    np.testing.assert_allclose(q, [0.2, -0.2], atol=1e-9)  # the residual of closed loops is at most 1e-10
    ls.simulate(model, 0.002, dt=1e-3)


def test_limits_of_elastic_couplings():
    """The sum of two joints within the limits of their coupling, and each within its own stops: 0.2 <= a, a + b >= 0.9;
    the shortest way from (0.2, 0) is (0.55, 0.35)."""
    model = sliders(limits=(0.9, 2.0), limit_stiffness=1e4).build()
    q = ls.start_configuration(model)
    assert q[0] >= 0.2
    np.testing.assert_allclose(q.sum(), 0.9, atol=1e-11)  # one part in 1e12 beyond a limit counts as rounding
    (text,) = warned(lambda: ls.simulate(model, 0.002, [0.3, 0.3], dt=1e-3))
    assert "coupling 'both' is 0.3 beyond its limit 0.9" in text


def cube(stiffness=1e5):
    robot = ls.Robot("cube")
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000.0), ls.JointFree())
    robot.add_contact("floor", "box", ls.ShapePlane(), stiffness=stiffness, exponent=1.0, damping=0.0, friction=0.0)
    return robot.build()


def at_height(model, z):
    q = model.neutral()
    q[6] = z
    return q


def test_thrown_by_contacts():
    """A cube that begins 20 mm inside the floor is told with link, depth and energy: four corners of k δ²/2 each."""
    model = cube()
    (text,) = warned(lambda: ls.simulate(model, 0.002, at_height(model, 0.03), dt=1e-4))
    assert "'box' is 20 mm deep in the world (floor)" in text
    assert f"{4 * 0.5 * 1e5 * 0.02**2:.4g} J" in text


def test_rest_on_the_floor_says_nothing():
    """A cube at rest on the floor, in soft contact 25 mm deep, and one that is about to touch it, say nothing."""
    model = cube(stiffness=1000.0 * 0.1**3 * 9.81 / (4 * 0.025))
    assert warned(lambda: ls.simulate(model, 0.002, at_height(model, 0.025), dt=1e-4)) == []
    assert warned(lambda: ls.simulate(model, 0.002, at_height(model, 0.0499), dt=1e-4)) == []


def test_walkers_of_files():
    """The ant and the humanoid of Gymnasium begin within their stops, and say that their neutral poses are not."""
    pytest.importorskip("mujoco")
    assets = pytest.importorskip("gymnasium.envs.mujoco").__path__[0]
    for name, least in (("ant", 5000.0), ("humanoid", 10.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ls.LeftOutWarning)
            model = ls.load_mjcf(f"{assets}/assets/{name}.xml").build()
        rest = np.zeros(model.nv)
        start, neutral = (ls.energy(model, q, rest).elastic for q in (ls.start_configuration(model), model.neutral()))
        assert start < 1e-3 < least < neutral
        with pytest.warns(ls.LeftOutWarning, match="no contact is described"):
            motion = ls.simulate(model, 0.05, t_eval=[0.0, 0.05], dt=1e-3)
        known = [ls.energy(model, q, v).total for q, v in zip(motion.q, motion.v)]
        assert known[1] <= known[0] + 1e-6 * abs(known[0])  # falls freely; the step's error is far below
        assert len(warned(lambda m=model: ls.simulate(m, 0.01, m.neutral(), dt=1e-3))) == 1
