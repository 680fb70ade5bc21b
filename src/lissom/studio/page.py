"""The page of the studio: the tree of parts, their forms, computations and results beside the scene of the viewer.

NiceGUI serves the page, and viser the scene in a frame of it. Both refuse requests of other origins, by the rule of
the viewer. All that the page shows is read from a document and a session, which know nothing of it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.portable import optional
from lissom.robot.robot import Robot
from lissom.studio.document import RobotDocument, robot_files, templates
from lissom.studio.drawings import blank_section, modes_drawing, rods_of, section_drawing
from lissom.studio.forms import ONE_OF, Kind, document_form, form_of, part_kind, sections
from lissom.studio.placing import Handle, is_placed, pose_of
from lissom.studio.python_text import python_of
from lissom.studio.run_tab import RunTab
from lissom.studio.session import StudioSession, call_of
from lissom.studio.values import blank
from lissom.studio.widgets import WORLD, PartForm
from lissom.viewing.session import Session
from lissom.viewing.stage import quaternion
from lissom.viewing.viewer import LOOPBACK, Viewer, names_of_machine, refusal

PAGE_PORT = 8090
_POLL = 0.15  # between two looks at the session [s]
_RECONNECT = 60.0  # time for which a page waits for a busy machine before it is loaded again [s]
_SLOW = 1.5  # building time after which the page says what takes long [s]
_MOST_DRAWN = 4  # sections of one tendon
_OPEN_LINKS = 150  # number of links up to which the tree is open at first
_ROBOT = "robot"  # the first node of the tree
_ICONS = {"links": "hub", "frames": "my_location", "actuators": "bolt", "couplings": "call_merge",
          "loads": "arrow_downward", "loops": "all_inclusive", "springs": "compress", "contacts": "layers",
          "states": "bookmark", "motions": "rotate_right", "fluid": "water"}  # fmt: skip
_BODIES = {"Rod": "timeline", "RigidBody": "crop_din", "DeformableBody": "bubble_chart"}
_NODE = """<q-icon v-if="props.node.icon" :name="props.node.icon" :color="props.node.iconColor" size="1.2em"
class="q-mr-xs"/><span>{{ props.node.label }}</span><span class="text-grey-6 text-caption q-ml-sm">{{ props.node.kind }}
</span>"""
_STYLE = """
.nicegui-content, .nicegui-tab-panel { padding: 0; gap: 0 }
.q-field--dense .q-field__control, .q-field--dense .q-field__marginal { min-height: 30px; height: auto }
.q-field--auto-height.q-field--dense .q-field__control, .q-field--auto-height.q-field--dense .q-field__native
  { min-height: 30px }
.q-field--dense .q-field__native, .q-field--dense .q-field__input, .q-field--dense .q-field__suffix,
.q-field--dense .q-field__prefix { font-size: 0.82rem; padding-top: 2px; padding-bottom: 2px; line-height: 1.3 }
.q-field--dense .q-field__suffix, .q-field--dense .q-field__prefix { color: #7a8699; font-size: 0.74rem }
.q-tree__node-header { padding: 1px 4px } .q-tree { font-size: 0.85rem }
.nested > .q-expansion-item__container > .q-item { padding: 2px 4px; min-height: 28px; background: #f3f5f8;
  border-radius: 4px; margin-top: 3px }
.nicegui-expansion-content { padding: 2px 0 4px 10px; gap: 0; margin-left: 4px; border-left: 2px solid #e3e7ee }
.nicegui-scroll-area .q-scrollarea__content { padding: 6px 14px 6px 6px; gap: 4px }
.nicegui-row { gap: 0.25rem } .q-menu .q-item { min-height: 30px; padding: 2px 14px; font-size: 0.85rem }
.mistake { line-height: 1.25; padding: 2px 0 4px 0 }
.calls { font-family: monospace; font-size: 0.72rem; white-space: pre-wrap; color: #445; background: #f3f5f8;
  padding: 4px 8px; border-radius: 4px; width: 100%; overflow-wrap: anywhere }
.how .q-field__native span { display: none } .how .q-field__control { padding: 0 }
.cm-editor { font-size: 0.78rem; height: 100% }
"""


def studio(
    path: str | os.PathLike[str] | None = None,
    *,
    host: str = LOOPBACK,
    port: int = PAGE_PORT,
    hosts: Sequence[str] = (),
    browser: bool = True,
) -> None:
    """Serve the studio of a robot file until Ctrl-C.

    Args:
        path: the robot file; one that does not exist begins empty. None is `robot.yaml` in the current folder.
        host, port, hosts, browser: as for `view`. The scene is served at the next port; with port 0 both are free ones.
    Raises:
        ModelError: NiceGUI or viser is missing, or the file cannot be read. OSError: a port is in use.
    """
    optional("nicegui", "the studio needs NiceGUI", "studio")
    from nicegui import app, ui

    document = RobotDocument(Path("robot.yaml") if path is None else path)
    port = port or _free_port(host)
    made = Studio(document, host, port + 1, hosts)
    names = names_of_machine(host, hosts)
    app.add_middleware(OriginCheck, names=names)
    app.on_shutdown(made.stop)

    @ui.page("/", title="lissom studio")
    def page() -> None:
        Page(made)

    print(f"{document.path}: http://{'localhost' if host in ('0.0.0.0', '::', '') else host}:{port}")
    print("Ctrl-C ends the studio", flush=True)
    options: dict[str, Any] = {"reload": False, "show": browser, "show_welcome_message": False, "favicon": "🪱",
                               "reconnect_timeout": _RECONNECT}  # fmt: skip
    try:
        ui.run(host=host, port=port, uvicorn_logging_level="error", **options)
    except KeyboardInterrupt:
        print("ended")


def _free_port(host: str) -> int:
    """A free port whose successor is free too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(100):
        with socket.socket(family, socket.SOCK_STREAM) as first, socket.socket(family, socket.SOCK_STREAM) as second:
            first.bind((host, 0))
            port = int(first.getsockname()[1])
            try:
                second.bind((host, port + 1))
            except OSError:
                continue
            return port
    raise OSError(f"no two free ports beside each other at {host}")


@final
class OriginCheck:
    """Refuses requests of pages from elsewhere, and lets no other page hold this one in a frame.

    Args:
        app: of Starlette. names: names of this machine, as for `refusal`.
    """

    def __init__(self, app: Any, names: Sequence[str]) -> None:
        self.app, self.names = app, names

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        given = {name: [value.decode("latin-1") for key, value in scope["headers"] if key == name.encode()]
                 for name in ("host", "origin")}  # fmt: skip
        why = refusal(given["host"], given["origin"], self.names)
        if why and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": why[:100]})
        elif why:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": f"lissom: {why}\n".encode()})
        else:
            await self.app(scope, receive, _unframed(send))


def _unframed(send: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A sender whose answers forbid other pages to frame them."""

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"content-security-policy", b"frame-ancestors 'self'")]
            message = {**message, "headers": headers}
        await send(message)

    return sent


@final
class Studio:
    """A document, its session, and the viewer that shows it; all pages share them.

    Args:
        document: the robot file. host, port, hosts: where the scene is served, as for `view`.
    """

    def __init__(self, document: RobotDocument, host: str, port: int, hosts: Sequence[str] = ()) -> None:
        self.document, self.port = document, port
        nothing = Robot("no robot yet")
        nothing.add_link("world")
        self.viewer = Viewer(nothing.build(), None, None, None, host, port, hosts)
        self.session = StudioSession(document, self.show)
        self.selected: list[str | int] = []  # by the last page, with which a new one begins
        self.placing: list[str | int] = []  # the part that has a handle in the scene
        self._handle: Any = None
        self._size = 0.0

    def show(self, view: Session) -> None:
        """Show a session in the scene. The camera moves if the robot is of another size."""
        self._handle = None  # the scene is cleared
        self.viewer.take(view)
        session = getattr(self, "session", None)  # which calls this while it is made
        ghosts = session.ghost_motions() if session is not None else []
        if ghosts:
            self.viewer.do(lambda: self.viewer.stage.show_ghosts(ghosts, view.t))
        if self.placing:
            self.viewer.do(self._show_handle)
        size = self.viewer.stage.size
        if view.model.n_nodes and not 0.7 < size / (self._size or 1e-9) < 1.4:
            self._size = size
            self.look()

    def look(self, away: Sequence[float] | None = None) -> None:
        """Turn all cameras to the whole robot, from a direction or from the direction of the start."""
        self.viewer.do(lambda: self.viewer.stage.look(self.viewer.server, away))

    def place(self, keys: Sequence[str | int]) -> None:
        """Give a part of the document a handle in the scene, by which the mouse moves and turns it; nothing ends
        this."""
        self.placing = list(keys)
        self.viewer.do(self._show_handle)

    def _show_handle(self) -> None:
        """Show the handle of the part that is placed. Its new placement is one edit of the file, when it is let go."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        view, keys = self.session.view, self.placing
        name = str(self.document.value([*keys, "name"])) if keys else ""
        is_current = view is not None and view.model is self.session.model
        if view is None or not keys or not is_current or not is_placed(view.model, str(keys[0]), name):
            return
        part = Handle(view.model, view.q, str(keys[0]), name)
        turn = quaternion(part.pose[:3, :3])
        self._handle = self.viewer.server.scene.add_transform_controls(
            "/handle", 0.35 * self.viewer.stage.size, depth_test=False, position=part.pose[:3, 3], wxyz=turn
        )

        def moved(event: Any) -> None:
            if event.phase == "end":
                self.take_placement(keys, part, pose_of(event.target.position, event.target.wxyz))

        self._handle.on_update(moved)

    def take_placement(self, keys: Sequence[str | int], part: Handle, pose: np.ndarray) -> None:
        """Write the placement of a part at a pose (4, 4) in the world into the file; an error is noted."""
        there = [*keys, "placement"]
        try:
            self.document.put(there, part.moved(pose, self.viewer.stage.size, self.document.value(there)))
        except ModelError as error:
            self.session.note = str(error)

    def stop(self) -> None:
        """End the threads and the viewer."""
        self.session.stop()
        self.viewer.stop()


@final
class Page:
    """The page of one browser."""

    def __init__(self, made: Studio) -> None:
        from nicegui import ui

        self.studio, self.document, self.session = made, made.document, made.session
        self.selected: list[str | int] = []
        self.form = PartForm(self.document, self._tell, self._show_form)
        self._tree_text, self._built = "", None
        self.drawings: Any = None
        self.modes: Any = None
        ui.add_css(_STYLE)
        ui.colors(primary="#2f5d8a", negative="#b3402a", positive="#3f7d58")
        self._header()
        with ui.splitter(value=32, limits=(20, 60)).classes("w-full").style("height: calc(100vh - 42px)") as parts:
            with parts.before:
                self._side()
            with parts.after:
                host = (
                    (ui.context.client.request.url.hostname or "localhost")
                    if ui.context.client.request
                    else "localhost"
                )
                shown = f"[{host}]" if ":" in host else host
                self.scene = ui.element("iframe").props(f'src="http://{shown}:{made.port}" title="scene"')
                self.scene.style("border: 0; width: 100%; height: 100%; display: block")
        ui.keyboard(on_key=self._key)
        ui.timer(_POLL, self._poll)
        self._select(made.selected)

    # -- header -------------------------------------------------------------------------------------------------------

    def _header(self) -> None:
        from nicegui import ui

        flat = "flat dense no-caps size=md color=white"
        with ui.header(elevated=False).classes("items-center q-py-none q-px-sm gap-1 no-wrap").style("height: 42px"):
            ui.label("lissom studio").classes("text-subtitle1 text-weight-medium q-mr-sm")
            self.file = ui.label("").classes("text-caption ellipsis").style("max-width: 22em; opacity: 0.85")
            ui.separator().props("vertical dark").classes("q-mx-sm")
            self.undo = ui.button(icon="undo", on_click=self.document.undo).props(flat).props("data-place=undo")
            self.redo = ui.button(icon="redo", on_click=self.document.redo).props(flat).props("data-place=redo")
            with self.undo:
                self.undo_hint = ui.tooltip("undo")
            with self.redo:
                self.redo_hint = ui.tooltip("redo")
            with (
                ui.button("Template", icon="dashboard").props(flat).props("data-place=template"),
                ui.menu().props("auto-close"),
            ):
                for name, text in templates().items():
                    ui.menu_item(name, on_click=partial(self._take_template, name, text))
            ui.button("Attach", icon="attach_file", on_click=self._ask_attach).props(flat).tooltip(
                "add the parts of another robot's file (YAML, URDF, MJCF)"
            )
            with ui.button("View", icon="videocam").props(flat), ui.menu().props("auto-close"):
                for name, away in (("home", None), ("front", (1, 0, 0)), ("side", (0, -1, 0)), ("top", (0, 0, 1))):
                    ui.menu_item(name, on_click=partial(self.studio.look, away))
            ui.space()
            self.busy = ui.spinner(size="sm", color="white")
            self.status = ui.label("").classes("text-caption ellipsis").style("max-width: 34em")

    def _take_template(self, name: str, text: str) -> None:
        self.document.change(text, f"template {name}")
        self.studio._size = 0.0
        self._select([])

    async def _ask_attach(self) -> None:
        dialog, file, parent, prefix = self._attach_dialog()
        if await dialog and file.value:
            on = None if parent.value == WORLD else parent.value
            added = self._do(lambda: self.document.attach(str(file.value), on, prefix.value or ""))
            if added:
                self._tell(f"added {', '.join(added)}", good=True)

    def _attach_dialog(self) -> tuple[Any, Any, Any, Any]:
        """A dialog that asks for a robot file, and its fields."""
        from nicegui import ui

        with ui.dialog() as dialog, ui.card().style("min-width: 24em"):
            ui.label("Attach the parts of a robot file").classes("text-subtitle1")
            found = list(robot_files(self.document.folder))
            if not found:
                ui.label(f"There is no other robot file below {self.document.folder}").classes("text-caption")
            file = ui.select(found, label="file", with_input=True).classes("w-full")
            parent = ui.select([WORLD, *self.document.names("links")], label="on", value=WORLD).classes("w-full")
            prefix = ui.input("prefix of its names", value="").classes("w-full")
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button("Attach", on_click=lambda: dialog.submit(True)).props("no-caps")
        return dialog, file, parent, prefix

    # -- the left side ------------------------------------------------------------------------------------------------

    def _side(self) -> None:
        from nicegui import ui

        with ui.column().classes("w-full h-full no-wrap gap-0"):
            with (
                ui.tabs().props("dense no-caps align=justify active-color=primary").classes("w-full bg-grey-2") as tabs
            ):
                build, run = ui.tab("Build"), ui.tab("Run")
                text, python = ui.tab("File"), ui.tab("Python")
            with ui.tab_panels(tabs, value=build, animated=False).classes("w-full col").style("min-height: 0"):
                with ui.tab_panel(build).classes("q-pa-none h-full column no-wrap"):
                    self._build_tab()
                with ui.tab_panel(run).classes("q-pa-sm h-full"):
                    self.run = RunTab(self.session, self._do, self._tell)
                with ui.tab_panel(text).classes("q-pa-none h-full"):
                    self._file_tab()
                with ui.tab_panel(python).classes("q-pa-sm h-full"):
                    self._python_tab()
            with ui.column().classes("w-full gap-0 q-px-sm q-py-xs bg-grey-2").style("max-height: 22%; overflow: auto"):
                self.mistakes = ui.column().classes("w-full gap-0")
                self.call = ui.label("").classes("calls").tooltip("the last call of the library")

    def _build_tab(self) -> None:
        from nicegui import ui

        small = "flat dense size=md no-caps color=primary"
        with ui.row().classes("w-full gap-0 items-center q-px-xs bg-grey-1 no-wrap"):
            adder = ui.button("Add", icon="add").props(small).props("data-place=add")
            with adder, ui.menu() as self.adder:
                for section, word in sections().items():
                    self._add_item(section, word)
                ui.menu_item("fluid", on_click=self._add_fluid)
            for icon, hint, react in (
                ("content_copy", "duplicate", self._duplicate),
                ("drive_file_rename_outline", "rename", self._ask_name),
                ("delete_outline", "remove, with the parts that need it", self._remove),
                ("arrow_upward", "earlier in its list: the order of links is that of q, of actuators that of u",
                 lambda: self._move(-1)),
                ("arrow_downward", "later in its list", lambda: self._move(1)),
            ):  # fmt: skip
                ui.button(icon=icon, on_click=react).props(small).tooltip(hint).props(
                    f'data-place="{hint.split(",")[0]}"'
                )
        with (
            ui.splitter(horizontal=True, value=36, limits=(10, 85)).classes("w-full col").style("min-height: 0") as two
        ):
            with two.before, ui.scroll_area().classes("w-full h-full"):
                self.tree = ui.tree([], on_select=lambda event: self._on_select(event.value))
                self.tree.props("dense no-selection-unset selected-color=primary").classes("w-full")
                self.tree.add_slot("default-header", _NODE)
            with two.after, ui.scroll_area().classes("w-full h-full"):
                self.part = ui.column().classes("w-full gap-0 q-px-sm q-pb-lg")

    def _add_item(self, section: str, word: str) -> None:
        from nicegui import ui

        forms = part_kind(section).forms
        if len(forms) == 1:
            ui.menu_item(word, on_click=lambda: self._add(section, next(iter(forms))))
            return
        with ui.menu_item(word, auto_close=False).props("clickable"):
            with ui.item_section().props("side"):
                ui.icon("keyboard_arrow_right")
            with ui.menu().props('anchor="top end" self="top start"'):
                for title in forms:
                    ui.menu_item(title, on_click=partial(self._add, section, title))

    # -- the tree -----------------------------------------------------------------------------------------------------

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
            children.setdefault(parent if parent in known else None, []).append(node | {"name": _name(item)})

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
        node: dict[str, Any] = {"id": json.dumps([section, k]), "label": _name(item), "kind": str(kind)}
        if icon:
            node["icon"] = icon
        if (section, k) in wrong:
            node |= {"icon": "error", "iconColor": "negative"}
        return node

    def _show_tree(self) -> None:
        if not self.document.is_readable:
            return
        nodes = self._nodes()
        text = json.dumps(nodes)
        if text == self._tree_text:
            return
        first = not self._tree_text
        grown = set(_ids(nodes)) - set(_ids(json.loads(self._tree_text))) if self._tree_text else set()
        self._tree_text = text
        self.tree.props["nodes"] = nodes
        self.tree.update()
        if first and len(self.document.names("links")) <= _OPEN_LINKS:
            self.tree.expand()
        elif grown:
            self.tree.expand([node["id"] for node in _parents(nodes, grown)])

    def _on_select(self, node: str | None) -> None:
        if node is not None:
            self.selected = [] if node == _ROBOT else json.loads(node) if node.startswith("[") else self.selected
            self._show_form()

    def _select(self, keys: list[str | int]) -> None:
        self.selected = keys
        self._show_tree()
        self.tree.select(json.dumps(keys) if keys else _ROBOT)
        self._show_form()

    # -- the form -----------------------------------------------------------------------------------------------------

    def _show_form(self) -> None:
        from nicegui import ui

        self.part.clear()
        self.drawings, self.modes = None, None
        self.studio.selected = self.selected
        if self.studio.placing and self.studio.placing != self.selected:
            self.studio.place([])
        self.form.version = self.document.version
        with self.part:
            if not self.document.is_readable:
                ui.label("The file is not YAML at the moment; mend it under File.").classes("text-negative q-pt-sm")
                return
            value = self.document.value(self.selected)
            if self.selected and value is None:
                self.selected = []
                value = self.document.data
            if not self.selected:
                self._show_robot()
            else:
                self._show_part(value)
        self.form.show_faults(self.session.built.faults)

    def _show_robot(self) -> None:
        """The values of the whole robot."""
        whole = document_form()
        parts = {*sections(), "fluid"}
        own = [one for one in whole.fields if one.name not in parts]
        with self.part:
            self._title("robot", "the whole robot")
            self.form.show_values(own)
            if not self.document.names("links"):
                from nicegui import ui

                ui.markdown("**Add** a link, or take a **Template** above.").classes("text-body2 q-pt-md")

    def _show_part(self, value: Any) -> None:
        section = str(self.selected[0])
        if section == "fluid":
            found = document_form().field("fluid")
            kind = found.kind if found is not None else Kind(ONE_OF)
            self._title("fluid", "")
        else:
            kind = part_kind(section)
            self._title(_name(value), sections()[section])
            form = form_of(kind, value)
            if form is not None and form.field("placement") is not None:
                self._place_button(section, _name(value))
            if _is_rod(value):
                from nicegui import ui

                self.drawings = ui.html("", sanitize=False).classes("w-full").props("data-place=section")
        self.form.show(kind, self.selected)
        if section == "actuators":  # below the form, which it would move as it grows
            from nicegui import ui

            self.drawings = ui.html("", sanitize=False).classes("w-full").props("data-place=section")
        if _is_rod(value):
            from nicegui import ui

            with ui.expansion("modes of the basis").props("dense dense-toggle").classes("w-full nested"):
                self.modes = ui.html("", sanitize=False).classes("w-full").props("data-place=modes")
        self._show_drawings()
        form = form_of(kind, value)
        if form is not None and form.help:
            from nicegui import ui

            ui.label(form.help).classes("text-caption text-grey-7 q-pt-md")

    def _place_button(self, section: str, name: str) -> None:
        """A button that gives the part a handle in the scene."""
        from nicegui import ui

        is_on = self.studio.placing == self.selected
        button = ui.button("let go" if is_on else "move in the scene", icon="open_with").props(
            "flat dense no-caps size=sm data-place=place"
        )
        button.tooltip("drag its arrows and rings in the scene; the file gets the placement when you let go")

        def toggle() -> None:
            model = self.session.model
            if not is_on and (model is None or not is_placed(model, section, name)):
                self._tell(f"{name}: mend the mistakes below first, so that the part is in the scene")
                return
            self._do(lambda: self.studio.place([] if is_on else self.selected))
            self._show_form()

        button.on_click(toggle)

    def _show_drawings(self) -> None:
        """Draw the section and the modes of the part that is selected, of the last good robot."""
        model = self.session.model
        if self.drawings is None and self.modes is None:
            return
        if model is None:
            if self.drawings is not None and self.selected[0] == "links":
                self.drawings.set_content(blank_section())
            return
        name = _name(self.document.value(self.selected))
        links, marked = ([name], "") if self.selected[0] == "links" else (rods_of(model, name), name)
        known = [link for link in links if link in model.links.names]
        if self.drawings is not None:
            drawn = "".join(section_drawing(model, link, marked) for link in known[:_MOST_DRAWN])
            self.drawings.set_content(drawn or (blank_section() if self.selected[0] == "links" else ""))
        if self.modes is not None:
            self.modes.set_content("".join(modes_drawing(model, link) for link in known))

    def _title(self, name: str, word: str) -> None:
        from nicegui import ui

        with ui.row().classes("w-full items-baseline gap-2 q-pt-xs"):
            ui.label(name).classes("text-subtitle1 text-weight-medium")
            ui.label(word).classes("text-caption text-grey-7")

    # -- edits of parts -----------------------------------------------------------------------------------------------

    def _do(self, change: Callable[[], Any]) -> Any:
        """Make a change; its errors are told."""
        try:
            return change()
        except (ModelError, OSError) as error:
            self._tell(str(error))
            return None

    def _tell(self, text: str, good: bool = False) -> None:
        from nicegui import ui

        close: Any = [] if good else [{"label": "close", "color": "white", "dense": True, "noCaps": True}]
        ui.notify(text, type="positive" if good else "negative", multi_line=True, position="bottom",
                  timeout=4000 if good else 9000, actions=close)  # fmt: skip

    def _add(self, section: str, title: str) -> None:
        self.adder.close()
        here = _name(self.document.value(self.selected)) if self.selected[:1] == ["links"] else None
        names = self.document.known_names(here)
        value = blank(part_kind(section).forms[title], names)
        if section != "input_limits":
            value = {"name": self.document.free_name(section, _short(title)), **{
                key: item for key, item in value.items() if key != "name"}}  # fmt: skip
        if section == "links" and here is not None:
            value = {"name": value.pop("name"), "parent": here, **value}
        if "type" in value:
            value = {"type": value.pop("type"), **value}
        k = self._do(lambda: self.document.add(section, value))
        if k is not None:
            self._select([section, k])

    def _add_fluid(self) -> None:
        self.adder.close()
        if self.document.value(["fluid"]) is None:
            self._do(lambda: self.document.put(["fluid"], {"density": 1000}))
        self._select(["fluid"])

    @property
    def _is_part(self) -> bool:
        if len(self.selected) == 2:
            return True
        self._tell("select a part in the tree first")
        return False

    def _duplicate(self) -> None:
        if self._is_part:
            section, k = str(self.selected[0]), int(self.selected[1])
            found = self._do(lambda: self.document.duplicate(section, k))
            if found is not None:
                self._select([section, found])

    def _remove(self) -> None:
        if self.selected == ["fluid"]:
            self._do(lambda: self.document.clear(["fluid"]))
            self._select([])
        elif self._is_part:
            section, k = str(self.selected[0]), int(self.selected[1])
            gone = self._do(lambda: self.document.remove(section, k))
            if gone:
                self._select([])
                self._tell(f"removed {', '.join(gone)}; undo brings them back", good=True)

    def _move(self, by: int) -> None:
        if self._is_part:
            section, k = str(self.selected[0]), int(self.selected[1])
            if 0 <= k + by < len(self.document.value([section])):
                self._do(lambda: self.document.move(section, k, k + by))
                self._select([section, k + by])

    async def _ask_name(self) -> None:
        if not self._is_part:
            return
        section, k = str(self.selected[0]), int(self.selected[1])
        new = await self._name_dialog(_name(self.document.value([section, k])))
        if new:
            self._do(lambda: self.document.rename(section, k, new.strip()))
            self._select([section, k])

    def _name_dialog(self, name: str) -> Any:
        """A dialog that asks for a new name."""
        from nicegui import ui

        with ui.dialog() as dialog, ui.card():
            line = ui.input("new name", value=name).props("autofocus")
            line.on("keydown.enter", lambda: dialog.submit(line.value))
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat no-caps")
                ui.button("Rename", on_click=lambda: dialog.submit(line.value)).props("no-caps")
        return dialog

    def _key(self, event: Any) -> None:
        if event.action.keydown and (event.modifiers.ctrl or event.modifiers.meta):
            if event.key == "z" and not event.modifiers.shift:
                self.document.undo()
            elif event.key in ("y", "Z"):
                self.document.redo()

    # -- the file and the script --------------------------------------------------------------------------------------

    def _file_tab(self) -> None:
        from nicegui import ui

        self.editor = ui.codemirror(self.document.text, language="YAML", line_wrapping=True).classes("w-full h-full")
        self.editor.on("blur", self._take_text)
        self._editor_text = self.document.text

    def _take_text(self) -> None:
        if self.editor.value != self._editor_text:
            self._editor_text = self.editor.value or ""
            self.document.change(self._editor_text, "edit the text")

    def _python_tab(self) -> None:
        from nicegui import ui

        with ui.scroll_area().classes("w-full h-full"):
            ui.label("The script that makes the same robot").classes("text-caption text-grey-7")
            self.python = ui.code("", language="python").classes("w-full text-caption")

    def _show_python(self) -> None:
        model = self.session.model
        if model is not None:
            text = self._do(lambda: python_of(model.description))
            if text is not None and self.python.content != text:
                self.python.set_content(text)

    # -- what changes by itself ---------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Show what has changed since the last look."""
        document, session, built = self.document, self.session, self.session.built
        if document.version != self.form.version:
            self._show_tree()
            self._show_form()
        if built is not self._built:
            self._built = built
            self._show_tree()
            self.form.show_faults(built.faults)
            self._show_drawings()
            self._show_mistakes()
            self.run.show_inputs()
            self._show_python()
        if self._editor_text != document.text and self.editor.value == self._editor_text:
            self._editor_text = document.text
            self.editor.set_value(document.text)
        self._show_header()
        last = call_of(session.view) if session.view is not None and session.view.mode != "replay" else ""
        self.call.set_text(last or (session.calls[-1] if session.calls else ""))
        self.run.poll()

    def _show_header(self) -> None:
        document, session = self.document, self.session
        name = document.path.name if document.path is not None else "not stored"
        self.file.set_text(document.unsaved or name)
        self.undo.set_enabled(bool(document.undo_name))
        self.redo.set_enabled(bool(document.redo_name))
        self.undo_hint.set_text(f"undo: {document.undo_name}" if document.undo_name else "nothing to undo")
        self.redo_hint.set_text(f"redo: {document.redo_name}" if document.redo_name else "nothing to redo")
        working = session.busy_for
        self.busy.set_visibility(working > 0.3 or session.run is not None)
        self.status.set_text(state_text(document, session))

    def _show_mistakes(self) -> None:
        from nicegui import ui

        built = self.session.built
        self.mistakes.clear()
        with self.mistakes:
            for fault, color in [
                *((one, "negative") for one in built.faults),
                *((one, "warning") for one in built.doubts),
            ]:
                there = list(fault.keys[:2]) if len(fault.keys) > 1 and isinstance(fault.keys[1], int) else []
                line = ui.row().classes("w-full no-wrap gap-1 items-start cursor-pointer")
                line.on("click", partial(self._select, there))
                with line:
                    ui.icon("error" if color == "negative" else "warning", color=color, size="xs").classes("q-pt-xs")
                    ui.label(f"line {fault.line}: {fault.text}").classes("text-caption col")


def state_text(document: RobotDocument, session: StudioSession) -> str:
    """The state of the robot in one line: what is waited for, what is wrong, or its size and its rest."""
    built, model, view, working = session.built, session.model, session.view, session.busy_for
    if working > _SLOW:
        return f"building for {working:.0f} s: kernels of a new kind of robot compile once"
    if document.unsaved:
        return document.unsaved
    if built.faults:
        count = len(built.faults)
        return f"{count} mistake{'s' if count > 1 else ''}" + ("; the last good robot is shown" if model else "")
    if model is None:
        return ""
    state = f"; {view.note}" if view is not None and view.note else ""
    sizes = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((model.nv, "coordinate"), (model.nu, "input"))]
    return f"{', '.join(sizes)}{state}; {1e3 * built.seconds:.0f} ms"


def _is_rod(item: Any) -> bool:
    body = item.get("body") if isinstance(item, dict) else None
    return isinstance(body, dict) and body.get("type") == "Rod"


def _name(item: Any) -> str:
    return str(item.get("name", "?")) if isinstance(item, dict) else "?"


def _short(title: str) -> str:
    """A first name for a part of a class."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in title).split()
    return words[-1] if words else "part"


def _ids(nodes: list[dict[str, Any]]) -> list[str]:
    return [found for node in nodes for found in (node["id"], *_ids(node.get("children", [])))]


def _parents(nodes: list[dict[str, Any]], wanted: set[str]) -> list[dict[str, Any]]:
    """The nodes on the way to some nodes."""
    return [found for node in nodes if {*_ids(node.get("children", []))} & wanted
            for found in (node, *_parents(node.get("children", []), wanted))]  # fmt: skip
