"""Robots of MJCF files begin where MuJoCo begins: each joint at its `ref`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import lissom as ls

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
# a hinge in degrees, a slide, a ball and a free body, with springs and a keyframe that are elsewhere
MIXED = """<mujoco><compiler angle="{angle}"/><option gravity="0 0 0"/><worldbody>
  <body name="cart" pos="0 0 2"><joint name="s" type="slide" axis="0 0 1" ref="0.5" springref="0.9" stiffness="1"/>
    <geom size="0.1"/>
    <body name="arm" pos="0 0 0.3"><joint name="h" axis="0 1 0" pos="0 0 0.1" ref="{ref}" springref="{other}"/>
      <geom size="0.1" pos="0.3 0 0"/>
      <body name="hand" pos="0.5 0 0"><joint name="b" type="ball"/><geom size="0.1" pos="0.1 0 0"/></body></body></body>
  <body name="loose" pos="1 2 3" euler="0.1 0 0"><freejoint/><geom size="0.1"/></body></worldbody>
  <keyframe><key name="home" qpos="0.1 0.2 1 0 0 0 0 0 0 1 0 0 0"/></keyframe></mujoco>"""


@pytest.fixture(scope="module")
def hopper():
    """The hopper of Gymnasium, whose height has the reference 1.25 m, on a floor."""
    with pytest.warns(ls.LeftOutWarning):
        robot = ls.load_mjcf(ASSETS / "hopper.xml")
    robot.add_contact("floor", ls.EVERYTHING, ls.ShapePlane(), friction=1.0)
    return robot.build()


def poses(model, path):
    """Names of the bodies of a file, and their places at the start of MuJoCo and of the model."""
    compiled = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    q = ls.start_configuration(model)
    names = [compiled.body(b).name for b in range(1, compiled.nbody)]
    return data.xpos[1:], np.array([ls.frame_pose(model, q, name, 0.0)[:3, 3] for name in names])


@pytest.mark.filterwarnings("ignore::lissom.LeftOutWarning")
@pytest.mark.parametrize("name", ["hopper.xml", "reacher.xml", "walker2d.xml", "walker2d_v5.xml", "half_cheetah.xml"])
def test_public_robots_stand_where_mujoco_has_them(name):
    """All bodies of a robot of Gymnasium begin at MuJoCo's places, to rounding."""
    if not (ASSETS / name).exists():
        pytest.skip(f"the installed Gymnasium has no {name}")
    theirs, ours = poses(ls.load_mjcf(ASSETS / name).build(), ASSETS / name)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.filterwarnings("ignore::lissom.LeftOutWarning")
@pytest.mark.parametrize("angle, ref, other", [("degree", 40.0, 70.0), ("radian", 0.7, 1.2)])
def test_start_of_each_kind_of_joint(tmp_path, angle, ref, other):
    """Hinges in both units, slides, balls and free bodies begin at qpos0: no rest of a spring, and no keyframe."""
    path = tmp_path / "mixed.xml"
    path.write_text(MIXED.format(angle=angle, ref=ref, other=other))
    model = ls.load_mjcf(path).build()
    theirs, ours = poses(model, path)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    compiled = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(ls.start_configuration(model)[:6], compiled.qpos0[:6], atol=1e-15)
    np.testing.assert_allclose(model.state("home")[0][:2], [0.1, 0.2])


def test_base_replaces_the_reference(tmp_path):
    """A joint that `base` replaces has no reference, and the others keep theirs."""
    path = tmp_path / "two.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint axis="0 1 0" ref="30"/><geom size="0.1"/><body name="b">'
        '<joint axis="0 1 0" ref="50"/><geom size="0.1" pos="0.2 0 0"/></body></body></worldbody></mujoco>'
    )
    model = ls.load_mjcf(path, base=ls.JointFree()).build()
    np.testing.assert_allclose(ls.start_configuration(model), [1, 0, 0, 0, 0, 0, 0, np.deg2rad(50)])


def test_motions_begin_at_the_reference(hopper):
    """simulate, Stepper, rollout and the viewer's geometry begin 1.25 m above the floor; no start throws the robot."""
    q = ls.start_configuration(hopper)
    assert q[1] == 1.25
    motion = ls.simulate(hopper, 0.01, dt=1e-3)
    np.testing.assert_array_equal(motion.q[0], q)
    np.testing.assert_array_equal(ls.Stepper(hopper, 1e-3).state.q, q)
    np.testing.assert_array_equal(ls.rollout(hopper, u=np.zeros((2, hopper.nu)), dt=1e-3).q[0], q)


@dataclass(frozen=True, eq=False)
class Stand(ls.gym.Task):
    """A task without a start of its own."""

    def start(self, random):
        """The default."""
        return ls.gym.TaskStart()

    def observe(self, state):
        """The configuration."""
        return state.q

    def reward(self, state):
        """The height."""
        return state.q[:, 1]


def test_environments_begin_at_the_reference(hopper):
    """The first observation of an environment of the hopper is the start at 1.25 m."""
    environment = ls.gym.environment(Stand(hopper, period=1e-3, steps=1))
    np.testing.assert_array_equal(environment.reset(seed=0)[0], ls.start_configuration(hopper))
    environment.close()


def test_robot_file_keeps_the_start(tmp_path, hopper):
    """The start of a joint is in the robot file, and a copy of the robot begins there."""
    path = tmp_path / "hopper.yaml"
    ls.save_robot(hopper.description, path)
    np.testing.assert_array_equal(ls.start_configuration(ls.load_robot(path).build()), ls.start_configuration(hopper))


@pytest.mark.parametrize(
    "joint, rule",
    [
        (ls.JointRevolute(start=(1.0, 2.0)), r"link 'a' > joint: start: must have shape \(1,\)"),
        (ls.JointFixed(start=1.0), "link 'a' > joint: start: a joint without coordinates has none"),
        (ls.JointSpherical(start=(1.0, 1.0, 0.0, 0.0)), "start: its quaternion must have unit length"),
    ],
)
def test_wrong_starts_are_refused(joint, rule):
    """A start has the shape of the coordinates and a unit quaternion, else an error names the joint and the rule."""
    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1000.0), joint)
    with pytest.raises(ls.ModelError, match=rule):
        robot.build()


def test_joint_of_a_loop_has_no_start():
    """A start of the joint of a loop is refused, since a loop has no coordinates."""
    robot = ls.Robot("r")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1000.0), ls.JointFree())
    robot.add_loop("l", "a", joint=ls.JointRevolute(start=0.1))
    with pytest.raises(ls.ModelError, match="loop 'l' > joint: start: must be left out"):
        robot.build()


def test_start_is_within_the_stops():
    """A start beyond a limit begins at the limit, and the quaternion of a spherical joint is its start."""
    robot, half = ls.Robot("r"), np.sqrt(0.5)
    stops = {"limits": (-0.2, 0.4), "limit_stiffness": 1.0}
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1000.0), ls.JointRevolute(start=0.9, **stops))
    turned = ls.JointSpherical(start=(half, 0.0, half, 0.0))
    robot.add_link("b", ls.RigidBody.sphere(0.1, density=1000.0), turned, parent="a")
    np.testing.assert_allclose(ls.start_configuration(robot.build()), [0.4, half, 0.0, half, 0.0])


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_loop_that_is_closed_at_the_start_stays_closed(tmp_path):
    """A weld between two arms that holds at `ref` and not at zero is closed at the start, as in MuJoCo."""
    path = tmp_path / "loop.xml"
    arm = (
        '<body name="{0}" pos="{1} 0 0"><joint name="{0}" axis="0 1 0" ref="{2}"/><geom size="0.1" pos="0 0 1"/></body>'
    )
    path.write_text(
        f"<mujoco><worldbody>{arm.format('a', 0, 30)}{arm.format('b', 1, -40)}</worldbody><equality>"
        '<connect body1="a" body2="b" anchor="0.5 0 0.7"/></equality></mujoco>'
    )
    model = ls.load_mjcf(path).build()
    np.testing.assert_allclose(ls.start_configuration(model), np.deg2rad([30, -40]))
    np.testing.assert_allclose(ls.assemble(model), np.deg2rad([30, -40]), atol=1e-9)
