"""How far results are from what the same robot gives with finer points and more modes.

A finer model of the same robot is built once: each rod has more Gauss points and, behind its own modes, new ones
(model/enrichment). With the new coordinates zero, a state has there a residual r = ID − B u − Aᵀ λ and the stiffness
S = ∂r/∂q, or in a motion that lasts T

    S = ∂r/∂q + M/T²                                                                                      (1)

since what is not held moves by about a T². Newton steps in the old coordinates alone tell the error of the points,
steps in all of them that of the basis as well:

    δ_p = −S_oo⁻¹ r_o,   δ = −S⁻¹ r,   points = |x(q ⊕ δ_p) − x|,   basis = |x(q ⊕ δ) − x(q ⊕ δ_p)|      (2)

At rest they are repeated as long as they shrink, STEPS at most; of a motion the first is taken. x are the middle and
the tip of each link. Rows of loops and prescribed motions stand in the equations. r must vanish but for the errors: the
state is an equilibrium, or a and u belong to its motion.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.dynamics.configuration import checked_configuration, difference, integrate
from lissom.dynamics.forward_dynamics import input_rows, run_residual
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import AccuracyWarning
from lissom.launch.over_models import over_models
from lissom.launch.workspace import batch_of, flat, leading, stack
from lissom.model.bodies import placed
from lissom.model.model import Model
from lissom.model.quadrature import strains_of
from lissom.robot import formatting
from lissom.robot.bases import STRAINS

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
    """Estimated errors of a result by its points along rods and by its bases.

    Fields (a batch adds leading axes):
        links: names, of all that carry a body or a frame. points, basis: how far each of them is off at its middle or
        at its tip, (..., n) [m]; zero of rigid bodies. The basis of a deformable body is an input that is compared with
        no other, so that its error counts as zero. length: of each, zero where it does not extend along s
        (n,) [m]. cure: what lowers the largest error, "" where there is none.
    """

    links: tuple[str, ...]
    points: np.ndarray
    basis: np.ndarray
    length: np.ndarray
    cure: str

    @property
    def error(self) -> np.ndarray:
        """The largest of points + basis over the links (...) [m]."""
        return (self.points + self.basis).max(axis=-1, initial=0.0)

    @property
    def is_doubtful(self) -> bool:
        """Whether the error exceeds a hundredth of the longest rod."""
        longest = self.length.max(initial=0.0)
        return bool(longest > 0.0 and self.error.max(initial=0.0) > DOUBTFUL * longest)

    def __repr__(self) -> str:
        each = [np.reshape(x, (-1, len(self.links))).max(axis=0, initial=0.0) for x in (self.points, self.basis)]
        rows = [f"{name}: points {p:.1e} m, basis {b:.1e} m" for name, p, b in zip(self.links, *each) if p + b > 0.0]
        return formatting.in_brackets(
            "Accuracy", f"{'; '.join(rows) or 'exact'}{f'; {self.cure}' if self.cure else ''}"
        )


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
    """Estimated error of an equilibrium, or of a state of a motion, by the points along rods and by the bases, in
    metres by link.

    A finer model of the same robot takes a few Newton steps from the state; it is built at the first call and kept.

    Args:
        q: configuration, shape (..., nq), an equilibrium under u, shape (..., nu), or with v and a, shape (..., nv), of
            a motion under u.
        t: time of loads and prescribed motions [s].
        duration: how long the motion lasts [s]; None where it is at rest.
        force: forces of the loops, shape (..., n_rows); None is zero.
    Returns:
        Accuracy, with the cure. An error beyond a hundredth of the longest rod comes with an AccuracyWarning.
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
    length = np.array([placed(body).length for body in (models[0].links.body if models else ())])
    worst = max(found, key=lambda one: float((one[0] + one[1]).max(initial=0.0)), default=None)
    result = Accuracy(names, points, basis, length, "" if worst is None else worst[2])
    if result.is_doubtful:
        text = f"points and basis of rods leave an error of about {result.error.max():.1g} m; {result.cure}"
        warnings.warn(text, AccuracyWarning, stacklevel=4)
    return result


@final
@dataclass(frozen=True)
class Finer:
    """A finer model; where the old coordinates stand in its v, and those of q in its q."""

    model: Model
    v: np.ndarray
    q: np.ndarray

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


def _finer(model: Model, enriched: bool) -> Finer | None:
    values = {}
    for name, body in zip(model.links.names, model.links.body):
        for word, value in placed(body).refined(enriched=enriched).items():
            values[f"links.{name}.body.{word}"] = value
    if not values:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there was to say was said when the model was built
        fine = model.description.with_(values).build()
    known = model.prescribed
    v, q = _kept(model.links.v_start, fine.links.v_start), _kept(model.links.q_start, fine.links.q_start)
    if known.steady is not None:
        steady = np.zeros(fine.nv)
        steady[v] = known.steady
        fine = fine.with_locked(v[known.dof[model.n_motions - known.n_locked :]], steady)
    return Finer(fine if fine.device == model.device else fine.on(model.device), v, q)


def _kept(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Where the old coordinates of all links stand, those of each before its new ones."""
    sizes = np.diff(old)
    return np.concatenate([np.zeros(0, int), *(first + np.arange(size) for first, size in zip(new, sizes))]).astype(int)


def _of_state(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, t: float,
    duration: float | None,
) -> tuple[np.ndarray, np.ndarray, str]:  # fmt: skip
    """Errors of the links by points and by basis, and the cure, at one state."""
    names, none = model.links.names, np.zeros(len(model.links.names))
    fine = finer(model, enriched=True)
    if fine is None:
        return none, none, ""
    if model.surroundings.sticks:
        return none + np.nan, none + np.nan, "contacts that stick hold a robot by its points: no estimate"
    q_f, v_f, a_f = fine.state(q, v, a)
    every = np.arange(fine.model.nv)
    by_points, by_both = (corrected(fine.model, q_f, v_f, a_f, u, force, t, duration, free) for free in (fine.v, every))
    points, basis = none.copy(), none.copy()
    for k, name in enumerate(names):
        s = _places(model, name)
        x, *moved = (_points(*one, k, s) for one in ((model, q), (fine.model, by_points), (fine.model, by_both)))
        points[k] = np.linalg.norm(moved[0] - x, axis=1).max()
        basis[k] = np.linalg.norm(moved[1] - moved[0], axis=1).max()
    if not (points + basis).any():
        return points, basis, ""
    worst = names[int((points + basis).argmax())]
    J = frame_pose(fine.model, q_f, worst)[:3, :3] @ frame_jacobian(fine.model, q_f, worst)[3:]
    step = difference(fine.model, q_f, by_both)
    return points, basis, _cure(model, fine, J, points, basis, step)


def _places(model: Model, name: str) -> list[float]:
    """The tip of a link, and of a rod the point next to its middle."""
    if name not in model.rods:
        return [1.0]
    s = model.rods[name].node_s
    return [float(s[np.abs(s - 0.5).argmin()]), 1.0]


def _points(model: Model, q: np.ndarray, k: int, s: list[float]) -> np.ndarray:
    """Points of link k in the world at abscissae (n, 3), and behind these, in its base, points of a body that
    deforms."""
    links = model.links
    own = q[int(links.q_start[k]) + links.joint[k].nq : int(links.q_start[k + 1])]
    return np.concatenate([frame_pose(model, q, links.names[k], s)[:, :3, 3], placed(links.body[k]).outline(own)])


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
        if isinstance(body, DeformableBody):
            found.append((points[j], f"leave degree and steps of link {names[j]!r} to the body"))
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


@final
@dataclass(frozen=True)
class ModesAccuracy:
    """Estimated relative errors of frequencies by the points along rods and by the bases.

    Fields:
        points, basis: of each mode, (n,) [-]. cure: what lowers that of the lowest mode, "" where there is none.
    """

    points: np.ndarray
    basis: np.ndarray
    cure: str

    @property
    def error(self) -> np.ndarray:
        """points + basis (n,) [-]."""
        return self.points + self.basis

    def __repr__(self) -> str:
        lowest = ", ".join(f"{100 * x:.1e} %" for x in self.error.ravel()[:4])
        return formatting.in_brackets("ModesAccuracy", f"lowest modes: {lowest}{f'; {self.cure}' if self.cure else ''}")


def accuracy_of_modes(
    model: Model, q: np.ndarray, u: np.ndarray, v: np.ndarray, t: float, frequencies: np.ndarray, damped: bool
) -> ModesAccuracy:
    """How far frequencies, rising, are from those of finer models about the equilibrium of these."""
    from lissom.dynamics.linearization import modes

    found = []
    for enriched in (False, True):
        fine = finer(model, enriched=enriched)
        if fine is None:
            return ModesAccuracy(0.0 * frequencies, 0.0 * frequencies, "")
        q_f, v_f, a_f = fine.state(q, v, 0.0 * v)
        none, every = np.zeros(fine.model.n_rows), np.arange(fine.model.nv)
        there = corrected(fine.model, q_f, v_f, a_f, u, none, t, None, every)
        of_it = modes(fine.model, there, u, v=v_f if v.any() else None, damped=damped, t=t).frequencies
        found.append(np.resize(of_it, len(frequencies)) if len(of_it) < len(frequencies) else of_it)
    size = np.maximum(np.abs(frequencies), 1e-6 * np.abs(frequencies).max(initial=1e-300))
    by_points, by_both = (one[: len(frequencies)] for one in found)
    points, basis = np.abs(by_points - frequencies) / size, np.abs(by_both - by_points) / size
    cure = ""
    if len(points):
        lowest = int(np.argmax(np.abs(frequencies) > 1e-3 * np.abs(frequencies).max()))
        cure = "more gauss_points" if points[lowest] > basis[lowest] else "higher orders of the bases"
        if points[lowest] + basis[lowest] > DOUBTFUL:
            text = f"the lowest frequency is off by about {100 * (points + basis)[lowest]:.1g} %; take {cure}"
            warnings.warn(text, AccuracyWarning, stacklevel=4)
    return ModesAccuracy(points, basis, cure)
