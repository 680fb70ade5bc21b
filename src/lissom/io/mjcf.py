"""Import of MJCF files: the rigid robots of MuJoCo. MuJoCo, an optional package, reads the files.

So defaults by class, units of angles, sequences of Euler angles, inertia from geometry, included files and frames have
MuJoCo's meaning. This module converts the compiled model of MuJoCo. The joints of a body have anchors p_k in its frame
and move it one after another from the values ref_k. The pose of the body in its parent is

    g = g_body Π_k T(p_k) exp(Φ_k (q_k − ref_k)) T(−p_k)                                                   (1)

The coordinates are those of MuJoCo, except for free joints.

An actuator with the affine law F = a u + b₀ + b₁ l + b₂ l̇ and the length l = r q is an input with the gain r a. To its
joint it adds the stiffness −b₁ r², the damping −b₂ r² and the constant force r b₀                         (2)
The damper of an actuator adds to −b₂.
With several joints, l = Σ r_i q_i, the rest of the law is an elastic coupling of the stiffness −b₁ and the damping −b₂.
So are the spring, the damper and the limits of a fixed tendon.

The length of a spatial tendon is L = Σ_k L_k / d_k, with the lengths L_k of the branches between its pulleys and their
divisors d_k. An actuator with l = g L exerts the tension −g a u / d_k along branch k. A Spring along the tendon has the
rest of the law: its tension is −g b₀ − b₁ g² L − b₂ g² L̇                                                 (3)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.io.imports import Findings
from lissom.io.mjcf_bodies import ALONG_Z, DEFAULT_SOFTNESS, CompiledFile, logged_warnings, moved, mujoco_package, unit
from lissom.robot import checks
from lissom.robot.actuators import JointActuator, PathItem, PathPoint, PathWrap
from lissom.robot.contact_points import FILLING
from lissom.robot.functions import Expression, Tabulated
from lissom.robot.joints import Joint, JointFixed, JointFree, JointPrismatic, JointRevolute, JointSpherical
from lissom.robot.robot import Robot
from lissom.robot.shapes import ShapeCylinder, ShapeSphere
from lissom.robot.springs import SpringBranch

_LEFT_OUT = {  # parts that are not imported, and the names of their counts in a compiled model
    "sensor": "nsensor",
    "camera": "ncam",
    "light": "nlight",
    "plugin": "nplugin",
    "skin": "nskin",
    "numeric": "nnumeric",
    "text": "ntext",
    "tuple": "ntuple",
}
_NO_LAW = "law (its input is the force before its gear)"
_SPEEDS = ("density", "viscosity", "wind")  # options of MuJoCo's fluid


def load_mjcf(
    path: str | os.PathLike[str],
    *,
    base: Joint | None = None,
    motors: bool = False,
    balls: int = FILLING,
    limit_stiffness: float = 1e4,
    limit_damping: float = 0.0,
    packages: Mapping[str, str | os.PathLike[str]] | None = None,
    strict: bool = False,
) -> Robot:
    """Read an MJCF file of rigid bodies as a Robot.

    Each body becomes a link. A joint that is not at its body's origin, or that shares the body with other joints,
    becomes a link without mass. Other elements:

    | MJCF | Robot |
    |---|---|
    | geoms | drawn meshes and collision shapes; that of a mesh is its convex hull, as in MuJoCo |
    | sites | frames; in the world, fixed links without a body |
    | actuators | inputs with their limits; the springs and dampers of servos act on their joints |
    | keyframes | named states |
    | equality | loops, couplings of joints, and springs along spatial tendons |
    | limits | stops |
    | springs, dampers and limits of tendons | elastic couplings of joints, or springs along paths |
    | `exclude`, `contype`, `conaffinity` | pairs that `Robot.add_mutual_contacts` leaves out |
    | `pair` | pairs that `Robot.add_mutual_contacts` adds in any case, with their friction |

    The coordinates are those of MuJoCo, in its order. Joints start at their `ref`. Free joints have lissom's
    coordinates and start at the pose in the file. A LeftOutWarning lists the parts of the file that the robot does not
    have.

    No pair of bodies touches until `Robot.add_contact` or `Robot.add_mutual_contacts` makes contacts, while MuJoCo lets
    all geoms collide. The first motion of a robot that can fall without any contact gives a LeftOutWarning.

    Args:
        path: path of the file.
        base: joint between the world and the root body, in place of the joints that the file has there. None keeps
            those.
        motors: True adds a motor, named after the joint, to each moving joint that no actuator drives.
        balls: largest number of balls that fill a colliding mesh where its link touches others; see `RigidBody`. 0: no
            collision shapes at all.
        limit_stiffness, limit_damping: stiffness [N·m/rad, N/m] and damping [N·m·s/rad, N·s/m] of the stops, which
            replace MuJoCo's limit constraints, and of the springs that hold equalities of spatial tendons.
        packages: folders of packages in `package://`, by name, for meshes.
        strict: True refuses inertias that no body has, and colors beyond 1, which are repaired otherwise.
    Raises:
        ModelError: the file cannot be converted (the message gives file, element and rule), for example because of
            flexible parts; or mujoco is not installed.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    checks.integer(balls, "load_mjcf: balls", least=0, most=10_000)
    mujoco = mujoco_package(name)
    with Path(path).open("rb"):
        pass  # raises the errors of the file itself
    with logged_warnings(mujoco, name):
        try:
            compiled = _compiled(mujoco, name, packages or {})
        except ValueError as error:
            raise ModelError(f"{name}: {' '.join(str(error).split())}") from None
    stops = {"limit_stiffness": limit_stiffness, "limit_damping": limit_damping}
    try:
        reader = _Reader(mujoco, compiled, name, balls, stops, base, strict)
        robot = reader.robot(motors)
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: names must be UTF-8 text (got {error.object!r})") from None
    try:
        robot.check()
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    reader.file.findings.warn()
    robot.source = os.path.basename(name)
    return robot


def _compiled(mujoco: Any, name: str, packages: Mapping[str, str | os.PathLike[str]]) -> Any:
    """The compiled model of a file, whose meshes may be in packages."""
    if not packages:
        return mujoco.MjModel.from_xml_path(name)
    spec = mujoco.MjSpec.from_file(name)
    for mesh in spec.meshes:
        package, _, rest = mesh.file.removeprefix("package:").lstrip("/").partition("/")
        if mesh.file.startswith("package:") and package in packages:
            mesh.file = os.path.abspath(Path(packages[package]) / rest)
    return spec.compile()


@final
class _Reader:
    """Conversion of a compiled model of MuJoCo to a Robot."""

    def __init__(
        self,
        mujoco: Any,
        compiled: Any,
        source: str,
        balls: int,
        stops: dict[str, float],
        base: Joint | None,
        strict: bool,
    ) -> None:
        self.mujoco, self.m, self.stops, self.base = mujoco, compiled, stops, base
        self.file = CompiledFile(mujoco, compiled, Findings(source, strict), balls)
        if getattr(compiled, "nflex", 0):
            raise self.file.error("flex", 0, "is not rigid and cannot be left out")
        roots = [b for b in range(1, compiled.nbody) if compiled.body_parentid[b] == 0]
        if base is not None and len(roots) != 1:
            names = [self.file.name("body", b) for b in roots]
            raise ModelError(f"{source}: needs one body in the world for base= (got {names})")
        self.lawless: set[int] = set()  # actuators whose input is the force, since their law is left out
        self.gone = set()  # joints that `base` replaces
        if base is not None:
            first = compiled.body_jntadr[roots[0]]
            self.gone = set(range(first, first + compiled.body_jntnum[roots[0]]))
        kinds = mujoco.mjtJoint
        self.kinds = {int(kinds.mjJNT_FREE): "free", int(kinds.mjJNT_BALL): "ball",
                      int(kinds.mjJNT_SLIDE): "slide", int(kinds.mjJNT_HINGE): "hinge"}  # fmt: skip

    def robot(self, motors: bool) -> Robot:
        """The robot that the file describes, with `motors` on all joints that nothing drives."""
        m, title = self.m, self.m.names.split(b"\0")[0].decode()
        off = int(m.opt.disableflags)
        weightless = off & int(self.mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        robot = Robot(title or "robot", gravity=(0.0, 0.0, 0.0) if weightless else tuple(m.opt.gravity.tolist()))
        for b in range(1, m.nbody):
            self._add_body(robot, b)
        for k in range(m.nsite):
            self._add_site(robot, k)
        for k in self.file.actuators:
            self._add_input(robot, k)
        driven = {actuator.link for actuator in robot.actuators.values() if isinstance(actuator, JointActuator)}
        for j in range(m.njnt if motors else 0):
            if j not in self.gone and (link := self._joint_link(robot, j)) not in driven:
                self._add_motor(robot, self.file.name("joint", j), link)
        for t in range(m.ntendon):
            self._add_tendon_laws(robot, t)
        for k in range(m.nkey):
            self._add_state(robot, k)
        flags = self.mujoco.mjtDisableBit
        are_active = not off & (int(flags.mjDSBL_EQUALITY) | int(flags.mjDSBL_CONSTRAINT))
        for k in range(m.neq):
            if are_active and m.eq_active0[k]:
                self._add_equality(robot, k)
            else:
                self.file.note("inactive constraint", "equality", k)
        self._add_exclusions(robot)
        self._add_pairs(robot)
        for tag, count in _LEFT_OUT.items():
            for k in range(getattr(m, count, 0)):
                self.file.findings.left_out(f"<{tag}>", repr(self.file.name(tag, k)))
        for word in _SPEEDS:
            if np.any(getattr(m.opt, word)):
                self.file.findings.left_out(word, "<option>")
        if m.opt.enableflags & int(self.mujoco.mjtEnableBit.mjENBL_OVERRIDE):
            kind = "numbers of all contacts (o_margin, o_solref, o_solimp, o_friction)"
            self.file.findings.left_out(kind, "<option>")
        if off & ~weightless:
            self.file.findings.left_out("flags that disable parts of the physics", "<option>")
        for g in range(m.body_geomnum[0]):
            self.file.note("static shape", "geom", g)
        return robot

    def _add_body(self, robot: Robot, b: int) -> None:
        """Add the links of a body, one for each joint. The link of the last joint carries the body if the joint is at
        the body's origin; otherwise the body gets a further link."""
        m, name = self.m, str(self.file.link(b))
        parent, g = self.file.link(m.body_parentid[b]), self.file.pose(m.body_pos[b], m.body_quat[b])
        joint: Joint = JointFixed()
        if m.body_mocapid[b] >= 0:
            self.file.note("prescribed motion (mocap)", "body", b)
        if m.body_gravcomp[b]:
            self.file.note("compensation of gravity", "body", b)
        joints = range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])
        if self.base is not None and parent is None:
            joint, joints = self.base, range(0)
        for j in joints:
            made, anchor, start = self._joint(j)
            g = g @ moved(anchor) @ start
            if j == joints[-1] and not anchor.any():
                joint = made
                break
            own = self.file.name("joint", j)
            own = own if own not in self._taken(robot) else f"{own} of {name}"
            robot.add_link(own, None, made, parent, placement=g.tolist())
            parent, g = own, moved(-anchor)
        robot.add_link(name, self.file.body(b), joint, parent, placement=g.tolist())

    def _taken(self, robot: Robot) -> set[str]:
        """Names of links and frames, which must be unique, including the bodies that are still to be added."""
        return {*robot.links, *robot.frames, *(self.file.name("body", b) for b in range(1, self.m.nbody))}

    def _joint(self, j: int) -> tuple[Joint, np.ndarray, np.ndarray]:
        """A joint, its anchor p_k in its body, and the displacement exp(−Φ ref) of (1)."""
        m = self.m
        kind, dof, at = self.kinds[int(m.jnt_type[j])], m.jnt_dofadr[j], m.jnt_qposadr[j]
        axis, ref = m.jnt_axis[j].copy(), float(m.qpos0[at])
        options: dict[str, Any] = {}
        if m.dof_damping[dof]:
            options["damping"] = float(m.dof_damping[dof])
        if m.dof_frictionloss[dof] and kind in ("ball", "free"):
            self.file.note("dry friction (frictionloss) of a joint that turns freely", "joint", j)
        elif m.dof_frictionloss[dof]:
            options["friction"] = float(m.dof_frictionloss[dof])
        if m.dof_armature[dof] and kind == "free":
            self.file.note("armature of a joint that moves freely", "joint", j)
        elif armature := self._armature(j):
            options["armature"] = armature
        if m.jnt_stiffness[j]:
            if kind == "free":
                self.file.note("stiffness", "joint", j)
            else:
                options["stiffness"] = float(m.jnt_stiffness[j])
                rest = m.qpos_spring[at : at + (4 if kind == "ball" else 1)]
                options["rest"] = tuple(rest.tolist())
        if m.jnt_actfrclimited[j]:
            self.file.note("limits of force", "joint", j)
        if getattr(m, "jnt_springyield", np.zeros(m.njnt))[j]:
            self.file.note("plastic spring", "joint", j)
        for name, word in (("jnt_stiffnesspoly", "stiffness"), ("dof_dampingpoly", "damping")):
            if np.any(getattr(m, name, np.zeros((m.nv, 1)))[j if name.startswith("jnt") else dof]):
                self.file.note(f"nonlinear {word}", "joint", j)
        if m.jnt_margin[j]:
            self.file.note("margin of its limits", "joint", j)
        if m.jnt_limited[j]:
            if kind in ("ball", "free"):
                self.file.note("limits of a joint that turns freely", "joint", j)
            else:
                options |= {"limits": tuple(m.jnt_range[j].tolist()), **self.stops}
        if ref and kind in ("hinge", "slide"):
            options["start"] = ref
        if kind == "free":
            return JointFree(**options), np.zeros(3), np.eye(4)
        anchor = m.jnt_pos[j].copy()
        if kind == "ball":
            return JointSpherical(**options), anchor, np.eye(4)
        if kind == "slide":
            return JointPrismatic(axis=tuple(axis.tolist()), **options), np.zeros(3), moved(-ref * axis)
        back = np.eye(4)
        back[:3, :3] = self.file.rotation([np.cos(ref / 2), *(-np.sin(ref / 2) * axis)])
        return JointRevolute(axis=tuple(axis.tolist()), **options), anchor, back

    def _armature(self, j: int) -> float:
        """Rotor inertia at a joint: its own armature, and those of its motors and of its own fixed tendons times their
        ratio²."""
        m = self.m
        out = float(m.dof_armature[m.jnt_dofadr[j]])
        for t in range(m.ntendon if np.any(getattr(m, "tendon_armature", 0.0)) else 0):
            if (ratios := self._fixed_tendon(t)).keys() == {j}:
                out += ratios[j] ** 2 * float(m.tendon_armature[t])
        for k in self.file.actuators if self._is_scalar(j) else ():
            if self._drives_joint(k) and m.actuator_trnid[k, 0] == j:
                out += float(self.file.gear(k)[0]) ** 2 * self._rotor(k)
        return out

    def _rotor(self, k: int) -> float:
        """Rotor inertia of an actuator; zero before MuJoCo 3.4."""
        return float(getattr(self.m, "actuator_armature", np.zeros(len(self.file.actuators)))[k])

    def _drives_joint(self, k: int) -> bool:
        kinds = self.mujoco.mjtTrn
        return self.m.actuator_trntype[k] in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))

    def _add_site(self, robot: Robot, k: int) -> None:
        """Add a site as a frame, with a name that no link has. A site in the world becomes a fixed link without a body,
        since frames are those of links."""
        link, name = self.file.link(self.m.site_bodyid[k]), self.file.name("site", k)
        name = name if name not in self._taken(robot) else f"{name} site"
        placement = self.file.pose(self.m.site_pos[k], self.m.site_quat[k]).tolist()
        if link is None:
            robot.add_link(name, placement=placement)
        else:
            robot.add_frame(name, link, placement=placement)

    def _add_input(self, robot: Robot, k: int) -> None:
        """Add an actuator: motors on hinges and slides, or a wrench at a site."""
        m, name, kinds = self.m, self.file.name("actuator", k), self.mujoco.mjtTrn
        gear, target = self.file.gear(k), int(m.actuator_trnid[k, 0])
        of_site = m.actuator_trntype[k] == int(kinds.mjTRN_SITE) and m.actuator_trnid[k, 1] < 0
        link = self.file.link(m.site_bodyid[target]) if of_site else None
        ratios = self._transmission(k)
        on_tendon = m.actuator_trntype[k] == int(kinds.mjTRN_TENDON)
        branches = self._branches(target) if on_tendon and not ratios else []
        if not (ratios or link or branches):
            self.file.note("transmission of its kind", "actuator", k)
            return
        if self._rotor(k) and not self._drives_joint(k):
            self.file.note("armature", "actuator", k)
        if not self.file.controls(k):
            self.file.note("law without a control", "actuator", k)
            return
        gain, bias = self._law(k)
        for damper in (np.array([0.0, 0.0, self._damper(k)]), np.zeros(3)):  # without the damper if it is no spring
            rest = bias - damper
            servo = (self._add_spatial_servo(robot, k, branches, rest) if branches
                    else self._add_servo(robot, name, ratios, rest))  # fmt: skip
            if servo:
                break
            self.file.note("damping" if damper.any() else _NO_LAW, "actuator", k)
        if not servo:
            gain, bias = None, np.zeros(3)
        if gain is None:
            self.lawless.add(k)
        self._add_limits(robot, k, gain, bias)
        gain = 1.0 if gain is None else gain
        if branches:
            self._add_spatial(robot, k, branches, gain)
            return
        if not ratios:
            R = self.file.rotation(m.site_quat[target])
            wrench = np.concatenate([R @ gear[3:], R @ gear[:3]]) * gain
            robot.add_wrench_input(name, str(link), directions=wrench.tolist(), position=m.site_pos[target].tolist())
            return
        gains = {self._joint_link(robot, j): ratio * gain for j, ratio in ratios.items()}
        if list(gains.values()) == [1.0]:
            robot.add_joint_actuator(name, *gains)
            return
        of = {link: self.file.name("joint", j) for link, j in zip(gains, ratios, strict=True)}
        members = {self._add_motor(robot, of[link], link, name): gain for link, gain in gains.items()}
        robot.couple_inputs(name, members)

    def _add_limits(self, robot: Robot, k: int, gain: float | None, bias: np.ndarray) -> None:
        """Add the limits of an input: those of its control, and those of its force if the force is the gain times the
        input. Without a gain the input is the force."""
        m, low, high = self.m, -np.inf, np.inf
        controls = self.file.controls(k)
        if m.actuator_ctrllimited[controls].any():
            if gain is None:
                self.file.note("limits of ctrl", "actuator", k)
            else:
                low, high = m.actuator_ctrlrange[controls[0]].tolist()
        if m.actuator_forcelimited[k]:
            factor = 1.0 if gain is None else gain
            if bias.any() or not factor:
                self.file.note("limits of force", "actuator", k)
            else:
                ends = sorted((m.actuator_forcerange[k] / factor).tolist())
                low, high = max(low, ends[0]), min(high, ends[1])
        if low > high:
            self.file.note("limits of ctrl and force that exclude each other", "actuator", k)
        elif np.isfinite([low, high]).any():
            robot.limit_input(self.file.name("actuator", k), *(x if np.isfinite(x) else None for x in (low, high)))

    def _add_spatial_servo(
        self, robot: Robot, k: int, branches: list[tuple[float, list[PathItem]]], bias: np.ndarray
    ) -> bool:
        """Add the affine bias of an actuator of a spatial tendon as the Spring of (3). Returns False if none fits."""
        gear = float(self.file.gear(k)[0])
        law = {"stiffness": -bias[1] * gear**2, "damping": -bias[2] * gear**2, "preload": -gear * bias[0]}
        name = self.file.name("actuator", k)
        return not bias.any() or self._add_spring(robot, name, branches, {"rest": 0.0, **law})

    def _add_spatial(self, robot: Robot, k: int, branches: list[tuple[float, list[PathItem]]], gain: float) -> None:
        """Add an actuator of a spatial tendon by (3): one tendon for each branch, coupled by their divisors."""
        name, t, gear = (
            self.file.name("actuator", k),
            int(self.m.actuator_trnid[k, 0]),
            float(self.file.gear(k)[0]),
        )
        gains: dict[str, float] = {}
        for divisor, path in branches:
            own = self.file.name("tendon", t)
            while own in (name, *robot.actuators, *robot.couplings):
                own = f"{own} of {name}" if own == self.file.name("tendon", t) else f"{own}, next branch"
            robot.add_tendon(own, path=path)
            gains[own] = -gear * gain / divisor
        robot.couple_inputs(name, gains)

    def _add_spring(
        self, robot: Robot, name: str, branches: list[tuple[float, list[PathItem]]], law: dict[str, Any]
    ) -> bool:
        """Add a Spring along a tendon. Returns False if its path has a part that lissom does not have, or if the
        stiffness or the damping is negative."""
        if not branches or law["stiffness"] < 0.0 or law["damping"] < 0.0:
            return False
        if all(len({item.link for item in path}) == 1 for _, path in branches):
            return True  # its length is constant
        (d, (a, *via, b)), *others = branches
        ratio = 1.0 / d  # of L to the length in which the first branch has the factor 1
        law = {key: _rescaled(key, x, ratio) for key, x in law.items()}
        while name in robot.springs:
            name = f"{name} of its tendon"
        further = [SpringBranch(tuple(path), float(d / divisor)) for divisor, path in others]  # type: ignore[arg-type]
        robot.add_spring(name, a, b, via=via, branches=further, **law)  # type: ignore[arg-type]
        return True

    def _branches(self, t: int) -> list[tuple[float, list[PathItem]]]:
        """The branches of a spatial tendon: the divisor and the path of each. Empty if it has a part that a path of
        lissom does not have, which is noted as left out."""
        m, kinds, out = self.m, self.mujoco.mjtWrap, [(1.0, [])]
        for w in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
            kind, k = int(m.wrap_type[w]), int(m.wrap_objid[w])
            if kind == int(kinds.mjWRAP_PULLEY):
                out.append((float(m.wrap_prm[w]), []))
            elif kind == int(kinds.mjWRAP_SITE):
                out[-1][1].append(PathPoint(self.file.link(m.site_bodyid[k]), tuple(m.site_pos[k].tolist())))
            elif (item := self._wrap(k, round(float(m.wrap_prm[w])), kind == int(kinds.mjWRAP_SPHERE))) is not None:
                out[-1][1].append(item)
            else:
                self.file.note("path inside a shape, or on a side that moves against it", "tendon", t)
                return []
        return [(divisor, path) for divisor, path in out if len(path) > 1]

    def _wrap(self, g: int, site: int, is_sphere: bool) -> PathWrap | None:
        """The sphere or cylinder of a geom in a path, on the side of a site (-1: none); None if there is no such
        PathWrap."""
        m, side = self.m, None
        if site >= 0:
            place = self.file.place(g)
            side = place[:3, :3].T @ (m.site_pos[site] - place[:3, 3])
            across = float(np.linalg.norm(side[: 3 if is_sphere else 2]))
            inside = float(np.linalg.norm(side)) < m.geom_size[g, 0]
            if m.site_bodyid[site] != m.geom_bodyid[g] or inside or across == 0.0:
                return None
            side = tuple(side.tolist())
        radius = float(m.geom_size[g, 0])
        shape = ShapeSphere(radius) if is_sphere else ShapeCylinder(radius, axis=ALONG_Z)
        return PathWrap(self.file.link(m.geom_bodyid[g]), shape, placement=self.file.place(g).tolist(), side=side)

    def _add_motor(self, robot: Robot, name: str, link: str, taken: str = "") -> str:
        """Add a motor on a joint, with a new name that begins with the name of the joint, and is not `taken`."""
        while name in (taken, *robot.actuators, *robot.couplings):
            name = f"{name} behind its gear"
        return robot.add_joint_actuator(name, link).name

    def _transmission(self, k: int) -> dict[int, float]:
        """The length of an actuator as a sum of ratios times coordinates, by joint; empty if it is no such sum."""
        m, target, gear = self.m, int(self.m.actuator_trnid[k, 0]), float(self.file.gear(k)[0])
        if self._drives_joint(k):
            ratios = {target: 1.0} if self._is_scalar(target) else {}
        elif m.actuator_trntype[k] == int(self.mujoco.mjtTrn.mjTRN_TENDON):
            ratios = self._fixed_tendon(target)
        else:
            ratios = {}
        return {} if ratios.keys() & self.gone else {j: gear * ratio for j, ratio in ratios.items() if gear * ratio}

    def _is_scalar(self, j: int) -> bool:
        return self.kinds[int(self.m.jnt_type[j])] in ("hinge", "slide")

    def _fixed_tendon(self, t: int) -> dict[int, float]:
        """The coefficients of a fixed tendon by joint; empty for a spatial tendon."""
        m, found = self.m, {}
        for w in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
            if m.wrap_type[w] != int(self.mujoco.mjtWrap.mjWRAP_JOINT):
                return {}
            j = int(m.wrap_objid[w])
            found[j] = found.get(j, 0.0) + float(m.wrap_prm[w])
        return found

    def _add_state(self, robot: Robot, k: int) -> None:
        """Add a keyframe as a named state. Free joints are relative to the pose of their body in the file."""
        m, positions, velocities = self.m, {}, {}
        numbers = np.concatenate([m.key_qpos[k], m.key_qvel[k], m.key_ctrl[k]])
        if not np.isfinite(numbers).all():
            self.file.note("numbers that are not finite", "key", k)
            return
        if m.na and np.any(m.key_act[k]):
            self.file.note("states of actuators", "key", k)
        if m.key_time[k]:
            self.file.note("time", "key", k)
        if m.nmocap and np.any(m.key_mpos[k] != m.body_pos[m.body_mocapid >= 0]):
            self.file.note("places of mocap bodies", "key", k)
        if np.any(getattr(m, "key_plastic", np.zeros((m.nkey, 0)))[k]):
            self.file.note("states of plastic springs", "key", k)
        for j in range(m.njnt):
            if j in self.gone:
                continue
            kind, link = self.kinds[int(m.jnt_type[j])], self._joint_link(robot, j)
            q, v = m.key_qpos[k, m.jnt_qposadr[j] :], m.key_qvel[k, m.jnt_dofadr[j] :]
            if kind == "free":
                b, turn, back = m.jnt_bodyid[j], np.zeros(4), np.zeros(4)
                start, R = self.file.pose(m.body_pos[b], m.body_quat[b]), self.file.rotation(unit(q[3:7]))
                self.mujoco.mju_negQuat(back, m.body_quat[b])
                self.mujoco.mju_mulQuat(turn, back, unit(q[3:7]))
                positions[link] = [*turn.tolist(), *(start[:3, :3].T @ (q[:3] - start[:3, 3])).tolist()]
                velocities[link] = [*v[3:6].tolist(), *(R.T @ v[:3]).tolist()]
            else:
                positions[link] = unit(q[:4]).tolist() if kind == "ball" else float(q[0])
                velocities[link] = v[:3].tolist() if kind == "ball" else float(v[0])
        inputs = {}
        for i in self.file.actuators:
            name, u = self.file.name("actuator", i), m.key_ctrl[k][self.file.controls(i)]
            if np.any(u) and (i in self.lawless or name not in robot.actuators | robot.couplings):
                self.file.note(f"control of actuator {name!r}, whose law is left out,", "key", k)
            elif np.any(u):
                inputs[name] = float(u[0])
        velocities = {link: v for link, v in velocities.items() if np.any(v)}
        robot.add_state(self.file.name("key", k), positions, velocities, inputs)

    def _add_tendon_laws(self, robot: Robot, t: int) -> None:
        """Add the spring, the damper and the limits of a tendon, and note its other forces as left out."""
        m, done = self.m, ()
        low, high = m.tendon_lengthspring[t].tolist()
        k, c = float(m.tendon_stiffness[t]), float(np.ravel(m.tendon_damping[t])[0])
        if ratios := self._fixed_tendon(t):
            law: dict[str, Any] = {"stiffness": k, "damping": c}
            if k and low < high:  # no force in between
                rows = [(low - 1.0, -k), (low, 0.0), (high, 0.0), (high + 1.0, k)]
                lengths, forces = np.transpose(rows).tolist()
                law = {"damping": c, "spring": Tabulated(lengths, forces, "linear")}
            elif k:
                law["offset"] = low
            if m.tendon_limited[t]:
                law |= {"limits": tuple(m.tendon_range[t].tolist()), **self.stops}
            if ratios.keys() & self.gone:
                self.file.note("forces on a joint that base= replaces", "tendon", t)
            elif k or c or m.tendon_limited[t]:
                self._add_elastic_coupling(robot, self.file.name("tendon", t), ratios, law)
            done = ("stiffness", "damping", "limited", *["armature"] * (len(ratios) == 1))
        else:
            law = {"stiffness": k, "damping": c}
            if k and low < high:  # no force in between
                rows = [(0.0, -k * low), (low, 0.0), (high, 0.0), (high + 1.0, k)][low == 0.0 :]
                lengths, tensions = np.transpose(rows).tolist()
                law = {"stiffness": 0.0, "damping": c, "law": Tabulated(lengths, tensions, "linear")}
            elif k:
                law["rest"] = low
            if (k or c) and self._add_spring(robot, self.file.name("tendon", t), self._branches(t), law):
                done = ("stiffness", "damping")
            if m.tendon_limited[t] and self._add_spatial_limits(robot, t):
                done = (*done, "limited")
            pulls = m.actuator_trntype == int(self.mujoco.mjtTrn.mjTRN_TENDON)
            if not done and t not in m.actuator_trnid[pulls, 0]:
                self.file.findings.left_out("<tendon>", repr(self.file.name("tendon", t)))
        for word in ("stiffness", "damping", "stiffnesspoly", "dampingpoly", "limited", "frictionloss", "armature",
                     "actfrclimited", "springyield", "margin"):  # fmt: skip
            if word not in done and np.any(getattr(m, f"tendon_{word}", np.zeros(m.ntendon))[t]):
                kind = {"frictionloss": "dry friction", "limited": "limits", "actfrclimited": "limits of force",
                        "stiffnesspoly": "nonlinear stiffness", "dampingpoly": "nonlinear damping",
                        "springyield": "plastic spring", "margin": "margin of its limits"}  # fmt: skip
                self.file.note(kind.get(word, word), "tendon", t)

    def _add_elastic_coupling(self, robot: Robot, name: str, ratios: dict[int, float], law: dict[str, Any]) -> None:
        """Add an elastic coupling of joints, with a name that no coupling has."""
        while name in robot.joint_couplings:
            name = f"{name} of its tendon"
        robot.add_coupling(name, [self._joint_link(robot, j) for j in ratios], list(ratios.values()), **law)

    def _add_spatial_limits(self, robot: Robot, t: int) -> bool:
        """Add the limits of the length of a spatial tendon, as a Spring. Returns False if it has no such Spring."""
        low, high = self.m.tendon_range[t].tolist()
        k, c = self.stops["limit_stiffness"], self.stops["limit_damping"]
        if high <= 0.0:
            return False
        law: dict[str, Any] = {"stiffness": 0.0, "damping": c, "slack": True}
        law["law"] = Tabulated([high, high + 1.0], [0.0, k], "linear")
        if low > 0.0:  # it pushes too, without a damper
            law = {"stiffness": 0.0, "damping": 0.0}
            law["law"] = Tabulated([0.0, low, high, high + 1.0], [-k * low, 0.0, 0.0, k], "linear")
        return self._add_spring(robot, f"limits of {self.file.name('tendon', t)}", self._branches(t), law)

    def _damper(self, k: int) -> float:
        """Damping of the damper of an actuator; zero before MuJoCo 4. Notes what else acts on it as left out."""
        m = self.m
        for kind, name in (("nonlinear damping", "dampingpoly"), ("delay", "delay")):
            if np.any(getattr(m, f"actuator_{name}", np.zeros(len(self.file.actuators)))[k]):
                self.file.note(kind, "actuator", k)
        if m.actuator_group[k] >= 0 and m.opt.disableactuator & (1 << int(m.actuator_group[k])):
            self.file.note("group that is switched off (disableactuator)", "actuator", k)
        return float(np.ravel(getattr(m, "actuator_damping", np.zeros(len(self.file.actuators)))[k])[0])

    def _law(self, k: int) -> tuple[float | None, np.ndarray]:
        """The gain a and the bias (b₀, b₁, b₂) of (2). Other laws are noted as left out; they have no gain."""
        m, u = self.m, self.mujoco
        bias = int(m.actuator_biastype[k])
        affine = bias in (int(u.mjtBias.mjBIAS_NONE), int(u.mjtBias.mjBIAS_AFFINE))
        fixed = m.actuator_gaintype[k] == int(u.mjtGain.mjGAIN_FIXED) and len(self.file.controls(k)) == 1
        if not (affine and fixed and m.actuator_dyntype[k] == int(u.mjtDyn.mjDYN_NONE)):
            self.file.note(_NO_LAW, "actuator", k)
            return None, np.zeros(3)
        is_biased = bias == int(u.mjtBias.mjBIAS_AFFINE)
        return float(m.actuator_gainprm[k, 0]), m.actuator_biasprm[k, :3] * is_biased

    def _add_servo(self, robot: Robot, name: str, ratios: dict[int, float], bias: np.ndarray) -> bool:
        """Add the bias of an actuator to the spring of its joint by (2), or as an elastic coupling of several joints.
        Returns False without a joint, for a negative stiffness or damping, or a force without stiffness."""
        if not ratios or not bias.any():
            return not bias.any()
        if len(ratios) > 1:
            k, c = float(-bias[1]), float(-bias[2])
            if k < 0.0 or c < 0.0 or (bias[0] and not k):
                return False
            law = {"stiffness": k, "damping": c, "offset": float(bias[0] / k) if k else 0.0}
            self._add_elastic_coupling(robot, name, ratios, law)
            return True
        ((j, ratio),) = ratios.items()
        link = robot.links[self._joint_link(robot, j)]
        old: Any = link.joint
        stiffness, damping = old.stiffness - bias[1] * ratio**2, old.damping - bias[2] * ratio**2
        force = old.stiffness * float(old.rest_configuration("joint")[0]) + bias[0] * ratio
        if stiffness < 0.0 or damping < 0.0 or (force and not stiffness):
            return False
        spring = {"stiffness": float(stiffness), "rest": (float(force / stiffness),)} if stiffness else {}
        robot.links[link.name] = replace(link, joint=replace(old, damping=float(damping), **spring))
        return True

    def _add_exclusions(self, robot: Robot) -> None:
        """Add the pairs of <exclude>, and the groups of bodies whose contype and conaffinity do not let them touch."""
        m, masks = self.m, {}
        for k in range(m.nexclude):
            ends = [
                self.file.link(int(m.exclude_signature[k]) >> 16),
                self.file.link(int(m.exclude_signature[k]) & 0xFFFF),
            ]
            if None not in ends:
                robot.exclude_contacts(self.file.name("exclude", k), ends)
        for b in range(1, m.nbody):
            geoms = slice(m.body_geomadr[b], m.body_geomadr[b] + m.body_geomnum[b])
            mask = (int(np.bitwise_or.reduce(m.geom_contype[geoms], initial=0)),
                    int(np.bitwise_or.reduce(m.geom_conaffinity[geoms], initial=0)))  # fmt: skip
            if any(mask) or self.file.paired.intersection(range(geoms.start, geoms.stop)):
                masks.setdefault(mask, []).append(self.file.link(b))
        groups = list(masks.items())
        for k, (mask, links) in enumerate(groups):
            for other, others in groups[k:]:
                if not (mask[0] & other[1] or other[0] & mask[1]) and len({*links, *others}) > 1:
                    name = f"contype {mask[0]}, {other[0]} and conaffinity {mask[1]}, {other[1]}"
                    robot.exclude_contacts(name, links, None if others is links else others)

    def _add_pairs(self, robot: Robot) -> None:
        """Add the pairs of bodies whose geoms are a <pair>, and note what contact in lissom does not have."""
        m = self.m
        found: dict[tuple[str, str, float], str] = {}
        for k in range(m.npair):
            a, b = (self.file.link(int(m.geom_bodyid[g])) for g in (m.pair_geom1[k], m.pair_geom2[k]))
            if a is None or b is None or a == b:
                self.file.note("contact with a static shape" if a != b else "contact inside a body", "pair", k)
                continue
            along, across, *others = m.pair_friction[k].tolist()
            if m.pair_dim[k] > 1 and along != across:
                self.file.note("friction that depends on the direction", "pair", k)
            if m.pair_dim[k] > 3 and any(others):
                self.file.note("torsional and rolling friction", "pair", k)
            numbers = [*m.pair_solref[k], *m.pair_solimp[k], *m.pair_solreffriction[k], m.pair_margin[k], m.pair_gap[k]]
            if not np.allclose(numbers, [*DEFAULT_SOFTNESS, 0.0, 0.0, 0.0, 0.0]):
                self.file.note("softness (solref, solimp, margin, gap)", "pair", k)
            if np.any(getattr(m, "pair_adhesion", np.zeros(m.npair))[k]):
                self.file.note("adhesion", "pair", k)
            found.setdefault((a, b, along if m.pair_dim[k] > 1 else 0.0), self.file.name("pair", k))
        for (a, b, friction), name in found.items():
            robot.pair_contacts(name, a, b, friction=friction)

    def _add_equality(self, robot: Robot, k: int) -> None:
        """Add a constraint: a loop of bodies, a coupling of joints or fixed tendons, or a spring of spatial tendons."""
        m, u = self.m, self.mujoco
        kind = u.mjtEq(int(m.eq_type[k])).name.removeprefix("mjEQ_").lower()
        if not np.allclose([*m.eq_solref[k], *m.eq_solimp[k]], DEFAULT_SOFTNESS):
            self.file.note("softness (solref, solimp)", "equality", k)
        if kind in ("connect", "weld"):
            self._add_loop(robot, k, kind == "weld")
        elif kind == "joint" or (kind == "tendon" and not self._add_spring_equality(robot, k)):
            self._add_coupling(robot, k, kind)
        elif kind != "tendon":
            raise self.file.error("equality", k, f"of the kind {kind!r} is not rigid and cannot be left out")

    def _add_spring_equality(self, robot: Robot, k: int) -> bool:
        """Add a spring along L₁ − c₁ L₂ for an equality of spatial tendons. Returns False for other kinds."""
        m, c = self.m, self.m.eq_data[k, :5]
        ids = [x for x in (int(m.eq_obj1id[k]), int(m.eq_obj2id[k])) if x >= 0]
        is_spatial = [not self._fixed_tendon(x) for x in ids]
        if not any(is_spatial):
            return False
        if not all(is_spatial) or (len(ids) == 2 and c[2:].any()):
            raise self.file.error("equality", k, "must be linear in tendons that are all fixed or all spatial")
        rest, branches = float(m.tendon_length0[ids[0]] + c[0]), self._branches(ids[0])
        if len(ids) == 2:
            rest -= float(c[1] * m.tendon_length0[ids[1]])
            branches += [(-divisor / float(c[1]), path) for divisor, path in self._branches(ids[1]) if c[1]]
        law = {"stiffness": self.stops["limit_stiffness"], "damping": self.stops["limit_damping"], "rest": rest}
        if not branches or not self._add_spring(robot, self.file.name("equality", k), branches, law):
            raise self.file.error("equality", k, "must be of tendons whose paths a Spring can have")
        self.file.note("rigidity (a spring of limit_stiffness holds the tendon)", "equality", k)
        return True

    def _add_loop(self, robot: Robot, k: int, is_weld: bool) -> None:
        m, data = self.m, self.m.eq_data[k]
        ids, ends = (int(m.eq_obj1id[k]), int(m.eq_obj2id[k])), []
        if m.eq_objtype[k] == int(self.mujoco.mjtObj.mjOBJ_SITE):
            ends = [(self.file.link(m.site_bodyid[s]), self.file.pose(m.site_pos[s], m.site_quat[s])) for s in ids]
        else:
            first = self.file.pose(data[3:6], data[6:10]) if is_weld else moved(data[:3])
            second = moved(data[:3] if is_weld else data[3:6])
            ends = [(self.file.link(b), pose) for b, pose in zip(ids, (first, second), strict=True)]
        if ends[0][0] == ends[1][0]:
            self.file.note("constraint of a body to itself", "equality", k)
            return
        (link_a, a), (link_b, b) = ends if ends[0][0] is not None else ends[::-1]
        joint = JointFixed() if is_weld else JointSpherical()
        places = {"placement_a": a.tolist(), "placement_b": b.tolist()}
        robot.add_loop(self.file.name("equality", k), str(link_a), link_b, joint=joint, **places)

    def _add_coupling(self, robot: Robot, k: int, kind: str) -> None:
        """y₁ = Σ c_n y₂ⁿ with y the coordinate of a joint, or the length of a fixed tendon, less its reference."""
        m, c = self.m, self.m.eq_data[k, :5]
        sides, references = [], []
        for x in (int(m.eq_obj1id[k]), int(m.eq_obj2id[k])):
            sides.append({} if x < 0 else {x: 1.0} if kind == "joint" else self._fixed_tendon(x))
            of_joint = float(m.qpos0[m.jnt_qposadr[x]]) if kind == "joint" else float(m.tendon_length0[x])
            references.append(of_joint if x >= 0 else 0.0)
            if sides[-1].keys() & self.gone:
                raise self.file.error("equality", k, "must not need the joint that base= replaces")
        one, two = sides
        linear = not c[2:].any() or not two
        if not linear and (len(two) != 1 or two.keys() & one.keys()):
            raise self.file.error("equality", k, "must be linear in a tendon of several joints")
        ratios: dict[int, Any] = dict(one)
        offset = references[0] + float(c[0])
        if linear and two:
            offset -= float(c[1]) * references[1]
            for j, ratio in two.items():
                ratios[j] = ratios.get(j, 0.0) - float(c[1]) * ratio
        elif two:
            ((j, ratio),) = two.items()
            powers = np.polynomial.Polynomial([0.0, *c[1:]])(np.polynomial.Polynomial([-references[1], ratio])).coef
            offset += float(powers[0])
            ratios[j] = Expression(" ".join(f"- ({x!r})*q**{n}" for n, x in enumerate(powers.tolist()) if n), "q")
        ratios = {j: ratio for j, ratio in ratios.items() if not isinstance(ratio, float) or ratio}
        joints = [self._joint_link(robot, j) for j in ratios]
        name = self.file.name("equality", k)
        while name in robot.joint_couplings:  # of the law of a tendon
            name = f"{name} of its equality"
        robot.add_coupling(name, joints, list(ratios.values()), offset)

    def _joint_link(self, robot: Robot, j: int) -> str:
        """The name of the link of a joint."""
        m, b = self.m, int(self.m.jnt_bodyid[j])
        name = str(self.file.link(b))
        last = j == m.body_jntadr[b] + m.body_jntnum[b] - 1
        if last and robot.links[name].joint.nv:
            return name
        own = self.file.name("joint", j)
        return own if own in robot.links and not robot.links[own].body else f"{own} of {name}"


def _rescaled(key: str, value: Any, ratio: float) -> Any:
    """A number or a table of the law of a spring of length `ratio` x, as one of the length x. The power is the same."""
    if isinstance(value, Tabulated):
        return replace(value, points=[x / ratio for x in value.points], values=[f * ratio for f in value.values])
    if value is None or isinstance(value, bool):
        return value
    return float(value) * {"stiffness": ratio**2, "damping": ratio**2, "preload": ratio, "rest": 1.0 / ratio}[key]
