"""The tree of the parts of a robot on the page: links below their parents, other parts below their kinds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, final

from lissom.studio.browser_parts import NODE, SHOW_SELECTED
from lissom.studio.document import RobotDocument
from lissom.studio.forms import sections
from lissom.studio.session import StudioSession
from lissom.studio.values import name_of

_OPEN_LINKS = 150  # number of links up to which the tree is open at first
_ROBOT = "robot"  # the first node of the tree
_ICONS = {"links": "hub", "frames": "my_location", "actuators": "bolt", "couplings": "call_merge",
          "loads": "arrow_downward", "loops": "all_inclusive", "springs": "compress", "contacts": "layers",
          "states": "bookmark", "motions": "rotate_right", "fluid": "water"}  # fmt: skip
_BODIES = {"Rod": "timeline", "RigidBody": "crop_din", "DeformableBody": "bubble_chart"}


@final
class PartTree:
    """The tree, in the container that is current when it is made.

    Args:
        document: the robot file. session: knows which parts have mistakes. choose: called with the keys of the part
            that the user has clicked; none are the whole robot.
    """

    def __init__(
        self, document: RobotDocument, session: StudioSession, choose: Callable[[list[str | int]], Any]
    ) -> None:
        from nicegui import ui

        self.document, self.session, self._choose, self._text = document, session, choose, ""
        self.tree = ui.tree([], on_select=lambda event: self._on_select(event.value))
        self.tree.props("dense no-selection-unset selected-color=primary").classes("w-full")
        self.tree.add_slot("default-header", NODE)

    def _on_select(self, node: str | None) -> None:
        if node == _ROBOT:
            self._choose([])
        elif node is not None and node.startswith("["):
            self._choose(json.loads(node))

    def select(self, keys: list[str | int]) -> None:
        """Mark a part, without a call of `choose`."""
        self.tree.select(json.dumps(keys) if keys else _ROBOT)
        self.tree.client.run_javascript(SHOW_SELECTED)

    def show(self) -> None:
        """Show the parts of the document, if they have changed."""
        if not self.document.is_readable:
            return
        nodes = self._nodes()
        text = json.dumps(nodes)
        if text == self._text:
            return
        first = not self._text
        grown = set(_ids(nodes)) - set(_ids(json.loads(self._text))) if self._text else set()
        self._text = text
        self.tree.props["nodes"] = nodes
        self.tree.update()
        if first:
            self.tree.expand(None if len(self.document.names("links")) <= _OPEN_LINKS else [_ROBOT])
        elif grown:
            self.tree.expand([node["id"] for node in _parents(nodes, grown)])

    def _nodes(self) -> list[dict[str, Any]]:
        """The parts of the document: links below their parents, other parts below their kinds."""
        data = self.document.data
        wrong = {fault.keys[:2] for fault in self.session.built.faults if len(fault.keys) > 1}
        listed = {section: items for section in sections() if isinstance(items := data.get(section), list)}
        children: dict[str | None, list[dict[str, Any]]] = {}
        known = self.document.names("links")
        for k, item in enumerate(listed.get("links", ())):
            parent = item.get("parent") if isinstance(item, dict) else None
            node = self._node("links", k, item, wrong)
            children.setdefault(parent if parent in known else None, []).append(node | {"name": name_of(item)})

        placed: set[str] = set()

        def below(name: str | None) -> list[dict[str, Any]]:
            found = []
            for node in children.get(name, ()):
                if node["id"] not in placed:  # a cycle of parents ends here
                    placed.add(node["id"])
                    found.append(node | {"children": below(node["name"])})
            return found

        tree = below(None)
        tree += [node for nodes in children.values() for node in nodes if node["id"] not in placed]
        for section, items in listed.items():
            if section != "links" and items:
                inner = [self._node(section, k, item, wrong) for k, item in enumerate(items)]
                tree.append({"id": section, "label": section.replace("_", " "), "icon": _ICONS.get(section, "category"),
                             "children": inner, "selectable": False})  # fmt: skip
        if data.get("fluid") is not None:
            tree.append({"id": json.dumps(["fluid"]), "label": "fluid", "icon": "water"})
        name = str(data.get("name", "robot"))
        return [{"id": _ROBOT, "label": name, "icon": "precision_manufacturing", "children": tree}]

    def _node(self, section: str, k: int, item: Any, wrong: set[tuple[Any, ...]]) -> dict[str, Any]:
        body = item.get("body") if isinstance(item, dict) else None
        kind = (
            body.get("type", "") if isinstance(body, dict) else item.get("type", "") if isinstance(item, dict) else ""
        )
        icon = _BODIES.get(str(kind), "radio_button_unchecked" if section == "links" else "")
        node: dict[str, Any] = {"id": json.dumps([section, k]), "label": name_of(item), "kind": str(kind)}
        if icon:
            node["icon"] = icon
        if (section, k) in wrong:
            node |= {"icon": "error", "iconColor": "negative"}
        return node


def _ids(nodes: list[dict[str, Any]]) -> list[str]:
    return [found for node in nodes for found in (node["id"], *_ids(node.get("children", [])))]


def _parents(nodes: list[dict[str, Any]], wanted: set[str]) -> list[dict[str, Any]]:
    """The nodes on the way to some nodes."""
    return [found for node in nodes if {*_ids(node.get("children", []))} & wanted
            for found in (node, *_parents(node.get("children", []), wanted))]  # fmt: skip
