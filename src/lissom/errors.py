"""The errors this library raises on purpose; every message names the entity, the rule and the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import unwrap
from typing import Any, TypeVar, final

Public = TypeVar("Public", bound=Callable[..., Any])


@final
class ModelError(ValueError):
    """A robot description, an argument or a file is invalid.

    The message reads ``<entity> > <part>: <rule> (got <value>)``.
    """


@final
class ShapeError(ValueError):
    """An array argument has the wrong shape, or holds NaN or infinity."""


@final
class ConvergenceError(RuntimeError):
    """An iteration stopped before its tolerance.

    Attributes:
        partial: the results until the failure: a ``Trajectory``, or the last ``Equilibrium`` iterate.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


def lost(value: Any) -> str:
    """The rule that an array breaks if its conversion to float64 loses information; empty if it loses none."""
    if getattr(getattr(value, "dtype", None), "kind", "") == "c":
        return "must be real (got complex numbers)"
    if type(value).__name__ in ("MaskedArray", "MaskedConstant") and value.mask.any():
        return f"must have no masked entries (got {value.mask.sum()})"
    return ""


def check_kept(name: str, value: Any) -> None:
    """Raise ShapeError if the conversion of an array to float64 loses information."""
    if missing := lost(value):
        raise ShapeError(f"{name}: {missing}")


@contextmanager
def of_instance(k: int, count: int) -> Iterator[None]:
    """Inside this block, the messages of errors name the instance k, if there are several."""
    try:
        yield
    except (ModelError, ShapeError, ConvergenceError) as error:
        text = f"{error} (instance {k} of {count})" if count > 1 else str(error)
        if isinstance(error, ConvergenceError):
            raise ConvergenceError(text, error.partial) from error
        raise type(error)(text) from error


@contextmanager
def keeping(so_far: Callable[[], Any]) -> Iterator[None]:
    """Set `partial` of a KeyboardInterrupt to the results so far, None if there are none. They replace the partial
    results of an inner computation."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.partial = None  # type: ignore[attr-defined]
        stop.partial = so_far()  # type: ignore[attr-defined]
        raise


class PartsWarning(UserWarning):
    """A warning in one line.

    Attributes:
        report: all parts that the warning is about, one in each line; empty if the message names them all.
    """

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(message)
        self.report = report


@final
class AccuracyWarning(PartsWarning):
    """The model was built as asked, but a stated choice costs accuracy."""


@final
class CacheWarning(UserWarning):
    """Compiled code cannot be stored, and will be compiled again."""


@final
class LeftOutWarning(PartsWarning):
    """A file contains parts that the robot does not have, such as contacts of bodies that fall. The message names the
    first of each kind, `report` all."""


@final
class PlausibilityWarning(UserWarning):
    """A number of the robot looks like a mistake of units, or a result lies outside the validity of the model."""


@final
class RedundancyWarning(UserWarning):
    """Some constraints of the loops follow from the others. The motion is unique; the constraint forces are not."""


@final
class RepairWarning(PartsWarning):
    """A file contains numbers that no part can have, such as a negative moment of inertia or a color beyond 1. The
    robot has the nearest possible numbers. The message gives the size of the first changes, `report` of all."""


@final
class StabilityWarning(UserWarning):
    """The equilibrium that was found is unstable, and no stable one lies within reach; or it is not on the branch of
    the given start."""


@final
class StepWarning(UserWarning):
    """The steps of a simulation do not suit the motion: it needs far fewer, so that another method is better."""


def renamed(*, order: str = "", **names: str) -> Callable[[Public], Public]:
    """Let a public function, or a class, refuse the names of its arguments in the version before, with the new ones.

    An entry stands for one version after the change.

    Args:
        order: what to say to more arguments without a name than the function takes; "" where their order stayed.
        names: the new name by the former one.
    """

    def said(title: str, former: str) -> str:
        return f"{title}: {former!r} is called {names[former]!r} now"

    def refusing(function: Any, title: str) -> Any:
        taken = unwrap(function).__code__.co_argcount

        @wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            for former in names.keys() & given.keys():
                raise TypeError(said(title, former))
            if order and len(args) > taken:
                raise TypeError(f"{title}: {order}")
            return function(*args, **given)

        return called

    def decorate(public: Any) -> Any:
        if not isinstance(public, type):
            return refusing(public, public.__name__)

        def missing(self: Any, name: str) -> Any:
            text = said(title, name) if name in names else f"{title!r} object has no attribute {name!r}"
            raise AttributeError(text)

        title, made = public.__name__, vars(public)["__init__"]
        public.__init__, public.__getattr__ = refusing(made, title), missing  # type: ignore[attr-defined]
        return public

    return decorate
