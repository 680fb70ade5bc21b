"""Directions allowed: a stack of them beside one state, none at all, but never NaN."""

import numpy as np
import pytest
from robots import build, random_state, random_tree

import lissom as ls

SEED = 7


def described():
    """A hybrid tree with spherical or free joints and loads, its model and a state."""
    robot = random_tree(SEED)
    return build(robot), *random_state(robot, SEED)[:3]


@pytest.mark.parametrize("name", ["dq", "dv", "da"])
def test_unit_directions_give_the_columns(name):
    """The nv unit directions beside one state, in one call, give the columns of inverse_dynamics_derivatives."""
    model, q, v, a = described()
    exact = ls.inverse_dynamics_derivatives(model, q, v, a)[("dq", "dv", "da").index(name)]
    columns = ls.inverse_dynamics_tangent(model, q, v, a, **{name: np.eye(model.nv)})
    np.testing.assert_allclose(columns.T, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


def test_one_direction_beside_many_states():
    """A direction is broadcast over the states of a batch, and each result equals that of its state alone."""
    model, *_ = described()
    states = [random_state(random_tree(SEED), seed)[:3] for seed in range(20)]
    q, v, a = (np.array(x) for x in zip(*states, strict=True))
    direction = dict(zip(("dq", "dv", "da"), np.random.default_rng(0).normal(size=(3, model.nv)), strict=True))
    many = ls.inverse_dynamics_tangent(model, q, v, a, **direction)
    for state, found in zip(states, many, strict=True):
        assert np.array_equal(ls.inverse_dynamics_tangent(model, *state, **direction), found)


def test_no_direction_changes_nothing():
    """Without a direction the derivative is zero, in the shape of the states."""
    model, q, v, a = described()
    found = ls.inverse_dynamics_tangent(model, np.array([q, q]), v, a)
    assert found.shape == (2, model.nv) and not found.any()


@pytest.mark.parametrize("name", ["dq", "dv", "da"])
def test_a_direction_that_is_not_finite_is_named(name):
    """NaN or infinity in a direction is refused by its name, not by that of the state or of the result."""
    model, q, v, a = described()
    for bad in (np.nan, np.inf):
        direction = np.zeros((3, model.nv))
        direction[1, -1] = bad
        with pytest.raises(ls.ShapeError, match=rf"^{name}: must be finite"):
            ls.inverse_dynamics_tangent(model, q, v, a, **{name: direction})
    with pytest.raises(ls.ShapeError, match=r"^v: must be finite"):
        ls.inverse_dynamics_tangent(model, q, np.full(model.nv, np.nan), a, dq=np.ones(model.nv))
