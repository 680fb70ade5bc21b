"""How deformable bodies place themselves among the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.bodies.material_frames import MaterialFrame
from lissom.model.deforming import MOST_IN_KERNELS
from lissom.model.growing import GrowingTree
from lissom.model.nodes import Flesh, Frame, Key, Node, Point
from lissom.model.placed_body import WORLD, PlacedBody
from lissom.robot.contacts import Contact
from lissom.robot.joints import MotionKind
from lissom.robot.poses import PoseFunction
from lissom.robot.robot import Link


@final
class PlacedDeformableBody(PlacedBody):
    """A node that owns the body's coordinates at its base; frames on the body hang from that as mapped nodes."""

    def __init__(self, body: DeformableBody) -> None:
        self.body = body
        self.base = self.behind = WORLD
        self.leaves: dict[Key, Node] = {}
        self.q_start = 0

    @property
    def doubt(self) -> str | None:
        return self.body.doubt

    @property
    def size(self) -> int:
        return self.body.motion.n

    def refined(self, *, enriched: bool) -> dict[str, Any]:
        return self.body.finer_choice

    def outline(self, q: np.ndarray) -> np.ndarray:
        return self.body.surface(q).vertices

    def place(self, tree: GrowingTree, link: Link, base: Frame) -> None:
        integrals, n = self.body.integrals, self.size
        block, shift = tree.body_coordinates(link.name)
        tree.dof_q[block] = np.arange(block.start, block.stop) + shift
        known = integrals.linear_coefficients() if self.body.motion.is_linear else None
        if known is not None and (known.K2 is None or (known.K3 is not None and n > MOST_IN_KERNELS)):
            known = None  # kernels do not know its elasticity
        if known is not None and known.K2 is not None:
            D = self.body.material.damping_time * known.K2
            tree.put_elasticity(block.start, known.K2, D, has_rows=known.K3 is None)  # others stand with K3 and K4
        none = np.zeros((6, n))
        self.behind, self.q_start = base, block.start + shift
        self.tree, self.link = tree, tree.names.index(link.name)
        node = Node(*base, self.link, 0.0, block.start, shift, MotionKind.BODY, none, none)
        node.flesh = Flesh(integrals, known, self.leaves)
        self.base = tree.add(node)
        tree.put_inertia(node, _reference_inertia(integrals.domain.points, integrals.masses))
        self.anchor(1.0)  # where the link is said to be

    def anchor(self, s: Any) -> Frame:
        """On a mapped node that follows the material there."""
        if is_material(s):
            return self._at_point(s, turns=True)
        if s == 0.0 or self.base[0] is None:
            return self.base
        return self._leaf(float(s), float(s), self._pose)

    def point(self, s: Any) -> Frame:
        """On a mapped node that keeps the axes of the body where s is a material point."""
        return self._at_point(s, turns=False) if is_material(s) else self.anchor(s)

    def end_of_path(self, x: np.ndarray) -> Point:
        """A material point where a tendon enters or leaves, on a node with which it moves: what the body hangs on, its
        tip, or a node of its own."""
        tip = self.body.tip_pose
        if self.base[0] is None or self.body.stays(x, None):
            behind, G = self.behind
            return behind, G[:3, :3] @ x + G[:3, 3]
        if tip is not None and self.body.stays(x, tip):
            g = tip.reference if isinstance(tip, MaterialFrame) else tip.motion(np.zeros(self.size))[0]
            return self.anchor(1.0)[0], g[:3, :3].T @ (x - g[:3, 3])
        node, _ = self._leaf((False, *x.tolist()), 1.0, lambda _: self.body.frames.at(x, turns=False))
        return node, np.zeros(3)

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[Any, Point, float]]:
        for *x, radius in self.body.ball_rows.tolist():
            node, _ = self.point(x)
            yield tuple(x), (node, np.zeros(3)), radius

    def along(self, s: Any) -> float:
        """Of a material point that of the nearest place between base and tip."""
        if not is_material(s):
            return float(s)
        base, tip = (self.body.domain.places[name] for name in ("base", "tip"))
        x, axis = self.body.material_point(s, "s"), tip - base
        return float(np.clip((x - base) @ axis / (axis @ axis), 0.0, 1.0))

    def between(self, a: Any, b: Any) -> float:
        """In the reference shape."""
        x, y = (self.body.material_point(s, "s") if is_material(s) else self._straight(s) for s in (a, b))
        return float(np.linalg.norm(x - y))

    def _at_point(self, s: Any, *, turns: bool) -> Frame:
        x = self.body.material_point(s, "s")
        key = (turns, *x.tolist())
        return self._leaf(key, self.along(s), lambda _: self.body.frames.at(x, turns=turns))

    def _leaf(self, key: Key, s: float, pose: Callable[[float], PoseFunction | MaterialFrame]) -> Frame:
        node, _ = self.base
        if node is None:
            return self.base
        if key not in self.leaves:
            none = np.zeros((6, self.size))
            leaf = Node(*self.base, self.link, s, node.v_start, node.q_shift, MotionKind.MAP, none, none)
            leaf.pose = pose(s)
            self.leaves[key] = leaf
            self.tree.add(leaf)
        return self.leaves[key], np.eye(4)

    def _straight(self, s: float) -> np.ndarray:
        """The material point at s on the line from base to tip."""
        ends = self.body.domain.places
        return (1.0 - s) * ends["base"] + s * ends["tip"]

    def _pose(self, s: float) -> PoseFunction | MaterialFrame:
        """The tip at s = 1, if one is given, otherwise what follows the material between base and tip."""
        if s == 1.0 and self.body.tip_pose is not None:
            return self.body.tip_pose
        return self.body.frame(self._straight(s))


def is_material(s: Any) -> bool:
    """Whether a place is a material point or the name of one, and no abscissa."""
    return isinstance(s, str) or np.ndim(s) > 0


def _reference_inertia(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """6x6 of masses at points, about the origin."""
    mass, c = masses.sum(), masses @ points
    P = np.einsum("k,ka,kb->ab", masses, points, points)
    C = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    return np.block([[np.trace(P) * np.eye(3) - P, C], [C.T, mass * np.eye(3)]])
