"""How bodies place themselves among the nodes: one class for each kind of body, and the table that names them.

Nothing else asks what kind a body is. Who needs to know asks for what follows from it, such as its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.model.deformable_bodies import PlacedDeformableBody
from lissom.model.enrichment import enriched_basis
from lissom.model.fluid import felt_by
from lissom.model.growing import GrowingTree
from lissom.model.nodes import Frame, Node, Point, RodStrain, RodTable, numbered, point_before
from lissom.model.placed_body import WORLD, PlacedBody
from lissom.model.quadrature import exponentials, gauss_rule, interval_points, warn_inexact
from lissom.robot import checks
from lissom.robot.bodies import Body, RigidBody, Rod
from lissom.robot.contacts import Contact
from lissom.robot.functions import profile
from lissom.robot.materials import Material
from lissom.robot.robot import Link
from lissom.robot.sections import Section, SectionGeneral


@final
class NoBody(PlacedBody):
    """A massless frame: the child frame of the joint."""

    def __init__(self, body: None) -> None:
        self.base = WORLD

    def place(self, tree: GrowingTree, link: Link, base: Frame) -> None:
        self.base = base

    def anchor(self, s: float) -> Frame:
        return self.base


@final
class PlacedRigidBody(PlacedBody):
    """Its mass goes to the last node of its joint, or to one of its own where that does not move."""

    def __init__(self, body: RigidBody) -> None:
        self.body = body
        self.frame = WORLD

    def place(self, tree: GrowingTree, link: Link, base: Frame) -> None:
        inertia = self.body.spatial_inertia("body")
        node, _ = base
        if node is None or link.joint.nv == 0:
            block, shift = tree.body_coordinates(link.name)
            node = Node(*base, tree.names.index(link.name), 0.0, block.start, shift)
            base = tree.add(node)
        tree.put_inertia(node, inertia)
        felt = felt_by(tree.robot, link.name)
        if felt is not None:
            tree.put_in_fluid(node, felt.by_body(self.body))
        self.frame = base

    def anchor(self, s: float) -> Frame:
        return self.frame

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[float, Point, float]]:
        node, G = self.frame
        rows = checks.array(self.body.balls, (-1, 4), where, "must be rows (x, y, z, radius)")
        for *x, radius in rows.tolist():
            yield 1.0, (node, (G @ [*x, 1.0])[:3]), float(radius)


@final
class PlacedRod(PlacedBody):
    """A chain of intervals between the Gauss points of a rod, which carry its mass."""

    def __init__(self, body: Rod) -> None:
        self.body = body
        self.base = WORLD
        self.nodes: list[Node] = []
        self.node_s: list[float] = []
        self.weight: list[float] = []
        self.leaves: dict[float, Node] = {}

    def place(self, tree: GrowingTree, link: Link, base: Frame) -> None:
        where, rod = f"link {link.name!r} > body", self.body
        block, shift = tree.body_coordinates(link.name)
        tree.dof_q[block] = np.arange(block.start, block.stop) + shift
        self.tree, self.link, self.base = tree, tree.names.index(link.name), base
        self.felt = felt_by(tree.robot, link.name)
        reference, points = rod.strain_reference(where), interval_points(rod)
        self.strain = RodStrain(rod.length, rod.basis.evaluate, reference, points, block.start, shift, rod.basis)
        K, D = self._add_intervals(where)
        turning = np.any([self.strain.basis(s)[:3].any(axis=0) for s in np.linspace(0.013, 0.987, 7)], axis=0)
        tree.scale[block] = np.where(turning, 1.0 / rod.length, 1.0)
        tree.put_elasticity(block.start, (K + K.T) / 2, (D + D.T) / 2)
        warn_inexact(rod, where)
        wake = None if self.felt is None else self.felt.wake(rod.section)
        if wake is not None:
            tree.tails.append((self.nodes[-1], wake))

    def _add_intervals(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """Add nodes at the Gauss points, with mass, and at the ends of smooth stretches, without; K and D."""
        K, D = np.zeros((self.size, self.size)), np.zeros((self.size, self.size))
        here, s0, in_two = self.base, 0.0, exponentials(self.body) == 2
        for _, stop, points, weights in self.stretches(where):
            for s, weight in [*zip(points, weights * self.length), (stop, 0.0)]:
                if in_two and self.strain.varies(s0, float(s)):
                    first, node = self.strain.halves(self.link, here, s0, float(s))
                    self.tree.add(first)
                else:
                    node = self.strain.interval(self.link, here, s0, float(s))
                here, s0 = self.tree.add(node), float(s)
                self.nodes.append(node)
                self.node_s.append(s0)
                self.weight.append(float(weight))
                if weight > 0.0:
                    section = self.body.section.constitution(s0, self.body.material, f"{where} > section")
                    Phi = self.body.basis.evaluate(s0)
                    self.tree.put_inertia(node, weight * section.inertia)
                    if self.felt is not None:
                        self.tree.put_in_fluid(node, self.felt.by_rod(self.body.section, s0, weight))
                    K += weight * Phi.T @ section.stiffness @ Phi
                    D += weight * Phi.T @ section.damping @ Phi
        return K, D

    def anchor(self, s: float) -> Frame:
        """On a leaf, hung from the last point before s where none is there."""
        k = point_before(self.node_s, s)
        before, s0 = ((self.nodes[k], np.eye(4)), self.node_s[k]) if k >= 0 else (self.base, 0.0)
        if s - s0 <= 1e-12:
            return before
        if s not in self.leaves:
            self.leaves[s] = self.strain.interval(self.link, before, s0, s)
            self.tree.add(self.leaves[s])
        return self.leaves[s], np.eye(4)

    @property
    def size(self) -> int:
        return self.body.basis.size

    @property
    def length(self) -> float:
        return self.body.length

    @property
    def material(self) -> Material | None:
        section = self.body.section
        states = isinstance(section, SectionGeneral) and section.stiffness is not None and section.inertia is not None
        return None if states else self.body.material

    def stretches(self, where: str) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
        return gauss_rule(self.body, where)

    def stations(self) -> list[tuple[float, float]]:
        return [(s, weight) for s, weight in zip(self.node_s, self.weight) if weight > 0.0]

    def reach(self, s: float) -> float:
        section = self.body.section
        return 0.0 if isinstance(section, SectionGeneral) and section.shape is None else Section.radius(section, s)

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[float, Point, float]]:
        """At its ends, its Gauss points, and evenly between them."""
        ends = np.unique(np.concatenate([[0.0], self.node_s]))
        inner = [np.linspace(a, b, contact.per_interval, endpoint=False) for a, b in pairwise(ends)]
        for s in [*np.concatenate(inner).tolist(), 1.0]:
            node, G = self.anchor(s)
            given = contact.radius
            radius = self.body.section.inner_radius(s) if given is None else profile(given, where)(s)
            yield s, (node, G[:3, 3]), radius

    def refined(self, *, enriched: bool) -> dict[str, Any]:
        rod = self.body
        count = max(len(points) for _, _, points, _ in self.stretches("refined rod"))
        values: dict[str, Any] = {"gauss_points": 2 * count + 2, "interval_points": None, "exponentials": 2}
        return values | ({"basis": enriched_basis(rod.basis)} if enriched else {})

    def table(self) -> RodTable:
        index = np.array([node.index for node in self.nodes])
        return RodTable(self.strain, numbered(self.base), index, np.array(self.node_s), np.array(self.weight))


PLACED: dict[type[Body] | type[None], Any] = {
    Rod: PlacedRod,
    RigidBody: PlacedRigidBody,
    DeformableBody: PlacedDeformableBody,
    type(None): NoBody,
}


def placed(body: Body | None) -> PlacedBody:
    """The body of a link, yet to be placed."""
    return PLACED[type(body)](body)


def anchor(bodies: Mapping[str, PlacedBody], link: str | None, s: Any, *, turned: bool = True) -> Frame:
    """The frame of a link at s; None is the world. Where it need not be `turned` as s is, its origin alone counts."""
    if link is None:
        return WORLD
    return bodies[link].anchor(s) if turned else bodies[link].point(s)


def point(bodies: Mapping[str, PlacedBody], link: str | None, s: Any, position: Any) -> Point:
    """A point fixed to a link at s, or to the world, at a position in the frame there."""
    node, G = anchor(bodies, link, s, turned=bool(np.any(position)))
    return node, shifted(G, position)[:3, 3]


def shifted(G: np.ndarray, position: Any) -> np.ndarray:
    """The frame G moved to a position given in it."""
    moved = G.copy()
    moved[:3, 3] += G[:3, :3] @ np.asarray(position, dtype=np.float64)
    return moved
