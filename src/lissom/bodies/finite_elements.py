"""Finite elements: the coordinates are displacements of the nodes of a mesh, or of vibration modes of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.bodies import vibrations
from lissom.bodies.elements import Located, TetrahedralElements
from lissom.bodies.evaluation import Samples, SamplesOfShapes
from lissom.bodies.kinematics import Kinematics, area_axes
from lissom.bodies.materials import Hyperelastic
from lissom.bodies.meshes import DomainTetrahedra
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import Numbers

MOST_COORDINATES = 600
_AT_END = 1e-6  # how near, in sizes of the mesh, a node is to the end on which it lies


class KinematicsOfNodes(Kinematics):
    """Motions by the displacements of the nodes of a mesh.

    Law: f(x, θ) = x + Σ_b φ_b(x) u_b with φ_b the shape functions of the nodes and u = Σ basis_j θ_j.
    """

    elements: TetrahedralElements
    basis: np.ndarray  # displacements of the nodes, shape (nodes, 3, n)

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""

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
        """Displacements of the nodes of the cells of points, shape (N, 4 or 10, 3)."""
        import jax.numpy as jnp

        used, local = np.unique(self.elements.cells[located.cell], return_inverse=True)
        return (jnp.asarray(self.basis[used]) @ q)[local.reshape(len(located.cell), -1)]

    def frames(self, points: np.ndarray, q: Any) -> tuple[Any, Any]:
        """Of the areas across points, with the mean of ∂f/∂x in all cells that hold one, which it jumps between."""
        import jax
        import jax.numpy as jnp

        F_q = np.stack([self._slopes(self.elements.around(x)).mean(axis=0) for x in points])
        return jax.vmap(area_axes)(jnp.eye(3) + jnp.asarray(F_q) @ q), points + jnp.asarray(self.shapes(points)) @ q

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
    """Tetrahedral finite elements: θ are the displacements [m] of the free nodes, x, y and z of one after the other.

    All of a body's integrals are dense in θ: as it is, this is for up to 600 coordinates. Larger meshes are `reduced`
    to some tens of them, which works with sparse matrices and takes meshes of tens of thousands of nodes.

    Args:
        mesh: the tetrahedra, which are the domain of the body as well; `degree` of its quadrature at least twice that
            of the elements, for exact masses.
        degree: 1, or 2 with a node amid each edge besides, which stays straight in the reference shape.
        fixed: the nodes that do not move in the body's frame: "base" or "tip", those with least or largest x; numbers
            of vertices (with the nodes amid them); a function of a point (3,) that says whether its node is; or None.
            Without any, θ holds the rigid motions: then the body's joint must be fixed, or `reduced` leave them out.
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
        """Numbers of the nodes that move; θ are their displacements in this order."""
        return np.flatnonzero(~self._held())

    @property
    def n(self) -> int:
        """Three coordinates for each free node."""
        return 3 * len(self.free)

    @cached_property
    def basis(self) -> np.ndarray:
        basis = np.zeros((len(self.elements.nodes), 3, self.n))
        basis[self.free] = np.eye(self.n).reshape(-1, 3, self.n)
        return basis

    def _held(self) -> np.ndarray:
        """Whether each node is fixed."""
        nodes, fixed = self.elements.nodes, self.fixed
        if fixed is None:
            return np.zeros(len(nodes), dtype=bool)
        if isinstance(fixed, str):
            x = nodes[:, 0] if fixed == "base" else -nodes[:, 0]
            return x <= x.min() + _AT_END * np.ptp(nodes, axis=0).max()
        if callable(fixed):
            return np.array([bool(fixed(x)) for x in nodes])
        held = np.isin(self.elements.vertices, np.asarray(fixed, dtype=np.int64))[self.elements.ends]
        return held[:, 0] & held[:, 1]

    def check_elements(self, where: str) -> None:
        """What must hold for a mesh of any size, that is to be reduced as well."""
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
        """∫ρ φ_j·φ_k of the free nodes, a sparse matrix (n, n) [kg]; `density` in kg/m³, or a function of a point."""
        return vibrations.mass_matrix(self.elements, self.free, density)

    def stiffness_matrix(self, material: Hyperelastic) -> Any:
        """∂²U/∂θ² at θ = 0 of the free nodes, a sparse matrix (n, n) [N/m]."""
        return vibrations.stiffness_matrix(self.elements, self.free, material)

    def vibration_modes(
        self, material: Hyperelastic, density: float | Callable[[np.ndarray], float], count: int
    ) -> vibrations.VibrationModes:
        """The `count` lowest modes about the reference shape, those of rigid motions left out where nothing is fixed.

        Raises:
            ModelError: the fixed nodes leave the body a rigid motion, or there are too few nodes.
        """
        self.check_elements("finite elements")
        count = checks.integer(count, "finite elements: modes", least=1, most=self.n - (6 if self.fixed is None else 0))
        rigid = vibrations.rigid_motions(self.elements.nodes)
        if self.fixed is not None:
            held = np.delete(rigid.reshape(-1, 3, 6), self.free, axis=0).reshape(-1, 6)
            rank = int(np.linalg.matrix_rank(held, tol=1e-6))
            rule = "must hold three nodes that are not on one line for modes, or be None; rigid motions left"
            checks.require(rank == 6, "finite elements: fixed", rule, 6 - rank)
        material.check("finite elements > material")
        rule = "must not need a motion that keeps volume"
        checks.require(not material.needs_volume_kept, "finite elements: material", rule, type(material).__name__)
        M, K = self.mass_matrix(density), self.stiffness_matrix(material)
        return vibrations.modes(M, K, count, rigid if self.fixed is None else None)

    def reduced(self, material: Hyperelastic, density: float | Callable[[np.ndarray], float], *,
                modes: int, derivatives: int = 0) -> KinematicsReduced:  # fmt: skip
        """The motions that the lowest vibration modes make, in coordinates of unit mass: ∫ρ φ_j·φ_k = δ_jk.

        Args:
            material, density: of the body.
            modes: how many.
            derivatives: of how many of the first modes the modal derivatives are added, one for each pair of them:
                the quadratic part of how the body answers to large forces along those modes, without which modes of
                bending would have to stretch it. Static ones: K ψ_jk = −(∂K/∂θ_k) φ_j.
        Raises:
            ModelError: see `vibration_modes`; derivatives of a material that is linear, or where nothing is fixed.
        """
        found = self.vibration_modes(material, density, modes).shapes
        checks.integer(derivatives, "finite elements: derivatives", least=0, most=modes)
        if derivatives:
            if self.fixed is None or material.is_linear:
                why = "where some nodes are fixed" if self.fixed is None else "for a material that is not linear"
                raise ModelError(f"finite elements: derivatives: must be 0 but {why} (got {derivatives})")
            K, M = self.stiffness_matrix(material), self.mass_matrix(density)
            bent = vibrations.modal_derivatives(self.elements, self.free, material, K, found[:, :derivatives])
            found = np.concatenate([found, vibrations.orthonormal(bent, found, M)], axis=1)
        return KinematicsReduced(self, found)


@final
@dataclass(frozen=True, eq=False)
class KinematicsReduced(KinematicsOfNodes):
    """Finite elements that move in few shapes, as `KinematicsFiniteElements.reduced` makes them.

    Args:
        whole: the finite elements.
        columns: displacements of its free nodes for each coordinate, shape (whole.n, n) [m for θ = 1].
    """

    whole: KinematicsFiniteElements
    columns: Numbers

    @property
    def elements(self) -> TetrahedralElements:
        """The elements and their nodes."""
        return self.whole.elements

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
