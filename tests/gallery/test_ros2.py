"""The ROS 2 example: its core without ROS, and its node with stand-ins for the messages of ROS."""

import importlib
import sys
import xml.etree.ElementTree as ET
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from gallery.examples import EXAMPLES
from io_robots import SILICONE, placed
from scipy.spatial.transform import Rotation

import lissom as ls

FOLDER = EXAMPLES / "ros2"


@pytest.fixture
def core(monkeypatch):
    """The core of the example."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("lissom_ros2.core")
    for name in [name for name in sys.modules if name.startswith("lissom_ros2")]:
        del sys.modules[name]


def described():
    """A hinge and a slide, a rod with a tendon, a free body and a frame."""
    robot = ls.Robot("sent")
    block = ls.RigidBody.box(0.05, 0.04, 0.03, density=500.0)
    robot.add_link("turret", block, ls.JointRevolute((0, 0, 1), damping=0.1), placement=placed(0.1, 0, 0.5))
    robot.add_link(
        "arm",
        ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, bending_z=1), SILICONE),
        parent="turret",
    )
    robot.add_link("table", block, ls.JointPlanar(damping=1.0), placement=placed(0, 0, 1))
    robot.add_link("loose", ls.RigidBody.sphere(0.02, density=500.0), ls.JointFree(), placement=placed(1.0))
    robot.add_frame("tip", "arm", s=1.0)
    robot.add_tendon("pull", "arm", (0.0, 0.006))
    robot.add_joint_actuator("motor", "turret")
    robot.limit_input("pull", 0.0, 4.0)
    return robot


@pytest.fixture
def sent(core):
    """The simulated robot after two steps under a motor and a tendon."""
    robot = core.SimulatedRobot(described().build(), 2e-3, sections=3)
    assert robot.set_inputs(["motor", "pull"], [0.02, 9.0]) == []
    robot.advance(4e-3)
    return robot


def test_steps_are_those_of_the_stepper(sent):
    """The state is that of a Stepper under the same inputs, of which the tendon is at its limit."""
    stepper = ls.Stepper(sent.model, 2e-3)
    for _ in range(2):
        stepper.step([4.0, 0.02])
    assert sent.t == pytest.approx(4e-3)
    np.testing.assert_array_equal(sent.stepper.state.q, stepper.state.q)


def test_joints_have_the_names_and_values_of_the_urdf_file(sent, tmp_path):
    """Hinges and slides, without rods and free bodies, by the names of the exported file."""
    joints, state, links = sent.joints(), sent.stepper.state, sent.model.links
    robot = described()
    with pytest.warns(ls.LeftOutWarning):
        ls.save_urdf(robot, tmp_path / "sent.urdf", joints=2)
    known = {x.get("name") for x in ET.parse(tmp_path / "sent.urdf").getroot().iter("joint")}
    assert joints.names == ["turret", "table_1", "table_2", "table_3"] and set(joints.names) <= known
    at = int(links.q_start[links.names.index("table")])
    assert joints.positions == [state.q[0], *state.q[at : at + 3]]
    assert joints.velocities[0] == state.v[0] != 0.0


def test_transforms_are_poses_in_the_world(sent):
    """Links, frames and sections of the rod are at the poses of frame_pose."""
    found, q = {x.child: x for x in sent.transforms()}, sent.stepper.state.q
    assert {x.parent for x in found.values()} == {"world"}
    for name, link, s in (("turret", "turret", None), ("arm", "arm", 0.0), ("arm/1", "arm", 0.5), ("arm/2", "arm", 1.0),
                          ("tip", "tip", None), ("loose", "loose", None)):  # fmt: skip
        g = ls.frame_pose(sent.model, q, link, **({} if s is None else {"s": s}))
        np.testing.assert_allclose(found[name].translation, g[:3, 3], atol=1e-14)
        np.testing.assert_allclose(Rotation.from_quat(found[name].rotation).as_matrix(), g[:3, :3], atol=1e-14)


def test_shapes_of_rigid_bodies_stay_and_rods_move(sent):
    """Triangles of a rigid body in its frame are those of its box at all times; those of the rod follow it."""
    before = {x.name: x for x in sent.shapes()}
    sent.advance(20e-3)
    after = {x.name: x for x in sent.shapes()}
    assert before["turret"].frame == "turret" and not before["turret"].moves
    np.testing.assert_allclose(after["turret"].points, before["turret"].points, atol=1e-12)
    np.testing.assert_allclose(np.abs(before["turret"].points).max(axis=0), (0.025, 0.02, 0.015), atol=1e-12)
    assert before["arm"].frame == "world" and before["arm"].moves
    assert np.abs(after["arm"].points - before["arm"].points).max() > 1e-4
    assert all(len(x.points) % 3 == 0 for x in after.values())


def test_wrong_inputs_change_nothing(sent):
    """Unknown names, values that are no numbers, and lists of different lengths are returned and not taken."""
    before = sent.u.copy()
    assert sent.set_inputs(["nothing"], [1.0]) == ["nothing"]
    assert sent.set_inputs(["motor"], [float("nan")]) == ["motor"]
    assert sent.set_inputs(["motor", "pull"], [1.0]) == ["motor", "pull"]
    np.testing.assert_array_equal(sent.u, before)


class Message(SimpleNamespace):
    """A message whose fields are made when they are read, as those of ROS exist at once."""

    TRIANGLE_LIST, ADD = 11, 0

    def __getattr__(self, name):
        """A nested message."""
        if name.startswith("__"):
            raise AttributeError(name)
        value = Message()
        setattr(self, name, value)
        return value


class StandIn:
    """rclpy's Node, and a publisher and a broadcaster, which keep what they are given."""

    def __init__(self, *_):
        self.kept, self.parameters, self.timers = {}, {"robot": str(StandIn.path), "rate": 100.0}, []

    def declare_parameter(self, name, value):
        """Keep a default."""
        self.parameters.setdefault(name, value)

    def get_parameter(self, name):
        """A parameter with its value."""
        return SimpleNamespace(value=self.parameters[name])

    def create_publisher(self, kind, topic, depth):
        """A publisher that keeps the last message."""
        return SimpleNamespace(publish=lambda message: self.kept.__setitem__(topic, message))

    def create_subscription(self, kind, topic, function, depth):
        """Keep the function of a topic."""
        self.kept[f"take {topic}"] = function

    def create_timer(self, period, function):
        """Keep a timer."""
        self.timers.append((period, function))

    def get_clock(self):
        """A clock."""
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: "now"))

    def get_logger(self):
        """A log that is kept."""
        keep = lambda text: self.kept.__setitem__("log", text)  # noqa: E731
        return SimpleNamespace(info=keep, warning=keep)

    def sendTransform(self, messages):
        """Keep the transforms."""
        StandIn.transforms = messages


def test_node_converts_the_data_to_messages(core, monkeypatch, tmp_path):
    """With stand-ins for ROS the node reads its robot, publishes its state at its rate, and takes inputs."""
    StandIn.path = tmp_path / "sent.yaml"
    ls.save_robot(described(), StandIn.path)
    names = {name: {} for name in ("rclpy", "geometry_msgs", "sensor_msgs", "visualization_msgs")}
    names |= {"rclpy.node": {"Node": StandIn}, "tf2_ros": {"TransformBroadcaster": StandIn}}
    names |= {"geometry_msgs.msg": {"Point": Message, "TransformStamped": Message}}
    names |= {"visualization_msgs.msg": {"Marker": Message, "MarkerArray": Message}}
    names |= {"sensor_msgs.msg": {"JointState": Message}}
    for name, contents in names.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    node = importlib.import_module("lissom_ros2.node").RobotNode()
    ((period, tick),) = node.timers
    assert period == 0.01 and "motor" in node.kept["log"]
    node.kept["take inputs"](Message(name=["motor", "x"], effort=[0.5, 1.0]))
    assert node.robot.u[node.robot.model.inputs.names.index("motor")] == 0.5 and "x" in node.kept["log"]
    tick()
    assert node.robot.t == pytest.approx(0.01)
    assert node.kept["joint_states"].name == node.robot.joints().names
    sent = {x.child_frame_id: x for x in StandIn.transforms}
    place = sent["tip"].transform.translation
    g = ls.frame_pose(node.robot.model, node.robot.stepper.state.q, "tip")
    assert (place.x, place.y, place.z) == pytest.approx(tuple(g[:3, 3])) and sent["tip"].header.frame_id == "world"
    assert len(node.kept["shapes"].markers) == 4
    tick()
    assert [marker.header.frame_id for marker in node.kept["shapes"].markers] == ["world"]


def test_package_is_complete():
    """The package names its files and its dependencies: each module of ROS that the node imports."""
    root = ET.parse(FOLDER / "package.xml").getroot()
    needed = {x.text for x in root.iter("exec_depend")}
    text = (FOLDER / "lissom_ros2" / "node.py").read_text()
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported - {"__future__", "lissom", "lissom_ros2"} <= needed
    assert root.find("name").text == "lissom_ros2" and (FOLDER / "resource" / "lissom_ros2").exists()
    assert "robot = {NAME}.node:main" in (FOLDER / "setup.py").read_text()
