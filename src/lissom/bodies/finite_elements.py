"""Finite elements. The coordinates are displacements of the nodes of a mesh, or amplitudes of vibration modes.

Elements are tetrahedra with straight edges. λ are the barycentric coordinates of a point in its cell. The shape
functions of linear elements are the λ_i of the corners. Quadratic elements have a further node at the middle of each
edge, and the shape functions

    λ_i (2λ_i − 1) of the corners,   4 λ_i λ_j of the edges                                               (1)

With M the mass matrix and K the stiffness in the undeformed shape, the modes solve K φ = ω² M φ with φ_jᵀ M φ_k = δ_jk.

For large deflections the force of the material is K θ + ½ T θθ + …, with T the third derivatives of the energy. To
second order the body adds ½ Σ ψ_jk η_j η_k to θ = Σ φ_j η_j, with the static modal derivatives

    K ψ_jk = −T φ_j φ_k,   (T φ_j φ_k)_l = ∫ ∂³W/∂F³ : ∇φ_j : ∇φ_k : ∇N_l                                  (2)

Source of (2): Idelsohn and Cardona 1985, without the inertial terms.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies import cubature
from lissom.bodies.domains import Domain
from lissom.bodies.enrichment import Enriched
from lissom.bodies.evaluation import Samples, SamplesOfShapes, equal
from lissom.bodies.kinematics import Kinematics, area_axes
from lissom.bodies.materials import Hyperelastic
from lissom.bodies.meshes import EDGES, DomainTetrahedra
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import Numbers
from lissom.robot.poses import compiled

MOST_COORDINATES = 600
_INSIDE = -1e-9  # smallest barycentric coordinate of a point inside a cell
_OUTSIDE = -0.5  # and of a point outside that moves with the nearest cell (the mesh may cut off a curved surface)
_NEAR = 16  # number of cells with the nearest centres, in which the search for a point begins
_BLOCK = 1 << 21  # pairs of points and cells in one block of the search
_AT_END = 1e-6  # largest distance of a node of the base or tip from that end, in sizes of the mesh
_DENSE = 400  # largest number of coordinates for which dense algebra computes all modes
_RIGID = 1e-6  # largest ω² of a rigid mode, relative to ω² of the first elastic mode
_DEPENDENT = 1e-8  # smallest squared norm of the new part of a shape, relative to the whole shape
_EXTRA_MODES, _MODES_BESIDE_NODES = 8, 24  # modes of a finer mesh: more than the shapes of a reduction; for all nodes
_MODES_DERIVED = 4  # number of these modes that have modal derivatives
_MOST_FINE = 20_000  # largest number of coordinates of a finer mesh


class Located(NamedTuple):
    """For N points: the index of the cell (N,) that contains each, and the barycentric coordinates (N, 4) there."""

    cell: np.ndarray
    barycentric: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class TetrahedralElements:
    """The elements of a mesh.

    Args:
        mesh: the cells.
        degree: degree of the shape functions, 1 or 2.
    """

    mesh: DomainTetrahedra
    degree: int

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`vertices`, `cells` and `ends` of the elements."""
        cells = np.asarray(self.mesh.cells, dtype=np.int64)
        used, flat = np.unique(cells, return_inverse=True)
        cells = flat.reshape(cells.shape)
        corners = np.repeat(np.arange(len(used))[:, None], 2, axis=1)
        if self.degree == 1:
            return used, cells, corners
        ends, edge = np.unique(np.sort(cells[:, EDGES], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
        cells = np.concatenate([cells, len(used) + edge.reshape(len(cells), -1)], axis=1)
        return used, cells, np.concatenate([corners, ends])

    @property
    def vertices(self) -> np.ndarray:
        """Indices of the mesh vertices that are nodes. Node i is vertex vertices[i] of the mesh; any further nodes are
        the middles of edges."""
        return self._numbered[0]

    @property
    def cells(self) -> np.ndarray:
        """Indices of the nodes of each cell, shape (k, 4) or (k, 10)."""
        return self._numbered[1]

    @property
    def ends(self) -> np.ndarray:
        """For each node, the two nodes at the ends of its edge, shape (m, 2). For a corner node both are the node
        itself."""
        return self._numbered[2]

    @cached_property
    def nodes(self) -> np.ndarray:
        """Positions of the nodes, shape (m, 3) [m]."""
        corners = self.mesh.positions[self.vertices]
        return 0.5 * (corners[self.ends[:, 0]] + corners[self.ends[:, 1]])

    @cached_property
    def slopes(self) -> np.ndarray:
        """Gradient ∂λ/∂x in each cell, shape (k, 4, 3) [1/m]."""
        inner = np.linalg.inv((self.mesh.corners[:, 1:] - self.mesh.corners[:, :1]).swapaxes(1, 2))
        return np.concatenate([-inner.sum(axis=1, keepdims=True), inner], axis=1)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Barycentric coordinates λ of the origin x = 0 in each cell, shape (k, 4)."""
        return np.array([1.0, 0.0, 0.0, 0.0]) - np.einsum("kba,ka->kb", self.slopes, self.mesh.corners[:, 0])

    def quadrature(self, degree: int) -> tuple[Located, np.ndarray]:
        """Points and weights [m³], cell by cell, exact in each cell for polynomials of the given degree."""
        barycentric, weights = cubature.tetrahedron(degree)
        count = len(self.cells)
        located = Located(np.repeat(np.arange(count), len(weights)), np.tile(barycentric, (count, 1)))
        return located, np.outer(self.mesh.volumes, weights).ravel()

    def locate(self, points: np.ndarray) -> Located:
        """Cells and barycentric coordinates of points (N, 3). No search is needed for the quadrature points of the
        mesh.

        Raises:
            ModelError: a point lies far outside the mesh.
        """
        if self.mesh.compress is None and np.array_equal(points, self.mesh.points):
            return self.quadrature(self.mesh.degree)[0]
        cell, least = self._nearest(points)
        for k in np.flatnonzero(~(least > _OUTSIDE))[:1]:
            raise ModelError(f"finite elements: points must lie in the mesh (got {points[k].tolist()})")
        return Located(cell, np.einsum("kba,ka->kb", self.slopes[cell], points) + self.offsets[cell])

    def around(self, point: np.ndarray) -> Located:
        """The point (3,) in all cells that contain it: one cell for an inner point, several for a point on a face, an
        edge or a node."""
        everywhere = self.slopes @ point + self.offsets
        best = self.locate(point[None]).barycentric.min()
        cell = np.flatnonzero(everywhere.min(axis=1) >= min(best, 0.0) + _INSIDE)
        return Located(cell, everywhere[cell])

    def _nearest(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each point, the cell in which its smallest barycentric coordinate is largest, and that coordinate."""
        from scipy.spatial import KDTree

        count = min(_NEAR, len(self.cells))
        near = KDTree(self.mesh.corners.mean(axis=1)).query(points, count)[1].reshape(len(points), count)
        inside = (np.einsum("kcba,ka->kcb", self.slopes[near], points) + self.offsets[near]).min(axis=-1)
        best = inside.argmax(axis=1)
        cell, least = near[np.arange(len(points)), best], inside.max(axis=1)
        lost = np.flatnonzero(~(least >= _INSIDE))
        step = max(1, _BLOCK // len(self.cells))
        for some in (lost[k : k + step] for k in range(0, len(lost), step)):
            inside = (np.einsum("cba,ka->kcb", self.slopes, points[some]) + self.offsets).min(axis=-1)
            cell[some], least[some] = inside.argmax(axis=1), inside.max(axis=1)
        return cell, least

    def shapes(self, barycentric: Any, xp: Any = np) -> Any:
        """Shape functions (1) at barycentric coordinates (..., 4), shape (..., 4) or (..., 10), by NumPy or
        jax.numpy."""
        if self.degree == 1:
            return barycentric
        first, second = barycentric[..., EDGES[:, 0]], barycentric[..., EDGES[:, 1]]
        return xp.concatenate([barycentric * (2.0 * barycentric - 1.0), 4.0 * first * second], axis=-1)

    def gradients(self, located: Located) -> np.ndarray:
        """Gradients ∂/∂x of the shape functions at the points, shape (N, 4 or 10, 3) [1/m]."""
        slopes = self.slopes[located.cell]
        if self.degree == 1:
            return slopes
        b = located.barycentric[:, :, None]
        first, second = EDGES.T
        edges = 4.0 * (b[:, second] * slopes[:, first] + b[:, first] * slopes[:, second])
        return np.concatenate([(4.0 * b - 1.0) * slopes, edges], axis=1)


class KinematicsOfNodes(Kinematics):
    """Kinematics by displacements of the nodes of a mesh.

    Law: f(x, θ) = x + Σ_b φ_b(x) u_b, with the shape functions φ_b and the displacements u = Σ basis_j θ_j of the
    nodes.
    """

    elements: TetrahedralElements
    basis: np.ndarray  # displacements of the nodes, shape (nodes, 3, n)

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the kinematics is invalid."""

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def takes_arrays(self) -> bool:
        return False

    @property
    def is_of_cells(self) -> bool:
        return True

    def samples(self, points: np.ndarray) -> Samples:
        return SamplesOfShapes(self, points)

    def map(self, x: Any, q: Any) -> Any:
        import jax.numpy as jnp

        elements = self.elements
        everywhere = jnp.asarray(elements.slopes) @ x + elements.offsets
        cell = everywhere.min(axis=-1).argmax()
        displaced = jnp.asarray(self.basis)[jnp.asarray(elements.cells)[cell]] @ q
        return x + elements.shapes(everywhere[cell], jnp) @ displaced

    def positions(self, points: np.ndarray, q: Any) -> Any:
        if not isinstance(points, np.ndarray):
            return super().positions(points, q)
        located = self.elements.locate(points)
        phi = self.elements.shapes(located.barycentric)
        return points + (phi[:, :, None] * self._displaced(located, q)).sum(axis=1)

    def deformations(self, points: np.ndarray, q: Any) -> Any:
        import jax.numpy as jnp

        if not isinstance(points, np.ndarray):
            return super().deformations(points, q)
        located = self.elements.locate(points)
        return jnp.eye(3) + jnp.einsum("kba,kbc->kac", self._displaced(located, q), self.elements.gradients(located))

    def _displaced(self, located: Located, q: Any) -> Any:
        """Displacements of the nodes of the cells that contain the points, shape (N, 4 or 10, 3) [m]."""
        import jax.numpy as jnp

        used, local = np.unique(self.elements.cells[located.cell], return_inverse=True)
        return (jnp.asarray(self.basis[used]) @ q)[local.reshape(len(located.cell), -1)]

    def frames(self, points: np.ndarray, q: Any) -> tuple[Any, Any]:
        import jax
        import jax.numpy as jnp

        F_q, phi = self.frame_shapes(points)
        return jax.vmap(area_axes)(jnp.eye(3) + jnp.asarray(F_q) @ q), points + jnp.asarray(phi) @ q

    def moving(self, point: np.ndarray) -> np.ndarray:
        cells = np.append(self.elements.around(point).cell, self.elements.locate(point[None]).cell)
        return np.flatnonzero(self.basis[np.unique(self.elements.cells[cells])].any(axis=(0, 1)))

    def frame_shapes(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂F/∂θ and shape functions at points. F is the mean of ∂f/∂x over the cells that contain a point."""
        F_q = np.stack([self._slopes(self.elements.around(x)).mean(axis=0) for x in points])
        return F_q, self.shapes(points)

    def shapes(self, points: np.ndarray) -> np.ndarray:
        located = self.elements.locate(np.asarray(points))
        nodes, phi = self.elements.cells[located.cell], self.elements.shapes(located.barycentric)
        found = np.zeros((len(points), 3, self.n))
        for b in range(nodes.shape[1]):
            found += phi[:, b, None, None] * self.basis[nodes[:, b]]
        return found

    def shape_gradients(self, points: np.ndarray) -> np.ndarray:
        return self._slopes(self.elements.locate(np.asarray(points)))

    def _slopes(self, located: Located) -> np.ndarray:
        nodes, slopes = self.elements.cells[located.cell], self.elements.gradients(located)
        found = np.zeros((len(nodes), 3, 3, self.n))
        for b in range(nodes.shape[1]):
            found += slopes[:, b, None, :, None] * self.basis[nodes[:, b]][:, :, None, :]
        return found


@final
@dataclass(frozen=True, eq=False)
class KinematicsFiniteElements(KinematicsOfNodes):
    """Tetrahedral finite elements: θ are the displacements [m] of the free nodes, (x, y, z) of each node in turn.

    At most 600 coordinates are allowed, because all integrals of a body are dense in θ. `reduced` makes a body with
    some tens of coordinates from a larger mesh. It uses sparse matrices and accepts tens of thousands of nodes.

    Args:
        mesh: the tetrahedra. Use the same object as domain of the body. The `degree` of its quadrature must be at least
            twice the degree of the elements.
        degree: 1 for linear elements, 2 for quadratic elements with a node at the middle of each (straight) edge.
        fixed: nodes that do not move in the body's frame: "base" or "tip" for the nodes with least or largest x;
            indices of mesh vertices (middle nodes between them are fixed too); a function of a point (3,) that returns
            whether a node there is fixed; or None. With None, θ includes rigid motions: then fix the body's joint, or
            use `reduced`, which removes them.
    """

    mesh: DomainTetrahedra
    degree: int = 1
    fixed: str | Sequence[int] | Callable[[np.ndarray], bool] | None = "base"

    @cached_property
    def elements(self) -> TetrahedralElements:
        """The elements and their nodes."""
        return TetrahedralElements(self.mesh, self.degree)

    @cached_property
    def free(self) -> np.ndarray:
        """Indices of the nodes that move; θ are their displacements in this order."""
        return np.flatnonzero(~self._is_fixed())

    @property
    def n(self) -> int:
        """Three coordinates for each free node."""
        return 3 * len(self.free)

    @cached_property
    def basis(self) -> np.ndarray:
        basis = np.zeros((len(self.elements.nodes), 3, self.n))
        basis[self.free] = np.eye(self.n).reshape(-1, 3, self.n)
        return basis

    def _is_fixed(self) -> np.ndarray:
        """Mask of the fixed nodes, by their places in the mesh as given."""
        nodes, fixed = TetrahedralElements(self.mesh.as_given, self.degree).nodes, self.fixed
        if fixed is None:
            return np.zeros(len(nodes), dtype=bool)
        if isinstance(fixed, str):
            x = nodes[:, 0] if fixed == "base" else -nodes[:, 0]
            return x <= x.min() + _AT_END * np.ptp(nodes, axis=0).max()
        if callable(fixed):
            return np.array([bool(fixed(x)) for x in nodes])
        is_named = np.isin(self.elements.vertices, np.asarray(fixed, dtype=np.int64))
        return np.asarray(is_named[self.elements.ends].all(axis=1))

    def on_mesh(self, old: Any, new: Any) -> KinematicsFiniteElements:
        return replace(self, mesh=new) if equal(self.mesh, old) else self

    def check_elements(self, where: str) -> None:
        """Raise ModelError if mesh, degree or fixed nodes are invalid. Only rules that also hold before a reduction are
        checked."""
        checks.require(
            isinstance(self.mesh, DomainTetrahedra), f"{where}: mesh", "must be a DomainTetrahedra", self.mesh
        )
        self.mesh.check(f"{where} > mesh")
        checks.integer(self.degree, f"{where}: degree", least=1, most=2)
        rule = f"must be at least {2 * self.degree} for elements of degree {self.degree}"
        checks.require(self.mesh.degree >= 2 * self.degree, f"{where} > mesh: degree", rule, self.mesh.degree)
        self._check_fixed(f"{where}: fixed")
        checks.require(len(self.free) > 0, f"{where}: fixed", "must leave some node free", self.fixed)

    def _check_fixed(self, where: str) -> None:
        if self.fixed is None:
            return
        if isinstance(self.fixed, str):
            checks.require(self.fixed in ("base", "tip"), where, "must be 'base' or 'tip' as a word", self.fixed)
        elif not callable(self.fixed):
            rule = f"must be whole numbers of vertices from 0 to {len(np.asarray(self.mesh.vertices)) - 1}"
            given = checks.array(self.fixed, (-1,), where, rule)
            right = (given == np.floor(given)) & (given >= 0) & (given < len(np.asarray(self.mesh.vertices)))
            checks.require(bool(right.all()), where, rule, self.fixed)
        checks.require(len(self.free) < len(self.elements.nodes), where, "must hold some node, or be None", self.fixed)

    def check(self, where: str) -> None:
        self.check_elements(where)
        few = self.n <= MOST_COORDINATES
        checks.require(few, where, f"must have at most {MOST_COORDINATES} coordinates unless it is reduced()", self.n)
        rule = "must be None: finite elements need the points of every cell"
        checks.require(self.mesh.compress is None, f"{where} > mesh: compress", rule, self.mesh.compress)

    def mass_matrix(self, density: float | Callable[[np.ndarray], float]) -> Any:
        """Mass matrix ∫ρ φ_j·φ_k of the free nodes, sparse (n, n) [kg]. `density` is a number [kg/m³], or a function of
        a point."""
        return _mass_matrix(self.elements, self.free, density)

    def stiffness_matrix(self, material: Hyperelastic) -> Any:
        """Stiffness matrix ∂²U/∂θ² of the free nodes at θ = 0, sparse (n, n) [N/m]."""
        return _stiffness_matrix(self.elements, self.free, material)

    def vibration_modes(
        self, material: Hyperelastic, density: float | Callable[[np.ndarray], float], count: int
    ) -> VibrationModes:
        """The `count` lowest vibration modes about the undeformed shape. If no node is fixed, rigid motions are
        excluded.

        Raises:
            ModelError: the fixed nodes allow a rigid motion, or there are too few nodes.
        """
        self.check_elements("finite elements")
        count = checks.integer(count, "finite elements: modes", least=1, most=self.n - (6 if self.fixed is None else 0))
        rigid = _rigid_motions(self.elements.nodes)
        if self.fixed is not None:
            motions = np.delete(rigid.reshape(-1, 3, 6), self.free, axis=0).reshape(-1, 6)  # of the fixed nodes
            rank = int(np.linalg.matrix_rank(motions, tol=1e-6))
            rule = "must hold three nodes that are not on one line for modes, or be None; rigid motions left"
            checks.require(rank == 6, "finite elements: fixed", rule, 6 - rank)
        material.check("finite elements > material")
        rule = "must not need a motion that keeps volume"
        checks.require(not material.needs_volume_kept, "finite elements: material", rule, type(material).__name__)
        M, K = self.mass_matrix(density), self.stiffness_matrix(material)
        return _lowest_modes(M, K, count, rigid if self.fixed is None else None)

    def reduced(self, material: Hyperelastic, density: float | Callable[[np.ndarray], float], *,
                modes: int, derivatives: int = 0) -> KinematicsReduced:  # fmt: skip
        """Kinematics of the lowest vibration modes. The coordinates have unit modal mass: ∫ρ φ_j·φ_k = δ_jk.

        Args:
            material, density: material and density of the body.
            modes: number of modes.
            derivatives: number m of modes with modal derivatives. One shape is added for each pair of the first m
                modes. These shapes are the quadratic part of large deflections. Without them bending modes stretch the
                body. They are static: K ψ_jk = −(∂K/∂θ_k) φ_j.
        Raises:
            ModelError: `vibration_modes` raises it; or derivatives > 0 for a linear material, or without fixed nodes.
        """
        found = self.vibration_modes(material, density, modes).shapes
        checks.integer(derivatives, "finite elements: derivatives", least=0, most=modes)
        if derivatives:
            if self.fixed is None or material.is_linear:
                why = "where some nodes are fixed" if self.fixed is None else "for a material that is not linear"
                raise ModelError(f"finite elements: derivatives: must be 0 but {why} (got {derivatives})")
            K, M = self.stiffness_matrix(material), self.mass_matrix(density)
            bent = _modal_derivatives(self.elements, self.free, material, K, found[:, :derivatives])
            found = np.concatenate([found, _orthonormal(bent, found, M)], axis=1)
        return KinematicsReduced(self, found)

    def enriched(
        self, domain: Domain, material: Hyperelastic, density: float | Callable[[np.ndarray], float]
    ) -> Enriched | None:
        cure = "take smaller cells in link {!r}" + (", or quadratic elements" if self.degree == 1 else "")
        return _enriched(self, self.finer(), _MODES_BESIDE_NODES, material, density, cure)

    def finer(self) -> KinematicsFiniteElements:
        """Quadratic elements in place of linear ones; or quadratic elements in cells of half the size in place of
        quadratic ones."""
        if self.degree == 1:
            return replace(self, degree=2, mesh=replace(self.mesh, degree=max(self.mesh.degree, 4), compress=None))
        mesh, ends = replace(self.mesh, compress=None).halved()
        fixed = self.fixed
        if fixed is not None and self.mesh.is_reshaped:  # the finer mesh is given in the new shape
            fixed = self.elements.vertices[self._is_fixed()[: len(self.elements.vertices)]].tolist()
        if not (fixed is None or isinstance(fixed, str) or callable(fixed)):
            fixed = np.flatnonzero(np.isin(ends, np.asarray(fixed, dtype=np.int64)).all(axis=1)).tolist()
        return replace(self, mesh=mesh, fixed=fixed)


@final
@dataclass(frozen=True, eq=False)
class KinematicsReduced(KinematicsOfNodes):
    """Finite elements that move in few shapes; made by `KinematicsFiniteElements.reduced`.

    Args:
        whole: the finite elements.
        columns: displacements of the free nodes for each coordinate, shape (whole.n, n) [m at θ = 1].
    """

    whole: KinematicsFiniteElements
    columns: Numbers

    @property
    def elements(self) -> TetrahedralElements:
        """The elements and their nodes."""
        return self.whole.elements

    def on_mesh(self, old: Any, new: Any) -> KinematicsReduced:
        whole = self.whole.on_mesh(old, new)
        return self if whole is self.whole else replace(self, whole=whole)

    @cached_property
    def n(self) -> int:
        return np.asarray(self.columns).shape[1]

    @cached_property
    def basis(self) -> np.ndarray:
        basis = np.zeros((len(self.elements.nodes), 3, self.n))
        basis[self.whole.free] = np.asarray(self.columns, dtype=np.float64).reshape(-1, 3, self.n)
        return basis

    def check(self, where: str) -> None:
        self.whole.check_elements(f"{where} > whole")
        rule = f"must be finite, one row for each of the {self.whole.n} coordinates of the whole"
        columns = checks.array(self.columns, (self.whole.n, -1), f"{where}: columns", rule)
        most = min(self.whole.n, MOST_COORDINATES)
        checks.require(0 < self.n <= most, f"{where}: columns", f"must be 1 to {most}", self.n)
        rank = int(np.linalg.matrix_rank(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)))
        checks.require(rank == self.n, f"{where}: columns", "must be independent; their rank", rank)

    def enriched(
        self, domain: Domain, material: Hyperelastic, density: float | Callable[[np.ndarray], float]
    ) -> Enriched | None:
        fine = self.whole.finer()
        if fine.n > _MOST_FINE:
            fine = replace(self.whole, mesh=replace(self.whole.mesh, compress=None))
        cure = "take more modes and derivatives, or smaller cells, in link {!r}"
        return _enriched(self, fine, self.n + _EXTRA_MODES, material, density, cure)


def _enriched(
    own: KinematicsOfNodes, fine: KinematicsFiniteElements, count: int, material: Hyperelastic,
    density: float | Callable[[np.ndarray], float], cure: str,
) -> Enriched | None:  # fmt: skip
    """Kinematics `own`, followed by those parts of the lowest modes of finer elements, and of their modal derivatives,
    that are outside the span of `own`."""
    count = min(count, fine.n - (6 if fine.fixed is None else 0))
    derived = 0 if fine.fixed is None or material.is_linear else min(_MODES_DERIVED, count)
    modes = np.asarray(fine.reduced(material, density, modes=count, derivatives=derived).columns)
    M, columns = fine.mass_matrix(density), own.shapes(fine.elements.nodes)[fine.free].reshape(fine.n, own.n)
    new = _orthonormal(modes, _orthonormal(columns, np.zeros((fine.n, 0)), M), M)
    if not 0 < new.shape[1] <= MOST_COORDINATES - own.n:
        return None
    motion = KinematicsReduced(fine, np.concatenate([columns, new], axis=1))
    return Enriched(motion, np.arange(own.n), cure, fine.mesh)


class VibrationModes(NamedTuple):
    """Vibration modes in ascending order: frequencies ω (m,) [rad/s], and displacements of the free nodes (n, m) for
    unit modal mass [kg^-½]."""

    frequencies: np.ndarray
    shapes: np.ndarray


def _rigid_motions(nodes: np.ndarray) -> np.ndarray:
    """Displacements of nodes (m, 3) by three translations and three rotations of unit size, shape (3m, 6)."""
    size = np.ptp(nodes, axis=0).max()
    away = (nodes - nodes.mean(axis=0)) / size
    turned = np.stack([np.cross(axis, away) for axis in np.eye(3)], axis=-1)
    moved = np.broadcast_to(np.eye(3), (len(nodes), 3, 3))
    return np.concatenate([moved, turned], axis=-1).reshape(-1, 6)


def _mass_matrix(
    elements: TetrahedralElements, free: np.ndarray, density: float | Callable[[np.ndarray], float]
) -> Any:
    """Mass matrix ∫ρ φ_j·φ_k of the free nodes, sparse."""
    located, weights = elements.quadrature(max(elements.mesh.degree, 2 * elements.degree))
    phi = elements.shapes(located.barycentric)
    if callable(density):
        points = np.einsum("kb,kba->ka", located.barycentric, elements.mesh.corners[located.cell])
        weights = weights * np.array([float(density(x)) for x in points])
    else:
        weights = weights * density
    count, per = len(elements.cells), phi.shape[1]
    phi, weights = phi.reshape(count, -1, per), weights.reshape(count, -1)
    blocks = (phi * weights[:, :, None]).swapaxes(1, 2) @ phi
    return _assembled(elements, free, np.einsum("kbc,ad->kbacd", blocks, np.eye(3)))


def _stiffness_matrix(elements: TetrahedralElements, free: np.ndarray, material: Hyperelastic) -> Any:
    """Stiffness matrix ∂²U/∂θ² of the free nodes in the undeformed shape, sparse."""
    located, weights = elements.quadrature(2 * elements.degree - 2)
    slopes, count = elements.gradients(located), len(elements.cells)
    slopes, weights = slopes.reshape(count, -1, *slopes.shape[1:]), weights.reshape(count, -1)
    C = material.moduli().reshape(3, 3, 3, 3)
    blocks = np.zeros((count, slopes.shape[2], 3, slopes.shape[2], 3))
    for k in range(weights.shape[1]):
        stress = np.einsum("aedf,kcf->kaecd", C, weights[:, k, None, None] * slopes[:, k])
        blocks += np.einsum("kbe,kaecd->kbacd", slopes[:, k], stress, optimize=True)
    return _assembled(elements, free, blocks)


def _unknowns(elements: TetrahedralElements, free: np.ndarray) -> np.ndarray:
    """Index of the coordinate of each component of each node, shape (nodes, 3); −1 for fixed nodes."""
    unknown = np.full((len(elements.nodes), 3), -1)
    unknown[free] = np.arange(3 * len(free)).reshape(-1, 3)
    return unknown


def _assembled(elements: TetrahedralElements, free: np.ndarray, blocks: np.ndarray) -> Any:
    """Sparse sum of the element matrices (k, b, 3, b, 3)."""
    from scipy.sparse import coo_matrix

    unknown = _unknowns(elements, free)[elements.cells].reshape(len(blocks), -1)
    size = unknown.shape[1]
    rows, columns = np.repeat(unknown, size, axis=1).ravel(), np.tile(unknown, (1, size)).ravel()
    kept = (rows >= 0) & (columns >= 0)
    n = 3 * len(free)
    return coo_matrix((blocks.ravel()[kept], (rows[kept], columns[kept])), shape=(n, n)).tocsc()


def _lowest_modes(M: Any, K: Any, count: int, rigid: np.ndarray | None) -> VibrationModes:
    """The lowest modes without the rigid motions `rigid` (n, 6). `rigid` is None if fixed nodes exclude rigid
    motions."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    n, skipped = M.shape[0], 0 if rigid is None else 6
    wanted = count + skipped
    if n <= _DENSE or wanted >= n // 2:
        square, shapes = eigh(K.toarray(), M.toarray(), subset_by_index=(0, wanted - 1))
    else:
        shift = -1e-6 * K.diagonal().sum() / M.diagonal().sum() if skipped else 0.0
        start = np.random.default_rng(0).normal(size=n)
        square, shapes = eigsh(K, wanted, M, sigma=shift, v0=start)
        order = np.argsort(square)
        square, shapes = square[order], shapes[:, order]
    if rigid is not None:
        if not np.abs(square[:skipped]).max() <= _RIGID * square[skipped]:
            raise ModelError(f"finite elements: modes: six must be rigid motions (got ω² {square[: skipped + 1]})")
        rigid = _orthonormal(rigid, np.zeros((n, 0)), M)
        shapes = shapes[:, skipped:] - rigid @ (rigid.T @ (M @ shapes[:, skipped:]))
    shapes = shapes * np.sign(shapes[np.abs(shapes).argmax(axis=0), np.arange(count)])
    return VibrationModes(np.sqrt(np.maximum(square[skipped:], 0.0)), shapes)


def _modal_derivatives(
    elements: TetrahedralElements, free: np.ndarray, material: Hyperelastic, K: Any, shapes: np.ndarray
) -> np.ndarray:
    """Modal derivatives ψ_jk of (2) for each pair j ≤ k of modes (n, m), shape (n, m (m + 1)/2)."""
    import jax
    from scipy.sparse.linalg import splu

    third = jax.jacfwd(jax.jacfwd(jax.jacfwd(material.energy_density)))
    T = np.asarray(compiled(third)(np.eye(3))).reshape(9, 9, 9)
    located, weights = elements.quadrature(max(1, 3 * (elements.degree - 1)))
    slopes, nodes = elements.gradients(located), elements.cells[located.cell]
    unknown, solve = _unknowns(elements, free), splu(K).solve
    moved = np.zeros((len(elements.nodes), 3, shapes.shape[1]))
    moved[free] = shapes.reshape(len(free), 3, -1)
    G = np.stack([np.einsum("kba,kbc->kac", moved[nodes, :, j], slopes).reshape(-1, 9)
                  for j in range(shapes.shape[1])])  # fmt: skip
    found = []
    for j in range(len(G)):
        turned = np.einsum("kq,pqr->kpr", weights[:, None] * G[j], T, optimize=True)
        for k in range(j, len(G)):
            stress = (turned @ G[k][:, :, None]).reshape(-1, 3, 3)
            force = np.zeros(unknown.shape)
            np.add.at(force, nodes, np.einsum("kac,kbc->kba", stress, slopes))
            found.append(solve(-force[free].ravel()))
    return np.stack(found, axis=-1)


def _orthonormal(shapes: np.ndarray, known: np.ndarray, M: Any) -> np.ndarray:
    """Columns that extend `known` to a mass-orthonormal basis of the span of `known` and `shapes`. Dependent columns
    are omitted."""
    lengths = np.sqrt(np.einsum("nj,nj->j", shapes, M @ shapes))
    shapes = shapes[:, lengths > 0.0] / lengths[lengths > 0.0]
    for _ in range(2):  # the second pass removes round-off
        shapes = shapes - known @ (known.T @ (M @ shapes))
        square, turn = np.linalg.eigh(shapes.T @ (M @ shapes))
        kept = square > _DEPENDENT
        shapes = (shapes @ turn[:, kept] / np.sqrt(square[kept]))[:, ::-1]
    return shapes
