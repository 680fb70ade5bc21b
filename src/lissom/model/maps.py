"""Tables of mapped nodes and of deformable bodies.

A mapped node has a pose that is any function of its coordinates. A deformable body has integrals over its volume. If
the body is linear in its coordinates, kernels compute the integrals from constants. Otherwise kernels call native
functions, or Python computes the integrals before each launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from lissom.bodies.integrals import LinearCoefficients, ShapeIntegrals
from lissom.bodies.material_frames import MaterialFrame, PoseLine, point_numbers, pose_lines
from lissom.bodies.point_elasticity import PointElasticity
from lissom.errors import ModelError
from lissom.model.groups import Addresses, Floats, Ints, Matrices3, Vectors3, Vectors6Rows
from lissom.model.nodes import Flesh, Key, Node
from lissom.robot.poses import PoseFunction, PoseSpline

_ENTRY, _MOST_ENTRIES = 48, 2**28  # bytes of a derivative of a column, and the largest number of second derivatives
MOST_IN_KERNELS = 32  # largest number of coordinates of a body whose Green strains kernels evaluate


@final
@dataclass(frozen=True, eq=False)
class Maps:
    """The nodes of kind MAP."""

    node: np.ndarray
    q_start: np.ndarray  # first coordinate in q
    pose: tuple[PoseFunction | PoseSpline | MaterialFrame, ...]  # the pose function of each
    group: tuple[tuple[int, ...], ...]  # indices of the frames on each deformable body that one call of Python computes
    column_start: Ints  # start of the columns of each
    coordinate: Ints  # by column, the one of the coordinates of the node that moves it along the column
    pair_start: Ints  # start of the first derivatives of its columns; those that kernels compute have none
    triple_start: Ints  # start of the second derivatives
    is_linear: Ints  # whether it is a point at origin + Σ slope_j q_j that keeps the axes of its parent
    is_area: Ints  # whether it is such a point with the axes of b×d and b, b = e_y + Σ slope_b_j q_j and d likewise
    origin: Vectors3
    slope: Vectors3  # by column
    slope_b: Vectors3
    slope_d: Vectors3
    piece_start: Ints  # start of the pieces of its spline; a function has none
    knot: Floats  # start of each piece
    coefficient: Vectors6Rows  # of each power of the distance from the start of a piece (pieces, 6, 6)
    place_function: Addresses  # native function of R, p, S and S_q, and that of S_vv; 0 where there is none
    curve_function: Addresses
    point_start: Ints  # start of the numbers that the native functions of a material point take
    point: Floats

    def __len__(self) -> int:
        return len(self.node)

    @property
    def calls_python(self) -> bool:
        """Whether tables come from Python functions, which kernels cannot call."""
        return any(True for _ in self.called())

    def called(self) -> Iterator[int]:
        """Indices of the mapped nodes whose tables Python computes."""
        yield from (m for m, _ in self.functions())
        yield from self.called_frames()

    def called_frames(self) -> Iterator[int]:
        """Indices of the frames at material points whose tables Python computes."""
        return (m for group in self.group for m in group if self.place_function[m] == 0)

    def functions(self) -> Iterator[tuple[int, PoseFunction]]:
        """Index and pose of each mapped node with a user's function that is not native."""
        called = np.flatnonzero(self.place_function == 0).tolist()
        return (
            (m, pose) for m, pose in zip(called, map(self.pose.__getitem__, called)) if isinstance(pose, PoseFunction)
        )

    def on(self, device: str) -> Maps:
        """The same tables for a device. Native functions exist on the CPU only; Python computes them elsewhere."""
        native = _addresses(self.pose) * (device == "cpu")
        return replace(self, place_function=native[0], curve_function=native[1])


def map_tables(nodes: list[Node]) -> Maps:
    """The tables for the nodes of a model in their order."""
    found = [(k, node) for k, node in enumerate(nodes) if node.pose is not None]
    lines = _lines([node for _, node in found])
    sizes = np.array([len(line.coordinate) for line in lines], dtype=int)
    linear, area = (
        np.array([isinstance(node.pose, MaterialFrame) and getattr(node.pose, name) for _, node in found], dtype=bool)
        for name in ("is_linear", "is_area")
    )
    stored = np.where(linear | area, 0, sizes)  # columns whose derivatives are in tables
    _check_size(stored)
    pieces = [node.pose.pieces() for _, node in found if isinstance(node.pose, PoseSpline)]
    counts = iter([len(knot) for knot, _ in pieces])
    native, points = _addresses([node.pose for _, node in found]), point_numbers([node.pose for _, node in found])
    room = [next(counts) if isinstance(node.pose, PoseSpline) else 0 for _, node in found]
    return Maps(
        node=np.array([k for k, _ in found], dtype=np.int32),
        q_start=np.array([node.v_start + node.q_shift for _, node in found], dtype=np.int32),
        pose=tuple(node.pose for _, node in found if node.pose is not None),
        group=_frames_by_body([node for _, node in found]),
        column_start=starts(sizes),
        coordinate=np.concatenate([np.zeros(0), *(line.coordinate for line in lines)]).astype(np.int32),
        pair_start=starts(stored**2),
        triple_start=starts(stored**3),
        is_linear=linear.astype(np.int32),
        is_area=area.astype(np.int32),
        origin=np.array([line.origin for line in lines]).reshape(-1, 3),
        slope=np.concatenate([np.zeros((0, 3)), *(line.slopes[:, 0] for line in lines)]),
        slope_b=np.concatenate([np.zeros((0, 3)), *(line.slopes[:, 1] for line in lines)]),
        slope_d=np.concatenate([np.zeros((0, 3)), *(line.slopes[:, 2] for line in lines)]),
        piece_start=starts(np.array(room, dtype=int)),
        knot=np.concatenate([np.zeros(0), *(knot for knot, _ in pieces)]),
        coefficient=np.concatenate([np.zeros((0, 6, 6)), *(c for _, c in pieces)]),
        place_function=native[0],
        curve_function=native[1],
        point_start=starts(np.array([len(numbers) for numbers in points], dtype=int)),
        point=np.concatenate([np.zeros(0), *points]),
    )


def _check_size(stored: np.ndarray) -> None:
    """Raise ModelError if poses with these numbers of columns need larger tables than kernels can number."""
    entries = float((stored.astype(float) ** 3).sum())
    if entries > _MOST_ENTRIES:
        raise ModelError(
            f"{len(stored)} places on bodies of up to {stored.max()} coordinates, such as contact balls, would need "
            f"{_ENTRY * entries / 1e9:.3g} GB, and may need {_ENTRY * _MOST_ENTRIES / 1e9:.3g}; give fewer balls or "
            "coordinates, or finite elements, whose places depend on few coordinates"
        )


def _addresses(poses: Iterable[Any]) -> np.ndarray:
    """Addresses of the two native functions of poses, shape (2, m); zeros for those that have none."""
    native = [None if isinstance(pose, PoseSpline) else pose.native for pose in poses]
    rows = [(0, 0) if functions is None else functions.cell for functions in native]
    return np.array(rows, dtype=np.uint64).reshape(-1, 2).T.copy()


def _lines(nodes: list[Node]) -> list[PoseLine]:
    """The poses of nodes that kernels compute from lines; for others all coordinates, with zeros."""
    known = pose_lines([node.pose for node in nodes])
    out = []
    for node, line in zip(nodes, known):
        n = node.Phi1.shape[1]
        out.append(PoseLine(np.zeros(3), np.arange(n), np.zeros((n, 3, 3))) if line is None else line)
    return out


def _frames_by_body(nodes: list[Node]) -> tuple[tuple[int, ...], ...]:
    """Indices of the frames at material points that kernels do not compute from lines, grouped by body and first
    coordinate. One call of Python computes a group."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for m, node in enumerate(nodes):
        if isinstance(node.pose, MaterialFrame) and not (node.pose.is_linear or node.pose.is_area):
            groups.setdefault((id(node.pose.family), node.v_start), []).append(m)
    return tuple(map(tuple, groups.values()))


def starts(sizes: np.ndarray) -> np.ndarray:
    """Start of each of consecutive ranges of the given sizes, then the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


@final
@dataclass(frozen=True, eq=False)
class Stretched:
    """Elasticity of a body of Green strains: the matrix 𝒦 of U = ½ εᵀ𝒦ε, and the damping time [s].

    ε holds the coordinates θ_j, then all pairs in the order of np.triu_indices: θ_jθ_k for j < k, ½ θ_j² for j = k.
    """

    stiffness: np.ndarray
    damping_time: float


@final
@dataclass(frozen=True, eq=False)
class Deforming:
    """The deformable bodies, in the order of the nodes of kind BODY."""

    node: Ints
    q_start: np.ndarray  # first coordinate in q
    integrals: tuple[ShapeIntegrals, ...]
    stretched: tuple[Stretched | None, ...]  # elasticity of Green strains that kernels evaluate; None for other bodies
    pointwise: tuple[PointElasticity | None, ...]  # elasticity by native code, on the CPU; None for other bodies
    place: tuple[dict[Key, int], ...]  # nodes at places on each, by key
    column_start: Ints  # start of the entries of each body by coordinate
    pair_start: Ints  # and by pair of coordinates
    is_linear: Ints  # whether kernels compute the integrals from the constants below, which are zero otherwise
    mass: Floats
    c_0: Vectors3  # ∫ρx
    P_0: Matrices3  # ∫ρ x xᵀ
    c_j: Vectors3  # ∫ρ φ_j
    P0_j: Matrices3  # ∫ρ x φ_jᵀ
    Q: Matrices3  # ∫ρ φ_j φ_kᵀ by pair
    Q_cross: Vectors3  # ∫ρ φ_j×φ_k by pair
    Q_dot: Floats  # ∫ρ φ_j·φ_k by pair
    pair_row_start: Ints  # start of the rows of each body in `pair_rows`
    pair_rows: Floats  # the same constants in the order of function `pair_rows`, in which sums of rows are fast
    values_function: Addresses  # native functions of the integrals and of their derivatives; 0 where there are none
    derivatives_function: Addresses
    points_start: Ints  # start of the table of each body for its native functions
    points: Floats

    def __len__(self) -> int:
        return len(self.node)

    @property
    def calls_python(self) -> bool:
        """Whether integrals come from Python functions, which kernels cannot call."""
        return bool(np.any((self.is_linear == 0) & (self.values_function == 0)))

    def on(self, device: str) -> Deforming:
        """The same tables for a device. Native functions exist on the CPU only; Python computes them elsewhere."""
        by_points = np.array([part is not None for part in self.pointwise], dtype=bool)
        is_linear = np.where(by_points, device == "cpu", self.is_linear).astype(np.int32)
        there = (is_linear == 0) & (device == "cpu")
        native, points, points_start = _native_functions(self.integrals, there.tolist())
        return replace(
            self,
            is_linear=is_linear,
            values_function=native[0],
            derivatives_function=native[1],
            points=points,
            points_start=points_start,
        )


def _native_functions(
    bodies: Iterable[ShapeIntegrals], wanted: Iterable[bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Addresses of the two native functions of those bodies that are `wanted`, shape (2, m), zeros for others; and
    their tables of points in one, with the start of each."""
    native = [body.native if is_wanted else None for body, is_wanted in zip(bodies, wanted)]
    rows = [(0, 0) if known is None else known.functions.cell for known in native]
    tables = [np.zeros(0) if known is None else known.table for known in native]
    address = np.array(rows, dtype=np.uint64).reshape(-1, 2).T.copy()
    return (
        address,
        np.concatenate([np.zeros(0), *tables]),
        starts(np.array([len(table) for table in tables], dtype=int)),
    )


def deforming_tables(nodes: list[Node]) -> Deforming:
    """The tables for the nodes of a model in their order."""
    found = [(k, node, node.flesh) for k, node in enumerate(nodes) if node.flesh is not None]
    sizes = np.array([node.Phi1.shape[1] for _, node, _ in found], dtype=int)
    constants = [_constants(flesh.coefficients, flesh.integrals, n) for (_, _, flesh), n in zip(found, sizes.tolist())]
    Q = np.concatenate([np.zeros((0, 3, 3)), *(c.Q_jk.reshape(-1, 3, 3) for c in constants)])
    rows = [pair_rows(c) for c in constants]
    native, points, points_start = _native_functions(
        [flesh.integrals for _, _, flesh in found], [flesh.coefficients is None for _, _, flesh in found]
    )
    return Deforming(
        node=np.array([k for k, _, _ in found], dtype=np.int32),
        q_start=np.array([node.v_start + node.q_shift for _, node, _ in found], dtype=np.int32),
        integrals=tuple(flesh.integrals for _, _, flesh in found),
        stretched=tuple(_stretched(flesh) for _, _, flesh in found),
        pointwise=tuple(flesh.pointwise for _, _, flesh in found),
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
        values_function=native[0],
        derivatives_function=native[1],
        points_start=points_start,
        points=points,
    )


def pair_rows(known: LinearCoefficients) -> np.ndarray:
    """The integrals of a linear body, arranged for vector instructions: in groups of eight coordinates j, the last one
    padded with zeros. Each number of a group stands eight times in a row, once for each j.

    The numbers are ∫ρ φ_j by axis, then for ∫ρ x φ_jᵀ and for ∫ρ φ_k φ_jᵀ of all k the symmetric part (xx, yy, zz, xy,
    xz, yz) and the cross product.
    """
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
    if flesh.pointwise is not None or known is None or known.K2 is None or known.K3 is None or known.K4 is None:
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
