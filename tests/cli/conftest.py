"""Fixtures for tests of the command line."""

from __future__ import annotations

import pytest
from cli.small_robot import SMALL, write


@pytest.fixture(autouse=True)
def fast_pictures(small_pictures):
    """Pictures of commands are small, since tests only check that they exist."""


@pytest.fixture
def small(tmp_path):
    """Path of a robot file with two tendons and three modes."""
    return write(tmp_path / "small.yaml", SMALL)
