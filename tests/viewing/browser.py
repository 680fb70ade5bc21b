"""A real browser without a window: Chromium, driven through its own protocol (Chrome DevTools)."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
         "--disable-dev-shm-usage", "--disable-extensions", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-port=0")  # fmt: skip


def found():
    """The browser's program, None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page in a browser of its own.

    Args:
        folder: for the files of the browser. size: of the page in pixels. patience: with an answer [s].
    """

    def __init__(self, folder, size=(1280, 800), patience=60.0):
        self.patience = patience
        program = found()
        assert program, f"no browser: install chromium (looked for {', '.join(NAMES)})"
        command = [program, *FLAGS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = Path(folder) / "DevToolsActivePort"
        self.until(lambda: port_file.exists() and port_file.read_text().count("\n") >= 1, "the browser starts", 30)
        port = port_file.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as answer:
            page = next(one for one in json.loads(answer.read()) if one["type"] == "page")
        from websockets.sync.client import connect

        self.socket = connect(page["webSocketDebuggerUrl"], max_size=None, ping_interval=None)
        self.count, self.said = 0, []
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)

    def until(self, condition, what, seconds=15.0):
        """Wait until a condition holds; return its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"waited {seconds:g} s in vain: {what}")

    def ask(self, method, **params):
        """Send a command and wait for its result."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=self.patience))
            if message.get("id") == self.count:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(message["params"])

    def open(self, url):
        """Go to a page."""
        self.ask("Page.navigate", url=url)

    def run(self, script):
        """The value of a JavaScript expression on the page."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def picture(self, path=None):
        """A picture of the page, shape (height, width, 3), 0 to 255; written to a file where there is a path."""
        from PIL import Image

        data = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)

    def mouse(self, kind, x, y, **more):
        """Move, press or release the left button at a pixel."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more)

    def drag(self, start, stop, steps=8, release=True):
        """Draw from a pixel to another with the left button."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, buttons=1)
        for k in range(1, steps + 1):
            x, y = (a + (b - a) * k / steps for a, b in zip(start, stop))
            self.mouse("mouseMoved", x, y, buttons=1)
            time.sleep(0.03)
        if release:
            self.mouse("mouseReleased", *stop)

    def click(self, x, y):
        """Press and release at a pixel."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, buttons=1)
        self.mouse("mouseReleased", x, y)

    def where(self, script):
        """The middle of the element that a JavaScript expression gives, None where there is none."""
        return self.run(f"(() => {{ const e = {script}; if (!e) return null; e.scrollIntoView({{block: 'nearest'}});"
                        " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.width]"
                        " })()")  # fmt: skip

    def click_text(self, text, tag="*"):
        """Click the innermost element with a text."""
        find = (f"[...document.querySelectorAll('{tag}')].filter(e => e.textContent.trim() === {json.dumps(text)})"
                ".pop()")  # fmt: skip
        x, y, _ = self.until(lambda: self.where(find), f"{text!r} is on the page")
        self.click(x, y)

    def close(self):
        """End the browser."""
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=20)
