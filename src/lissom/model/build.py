"""Build: check a description, place its parts on nodes, number those and freeze everything into tables."""

from __future__ import annotations

from copy import copy
from typing import Any, final

import numpy as np

from lissom.model.actuation import ActuationBuilder
from lissom.model.bases import base_arrays
from lissom.model.bodies import anchor, placed, point, shifted
from lissom.model.growing import GrowingTree
from lissom.model.joints import place_joint
from lissom.model.maps import map_tables
from lissom.model.model import Model
from lissom.model.nodes import Frame, Point, index_of, node_arrays, number, numbered
from lissom.model.plausibility import warn_of_units
from lissom.model.springs import spring_tables
from lissom.model.surroundings import SurroundingsBuilder
from lissom.robot import checks
from lissom.robot.actuators import PathPoint
from lissom.robot.loops import Loop
from lissom.robot.robot import Link, Robot
from lissom.robot.springs import Spring


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
    """The parts of one robot on nodes, which are objects; `model` numbers these and freezes the tables."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.bodies = {name: placed(robot.links[name].body) for name in _ordered(robot)}
        self.tree = GrowingTree(robot, {name: body.size for name, body in self.bodies.items()})
        for name in self.bodies:
            with checks.sized(f"link {name!r}"):
                self._add_link(robot.links[name])
        anchors = [(load, *anchor(self.bodies, load.link, load.s)) for load in robot.loads.values()]
        self.loads = [(load, node, G) for load, node, G in anchors if node is not None]  # the world does not move
        self.ends = [self._loop_ends(loop) for loop in robot.loops.values()]
        self.world = SurroundingsBuilder(robot, self.bodies)
        self.spring_ends = [(self._point(a), self._point(b)) for a, b in map(Spring.ends, robot.springs.values())]
        self.actuation = ActuationBuilder(robot, self.bodies, self.tree.v_start)
        self.frames = {name: self._at(x.link, x.s, x.placement, "placement") for name, x in robot.frames.items()}

    def _add_link(self, link: Link) -> None:
        here = self._at(link.parent, link.at, link.placement, "placement")
        self.bodies[link.name].place(self.tree, link, place_joint(self.tree, link, here))

    def _at(self, link: str | None, s: float, placement: Any, where: str) -> Frame:
        """A frame placed in that of a link at s, or in the world."""
        node, G = anchor(self.bodies, link, s)
        return node, G @ checks.pose(placement, where)

    def _point(self, end: PathPoint) -> Point:
        return point(self.bodies, end.link, end.s, end.position)

    def _loop_ends(self, loop: Loop) -> list[Frame]:
        """Frames A and B of a loop."""
        return [
            self._at(loop.link_a, loop.s_a, loop.placement_a, "placement_a"),
            self._at(loop.link_b, loop.s_b, loop.placement_b, "placement_b"),
        ]

    def model(self) -> Model:
        """Number the nodes, those that carry or hold up something first, and freeze everything."""
        robot, tree = self.robot, self.tree
        pulled = [node for _, node, _ in self.loads] + self.actuation.pulled() + self.world.pulled()
        pulled += [node for ends in (*self.ends, *self.spring_ends, tree.wet, tree.tails) for node, _ in ends]
        nodes, dynamic = number(tree.nodes, pulled)
        loops, actuation = self._loops(), self.actuation.tables()
        surroundings = self.world.tables(tree.wet, tree.tails)
        springs = spring_tables(robot, self.spring_ends)
        ties = [loops["loop_node"], actuation["segment_node"], surroundings.touching_nodes, springs.node]
        parents = [robot.links[name].parent for name in tree.names]
        rods = {name: body.table() for name, body in self.bodies.items()}
        return Model(
            name=robot.name,
            gravity=np.array(robot.gravity, dtype=np.float64),
            nq=tree.q_start[-1],
            nv=tree.nv,
            n_dynamic=dynamic,
            link_names=tuple(tree.names),
            link_parent=np.array([-1 if p is None else tree.names.index(p) for p in parents]),
            link_q_start=np.array(tree.q_start),
            link_v_start=np.array(tree.v_start),
            link_mass=tree.mass,
            link_frame={name: numbered(body.anchor(1.0)) for name, body in self.bodies.items()},
            frames={name: numbered(frame) for name, frame in self.frames.items()},
            rods={name: rod for name, rod in rods.items() if rod is not None},
            link_joint=tuple(robot.links[name].joint for name in tree.names),
            link_body=tuple(robot.links[name].body for name in tree.names),
            q_neutral=tree.neutral,
            dof_q=tree.dof_q,
            **base_arrays(nodes, np.vstack(ties)),
            **node_arrays(nodes),
            stiffness=tree.K,
            damping=tree.D,
            **tree.elastic_rows(),
            dof_rest=tree.rest,
            dof_scale=tree.scale,
            group_node=np.array([group[0].index for group in tree.groups], dtype=np.int32),
            group_rest=np.array([group[1] for group in tree.groups]).reshape(-1, 4, 4),
            group_stiffness=np.array([group[2] for group in tree.groups]).reshape(-1, 6, 6),
            **self._loads(),
            **self._motions(),
            **loops,
            surroundings=surroundings,
            springs=springs,
            maps=map_tables(nodes),
            **actuation,
            description=copy(robot),
        )

    def _loads(self) -> dict[str, Any]:
        """Point loads, then users' Python forces."""
        called = self.world.called
        nodes = [node for _, node, _ in self.loads] + [call[2] for call in called]
        frames = [shifted(G, load.position) for load, _, G in self.loads] + [call[3] for call in called]
        is_body = [load.frame == "body" for load, _, _ in self.loads] + [True] * len(called)
        return {
            "load_node": np.array([index_of(node) for node in nodes], np.int32),
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
            v = self.tree.v_start[self.tree.names.index(motion.link)]
            names += [name] if n == 1 else [f"{name}[{k}]" for k in range(n)]
            dofs += range(v, v + n)
            functions.append(motion.kinematics(f"motion {name!r}", n))
        dof = np.array(dofs, dtype=np.int32)
        return {"motion_names": tuple(names), "motion_dof": dof, "motion_functions": tuple(functions)}

    def _loops(self) -> dict[str, Any]:
        """Ends and closures of the loops in the order added."""
        loops = self.robot.loops
        made = [loop.closure(f"loop {name!r}") for name, loop in loops.items()]
        return {
            "loop_names": tuple(loops),
            "loop_node": np.array([[index_of(node) for node, _ in ends] for ends in self.ends], np.int32).reshape(
                -1, 2
            ),
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


def _ordered(robot: Robot) -> list[str]:
    """Link names, parents before children, otherwise in the order added."""
    done: list[str] = []
    waiting = list(robot.links)
    while waiting:
        ready = [n for n in waiting if robot.links[n].parent is None or robot.links[n].parent in done]
        done += ready
        waiting = [n for n in waiting if n not in ready]
    return done
