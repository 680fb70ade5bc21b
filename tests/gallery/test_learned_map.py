"""The finger that moves by a network trained on shapes of finite elements: exact where it must be, and as near."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

jax = pytest.importorskip("jax")


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("learned_map")


@pytest.fixture(scope="module")
def shapes(study):
    """The elements, their mesh, what two small pulls do, and shapes under some pulls."""
    motion, mesh = study.elements()
    model = study.finger(motion, mesh).model
    assert not model.calls_python
    small = ls.solve_statics(model, 1e-4 * study.PULL * np.eye(4)[[0, 2]]).q.T
    return motion, mesh, small, ls.solve_statics(model, study.pulls(40, 3)).q


def test_what_holds_for_any_weights(study):
    """Purpose: f(x, 0) = x, the clamped face stays, and ∂f/∂θ at θ = 0 is Φ L, whatever the network is."""
    rng = np.random.default_rng(0)
    n, terms = 5, study.polynomials(study.TIP, np).shape[-1]
    linear, coefficients = rng.normal(size=(n, 2)), rng.normal(size=(terms, 3, n))
    weights = [100.0 * part for part in study.random_weights(n)]
    f = study.learned_motion(study.Learned(linear, coefficients, weights, 0.1, np.ones(n), 0.0, 0.0))
    inside, clamped = (rng.uniform(-0.01, 0.01, (6, 3)) * scale for scale in (1.0, np.array([0.0, 1.0, 1.0])))
    with study.double():
        places = jax.jit(jax.vmap(f, (0, None)))
        slopes = np.asarray(jax.jit(jax.vmap(jax.jacfwd(f, argnums=1), (0, None)))(inside, np.zeros(2)))
        start, bent = np.asarray(places(inside, np.zeros(2))), np.asarray(places(inside, np.ones(2)))
        still = np.asarray(places(clamped, np.ones(2)))
    np.testing.assert_array_equal(start, inside)
    np.testing.assert_array_equal(still, clamped)
    expected = np.einsum("kt,taj,jl->kal", study.polynomials(inside, np), coefficients, linear)
    np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert np.abs(bent - inside - slopes.sum(axis=-1)).max() > 1e-3 * np.abs(expected).max()  # and more than linear


def test_polynomials_are_near_the_shapes_of_the_elements(study, shapes):
    """Purpose: Φ has slopes of the lowest modes to 3 %, of which the square is what energies are off by."""
    motion, mesh, small, _ = shapes
    _, slopes, exact, w = study.fitted(motion, mesh)
    for columns in (np.eye(motion.n)[:, :2], small):
        found, wanted = (part @ columns for part in (slopes, exact))
        size, off = (np.einsum("kapj,k->j", part**2, w) for part in (wanted, found - wanted))
        assert np.sqrt(off / size).max() < 0.03


def test_training_finds_the_strains(study, shapes):
    """Purpose: the linear map alone is off by more than the energy there is, and a short training leaves a tenth of it;
    θ is how far the tip goes where it goes a little."""
    motion, mesh, small, q = shapes
    learned = study.learn(motion, mesh, small, q, steps=150)
    assert learned.untrained > 1.0
    assert learned.loss < 0.1
    tip = study.polynomials(study.TIP, np)[0] @ learned.shapes.transpose(1, 0, 2) @ learned.linear
    np.testing.assert_allclose(tip[1:], np.eye(2), atol=0.01)


@pytest.mark.slow  # JAX compiles the motion with two derivatives, and steps of two motions call it
def test_the_whole_study(study, tmp_path):
    """Purpose: stiffness about the straight shape within 2 %, tips under large pulls within 5 %, and energy kept; the
    frequency is above that of the elements, by less than 3 %."""
    numbers = study.main(tmp_path)
    assert abs(numbers["softer about the straight shape [%]"]) < 2.0
    assert numbers["tip off the finite elements, worst [%]"] < 5.0
    assert numbers["farthest way of the tip [mm]"] > 0.35e3 * study.SIZE[0]
    assert 0.0 < numbers["lowest frequency off [%]"] < 3.0
    assert numbers["energy lost or gained without damping"] < 1e-4
    assert (tmp_path / "learned_map.png").stat().st_size > 10_000
