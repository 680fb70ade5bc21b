"""The motion of material points: p = f(x, θ), of a point x of the reference shape and n coordinates θ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.bodies import slopes
from lissom.bodies.samples import Samples, SamplesByJax, SamplesOfComposition
from lissom.bodies.slopes import Bends, Slopes
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.poses import compiled


class Kinematics(ABC):
    """How the points of a body move with its coordinates.

    Law: p = f(x, θ) in the body's frame [m], f(x, 0) = x, with three derivatives in θ, written with jax.numpy.
    """

    n: int  # number of coordinates θ
    is_linear: bool = False  # whether f(x, θ) = x + Σ φ_j(x) θ_j
    keeps_volume: bool = False  # whether det ∂f/∂x = 1 everywhere
    takes_arrays: bool = True  # whether `positions` and `deformations` take points that JAX traces; else NumPy arrays
    breaks: tuple[float, ...] = ()  # abscissae x/length within (0, 1) where f is not smooth
    breaks_around: tuple[float, ...] = ()  # and angles about x in [0, 1), in turns from +y
    is_of_cells: bool = False  # whether f is made for the points of a mesh
    chooses_steps: bool = False  # whether an integrator within it has steps that a body is to choose

    @abstractmethod
    def map(self, x: Any, q: Any) -> Any:
        """f of one point x, shape (3,), at θ = q, shape (n,)."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""

    def positions(self, points: np.ndarray, q: Any) -> Any:
        """f of fixed points (N, 3), shape (N, 3)."""
        import jax

        return jax.vmap(lambda x: self.map(x, q))(points)

    def deformations(self, points: np.ndarray, q: Any) -> Any:
        """∂f/∂x at fixed points, shape (N, 3, 3), up to rotations from the left, which energies do not see."""
        import jax

        return jax.vmap(lambda x: jax.jacfwd(self.map)(x, q))(points)

    def samples(self, points: np.ndarray) -> Samples:
        """Points (N, 3) to be moved for those who choose a quadrature."""
        return SamplesByJax(self, points)

    def stepped(self, count: int | None) -> Kinematics:
        """The same with so many steps of its integrator; None leaves them to a body."""
        return self

    def slopes(self, points: Any, q: Any, v: Any) -> Slopes:
        """Positions and ∂f/∂x of fixed points at θ = q with derivatives by θ, and J̇θ̇ for θ̇ = v."""
        return slopes.slopes(*self._motions(points), q, v)

    def bends(self, points: Any, q: Any, v: Any) -> Bends:
        """The same with second derivatives."""
        return slopes.bends(*self._motions(points), q, v)

    def _motions(self, points: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """p and F of fixed points as functions of θ, points along the last axis."""
        return lambda q: self.positions(points, q).T, lambda q: self.deformations(points, q).transpose(1, 2, 0)

    def frames(self, points: np.ndarray, q: Any) -> tuple[Any, Any]:
        """Axes (N, 3, 3) and positions (N, 3) of the area across x at fixed points (N, 3): its second axis goes with
        the material, its first is normal to the area."""
        import jax

        return jax.vmap(lambda x: (area_axes(jax.jacfwd(self.map)(x, q)), self.map(x, q)))(points)

    def shapes(self, points: np.ndarray) -> np.ndarray:
        """φ_j at points (N, 3) of a linear map, shape (N, 3, n)."""
        import jax

        slope = compiled(jax.jacfwd(lambda q: self.positions(points, q)))
        return np.asarray(slope(np.zeros(self.n)))

    def shape_gradients(self, points: np.ndarray) -> np.ndarray:
        """∂φ_j/∂x at points (N, 3) of a linear map, shape (N, 3, 3, n)."""
        import jax

        slope = compiled(jax.jacfwd(lambda q: self.deformations(points, q)))
        return np.asarray(slope(np.zeros(self.n)))


class ComposedKinematics(Kinematics):
    """A motion composed of others, whose derivatives cost little where those of the others are known, and are those of
    ∂f/∂x as it is."""

    def samples(self, points: np.ndarray) -> Samples:
        return SamplesOfComposition(self, points)

    @abstractmethod
    def jets(self, points: Any, q: Any) -> Any:
        """Derivatives of the motions it is composed of, at points (N, 3) and θ = q."""

    @abstractmethod
    def slopes_of(self, jets: Any, points: Any, v: Any) -> Slopes:
        """What these make of `slopes`."""

    @abstractmethod
    def bends_of(self, jets: Any, points: Any, v: Any) -> Bends:
        """What these make of `bends`."""

    def slopes(self, points: Any, q: Any, v: Any) -> Slopes:
        return self.slopes_of(self.jets(points, q), points, v)

    def bends(self, points: Any, q: Any, v: Any) -> Bends:
        return self.bends_of(self.jets(points, q), points, v)


def area_axes(F: Any) -> Any:
    """Axes (3, 3) of the area across x, with the deformation gradient F (3, 3): its normal, y in the material, z."""
    import jax.numpy as jnp

    normal = jnp.cross(F[:, 1], F[:, 2])
    first, second = (part / jnp.sqrt(part @ part) for part in (normal, F[:, 1]))
    return jnp.stack([first, second, jnp.cross(first, second)], axis=-1)


def check_function(function: Any, n: Any, shape: tuple[int, ...], arguments: tuple[Any, ...], where: str) -> None:
    """Raise ModelError where a user's function is none, does not run under JAX, or gives another shape."""
    checks.integer(n, f"{where}: n", least=1)
    try:
        import jax  # noqa: F401
    except ImportError:
        raise ModelError(f"{where}: needs JAX: pip install 'lissom[deformable]'") from None
    checks.require(callable(function), f"{where}: function", "must be a function made of jax.numpy", function)
    try:
        found = np.asarray(compiled(function)(*arguments))
    except Exception as error:
        text = str(error).partition("\n")[0]
        rule = f"must be a function of {' and '.join(str(np.shape(a)) for a in arguments)} made of jax.numpy"
        raise ModelError(f"{where}: function: {rule}; it failed ({type(error).__name__}: {text})") from error
    checks.require(found.shape == shape, f"{where}: function", f"must return shape {shape}", found.shape)


@final
@dataclass(frozen=True)
class KinematicsFunction(Kinematics):
    """A user's motion.

    Args:
        function: f(x, θ) → p, x and p of shape (3,) [m], θ of shape (n,), made of jax.numpy.
        n: number of coordinates.
        keeps_volume: whether det ∂f/∂x = 1 everywhere, which is then checked at some points.
    """

    function: Callable[[Any, Any], Any]
    n: int
    keeps_volume: bool = False

    def check(self, where: str) -> None:
        checks.integer(self.n, f"{where}: n", least=1)
        check_function(self.function, self.n, (3,), (np.full(3, 1e-3), np.zeros(self.n)), where)

    def map(self, x: Any, q: Any) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self.function(x, q), dtype=jnp.float64)


@final
@dataclass(frozen=True)
class KinematicsRitz(Kinematics):
    """Ritz-Galerkin on position: f = x + φ(x) θ with given shape functions.

    Args:
        function: φ(x), shape (3, n), of a point x, shape (3,) [m], made of jax.numpy.
        n: number of coordinates.
    """

    function: Callable[[Any], Any]
    n: int

    def check(self, where: str) -> None:
        checks.integer(self.n, f"{where}: n", least=1)
        check_function(self.function, self.n, (3, self.n), (np.full(3, 1e-3),), where)

    @property
    def is_linear(self) -> bool:
        return True

    def map(self, x: Any, q: Any) -> Any:
        import jax.numpy as jnp

        return x + jnp.asarray(self.function(x), dtype=jnp.float64) @ q
