"""Tables that Python callbacks fill before a launch, and their cache, keyed by state.

Python functions give the poses of mapped nodes, the integrals over deformable bodies and the forces of tendons and
chambers inside these bodies (pulls). Deformable bodies with the same motion, points, material and density share one
compiled set of integrals. They form a stack: one call of JAX takes the coordinates of all of them. Frames at material
points and tendons use the points of the same stack. A cache keyed by state makes several launches at one state call
Python once.
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
from lissom.passes.scratch import BY_BODY, BY_PAIR, INPUTS, DeformingState, Scratch
from lissom.robot.poses import PoseDerivatives

_CACHED_STATES = 32  # per thread

Tables = dict[str, np.ndarray]


@final
class TableCache:
    """Rows of tables for single states, keyed by state; the oldest rows go first."""

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[Any, ...], Tables] = OrderedDict()

    def fill(self, keys: list[tuple[Any, ...]], tables: Tables, names: Sequence[str], make: Callable[[], None]) -> None:
        """Fill tables, from the cache if it has the state.

        Args:
            keys: keys of the state. The first is looked up; new rows are stored under all of them.
            tables: arrays with an axis of instances in front. Tables of several states bypass the cache.
            names: names of the tables to fill. make: fills them by calling Python.
        """
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
        while len(self._rows) > _CACHED_STATES:
            self._rows.popitem(last=False)


def table_cache(model: Model) -> TableCache:
    """The table cache of this thread for a model."""
    return model.cached(("tables of states", get_ident()), TableCache)


Place = slice | np.ndarray  # indices into a table


class Stack(NamedTuple):
    """k deformable bodies that share integrals.

    Fields:
        integrals: the shared integrals. q, v: indices of the bodies' coordinates in q and in v, (k, n).
        by_body, by_column, by_pair: places in the tables of rows that belong to a body, to a coordinate, and to a pair
        of coordinates.
    """

    integrals: ShapeIntegrals
    q: np.ndarray
    v: np.ndarray
    by_body: Place
    by_column: Place
    by_pair: Place

    def put(self, rows: dict[str, np.ndarray], name: str, values: np.ndarray) -> None:
        """Copy values (m, k, ...) of m instances to their place in the table `name`."""
        into, count = rows[name], len(values)
        here = self.by_body if name in BY_BODY else self.by_pair if name in BY_PAIR else self.by_column
        into[:count, here] = values.reshape(count, -1, *into.shape[2:])


class Frames(NamedTuple):
    """Frames at material points of a stack.

    Fields:
        q, v: indices of the coordinates of its k bodies in q and in v, (k, n).
        columns: gives poses of the frames, their columns S and the derivatives of S.
        differences: whether second derivatives of S come from differences. by_map: places of the frames in the tables.
        places: places of S, S_q and S_qq, by name.
    """

    q: np.ndarray
    v: np.ndarray
    columns: Callable[..., Sequence[np.ndarray]]
    differences: bool
    by_map: Place
    places: dict[str, Place]


class StackPulls(NamedTuple):
    """Forces of tendons and chambers in a stack of deformable bodies, per unit of input.

    Fields:
        q, v: indices in q and in v of the coordinates of k bodies (k, n), or of a single body (n,).
        pulls: functions that return the forces and their derivatives.
        by_pull, by_column, by_pair: places in the tables of rows that belong to an actuator, to a coordinate of its
            body, and to a pair of coordinates.
    """

    q: np.ndarray
    v: np.ndarray
    pulls: BodyPulls | LengthPulls
    by_pull: Place
    by_column: Place
    by_pair: Place


def stacks(model: Model) -> tuple[Stack, ...]:
    """Stacks of all deformable bodies whose integrals come from Python."""
    return model.cached(("stacks of bodies",), lambda: tuple(_stacks(model)))


def frames(model: Model, called: Sequence[int], all_nodes: bool) -> tuple[Frames, ...]:
    """Frames at material points among the maps `called`, which are those of a launch with this `all_nodes`."""
    return model.cached(("frames of stacks", all_nodes), lambda: tuple(_frames(model, set(called))))


def pulls(model: Model) -> tuple[StackPulls, ...]:
    """The forces of actuators inside deformable bodies that Python computes, by stack."""
    return model.cached(("pulls of stacks",), lambda: tuple(_pulls(model)))


def _stacks(model: Model) -> Iterable[Stack]:
    bodies = model.deforming
    groups: dict[int, list[int]] = {}
    for b in np.flatnonzero((bodies.is_linear == 0) & (bodies.values_function == 0)).tolist():
        groups.setdefault(id(bodies.integrals[b]), []).append(b)
    for members in groups.values():
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
    """The stack whose integrals use `points`, and the number in it of the body whose coordinates begin at q_start."""
    for stack in stacks(model):
        if points is not None and stack.integrals.points is points:
            at = np.flatnonzero(stack.q[:, 0] == q_start)
            return (stack, int(at[0])) if len(at) else None
    return None


def _frames(model: Model, called: set[int]) -> Iterable[Frames]:
    maps = model.maps
    groups: dict[Any, tuple[Stack, list[int], list[int]]] = {}
    for group in maps.group:
        needed = [m for m in group if m in called]
        if not needed:
            continue
        poses = [pose for pose in (maps.pose[m] for m in needed) if isinstance(pose, MaterialFrame)]
        family, first = poses[0].family, int(maps.q_start[needed[0]])
        found = _stack_with(model, family.points, first)
        if found is not None:
            stack, body = found
            _, members, body_of = groups.setdefault(id(family), (stack, [], []))
            members += needed
            body_of += [body] * len(needed)
            continue
        span = np.arange(poses[0].n)[None]
        columns = family.columns(poses, np.zeros(len(needed), dtype=np.int64))
        start = int(model.nodes.v_start[maps.node[needed[0]]])
        yield Frames(first + span, start + span, columns, family.points is not None, *_places_of_maps(maps, needed))
    for stack, members, body_of in groups.values():
        poses = [pose for pose in (maps.pose[m] for m in members) if isinstance(pose, MaterialFrame)]
        columns = poses[0].family.columns(poses, np.array(body_of, dtype=np.int64))
        yield Frames(stack.q, stack.v, columns, True, *_places_of_maps(maps, members))


def _places_of_maps(maps: Maps, members: list[int]) -> tuple[Place, dict[str, Place]]:
    """Places in the tables of maps, and of their columns S, S_q and S_qq by name."""
    starts = {"S": maps.column_start, "S_q": maps.pair_start, "S_qq": maps.triple_start}
    places = {name: _joined(range(at[m], at[m + 1]) for m in members) for name, at in starts.items()}
    return _joined([m] for m in members), places


def _pulls(model: Model) -> Iterable[StackPulls]:
    tables = model.pulls
    groups: dict[int, tuple[Stack, list[Any], list[int], list[int]]] = {}
    for part in tables.called():
        numbers, found = list(range(part.rows.start, part.rows.stop)), None
        if isinstance(part.pulls, LengthPulls):
            found = _stack_with(model, part.pulls.points, part.q_start)
        if found is not None and isinstance(part.pulls, LengthPulls):
            stack, body = found
            _, items, body_of, rows = groups.setdefault(id(part.pulls.points), (stack, [], [], []))
            items += part.pulls.pulls
            body_of += [body] * len(numbers)
            rows += numbers
            continue
        span = np.arange(part.pulls.motion.n)
        start = int(model.nodes.v_start[tables.node[numbers[0]]])
        yield StackPulls(part.q_start + span, start + span, part.pulls, *_places_of_pulls(model, numbers))
    for stack, items, body_of, rows in groups.values():
        points = stack.integrals.points
        if points is not None:
            made = LengthPulls(stack.integrals.kinematics, points, tuple(items), tuple(body_of))
            yield StackPulls(stack.q, stack.v, made, *_places_of_pulls(model, rows))


def _places_of_pulls(model: Model, numbers: list[int]) -> tuple[Place, Place, Place]:
    """Places of actuators, of their columns and of pairs of columns in the tables of `pulls`."""
    columns, pairs = model.pulls.column_start, model.pulls.pair_start
    by_column, by_pair = (_joined(range(at[e], at[e + 1]) for e in numbers) for at in (columns, pairs))
    return _joined([e] for e in numbers), by_column, by_pair


def _joined(parts: Iterable[Iterable[int]]) -> Place:
    """All indices in one array; a slice, which is faster, if they rise by one."""
    whole = np.array([number for part in parts for number in part], dtype=np.int64)
    if len(whole) and bool((np.diff(whole) == 1).all()):
        return slice(int(whole[0]), int(whole[-1]) + 1)
    return whole


class TableOptions(NamedTuple):
    """Options of a launch: the entries of the tables that its kernel reads.

    Fields:
        derivatives: derivatives of all tables with respect to q, v and a.
        all_nodes: also the mapped nodes from `n_dynamic` on, which carry no mass and no force.
        column_derivatives: second derivatives of the columns of material points, n³ numbers for each.
        only_along_v: of the first derivatives of columns only the sum Σ ∂S_j/∂q_c v_j v_c is read.
        approximate: without second derivatives of the columns of material points. They multiply squares of v, and a
            matrix of Newton's method may omit them.
        integrals: integrals over deformable bodies, which take the longest time.
    """

    derivatives: bool = False
    all_nodes: bool = False
    column_derivatives: bool = False
    only_along_v: bool = False
    approximate: bool = False
    integrals: bool = True


def has_tables_to_fill(model: Model, options: TableOptions) -> bool:
    """Whether a launch with these options reads tables that `fill_tables` fills."""
    of_bodies = options.integrals and model.deforming.calls_python
    return bool(_python_maps(model, options.all_nodes)) or of_bodies or model.pulls.calls_python


VALUES = ("c", "P", "c_j", "P_j", "M", "c_v", "b_v", "w_j", "e_v", "energy", "force", "D")
DERIVATIVES = ("c_q", "b_q", "e_q", "c_jl", "P_jl", "w_q", "c_qdot", "b_qdot", "e_qdot", "w_qdot", "K")


@final
class Views:
    """The tables of a workspace as NumPy arrays: views made once on the CPU, copies on other devices."""

    def __init__(self, model: Model, scratch: Scratch) -> None:
        self.model, self.scratch = model, scratch
        self._arrays: dict[str, dict[str, np.ndarray]] = {}

    def arrays(self, part: str, names: Iterable[str]) -> dict[str, np.ndarray]:
        """The tables `names` of the part `part` of the scratch memory."""
        if part not in self._arrays or self.model.device != "cpu":
            state = getattr(self.scratch, part)
            self._arrays[part] = {name: getattr(state, name).numpy() for name in names}
        return self._arrays[part]

    def copy_to_device(self, part: str) -> None:
        """Copy the tables of a part to the device, unless it is the CPU."""
        if self.model.device != "cpu":
            for name, values in self._arrays[part].items():
                getattr(getattr(self.scratch, part), name).assign(np.ascontiguousarray(values))


def fill_tables(views: Views, host: dict[str, Any], options: TableOptions) -> None:
    """Call Python functions at the states in the buffers `host`, and write their results to the tables: poses,
    integrals and forces of inputs."""
    model = views.model
    if "q" not in host:
        return
    called = model.cached(("maps that Python fills", options.all_nodes), lambda: _python_maps(model, options.all_nodes))
    if called:
        _fill_poses(model, views, host, called, options)
    if options.integrals and model.deforming.calls_python:
        _fill_integrals(model, views, host, options.derivatives)
    if model.pulls.calls_python and _has_inputs(host):
        _fill_pulls(model, views, host["q"], options.derivatives)


def _python_maps(model: Model, all_nodes: bool) -> list[int]:
    """Numbers of the maps whose poses come from Python, of all nodes or of the first n_dynamic ones."""
    return [m for m in model.maps.called() if all_nodes or model.maps.node[m] < model.n_dynamic]


def _has_inputs(host: dict[str, Any]) -> bool:
    """Whether a launch needs the forces of inputs: it returns B, or has inputs and the term of inputs is on."""
    is_on = "terms" not in host or bool(int(host["terms"].flat[0]) & int(INPUTS))
    return "B" in host or (is_on and "u" in host)


def _fill_poses(model: Model, views: Views, host: dict[str, Any], called: list[int], options: TableOptions) -> None:
    """Fill in the poses of the maps `called`, their columns S and the derivatives of S."""
    rows = views.arrays("maps", ("R", "p", "S", "S_q", "S_qq"))
    q = host["q"][: len(rows["R"])]
    v = host["v"][: len(q)] if "v" in host else None
    entries = (options.derivatives, options.column_derivatives, options.only_along_v, options.approximate)
    needs_S_qq = options.derivatives or options.column_derivatives
    key_of_q = ("maps", *called, q.tobytes())
    full_key = (*key_of_q, b"" if v is None else v.tobytes(), entries)
    if v is None and not needs_S_qq:
        keys, names = [key_of_q], ("R", "p", "S")
    else:  # rows with derivatives also serve launches that read poses and columns only
        keys, names = [full_key, key_of_q], ("R", "p", "S", "S_q", "S_qq")[: 5 if needs_S_qq else 4]
    table_cache(model).fill(keys, rows, names, lambda: _put_poses(model, rows, (q, v), called, options))
    views.copy_to_device("maps")


def _put_poses(
    model: Model,
    rows: dict[str, np.ndarray],
    state: tuple[np.ndarray, np.ndarray | None],
    called: list[int],
    options: TableOptions,
) -> None:
    """Call Python for the poses and columns of the maps `called` at the states (q, v)."""
    maps, (q, v) = model.maps, state
    for m, pose in maps.functions():
        if m in called:
            first = int(maps.q_start[m])
            _put_pose(model, rows, m, pose.derivatives(q[:, first : first + pose.n]))
    for part in frames(model, called, options.all_nodes):
        needs_S_qq = (options.derivatives or options.column_derivatives) and not (
            options.approximate and part.differences
        )
        needs_S_q = options.derivatives or (v is not None and bool(v[:, part.v].any()) and not options.only_along_v)
        for k in range(len(q)):
            rate = None if v is None else v[k, part.v]
            R, p, *columns = part.columns(q[k, part.q], rate, curved=needs_S_qq, sloped=needs_S_q)
            rows["R"][k, part.by_map], rows["p"][k, part.by_map] = R, p
            for name, values in zip(("S", "S_q", "S_qq"), columns):
                if values.size:
                    rows[name][k, part.places[name]] = values.reshape(-1, 6)


def _put_pose(model: Model, rows: dict[str, np.ndarray], m: int, found: PoseDerivatives) -> None:
    """Copy the pose and the columns of map m to their places in the tables."""
    maps, count = model.maps, len(found.g)
    rows["R"][:count, m], rows["p"][:count, m] = found.g[:, :3, :3], found.g[:, :3, 3]
    for name, start, values in (
        ("S", maps.column_start, found.S),
        ("S_q", maps.pair_start, found.S_q),
        ("S_qq", maps.triple_start, found.S_qq),
    ):
        if values.size:
            rows[name][:count, start[m] : start[m + 1]] = values.reshape(count, -1, 6)


def _fill_integrals(model: Model, views: Views, host: dict[str, Any], derivatives: bool) -> None:
    """Fill in the integrals over deformable bodies, and their derivatives if `derivatives`."""
    rows = views.arrays("deforming", DeformingState.vars)
    q = host["q"][: len(rows["c"])]
    zeros = np.zeros((len(q), model.nv))
    v, a = (host.get(name, zeros)[: len(q)] for name in ("v", "a"))
    parts = [(_values, VALUES, (q, v))] + [(_derivatives, DERIVATIVES, (q, v, a))] * derivatives
    for function, names, state in parts:
        key = (names, *(part.tobytes() for part in state))
        make = partial(_put_integrals, model, rows, function, state)
        table_cache(model).fill([key], rows, names, make)
    views.copy_to_device("deforming")


def _put_integrals(
    model: Model, rows: dict[str, np.ndarray], function: Callable[..., Any], state: tuple[np.ndarray, ...]
) -> None:
    """Evaluate integrals over all bodies.

    Args:
        function: gives the named tables from the integrals of a stack and the states (m, k, n) of its bodies.
        state: q, v and, for derivatives, a, each (m, ...).
    """
    for stack in stacks(model):
        own = [part[:, at] for part, at in zip(state, (stack.q, stack.v, stack.v))]
        for name, values in function(stack.integrals, *own).items():
            stack.put(rows, name, values)


def _fill_pulls(model: Model, views: Views, q: np.ndarray, derivatives: bool) -> None:
    """Fill in the forces of unit inputs inside deformable bodies, and their derivatives if `derivatives`."""
    rows = views.arrays("pulls", ("work", "wrench", "B", "wrench_q", "B_q"))
    q = q[: len(rows["work"])]
    for derived, names in ((False, ("work", "wrench", "B")), (True, ("wrench_q", "B_q"))):
        if derivatives or not derived:
            make = partial(_put_pulls, model, rows, q, derived)
            table_cache(model).fill([(names, q.tobytes())], rows, names, make)
    views.copy_to_device("pulls")


def _put_pulls(model: Model, rows: dict[str, np.ndarray], q: np.ndarray, derived: bool) -> None:
    """Call Python for the forces of unit inputs at q (m, nq), or for their derivatives if `derived`."""
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


def _values(integrals: Any, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    x = integrals.values(q, v, q.shape[1])
    inertia = {name: getattr(x, name) for name in ("c", "P", "c_j", "P_j", "M", "c_v", "b_v", "w_j", "e_v")}
    return inertia | {"energy": x.U, "force": x.g + x.d, "D": x.d_v}


def _derivatives(integrals: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
    x = integrals.derivatives(q, v, a, q.shape[1])
    inertia = {name: getattr(x, name) for name in ("c_q", "b_q", "e_q", "c_jl", "P_jl", "w_q")}
    by_speed = {"c_qdot": x.c_v, "b_qdot": x.b_v, "e_qdot": x.e_v, "w_qdot": x.w_v}
    return inertia | by_speed | {"K": x.K + x.d_q}
