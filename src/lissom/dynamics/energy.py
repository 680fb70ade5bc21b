"""Energies, momentum and centre of mass of a robot, by sums over its nodes.

    h = Σ Ad_g⁻ᵀ M η,  moved from the base frame's origin o to the world's: (L + o × p; p)                 (1)
    m c = Σ R m_k c_k + m_k (p_k + o)                                                                     (2)

The sums run over all nodes; the base frame is that of traversal.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.errors import ModelError
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import without_derivatives
from lissom.launch.over_models import over_models
from lissom.launch.workspace import filled_workspace
from lissom.lie import se3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes import kinds, traversal
from lissom.passes.scratch import ScratchStruct
from lissom.passes.traversal import origin_of, place_bases
from lissom.robot import formatting
from lissom.systems.mass import armature_energy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Rows = wp.array2d(dtype=wp.float64)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Energy:
    """Energies [J], each of the batch's shape (...).

    Fields:
        kinetic. gravitational: zero for masses at the world's origin. elastic: of rods, joint springs,
        elastic couplings and springs between points, without contacts.
    """

    kinetic: np.ndarray
    gravitational: np.ndarray
    elastic: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Sum of the three [J]."""
        return self.kinetic + self.gravitational + self.elastic


@without_derivatives
def energy_kernel(act: Acting) -> Any:
    """Kernel of the energies, the momentum and the first moment of mass."""
    elastic_energy = act.energy

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def energies(
        t: TablesStruct, s: ScratchStruct, q: Rows, v: Rows, gravity: wp.array(dtype=vec3), out: Rows, first: int
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        kinetic = armature_energy(t, i, v)
        angular = vec3()
        linear = vec3()
        gravitational = wp.float64(0.0)
        first_moment = vec3()
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            if t.node[k].has_inertia:
                R = s.node[i, k].R
                p = s.node[i, k].p
                h_B, T = kinds.momentum(t, s, i, k, v)
                kinetic += T
                h = se3.Ad_dual(R, p, h_B)
                o = origin_of(t, s, i, k)
                angular += se3.angular(h) + wp.cross(o, se3.linear(h))  # (1)
                linear += se3.linear(h)
                mass_c, heavy_c = kinds.first_moments(t, s, i, k)
                first_moment += R * mass_c + t.node[k].mass * (p + o)  # (2)
                gravitational -= wp.dot(gravity[0], R * heavy_c + t.node[k].heavy * (p + o))
        elastic = elastic_energy(t, s, i, q)
        out[i, 0] = kinetic
        out[i, 1] = gravitational
        out[i, 2] = elastic
        for c in range(3):
            out[i, 3 + c] = angular[c]
            out[i, 6 + c] = linear[c]
            out[i, 9 + c] = first_moment[c]
        traversal.inspect_result(s, i, out)

    return energies


def mass_sums(model: Model, batch: int) -> Buffers:
    """Buffers with the output "out" (12,): three energies, the momentum (1), the first moment of mass (2)."""
    w = Buffers(model, batch, {"q": (model.nq,), "v": (model.nv,)}, {"out": (12,)})
    gravity = w.gravity()
    w.record(energy_kernel, [w.tables, w.scratch, w.on_device["q"], w.on_device["v"], gravity, w.on_device["out"]])
    return w


@over_models("q", "v", batched=True)
def energy(model: Model, q: ArrayLike, v: ArrayLike) -> Energy:
    """Kinetic, gravitational and elastic energy.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        Energy of shape (...).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: SoRoSim 2022 eq. (44).
    """
    w, lead = filled_workspace(model, "energy", mass_sums, ("q", "v"), q, v)
    w.run()
    w.raise_for_status()
    kinetic, gravitational, elastic = np.moveaxis(w.result("out", lead, 12)[..., :3], -1, 0)
    return Energy(kinetic, gravitational, elastic)


@over_models("q", "v", batched=True)
def momentum(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Angular momentum about the world's origin and linear momentum of the whole robot, in the world's axes.

        (L; p) = Σ Ad_g⁻ᵀ M η,   d(L; p)/dt = Σ (x × F + C; F) over all external loads

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        Momentum, shape (..., 6), angular first [kg·m²/s, kg·m/s].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: O(nodes).
    Source: the sum of M η over the nodes, transformed to the world like a wrench.
    """
    w, lead = filled_workspace(model, "energy", mass_sums, ("q", "v"), q, v)
    w.run()
    w.raise_for_status()
    return w.result("out", lead, 12)[..., 3:9].copy()


@over_models("q", batched=True)
def center_of_mass(model: Model, q: ArrayLike) -> np.ndarray:
    """Centre of mass of the whole robot in the world.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        Position, shape (..., 3) [m].
    Raises:
        ModelError: the robot has no mass.
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: O(nodes).
    """
    w, lead = filled_workspace(model, "center_of_mass", mass_sums, ("q",), q)  # its own workspace: v stays zero there
    mass = np.atleast_1d(model.by_row(_mass, w.batch))
    w.run()
    w.raise_for_status()
    return w.result("out", lead, 12)[..., 9:] / (mass.reshape(*lead, 1) if len(mass) > 1 else mass)


def _mass(model: Model) -> float:
    mass = float(model.links.mass.sum())
    if not mass > 0.0:
        raise ModelError(f"robot {model.name!r}: a centre of mass needs a mass > 0 (got {mass!r})")
    return mass
