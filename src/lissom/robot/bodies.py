"""Bodies of links: rods and rigid bodies."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import pi
from typing import Any, NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.bases import Basis
from lissom.robot.fields import Balls, FunctionOfS, Numbers
from lissom.robot.materials import Material
from lissom.robot.meshes import Mesh, check_balls, solid_moments
from lissom.robot.sampled_shapes import ShapeHull, ShapeMesh, half_width_of
from lissom.robot.sections import Section
from lissom.robot.shapes import PlacedShape, ShapeBox, ShapeCylinder, ShapeSphere, is_bounded

STRAIGHT = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])


class Solid(NamedTuple):
    """A box, cylinder (along x) or ellipsoid: half-sizes (3,) and centre (3,) in the body's frame [m]."""

    form: str
    half: np.ndarray
    centre: np.ndarray


class Body(ABC):
    """A body that is attached to the child frame of a joint."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the body is invalid."""

    def with_field(self, name: str, value: Any) -> Body:
        """A copy with another value of a field, and of the fields that must agree with it."""
        return replace(self, **{name: value})  # type: ignore[type-var]

    @property
    def is_slender(self) -> bool:
        """Whether the body extends along s. Tendons and chambers may run along such a body, and a wake may begin at its
        tip."""
        return False

    @property
    def touches(self) -> bool:
        """Whether the body can touch others: it has collision shapes, balls, or a surface of its own."""
        return False

    @property
    def collision_shapes(self) -> tuple[PlacedShape, ...]:
        """The shapes of a rigid body that touch others; empty for bodies that touch by balls or surfaces of their
        own."""
        return ()

    def cross_outline(self, s: float, count: int) -> np.ndarray:
        """Points (y, z) on the outline of the cross-section at s, shape (count, 2) [m]; shape (0, 2) for a body without
        cross-sections."""
        return np.zeros((0, 2))

    def cross_hole(self, s: float, count: int) -> np.ndarray:
        """Points (y, z) on the outline of the hole in the cross-section at s, shape (count, 2) [m]; shape (0, 2) if
        there is no hole."""
        return np.zeros((0, 2))

    def material_point(self, s: Any, where: str) -> np.ndarray | None:
        """The material point (3,) [m] at `s`, which is a 3-vector or the name of a place on the body. None for a body
        without material points."""
        return None

    @property
    def feels_fluid(self) -> bool:
        """Whether a surrounding fluid acts on the body."""
        return True

    def solid(self) -> Solid | None:
        """The solid that is drawn for a rigid body; None for other bodies."""
        return None

    def drawn_meshes(self) -> tuple[Mesh, ...]:
        """The meshes that are drawn instead of the solid; empty if the solid is drawn."""
        return ()

    def surface(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (m, 3) [m] and triangles (k, 3) that are drawn for a deformable body at its own coordinates q."""
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=int)


@final
@dataclass(frozen=True)
class Rod(Body):
    """Cosserat rod of the Geometric Variable Strain model. Its base frame is the joint's child frame.

    Args:
        length: length of the rod [m].
        section: cross-section as a function of s (0 at the base, 1 at the tip).
        material: material; may be None if a SectionGeneral gives all matrices.
        basis: strain modes. A strain without modes keeps its reference value.
        reference_strain: stress-free strain ξ*, shape (6,), or a function of s that returns it; None is a straight rod,
            (0, 0, 0, 1, 0, 0).
        gauss_points: number of Gauss points on each smooth interval of the basis, for all integrals along the rod. With
            None, basis, taper and reference strain determine the number, such that mass, loads and stiffness are
            accurate for a rod that bends by up to one turn.
        interval_points: number of Gauss points for the mean and the first moment of the strain between two consecutive
            Gauss points of the rod. None chooses a sufficient number for the basis. 2 is the collocation at two Zannah
            points of the papers. If this number and `gauss_points` are given, `build` does not warn of too few points.
        exponentials: number of exponentials whose product is the pose over such an interval: 1, as in the papers, or 2
            with an error about fifty times smaller. None is 2 if `gauss_points` and `interval_points` are None,
            otherwise 1.
    """

    length: float
    section: Section
    basis: Basis
    material: Material | None = None
    reference_strain: FunctionOfS = None
    gauss_points: int | None = None
    interval_points: int | None = None
    exponentials: int | None = None

    def strain_reference(self, where: str) -> Callable[[float], np.ndarray]:
        """Function of s that returns the stress-free strain ξ*, shape (6,)."""
        if self.reference_strain is None:
            return lambda s: STRAIGHT
        if callable(self.reference_strain):
            function = self.reference_strain
            return lambda s: checks.call(function, s, (6,), f"{where}: reference_strain")
        rule = "must be a finite 6-vector or a function of s"
        constant = checks.array(self.reference_strain, (6,), f"{where}: reference_strain", rule)
        return lambda s: constant

    @property
    def is_slender(self) -> bool:
        return True

    @property
    def touches(self) -> bool:
        return True

    def cross_outline(self, s: float, count: int) -> np.ndarray:
        return self.section.outline(s, count)

    def cross_hole(self, s: float, count: int) -> np.ndarray:
        return self.section.hole(s, count)

    def check(self, where: str) -> None:
        with checks.part(where):
            checks.number(self.length, f"{where}: length", above=0.0)
        checks.require(isinstance(self.section, Section), f"{where}: section", "must be a Section", self.section)
        checks.require(isinstance(self.basis, Basis), f"{where}: basis", "must be a Basis", self.basis)
        is_material = self.material is None or isinstance(self.material, Material)
        checks.require(is_material, f"{where}: material", "must be a Material", self.material)
        before, material = checks.faults(), self.material
        if material is not None:
            with checks.part(f"{where} > material"):
                material.check(f"{where} > material")
            if checks.faults() > before:
                material = Material(young=1.0, density=1.0)  # a stand-in, so that the section can be checked
        with checks.part(f"{where} > basis"):
            self.basis.check(f"{where} > basis")
        with checks.part(f"{where} > section"):
            reference = self.strain_reference(where)
            for s in (0.0, 0.5, 1.0):
                reference(s)
            for s in (0.0,) if self.section.is_uniform else (0.0, 0.5, 1.0):
                self.section.constitution(s, material, f"{where} > section")
        if self.gauss_points is not None:
            checks.integer(self.gauss_points, f"{where}: gauss_points", least=1, most=1000)
        if self.interval_points is not None:
            checks.integer(self.interval_points, f"{where}: interval_points", least=2, most=100)
        if self.exponentials is not None:
            checks.integer(self.exponentials, f"{where}: exponentials", least=1, most=2)


@final
@dataclass(frozen=True)
class RigidBody(Body):
    """Rigid body. Its frame is the joint's child frame.

    Args:
        mass: mass [kg].
        com: centre of mass in the body frame, shape (3,) [m].
        inertia: inertia about the centre of mass in body axes, shape (3, 3), or the three principal moments [kg·m²].
        outline: half-sizes of the box that is drawn, shape (3,) [m]; None draws the collision shapes, or without any
            the homogeneous box with the same inertia.
        form: shape on which a fluid acts: "box", "cylinder" (along x) or "sphere", with the half-sizes of `outline`.
            With None the fluid needs given matrices, see Hydrodynamics.
        shapes: collision shapes, with which the body touches others.
        balls: contact spheres by which it touches others in place of points on its shapes, rows (x, y, z, radius),
            shape (n, 4) [m], in the body frame; or the largest number of balls that fill each mesh of `shapes`. None
            chooses the points.
        meshes: meshes that are drawn instead of the solid. Nothing touches them.
        material: material of its surface, from which contacts choose their laws. None is rigid.
    """

    mass: float
    com: Numbers = (0.0, 0.0, 0.0)
    inertia: Numbers = (0.0, 0.0, 0.0)
    outline: Numbers = None
    form: str | None = None
    shapes: tuple[PlacedShape, ...] = ()
    balls: Balls = None
    meshes: tuple[Mesh, ...] = ()
    material: Material | None = None

    @classmethod
    def box(
        cls, size_x: float, size_y: float, size_z: float, *, density: float | None = None,
        material: Material | None = None,
    ) -> RigidBody:  # fmt: skip
        """Homogeneous box with its frame at the centre.

        Args:
            size_x, size_y, size_z: full sizes [m].
            density: density [kg/m³], by default that of the material.
            material: material of its surface, see RigidBody.
        """
        density = _density(density, material, "RigidBody.box")
        for name, value in (("size_x", size_x), ("size_y", size_y), ("size_z", size_z), ("density", density)):
            checks.number(value, f"RigidBody.box > {name}", above=0.0)
        m = density * size_x * size_y * size_z
        moments = m / 12 * np.array([size_y**2 + size_z**2, size_x**2 + size_z**2, size_x**2 + size_y**2])
        half = (size_x / 2, size_y / 2, size_z / 2)
        shapes = (PlacedShape(ShapeBox(size_x, size_y, size_z)),)
        return cls(m, inertia=tuple(moments), outline=half, form="box", shapes=shapes, material=material)

    @classmethod
    def cylinder(
        cls, length: float, radius: float, *, density: float | None = None, material: Material | None = None
    ) -> RigidBody:
        """Homogeneous cylinder along x with its frame at the centre.

        Args:
            length: length along x [m].
            radius: radius [m].
            density: density [kg/m³], by default that of the material.
            material: material of its surface, see RigidBody.
        """
        density = _density(density, material, "RigidBody.cylinder")
        for name, value in (("length", length), ("radius", radius), ("density", density)):
            checks.number(value, f"RigidBody.cylinder > {name}", above=0.0)
        m = density * pi * radius**2 * length
        across = m * (3 * radius**2 + length**2) / 12
        moments, shapes = (m * radius**2 / 2, across, across), (PlacedShape(ShapeCylinder(radius, length)),)
        return cls(m, inertia=moments, outline=(length / 2, radius, radius), form="cylinder", shapes=shapes,
                   material=material)  # fmt: skip

    @classmethod
    def sphere(cls, radius: float, *, density: float | None = None, material: Material | None = None) -> RigidBody:
        """Homogeneous sphere with its frame at the centre.

        Args:
            radius: radius [m].
            density: density [kg/m³], by default that of the material.
            material: material of its surface, see RigidBody.
        """
        density = _density(density, material, "RigidBody.sphere")
        for name, value in (("radius", radius), ("density", density)):
            checks.number(value, f"RigidBody.sphere > {name}", above=0.0)
        m = density * 4 / 3 * pi * radius**3
        shapes = (PlacedShape(ShapeSphere(radius)),)
        return cls(m, inertia=(0.4 * m * radius**2,) * 3, outline=(radius,) * 3, form="sphere", shapes=shapes,
                   material=material)  # fmt: skip

    @classmethod
    def from_mesh(
        cls, file: str | os.PathLike[str] | Mesh, *, density: float | None = None, material: Material | None = None,
        scale: Numbers = 1.0, placement: Any = None, shapes: str | None = "mesh",
    ) -> RigidBody:  # fmt: skip
        """Homogeneous body inside a closed mesh, in the frame of the mesh. Its mass, centre of mass and inertia are
        exact for the triangles. It is drawn as the mesh.

        Args:
            file: path of a mesh file in any format that trimesh reads (extra `urdf`), or a Mesh.
            density: density [kg/m³], by default that of the material.
            material: material of its surface, see RigidBody.
            scale: unit of the vertices of a file [m], such as 1e-3 for a file in millimetres: a number, or one for each
                axis.
            placement: pose (4, 4) of the frame of a file in the body's frame; None is the identity.
            shapes: what touches others: "mesh", its convex "hull", or None.
        Raises:
            ModelError: the mesh cannot be read or bounds no volume, or an argument is wrong.
        """
        density = checks.number(_density(density, material, "RigidBody.from_mesh"), "RigidBody.from_mesh > density",
                                above=0.0)  # fmt: skip
        mesh = file if isinstance(file, Mesh) else Mesh(file=os.fspath(file), scale=scale, placement=placement)
        rule = "must be left out with a Mesh, which has its own"
        plain = not isinstance(file, Mesh) or (np.array_equal(scale, 1.0) and placement is None)
        checks.require(plain, "RigidBody.from_mesh > scale and placement", rule, scale)
        rule = "must be 'mesh', 'hull' or None"
        checks.require(shapes in ("mesh", "hull", None), "RigidBody.from_mesh > shapes", rule, shapes)
        mesh.check("RigidBody.from_mesh > mesh")
        volume, centre, second = solid_moments(*mesh.surface(), "RigidBody.from_mesh > mesh")
        central = second - volume * np.outer(centre, centre)
        inertia = density * (np.trace(central) * np.eye(3) - central)
        touching: dict[str | None, Any] = {
            "mesh": lambda: ShapeMesh(mesh),
            "hull": lambda: ShapeHull(mesh.surface()[0]),
        }
        placed = (PlacedShape(touching[shapes]()),) if shapes else ()
        half = tuple(np.maximum(np.ptp(mesh.surface()[0], axis=0) / 2, 1e-9).tolist())
        return cls(density * volume, tuple(centre.tolist()), inertia, half, shapes=placed, meshes=(mesh,),
                   material=material)  # fmt: skip

    @property
    def touches(self) -> bool:
        return bool(self.shapes) or self.ball_rows is not None

    @property
    def collision_shapes(self) -> tuple[PlacedShape, ...]:
        return tuple(self.shapes)

    @property
    def ball_rows(self) -> np.ndarray | None:
        """Balls that are given, rows (n, 4) [m]; None if the library chooses the points of the shapes."""
        return None if self.balls is None or isinstance(self.balls, int) else check_balls(self.balls, "balls")

    @property
    def half_thickness(self) -> float:
        """Half the smallest width of the largest collision shape [m], otherwise of the outline."""
        widths = [half_width_of(placed.shape) for placed in self.shapes]
        return max(filter(np.isfinite, widths), default=float(self._half_sizes().min()))

    def ball_extents(self, rows: np.ndarray) -> np.ndarray:
        """Width of the facet for which each given ball of rows (n, 4) stands, shape (n,) [m]; 0 for a sphere. Balls of
        radius zero count as corners of the outline, four on each face; they share the punch with the area of a mean
        face."""
        x, y, z = self._half_sizes()
        area = 4.0 / 3.0 * (x * y + y * z + z * x)
        return np.where(rows[:, 3] == 0.0, 0.5 * np.sqrt(area / pi), 0.0)

    def drawn_meshes(self) -> tuple[Mesh, ...]:
        if self.meshes or self.outline is not None:
            return tuple(self.meshes)
        bounded = [placed for placed in self.shapes if is_bounded(placed.shape)]
        return tuple(Mesh.of_shape(placed.shape, placement=placed.placement) for placed in bounded)

    def solid(self) -> Solid:
        """The solid that is drawn: a cylinder or an ellipsoid if the outline and the inertia fit one, otherwise a
        box."""
        a, b, c = half = self._half_sizes()
        inertia = np.asarray(self.inertia, dtype=np.float64)
        moments = np.broadcast_to(inertia, (3,)) if inertia.ndim < 2 else np.diag(inertia)
        form = "box"
        if np.allclose(moments, self.mass / 5 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])):
            form = "ellipsoid"
        elif b == c and np.allclose(moments, self.mass * np.array([b * b / 2, *2 * [b * b / 4 + a * a / 3]])):
            form = "cylinder"
        return Solid(form, half, np.asarray(self.com, dtype=np.float64))

    def _half_sizes(self) -> np.ndarray:
        """Half-sizes (3,) [m] of the outline, or of the homogeneous box with the same inertia."""
        if self.outline is not None:
            return np.asarray(self.outline, dtype=np.float64)
        I = np.diag(checks.symmetric(self.inertia, 3, "body"))  # noqa: E741
        squares = 1.5 / max(self.mass, 1e-300) * (I.sum() - 2 * I)
        return np.sqrt(np.maximum(squares, 1e-6))

    @property
    def volume(self) -> float | None:
        """Volume of the box, cylinder or sphere [m³]; None without a form."""
        if self.form is None:
            return None
        parts = {"box": 8.0, "cylinder": 2 * pi, "sphere": 4 / 3 * pi}
        return parts[self.form] * float(np.prod(self.outline))

    @property
    def areas(self) -> np.ndarray:
        """Projected areas of the box, cylinder or sphere along x, y and z, shape (3,) [m²]."""
        x, y, z = np.asarray(self.outline, dtype=np.float64)
        ends, sides = {"box": (4.0, 4.0), "cylinder": (pi, 4.0), "sphere": (pi, pi)}[self.form or "box"]
        return np.array([ends * y * z, sides * x * z, sides * x * y])

    def spatial_inertia(self) -> np.ndarray:
        """Inertia (6, 6) of a checked body at the origin of its frame, angular first [kg·m², kg·m, kg]."""
        m, c = float(self.mass), np.asarray(self.com, dtype=np.float64)
        I = np.asarray(self.inertia, dtype=np.float64)  # noqa: E741
        I = I if I.ndim == 2 else I * np.eye(3)  # noqa: E741
        C = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        out = np.zeros((6, 6))
        out[:3, :3], out[:3, 3:], out[3:, :3] = I - m * C @ C, m * C, -m * C
        out[3, 3] = out[4, 4] = out[5, 5] = m
        return out

    def check(self, where: str) -> None:
        checks.number(self.mass, f"{where}: mass", least=0.0)
        checks.array(self.com, (3,), f"{where}: com", "must be a finite 3-vector")
        rule = "must be symmetric positive semi-definite"
        _, moments = checks.symmetric_spectrum(self.inertia, 3, f"{where}: inertia", rule)
        triangle = moments[2] <= (moments[0] + moments[1]) * (1 + 1e-9)
        rule = "its largest principal moment must not exceed the sum of the others"
        checks.require(bool(triangle), f"{where}: inertia", rule, self.inertia)
        if self.outline is not None:
            size = checks.array(self.outline, (3,), f"{where}: outline", "must be a finite 3-vector")
            checks.require(bool((size > 0).all()), f"{where}: outline", "must be > 0", self.outline)
        forms = (None, "box", "cylinder", "sphere")
        checks.require(checks.among(self.form, forms), f"{where}: form", f"must be one of {forms}", self.form)
        checks.require(
            self.form is None or self.outline is not None, f"{where}: outline", "must be given if there is a form", None
        )
        rule = "must be a list of PlacedShape"
        checks.require(isinstance(self.shapes, list | tuple), f"{where}: shapes", rule, self.shapes)
        for k, placed in enumerate(self.shapes):
            checks.require(isinstance(placed, PlacedShape), f"{where} > shapes[{k}]", "must be a PlacedShape", placed)
            placed.check(f"{where} > shapes[{k}]")
        if isinstance(self.balls, int):
            checks.integer(self.balls, f"{where}: balls", least=1, most=10_000)
        elif self.balls is not None:
            check_balls(self.balls, f"{where}: balls")
        rule = "must be a list of Mesh"
        checks.require(isinstance(self.meshes, list | tuple), f"{where}: meshes", rule, self.meshes)
        for k, mesh in enumerate(self.meshes):
            checks.require(isinstance(mesh, Mesh), f"{where} > meshes[{k}]", "must be a Mesh", mesh)
            mesh.check(f"{where} > meshes[{k}]")
        is_material = self.material is None or isinstance(self.material, Material)
        checks.require(is_material, f"{where}: material", "must be a Material", self.material)
        if self.material is not None:
            self.material.check(f"{where} > material")


def _density(density: float | None, material: Material | None, where: str) -> float:
    """The density of a body [kg/m³], or that of its material."""
    if density is None and isinstance(material, Material):
        return material.density
    rule = "must be given, or a material that has one"
    checks.require(density is not None, f"{where} > density", rule, density)
    return density  # type: ignore[return-value]
