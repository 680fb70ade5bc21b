"""Derivatives of equilibria and of natural frequencies about them, with respect to inputs and design values.

The derivatives of an equilibrium follow from the implicit function theorem:

    [∂r/∂q, −Aᵀ; A_q, 0] (dq; dλ) = (B du − r_p dp; −e_p dp),   r = ID(q, v, 0) − B u − Aᵀ λ               (1)

A function L of q has the derivatives dL/du = μᵀ (B; 0) and dL/dp = −μᵀ (r_p; e_p), where μ solves the transpose of (1)
with dL/dq on the right. Where contacts stick, the equilibrium depends on the path on which the robot was released, and
its derivatives are those of releases. A simple natural frequency has

    dω² = xᵀ (dK − ω² dM) x − 2 xᵀ (K − ω² M) A⁺ dA x,   xᵀ M x = 1,   A⁺ = w²Aᵀ (A w²Aᵀ)⁻¹                (2)

dK, dM and dA are differences of fourth order along the derivative of the equilibrium.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.configuration import integrate
from lissom.dynamics.contacts import anchors_after, contact_anchors
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import modes
from lissom.errors import AccuracyWarning, ConvergenceError, ShapeError
from lissom.gradients.design_changes import CENTRAL, SHARE, Stencil
from lissom.gradients.designs import Designs
from lissom.gradients.releases import ReleaseDerivatives, Systems, release_derivatives, release_states
from lissom.gradients.stage_systems import StageStates
from lissom.launch.workspace import batch_of, independent_rows
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import formatting
from lissom.robot.paths import size_of
from lissom.statics.equilibrium import Equilibrium, ReleasePath
from lissom.statics.stability import floats_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]


@final
@formatting.in_one_line
@dataclass(frozen=True)
class EquilibriumDerivatives:
    """Derivatives of the configuration of an equilibrium, or of a function of it. A batch adds leading axes.

    Fields:
        u: with respect to the inputs: of q in the tangent space of `integrate`, (nv, nu), or of a function, (nu,).
        parameters: with respect to design values, by path: of q, (nv, *shape of the value), or of a function, in the
            shape of the value. The derivative with respect to a pose is that with respect to an increment (w; u) on its
            right, (6,).
        q0: with respect to the start of `solve_statics`, in the tangent space of `integrate`: of q, (nv, nv), or of a
            function, (nv,). None if no contact sticks, or if a descent moved anchors, which then stay.
    """

    u: np.ndarray
    parameters: dict[str, np.ndarray]
    q0: np.ndarray | None = None


_SAME_ANCHOR = 1e-9  # difference of anchors [m, -] that is rounding
_MOST_AMPLIFIED = 1e13  # rounding errors of 1e-16 become 1e-3


def equilibrium_derivatives(
    equilibrium: Equilibrium, dL_dq: ArrayLike | None = None, *, parameters: Sequence[str] = ()
) -> EquilibriumDerivatives:
    """Exact derivatives of an equilibrium.

    Args:
        equilibrium: of `solve_statics`, of one robot or of a batch.
        dL_dq: derivatives of a function L with respect to q, in the tangent space of `integrate`, shape (..., nv). Then
            the result has the derivatives of L, from one linear system for any number of inputs. None: the result has
            the derivatives of q.
        parameters: paths of design values (`Robot.described_values`), numbers or arrays of numbers.
    Returns:
        EquilibriumDerivatives [rad, m or strain units per unit of each]. Where contacts stick, they are those along
        `Equilibrium.path`: for the same start, given anchors and shares of the supporting forces. An equilibrium
        without a path, or whose anchors a descent moved, has fixed anchors.
    Raises:
        ConvergenceError: the equilibrium has no derivative: it is at a fold or a branching, or neutral.
        ShapeError: the argument, the expected and the received shape. ModelError: a path leads to no number.
    Accuracy: with respect to inputs exact, to rounding times the condition number of (1). With respect to design values
    1e-8, since their tables are differenced. Coordinates with a prescribed motion, or with a steady motion, do not
    change.
    """
    found = equilibrium.model
    model = found.common if isinstance(found, ModelBatch) else found
    lead, nv = equilibrium.q.shape[:-1], model.nv
    rows = batch_of(lead)
    seeds, shape = np.eye(nv), (*lead, nv)
    if dL_dq is not None:
        weights, shape = np.asarray(dL_dq, dtype=np.float64), lead
        if weights.shape != (*lead, nv):
            raise ShapeError(f"dL_dq: expected shape {(*lead, nv)}, got {weights.shape}")
        seeds = weights.reshape(rows, 1, nv)
    every = np.broadcast_to(seeds, (rows, *seeds.shape[-2:]))
    states = _states(model, equilibrium, rows)
    paths = _paths_of(equilibrium)
    if rows and len(paths) == rows:
        own = [Designs(path.model, tuple(parameters), len(path.q)) for path in paths]
        given = zip(paths, states.u, states.v, states.t.tolist())
        each = zip((release_states(*x) for x in given), paths, own, every)
        parts = [_along_path(equilibrium, path, along, designs, x) for along, path, designs, x in each]
        by_u, by_p, by_q0 = (np.array(x) for x in zip(*parts))
        return EquilibriumDerivatives(
            by_u.reshape((*shape, model.nu)),
            own[0].split(by_p.reshape((*shape, own[0].count))),
            by_q0.reshape((*shape, nv)),
        )
    if any(isinstance(path, ReleasePath) for path in equilibrium.path.ravel()):
        warnings.warn(
            f"robot {model.name!r}: a descent to this equilibrium moved anchors of contacts that stick; its "
            "derivatives hold them where they are, and there are none with respect to the start; start nearer to it",
            AccuracyWarning,
            stacklevel=3,
        )
    systems = _linear_systems(model, states)
    designs = Designs(model, tuple(parameters), rows)
    slopes = np.swapaxes(designs.slopes(states).residual, -1, -2)  # (rows, unknowns, count)
    solution = every @ _inverses(model, states, systems.matrix, equilibrium)[:, :nv]
    by_u, by_p = solution @ systems.B, -solution @ slopes
    return EquilibriumDerivatives(
        by_u.reshape((*shape, model.nu)), designs.split(by_p.reshape((*shape, designs.count)))
    )


def _paths_of(equilibrium: Equilibrium) -> list[ReleasePath]:
    """The path of each instance; none if contacts do not stick, or if a descent moved anchors of an instance."""
    paths = [path for path in equilibrium.path.ravel() if isinstance(path, ReleasePath)]
    return paths if all(map(_is_followed, paths)) else []


def _is_followed(path: ReleasePath) -> bool:
    """Whether all anchors of a path follow from those before. A descent moves them at states that the path lacks."""
    if len(path.q) == 1:
        return True
    anchors = path.anchors
    after = anchors_after(path.model, anchors[:-1], path.q[:-1], np.zeros((len(path.q) - 1, path.model.nv)))
    return bool(np.allclose(after, anchors[1:], rtol=0.0, atol=_SAME_ANCHOR, equal_nan=True))


def _along_path(
    equilibrium: Equilibrium, path: ReleasePath, states: StageStates, designs: Designs, by_q: np.ndarray,
    by_z: np.ndarray | None = None,
) -> ReleaseDerivatives:  # fmt: skip
    """Derivatives of functions of the end of a path, with derivatives by_q (m, nv) and by_z (m, numbers)."""
    systems = _linear_systems(path.model, states)
    inverse = np.zeros_like(systems.matrix)
    after = StageStates(*(x[1:] if isinstance(x, np.ndarray) else x for x in vars(states).values()))
    inverse[1:] = _inverses(path.model, after, systems.matrix[1:], equilibrium)
    return release_derivatives(path, states, systems, inverse, designs, by_q, by_z)


def _inverses(model: Model, s: StageStates, matrix: np.ndarray, equilibrium: Equilibrium) -> np.ndarray:
    """The inverses of the matrices (1) at states in rows.

    Raises:
        ConvergenceError: a matrix is singular.
    """
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.full_like(matrix, np.inf)
    if not _are_regular(model, matrix, inverse):
        rule = "an equilibrium has derivatives only if its tangent stiffness is regular, not at a fold or if it floats"
        raise ConvergenceError(f"robot {model.name!r}: {rule}{_floating_link(model, s, matrix)}", equilibrium)
    return inverse


def _are_regular(model: Model, matrix: np.ndarray, inverse: np.ndarray) -> bool:
    """Whether solutions q of all matrices (rows, n, n) have three right digits or more, by the condition number of
    Bauer and Skeel, which does not depend on the units of the equations."""
    if not np.isfinite(inverse).all():
        return False
    scale, nv = model.dofs.scale, model.nv
    amplified = np.abs(inverse)[:, :nv] @ np.abs(matrix)[..., :nv] * scale / scale[:, None]
    return bool((amplified.sum(axis=-1) < _MOST_AMPLIFIED).all())


def _floating_link(model: Model, s: StageStates, matrix: np.ndarray) -> str:
    """End of an error: the link that floats freely, at the most singular matrix; empty if none does."""
    k = int(np.argmax(np.linalg.cond(matrix)))
    force = np.zeros(model.n_rows) if s.force is None else s.force[k]
    own = model if s.anchors is None else model.anchored(s.anchors[k])
    loose = floats_at(own, s.q[k], s.u[k], float(s.t[k]), force)
    return f"{loose}; hold it" if loose else ""


def _states(model: Model, found: Equilibrium, rows: int) -> StageStates:
    """The states of the equilibria of a batch, in rows."""
    driven = model.n_motions - model.prescribed.n_locked
    q, v, u = (x.reshape(rows, x.shape[-1]) for x in (found.q, found.v, found.u))
    force = found.multipliers[..., driven:].reshape(rows, model.n_rows)
    return StageStates(q, v, np.zeros_like(v), u, force, np.full(rows, found.t), None, None)


def _linear_systems(model: Model, s: StageStates) -> Systems:
    """The matrices of (1), with rows of the identity in place of dependent rows of the constraint Jacobian, and
    (B; 0)."""
    nv, m, rows = model.nv, model.n_rows, len(s.t)
    matrix, B = np.zeros((rows, nv + m, nv + m)), np.zeros((rows, nv + m, model.nu))
    force = np.zeros((rows, m)) if s.force is None else s.force
    for k in range(rows) if model.calls_python else [slice(0, rows)]:
        part = slice(k, k + 1) if isinstance(k, int) else k
        given = (s.q[part], s.v[part], s.a[part], s.u[part], s.t[part])
        anchors = None if s.anchors is None else s.anchors[part]
        K, _, _, workspace = residual_derivatives(model, *given, 1.0, force[part], anchors=anchors)
        matrix[part, :nv, :nv] = K
        if m:
            A, A_q = (row_results(model, workspace, name, (len(K),)) for name in ("A", "A_q"))
            dependent = workspace.host["slot"] < 0
            for X in (A, A_q):
                X[dependent], X[..., model.prescribed.dof] = 0.0, 0.0
            matrix[part, nv:, :nv], matrix[part, :nv, nv:] = A_q, -np.swapaxes(A, -1, -2)
            at, row = np.nonzero(dependent)
            matrix[part][at, nv + row, nv + row] = 1.0
    if model.nu:
        B[:, :nv] = input_response(model, s.q, s.v, s.u, s.t)
    B[:, model.prescribed.dof] = 0.0
    return Systems(matrix, B)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ModeDerivatives:
    """Natural frequencies about an equilibrium, and their derivatives.

    Fields:
        frequencies: those of `modes`, (n,) [rad/s].
        u: derivatives with respect to the inputs, (n, nu).
        parameters: derivatives with respect to design values by path, (n, *shape of the value).
    """

    frequencies: np.ndarray
    u: np.ndarray
    parameters: dict[str, np.ndarray]


def mode_derivatives(equilibrium: Equilibrium, *, parameters: Sequence[str] = ()) -> ModeDerivatives:
    """Total derivatives of the undamped natural frequencies about an equilibrium at rest; the equilibrium changes too.

    Args:
        equilibrium: result of `solve_statics` for one robot.
        parameters: paths of design values (`Robot.described_values`).
    Returns:
        ModeDerivatives [rad/s per unit of each]. Of equal frequencies only the sum has derivatives.
    Raises:
        ShapeError: a batch of equilibria, or one in motion. ConvergenceError, ModelError: as equilibrium_derivatives.
    Accuracy: 1e-8 of the larger terms of (2), whose matrices are differenced. The result is wrong if a contact begins,
        ends or slides, or a tendon becomes slack, within the steps of these differences, 2e-4 of a design value.
    """
    model = equilibrium.model
    if equilibrium.q.ndim != 1 or not isinstance(model, Model):
        raise ShapeError(f"equilibrium: expected one of shape ({model.nq},), got {equilibrium.q.shape}")
    if equilibrium.v.any():
        raise ShapeError("equilibrium: expected one at rest, got one in a steady motion")
    q, u, t = equilibrium.q, equilibrium.u, equilibrium.t
    found = modes(model, q, u, v=np.zeros(model.nv), t=t)
    designs = Designs(model, tuple(parameters), 1)
    here, by_u, by_p = _end_moves(equilibrium, tuple(parameters))
    at = _matrices(here.anchored(model), q, u, t)
    by_input = [_weighted_sum(_matrices_by_input(model, here, u, t, by_u.of(k), k)) for k in range(model.nu)]
    stencils = enumerate(designs.stencils[0])
    by_design = [_weighted_sum(_matrices_by_design(stencil, here, u, t, by_p.of(k))) for k, stencil in stencils]
    changes = [*by_input, *by_design]
    rates = np.array([_frequency_derivatives(model, found.frequencies, found.shapes, at, s) for s in changes])
    rates = rates.reshape(model.nu + designs.count, len(found.frequencies)).T
    return ModeDerivatives(found.frequencies, rates[:, : model.nu], designs.split(rates[:, model.nu :]))


@final
class _End(NamedTuple):
    """An equilibrium, or its derivatives: q, and the anchors of contacts that stick, (n_pairs, 6), or None. The numbers
    of several derivatives are along the last axis."""

    q: np.ndarray
    anchors: np.ndarray | None

    def of(self, k: int) -> _End:
        """Derivative k of several."""
        return _End(self.q[..., k], None if self.anchors is None else self.anchors[..., k])

    def moved(self, model: Model, step: float, move: _End) -> _End:
        """The equilibrium of a model after a step along a derivative."""
        anchors = None if self.anchors is None or move.anchors is None else self.anchors + step * move.anchors
        return _End(integrate(model, self.q, step * move.q), anchors)

    def anchored(self, model: Model) -> Model:
        """The model with these anchors. Those at the limit of friction stick: rounding and terms of second order must
        not make them slide."""
        if self.anchors is None:
            return model
        own = model.anchored(self.anchors)
        return own.anchored(contact_anchors(own, self.q))


def _end_moves(equilibrium: Equilibrium, paths: tuple[str, ...]) -> tuple[_End, _End, _End]:
    """An equilibrium, and its derivatives with respect to inputs and to the numbers of design values."""
    released, nv = _paths_of(equilibrium), equilibrium.model.nv
    if not released:
        moves = equilibrium_derivatives(equilibrium, parameters=paths)
        flat = [x.reshape(nv, -1) for x in moves.parameters.values()]
        by_p = np.concatenate([np.zeros((nv, 0)), *flat], axis=1)
        return _End(equilibrium.q, None), _End(moves.u, None), _End(by_p, None)
    (path,) = released
    designs, anchors = Designs(path.model, paths, len(path.q)), equilibrium.anchors
    numbers = np.flatnonzero(np.isfinite(anchors))
    by_q, by_z = np.eye(nv + len(numbers), nv), np.zeros((nv + len(numbers), anchors.size))
    by_z[nv + np.arange(len(numbers)), numbers] = 1.0
    states = release_states(path, equilibrium.u, equilibrium.v, equilibrium.t)
    found = _along_path(equilibrium, path, states, designs, by_q, by_z)

    def end(by: np.ndarray) -> _End:
        moved = np.zeros((anchors.size, by.shape[1]))
        moved[numbers] = by[nv:]
        return _End(by[:nv], moved.reshape(*anchors.shape, -1))

    return _End(equilibrium.q, anchors), end(found.u), end(found.parameters)


def _matrices(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> _Matrices:
    """The symmetric matrices K and M, and the independent rows of the constraint Jacobian, at rest."""
    rest = np.zeros(model.nv)
    force = run_forward_dynamics(model, q, rest, u, t).host["force"][0].copy() if model.n_rows else np.zeros(0)
    K, _, M, workspace = residual_derivatives(model, q, rest, rest, u, t, 1.0, force)
    A = row_results(model, workspace, "A")[independent_rows(workspace)]
    A[:, model.prescribed.dof] = 0.0
    return 0.5 * (K + K.T), M, A


def _matrices_by_design(
    stencil: Stencil, here: _End, u: np.ndarray, t: float, move: _End
) -> Iterator[tuple[float, Any]]:
    """The matrices at the points of a stencil of a design value, each with its weight."""
    for changed, weight, step in zip(stencil.models, stencil.weights, stencil.steps):
        there = here.moved(changed, step, move)
        with changed.temporary_buffers():
            yield weight, _matrices(there.anchored(changed), there.q, u, t)


def _matrices_by_input(
    model: Model, here: _End, u: np.ndarray, t: float, move: _End, k: int
) -> Iterator[tuple[float, Any]]:
    """The matrices at the points of a central stencil of input k, each with its weight."""
    h = 10.0 * SHARE * size_of(u, k, default=1.0)
    for place, weight in zip(*CENTRAL):
        inputs, there = u.copy(), here.moved(model, place * h, move)
        inputs[k] += place * h
        yield weight / h, _matrices(there.anchored(model), there.q, inputs, t)


def _weighted_sum(parts: Iterator[tuple[float, Any]]) -> _Matrices:
    """The weighted sum of each of the matrices."""
    sums: list[Any] = [0.0, 0.0, 0.0]
    for weight, found in parts:
        sums = [x + weight * y for x, y in zip(sums, found)]
    return sums[0], sums[1], sums[2]


def _frequency_derivatives(
    model: Model, frequencies: np.ndarray, shapes: np.ndarray, here: _Matrices, slope: _Matrices
) -> np.ndarray:
    """dω of all frequencies by (2). here: K, M and A. slope: dK, dM and dA."""
    K, M, A = here
    squares = np.sign(frequencies) * frequencies**2
    rate = np.einsum("ik,ij,jk->k", shapes, slope[0], shapes)
    rate -= squares * np.einsum("ik,ij,jk->k", shapes, slope[1], shapes)
    if len(A):
        weights = model.dofs.scale**2
        weights = np.where(np.isin(np.arange(model.nv), model.prescribed.dof), 0.0, weights)
        back = (weights[:, None] * A.T) @ np.linalg.solve((A * weights) @ A.T, slope[2] @ shapes)
        rate -= 2.0 * np.einsum("ik,ik->k", K @ shapes - (M @ shapes) * squares, back)
    size = np.abs(frequencies)
    return rate / np.where(size > 0.0, 2.0 * size, np.inf)
