"""Integrals over a deformable body for its inertia, weight and elasticity, with their derivatives.

In the body's frame, let m_k be the masses of the points, J_j = ∂f/∂θ_j, J̇θ̇ = Σ ∂²f/∂θ_j∂θ_k θ̇_jθ̇_k, p̈ = J θ̈ + J̇θ̇,
and (ω̇, a) the acceleration minus gravity of a frame with angular velocity ω, the wrench and the body's own forces are

    force  = m a + ω̇×c + ω×(ω×c) + 2 ω×ċ + c̈,   ċ = Σ c_j θ̇_j                                              (1)
    moment = c×a + I ω̇ + ω×Iω + 2 (tr Π − Πᵀ) ω + b,   I = tr P − P,   Π = Σ P_j θ̇_j                        (2)
    τ_j    = c_j·a + (∫ρ p×J_j)·ω̇ + ωᵀP_jω − ω² tr P_j + 2 ω·w_j + e_j + g_j + d_j                          (3)

with c̈ = ∫ρp̈, b = ∫ρ p×p̈, e_j = ∫ρ J_j·p̈. These formulas need the integrals only, no single material point.

For nonlinear kinematics, with H = ∂²f/∂θ² and F = ∂f/∂x of the points,

    ∂p̈/∂θ_l = Σ H_lk θ̈_k + ∂(J̇θ̇)/∂θ_l,   ∂p̈/∂θ̇_l = 2 Σ H_lk θ̇_k                                        (4)

With S = w (∂W/∂F + η (∂E/∂F)ᵀ ℂ Ė) as a function of F and Ḟ = Σ F_k θ̇_k, the material forces and their derivatives are

    Σ S : F_j,   Σ S : F_jl + (∂S/∂F F_l + ∂S/∂Ḟ Σ F_kl θ̇_k) : F_j                                         (5)

For linear kinematics, f = x + Σ φ_j(x) θ_j, J̇ = 0 and J_j = φ_j, and the integrals are polynomials of θ:

    c = c_0 + Σ c_j θ_j,   P_j = P0_j + Σ Q_kj θ_k,   M_jk = tr Q_jk,   w_j = Σ ε:Q_kj θ̇_k                    (6)
    U = ½ K2_jk θ_jθ_k + ½ K3_jkl θ_jθ_kθ_l + ⅛ K4_jklm θ_jθ_kθ_lθ_m                                           (7)

(7) is the energy if W is quadratic in the strain E = A_j θ_j + ½ B_jk θ_jθ_k:

    K2 = ∫A_j:ℂ:A_k,   K3 = ∫A_j:ℂ:B_kl,   K4 = ∫B_jk:ℂ:B_lm                                               (8)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies.domains import Domain, Quadrature
from lissom.bodies.evaluation import (
    BatchedFunction,
    CompiledDerivatives,
    EvaluatedPoints,
    TracedMotion,
    memoized,
    shared_by_equals,
)
from lissom.bodies.jets import FirstDerivatives, SecondDerivatives, unpacked
from lissom.bodies.kinematics import ComposedKinematics, Kinematics
from lissom.bodies.materials import Constants, Hyperelastic, constants_of, determinant
from lissom.errors import ModelError
from lissom.robot.poses import compiled, in_double

_MOST_SLOPES = 1 << 23  # largest number of stored entries of ∂φ/∂x
_MOST_LINEAR = 1000  # largest number of coordinates of a linear map: Q_jk of (6) has 9 n² entries
_MOST_QUARTIC = 50  # largest number of coordinates for which K4 of (7) is computed
_BLOCK = 1 << 20  # numbers of points in one block of a loop


class ShapeValues(NamedTuple):
    """The integrals at (θ, θ̇). Arrays have the leading axes of a batch."""

    mass: float  # [kg]
    c: np.ndarray  # ∫ρp (3,)
    P: np.ndarray  # ∫ρ p pᵀ (3, 3)
    c_j: np.ndarray  # ∫ρ J_j (n, 3)
    P_j: np.ndarray  # ∫ρ p J_jᵀ (n, 3, 3)
    M: np.ndarray  # ∫ρ J_j·J_k (n, n)
    c_v: np.ndarray  # ∫ρ J̇θ̇ (3,)
    b_v: np.ndarray  # ∫ρ p×J̇θ̇ (3,)
    w_j: np.ndarray  # ∫ρ ṗ×J_j (n, 3)
    e_v: np.ndarray  # ∫ρ J_j·J̇θ̇ (n,)
    U: np.ndarray  # elastic energy () [J]
    g: np.ndarray  # ∂U/∂θ (n,)
    d: np.ndarray  # damping force (n,)
    d_v: np.ndarray  # ∂d/∂θ̇ (n, n)


class ShapeDerivatives(NamedTuple):
    """Derivatives of the integrals at (θ, θ̇, θ̈). Arrays have the leading axes of a batch.

    Names that end in q are derivatives with respect to θ_l, names that end in v with respect to θ̇_l. Axis l comes
    after j.
    """

    c_q: np.ndarray  # of c̈ = ∫ρp̈ (n, 3)
    b_q: np.ndarray  # of b = ∫ρ p×p̈ (n, 3)
    e_q: np.ndarray  # of e_j = ∫ρ J_j·p̈ (n, n)
    c_jl: np.ndarray  # ∫ρ ∂²f/∂θ_j∂θ_l (n, n, 3)
    P_jl: np.ndarray  # ∂P_j/∂θ_l (n, n, 3, 3)
    w_q: np.ndarray  # of w_j = ∫ρ ṗ×J_j (n, n, 3)
    c_v: np.ndarray  # of c̈ (n, 3)
    b_v: np.ndarray  # of b (n, 3)
    e_v: np.ndarray  # of e_j (n, n)
    w_v: np.ndarray  # of w_j, ∫ρ J_l×J_j (n, n, 3)
    K: np.ndarray  # ∂²U/∂θ² (n, n)
    d_q: np.ndarray  # ∂d/∂θ (n, n)


class LinearCoefficients(NamedTuple):
    """The constants of (6) and (7).

    | case | K2 | K3, K4 |
    |---|---|---|
    | linear elasticity | given | None |
    | W quadratic in the strain, at most 50 coordinates | given | given |
    | all other cases | None | None |

    In the last case the energy is summed over the points, which is cheaper than n⁴ terms. `damping_time` times K2_jk +
    (K3_jkl + K3_kjl) θ_l + K4_jlkm θ_lθ_m is d_v of (1) in the module materials.
    """

    mass: float
    c_0: np.ndarray  # ∫ρx (3,)
    P_0: np.ndarray  # ∫ρ x xᵀ (3, 3)
    c_j: np.ndarray  # ∫ρ φ_j (n, 3)
    P0_j: np.ndarray  # ∫ρ x φ_jᵀ (n, 3, 3)
    Q_jk: np.ndarray  # ∫ρ φ_j φ_kᵀ (n, n, 3, 3)
    K2: np.ndarray | None
    K3: np.ndarray | None
    K4: np.ndarray | None


@final
@dataclass(frozen=True, eq=False)
class _SumsOverPoints:
    """Functions of (x, w, m, numbers, θ, θ̇) with the sums of ShapeValues and of ShapeDerivatives over points x with
    weights w and masses m, for a nonlinear kinematics. All bodies of this kinematics share them, for laws of other
    numbers too. Those in rows are functions of (w, m, numbers, x, θ̇), x being derivatives of the points of a composed
    kinematics.

    Args:
        kinematics: kinematics of the bodies.
        law, names, entries: fields of `materials.Constants`.
    """

    kinematics: Any
    law: Hyperelastic
    names: tuple[str, ...]
    entries: np.ndarray

    @cached_property
    def values(self) -> BatchedFunction:
        return BatchedFunction(self.values_at, 4)

    @cached_property
    def derivatives(self) -> BatchedFunction:
        return BatchedFunction(self.derivatives_at, 4)

    def values_at(self, x: Any, w: Any, m: Any, numbers: Any, q: Any, v: Any) -> tuple[Any, ...]:
        return self._values(w, m, numbers, self.kinematics.first_derivatives(x, q, v), v)

    def derivatives_at(self, x: Any, w: Any, m: Any, numbers: Any, q: Any, v: Any) -> tuple[Any, ...]:
        return self._derivatives(w, m, numbers, self.kinematics.second_derivatives(x, q, v), v)

    @cached_property
    def values_in_rows(self) -> BatchedFunction:
        return self._in_rows(self._values, FirstDerivatives)

    @cached_property
    def derivatives_in_rows(self) -> BatchedFunction:
        return self._in_rows(self._derivatives, SecondDerivatives)

    def _in_rows(self, function: Callable[..., Any], kind: Any) -> BatchedFunction:
        return BatchedFunction(lambda w, m, numbers, x, v: function(w, m, numbers, unpacked(kind, x, len(v)), v), 3)

    def _values(self, w: Any, m: Any, numbers: Any, x: FirstDerivatives, v: Any) -> tuple[Any, ...]:
        return *inertia(m, x, v), *material_forces(*self._put(numbers), w, x.F, x.F_j, v)

    def _derivatives(self, w: Any, m: Any, numbers: Any, x: SecondDerivatives, v: Any) -> tuple[Any, ...]:
        return *inertia_slopes(m, x, v), *_inertia_by_acceleration(m, x), *material_slopes(*self._put(numbers), w, x, v)

    def _put(self, numbers: Any) -> tuple[Hyperelastic, Any]:
        return Constants(self.law, self.names, self.entries, np.zeros(0)).put(numbers)


@final
@dataclass(frozen=True, eq=False)
class ShapeIntegrals:
    """The integrals of one body, compiled by JAX on first use, in float64.

    Args:
        kinematics, material: kinematics and material of the body.
        domain: domain of the body, or the points and weights of a quadrature.
        density: density [kg/m³], or a function of a material point (3,).
    """

    kinematics: Kinematics
    domain: Domain | Quadrature
    material: Hyperelastic
    density: float | Callable[[np.ndarray], float]

    @cached_property
    def checked(self) -> dict[str, Any]:
        """Results of checks of the motion, which take seconds. Equal bodies share them."""
        return {}

    @cached_property
    def masses(self) -> np.ndarray:
        """Masses of the quadrature points, shape (N,) [kg]."""
        if callable(self.density):
            return self.domain.weights * np.array([float(self.density(x)) for x in self.domain.points])
        return self.domain.weights * self.density

    @cached_property
    def motion(self) -> TracedMotion:
        """The kinematics as scalar operations."""
        return shared_by_equals(TracedMotion, self.kinematics)

    @cached_property
    def native(self) -> Any:
        """The integrals as native code (bodies/native_code), or None if `why_python` gives a reason."""
        return self._native_or_reason[0]

    @property
    def why_python(self) -> str:
        """The reason for which kernels do not evaluate the body; empty if they do."""
        return self._pointwise_or_reason[1] if self.kinematics.is_linear else self._native_or_reason[1]

    @cached_property
    def _native_or_reason(self) -> tuple[Any, str]:
        from lissom.bodies.native_code import native_integrals

        return native_integrals(self)

    @cached_property
    def pointwise(self) -> Any:
        """The elasticity of a body of linear kinematics as native code (bodies/point_elasticity), or None if
        `why_python` gives a reason."""
        return self._pointwise_or_reason[0]

    @cached_property
    def _pointwise_or_reason(self) -> tuple[Any, str]:
        from lissom.bodies.point_elasticity import point_elasticity

        return point_elasticity(self)

    @cached_property
    def _mass(self) -> float:
        return float(self.masses.sum())

    @cached_property
    def points(self) -> EvaluatedPoints | None:
        """The quadrature points and further points of the body, with a cache of derivatives; None unless the kinematics
        is composed."""
        if not isinstance(self.kinematics, ComposedKinematics):
            return None
        return EvaluatedPoints(shared_by_equals(CompiledDerivatives, self.kinematics), self.domain.points)

    def values(self, q: np.ndarray, v: np.ndarray, stack: int = 1) -> ShapeValues:
        """The integrals at θ = q and θ̇ = v, shapes (..., n). One call of JAX evaluates `stack` states."""
        return ShapeValues(self._mass, *_batched(self._values, (q, v), stack))

    def derivatives(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, stack: int = 1) -> ShapeDerivatives:
        """Derivatives of the integrals at θ = q, θ̇ = v and θ̈ = a, shapes (..., n). One call of JAX evaluates `stack`
        states."""
        if self.kinematics.is_linear:
            return ShapeDerivatives(*_batched(self._derivatives, (q, v, a), stack))
        q, v, a = np.broadcast_arrays(q, v, np.asarray(a, dtype=np.float64))
        found = _batched(self._derivatives_at_rest, (q, v), stack)
        (c_q, b_q, e_q, c_jl, P_jl, w_q, c_v, b_v, e_v, JxJ, pxH, HJ), (K, d_q) = found[:12], found[12:]
        by = _ByAcceleration(JxJ, pxH, HJ)
        c_q, b_q, e_q = _accelerated((c_q, b_q, e_q), c_jl, a, by)
        return ShapeDerivatives(c_q, b_q, e_q, c_jl, P_jl, w_q, c_v, b_v, e_v, JxJ, K, d_q)

    def fold(self, q: np.ndarray) -> np.ndarray:
        """The smallest det ∂f/∂x of the quadrature points at θ = q, shape (...). The map folds if it is not
        positive."""
        return self.worst(q)[0]

    def worst(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest det ∂f/∂x of the quadrature points at θ = q, and the index of its point, shapes (...)."""
        if self.known_slopes is None:
            least, where = _batched(self._fold, (q,))
            return least, where.astype(np.int64)
        rows = np.asarray(q, dtype=np.float64)
        flat, slopes = rows.reshape(-1, rows.shape[-1]), self.known_slopes
        least, where = np.empty(len(flat)), np.empty(len(flat), dtype=np.int64)
        step = max(1, _BLOCK // len(slopes))
        for k in range(0, len(flat), step):
            F = (slopes @ flat[k : k + step].T).reshape(-1, 9, len(flat[k : k + step]))
            xx, xy, xz, yx, yy, yz, zx, zy, zz = F.swapaxes(0, 1)
            xx, yy, zz = xx + 1.0, yy + 1.0, zz + 1.0
            J = xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx)
            least[k : k + step], where[k : k + step] = J.min(axis=0), J.argmin(axis=0)
        return least.reshape(rows.shape[:-1]), where.reshape(rows.shape[:-1])

    @cached_property
    def known_slopes(self) -> np.ndarray | None:
        """∂φ_j/∂x of a linear map at the points, shape (9 N, n); None for a nonlinear map, or if the array is too
        large."""
        if not self.kinematics.is_linear or 9 * len(self.domain.points) * self.kinematics.n > _MOST_SLOPES:
            return None
        return self.kinematics.shape_gradients(self.domain.points).reshape(-1, self.kinematics.n)

    @property
    def _uses_slopes(self) -> bool:
        """Whether the material forces are sums over points with the stored ∂φ_j/∂x."""
        return self.known_slopes is not None and not self._is_polynomial

    @cached_property
    def _slopes_of_points(self) -> Any:
        """∂φ_j/∂x at the points, shape (n, 3, 3, N), as a JAX array that is passed to compiled functions."""
        import jax.numpy as jnp

        assert self.known_slopes is not None
        rows = self.known_slopes.reshape(-1, 3, 3, self.kinematics.n)
        return in_double(jnp.asarray)(np.ascontiguousarray(rows.transpose(3, 1, 2, 0)))

    @cached_property
    def _constants(self) -> LinearCoefficients:
        import jax

        with jax.ensure_compile_time_eval():  # the first use may be inside a trace of JAX
            return self.linear_coefficients()

    def linear_coefficients(self) -> LinearCoefficients:
        """The coefficients of (6) and (7) for a body whose points move linearly with θ."""
        return linear_coefficients(self.kinematics, self.domain, self.material, self.masses)

    @cached_property
    def _given(self) -> tuple[np.ndarray, ...]:
        """Points, weights and masses. Compiled functions take them as arguments, because XLA spends seconds on
        constants."""
        return self.domain.points, self.domain.weights, self.masses

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of points, weights, masses and further arguments, compiled; the result is a function of the
        further arguments."""
        if self.kinematics.takes_arrays:
            inner = compiled(function)
            return lambda *state: inner(*self._given, *state)
        given = self._given
        return compiled(lambda *state: function(*given, *state))

    def _of_bodies(self, function: Callable[..., Any]) -> Callable[..., list[np.ndarray]]:
        """Like `compiled`, for states of several bodies along the first axis of the arguments and results."""
        if self.kinematics.takes_arrays:
            return partial(BatchedFunction(function, len(self._given)), *self._given)
        given = self._given
        return BatchedFunction(lambda *state: function(*given, *state))

    @cached_property
    def _values(self) -> Callable[..., Any]:
        import jax

        moduli = self.material.moduli()

        def linear(x: Any, w: Any, m: Any, q: Any, v: Any) -> Any:
            U, g = jax.value_and_grad(self._energy)(q)
            return (*self._linear_inertia(q, v), U, g, *self._damping(moduli, q, v))

        def known(F_j: Any, q: Any, v: Any) -> Any:
            forces = _linear_forces(self.material, moduli, self.domain.weights, F_j, q, v)
            return (*self._linear_inertia(q, v), *forces)

        if self.points is not None:
            return self._summed(self._of_points.values_in_rows, FirstDerivatives, self.points)
        if self._uses_slopes:
            return partial(BatchedFunction(known, 1), self._slopes_of_points)
        if self.kinematics.is_linear:
            return self._of_bodies(linear)
        return self._over_points(self._of_points.values_at, self._of_points.values)

    @cached_property
    def _derivatives(self) -> Callable[..., Any]:
        import jax

        moduli = self.material.moduli()

        def linear(x: Any, w: Any, m: Any, q: Any, v: Any, a: Any) -> Any:
            K = jax.jacfwd(jax.grad(self._energy))(q)
            d_q = jax.jacfwd(lambda q: self._damping(moduli, q, v)[0])(q)
            return (*self._linear_derivatives(a), K, d_q)

        def known(F_j: Any, q: Any, v: Any, a: Any) -> Any:
            slopes = _linear_slopes(self.material, moduli, self.domain.weights, F_j, q, v)
            return (*self._linear_derivatives(a), *slopes)

        return (
            partial(BatchedFunction(known, 1), self._slopes_of_points) if self._uses_slopes else self._of_bodies(linear)
        )

    @cached_property
    def _derivatives_at_rest(self) -> Callable[..., Any]:
        """Derivatives for nonlinear f at θ̈ = 0, with a cache of recent states."""
        if self.points is None:
            return memoized(self._over_points(self._of_points.derivatives_at, self._of_points.derivatives))
        return memoized(self._summed(self._of_points.derivatives_in_rows, SecondDerivatives, self.points))

    @cached_property
    def _of_points(self) -> _SumsOverPoints:
        return shared_by_equals(_SumsOverPoints, self.kinematics, *constants_of(self.material)[:-1])

    def _over_points(self, function: Callable[..., Any], shared: BatchedFunction) -> Callable[..., list[np.ndarray]]:
        """The sums over the points of this body, by a function that all bodies share if it takes points as arrays."""
        if self.kinematics.takes_arrays:
            return partial(shared, *self._given, self._numbers)
        return self._of_bodies(lambda x, w, m, q, v: function(x, w, m, self._numbers, q, v))

    @cached_property
    def _numbers(self) -> np.ndarray:
        return constants_of(self.material).numbers

    def _summed(self, inner: BatchedFunction, kind: Any, points: EvaluatedPoints) -> Any:
        """A function of θ and θ̇ as a sum over rows of points. The derivatives of the points are compiled separately
        and cached."""
        weights = [points.weights(part) for part in (self.domain.weights, self.masses)]

        def summed(q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
            rows = zip(*weights, points.by_row(kind, q, v))
            found = [inner(*weight, self._numbers, x, v) for *weight, x in rows]
            return found[0] if len(found) == 1 else [reduce(np.add, parts) for parts in zip(*found)]

        return summed

    @cached_property
    def _fold(self) -> Callable[..., Any]:
        def least(x: Any, w: Any, m: Any, q: Any) -> Any:
            J = determinant(self.kinematics.deformations(x, q))
            return J.min(), J.argmin() * 1.0

        points = self.points
        if points is None:
            return self._of_bodies(least)

        def least_composed(q: np.ndarray) -> list[np.ndarray]:
            J = np.linalg.det(np.moveaxis(points.of_quadrature(q[0]).F, -1, 0))
            return [np.array([J.min()]), np.array([J.argmin()])]

        return least_composed

    def _F(self, q: Any) -> Any:
        return self.kinematics.deformations(self.domain.points, q)

    def _linear_inertia(self, q: Any, v: Any) -> tuple[Any, ...]:
        """The integrals of ShapeValues from c to e_v by (6)."""
        import jax.numpy as jnp

        n, known = self.kinematics.n, self._constants
        Q = jnp.asarray(known.Q_jk)
        across = jnp.einsum("jab,j->ab", known.P0_j, q)
        P_j = known.P0_j + jnp.einsum("kjab,k->jab", Q, q)
        P = known.P_0 + across.T + jnp.einsum("jab,j->ab", P_j, q)
        w_j = _crossed(jnp.einsum("kjab,k->jab", Q, v))
        none, M = jnp.zeros(3), jnp.einsum("jkaa->jk", Q)
        return known.c_0 + q @ jnp.asarray(known.c_j), P, known.c_j, P_j, M, none, none, w_j, jnp.zeros(n)

    def _linear_derivatives(self, a: Any) -> tuple[Any, ...]:
        """The integrals of ShapeDerivatives from c_q to w_v for p̈ = J θ̈."""
        import jax.numpy as jnp

        n, Q = self.kinematics.n, jnp.asarray(self._constants.Q_jk)
        b_q, P_jl = _crossed(jnp.einsum("lkab,k->lab", Q, a)), Q.swapaxes(0, 1)
        vectors, square, cube = jnp.zeros((n, 3)), jnp.zeros((n, n)), jnp.zeros((n, n, 3))
        return vectors, b_q, square, cube, P_jl, cube, vectors, vectors, square, _crossed(P_jl)

    @property
    def _is_polynomial(self) -> bool:
        """Whether the energy is the polynomial (7)."""
        return self.kinematics.is_linear and self._constants.K2 is not None

    def _energy(self, q: Any) -> Any:
        """U of (1) in the module materials; by (7) if the energy is that polynomial."""
        import jax
        import jax.numpy as jnp

        if self._is_polynomial:
            K2, K3, K4 = self._constants[-3:]
            squares = jnp.outer(q, q)
            U = 0.5 * (jnp.asarray(K2) * squares).sum()
            if K3 is None or K4 is None:
                return U
            cubic, quartic = (jnp.einsum("jkl,kl", K3, squares) @ q, jnp.einsum("jklm,lm", K4, squares))
            return U + 0.5 * cubic + 0.125 * (quartic * squares).sum()
        return self.domain.weights @ jax.vmap(self.material.energy_density)(self._F(q))

    def _damping(self, moduli: np.ndarray, q: Any, v: Any) -> tuple[Any, Any]:
        """d and d_v of (1) in the module materials."""
        import jax
        import jax.numpy as jnp

        n, eta = self.kinematics.n, self.material.damping_time
        if eta == 0.0:
            return jnp.zeros(n), jnp.zeros((n, n))
        if self._is_polynomial:
            K2, K3, K4 = self._constants[-3:]
            d_v = jnp.asarray(K2)
            if K3 is not None and K4 is not None:
                across = jnp.asarray(K3) @ q
                d_v = d_v + across + across.T + jnp.einsum("jlkm,l,m->jk", K4, q, q)
            return eta * d_v @ v, eta * d_v
        slope = jax.jacfwd(lambda q: jax.vmap(self.material.strain)(self._F(q)).reshape(-1, 9))(q)  # ∂E/∂θ_j
        stiff = (eta * self.domain.weights)[:, None, None] * jnp.einsum("ab,kbj->kaj", moduli, slope)
        d_v = jnp.einsum("kaj,kal->jl", slope, stiff)
        return d_v @ v, d_v


def _batched(
    function: Callable[..., list[np.ndarray]], arguments: tuple[np.ndarray, ...], stack: int = 1
) -> list[np.ndarray]:
    """Call a function of stacks of vectors for one stack after another. So it is compiled for one stack size, not for
    each batch size."""
    rows = np.broadcast_arrays(*(np.asarray(argument, dtype=np.float64) for argument in arguments))
    batch = rows[0].shape[:-1]
    stacks = [row.reshape(-1, stack, row.shape[-1]) for row in rows]
    found = [function(*state) for state in zip(*stacks)]
    whole = found[0] if len(found) == 1 else [np.concatenate(parts) for parts in zip(*found)]
    return [part.reshape(batch + part.shape[1:]) for part in whole]


def _crossed(X: Any) -> Any:
    """Σ a×b from matrices Σ a bᵀ: shape (..., 3, 3) to (..., 3)."""
    import jax.numpy as jnp

    parts = (X[..., 1, 2] - X[..., 2, 1], X[..., 2, 0] - X[..., 0, 2], X[..., 0, 1] - X[..., 1, 0])
    return jnp.stack(parts, axis=-1)


def inertia(m: Any, x: FirstDerivatives, v: Any) -> tuple[Any, ...]:
    """The integrals of ShapeValues from c to e_v."""
    import jax.numpy as jnp

    mJ, mh = m * x.J, m * x.h
    P_j = jnp.einsum("ak,jbk->jab", x.p, mJ)
    M = jnp.einsum("jak,lak->jl", x.J, mJ)
    p_dot = jnp.einsum("jak,j->ak", x.J, v)
    w_j = _crossed(jnp.einsum("ak,jbk->jab", p_dot, mJ))
    b_v = _crossed(x.p @ mh.T)
    ends = mh.sum(axis=-1), b_v, w_j, jnp.einsum("jak,ak->j", x.J, mh)
    return x.p @ m, x.p @ (m * x.p).T, mJ.sum(axis=-1), P_j, M, *ends


class _ByAcceleration(NamedTuple):
    """Derivatives of c_q, b_q and e_q with respect to θ̈_k, except ∫ρ ∂²f/∂θ_j∂θ_l: ∫ρ J_l×J_j (n, n, 3), ∫ρ p×H_jl (n,
    n, 3) and ∫ρ H_jl·J_k (n, n, n), indexed [j, l]."""

    JxJ: Any
    pxH: Any
    HJ: Any


def inertia_slopes(m: Any, x: SecondDerivatives, v: Any, a: Any = None) -> tuple[Any, ...]:
    """The integrals of ShapeDerivatives from c_q to w_v at θ̈ = a; None stands for zero."""
    import jax.numpy as jnp

    turned, mJ = jnp.einsum("ljak,j->lak", x.H, v), m * x.J
    p_dot, p_ddot = (jnp.einsum("jak,j->ak", part, v) for part in (x.J, turned))
    p_ddot_q = x.h_q
    if a is not None:
        p_ddot = p_ddot + jnp.einsum("jak,j->ak", x.J, a)
        p_ddot_q = p_ddot_q + jnp.einsum("ljak,j->lak", x.H, a)
    force, by_q, by_v = m * p_ddot, m * p_ddot_q, 2.0 * m * turned  # (4)
    JJ = jnp.einsum("lak,jbk->jlab", x.J, mJ)
    b_q = _crossed(jnp.einsum("lak,bk->lab", x.J, force) + jnp.einsum("ak,lbk->lab", x.p, by_q))
    e_q = jnp.einsum("ljak,ak->jl", x.H, force) + jnp.einsum("jak,lak->jl", x.J, by_q)
    moments = jnp.einsum("rk,jlbk->jlrb", jnp.concatenate([m[None], m * x.p, m * p_dot]), x.H)
    w_q = jnp.einsum("lak,jbk->jlab", turned, mJ) + moments[:, :, 4:]
    b_v, e_v = _crossed(jnp.einsum("ak,lbk->lab", x.p, by_v)), jnp.einsum("jak,lak->jl", x.J, by_v)
    firsts = by_q.sum(axis=-1), b_q, e_q, moments[:, :, 0], JJ + moments[:, :, 1:4], _crossed(w_q)
    return *firsts, by_v.sum(axis=-1), b_v, e_v, _crossed(JJ)


def _inertia_by_acceleration(m: Any, x: SecondDerivatives) -> tuple[Any, Any]:
    """The integrals of _ByAcceleration after JxJ."""
    import jax.numpy as jnp

    moments = jnp.einsum("ak,jlbk->jlab", m * x.p, x.H)
    return _crossed(moments), jnp.einsum("jlak,iak->jli", x.H, m * x.J)


def _accelerated(found: tuple[Any, ...], c_jl: Any, a: Any, by: _ByAcceleration) -> tuple[Any, ...]:
    """c_q, b_q and e_q at θ̈ = a (..., n) from their values at θ̈ = 0, as NumPy arrays with leading axes."""
    c_q, b_q, e_q = found
    column = a[..., None, :, None]
    turning = by.JxJ.swapaxes(-3, -2) + by.pxH  # by [l, k]
    along = (by.HJ * a[..., None, None, :]).sum(axis=-1)
    return (
        c_q + (c_jl * column).sum(axis=-2),
        b_q + (turning * column).sum(axis=-2),
        e_q + along + (by.HJ * column).sum(axis=-2).swapaxes(-1, -2),
    )


def _stress(law: Hyperelastic, w: Any, F: Any) -> Any:
    """w ∂W/∂F, shape (3, 3, N)."""
    import jax

    return w * jax.vmap(jax.grad(law.energy_density), -1, -1)(F)


def _viscous(law: Hyperelastic, moduli: np.ndarray, w: Any, F: Any, F_dot: Any) -> Any:
    """w η (∂E/∂F)ᵀ ℂ Ė, shape (3, 3, N)."""
    import jax

    def one(F: Any, F_dot: Any) -> Any:
        rate = jax.jvp(law.strain, (F,), (F_dot,))[1]
        stress = law.damping_time * (moduli @ rate.reshape(9)).reshape(3, 3)
        return jax.vjp(law.strain, F)[1](stress)[0]

    return w * jax.vmap(one, -1, -1)(F, F_dot)


def point_stress(law: Hyperelastic, moduli: np.ndarray, F: Any, F_dot: Any) -> tuple[Any, Any]:
    """W, and the whole stress ∂W/∂F + η (∂E/∂F)ᵀ ℂ Ė (3, 3), at one point, with ηℂ as `moduli` and a damping time of 1;
    that of 0 stands for no damping."""
    W, stress = law.energy_density(F), _stress(law, 1.0, F[..., None])[..., 0]
    if law.damping_time == 0.0:
        return W, stress
    return W, stress + _viscous(law, moduli, 1.0, F[..., None], F_dot[..., None])[..., 0]


def material_forces(law: Hyperelastic, moduli: np.ndarray, w: Any, F: Any, F_j: Any, v: Any) -> tuple[Any, ...]:
    """U, g, d and d_v of ShapeValues from F and F_j of points, with ℂ as `moduli`."""
    import jax
    import jax.numpy as jnp

    n = len(v)
    U = w @ jax.vmap(law.energy_density, -1)(F)
    g = jnp.einsum("abk,jabk->j", _stress(law, w, F), F_j)
    if law.damping_time == 0.0:
        return U, g, jnp.zeros(n), jnp.zeros((n, n))
    strained = jax.vmap(lambda F, F_j: jax.jvp(law.strain, (F,), (F_j,))[1], -1, -1)
    rates = jax.vmap(lambda F_j: strained(F, F_j))(F_j).reshape(n, 9, -1)  # ∂E/∂θ_j
    d_v = jnp.einsum("jak,lak->jl", rates, law.damping_time * w * jnp.einsum("ab,jbk->jak", moduli, rates))
    return U, g, d_v @ v, d_v


def material_slopes(law: Hyperelastic, moduli: np.ndarray, w: Any, x: SecondDerivatives, v: Any) -> tuple[Any, Any]:
    """K and d_q of ShapeDerivatives by (5), with ℂ as `moduli`."""
    import jax
    import jax.numpy as jnp

    def whole(S: Any, S_l: Any) -> Any:
        return jnp.einsum("abk,jlabk->jl", S, x.F_jl) + jnp.einsum("labk,jabk->jl", S_l, x.F_j)

    def pushed(function: Callable[..., Any], at: tuple[Any, ...], *by: Any) -> Any:
        return whole(*jax.vmap(lambda *rates: jax.jvp(function, at, rates), out_axes=(None, 0))(*by))

    K = pushed(lambda F: _stress(law, w, F), (x.F,), x.F_j)
    if law.damping_time == 0.0:
        return K, jnp.zeros_like(K)
    F_dot, F_dot_l = jnp.einsum("jabk,j->abk", x.F_j, v), jnp.einsum("ljabk,j->labk", x.F_jl, v)
    return K, pushed(lambda F, F_dot: _viscous(law, moduli, w, F, F_dot), (x.F, F_dot), x.F_j, F_dot_l)


def _linear_forces(law: Hyperelastic, moduli: np.ndarray, w: Any, F_j: Any, q: Any, v: Any) -> tuple[Any, ...]:
    """U, g, d and d_v of ShapeValues for ∂f/∂x = 1 + Σ F_j θ_j, with F_j of shape (n, 3, 3, N)."""
    return material_forces(law, moduli, w, _linear_slope(F_j, q), F_j, v)


def _linear_slopes(law: Hyperelastic, moduli: np.ndarray, w: Any, F_j: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """K and d_q of ShapeDerivatives for ∂f/∂x = 1 + Σ F_j θ_j, with F_j of shape (n, 3, 3, N)."""
    import jax
    import jax.numpy as jnp

    F = _linear_slope(F_j, q)

    def pushed(function: Callable[[Any], Any]) -> Any:
        S_l = jax.vmap(lambda rate: jax.jvp(function, (F,), (rate,))[1])(F_j)
        return jnp.einsum("labk,jabk->jl", S_l, F_j)

    K = pushed(lambda F: _stress(law, w, F))
    if law.damping_time == 0.0:
        return K, jnp.zeros_like(K)
    F_dot = jnp.einsum("jabk,j->abk", F_j, v)
    return K, pushed(lambda F: _viscous(law, moduli, w, F, F_dot))


def _linear_slope(F_j: Any, q: Any) -> Any:
    """∂f/∂x = 1 + Σ F_j θ_j, shape (3, 3, N)."""
    import jax.numpy as jnp

    return jnp.eye(3)[..., None] + jnp.einsum("jabk,j->abk", F_j, q)


def linear_coefficients(
    kinematics: Kinematics, domain: Domain | Quadrature, law: Hyperelastic, masses: np.ndarray
) -> LinearCoefficients:
    """The coefficients of (6) and (7) for a body whose points move linearly with θ. `masses` are those of the
    integration points of the domain."""
    points, m, n = domain.points, masses, kinematics.n
    if n > _MOST_LINEAR:
        raise ModelError(f"shape integrals: a linear kinematics must have at most {_MOST_LINEAR} coordinates (got {n})")
    phi = kinematics.shapes(points)
    weighted = m[:, None, None] * phi
    inertia = (m @ points, np.einsum("k,ka,kb->ab", m, points, points), weighted.sum(axis=0).T)
    first = np.einsum("ka,kbj->jab", points, weighted)
    second = np.tensordot(phi, weighted, axes=(0, 0)).transpose(1, 3, 0, 2)
    return LinearCoefficients(float(m.sum()), *inertia, first, second, *_polynomial(kinematics, domain, law))


def _polynomial(
    kinematics: Kinematics, domain: Domain | Quadrature, law: Hyperelastic
) -> tuple[np.ndarray | None, ...]:
    """K2, K3 and K4 of (8)."""
    n = kinematics.n
    if not law.is_quadratic or (n > _MOST_QUARTIC and not law.is_linear):
        return None, None, None
    if law.is_linear:
        return stiffness_at_rest(kinematics, domain, law), None, None
    pairs = np.triu_indices(n)  # B_jk and B_kj are the same
    K = _products_of_strains(kinematics, domain, law, pairs)
    place = np.zeros((n, n), dtype=np.int64)
    place[pairs] = place.T[pairs] = np.arange(n, len(K))
    return K[:n, :n], K[:n, place], K[place[:, :, None, None], place]


def stiffness_at_rest(kinematics: Kinematics, domain: Domain | Quadrature, law: Hyperelastic) -> np.ndarray:
    """∂²U/∂θ² of a linear kinematics in the undeformed shape, ∫A_j:ℂ:A_k, shape (n, n)."""
    return _products_of_strains(kinematics, domain, law, None)


def _products_of_strains(
    kinematics: Kinematics, domain: Domain | Quadrature, law: Hyperelastic, pairs: tuple[np.ndarray, ...] | None
) -> np.ndarray:
    """∫ X:ℂ:Y for X and Y all of A_j, and of B_jk for `pairs` of coordinates."""
    n = kinematics.n
    square, axes = np.linalg.eigh(law.moduli())
    root = (np.sqrt(np.maximum(square, 0.0)) * axes)[:, -6:].T  # ℂ = rootᵀ root; it sees symmetric parts alone
    count = n if pairs is None else n + len(pairs[0])
    K = np.zeros((count, count))
    slopes = kinematics.shape_gradients(domain.points)
    for k in range(0, len(slopes), step := max(1, _BLOCK // (33 * count))):
        slope, w = slopes[k : k + step], domain.weights[k : k + step]
        strained = [slope.reshape(-1, 9, n)]
        if pairs is not None:
            B = np.einsum("kcap,kcbp->kabp", slope[..., pairs[0]], slope[..., pairs[1]])
            strained.append(B.reshape(len(w), 9, -1))
        AB = (np.sqrt(w)[:, None, None] * (root @ np.concatenate(strained, axis=-1))).reshape(-1, count)
        K += AB.T @ AB
    return K
