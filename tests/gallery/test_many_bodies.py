"""The bodies in a row of Pustina 2025, simulation 3: Lagrange's equations by SymPy, and how the cost grows."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls
from lissom.robot import poses

pytest.importorskip("jax")
pytest.importorskip("sympy")


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("many_bodies")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_inverse_dynamics_is_that_of_lagrange(study, count):
    """Purpose: a relative difference below 1e-12 in each of a hundred random states of the paper's ranges."""
    apart = study.differences(count, study.lagrange(count))
    assert len(apart) == 100
    assert apart.max() < 1e-12


def test_lagrange_itself(study):
    """Purpose: the symbolic forces are those of an energy that they keep: q̇·(forces) is the change of T = ½ q̇ᵀM q̇,
    with M its own forces at rest, so that a term lost on both sides would show."""
    function, rng = study.lagrange(2), np.random.default_rng(4)
    q, v, a = (rng.uniform(-1.0, 1.0, 2) for _ in range(3))

    def energy(t):
        x, rate = q + t * v + 0.5 * t * t * a, v + t * a
        return 0.5 * rate @ study.symbolic(function, x, np.zeros(2), rate)

    change = (8 * (energy(1e-3) - energy(-1e-3)) - energy(2e-3) + energy(-2e-3)) / 12e-3
    assert v @ study.symbolic(function, q, v, a) == pytest.approx(change, rel=1e-9)


def test_cost_grows_with_the_number_of_bodies(monkeypatch, study):
    """Purpose: from 5 bodies to 20 the time of a call at a new state rises by less than linear growth and a third would
    have it, and by more than if the integrals over the bodies were those of the call before."""
    monkeypatch.setitem(poses._QUICK, "xla_backend_optimization_level", 3)  # other tests optimise nothing
    few, many = (study.chain(count) for count in (5, 20))
    times, rng = [], np.random.default_rng(0)
    for model in (few, many):
        one = np.ones(model.nv)
        study.recursive(model, one, one, one)

        def new_state(model=model, one=one):
            study.recursive(model, one + rng.uniform(-0.1, 0.1, model.nv), one, one)

        times.append(study.shortest(new_state))
    assert times[1] > 1.5 * times[0]
    assert isinstance(many, ls.Model) and many.nv == 20
    assert times[1] < 4.0 * 4 / 3 * times[0]


@pytest.mark.slow  # times of sixty rounds, and equations of five bodies
def test_the_whole_study(study, tmp_path):
    """Purpose: the picture, and the power with which the cost grows, fitted."""
    numbers = study.main(tmp_path)
    assert (tmp_path / "many_bodies.png").stat().st_size > 10_000
    assert 0.4 < numbers["ID grows with the number of bodies to the power"] < 1.2
    assert max(numbers[f"difference, {n} bodies"] for n in study.SYMBOLIC) < 1e-12
    for name in ("M q̈", "c"):
        low, middle, high = (
            numbers[f"{name} of 20 bodies, {word} [ms]"] for word in ("first quartile", "median", "third quartile")
        )
        assert 0.0 < low <= middle <= high < 10.0
    assert numbers["build of 20 bodies, median [ms]"] < 4520.0, "the time of the paper for its model"


@pytest.mark.slow  # three kinematics are compiled
def test_cost_of_kinematics(study):
    """Purpose: inverse dynamics costs more with more points and with more coordinates of a body."""
    costs = study.kinematics_costs(count=5, rounds=200)
    names = ("constant curvature", "affine curvature", "cubic curvature")
    (few, spent), (many, longer) = zip(*(costs[f"cubic curvature, degree {degree} along"] for degree in (10, 20)))
    assert many > few and longer > spent
    each = [costs[f"{name}, degree 20 along"][1] for name in names]
    assert each[0] < each[1] < each[2]
