"""Materials of rods, and a catalogue of materials and sections with their sources.

Data sheets of silicones give the nominal stress σ at which a sample is twice as long. An incompressible neo-Hookean bar
stretched by λ has

    σ = E/3 (λ − λ⁻²),   so that with λ = 2   E = 12/7 σ                                                   (1)

This E holds for the small strains of a rod. Batches of a silicone differ by 20 % or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, final

from lissom.errors import ModelError
from lissom.robot import checks

_PSI = 6894.757293168361  # Pa
_SMOOTH_ON = "Smooth-On, {} Series, Technical Bulletin: specific gravity {}; 100 % modulus {} psi, E by neo-Hooke"
_NITINOL = "Johnson Matthey, Nitinol Technical Properties: {}, Poisson's ratio 0.33, 6.45 g/cm³"
_GAUGES = (  # needles: outer and inner diameter [mm] from gauge 7 on
    (4.572, 3.810), (4.191, 3.429), (3.759, 2.997), (3.404, 2.692), (3.048, 2.388), (2.769, 2.159), (2.413, 1.803),
    (2.108, 1.600), (1.829, 1.372), (1.651, 1.194), (1.473, 1.067), (1.270, 0.838), (1.067, 0.686), (0.9081, 0.603),
    (0.8192, 0.514), (0.7176, 0.413), (0.6414, 0.337), (0.5652, 0.311), (0.5144, 0.260), (0.4636, 0.260),
    (0.4128, 0.210), (0.3620, 0.184), (0.3366, 0.184), (0.3112, 0.159), (0.2604, 0.133),
)  # fmt: skip


@final
@dataclass(frozen=True, kw_only=True)
class Material:
    """Isotropic material.

    Args:
        young: Young's modulus E [Pa].
        poisson: Poisson's ratio ν in (-1, 0.5]. The shear modulus is G = E / (2(1 + ν)).
        density: density ρ [kg/m³].
        viscosity: η [Pa·s]. The section damping is η diag(Jx, 3Jy, 3Jz, 3A, A, A) (SoRoSim 2022, eq. (22)).
        damping_time: μ [s]. The section damping μΣ (Kelvin-Voigt, Boyer 2023) is added to the one of `viscosity`; Σ is
            the section stiffness.
        friction: friction coefficient of its surface in contacts that give none; see Contact. None: not stated.
        restitution: coefficient of restitution e in (0, 1] of its impacts in contacts that give none. None: not
            stated.
    """

    young: float
    density: float
    poisson: float = 0.5
    viscosity: float = 0.0
    damping_time: float = 0.0
    friction: float | None = None
    restitution: float | None = None

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
        friction: float | None = None,
        restitution: float | None = None,
    ) -> Material:
        """A material of the catalogue, such as "Ecoflex 00-30". Other arguments replace its properties, or add
        properties that the catalogue does not hold, such as viscosity. See `catalogue` and Material.

        Raises:
            ModelError: the catalogue has no material of this name; the message lists similar names.
        """
        given = {"young": young, "density": density, "poisson": poisson, "viscosity": viscosity,
                 "damping_time": damping_time, "friction": friction, "restitution": restitution}  # fmt: skip
        return cls(**(named_values(cls.__name__, name) | {key: x for key, x in given.items() if x is not None}))

    @property
    def shear(self) -> float:
        """Shear modulus G [Pa]."""
        return self.young / (2.0 * (1.0 + self.poisson))

    def check(self, where: str) -> None:
        """Raise ModelError unless modulus and density are positive, Poisson's ratio lies in (-1, 0.5], and the other
        properties are valid."""
        checks.number(self.young, f"{where}: young", above=0.0)
        checks.number(self.density, f"{where}: density", above=0.0)
        poisson = checks.number(self.poisson, f"{where}: poisson")
        checks.require(-1.0 < poisson <= 0.5, f"{where}: poisson", "must lie in (-1, 0.5]", self.poisson)
        checks.number(self.viscosity, f"{where}: viscosity", least=0.0)
        checks.number(self.damping_time, f"{where}: damping_time", least=0.0)
        check_surface(self, where)


def check_surface(described: Any, where: str) -> None:
    """Raise ModelError unless the friction of a material or a contact is >= 0 and its restitution lies in (0, 1]."""
    if described.friction is not None:
        checks.number(described.friction, f"{where}: friction", least=0.0)
    if described.restitution is not None:
        e = checks.number(described.restitution, f"{where}: restitution", above=0.0)
        checks.require(e <= 1.0, f"{where}: restitution", "must be <= 1", described.restitution)


@final
@dataclass(frozen=True)
class CatalogueEntry:
    """An entry of the catalogue of materials and sections.

    Args:
        of: name of the class that has this entry, such as "Material".
        values: arguments of that class, in SI units.
        source: source of the values.
    """

    of: str
    values: Mapping[str, float]
    source: str


def _silicone(series: str, gravity: float, modulus: float) -> CatalogueEntry:
    values = {"young": 12.0 / 7.0 * modulus * _PSI, "density": 1000.0 * gravity, "poisson": 0.5}  # (1)
    return CatalogueEntry("Material", values, _SMOOTH_ON.format(series, gravity, f"{modulus:g}"))


def _solid(young: float, poisson: float, density: float, source: str) -> CatalogueEntry:
    return CatalogueEntry("Material", {"young": young, "poisson": poisson, "density": density}, source)


_ENTRIES = {
    "Ecoflex 00-10": _silicone("Ecoflex", 1.04, 8),
    "Ecoflex 00-20": _silicone("Ecoflex", 1.07, 8),
    "Ecoflex 00-30": _silicone("Ecoflex", 1.07, 10),
    "Ecoflex 00-50": _silicone("Ecoflex", 1.07, 12),
    "Dragon Skin 10": _silicone("Dragon Skin", 1.07, 22),
    "Dragon Skin 20": _silicone("Dragon Skin", 1.08, 49),
    "Dragon Skin 30": _silicone("Dragon Skin", 1.08, 86),
    "PLA": _solid(3.6e9, 0.36, 1240.0, "NatureWorks, Ingeo 4043D Technical Data Sheet: 3.6 GPa, 1.24 g/cm³; Poisson's "
                  "ratio: Farah, Anderson, Langer, Adv. Drug Deliv. Rev. 107, 2016"),
    "NiTi": _solid(83e9, 0.33, 6450.0, _NITINOL.format("austenite 83 GPa")),
    "NiTi martensite": _solid(34.5e9, 0.33, 6450.0, _NITINOL.format("martensite 28 to 41 GPa, of which the middle")),
    "steel": _solid(210e9, 0.3, 7850.0, "EN 1993-1-1, 3.2.6: 210 GPa, 0.3; EN 1991-1-1, table A.4: 78.5 kN/m³"),
    "stainless steel": _solid(200e9, 0.3, 7900.0, "EN 1993-1-4: 200 GPa, 0.3; EN 10088-1, 1.4301: 7.9 kg/dm³"),
    "aluminium": _solid(70e9, 0.3, 2700.0, "EN 1999-1-1, 3.2.5: 70 GPa, 0.3, 2700 kg/m³"),
}  # fmt: skip
_ENTRIES |= {
    f"AWG {n}": CatalogueEntry("SectionCircle", {"radius": 0.0635e-3 * 92.0 ** ((36 - n) / 39)},
                               "ASTM B258: wire of diameter 0.127 mm · 92^((36 − n)/39)") for n in range(41)
}  # fmt: skip
_ENTRIES |= {
    f"{n}G": CatalogueEntry("SectionAnnulus", {"outer": outer / 2e3, "inner": inner / 2e3},
                            "needles of regular wall, nominal: Wikipedia, Needle gauge comparison chart")
    for n, (outer, inner) in enumerate(_GAUGES, start=7)
}  # fmt: skip


def catalogue() -> dict[str, CatalogueEntry]:
    """Materials and sections by name, such as "Ecoflex 00-30", with their sources.

    Use a name in `Material.named`, `SectionCircle.named` or `SectionAnnulus.named`, or as `name` in robot files.

    Returns:
        CatalogueEntry by name. Lengths are in [m], moduli in [Pa].
    """
    return dict(_ENTRIES)


def named_values(of: str, name: object) -> dict[str, float]:
    """Arguments of a class from the catalogue.

    Raises:
        ModelError: the catalogue has no such name for this class; the message lists similar names.
    """
    known = {entry: values for entry, values in _ENTRIES.items() if values.of == of}
    lower = {entry.lower(): entry for entry in known}
    found = lower.get(str(name).strip().lower())
    if found is None:
        near = get_close_matches(str(name).lower(), lower, n=3, cutoff=0.4) or list(lower)[:8]
        words = ", ".join(repr(lower[word]) for word in near)
        raise ModelError(f"{of}: there is no {name!r} in the catalogue; the nearest are {words}")
    return dict(known[found].values)
