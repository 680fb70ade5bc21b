"""Materials of deformable bodies: an energy density as a function of the deformation gradient F, and Kelvin-Voigt
damping.

With the quadrature weights w_k, F_k = ∂f/∂x and the strain E, the elastic energy, its force and the damping force are

    U = Σ w W(F),   g_j = ∂U/∂θ_j,   d_j = η Σ w ∂E/∂θ_j : ℂ : Ė                                        (1)

ℂ is the elastic tangent ∂²W/∂E² in the undeformed shape, and η the `damping_time`. The viscous stress is η times the
elastic stress of a strain Ė, as with `Material(damping_time=)` for rods. E is Green's strain ½ (FᵀF − 1). Its rate, and
so d, is zero in every rigid motion. In every motion d·θ̇ = η Σ w Ė : ℂ : Ė ≥ 0.

Pustina 2025 has 2C div B for the elastic force of the incompressible neo-Hookean law, and ηC div Ḃ for the viscous
force. To first order the viscous force is η/2 times the elastic stress of the rate, so the η of Pustina is twice the
`damping_time` of the same material. For slender bodies the library of its authors takes η itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.poses import captured, compiled, failure, result_shape

_NO_STRESS = 1e-8  # largest stress of a user's law in the undeformed shape, relative to its moduli


class Hyperelastic(ABC):
    """A material with an elastic energy.

    Law: W(F) [J/m³] is zero, its minimum, if F is a rotation. It is written with jax.numpy for one F of shape (3, 3).
    """

    damping_time: float  # [s]
    needs_volume_kept: bool = False  # whether the law holds only for volume-preserving motions
    needs_rigid_sections: bool = False  # whether the law holds only for motions whose cross-sections keep their shape
    is_quadratic: bool = False  # whether W = ½ E : ℂ : E, a polynomial in θ for a linear kinematics
    is_linear: bool = False  # whether W is quadratic and E is linear in F

    @abstractmethod
    def energy_density(self, F: Any) -> Any:
        """W at a deformation gradient F, shape (3, 3) [J/m³]."""

    @abstractmethod
    def moduli(self) -> np.ndarray:
        """ℂ of (1), shape (9, 9) [Pa]. Strains are flattened row by row."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a constant of the material is invalid."""

    def strain(self, F: Any) -> Any:
        """The strain E of (1), shape (3, 3)."""
        import jax.numpy as jnp

        return 0.5 * (F.T @ F - jnp.eye(3))


class Constants(NamedTuple):
    """The constants of a law, without those that are zero. Laws of other numbers share compiled functions.

    Fields:
        law: the law with the number 1 in place of its constants and of its damping time.
        names: fields of the law with these constants.
        entries: for each entry of ηℂ, or of ℂ without damping, the index of its number; -1 for zero.
        numbers: the constants, then the numbers of ηℂ.
    """

    law: Hyperelastic
    names: tuple[str, ...]
    entries: np.ndarray
    numbers: np.ndarray

    def put(self, numbers: Any) -> tuple[Hyperelastic, Any]:
        """The law and ηℂ (9, 9) with traced numbers. The damping time of this law is 1, or 0 without damping."""
        import jax.numpy as jnp

        entries = jnp.where(self.entries < 0, 0.0, numbers[np.maximum(self.entries, 0)])
        return replace(self.law, **{name: numbers[k] for k, name in enumerate(self.names)}), entries  # type: ignore[type-var]


def constants_of(law: Hyperelastic) -> Constants:
    """The constants of a law."""
    is_damped = law.damping_time != 0.0
    known = {field.name: getattr(law, field.name) for field in fields(law)}  # type: ignore[arg-type]
    names = tuple(name for name, x in known.items() if type(x) in (int, float) and x != 0.0 and name != "damping_time")
    moduli = (law.damping_time if is_damped else 1.0) * law.moduli()
    own, entries = np.unique(moduli, return_inverse=True)
    place = np.where(own == 0.0, -1, len(names) + np.cumsum(own != 0.0) - 1)
    form = replace(law, **dict.fromkeys(names, 1.0), damping_time=float(is_damped))  # type: ignore[type-var]
    numbers = np.array([*(known[name] for name in names), *own[own != 0.0]], dtype=np.float64)
    return Constants(form, names, place[entries].reshape(9, 9), numbers)


def lame(young: float, poisson: float) -> tuple[float, float]:
    """Lamé's λ and μ [Pa]."""
    return young * poisson / ((1 + poisson) * (1 - 2 * poisson)), young / (2 * (1 + poisson))


def isotropic(first: float, shear: float) -> np.ndarray:
    """Isotropic moduli λ 1⊗1 + 2μ on symmetric matrices, shape (9, 9) [Pa]."""
    one, identity = np.eye(3).ravel(), np.eye(9).reshape(3, 3, 9)
    symmetric = 0.5 * (identity + identity.swapaxes(0, 1)).reshape(9, 9)
    return first * np.outer(one, one) + 2.0 * shear * symmetric


def _check_damping(damping_time: float, where: str) -> None:
    checks.number(damping_time, f"{where}: damping_time", least=0.0)


@final
@dataclass(frozen=True)
class HyperelasticNeoHookean(Hyperelastic):
    """Incompressible neo-Hookean law, W = C (I₁ − 3), for kinematics that keep the volume of every part.

    Args:
        C: half the shear modulus, which is one sixth of Young's modulus [Pa].
        damping_time: damping time of Kelvin-Voigt damping with the shear modulus [s]; half the η of Pustina 2025.
    """

    C: float
    damping_time: float = 0.0

    @property
    def needs_volume_kept(self) -> bool:
        return True

    def check(self, where: str) -> None:
        checks.number(self.C, f"{where}: C", above=0.0)
        _check_damping(self.damping_time, where)

    def energy_density(self, F: Any) -> Any:
        return self.C * ((F * F).sum() - 3.0)

    def moduli(self) -> np.ndarray:
        return isotropic(0.0, 2.0 * self.C)


@dataclass(frozen=True)
class _Isotropic(Hyperelastic):
    """A law with Young's modulus [Pa] and Poisson's ratio at small strain, and a Kelvin-Voigt damping time [s]."""

    young: float
    poisson: float
    damping_time: float = 0.0

    def check(self, where: str) -> None:
        checks.number(self.young, f"{where}: young", above=0.0)
        poisson = checks.number(self.poisson, f"{where}: poisson")
        fits, end = (poisson <= 0.5, "]") if self.needs_rigid_sections else (poisson < 0.5, ")")
        checks.require(poisson > -1.0 and fits, f"{where}: poisson", f"must lie in (-1, 0.5{end}", self.poisson)
        _check_damping(self.damping_time, where)

    def moduli(self) -> np.ndarray:
        return isotropic(*lame(self.young, self.poisson))

    @abstractmethod
    def energy_density(self, F: Any) -> Any: ...


@final
@dataclass(frozen=True)
class HyperelasticCompressibleNeoHookean(_Isotropic):
    """Compressible neo-Hookean law, W = μ/2 (I₁ − 3 − 2 ln J) + λ/2 (ln J)², J = det F, with Lamé's λ and μ.

    Args:
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, below 0.5.
        damping_time: damping time of Kelvin-Voigt damping [s].
    """

    def energy_density(self, F: Any) -> Any:
        import jax.numpy as jnp

        first, shear = lame(self.young, self.poisson)
        grown = jnp.log(determinant(F))
        return 0.5 * shear * ((F * F).sum() - 3.0 - 2.0 * grown) + 0.5 * first * grown**2


@final
@dataclass(frozen=True)
class HyperelasticSaintVenantKirchhoff(_Isotropic):
    """Law of Saint Venant and Kirchhoff, W = λ/2 (tr E)² + μ E : E, for large rotations and small strains.

    Args:
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, below 0.5.
        damping_time: damping time of Kelvin-Voigt damping [s].
    """

    @property
    def is_quadratic(self) -> bool:
        return True

    def energy_density(self, F: Any) -> Any:
        return _quadratic_energy(self, F)


@final
@dataclass(frozen=True)
class HyperelasticLinear(_Isotropic):
    """Linear elasticity, W = λ/2 (tr ε)² + μ ε : ε with ε the symmetric part of F − 1, for small displacements and
    rotations only.

    A rotation causes a (wrong) strain. The damping is linear too: it acts on ε̇.

    Args:
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, below 0.5.
        damping_time: damping time of Kelvin-Voigt damping [s].
    """

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def is_quadratic(self) -> bool:
        return True

    def energy_density(self, F: Any) -> Any:
        return _quadratic_energy(self, F)

    def strain(self, F: Any) -> Any:
        import jax.numpy as jnp

        return 0.5 * (F + F.T) - jnp.eye(3)


@final
@dataclass(frozen=True)
class HyperelasticUniaxial(_Isotropic):
    """Uniaxial stress along x, W = E E_xx²/2 + 2 G (E_xy² + E_xz²) with Green's strain, for rigid cross-sections.

    In a three-dimensional law, a section that cannot expand has lateral stresses that a slender body does not have.
    They increase the stiffness along x by the factor (1 − ν)/((1 + ν)(1 − 2ν)), which is 3.8 for ν = 0.45. This law has
    no lateral stresses, as in rods: E is Young's modulus, and G = E/(2(1 + ν)).

    Args:
        young: Young's modulus [Pa].
        poisson: Poisson's ratio, at most 0.5; used in the shear modulus only.
        damping_time: damping time of Kelvin-Voigt damping [s].
    """

    @property
    def needs_rigid_sections(self) -> bool:
        return True

    @property
    def is_quadratic(self) -> bool:
        return True

    def moduli(self) -> np.ndarray:
        C = np.zeros((3, 3, 3, 3))
        C[0, 0, 0, 0] = self.young
        for a, b in ((0, 1), (1, 0), (0, 2), (2, 0)):
            C[a, b, a, b] = C[a, b, b, a] = self.young / (2.0 * (1.0 + self.poisson))
        return C.reshape(9, 9)

    def energy_density(self, F: Any) -> Any:
        E = self.strain(F)
        shear = self.young / (1.0 + self.poisson)
        return 0.5 * self.young * E[0, 0] ** 2 + shear * (E[0, 1] ** 2 + E[0, 2] ** 2)


@final
@dataclass(frozen=True)
class HyperelasticFunction(Hyperelastic):
    """A user-defined energy density as a function of F, written with jax.numpy.

    Args:
        function: W(F) [J/m³] of F, shape (3, 3). W has no stress at F = 1, and does not change if F is multiplied by a
            rotation from the left.
        damping_time: damping time of Kelvin-Voigt damping with the tangent at F = 1 [s].
    """

    function: Callable[[Any], Any]
    damping_time: float = 0.0

    def check(self, where: str) -> None:
        import jax

        _check_damping(self.damping_time, where)
        try:
            W, stress, tangent = self._at_rest()
            if W.shape == ():
                result_shape(jax.grad(self.function), np.eye(3))
        except Exception as error:
            rule = "must be a function of F, shape (3, 3), made of jax.numpy"
            raise ModelError(f"{where}: function: {rule}; it {failure(error)}") from error
        finite = bool(np.isfinite(W).all() and np.isfinite(tangent).all())
        checks.require(finite, f"{where}: function", "must be finite with its derivatives at F = 1", W)
        checks.require(W.shape == (), f"{where}: function", "must return one number, got shape", W.shape)
        free = np.abs(stress).max() <= _NO_STRESS * np.abs(tangent).max()
        checks.require(bool(free), f"{where}: function", "must have no stress at F = 1", stress)
        least = np.linalg.eigvalsh(self.moduli()).min()
        firm = bool(least >= -_NO_STRESS * np.abs(tangent).max())
        checks.require(firm, f"{where}: function", "must have a tangent at F = 1 without negative moduli", least)

    def _at_rest(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W, ∂W/∂F and ∂²W/∂F² at F = 1."""
        return _at_rest(self.function, captured(self.function))

    def energy_density(self, F: Any) -> Any:
        return self.function(F)

    def moduli(self) -> np.ndarray:
        tangent = self._at_rest()[2].reshape(9, 9)
        symmetric = isotropic(0.0, 0.5)
        return symmetric @ tangent @ symmetric


@lru_cache(maxsize=64)
def _at_rest(law: Callable[[Any], Any], data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W, ∂W/∂F and ∂²W/∂F² at F = 1 of a function with the data that it reads; JAX compiles them for seconds."""
    import jax

    parts = compiled(lambda F: (law(F), jax.jacfwd(law)(F), jax.jacfwd(jax.jacfwd(law))(F)))(np.eye(3))
    W, stress, tangent = map(np.asarray, parts)
    return W, stress, tangent


def determinant(F: Any) -> Any:
    """Determinants of matrices (..., 3, 3), as polynomials: their derivatives are exact for singular matrices too."""
    a, b, c = (F[..., k, :] for k in range(3))
    return (
        a[..., 0] * (b[..., 1] * c[..., 2] - b[..., 2] * c[..., 1])
        - a[..., 1] * (b[..., 0] * c[..., 2] - b[..., 2] * c[..., 0])
        + a[..., 2] * (b[..., 0] * c[..., 1] - b[..., 1] * c[..., 0])
    )


def _quadratic_energy(law: _Isotropic, F: Any) -> Any:
    """W = λ/2 (tr E)² + μ E : E with the strain E of the law."""
    first, shear = lame(law.young, law.poisson)
    E = law.strain(F)
    return 0.5 * first * E.trace() ** 2 + shear * (E * E).sum()
