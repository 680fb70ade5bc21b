"""Benchmarks run by hand: the functions that they call must exist."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

PLACE = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def found(monkeypatch):
    """A benchmark by its name, also while modules of the tests with the same names are loaded."""
    names = [path.stem for path in PLACE.glob("*.py")]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(str(PLACE))
    monkeypatch.syspath_prepend(str(PLACE.parent / "examples"))
    yield import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


@pytest.mark.parametrize("name", sorted(path.stem for path in PLACE.glob("*.py")))
def test_a_benchmark_can_be_imported(found, name):
    """Without its peers too: these are asked for where they are measured."""
    assert found(name).__doc__


def test_the_example_of_a_cold_start_ends_where_it_says(found):
    """The number that it checks in each process is that of the library."""
    exec(found("cold_start").EXAMPLE, {})


def test_parts_of_a_step_can_be_timed(found):
    """Steps with a new matrix and with an old one, and the iteration that these tell of. Their order is left to the
    benchmark, since other work on the machine decides it here."""
    timing = found("timing")
    model = timing.load("cdm")
    fresh, old, iteration = timing.newton_iteration(model, np.full(model.nu, 5.0))
    assert min(fresh, old) > 0.0
    assert np.isfinite(iteration)


def test_launches_of_bodies_can_be_timed(found):
    """Inverse dynamics, mass matrix and derivatives, ready to run again."""
    bodies = found("deformable_bodies")
    for call in bodies.launches(bodies.Case("rod", bodies.rod(5), 1.0), 2):
        call()
