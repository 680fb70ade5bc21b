"""Forces of actuators inside a deformable body, by virtual work on its own coordinates θ and on its frame.

A pull is the force of one actuator per unit of its input: the generalised forces B_j on θ. With material points that
move as p = f(x, θ),

    along a material line     B_j = −∂L/∂θ_j,   L = ∫ |∂f/∂x x'(σ)| dσ                                     (1)
    through eyelets           B_j = −∂L/∂θ_j,   L = Σ |p_{k+1} − p_k|                                      (2)
    in a closed chamber       B_j = ∂V/∂θ_j,    V = ⅙ Σ p_a·(p_b×p_c) over its triangles                   (3)
    on an open surface        B_j = −⅓ Σ N·(J_a + J_b + J_c)_j,   N = ½ (p_b − p_a)×(p_c − p_a)            (4)

(4) is a pressure against the normal N of each triangle, whose points are interpolated linearly between its corners. (3)
is (4) with the other sign, summed over a closed surface. Only (4) acts on the frame, with a wrench about its origin:

    force −Σ N,   moment −Σ ⅓ (p_a + p_b + p_c)×N                                                          (5)

Tendons in a composed motion need no function compiled by JAX. A tendon consists of pieces s, (k, 3), whose lengths are
summed: ∂f/∂x x'(σ) dσ along a material line, p_{k+1} − p_k between eyelets. With t = s/|s| and the derivatives of the
points, which the body's frames use as well,

    L = Σ |s|,   B_j = −Σ t·s_j,   ∂B_j/∂θ_l = −Σ (t·s_jl + (s_j·s_l − (t·s_j)(t·s_l))/|s|)                (6)

Source: Pustina 2025 §7.1 for (1) and (3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies import linear_pulls, native_code
from lissom.bodies.body import DeformableBody
from lissom.bodies.evaluation import EvaluatedPoints, Places, shared_by_equals
from lissom.bodies.jets import FirstDerivatives, SecondDerivatives, second_along, unpacked
from lissom.bodies.kinematics import Kinematics, check_function
from lissom.bodies.native_code import NativePull
from lissom.bodies.surfaces import closed
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.actuators import BodyChamber, PathBody, SurfacePressure
from lissom.robot.functions import derivative
from lissom.robot.poses import captured, compiled
from lissom.tracing.graph import Refused


class Moved(NamedTuple):
    """The body at θ = q for one actuator: positions p (m, 3) of its material points, and its deformed tangents
    (k, 3)."""

    p: Any
    stretched: Any
    q: Any


@dataclass(frozen=True, eq=False)
class Pull(ABC):
    """The force of one actuator inside one body, per unit of its input.

    Law: B_j = ∂work(here, there)/∂θ_j with `there` constant. Both arguments are the body at θ.

    Args:
        points: material points of the pull, shape (m, 3) [m].
        line: material points (k, 3) of a line, and the tangents there (k, 3).
    """

    points: np.ndarray
    line: tuple[np.ndarray, np.ndarray]
    presses = False  # whether the pull acts on the frame

    @abstractmethod
    def work(self, here: Moved, there: Moved) -> Any:
        """Work of a unit input: a length [m] or a volume [m³]."""

    @abstractmethod
    def native(self, motion: Kinematics) -> NativePull:
        """Native functions in a body that moves by `motion`.

        Raises:
            Refused: there are none.
        """

    def wrench(self, here: Moved) -> Any:
        """Wrench (moment; force) on the frame in its axes, shape (6,)."""
        import jax.numpy as jnp

        return jnp.zeros(6)


_FLAT = 1e-12  # smallest volume of a chamber, relative to the cube of its length
_NOTHING = np.zeros((0, 3))


@final
class LinePull(Pull):
    """A tendon along a material line (1)."""

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        return -jnp.sqrt((here.stretched**2).sum(axis=1)).sum()

    def native(self, motion: Kinematics) -> NativePull:
        return (linear_pulls if motion.is_linear else native_code).tendon_along_line(motion, *self.line)


@final
class EyeletPull(Pull):
    """A tendon through eyelets (2)."""

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        return -jnp.sqrt(((here.p[1:] - here.p[:-1]) ** 2).sum(axis=1)).sum()

    def native(self, motion: Kinematics) -> NativePull:
        return (linear_pulls if motion.is_linear else native_code).tendon_through_eyelets(motion, self.points)


@final
@dataclass(frozen=True, eq=False)
class ChamberPull(Pull):
    """A chamber (3). Triangles to the mean of the rim's vertices close each rim.

    Args:
        triangles: indices (k, 3) of points, followed by indices of rims.
        rims: indices of the points on each rim.
    """

    triangles: np.ndarray
    rims: tuple[np.ndarray, ...]

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        p = jnp.concatenate([here.p, *(here.p[rim].mean(axis=0, keepdims=True) for rim in self.rims)])
        a, b, c = (p[self.triangles[:, k]] for k in range(3))
        return (a * jnp.cross(b, c)).sum() / 6.0

    def native(self, motion: Kinematics) -> NativePull:
        if motion.is_linear:
            return linear_pulls.chamber(motion, self.points, self.triangles, self.rims)
        return native_code.surface(motion, self.points, self.triangles, self.rims, 1.0)


@final
@dataclass(frozen=True, eq=False)
class VolumePull(Pull):
    """A chamber whose volume V(θ) is a user's function."""

    volume: Callable[[Any], Any]

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self.volume(here.q), dtype=jnp.float64)

    def native(self, motion: Kinematics) -> NativePull:
        return native_code.function_of_coordinates(self.volume, motion.n)


@final
@dataclass(frozen=True, eq=False)
class PressurePull(Pull):
    """A surface pressure (4), (5), on triangles (k, 3) of point indices."""

    triangles: np.ndarray
    presses = True

    def _corners(self, at: Moved) -> tuple[Any, Any]:
        """The sum of the corners of each triangle, and its normal N."""
        import jax.numpy as jnp

        a, b, c = (at.p[self.triangles[:, k]] for k in range(3))
        return a + b + c, 0.5 * jnp.cross(b - a, c - a)

    def work(self, here: Moved, there: Moved) -> Any:
        return -(self._corners(here)[0] * self._corners(there)[1]).sum() / 3.0

    def native(self, motion: Kinematics) -> NativePull:
        if motion.is_linear:
            return linear_pulls.pressure(motion, self.points, self.triangles)
        return native_code.surface(motion, self.points, self.triangles, (), -1.0)

    def wrench(self, here: Moved) -> Any:
        import jax.numpy as jnp

        corners, N = self._corners(here)
        return -jnp.concatenate([jnp.cross(corners, N).sum(axis=0) / 3.0, N.sum(axis=0)])


@final
@dataclass(frozen=True, eq=False)
class BodyPulls:
    """The forces of all actuators in one body, compiled by JAX as one function on first use, in float64."""

    motion: Kinematics
    pulls: tuple[Pull, ...]

    @cached_property
    def native(self) -> tuple[tuple[NativePull, ...], str]:
        """As `native_pulls`."""
        return native_pulls(self.motion, self.pulls)

    def values(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (m, p), B (m, p, n) and wrenches (m, p, 6) of p actuators at θ = q (m, n)."""
        return _stacked(self._values, q)

    def derivatives(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂B_j/∂θ_l (m, p, n, n), indexed [j, l], and ∂wrench/∂θ_l (m, p, n, 6), indexed [l], at θ = q (m, n)."""
        return _stacked(self._derivatives, q)

    def second_along(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Second derivative of the work along θ̇ = v at θ = q, shape (p,), for actuators that do not act on the
        frame."""
        return np.asarray(self._second_along(q, v))

    @cached_property
    def _second_along(self) -> Callable[..., Any]:
        return compiled(lambda q, v: second_along(lambda q: self._work(q, q), (q,), (v,)))

    def _moved(self, q: Any) -> list[Moved]:
        """The body at θ = q for each actuator. The points of all actuators are mapped in one call, and all tangents in
        another."""
        import jax.numpy as jnp

        points, at, tangents = (
            np.concatenate(parts) for parts in zip(*((pull.points, *pull.line) for pull in self.pulls))
        )
        p = self.motion.positions(points, q) if len(points) else jnp.zeros((0, 3))
        F = self.motion.deformations(at, q) if len(at) else jnp.zeros((0, 3, 3))
        stretched, out, first, k = jnp.einsum("kab,kb->ka", F, tangents), [], 0, 0
        for pull in self.pulls:
            m, t = len(pull.points), len(pull.line[0])
            out.append(Moved(p[first : first + m], stretched[k : k + t], q))
            first, k = first + m, k + t
        return out

    def _work(self, q: Any, at: Any) -> Any:
        """Work of all actuators for unit inputs, shape (p,)."""
        import jax.numpy as jnp

        here = self._moved(q)
        there = self._moved(at) if any(pull.presses for pull in self.pulls) else here
        return jnp.stack([pull.work(*pair) for pull, *pair in zip(self.pulls, here, there)])

    def _wrench(self, q: Any) -> Any:
        import jax.numpy as jnp

        return jnp.stack([pull.wrench(here) for pull, here in zip(self.pulls, self._moved(q))])

    def _B(self, q: Any) -> tuple[Any, Any]:
        """B (p, n), and the work (p,)."""
        import jax

        def twice(q: Any, at: Any) -> tuple[Any, Any]:
            work = self._work(q, at)
            return work, work

        return jax.jacfwd(twice, has_aux=True)(q, q)

    @cached_property
    def _values(self) -> Callable[[Any], Any]:

        def everything(q: Any) -> tuple[Any, ...]:
            B, work = self._B(q)
            return work, B, self._wrench(q)

        return compiled(everything)

    @cached_property
    def _derivatives(self) -> Callable[[Any], Any]:
        import jax

        def everything(q: Any) -> tuple[Any, ...]:
            B_q = jax.jacfwd(lambda q: self._B(q)[0])(q)
            return B_q, jax.jacfwd(self._wrench)(q).swapaxes(-1, -2)

        return compiled(everything)


def _stacked(function: Callable[[Any], Any], q: np.ndarray) -> Any:
    """Call a compiled function of one θ for each row of q. So it is compiled once, not for each batch size."""
    return tuple(np.stack(parts) for parts in zip(*([np.asarray(part) for part in function(row)] for row in q)))


@final
@dataclass(frozen=True, eq=False)
class LengthPulls:
    """All tendons inside the bodies of one call, with the methods of `BodyPulls`, by (6).

    Args:
        motion: kinematics of the bodies.
        points: points of the bodies.
        pulls: pulls with eyelets (m, 3), or with points of a line and tangents (k, 3) there.
        bodies: for each pull the index of its body.
    """

    motion: Kinematics
    points: EvaluatedPoints
    pulls: tuple[Any, ...]
    bodies: tuple[int, ...]

    @cached_property
    def native(self) -> tuple[tuple[NativePull, ...], str]:
        """As `native_pulls`."""
        return native_pulls(self.motion, self.pulls)

    @cached_property
    def _pieces(self) -> _Pieces:
        """The points of all tendons, and the points of each piece."""
        eyelets = [self.points.numbers(pull.points) for pull in self.pulls]
        lines = [self.points.numbers(pull.line[0]) for pull in self.pulls]
        most = 1 + max((int(row.max()) for row in (*eyelets, *lines) if len(row)), default=0)
        eyelets, lines = ([row + most * b for row, b in zip(rows, self.bodies)] for rows in (eyelets, lines))
        pairs = [np.stack([row[:-1], row[1:]]) for row in eyelets]
        counts = [len(line) for line in lines], [pair.shape[1] for pair in pairs]
        owner = np.concatenate([np.repeat(np.arange(len(self.pulls)), count) for count in counts])
        numbers, place = np.unique(np.concatenate([*lines, *(pair.ravel() for pair in pairs)]), return_inverse=True)
        stop = sum(counts[0])
        ends = np.searchsorted(numbers, np.concatenate(pairs, axis=1))
        tangents = np.concatenate([pull.line[1] for pull in self.pulls]).T
        owned = np.equal.outer(np.arange(len(self.pulls)), owner) * 1.0
        return _Pieces(Places(numbers % most, numbers // most), place[:stop], tangents, ends, owned)

    def values(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (m, p), B (m, p, n) and wrenches (m, p, 6) of p tendons, at θ = q (m, k, n) of k bodies, or (m, n) of
        one body."""
        pieces, work, B = self._pieces, [], []
        for theta in map(np.atleast_2d, q):
            x = unpacked(FirstDerivatives, self.points.packed_first(pieces.points, theta, None), theta.shape[1])
            s, s_j = pieces.of(x.p, x.F), pieces.of(x.J, x.F_j)
            length = np.sqrt((s * s).sum(axis=0))
            work.append(-pieces.owned @ length)
            B.append(-pieces.owned @ (s_j * (s / length)).sum(axis=1).T)
        return np.array(work), np.array(B), np.zeros((len(q), len(self.pulls), 6))

    def derivatives(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂B_j/∂θ_l (m, p, n, n), indexed [j, l], and ∂wrench/∂θ_l (m, p, n, 6), indexed [l], at θ = q (m, k, n) of k
        bodies, or (m, n) of one body."""
        pieces, B_q = self._pieces, []
        for theta in map(np.atleast_2d, q):
            x = unpacked(SecondDerivatives, self.points.packed_second(pieces.points, theta, None), theta.shape[1])
            s, s_j, s_jl = pieces.of(x.p, x.F), pieces.of(x.J, x.F_j), pieces.of(x.H, x.F_jl)
            B_q.append(-np.tensordot(pieces.owned, _second_of_lengths(s, s_j, s_jl), axes=([1], [2])))
        return np.array(B_q), np.zeros((len(q), len(self.pulls), q.shape[-1], 6))

    def second_along(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Second derivative of the work along θ̇ = v, shape (p,), at θ = q (k, n) of k bodies, or (n,) of one body."""
        pieces, q, v = self._pieces, np.atleast_2d(q), np.atleast_2d(v)
        x = unpacked(FirstDerivatives, self.points.packed_first(pieces.points, q, v), q.shape[1])
        rate = v[pieces.points.body].T
        s_v = pieces.of(np.einsum("jk,jak->ak", rate, x.J), np.einsum("jk,jabk->abk", rate, x.F_j))
        second = _second_of_lengths(pieces.of(x.p, x.F), s_v[None], pieces.of(x.h, x.F_h)[None, None])
        return -pieces.owned @ second[0, 0]


class _Pieces(NamedTuple):
    """The pieces of all tendons of a body. Pieces on material lines come first, pieces between eyelets second.

    Fields:
        points: points of all pieces.
        line: indices (k,) of the points on lines.
        tangents: tangents at these points, shape (3, k).
        ends: indices of the two points of each piece between eyelets, shape (2, m).
        owned: 1 if a piece belongs to a pull, otherwise 0, shape (p, k + m).
    """

    points: Places
    line: np.ndarray
    tangents: np.ndarray
    ends: np.ndarray
    owned: np.ndarray

    def of(self, p: np.ndarray, F: np.ndarray) -> np.ndarray:
        """The pieces s (..., 3, k + m) from p (..., 3, N) and F (..., 3, 3, N); or derivatives of s from derivatives of
        p and F."""
        along = (F[..., self.line] * self.tangents).sum(axis=-2)
        return np.concatenate([along, p[..., self.ends[1]] - p[..., self.ends[0]]], axis=-1)


def _second_of_lengths(s: np.ndarray, s_j: np.ndarray, s_jl: np.ndarray) -> np.ndarray:
    """The contribution of each piece to −∂B of (6), shape (n, n, k). If s_j and s_jl are derivatives along a rate, it
    is the contribution to the second derivative of L along that rate."""
    length = np.sqrt((s * s).sum(axis=0))
    t = s / length
    along = (t * s_j).sum(axis=1)
    across = np.einsum("jak,lak->jlk", s_j, s_j) - along[:, None] * along
    return (s_jl * t).sum(axis=-2) + across / length


def native_pulls(motion: Kinematics, pulls: tuple[Pull, ...]) -> tuple[tuple[NativePull, ...], str]:
    """The native functions of all actuators in one body; without any, the reason why Python evaluates them."""
    try:
        return tuple(pull.native(motion) for pull in pulls), ""
    except Refused as error:
        return (), str(error)


def pulls_on(
    body: DeformableBody, items: tuple[PathBody | BodyChamber | SurfacePressure, ...]
) -> BodyPulls | LengthPulls:
    """The forces of the actuators in a body. A body that is built again reuses the compiled functions."""
    volumes = [item.volume for item in items if isinstance(item, BodyChamber) and item.volume is not None]
    return _pulls_on(body, items, captured(volumes))


@lru_cache(maxsize=64)
def _pulls_on(
    body: DeformableBody, items: tuple[PathBody | BodyChamber | SurfacePressure, ...], data: Any
) -> BodyPulls | LengthPulls:
    """`pulls_on` with the data that functions of volumes read."""
    pulls = tuple(_pull(body, item, f"link {item.link!r}") for item in items)
    points = body.integrals.points
    if points is not None and all(isinstance(pull, LinePull | EyeletPull) for pull in pulls):
        return LengthPulls(body.motion, points, pulls, (0,) * len(pulls))
    return shared_by_equals(BodyPulls, body.motion, pulls)


def check_pull(body: DeformableBody, item: PathBody | BodyChamber | SurfacePressure, where: str) -> None:
    """Raise ModelError if an actuator does not fit the body."""
    pull = _pull(body, item, where)
    if isinstance(pull, VolumePull):
        check_function(pull.volume, body.motion.n, (), (np.zeros(body.motion.n),), f"{where}: volume")


def _pull(body: DeformableBody, item: PathBody | BodyChamber | SurfacePressure, where: str) -> Pull:
    none = _NOTHING, _NOTHING
    if isinstance(item, PathBody):
        if item.gauss_points is None:
            return EyeletPull(np.asarray(item.points, dtype=np.float64), none)
        return LinePull(_NOTHING, _line(item, where))
    if isinstance(item, BodyChamber) and item.volume is not None:
        return VolumePull(_NOTHING, none, item.volume)
    vertices, triangles = _surface(body, item.surface, f"{where}: surface")
    used, local = np.unique(triangles, return_inverse=True)
    vertices, triangles = vertices[used], local.reshape(-1, 3)
    if isinstance(item, SurfacePressure):
        return PressurePull(vertices, none, triangles)
    shut, rims = _closed(triangles, f"{where}: surface")
    pull = ChamberPull(vertices, none, shut, rims)
    p = np.concatenate([vertices, *(vertices[rim].mean(axis=0, keepdims=True) for rim in rims)])
    volume = float(np.linalg.det(p[shut]).sum() / 6.0)
    flat = _FLAT * float(np.ptp(vertices, axis=0).max()) ** 3
    checks.require(abs(volume) > flat, f"{where}: surface", "must enclose a volume", volume)
    return pull if volume > 0.0 else ChamberPull(vertices, none, shut[:, ::-1].copy(), rims)


def _line(item: PathBody, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points on the lines of a path, and the tangents there times the weights."""
    x, w = np.polynomial.legendre.leggauss(int(item.gauss_points or 1))
    x, w = 0.5 * (x + 1.0), 0.5 * w
    if callable(item.points):
        here = f"{where}: points"
        points = np.array([checks.call(item.points, float(s), (3,), here) for s in x])
        return points, w[:, None] * np.array([derivative(item.points, float(s), (3,), here) for s in x])
    rows = np.asarray(item.points, dtype=np.float64)
    step = np.diff(rows, axis=0)[:, None]
    return (rows[:-1, None] + x[:, None] * step).reshape(-1, 3), (w[:, None] * step).reshape(-1, 3)


def _surface(body: DeformableBody, surface: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a surface."""
    if not callable(surface):
        vertices, triangles = surface
        return np.asarray(vertices, dtype=np.float64), np.asarray(triangles, dtype=np.int64)
    vertices, triangles = body.domain.surface()
    chosen = np.array([bool(surface(x)) for x in vertices])[triangles].all(axis=1)
    checks.require(bool(chosen.any()), where, "must choose some triangle of the body's boundary", "none of them")
    return vertices, triangles[chosen]


def _closed(triangles: np.ndarray, where: str) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    try:
        return closed(triangles)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
