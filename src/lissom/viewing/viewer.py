"""Interactive viewer: a robot in the browser, served by viser from a thread.

Only pages that the viewer has served itself, under a name of this machine, may connect. A browser lets any page open a
websocket to any address, this machine included; `Origin` names the page. A page can also let its own name resolve to
this machine (DNS rebinding); `Host` then holds that name. Both headers are checked before any answer.
"""

from __future__ import annotations

import contextlib
import io
import logging
import queue
import socket
import sys
import threading
import time
import webbrowser
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from urllib.parse import SplitResult, urlsplit

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.simulation.trajectory import Trajectory
from lissom.viewing.panel import Panel
from lissom.viewing.scene_files import scene_file
from lissom.viewing.session import Session
from lissom.viewing.stage import Stage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LOOPBACK, PORT = "127.0.0.1", 8080
_TICK = 1.0 / 60.0  # time between two pictures [s]
_ALIVE = 0.2  # time between two looks whether the viewer still runs [s]
_REFRESH = 0.15  # time between two updates of the panel [s]
_COUNTED = 120  # number of updates whose median is shown
_UNNOTICED = 0.1  # lag of a browser up to which pictures are not delayed [s]
_PATIENCE, _PAUSE = 10.0, 0.3  # longest wait for a browser, and time between two measurements of its lag [s]


def view(
    model: Model,
    q: ArrayLike | None = None,
    *,
    u: ArrayLike | None = None,
    trajectory: Trajectory | None = None,
    mode: str | None = None,
    host: str = LOOPBACK,
    port: int = PORT,
    hosts: Sequence[str] = (),
    browser: bool = True,
    block: bool = True,
) -> Viewer:
    """Show a robot in the browser: set its coordinates and inputs, see equilibria and motions at once, pull it with the
    mouse.

    Args:
        q: initial configuration, shape (nq,) [rad, m, or strain units]; None is `start_configuration`.
        u: initial inputs, shape (nu,) [N, N·m, Pa]; None is zero.
        trajectory: a motion of this robot to replay.
        mode: "pose", "equilibrium", "simulate" or "replay". None selects "replay" if a trajectory is given,
            "equilibrium" if inputs are given, else "pose".
        host: address at which the viewer listens. The default can be reached only from this machine; "0.0.0.0" can be
            reached from its whole network, without a password.
        port: number of the port; 0 takes a free one.
        hosts: names, besides those of this machine, under which browsers reach the viewer, such as that of a proxy.
            Pages of other origins cannot connect.
        browser: whether to open a browser.
        block: whether to wait for Ctrl-C; with False the function returns at once.
    Returns:
        The running viewer, to control it from Python; see `url` and `stop()`.
    Raises:
        ModelError: viser is missing, the trajectory is not one of this robot, or there is no such port. ShapeError: q
            or u is not one configuration or the inputs of one robot. OSError: the port is in use.
    """
    if mode is None and u is not None and trajectory is None:
        mode = "equilibrium"
    viewer = Viewer(model, q, trajectory, mode, host, port, hosts, u)
    print(f"{model.name}: {viewer.url}")
    if browser:
        _open(viewer.url)
    if block:
        print("Ctrl-C ends the viewer")
        try:
            viewer.wait()
        except KeyboardInterrupt:
            print("ended")
        finally:
            viewer.stop()
    return viewer


def _open(url: str) -> None:
    """Open a browser, or print instructions if that fails."""
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    if not opened:
        port = url.rpartition(":")[2]
        print(f"no browser could be opened here: open {url} yourself; from another machine forward the port first, "
              f"ssh -L {port}:localhost:{port} NAME_OF_THIS_MACHINE")  # fmt: skip


@final
class Viewer:
    """Running viewer of one robot, made by `view`; its methods set the shape, the inputs and the mode from Python.

    The browser and its sliders show each change at once. Methods may be called from any thread. Used as a context
    manager (`with ls.view(model, block=False) as viewer:`) the viewer stops at the end of the block.

    Args:
        model, q, trajectory, mode, host, port, hosts, u: as for `view`.
    Attributes:
        url: address of the page.
    """

    def __init__(
        self, model: Model, q: Any, trajectory: Trajectory | None, mode: str | None, host: str, port: int,
        hosts: Sequence[str] = (), u: Any = None,
    ) -> None:  # fmt: skip
        checks.integer(port, "port", least=0, most=65535)
        self.session = Session(model, q, trajectory, u)
        if mode is not None:
            self.session.set_mode(mode)
        self.server = _server(host, port, hosts)
        self.url = f"http://{_shown_host(host)}:{self.server.get_port()}"
        self._jobs: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._spent: deque[float] = deque(maxlen=_COUNTED)
        self._ends, self._has_jobs = threading.Event(), threading.Event()
        self.stage = Stage(self.server, model, self.session.q)
        self.server.gui.set_panel_label(model.name)
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        self.panel = Panel(self.server, self.session, self.stage, self.post, self._save)
        self._pulled, self._is_stale, self._drawn, self._is_warm = "", True, 0.0, False
        self.browsers = BrowserLag(self.server, self._ends)
        self._thread = threading.Thread(target=self._run, name="lissom viewer", daemon=True)
        self._thread.start()

    @property
    def q(self) -> np.ndarray:
        """Current configuration, shape (nq,) [rad, m, or strain units]."""
        return self.do(lambda: self.session.q.copy())

    @property
    def v(self) -> np.ndarray:
        """Current velocity, shape (nv,) [rates of q]."""
        return self.do(lambda: self.session.v.copy())

    @property
    def u(self) -> np.ndarray:
        """Current inputs, shape (nu,) [N, N·m, Pa]."""
        return self.do(lambda: self.session.u.copy())

    @property
    def t(self) -> float:
        """Current time [s]."""
        return self.session.t

    @property
    def mode(self) -> str:
        """Current mode: "pose", "equilibrium", "simulate" or "replay"."""
        return self.session.mode

    def set_shape(self, q: ArrayLike) -> None:
        """Set the configuration, shape (nq,).

        In the mode "equilibrium" the search starts there, and in "simulate" the motion continues from there at rest.

        Raises:
            ModelError: the mode is "replay".
        """
        self._set(lambda: self.session.set_shape(q))

    def set_inputs(self, u: ArrayLike | None) -> None:
        """Set the inputs, shape (nu,); None is zero.

        Raises:
            ModelError: the mode is "replay".
        """
        self._set(lambda: self.session.set_inputs(u))

    def set_mode(self, mode: str) -> None:
        """Change the mode to "pose", "equilibrium", "simulate" or "replay"; the state stays."""
        self.do(lambda: self.panel.set_mode(mode))

    def set_model(
        self, model: Model, q: ArrayLike | None = None, *, u: ArrayLike | None = None,
        trajectory: Trajectory | None = None, mode: str | None = None,
    ) -> None:  # fmt: skip
        """Show another robot, or this one with other values. The view and the looks stay, and the controls if they fit.

        Args:
            model, q, u, trajectory, mode: as for `view`.
        Raises:
            ModelError, ShapeError: as for `view`.
        """
        session = Session(model, q, trajectory, u)
        if mode is not None:
            session.set_mode(mode)
        self.take(session)

    def take(self, session: Session) -> None:
        """Show another session, at once."""

        def taken() -> None:
            with self.server.atomic():
                self.server.scene.reset()
                self.session, self.stage = session, self.stage.renewed(session.model)
                if not self.panel.follow(session, self.stage):
                    self.server.gui.reset()
                    _forget_removed(self.server)
                    self.server.gui.set_panel_label(session.model.name)
                    self.panel = Panel(self.server, session, self.stage, self.post, self._save)
                self._draw()
            self._pulled, self._is_stale, self._is_warm, self._drawn = "", False, False, time.perf_counter()
            self._spent.clear()

        self.do(taken)

    def play(self) -> None:
        """Start time in the modes "simulate" and "replay"."""
        self._set(self.session.play)

    def pause(self) -> None:
        """Stop time in the modes "simulate" and "replay"."""
        self._set(self.session.pause)

    def reset(self) -> None:
        """Return to the initial configuration and inputs."""
        self._set(self.session.reset)

    def _set(self, change: Callable[[], Any]) -> None:
        """Make a change between two pictures, then update the sliders."""

        def made() -> None:
            change()
            self.panel.show_values()

        self.do(made)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def median_update(self) -> float:
        """Median time of the most recent updates, from the start of the computation until the update is sent [s]; 0
        before the first update."""
        spent = list(self._spent)
        return float(np.median(spent)) if spent else 0.0

    def post(self, job: Callable[[], Any]) -> None:
        """Call a function between two pictures, without waiting for it."""
        self._jobs.put(job)
        self._has_jobs.set()

    def do(self, job: Callable[[], Any]) -> Any:
        """Call a function between two pictures and return its result. Once the viewer is stopped this raises a
        ModelError."""
        if threading.current_thread() is self._thread:
            return job()
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                done.put((job(), None))
            except Exception as error:
                done.put((None, error))

        self.post(run)
        while True:
            with contextlib.suppress(queue.Empty):
                value, error = done.get(timeout=_ALIVE)
                break
            if not self._thread.is_alive() and done.empty():
                raise ModelError("viewer: has been stopped")
        if error is not None:
            raise error
        return value

    def save(self, path: str | Path) -> Path:
        """Write a file: the scene with its history as an animation (.glb), the history (.html, .npz; .mp4 needs an open
        browser), or what the browser shows (.png)."""
        path = Path(path)
        content = self.do(lambda: self._content(path.suffix.lstrip(".")))
        write_whole(path, lambda file: file.write(content))
        return path

    def wait(self) -> None:
        """Wait until the viewer is stopped."""
        while not self._ends.wait(0.2):
            pass

    def stop(self) -> None:
        """Stop the viewer."""
        self._ends.set()
        self._has_jobs.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    def _run(self) -> None:
        last = read = time.perf_counter()
        while not self._ends.is_set():
            now = time.perf_counter()
            elapsed, last = now - last, now
            try:
                self._work()
                self._update(min(elapsed, 0.1))
                if now - read > _REFRESH:
                    read = now
                    self.panel.refresh(self.median_update)
            except Exception as error:  # the viewer stays alive and shows the error
                logging.getLogger("lissom").exception("viewer")
                self.session.is_good, self.session.note = False, f"{type(error).__name__}: {error}"
            self._has_jobs.wait(max(_TICK - (time.perf_counter() - now), 0.001))  # jobs do not wait for the picture
            self._has_jobs.clear()

    def _work(self) -> None:
        """Run the posted functions."""
        for _ in range(self._jobs.qsize()):
            before = self.session.mode
            self._jobs.get()()
            self._is_stale = True
            if self.session.mode != before:
                self._spent.clear()
                self._is_warm = False
        if self._pulled != self.session.mode:
            self._pulled = self.session.mode
            self.stage.on_pull(self._on_pull if self._pulled in ("equilibrium", "simulate") else None)

    def _update(self, elapsed: float) -> None:
        """Advance the state, and draw it unless a browser has not yet drawn the last picture."""
        began = time.perf_counter()
        changed = self.session.update(elapsed)
        self._is_stale |= changed
        if not self._is_stale or began - self._drawn < self.browsers.interval:
            return
        self._draw()
        self._is_stale, self._drawn = False, time.perf_counter()
        if changed and self._is_warm:  # the first update of a mode loads its kernels
            self._spent.append(self._drawn - began)
        self._is_warm |= changed

    def _draw(self) -> None:
        x = self.session
        with self.server.atomic():
            self.stage.show(x.q, x.v, x.u, x.t, x.spring)

    def _on_pull(self, phase: str, link: str | None, point: Any) -> None:
        """React when the mouse drags a body."""
        x = self.session
        self.post({"start": lambda: x.grab(point, link), "update": lambda: x.drag(point), "end": x.release}[phase])

    def _save(self, kind: str) -> None:
        """Make a file of a kind and download it in the browser."""
        self.panel.progress.content = f"writing {kind} …"
        try:
            content = self._content(kind)
        except (ModelError, OSError) as error:
            self.panel.progress.content = f"**{error}**"
            return
        name = f"{self.session.model.name.replace(' ', '_')}.{kind}"
        self.server.send_file_download(name, content)
        self.panel.progress.content = f"{name}: {len(content) / 1e6:.2f} MB"

    def _content(self, kind: str) -> bytes:
        try:
            return scene_file(kind, self.server, self.stage, self.session)
        finally:
            self._is_stale = True


def _shown_host(host: str) -> str:
    return "localhost" if host in ("0.0.0.0", "::", "") else host


def _server(host: str, port: int, hosts: Sequence[str]) -> Any:
    """Start a server of viser at a free address. It refuses foreign hosts and origins."""
    try:
        import viser
    except ImportError:
        raise ModelError("the viewer needs viser: pip install 'lissom[viewer]'") from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise OSError(
                f"port {port} of {host} cannot be used ({error.strerror}): another viewer may run there; "
                "take another one by port= or --port, 0 for any that is free"
            ) from error
    hosts = [hosts] if isinstance(hosts, str) else hosts
    with contextlib.redirect_stdout(io.StringIO()), checked(names_of_machine(host, hosts)) as started:
        server = viser.ViserServer(host=host, port=port, verbose=False)  # the server prints a banner
        if not started:
            server.stop()
    if not started:
        rule = "the viewer cannot check who connects to this version of viser: pip install 'viser==1.1.1'"
        raise ModelError(f"{rule} (got {viser.__version__})")
    return server


def _forget_removed(server: Any) -> None:
    """Drop the messages by which viser removed controls that all browsers have received. It keeps them until the next
    browser connects, some 20 kB for each panel."""
    forget = getattr(server, "_run_garbage_collector", None)
    if forget is not None:
        forget()


@final
class BrowserLag:
    """Lag of the browsers at a server of viser, measured by occasional round trips.

    A browser without a graphics card may draw one picture per second; pictures that are sent in the meantime only add
    delay.

    Args:
        ends: event that is set to end the measurements.
    """

    def __init__(self, server: Any, ends: threading.Event) -> None:
        self.server, self.ends, self.lag = server, ends, 0.0
        threading.Thread(target=self._measure, name="lissom viewer lag", daemon=True).start()

    @property
    def interval(self) -> float:
        """Shortest time between two pictures with which the slowest browser keeps up [s]."""
        return self.lag if self.lag > _UNNOTICED else 0.0

    def _measure(self) -> None:
        while not self.ends.wait(_PAUSE):
            trips = [self._round_trip(client) for client in list(self.server.get_clients().values())]
            self.lag = max(trips, default=0.0)

    def _round_trip(self, client: Any) -> float:
        """Time of a round trip to one browser [s]; 0 if the browser has left."""
        began = time.perf_counter()
        try:
            client.local_storage.get_item("lissom", timeout=_PATIENCE)
        except TimeoutError:
            return _PATIENCE
        except RuntimeError:
            return 0.0
        return time.perf_counter() - began


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
