"""Robot files of all kinds that the library reads, by their endings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lissom.io.mjcf import load_mjcf
from lissom.io.robot_file import load_robot
from lissom.io.urdf import load_urdf

if TYPE_CHECKING:
    from lissom.robot.robot import Robot

XML = (".urdf", ".xml", ".mjcf")


def load_any(path: Path) -> Robot:
    """The robot of a file: URDF or MJCF, if its ending is one of `XML`, or YAML. An .xml file is what its text says.

    Raises:
        ModelError: the file has mistakes.
        OSError: the file cannot be read.
    """
    ending = path.suffix.lower()
    if ending not in XML:
        return load_robot(path)
    is_urdf = ending == ".urdf" or (ending == ".xml" and b"<mujoco" not in path.read_bytes())
    return load_urdf(path) if is_urdf else load_mjcf(path)
