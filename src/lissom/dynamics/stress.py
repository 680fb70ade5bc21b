"""Stresses on the outline of a rod's section, from the wrench that its material carries.

A section under the tension N, bending moments M_y and M_z, torque T and shear forces V_y and V_z has at (y, z)

    σ = nᵀ I⁻¹ (M_y, M_z, N),   n = (z, −y, 1),   I = ∫ n nᵀ over the section                              (1)
    τ = T τ_T + V_y τ_y + V_z τ_z,   σ_v = √(σ² + 3 |τ|²)                                                 (2)

τ_T is that of Saint-Venant's torsion, τ_y and τ_z those of Jourawski's formula. The material is isotropic, linear and
the same all over the section, and its strains are small; displacements may be large.
Source: S. Timoshenko, J. N. Goodier, Theory of Elasticity, 1951, §§93–109, 115; R. von Mises, 1913.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.internal_wrench import internal_wrench
from lissom.errors import ModelError, ShapeError
from lissom.launch.over_models import stacked
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks, formatting
from lissom.robot.materials import Material
from lissom.robot.sections import SectionGeneral

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_STATE = ("q", "v", "u", "multipliers")  # of equilibria and trajectories
_UNIT = Material(young=1.0, density=1.0, poisson=0.0)  # whose inertia per length has the moments of area


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Stress:
    """Stresses at points of the outline of sections. Arrays begin with the axes (...) of the states, then n for several
    abscissae.

    Fields:
        points: points (y, z) on the outline in the axes of the section, shape (count, 2), or (n, count, 2) [m].
        axial: stress of the tension, shape (..., count) [Pa].
        bending: stress of the bending moments, shape (..., count) [Pa].
        shear: (τ_xy, τ_xz) of torque and shear forces, shape (..., count, 2) [Pa].
        von_mises: equivalent stress, shape (..., count) [Pa].
        strength: strength of the material [Pa], or None.
    """

    points: np.ndarray
    axial: np.ndarray
    bending: np.ndarray
    shear: np.ndarray
    von_mises: np.ndarray
    strength: float | None = None

    @property
    def normal(self) -> np.ndarray:
        """Normal stress, axial + bending, shape (..., count) [Pa]."""
        return self.axial + self.bending

    @property
    def largest(self) -> np.ndarray:
        """Largest equivalent stress on each outline, shape (...) [Pa]."""
        return self.von_mises.max(axis=-1)

    @property
    def safety_factor(self) -> np.ndarray:
        """Strength divided by `largest`, shape (...) [-]; infinite without stress.

        Raises:
            ModelError: no strength was given.
        """
        if self.strength is None:
            raise ModelError("safety_factor: needs a strength: stress(..., strength=) (got None)")
        with np.errstate(divide="ignore"):
            return self.strength / self.largest


def stress(
    model: Model | ModelBatch,
    state: Any,
    link: str,
    s: ArrayLike,
    *,
    strength: float | None = None,
    shear: bool = True,
    count: int = 48,
) -> Stress:
    """Stresses on the outline of a rod at s, in an equilibrium or along a motion.

    They follow from the material's part of `internal_wrench`: what tendons and chambers carry is left out.

    Args:
        state: an Equilibrium or a Trajectory of this model, or of this batch of models.
        link: name of a link whose body is a Rod.
        s: abscissa, a number or an array (n,), 0 at the base and 1 at the tip.
        strength: largest admissible equivalent stress, such as the yield strength [Pa]; for the safety factor.
        shear: True counts torque and shear forces, for circles, annuli, ellipses and rectangles. False leaves them out;
            polygons need it.
        count: number of points on the outline.
    Returns:
        Stress, with stresses [Pa].
    Raises:
        ModelError: no such rod, s outside [0, 1], a section without formulas, or a wrong strength or count.
        ShapeError: the state is not one of this model.
    Accuracy: (1) and the torsion are exact for a prismatic rod. Jourawski's formula gives the mean across the section.
        For a circle and a Poisson's ratio of 0.3 the largest stress of a shear force is 4 % larger.
    Source: Timoshenko and Goodier 1951.
    """
    checks.require(bool(model.models) or isinstance(model, Model), "model", "must be a Model or a ModelBatch", model)
    if strength is not None:
        checks.number(strength, "strength", above=0.0)
    checks.integer(count, "count", least=4)
    if not all(hasattr(state, name) for name in _STATE):
        raise ModelError(f"state: must be an Equilibrium or a Trajectory (got {type(state).__name__})")
    if isinstance(model, ModelBatch):
        return _of_models(model, state, {"link": link, "s": s, "strength": strength, "shear": shear, "count": count})
    W = internal_wrench(
        model, state.q, state.v, getattr(state, "a", None), state.u, link, s, t=state.t, multipliers=state.multipliers
    ).material
    body: Any = model.description.links[link].body
    section = body.section
    where, single = f"link {link!r} > body > section", np.ndim(s) == 0
    W = W[..., None, :] if single else W
    rows = [_on_outline(section, x, W[..., k, :], shear, count, where) for k, x in enumerate(np.atleast_1d(s).tolist())]
    points, axial, bending, across = (np.stack(x) for x in zip(*rows))
    axial, bending, across = (np.moveaxis(x, 0, at) for x, at in ((axial, -2), (bending, -2), (across, -3)))
    whole = np.sqrt((axial + bending) ** 2 + 3.0 * np.sum(across**2, axis=-1))  # (2)
    if single:
        points, across = points[0], across[..., 0, :, :]
        axial, bending, whole = (x[..., 0, :] for x in (axial, bending, whole))
    return Stress(points, axial, bending, across, whole, strength)


def _of_models(batch: ModelBatch, state: Any, given: dict[str, Any]) -> Stress:
    """The stresses of a batch of models, one model after another."""
    if state.q.ndim < 2 or len(state.q) != len(batch):
        raise ShapeError(f"state > q: expected one state of each model, shape ({len(batch)}, ...), got {state.q.shape}")
    found = []
    for k, model in enumerate(batch):
        rows = {name: getattr(state, name)[k] for name in (*_STATE, "a") if hasattr(state, name)}
        if "a" not in rows and np.ndim(state.t):  # an equilibrium of each model at its own time
            rows["t"] = state.t[k]
        with model.temporary_buffers():
            found.append(stress(model, replace(state, **rows), **given))
    return replace(stacked(batch, found), strength=given["strength"])


def _on_outline(
    section: Any, s: float, W: np.ndarray, shear: bool, count: int, where: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points (count, 2), axial and bending stresses (..., count) and shear stresses (..., count, 2) of wrenches."""
    shape = section.shape if isinstance(section, SectionGeneral) else section
    if shape is None:
        raise ModelError(f"{where}: must have a shape, over which stresses are distributed (got SectionGeneral)")
    points = shape.outline(s, count)
    moments = shape.constitution(s, _UNIT, where).inertia[1:4, 1:4]
    n = np.stack([points[:, 1], -points[:, 0], np.ones(len(points))], axis=1)
    axial = np.broadcast_to((W[..., 3] / moments[2, 2])[..., None], (*W.shape[:-1], len(points)))
    normal = W[..., 1:4] @ np.linalg.solve(moments, n.T)  # (1)
    if not shear:
        return points, axial, normal - axial, np.zeros((*W.shape[:-1], len(points), 2))
    unit = shape.shear_stresses(s, points, where)
    return points, axial, normal - axial, np.einsum("...k,kpi->...pi", W[..., [0, 4, 5]], np.array(list(unit)))
