"""Frames at any place of a rod, found in the kernel: against frames that were nodes of the model from the start.

A named frame at s is a node of its own, built with the model; it serves as the reference for the same place asked for
later. Both have the same interval but for the rounding of its modes, so 1e-12 is a hundred times the possible
difference.
"""

import numpy as np
import pytest
from robots import random_state, random_tree

import lissom as ls
from lissom.launch.workspace import Pool
from lissom.model.model import Model
from lissom.model.points import places_of

PLACES = (0.013, 0.5, 0.777)


def framed(seed):
    """A random tree, and the same with frames on its rods."""
    tree, same = random_tree(seed), random_tree(seed)
    rods = [name for name, link in same.links.items() if isinstance(link.body, ls.Rod)]
    for name in rods:
        for k, s in enumerate(PLACES):
            same.add_frame(f"{name} at {k}", name, s=s)
    return tree.build(), same.build(), rods


@pytest.mark.parametrize("seed", range(0, 50, 6))
def test_any_place_is_a_frame_there(seed):
    """Poses, motions, Jacobians and their derivatives at further points are those of named frames."""
    model, framed_model, rods = framed(seed)
    q, v, a, _ = random_state(random_tree(seed), seed)
    functions = {
        "pose": lambda m, *where: ls.frame_pose(m, q, *where),
        "twist": lambda m, *where: ls.frame_twist(m, q, v, *where),
        "acceleration": lambda m, *where: ls.frame_acceleration(m, q, v, a, *where),
        "Jacobian": lambda m, *where: ls.frame_jacobian(m, q, *where),
        "its derivative": lambda m, *where: ls.frame_jacobian_derivative(m, q, v, *where),
        "twist by q": lambda m, *where: ls.frame_twist_derivatives(m, q, v, *where)[0],
        "acceleration by q": lambda m, *where: ls.frame_acceleration_derivatives(m, q, v, a, *where)[0],
        "acceleration by v": lambda m, *where: ls.frame_acceleration_derivatives(m, q, v, a, *where)[1],
    }
    for name in rods:
        for what, function in functions.items():
            many = function(model, name, PLACES)
            for k, s in enumerate(PLACES):
                expected = function(framed_model, f"{name} at {k}")
                size = max(np.abs(expected).max(), 1.0)
                np.testing.assert_allclose(many[k], expected, rtol=0, atol=1e-12 * size, err_msg=f"{what} of {name}")
                np.testing.assert_array_equal(function(model, name, s), many[k], err_msg=f"{what} of {name}")


def test_places_do_not_disturb_each_other():
    """Asked for again after others, of this rod and of others, of one state and of many, a place gives the same."""
    model, _, rods = framed(6)
    q, v, a, _ = random_state(random_tree(6), 6)
    first = {name: ls.frame_jacobian_derivative(model, q, v, name, 0.3) for name in rods}
    poses = {name: ls.frame_pose(model, q, name, 0.3) for name in rods}
    for name in rods:
        ls.frame_jacobian(model, q, name, np.linspace(0.0, 1.0, 7))
        ls.frame_pose(model, np.stack([q, q]), name, [0.1, 0.9])
        ls.frame_acceleration(model, q, v, a, name, 0.95)
    for name in rods:
        np.testing.assert_array_equal(ls.frame_jacobian_derivative(model, q, v, name, 0.3), first[name])
        np.testing.assert_array_equal(ls.frame_pose(model, q, name, 0.3), poses[name])
        np.testing.assert_array_equal(ls.frame_pose(model, np.stack([q, q]), name, [0.9, 0.3])[1, 1], poses[name])


def test_a_new_place_makes_nothing_new():
    """No copy of the model, no buffers: after the first, only places are cached, a bounded number of them."""
    model, _, rods = framed(6)
    q = model.neutral()
    for s in (0.2, 0.3):  # the one that is prepared for a place, and the one that is not
        ls.frame_pose(model, q, rods[0], s)
    before = {key: list(pool.buffers) for key, pool in model.cache.items() if isinstance(pool, Pool)}
    known = set(model.cache)
    for s in np.linspace(0.0, 1.0, 300):
        ls.frame_pose(model, q, rods[0], s)
    assert set(model.cache) == known
    assert all(model.cache[key].buffers == buffers for key, buffers in before.items())
    assert not any(isinstance(value, Model) for value in model.cache.values())
    assert len(model.cache["places"]) <= 128


def test_the_place_used_last_is_kept_longest():
    """Entries that are used now and then stay longer than entries that were used once."""
    model, _, rods = framed(6)
    kept = places_of(model, rods[0], 0.123)
    for s in np.linspace(0.2, 0.9, 500):
        places_of(model, rods[0], float(s))
        assert places_of(model, rods[0], 0.123) is kept
    once = places_of(model, rods[0], 0.2)
    assert places_of(model, rods[0], 0.2) is once


def test_many_places_are_one_launch(monkeypatch):
    """A hundred abscissae run the kernel once."""
    from lissom.launch.buffers import Buffers

    model, _, rods = framed(6)
    runs, run = [], Buffers.run
    monkeypatch.setattr(Buffers, "run", lambda self, *given, **named: (runs.append(self), run(self, *given, **named)))
    found = ls.frame_pose(model, model.neutral(), rods[0], np.linspace(0.0, 1.0, 100))
    assert found.shape == (100, 4, 4)
    assert len(runs) == 1
