"""Frames at material points of a body, as functions of its coordinates.

All those of one body that are asked for together are evaluated together: JAX compiles one function for them, and one
call fills the tables of all. Where the motion is composed its own slopes say all but ∂²S, which is had of them by
central differences of fourth order, within 1e-8: third derivatives would take longer to compile than all the rest. With
R and p the pose of a point in the body's frame, its columns in its own axes are

    S_j = ((Rᵀ ∂R/∂θ_j)^∨; Rᵀ ∂p/∂θ_j)                                                                    (1)

Where a force acts on a point, or a length is measured to it, the axes do not matter. Such a point keeps those of the
body, R = 1, and S_j = (0; J_j) with J_j = ∂f/∂θ_j; where f = x + Σ φ_j(x) θ_j that is constant, and kernels need no
more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.bodies.area_frames import FramesSeen
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.moved_points import MovedPoints, Places
from lissom.robot import checks
from lissom.robot.poses import PoseDerivatives, compiled

_RIGID = 1e-9  # how far axes may be from orthonormal
_SAMPLES = 4  # θ where that is looked at
# over derivatives in derivatives XLA would repeat what several operations need, were they fused
_UNFUSED = {"xla_disable_hlo_passes": "fusion,cpu-instruction-fusion", "xla_cpu_use_fusion_emitters": True}


@final
@dataclass(frozen=True, eq=False)
class MaterialFrames:
    """The frames at material points of one body, and what evaluates them."""

    kinematics: Kinematics
    points: MovedPoints | None = None  # which know how they are moved, if the kinematics is composed

    @cached_property
    def compiled(self) -> dict[tuple[Any, ...], Any]:
        """Functions of θ (n,) for sets of points that were asked for, with one derivative of (1) or two."""
        return {}

    def at(self, point: Any, *, turns: bool) -> MaterialFrame:
        """The frame at a material point (3,)."""
        return MaterialFrame(self, np.array(point, dtype=np.float64), turns)

    def derivatives(
        self,
        frames: Sequence[MaterialFrame],
        q: np.ndarray,
        v: np.ndarray | None = None,
        *,
        curved: bool = True,
        sloped: bool = True,
    ) -> PoseDerivatives:
        """Poses and columns of several frames at θ = q (m, n): each field has the axis of the frames after the first.

        Where v = θ̇ (m, n) is given, the last derivative need only be right along it, Σ ∂²S_j/∂θ_c∂θ_e v_c v_e. Without
        `curved`, ∂²S is left empty; without `sloped` also, ∂S need only be right in Σ ∂S_j/∂θ_c v_j v_c.
        """
        seen = self.asked(frames, np.zeros(len(frames), dtype=np.int64))
        rows = zip(q[:, None], [None] * len(q) if v is None else v[:, None])
        found = [seen(*row, curved=curved, sloped=sloped) for row in rows]
        R, p, S, S_q, S_qq = (parts[0][None] if len(found) == 1 else np.stack(parts) for parts in zip(*found))
        g = np.zeros((*R.shape[:2], 4, 4))
        g[..., :3, :3], g[..., :3, 3], g[..., 3, 3] = R, p, 1.0
        return PoseDerivatives(g, S, S_q, S_qq)

    def asked(self, frames: Sequence[MaterialFrame], bodies: np.ndarray) -> Callable[..., Sequence[np.ndarray]]:
        """R, p, S, ∂S and ∂²S of frames, as `derivatives` has them, as a function of θ and θ̇ or None of one state.

        Args:
            bodies: which of the bodies (k,) that are moved together each frame is on; θ and θ̇ are (k, n). Unless the
                motion is composed there is one.
        """
        points, turning = np.stack([frame.point for frame in frames]), np.array([frame.turns for frame in frames])
        key = points.tobytes(), turning.tobytes(), bodies.tobytes()
        if self.points is not None:
            if key not in self.compiled:
                places = Places(self.points.numbers(points), bodies)
                self.compiled[key] = FramesSeen(self.points, places, turning)
            return self.compiled[key].columns

        def plain(q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> Sequence[np.ndarray]:
            known = (*key, curved)
            if known not in self.compiled:
                self.compiled[known] = _compiled(self.kinematics, points, turning, curved)
            return [np.asarray(part) for part in self.compiled[known](q[0])]

        return plain


@final
@dataclass(frozen=True, eq=False)
class MaterialFrame:
    """The frame at a material point.

    Args:
        family: those of its body.
        point: of the reference shape (3,) [m].
        turns: whether it follows the area across the point; otherwise it keeps the axes of the body.
    """

    family: MaterialFrames
    point: np.ndarray
    turns: bool

    @property
    def n(self) -> int:
        """Number of coordinates θ."""
        return self.family.kinematics.n

    @property
    def is_linear(self) -> bool:
        """Whether its pose is linear in θ, which kernels follow by themselves."""
        return self.family.kinematics.is_linear and not self.turns

    @property
    def slopes(self) -> np.ndarray:
        """∂p/∂θ_j of a linear pose, shape (n, 3)."""
        return self.family.kinematics.shapes(self.point[None])[0].T

    @property
    def reference(self) -> np.ndarray:
        """The pose in the reference shape, 4x4."""
        g = np.eye(4)
        g[:3, 3] = self.point
        return g

    def motion(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g (4, 4) and S (6, n) at one θ."""
        found = self.family.derivatives([self], q[None], curved=False, sloped=False)
        return found.g[0, 0], found.S[0, 0].T

    def derivatives(self, q: np.ndarray) -> PoseDerivatives:
        """The pose and the columns (1) at θ = q (m, n)."""
        return PoseDerivatives(*(part[:, 0] for part in self.family.derivatives([self], q)))

    def check(self, where: str) -> None:
        """Raise ModelError where it is not finite, or no rigid frame, near the reference shape."""
        for q in np.vstack([np.zeros(self.n), np.random.default_rng(0).uniform(-1e-3, 1e-3, (_SAMPLES, self.n))]):
            R, p = self._pose(q)
            finite = bool(np.isfinite(R).all() and np.isfinite(p).all())
            checks.require(finite, where, f"must be finite at θ = {q.tolist()}", p)
            off = np.abs(R @ R.T - np.eye(3)).max()
            checks.require(bool(off < _RIGID), where, f"must have orthonormal axes at θ = {q.tolist()}", R)

    def _pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and p at one θ."""
        if self.family.points is not None:
            g = self.family.derivatives([self], q[None], curved=False, sloped=False).g[0, 0]
            return g[:3, :3], g[:3, 3]
        key = (self.point.tobytes(), self.turns)
        if key not in self.family.compiled:
            poses = _poses(self.family.kinematics, self.point[None], np.array([self.turns]))
            self.family.compiled[key] = compiled(poses)
        R, p = self.family.compiled[key](q)
        return np.asarray(R)[0], np.asarray(p)[0]


def _poses(kinematics: Kinematics, points: np.ndarray, turning: np.ndarray) -> Callable[[Any], tuple[Any, Any]]:
    """R (K, 3, 3) and p (K, 3) as functions of θ."""
    import jax.numpy as jnp

    turns, others = np.flatnonzero(turning), np.flatnonzero(~turning)

    def poses(q: Any) -> tuple[Any, Any]:
        R, p = jnp.broadcast_to(jnp.eye(3), (len(points), 3, 3)), jnp.zeros((len(points), 3))
        if len(others):
            p = p.at[others].set(kinematics.positions(points[others], q))
        if len(turns):
            axes, places = kinematics.frames(points[turns], q)
            R, p = R.at[turns].set(axes), p.at[turns].set(places)
        return R, p

    return poses


def _compiled(kinematics: Kinematics, points: np.ndarray, turning: np.ndarray, curved: bool) -> Callable[..., Any]:
    """A function of θ (n,): R, p, S (K, n, 6), ∂S (K, n, n, 6) and ∂²S (K, n, n, n, 6), or (K, 0) in its place."""
    import jax
    import jax.numpy as jnp

    poses = _poses(kinematics, points, turning)

    def columns(q: Any) -> Any:
        (R, _), (R_q, p_q) = poses(q), jax.jacfwd(poses)(q)
        W = jnp.einsum("kai,kajn->knij", R, R_q)
        twice = (W[..., 2, 1] - W[..., 1, 2], W[..., 0, 2] - W[..., 2, 0], W[..., 1, 0] - W[..., 0, 1])
        turn = 0.5 * jnp.stack(twice, axis=-1)
        return jnp.concatenate([turn, jnp.einsum("kai,kan->kni", R, p_q)], axis=-1)

    def with_slopes(q: Any) -> tuple[Any, tuple[Any, Any]]:
        def twice(q: Any) -> tuple[Any, Any]:
            S = columns(q)
            return S, S

        S_q, S = jax.jacfwd(twice, has_aux=True)(q)
        S_q = jnp.moveaxis(S_q, -1, 2)
        return S_q, (S_q, S)

    def everything(q: Any) -> tuple[Any, ...]:
        R, p = poses(q)
        if not curved:
            _, (S_q, S) = with_slopes(q)
            return R, p, S, S_q, jnp.zeros((len(points), 0))
        S_qq, (S_q, S) = jax.jacfwd(with_slopes, has_aux=True)(q)
        return R, p, S, S_q, jnp.moveaxis(S_qq, -1, 3)

    return compiled(everything, **(_UNFUSED if curved else {}))
