"""Make the pictures, films and numbers of the gallery, and the film strip of the README, from the examples.

    python docs/gallery/make.py [NAME ...]        the examples named, or all of them: twelve minutes
    python docs/gallery/make.py pages             the pictures that the code of the tutorial and of the recipes makes

Each example runs once as its test runs it. Its picture, and its film if it has one, show the motions of this run. Both
are written beside this file, numbers into gallery.md below the picture. Needs the extras render, deformable and
sections.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import lissom as ls
from lissom.viewing.canvas import canvas
from lissom.viewing.render import Scene as Stage

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = HERE.parent / "gallery.md"
STRIP = HERE.parent / "film_strip.jpg"
SIZE, QUALITY = 640, 88  # [pixels], of JPEG
FRAME = 300  # of the film strip [pixels]
FRAMES = ("cdm", "cdm_contact", "hybrid_hand", "resoft_gripper", "parallel_robot", "underwater_vehicle")


def module(path: Path) -> Any:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"shown_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


scenes = module(HERE / "scenes.py")


@contextmanager
def recorded() -> Iterator[list[Any]]:
    """The calls that are made meanwhile."""
    calls: list[Any] = []

    def recording(name: str, function: Any) -> Any:
        def called(model: ls.Model, *args: Any, **kwargs: Any) -> Any:
            result = function(model, *args, **kwargs)
            calls.append(scenes.Call(name, model, result))
            return result

        return called

    names = ("simulate", "solve_statics", "continuation", "inverse_dynamics")
    found = {name: recording(name, getattr(ls, name)) for name in names}
    with patch.multiple(ls, **found):
        yield calls


def run(name: str) -> tuple[dict[str, Any], Any]:
    """The numbers of an example and its picture, a `Shot`."""
    numbers, calls = calls_of(name)
    return numbers, scenes.SCENES[name].shot(calls)


def calls_of(name: str) -> tuple[dict[str, Any], list[Any]]:
    """The numbers of an example, and the calls that it makes."""
    example = module(ROOT / "examples" / f"{name}.py")
    with recorded() as calls:
        numbers = example.main(**scenes.SCENES[name].arguments)
    return numbers, calls


def film(name: str, calls: list[Any]) -> None:
    """The film of one of its motions, beside its picture."""
    wanted = scenes.FILMS[name]
    motion = scenes.motions(calls)[wanted.at].result
    shown = motion.t <= motion.t[0] + wanted.part * (motion.t[-1] - motion.t[0])
    part = replace(
        motion, **{key: getattr(motion, key)[shown] for key in ("t", "q", "v", "a", "u", "multipliers", "z")}
    )
    part.animate(HERE / f"{name}.mp4", size=wanted.size, fps=20.0, **wanted.options)


def picture(shot: Any, size: Any = SIZE) -> np.ndarray:
    """The picture of a `Shot`, drawn by the library."""
    return ls.render(shot.model, shot.rows, size=size, **shot.options)


def save(pixels: np.ndarray, path: Path) -> None:
    """As a small file."""
    from PIL import Image

    path.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(path, quality=QUALITY, optimize=True)


def frame(shot: Any) -> np.ndarray:
    """The same without words, for the film strip."""
    options = {"links": None, "paint": None, "values": None, "view": None, "obstacles": True} | shot.options
    curves = [options.pop("trail")] if "trail" in options else []
    stage = Stage(shot.model, shot.rows, curves, size=(FRAME, FRAME), **options)
    with canvas(stage.camera) as drawn:
        return np.round(255 * stage.picture(drawn, shot.rows, curves)).astype(np.uint8)


def told(numbers: dict[str, Any], key: str) -> str:
    """A number with its name, as the page tells it."""
    value: Any = numbers
    for part in key.split(" > "):
        value = value[int(part) if part.isdigit() else part]
    return f"{key.replace(' > ', ', ')}: {float(value):.3g}"


def line(name: str, numbers: dict[str, Any]) -> str:
    """What stands below the picture."""
    return "Asserted: " + "; ".join(told(numbers, key) for key in scenes.SCENES[name].numbers) + "."


def put(name: str, text: str) -> None:
    """The numbers of an example into the page, below its picture."""
    page = PAGE.read_text(encoding="utf-8")
    place = re.compile(rf"(\]\(gallery/{name}\.jpg\)\n\n)Asserted: [^\n]*\n")
    assert place.search(page), f"gallery.md has no picture of {name} with a line 'Asserted: ' below it"
    PAGE.write_text(place.sub(lambda found: f"{found[1]}{text}\n", page), encoding="utf-8")


def pages() -> None:
    """Run the code of pages that show pictures of it, and keep these beside the pages."""
    from PIL import Image

    for page in (HERE.parent / "tutorial.md", *sorted((HERE.parent / "how_to").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        wanted = [name for name in re.findall(r"\]\((\w+\.png)\)", text) if f'"{name}"' in "".join(blocks)]
        with TemporaryDirectory() as folder, chdir(folder):
            Path("examples").symlink_to(ROOT / "examples")
            names: dict[str, Any] = {"__name__": "__main__"}
            for block in blocks if wanted else ():
                exec(block, names)  # the pages are ours
            for name in wanted:
                Image.open(name).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(page.parent / name)
                print(f"made {name}", flush=True)


@contextmanager
def chdir(folder: str) -> Iterator[None]:
    """In a folder, and back."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main(names: list[str]) -> None:
    """Make the pictures of the named examples, and the film strip from the frames that are there."""
    if names == ["pages"]:
        return pages()
    for name in names or [*scenes.SCENES, *scenes.ROBOTS]:
        if name in scenes.SCENES:
            numbers, calls = calls_of(name)
            shot = scenes.SCENES[name].shot(calls)
            put(name, line(name, numbers))
            if name in scenes.FILMS:
                film(name, calls)
        else:
            shot = scenes.ROBOTS[name]()
        save(picture(shot), HERE / f"{name}.jpg")
        if name in FRAMES:
            (ROOT / "out").mkdir(exist_ok=True)
            np.save(ROOT / "out" / f"frame_{name}.npy", frame(shot))
        print(f"made {name}", flush=True)
    frames = [ROOT / "out" / f"frame_{name}.npy" for name in FRAMES]
    if all(path.exists() for path in frames):
        gap = np.full((FRAME, 6, 3), 255, dtype=np.uint8)
        row = [part for path in frames for part in (np.load(path), gap)][:-1]
        save(np.concatenate(row, axis=1), STRIP)
        print(f"made {STRIP.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
