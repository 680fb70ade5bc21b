"""The page of the studio in a real browser: who may connect, a first robot by mouse and keyboard, its results."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from functools import partial

import numpy as np
import pytest
from studio.driving import Served, User
from viewing.browser import NAMES, found
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from lissom.studio.document import templates
from lissom.studio.serving import free_port

browsing = pytest.mark.skipif(found() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed")
ANSWERS = 60.0  # patience with a start [s]


def answer(url, **headers):
    """Status of an answer to a request with headers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as found:
            return found.status, found.headers.get("content-security-policy")
    except urllib.error.HTTPError as error:
        return error.code, None


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A studio of a new file."""
    made = Served(tmp_path_factory.mktemp("studio") / "robot.yaml")
    end = time.monotonic() + ANSWERS
    while time.monotonic() < end:
        try:
            answer(made.url)
            break
        except OSError:
            time.sleep(0.2)
    yield made
    said = made.stop()
    assert "ended" in said and "Traceback" not in said, said


@pytest.fixture(scope="module")
def user(served, tmp_path_factory):
    """A user in front of the page."""
    browser = User(tmp_path_factory.mktemp("browser"), (1280, 800))
    browser.open(served.url)
    browser.says("the whole robot", 60)
    yield browser
    browser.close()


def test_only_own_pages_connect(served):
    """The page is served to this machine under its own names; other origins and names are refused, and no page may
    frame it."""
    port = served.port
    assert answer(served.url) == (200, "frame-ancestors 'self'")
    assert answer(served.url, Origin=f"http://localhost:{port}")[0] == 200
    for wrong in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": f"evil.example:{port}"}):
        assert answer(served.url, **wrong)[0] == 403
    socket = f"ws://localhost:{port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    with connect(socket, origin=f"http://localhost:{port}") as own:
        assert own.recv(timeout=10).startswith("0")
    with pytest.raises(InvalidStatus, match="403"):
        connect(socket, origin="http://evil.example")
    with pytest.raises(OSError, match=r"refused|unreachable"):  # other machines reach nothing
        urllib.request.urlopen(f"http://127.0.0.2:{port}", timeout=2)


def test_two_free_ports():
    """The scene has the port behind that of the page."""
    assert 0 < free_port("127.0.0.1") < 65535


@browsing
def test_a_template_a_mistake_and_undo(served, user):
    """A template fills the tree; a wrong length is told at its field with the cure, and undo mends it; the file on the
    disk follows each step."""
    path = served.path
    user.choose("template", "catheter")
    user.says("12 coordinates, 2 inputs", 60)
    assert path.read_text(encoding="utf-8") == templates()["catheter"]
    user.part("tube")
    user.fill("links-0-body-length", "30 cm")
    user.says("write the number alone, in SI units: 0.3")
    user.says("the last good robot is shown")
    assert "length: 30 cm" in path.read_text(encoding="utf-8")
    user.press("undo")
    user.says("12 coordinates, 2 inputs", 60)
    assert path.read_text(encoding="utf-8") == templates()["catheter"]
    path.write_text(templates()["catheter"].replace("0.3\n", "0.25\n"), encoding="utf-8")
    value = "document.querySelector('[data-place=links-0-body-length]').value"
    user.until(lambda: user.run(value) == "0.25", "the page follows the file")


@pytest.mark.slow
@browsing
def test_two_pages_agree(served, user, tmp_path):
    """What one page edits, the other one shows; an undo there is seen here. A broken file is told on both."""
    path = served.path
    path.write_text(templates()["catheter"], encoding="utf-8")
    second = User(tmp_path, (1100, 700))
    try:
        second.open(served.url)
        value = "document.querySelector('[data-place=links-0-body-length]').value"
        for page in (user, second):
            page.says("12 coordinates, 2 inputs", 60)
            page.part("tube")
        user.fill("links-0-body-length", "0.25")
        second.until(lambda: second.run(value) == "0.25", "the second page shows the edit of the first")
        second.press("undo")
        user.until(lambda: user.run(value) == "0.3", "the first page shows the undo of the second")
        path.write_text("links: [", encoding="utf-8")
        for page in (user, second):
            page.says("The file is not YAML at the moment")
        user.press("undo")
        second.says("12 coordinates, 2 inputs")
    finally:
        second.close()


def resting(user):
    """A picture of the scene without its panel, when nothing moves there."""

    def scene():
        return user.picture()[60:500, 440:840]

    found = scene()
    for _ in range(40):
        time.sleep(0.3)
        before, found = found, scene()
        if np.array_equal(before, found):
            return found
    raise AssertionError("the scene does not come to rest")


@pytest.mark.slow
@browsing
def test_results_are_compared_on_the_page(served, user):
    """Two motions, one under a table and one under a curve that the mouse draws, have ghosts and one graph; a branch
    and a sweep run; a part gets its handle."""
    path = served.path
    path.write_text(templates()["catheter"], encoding="utf-8")
    user.says("12 coordinates, 2 inputs", 60)
    user.click_text("Run")
    user.fill("input-left", "0: 0, 1: 3, 2: 1")
    user.press("motion")
    user.says("motion 1: motion of 2 s", 120)
    user.press("draw-left")
    area = "document.querySelector('[data-place=curve]')"
    wide = user.until(lambda: (found := user.where(area)) and found[2] > 400 and found[2], "the area is open")
    user.fill("curve-high", "4")
    x, y, _ = user.where(area)
    user.drag((x - 0.45 * wide, y + 80), (x + 0.45 * wide, y - 80), steps=12)
    time.sleep(0.5)
    user.press("take-curve")
    value = "document.querySelector('[data-place=\"input-left\"]').value"
    text = user.until(lambda: (found := user.run(value)).count(":") > 4 and found, "the curve is a table")
    values = [float(pair.split(":")[1]) for pair in text.split(",")]
    assert values == sorted(values) and 0.0 < values[0] < 1.0 < 3.0 < values[-1] < 4.0
    user.press("motion")
    user.says("motion 2: motion of 2 s", 120)
    user.press("curves-motion 1")
    area = "document.querySelector('[data-place=curves] canvas')"
    x, y, wide = user.until(lambda: (found := user.where(area)) and found[2] > 300 and found, "the curves are drawn")
    scene = partial(resting, user)
    before = scene()
    user.mouse("mouseMoved", x - 0.4 * wide, y)
    user.mouse("mouseMoved", x - 0.3 * wide, y + 5)
    user.until(lambda: np.abs(scene() - before).max() > 60, "the robot follows the cursor", 60)
    user.press("close-curves")
    user.press("ghost-motion 1")
    user.press("tick-motion 1")
    user.press("tick-motion 2")
    user.press("compare")
    user.until(lambda: user.run("document.querySelector('[data-place=graph]')?.naturalWidth") or None, "the graph")
    user.press("close-graph")
    user.open_field("Branch of equilibria")
    user.press("branch")
    user.says("branch 1: branch of", 120)
    user.open_field("Sweep")
    user.choose("sweep-0-name", "u.left")
    user.fill("sweep-0-to", "2")
    user.press("sweep")
    user.says("sweep 1: 11 equilibria over u.left", 120)
    assert (path.parent / "robot results" / "sweep 1").is_dir()
    user.click_text("Build")
    user.part("tube")
    user.press("place")
    user.says("let go")
    assert not [one for one in user.said if "exceptionDetails" in one]
