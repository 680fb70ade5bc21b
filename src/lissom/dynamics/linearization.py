"""Small motions about a state of rest or of steady motion (q, v).

With C = ∂ID/∂v, K = ∂(ID(q, v, a) − B u − Aᵀ λ)/∂q and dδq/dt = δv − ad_v δq (steady_motion (1)),

    M δa + C δv + K δq − Aᵀ δλ = B δu                                                                     (1)

On the motions δq = N y that loops and prescribed motions leave, δv = N ẏ + G N y and δa = N ÿ + G N ẏ with G = ad_v, so

    M̂ ÿ + Ĉ ẏ + K̂ y = 0,   M̂ = Nᵀ M N,   Ĉ = Nᵀ (M G + C) N,   K̂ = Nᵀ (K + C G) N                       (2)

At rest and without damping Ĉ = 0. About a steady motion Ĉ holds the gyroscopic terms, and K̂ the centrifugal ones.
Source: L. Meirovitch, J. Appl. Mech. 42, 1975 (the symmetric eigenproblem of gyroscopic systems).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from lissom.dynamics.accuracy import ModesAccuracy, accuracy_of_modes
from lissom.dynamics.assembly import consistent_velocity
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.forward_dynamics import forward_dynamics, input_rows, run_forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics_derivatives import (
    inverse_dynamics_derivatives,
    residual_derivatives,
    row_results,
)
from lissom.dynamics.steady_motion import carried, moving_velocity
from lissom.errors import ShapeError
from lissom.launch.loop_buffers import chosen_rows
from lissom.launch.over_models import over_models
from lissom.launch.workspace import require_finite
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import formatting
from lissom.systems.allowed_motions import allowed_motions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
        model, q, u, t, damped: what was asked.
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
        """Estimated errors of the frequencies by points and bases of rods, from finer models about the same
        equilibrium; computed when first asked for, with an AccuracyWarning where that of the lowest is above 1 %."""
        if not isinstance(self.model, ModelBatch):
            return accuracy_of_modes(self.model, self.q, self.u, self.v, self.t, self.frequencies, self.damped)
        rows = zip(self.model, self.q, self.u, self.v, np.asarray(self.t), self.frequencies, np.asarray(self.damped))
        each = [accuracy_of_modes(one, q, u, v, float(t), w, bool(damped)) for one, q, u, v, t, w, damped in rows]
        return ModesAccuracy(np.array([x.points for x in each]), np.array([x.basis for x in each]), each[0].cure)

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


def _oscillations(K: np.ndarray, C: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exponents with Im s ≥ 0 and shapes y of (2). With K̂ = Lₖ Lₖᵀ and M̂ = L Lᵀ in the unknowns (Lᵀ ẏ, Lₖᵀ y)

        s z = [−L⁻¹ Ĉ L⁻ᵀ, −L⁻¹ K̂ Lₖ⁻ᵀ; Lₖᵀ L⁻ᵀ, 0] z                                                     (3)

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
    """Lₖ of (3), and whether K̂ is symmetric and positive definite and Ĉ skew."""
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
