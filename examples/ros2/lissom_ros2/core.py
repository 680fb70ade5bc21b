"""What the node of a robot sends and receives, as plain data. ROS is not needed here.

A simulated robot takes steps of constant size under its present inputs. Its state is a list of joints, of frames in the
world, and of meshes. Names of joints are those of `ls.save_urdf`. A rod has a frame at its base, called as its link,
and frames NAME/0, NAME/1, ... along it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

import lissom as ls
from lissom.viewing.geometry import robot_geometry

WORLD = "world"
COLORS = {"rigid": (0.59, 0.61, 0.65, 1.0), "rod": (0.89, 0.62, 0.41, 1.0), "deformable": (0.87, 0.54, 0.47, 1.0)}


@dataclass(frozen=True)
class Joints:
    """Coordinates of hinges and slides: names, positions [rad, m], velocities [rad/s, m/s]."""

    names: list[str]
    positions: list[float]
    velocities: list[float]


@dataclass(frozen=True)
class Transform:
    """A frame in another one: translation (3,) [m] and quaternion (x, y, z, w)."""

    parent: str
    child: str
    translation: list[float]
    rotation: list[float]


@dataclass(frozen=True)
class Shape:
    """Triangles in a frame: three points for each, shape (3 n, 3) [m], and a color (r, g, b, opacity).

    `moves` says whether the points change in their frame, so that they have to be sent again.
    """

    name: str
    frame: str
    number: int
    points: np.ndarray
    color: tuple[float, ...]
    moves: bool


class SimulatedRobot:
    """A robot that moves by steps of constant size.

    Args:
        model: the model.
        dt: size of a step [s].
        sections: number of frames along each rod.
    """

    def __init__(self, model: ls.Model, dt: float = 2e-3, sections: int = 5) -> None:
        self.model, self.dt = model, dt
        self.stepper = ls.Stepper(model, dt)
        self.u = np.zeros(model.nu)
        self.low, self.high = model.input_limits
        self.s = np.linspace(0.0, 1.0, sections)
        self.columns: list[tuple[str, int, int]] = []  # name, index in q and in v of each hinge or slide
        links = model.links
        for k, (name, joint) in enumerate(zip(links.names, links.joint)):
            if joint.nq == joint.nv:
                own = [name] if joint.nv == 1 else [f"{name}_{c + 1}" for c in range(joint.nv)]
                first = int(links.q_start[k]), int(links.v_start[k])
                self.columns += [(one, first[0] + c, first[1] + c) for c, one in enumerate(own)]

    @property
    def t(self) -> float:
        """The time [s]."""
        return float(self.stepper.state.t)

    def advance(self, duration: float) -> None:
        """Take the steps of a duration [s] under the present inputs."""
        for _ in range(max(1, round(duration / self.dt))):
            self.stepper.step(self.u)

    def set_inputs(self, names: list[str], values: list[float]) -> list[str]:
        """Set inputs by name, within their limits. Others stay. Returns the names that are no inputs, or whose value is
        no number, which change nothing."""
        wrong = [] if len(names) == len(values) else list(names)
        for name, value in zip(names, values) if not wrong else ():
            if name in self.model.inputs.names and np.isfinite(value):
                k = self.model.inputs.names.index(name)
                self.u[k] = np.clip(value, self.low[k], self.high[k])
            else:
                wrong.append(name)
        return wrong

    def joints(self) -> Joints:
        """The hinges and slides."""
        state = self.stepper.state
        positions = [float(state.q[at]) for _, at, _ in self.columns]
        return Joints([name for name, *_ in self.columns], positions, [float(state.v[at]) for *_, at in self.columns])

    def transforms(self) -> list[Transform]:
        """The frames of all links, of the named frames, and along the rods, in the world."""
        model, q = self.model, self.stepper.state.q
        found: dict[str, np.ndarray] = {}
        for name, body in zip(model.links.names, model.links.body):
            slender = body is not None and body.is_slender
            found[name] = ls.frame_pose(model, q, name, s=0.0) if slender else ls.frame_pose(model, q, name)
            for k, s in enumerate(self.s if name in model.rods else ()):
                found[f"{name}/{k}"] = ls.frame_pose(model, q, name, s=float(s))
        found |= {name: ls.frame_pose(model, q, name) for name in model.frames}
        return [Transform(WORLD, name, g[:3, 3].tolist(), Rotation.from_matrix(g[:3, :3]).as_quat().tolist())
                for name, g in found.items()]  # fmt: skip

    def shapes(self) -> list[Shape]:
        """The surfaces: of rigid bodies in the frames of their links, of others in the world."""
        model, q = self.model, self.stepper.state.q
        geometry = robot_geometry(model)
        points, out = geometry.points(q), []
        for number, mesh in enumerate(geometry.meshes):
            x, frame = points[mesh.rows], WORLD
            if mesh.kind == "rigid":
                frame = str(mesh.link)
                g = ls.frame_pose(model, q, frame)
                x = (x - g[:3, 3]) @ g[:3, :3]
            color = COLORS[mesh.kind] if mesh.color is None else (*mesh.color, 1.0)[:4]
            out.append(Shape(mesh.name, frame, number, x[mesh.triangles.ravel()], color, mesh.kind != "rigid"))
        return out
