"""The arm with pairs of chambers of Pustina 2025, simulation 4: where pressures bend, stretch and bulge it."""

import numpy as np
import pytest
from gallery.examples import example

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("inflated_arm")


@pytest.mark.parametrize("side", [1, -1])
def test_walls_of_the_chambers(study, side):
    """Purpose: closed, seen from outside, with the volume of a cut cylinder, and 4 mm from the surface everywhere.

    Twelve chords for the arc leave a part of (π/24)²·2/3 of its segment's area, about a hundredth.
    """
    vertices, triangles = study.chamber(side)
    edges = np.sort(np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]), axis=1)
    assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    radius, middle = study.RADIUS - study.WALL, 0.5 * study.WALL
    half = np.arccos(middle / radius)
    exact = (study.LENGTH - 2 * study.WALL) * (radius**2 * half - middle * radius * np.sin(half))
    assert (a * np.cross(b, c)).sum() / 6 == pytest.approx(exact, rel=0.015)
    assert np.hypot(*vertices.T[1:]).max() <= radius * (1 + 1e-12)
    assert (side * vertices[:, 1]).min() >= middle * (1 - 1e-12)


@pytest.mark.slow  # JAX compiles chambers and bumps with their derivatives for a minute
def test_what_pressures_do(study, tmp_path):
    """Purpose: bodies bend away from the chamber of higher pressure and grow where it is; the motion ends about
    the equilibrium of statics, with a fifth left of the first swing of 0.22 rad after three seconds."""
    numbers = study.main(tmp_path)
    assert numbers["stable"] and numbers["largest share borne"] >= study.SHOWN
    for k, name in enumerate(study.BODIES):
        plus, minus = study.PRESSURES[2 * k : 2 * k + 2]
        assert np.sign(numbers[f"{name}: bend [rad]"]) == np.sign(minus - plus)
        grown = [numbers[f"{name}: growth on {side}y [%]"] for side in "+-"]
        assert (grown[0] - grown[1]) * (plus - minus) > 0.0
        assert max(grown) > 1.0
        assert numbers[f"{name}: elongation [mm]"] > 0.0
    first, second = numbers["body 1: growth on +y [%]"], numbers["body 2: growth on -y [%]"]
    assert first == pytest.approx(second, rel=0.05), "mirrored pressures, with little else to tell them apart"
    assert numbers["end of the motion from equilibrium"] < 0.05
    assert (tmp_path / "inflated_arm.png").stat().st_size > 10_000
