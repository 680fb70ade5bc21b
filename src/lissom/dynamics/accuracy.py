"""How far results are from what the same robot gives with finer points and more modes.

A finer model of the same robot is built once: each rod has more Gauss points and, behind its own modes, new ones; each
deformable body has further coordinates of its kind (bodies/enrichment). With the new coordinates zero, a state has
there a residual r = ID − B u − Aᵀ λ and the stiffness S = ∂r/∂q, or in a motion that lasts T

    S = ∂r/∂q + M/T²                                                                                      (1)

since what is not held moves by about a T². Newton steps in the old coordinates alone tell the error of the points,
steps in all of them that of the basis as well:

    δ_p = −S_oo⁻¹ r_o,   δ = −S⁻¹ r,   points = |x(q ⊕ δ_p) − x|,   basis = |x(q ⊕ δ) − x(q ⊕ δ_p)|      (2)

At rest they are repeated as long as they shrink, STEPS at most; of a motion the first is taken. x are the middle and
the tip of each link, and the surface of a body that deforms. Rows of loops and prescribed motions stand in the
equations. r must vanish but for the errors: the state is an equilibrium, or a and u belong to its motion.
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
from lissom.launch.workspace import batch_of, flat, leading, stack
from lissom.model.bodies import placed
from lissom.model.model import Model
from lissom.robot import formatting
from lissom.robot.actuators import BodyChamber
from lissom.robot.bases import STRAINS, strains_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DOUBTFUL = 1e-2  # of a rod's length, from which on a result is not to be trusted
STEPS = 4
LONGEST = 1.0  # step [rad, -]: what asks for more is far off in any case
_SMALL = 1e-9  # step after which no other follows [rad, -]
_RANK = 1e-12  # of the largest singular value of (2): what is neutral stays


@final
@dataclass(frozen=True)
class Accuracy:
    """Estimated errors of a result by its points along rods and in bodies, and by its bases.

    Fields (a batch adds leading axes):
        links: names, of all that carry a body or a frame. points, basis: how far each of them is off at its middle or
        at its tip, or on the surface of a body that deforms, (..., n) [m]; zero of rigid bodies. length: of each rod,
        and the largest dimension of a body that deforms, else zero (n,) [m]. cure: what lowers the largest error, ""
        where there is none. not_estimated: links whose body moves by a function of a user, or has a tip or a chamber
        that is a function of its coordinates. The library knows no further coordinates of such a body: its basis is
        NaN, and the others do not contain what it adds to them.
    """

    links: tuple[str, ...]
    points: np.ndarray
    basis: np.ndarray
    length: np.ndarray
    cure: str
    not_estimated: tuple[str, ...] = ()

    @property
    def error(self) -> np.ndarray:
        """The largest of points + basis over the links (...) [m], without a basis that is not estimated."""
        known = [name not in self.not_estimated for name in self.links]
        return (self.points + np.where(known, self.basis, 0.0)).max(axis=-1, initial=0.0)

    @property
    def is_doubtful(self) -> bool:
        """Whether the error exceeds a hundredth of the longest rod or deformable body."""
        longest = self.length.max(initial=0.0)
        return bool(longest > 0.0 and self.error.max(initial=0.0) > DOUBTFUL * longest)

    def words(self) -> list[str]:
        """The largest errors of each link that is not exact, as text."""
        each = [np.reshape(x, (-1, len(self.links))).max(axis=0, initial=0.0) for x in (self.points, self.basis)]
        return [
            f"{name}: points {p:.1e} m, basis {'not estimated' if name in self.not_estimated else f'{b:.1e} m'}"
            for name, p, b in zip(self.links, *each)
            if p + b != 0.0  # also where it is not estimated
        ]

    def __repr__(self) -> str:
        rows = self.words()
        text = f"{'; '.join(rows) or 'exact'}{f'; {self.cure}' if self.cure else ''}"
        return formatting.in_brackets("Accuracy", text)


@over_models("q", "u", "v", "a", apart=True)
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
    """Estimated error of an equilibrium, or of a state of a motion, by the points along rods and in deformable bodies
    and by the bases, in metres by link.

    A finer model of the same robot takes a few Newton steps from the state; it is built at the first call and kept.
    Bases are enriched by more of their kind: strains, modes and growths by polynomials of two degrees more,
    `KinematicsRitz` by products of its shape functions with polynomials, finite elements by the lowest modes of
    quadratic elements, or of cells of half the size. A user's motion f(x, θ) is "not estimated".

    Args:
        q: configuration, shape (..., nq), an equilibrium under u, shape (..., nu), or with v and a, shape (..., nv), of
            a motion under u.
        t: time of loads and prescribed motions [s].
        duration: how long the motion lasts [s]; None where it is at rest.
        force: forces of the loops, shape (..., n_rows); None is zero.
    Returns:
        Accuracy, with the cure. An error beyond a hundredth of the longest rod or deformable body comes with an
        AccuracyWarning.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: by experience within a factor of ten of the truth up to errors of a tenth of the length. Errors that add
        up along a motion, such as a phase that drifts, are not seen.
    """
    q, u = checked_configuration(model, "q", q), input_rows(model, u)
    v, a = (np.zeros(model.nv) if x is None else stack(name, x, model.nv) for name, x in (("v", v), ("a", a)))
    force = np.zeros(model.n_rows) if force is None else stack("force", force, model.n_rows)
    lead = leading(q=q, u=u, v=v, a=a, force=force)
    rows = [flat(x, lead) for x in (q, v, a, u, force)]
    return estimate([model] * batch_of(lead), rows, np.full(batch_of(lead), t), lead, duration)


def estimate(
    models: Sequence[Model], rows: Sequence[np.ndarray], t: np.ndarray, lead: tuple[int, ...], duration: float | None
) -> Accuracy:
    """The accuracy of states of models, rows of q, v, a, u and forces of loops, at times t, with leading axes."""
    q, v, a, u, force = rows
    found = [
        _of_state(model, q[k], v[k], a[k], u[k], force[k], float(t[k]), duration) for k, model in enumerate(models)
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
class Finer:
    """A finer model; where the old coordinates stand in its v, and those of q in its q; and cures by link."""

    model: Model
    v: np.ndarray
    q: np.ndarray
    cures: dict[str, str]

    def state(self, q: np.ndarray, *rates: np.ndarray) -> Iterator[np.ndarray]:
        """A configuration and rates of the old model in this one, whose other coordinates are zero."""
        out = self.model.neutral()
        out[self.q] = q
        yield out
        for x in rates:
            full = np.zeros(self.model.nv)
            full[self.v] = x
            yield full


def finer(model: Model, *, enriched: bool) -> Finer | None:
    """The same robot with finer points, `enriched` with more modes too; None where nothing in it can be finer."""
    return model.cached(("finer", enriched), lambda: _finer(model, enriched))


def links_not_estimated(model: Model) -> set[str]:
    """Links whose body has coordinates of its own, to which the library adds no further ones."""
    of_volumes = {
        actuator.link
        for actuator in model.description.actuators.values()
        if isinstance(actuator, BodyChamber) and actuator.volume is not None
    }
    return of_volumes | {
        name for name, body in zip(model.links.names, model.links.body) if not placed(body).has_enrichment
    }


def _finer(model: Model, enriched: bool) -> Finer | None:
    unknown = links_not_estimated(model) if enriched else set()
    found = [
        placed(body).refined(enriched=enriched and name not in unknown)
        for name, body in zip(model.links.names, model.links.body)
    ]
    values = {f"links.{name}.body": one.body for name, one in zip(model.links.names, found) if one is not None}
    if not values:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to say was said when the model was built
        fine = model.description.with_(values).build()
    known = model.prescribed
    own = [np.zeros(0, int) if one is None else one.own for one in found]
    v, q = (_kept(*starts, own) for starts in ((model.links.v_start, fine.links.v_start),
                                               (model.links.q_start, fine.links.q_start)))  # fmt: skip
    if known.steady is not None:
        steady = np.zeros(fine.nv)
        steady[v] = known.steady
        fine = fine.with_locked(v[known.dof[model.n_motions - known.n_locked :]], steady)
    cures = {name: one.cure.format(name) for name, one in zip(model.links.names, found) if one is not None}
    return Finer(fine if fine.device == model.device else fine.on(model.device), v, q, cures)


def _kept(old: np.ndarray, new: np.ndarray, own: Sequence[np.ndarray]) -> np.ndarray:
    """Where the old coordinates of all links stand, with the numbers of those of a body among its new ones."""
    out = [np.zeros(0, int)]
    for first, size, body in zip(new, np.diff(old), own):
        out += [first + np.arange(size - len(body)), first + size - len(body) + body]
    return np.concatenate(out).astype(int)


def _of_state(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, t: float,
    duration: float | None,
) -> tuple[np.ndarray, np.ndarray, str]:  # fmt: skip
    """Errors of the links by points and by basis, and the cure, at one state."""
    names, none = model.links.names, np.zeros(len(model.links.names))
    left_out = np.where([name in links_not_estimated(model) for name in names], np.nan, 0.0)
    fine = finer(model, enriched=True)
    if fine is None:
        return none, left_out, ""
    if model.contacts.sticks:
        return none + np.nan, none + np.nan, "contacts that stick hold a robot by its points: no estimate"
    q_f, v_f, a_f = fine.state(q, v, a)
    every = np.arange(fine.model.nv)
    by_points, by_both = (corrected(fine.model, q_f, v_f, a_f, u, force, t, duration, free) for free in (fine.v, every))
    points, basis = none.copy(), none.copy()
    for k, name in enumerate(names):
        s = _places(model, name)
        skin = placed(model.links.body[k]).skin
        x, *moved = (_points(*one, k, s, skin) for one in ((model, q), (fine.model, by_points), (fine.model, by_both)))
        points[k] = np.linalg.norm(moved[0] - x, axis=1).max()
        basis[k] = np.linalg.norm(moved[1] - moved[0], axis=1).max()
    if not (points + basis).any():
        return points, left_out, ""
    worst = names[int((points + basis).argmax())]
    J = frame_pose(fine.model, q_f, worst)[:3, :3] @ frame_jacobian(fine.model, q_f, worst)[3:]
    step = difference(fine.model, q_f, by_both)
    return points, basis + left_out, _cure(model, fine, J, points, basis, step)


def _places(model: Model, name: str) -> list[float]:
    """The tip of a link, and of a rod the point next to its middle."""
    if name not in model.rods:
        return [1.0]
    s = model.rods[name].node_s
    return [float(s[np.abs(s - 0.5).argmin()]), 1.0]


def _points(model: Model, q: np.ndarray, k: int, s: list[float], skin: np.ndarray) -> np.ndarray:
    """Points of link k in the world at abscissae (n, 3), and behind these, in its base, material points of a body that
    deforms."""
    links = model.links
    own = q[int(links.q_start[k]) + links.joint[k].nq : int(links.q_start[k + 1])]
    return np.concatenate([frame_pose(model, q, links.names[k], s)[:, :3, 3], placed(links.body[k]).moved(skin, own)])


def corrected(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, t: float,
    duration: float | None, free: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """q ⊕ δ of (2), where the coordinates `free` of v may move."""
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
    """The shortest step, in the units of the coordinates, that makes r and the gaps of loops vanish by moving some, and
    the change of the loops' forces."""
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


def _cure(model: Model, fine: Finer, at: np.ndarray, points: np.ndarray, basis: np.ndarray, step: np.ndarray) -> str:
    """What lowers the larger of the two errors at the link that is off most."""
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
