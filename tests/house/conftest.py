"""What tests of the manual share."""

from __future__ import annotations

import pytest
from house.pages import ROOT


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the examples in it, where code of the manual runs."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path
