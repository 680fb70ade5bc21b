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
    assert (DOCS / "papers" / "index.md").read_text(encoding="utf-8") == make.index(), again
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == make.gallery(), again


def words(text):
    """A text without line breaks."""
    return " ".join(text.split())


def test_rows_lead_to_what_exists(make):
    """Purpose: every row has a page with its heading, functions that are public, and a script or a test that is there;
    our number is one that a test asserts, or stands on the page."""
    asserted, measured = make.asserted(), make.measured()
    for row in make.rows():
        assert tuple(row) == make.FIELDS and row["paper"] in make.PAPERS and row["item"] and row["about"], row
        page, _, anchor = row["page"].partition("#")
        text = (DOCS / page).read_text(encoding="utf-8") if page else ""
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, f"{row['item']}: {page} has no heading {anchor}"
        for name in row["names"].split():
            assert attrgetter(name)(ls) is not None
        path, _, test = row["run"].partition("::")
        assert not path or (ROOT / path).is_file(), path
        assert path.startswith("tests/") == bool(test), row["run"]
        assert not test or f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"), row["run"]
        kind, _, place = row["ours"].partition(":")
        assert kind in ("", "gallery", "page", "table"), row["ours"]
        if kind == "gallery":
            assert place in asserted, f"{row['item']}: {place} is no number of the gallery"
            assert place.split(":")[0] == Path(path).stem
        elif kind == "table":
            assert page == make.MEASURED.name and place in measured, f"{row['item']}: {page} has no {place}"
        elif kind == "page":
            assert place in words(text), f"{row['item']}: {page} does not say {place}"


def test_states_have_their_reason(make):
    """Purpose: an item that works leads to a page or is shown by a script or test; any other one has a reason. No item
    has two rows, and each paper says how many there are of each state."""
    rows = make.rows()
    for row in rows:
        assert row["state"] in make.STATES, row
        assert row["page"] or row["run"] if row["state"] == "works" else row["why"], f"{row['paper']}: {row['item']}"
    places = [(row["paper"], row["item"]) for row in rows]
    assert sorted(set(places)) == sorted(places)
    for paper, counts in make.counts().items():
        assert sum(counts.values()) == sum(row["paper"] == paper for row in rows) > 70


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
