"""Takes the picture of the viewer in the manual: python tests/viewing/take_picture.py docs/viewer.png

The page says that it has no graphics card, which is left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from browser import Browser
from PIL import Image

import lissom as ls
from lissom.viewing.viewer import Viewer

ROBOT = Path(__file__).parents[2] / "examples" / "robots" / "cdm.yaml"
TENSIONS = (18.0, 0.0, 12.0, 4.0, 0.0)


def main(path):
    """The manipulator pulled by its tendons, in equilibrium, its strain painted."""
    viewer = Viewer(ls.load_robot(ROBOT).build(), None, None, "equilibrium", "127.0.0.1", 0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Browser(folder, (1180, 620), 200.0)
        try:
            page.open(viewer.url)
            page.until(lambda: page.run("document.body.innerText.includes('t1 [N]')"), "the page is there", 60)
            page.run("document.head.insertAdjacentHTML('beforeend',"
                     " '<style>[class*=Notification] {display: none !important}</style>')")  # fmt: skip
            for k in range(31):
                viewer.do(lambda k=k: viewer.session.set_inputs([k / 30 * one for one in TENSIONS]))
                time.sleep(0.03)
            viewer.do(viewer.panel.show_values)
            viewer.panel.paint.value = "strain [-]"
            viewer.do(lambda: viewer.stage.paint("strain"))
            page.click_text("Look")
            time.sleep(6.0)
            page.picture(path)
        finally:
            page.close()
            viewer.stop()
    Image.open(path).convert("RGB").quantize(192).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
