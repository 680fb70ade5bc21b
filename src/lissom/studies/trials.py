"""One sample of a sweep, and what it makes of the robot.

A parameter is a path of the description (robot.paths); or `u.<input>`, a constant input; or `q0[k]`, `v0[k]`,
`q0.<link>[k]`, `v0.<link>[k]`, a coordinate of the start, of the whole robot or of a link; or `extra.<name>`, a number
for the user's function alone. Without a robot every name is of this last kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import telling
from lissom.robot.paths import is_value, unit_of, value_at
from lissom.robot.robot import Robot

if TYPE_CHECKING:
    from lissom.model.model import Model

_START = re.compile(r"(q0|v0)(?:\.(.+))?\[(\d+)\]")
_EXTRA, _INPUT = "extra.", "u."
_KEPT = 8  # models


def is_described(name: str) -> bool:
    """Whether a parameter of a sweep with a robot is a value of its description."""
    return not (name.startswith((_EXTRA, _INPUT)) or _START.fullmatch(name))


def parameter_units(robot: Robot | None, names: tuple[str, ...]) -> dict[str, str]:
    """The units of parameters, as far as docstrings say them.

    Raises:
        ModelError: the parameter that means nothing to this robot, and what it may be.
    """
    if robot is None:
        return dict.fromkeys(names, "")
    for name in filter(is_described, names):
        _check_value(robot, name)
    units = {name: unit_of(robot, name) if is_described(name) else "" for name in names}
    rest = {name: 0.0 for name in names if not is_described(name)}
    if any(not name.startswith(_EXTRA) for name in rest):
        model = robot.build()
        _ = [_chosen(model, rest, which) for which in ("u", "q0", "v0")]
    return units


def _check_value(robot: Robot, name: str) -> None:
    """Raise ModelError at a parameter that leads to no value: set to numbers, it would spoil every sample."""
    if is_value(robot, name):
        return
    what = value_at(robot, name)
    is_input = name in robot.actuators or name in robot.couplings
    cure = f"; the input of this name is {_INPUT + name!r}" if is_input else ""
    raise ModelError(f"parameter {name!r}: must lead to a number{cure} (got a {type(what).__name__})")


def _chosen(model: Model, values: Mapping[str, float], which: str) -> dict[int, float]:
    """The entries of u, q0 or v0 that parameters give."""
    found = {}
    for name, value in values.items():
        if which == "u" and name.startswith(_INPUT):
            found[_input(model, name)] = value
        start = _START.fullmatch(name)
        if start and start[1] == which:
            found[_coordinate(model, name, *start.groups())] = value
    return found


def _input(model: Model, name: str) -> int:
    inputs = list(model.inputs.names)
    word = name.removeprefix(_INPUT)
    if word in inputs:
        return inputs.index(word)
    near = get_close_matches(word, inputs, n=1)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    raise ModelError(f"parameter {name!r}: must name one of the inputs {inputs}{hint} (got {word!r})")


def _coordinate(model: Model, name: str, which: str, link: str | None, text: str) -> int:
    size = model.nq if which == "q0" else model.nv
    first, last, k = 0, size, int(text)
    if link is not None:
        if link not in model.links.names:
            raise ModelError(f"parameter {name!r}: must name one of the links {list(model.links.names)} (got {link!r})")
        starts = model.links.q_start if which == "q0" else model.links.v_start
        ends = [*starts.tolist()[1:], size]
        first, last = int(starts[model.links.names.index(link)]), ends[model.links.names.index(link)]
    if not k < last - first:
        raise ModelError(f"parameter {name!r}: must be below the number of coordinates, {last - first} (got {k})")
    return first + k


@final
class Designs:
    """The robots of a sweep, each built once for trials that differ in inputs and starts only."""

    def __init__(self, robot: Robot | None) -> None:
        self.robot = robot
        self._models: dict[tuple[tuple[str, float], ...], Model] = {}

    def robot_of(self, values: Mapping[str, float]) -> Robot:
        """The description with the values of a trial."""
        if self.robot is None:
            raise ModelError("trial: the sweep was given no robot")
        described = {name: value for name, value in values.items() if is_described(name)}
        return self.robot.with_(described) if described else self.robot

    def model_of(self, values: Mapping[str, float]) -> Model:
        """The model of that."""
        key = tuple((name, value) for name, value in values.items() if is_described(name))
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = self.robot_of(values).build()
            for old in list(self._models)[:-_KEPT]:
                del self._models[old]
        return model


@final
@telling.in_one_line
@dataclass(frozen=True, eq=False)
class Trial:
    """One sample of a sweep, for the function that computes its results: `trial["arm.material.young"]`.

    Fields:
        number: of the sample, from 0 on. values: by parameter, in their units. designs: where its robot comes from.
    """

    number: int
    values: dict[str, float]
    designs: Designs

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    @cached_property
    def robot(self) -> Robot:
        """The robot of the sweep with the described values of this sample."""
        return self.designs.robot_of(self.values)

    @cached_property
    def model(self) -> Model:
        """The model of that robot; trials that differ in inputs and starts only share it."""
        return self.designs.model_of(self.values)

    @property
    def u(self) -> np.ndarray | None:
        """Inputs, shape (nu,): those that are parameters, the others zero; None where none is."""
        return self.given("u", None)

    @property
    def q0(self) -> np.ndarray | None:
        """Start, shape (nq,): the neutral configuration but for what parameters say; None where none does."""
        return self.given("q0", None)

    @property
    def v0(self) -> np.ndarray | None:
        """Velocity at the start, shape (nv,): zero but for what parameters say; None where none does."""
        return self.given("v0", None)

    def given(self, which: str, base: Any) -> Any:
        """u, q0 or v0 with the entries that are parameters; `base`, whose None is zero or neutral, where none is."""
        entries = _chosen(self.model, self.values, which)
        if not entries:
            return base
        plain = {"u": np.zeros(self.model.nu), "q0": self.model.neutral(), "v0": np.zeros(self.model.nv)}[which]
        out = plain if base is None else np.array(base, dtype=np.float64)
        for k, value in entries.items():
            out[..., k] = value
        return out
