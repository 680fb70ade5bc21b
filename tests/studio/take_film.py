"""Makes the film of the studio in the README: python tests/studio/take_film.py docs/studio.webp

A user builds a soft finger from an empty page, sees a mistake told, runs a motion, moves the robot by the cursor of its
curves, pulls it by the mouse and reads the script, with the mouse and the keys alone. Each step is one or several
pictures of the page, with the pointer drawn in. Time in the film is told by the steps, since a browser without a
graphics card draws slowly.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from PIL import Image, ImageDraw
from studio.driving import Served, User, ready

SIZE, SHOWN = (1120, 680), (896, 544)  # of the page, and of the film [pixels]
POINTER = [(0, 0), (0, 17), (4, 13), (7, 19), (10, 18), (7, 12), (12, 12)]
STEP = 60  # time between two pictures of a moving pointer [ms]


class Film:
    """Pictures of a page and their durations, with the pointer where the mouse is."""

    def __init__(self, user):
        self.user, self.at = user, (SIZE[0] / 2, SIZE[1] / 2)
        self.frames, self.durations = [], []
        own = user.ask

        def ask(method, **params):
            """Note where the mouse goes, and show its way."""
            if method == "Input.dispatchMouseEvent":
                there = params["x"], params["y"]
                if params["type"] == "mouseMoved" and not params.get("buttons"):
                    self.go(there)
                self.at = there
            return own(method, **params)

        user.ask = ask

    def seen(self):
        """The page as it is."""
        return Image.fromarray(self.user.picture().astype(np.uint8))

    def go(self, there):
        """Show the pointer on its way, over the page as it is."""
        far = np.hypot(there[0] - self.at[0], there[1] - self.at[1])
        if far > 12.0 and self.frames:
            page = self.seen()
            for part in np.linspace(0.0, 1.0, int(np.clip(far / 90.0, 2, 6)) + 1)[1:]:
                smooth = part * part * (3.0 - 2.0 * part)
                self.add(page, STEP, [a + smooth * (b - a) for a, b in zip(self.at, there)])

    def add(self, page, duration, at=None):
        """Add a picture for a duration [ms]."""
        drawn, (x, y) = page.copy(), at or self.at
        ImageDraw.Draw(drawn).polygon([(x + a, y + b) for a, b in POINTER], fill=(20, 20, 20), outline=(255, 255, 255))
        drawn = drawn.resize(SHOWN, Image.Resampling.LANCZOS)
        if self.frames and not np.any(np.asarray(drawn) != np.asarray(self.frames[-1])):
            self.durations[-1] += duration
            return
        self.frames.append(drawn)
        self.durations.append(duration)

    def hold(self, seconds, settle=4.0):
        """Show the page for some seconds, once it has come to rest."""
        end, before = time.monotonic() + settle, None
        while time.monotonic() < end:
            page = self.seen()
            if before is not None and np.array_equal(np.asarray(page), np.asarray(before)):
                break
            before = page
            time.sleep(0.25)
        self.add(self.seen(), int(1300 * seconds))

    def save(self, path):
        """Write the film."""
        out = io.BytesIO()
        self.frames[0].save(out, "WEBP", save_all=True, append_images=self.frames[1:], duration=self.durations, loop=0,
                            quality=55, method=4)  # fmt: skip
        Path(path).write_bytes(out.getvalue())
        print(f"{len(self.frames)} pictures, {sum(self.durations) / 1e3:.0f} s, {out.tell() / 1e6:.2f} MB")


def story(user, film):
    """What happens."""
    film.hold(2.0)
    user.add("link")
    user.says("coordinates", 300)
    film.hold(1.5)
    user.fill("links-0-body-length", "0.25")
    film.hold(1.0)
    user.fill("links-0-body-section-radius", "0.02, 0.01")
    film.hold(1.5)
    user.fill("links-0-body-material-young", "-3e5")
    user.says("the last good robot is shown")
    film.hold(3.0)
    user.press("undo")
    film.hold(1.0)
    user.fill("links-0-placement-axis", "0, 1, 0")
    user.fill("links-0-placement-degrees", "90")
    film.hold(2.0)
    user.add("actuator", "Tendon")
    film.hold(1.0)
    user.fill("actuators-0-offset", "0, 0.008")
    user.says("1 input; stable", 300)
    film.hold(2.0)
    user.click_text("Run")
    user.fill("input-tendon", "12*sin(pi*t)**2")
    film.hold(2.5)
    user.press("motion")
    user.says("motion 1: motion of 2 s", 300)
    for _ in range(12):
        film.add(film.seen(), 180)
    user.press("curves-motion 1")
    user.until(lambda: user.where("document.querySelector('[data-place=curves] canvas')"), "the curves", 60)
    film.hold(1.5)
    x, y, wide = user.where("document.querySelector('[data-place=curves]')")
    for part in np.linspace(-0.43, -0.07, 36):
        user.mouse("mouseMoved", x + part * wide, y + 10)
        time.sleep(0.7)
        film.add(film.seen(), 110)
    film.hold(1.0)
    user.press("close-curves")
    user.click_text("Back to the robot")
    time.sleep(8.0)  # until the scene has its full height again
    film.hold(1.5)
    pull(user, film)
    user.click_text("File")
    film.hold(4.0)
    user.click_text("Python")
    film.hold(5.0)


def pull(user, film):
    """Drag the lowest place of the robot, and let it go."""
    page = np.asarray(user.picture())
    red, green, blue = page.transpose(2, 0, 1)
    left = user.where("document.querySelector('iframe')")[0] - 0.34 * SIZE[0]
    place = (np.arange(SIZE[0]) > left + 40) & (np.arange(SIZE[0]) < SIZE[0] - 400)
    skin = (red - blue > 30) & (red > 110) & (red - green > 12) & (red - green < 90)
    rows, columns = np.nonzero(skin & place)
    near = np.abs(columns - np.median(columns)) < 30  # which leaves out the axes beside the robot
    lowest = rows[near].max()
    x, y = float(np.median(columns[near & (rows > lowest - 12)])), float(lowest) - 12.0
    user.mouse("mouseMoved", x, y)
    user.mouse("mousePressed", x, y, buttons=1)
    for part in np.linspace(0.0, 1.0, 14)[1:]:
        user.mouse("mouseMoved", x + 110.0 * part, y - 40.0 * part, buttons=1)
        time.sleep(0.7)
        film.add(film.seen(), 130)
    film.hold(2.0)
    user.mouse("mouseReleased", x + 110.0, y - 40.0)
    film.hold(2.0)


def main(path):
    """Make the film."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        served = Served(Path(own) / "finger.yaml", hidden=("shadows",), solid=False)
        ready(served)
        user = User(Path(own) / "browser", SIZE, 200.0)
        try:
            user.open(served.url)
            user.says("the whole robot", 120)
            time.sleep(6.0)
            user.click(615, 131)  # the note about graphics, in the scene
            film = Film(user)
            story(user, film)
            film.save(path)
        finally:
            user.close()
            served.stop()


if __name__ == "__main__":
    main(sys.argv[1])
