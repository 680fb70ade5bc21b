"""Compiled models of MJCF files: names, poses, and the bodies with their geoms."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.io.imports import Findings
from lissom.robot.bodies import RigidBody
from lissom.robot.contact_points import FILLING
from lissom.robot.meshes import Mesh
from lissom.robot.sampled_shapes import ShapeHull
from lissom.robot.shapes import (
    PlacedShape,
    Shape,
    ShapeBox,
    ShapeCapsule,
    ShapeCylinder,
    ShapeEllipsoid,
    ShapeSphere,
)

ALONG_Z = (0.0, 0.0, 1.0)
DEFAULT_SOFTNESS = (0.02, 1.0, 0.9, 0.95, 0.001, 0.5, 2.0)  # solref and solimp of a contact or a constraint
_DEFAULT_FRICTION = (1.0, 0.005, 0.0001)  # of a geom


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


def unit(quaternion: np.ndarray) -> np.ndarray:
    """A quaternion of unit length; the neutral one for zeros."""
    length = float(np.linalg.norm(quaternion))
    return quaternion / length if length else np.array([1.0, 0.0, 0.0, 0.0])


def moved(position: Any) -> np.ndarray:
    """The pose (4, 4) of a translation."""
    g = np.eye(4)
    g[:3, 3] = position
    return g


@final
class CompiledFile:
    """A compiled model of MuJoCo, with the names, the poses and the bodies of its elements.

    Args:
        mujoco: the package.
        compiled: the model.
        findings: the parts of the file that the robot does not have.
        balls: largest number of balls that fill a mesh; 0: bodies get no collision shapes.
    """

    def __init__(self, mujoco: Any, compiled: Any, findings: Findings, balls: int) -> None:
        self.mujoco, self.m, self.findings, self.count = mujoco, compiled, findings, balls
        self.paired = {*compiled.pair_geom1.tolist(), *compiled.pair_geom2.tolist()}  # geoms of <pair>

    def name(self, tag: str, k: int) -> str:
        """The name of an element; without a name its tag and index."""
        kind = getattr(self.mujoco.mjtObj, f"mjOBJ_{tag.upper()}", None)
        return (kind is not None and self.mujoco.mj_id2name(self.m, kind, k)) or f"{tag} {k}"

    def error(self, tag: str, k: int, rule: str) -> ModelError:
        """A ModelError that names the file, the element and the rule."""
        return ModelError(f"{self.findings.source}: {tag} {self.name(tag, k)!r}: {rule}")

    def note(self, kind: str, tag: str, k: int) -> None:
        """Note an element as left out."""
        self.findings.left_out(kind, f"{tag} {self.name(tag, k)!r}")

    @property
    def actuators(self) -> range:
        """The indices of the actuators. From MuJoCo 4 on an actuator may have no control or several, and several
        forces."""
        return range(int(getattr(self.m, "nactuator", self.m.nu)))

    def controls(self, k: int) -> list[int]:
        """The indices of the controls of an actuator."""
        if not hasattr(self.m, "actuator_ctrladr"):
            return [k]
        first = int(self.m.actuator_ctrladr[k])
        return [*range(first, first + int(self.m.actuator_ctrlnum[k]))]

    def gear(self, k: int) -> np.ndarray:
        """The gear of the first force of an actuator, shape (6,)."""
        return self.m.actuator_gear[int(self.m.actuator_outadr[k]) if hasattr(self.m, "actuator_outadr") else k]

    def link(self, b: int) -> str | None:
        """The name of the link of a body; None for the world."""
        return None if b == 0 else self.name("body", b)

    def rotation(self, quaternion: Any) -> np.ndarray:
        """The rotation matrix (3, 3) of a quaternion (w, x, y, z)."""
        R = np.zeros(9)
        self.mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=np.float64))
        return R.reshape(3, 3)

    def pose(self, position: Any, quaternion: Any) -> np.ndarray:
        """The pose (4, 4) of a position [m] and a quaternion."""
        g = moved(position)
        g[:3, :3] = self.rotation(quaternion)
        return g

    def place(self, g: int) -> np.ndarray:
        """The pose (4, 4) of a geom in its body."""
        return self.pose(self.m.geom_pos[g], self.m.geom_quat[g])

    def body(self, b: int) -> RigidBody | None:
        """A body with its drawn meshes and its collision shapes; None if it has no mass and neither of them."""
        m = self.m
        geoms = range(m.body_geomadr[b], m.body_geomadr[b] + m.body_geomnum[b])
        contact_geoms = [g for g in geoms if m.geom_contype[g] or m.geom_conaffinity[g] or g in self.paired]
        for g in contact_geoms:
            self.note_contact_parameters(g)
        seen = [g for g in geoms if g not in contact_geoms] or contact_geoms
        meshes = [mesh for g in seen for mesh in self.mesh(g)]
        shapes = tuple(self.collision(contact_geoms)) if self.count else ()
        if not m.body_mass[b] and not meshes and not shapes:
            return None
        R = self.rotation(m.body_iquat[b])
        inertia = R @ np.diag(m.body_inertia[b]) @ R.T
        largest = float(m.body_inertia.max())
        return RigidBody(
            float(m.body_mass[b]),
            m.body_ipos[b].tolist(),
            self.findings.inertia(0.5 * (inertia + inertia.T), str(self.link(b)), largest).tolist(),
            shapes=shapes,
            balls=None if self.count == FILLING or not shapes else self.count,
            meshes=tuple(meshes),
        )

    def note_contact_parameters(self, g: int) -> None:
        """Note the parameters of contact of a geom that are not the default; contacts of lissom have their own."""
        m = self.m
        softness = [*m.geom_solref[g], *m.geom_solimp[g], m.geom_margin[g], m.geom_gap[g]]
        kinds = {
            "friction": not np.allclose(m.geom_friction[g], _DEFAULT_FRICTION) or m.geom_condim[g] != 3,
            "softness (solref, solimp, margin, gap)": not np.allclose(softness, [*DEFAULT_SOFTNESS, 0.0, 0.0]),
            "adhesion": np.any(getattr(m, "geom_adhesion", np.zeros(m.ngeom))[g]),
            "speed of the surface": np.any(getattr(m, "geom_surfacevel", np.zeros(m.ngeom))[g]),
            "weights (priority, solmix)": m.geom_priority[g] or m.geom_solmix[g] != 1.0,
        }
        for kind, differs in kinds.items():
            if differs:
                self.note(f"{kind} of contacts", "geom", g)

    def mesh(self, g: int) -> Iterator[Mesh]:
        """The drawn mesh of a geom."""
        m = self.m
        color = m.geom_rgba[g] if m.geom_matid[g] < 0 else m.mat_rgba[m.geom_matid[g]]
        color = color.astype(np.float64)
        place = f"geom {self.name('geom', g)!r}"
        color = self.findings.color(color, color, lambda rule: self.error("geom", g, rule), place)
        looks = {"placement": self.place(g).tolist(), "color": color}
        kind = self.kind(g)
        if kind == "mesh":
            vertices, triangles = self.triangles(g)
            yield Mesh(vertices=vertices.tolist(), triangles=triangles.tolist(), **looks)
        elif (shape := self.shape(g)) is not None:
            yield Mesh.of_shape(shape, **looks)
        else:
            self.note(f"{kind} of a body", "geom", g)

    def collision(self, geoms: list[int]) -> Iterator[PlacedShape]:
        """The shapes of geoms, placed in their body. That of a mesh is its convex hull, as in MuJoCo."""
        for g in geoms:
            shape = ShapeHull(self.triangles(g)[0].tolist()) if self.kind(g) == "mesh" else self.shape(g)
            if shape is None:
                self.note(f"contacts of the {self.kind(g)} of a body", "geom", g)
            else:
                yield PlacedShape(shape, self.place(g).tolist())

    def kind(self, g: int) -> str:
        """The type of a geom: sphere, capsule, ..."""
        return self.mujoco.mjtGeom(int(self.m.geom_type[g])).name.removeprefix("mjGEOM_").lower()

    def shape(self, g: int) -> Shape | None:
        """A geom as a Shape; None if there is no such shape."""
        x, y, z = (float(size) for size in self.m.geom_size[g])
        shapes = {
            "sphere": lambda: ShapeSphere(x),
            "capsule": lambda: ShapeCapsule(x, 2.0 * y, ALONG_Z),
            "cylinder": lambda: ShapeCylinder(x, 2.0 * y, ALONG_Z),
            "box": lambda: ShapeBox(2.0 * x, 2.0 * y, 2.0 * z),
            "ellipsoid": lambda: ShapeEllipsoid(x, y, z),
        }
        make = shapes.get(self.kind(g))
        return None if make is None else make()

    def triangles(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and triangles of the mesh of a geom, in the geom's frame."""
        m, k = self.m, self.m.geom_dataid[g]
        first, face = m.mesh_vertadr[k], m.mesh_faceadr[k]
        vertices = m.mesh_vert[first : first + m.mesh_vertnum[k]]
        return vertices.astype(np.float64), m.mesh_face[face : face + m.mesh_facenum[k]].astype(np.int64)
