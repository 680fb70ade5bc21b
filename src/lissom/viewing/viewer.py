"""The interactive viewer: a robot in the browser, served by viser from a thread of its own."""

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.portable import write_whole
from lissom.simulation.trajectory import Trajectory
from lissom.viewing import exports
from lissom.viewing.lookers import Lookers
from lissom.viewing.origins import checked, names_of_machine
from lissom.viewing.panel import Panel
from lissom.viewing.session import Session
from lissom.viewing.stage import Stage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LOOPBACK, PORT = "127.0.0.1", 8080
_TICK = 1.0 / 60.0  # between two pictures [s]
_READ = 0.15  # between two looks at what is read beside the scene [s]
_COUNTED = 120  # updates whose median is shown


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
    """Look at a robot in the browser: set its coordinates and inputs, watch equilibria and motions live, pull it.

    Args:
        q: where it begins, shape (nq,) [rad, m, or strain units]; None is the neutral configuration.
        u: inputs that it begins with, shape (nu,) [N, N·m, Pa]; None is zero.
        trajectory: a motion of this robot to look at.
        mode: "pose", "equilibrium", "simulate" or "replay"; None is "replay" with a trajectory, "equilibrium" with
            inputs, else "pose".
        host: address at which the viewer listens. Only this machine reaches the default; "0.0.0.0" lets all of its
            network in, without a password.
        port: at that address; 0 takes a free one.
        hosts: names, besides those of this machine, under which browsers reach the viewer, such as that of a proxy.
            Pages of other origins cannot connect.
        browser: whether a browser is opened.
        block: whether to stay until Ctrl-C; False returns at once.
    Returns:
        Viewer: what a running viewer is set and asked by, its `url`, and `stop()`.
    Raises:
        ModelError: viser is missing, or the trajectory is not one of this robot. ShapeError: q or u is not one
        configuration or the inputs of one robot. OSError: the port is in use.
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
    """Open a browser, or say what to do where there is none."""
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
    """A robot that is being looked at, made by `view`: a running viewer takes shapes, inputs and modes from Python.

    What is set shows in the browser at once, and sliders follow. Methods may be called from any thread. As a context
    (`with ls.view(model, block=False) as viewer:`) it stops at the end.

    Args:
        model, q, trajectory, mode, host, port, hosts, u: as of `view`.
    Attributes:
        url: address of the page.
    """

    def __init__(
        self, model: Model, q: Any, trajectory: Trajectory | None, mode: str | None, host: str, port: int,
        hosts: Sequence[str] = (), u: Any = None,
    ) -> None:  # fmt: skip
        self.session = Session(model, q, trajectory, u)
        if mode is not None:
            self.session.set_mode(mode)
        self.server = _server(host, port, hosts)
        self.url = f"http://{_shown_host(host)}:{self.server.get_port()}"
        self._jobs: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._spent: deque[float] = deque(maxlen=_COUNTED)
        self._ends = threading.Event()
        self.stage = Stage(self.server, model, self.session.q)
        self.server.gui.set_panel_label(model.name)
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        self.panel = Panel(self.server, self.session, self.stage, self.post, self._save)
        self._pulled, self._is_stale, self._drawn, self._is_warm = "", True, 0.0, False
        self.lookers = Lookers(self.server, self._ends)
        self._thread = threading.Thread(target=self._run, name="lissom viewer", daemon=True)
        self._thread.start()

    # -- what Python sets and asks ------------------------------------------------------------------------------------

    @property
    def q(self) -> np.ndarray:
        """Configuration that is shown, shape (nq,) [rad, m, or strain units]."""
        return self.do(lambda: self.session.q.copy())

    @property
    def v(self) -> np.ndarray:
        """Its velocity, shape (nv,)."""
        return self.do(lambda: self.session.v.copy())

    @property
    def u(self) -> np.ndarray:
        """Inputs, shape (nu,) [N, N·m, Pa]."""
        return self.do(lambda: self.session.u.copy())

    @property
    def t(self) -> float:
        """Time that is shown [s]."""
        return self.session.t

    @property
    def mode(self) -> str:
        """ "pose", "equilibrium", "simulate" or "replay"."""
        return self.session.mode

    def set_shape(self, q: ArrayLike) -> None:
        """Show a configuration, shape (nq,): as it is in "pose", as the start of the search in "equilibrium", at rest
        in "simulate". A motion that is replayed has its own: a ModelError says so."""
        self._set(lambda: self.session.set_shape(q))

    def set_inputs(self, u: ArrayLike | None) -> None:
        """Set the inputs, shape (nu,); None is zero. "equilibrium" and "simulate" follow them, "replay" refuses
        them."""
        self._set(lambda: self.session.set_inputs(u))

    def set_mode(self, mode: str) -> None:
        """Go on in another mode, from what is shown: "pose", "equilibrium", "simulate" or "replay"."""
        self.do(lambda: self.panel.set_mode(mode))

    def play(self) -> None:
        """Let the time of "simulate" or "replay" run."""
        self._set(self.session.play)

    def pause(self) -> None:
        """Let it stand."""
        self._set(self.session.pause)

    def reset(self) -> None:
        """Go back to what `view` began with."""
        self._set(self.session.reset)

    def _set(self, change: Callable[[], Any]) -> None:
        """Make a change between two pictures, and let the sliders show it."""

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
        """Median of what the last updates took, from what was set to what is sent [s]; zero before the first."""
        spent = list(self._spent)
        return float(np.median(spent)) if spent else 0.0

    def post(self, job: Callable[[], Any]) -> None:
        """Have a function called between two pictures."""
        self._jobs.put(job)

    def do(self, job: Callable[[], Any]) -> Any:
        """The same, and what it returned; a ModelError once the viewer has been stopped."""
        if threading.current_thread() is self._thread:
            return job()
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                done.put((job(), None))
            except Exception as error:
                done.put((None, error))

        self.post(run)
        while done.empty():
            self._ends.wait(0.001)
            if not self._thread.is_alive() and done.empty():
                raise ModelError("viewer: has been stopped")
        value, error = done.get()
        if error is not None:
            raise error
        return value

    def save(self, path: str | Path) -> Path:
        """Write what is shown (.glb), or what is recorded (.html, .npz, .mp4 where a browser looks on), to a file."""
        path = Path(path)
        content = self.do(lambda: self._content(path.suffix.lstrip(".")))
        write_whole(path, lambda file: file.write(content))
        return path

    def wait(self) -> None:
        """Stay until the viewer is stopped."""
        while not self._ends.wait(0.2):
            pass

    def stop(self) -> None:
        """End the viewer."""
        self._ends.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # -- the thread that computes and draws ---------------------------------------------------------------------------

    def _run(self) -> None:
        last = read = time.perf_counter()
        while not self._ends.is_set():
            now = time.perf_counter()
            elapsed, last = now - last, now
            try:
                self._work()
                self._update(min(elapsed, 0.1))
                if now - read > _READ:
                    read = now
                    self.panel.refresh(self.median_update)
            except Exception as error:  # the viewer goes on, and says what went wrong
                logging.getLogger("lissom").exception("viewer")
                self.session.is_good, self.session.note = False, f"{type(error).__name__}: {error}"
            time.sleep(max(_TICK - (time.perf_counter() - now), 0.001))

    def _work(self) -> None:
        """Do what was posted."""
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
        """One update, and its picture where those who look on have drawn the last one."""
        began = time.perf_counter()
        changed = self.session.update(elapsed)
        self._is_stale |= changed
        if not self._is_stale or began - self._drawn < self.lookers.interval:
            return
        self._draw()
        self._is_stale, self._drawn = False, time.perf_counter()
        if changed and self._is_warm:  # the first of a mode loads its kernels
            self._spent.append(self._drawn - began)
        self._is_warm |= changed

    def _draw(self) -> None:
        x = self.session
        with self.server.atomic():
            self.stage.show(x.q, x.v, x.u, x.t, x.hand)

    def _on_pull(self, phase: str, link: str | None, point: Any) -> None:
        """React to the mouse on a body."""
        x = self.session
        self.post({"start": lambda: x.grab(point, link), "update": lambda: x.drag(point), "end": x.let_go}[phase])

    # -- files --------------------------------------------------------------------------------------------------------

    def _save(self, kind: str) -> None:
        """Make a file of a kind and hand it to the browser."""
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
        makers = {"glb": exports.gltf, "html": exports.web_page, "npz": exports.motion_file, "mp4": exports.video}
        if kind not in makers:
            raise ModelError(f"file: must end in one of {sorted('.' + key for key in makers)} (got '.{kind}')")
        try:
            return makers[kind](self.server, self.stage, self.session)
        finally:
            self._is_stale = True


def _shown_host(host: str) -> str:
    return "localhost" if host in ("0.0.0.0", "::", "") else host


def _server(host: str, port: int, hosts: Sequence[str]) -> Any:
    """A server of viser at an address that nobody has taken."""
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
    with contextlib.redirect_stdout(io.StringIO()), checked(names_of_machine(host, hosts)) as begun:
        server = viser.ViserServer(host=host, port=port, verbose=False)  # which says more than is asked
        if not begun:
            server.stop()
    if not begun:
        rule = "the viewer cannot check who connects to this version of viser: pip install 'viser==1.1.1'"
        raise ModelError(f"{rule} (got {viser.__version__})")
    return server
