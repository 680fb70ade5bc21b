"""Tables of deformable bodies: the constants that their integrals are made of, or what gives these before a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.bodies.integrals import LinearCoefficients, ShapeIntegrals
from lissom.model.fields import Floats, Ints, Matrices3, Vectors3
from lissom.model.maps import starts
from lissom.model.nodes import Flesh, Key, Node

MOST_IN_KERNELS = 32  # coordinates of a body whose Green strains kernels know


@final
@dataclass(frozen=True, eq=False)
class Stretched:
    """𝒦 of U = ½ εᵀ𝒦ε, ε being the coordinates θ_j, then of all pairs θ_jθ_k with j < k and ½ θ_j² with j = k, in the
    order of np.triu_indices; and the damping time."""

    stiffness: np.ndarray
    damping_time: float


@final
@dataclass(frozen=True, eq=False)
class Deforming:
    """The deformable bodies, in the order of the nodes of kind BODY."""

    node: np.ndarray
    q_start: np.ndarray  # first coordinate in q
    integrals: tuple[ShapeIntegrals, ...]
    stretched: tuple[Stretched | None, ...]  # what kernels make elastic forces of that are not linear
    place: tuple[dict[Key, int], ...]  # nodes at places on each, by key
    column_start: Ints  # where what belongs to each coordinate starts
    pair_start: Ints  # and to each pair
    is_linear: Ints  # whether kernels make the integrals of the constants below; zeros where not
    mass: Floats
    c_0: Vectors3  # ∫ρx
    P_0: Matrices3  # ∫ρ x xᵀ
    c_j: Vectors3  # ∫ρ φ_j
    P0_j: Matrices3  # ∫ρ x φ_jᵀ
    Q: Matrices3  # ∫ρ φ_j φ_kᵀ by pair
    Q_cross: Vectors3  # ∫ρ φ_j×φ_k by pair
    Q_dot: Floats  # ∫ρ φ_j·φ_k by pair
    pair_row_start: Ints  # where what is left starts by body
    pair_rows: Floats  # the same once more, as sums of rows are fast

    def __len__(self) -> int:
        return len(self.node)

    @property
    def calls_python(self) -> bool:
        """Whether integrals come from Python functions, which kernels cannot call."""
        return not bool(np.all(self.is_linear))


def deforming_tables(nodes: list[Node]) -> Deforming:
    """The tables for the nodes of a model in their order."""
    found = [(k, node, node.flesh) for k, node in enumerate(nodes) if node.flesh is not None]
    sizes = np.array([node.Phi1.shape[1] for _, node, _ in found], dtype=int)
    constants = [_constants(flesh.coefficients, flesh.integrals, n) for (_, _, flesh), n in zip(found, sizes.tolist())]
    Q = np.concatenate([np.zeros((0, 3, 3)), *(c.Q_jk.reshape(-1, 3, 3) for c in constants)])
    rows = [pair_rows(c) for c in constants]
    return Deforming(
        node=np.array([k for k, _, _ in found], dtype=np.int32),
        q_start=np.array([node.v_start + node.q_shift for _, node, _ in found], dtype=np.int32),
        integrals=tuple(flesh.integrals for _, _, flesh in found),
        stretched=tuple(_stretched(flesh) for _, _, flesh in found),
        place=tuple({key: leaf.index for key, leaf in flesh.places.items()} for _, _, flesh in found),
        column_start=starts(sizes),
        pair_start=starts(sizes**2),
        is_linear=np.array([flesh.coefficients is not None for _, _, flesh in found], dtype=np.int32),
        mass=np.array([c.mass for c in constants], dtype=np.float64),
        c_0=np.array([c.c_0 for c in constants]).reshape(-1, 3),
        P_0=np.array([c.P_0 for c in constants]).reshape(-1, 3, 3),
        c_j=np.concatenate([np.zeros((0, 3)), *(c.c_j for c in constants)]),
        P0_j=np.concatenate([np.zeros((0, 3, 3)), *(c.P0_j for c in constants)]),
        Q=Q,
        Q_cross=np.stack([Q[:, 1, 2] - Q[:, 2, 1], Q[:, 2, 0] - Q[:, 0, 2], Q[:, 0, 1] - Q[:, 1, 0]], axis=-1),
        Q_dot=np.trace(Q, axis1=1, axis2=2),
        pair_row_start=starts(np.array([part.size for part in rows], dtype=int))[:-1],
        pair_rows=np.concatenate([np.zeros(0), *rows]),
    )


def pair_rows(known: LinearCoefficients) -> np.ndarray:
    """Of each eight coordinates ∫ρ φ_j by axis, then of x φ_jᵀ and of φ_k φ_jᵀ of all k the parts that are symmetric
    (xx, yy, zz, xy, xz, yz) and the cross product: each number for the eight one after the other, zeros behind the
    last."""
    X = np.concatenate([known.P0_j[None], known.Q_jk])
    along, first, second = [0, 1, 2, 0, 0, 1], [1, 2, 0], [2, 0, 1]
    turned = X[..., first, second] - X[..., second, first]
    parts = np.concatenate([0.5 * (X + np.swapaxes(X, 2, 3))[..., along, [0, 1, 2, 1, 2, 2]], turned], axis=2)
    n = len(known.c_j)
    rows = np.concatenate([known.c_j, parts.transpose(1, 0, 2).reshape(n, -1)], axis=1)
    whole = np.zeros((-(-n // 8) * 8, rows.shape[1]))
    whole[:n] = rows
    return whole.reshape(-1, 8, rows.shape[1]).swapaxes(1, 2).ravel()


def _stretched(flesh: Flesh) -> Stretched | None:
    known = flesh.coefficients
    if known is None or known.K2 is None or known.K3 is None or known.K4 is None:
        return None
    n = len(known.K3)
    j, k = np.triu_indices(n)
    linear, pairs = known.K3[:, j, k], known.K4[j, k][:, j, k]
    stiffness = np.block([[known.K2, linear], [linear.T, pairs]])
    return Stretched(stiffness, flesh.integrals.material.damping_time)


def _constants(known: LinearCoefficients | None, integrals: ShapeIntegrals, n: int) -> LinearCoefficients:
    if known is not None:
        return known
    by_coordinate, none = np.zeros((n, 3)), np.zeros((n, 3, 3))
    mass = float(integrals.masses.sum())
    first = by_coordinate, none, np.zeros((n, n, 3, 3))
    return LinearCoefficients(mass, np.zeros(3), np.zeros((3, 3)), *first, None, None, None)
