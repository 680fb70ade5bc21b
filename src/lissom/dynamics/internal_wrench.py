"""Internal wrenches: the wrenches in sections of rods and in joints, from equilibrium of the nodes beyond them.

F_k is the wrench required by the motion of node k minus the external wrench on it, all about one point. Then

    W = −Σ F_k over the nodes beyond                                                                      (1)

is the wrench that the part beyond a section exerts on the part before it. Inertia, gravity, fluid forces and forces per
metre are distributed along a rod; the model has them at the Gauss points as w_k f_k. For a section at x in [−1, 1] of a
stretch of a Gauss rule, the wrench at the point x_k has the weight

    c_k = ∫ₓ¹ l_k / w_k = ½ (1 − x) + ½ Σₙ Pₙ(x_k) (Pₙ₋₁(x) − Pₙ₊₁(x)),   n = 1 … N − 1                   (2)

with l_k the polynomial that is one at x_k and zero at the other points. It is 1 at x = −1 and 0 at x = 1, so the
wrench at the base of a rod is exactly that of the discrete model. Tendons and chambers inside the rod carry

    Σ u (d × t; t) for tendons,   −Σ p A (d × t; t) for chambers                                          (3)

with t as in dynamics.actuation. The material of the rod carries the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.actuation import channel_sizes, input_rows
from lissom.dynamics.constraints import minimum_norm
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics, run_residual
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.dynamics.kinematics import forward_kinematics, poses_at
from lissom.dynamics.loads import Times
from lissom.errors import ModelError, ShapeError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import (
    Workspace,
    batch_of,
    flat,
    leading,
    require_finite_rows,
    row_slices,
    rows_of_block,
    stack,
)
from lissom.model.actuation import path_on_rod
from lissom.model.model import Model
from lissom.model.points import Places, places_of
from lissom.robot import formatting
from lissom.robot.actuators import Chamber, PathRod, Tendon

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SAME = 1e-12  # abscissae that differ by less count as equal


@final
@formatting.in_one_line
@dataclass(frozen=True)
class InternalWrench:
    """Wrenches in sections of a rod, exerted by the part beyond on the part before.

    They are taken at the section's centre and in its axes: (torque, bending moments about y and z [N·m]; tension, shear
    forces along y and z [N]).

    Fields, each of shape (..., 6), or (..., n, 6) for n abscissae:
        total: the whole wrench [N·m, N].
        actuators: the part that tendons and chambers in the section carry [N·m, N].
    """

    total: np.ndarray
    actuators: np.ndarray

    @property
    def material(self) -> np.ndarray:
        """The wrench that the material carries, total − actuators [N·m, N]. It equals Σ (ξ − ξ*) and its damping, as
        far as the strain modes resolve them."""
        return self.total - self.actuators


@final
@dataclass(frozen=True)
class _States:
    """States (n, ...) with the constraint forces, and the leading axes of the arguments."""

    lead: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    t: Times
    force: np.ndarray

    def time(self, part: slice) -> Times:
        """Times of a part of the states."""
        return self.t[part] if isinstance(self.t, np.ndarray) else self.t


@over_models("q", "v", "a", "u")
def internal_wrench(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    u: ArrayLike | None,
    link: str,
    s: ArrayLike,
    *,
    t: ArrayLike = 0.0,
    multipliers: ArrayLike | None = None,
) -> InternalWrench:
    """Internal wrench of a rod at s, exerted by the part beyond on the part before.

    It follows from the equilibrium of everything beyond s: inertia at the acceleration a, gravity, fluid, contacts,
    loads, users' forces, wrench inputs, loops and attached branches. A load or branch exactly at s belongs to the part
    beyond; one at s = 0 acts on the parent of the rod and is not counted. Tendons and chambers inside the rod are part
    of the section. A straight piece of a tendon between two points is not: it acts on both of its ends as a load. A
    user's own generalised actuation acts at no point of the robot and is not counted.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units].
        v, a: velocity and acceleration, shape (..., nv) [unit of q per s, per s²]; None is zero.
        u: inputs, shape (..., nu) [N, Pa, N·m]; None is zero.
        link: name of a link whose body is a Rod.
        s: abscissa, a number or an array (n,), 0 at the base and 1 at the tip.
        t: time [s], a number or an array of the leading axes.
        multipliers: λ, shape (..., n_multipliers) [N·m, N], of a Trajectory or an Equilibrium; None: those of forward
            dynamics, of least norm if they are not unique.
    Returns:
        InternalWrench: total and actuators, shape (..., 6), or (..., n, 6) for n abscissae [N·m, N].
    Raises:
        ModelError: no such rod, or s outside [0, 1]. ShapeError: the argument, the expected and the received shape.
    Accuracy: at s = 0 exact for the discrete model; within a rod that of its Gauss rule for distributed loads.
    """
    if link not in model.rods:
        raise ModelError(f"link: must be one whose body is a rod, of {sorted(model.rods)} (got {link!r})")
    frames = places_of(model, link, s)
    places = tuple(np.atleast_1d(np.asarray(s, dtype=np.float64)).tolist())
    states = _checked_states(model, q, v, a, u, t, multipliers)
    beyond, partial = model.cached(("beyond", link, places), lambda: _nodes_beyond(model, link, np.array(places)))
    total = _section_wrenches(model, states, frames, beyond, partial)
    inside = _actuator_wrenches(model, states, link, places)
    shape = (*states.lead, 6) if frames.single else (*states.lead, len(places), 6)
    return InternalWrench(total.reshape(shape), inside.reshape(shape))


@over_models("q", "v", "a", "u")
def joint_wrench(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    u: ArrayLike | None,
    link: str,
    *,
    t: ArrayLike = 0.0,
    multipliers: ArrayLike | None = None,
) -> np.ndarray:
    """Reaction in the joint of a link: the wrench that the link and all links beyond it exert on its parent.

    It is taken at the frame behind all motions of the joint (the base frame of a rod or deformable body), in its axes.
    Along a motion S of the joint in these axes, W·S = K (q − rest) + D v − (force of the motor or of a prescribed
    motion), which is the negative of the force of inverse dynamics. A joint of several steps (universal, planar) has
    one wrench, behind the last step. Straight pieces of tendons across the joint are loads on their two ends, so that
    their tension compresses the joint. For loops see loop_wrenches.

    Args:
        q, v, a, u, t, multipliers: as internal_wrench.
        link: name of the link. Its joint may be fixed.
    Returns:
        (moment; force), shape (..., 6) [N·m, N].
    Raises:
        ModelError: no such link. ShapeError: the argument, the expected and the received shape.
    Accuracy: exact for the discrete model. Loads at the base of a rod with a fixed joint act directly on the parent.
    """
    states, links = _checked_states(model, q, v, a, u, t, multipliers), model.links
    if link not in links.names:
        raise ModelError(f"link: must be one of {sorted(links.names)} (got {link!r})")
    carried = np.zeros(len(links.names), dtype=bool)
    carried[links.names.index(link)] = True
    for _ in links.names:  # the depth of the tree is at most the number of links
        carried |= (links.parent >= 0) & carried[links.parent]
    beyond = carried[model.nodes.link[: model.n_dynamic]].astype(np.float64)[None]
    return _section_wrenches(model, states, places_of(model, link, 0.0), beyond, np.zeros_like(beyond)).reshape(
        *states.lead, 6
    )


def _checked_states(model: Model, q: Any, v: Any, a: Any, u: Any, t: Any, multipliers: Any) -> _States:
    """The arguments as states (n, ...), checked, with given or computed constraint forces."""
    zero = np.zeros(model.nv)
    rows = {
        "q": stack("q", q, model.nq),
        "v": stack("v", zero if v is None else v, model.nv),
        "a": stack("a", zero if a is None else a, model.nv),
        "u": input_rows(model, u),
        "t": stack("t", np.asarray(t)[..., None], 1),
    }
    if multipliers is not None:
        rows["multipliers"] = stack("multipliers", multipliers, model.n_multipliers)
    require_finite_rows(**rows)
    lead = leading(**rows)
    n = batch_of(lead)
    q, v, a, u, times, *given = (flat(x, lead) for x in rows.values())
    when: Times = float(rows["t"][0]) if rows["t"].ndim == 1 else times[:, 0]
    states = _States(lead, q, v, a, u, when, given[0][:, model.n_motions :] if given else np.zeros((n, model.n_rows)))
    if given or not model.n_rows:
        return states
    for part in row_slices(n):
        w = run_forward_dynamics(model, q[part], v[part], u[part], states.time(part))
        raise_if_massless(model, w)
        w.raise_for_status()
        states.force[part] = w.host["force"]
    return replace(states, force=minimum_norm(model, q, states.force))


def _section_wrenches(model: Model, x: _States, frames: Places, beyond: np.ndarray, partial: np.ndarray) -> np.ndarray:
    """(1) at frames fixed to nodes, shape (n, n_frames, 6).

    Args:
        x: the states. frames: the frames of the sections. beyond: weights (n_frames, n_dynamic) of the wrenches of all
            nodes. partial: additional weights of their distributed wrenches, (n_frames, n_dynamic).
    """
    out = np.zeros((len(x.q), len(frames.node), 6))
    for force in model.forces.driven:
        if force.is_spread and partial[:, force.node].any():
            rule = "acts all along the rod and depends on inputs, so that wrenches are known at s = 0 only"
            raise ModelError(f"force {force.name!r}: {rule}")
    for part in row_slices(len(x.q), rows_of_block(model)) if model.n_dynamic else ():
        where = forward_kinematics(model, x.q[part])[:, : model.n_dynamic, :3, 3]
        w = run_residual(model, x.q[part], x.v[part], x.a[part], x.u[part], x.time(part), 1.0, x.force[part])
        W = -beyond @ _node_wrenches(w, model, where)
        if partial.any():
            distributed = model.cached(("distributed loads",), lambda: _distributed_model(model))
            t = x.time(part)
            run, _ = run_inverse_dynamics(distributed, x.q[part], x.v[part], x.a[part], True, False, True, t)
            W -= partial @ _node_wrenches(run, model, where)
        g = poses_at(model, x.q[part], frames)
        moment = W[..., :3] - np.cross(g[..., :3, 3] - where[:, :1], W[..., 3:])
        turned = np.stack([moment, W[..., 3:]], axis=-2) @ g[..., :3, :3]
        out[part] = turned.reshape(*W.shape)
    if not np.isfinite(out).all():
        raise ShapeError("q, v, a and u: the result is not finite; the arguments are too large")
    return out


def _node_wrenches(w: Workspace, model: Model, where: np.ndarray) -> np.ndarray:
    """F_k of all nodes after a run, in world axes and about the position of the first node, shape (n, n_dynamic, 6).

    The kernel leaves for each node the sum over its subtree, about the origin of the base frame.
    """
    w.raise_for_status()
    node = w.scratch.node.numpy()[: w.batch, : model.n_dynamic]
    F = node["F"].copy()
    for k, parent in enumerate(model.nodes.parent[: model.n_dynamic].tolist()):
        if parent >= 0:
            F[:, parent] -= node["F"][:, k]
    origin = where - node["p"]  # of the base frame in the world
    F[..., :3] += np.cross(origin - where[:, :1], F[..., 3:])
    return F


def _distributed_model(model: Model) -> Model:
    """The model with distributed forces only: without contacts, tail masses, point loads and forces at points."""
    forces, fluid = model.forces, model.fluid
    first = len(model.loads.wrench)
    kept, called = np.flatnonzero(forces.is_spread), np.flatnonzero(forces.called_is_spread)
    rows = first + called
    spread = {name: getattr(forces, name)[kept] for name in ("node", "which", "weight", "s")}
    groups = {
        "contacts": replace(model.contacts, pair=model.contacts.pair[:0], capacity=0),
        "fluid": replace(fluid, tail_node=fluid.tail_node[:0], tail_mass=fluid.tail_mass[:0]),
        "forces": replace(forces, called=tuple(forces.called[k] for k in called), **spread),
    }
    x = model.loads
    loads = replace(x, node=x.node[rows], placement=x.placement[rows], is_body=x.is_body[rows], wrench=())
    return replace(model, loads=loads, **groups, cache={})


def _nodes_beyond(model: Model, link: str, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of nodes for sections at abscissae `places` (n,) of a rod, each (n, n_dynamic).

    Returns:
        1 for nodes beyond the section and 0 for others; and the difference between c_k of (2) and this weight for
        distributed wrenches.
    """
    rod, n = model.rods[link], model.n_dynamic
    on_rod = np.zeros(n)  # abscissa of each node, or of the point where its branch begins; 0 for all others
    own = (model.nodes.link[:n] == model.links.names.index(link)) & (model.nodes.s[:n] > 0.0)
    for k, parent in enumerate(model.nodes.parent[:n]):
        on_rod[k] = model.nodes.s[k] if own[k] else on_rod[parent] if parent >= 0 else 0.0
    beyond = ((on_rod > 0.0) & (on_rod >= places[:, None] - _SAME)).astype(np.float64)
    partial = np.zeros_like(beyond)
    edges = np.concatenate([[0.0], rod.node_s[rod.weight == 0.0]])
    for row, s in enumerate(places):
        if s == 0.0:
            continue
        j = int(np.searchsorted(edges, s)) - 1
        (a, b), inside = edges[j : j + 2], (rod.node_s > edges[j]) & (rod.node_s < edges[j + 1]) & (rod.node < n)
        if inside.any():
            x = 2.0 * (np.array([s, *rod.node_s[inside]]) - a) / (b - a) - 1.0
            P, *P_k = np.polynomial.legendre.legvander(x, len(x) - 1)
            share = 0.5 * (1.0 - x[0]) + 0.5 * np.array(P_k)[:, 1:-1] @ (P[:-2] - P[2:])  # (2)
            partial[row, rod.node[inside]] = share - beyond[row, rod.node[inside]]
    return beyond, partial


@final
@dataclass(frozen=True)
class _Crossings:
    """m crossings of tendons and chambers with sections of a rod.

    Fields:
        channel, section: indices of the channel and of the section, (m,).
        weight, d, slope, is_normal: signed weight (m,), offset and its slope (m, 3), and whether the force is normal to
        the section (m,), as path_on_rod gives them. Phi, xi: strain modes (m, 6, n) and ξ* (m, 6).
    """

    channel: np.ndarray
    section: np.ndarray
    weight: np.ndarray
    d: np.ndarray
    slope: np.ndarray
    is_normal: np.ndarray
    Phi: np.ndarray
    xi: np.ndarray


def _crossings(model: Model, link: str, places: tuple[float, ...]) -> _Crossings | None:
    """The crossings with sections at abscissae `places` of a rod; None without any.

    A section at s > 0 is taken just before s: a path that starts at s does not cross it, and a strain that jumps at s
    has its value before the jump. The section at s = 0 is taken just behind it.
    """
    rod, rows = model.rods[link], []
    for channel, actuator in enumerate(model.channels.actuator):
        items = actuator.path if isinstance(actuator, Tendon) else ()
        for item in (actuator.path,) if isinstance(actuator, Chamber) else items:
            if isinstance(item, PathRod) and item.link == link:
                low, high = sorted((item.start, item.stop))
                path = path_on_rod(actuator, item, rod.strain.length)
                for k, s in enumerate(places):
                    if low < s - _SAME < high or s == low == 0.0:
                        before = float(np.nextafter(s, 0.0))
                        strains = rod.strain.basis(before), rod.strain.reference(before)
                        rows.append((channel, k, *path(before), *strains))
    return _Crossings(*(np.array(column) for column in zip(*rows))) if rows else None


def _actuator_wrenches(model: Model, x: _States, link: str, places: tuple[float, ...]) -> np.ndarray:
    """(3) at abscissae `places` of a rod, shape (n, n_places, 6)."""
    at = model.cached(("crossings", link, places), lambda: _crossings(model, link, places))
    out = np.zeros((len(x.q), len(places), 6))
    if at is not None:
        strain = model.rods[link].strain
        first = strain.v_start + strain.q_shift
        xi = np.einsum("mij,nj->nmi", at.Phi, x.q[:, first : first + at.Phi.shape[2]]) + at.xi
        tangent = xi[..., 3:] + np.cross(xi[..., :3], at.d) + at.slope
        tangent[:, at.is_normal] = [1.0, 0.0, 0.0]
        size = -at.weight * channel_sizes(model, x.q, x.u)[:, at.channel]
        f = (size / np.linalg.norm(tangent, axis=-1))[..., None] * tangent
        for m, k in enumerate(at.section):
            out[:, k] += np.concatenate([np.cross(at.d[m], f[:, m]), f[:, m]], axis=1)
    return out
