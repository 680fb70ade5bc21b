"""Internal forces and reactions: what sections of rods and joints carry, by equilibrium of what lies beyond.

F_k is the wrench that node k needs for its own motion, less what acts on it from outside, about one point. Then

    W = −Σ F_k over the nodes beyond                                                                      (1)

is what these exert on the rest. Inertia, gravity, the fluid and forces per metre are spread along a rod, and stand at
its Gauss points as w_k f_k. For a section inside the stretch of a Gauss rule, at x in [−1, 1], the point x_k counts as

    c_k = ∫ₓ¹ l_k / w_k = ½ (1 − x) + ½ Σₙ Pₙ(x_k) (Pₙ₋₁(x) − Pₙ₊₁(x)),   n = 1 … N − 1                   (2)

with l_k the polynomial that is one at x_k and zero at the other points: all of it at x = −1, nothing at x = 1, so the
wrench at the base of a rod is exactly the one that holds the discrete model. What runs inside the rod carries

    Σ u (d × t; t) for tendons,   −Σ p A (d × t; t) for chambers                                          (3)

with t as in dynamics.actuation; the rod's material carries the rest.
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
from lissom.launch.workspace import Workspace, batch_of, flat, leading, parts, require_finite_rows, stack
from lissom.model.actuation import path_on_rod
from lissom.model.model import Model
from lissom.model.points import Places, places_of
from lissom.robot import formatting
from lissom.robot.actuators import Chamber, PathRod, Tendon

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SAME = 1e-12  # abscissae that differ by less are one


@final
@formatting.in_one_line
@dataclass(frozen=True)
class InternalWrench:
    """What sections of a rod carry: wrenches of the part beyond on the part before, at the section's centre and in its
    axes: (torque, bending moments about y and z [N·m]; tension, shear forces along y and z [N]).

    Fields, each of shape (..., 6), or (..., n, 6) for n abscissae:
        total: rod, tendons and chambers together. actuators: what the tendons and chambers in the section carry.
    """

    total: np.ndarray
    actuators: np.ndarray

    @property
    def material(self) -> np.ndarray:
        """What the rod's own material carries: total − actuators; Σ (ξ − ξ*) and its damping where the strain modes
        resolve them [N·m, N]."""
        return self.total - self.actuators


@final
@dataclass(frozen=True)
class _States:
    """States (n, ...) with the forces of loops, and the leading axes they came with."""

    lead: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    t: Times
    force: np.ndarray

    def time(self, part: slice) -> Times:
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
    """What a rod carries at s: the wrench that the part beyond exerts on the part before.

    It follows from equilibrium of all that lies beyond: inertia at the acceleration a, gravity, fluid, contact, loads,
    users' forces, controlled wrenches, loops, and the branches hung there. What stands at s itself lies beyond; what is
    fixed to the rod at 0 stands on what holds the rod, and is not carried by it. Tendons and chambers inside the rod
    are part of it. A straight piece of a tendon between two places is part of no section: it pulls at both of its ends,
    as a load does. A user's own generalised actuation has no place on the robot, and does not count.

    Args:
        q: configuration, shape (..., nq). v, a: velocity and acceleration, shape (..., nv); None is zero.
        u: inputs, shape (..., nu) [N, Pa, N·m]; None is zero.
        link: name of a link whose body is a Rod. s: abscissa, a number or an array (n,).
        t: time [s], a number or an array of the leading axes.
        multipliers: λ, shape (..., n_multipliers) [N·m, N], of a Trajectory or an Equilibrium; None: those of forward
            dynamics, the least ones where they are not unique.
    Returns:
        InternalWrench: total and actuators, shape (..., 6), or (..., n, 6) for n abscissae [N·m, N].
    Raises:
        ModelError: no such rod, or s outside [0, 1]. ShapeError: the argument, the expected and the received shape.
    Accuracy: at s = 0 exact for the discrete model; within a rod that of its Gauss rule for the loads spread along it.
    """
    if link not in model.rods:
        raise ModelError(f"link: must be one whose body is a rod, of {sorted(model.rods)} (got {link!r})")
    frames = places_of(model, link, s)
    places = tuple(np.atleast_1d(np.asarray(s, dtype=np.float64)).tolist())
    states = _stacked(model, q, v, a, u, t, multipliers)
    beyond, partial = model.cached(("beyond", link, places), lambda: _beyond(model, link, np.array(places)))
    total = _carried(model, states, frames, beyond, partial)
    inside = _carried_by_actuators(model, states, link, places)
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
    """Reaction in the joint of a link: the wrench that the link, with all it carries, exerts on its parent.

    At the frame behind all motions of the joint (the base frame of a rod or deformable body), in its axes.
    Along a motion S of the joint, given in these axes, W·S is K (q − rest) + D v less the force of the motor or of a
    prescribed motion: minus what inverse dynamics asks for there. A joint of several steps (universal, planar) has one
    such wrench, behind the last one. Straight pieces of tendons across the joint are loads on their two ends, and press
    it together. Loops have wrenches of their own, in loop_wrenches.

    Args:
        q, v, a, u, t, multipliers: as internal_wrench.
        link: name of the link. A fixed joint has a reaction too.
    Returns:
        (moment; force), shape (..., 6) [N·m, N].
    Raises:
        ModelError: no such link. ShapeError: the argument, the expected and the received shape.
    Accuracy: exact for the discrete model. What is fixed to the base of a rod that has a fixed joint, other than
    links, acts on the parent directly.
    """
    states, links = _stacked(model, q, v, a, u, t, multipliers), model.links
    if link not in links.names:
        raise ModelError(f"link: must be one of {sorted(links.names)} (got {link!r})")
    carried = np.zeros(len(links.names), dtype=bool)
    carried[links.names.index(link)] = True
    for _ in links.names:  # as often as links can hang on one another
        carried |= (links.parent >= 0) & carried[links.parent]
    beyond = carried[model.nodes.link[: model.n_dynamic]].astype(np.float64)[None]
    return _carried(model, states, places_of(model, link, 0.0), beyond, np.zeros_like(beyond)).reshape(*states.lead, 6)


def _stacked(model: Model, q: Any, v: Any, a: Any, u: Any, t: Any, multipliers: Any) -> _States:
    """Arguments as rows, checked, with the forces of the loops."""
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
    for part in parts(n):
        w = run_forward_dynamics(model, q[part], v[part], u[part], states.time(part))
        raise_if_massless(model, w)
        w.raise_for_status()
        states.force[part] = w.host["force"]
    return replace(states, force=minimum_norm(model, q, states.force))


def _carried(model: Model, x: _States, frames: Places, beyond: np.ndarray, partial: np.ndarray) -> np.ndarray:
    """(1) at frames fixed to nodes, shape (n, n_frames, 6): of all nodes (n_frames, n_dynamic) those beyond count, and
    what is spread at them as much more as `partial` says."""
    out = np.zeros((len(x.q), len(frames.node), 6))
    for part in parts(len(x.q)) if model.n_dynamic else ():
        where = forward_kinematics(model, x.q[part])[:, : model.n_dynamic, :3, 3]
        w = run_residual(model, x.q[part], x.v[part], x.a[part], x.u[part], x.time(part), 1.0, x.force[part])
        W = -beyond @ _own_wrenches(w, model, where)
        if partial.any():
            spread = model.cached(("spread",), lambda: _spread_alone(model))
            t = x.time(part)
            alone, _ = run_inverse_dynamics(spread, x.q[part], x.v[part], x.a[part], True, False, True, t)
            W -= partial @ _own_wrenches(alone, model, where)
        g = poses_at(model, x.q[part], frames)
        moment = W[..., :3] - np.cross(g[..., :3, 3] - where[:, :1], W[..., 3:])
        turned = np.stack([moment, W[..., 3:]], axis=-2) @ g[..., :3, :3]
        out[part] = turned.reshape(*W.shape)
    if not np.isfinite(out).all():
        raise ShapeError("q, v, a and u: the result is not finite; the arguments are too large")
    return out


def _own_wrenches(w: Workspace, model: Model, where: np.ndarray) -> np.ndarray:
    """F_k of all nodes after a run, in the world's axes and about the place of the first node, shape (n, n_dynamic, 6).

    The sweeps leave with each node the sum over its subtree, about the origin of the base frame.
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


def _spread_alone(model: Model) -> Model:
    """The model without what acts at single points."""
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


def _beyond(model: Model, link: str, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes lie beyond each place on a rod, as ones and zeros, and how much more than that counts of what is
    spread at them, c_k of (2) less one or zero; each (n, n_dynamic)."""
    rod, n = model.rods[link], model.n_dynamic
    hung = np.zeros(n)  # where each node stands on the rod, or its branch leaves it; 0 for what is not on it
    own = (model.nodes.link[:n] == model.links.names.index(link)) & (model.nodes.s[:n] > 0.0)
    for k, parent in enumerate(model.nodes.parent[:n]):
        hung[k] = model.nodes.s[k] if own[k] else hung[parent] if parent >= 0 else 0.0
    beyond = ((hung > 0.0) & (hung >= places[:, None] - _SAME)).astype(np.float64)
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
    """Tendons and chambers in sections of a rod, m of them: channel, index of the section; signed weight, offset and
    its slope (m, 3), whether the force is normal, as path_on_rod has them; strain modes (m, 6, n) and ξ* (m, 6)."""

    channel: np.ndarray
    section: np.ndarray
    weight: np.ndarray
    d: np.ndarray
    slope: np.ndarray
    is_normal: np.ndarray
    Phi: np.ndarray
    xi: np.ndarray


def _crossings(model: Model, link: str, places: tuple[float, ...]) -> _Crossings | None:
    """What runs through the sections at places on a rod, None if nothing does: at s = 0 behind it, elsewhere just in
    front, where a path that starts at s is not yet there and a strain that jumps at s has not jumped."""
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


def _carried_by_actuators(model: Model, x: _States, link: str, places: tuple[float, ...]) -> np.ndarray:
    """(3) at places on a rod, shape (n, n_places, 6)."""
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
