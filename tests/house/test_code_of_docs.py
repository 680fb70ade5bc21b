"""The Python of the manual runs."""

from __future__ import annotations

import pytest
from house.pages import ROOT, blocks, with_blocks


@pytest.mark.parametrize("page", with_blocks("python"))
def test_python_runs(page, folder, small_pictures):
    """Purpose: the Python of each page runs from top to bottom as it stands, without a warning."""
    names = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * line + code, str(page), "exec"), names)  # the manual is ours


@pytest.mark.graphics
def test_readme_draws_its_picture(folder):
    """Purpose: the first code a reader tries is short and leaves the picture it promises."""
    ((_, code),) = blocks(ROOT / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    assert (folder / "arm.png").stat().st_size > 10_000
    assert len([line for line in code.splitlines() if line.strip()]) <= 16
