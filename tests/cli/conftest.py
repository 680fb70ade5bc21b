"""What tests of the command line share."""

from __future__ import annotations

import pytest
from cli.small_robot import SMALL, write


@pytest.fixture(autouse=True)
def fast_pictures(small_pictures):
    """Tests of commands look whether pictures are there."""


@pytest.fixture
def small(tmp_path):
    """Path of a robot file with two tendons and three modes."""
    return write(tmp_path / "small.yaml", SMALL)
