"""Starts the node of a robot: ros2 launch lissom_ros2 robot_launch.py robot:=/path/to/robot.yaml"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def generate_launch_description():
    """The node with its parameters as arguments of the launch file."""
    arguments = {"robot": (None, str), "dt": ("0.002", float), "rate": ("50.0", float), "sections": ("5", int)}
    parameters = {name: ParameterValue(LaunchConfiguration(name), value_type=kind)
                  for name, (_, kind) in arguments.items()}  # fmt: skip
    declared = [DeclareLaunchArgument(name, default_value=value) for name, (value, _) in arguments.items()]
    node = Node(package="lissom_ros2", executable="robot", output="screen", parameters=[parameters])
    return LaunchDescription([*declared, node])
