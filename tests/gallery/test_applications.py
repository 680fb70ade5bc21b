"""The applications of SoRoSim 2022, section 6: an underactuated linkage."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(path):
    """Whether a picture is there."""
    picture = path.read_bytes()
    return picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000


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
