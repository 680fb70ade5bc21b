"""A rod as a chain of rigid segments: their frames, inertia, joints, meshes, and the error of the chain.

The rod is cut into N elements of equal length. A joint at the middle s_i = (i − 1/2)/N of each element has the
compliance of the element. Between two joints lies a rigid segment, a half one at each end. For a strain c with the
stiffness Σ and the damping Υ of the sections,

    1/k = L ∫ (Σ⁻¹)_cc ds,     d = k² L ∫ (Σ⁻¹ Υ Σ⁻¹)_cc ds                                                 (1)

over the element: under a constant moment the joint turns as the element bends, and dissipates the same power. Near the
stress-free shape, a wrench F at the tip moves the tip by C F. With the adjoint A(s) from the section at s to the tip,

    C_rod = J (∫ Φᵀ Σ Φ L ds)⁻¹ Jᵀ,  J = ∫ A Φ L ds;     C_chain = Σ_i A(s_i) (1/k) A(s_i)ᵀ                   (2)

Gravity acts as the wrench of the rest of the rod beyond each section. The error is the norm of the difference of the
displacements of the tip, relative to those of the rod. It falls with 1/(4 N²) for a uniform rod. With more joints the
chain tends to a rod of all strains that vary in any way, C = ∫ A (Σ⁻¹) Aᵀ L ds, which a basis of few modes is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot.bases import STRAINS
from lissom.robot.bodies import RigidBody, Rod
from lissom.robot.materials import Material
from lissom.robot.meshes import Mesh
from lissom.robot.poses import exponential
from lissom.robot.sampled_shapes import ShapeHull
from lissom.robot.shapes import PlacedShape, ShapeCylinder

MOST = 200  # largest number of joints of a chain
_GRID = 256  # steps of the reference shape
_STATIONS, _AROUND = 5, 16  # sections of the mesh of a segment, and points around each
_ROUND = 1e-6  # deviation from a circle that counts as rounding, relative to the radius
_COUPLED = 1e-9  # entry of Σ⁻¹ off its diagonal that counts as rounding, relative to the diagonal
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def adjoint(g: np.ndarray) -> np.ndarray:
    """The adjoint (6, 6) of a pose (4, 4): it takes twists, angular first, from the inner frame to the outer one."""
    R, p = g[:3, :3], g[:3, 3]
    P = np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])
    return np.block([[R, np.zeros((3, 3))], [P @ R, R]])


def quadrature(low: float, high: float, panels: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points and weights on an interval, 8 on each of some panels, shape (8 panels,) each."""
    ends = np.linspace(low, high, panels + 1)
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half * (1.0 + _POINTS)).ravel(), (half * _WEIGHTS).ravel()


@final
@dataclass(frozen=True)
class ChainError:
    """A rod that became a chain of rigid links, and how far the tip of the chain is from that of the rod.

    Fields:
        link: name of the link.
        joints: number N of elements. Each has a joint for each strain of the rod.
        strains: the strains that the rod has.
        tip_load: relative error [-] of the displacement of the tip under a force at the tip, near the stress-free
            shape.
        weight: the same under the rod's own weight, for the worst direction of gravity [-].
        basis: the part of these errors that more joints do not reduce, since the basis of the rod has few modes [-].
    """

    link: str
    joints: int
    strains: tuple[str, ...]
    tip_load: float
    weight: float
    basis: float

    def __str__(self) -> str:
        return (
            f"rod {self.link!r}: {self.joints} elements of {len(self.strains)} joints ({', '.join(self.strains)}); "
            f"its tip is off by {100.0 * self.tip_load:.2g} % under a tip load, "
            f"{100.0 * self.weight:.2g} % under its weight"
        )


@final
class RodShape:
    """The stress-free shape of a rod and what its sections say.

    Args:
        rod: the rod.
        where: its name in errors.
    """

    def __init__(self, rod: Rod, where: str) -> None:
        self.rod, self.where = rod, where
        self.reference = rod.strain_reference(where)
        self.active = [k for k, count in enumerate(rod.basis.modes()) if count]
        self.material: Material | None = rod.material

    @cached_property
    def _grid(self) -> np.ndarray:
        """Poses of the sections at equal distances, shape (_GRID + 1, 4, 4)."""
        out = [np.eye(4)]
        for k in range(_GRID):
            out.append(out[-1] @ self._step(k / _GRID, (k + 1) / _GRID))
        return np.array(out)

    def _step(self, a: float, b: float) -> np.ndarray:
        """The displacement from the section at a to that at b, by the fourth-order Magnus expansion."""
        h, middle, away = (b - a) * self.rod.length, 0.5 * (a + b), (b - a) * np.sqrt(3.0) / 6.0
        x, y = self.reference(middle - away), self.reference(middle + away)
        bracket = np.concatenate([np.cross(x[:3], y[:3]), np.cross(x[:3], y[3:]) + np.cross(x[3:], y[:3])])
        return exponential(0.5 * h * (x + y) + np.sqrt(3.0) / 12.0 * h * h * bracket)

    def pose(self, s: float) -> np.ndarray:
        """The pose (4, 4) of the section at s in the frame of the base."""
        k = min(int(s * _GRID), _GRID)
        return self._grid[k] if s * _GRID == k else self._grid[k] @ self._step(k / _GRID, s)

    def constitution(self, s: float) -> Any:
        """The matrices of the section at s."""
        return self.rod.section.constitution(s, self.material, f"{self.where} > section")

    @cached_property
    def _mass_matrix(self) -> Callable[[float], np.ndarray]:
        if self.rod.section.is_uniform:
            inertia = self.constitution(0.0).inertia
            return lambda s: inertia
        return lambda s: self.constitution(s).inertia

    def solid(self, low: float, high: float, g: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg·m²] about it of the rod from s = low to high, in a
        frame g (4, 4) of the base's."""
        back, M = np.linalg.inv(g), np.zeros((6, 6))
        for s, w in zip(*quadrature(low, high)):
            A = np.linalg.inv(adjoint(back @ self.pose(float(s))))
            M += self.rod.length * w * (A.T @ self._mass_matrix(float(s)) @ A)
        mass = float(np.trace(M[3:, 3:]) / 3.0)
        if mass <= 0.0:
            raise ModelError(f"{self.where}: must have a mass to become rigid links (got {mass:g} kg)")
        C = M[:3, 3:] / mass
        c = np.array([C[2, 1] - C[1, 2], C[0, 2] - C[2, 0], C[1, 0] - C[0, 1]]) / 2.0
        P = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
        inertia = M[:3, :3] + mass * (P @ P)
        return mass, c, 0.5 * (inertia + inertia.T)

    def compliance(self, s: float) -> tuple[np.ndarray, np.ndarray]:
        """Σ⁻¹ and Σ⁻¹ Υ Σ⁻¹ of the strains that the rod has, at s, shape (n, n) each."""
        own = self.constitution(s)
        pick = np.ix_(self.active, self.active)
        try:
            inverse = np.linalg.inv(own.stiffness[pick])
        except np.linalg.LinAlgError:
            raise ModelError(f"{self.where}: must be stiff in all of its strains to become rigid links") from None
        return inverse, inverse @ own.damping[pick] @ inverse

    @cached_property
    def is_coupled(self) -> bool:
        """Whether strains of a section are coupled, which joints in a row are not."""
        inverse = self.compliance(0.5)[0]
        size = np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
        return bool((np.abs(inverse - np.diag(np.diag(inverse))) > _COUPLED * size).any())

    def laws(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and damping (1) of the joints of an element, by strain, shape (n,) each."""
        soft, lossy = np.zeros(len(self.active)), np.zeros(len(self.active))
        for s, w in zip(*quadrature(low, high, 1)):
            inverse, losses = self.compliance(float(s))
            soft += self.rod.length * w * np.diag(inverse)
            lossy += self.rod.length * w * np.diag(losses)
        return 1.0 / soft, lossy / soft**2

    @cached_property
    def responses(self) -> tuple[np.ndarray, np.ndarray]:
        """Displacement of the tip of the rod per force at the tip (3, 3) [m/N], and per gravity (3, 3) [s²], (2)."""
        n, breaks = self.rod.basis.size, [0.0, *self.rod.basis.breaks(), 1.0]
        K, J, W = np.zeros((n, n)), np.zeros((3, n)), np.zeros((n, 3))
        for low, high in pairwise(breaks):
            for s, w in zip(*quadrature(low, high, 4)):
                Phi = self.rod.basis.evaluate(float(s))
                K += self.rod.length * w * (Phi.T @ self.constitution(float(s)).stiffness @ Phi)
                J += self.rod.length * w * (self._to_tip(float(s)) @ Phi)
                W += self.rod.length * w * (Phi.T @ self._weight_beyond(float(s)))
        solved = np.linalg.solve(K, np.hstack([J.T, W]))
        return J @ solved[:, :3], J @ solved[:, 3:]

    @cached_property
    def limit_responses(self) -> tuple[np.ndarray, np.ndarray]:
        """The same of a chain of infinitely many elements."""
        at, weights = quadrature(0.0, 1.0, 8)
        return self._summed(at, [w * self.rod.length * self.compliance(float(s))[0] for s, w in zip(at, weights)])

    def chain_responses(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The same of a chain of `count` elements."""
        laws = [self.laws(i / count, (i + 1) / count)[0] for i in range(count)]
        return self._summed((np.arange(count) + 0.5) / count, [np.diag(1.0 / law) for law in laws])

    def _summed(self, at: np.ndarray, soft: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The responses of joints at s with compliances (n, n)."""
        tip, weight = np.zeros((3, 3)), np.zeros((3, 3))
        for s, C in zip(at.tolist(), soft):
            A = self._to_tip(s)[:, self.active] @ C
            tip += A @ self._to_tip(s)[:, self.active].T
            weight += A @ self._weight_beyond(s)[self.active]
        return tip, weight

    def count_for(self, tolerance: float) -> int:
        """The smallest number of elements whose chain is within a tolerance of the limit of many elements."""
        count = 1
        while count < MOST:
            away = max(_away(self.chain_responses(count), self.limit_responses))
            if away <= tolerance:
                return count
            count = min(MOST, max(count + 1, int(0.9 * count * np.sqrt(away / tolerance))))
        return MOST

    def error(self, link: str, count: int) -> ChainError:
        """The error of a chain of `count` elements."""
        strains = tuple(STRAINS[k] for k in self.active)
        tip, weight = _away(self.chain_responses(count), self.responses)
        return ChainError(link, count, strains, tip, weight, max(_away(self.limit_responses, self.responses)))

    def _to_tip(self, s: float) -> np.ndarray:
        """Velocity of the tip, in axes of the base, per rate of the twist of the section at s, shape (3, 6)."""
        at, tip = self.pose(s), self.pose(1.0)
        A = adjoint(np.linalg.inv(tip) @ at)
        return tip[:3, :3] @ A[3:]

    def _weight_beyond(self, s: float) -> np.ndarray:
        """The wrench on the section at s by the weight of the rod beyond it, per gravity in axes of the base (6, 3)."""
        at, out = self.pose(s), np.zeros((6, 3))
        for x, w in zip(*quadrature(s, 1.0, 1)):
            g = np.linalg.inv(at) @ self.pose(float(x))
            M = self._mass_matrix(float(x))
            turn = np.vstack([np.zeros((3, 3)), (at[:3, :3] @ g[:3, :3]).T])
            out += self.rod.length * w * (np.linalg.inv(adjoint(g)).T @ (M @ turn))
        return out

    def body(self, low: float, high: float, g: np.ndarray) -> RigidBody:
        """The rigid segment from s = low to high, in a frame g (4, 4) of the base's."""
        mass, com, inertia = self.solid(low, high, g)
        back, rings = np.linalg.inv(g), []
        for s in np.linspace(low, high, _STATIONS):
            flat = self.rod.section.outline(float(s), _AROUND)
            at = back @ self.pose(float(s))
            rings.append(np.column_stack([np.zeros(len(flat)), flat]) @ at[:3, :3].T + at[:3, 3])
        mesh = _tube(np.array(rings))
        shape = self._touching(low, high, back, np.concatenate(rings))
        return RigidBody(mass, tuple(com.tolist()), inertia.tolist(), shapes=(shape,), meshes=(mesh,),
                         material=self.material)  # fmt: skip

    def _touching(self, low: float, high: float, back: np.ndarray, points: np.ndarray) -> PlacedShape:
        """The collision shape of a segment: a cylinder of the mean radius for round sections, otherwise a hull."""
        middle = 0.5 * (low + high)
        away = np.linalg.norm(self.rod.section.outline(middle, 4 * _AROUND), axis=1)
        far, near = float(away.max()), float(away.min())
        if far - near > _ROUND * far:
            return PlacedShape(ShapeHull(points.tolist()))
        a, b = (back @ self.pose(s) for s in (low, high))
        along, place = b[:3, 3] - a[:3, 3], back @ self.pose(middle)
        place[:3, 3] = 0.5 * (a[:3, 3] + b[:3, 3])
        length = float(np.linalg.norm(along))
        return PlacedShape(ShapeCylinder(far, length, tuple((place[:3, :3].T @ along / length).tolist())),
                           place.tolist())  # fmt: skip


def _away(responses: tuple[np.ndarray, ...], exact: tuple[np.ndarray, ...]) -> list[float]:
    """Distance of each of the responses from the exact one, relative to it."""
    sizes = [float(np.linalg.norm(one, 2)) or 1.0 for one in exact]
    return [float(np.linalg.norm(a - b, 2)) / size for a, b, size in zip(responses, exact, sizes)]


def _tube(rings: np.ndarray) -> Mesh:
    """The closed mesh through rings of points, shape (stations, around, 3)."""
    stations, around, _ = rings.shape
    k = np.arange(around)
    after, triangles = (k + 1) % around, []
    for j in range(stations - 1):
        a, b = j * around, (j + 1) * around
        triangles += [np.stack([a + k, a + after, b + k], axis=1), np.stack([a + after, b + after, b + k], axis=1)]
    first, last = stations * around, stations * around + 1
    triangles += [np.stack([np.full(around, first), after, k], axis=1)]
    triangles += [np.stack([np.full(around, last), first - around + k, first - around + after], axis=1)]
    vertices = np.vstack([rings.reshape(-1, 3), rings[0].mean(axis=0), rings[-1].mean(axis=0)])
    return Mesh(vertices=vertices.tolist(), triangles=np.concatenate(triangles).tolist())
