"""The cost of a motion that tracks a reference: a sum of squares, with Gauss-Newton second derivatives.

l(t, x, u) = ½ (x ⊖ x_r)ᵀQ (x ⊖ x_r) + ½ Σᵢ wᵢ |pᵢ(q) − p_rᵢ|² + ½ (u − u_r)ᵀR (u − u_r)                 (1)
L = Σₖ h l(tₖ, xₖ, uₖ) + T l(t_N, x_N, u_r),   k = 0 … N − 1                                             (2)
½ |r|² = h l or T l   with   r = √h (Fᵀ(x ⊖ x_r); √wᵢ (pᵢ − p_rᵢ); Cᵀ(u − u_r)),   Q = F Fᵀ, R = C Cᵀ       (3)
∂(x ⊖ x_r)/∂x = diag(T(q ⊖ q_r)⁻¹, 1),   ∂p/∂q = R_B J_v   with the tangent operator T of quaternions        (4)

h is the step size, T the weight `end` of the final state (in (2) and (3)), and R_B the rotation of the frame at p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.control.actuation_coordinates import gain
from lissom.dynamics.configuration import apply_tangent_operator, checked_configuration, difference, quaternion_joints
from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import ShapeError
from lissom.launch.workspace import stack
from lissom.model.model import Model
from lissom.robot import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class References(NamedTuple):
    """References at n times.

    Fields:
        q: q_r (n, nq).
        v: v_r (n, nv) or (nv,).
        points: p_r (n, points, 3) [m].
    """

    q: np.ndarray
    v: np.ndarray
    points: np.ndarray


@final
@dataclass(frozen=True)
class TrackingCost:
    """Cost of deviations from a reference and of inputs, for optimal control.

        l = ½ (x ⊖ x_r)ᵀQ (x ⊖ x_r) + ½ Σ w |p − p_r|² + ½ (u − u_r)ᵀR (u − u_r)   per second

    with x = (q, v) and x ⊖ x_r = (q ⊖ q_r, v − v_r) by `difference`. The points p are the origins of links and frames;
    for a rod, its tip.

    Args:
        model: the model of the robot.
        inputs: R, symmetric and positive definite: a number, shape (nu,) or (nu, nu) [per squared input and s].
        state: Q, symmetric and positive semidefinite: a number, shape (2 nv,) or (2 nv, 2 nv) [per squared unit and s].
        points: weight w by name of a link or frame [1/(m² s)].
        state_reference: q_r, shape (nq,), with v_r = 0; or a function of t that returns (q_r, v_r). None is the neutral
            configuration.
        point_reference: p_r, shape (n, 3) [m], in the order of `points`; or a function of t that returns it.
        input_reference: u_r, shape (nu,); None is zero.
        end: T, weight of the final state [s]: its cost counts as if the robot stayed there for this time.
    Raises:
        ModelError: wrong weights, or points without a reference.
        ShapeError: an argument has a wrong shape.
    """

    model: Model = field(repr=False)
    inputs: ArrayLike
    state: ArrayLike = 0.0
    points: Mapping[str, float] | None = None
    state_reference: Any = None
    point_reference: Any = None
    input_reference: ArrayLike | None = None
    end: float = 0.0

    def __post_init__(self) -> None:
        nu, points = self.model.nu, dict(self.points or {})
        checks.require(nu > 0, "inputs", "a control law needs an actuator", nu)
        _ = self.input_root, self.state_root
        for name, weight in points.items():
            checks.number(weight, f"points > {name}", least=0.0)
            frame_pose(self.model, self.model.neutral(), name)
        known = self.point_reference is not None or not points
        checks.require(known, "point_reference", "must be given for points", self.point_reference)
        checks.number(self.end, "end", least=0.0)
        _ = self.input_references
        self.state_references(np.zeros(1))
        self.point_references(np.zeros(1))

    @cached_property
    def input_root(self) -> np.ndarray:
        """C of (3), lower triangular."""
        return np.linalg.cholesky(gain(self.inputs, self.model.nu, "inputs"))

    @cached_property
    def state_root(self) -> np.ndarray:
        """F of (3), shape (2 nv, k), with one column for each direction with nonzero cost."""
        Q = checks.symmetric(self.state, 2 * self.model.nv, "state")
        if not np.any(Q - np.diag(np.diag(Q))):
            return np.diag(np.sqrt(np.diag(Q)))[:, np.diag(Q) > 0.0]
        size, ways = np.linalg.eigh(Q)
        some = size > 1e-14 * size.max(initial=0.0)
        return ways[:, some] * np.sqrt(size[some])

    @cached_property
    def input_references(self) -> np.ndarray:
        """u_r, shape (nu,)."""
        nu = self.model.nu
        return np.zeros(nu) if self.input_reference is None else _row("input_reference", self.input_reference, nu)

    @property
    def count(self) -> int:
        """Number of entries of r, without the entries of the inputs."""
        return self.state_root.shape[1] + 3 * len(self.points or {})

    def state_references(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q_r and v_r at times (n,)."""
        model, given = self.model, self.state_reference
        if not callable(given):
            q = model.neutral() if given is None else _row("state_reference", given, model.nq)
            return np.tile(checked_configuration(model, "state_reference", q), (len(times), 1)), np.zeros(model.nv)
        rows = [_pair(given, t) for t in times.tolist()]
        q = np.array([_row("state_reference", q, model.nq) for q, _ in rows])
        v = np.array([_row("state_reference", v, model.nv) for _, v in rows])
        return checked_configuration(model, "state_reference", q), v

    def point_references(self, times: np.ndarray) -> np.ndarray:
        """p_r at times (n,), shape (n, points, 3)."""
        given, shape = self.point_reference, (len(self.points or {}), 3)
        if not shape[0]:
            return np.zeros((len(times), *shape))
        if callable(given):
            function: Callable[..., Any] = given
            return np.array([checks.call(function, t, shape, "point_reference") for t in times.tolist()])
        row = checks.array(given, shape, "point_reference", f"must be finite, of shape {shape}")
        return np.tile(row, (len(times), 1, 1))

    def references(self, times: np.ndarray) -> References:
        """All references at times (n,)."""
        return References(*self.state_references(times), self.point_references(times))

    def residuals(self, to: References, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """r of (3) with h = 1 and without the inputs, for states (n, ...): shape (n, count)."""
        away = np.concatenate([difference(self.model, to.q, q), v - to.v], axis=-1) @ self.state_root
        rows, targets = [away], to.points
        for k, (name, weight) in enumerate((self.points or {}).items()):
            rows.append(np.sqrt(weight) * (frame_pose(self.model, q, name)[:, :3, 3] - targets[:, k]))
        return np.concatenate(rows, axis=-1)

    def slopes(self, to: References, q: np.ndarray) -> np.ndarray:
        """∂r/∂x by (4), with h = 1 and without the inputs, shape (n, count, 2 nv)."""
        nv, many = self.model.nv, self.state_root.shape[1]
        out = np.zeros((len(q), self.count, 2 * nv))
        out[:, :many] = self.state_root.T
        if quaternion_joints(self.model) and many:
            move = difference(self.model, to.q, q)
            T = apply_tangent_operator(self.model, move[:, None], np.eye(nv), invert=True)  # its rows are columns
            out[:, :many, :nv] = self.state_root[:nv].T @ np.swapaxes(T, -1, -2)
        for k, (name, weight) in enumerate((self.points or {}).items()):
            R, J = frame_pose(self.model, q, name)[:, :3, :3], frame_jacobian(self.model, q, name)[:, 3:]
            out[:, many + 3 * k : many + 3 * k + 3, :nv] = np.sqrt(weight) * (R @ J)
        return out

    def of_inputs(self, u: np.ndarray) -> np.ndarray:
        """The entries of the inputs in r of (3) with h = 1, shape (..., nu)."""
        return (u - self.input_references) @ self.input_root


def _pair(function: Callable[[float], Any], t: float) -> tuple[Any, Any]:
    value = checks.value_at(function, t, "state_reference")
    try:
        q, v = value
    except (TypeError, ValueError):
        raise ShapeError(f"state_reference: the function must return (q, v), got {value!r} at t={t:g}") from None
    return q, v


def _row(name: str, value: Any, size: int) -> np.ndarray:
    """A finite array of shape (size,)."""
    row = stack(name, value, size)
    if row.shape != (size,) or not np.isfinite(row).all():
        raise ShapeError(f"{name}: expected finite numbers of shape ({size},), got shape {row.shape}")
    return row
