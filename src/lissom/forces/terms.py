"""The list of terms of force, and their composition into one function of each kind for a model.

Three kinds of force are no terms. Gravity is the acceleration −G of the base, from which the sweeps start: it adds the
weight of every inertia, and the derivatives of weight follow from those of the motion. Motors, and actuators that
Python calls, are forces on coordinates that are constant within a kernel; the residual subtracts them
(systems.residual). Reactions of loops are unknowns of the equations (systems.loops).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from lissom.forces import (
    body_elasticity,
    contact,
    custom_actuators,
    elasticity,
    fluid,
    green_strains,
    joint_friction,
    loads,
    path_springs,
    point_elasticity,
    springs,
    tendons,
    traced_forces,
)
from lissom.forces.term import Term, clear_responses
from lissom.lie.types import CONTACTS, FEATURES, PROGRAMS, RIGID, SHAPES, TRACED, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct, TermRows, device_array, device_tables, write_tables
from lissom.passes.columns import Columns, Matrix
from lissom.passes.features import is_rigid_with_contacts, optional_kinds
from lissom.passes.scratch import Scratch

TERMS = (
    elasticity.TERM,
    green_strains.TERM,
    body_elasticity.TERM,
    springs.JOINT_TERM,
    loads.LOAD_TERM,
    fluid.TERM,
    contact.TERM,
    loads.USER_TERM,
    traced_forces.TERM,
    springs.SPRING_TERM,
    path_springs.TERM,
    tendons.CHANNEL_TERM,
    tendons.PULL_TERM,  # after the channels, which compute the tensions
    springs.COUPLING_TERM,
    custom_actuators.TERM,
    traced_forces.DRIVEN_TERM,
    joint_friction.TERM,
    point_elasticity.TERM,
)

Present = tuple[tuple[int, tuple[Any, ...]], ...]  # places in TERMS, each with functions of a model's user


class Acting(NamedTuple):
    """The functions of `term`, each composed of all terms of a model; force, stiffen and change take `acting` before
    their output. kinds: the rare features of the model, which are compiler options. custom, driven: places of the
    terms of users' actuators and of users' forces that depend on inputs; −1 without them."""

    add: Any
    respond: Any
    force: Any
    stiffen: Any
    change: Any
    energy: Any
    renew: Any
    measure: Any
    kinds: tuple[str, ...]
    custom: int
    driven: int


_VALUES_AND_REST = np.s_[:1], np.s_[1:]  # columns of cells: of values of functions, and of derivatives
SHARED = "LISSOM_SHARED_KERNELS"  # environment variable: compose few kernels, with more than a model needs
_OWN = (
    loads.USER_TERM,
    traced_forces.TERM,
    custom_actuators.TERM,
    traced_forces.DRIVEN_TERM,
)  # terms of functions that a user wrote


def acting_on(model: Model) -> Acting:
    """The composed terms of a model; models with the same terms and features share them and their kernels."""
    present = _present(model)
    return _composed(*_shared(present, _rare_features(model, present)))


def _shared(present: Present, kinds: tuple[str, ...]) -> tuple[Present, tuple[str, ...]]:
    """Terms and features of the kernels for robots with these terms and features.

    They are the same, unless the environment asks for kernels that many robots share: then robots with rare features
    have all of them, and all terms that need no function of a user. Such kernels compile longer and run slower, but
    far fewer of them are compiled where many kinds of robots are tried, as in tests.
    """
    if not (os.environ.get(SHARED) and kinds) or any(users for _, users in present):
        return present, kinds
    if CONTACTS in kinds and not {"MAP", "BODY"} & set(kinds):
        return present, (SHAPES, *(kind for kind in kinds if kind != SHAPES))
    own = {k for k, _ in present}
    return (
        tuple((k, ()) for k, term in enumerate(TERMS) if k in own or term not in _OWN),
        ("MAP", "BODY", SHAPES, PROGRAMS, FEATURES),
    )


def _present(model: Model) -> Present:
    """The places in TERMS of the terms of a model, and their users' functions."""

    def found() -> Present:
        return tuple((k, term.users(model)) for k, term in enumerate(TERMS) if term.is_in(model))

    return model.cached(("terms",), found)


def no_terms(model: Model) -> Acting:
    """The composition of no terms, with the features of a model."""
    return _composed((), _shared((), _rare_features(model, _present(model)))[1])


def _rare_features(model: Model, present: Present) -> tuple[str, ...]:
    """The rare features of a model with the terms `present`: its rare kinds of nodes and shapes, and FEATURES if it has
    another feature of passes/features. A robot whose only surroundings are contacts has CONTACTS instead, and RIGID if
    its links are rigid."""
    nodes = model.nodes
    kinds = optional_kinds(nodes)
    is_not_plain = (
        kinds or nodes.has_quaternion.any() or model.n_rows or model.couples_nodes or len(model.spools.channel)
    )
    shapes = (SHAPES,) if model.contacts.has_rare_shapes else ()
    functions = [function for _, users in present for function in users]
    traced = (TRACED,) if any(getattr(function, "is_traced", False) for function in functions) else ()
    couplings = model.joint_couplings
    runs = (couplings.program >= 0).any() or (couplings.function >= 0).any() or len(model.constraint_functions)
    programs = (PROGRAMS,) if runs else ()
    features: tuple[str, ...] = (FEATURES,)
    if model.has_contacts_only:
        features = (CONTACTS, RIGID) if is_rigid_with_contacts(model) else (CONTACTS,)
    return (*kinds, *shapes, *traced, *programs, *(features if is_not_plain else ()))


@cache
def _composed(present: Present, kinds: tuple[str, ...]) -> Acting:
    """The composition of terms, given by their places in TERMS and their users' functions."""
    kinds_of_function = {
        "add": (no_wrench, _add_both),
        "respond": (no_response, _respond_both),
        "force": (no_force, _force_of_both),
        "stiffen": (no_stiffness, _stiffen_by_both),
        "change": (no_change, _change_both),
        "energy": (no_energy, _energy_of_both),
        "renew": (no_memory, _renew_both),
        "measure": (no_springs, _measure_both),
    }
    found = {name: nothing for name, (nothing, _) in kinds_of_function.items()}
    for k, users in present:
        term = _bound(k, users)
        for name, (_, both) in kinds_of_function.items():
            if getattr(term, name) is not None:
                found[name] = both(found[name], getattr(term, name), wp.constant(wp.int32(term.flag)))
    places = {TERMS[k].name: k for k, _ in present}
    custom, driven = (places.get(term.name, -1) for term in (custom_actuators.TERM, traced_forces.DRIVEN_TERM))
    return Acting(**found, kinds=kinds, custom=custom, driven=driven)


def _bound(k: int, users: tuple[Any, ...]) -> Term:
    """Term k bound to its users' functions and to the place of its tables."""
    term = TERMS[k]
    if term.bind is None:
        return term
    place = () if term.tables is None else (wp.constant(wp.int32(k)),)
    return term._replace(**term.bind(*place, *users))


def tables_with_terms(model: Model) -> TablesStruct:
    """The model's tables on its device, with those of all terms; a batch of models uses those of its first model."""
    model = model.models[0] if model.models else model
    t = device_tables(model)
    if "terms" not in model.cache:
        rows = [_rows(k, term, model) for k, term in enumerate(TERMS)]
        made = wp.array(rows, dtype=TermRows, device=model.device), rows  # `rows` keep the memory alive
        model.cache.setdefault("terms", made)  # atomic: all threads use the tables of the first
    t.terms, _ = model.cache["terms"]
    return t


def write_tables_with_terms(model: Model, changed: Model, *, is_alike: bool = False) -> bool:
    """`write_tables`, with the tables of all terms. False also if the kernels of the two models differ, which is not
    checked if they are known to be alike."""
    if not is_alike and acting_on(model) is not acting_on(changed):
        return False
    groups = "springs", "placed_parts", "deforming", "joint_couplings", "inputs"
    same = all(getattr(model, name) is getattr(changed, name) for name in groups)
    same = same and all(getattr(model.forces, x) is getattr(changed.forces, x) for x in ("compiled", "driven"))
    is_new = not same or model.links.joint is not changed.links.joint
    tables_with_terms(model)
    found = [(k, _tables(term, changed)) for k, term in enumerate(TERMS) if is_new and term.tables is not None]
    rows = model.cache["terms"][1]
    pairs = [(getattr(rows[k], name), part) for k, parts in found for name, part in zip(TermRows.vars, parts)]
    if any(array.shape != part.shape for array, part in pairs) or not write_tables(model, changed):
        return False
    for native in (native for k, _ in found for native in TERMS[k].natives(changed) if native is not None):
        _ = native.address  # recorded launches do not wait for other functions
    for array, part in pairs:
        if part.size:
            array.assign(part)
    return True


def have_same_tables_of_terms(model: Model, other: Model) -> bool:
    """Whether two models have the same terms, and these the same tables."""
    if acting_on(model) is not acting_on(other):
        return False
    pairs = [(_tables(term, model), _tables(term, other)) for term in TERMS if term.tables is not None]
    return all(np.array_equal(x, y) for a, b in pairs for x, y in zip(a, b))


def _rows(k: int, term: Term, model: Model) -> TermRows:
    rows = TermRows()
    for name, part in zip(TermRows.vars, _tables(term, model)):
        setattr(rows, name, device_array(model, f"{name} of term {k}", part, TermRows.vars[name].type.dtype))
    return rows


def _tables(term: Term, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of the TermRows of a term."""
    index, number = (np.zeros((0, 0)),) * 2 if term.tables is None else term.tables(model)
    return np.ascontiguousarray(index, np.int32), np.ascontiguousarray(number, np.float64), _cells(term, model)


def _cells(term: Term, model: Model) -> np.ndarray:
    """Addresses of cells of the native code that a term calls, a row for each row of its tables; 0 stands for none."""
    natives = term.natives(model)
    rows = [() if native is None else native.cell for native in natives]
    cells = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.uint64)
    for row, own in zip(cells, rows):
        row[: len(own)] = own
    return cells


def native_cells(model: Model) -> list[np.ndarray]:
    """Addresses of cells of all native code of users' functions that the terms of a model call: of values, and of
    derivatives."""
    cells = [_cells(TERMS[k], one) for one in model.models or (model,) for k, _ in _present(one)]
    return [np.concatenate([np.zeros(0, np.uint64), *(x[:, part].ravel() for x in cells)]) for part in _VALUES_AND_REST]


@wp.func
def no_wrench(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """No wrench."""
    ...


def _add_both(first: Any, second: Any, flag: Any) -> Any:
    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        first(t, s, i, q, gravity, load, acting)
        if flag == 0 or acting & flag != 0:
            second(t, s, i, q, gravity, load, acting)

    return add


@wp.func
def no_response(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """No derivatives; clears those of an earlier state."""
    clear_responses(t, s, i)


def _respond_both(first: Any, second: Any, flag: Any) -> Any:
    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        first(t, s, i, gravity, load, acting, H)
        if flag == 0 or acting & flag != 0:
            second(t, s, i, gravity, load, acting, H)

    return respond


@wp.func
def no_force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, acting: int, tau: Matrix):
    """No force."""
    ...


def _force_of_both(first: Any, second: Any, flag: Any) -> Any:
    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, acting: int, tau: Matrix):
        first(t, s, i, q, v, acting, tau)
        if flag == 0 or acting & flag != 0:
            second(t, s, i, q, v, tau)

    return force


@wp.func
def no_stiffness(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64, by_v: wp.float64,
    acting: int, out: Matrix,
):  # fmt: skip
    """No stiffness."""
    ...


def _stiffen_by_both(first: Any, second: Any, flag: Any) -> Any:
    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, acting: int, out: Matrix,
    ):  # fmt: skip
        first(t, s, x, i, q, v, move, by_q, by_v, acting, out)
        if flag == 0 or acting & flag != 0:
            second(t, s, x, i, q, v, move, by_q, by_v, out)

    return stiffen


@wp.func
def no_change(
    t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, acting: int, tau: Matrix
):  # fmt: skip
    """No change of a force."""
    ...


def _change_both(first: Any, second: Any, flag: Any) -> Any:
    @wp.func(module="unique")
    def change(
        t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, acting: int, tau: Matrix
    ):  # fmt: skip
        first(t, s, i, q, v, dq, dv, acting, tau)
        if flag == 0 or acting & flag != 0:
            second(t, s, i, q, v, dq, dv, tau)

    return change


@wp.func
def no_energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
    """No energy."""
    return wp.float64(0.0)


def _energy_of_both(first: Any, second: Any, _flag: Any) -> Any:
    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        return first(t, s, i, q) + second(t, s, i, q)

    return energy


@wp.func
def no_memory(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, a: Matrix):
    """No memory."""
    ...


def _renew_both(first: Any, second: Any, _flag: Any) -> Any:
    @wp.func(module="unique")
    def renew(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, a: Matrix):
        first(t, s, i, q, v, a)
        second(t, s, i, q, v, a)

    return renew


@wp.func
def no_springs(
    t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, u: Matrix, inverse_scale: wp.array(dtype=wp.float64),
    out: Matrix, row: int,
) -> int:  # fmt: skip
    """No springs."""
    return row


def _measure_both(first: Any, second: Any, _flag: Any) -> Any:
    @wp.func(module="unique")
    def measure(
        t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, u: Matrix, inverse_scale: wp.array(dtype=wp.float64),
        out: Matrix, row: int,
    ) -> int:  # fmt: skip
        return second(t, s, i, q, v, u, inverse_scale, out, first(t, s, i, q, v, u, inverse_scale, out, row))

    return measure


def spring_count(model: Model) -> int:
    """Number of rows that `measure` writes for a model."""
    return model.cached(("springs",), lambda: sum(TERMS[k].springs(model) for k, _ in _present(model)))
