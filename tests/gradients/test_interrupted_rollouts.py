"""Ctrl-C during a rollout: the finished steps are kept, with their derivatives."""

import numpy as np
import pytest
from dynamics.small_robots import describe_mixed, state
from interrupting import press_at

import lissom as ls

STEPS = 12


@pytest.mark.parametrize(("every", "press", "kept"), [(1, 2, 8), (3, 3, 6)], ids=["all states", "some states"])
def test_steps_that_were_taken_are_kept(monkeypatch, every, press, kept):
    """The kept steps and their derivatives equal those of a shorter rollout, to the last bit."""
    monkeypatch.setattr("lissom.stepping.step_kernel._run_length", lambda *_: 4)
    model = describe_mixed().build()  # with buffers of that length
    q0, v0, _, _ = state(model, (2,), seed=2)
    u = np.random.default_rng(1).uniform(0.0, 1.0, (2, STEPS, model.nu))
    options = {"dt": 1e-3, "every": every}
    short = ls.rollout(model, q0, 0.1 * v0, u[:, :kept], **options)
    press_at(monkeypatch, "gradients.rollout", press)
    with pytest.raises(KeyboardInterrupt) as stop:
        ls.rollout(model, q0, 0.1 * v0, u, **options)
    found = stop.value.partial
    for name in ("t", "q", "v", "a", "u"):
        np.testing.assert_array_equal(getattr(found, name), getattr(short, name), err_msg=name)
    weights = np.ones((2, len(found.t), model.nv))
    np.testing.assert_array_equal(found.backward(weights).u, short.backward(weights).u)
