"""Estimated discretisation errors: the distance of a result from that of a model with more points and more modes.

A finer model of the same robot is built once. Each of its rods has more Gauss points and additional modes behind its
own ones; each deformable body has additional coordinates of its kind (bodies/enrichment). A state, with the additional
coordinates zero, has the residual r = ID − B u − Aᵀ λ in the finer model, and the stiffness S = ∂r/∂q. In a motion of
duration T the stiffness is

    S = ∂r/∂q + M/T²                                                                                      (1)

since an acceleration error a moves a free coordinate by about a T². Newton steps in the old coordinates o only estimate
the error of the points. Steps in all coordinates also contain the error of the basis:

    δ_p = −S_oo⁻¹ r_o,   δ = −S⁻¹ r,   points = |x(q ⊕ δ_p) − x|,   basis = |x(q ⊕ δ) − x(q ⊕ δ_p)|      (2)

At rest steps are repeated while they shrink, at most STEPS times; for a motion one step is taken. The points x are all
nodes of each rod, its ends included, the tip of each other link and the surface of each deformable body. A middle and a
tip alone would not do: contacts and loops may hold them while the rod sags in between. The equations include the
constraints of loops and prescribed motions. The estimate assumes that r vanishes apart from these errors: the state is
an equilibrium, or a and u belong to its motion.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.dynamics.actuation import input_rows
from lissom.dynamics.configuration import checked_configuration, difference, integrate
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import AccuracyWarning
from lissom.launch.over_models import over_models
from lissom.launch.workspace import batch_of, flat, leading, require_finite_rows, stack
from lissom.model.bodies import placed
from lissom.model.model import Model
from lissom.robot import formatting
from lissom.robot.actuators import BodyChamber
from lissom.robot.bases import STRAINS, strains_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DOUBTFUL = 1e-2  # largest error of a reliable result, relative to the length of a rod
STEPS = 4
LONGEST = 1.0  # longest step [rad, -]
_SMALL = 1e-9  # the iteration ends after a step below this size [rad, -]
_RANK = 1e-12  # of the largest singular value of (2): directions below it do not move


@final
@dataclass(frozen=True)
class Accuracy:
    """Estimated errors of a result due to the points along rods and in bodies, and due to the bases.

    Fields (a batch adds leading axes):
        links: names of the n links.
        points, basis: error of position of each link, the largest over the nodes of a rod, at the tip of another link,
            or on the surface of a deformable body, (..., n) [m]; zero for rigid bodies.
        length: length of each rod, largest dimension of each deformable body, else zero, (n,) [m].
        cure: remedy for the largest error, "" if there is no error.
        not_estimated: links whose body moves by a user's function, or has a tip or a chamber that is a function of its
            coordinates. The library has no additional coordinates for such a body: its basis error is NaN, and its
            share in the errors of other links is not counted.
    """

    links: tuple[str, ...]
    points: np.ndarray
    basis: np.ndarray
    length: np.ndarray
    cure: str
    not_estimated: tuple[str, ...] = ()

    @property
    def error(self) -> np.ndarray:
        """Largest value of points + basis over links, shape (...) [m]. A basis that is not estimated counts as 0."""
        known = [name not in self.not_estimated for name in self.links]
        return (self.points + np.where(known, self.basis, 0.0)).max(axis=-1, initial=0.0)

    @property
    def is_doubtful(self) -> bool:
        """Whether the error exceeds a hundredth of the longest rod or deformable body."""
        longest = self.length.max(initial=0.0)
        return bool(longest > 0.0 and self.error.max(initial=0.0) > DOUBTFUL * longest)

    def words(self) -> list[str]:
        """A text for each link with an error or without an estimate: its largest errors."""
        each = [np.reshape(x, (-1, len(self.links))).max(axis=0, initial=0.0) for x in (self.points, self.basis)]
        return [
            f"{name}: points {p:.1e} m, basis {'not estimated' if name in self.not_estimated else f'{b:.1e} m'}"
            for name, p, b in zip(self.links, *each)
            if p + b != 0.0  # also if b is NaN
        ]

    def __repr__(self) -> str:
        rows = self.words()
        text = f"{'; '.join(rows) or 'exact'}{f'; {self.cure}' if self.cure else ''}"
        return formatting.in_brackets("Accuracy", text)


@over_models("q", "u", "v", "a", as_tuple=True)
def accuracy(
    model: Model,
    q: ArrayLike,
    u: ArrayLike | None = None,
    *,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    t: float = 0.0,
    duration: float | None = None,
    force: ArrayLike | None = None,
) -> Accuracy:
    """Estimated discretisation error of an equilibrium or of a state of a motion, in metres for each link.

    The error has two parts: that of the points along rods and in deformable bodies, and that of the bases. Newton steps
    of a finer model from the state estimate both; this model is built at the first call and cached. It enriches bases
    by more functions of their kind: strains, modes and growths by polynomials of two degrees more, splines and other
    bases with intervals by functions on half of these, `KinematicsRitz` by products of its shape functions with
    polynomials, finite elements by the lowest modes of quadratic elements or of cells of half the size. The basis
    error of a user's motion f(x, θ) is not estimated.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]: an equilibrium under the inputs, or a state of a
            motion.
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        v, a: velocity and acceleration of a motion, shape (..., nv) [unit of q per s, per s²]; None is zero.
        t: time of loads and prescribed motions [s].
        duration: duration of the motion [s]; None for an equilibrium.
        force: constraint forces, shape (..., n_rows); None is zero.
    Returns:
        Accuracy, with the cure. An error above a hundredth of the longest rod or deformable body also gives an
        AccuracyWarning.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: mostly within a factor of ten of the true error, up to errors of a tenth of the length. Errors that
        accumulate along a motion, such as a drifting phase, are not part of the estimate.
    """
    q, u = checked_configuration(model, "q", q), input_rows(model, u)
    v, a = (np.zeros(model.nv) if x is None else stack(name, x, model.nv) for name, x in (("v", v), ("a", a)))
    force = np.zeros(model.n_rows) if force is None else stack("force", force, model.n_rows)
    require_finite_rows(u=u, v=v, a=a, force=force)
    lead = leading(q=q, u=u, v=v, a=a, force=force)
    rows = [flat(x, lead) for x in (q, v, a, u, force)]
    return estimate([model] * batch_of(lead), rows, np.full(batch_of(lead), t), lead, duration)


def estimate(
    models: Sequence[Model], rows: Sequence[np.ndarray], t: np.ndarray, lead: tuple[int, ...], duration: float | None
) -> Accuracy:
    """Accuracy of n states.

    Args:
        models: the model of each state. rows: q, v, a, u and constraint forces, each (n, ...). t: times (n,) [s].
        lead: leading axes of the result, whose product is n. duration: of the motion [s], None for equilibria.
    """
    q, v, a, u, force = rows
    found = [
        _errors_at_state(model, q[k], v[k], a[k], u[k], force[k], float(t[k]), duration)
        for k, model in enumerate(models)
    ]
    names = models[0].links.names if models else ()
    points, basis = (np.array([one[k] for one in found]).reshape(*lead, len(names)) for k in (0, 1))
    length = np.array([placed(body).extent for body in (models[0].links.body if models else ())])
    worst = max(found, key=lambda one: float(np.nan_to_num(one[0] + one[1]).max(initial=0.0)), default=None)
    not_estimated = tuple(sorted(links_not_estimated(models[0]))) if models else ()
    result = Accuracy(names, points, basis, length, "" if worst is None else worst[2], not_estimated)
    if result.is_doubtful:
        text = f"points and basis leave an error of about {result.error.max():.1g} m; {result.cure}"
        warnings.warn(text, AccuracyWarning, stacklevel=4)
    return result


@final
@dataclass(frozen=True)
class FinerModel:
    """A finer model.

    Fields:
        model. v, q: indices of the old coordinates in its v and in its q. cures: text of the cure by link.
    """

    model: Model
    v: np.ndarray
    q: np.ndarray
    cures: dict[str, str]

    def state(self, q: np.ndarray, *rates: np.ndarray) -> Iterator[np.ndarray]:
        """A configuration (nq,) and rates (nv,) of the old model in the coordinates of this one; the additional
        coordinates are zero."""
        out = self.model.neutral()
        out[self.q] = q
        yield out
        for x in rates:
            full = np.zeros(self.model.nv)
            full[self.v] = x
            yield full


def finer_model(model: Model, *, enriched: bool) -> FinerModel | None:
    """The same robot with more points and, if `enriched`, more modes; None if no body of it can be refined."""
    return model.cached(("finer", enriched), lambda: _build_finer_model(model, enriched))


def links_not_estimated(model: Model) -> set[str]:
    """Links whose body has coordinates to which the library cannot add further ones."""
    of_volumes = {
        actuator.link
        for actuator in model.description.actuators.values()
        if isinstance(actuator, BodyChamber) and actuator.volume is not None
    }
    return of_volumes | {
        name for name, body in zip(model.links.names, model.links.body) if not placed(body).has_enrichment
    }


def _build_finer_model(model: Model, enriched: bool) -> FinerModel | None:
    unknown = links_not_estimated(model) if enriched else set()
    found = [
        placed(body).refined(enriched=enriched and name not in unknown)
        for name, body in zip(model.links.names, model.links.body)
    ]
    values = {f"links.{name}.body": one.body for name, one in zip(model.links.names, found) if one is not None}
    if not values:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the build of the model has given these warnings
        fine = model.description.with_(values).build()
    known = model.prescribed
    own = [np.zeros(0, int) if one is None else one.own for one in found]
    v, q = (_old_coordinates(*starts, own) for starts in ((model.links.v_start, fine.links.v_start),
                                               (model.links.q_start, fine.links.q_start)))  # fmt: skip
    if known.steady is not None:
        steady = np.zeros(fine.nv)
        steady[v] = known.steady
        fine = fine.with_locked(v[known.dof[model.n_motions - known.n_locked :]], steady)
    cures = {name: one.cure.format(name) for name, one in zip(model.links.names, found) if one is not None}
    return FinerModel(fine if fine.device == model.device else fine.on(model.device), v, q, cures)


def _old_coordinates(old: np.ndarray, new: np.ndarray, own: Sequence[np.ndarray]) -> np.ndarray:
    """Indices of the old coordinates among the new ones.

    Args:
        old, new: first coordinate of each link before and after. own: indices of the old coordinates of each body among
            its new ones.
    """
    out = [np.zeros(0, int)]
    for first, size, body in zip(new, np.diff(old), own):
        out += [first + np.arange(size - len(body)), first + size - len(body) + body]
    return np.concatenate(out).astype(int)


def _errors_at_state(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, t: float,
    duration: float | None,
) -> tuple[np.ndarray, np.ndarray, str]:  # fmt: skip
    """Errors due to points and due to the basis of the n links at one state, each (n,) [m], and the cure."""
    names, none = model.links.names, np.zeros(len(model.links.names))
    left_out = np.where([name in links_not_estimated(model) for name in names], np.nan, 0.0)
    fine = finer_model(model, enriched=True)
    if fine is None:
        return none, left_out, ""
    if model.contacts.sticks:
        return none + np.nan, none + np.nan, "no estimate for robots with sticking contacts"
    q_f, v_f, a_f = fine.state(q, v, a)
    every = np.arange(fine.model.nv)
    by_points, by_both = (
        corrected_configuration(fine.model, q_f, v_f, a_f, u, force, t, duration, free) for free in (fine.v, every)
    )
    points, basis, place = none.copy(), none.copy(), np.ones(len(names))
    for k, name in enumerate(names):
        s = _abscissae(model, name)
        skin = placed(model.links.body[k]).skin
        x, *moved = (_points(*one, k, s, skin) for one in ((model, q), (fine.model, by_points), (fine.model, by_both)))
        by_place = np.linalg.norm(moved[0] - x, axis=1), np.linalg.norm(moved[1] - moved[0], axis=1)
        points[k], basis[k] = (one.max() for one in by_place)
        place[k] = s[int(np.add(*by_place)[: len(s)].argmax())]
    if not (points + basis).any():
        return points, left_out, ""
    k = int((points + basis).argmax())
    at = q_f, names[k], place[k]
    J = frame_pose(fine.model, *at)[:3, :3] @ frame_jacobian(fine.model, *at)[3:]
    step = difference(fine.model, q_f, by_both)
    return points, basis + left_out, _cure(model, fine, J, points, basis, step)


def _abscissae(model: Model, name: str) -> list[float]:
    """Abscissae at which errors are measured: the tip of a link; for a rod also its nodes."""
    return [*(model.rods[name].node_s.tolist() if name in model.rods else ()), 1.0]


def _points(model: Model, q: np.ndarray, k: int, s: list[float], skin: np.ndarray) -> np.ndarray:
    """Positions at abscissae s of link k in the world, then positions of material points `skin` in the base frame of
    its deformable body, (n, 3) [m]."""
    links = model.links
    own = q[int(links.q_start[k]) + links.joint[k].nq : int(links.q_start[k + 1])]
    return np.concatenate([frame_pose(model, q, links.names[k], s)[:, :3, 3], placed(links.body[k]).moved(skin, own)])


def corrected_configuration(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, t: float,
    duration: float | None, free: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """q ⊕ δ of (2), where only the velocity coordinates `free` change."""
    last = np.inf
    for _ in range(STEPS if duration is None else 1):
        w = run_residual(model, q[None], v[None], a[None], u[None], t, 1.0, force)
        r, gap = w.host["tau"][0].copy(), w.host["gap"][0].copy()
        r[model.prescribed.dof] = 0.0
        S, _, M, w = residual_derivatives(model, q, v, a, u, t, 1.0, force)
        if duration is not None:
            M[model.prescribed.dof] = 0.0
            S = S + M / duration**2
        step, more = _step(model, S, row_results(model, w, "A"), r, gap, free)
        size = float(np.abs(step / model.dofs.scale).max(initial=0.0))
        if not size < last:
            break
        part = min(1.0, LONGEST / size) if size > 0.0 else 1.0
        q, force, last = integrate(model, q, part * step), force + part * more, (1.0 - 0.5 * part) * size
        if size < _SMALL:
            break
    return q


def _step(
    model: Model, S: np.ndarray, A: np.ndarray, r: np.ndarray, gap: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The Newton step (nv,) of least norm, in units of the coordinates, for the residual r and the gaps of loops, and
    the increments of the constraint forces (m,). Only the coordinates `free` move."""
    scale, m = model.dofs.scale[free], len(A)
    K = S[np.ix_(free, free)] * scale * scale[:, None]
    size = max(float(np.abs(K).max(initial=0.0)), 1e-300)
    rows = A[:, free] * scale
    left = np.block([[K / size, -rows.T], [rows, np.zeros((m, m))]])
    right = -np.concatenate([r[free] * scale / size, gap])
    out = np.zeros(model.nv)
    found = np.linalg.lstsq(left, right, rcond=_RANK)[0]
    out[free] = scale * found[: len(free)]
    return out, size * found[len(free) :]


def _cure(
    model: Model, fine: FinerModel, at: np.ndarray, points: np.ndarray, basis: np.ndarray, step: np.ndarray
) -> str:
    """The change of the model that lowers the larger of the two errors of the worst link.

    Args:
        at: Jacobian of its worst point in the finer model, (3, nv). step: Newton step of the finer model.
    """
    names, k, found = model.links.names, int((points + basis).argmax()), []
    for j, body in enumerate(model.links.body):
        if not isinstance(body, DeformableBody):
            continue
        if points[k] > basis[k]:
            found.append((points[j], f"leave degree and steps of link {names[j]!r} to the body"))
            continue
        new = np.setdiff1d(np.arange(*fine.model.links.v_start[j : j + 2]), fine.v)
        if len(new):
            moved = max(float(np.linalg.norm(at[:, new] @ step[new])), basis[j] if j == k else 0.0)
            found.append((moved, fine.cures[names[j]]))
    for name, rod in model.rods.items():
        j = names.index(name)
        own = slice(int(fine.model.links.v_start[j]), int(fine.model.links.v_start[j + 1]))
        old = rod.strain.family.size + rod.strain.v_start - int(model.links.v_start[j])
        new = np.arange(own.start + old, own.stop)
        if points[k] > basis[k]:
            count = max(len(p) for _, _, p, _ in placed(model.links.body[j]).stretches(name))
            found.append((points[j], f"gauss_points={2 * count}, exponentials=2 of link {name!r}"))
            continue
        strain = strains_of(rod.strain.family, rod.strain.family.size)
        for i in np.unique(strain).tolist():
            moved = float(np.linalg.norm(at[:, new[strain == i]] @ step[new[strain == i]]))
            order = getattr(rod.strain.family, STRAINS[i], None)
            to = f"raise {STRAINS[i]} of link {name!r} to {order + 2}" if isinstance(order, int) else (
                f"give {STRAINS[i]} of link {name!r} more modes")  # fmt: skip
            found.append((moved, to))
    return max(found, key=lambda one: one[0])[1] if found else ""
