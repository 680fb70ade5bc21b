"""Contacts at given states: distances, contact points, forces and anchors."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import warp as wp

from lissom.errors import ShapeError
from lissom.forces.contact import (
    Contact,
    contact_force,
    contact_of,
    elastic_slip,
    gap_of_pair,
    limited_slip,
    new_anchor,
    pressure,
    rate_of,
    renew_near,
    spread_of,
)
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.workspace import (
    Workspace,
    batch_of,
    filled_workspace,
    flat,
    leading,
    require_finite_rows,
    row_slices,
    stack,
    workspace,
)
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct, device_tables
from lissom.passes import traversal
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import origin_between, place_bases
from lissom.robot import formatting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


Rows = wp.array2d(dtype=wp.float64)
# Of a pair in contact: its number, depth, point, normal, force, anchor if it sticks, and six of put_powers
NUMBERS_PER_PAIR = wp.constant(23)
_STATES = 64  # states of a motion in one launch
_FEW = 16  # pairs in contact that are read first
WITH_CURVATURE = wp.constant(2)  # value of with_forces: N of the pair, ∂normal/∂centre, instead of force and anchor


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Contacts:
    """The n pairs in contact at one state.

    Fields:
        contact: name of the contact of each pair. link, s: the one of its `links` that touches, and the abscissa there,
        (n,). other, other_s: name of the link that it touches, None for the world, and the abscissa there, (n,).
        depth: penetration, shape (n,) [m]. point: contact point on the surface of the ball, shape (n, 3) [m].
        normal: unit normal towards the link, shape (n, 3). force: on the link, shape (n, 3) [N]. Points, normals and
        forces are in world axes.
    """

    contact: tuple[str, ...]
    link: tuple[str, ...]
    s: np.ndarray
    other: tuple[str | None, ...]
    other_s: np.ndarray
    depth: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    force: np.ndarray


_NONE = Contacts((), (), np.zeros(0), (), np.zeros(0), np.zeros(0), *(np.zeros((0, 3)) for _ in range(3)))


@wp.func
def put_gaps(t: Tables, s: Scratch, i: int, gap: Rows):
    """Distance of each ball from the nearest obstacle that it may touch, at most the margin [m]."""
    for ball in range(gap.shape[1]):
        gap[i, ball] = t.contacts.margin
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        ball = t.contacts.pair[e, 0]
        gap[i, ball] = wp.min(gap[i, ball], gap_of_pair(t, s, i, e))


@wp.func
def power_of(x: Contact, f: vec3, m: vec3) -> wp.float64:
    """Power of a force and a moment at the ball's centre on both bodies of a pair."""
    return wp.dot(f, x.u) + wp.dot(m, x.spin)


@wp.func
def put_powers(i: int, at: int, x: Contact, pairs: Rows):
    """Energies and powers of a pair, six numbers from `at` on: the energy of the spring of friction after the update of
    its anchor, that of depth for a ball, for a cell the power of its force without damping and friction, the power of
    the whole force, the dissipated power if the pair does not slide, and 1 if it slides."""
    f, m = contact_force(x)
    smooth = x
    smooth.law.friction = wp.float64(0.0)
    f_n, m_n = contact_force(smooth)
    springy = smooth
    springy.law.damping = wp.float64(0.0)
    springy.law.hysteresis = wp.float64(0.0)
    f_0, m_0 = contact_force(springy)
    whole = power_of(x, f, m)
    normal = power_of(x, f_n, m_n)
    elastic = power_of(x, f_0, m_0)
    held = wp.float64(0.0)
    slides = wp.float64(0.0)
    lost = normal - whole
    if x.law.stick_stiffness > wp.float64(0.0):
        push, _by_depth, _by_rate = pressure(x.law, x.depth, rate_of(x))
        slip = elastic_slip(x.anchored, x.radius, x.n)
        y = limited_slip(x.law, x.anchored, x.radius, push, x.n, x.c)
        held = wp.float64(0.5) * x.law.stick_stiffness * wp.dot(y, y)
        if wp.length(y) < wp.length(slip):
            slides = wp.float64(1.0)
        w = x.u - wp.dot(x.n, x.u) * x.n - x.radius * wp.cross(x.spin, x.n)
        lost -= x.law.stick_stiffness * wp.dot(slip, w)
    pairs[i, at] = held
    is_cell = wp.dot(x.facing, x.facing) > wp.float64(0.0)
    p = x.law.exponent + wp.float64(1.0)
    pairs[i, at + 1] = wp.where(is_cell, wp.float64(0.0), x.law.stiffness / x.slope * wp.pow(x.depth, p) / p)
    pairs[i, at + 2] = wp.where(is_cell, elastic, wp.float64(0.0))
    pairs[i, at + 3] = whole
    pairs[i, at + 4] = elastic - normal + lost
    pairs[i, at + 5] = slides


@free_of_forces
def contacts_kernel(act: Acting) -> Any:
    """Kernel of gaps, or of the pairs in contact with their forces and anchors."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def contacts_of_states(
        t: TablesStruct,
        s: ScratchStruct,
        q: Rows,
        v: Rows,
        with_forces: wp.array(dtype=wp.int32),
        gap: Rows,
        pairs: Rows,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            if with_forces[0] == 0:
                traversal.outward_pose(t, s, i, k, q)
            else:
                traversal.outward_motion(t, s, i, k, q, v, v, vec6())
        renew_near(t, s, i)
        if with_forces[0] == 0:
            put_gaps(t, s, i, gap)
            return
        count = wp.int32(0)
        for j in range(s.near.count[i]):
            e = s.near.pair[i, j]
            x = contact_of(t, s, i, e, True)
            if x.depth > wp.float64(0.0):
                f, _m = contact_force(x)
                on_obstacle = vec3()
                on_ball = vec3()
                if x.law.stick_stiffness > wp.float64(0.0):
                    push, _by_depth, _by_rate = pressure(x.law, x.depth, rate_of(x))
                    on_obstacle, on_ball = new_anchor(t, s, i, e, x, push)
                point = x.c - x.radius * x.n + spread_of(x) / x.depth + origin_between(t, s, i, x.a, x.b)
                at = NUMBERS_PER_PAIR * count
                pairs[i, at] = wp.float64(e)
                pairs[i, at + 1] = x.depth
                for r in range(3):
                    pairs[i, at + 2 + r] = point[r]
                    pairs[i, at + 5 + r] = x.n[r]
                    pairs[i, at + 8 + r] = f[r]
                    pairs[i, at + 11 + r] = on_obstacle[r]
                    pairs[i, at + 14 + r] = on_ball[r]
                if with_forces[0] == 1:
                    put_powers(i, at + 17, x, pairs)
                if with_forces[0] == WITH_CURVATURE:
                    for r in range(9):
                        pairs[i, at + 8 + r] = x.N[r / 3, r % 3]
                    pairs[i, at + 17] = x.slope
                    pairs[i, at + 21] = x.at_point
                    for r in range(3):
                        pairs[i, at + 2 + r] = x.c[r] - x.radius * x.n[r] + origin_between(t, s, i, x.a, x.b)[r]
                        pairs[i, at + 18 + r] = x.bend[r]
                count += 1
        if count < s.near.pair.shape[1]:
            pairs[i, NUMBERS_PER_PAIR * count] = wp.float64(-1.0)

    return contacts_of_states


def contacts_buffers(model: Model, batch: int, *, anchored: bool = False) -> Buffers:
    """Buffers of gaps and of the pairs in contact, with anchors for each instance if `anchored`."""
    world = model.contacts
    outputs = {"gap": (len(world.ball_node),), "pairs": (int(NUMBERS_PER_PAIR) * world.capacity,)}
    w = Buffers(model, batch, {"q": (model.nq,), "v": (model.nv,)}, outputs)
    with_forces, on = w.buffer("with_forces", (1,), wp.int32), w.on_device
    tables = w.anchored_tables() if anchored else w.tables
    w.record(contacts_kernel, [tables, w.scratch, on["q"], on["v"], with_forces, on["gap"], on["pairs"]])
    return w


def ball_gaps(model: Model, q: np.ndarray) -> np.ndarray:
    """Distance of each ball from the nearest obstacle that it may touch at one state, shape (n_balls,) [m].

    It is negative in contact, and at most the margin within which pairs count as near.

    Raises:
        ModelError: more pairs are near than `near_pairs` allows.
    """
    return _at_state(model, q).host["gap"][0].copy()


def balls_at(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The `ball_gaps` at one state, and the centres of the balls in the world, shape (n_balls, 3) [m]."""
    w = _at_state(model, q)
    return w.host["gap"][0].copy(), w.scratch.near.listed_position.numpy()[0].copy()


def _at_state(model: Model, q: np.ndarray) -> Workspace:
    """The workspace after a launch for the gaps at one state."""
    w = workspace(model, "contacts", 1, contacts_buffers)
    w.host["q"][0], w.host["v"][0], w.host["with_forces"][0] = q, 0.0, 0
    w.scratch.near.count.fill_(-1)  # the list of near pairs of an earlier state may lack new pairs
    w.run()
    w.raise_for_status()
    return w


def largest_depths(models: list[Model], motions: list[np.ndarray]) -> np.ndarray:
    """Largest depth of a contact in each of n motions with states (times, nq), of as many models, (n,) [m]."""
    if not len(models[0].contacts.pair):
        return np.zeros(len(models))
    if any(one is not models[0] for one in models):
        return np.array([largest_depth(one, q) for one, q in zip(models, motions)])
    depth = _depths(models[0], np.concatenate(motions))
    return np.array([own.max(initial=0.0) for own in np.split(depth, np.cumsum([len(q) for q in motions])[:-1])])


def largest_depth(model: Model, q: np.ndarray) -> float:
    """Largest depth of a contact at states q (n, nq) of one model [m]."""
    return float(_depths(model, q).max(initial=0.0))


def _depths(model: Model, q: np.ndarray) -> np.ndarray:
    """Largest depth of a contact at each state (n, nq), 0 without contact, (n,) [m]."""
    depth = np.zeros(len(q))
    for part in row_slices(len(q)) if len(model.contacts.pair) else ():
        w, _ = filled_workspace(
            model, "contacts", contacts_buffers, ("q", "v"), q[part], np.zeros((len(q[part]), model.nv))
        )
        w.host["with_forces"][0] = 0
        w.run()
        w.raise_for_status()
        depth[part] = np.maximum(-w.host["gap"].min(axis=1), 0.0)
    return depth


@over_models("q", "v", as_tuple=True)
def contact_forces(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> Any:
    """The pairs in contact and their forces, at one state or at many.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v: velocity, shape (..., nv); None is rest.
    Returns:
        Contacts. With leading axes, such as those of a trajectory, a tuple with one entry for each state (for several
        axes, of tuples), since the number of pairs varies: `contact_forces(model, motion.q, motion.v)[k]`.
    Raises:
        ShapeError: the argument, the expected and the received shape, or an argument that is not finite.
        ModelError: more pairs are near than `near_pairs` allows.
    Accuracy: that of forward_kinematics times the stiffness of the contact.
    Source: Mathew 2025 (57), (58).
    """
    rows = _finite_rows(model, q, v)
    lead = leading(**rows)
    count = batch_of(lead)
    states = {name: flat(x, lead) for name, x in rows.items()}
    found = [_NONE] * count
    for part in row_slices(count) if len(model.contacts.pair) else ():
        w, _ = filled_workspace(model, "contacts", contacts_buffers, ("q", "v"), states["q"][part], states["v"][part])
        w.host["with_forces"][0] = 1
        w.run()
        w.raise_for_status()
        each = w.host["pairs"].reshape(len(w.status), -1, int(NUMBERS_PER_PAIR))
        found[part] = [_contacts_of_rows(model, _filled_rows(rows)) for rows in each]
    return _nested(found, lead)


def _finite_rows(model: Model, q: Any, v: Any) -> dict[str, np.ndarray]:
    """q and v, None is rest, as finite arrays by name, also for a robot that touches nothing."""
    rows = {"q": stack("q", q, model.nq), "v": stack("v", np.zeros(model.nv) if v is None else v, model.nv)}
    require_finite_rows(**rows)
    return rows


def _contacts_of_rows(model: Model, rows: np.ndarray) -> Contacts:
    """Contacts from rows of numbers (n, NUMBERS_PER_PAIR)."""
    world = model.contacts
    ball, obstacle, law = world.pair[rows[:, 0].astype(int)].reshape(-1, 3).T
    links = [(world.ball_link[k], world.obstacle_link[n]) for k, n in zip(ball, obstacle)]
    carriers = model.cached(("carriers of contacts",), lambda: _carriers(model))
    turned = np.array([link not in carriers[world.names[k]] for k, (link, _) in zip(law, links)], dtype=bool)
    sign = np.where(turned, -1.0, 1.0)[:, None]
    s, other_s = world.ball_s[ball], world.obstacle_s[obstacle]
    return Contacts(
        tuple(world.names[k] for k in law),
        tuple(str(pair[int(turn)]) for pair, turn in zip(links, turned)),
        np.where(turned, other_s, s),
        tuple(pair[1 - int(turn)] for pair, turn in zip(links, turned)),
        np.where(turned, s, other_s),
        rows[:, 1],
        rows[:, 2:5],
        sign * rows[:, 5:8],
        sign * rows[:, 8:11],
    )


def _carriers(model: Model) -> dict[str, set[str]]:
    """The names in `links` of each contact."""
    robot = model.description
    return {name: set(contact.carriers(robot)) for name, contact in robot.contacts.items()}


def _nested(found: list[Contacts], lead: tuple[int, ...]) -> Any:
    """A list of Contacts as nested tuples along the leading axes."""
    if not lead:
        return found[0]
    size = batch_of(lead[1:])
    return tuple(_nested(found[k * size : (k + 1) * size], lead[1:]) for k in range(lead[0]))


def overlapping_links(model: Model) -> list[tuple[str, str]]:
    """Pairs of links that touch at the neutral configuration, each pair once."""
    found = contact_forces(model, model.neutral())
    return sorted({(min(a, b), max(a, b)) for a, b in zip(found.link, found.other) if b is not None})


def contact_geometry(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs in contact at states (n, nq), with the derivatives of their normals.

    Returns:
        The number of the state of each row (rows,), and rows of numbers: the number of the pair, depth [m], three of
        the point and of the normal, nine of the derivative ∂normal/∂centre, row by row, the length s of the gradient of
        the distance, three of its derivative over s, and δ − ρ [m]; see (12) and (13) of contact.
    """
    found, count, size = [np.zeros((0, int(NUMBERS_PER_PAIR)))], np.zeros(len(q), dtype=int), int(NUMBERS_PER_PAIR)
    done = 0
    for part in row_slices(len(q)):
        w, _ = filled_workspace(
            model, "contacts", contacts_buffers, ("q", "v"), q[part], np.zeros((len(q[part]), model.nv))
        )
        w.host["with_forces"][0] = int(WITH_CURVATURE)
        w.run()
        w.raise_for_status()
        rows = w.host["pairs"].reshape(len(w.status), -1, size)[done - part.start :]  # slices may overlap
        count[done : part.stop] = own = _counts_of_rows(rows)
        most = int(own.max(initial=0))
        found.append(rows[:, :most][np.arange(most) < own[:, None]])
        done = part.stop
    return np.repeat(np.arange(len(q)), count), np.concatenate(found)


def _counts_of_rows(rows: np.ndarray) -> np.ndarray:
    """Numbers of rows that the kernel wrote for each state, from (n, capacity, NUMBERS_PER_PAIR). Few pairs touch, so
    that the first rows are searched first for the negative number at the end."""
    most = _FEW
    is_end = rows[:, :most, 0] < 0.0
    while most < rows.shape[1] and not is_end.any(axis=1).all():
        most *= 4
        is_end = rows[:, :most, 0] < 0.0
    return np.where(is_end.any(axis=1), is_end.argmax(axis=1), rows.shape[1])


def _contact_rows(model: Model, q: Any, v: Any) -> np.ndarray:
    """The rows of numbers of the pairs in contact at one state, shape (n, NUMBERS_PER_PAIR)."""
    if len(model.contacts.pair) == 0:
        return np.zeros((0, int(NUMBERS_PER_PAIR)))
    w, lead = filled_workspace(
        model, "contacts", contacts_buffers, ("q", "v"), q, np.zeros(model.nv) if v is None else v
    )
    if lead:
        raise ShapeError(f"q: expected one state of shape ({model.nq},), got a batch of shape {lead}")
    w.host["with_forces"][0] = 1
    w.run()
    w.raise_for_status()
    return _filled_rows(w.host["pairs"][0].reshape(-1, int(NUMBERS_PER_PAIR)))


class Compression(NamedTuple):
    """A pair in contact at rest.

    Fields:
        pair: its number. contact, link, other: names as in Contacts. depth [m]. energy: stored by the normal force
        N ~ δᵖ, N δ / (p + 1) [J].
    """

    pair: int
    contact: str
    link: str
    other: str | None
    depth: float
    energy: float


def compressions(model: Model, q: np.ndarray) -> list[Compression]:
    """The pairs in contact at rest in one configuration (nq,)."""
    if not len(model.contacts.pair):
        return []
    rows, world = _contact_rows(model, q, None), model.contacts
    numbers = rows[:, 0].astype(int)
    energy = (rows[:, 5:8] * rows[:, 8:11]).sum(axis=1) * rows[:, 1] / (1.0 + world.law[world.pair[numbers, 2], 1])
    return [
        Compression(e, world.names[law], world.ball_link[ball], world.obstacle_link[obstacle], depth, stored)
        for e, (ball, obstacle, law), depth, stored in zip(
            numbers.tolist(), world.pair[numbers].tolist(), rows[:, 1].tolist(), energy.tolist()
        )
    ]


def _filled_rows(rows: np.ndarray) -> np.ndarray:
    """The rows that the kernel wrote for one state; a negative first number marks the end."""
    ended = np.flatnonzero(rows[:, 0] < 0.0)
    return rows[: ended[0] if len(ended) else len(rows)].copy()


@over_models("q", "v")
def contact_anchors(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> np.ndarray:
    """Anchors of the pairs in contact, for `Model.anchored`: the points at which balls with `stick_stiffness` stick.

    Sticking friction is a spring between the anchor and the contact point. If the model has an anchor for a pair, the
    anchor stays where it is as long as friction can carry the force of the spring; otherwise it slides after the ball,
    so that the force equals the largest friction. A pair without an anchor gets one at its present contact point. A
    pair without contact has no anchor.

    Args:
        q: configuration, shape (nq,) [rad, m, or strain units]. v: velocity, shape (nv,); None is rest.
    Returns:
        anchors, shape (n_pairs, 6) [m, -]: the point of the obstacle in its frame, and the direction from the ball's
        centre in the frame of its node; NaN for pairs without an anchor.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: a ball that rolls and spins at the same time rolls along a curve; its path between two calls counts as
        straight.
    """
    anchors, rows = np.full(model.contacts.anchors.shape, np.nan), _finite_rows(model, q, v)
    _copy_anchors(_contact_rows(model, rows["q"], rows["v"]), anchors)
    return anchors


@final
class ContactPowers(NamedTuple):
    """Sums over all contacts along a motion, each (n,).

    Fields:
        stored: energy of the springs of friction, and of depth for balls [J]. pressing: power of surfaces without
        damping and friction [W]. whole: power of all contact forces. lost: dissipated power, if all anchors stay.
        slides: whether an anchor follows at a time, or was lost with energy since the time before.
        changes: whether a pair begins or ends to touch or to slide from one time to the next, (n − 1,).
    """

    stored: np.ndarray
    pressing: np.ndarray
    whole: np.ndarray
    lost: np.ndarray
    slides: np.ndarray
    changes: np.ndarray


def contact_powers(model: Model, q: np.ndarray, v: np.ndarray, *, follows: bool) -> ContactPowers:
    """Energies and powers of contacts along a motion with states q (n, nq) and v (n, nv).

    Args:
        follows: whether the anchors follow the contacts from state to state; otherwise all states have the anchors of
            the model.
    """
    sums, slides = np.zeros((4, len(q))), np.zeros(len(q), dtype=bool)
    follows = follows and model.contacts.sticks
    make, held = partial(contacts_buffers, anchored=follows), {}
    seen: list[list[tuple[float, float]]] = [[] for _ in q]
    anchors = model.contacts.anchors
    for part in row_slices(len(q), 1 if follows else _STATES) if len(model.contacts.pair) else ():
        family = "contacts with anchors" if follows else "contacts"
        w, _ = filled_workspace(model, family, make, ("q", "v"), q[part], v[part])
        if follows:
            w.put_anchors(anchors[None])
        w.host["with_forces"][0] = 1
        w.run()
        w.raise_for_status()
        for k, numbers in zip(range(part.start, part.stop), w.host["pairs"]):
            rows = _filled_rows(numbers.reshape(-1, int(NUMBERS_PER_PAIR)))
            energy, depth, *powers, slid = rows[:, 17:23].T
            sums[:, k] = [np.sum(energy + depth), *map(np.sum, powers)]
            seen[k] = sorted(zip(rows[:, 0].tolist(), slid.tolist()))  # slices may overlap
            if follows:
                own = dict(zip(rows[:, 0].tolist(), energy.tolist()))
                slides[k] = slid.any() or any(energy > 0.0 and e not in own for e, energy in held.items())
                held, anchors = own, np.full_like(anchors, np.nan)
                _copy_anchors(rows, anchors)
    changes = np.array([one != other for one, other in zip(seen[1:], seen)], dtype=bool)
    return ContactPowers(*sums, slides, changes)


def anchors_after(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Anchors at states q (n, nq), v (n, nv) if each state had `anchors` (n, n_pairs, 6) before; of the same shape."""
    out = np.full((len(q), *anchors.shape[1:]), np.nan)
    for part in [slice(0, len(q))] if model.models else row_slices(len(q)):
        make = partial(contacts_buffers, anchored=True)
        w, _ = filled_workspace(model, "contacts with anchors", make, ("q", "v"), q[part], v[part])
        w.put_anchors(anchors[part])
        w.host["with_forces"][0] = 1
        w.run()
        w.raise_for_status()
        for to, numbers in zip(out[part], w.host["pairs"].reshape(len(w.status), -1, int(NUMBERS_PER_PAIR))):
            _copy_anchors(_filled_rows(numbers), to)
    return out


def _copy_anchors(rows: np.ndarray, to: np.ndarray) -> None:
    """Copy the anchors of pairs that stick into `to` (n_pairs, 6); these are the rows with a direction."""
    rows = rows[rows[:, 14:17].any(axis=1)]
    to[rows[:, 0].astype(int)] = rows[:, 11:17]


def put_anchors(model: Model, anchors: np.ndarray) -> None:
    """Write anchors (n_pairs, 6) into the tables of a model. No other thread may use the model meanwhile."""
    device_tables(model).contacts.anchor.assign(np.ascontiguousarray(anchors).reshape(1, -1, 3))


def present_anchors(model: Model) -> np.ndarray:
    """The anchors in the tables of a model, shape (n_pairs, 6)."""
    if not len(model.contacts.pair):
        return np.zeros((0, 6))
    return device_tables(model).contacts.anchor.numpy().reshape(-1, 6).copy()


def friction_ratios(model: Model, q: np.ndarray) -> np.ndarray:
    """Ratio of friction to the largest friction, |f_t| / (μ N), of the pairs that stick at rest, shape (n,)."""
    rows, world = _contact_rows(model, q, None), model.contacts
    law = world.law[world.pair[rows[:, 0].astype(int), 2]]
    n, f = rows[:, 5:8], rows[:, 8:11]
    N = (n * f).sum(axis=1)
    size, most = np.linalg.norm(f - N[:, None] * n, axis=1), law[:, 3] * N
    holds = (law[:, 5] > 0.0) & (most > 0.0)
    return size[holds] / most[holds]
