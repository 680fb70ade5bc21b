"""A robot, or its motion, as a file of OpenUSD (extra `usd`).

    /Robot                 the default prim: metres, kilograms, z upwards
      /Links/<name>        frame of a link, with time samples; rigid bodies carry their meshes
      /Surfaces/<name>     rods and deformable bodies: a mesh with points for each time
      /Lines/<name>        tendons and springs: curves
      /Frames/<name>       named frames
      /Surroundings/<name> shapes of contacts
      /Materials           one for each color
      /Joints, /Physics    rigid bodies and joints of UsdPhysics (viewing/usd_physics)

USD multiplies rows by matrices: its matrix of a pose g is gᵀ.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.configuration import single_configuration
from lissom.dynamics.kinematics import frame_pose
from lissom.dynamics.start import start_configuration
from lissom.errors import ModelError, ShapeError
from lissom.io.imports import Findings
from lissom.io.writing import SavedRobot
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.geometry import Geometry, Mesh, contact_geometry, robot_geometry
from lissom.viewing.render import configurations_at
from lissom.viewing.stage import COLORS
from lissom.viewing.usd_physics import Physics, usd_modules

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ENDINGS = (".usd", ".usda", ".usdc")
_LINE_WIDTH = 0.006  # of tendons and springs, relative to the robot
_AROUND = 1.0  # margin of unbounded shapes of contacts, relative to the robot


def save_usd(
    model: Model,
    path: str | os.PathLike[str],
    motion: Trajectory | None = None,
    *,
    q: ArrayLike | None = None,
    fps: float = 24.0,
    physics: bool = True,
) -> SavedRobot:
    """Write a robot at rest, or its motion, as a file of OpenUSD for Omniverse, Blender, Houdini and others.

    Links are frames with time samples, rods and deformable bodies are meshes whose points have time samples, and
    tendons are curves. With `physics`, rigid bodies have mass, inertia and collision shapes of UsdPhysics, and
    revolute, prismatic, spherical and fixed joints, springs and loops between them. Rods have none: to give a rod
    physics, save `rigid_chains(robot).robot.build()`. A LeftOutWarning names the joints and actuators that UsdPhysics
    does not have. Bodies on such joints are kinematic: they follow their time samples.

    Args:
        model: the model.
        path: file to write, .usd, .usda (text) or .usdc.
        motion: motion of this model, of one robot; None writes one pose.
        q: configuration, shape (nq,) [rad, m, or strain units], without a motion; None is `start_configuration`.
        fps: time codes per second, one sample each [1/s].
        physics: whether to write bodies and joints of UsdPhysics.
    Returns:
        SavedRobot, whose `left_out` names what the physics of the file does not hold.
    Raises:
        ModelError: the ending is another one, usd-core is not installed, or not one Model. ShapeError: the motion is a
            batch or of another robot. OSError: the file cannot be written.
    """
    checks.require(not model.models and isinstance(model, Model), "save_usd: model", "must be one Model", model)
    checks.number(fps, "save_usd: fps", above=0.0)
    checks.require(motion is None or q is None, "save_usd: q", "must be left out where there is a motion", q)
    times, poses = _samples(model, motion, q, fps)
    where, ending = Path(path), Path(path).suffix.lower()
    checks.require(ending in ENDINGS, "save_usd: path", f"must end in one of {', '.join(ENDINGS)}", os.fspath(path))
    try:
        import pxr  # noqa: F401
    except ImportError:
        raise ModelError("save_usd: needs OpenUSD: pip install 'lissom[usd]'") from None
    findings = Findings(os.fspath(path))
    stage = _Stage(model, times * fps if motion is not None else None, poses, fps)
    made = stage.made()
    if physics:
        Physics(made, model, stage.names, findings).add()
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / f"robot{ending}"
        made.GetRootLayer().Export(os.fspath(there))
        content = there.read_bytes()
    write_whole(where, lambda file: file.write(content))
    left = findings.rows()
    findings.warn()
    return SavedRobot(where, (), left)


def _samples(model: Model, motion: Trajectory | None, q: Any, fps: float) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) [s] from the start of the motion, and configurations (n, nq)."""
    if motion is None:
        one = start_configuration(model) if q is None else single_configuration(model, q, "q")
        return np.zeros(1), one[None]
    if motion.q.ndim != 2 or motion.q.shape[1] != model.nq:
        raise ShapeError(f"motion: expected q of shape (n, {model.nq}) of one robot, got {motion.q.shape}")
    duration = float(motion.t[-1] - motion.t[0])
    times = np.arange(int(np.floor(duration * fps + 1e-9)) + 1) / fps
    return times, configurations_at(model, motion, times + motion.t[0])


@final
class _Stage:
    """The stage of a robot.

    Fields:
        names: path of the prim of each link.
        times: time codes (n,); None for a single pose, which has no time samples.
        q: configurations (n, nq).
    """

    def __init__(self, model: Model, times: np.ndarray | None, q: np.ndarray, fps: float) -> None:
        Usd, UsdGeom, UsdPhysics = usd_modules("Usd", "UsdGeom", "UsdPhysics")

        self.model, self.times, self.q = model, times, q
        self.stage: Any = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.stage.SetTimeCodesPerSecond(fps)
        self.stage.SetFramesPerSecond(fps)
        if times is not None:
            self.stage.SetStartTimeCode(float(times[0]))
            self.stage.SetEndTimeCode(float(times[-1]))
        root = UsdGeom.Xform.Define(self.stage, "/Robot")
        root.GetPrim().SetDisplayName(model.name)
        self.stage.SetDefaultPrim(root.GetPrim())
        self.names: dict[str, str] = {}
        self.taken: set[str] = set()
        self.materials: dict[tuple[float, ...], Any] = {}

    def made(self) -> Any:
        """The stage with everything that is drawn."""
        model = self.model
        for folder in ("Links", "Surfaces", "Lines", "Frames", "Surroundings", "Materials"):
            self._scope(folder)
        links = {}
        for name, body in zip(model.links.names, model.links.body):
            slender = body is not None and body.is_slender
            links[name] = frame_pose(model, self.q, name, s=0.0) if slender else frame_pose(model, self.q, name)
            self.names[name] = self._frame("Links", name, links[name])
        for name in model.frames:
            self._frame("Frames", name, frame_pose(model, self.q, name))
        geometry = robot_geometry(model)
        points = geometry.points(self.q)
        for mesh in geometry.meshes:
            if mesh.kind == "rigid":
                g = links[str(mesh.link)][0]
                own = (points[0, mesh.rows] - g[:3, 3]) @ g[:3, :3]
                self._mesh(f"{self.names[str(mesh.link)]}/Mesh", mesh, own[None])
            else:
                self._mesh(f"/Robot/Surfaces/{self._identifier(mesh.name)}", mesh, points[:, mesh.rows])
        size = float(np.ptp(points[0], axis=0).max()) if points.shape[1] else 1.0
        self._lines(geometry, points, size)
        self._surroundings(points, size)
        return self.stage

    def _scope(self, name: str) -> None:
        (UsdGeom,) = usd_modules("UsdGeom")

        UsdGeom.Scope.Define(self.stage, f"/Robot/{name}")

    def _identifier(self, name: str) -> str:
        """A name that USD takes, for paths."""
        (Tf,) = usd_modules("Tf")

        return Tf.MakeValidIdentifier(name) or "part"

    def _path(self, folder: str, name: str) -> str:
        """A new path in a folder."""
        path = f"/Robot/{folder}/{self._identifier(name)}"
        while path in self.taken:
            path += "_"
        self.taken.add(path)
        return path

    def _frame(self, folder: str, name: str, g: np.ndarray) -> str:
        """Add a frame with poses (n, 4, 4), and return its path."""
        Gf, UsdGeom = usd_modules("Gf", "UsdGeom")

        path = self._path(folder, name)
        xform = UsdGeom.Xform.Define(self.stage, path)
        xform.GetPrim().SetDisplayName(name)
        operation = xform.AddTransformOp()
        operation.Set(Gf.Matrix4d(g[0].T.tolist()))
        for k, time in enumerate([] if self.times is None else self.times.tolist()):
            operation.Set(Gf.Matrix4d(g[k].T.tolist()), time)
        return path

    def _mesh(self, path: str, mesh: Mesh, points: np.ndarray) -> None:
        """Add a mesh with points (n, v, 3), which have time samples if there are several."""
        UsdGeom, Vt = usd_modules("UsdGeom", "Vt")

        while path in self.taken:
            path += "_"
        self.taken.add(path)
        made = UsdGeom.Mesh.Define(self.stage, path)
        triangles = mesh.triangles
        made.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        made.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, dtype=np.int32)))
        made.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.ravel().astype(np.int32)))
        made.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
        still = len(points) == 1 or self.times is None
        for k, time in enumerate([None] if still else [None, *self.times.tolist()]):  # type: ignore[union-attr]
            x = points[max(k - 1, 0)]
            values = (
                (made.GetPointsAttr(), x),
                (made.GetNormalsAttr(), mesh.normals(x)),
                (made.GetExtentAttr(), np.stack([x.min(axis=0), x.max(axis=0)])),
            )
            for attribute, value in values:
                array = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(value, dtype=np.float32))
                attribute.Set(array) if time is None else attribute.Set(array, time)
        self._bind(made, COLORS[mesh.kind] if mesh.color is None else [255.0 * x for x in mesh.color])

    def _bind(self, made: Any, color: Any) -> None:
        """Give a prim the material of a color, (3,) from 0 to 255, or (4,) with the opacity."""
        Gf, Sdf, UsdShade = usd_modules("Gf", "Sdf", "UsdShade")

        key = tuple(round(float(x), 3) for x in color)
        if key not in self.materials:
            path = f"/Robot/Materials/Color{len(self.materials) + 1}"
            material = UsdShade.Material.Define(self.stage, path)
            shader = UsdShade.Shader.Define(self.stage, f"{path}/Surface")
            shader.CreateIdAttr("UsdPreviewSurface")
            linear = [(x / 255.0) ** 2.2 for x in key[:3]]  # colors of the screen, in the linear space of USD
            shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*linear))
            shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.6)
            if len(key) == 4:
                shader.CreateInput("opacity", Sdf.ValueTypeNames.Float).Set(key[3] / 255.0)
            material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
            self.materials[key] = material
        UsdShade.MaterialBindingAPI.Apply(made.GetPrim()).Bind(self.materials[key])

    def _lines(self, geometry: Geometry, points: np.ndarray, size: float) -> None:
        """Add tendons and springs as curves."""
        UsdGeom, Vt = usd_modules("UsdGeom", "Vt")

        for line in (*geometry.of("tendon"), *geometry.of("spring")):
            curve = UsdGeom.BasisCurves.Define(self.stage, self._path("Lines", line.name))
            curve.CreateTypeAttr(UsdGeom.Tokens.linear)
            curve.CreateCurveVertexCountsAttr([line.rows.stop - line.rows.start])
            curve.CreateWidthsAttr([_LINE_WIDTH * size])
            curve.SetWidthsInterpolation(UsdGeom.Tokens.constant)
            for k, time in enumerate([None, *([] if self.times is None else self.times.tolist())]):
                x = points[max(k - 1, 0), line.rows]
                edge = _LINE_WIDTH * size / 2.0
                box = np.stack([x.min(axis=0) - edge, x.max(axis=0) + edge])
                for attribute, value in ((curve.GetPointsAttr(), x), (curve.GetExtentAttr(), box)):
                    array = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(value, dtype=np.float32))
                    attribute.Set(array) if time is None else attribute.Set(array, time)
            self._bind(curve, (90, 100, 180))

    def _surroundings(self, points: np.ndarray, size: float) -> None:
        """Add the shapes of contacts."""
        flat = points.reshape(-1, 3) if points.shape[1] else np.zeros((1, 3))
        low, high = flat.min(axis=0) - _AROUND * size, flat.max(axis=0) + _AROUND * size
        around = contact_geometry(self.model, self.q[0], low, high)
        there = around.points(self.q)
        for mesh in around.meshes:
            own = there[:, mesh.rows] if mesh.link else there[:1, mesh.rows]
            self._mesh(f"/Robot/Surroundings/{self._identifier(mesh.name)}", mesh, own)
