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
    many = ls.mass_inverse_dynamics(model, np.stack([q, q]), v, **terms)
    assert np.array_equal(many.mass[1], found.mass) and np.array_equal(many.bias[1], found.bias)


def test_wrong_shapes_are_named():
    """As elsewhere."""
    model = build(random_tree(0))
    with pytest.raises(ls.ShapeError, match="v: expected shape"):
        ls.mass_inverse_dynamics(model, model.neutral(), np.zeros(model.nv + 1))
