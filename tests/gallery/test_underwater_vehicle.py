"""The underwater vehicle of Mathew 2025 §6.3: its size, its symmetries, two methods, and exact derivatives."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("underwater_vehicle")


@pytest.fixture(scope="module", params=[5.0, pytest.param(10.0, marks=pytest.mark.slow)])
def run(study, tmp_path_factory, request):
    """The numbers of the script over half of its duration, slowly over all of it, and where its pictures are."""
    folder = tmp_path_factory.mktemp("vehicle")
    return study.main(folder, duration=request.param), folder


def test_it_runs_as_a_script(run):
    """Purpose: the paper's 80 coordinates, a vehicle that moves by more than its shaft is long, and pictures."""
    numbers, folder = run
    assert numbers["coordinates"] == 80
    assert numbers["advance [m]"] > 0.1, "the longer flagella behind push it forwards"
    for name in ("shapes.png", "motion.png"):
        assert (folder / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert (folder / name).stat().st_size > 10_000


def test_symmetry_forbids_roll_and_advance(run):
    """Purpose: opposite torques leave no moment on the body; equal ends, turned into each other, no thrust.

    The rest comes from rounding and from the tolerance of the steps, 1e-6. One motor alone does roll the body.
    """
    numbers, _ = run
    assert max(numbers["roll [rad]"], numbers["roll of the symmetric vehicle [rad]"]) < 1e-6
    assert abs(numbers["advance of the symmetric vehicle [m]"]) < 1e-9
    assert numbers["roll with one motor [rad]"] > 0.5


def test_methods_agree(run):
    """Purpose: esdirk, the default, within a micrometre of bdf at the tips; generalized_alpha within 1 mm, and of
    second order in its step.

    The balance of energy integrates powers over rows 10 ms apart, in which the shafts start to turn.
    """
    numbers, _ = run
    assert numbers["tips, esdirk [m]"] < 1e-6
    coarse, fine = (numbers[f"tips, generalized_alpha{more} [m]"] for more in ("", ", half the step"))
    assert coarse < 1e-3
    assert np.log2(coarse / fine) == pytest.approx(2.0, abs=0.25)
    assert numbers["energy balance residual"] < 1e-3


def test_derivatives_are_exact_and_fast(run):
    """Purpose: central differences with steps of 1e-5 leave 1e-8, and cost ten times as much at least."""
    numbers, _ = run
    assert numbers["mismatch of the derivatives"] < 1e-8
    assert numbers["differences over exact derivatives, time"] > 10


def test_everything_floats(study):
    """Purpose: straight and at rest nothing pulls on the vehicle, though it has a weight.

    The area of a circle is extrapolated from polygons, which leaves 5e-11 of the weight of the flagella.
    """
    wet, dry = study.vehicle(), study.vehicle()
    dry.fluid = None
    pull, weight = (ls.external_force(m, m.neutral(), np.zeros(m.nv)) for m in (wet.build(), dry.build()))
    assert np.abs(weight).max() > 50
    assert np.abs(pull).max() < 1e-10 * np.abs(weight).max()
