"""Type annotations of the fields of descriptions, and the members of families of classes.

io/schema derives the schema of robot files from these annotations, and robot/edits the names that parts hold.

A family is an abstract class such as Basis, Joint, Section or Shape. Its members are the concrete subclasses defined in
the folder of the family. Robot files, their errors and the contract tests find them with `members`, so no list of them
is kept.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any, NamedTuple, TypeVar

NUMBERS, PLACE, PLACEMENT, POSE, BALLS = "numbers", "place", "placement", "pose", "balls"
LINK, LINK_OR_WORLD, LINKS, JOINT, ACTUATOR = "link", "link or world", "links", "joint", "actuator"
FUNCTION_OF_S, FUNCTION_OF_T, FUNCTION_OF_Q = "function of s", "function of t", "function of q"
FUNCTION_OF_POINT = "function of a point"

Numbers = Annotated[Any, NUMBERS]  # a number, or an array of numbers as nested sequences
LinkName = Annotated[str, LINK]  # the name of a link
LinkNames = Annotated[Any, LINKS]  # the name of a link, or a sequence of names, whose order has no meaning
JointName = Annotated[str, JOINT]  # the name of a link whose joint is meant
ActuatorName = Annotated[str, ACTUATOR]  # also the name of an input of forces
# The name of a link, or None for the world, is Annotated[str | None, LINK_OR_WORLD, place, pose] with the names of the
# fields that hold the place on the link and the pose, or the position, there.
Place = Annotated[Any, PLACE]  # an abscissa; on a deformable body also a material point (3,) or the name of a place
Placement = Annotated[Any, PLACEMENT]  # 4x4; None is the identity
FunctionOfS = Annotated[Any, FUNCTION_OF_S]  # numbers, or a function of the abscissa that returns them
FunctionOfT = Annotated[Any, FUNCTION_OF_T]  # the same in time
FunctionOfQ = Annotated[Any, FUNCTION_OF_Q]  # the same in a coordinate of a joint
FunctionOfPoint = Annotated[Any, FUNCTION_OF_POINT]  # an expression of x, y and z as text, or a function of them
Profile = Annotated[float | tuple[float, float] | Callable[[float], float], FUNCTION_OF_S]  # positive, along a rod
Balls = Annotated[Any, BALLS]  # rows (x, y, z, radius), or a number of balls
Pose = Annotated[Any, POSE]  # a function of the coordinates that returns a 4x4 pose, or a PoseSpline
Member = TypeVar("Member")


class ForcePlace(NamedTuple):
    """A place on which a part of a robot exerts a force: a link, None for the world, and a place on it. Without
    `turned` the force depends on the position there only, not on the axes."""

    link: str | None
    s: Place = 1.0
    turned: bool = True


def members(family: type[Member]) -> tuple[type[Member], ...]:
    """The public concrete classes of a family, defined in its folder, sorted by name."""
    folder = family.__module__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(folder).__path__):
        import_module(f"{folder}.{module.name}")
    ours = {cls for cls in _below(family) if cls.__module__.startswith(f"{folder}.") and not inspect.isabstract(cls)}
    return tuple(sorted((cls for cls in ours if cls.__name__[0] != "_"), key=lambda cls: cls.__name__))


def _below(family: type[Member]) -> Iterator[type[Member]]:
    for cls in family.__subclasses__():
        yield cls
        yield from _below(cls)
