"""Point loads, user-defined forces and named frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from math import isfinite
from typing import Any, final

import numpy as np

from lissom.robot import checks
from lissom.robot.expression_programs import programs_of
from lissom.robot.fields import ActuatorName, FunctionOfT, LinkName, Numbers, Place, Placement
from lissom.robot.functions import RowsOfTime, is_compiled, still
from lissom.robot.traced_functions import TracedFunction


@final
@dataclass(frozen=True)
class PointLoad:
    """Force and moment at a point of a link.

    Args:
        name: unique among the loads.
        link: name of the link.
        s: abscissa on a rod, or a place on a deformable body.
        force: force [N], shape (3,): a constant or a function of t [s].
        moment: moment [N·m], shape (3,): a constant or a function of t.
        frame: axes of force and moment. "world": fixed axes; "body": axes that turn with the link (follower load).
        position: point of application in the frame of the link at s, shape (3,) [m].
    """

    name: str
    link: LinkName
    s: Place = 1.0
    force: FunctionOfT = None
    moment: FunctionOfT = None
    frame: str = "world"
    position: Numbers = (0.0, 0.0, 0.0)

    def check(self, where: str) -> None:
        """Raise ModelError unless place, axes and position are valid, and force and moment are 3-vectors, or functions
        of t that return them. One of the two must be given."""
        checks.place(self.s, f"{where}: s")
        frames = ("world", "body")
        checks.require(checks.among(self.frame, frames), f"{where}: frame", f"must be one of {frames}", self.frame)
        checks.array(self.position, (3,), f"{where}: position", "must be a finite 3-vector")
        nothing = self.force is None and self.moment is None
        checks.require(not nothing, where, "needs a force or a moment", None)
        self.wrench(where)(0.0)

    def wrench(self, where: str) -> RowsOfTime:
        """(moment; force), shape (6,), as a function of t."""
        moment, force = (_vector_of_time(v, f"{where}: {n}") for v, n in
                         ((self.moment, "moment"), (self.force, "force")))  # fmt: skip

        def at_times(times: np.ndarray) -> np.ndarray:
            return np.hstack([moment.over(times), force.over(times)])

        return RowsOfTime(lambda t: np.concatenate([moment(t), force(t)]), at_times)

    @property
    def turns(self) -> bool:
        """Whether the generalised force depends on the orientation of the link's frame, and not only on its
        position."""
        return self.frame == "body" or self.moment is not None or bool(np.any(self.position))

    @property
    def varies(self) -> bool:
        """Whether the load depends on time."""
        return callable(self.force) or callable(self.moment)


def _vector_of_time(value: Any, where: str) -> RowsOfTime:
    if callable(value):

        def of_time(t: float) -> np.ndarray:
            try:
                vector: Any = value(t)
            except Exception:
                return checks.call(value, t, (3,), where)  # raises the error
            plain = isinstance(vector, np.ndarray) and vector.dtype == np.float64 and vector.shape == (3,)
            return vector if plain and isfinite(sum(vector.tolist())) else checks.call(value, t, (3,), where)

        three = programs_of(value, 3) is not None
        return RowsOfTime(of_time, value.over if three else None)
    rule = "must be a finite 3-vector or a function of t"
    constant = np.zeros(3) if value is None else checks.array(value, (3,), where, rule)
    return still(constant)


@final
@dataclass(frozen=True)
class Frame:
    """A named frame on a link.

    Args:
        name: unique among links and frames.
        link: name of the link.
        s: abscissa on a rod, or a place on a deformable body.
        placement: pose (4, 4) of the frame in the link's frame at s; None is the identity.
    """

    name: str
    link: LinkName
    s: Place = 1.0
    placement: Placement = None

    def check(self, where: str) -> None:
        """Raise ModelError if the place or the placement is invalid."""
        checks.place(self.s, f"{where}: s")
        checks.pose(self.placement, f"{where}: placement")


@final
@dataclass(frozen=True)
class Force:
    """A user-defined force that depends on the pose and the twist of a link.

    Args:
        name: unique among forces.
        link: name of the link.
        function: a Python function of (t, g, eta) with the pose g (4, 4) and the body twist eta (6,); an
            ls.TracedFunction of these, or a Warp function of (R, p, eta, s, t), which are compiled into the kernels.
            They return the wrench (moment; force) in the axes of the frame: [N·m, N], or per metre along a rod.
            A Python function may ask for more of the state by the names of its further arguments: q (nq,), v (nv,), the
            body Jacobian J (6, nv) of the frame, and its rate J_dot (6, nv) along v, accurate to nine digits.
        s: point of action, an abscissa or a place on a deformable body. With None the force acts all along a rod, or at
            the frame of another body.
        inputs: names of inputs on which the force depends, such as currents of coils. The function is then an
            ls.TracedFunction of (t, g, eta, w) with the values w (n,) of these inputs, in any way, with exact
            derivatives. Forces may share inputs, by their names. In u they follow those of the actuators, in the order
            of their first use.
    """

    name: str
    link: LinkName
    function: Callable[..., Any]
    s: Place | None = None
    inputs: tuple[ActuatorName, ...] = ()

    def check(self, where: str) -> None:
        """Raise ModelError unless the function is callable, the place is valid and the names of inputs are distinct. A
        force with inputs needs a TracedFunction."""
        checks.require(callable(self.function), f"{where}: function", "must be a function", self.function)
        asked_of(self.function, f"{where}: function")
        if self.s is not None:
            checks.place(self.s, f"{where}: s")
        checks.require(isinstance(self.inputs, tuple), f"{where}: inputs", "must be a list of names", self.inputs)
        for name in self.inputs:
            checks.title(name, f"{where}: inputs")
        rule = "must differ from each other"
        checks.require(len(set(self.inputs)) == len(self.inputs), f"{where}: inputs", rule, self.inputs)
        if self.inputs:
            traced = isinstance(self.function, TracedFunction)
            rule = "must be an ls.TracedFunction of (t, g, eta, w), since it has inputs"
            checks.require(traced, f"{where}: function", rule, self.function)


STATE = ("q", "v", "J", "J_dot")  # what a Python force may ask for by name, besides t, g and eta


def asked_of(function: Any, where: str = "function") -> tuple[str, ...]:
    """Names of STATE among the arguments of a Python force behind t, g and eta; empty for other functions. Arguments
    with a default are the user's own.

    Raises:
        ModelError: a further argument has another name.
    """
    if isinstance(function, TracedFunction) or is_compiled(function):
        return ()
    try:
        parameters = list(signature(function).parameters.values())[3:]
    except (TypeError, ValueError):  # built-in functions have no signature
        return ()
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    named = [p.name for p in parameters if p.kind in kinds and p.default is Parameter.empty]
    unknown = [name for name in named if name not in STATE]
    rule = f"must be of (t, g, eta), and by name of {', '.join(STATE)}"
    checks.require(not unknown, where, rule, ", ".join(unknown))
    return tuple(named)
