"""The applications of SoRoSim 2022, section 6: an underactuated linkage, and a rod guided past an obstacle."""

import numpy as np
import pytest
from gallery.examples import drawn, example

import lissom as ls


def test_underactuated_linkage(tmp_path):
    """Purpose: the motor's work and impulse balance; the ball holds no moment; two methods agree to second order.

    Steps good to rtol = 1e-8 leave sqrt(steps) · 1e-8 of the energy exchanged and of the angular momentum, below 1e-6;
    a hundred times the tolerance leaves at least ten times the error.
    """
    numbers = example("underactuated_linkage").main(tmp_path)
    assert drawn(tmp_path / "underactuated_linkage.png")
    assert numbers["modes of the soft link"] == 4
    assert numbers["largest bend of the soft link [deg]"] > 20
    assert numbers["least torque [N·m]"] < -0.1 < 0.1 < numbers["largest torque [N·m]"]
    loose, middle, tight = (numbers[f"energy balance at rtol 1e-{digits}"] for digits in (4, 6, 8))
    assert tight < middle / 10 < loose / 100 < 1e-6
    assert numbers["angular impulse mismatch"] < 1e-6
    assert numbers["largest force along its coordinates [N·m]"] < 1e-12
    assert numbers["largest moment in the ball [N·m]"] < 1e-12 < 1e-2 < numbers["largest moment in a weld [N·m]"]
    assert numbers["torque against the cut [N·m]"] < 1e-12
    apart = [numbers[f"tips apart, {steps} steps [m]"] for steps in (300, 600, 1200)]
    assert apart[0] / apart[1] == pytest.approx(4, rel=0.05) and apart[1] / apart[2] == pytest.approx(4, rel=0.05)
    assert apart[2] < 1e-5


@pytest.fixture(scope="module")
def guided():
    """The rod that three tendons guide around a wall."""
    return example("obstacle_path")


def test_obstacle_path(guided, tmp_path):
    """Purpose: the planned tensions lead the whole rod past the wall into the goal, where it rests; a straight ramp of
    the same tensions runs through the wall.

    The exact sensitivity of the plan is that of equilibria, up to the h² of the differences; the rod comes to rest as
    its slowest vibration dies out, a hundred times slower than it moved and to a hundredth of a millimetre.
    """
    numbers = guided.main(tmp_path)
    assert drawn(tmp_path / "obstacle_path.png")
    assert numbers["mismatch of the sensitivity"] < 1e-8
    assert numbers["planned tip to the goal's centre [m]"] < 1e-10
    assert 0.005 < numbers["of it certain [m]"] < numbers["clearance around the wall [m]"]
    assert numbers["clearance on the straight ramp [m]"] < -guided.RADIUS, "the centreline itself goes through"
    assert numbers["its distance from the goal's box [m]"] < -0.01
    assert numbers["its distance from the equilibrium [m]"] < 1e-5
    assert numbers["its speed in the last half second [m/s]"] < numbers["largest speed of the tip [m/s]"] / 100
    assert numbers["least tension [N]"] == 0.0  # at the start; cubics that do not overshoot stay above
    assert numbers["energy balance"] < 1e-6


def test_guided_rod_needs_its_short_tendon(guided):
    """Purpose: with the short tendon slack the rod stays on its side of the wall, however the long ones pull; that
    tendon moves the hanging tip the other way.
    """
    model = guided.robot().build()
    pulls = np.array([(a, b, 0.0) for a in (0.0, 10.0, 25.0, 45.0) for b in (0.0, 10.0, 25.0, 45.0)])
    rest = ls.solve_statics(model, pulls).q
    assert guided.centreline(model, rest)[..., 0].max() < 1e-3 < guided.WALL.low[0]
    along = guided.sensitivity(model, rest[0], pulls[0])[0]  # x, where no tendon pulls [m/N]
    assert along[:2].max() < -1e-3 < 1e-3 < along[2]


def test_distance_from_a_box(guided):
    """Purpose: distances agree with those to the nearest of many points on the faces, their spacing at most apart."""
    box, n = guided.Box((-0.1, 0.2, 0.0), (0.3, 0.5, 0.2)), 81
    x = np.linspace(0.0, 1.0, n)
    a, b = (grid.ravel() for grid in np.meshgrid(x, x))
    sides = [np.insert(np.stack([a, b], axis=1), axis, side, axis=1) for axis in range(3) for side in (0.0, 1.0)]
    faces = np.asarray(box.low) + np.concatenate(sides) * np.subtract(box.high, box.low)
    points = np.random.default_rng(0).uniform((-0.3, 0.0, -0.2), (0.5, 0.7, 0.4), (60, 3))
    nearest = np.linalg.norm(points[:, None] - faces, axis=-1).min(axis=1)
    found = box.distance(points)
    inside = ((points > box.low) & (points < box.high)).all(axis=1)
    assert inside.any() and np.array_equal(found < 0, inside)
    beyond = nearest - np.abs(found)
    assert beyond.min() > -1e-15 and beyond.max() < 0.4 / (n - 1)
