"""A document, its session and the scene of the viewer, which all pages share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot.robot import Robot
from lissom.studio.document import RobotDocument
from lissom.studio.placing import Handle, is_placed, pose_of
from lissom.studio.session import StudioSession
from lissom.viewing.session import Session
from lissom.viewing.stage import quaternion
from lissom.viewing.viewer import Viewer

_ROOM = 0.2  # how far a robot may leave the box at which the cameras look, relative to its size


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
        self.session = StudioSession(document, self.show, self.show_ranges)
        self.selected: list[str | int] = []  # by the last page, with which a new one begins
        self.placing: list[str | int] = []  # the part that has a handle in the scene
        self._handle: Any = None
        self._seen: tuple[np.ndarray, np.ndarray] | None = None  # the box at which the cameras look

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
        if view.model.n_nodes and not self._is_seen(view):
            keep = self._seen is not None
            self.look(keep=keep)

    def show_ranges(self, view: Session) -> None:
        """Show the ranges of the inputs of a session, if it is still shown."""
        self.viewer.post(lambda: self.viewer.panel.take_ranges() if self.viewer.session is view else None)

    def _is_seen(self, view: Session) -> bool:
        """Whether the cameras, as they were turned last, still show a robot well: it is about as large, and where it
        was."""
        if self._seen is None:
            return False
        (low, high), (first, last) = self.viewer.stage.box(view.q), self._seen
        size, before = float((high - low).max()), float((last - first).max())
        room = _ROOM * before
        return 0.6 * before < size and bool((low > first - room).all() and (high < last + room).all())

    def look(self, away: Sequence[float] | None = None, *, keep: bool = False) -> None:
        """Turn all cameras to the whole robot, from a direction or from that of the start; with `keep` each browser
        keeps its own."""
        view = self.session.view if hasattr(self, "session") else None
        if view is not None:
            self._seen = self.viewer.stage.box(view.q)
        q = None if view is None else view.q
        self.viewer.do(lambda: self.viewer.stage.look(self.viewer.server, away, q, keep))

    def look_at_next(self) -> None:
        """Turn all cameras to the next robot, from the direction of the start."""
        self._seen = None

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
