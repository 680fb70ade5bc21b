"""Mass matrix and bias force in one pass are those of the functions that give one of them."""

import numpy as np
import pytest
from robots import build, random_state, random_tree

import lissom as ls


@pytest.mark.parametrize("seed", [0, 7, 19])
@pytest.mark.parametrize("terms", [{}, {"gravity": False}, {"elastic": False}, {"loads": False}, {"t": 0.7}])
def test_both_parts_are_those_of_their_own_functions(seed, terms):
    """M and h(q, v) = ID(q, v, 0), with the same terms; for one state and a batch."""
    model = build(random_tree(seed))
    q, v, a, *_ = random_state(random_tree(seed), seed)
    found = ls.mass_inverse_dynamics(model, q, v, **terms)
    bias = ls.inverse_dynamics(model, q, v, 0 * a, **terms)
    M = ls.mass_matrix(model, q)
    assert np.allclose(found.mass, M, rtol=0, atol=1e-13 * np.abs(M).max())
    assert np.allclose(found.bias, bias, rtol=0, atol=1e-13 * np.abs(bias).max())
    tau = ls.inverse_dynamics(model, q, v, a, **terms)
    assert np.allclose(found.mass @ a + found.bias, tau, rtol=0, atol=1e-11 * np.abs(tau).max())
    driven = ls.mass_inverse_dynamics(model, q, v, a, **terms)
    assert np.array_equal(driven.mass, found.mass) and np.array_equal(driven.bias, found.bias)
    assert np.allclose(driven.force, tau, rtol=0, atol=1e-11 * np.abs(tau).max())
    assert np.array_equal(found.force, found.bias)
    many = ls.mass_inverse_dynamics(model, np.stack([q, q]), v, **terms)
    assert np.array_equal(many.mass[1], found.mass) and np.array_equal(many.bias[1], found.bias)


@pytest.mark.parametrize("count", [1, 5, 2000])  # 2,000 states are computed block by block
def test_accelerations_of_batches(count):
    """Accelerations that differ at one state, and one acceleration at many states."""
    model, rng = build(random_tree(7)), np.random.default_rng(count)
    q, v, *_ = random_state(random_tree(7), 7)
    a = rng.normal(size=(count, model.nv))
    tau = ls.inverse_dynamics(model, q, v, a)
    found = ls.mass_inverse_dynamics(model, q, v, a)
    assert found.force.shape == (count, model.nv)
    assert np.allclose(found.force, tau, rtol=0, atol=1e-11 * np.abs(tau).max())
    turned = ls.mass_inverse_dynamics(model, q, rng.normal(size=(count, model.nv)), a[0])
    assert np.allclose(turned.force, turned.bias + turned.mass @ a[0], rtol=0, atol=1e-11 * np.abs(tau).max())


def test_algorithms_of_the_inertial_forces():
    """Without gravity, elasticity and loads: Q of an acceleration is M a + c, and M has the columns of M e at rest."""
    model = build(random_tree(19))
    q, v, a, *_ = random_state(random_tree(19), 19)
    inertial = {"gravity": False, "elastic": False, "loads": False}
    found = ls.mass_inverse_dynamics(model, q, v, a, **inertial)
    expected = ls.inverse_dynamics(model, q, v, a, **inertial)
    assert np.allclose(found.force, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    columns = [ls.inverse_dynamics(model, q, 0 * v, e, **inertial) for e in np.eye(model.nv)]
    assert np.allclose(found.mass, np.transpose(columns), rtol=0, atol=1e-12 * np.abs(found.mass).max())


def test_wrong_arguments_are_named():
    """As elsewhere."""
    model = build(random_tree(0))
    with pytest.raises(ls.ShapeError, match="a: must be finite"):
        ls.mass_inverse_dynamics(model, model.neutral(), np.zeros(model.nv), np.full(model.nv, np.nan))
    with pytest.raises(ls.ShapeError, match="a: expected shape"):
        ls.mass_inverse_dynamics(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv + 1))
    with pytest.raises(ls.ShapeError, match="v: expected shape"):
        ls.mass_inverse_dynamics(model, model.neutral(), np.zeros(model.nv + 1))
