"""Small motions about a state of rest or of steady motion (q, v).

The tangent space of `integrate` moves with the nominal motion. For a pose g = g₀ exp(δ) with ġ = g (v + δv)^,

    dδ/dt = δv − ad_v δ      (δω − ω × δ for a spherical joint, δv for coordinates that add)              (1)

With C = ∂ID/∂v, K = ∂(ID(q, v, a) − B u − Aᵀ λ)/∂q and (1),

    M δa + C δv + K δq − Aᵀ δλ = B δu                                                                     (2)

N spans the motions that loops and prescribed motions allow: δq = N y. Then δv = N ẏ + G N y and δa = N ÿ + G N ẏ with
G = ad_v, so

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

from lissom.dynamics.accuracy import DOUBTFUL, corrected_configuration, finer_model, links_not_estimated
from lissom.dynamics.actuation import single_inputs
from lissom.dynamics.assembly import consistent_velocity, velocity_before
from lissom.dynamics.configuration import quaternion_joints, single_configuration
from lissom.dynamics.forward_dynamics import forward_dynamics, run_forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics_derivatives import (
    inverse_dynamics_derivatives,
    residual_derivatives,
    row_results,
)
from lissom.errors import AccuracyWarning, ShapeError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import independent_rows, require_finite
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks, formatting
from lissom.systems.bordered import allowed_motions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def moving_velocity(model: Model, v: Any, t: float) -> np.ndarray:
    """v as an array (nv,); None: prescribed joints have the velocity of their motions at time t, all others zero."""
    if v is None:
        rate = np.zeros(model.nv)
        if model.n_motions:
            rate[model.prescribed.dof] = model.motions(t)[1]
        return rate
    rate = np.asarray(v, dtype=float)
    if rate.shape != (model.nv,) or not np.isfinite(rate).all():
        raise ShapeError(f"v: expected finite values of shape ({model.nv},), got {v!r}")
    return rate.copy()


def model_in_steady_motion(model: Model, v: np.ndarray) -> Model:
    """The model in a steady motion v (nv,), for relative equilibria; the model itself if v is zero.

    Prescribed joints have the velocity v. Other coordinates with v ≠ 0 are treated as prescribed too. If one coordinate
    of a spherical or free joint has v ≠ 0, all coordinates of this joint are.
    """
    if not v.any():
        return model
    moving = v != 0.0
    for _, j, free in quaternion_joints(model):
        joint = slice(j, j + 6 if free else j + 3)
        moving[joint] = moving[joint].any()
    moving[model.prescribed.dof] = False
    locked = np.flatnonzero(moving)
    _require_constant_shapes(model, locked, v)
    if len(locked):
        model = model.cached(("locked", tuple(locked.tolist())), lambda: model.with_locked(locked, None))
    return replace(model, prescribed=replace(model.prescribed, steady=v))


def _require_constant_shapes(model: Model, locked: np.ndarray, v: np.ndarray) -> None:
    """Raise ModelError if one of the coordinates `locked` is a strain of a rod or body, which a steady motion keeps."""
    for j in locked.tolist():
        k = int(np.searchsorted(model.links.v_start, j, side="right")) - 1
        of_joint = j < int(model.links.v_start[k]) + model.links.joint[k].nv
        rule = f"must be zero for the shape of link {model.links.names[k]!r}, which a steady motion keeps"
        checks.require(of_joint, f"v[{j}]", rule, float(v[j]))


def steady_velocity(model: Model, factor: float = 1.0) -> np.ndarray:
    """Velocity (nv,) of a model of `model_in_steady_motion`, scaled so that inertia forces get the factor `factor`."""
    return np.zeros(model.nv) if model.prescribed.steady is None else np.sqrt(factor) * model.prescribed.steady


def velocity_adjoint(model: Model, v: np.ndarray) -> np.ndarray:
    """The matrix ad_v of (1), shape (nv, nv), zero but for spherical and free joints."""
    turn = np.zeros((model.nv, model.nv))
    for _, j, free in quaternion_joints(model):
        spin = _cross_matrix(v[j : j + 3])
        turn[j : j + 3, j : j + 3] = spin
        if free:
            turn[j + 3 : j + 6, j + 3 : j + 6] = spin
            turn[j + 3 : j + 6, j : j + 3] = _cross_matrix(v[j + 3 : j + 6])
    return turn


def _cross_matrix(w: np.ndarray) -> np.ndarray:
    """The matrix w^ with w^ x = w × x, shape (3, 3)."""
    return np.cross(w, np.eye(3)).T


_SYMMETRIC = 1e-9  # tolerance of each entry, relative to the diagonal


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Linearization:
    """State matrices: ẋ = A x + B δu for x = (δq, δv), δq in the tangent space of `integrate`.

    Fields:
        A: state matrix, shape (2 nv, 2 nv) [1/s, or units of its rows per unit of its columns and s].
        B: input matrix, shape (2 nv, nu).
        v: velocity of the nominal motion, shape (nv,) [unit of q per s].
    """

    A: np.ndarray
    B: np.ndarray
    v: np.ndarray


@final
@dataclass(frozen=True)
class ModesAccuracy:
    """Estimated relative errors of frequencies due to the points along rods and in bodies, and due to the bases.

    Fields:
        points, basis: relative errors of the frequency of each mode, (n,) [-].
        cure: remedy for the error of the lowest mode, "" if there is no error.
        not_estimated: links whose basis error is not estimated, as in `Accuracy`.
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
        frequencies: in rising order, shape (n,) [rad/s]. At rest and undamped, n is the number of motions that
            prescribed motions and loops allow, and the frequency of an unstable mode is negative, −sqrt(−ω²). Otherwise
            they are |Im s|.
        shapes: mode shapes, one in each column, shape (nv, n). At rest and undamped they are real, and shapesᵀ M shapes
            is the identity. Otherwise they are complex, each with xᴴ M x = 1, and the entry with the largest share in
            this sum is real and positive.
        exponents: s, complex, shape (n,) [1/s]: the one with Im s > 0 of each conjugate pair, and every real one. n may
            therefore exceed the number of motions if some do not oscillate. A mode with Re s > 0 is unstable.
        v: velocity of the nominal motion, shape (nv,) [unit of q per s].
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
        """Estimated errors of the frequencies, from finer models about the same equilibrium.

        They are computed at the first access. An error above 1 % of the lowest frequency gives an AccuracyWarning.
        """
        if not isinstance(self.model, ModelBatch):
            return accuracy_of_modes(self.model, self.q, self.u, self.v, self.t, self.frequencies, self.damped)
        rows = zip(self.model, self.q, self.u, self.v, np.asarray(self.t), self.frequencies, np.asarray(self.damped))
        each = [accuracy_of_modes(one, q, u, v, float(t), w, bool(damped)) for one, q, u, v, t, w, damped in rows]
        return ModesAccuracy(
            np.array([x.points for x in each]), np.array([x.basis for x in each]), each[0].cure, each[0].not_estimated
        )

    @property
    def damping_ratios(self) -> np.ndarray:
        """Damping ratios −Re s/|s|, shape (n,) [-]; 0 if s is 0, negative for unstable modes."""
        size = np.abs(self.exponents)
        return -np.real(self.exponents) / np.where(size > 0.0, size, 1.0)


@over_models("q", "u", "v")
def linearize(
    model: Model, q: ArrayLike, u: ArrayLike | None = None, *, v: ArrayLike | None = None, t: float = 0.0
) -> Linearization:
    """State matrices of small motions about a state of rest or of motion.

        δq̇ = δv − ad_v δq,   δv̇ = ∂a/∂q δq + ∂a/∂v δv + ∂a/∂u δu,   a by forward_dynamics

    Args:
        q: configuration, shape (nq,) [rad, m, or strain units].
        u: inputs, shape (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        v: velocity, shape (nv,) [unit of q per s]. None: prescribed joints move as prescribed at t, joints in loops as
            the loops then require, and all others are at rest.
        t: time [s] at which loads and prescribed motions, with their velocities and accelerations, are evaluated.
    Returns:
        Linearization, whose v is the velocity used. Rows and columns of prescribed coordinates are zero. About a state
        that is no equilibrium, or a motion that is not steady, the matrices are those of this instant.
    Raises:
        ShapeError, ModelError: as forward_dynamics.
    Accuracy: exact derivatives of the discrete model. With loops they are valid if q and v satisfy the loops.
    """
    n, row, given = model.nv, single_configuration(model, q), single_inputs(model, u)
    rate = _velocity(model, row, v, t)
    da_dq, da_dv, da_du = forward_dynamics_derivatives(model, row, rate, given, t)
    kinematic = np.hstack([-velocity_adjoint(model, rate), np.eye(n)])
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

    About a steady rotation the equations contain gyroscopic and centrifugal terms, and shapes are complex: the motion
    y cos ωt + z sin ωt has the entries 1 for y and −i for z. Shapes are in the robot's own coordinates: beyond a joint
    that rotates at Ω, a whirl of frequency ω in space has the frequency ω − Ω if forward and ω + Ω if backward.

    Args:
        q: equilibrium, shape (nq,) [rad, m, or strain units].
        u: inputs, shape (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        v: steady velocity, shape (nv,) [unit of q per s]. None: prescribed joints have the velocity of their motions
            at t; all others are at rest, except for velocities that loops require.
        damped: whether to include dissipation: dampers, viscosity of rods, drag and friction. Without it loads act with
            their values at v, and their derivatives with respect to v are left out.
        t: time of loads and prescribed motions [s]; the velocities of these motions count as constant.
    Returns:
        Modes. At rest and undamped the stiffness is taken as symmetric; for follower loads use `damped` or linearize.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: a coordinate moves no mass.
    Accuracy: exact for the discrete model.
    Source: Meirovitch 1975.
    """
    model.require_positions("modes")
    row, given = single_configuration(model, q), single_inputs(model, u)
    rate, steady = _velocity(model, row, v, t), np.zeros(model.nv)
    force, arguments = np.zeros(model.n_rows), (model, row, given, t, damped)
    if model.n_rows:  # constraint forces at the equilibrium
        w = run_forward_dynamics(model, row, rate, given, t)
        force = w.host["force"][0].copy()
    K, C, M, w = residual_derivatives(model, row, rate, steady, given, t, 1.0, force)
    require_finite(K, C, M)
    A = row_results(model, w, "A")
    N = allowed_motions(model, A, independent_rows(w))
    try:
        if not (damped or rate.any()):
            squares, shapes = eigh(*(0.5 * N.T @ (X + X.T) @ N for X in (K, M)))
            frequencies = np.sign(squares) * np.sqrt(np.abs(squares))
            return Modes(frequencies, N @ shapes, np.sqrt(-squares.astype(complex)), rate, *arguments)
        if not damped:
            C = inverse_dynamics_derivatives(model, row, rate, steady, elastic=False, loads=False)[1]
        G = velocity_adjoint(model, rate)
        exponents, shapes = _oscillations(*(N.T @ X @ N for X in (K + C @ G, M @ G + C, M)))
    except LinAlgError:
        forward_dynamics(model, q, rate, u, t)  # its error names the coordinate that moves no mass
        raise
    order = np.lexsort((np.real(exponents), np.imag(exponents)))
    return Modes(np.imag(exponents)[order], _unit_shapes(M, N @ shapes[:, order]), exponents[order], rate, *arguments)


def accuracy_of_modes(
    model: Model, q: np.ndarray, u: np.ndarray, v: np.ndarray, t: float, frequencies: np.ndarray, damped: bool
) -> ModesAccuracy:
    """Relative differences between frequencies (n,), rising, and those of finer models about their equilibria."""
    found, not_estimated = [], tuple(sorted(links_not_estimated(model)))
    for enriched in (False, True):
        fine = finer_model(model, enriched=enriched)
        if fine is None:
            found.append(frequencies)
            continue
        q_f, v_f, a_f = fine.state(q, v, 0.0 * v)
        none, every = np.zeros(fine.model.n_rows), np.arange(fine.model.nv)
        there = corrected_configuration(fine.model, q_f, v_f, a_f, u, none, t, None, every)
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

    whose matrix is skew if Ĉ is skew, so that its exponents are imaginary to the last bit. If K̂ is not symmetric and
    positive definite, Lₖ is the factor of its symmetric part with a shift.
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
    first = np.argmax(share >= (1.0 - 1e-6) * share.max(axis=0), axis=0)  # the first of equal entries
    lead = shapes[first, np.arange(shapes.shape[1])]
    shapes = shapes * (np.abs(lead) / lead)
    return shapes / np.sqrt(np.einsum("ik,ij,jk->k", shapes.conj(), M, shapes).real)


def _velocity(model: Model, q: np.ndarray, v: Any, t: float) -> np.ndarray:
    """Velocity (nv,) by moving_velocity; if v is None, projected onto the loops."""
    rate = moving_velocity(model, v, t)
    if v is None and model.n_rows and rate.any():
        return consistent_velocity(model, q, rate, velocity_before(model, q, rate, rate))
    return rate
