"""The swimmers of the gallery: a propeller of one flagellum (SoRoSim 2022 §6), a body bent by tendons (Boyer 2023)."""

import pytest
from gallery.examples import drawn, example


@pytest.fixture(scope="module")
def propeller(tmp_path_factory):
    """The numbers of the propeller, and where its pictures are."""
    folder = tmp_path_factory.mktemp("propeller")
    return example("flagellum_propeller").main(folder), folder


def test_propeller_swims_at_a_steady_speed(propeller):
    """Purpose: the mean speeds of the last two turns agree within a thousandth; at rest the shaft drives nothing."""
    numbers, folder = propeller
    speed = numbers["speed, swimming [m/s]"]
    assert speed == pytest.approx(numbers["speed a turn earlier [m/s]"], rel=1e-3)
    assert speed > 0.05
    assert abs(numbers["speed, shaft at rest [m/s]"]) < 1e-12
    assert drawn(folder / "shapes.png") and drawn(folder / "speed.png")


def test_thrust_is_drag_and_moment_is_torque(propeller):
    """Purpose: turning steadily, drag and lift on filament and hook, integrated apart from the library, equal the
    body's drag and the multiplier of the motor's motion; a thousandth is left of the approach to the steady speed.
    """
    numbers, _ = propeller
    assert numbers["thrust [N]"] == pytest.approx(numbers["drag of the body [N]"], rel=1e-3)
    assert numbers["moment of the water [N·m]"] == pytest.approx(numbers["torque of the motor [N·m]"], rel=1e-3)
    assert numbers["thrust [N]"] > 0.01


def test_mirrors_and_turns_of_the_propeller(propeller):
    """Purpose: turned around it swims back; in a mirror, with spin and lift reversed, its tip goes the mirrored path;
    without lift the spin does not matter, with lift it does. Steps are good to 1e-7."""
    numbers, _ = propeller
    speed = {name: numbers[f"speed, {name} [m/s]"] for name in (
        "swimming", "mirrored", "filament ahead", "other spin", "no lift", "no lift, other spin")}  # fmt: skip
    assert speed["mirrored"] == pytest.approx(speed["swimming"], rel=1e-6)
    assert speed["filament ahead"] == pytest.approx(-speed["swimming"], rel=1e-6)
    assert speed["no lift, other spin"] == pytest.approx(speed["no lift"], rel=1e-6)
    assert speed["swimming"] > 1.1 * speed["no lift"] > 1.2 * speed["other spin"]
    assert numbers["path of the tip from that in the mirror [m]"] < 1e-5


@pytest.fixture(scope="module")
def swimmer(tmp_path_factory):
    """The numbers of the swimmer, and where its pictures are."""
    folder = tmp_path_factory.mktemp("swimmer")
    return example("tendon_swimmer").main(folder), folder


def test_swimmer_reaches_a_steady_speed(swimmer):
    """Purpose: nose first, straight on, its mean speeds of the last two periods within a per cent; bdf agrees with
    the paper's steps of 10 ms, 1/40 of a period, within half a per cent."""
    numbers, folder = swimmer
    velocity = numbers["velocity [m/s]"]
    assert -1.0 < velocity < -0.1
    assert velocity == pytest.approx(numbers["a period before [m/s]"], rel=0.01)
    assert velocity == pytest.approx(numbers["the same by bdf [m/s]"], rel=5e-3)
    assert numbers["sideways over way"] < 0.05
    assert numbers["tail, peak to peak [m]"] > 0.03
    assert numbers["torsion of the head [1/m]"] == 0.0, "a planar motion stays planar"
    assert drawn(folder / "swim.png") and drawn(folder / "torques.png")


def test_torques_of_the_swimmer(swimmer):
    """Purpose: the tendons drive with 2 D T₁ = 2 N·m; the soft tail takes up a part of it, as in the paper's figure."""
    numbers, _ = swimmer
    assert numbers["control torque [N·m]"] == pytest.approx(2.0, rel=1e-12)
    assert 0.1 < numbers["elastic torque at the third root [N·m]"] < 1.0


def test_momentum_comes_from_wake_and_drag(swimmer):
    """Purpose: what body and water gain along the path is the impulse of both forces, integrated apart from the
    library, within the ten Gauss points of a rod, 1e-3; in the end thrust and drag nearly balance."""
    numbers, _ = swimmer
    gained = numbers["momentum gained [kg·m/s]"]
    assert gained < -1.0
    assert numbers["impulse of wake and drag [N·s]"] == pytest.approx(gained, rel=1e-3)
    assert numbers["thrust of the wake [N]"] == pytest.approx(numbers["drag [N]"], rel=0.15)
    assert numbers["drag [N]"] > 0.1


def test_waves_drive_against_their_way(swimmer):
    """Purpose: without a wake the same robot swims to its nose with waves that run to the tail, and back with others,
    about as fast."""
    numbers, _ = swimmer
    there, back = (numbers[f"velocity with waves to the {end} [m/s]"] for end in ("tail", "head"))
    assert there < -0.01 < 0.01 < back
    assert back == pytest.approx(-there, rel=0.3)
