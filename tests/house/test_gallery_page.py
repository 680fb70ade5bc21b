"""The gallery tells the truth: a picture and asserted numbers for every example, from its own results."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
CARD = re.compile(
    r"`examples/([\w/]+)\.(?:py|yaml)`\.\n\n!\[[^\]]+\]\(gallery/([\w/]+)\.jpg\)\n(?:\n(Asserted: [^\n]*)\n)?"
)
ALIKE = 1.5  # of 255: JPEG's own error, and what drivers draw differently at rims
CHEAP = "custom_cable"


@pytest.fixture(scope="module")
def make():
    """The script that makes the gallery."""
    spec = importlib.util.spec_from_file_location("gallery_maker", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_has_its_picture(make):
    """Purpose: scripts, robot files, scenes, pictures and cards of the page are the same list, and files are small."""
    there = {path.stem for path in (ROOT / "examples").glob("*.py")}
    robots = {f"robots/{path.stem}" for path in (ROOT / "examples" / "robots").glob("*.yaml")}
    assert set(make.scenes.SCENES) == there and set(make.scenes.ROBOTS) == robots
    pictures = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.jpg")}
    cards = CARD.findall(PAGE)
    assert pictures == {name for name, _, _ in cards} == there | robots
    assert all(name == shown for name, shown, _ in cards)
    assert all(path.stat().st_size < 80_000 for path in FOLDER.rglob("*.jpg"))


def test_films_are_there_and_small(make):
    """Purpose: every film is of an example whose card leads to it, and a film is no burden to the repository."""
    films = {path.stem for path in FOLDER.glob("*.mp4")}
    led = re.findall(r"\]\(gallery/(\w+)\.mp4\)", PAGE)
    assert films == set(make.scenes.FILMS) == set(led) and films <= set(make.scenes.SCENES)
    assert all(path.stat().st_size < 300_000 for path in FOLDER.glob("*.mp4"))


def test_numbers_shown_are_numbers_asserted(make):
    """Purpose: each number below a picture has a name that a test of the examples asserts something of."""
    suites = (*(ROOT / "tests" / "gallery").glob("test_*.py"), ROOT / "tests" / "viewing" / "test_cdm.py")
    tests = "\n".join(path.read_text(encoding="utf-8") for path in suites)
    told = {name: text for name, _, text in CARD.findall(PAGE)}
    for name, scene in make.scenes.SCENES.items():
        assert scene.numbers, f"{name} tells no number"
        for key in scene.numbers:
            assert f"{key.replace(' > ', ', ')}: " in told[name], f"run: make gallery ARGS={name}"
            word = [part for part in key.split(" > ") if not part.isdigit()][-1]
            forms = word, re.sub(r"\d+", "{n}", word)  # a test may go through numbers n
            assert any(f'"{form}"' in tests for form in forms), f"no test of {name} asserts {key!r}"


@pytest.mark.graphics
def test_a_picture_is_made_again(make):
    """Purpose: an example gives the stored numbers and the stored picture; another shape would be found out."""
    numbers, shot = make.run(CHEAP)
    assert make.line(CHEAP, numbers) in PAGE
    stored = np.asarray(Image.open(FOLDER / f"{CHEAP}.jpg"), dtype=float)
    found = make.picture(shot)
    assert found.shape == stored.shape
    assert np.abs(found - stored).mean() < ALIKE
    other = make.picture(shot._replace(rows=0.97 * shot.rows), size=(stored.shape[1], stored.shape[0]))
    assert np.abs(other - stored).mean() > 2.0 * ALIKE


def test_pictures_of_recipes_are_made_by_their_code():
    """Purpose: each recipe and the tutorial draw their pictures themselves, so that a reader gets the same picture."""
    for page in (ROOT / "docs" / "tutorial.md", *(ROOT / "docs" / "how_to").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        shown = set(re.findall(r"\]\((\w+\.png)\)", text)) - {"accuracy.png"}  # that of the benchmark
        code = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        assert all(f'"{name}"' in code and (page.parent / name).stat().st_size < 80_000 for name in shown), page
        files = ("export", "fmu", "other_tools", "real_time", "ros", "usd", "web_page")
        assert shown or page.stem in ("index", "accuracy", *files)


def test_costs_shown_are_costs_measured():
    """Purpose: the table of what accuracy costs holds the numbers of the table it is drawn from."""
    page = (ROOT / "docs" / "how_to" / "accuracy.md").read_text(encoding="utf-8")
    with (ROOT / "docs" / "how_to" / "accuracy.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "auto"]
    cells = {(row["robot"], float(row["asked"])): row for row in rows}
    names = {"arm with": "CDM", "serial": "serial robot", "parallel": "parallel robot"}
    names |= {"fin-ray": "fin-ray finger", "vehicle": "vehicle in water", "the same": "arm in a pipe"}
    compared = 0
    for line in page.splitlines():
        robot = next((name for word, name in names.items() if line.startswith(f"| {word}")), None)
        for cell, asked in zip(line.split("|")[3:8] if robot else (), (0.1, 1e-2, 1e-3, 1e-4, 1e-5)):
            if found := re.match(r" (\d+) ms, (\d)e(-\d+) ", cell):
                time, error = (float(cells[robot, asked][key]) for key in ("calibrations", "error"))
                assert abs(int(found[1]) - 7.2e-3 * time) < 0.501, "a calibration takes 7.2 µs"
                assert 0.5 < float(f"{found[2]}e{found[3]}") / error < 1.5
                compared += 1
    assert compared == 29
