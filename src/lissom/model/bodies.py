"""Placement of bodies among the nodes: one class for each kind of body, and the table of these classes.

No other file distinguishes kinds of bodies; it reads a property of the body, such as its length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.bodies.integrals import stiffness_at_rest
from lissom.bodies.material_frames import MaterialFrame
from lissom.model.maps import MOST_IN_KERNELS
from lissom.model.nodes import IDENTITY, Flesh, Frame, Key, Node, Point, RodStrain, RodTable, numbered, point_before
from lissom.model.quadrature import exponentials, gauss_rule, interval_points, warn_inexact
from lissom.model.tree import TreeBuilder, felt_by
from lissom.robot import checks
from lissom.robot.bases import enriched_basis, has_intervals
from lissom.robot.bodies import Body, RigidBody, Rod
from lissom.robot.contact_points import FILLING
from lissom.robot.contacts import Contact
from lissom.robot.functions import profile
from lissom.robot.joints import MotionKind
from lissom.robot.materials import Material
from lissom.robot.poses import PoseFunction
from lissom.robot.robot import Link
from lissom.robot.sections import Constitution, Section, SectionGeneral
from lissom.robot.shapes import PlacedShape
from lissom.robot.surface_points import COLUMNS, end_points, section_points

WORLD: Frame = (None, IDENTITY)


def turned(G: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Radius, extent, normal, cell, its bends and kind (14,) of a row of surface_points, with vectors in axes of the
    node by the pose G."""
    return np.concatenate([row[3:5], (row[5:14].reshape(3, 3) @ G[:3, :3].T).ravel(), row[14:]])


def ball_row(radius: float, extent: float) -> np.ndarray:
    """The same numbers of a ball."""
    return np.array([radius, extent, *np.zeros(COLUMNS - 5)])


class Refined(NamedTuple):
    """A finer body for estimates of errors.

    It also holds the numbers of the body's own coordinates among the finer body's coordinates, and a text that says how
    to reduce the error; the name of the link is inserted into the text.
    """

    body: Body
    own: np.ndarray
    cure: str = ""


class PlacedBody(ABC):
    """The body of a link. `place` adds its nodes to the tree; afterwards `anchor` gives frames on it.

    The other methods have defaults here for bodies that do not extend along s.

    Fields:
        strain: the strain along s of a rod; it exists once the rod is placed.
    """

    strain: RodStrain

    @abstractmethod
    def place(self, tree: TreeBuilder, link: Link, base: Frame) -> None:
        """Add the body's nodes, mass and elasticity to the tree; `base` is the child frame of its joint."""

    @abstractmethod
    def anchor(self, s: Any) -> Frame:
        """The body's frame at s. A node is added for it if there is none."""

    def follow(self, other: PlacedBody) -> None:
        """Take over the unchanged data of `other`, the body of the same link before values of the description
        changed."""
        return None

    def point(self, s: Any) -> Frame:
        """A frame with its origin at s; its axes may differ from those at s."""
        return self.anchor(s)

    def along(self, s: Any) -> float:
        """The abscissa of s."""
        return float(s)

    def between(self, a: Any, b: Any) -> float:
        """Distance between two places along it [m]."""
        return abs(a - b) * self.length

    @property
    def doubt(self) -> str | None:
        """Warning about values of the body that are unlikely; None if there is none."""
        return None

    @property
    def size(self) -> int:
        """Number of coordinates of its own."""
        return 0

    @property
    def length(self) -> float:
        """Length along s [m]."""
        return 0.0

    @property
    def material(self) -> Material | None:
        """The material that gives its stiffness and mass; None for a body without a material."""
        return None

    def stretches(self, where: str) -> list[tuple[float, float, np.ndarray, np.ndarray]]:
        """Gauss rules for integrals along it: (start, stop, points, weights on [0, 1])."""
        return []

    def stations(self) -> list[tuple[float, float]]:
        """Abscissa and weight [m] of the points at which a distributed force acts."""
        return []

    def reach(self, s: float) -> float:
        """Largest distance of its outline from the line of its frames [m]; 0 if that is not known."""
        return 0.0

    @property
    def surface_material(self) -> Material | None:
        """The material of its surface in contacts; None is rigid."""
        return self.material

    @property
    def shapes(self) -> tuple[PlacedShape, ...]:
        """The collision shapes of a rigid body."""
        return ()

    @property
    def filling(self) -> int:
        """Largest number of balls that fill a mesh among its shapes."""
        return FILLING

    @property
    def has_balls(self) -> bool:
        """Whether it touches others by `balls`, not by points of its shapes."""
        return True

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[Any, Point, np.ndarray]]:
        """Place, centre, and radius [m], extent and normal (5,) of the balls by which it touches others; see
        robot.surface_points. Normals are in axes of the node."""
        yield from ()

    @property
    def layer(self) -> float:
        """Thickness of the elastic layer for contacts of its surface [m]."""
        return self.reach(0.5) or 1.0

    @property
    def deforms(self) -> bool:
        """Whether its own coordinates hold the compliance of its surface, which contacts then do not add."""
        return False

    @property
    def ball_area(self) -> float:
        """Area of the surface of a body that deforms, for each of its contact balls [m²]; 0 for other bodies."""
        return 0.0

    def refined(self, *, enriched: bool) -> Refined | None:
        """A finer body for estimates of its errors: one with more points, or also with more coordinates if it is
        `enriched` and more coordinates are known. None if there is no finer body."""
        return None

    @property
    def has_enrichment(self) -> bool:
        """Whether the error of its own coordinates can be estimated."""
        return True

    @property
    def extent(self) -> float:
        """Largest dimension of a body that deforms [m]; 0 for other bodies."""
        return self.length

    @property
    def skin(self) -> np.ndarray:
        """Material points, shape (n, 3) [m], on the surface of a body that deforms by coordinates of its own; empty for
        other bodies."""
        return np.zeros((0, 3))

    def moved(self, points: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Positions, shape (n, 3) [m], in its base frame of material points (n, 3) of such a body at its
        coordinates q."""
        return points

    def table(self) -> RodTable | None:
        """The table that places further points on a rod, once the nodes have numbers; None for other bodies."""
        return None


@final
class NoBody(PlacedBody):
    """A massless frame: the child frame of the joint."""

    def __init__(self, body: None) -> None:
        self.base = WORLD

    def place(self, tree: TreeBuilder, link: Link, base: Frame) -> None:
        self.base = base

    def anchor(self, s: float) -> Frame:
        return self.base


@final
class PlacedRigidBody(PlacedBody):
    """A rigid body. Its mass belongs to the last node of its joint, or to a node of its own if the joint does not
    move."""

    def __init__(self, body: RigidBody) -> None:
        self.body = body
        self.frame = WORLD

    def place(self, tree: TreeBuilder, link: Link, base: Frame) -> None:
        inertia = self.body.spatial_inertia()
        node, _ = base
        if node is None or link.joint.nv == 0:
            block, shift = tree.body_coordinates(link.name)
            node = Node(*base, tree.index[link.name], 0.0, block.start, shift)
            base = tree.add(node)
        tree.put_inertia(node, inertia)
        felt = felt_by(tree.robot, link.name)
        if felt is not None:
            tree.put_in_fluid(node, felt.by_body(self.body))
        self.frame = base

    def anchor(self, s: float) -> Frame:
        return self.frame

    @property
    def surface_material(self) -> Material | None:
        return self.body.material

    @property
    def shapes(self) -> tuple[PlacedShape, ...]:
        return self.body.collision_shapes

    @property
    def filling(self) -> int:
        return self.body.balls if isinstance(self.body.balls, int) else FILLING

    @property
    def has_balls(self) -> bool:
        return self.body.ball_rows is not None

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[float, Point, np.ndarray]]:
        (node, G), balls = self.frame, self.body.ball_rows
        if balls is None:
            return
        extents = self.body.ball_extents(balls)
        area = extents**2 * np.pi / 4.0 if contact.surface else extents
        for row in np.column_stack([balls, area, np.zeros((len(balls), COLUMNS - 5))]):
            yield 1.0, (node, G[:3, :3] @ row[:3] + G[:3, 3]), turned(G, row)

    @property
    def layer(self) -> float:
        return self.body.half_thickness


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
        self.modes = np.zeros((0, 6, 0))
        self.rule: list[tuple[float, float, np.ndarray, np.ndarray]] = []
        self.known: dict[Any, Any] = {}

    def follow(self, other: PlacedBody) -> None:
        old, new = other.body if isinstance(other, PlacedRod) else None, self.body
        if not isinstance(other, PlacedRod) or old is None:
            return
        same = {name for name in vars(new) if getattr(new, name) is getattr(old, name)}
        if {"basis", "reference_strain", "interval_points"} <= same:
            self.known = other.known
        if {"basis", "section", "reference_strain", "gauss_points"} <= same and (
            new.reference_strain is None or "length" in same
        ):
            self.rule = other.rule

    def place(self, tree: TreeBuilder, link: Link, base: Frame) -> None:
        where, rod = f"link {link.name!r} > body", self.body
        block, shift = tree.body_coordinates(link.name)
        tree.dof_q[block] = np.arange(block.start, block.stop) + shift
        self.tree, self.link, self.base = tree, tree.index[link.name], base
        self.felt = felt_by(tree.robot, link.name)
        reference, points = rod.strain_reference(where), interval_points(rod)
        known = self.known
        self.strain = RodStrain(rod.length, rod.basis.evaluate, reference, points, block.start, shift, rod.basis, known)
        self._add_intervals(where)
        self._put_sections(where)
        turning = np.any([self.strain.modes(s)[:3].any(axis=0) for s in np.linspace(0.013, 0.987, 7).tolist()], axis=0)
        tree.scale[block] = np.where(turning, 1.0 / rod.length, 1.0)
        if tree.warns:
            warn_inexact(rod, where)
        wake = None if self.felt is None else self.felt.wake(rod.section)
        if wake is not None:
            tree.tails.append((self.nodes[-1], wake))

    def _add_intervals(self, where: str) -> None:
        """Add nodes at the Gauss points, which carry mass, and at the ends of smooth stretches, which have none."""
        here, s0, in_two = self.base, 0.0, exponentials(self.body) == 2
        for _, stop, points, weights in self.stretches(where):
            for s, weight in [*zip(points.tolist(), (weights * self.length).tolist()), (stop, 0.0)]:
                if in_two and self.strain.varies(s0, s):
                    first, node = self.strain.halves(self.link, here, s0, s)
                    self.tree.add(first)
                else:
                    node = self.strain.interval(self.link, here, s0, s)
                here, s0 = self.tree.add(node), s
                self.nodes.append(node)
                self.node_s.append(s)
                self.weight.append(weight)
        self.modes = np.array([self.strain.modes(s) for s, _ in self.stations()])

    def _put_sections(self, where: str) -> None:
        """Put masses on the nodes, and K and D of the rod into the tree, by section and material."""
        section: Constitution | None = None
        sections: list[Constitution] = []
        weights = np.array([weight for weight in self.weight if weight > 0.0])
        for node, s, weight in zip(self.nodes, self.node_s, self.weight):
            if weight > 0.0:
                if section is None or not self.body.section.is_uniform:
                    section = self.body.section.constitution(s, self.body.material, f"{where} > section")
                sections.append(section)
                self.tree.put_inertia(node, weight * section.inertia)
                if self.felt is not None:
                    self.tree.put_in_fluid(node, self.felt.by_rod(self.body.section, s, weight))
        Phi = self.modes
        K, D = (
            np.tensordot(Phi, weights[:, None, None] * np.array(found) @ Phi, ([0, 1], [0, 1]))
            for found in ([x.stiffness for x in sections], [x.damping for x in sections])
        )
        self.tree.put_elasticity(self.strain.v_start, (K + K.T) / 2, (D + D.T) / 2)

    def take_section(self, body: Rod) -> bool:
        """Take section and material of a rod that is otherwise the same, on the present nodes.

        Returns:
            False if its Gauss points lie elsewhere. Then nothing was done.
        """
        where = f"link {self.tree.names[self.link]!r} > body"
        is_tapered = not (body.section.is_uniform and self.body.section.is_uniform)  # uniform sections have one rule
        if is_tapered and not _same_rules(gauss_rule(body, where), self.rule):
            return False
        self.body = body
        self.tree.mass[self.link] = 0.0
        self._put_sections(where)
        return True

    def anchor(self, s: float) -> Frame:
        """The frame at s: that of a node there, or of a massless leaf on the last node before s."""
        k = point_before(self.node_s, s)
        before, s0 = ((self.nodes[k], IDENTITY), self.node_s[k]) if k >= 0 else (self.base, 0.0)
        if s - s0 <= 1e-12:
            return before
        if s not in self.leaves:
            self.leaves[s] = self.strain.interval(self.link, before, s0, s)
            self.tree.add(self.leaves[s])
        return self.leaves[s], IDENTITY

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
        if not self.rule:
            self.rule = gauss_rule(self.body, where)
        return self.rule

    def stations(self) -> list[tuple[float, float]]:
        return [(s, weight) for s, weight in zip(self.node_s, self.weight) if weight > 0.0]

    def reach(self, s: float) -> float:
        section = self.body.section
        return 0.0 if isinstance(section, SectionGeneral) and section.shape is None else Section.radius(section, s)

    @property
    def surface_material(self) -> Material | None:
        return self.body.material

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[float, Point, np.ndarray]]:
        """Balls at the rod's ends, at its Gauss points, and evenly between them, or points on its outline there. Each
        stands for half the ways to its neighbours."""
        ends = np.unique(np.concatenate([[0.0], self.node_s]))
        inner = [np.linspace(a, b, contact.per_interval, endpoint=False) for a, b in pairwise(ends)]
        s = np.append(np.concatenate(inner), 1.0)
        middle = np.concatenate([[0.0], 0.5 * (s[1:] + s[:-1]), [1.0]])
        for at, extent in zip(s.tolist(), (self.length * np.diff(middle)).tolist()):
            node, G = self.anchor(at)
            if contact.surface:
                rows = [section_points(self.body.section, at, contact.count, extent)]
                rows += [end_points(self.body.section, at, contact.count)] if at in (0.0, 1.0) else []
                for row in np.concatenate(rows):
                    yield at, (node, G[:3, :3] @ row[:3] + G[:3, 3]), turned(G, row)
                continue
            given = contact.radius
            radius = self.body.section.inner_radius(at) if given is None else profile(given, where)(at)
            yield at, (node, G[:3, 3]), ball_row(radius, extent)

    @property
    def layer(self) -> float:
        return self.body.section.inner_radius(0.5)

    def refined(self, *, enriched: bool) -> Refined:
        rod = self.body
        count = max(len(points) for _, _, points, _ in self.stretches("refined rod"))
        halved = enriched and has_intervals(rod.basis)  # then each of the intervals has twice as many points, too
        points = count + 1 if halved else 2 * count + 2
        finer = replace(rod, gauss_points=points, interval_points=None, exponentials=2)
        finer = replace(finer, basis=enriched_basis(rod.basis)) if enriched else finer
        return Refined(finer, np.arange(self.size))

    def table(self) -> RodTable:
        index = np.array([node.index for node in self.nodes])
        return RodTable(self.strain, numbered(self.base), index, np.array(self.node_s), np.array(self.weight))


@final
class PlacedDeformableBody(PlacedBody):
    """A deformable body. A node at its base has its coordinates; frames on the body are mapped nodes on that node."""

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

    def refined(self, *, enriched: bool) -> Refined | None:
        if enriched and self.body.enriched is not None:
            finer, found = self.body.enriched
            return Refined(finer, found.own, found.cure)
        finer = self.body.finer_choice
        return Refined(replace(self.body, **finer), np.arange(self.size)) if finer else None

    @property
    def has_enrichment(self) -> bool:
        return self.body.enriched is not None

    @property
    def extent(self) -> float:
        return float(np.ptp(self.skin, axis=0).max())

    @property
    def skin(self) -> np.ndarray:
        return self.body.domain.surface().vertices

    def moved(self, points: np.ndarray, q: np.ndarray) -> np.ndarray:
        return self.body.moved(points, q)

    def place(self, tree: TreeBuilder, link: Link, base: Frame) -> None:
        integrals, n = self.body.integrals, self.size
        block, shift = tree.body_coordinates(link.name)
        tree.dof_q[block] = np.arange(block.start, block.stop) + shift
        known = integrals.linear_coefficients() if self.body.motion.is_linear else None
        pointwise, stiffness = None, None if known is None else known.K2
        if known is not None and (known.K2 is None or (known.K3 is not None and n > MOST_IN_KERNELS)):
            pointwise = integrals.pointwise
            known = None if pointwise is None else known  # without native code kernels cannot evaluate its elasticity
            if stiffness is None and known is not None:
                stiffness = stiffness_at_rest(integrals.kinematics, integrals.domain, integrals.material)
        if known is not None and stiffness is not None:
            D = self.body.material.damping_time * stiffness
            has_rows = known.K3 is None and pointwise is None  # the others have terms of their own
            tree.put_elasticity(block.start, stiffness, D, has_rows=has_rows)
        none = np.zeros((6, n))
        self.behind, self.q_start = base, block.start + shift
        self.tree, self.link = tree, tree.index[link.name]
        node = Node(*base, self.link, 0.0, block.start, shift, MotionKind.BODY, none, none)
        node.flesh = Flesh(integrals, known, pointwise, self.leaves)
        self.base = tree.add(node)
        tree.put_inertia(node, _reference_inertia(integrals.domain.points, integrals.masses))
        self.anchor(1.0)  # the place of the link in results

    def anchor(self, s: Any) -> Frame:
        """The frame at s. It belongs to a mapped node, which turns with the material there."""
        if is_material(s):
            return self._at_point(s, turns=True)
        if s == 0.0 or self.base[0] is None:
            return self.base
        return self._leaf(float(s), float(s), self._pose)

    def point(self, s: Any) -> Frame:
        """A frame with its origin at s. For a material point its node keeps the axes of the body."""
        return self._at_point(s, turns=False) if is_material(s) else self.anchor(s)

    def end_of_path(self, x: np.ndarray) -> Point:
        """The material point x, shape (3,) [m], at which a tendon enters or leaves the body, as a point of a node to
        which it is fixed: the node behind the body, its tip, or a mapped node of its own."""
        tip = self.body.tip_pose
        if self.base[0] is None or self.body.stays(x, None):
            behind, G = self.behind
            return behind, G[:3, :3] @ x + G[:3, 3]
        if tip is not None and self.body.stays(x, tip):
            g = tip.reference if isinstance(tip, MaterialFrame) else tip.motion(np.zeros(self.size))[0]
            return self.anchor(1.0)[0], g[:3, :3].T @ (x - g[:3, 3])
        node, _ = self._leaf((False, *x.tolist()), 1.0, lambda _: self.body.frames.at(x, turns=False))
        return node, np.zeros(3)

    @property
    def surface_material(self) -> Material:
        moduli = self.body.material.moduli()
        shear, first = float(moduli[1, 1]), float(moduli[0, 4])
        poisson = getattr(self.body.material, "poisson", 0.5 * first / (first + shear) if first else 0.5)
        return Material(young=2.0 * shear * (1.0 + poisson), poisson=poisson, density=1.0)

    def balls(self, contact: Contact, where: str) -> Iterator[tuple[Any, Point, np.ndarray]]:
        if contact.surface:
            for row in self.body.domain.surface_cells(contact.count):
                node, G = self.anchor(row[:3].tolist())
                yield tuple(row[:3].tolist()), (node, G[:3, 3]), turned(G, row)
            return
        width = 2.0 * np.sqrt(self.ball_area / np.pi)
        for *x, radius in self.body.ball_rows.tolist():
            node, _ = self.point(x)
            yield tuple(x), (node, np.zeros(3)), ball_row(radius, 0.0 if radius > 0.0 else width)

    @property
    def layer(self) -> float:
        return self.body.domain.volume / self.body.domain.surface().area

    @property
    def deforms(self) -> bool:
        return True

    @property
    def ball_area(self) -> float:
        return self.body.domain.surface().area / max(len(self.body.ball_rows), 1)

    def along(self, s: Any) -> float:
        """The abscissa of s. For a material point it is that of the nearest point on the line from base to tip."""
        if not is_material(s):
            return float(s)
        base, tip = (self.body.domain.places[name] for name in ("base", "tip"))
        x, axis = self.body.material_point(s, "s"), tip - base
        return float(np.clip((x - base) @ axis / (axis @ axis), 0.0, 1.0))

    def between(self, a: Any, b: Any) -> float:
        """Distance between two places in the reference shape [m]."""
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
        return self.leaves[key], IDENTITY

    def _straight(self, s: float) -> np.ndarray:
        """The material point at s on the line from base to tip."""
        ends = self.body.domain.places
        return (1.0 - s) * ends["base"] + s * ends["tip"]

    def _pose(self, s: float) -> PoseFunction | MaterialFrame:
        """The pose at s: that of the tip at s = 1 if the body has one, otherwise a frame that follows the material."""
        if s == 1.0 and self.body.tip_pose is not None:
            return self.body.tip_pose
        return self.body.frame(self._straight(s))


def is_material(s: Any) -> bool:
    """Whether a place is a material point or the name of one, not an abscissa."""
    return isinstance(s, str) or bool(checks.shape(s))


def _reference_inertia(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Inertia (6, 6) about the origin of point masses [kg] at points (n, 3) [m], angular first."""
    mass, c = masses.sum(), masses @ points
    P = np.einsum("k,ka,kb->ab", masses, points, points)
    C = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    return np.block([[np.trace(P) * np.eye(3) - P, C], [C.T, mass * np.eye(3)]])


PLACED: dict[type[Body] | type[None], Any] = {
    Rod: PlacedRod,
    RigidBody: PlacedRigidBody,
    DeformableBody: PlacedDeformableBody,
    type(None): NoBody,
}


def placed(body: Body | None) -> PlacedBody:
    """The body of a link before it is placed on nodes."""
    return PLACED[type(body)](body)


def anchor(bodies: Mapping[str, PlacedBody], link: str | None, s: Any, *, turned: bool = True) -> Frame:
    """The frame of a link at s, of the world for None. Without `turned` its axes may differ from those at s."""
    if link is None:
        return WORLD
    return bodies[link].anchor(s) if turned else bodies[link].point(s)


def point(bodies: Mapping[str, PlacedBody], link: str | None, s: Any, position: Any) -> Point:
    """The point at `position` in the frame of a link at s, or in the world."""
    node, G = anchor(bodies, link, s, turned=bool(np.any(position)))
    return node, shifted(G, position)[:3, 3]


def shifted(G: np.ndarray, position: Any) -> np.ndarray:
    """The frame G moved to a position given in it."""
    moved = G.copy()
    moved[:3, 3] += G[:3, :3] @ np.asarray(position, dtype=np.float64)
    return moved


def _same_rules(a: Sequence[tuple[Any, ...]], b: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two results of gauss_rule are equal."""
    return len(a) == len(b) and all(np.array_equal(x, y) for pair in zip(a, b) for x, y in zip(*pair))
