"""The finger designed by gradients of its motion: derivatives of its loss, and the gain of the design."""

import numpy as np
import pytest
from gallery.examples import example


def test_derivatives_of_the_loss():
    """Purpose: along directions of the outline, the routes and the tensions they are differences of the loss."""
    study = example("designed_finger")
    model, x, rng = study.build(), study.start(), np.random.default_rng(0)
    x["tensions"] = x["tensions"] + 1.0  # no tendon may push
    _, slopes = study.loss(model, x)
    for name, size in (("radii", 1e-6), ("routes", 1e-6), ("tensions", 1e-3)):
        way = size * rng.uniform(0.5, 1.0, size=x[name].shape)

        def along(h, name=name, way=way):
            return study.loss(model, x | {name: x[name] + h * way})[0]

        found = (8.0 * (along(1.0) - along(-1.0)) - along(2.0) + along(-2.0)) / 12.0
        assert (slopes[name] * way).sum() == pytest.approx(found, rel=1e-6), name


@pytest.mark.graphics
@pytest.mark.slow  # 160 motions with derivatives by 50 numbers
def test_the_finger_reaches_and_holds(tmp_path):
    """Purpose: from 19 mm away to less than half a millimetre, simulated with another method, and pictures of it."""
    numbers = example("designed_finger").main(tmp_path)
    assert numbers["distance from the point, before [mm]"] == pytest.approx(18.73, abs=0.05)
    assert numbers["distance from the point, after [mm]"] < 0.5
    assert numbers["gradients"] > 100.0
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("before", "after"))
