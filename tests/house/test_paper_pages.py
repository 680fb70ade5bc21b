"""The pages of the papers tell the truth: they are made from their table, which leads to what exists."""

from __future__ import annotations

import importlib.util
import re
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import lissom as ls

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def make():
    """The script that makes the pages."""
    spec = importlib.util.spec_from_file_location("paper_maker", DOCS / "papers" / "make.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_those_of_the_table(make):
    """Purpose: pages and the lines of the gallery are made from the table and the asserted numbers of today."""
    known, again = make.asserted(), "run: python docs/papers/make.py"
    for paper in make.PAPERS:
        assert (DOCS / "papers" / f"{paper}.md").read_text(encoding="utf-8") == make.page(paper, known), again
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == make.gallery(), again


def test_rows_lead_to_what_exists(make):
    """Purpose: every row has a page with its heading, functions that are public, a script, and an asserted number."""
    known = make.asserted()
    for row in make.rows():
        assert tuple(row) == make.FIELDS and row["paper"] in make.PAPERS and row["item"] and row["about"], row
        page, _, anchor = row["page"].partition("#")
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, f"{row['item']}: {page} has no heading {anchor}"
        for name in row["names"].split():
            assert attrgetter(name)(ls) is not None
        assert not row["run"] or (ROOT / row["run"]).is_file(), row["run"]
        if row["ours"]:
            kind, place = row["ours"].split(":", 1)
            assert kind == "gallery" and place in known, f"{row['item']}: {place} is no number of the gallery"
            assert place.split(":")[0] == Path(row["run"]).stem


def test_every_example_of_a_paper_has_a_row(make):
    """Purpose: an example whose first line names a paper stands in the table of this paper, and so do its figures."""
    there = make.places()
    for path in (ROOT / "examples").glob("*.py"):
        title = path.read_text(encoding="utf-8").split("\n\n")[0]
        paper = next((name for name, _ in make.PAPERS.values() if name in title), None)
        if paper is None:
            continue
        assert path.stem in there and there[path.stem].startswith(paper), f"{path.stem} is of {paper}"
        figures = re.search(r"figures? ([\d, and to]+)", title)
        if figures:
            numbers = set(re.findall(r"\d+", figures[1]))
            assert numbers & set(re.findall(r"\d+", there[path.stem])), path.stem


def test_the_gallery_is_grouped_by_paper(make):
    """Purpose: an example of a paper stands under the heading of this paper."""
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for name, place in make.places().items():
        group = re.findall(r"^## (.*)$", text[: text.index(f"](gallery/{name}.jpg)")], re.MULTILINE)[-1]
        assert place.startswith(group), f"{name} stands under {group}"
