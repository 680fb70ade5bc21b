"""Which combinations of levels the fast run of the tests has; the others are slow."""

from itertools import product

import pytest


def halved(*axes):
    """Parameters of a test: all combinations of the levels of two or more axes, every second of them slow.

    Each level of each axis stays in the fast run: the indices of its combinations have an even sum.
    """
    at = product(*(range(len(axis)) for axis in axes))
    return [pytest.param(*levels, marks=[pytest.mark.slow] * (sum(k) % 2)) for k, levels in zip(at, product(*axes))]
