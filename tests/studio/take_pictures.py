"""Takes the pictures of the studio in the manual: python tests/studio/take_pictures.py docs

The page says that it has no graphics card, which is left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from PIL import Image
from studio.driving import Served, User, ready

from lissom.studio.document import templates

NAME = "linkage of the SoRoSim manual"


def main(folder):
    """A wrong length in a form, and a motion with the calls that made it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        path = Path(own) / "linkage.yaml"
        path.write_text(templates()[NAME], encoding="utf-8")
        served = Served(path)
        ready(served)
        user = User(Path(own) / "browser", (1180, 720), 200.0)
        try:
            user.open(served.url)
            user.says("10 coordinates, 1 input", 120)
            time.sleep(4.0)
            x, y, _ = user.where("document.querySelector('iframe')")
            user.click(679, 142)  # the note about graphics, in the scene
            user.part("division 1")
            user.fill("links-0-body-length", "30 cm")
            user.says("the last good robot is shown")
            user.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y + 200)
            taken(user, Path(folder) / "studio.png")
            user.press("undo")
            user.says("10 coordinates, 1 input")
            user.click_text("Run")
            user.fill("input-cable", "200*minimum(t, 1)")
            user.press("motion")
            user.says("motion 1: motion of 2 s", 120)
            time.sleep(1.6)
            taken(user, Path(folder) / "studio_run.png")
        finally:
            user.close()
            served.stop()


def taken(user, path):
    """Write a picture of the page with few colours."""
    time.sleep(1.0)
    user.picture(path)
    Image.open(path).convert("RGB").quantize(192).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
