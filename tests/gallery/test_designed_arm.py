"""The arm designed by gradients: its derivatives, and the gain of the design."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls


def test_derivatives_of_the_height():
    """Purpose: along a direction of all design values they are differences of heights of equilibria."""
    study = example("designed_arm")
    model = study.build()
    way = {"radii": np.array([2.0, -1.0, 1.5, 0.5]) * 1e-3, "offsets": np.array([1.0, -0.7, 0.4]) * 1e-3}

    def design(x):
        return {name: study.START[name] + x * way[name] for name in way}

    def along(slopes):
        return sum(slopes[name] @ way[name] for name in way)

    _, gradient = study.height(model, study.START)

    def moved(x):
        own = model.with_(study.values(**design(x)))
        return ls.frame_pose(own, ls.solve_statics(own, [study.TENSION]).q, "part 2")[2, 3]

    h = 0.05
    found = (8.0 * (moved(h) - moved(-h)) - moved(2.0 * h) + moved(-2.0 * h)) / (12.0 * h)
    assert along(gradient) == pytest.approx(found, rel=1e-5)
    _, slope = study.volume(study.START)
    ends = [study.volume(design(x))[0] for x in (1e-3, -1e-3)]
    assert along(slope) == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=1e-7)


@pytest.mark.graphics
@pytest.mark.slow  # some thirty equilibria, each with dozens of models beside it
def test_the_design_lifts_the_load(tmp_path):
    """Purpose: from 28 mm to above 300 mm, with no more material and the tendon inside, and the pictures."""
    numbers = example("designed_arm").main(tmp_path)
    assert numbers["height before [mm]"] == pytest.approx(28.1, abs=0.1)
    assert numbers["height after [mm]"] > 300.0 and numbers["volume after/before"] < 1.0 + 1e-6
    for k in range(3):
        thin = min(numbers[f"radius {k} [mm]"], numbers[f"radius {k + 1} [mm]"])
        assert numbers[f"distance of the tendon in part {k} [mm]"] < 0.75 * thin + 1e-6
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("before", "after"))
