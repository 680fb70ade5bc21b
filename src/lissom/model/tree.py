"""The tree of a robot during the build: nodes, coordinates, masses, elasticity and the fluid at each node.

Bodies and joints add to a `TreeBuilder`, one link after another; `place_joint` adds the nodes of a joint.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from lissom.model.groups import Elasticity, PoseSprings
from lissom.model.nodes import IDENTITY, Frame, Node
from lissom.robot import checks
from lissom.robot.bodies import RigidBody
from lissom.robot.fluid import Hydrodynamics, Immersion
from lissom.robot.joints import stored_pose
from lissom.robot.robot import Link, Robot
from lissom.robot.sections import Section


class Wet(NamedTuple):
    """The fluid at a node.

    Fields:
        added: added inertia, shape (6, 6).
        drag: drag matrix, shape (6, 6).
        weightless: added inertia plus inertia of the displaced fluid, on which gravity does not act, shape (6, 6).
        carried: first moment [kg·m] and mass [kg] of the displaced fluid, shape (4,).
    """

    added: np.ndarray
    drag: np.ndarray
    weightless: np.ndarray
    carried: np.ndarray


@final
class Felt(NamedTuple):
    """The fluid on a link: coefficients, density [kg/m³] and the path of the link in errors."""

    feels: Hydrodynamics
    density: float
    where: str

    def by_body(self, body: RigidBody) -> Wet:
        """The fluid on a rigid body. The centre of the displaced volume is the body frame for a body with a form, and
        the centre of mass for others."""
        return _displaced(self.feels.of_body(body, self.density, self.where), 1.0, self.density)

    def by_rod(self, section: Section, s: float, weight: float) -> Wet:
        """The fluid on a length `weight` of a rod at s."""
        return _displaced(self.feels.of_rod(section, s, self.density, self.where), weight, self.density)

    def wake(self, section: Section) -> np.ndarray | None:
        """Added mass across the tip of a rod, shape (3, 3) [kg/m]; None if no wake starts there."""
        if not self.feels.tail:
            return None
        added = self.feels.of_rod(section, 1.0, self.density, self.where).added
        return np.diag([0.0, added[4, 4], added[5, 5]])


def felt_by(robot: Robot, link: str) -> Felt | None:
    """The fluid on a link; None if it does not act on the link."""
    feels = None if robot.fluid is None else robot.fluid.felt_by(link)
    if robot.fluid is None or feels is None:
        return None
    return Felt(feels, robot.fluid.density, f"fluid > link {link!r}")


def _displaced(immersion: Immersion, weight: float, density: float) -> Wet:
    """The fluid on a body, or on a length `weight` of a rod."""
    mass, centre = weight * density * immersion.volume, immersion.centre
    x, y, z = centre
    C = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    fluid = mass * np.block([[-C @ C, C], [-C, np.eye(3)]])
    added = weight * immersion.added
    return Wet(added, weight * immersion.drag, added + fluid, np.array([*(mass * centre), mass]))


@final
class TreeBuilder:
    """Collects nodes, coordinates and elasticity of joints and bodies. Nodes are objects, which have no numbers yet.

    Fields:
        names: of the links, in the order added. index: number of each link by name.
        nodes: parents before children.
        q_start, v_start: first coordinate of each link; the coordinates of its joint precede those of its body.
        neutral: the neutral configuration, shape (nq,).
        dof_q, scale, rest, armature: by coordinate, shape (nv,) each, see Dofs.
        groups: springs of spherical and free joints: node, rest pose (4, 4), stiffness (6, 6).
        mass: of each link [kg].
        wet: nodes in the fluid, with the fluid there.
        tails: nodes with a wake, with their added mass (3, 3) [kg/m].
    """

    def __init__(self, robot: Robot, sizes: dict[str, int]) -> None:
        """Number the coordinates.

        Args:
            sizes: number of coordinates of each link's body.
        """
        self.robot, self.warns = robot, True
        self.names = list(robot.links)
        self.index = {name: k for k, name in enumerate(self.names)}
        self.sizes = sizes
        self.nodes: list[Node] = []
        self.mass = np.zeros(len(self.names))
        self.groups: list[tuple[Node, np.ndarray, np.ndarray]] = []
        self.wet: list[tuple[Node, Wet]] = []
        self.tails: list[tuple[Node, np.ndarray]] = []
        self.q_start, self.v_start, neutral = [0], [0], []
        for name in self.names:
            joint, size = robot.links[name].joint, sizes[name]
            self.q_start.append(self.q_start[-1] + joint.nq + size)
            self.v_start.append(self.v_start[-1] + joint.nv + size)
            neutral += [joint.neutral(), np.zeros(size)]
        self.neutral = np.concatenate(neutral)
        self.nv = self.v_start[-1]
        self.dof_q = np.full(self.nv, -1, dtype=np.int32)
        self.scale = np.ones(self.nv)
        self.rest = np.zeros(self.nv)
        self.armature = np.zeros(self.nv)
        self._elastic: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, bool]] = {}

    def add(self, node: Node) -> Frame:
        """Add a node, after its parent.

        Returns:
            the frame of the node.
        """
        self.nodes.append(node)
        return node, IDENTITY

    def body_coordinates(self, link: str) -> tuple[slice, int]:
        """The coordinates of a link's body: their range in v, and their shift from v to q."""
        k, joint = self.index[link], self.robot.links[link].joint
        v = self.v_start[k] + joint.nv
        return slice(v, v + self.sizes[link]), self.q_start[k] + joint.nq - v

    def armatures(self) -> np.ndarray:
        """Inertia of rotors by coordinate; an empty array if there are no rotors."""
        return self.armature if self.armature.any() else np.zeros(0)

    def put_inertia(self, node: Node, inertia: np.ndarray) -> None:
        """Set the inertia (6, 6) of a node, on which gravity acts."""
        C = inertia[:3, 3:]
        node.inertia = inertia
        node.dry = node.heavy = np.array([C[2, 1], C[0, 2], C[1, 0], inertia[3, 3]])
        self.mass[node.link] += inertia[3, 3]

    def put_in_fluid(self, node: Node, wet: Wet) -> None:
        """Add the inertia of the fluid to a node, and subtract the displaced mass from its weight."""
        node.inertia = node.inertia + wet.added
        node.heavy = node.heavy - wet.carried
        self.wet.append((node, wet))

    def put_elasticity(
        self, v: int, K: np.ndarray, D: np.ndarray, *, is_linear: bool = True, has_rows: bool = True
    ) -> None:
        """Set K and D of the coordinates from v on.

        Args:
            is_linear: whether the force is K times the coordinates. The force of a spring in `groups` is not.
            has_rows: whether kernels read K and D as rows. Otherwise the term of the body evaluates them.
        """
        if len(K):
            self._elastic[v] = K, D, K if is_linear else np.zeros_like(K), has_rows

    def elasticity(self) -> Elasticity:
        """K and D by blocks, and both on their common pattern, row by row."""
        blocks = sorted(self._elastic.items())
        rows, columns = [np.zeros(0, int)], [np.zeros(0, int)]
        values: list[list[np.ndarray]] = [[np.zeros(0)] for _ in range(4)]
        for v, (K, D, K_linear, has_rows) in blocks:
            row, column = np.nonzero(has_rows & ((K_linear != 0.0) | (D != 0.0)))
            rows.append(v + row)
            columns.append(v + column)
            for found, part in zip(values, (K.ravel(), D.ravel(), K_linear[row, column], D[row, column])):
                found.append(part)
        stiffness, damping, row_stiffness, row_damping = map(np.concatenate, values)
        return Elasticity(
            block_start=np.array([v for v, _ in blocks], dtype=np.int32),
            block_size=np.array([len(block[0]) for _, block in blocks], dtype=np.int32),
            block_stiffness=stiffness,
            block_damping=damping,
            start=np.searchsorted(np.concatenate(rows), np.arange(self.nv + 1)).astype(np.int32),
            column=np.concatenate(columns).astype(np.int32),
            row_stiffness=row_stiffness,
            row_damping=row_damping,
        )

    def pose_springs(self) -> PoseSprings:
        """The springs of spherical and free joints."""
        return PoseSprings(
            node=np.array([group[0].index for group in self.groups], dtype=np.int32),
            rest=np.array([group[1] for group in self.groups]).reshape(-1, 4, 4),
            stiffness=np.array([group[2] for group in self.groups]).reshape(-1, 6, 6),
        )


def place_joint(tree: TreeBuilder, link: Link, here: Frame) -> Frame:
    """Add the nodes of a link's joint. `here` is the joint's frame on the parent's side.

    Returns:
        the frame on the child's side.
    """
    where = f"link {link.name!r} > joint"
    k = tree.index[link.name]
    v, q = tree.v_start[k], tree.q_start[k]
    for motion in link.joint.motions(where):
        n = motion.Phi.shape[1]
        here = tree.add(Node(*here, k, 0.0, v, q - v, motion.kind, motion.Phi, motion.Phi, pose=motion.pose))
        if not motion.kind.has_quaternion:
            tree.dof_q[v : v + n] = np.arange(q, q + n)
        v, q = v + n, q + n
    _add_spring(tree, link, tree.v_start[k], here[0], where)
    return here


def _add_spring(tree: TreeBuilder, link: Link, v: int, node: Node | None, where: str) -> None:
    joint, n = link.joint, link.joint.nv
    K = checks.symmetric(joint.stiffness, n, f"{where}: stiffness")
    D = checks.symmetric(joint.damping, n, f"{where}: damping")
    tree.put_elasticity(v, K, D, is_linear=joint.nq == n)
    tree.armature[v : v + n] = joint.armatures(where)
    rest = joint.rest_configuration(where)
    if joint.nq == n:
        tree.rest[v : v + n] = rest
    elif K.any() and node is not None:
        wide = np.zeros((6, 6))
        wide[:n, :n] = K
        tree.groups.append((node, stored_pose(rest), wide))
