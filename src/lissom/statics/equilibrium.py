"""Static equilibria, and constant shapes in steady motion: r(q) = ID(q, v, 0) − B(q) u = 0 by Newton's method.

At rest v = 0. In a steady motion v holds the velocities of prescribed joints and of joints with a given velocity, and
is zero for the shape. Only the rows of the shape must vanish. Inertia forces are scaled like the loads.

A step is accepted by the natural monotonicity test: the simplified Newton step at the trial point must be shorter than
the step to it. This test does not depend on the units of the rows. If K is singular to rounding, the shortest step is
taken, so that the robot does not move along neutral directions. If Newton's method fails, or takes many iterations
from a given start, the supporting forces of the start are released in steps by (1), so that the equilibrium stays on
the branch of the start. If that fails too, loads, inputs and gravity are increased from zero in steps. If the
equilibrium is unstable, a damped descent searches for a stable one.

With friction, the equilibrium depends on how the robot came to rest. At the start q₀, supporting forces r(q₀) balance
the robot. They are released in equal parts:

    r(q) = (1 − p) r(q₀),   p from 0 to 1                                                                 (1)

After each part, a ball that begins to touch gets an anchor, and the anchor of a ball that slides follows it. If no ball
slides and none begins to touch, releasing all parts in one step gives the same equilibrium. An `Equilibrium` keeps the
equilibria of (1) with their anchors as its `ReleasePath`, since its derivatives follow from those of all of them.

Source: Mathew 2025 §3; P. Deuflhard, Newton Methods for Nonlinear Problems, 2011, §3.3 (the test).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.accuracy import Accuracy, estimate
from lissom.dynamics.actuation import input_rows, warn_of_pushing
from lissom.dynamics.assembly import closed_start, prescribed_configuration
from lissom.dynamics.configuration import checked_configuration, difference, quaternion_joints, unit_quaternions
from lissom.dynamics.constraints import loop_residual, minimum_norm, run_constraints, warn_of_redundancy
from lissom.dynamics.contacts import (
    contact_anchors,
    contact_forces,
    friction_ratios,
    present_anchors,
    put_anchors,
)
from lissom.dynamics.forward_dynamics import run_forward_dynamics, run_residual
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.dynamics.kinematics import node_motion
from lissom.dynamics.linearization import steady_velocity
from lissom.dynamics.start import default_start
from lissom.errors import AccuracyWarning, ConvergenceError, ShapeError, StabilityWarning, keeping
from lissom.launch.over_models import over_models
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import batch_of, flat, leading, near_pairs_error
from lissom.model.groups import NEAR_END
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.plausibility import CAUSE, inside_out, warn_of_shapes
from lissom.robot import checks, formatting
from lissom.robot.joints import has_friction
from lissom.statics.descent import EIGENVALUES, Descent
from lissom.statics.newton import newton
from lissom.statics.newton_kernel import (
    CONVERGED,
    CROWDED,
    NO_STEP,
    NOT_FINITE,
    SINGULAR,
    TOO_MANY,
    WOUND_UP,
    Sought,
    load_ahead,
)
from lissom.statics.residual import moving_model, static_residual
from lissom.statics.stability import floats_at, least_stiffness, loose_contact, unstable_modes, warn_of_instability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def raised(here: Any, solve: Callable[[Any, float], Any], longest: float = 1.0) -> tuple[Any, float, str]:
    """Follow equilibria from fraction 0 to fraction 1 of a load in adaptive steps.

    Args:
        solve: function that returns the Iterate at a fraction, from the last Iterate.
        longest: longest step.
    Returns:
        the last equilibrium, its fraction, and the remedy of the failed step (empty if fraction 1 was reached).
    """
    reached, step, remedy = 0.0, min(0.25, longest), ""
    while reached < 1.0:
        goal = min(1.0, reached + step)
        trial = solve(here, goal)
        trial.iterations += here.iterations
        if not trial.remedy:
            here, reached, step = trial, goal, min(longest, 1.5 * step)
        else:
            here.iterations, remedy = trial.iterations, trial.remedy
            step *= 0.5
            if step < 1e-3:
                break
    return here, reached, remedy


_UNKNOWN, _NO_REST = -1, -2  # in place of a number of unstable modes: not computed yet; no equilibrium


@final
@dataclass(frozen=True, repr=False)
class Equilibrium:
    """A static equilibrium, or a batch of equilibria with leading axes (...).

    Fields:
        q: configuration (..., nq) [rad, m, or strain units].
        u: inputs (..., nu) [N, m, Pa or N·m, by actuator].
        multipliers: forces of the prescribed motions, then of the loops and couplings (..., n_multipliers) [N·m, N].
        residual: largest absolute entry of the remaining generalised force (...).
        iterations: number of Newton steps, including those of a descent (...).
        v: velocity of the steady motion, zero at rest (..., nv) [unit of q per s].
        anchors: anchors of the contacts that stick (..., n_pairs, 6), for `Model.anchored`.
        model: the model.
        t: time of its loads [s].
        path: how the equilibrium was reached, a `ReleasePath` if contacts stick and None otherwise (...).
    """

    q: np.ndarray
    u: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    v: np.ndarray
    model: Model | ModelBatch = field(repr=False, compare=False)
    t: float = field(repr=False, compare=False)
    anchors: np.ndarray = field(default_factory=lambda: np.zeros((0, 6)))
    path: np.ndarray = field(default_factory=lambda: np.array(None), repr=False, compare=False)
    _known: np.ndarray = field(default_factory=lambda: np.array(_UNKNOWN), repr=False, compare=False)

    __repr__ = formatting.format_equilibrium  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        return formatting.html_arrays(
            repr(self), {name: getattr(self, name) for name in ("q", "u", "multipliers", "v")}
        )

    @cached_property
    def accuracy(self) -> Accuracy:
        """Estimated position errors from quadrature points and from bases [m]; see `accuracy`. Computed on first use.
        An AccuracyWarning is issued if the error exceeds a hundredth of the longest rod or body."""
        model = self.model.common if isinstance(self.model, ModelBatch) else self.model
        lead, n_motions = self.q.shape[:-1], model.n_motions - model.prescribed.n_locked
        state = (self.q, self.v, np.zeros_like(self.v), self.u, self.multipliers[..., n_motions:])
        rows = [np.reshape(x, (batch_of(lead), x.shape[-1])) for x in state]
        return estimate(list(model.of_rows(batch_of(lead))), rows, np.full(batch_of(lead), self.t), lead, None)

    @cached_property
    def unstable_count(self) -> np.ndarray:
        """Number of unstable modes (...) that loops and prescribed motions allow, flutter included.

        Neutral modes without a driving force do not count. A mode that only gyroscopic forces stabilise counts.
        `solve_statics` has it if it had to find a stable equilibrium; otherwise it is computed on first use. Zero for
        an iterate that is no equilibrium.
        """
        known = self._known.reshape(-1)
        found, states = np.maximum(known, 0), self._states() if (known == _UNKNOWN).any() else []
        for k in np.flatnonzero(known == _UNKNOWN):
            model, q, u, force = states[k]
            found[k] = unstable_modes(model, q, u, self.t, force)
        return found.reshape(self._known.shape)

    @cached_property
    def is_stable(self) -> np.ndarray:
        """Whether there is no unstable mode (...), by `unstable_count`; False for an iterate that is no equilibrium."""
        return np.asarray((self.unstable_count == 0) & (self._known != _NO_REST))

    def _states(self) -> list[tuple[Model, np.ndarray, np.ndarray, np.ndarray]]:
        """The model, q (nq,), u (nu,) and constraint forces (n_rows,) of each row."""
        model = self.model.common if isinstance(self.model, ModelBatch) else self.model
        n, n_motions = batch_of(self.q.shape[:-1]), model.n_motions - model.prescribed.n_locked
        rows = (np.reshape(x, (n, x.shape[-1])) for x in (self.q, self.u, self.multipliers[..., n_motions:]))
        return list(zip(model.of_rows(n), *rows))

    @cached_property
    def least_stiffness(self) -> np.ndarray:
        """Smallest eigenvalue of the tangent stiffness, shape (...) [J].

        The stiffness is restricted to the motions that loops and prescribed motions allow. If loads are not
        conservative, its symmetric part is used. The eigenvalue is negative for an unstable equilibrium under
        conservative loads, zero at buckling or for a neutral motion, and infinite if nothing can move. Computed on
        first use, with one eigenvalue problem for each equilibrium.

        The unit of each coordinate is `model.dofs.scale`: for a rod, an end-to-end rotation of 1 rad, or stretch or
        shear of 1; for a joint, a rotation by 1 rad, or a translation of equal size. The work of a motion of unit size
        is half the stiffness.
        """
        found = [least_stiffness(model, q, u, self.t, force) for model, q, u, force in self._states()]
        return np.array(found, dtype=np.float64).reshape(self.q.shape[:-1])


@final
class Rest(NamedTuple):
    """One equilibrium of (1): the share 1 − p of the supporting forces, q (nq,), the constraint forces (n_rows,), and
    the anchors (n_pairs, 6) under which it was found."""

    share: float
    q: np.ndarray
    force: np.ndarray
    anchors: np.ndarray


@final
@dataclass(frozen=True)
class ReleasePath:
    """The equilibria of (1) from the start, with share 1, to the end, with share 0.

    Fields:
        model: the model with the anchors that were given.
        share: share of the supporting forces at each equilibrium (n,).
        q, force: configurations (n, nq) and constraint forces (n, n_rows).
        pairs: indices of the contact pairs that have an anchor at any of them.
        placed: anchors of these pairs under which each equilibrium was found, and first those that were given,
            (n, len(pairs), 6). Each follows from the anchors and from q before by `contact_anchors`.
    """

    model: Model
    share: np.ndarray
    q: np.ndarray
    force: np.ndarray
    pairs: np.ndarray
    placed: np.ndarray

    @classmethod
    def of(cls, model: Model, rests: Sequence[Rest]) -> ReleasePath:
        """The path through given equilibria of a model, of which the first is the start."""
        share, q, force, anchors = (np.array(x) for x in zip(*rests))
        anchors[0] = model.contacts.anchors
        pairs = np.flatnonzero(np.isfinite(anchors).any(axis=(0, 2)))
        return cls(model, share, q, force, pairs, anchors[:, pairs])

    @property
    def anchors(self) -> np.ndarray:
        """The anchors of all pairs, (n, n_pairs, 6); NaN for pairs without one."""
        out = np.full((len(self.q), *self.model.contacts.anchors.shape), np.nan)
        out[:, self.pairs] = self.placed
        return out


@final
@dataclass
class Iterate:
    """The end of a Newton solve: q (nq,) and the constraint forces (n_rows,).

    Fields:
        remedy: advice to the user after a failure; empty if the solve converged.
        growing: number of unstable modes, if known.
        tried: text about failed descents to a stable equilibrium.
        path: equilibria of (1) up to this one, if contacts stick and it belongs to them.
    """

    q: np.ndarray
    force: np.ndarray
    iterations: int
    remedy: str
    growing: int | None = None
    tried: str = ""
    path: tuple[Rest, ...] = ()

    def unstable_count(self, model: Model, u: np.ndarray, t: float) -> int:
        """Number of unstable modes of the iterate at the full load."""
        if self.growing is None:
            self.growing = unstable_modes(model, self.q, u, t, self.force)
        return self.growing

    def equilibrium(self, model: Model, u: np.ndarray, t: float, factor: float = 1.0) -> Equilibrium:
        """The iterate as an Equilibrium, with its residual."""
        r = static_residual(model, self.q, u, t, factor, self.force)
        size = np.array(np.inf if r is None else np.abs(r[: model.nv]).max(initial=0.0))
        forces = np.concatenate([np.zeros(model.n_motions - model.prescribed.n_locked), self.force])
        v, known = steady_velocity(model, factor), np.array(_NO_REST)
        return Equilibrium(self.q, u, forces, size, np.array(self.iterations), v, model, t, _known=known)


PART = 0.05  # largest fraction of the supporting forces that is released in one step
_AT_LIMIT = 1.0 - 1e-9  # fraction of the friction limit above which a contact may have slipped
_CHECKED_ROWS = 100  # number of rows of a batch that are searched for neglected friction


def warn_of_dropped_friction(model: Model, q: np.ndarray) -> None:
    """Warn if statics neglects the friction of a joint, or that of a contact that touches at a row of q."""
    _warn_of_joints(model)
    world = model.contacts
    moving = [name for name, law in zip(world.names, world.law) if law[3] > 0.0 and law[5] == 0.0]
    moving = [] if model.prescribed.steady is not None else moving
    for row in q[:_CHECKED_ROWS] if moving else ():
        found = sorted(set(moving) & set(contact_forces(model, row).contact))
        if found:
            warnings.warn(
                f"contact {found[0]!r}: its friction is a law of speed, so that statics leaves it out; give the "
                "contact a stick_stiffness",
                AccuracyWarning,
                stacklevel=3,
            )
            return


def _warn_of_joints(model: Model) -> None:
    """Warn if a joint that is free to move has dry friction, which statics neglects."""
    if model.prescribed.steady is not None:
        return
    links, held = model.links, set(model.prescribed.dof.tolist())
    for name, joint, first in zip(links.names, links.joint, links.v_start.tolist()):
        if has_friction(joint) and not held.issuperset(range(first, first + joint.nv)):
            warnings.warn(
                f"joint of {name!r}: its friction is a law of speed, so that statics leaves it out; friction can hold "
                "the robot in other configurations, too",
                AccuracyWarning,
                stacklevel=4,
            )
            return


def release(
    newton: Callable[..., list[Any]],
    model: Model,
    start: Any,
    direct: Any,
    u: np.ndarray,
    t: float,
    limits: Limits,
) -> Any:
    """The end of path (1). Its anchors are left in the tables of the model, which must be a copy.

    Args:
        newton: the function `_newton`.
        start: the Iterate at q₀.
        direct: the equilibrium after a release in one step. It is the result if no ball slides, or if the path fails.
    """
    support = static_residual(model, start.q, u, t, 1.0, start.force)
    anchors, whole = present_anchors(model), np.zeros(0) if support is None else support[: model.nv]

    def released(here: Any, part: float) -> Any:
        rest = (1.0 - part) * whole
        (end,) = newton(model, here.q[None], here.force[None], u[None], t, 1.0, limits, support=rest)
        return end if end.remedy else arrived(model, here, end, 1.0 - part)

    if support is not None and (direct.remedy or not _is_unchanged(model, direct.q)):
        here, reached, _ = raised(start, released, PART)
        if reached == 1.0:
            return here
        put_anchors(model, anchors)
    return direct if direct.remedy else arrived(model, start, direct)


def arrived(model: Model, before: Any, end: Any, share: float = 0.0) -> Any:
    """The Iterate `end` as the next one of path (1) after the Iterate `before`. The anchors of the model follow."""
    end.path = (*before.path, Rest(share, end.q, end.force, present_anchors(model)))
    put_anchors(model, contact_anchors(model, end.q))
    return end


def stacked(alone: list[Any], lead: tuple[int, ...]) -> Any:
    """Equilibria of single states as one Equilibrium of a batch, with the model of the first one."""
    given = {"model": alone[0].model, "t": alone[0].t}
    names = [f.name for f in fields(alone[0]) if f.name not in given]
    found = {name: np.stack([getattr(end, name) for end in alone]) for name in names}
    out = type(alone[0])(**{name: x.reshape(*lead, *x.shape[1:]) for name, x in found.items()}, **given)
    for name in ("least_stiffness", "unstable_count"):  # each by its own model
        vars(out)[name] = np.array([getattr(end, name) for end in alone]).reshape(lead)
    return out


def _is_unchanged(model: Model, q: np.ndarray) -> bool:
    """Whether exactly the anchored pairs touch at q, and none of them has slid."""
    same = np.isnan(contact_anchors(model, q)) == np.isnan(present_anchors(model))
    return bool(same.all()) and float(friction_ratios(model, q).max(initial=0.0)) < _AT_LIMIT


@final
class Limits(NamedTuple):
    """Limits of each Newton solve, and whether its Jacobian comes from differences; fields as in Sought."""

    tolerance: float
    iterations: int
    differences: bool = False


_DESCENTS = 20  # largest work of descents, relative to the work of the solve
_LEAST_ITERATIONS = 30  # smallest work of the solve that this ratio assumes
_LARGEST = 1e150  # largest absolute value of an input
_QUICK, _QUICK_PART = 8, 15  # iterations from a given start after which its branch is followed, and of parts of it
_BEGUN = 0.1  # part of the way to an equilibrium up to which a start that leads nowhere has no branch
_RANK = 1e-10  # relative size of singular values of constraint rows that count as zero
_SAME = 1e-6  # equilibria closer than this count as the same
_AT_ONCE = 512  # rows of a batch in one launch; more would delay the progress bar and Ctrl-C without being faster

_REMEDIES = {
    CONVERGED: "",
    WOUND_UP: "the start turns a rod interval by 2π or more; start nearer the reference",
    NOT_FINITE: "the tangent stiffness is not finite",
    SINGULAR: "the tangent stiffness is singular",
    NO_STEP: "no step along Newton's direction reduces the error",
    CROWDED: "more pairs of balls and obstacles are near than near_pairs holds",
    TOO_MANY: "{limit} iterations were not enough; raise max_iterations",
}


@over_models("u", "q0", "v")
def solve_statics(
    model: Model,
    u: ArrayLike | None = None,
    q0: ArrayLike | None = None,
    *,
    v: ArrayLike | None = None,
    stable: bool = True,
    t: float = 0.0,
    tolerance: float = 1e-11,
    max_iterations: int = 100,
    progress: bool | Callable[[float], Any] = False,
    jacobian: str = "exact",
) -> Equilibrium:
    """Static equilibrium under gravity, loads and inputs, with closed loops; at rest, or in a steady motion.

        ID(q, v, 0) = B(q) u + A(q)ᵀ λ,   e(q) = 0

    Args:
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        q0: start, shape (..., nq) [rad, m, or strain units]; None is `start_configuration`. Open loops are first
            closed by `assemble`. The result is usually the nearest equilibrium. If Newton's method does not reach it
            quickly from a given q0, the robot is released from q0 in steps: the equilibrium is then on the branch of
            q0, or a StabilityWarning says where this branch ended. With contacts that stick, the robot is released
            from q0, in steps if a ball slides or begins to touch. At rest, friction without `stick_stiffness` is
            neglected, with a warning.
        v: steady velocity, shape (nv,) [rad/s, m/s], at which the robot keeps its shape. Joints with a nonzero velocity
            keep their coordinates of q0; a spherical or free joint keeps all its coordinates. The forces that drive
            these joints are not computed. Zeros: the robot is at rest. None: prescribed joints have the velocity of
            their motions at t; if this would open a loop, the robot is at rest, with a warning.
        stable: True: if the equilibrium is unstable, search for the equilibrium to which an overdamped robot moves
            after its release at q0. If none is found, return the unstable equilibrium with a StabilityWarning. False:
            return the nearest equilibrium, stable or not, without a warning; its stability is computed when it is
            asked for.
        t: time of the loads and prescribed motions [s].
        tolerance: largest final step, in units of a rod's end rotation [rad] and stretch [-].
        max_iterations: largest number of iterations of each Newton solve.
        progress: True shows the number of equilibria found, after one second. A function is called with it instead.
        jacobian: "exact", or "differences" of the residual for Newton's method, without batches of robots in one
            launch; for comparisons.
    Returns:
        Equilibrium with its stability.
    Raises:
        ConvergenceError: no equilibrium was reached, even in load steps; or in the equilibrium a rod is turned inside
            out, which is impossible. The error carries the last iterate as an Equilibrium.
        KeyboardInterrupt: Ctrl-C. Its attribute `partial` is the Equilibrium of the first rows of a batch that were
            finished, with one leading axis; for a batch of models a tuple of these, one for each model that was begun.
        ShapeError: an argument has a wrong shape.
        ModelError: invalid tolerance or max_iterations; or a v that changes the shape of a rod or opens a loop.
    Accuracy: a curvature above −1e-11 of the largest one, in units of the stiffness of springs and rods, counts as
    neutral.
    Source: Mathew 2025 §3.
    """
    model.require_positions("solve_statics")
    checks.number(tolerance, "tolerance", above=0.0)
    checks.integer(max_iterations, "max_iterations", least=1)
    known = checks.among(jacobian, ("exact", "differences"))
    checks.require(known, "jacobian", "must be 'exact' or 'differences'", jacobian)
    limits = Limits(tolerance, max_iterations, jacobian == "differences")
    u = input_rows(model, u)
    start = default_start(model) if q0 is None else checked_configuration(model, "q0", q0)
    if not np.isfinite(u).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    if u.size and np.abs(u).max() > _LARGEST:
        raise ShapeError(f"u: must be at most {_LARGEST:g}, since it is squared (got {np.abs(u).max():g})")
    warn_of_pushing(model, u)
    load_ahead(model)
    lead = leading(u=u, q0=start)
    rows = [flat(x, lead) for x in (start, u)]
    rows[0] = closed_start(model, prescribed_configuration(model, rows[0], t))
    if len(rows[0]):
        warn_of_redundancy(model, rows[0][0])
    if model.contacts.sticks and lead and len(rows[0]):  # each row has its own path (1)
        same: Any = {"v": v, "t": t, "tolerance": tolerance, "max_iterations": max_iterations}
        same |= {"stable": stable, "progress": progress, "jacobian": jacobian}
        alone: list[Equilibrium] = []
        with keeping(lambda: stacked(alone, (len(alone),)) if alone else None):
            for begin, row in zip(*rows):
                alone.append(solve_statics(model, row, begin, **same))
        return stacked(alone, lead)
    given = moving_model(model, rows[0], v, t)
    with _free_to_slip(given, rows[0]) as model:
        found: list[Iterate] = []

        def so_far() -> Equilibrium | None:
            return _result(model, found, rows[1][: len(found)], t, (len(found),)) if lead and found else None

        with progress_bar(progress, len(rows[0]), "statics", "equilibria", PATIENCE) as advance, keeping(so_far):
            for first in range(0, len(rows[0]), _AT_ONCE):
                part = [x[first : first + _AT_ONCE] for x in rows]
                place = first, lead, q0 is not None
                _search(model, part, t, limits, stable, place, found, advance)
        q = np.array([end.q for end in found]).reshape(len(found), model.nq)
        _refuse_inside_out(model, q, found, rows[1], t, lead)
        warn_of_shapes(model, q)
        warn_of_dropped_friction(model, q)
        rest = _result(model, found, rows[1], t, lead)
        counts = rest.unstable_count.reshape(-1) if stable else np.zeros(0)
        if counts.any():
            force, tried = np.array([end.force for end in found]), [end.tried for end in found]
            warn_of_instability(model, q, rows[1], t, force, counts, tried)
        path = np.array(ReleasePath.of(given, found[0].path) if found and model.contacts.sticks else None)
    return rest if model is given else replace(rest, model=given.anchored(rest.anchors), path=path)


@contextmanager
def _free_to_slip(model: Model, q: np.ndarray) -> Iterator[Model]:
    """The model. If contacts stick: a copy with anchors where it touches at the first row of q; a search may move these
    anchors. A ConvergenceError carries the model with the last anchors."""
    if not model.contacts.sticks or not len(q):
        yield model
        return
    copy = model.anchored(contact_anchors(model, q[0]))
    try:
        yield copy
    except ConvergenceError as error:
        error.partial = replace(error.partial, model=model.anchored(present_anchors(copy)))
        raise


def _search(
    model: Model,
    rows: list[np.ndarray],
    t: float,
    limits: Limits,
    stable: bool,
    place: tuple[int, tuple[int, ...], bool],
    found: list[Iterate],
    advance: Callable[..., None],
) -> None:
    """Append the ends of searches to `found`.

    Args:
        rows: configurations (n, nq) and inputs (n, nu).
        place: index of the first row in the batch, the leading axes of the batch, and whether the user gave the starts.
        advance: called with the number of finished searches.
    """
    first, lead, is_given = place
    sticks = model.contacts.sticks
    force = (_forces_at_rest if sticks else _balancing_forces)(model, rows[0], rows[1], t)
    ends = _newton(model, rows[0], force, rows[1], t, 1.0, limits)
    for k, (begin, row, end) in enumerate(zip(*rows, ends)):
        if end.remedy == _REMEDIES[CROWDED]:
            raise near_pairs_error(model)
        try:
            start = Iterate(begin, force[k], end.iterations, "")
            if model.contacts.sticks:
                start.path = (Rest(1.0, begin, force[k], present_anchors(model)),)
                end = release(_newton, model, start, end, row, t, limits)
            last, ended = end if end.path else start, ""
            is_loose = end.remedy.startswith(_REMEDIES[SINGULAR])  # at the start already
            if is_given and not sticks and not is_loose and (end.remedy or end.iterations > _QUICK):
                end, ended = _followed(model, start, row, t, limits, end, stable)
            end = _reached(model, begin, row, t, limits, end, stable, lambda said: advance(len(found), said))
            if ended:
                _warn_of_branch(first + k, batch_of(lead), ended)
            if model.contacts.sticks and not end.path:  # load steps or a descent end the path
                end = arrived(model, last, end)
            found.append(end)
        except ConvergenceError as error:
            if lead:
                raise ConvergenceError(f"instance {first + k} of {batch_of(lead)}: {error}", error.partial) from error
            raise
        advance(len(found))


def _result(model: Model, found: list[Iterate], u: np.ndarray, t: float, lead: tuple[int, ...]) -> Equilibrium:
    """The Equilibrium with leading axes `lead` from the ends of searches under inputs u (n, nu)."""
    q = np.array([end.q for end in found]).reshape(len(found), model.nq)
    force = np.array([end.force for end in found]).reshape(len(found), model.n_rows)
    rate = np.repeat(steady_velocity(model)[None], len(q), axis=0)
    left = np.zeros_like(rate)
    if len(q):
        left[:] = run_residual(model, q, rate, left, u, t, 1.0, force).host["tau"]
    driven = model.prescribed.dof[: model.n_motions - model.prescribed.n_locked]
    multipliers = np.hstack([left[:, driven], minimum_norm(model, q, force)])
    left[:, model.prescribed.dof] = 0.0
    known = np.array([_UNKNOWN if end.growing is None else end.growing for end in found], dtype=int)
    anchors = present_anchors(model)
    return Equilibrium(
        q.reshape(*lead, model.nq),
        u.reshape(*lead, model.nu).copy(),
        multipliers.reshape(*lead, model.n_multipliers - model.prescribed.n_locked),
        np.abs(left).max(axis=1, initial=0.0).reshape(lead),
        np.array([end.iterations for end in found], dtype=int).reshape(lead),
        rate.reshape(*lead, model.nv),
        model,
        t,
        np.broadcast_to(anchors, (*lead, *anchors.shape)) if lead else anchors,
        np.full(lead, None),
        known.reshape(lead),
    )


def _refuse_inside_out(
    model: Model, q: np.ndarray, ends: list[Iterate], u: np.ndarray, t: float, lead: tuple[int, ...]
) -> None:
    """Raise ConvergenceError if a rod or body is turned inside out: the equations do not hold there."""
    turned = inside_out(model, q)
    if turned is not None:
        k, what = turned
        where = f"instance {k} of {batch_of(lead)}: " if lead else ""
        text = f"{where}robot {model.name!r}: in the only equilibrium reached {what}; {CAUSE}"
        raise ConvergenceError(text, ends[k].equilibrium(model, u[k], t))


def _forces_at_rest(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
    """Constraint forces (n, n_rows) at the moment of release at q (n, nq), at rest or in the steady motion. They are
    start values of the search."""
    if not model.n_rows or not len(q):
        return np.zeros((len(q), model.n_rows))
    w = run_forward_dynamics(model, q, np.broadcast_to(steady_velocity(model), (len(q), model.nv)), u, t)
    return np.where((w.status == 0)[:, None], w.host["force"], 0.0)


def _balancing_forces(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
    """Constraint forces (n, n_rows) that leave the least residual at q, in units of the coordinates. From them,
    Newton's method moves a robot less than from those at the moment of release, which accelerations determine."""
    force = np.zeros((len(q), model.n_rows))
    for k in range(len(q) if model.n_rows else 0):
        r = static_residual(model, q[k], u[k], t, 1.0, force[k])
        if r is not None:
            S = np.where(np.isin(np.arange(model.nv), model.prescribed.dof), 0.0, model.dofs.scale)
            A = row_results(model, run_constraints(model, q[k])[0], "A")
            force[k] = np.linalg.lstsq((A * S).T, S * r[: model.nv], rcond=_RANK)[0]
    return force


def _followed(
    model: Model, start: Iterate, u: np.ndarray, t: float, limits: Limits, direct: Iterate, stable: bool
) -> tuple[Iterate, str]:
    """The end of path (1) from the start, in adaptive steps that Newton's method takes quickly; or `direct`, the end of
    Newton's method from the start, and a text that says where the path ended. The text is empty if the path has no
    branch to leave: it hardly begins, or a stable equilibrium is sought and those of the path are unstable, as deep in
    a stiff obstacle."""
    support = static_residual(model, start.q, u, t, 1.0, start.force)
    if support is None:
        return direct, ""
    whole = support[: model.nv]

    def released(here: Iterate, part: float) -> Iterate:
        rest = (1.0 - part) * whole
        quick = limits._replace(iterations=_QUICK_PART)
        return _newton(model, here.q[None], here.force[None], u[None], t, 1.0, quick, support=rest)[0]

    end, reached, why = raised(replace(start, iterations=direct.iterations), released)
    if reached == 1.0:
        return end, ""
    if reached < _BEGUN or (stable and end.unstable_count(model, u, t)):
        return direct, ""  # q0 is a guess rather than the neighbour of an equilibrium
    return replace(direct, iterations=end.iterations), f"at {100.0 * reached:.3g} % of the release from q0: {why}"


def _warn_of_branch(k: int, count: int, ended: str) -> None:
    """Issue a StabilityWarning: the equilibrium found may be on another branch than that of q0."""
    where = f"instance {k} of {count}: " if count > 1 else ""
    warnings.warn(
        f"statics: {where}the equilibria that follow from q0 end {ended}; the result may be another one. Take "
        "smaller steps from the last one, or ls.continuation",
        StabilityWarning,
        stacklevel=4,
    )


def _newton(
    model: Model,
    q: np.ndarray,
    force: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float,
    limits: Limits,
    opened: np.ndarray | None = None,
    support: Any = 0.0,
) -> list[Iterate]:
    """Damped Newton iterations from q (n, nq) and constraint forces (n, n_rows) under inputs u (n, nu). Arguments as in
    Sought."""
    opened = np.zeros(model.n_rows) if opened is None else opened
    sought = Sought(u, t, factor, opened, limits.tolerance, limits.iterations, support, limits.differences)
    found = []
    for end, push, count, why, stable in newton(model, q, force, sought):
        remedy = _REMEDIES[why].format(limit=limits.iterations)
        if why != CONVERGED and (ended := model.joint_couplings.without_value(end, NEAR_END)):
            remedy = ended
        elif why == SINGULAR:
            loose = floats_at(model, unit_quaternions(model, end), sought.u[len(found)], t, push, factor)
            remedy += f"{loose}; hold it" if loose else ": hold what floats freely"
        found.append(Iterate(unit_quaternions(model, end), push, count, remedy, 0 if stable and not remedy else None))
    return found


def _reached(
    model: Model,
    start: np.ndarray,
    u: np.ndarray,
    t: float,
    limits: Limits,
    end: Iterate,
    stable: bool,
    report: Callable[[str], None],
) -> Iterate:
    """The end of a Newton solve. If it failed: the end of load steps. If a stable equilibrium is required and it is
    unstable: the end of a descent. The descent comes first if a contact without pressure does not hold the robot at the
    start: load steps begin at the neutral configuration, where bodies may overlap."""
    if end.remedy:
        loose = stable and end.remedy.startswith(_REMEDIES[SINGULAR]) and loose_contact(model, start)
        fallen = _settled(model, start, u, t, limits, end, report) if loose else end
        if not fallen.remedy:
            return fallen
        try:
            end = _load_steps(model, start, u, t, limits, end)
        except ConvergenceError as error:
            end = replace(end, iterations=max(end.iterations, int(error.partial.iterations)))  # load steps count
            fallen = _settled(model, start, u, t, limits, end, report) if stable else end
            if fallen.remedy:
                raise
            return fallen
    unstable = stable and end.unstable_count(model, u, t)
    return _settled(model, start, u, t, limits, end, report) if unstable else end


def _settled(
    model: Model,
    start: np.ndarray,
    u: np.ndarray,
    t: float,
    limits: Limits,
    unstable: Iterate,
    advance: Callable[[str], None],
) -> Iterate:
    """The stable equilibrium that a damped descent reaches from the start, or from the unstable equilibrium. Anchors of
    contacts follow balls that slide; if no such descent succeeds, they stay until the end. If there is none:
    `unstable`, with a text about the tried descents and the anchors of before."""
    most, done, tried = _DESCENTS * max(unstable.iterations, _LEAST_ITERATIONS), 0, []
    starts = ((start, "q0"),) if unstable.remedy else ((start, "q0"), (unstable.q, "the unstable equilibrium"))
    anchors = present_anchors(model)
    for follows, (q, where) in product((True, False) if model.contacts.sticks else (False,), starts):
        if model.contacts.sticks:
            put_anchors(model, anchors)
        descent = Descent.start(model, q, u, t, follows=follows)
        left = most - done
        if descent is None or left <= 0:
            tried.append(f"none from {where}" + (", at the limit of work" if left <= 0 else ", which it cannot leave"))
            continue
        found, end = _descended(
            model,
            descent,
            t,
            limits,
            left,
            unstable,
            lambda work, done=done: advance(f"no stable equilibrium yet, {done + work} of {most} steps"),
        )
        if found is not None:
            found.iterations += unstable.iterations
            return found
        done += descent.work
        tried.append(f"one from {where} of {descent.steps} steps {end}")
    if model.contacts.sticks:
        put_anchors(model, anchors)
    return replace(unstable, tried="; ".join(tried))


def _descended(
    model: Model, descent: Descent, t: float, limits: Limits, most: int, unstable: Iterate,
    report: Callable[[int], None],
) -> tuple[Iterate | None, str]:  # fmt: skip
    """The stable equilibrium that a descent reaches; or None, and a text about the end of the descent."""
    seen = [] if unstable.remedy else [unstable.q]
    while descent.advance(most, report):
        near = descent.here
        (found,) = _newton(model, near.q[None], near.force[None], descent.u[None], t, 1.0, limits)
        descent.work += EIGENVALUES + found.iterations
        found.iterations += descent.steps
        if found.remedy:
            return None, "ended where Newton's method finds no equilibrium"
        if model.contacts.sticks:
            put_anchors(model, contact_anchors(model, found.q))
        if found.unstable_count(model, descent.u, t) == 0:
            return found, ""
        apart = [np.abs(difference(model, q, found.q) / model.dofs.scale).max(initial=0.0) for q in seen]
        if len([x for x in apart if x < _SAME]) > 1:
            return None, "came back to an unstable equilibrium"
        seen.append(found.q)
        if not descent.leave():
            return None, "ended at an unstable equilibrium"
    return (
        None,
        "was stopped at its limit of work" if descent.work >= most else "ended where no step reduces the potential",
    )


def _load_steps(model: Model, closed: np.ndarray, u: np.ndarray, t: float, limits: Limits, direct: Iterate) -> Iterate:
    """Increase loads, inputs and gravity from zero in adaptive steps. The start is the neutral configuration, or a
    closed configuration if there are loops."""
    start, slack = _unloaded(model, closed, t)[None], np.zeros((1, model.n_rows))
    (here,) = _newton(model, closed[None] if model.n_rows else start, slack, u[None], t, 0.0, limits)
    here.iterations += direct.iterations
    if here.remedy and model.n_rows:
        here = _mounted(model, start, u, t, limits, here)
    if here.remedy:
        why = f"Newton's method finds no equilibrium even of the unloaded robot: {here.remedy}"
        if here.remedy == _REMEDIES[CROWDED]:  # the neutral configuration puts bodies into each other
            why = f"{direct.remedy}; start nearer an equilibrium"
        raise ConvergenceError(f"statics: {why}", direct.equilibrium(model, u, t))

    def loaded_by(here: Iterate, part: float) -> Iterate:
        return _newton(model, here.q[None], here.force[None], u[None], t, part, limits)[0]

    here, reached, remedy = raised(here, loaded_by)
    if reached == 0.0 and direct.remedy.startswith(_REMEDIES[SINGULAR]):
        raise ConvergenceError(
            f"statics: {direct.remedy}{loose_contact(model, closed)}", direct.equilibrium(model, u, t)
        )
    if reached < 1.0:
        rod = wound_rod(model, here.q)
        why = (
            f"an interval of the rod {rod!r} turns by nearly 2π, the most that it can; give the rod more gauss_points"
            if rod
            else f"{remedy}; the equilibrium may end there (a limit point): start from another q0"
        )
        raise ConvergenceError(
            f"statics: stopped at {reached:.4g} of the load after {here.iterations} iterations: {why}",
            here.equilibrium(model, u, t, reached),
        )
    return here


_NEARLY = 0.05  # a rod whose strains cannot grow by this fraction has an interval that turns by nearly 2π


def wound_rod(model: Model, q: np.ndarray) -> str:
    """The name of a rod with an interval that turns by nearly 2π at q (nq,); empty if there is none."""
    links, neutral = model.links, model.neutral()
    for name in model.rods:
        k, more = links.names.index(name), q.copy()
        own = model.dofs.q[links.v_start[k] + links.joint[k].nv : links.v_start[k + 1]]
        more[own] += _NEARLY * (q[own] - neutral[own])
        try:
            node_motion(model, more, np.zeros(model.nv))
        except ShapeError:
            return name
    return ""


def _unloaded(model: Model, closed: np.ndarray, t: float) -> np.ndarray:
    """The neutral configuration (nq,), in which the joints of a steady motion have their coordinates of `closed`."""
    q = prescribed_configuration(model, model.neutral(), t)
    locked = model.prescribed.dof[model.n_motions - model.prescribed.n_locked :]
    plain = locked[model.dofs.q[locked] >= 0]
    q[model.dofs.q[plain]] = closed[model.dofs.q[plain]]
    for at, j, free in quaternion_joints(model):
        if j in locked:
            place = slice(at, at + (7 if free else 4))
            q[place] = closed[place]
    return q


def _mounted(model: Model, start: np.ndarray, u: np.ndarray, t: float, limits: Limits, failed: Iterate) -> Iterate:
    """The equilibrium of the unloaded robot after its loops were closed in adaptive steps; `failed` if this fails."""
    gap = loop_residual(model, start[0])

    def closed_by(here: Iterate, part: float) -> Iterate:
        return _newton(model, here.q[None], here.force[None], u[None], t, 0.0, limits, (1.0 - part) * gap)[0]

    here = closed_by(Iterate(start[0], np.zeros(model.n_rows), 0, ""), 0.0)
    if here.remedy:
        return failed
    here.iterations += failed.iterations
    here, reached, _ = raised(here, closed_by)
    return here if reached == 1.0 else failed
