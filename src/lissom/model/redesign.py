"""Models of changed descriptions, of which only the changed tables are computed.

A build of a robot takes longer than its equilibrium. Derivatives with respect to design values, batches of designs and
environments need many models that differ in a few values. A `Redesign` keeps the nodes of the last description. It
places only the links that differ from it, computes the groups of tables that depend on the changed parts, and shares
all other arrays with the first model. Its models equal those of `build`, bit by bit.

It makes no model if the structure may change: the numbers of nodes or coordinates, the order of nodes, or a place on a
link. The caller then builds the robot.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import fields, is_dataclass, replace
from threading import RLock
from typing import Any, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.model.bodies import PlacedRod
from lissom.model.build import Assembly, check_finite, ties
from lissom.model.maps import map_tables
from lissom.model.model import Model, freeze, rebuilt, with_groups
from lissom.model.nodes import Frame, Node, base_tables, node_tables
from lissom.robot import checks
from lissom.robot.bodies import Rod
from lissom.robot.robot import CLOSING, PARTS, Link, Robot, check_parts, placed_kinds

# Kinds of parts that read sections and materials of links, besides their places.
_OF_SECTIONS = ("contacts", "forces")


@final
class _OtherStructure(Exception):
    """The structure of the robot changes."""


def described(model: Model, robot: Robot) -> Model:
    """The model of a description that differs from that of a model in values, with its device, locked coordinates and
    anchors. Warnings are not shown, since the first build has shown them.

    Raises:
        ModelError: as `build`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = redesign_of(model).model(robot)
    return rebuilt(model, robot) if found is None else found


def redesign_of(model: Model) -> Redesign:
    """The Redesign of a model and of all models that it made."""
    if "redesign" not in model.cache:
        made = Redesign(model, model.cache.get("assembly"))
        model.cache.pop("assembly", None)  # it follows the descriptions of the Redesign
        model.cache.setdefault("redesign", made)
    return model.cache["redesign"]


@final
class Redesign:
    """Makes models of descriptions that differ from that of a model in values."""

    def __init__(self, model: Model, assembly: Assembly | None) -> None:
        self.first = with_groups(model, cache={})
        for name in ("_home", "_root"):
            self.first.__dict__.pop(name, None)
        self.last = self.first
        self.assembly = assembly
        self.order: list[Node] = []
        self.lock = RLock()

    @np.errstate(all="ignore")  # numbers that overflow are refused at the end
    def model(self, robot: Robot) -> Model | None:
        """The model of a description, with the device, locked coordinates and anchors of the first one; None if its
        structure may differ.

        Raises:
            ModelError: as `build`.
        """
        with self.lock:
            if not _is_alike(self.last.description, robot):
                return None
            check_parts(robot, self.last.description)
            try:
                if self.assembly is None:
                    self.last, self.assembly = self.first, Assembly(self.first.description)
                if not self.order:
                    self.order, _ = self.assembly.numbered()
                groups = self._groups(self.assembly, robot)
                groups = {name: _shared(group, getattr(self.first, name)) for name, group in groups.items()}
                check_finite(robot, groups, self.first)
            except _OtherStructure:
                self.assembly, self.order = None, []
                return None
            except BaseException:
                self.assembly, self.order = None, []
                raise
            self.last = with_groups(self.first, **groups, description=copy(robot), cache={"redesign": self})
            return self.last

    def _groups(self, assembly: Assembly, robot: Robot) -> dict[str, Any]:
        """The groups of tables that differ from those of the first model, or may do so."""
        before, last = assembly.robot, self.last
        groups = {name: group for name, group in vars(last).items() if group is not getattr(self.first, name)}
        for name in ("description", "cache"):
            groups.pop(name, None)
        assembly.robot = assembly.tree.robot = robot
        assembly.tree.warns = False  # the first build has shown its warnings
        changed = {kind for kind in PARTS if not same_parts(getattr(before, kind), getattr(robot, kind))}
        if tuple(before.inputs_of_forces()) != tuple(robot.inputs_of_forces()):
            raise _OtherStructure
        groups["gravity"] = np.array(robot.gravity, dtype=np.float64)
        if changed <= {"links"} and _take_sections(assembly, before):
            return groups | self._section_groups(assembly, before)
        count = len(assembly.tree.nodes)
        moved, stays = _place_links(assembly, before)
        on_links = _OF_SECTIONS if stays else PARTS
        changed |= {kind for kind in on_links if moved and getattr(robot, kind)}
        wet = bool(moved) and bool(assembly.tree.wet or assembly.tree.tails)
        for kinds, attach in (
            ({"loads"}, assembly.attach_loads),
            (set(CLOSING), assembly.attach_loops),
            ({"contacts", "forces"}, assembly.attach_surroundings),
            (set(placed_kinds()), assembly.attach_parts),
            ({"springs"}, assembly.attach_springs),
            ({"actuators", "couplings"}, assembly.attach_actuators),
            ({"frames"}, assembly.attach_frames),
        ):
            if kinds & changed:
                attach()
        order, dynamic = assembly.numbered()
        if len(order) != count or dynamic != self.first.n_dynamic or any(a is not b for a, b in zip(order, self.order)):
            raise _OtherStructure
        for name, kinds, tables in (
            ("loads", {"loads", "forces"}, assembly.load_tables),
            ("placed_parts", set(placed_kinds()), assembly.placed_parts),
            ("loops", set(CLOSING), assembly.loop_tables),
            ("springs", {"springs"}, assembly.spring_tables),
            ("frames", {"frames"}, assembly.frame_tables),
            ("prescribed", {"motions"}, assembly.prescribed),
            ("constraint_functions", {"constraints"}, assembly.constraint_functions),
            ("joint_couplings", {"joint_couplings"}, assembly.joint_couplings),
        ):
            if kinds & changed:
                groups[name] = tables()
        if "loops" in groups and not _same_arrays(groups["loops"].row_kind, self.first.loops.row_kind):
            raise _OtherStructure  # another joint in a loop has other rows
        if wet or changed & {"contacts", "forces"}:
            contacts, groups["fluid"], groups["forces"] = assembly.world.tables(assembly.tree.wet, assembly.tree.tails)
            groups["contacts"] = _with_anchors(contacts, self.first)
        along = "springs" in changed and bool(assembly.spring_pieces)
        if along or changed & {"actuators", "couplings"}:
            groups |= assembly.actuator_tables()
            if groups["inputs"].names != self.first.inputs.names:
                raise _OtherStructure  # an input of forces takes or frees actuators
        if moved:
            groups |= self._link_groups(assembly, groups, moved)
        if "motions" in changed and (self.first.prescribed.n_locked or self.first.prescribed.steady is not None):
            raise _OtherStructure
        return groups

    def _section_groups(self, assembly: Assembly, before: Robot) -> dict[str, Any]:
        """The tables of masses and elasticity after rods took other sections or materials."""
        last, links = self.last, assembly.robot.links
        taken = {assembly.tree.index[name] for name, link in links.items() if link is not before.links[name]}
        if not taken:
            return {}
        rows = [k for k, node in enumerate(self.order) if node.link in taken]
        bodies = tuple(links[name].body for name in assembly.tree.names)
        return {
            "nodes": _node_rows(last.nodes, self.order, rows, last.nodes.base, ("inertia", "dry", "heavy")),
            "links": replace(last.links, mass=assembly.tree.mass, body=bodies),
            "elasticity": assembly.tree.elasticity(),
        }

    def _link_groups(self, assembly: Assembly, groups: dict[str, Any], moved: dict[str, bool]) -> dict[str, Any]:
        """The tables of nodes and links after the links `moved` were placed."""
        last, nodes = self.last, self.order
        tied = "loops", "segments", "contacts", "placed_parts"
        now = {name: groups.get(name, getattr(last, name)) for name in tied}
        found = assembly.link_tables()
        new = {name: assembly.bodies[name].table() for name in last.rods if name in moved}
        found["rods"] = {**last.rods, **{name: rod for name, rod in new.items() if rod is not None}}
        freeze(new)
        rows = [k for k, node in enumerate(nodes) if assembly.tree.names[node.link] in moved]
        if any(nodes[k].parent is None for k in rows) or len(last.bases.position) > 1:
            found["bases"], base = base_tables(nodes, ties(**now))
        else:
            base = last.nodes.base
        if any(moved.values()):
            found["nodes"], found["runs"] = node_tables(nodes, base)
        else:
            found["nodes"] = _node_rows(last.nodes, nodes, rows, base)
        if len(last.maps) and any(moved.values()):
            found["maps"] = map_tables(nodes)
        return found


_OF_NODES = ("placement", "h", "kappa", "xi1", "xi2", "inertia", "dry", "heavy")


def _node_rows(
    tables: Any, nodes: list[Node], rows: list[int], base: np.ndarray, names: tuple[str, ...] = _OF_NODES
) -> Any:
    """The tables of nodes, of which some rows have other numbers. Their bases have not changed."""
    found = {item.name: getattr(tables, item.name) for item in fields(tables)} | {"base": base}
    for name in names if rows else ():  # a joint without motion has no node of its own
        found[name] = found[name].copy()
        of_node = "G" if name == "placement" else name
        found[name][rows] = [getattr(nodes[k], of_node) for k in rows]
    return type(tables)(**found)


def _with_anchors(contacts: Any, first: Model) -> Any:
    """Contacts with the anchors of the first model, where they fit."""
    known = first.contacts.anchors
    if contacts.sticks and known.shape == contacts.anchors.shape:
        contacts.__dict__["anchors"] = known
    return contacts


def _shared(group: Any, first: Any) -> Any:
    """A group with the arrays of the first model wherever the numbers are the same; the first group if all are."""
    if group is first or isinstance(group, dict):
        return group
    if isinstance(group, np.ndarray):
        return first if _same_arrays(group, first) else _frozen(group)
    if not is_dataclass(group) or type(group) is not type(first):
        return _frozen(group)
    same = True
    for item in fields(group):
        ours, theirs = getattr(group, item.name), getattr(first, item.name)
        if ours is theirs:
            continue
        if same_values(ours, theirs):
            group.__dict__[item.name] = theirs
        else:
            same = False
    return first if same else _frozen(group)


def _frozen(group: Any) -> Any:
    freeze(group)
    return group


def _same_arrays(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def same_values(a: Any, b: Any) -> bool:
    """Whether two fields of tables are the same numbers, bit by bit, or the same objects."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _same_arrays(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_values, a, b))
    return a is b or (type(a) is type(b) and isinstance(a, int | float | str) and a == b)


def same_parts(a: Any, b: Any) -> bool:
    """Whether two descriptions share all parts of a kind."""
    return len(a) == len(b) and all(x is b[name] for name, x in a.items())


def _is_alike(old: Robot, new: Robot) -> bool:
    """Whether two descriptions have the same parts, and their links the same joints, bodies and places."""
    for kind in PARTS:
        if list(getattr(old, kind)) != list(getattr(new, kind)):
            return False
    fluid = [None if robot.fluid is None else vars(robot.fluid) for robot in (old, new)]
    if fluid[0] is not fluid[1] and not (fluid[0] and fluid[1] and all(x is fluid[1][k] for k, x in fluid[0].items())):
        return False
    if old.name != new.name or old.near_pairs != new.near_pairs:
        return False
    return all(link is new.links[name] or _alike_links(link, new.links[name]) for name, link in old.links.items())


def _alike_links(a: Link, b: Link) -> bool:
    kinds = [(type(x.joint), type(x.body), x.parent) for x in (a, b)]
    if kinds[0] != kinds[1] or isinstance(a.body, DeformableBody) or a.at is not b.at:
        return False
    if isinstance(a.joint.nv, int) and (a.joint.nv != b.joint.nv or a.joint.nq != b.joint.nq):
        return False
    basis = [getattr(x.body, "basis", None) for x in (a, b)]
    return basis[0] is basis[1]


def _take_sections(assembly: Assembly, before: Robot) -> bool:
    """Whether links differ from an earlier description in sections and materials of rods only, which nothing else
    reads. Then these rods have taken them."""
    robot, tree = assembly.robot, assembly.tree
    if robot.contacts or robot.forces or tree.wet or tree.tails:
        return False
    differ = [(link, before.links[name]) for name, link in robot.links.items() if link is not before.links[name]]
    if not all(_have_same_axes(*pair) for pair in differ):
        return False
    if differ:
        _unlock(assembly)
    rods = [(assembly.bodies[link.name], link.body) for link, _ in differ]
    return all(isinstance(rod, PlacedRod) and isinstance(body, Rod) and rod.take_section(body) for rod, body in rods)


def _have_same_axes(a: Link, b: Link) -> bool:
    """Whether two links have the same joint, place, and axis and basis of a rod."""
    if not isinstance(a.body, Rod) or a.joint is not b.joint or a.placement is not b.placement:
        return False
    free = ("section", "material")
    return all(x is getattr(b.body, name) for name, x in vars(a.body).items() if name not in free)


def _place_links(assembly: Assembly, before: Robot) -> tuple[dict[str, bool], bool]:
    """Place the links that differ from an earlier description, and those whose joints begin elsewhere.

    Returns:
        their names, each with whether the bases of its nodes differ; and whether all places on links stay.
    """
    robot, moved, stays = assembly.robot, {}, True
    for name in assembly.bodies:
        link = robot.links[name]
        if link is not before.links[name] or (
            link.parent in moved and not _same_frames(assembly.here[name], assembly.base(link))
        ):
            if not moved:
                _unlock(assembly)
            moved[name], at_place = _place(assembly, link)
            stays = stays and at_place and link.joint is before.links[name].joint
    for node in assembly.tree.nodes if not stays else ():
        node.neutral = None
    return moved, stays


def _same_frames(a: Frame, b: Frame) -> bool:
    return a[0] is b[0] and _same_arrays(a[1], b[1])


def _unlock(assembly: Assembly) -> None:
    """Copy the arrays of the tree, which a model has made read-only."""
    tree = assembly.tree
    for name in ("dof_q", "scale", "rest", "armature", "mass"):
        setattr(tree, name, getattr(tree, name).copy())


def _place(assembly: Assembly, link: Link) -> tuple[bool, bool]:
    """Place a link once more, and copy its new nodes to the nodes that it had.

    Returns:
        whether their bases or poses differ, and whether all places on the link stay.
    """
    tree, old = assembly.tree, assembly.bodies[link.name]
    k, begin = tree.index[link.name], old.anchor(0.0)
    known = [node for node in tree.nodes if node.link == k]
    if isinstance(link.body, DeformableBody):
        raise _OtherStructure
    lists = {name: getattr(tree, name) for name in ("nodes", "groups", "wet", "tails")}
    for name in lists:
        setattr(tree, name, [])
    tree.mass[k] = 0.0
    body = assembly.bodies[link.name] = type(old)(link.body)  # type: ignore[call-arg]
    body.follow(old)
    with checks.sized(f"link {link.name!r}"):
        assembly.place(link)
    for s in getattr(old, "leaves", ()):
        body.anchor(s)
    made = {name: getattr(tree, name) for name in lists}
    for name, before in lists.items():
        setattr(tree, name, before)
    if [_form(node) for node in known] != [_form(node) for node in made["nodes"]]:
        raise _OtherStructure
    place = {id(new): node for new, node in zip(made["nodes"], known)}
    for name in ("groups", "wet", "tails"):
        _put_rows(lists[name], [(place[id(row[0])], *row[1:]) for row in made[name]], k)
    differ, stays = False, True
    for new, node in zip(made["nodes"], known):
        differ = differ or not _same_bases(new, node)
        stays = stays and _same_place(new, node)
        parent = None if new.parent is None else place.get(id(new.parent), new.parent)
        if parent is not node.parent:
            raise _OtherStructure
        node.__dict__.update(vars(new) | {"parent": parent, "index": node.index})
    for name, value in vars(body).items():
        if name != "known":
            setattr(body, name, _renamed(value, place))
    return differ, stays and not differ and _same_frames(begin, body.anchor(0.0))


def _same_place(a: Node, b: Node) -> bool:
    """Whether two nodes carry the same frame if their parents do."""
    if (a.h, a.kappa, a.s) != (b.h, b.kappa, b.s) or a.pose is not b.pose:
        return False
    return all(x is y or _same_arrays(x, y) for x, y in ((a.G, b.G), (a.xi1, b.xi1), (a.xi2, b.xi2)))


def _same_bases(a: Node, b: Node) -> bool:
    ends = (a.Phi1, b.Phi1), (a.Phi2, b.Phi2)
    return a.pose is None and b.pose is None and all(x is y or _same_arrays(x, y) for x, y in ends)


def _put_rows(rows: list[Any], new: list[Any], link: int) -> None:
    """Replace the rows of a link in a list whose rows begin with a node."""
    at = [k for k, row in enumerate(rows) if row[0].link == link]
    if len(at) != len(new):
        raise _OtherStructure
    for k, row in zip(at, new):
        rows[k] = row


def _form(node: Node) -> tuple[Any, ...]:
    return node.kind, node.Phi1.shape, node.s, node.v_start, node.q_shift


def _renamed(value: Any, place: dict[int, Node]) -> Any:
    """A value of a placed body with nodes of the tree in place of those just made."""
    if isinstance(value, Node):
        return place.get(id(value), value)
    if isinstance(value, list | tuple) and any(isinstance(x, Node) for x in value):
        return type(value)([_renamed(x, place) for x in value])
    if isinstance(value, dict) and any(isinstance(x, Node) for x in value.values()):
        return {key: _renamed(x, place) for key, x in value.items()}
    return value
