"""The ROS 2 node of a simulated robot: `core` computes, this file converts to messages.

It publishes `joint_states` (sensor_msgs/JointState), transforms (tf2), and `shapes` (visualization_msgs/MarkerArray),
and takes `inputs` (sensor_msgs/JointState: names of inputs, and their values as `effort`).
"""

from __future__ import annotations

import rclpy
from geometry_msgs.msg import Point, TransformStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tf2_ros import TransformBroadcaster
from visualization_msgs.msg import Marker, MarkerArray

import lissom as ls
from lissom_ros2.core import Shape, SimulatedRobot, Transform

STILL_EVERY = 1.0  # period at which shapes of rigid bodies are sent again, for those who came late [s]


class RobotNode(Node):
    """Simulates a robot in real time and publishes its state.

    Parameters of ROS: `robot` (file: .yaml, .urdf or .xml), `dt` [s], `rate` [1/s] of the messages, `sections` along
    each rod.
    """

    def __init__(self) -> None:
        super().__init__("lissom_robot")
        for name, value in (("robot", ""), ("dt", 2e-3), ("rate", 50.0), ("sections", 5)):
            self.declare_parameter(name, value)
        self.period = 1.0 / float(self.get_parameter("rate").value)
        path = str(self.get_parameter("robot").value)
        read = {".urdf": ls.load_urdf, ".xml": ls.load_mjcf}.get(path[path.rfind(".") :], ls.load_robot)
        dt, sections = float(self.get_parameter("dt").value), int(self.get_parameter("sections").value)
        self.robot = SimulatedRobot(read(path).build(), dt, sections)
        self.joint_states = self.create_publisher(JointState, "joint_states", 10)
        self.markers = self.create_publisher(MarkerArray, "shapes", 10)
        self.transforms = TransformBroadcaster(self)
        self.create_subscription(JointState, "inputs", self.take_inputs, 10)
        self.sent_still = -STILL_EVERY
        self.create_timer(self.period, self.tick)
        self.get_logger().info(f"robot {self.robot.model.name!r}, inputs: {', '.join(self.robot.model.inputs.names)}")

    def take_inputs(self, message: JointState) -> None:
        """Set the inputs of a message."""
        wrong = self.robot.set_inputs(list(message.name), list(message.effort))
        if wrong:
            self.get_logger().warning(f"no inputs, or without a number in effort: {', '.join(wrong)}")

    def tick(self) -> None:
        """Move for one period, and publish."""
        self.robot.advance(self.period)
        now = self.get_clock().now().to_msg()
        state, joints = JointState(), self.robot.joints()
        state.header.stamp = now
        state.name, state.position, state.velocity = joints.names, joints.positions, joints.velocities
        self.joint_states.publish(state)
        self.transforms.sendTransform([transform_message(one, now) for one in self.robot.transforms()])
        still = self.robot.t - self.sent_still >= STILL_EVERY
        self.sent_still = self.robot.t if still else self.sent_still
        shapes = [one for one in self.robot.shapes() if one.moves or still]
        self.markers.publish(MarkerArray(markers=[marker_message(one, now) for one in shapes]))


def transform_message(one: Transform, now) -> TransformStamped:
    """A frame as a message."""
    out = TransformStamped()
    out.header.stamp, out.header.frame_id, out.child_frame_id = now, one.parent, one.child
    place, turn = out.transform.translation, out.transform.rotation
    place.x, place.y, place.z = one.translation
    turn.x, turn.y, turn.z, turn.w = one.rotation
    return out


def marker_message(one: Shape, now) -> Marker:
    """Triangles as a message."""
    out = Marker()
    out.header.stamp, out.header.frame_id, out.ns, out.id = now, one.frame, "lissom", one.number
    out.type, out.action, out.frame_locked = Marker.TRIANGLE_LIST, Marker.ADD, True
    out.pose.orientation.w = 1.0
    out.scale.x = out.scale.y = out.scale.z = 1.0
    out.color.r, out.color.g, out.color.b, out.color.a = map(float, one.color)
    out.points = [Point(x=x, y=y, z=z) for x, y, z in one.points.tolist()]
    return out


def main() -> None:
    """Run the node until Ctrl-C."""
    rclpy.init()
    node = RobotNode()
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
