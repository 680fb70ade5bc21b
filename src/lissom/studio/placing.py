"""Placements of parts in the world, and the values of a robot file that place them there."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from lissom.dynamics.kinematics import frame_pose
from lissom.model.model import Model
from lissom.robot.robot import PARTS

_FINE = 5e-4  # resolution of positions relative to the size of the robot, about a pixel
_CARRIERS = (("parent", "at"), ("on", "s"), ("link", "s"))  # fields that name the link of a placement, and the place
_DEGREES = 1  # digits of angles


@final
class Handle:
    """The placement of a part: where its reference stands in the world, and where the part stands in that.

    Args:
        model: the robot. q: configuration (nq,). section: list of the part, such as "links". name: of the part.
    Fields:
        base: pose (4, 4) of the reference in the world. placement: pose (4, 4) of the part in the reference.
    """

    def __init__(self, model: Model, q: np.ndarray, section: str, name: str) -> None:
        part = getattr(model.description, section)[name]
        carrier, place = next(pair for pair in _CARRIERS if hasattr(part, pair[0]))
        link = getattr(part, carrier)
        at: Any = getattr(part, place)
        self.base = np.eye(4) if link is None else np.asarray(frame_pose(model, q, link, at))
        self.placement = np.eye(4) if part.placement is None else np.asarray(part.placement, dtype=np.float64)

    @property
    def pose(self) -> np.ndarray:
        """Pose (4, 4) of the part in the world."""
        return self.base @ self.placement

    def moved(self, pose: np.ndarray, size: float, before: Any = None) -> dict[str, Any]:
        """The value in a robot file that places the part at a pose (4, 4) in the world, rounded to what a mouse
        resolves on a robot of a size [m].

        Args:
            before: the value in the file so far, of which what has not moved is kept.
        """
        g, kept = np.linalg.inv(self.base) @ pose, before if isinstance(before, dict) else {}
        digits = max(int(np.ceil(-np.log10(_FINE * size))), 0)
        position: Any = [round(float(x), digits) + 0.0 for x in g[:3, 3]]
        if np.abs(g[:3, 3] - self.placement[:3, 3]).max() < 0.5 * _FINE * size:
            position = kept.get("position", self.placement[:3, 3].tolist())
        out: dict[str, Any] = {"position": position}
        before_turn, turn = (Rotation.from_matrix(x[:3, :3]) for x in (self.placement, g))
        has_turned = (before_turn.inv() * turn).magnitude() > np.radians(0.5 * 10.0**-_DEGREES)
        if not has_turned and kept:
            return out | ({"rotation": kept["rotation"]} if "rotation" in kept else {})
        turn = turn if has_turned else before_turn
        if (angle := float(turn.magnitude())) > 1e-9:
            axis = turn.as_rotvec() / np.abs(turn.as_rotvec()).max()
            degrees = round(float(np.degrees(angle)), _DEGREES if has_turned else 9)
            out["rotation"] = {"axis": [round(x, 6) + 0.0 for x in axis.tolist()], "degrees": degrees}
        return out


def pose_of(position: Any, wxyz: Any) -> np.ndarray:
    """Pose (4, 4) of a position (3,) [m] and a quaternion (w, x, y, z)."""
    w, x, y, z = (float(part) for part in wxyz)
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = Rotation.from_quat([x, y, z, w]).as_matrix(), position
    return g


def is_placed(model: Model, section: str, name: str) -> bool:
    """Whether a part has a placement that a handle can move."""
    part = getattr(model.description, section, {}).get(name) if section in PARTS else None
    return hasattr(part, "placement") and any(hasattr(part, carrier) for carrier, _ in _CARRIERS)
