"""The ROS 2 package of the node."""

from glob import glob

from setuptools import setup

NAME = "lissom_ros2"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*_launch.py")),
    ],
    install_requires=["setuptools", "lissom"],
    zip_safe=True,
    description="A robot of lissom as a ROS 2 node",
    license="MIT",
    entry_points={"console_scripts": [f"robot = {NAME}.node:main"]},
)
