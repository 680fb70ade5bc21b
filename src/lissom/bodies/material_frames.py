"""Frames at material points of a body, as functions of its coordinates.

All frames of a body that a caller asks for together are evaluated in one call: JAX compiles one function for them, and
one call fills all tables. Let R and p be the pose of a point in the body's frame. The columns of its motion subspace,
in its own axes, are

    S_j = ((Rᵀ ∂R/∂θ_j)^∨; Rᵀ ∂p/∂θ_j)                                                                    (1)

A force on a point, or a length to it, does not depend on the axes there. Such a point keeps the axes of the body, R =
1, and S_j = (0; J_j) with J_j = ∂f/∂θ_j. For f = x + Σ φ_j(x) θ_j this is constant, and kernels need nothing else.

A composed motion supplies the derivatives of its points, so JAX does not differentiate. Let b = ∂f/∂y, d = ∂f/∂z and n
= b×d at a point. The frame of the cross-section has the axes R = (a₁, a₂, a₃), a₁ = n/|n|, a₂ = b/|b|, a₃ = a₁×a₂. In
these axes the columns S_j = (w_j; u_j) are

    w_j = (a₃·b_j/|b|, −a₃·n_j/|n|, a₂·n_j/|n|),   u_j = Rᵀ J_j                                            (2)
    ∂a_k/∂θ_c = R (w_c×e_k),   ∂|b|/∂θ_c = a₂·b_c,   ∂|n|/∂θ_c = a₁·n_c                                    (3)

So ∂S_j/∂θ_c needs second derivatives of the points with respect to θ. The sum Σ ∂S_j/∂θ_c v_j v_c along a rate v needs
only second derivatives along v, which come with the first derivatives. ∂²S is computed by central differences of fourth
order, with errors below 1e-8: third derivatives would take longer to compile than all other functions together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.bodies.evaluation import EvaluatedPoints, Places, TracedMotion, shared_by_equals
from lissom.bodies.jets import FirstDerivatives, SecondDerivatives, unpacked
from lissom.bodies.kinematics import Kinematics, area_axes
from lissom.bodies.twists import cross
from lissom.robot import checks
from lissom.robot.poses import PoseDerivatives, compiled, pose_code
from lissom.tracing.graph import Graph, Refused, copied, derivative, inputs, run

if TYPE_CHECKING:
    from lissom.tracing.native import Code, Table, Traced

_RIGID = 1e-9  # largest deviation of axes from orthonormality
_SAMPLES = 4  # number of θ at which orthonormality is checked
# Otherwise XLA would compute a shared value once for each use, and again in derivatives of derivatives
_UNFUSED = {"xla_disable_hlo_passes": "fusion,cpu-instruction-fusion", "xla_cpu_use_fusion_emitters": True}
_STEP = 3e-3  # step of finite differences of columns: rotation [rad], or displacement over the size of the body
_PLACES = np.array([-2.0, -1.0, 1.0, 2.0])  # points of the differences, in steps
_FIRST = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0  # central differences of fourth order at these places
_SECOND = np.array([-1.0, 16.0, 16.0, -1.0]) / 12.0  # and −30/12 in the middle
_KEPT = 32  # states in the cache of columns
_LEAST = 1e-300
_TOGETHER = 64  # frames of finite elements whose shapes are evaluated at once; they take 100 numbers for a coordinate


@final
@dataclass(frozen=True, eq=False)
class MaterialFrames:
    """The frames at material points of one body."""

    kinematics: Kinematics
    points: EvaluatedPoints | None = None  # of a composed kinematics

    @cached_property
    def compiled(self) -> dict[tuple[Any, ...], Any]:
        """Compiled functions of θ (n,) by set of points, and by the number of derivatives of (1), one or two."""
        return {}

    def at(self, point: Any, *, turns: bool) -> MaterialFrame:
        """The frame at a material point (3,)."""
        return MaterialFrame(self, np.array(point, dtype=np.float64), turns)

    def native(self, turns: bool) -> tuple[Traced, Table] | str:
        """The native functions of a frame, as those of PoseFunction, which serve all points. They take the columns of
        the table for a point as last argument. Or the reason for which Python computes the frames."""
        key = "native", turns
        if key not in self.compiled:
            self.compiled[key] = self._traced(turns)
        return self.compiled[key]

    def nodes(self, turns: bool) -> tuple[Graph, np.ndarray, np.ndarray]:
        """Graph and nodes of R (3, 3) and p (3,) of a frame. The inputs are those of MotionNodes.

        Raises:
            Refused: there is no graph.
        """
        import jax.numpy as jnp

        key = "nodes", turns
        if key not in self.compiled:
            graph, (theta, _, row), p = shared_by_equals(TracedMotion, self.kinematics).map
            if not turns:
                (R,) = run(graph, lambda: jnp.eye(3), [])
            elif self.kinematics.axes is not None:
                (R,) = run(graph, self.kinematics.axes, [row[:3], theta])
            else:
                (R,) = run(graph, area_axes, [derivative(graph, p, row[:3].tolist())])
            self.compiled[key] = graph, R, p
        return self.compiled[key]

    def _traced(self, turns: bool) -> tuple[Traced, Table] | str:
        from lissom.tracing.code_cache import content_key, stored_code
        from lissom.tracing.native import compiled_functions

        n = self.kinematics.n
        try:
            whole, R, p = self.nodes(turns)

            def make() -> Code:
                graph = Graph()
                q, _, x = inputs(graph, [(n,), (n,), (3,)])
                at = {**dict(enumerate(q.tolist())), **{2 * n + k: node for k, node in enumerate(x.tolist())}}
                g = copied(graph, whole, np.column_stack([R, p]), at)
                return pose_code(graph, g, q, row=x.tolist(), few=True)

            code = stored_code(content_key("frame", whole, R, p), make)
            assert code.table is not None
            return compiled_functions(code), code.table
        except Refused as error:
            return str(error)

    def derivatives(
        self,
        frames: Sequence[MaterialFrame],
        q: np.ndarray,
        v: np.ndarray | None = None,
        *,
        curved: bool = True,
        sloped: bool = True,
    ) -> PoseDerivatives:
        """Poses and columns of several frames at θ = q (m, n). The frames are along the second axis of each field.

        Args:
            v: θ̇ (m, n). If given, the last derivative is right only in the sum Σ ∂²S_j/∂θ_c∂θ_e v_c v_e.
            curved: False leaves ∂²S empty.
            sloped: if `curved` and `sloped` are False, ∂S is right only in the sum Σ ∂S_j/∂θ_c v_j v_c.
        """
        columns = self.columns(frames, np.zeros(len(frames), dtype=np.int64))
        rows = zip(q[:, None], [None] * len(q) if v is None else v[:, None])
        found = [columns(*row, curved=curved, sloped=sloped) for row in rows]
        R, p, S, S_q, S_qq = (parts[0][None] if len(found) == 1 else np.stack(parts) for parts in zip(*found))
        g = np.zeros((*R.shape[:2], 4, 4))
        g[..., :3, :3], g[..., :3, 3], g[..., 3, 3] = R, p, 1.0
        return PoseDerivatives(g, S, S_q, S_qq)

    def columns(self, frames: Sequence[MaterialFrame], bodies: np.ndarray) -> Callable[..., Sequence[np.ndarray]]:
        """A function that returns R, p, S, ∂S and ∂²S of the frames at one state. Its arguments are θ, θ̇ or None, and
        the options `curved` and `sloped` of `derivatives`.

        Args:
            bodies: index of the body of each frame among the k bodies of a call. θ and θ̇ have shape (k, n). k is 1
                unless the motion is composed of primitives.
        """
        points, turning = np.stack([frame.point for frame in frames]), np.array([frame.turns for frame in frames])
        key = points.tobytes(), turning.tobytes(), bodies.tobytes()
        if self.points is not None:
            if key not in self.compiled:
                places = Places(self.points.numbers(points), bodies)
                self.compiled[key] = _FramesOfComposition(self.points, places, turning)
            return self.compiled[key].columns

        given = self._of_cells(points, turning)

        def plain(q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> Sequence[np.ndarray]:
            if given is not None:
                return [np.asarray(part) for part in _columns_of_cells(curved)(q[0], *given)]
            known = (*key, curved)
            if known not in self.compiled:
                self.compiled[known] = _compiled_columns(_poses(self.kinematics, points, turning), curved)
            return [np.asarray(part) for part in self.compiled[known](q[0])]

        return plain

    def _of_cells(self, points: np.ndarray, turning: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """The arguments of `_poses_of_cells` other than θ; None if the body is not made of finite elements."""
        if not self.kinematics.is_of_cells:
            return None
        key = "cells", points.tobytes(), turning.tobytes()
        if key not in self.compiled:
            self.compiled[key] = points, turning, *self.kinematics.frame_shapes(points)
        return self.compiled[key]


@final
@dataclass(frozen=True, eq=False)
class MaterialFrame:
    """The frame at a material point.

    Args:
        family: the frames of its body.
        point: material point of the undeformed shape (3,) [m].
        turns: True: the frame follows the cross-section at the point. False: it keeps the axes of the body.
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
        """Whether the pose is linear in θ. Kernels evaluate such poses themselves."""
        return self.family.kinematics.is_linear and not self.turns

    @property
    def is_area(self) -> bool:
        """Whether the pose is that of a cross-section in finite elements. Kernels evaluate it themselves, too."""
        return self.family.kinematics.is_of_cells and self.turns

    @property
    def native(self) -> Traced | None:
        """The native functions of the pose, as those of PoseFunction; None if `why_python` gives a reason."""
        known = None if self.is_linear or self.is_area else self.family.native(self.turns)
        return known[0] if isinstance(known, tuple) else None

    @property
    def why_python(self) -> str:
        """The reason for which Python computes the pose; empty if kernels do."""
        known = "" if self.is_linear or self.is_area else self.family.native(self.turns)
        return known if isinstance(known, str) else ""

    @property
    def reference(self) -> np.ndarray:
        """The pose in the undeformed shape, shape (4, 4)."""
        g = np.eye(4)
        g[:3, 3] = self.point
        return g

    def motion(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g (4, 4) and S (6, n) at one θ."""
        found = self.family.derivatives([self], q[None], curved=False, sloped=False)
        return found.g[0, 0], found.S[0, 0].T

    def derivatives(self, q: np.ndarray) -> PoseDerivatives:
        """The pose of the frame at coordinates q (m, n), and its Jacobian S with derivatives, (1)."""
        return PoseDerivatives(*(part[:, 0] for part in self.family.derivatives([self], q)))

    def check(self, where: str) -> None:
        """Raise ModelError unless the pose is finite and rigid near the undeformed shape."""
        samples = np.vstack([np.zeros(self.n), np.random.default_rng(0).uniform(-1e-3, 1e-3, (_SAMPLES, self.n))])
        for q, R, p in zip(samples, *self._poses(samples)):
            finite = bool(np.isfinite(R).all() and np.isfinite(p).all())
            checks.require(finite, where, f"must be finite at θ = {q.tolist()}", p)
            off = np.abs(R @ R.T - np.eye(3)).max()
            checks.require(bool(off < _RIGID), where, f"must have orthonormal axes at θ = {q.tolist()}", R)

    def _poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and p at θ = q (m, n). Native functions are not used, which may have to be compiled first."""
        if self.native is None:
            R, p = zip(*map(self._pose, q))
            return np.stack(R), np.stack(p)
        graph, R, p = self.family.nodes(self.turns)
        given = {k: q[:, j] for j, k in enumerate(inputs(graph, [(self.n,)])[0].tolist())}
        given |= {graph.input(2 * self.n + k): np.full(len(q), x) for k, x in enumerate(self.point)}
        found = np.transpose(graph.evaluated([*R.ravel().tolist(), *p.tolist()], given))
        return found[:, :9].reshape(-1, 3, 3), found[:, 9:]

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


class PoseLine(NamedTuple):
    """A point that moves on a line along each coordinate.

    Fields:
        origin: the point at θ = 0 (3,) [m].
        coordinate: numbers (m,) of the coordinates that move it.
        slopes: derivatives of p, b and d by these coordinates, shape (m, 3, 3). b and d are the columns of y and z of
            ∂f/∂x; zero for a point that keeps the axes of the body.
    """

    origin: np.ndarray
    coordinate: np.ndarray
    slopes: np.ndarray


def pose_lines(poses: Sequence[Any]) -> list[PoseLine | None]:
    """The lines of poses that are linear, or of cross-sections in finite elements; None for other poses."""
    lines: list[PoseLine | None] = [None] * len(poses)
    groups = dict[tuple[int, bool], list[int]]()
    for m, pose in enumerate(poses):
        if isinstance(pose, MaterialFrame) and (pose.is_linear or pose.is_area):
            groups.setdefault((id(pose.family), pose.turns), []).append(m)
    for members in groups.values():
        for some in (members[k : k + _TOGETHER] for k in range(0, len(members), _TOGETHER)):
            for m, line in zip(some, _pose_lines([poses[m] for m in some])):
                lines[m] = line
    return lines


def _pose_lines(frames: list[MaterialFrame]) -> list[PoseLine]:
    """`pose_lines` of frames of one body, which all turn or do not."""
    motion, points = frames[0].family.kinematics, np.stack([frame.point for frame in frames])
    slopes = np.zeros((len(points), motion.n, 3, 3))
    if frames[0].is_area:
        F_q, phi = motion.frame_shapes(points)
        slopes[:, :, 1:] = F_q[:, :, 1:].transpose(0, 3, 2, 1)
    else:
        phi = motion.shapes(points)
    slopes[:, :, 0] = phi.transpose(0, 2, 1)
    moving = [motion.moving(point) for point in points]
    return [PoseLine(x, at, own[at]) for x, at, own in zip(points, moving, slopes)]


def point_numbers(poses: Sequence[Any]) -> list[np.ndarray]:
    """The numbers (c,) that native functions of frames take beside the coordinates; none for other poses."""
    numbers, groups = [np.zeros(0)] * len(poses), dict[tuple[int, bool], list[int]]()
    for m, pose in enumerate(poses):
        if isinstance(pose, MaterialFrame) and pose.native is not None:
            groups.setdefault((id(pose.family), pose.turns), []).append(m)
    for (_, turns), members in groups.items():
        _, table = poses[members[0]].family.native(turns)
        rows = table.columns(np.stack([poses[m].point for m in members]))
        for m, row in zip(members, rows):
            numbers[m] = np.ascontiguousarray(row)
    return numbers


def _poses(kinematics: Kinematics, points: np.ndarray, turning: np.ndarray) -> Callable[[Any], tuple[Any, Any]]:
    """A function of θ that returns R (K, 3, 3) and p (K, 3) of K frames."""
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


def _poses_of_cells(q: Any, points: Any, turning: Any, F_q: Any, phi: Any) -> tuple[Any, Any]:
    """R (K, 3, 3) and p (K, 3) of K frames in bodies of cells, with ∂F/∂θ (K, 3, 3, n) and shape functions φ (K, 3, n).
    The same compiled function serves all meshes."""
    import jax
    import jax.numpy as jnp

    axes = jax.vmap(area_axes)(jnp.eye(3) + F_q @ q)
    return jnp.where(turning[:, None, None], axes, jnp.eye(3)), points + phi @ q


@lru_cache(maxsize=2)
def _columns_of_cells(curved: bool) -> Callable[..., Any]:
    return _compiled_columns(_poses_of_cells, curved)


def _compiled_columns(poses_of: Callable[..., tuple[Any, Any]], curved: bool) -> Callable[..., Any]:
    """A function of θ (n,) that returns R, p, S (K, n, 6), ∂S (K, n, n, 6) and ∂²S (K, n, n, n, 6) of a function that
    returns R and p. Both take further arguments after θ.

    If `curved` is False, ∂²S is empty, shape (K, 0).
    """

    def of(q: Any, *given: Any) -> tuple[Any, ...]:
        return _columns_and_slopes(lambda q: poses_of(q, *given), q, curved)

    return compiled(of, **(_UNFUSED if curved else {}))


def _columns_and_slopes(poses: Callable[[Any], tuple[Any, Any]], q: Any, curved: bool) -> tuple[Any, ...]:
    """The results of `_compiled_columns` for poses as a function of θ."""
    import jax
    import jax.numpy as jnp

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

    R, p = poses(q)
    if not curved:
        _, (S_q, S) = with_slopes(q)
        return R, p, S, S_q, jnp.zeros((len(p), 0))
    S_qq, (S_q, S) = jax.jacfwd(with_slopes, has_aux=True)(q)
    return R, p, S, S_q, jnp.moveaxis(S_qq, -1, 3)


class _Area(NamedTuple):
    """Derivatives at K points of cross-sections.

    Fields:
        J: ∂p/∂θ_j (K, n, 3).
        b, d: columns ∂f/∂y and ∂f/∂z of ∂f/∂x (K, 3).
        b_j, d_j: their derivatives (K, n, 3).
        H: ∂²p/∂θ_j∂θ_c (K, n, n, 3), indexed [j, c].
        b_jc, d_jc: second derivatives of b and d. H, b_jc and d_jc are None without second derivatives.
    """

    J: Any
    b: Any
    d: Any
    b_j: Any
    d_j: Any
    H: Any = None
    b_jc: Any = None
    d_jc: Any = None


def _area_columns(x: _Area) -> tuple[Any, Any, Any]:
    """R (K, 3, 3), S (K, n, 6) and ∂S (K, n, n, 6), indexed [j, c]. ∂S is None without second derivatives."""
    import jax.numpy as jnp

    n, n_j = cross(x.b, x.d), cross(x.b_j, x.d[:, None]) + cross(x.b[:, None], x.d_j)
    of_b, of_n = (jnp.linalg.norm(part, axis=-1)[:, None] for part in (x.b, n))
    first, second = n / of_n, x.b / of_b
    R = jnp.stack([first, second, cross(first, second)], axis=-1)
    b_R, n_R = x.b_j @ R / of_b[..., None], n_j @ R / of_n[..., None]  # in the axes, over |b| and |n|
    w, u = jnp.stack([b_R[..., 2], -n_R[..., 2], n_R[..., 1]], axis=-1), x.J @ R  # (2)
    S = jnp.concatenate([w, u], axis=-1)
    if x.H is None or x.b_jc is None or x.d_jc is None:
        return R, S, None
    across = cross(x.b_j[:, :, None], x.d_j[:, None])
    n_jc = cross(x.b_jc, x.d[:, None, None]) + across + across.swapaxes(1, 2) + cross(x.b[:, None, None], x.d_jc)
    w_c = w[:, None]
    b_Rc = _turned(x.b_jc, R, b_R, w_c, of_b) - b_R[:, :, None] * b_R[:, None, :, 1:2]  # (3)
    n_Rc = _turned(n_jc, R, n_R, w_c, of_n) - n_R[:, :, None] * n_R[:, None, :, :1]
    w_jc = jnp.stack([b_Rc[..., 2], -n_Rc[..., 2], n_Rc[..., 1]], axis=-1)
    return R, S, jnp.concatenate([w_jc, x.H @ R[:, None] - cross(w_c, u[:, :, None])], axis=-1)


def _turned(x_jc: Any, R: Any, x_j: Any, w_c: Any, size: Any) -> Any:
    """∂/∂θ_c of Rᵀx_j/size, in the axes, from the changes of x_j and of the axes; `size` is constant."""
    return x_jc @ R[:, None] / size[..., None, None] - cross(w_c, x_j[:, :, None])


def _first_columns(rows: Any, v: Any) -> Any:
    """R (K, 9), S (K, n 6) and Σ ∂S_j/∂θ_c v_j v_c (K, 6) in one array, from packed FirstDerivatives (..., K) of
    points, at rates v (K, n)."""
    import jax.numpy as jnp

    n = v.shape[1]
    x = unpacked(FirstDerivatives, rows, n)
    own = _area(x)
    R, S, _ = _area_columns(own)
    J, b_j, d_j = (jnp.einsum("kj,kjr->kr", v, part)[:, None] for part in (own.J, own.b_j, own.d_j))
    second = (part.T[:, None, None] for part in (x.h, x.F_h[:, 1], x.F_h[:, 2]))
    along = _area_columns(_Area(J, own.b, own.d, b_j, d_j, *second))[2]
    return jnp.concatenate([R.reshape(-1, 9), S.reshape(-1, 6 * n), along[:, 0, 0]], axis=1)


def _second_columns(x: SecondDerivatives) -> Any:
    """R (K, 9), S (K, n 6) and ∂S_j/∂θ_c (K, n n 6) in one array."""
    import jax.numpy as jnp

    b_jc, d_jc = x.F_jl[..., 1:, :].transpose(3, 4, 0, 1, 2)
    parts = _area_columns(_area(x)._replace(H=x.H.transpose(3, 0, 1, 2), b_jc=b_jc, d_jc=d_jc))
    return jnp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _area(x: FirstDerivatives | SecondDerivatives) -> _Area:
    """The cross-sections at points, with first derivatives."""
    b, d = x.F[:, 1:].transpose(1, 2, 0)
    return _Area(x.J.transpose(2, 0, 1), b, d, *x.F_j[:, :, 1:].transpose(2, 3, 0, 1))


@lru_cache(maxsize=2)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that JAX compiles once."""
    return compiled(function)


@final
class _FramesOfComposition:
    """K frames of k bodies with a composed motion, evaluated in one call.

    Args:
        points: the points of the bodies.
        places: for each frame, the index of its point and of its body.
        turning: for each frame, True if it follows the cross-section, False if it keeps the axes of the body.
    """

    def __init__(self, points: EvaluatedPoints, places: Places, turning: np.ndarray) -> None:
        self.points, self.places, self.turns = points, places, np.flatnonzero(turning)
        self._kept: dict[tuple[Any, ...], tuple[np.ndarray, ...]] = {}

    def columns(self, q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> tuple[np.ndarray, ...]:
        """R, p, S, ∂S and ∂²S at θ (k, n) of the bodies, as in `MaterialFrames.derivatives`, with a cache by state."""
        key = (q.tobytes(), None if v is None else v.tobytes(), curved, sloped)
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = self._columns(q, v, curved=curved, sloped=sloped)
        return self._kept[key]

    def _columns(self, q: np.ndarray, v: np.ndarray | None, *, curved: bool, sloped: bool) -> tuple[np.ndarray, ...]:
        if not (curved or sloped):
            R, p, S, S_q = self._first(q, v)
            return R, p, S, S_q, np.zeros((len(p), 0))
        R, p, S, S_q = self._second(q, v)
        if not curved:
            return R, p, S, S_q, np.zeros((len(p), 0))
        n = q.shape[1]
        if v is None:
            by_e = np.array([self._changes(q, S, np.tile(e, (len(q), 1))) for e in np.eye(n)])
            return R, p, S, S_q, np.moveaxis(by_e, 0, 3)
        return R, p, S, S_q, _along_rates(self._second_change(q, S, v), v[self.places.body])

    def _first(self, q: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R, p, S and a ∂S that is right in the sum along v only."""
        n, turns = q.shape[1], self.turns
        rows = self.points.packed_first(self.places, q, v if v is not None and v.any() else None)
        x = unpacked(FirstDerivatives, rows, n)
        R, S = _plain(x)
        rate = np.zeros((len(S), n)) if v is None else v[self.places.body]
        change = np.concatenate([np.zeros_like(x.h), x.h]).T
        if len(turns):
            found = np.asarray(_compiled(_first_columns)(rows[:, turns], rate[turns]))
            R[turns], S[turns] = found[:, :9].reshape(-1, 3, 3), found[:, 9:-6].reshape(-1, n, 6)
            change[turns] = found[:, -6:]
        if not rate.any():
            return R, x.p.T, S, np.zeros((*S.shape[:2], n, 6))
        unit = rate / np.maximum((rate * rate).sum(axis=1), _LEAST)[:, None]
        return R, x.p.T, S, (unit[:, :, None] * unit[:, None])[..., None] * change[:, None, None]

    def _second(
        self, q: np.ndarray, v: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R, p, S and ∂S. v is the rate of the state; it is part of the cache's key."""
        n, turns = q.shape[1], self.turns
        rows = self.points.packed_second(self.places, q, v)
        x = unpacked(SecondDerivatives, rows, n)
        R, S = _plain(x)
        S_q = np.zeros((*S.shape[:2], n, 6))
        S_q[..., 3:] = x.H.transpose(3, 0, 1, 2)
        if len(turns):
            of_turns = unpacked(SecondDerivatives, rows[:, turns], n)
            found = np.asarray(_compiled(_second_columns)(of_turns))
            R[turns], S[turns] = found[:, :9].reshape(-1, 3, 3), found[:, 9 : 9 + 6 * n].reshape(-1, n, 6)
            S_q[turns] = found[:, 9 + 6 * n :].reshape(-1, n, n, 6)
        return R, x.p.T, S, S_q

    def _steps(self, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Factors (k,) of v that move the frames of each body by one step of the finite differences; zero if v does not
        move them."""
        speed = np.abs(np.einsum("kjr,kj->kr", S, v[self.places.body])) / np.repeat([1.0, self.points.size], 3)
        fastest = np.zeros(len(v))
        np.maximum.at(fastest, self.places.body, speed.max(axis=1))
        return np.where(fastest > 0.0, _STEP / np.maximum(fastest, _LEAST), 0.0)

    def _changes(self, q: np.ndarray, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Σ ∂²S_j/∂θ_c∂θ_e v_e by finite differences of ∂S, shape (K, n, n, 6)."""
        h = self._steps(S, v)
        around = [self._second(q + k * h[:, None] * v)[3] for k in _PLACES]
        return np.tensordot(_FIRST, around, axes=1) * self._over(h)[:, None, None, None]

    def _second_change(self, q: np.ndarray, S: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Σ ∂²S_j/∂θ_c∂θ_e v_c v_e by finite differences of S, shape (K, n, 6)."""
        h = self._steps(S, v)
        around = [self._first(q + k * h[:, None] * v, None)[2] for k in _PLACES]
        return (np.tensordot(_SECOND, around, axes=1) - 2.5 * S) * self._over(h)[:, None, None] ** 2

    def _over(self, h: np.ndarray) -> np.ndarray:
        """1/h of the body of each frame; zero if h = 0."""
        return np.where(h > 0.0, 1.0 / np.where(h > 0.0, h, 1.0), 0.0)[self.places.body]


def _plain(x: FirstDerivatives | SecondDerivatives) -> tuple[np.ndarray, np.ndarray]:
    """R and S of frames that keep the axes of the body."""
    J = x.J.transpose(2, 0, 1)
    return np.tile(np.eye(3), (len(J), 1, 1)), np.concatenate([np.zeros_like(J), J], axis=-1)


def _along_rates(change: np.ndarray, v: np.ndarray) -> np.ndarray:
    """An array in place of ∂²S, shape (K, n, n, n, 6), whose contraction with the rates v (K, n) twice is `change`
    (K, n, 6). Later steps use that contraction alone, so any such array serves."""
    unit = v / np.maximum((v * v).sum(axis=1), _LEAST)[:, None]
    return change[:, :, None, None] * (unit[:, :, None] * unit[:, None])[:, None, :, :, None]
