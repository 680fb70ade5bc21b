"""Operations on the manifold of configurations: q ⊕ δ, its inverse, and the rates of configurations.

q ⊕ δ: coordinates add; a quaternion turns by exp(δ) on its right; a free joint (R exp ω, p + R V(ω) v)      (1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.errors import ShapeError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import describe_quaternion, leading, stack
from lissom.lie.arrays import se3_log, se3_tangent, se3_tangent_inverse, so3_log
from lissom.model.model import Model
from lissom.passes import group

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def quaternion_to_matrix(x: np.ndarray) -> np.ndarray:
    """Rotation matrices of unit quaternions (..., 4); shape (..., 3, 3)."""
    w, v = x[..., 0, None, None], x[..., 1:]
    W = np.zeros((*x.shape[:-1], 3, 3))
    W[..., 2, 1], W[..., 0, 2], W[..., 1, 0] = v[..., 0], v[..., 1], v[..., 2]
    W = W - np.swapaxes(W, -1, -2)
    vv = (v * v).sum(-1)[..., None, None]
    return (w * w - vv) * np.eye(3) + 2 * (w * W + v[..., :, None] * v[..., None, :])


def _cross(a: Any, b: Any) -> tuple[Any, Any, Any]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _sinc(x: Any) -> Any:
    """sin(x)/x."""
    at_zero = x == 0.0
    return (np.sin(x) + at_zero) / (x + at_zero)


def _rotated(x: Any, w: Any) -> list[Any]:
    """The unit quaternion of x rotated by a rotation vector w, as components.

    Components are numbers or arrays. For a single state numbers are several times faster than arrays of NumPy.
    """
    half = 0.5 * np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    c, f = np.cos(half), 0.5 * _sinc(half)
    r = f * w[0], f * w[1], f * w[2]
    across = _cross(x[1:4], r)
    out = [x[0] * c - x[1] * r[0] - x[2] * r[1] - x[3] * r[2]]
    out += [x[0] * r[k] + c * x[k + 1] + across[k] for k in range(3)]
    size = np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + out[3] * out[3])
    return [part / size for part in out]


def _translated(x: Any, w: Any, u: Any) -> list[Any]:
    """p + R V(w) u of (1) for the pose x = (quaternion, p).

    V u = u + (1 − cos θ)/θ² w × u + (θ − sin θ)/θ³ w × (w × u),   the last factor by its series below θ = ½
    """
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    angle, small, series = np.sqrt(square), square < 0.25, 1.0
    for n in (14, 12, 10, 8, 6, 4):
        series = 1.0 - square / (n * (n + 1)) * series
    b = 0.5 * _sinc(0.5 * angle) ** 2
    c = small * series / 6.0 + (1.0 - small) * (1.0 - _sinc(angle)) / (square + small)
    across = _cross(w, u)
    twice = _cross(w, across)
    y = [u[k] + b * across[k] + c * twice[k] for k in range(3)]
    once = _cross(x[1:4], y)
    z = _cross(x[1:4], [x[0] * y[k] + once[k] for k in range(3)])
    return [x[4 + k] + y[k] + 2.0 * z[k] for k in range(3)]


def quaternion_joints(model: Model) -> list[tuple[int, int, bool]]:
    """(first index in q, first index in v, whether the joint is free) of each spherical and free joint."""
    return model.cached(("groups",), lambda: group.stored_poses(model.nodes))


def unit_quaternions(model: Model, q: np.ndarray) -> np.ndarray:
    """q with its quaternions scaled to unit length."""
    q, joints = q.copy(), quaternion_joints(model)
    if joints:
        parts = np.array([at for at, _, _ in joints])[:, None] + np.arange(4)
        q[..., parts] /= np.linalg.norm(q[..., parts], axis=-1, keepdims=True)
    return q


def checked_configuration(model: Model, name: str, q: Any) -> np.ndarray:
    """q as an array (..., nq) with quaternions normalised.

    Raises:
        ShapeError: the name, and a wrong shape, a value that is not finite, or a quaternion that is not of unit length.
    """
    q = stack(name, q, model.nq)
    if not np.isfinite(q).all():
        raise ShapeError(f"{name}: must be finite, got NaN or infinity")
    for at, _, _ in quaternion_joints(model):
        apart = np.abs(np.linalg.norm(q[..., at : at + 4], axis=-1) - 1.0)
        if np.any(apart > 1e-6):
            worst = describe_quaternion(model, q.reshape(-1, model.nq)[np.argmax(apart)])
            raise ShapeError(f"{name}: a quaternion must have unit length to 1e-6 ({worst})")
    return unit_quaternions(model, q)


def single_configuration(model: Model, q: Any, name: str = "q") -> np.ndarray:
    """q as an array of one configuration (nq,), with quaternions normalised.

    Raises:
        ShapeError: as `checked_configuration`.
    """
    row = checked_configuration(model, name, q)
    if row.ndim != 1:
        raise ShapeError(f"{name}: expected shape ({model.nq},), got {row.shape}")
    return row


@over_models("q", "dv", batched=True)
@np.errstate(all="ignore")  # results that are not finite raise an error at the end
def integrate(model: Model, q: ArrayLike, dv: ArrayLike) -> np.ndarray:
    """q ⊕ dv: the configuration reached from q by the tangent increment dv.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units].
        dv: increment, shape (..., nv) [rad, m, or strain units].
    Returns:
        shape (..., nq), its quaternions of unit length.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    q, dv = checked_configuration(model, "q", q), stack("dv", dv, model.nv)
    if not np.isfinite(dv).all():
        raise ShapeError("dv: must be finite, got NaN or infinity")
    lead = leading(q=q, dv=dv)
    q, dv = np.broadcast_to(q, (*lead, model.nq)), np.broadcast_to(dv, (*lead, model.nv))
    out = q.copy()
    additive = np.flatnonzero(model.dofs.q >= 0)
    out[..., model.dofs.q[additive]] += dv[..., additive]
    for at, j, free in quaternion_joints(model):
        n = 3 if free else 0
        x, d = q[..., at : at + 4 + n], dv[..., j : j + 3 + n]
        x, d = (y.tolist() if y.ndim == 1 else list(np.moveaxis(y, -1, 0)) for y in (x, d))
        out[..., at : at + 4] = np.stack(_rotated(x, d[:3]), axis=-1)
        if free:
            out[..., at + 4 : at + 7] = np.stack(_translated(x, d[:3], d[3:]), axis=-1)
    _require_finite("q and dv", out)
    return out


def _require_finite(names: str, result: np.ndarray) -> None:
    """Raise ShapeError with the names of the arguments if a result is not finite."""
    if not np.isfinite(result).all():
        raise ShapeError(f"{names}: the result is not finite; the arguments are too large")


@over_models("q0", "q1", batched=True)
@np.errstate(all="ignore")
def difference(model: Model, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
    """The tangent increment from q0 to q1: integrate(model, q0, difference(model, q0, q1)) is q1.

    Args:
        q0, q1: configurations, shape (..., nq) [rad, m, or strain units].
    Returns:
        shape (..., nv); rotations by their shortest vector.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    q0, q1 = checked_configuration(model, "q0", q0), checked_configuration(model, "q1", q1)
    lead = leading(q0=q0, q1=q1)
    out = np.zeros((*lead, model.nv))
    additive = np.flatnonzero(model.dofs.q >= 0)
    out[..., additive] = q1[..., model.dofs.q[additive]] - q0[..., model.dofs.q[additive]]
    for at, j, free in quaternion_joints(model):
        R0, R1 = (quaternion_to_matrix(q[..., at : at + 4]) for q in (q0, q1))
        R = np.einsum("...ji,...jk->...ik", R0, R1)
        if free:
            g = np.zeros((*R.shape[:-2], 4, 4))
            g[..., :3, :3], g[..., 3, 3] = R, 1.0
            moved = q1[..., at + 4 : at + 7] - q0[..., at + 4 : at + 7]
            g[..., :3, 3] = np.einsum("...ji,...j->...i", R0, moved)
            out[..., j : j + 6] = se3_log(g)
        else:
            out[..., j : j + 3] = so3_log(R)
    _require_finite("q0 and q1", out)
    return out


def configuration_rate_derivatives(
    model: Model, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of dq/dt at one state, and of the tangent increment with respect to q.

    dq/dt is v for coordinates that add, ½ q (0, ω) for quaternions, and R v for the position of a free joint.

    Args:
        q: configuration, shape (nq,). v: velocity, shape (nv,).
    Returns:
        ∂q̇/∂q (nq, nq), ∂q̇/∂v (nq, nv), and E (nv, nq) with δ = E dq for the increment δ of `integrate`.
    """
    rate_q, rate_v = np.zeros((model.nq, model.nq)), np.zeros((model.nq, model.nv))
    tangent = np.zeros((model.nv, model.nq))
    additive = np.flatnonzero(model.dofs.q >= 0)
    rate_v[model.dofs.q[additive], additive] = tangent[additive, model.dofs.q[additive]] = 1.0
    for at, j, free in quaternion_joints(model):
        x, four, three = q[at : at + 4], slice(at, at + 4), slice(j, j + 3)
        size = float(np.linalg.norm(x))
        left = _left(x)
        rate_q[four, four] = 0.5 * _right(np.concatenate([[0.0], v[three]]))
        rate_v[four, three] = 0.5 * left[:, 1:]
        tangent[three, four] = 2.0 * left[:, 1:].T / size**2
        if free:
            R, place = quaternion_to_matrix(x / size), slice(at + 4, at + 7)
            u = v[j + 3 : j + 6]
            turned = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
            rate_q[place, four] = -R @ turned @ tangent[three, four]
            rate_v[place, j + 3 : j + 6] = R
            tangent[j + 3 : j + 6, place] = R.T
    return rate_q, rate_v, tangent


def apply_tangent_operator(model: Model, move: np.ndarray, x: np.ndarray, *, invert: bool = False) -> np.ndarray:
    """T(Δ) x for increments Δ = `move` (..., nv) of spherical and free joints, or T(Δ)⁻¹ x if `invert`.

    The entries of other coordinates in x (..., nv) do not change.
    """
    out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, move.shape)))
    for _, j, free in quaternion_joints(model):
        block = slice(j, j + (6 if free else 3))
        own = free_increment(move[..., block])
        T = (se3_tangent_inverse if invert else se3_tangent)(own)
        many = block.stop - block.start
        out[..., block] = np.einsum("...ij,...j->...i", T[..., :many, :many], out[..., block])
    return out


def free_increment(x: np.ndarray) -> np.ndarray:
    """Increments (..., 3) of a spherical joint as increments (..., 6) of a free joint without displacement."""
    return x if x.shape[-1] == 6 else np.concatenate([x, np.zeros_like(x)], axis=-1)


def _left(x: np.ndarray) -> np.ndarray:
    """The matrix of y ↦ x y for quaternions (4,)."""
    w, a, b, c = x
    return np.array([[w, -a, -b, -c], [a, w, -c, b], [b, c, w, -a], [c, -b, a, w]])


def _right(y: np.ndarray) -> np.ndarray:
    """The matrix of x ↦ x y for quaternions (4,)."""
    w, a, b, c = y
    return np.array([[w, -a, -b, -c], [a, w, c, -b], [b, -c, w, a], [c, b, -a, w]])
