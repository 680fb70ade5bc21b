"""Nodes during the build: rigid joints and integration intervals of rods, before they become flat tables.

The Magnus expansion to fourth order uses mean c and first moment d of the strain in an interval, with x from −1 to 1:

    c = ½ ∫ ξ dx,   d = 3/2 ∫ x ξ dx,   Ω = h c + (h²/6) ad(c) d                                             (1)
    ξ₁, ξ₂ = c ∓ d/√3   turn (1) into  h/2 (ξ₁ + ξ₂) + (√3 h²/12) ad(ξ₁) ξ₂, which the kernels compute       (2)

Two exponentials of the form (2) also use the second moment e. Their error is about fifty times smaller:

    e = 5/4 ∫ (3x² − 1) ξ dx,   exp(L₋ + ad(L₋) y₋) exp(L₊ + ad(L₊) y₊)                                      (3)
    L± = h (c/2 ± 4/15 d),   y± = h (d/30 ± e/15)

With the moments a = h c, b = 2 h d and f = 6 h e, (3) agrees with the exact Ω in the terms of a, b, f, [a, b],
[a, [a, f]] and [a, [a, [a, b]]]. Of the other terms of fifth order it misses 2 % of [b, [a, b]] and 4 % of [b, f]. The
frame between the two exponentials is not the frame of a section.

With two Gauss points in (1), ξ₁ and ξ₂ are the strains at the two Zannah points, as in the papers. With enough points
for the basis, c and d are exact; at a straight reference, rotation and displacement at every node are exact too.
Source: Mathew 2025 §2 for two points; S. Blanes and others, The Magnus expansion, 2009, §5 for (1) and for the terms of
sixth order that (3) is fitted to.

The positions in a sweep of the tree are relative to a base frame. `base_tables` finds the nodes that share a base
frame, and its position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np

from lissom.bodies.integrals import LinearCoefficients, ShapeIntegrals
from lissom.bodies.material_frames import MaterialFrame
from lissom.bodies.point_elasticity import PointElasticity
from lissom.lie.arrays import se3_ad, se3_exp
from lissom.model.groups import Bases, Nodes, Runs
from lissom.robot.bases import Basis
from lissom.robot.joints import MotionKind
from lissom.robot.poses import PoseFunction, PoseSpline

Frame = tuple["Node | None", np.ndarray]  # a node, or None for the world, and the 4x4 placement in it
Point = tuple["Node | None", np.ndarray]  # a node, or None for the world, and the position (3,) in it [m]
Key = float | tuple[float, ...]  # a place on a deformable body: s, or (whether its frame turns, x, y, z)


@final
@dataclass(frozen=True, eq=False)
class Flesh:
    """The deformable body of a node of kind BODY.

    Fields:
        integrals: of the body.
        coefficients: constants of the integrals if the body is linear in the coordinates and kernels can evaluate its
            elasticity; otherwise None.
        pointwise: native code of its elasticity as a sum over points; None if kernels need none.
        places: nodes at places on the body.
    """

    integrals: ShapeIntegrals
    coefficients: LinearCoefficients | None
    pointwise: PointElasticity | None
    places: dict[Key, Node]


def _constant(array: np.ndarray) -> np.ndarray:
    """A read-only array, which many nodes share."""
    array.setflags(write=False)
    return array


IDENTITY = _constant(np.eye(4))
_NO_BASIS, _NO_STRAIN = _constant(np.zeros((6, 0))), _constant(np.zeros(6))
_NO_INERTIA, _NO_MASS = _constant(np.zeros((6, 6))), _constant(np.zeros(4))


@final
@dataclass(eq=False)
class Node:
    """A node, g = g_p G exp(Ω): parent, placement G, Ω from two strain points, inertia.

    Fields:
        parent: None for the world. G: placement in the parent, 4x4.
        Phi1, Phi2: basis (6, n) at the points of (2), equal and constant for a joint. xi1, xi2: reference strain there.
        h: interval length [m], 1 for a joint; kappa: √3 h²/12, 0 for a joint.
        v_start, q_shift: first coordinate in v, and the shift from there to its index in q.
        inertia: with the added inertia of the fluid. dry: first moment and mass without the fluid. heavy: the same less
        those of the displaced fluid.
        link, s: index of the link, and abscissa on it. index: number of the node, given once all nodes exist.
        pose: of a MAP; its Phi1 and Phi2 are the columns at q = 0, or zero on a deformable body.
        flesh: of a BODY, whose Phi1 and Phi2 are zero.
        neutral: pose (4, 4) in the world in the neutral configuration, once it is needed.
    """

    parent: Node | None
    G: np.ndarray
    link: int
    s: float
    v_start: int
    q_shift: int
    kind: MotionKind = MotionKind.EXP
    Phi1: np.ndarray = field(default_factory=lambda: _NO_BASIS)
    Phi2: np.ndarray = field(default_factory=lambda: _NO_BASIS)
    xi1: np.ndarray = field(default_factory=lambda: _NO_STRAIN)
    xi2: np.ndarray = field(default_factory=lambda: _NO_STRAIN)
    h: float = 1.0
    kappa: float = 0.0
    inertia: np.ndarray = field(default_factory=lambda: _NO_INERTIA)
    dry: np.ndarray = field(default_factory=lambda: _NO_MASS)
    heavy: np.ndarray = field(default_factory=lambda: _NO_MASS)
    index: int = -1
    pose: PoseFunction | PoseSpline | MaterialFrame | None = None
    flesh: Flesh | None = None
    neutral: np.ndarray | None = None


@final
@dataclass(frozen=True)
class RodStrain:
    """The strain of one rod, from which nodes are placed on it.

    Fields:
        length: of the rod [m].
        basis, reference: basis and reference strain as functions of s.
        interval_points: number of points of (1) in an interval.
        v_start, q_shift: first coordinate in v, and the shift from there to its index in q.
        family: the Basis itself.
        known: cache of basis and reference strain by interval, which rods of the same basis and reference share.
    """

    length: float
    basis: Callable[[float], np.ndarray]
    reference: Callable[[float], np.ndarray]
    interval_points: int
    v_start: int
    q_shift: int
    family: Basis
    known: dict[Any, Any] = field(default_factory=dict)

    def interval(self, link: int, parent: Frame, s0: float, s1: float) -> Node:
        """The node that carries the rod's frame from s0 to s1."""
        Phi, xi = self._ends(interval_ends, s0, s1)
        return self._node(link, parent, s1, (s1 - s0) * self.length, Phi, xi)

    def varies(self, s0: float, s1: float) -> bool:
        """Whether (1) is inexact on [s0, s1]: the strains rotate the rod there and are not constant."""
        if (s0, s1) not in self.known:
            x, _ = line_through_moments(self.interval_points)
            at = (s0 + (s1 - s0) * (x + 1) / 2).tolist()
            values = np.array([np.column_stack([self.basis(s), self.reference(s)]) for s in at])
            differs = np.ptp(values, axis=0).max() > 1e-12 * np.abs(values).max()
            self.known[s0, s1] = bool(values[:, :3].any() and differs)
        return self.known[s0, s1]

    def modes(self, s: float) -> np.ndarray:
        """The basis at s, shape (6, n)."""
        if s not in self.known:
            self.known[s] = _constant(np.array(self.basis(s)))
        return self.known[s]

    def halves(self, link: int, parent: Frame, s0: float, s1: float) -> tuple[Node, Node]:
        """The two nodes of (3), which carry the rod's frame from s0 to s1."""
        basis, reference = self._ends(pair_ends, s0, s1)
        h = (s1 - s0) * self.length / 2.0
        first = self._node(link, parent, (s0 + s1) / 2.0, h, basis[:2], reference[:2])
        return first, self._node(link, (first, IDENTITY), s1, h, basis[2:], reference[2:])

    def _ends(self, ends: Callable[..., np.ndarray], s0: float, s1: float) -> tuple[list[Any], list[Any]]:
        """Basis and reference strain at the points of (2) or (3) on [s0, s1], which the function `ends` computes."""
        key = ends, s0, s1
        if key not in self.known:
            points = self.interval_points
            self.known[key] = tuple(list(ends(x, s0, s1, points)) for x in (self.basis, self.reference))
        return self.known[key]

    def _node(self, link: int, parent: Frame, s: float, h: float, Phi: list[Any], xi: list[Any]) -> Node:
        node, G = parent
        return Node(node, G, link, s, self.v_start, self.q_shift, MotionKind.EXP, Phi[0], Phi[1], xi[0], xi[1], h,
                    np.sqrt(3.0) * h**2 / 12.0)  # fmt: skip


@final
@dataclass(frozen=True)
class RodTable:
    """One rod of a model.

    Fields:
        strain: of the rod.
        base: its base frame (node, placement).
        node, node_s: its nodes, and their increasing abscissae.
        weight: Gauss weight of each node [m].
    """

    strain: RodStrain
    base: tuple[int, np.ndarray]
    node: np.ndarray
    node_s: np.ndarray
    weight: np.ndarray


def interval_ends(function: Callable[[float], np.ndarray], s0: float, s1: float, points: int) -> np.ndarray:
    """ξ₁ and ξ₂ of (2) for a function of s on [s0, s1], with a Gauss rule of `points` in (1)."""
    x, line = line_through_moments(points)
    values = np.array([function(float(s)) for s in s0 + (s1 - s0) * (x + 1) / 2])
    return np.tensordot(line, values, axes=1)


def pair_ends(function: Callable[[float], np.ndarray], s0: float, s1: float, points: int) -> np.ndarray:
    """ξ₁ and ξ₂ of both exponentials of (3) for a function of s on [s0, s1], with a Gauss rule of `points`."""
    x, line = pair_through_moments(points)
    values = np.array([function(float(s)) for s in s0 + (s1 - s0) * (x + 1) / 2])
    return np.tensordot(line, values, axes=1)


@lru_cache(maxsize=32)
def pair_through_moments(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points on [−1, 1], and the weights (4, points) that turn values there into both ξ₁, ξ₂ of (3)."""
    x, w = np.polynomial.legendre.leggauss(points)
    c, d, e = w / 2, 3.0 * w / 2 * x, 5.0 * w / 4 * (3.0 * x**2 - 1.0)
    means = [c + side * 8.0 / 15.0 * d for side in (-1, 1)]
    apart = [4.0 * np.sqrt(3.0) * (d / 30.0 + side * e / 15.0) for side in (-1, 1)]
    return x, np.array([mean + sign * half for mean, half in zip(means, apart) for sign in (-1, 1)])


@lru_cache(maxsize=32)
def line_through_moments(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points on [−1, 1], and the weights (2, points) that turn values there into ξ₁ and ξ₂."""
    x, w = np.polynomial.legendre.leggauss(points)
    return x, w / 2 * np.stack([1 - np.sqrt(3.0) * x, 1 + np.sqrt(3.0) * x])


def point_before(node_s: Sequence[float] | np.ndarray, s: float) -> int:
    """Index of the last of the rising abscissae of a rod's nodes at or before s; -1 is its base."""
    return int(np.searchsorted(node_s, s + 1e-12, side="right")) - 1


def index_of(node: Node | None) -> int:
    """Number of a node, -1 for the world."""
    return -1 if node is None else node.index


def numbered(frame: Frame) -> tuple[int, np.ndarray]:
    """A frame with the number of its node."""
    return index_of(frame[0]), frame[1]


def number(nodes: list[Node], pulled: Iterable[Node | None]) -> tuple[list[Node], int]:
    """Number the nodes of a robot. Nodes with masses or forces, and their ancestors, come first.

    Args:
        nodes: parents before children.
        pulled: nodes on which forces act.
    Returns:
        the nodes in the order of their numbers; the count of those that come first.
    """
    carries = {node for node in pulled if node is not None} | {
        node for node in nodes if node.inertia is not _NO_INERTIA and node.inertia.any()
    }
    for node in reversed(nodes):
        if node in carries and node.parent is not None:
            carries.add(node.parent)
    ordered = sorted(nodes, key=lambda node: node not in carries)
    for k, node in enumerate(ordered):
        node.index = k
    return ordered, len(carries)


def distance(ends: tuple[Point, Point]) -> float:
    """Distance between two points in the neutral configuration [m]."""
    a, b = ((neutral_pose(node) @ [*x, 1.0])[:3] for node, x in ends)
    return float(np.linalg.norm(b - a))


def neutral_pose(node: Node | None) -> np.ndarray:
    """Pose (4, 4) of a node in the world in the neutral configuration. Each node of the chain keeps its own."""
    chain = []
    while node is not None and node.neutral is None:
        chain.append(node)
        node = node.parent
    g = IDENTITY if node is None or node.neutral is None else node.neutral
    for here in reversed(chain):
        g = here.neutral = g @ here.G @ _neutral_motion(here)
    return g


def _neutral_motion(node: Node) -> np.ndarray:
    """exp(Ω) of a node in the neutral configuration, 4x4."""
    if isinstance(node.pose, MaterialFrame):
        return node.pose.reference
    if node.pose is not None:
        return node.pose.motion(np.zeros(node.Phi1.shape[1]))[0]
    return se3_exp(0.5 * node.h * (node.xi1 + node.xi2) + node.kappa * (se3_ad(node.xi1) @ node.xi2))


def _screw(node: Node) -> np.ndarray:
    """Φ (6,) of a node with Ω = Φ q, one column, made of a unit rotation vector w (or zero) and a displacement u along
    it; zero for other nodes."""
    if node.kind is not MotionKind.EXP or node.Phi1.shape[1] != 1 or node.kappa != 0.0 or node.h != 1.0:
        return np.zeros(6)
    Phi, rounding = node.Phi1[:, 0], 4.0 * np.finfo(float).eps
    w, u = Phi[:3], Phi[3:]
    is_unit = not w.any() or abs(w @ w - 1.0) <= rounding
    along = not u.any() or not w.any() or np.abs(np.cross(w, u)).max() <= rounding * np.abs(u).max()
    fits = is_unit and along and (node.Phi2[:, 0] == Phi).all() and not node.xi1.any() and not node.xi2.any()
    return Phi if fits else np.zeros(6)


def node_tables(nodes: list[Node], base: np.ndarray) -> tuple[Nodes, Runs]:
    """The flat tables of nodes. base: index of the base frame of each."""
    stored = [node.kind.has_quaternion for node in nodes]
    mapped = np.array([node.pose is not None for node in nodes], dtype=bool)
    deforms = np.array([node.kind is MotionKind.BODY for node in nodes], dtype=bool)
    both = [np.stack([n.Phi1, n.Phi2]) if n.kind is MotionKind.EXP else np.zeros((2, 6, 0)) for n in nodes]
    start, column, phi = component_runs(both, [n.v_start for n in nodes])
    tables = Nodes(
        placement=np.array([n.G for n in nodes]).reshape(-1, 4, 4),
        h=np.array([n.h for n in nodes], dtype=np.float64),
        kappa=np.array([n.kappa for n in nodes], dtype=np.float64),
        xi1=np.array([n.xi1 for n in nodes]).reshape(-1, 6),
        xi2=np.array([n.xi2 for n in nodes]).reshape(-1, 6),
        inertia=np.array([n.inertia for n in nodes]).reshape(-1, 6, 6),
        dry=np.array([n.dry for n in nodes]).reshape(-1, 4),
        heavy=np.array([n.heavy for n in nodes]).reshape(-1, 4),
        screw=np.array([_screw(n) for n in nodes]).reshape(-1, 6),
        run_start=start,
        run_v=column,
        parent=np.array([index_of(n.parent) for n in nodes], dtype=np.int32),
        base=base,
        kind=np.array([n.kind.value for n in nodes], dtype=np.int32),
        has_quaternion=np.array(stored, dtype=bool),
        map=np.where(mapped, np.cumsum(mapped), np.where(deforms, np.cumsum(deforms), 0)).astype(np.int32) - 1,
        v_start=np.array([n.v_start for n in nodes], dtype=np.int32),
        v_stop=np.array([n.v_start + n.Phi1.shape[1] for n in nodes], dtype=np.int32),
        q_shift=np.array([n.q_shift for n in nodes], dtype=np.int32),
        link=np.array([n.link for n in nodes], dtype=np.int32),
        s=np.array([n.s for n in nodes], dtype=np.float64),
    )
    return tables, Runs(phi1=phi[:, 0].copy(), phi2=phi[:, 1].copy())


def component_runs(bases: list[np.ndarray], v_start: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bases (m, 6, n) as runs: for each of the six strains, the range of columns with non-zero values.

    Returns:
        start (len, 7): where each strain's run starts in the values, then where the last one stops.
        v (len, 6): index in v of each run's first column.
        values (total, m).
    """
    points, width = bases[0].shape[0] if bases else 2, np.array([Phi.shape[2] for Phi in bases], dtype=int)
    first, stop = np.zeros((len(bases), 6), dtype=int), np.zeros((len(bases), 6), dtype=int)
    groups = []
    for n in np.unique(width[width > 0]):  # bases of the same width at a time
        rows = np.flatnonzero(width == n)
        Phi = np.stack([bases[k] for k in rows])  # (rows, m, 6, n)
        used = (Phi != 0.0).any(axis=1)
        first[rows] = used.argmax(axis=-1)
        stop[rows] = np.where(used.any(axis=-1), n - used[..., ::-1].argmax(axis=-1), first[rows])
        groups.append((rows, Phi))
    start = np.zeros((len(bases), 7), np.int32)
    if len(bases):
        start[:, 1:] = np.cumsum((stop - first).ravel()).reshape(-1, 6)
        start[1:, 0] = start[:-1, 6]
    values = np.empty((start[-1, 6] if len(bases) else 0, points))
    for rows, Phi in groups:
        column = np.arange(Phi.shape[3])
        inside = (first[rows, :, None] <= column) & (column < stop[rows, :, None])
        at = start[rows, :6, None] - first[rows, :, None] + column
        values[at[inside]] = np.moveaxis(Phi, 1, -1)[inside]
    v = np.asarray(v_start, dtype=int).reshape(-1, 1) + first
    return start, v.astype(np.int32), values


def base_tables(nodes: list[Node], ties: np.ndarray) -> tuple[Bases, np.ndarray]:
    """The base frames, and the index of the base frame of each node.

    Each tree has a base frame. Trees that a tie joins share the base frame of the heaviest one.

    Args:
        nodes: in the order of their numbers.
        ties: pairs of nodes (n, 2) between which a force acts; -1 is the world.
    """
    root = np.arange(len(nodes))
    for k, node in enumerate(nodes):
        if node.parent is not None:
            root[k] = root[node.parent.index]
    roots = np.flatnonzero([node.parent is None for node in nodes])
    mass = np.array([node.inertia[3:, 3:].trace() for node in nodes])
    of_tree = np.bincount(root, mass, minlength=len(nodes))
    weight = {int(r): float(of_tree[r]) for r in roots}
    tied = root[ties[(ties >= 0).all(axis=1)]].astype(np.int64)
    codes = np.unique(tied[:, 0] * len(nodes) + tied[:, 1])  # each pair of trees once, of the many pairs of their balls
    leader = _leaders(weight, {divmod(code, len(nodes)) for code in codes.tolist()})
    bases = sorted(set(leader.values()))
    number = {b: k for k, b in enumerate(bases)}
    next_of = {id(node.parent): node for node in reversed(nodes) if node.parent and node.parent.link == node.link}
    slides = [_sliding_joint(nodes[b], next_of) for b in bases]
    tables = Bases(
        position=np.array([nodes[b].G[:3, 3] for b in bases]).reshape(-1, 3),
        slide_start=np.cumsum([0] + [len(chain) for chain in slides]).astype(np.int32),
        slide=np.array([k for chain in slides for k in chain], dtype=np.int32),
    )
    return tables, np.array([number[leader[int(r)]] for r in root], dtype=np.int32)


def _leaders(weight: dict[int, float], tied: set[tuple[int, ...]]) -> dict[int, int]:
    """For each root, the heaviest of the roots tied to it, itself included; the first of equal ones."""
    groups = {r: {r} for r in weight}
    for a, b in tied:
        if groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for r in groups[b]:
                groups[r] = groups[a]
    return {r: max(sorted(group), key=lambda x: weight[x]) for r, group in groups.items()}


def _sliding_joint(root: Node, next_of: dict[int, Node]) -> list[int]:
    """The nodes of a root's joint, from the root to the last node that allows sliding. `next_of` has the first child of
    a node, by the node's id, on the same link."""
    chain, node = [], root
    while node is not None and _is_joint(node):
        chain.append(node)
        node = next_of.get(id(node))
    while chain and not _slides(chain[-1]):
        chain.pop()
    return [node.index for node in chain]


def _is_joint(node: Node) -> bool:
    """Whether a node belongs to a moving joint. Intervals of rods do not; neither do frames of deformable bodies, which
    the coordinates of the body do not move."""
    return node.Phi1.shape[1] > 0 and node.kappa == 0.0 and node.kind is not MotionKind.BODY


def _slides(node: Node) -> bool:
    """Whether the node of a joint may be displaced."""
    if node.kind is MotionKind.EXP:
        return bool(node.Phi1[3:].any())
    return node.kind is not MotionKind.SPHERICAL
