"""The schema of a robot file. Each class of the description is one mapping whose keys are the class's own fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, Discriminator, Tag, create_model

from lissom.io.values import Constant, ConstantMatrix, FunctionOfS, FunctionOfT, Names, Placement, Schema
from lissom.robot import (
    actuators,
    bases,
    bodies,
    checks,
    contacts,
    fluid,
    joints,
    loads,
    loops,
    materials,
    motions,
    sections,
    shapes,
    springs,
)
from lissom.robot.families import members
from lissom.robot.fields import FUNCTION_OF_S, NUMBERS
from lissom.robot.robot import Link, Robot

FORMAT = 1


def _mapping(name: str, make: Callable[..., Any], fields: dict[str, Any]) -> Any:
    """The kind of a mapping: its keys with their kinds and defaults; a valid one becomes `make(**given)`."""
    model: Any = create_model(name, __base__=Schema, **fields)

    def describe(data: Any) -> Any:
        return make(**{key: getattr(data, key) for key in data.model_fields_set if key != "type"})

    return Annotated[model, AfterValidator(describe), Tag(name)]


def _class(cls: type, kinds: dict[str, Any] | None = None, *, typed: bool = True, nested: tuple[type, ...] = ()) -> Any:
    """The kind of a mapping with the fields of a description class, as `kinds` or else their annotations say; `typed`
    when its key `type` is required, `nested` in the classes that it stands in."""
    hints = {} if kinds is not None else get_type_hints(cls, include_extras=True)
    kinds = kinds or {field.name: _annotated(hints[field.name], (*nested, cls)) for field in dataclasses.fields(cls)}
    fields: dict[str, Any] = {"type": (Literal[cls.__name__], ...) if typed else (Literal[cls.__name__], cls.__name__)}
    for field in dataclasses.fields(cls):
        kind = kinds[field.name]
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            fields[field.name] = (kind, ...)
        else:
            fields[field.name] = (kind | None if field.default is None else kind, None)
    return _mapping(cls.__name__, cls, fields)


def _annotated(hint: Any, nested: tuple[type, ...]) -> Any:
    """The kind of a field from its annotation. What stands in a file inside a class cannot be of that class again."""
    if get_origin(hint) is Annotated:
        return _KINDS[hint.__metadata__[0]]
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_annotated(part, nested) for part in get_args(hint))]  # noqa: UP007
    if get_origin(hint) is tuple:
        return _list_of(get_args(hint)[0])
    return _family(hint, nested) if hint in _FAMILIES else hint


def _family(family: type, nested: tuple[type, ...] = ()) -> Any:
    """The kind of a mapping whose `type` names a class of a family."""
    return _one_of({cls.__name__: _class(cls, nested=nested) for cls in members(family) if cls not in nested})


def _one_of(choices: dict[str, Any], tag: Callable[[Any], Any] | None = None) -> Any:
    """The kind of a mapping whose `type` chooses one of these."""

    def chosen(value: Any) -> Any:
        return str(value.get("type")) if isinstance(value, dict) else None

    rule = f"must be a mapping whose type is one of {', '.join(choices)}"
    choice = Discriminator(tag or chosen, custom_error_type="type", custom_error_message=rule)
    return Annotated[Union[tuple(choices.values())], choice]  # noqa: UP007


def _list_of(kind: Any) -> Any:
    return GenericAlias(list, (kind,))


def _classes(classes: tuple[type, ...], kinds: dict[str, Any]) -> dict[str, Any]:
    return {cls.__name__: _class(cls, kinds) for cls in classes}


_KINDS = {NUMBERS: Constant, FUNCTION_OF_S: FunctionOfS}
_FAMILIES = (bases.Basis, joints.Joint, sections.Section, shapes.Shape)
Basis, Joint, Section, Shape = (_family(family) for family in _FAMILIES)

_properties: dict[str, Any] = dict.fromkeys(("young", "density", "poisson", "viscosity", "damping_time"), float)
_Material = _class(materials.Material, _properties, typed=False)

_rod_kinds = {
    "length": float,
    "section": Section,
    "basis": Basis,
    "material": _Material,
    "reference_strain": FunctionOfS,
    "gauss_points": int,
    "interval_points": int,
}
_rigid_kinds: dict[str, Any] = dict.fromkeys(("com", "inertia", "outline", "balls"), Constant)
_rigid_kinds |= {"mass": float, "form": str}


def _box(size: Any, density: float, shape: str = "box") -> bodies.RigidBody:
    sides = checks.array(size, (3,), "size", "must be 3 finite numbers")
    return bodies.RigidBody.box(*map(float, sides), density=density)


def _cylinder(length: float, radius: float, density: float, shape: str = "cylinder") -> bodies.RigidBody:
    return bodies.RigidBody.cylinder(length, radius, density=density)


def _sphere(radius: float, density: float, shape: str = "sphere") -> bodies.RigidBody:
    return bodies.RigidBody.sphere(radius, density=density)


def _solid(shape: str, make: Callable[..., Any], sizes: dict[str, Any]) -> Any:
    fixed = {"type": (Literal["RigidBody"], ...), "shape": (Literal[shape], ...)}
    fields = fixed | {name: (kind, ...) for name, kind in sizes.items()} | {"density": (float, ...)}
    return _mapping(f"RigidBody {shape}", make, fields)


def _body_tag(value: Any) -> Any:
    kind = str(value.get("type")) if isinstance(value, dict) else None
    return f"RigidBody {value['shape']}" if kind == "RigidBody" and "shape" in value else kind


Body = _one_of(
    _classes((bodies.Rod,), _rod_kinds)
    | _classes((bodies.RigidBody,), _rigid_kinds)
    | {
        "RigidBody box": _solid("box", _box, {"size": Constant}),
        "RigidBody cylinder": _solid("cylinder", _cylinder, {"length": float, "radius": float}),
        "RigidBody sphere": _solid("sphere", _sphere, {"radius": float}),
    },
    _body_tag,
)

_link_kinds = {
    "name": str,
    "body": Body | None,
    "joint": Joint,
    "parent": str,
    "at": float,
    "placement": Placement,
}
_frame_kinds = {"name": str, "link": str, "s": float, "placement": Placement}
_load_kinds = {
    "name": str,
    "link": str,
    "s": float,
    "force": FunctionOfT,
    "moment": FunctionOfT,
    "frame": str,
    "position": Constant,
}

_loop_kinds = {
    "name": str,
    "link_a": str,
    "link_b": str,
    "s_a": float,
    "s_b": float,
    "placement_a": Placement,
    "placement_b": Placement,
    "joint": Joint,
}
_motion_kinds = {"name": str, "link": str} | dict.fromkeys(("position", "velocity", "acceleration"), FunctionOfT)

_stretch = {"link": (str, ...), "offset": (FunctionOfS, ...), "start": (float, 0.0), "stop": (float, 1.0)}
_point_kinds = {"link": str | None, "position": Constant, "s": float}
_path_items = {"PathRod": _mapping("PathRod", actuators.PathRod, {"type": (Literal["PathRod"], ...)} | _stretch)}
_PathItem = _one_of(_path_items | _classes((actuators.PathPoint,), _point_kinds))


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


def _custom(name: str, matrix: Any) -> actuators.CustomActuator:
    B = checks.array(matrix, (-1, -1), "matrix", "must be the rows of a finite matrix (nv, size)")
    return actuators.CustomActuator(name, ConstantMatrix(B.tolist()), B.shape[1])


def _actuator(name: str, make: Callable[..., Any], **fields: Any) -> Any:
    return _mapping(name, make, {"type": (Literal[name], ...), "name": (str, ...)} | fields)


_wrench_kinds = {"name": str, "link": str, "s": float, "frame": str, "directions": Constant, "position": Constant}
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
        "JointActuator": _actuator("JointActuator", actuators.JointActuator, link=(str, ...)),
        "WrenchInput": _class(actuators.WrenchInput, _wrench_kinds),
        "CustomActuator": _actuator("CustomActuator", _custom, matrix=(Constant, ...)),
    },
)

_laws = ("stiffness", "exponent", "damping", "friction", "slip_speed", "stick_stiffness", "stick_damping", "s")
_contact_kinds: dict[str, Any] = dict.fromkeys(_laws, float)
_contact_kinds |= {
    "name": str,
    "links": Names,
    "others": Names,
    "shape": Shape,
    "on": str,
    "placement": Placement,
}
_Contact = _class(contacts.Contact, _contact_kinds | {"radius": FunctionOfS, "per_interval": int}, typed=False)

_End = _class(actuators.PathPoint, _point_kinds, typed=False)
_spring_kinds: dict[str, Any] = dict.fromkeys(("stiffness", "damping", "rest", "preload"), float)
_spring_kinds |= {"name": str, "a": str | _End, "b": str | _End, "slack": bool, "law": FunctionOfS}
_Spring = _class(springs.Spring, _spring_kinds, typed=False)

_feeling_kinds: dict[str, Any] = dict.fromkeys(("drag_normal", "drag_tangent", "lift", "added_mass", "volume"), float)
_feeling_kinds |= {"tail": bool, "added_matrix": FunctionOfS, "drag_matrix": FunctionOfS}
_Feeling: Any = _class(fluid.Hydrodynamics, _feeling_kinds, typed=False) | None
_fluid_kinds = {"density": float, "current": FunctionOfT, "default": _Feeling, "links": dict[str, _Feeling]}
_Fluid: Any = _class(fluid.Fluid, _fluid_kinds, typed=False) | None

_Link = _class(Link, _link_kinds, typed=False)
_Frame = _class(loads.Frame, _frame_kinds, typed=False)
_Coupling = _class(actuators.InputCoupling, {"name": str, "gains": dict[str, float]}, typed=False)
_Load = _class(loads.PointLoad, _load_kinds, typed=False)
_Loop = _class(loops.Loop, _loop_kinds, typed=False)
_Motion = _class(motions.JointMotion, _motion_kinds, typed=False)

Document: Any = create_model(
    "Document",
    __base__=Schema,
    format=(Literal[1], FORMAT),
    name=(str, "robot"),
    gravity=(Constant, (0.0, 0.0, -9.81)),
    near_pairs=(int, Robot().near_pairs),
    links=(_list_of(_Link), ...),
    frames=(_list_of(_Frame), []),
    actuators=(_list_of(Actuator), []),
    couplings=(_list_of(_Coupling), []),
    loads=(_list_of(_Load), []),
    loops=(_list_of(_Loop), []),
    motions=(_list_of(_Motion), []),
    springs=(_list_of(_Spring), []),
    contacts=(_list_of(_Contact), []),
    fluid=(_Fluid, None),
)
Document.__doc__ = "A robot file. What is stacked in q and in u keeps the order of the lists."

_OTHERS = {bodies.Rod, bodies.RigidBody, materials.Material, actuators.PathRod, actuators.PathPoint}
TYPES = _OTHERS.union(*map(members, _FAMILIES))  # the classes a field may hold
