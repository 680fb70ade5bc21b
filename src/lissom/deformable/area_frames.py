"""Frames that follow areas across a body, from the slopes of material points: no derivative is left to JAX.

With b = ∂f/∂y, d = ∂f/∂z and n = b×d of a point, its axes are R = (a₁, a₂, a₃), a₁ = n/|n|, a₂ = b/|b|, a₃ = a₁×a₂, and
the columns S_j = (w_j; u_j) of the frame in these axes are

    w_j = (a₃·b_j/|b|, −a₃·n_j/|n|, a₂·n_j/|n|),   u_j = Rᵀ J_j                                            (1)
    ∂a_k/∂θ_c = R (w_c×e_k),   ∂|b|/∂θ_c = a₂·b_c,   ∂|n|/∂θ_c = a₁·n_c                                    (2)

so that ∂S_j/∂θ_c takes second derivatives of points by θ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


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


def area_columns(x: Area) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """R (K, 3, 3), S (K, n, 6) and, if second derivatives are there, ∂S (K, n, n, 6) by [j, c]."""
    n, n_j = np.cross(x.b, x.d), np.cross(x.b_j, x.d[:, None]) + np.cross(x.b[:, None], x.d_j)
    of_b, of_n = (np.linalg.norm(part, axis=-1)[:, None] for part in (x.b, n))
    first, second = n / of_n, x.b / of_b
    R = np.stack([first, second, np.cross(first, second)], axis=-1)
    b_R, n_R = x.b_j @ R / of_b[..., None], n_j @ R / of_n[..., None]  # in the axes, over |b| and |n|
    w, u = np.stack([b_R[..., 2], -n_R[..., 2], n_R[..., 1]], axis=-1), x.J @ R  # (1)
    S = np.concatenate([w, u], axis=-1)
    if x.H is None or x.b_jc is None or x.d_jc is None:
        return R, S, None
    across = np.cross(x.b_j[:, :, None], x.d_j[:, None])
    n_jc = np.cross(x.b_jc, x.d[:, None, None]) + across + across.swapaxes(1, 2)
    n_jc += np.cross(x.b[:, None, None], x.d_jc)
    w_c = w[:, None]
    b_Rc = _turned(x.b_jc, R, b_R, w_c, of_b) - b_R[:, :, None] * b_R[:, None, :, 1:2]  # (2)
    n_Rc = _turned(n_jc, R, n_R, w_c, of_n) - n_R[:, :, None] * n_R[:, None, :, :1]
    w_jc = np.stack([b_Rc[..., 2], -n_Rc[..., 2], n_Rc[..., 1]], axis=-1)
    return R, S, np.concatenate([w_jc, x.H @ R[:, None] - np.cross(w_c, u[:, :, None])], axis=-1)


def _turned(x_jc: np.ndarray, R: np.ndarray, x_j: np.ndarray, w_c: np.ndarray, size: Any) -> np.ndarray:
    """∂/∂θ_c of Rᵀx_j, of a size, that is x_j in the axes, by what x_j and the axes change."""
    return x_jc @ R[:, None] / size[..., None, None] - np.cross(w_c, x_j[:, :, None])
