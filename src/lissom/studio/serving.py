"""The studio as a server: the page by NiceGUI, the scene by viser at the next port, and who may reach them.

Both refuse requests of other origins, by the rule of the viewer.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

from lissom.portable import optional
from lissom.studio.document import RobotDocument
from lissom.studio.page import Page
from lissom.studio.scene import Studio
from lissom.viewing.viewer import LOOPBACK, names_of_machine, refusal

PAGE_PORT = 8090
_RECONNECT = 60.0  # time for which a page waits for a busy machine before it is loaded again [s]


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
    document = RobotDocument(Path("robot.yaml") if path is None else path)
    port = port or free_port(host)
    made = Studio(document, host, port + 1, hosts)
    print(f"{document.path}: http://{'localhost' if host in ('0.0.0.0', '::', '') else host}:{port}")
    print("Ctrl-C ends the studio", flush=True)
    try:
        serve(made, host, port, hosts, browser=browser)
    except KeyboardInterrupt:
        print("ended")


def serve(made: Studio, host: str, port: int, hosts: Sequence[str] = (), *, browser: bool = False) -> None:
    """Serve the pages of a studio until the process gets a signal to end; then the studio is stopped. See `studio`."""
    from nicegui import app, ui

    app.add_middleware(OriginCheck, names=names_of_machine(host, hosts))
    app.on_shutdown(made.stop)

    @ui.page("/", title="lissom studio")
    def page() -> None:
        Page(made)

    options: dict[str, Any] = {"reload": False, "show": browser, "show_welcome_message": False, "favicon": "🪱",
                               "reconnect_timeout": _RECONNECT}  # fmt: skip
    ui.run(host=host, port=port, uvicorn_logging_level="error", **options)


def free_port(host: str) -> int:
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
