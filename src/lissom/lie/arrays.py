"""The Lie functions on NumPy arrays with any leading axes. Each calls the function that kernels use."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.errors import ShapeError, check_kept
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, mat3, vec3, vec6
from lissom.lie.warp_private import load_with_room

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def _vec3(x: Rows, i: int, at: int) -> vec3:
    return vec3(x[i, at], x[i, at + 1], x[i, at + 2])


@wp.func
def _vec6(x: Rows, i: int, at: int) -> vec6:
    return se3.join(_vec3(x, i, at), _vec3(x, i, at + 3))


@wp.func
def _mat3(x: Rows, i: int, at: int, row: int) -> mat3:
    M = mat3()
    for r in range(3):
        for c in range(3):
            M[r, c] = x[i, at + row * r + c]
    return M


@wp.func
def _put(out: Rows, i: int, at: int, row: int, M: mat3):
    for r in range(3):
        for c in range(3):
            out[i, at + row * r + c] = M[r, c]


@wp.func
def _put_pair(out: Rows, i: int, A: mat3, B: mat3):
    _put(out, i, 0, 6, A)
    _put(out, i, 3, 6, mat3())
    _put(out, i, 18, 6, B)
    _put(out, i, 21, 6, A)


@wp.kernel
def _so3_exp(x: Rows, out: Rows):
    i = wp.tid()
    _put(out, i, 0, 3, so3.exp(_vec3(x, i, 0)))


@wp.kernel
def _so3_log(x: Rows, out: Rows):
    i = wp.tid()
    w = so3.log(_mat3(x, i, 0, 3))
    for k in range(3):
        out[i, k] = w[k]


@wp.kernel
def _so3_tangent(x: Rows, out: Rows):
    i = wp.tid()
    w = _vec3(x, i, 0)
    _put(out, i, 0, 3, so3.tangent(w, so3.stumpff(wp.dot(w, w))))


@wp.kernel
def _so3_tangent_inverse(x: Rows, out: Rows):
    i = wp.tid()
    w = _vec3(x, i, 0)
    _put(out, i, 0, 3, so3.tangent_inverse(w, so3.stumpff(wp.dot(w, w))))


@wp.func
def _put_pose(out: Rows, i: int, R: mat3, p: vec3):
    _put(out, i, 0, 4, R)
    for k in range(3):
        out[i, 4 * k + 3] = p[k]
        out[i, 12 + k] = so3.ZERO
    out[i, 15] = so3.ONE


@wp.kernel
def _se3_exp(x: Rows, out: Rows):
    i = wp.tid()
    w = _vec3(x, i, 0)
    R, p = se3.exp(_vec6(x, i, 0), so3.stumpff(wp.dot(w, w)))
    _put_pose(out, i, R, p)


@wp.kernel
def _se3_log(x: Rows, out: Rows):
    i = wp.tid()
    y = se3.log(_mat3(x, i, 0, 4), vec3(x[i, 3], x[i, 7], x[i, 11]))
    for k in range(6):
        out[i, k] = y[k]


@wp.kernel
def _se3_Ad(x: Rows, out: Rows):
    i = wp.tid()
    R = _mat3(x, i, 0, 4)
    _put_pair(out, i, R, so3.hat(vec3(x[i, 3], x[i, 7], x[i, 11])) * R)


@wp.kernel
def _se3_ad(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    _put_pair(out, i, so3.hat(se3.angular(y)), so3.hat(se3.linear(y)))


@wp.kernel
def _se3_coad(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    f = _vec6(x, i, 6)
    z = se3.coad(y, f)
    for k in range(6):
        out[i, k] = z[k]


@wp.kernel
def _se3_tangent(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    w = se3.angular(y)
    A, B = se3.tangent(y, so3.stumpff(wp.dot(w, w)))
    _put_pair(out, i, A, B)


@wp.kernel
def _se3_tangent_inverse(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    w = se3.angular(y)
    A, B = se3.tangent_inverse(y, so3.stumpff(wp.dot(w, w)))
    _put_pair(out, i, A, B)


@wp.kernel
def _se3_tangent_dot(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    w = se3.angular(y)
    A, B = se3.tangent_dot(y, _vec6(x, i, 6), so3.stumpff(wp.dot(w, w)))
    _put_pair(out, i, A, B)


@wp.kernel
def _se3_tangent_ddot(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    w = se3.angular(y)
    A, B = se3.tangent_ddot(y, _vec6(x, i, 6), _vec6(x, i, 12), so3.stumpff(wp.dot(w, w)))
    _put_pair(out, i, A, B)


@wp.kernel
def _se3_tangent_transpose_derivative(x: Rows, out: Rows):
    i = wp.tid()
    y = _vec6(x, i, 0)
    w = se3.angular(y)
    E = se3.tangent_transpose_derivative(y, _vec6(x, i, 6), so3.stumpff(wp.dot(w, w)))
    for r in range(6):
        for c in range(6):
            out[i, 6 * r + c] = E[r, c]


def _map(kernel: Any, out_shape: tuple[int, ...], **arguments: tuple[Any, tuple[int, ...]]) -> np.ndarray:
    """Run `kernel` on the broadcast rows of the named (array, core shape) arguments."""
    cores, leads = [], []
    for name, (value, core) in arguments.items():
        check_kept(name, value)
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ShapeError(f"{name}: expected numbers of shape (..., {', '.join(map(str, core))})") from None
        if array.shape[array.ndim - len(core) :] != core:
            raise ShapeError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {array.shape}")
        if not np.isfinite(array).all():
            raise ShapeError(f"{name}: must be finite, got NaN or infinity")
        cores.append((array, core))
        leads.append(array.shape[: array.ndim - len(core)])
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, (value, _) in arguments.items())
        raise ShapeError(f"leading axes do not broadcast: {shapes}") from None
    count = int(np.prod(lead, dtype=int))
    rows = np.concatenate([np.broadcast_to(a, lead + c).reshape(count, int(np.prod(c))) for a, c in cores], axis=1)
    out = np.zeros((count, int(np.prod(out_shape))))
    if count:
        x = wp.array(np.ascontiguousarray(rows), dtype=wp.float64, device="cpu", copy=False)
        y = wp.array(out, dtype=wp.float64, device="cpu", copy=False)
        _load()
        wp.launch(kernel, dim=count, inputs=[x, y], device="cpu")
    if not np.isfinite(out).all():
        names = " and ".join(arguments)
        raise ShapeError(f"{names}: the result is not finite; the arguments are too large, or singular")
    return out.reshape(lead + out_shape)


@lru_cache
def _load() -> None:
    """Load this module's kernels, once in a process."""
    module = wp.get_module(__name__)
    make = partial(wp.force_load, "cpu", [module], block_dim=1, max_workers=0)
    load_with_room(module, "cpu", make)


def so3_exp(w: ArrayLike) -> np.ndarray:
    """Rotation matrix of a rotation vector w (..., 3) [rad]; shape (..., 3, 3).

    Accuracy: 1e-15 at any angle.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_so3_exp, (3, 3), w=(w, (3,)))


def so3_log(R: ArrayLike) -> np.ndarray:
    """Rotation vector of R (..., 3, 3), angle in [0, π]; shape (..., 3) [rad].

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_so3_log, (3,), R=(R, (3, 3)))


def so3_tangent(w: ArrayLike) -> np.ndarray:
    """T of SO(3): exp(w)⁻¹ d exp(w) = (T dw)^; w (..., 3) [rad], shape (..., 3, 3).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_so3_tangent, (3, 3), w=(w, (3,)))


def so3_tangent_inverse(w: ArrayLike) -> np.ndarray:
    """Inverse of so3_tangent at w (..., 3) [rad], for |w| < 2π; shape (..., 3, 3).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_so3_tangent_inverse, (3, 3), w=(w, (3,)))


def se3_exp(x: ArrayLike) -> np.ndarray:
    """Pose exp(x) of x = (w; u) (..., 6) [rad, m]; shape (..., 4, 4).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_exp, (4, 4), x=(x, (6,)))


def se3_log(g: ArrayLike) -> np.ndarray:
    """Logarithm of a pose g (..., 4, 4), angle in [0, π]; shape (..., 6) [rad, m].

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_log, (6,), g=(g, (4, 4)))


def se3_Ad(g: ArrayLike) -> np.ndarray:
    """Adjoint of a pose g (..., 4, 4): η_A = Ad(g_AB) η_B; shape (..., 6, 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_Ad, (6, 6), g=(g, (4, 4)))


def se3_ad(x: ArrayLike) -> np.ndarray:
    """ad of x (..., 6): [[w^, 0], [u^, w^]]; shape (..., 6, 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_ad, (6, 6), x=(x, (6,)))


def se3_coad(x: ArrayLike, f: ArrayLike) -> np.ndarray:
    """−ad(x)ᵀ f of a twist x and a wrench f (..., 6); shape (..., 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_coad, (6,), x=(x, (6,)), f=(f, (6,)))


def se3_tangent(x: ArrayLike) -> np.ndarray:
    """T of SE(3): exp(x)⁻¹ d exp(x) = (T dx)^; x (..., 6), shape (..., 6, 6).

    Source: Mathew 2025, Appendix A, at −x.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_tangent, (6, 6), x=(x, (6,)))


def se3_tangent_inverse(x: ArrayLike) -> np.ndarray:
    """Inverse of se3_tangent at x (..., 6), for |w| < 2π; shape (..., 6, 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_tangent_inverse, (6, 6), x=(x, (6,)))


def se3_tangent_dot(x: ArrayLike, x_dot: ArrayLike) -> np.ndarray:
    """Rate of se3_tangent(x) along x_dot (..., 6); shape (..., 6, 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_tangent_dot, (6, 6), x=(x, (6,)), x_dot=(x_dot, (6,)))


def se3_tangent_ddot(x: ArrayLike, x_dot: ArrayLike, x_ddot: ArrayLike) -> np.ndarray:
    """Second rate of se3_tangent(x) along a motion with rates x_dot and x_ddot (..., 6); shape (..., 6, 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_tangent_ddot, (6, 6), x=(x, (6,)), x_dot=(x_dot, (6,)), x_ddot=(x_ddot, (6,)))


def se3_tangent_transpose_derivative(x: ArrayLike, f: ArrayLike) -> np.ndarray:
    """∂(se3_tangent(x)ᵀ f)/∂x at fixed f (..., 6); shape (..., 6, 6).

    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    return _map(_se3_tangent_transpose_derivative, (6, 6), x=(x, (6,)), f=(f, (6,)))
