"""Integrals over a deformable body that its inertia, weight and elasticity come from, with their derivatives.

In the body's frame, with m_k the masses of the points, J_j = ∂f/∂θ_j, J̇θ̇ = Σ ∂²f/∂θ_j∂θ_k θ̇_jθ̇_k and p̈ = J θ̈ + J̇θ̇,
the wrench on a frame of angular velocity ω whose acceleration less gravity is (ω̇, a), and the body's own forces are

    force  = m a + ω̇×c + ω×(ω×c) + 2 ω×ċ + c̈,   ċ = Σ c_j θ̇_j                                              (1)
    moment = c×a + I ω̇ + ω×Iω + 2 (tr Π − Πᵀ) ω + b,   I = tr P − P,   Π = Σ P_j θ̇_j                        (2)
    τ_j    = c_j·a + (∫ρ p×J_j)·ω̇ + ωᵀP_jω − ω² tr P_j + 2 ω·w_j + e_j + g_j + d_j                          (3)

with c̈ = ∫ρp̈, b = ∫ρ p×p̈, e_j = ∫ρ J_j·p̈. None of them sees a material point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies import moving_points
from lissom.bodies.domains import Domain, Quadrature
from lissom.bodies.kinematics import ComposedKinematics, Kinematics
from lissom.bodies.linear_coefficients import LinearCoefficients, linear_coefficients
from lissom.bodies.materials import Hyperelastic, determinant
from lissom.bodies.moved_points import MotionSlopes, MovedPoints
from lissom.bodies.sharing import kept, shared
from lissom.bodies.slopes import Bends, Slopes, unpacked
from lissom.bodies.together import Together
from lissom.robot.poses import compiled, in_double

_MOST_SLOPES = 1 << 23  # numbers of ∂φ/∂x that are kept
_BLOCK = 1 << 20  # numbers that are made of points in one go


class ShapeValues(NamedTuple):
    """At (θ, θ̇), with leading axes of a batch."""

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
    """At (θ, θ̇, θ̈), by θ_l where a name ends in q and by θ̇_l where it ends in v, l after j; with axes of a batch."""

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


@final
@dataclass(frozen=True, eq=False)
class ShapeIntegrals:
    """The integrals of one body, compiled by JAX on their first use, in float64.

    Args:
        kinematics, material: of the body. domain: it, or the points and weights of a quadrature of it.
        density: [kg/m³], or a function of a material point (3,).
    """

    kinematics: Kinematics
    domain: Domain | Quadrature
    material: Hyperelastic
    density: float | Callable[[np.ndarray], float]

    @cached_property
    def looked_at(self) -> dict[str, Any]:
        """What those who checked the motion found, which takes seconds: bodies that are alike look once."""
        return {}

    @cached_property
    def masses(self) -> np.ndarray:
        """Of the points of the quadrature, shape (N,) [kg]."""
        if callable(self.density):
            return self.domain.weights * np.array([float(self.density(x)) for x in self.domain.points])
        return self.domain.weights * self.density

    @cached_property
    def _mass(self) -> float:
        return float(self.masses.sum())

    @cached_property
    def points(self) -> MovedPoints | None:
        """Its points and others of the body, where a composed motion moves them together."""
        if not isinstance(self.kinematics, ComposedKinematics):
            return None
        return MovedPoints(shared(MotionSlopes, self.kinematics), self.domain.points)

    def values(self, q: np.ndarray, v: np.ndarray, together: int = 1) -> ShapeValues:
        """The integrals at θ = q and θ̇ = v, shapes (..., n), of which JAX is asked for so many together."""
        return ShapeValues(self._mass, *_batched(self._values, (q, v), together))

    def derivatives(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, together: int = 1) -> ShapeDerivatives:
        """Their derivatives at θ = q, θ̇ = v and θ̈ = a, shapes (..., n), of which JAX is asked for so many together."""
        if self.kinematics.is_linear:
            return ShapeDerivatives(*_batched(self._derivatives, (q, v, a), together))
        q, v, a = np.broadcast_arrays(q, v, np.asarray(a, dtype=np.float64))
        found = _batched(self._derivatives_at_rest, (q, v), together)
        (c_q, b_q, e_q, c_jl, P_jl, w_q, c_v, b_v, e_v, JxJ), (pxH, HJ, K, d_q) = found[:10], found[10:]
        by = moving_points.ByAcceleration(JxJ, pxH, HJ)
        c_q, b_q, e_q = moving_points.accelerated((c_q, b_q, e_q), c_jl, a, by)
        return ShapeDerivatives(c_q, b_q, e_q, c_jl, P_jl, w_q, c_v, b_v, e_v, JxJ, K, d_q)

    def fold(self, q: np.ndarray) -> np.ndarray:
        """The least det ∂f/∂x of the points at θ = q, shape (...); where it is not positive the map folds."""
        return self.worst(q)[0]

    def worst(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least det ∂f/∂x of the points at θ = q, and the number of the point where it is, shapes (...)."""
        if self._slopes_known is None:
            least, where = _batched(self._fold, (q,))
            return least, where.astype(np.int64)
        rows = np.asarray(q, dtype=np.float64)
        flat, slopes = rows.reshape(-1, rows.shape[-1]), self._slopes_known
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
    def _slopes_known(self) -> np.ndarray | None:
        """∂φ_j/∂x at the points as rows (9 N, n) of a linear map, if there is room for them."""
        if not self.kinematics.is_linear or 9 * len(self.domain.points) * self.kinematics.n > _MOST_SLOPES:
            return None
        return self.kinematics.shape_gradients(self.domain.points).reshape(-1, self.kinematics.n)

    @property
    def _uses_slopes(self) -> bool:
        """Whether forces of the material are sums over points with ∂φ_j/∂x that are known."""
        return self._slopes_known is not None and not self._is_polynomial

    @cached_property
    def _slopes_of_points(self) -> Any:
        """∂φ_j/∂x at the points, shape (n, 3, 3, N), as JAX holds it: given as an argument, as the points are."""
        import jax.numpy as jnp

        assert self._slopes_known is not None
        rows = self._slopes_known.reshape(-1, 3, 3, self.kinematics.n)
        return in_double(jnp.asarray)(np.ascontiguousarray(rows.transpose(3, 1, 2, 0)))

    @cached_property
    def _constants(self) -> LinearCoefficients:
        import jax

        with jax.ensure_compile_time_eval():  # first asked for while JAX traces what uses them
            return self.linear_coefficients()

    def linear_coefficients(self) -> LinearCoefficients:
        """What all integrals are polynomials of, where the kinematics is linear."""
        return linear_coefficients(self.kinematics, self.domain, self.material, self.masses)

    @cached_property
    def _given(self) -> tuple[np.ndarray, ...]:
        """Points, their weights and their masses: given as arguments, since XLA would spend seconds on constants."""
        return self.domain.points, self.domain.weights, self.masses

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of points, weights, masses and what it is called with."""

        if self.kinematics.takes_arrays:
            inner = compiled(function)
            return lambda *state: inner(*self._given, *state)
        given = self._given
        return compiled(lambda *state: function(*given, *state))

    def _together(self, function: Callable[..., Any]) -> Callable[..., list[np.ndarray]]:
        """The same of states of several bodies, along the first axis of what it takes and of all it returns."""
        if self.kinematics.takes_arrays:
            return partial(Together(function, len(self._given)), *self._given)
        given = self._given
        return Together(lambda *state: function(*given, *state))

    @cached_property
    def _values(self) -> Callable[..., Any]:
        import jax

        moduli = self.material.moduli()

        def linear(x: Any, w: Any, m: Any, q: Any, v: Any) -> Any:
            U, g = jax.value_and_grad(self._energy)(q)
            return (*self._linear_inertia(q, v), U, g, *self._damping(moduli, q, v))

        def known(F_j: Any, q: Any, v: Any) -> Any:
            forces = moving_points.linear_forces(self.material, moduli, self.domain.weights, F_j, q, v)
            return (*self._linear_inertia(q, v), *forces)

        def values(w: Any, m: Any, slopes: Slopes, v: Any) -> Any:
            forces = moving_points.material_forces(self.material, moduli, w, slopes, v)
            return (*moving_points.inertia(m, slopes, v), *forces)

        def any_other(x: Any, w: Any, m: Any, q: Any, v: Any) -> Any:
            return values(w, m, self.kinematics.slopes(x, q, v), v)

        if self.points is not None:
            return self._summed(values, Slopes, self.points.slopes_by_row, self._weights(self.points, bends=False))
        if self._uses_slopes:
            return partial(Together(known, 1), self._slopes_of_points)
        return self._together(linear if self.kinematics.is_linear else any_other)

    @cached_property
    def _derivatives(self) -> Callable[..., Any]:
        import jax

        moduli = self.material.moduli()

        def linear(x: Any, w: Any, m: Any, q: Any, v: Any, a: Any) -> Any:
            K = jax.jacfwd(jax.grad(self._energy))(q)
            d_q = jax.jacfwd(lambda q: self._damping(moduli, q, v)[0])(q)
            return (*self._linear_derivatives(a), K, d_q)

        def known(F_j: Any, q: Any, v: Any, a: Any) -> Any:
            slopes = moving_points.linear_slopes(self.material, moduli, self.domain.weights, F_j, q, v)
            return (*self._linear_derivatives(a), *slopes)

        return partial(Together(known, 1), self._slopes_of_points) if self._uses_slopes else self._together(linear)

    @cached_property
    def _derivatives_at_rest(self) -> Callable[..., Any]:
        """Where f is not linear, at θ̈ = 0; those of the last few states are kept."""
        moduli = self.material.moduli()

        def derivatives(w: Any, m: Any, bends: Bends, v: Any) -> Any:
            forces = moving_points.material_slopes(self.material, moduli, w, bends, v)
            return (*moving_points.inertia_slopes(m, bends, v), *forces)

        def any_other(x: Any, w: Any, m: Any, q: Any, v: Any) -> Any:
            return derivatives(w, m, self.kinematics.bends(x, q, v), v)

        points = self.points
        if points is None:
            return kept(self._together(any_other))
        return kept(self._summed(derivatives, Bends, points.bends_by_row, self._weights(points, bends=True)))

    @staticmethod
    def _summed(function: Callable[..., Any], kind: Any, rows: Callable[..., Any], weights: list[Any]) -> Any:
        """A function of θ and θ̇ as a sum over rows of points, whose slopes are compiled apart and kept."""
        inner = Together(lambda w, m, x, v: function(w, m, unpacked(kind, x, len(v)), v), 2)

        def summed(q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
            found = [inner(*weight, x, v) for *weight, x in zip(*weights, rows(q, v))]
            return found[0] if len(found) == 1 else [reduce(np.add, parts) for parts in zip(*found)]

        return summed

    def _weights(self, points: MovedPoints, *, bends: bool) -> list[list[np.ndarray]]:
        return [points.weights(weights, bends=bends) for weights in (self.domain.weights, self.masses)]

    @cached_property
    def _fold(self) -> Callable[..., Any]:
        def least(x: Any, w: Any, m: Any, q: Any) -> Any:
            J = determinant(self.kinematics.deformations(x, q))
            return J.min(), J.argmin() * 1.0

        points = self.points
        if points is None:
            return self._together(least)

        def least_composed(q: np.ndarray) -> list[np.ndarray]:
            J = np.linalg.det(np.moveaxis(points.slopes(np.arange(points.count), q[0]).F, -1, 0))
            return [np.array([J.min()]), np.array([J.argmin()])]

        return least_composed

    def _F(self, q: Any) -> Any:
        return self.kinematics.deformations(self.domain.points, q)

    def _linear_inertia(self, q: Any, v: Any) -> tuple[Any, ...]:
        """The integrals of ShapeValues from c to e_v by (1) of the module linear_coefficients."""
        import jax.numpy as jnp

        n, known = self.kinematics.n, self._constants
        Q = jnp.asarray(known.Q_jk)
        across = jnp.einsum("jab,j->ab", known.P0_j, q)
        P_j = known.P0_j + jnp.einsum("kjab,k->jab", Q, q)
        P = known.P_0 + across.T + jnp.einsum("jab,j->ab", P_j, q)
        w_j = moving_points.crossed(jnp.einsum("kjab,k->jab", Q, v))
        none, M = jnp.zeros(3), jnp.einsum("jkaa->jk", Q)
        return known.c_0 + q @ jnp.asarray(known.c_j), P, known.c_j, P_j, M, none, none, w_j, jnp.zeros(n)

    def _linear_derivatives(self, a: Any) -> tuple[Any, ...]:
        """The integrals of ShapeDerivatives from c_q to w_v where p̈ = J θ̈."""
        import jax.numpy as jnp

        n, Q = self.kinematics.n, jnp.asarray(self._constants.Q_jk)
        b_q, P_jl = moving_points.crossed(jnp.einsum("lkab,k->lab", Q, a)), Q.swapaxes(0, 1)
        vectors, square, cube = jnp.zeros((n, 3)), jnp.zeros((n, n)), jnp.zeros((n, n, 3))
        return vectors, b_q, square, cube, P_jl, cube, vectors, vectors, square, moving_points.crossed(P_jl)

    @property
    def _is_polynomial(self) -> bool:
        """Whether the energy is (2) of the module linear_coefficients."""
        return self.kinematics.is_linear and self._constants.K2 is not None

    def _energy(self, q: Any) -> Any:
        """U of (1) in the module of materials, by (2) of linear_coefficients where it holds."""
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
        """d and d_v of (1) in the module of materials."""
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
    function: Callable[..., list[np.ndarray]], arguments: tuple[np.ndarray, ...], together: int = 1
) -> list[np.ndarray]:
    """A function of stacks of so many vectors, one stack after another: it is compiled for stacks of one size, not once
    a size of batch."""
    rows = np.broadcast_arrays(*(np.asarray(argument, dtype=np.float64) for argument in arguments))
    batch = rows[0].shape[:-1]
    stacks = [row.reshape(-1, together, row.shape[-1]) for row in rows]
    found = [function(*state) for state in zip(*stacks)]
    whole = found[0] if len(found) == 1 else [np.concatenate(parts) for parts in zip(*found)]
    return [part.reshape(batch + part.shape[1:]) for part in whole]
