"""Motions that keep the volume of every part, composed of primitives (Xu and Chirikjian 2023; Pustina 2025, 7.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.bodies import jets
from lissom.bodies.domains import Domain
from lissom.bodies.enrichment import Enriched, further_modes
from lissom.bodies.jets import FirstDerivatives, Jet, Motion, SecondDerivatives
from lissom.bodies.kinematics import ComposedKinematics, Modes, check_modes, mode_count, mode_integral, mode_sum
from lissom.bodies.materials import Hyperelastic
from lissom.robot import checks

Point = tuple[Any, Any, Any]


class Primitive(ABC):
    """An elementary volume-preserving motion.

    Law: x → h(x, θ) with det ∂h/∂x = 1 and h(x, 0) = x. The motion depends on m(s) = Σ modes_k(s) θ_k with s =
    x/length. x is the position after the earlier primitives.
    """

    modes: Modes

    @abstractmethod
    def moved(self, x: Point, q: Any, length: float) -> Point:
        """h of points with coordinates x, y and z: arrays of one shape, or series (then q is a tuple of series)."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the primitive is invalid."""


def _check_axis(axis: Any, where: str) -> None:
    checks.require(checks.among(axis, ("y", "z")), f"{where}: axis", "must be 'y' or 'z'", axis)


@final
@dataclass(frozen=True)
class PrimitiveStretch(Primitive):
    """Stretch along x by the factor 1 + m(s): x becomes x + ∫m dx. y and z are divided by √(1 + m), which keeps the
    volume.

    Args:
        modes: modes of m (dimensionless): polynomials of s, each a list of coefficients by ascending power, or a
            function of s.
    """

    modes: Modes

    def check(self, where: str) -> None:
        check_modes(self.modes, f"{where}: modes")

    def moved(self, x: Point, q: Any, length: float) -> Point:
        longer = length * mode_integral(self.modes, q, x[0] / length)
        narrower = jets.power(1.0 + mode_sum(self.modes, q, x[0] / length), -0.5)
        return x[0] + longer, narrower * x[1], narrower * x[2]


@final
@dataclass(frozen=True)
class PrimitiveBending(Primitive):
    """Bending about y or z with curvature m(s). The inner side of the bend becomes thicker.

    The axis rotates by the angle φ = ∫m dx and keeps its length. A distance y from the axis becomes w with (1 − m w)
    dw/dy = 1, which gives w = 2y/(1 + √(1 − 2 m y)).

    Args:
        modes: modes of m [1/m]: polynomials of s, each a list of coefficients by ascending power, or a function of s.
        axis: "y" or "z", the axis about which a positive curvature rotates the tip.
    """

    modes: Modes
    axis: str = "z"

    def check(self, where: str) -> None:
        check_modes(self.modes, f"{where}: modes")
        _check_axis(self.axis, where)

    def moved(self, x: Point, q: Any, length: float) -> Point:
        sign, across, beside = (1.0, x[1], x[2]) if self.axis == "z" else (-1.0, x[2], x[1])

        def axis(q: Any, x: Any) -> tuple[Any, Any]:
            return jets.cos_sin(sign * length * mode_integral(self.modes, q, x / length))

        along, beyond, c, s = jets.antiderivatives(axis, q, x[0])
        w = across * jets.thickening(sign * mode_sum(self.modes, q, x[0] / length) * across)
        first, second = along - w * s, beyond + w * c
        return (first, second, beside) if self.axis == "z" else (first, beside, second)


@final
@dataclass(frozen=True)
class PrimitiveTwist(Primitive):
    """Twist about x by the angle m(s).

    Args:
        modes: modes of m [rad]: polynomials of s, each a list of coefficients by ascending power, or a function of s.
    """

    modes: Modes

    def check(self, where: str) -> None:
        check_modes(self.modes, f"{where}: modes")

    def moved(self, x: Point, q: Any, length: float) -> Point:
        angle = mode_sum(self.modes, q, x[0] / length)
        c, s = jets.cos_sin(angle)
        return x[0], c * x[1] - s * x[2], s * x[1] + c * x[2]


@final
@dataclass(frozen=True)
class PrimitiveShear(Primitive):
    """Shear: sections slide along y or z by m(s).

    Args:
        modes: modes of m [m]: polynomials of s, each a list of coefficients by ascending power, or a function of s.
        axis: "y" or "z", the direction in which sections slide.
    """

    modes: Modes
    axis: str = "y"

    def check(self, where: str) -> None:
        check_modes(self.modes, f"{where}: modes")
        _check_axis(self.axis, where)

    def moved(self, x: Point, q: Any, length: float) -> Point:
        slid = mode_sum(self.modes, q, x[0] / length)
        return (x[0], x[1] + slid, x[2]) if self.axis == "y" else (x[0], x[1], x[2] + slid)


@final
@dataclass(frozen=True)
class PrimitiveSource(Primitive):
    """Growth around the x axis, as around a cavity: the square of each distance to the axis increases by m(s).

    Args:
        modes: modes of m [m²]: polynomials of s, each a list of coefficients by ascending power, or a function of s.
    """

    modes: Modes

    def check(self, where: str) -> None:
        check_modes(self.modes, f"{where}: modes")

    def moved(self, x: Point, q: Any, length: float) -> Point:
        away = jets.positive_or_one(x[1] * x[1] + x[2] * x[2])  # the axis itself stays
        growth = jets.power(1.0 + mode_sum(self.modes, q, x[0] / length) / away, 0.5)
        return x[0], growth * x[1], growth * x[2]


@final
@dataclass(frozen=True)
class KinematicsVolumePreserving(ComposedKinematics):
    """Composition of primitives, f = h_P(… h_2(h_1(x))).

    The coordinates are those of the first primitive, then those of the second, and so on.

    Args:
        length: length of the body along x [m]; s = x/length.
        primitives: list of primitives; the first is applied first.
    """

    length: float
    primitives: Sequence[Primitive]

    @cached_property
    def n(self) -> int:
        return sum(mode_count(primitive.modes) for primitive in self.primitives)

    @property
    def keeps_volume(self) -> bool:
        return True

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        known = isinstance(self.primitives, Sequence) and len(self.primitives) > 0
        checks.require(known, f"{where}: primitives", "must be a list of at least one Primitive", self.primitives)
        for k, primitive in enumerate(self.primitives):
            part = f"{where} > primitives[{k}]"
            checks.require(isinstance(primitive, Primitive), part, "must be a Primitive", primitive)
            primitive.check(part)

    def enriched(
        self, domain: Domain, material: Hyperelastic, density: float | Callable[[np.ndarray], float]
    ) -> Enriched | None:
        if not all(is_dataclass(primitive) for primitive in self.primitives):
            return None
        given: list[Any] = list(self.primitives)
        more = [replace(primitive, modes=further_modes(primitive.modes)) for primitive in given]
        motion, own, first = KinematicsVolumePreserving(self.length, more), [], 0
        for count, of_both in zip(self._counts(), motion._counts()):
            own.append(first + np.arange(count))
            first += of_both
        return Enriched(motion, np.concatenate(own), "give the primitives of link {!r} more modes")

    def map(self, x: Any, q: Any) -> Any:
        import jax.numpy as jnp

        return jnp.stack(self._moved((x[0], x[1], x[2]), q))

    def positions(self, points: Any, q: Any) -> Any:
        import jax.numpy as jnp

        return jnp.stack(self._moved(self._rows(points), q), axis=-1)

    def deformations(self, points: Any, q: Any) -> Any:
        """∂f/∂x at points, (N, 3, 3), for all points in one call."""
        import jax
        import jax.numpy as jnp

        rows = self._rows(points)

        def along(direction: Any) -> Any:
            shifts = tuple(jnp.broadcast_to(part, row.shape) for part, row in zip(direction, rows))
            return jnp.stack(jax.jvp(lambda *x: self._moved(x, q), rows, shifts)[1])

        return jax.vmap(along)(jnp.eye(3)).transpose(2, 1, 0)

    def jets(self, points: Any, q: Any) -> list[Jet]:
        return jets.jets(self._motions(), points, q)

    def first_from(self, parts: list[Jet], points: Any, v: Any) -> FirstDerivatives:
        return jets.first_of_composition(parts, self._counts(), points, v)

    def second_from(self, parts: list[Jet], points: Any, v: Any) -> SecondDerivatives:
        return jets.second_of_composition(parts, self._counts(), points, v)

    def _counts(self) -> list[int]:
        return [mode_count(primitive.modes) for primitive in self.primitives]

    def _motions(self) -> list[tuple[Motion, int]]:
        """The primitives as motions of series, each with the number of its coordinates."""

        def motion(primitive: Primitive) -> Motion:
            return lambda x, q: primitive.moved(x, q, self.length)

        return list(zip(map(motion, self.primitives), self._counts()))

    def _rows(self, points: Any) -> Point:
        import jax.numpy as jnp

        x, y, z = jnp.asarray(points, dtype=jnp.float64).T
        return x, y, z

    def _moved(self, x: Point, q: Any) -> Point:
        first = 0
        for primitive in self.primitives:
            after = first + mode_count(primitive.modes)
            x = primitive.moved(x, q[first:after], self.length)
            first = after
        return x
