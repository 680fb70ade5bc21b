"""Deformable bodies that Python is asked for in one call, and where in tables stands what it says of them.

Bodies of the same motion, points, material and density have one set of integrals, compiled once: they are a stack, by
whose θ of all JAX is called once. Frames at material points and tendons inside ask for the points of the same stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.material_frames import MaterialFrame
from lissom.bodies.pulls import BodyPulls, LengthPulls
from lissom.model.maps import Maps
from lissom.model.model import Model
from lissom.passes.scratch import BY_BODY, BY_PAIR

Place = slice | np.ndarray


class Stack(NamedTuple):
    """Bodies (k,): where their coordinates (k, n) stand in q and in v, and where in tables what belongs to each body,
    each coordinate and each pair of these."""

    integrals: ShapeIntegrals
    q: np.ndarray
    v: np.ndarray
    by_body: Place
    by_column: Place
    by_pair: Place

    def put(self, rows: dict[str, np.ndarray], name: str, values: np.ndarray) -> None:
        """Values (m, k, ...) at their place in a table."""
        into, count = rows[name], len(values)
        here = self.by_body if name in BY_BODY else self.by_pair if name in BY_PAIR else self.by_column
        into[:count, here] = values.reshape(count, -1, *into.shape[2:])


class Frames(NamedTuple):
    """Frames at material points of a stack: where the coordinates (k, n) of its bodies stand in q and in v, what gives
    the frames, whether second derivatives of theirs come from differences, and where in tables each and its columns,
    with derivatives once and twice, stand."""

    q: np.ndarray
    v: np.ndarray
    columns: Callable[..., Sequence[np.ndarray]]
    differences: bool
    by_map: Place
    places: dict[str, Place]


class StackPulls(NamedTuple):
    """Pulls in a stack: where the coordinates (k, n) of its bodies, or (n,) of a body alone, stand in q and in v, what
    gives the pulls, and where in tables each, what belongs to each of its coordinates and to each pair of these stand.
    """

    q: np.ndarray
    v: np.ndarray
    pulls: BodyPulls | LengthPulls
    by_pull: Place
    by_column: Place
    by_pair: Place


def stacks(model: Model) -> tuple[Stack, ...]:
    """Of all bodies whose integrals Python makes."""
    return model.cached(("stacks of bodies",), lambda: tuple(_stacks(model)))


def frames(model: Model, called: Sequence[int], everywhere: bool) -> tuple[Frames, ...]:
    """Of the frames at material points among the maps that a launch needs, all of them or those everywhere."""
    return model.cached(("frames of stacks", everywhere), lambda: tuple(_frames(model, set(called))))


def pulls(model: Model) -> tuple[StackPulls, ...]:
    """Of all pulls inside deformable bodies."""
    return model.cached(("pulls of stacks",), lambda: tuple(_pulls(model)))


def _stacks(model: Model) -> Iterable[Stack]:
    bodies = model.deforming
    together: dict[int, list[int]] = {}
    for b in np.flatnonzero(bodies.is_linear == 0).tolist():
        together.setdefault(id(bodies.integrals[b]), []).append(b)
    for members in together.values():
        integrals = bodies.integrals[members[0]]
        span = np.arange(integrals.kinematics.n)
        yield Stack(
            integrals,
            bodies.q_start[members][:, None] + span,
            model.nodes.v_start[bodies.node[members]][:, None] + span,
            _joined([b] for b in members),
            _joined(range(bodies.column_start[b], bodies.column_start[b + 1]) for b in members),
            _joined(range(bodies.pair_start[b], bodies.pair_start[b + 1]) for b in members),
        )


def _stack_with(model: Model, points: Any, q_start: int) -> tuple[Stack, int] | None:
    """The stack that moves some points, and which of its bodies has its first coordinate there in q."""
    for stack in stacks(model):
        if points is not None and stack.integrals.points is points:
            at = np.flatnonzero(stack.q[:, 0] == q_start)
            return (stack, int(at[0])) if len(at) else None
    return None


def _frames(model: Model, called: set[int]) -> Iterable[Frames]:
    maps = model.maps
    together: dict[Any, tuple[Stack, list[int], list[int]]] = {}
    for group in maps.group:
        asked = [m for m in group if m in called]
        if not asked:
            continue
        poses = [pose for pose in (maps.pose[m] for m in asked) if isinstance(pose, MaterialFrame)]
        family, first = poses[0].family, int(maps.q_start[asked[0]])
        found = _stack_with(model, family.points, first)
        if found is not None:
            stack, body = found
            _, members, on = together.setdefault(id(family), (stack, [], []))
            members += asked
            on += [body] * len(asked)
            continue
        span = np.arange(poses[0].n)[None]
        columns = family.columns(poses, np.zeros(len(asked), dtype=np.int64))
        start = int(model.nodes.v_start[maps.node[asked[0]]])
        yield Frames(first + span, start + span, columns, family.points is not None, *_of_maps(maps, asked))
    for stack, members, on in together.values():
        poses = [pose for pose in (maps.pose[m] for m in members) if isinstance(pose, MaterialFrame)]
        columns = poses[0].family.columns(poses, np.array(on, dtype=np.int64))
        yield Frames(stack.q, stack.v, columns, True, *_of_maps(maps, members))


def _of_maps(maps: Maps, members: list[int]) -> tuple[Place, dict[str, Place]]:
    starts = {"S": maps.column_start, "S_q": maps.pair_start, "S_qq": maps.triple_start}
    places = {name: _joined(range(at[m], at[m + 1]) for m in members) for name, at in starts.items()}
    return _joined([m] for m in members), places


def _pulls(model: Model) -> Iterable[StackPulls]:
    tables = model.pulls
    together: dict[int, tuple[Stack, list[Any], list[int], list[int]]] = {}
    for part in tables.bodies:
        numbers, found = list(range(part.rows.start, part.rows.stop)), None
        if isinstance(part.pulls, LengthPulls):
            found = _stack_with(model, part.pulls.points, part.q_start)
        if found is not None and isinstance(part.pulls, LengthPulls):
            stack, body = found
            _, items, on, rows = together.setdefault(id(part.pulls.points), (stack, [], [], []))
            items += part.pulls.pulls
            on += [body] * len(numbers)
            rows += numbers
            continue
        span = np.arange(part.pulls.motion.n)
        start = int(model.nodes.v_start[tables.node[numbers[0]]])
        yield StackPulls(part.q_start + span, start + span, part.pulls, *_of_pulls(model, numbers))
    for stack, items, on, rows in together.values():
        points = stack.integrals.points
        if points is not None:
            made = LengthPulls(stack.integrals.kinematics, points, tuple(items), tuple(on))
            yield StackPulls(stack.q, stack.v, made, *_of_pulls(model, rows))


def _of_pulls(model: Model, numbers: list[int]) -> tuple[Place, Place, Place]:
    columns, pairs = model.pulls.column_start, model.pulls.pair_start
    by_column, by_pair = (_joined(range(at[e], at[e + 1]) for e in numbers) for at in (columns, pairs))
    return _joined([e] for e in numbers), by_column, by_pair


def _joined(parts: Iterable[Iterable[int]]) -> Place:
    """Indices one after the other; a slice, which costs less, where they rise by one."""
    whole = np.array([number for part in parts for number in part], dtype=np.int64)
    if len(whole) and bool((np.diff(whole) == 1).all()):
        return slice(int(whole[0]), int(whole[-1]) + 1)
    return whole
