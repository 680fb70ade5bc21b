"""Fixtures for tests of the gallery."""

import pytest


@pytest.fixture(autouse=True)
def fast_pictures(small_pictures):
    """Pictures of scripts are small, since tests only check that they exist."""
