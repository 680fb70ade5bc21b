"""What integrals over points that move in any way are made of, points along the last axis.

With H = ∂²f/∂θ² and F = ∂f/∂x of the points,

    ∂p̈/∂θ_l = Σ H_lk θ̈_k + ∂(J̇θ̇)/∂θ_l,   ∂p̈/∂θ̇_l = 2 Σ H_lk θ̇_k                                        (1)

and with S = w (∂W/∂F + η (∂E/∂F)ᵀ ℂ Ė) of F and Ḟ = Σ F_k θ̇_k, the forces of the material and their slopes are

    Σ S : F_j,   Σ S : F_jl + (∂S/∂F F_l + ∂S/∂Ḟ Σ F_kl θ̇_k) : F_j                                         (2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lissom.bodies.materials import Hyperelastic
from lissom.bodies.slopes import Bends, Slopes


def crossed(X: Any) -> Any:
    """Σ a×b of matrices Σ a bᵀ, shape (..., 3, 3) to (..., 3)."""
    import jax.numpy as jnp

    parts = (X[..., 1, 2] - X[..., 2, 1], X[..., 2, 0] - X[..., 0, 2], X[..., 0, 1] - X[..., 1, 0])
    return jnp.stack(parts, axis=-1)


def inertia(m: Any, x: Slopes, v: Any) -> tuple[Any, ...]:
    """The integrals of ShapeValues from c to e_v."""
    import jax.numpy as jnp

    mJ, mh = m * x.J, m * x.h
    P_j = jnp.einsum("ak,jbk->jab", x.p, mJ)
    M = jnp.einsum("jak,lak->jl", x.J, mJ)
    p_dot = jnp.einsum("jak,j->ak", x.J, v)
    w_j = crossed(jnp.einsum("ak,jbk->jab", p_dot, mJ))
    b_v = crossed(x.p @ mh.T)
    ends = mh.sum(axis=-1), b_v, w_j, jnp.einsum("jak,ak->j", x.J, mh)
    return x.p @ m, x.p @ (m * x.p).T, mJ.sum(axis=-1), P_j, M, *ends


class ByAcceleration(NamedTuple):
    """What c_q, b_q and e_q change by with θ̈_k, beside ∫ρ ∂²f/∂θ_j∂θ_l: ∫ρ J_l×J_j (n, n, 3) by [j, l], and by [j, l]
    ∫ρ p×H_jl (n, n, 3) and ∫ρ H_jl·J_k (n, n, n)."""

    JxJ: Any
    pxH: Any
    HJ: Any


def inertia_slopes(m: Any, x: Bends, v: Any) -> tuple[Any, ...]:
    """The integrals of ShapeDerivatives from c_q to w_v at θ̈ = 0, and those of ByAcceleration behind JxJ."""
    import jax.numpy as jnp

    turned, mJ = jnp.einsum("ljak,j->lak", x.H, v), m * x.J
    p_dot, h = (jnp.einsum("jak,j->ak", part, v) for part in (x.J, turned))
    force, by_q, by_v = m * h, m * x.h_q, 2.0 * m * turned  # (1)
    JJ = jnp.einsum("lak,jbk->jlab", x.J, mJ)
    b_q = crossed(jnp.einsum("lak,bk->lab", x.J, force) + jnp.einsum("ak,lbk->lab", x.p, by_q))
    e_q = jnp.einsum("ljak,ak->jl", x.H, force) + jnp.einsum("jak,lak->jl", x.J, by_q)
    moments = jnp.einsum("rk,jlbk->jlrb", jnp.concatenate([m[None], m * x.p, m * p_dot]), x.H)
    w_q = jnp.einsum("lak,jbk->jlab", turned, mJ) + moments[:, :, 4:]
    b_v, e_v = crossed(jnp.einsum("ak,lbk->lab", x.p, by_v)), jnp.einsum("jak,lak->jl", x.J, by_v)
    firsts = by_q.sum(axis=-1), b_q, e_q, moments[:, :, 0], JJ + moments[:, :, 1:4], crossed(w_q)
    HJ = jnp.einsum("jlak,iak->jli", x.H, mJ)
    return *firsts, by_v.sum(axis=-1), b_v, e_v, crossed(JJ), crossed(moments[:, :, 1:4]), HJ


def accelerated(found: tuple[Any, ...], c_jl: Any, a: Any, by: ByAcceleration) -> tuple[Any, ...]:
    """c_q, b_q and e_q at θ̈ = a (..., n) of those at rest, as NumPy arrays with leading axes."""
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


def material_forces(law: Hyperelastic, moduli: np.ndarray, w: Any, x: Slopes, v: Any) -> tuple[Any, ...]:
    """U, g, d and d_v of ShapeValues, `moduli` being ℂ."""
    return _forces(law, moduli, w, x.F, x.F_j, v)


def _forces(law: Hyperelastic, moduli: np.ndarray, w: Any, F: Any, F_j: Any, v: Any) -> tuple[Any, ...]:
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


def material_slopes(law: Hyperelastic, moduli: np.ndarray, w: Any, x: Bends, v: Any) -> tuple[Any, Any]:
    """K and d_q of ShapeDerivatives by (2), `moduli` being ℂ."""
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


def linear_forces(law: Hyperelastic, moduli: np.ndarray, w: Any, F_j: Any, q: Any, v: Any) -> tuple[Any, ...]:
    """U, g, d and d_v of ShapeValues where ∂f/∂x = 1 + Σ F_j θ_j, with F_j of shape (n, 3, 3, N)."""
    return _forces(law, moduli, w, _linear_slope(F_j, q), F_j, v)


def linear_slopes(law: Hyperelastic, moduli: np.ndarray, w: Any, F_j: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """K and d_q of ShapeDerivatives where ∂f/∂x = 1 + Σ F_j θ_j, with F_j of shape (n, 3, 3, N)."""
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
    import jax.numpy as jnp

    return jnp.eye(3)[..., None] + jnp.einsum("jabk,j->abk", F_j, q)
