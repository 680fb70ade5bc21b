"""Rigid bodies and joints of a robot in UsdPhysics.

Angles of UsdPhysics are in degrees, so that a spring of k N·m/rad has k π/180. The x axis of the frames of a revolute
and of a prismatic joint is its axis. A joint of several coordinates is a joint without a type, whose other directions
are locked, if its axes are those of its frame. Links without mass between two bodies are part of such a joint.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from lissom.errors import ModelError
from lissom.io.imports import Findings
from lissom.io.writing import Move, moves_of, surface_of
from lissom.model.model import Model
from lissom.robot.bodies import RigidBody
from lissom.robot.constraints import Loop
from lissom.robot.joints import Joint, JointFixed, JointPrismatic, JointRevolute, JointSpherical
from lissom.robot.meshes import Mesh
from lissom.robot.robot import Link
from lissom.robot.sampled_shapes import ShapeHull, ShapeMesh
from lissom.robot.shapes import ShapeKind, ShapePlane

_ALIGNED = 1e-9  # distance of an axis from an axis of the frame that counts as rounding
_LETTERS = "XYZ"
_LEFT_OUT = ("skates", "rolling", "constraints", "joint_couplings", "springs", "loads", "motions", "forces")


def usd_modules(*names: str) -> tuple[Any, ...]:
    """Modules of usd-core, whose types are not known to type checkers."""
    return tuple(import_module(f"pxr.{name}") for name in names)


@final
class Physics:
    """The physics of one stage.

    Args:
        stage: the stage.
        model: the model.
        names: path of the prim of each link.
        findings: the parts that UsdPhysics does not have.
    """

    def __init__(self, stage: Any, model: Model, names: dict[str, str], findings: Findings) -> None:
        self.stage, self.model, self.names, self.findings = stage, model, names, findings
        self.robot = model.description
        self.children: dict[str | None, list[str]] = {}
        for link in self.robot.links.values():
            self.children.setdefault(link.parent, []).append(link.name)

    def note(self, kind: str, name: str) -> None:
        """Note a part as left out."""
        self.findings.left_out(kind, repr(name))

    def add(self) -> None:
        """Add the scene, the bodies, their joints and the loops."""
        Gf, UsdGeom, UsdPhysics = usd_modules("Gf", "UsdGeom", "UsdPhysics")

        scene = UsdPhysics.Scene.Define(self.stage, "/Robot/Physics")
        g = np.asarray(self.robot.gravity, dtype=np.float64)
        size = float(np.linalg.norm(g))
        scene.CreateGravityMagnitudeAttr(size)
        scene.CreateGravityDirectionAttr(Gf.Vec3f(*(g / size if size else (0.0, 0.0, -1.0))))
        UsdGeom.Scope.Define(self.stage, "/Robot/Joints")
        for name, link in self.robot.links.items():
            if isinstance(link.body, RigidBody) and link.body.mass > 0.0:
                self._body(name, link.body)
            elif link.body is not None:
                self.note("physics of the body of link", name)
        for name, link in self.robot.links.items():
            if self._is_body(name):
                self._joint(link)
        for loop in self.robot.loops.values():
            self._loop(loop)
        for contact in self.robot.contacts.values():
            self._plane(contact)
        for kind in _LEFT_OUT:
            for name in getattr(self.robot, kind):
                self.note(kind.replace("_", " "), name)
        for name in self.robot.actuators:
            self.note("actuator", name)

    def _is_body(self, name: str | None) -> bool:
        """Whether a link is a rigid body of the physics."""
        body = None if name is None else self.robot.links[name].body
        return isinstance(body, RigidBody) and body.mass > 0.0

    def _body(self, name: str, body: RigidBody) -> None:
        """Add mass, inertia and collision shapes of a body."""
        Gf, UsdPhysics = usd_modules("Gf", "UsdPhysics")

        prim = self.stage.GetPrimAtPath(self.names[name])
        UsdPhysics.RigidBodyAPI.Apply(prim)
        mass = UsdPhysics.MassAPI.Apply(prim)
        given = np.asarray(body.inertia, dtype=np.float64)
        moments, axes = np.linalg.eigh(np.diag(given) if given.ndim == 1 else given)
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
        mass.CreateMassAttr(float(body.mass))
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*np.asarray(body.com, dtype=float).tolist()))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*np.maximum(moments, 0.0).tolist()))
        mass.CreatePrincipalAxesAttr(_quaternion(axes))
        touching = any(name in contact.carriers(self.robot) for contact in self.robot.contacts.values())
        for k, placed in enumerate(body.collision_shapes):
            self._collider(f"{self.names[name]}/Collider{k + 1}", placed.shape, placed.placement, name, touching)

    def _collider(self, path: str, shape: Any, placement: Any, owner: str, touching: bool) -> None:
        """Add a collision shape, which is not drawn."""
        Gf, UsdGeom, UsdPhysics = usd_modules("Gf", "UsdGeom", "UsdPhysics")

        if isinstance(shape, ShapeHull | ShapeMesh):
            made = self._hull(path, Mesh.of_shape(shape, placement=placement))
        else:
            found, g = surface_of(shape, placement, f"shape of {owner!r}")
            radius, half = found.size[0], found.size[1]
            if found.kind in (ShapeKind.CONE, ShapeKind.TORUS, ShapeKind.ELLIPSOID):
                made = self._hull(path, Mesh.of_shape(shape, placement=placement))
            elif found.kind is ShapeKind.SPHERE:
                made = UsdGeom.Sphere.Define(self.stage, path)
                made.CreateRadiusAttr(radius)
            elif found.kind is ShapeKind.BOX:
                made = UsdGeom.Cube.Define(self.stage, path)
            elif found.kind in (ShapeKind.CYLINDER, ShapeKind.CAPSULE) and half > 0.0:
                kind = UsdGeom.Cylinder if found.kind is ShapeKind.CYLINDER else UsdGeom.Capsule
                made = kind.Define(self.stage, path)
                made.CreateRadiusAttr(radius)
                made.CreateHeightAttr(2.0 * half)
                made.CreateAxisAttr(UsdGeom.Tokens.z)
            else:
                self.note(f"{found.kind.name.lower()} shape", owner)
                return
            if found.kind not in (ShapeKind.CONE, ShapeKind.TORUS, ShapeKind.ELLIPSOID):
                made.AddTransformOp().Set(Gf.Matrix4d(g.T.tolist()))
            if found.kind is ShapeKind.BOX:
                made.AddScaleOp().Set(Gf.Vec3f(*found.size))
            if hasattr(made, "CreateExtentAttr"):
                made.CreateExtentAttr(UsdGeom.Boundable.ComputeExtentFromPlugins(made, 0))
        made.CreatePurposeAttr(UsdGeom.Tokens.guide)
        UsdPhysics.CollisionAPI.Apply(made.GetPrim()).CreateCollisionEnabledAttr(touching)

    def _hull(self, path: str, mesh: Mesh) -> Any:
        """Add a mesh that touches as its convex hull."""
        UsdGeom, UsdPhysics, Vt = usd_modules("UsdGeom", "UsdPhysics", "Vt")

        vertices, triangles = mesh.surface()
        made = UsdGeom.Mesh.Define(self.stage, path)
        made.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        made.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(vertices, dtype=np.float32)))
        made.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(
            np.stack([vertices.min(axis=0), vertices.max(axis=0)]).astype(np.float32)))  # fmt: skip
        made.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, dtype=np.int32)))
        made.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ascontiguousarray(triangles, dtype=np.int32).ravel()))
        UsdPhysics.MeshCollisionAPI.Apply(made.GetPrim()).CreateApproximationAttr(UsdPhysics.Tokens.convexHull)
        return made

    def _plane(self, contact: Any) -> None:
        """Add the plane of a contact in the world."""
        Gf, UsdGeom, UsdPhysics = usd_modules("Gf", "UsdGeom", "UsdPhysics")

        self.note("law (each simulator has its own) of contact", contact.name)
        if not isinstance(contact.shape, ShapePlane) or contact.on is not None:
            self.note("shape or pairs of contact", contact.name)
            return
        _, g = surface_of(contact.shape, contact.placement, f"contact {contact.name!r}")
        (Tf,) = usd_modules("Tf")
        made = UsdGeom.Plane.Define(self.stage, f"/Robot/Physics/{Tf.MakeValidIdentifier(contact.name)}")
        made.CreateAxisAttr(UsdGeom.Tokens.z)
        made.CreatePurposeAttr(UsdGeom.Tokens.guide)
        made.AddTransformOp().Set(Gf.Matrix4d(g.T.tolist()))
        made.CreateExtentAttr(UsdGeom.Boundable.ComputeExtentFromPlugins(made, 0))
        UsdPhysics.CollisionAPI.Apply(made.GetPrim())

    # -- joints -------------------------------------------------------------------------------------------------------

    def _joint(self, link: Link) -> None:
        """Add the joint of a body, and those of links without mass above it."""
        chain, parent = [link], link.parent
        while parent is not None and self.robot.links[parent].body is None:
            above = self.robot.links[parent]
            if above.joint.nv and len(self.children[parent]) > 1:
                self._hold("joint to a link without mass that carries several", link.name)
                return
            chain.insert(0, above)
            parent = above.parent
        if parent is not None and not self._is_body(parent):
            self._hold("joint to a rod or a deformable body", link.name)
            return
        try:
            moves = [(one, move) for one in chain for move in moves_of(one, lambda x: self.note(x, link.name))]
        except ModelError:
            self._hold(type(link.joint).__name__, link.name)
            return
        if any(move.kind == "free" for _, move in moves):
            if len(moves) > 1 or parent is not None:
                self._hold("free joint below a joint", link.name)
            return  # a body without a joint is free
        frames = _frames(chain)
        if not moves:
            self._typed("PhysicsFixedJoint", link.name, parent, link.name, frames[-1], np.eye(4))
        elif len(moves) == 1:
            one, move = moves[0]
            k = chain.index(one)
            below = np.linalg.inv(frames[k]) @ frames[-1]
            self._single(move, parent, link.name, frames[k], np.linalg.inv(below))
        else:
            self._several([(chain.index(one), move) for one, move in moves], parent, link.name, frames)

    def _hold(self, kind: str, name: str) -> None:
        """Note the joint of a link as left out, and let its body follow its time samples."""
        (UsdPhysics,) = usd_modules("UsdPhysics")

        self.note(f"{kind} of link", name)
        UsdPhysics.RigidBodyAPI(self.stage.GetPrimAtPath(self.names[name])).CreateKinematicEnabledAttr(True)

    def _single(self, move: Move, parent: str | None, name: str, before: np.ndarray, after: np.ndarray) -> None:
        """Add a joint of one move, whose frame is `before` in the parent and `after` in the body, at zero."""
        (UsdPhysics,) = usd_modules("UsdPhysics")

        kind = {"hinge": "Revolute", "slide": "Prismatic", "ball": "Spherical"}[move.kind]
        turn = np.eye(4)
        if move.kind != "ball":
            turn[:3, :3] = _along(move.axis)
        prim = self._typed(f"Physics{kind}Joint", move.name, parent, name, before @ turn, after @ turn)
        if move.kind == "ball":
            if move.stiffness or move.damping:
                self.note("spring or damper of the spherical joint of link", name)
            return
        joint = getattr(UsdPhysics, f"{kind}Joint")(prim)
        joint.CreateAxisAttr("X")
        scale = 180.0 / np.pi if move.kind == "hinge" else 1.0
        low, high = move.limits
        if np.isfinite(low):
            joint.CreateLowerLimitAttr(low * scale)
        if np.isfinite(high):
            joint.CreateUpperLimitAttr(high * scale)
        self._drive(prim, "angular" if move.kind == "hinge" else "linear", move, scale)

    def _several(self, moves: list[tuple[int, Move]], parent: str | None, name: str, frames: list[np.ndarray]) -> None:
        """Add a joint without a type for moves along the axes of one frame."""
        (UsdPhysics,) = usd_modules("UsdPhysics")

        first, free = frames[moves[0][0]], {}
        for k, move in moves:
            away = np.linalg.inv(first) @ frames[k]
            axis = away[:3, :3] @ move.axis
            at = int(np.argmax(np.abs(axis)))
            aligned = np.abs(np.abs(axis) - np.eye(3)[at]).max() < _ALIGNED and axis[at] > 0.0
            if move.kind == "ball" or not aligned or np.abs(away[:3, 3]).max() > _ALIGNED:
                self._hold("joint whose axes are not those of one frame", name)
                return
            free[("rot" if move.kind == "hinge" else "trans") + _LETTERS[at]] = move
        after = np.linalg.inv(np.linalg.inv(first) @ frames[-1])
        prim = self._typed("PhysicsJoint", name, parent, name, first, after)
        for word in ("trans", "rot"):
            scale = 180.0 / np.pi if word == "rot" else 1.0
            for letter in _LETTERS:
                move = free.get(word + letter)
                low, high = (1.0, -1.0) if move is None else move.limits  # low > high locks
                if np.isfinite(low) or np.isfinite(high):
                    limit = UsdPhysics.LimitAPI.Apply(prim, word + letter)
                    limit.CreateLowAttr(low * (scale if move else 1.0))
                    limit.CreateHighAttr(high * (scale if move else 1.0))
                if move is not None:
                    self._drive(prim, word + letter, move, scale)

    def _drive(self, prim: Any, word: str, move: Move, scale: float) -> None:
        """Add the spring and the damper of a move. `scale` is its unit of USD per unit of the library."""
        (UsdPhysics,) = usd_modules("UsdPhysics")

        if not (move.stiffness or move.damping):
            return
        drive = UsdPhysics.DriveAPI.Apply(prim, word)
        drive.CreateTypeAttr("force")
        drive.CreateStiffnessAttr(move.stiffness / scale)
        drive.CreateDampingAttr(move.damping / scale)
        drive.CreateTargetPositionAttr(move.rest * scale)

    def _loop(self, loop: Loop) -> None:
        """Add the joint of a loop, outside the tree of joints."""
        (UsdPhysics,) = usd_modules("UsdPhysics")

        joint: Joint = loop.joint
        ends = [(loop.link_b, loop.placement_b), (loop.link_a, loop.placement_a)]
        known = isinstance(joint, JointFixed | JointRevolute | JointPrismatic | JointSpherical)
        if not known or any(link is not None and not self._is_body(link) for link, _ in ends):
            self.note("loop", loop.name)
            return
        turn = np.eye(4)
        if isinstance(joint, JointRevolute | JointPrismatic):
            turn[:3, :3] = _along(np.asarray(joint.axis, dtype=np.float64))
        kind = type(joint).__name__.removeprefix("Joint")
        g = [(np.eye(4) if x is None else np.asarray(x, dtype=np.float64)) @ turn for _, x in ends]
        prim = self._typed(f"Physics{kind}Joint", loop.name, ends[0][0], str(ends[1][0]), *g)
        UsdPhysics.Joint(prim).CreateExcludeFromArticulationAttr(True)

    def _typed(
        self, kind: str, name: str, parent: str | None, child: str, before: np.ndarray, after: np.ndarray
    ) -> Any:
        """A joint between two bodies, with its frames in them."""
        Gf, Tf, UsdPhysics = usd_modules("Gf", "Tf", "UsdPhysics")

        path = f"/Robot/Joints/{Tf.MakeValidIdentifier(name)}"
        while self.stage.GetPrimAtPath(path):
            path += "_"
        prim = self.stage.DefinePrim(path, kind)
        joint = UsdPhysics.Joint(prim)
        if parent is not None:
            joint.CreateBody0Rel().SetTargets([self.names[parent]])
        joint.CreateBody1Rel().SetTargets([self.names[child]])
        for k, g in enumerate((before, after)):
            getattr(joint, f"CreateLocalPos{k}Attr")(Gf.Vec3f(*g[:3, 3].tolist()))
            getattr(joint, f"CreateLocalRot{k}Attr")(_quaternion(g[:3, :3]))
        return prim


def _frames(chain: list[Link]) -> list[np.ndarray]:
    """The frame (4, 4) of each link of a chain in that of the parent of the first one, with all joints at zero."""
    out, g = [], np.eye(4)
    for link in chain:
        g = g if link.placement is None else g @ np.asarray(link.placement, dtype=np.float64)
        out.append(g)
    return out


def _along(axis: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) that takes x to an axis."""
    x = axis / np.linalg.norm(axis)
    y = np.cross(np.eye(3)[int(np.argmin(np.abs(x)))], x)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def _quaternion(R: np.ndarray) -> Any:
    """A rotation (3, 3) as a quaternion of USD."""
    (Gf,) = usd_modules("Gf")

    x, y, z, w = Rotation.from_matrix(R).as_quat().tolist()
    return Gf.Quatf(w, x, y, z)
