"""Frames at material points from the slopes of these: no derivative is left to JAX.

With b = ∂f/∂y, d = ∂f/∂z and n = b×d of a point, the frame that follows the area across x there has the axes
R = (a₁, a₂, a₃), a₁ = n/|n|, a₂ = b/|b|, a₃ = a₁×a₂, and in these axes the columns S_j = (w_j; u_j)

    w_j = (a₃·b_j/|b|, −a₃·n_j/|n|, a₂·n_j/|n|),   u_j = Rᵀ J_j                                            (1)
    ∂a_k/∂θ_c = R (w_c×e_k),   ∂|b|/∂θ_c = a₂·b_c,   ∂|n|/∂θ_c = a₁·n_c                                    (2)

so that ∂S_j/∂θ_c takes second derivatives of points by θ. Along a rate, Σ ∂S_j/∂θ_c v_j v_c takes those along it, which
first derivatives bring with them, and Σ ∂²S_j/∂θ_c∂θ_e v_c v_e comes from differences of S.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from lissom.deformable.moved_points import MovedPoints
from lissom.deformable.slopes import Bends, Slopes
from lissom.deformable.twists import cross
from lissom.robot.poses import compiled

_STEP = 3e-3  # of differences of columns, in turns [rad] and displacements over the size of the body
_FIRST = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0  # central differences of fourth order, at −2, −1, 1 and 2 steps
_SECOND = np.array([-1.0, 16.0, 16.0, -1.0]) / 12.0  # and −30/12 in the middle
_KEPT = 32  # states whose columns are
_PLACES = np.array([-2.0, -1.0, 1.0, 2.0])


class Area(NamedTuple):
    """Points of a body: J (K, n, 3), H (K, n, n, 3) by [j, c], and the columns b and d of ∂f/∂x along y and z with
    their derivatives; H, b_jc and d_jc are None where second derivatives are not asked for."""

    J: np.ndarray
    b: np.ndarray
    d: np.ndarray
    b_j: np.ndarray
    d_j: np.ndarray
    H: np.ndarray | None = None
    b_jc: np.ndarray | None = None
    d_jc: np.ndarray | None = None


def area_columns(x: Area) -> tuple[Any, Any, Any]:
    """R (K, 3, 3), S (K, n, 6) and, if second derivatives are there, ∂S (K, n, n, 6) by [j, c], else None."""
    import jax.numpy as jnp

    n, n_j = cross(x.b, x.d), cross(x.b_j, x.d[:, None]) + cross(x.b[:, None], x.d_j)
    of_b, of_n = (jnp.linalg.norm(part, axis=-1)[:, None] for part in (x.b, n))
    first, second = n / of_n, x.b / of_b
    R = jnp.stack([first, second, cross(first, second)], axis=-1)
    b_R, n_R = x.b_j @ R / of_b[..., None], n_j @ R / of_n[..., None]  # in the axes, over |b| and |n|
    w, u = jnp.stack([b_R[..., 2], -n_R[..., 2], n_R[..., 1]], axis=-1), x.J @ R  # (1)
    S = jnp.concatenate([w, u], axis=-1)
    if x.H is None or x.b_jc is None or x.d_jc is None:
        return R, S, None
    across = cross(x.b_j[:, :, None], x.d_j[:, None])
    n_jc = cross(x.b_jc, x.d[:, None, None]) + across + across.swapaxes(1, 2) + cross(x.b[:, None, None], x.d_jc)
    w_c = w[:, None]
    b_Rc = _turned(x.b_jc, R, b_R, w_c, of_b) - b_R[:, :, None] * b_R[:, None, :, 1:2]  # (2)
    n_Rc = _turned(n_jc, R, n_R, w_c, of_n) - n_R[:, :, None] * n_R[:, None, :, :1]
    w_jc = jnp.stack([b_Rc[..., 2], -n_Rc[..., 2], n_Rc[..., 1]], axis=-1)
    return R, S, jnp.concatenate([w_jc, x.H @ R[:, None] - cross(w_c, u[:, :, None])], axis=-1)


def _turned(x_jc: Any, R: Any, x_j: Any, w_c: Any, size: Any) -> Any:
    """∂/∂θ_c of Rᵀx_j, of a size, that is x_j in the axes, by what x_j and the axes change."""
    return x_jc @ R[:, None] / size[..., None, None] - cross(w_c, x_j[:, :, None])


def _columns_along(x: Area, v: Any, h: Any, b_h: Any, d_h: Any) -> tuple[Any, Any, Any]:
    """R, S and Σ ∂S_j/∂θ_c v_j v_c (K, 6), with what second derivatives of p, b and d come to along v, (K, 3)."""
    R, S, _ = area_columns(x)
    J, b_j, d_j = ((v @ part)[:, None] for part in (x.J, x.b_j, x.d_j))
    second = (part[:, None, None] for part in (h, b_h, d_h))
    return R, S, area_columns(Area(J, x.b, x.d, b_j, d_j, *second))[2][:, 0, 0]


@lru_cache(maxsize=2)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled(function)


@final
class FramesSeen:
    """Some frames of one body, of which some turn with the area across x, others keep the axes of the body.

    Args:
        points: of the body. numbers: of the frames' points among these. turning: whether each follows the area.
    """

    def __init__(self, points: MovedPoints, numbers: np.ndarray, turning: np.ndarray) -> None:
        self.points, self.numbers, self.turning = points, numbers, turning
        self._kept: dict[tuple[Any, ...], tuple[np.ndarray, ...]] = {}

    def columns(self, q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> tuple[np.ndarray, ...]:
        """R, p, S, ∂S and ∂²S at one θ, as `MaterialFrames.derivatives` has them; what was found at a state is kept."""
        key = (q.tobytes(), None if v is None else v.tobytes(), curved, sloped)
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = self._columns(q, v, curved=curved, sloped=sloped)
        return self._kept[key]

    def _columns(self, q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> tuple[np.ndarray, ...]:
        if not (curved or sloped):
            R, p, S, S_q = self._along(q, v)
            return R, p, S, S_q, np.zeros((len(p), 0))
        R, p, S, S_q = self._bent(q)
        if not curved:
            return R, p, S, S_q, np.zeros((len(p), 0))
        if v is None:
            by_e = np.array([self._changes(q, S, e) for e in np.eye(len(q))])
            return R, p, S, S_q, np.moveaxis(by_e, 0, 3)
        still = np.zeros((*S.shape[:2], len(q), len(q), 6))
        return R, p, S, S_q, _along_rate(self._second_change(q, S, v), v) if v.any() else still

    def _along(self, q: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R, p, S and a ∂S that is right along v."""
        rate = v if v is not None and v.any() else None
        x, turns = self.points.slopes(self.numbers, q, rate), self.turning
        R, S = _plain(x)
        change = np.concatenate([np.zeros_like(x.h), x.h]).T
        if turns.any():
            own = _area(x, turns)
            if rate is None:
                R[turns], S[turns], _ = _compiled(area_columns)(own)
            else:
                bent = (x.h[:, turns].T, *x.F_h[:, 1:, turns].transpose(1, 2, 0))
                R[turns], S[turns], change[turns] = _compiled(_columns_along)(own, rate, *bent)
        S_q = np.zeros((*S.shape[:2], len(q), 6))
        if rate is not None:
            S_q += np.multiply.outer(rate, rate)[:, :, None] * change[:, None, None] / (rate @ rate) ** 2
        return R, x.p.T, S, S_q

    def _bent(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R, p, S and ∂S."""
        x, turns = self.points.bends(self.numbers, q), self.turning
        R, S = _plain(x)
        S_q = np.zeros((*S.shape[:2], len(q), 6))
        S_q[..., 3:] = x.H.transpose(3, 0, 1, 2)
        if turns.any():
            b_jc, d_jc = x.F_jl[..., 1:, turns].transpose(3, 4, 0, 1, 2)
            own = _area(x, turns)._replace(H=S_q[turns][..., 3:], b_jc=b_jc, d_jc=d_jc)
            R[turns], S[turns], S_q[turns] = _compiled(area_columns)(own)
        return R, x.p.T, S, S_q

    def _step(self, S: np.ndarray, v: np.ndarray) -> float:
        """What times v moves the frames by a step of differences."""
        speed = np.abs(np.einsum("kjr,j->kr", S, v)) / np.repeat([1.0, self.points.size], 3)
        return _STEP / max(float(speed.max()), 1e-300)

    def _changes(self, q: np.ndarray, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Σ ∂²S_j/∂θ_c∂θ_e v_e by differences of ∂S, shape (K, n, n, 6)."""
        h = self._step(S, v)
        return np.tensordot(_FIRST, [self._bent(q + k * h * v)[3] for k in _PLACES], axes=1) / h

    def _second_change(self, q: np.ndarray, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Σ ∂²S_j/∂θ_c∂θ_e v_c v_e by differences of S, shape (K, n, 6)."""
        h = self._step(S, v)
        around = [self._along(q + k * h * v, None)[2] for k in _PLACES]
        return (np.tensordot(_SECOND, around, axes=1) - 2.5 * S) / h**2


def _plain(x: Slopes | Bends) -> tuple[np.ndarray, np.ndarray]:
    """R and S of frames that keep the axes of the body."""
    J = x.J.transpose(2, 0, 1)
    return np.tile(np.eye(3), (len(J), 1, 1)), np.concatenate([np.zeros_like(J), J], axis=-1)


def _area(x: Slopes | Bends, turns: np.ndarray) -> Area:
    """Of the points whose frames turn, with first derivatives."""
    b, d = x.F[:, 1:, turns].transpose(1, 2, 0)
    return Area(x.J[..., turns].transpose(2, 0, 1), b, d, *x.F_j[:, :, 1:, turns].transpose(2, 3, 0, 1))


def _along_rate(change: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A ∂²S (K, n, n, n, 6) with a given Σ ∂²S_j/∂θ_c∂θ_e v_c v_e (K, n, 6)."""
    return change[:, :, None, None] * (np.multiply.outer(v, v) / (v @ v) ** 2)[..., None]
