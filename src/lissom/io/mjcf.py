"""Import of MJCF files: the rigid robots of MuJoCo. MuJoCo, an optional package, reads the files.

So defaults by class, units of angles, sequences of Euler angles, inertia from geometry, included files and frames have
MuJoCo's meaning. This module converts the compiled model of MuJoCo. The joints of a body have anchors p_k in its frame
and move it one after another from the values ref_k. The pose of the body in its parent is

    g = g_body Π_k T(p_k) exp(Φ_k (q_k − ref_k)) T(−p_k)                                                   (1)

The coordinates are those of MuJoCo, except for free joints.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.io.imports import Findings, body_balls, shape_balls
from lissom.robot import checks
from lissom.robot.bodies import RigidBody
from lissom.robot.joints import Joint, JointFixed, JointFree, JointPrismatic, JointRevolute, JointSpherical
from lissom.robot.meshes import Mesh, MeshBalls
from lissom.robot.robot import Robot
from lissom.robot.shapes import Shape, ShapeBox, ShapeCapsule, ShapeCylinder, ShapeSphere


def mujoco_package(name: str) -> Any:
    """The package mujoco. `name` is the name of the file, for the error.

    Raises:
        ModelError: mujoco is not installed.
    """
    try:
        import mujoco
    except ImportError:
        raise ModelError(f"{name}: needs MuJoCo's reader: pip install 'lissom[mjcf]'") from None
    return mujoco


@contextmanager
def logged_warnings(mujoco: Any, name: str) -> Iterator[None]:
    """Inside this block, send warnings of MuJoCo to the log. Otherwise MuJoCo writes MUJOCO_LOG.TXT into the user's
    folder. A warning handler that the user has set is kept."""
    if mujoco.get_mju_user_warning() is not None:
        yield
        return
    said: list[str] = []
    mujoco.set_mju_user_warning(said.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)
    for text in said:
        logging.getLogger("lissom").warning("%s: MuJoCo warns: %s", name, " ".join(text.split()))


_ALONG_Z = (0.0, 0.0, 1.0)
_LEFT_OUT = {  # parts that are not imported, and the names of their counts in a compiled model
    "tendon": "ntendon",
    "sensor": "nsensor",
    "camera": "ncam",
    "light": "nlight",
    "pair": "npair",
    "exclude": "nexclude",
    "plugin": "nplugin",
    "skin": "nskin",
    "key": "nkey",
}
_REFUSED = {"equality": "neq", "flex": "nflex"}
_SPEEDS = ("density", "viscosity", "wind")  # options of MuJoCo's fluid


def load_mjcf(
    path: str | os.PathLike[str], *, balls: int = 24, limit_stiffness: float = 1e4, limit_damping: float = 0.0
) -> Robot:
    """Read an MJCF file of rigid bodies as a Robot.

    Each body becomes a link. A joint that is not at its body's origin, or that shares the body with other joints,
    becomes a link without mass. Other elements:

    | MJCF | Robot |
    |---|---|
    | geoms | drawn meshes and contact balls |
    | sites | frames |
    | actuators | inputs |
    | limits | stops |

    The coordinates are those of MuJoCo, in its order. Free joints have lissom's coordinates and start at the pose in
    the file. A LeftOutWarning lists the parts of the file that the robot does not have.

    Args:
        path: path of the file.
        balls: largest number of balls of a colliding mesh, which `build` makes if a contact names its link (see
            MeshBalls). 0: no balls at all, also none for simple shapes.
        limit_stiffness, limit_damping: stiffness [N·m/rad, N/m] and damping [N·m·s/rad, N·s/m] of the stops, which
            replace MuJoCo's limit constraints.
    Raises:
        ModelError: the file cannot be converted (the message gives file, element and rule), for example because of
            equality constraints or flexible parts; or mujoco is not installed.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    checks.integer(balls, "load_mjcf: balls", least=0, most=10_000)
    mujoco = mujoco_package(name)
    with Path(path).open("rb"):
        pass  # raises the errors of the file itself
    with logged_warnings(mujoco, name):
        try:
            compiled = mujoco.MjModel.from_xml_path(name)
        except ValueError as error:
            raise ModelError(f"{name}: {' '.join(str(error).split())}") from None
    stops = {"limit_stiffness": limit_stiffness, "limit_damping": limit_damping}
    try:
        reader = _Reader(mujoco, compiled, name, balls, stops)
        robot = reader.robot()
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: names must be UTF-8 text (got {error.object!r})") from None
    try:
        robot.check()
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    reader.findings.warn()
    return robot


@final
class _Reader:
    """Conversion of a compiled model of MuJoCo to a Robot."""

    def __init__(self, mujoco: Any, compiled: Any, source: str, balls: int, stops: dict[str, float]) -> None:
        self.mujoco, self.m, self.balls, self.stops = mujoco, compiled, balls, stops
        self.findings = Findings(source)
        for tag, count in _REFUSED.items():
            if getattr(compiled, count, 0):
                raise ModelError(f"{source}: {tag} {self._name(tag, 0)!r}: is not supported and cannot be left out")
        kinds = mujoco.mjtJoint
        self.kinds = {int(kinds.mjJNT_FREE): "free", int(kinds.mjJNT_BALL): "ball",
                      int(kinds.mjJNT_SLIDE): "slide", int(kinds.mjJNT_HINGE): "hinge"}  # fmt: skip

    def _name(self, tag: str, k: int) -> str:
        """The name of an element; without a name its tag and index."""
        kind = getattr(self.mujoco.mjtObj, f"mjOBJ_{tag.upper()}", None)
        return (kind is not None and self.mujoco.mj_id2name(self.m, kind, k)) or f"{tag} {k}"

    def _note(self, kind: str, tag: str, k: int) -> None:
        self.findings.left_out(kind, f"{tag} {self._name(tag, k)!r}")

    def robot(self) -> Robot:
        """The robot that the file describes."""
        m, title = self.m, self.m.names.split(b"\0")[0].decode()
        off = int(m.opt.disableflags)
        weightless = off & int(self.mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        robot = Robot(title or "robot", gravity=(0.0, 0.0, 0.0) if weightless else tuple(m.opt.gravity.tolist()))
        for b in range(1, m.nbody):
            self._add_body(robot, b)
        for k in range(m.nsite):
            self._add_site(robot, k)
        for k in range(m.nu):
            self._add_input(robot, k)
        for tag, count in _LEFT_OUT.items():
            for k in range(getattr(m, count, 0)):
                self.findings.left_out(f"<{tag}>", repr(self._name(tag, k)))
        for word in _SPEEDS:
            if np.any(getattr(m.opt, word)):
                self.findings.left_out(word, "<option>")
        if off & ~weightless:
            self.findings.left_out("flags that disable parts of the physics", "<option>")
        for g in range(m.body_geomnum[0]):
            self._note("what stands in the world", "geom", g)
        return robot

    def _link(self, b: int) -> str | None:
        return None if b == 0 else self._name("body", b)

    def _add_body(self, robot: Robot, b: int) -> None:
        """Add the links of a body, one for each joint. The link of the last joint carries the body if the joint is at
        the body's origin; otherwise the body gets a further link."""
        m, name = self.m, str(self._link(b))
        parent, g = self._link(m.body_parentid[b]), self._pose(m.body_pos[b], m.body_quat[b])
        joint: Joint = JointFixed()
        if m.body_mocapid[b] >= 0:
            self._note("prescribed motion (mocap)", "body", b)
        if m.body_gravcomp[b]:
            self._note("compensation of gravity", "body", b)
        joints = range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])
        for j in joints:
            made, anchor, start = self._joint(j)
            g = g @ _moved(anchor) @ start
            if j == joints[-1] and not anchor.any():
                joint = made
                break
            own = self._name("joint", j)
            own = own if own not in self._taken(robot) else f"{own} of {name}"
            robot.add_link(own, None, made, parent, placement=g.tolist())
            parent, g = own, _moved(-anchor)
        robot.add_link(name, self._body(b), joint, parent, placement=g.tolist())

    def _taken(self, robot: Robot) -> set[str]:
        """Names of links and frames, which must be unique, including the bodies that are still to be added."""
        return {*robot.links, *robot.frames, *(self._name("body", b) for b in range(1, self.m.nbody))}

    def _joint(self, j: int) -> tuple[Joint, np.ndarray, np.ndarray]:
        """A joint, its anchor p_k in its body, and the displacement exp(−Φ ref) of (1)."""
        m = self.m
        kind, dof, at = self.kinds[int(m.jnt_type[j])], m.jnt_dofadr[j], m.jnt_qposadr[j]
        axis, ref = m.jnt_axis[j].copy(), float(m.qpos0[at])
        options: dict[str, Any] = {}
        if m.dof_damping[dof]:
            options["damping"] = float(m.dof_damping[dof])
        if m.dof_frictionloss[dof]:
            self._note("dry friction (frictionloss)", "joint", j)
        if m.dof_armature[dof] and kind == "free":
            self._note("armature of a joint that moves freely", "joint", j)
        elif armature := self._armature(j):
            options["armature"] = armature
        if m.jnt_stiffness[j]:
            if kind == "free":
                self._note("stiffness", "joint", j)
            else:
                options["stiffness"] = float(m.jnt_stiffness[j])
                rest = m.qpos_spring[at : at + (4 if kind == "ball" else 1)]
                options["rest"] = tuple(rest.tolist())
        for name, word in (("jnt_stiffnesspoly", "stiffness"), ("dof_dampingpoly", "damping")):
            if np.any(getattr(m, name, np.zeros((m.nv, 1)))[j if name.startswith("jnt") else dof]):
                self._note(f"nonlinear {word}", "joint", j)
        if m.jnt_limited[j]:
            if kind in ("ball", "free"):
                self._note("limits of a joint that turns freely", "joint", j)
            else:
                options |= {"limits": tuple(m.jnt_range[j].tolist()), **self.stops}
        if kind == "free":
            return JointFree(**options), np.zeros(3), np.eye(4)
        anchor = m.jnt_pos[j].copy()
        if kind == "ball":
            return JointSpherical(**options), anchor, np.eye(4)
        if kind == "slide":
            return JointPrismatic(axis=tuple(axis.tolist()), **options), np.zeros(3), _moved(-ref * axis)
        back = np.eye(4)
        back[:3, :3] = self._rotation([np.cos(ref / 2), *(-np.sin(ref / 2) * axis)])
        return JointRevolute(axis=tuple(axis.tolist()), **options), anchor, back

    def _armature(self, j: int) -> float:
        """Rotor inertia at a joint: its own armature, and those of its motors times gear²."""
        m = self.m
        out = float(m.dof_armature[m.jnt_dofadr[j]])
        for k in range(m.nu if self.kinds[int(m.jnt_type[j])] in ("slide", "hinge") else 0):
            if self._drives_joint(k) and m.actuator_trnid[k, 0] == j:
                out += float(m.actuator_gear[k, 0]) ** 2 * self._rotor(k)
        return out

    def _rotor(self, k: int) -> float:
        """Rotor inertia of an actuator; zero before MuJoCo 3.4."""
        return float(getattr(self.m, "actuator_armature", np.zeros(self.m.nu))[k])

    def _drives_joint(self, k: int) -> bool:
        kinds = self.mujoco.mjtTrn
        return self.m.actuator_trntype[k] in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))

    def _body(self, b: int) -> RigidBody | None:
        m = self.m
        geoms = range(m.body_geomadr[b], m.body_geomadr[b] + m.body_geomnum[b])
        touching = [g for g in geoms if m.geom_contype[g] or m.geom_conaffinity[g]]
        seen = [g for g in geoms if g not in touching] or touching
        meshes = [mesh for g in seen for mesh in self._mesh(g)]
        balls = self._balls(touching) if self.balls else None
        if not m.body_mass[b] and not meshes and balls is None:
            return None
        R = self._rotation(m.body_iquat[b])
        inertia = R @ np.diag(m.body_inertia[b]) @ R.T
        return RigidBody(
            float(m.body_mass[b]),
            m.body_ipos[b].tolist(),
            (0.5 * (inertia + inertia.T)).tolist(),
            balls=balls,
            meshes=tuple(meshes),
        )

    def _mesh(self, g: int) -> Iterator[Mesh]:
        """The drawn mesh of a geom."""
        m = self.m
        color = m.geom_rgba[g] if m.geom_matid[g] < 0 else m.mat_rgba[m.geom_matid[g]]
        looks = {"placement": self._place(g).tolist(), "color": tuple(color.astype(np.float64).tolist())}
        kind = self._kind(g)
        if kind == "mesh":
            vertices, triangles = self._triangles(g)
            yield Mesh(vertices=vertices.tolist(), triangles=triangles.tolist(), **looks)
        elif kind == "ellipsoid":
            ball = Mesh.of_shape(ShapeSphere(1.0))
            yield Mesh(vertices=ball.vertices, triangles=ball.triangles, scale=tuple(m.geom_size[g].tolist()), **looks)
        elif (shape := self._shape(g)) is not None:
            yield Mesh.of_shape(shape, **looks)
        else:
            self._note(f"{kind} of a body", "geom", g)

    def _balls(self, geoms: list[int]) -> list[list[float]] | MeshBalls | None:
        """The contact balls of geoms in their body's frame."""
        rows: list[list[float]] = []
        fills: list[Mesh] = []
        for g in geoms:
            shape = self._shape(g)
            if shape is not None:
                rows += shape_balls(shape, self._place(g))
            elif self._kind(g) in ("mesh", "ellipsoid"):
                fills += self._mesh(g)
        return body_balls(rows, fills, self.balls)

    def _kind(self, g: int) -> str:
        """The type of a geom: sphere, capsule, ..."""
        return self.mujoco.mjtGeom(int(self.m.geom_type[g])).name.removeprefix("mjGEOM_").lower()

    def _shape(self, g: int) -> Shape | None:
        """A geom as a Shape; None if there is no such shape."""
        x, y, z = (float(size) for size in self.m.geom_size[g])
        shapes = {
            "sphere": lambda: ShapeSphere(x),
            "capsule": lambda: ShapeCapsule(x, 2.0 * y, _ALONG_Z),
            "cylinder": lambda: ShapeCylinder(x, 2.0 * y, _ALONG_Z),
            "box": lambda: ShapeBox(2.0 * x, 2.0 * y, 2.0 * z),
        }
        make = shapes.get(self._kind(g))
        return None if make is None else make()

    def _triangles(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and triangles of the mesh of a geom, in the geom's frame."""
        m, k = self.m, self.m.geom_dataid[g]
        first, face = m.mesh_vertadr[k], m.mesh_faceadr[k]
        vertices = m.mesh_vert[first : first + m.mesh_vertnum[k]]
        return vertices.astype(np.float64), m.mesh_face[face : face + m.mesh_facenum[k]].astype(np.int64)

    def _add_site(self, robot: Robot, k: int) -> None:
        """Add a site as a frame, with a name that no link has."""
        link = self._link(self.m.site_bodyid[k])
        if link is None:
            self._note("what stands in the world", "site", k)
            return
        name = self._name("site", k)
        name = name if name not in self._taken(robot) else f"{name} site"
        robot.add_frame(name, link, placement=self._pose(self.m.site_pos[k], self.m.site_quat[k]).tolist())

    def _add_input(self, robot: Robot, k: int) -> None:
        """Add an actuator: a motor on a joint with one coordinate, or a wrench at a site."""
        m, name, kinds = self.m, self._name("actuator", k), self.mujoco.mjtTrn
        gear, target = m.actuator_gear[k], int(m.actuator_trnid[k, 0])
        of_joint = self._drives_joint(k)
        of_site = m.actuator_trntype[k] == int(kinds.mjTRN_SITE) and m.actuator_trnid[k, 1] < 0
        turns = of_joint and self.kinds[int(m.jnt_type[target])] in ("ball", "free")
        link = self._link(m.site_bodyid[target]) if of_site else None
        if turns or not (of_joint or link):
            self._note("transmission of its kind", "actuator", k)
            return
        if of_site and self._rotor(k):
            self._note("armature", "actuator", k)
        law = self._law(k)
        if of_site:
            R = self._rotation(m.site_quat[target])
            wrench = np.concatenate([R @ gear[3:], R @ gear[:3]]) * law
            robot.add_wrench_input(name, str(link), directions=wrench.tolist(), position=m.site_pos[target].tolist())
            return
        driven = self._joint_link(robot, target)
        if gear[0] * law == 1.0:
            robot.add_joint_actuator(name, driven)
            return
        behind = self._name("joint", target)
        while behind in (name, *robot.actuators, *robot.couplings):
            behind = f"{behind} behind its gear"
        robot.add_joint_actuator(behind, driven)
        robot.couple_inputs(name, {behind: float(gear[0] * law)})

    def _law(self, k: int) -> float:
        """The gain of the input of an actuator. Laws of MuJoCo that depend on the state are noted as left out."""
        m, plain = self.m, True
        for word, none in (("gaintype", "mjtGain.mjGAIN_FIXED"), ("biastype", "mjtBias.mjBIAS_NONE"),
                           ("dyntype", "mjtDyn.mjDYN_NONE")):  # fmt: skip
            kind, value = none.split(".")
            plain = plain and getattr(m, f"actuator_{word}")[k] == int(getattr(getattr(self.mujoco, kind), value))
        if not plain:
            self._note("law (its input is the force before its gear)", "actuator", k)
        for word in ("ctrl", "force"):
            if getattr(m, f"actuator_{word}limited")[k]:
                self._note(f"limits of {word}", "actuator", k)
        return float(m.actuator_gainprm[k, 0]) if plain else 1.0

    def _joint_link(self, robot: Robot, j: int) -> str:
        """The name of the link of a joint."""
        m, b = self.m, int(self.m.jnt_bodyid[j])
        name = str(self._link(b))
        last = j == m.body_jntadr[b] + m.body_jntnum[b] - 1
        if last and robot.links[name].joint.nv:
            return name
        own = self._name("joint", j)
        return own if own in robot.links and not robot.links[own].body else f"{own} of {name}"

    def _place(self, g: int) -> np.ndarray:
        return self._pose(self.m.geom_pos[g], self.m.geom_quat[g])

    def _rotation(self, quaternion: Any) -> np.ndarray:
        R = np.zeros(9)
        self.mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=np.float64))
        return R.reshape(3, 3)

    def _pose(self, position: Any, quaternion: Any) -> np.ndarray:
        g = _moved(position)
        g[:3, :3] = self._rotation(quaternion)
        return g


def _moved(position: Any) -> np.ndarray:
    """The pose (4, 4) of a translation."""
    g = np.eye(4)
    g[:3, 3] = position
    return g
