"""The schema of a robot file, checked by pydantic.

Each class of the description is a mapping whose keys are the fields of the class. A field may hold numbers, functions
of s or t, and placements. A `kind` below is a type annotation for pydantic.
"""

from __future__ import annotations

import dataclasses
import os
from collections import abc
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isfunction
from math import radians
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Union, final, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    PlainValidator,
    Tag,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lissom.bodies.body import DeformableBody
from lissom.bodies.domains import Domain
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.materials import Hyperelastic
from lissom.bodies.meshes import DomainTetrahedra
from lissom.bodies.strains import Inflation
from lissom.bodies.volume_preserving import Primitive
from lissom.errors import ModelError
from lissom.robot import (
    actuators,
    bases,
    bodies,
    checks,
    fluid,
    joints,
    materials,
    meshes,
    poses,
    sections,
    shapes,
    springs,
)
from lissom.robot.fields import (
    ACTUATOR,
    BALLS,
    FUNCTION_OF_POINT,
    FUNCTION_OF_Q,
    FUNCTION_OF_S,
    FUNCTION_OF_T,
    JOINT,
    LINK,
    LINK_OR_WORLD,
    LINKS,
    NUMBERS,
    PLACE,
    PLACEMENT,
    POSE,
    members,
)
from lissom.robot.functions import Expression, Tabulated
from lissom.robot.materials import named_values
from lissom.robot.robot import PARTS, Link, Robot


class Schema(BaseModel):
    """A mapping in a robot file. Types must match exactly, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any, info: ValidationInfo) -> Any:
        """The known keys of the mapping. Unknown keys are collected by the id of the mapping, so that the rest is
        checked too."""
        if not isinstance(data, dict):
            return data
        others = [key for key in data if key not in cls.model_fields]
        for key in others:
            (info.context or {})["unknown"][id(data), key] = tuple(cls.model_fields)
        return {key: value for key, value in data.items() if key not in others} if others else data


@final
@dataclass(frozen=True)
class ConstantMatrix:
    """A constant B(q) of a custom actuator.

    Args:
        matrix: shape (nv, size).
    """

    matrix: Any

    def __call__(self, q: np.ndarray) -> np.ndarray:
        """The matrix for any q."""
        return np.asarray(self.matrix, dtype=np.float64)


def is_number(value: Any) -> bool:
    """Whether a value is a number (bool is not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(value: Any) -> Any:
    """Validate a number or a nested list of numbers."""
    if is_number(value):
        if isinstance(value, int) and abs(value) > 2**53:
            raise PydanticCustomError("numbers", "must be a number that float64 holds")
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("numbers", "must be a number or a list of numbers")
    return [_numbers(item) for item in value]


def _function_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an expression" if "expression" in value else "a table"
    return "a constant"


class _ExpressionText(Schema):
    expression: Any
    variable: str | None = None
    constants: dict[str, float] = {}


class _Table(Schema):
    points: list[float]
    values: Annotated[Any, PlainValidator(_numbers)]
    interpolation: str = "cubic"


def _tabulated(data: _Table) -> Tabulated:
    return Tabulated(data.points, data.values, data.interpolation)


def _function_of(variable: str) -> Any:
    """Type annotation of a field that holds numbers or a function of `variable`."""

    def expression(data: _ExpressionText) -> Expression:
        return Expression(data.expression, data.variable or variable, data.constants)

    return Annotated[
        Annotated[Any, PlainValidator(_numbers), Tag("a constant")]
        | Annotated[_ExpressionText, AfterValidator(expression), Tag("an expression")]
        | Annotated[_Table, AfterValidator(_tabulated), Tag("a table")],
        Discriminator(_function_kind),
        f"function of {variable}",
    ]


class _Rotation(Schema):
    axis: Annotated[Any, PlainValidator(_numbers)] = None
    angle: float | None = None
    degrees: float | None = None
    quaternion: Annotated[Any, PlainValidator(_numbers)] = None
    matrix: Annotated[Any, PlainValidator(_numbers)] = None


class _Placement(Schema):
    position: Annotated[Any, PlainValidator(_numbers)] = (0.0, 0.0, 0.0)
    rotation: _Rotation | None = None


def _rotation_matrix(data: _Rotation) -> np.ndarray:
    given = data.model_fields_set
    if given == {"quaternion"}:
        quaternion = checks.array(data.quaternion, (4,), "quaternion", "must be 4 finite numbers (w, x, y, z)")
        length = float(np.linalg.norm(quaternion))
        checks.require(abs(length - 1.0) <= 1e-6, "quaternion", "must have unit length", data.quaternion)
        w, axis = quaternion[0] / length, quaternion[1:] / length
        return _turn(axis, 2.0 * w, 2.0)
    if given == {"matrix"}:
        return checks.array(data.matrix, (3, 3), "matrix", "must be 3x3 finite numbers")
    if given in ({"axis", "angle"}, {"axis", "degrees"}):
        axis = checks.direction(data.axis, "axis")
        angle = checks.number(data.angle if data.degrees is None else radians(data.degrees), "angle")
        sine, cosine = np.sin(angle), np.cos(angle)
        if data.degrees is not None and data.degrees % 90 == 0:
            sine, cosine = np.round(sine), np.round(cosine)  # quarter turns have no rounding
        return _turn(axis, sine, 1.0 - cosine)
    rule = "must hold an axis with an angle [rad] or degrees, or a quaternion, or a matrix"
    raise checks.fail("rotation", rule, sorted(given))


def _turn(axis: np.ndarray, first: float, second: float) -> np.ndarray:
    """I + first·[axis]× + second·[axis]×²; for a unit axis this is Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + first * cross + second * cross @ cross


def _pose(data: _Placement) -> list[list[float]]:
    g = np.eye(4)
    g[:3, 3] = checks.array(data.position, (3,), "position", "must be a finite 3-vector")
    if data.rotation is not None:
        g[:3, :3] = _rotation_matrix(data.rotation)
    return g.tolist()


def _placement_kind(value: Any) -> str:
    return "a position and a rotation" if isinstance(value, dict) else "a 4x4 matrix"


def _names(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return value
    raise PydanticCustomError("names", "must be the name of a link or a list of names")


def _place(value: Any) -> Any:
    if isinstance(value, str) or is_number(value) or (isinstance(value, list) and all(map(is_number, value))):
        return value
    raise PydanticCustomError("place", "must be a valid number, a list of three or the name of a place")


# The texts are the kinds of robot/fields, for readers of the schema; pydantic ignores them.
Place = Annotated[Any, PlainValidator(_place), PLACE]
Constant = Annotated[Any, PlainValidator(_numbers), NUMBERS]
Names = Annotated[Any, PlainValidator(_names), LINKS]
FunctionOfS = _function_of("s")
FunctionOfT = _function_of("t")
FunctionOfQ = _function_of("q")
Placement = Annotated[
    Annotated[Any, PlainValidator(_numbers), Tag("a 4x4 matrix")]
    | Annotated[_Placement, AfterValidator(_pose), Tag("a position and a rotation")],
    Discriminator(_placement_kind),
    PLACEMENT,
]

_CHEBYSHEV_COUNTS = (2, 4, 8, 16, 32, 64, 128)
_REPRODUCTION = 1e-13


def tabulate(function: Any, where: str) -> Tabulated:
    """A Python function of s as the polynomial through Chebyshev points.

    The table has the smallest of 2, 4, ..., 128 points that reproduces the function at 301 other abscissae to 1e-13 of
    its largest value there.

    Raises:
        ModelError: no table with up to 128 points reproduces the function, or the function fails.
    """
    samples = 0.5 - 0.5 * np.cos(np.linspace(0.003, np.pi - 0.002, 301))
    shape = np.shape(_first_value(function, where))
    expected = np.array([checks.call(function, s, shape, where) for s in samples])
    bound = _REPRODUCTION * max(float(np.abs(expected).max()), 1e-300)
    for count in _CHEBYSHEV_COUNTS:
        points = 0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1))
        values = np.array([checks.call(function, s, shape, where) for s in points])
        table = Tabulated(points.tolist(), values.tolist(), "barycentric")
        if np.abs(np.array([table(s) for s in samples]) - expected).max() <= bound:
            return table
    raise ModelError(
        f"{where}: this Python function cannot be saved to {_REPRODUCTION:g}: the polynomial through "
        f"{_CHEBYSHEV_COUNTS[-1]} Chebyshev points misses it; give it as ls.Expression or ls.Tabulated"
    )


def _first_value(function: Any, where: str) -> np.ndarray:
    try:
        return np.asarray(function(0.5), dtype=np.float64)
    except Exception as error:
        raise ModelError(f"{where}: the function failed at 0.5 ({type(error).__name__}: {error})") from error


FORMAT = 1


SOURCES: dict[type[BaseModel], tuple[Any, ...]] = {}  # the classes and functions that describe the keys of mappings


def _mapping(name: str, make: Callable[..., Any], fields: dict[str, Any], *sources: Any) -> Any:
    """Type annotation of a mapping with the given fields. A valid mapping becomes `make(**given)`. `sources` are the
    classes and functions whose docstrings describe the fields, `make` if none are given."""
    model: Any = create_model(name, __base__=Schema, **fields)
    SOURCES[model] = (make, *sources)

    def describe(data: Any) -> Any:
        return make(**{key: getattr(data, key) for key in data.model_fields_set if key != "type"})

    return Annotated[model, AfterValidator(describe), Tag(name)]


def _class(cls: type, *, typed: bool = True, nested: tuple[type, ...] = ()) -> Any:
    """Type annotation of a mapping with the fields of a description class.

    Args:
        typed: whether the key `type` is required.
        nested: the classes that contain this mapping.
    """
    head = {"type": (Literal[cls.__name__], ...) if typed else (Literal[cls.__name__], cls.__name__)}
    kind = _mapping(cls.__name__, cls, head | _fields(cls, nested))
    if not hasattr(cls, "named"):
        return kind
    return Annotated[kind, BeforeValidator(_filled_in(cls)), Tag(cls.__name__)]


def _filled_in(cls: type) -> Callable[[Any], Any]:
    """A validator that replaces the key `name` by the values of the catalogue for a class."""

    def filled(data: Any) -> Any:
        if not isinstance(data, dict) or "name" not in data:
            return data
        return named_values(cls.__name__, data["name"]) | {key: x for key, x in data.items() if key != "name"}

    return filled


def _fields(cls: type, nested: tuple[type, ...] = ()) -> dict[str, Any]:
    """Type annotations and defaults of the fields of a description class, by name."""
    hints, out = get_type_hints(cls, include_extras=True), {}
    for field in dataclasses.fields(cls):
        kind = _kind(hints[field.name], (*nested, cls))
        inherited = isfunction(field.default)  # not a default, but a method of a base class that the field hides
        if inherited or (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING):
            out[field.name] = (kind, ...)
        else:
            out[field.name] = (kind | None if field.default is None else kind, None)
    return out


def _kind(hint: Any, nested: tuple[type, ...]) -> Any:
    """The type annotation for pydantic, from the annotation of a field. A mapping must not be of a class that contains
    it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _KINDS[hint.__metadata__[0]]
    if origin in (Union, UnionType):
        kept = [part for part in parts if get_origin(part) is not abc.Callable]  # files have no functions
        if len(kept) > 1 and all(dataclasses.is_dataclass(part) for part in kept):
            return _one_of(_classes(*kept, nested=nested))
        return Union[tuple(_kind(part, nested) for part in kept)]  # noqa: UP007
    if origin is abc.Sequence and parts[0] not in _FAMILIES:
        return Constant
    if origin in (tuple, abc.Sequence):
        return _list_of(_kind(parts[0], nested))
    if origin in (dict, abc.Mapping):
        return GenericAlias(dict, (_kind(parts[0], nested), _kind(parts[1], nested)))
    if hint in _FAMILIES:
        return _family(hint, nested)
    if hint is bodies.Body:
        return Body
    if hint is meshes.Mesh:
        return _Mesh
    is_class = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    return _class(hint, typed=False, nested=nested) if is_class else hint


def _family(family: type, nested: tuple[type, ...] = ()) -> Any:
    """Type annotation of a mapping whose `type` names a class of a family."""
    classes = _classes(*(cls for cls in members(family) if cls not in nested and cls not in IN_PYTHON), nested=nested)
    return _one_of(classes | {"mesh of a file": _MeshFile}, _domain_tag) if family is Domain else _one_of(classes)


def _classes(*classes: type, nested: tuple[type, ...] = ()) -> dict[str, Any]:
    return {cls.__name__: _class(cls, nested=nested) for cls in classes}


def _domain_tag(value: Any) -> Any:
    kind = str(value.get("type")) if isinstance(value, dict) else None
    return "mesh of a file" if kind == "DomainTetrahedra" and "file" in value else kind


def _loaded(data: Any, info: ValidationInfo) -> DomainTetrahedra:
    """The mesh in a file whose path is relative to the robot file."""
    given = {key: getattr(data, key) for key in data.model_fields_set if key not in ("type", "file")}
    folder = (info.context or {}).get("folder", Path())
    return DomainTetrahedra.load(Path(folder) / data.file, **given)


def _beside(data: Any, info: ValidationInfo) -> meshes.Mesh:
    """A drawn mesh. The path of its file, if it has one, is relative to the robot file."""
    given = {key: getattr(data, key) for key in data.model_fields_set}
    if given.get("file") is not None:
        given["file"] = os.path.abspath(Path((info.context or {}).get("folder", "")) / given["file"])
    return meshes.Mesh(**given)


def _one_of(choices: dict[str, Any], tag: Callable[[Any], Any] | None = None) -> Any:
    """Type annotation of a mapping whose `type` selects one of the choices."""

    def chosen(value: Any) -> Any:
        return str(value.get("type")) if isinstance(value, dict) else None

    names = dict.fromkeys(name for name in choices if " " not in name)
    rule = f"must be a mapping whose type is one of {', '.join(names)}"
    choice = Discriminator(tag or chosen, custom_error_type="type", custom_error_message=rule)
    return Annotated[Union[tuple(choices.values())], choice]  # noqa: UP007


def _list_of(kind: Any) -> Any:
    return GenericAlias(list, (kind,))


_KINDS = {
    NUMBERS: Constant,
    LINK: Annotated[str, LINK],
    LINK_OR_WORLD: Annotated[str | None, LINK_OR_WORLD],
    LINKS: Names,
    JOINT: Annotated[str, JOINT],
    ACTUATOR: Annotated[str, ACTUATOR],
    PLACE: Place,
    PLACEMENT: Placement,
    FUNCTION_OF_S: FunctionOfS,
    FUNCTION_OF_T: FunctionOfT,
    FUNCTION_OF_Q: FunctionOfQ,
    FUNCTION_OF_POINT: Annotated[str, FUNCTION_OF_POINT],
}
_OF_DEFORMABLE = (Domain, Inflation, Kinematics, Hyperelastic, Primitive)
_FAMILIES = (bases.Basis, joints.Joint, sections.Section, shapes.Shape, *_OF_DEFORMABLE)
IN_PYTHON = {cls for family in _OF_DEFORMABLE for cls in members(family) if cls.__name__ in (
    "KinematicsFunction", "KinematicsRitz", "HyperelasticFunction")}  # fmt: skip
_drawn: Any = create_model("Mesh", __base__=Schema, **_fields(meshes.Mesh))
_Mesh = Annotated[_drawn, AfterValidator(_beside)]
_KINDS[POSE] = _class(poses.PoseSpline, typed=False)
_KINDS[BALLS] = Annotated[
    Annotated[Any, PlainValidator(_numbers), Tag("rows")] | Annotated[int, Tag("count")],
    Discriminator(lambda value: "count" if isinstance(value, int) else "rows"),
    BALLS,
]


def _box(size: Any, **stuff: Any) -> bodies.RigidBody:
    sides = checks.array(size, (3,), "size", "must be 3 finite numbers")
    return bodies.RigidBody.box(*map(float, sides), **stuff)


def _of_mesh(mesh: meshes.Mesh, **stuff: Any) -> bodies.RigidBody:
    return bodies.RigidBody.from_mesh(mesh, **stuff)


def _solid(shape: str, make: Callable[..., Any], sizes: dict[str, Any], others: Any = None) -> Any:
    """Type annotation of a RigidBody with a shape; a material may state the density. `others` are optional fields."""
    source = getattr(bodies.RigidBody, "from_mesh" if shape == "mesh" else shape)
    fixed = {"type": (Literal["RigidBody"], ...), "shape": (Literal[shape], ...)}
    stuff = {"density": (float | None, None), "material": (_kind(materials.Material, ()) | None, None)}
    fields = fixed | {name: (kind, ...) for name, kind in sizes.items()} | stuff | dict(others or {})
    drawn: dict[str, Any] = {"meshes": (_list_of(_Mesh), None)}

    def made(meshes: Any = (), shape: str = "", **given: Any) -> bodies.RigidBody:
        body = make(**given)
        return dataclasses.replace(body, meshes=tuple(meshes)) if meshes else body

    return _mapping(f"RigidBody {shape}", made, fields | drawn, source, bodies.RigidBody, meshes.Mesh)


def _body_tag(value: Any) -> Any:
    kind = str(value.get("type")) if isinstance(value, dict) else None
    return f"RigidBody {value['shape']}" if kind == "RigidBody" and "shape" in value else kind


_cells = {name: kind for name, kind in _fields(DomainTetrahedra).items() if name not in ("vertices", "cells")}
_mesh_of_file: Any = create_model(
    "MeshFile", __base__=Schema, type=(Literal["DomainTetrahedra"], ...), file=(str, ...), scale=(float, None), **_cells
)
SOURCES |= {_drawn: (meshes.Mesh,), _mesh_of_file: (DomainTetrahedra.load, DomainTetrahedra)}
_MeshFile = Annotated[_mesh_of_file, AfterValidator(_loaded), Tag("mesh of a file")]


def _deformable(kinematics: Any, domain: Any = None, **others: Any) -> DeformableBody:
    """A deformable body. Without a domain, its domain is the mesh of its finite elements."""
    if domain is None:
        domain = getattr(getattr(kinematics, "whole", kinematics), "mesh", None)
        checks.require(domain is not None, "domain", "must be given, except for finite elements", None)
    return DeformableBody(kinematics, domain, **others)


def _deformable_fields() -> dict[str, Any]:
    fields = {"type": (Literal["DeformableBody"], ...)} | _fields(DeformableBody)
    return fields | {"domain": (_family(Domain) | None, None), "density": (float, ...)}


Body = _one_of(
    _classes(bodies.Rod, bodies.RigidBody)
    | {
        "DeformableBody": _mapping("DeformableBody", _deformable, _deformable_fields(), DeformableBody),
        "RigidBody box": _solid("box", _box, {"size": Constant}),
        "RigidBody cylinder": _solid("cylinder", bodies.RigidBody.cylinder, {"length": float, "radius": float}),
        "RigidBody sphere": _solid("sphere", bodies.RigidBody.sphere, {"radius": float}),
        "RigidBody mesh": _solid(
            "mesh", _of_mesh, {"mesh": _Mesh}, {"shapes": (Literal["mesh", "hull"] | None, "mesh")}
        ),
    },
    _body_tag,
)

_stretch = _fields(actuators.PathRod)
_PathItem = _one_of(_classes(actuators.PathRod, actuators.PathPoint, actuators.PathBody, actuators.PathWrap))


def _tendon(
    name: str, path: Any = None, stiffness: float | None = None, slack_length: float | None = None, **stretch: Any
) -> actuators.Tendon:
    checks.require((path is None) == {"link", "offset"}.issubset(stretch), "path", "a tendon takes link and offset, "
                   "or a path", sorted(stretch))  # fmt: skip
    checks.require(path is None or not stretch, "path", "a tendon takes link and offset, or a path, not both",
                   sorted(stretch))  # fmt: skip
    items = tuple(path) if path is not None else (actuators.PathRod(**stretch),)
    return actuators.Tendon(name, items, stiffness, slack_length)


def _chamber(name: str, area: Any, link: str, force: str = "tangent", **stretch: Any) -> actuators.Chamber:
    return actuators.Chamber(name, actuators.PathRod(link, stretch.pop("offset", (0.0, 0.0)), **stretch), area, force)


def _body_chamber(name: str, link: str, vertices: Any, triangles: Any) -> actuators.BodyChamber:
    return actuators.BodyChamber(name, link, (vertices, triangles))


def _surface_pressure(name: str, link: str, vertices: Any, triangles: Any) -> actuators.SurfacePressure:
    return actuators.SurfacePressure(name, link, (vertices, triangles))


def _custom(name: str, matrix: Any) -> actuators.CustomActuator:
    B = checks.array(matrix, (-1, -1), "matrix", "must be the rows of a finite matrix (nv, size)")
    return actuators.CustomActuator(name, ConstantMatrix(B.tolist()), B.shape[1])


def _actuator(name: str, make: Callable[..., Any], **fields: Any) -> Any:
    """Type annotation of an actuator; its methods of Robot describe keys that its class does not have."""
    cls, adds = getattr(actuators, name), (actuators.PathRod, Robot.add_chamber, Robot.add_body_chamber)
    return _mapping(name, make, {"type": (Literal[name], ...), "name": (str, ...)} | fields, cls, *adds)


_link: Any = Annotated[str, LINK]
_surface: dict[str, Any] = {"link": (_link, ...), "vertices": (Constant, ...), "triangles": (Constant, ...)}
_optional_stretch = {key: (kind, None) for key, (kind, _) in _stretch.items()}
Actuator = _one_of(
    {
        "Tendon": _actuator(
            "Tendon",
            _tendon,
            path=(_list_of(_PathItem), None),
            **dict.fromkeys(("stiffness", "slack_length"), (float, None)),
            **_optional_stretch,
        ),
        "Chamber": _actuator(
            "Chamber",
            _chamber,
            area=(FunctionOfS, ...),
            force=(str, "tangent"),
            **(_stretch | {"offset": (FunctionOfS, None)}),
        ),
        "JointActuator": _actuator("JointActuator", actuators.JointActuator, link=(Annotated[str, JOINT], ...)),
        "WrenchInput": _class(actuators.WrenchInput),
        "BodyChamber": _actuator("BodyChamber", _body_chamber, **_surface),
        "SurfacePressure": _actuator("SurfacePressure", _surface_pressure, **_surface),
        "CustomActuator": _actuator("CustomActuator", _custom, matrix=(Constant, ...)),
    },
)

_Fluid: Any = _class(fluid.Fluid, typed=False) | None


def _entries(cls: type) -> Any:
    """Type annotation of a list of mappings of one class."""
    return _list_of(_class(cls, typed=False))


_LISTS: dict[str, Any] = {kind: (_entries(part.cls), []) for kind, part in PARTS.items() if part.is_saved and part.add}
_LISTS |= {"links": (_entries(Link), ...), "actuators": (_list_of(Actuator), [])}
Document: Any = create_model(
    "Document",
    __base__=Schema,
    format=(Literal[1], FORMAT),
    name=(str, "robot"),
    gravity=(Constant, (0.0, 0.0, -9.81)),
    near_pairs=(int, Robot().near_pairs),
    **_LISTS,
    fluid=(_Fluid, None),
)
SOURCES[Document] = (Robot,)
Document.__doc__ = "A robot file. Coordinates in q and inputs in u have the order of the lists."

_RIGID_OR_RODS = tuple(family for family in _FAMILIES if family not in _OF_DEFORMABLE)
_OTHERS = {bodies.Rod, bodies.RigidBody, materials.Material, actuators.PathRod, poses.PoseSpline}
_OTHERS |= {actuators.PathPoint, actuators.PathBody, actuators.PathWrap, springs.SpringBranch}
_OTHERS |= {meshes.Mesh, shapes.PlacedShape}
TYPES = _OTHERS.union(*map(members, _RIGID_OR_RODS))  # the classes of fields,
DEFORMABLE = {DeformableBody}.union(*map(members, _OF_DEFORMABLE))  # and those of deformable bodies
