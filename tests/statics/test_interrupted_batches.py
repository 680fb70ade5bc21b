"""Ctrl-C in the middle of many equilibria: those that were found are kept."""

import numpy as np
import pytest
from dynamics.small_robots import rod
from interrupting import press_at

import lissom as ls

TENSIONS = np.linspace(0.1, 3.0, 10)[:, None]


def interrupted(*args, **options):
    """The KeyboardInterrupt that equilibria end in."""
    with pytest.raises(KeyboardInterrupt) as stop:
        ls.solve_statics(*args, **options)
    return stop.value


def assert_begins(part, whole, count):
    """All arrays of equilibria are the first rows of those of others, to the last bit."""
    for name in ("q", "u", "multipliers", "residual", "iterations", "v", "is_stable", "unstable_count", "anchors"):
        own, other = getattr(part, name), getattr(whole, name)
        np.testing.assert_array_equal(own, other.reshape(whole.residual.size, *own.shape[1:])[:count])


def test_equilibria_of_a_batch_are_kept(monkeypatch):
    """Purpose: in parts of four, of two leading axes, the first seven of ten are those found without Ctrl-C."""
    model, u = rod(), TENSIONS.reshape(2, 5, 1)
    whole = ls.solve_statics(model, u)
    monkeypatch.setattr("lissom.statics.equilibrium._AT_ONCE", 4)
    press_at(monkeypatch, "statics.equilibrium", 7)
    found = interrupted(model, u).partial
    assert found.q.shape == (7, model.nq)
    assert_begins(found, whole, 7)


def test_a_single_equilibrium_leaves_nothing(monkeypatch):
    """Purpose: an iterate that is no equilibrium yet does not pass for one."""
    press_at(monkeypatch, "statics.equilibrium", 1)
    assert interrupted(rod(), TENSIONS[0]).partial is None


def test_equilibria_of_several_models_are_kept(monkeypatch):
    """Purpose: of each model that has begun, and of no other."""
    models = rod().batch("rod.material.young", (1e6, 2e6, 3e6))
    u = np.broadcast_to(TENSIONS[:2], (3, 2, 1))
    whole = ls.solve_statics(models, u)
    press_at(monkeypatch, "statics.equilibrium", 3)
    found = interrupted(models, u).partial
    assert [len(one.q) for one in found] == [2, 1]
    for k, one in enumerate(found):
        np.testing.assert_array_equal(one.q, whole.q[k, : len(one.q)])
