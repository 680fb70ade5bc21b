"""Build: check a description, place its parts on nodes, number the nodes and freeze everything into tables."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, final

import numpy as np

from lissom.model.actuation import ActuationBuilder, Courses, TracedActuators, nodes_of, path_pieces, pull_tables
from lissom.model.bodies import anchor, placed, shifted
from lissom.model.groups import (
    ConstraintFunctions,
    Dofs,
    JointCouplings,
    Links,
    Loads,
    Loops,
    PlacedParts,
    Prescribed,
    Segments,
)
from lissom.model.maps import deforming_tables, map_tables
from lissom.model.model import Model
from lissom.model.nodes import Frame, Node, Point, base_tables, index_of, node_tables, number, numbered
from lissom.model.plausibility import warn_of_units
from lissom.model.surroundings import Contacts, FluidNodes, Springs, SurroundingsBuilder, UserForces, spring_tables
from lissom.model.tree import TreeBuilder, place_joint
from lissom.robot import checks
from lissom.robot.expression_programs import Operation, Steps, linked
from lissom.robot.functions import stacked_polynomials
from lissom.robot.joints import range_of, stop_numbers, with_native_springs
from lissom.robot.robot import CLOSING, PARTS, Link, Robot, placed_kinds, places_of_part

_FAR = 1e300  # in place of infinite limits


@np.errstate(all="ignore")  # numbers that overflow are refused at the end
def build(robot: Robot, like: Model | None = None) -> Model:
    """Freeze a description into a Model. A PlausibilityWarning names each number whose unit is probably wrong.

    Args:
        like: a model with some of the same links, whose values of bases along rods are taken over. It does not change.
    Raises:
        ModelError: the part of the robot, the rule and the value.
    """
    robot.check()
    warn_of_units(robot)
    assembly = Assembly(robot, None if like is None else _assembly_of(like))
    model = assembly.model()
    check_finite(robot, {group.name: getattr(model, group.name) for group in fields(model)})
    model.cache["assembly"] = assembly
    return model


def _assembly_of(model: Model) -> Assembly | None:
    """The parts of a model on nodes, where it still has them."""
    redesign = model.cache.get("redesign")
    return model.cache.get("assembly") if redesign is None else redesign.assembly


def check_finite(robot: Robot, groups: dict[str, Any], known: Model | None = None) -> None:
    """Raise ModelError at the first number of groups of tables that is not finite. Arrays of the model `known` are not
    checked once more."""
    for group, name, table in _numbers(groups, known):
        if not np.isfinite(table).all():
            rule = f"{checks.SIZE}; {name} of {group} is not finite"
            raise checks.fail(f"robot {robot.name!r}", rule, table[~np.isfinite(table)][0])


def _numbers(groups: dict[str, Any], known: Model | None) -> Iterator[tuple[str, str, np.ndarray]]:
    """Arrays that must be finite, each with the name of its group and of itself."""
    for group, table in groups.items():
        first = getattr(known, group, None)
        if table is first or not is_dataclass(table):
            continue
        if isinstance(table, Contacts | FluidNodes | UserForces | Springs | Robot):
            continue
        for name, value in vars(table).items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value is not getattr(first, name, None):
                yield group, name, value


@final
class Assembly:
    """The parts of one robot on nodes, which are objects here. The method `model` numbers the nodes and freezes the
    tables.

    Fields:
        bodies: of the links, by name, in the order of their number of ancestors. tree: the nodes of joints and bodies.
        here: frames at which joints begin, by name of the link.
    Args:
        like: the parts of a robot with some of the same links.
    """

    def __init__(self, robot: Robot, like: Assembly | None = None) -> None:
        self.robot = robot
        self.bodies = {name: placed(robot.links[name].body) for name in _ordered(robot)}
        known = {} if like is None else like.bodies
        for name in self.bodies.keys() & known.keys():
            self.bodies[name].follow(known[name])
        self.tree = TreeBuilder(robot, {name: body.size for name, body in self.bodies.items()})
        self.here: dict[str, Frame] = {}
        self.courses: Courses = {}
        self.traced: TracedActuators = {}
        for name in self.bodies:
            with checks.sized(f"link {name!r}"):
                self.place(robot.links[name])
        self.attach_loads()
        self.attach_loops()
        self.attach_surroundings()
        self.attach_parts()
        self.attach_springs()
        self.attach_actuators()
        self.attach_frames()

    def place(self, link: Link) -> None:
        """Add the nodes of a link's joint and body."""
        here = self.here[link.name] = self.base(link)
        self.bodies[link.name].place(self.tree, link, place_joint(self.tree, link, here))

    def base(self, link: Link) -> Frame:
        """The frame at which the joint of a link begins."""
        return self._at(link.parent, link.at, link.placement, "placement")

    def attach_loads(self) -> None:
        """Place the point loads, but those on the world, which does not move."""
        loads = self.robot.loads.values()
        anchors = [(load, *anchor(self.bodies, load.link, load.s, turned=load.turns)) for load in loads]
        self.loads = [(load, node, G) for load, node, G in anchors if node is not None]

    def attach_parts(self) -> None:
        """Place the parts that exert forces at places on links."""
        self.part_places = {
            (kind, name): [anchor(self.bodies, x.link, x.s, turned=x.turned) for x in places_of_part(kind, part)]
            for kind in placed_kinds()
            for name, part in getattr(self.robot, kind).items()
        }

    def placed_parts(self) -> PlacedParts:
        """The table of these parts."""
        places = [place for found in self.part_places.values() for place in found]
        parts = [None if PARTS[kind].has_tables else getattr(self.robot, kind)[name] for kind, name in self.part_places]
        return PlacedParts(
            names=tuple(f"{PARTS[kind].word} {name!r}" for kind, name in self.part_places),
            kinds=tuple(kind for kind, _ in self.part_places),
            parts=tuple(parts),
            place_start=np.cumsum([0, *map(len, self.part_places.values())]).astype(np.int32),
            node=np.array([index_of(node) for node, _ in places], np.int32),
            placement=np.array([G for _, G in places]).reshape(-1, 4, 4),
        )

    def attach_loops(self) -> None:
        """Place the ends of loops, skates, rolling contacts and constraints."""
        self.ends = [self._closing_ends(kind, x) for kind in CLOSING for x in getattr(self.robot, kind).values()]

    def attach_surroundings(self) -> None:
        """Place contacts and users' forces."""
        masses = dict(zip(self.tree.names, self.tree.mass.tolist()))
        self.world = SurroundingsBuilder(self.robot, self.bodies, masses, self.traced)

    def attach_springs(self) -> None:
        """Find the ends of straight springs, and place the pieces of the others."""
        self.spring_ends: list[tuple[Point, Point]] = []
        for name, spring in self.robot.springs.items():
            places = self.part_places["springs", name]
            if spring.is_straight:
                a, b = ((node, shifted(G, x.position)[:3, 3]) for (node, G), x in zip(places, spring.ends()))
                self.spring_ends.append((a, b))
        others = [spring for spring in self.robot.springs.values() if not spring.is_straight]
        self.spring_pieces = [
            (number, factor, piece)
            for number, spring in enumerate(others)
            for factor, path in spring.paths()
            for piece in path_pieces(path, self.bodies, f"spring {spring.name!r}")
        ]

    def spring_tables(self) -> Springs:
        """The tables of springs."""
        return spring_tables(self.robot, self.spring_ends, self.spring_pieces)

    def attach_actuators(self) -> None:
        """Place the actuators."""
        self.actuation = ActuationBuilder(self.robot, self.bodies, self.tree, self.courses, self.traced)

    def attach_frames(self) -> None:
        """Place the named frames."""
        self.frames = {name: self._at(x.link, x.s, x.placement, "placement") for name, x in self.robot.frames.items()}

    def _at(self, link: str | None, s: Any, placement: Any, where: str, *, turned: bool = True) -> Frame:
        """The frame at `placement` in the frame of a link at s, or in the world."""
        node, G = anchor(self.bodies, link, s, turned=turned or placement is not None)
        return node, G @ checks.pose(placement, where)

    def _closing_ends(self, kind: str, closing: Any) -> list[Frame]:
        """Frames A and B of a loop, a skate, a rolling contact or a constraint."""
        turned = closing.closure(f"{PARTS[kind].word} {closing.name!r}").holds_turns
        return [self._at(end.link, end.s, end.placement, "placement", turned=turned) for end in closing.ends()]

    def model(self) -> Model:
        """Number the nodes, with those that carry masses or forces first, and freeze all tables."""
        robot, tree = self.robot, self.tree
        nodes, dynamic = self.numbered()
        loops, springs = self.loop_tables(), self.spring_tables()
        contacts, fluid, forces = self.world.tables(tree.wet, tree.tails)
        actuators = self.actuator_tables()
        placed = self.placed_parts()
        bases, base = base_tables(nodes, ties(loops, actuators["segments"], contacts, placed))
        node_rows, runs = node_tables(nodes, base)
        rods = {name: body.table() for name, body in self.bodies.items()}
        return Model(
            name=robot.name,
            gravity=np.array(robot.gravity, dtype=np.float64),
            nq=tree.q_start[-1],
            nv=tree.nv,
            nu=len(actuators["inputs"].names),
            n_dynamic=dynamic,
            rods={name: rod for name, rod in rods.items() if rod is not None},
            nodes=node_rows,
            runs=runs,
            bases=bases,
            **self.link_tables(),
            maps=map_tables(nodes),
            deforming=deforming_tables(nodes),
            frames=self.frame_tables(),
            springs=springs,
            placed_parts=placed,
            loads=self.load_tables(),
            contacts=contacts,
            fluid=fluid,
            forces=forces,
            prescribed=self.prescribed(),
            loops=loops,
            constraint_functions=self.constraint_functions(),
            joint_couplings=self.joint_couplings(),
            **actuators,
            description=copy(robot),
        )

    def numbered(self) -> tuple[list[Node], int]:
        """The nodes in the order of their numbers, and the count of those that carry masses or forces."""
        tree = self.tree
        pulled = [node for _, node, _ in self.loads] + self.actuation.pulled() + self.world.pulled()
        placed = (*self.ends, *self.part_places.values(), tree.wet, tree.tails)
        pulled += [node for ends in placed for node, _ in ends]
        pulled += nodes_of(piece for *_, piece in self.spring_pieces)
        joined = [*self.robot.constraints.values(), *self.robot.joint_couplings.values()]
        coupled = [link for part in joined for link in part.joints]
        pulled += [anchor(self.bodies, link, 0.0)[0] for link in coupled]
        return number(tree.nodes, pulled)

    def link_tables(self) -> dict[str, Any]:
        """The tables of links, coordinates and elasticity."""
        tree = self.tree
        return {
            "links": self._links(),
            "dofs": Dofs(tree.dof_q, tree.rest, tree.armatures(), tree.scale, tree.neutral),
            "elasticity": tree.elasticity(),
            "pose_springs": tree.pose_springs(),
        }

    def actuator_tables(self) -> dict[str, Any]:
        """The tables of actuators."""
        made = self.actuation
        points, paths = made.points()
        channels, inputs = made.channels()
        pulls = pull_tables(made.pulls)
        return {
            "points": points,
            "paths": paths,
            "segments": made.straight(self.spring_pieces),
            "pulls": pulls,
            "spools": made.spools(points, paths, pulls),
            "wrenches": made.wrenches(),
            "channels": channels,
            "inputs": inputs,
        }

    def frame_tables(self) -> dict[str, tuple[int, np.ndarray]]:
        """The named frames, with the numbers of their nodes."""
        return {name: numbered(frame) for name, frame in self.frames.items()}

    def _links(self) -> Links:
        """The table of links."""
        robot, tree = self.robot, self.tree
        parents = [robot.links[name].parent for name in tree.names]
        return Links(
            names=tuple(tree.names),
            parent=np.array([-1 if p is None else tree.index[p] for p in parents]),
            q_start=np.array(tree.q_start),
            v_start=np.array(tree.v_start),
            mass=tree.mass,
            frame={name: numbered(body.anchor(1.0)) for name, body in self.bodies.items()},
            joint=tuple(with_native_springs(robot.links[name].joint, f"link {name!r} > joint") for name in tree.names),
            body=tuple(robot.links[name].body for name in tree.names),
        )

    def load_tables(self) -> Loads:
        """Point loads, then users' Python forces."""
        called = self.world.called
        nodes = [node for _, node, _ in self.loads] + [call[2] for call in called]
        frames = [shifted(G, load.position) for load, _, G in self.loads] + [call[3] for call in called]
        is_body = [load.frame == "body" for load, _, _ in self.loads] + [True] * len(called)
        return Loads(
            node=np.array([index_of(node) for node in nodes], np.int32),
            placement=np.array(frames).reshape(-1, 4, 4),
            is_body=np.array(is_body, np.int32),
            wrench=tuple(load.wrench(f"load {load.name!r}") for load, _, _ in self.loads),
            varies=any(load.varies for load, _, _ in self.loads) or self.world.varies,
        )

    def prescribed(self) -> Prescribed:
        """Prescribed coordinates in the order added, and their functions of time."""
        names, dofs, functions = [], [], []
        for name, motion in self.robot.motions.items():
            n = self.robot.links[motion.link].joint.nv
            v = self.tree.v_start[self.tree.index[motion.link]]
            names += [name] if n == 1 else [f"{name}[{k}]" for k in range(n)]
            dofs += range(v, v + n)
            functions.append(motion.kinematics(f"motion {name!r}", n))
        return Prescribed(tuple(names), np.array(dofs, dtype=np.int32), tuple(functions))

    def loop_tables(self) -> Loops:
        """Ends and closures of loops, skates, rolling contacts and constraints, of each kind in the order added."""
        parts = [(kind, name, x) for kind in CLOSING for name, x in getattr(self.robot, kind).items()]
        names = list(self.robot.constraints)
        made = [x.closure(f"{PARTS[kind].word} {name!r}") for kind, name, x in parts]
        return Loops(
            names=tuple(name for _, name, _ in parts),
            kinds=tuple(kind for kind, *_ in parts),
            node=np.array([[index_of(x) for x, _ in ends] for ends in self.ends], np.int32).reshape(-1, 2),
            placement=np.array([[G for _, G in ends] for ends in self.ends]).reshape(-1, 2, 4, 4),
            row_start=np.cumsum([0] + [len(c.rows) for c in made]).astype(np.int32),
            turns=np.array([c.turns for c in made], dtype=np.int32),
            axis=np.array([c.axis for c in made]).reshape(-1, 3),
            slide=np.array([c.slide for c in made]).reshape(-1, 3, 3),
            pitch=np.array([c.pitch for c in made], dtype=np.float64),
            hinge=np.array([c.hinge for c in made]).reshape(-1, 2, 3),
            radius=np.array([c.radius for c in made], dtype=np.float64),
            function=np.array(
                [-1 if kind != "constraints" else names.index(name) for kind, name, _ in parts], np.int32
            ),
            row_direction=np.vstack([np.zeros((0, 6)), *(c.rows for c in made)]),
            row_kind=np.concatenate([np.zeros(0), *(c.kinds for c in made)]).astype(np.int32),
        )

    def constraint_functions(self) -> ConstraintFunctions:
        """Functions of constraints in the order added."""
        tree, given = self.tree, self.robot.constraints
        starts, code, numbers = _programs([x.program(f"constraint {name!r}") for name, x in given.items()])
        joints = [tree.index[link] for x in given.values() for link in x.joints]
        nodes = [anchor(self.bodies, link, 0.0)[0] for x in given.values() for link in x.joints]
        sizes = np.array([6 + len(x.joints) for x in given.values()], dtype=np.int32)
        first = sum(len(getattr(self.robot, kind)) for kind in CLOSING[: CLOSING.index("constraints")])
        return ConstraintFunctions(
            names=tuple(given),
            loop=np.arange(first, first + len(given), dtype=np.int32),
            is_rate=np.array([x.velocity for x in given.values()], dtype=bool),
            start=starts,
            code=code,
            numbers=numbers,
            term_start=np.cumsum([0] + [len(x.joints) for x in given.values()]).astype(np.int32),
            q=np.array([tree.q_start[at] for at in joints], dtype=np.int32),
            v=np.array([tree.v_start[at] for at in joints], dtype=np.int32),
            node=np.array([index_of(node) for node in nodes], dtype=np.int32),
            at=np.cumsum([0, *(1 + 2 * sizes + sizes * sizes)]).astype(np.int32),
        )

    def joint_couplings(self) -> JointCouplings:
        """Couplings of joints in the order added."""
        tree = self.tree
        couplings = {name: x for name, x in self.robot.joint_couplings.items() if not x.is_elastic}
        q, v, terms, tables, links, given = [], [], [], [(np.zeros((2, 0)), np.zeros((0, 8)))], [], []
        whole = [x.program(f"coupling {name!r}") for name, x in couplings.items()]
        for name, coupling in couplings.items():
            for k, link in enumerate(coupling.joints):
                at = tree.index[link]
                q.append(tree.q_start[at])
                v.append(tree.v_start[at])
                reach = range_of(self.robot.links[link].joint, f"link {link!r} > joint")
                terms.append(coupling.term(k, reach, f"coupling {name!r}"))
                links.append(link)
                given.append(None if coupling.function is not None else coupling.ratios[k])
                tables.append((np.zeros((2, 0)), np.zeros((0, 8))))
                if terms[-1].pieces is not None:
                    knots, c = stacked_polynomials([terms[-1].pieces])
                    where, rule = f"coupling {name!r}: ratio of joint {link!r}", "must have polynomials of degree <= 7"
                    checks.require(c.shape[1] <= 8, where, rule, c.shape[1] - 1)
                    tables[-1] = knots, np.pad(c[..., 0], ((0, 0), (8 - c.shape[1], 0)))
        knots = np.hstack([knots for knots, _ in tables])
        largest = np.finfo(np.float64).max
        starts, code, numbers = _programs([*(term.program for term in terms), *whole])
        return JointCouplings(
            names=tuple(couplings),
            offset=np.array([float(x.offset) for x in couplings.values()]),
            function=starts[len(terms) :],
            term_start=np.cumsum([0] + [len(x.joints) for x in couplings.values()]).astype(np.int32),
            q=np.array(q, dtype=np.int32),
            v=np.array(v, dtype=np.int32),
            ratio=np.array([term.ratio for term in terms], dtype=np.float64),
            program=starts[: len(terms)],
            code=code,
            numbers=numbers,
            low=np.array([-largest if term.period else max(term.low, -largest) for term in terms]),
            high=np.array([largest if term.period else min(term.high, largest) for term in terms]),
            begin_of_period=np.array([term.low if term.period else 0.0 for term in terms]),
            period=np.array([term.period for term in terms], dtype=np.float64),
            rise=np.array([term.rise for term in terms], dtype=np.float64),
            piece_start=np.cumsum([0, *(len(c) for _, c in tables[1:])]).astype(np.int32),
            begin=np.maximum(knots[0], -largest),
            origin=knots[1],
            coefficients=np.vstack([c for _, c in tables]),
            links=tuple(links),
            functions=tuple(given),
            whole_functions=tuple(x.function for x in couplings.values()),
            **self._elastic_couplings(),
        )

    def _elastic_couplings(self) -> dict[str, Any]:
        """The fields of JointCouplings of elastic couplings."""
        tree = self.tree
        given = {name: x for name, x in self.robot.joint_couplings.items() if x.is_elastic}
        joints = [tree.index[link] for x in given.values() for link in x.joints]
        laws = [
            [*stop_numbers(x, 1, f"coupling {name!r}")[0].tolist(), float(x.offset), float(x.damping)]
            for name, x in given.items()
        ]
        return {
            "elastic_names": tuple(given),
            "elastic_start": np.cumsum([0] + [len(x.joints) for x in given.values()]),
            "elastic_dof": np.array([(tree.q_start[at], tree.v_start[at]) for at in joints], int).reshape(-1, 2),
            "elastic_ratio": np.array([float(ratio) for x in given.values() for ratio in x.ratios]),
            "elastic_law": np.array(laws).reshape(-1, 7).clip(-_FAR, _FAR),
            "elastic_spring": tuple(x.pieces(f"coupling {name!r}") for name, x in given.items()),
        }


def _programs(programs: list[Steps | None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first step of each program in `code`, −1 for None, and the fields `code` and `numbers` of JointCouplings."""
    starts, code, numbers, count = [], [np.zeros((0, 2), np.int32)], [np.zeros(0)], 0
    for steps in programs:
        starts.append(-1 if steps is None else count)
        if steps is not None:
            own, values = linked(steps)
            own[own[:, 0] == Operation.NUMBER, 1] += count
            code.append(own)
            numbers.append(values)
            count += len(own)
    return np.array(starts, dtype=np.int32), np.vstack(code).ravel(), np.concatenate(numbers)


def ties(loops: Loops, segments: Segments, contacts: Contacts, placed_parts: PlacedParts) -> np.ndarray:
    """Pairs of nodes (n, 2) between which forces act; -1 is the world."""
    return np.vstack([loops.node, segments.coupled(), contacts.pair_nodes, placed_parts.pairs])


def _ordered(robot: Robot) -> list[str]:
    """Link names by their number of ancestors, otherwise in the order added."""
    depth: dict[str | None, int] = {None: -1}
    for name in robot.links:
        path: list[str] = []
        here: str | None = name
        while here is not None and here not in depth:
            path.append(here)
            here = robot.links[here].parent
        for count, link in enumerate(reversed(path), depth[here] + 1):
            depth[link] = count
    return sorted(robot.links, key=lambda name: depth[name])
