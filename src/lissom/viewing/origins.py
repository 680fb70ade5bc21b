"""Access check of the viewer: only pages that it has served itself, under a name of this machine, may connect.

A browser lets any page open a websocket to any address, this machine included; `Origin` names the page. A page can also
let its own name resolve to this machine (DNS rebinding); `Host` then holds that name. Both headers are checked before
any answer.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}


def refusal(host: Sequence[str], origin: Sequence[str], names: Sequence[str]) -> str:
    """Reason for refusing a request; empty if it is allowed.

    Args:
        host, origin: values of these headers. names: names of this machine, besides its addresses.
    """
    if len(host) != 1 or len(origin) > 1:
        return "a request must say once which host it asks"
    asked = _split(f"//{host[0]}")
    if asked is None or not _is_ours(asked.hostname or "", names):
        return f"host {host[0]!r} is no name of this machine; say it by hosts= or --hosts where it is meant"
    if not origin:
        return ""  # no browser
    page = _split(origin[0])
    if page is None or page.scheme not in _PORTS:
        return f"pages of {origin[0]!r} may not connect"
    standard = _PORTS[page.scheme]
    is_own = (page.hostname, page.port or standard) == (asked.hostname, asked.port or standard)
    behind_proxy = (page.hostname or "") in _lower(names)
    return "" if is_own or behind_proxy else f"pages of {origin[0]!r} may not connect"


def _split(text: str) -> SplitResult | None:
    """Parts of an address; None if it is not valid."""
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError:
        return None
    return found if found.hostname else None


def _is_ours(name: str, names: Sequence[str]) -> bool:
    """Whether a name in lower case belongs to this machine. Addresses are allowed, since no foreign page has an address
    of this machine."""
    try:
        ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost") or name in _lower(names)
    return True


def _lower(names: Sequence[str]) -> set[str]:
    return {name.lower() for name in names}


def names_of_machine(host: str, names: Sequence[str]) -> list[str]:
    """Names allowed in requests to a server at `host`: the given names, and those of this machine if the server listens
    to a network."""
    found = [host, *names]
    if host not in ("127.0.0.1", "::1", "localhost"):
        own = socket.gethostname()
        found += [own, f"{own}.local", socket.getfqdn()]
    return [name for name in found if name]


@contextmanager
def checked(names: Sequence[str]) -> Iterator[list[Any]]:
    """Make a server of viser that starts within the block check its requests.

    Yields the list of servers started. It stays empty if this version of viser starts its servers in another way.
    """
    from websockets.asyncio import server as sockets

    own: Any = sockets.serve
    started: list[Any] = []

    def serve(handler: Any, *given: Any, process_request: Any = None, **more: Any) -> Any:
        started.append(handler)
        return own(handler, *given, process_request=_checking(process_request, names), **more)

    sockets.serve = serve  # type: ignore[assignment,misc]
    try:
        yield started
    finally:
        sockets.serve = own


def _checking(inner: Callable[..., Any] | None, names: Sequence[str]) -> Callable[..., Any]:
    """Function that checks a request before `inner` answers it."""

    def answer(connection: Any, request: Any) -> Any:
        why = refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"), names)
        if why:
            return connection.respond(HTTPStatus.FORBIDDEN, f"lissom: {why}\n")
        return None if inner is None else inner(connection, request)

    return answer
