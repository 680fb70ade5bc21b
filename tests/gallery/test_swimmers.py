"""The swimmers of the gallery: a propeller of one flagellum (SoRoSim 2022 §6)."""

import importlib.util
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """An example as a module."""
    matplotlib.use("Agg")
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(path):
    """Whether a picture is there."""
    picture = path.read_bytes()
    return picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000


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
    """Purpose: turning steadily, filament and hook feel by drag and lift, integrated apart from the library, what the
    body's drag and the multiplier of the motor's motion say; a thousandth is left of the approach to the steady speed.
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
