"""Ctrl-C in the middle of many motions: those that have begun are kept, each as far as it came."""

from contextlib import contextmanager

import numpy as np
import pytest
from dynamics.small_robots import pendulum

import lissom as ls

STARTS = np.linspace(0.1, 0.5, 5)[:, None]


@pytest.mark.parametrize(
    ("where", "duration", "options", "least"),
    [
        ("batches", 20.0, {"method": "generalized_alpha", "dt": 0.01}, 5),
        ("batches", 20.0, {"method": "esdirk", "rtol": 1e-11, "atol": 1e-13}, 5),
        ("simulate", 0.4, {"controller": lambda t, q, v: np.zeros(1)}, 2),
    ],
    ids=["of dt together", "adaptive together", "one after the other"],
)
def test_motions_of_a_batch_are_kept(monkeypatch, where, duration, options, least):
    """Purpose: rows that are kept are those of the motions left alone, and not all of them are there."""
    model, t_eval = pendulum(), np.linspace(duration / 40, duration, 40)
    whole = ls.simulate(model, duration, q0=STARTS, t_eval=t_eval, **options)
    bars = [0]

    @contextmanager
    def interrupting(*_):
        bars[0] += 1

        def advance(t):
            if t > 0.2 * duration and (where == "batches" or bars[0] == 2):
                raise KeyboardInterrupt

        yield advance

    monkeypatch.setattr(f"lissom.simulation.{where}.progress_bar", interrupting)
    with pytest.raises(KeyboardInterrupt) as stop:
        ls.simulate(model, duration, q0=STARTS, t_eval=t_eval, **options)
    found = stop.value.partial
    assert len(found) == least
    assert any(len(one.t) < len(t_eval) for one in found)
    for one, q, v in zip(found, whole.q, whole.v):
        assert 0 < len(one.t) == len(one.q)
        np.testing.assert_array_equal(one.t, t_eval[: len(one.t)])
        np.testing.assert_array_equal(one.q, q[: len(one.t)])
        np.testing.assert_array_equal(one.v, v[: len(one.t)])
