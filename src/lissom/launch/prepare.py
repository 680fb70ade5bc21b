"""Tables that Python callbacks fill before a launch, and their cache, keyed by state.

Poses of mapped nodes, integrals over deformable bodies and pulls inside them come from Python functions. Deformable
bodies of the same motion, points, material and density have one set of integrals, compiled once: they are a stack, and
one call of JAX takes the coordinates of all of them. Frames at material points and tendons inside bodies take the
points of the same stack. Launches at the same state call Python once.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.material_frames import MaterialFrame
from lissom.bodies.pulls import BodyPulls, LengthPulls
from lissom.model.maps import Maps
from lissom.model.model import Model
from lissom.passes.scratch import BY_BODY, BY_PAIR, INPUTS, SPRINGS, DeformingState, Scratch
from lissom.robot.poses import PoseDerivatives

_KEPT = 32  # tables of states

Tables = dict[str, np.ndarray]


@final
class TableCache:
    """Rows of tables of single states, keyed by their arguments."""

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[Any, ...], Tables] = OrderedDict()

    def fill(self, keys: list[tuple[Any, ...]], tables: Tables, names: Sequence[str], make: Callable[[], None]) -> None:
        """Fill tables by `make`, or the tables of one state from the cache under the first key. A row made for one
        state is stored under all keys."""
        if len(tables[names[0]]) != 1:
            make()
            return
        known = self._rows.get(keys[0])
        if known is not None:
            for name, row in known.items():
                tables[name][0] = row
            return
        make()
        row = {name: tables[name][0].copy() for name in names}
        for key in keys:
            self._rows[key] = row
            self._rows.move_to_end(key)
        while len(self._rows) > _KEPT:
            self._rows.popitem(last=False)


def table_cache(model: Model) -> TableCache:
    """The cache of this thread for a model."""
    return model.cached(("tables of states", get_ident()), TableCache)


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


class Wanted(NamedTuple):
    """Options of a launch for the tables.

    Mapped nodes that carry nothing are left out unless it is to be `everywhere`. Second derivatives of the columns of
    material points, of which there are n³, are made where `curved` ones are asked for, or all derivatives of tables.
    Of first ones no more need be right than what they sum up to along v where the launch takes `sums`. Integrals over
    bodies, which take longest, are left as they are where nothing that `weighs` is asked for. A `rough` launch, for a
    matrix of Newton's method, does without second derivatives of columns, which stand with squares of v alone.
    """

    differentiates: bool = False
    everywhere: bool = False
    curved: bool = False
    sums: bool = False
    rough: bool = False
    weighs: bool = True


def fills_tables(model: Model, wanted: Wanted) -> bool:
    """Whether `prepare` has anything to do before a launch."""
    of_bodies = wanted.weighs and model.deforming.calls_python
    return bool(_called(model, wanted.everywhere)) or of_bodies or len(model.pulls) > 0


VALUES = ("c", "P", "c_j", "P_j", "M", "c_v", "b_v", "w_j", "e_v", "energy", "force", "D")
DERIVATIVES = ("c_q", "b_q", "e_q", "c_jl", "P_jl", "w_q", "c_qdot", "b_qdot", "e_qdot", "w_qdot", "K")


@final
class Views:
    """The tables of a workspace as NumPy arrays; on the CPU they are the tables themselves, and made once."""

    def __init__(self, model: Model, scratch: Scratch) -> None:
        self.model, self.scratch = model, scratch
        self._known: dict[str, dict[str, np.ndarray]] = {}

    def of(self, part: str, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Some tables of a part of the scratch memory."""
        if part not in self._known or self.model.device != "cpu":
            state = getattr(self.scratch, part)
            self._known[part] = {name: getattr(state, name).numpy() for name in names}
        return self._known[part]

    def hand_over(self, part: str) -> None:
        """Copy the written tables to the device."""
        if self.model.device != "cpu":
            for name, values in self._known[part].items():
                getattr(getattr(self.scratch, part), name).assign(np.ascontiguousarray(values))


def prepare(views: Views, host: dict[str, Any], wanted: Wanted) -> None:
    """Fill the tables that Python functions give, of mapped nodes and deformable bodies, for the states in `host`."""
    model = views.model
    if "q" not in host:
        return
    called = model.cached(("maps that Python fills", wanted.everywhere), lambda: _called(model, wanted.everywhere))
    if called:
        _place(model, views, host, called, wanted)
    if wanted.weighs and model.deforming.calls_python:
        _deform(model, views, host, wanted.differentiates)
    if len(model.pulls):
        if _drives(host):
            _pull(model, views, host["q"], wanted.differentiates)
        else:
            views.scratch.pulls.response.zero_()  # of an earlier launch with inputs


def _called(model: Model, everywhere: bool) -> list[int]:
    """Numbers of the maps that a launch needs from Python."""
    return [m for m in model.maps.called() if everywhere or model.maps.node[m] < model.n_dynamic]


def _drives(host: dict[str, Any]) -> bool:
    """Whether a launch needs the forces of inputs: it has inputs or returns B, and the term of inputs is on."""
    counts = "terms" not in host or bool(int(host["terms"].flat[0]) & int(INPUTS))
    return counts and ("u" in host or "B" in host)


def _place(model: Model, views: Views, host: dict[str, Any], called: list[int], wanted: Wanted) -> None:
    """Poses of some maps, and their columns with two derivatives."""
    rows = views.of("maps", ("R", "p", "S", "S_q", "S_qq"))
    q = host["q"][: len(rows["R"])]
    v = host["v"][: len(q)] if "v" in host else None
    asked, here = (wanted.differentiates, wanted.curved, wanted.sums, wanted.rough), ("maps", *called, q.tobytes())
    bent = wanted.differentiates or wanted.curved
    full, names = (*here, b"" if v is None else v.tobytes(), asked), ("R", "p", "S", "S_q", "S_qq")
    keys, names = ([here], names[:3]) if v is None and not bent else ([full, here], names[: 5 if bent else 4])
    table_cache(model).fill(keys, rows, names, lambda: _put_frames(model, rows, (q, v), called, wanted))
    views.hand_over("maps")


def _put_frames(
    model: Model,
    rows: dict[str, np.ndarray],
    state: tuple[np.ndarray, np.ndarray | None],
    called: list[int],
    wanted: Wanted,
) -> None:
    """Poses and columns of some maps at q and v."""
    maps, (q, v) = model.maps, state
    for m, pose in maps.functions():
        if m in called:
            first = int(maps.q_start[m])
            _put_frame(model, rows, m, pose.derivatives(q[:, first : first + pose.n]))
    for part in frames(model, called, wanted.everywhere):
        curved = (wanted.differentiates or wanted.curved) and not (wanted.rough and part.differences)
        sloped = wanted.differentiates or (v is not None and bool(v[:, part.v].any()) and not wanted.sums)
        for k in range(len(q)):
            rate = None if v is None else v[k, part.v]
            R, p, *columns = part.columns(q[k, part.q], rate, curved=curved, sloped=sloped)
            rows["R"][k, part.by_map], rows["p"][k, part.by_map] = R, p
            for name, values in zip(("S", "S_q", "S_qq"), columns):
                if values.size:
                    rows[name][k, part.places[name]] = values.reshape(-1, 6)


def _put_frame(model: Model, rows: dict[str, np.ndarray], m: int, found: PoseDerivatives) -> None:
    """Pose and columns of map m at its place."""
    maps, count = model.maps, len(found.g)
    rows["R"][:count, m], rows["p"][:count, m] = found.g[:, :3, :3], found.g[:, :3, 3]
    for name, start, values in (
        ("S", maps.column_start, found.S),
        ("S_q", maps.pair_start, found.S_q),
        ("S_qq", maps.triple_start, found.S_qq),
    ):
        if values.size:
            rows[name][:count, start[m] : start[m + 1]] = values.reshape(count, -1, 6)


def _deform(model: Model, views: Views, host: dict[str, Any], derivatives: bool) -> None:
    """Integrals over deformable bodies, with their derivatives if these are asked for."""
    rows = views.of("deforming", DeformingState.vars)
    q = host["q"][: len(rows["c"])]
    nothing = np.zeros((len(q), model.nv))
    v, a = (host.get(name, nothing)[: len(q)] for name in ("v", "a"))
    elastic = "terms" not in host or bool(int(host["terms"].flat[0]) & int(SPRINGS))
    parts = [(_values, VALUES, (q, v))] + [(_derivatives, DERIVATIVES, (q, v, a))] * derivatives
    for function, names, state in parts:
        key = (names, elastic, *(part.tobytes() for part in state))
        make = partial(_integrate, model, rows, partial(function, elastic=elastic), state)
        table_cache(model).fill([key], rows, names, make)
    views.hand_over("deforming")


def _integrate(
    model: Model, rows: dict[str, np.ndarray], function: Callable[..., Any], state: tuple[np.ndarray, ...]
) -> None:
    """Integrals over all bodies at q, v and perhaps a, as a function of integrals and of states (m, k, n) of bodies."""
    for stack in stacks(model):
        own = [part[:, at] for part, at in zip(state, (stack.q, stack.v, stack.v))]
        for name, values in function(stack.integrals, *own).items():
            stack.put(rows, name, values)


def _pull(model: Model, views: Views, q: np.ndarray, derivatives: bool) -> None:
    """Forces of unit inputs inside deformable bodies, with their derivatives on demand."""
    rows = views.of("pulls", ("work", "wrench", "B", "wrench_q", "B_q"))
    q = q[: len(rows["work"])]
    for derived, names in ((False, ("work", "wrench", "B")), (True, ("wrench_q", "B_q"))):
        if derivatives or not derived:
            make = partial(_put_pulls, model, rows, q, derived)
            table_cache(model).fill([(names, q.tobytes())], rows, names, make)
    views.hand_over("pulls")


def _put_pulls(model: Model, rows: dict[str, np.ndarray], q: np.ndarray, derived: bool) -> None:
    """Forces of pulls at q, or their derivatives."""
    for part in pulls(model):
        theta = q[:, part.q]
        if derived:
            B_q, wrench_q = part.pulls.derivatives(theta)
            rows["B_q"][: len(q), part.by_pair] = B_q.reshape(len(q), -1)
            rows["wrench_q"][: len(q), part.by_column] = wrench_q.reshape(len(q), -1, 6)
        else:
            work, B, wrench = part.pulls.values(theta)
            rows["work"][: len(q), part.by_pull], rows["wrench"][: len(q), part.by_pull] = work, wrench
            rows["B"][: len(q), part.by_column] = B.reshape(len(q), -1)


def _values(integrals: Any, q: np.ndarray, v: np.ndarray, elastic: bool) -> dict[str, np.ndarray]:
    x = integrals.values(q, v, q.shape[1])
    inertia = {name: getattr(x, name) for name in ("c", "P", "c_j", "P_j", "M", "c_v", "b_v", "w_j", "e_v")}
    return inertia | {"energy": x.U, "force": elastic * (x.g + x.d), "D": elastic * x.d_v}


def _derivatives(integrals: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray, elastic: bool) -> dict[str, np.ndarray]:
    x = integrals.derivatives(q, v, a, q.shape[1])
    inertia = {name: getattr(x, name) for name in ("c_q", "b_q", "e_q", "c_jl", "P_jl", "w_q")}
    by_speed = {"c_qdot": x.c_v, "b_qdot": x.b_v, "e_qdot": x.e_v, "w_qdot": x.w_v}
    return inertia | by_speed | {"K": elastic * (x.K + x.d_q)}
