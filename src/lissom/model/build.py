"""Build: check a description, order and number it, tabulate its bases at the nodes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np

from lissom.model.actuation import actuation_tables, elastic_tendons
from lissom.model.bases import base_arrays
from lissom.model.model import Model
from lissom.model.nodes import Node, RodTable, distance, node_arrays, previous_point, rod_interval
from lissom.model.plausibility import warn_of_units
from lissom.model.quadrature import gauss_rule, interval_points, warn_inexact
from lissom.model.springs import spring_tables
from lissom.model.surroundings import SurroundingsBuilder, Wet, displaced
from lissom.robot import checks
from lissom.robot.bodies import RigidBody, Rod
from lissom.robot.loops import Loop
from lissom.robot.robot import Link, Robot

Frame = tuple[int, np.ndarray]


@np.errstate(all="ignore")  # what overflows is refused at the end
def build(robot: Robot) -> Model:
    """Freeze a description into a Model; a PlausibilityWarning says which number looks like a slip of units.

    Raises:
        ModelError: the entity, the rule and the value.
    """
    robot.check()
    warn_of_units(robot)
    model = _Assembly(robot).model()
    for name, table in vars(model).items():
        if isinstance(table, np.ndarray) and table.dtype.kind == "f" and not np.isfinite(table).all():
            rule = f"{checks.SIZE}; {name} is not finite"
            raise checks.fail(f"robot {robot.name!r}", rule, table[~np.isfinite(table)][0])
    return model


@final
class _Assembly:
    """The tables of one robot while they grow; `model` freezes them."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.names = list(robot.links)
        self.nodes: list[Node] = []
        self.rods: dict[str, RodTable] = {}
        self.frames: dict[str, Frame] = {}
        self.leaves: dict[tuple[str, float], int] = {}
        self._number()
        self.mass = np.zeros(len(self.names))
        self.groups: list[tuple[int, np.ndarray, np.ndarray]] = []
        self.wet: list[tuple[int, Wet]] = []
        self.tails: list[tuple[int, np.ndarray]] = []
        for name in self._ordered():
            with checks.sized(f"link {name!r}"):
                self._add_link(robot.links[name])
        anchors = [(load, *self.anchor(load.link, load.s)) for load in robot.loads.values()]
        self.loads = [(load, node, G) for load, node, G in anchors if node >= 0]  # what holds the world moves nothing
        self.ends = [self._loop_ends(loop) for loop in robot.loops.values()]
        self.world = SurroundingsBuilder(robot, self.rods, self.anchor)
        self.spring_ends = [
            tuple(self.point(x.link, x.s, x.position) for x in spring.ends()) for spring in robot.springs.values()
        ]

    def _number(self) -> None:
        """Number the coordinates: links in the order added, in each the joint's, then the body's."""
        self.q_start, self.v_start, neutral = [0], [0], []
        for name in self.names:
            link = self.robot.links[name]
            size = link.body.basis.size if isinstance(link.body, Rod) else 0
            self.q_start.append(self.q_start[-1] + link.joint.nq + size)
            self.v_start.append(self.v_start[-1] + link.joint.nv + size)
            neutral += [link.joint.neutral(), np.zeros(size)]
        self.neutral = np.concatenate(neutral)
        self.nv = self.v_start[-1]
        self.dof_q = np.full(self.nv, -1, dtype=np.int32)
        self.scale = np.ones(self.nv)
        self.K, self.D = np.zeros((self.nv, self.nv)), np.zeros((self.nv, self.nv))
        self.K_linear, self.rest = np.zeros((self.nv, self.nv)), np.zeros(self.nv)

    def _ordered(self) -> list[str]:
        """Link names, parents before children, otherwise in the order added."""
        done: list[str] = []
        waiting = list(self.names)
        while waiting:
            ready = [n for n in waiting if self.robot.links[n].parent is None or self.robot.links[n].parent in done]
            done += ready
            waiting = [n for n in waiting if n not in ready]
        return done

    def _add_link(self, link: Link) -> None:
        k = self.names.index(link.name)
        parent, G = (-1, np.eye(4)) if link.parent is None else self.anchor(link.parent, link.at)
        here: Frame = (parent, G @ checks.pose(link.placement, "placement"))
        here = self._add_joint(link, k, here)
        if isinstance(link.body, Rod):
            self._add_rod(link, link.body, k, here)
        elif isinstance(link.body, RigidBody):
            here = self._add_rigid_body(link, link.body, k, here)
        self.frames.setdefault(link.name, here)

    def _add_joint(self, link: Link, k: int, here: Frame) -> Frame:
        where = f"link {link.name!r} > joint"
        v, q = self.v_start[k], self.q_start[k]
        for motion in link.joint.motions(where):
            n = motion.Phi.shape[1]
            self.nodes.append(Node(*here, k, 0.0, v, q - v, motion.kind, motion.Phi, motion.Phi))
            here = (len(self.nodes) - 1, np.eye(4))
            if not motion.kind.has_quaternion:
                self.dof_q[v : v + n] = np.arange(q, q + n)
            v, q = v + n, q + n
        self._add_spring(link, self.v_start[k], where)
        return here

    def _add_spring(self, link: Link, v: int, where: str) -> None:
        joint, n = link.joint, link.joint.nv
        K = checks.symmetric(joint.stiffness, n, f"{where}: stiffness")
        block = slice(v, v + n)
        self.K[block, block] = K
        self.D[block, block] = checks.symmetric(joint.damping, n, f"{where}: damping")
        rest = joint.rest_configuration(where)
        if joint.nq == n:
            self.K_linear[block, block] = K
            self.rest[block] = rest
        elif K.any():
            wide = np.zeros((6, 6))
            wide[:n, :n] = K
            self.groups.append((len(self.nodes) - 1, _pose_of(rest), wide))

    def _add_rigid_body(self, link: Link, body: RigidBody, k: int, here: Frame) -> Frame:
        inertia = body.spatial_inertia("body")
        self.mass[k] = inertia[3, 3]
        if link.joint.nv == 0:
            self.nodes.append(Node(*here, k, 0.0, self.v_start[k], self.q_start[k] - self.v_start[k]))
            here = (len(self.nodes) - 1, np.eye(4))
        self._put_inertia(here[0], inertia)
        fluid = self.robot.fluid
        feels = None if fluid is None else fluid.felt_by(link.name)
        if fluid is not None and feels is not None:
            immersion = feels.of_body(body, fluid.density, f"fluid > link {link.name!r}")
            centre = np.zeros(3) if body.form is not None else np.asarray(body.com, dtype=np.float64)
            self._put_in_fluid(here[0], displaced(immersion, 1.0, fluid.density, centre))
        return here

    def _put_inertia(self, node: int, inertia: np.ndarray) -> None:
        """Give a node its mass, which gravity pulls."""
        C = inertia[:3, 3:]
        self.nodes[node].inertia = inertia
        self.nodes[node].dry = self.nodes[node].heavy = np.array([C[2, 1], C[0, 2], C[1, 0], inertia[3, 3]])

    def _put_in_fluid(self, node: int, wet: Wet) -> None:
        """Let a node drive the fluid around it, which carries a part of its weight."""
        self.nodes[node].inertia = self.nodes[node].inertia + wet.added
        self.nodes[node].heavy = self.nodes[node].heavy - wet.carried
        self.wet.append((node, wet))

    def _add_rod(self, link: Link, rod: Rod, k: int, base: Frame) -> None:
        where = f"link {link.name!r} > body"
        v = self.v_start[k] + link.joint.nv
        shift = self.q_start[k] + link.joint.nq - v
        n = rod.basis.size
        self.dof_q[v : v + n] = np.arange(v, v + n) + shift
        empty = np.zeros(0)
        reference = rod.strain_reference(where)
        inner = interval_points(rod)
        table = RodTable(rod.length, rod.basis.evaluate, reference, inner, v, shift, base, empty, empty, empty)
        K, D = np.zeros((n, n)), np.zeros((n, n))
        node, node_s, node_weight = [], [], []
        here, s0 = base, 0.0
        fluid = self.robot.fluid
        feels = None if fluid is None else fluid.felt_by(link.name)
        for _, stop, points, weights in gauss_rule(rod, where):
            for s, weight in [*zip(points, weights * rod.length), (stop, 0.0)]:
                self.nodes.append(rod_interval(table, k, here, s0, float(s)))
                here, s0 = (len(self.nodes) - 1, np.eye(4)), float(s)
                node.append(here[0])
                node_s.append(s0)
                node_weight.append(float(weight))
                if weight > 0.0:
                    section = rod.section.constitution(s0, rod.material, f"{where} > section")
                    Phi = rod.basis.evaluate(s0)
                    self._put_inertia(here[0], weight * section.inertia)
                    if fluid is not None and feels is not None:
                        immersion = feels.of_rod(rod.section, s0, fluid.density, f"fluid > link {link.name!r}")
                        self._put_in_fluid(here[0], displaced(immersion, weight, fluid.density, np.zeros(3)))
                    self.mass[k] += weight * section.inertia[3, 3]
                    K += weight * Phi.T @ section.stiffness @ Phi
                    D += weight * Phi.T @ section.damping @ Phi
        block = slice(v, v + n)
        turning = np.any([table.strain_basis(s)[:3].any(axis=0) for s in np.linspace(0.013, 0.987, 7)], axis=0)
        self.scale[block] = np.where(turning, 1.0 / rod.length, 1.0)
        K, D = (K + K.T) / 2, (D + D.T) / 2
        self.K[block, block] = self.K_linear[block, block] = K
        self.D[block, block] = D
        warn_inexact(rod, where)
        self.rods[link.name] = replace(table, node=np.array(node), node_s=np.array(node_s),
                                       weight=np.array(node_weight))  # fmt: skip
        if fluid is not None and feels is not None and feels.tail:
            added = feels.of_rod(rod.section, 1.0, fluid.density, f"fluid > link {link.name!r}").added
            self.tails.append((here[0], np.diag([0.0, added[4, 4], added[5, 5]])))
        self.frames[link.name] = here

    def anchor(self, link: str, s: float) -> Frame:
        """The frame of a link at s; on a rod, a leaf node is hung from the last point before s where none is there."""
        if link not in self.rods:
            return self.frames[link]
        rod = self.rods[link]
        before, s0 = previous_point(rod, s)
        if s - s0 <= 1e-12:
            return before
        key = (link, s)
        if key not in self.leaves:
            self.nodes.append(rod_interval(rod, self.names.index(link), before, s0, s))
            self.leaves[key] = len(self.nodes) - 1
        return self.leaves[key], np.eye(4)

    def point(self, link: str | None, s: float, position: Any) -> tuple[int, np.ndarray]:
        """A point fixed to a link at s, or to the world, as (node, position in the node)."""
        node, G = (-1, np.eye(4)) if link is None else self.anchor(link, s)
        return node, _at(G, position)[:3, 3]

    def model(self) -> Model:
        """Order the nodes, those that carry or hold up something first, and freeze everything."""
        robot = self.robot
        actuation = actuation_tables(robot, self.rods, self.point, self.anchor, self.v_start)
        frames = {name: self._frame(frame) for name, frame in robot.frames.items()}
        pulled = [node for _, node, _ in self.loads] + [int(n) for n in actuation["segment_node"].ravel()]
        pulled += [node for ends in (*self.ends, *self.spring_ends, self.wet, self.tails) for node, _ in ends]
        pulled += self.world.pulled() + [int(n) for n in actuation["wrench_node"]]
        order, rank, dynamic = _order(self.nodes, pulled)
        nodes = [self.nodes[old] for old in order]
        for node in nodes:
            node.parent = int(rank[node.parent])

        def moved(frame: Frame) -> Frame:
            return int(rank[frame[0]]), frame[1]

        for table in ("segment_node", "wrench_node"):
            actuation[table] = rank[actuation[table]].astype(np.int32)
        parents = [robot.links[name].parent for name in self.names]
        loops = self._loops(rank)
        surroundings = self.world.tables(rank, self.wet, self.tails)
        springs = spring_tables(robot, [tuple(map(moved, ends)) for ends in self.spring_ends], partial(distance, nodes))
        ties = [loops["loop_node"], actuation["segment_node"], surroundings.touching_nodes, springs.node]
        return Model(
            name=robot.name,
            gravity=np.array(robot.gravity, dtype=np.float64),
            nq=self.q_start[-1],
            nv=self.nv,
            n_dynamic=dynamic,
            link_names=tuple(self.names),
            link_parent=np.array([-1 if p is None else self.names.index(p) for p in parents]),
            link_q_start=np.array(self.q_start),
            link_v_start=np.array(self.v_start),
            link_mass=self.mass,
            link_frame={name: moved(frame) for name, frame in self.frames.items()},
            frames={name: moved(frame) for name, frame in frames.items()},
            rods={name: _renumbered(rod, rank) for name, rod in self.rods.items()},
            link_joint=tuple(robot.links[name].joint for name in self.names),
            link_body=tuple(robot.links[name].body for name in self.names),
            q_neutral=self.neutral,
            dof_q=self.dof_q,
            **base_arrays(nodes, np.vstack(ties)),
            **node_arrays(nodes),
            stiffness=self.K,
            damping=self.D,
            **_compressed_rows(self.K_linear, self.D),
            dof_rest=self.rest,
            dof_scale=self.scale,
            group_node=np.array([rank[g[0]] for g in self.groups], dtype=np.int32),
            group_rest=np.array([g[1] for g in self.groups]).reshape(-1, 4, 4),
            group_stiffness=np.array([g[2] for g in self.groups]).reshape(-1, 6, 6),
            **self._loads(rank),
            **self._motions(),
            **loops,
            surroundings=surroundings,
            springs=springs,
            **actuation,
            **elastic_tendons(actuation, partial(distance, nodes)),
            description=copy(robot),
        )

    def _loads(self, rank: np.ndarray) -> dict[str, Any]:
        """Point loads, then users' Python forces."""
        called = self.world.called
        nodes = [node for _, node, _ in self.loads] + [call[2] for call in called]
        frames = [_at(G, load.position) for load, _, G in self.loads] + [call[3] for call in called]
        is_body = [load.frame == "body" for load, _, _ in self.loads] + [True] * len(called)
        return {
            "load_node": np.array([rank[node] for node in nodes], np.int32),
            "load_placement": np.array(frames).reshape(-1, 4, 4),
            "load_is_body": np.array(is_body, np.int32),
            "load_wrench": tuple(load.wrench(f"load {load.name!r}") for load, _, _ in self.loads),
            "load_varies": any(load.varies for load, _, _ in self.loads) or self.world.varies,
        }

    def _motions(self) -> dict[str, Any]:
        """Prescribed coordinates in the order added, and their functions of time."""
        names, dofs, functions = [], [], []
        for name, motion in self.robot.motions.items():
            n = self.robot.links[motion.link].joint.nv
            v = self.v_start[self.names.index(motion.link)]
            names += [name] if n == 1 else [f"{name}[{k}]" for k in range(n)]
            dofs += range(v, v + n)
            functions.append(motion.kinematics(f"motion {name!r}", n))
        dof = np.array(dofs, dtype=np.int32)
        return {"motion_names": tuple(names), "motion_dof": dof, "motion_functions": tuple(functions)}

    def _loop_ends(self, loop: Loop) -> list[Frame]:
        """Frames A and B of a loop."""
        node_a, G_a = self.anchor(loop.link_a, loop.s_a)
        node_b, G_b = (-1, np.eye(4)) if loop.link_b is None else self.anchor(loop.link_b, loop.s_b)
        placed = checks.pose(loop.placement_a, "placement_a"), checks.pose(loop.placement_b, "placement_b")
        return [(node_a, G_a @ placed[0]), (node_b, G_b @ placed[1])]

    def _loops(self, rank: np.ndarray) -> dict[str, Any]:
        """Ends and closures of the loops in the order added."""
        loops = self.robot.loops
        made = [loop.closure(f"loop {name!r}") for name, loop in loops.items()]
        return {
            "loop_names": tuple(loops),
            "loop_node": np.array([[rank[node] for node, _ in ends] for ends in self.ends], np.int32).reshape(-1, 2),
            "loop_placement": np.array([[G for _, G in ends] for ends in self.ends]).reshape(-1, 2, 4, 4),
            "loop_row_start": np.cumsum([0] + [len(c.rows) for c in made]).astype(np.int32),
            "loop_turns": np.array([c.turns for c in made], dtype=np.int32),
            "loop_axis": np.array([c.axis for c in made]).reshape(-1, 3),
            "loop_slide": np.array([c.slide for c in made]).reshape(-1, 3, 3),
            "loop_pitch": np.array([c.pitch for c in made], dtype=np.float64),
            "loop_hinge": np.array([c.hinge for c in made]).reshape(-1, 2, 3),
            "row_direction": np.vstack([np.zeros((0, 6)), *(c.rows for c in made)]),
            "row_is_hinge": np.concatenate([np.zeros(0), *(c.is_hinge for c in made)]).astype(np.int32),
        }

    def _frame(self, frame: Any) -> Frame:
        node, G = self.anchor(frame.link, frame.s)
        return node, G @ checks.pose(frame.placement, "placement")


def _at(G: np.ndarray, position: Any) -> np.ndarray:
    """The frame G moved to a position given in it."""
    moved = G.copy()
    moved[:3, 3] += G[:3, :3] @ np.asarray(position, dtype=np.float64)
    return moved


def _pose_of(rest: np.ndarray) -> np.ndarray:
    """4x4 of a stored pose: quaternion (w, x, y, z), then position for a free joint."""
    w, x, y, z = rest[:4]
    v = rest[1:4]
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    g = np.eye(4)
    g[:3, :3] = (w * w - v @ v) * np.eye(3) + 2 * (w * W + np.outer(v, v))
    g[:3, 3] = rest[4:7] if len(rest) == 7 else 0.0
    return g


def _renumbered(rod: RodTable, rank: np.ndarray) -> RodTable:
    base = (int(rank[rod.base[0]]), rod.base[1])
    return replace(rod, base=base, node=rank[rod.node])


def _order(nodes: list[Node], pulled: list[int]) -> tuple[list[int], np.ndarray, int]:
    """Nodes that carry or hold up something first.

    Returns:
        old indices in the new order; new index of each old one (-1 stays); how many carry.
    """
    carries = np.array([bool(node.inertia.any()) for node in nodes] + [False])
    carries[[n for n in pulled if n >= 0]] = True
    for k in range(len(nodes) - 1, -1, -1):
        if carries[k] and nodes[k].parent >= 0:
            carries[nodes[k].parent] = True
    order = sorted(range(len(nodes)), key=lambda k: (not carries[k], k))
    rank = np.full(len(nodes) + 1, -1)
    rank[order] = np.arange(len(nodes))
    return order, rank, int(carries.sum())


def _compressed_rows(K: np.ndarray, D: np.ndarray) -> dict[str, Any]:
    """K and D on their common pattern, row by row."""
    rows, columns = np.nonzero((K != 0.0) | (D != 0.0))
    start = np.searchsorted(rows, np.arange(len(K) + 1))
    return {
        "elastic_start": start.astype(np.int32),
        "elastic_column": columns.astype(np.int32),
        "elastic_stiffness": K[rows, columns],
        "elastic_damping": D[rows, columns],
    }
