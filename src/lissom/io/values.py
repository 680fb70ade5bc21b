"""What a field of a robot file may hold: numbers, functions of s or t, placements. Checked by pydantic."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians
from typing import Annotated, Any, final

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    PlainValidator,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.functions import Expression, Tabulated


class Schema(BaseModel):
    """A mapping in a robot file: exact types, and no keys but its own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any, info: ValidationInfo) -> Any:
        """The keys it has; others are noted, by the identity of the mapping, so that all the rest is looked at too."""
        if not isinstance(data, dict):
            return data
        others = [key for key in data if key not in cls.model_fields]
        for key in others:
            (info.context or {})["unknown"][id(data), key] = tuple(cls.model_fields)
        return {key: value for key, value in data.items() if key not in others} if others else data


@final
@dataclass(frozen=True)
class ConstantMatrix:
    """B(q) of a custom actuator that does not depend on q.

    Args:
        matrix: shape (nv, size).
    """

    matrix: Any

    def __call__(self, q: np.ndarray) -> np.ndarray:
        """The matrix, whatever q is."""
        return np.asarray(self.matrix, dtype=np.float64)


def is_number(value: Any) -> bool:
    """Whether a value is a number and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(value: Any) -> Any:
    """A number or a nested list of numbers."""
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


class _Table(Schema):
    points: list[float]
    values: Annotated[Any, PlainValidator(_numbers)]
    interpolation: str = "cubic"


def _tabulated(data: _Table) -> Tabulated:
    return Tabulated(data.points, data.values, data.interpolation)


def _function_of(variable: str) -> Any:
    """The kind of a field that holds numbers or a function of `variable`."""

    def expression(data: _ExpressionText) -> Expression:
        return Expression(data.expression, data.variable or variable)

    return Annotated[
        Annotated[Any, PlainValidator(_numbers), Tag("a constant")]
        | Annotated[_ExpressionText, AfterValidator(expression), Tag("an expression")]
        | Annotated[_Table, AfterValidator(_tabulated), Tag("a table")],
        Discriminator(_function_kind),
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
    """I + first·[axis]× + second·[axis]×², which is Rodrigues' formula for a unit axis."""
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


Place = Annotated[Any, PlainValidator(_place)]
Constant = Annotated[Any, PlainValidator(_numbers)]
Names = Annotated[Any, PlainValidator(_names)]
FunctionOfS = _function_of("s")
FunctionOfT = _function_of("t")
Placement = Annotated[
    Annotated[Any, PlainValidator(_numbers), Tag("a 4x4 matrix")]
    | Annotated[_Placement, AfterValidator(_pose), Tag("a position and a rotation")],
    Discriminator(_placement_kind),
]

_CHEBYSHEV_COUNTS = (2, 4, 8, 16, 32, 64, 128)
_REPRODUCTION = 1e-13


def tabulate(function: Any, where: str) -> Tabulated:
    """A Python function of s as the polynomial through Chebyshev points.

    The smallest of 2, 4, ..., 128 points that reproduces the function at 301 other abscissae within 1e-13 of its
    largest value there.

    Raises:
        ModelError: no table of 128 points does, or the function fails.
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
