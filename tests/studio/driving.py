"""A studio in a process of its own, and a browser whose user clicks and types."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from viewing.browser import Browser

# arguments: the file, the port, parts of the scene to hide, and whether bodies are solid
SERVE = """
import sys
from lissom.studio.scene import Studio
from lissom.studio.serving import studio

own = Studio.show

def show(self, view):
    own(self, view)
    self.viewer.do(lambda: self.viewer.stage.hide(set(sys.argv[3].split(","))))
    if sys.argv[4] == "solid":
        self.viewer.do(lambda: self.viewer.stage.make_solid(1.0))

Studio.show = show
studio(sys.argv[1], port=int(sys.argv[2]), browser=False)
"""


def free_port():
    """A free port whose successor is free, too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


class Served:
    """A studio of a robot file, in a process.

    Args:
        hidden, solid: parts of the scene that are hidden, and whether bodies are solid. A machine without graphics
            draws grids, shadows and translucent bodies slowly.
    """

    def __init__(self, path, hidden=("grid", "shadows"), solid=True):
        self.path, self.port = path, free_port()
        env = {key: value for key, value in os.environ.items() if "PYTEST" not in key}  # NiceGUI looks for it
        env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(path), str(self.port), ",".join(hidden), "solid" if solid else "own"],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip

    @property
    def url(self):
        """Address of the page."""
        return f"http://localhost:{self.port}"

    def stop(self):
        """End the process as Ctrl-C does; returns what it has said."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[0] + "killed"


class User(Browser):
    """A browser and the habits of its user: choose in lists, fill fields, click parts of the tree."""

    def place(self, place):
        """JavaScript that finds the input or button of a place of the document."""
        return f"document.querySelector('[data-place={json.dumps(place)}]')"

    def press(self, place):
        """Click the input or button of a place."""
        x, y = self.until(lambda: self.resting_place(place), f"{place!r} is on the page", 30)
        self.click(x, y)

    def resting_place(self, place):
        """The middle of the input or button of a place, once it is shown and no longer moves."""
        before = self.where(self.place(place))
        time.sleep(0.3)
        after = self.where(self.place(place))
        return after[:2] if before == after and after is not None and after[2] > 0 else None

    def key(self, name, code, **more):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)

    def fill(self, place, text):
        """Type a text in place of the one in a field, and leave it by Enter."""
        for _ in range(6):
            self.press(place)
            if self.run(f"document.activeElement === {self.place(place)}"):
                return self.type(text)
            time.sleep(1.0)  # a mistake above it was mended, so that the form moved under the pointer
        raise AssertionError(f"a click on {place!r} does not reach it")

    def item(self, text, seconds=20):
        """Click an item of the menu or list that is open."""
        find = (f"[...document.querySelectorAll('.q-menu .q-item')].filter(e => e.innerText.trim().split('\\n')[0] === "
                f"{json.dumps(text)}).pop()")  # fmt: skip
        self.until(lambda: self.where(find), f"{text!r} is in a menu", seconds)
        time.sleep(0.3)  # the menu may still open
        x, y, _ = self.where(find)
        self.click(x, y)
        time.sleep(0.5)

    def choose(self, place, text):
        """Take an entry of the list of a field, or of the menu of a button."""
        for _ in range(4):
            self.press(place)
            try:
                return self.item(text, 8)
            except AssertionError:  # the page was not ready, or scrolled, which closes the list
                self.key("Escape", 27)
        return self.item(text)

    def add(self, *words):
        """Add a part by the menu."""
        self.choose("add", words[0])
        for word in words[1:]:
            self.item(word)

    def part(self, name):
        """Click a part of the tree."""
        find = (f"[...document.querySelectorAll('.q-tree span')].filter(e => e.innerText.trim() === {json.dumps(name)})"
                ".shift()")  # fmt: skip
        titles = "[...document.querySelectorAll('.q-tab-panel .text-subtitle1')]"
        title = f"{titles}.some(e => e.innerText.trim() === {json.dumps(name)})"
        for _ in range(6):
            x, y, _ = self.until(lambda: self.where(find), f"{name!r} is in the tree", 20)
            self.click(x, y)
            time.sleep(0.6)
            end = time.monotonic() + 4.0
            while time.monotonic() < end:
                if self.run(title):
                    time.sleep(0.6)
                    return
                time.sleep(0.1)  # a dialog that closes takes clicks
        raise AssertionError(f"the form of {name!r} was not shown")

    def says(self, text, seconds=30):
        """Wait until a text is on the page."""
        script = f"document.body.innerText.includes({json.dumps(text)})"
        return self.until(lambda: self.run(script), f"the page says {text!r}", seconds)

    def type(self, text):
        """Type a text in place of the one in the field that has the focus, and press Enter."""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key="a", code="KeyA", windowsVirtualKeyCode=65, modifiers=2,
                 commands=["selectAll"])  # fmt: skip
        self.ask("Input.dispatchKeyEvent", type="keyUp", key="a", code="KeyA", windowsVirtualKeyCode=65, modifiers=2)
        if text:
            self.ask("Input.insertText", text=text)
        else:
            self.key("Delete", 46)
        time.sleep(0.2)
        self.key("Enter", 13, text="\r")
        time.sleep(0.5)

    def rename(self, text):
        """Give the part that is selected another name."""
        self.press("rename")
        focused = "!!document.activeElement.closest('.q-dialog') && document.activeElement.tagName === 'INPUT'"
        self.until(lambda: self.run(focused), "the dialog asks for a name")
        self.type(text)
        self.says(text)

    def open_field(self, title):
        """Open or close the fields of a value by its title."""
        find = (f"[...document.querySelectorAll('.nested .q-item')].filter(e => e.innerText.trim().split('\\n')[0] === "
                f"{json.dumps(title)}).shift()")  # fmt: skip
        state = f"{find}?.getAttribute('aria-expanded')"
        for _ in range(4):
            self.until(lambda: self.where(find), f"{title!r} is in the form", 20)
            time.sleep(0.3)
            before, (x, y, _) = self.run(state), self.where(find)
            self.click(x, y)
            time.sleep(0.6)
            end = time.monotonic() + 5.0
            while self.run(state) == before and time.monotonic() < end:  # a dialog that closes takes clicks
                time.sleep(0.1)
            if before is None or self.run(state) != before:
                return
        raise AssertionError(f"the fields of {title!r} did not open or close")

    def open_more(self):
        """Open the fields of a long form that are hidden at first."""
        find = ("[...document.querySelectorAll('.nested .q-item')].filter(e => /^[0-9]+ more/.test(e.innerText.trim()))"
                ".shift()")  # fmt: skip
        self.until(lambda: self.where(find), "there are more fields", 20)
        time.sleep(0.3)
        x, y, _ = self.where(find)
        self.click(x, y)
        time.sleep(0.8)

    def tick(self, place, *words):
        """Take or drop entries of a list of several."""
        self.choose(place, words[0])  # which stays open
        for word in words[1:]:
            self.item(word)
        self.key("Escape", 27)
        time.sleep(0.3)

    def see(self, folder, name):
        """Keep a picture of the page, without the pointer on a button."""
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=700, y=700)
        time.sleep(1.5)
        self.picture(folder / f"{name}.png")


def ready(served):
    """Wait until a studio serves its page."""
    end = time.monotonic() + 90.0
    while time.monotonic() < end:
        try:
            return urllib.request.urlopen(served.url, timeout=2).close()
        except OSError:
            time.sleep(0.3)
    raise AssertionError("the studio serves no page")


def started(folder, size=(1280, 860)):
    """A studio of a new file in a folder, and a user in front of its page."""
    served = Served(folder / "robot.yaml")
    ready(served)
    user = User(folder / "browser", size, 120.0)
    user.open(served.url)
    user.says("the whole robot", 60)
    time.sleep(4.0)
    x, y, _ = user.where("document.querySelector('iframe')")
    user.click(700, 124)  # closes the note that this machine has no graphics card, in the scene
    user.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    return served, user
