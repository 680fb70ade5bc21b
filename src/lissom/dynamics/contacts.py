"""What touches what: distances, points and forces of contact at one state."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.errors import ShapeError
from lissom.forces.contact import contact_force, contact_of, gap_of_pair, has_moved, list_near, new_anchor
from lissom.launch.buffers import Buffers
from lissom.launch.over_models import over_models
from lissom.launch.workspace import batch_of, filled, flat, leading, parts, stack, workspace
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct, device_tables
from lissom.passes import traversal
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import origin_between, place_bases
from lissom.robot import formatting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)
NUMBERS = wp.constant(17)  # of a touching pair: which, depth, point, normal, force, anchor if it sticks
CURVED = wp.constant(2)  # instead of force and anchor, how the normal turns with the ball


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Contacts:
    """The pairs that touch at one state, n of them.

    Fields:
        contact: name of the contact each belongs to. link, s: where the ball stands.
        other, other_s: name of the link that it touches, None for the world, and where on it.
        depth: of the ball in the other, shape (n,) [m]. point: of contact, on the ball's surface, shape (n, 3) [m].
        normal: towards the ball, shape (n, 3). force: on the ball, shape (n, 3) [N]. Both are in world axes.
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
    """Distance of each ball from the nearest of what it may touch, no more than the margin."""
    for ball in range(gap.shape[1]):
        gap[i, ball] = t.contacts.margin
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        ball = t.contacts.pair[e, 0]
        gap[i, ball] = wp.min(gap[i, ball], gap_of_pair(t, s, i, e))


@wp.kernel
def contacts_kernel(
    t: TablesStruct,
    s: ScratchStruct,
    q: Rows,
    v: Rows,
    with_forces: wp.array(dtype=wp.int32),
    gap: Rows,
    touching: Rows,
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
    if has_moved(t, s, i) == 1:
        list_near(t, s, i)
    if with_forces[0] == 0:
        put_gaps(t, s, i, gap)
        return
    count = wp.int32(0)
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        x = contact_of(t, s, i, e)
        if x.depth > wp.float64(0.0):
            f, _m = contact_force(x.law, x.grip, x.radius, x.depth, x.n, x.u, x.spin)
            on_obstacle = vec3()
            on_ball = vec3()
            if x.law.stick_stiffness > wp.float64(0.0):
                on_obstacle, on_ball = new_anchor(t, s, i, e, x)
            point = x.c - x.radius * x.n + origin_between(t, s, i, x.a, x.b)
            at = NUMBERS * count
            touching[i, at] = wp.float64(e)
            touching[i, at + 1] = x.depth
            for r in range(3):
                touching[i, at + 2 + r] = point[r]
                touching[i, at + 5 + r] = x.n[r]
                touching[i, at + 8 + r] = f[r]
                touching[i, at + 11 + r] = on_obstacle[r]
                touching[i, at + 14 + r] = on_ball[r]
            if with_forces[0] == CURVED:
                for r in range(9):
                    touching[i, at + 8 + r] = x.N[r / 3, r % 3]
            count += 1
    if count < s.near.pair.shape[1]:
        touching[i, NUMBERS * count] = wp.float64(-1.0)


def _make(model: Model, batch: int, *, anchored: bool = False) -> Buffers:
    world = model.contacts
    outputs = {"gap": (len(world.ball_node),), "touching": (int(NUMBERS) * world.capacity,)}
    w = Buffers(model, batch, {"q": (model.nq,), "v": (model.nv,)}, outputs)
    with_forces, on = w.buffer("with_forces", (1,), wp.int32), w.on_device
    tables = w.anchored_tables() if anchored else w.tables
    w.record(contacts_kernel, [tables, w.scratch, on["q"], on["v"], with_forces, on["gap"], on["touching"]])
    return w


def ball_gaps(model: Model, q: np.ndarray) -> np.ndarray:
    """Distance of each ball from what it may touch at one state, no more than what counts as near, shape (n_balls,)
    [m]; negative where it touches.

    Raises:
        ModelError: more pairs are near than there is room for.
    """
    w = workspace(model, "contacts", 1, _make)
    w.host["q"][0], w.host["v"][0], w.host["with_forces"][0] = q, 0.0, 0
    w.scratch.near.count.fill_(-1)  # a list of an earlier state may lack what has come near since
    w.run()
    w.raise_for_status()
    return w.host["gap"][0].copy()


@over_models("q", "v", apart=True)
def contact_forces(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> Any:
    """The pairs that touch, with their forces, of one state or of many.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v: velocity, shape (..., nv); None is rest.
    Returns:
        Contacts; with leading axes, such as those of a trajectory, a tuple of them for each (of tuples, for several
        axes), as the number of pairs differs from state to state: `contact_forces(model, motion.q, motion.v)[k]`.
    Raises:
        ShapeError: the argument, the expected and the received shape, or what is not finite.
        ModelError: more pairs are near than there is room for.
    Accuracy: that of forward_kinematics times the stiffness of the contact.
    Source: Mathew 2025 (57), (58).
    """
    rows = {"q": stack("q", q, model.nq), "v": stack("v", np.zeros(model.nv) if v is None else v, model.nv)}
    lead = leading(**rows)
    count = batch_of(lead)
    states = {name: flat(x, lead) for name, x in rows.items()}
    found = [_NONE] * count
    for part in parts(count) if len(model.contacts.pair) else ():
        w, _ = filled(model, "contacts", _make, ("q", "v"), states["q"][part], states["v"][part])
        w.host["with_forces"][0] = 1
        w.run()
        w.raise_for_status()
        each = w.host["touching"].reshape(len(w.status), -1, int(NUMBERS))
        found[part] = [_touching(model, _ended(rows)) for rows in each]
    return _nested(found, lead)


def _touching(model: Model, rows: np.ndarray) -> Contacts:
    """Contacts from the numbers of each pair that touches."""
    world = model.contacts
    ball, obstacle, law = world.pair[rows[:, 0].astype(int)].reshape(-1, 3).T
    return Contacts(
        tuple(world.names[k] for k in law),
        tuple(world.ball_link[k] for k in ball),
        world.ball_s[ball],
        tuple(world.obstacle_link[k] for k in obstacle),
        world.obstacle_s[obstacle],
        rows[:, 1],
        rows[:, 2:5],
        rows[:, 5:8],
        rows[:, 8:11],
    )


def _nested(found: list[Contacts], lead: tuple[int, ...]) -> Any:
    """One after another, as tuples along the leading axes."""
    if not lead:
        return found[0]
    size = batch_of(lead[1:])
    return tuple(_nested(found[k * size : (k + 1) * size], lead[1:]) for k in range(lead[0]))


def touching_shapes(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of states (n, nq) which pairs touch, depth, point and normal of each, and the normal's derivative by the centre
    of the ball, row by row: the number of the state of each, and (rows, 17)."""
    found = [np.zeros((0, int(NUMBERS)))] * len(q)
    for part in parts(len(q)):
        w, _ = filled(model, "contacts", _make, ("q", "v"), q[part], np.zeros((len(q[part]), model.nv)))
        w.host["with_forces"][0] = int(CURVED)
        w.run()
        w.raise_for_status()
        found[part] = [_ended(rows) for rows in w.host["touching"].reshape(len(w.status), -1, int(NUMBERS))]
    return np.repeat(np.arange(len(q)), [len(rows) for rows in found]), np.concatenate(found)


def _touching_rows(model: Model, q: Any, v: Any) -> np.ndarray:
    """The numbers of each touching pair at one state, shape (n, 17)."""
    if len(model.contacts.pair) == 0:
        return np.zeros((0, int(NUMBERS)))
    w, lead = filled(model, "contacts", _make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    if lead:
        raise ShapeError(f"q: expected one state of shape ({model.nq},), got a batch of shape {lead}")
    w.host["with_forces"][0] = 1
    w.run()
    w.raise_for_status()
    return _ended(w.host["touching"][0].reshape(-1, int(NUMBERS)))


def _ended(rows: np.ndarray) -> np.ndarray:
    """The rows that the kernel has filled for one state."""
    ended = np.flatnonzero(rows[:, 0] < 0.0)
    return rows[: ended[0] if len(ended) else len(rows)].copy()


@over_models("q", "v")
def contact_anchors(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> np.ndarray:
    """Where the pairs that touch hold on, for `Model.anchored`: those of contacts with a `stick_stiffness`.

    A pair that the model has anchored keeps what it has slipped since, less what friction cannot hold; one that has
    not holds on where it is now; one that does not touch does not hold.

    Args:
        q: configuration, shape (nq,) [rad, m, or strain units]. v: velocity, shape (nv,); None is rest.
    Returns:
        anchors, shape (n_pairs, 6) [m, -]: the point of the obstacle in its frame, and the direction from the ball's
        centre in the frame of its node; NaN for pairs that do not hold.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: a ball that rolls and spins at once rolls along a bent line; from one anchor to the next it counts as
    straight.
    """
    anchors = np.full(model.contacts.anchors.shape, np.nan)
    _put_anchors_of(_touching_rows(model, q, v), anchors)
    return anchors


def anchors_after(model: Model, anchors: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Where the pairs that touch at states (n, ...) hold on, after each has held on at anchors (n, n_pairs, 6) until
    then; of the same shape."""
    out = np.full((len(q), *anchors.shape[1:]), np.nan)
    for part in [slice(0, len(q))] if model.models else parts(len(q)):
        make = partial(_make, anchored=True)
        w, _ = filled(model, "contacts with anchors", make, ("q", "v"), q[part], v[part])
        w.put_anchors(anchors[part])
        w.host["with_forces"][0] = 1
        w.run()
        w.raise_for_status()
        for to, numbers in zip(out[part], w.host["touching"].reshape(len(w.status), -1, int(NUMBERS))):
            _put_anchors_of(_ended(numbers), to)
    return out


def _put_anchors_of(rows: np.ndarray, to: np.ndarray) -> None:
    """Put there the anchors of the pairs that touch and stick, which are those that have a direction."""
    rows = rows[rows[:, 14:].any(axis=1)]
    to[rows[:, 0].astype(int)] = rows[:, 11:]


def put_anchors(model: Model, anchors: np.ndarray) -> None:
    """Write anchors into the tables of a model that nobody else has."""
    device_tables(model).contacts.anchor.assign(np.ascontiguousarray(anchors).reshape(1, -1, 3))


def present_anchors(model: Model) -> np.ndarray:
    """The anchors in the tables of a model, shape (n_pairs, 6)."""
    if not len(model.contacts.pair):
        return np.zeros((0, 6))
    return device_tables(model).contacts.anchor.numpy().reshape(-1, 6).copy()


def shares_of_friction(model: Model, q: np.ndarray) -> np.ndarray:
    """Friction over the most there can be, |f_t| / (μ N), of the touching pairs that hold at rest."""
    rows, world = _touching_rows(model, q, None), model.contacts
    law = world.law[world.pair[rows[:, 0].astype(int), 2]]
    n, f = rows[:, 5:8], rows[:, 8:11]
    N = (n * f).sum(axis=1)
    size, most = np.linalg.norm(f - N[:, None] * n, axis=1), law[:, 3] * N
    holds = (law[:, 5] > 0.0) & (most > 0.0)
    return size[holds] / most[holds]
