"""The pages of the manual and the code on them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, kind):
    """Code blocks of one kind, each with empty lines in front so that errors name the line of the page."""
    text = page.read_text(encoding="utf-8")
    found = [m for m in BLOCK.finditer(text) if m[1] == kind]
    return [(text.count("\n", 0, m.start(2)), m[2]) for m in found]


def with_blocks(kind):
    """The pages that hold such blocks; those that draw robots are marked."""
    texts = {page: "".join(text for _, text in blocks(page, kind)) for page in PAGES}
    draws = re.compile(r"\.(render|animate)\(|^lissom (render|animate)", re.MULTILINE)
    marks = {page: [pytest.mark.graphics] if draws.search(text) else [] for page, text in texts.items()}
    return [pytest.param(page, id=page.stem, marks=marks[page]) for page, text in texts.items() if text]
