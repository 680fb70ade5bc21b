"""What inputs do inside a deformable body, by virtual work on its own coordinates θ, and on its frame.

One input of unit size gives the forces B_j on θ; where material points p move as p = f(x, θ),

    along a material line     B_j = −∂L/∂θ_j,   L = ∫ |∂f/∂x x'(σ)| dσ                                     (1)
    through eyelets           B_j = −∂L/∂θ_j,   L = Σ |p_{k+1} − p_k|                                      (2)
    in a closed chamber       B_j = ∂V/∂θ_j,    V = ⅙ Σ p_a·(p_b×p_c) over its triangles                   (3)
    on an open surface        B_j = −⅓ Σ N·(J_a + J_b + J_c)_j,   N = ½ (p_b − p_a)×(p_c − p_a)            (4)

(4) presses against the normal N of each triangle, whose points move as its corners do linearly between them; so (3) is
the same with the other sign, summed over a closed surface. Only (4) acts on the frame: a wrench about its origin,

    force −Σ N,   moment −Σ ⅓ (p_a + p_b + p_c)×N                                                          (5)

Source: Pustina 2025 §7.1 for (1) and (3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.bodies.kinematics import Kinematics, check_function
from lissom.bodies.length_pulls import LengthPulls
from lissom.bodies.slopes import curved
from lissom.bodies.surfaces import closed
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.actuators import PathBody
from lissom.robot.body_actuators import BodyChamber, SurfacePressure
from lissom.robot.functions import derivative
from lissom.robot.poses import compiled


class Moved(NamedTuple):
    """What one pull sees of the body at θ = q: its points p (m, 3), and its tangents as they are stretched (k, 3)."""

    p: Any
    stretched: Any
    q: Any


@dataclass(frozen=True, eq=False)
class Pull(ABC):
    """What one input does inside one body.

    Law: B_j = ∂work(here, there)/∂θ_j at fixed `there`, where both are the body at θ.

    Args:
        points: material points that it works on, shape (m, 3) [m].
        line: material points (k, 3) at which it asks for tangents, and the tangents there (k, 3).
    """

    points: np.ndarray
    line: tuple[np.ndarray, np.ndarray]
    presses = False  # whether it acts on the frame

    @abstractmethod
    def work(self, here: Moved, there: Moved) -> Any:
        """Work of one unit [m, m³]."""

    def wrench(self, here: Moved) -> Any:
        """(moment; force) on the frame in its axes, shape (6,)."""
        import jax.numpy as jnp

        return jnp.zeros(6)


_FLAT = 1e-12  # the volume of what has none, in cubes as long as it is
_NOTHING = np.zeros((0, 3))


@final
class LinePull(Pull):
    """(1)."""

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        return -jnp.sqrt((here.stretched**2).sum(axis=1)).sum()


@final
class EyeletPull(Pull):
    """(2)."""

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        return -jnp.sqrt(((here.p[1:] - here.p[:-1]) ** 2).sum(axis=1)).sum()


@final
@dataclass(frozen=True, eq=False)
class ChamberPull(Pull):
    """(3); each of its rims is closed by triangles to the mean of its corners.

    Args:
        triangles: (k, 3), numbers of points, then of rims.
        rims: numbers of the points on each.
    """

    triangles: np.ndarray
    rims: tuple[np.ndarray, ...]

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        p = jnp.concatenate([here.p, *(here.p[rim].mean(axis=0, keepdims=True) for rim in self.rims)])
        a, b, c = (p[self.triangles[:, k]] for k in range(3))
        return (a * jnp.cross(b, c)).sum() / 6.0


@final
@dataclass(frozen=True, eq=False)
class VolumePull(Pull):
    """V(θ) of a user."""

    volume: Callable[[Any], Any]

    def work(self, here: Moved, there: Moved) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self.volume(here.q), dtype=jnp.float64)


@final
@dataclass(frozen=True, eq=False)
class PressurePull(Pull):
    """(4) and (5), of triangles (k, 3) by numbers of points."""

    triangles: np.ndarray
    presses = True

    def _corners(self, at: Moved) -> tuple[Any, Any]:
        """Sums of the corners of each triangle, and N."""
        import jax.numpy as jnp

        a, b, c = (at.p[self.triangles[:, k]] for k in range(3))
        return a + b + c, 0.5 * jnp.cross(b - a, c - a)

    def work(self, here: Moved, there: Moved) -> Any:
        return -(self._corners(here)[0] * self._corners(there)[1]).sum() / 3.0

    def wrench(self, here: Moved) -> Any:
        import jax.numpy as jnp

        corners, N = self._corners(here)
        return -jnp.concatenate([jnp.cross(corners, N).sum(axis=0) / 3.0, N.sum(axis=0)])


@final
@dataclass(frozen=True, eq=False)
class BodyPulls:
    """All pulls of one body, compiled by JAX as one function on their first use, in float64."""

    motion: Kinematics
    pulls: tuple[Pull, ...]

    def values(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Work (m, p), B (m, p, n) and wrenches (m, p, 6) of p pulls at θ = q (m, n)."""
        return _stacked(self._values, q)

    def derivatives(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂B_j/∂θ_l (m, p, n, n) by [j, l] and ∂wrench/∂θ_l (m, p, n, 6) by [l] at θ = q (m, n)."""
        return _stacked(self._derivatives, q)

    def bends(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The second derivatives of the work along θ̇ = v at θ = q, shape (p,), of pulls that do not press."""
        return np.asarray(self._bends(q, v))

    @cached_property
    def _bends(self) -> Callable[..., Any]:
        return compiled(lambda q, v: curved(lambda q: self._work(q, q), (q,), (v,)))

    def _moved(self, q: Any) -> list[Moved]:
        """The body at q as each pull sees it, by one map of all points and one of all tangents."""
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
        """Of all pulls, shape (p,)."""
        import jax.numpy as jnp

        here = self._moved(q)
        there = self._moved(at) if any(pull.presses for pull in self.pulls) else here
        return jnp.stack([pull.work(*pair) for pull, *pair in zip(self.pulls, here, there)])

    def _wrench(self, q: Any) -> Any:
        import jax.numpy as jnp

        return jnp.stack([pull.wrench(here) for pull, here in zip(self.pulls, self._moved(q))])

    def _B(self, q: Any) -> tuple[Any, Any]:
        """B (p, n) and the work."""
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
    """A compiled function of one θ, row by row: a body is compiled once, not once a size of batch."""
    return tuple(np.stack(parts) for parts in zip(*([np.asarray(part) for part in function(row)] for row in q)))


@lru_cache(maxsize=64)
def pulls_on(
    body: DeformableBody, items: tuple[PathBody | BodyChamber | SurfacePressure, ...]
) -> BodyPulls | LengthPulls:
    """The pulls of what drives a body; a body that is built again has those that were compiled."""
    pulls = tuple(_pull(body, item, f"link {item.link!r}") for item in items)
    points = body.integrals.points
    if points is not None and all(isinstance(pull, LinePull | EyeletPull) for pull in pulls):
        return LengthPulls(body.motion, points, pulls, (0,) * len(pulls))
    return BodyPulls(body.motion, pulls)


def check_pull(body: DeformableBody, item: PathBody | BodyChamber | SurfacePressure, where: str) -> None:
    """Raise ModelError where an item does not suit the body."""
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
    """Vertices and triangles."""
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
