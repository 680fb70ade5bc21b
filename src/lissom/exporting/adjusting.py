"""How the tables of an exported robot depend on its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.exporting.launches import Adjusted, Program
from lissom.exporting.parameters import Parameter, model_with, parameters_of
from lissom.exporting.polynomials import DEGREE, MOST, Box, NotPolynomial, TooMany, fitted
from lissom.exporting.snapshots import ALL, ANY, Snapshot, buffers_of_launches, own_numbers, snapshot
from lissom.model.model import Model

# What keeps its values: sizes by which errors and residuals are measured, the default configuration, and the distance
# up to which pairs are listed, whose lists are made again after motions over half of it.
_KEPT = ("loops.scale", "inverse_scale", "dofs.scale", "default_configuration", "contacts.margin")
_WIDE = 4.0  # size of the range of checks, over the size of a parameter


@final
@dataclass(frozen=True)
class Adjustment:
    """Parameters of an exported robot and the arrays that depend on them.

    Fields:
        parameters: in the order of the caller.
        monomials: indices of the parameters in each monomial, repeated by their exponents; the first is 1.
        arrays: how arrays change, by launch and path.
    """

    parameters: tuple[Parameter, ...] = ()
    monomials: tuple[tuple[int, ...], ...] = ((),)
    arrays: Mapping[str, Adjusted] = field(default_factory=dict)


def adjustment_of(
    model: Model, functions: Sequence[str], varies: bool, chosen: Sequence[str] | Mapping[str, str]
) -> Adjustment:
    """How the arrays of an exported robot depend on parameters.

    Raises:
        ModelError: a path leads to no number; or a value changes the structure of the robot, or its tables by no
            polynomial, by its name and with the cure.
    """
    parameters = parameters_of(model, chosen)
    if not parameters:
        return Adjustment()
    models = _Models(model, parameters, functions, varies)
    first = models.first
    start, size = (np.array([getattr(one, name) for one in parameters]) for name in ("value", "size"))
    kept = [name.endswith(_KEPT) for name in first.arrays]
    adjustable = np.repeat(~np.array(kept), np.diff(first.first))
    try:
        found = fitted(models.numbers, start, size, _box(parameters), first.blocks, adjustable)
    except NotPolynomial as error:
        rule = f"acts on {first.name_of(error.entry)} by no polynomial of degree {DEGREE} or less"
        raise _refused(model, [parameters[k] for k in error.parameters], rule) from None
    except TooMany:
        rule = f"have products of so many others that more than {MOST} models are needed"
        raise _refused(model, parameters, rule) from None
    acting = {parameters[k].path for own in found.terms for m in own for k, power in enumerate(m) if power}
    idle = [one for one in parameters if one.path not in acting]
    if idle:
        raise _refused(model, idle, "acts on nothing that the exported functions read at the present values")
    return _adjustment(parameters, models, found.entries, found.terms)


def _refused(model: Model, parameters: Sequence[Parameter], rule: str) -> ModelError:
    """The error for parameters that cannot be adjusted."""
    names = ", ".join(dict.fromkeys(one.name.rsplit("[", 2)[0] if one.pose >= 0 else one.name for one in parameters))
    cure = "leave it out and export the model for each of its values, or choose other values of the same part"
    return ModelError(f"robot {model.name!r}: export cannot adjust {names}, which {rule}; {cure}")


def _box(parameters: Sequence[Parameter]) -> Box:
    """Where values are tried, inside the ranges of the parameters."""
    ends: list[list[float]] = [[], [], [], []]
    for one in parameters:
        for wide, low, high in ((1.0, ends[0], ends[1]), (_WIDE, ends[2], ends[3])):
            below, above = one.value - 0.6 * wide * one.size, one.value + wide * one.size
            below, above = max(below, one.least), min(above, one.most)
            aside = 0.02 * (above - below)  # rules of several values may end a range sooner
            low.append(below + aside)
            high.append(above - aside)
    starts = sorted({one.pose for one in parameters if one.pose >= 0})
    rotations = tuple(
        tuple(k for k in range(start, start + 12) if parameters[k].turns) for start in starts
    )  # fmt: skip
    least, most, wide_least, wide_most = map(np.array, ends)
    return Box(least, most, wide_least, wide_most, rotations)


@final
class _Models:
    """Numbers of models with other values of the parameters."""

    def __init__(self, model: Model, parameters: tuple[Parameter, ...], functions: Sequence[str], varies: bool) -> None:
        self.model, self.parameters, self.functions, self.varies = model, parameters, functions, varies
        self.first = self._snapshot(model)
        self.rows = {key: rows.copy() for key, rows in self.first.rows.items()}

    def _snapshot(self, model: Model) -> Snapshot:
        launches = buffers_of_launches(model, self.functions, self.varies)
        return snapshot(model, launches, own_numbers(model, self.varies))

    def numbers(self, x: np.ndarray) -> np.ndarray:
        """All numbers of the robot with values of the parameters.

        Raises:
            ModelError: the values break a rule together, or change the structure of the robot.
        """
        try:
            other = model_with(self.model, self.parameters, x)
        except ModelError as error:
            changed = [one for one, value in zip(self.parameters, x) if value != one.value]
            raise _refused(self.model, changed, f"has no range of its own: {error}") from None
        found = self._snapshot(other)
        where = self._difference(found)
        if where:
            culprits = self._culprits(x)
            rule = f"changes the structure of the robot ({where}); another value than 0 before the export may help"
            raise _refused(self.model, culprits or self.parameters, rule)
        for key, rows in found.rows.items():
            for name in set(rows.dtype.names or ()) & {*ANY, *ALL}:
                join = np.logical_or if name in ANY else np.logical_and
                self.rows[key][name] = join(self.rows[key][name], rows[name])
        return found.numbers

    def base(self, key: str) -> np.ndarray | None:
        """An array of structs at the export with the flags of all values; None if these are its own."""
        rows = self.rows.get(key)
        return None if rows is None or rows.tobytes() == self.first.rows[key].tobytes() else rows

    def _difference(self, found: Snapshot) -> str:
        """What another robot has that no parameter may change; empty if nothing."""
        fixed = self.first.fixed
        keys = {key for key in fixed.keys() | found.fixed.keys() if not key.endswith(_KEPT)}
        wrong = [key for key in keys if not _same(found.fixed.get(key), fixed.get(key))]
        if wrong:
            return min(wrong).rpartition(":")[2]
        same = found.arrays == self.first.arrays and len(found.numbers) == len(self.first.numbers)
        return "" if same else "sizes of tables"

    def _culprits(self, x: np.ndarray) -> list[Parameter]:
        """The parameters that change the structure alone."""
        found = []
        for k, one in enumerate(self.parameters):
            values = np.array([each.value for each in self.parameters])
            values[k] = x[k]
            if one.pose < 0 and self._difference(self._snapshot(model_with(self.model, self.parameters, values))):
                found.append(one)
        return found


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and a == b)


def _adjustment(
    parameters: tuple[Parameter, ...], models: _Models, entries: np.ndarray, terms: Sequence[Mapping[Any, float]]
) -> Adjustment:
    """The changes by array, of polynomials of single numbers."""
    first = models.first
    none = (0,) * len(parameters)
    known = [none, *sorted({m for own in terms for m in own} - {none})]
    at, arrays = {m: k for k, m in enumerate(known)}, {}
    owner = np.searchsorted(first.first, entries, side="right") - 1
    for a in np.unique(owner).tolist():
        members = np.flatnonzero(owner == a).tolist()
        pairs = [[(at[m], c) for m, c in sorted(terms[e].items())] for e in members]
        flat = [pair for own in pairs for pair in own]
        arrays[first.arrays[a]] = Adjusted(
            (entries[members] - first.first[a]).astype(np.int32),
            np.cumsum([0, *map(len, pairs)]).astype(np.int32),
            np.array([k for k, _ in flat], dtype=np.int32),
            np.array([c for _, c in flat], dtype=np.float64),
            models.base(first.arrays[a]),
        )
    monomials = tuple(tuple(k for k, power in enumerate(m) for _ in range(power)) for m in known)
    return Adjustment(parameters, monomials, arrays)


def tables_of_parameters(program: Program, adjustment: Adjustment) -> None:
    """Add the constants by which exported code sets parameters."""
    ranges = {name: [getattr(one, name) for one in adjustment.parameters] for name in ("value", "least", "most")}
    starts, updates = [0], list(program.updates.items())
    for _, change in updates:
        starts += (starts[-1] + change.start[1:]).tolist()
    for name, values, dtype in (
        ("parameter_default", ranges["value"], np.float64),
        ("parameter_least", ranges["least"], np.float64),
        ("parameter_most", ranges["most"], np.float64),
        ("monomial_start", np.cumsum([0, *map(len, adjustment.monomials)]), np.int32),
        ("monomial_parameter", [k for m in adjustment.monomials for k in m], np.int32),
        ("adjusted_at", [offset // 8 + k for offset, change in updates for k in change.entries.tolist()], np.int32),
        ("adjusted_start", starts, np.int32),
        ("adjusted_monomial", [k for _, change in updates for k in change.monomial.tolist()], np.int32),
        ("adjusted_factor", [c for _, change in updates for c in change.factor.tolist()], np.float64),
    ):
        program.own_table(name, np.array([*values, 0], dtype=dtype))
