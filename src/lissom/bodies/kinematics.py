"""Kinematics of deformable bodies: p = f(x, θ) for a point x of the undeformed shape and n coordinates θ.

This module holds the base class, user-defined motions, and modes: functions of the abscissa from which the library's
kinematics are built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.bodies import jets
from lissom.bodies.domains import Domain
from lissom.bodies.enrichment import Enriched, further_shapes
from lissom.bodies.evaluation import (
    Samples,
    SamplesByJax,
    SamplesOfComposition,
    SamplesOfGraph,
    TracedMotion,
    shared_by_equals,
)
from lissom.bodies.jets import ORDER, FirstDerivatives, SecondDerivatives, Series, antiderivatives, compose
from lissom.bodies.materials import Hyperelastic
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.poses import compiled, failure, in_double, result_shape


class Kinematics(ABC):
    """The motion of the points of a body as a function of its coordinates.

    Law: p = f(x, θ) [m] in the body's frame, with f(x, 0) = x. f has three derivatives in θ and is written with
    jax.numpy.
    """

    n: int  # number of coordinates θ
    is_linear: bool = False  # whether f(x, θ) = x + Σ φ_j(x) θ_j
    keeps_volume: bool = False  # whether det ∂f/∂x = 1 everywhere
    takes_arrays: bool = True  # whether `positions` and `deformations` take points traced by JAX; else NumPy arrays
    breaks: tuple[float, ...] = ()  # abscissae x/length within (0, 1) where f is not smooth
    breaks_around: tuple[float, ...] = ()  # angles about x in [0, 1), in turns from +y, where f is not smooth
    is_of_cells: bool = False  # whether f is defined on the cells of one mesh
    chooses_steps: bool = False  # whether f has an integrator whose number of steps the body chooses

    axes: Callable[[Any, Any], Any] | None = None  # axes of the cross-section at a point; None: those of ∂map/∂x
    strained: Callable[[Any, Any], Any] | None = None  # ∂f/∂x at a point, up to a rotation from the left; None: ∂map/∂x

    @abstractmethod
    def map(self, x: Any, q: Any) -> Any:
        """f of one point x, shape (3,), at θ = q, shape (n,): position, shape (3,)."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the kinematics is invalid."""

    def positions(self, points: np.ndarray, q: Any) -> Any:
        """f at constant points (N, 3), shape (N, 3)."""
        import jax

        return jax.vmap(lambda x: self.map(x, q))(points)

    def deformations(self, points: np.ndarray, q: Any) -> Any:
        """∂f/∂x at constant points, shape (N, 3, 3). It may differ by a rotation from the left, which does not change
        the energy."""
        import jax

        return jax.vmap(lambda x: jax.jacfwd(self.map)(x, q))(points)

    def samples(self, points: np.ndarray) -> Samples:
        """Positions and strains of points (N, 3) with NumPy, for the choice of a quadrature."""
        traced = shared_by_equals(TracedMotion, self)
        return SamplesByJax(self, points) if traced.why_python else SamplesOfGraph(traced, points)

    def stepped(self, count: int | None) -> Kinematics:
        """The kinematics with another number of integrator steps; with None the body chooses it."""
        return self

    def on_mesh(self, old: Any, new: Any) -> Kinematics:
        """The kinematics on the mesh `new` if it is defined on one that is equal to `old`."""
        return self

    def enriched(
        self, domain: Domain, material: Hyperelastic, density: float | Callable[[np.ndarray], float]
    ) -> Enriched | None:
        """Kinematics with added coordinates, for a body with this domain, material and density. None if the library
        knows no further coordinates."""
        return None

    def first_derivatives(self, points: Any, q: Any, v: Any) -> FirstDerivatives:
        """FirstDerivatives of constant points at θ = q and θ̇ = v."""
        return jets.first_derivatives(self._rows_of_points(points), q, v)

    def second_derivatives(self, points: Any, q: Any, v: Any) -> SecondDerivatives:
        """SecondDerivatives of constant points at θ = q and θ̇ = v."""
        return jets.second_derivatives(self._rows_of_points(points), q, v)

    def _rows_of_points(self, points: Any) -> Callable[[Any], tuple[Any, Any]]:
        """A function of θ that returns p and F of constant points, with the points along the last axis."""
        return lambda q: (self.positions(points, q).T, self.deformations(points, q).transpose(1, 2, 0))

    def frames(self, points: np.ndarray, q: Any) -> tuple[Any, Any]:
        """Axes (N, 3, 3) and positions (N, 3) of the cross-sections normal to x at constant points (N, 3).

        The first axis is the normal of the deformed section. The second axis follows the material's y direction.
        """
        import jax

        return jax.vmap(lambda x: (area_axes(jax.jacfwd(self.map)(x, q)), self.map(x, q)))(points)

    def shapes(self, points: np.ndarray) -> np.ndarray:
        """Shape functions φ_j of a linear map at points (N, 3), shape (N, 3, n)."""
        import jax

        slope = compiled(jax.jacfwd(lambda q: self.positions(points, q)))
        return np.asarray(slope(np.zeros(self.n)))

    def moving(self, point: np.ndarray) -> np.ndarray:
        """Numbers of the coordinates that can move a point (3,) or the cross-section there, for a linear map."""
        return np.arange(self.n)

    def frame_shapes(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a linear map, ∂F/∂θ for the cross-sections at points (N, 3), shape (N, 3, 3, n), and shape functions."""
        return self.shape_gradients(points), self.shapes(points)

    def shape_gradients(self, points: np.ndarray) -> np.ndarray:
        """Gradients ∂φ_j/∂x of a linear map at points (N, 3), shape (N, 3, 3, n)."""
        import jax

        slope = compiled(jax.jacfwd(lambda q: self.deformations(points, q)))
        return np.asarray(slope(np.zeros(self.n)))


class ComposedKinematics(Kinematics):
    """A composition of motions, f = h_P(… h_2(h_1(x))).

    Its derivatives are computed from the jets of the parts. F is ∂f/∂x itself, without a rotation from the left.
    """

    def samples(self, points: np.ndarray) -> Samples:
        traced = shared_by_equals(TracedMotion, self)
        return SamplesOfComposition(self, points) if traced.why_python else SamplesOfGraph(traced, points)

    @abstractmethod
    def jets(self, points: Any, q: Any) -> Any:
        """Jets of the parts at points (N, 3) and θ = q."""

    @abstractmethod
    def first_from(self, parts: Any, points: Any, v: Any) -> FirstDerivatives:
        """FirstDerivatives from the jets of the parts."""

    @abstractmethod
    def second_from(self, parts: Any, points: Any, v: Any) -> SecondDerivatives:
        """SecondDerivatives from the jets of the parts."""

    def first_derivatives(self, points: Any, q: Any, v: Any) -> FirstDerivatives:
        return self.first_from(self.jets(points, q), points, v)

    def second_derivatives(self, points: Any, q: Any, v: Any) -> SecondDerivatives:
        return self.second_from(self.jets(points, q), points, v)


def area_axes(F: Any) -> Any:
    """Axes (3, 3) of the deformed cross-section, from the deformation gradient F (3, 3): the normal, the material's y
    direction, and their cross product."""
    import jax.numpy as jnp

    normal = jnp.cross(F[:, 1], F[:, 2])
    first, second = (part / jnp.sqrt(part @ part) for part in (normal, F[:, 1]))
    return jnp.stack([first, second, jnp.cross(first, second)], axis=-1)


def check_function(function: Any, n: Any, shape: tuple[int, ...], arguments: tuple[Any, ...], where: str) -> None:
    """Raise ModelError if a user's function is not callable, does not run under JAX, or returns a wrong shape."""
    checks.integer(n, f"{where}: n", least=1)
    try:
        import jax  # noqa: F401
    except ImportError:
        raise ModelError(f"{where}: needs JAX: pip install 'lissom[deformable]'") from None
    checks.require(callable(function), f"{where}: function", "must be a function made of jax.numpy", function)
    try:
        found = result_shape(function, *arguments)
    except Exception as error:
        rule = f"must be a function of {' and '.join(str(np.shape(a)) for a in arguments)} made of jax.numpy"
        raise ModelError(f"{where}: function: {rule}; it {failure(error)}") from error
    checks.require(found == shape, f"{where}: function", f"must return shape {shape}", found)


@final
@dataclass(frozen=True)
class KinematicsFunction(Kinematics):
    """User-defined kinematics.

    Args:
        function: f(x, θ) that returns p, written with jax.numpy; x and p have shape (3,) [m], θ has shape (n,).
        n: number of coordinates.
        keeps_volume: True states that det ∂f/∂x = 1 everywhere. `build` checks this at some points.
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
    """Ritz-Galerkin kinematics, f = x + φ(x) θ, with given shape functions.

    Args:
        function: φ(x), shape (3, n), of a point x, shape (3,) [m], written with jax.numpy.
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

    def enriched(
        self, domain: Domain, material: Hyperelastic, density: float | Callable[[np.ndarray], float]
    ) -> Enriched | None:
        more = further_shapes(self.function, self.n, domain, material)
        return more and Enriched(KinematicsRitz(*more), np.arange(self.n), "give link {!r} more shape functions")


Modes = Sequence[Sequence[float]] | Callable[[Any], Any]
"""Modes: k functions of the abscissa s = x/length, each multiplied by one coordinate. They are given as polynomials,
each a list of coefficients by ascending power of s; or as one smooth function of s, written with jax.numpy, that
returns all k values, shape (k,)."""


def mode_count(modes: Modes) -> int:
    """Number of modes."""
    if not callable(modes):
        return len(modes)
    import jax

    return int(in_double(jax.eval_shape)(modes, np.float64(0.5)).shape[0])


def mode_values(modes: Modes, s: Any) -> Any:
    """Values of all modes at s, shape (k,)."""
    import jax.numpy as jnp

    if callable(modes):
        return jnp.asarray(modes(s), dtype=jnp.float64)
    table = _table(modes)
    total = jnp.asarray(table[:, -1])
    for column in table.T[-2::-1]:
        total = total * s + column
    return total


def mode_sum(modes: Modes, q: Any, s: Any) -> Any:
    """Σ modes θ at abscissae s (an array or a series), in the shape of s. If s is a series, θ is a tuple."""
    import jax
    import jax.numpy as jnp

    if not callable(modes):
        return _horner(_weighted_coefficients(_table(modes), q), s)
    if isinstance(q, tuple):
        return sum(mode * theta for mode, theta in zip(_modes_of_series(modes, s), q))
    flat = jnp.ravel(s)
    return jnp.reshape(jax.vmap(lambda s: mode_values(modes, s) @ q)(flat), jnp.shape(s))


def mode_integral(modes: Modes, q: Any, s: Any) -> Any:
    """∫ Σ modes θ ds from 0 to s, in the shape of s."""
    if callable(modes):
        return antiderivatives(lambda q, s: (mode_sum(modes, q, s),), q, s)[0]
    table = _table(modes)
    return s * _horner(_weighted_coefficients(table / (1.0 + np.arange(table.shape[1])), q), s)


def _modes_of_series(modes: Callable[[Any], Any], s: Any) -> list[Any]:
    """The value of each mode at a series or at an array."""
    import jax
    import jax.numpy as jnp

    def sloped(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda s: jax.jvp(function, (s,), (jnp.ones_like(s),))[1]

    is_series = isinstance(s, Series)
    functions: list[Callable[[Any], Any]] = [jax.vmap(lambda s: mode_values(modes, s), out_axes=-1)]
    for _ in range(ORDER * is_series):
        functions.append(sloped(functions[-1]))
    if not is_series:
        return list(functions[0](s))
    found = [function(s.terms[()]) for function in functions]
    return [compose([part[k] for part in found], s) for k in range(len(found[0]))]


def _table(modes: Sequence[Sequence[float]]) -> np.ndarray:
    """Coefficients of polynomials, shape (k, degree + 1)."""
    size = max(len(polynomial) for polynomial in modes)
    return np.array([[*polynomial, *[0.0] * (size - len(polynomial))] for polynomial in modes], dtype=np.float64)


def _weighted_coefficients(table: np.ndarray, q: Any) -> Any:
    """Coefficients of the polynomial Σ modes θ."""
    if not isinstance(q, tuple):
        return q @ table
    return [sum((theta * float(c) for theta, c in zip(q, column) if c), 0.0) for column in table.T]


def _horner(coefficients: Any, s: Any) -> Any:
    total = 0.0 * s + coefficients[-1] if not isinstance(coefficients, list) else coefficients[-1]
    for k in reversed(range(len(coefficients) - 1)):
        total = total * s + coefficients[k]
    return total


def check_modes(modes: Any, where: str) -> None:
    """Raise ModelError unless modes are polynomials or a function of s."""
    if not callable(modes):
        rule = "must be a list of polynomials, each its coefficients by rising power, or a function of s"
        checks.require(isinstance(modes, Sequence) and len(modes) > 0, where, rule, modes)
        for k, polynomial in enumerate(modes):
            found = checks.array(polynomial, (-1,), f"{where}[{k}]", "must be a list of finite coefficients")
            checks.require(len(found) > 0, f"{where}[{k}]", "must have at least one coefficient", polynomial)
        return

    try:
        result_shape(modes, 0.5)
        found = np.asarray(compiled(modes)(np.float64(0.5)))
    except Exception as error:
        rule = "must be a function of s made of jax.numpy"
        raise ModelError(f"{where}: {rule}; it {failure(error)}") from error
    fits = found.ndim == 1 and found.size > 0 and bool(np.isfinite(found).all())
    checks.require(fits, where, "must return finite values of shape (k,)", found)
