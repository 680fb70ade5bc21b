"""Derivatives of motions that are made of motions one after the other, points along the last axis.

With z = (p, s) what a motion g moves and its own coordinates, and z_α how z changes with any of the coordinates or of
the directions of x, what g makes of p changes by

    g_z z_α,   g_z z_αβ + g_zz[z_α, z_β],   g_z z_αβγ + Σ g_zz[z_αβ, z_γ] + g_zzz[z_α, z_β, z_γ]           (1)

over the three pairs αβ. Motions have few coordinates each: that costs a hundredth of derivatives of the whole at once,
and compiles in the time that its parts take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lissom.deformable.slopes import Bends, Slopes, along_all, curved

Step = Callable[[Any, Any], Any]  # (x, y, z) of all points (3, N) and own coordinates to where they are then


def _dot(A: Any, B: Any) -> Any:
    """Σ_z A_z B_z of A (z, ..., 3, N) and B (..., z or fewer, N): axes of A left, those of B, then (3, N)."""
    front, back = A.shape[1:-2], B.ndim - 2
    total = 0.0
    for z in range(B.shape[-2]):
        total = total + A[z].reshape(*front, *[1] * back, *A.shape[-2:]) * B[..., z, :][..., None, :]
    return total


def _jets(step: Step, p: Any, s: Any, order: int) -> tuple[Any, ...]:
    """g and its derivatives by z up to an order, as arrays (..., 3, N)."""
    import jax
    import jax.numpy as jnp

    def whole(d: Any) -> tuple[Any, ...]:
        return (step(p + d[:3, None], s + d[3:]),)

    def raised(lower: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, ...]]:
        def higher(d: Any) -> tuple[Any, ...]:
            values, slopes = along_all(lower, d)
            return *values, slopes[-1]

        return higher

    function = whole
    for _ in range(order):
        function = raised(function)
    return jax.lax.optimization_barrier(function(jnp.zeros(3 + len(s))))


def _own(J: Any, k: int) -> Any:
    """z_j of the coordinates so far and of k of the motion's own, shape (n + k, 3 + k, N)."""
    import jax.numpy as jnp

    own = jnp.broadcast_to(jnp.eye(3 + k)[3:, :, None], (k, 3 + k, J.shape[-1]))
    return jnp.concatenate([jnp.pad(J, ((0, 0), (0, k), (0, 0))), own])


def _start(points: Any) -> tuple[Any, ...]:
    """p, F with the direction first, J, F_j, and h = J̇θ̇ before any motion."""
    import jax.numpy as jnp

    p = jnp.asarray(points, dtype=jnp.float64).T
    count = p.shape[-1]
    one = jnp.broadcast_to(jnp.eye(3)[:, :, None], (3, 3, count))
    return p, one, jnp.zeros((0, 3, count)), jnp.zeros((3, 0, 3, count)), jnp.zeros((3, count))


def _rate(J: Any, v: Any, own: Any) -> Any:
    """ż, shape (3 + k, N)."""
    import jax.numpy as jnp

    p_dot = (J * v[:, None, None]).sum(axis=0)
    return jnp.concatenate([p_dot, jnp.broadcast_to(own[:, None], (len(own), J.shape[-1]))])


def _padded(part: Any, axes: tuple[int, ...], k: int) -> Any:
    """With k zeros behind along some axes."""
    import jax.numpy as jnp

    return jnp.pad(part, [(0, k if axis in axes else 0) for axis in range(part.ndim)])


def _seconds(step: Step, p: Any, s: Any, rate: Any, X: Any) -> tuple[Any, Any]:
    """g_zz[ż, ż], shape (3, N), and g_zzz[x_i, ż, ż], shape (3, 3, N), of the directions x_i."""
    import jax

    def second(p: Any) -> Any:
        return curved(step, (p, s), (rate[:3], rate[3:, 0]))

    return jax.vmap(lambda x: jax.jvp(second, (p,), (x,)), out_axes=(None, 0))(X)


def slopes(steps: list[tuple[Step, int]], points: Any, q: Any, v: Any) -> Slopes:
    """Of the motions, each with the number of its coordinates, at θ = q and θ̇ = v."""
    import jax

    p, X, J, XJ, h = _start(points)
    Xh, first = 0.0 * X, 0
    for step, k in steps:
        own, rate = q[first : first + k], _rate(J, v[:first], v[first : first + k])
        Z = _own(J, k)
        turned, bent = _seconds(step, p, own, rate, X)
        p, G, GG = _jets(step, p, own, 2)
        A = _dot(GG, X)
        X_dot = (XJ * v[:first, None, None]).sum(axis=1)
        Xh = _dot(G, Xh) + 2.0 * _dot(_dot(GG, rate), X_dot) + _dot(A, h) + bent
        XJ = _dot(G, _padded(XJ, (1,), k)) + _dot(A, Z)
        parts = p, _dot(G, X), _dot(G, Z), XJ, _dot(G, h) + turned, Xh
        p, X, J, XJ, h, Xh = jax.lax.optimization_barrier(parts)
        first += k
    return Slopes(p, X.swapaxes(0, 1), J, XJ.transpose(1, 2, 0, 3), h, Xh.swapaxes(0, 1))


def bends(steps: list[tuple[Step, int]], points: Any, q: Any, v: Any) -> Bends:
    """Of the motions, each with the number of its coordinates, at θ = q and θ̇ = v."""
    import jax
    import jax.numpy as jnp

    p, X, J, XJ, h = _start(points)
    count, first = p.shape[-1], 0
    H, XH, h_q = jnp.zeros((0, 0, 3, count)), jnp.zeros((3, 0, 0, 3, count)), jnp.zeros((0, 3, count))
    for step, k in steps:
        own, rate = q[first : first + k], _rate(J, v[:first], v[first : first + k])
        Z = _own(J, k)
        p, G, GG, GGG = _jets(step, p, own, 3)
        turned = _padded((H * v[:first, None, None]).sum(axis=1), (0,), k)
        H, XH, XJ, h_q = _padded(H, (0, 1), k), _padded(XH, (1, 2), k), _padded(XJ, (1,), k), _padded(h_q, (0,), k)
        A, B, R = _dot(GG, X), _dot(GG, Z), _dot(GG, rate)
        mixed = _dot(B, XJ).transpose(1, 0, 2, 3, 4)  # g_zz[z_j, z_il] by [i, j, l]
        XH = _dot(G, XH) + _dot(A, H) + mixed + mixed.swapaxes(1, 2) + _dot(_dot(_dot(GGG, X), Z), Z)
        h_q = _dot(G, h_q) + _dot(_dot(GG, h), Z) + 2.0 * _dot(R, turned) + _dot(_dot(_dot(GGG, rate), rate), Z)
        parts = (p, _dot(G, X), _dot(G, Z), _dot(G, XJ) + _dot(A, Z), _dot(G, h) + _dot(R, rate),
                 _dot(G, H) + _dot(B, Z), XH, h_q)  # fmt: skip
        p, X, J, XJ, h, H, XH, h_q = jax.lax.optimization_barrier(parts)
        first += k
    return Bends(p, X.swapaxes(0, 1), J, XJ.transpose(1, 2, 0, 3), H, XH.transpose(1, 2, 3, 0, 4), h_q)
