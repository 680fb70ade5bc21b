"""Small motions about a state of rest or of steady motion (q, v).

A nominal motion moves the tangent space of `integrate` along. For a pose g = g₀ exp(δ) with ġ = g (v + δv)^,

    dδ/dt = δv − ad_v δ      (δω − ω × δ for a spherical joint, δv for coordinates that add)              (1)

With C = ∂ID/∂v, K = ∂(ID(q, v, a) − B u − Aᵀ λ)/∂q and (1),

    M δa + C δv + K δq − Aᵀ δλ = B δu                                                                     (2)

On the motions δq = N y that loops and prescribed motions leave, δv = N ẏ + G N y and δa = N ÿ + G N ẏ with G = ad_v, so

    M̂ ÿ + Ĉ ẏ + K̂ y = 0,   M̂ = Nᵀ M N,   Ĉ = Nᵀ (M G + C) N,   K̂ = Nᵀ (K + C G) N                       (3)

At rest and without damping Ĉ = 0. About a steady motion Ĉ holds the gyroscopic terms, and K̂ the centrifugal ones.
Source: L. Meirovitch, J. Appl. Mech. 42, 1975 (the symmetric eigenproblem of gyroscopic systems).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from lissom.dynamics.accuracy import DOUBTFUL, corrected, finer, links_not_estimated
from lissom.dynamics.actuation import input_rows
from lissom.dynamics.assembly import consistent_velocity
from lissom.dynamics.configuration import checked_configuration, groups
from lissom.dynamics.forward_dynamics import forward_dynamics, run_forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics_derivatives import (
    inverse_dynamics_derivatives,
    residual_derivatives,
    row_results,
)
from lissom.errors import AccuracyWarning, ShapeError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import chosen_rows, require_finite
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks, formatting
from lissom.systems.bordered import allowed_motions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def moving_velocity(model: Model, v: Any, t: float) -> np.ndarray:
    """v (nv,); where it is None prescribed joints have the velocity of their motions at time t, and the others none."""
    if v is None:
        rate = np.zeros(model.nv)
        if model.n_motions:
            rate[model.prescribed.dof] = model.motions(t)[1]
        return rate
    rate = np.asarray(v, dtype=float)
    if rate.shape != (model.nv,) or not np.isfinite(rate).all():
        raise ShapeError(f"v: expected finite values of shape ({model.nv},), got {v!r}")
    return rate.copy()


def in_motion(model: Model, v: np.ndarray) -> Model:
    """The model in a steady motion v, for equilibria about it. Prescribed joints have the velocity v. Other coordinates
    with a velocity are held as if they had a motion, spherical and free joints whole. Without motion: the model."""
    if not v.any():
        return model
    moving = v != 0.0
    for _, j, free in groups(model):
        joint = slice(j, j + 6 if free else j + 3)
        moving[joint] = moving[joint].any()
    moving[model.prescribed.dof] = False
    held = np.flatnonzero(moving)
    _keep_shape(model, held, v)
    if len(held):
        model = model.cached(("held", tuple(held.tolist())), lambda: model.with_locked(held, None))
    return replace(model, prescribed=replace(model.prescribed, steady=v))


def _keep_shape(model: Model, held: np.ndarray, v: np.ndarray) -> None:
    """Raise ModelError where a rod is to change its shape steadily."""
    for j in held.tolist():
        k = int(np.searchsorted(model.links.v_start, j, side="right")) - 1
        of_joint = j < int(model.links.v_start[k]) + model.links.joint[k].nv
        rule = f"must be zero for the shape of link {model.links.names[k]!r}, which a steady motion keeps"
        checks.require(of_joint, f"v[{j}]", rule, float(v[j]))


def steady_velocity(model: Model, factor: float = 1.0) -> np.ndarray:
    """Velocity (nv,) of a model of in_motion, scaled so that its inertia forces are multiplied by a factor."""
    return np.zeros(model.nv) if model.prescribed.steady is None else np.sqrt(factor) * model.prescribed.steady


def carried(model: Model, v: np.ndarray) -> np.ndarray:
    """The matrix ad_v of (1), shape (nv, nv), zero but for spherical and free joints."""
    turn = np.zeros((model.nv, model.nv))
    for _, j, free in groups(model):
        spin = _cross_matrix(v[j : j + 3])
        turn[j : j + 3, j : j + 3] = spin
        if free:
            turn[j + 3 : j + 6, j + 3 : j + 6] = spin
            turn[j + 3 : j + 6, j : j + 3] = _cross_matrix(v[j + 3 : j + 6])
    return turn


def _cross_matrix(w: np.ndarray) -> np.ndarray:
    """w^ with w^ x = w × x."""
    return np.cross(w, np.eye(3)).T


_SYMMETRIC = 1e-9  # entry by entry, in units of the diagonal


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Linearization:
    """State matrices: ẋ = A x + B δu for x = (δq, δv), δq in the tangent space of `integrate`.

    Fields:
        A: shape (2 nv, 2 nv). B: shape (2 nv, nu). v: the velocity about which they hold (nv,).
    """

    A: np.ndarray
    B: np.ndarray
    v: np.ndarray


@final
@dataclass(frozen=True)
class ModesAccuracy:
    """Estimated relative errors of frequencies by the points along rods and in bodies and by the bases.

    Fields:
        points, basis: of each mode, (n,) [-]. cure: the change of the model that lowers the error of
        the lowest mode, "" without one. not_estimated: links whose basis is not among them, as in `Accuracy`.
    """

    points: np.ndarray
    basis: np.ndarray
    cure: str
    not_estimated: tuple[str, ...] = ()

    @property
    def error(self) -> np.ndarray:
        """points + basis (n,) [-]."""
        return self.points + self.basis

    def __repr__(self) -> str:
        lowest = ", ".join(f"{100 * x:.1e} %" for x in self.error.ravel()[:4])
        parts = [f"lowest modes: {lowest}", *([self.cure] if self.cure else [])]
        parts += [f"basis of {name} not estimated" for name in self.not_estimated]
        return formatting.in_brackets("ModesAccuracy", "; ".join(parts))


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Modes:
    """Free vibrations δq(t) = Re(shape · exp(s t)) about a state of rest or of steady motion.

    Fields:
        frequencies: rising, shape (n,) [rad/s]. At rest and undamped n counts the motions that prescribed motions and
        loops leave, and a frequency is negative, −sqrt(−ω²), where the equilibrium is unstable; otherwise |Im s|.
        shapes: one in each column, shape (nv, n). At rest and undamped real, with shapesᵀ M shapes the identity;
        otherwise complex, each with xᴴ M x = 1 and its entry of the largest share in that real and positive.
        exponents: s, complex, shape (n,) [1/s]: of each conjugate pair the one with Im s > 0, and every real one, so
        that n may exceed the number of motions where some do not oscillate. One with Re s > 0 grows.
        v: the velocity about which they hold (nv,).
        model, q, u, t, damped: the arguments.
    """

    frequencies: np.ndarray
    shapes: np.ndarray
    exponents: np.ndarray
    v: np.ndarray
    model: Model | ModelBatch = field(repr=False, compare=False)
    q: np.ndarray = field(repr=False, compare=False)
    u: np.ndarray = field(repr=False, compare=False)
    t: float = field(repr=False, compare=False)
    damped: bool = field(repr=False, compare=False)

    @cached_property
    def accuracy(self) -> ModesAccuracy:
        """Estimated errors of the frequencies by points and bases, from finer models about the same
        equilibrium; computed when first asked for, with an AccuracyWarning where that of the lowest is above 1 %."""
        if not isinstance(self.model, ModelBatch):
            return accuracy_of_modes(self.model, self.q, self.u, self.v, self.t, self.frequencies, self.damped)
        rows = zip(self.model, self.q, self.u, self.v, np.asarray(self.t), self.frequencies, np.asarray(self.damped))
        each = [accuracy_of_modes(one, q, u, v, float(t), w, bool(damped)) for one, q, u, v, t, w, damped in rows]
        return ModesAccuracy(
            np.array([x.points for x in each]), np.array([x.basis for x in each]), each[0].cure, each[0].not_estimated
        )

    @property
    def damping_ratios(self) -> np.ndarray:
        """−Re s/|s|, the share of critical damping; 0 where s is 0, negative where a motion grows, shape (n,)."""
        size = np.abs(self.exponents)
        return -np.real(self.exponents) / np.where(size > 0.0, size, 1.0)


@over_models("q", "u", "v")
def linearize(
    model: Model, q: ArrayLike, u: ArrayLike | None = None, *, v: ArrayLike | None = None, t: float = 0.0
) -> Linearization:
    """State matrices of small motions about a state of rest or of motion.

        δq̇ = δv − ad_v δq,   δv̇ = ∂a/∂q δq + ∂a/∂v δv + ∂a/∂u δu,   a by forward_dynamics

    Args:
        q: configuration, shape (nq,). u: inputs, shape (nu,); None is zero.
        v: velocity, shape (nv,). None: prescribed joints move as their motions say at t, all others stand, but for what
            loops carry along.
        t: time of loads and prescribed motions, whose accelerations count [s].
    Returns:
        Linearization, whose v is the velocity used. Rows and columns of prescribed coordinates are zero. About a state
        that is no equilibrium, or a motion that is not steady, the matrices are those of this instant.
    Raises:
        ShapeError, ModelError: as forward_dynamics.
    Accuracy: exact derivatives of the discrete model. With loops they hold where these are closed and keep so.
    """
    n, row, given = model.nv, _one(model, q), _inputs(model, u)
    rate = _velocity(model, row, v, t)
    da_dq, da_dv, da_du = forward_dynamics_derivatives(model, row, rate, given, t)
    kinematic = np.hstack([-carried(model, rate), np.eye(n)])
    kinematic[model.prescribed.dof] = 0.0
    A = np.vstack([kinematic, np.hstack([da_dq, da_dv])])
    return Linearization(A, np.vstack([np.zeros((n, model.nu)), da_du]), rate)


@over_models("q", "u", "v")
def modes(
    model: Model,
    q: ArrayLike,
    u: ArrayLike | None = None,
    *,
    v: ArrayLike | None = None,
    damped: bool = False,
    t: float = 0.0,
) -> Modes:
    """Natural frequencies, exponents and shapes about an equilibrium, at rest or in steady motion.

    About a robot that turns steadily gyroscopic and centrifugal terms are in, and shapes are complex: a motion
    y cos ωt + z sin ωt has the entries 1 and −i, and so turns from y to z. Shapes are in the robot's own coordinates:
    behind a joint that turns at Ω a whirl of frequency ω in space has ω − Ω forward and ω + Ω backward.

    Args:
        q: equilibrium, shape (nq,). u: inputs, shape (nu,); None is zero.
        v: steady velocity, shape (nv,), kept up. None: prescribed joints move as their motions say at t, all others
            stand, but for what loops carry along.
        damped: whether what dissipates counts: dampers, viscosity of rods, drag and friction; without it the forces
            that loads have at v act, but not their change with δv.
        t: time of loads and prescribed motions [s], whose speed is taken as kept up.
    Returns:
        Modes. At rest and undamped the stiffness is taken as symmetric: with loads that turn with the body use
        `damped` or linearize there.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: a coordinate moves no mass.
    Accuracy: exact for the discrete model.
    Source: Meirovitch 1975.
    """
    row, given = _one(model, q), _inputs(model, u)
    rate, steady = _velocity(model, row, v, t), np.zeros(model.nv)
    force, asked = np.zeros(model.n_rows), (model, row, given, t, damped)
    if model.n_rows:  # the forces of loops, next to equilibrium
        w = run_forward_dynamics(model, row, rate, given, t)
        force = w.host["force"][0].copy()
    K, C, M, w = residual_derivatives(model, row, rate, steady, given, t, 1.0, force)
    require_finite(K, C, M)
    A = row_results(model, w, "A")
    N = allowed_motions(model, A, chosen_rows(w))
    try:
        if not (damped or rate.any()):
            squares, shapes = eigh(*(0.5 * N.T @ (X + X.T) @ N for X in (K, M)))
            frequencies = np.sign(squares) * np.sqrt(np.abs(squares))
            return Modes(frequencies, N @ shapes, np.sqrt(-squares.astype(complex)), rate, *asked)
        if not damped:
            C = inverse_dynamics_derivatives(model, row, rate, steady, elastic=False, loads=False)[1]
        G = carried(model, rate)
        exponents, shapes = _oscillations(*(N.T @ X @ N for X in (K + C @ G, M @ G + C, M)))
    except LinAlgError:
        forward_dynamics(model, q, rate, u, t)  # names the coordinate that moves no mass
        raise
    order = np.lexsort((np.real(exponents), np.imag(exponents)))
    return Modes(np.imag(exponents)[order], _unit_shapes(M, N @ shapes[:, order]), exponents[order], rate, *asked)


def accuracy_of_modes(
    model: Model, q: np.ndarray, u: np.ndarray, v: np.ndarray, t: float, frequencies: np.ndarray, damped: bool
) -> ModesAccuracy:
    """Errors of frequencies, rising, against those of finer models about the equilibrium of these."""
    found, not_estimated = [], tuple(sorted(links_not_estimated(model)))
    for enriched in (False, True):
        fine = finer(model, enriched=enriched)
        if fine is None:
            found.append(frequencies)
            continue
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
        cure = cure if points[lowest] + basis[lowest] > 0.0 else ""
        if points[lowest] + basis[lowest] > DOUBTFUL:
            text = f"the lowest frequency is off by about {100 * (points + basis)[lowest]:.1g} %; take {cure}"
            warnings.warn(text, AccuracyWarning, stacklevel=4)
    return ModesAccuracy(points, basis, cure, not_estimated)


def _oscillations(K: np.ndarray, C: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exponents with Im s ≥ 0 and shapes y of (3). With K̂ = Lₖ Lₖᵀ and M̂ = L Lᵀ in the unknowns (Lᵀ ẏ, Lₖᵀ y)

        s z = [−L⁻¹ Ĉ L⁻ᵀ, −L⁻¹ K̂ Lₖ⁻ᵀ; Lₖᵀ L⁻ᵀ, 0] z                                                     (4)

    which is skew where Ĉ is, so that its exponents are imaginary to the last bit. Where K̂ is not symmetric and
    positive definite, Lₖ is that of a shifted symmetric part.
    """
    n = len(K)
    L = cholesky(0.5 * (M + M.T), lower=True)
    L_K, conservative = _metric(K, C, M, L)
    if conservative:
        K, C = 0.5 * (K + K.T), 0.5 * (C - C.T)
    lower = solve_triangular(L, L_K, lower=True).T  # Lₖᵀ L⁻ᵀ
    upper = solve_triangular(L_K, solve_triangular(L, K, lower=True).T, lower=True).T
    damping = solve_triangular(L, solve_triangular(L, C, lower=True).T, lower=True).T
    matrix = np.block([[-damping, -upper], [lower, np.zeros((n, n))]])
    if conservative:
        omega, z = eigh(-0.5j * (matrix - matrix.T))
        s, z = 1j * omega[n:], z[:, n:]
    else:
        s, z = np.linalg.eig(matrix)
        s, z = s[np.imag(s) >= 0.0], z[:, np.imag(s) >= 0.0]
    return s, solve_triangular(L_K, z[n:], lower=True, trans=1)


def _metric(K: np.ndarray, C: np.ndarray, M: np.ndarray, L: np.ndarray) -> tuple[np.ndarray, bool]:
    """Lₖ of (4), and whether K̂ is symmetric and positive definite and Ĉ skew."""
    stiff, heavy = np.sqrt(np.abs(np.diag(K))), np.sqrt(np.diag(M))
    rates = C / np.outer(heavy, heavy)
    symmetric = (np.abs(K - K.T) <= _SYMMETRIC * np.outer(stiff, stiff)).all()
    skew = (np.abs(rates + rates.T) <= _SYMMETRIC * np.abs(rates).max(initial=0.0)).all()
    symmetric_part = 0.5 * (K + K.T)
    try:
        return cholesky(symmetric_part, lower=True), bool(symmetric and skew)
    except LinAlgError:
        squares = eigh(symmetric_part, 0.5 * (M + M.T), eigvals_only=True)
        pull = max(-2.0 * squares[0], float(np.abs(rates).max()) ** 2, 1e-12 * squares[-1], np.finfo(float).tiny)
        return cholesky(symmetric_part + pull * M, lower=True), False


def _unit_shapes(M: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """Complex shapes (nv, n) with xᴴ M x = 1, the entry of the largest share in it real and positive."""
    share = np.abs(shapes) ** 2 * np.diag(M)[:, None]
    first = np.argmax(share >= (1.0 - 1e-6) * share.max(axis=0), axis=0)  # of equals the first
    lead = shapes[first, np.arange(shapes.shape[1])]
    shapes = shapes * (np.abs(lead) / lead)
    return shapes / np.sqrt(np.einsum("ik,ij,jk->k", shapes.conj(), M, shapes).real)


def _velocity(model: Model, q: np.ndarray, v: Any, t: float) -> np.ndarray:
    """Velocity by moving_velocity; without a v, what loops make of it."""
    rate = moving_velocity(model, v, t)
    return consistent_velocity(model, q, rate) if v is None and model.n_rows and rate.any() else rate


def _one(model: Model, q: Any) -> np.ndarray:
    """q as one configuration (nq,)."""
    row = checked_configuration(model, "q", q)
    if row.ndim != 1:
        raise ShapeError(f"q: expected shape ({model.nq},), got {row.shape}")
    return row


def _inputs(model: Model, u: Any) -> np.ndarray:
    """u as one set of inputs (nu,)."""
    row = input_rows(model, u)
    if row.ndim != 1 or not np.isfinite(row).all():
        raise ShapeError(f"u: expected finite values of shape ({model.nu},), got {row!r}")
    return row
