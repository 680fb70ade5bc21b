"""The viewer in a real browser: the page loads, sliders and the mouse move the robot, and the view can be saved."""

from __future__ import annotations

import time

import numpy as np
import pytest
from viewing.browser import NAMES, Browser, found

import lissom as ls
from lissom.viewing.viewer import Viewer

WIDE, HIGH = 960, 420
pytestmark = pytest.mark.skipif(found() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed")


@pytest.fixture(scope="module")
def viewer():
    """A soft arm with a tendon, at rest; without parts that a machine without graphics draws slowly."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=0)
    rod = ls.Rod(0.3, ls.SectionCircle((0.03, 0.02)), basis, ls.Material(young=1e6, density=1000, viscosity=4e3))
    robot.add_link("arm", rod)
    robot.add_tendon("up", "arm", (0.0, 0.015))
    made = Viewer(robot.build(), None, None, "equilibrium", "127.0.0.1", 0)
    made.do(lambda: made.stage.hide({"axes", "grid", "shadows"}))
    made.do(lambda: made.stage.make_solid(1.0))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def page(viewer, tmp_path_factory):
    """The viewer's page, loaded."""
    browser = Browser(tmp_path_factory.mktemp("browser"), (WIDE, HIGH))
    browser.open(viewer.url)
    shown = "!!document.querySelector('canvas') && document.body.innerText.includes('up [N]')"
    browser.until(lambda: browser.run(shown), "the page shows the scene and the sliders", 40)
    # the page says that it has no graphics card, in the colour of the arm
    browser.run("document.head.insertAdjacentHTML('beforeend',"
                " '<style>[class*=Notification] {display: none !important}</style>')")  # fmt: skip
    browser.until(lambda: arm_pixels(browser.picture()).sum() > 500, "the arm is drawn", 40)
    yield browser
    browser.close()


def arm_pixels(picture):
    """Where a picture shows the arm: no other thing is of its colour."""
    red, green, blue = picture.transpose(2, 0, 1)
    return (red - blue > 40) & (red > 90) & (green < red)


def settled(page, viewer):
    """A picture behind which no other comes."""
    before = page.picture()
    for _ in range(20):
        time.sleep(0.1)
        after = page.picture()
        if not viewer._is_stale and np.array_equal(arm_pixels(before), arm_pixels(after)):
            return after
        before = after
    raise AssertionError("the picture does not come to rest")


def test_a_slider_moves_the_robot(page, viewer):
    """The slider of the tendon, pressed to its end, bends the arm up on the page, and nothing else changes there."""
    before = settled(page, viewer)
    page.run("document.querySelector('[role=slider]').focus()")
    for kind in ("keyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key="End", code="End", windowsVirtualKeyCode=35)
    most = viewer.session.inputs[0].high
    page.until(lambda: viewer.session.u[0] == pytest.approx(most), "the input is at its end")
    after = settled(page, viewer)
    heights = [np.argwhere(arm_pixels(picture))[:, 0].min() for picture in (before, after)]
    assert heights[1] < heights[0] - 10  # rows count from above
    assert viewer.session.is_good
    changed = np.abs(after - before).max(axis=2) > 30
    assert changed[:, : WIDE // 2].sum() > 500


def test_the_mouse_pulls_the_robot(page, viewer):
    """Dragging the arm takes hold of it and moves it along; let go it comes back."""
    viewer.do(viewer.panel.no_inputs)
    page.until(lambda: not viewer.session.u.any() and not viewer.session._is_due, "the arm is without inputs")
    before = settled(page, viewer)
    rows, columns = np.nonzero(arm_pixels(before))
    end = int(np.argmax(columns))
    start = float(columns[end] - 6), float(np.median(rows[columns == columns[end] - 6]))
    rest = viewer.session.q.copy()
    page.drag(start, (start[0] - 10.0, start[1] + 60.0), release=False)
    page.until(lambda: viewer.session.spring is not None, "the hand holds the arm")
    page.until(lambda: np.abs(viewer.session.q - rest).max() > 0.1, "the arm follows the hand")
    assert viewer.session.spring.grip.s > 0.7
    page.mouse("mouseReleased", start[0] - 10.0, start[1] + 60.0)
    page.until(lambda: viewer.session.spring is None, "the hand is open")
    page.until(lambda: np.abs(viewer.session.q - rest).max() < 1e-3, "the arm is back")


def test_painting_changes_the_colours(page, viewer):
    """A painted quantity shows on the arm, bluish where it is small, and leaves no trace afterwards."""

    def bluish():
        scene = page.picture()[:, : WIDE // 2]
        return (scene[..., 2] > scene[..., 0] + 25).sum()

    assert bluish() < 100
    viewer.do(lambda: viewer.stage.paint("strain"))
    page.until(lambda: bluish() > 500, "the arm is painted")
    viewer.do(lambda: viewer.stage.paint(""))
    page.until(lambda: bluish() < 100 and arm_pixels(page.picture()).sum() > 500, "the arm has its colour again")


def test_a_film_is_what_the_browser_shows(page, viewer, tmp_path):
    """A recorded motion becomes a film of as many pictures as it is long."""
    from imageio_ffmpeg import count_frames_and_secs

    viewer.do(lambda: viewer.panel.set_mode("simulate"))
    page.until(lambda: viewer.session.t > 0.2, "it moves")
    viewer.do(viewer.session.pause)
    viewer.do(lambda: viewer.session.history.cut(0.17))
    pictures, seconds = count_frames_and_secs(str(viewer.save(tmp_path / "film.mp4")))
    first, last = viewer.session.history.span
    assert pictures == int(np.ceil((last - first) * 25)) and seconds == pytest.approx(pictures / 25, abs=0.01)


def test_nothing_went_wrong_on_the_page(page):
    """The page has raised no error."""
    assert not [one for one in page.said if "exceptionDetails" in one]
