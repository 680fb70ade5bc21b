"""Linear elastic, linearly viscous material of a rod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from lissom.robot import checks
from lissom.robot.catalogue import named_values


@final
@dataclass(frozen=True, kw_only=True)
class Material:
    """Isotropic material.

    Args:
        young: Young's modulus E [Pa].
        poisson: Poisson's ratio ν in (-1, 0.5]; the shear modulus is G = E / 2(1 + ν).
        density: ρ [kg/m³].
        viscosity: η [Pa·s]; section damping η diag(Jx, 3Jy, 3Jz, 3A, A, A) (SoRoSim 2022, eq. (22)).
        damping_time: μ [s]; section damping μΣ (Kelvin-Voigt, Boyer 2023). Adds to `viscosity`.
    """

    young: float
    density: float
    poisson: float = 0.5
    viscosity: float = 0.0
    damping_time: float = 0.0

    @classmethod
    def named(
        cls,
        name: str,
        *,
        young: float | None = None,
        density: float | None = None,
        poisson: float | None = None,
        viscosity: float | None = None,
        damping_time: float | None = None,
    ) -> Material:
        """A material of the catalogue, such as "Ecoflex 00-30". Properties that it does not say, such as viscosity, or
        that are to be others, are given beside its name. See `catalogue`.

        Raises:
            ModelError: there is none of this name; the nearest ones.
        """
        given = {"young": young, "density": density, "poisson": poisson, "viscosity": viscosity,
                 "damping_time": damping_time}  # fmt: skip
        return cls(**(named_values(cls.__name__, name) | {key: x for key, x in given.items() if x is not None}))

    @property
    def shear(self) -> float:
        """Shear modulus G [Pa]."""
        return self.young / (2.0 * (1.0 + self.poisson))

    def check(self, where: str) -> None:
        """Raise ModelError where a property breaks its rule."""
        checks.number(self.young, f"{where}: young", above=0.0)
        checks.number(self.density, f"{where}: density", above=0.0)
        poisson = checks.number(self.poisson, f"{where}: poisson")
        checks.require(-1.0 < poisson <= 0.5, f"{where}: poisson", "must lie in (-1, 0.5]", self.poisson)
        checks.number(self.viscosity, f"{where}: viscosity", least=0.0)
        checks.number(self.damping_time, f"{where}: damping_time", least=0.0)
