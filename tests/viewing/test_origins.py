"""Only pages that the viewer has served itself, under a name of this machine, may look and drive."""

import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

import lissom as ls
from lissom.viewing.viewer import Viewer, _server, names_of_machine, refusal

OWN = ("box", "Viewer.Example.org")
GOOD = [
    ("localhost:8080", "http://localhost:8080"),
    ("127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("[::1]:8080", "http://[::1]:8080"),
    ("192.168.1.7:8080", "http://192.168.1.7:8080"),
    ("LOCALHOST:8080", "http://localhost:8080"),
    ("box:8080", "http://box:8080"),
    ("localhost", "http://localhost"),
    ("localhost", "http://localhost:80"),
    ("viewer.example.org", "https://viewer.example.org"),
    ("localhost:8080", "https://viewer.example.org"),  # of a proxy that sends its own address
    ("localhost:8080", None),  # no browser
]
BAD = [
    ("localhost:8080", "http://evil.example"),
    ("localhost:8080", "https://localhost.evil.example:8080"),
    ("localhost:8080", "http://localhost:3000"),  # another program of this machine
    ("localhost:8080", "http://127.0.0.1:8080"),
    ("localhost:8080", "null"),  # of a file, or of a frame that is shut off
    ("localhost:8080", "file://"),
    ("localhost:8080", ""),
    ("localhost:8080", "http://"),
    ("localhost:8080", "http://[::1"),
    ("localhost:8080", "ftp://localhost:8080"),
    ("evil.example:8080", "http://evil.example:8080"),  # a name that leads here
    ("evil.example:8080", None),
    ("evillocalhost:8080", "http://evillocalhost:8080"),
    ("localhost:99999", "http://localhost:99999"),
    ("", "http://localhost:8080"),
    ("localhost@evil.example:8080", "http://evil.example:8080"),
]


@pytest.mark.parametrize(("host", "origin"), GOOD)
def test_own_pages_connect(host, origin):
    """Under all names and addresses of this machine."""
    assert refusal([host], [] if origin is None else [origin], OWN) == ""


@pytest.mark.parametrize(("host", "origin"), BAD)
def test_other_pages_do_not(host, origin):
    """Wherever they are from, and whatever their name leads to."""
    assert refusal([host], [] if origin is None else [origin], OWN)


def test_headers_stand_once():
    """Two values are a trick."""
    own = "http://localhost:8080"
    assert refusal([], [own], OWN) and refusal(["localhost:8080"] * 2, [own], OWN)
    assert refusal(["localhost:8080"], [own, own], OWN)


def test_names_of_this_machine_count_where_a_network_is_let_in():
    """On the loopback address they do not; the user's setting applies everywhere."""
    assert names_of_machine("127.0.0.1", ["a"]) == ["127.0.0.1", "a"]
    assert len(names_of_machine("0.0.0.0", [])) > 1


@pytest.fixture(scope="module")
def viewer():
    """A viewer of one pendulum."""
    robot = ls.Robot("one")
    robot.add_link("a", ls.RigidBody.sphere(0.1, density=1e3), ls.JointRevolute((0, 1, 0)))
    made = Viewer(robot.build(), None, None, None, "127.0.0.1", 0, ["viewer.example.org"])
    yield made
    made.stop()


@contextmanager
def connected(viewer, **headers):
    """A websocket to the viewer, as a browser opens one."""
    from websockets.sync.client import connect

    port = viewer.server.get_port()
    origin = headers.pop("Origin", f"http://127.0.0.1:{port}")
    import viser

    with connect(
        f"ws://127.0.0.1:{port}", origin=origin, subprotocols=[f"viser-v{viser.__version__}"], proxy=None, max_size=None
    ) as opened:
        yield opened


def test_a_page_of_another_origin_is_refused(viewer):
    """Its websocket is not opened, so it sees nothing and drives nothing; the viewer's own page sees the scene."""
    from websockets.exceptions import InvalidStatus

    with connected(viewer) as opened:
        assert opened.recv(timeout=20)
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        with pytest.raises(InvalidStatus) as told, connected(viewer, Origin=origin):
            pass
        assert told.value.response.status_code == 403
    with connected(viewer, Origin="https://viewer.example.org") as opened:
        assert opened.recv(timeout=20)


def test_a_name_that_leads_here_is_refused(viewer):
    """The page itself is not served either, and the answer says what to do."""
    request = urllib.request.Request(viewer.url, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(request, timeout=10)
    assert told.value.code == 403 and b"--hosts" in told.value.read()


def test_a_viser_that_cannot_be_checked_is_not_used(monkeypatch):
    """Rather no viewer than one that lets everybody in: its server ends."""
    import viser

    ended = []

    class Another:
        def __init__(self, **_):
            pass

        def stop(self):
            ended.append(self)

    monkeypatch.setattr(viser, "ViserServer", Another)
    with pytest.raises(ls.ModelError, match="cannot check who connects"):
        _server("127.0.0.1", 0, [])
    assert len(ended) == 1
