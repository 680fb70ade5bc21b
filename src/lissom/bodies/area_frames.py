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

from lissom.bodies.moved_points import MovedPoints, Places
from lissom.bodies.slopes import Bends, Slopes, unpacked
from lissom.bodies.twists import cross
from lissom.robot.poses import compiled

_STEP = 3e-3  # of differences of columns, in turns [rad] and displacements over the size of the body
_FIRST = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0  # central differences of fourth order, at −2, −1, 1 and 2 steps
_SECOND = np.array([-1.0, 16.0, 16.0, -1.0]) / 12.0  # and −30/12 in the middle
_KEPT = 32  # states whose columns are
_LEAST = 1e-300
_PLACES = np.array([-2.0, -1.0, 1.0, 2.0])


class Area(NamedTuple):
    """Points of a body: J (K, n, 3), H (K, n, n, 3) by [j, c], and the columns b and d of ∂f/∂x along y and z with
    their derivatives; H, b_jc and d_jc are None where second derivatives are not asked for."""

    J: Any
    b: Any
    d: Any
    b_j: Any
    d_j: Any
    H: Any = None
    b_jc: Any = None
    d_jc: Any = None


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


def _columns(rows: Any, v: Any) -> Any:
    """R (K, 9), S (K, n 6) and Σ ∂S_j/∂θ_c v_j v_c (K, 6) side by side, from the slopes of points at rates v (K, n),
    packed as (..., K)."""
    import jax.numpy as jnp

    n = v.shape[1]
    x = unpacked(Slopes, rows, n)
    own = _area(x)
    R, S, _ = area_columns(own)
    J, b_j, d_j = (jnp.einsum("kj,kjr->kr", v, part)[:, None] for part in (own.J, own.b_j, own.d_j))
    second = (part.T[:, None, None] for part in (x.h, x.F_h[:, 1], x.F_h[:, 2]))
    along = area_columns(Area(J, own.b, own.d, b_j, d_j, *second))[2]
    return jnp.concatenate([R.reshape(-1, 9), S.reshape(-1, 6 * n), along[:, 0, 0]], axis=1)


def _bent_columns(x: Bends) -> Any:
    """R (K, 9), S (K, n 6) and ∂S_j/∂θ_c (K, n n 6) side by side."""
    import jax.numpy as jnp

    b_jc, d_jc = x.F_jl[..., 1:, :].transpose(3, 4, 0, 1, 2)
    parts = area_columns(_area(x)._replace(H=x.H.transpose(3, 0, 1, 2), b_jc=b_jc, d_jc=d_jc))
    return jnp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _area(x: Slopes | Bends) -> Area:
    """Of points with first derivatives."""
    b, d = x.F[:, 1:].transpose(1, 2, 0)
    return Area(x.J.transpose(2, 0, 1), b, d, *x.F_j[:, :, 1:].transpose(2, 3, 0, 1))


@lru_cache(maxsize=2)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled(function)


@final
class FramesSeen:
    """Some frames (K,) of bodies (k,) that are moved together.

    Some turn with the area across x, others keep the axes of their body.

    Args:
        points: of the bodies. places: those of the frames among these. turning: whether each follows the area.
    """

    def __init__(self, points: MovedPoints, places: Places, turning: np.ndarray) -> None:
        self.points, self.places, self.turns = points, places, np.flatnonzero(turning)
        self._kept: dict[tuple[Any, ...], tuple[np.ndarray, ...]] = {}

    def columns(self, q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> tuple[np.ndarray, ...]:
        """R, p, S, ∂S and ∂²S at θ (k, n) of the bodies, as `MaterialFrames.derivatives` has them; what was found at a
        state is kept."""
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
        R, p, S, S_q = self._bent(q, v)
        if not curved:
            return R, p, S, S_q, np.zeros((len(p), 0))
        n = q.shape[1]
        if v is None:
            by_e = np.array([self._changes(q, S, np.tile(e, (len(q), 1))) for e in np.eye(n)])
            return R, p, S, S_q, np.moveaxis(by_e, 0, 3)
        return R, p, S, S_q, _along_rates(self._second_change(q, S, v), v[self.places.body])

    def _along(self, q: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R, p, S and a ∂S that is right along v."""
        n, turns = q.shape[1], self.turns
        rows = self.points.packed_slopes(self.places, q, v if v is not None and v.any() else None)
        x = unpacked(Slopes, rows, n)
        R, S = _plain(x)
        rate = np.zeros((len(S), n)) if v is None else v[self.places.body]
        change = np.concatenate([np.zeros_like(x.h), x.h]).T
        if len(turns):
            found = np.asarray(_compiled(_columns)(rows[:, turns], rate[turns]))
            R[turns], S[turns] = found[:, :9].reshape(-1, 3, 3), found[:, 9:-6].reshape(-1, n, 6)
            change[turns] = found[:, -6:]
        if not rate.any():
            return R, x.p.T, S, np.zeros((*S.shape[:2], n, 6))
        unit = rate / np.maximum((rate * rate).sum(axis=1), _LEAST)[:, None]
        return R, x.p.T, S, (unit[:, :, None] * unit[:, None])[..., None] * change[:, None, None]

    def _bent(
        self, q: np.ndarray, v: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R, p, S and ∂S; v is the rate at which others ask for these points."""
        n, turns = q.shape[1], self.turns
        rows = self.points.packed_bends(self.places, q, v)
        x = unpacked(Bends, rows, n)
        R, S = _plain(x)
        S_q = np.zeros((*S.shape[:2], n, 6))
        S_q[..., 3:] = x.H.transpose(3, 0, 1, 2)
        if len(turns):
            of_turns = unpacked(Bends, rows[:, turns], n)
            found = np.asarray(_compiled(_bent_columns)(of_turns))
            R[turns], S[turns] = found[:, :9].reshape(-1, 3, 3), found[:, 9 : 9 + 6 * n].reshape(-1, n, 6)
            S_q[turns] = found[:, 9 + 6 * n :].reshape(-1, n, n, 6)
        return R, x.p.T, S, S_q

    def _steps(self, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What times v moves the frames of each body by a step of differences, shape (k,); zero where nothing moves."""
        speed = np.abs(np.einsum("kjr,kj->kr", S, v[self.places.body])) / np.repeat([1.0, self.points.size], 3)
        fastest = np.zeros(len(v))
        np.maximum.at(fastest, self.places.body, speed.max(axis=1))
        return np.where(fastest > 0.0, _STEP / np.maximum(fastest, _LEAST), 0.0)

    def _changes(self, q: np.ndarray, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Σ ∂²S_j/∂θ_c∂θ_e v_e by differences of ∂S, shape (K, n, n, 6)."""
        h = self._steps(S, v)
        around = [self._bent(q + k * h[:, None] * v)[3] for k in _PLACES]
        return np.tensordot(_FIRST, around, axes=1) * self._over(h)[:, None, None, None]

    def _second_change(self, q: np.ndarray, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Σ ∂²S_j/∂θ_c∂θ_e v_c v_e by differences of S, shape (K, n, 6)."""
        h = self._steps(S, v)
        around = [self._along(q + k * h[:, None] * v, None)[2] for k in _PLACES]
        return (np.tensordot(_SECOND, around, axes=1) - 2.5 * S) * self._over(h)[:, None, None] ** 2

    def _over(self, h: np.ndarray) -> np.ndarray:
        """1/h of the body of each frame, zero where h is."""
        return np.where(h > 0.0, 1.0 / np.where(h > 0.0, h, 1.0), 0.0)[self.places.body]


def _plain(x: Slopes | Bends) -> tuple[np.ndarray, np.ndarray]:
    """R and S of frames that keep the axes of the body."""
    J = x.J.transpose(2, 0, 1)
    return np.tile(np.eye(3), (len(J), 1, 1)), np.concatenate([np.zeros_like(J), J], axis=-1)


def _along_rates(change: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A ∂²S (K, n, n, n, 6) with a given Σ ∂²S_j/∂θ_c∂θ_e v_c v_e (K, n, 6), at rates v (K, n)."""
    unit = v / np.maximum((v * v).sum(axis=1), _LEAST)[:, None]
    return change[:, :, None, None] * (unit[:, :, None] * unit[:, None])[:, None, :, :, None]
