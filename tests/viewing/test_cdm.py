"""The demonstration: its motion, and the tensions that the command line reads for it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples"
CDM = runpy.run_path(str(EXAMPLES / "cdm.py"))


def test_the_arm_goes_up_down_and_to_both_sides(tmp_path, small_pictures):
    """Purpose: the demonstration bends visibly in every direction, balances its energy and draws two pictures."""
    found = CDM["main"](out=tmp_path)
    assert found["least y"] < -0.2 and found["largest y"] > 0.2
    assert found["least z"] < -0.28 and found["largest z"] > 0.2
    assert found["energy balance residual"] < 1e-5  # rtol 1e-6 over 2500 steps
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shapes.png", "trajectory.png"]


def test_the_table_of_tensions_is_that_of_the_example():
    """Purpose: the file holds the function's values, none of them negative."""
    table = np.loadtxt(EXAMPLES / "robots" / "cdm_tensions.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 1:], [CDM["tensions"](t) for t in table[:, 0]], atol=5e-5)
    assert table[:, 1:].min() >= 0.0 and table[0, 0] == 0.0 and table[-1, 0] == CDM["DURATION"]
