"""Sparse matrices of finite elements, their vibration modes and modal derivatives.

With M the mass matrix and K the stiffness in the reference shape, modes solve K φ = ω² M φ with φ_jᵀ M φ_k = δ_jk.
Along large deflections the force of the material is K θ + ½ T θθ + …, with T the third derivatives of the energy. What
the body adds on its own to θ = Σ φ_j η_j is to second order ½ Σ ψ_jk η_j η_k, of the static modal derivatives

    K ψ_jk = −T φ_j φ_k,   (T φ_j φ_k)_l = ∫ ∂³W/∂F³ : ∇φ_j : ∇φ_k : ∇N_l                                  (1)

Source: Idelsohn and Cardona 1985, without the terms of inertia.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lissom.bodies.elements import TetrahedralElements
from lissom.bodies.materials import Hyperelastic
from lissom.errors import ModelError
from lissom.robot.poses import compiled

_DENSE = 400  # coordinates up to which all modes are found by dense algebra
_RIGID = 1e-6  # ω² of a rigid mode, in those of the first elastic one
_DEPENDENT = 1e-8  # square of what a modal derivative must add, in its own length


class VibrationModes(NamedTuple):
    """By rising frequency: ω (m,) [rad/s], and displacements of the free nodes (n, m) of unit modal mass [kg^-½]."""

    frequencies: np.ndarray
    shapes: np.ndarray


def rigid_motions(nodes: np.ndarray) -> np.ndarray:
    """Displacements of nodes (m, 3) by three translations and three turns of unit size, shape (3m, 6)."""
    size = np.ptp(nodes, axis=0).max()
    away = (nodes - nodes.mean(axis=0)) / size
    turned = np.stack([np.cross(axis, away) for axis in np.eye(3)], axis=-1)
    moved = np.broadcast_to(np.eye(3), (len(nodes), 3, 3))
    return np.concatenate([moved, turned], axis=-1).reshape(-1, 6)


def mass_matrix(elements: TetrahedralElements, free: np.ndarray, density: float | Callable[[np.ndarray], float]) -> Any:
    """∫ρ φ_j·φ_k, sparse."""
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


def stiffness_matrix(elements: TetrahedralElements, free: np.ndarray, material: Hyperelastic) -> Any:
    """∂²U/∂θ² in the reference shape, sparse."""
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
    """The coordinate of each component of each node, shape (nodes, 3); −1 where it is fixed."""
    unknown = np.full((len(elements.nodes), 3), -1)
    unknown[free] = np.arange(3 * len(free)).reshape(-1, 3)
    return unknown


def _assembled(elements: TetrahedralElements, free: np.ndarray, blocks: np.ndarray) -> Any:
    """The sparse sum of the matrices (k, b, 3, b, 3) of all cells."""
    from scipy.sparse import coo_matrix

    unknown = _unknowns(elements, free)[elements.cells].reshape(len(blocks), -1)
    size = unknown.shape[1]
    rows, columns = np.repeat(unknown, size, axis=1).ravel(), np.tile(unknown, (1, size)).ravel()
    kept = (rows >= 0) & (columns >= 0)
    n = 3 * len(free)
    return coo_matrix((blocks.ravel()[kept], (rows[kept], columns[kept])), shape=(n, n)).tocsc()


def modes(M: Any, K: Any, count: int, rigid: np.ndarray | None) -> VibrationModes:
    """The lowest modes; `rigid` are the motions (n, 6) without force, left out, or None where there are none."""
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
        rigid = orthonormal(rigid, np.zeros((n, 0)), M)
        shapes = shapes[:, skipped:] - rigid @ (rigid.T @ (M @ shapes[:, skipped:]))
    shapes = shapes * np.sign(shapes[np.abs(shapes).argmax(axis=0), np.arange(count)])
    return VibrationModes(np.sqrt(np.maximum(square[skipped:], 0.0)), shapes)


def modal_derivatives(
    elements: TetrahedralElements, free: np.ndarray, material: Hyperelastic, K: Any, shapes: np.ndarray
) -> np.ndarray:
    """ψ_jk of (1) for each pair j ≤ k of modes (n, m), shape (n, m (m + 1)/2)."""
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


def orthonormal(shapes: np.ndarray, known: np.ndarray, M: Any) -> np.ndarray:
    """What columns (n, m) add to known ones that are orthonormal by the mass, made so as well; none twice."""
    lengths = np.sqrt(np.einsum("nj,nj->j", shapes, M @ shapes))
    shapes = shapes[:, lengths > 0.0] / lengths[lengths > 0.0]
    for _ in range(2):  # once more takes away what round-off has left
        shapes = shapes - known @ (known.T @ (M @ shapes))
        square, turn = np.linalg.eigh(shapes.T @ (M @ shapes))
        kept = square > _DEPENDENT
        shapes = (shapes @ turn[:, kept] / np.sqrt(square[kept]))[:, ::-1]
    return shapes
