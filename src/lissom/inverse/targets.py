"""Targets of frames of a robot, with their errors and derivatives.

    e = p_d − p,   ∂e/∂q = −R J_v                   a position, in world axes                              (1)
    e = log(Rᵀ R_d),   ∂e/∂q = −T(e)⁻¹ J_ω          a rotation, in the axes of the frame                    (2)

T(e)⁻¹ is the inverse of the left tangent operator, with log(exp(−ω) exp e) = e − T(e)⁻¹ ω + … .
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.kinematics import frame_jacobian, frame_pose
from lissom.errors import ModelError, ShapeError, lost
from lissom.launch.workspace import batch_of
from lissom.lie.arrays import so3_log, so3_tangent_inverse
from lissom.model.model import Model
from lissom.robot import checks


@final
@dataclass(frozen=True)
class Target:
    """A frame and its target position or pose in the world.

    Fields:
        name, s: the frame, as in `frame_pose`.
        position: target position (..., 3) [m].
        rotation: target rotation (..., 3, 3), or None for a position only.
        weight: weights of the errors of position [1/m] and of rotation [1/rad].
    """

    name: str
    s: float
    position: np.ndarray
    rotation: np.ndarray | None
    weight: tuple[float, float]

    @property
    def lead(self) -> tuple[int, ...]:
        """Leading axes."""
        return self.position.shape[:-1]

    def flat(self, lead: tuple[int, ...]) -> Target:
        """The target broadcast to the leading axes `lead`, which are then flattened to one axis."""
        n, R = batch_of(lead), self.rotation
        p = np.broadcast_to(self.position, (*lead, 3)).reshape(n, 3)
        R = None if R is None else np.broadcast_to(R, (*lead, 3, 3)).reshape(n, 3, 3)
        return Target(self.name, self.s, p, R, self.weight)

    def of(self, rows: np.ndarray) -> Target:
        """The target for some rows of the batch."""
        R = self.rotation
        return Target(self.name, self.s, self.position[rows], None if R is None else R[rows], self.weight)

    def errors(self, model: Model, q: np.ndarray) -> np.ndarray:
        """Errors of configurations (n, nq), rotation (2) before position (1); shape (n, 3 or 6)."""
        g = frame_pose(model, q, self.name, self.s)
        e = self.position - g[:, :3, 3]
        if self.rotation is None:
            return e
        return np.hstack([so3_log(np.swapaxes(g[:, :3, :3], 1, 2) @ self.rotation), e])

    def jacobian(self, model: Model, q: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """−∂e/∂q from the errors at q, shape (n, 3 or 6, nv)."""
        R, J = frame_pose(model, q, self.name, self.s)[:, :3, :3], frame_jacobian(model, q, self.name, self.s)
        moved = R @ J[:, 3:]
        if self.rotation is None:
            return moved
        return np.concatenate([so3_tangent_inverse(-errors[:, :3]) @ J[:, :3], moved], axis=1)

    def weights(self) -> np.ndarray:
        """Weights of the rows, shape (3 or 6,)."""
        move, turn = self.weight
        return np.repeat([move], 3) if self.rotation is None else np.repeat([turn, move], 3)


@final
@dataclass(frozen=True)
class Targets:
    """All targets of configurations (n, nq). Their arrays have one leading axis."""

    items: tuple[Target, ...]

    def flat(self, lead: tuple[int, ...]) -> Targets:
        """The targets broadcast to the leading axes `lead`, which are then flattened to one axis."""
        return Targets(tuple(item.flat(lead) for item in self.items))

    def of(self, rows: np.ndarray) -> Targets:
        """The targets for some rows of the batch."""
        return Targets(tuple(item.of(rows) for item in self.items))

    def errors(self, model: Model, q: np.ndarray) -> np.ndarray:
        """Errors (n, m) [rad, m]."""
        return np.hstack([item.errors(model, q) for item in self.items])

    def jacobian(self, model: Model, q: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """−∂e/∂q (n, m, nv), from the errors at q."""
        widths = [3 if item.rotation is None else 6 for item in self.items]
        parts = np.split(errors, np.cumsum(widths)[:-1], axis=1)
        return np.concatenate([item.jacobian(model, q, e) for item, e in zip(self.items, parts)], axis=1)

    def weights(self) -> np.ndarray:
        """Weights of the rows, shape (m,)."""
        return np.concatenate([item.weights() for item in self.items])

    def away(self, errors: np.ndarray) -> np.ndarray:
        """Largest absolute error with a positive weight, from errors (n, m); shape (n,)."""
        return np.abs(errors * (self.weights() > 0.0)).max(1, initial=0.0)


def read_targets(model: Model, targets: Any, weights: Any) -> tuple[Targets, tuple[int, ...]]:
    """The Targets of a user's targets and weights by frame, and their common leading axes. The axes are not flattened.

    Raises:
        ModelError, ShapeError: a target or a weight is invalid or has a wrong shape.
    """
    rule = "must be a dictionary of positions (..., 3) or poses (..., 4, 4) by frame"
    checks.require(isinstance(targets, Mapping) and len(targets) > 0, "targets", rule, targets)
    weights = {} if weights is None else weights
    rule = "must be a dictionary of numbers by frames that have a target"
    known = isinstance(weights, Mapping) and all(key in targets for key in weights)
    checks.require(known, "weights", rule, weights)
    items = [_target(model, key, value, weights.get(key, 1.0)) for key, value in targets.items()]
    try:
        lead = np.broadcast_shapes(*(item.lead for item in items))
    except ValueError:
        shapes = ", ".join(f"{item.name!r} {item.lead}" for item in items)
        raise ShapeError(f"targets: leading axes do not broadcast: {shapes}") from None
    return Targets(tuple(items)), lead


def _target(model: Model, key: Any, value: Any, weight: Any) -> Target:
    pair = isinstance(key, tuple) and len(key) == 2
    name: Any = key[0] if pair else key
    s: Any = key[1] if pair else 1.0
    rule = "must be by names of links or frames, or by pairs of a name and s"
    checks.require(isinstance(name, str), "targets", rule, key)
    where = f"target of {name!r}" + (f" at s={s}" if pair else "")
    frame_pose(model, model.neutral(), name, s)  # raises ModelError for an unknown frame
    pose = checks.shape(value)[-2:] == (4, 4)
    array = finite(value, where, "numbers of shape (..., 3) or (..., 4, 4)")
    if pose:
        turned = array[..., :3, :3]
        proper = np.abs(np.swapaxes(turned, -1, -2) @ turned - np.eye(3)).max(initial=0.0) < 1e-6
        proper = proper and bool((np.linalg.det(turned) > 0.0).all())
        checks.require(proper, where, "must have rotation matrices", "others")
    elif array.ndim == 0 or array.shape[-1] != 3:
        raise ShapeError(f"{where}: expected shape (..., 3) or (..., 4, 4), got {array.shape}")
    pair_of = weight if checks.shape(weight) else (weight, weight)
    rule = "must be a number, or one for the position and one for the rotation"
    checks.require(checks.shape(pair_of) == (2,), f"weight of {name!r}", rule, weight)
    numbers = tuple(checks.number(w, f"weight of {name!r}", least=0.0) for w in pair_of)
    if pose:
        return Target(name, s, array[..., :3, 3], array[..., :3, :3], (numbers[0], numbers[1]))
    return Target(name, s, array, None, (numbers[0], numbers[1]))


def finite(value: Any, where: str, expected: str = "numbers") -> np.ndarray:
    """A value as a float64 array. Raises ShapeError unless all its entries are finite numbers."""
    if missing := lost(value):
        raise ShapeError(f"{where}: {missing}")
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{where}: expected {expected}, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ShapeError(f"{where}: must be finite, got NaN or infinity")
    return array


def read_limits(limits: Any, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (n,) from a user's pair `limits`; `low` and `high` if it is None.

    Raises:
        ModelError: the limits have a wrong shape or order.
    """
    if limits is None:
        return low, high
    n = len(low)
    rule = f"must be a pair (low, high) of numbers or of shape ({n},), low <= high"
    checks.require(isinstance(limits, tuple | list | np.ndarray) and len(limits) == 2, "limits", rule, limits)
    try:
        pair = [np.broadcast_to(np.asarray(side, dtype=np.float64), (n,)).copy() for side in limits]
    except (TypeError, ValueError):
        raise ModelError(f"limits: {rule} (got {limits!r})") from None
    checks.require(bool((pair[0] <= pair[1]).all()), "limits", rule, limits)  # false of NaN too
    return pair[0], pair[1]


def on_padded_rows(function: Callable[..., Any], rows: np.ndarray, *arrays: np.ndarray) -> Any:
    """Result (count, ...) of a function of `rows` (count,) and of these rows of arrays (n, ...). Rows are padded to a
    power of two, because each batch size needs its own buffers."""
    count = len(rows)
    wide = np.resize(rows, min(len(arrays[0]), 1 << max(count - 1, 0).bit_length()))
    return function(wide, *(x[wide] for x in arrays))[:count]


def replace_rows(into: Any, names: Iterable[str], rows: np.ndarray, other: Any) -> None:
    """Replace rows of the named arrays of `into` by the arrays of `other`. All arrays are replaced in one step, so that
    they belong to the same states after Ctrl-C."""
    found = {}
    for name in names:
        found[name] = getattr(into, name).copy()
        found[name][rows] = getattr(other, name)
    vars(into).update(found)
