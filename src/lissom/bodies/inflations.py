"""How cross-sections of a body grow: by factors that coordinates scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, final

from lissom.bodies import modes
from lissom.bodies.modes import Modes
from lissom.robot import checks


class Inflation(ABC):
    """Growth of cross-sections.

    Law: a point (y, z) of the section at s moves to (1 + Σ growth_k(s, y, z) θ_k) (y, z) in its section.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @property
    def breaks_around(self) -> tuple[float, ...]:
        """Angles in [0, 1), in turns from +y towards +z, where growth is not smooth, or as if it were not."""
        return ()

    @abstractmethod
    def growth(self, s: Any, y: Any, z: Any) -> Any:
        """The functions of the law at a point, shape (size,), made of jax.numpy."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""


@final
@dataclass(frozen=True)
class InflationUniform(Inflation):
    """Sections that grow as a whole.

    Args:
        modes: polynomials of s, each its coefficients by rising power, or a function of s that returns (k,) values.
    """

    modes: Modes

    @property
    def size(self) -> int:
        return modes.count(self.modes)

    def growth(self, s: Any, y: Any, z: Any) -> Any:
        return modes.values(self.modes, s)

    def check(self, where: str) -> None:
        modes.check_modes(self.modes, f"{where}: modes")


@final
@dataclass(frozen=True)
class InflationBumps(Inflation):
    """Bumps on the side of a body, as chambers in it make them; one coordinate each, the relative growth amid it.

        growth = B(2s − 1, a) B(2 (φ − φ_0)/w, b),   B(u, a) = exp(a − a/(1 − u²))

    and zero where |u| ≥ 1, smooth everywhere. Pustina 2025, simulation 4, has two of half a turn with 4/length (in
    metres) for a and 4/π² for b, and without the factor that makes them 1 in the middle.

    Args:
        angles: φ_0, where the bumps are, from +y towards +z [rad].
        width: w, of each round the body [rad].
        sharpness_along, sharpness_around: a and b, how steeply they rise in the middle, ratios.
    """

    angles: Sequence[float] = (pi / 2, -pi / 2)
    width: float = pi
    sharpness_along: float = 1.0
    sharpness_around: float = 4.0 / pi**2

    @property
    def size(self) -> int:
        return len(self.angles)

    @property
    def breaks_around(self) -> tuple[float, ...]:
        """Where bumps begin and end."""
        edges = [(angle + side * 0.5 * self.width) / (2 * pi) % 1.0 for angle in self.angles for side in (-1, 1)]
        edges = sorted(edge for k, edge in enumerate(edges) if all(_apart(edge, other) > 1e-9 for other in edges[:k]))
        return tuple(edges)

    def check(self, where: str) -> None:
        angles = checks.array(self.angles, (-1,), f"{where}: angles", "must be a list of finite numbers")
        checks.require(len(angles) > 0, f"{where}: angles", "must hold at least one", self.angles)
        width = checks.number(self.width, f"{where}: width", above=0.0)
        checks.require(width <= 2 * pi, f"{where}: width", "must be at most a turn, 2π", self.width)
        for name in ("sharpness_along", "sharpness_around"):
            checks.number(getattr(self, name), f"{where}: {name}", above=0.0)

    def growth(self, s: Any, y: Any, z: Any) -> Any:
        import jax.numpy as jnp

        axis = y * y + z * z == 0.0  # where no angle exists, and nothing grows
        y = jnp.where(axis, 1.0, y)
        along = _bump(2.0 * s - 1.0, self.sharpness_along)
        cosine, sine = jnp.cos(jnp.asarray(self.angles)), jnp.sin(jnp.asarray(self.angles))
        away = jnp.arctan2(z * cosine - y * sine, y * cosine + z * sine)
        return along * _bump(2.0 * away / self.width, self.sharpness_around)


def _apart(a: float, b: float) -> float:
    """Of two angles in turns."""
    return abs((a - b + 0.5) % 1.0 - 0.5)


def _bump(u: Any, sharpness: float) -> Any:
    """exp(a − a/(1 − u²)), and zero from where it cannot be told from zero."""
    import jax.numpy as jnp

    t = 1.0 - u * u
    inside = t > sharpness / 700.0
    return jnp.where(inside, jnp.exp(sharpness - sharpness / jnp.where(inside, t, 1.0)), 0.0)
