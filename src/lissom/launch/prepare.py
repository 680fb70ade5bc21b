"""What must be known of a state before a launch: tables that only Python can fill."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from lissom.launch.remembered import remembered
from lissom.launch.stacks import frames, pulls, stacks
from lissom.model.model import Model
from lissom.passes.scratch import INPUTS, SPRINGS, DeformingState, Scratch
from lissom.robot.poses import PoseDerivatives


class Wanted(NamedTuple):
    """What a launch asks of the tables.

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
        """Send what was written to the device."""
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
    """Whether a launch asks what inputs do: it takes some, or gives B, and they count."""
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
    remembered(model).fill(keys, rows, names, lambda: _put_frames(model, rows, (q, v), called, wanted))
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
        remembered(model).fill([key], rows, names, make)
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
    """What unit inputs do inside deformable bodies, with its derivatives if these are asked for."""
    rows = views.of("pulls", ("work", "wrench", "B", "wrench_q", "B_q"))
    q = q[: len(rows["work"])]
    for derived, names in ((False, ("work", "wrench", "B")), (True, ("wrench_q", "B_q"))):
        if derivatives or not derived:
            make = partial(_put_pulls, model, rows, q, derived)
            remembered(model).fill([(names, q.tobytes())], rows, names, make)
    views.hand_over("pulls")


def _put_pulls(model: Model, rows: dict[str, np.ndarray], q: np.ndarray, derived: bool) -> None:
    """What pulls do at q, or its derivatives."""
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
